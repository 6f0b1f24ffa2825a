/* Kernels against decompositions and at other numbers of threads: see fused.h. */
#include "tests/support/fused.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/ops.h"
#include "tests/support/testing.h"

/* ---- Decompositions ---- */

enum { MOST = 8 };

static void cast_inputs(const wg_op *op, wg_sample *sample, wg_dtype dtype) {
    for (int i = 0; i < sample->input_count; i++) {
        if (!sample->inputs[i] || !wg_dtype_is_float(wg_tensor_dtype(sample->inputs[i])))
            continue;
        sample->inputs[i] = wg_clone(wg_cast(sample->inputs[i], dtype));
        if (op->differentiable >> i & 1)
            ck_assert_int_eq(wg_set_requires_grad(sample->inputs[i], true), 0);
    }
}

static wg_tensor *decomposed(const wg_op *op, const wg_sample *sample) {
    wg_spec specs[MOST];
    for (int i = 0; i < sample->input_count; i++) {
        const wg_tensor *x = sample->inputs[i];
        specs[i] = (wg_spec){.dtype = wg_tensor_dtype(x), .ndim = x ? wg_tensor_ndim(x) : -1};
        if (x)
            memcpy(specs[i].shape, wg_tensor_shape(x), sizeof(int64_t) * (size_t)specs[i].ndim);
    }
    wg_call call = {.op = op,
                    .options = sample->options,
                    .input_count = sample->input_count,
                    .inputs = sample->inputs,
                    .input_specs = specs,
                    .output_count = op->output_count};
    ck_assert_int_eq(op->infer(&call), 0);
    ck_assert_int_eq(op->decompose(&call), 0);
    return call.outputs[0];
}

/* The gradients of the inputs that require one; create_graph makes backward use the
 * decomposition. */
static int gradients_of(wg_tensor *output, wg_tensor *cotangent, const wg_sample *sample,
                        bool create_graph, wg_tensor **gradients) {
    wg_tensor *wanted[MOST];
    int count = 0;
    for (int i = 0; i < sample->input_count; i++)
        if (wg_requires_grad(sample->inputs[i]))
            wanted[count++] = sample->inputs[i];
    wg_backward_options options = {.retain_graph = true, .create_graph = create_graph};
    wg_grad(1, &output, &cotangent, count, wanted, &options, gradients);
    assert_no_error();
    return count;
}

static void check_sample(const wg_op *op, const wg_sample *sample, double rtol, double atol) {
    wg_tensor *output = wg_apply_one(op, sample->input_count, sample->inputs, sample->options);
    assert_close(output, decomposed(op, sample), rtol, atol);
    wg_generator generator = {.seed = 5};
    wg_tensor *cotangent = wg_randn(&generator, wg_tensor_dtype(output), wg_tensor_ndim(output),
                                    wg_tensor_shape(output));
    wg_tensor *by_kernels[MOST], *by_primitives[MOST];
    int count = gradients_of(output, cotangent, sample, false, by_kernels);
    gradients_of(output, cotangent, sample, true, by_primitives);
    for (int i = 0; i < count; i++)
        assert_close(by_kernels[i], wg_detach(by_primitives[i]), rtol, atol);
}

void assert_fused(const char *name, wg_dtype dtype, double rtol, double atol) {
    const wg_op *op = wg_op_find(name);
    ck_assert_msg(op && op->decompose, "there is no fused op %s", name);
    wg_generator generator = {.seed = 1};
    for (int index = 0;; index++) {
        wg_sample sample = {0};
        int status = op->sample(index, &generator, &sample);
        ck_assert_int_ge(status, 0);
        if (status == 0) {
            ck_assert_int_gt(index, 0);
            return;
        }
        cast_inputs(op, &sample, dtype);
        check_sample(op, &sample, rtol, atol);
    }
}

/* ---- Threads ---- */

static size_t bytes_of(const wg_tensor *x) {
    return (size_t)wg_tensor_count(x) * wg_dtype_size(wg_tensor_dtype(x));
}

static void read_results(int count, fused_results make, void **bits, size_t *sizes) {
    wg_tensor *results[MOST] = {NULL};
    make(count, results);
    assert_no_error();
    for (int i = 0; i < count; i++) {
        sizes[i] = bytes_of(results[i]);
        bits[i] = malloc(sizes[i] + 1);
        ck_assert_int_eq(wg_to_array(results[i], bits[i]), 0);
    }
}

void assert_same_bits_at_any_thread_count(int count, fused_results make) {
    static const int threads[] = {1, 2, 3};
    void *first[MOST];
    size_t sizes[MOST];
    int before = wg_threads();
    for (size_t t = 0; t < WG_COUNT(threads); t++) {
        void *bits[MOST];
        wg_set_threads(threads[t]);
        read_results(count, make, t == 0 ? first : bits, sizes);
        for (int i = 0; i < count && t > 0; i++) {
            ck_assert_msg(memcmp(first[i], bits[i], sizes[i]) == 0,
                          "result %d has other bits at %d threads than at 1", i, threads[t]);
            free(bits[i]);
        }
    }
    for (int i = 0; i < count; i++)
        free(first[i]);
    wg_set_threads(before);
}
