/* Elementwise functions of one operand: arithmetic, exponentials and their kin. */
#include "tensor/ops/registry.h"
#include "tensor/ops/elementwise/map.h"

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

/* ---- exp: y = e^x.   dx = g y. ---- */

MAP_FORWARD(exp)

static int exp_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(cotangents[0], call->outputs[0]);
    return wg__vjp_status();
}

static const wg_op exp_op = {UNARY_PRIMITIVE(exp, "y = e^x"), .saves_outputs = 1,
                             .infer = wg__infer_float, .sample = wg__unary_normal};

wg_tensor *wg_exp(wg_tensor *x) {
    return wg__apply_float(&exp_op, x, NULL);
}

/* ---- exp2: y = 2^x.   dx = g y ln 2. ---- */

MAP_FORWARD(exp2)

static int exp2_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(cotangents[0], wg_mul_scalar(call->outputs[0], M_LN2));
    return wg__vjp_status();
}

static const wg_op exp2_op = {UNARY_PRIMITIVE(exp2, "y = 2^x"), .saves_outputs = 1,
                              .infer = wg__infer_float, .sample = wg__unary_normal};

wg_tensor *wg_exp2(wg_tensor *x) {
    return wg__apply_float(&exp2_op, x, NULL);
}

/* ---- expm1: y = e^x - 1, exact near 0.   dx = g (y + 1). ---- */

MAP_FORWARD(expm1)

static int expm1_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(cotangents[0], wg_add_scalar(call->outputs[0], 1));
    return wg__vjp_status();
}

static const wg_op expm1_op = {
    UNARY_PRIMITIVE(expm1, "y = e^x - 1, without the loss of digits near 0"), .saves_outputs = 1,
    .infer = wg__infer_float, .sample = wg__unary_normal};

wg_tensor *wg_expm1(wg_tensor *x) {
    return wg__apply_float(&expm1_op, x, NULL);
}

/* ---- log: y = ln x.   dx = g / x. ---- */

MAP_FORWARD(log)

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

/* ---- log2.   dx = g / (x ln 2). ---- */

MAP_FORWARD(log2)

static int log2_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_div(cotangents[0], wg_mul_scalar(call->inputs[0], M_LN2));
    return wg__vjp_status();
}

static const wg_op log2_op = {
    UNARY_PRIMITIVE(log2, "y = log x to the base 2; -inf at 0, NaN below"), .saves_inputs = 1,
    .infer = wg__infer_float, .sample = wg__unary_positive};

wg_tensor *wg_log2(wg_tensor *x) {
    return wg__apply_float(&log2_op, x, NULL);
}

/* ---- log10.   dx = g / (x ln 10). ---- */

MAP_FORWARD(log10)

static int log10_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_div(cotangents[0], wg_mul_scalar(call->inputs[0], M_LN10));
    return wg__vjp_status();
}

static const wg_op log10_op = {
    UNARY_PRIMITIVE(log10, "y = log x to the base 10; -inf at 0, NaN below"), .saves_inputs = 1,
    .infer = wg__infer_float, .sample = wg__unary_positive};

wg_tensor *wg_log10(wg_tensor *x) {
    return wg__apply_float(&log10_op, x, NULL);
}

/* ---- log1p: y = ln(1 + x), exact near 0.   dx = g / (1 + x). ---- */

MAP_FORWARD(log1p)

static int log1p_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_div(cotangents[0], wg_add_scalar(call->inputs[0], 1));
    return wg__vjp_status();
}

static const wg_op log1p_op = {
    UNARY_PRIMITIVE(log1p,
                    "y = ln(1 + x), without the loss of digits near 0; -inf at -1, NaN below"),
    .saves_inputs = 1, .infer = wg__infer_float, .sample = wg__unary_positive};

wg_tensor *wg_log1p(wg_tensor *x) {
    return wg__apply_float(&log1p_op, x, NULL);
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

/* ---- cbrt: y = x^(1/3), of the sign of x.   dx = g / (3 y^2). ---- */

MAP_FORWARD(cbrt)

static int cbrt_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *y = call->outputs[0];
    gradients[0] = wg_div(cotangents[0], wg_mul_scalar(wg_mul(y, y), 3));
    return wg__vjp_status();
}

static const wg_op cbrt_op = {
    UNARY_PRIMITIVE(cbrt, "y = x^(1/3), of the sign of x; the derivative at 0 is infinite"),
    .saves_outputs = 1, .infer = wg__infer_float, .sample = wg__unary_nonzero};

wg_tensor *wg_cbrt(wg_tensor *x) {
    return wg__apply_float(&cbrt_op, x, NULL);
}

/* ---- reciprocal: y = 1 / x.   dx = -g y^2. ---- */

FLOAT_LOOPS(reciprocal, 1 / x, 1 / x)
FLOAT_FORWARD(reciprocal)

static int reciprocal_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *y = call->outputs[0];
    gradients[0] = wg_neg(wg_mul(cotangents[0], wg_mul(y, y)));
    return wg__vjp_status();
}

static const wg_op reciprocal = {UNARY_PRIMITIVE(reciprocal, "y = 1 / x"), .saves_outputs = 1,
                                 .infer = wg__infer_float, .sample = wg__unary_nonzero};

wg_tensor *wg_reciprocal(wg_tensor *x) {
    return wg__apply_float(&reciprocal, x, NULL);
}

/* ---- square: y = x^2; integers wrap around.   dx = 2 g x. ---- */

FLOAT_LOOPS(square, x *x, x *x)
LOOP(square_i32, int32_t, (uint32_t)x *(uint32_t)x)
LOOP(square_i64, int64_t, (uint64_t)x *(uint64_t)x)
LOOP(square_u8, uint8_t, (uint32_t)x *x)

static int square_infer(wg_call *call) {
    if (call->input_specs[0].dtype == WG_BOOL)
        return wg__op_fail(call, WG_ERROR_DTYPE, "takes numbers; cast the operand");
    return wg__infer_like(call);
}

static int square_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {[WG_F32] = square_f32,
                                                   [WG_F64] = square_f64,
                                                   [WG_I32] = square_i32,
                                                   [WG_I64] = square_i64,
                                                   [WG_U8] = square_u8};
    return wg__elementwise_call(call, loops, NULL);
}

static int square_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(cotangents[0], wg_mul_scalar(call->inputs[0], 2));
    return wg__vjp_status();
}

static const wg_op square = {UNARY_PRIMITIVE(square, "y = x^2; integers stay integers"),
                             .saves_inputs = 1, .infer = square_infer, .sample = wg__unary_normal};

wg_tensor *wg_square(wg_tensor *x) {
    wg_scope scope;
    wg_scope_begin(&scope);
    if (x != NULL && x->spec.dtype == WG_BOOL)
        x = wg_cast(x, WG_I64);
    return wg_scope_end(&scope, apply(&square, x));
}

/* ---- tanh.   dx = g (1 - y^2). ---- */

MAP_FORWARD(tanh)

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

MAP_FORWARD(sigmoid)

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

MAP_FORWARD(erf)

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

static const wg_op *const ops[] = {&neg,        &abs_op,   &exp_op,   &exp2_op, &expm1_op, &log_op,
                                   &log2_op,    &log10_op, &log1p_op, &sqrt_op, &rsqrt,    &cbrt_op,
                                   &reciprocal, &square,   &tanh_op,  &sigmoid, &erf_op};

const wg__op_family wg__family_unary = {ops, sizeof ops / sizeof *ops};
