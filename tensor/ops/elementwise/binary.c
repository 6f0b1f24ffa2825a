/* Arithmetic and functions of two and of three operands, with broadcasting.
 *
 * The public function casts operands of different dtypes to the higher one before the op runs, so a
 * kernel sees one dtype, and gradients pass through the recorded casts. */
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"

#include <math.h>
#include <stdatomic.h>

/* The members that the records of two operands share. */
#define PAIR(NAME, DOC)                                                                            \
    WG__OP(#NAME, 2, DOC), .differentiable = 3, .forward = NAME##_forward, .vjp = NAME##_vjp,      \
                           .jvp = NAME##_jvp, .bench = wg__bench_two

/* A function of two floats whose derivatives read both operands: the op of its NAME_forward,
 * NAME_vjp and NAME_jvp. SAVES_OUTPUTS is 1 if the derivatives read the result, too. */
#define FLOAT_PAIR_OP(NAME, SAVES_OUTPUTS, SAMPLE, DOC)                                            \
    static const wg_op NAME##_op = {PAIR(NAME, DOC),                                               \
                                    .saves_inputs = 3,                                             \
                                    .saves_outputs = SAVES_OUTPUTS,                                \
                                    .infer = wg__infer_float_pair,                                 \
                                    .batch = wg_batch_aligned,                                     \
                                    .sample = SAMPLE};                                             \
    wg_tensor *wg_##NAME(wg_tensor *a, wg_tensor *b) {                                             \
        return wg__apply_two(&NAME##_op, a, b, true);                                              \
    }

/* The same, with derivatives by NAME_partial. */
#define FLOAT_PAIR(NAME, SAVES_OUTPUTS, SAMPLE, DOC)                                               \
    WG__DERIVATIVES_BY_PARTIALS(NAME)                                                              \
    FLOAT_PAIR_OP(NAME, SAVES_OUTPUTS, SAMPLE, DOC)

PAIR_SAMPLE(sample_normal, wg__sample_normal, wg__sample_normal)
PAIR_SAMPLE(sample_nonzero, wg__sample_nonzero, wg__sample_nonzero)

/* ---- add: y = a + b; of bools: or.   da = g, db = g. ---- */

PAIR_FLOAT_LOOPS(add, a + b)
PAIR_WRAPPING_LOOPS(add, a + b)
PAIR_LOOP(add_bool, uint8_t, uint8_t, a | b)

FORWARD(add, NULL, FLOATS(add), INTEGERS(add), [WG_BOOL] = add_bool)

static int add_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    for (int i = 0; i < 2; i++)
        if (wg__wants(call, i))
            gradients[i] = wg__sum_like(cotangents[0], call, i);
    return wg__vjp_status();
}

static const wg_op add = {
    WG__OP("add", 2, "y = a + b with broadcasting; of bools: or."),
    .differentiable = 3,
    .infer = wg__infer_pair,
    .batch = wg_batch_aligned,
    .forward = add_forward,
    .vjp = add_vjp,
    .jvp = wg_jvp_linear,
    .sample = sample_normal,
    .bench = wg__bench_two,
};

wg_tensor *wg_add(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&add, a, b, false);
}

/* ---- sub: y = a - b.   da = g, db = -g. ---- */

PAIR_FLOAT_LOOPS(sub, a - b)
PAIR_WRAPPING_LOOPS(sub, a - b)

static int sub_infer(wg_call *call) {
    if (call->input_specs[0].dtype == WG_BOOL)
        return wg__op_fail(call, WG_ERROR_DTYPE,
                           "bools have no difference; cast them, or use logical_xor");
    return wg__infer_pair(call);
}

FORWARD(sub, NULL, FLOATS(sub), INTEGERS(sub))

static int sub_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (wg__wants(call, 0))
        gradients[0] = wg__sum_like(cotangents[0], call, 0);
    if (wg__wants(call, 1))
        gradients[1] = wg_neg(wg__sum_like(cotangents[0], call, 1));
    return wg__vjp_status();
}

static const wg_op sub = {
    WG__OP("sub", 2, "y = a - b with broadcasting."),
    .differentiable = 3,
    .infer = sub_infer,
    .batch = wg_batch_aligned,
    .forward = sub_forward,
    .vjp = sub_vjp,
    .jvp = wg_jvp_linear,
    .sample = sample_normal,
    .bench = wg__bench_two,
};

wg_tensor *wg_sub(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&sub, a, b, false);
}

/* ---- mul: y = a b; of bools: and.   da = g b, db = g a. ---- */

PAIR_FLOAT_LOOPS(mul, a *b)
PAIR_WRAPPING_LOOPS(mul, a *b)
PAIR_LOOP(mul_bool, uint8_t, uint8_t, a &b)

FORWARD(mul, NULL, FLOATS(mul), INTEGERS(mul), [WG_BOOL] = mul_bool)

static wg_tensor *mul_partial(wg_call *call, int i, wg_tensor *direction) {
    return wg_mul(direction, call->inputs[1 - i]);
}

WG__DERIVATIVES_BY_PARTIALS(mul)

static const wg_op mul = {
    PAIR(mul, "y = a b, element by element, with broadcasting; of bools: and."),
    .saves_inputs = 3,
    .infer = wg__infer_pair,
    .batch = wg_batch_aligned,
    .sample = sample_normal,
};

wg_tensor *wg_mul(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&mul, a, b, false);
}

/* ---- div: y = a / b.   da = g / b, db = -g y / b. ---- */

PAIR_FLOAT_LOOPS(div, a / b)

FORWARD(div, NULL, FLOATS(div))

static int div_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *scaled = wg_div(cotangents[0], call->inputs[1]);
    if (wg__wants(call, 0))
        gradients[0] = wg__sum_like(scaled, call, 0);
    if (wg__wants(call, 1))
        gradients[1] = wg_neg(wg__sum_like(wg_mul(scaled, call->outputs[0]), call, 1));
    return wg__vjp_status();
}

/* (da - y db) / b */
static int div_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *scaled = tangents[1] == NULL ? NULL : wg_mul(call->outputs[0], tangents[1]);
    wg_tensor *numerator = scaled == NULL        ? tangents[0]
                           : tangents[0] == NULL ? wg_neg(scaled)
                                                 : wg_sub(tangents[0], scaled);
    if (numerator != NULL)
        output_tangents[0] = wg_div(numerator, call->inputs[1]);
    return wg__vjp_status();
}

PAIR_SAMPLE(div_sample, wg__sample_normal, wg__sample_nonzero)

static const wg_op div_op = {
    PAIR(div, "y = a / b with broadcasting, true division."),
    .saves_inputs = 2,
    .saves_outputs = 1,
    .infer = wg__infer_float_pair,
    .batch = wg_batch_aligned,
    .sample = div_sample,
};

wg_tensor *wg_div(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&div_op, a, b, true);
}

/* ---- pow: y = a^b.
 * da = g b a^(b-1), which at a = b = 0 is 0; db = g y log a, which is 0 where a = 0 and b >=
 * 0. ---- */

PAIR_FORWARD(pow)

/* Singular operands are replaced before the power is taken, not in the result, so that higher
 * derivatives contain no 0 * inf either. */
static wg_tensor *pow_partial(wg_call *call, int i, wg_tensor *direction) {
    wg_tensor *a = call->inputs[0], *b = call->inputs[1];
    wg_tensor *zero = wg_scalar(call->output_specs[0].dtype, 0);
    wg_tensor *a_is_zero = wg_eq(a, zero);
    if (i == 0) {
        wg_tensor *both_zero = wg_logical_and(a_is_zero, wg_eq(b, zero));
        wg_tensor *lower = wg_where(both_zero, zero, wg_add_scalar(b, -1));
        return wg_mul(wg_mul(direction, b), wg_pow(a, lower));
    }
    wg_tensor *flat = wg_logical_and(a_is_zero, wg_ge(b, zero));
    wg_tensor *base = wg_where(flat, wg_add_scalar(zero, 1), a);
    return wg_mul(wg_mul(direction, call->outputs[0]), wg_log(base));
}

PAIR_SAMPLE(pow_sample, wg__sample_positive, wg__sample_normal)

FLOAT_PAIR(pow, 1, pow_sample,
           "y = a^b with broadcasting. The derivative in b is y log a, 0 where a = 0 and b >= 0; "
           "NaN in a where b is no integer and a < 0.")

/* ---- maximum, minimum: y = the larger, the smaller of a and b; NaN if either is.
 * da = g where a is chosen, g / 2 at ties. ---- */

/* g times the share of an operand a in y: 1 - ((a < b) + (a <= b)) / 2 for maximum, with the
 * operands exchanged for minimum. Beside a NaN both operands get all of g, as in PyTorch. */
static wg_tensor *share(wg_tensor *g, wg_tensor *larger, wg_tensor *smaller) {
    const wg_dtype dtype = wg_tensor_dtype(g);
    wg_tensor *twice =
        wg_add(wg_cast(wg_lt(larger, smaller), dtype), wg_cast(wg_le(larger, smaller), dtype));
    return wg_mul(g, wg_affine(twice, -0.5, 1));
}

static wg_tensor *maximum_partial(wg_call *call, int i, wg_tensor *direction) {
    return share(direction, call->inputs[i], call->inputs[1 - i]);
}

static wg_tensor *minimum_partial(wg_call *call, int i, wg_tensor *direction) {
    return share(direction, call->inputs[1 - i], call->inputs[i]);
}

/* Values that are never tied with those of wg__sample_distinct. */
static wg_tensor *sample_between(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_affine(wg__sample_distinct(generator, ndim, shape), 1, 0.0625);
}

PAIR_SAMPLE(extremum_sample, wg__sample_distinct, sample_between)

/* The op NAME, which chooses a where a OVER b. NaN is the only value that differs from itself: a
 * NaN in a or in b is returned. */
#define EXTREMUM(NAME, OVER, ADJECTIVE)                                                            \
    PAIR_FLOAT_LOOPS(NAME, ((a OVER b) | (a != a)) ? a : b)                                        \
    PAIR_LOOP(NAME##_i32, int32_t, int32_t, a OVER b ? a : b)                                      \
    PAIR_LOOP(NAME##_i64, int64_t, int64_t, a OVER b ? a : b)                                      \
    PAIR_LOOP(NAME##_u8, uint8_t, uint8_t, a OVER b ? a : b)                                       \
    FORWARD(NAME, NULL, ALL_DTYPES(NAME))                                                          \
    WG__DERIVATIVES_BY_PARTIALS(NAME)                                                              \
    static const wg_op NAME = {                                                                    \
        PAIR(NAME, "y = the " ADJECTIVE " of a and b, with broadcasting; NaN if either is. Kink "  \
                   "at a = b, where each gets half of the gradient."),                             \
        .saves_inputs = 3, .infer = wg__infer_pair, .batch = wg_batch_aligned,                     \
        .sample = extremum_sample};                                                                \
    wg_tensor *wg_##NAME(wg_tensor *a, wg_tensor *b) {                                             \
        return wg__apply_two(&NAME, a, b, false);                                                  \
    }

EXTREMUM(maximum, >, "larger")
EXTREMUM(minimum, <, "smaller")

/* ==== Functions of two operands ==== */

/* ---- atan2: y = the angle of the point (b, a).
 * da = (g / r) (b / r), db = -(g / r) (a / r), where r = hypot(a, b): no square overflows. ---- */

PAIR_FORWARD(atan2)

static int atan2_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *a = call->inputs[0], *b = call->inputs[1];
    wg_tensor *r = wg_hypot(a, b), *turn = wg_div(cotangents[0], r);
    if (wg__wants(call, 0))
        gradients[0] = wg__sum_like(wg_mul(turn, wg_div(b, r)), call, 0);
    if (wg__wants(call, 1))
        gradients[1] = wg__sum_like(wg_neg(wg_mul(turn, wg_div(a, r))), call, 1);
    return wg__vjp_status();
}

static wg_tensor *atan2_partial(wg_call *call, int i, wg_tensor *direction) {
    wg_tensor *r = wg_hypot(call->inputs[0], call->inputs[1]);
    wg_tensor *slope = wg_mul(wg_div(direction, r), wg_div(call->inputs[1 - i], r));
    return i == 0 ? slope : wg_neg(slope);
}

static int atan2_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    return wg__jvp_by_partials(call, tangents, output_tangents, atan2_partial);
}

FLOAT_PAIR_OP(atan2, 0, sample_nonzero,
              "y = the angle of the point (b, a), -pi to pi, with broadcasting. Jumps where a is "
              "0 and b < 0; the derivative at (0, 0) is NaN.")

/* ---- hypot: y = sqrt(a^2 + b^2).   da = g a / y, db = g b / y. ---- */

PAIR_FORWARD(hypot)

static wg_tensor *hypot_partial(wg_call *call, int i, wg_tensor *direction) {
    return wg_mul(direction, wg_div(call->inputs[i], call->outputs[0]));
}

FLOAT_PAIR(hypot, 1, sample_nonzero,
           "y = sqrt(a^2 + b^2) without overflow of the squares, with broadcasting. The "
           "derivative at (0, 0) is NaN.")

/* ---- logaddexp: y = ln(e^a + e^b).   da = g sigmoid(a - b), db = g sigmoid(b - a). ---- */

PAIR_FORWARD(logaddexp)

static wg_tensor *logaddexp_partial(wg_call *call, int i, wg_tensor *direction) {
    return wg_mul(direction, wg_sigmoid(wg_sub(call->inputs[i], call->inputs[1 - i])));
}

FLOAT_PAIR(logaddexp, 0, sample_normal, "y = ln(e^a + e^b) without overflow, with broadcasting.")

/* ---- xlogy: y = a ln b, 0 where a = 0.
 * da = g ln b, which is 0 where a = 0 and b <= 0; db = g a / b. ---- */

PAIR_FORWARD(xlogy)

static wg_tensor *xlogy_partial(wg_call *call, int i, wg_tensor *direction) {
    wg_tensor *a = call->inputs[0], *b = call->inputs[1];
    if (i == 1)
        return wg_div(wg_mul(direction, a), b);
    wg_tensor *zero = wg_scalar(call->output_specs[0].dtype, 0);
    wg_tensor *flat = wg_logical_and(wg_eq(a, zero), wg_le(b, zero));
    return wg_mul(direction, wg_log(wg_where(flat, wg_add_scalar(zero, 1), b)));
}

PAIR_SAMPLE(xlogy_sample, wg__sample_nonzero, wg__sample_positive)

FLOAT_PAIR(xlogy, 0, xlogy_sample,
           "y = a ln b with broadcasting, and 0 where a = 0 (but NaN where b is); the "
           "derivative in a is 0 where a = 0 and b <= 0.")

/* ---- remainder, fmod: y = a - b q, q being a / b rounded down or toward 0.
 * da = g, db = -g q. ---- */

/* A loop over integers; a divisor of 0 sets the flag in its context. The remainder by -1 is 0, and
 * computing it would overflow for the smallest integer. */
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

WG__DERIVATIVES_BY_PARTIALS(division)

/* Odd multiples of 1/8 by multiples of 1/2: no quotient is an integer. */
static wg_tensor *sample_eighths(wg_generator *generator, int ndim, const int64_t *shape) {
    wg_tensor *x = wg_cast(wg_randint(generator, -12, 12, ndim, shape), WG_F64);
    return wg_affine(x, 0.25, 0.125);
}

static wg_tensor *sample_halves(wg_generator *generator, int ndim, const int64_t *shape) {
    wg_tensor *x = wg_cast(wg_randint(generator, 1, 6, ndim, shape), WG_F64);
    wg_tensor *sign = wg_cast(wg_randint(generator, 0, 2, ndim, shape), WG_F64);
    return wg_mul(x, wg_affine(sign, 1, -0.5));
}

PAIR_SAMPLE(division_sample, sample_eighths, sample_halves)

/* The op NAME but for its loops. */
#define DIVISION(NAME, DOC)                                                                        \
    static int NAME##_forward(wg_call *call) {                                                     \
        static const wg__loop loops[WG_DTYPE_COUNT] = {INTEGERS(NAME)};                            \
        return loops[call->input_specs[0].dtype] ? divide(call, loops)                             \
                                                 : wg__run_pair(call, wg__call_simd(call)->NAME);  \
    }                                                                                              \
    static const wg_op NAME##_op = {                                                               \
        WG__OP(#NAME, 2, DOC),      .saves_inputs = 3,                                             \
        .saves_outputs = 1,         .differentiable = 3,                                           \
        .undefined_at = WG_AT_ZERO, .undefined_reason = "a quotient by 0 has no limit",            \
        .infer = division_infer,    .batch = wg_batch_aligned,                                     \
        .forward = NAME##_forward,  .vjp = division_vjp,                                           \
        .jvp = division_jvp,        .sample = division_sample,                                     \
        .bench = wg__bench_two};                                                                   \
    wg_tensor *wg_##NAME(wg_tensor *a, wg_tensor *b) {                                             \
        return wg__apply_two(&NAME##_op, a, b, false);                                             \
    }

DIVISION_LOOP(remainder_i32, int32_t, b == -1 ? 0 : a % b,
              rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest)
DIVISION_LOOP(remainder_i64, int64_t, b == -1 ? 0 : a % b,
              rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest)
DIVISION_LOOP(remainder_u8, uint8_t, a % b, rest)

DIVISION(remainder, "y = a - b floor(a / b) with broadcasting: of the sign of b, as Python's %. "
                    "Jumps where a / b is whole.")

DIVISION_LOOP(fmod_i32, int32_t, b == -1 ? 0 : a % b, rest)
DIVISION_LOOP(fmod_i64, int64_t, b == -1 ? 0 : a % b, rest)
DIVISION_LOOP(fmod_u8, uint8_t, a % b, rest)

DIVISION(fmod, "y = a - b trunc(a / b) with broadcasting: of the sign of a, as C's %. Jumps where "
               "a / b is whole.")

/* ==== Arithmetic of three operands, in one pass ==== */

typedef struct value_options {
    double value;
} value_options;

/* The loop NAME of y = EXPRESSION in x, a and b, read from elements of TYPE into variables of AS,
 * and in `value`, that of the options. */
#define TERNARY_LOOP(NAME, TYPE, AS, EXPRESSION)                                                   \
    static inline void NAME##_at(int64_t n, char *const *data, int64_t sy, int64_t sx, int64_t sa, \
                                 int64_t sb, const AS value) {                                     \
        TYPE *restrict y = (TYPE *)data[0];                                                        \
        const TYPE *px = (const TYPE *)data[1], *pa = (const TYPE *)data[2],                       \
                   *pb = (const TYPE *)data[3];                                                    \
        (void)value;                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const AS x = (AS)px[i * sx], a = (AS)pa[i * sa], b = (AS)pb[i * sb];                   \
            y[i * sy] = (TYPE)(EXPRESSION);                                                        \
        }                                                                                          \
    }                                                                                              \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        const value_options *options = context;                                                    \
        const AS value = (AS)(TYPE)options->value;                                                 \
        const int64_t size = (int64_t)sizeof(TYPE);                                                \
        const int64_t sy = strides[0] / size, sx = strides[1] / size;                              \
        const int64_t sa = strides[2] / size, sb = strides[3] / size;                              \
        if (sy == 1 && sx == 1 && sa == 1 && sb == 1)                                              \
            NAME##_at(n, data, 1, 1, 1, 1, value);                                                 \
        else                                                                                       \
            NAME##_at(n, data, sy, sx, sa, sb, value);                                             \
    }

/* ---- What the records share ---- */

#define TERNARY(NAME, DOC)                                                                         \
    WG__OP(#NAME, 3, DOC), .differentiable = 7, .forward = NAME##_forward, .vjp = NAME##_vjp,      \
                           .jvp = NAME##_jvp

static int infer_ternary(wg_call *call) {
    if (wg__check_same_dtype(call, 0, 1) < 0 || wg__check_same_dtype(call, 0, 2) < 0)
        return -1;
    return wg__infer_broadcast(call, 0, call->input_specs[0].dtype);
}

static int infer_ternary_float(wg_call *call) {
    return wg__infer_float(call) < 0 ? -1 : infer_ternary(call);
}

/* Casts the operands to their common dtype; with `floating`, to f32 at least. */
static wg_tensor *apply_three(const wg_op *op, wg_tensor *x, wg_tensor *a, wg_tensor *b,
                              const void *options, bool floating) {
    wg_tensor *y = NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (wg__promote(&x, &a) && wg__promote(&a, &b) && wg__promote(&x, &a)) {
        if (floating && !wg_dtype_is_float(x->spec.dtype)) {
            x = wg_cast(x, WG_F32);
            a = wg_cast(a, WG_F32);
            b = wg_cast(b, WG_F32);
        }
        y = wg_apply_one(op, 3, (wg_tensor *[]){x, a, b}, options);
    }
    return wg_scope_end(&scope, y);
}

/* ---- lerp: y = x + b (a - x), which at b = 1 is a.
 * dx = g (1 - b), da = g b, db = g (a - x). ---- */

TERNARY_LOOP(lerp_f32, float, float, b < 0.5f ? x + b * (a - x) : a - (a - x) * (1 - b))
TERNARY_LOOP(lerp_f64, double, double, b < 0.5 ? x + b * (a - x) : a - (a - x) * (1 - b))

FORWARD(lerp, &(value_options){0}, FLOATS(lerp))

static wg_tensor *lerp_partial(wg_call *call, int i, wg_tensor *direction) {
    wg_tensor *weight = call->inputs[2];
    if (i == 2)
        return wg_mul(direction, wg_sub(call->inputs[1], call->inputs[0]));
    return wg_mul(direction, i == 1 ? weight : wg_affine(weight, -1, 1));
}

WG__DERIVATIVES_BY_PARTIALS(lerp)

static int lerp_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const wg__sampler normal_three[] = {wg__sample_normal, wg__sample_normal,
                                               wg__sample_normal};
    return wg__sample_ternary(index, generator, sample, normal_three);
}

static const wg_op lerp = {
    TERNARY(lerp, "y = a + weight (b - a) with broadcasting: a at weight 0, b at 1."),
    .saves_inputs = 7,
    .infer = infer_ternary_float,
    .batch = wg_batch_aligned,
    .sample = lerp_sample,
    .bench = wg__bench_three};

wg_tensor *wg_lerp(wg_tensor *a, wg_tensor *b, wg_tensor *weight) {
    return apply_three(&lerp, a, b, weight, NULL, true);
}

/* ---- addcmul: y = x + value a b.   dx = g, da = g value b, db = g value a. ---- */

TERNARY_LOOP(addcmul_f32, float, float, x + value * a * b)
TERNARY_LOOP(addcmul_f64, double, double, x + value * a * b)
TERNARY_LOOP(addcmul_i32, int32_t, uint32_t, x + value * a * b)
TERNARY_LOOP(addcmul_i64, int64_t, uint64_t, x + value * a * b)
TERNARY_LOOP(addcmul_u8, uint8_t, uint32_t, x + value * a * b)

static int addcmul_infer(wg_call *call) {
    const wg_dtype dtype = call->input_specs[0].dtype;
    const double value = ((const value_options *)call->options)->value;
    if (dtype == WG_BOOL)
        return wg__op_fail(call, WG_ERROR_DTYPE, "takes numbers; cast an operand");
    const double most = dtype == WG_I64 ? 0x1p53 : dtype == WG_I32 ? 0x1p31 - 1 : 255;
    if (!wg_dtype_is_float(dtype) &&
        (value != trunc(value) || fabs(value) > most || (dtype == WG_U8 && value < 0)))
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "value %g is no integer of the operands' dtype; cast them to a float",
                           value);
    return infer_ternary(call);
}

FORWARD(addcmul, call->options, FLOATS(addcmul), INTEGERS(addcmul))

static wg_tensor *scaled(const wg_call *call, wg_tensor *x) {
    const double value = ((const value_options *)call->options)->value;
    return value == 1 ? x : wg_mul_scalar(x, value);
}

static wg_tensor *addcmul_partial(wg_call *call, int i, wg_tensor *direction) {
    return i == 0 ? direction : scaled(call, wg_mul(direction, call->inputs[3 - i]));
}

WG__DERIVATIVES_BY_PARTIALS(addcmul)

/* For addcdiv, too: b stays away from 0. */
static int value_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const value_options options[] = {{-0.75}, {1}};
    static const wg__sampler samplers[] = {wg__sample_normal, wg__sample_normal,
                                           wg__sample_nonzero};
    sample->options = &options[index % 2];
    return wg__sample_ternary(index, generator, sample, samplers);
}

static int value_bench(wg_generator *generator, wg_sample *sample) {
    static const value_options options = {-0.75};
    sample->options = &options;
    return wg__bench_three(generator, sample);
}

static const wg_op addcmul = {
    TERNARY(addcmul, "y = x + value a b with broadcasting, value a plain number."),
    .options_size = sizeof(value_options),
    .saves_inputs = 6,
    .infer = addcmul_infer,
    .batch = wg_batch_aligned,
    .sample = value_sample,
    .bench = value_bench};

wg_tensor *wg_addcmul(wg_tensor *x, wg_tensor *a, wg_tensor *b, double value) {
    return apply_three(&addcmul, x, a, b, &(value_options){value}, false);
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
    TERNARY(addcdiv, "y = x + value a / b with broadcasting, value a plain number."),
    .options_size = sizeof(value_options),
    .saves_inputs = 6,
    .infer = infer_ternary_float,
    .batch = wg_batch_aligned,
    .sample = value_sample,
    .bench = value_bench};

wg_tensor *wg_addcdiv(wg_tensor *x, wg_tensor *a, wg_tensor *b, double value) {
    return apply_three(&addcdiv, x, a, b, &(value_options){value}, true);
}

static const wg_op *const ops[] = {
    &add,      &sub,          &mul,      &div_op,       &pow_op,  &maximum, &minimum, &atan2_op,
    &hypot_op, &logaddexp_op, &xlogy_op, &remainder_op, &fmod_op, &lerp,    &addcmul, &addcdiv};

const wg__op_table wg__ops_binary = {ops, sizeof ops / sizeof *ops};
