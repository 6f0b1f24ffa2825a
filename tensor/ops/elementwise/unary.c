/* Elementwise ops of one operand: casts, arithmetic with plain numbers, powers, exponentials and
 * logarithms, sign and rounding. special.c has the trigonometric and the special functions. */
#include "tensor/convert.h"
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

static int cast_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const cast_options to_f64 = {WG_F64};
    sample->options = &to_f64;
    return wg__sample_unary(index, generator, sample, wg__sample_normal);
}

static int cast_bench(wg_generator *generator, wg_sample *sample) {
    static const cast_options to_bf16 = {WG_BF16};
    sample->options = &to_bf16;
    return wg__bench_one(generator, sample);
}

static const wg_op cast = {
    WG__OP("cast", 1,
           "y = x in another dtype: floats to integers truncate and clamp, NaN gives 0, anything "
           "to bool is x != 0. Differentiable between floating dtypes."),
    .options_size = sizeof(cast_options),
    .differentiable = 1,
    .infer = cast_infer,
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

static int clone_sample(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_unary(index, generator, sample, wg__sample_normal);
}

static const wg_op clone = {
    WG__OP("clone", 1, "y = x, copied into contiguous memory of its own."),
    .differentiable = 1,
    .infer = wg__infer_like,
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

static int affine_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(affine),
                                                   INTEGERS(affine), [WG_BOOL] = affine_bool};
    return wg__elementwise_call(call, loops, call->options);
}

/* Adding -0 instead of 0 keeps the sign of a zero. */
static int affine_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const affine_options *options = call->options;
    gradients[0] =
        options->scale == 1 ? cotangents[0] : wg_affine(cotangents[0], options->scale, -0.0);
    return wg__vjp_status();
}

static int affine_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const affine_options options = {-1.5, 0.25};
    sample->options = &options;
    return wg__sample_unary(index, generator, sample, wg__sample_normal);
}

static int affine_bench(wg_generator *generator, wg_sample *sample) {
    static const affine_options options = {-1.5, 0.25};
    sample->options = &options;
    return wg__bench_one(generator, sample);
}

static const wg_op affine = {
    WG__OP("affine", 1,
           "y = x scale + shift with plain numbers, in the dtype of x; integers are rounded toward "
           "zero."),
    .options_size = sizeof(affine_options),
    .differentiable = 1,
    .infer = wg__infer_like,
    .forward = affine_forward,
    .vjp = affine_vjp,
    .jvp = wg__jvp_diagonal,
    .sample = affine_sample,
    .bench = affine_bench,
};

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

/* `context` holds the two limits as elements of the dtype. */
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
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(clamp)};
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

/* The limits lie between the values, away from kinks. */
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

/* ---- nan_to_num: y = x with NaN and the infinities replaced by numbers.
 * dx = g where x is finite. ---- */

typedef struct replacement {
    double nan, posinf, neginf;
} replacement;

static inline double replaced(double x, replacement o) {
    return x != x ? o.nan : x > DBL_MAX ? o.posinf : x < -DBL_MAX ? o.neginf : x;
}

LOOP_WITH(nan_to_num_f32, float, replacement, replaced(x, o))
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

static int nan_to_num_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const replacement options[] = {{0, 3, -3}, {1, 2, -2}};
    sample->options = &options[index % 2];
    return wg__sample_unary(index, generator, sample, wg__sample_normal);
}

static int nan_to_num_bench(wg_generator *generator, wg_sample *sample) {
    static const replacement options = {0, DBL_MAX, -DBL_MAX};
    sample->options = &options;
    return wg__bench_one(generator, sample);
}

static const wg_op nan_to_num = {
    UNARY(nan_to_num, "y = x with plain numbers in the place of NaN, inf and -inf, where the "
                      "derivative is 0."),
    .options_size = sizeof(replacement),
    .saves_inputs = 1,
    .infer = wg__infer_like,
    .jvp = wg__jvp_diagonal,
    .sample = nan_to_num_sample,
    .bench = nan_to_num_bench};

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

static int neg_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(neg), INTEGERS(neg)};
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
    return wg_apply_one(&neg, 1, &x, NULL);
}

/* ---- abs: y = |x|.   dx = g sign(x). Kink at 0, with derivative 0. ---- */

FLOAT_LOOPS(abs, fabsf(x), fabs(x))
LOOP(abs_i32, int32_t, x < 0 ? 0u - (uint32_t)x : (uint32_t)x)
LOOP(abs_i64, int64_t, x < 0 ? 0u - (uint64_t)x : (uint64_t)x)

static int abs_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {
        FLOATS(abs), [WG_I32] = abs_i32, [WG_I64] = abs_i64, [WG_U8] = same_u8,
        [WG_BOOL] = same_u8};
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
    return wg_apply_one(&abs_op, 1, &x, NULL);
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
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(square), INTEGERS(square)};
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
    return wg_scope_end(&scope, wg_apply_one(&square, 1, &x, NULL));
}

/* ---- pow_scalar: y = x^c.   dx = g c x^(c-1), which for c = 0 is 0. ---- */

typedef struct pow_options {
    double exponent;
} pow_options;

static int pow_scalar_forward(wg_call *call) {
    const double c = ((const pow_options *)call->options)->exponent;
    return c == 2 ? square_forward(call) : wg__run_pair_with(call, wg__call_simd(call)->pow, c);
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

static int pow_scalar_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const pow_options options[] = {{2}, {-1.5}, {3}, {0.5}};
    sample->options = &options[index % 4];
    return wg__sample_unary(index, generator, sample, wg__sample_positive);
}

static int pow_scalar_bench(wg_generator *generator, wg_sample *sample) {
    static const pow_options options = {1.5};
    sample->options = &options;
    return wg__bench_one(generator, sample);
}

static const wg_op pow_scalar = {
    WG__OP("pow_scalar", 1, "y = x^c with a plain number c."),
    .options_size = sizeof(pow_options),
    .saves_inputs = 1,
    .differentiable = 1,
    .infer = wg__infer_float,
    .forward = pow_scalar_forward,
    .vjp = pow_scalar_vjp,
    .jvp = wg__jvp_diagonal,
    .sample = pow_scalar_sample,
    .bench = pow_scalar_bench,
};

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

static int zero_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call, (void)cotangents, (void)gradients;
    return 0;
}

#define STEP(NAME, DOC)                                                                            \
    {                                                                                              \
        WG__OP(#NAME, 1, DOC), .differentiable = 1, .zero_gradient = "it is piecewise constant",   \
                               .infer = wg__infer_like, .forward = NAME##_forward,                 \
                               .vjp = zero_vjp, .jvp = wg__jvp_diagonal,                           \
                               .sample = sample_off_steps, .bench = wg__bench_one                  \
    }

/* Values between the steps, which lie at integers and halves. */
static wg_tensor *make_off_steps(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_affine(wg__sample_distinct(generator, ndim, shape), 1, 0.0625);
}

static int sample_off_steps(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_unary(index, generator, sample, make_off_steps);
}

/* ---- sign: y = -1, 0 or 1; of NaN: NaN.   dx = 0. Jumps at 0. ---- */

FLOAT_LOOPS(sign, x != x ? x : (float)((x > 0) - (x < 0)), x != x ? x : (double)((x > 0) - (x < 0)))
LOOP(sign_i32, int32_t, (x > 0) - (x < 0))
LOOP(sign_i64, int64_t, (x > 0) - (x < 0))
LOOP(sign_u8, uint8_t, x > 0)

static int sign_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {ALL_DTYPES(sign)};
    return wg__elementwise_call(call, loops, NULL);
}

static const wg_op sign = STEP(sign, "y = -1, 0 or 1. Jumps at 0; the derivative is 0.");

wg_tensor *wg_sign(wg_tensor *x) {
    return wg_apply_one(&sign, 1, &x, NULL);
}

/* ---- floor, ceil, round, trunc: y = an integer next to x.   dx = 0. ---- */

static int round_to(wg_call *call, wg__simd_map map) {
    static const wg__loop copies[WG_DTYPE_COUNT] = {
        [WG_I32] = same_i32, [WG_I64] = same_i64, [WG_U8] = same_u8, [WG_BOOL] = same_u8};
    if (wg_dtype_is_float(call->input_specs[0].dtype))
        return wg__run_map(call, map);
    return wg__elementwise_call(call, copies, NULL);
}

static int floor_forward(wg_call *call) {
    return round_to(call, wg__call_simd(call)->floor);
}

static const wg_op floor_op =
    STEP(floor, "y = the largest whole number that is not above x. The derivative is 0.");

wg_tensor *wg_floor(wg_tensor *x) {
    return wg_apply_one(&floor_op, 1, &x, NULL);
}

static int ceil_forward(wg_call *call) {
    return round_to(call, wg__call_simd(call)->ceil);
}

static const wg_op ceil_op =
    STEP(ceil, "y = the smallest whole number that is not below x. The derivative is 0.");

wg_tensor *wg_ceil(wg_tensor *x) {
    return wg_apply_one(&ceil_op, 1, &x, NULL);
}

static int round_forward(wg_call *call) {
    return round_to(call, wg__call_simd(call)->rint);
}

static const wg_op round_op =
    STEP(round, "y = the whole number nearest to x, the even one of two. The derivative is 0.");

wg_tensor *wg_round(wg_tensor *x) {
    return wg_apply_one(&round_op, 1, &x, NULL);
}

static int trunc_forward(wg_call *call) {
    return round_to(call, wg__call_simd(call)->trunc);
}

static const wg_op trunc_op = STEP(trunc, "y = x without its fraction. The derivative is 0.");

wg_tensor *wg_trunc(wg_tensor *x) {
    return wg_apply_one(&trunc_op, 1, &x, NULL);
}

static const wg_op *const ops[] = {
    &cast,    &clone,   &affine,   &clamp,      &nan_to_num, &neg,        &abs_op,
    &exp_op,  &exp2_op, &expm1_op, &log_op,     &log2_op,    &log10_op,   &log1p_op,
    &sqrt_op, &rsqrt,   &cbrt_op,  &reciprocal, &square,     &pow_scalar, &tanh_op,
    &sigmoid, &erf_op,  &sign,     &floor_op,   &ceil_op,    &round_op,   &trunc_op};

const wg__op_table wg__ops_unary = {ops, sizeof ops / sizeof *ops};
