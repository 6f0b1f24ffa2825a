/* Elementwise ops of one operand and plain numbers: casts, arithmetic, functions with options, and
 * dropout. */
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"

#include <float.h>
#include <math.h>

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

static inline double replaced(double x, replacement o) {
    return x != x ? o.nan : x > DBL_MAX ? o.posinf : x < -DBL_MAX ? o.neginf : x;
}

/* The same without branches, which compilers vectorize. */
static inline float replaced_f32(float x, float nan, float posinf, float neginf) {
    const float high = x > FLT_MAX ? posinf : x, low = x < -FLT_MAX ? neginf : high;
    return x != x ? nan : low;
}

LOOP(same_i32, int32_t, x)
LOOP(same_i64, int64_t, x)
LOOP(same_u8, uint8_t, x)
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
    .saves_inputs = 1, .infer = wg__infer_like};

wg_tensor *wg_nan_to_num(wg_tensor *x, double nan, double posinf, double neginf) {
    return wg_apply_one(&nan_to_num, 1, &x, &(replacement){nan, posinf, neginf});
}

/* ==== Functions of x and plain numbers, by kernels of functions.def: the options are the kernel. A
 * fused op has a kernel each way, and a decomposition with the same derivatives at kinks and at
 * infinities. ==== */

static double number_of(const wg_call *call) {
    return ((const wg__map *)call->options)->p;
}

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

#define FUSED_MAP_OP(NAME, DOC)                                                                    \
    WG__OP(#NAME, 1, DOC " Fused."), .differentiable = 1, .saves_inputs = 1, .saves_rounded = 1,   \
                                     .options_size = sizeof(wg__map), .infer = map_infer,          \
                                     .batch = wg_batch_aligned, .forward = map_forward,            \
                                     .vjp = map_vjp, .decompose = NAME##_decompose,                \
                                     .sample = NAME##_sample, .bench = NAME##_bench

/* A scalar that the elements of x are compared with. */
static wg_tensor *limit(const wg_call *call, double value) {
    return wg_scalar(call->input_specs[0].dtype == WG_F64 ? WG_F64 : WG_F32, value);
}

/* ---- pow_scalar: y = x^c.   dx = g c x^(c-1), which for c = 0 is 0. ---- */

static int pow_scalar_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const double c = number_of(call);
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

static int leaky_relu_decompose(wg_call *call) {
    wg_tensor *x = call->inputs[0];
    return wg__set_output(call,
                          wg_where(wg_gt(x, limit(call, 0)), x, wg_mul_scalar(x, number_of(call))));
}

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

/* Where x is above 0, 0 replaces it in e^x, whose derivative could be infinite. */
static int elu_decompose(wg_call *call) {
    wg_tensor *x = call->inputs[0], *above = wg_gt(x, limit(call, 0));
    wg_tensor *below = wg_mul_scalar(wg_expm1(wg_masked_fill(x, above, 0)), number_of(call));
    return wg__set_output(call, wg_where(above, x, below));
}

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
    const wg__map map = {WG__VALUES, WG__SOFTPLUS, beta == 0 ? 1 : beta,
                         threshold == 0 ? 20 : threshold};
    return wg__apply_float(&softplus, x, &map);
}

/* ---- polygamma: y = d^n/dx^n digamma(x).   dx = g polygamma(n + 1, x). ---- */

double wg__polygamma(int n, double x) {
    double y;
    wg__map_values(wg__simd_for(WG_F64), (wg__map){.function = WG__POLYGAMMA, .p = n}, 1, &x, &y);
    return y;
}

static int polygamma_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const int n = (int)number_of(call);
    gradients[0] = wg_mul(cotangents[0], wg_polygamma(n + 1, call->inputs[0]));
    return wg__vjp_status();
}

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

/* ==== Dropout, whose mask is never stored: word i of draw `offset` under `seed` decides element i,
 * so the vjp is the same op on the cotangent. ==== */

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

/* Asks for memory that will be read and written once the random words are computed. */
static void prefetch(const char *x, char *y, int64_t bytes) {
    enum { CACHE_LINE = 64 };
    for (int64_t i = 0; i < bytes; i += CACHE_LINE) {
        __builtin_prefetch(x + i, 0, 2);
        __builtin_prefetch(y + i, 1, 2);
    }
}

static void drop_groups(int64_t begin, int64_t end, void *context) {
    const dropout_job *job = context;
    const wg__simd *simd = wg__simd_for(job->dtype);
    uint32_t words[WORDS_AT_ONCE], limit = (uint32_t)(job->options->p * 0x1p32);
    double scale = 1 / (1 - job->options->p);
    for (int64_t group = begin; group < end; group += GROUPS_AT_ONCE) {
        int64_t groups = end - group < GROUPS_AT_ONCE ? end - group : GROUPS_AT_ONCE;
        int64_t first = group * WG__RANDOM_GROUP, n = groups * WG__RANDOM_GROUP;
        if (n > job->count - first)
            n = job->count - first;
        int64_t size = (int64_t)wg_dtype_size(job->dtype), at = first * size;
        prefetch(job->x + at, job->y + at, n * size);
        simd->random.words(job->options->seed, job->options->offset, (uint64_t)group, groups,
                           words);
        simd->random.drop_below(n, words, limit, scale, job->x + at, job->y + at);
    }
}

static int dropout_infer(wg_call *call) {
    return wg__check_kernel_dtype(call) < 0 ? -1 : wg__infer_like(call);
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
    wg__parallel_for((count + WG__RANDOM_GROUP - 1) / WG__RANDOM_GROUP,
                     WG__GRAIN / WG__RANDOM_GROUP, drop_groups, &job);
    return 0;
}

static int dropout_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const dropout_options *options = call->options;
    gradients[0] = wg_dropout_op(cotangents[0], options->p, options->seed, options->offset);
    return gradients[0] ? 0 : -1;
}

WG__EXAMPLES(dropout, dropout_options, (wg__sample_normal), {{0.1, 3, 0}, "3 5"},
             {{0.5, 3, 1}, "2 70"}, {{0, 3, 2}, "4 1"})

WG__LARGE(dropout, dropout_options, "4194304", 0.1, 3, 0)

static const wg_op dropout = {
    WG__LINEAR_OP(
        dropout, dropout_options,
        "y = 0 with probability p, else x / (1 - p); the mask is a function of (seed, offset)"),
};

wg_tensor *wg_dropout_op(wg_tensor *x, double p, uint64_t seed, uint64_t offset) {
    if (!x)
        return NULL;
    if (!(p >= 0 && p < 1)) {
        wg_fail(WG_ERROR_ARGUMENT, "dropout", "probability %g; wanted 0 <= p < 1", p);
        return NULL;
    }
    if (wg_tensor_dtype(x) == WG_BF16)
        return wg_cast(wg_dropout_op(wg_cast(x, WG_F32), p, seed, offset), WG_BF16);
    dropout_options options = {p, seed, offset};
    return wg_apply_one(&dropout, 1, &x, &options);
}

static const wg_op *const ops[] = {&cast,       &clone,        &affine,     &clamp,
                                   &nan_to_num, &pow_scalar,   &leaky_relu, &elu,
                                   &softplus,   &polygamma_op, &dropout};

const wg__op_table wg__ops_unary = {ops, sizeof ops / sizeof *ops};
