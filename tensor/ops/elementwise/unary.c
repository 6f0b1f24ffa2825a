/* Elementwise ops of one operand: casts, arithmetic with plain numbers, powers, exponentials and
 * logarithms, sign and rounding. special.c has the trigonometric and the special functions. */
#include "tensor/internal.h"
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"

#include <float.h>
#include <math.h>

/* Integers and bools that an op leaves as they are. */
LOOP(same_i32, int32_t, x)
LOOP(same_i64, int64_t, x)
LOOP(same_u8, uint8_t, x)

/* ---- cast: y = x in another dtype.   dx = g in the dtype of x. ---- */

typedef struct cast_options {
    wg_dtype dtype;
} cast_options;

static int cast_infer(wg_call *call) {
    const cast_options *options = call->options;
    if (wg_dtype_size(options->dtype) == 0)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "there is no dtype %d", (int)options->dtype);
    call->output_specs[0] = call->input_specs[0];
    call->output_specs[0].dtype = options->dtype;
    return 0;
}

static int copy_forward(wg_call *call) {
    wg__convert(call->outputs[0], call->inputs[0]);
    return 0;
}

static int cast_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (wg_dtype_is_float(call->output_specs[0].dtype))
        gradients[0] = wg_cast(cotangents[0], call->input_specs[0].dtype);
    return wg__vjp_status();
}

static int cast_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const wg_dtype dtype = call->output_specs[0].dtype;
    if (tangents[0] != NULL && wg_dtype_is_float(dtype))
        output_tangents[0] = wg_cast(tangents[0], dtype);
    return wg__vjp_status();
}

UNARY_SAMPLES_WITH(cast, cast_options, wg__sample_normal, {WG_BF16}, {WG_F64})

static const wg_op cast = {
    WG__OP("cast", 1,
           "y = x in another dtype: floats to integers truncate and clamp, NaN gives 0, anything "
           "to bool is x != 0. Differentiable between floating dtypes."),
    .options_size = sizeof(cast_options),
    .differentiable = 1,
    .infer = cast_infer,
    .batch = wg_batch_aligned,
    .forward = copy_forward,
    .vjp = cast_vjp,
    .jvp = cast_jvp,
    .sample = cast_sample,
    .bench = cast_bench,
};

wg_tensor *wg_cast(wg_tensor *x, wg_dtype dtype) {
    if (x != NULL && x->spec.dtype == dtype)
        return wg_alias(x);
    return wg_apply_one(&cast, 1, &x, &(cast_options){dtype});
}

/* ---- clone: y = x in new, contiguous memory.   dx = g. ---- */

static int clone_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call;
    gradients[0] = cotangents[0];
    return 0;
}

UNARY_SAMPLE(clone_sample, wg__sample_normal)

static const wg_op clone = {
    WG__OP("clone", 1, "y = x, copied into contiguous memory of its own."),
    .differentiable = 1,
    .infer = wg__infer_like,
    .batch = wg_batch_aligned,
    .forward = copy_forward,
    .vjp = clone_vjp,
    .jvp = wg__jvp_diagonal,
    .sample = clone_sample,
    .bench = wg__bench_one,
};

wg_tensor *wg_clone(wg_tensor *x) {
    return wg_apply_one(&clone, 1, &x, NULL);
}

wg_tensor *wg_contiguous(wg_tensor *x) {
    return x != NULL && wg_tensor_is_contiguous(x) ? wg_alias(x) : wg_clone(x);
}

/* ---- affine: y = x scale + shift.   dx = g scale. ---- */

typedef struct affine_options {
    double scale, shift;
} affine_options;

/* An integer result, truncated toward zero. Integral factors are applied in integer arithmetic,
 * which is exact (and wraps around), where doubles would lose bits above 2^53. */
static inline int64_t affine_integer(int64_t x, affine_options o) {
    const double limit = 9007199254740992.0; /* 2^53 */
    if (o.scale == floor(o.scale) && o.shift == floor(o.shift) && fabs(o.scale) <= limit &&
        fabs(o.shift) <= limit)
        return (int64_t)((uint64_t)x * (uint64_t)(int64_t)o.scale + (uint64_t)(int64_t)o.shift);
    const double y = (double)x * o.scale + o.shift;
    if (!(y > -9223372036854775808.0))
        return y != y ? 0 : INT64_MIN;
    return y >= 9223372036854775808.0 ? INT64_MAX : (int64_t)y;
}

LOOP_WITH(affine_f32, float, affine_options, x *(float)o.scale + (float)o.shift)
LOOP_WITH(affine_f64, double, affine_options, x *o.scale + o.shift)
LOOP_WITH(affine_i32, int32_t, affine_options, affine_integer(x, o))
LOOP_WITH(affine_i64, int64_t, affine_options, affine_integer(x, o))
LOOP_WITH(affine_u8, uint8_t, affine_options, affine_integer(x, o))
LOOP_WITH(affine_bool, uint8_t, affine_options, x *o.scale + o.shift != 0)

FORWARD(affine, call->options, FLOATS(affine), INTEGERS(affine), [WG_BOOL] = affine_bool)

/* Adding -0 instead of 0 keeps the sign of a zero. */
static int affine_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const affine_options *options = call->options;
    gradients[0] =
        options->scale == 1 ? cotangents[0] : wg_affine(cotangents[0], options->scale, -0.0);
    return wg__vjp_status();
}

UNARY_SAMPLES_WITH(affine, affine_options, wg__sample_normal, {-1.5, 0.25}, {-1.5, 0.25})

static const wg_op affine = {
    UNARY_WITH(
        affine, affine_options,
        "y = x scale + shift with plain numbers, in the dtype of x; integers are rounded toward "
        "zero."),
    .infer = wg__infer_like, .batch = wg_batch_aligned};

wg_tensor *wg_affine(wg_tensor *x, double scale, double shift) {
    return wg_apply_one(&affine, 1, &x, &(affine_options){scale, shift});
}

wg_tensor *wg_add_scalar(wg_tensor *x, double c) {
    return wg_affine(x, 1, c);
}

wg_tensor *wg_mul_scalar(wg_tensor *x, double c) {
    return wg_affine(x, c, -0.0);
}

/* ---- clamp: y = x limited to [low, high]; of NaN: NaN.   dx = g where low <= x <= high. ---- */

typedef struct clamp_options {
    double low, high;
} clamp_options;

/* The limits as elements of the dtype. */
typedef struct limits_f32 {
    float low, high;
} limits_f32;

LOOP_WITH(clamp_f32, float, limits_f32, x<o.low ? o.low : x> o.high ? o.high : x)
LOOP_WITH(clamp_f64, double, clamp_options, x<o.low ? o.low : x> o.high ? o.high : x)

static int clamp_infer(wg_call *call) {
    const clamp_options *options = call->options;
    if (!(options->low <= options->high))
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "low %g is above high %g; exchange them?",
                           options->low, options->high);
    return wg__infer_float(call);
}

static int clamp_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(clamp)};
    const clamp_options *options = call->options;
    const limits_f32 narrow = {(float)options->low, (float)options->high};
    const bool is_f64 = call->input_specs[0].dtype == WG_F64;
    return wg__elementwise_call(call, loops, is_f64 ? (const void *)options : &narrow);
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

/* The limits lie between the values, away from kinks. */
UNARY_SAMPLES_WITH(clamp, clamp_options, wg__sample_distinct, {0.25, 0.75}, {-0.3, 0.3},
                   {-INFINITY, 0.6}, {-0.6, INFINITY}, {-1.1, 1.1})

static const wg_op clamp = {
    UNARY_WITH(clamp, clamp_options,
               "y = x limited to [low, high]. Kinks at the limits, where the derivative is 1."),
    .saves_inputs = 1, .infer = clamp_infer, .batch = wg_batch_aligned};

wg_tensor *wg_clamp(wg_tensor *x, double low, double high) {
    return wg__apply_float(&clamp, x, &(clamp_options){low, high});
}

/* ---- nan_to_num: y = x with NaN and the infinities replaced by numbers.
 * dx = g where x is finite. ---- */

typedef struct replacement {
    double nan, posinf, neginf;
} replacement;

static inline double replaced(double x, replacement o) {
    return x != x ? o.nan : x > DBL_MAX ? o.posinf : x < -DBL_MAX ? o.neginf : x;
}

/* The same without branches, which compilers vectorize. */
static inline float replaced_f32(float x, float nan, float posinf, float neginf) {
    const float high = x > FLT_MAX ? posinf : x, low = x < -FLT_MAX ? neginf : high;
    return x != x ? nan : low;
}

LOOP_WITH(nan_to_num_f32, float, replacement,
          replaced_f32(x, (float)o.nan, (float)o.posinf, (float)o.neginf))
LOOP_WITH(nan_to_num_f64, double, replacement, replaced(x, o))

/* The largest number of a floating dtype. */
static double largest(wg_dtype dtype) {
    const double bf16 = 3.3895313892515355e38; /* 2^128 - 2^120 */
    return dtype == WG_F64 ? DBL_MAX : dtype == WG_F32 ? (double)FLT_MAX : bf16;
}

/* A number outside the range of the dtype becomes its largest; an infinity stays infinite. */
static double limited(double value, double most) {
    return isinf(value) ? value : value > most ? most : value < -most ? -most : value;
}

static int nan_to_num_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(nan_to_num),
                                                   INTEGERS(same), [WG_BOOL] = same_u8};
    const replacement *options = call->options;
    const double most = largest(call->input_specs[0].dtype);
    return wg__elementwise_call(call, loops,
                                &(replacement){limited(options->nan, most),
                                               limited(options->posinf, most),
                                               limited(options->neginf, most)});
}

static int nan_to_num_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *zero = wg_scalar(wg_tensor_dtype(cotangents[0]), 0);
    gradients[0] = wg_where(wg_isfinite(call->inputs[0]), cotangents[0], zero);
    return wg__vjp_status();
}

UNARY_SAMPLES_WITH(nan_to_num, replacement, wg__sample_normal, {0, DBL_MAX, -DBL_MAX}, {0, 3, -3},
                   {1, 2, -2})

static const wg_op nan_to_num = {
    UNARY_WITH(nan_to_num, replacement,
               "y = x with plain numbers in the place of NaN, inf and -inf, where the "
               "derivative is 0."),
    .saves_inputs = 1, .infer = wg__infer_like, .batch = wg_batch_aligned};

wg_tensor *wg_nan_to_num(wg_tensor *x, double nan, double posinf, double neginf) {
    return wg_apply_one(&nan_to_num, 1, &x, &(replacement){nan, posinf, neginf});
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

FORWARD(neg, NULL, FLOATS(neg), INTEGERS(neg))
WG__VJP(neg, wg_neg(g))

static const wg_op neg = {UNARY_PRIMITIVE(neg, "y = -x"), .infer = neg_infer,
                          .batch = wg_batch_aligned, .sample = wg__unary_normal};

wg_tensor *wg_neg(wg_tensor *x) {
    return wg_apply_one(&neg, 1, &x, NULL);
}

/* ---- abs: y = |x|.   dx = g sign(x). Kink at 0, with derivative 0. ---- */

FLOAT_LOOPS(abs, fabsf(x), fabs(x))
LOOP(abs_i32, int32_t, x < 0 ? 0u - (uint32_t)x : (uint32_t)x)
LOOP(abs_i64, int64_t, x < 0 ? 0u - (uint64_t)x : (uint64_t)x)

FORWARD(abs, NULL,
        FLOATS(abs), [WG_I32] = abs_i32, [WG_I64] = abs_i64, [WG_U8] = same_u8, [WG_BOOL] = same_u8)
WG__VJP(abs, wg_mul(g, wg_sign(x)))

static const wg_op abs_op = {UNARY_PRIMITIVE(abs, "y = |x|. Kink at 0, where the derivative is 0."),
                             .saves_inputs = 1, .infer = wg__infer_like, .batch = wg_batch_aligned,
                             .sample = wg__unary_nonzero};

wg_tensor *wg_abs(wg_tensor *x) {
    return wg_apply_one(&abs_op, 1, &x, NULL);
}

/* ---- exp: y = e^x.   dx = g y. ---- */

MAP_FORWARD(exp)
WG__VJP(exp, wg_mul(g, y))
FLOAT_FUNCTION(exp, saves_outputs, wg__unary_normal, "y = e^x")

/* ---- exp2: y = 2^x.   dx = g y ln 2. ---- */

MAP_FORWARD(exp2)
WG__VJP(exp2, wg_mul(g, wg_mul_scalar(y, M_LN2)))
FLOAT_FUNCTION(exp2, saves_outputs, wg__unary_normal, "y = 2^x")

/* ---- expm1: y = e^x - 1, exact near 0.   dx = g (y + 1). ---- */

MAP_FORWARD(expm1)
WG__VJP(expm1, wg_mul(g, wg_add_scalar(y, 1)))
FLOAT_FUNCTION(expm1, saves_outputs, wg__unary_normal,
               "y = e^x - 1, without the loss of digits near 0")

/* ---- log: y = ln x.   dx = g / x. ---- */

MAP_FORWARD(log)
WG__VJP(log, wg_div(g, x))
FLOAT_FUNCTION(log, saves_inputs, wg__unary_positive, "y = ln x; -inf at 0, NaN below")

/* ---- log2.   dx = g / (x ln 2). ---- */

MAP_FORWARD(log2)
WG__VJP(log2, wg_div(g, wg_mul_scalar(x, M_LN2)))
FLOAT_FUNCTION(log2, saves_inputs, wg__unary_positive,
               "y = log x to the base 2; -inf at 0, NaN below")

/* ---- log10.   dx = g / (x ln 10). ---- */

MAP_FORWARD(log10)
WG__VJP(log10, wg_div(g, wg_mul_scalar(x, M_LN10)))
FLOAT_FUNCTION(log10, saves_inputs, wg__unary_positive,
               "y = log x to the base 10; -inf at 0, NaN below")

/* ---- log1p: y = ln(1 + x), exact near 0.   dx = g / (1 + x). ---- */

MAP_FORWARD(log1p)
WG__VJP(log1p, wg_div(g, wg_add_scalar(x, 1)))
FLOAT_FUNCTION(log1p, saves_inputs, wg__unary_positive,
               "y = ln(1 + x), without the loss of digits near 0; -inf at -1, NaN below")

/* ---- sqrt: y = x^(1/2).   dx = g / (2 y). ---- */

FLOAT_LOOPS(sqrt, sqrtf(x), sqrt(x))
FLOAT_FORWARD(sqrt)
WG__VJP(sqrt, wg_div(wg_mul_scalar(g, 0.5), y))
FLOAT_FUNCTION(sqrt, saves_outputs, wg__unary_positive, "y = x^(1/2); NaN below 0")

/* ---- rsqrt: y = x^(-1/2).   dx = -g y^3 / 2. ---- */

MAP_FORWARD(rsqrt)
WG__VJP(rsqrt, wg_mul(g, wg_mul_scalar(wg_mul(wg_mul(y, y), y), -0.5)))
FLOAT_FUNCTION(rsqrt, saves_outputs, wg__unary_positive, "y = x^(-1/2); inf at 0, NaN below")

/* ---- cbrt: y = x^(1/3), of the sign of x.   dx = g / (3 y^2). ---- */

MAP_FORWARD(cbrt)
WG__VJP(cbrt, wg_div(g, wg_mul_scalar(wg_mul(y, y), 3)))
FLOAT_FUNCTION(cbrt, saves_outputs, wg__unary_nonzero,
               "y = x^(1/3), of the sign of x; the derivative at 0 is infinite")

/* ---- reciprocal: y = 1 / x.   dx = -g y^2. ---- */

FLOAT_LOOPS(reciprocal, 1 / x, 1 / x)
FLOAT_FORWARD(reciprocal)
WG__VJP(reciprocal, wg_neg(wg_mul(g, wg_mul(y, y))))
FLOAT_FUNCTION(reciprocal, saves_outputs, wg__unary_nonzero, "y = 1 / x")

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

FORWARD(square, NULL, FLOATS(square), INTEGERS(square))
WG__VJP(square, wg_mul(g, wg_mul_scalar(x, 2)))

static const wg_op square = {UNARY_PRIMITIVE(square, "y = x^2; integers stay integers"),
                             .saves_inputs = 1, .infer = square_infer, .batch = wg_batch_aligned,
                             .sample = wg__unary_normal};

wg_tensor *wg_square(wg_tensor *x) {
    wg_scope scope;
    wg_scope_begin(&scope);
    if (x != NULL && x->spec.dtype == WG_BOOL)
        x = wg_cast(x, WG_I64);
    return wg_scope_end(&scope, wg_apply_one(&square, 1, &x, NULL));
}

/* ---- pow_scalar: y = x^c.   dx = g c x^(c-1), which for c = 0 is 0. ---- */

typedef struct pow_options {
    double exponent;
} pow_options;

/* C's pow(x, 0.5): unlike the square root, inf for -inf and 0 for -0. */
FLOAT_LOOPS(root, sqrtf(x == -INFINITY ? INFINITY : x + 0.0F),
            sqrt(x == -INFINITY ? (double)INFINITY : x + 0.0))
FLOAT_FORWARD(root)

static int pow_scalar_forward(wg_call *call) {
    const double c = ((const pow_options *)call->options)->exponent;
    if (c == 2 || c == 0.5)
        return c == 2 ? square_forward(call) : root_forward(call);
    return wg__run_pair_with(call, wg__call_simd(call)->pow, c);
}

static int pow_scalar_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const double c = ((const pow_options *)call->options)->exponent;
    if (c == 0)
        return 0;
    wg_tensor *x = call->inputs[0];
    wg_tensor *slope = c == 2 ? wg_mul_scalar(x, 2) : wg_mul_scalar(wg_pow_scalar(x, c - 1), c);
    gradients[0] = wg_mul(cotangents[0], slope);
    return wg__vjp_status();
}

UNARY_SAMPLES_WITH(pow_scalar, pow_options, wg__sample_positive, {1.5}, {2}, {-1.5}, {3}, {0.5})

static const wg_op pow_scalar = {
    UNARY_WITH(pow_scalar, pow_options, "y = x^c with a plain number c."), .saves_inputs = 1,
    .infer = wg__infer_float, .batch = wg_batch_aligned};

wg_tensor *wg_pow_scalar(wg_tensor *x, double c) {
    return wg__apply_float(&pow_scalar, x, &(pow_options){c});
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

FLOAT_FUNCTION(tanh, saves_outputs, wg__unary_normal, "y = tanh x")

/* ---- sigmoid: y = 1 / (1 + e^-x).   dx = g y (1 - y). ---- */

MAP_FORWARD(sigmoid)

static int sigmoid_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[0], *y = call->outputs[0];
    if (!call->create_graph)
        return wg__run_vjp(call, wg__call_simd(call)->sigmoid_vjp, y, g, gradients);
    gradients[0] = wg_mul(g, wg_mul(y, wg_affine(y, -1, 1)));
    return wg__vjp_status();
}

FLOAT_FUNCTION(sigmoid, saves_outputs, wg__unary_normal, "y = 1 / (1 + e^-x)")

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

FLOAT_FUNCTION(erf, saves_inputs, wg__unary_normal,
               "y = erf x = 2/sqrt(pi) times the integral of e^(-t^2), 0 to x")

static int zero_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call, (void)cotangents, (void)gradients;
    return 0;
}

/* The record and the public function. */
#define STEP(NAME, DOC)                                                                            \
    static const wg_op NAME##_op = {WG__OP(#NAME, 1, DOC),                                         \
                                    .differentiable = 1,                                           \
                                    .zero_gradient = "it is piecewise constant",                   \
                                    .infer = wg__infer_like,                                       \
                                    .batch = wg_batch_aligned,                                     \
                                    .forward = NAME##_forward,                                     \
                                    .vjp = zero_vjp,                                               \
                                    .jvp = wg__jvp_diagonal,                                       \
                                    .sample = sample_off_steps,                                    \
                                    .bench = wg__bench_one};                                       \
    wg_tensor *wg_##NAME(wg_tensor *x) {                                                           \
        return wg_apply_one(&NAME##_op, 1, &x, NULL);                                              \
    }

/* Values between the steps, which lie at integers and halves. */
static wg_tensor *make_off_steps(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_affine(wg__sample_distinct(generator, ndim, shape), 1, 0.0625);
}

UNARY_SAMPLE(sample_off_steps, make_off_steps)

/* ---- sign: y = -1, 0 or 1; of NaN: NaN.   dx = 0. Jumps at 0. ---- */

FLOAT_LOOPS(sign, x != x ? x : (float)((x > 0) - (x < 0)), x != x ? x : (double)((x > 0) - (x < 0)))
LOOP(sign_i32, int32_t, (x > 0) - (x < 0))
LOOP(sign_i64, int64_t, (x > 0) - (x < 0))
LOOP(sign_u8, uint8_t, x > 0)

FORWARD(sign, NULL, ALL_DTYPES(sign))

STEP(sign, "y = -1, 0 or 1. Jumps at 0; the derivative is 0.")

/* ---- floor, ceil, round, trunc: y = an integer next to x.   dx = 0. ---- */

static int round_to(wg_call *call, wg__simd_map map) {
    static const wg__loop copies[WG_DTYPE_COUNT] = {
        [WG_I32] = same_i32, [WG_I64] = same_i64, [WG_U8] = same_u8, [WG_BOOL] = same_u8};
    if (wg_dtype_is_float(call->input_specs[0].dtype))
        return wg__run_map(call, map);
    return wg__elementwise_call(call, copies, NULL);
}

#define ROUND_FORWARD(NAME, KERNEL)                                                                \
    static int NAME##_forward(wg_call *call) {                                                     \
        return round_to(call, wg__call_simd(call)->KERNEL);                                        \
    }

ROUND_FORWARD(floor, floor)
STEP(floor, "y = the largest whole number that is not above x. The derivative is 0.")

ROUND_FORWARD(ceil, ceil)
STEP(ceil, "y = the smallest whole number that is not below x. The derivative is 0.")

ROUND_FORWARD(round, rint)
STEP(round, "y = the whole number nearest to x, the even one of two. The derivative is 0.")

ROUND_FORWARD(trunc, trunc)
STEP(trunc, "y = x without its fraction. The derivative is 0.")

static const wg_op *const ops[] = {
    &cast,       &clone,    &affine,   &clamp,         &nan_to_num, &neg,        &abs_op,
    &exp_op,     &exp2_op,  &expm1_op, &log_op,        &log2_op,    &log10_op,   &log1p_op,
    &sqrt_op,    &rsqrt_op, &cbrt_op,  &reciprocal_op, &square,     &pow_scalar, &tanh_op,
    &sigmoid_op, &erf_op,   &sign_op,  &floor_op,      &ceil_op,    &round_op,   &trunc_op};

const wg__op_table wg__ops_unary = {ops, sizeof ops / sizeof *ops};
