/* Activation functions. */
#include "tensor/ops/families.h"
#include "tensor/ops/map.h"

#include <math.h>

/* ---- relu: y = max(x, 0); of NaN: NaN.   dx = g where y > 0. Kink at 0, derivative 0. ---- */

FLOAT_LOOPS(relu, x <= 0 ? 0 : x, x <= 0 ? 0 : x)
LOOP(relu_i32, int32_t, x <= 0 ? 0 : x)
LOOP(relu_i64, int64_t, x <= 0 ? 0 : x)
LOOP(relu_u8, uint8_t, x)

static int relu_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {
        [WG_F32] = relu_f32, [WG_F64] = relu_f64, [WG_I32] = relu_i32,
        [WG_I64] = relu_i64, [WG_U8] = relu_u8,   [WG_BOOL] = relu_u8};
    return wg__elementwise_call(call, loops, NULL);
}

/* t where y > 0. */
static wg_tensor *relu_pass(const wg_call *call, wg_tensor *t) {
    wg_tensor *zero = wg_scalar(call->output_specs[0].dtype, 0);
    return wg_masked_fill(t, wg_le(call->outputs[0], zero), 0);
}

static int relu_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = relu_pass(call, cotangents[0]);
    return wg__vjp_status();
}

static int relu_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    output_tangents[0] = relu_pass(call, tangents[0]);
    return wg__vjp_status();
}

static int bench_normal(wg_generator *generator, wg_sample *sample) {
    sample->inputs[0] = wg_randn(generator, WG_F32, 1, (int64_t[]){1 << 22});
    return wg__sample_status(sample, 1);
}

static const wg_op relu = {UNARY(relu, "y = max(x, 0). Kink at 0, where the derivative is 0."),
                           .saves_outputs = 1,
                           .infer = wg__infer_like,
                           .jvp = relu_jvp,
                           .sample = wg__unary_nonzero,
                           .bench = bench_normal};

wg_tensor *wg_relu(wg_tensor *x) {
    return wg_apply_one(&relu, 1, &x, NULL);
}

/* ---- gelu: y = x Phi(x) = x/2 (1 + erf(x / sqrt 2)).   dx = g (Phi(x) + x phi(x)).   (Hendrycks &
 * Gimpel 2016.) Fused. ---- */

static int gelu_forward(wg_call *call) {
    return wg__run_map(call, wg__call_simd(call)->gelu);
}

static int gelu_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    return wg__run_vjp(call, wg__call_simd(call)->gelu_vjp, call->inputs[0], cotangents[0],
                       gradients);
}

static int gelu_decompose(wg_call *call) {
    wg_tensor *x = call->inputs[0];
    wg_tensor *cdf = wg_affine(wg_erf(wg_mul_scalar(x, M_SQRT1_2)), 0.5, 0.5);
    call->outputs[0] = wg_mul(x, cdf);
    return call->outputs[0] == NULL ? -1 : 0;
}

static const wg_op gelu = {UNARY(gelu, "y = x Phi(x) = x/2 (1 + erf(x / sqrt 2)). Fused."),
                           .saves_inputs = 1,
                           .infer = wg__infer_float,
                           .decompose = gelu_decompose,
                           .sample = wg__unary_normal,
                           .bench = bench_normal};

wg_tensor *wg_gelu(wg_tensor *x) {
    return wg__apply_float(&gelu, x, NULL);
}

/* ---- gelu_tanh: y = x/2 (1 + t), t = tanh(u), u = sqrt(2/pi) (x + 0.044715 x^3).   dx = g ((1 +
 * t)/2 + x/2 (1 - t^2) u'). Fused. ---- */

static int gelu_tanh_forward(wg_call *call) {
    return wg__run_map(call, wg__call_simd(call)->gelu_tanh);
}

static int gelu_tanh_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    return wg__run_vjp(call, wg__call_simd(call)->gelu_tanh_vjp, call->inputs[0], cotangents[0],
                       gradients);
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
    .saves_inputs = 1,
    .infer = wg__infer_float,
    .decompose = gelu_tanh_decompose,
    .sample = wg__unary_normal,
    .bench = bench_normal};

wg_tensor *wg_gelu_tanh(wg_tensor *x) {
    return wg__apply_float(&gelu_tanh, x, NULL);
}

static const wg_op *const ops[] = {&relu, &gelu, &gelu_tanh};

const wg__op_family wg__family_activation = {ops, sizeof ops / sizeof *ops};
