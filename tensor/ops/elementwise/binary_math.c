/* Functions of two operands with broadcasting. As in binary.c, both have one dtype when a kernel
 * sees them. */
#include "tensor/ops/registry.h"
#include "tensor/ops/elementwise/pair.h"

#include <math.h>
#include <stdatomic.h>

/* ---- What the records share ---- */

#define PAIR(NAME, DOC)                                                                            \
    .name = #NAME, .doc = DOC, .min_inputs = 2, .max_inputs = 2, .output_count = 1,                \
    .differentiable = 3, .forward = NAME##_forward, .vjp = NAME##_vjp, .jvp = NAME##_jvp,          \
    .bench = wg__bench_two

#define PAIR_FORWARD(NAME)                                                                         \
    static int NAME##_forward(wg_call *call) {                                                     \
        return wg__run_pair(call, wg__call_simd(call)->NAME);                                      \
    }

static int sample_normal(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_binary(index, generator, sample, wg__sample_normal, wg__sample_normal);
}

static int sample_nonzero(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_binary(index, generator, sample, wg__sample_nonzero, wg__sample_nonzero);
}

/* ---- atan2: y = the angle of the point (b, a).   da = g b / (a^2 + b^2), db = -g a / (a^2 + b^2),
 * with factors that do not overflow. ---- */

PAIR_FORWARD(atan2)

static wg_tensor *atan2_partial(wg_call *call, int i, wg_tensor *direction) {
    wg_tensor *length = wg_hypot(call->inputs[0], call->inputs[1]);
    wg_tensor *slope = wg_div(wg_div(call->inputs[1 - i], length), length);
    return wg_mul(direction, i == 0 ? slope : wg_neg(slope));
}

WG__DERIVATIVES_BY_PARTIALS(atan2)

static const wg_op atan2_op = {
    PAIR(atan2, "y = the angle of the point (b, a), -pi to pi, with broadcasting. Jumps where a is "
                "0 and b < 0; the derivative at (0, 0) is NaN."),
    .saves_inputs = 3, .infer = wg__infer_float_pair, .sample = sample_nonzero};

wg_tensor *wg_atan2(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&atan2_op, a, b, true);
}

/* ---- hypot: y = sqrt(a^2 + b^2).   da = g a / y, db = g b / y. ---- */

PAIR_FORWARD(hypot)

static wg_tensor *hypot_partial(wg_call *call, int i, wg_tensor *direction) {
    return wg_mul(direction, wg_div(call->inputs[i], call->outputs[0]));
}

WG__DERIVATIVES_BY_PARTIALS(hypot)

static const wg_op hypot_op = {
    PAIR(hypot, "y = sqrt(a^2 + b^2) without overflow of the squares, with broadcasting. The "
                "derivative at (0, 0) is NaN."),
    .saves_inputs = 3, .saves_outputs = 1, .infer = wg__infer_float_pair, .sample = sample_nonzero};

wg_tensor *wg_hypot(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&hypot_op, a, b, true);
}

/* ---- logaddexp: y = ln(e^a + e^b).   da = g sigmoid(a - b), db = g sigmoid(b - a). ---- */

PAIR_FORWARD(logaddexp)

static wg_tensor *logaddexp_partial(wg_call *call, int i, wg_tensor *direction) {
    return wg_mul(direction, wg_sigmoid(wg_sub(call->inputs[i], call->inputs[1 - i])));
}

WG__DERIVATIVES_BY_PARTIALS(logaddexp)

static const wg_op logaddexp = {
    PAIR(logaddexp, "y = ln(e^a + e^b) without overflow, with broadcasting."), .saves_inputs = 3,
    .infer = wg__infer_float_pair, .sample = sample_normal};

wg_tensor *wg_logaddexp(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&logaddexp, a, b, true);
}

/* ---- xlogy: y = a ln b, 0 where a = 0.   da = g ln b, which is 0 where a = 0 and b <= 0; db = g a
 * / b. ---- */

PAIR_FORWARD(xlogy)

static wg_tensor *xlogy_partial(wg_call *call, int i, wg_tensor *direction) {
    wg_tensor *a = call->inputs[0], *b = call->inputs[1];
    if (i == 1)
        return wg_div(wg_mul(direction, a), b);
    wg_tensor *zero = wg_scalar(call->output_specs[0].dtype, 0);
    wg_tensor *flat = wg_logical_and(wg_eq(a, zero), wg_le(b, zero));
    return wg_mul(direction, wg_log(wg_where(flat, wg_add_scalar(zero, 1), b)));
}

WG__DERIVATIVES_BY_PARTIALS(xlogy)

static int xlogy_sample(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_binary(index, generator, sample, wg__sample_nonzero, wg__sample_positive);
}

static const wg_op xlogy = {
    PAIR(xlogy, "y = a ln b with broadcasting, and 0 where a = 0 (but NaN where b is); the "
                "derivative in a is 0 where a = 0 and b <= 0."),
    .saves_inputs = 3, .infer = wg__infer_float_pair, .sample = xlogy_sample};

wg_tensor *wg_xlogy(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&xlogy, a, b, true);
}

/* ---- remainder, fmod: y = a - b q, q being a / b rounded down or toward 0.   da = g, db = -g q.
 * ---- */

/* A loop over integers, whose context has a flag that a divisor of 0 sets. A divisor of -1 leaves
 * nothing, and would overflow beside the smallest integer. */
typedef struct division {
    atomic_bool *by_zero;
} division;

#define DIVISION_LOOP(NAME, TYPE, REST, EXPRESSION)                                                \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        const division *division = context;                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const TYPE a = *(const TYPE *)(data[1] + i * strides[1]);                              \
            const TYPE b = *(const TYPE *)(data[2] + i * strides[2]);                              \
            TYPE rest = 0;                                                                         \
            if (b == 0)                                                                            \
                atomic_store_explicit(division->by_zero, true, memory_order_relaxed);              \
            else                                                                                   \
                rest = (TYPE)(REST);                                                               \
            *(TYPE *)(data[0] + i * strides[0]) = (TYPE)(EXPRESSION);                              \
        }                                                                                          \
    }

static int division_infer(wg_call *call) {
    if (call->input_specs[0].dtype == WG_BOOL)
        return wg__op_fail(call, WG_ERROR_DTYPE, "takes numbers; cast an operand");
    return wg__infer_pair(call);
}

static int divide(wg_call *call, const wg__loop *loops) {
    atomic_bool by_zero = false;
    wg__elementwise_call(call, loops, &(division){&by_zero});
    if (by_zero)
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "an integer is divided by 0; cast to a float to get NaN");
    return 0;
}

/* q is (a - y) / b but for rounding. */
static wg_tensor *division_partial(wg_call *call, int i, wg_tensor *direction) {
    if (i == 0)
        return direction;
    wg_tensor *whole = wg_sub(call->inputs[0], call->outputs[0]);
    return wg_neg(wg_mul(direction, wg_round(wg_div(whole, call->inputs[1]))));
}

#define remainder_partial division_partial
#define fmod_partial division_partial

/* Odd eighths against halves: no quotient is whole. */
static wg_tensor *sample_eighths(wg_generator *generator, int ndim, const int64_t *shape) {
    wg_tensor *x = wg_cast(wg_randint(generator, -12, 12, ndim, shape), WG_F64);
    return wg_affine(x, 0.25, 0.125);
}

static wg_tensor *sample_halves(wg_generator *generator, int ndim, const int64_t *shape) {
    wg_tensor *x = wg_cast(wg_randint(generator, 1, 6, ndim, shape), WG_F64);
    wg_tensor *sign = wg_cast(wg_randint(generator, 0, 2, ndim, shape), WG_F64);
    return wg_mul(x, wg_affine(sign, 1, -0.5));
}

static int division_sample(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_binary(index, generator, sample, sample_eighths, sample_halves);
}

static inline float floor_rest_f32(float a, float b) {
    const float rest = fmodf(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static inline double floor_rest_f64(double a, double b) {
    const double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

PAIR_LOOP(remainder_f32, float, float, floor_rest_f32(a, b))
PAIR_LOOP(remainder_f64, double, double, floor_rest_f64(a, b))
DIVISION_LOOP(remainder_i32, int32_t, b == -1 ? 0 : a % b,
              rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest)
DIVISION_LOOP(remainder_i64, int64_t, b == -1 ? 0 : a % b,
              rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest)
DIVISION_LOOP(remainder_u8, uint8_t, a % b, rest)

static int remainder_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(remainder), INTEGERS(remainder)};
    return divide(call, loops);
}

WG__DERIVATIVES_BY_PARTIALS(remainder)

static const wg_op remainder_op = {
    PAIR(remainder, "y = a - b floor(a / b) with broadcasting: of the sign of b, as Python's %. "
                    "Jumps where a / b is whole."),
    .saves_inputs = 3, .saves_outputs = 1, .infer = division_infer, .sample = division_sample};

wg_tensor *wg_remainder(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&remainder_op, a, b, false);
}

PAIR_LOOP(fmod_f32, float, float, fmodf(a, b))
PAIR_LOOP(fmod_f64, double, double, fmod(a, b))
DIVISION_LOOP(fmod_i32, int32_t, b == -1 ? 0 : a % b, rest)
DIVISION_LOOP(fmod_i64, int64_t, b == -1 ? 0 : a % b, rest)
DIVISION_LOOP(fmod_u8, uint8_t, a % b, rest)

static int fmod_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(fmod), INTEGERS(fmod)};
    return divide(call, loops);
}

WG__DERIVATIVES_BY_PARTIALS(fmod)

static const wg_op fmod_op = {
    PAIR(fmod, "y = a - b trunc(a / b) with broadcasting: of the sign of a, as C's %. Jumps where "
               "a / b is whole."),
    .saves_inputs = 3, .saves_outputs = 1, .infer = division_infer, .sample = division_sample};

wg_tensor *wg_fmod(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&fmod_op, a, b, false);
}

static const wg_op *const ops[] = {&atan2_op, &hypot_op,     &logaddexp,
                                   &xlogy,    &remainder_op, &fmod_op};

const wg__op_family wg__family_binary_math = {ops, sizeof ops / sizeof *ops};
