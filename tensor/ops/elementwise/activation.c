/* Activation functions, gated units and dropout. All activation functions but relu and softplus are
 * fused: a vector kernel each way, and a decomposition, which has the same derivatives at kinks and
 * at infinities as the kernels. */
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"
#include "tensor/simd/simd.h"

#include <math.h>

/* The vjp of an op whose kernel is the member NAME_vjp of wg__simd. */
#define MAP_VJP(NAME)                                                                              \
    static int NAME##_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {    \
        wg__simd_vjp vjp = wg__call_simd(call)->NAME##_vjp;                                        \
        return wg__run_vjp(call, vjp, call->inputs[0], cotangents[0], gradients);                  \
    }

#define FUSED(NAME, DOC)                                                                           \
    UNARY(NAME, DOC " Fused."), .saves_inputs = 1, .saves_rounded = 1, .infer = wg__infer_float,   \
                                .batch = wg_batch_aligned, .decompose = NAME##_decompose

/* The functions and the record of a fused op without options, but for NAME_decompose. */
#define FUSED_FUNCTION(NAME, SAMPLE, DOC)                                                          \
    MAP_FORWARD(NAME)                                                                              \
    MAP_VJP(NAME)                                                                                  \
    static const wg_op NAME = {FUSED(NAME, DOC), .sample = SAMPLE, .bench = wg__bench_one};        \
    wg_tensor *wg_##NAME(wg_tensor *x) {                                                           \
        return wg__apply_float(&NAME, x, NULL);                                                    \
    }

/* A scalar that the elements of x are compared with. */
static wg_tensor *limit(const wg_call *call, double value) {
    return wg_scalar(call->input_specs[0].dtype == WG_F64 ? WG_F64 : WG_F32, value);
}

/* Values on both sides of the kinks at 0, 3 and -3, and away from the latter. */
static wg_tensor *sample_steps(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_mul_scalar(wg__sample_distinct(generator, ndim, shape), 5);
}

UNARY_SAMPLE(unary_steps, sample_steps)

/* ---- relu: y = max(x, 0); of NaN: NaN.   dx = g where y > 0. Kink at 0, derivative 0. ---- */

FLOAT_LOOPS(relu, x <= 0 ? 0 : x, x <= 0 ? 0 : x)
LOOP(relu_i32, int32_t, x <= 0 ? 0 : x)
LOOP(relu_i64, int64_t, x <= 0 ? 0 : x)
LOOP(relu_u8, uint8_t, x)

FORWARD(relu, NULL, ALL_DTYPES(relu))

static int relu_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *zero = wg_scalar(call->output_specs[0].dtype, 0);
    gradients[0] = wg_masked_fill(cotangents[0], wg_le(call->outputs[0], zero), 0);
    return wg__vjp_status();
}

static const wg_op relu = {
    UNARY_PRIMITIVE(relu, "y = max(x, 0). Kink at 0, where the derivative is 0."),
    .saves_outputs = 1, .infer = wg__infer_like, .batch = wg_batch_aligned,
    .sample = wg__unary_nonzero};

wg_tensor *wg_relu(wg_tensor *x) {
    return wg_apply_one(&relu, 1, &x, NULL);
}

/* ---- leaky_relu: y = x above 0, slope x below.   dx = g, slope g. Kink at 0: slope. ---- */

typedef struct leaky_relu_options {
    double slope;
} leaky_relu_options;

static double slope_of(const wg_call *call) {
    return ((const leaky_relu_options *)call->options)->slope;
}

static int leaky_relu_forward(wg_call *call) {
    return wg__run_map_by(call, wg__call_simd(call)->leaky_relu, slope_of(call), 0);
}

static int leaky_relu_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    return wg__run_vjp_by(call, wg__call_simd(call)->leaky_relu_vjp, slope_of(call), 0,
                          call->inputs[0], cotangents[0], gradients);
}

static int leaky_relu_decompose(wg_call *call) {
    wg_tensor *x = call->inputs[0];
    return wg__set_output(call,
                          wg_where(wg_gt(x, limit(call, 0)), x, wg_mul_scalar(x, slope_of(call))));
}

UNARY_SAMPLES_WITH(leaky_relu, leaky_relu_options, wg__sample_nonzero, {0.01}, {0.01}, {-0.5}, {0},
                   {1.5})

static const wg_op leaky_relu = {
    FUSED(leaky_relu, "y = x above 0, slope x below. Kink at 0, where the derivative is slope."),
    .options_size = sizeof(leaky_relu_options), .sample = leaky_relu_sample,
    .bench = leaky_relu_bench};

wg_tensor *wg_leaky_relu(wg_tensor *x, double slope) {
    return wg__apply_float(&leaky_relu, x, &(leaky_relu_options){slope});
}

/* ---- elu: y = x above 0, alpha (e^x - 1) below.
 * dx = g, g alpha e^x. Kink at 0: alpha.   (Clevert et al. 2016, eq. 15.) ---- */

typedef struct elu_options {
    double alpha;
} elu_options;

static double alpha_of(const wg_call *call) {
    return ((const elu_options *)call->options)->alpha;
}

static int elu_forward(wg_call *call) {
    return wg__run_map_by(call, wg__call_simd(call)->elu, alpha_of(call), 0);
}

static int elu_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    return wg__run_vjp_by(call, wg__call_simd(call)->elu_vjp, alpha_of(call), 0, call->inputs[0],
                          cotangents[0], gradients);
}

/* Where x is above 0, 0 replaces it in e^x, whose derivative could be infinite. */
static int elu_decompose(wg_call *call) {
    wg_tensor *x = call->inputs[0], *above = wg_gt(x, limit(call, 0));
    wg_tensor *below = wg_mul_scalar(wg_expm1(wg_masked_fill(x, above, 0)), alpha_of(call));
    return wg__set_output(call, wg_where(above, x, below));
}

UNARY_SAMPLES_WITH(elu, elu_options, wg__sample_nonzero, {1}, {1}, {0.5}, {-2}, {0})

static const wg_op elu = {
    FUSED(elu, "y = x above 0, alpha (e^x - 1) below. Kink at 0, where the derivative is alpha."),
    .options_size = sizeof(elu_options), .sample = elu_sample, .bench = elu_bench};

wg_tensor *wg_elu(wg_tensor *x, double alpha) {
    return wg__apply_float(&elu, x, &(elu_options){alpha});
}

/* ---- softplus: y = log(1 + e^(beta x)) / beta, and x where beta x > threshold.
 * dx = g / (1 + e^(-beta x)), or g. Jumps by less than e^-threshold / beta. ---- */

typedef struct softplus_options {
    double beta, threshold;
} softplus_options;

static int softplus_infer(wg_call *call) {
    const softplus_options *options = call->options;
    if (!isfinite(options->beta) || options->beta == 0 || isnan(options->threshold))
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "beta %g, threshold %g; wanted numbers",
                           options->beta, options->threshold);
    return wg__infer_float(call);
}

static int softplus_forward(wg_call *call) {
    const softplus_options *options = call->options;
    return wg__run_map_by(call, wg__call_simd(call)->softplus, options->beta, options->threshold);
}

static int softplus_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const softplus_options *options = call->options;
    wg_tensor *x = call->inputs[0], *g = cotangents[0];
    if (!call->create_graph)
        return wg__run_vjp_by(call, wg__call_simd(call)->softplus_vjp, options->beta,
                              options->threshold, x, g, gradients);
    wg_tensor *scaled = wg_mul_scalar(x, options->beta);
    wg_tensor *straight = wg_gt(scaled, limit(call, options->threshold));
    gradients[0] = wg_mul(g, wg_masked_fill(wg_sigmoid(scaled), straight, 1));
    return wg__vjp_status();
}

UNARY_SAMPLES_WITH(softplus, softplus_options, sample_steps, {1, 20}, {1, 20}, {2, 1},
                   {-0.5, INFINITY}, {0.5, 2})

static const wg_op softplus = {
    UNARY_WITH(softplus, softplus_options,
               "y = log(1 + e^(beta x)) / beta, and x where beta x > threshold"),
    .saves_inputs = 1, .infer = softplus_infer, .batch = wg_batch_aligned};

wg_tensor *wg_softplus(wg_tensor *x, double beta, double threshold) {
    const softplus_options options = {beta == 0 ? 1 : beta, threshold == 0 ? 20 : threshold};
    return wg__apply_float(&softplus, x, &options);
}

/* ---- log_sigmoid: y = -log(1 + e^-x).   dx = g / (1 + e^x). ---- */

static int log_sigmoid_decompose(wg_call *call) {
    return wg__set_output(call, wg_neg(wg_softplus(wg_neg(call->inputs[0]), 1, INFINITY)));
}

FUSED_FUNCTION(log_sigmoid, wg__unary_normal, "y = log(1 / (1 + e^-x)), without overflow.")

/* ---- silu: y = x s, s = 1 / (1 + e^-x).
 * dx = g s (1 + x (1 - s)).   (Ramachandran et al. 2017, swish.) ---- */

static int silu_decompose(wg_call *call) {
    wg_tensor *x = call->inputs[0];
    return wg__set_output(call, wg_mul(x, wg_sigmoid(x)));
}

FUSED_FUNCTION(silu, wg__unary_normal, "y = x / (1 + e^-x).")

/* ---- mish: y = x tanh(log(1 + e^x)).   (Misra 2020, eq. 1.) ---- */

static int mish_decompose(wg_call *call) {
    wg_tensor *x = call->inputs[0];
    return wg__set_output(call, wg_mul(x, wg_tanh(wg_softplus(x, 1, INFINITY))));
}

FUSED_FUNCTION(mish, wg__unary_normal, "y = x tanh(log(1 + e^x)).")

/* ---- hardsigmoid: y = x/6 + 1/2, limited to [0, 1].   dx = g/6 where -3 < x < 3. ---- */

static int hardsigmoid_decompose(wg_call *call) {
    wg_tensor *x = call->inputs[0], *line = wg_affine(x, 1.0 / 6, 0.5);
    wg_tensor *up = wg_masked_fill(line, wg_le(x, limit(call, -3)), 0);
    return wg__set_output(call, wg_masked_fill(up, wg_ge(x, limit(call, 3)), 1));
}

FUSED_FUNCTION(hardsigmoid, unary_steps,
               "y = x/6 + 1/2 limited to [0, 1]. Kinks at -3 and 3, where the derivative is 0.")

/* ---- hardswish: y = x hardsigmoid(x).
 * dx = g (x/3 + 1/2) where -3 < x < 3, 0 below and g above.   (Howard et al. 2019, section
 * 5.2.) ---- */

/* Where another branch is taken, 0 replaces x in the curve, whose derivative could be infinite. */
static int hardswish_decompose(wg_call *call) {
    wg_tensor *x = call->inputs[0];
    wg_tensor *low = wg_le(x, limit(call, -3)), *high = wg_ge(x, limit(call, 3));
    wg_tensor *middle = wg_masked_fill(x, wg_logical_or(low, high), 0);
    wg_tensor *curve = wg_mul(middle, wg_affine(middle, 1.0 / 6, 0.5));
    return wg__set_output(call, wg_where(high, x, curve));
}

FUSED_FUNCTION(hardswish, unary_steps,
               "y = x (x/6 + 1/2 limited to [0, 1]). Kinks at -3 and 3, where the "
               "derivatives are 0 and 1.")

/* ---- gelu: y = x Phi(x) = x/2 (1 + erf(x / sqrt 2)).
 * dx = g (Phi(x) + x phi(x)).   (Hendrycks & Gimpel 2016.) ---- */

static int gelu_decompose(wg_call *call) {
    wg_tensor *x = call->inputs[0];
    wg_tensor *cdf = wg_affine(wg_erf(wg_mul_scalar(x, M_SQRT1_2)), 0.5, 0.5);
    return wg__set_output(call, wg_mul(x, cdf));
}

FUSED_FUNCTION(gelu, wg__unary_normal, "y = x Phi(x) = x/2 (1 + erf(x / sqrt 2)).")

/* ---- gelu_tanh: y = x/2 (1 + t), t = tanh(u), u = sqrt(2/pi) (x + 0.044715 x^3).
 * dx = g ((1 + t)/2 + x/2 (1 - t^2) u'). ---- */

static int gelu_tanh_decompose(wg_call *call) {
    const double scale = M_SQRT1_2 * M_2_SQRTPI; /* sqrt(2/pi) */
    wg_tensor *x = call->inputs[0];
    wg_tensor *cube = wg_mul(wg_mul(x, x), x);
    wg_tensor *inner = wg_mul_scalar(wg_add(x, wg_mul_scalar(cube, 0.044715)), scale);
    return wg__set_output(call, wg_mul(x, wg_affine(wg_tanh(inner), 0.5, 0.5)));
}

FUSED_FUNCTION(gelu_tanh, wg__unary_normal, "y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).")

/* ==== Gated units, y = f(gate) value: a sigmoid or an activation function of one projection scales
 * another   (Dauphin et al. 2017; Shazeer 2020, "GLU variants improve transformer"). Fused: one
 * pass forward, and one backward that gives both gradients. ==== */

static int gate_infer(wg_call *call) {
    const wg_spec *gate = &call->input_specs[0], *value = &call->input_specs[1];
    if (wg__check_same_dtype(call, 0, 1) < 0)
        return -1;
    if (!wg__same_shape(gate, value))
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "the shapes of gate and value differ; wanted equal ones");
    return wg__infer_float(call);
}

static int gate_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const int64_t shapes[][3] = {{2, 3, 1}, {1, 2, 35}, {2, 2, 2}};
    if (index >= 3)
        return 0;
    sample->inputs[0] = wg__sample_nonzero(generator, 3, shapes[index]);
    sample->inputs[1] = wg_randn(generator, WG_F64, 3, shapes[index]);
    return wg__sample_status(sample, 2);
}

/* The gated unit NAME; FUNCTION is its activation function. */
#define GATE(NAME, FUNCTION, DOC)                                                                  \
    PAIR_FORWARD(NAME)                                                                             \
    static int NAME##_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {    \
        return wg__run_gate_vjp(call, wg__call_simd(call)->NAME##_vjp, cotangents[0], gradients);  \
    }                                                                                              \
    static int NAME##_decompose(wg_call *call) {                                                   \
        return wg__set_output(call, wg_mul(FUNCTION(call->inputs[0]), call->inputs[1]));           \
    }                                                                                              \
    static const wg_op NAME = {                                                                    \
        WG__OP(#NAME, 2, DOC),     .saves_inputs = 3,     .saves_rounded = 3,                      \
        .differentiable = 3,       .infer = gate_infer,   .batch = wg__batch_leading,              \
        .forward = NAME##_forward, .vjp = NAME##_vjp,     .decompose = NAME##_decompose,           \
        .sample = gate_sample,     .bench = wg__bench_two};                                        \
    wg_tensor *wg_##NAME(wg_tensor *gate, wg_tensor *value) {                                      \
        return wg__apply_two(&NAME, gate, value, true);                                            \
    }

/* ---- glu, swiglu, geglu, reglu.   dvalue = g f(gate), dgate = g value f'(gate). ---- */

GATE(glu, wg_sigmoid, "y = sigmoid(gate) value, of equal shapes. Fused.")
GATE(swiglu, wg_silu, "y = silu(gate) value, of equal shapes. Fused.")
GATE(geglu, wg_gelu, "y = gelu(gate) value, of equal shapes. Fused.")
GATE(reglu, wg_relu, "y = max(gate, 0) value, of equal shapes. Kink at gate 0: 0. Fused.")

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
    wg_dtype dtype = call->input_specs[0].dtype;
    if (dtype != WG_F32 && dtype != WG_F64)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted f32 or f64; cast it");
    call->output_specs[0] = call->input_specs[0];
    return 0;
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

static int dropout_bench(wg_generator *generator, wg_sample *sample) {
    static const dropout_options options = {0.1, 3, 0};
    sample->options = &options;
    return wg__bench_one(generator, sample);
}

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

static const wg_op *const ops[] = {
    &relu,        &leaky_relu,  &elu,       &gelu, &gelu_tanh, &silu,  &mish,  &softplus,
    &log_sigmoid, &hardsigmoid, &hardswish, &glu,  &swiglu,    &geglu, &reglu, &dropout};

const wg__op_table wg__ops_activation = {ops, sizeof ops / sizeof *ops};
