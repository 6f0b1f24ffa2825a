/* Piecewise constant functions: sign and rounding. Integers keep their dtype. */
#include "tensor/ops/registry.h"
#include "tensor/ops/elementwise/map.h"

LOOP(same_i32, int32_t, x)
LOOP(same_i64, int64_t, x)
LOOP(same_u8, uint8_t, x)

static int zero_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call, (void)cotangents, (void)gradients;
    return 0;
}

#define STEP(NAME, DOC)                                                                            \
    {                                                                                              \
        .name = #NAME, .doc = DOC, .min_inputs = 1, .max_inputs = 1, .output_count = 1,            \
        .differentiable = 1, .zero_gradient = "it is piecewise constant", .infer = wg__infer_like, \
        .forward = NAME##_forward, .vjp = zero_vjp, .jvp = wg__jvp_diagonal,                       \
        .sample = sample_off_steps, .bench = wg__bench_one                                         \
    }

/* Multiples of 1/4 with 1/8 more: steps are at whole numbers and halves. */
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
    static const wg__loop loops[WG_DTYPE_COUNT] = {
        [WG_F32] = sign_f32, [WG_F64] = sign_f64, [WG_I32] = sign_i32,
        [WG_I64] = sign_i64, [WG_U8] = sign_u8,   [WG_BOOL] = sign_u8};
    return wg__elementwise_call(call, loops, NULL);
}

static const wg_op sign = STEP(sign, "y = -1, 0 or 1. Jumps at 0; the derivative is 0.");

wg_tensor *wg_sign(wg_tensor *x) {
    return wg_apply_one(&sign, 1, &x, NULL);
}

/* ---- floor, ceil, round, trunc: y = a whole number beside x.   dx = 0. ---- */

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

static const wg_op *const ops[] = {&sign, &floor_op, &ceil_op, &round_op, &trunc_op};

const wg__op_family wg__family_rounding = {ops, sizeof ops / sizeof *ops};
