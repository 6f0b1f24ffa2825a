/* Normalisation over the last axis, fused: backward needs x and, of each row, a mean and a scale.
 */
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/support.h"
#include "tensor/simd/simd.h"

#include <math.h>
#include <string.h>

typedef struct norm_options {
    double eps;
    bool outside; /* rms_norm: eps is added to the root, not under it */
} norm_options;

enum { X, WEIGHT, BIAS };

/* ---- layer_norm: h = (x - mean) / sqrt(var + eps),  y = h weight + bias.
 * With u = g weight: dx = (u - mean(u) - h mean(u h)) / sqrt(var + eps),
 * dweight = sum g h, dbias = sum g over the rows. ---- */

typedef struct norm_job {
    const wg__simd *simd;
    wg_dtype dtype;
    int64_t rows, width;
    double eps;
    bool centered, outside;
    const char *x, *weight, *bias;
    char *mean, *scale; /* (rows) */
    char *y;
    const char *dy;
    char *dx;
    char *partial; /* backward: a dweight and a dbias for each chunk of rows */
    bool wants_weight, wants_bias;
    int64_t rows_a_chunk;
} norm_job;

static void normalize_rows(int64_t begin, int64_t end, void *context) {
    const norm_job *job = context;
    int64_t size = (int64_t)wg_dtype_size(job->dtype), stride = job->width * size;
    for (int64_t row = begin; row < end; row++) {
        double mean, variance;
        job->simd->rows.moments(job->width, job->x + row * stride, &mean, &variance);
        if (!job->centered) {
            variance += mean * mean;
            mean = 0;
        }
        double scale = 1 / (job->outside ? sqrt(variance) + job->eps : sqrt(variance + job->eps));
        job->simd->rows.normalize(job->width, job->x + row * stride, mean, scale, job->weight,
                                  job->bias, job->y + row * stride);
        wg__set_element(job->dtype, job->mean + row * size, mean);
        wg__set_element(job->dtype, job->scale + row * size, scale);
    }
}

static void gradient_chunks(int64_t begin, int64_t end, void *context) {
    const norm_job *job = context;
    int64_t size = (int64_t)wg_dtype_size(job->dtype), stride = job->width * size;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        char *dweight = job->partial ? job->partial + chunk * 2 * stride : NULL;
        char *dbias = dweight ? dweight + stride : NULL;
        if (dweight)
            memset(dweight, 0, (size_t)(2 * stride));
        int64_t last = (chunk + 1) * job->rows_a_chunk;
        for (int64_t row = chunk * job->rows_a_chunk; row < last && row < job->rows; row++) {
            double scale = wg__element(job->dtype, job->scale + row * size);
            /* (r + eps) / r; a row of zeros has h = 0, so that it does not matter there. */
            double inner = 1 - job->eps * scale;
            double share = job->outside && inner > 0 ? 1 / inner : 1;
            job->simd->rows.normalize_vjp(
                job->width, job->x + row * stride, wg__element(job->dtype, job->mean + row * size),
                scale, job->weight, job->dy + row * stride, job->centered, share,
                job->dx ? job->dx + row * stride : NULL, job->wants_weight ? dweight : NULL,
                job->wants_bias ? dbias : NULL);
        }
    }
}

static int norm_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[X];
    if (wg__check_kernel_dtype(call) < 0)
        return -1;
    if (x->ndim == 0 || x->shape[x->ndim - 1] == 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "the last axis has no elements to normalise");
    for (int i = WEIGHT; i < call->input_count; i++) {
        const wg_spec *p = &call->input_specs[i];
        if (p->ndim < 0)
            continue;
        if (p->ndim != 1 || p->shape[0] != x->shape[x->ndim - 1])
            return wg__op_fail(call, WG_ERROR_SHAPE, "wanted a %s of shape (%lld)",
                               i == WEIGHT ? "weight" : "bias", (long long)x->shape[x->ndim - 1]);
        if (p->dtype != x->dtype)
            return wg__op_fail(call, WG_ERROR_DTYPE, "wanted one dtype; cast the %s",
                               i == WEIGHT ? "weight" : "bias");
    }
    call->output_specs[0] = *x;
    return 0;
}

/* Fills the members that forward and backward share. Operands that are not contiguous are copied;
 * the copies live as long as the scope of the call. */
static int begin_job(const wg_call *call, norm_job *job) {
    wg_tensor *dense[3] = {NULL};
    for (int i = X; i < call->input_count; i++) {
        if (!call->inputs[i])
            continue;
        dense[i] = wg_contiguous(call->inputs[i]);
        if (!dense[i])
            return -1;
    }
    const norm_options *options = call->options;
    wg_dtype dtype = dense[X]->spec.dtype;
    int64_t width = wg_tensor_size(dense[X], -1);
    *job = (norm_job){.simd = wg__simd_for(dtype),
                      .dtype = dtype,
                      .rows = wg_tensor_count(dense[X]) / width,
                      .width = width,
                      .eps = options->eps,
                      .centered = call->op->max_inputs > BIAS,
                      .outside = options->outside,
                      .x = wg_tensor_data(dense[X]),
                      .weight = wg_tensor_data(dense[WEIGHT]),
                      .bias = wg_tensor_data(dense[BIAS])};
    return 0;
}

static int64_t rows_of_grain(int64_t width) {
    return 1 + WG__GRAIN / 2 / width;
}

static int norm_forward(wg_call *call) {
    norm_job job;
    if (begin_job(call, &job) < 0)
        return -1;
    for (int k = 0; k < 2; k++) {
        call->saved[k] = wg_empty(job.dtype, 1, &job.rows);
        if (!call->saved[k])
            return -1;
    }
    job.mean = wg_tensor_data(call->saved[0]);
    job.scale = wg_tensor_data(call->saved[1]);
    job.y = wg_tensor_data(call->outputs[0]);
    wg__parallel_for(job.rows, rows_of_grain(job.width), normalize_rows, &job);
    return 0;
}

/* Adds the chunks to the gradient, in an order that does not depend on the threads. */
static wg_tensor *sum_chunks(const norm_job *job, const char *first, int64_t chunks,
                             wg_tensor *onto) {
    wg_tensor *sum = onto ? onto : wg_zeros(job->dtype, 1, &job->width);
    if (!sum)
        return NULL;
    char *out = wg_tensor_data(sum);
    int64_t stride = 2 * job->width;
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        for (int64_t i = 0; i < job->width; i++)
            if (job->dtype == WG_F32)
                ((float *)out)[i] += ((const float *)first)[chunk * stride + i];
            else
                ((double *)out)[i] += ((const double *)first)[chunk * stride + i];
    wg_tensor_touch(sum);
    return sum;
}

static int norm_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    norm_job job;
    wg_tensor *dy = wg_contiguous(cotangents[0]);
    if (!dy || begin_job(call, &job) < 0)
        return -1;
    job.dy = wg_tensor_data(dy);
    job.mean = wg_tensor_data(call->saved[0]);
    job.scale = wg_tensor_data(call->saved[1]);
    job.wants_weight = call->wants >> WEIGHT & 1;
    job.wants_bias = call->wants >> BIAS & 1;
    /* Enough rows in a chunk to make adding up its partial sums cheap. */
    job.rows_a_chunk = rows_of_grain(job.width) > 16 ? rows_of_grain(job.width) : 16;
    int64_t chunks = (job.rows + job.rows_a_chunk - 1) / job.rows_a_chunk;
    wg_tensor *partial = NULL;
    if (job.wants_weight || job.wants_bias) {
        partial = wg_empty(job.dtype, 2, (int64_t[]){chunks, 2 * job.width});
        if (!partial)
            return -1;
        job.partial = wg_tensor_data(partial);
    }
    if (call->wants >> X & 1) {
        gradients[X] = wg__tensor_new(&call->input_specs[X]);
        if (!gradients[X])
            return -1;
        job.dx = wg_tensor_data(gradients[X]);
    }
    wg__parallel_for(chunks, 1, gradient_chunks, &job);
    if (job.wants_weight)
        gradients[WEIGHT] = sum_chunks(&job, job.partial, chunks, gradients[WEIGHT]);
    if (job.wants_bias)
        gradients[BIAS] =
            sum_chunks(&job, job.partial + job.width * (int64_t)wg_dtype_size(job.dtype), chunks,
                       gradients[BIAS]);
    return wg_error_pending() ? -1 : 0;
}

static int layer_norm_decompose(wg_call *call) {
    const norm_options *options = call->options;
    const int64_t last = -1;
    wg_tensor *x = call->inputs[X];
    wg_tensor *d = wg_sub(x, wg_mean(x, 1, &last, true));
    wg_tensor *variance = wg_mean(wg_mul(d, d), 1, &last, true);
    wg_tensor *y = wg_mul(d, wg_rsqrt(wg_add_scalar(variance, options->eps)));
    if (call->inputs[WEIGHT])
        y = wg_mul(y, call->inputs[WEIGHT]);
    if (call->inputs[BIAS])
        y = wg_add(y, call->inputs[BIAS]);
    return wg__set_output(call, y);
}

static int layer_norm_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const norm_options options = {.eps = 1e-5};
    static const int64_t shapes[][3] = {{2, 3, 5}, {1, 2, 17}, {3, 1, 4}, {2, 2, 6}};
    if (index >= 4)
        return 0;
    const int64_t *shape = shapes[index];
    sample->input_count = 3;
    sample->inputs[X] = wg_randn(generator, WG_F64, 3, shape);
    if (index != 2)
        sample->inputs[WEIGHT] = wg_randn(generator, WG_F64, 1, shape + 2);
    if (index < 2)
        sample->inputs[BIAS] = wg_randn(generator, WG_F64, 1, shape + 2);
    sample->options = &options;
    return wg_error_pending() ? -1 : 1;
}

static int layer_norm_bench(wg_generator *generator, wg_sample *sample) {
    static const norm_options options = {.eps = 1e-5};
    const int64_t shape[] = {1 << 12, 1 << 10};
    sample->input_count = 3;
    sample->inputs[X] = wg_randn(generator, WG_F32, 2, shape);
    sample->inputs[WEIGHT] = wg_randn(generator, WG_F32, 1, shape + 1);
    sample->inputs[BIAS] = wg_randn(generator, WG_F32, 1, shape + 1);
    sample->options = &options;
    return wg_error_pending() ? -1 : 1;
}

static double norm_flops(const wg_call *call) {
    return 8 * (double)wg__spec_count(&call->input_specs[X]);
}

/* ---- rms_norm: h = x / sqrt(mean(x^2) + eps), or x / (sqrt(mean(x^2)) + eps),  y = h weight.
 * With u = g weight and r = sqrt(mean(x^2)): dx = (u - h mean(u h)) / sqrt(r^2 + eps), or
 * (u - h mean(u h) (r + eps) / r) / (r + eps); dweight = sum g h over the rows. ---- */

static int rms_norm_decompose(wg_call *call) {
    const norm_options *options = call->options;
    const int64_t last = -1;
    wg_tensor *x = call->inputs[X];
    wg_tensor *square = wg_mean(wg_mul(x, x), 1, &last, true);
    wg_tensor *y = options->outside ? wg_div(x, wg_add_scalar(wg_sqrt(square), options->eps))
                                    : wg_mul(x, wg_rsqrt(wg_add_scalar(square, options->eps)));
    if (call->inputs[WEIGHT])
        y = wg_mul(y, call->inputs[WEIGHT]);
    return wg__set_output(call, y);
}

static int rms_norm_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const norm_options options[] = {{1e-5, false}, {0.125, true}};
    if (index >= 8)
        return 0;
    int status = layer_norm_sample(index / 2, generator, sample);
    sample->inputs[BIAS] = NULL;
    sample->input_count = 2;
    sample->options = &options[index % 2];
    return status;
}

static int rms_norm_bench(wg_generator *generator, wg_sample *sample) {
    int status = layer_norm_bench(generator, sample);
    sample->input_count = 2;
    return status;
}

/* The members that both records share. */
#define NORM(NAME, INPUTS, DOC)                                                                    \
    WG__OP_OF(#NAME, 1, INPUTS, 1, DOC),                                                           \
        .options_size = sizeof(norm_options), .saves_rounded = 1,                                  \
        .saves_inputs = (1 << (INPUTS)) - 1, .differentiable = (1 << (INPUTS)) - 1,                \
        .accumulates = (1 << (INPUTS)) - 2, .infer = norm_infer, .forward = norm_forward,          \
        .vjp = norm_vjp, .decompose = NAME##_decompose, .sample = NAME##_sample,                   \
        .bench = NAME##_bench, .flops = norm_flops, .batch = wg__batch_first_alone

static const wg_op layer_norm = {
    NORM(layer_norm, 3,
         "y = (x - mean) / sqrt(var + eps) weight + bias over the last axis; weight and bias (C) "
         "are optional")};

static const wg_op rms_norm = {
    NORM(rms_norm, 2,
         "y = x / sqrt(mean(x^2) + eps) weight over the last axis, or x / (sqrt(mean(x^2)) + "
         "eps) weight; weight (C) is optional")};

wg_tensor *wg_layer_norm_op(wg_tensor *x, wg_tensor *weight, wg_tensor *bias, double eps) {
    if (!x)
        return NULL;
    if (wg_tensor_dtype(x) == WG_BF16) {
        weight = weight ? wg_cast(weight, WG_F32) : NULL;
        bias = bias ? wg_cast(bias, WG_F32) : NULL;
        return wg_cast(wg_layer_norm_op(wg_cast(x, WG_F32), weight, bias, eps), WG_BF16);
    }
    norm_options options = {.eps = eps};
    return wg_apply_one(&layer_norm, 3, (wg_tensor *[]){x, weight, bias}, &options);
}

wg_tensor *wg_rms_norm_op(wg_tensor *x, wg_tensor *weight, double eps, bool eps_outside) {
    if (!x)
        return NULL;
    if (wg_tensor_dtype(x) == WG_BF16) {
        weight = weight ? wg_cast(weight, WG_F32) : NULL;
        return wg_cast(wg_rms_norm_op(wg_cast(x, WG_F32), weight, eps, eps_outside), WG_BF16);
    }
    norm_options options = {eps, eps_outside};
    return wg_apply_one(&rms_norm, 2, (wg_tensor *[]){x, weight}, &options);
}

static const wg_op *const ops[] = {&layer_norm, &rms_norm};

const wg__op_table wg__ops_norm = {ops, sizeof ops / sizeof *ops};
