/* Elementwise functions of one operand: arithmetic, exponentials and their kin. */
#include "tensor/ops/families.h"
#include "tensor/ops/map.h"

#include <math.h>

static wg_tensor *apply(const wg_op *op, wg_tensor *x) {
    return wg_apply_one(op, 1, &x, NULL);
}

/* ---- neg: y = -x; integers wrap around.   dx = -g. ---- */

FLOAT_LOOPS(neg, -x, -x)
LOOP(neg_i32, int32_t, 0u - (uint32_t)x)
LOOP(neg_i64, int64_t, 0u - (uint64_t)x)
LOOP(neg_u8, uint8_t, 0u - x)

static int neg_infer(wg_call *call) {
    if (call->input_specs[0].dtype == WG_BOOL)
        return wg__op_fail(call, WG_ERROR_DTYPE, "a bool has no negative; use logical_not");
    return wg__infer_like(call);
}

static int neg_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {[WG_F32] = neg_f32,
                                                   [WG_F64] = neg_f64,
                                                   [WG_I32] = neg_i32,
                                                   [WG_I64] = neg_i64,
                                                   [WG_U8] = neg_u8};
    return wg__elementwise_call(call, loops, NULL);
}

static int neg_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call;
    gradients[0] = wg_neg(cotangents[0]);
    return wg__vjp_status();
}

static const wg_op neg = {UNARY_PRIMITIVE(neg, "y = -x"), .infer = neg_infer,
                          .sample = wg__unary_normal};

wg_tensor *wg_neg(wg_tensor *x) {
    return apply(&neg, x);
}

/* ---- abs: y = |x|.   dx = g sign(x). Kink at 0, with derivative 0. ---- */

FLOAT_LOOPS(abs, fabsf(x), fabs(x))
LOOP(abs_i32, int32_t, x < 0 ? 0u - (uint32_t)x : (uint32_t)x)
LOOP(abs_i64, int64_t, x < 0 ? 0u - (uint64_t)x : (uint64_t)x)
LOOP(same_u8, uint8_t, x)

static int abs_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {
        [WG_F32] = abs_f32, [WG_F64] = abs_f64, [WG_I32] = abs_i32,
        [WG_I64] = abs_i64, [WG_U8] = same_u8,  [WG_BOOL] = same_u8};
    return wg__elementwise_call(call, loops, NULL);
}

static int abs_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(cotangents[0], wg_sign(call->inputs[0]));
    return wg__vjp_status();
}

static const wg_op abs_op = {UNARY_PRIMITIVE(abs, "y = |x|. Kink at 0, where the derivative is 0."),
                             .saves_inputs = 1, .infer = wg__infer_like,
                             .sample = wg__unary_nonzero};

wg_tensor *wg_abs(wg_tensor *x) {
    return apply(&abs_op, x);
}

/* ---- sign: y = -1, 0 or 1; of NaN: NaN.   dx = 0. Jumps at 0. ---- */

FLOAT_LOOPS(sign, x != x ? x : (float)((x > 0) - (x < 0)), x != x ? x : (double)((x > 0) - (x < 0)))
FLOAT_FORWARD(sign)

static int sign_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call, (void)cotangents, (void)gradients;
    return 0;
}

static const wg_op sign = {
    UNARY_PRIMITIVE(sign, "y = -1, 0 or 1. Jumps at 0; the derivative is 0."),
    .infer = wg__infer_float, .sample = wg__unary_nonzero};

wg_tensor *wg_sign(wg_tensor *x) {
    return wg__apply_float(&sign, x, NULL);
}

/* ---- exp: y = e^x.   dx = g y. ---- */

static int exp_forward(wg_call *call) {
    return wg__run_map(call, wg__call_simd(call)->exp);
}

static int exp_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(cotangents[0], call->outputs[0]);
    return wg__vjp_status();
}

static const wg_op exp_op = {UNARY_PRIMITIVE(exp, "y = e^x"), .saves_outputs = 1,
                             .infer = wg__infer_float, .sample = wg__unary_normal};

wg_tensor *wg_exp(wg_tensor *x) {
    return wg__apply_float(&exp_op, x, NULL);
}

/* ---- log: y = ln x.   dx = g / x. ---- */

static int log_forward(wg_call *call) {
    return wg__run_map(call, wg__call_simd(call)->log);
}

static int log_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_div(cotangents[0], call->inputs[0]);
    return wg__vjp_status();
}

static const wg_op log_op = {UNARY_PRIMITIVE(log, "y = ln x; -inf at 0, NaN below"),
                             .saves_inputs = 1, .infer = wg__infer_float,
                             .sample = wg__unary_positive};

wg_tensor *wg_log(wg_tensor *x) {
    return wg__apply_float(&log_op, x, NULL);
}

/* ---- sqrt: y = x^(1/2).   dx = g / (2 y). ---- */

FLOAT_LOOPS(sqrt, sqrtf(x), sqrt(x))
FLOAT_FORWARD(sqrt)

static int sqrt_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_div(wg_mul_scalar(cotangents[0], 0.5), call->outputs[0]);
    return wg__vjp_status();
}

static const wg_op sqrt_op = {UNARY_PRIMITIVE(sqrt, "y = x^(1/2); NaN below 0"), .saves_outputs = 1,
                              .infer = wg__infer_float, .sample = wg__unary_positive};

wg_tensor *wg_sqrt(wg_tensor *x) {
    return wg__apply_float(&sqrt_op, x, NULL);
}

/* ---- rsqrt: y = x^(-1/2).   dx = -g y^3 / 2. ---- */

FLOAT_LOOPS(rsqrt, 1 / sqrtf(x), 1 / sqrt(x))
FLOAT_FORWARD(rsqrt)

static int rsqrt_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *y = call->outputs[0];
    wg_tensor *slope = wg_mul_scalar(wg_mul(wg_mul(y, y), y), -0.5);
    gradients[0] = wg_mul(cotangents[0], slope);
    return wg__vjp_status();
}

static const wg_op rsqrt = {UNARY_PRIMITIVE(rsqrt, "y = x^(-1/2); inf at 0, NaN below"),
                            .saves_outputs = 1, .infer = wg__infer_float,
                            .sample = wg__unary_positive};

wg_tensor *wg_rsqrt(wg_tensor *x) {
    return wg__apply_float(&rsqrt, x, NULL);
}

/* ---- tanh.   dx = g (1 - y^2). ---- */

static int tanh_forward(wg_call *call) {
    return wg__run_map(call, wg__call_simd(call)->tanh);
}

static int tanh_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[0], *y = call->outputs[0];
    if (!call->create_graph)
        return wg__run_vjp(call, wg__call_simd(call)->tanh_vjp, y, g, gradients);
    gradients[0] = wg_mul(g, wg_affine(wg_mul(y, y), -1, 1));
    return wg__vjp_status();
}

static const wg_op tanh_op = {UNARY_PRIMITIVE(tanh, "y = tanh x"), .saves_outputs = 1,
                              .infer = wg__infer_float, .sample = wg__unary_normal};

wg_tensor *wg_tanh(wg_tensor *x) {
    return wg__apply_float(&tanh_op, x, NULL);
}

/* ---- sigmoid: y = 1 / (1 + e^-x).   dx = g y (1 - y). ---- */

static int sigmoid_forward(wg_call *call) {
    return wg__run_map(call, wg__call_simd(call)->sigmoid);
}

static int sigmoid_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[0], *y = call->outputs[0];
    if (!call->create_graph)
        return wg__run_vjp(call, wg__call_simd(call)->sigmoid_vjp, y, g, gradients);
    gradients[0] = wg_mul(g, wg_mul(y, wg_affine(y, -1, 1)));
    return wg__vjp_status();
}

static const wg_op sigmoid = {UNARY_PRIMITIVE(sigmoid, "y = 1 / (1 + e^-x)"), .saves_outputs = 1,
                              .infer = wg__infer_float, .sample = wg__unary_normal};

wg_tensor *wg_sigmoid(wg_tensor *x) {
    return wg__apply_float(&sigmoid, x, NULL);
}

/* ---- erf.   dx = g 2/sqrt(pi) e^(-x^2). ---- */

static int erf_forward(wg_call *call) {
    return wg__run_map(call, wg__call_simd(call)->erf);
}

static int erf_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[0], *x = call->inputs[0];
    if (!call->create_graph)
        return wg__run_vjp(call, wg__call_simd(call)->erf_vjp, x, g, gradients);
    wg_tensor *density = wg_exp(wg_neg(wg_mul(x, x)));
    gradients[0] = wg_mul(g, wg_mul_scalar(density, M_2_SQRTPI));
    return wg__vjp_status();
}

static const wg_op erf_op = {
    UNARY_PRIMITIVE(erf, "y = erf x = 2/sqrt(pi) times the integral of e^(-t^2), 0 to x"),
    .saves_inputs = 1, .infer = wg__infer_float, .sample = wg__unary_normal};

wg_tensor *wg_erf(wg_tensor *x) {
    return wg__apply_float(&erf_op, x, NULL);
}

/* ---- clamp: y = x limited to [low, high]; of NaN: NaN.   dx = g where low <= x <= high. ---- */

typedef struct clamp_options {
    double low, high;
} clamp_options;

/* The limits as elements of the dtype, which are `context` of the loops. */
#define CLAMP_LOOP(NAME, TYPE)                                                                     \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        const TYPE low = ((const TYPE *)context)[0], high = ((const TYPE *)context)[1];            \
        const int64_t size = (int64_t)sizeof(TYPE);                                                \
        const int64_t sy = strides[0] / size, sx = strides[1] / size;                              \
        TYPE *restrict y = (TYPE *)data[0];                                                        \
        const TYPE *restrict px = (const TYPE *)data[1];                                           \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const TYPE x = px[i * sx];                                                             \
            y[i * sy] = x < low ? low : x > high ? high : x;                                       \
        }                                                                                          \
    }

CLAMP_LOOP(clamp_f32, float)
CLAMP_LOOP(clamp_f64, double)

static int clamp_infer(wg_call *call) {
    const clamp_options *options = call->options;
    if (!(options->low <= options->high))
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "low %g is above high %g; exchange them?",
                           options->low, options->high);
    return wg__infer_float(call);
}

static int clamp_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {[WG_F32] = clamp_f32, [WG_F64] = clamp_f64};
    const clamp_options *options = call->options;
    const float narrow[] = {(float)options->low, (float)options->high};
    const double wide[] = {options->low, options->high};
    const bool is_f64 = call->input_specs[0].dtype == WG_F64;
    return wg__elementwise_call(call, loops, is_f64 ? (const void *)wide : narrow);
}

static int clamp_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const clamp_options *options = call->options;
    const wg_dtype dtype = call->input_specs[0].dtype == WG_F64 ? WG_F64 : WG_F32;
    wg_tensor *x = call->inputs[0];
    wg_tensor *inside = wg_logical_and(wg_ge(x, wg_scalar(dtype, options->low)),
                                       wg_le(x, wg_scalar(dtype, options->high)));
    gradients[0] = wg_where(inside, cotangents[0], wg_scalar(wg_tensor_dtype(cotangents[0]), 0));
    return wg__vjp_status();
}

/* Multiples of 1/4 against limits between them. */
static int clamp_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const clamp_options options[] = {
        {-0.3, 0.3}, {-INFINITY, 0.6}, {-0.6, INFINITY}, {-1.1, 1.1}};
    sample->options = &options[index % 4];
    return wg__sample_unary(index, generator, sample, wg__sample_distinct);
}

static int clamp_bench(wg_generator *generator, wg_sample *sample) {
    static const clamp_options options = {0.25, 0.75};
    sample->options = &options;
    return wg__bench_one(generator, sample);
}

static const wg_op clamp = {
    UNARY(clamp, "y = x limited to [low, high]. Kinks at the limits, where the derivative is 1."),
    .options_size = sizeof(clamp_options),
    .saves_inputs = 1,
    .infer = clamp_infer,
    .jvp = wg__jvp_diagonal,
    .sample = clamp_sample,
    .bench = clamp_bench};

wg_tensor *wg_clamp(wg_tensor *x, double low, double high) {
    return wg__apply_float(&clamp, x, &(clamp_options){low, high});
}

static const wg_op *const ops[] = {
    &neg, &abs_op, &sign, &exp_op, &log_op, &sqrt_op, &rsqrt, &tanh_op, &sigmoid, &erf_op, &clamp,
};

const wg__op_family wg__family_unary = {ops, sizeof ops / sizeof *ops};
