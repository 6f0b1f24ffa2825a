/* Elementwise ops of one tensor and plain numbers. */
#include "tensor/ops/registry.h"
#include "tensor/ops/elementwise/pair.h"

#include <float.h>
#include <math.h>

/* ---- affine: y = x scale + shift.   dx = g scale. ---- */

typedef struct affine_options {
    double scale, shift;
} affine_options;

/* An integer result, truncated toward zero. Whole factors keep to integers, which are exact (and
 * wrap around) where doubles would lose bits beyond 2^53. */
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
    static const wg__loop loops[WG_DTYPE_COUNT] = {
        [WG_F32] = affine_f32, [WG_F64] = affine_f64, [WG_I32] = affine_i32,
        [WG_I64] = affine_i64, [WG_U8] = affine_u8,   [WG_BOOL] = affine_bool};
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
    .name = "affine",
    .doc = "y = x scale + shift with plain numbers, in the dtype of x; integers are rounded toward "
           "zero.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
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

/* ---- pow_scalar: y = x^c.   dx = g c x^(c-1), which for c = 0 is 0. ---- */

typedef struct pow_options {
    double exponent;
} pow_options;

FLOAT_LOOPS(square, x *x, x *x)
FLOAT_FORWARD(square)

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
    .name = "pow_scalar",
    .doc = "y = x^c with a plain number c.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
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

/* ---- nan_to_num: y = x with plain numbers for NaN and the infinities.   dx = g where x is finite.
 * ---- */

typedef struct replacement {
    double nan, posinf, neginf;
} replacement;

static inline double replaced(double x, replacement o) {
    return x != x ? o.nan : x > DBL_MAX ? o.posinf : x < -DBL_MAX ? o.neginf : x;
}

LOOP_WITH(nan_to_num_f32, float, replacement, replaced(x, o))
LOOP_WITH(nan_to_num_f64, double, replacement, replaced(x, o))
LOOP(same_i32, int32_t, x)
LOOP(same_i64, int64_t, x)
LOOP(same_u8, uint8_t, x)

/* The largest number of a floating dtype. */
static double largest(wg_dtype dtype) {
    const double bf16 = 3.3895313892515355e38; /* 2^128 - 2^120 */
    return dtype == WG_F64 ? DBL_MAX : dtype == WG_F32 ? (double)FLT_MAX : bf16;
}

/* A number beyond those of the dtype becomes its largest, an infinity stays one. */
static double limited(double value, double most) {
    return isinf(value) ? value : value > most ? most : value < -most ? -most : value;
}

static int nan_to_num_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {
        [WG_F32] = nan_to_num_f32, [WG_F64] = nan_to_num_f64, [WG_I32] = same_i32,
        [WG_I64] = same_i64,       [WG_U8] = same_u8,         [WG_BOOL] = same_u8};
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

static const wg_op *const ops[] = {&affine, &pow_scalar, &clamp, &nan_to_num};

const wg__op_family wg__family_scalar = {ops, sizeof ops / sizeof *ops};
