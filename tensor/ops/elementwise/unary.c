/* Elementwise ops with options: casts, arithmetic with plain numbers, functions with parameters and
 * dropout. Also clone, and ops of three operands. */
#include "tensor/ops/elementwise/elementwise.h"

#include <float.h>
#include <math.h>

/* ---- cast: y = x in another dtype, the options.   dx = g in the dtype of x. ---- */

static int cast_infer(wg_call *call) {
    const wg_dtype dtype = *(const wg_dtype *)call->options;
    if (wg_dtype_size(dtype) == 0)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "there is no dtype %d", (int)dtype);
    call->output_specs[0] = call->input_specs[0];
    call->output_specs[0].dtype = dtype;
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

UNARY_SAMPLES_WITH(cast, wg_dtype, wg__sample_normal, WG_BF16, WG_F64)

static const wg_op cast = {
    WG__OP("cast", 1,
           "y = x in another dtype: floats to integers truncate and clamp, NaN gives 0, anything "
           "to bool is x != 0. Differentiable between floating dtypes."),
    .options_size = sizeof(wg_dtype),
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
    return wg_apply_one(&cast, 1, &x, &dtype);
}

/* ---- clone: y = x in new, contiguous memory.   dx = g. ---- */

WG__VJP(clone, g)

UNARY_SAMPLE(clone_sample, wg__sample_normal)

static const wg_op clone = {
    WG__OP("clone", 1, "y = x, copied into new, contiguous memory."),
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

/* An integer result, truncated toward zero. Whole factors use integer arithmetic, which is exact
 * (and wraps around): doubles would lose bits above 2^53. */
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
    .infer = wg__infer_like};

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

LOOP_WITH(clamp_f32, float, clamp_options,
          x<(float)o.low ? (float)o.low : x>(float) o.high ? (float)o.high : x)
LOOP_WITH(clamp_f64, double, clamp_options, x<o.low ? o.low : x> o.high ? o.high : x)

FORWARD(clamp, call->options, FLOATS(clamp))

static int clamp_infer(wg_call *call) {
    const clamp_options *options = call->options;
    if (!(options->low <= options->high))
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "low %g is above high %g; exchange them?",
                           options->low, options->high);
    return wg__infer_float(call);
}

/* A scalar to compare the elements of x with. */
static wg_tensor *limit(const wg_call *call, double value) {
    return wg_scalar(call->input_specs[0].dtype == WG_F64 ? WG_F64 : WG_F32, value);
}

static int clamp_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const clamp_options *options = call->options;
    wg_tensor *x = call->inputs[0], *low = limit(call, options->low);
    wg_tensor *inside = wg_logical_and(wg_ge(x, low), wg_le(x, limit(call, options->high)));
    gradients[0] = wg_where(inside, cotangents[0], wg_scalar(wg_tensor_dtype(cotangents[0]), 0));
    return wg__vjp_status();
}

static int clamp_kinks(const void *options, double *kinks) {
    const clamp_options *o = options;
    int count = 0;
    if (isfinite(o->low))
        kinks[count++] = o->low;
    if (isfinite(o->high))
        kinks[count++] = o->high;
    return count;
}

/* The limits lie between the values, away from kinks. */
UNARY_SAMPLES_WITH(clamp, clamp_options, wg__sample_distinct, {0.25, 0.75}, {-0.3, 0.3},
                   {-INFINITY, 0.6}, {-0.6, INFINITY}, {-1.1, 1.1})

static const wg_op clamp = {
    UNARY_WITH(clamp, clamp_options,
               "y = x limited to [low, high]. Kinks at the limits, where the derivative is 1."),
    .saves_inputs = 1, .exceptions = &(const wg_op_exceptions){.kinks = clamp_kinks},
    .infer = clamp_infer};

wg_tensor *wg_clamp(wg_tensor *x, double low, double high) {
    return wg__apply_float(&clamp, x, &(clamp_options){low, high});
}

/* ---- nan_to_num: y = x with NaN and the infinities replaced by numbers.
 * dx = g where x is finite. ---- */

typedef struct replacement {
    double nan, posinf, neginf;
} replacement;

/* Without branches, so that compilers vectorize it. */
static inline float replaced_f32(float x, float nan, float posinf, float neginf) {
    const float high = x > FLT_MAX ? posinf : x, low = x < -FLT_MAX ? neginf : high;
    return x != x ? nan : low;
}

LOOP(same_i32, int32_t, x)
LOOP(same_i64, int64_t, x)
LOOP(same_u8, uint8_t, x)
LOOP_WITH(nan_to_num_f32, float, replacement,
          replaced_f32(x, (float)o.nan, (float)o.posinf, (float)o.neginf))
LOOP_WITH(nan_to_num_f64, double, replacement,
          x != x         ? o.nan
          : x > DBL_MAX  ? o.posinf
          : x < -DBL_MAX ? o.neginf
                         : x)

/* Clamps a finite number to the range of the dtype; an infinity stays infinite. */
static double limited(double value, double most) {
    return isinf(value) ? value : value > most ? most : value < -most ? -most : value;
}

static int nan_to_num_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(nan_to_num),
                                                   INTEGERS(same), [WG_BOOL] = same_u8};
    const replacement *options = call->options;
    const wg_dtype dtype = call->input_specs[0].dtype;
    const double most = dtype == WG_F64   ? DBL_MAX
                        : dtype == WG_F32 ? (double)FLT_MAX
                                          : 3.3895313892515355e38; /* bf16: 2^128 - 2^120 */
    return wg__elementwise_call(call, loops,
                                &(replacement){limited(options->nan, most),
                                               limited(options->posinf, most),
                                               limited(options->neginf, most)});
}

WG__VJP(nan_to_num, wg_where(wg_isfinite(x), g, wg_scalar(wg_tensor_dtype(g), 0)))

UNARY_SAMPLES_WITH(nan_to_num, replacement, wg__sample_normal, {0, DBL_MAX, -DBL_MAX}, {0, 3, -3},
                   {1, 2, -2})

static const wg_op nan_to_num = {
    UNARY_WITH(nan_to_num, replacement,
               "y = x with plain numbers in the place of NaN, inf and -inf, where the "
               "derivative is 0."),
    .saves_inputs = 1, .infer = wg__infer_like};

wg_tensor *wg_nan_to_num(wg_tensor *x, double nan, double posinf, double neginf) {
    return wg_apply_one(&nan_to_num, 1, &x, &(replacement){nan, posinf, neginf});
}

/* ==== Functions of x and plain numbers, by kernels of functions.def: the options are the kernel
 * (wg__map). A fused op has kernels for forward and backward, and a decomposition with the same
 * derivatives at kinks and infinities. ==== */

static int map_infer(wg_call *call) {
    const wg__map *map = call->options;
    if (map->function == WG__POLYGAMMA && map->p < 0)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "n is %g; there are derivatives from 0 on",
                           map->p);
    if (map->function == WG__SOFTPLUS && (!isfinite(map->p) || map->p == 0 || isnan(map->q)))
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "beta %g, threshold %g; wanted numbers", map->p,
                           map->q);
    return wg__infer_float(call);
}

static int map_forward(wg_call *call) {
    return wg__run_map(call, call->options);
}

static int map_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg__map map = *(const wg__map *)call->options;
    map.kind = WG__SLOPES;
    return wg__run_slopes(call, &map, call->inputs[0], cotangents[0], gradients);
}

#define MAP_OP(NAME, DOC)                                                                          \
    WG__OP(#NAME, 1, DOC), .differentiable = 1, .saves_inputs = 1,                                 \
                           .options_size = sizeof(wg__map), .infer = map_infer,                    \
                           .batch = wg_batch_aligned, .forward = map_forward,                      \
                           .jvp = wg__jvp_diagonal, .sample = NAME##_sample, .bench = NAME##_bench

/* The decomposition of leaky_relu and elu: x above 0, else p times a function of x. Above 0, where
 * e^x is not used, 0 replaces x in it: its derivative could be infinite. */
static int rectifier_decompose(wg_call *call) {
    const wg__map *map = call->options;
    wg_tensor *x = call->inputs[0], *above = wg_gt(x, limit(call, 0)), *below = x;
    if (map->function == WG__ELU)
        below = wg_expm1(wg_masked_fill(x, above, 0));
    return wg__set_output(call, wg_where(above, x, wg_mul_scalar(below, map->p)));
}

#define FUSED_MAP_OP(NAME, DOC)                                                                    \
    WG__OP(#NAME, 1, DOC " Fused."), .differentiable = 1, .saves_inputs = 1, .saves_rounded = 1,   \
                                     .options_size = sizeof(wg__map), .infer = map_infer,          \
                                     .batch = wg_batch_aligned, .forward = map_forward,            \
                                     .vjp = map_vjp, .decompose = rectifier_decompose,             \
                                     .sample = NAME##_sample, .bench = NAME##_bench

/* ---- pow_scalar: y = x^c.   dx = g c x^(c-1), and 0 for c = 0. ---- */

static int pow_scalar_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const double c = ((const wg__map *)call->options)->p;
    if (c == 0)
        return 0;
    wg_tensor *x = call->inputs[0];
    wg_tensor *slope = c == 2 ? wg_mul_scalar(x, 2) : wg_mul_scalar(wg_pow_scalar(x, c - 1), c);
    gradients[0] = wg_mul(cotangents[0], slope);
    return wg__vjp_status();
}

UNARY_SAMPLES_WITH(pow_scalar, wg__map, wg__sample_positive, {.function = WG__POW, .p = 1.5},
                   {.function = WG_SQUARE, .p = 2}, {.function = WG__POW, .p = -1.5},
                   {.function = WG__POW, .p = 3}, {.function = WG__ROOT, .p = 0.5})

static const wg_op pow_scalar = {MAP_OP(pow_scalar, "y = x^c with a plain number c."),
                                 .vjp = pow_scalar_vjp};

wg_tensor *wg_pow_scalar(wg_tensor *x, double c) {
    const int function = c == 2 ? WG_SQUARE : c == 0.5 ? WG__ROOT : WG__POW;
    return wg__apply_float(&pow_scalar, x, &(wg__map){.function = function, .p = c});
}

/* ---- leaky_relu: y = x above 0, slope x below.   dx = g, slope g. Kink at 0: slope. ---- */

UNARY_SAMPLES_WITH(leaky_relu, wg__map, wg__sample_nonzero, {.function = WG__LEAKY_RELU, .p = 0.01},
                   {.function = WG__LEAKY_RELU, .p = 0.01}, {.function = WG__LEAKY_RELU, .p = -0.5},
                   {.function = WG__LEAKY_RELU, .p = 0}, {.function = WG__LEAKY_RELU, .p = 1.5})

static const wg_op leaky_relu = {FUSED_MAP_OP(
    leaky_relu, "y = x above 0, slope x below. Kink at 0, where the derivative is slope.")};

wg_tensor *wg_leaky_relu(wg_tensor *x, double slope) {
    return wg__apply_float(&leaky_relu, x, &(wg__map){.function = WG__LEAKY_RELU, .p = slope});
}

/* ---- elu: y = x above 0, alpha (e^x - 1) below.
 * dx = g, g alpha e^x. Kink at 0: alpha.   (Clevert et al. 2016, eq. 15.) ---- */

UNARY_SAMPLES_WITH(elu, wg__map, wg__sample_nonzero, {.function = WG__ELU, .p = 1},
                   {.function = WG__ELU, .p = 1}, {.function = WG__ELU, .p = 0.5},
                   {.function = WG__ELU, .p = -2}, {.function = WG__ELU, .p = 0})

static const wg_op elu = {FUSED_MAP_OP(
    elu, "y = x above 0, alpha (e^x - 1) below. Kink at 0, where the derivative is alpha.")};

wg_tensor *wg_elu(wg_tensor *x, double alpha) {
    return wg__apply_float(&elu, x, &(wg__map){.function = WG__ELU, .p = alpha});
}

/* ---- softplus: y = log(1 + e^(beta x)) / beta, and x where beta x > threshold.
 * dx = g / (1 + e^(-beta x)), or g. Jumps by less than e^-threshold / beta. ---- */

static int softplus_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (!call->create_graph)
        return map_vjp(call, cotangents, gradients);
    const wg__map *map = call->options;
    wg_tensor *scaled = wg_mul_scalar(call->inputs[0], map->p);
    wg_tensor *straight = wg_gt(scaled, limit(call, map->q));
    gradients[0] = wg_mul(cotangents[0], wg_masked_fill(wg_sigmoid(scaled), straight, 1));
    return wg__vjp_status();
}

static int softplus_kinks(const void *options, double *kinks) {
    const wg__map *map = options;
    kinks[0] = map->q / map->p;
    return isfinite(kinks[0]);
}

UNARY_SAMPLES_WITH(softplus, wg__map, wg__sample_steps, {.function = WG__SOFTPLUS, .p = 1, .q = 20},
                   {.function = WG__SOFTPLUS, .p = 1, .q = 20},
                   {.function = WG__SOFTPLUS, .p = 2, .q = 1},
                   {.function = WG__SOFTPLUS, .p = -0.5, .q = INFINITY},
                   {.function = WG__SOFTPLUS, .p = 0.5, .q = 2})

static const wg_op softplus = {
    MAP_OP(softplus, "y = log(1 + e^(beta x)) / beta, and x where beta x > threshold"),
    .exceptions = &(const wg_op_exceptions){.kinks = softplus_kinks}, .vjp = softplus_vjp};

wg_tensor *wg_softplus(wg_tensor *x, double beta, double threshold) {
    const wg__map map = {WG__VALUES, WG__SOFTPLUS, beta == 0 ? 1 : beta, wg__option(threshold, 20)};
    return wg__apply_float(&softplus, x, &map);
}

/* ---- polygamma: y = d^n/dx^n digamma(x).   dx = g polygamma(n + 1, x). ---- */

double wg__polygamma(int n, double x) {
    double y;
    wg__map_values(wg__simd_for(WG_F64), (wg__map){.function = WG__POLYGAMMA, .p = n}, 1, &x, &y);
    return y;
}

WG__VJP(polygamma, wg_mul(g, wg_polygamma((int)((const wg__map *)call->options)->p + 1, x)))

UNARY_SAMPLES_WITH(polygamma, wg__map, wg__sample_off_poles, {.function = WG__POLYGAMMA, .p = 1},
                   {.function = WG__POLYGAMMA, .p = 1}, {.function = WG__POLYGAMMA, .p = 0},
                   {.function = WG__POLYGAMMA, .p = 2}, {.function = WG__POLYGAMMA, .p = 3})

static const wg_op polygamma_op = {
    MAP_OP(polygamma,
           "y = the n-th derivative of digamma(x), a plain n >= 0; poles at 0, -1, -2..."),
    .vjp = polygamma_vjp};

wg_tensor *wg_polygamma(int n, wg_tensor *x) {
    return wg__apply_float(&polygamma_op, x, &(wg__map){.function = WG__POLYGAMMA, .p = n});
}

/* ==== Dropout. The mask is never stored: random word i of (seed, offset) decides element i, so the
 * vjp is the same op on the cotangent. ==== */

typedef struct dropout_options {
    double p;
    uint64_t seed, offset;
} dropout_options;

typedef struct dropout_job {
    const dropout_options *options;
    wg_dtype dtype;
    const char *x;
    char *y;
    int64_t count;
} dropout_job;

enum { GROUPS_AT_ONCE = 16, WORDS_AT_ONCE = GROUPS_AT_ONCE * WG__RANDOM_GROUP };

static void drop_groups(int64_t begin, int64_t end, void *context) {
    enum { CACHE_LINE = 64 };
    const dropout_job *job = context;
    const wg__simd *simd = wg__simd_for(job->dtype);
    uint32_t words[WORDS_AT_ONCE], limit = (uint32_t)(job->options->p * 0x1p32);
    const double scale = 1 / (1 - job->options->p);
    for (int64_t group = begin; group < end; group += GROUPS_AT_ONCE) {
        const int64_t groups = wg__smaller(end - group, GROUPS_AT_ONCE);
        const int64_t first = group * WG__RANDOM_GROUP;
        const int64_t n = wg__smaller(groups * WG__RANDOM_GROUP, job->count - first);
        const int64_t size = (int64_t)wg_dtype_size(job->dtype);
        const char *x = job->x + first * size;
        char *y = job->y + first * size;
        /* Load the memory while the random words are computed. */
        for (int64_t i = 0; i < n * size; i += CACHE_LINE) {
            __builtin_prefetch(x + i, 0, 2);
            __builtin_prefetch(y + i, 1, 2);
        }
        simd->random.words(job->options->seed, job->options->offset, (uint64_t)group, groups,
                           words);
        simd->random.drop_below(n, words, limit, scale, x, y);
    }
}

static int dropout_forward(wg_call *call) {
    wg_tensor *x = wg_contiguous(call->inputs[0]);
    if (!x)
        return -1;
    int64_t count = wg_tensor_count(x);
    dropout_job job = {.options = call->options,
                       .dtype = wg_tensor_dtype(x),
                       .x = wg_tensor_data(x),
                       .y = wg_tensor_data(call->outputs[0]),
                       .count = count};
    wg__parallel_for(wg__ceil_divide(count, WG__RANDOM_GROUP), WG__GRAIN / WG__RANDOM_GROUP,
                     drop_groups, &job);
    return 0;
}

WG__VJP(dropout, wg_apply_one(call->op, 1, &g, call->options))

WG__EXAMPLES(dropout, dropout_options, (wg__sample_normal), {{0.1, 3, 0}, "3 5"},
             {{0.5, 3, 1}, "2 70"}, {{0, 3, 2}, "4 1"})
WG__LARGE(dropout, dropout_options, "4194304", 0.1, 3, 0)

static const wg_op dropout = {
    WG__OP("dropout", 1,
           "y = 0 with probability p, else x / (1 - p); the mask is a function of (seed, offset)"),
    .options_size = sizeof(dropout_options),
    .differentiable = 1,
    .infer = wg__infer_kernel,
    .forward = dropout_forward,
    .vjp = dropout_vjp,
    .jvp = wg_jvp_linear,
    .sample = dropout_sample,
    .bench = dropout_bench};

wg_tensor *wg_dropout_op(wg_tensor *x, double p, uint64_t seed, uint64_t offset) {
    if (!x)
        return NULL;
    if (!(p >= 0 && p < 1))
        return wg__fail_null(WG_ERROR_ARGUMENT, "dropout", "probability %g; wanted 0 <= p < 1", p);
    return wg__apply_wide_one(&dropout, 1, &x, false, &(dropout_options){p, seed, offset});
}

/* ==== Selection. Elements are copied as bits, so that one loop serves all dtypes of a size. ====
 */

static int check_bool(const wg_call *call, int i) {
    if (call->input_specs[i].dtype == WG_BOOL)
        return 0;
    return wg__op_fail(call, WG_ERROR_DTYPE, "operand %d decides, and must be bool; cast it", i);
}

/* ---- where: y = condition ? a : b.
 * da = g where the condition is true, db = g where it is not. ---- */

/* The loop NAME of y = EXPRESSION in x, a and b, and in `value`, which is VALUE: reads x from FIRST
 * into FIRST_AS, a and b from elements of TYPE into AS. A common case is a number for a. */
#define TERNARY_LOOP_TO(NAME, FIRST, FIRST_AS, TYPE, AS, VALUE, EXPRESSION)                        \
    static inline void NAME##_at(int64_t n, char *const *data, int64_t sy, int64_t sx, int64_t sa, \
                                 int64_t sb, const AS value) {                                     \
        TYPE *restrict y = (TYPE *)data[0];                                                        \
        const FIRST *restrict px = (const FIRST *)data[1];                                         \
        const TYPE *restrict pa = (const TYPE *)data[2], *restrict pb = (const TYPE *)data[3];     \
        (void)value;                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const FIRST_AS x = (FIRST_AS)px[i * sx];                                               \
            const AS a = (AS)pa[i * sa], b = (AS)pb[i * sb];                                       \
            y[i * sy] = (TYPE)(EXPRESSION);                                                        \
        }                                                                                          \
    }                                                                                              \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        (void)context;                                                                             \
        const AS value = VALUE;                                                                    \
        const int64_t size = (int64_t)sizeof(TYPE);                                                \
        const int64_t sy = strides[0] / size, sx = strides[1] / (int64_t)sizeof(FIRST);            \
        const int64_t sa = strides[2] / size, sb = strides[3] / size;                              \
        if (sy == 1 && sx == 1 && sa == 1 && sb == 1)                                              \
            NAME##_at(n, data, 1, 1, 1, 1, value);                                                 \
        else if (sy == 1 && sx == 1 && sa == 0 && sb == 1)                                         \
            NAME##_at(n, data, 1, 1, 0, 1, value);                                                 \
        else                                                                                       \
            NAME##_at(n, data, sy, sx, sa, sb, value);                                             \
    }

#define WHERE_LOOP(NAME, TYPE) TERNARY_LOOP_TO(NAME, uint8_t, uint8_t, TYPE, TYPE, 0, x ? a : b)

WHERE_LOOP(where_1, uint8_t)
WHERE_LOOP(where_2, uint16_t)
WHERE_LOOP(where_4, uint32_t)
WHERE_LOOP(where_8, uint64_t)

static int choose(wg_tensor *y, wg_tensor *condition, wg_tensor *a, wg_tensor *b) {
    const size_t size = wg_dtype_size(y->spec.dtype);
    const wg__loop loop = size == 1 ? where_1 : size == 2 ? where_2 : size == 4 ? where_4 : where_8;
    wg__iterate(4, (wg_tensor *[]){y, condition, a, b}, loop, NULL);
    return 0;
}

static int where_infer(wg_call *call) {
    if (check_bool(call, 0) < 0 || wg__check_same_dtype(call, 1, 2) < 0)
        return -1;
    return wg__infer_broadcast(call, call->input_specs[1].dtype);
}

static int where_forward(wg_call *call) {
    return choose(call->outputs[0], call->inputs[0], call->inputs[1], call->inputs[2]);
}

static int where_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[0], *condition = call->inputs[0];
    if (wg__wants(call, 1))
        gradients[1] = wg__sum_like(wg_masked_fill(g, wg_logical_not(condition), 0), call, 1);
    if (wg__wants(call, 2))
        gradients[2] = wg__sum_like(wg_masked_fill(g, condition, 0), call, 2);
    return wg__vjp_status();
}

/* Three operands of equal shapes, three that broadcast, and scalars. */
#define SHAPES "2 3, 2 3, 2 3", "3, 2 1,", "2 1 2, 2, 1 3 1", ", ,", ", 1, 1"

WG__SHAPES(where, (wg__sample_truth, wg__sample_normal), SHAPES)
WG__LARGE_BY(where, int, (wg__sample_truth, wg__sample_f32), "4194304, 4194304, 4194304", 0)

static const wg_op where = {
    WG__OP("where", 3,
           "y = condition ? a : b, element by element, all three broadcast; the condition is bool "
           "and has no gradient."),
    .saves_inputs = 1,
    .differentiable = 6,
    .batch = wg_batch_aligned,
    WG__FUNCTIONS(where),
    .jvp = wg_jvp_linear,
};

wg_tensor *wg_where(wg_tensor *condition, wg_tensor *a, wg_tensor *b) {
    wg_tensor *y = NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (wg__promote(&a, &b))
        y = wg_apply_one(&where, 3, (wg_tensor *[]){condition, a, b}, NULL);
    return wg_scope_end(&scope, y);
}

/* ---- masked_fill: y = mask ? value : x.   dx = g where the mask is false. ---- */

/* The options are the value. */
static int masked_fill_infer(wg_call *call) {
    if (check_bool(call, 1) < 0 || wg__infer_broadcast(call, call->input_specs[0].dtype) < 0)
        return -1;
    if (!wg__same_shape(&call->output_specs[0], &call->input_specs[0]))
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "the mask must broadcast to x; expand x to fill more of it");
    return 0;
}

static int masked_fill_forward(wg_call *call) {
    wg_tensor *y = call->outputs[0];
    wg_tensor *value = wg_full(y->spec.dtype, 0, NULL, *(const double *)call->options);
    return value ? choose(y, call->inputs[1], value, call->inputs[0]) : -1;
}

WG__VJP(masked_fill, wg_masked_fill(g, call->inputs[1], 0))

WG__EXAMPLES(masked_fill, double, (wg__sample_normal, wg__sample_truth), {-2.5, "2 3, 2 3"},
             {-2.5, "2 3 2, 3 1"}, {-2.5, "4,"}, {-2.5, ","})
WG__LARGE_BY(masked_fill, double, (wg__sample_f32, wg__sample_truth), "4194304, 4194304", -2.5)

static const wg_op masked_fill = {
    WG__OP("masked_fill", 2,
           "y = a plain number where the bool mask, broadcast to x, is true, and x elsewhere; the "
           "mask has no gradient."),
    .options_size = sizeof(double),
    .saves_inputs = 2,
    .differentiable = 1,
    .batch = wg__batch_repeated_first,
    WG__FUNCTIONS(masked_fill),
    .jvp = wg__jvp_diagonal,
};

wg_tensor *wg_masked_fill(wg_tensor *x, wg_tensor *mask, double value) {
    return wg_apply_one(&masked_fill, 2, (wg_tensor *[]){x, mask}, &value);
}

/* ==== Arithmetic of three operands, in one pass ==== */

/* The loop NAME of x, a and b of TYPE; the options are a double, the value. */
#define TERNARY_LOOP(NAME, TYPE, AS, EXPRESSION)                                                   \
    TERNARY_LOOP_TO(NAME, TYPE, AS, TYPE, AS, (AS)(TYPE) * (const double *)context, EXPRESSION)

#define TERNARY(NAME, DOC)                                                                         \
    WG__OP(#NAME, 3, DOC), .differentiable = 7, .batch = wg_batch_aligned,                         \
                           .forward = NAME##_forward, .vjp = NAME##_vjp, .jvp = NAME##_jvp
#define VALUE(NAME, DOC)                                                                           \
    TERNARY(NAME, DOC), .options_size = sizeof(double), .saves_inputs = 6, .sample = value_sample, \
                        .bench = value_bench

static int infer_ternary(wg_call *call) {
    if (wg__infer_float(call) < 0 || wg__check_same_dtypes(call, 3) < 0)
        return -1;
    return wg__infer_broadcast(call, call->input_specs[0].dtype);
}

/* ---- lerp: y = x + b (a - x), exactly a at b = 1.
 * dx = g (1 - b), da = g b, db = g (a - x). ---- */

TERNARY_LOOP(lerp_f32, float, float, b < 0.5f ? x + b * (a - x) : a - (a - x) * (1 - b))
TERNARY_LOOP(lerp_f64, double, double, b < 0.5 ? x + b * (a - x) : a - (a - x) * (1 - b))

FORWARD(lerp, &(double){0}, FLOATS(lerp))

static wg_tensor *lerp_partial(wg_call *call, int i, wg_tensor *direction) {
    wg_tensor *weight = call->inputs[2];
    if (i == 2)
        return wg_mul(direction, wg_sub(call->inputs[1], call->inputs[0]));
    return wg_mul(direction, i == 1 ? weight : wg_affine(weight, -1, 1));
}

WG__DERIVATIVES_BY_PARTIALS(lerp)

WG__SHAPES(lerp, (wg__sample_normal), SHAPES)
WG__LARGE(lerp, int, "4194304, 4194304, 4194304", 0)

static const wg_op lerp = {
    TERNARY(lerp, "y = a + weight (b - a) with broadcasting: a at weight 0, b at 1."),
    .saves_inputs = 7, .infer = infer_ternary, .sample = lerp_sample, .bench = lerp_bench};

wg_tensor *wg_lerp(wg_tensor *a, wg_tensor *b, wg_tensor *weight) {
    return wg__apply_promoted(&lerp, 3, (wg_tensor *[]){a, b, weight}, true, NULL);
}

/* ---- addcmul: y = x + value a b.   dx = g, da = g value b, db = g value a. ---- */

TERNARY_LOOP(addcmul_f32, float, float, x + value * a * b)
TERNARY_LOOP(addcmul_f64, double, double, x + value * a * b)
TERNARY_LOOP(addcmul_i32, int32_t, uint32_t, x + value * a * b)
TERNARY_LOOP(addcmul_i64, int64_t, uint64_t, x + value * a * b)
TERNARY_LOOP(addcmul_u8, uint8_t, uint32_t, x + value * a * b)

static int addcmul_infer(wg_call *call) {
    const wg_dtype dtype = call->input_specs[0].dtype;
    const double value = *(const double *)call->options;
    if (dtype == WG_BOOL)
        return wg__op_fail(call, WG_ERROR_DTYPE, "takes numbers; cast an operand");
    const double most = dtype == WG_I64 ? 0x1p53 : dtype == WG_I32 ? 0x1p31 - 1 : 255;
    if (!wg_dtype_is_float(dtype) &&
        (value != trunc(value) || fabs(value) > most || (dtype == WG_U8 && value < 0)))
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "value %g is no integer of the operands' dtype; cast them to a float",
                           value);
    return wg__check_same_dtypes(call, 3) < 0 ? -1 : wg__infer_broadcast(call, dtype);
}

FORWARD(addcmul, call->options, FLOATS(addcmul), INTEGERS(addcmul))

static wg_tensor *scaled(const wg_call *call, wg_tensor *x) {
    const double value = *(const double *)call->options;
    return value == 1 ? x : wg_mul_scalar(x, value);
}

static wg_tensor *addcmul_partial(wg_call *call, int i, wg_tensor *direction) {
    return i == 0 ? direction : scaled(call, wg_mul(direction, call->inputs[3 - i]));
}

WG__DERIVATIVES_BY_PARTIALS(addcmul)

/* Samples of addcmul and addcdiv: b is not near 0. */
WG__SHAPES(quotient, (wg__sample_normal, wg__sample_normal, wg__sample_nonzero), SHAPES)

static int value_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const double values[] = {-0.75, 1};
    sample->options = &values[index % 2];
    return quotient_sample(index, generator, sample);
}

WG__LARGE(value, double, "4194304, 4194304, 4194304", -0.75)

static const wg_op addcmul = {
    VALUE(addcmul, "y = x + value a b with broadcasting, value a plain number."),
    .infer = addcmul_infer};

wg_tensor *wg_addcmul(wg_tensor *x, wg_tensor *a, wg_tensor *b, double value) {
    return wg__apply_promoted(&addcmul, 3, (wg_tensor *[]){x, a, b}, false, &value);
}

/* ---- addcdiv: y = x + value a / b.   dx = g, da = g value / b, db = -g value a / b^2. ---- */

TERNARY_LOOP(addcdiv_f32, float, float, x + value * a / b)
TERNARY_LOOP(addcdiv_f64, double, double, x + value * a / b)

FORWARD(addcdiv, call->options, FLOATS(addcdiv))

static wg_tensor *addcdiv_partial(wg_call *call, int i, wg_tensor *direction) {
    wg_tensor *a = call->inputs[1], *b = call->inputs[2];
    if (i == 0)
        return direction;
    wg_tensor *slope = scaled(call, wg_div(direction, b));
    return i == 1 ? slope : wg_neg(wg_mul(slope, wg_div(a, b)));
}

WG__DERIVATIVES_BY_PARTIALS(addcdiv)

static const wg_op addcdiv = {
    VALUE(addcdiv, "y = x + value a / b with broadcasting, value a plain number."),
    .infer = infer_ternary};

wg_tensor *wg_addcdiv(wg_tensor *x, wg_tensor *a, wg_tensor *b, double value) {
    return wg__apply_promoted(&addcdiv, 3, (wg_tensor *[]){x, a, b}, true, &value);
}

const wg__op_table wg__ops_unary = WG__OP_TABLE(
    &cast, &clone, &affine, &clamp, &nan_to_num, &pow_scalar, &leaky_relu, &elu, &softplus,
    &polygamma_op, &dropout, &where, &masked_fill, &lerp, &addcmul, &addcdiv);
