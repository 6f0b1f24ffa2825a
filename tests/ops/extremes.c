/* Extreme inputs: each test runs for each op in the registry, on the op's own samples with their
 * numbers or shapes replaced. Whatever comes of it, forward and backward, must be a result or an
 * error that says something; with sanitizers, no read or write out of place and no undefined
 * arithmetic. What the results are is compared with PyTorch by tests/ops/reference.c and with
 * decompositions by the gradient checker. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "autograd/autograd.h"
#include "tensor/ops.h"
#include "tests/support/tensors.h"

#define MAX_INPUTS WG_COUNT(((wg_sample *)NULL)->inputs)

/* An error has words, and is no report of a bug of ours. */
static void check_error(const wg_op *op, const char *what) {
    const wg_error *error = wg_error_pending();
    ck_assert_msg(error, "%s, %s: failed without an error", op->name, what);
    ck_assert_msg(strlen(error->message) > 10, "%s, %s: \"%s\"", op->name, what, error->message);
    wg_error_clear();
}

/* Runs the op forward and backward. */
static void run(const wg_op *op, const wg_sample *sample, const char *what) {
    wg_tensor *inputs[MAX_INPUTS] = {0}, *outputs[WG_MAX_OUTPUTS] = {0}, *total = NULL;
    for (int i = 0; i < sample->input_count; i++) {
        inputs[i] = sample->inputs[i] ? wg_detach(sample->inputs[i]) : NULL;
        if (inputs[i] && op->differentiable >> i & 1 &&
            wg_dtype_is_float(wg_tensor_dtype(inputs[i])))
            wg_set_requires_grad(inputs[i], true);
    }
    if (wg_apply(op, sample->input_count, inputs, sample->options, outputs) < 0) {
        check_error(op, what);
        return;
    }
    for (int j = 0; j < op->output_count; j++) {
        ck_assert_msg(outputs[j], "%s, %s: no output %d", op->name, what, j);
        if (wg_requires_grad(outputs[j])) {
            wg_tensor *sum = wg_cast(wg_sum(outputs[j], WG_ALL, false), WG_F64);
            total = total ? wg_add(total, sum) : sum;
        }
    }
    if (total && wg_backward(total, NULL) < 0)
        check_error(op, what);
    ck_assert_msg(!wg_error_pending(), "%s, %s: an error is pending after success: %s", op->name,
                  what, wg_error_pending() ? wg_error_pending()->message : "");
}

/* ---- Numbers ---- */

typedef struct fill {
    const char *name;
    double of_f32, of_f64;
    int64_t integer; /* for indices, lengths and other whole numbers */
} fill;

static const fill fills[] = {
    {"1e30", 1e30, 1e300, INT64_MAX},
    {"-1e30", -1e30, -1e300, INT64_MIN},
    {"the largest numbers", FLT_MAX, DBL_MAX, INT64_C(1) << 40},
    {"denormals", 1e-42, 5e-324, -1},
    {"zeros", 0, 0, 0},
    {"infinities", INFINITY, INFINITY, 1},
    {"-infinities", -INFINITY, -INFINITY, INT32_MIN},
    {"NaN", NAN, NAN, 1 << 20},
};

static bool is_integer(const wg_tensor *x) {
    return wg_tensor_dtype(x) == WG_I64 || wg_tensor_dtype(x) == WG_I32;
}

static wg_tensor *integers_like(const wg_tensor *x, int64_t value) {
    wg_tensor *y = wg_full_like(x, 0);
    const bool is_wide = wg_tensor_dtype(x) == WG_I64;
    for (int64_t i = 0; y && i < wg_tensor_count(y); i++)
        if (is_wide)
            ((int64_t *)wg_tensor_data(y))[i] = value;
        else
            ((int32_t *)wg_tensor_data(y))[i] = (int32_t)value;
    return y;
}

/* Replaces all numbers of the inputs of the mask; whole numbers, if `integers`. */
static wg_sample filled(const wg_sample *sample, const fill *with, uint32_t mask, bool integers,
                        wg_dtype dtype) {
    wg_sample made = *sample;
    for (int i = 0; i < sample->input_count; i++) {
        wg_tensor *x = sample->inputs[i];
        if (!x)
            continue;
        if (wg_dtype_is_float(wg_tensor_dtype(x))) {
            x = wg_cast(x, dtype);
            if (mask >> i & 1 && !integers)
                x = wg_full_like(x, dtype == WG_F64 ? with->of_f64 : with->of_f32);
        } else if (mask >> i & 1 && integers && is_integer(x)) {
            x = integers_like(x, with->integer);
        }
        made.inputs[i] = x;
    }
    return made;
}

static void run_filled(const wg_op *op, int index, const fill *with, uint32_t mask, bool integers) {
    static const wg_dtype dtypes[] = {WG_F32, WG_F64};
    for (size_t d = 0; d < WG_COUNT(dtypes); d++) {
        wg_scope scope;
        wg_sample sample;
        wg_scope_begin(&scope);
        if (next_sample(op, index, &sample)) {
            sample = filled(&sample, with, mask, integers, dtypes[d]);
            if (wg_error_pending()) /* a dtype that a cast does not have */
                wg_error_clear();
            else
                run(op, &sample, with->name);
        }
        wg_scope_end(&scope, NULL);
    }
}

static int count_samples(const wg_op *op, int *inputs) {
    int count = 0, more = 1;
    *inputs = 0;
    for (; more; count++) {
        wg_scope scope;
        wg_sample sample;
        wg_scope_begin(&scope);
        more = next_sample(op, count, &sample);
        *inputs = sample.input_count > *inputs ? sample.input_count : *inputs;
        wg_scope_end(&scope, NULL);
    }
    return count - 1;
}

START_TEST(extreme_numbers_give_a_result_or_an_error) {
    const wg_op *op = wg_op_at(_i);
    int inputs;
    const int samples = count_samples(op, &inputs);
    for (int k = 0; k < samples; k++)
        for (size_t f = 0; f < WG_COUNT(fills); f++) {
            run_filled(op, k, &fills[f], ~0u, false);
            for (int i = 0; inputs > 1 && k < 3 && i < inputs; i++) /* one input alone */
                run_filled(op, k, &fills[f], 1u << i, false);
        }
}
END_TEST

/* Indices far out of range, negative lengths: an error, or what the op says of them. */
START_TEST(extreme_indices_give_a_result_or_an_error) {
    const wg_op *op = wg_op_at(_i);
    int inputs;
    const int samples = count_samples(op, &inputs);
    for (int k = 0; k < samples; k++)
        for (size_t f = 0; f < WG_COUNT(fills); f++)
            run_filled(op, k, &fills[f], ~0u, true);
}
END_TEST

/* ---- Shapes ---- */

/* Cuts axis `axis`, counted from the end, of the inputs of the mask to `length`. */
static bool cut(wg_sample *sample, int axis, int64_t length, uint32_t mask) {
    bool changed = false;
    for (int i = 0; i < sample->input_count; i++) {
        wg_tensor *x = sample->inputs[i];
        if (!x || !(mask >> i & 1) || wg_tensor_ndim(x) <= axis)
            continue;
        const int at = wg_tensor_ndim(x) - 1 - axis;
        if (wg_tensor_shape(x)[at] <= length)
            continue;
        sample->inputs[i] = wg_narrow(x, at, 0, length);
        changed = true;
    }
    return changed;
}

START_TEST(empty_axes_and_axes_of_one_give_a_result_or_an_error) {
    const wg_op *op = wg_op_at(_i);
    int inputs;
    const int samples = count_samples(op, &inputs);
    for (int k = 0; k < samples; k++)
        for (int axis = 0; axis < 5; axis++)
            for (int64_t length = 0; length < 2; length++)
                for (int i = -1; i < inputs; i++) {
                    wg_scope scope;
                    wg_sample sample;
                    wg_scope_begin(&scope);
                    if (next_sample(op, k, &sample) &&
                        cut(&sample, axis, length, i < 0 ? ~0u : 1u << i))
                        run(op, &sample, length ? "an axis of one" : "an empty axis");
                    wg_scope_end(&scope, NULL);
                }
}
END_TEST

SUITES {
    const TTest *const tests[] = {extreme_numbers_give_a_result_or_an_error,
                                  extreme_indices_give_a_result_or_an_error,
                                  empty_axes_and_axes_of_one_give_a_result_or_an_error};
    add_suite_of_each("extremes", tests, wg_op_count(), op_name);
}
