/* The rows of cross-entropies. */
#include "tensor/ops/loss/cross_entropy_rows.h"

#include <math.h>
#include <string.h>

#include "tensor/convert.h"
#include "tensor/iter.h"
#include "tensor/ops/elementwise/elementwise.h"

/* ---- Before a run ---- */

int wg__take_loss_options(const char *where, wg_dtype dtype, int64_t ignore_index,
                          const wg_cross_entropy_options *options, wg__loss_options *record,
                          wg_tensor **weight) {
    const wg_cross_entropy_options defaults = {0};
    if (!options)
        options = &defaults;
    const double smoothing = options->label_smoothing;
    if (!(smoothing >= 0 && smoothing <= 1))
        return wg_fail(WG_ERROR_ARGUMENT, where, "label_smoothing %g; wanted 0 to 1", smoothing);
    if (wg__check_reduction(options->reduction, where) < 0)
        return -1;
    *record = (wg__loss_options){ignore_index, smoothing, options->reduction};
    *weight = options->weight;
    if (*weight && (*weight)->spec.dtype != dtype && !(*weight = wg_cast(*weight, dtype)))
        return -1;
    /* A view without a node: what a loss is composed of is not to give it a gradient. */
    if (*weight)
        *weight = wg__tensor_view(*weight, &(*weight)->spec, (*weight)->strides, (*weight)->offset);
    return options->weight && !*weight ? -1 : 0;
}

wg_tensor *wg__as_classes(wg_tensor *target) {
    return target->spec.dtype == WG_I32 ? wg_cast(target, WG_I64) : target;
}

wg_tensor *wg__count_correct(wg_tensor *logits, wg_tensor *target, int64_t ignore_index) {
    wg_tensor *right = wg_eq(wg_argmax(logits, 1, false), target);
    wg_tensor *counted = wg_ne(target, wg_scalar(WG_I64, (double)ignore_index));
    return wg_sum(wg_logical_and(right, counted), 0, NULL, false);
}

int wg__infer_losses(wg_call *call, int64_t rows, int64_t classes, int weight) {
    const wg__loss_options *options = call->options;
    const wg_dtype dtype = call->input_specs[0].dtype;
    if (call->input_count > weight && call->input_specs[weight].ndim >= 0) {
        const wg_spec *spec = &call->input_specs[weight];
        if (spec->ndim != 1 || spec->shape[0] != classes)
            return wg__op_fail(call, WG_ERROR_SHAPE, "wanted a weight for each class, (V)");
        if (wg__check_same_dtype(call, 0, weight) < 0)
            return -1;
    }
    call->output_specs[0] = (wg_spec){.dtype = dtype, .ndim = 0};
    if (options->reduction == WG_REDUCTION_NONE)
        call->output_specs[0] = (wg_spec){.dtype = dtype, .ndim = 1, .shape = {rows}};
    return 0;
}

int wg__check_targets(const wg_call *call, const wg_tensor *target, int64_t classes) {
    const int64_t ignore_index = ((const wg__loss_options *)call->options)->ignore_index;
    const int64_t *t = wg_tensor_data(target);
    for (int64_t row = 0; row < wg_tensor_count(target); row++)
        if (t[row] != ignore_index && (t[row] < 0 || t[row] >= classes))
            return wg__op_fail(call, WG_ERROR_INDEX,
                               "target %lld of row %lld is outside the %lld classes",
                               (long long)t[row], (long long)row, (long long)classes);
    return 0;
}

/* ---- A row ---- */

static const char *row_of(const wg__loss_rows *job, const char *matrix, int64_t row) {
    return matrix + row * job->width * (int64_t)wg_dtype_size(job->dtype);
}

static double element(const wg__loss_rows *job, const char *vector, int64_t i) {
    return wg__element(job->dtype, vector + i * (int64_t)wg_dtype_size(job->dtype));
}

static void set_element(const wg__loss_rows *job, char *vector, int64_t i, double value) {
    wg__set_element(job->dtype, vector + i * (int64_t)wg_dtype_size(job->dtype), value);
}

static bool is_ignored(const wg__loss_rows *job, int64_t row) {
    return job->target[row] == job->options.ignore_index;
}

static double weight_at(const wg__loss_rows *job, int64_t class) {
    return job->weight ? element(job, job->weight, class) : 1;
}

/* The share of a target that smoothing gives to each class. */
static double shared(const wg__loss_rows *job) {
    return job->options.smoothing / (double)job->width;
}

/* log sum e^x of a row, which is stored, too, and the largest x. */
static double take_log_sum(const wg__loss_rows *job, int64_t row, double *max) {
    const char *x = row_of(job, job->x, row);
    *max = job->simd->row_max(job->width, x);
    double log_sum = *max + log(job->simd->row_sum_exp(job->width, x, *max));
    set_element(job, job->log_sum, row, log_sum);
    return log_sum;
}

static bool f32_has(float value, int64_t n, const float *x) {
    bool has = false;
    for (int64_t i = 0; i < n; i++)
        has |= x[i] == value;
    return has;
}

static bool f64_has(double value, int64_t n, const double *x) {
    bool has = false;
    for (int64_t i = 0; i < n; i++)
        has |= x[i] == value;
    return has;
}

/* Whether the largest element of a row, which is known, comes first at its target. */
static bool is_correct(const wg__loss_rows *job, int64_t row, double max) {
    const char *x = row_of(job, job->x, row);
    const int64_t class = job->target[row];
    if (element(job, x, class) != max)
        return false;
    return job->dtype == WG_F32 ? !f32_has((float)max, class, (const float *)x)
                                : !f64_has(max, class, (const double *)x);
}

/* By what the gradient of a row's loss is multiplied. */
static double scale_of(const wg__loss_rows *job, int64_t row) {
    const bool each = job->options.reduction == WG_REDUCTION_NONE;
    return element(job, job->cotangent, each ? row : 0) / job->denominator;
}

/* dx = scale (mass softmax(x)), from which the target is yet to be taken, but what it shared. */
static char *begin_gradient(const wg__loss_rows *job, int64_t row, double scale, double mass) {
    char *gradient = job->gradient + (row_of(job, job->x, row) - job->x);
    job->simd->row_exp(job->width, row_of(job, job->x, row), element(job, job->log_sum, row),
                       scale * mass, gradient);
    if (job->options.smoothing != 0)
        job->simd->row_subtract(job->width, scale * shared(job), job->weight, NULL, gradient);
    return gradient;
}

int64_t wg__loss_rows_at_once(int64_t width) {
    return 1 + WG__GRAIN / 4 / (width + 1);
}

wg__loss_rows wg__loss_rows_of(const wg__loss_options *options, wg_dtype dtype, int64_t width,
                               const wg_tensor *target, const wg_tensor *weight) {
    wg__loss_rows job = {.simd = wg__simd_for(dtype),
                         .dtype = dtype,
                         .width = width,
                         .options = *options,
                         .denominator = 1};
    if (target->spec.dtype == WG_I64)
        job.target = wg_tensor_data(target);
    else
        job.soft = wg_tensor_data(target);
    if (weight)
        job.weight = wg_tensor_data(weight);
    for (int64_t class = 0; class < job.width && weight && job.options.smoothing != 0; class ++)
        job.weight_sum += weight_at(&job, class);
    if (!weight)
        job.weight_sum = (double)job.width;
    return job;
}

/* ---- All rows ---- */

double wg__loss_denominator(const wg__loss_rows *job, int64_t rows) {
    if (job->options.reduction != WG_REDUCTION_MEAN)
        return 1;
    if (job->soft)
        return (double)rows;
    double sum = 0;
    for (int64_t row = 0; row < rows; row++)
        if (!is_ignored(job, row))
            sum += weight_at(job, job->target[row]);
    return sum;
}

void wg__reduce_losses(const wg__loss_rows *job, int64_t rows, char *out) {
    double sum = 0;
    for (int64_t row = 0; row < rows; row++) {
        sum += job->loss[row];
        if (job->options.reduction == WG_REDUCTION_NONE)
            set_element(job, out, row, job->loss[row]);
    }
    if (job->options.reduction != WG_REDUCTION_NONE)
        set_element(job, out, 0, sum / wg__loss_denominator(job, rows));
}

/* ---- Bodies ---- */

void wg__class_losses(int64_t begin, int64_t end, void *context) {
    const wg__loss_rows *job = context;
    const double smoothing = job->options.smoothing;
    for (int64_t row = begin; row < end; row++) {
        job->loss[row] = 0;
        if (job->correct)
            job->correct[row] = false;
        set_element(job, job->log_sum, row, 0);
        if (is_ignored(job, row))
            continue;
        const char *x = row_of(job, job->x, row);
        const int64_t class = job->target[row];
        double max, log_sum = take_log_sum(job, row, &max), total;
        if (job->correct)
            job->correct[row] = is_correct(job, row, max);
        job->loss[row] =
            (1 - smoothing) * weight_at(job, class) * (log_sum - element(job, x, class));
        if (smoothing != 0)
            job->loss[row] += shared(job) * job->simd->row_excess(job->width, x, log_sum,
                                                                  job->weight, NULL, &total);
    }
}

void wg__class_gradients(int64_t begin, int64_t end, void *context) {
    const wg__loss_rows *job = context;
    for (int64_t row = begin; row < end; row++) {
        if (is_ignored(job, row)) {
            const size_t bytes = (size_t)job->width * wg_dtype_size(job->dtype);
            memset(job->gradient + (size_t)row * bytes, 0, bytes);
            continue;
        }
        const int64_t class = job->target[row];
        const double kept = (1 - job->options.smoothing) * weight_at(job, class);
        const double scale = scale_of(job, row);
        char *gradient = begin_gradient(job, row, scale, kept + shared(job) * job->weight_sum);
        set_element(job, gradient, class, element(job, gradient, class) - scale * kept);
    }
}

void wg__soft_losses(int64_t begin, int64_t end, void *context) {
    const wg__loss_rows *job = context;
    const double smoothing = job->options.smoothing;
    for (int64_t row = begin; row < end; row++) {
        const char *x = row_of(job, job->x, row);
        double max, log_sum = take_log_sum(job, row, &max), total;
        double excess = job->simd->row_excess(job->width, x, log_sum, row_of(job, job->soft, row),
                                              job->weight, &total);
        job->loss[row] = (1 - smoothing) * excess;
        if (smoothing != 0) {
            double all;
            excess = job->simd->row_excess(job->width, x, log_sum, job->weight, NULL, &all);
            job->loss[row] += shared(job) * excess;
            total = (1 - smoothing) * total + shared(job) * all;
        }
        set_element(job, job->target_sum, row, total);
    }
}

void wg__soft_gradients(int64_t begin, int64_t end, void *context) {
    const wg__loss_rows *job = context;
    for (int64_t row = begin; row < end; row++) {
        const double scale = scale_of(job, row);
        char *gradient = begin_gradient(job, row, scale, element(job, job->target_sum, row));
        job->simd->row_subtract(job->width, scale * (1 - job->options.smoothing),
                                row_of(job, job->soft, row), job->weight, gradient);
    }
}
