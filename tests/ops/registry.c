/* What holds for every op: each test runs for each op in the registry, on the op's own samples. A
 * case is an op, so a failure names it: registry:softmax:gradients_agree_... A sample that does not
 * fit a test (a rank-0 tensor cannot be transposed) is used unchanged. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/autograd.h"
#include "autograd/functional.h"
#include "gradcheck/gradcheck.h"
#include "autograd/internal.h"
#include "base/alloc.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tests/support/tensors.h"

#define MAX_INPUTS WG_COUNT(((wg_sample *)NULL)->inputs)
#define MAX_ALLOCATIONS 20000

/* ---- Samples ---- */

/* The same sample with each input replaced by a function of it. */
static wg_sample map_inputs(const wg_sample *sample, wg_tensor *(*map)(wg_tensor *x)) {
    wg_sample mapped = *sample;
    for (int i = 0; i < sample->input_count; i++)
        mapped.inputs[i] = sample->inputs[i] ? map(sample->inputs[i]) : NULL;
    return mapped;
}

static bool can_have_gradient(const wg_op *op, int input, const wg_tensor *x) {
    return x && wg_dtype_is_float(wg_tensor_dtype(x)) && op->differentiable >> input & 1;
}

/* ---- Running an op forward and backward ---- */

typedef struct run {
    int input_count;
    wg_tensor *
        inputs[MAX_INPUTS]; /* the sample's inputs, detached; leaves where gradients are required */
    wg_tensor *outputs[WG_MAX_OUTPUTS];
    int weighted_count;
    wg_tensor *weighted[WG_MAX_OUTPUTS]; /* outputs that require a gradient */
    wg_tensor *weights[WG_MAX_OUTPUTS];  /* and their cotangents */
    wg_tensor *gradients[MAX_INPUTS];    /* NULL where none is required */
} run;

#define ALL_INPUTS (~(uint64_t)0)

/* Makes the inputs of the mask leaves that require gradients, if their dtype can; returns how many
 * do. */
static int make_leaves(const wg_op *op, const wg_sample *sample, uint64_t mask, run *r) {
    int count = 0;
    *r = (run){.input_count = sample->input_count};
    for (int i = 0; i < sample->input_count; i++) {
        r->inputs[i] = wg_detach(sample->inputs[i]);
        if (mask >> i & 1 && can_have_gradient(op, i, r->inputs[i])) {
            wg_set_requires_grad(r->inputs[i], true);
            count++;
        }
    }
    return count;
}

static int forward(const wg_op *op, const wg_sample *sample, run *r) {
    return wg_apply(op, r->input_count, r->inputs, sample->options, r->outputs);
}

static wg_tensor *as_it_is(wg_tensor *x) {
    return x;
}

/* Random cotangents for the outputs that require a gradient, passed through `map`. */
static void make_weights(const wg_op *op, run *r, wg_tensor *(*map)(wg_tensor *)) {
    wg_generator generator = {.seed = 3};
    for (int j = 0; j < op->output_count; j++) {
        wg_tensor *y = r->outputs[j];
        if (!wg_requires_grad(y))
            continue;
        wg_tensor *weights = wg_randn(&generator, WG_F64, wg_tensor_ndim(y), wg_tensor_shape(y));
        r->weighted[r->weighted_count] = y;
        r->weights[r->weighted_count++] = map(wg_cast(weights, wg_tensor_dtype(y)));
    }
}

/* The gradients of the leaves of the mask. */
static int backward(run *r, uint64_t mask, const wg_backward_options *options) {
    wg_tensor *wanted[MAX_INPUTS], *found[MAX_INPUTS];
    int which[MAX_INPUTS], count = 0;
    for (int i = 0; i < r->input_count; i++)
        if (mask >> i & 1 && wg_requires_grad(r->inputs[i])) {
            which[count] = i;
            wanted[count++] = r->inputs[i];
        }
    if (count == 0 || r->weighted_count == 0)
        return 0;
    if (wg_grad(r->weighted_count, r->weighted, r->weights, count, wanted, options, found) < 0)
        return -1;
    for (int k = 0; k < count; k++)
        r->gradients[which[k]] = found[k];
    return 0;
}

/* ---- Comparing ---- */

static void assert_equal(const wg_tensor *x, const wg_tensor *expected, double tolerance) {
    ck_assert_int_eq(!x, !expected);
    if (!x)
        return;
    bool is_float = wg_dtype_is_float(wg_tensor_dtype(expected));
    assert_close(x, expected, is_float ? tolerance : 0, is_float ? tolerance : 0);
}

static void assert_same_run(const wg_op *op, const run *r, const run *expected, double tolerance) {
    for (int j = 0; j < op->output_count; j++)
        assert_equal(r->outputs[j], expected->outputs[j], tolerance);
    for (int i = 0; i < r->input_count; i++)
        assert_equal(r->gradients[i], expected->gradients[i], tolerance);
}

/* ---- The record ---- */

START_TEST(the_record_is_complete) {
    const wg_op *op = wg_op_at(_i);
    ck_assert(op->name && *op->name);
    ck_assert_msg(wg_op_find(op->name) == op, "another op has the name %s", op->name);
    ck_assert_msg(op->doc && strlen(op->doc) >= 5, "%s has no doc", op->name);
    ck_assert_msg(op->sample, "%s has no samples", op->name);
    bool composite = !op->forward;
    ck_assert_msg(composite ? op->decompose && !op->vjp && !op->jvp : op->infer != NULL,
                  "%s is neither a composite nor has it infer and forward", op->name);
    ck_assert(0 <= op->min_inputs && op->min_inputs <= op->max_inputs && op->max_inputs > 0);
    ck_assert(1 <= op->output_count && op->output_count <= WG_MAX_OUTPUTS);
    if (op->differentiable)
        ck_assert_msg((op->vjp || composite) && !op->no_gradient,
                      "%s: differentiable means a vjp or a decomposition alone", op->name);
    else
        ck_assert_msg(!op->vjp && op->no_gradient && strlen(op->no_gradient) >= 5,
                      "%s has neither a vjp nor a reason for having none", op->name);
}
END_TEST

START_TEST(a_fused_op_saves_what_its_decomposition_needs) {
    const wg_op *op = wg_op_at(_i);
    for (int i = 0; op->vjp && op->decompose && i < op->max_inputs; i++)
        ck_assert_msg(!(op->differentiable >> i & 1) || op->saves_inputs >> i & 1,
                      "%s does not save input %d", op->name, i);
}
END_TEST

/* The call that wg_apply would make, up to the shapes of its outputs; false if the inputs do not
 * fit. */
static bool infer(const wg_op *op, const wg_sample *sample, wg_spec *specs, wg_call *call) {
    *call = (wg_call){.op = op,
                      .options = sample->options,
                      .input_count = sample->input_count,
                      .inputs = sample->inputs,
                      .input_specs = specs,
                      .output_count = op->output_count};
    for (int i = 0; i < sample->input_count; i++)
        specs[i] = sample->inputs[i] ? sample->inputs[i]->spec : (wg_spec){.ndim = -1};
    return !op->infer || op->infer(call) == 0;
}

START_TEST(operations_are_counted) {
    const wg_op *op = wg_op_at(_i);
    wg_sample sample;
    for (int k = 0; op->flops && next_sample(op, k, &sample); k++) {
        wg_spec specs[MAX_INPUTS];
        wg_call call;
        ck_assert(infer(op, &sample, specs, &call));
        bool empty = false;
        for (int i = 0; i < sample.input_count; i++)
            empty |= sample.inputs[i] && wg_tensor_count(sample.inputs[i]) == 0;
        ck_assert(empty ? op->flops(&call) >= 0 : op->flops(&call) > 0);
    }
}
END_TEST

/* ---- Forward ---- */

START_TEST(every_sample_runs) {
    const wg_op *op = wg_op_at(_i);
    wg_sample sample;
    int count = 0;
    for (; next_sample(op, count, &sample); count++) {
        run r;
        make_leaves(op, &sample, 0, &r);
        ck_assert_int_eq(forward(op, &sample, &r), 0);
        for (int j = 0; j < op->output_count; j++)
            ck_assert(r.outputs[j] && !wg_requires_grad(r.outputs[j]));
    }
    ck_assert_msg(count > 0, "%s has no samples", op->name);
}
END_TEST

START_TEST(a_null_input_gives_null_and_leaves_the_pending_error_alone) {
    const wg_op *op = wg_op_at(_i);
    wg_sample sample;
    for (int k = 0; next_sample(op, k, &sample); k++)
        for (int i = 0; i < op->min_inputs && i < sample.input_count; i++) {
            run r;
            make_leaves(op, &sample, 0, &r);
            r.inputs[i] = NULL;
            wg_fail(WG_ERROR_STATE, "test", "the first error");
            ck_assert_int_eq(forward(op, &sample, &r), -1);
            for (int j = 0; j < op->output_count; j++)
                ck_assert_ptr_null(r.outputs[j]);
            assert_error(WG_ERROR_STATE, "the first error");
        }
}
END_TEST

START_TEST(a_wrong_number_of_inputs_is_refused) {
    const wg_op *op = wg_op_at(_i);
    wg_sample sample;
    next_sample(op, 0, &sample);
    wg_tensor *inputs[WG_MAX_DIMS * 8] = {0}, *outputs[WG_MAX_OUTPUTS];
    inputs[0] = sample.inputs[0];
    const int counts[] = {op->min_inputs - 1, op->max_inputs + 1};
    for (int i = 0; i < 2; i++)
        if (0 <= counts[i] && counts[i] <= (int)WG_COUNT(inputs))
            failed(wg_apply(op, counts[i], inputs, sample.options, outputs), ARGUMENT, op->name);
}
END_TEST

/* ---- Gradients ---- */

/* Values, layouts, shapes, masks, threads... see gradcheck.h. */
START_TEST(the_gradient_checker_finds_nothing) {
    wg_gradcheck_options options = {.order = 2, .forward = true};
    wg_gradcheck_report report;
    int result = wg_gradcheck_op(wg_op_at(_i), &options, &report);
    ck_assert_msg(result == 0, "%s", report.message);
}
END_TEST

START_TEST(a_saved_tensor_that_was_written_is_refused) {
    const wg_op *op = wg_op_at(_i);
    wg_sample sample;
    for (int k = 0; next_sample(op, k, &sample); k++)
        for (int i = 0; i < sample.input_count; i++) {
            run r;
            if (make_leaves(op, &sample, ALL_INPUTS, &r) == 0 || forward(op, &sample, &r) < 0)
                continue;
            make_weights(op, &r, as_it_is);
            const wg_node *node = r.weighted_count ? r.weighted[0]->node : NULL;
            if (!node || node->op != op || !node->inputs[i].tensor)
                continue;
            wg_tensor_touch(r.inputs[i]);
            failed(backward(&r, ALL_INPUTS, NULL), GRADIENT, op->name);
        }
}
END_TEST

/* ---- Lack of memory ---- */

typedef struct sampled_op {
    const wg_op *op;
    const wg_sample *sample;
    const run *ready; /* leaves and cotangents */
    wg_tensor *const *tangents;
} sampled_op;

/* Forward and backward; true if nothing failed. */
static bool run_back(const sampled_op *of) {
    run r = *of->ready;
    bool done = forward(of->op, of->sample, &r) == 0;
    for (int j = 0; done && j < r.weighted_count; j++)
        r.weighted[j] = r.outputs[of->ready->weighted[j]->output_index];
    return done && backward(&r, ALL_INPUTS, NULL) == 0;
}

/* Runs the op with all allocations after the n-th failing, for each n until none fails. */
static void fail_each(const sampled_op *of, int index, bool (*succeeds)(const sampled_op *of)) {
    const int64_t tensors = wg_tensors_alive(), blocks = wg_alloc_get_stats().live_blocks;
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        ck_assert_int_lt(n, MAX_ALLOCATIONS);
        IN_SCOPE() {
            wg__alloc_fail_after(n);
            done = succeeds(of);
            wg__alloc_fail_after(-1);
        }
        ck_assert_msg(done == !wg_error_pending(), "%s, sample %d: allocation %lld failed, %s",
                      of->op->name, index, (long long)n,
                      done ? "and the error is not the result's" : "and no error is pending");
        if (!done)
            assert_error(WG_ERROR_MEMORY, "");
        ck_assert_msg(wg_tensors_alive() == tensors && wg_alloc_get_stats().live_blocks == blocks,
                      "%s, sample %d: tensors or memory leaked, n = %lld", of->op->name, index,
                      (long long)n);
    }
}

START_TEST(lack_of_memory_anywhere_is_an_error_and_no_leak) {
    const wg_op *op = wg_op_at(_i);
    wg_sample sample;
    for (int k = 0; next_sample(op, k, &sample); k++) {
        run ready;
        make_leaves(op, &sample, ALL_INPUTS, &ready);
        forward(op, &sample, &ready);
        make_weights(op, &ready, as_it_is);
        assert_no_error();
        fail_each(&(sampled_op){op, &sample, &ready, NULL}, k, run_back);
    }
}
END_TEST

/* ---- Forward mode ---- */

static int run_sampled(int input_count, wg_tensor *const *inputs, int output_count,
                       wg_tensor **outputs, void *context) {
    const sampled_op *sampled = context;
    (void)output_count;
    return wg_apply(sampled->op, input_count, inputs, sampled->sample->options, outputs);
}

static wg_tensor *random_like(wg_generator *generator, const wg_tensor *x) {
    return wg_randn(generator, wg_tensor_dtype(x), wg_tensor_ndim(x), wg_tensor_shape(x));
}

/* Random tangents for the inputs of the mask that can have one; returns their number. */
static int make_tangents(const wg_op *op, const run *r, uint64_t mask, wg_tensor **tangents) {
    wg_generator generator = {.seed = 7};
    int count = 0;
    for (int i = 0; i < r->input_count; i++) {
        bool wanted = mask >> i & 1 && can_have_gradient(op, i, r->inputs[i]);
        tangents[i] = wanted ? random_like(&generator, r->inputs[i]) : NULL;
        count += wanted;
    }
    return count;
}

static bool run_forward_mode(const sampled_op *of) {
    wg_tensor *found[WG_MAX_OUTPUTS];
    const int status = wg_jvp(run_sampled, (void *)of, of->ready->input_count, of->ready->inputs,
                              of->tangents, of->op->output_count, NULL, found);
    for (int j = 0; status < 0 && j < of->op->output_count; j++)
        ck_assert_ptr_null(found[j]);
    return status == 0;
}

START_TEST(lack_of_memory_in_forward_mode_is_an_error_and_no_leak) {
    const wg_op *op = wg_op_at(_i);
    wg_sample sample;
    for (int k = 0; next_sample(op, k, &sample); k++) {
        run r;
        wg_tensor *tangents[MAX_INPUTS];
        make_leaves(op, &sample, ALL_INPUTS, &r); /* so that the jvps are recorded, too */
        if (make_tangents(op, &r, ALL_INPUTS, tangents) == 0)
            continue;
        fail_each(&(sampled_op){op, &sample, &r, tangents}, k, run_forward_mode);
    }
}
END_TEST

/* ---- dtypes ---- */

static wg_dtype narrow;

/* x rounded to a narrower floating dtype: a value that both dtypes have. */
static wg_tensor *rounded(wg_tensor *x) {
    return wg_tensor_dtype(x) == WG_F64 ? wg_cast(wg_cast(x, narrow), WG_F64) : x;
}

static wg_tensor *narrowed(wg_tensor *x) {
    return wg_tensor_dtype(x) == WG_F64 ? wg_cast(x, narrow) : x;
}

static wg_tensor *widened(wg_tensor *x) {
    return x && wg_dtype_is_float(wg_tensor_dtype(x)) ? wg_cast(x, WG_F64) : x;
}

static void widen_run(const wg_op *op, run *r) {
    for (int j = 0; j < op->output_count; j++)
        r->outputs[j] = widened(r->outputs[j]);
    for (int i = 0; i < r->input_count; i++)
        r->gradients[i] = widened(r->gradients[i]);
}

/* The kernels of a narrower dtype against f64 on the same values; for fused ops against the
 * decomposition in f64, which create_graph selects. */
static void compare_dtype(const wg_op *op, double tolerance) {
    wg_sample sample;
    for (int k = 0; next_sample(op, k, &sample); k++) {
        wg_sample wide_sample = map_inputs(&sample, rounded);
        wg_sample narrow_sample = map_inputs(&sample, narrowed);
        run expected, r;
        make_leaves(op, &narrow_sample, ALL_INPUTS, &r);
        if (forward(op, &narrow_sample, &r) < 0) {
            assert_error(WG_ERROR_DTYPE, !op->forward ? "" : op->name);
            ck_assert_msg(narrow != WG_F32, "%s, sample %d: no f32", op->name, k);
            continue;
        }
        make_weights(op, &r, rounded);
        backward(&r, ALL_INPUTS, NULL);
        assert_no_error();
        make_leaves(op, &wide_sample, ALL_INPUTS, &expected);
        forward(op, &wide_sample, &expected);
        for (int j = 0; j < r.weighted_count; j++) {
            expected.weighted[j] = expected.outputs[r.weighted[j]->output_index];
            expected.weights[j] = wg_cast(r.weights[j], wg_tensor_dtype(expected.weighted[j]));
        }
        expected.weighted_count = r.weighted_count;
        backward(&expected, ALL_INPUTS, &(wg_backward_options){.create_graph = true});
        assert_no_error();
        widen_run(op, &r);
        widen_run(op, &expected);
        assert_same_run(op, &r, &expected, tolerance);
    }
}

START_TEST(f32_agrees_with_f64) {
    narrow = WG_F32;
    compare_dtype(wg_op_at(_i), 1e-5);
}
END_TEST

START_TEST(bf16_agrees_with_f64_or_is_refused) {
    narrow = WG_BF16;
    compare_dtype(wg_op_at(_i), 1e-2);
}
END_TEST

static double tolerance_of(const wg_op *op) {
    return strcmp(op->name, "batch_norm") == 0 ? 1e-10 : strstr(op->name, "norm") ? 1e-11 : 1e-12;
}

/* The same outputs and gradients by primitives, which backward uses under create_graph. */
START_TEST(a_fused_op_equals_its_decomposition) {
    const wg_op *op = wg_op_at(_i);
    wg_sample sample;
    for (int k = 0; op->vjp && op->decompose && next_sample(op, k, &sample); k++) {
        run r, by_primitives;
        wg_spec specs[MAX_INPUTS];
        wg_call call;
        make_leaves(op, &sample, 0, &r);
        ck_assert_int_eq(forward(op, &sample, &r), 0);
        ck_assert(infer(op, &sample, specs, &call));
        ck_assert_int_eq(op->decompose(&call), 0);
        for (int j = 0; j < op->output_count; j++)
            assert_equal(call.outputs[j], r.outputs[j], 1e-12);
        make_leaves(op, &sample, ALL_INPUTS, &r);
        ck_assert_int_eq(forward(op, &sample, &r), 0);
        make_weights(op, &r, as_it_is);
        by_primitives = r;
        ck_assert_int_eq(backward(&r, ALL_INPUTS, &(wg_backward_options){.retain_graph = true}), 0);
        ck_assert_int_eq(
            backward(&by_primitives, ALL_INPUTS, &(wg_backward_options){.create_graph = true}), 0);
        assert_same_run(op, &r, &by_primitives, tolerance_of(op));
    }
}
END_TEST

/* A user may run a copy of a built-in record, with a name of the user's. */
START_TEST(a_copy_of_the_record_with_another_name_is_the_op) {
    static wg_op copy; /* nodes of the graph point to it */
    const wg_op *op = wg_op_at(_i);
    wg_sample sample;
    copy = *op;
    copy.name = "copy";
    for (int k = 0; next_sample(op, k, &sample); k++) {
        run r, expected;
        make_leaves(op, &sample, ALL_INPUTS, &expected);
        make_leaves(op, &sample, ALL_INPUTS, &r);
        ck_assert_int_eq(forward(op, &sample, &expected), 0);
        ck_assert_int_eq(forward(&copy, &sample, &r), 0);
        make_weights(op, &expected, as_it_is);
        make_weights(op, &r, as_it_is);
        ck_assert_int_eq(backward(&expected, ALL_INPUTS, NULL), 0);
        ck_assert_int_eq(backward(&r, ALL_INPUTS, NULL), 0);
        assert_same_run(op, &r, &expected, 0);
    }
}
END_TEST

SUITES {
    const TTest *const tests[] = {the_record_is_complete,
                                  a_fused_op_saves_what_its_decomposition_needs,
                                  operations_are_counted,
                                  every_sample_runs,
                                  a_null_input_gives_null_and_leaves_the_pending_error_alone,
                                  a_wrong_number_of_inputs_is_refused,
                                  the_gradient_checker_finds_nothing,
                                  a_saved_tensor_that_was_written_is_refused,
                                  lack_of_memory_anywhere_is_an_error_and_no_leak,
                                  lack_of_memory_in_forward_mode_is_an_error_and_no_leak,
                                  f32_agrees_with_f64,
                                  bf16_agrees_with_f64_or_is_refused,
                                  a_fused_op_equals_its_decomposition,
                                  a_copy_of_the_record_with_another_name_is_the_op};
    add_suite_of_each("registry", tests, wg_op_count(), op_name);
}
