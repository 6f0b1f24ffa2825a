/* Elementwise functions of one operand. Those that have a vector kernel (tensor/simd) run it on
 * contiguous stretches; the others are plain loops that the compiler vectorises. */
#include "tensor/ops/elementwise.h"
#include "tensor/ops/families.h"
#include "tensor/simd/simd.h"

#include <math.h>
#include <string.h>

/* ---- Loops ---- */

/* The loop NAME of y = EXPRESSION in x. */
#define LOOP(NAME, TYPE, EXPRESSION)                                                               \
    static inline void NAME##_at(int64_t n, char *const *data, int64_t sy, int64_t sx) {           \
        TYPE *restrict y = (TYPE *)data[0];                                                        \
        const TYPE *restrict px = (const TYPE *)data[1];                                           \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const TYPE x = px[i * sx];                                                             \
            y[i * sy] = (TYPE)(EXPRESSION);                                                        \
        }                                                                                          \
    }                                                                                              \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        (void)context;                                                                             \
        const int64_t size = (int64_t)sizeof(TYPE);                                                \
        if (strides[0] == size && strides[1] == size)                                              \
            NAME##_at(n, data, 1, 1);                                                              \
        else                                                                                       \
            NAME##_at(n, data, strides[0] / size, strides[1] / size);                              \
    }

/* The loops of f32 and f64, and the forward of an op that has no others. */
#define FLOAT_LOOPS(NAME, F32_EXPRESSION, F64_EXPRESSION)                                          \
    LOOP(NAME##_f32, float, F32_EXPRESSION)                                                        \
    LOOP(NAME##_f64, double, F64_EXPRESSION)

#define FLOAT_FORWARD(NAME)                                                                        \
    static int NAME##_forward(wg_call *call) {                                                     \
        static const wg__loop loops[WG_DTYPE_COUNT] = {                                            \
            [WG_F32] = NAME##_f32, [WG_F64] = NAME##_f64};                                         \
        return wg__elementwise_call(call, loops, NULL);                                            \
    }

/* A vector kernel: y = f(x), or dx = dy f'(x). */
typedef struct kernel {
    wg__simd_map map;
    wg__simd_vjp vjp;
} kernel;

/* How many elements a kernel takes at a time where they must be gathered from strides. */
#define BLOCK 256

static void gather(int64_t n, size_t size, const char *from, int64_t stride, char *to) {
    if (size == sizeof(float))
        for (int64_t i = 0; i < n; i++)
            memcpy(to + 4 * i, from + i * stride, 4);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(to + 8 * i, from + i * stride, 8);
}

/* A stretch of an operand of which every element follows the last: its own memory, or a copy. */
static const void *stretch(int64_t n, size_t size, const char *from, int64_t stride, void *room) {
    if (stride == (int64_t)size)
        return from;
    gather(n, size, from, stride, room);
    return room;
}

/* operands: y, x; or dx, x, dy. The first is contiguous: it is an output, or like one. */
static void run_kernel(int64_t n, size_t size, char *const *data, const int64_t *strides,
                       const kernel *kernel) {
    double room_x[BLOCK], room_dy[BLOCK];
    const bool whole = strides[1] == (int64_t)size && (!kernel->vjp || strides[2] == (int64_t)size);
    const int64_t step = whole ? n : BLOCK;
    for (int64_t begin = 0; begin < n; begin += step) {
        const int64_t count = n - begin < step ? n - begin : step;
        void *y = data[0] + begin * (int64_t)size;
        const void *x = stretch(count, size, data[1] + begin * strides[1], strides[1], room_x);
        if (kernel->map != NULL)
            kernel->map(count, x, y);
        else
            kernel->vjp(count, x,
                        stretch(count, size, data[2] + begin * strides[2], strides[2], room_dy), y);
    }
}

static void kernel_f32(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    run_kernel(n, sizeof(float), data, strides, context);
}

static void kernel_f64(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    run_kernel(n, sizeof(double), data, strides, context);
}

static const wg__loop kernel_loops[WG_DTYPE_COUNT] = {[WG_F32] = kernel_f32, [WG_F64] = kernel_f64};

static const wg__simd *simd_for(const wg_call *call) {
    return wg__simd_for(call->input_specs[0].dtype == WG_F64 ? WG_F64 : WG_F32);
}

static int run_map(wg_call *call, wg__simd_map map) {
    return wg__elementwise_call(call, kernel_loops, &(kernel){.map = map});
}

/* g f', from the operand or the result of f. What was saved is overwritten if it is the last time
 * that anybody could read it. */
static int run_vjp(wg_call *call, wg__simd_vjp vjp, wg_tensor *x_or_y, wg_tensor *g,
                   wg_tensor **gradients) {
    const bool reuse =
        call->last_use && wg__tensor_is_sole(x_or_y) && wg_tensor_is_contiguous(x_or_y);
    wg_tensor *dx = reuse ? wg__tensor_view(x_or_y, &x_or_y->spec, x_or_y->strides, x_or_y->offset)
                          : wg_empty_like(x_or_y);
    if (dx == NULL)
        return -1;
    wg__elementwise(3, (wg_tensor *[]){dx, x_or_y, g}, kernel_loops, &(kernel){.vjp = vjp});
    gradients[0] = dx;
    return 0;
}

/* ---- What the records share ---- */

#define UNARY(NAME, DOC)                                                                           \
    .name = #NAME, .doc = DOC, .min_inputs = 1, .max_inputs = 1, .output_count = 1,                \
    .differentiable = 1, .forward = NAME##_forward, .vjp = NAME##_vjp

static int sample_normal(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_unary(index, generator, sample, wg__sample_normal);
}

static int sample_positive(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_unary(index, generator, sample, wg__sample_positive);
}

static int sample_nonzero(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_unary(index, generator, sample, wg__sample_nonzero);
}

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

static const wg_op neg = {UNARY(neg, "y = -x"), .infer = neg_infer, .sample = sample_normal};

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

static const wg_op abs_op = {UNARY(abs, "y = |x|. Kink at 0, where the derivative is 0."),
                             .saves_inputs = 1, .infer = wg__infer_like, .sample = sample_nonzero};

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

static const wg_op sign = {UNARY(sign, "y = -1, 0 or 1. Jumps at 0; the derivative is 0."),
                           .infer = wg__infer_float, .sample = sample_nonzero};

wg_tensor *wg_sign(wg_tensor *x) {
    return wg__apply_float(&sign, x, NULL);
}

/* ---- exp: y = e^x.   dx = g y. ---- */

static int exp_forward(wg_call *call) {
    return run_map(call, simd_for(call)->exp);
}

static int exp_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(cotangents[0], call->outputs[0]);
    return wg__vjp_status();
}

static const wg_op exp_op = {UNARY(exp, "y = e^x"), .saves_outputs = 1, .infer = wg__infer_float,
                             .sample = sample_normal};

wg_tensor *wg_exp(wg_tensor *x) {
    return wg__apply_float(&exp_op, x, NULL);
}

/* ---- log: y = ln x.   dx = g / x. ---- */

static int log_forward(wg_call *call) {
    return run_map(call, simd_for(call)->log);
}

static int log_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_div(cotangents[0], call->inputs[0]);
    return wg__vjp_status();
}

static const wg_op log_op = {UNARY(log, "y = ln x; -inf at 0, NaN below"), .saves_inputs = 1,
                             .infer = wg__infer_float, .sample = sample_positive};

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

static const wg_op sqrt_op = {UNARY(sqrt, "y = x^(1/2); NaN below 0"), .saves_outputs = 1,
                              .infer = wg__infer_float, .sample = sample_positive};

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

static const wg_op rsqrt = {UNARY(rsqrt, "y = x^(-1/2); inf at 0, NaN below"), .saves_outputs = 1,
                            .infer = wg__infer_float, .sample = sample_positive};

wg_tensor *wg_rsqrt(wg_tensor *x) {
    return wg__apply_float(&rsqrt, x, NULL);
}

/* ---- tanh.   dx = g (1 - y^2). ---- */

static int tanh_forward(wg_call *call) {
    return run_map(call, simd_for(call)->tanh);
}

static int tanh_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[0], *y = call->outputs[0];
    if (!call->create_graph)
        return run_vjp(call, simd_for(call)->tanh_vjp, y, g, gradients);
    gradients[0] = wg_mul(g, wg_affine(wg_mul(y, y), -1, 1));
    return wg__vjp_status();
}

static const wg_op tanh_op = {UNARY(tanh, "y = tanh x"), .saves_outputs = 1,
                              .infer = wg__infer_float, .sample = sample_normal};

wg_tensor *wg_tanh(wg_tensor *x) {
    return wg__apply_float(&tanh_op, x, NULL);
}

/* ---- sigmoid: y = 1 / (1 + e^-x).   dx = g y (1 - y). ---- */

static int sigmoid_forward(wg_call *call) {
    return run_map(call, simd_for(call)->sigmoid);
}

static int sigmoid_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[0], *y = call->outputs[0];
    if (!call->create_graph)
        return run_vjp(call, simd_for(call)->sigmoid_vjp, y, g, gradients);
    gradients[0] = wg_mul(g, wg_mul(y, wg_affine(y, -1, 1)));
    return wg__vjp_status();
}

static const wg_op sigmoid = {UNARY(sigmoid, "y = 1 / (1 + e^-x)"), .saves_outputs = 1,
                              .infer = wg__infer_float, .sample = sample_normal};

wg_tensor *wg_sigmoid(wg_tensor *x) {
    return wg__apply_float(&sigmoid, x, NULL);
}

/* ---- erf.   dx = g 2/sqrt(pi) e^(-x^2). ---- */

static int erf_forward(wg_call *call) {
    return run_map(call, simd_for(call)->erf);
}

static int erf_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[0], *x = call->inputs[0];
    if (!call->create_graph)
        return run_vjp(call, simd_for(call)->erf_vjp, x, g, gradients);
    wg_tensor *density = wg_exp(wg_neg(wg_mul(x, x)));
    gradients[0] = wg_mul(g, wg_mul_scalar(density, M_2_SQRTPI));
    return wg__vjp_status();
}

static const wg_op erf_op = {
    UNARY(erf, "y = erf x = 2/sqrt(pi) times the integral of e^(-t^2), 0 to x"), .saves_inputs = 1,
    .infer = wg__infer_float, .sample = sample_normal};

wg_tensor *wg_erf(wg_tensor *x) {
    return wg__apply_float(&erf_op, x, NULL);
}

/* ---- relu: y = max(x, 0); of NaN: NaN.   dx = g where y > 0. Kink at 0, with derivative 0. ----
 */

FLOAT_LOOPS(relu, x <= 0 ? 0 : x, x <= 0 ? 0 : x)
LOOP(relu_i32, int32_t, x <= 0 ? 0 : x)
LOOP(relu_i64, int64_t, x <= 0 ? 0 : x)

static int relu_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {
        [WG_F32] = relu_f32, [WG_F64] = relu_f64, [WG_I32] = relu_i32,
        [WG_I64] = relu_i64, [WG_U8] = same_u8,   [WG_BOOL] = same_u8};
    return wg__elementwise_call(call, loops, NULL);
}

static int relu_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *zero = wg_scalar(call->output_specs[0].dtype, 0);
    gradients[0] = wg_masked_fill(cotangents[0], wg_le(call->outputs[0], zero), 0);
    return wg__vjp_status();
}

static const wg_op relu = {UNARY(relu, "y = max(x, 0). Kink at 0, where the derivative is 0."),
                           .saves_outputs = 1, .infer = wg__infer_like, .sample = sample_nonzero};

wg_tensor *wg_relu(wg_tensor *x) {
    return apply(&relu, x);
}

/* ---- gelu: y = x Phi(x) = x/2 (1 + erf(x / sqrt 2)).   dx = g (Phi(x) + x phi(x)).   (Hendrycks &
 * Gimpel 2016.) Fused. ---- */

static int gelu_forward(wg_call *call) {
    return run_map(call, simd_for(call)->gelu);
}

static int gelu_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    return run_vjp(call, simd_for(call)->gelu_vjp, call->inputs[0], cotangents[0], gradients);
}

static int gelu_decompose(wg_call *call) {
    wg_tensor *x = call->inputs[0];
    wg_tensor *cdf = wg_affine(wg_erf(wg_mul_scalar(x, M_SQRT1_2)), 0.5, 0.5);
    call->outputs[0] = wg_mul(x, cdf);
    return call->outputs[0] == NULL ? -1 : 0;
}

static const wg_op gelu = {UNARY(gelu, "y = x Phi(x) = x/2 (1 + erf(x / sqrt 2)). Fused."),
                           .saves_inputs = 1, .infer = wg__infer_float, .decompose = gelu_decompose,
                           .sample = sample_normal};

wg_tensor *wg_gelu(wg_tensor *x) {
    return wg__apply_float(&gelu, x, NULL);
}

/* ---- gelu_tanh: y = x/2 (1 + t), t = tanh(u), u = sqrt(2/pi) (x + 0.044715 x^3).   dx = g ((1 +
 * t)/2 + x/2 (1 - t^2) u'). Fused. ---- */

static int gelu_tanh_forward(wg_call *call) {
    return run_map(call, simd_for(call)->gelu_tanh);
}

static int gelu_tanh_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    return run_vjp(call, simd_for(call)->gelu_tanh_vjp, call->inputs[0], cotangents[0], gradients);
}

static int gelu_tanh_decompose(wg_call *call) {
    const double scale = M_SQRT1_2 * M_2_SQRTPI; /* sqrt(2/pi) */
    wg_tensor *x = call->inputs[0];
    wg_tensor *cube = wg_mul(wg_mul(x, x), x);
    wg_tensor *inner = wg_mul_scalar(wg_add(x, wg_mul_scalar(cube, 0.044715)), scale);
    call->outputs[0] = wg_mul(x, wg_affine(wg_tanh(inner), 0.5, 0.5));
    return call->outputs[0] == NULL ? -1 : 0;
}

static const wg_op gelu_tanh = {
    UNARY(gelu_tanh, "y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). Fused."),
    .saves_inputs = 1, .infer = wg__infer_float, .decompose = gelu_tanh_decompose,
    .sample = sample_normal};

wg_tensor *wg_gelu_tanh(wg_tensor *x) {
    return wg__apply_float(&gelu_tanh, x, NULL);
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

static const wg_op clamp = {
    UNARY(clamp, "y = x limited to [low, high]. Kinks at the limits, where the derivative is 1."),
    .options_size = sizeof(clamp_options), .saves_inputs = 1, .infer = clamp_infer,
    .sample = clamp_sample};

wg_tensor *wg_clamp(wg_tensor *x, double low, double high) {
    return wg__apply_float(&clamp, x, &(clamp_options){low, high});
}

static const wg_op *const ops[] = {
    &neg,     &abs_op,  &sign,   &exp_op, &log_op, &sqrt_op,   &rsqrt,
    &tanh_op, &sigmoid, &erf_op, &relu,   &gelu,   &gelu_tanh, &clamp,
};

const wg__op_family wg__family_unary = {ops, sizeof ops / sizeof *ops};
