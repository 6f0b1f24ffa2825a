/* Cross-entropy over rows of logits, fused, and nll_loss, of log probabilities. Backward of the
 * fused ops needs the logits and a number for each row; the gradient may overwrite the logits. */
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/index/indexing.h"
#include "tensor/ops/loss/loss.h"
#include "tensor/ops/support.h"

#include <math.h>
#include <string.h>

int wg__loss_options_make(const char *where, wg_dtype dtype, int64_t ignore_index,
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
    *record = (wg__loss_options){ignore_index, smoothing, options->reduction, false};
    *weight = options->weight;
    if (*weight && (*weight)->spec.dtype != dtype && !(*weight = wg_cast(*weight, dtype)))
        return -1;
    /* A view outside of the graph, so that decompositions give the weight no gradient. */
    wg_tensor *given = *weight;
    if (given)
        *weight = wg__tensor_view(given, &given->spec, given->strides, given->offset);
    if (*weight && given->tangents && wg__forward->detach_samples(*weight, given->tangents) < 0)
        *weight = NULL;
    return options->weight && !*weight ? -1 : 0;
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
    target = wg_contiguous(wg__all_values((wg_tensor *)target));
    const int64_t *t = target ? wg_tensor_data(target) : NULL;
    if (!t && wg_error_pending())
        return -1;
    for (int64_t row = 0; row < wg_tensor_count(target); row++)
        if (t[row] != ignore_index && (t[row] < 0 || t[row] >= classes))
            return wg__op_fail(call, WG_ERROR_INDEX,
                               "target %lld of row %lld is outside the %lld classes",
                               (long long)t[row], (long long)row, (long long)classes);
    return 0;
}

static const char *row_of(const wg__loss_rows *job, const char *matrix, int64_t row) {
    return matrix + row * job->width * (int64_t)wg_dtype_size(job->dtype);
}

static double element(const wg__loss_rows *job, const char *vector, int64_t i) {
    return wg__element(job->dtype, vector + i * (int64_t)wg_dtype_size(job->dtype));
}

static void set_element(const wg__loss_rows *job, char *vector, int64_t i, double value) {
    wg__set_element(job->dtype, vector + i * (int64_t)wg_dtype_size(job->dtype), value);
}

static double weight_at(const wg__loss_rows *job, int64_t class) {
    return job->weight ? element(job, job->weight, class) : 1;
}

/* Computes and stores log sum e^x of a row; `max` receives the largest x. */
static double log_sum_of_row(const wg__loss_rows *job, int64_t row, double *max) {
    const char *x = row_of(job, job->x, row);
    *max = job->simd->rows.max(job->width, x);
    double log_sum = *max + log(job->simd->rows.sum_exp(job->width, x, *max));
    set_element(job, job->log_sum, row, log_sum);
    return log_sum;
}

/* Begins dx: scale mass softmax(x), less the smoothing e / V of all classes. The caller subtracts
 * the target scaled by 1 - e. */
static char *begin_gradient(const wg__loss_rows *job, int64_t row, double scale, double mass) {
    const double share = job->options.smoothing / (double)job->width;
    char *gradient = job->gradient + (row_of(job, job->x, row) - job->x);
    job->simd->rows.exp(job->width, row_of(job, job->x, row), element(job, job->log_sum, row),
                        scale * mass, gradient);
    if (job->options.smoothing != 0)
        job->simd->rows.subtract(job->width, scale * share, job->weight, NULL, gradient);
    return gradient;
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

double wg__loss_denominator(const wg__loss_rows *job, int64_t rows) {
    if (job->options.reduction != WG_REDUCTION_MEAN)
        return 1;
    if (job->soft)
        return (double)rows;
    double sum = 0;
    for (int64_t row = 0; row < rows; row++)
        if (job->target[row] != job->options.ignore_index)
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

void wg__class_losses(int64_t begin, int64_t end, void *context) {
    const wg__loss_rows *job = context;
    const double smoothing = job->options.smoothing, share = smoothing / (double)job->width;
    for (int64_t row = begin; row < end; row++) {
        job->loss[row] = 0;
        if (job->correct)
            job->correct[row] = false;
        set_element(job, job->log_sum, row, 0);
        if (job->target[row] == job->options.ignore_index)
            continue;
        const char *x = row_of(job, job->x, row);
        const int64_t class = job->target[row];
        double max, log_sum = log_sum_of_row(job, row, &max), total;
        if (job->correct) /* the target is the first of the largest logits */
            job->correct[row] = element(job, x, class) == max &&
                                (class == 0 || job->simd->rows.max(class, x) != max);
        job->loss[row] =
            (1 - smoothing) * weight_at(job, class) * (log_sum - element(job, x, class));
        if (smoothing != 0)
            job->loss[row] +=
                share * job->simd->rows.excess(job->width, x, log_sum, job->weight, NULL, &total);
    }
}

void wg__class_gradients(int64_t begin, int64_t end, void *context) {
    const wg__loss_rows *job = context;
    const double share = job->options.smoothing / (double)job->width;
    const bool each = job->options.reduction == WG_REDUCTION_NONE;
    for (int64_t row = begin; row < end; row++) {
        if (job->target[row] == job->options.ignore_index) {
            const size_t bytes = (size_t)job->width * wg_dtype_size(job->dtype);
            memset(job->gradient + (size_t)row * bytes, 0, bytes);
            continue;
        }
        const int64_t class = job->target[row];
        const double kept = (1 - job->options.smoothing) * weight_at(job, class);
        const double scale = element(job, job->cotangent, each ? row : 0) / job->denominator;
        char *gradient = begin_gradient(job, row, scale, kept + share * job->weight_sum);
        set_element(job, gradient, class, element(job, gradient, class) - scale * kept);
    }
}

static void soft_losses(int64_t begin, int64_t end, void *context) {
    const wg__loss_rows *job = context;
    const double smoothing = job->options.smoothing, share = smoothing / (double)job->width;
    for (int64_t row = begin; row < end; row++) {
        const char *x = row_of(job, job->x, row);
        double max, log_sum = log_sum_of_row(job, row, &max), total;
        double excess = job->simd->rows.excess(job->width, x, log_sum, row_of(job, job->soft, row),
                                               job->weight, &total);
        job->loss[row] = (1 - smoothing) * excess;
        if (smoothing != 0) {
            double all;
            excess = job->simd->rows.excess(job->width, x, log_sum, job->weight, NULL, &all);
            job->loss[row] += share * excess;
            total = (1 - smoothing) * total + share * all;
        }
        set_element(job, job->target_sum, row, total);
    }
}

static void soft_gradients(int64_t begin, int64_t end, void *context) {
    const wg__loss_rows *job = context;
    const bool each = job->options.reduction == WG_REDUCTION_NONE;
    for (int64_t row = begin; row < end; row++) {
        const double scale = element(job, job->cotangent, each ? row : 0) / job->denominator;
        char *gradient = begin_gradient(job, row, scale, element(job, job->target_sum, row));
        job->simd->rows.subtract(job->width, scale * (1 - job->options.smoothing),
                                 row_of(job, job->soft, row), job->weight, gradient);
    }
}

enum { LOGITS, TARGET, WEIGHT };

/* Targets of rank 1 are classes, i64. */
static int infer_loss(wg_call *call, int target_ndim) {
    const wg_spec *x = &call->input_specs[LOGITS], *target = &call->input_specs[TARGET];
    if (target_ndim == 1 && target->dtype != WG_I64)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted targets of i64 or i32");
    if (x->ndim != 2 || target->ndim != target_ndim || x->shape[0] != target->shape[0] ||
        (target_ndim == 2 && x->shape[1] != target->shape[1]))
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted logits (N, V) and targets %s",
                           target_ndim == 1 ? "(N)" : "(N, V)");
    return wg__infer_losses(call, x->shape[0], x->shape[1], WEIGHT);
}

/* A job with the members that both forward and backward need. */
static wg__loss_rows make_job(const wg_call *call, const wg_tensor *x, const wg_tensor *target,
                              const wg_tensor *weight) {
    wg__loss_rows job =
        wg__loss_rows_of(call->options, x->spec.dtype, x->spec.shape[1], target, weight);
    job.x = wg_tensor_data(x);
    job.log_sum = wg_tensor_data(call->saved[0]);
    if (call->saved[1])
        job.target_sum = wg_tensor_data(call->saved[1]);
    return job;
}

static int loss_forward(wg_call *call) {
    wg_tensor *weight = wg__input_at(call, WEIGHT);
    wg_tensor *x = wg_contiguous(call->inputs[LOGITS]);
    wg_tensor *target = wg_contiguous(call->inputs[TARGET]);
    if (!x || !target || (weight && !(weight = wg_contiguous(weight))))
        return -1;
    const bool soft = target->spec.dtype != WG_I64;
    if (!soft && wg__check_targets(call, target, x->spec.shape[1]) < 0)
        return -1;
    const int64_t rows = x->spec.shape[0];
    wg_tensor *losses = wg_empty(WG_F64, 1, &rows);
    call->saved[0] = wg_empty(x->spec.dtype, 1, &rows);
    if (soft)
        call->saved[1] = wg_empty(x->spec.dtype, 1, &rows);
    if (wg_error_pending())
        return -1;
    wg__loss_rows job = make_job(call, x, target, weight);
    job.loss = wg_tensor_data(losses);
    wg__parallel_for(rows, 1 + WG__GRAIN / 4 / (job.width + 1),
                     soft ? soft_losses : wg__class_losses, &job);
    wg__reduce_losses(&job, rows, wg_tensor_data(call->outputs[0]));
    return 0;
}

/* The gradient of soft targets is rarely needed, and made of public ops. It comes first, since the
 * gradient of the logits may overwrite the logits. */
static int loss_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg__loss_options *options = call->options;
    wg_tensor *logits = call->inputs[LOGITS], *weight = wg__input_at(call, WEIGHT);
    const int64_t rows = call->input_specs[LOGITS].shape[0];
    if (wg__wants(call, TARGET)) {
        const double count = options->reduction == WG_REDUCTION_MEAN ? (double)rows : 1;
        const bool each = options->reduction == WG_REDUCTION_NONE;
        wg_tensor *y = wg_log_softmax(logits, -1);
        wg_tensor *scale = wg_mul_scalar(each ? wg_unsqueeze(cotangents[0], -1) : cotangents[0],
                                         (options->smoothing - 1) / count);
        gradients[TARGET] = wg_mul(weight ? wg_mul(y, weight) : y, scale);
    }
    if (!wg__wants(call, LOGITS))
        return wg__vjp_status();
    wg_tensor *x = wg_tensor_is_contiguous(logits) ? logits : wg_contiguous(logits);
    wg_tensor *target = wg_contiguous(call->inputs[TARGET]), *g = wg_contiguous(cotangents[0]);
    if (!x || !target || !g || (weight && !(weight = wg_contiguous(weight))))
        return -1;
    gradients[LOGITS] = wg__gradient_like(call, x);
    if (!gradients[LOGITS])
        return -1;
    wg__loss_rows job = make_job(call, x, target, weight);
    job.denominator = wg__loss_denominator(&job, rows);
    job.cotangent = wg_tensor_data(g);
    job.gradient = wg_tensor_data(gradients[LOGITS]);
    wg__parallel_for(rows, 1 + WG__GRAIN / 4 / (job.width + 1),
                     job.soft ? soft_gradients : wg__class_gradients, &job);
    wg_tensor_touch(gradients[LOGITS]);
    return wg__vjp_status();
}

static wg_tensor *reduce_rows(const wg_call *call, wg_tensor *rows, wg_tensor *denominator) {
    const wg__loss_options *options = call->options;
    if (options->reduction == WG_REDUCTION_NONE)
        return rows;
    wg_tensor *sum = wg_sum(rows, 0, NULL, false);
    return options->reduction == WG_REDUCTION_MEAN ? wg_div(sum, denominator) : sum;
}

/* The loss from log likelihoods, for class targets. */
static wg_tensor *likelihood_loss(const wg_call *call, wg_tensor *likelihood) {
    const wg__loss_options *options = call->options;
    wg_tensor *target = call->inputs[TARGET], *weight = wg__input_at(call, WEIGHT);
    const wg_dtype dtype = call->input_specs[LOGITS].dtype;
    wg_tensor *ignored = wg_eq(target, wg_scalar(WG_I64, (double)options->ignore_index));
    wg_tensor *class = wg_masked_fill(target, ignored, 0);
    wg_tensor *each = weight ? wg_masked_fill(wg_index_select(weight, 0, class), ignored, 0)
                             : wg_cast(wg_logical_not(ignored), dtype);
    wg_tensor *at = wg_squeeze(wg_gather(likelihood, -1, wg_unsqueeze(class, -1)), -1);
    wg_tensor *rows = wg_neg(wg_mul(wg_masked_fill(at, ignored, 0), each));
    if (options->smoothing != 0) {
        const double share = options->smoothing / (double)call->input_specs[LOGITS].shape[1];
        wg_tensor *all = weight ? wg_mul(likelihood, weight) : likelihood;
        all = wg_masked_fill(wg_neg(wg_sum(all, 1, (int64_t[]){-1}, false)), ignored, 0);
        rows = wg_add(wg_mul_scalar(rows, 1 - options->smoothing), wg_mul_scalar(all, share));
    }
    return reduce_rows(call, rows, wg_sum(each, 0, NULL, false));
}

/* ---- cross_entropy: of a row with target t, (1 - e) w_t (log sum e^x - x_t) + e/V sum_c w_c (log
 * sum e^x - x_c).
 * dx = g (((1 - e) w_t + e/V sum w) softmax(x) - (1 - e) w_t [c = t] - e/V w). The mean is divided
 * by the sum of w_t. ---- */

static int cross_entropy_infer(wg_call *call) {
    return wg__check_kernel_dtype(call) < 0 ? -1 : infer_loss(call, 1);
}

static int cross_entropy_decompose(wg_call *call) {
    return wg__set_output(call, likelihood_loss(call, wg_log_softmax(call->inputs[LOGITS], -1)));
}

wg_tensor *wg__sample_targets(wg_generator *generator, int ndim, const int64_t *shape) {
    static const int64_t targets[][5] = {
        {0, 0, -100}, {2, 0, 6, 3}, {-100, 5, -100, 1, 2}}; /* of 3, 4 and 5 rows */
    return shape[0] <= 5 ? wg_from_array(WG_I64, ndim, shape, targets[shape[0] - 3])
                         : wg_randint(generator, 0, 1 << 13, ndim, shape);
}

WG__EXAMPLES(cross_entropy, wg__loss_options,
             (wg__sample_normal, wg__sample_targets, wg__sample_positive),
             {{-100, 0, WG_REDUCTION_MEAN, false}, "4 7, 4"},
             {{-100, 0.2, WG_REDUCTION_MEAN, false}, "5 19, 5, 19"},
             {{-100, 0, WG_REDUCTION_SUM, false}, "3 1, 3"},
             {{-100, 0.1, WG_REDUCTION_MEAN, false}, "4 7, 4"},
             {{-100, 0.5, WG_REDUCTION_NONE, false}, "5 19, 5, 19"},
             {{-100, 0, WG_REDUCTION_NONE, false}, "3 1, 3"},
             {{-100, 1, WG_REDUCTION_SUM, false}, "4 7, 4"},
             {{-100, 0, WG_REDUCTION_MEAN, false}, "5 19, 5, 19"})
WG__LARGE_BY(cross_entropy, wg__loss_options, (wg__sample_normal_f32, wg__sample_targets),
             "512 8192, 512", -100, 0, WG_REDUCTION_MEAN, false)

static double row_flops(const wg_call *call) {
    return 4 * (double)wg__spec_count(&call->input_specs[LOGITS]);
}

#define LOSS(NAME, DOC)                                                                            \
    WG__OP_OF(#NAME, 2, 3, 1, DOC),                                                                \
        .options_size = sizeof(wg__loss_options), .saves_inputs = 7, .infer = NAME##_infer,        \
        .forward = loss_forward, .vjp = loss_vjp, .decompose = NAME##_decompose,                   \
        .sample = NAME##_sample, .bench = NAME##_bench, .flops = row_flops

static const wg_op cross_entropy = {
    LOSS(cross_entropy,
         "log sum e^x - x[target] of each row, reduced: (N, V), (N) -> () or (N); targets equal "
         "to ignore_index count for nothing. Options smooth the targets and weigh the classes, "
         "(V). Fused."),
    .differentiable = 1};

/* ---- soft_cross_entropy: of a row with targets t, sum_c w_c t'_c (log sum e^x - x_c), where t' =
 * (1 - e) t + e/V.
 * dx = g (softmax(x) sum w t' - w t'), dt = g (1 - e) w (log sum e^x - x). ---- */

static int soft_cross_entropy_infer(wg_call *call) {
    const wg__loss_options *options = call->options;
    if (wg__check_kernel_dtype(call) < 0 || wg__check_same_dtype(call, LOGITS, TARGET) < 0)
        return -1;
    if (options->ignore_index >= 0)
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "ignore_index %lld says nothing about floating targets; give -100",
                           (long long)options->ignore_index);
    return infer_loss(call, 2);
}

static int soft_cross_entropy_decompose(wg_call *call) {
    const wg__loss_options *options = call->options;
    const wg_spec *spec = &call->input_specs[LOGITS];
    wg_tensor *x = wg_log_softmax(call->inputs[LOGITS], -1), *target = call->inputs[TARGET];
    const double share = options->smoothing / (double)spec->shape[1];
    wg_tensor *smooth = wg_affine(target, 1 - options->smoothing, share);
    wg_tensor *weight = wg__input_at(call, WEIGHT), *rows = wg_mul(x, smooth);
    rows = wg_neg(wg_sum(weight ? wg_mul(rows, weight) : rows, 1, (int64_t[]){-1}, false));
    wg_tensor *count = wg_scalar(spec->dtype, (double)spec->shape[0]);
    return wg__set_output(call, reduce_rows(call, rows, count));
}

WG__EXAMPLES(soft_cross_entropy, wg__loss_options, (wg__sample_normal, wg__sample_positive),
             {{-100, 0, WG_REDUCTION_MEAN, false}, "4 7, 4 7"},
             {{-100, 0.2, WG_REDUCTION_MEAN, false}, "4 19, 4 19, 19"},
             {{-100, 0, WG_REDUCTION_SUM, false}, "4 1, 4 1"},
             {{-100, 0.1, WG_REDUCTION_MEAN, false}, "4 7, 4 7"},
             {{-100, 0.5, WG_REDUCTION_NONE, false}, "4 19, 4 19, 19"},
             {{-100, 0, WG_REDUCTION_NONE, false}, "4 1, 4 1"},
             {{-100, 1, WG_REDUCTION_SUM, false}, "4 7, 4 7"},
             {{-100, 0, WG_REDUCTION_MEAN, false}, "4 19, 4 19, 19"})
WG__LARGE_BY(soft_cross_entropy, wg__loss_options, (wg__sample_normal_f32, wg__sample_f32),
             "512 8192, 512 8192", -100, 0, WG_REDUCTION_MEAN, false)

static const wg_op soft_cross_entropy = {
    LOSS(soft_cross_entropy,
         "sum_c t_c (log sum e^x - x_c) of each row, reduced: (N, V), targets (N, V) -> () or "
         "(N). Options smooth the targets and weigh the classes, (V). Fused."),
    .differentiable = 3};

/* ---- nll_loss: -w_t x_t of a row with target t; the mean is divided by the sum of w_t. ---- */

static int nll_loss_infer(wg_call *call) {
    if (!wg_dtype_is_float(call->input_specs[LOGITS].dtype))
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted log probabilities of a floating dtype");
    return infer_loss(call, 1);
}

static int nll_loss_decompose(wg_call *call) {
    wg_tensor *target = wg_contiguous(call->inputs[TARGET]);
    if (!target || wg__check_targets(call, target, call->input_specs[LOGITS].shape[1]) < 0)
        return -1;
    return wg__set_output(call, likelihood_loss(call, call->inputs[LOGITS]));
}

/* Without smoothing. */
WG__EXAMPLES(nll_loss, wg__loss_options,
             (wg__sample_normal, wg__sample_targets, wg__sample_positive),
             {{-100, 0, WG_REDUCTION_MEAN, false}, "4 7, 4"},
             {{-100, 0, WG_REDUCTION_SUM, false}, "3 1, 3"},
             {{-100, 0, WG_REDUCTION_NONE, false}, "3 1, 3"},
             {{-100, 0, WG_REDUCTION_MEAN, false}, "5 19, 5, 19"})

static const wg_op nll_loss = {
    WG__OP_OF("nll_loss", 2, 3, 1,
              "-x[target] of each row, reduced: (N, V), (N) -> () or (N); targets equal to "
              "ignore_index count for nothing. An option weighs the classes, (V)."),
    .options_size = sizeof(wg__loss_options),
    .differentiable = 1,
    .infer = nll_loss_infer,
    WG__COMPOSED(nll_loss),
};

static wg_tensor *apply(const wg_op *op, wg_tensor *x, wg_tensor *target, int64_t ignore_index,
                        const wg_cross_entropy_options *options) {
    wg__loss_options record;
    wg_tensor *weight = NULL;
    if (wg__loss_options_make(op->name, x->spec.dtype, ignore_index, options, &record, &weight) < 0)
        return NULL;
    return wg_apply_one(op, weight ? 3 : 2, (wg_tensor *[]){x, target, weight}, &record);
}

wg_tensor *wg_cross_entropy(wg_tensor *logits, wg_tensor *target, int64_t ignore_index,
                            const wg_cross_entropy_options *options) {
    if (!logits || !target)
        return NULL;
    wg_tensor *loss = NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    logits = wg__widen(logits);
    const bool soft = wg_dtype_is_float(target->spec.dtype);
    target = soft ? wg__widen(target) : wg__index_as_i64(target);
    if (logits && target && (!soft || wg__promote(&logits, &target)))
        loss = apply(soft ? &soft_cross_entropy : &cross_entropy, logits, target, ignore_index,
                     options);
    if (loss && !soft && options && options->correct) {
        wg_tensor *count = wg__count_correct(logits, target, ignore_index);
        *options->correct = count ? (int64_t)wg_item(count) : 0;
        loss = count ? loss : NULL;
    }
    return wg_scope_end(&scope, loss);
}

wg_tensor *wg_nll_loss(wg_tensor *log_probabilities, wg_tensor *target, int64_t ignore_index,
                       const wg_cross_entropy_options *options) {
    if (!log_probabilities || !target)
        return NULL;
    if (options && options->label_smoothing != 0)
        return wg__fail_null(
            WG_ERROR_ARGUMENT, nll_loss.name,
            "label_smoothing %g; log probabilities are not smoothed, cross_entropy does it",
            options->label_smoothing);
    target = wg__index_as_i64(target);
    return target ? apply(&nll_loss, log_probabilities, target, ignore_index, options) : NULL;
}

const wg__op_table wg__ops_cross_entropy =
    WG__OP_TABLE(&cross_entropy, &soft_cross_entropy, &nll_loss);
