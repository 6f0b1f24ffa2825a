/* Losses that compare x with a target element by element. The ops give the losses of all elements;
 * the public functions reduce them. */
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/loss/loss.h"

#include <math.h>

int wg__check_reduction(wg_reduction reduction, const char *where) {
    if (reduction == WG_REDUCTION_MEAN || reduction == WG_REDUCTION_SUM ||
        reduction == WG_REDUCTION_NONE)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, where, "%d is none of wg_reduction", (int)reduction);
}

/* Runs an op on x, target and optional weights, and reduces the losses. x and target are cast to
 * their common dtype, f32 at least. bf16 is computed in f32 and rounded once. */
static wg_tensor *reduced(const wg_op *op, int count, wg_tensor **inputs, const void *options,
                          wg_reduction reduction) {
    if (wg__check_reduction(reduction, op->name) < 0)
        return NULL;
    wg_tensor *loss = NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (wg__promote(&inputs[0], &inputs[1])) {
        const wg_dtype dtype = inputs[0]->spec.dtype;
        for (int i = 0; i < 2; i++)
            inputs[i] = wg__widen(wg__as_float(inputs[i]));
        loss = wg_apply_one(op, count, inputs, options);
        if (reduction == WG_REDUCTION_MEAN)
            loss = wg_mean(loss, 0, NULL, false);
        if (reduction == WG_REDUCTION_SUM)
            loss = wg_sum(loss, 0, NULL, false);
        loss = wg__narrow(loss, dtype);
    }
    return wg_scope_end(&scope, loss);
}

static int compare_infer(wg_call *call) {
    if (wg__check_same_dtype(call, 0, 1) < 0)
        return -1;
    if (!wg__same_shape(&call->input_specs[0], &call->input_specs[1]))
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "the shapes of x and target differ; expand one of them?");
    return wg__infer_float(call);
}

/* Targets that differ from wg__sample_distinct by no kink of the losses. */
static wg_tensor *between(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_add_scalar(wg__sample_distinct(generator, ndim, shape), 0.125);
}

WG__SHAPES(compare, (wg__sample_distinct, between), "2 3 2, 2 3 2", "1 1 5, 1 1 5", "3 1 1, 3 1 1")

/* ---- Kernels: of the difference d = x - target and the number beta, 0 without options ---- */

/* The loops of y = LOSS and of dx = g SLOPE. g is often one number for all elements, of stride
 * 0. */
#define COMPARE_LOOPS(NAME, TYPE, LOSS, SLOPE)                                                     \
    static inline void NAME##_at(int64_t n, char *const *data, int64_t sx, int64_t st,             \
                                 TYPE beta) {                                                      \
        TYPE *restrict y = (TYPE *)data[0];                                                        \
        const TYPE *x = (const TYPE *)data[1], *t = (const TYPE *)data[2];                         \
        (void)beta;                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const TYPE d = x[i * sx] - t[i * st];                                                  \
            y[i] = LOSS;                                                                           \
        }                                                                                          \
    }                                                                                              \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        const int64_t size = (int64_t)sizeof(TYPE);                                                \
        const TYPE beta = context ? (TYPE) * (const double *)context : 0;                          \
        if (strides[1] == size && strides[2] == size)                                              \
            NAME##_at(n, data, 1, 1, beta);                                                        \
        else                                                                                       \
            NAME##_at(n, data, strides[1] / size, strides[2] / size, beta);                        \
    }                                                                                              \
    static inline void NAME##_slope_at(int64_t n, char *const *data, int64_t sx, int64_t st,       \
                                       int64_t sg, TYPE beta) {                                    \
        TYPE *dx = (TYPE *)data[0]; /* may be x */                                                 \
        const TYPE *x = (const TYPE *)data[1], *t = (const TYPE *)data[2];                         \
        const TYPE *g = (const TYPE *)data[3];                                                     \
        (void)beta;                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const TYPE d = x[i * sx] - t[i * st];                                                  \
            dx[i] = g[i * sg] * (SLOPE);                                                           \
        }                                                                                          \
    }                                                                                              \
    static void NAME##_slope(int64_t n, char *const *data, const int64_t *strides,                 \
                             const void *context) {                                                \
        const int64_t size = (int64_t)sizeof(TYPE);                                                \
        const TYPE beta = context ? (TYPE) * (const double *)context : 0;                          \
        const bool dense = strides[1] == size && strides[2] == size;                               \
        if (dense && strides[3] == size)                                                           \
            NAME##_slope_at(n, data, 1, 1, 1, beta);                                               \
        else if (dense && strides[3] == 0)                                                         \
            NAME##_slope_at(n, data, 1, 1, 0, beta);                                               \
        else                                                                                       \
            NAME##_slope_at(n, data, strides[1] / size, strides[2] / size, strides[3] / size,      \
                            beta);                                                                 \
    }

#define COMPARE_KERNELS(NAME, LOSS_F32, LOSS_F64, SLOPE)                                           \
    COMPARE_LOOPS(NAME##_f32, float, LOSS_F32, SLOPE)                                              \
    COMPARE_LOOPS(NAME##_f64, double, LOSS_F64, SLOPE)                                             \
    static const wg__loop NAME##_loops[WG_DTYPE_COUNT] = {                                         \
        [WG_F32] = NAME##_f32, [WG_F64] = NAME##_f64};                                             \
    static const wg__loop NAME##_slope_loops[WG_DTYPE_COUNT] = {                                   \
        [WG_F32] = NAME##_f32_slope, [WG_F64] = NAME##_f64_slope};                                 \
    static int NAME##_forward(wg_call *call) {                                                     \
        return wg__elementwise_call(call, NAME##_loops, call->options);                            \
    }                                                                                              \
    static int NAME##_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {    \
        return compare_vjp(call, NAME##_slope_loops, cotangents[0], gradients);                    \
    }

#define COMPARE(NAME, INFER, DOC)                                                                  \
    WG__OP(#NAME, 2, DOC " Fused."), .saves_inputs = 3, .differentiable = 3, .infer = INFER,       \
                                     .forward = NAME##_forward, .vjp = NAME##_vjp,                 \
                                     .decompose = NAME##_decompose

static int compare_vjp(wg_call *call, const wg__loop *loops, wg_tensor *g, wg_tensor **gradients) {
    wg_tensor *x = call->inputs[0], *target = call->inputs[1];
    wg_tensor *dx = wg_empty_like(x);
    if (dx == NULL)
        return -1;
    wg__elementwise(4, (wg_tensor *[]){dx, x, target, g}, loops, call->options);
    if (wg__wants(call, 0))
        gradients[0] = dx;
    if (wg__wants(call, 1))
        gradients[1] = wg_neg(dx);
    return wg__vjp_status();
}

/* ---- mse_loss: d^2.   dx = 2 g d. ---- */

COMPARE_KERNELS(mse_loss, d *d, d *d, 2 * d)

static int mse_loss_decompose(wg_call *call) {
    wg_tensor *d = wg_sub(call->inputs[0], call->inputs[1]);
    return wg__set_output(call, wg_mul(d, d));
}

static const wg_op mse_loss = {
    COMPARE(mse_loss, compare_infer, "y = (x - target)^2, of equal shapes."),
    .sample = compare_sample, .bench = wg__bench_two};

wg_tensor *wg_mse_loss(wg_tensor *x, wg_tensor *target, wg_reduction reduction) {
    return reduced(&mse_loss, 2, (wg_tensor *[]){x, target}, NULL, reduction);
}

/* ---- l1_loss: |d|.   dx = g sign(d). Kink at 0, with derivative 0. ---- */

COMPARE_KERNELS(l1_loss, fabsf(d), fabs(d), d != d ? d : (d > 0) - (d < 0))

static int l1_loss_decompose(wg_call *call) {
    return wg__set_output(call, wg_abs(wg_sub(call->inputs[0], call->inputs[1])));
}

static const wg_op l1_loss = {
    COMPARE(l1_loss, compare_infer,
            "y = |x - target|, of equal shapes. Kink at 0, where the derivative is 0."),
    .sample = compare_sample, .bench = wg__bench_two};

wg_tensor *wg_l1_loss(wg_tensor *x, wg_tensor *target, wg_reduction reduction) {
    return reduced(&l1_loss, 2, (wg_tensor *[]){x, target}, NULL, reduction);
}

/* ---- smooth_l1_loss: d^2 / (2 beta) where |d| < beta, |d| - beta/2 elsewhere.
 * dx = g d / beta, g sign(d). The options are beta, a double. ---- */

COMPARE_KERNELS(smooth_l1_loss,
                fabsf(d) < beta ? d * d * (float)0.5 / beta : fabsf(d) - (float)0.5 * beta,
                fabs(d) < beta ? d * d * 0.5 / beta : fabs(d) - 0.5 * beta,
                d >= beta    ? 1
                : d <= -beta ? -1
                             : d / beta)

static int smooth_l1_loss_infer(wg_call *call) {
    const double beta = *(const double *)call->options;
    if (!(beta > 0))
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "beta %g; wanted 0 or more", beta);
    return compare_infer(call);
}

/* With z = |d| limited to beta, both pieces are z (|d| - z/2) / beta. */
static int smooth_l1_loss_decompose(wg_call *call) {
    const double beta = *(const double *)call->options;
    wg_tensor *d = wg_abs(wg_sub(call->inputs[0], call->inputs[1]));
    wg_tensor *z = wg_clamp(d, -INFINITY, beta);
    wg_tensor *y = wg_mul(z, wg_sub(d, wg_mul_scalar(z, 0.5)));
    return wg__set_output(call, wg_mul_scalar(y, 1 / beta));
}

static int smooth_l1_loss_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const double betas[] = {1, 0.5, 2.5};
    sample->options = &betas[index % 3];
    return compare_sample(index, generator, sample);
}

WG__LARGE(smooth_l1_loss, double, "4194304, 4194304", 0.5)

static const wg_op smooth_l1_loss = {
    COMPARE(smooth_l1_loss, smooth_l1_loss_infer,
            "With d = |x - target|: y = d^2 / (2 beta) where d < beta, d - beta/2 elsewhere."),
    .options_size = sizeof(double), .sample = smooth_l1_loss_sample, .bench = smooth_l1_loss_bench};

wg_tensor *wg_smooth_l1_loss(wg_tensor *x, wg_tensor *target, double beta, wg_reduction reduction) {
    return beta == 0 ? wg_l1_loss(x, target, reduction)
                     : reduced(&smooth_l1_loss, 2, (wg_tensor *[]){x, target}, &beta, reduction);
}

/* ---- bce_with_logits: y = w (p t log(1 + e^-x) + (1 - t) log(1 + e^x)). ---- */

enum { LOGITS, TARGET, WEIGHT, POS_WEIGHT };

static int bce_with_logits_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[LOGITS];
    for (int i = WEIGHT; i < call->input_count; i++) {
        wg_spec both;
        if (call->inputs[i] &&
            (!wg__broadcast(x, &call->input_specs[i], &both) || !wg__same_shape(x, &both)))
            return wg__op_fail(call, WG_ERROR_SHAPE, "%s does not broadcast to the logits",
                               i == WEIGHT ? "weight" : "pos_weight");
    }
    return compare_infer(call);
}

static wg_tensor *weighted_bce(const wg_call *call) {
    wg_tensor *x = call->inputs[LOGITS], *t = call->inputs[TARGET];
    wg_tensor *weight = wg__input_at(call, WEIGHT), *pos_weight = wg__input_at(call, POS_WEIGHT);
    wg_tensor *positive = wg_mul(t, wg_softplus(wg_neg(x), 1, INFINITY));
    if (pos_weight)
        positive = wg_mul(positive, pos_weight);
    wg_tensor *negative = wg_mul(wg_affine(t, -1, 1), wg_softplus(x, 1, INFINITY));
    wg_tensor *y = wg_add(positive, negative);
    return weight ? wg_mul(y, weight) : y;
}

static int bce_with_logits_decompose(wg_call *call) {
    return wg__set_output(call, weighted_bce(call));
}

/* A kernel if there are no weights, else the composition. */
static int bce_with_logits_forward(wg_call *call) {
    if (!wg__input_at(call, WEIGHT) && !wg__input_at(call, POS_WEIGHT)) {
        wg_call pair = *call;
        pair.input_count = 2;
        return wg__run_map(&pair, &(wg__map){.kind = WG__PAIRS, .function = WG__BCE});
    }
    const wg_tensor *y = weighted_bce(call);
    return y ? wg_copy_(call->outputs[0], y) : -1;
}

/* With weights, y = w (p t a + (1 - t) b), a = log(1 + e^-x) and b = log(1 + e^x):
 * dx = g w ((1 - t) sigmoid(x) - p t sigmoid(-x)), dt = g w (p a - b),
 * dw = g (p t a + (1 - t) b), dp = g w t a. */
static int bce_with_logits_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *x = call->inputs[LOGITS], *t = call->inputs[TARGET], *g = cotangents[0];
    wg_tensor *weight = wg__input_at(call, WEIGHT), *pos_weight = wg__input_at(call, POS_WEIGHT);
    if (!weight && !pos_weight)
        return wg__run_gate_slopes(call, WG__BCE, g, gradients);
    wg_tensor *a = wg_softplus(wg_neg(x), 1, INFINITY), *b = wg_softplus(x, 1, INFINITY);
    wg_tensor *none = wg_affine(t, -1, 1), *gw = weight ? wg_mul(g, weight) : g;
    wg_tensor *pt = pos_weight ? wg_mul(t, pos_weight) : t;
    if (wg__wants(call, LOGITS))
        gradients[LOGITS] =
            wg_mul(gw, wg_sub(wg_mul(none, wg_sigmoid(x)), wg_mul(pt, wg_sigmoid(wg_neg(x)))));
    if (wg__wants(call, TARGET))
        gradients[TARGET] = wg_mul(gw, wg_sub(pos_weight ? wg_mul(a, pos_weight) : a, b));
    if (wg__wants(call, WEIGHT))
        gradients[WEIGHT] =
            wg__sum_like(wg_mul(g, wg_add(wg_mul(pt, a), wg_mul(none, b))), call, WEIGHT);
    if (wg__wants(call, POS_WEIGHT))
        gradients[POS_WEIGHT] = wg__sum_like(wg_mul(gw, wg_mul(t, a)), call, POS_WEIGHT);
    return wg__vjp_status();
}

static wg_tensor *sample_probabilities(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_rand(generator, WG_F64, ndim, shape);
}

WG__SHAPES(bce_with_logits, (wg__sample_normal, sample_probabilities, wg__sample_positive),
           "2 3, 2 3", "2 3, 2 3, 3", "2 3, 2 3, -, 2 3", "2 3, 2 3, 3, 2 3")

static const wg_op bce_with_logits = {
    WG__OP_OF(
        "bce_with_logits", 2, 4, 1,
        "y = weight (pos_weight t log(1 + e^-x) + (1 - t) log(1 + e^x)) of logits x and targets t "
        "of the same shape; weight and pos_weight are optional and broadcast. Fused without them."),
    .saves_inputs = 15,
    .differentiable = 15,
    .infer = bce_with_logits_infer,
    .forward = bce_with_logits_forward,
    .vjp = bce_with_logits_vjp,
    WG__COMPOSED(bce_with_logits),
};

wg_tensor *wg_bce_with_logits(wg_tensor *logits, wg_tensor *target, wg_tensor *weight,
                              wg_tensor *pos_weight, wg_reduction reduction) {
    return reduced(&bce_with_logits, 4, (wg_tensor *[]){logits, target, weight, pos_weight}, NULL,
                   reduction);
}

/* ---- kl_div: y = t (log t - x), 0 where t is 0; or e^t (t - x), with the option. ---- */

/* Where t is 0, log 1 replaces log t, so that neither y nor a gradient is NaN. */
static int kl_div_decompose(wg_call *call) {
    wg_tensor *x = call->inputs[0], *t = call->inputs[1];
    if (*(const bool *)call->options)
        return wg__set_output(call, wg_mul(wg_exp(t), wg_sub(t, x)));
    wg_tensor *zero = wg_eq(t, wg_scalar(call->input_specs[1].dtype, 0));
    wg_tensor *log_target = wg_log(wg_masked_fill(t, zero, 1));
    return wg__set_output(call, wg_mul(t, wg_sub(log_target, x)));
}

WG__EXAMPLES(kl_div, bool, (wg__sample_normal, wg__sample_positive), {false, "2 3, 2 3"},
             {true, "2 3, 2 3"}, {false, "4 1, 4 1"}, {true, "4 1, 4 1"})

static const wg_op kl_div = {
    WG__OP("kl_div", 2,
           "y = t (log t - x), 0 where t is 0, of log probabilities x and a target t of the same "
           "shape; or e^t (t - x) for a target of log probabilities"),
    .options_size = sizeof(bool),
    .differentiable = 3,
    .infer = compare_infer,
    WG__COMPOSED(kl_div),
};

wg_tensor *wg_kl_div(wg_tensor *log_input, wg_tensor *target, bool log_target,
                     wg_reduction reduction) {
    return reduced(&kl_div, 2, (wg_tensor *[]){log_input, target}, &log_target, reduction);
}

/* ---- cosine_similarity: y = a b / (max(|a|, eps) max(|b|, eps)) along one axis. ---- */

typedef struct cosine_options {
    int axis;
    double eps;
} cosine_options;

static int cosine_infer(wg_call *call) {
    const cosine_options *options = call->options;
    if (wg__check_same_dtype(call, 0, 1) < 0 || wg__infer_float(call) < 0 ||
        wg__infer_broadcast(call, call->input_specs[0].dtype) < 0)
        return -1;
    return wg__axis(options->axis, call->output_specs[0].ndim, call->op->name) < 0 ? -1 : 0;
}

/* max(|x|, eps), with the derivative 0 where eps is larger. */
static wg_tensor *length(const wg_call *call, wg_tensor *x) {
    const cosine_options *options = call->options;
    wg_tensor *squares = wg_sum(wg_mul(x, x), 1, (int64_t[]){options->axis}, false);
    return wg_sqrt(wg_clamp(squares, options->eps * options->eps, INFINITY));
}

static int cosine_decompose(wg_call *call) {
    const cosine_options *options = call->options;
    wg_spec shape;
    wg__broadcast(&call->input_specs[0], &call->input_specs[1], &shape);
    wg_tensor *a = wg_expand(call->inputs[0], shape.ndim, shape.shape);
    wg_tensor *b = wg_expand(call->inputs[1], shape.ndim, shape.shape);
    wg_tensor *product = wg_sum(wg_mul(a, b), 1, (int64_t[]){options->axis}, false);
    return wg__set_output(call, wg_div(product, wg_mul(length(call, a), length(call, b))));
}

WG__EXAMPLES(cosine, cosine_options, (wg__sample_normal), {{-1, 1e-8}, "2 3 4, 2 3 4"},
             {{0, 1e-8}, "3 1 2, 3 2 1"}, {{1, 5}, "2 4 1, 1 4 1"})

static const wg_op cosine_similarity = {
    WG__OP("cosine_similarity", 2,
           "y = sum a b / (max(|a|, eps) max(|b|, eps)) along one axis, a and b broadcast"),
    .options_size = sizeof(cosine_options),
    .differentiable = 3,
    .infer = cosine_infer,
    WG__COMPOSED(cosine),
};

wg_tensor *wg_cosine_similarity(wg_tensor *a, wg_tensor *b, int axis, double eps) {
    return reduced(&cosine_similarity, 2, (wg_tensor *[]){a, b}, &(cosine_options){axis, eps},
                   WG_REDUCTION_NONE);
}

const wg__op_table wg__ops_loss = WG__OP_TABLE(&mse_loss, &l1_loss, &smooth_l1_loss,
                                               &bce_with_logits, &kl_div, &cosine_similarity);
