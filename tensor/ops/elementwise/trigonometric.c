/* Trigonometric and hyperbolic functions and their inverses; tanh is among the exponentials of
 * unary.c. Differences 1 - x^2 are taken as (1 - x) (1 + x), which cancels nothing near the ends.
 */
#include "tensor/ops/registry.h"
#include "tensor/ops/elementwise/map.h"

/* ---- Samples ---- */

/* Values from -limit to limit. */
static wg_tensor *within(wg_generator *generator, int ndim, const int64_t *shape, double limit) {
    return wg_affine(wg_rand(generator, WG_F64, ndim, shape), 2 * limit, -limit);
}

static wg_tensor *make_turn(wg_generator *generator, int ndim, const int64_t *shape) {
    return within(generator, ndim, shape, 1.2);
}

static wg_tensor *make_inside(wg_generator *generator, int ndim, const int64_t *shape) {
    return within(generator, ndim, shape, 0.85);
}

static wg_tensor *make_beyond(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_affine(wg_rand(generator, WG_F64, ndim, shape), 2, 1.25);
}

static int sample_turn(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_unary(index, generator, sample, make_turn);
}

static int sample_inside(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_unary(index, generator, sample, make_inside);
}

static int sample_beyond(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_unary(index, generator, sample, make_beyond);
}

/* ---- sin.   dx = g cos x. ---- */

MAP_FORWARD(sin)

static int sin_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(cotangents[0], wg_cos(call->inputs[0]));
    return wg__vjp_status();
}

static const wg_op sin_op = {UNARY_PRIMITIVE(sin, "y = sin x, x in radians"), .saves_inputs = 1,
                             .infer = wg__infer_float, .sample = wg__unary_normal};

wg_tensor *wg_sin(wg_tensor *x) {
    return wg__apply_float(&sin_op, x, NULL);
}

/* ---- cos.   dx = -g sin x. ---- */

MAP_FORWARD(cos)

static int cos_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_neg(wg_mul(cotangents[0], wg_sin(call->inputs[0])));
    return wg__vjp_status();
}

static const wg_op cos_op = {UNARY_PRIMITIVE(cos, "y = cos x, x in radians"), .saves_inputs = 1,
                             .infer = wg__infer_float, .sample = wg__unary_normal};

wg_tensor *wg_cos(wg_tensor *x) {
    return wg__apply_float(&cos_op, x, NULL);
}

/* ---- tan.   dx = g (1 + y^2). ---- */

MAP_FORWARD(tan)

static int tan_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *y = call->outputs[0];
    gradients[0] = wg_mul(cotangents[0], wg_add_scalar(wg_mul(y, y), 1));
    return wg__vjp_status();
}

static const wg_op tan_op = {
    UNARY_PRIMITIVE(tan, "y = tan x, x in radians; poles at odd multiples of pi/2"),
    .saves_outputs = 1, .infer = wg__infer_float, .sample = sample_turn};

wg_tensor *wg_tan(wg_tensor *x) {
    return wg__apply_float(&tan_op, x, NULL);
}

/* 1 / sqrt((1 - x) (1 + x)), whose factors are exact near the ends. */
static wg_tensor *slope_of_asin(wg_tensor *x) {
    return wg_rsqrt(wg_mul(wg_affine(x, -1, 1), wg_add_scalar(x, 1)));
}

/* ---- asin.   dx = g / sqrt(1 - x^2). ---- */

MAP_FORWARD(asin)

static int asin_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(cotangents[0], slope_of_asin(call->inputs[0]));
    return wg__vjp_status();
}

static const wg_op asin_op = {
    UNARY_PRIMITIVE(
        asin, "y = arcsin x, -pi/2 to pi/2; NaN beyond |x| = 1, where the derivative is infinite"),
    .saves_inputs = 1, .infer = wg__infer_float, .sample = sample_inside};

wg_tensor *wg_asin(wg_tensor *x) {
    return wg__apply_float(&asin_op, x, NULL);
}

/* ---- acos.   dx = -g / sqrt(1 - x^2). ---- */

MAP_FORWARD(acos)

static int acos_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_neg(wg_mul(cotangents[0], slope_of_asin(call->inputs[0])));
    return wg__vjp_status();
}

static const wg_op acos_op = {
    UNARY_PRIMITIVE(acos,
                    "y = arccos x, 0 to pi; NaN beyond |x| = 1, where the derivative is infinite"),
    .saves_inputs = 1, .infer = wg__infer_float, .sample = sample_inside};

wg_tensor *wg_acos(wg_tensor *x) {
    return wg__apply_float(&acos_op, x, NULL);
}

/* ---- atan.   dx = g / (1 + x^2). ---- */

MAP_FORWARD(atan)

static int atan_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *x = call->inputs[0];
    gradients[0] = wg_div(cotangents[0], wg_add_scalar(wg_mul(x, x), 1));
    return wg__vjp_status();
}

static const wg_op atan_op = {UNARY_PRIMITIVE(atan, "y = arctan x, -pi/2 to pi/2"),
                              .saves_inputs = 1, .infer = wg__infer_float,
                              .sample = wg__unary_normal};

wg_tensor *wg_atan(wg_tensor *x) {
    return wg__apply_float(&atan_op, x, NULL);
}

/* ---- sinh.   dx = g cosh x. ---- */

MAP_FORWARD(sinh)

static int sinh_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(cotangents[0], wg_cosh(call->inputs[0]));
    return wg__vjp_status();
}

static const wg_op sinh_op = {UNARY_PRIMITIVE(sinh, "y = sinh x = (e^x - e^-x) / 2"),
                              .saves_inputs = 1, .infer = wg__infer_float,
                              .sample = wg__unary_normal};

wg_tensor *wg_sinh(wg_tensor *x) {
    return wg__apply_float(&sinh_op, x, NULL);
}

/* ---- cosh.   dx = g sinh x. ---- */

MAP_FORWARD(cosh)

static int cosh_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(cotangents[0], wg_sinh(call->inputs[0]));
    return wg__vjp_status();
}

static const wg_op cosh_op = {UNARY_PRIMITIVE(cosh, "y = cosh x = (e^x + e^-x) / 2"),
                              .saves_inputs = 1, .infer = wg__infer_float,
                              .sample = wg__unary_normal};

wg_tensor *wg_cosh(wg_tensor *x) {
    return wg__apply_float(&cosh_op, x, NULL);
}

/* ---- asinh.   dx = g / sqrt(x^2 + 1). ---- */

MAP_FORWARD(asinh)

static int asinh_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *one = wg_scalar(wg_tensor_dtype(call->inputs[0]), 1);
    gradients[0] = wg_div(cotangents[0], wg_hypot(call->inputs[0], one));
    return wg__vjp_status();
}

static const wg_op asinh_op = {UNARY_PRIMITIVE(asinh, "y = arsinh x = ln(x + sqrt(x^2 + 1))"),
                               .saves_inputs = 1, .infer = wg__infer_float,
                               .sample = wg__unary_normal};

wg_tensor *wg_asinh(wg_tensor *x) {
    return wg__apply_float(&asinh_op, x, NULL);
}

/* ---- acosh.   dx = g / sqrt(x^2 - 1). ---- */

MAP_FORWARD(acosh)

static int acosh_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *x = call->inputs[0];
    wg_tensor *gap = wg_mul(wg_add_scalar(x, -1), wg_add_scalar(x, 1));
    gradients[0] = wg_mul(cotangents[0], wg_rsqrt(gap));
    return wg__vjp_status();
}

static int acosh_bench(wg_generator *generator, wg_sample *sample) {
    sample->inputs[0] = wg_add_scalar(wg_rand(generator, WG_F32, 1, (int64_t[]){1 << 22}), 1);
    return wg__sample_status(sample, 1);
}

static const wg_op acosh_op = {
    UNARY(acosh,
          "y = arcosh x = ln(x + sqrt(x^2 - 1)); NaN below 1, where the derivative is infinite"),
    .jvp = wg__jvp_diagonal,
    .bench = acosh_bench,
    .saves_inputs = 1,
    .infer = wg__infer_float,
    .sample = sample_beyond};

wg_tensor *wg_acosh(wg_tensor *x) {
    return wg__apply_float(&acosh_op, x, NULL);
}

/* ---- atanh.   dx = g / (1 - x^2). ---- */

MAP_FORWARD(atanh)

static int atanh_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *x = call->inputs[0];
    wg_tensor *gap = wg_mul(wg_affine(x, -1, 1), wg_add_scalar(x, 1));
    gradients[0] = wg_div(cotangents[0], gap);
    return wg__vjp_status();
}

static const wg_op atanh_op = {
    UNARY_PRIMITIVE(atanh,
                    "y = artanh x = ln((1 + x) / (1 - x)) / 2; infinite at |x| = 1, NaN beyond"),
    .saves_inputs = 1, .infer = wg__infer_float, .sample = sample_inside};

wg_tensor *wg_atanh(wg_tensor *x) {
    return wg__apply_float(&atanh_op, x, NULL);
}

static const wg_op *const ops[] = {&sin_op,  &cos_op,  &tan_op,   &asin_op,  &acos_op, &atan_op,
                                   &sinh_op, &cosh_op, &asinh_op, &acosh_op, &atanh_op};

const wg__op_family wg__family_trigonometric = {ops, sizeof ops / sizeof *ops};
