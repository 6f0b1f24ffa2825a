/* Cross-entropy over rows of logits, fused: one number for each row is all that backward needs
 * beside the logits themselves, over which it may write. */
#include <math.h>

#include "tensor/convert.h"
#include "tensor/iter.h"
#include "tensor/ops.h"
#include "tensor/ops/families.h"
#include "tensor/simd/simd.h"

typedef struct cross_entropy_options {
    int64_t ignore_index;
} cross_entropy_options;

/* ---- cross_entropy: loss = mean over the targets t of (log sum e^x_j - x_t).
 * dx_j = g / count (e^(x_j - log sum) - [j = t]). ---- */

typedef struct cross_entropy_job {
    const wg__simd *simd;
    wg_dtype dtype;
    int64_t width, ignore_index;
    const char *x;         /* (N, V) */
    const int64_t *target; /* (N) */
    double *loss;          /* forward: (N) */
    char *log_sum;         /* (N), of the dtype of x */
    double scale;          /* backward: g / count */
    char *gradient;        /* backward: (N, V), may be x */
} cross_entropy_job;

static const char *row_of(const cross_entropy_job *job, int64_t row) {
    return job->x + row * job->width * (int64_t)wg_dtype_size(job->dtype);
}

static void loss_rows(int64_t begin, int64_t end, void *context) {
    const cross_entropy_job *job = context;
    int64_t size = (int64_t)wg_dtype_size(job->dtype);
    for (int64_t row = begin; row < end; row++) {
        const char *x = row_of(job, row);
        job->loss[row] = 0;
        wg__set_element(job->dtype, job->log_sum + row * size, 0);
        if (job->target[row] == job->ignore_index)
            continue;
        double max = job->simd->row_max(job->width, x);
        double log_sum = max + log(job->simd->row_sum_exp(job->width, x, max));
        wg__set_element(job->dtype, job->log_sum + row * size, log_sum);
        job->loss[row] = log_sum - wg__element(job->dtype, x + job->target[row] * size);
    }
}

static void gradient_rows(int64_t begin, int64_t end, void *context) {
    const cross_entropy_job *job = context;
    int64_t size = (int64_t)wg_dtype_size(job->dtype);
    for (int64_t row = begin; row < end; row++) {
        char *gradient = job->gradient + row * job->width * size;
        if (job->target[row] == job->ignore_index) {
            memset(gradient, 0, (size_t)(job->width * size));
            continue;
        }
        double log_sum = wg__element(job->dtype, job->log_sum + row * size);
        job->simd->row_exp(job->width, row_of(job, row), log_sum, job->scale, gradient);
        char *at = gradient + job->target[row] * size;
        wg__set_element(job->dtype, at, wg__element(job->dtype, at) - job->scale);
    }
}

static int64_t rows_at_once(int64_t width) {
    return 1 + WG__GRAIN / 4 / (width + 1);
}

static int64_t count_targets(const wg_tensor *target, int64_t ignore_index) {
    const int64_t *t = wg_tensor_data(target);
    int64_t rows = wg_tensor_count(target), count = 0;
    for (int64_t row = 0; row < rows; row++)
        count += t[row] != ignore_index;
    return count;
}

static int cross_entropy_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[0], *target = &call->input_specs[1];
    if (x->dtype != WG_F32 && x->dtype != WG_F64)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted logits of f32 or f64; cast them");
    if (target->dtype != WG_I64)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted targets of i64 or i32");
    if (x->ndim != 2 || target->ndim != 1 || x->shape[0] != target->shape[0])
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted logits (N, V) and targets (N)");
    call->output_specs[0] = (wg_spec){.dtype = x->dtype, .ndim = 0};
    return 0;
}

/* Indices are checked before any thread starts: the rows run where no error can be recorded. */
static int check_targets(const wg_call *call, const wg_tensor *target, int64_t width,
                         int64_t ignore_index) {
    const int64_t *t = wg_tensor_data(target);
    for (int64_t row = 0; row < wg_tensor_count(target); row++)
        if (t[row] != ignore_index && (t[row] < 0 || t[row] >= width))
            return wg__op_fail(call, WG_ERROR_INDEX,
                               "target %lld of row %lld is outside the %lld classes",
                               (long long)t[row], (long long)row, (long long)width);
    return 0;
}

static int cross_entropy_forward(wg_call *call) {
    const cross_entropy_options *options = call->options;
    wg_tensor *x = wg_contiguous(call->inputs[0]), *target = wg_contiguous(call->inputs[1]);
    if (!x || !target)
        return -1;
    int64_t rows = x->spec.shape[0], width = x->spec.shape[1];
    if (check_targets(call, target, width, options->ignore_index) < 0)
        return -1;
    wg_tensor *losses = wg_empty(WG_F64, 1, &rows);
    call->saved[0] = wg_empty(x->spec.dtype, 1, &rows);
    if (!losses || !call->saved[0])
        return -1;
    cross_entropy_job job = {.simd = wg__simd_for(x->spec.dtype),
                             .dtype = x->spec.dtype,
                             .width = width,
                             .ignore_index = options->ignore_index,
                             .x = wg_tensor_data(x),
                             .target = wg_tensor_data(target),
                             .loss = wg_tensor_data(losses),
                             .log_sum = wg_tensor_data(call->saved[0])};
    wg__parallel_for(rows, rows_at_once(width), loss_rows, &job);
    double sum = 0;
    for (int64_t row = 0; row < rows; row++)
        sum += job.loss[row];
    wg__set_element(x->spec.dtype, wg_tensor_data(call->outputs[0]),
                    sum / (double)count_targets(target, options->ignore_index));
    return 0;
}

/* Where the gradient goes: over the logits if nobody else can see them. */
static wg_tensor *gradient_memory(const wg_call *call, wg_tensor *x) {
    bool ours = call->last_use && x == call->inputs[0] && wg__tensor_is_sole(x);
    return ours ? wg__tensor_view(x, &x->spec, x->strides, x->offset) : wg_empty_like(x);
}

static int cross_entropy_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const cross_entropy_options *options = call->options;
    wg_tensor *logits = call->inputs[0];
    wg_tensor *x = wg_tensor_is_contiguous(logits) ? logits : wg_contiguous(logits);
    wg_tensor *target = wg_contiguous(call->inputs[1]);
    wg_tensor *gradient = x && target ? gradient_memory(call, x) : NULL;
    if (!gradient)
        return -1;
    double count = (double)count_targets(target, options->ignore_index);
    cross_entropy_job job = {.simd = wg__simd_for(x->spec.dtype),
                             .dtype = x->spec.dtype,
                             .width = x->spec.shape[1],
                             .ignore_index = options->ignore_index,
                             .x = wg_tensor_data(x),
                             .target = wg_tensor_data(target),
                             .log_sum = wg_tensor_data(call->saved[0]),
                             .scale = wg_item(cotangents[0]) / count,
                             .gradient = wg_tensor_data(gradient)};
    wg__parallel_for(x->spec.shape[0], rows_at_once(job.width), gradient_rows, &job);
    wg_tensor_touch(gradient);
    gradients[0] = gradient;
    return 0;
}

static int cross_entropy_decompose(wg_call *call) {
    const cross_entropy_options *options = call->options;
    wg_tensor *x = call->inputs[0], *target = call->inputs[1];
    wg_dtype dtype = wg_tensor_dtype(x);
    wg_tensor *ignored = wg_eq(target, wg_scalar(WG_I64, (double)options->ignore_index));
    wg_tensor *weight = wg_cast(wg_logical_not(ignored), dtype);
    wg_tensor *index = wg_unsqueeze(wg_masked_fill(target, ignored, 0), -1);
    wg_tensor *likelihood = wg_squeeze(wg_gather(wg_log_softmax(x, -1), -1, index), -1);
    wg_tensor *sum = wg_sum(wg_mul(likelihood, weight), 0, NULL, false);
    call->outputs[0] = wg_neg(wg_div(sum, wg_sum(weight, 0, NULL, false)));
    return call->outputs[0] ? 0 : -1;
}

static int cross_entropy_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const cross_entropy_options options = {-100};
    static const int64_t targets[][4] = {{2, 0, 6, 3}, {-100, 5, -100, 1}, {0, 0, 0, 0}};
    static const int64_t shapes[][2] = {{4, 7}, {4, 19}, {4, 1}};
    if (index >= 3)
        return 0;
    sample->input_count = 2;
    sample->inputs[0] = wg_randn(generator, WG_F64, 2, shapes[index]);
    sample->inputs[1] = wg_from_array(WG_I64, 1, (int64_t[]){4}, targets[index]);
    sample->options = &options;
    return sample->inputs[0] && sample->inputs[1] ? 1 : -1;
}

static double cross_entropy_flops(const wg_call *call) {
    return 4 * (double)wg__spec_count(&call->input_specs[0]);
}

static const wg_op cross_entropy = {
    .name = "cross_entropy",
    .doc = "mean over the targets of log sum e^x - x[target]: (N, V), (N) -> (); targets equal to "
           "ignore_index count for nothing",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .options_size = sizeof(cross_entropy_options),
    .saves_inputs = 3,
    .differentiable = 1,
    .infer = cross_entropy_infer,
    .forward = cross_entropy_forward,
    .vjp = cross_entropy_vjp,
    .decompose = cross_entropy_decompose,
    .sample = cross_entropy_sample,
    .flops = cross_entropy_flops,
};

wg_tensor *wg_cross_entropy(wg_tensor *logits, wg_tensor *target, int64_t ignore_index) {
    if (!logits || !target)
        return NULL;
    if (wg_tensor_dtype(logits) == WG_BF16)
        logits = wg_cast(logits, WG_F32);
    if (wg_tensor_dtype(target) == WG_I32)
        target = wg_cast(target, WG_I64);
    cross_entropy_options options = {ignore_index};
    return wg_apply_one(&cross_entropy, 2, (wg_tensor *[]){logits, target}, &options);
}

static const wg_op *const ops[] = {&cross_entropy};
const wg__op_family wg__family_loss = {ops, sizeof ops / sizeof *ops};
