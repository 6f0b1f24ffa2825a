/* Softmax and its logarithm along the last axis; along another one, by views. */
#include <math.h>

#include "tensor/iter.h"
#include "tensor/ops.h"
#include "tensor/ops/registry.h"
#include "tensor/simd/simd.h"

typedef struct rows_job {
    const wg__simd *simd;
    wg_dtype dtype;
    int64_t width;
    const char *x;
    char *y;
} rows_job;

/* Runs `body` over the rows of the call's input, which it may find in any layout. */
static int over_rows(wg_call *call, wg__range_body body) {
    wg_tensor *x = wg_contiguous(call->inputs[0]);
    if (!x)
        return -1;
    int64_t width = wg_tensor_size(x, -1), count = wg_tensor_count(x);
    if (count == 0)
        return 0;
    rows_job job = {.simd = wg__simd_for(wg_tensor_dtype(x)),
                    .dtype = wg_tensor_dtype(x),
                    .width = width,
                    .x = wg_tensor_data(x),
                    .y = wg_tensor_data(call->outputs[0])};
    wg__parallel_for(count / width, 1 + WG__GRAIN / 4 / width, body, &job);
    return 0;
}

static int infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    if (x->dtype != WG_F32 && x->dtype != WG_F64)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted f32 or f64; cast it");
    if (x->ndim == 0)
        return wg__op_fail(call, WG_ERROR_INDEX, "a scalar has no axis");
    call->output_specs[0] = *x;
    return 0;
}

static int sample(int index, wg_generator *generator, wg_sample *sample) {
    static const int64_t shapes[][3] = {{2, 3, 5}, {1, 4, 1}, {2, 1, 33}};
    if (index >= 3)
        return 0;
    sample->input_count = 1;
    sample->inputs[0] = wg_randn(generator, WG_F64, 3, shapes[index]);
    return sample->inputs[0] ? 1 : -1;
}

static int bench(wg_generator *generator, wg_sample *sample) {
    sample->input_count = 1;
    sample->inputs[0] = wg_randn(generator, WG_F32, 2, (int64_t[]){1 << 12, 1 << 10});
    return sample->inputs[0] ? 1 : -1;
}

/* The op along any axis, and in bf16 by way of f32. */
static wg_tensor *apply(const wg_op *op, wg_tensor *x, int axis) {
    if (!x)
        return NULL;
    if (wg_tensor_dtype(x) == WG_BF16)
        return wg_cast(apply(op, wg_cast(x, WG_F32), axis), WG_BF16);
    int ndim = wg_tensor_ndim(x);
    int place = ndim == 0 && (axis == 0 || axis == -1) ? 0 : wg__axis(axis, ndim, op->name);
    if (place < 0)
        return NULL;
    if (ndim == 0)
        return wg_reshape(apply(op, wg_reshape(x, 1, (int64_t[]){1}), 0), 0, NULL);
    if (place == ndim - 1)
        return wg_apply_one(op, 1, &x, NULL);
    x = wg_transpose(x, place, -1);
    return wg_transpose(wg_apply_one(op, 1, &x, NULL), place, -1);
}

/* ---- softmax: y_i = e^(x_i - max) / sum e^(x_j - max); a row of -inf gives zeros.
 * dx = y (g - sum g y), dy = y (t - sum t y). ---- */

static void softmax_rows(int64_t begin, int64_t end, void *context) {
    const rows_job *job = context;
    size_t bytes = (size_t)job->width * wg_dtype_size(job->dtype);
    for (int64_t row = begin; row < end; row++) {
        const char *x = job->x + (size_t)row * bytes;
        char *y = job->y + (size_t)row * bytes;
        double max = job->simd->row_max(job->width, x);
        /* From 0, the exponentials of a row of -inf are all 0, and so is their sum. */
        double shift = max == -INFINITY ? 0 : max;
        double sum = job->simd->row_sum_exp(job->width, x, shift);
        job->simd->row_exp(job->width, x, shift, sum == 0 ? 0 : 1 / sum, y);
    }
}

static int softmax_forward(wg_call *call) {
    return over_rows(call, softmax_rows);
}

/* The Jacobian, diag(y) - y y^T, is its own transpose: this serves both modes. */
static int softmax_derivative(wg_call *call, wg_tensor *const *directions, wg_tensor **results) {
    wg_tensor *y = call->outputs[0], *g = directions[0];
    if (!g)
        return 0;
    wg_tensor *mean = wg_sum(wg_mul(g, y), 1, (int64_t[]){-1}, true);
    results[0] = wg_mul(y, wg_sub(g, mean));
    return results[0] ? 0 : -1;
}

static const wg_op softmax = {
    .name = "softmax",
    .doc = "y = e^x / sum e^x over the last axis, from x - max; a row of -inf gives zeros",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .saves_outputs = 1,
    .differentiable = 1,
    .infer = infer,
    .forward = softmax_forward,
    .vjp = softmax_derivative,
    .jvp = softmax_derivative,
    .sample = sample,
    .bench = bench,
};

wg_tensor *wg_softmax(wg_tensor *x, int axis) {
    return apply(&softmax, x, axis);
}

/* ---- log_softmax: y_i = x_i - log sum e^x_j.   dx = g - e^y sum g, dy = t - sum e^y t. ---- */

static void log_softmax_rows(int64_t begin, int64_t end, void *context) {
    const rows_job *job = context;
    size_t bytes = (size_t)job->width * wg_dtype_size(job->dtype);
    for (int64_t row = begin; row < end; row++) {
        const void *x = job->x + (size_t)row * bytes;
        void *y = job->y + (size_t)row * bytes;
        double max = job->simd->row_max(job->width, x);
        double log_sum = max + log(job->simd->row_sum_exp(job->width, x, max));
        if (job->dtype == WG_F32)
            for (int64_t i = 0; i < job->width; i++)
                ((float *)y)[i] = (float)(((const float *)x)[i] - log_sum);
        else
            for (int64_t i = 0; i < job->width; i++)
                ((double *)y)[i] = ((const double *)x)[i] - log_sum;
    }
}

static int log_softmax_forward(wg_call *call) {
    return over_rows(call, log_softmax_rows);
}

static int log_softmax_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[0];
    wg_tensor *sum = wg_sum(g, 1, (int64_t[]){-1}, true);
    gradients[0] = wg_sub(g, wg_mul(wg_exp(call->outputs[0]), sum));
    return gradients[0] ? 0 : -1;
}

static int log_softmax_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *t = tangents[0];
    if (!t)
        return 0;
    wg_tensor *mean = wg_sum(wg_mul(wg_exp(call->outputs[0]), t), 1, (int64_t[]){-1}, true);
    output_tangents[0] = wg_sub(t, mean);
    return output_tangents[0] ? 0 : -1;
}

static const wg_op log_softmax = {
    .name = "log_softmax",
    .doc = "y = x - log sum e^x over the last axis",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .saves_outputs = 1,
    .differentiable = 1,
    .infer = infer,
    .forward = log_softmax_forward,
    .vjp = log_softmax_vjp,
    .jvp = log_softmax_jvp,
    .sample = sample,
    .bench = bench,
};

wg_tensor *wg_log_softmax(wg_tensor *x, int axis) {
    return apply(&log_softmax, x, axis);
}

static const wg_op *const ops[] = {&softmax, &log_softmax};
const wg__op_family wg__family_softmax = {ops, sizeof ops / sizeof *ops};
