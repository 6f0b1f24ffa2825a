/* Elementwise ops without options: functions.def, arithmetic, comparison and logic. A function runs
 * as a plain loop if `loops` has a loop for the dtype, else as a vector kernel.
 *
 * wg_elementwise casts operands of different dtypes to the higher dtype before the op runs, so
 * kernels see a single dtype, and gradients pass through the recorded casts. */
#include "tensor/ops/elementwise/elementwise.h"

#include <math.h>
#include <stdatomic.h>

/* The wg_elementwise_op of a record. Checkers and users run copies of records; a copy is recognised
 * by its doc. WG__ELEMENTWISE_COUNT for all other records. */
static int function_of(const wg_op *op) {
    if (op >= wg__elementwise_ops && op < wg__elementwise_ops + WG__ELEMENTWISE_COUNT)
        return (int)(op - wg__elementwise_ops);
    int i = 0;
    while (i < WG__ELEMENTWISE_COUNT && wg__elementwise_ops[i].doc != op->doc)
        i++;
    return i;
}

/* Integers wrap around; some functions return integers unchanged. */
LOOP(same_i32, int32_t, x)
LOOP(same_i64, int64_t, x)
LOOP(same_u8, uint8_t, x)
LOOP(neg_i32, int32_t, 0u - (uint32_t)x)
LOOP(neg_i64, int64_t, 0u - (uint64_t)x)
LOOP(neg_u8, uint8_t, 0u - x)
LOOP(abs_i32, int32_t, x < 0 ? 0u - (uint32_t)x : (uint32_t)x)
LOOP(abs_i64, int64_t, x < 0 ? 0u - (uint64_t)x : (uint64_t)x)
LOOP(square_i32, int32_t, (uint32_t)x *(uint32_t)x)
LOOP(square_i64, int64_t, (uint64_t)x *(uint64_t)x)
LOOP(square_u8, uint8_t, (uint32_t)x *x)
LOOP(sign_i32, int32_t, (x > 0) - (x < 0))
LOOP(sign_i64, int64_t, (x > 0) - (x < 0))
LOOP(sign_u8, uint8_t, x > 0)
LOOP(relu_i32, int32_t, x <= 0 ? 0 : x)
LOOP(relu_i64, int64_t, x <= 0 ? 0 : x)

PAIR_FLOAT_LOOPS(add, a + b)
PAIR_WRAPPING_LOOPS(add, a + b)
PAIR_LOOP(add_bool, uint8_t, uint8_t, a | b)
PAIR_FLOAT_LOOPS(sub, a - b)
PAIR_WRAPPING_LOOPS(sub, a - b)
PAIR_FLOAT_LOOPS(mul, a *b)
PAIR_WRAPPING_LOOPS(mul, a *b)
PAIR_LOOP(mul_bool, uint8_t, uint8_t, a &b)
PAIR_FLOAT_LOOPS(div, a / b)

/* NaN is the only value that differs from itself: a NaN in a or b is returned. */
#define EXTREMUM_LOOPS(NAME, OVER)                                                                 \
    PAIR_FLOAT_LOOPS(NAME, ((a OVER b) | (a != a)) ? a : b)                                        \
    PAIR_LOOP(NAME##_i32, int32_t, int32_t, a OVER b ? a : b)                                      \
    PAIR_LOOP(NAME##_i64, int64_t, int64_t, a OVER b ? a : b)                                      \
    PAIR_LOOP(NAME##_u8, uint8_t, uint8_t, a OVER b ? a : b)
EXTREMUM_LOOPS(maximum, >)
EXTREMUM_LOOPS(minimum, <)

/* A divisor of 0 sets the flag in the context. The remainder by -1 is 0, and computing it would
 * overflow for the smallest integer. */
#define DIVISION_LOOP(NAME, TYPE, EXPRESSION)                                                      \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        atomic_bool *const *by_zero = context;                                                     \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const int64_t a = *(const TYPE *)(data[1] + i * strides[1]);                           \
            const int64_t b = *(const TYPE *)(data[2] + i * strides[2]);                           \
            if (b == 0)                                                                            \
                atomic_store_explicit(*by_zero, true, memory_order_relaxed);                       \
            const int64_t rest = b == 0 || b == -1 ? 0 : a % b;                                    \
            *(TYPE *)(data[0] + i * strides[0]) = (TYPE)(EXPRESSION);                              \
        }                                                                                          \
    }
#define DIVISION_LOOPS(NAME, EXPRESSION)                                                           \
    DIVISION_LOOP(NAME##_i32, int32_t, EXPRESSION)                                                 \
    DIVISION_LOOP(NAME##_i64, int64_t, EXPRESSION)                                                 \
    DIVISION_LOOP(NAME##_u8, uint8_t, EXPRESSION)
DIVISION_LOOPS(remainder, rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest)
DIVISION_LOOPS(fmod, rest)

#define COMPARISON_LOOPS(NAME, RELATION)                                                           \
    PAIR_LOOP_TO(NAME##_f32, uint8_t, float, float, a RELATION b)                                  \
    PAIR_LOOP_TO(NAME##_f64, uint8_t, double, double, a RELATION b)                                \
    PAIR_LOOP_TO(NAME##_i32, uint8_t, int32_t, int32_t, a RELATION b)                              \
    PAIR_LOOP_TO(NAME##_i64, uint8_t, int64_t, int64_t, a RELATION b)                              \
    PAIR_LOOP_TO(NAME##_u8, uint8_t, uint8_t, uint8_t, a RELATION b)
COMPARISON_LOOPS(eq, ==)
COMPARISON_LOOPS(ne, !=)
COMPARISON_LOOPS(lt, <)
COMPARISON_LOOPS(le, <=)
COMPARISON_LOOPS(gt, >)
COMPARISON_LOOPS(ge, >=)

PAIR_LOOP_TO(and_bool, uint8_t, uint8_t, uint8_t, a &b)
PAIR_LOOP_TO(or_bool, uint8_t, uint8_t, uint8_t, a | b)
PAIR_LOOP_TO(xor_bool, uint8_t, uint8_t, uint8_t, a ^ b)
LOOP(not_bool, uint8_t, !x)

/* x - x is 0 for finite x, else NaN; integers are always finite. */
#define KIND_LOOPS(NAME, EXPRESSION)                                                               \
    LOOP_TO(NAME##_f32, uint8_t, float, EXPRESSION)                                                \
    LOOP_TO(NAME##_f64, uint8_t, double, EXPRESSION)                                               \
    LOOP_TO(NAME##_i32, uint8_t, int32_t, EXPRESSION)                                              \
    LOOP_TO(NAME##_i64, uint8_t, int64_t, EXPRESSION)                                              \
    LOOP_TO(NAME##_u8, uint8_t, uint8_t, EXPRESSION)
KIND_LOOPS(isnan, x != x)
KIND_LOOPS(isinf, (x == x) & (x - x != 0))
KIND_LOOPS(isfinite, x - x == 0)

#define SAME INTEGERS(same), [WG_BOOL] = same_u8
static const wg__loop loops[WG__ELEMENTWISE_COUNT + 1][WG_DTYPE_COUNT] = {
    [WG_NEG] = {INTEGERS(neg)},
    [WG_ABS] = {[WG_I32] = abs_i32, [WG_I64] = abs_i64, [WG_U8] = same_u8, [WG_BOOL] = same_u8},
    [WG_SQUARE] = {INTEGERS(square)},
    [WG_SIGN] = {INTEGERS(sign), [WG_BOOL] = sign_u8},
    [WG_FLOOR] = {SAME},
    [WG_CEIL] = {SAME},
    [WG_ROUND] = {SAME},
    [WG_TRUNC] = {SAME},
    [WG_RELU] = {[WG_I32] = relu_i32, [WG_I64] = relu_i64, [WG_U8] = same_u8, [WG_BOOL] = same_u8},
    [WG_ADD] = {FLOATS(add), INTEGERS(add), [WG_BOOL] = add_bool},
    [WG_SUB] = {FLOATS(sub), INTEGERS(sub)},
    [WG_MUL] = {FLOATS(mul), INTEGERS(mul), [WG_BOOL] = mul_bool},
    [WG_DIV] = {FLOATS(div)},
    [WG_MAXIMUM] = {ALL_DTYPES(maximum)},
    [WG_MINIMUM] = {ALL_DTYPES(minimum)},
    [WG_REMAINDER] = {INTEGERS(remainder)},
    [WG_FMOD] = {INTEGERS(fmod)},
    [WG_EQ] = {ALL_DTYPES(eq)},
    [WG_NE] = {ALL_DTYPES(ne)},
    [WG_LT] = {ALL_DTYPES(lt)},
    [WG_LE] = {ALL_DTYPES(le)},
    [WG_GT] = {ALL_DTYPES(gt)},
    [WG_GE] = {ALL_DTYPES(ge)},
    [WG_LOGICAL_AND] = {[WG_BOOL] = and_bool},
    [WG_LOGICAL_OR] = {[WG_BOOL] = or_bool},
    [WG_LOGICAL_XOR] = {[WG_BOOL] = xor_bool},
    [WG_LOGICAL_NOT] = {[WG_BOOL] = not_bool},
    [WG_ISNAN] = {ALL_DTYPES(isnan)},
    [WG_ISINF] = {ALL_DTYPES(isinf)},
    [WG_ISFINITE] = {ALL_DTYPES(isfinite)},
};

static int forward(wg_call *call) {
    const int function = function_of(call->op);
    const wg_dtype dtype = call->input_specs[0].dtype;
    if (function == WG__ELEMENTWISE_COUNT)
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "a copy of an elementwise op has to keep its doc");
    if (!loops[function][dtype == WG_BF16 ? WG_F32 : dtype])
        return wg__run_map(call, &(wg__map){.kind = call->input_count == 2 ? WG__PAIRS : WG__VALUES,
                                            .function = function});
    atomic_bool by_zero = false, *flag = &by_zero;
    wg__elementwise_call(call, loops[function], &flag);
    if (by_zero)
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "an integer is divided by 0; cast to a float to get NaN");
    return 0;
}

/* Floats, and the dtypes with a loop. Both operands of a pair have the result's dtype. */
static int infer_arithmetic(wg_call *call) {
    const int function = function_of(call->op);
    const wg_dtype dtype = call->input_specs[0].dtype;
    if (!loops[function][WG_I32] && wg__infer_float(call) < 0)
        return -1;
    if (dtype == WG_BOOL && !loops[function][dtype])
        return wg__op_fail(call, WG_ERROR_DTYPE, "%s",
                           function == WG_NEG ? "a bool has no negative; use logical_not"
                           : function == WG_SUB
                               ? "bools have no difference; cast them, or use logical_xor"
                               : "takes numbers; cast the operand");
    if (call->input_count == 1)
        return wg__infer_like(call);
    return wg__check_same_dtype(call, 0, 1) < 0 ? -1 : wg__infer_broadcast(call, dtype);
}

static int infer_gate(wg_call *call) {
    const wg_spec *gate = &call->input_specs[0], *value = &call->input_specs[1];
    if (wg__check_same_dtype(call, 0, 1) < 0)
        return -1;
    if (!wg__same_shape(gate, value))
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "the shapes of gate and value differ; wanted equal ones");
    return wg__infer_float(call);
}

static int infer_comparison(wg_call *call) {
    if (call->input_count == 2 && wg__check_same_dtype(call, 0, 1) < 0)
        return -1;
    return wg__infer_broadcast(call, WG_BOOL);
}

static int infer_logic(wg_call *call) {
    for (int i = 0; i < call->input_count; i++)
        if (call->input_specs[i].dtype != WG_BOOL)
            return wg__op_fail(call, WG_ERROR_DTYPE, "takes bools; cast operand %d", i);
    return wg__infer_broadcast(call, WG_BOOL);
}

wg_tensor *wg_elementwise(wg_elementwise_op function, wg_tensor *a, wg_tensor *b) {
    if ((unsigned)function >= WG__ELEMENTWISE_COUNT)
        return wg__fail_null(WG_ERROR_ARGUMENT, "elementwise", "there is no function %d",
                             (int)function);
    const wg_op *op = &wg__elementwise_ops[function];
    const bool is_logic = op->infer == infer_logic;
    if (is_logic || (function == WG_SQUARE && a && a->spec.dtype == WG_BOOL)) {
        wg_tensor *x[] = {a, b};
        wg_scope scope;
        wg_scope_begin(&scope);
        for (int i = 0; i < op->max_inputs; i++)
            x[i] = wg_cast(x[i], is_logic ? WG_BOOL : WG_I64);
        return wg_scope_end(&scope, wg_apply_one(op, op->max_inputs, x, NULL));
    }
    const bool takes_floats = !loops[function][WG_I32];
    if (op->max_inputs == 2)
        return wg__apply_promoted(op, 2, (wg_tensor *[]){a, b}, takes_floats, NULL);
    return takes_floats ? wg__apply_float(op, a, NULL) : wg_apply_one(op, 1, &a, NULL);
}

/* ==== Derivatives of unary functions and gates ==== */

/* 1 / sqrt((1 - x) (1 + x)): both factors are exact near -1 and 1. */
static wg_tensor *slope_of_asin(wg_tensor *x) {
    return wg_rsqrt(wg_mul(wg_affine(x, -1, 1), wg_add_scalar(x, 1)));
}

static int vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[0], *x = call->inputs[0], *y = call->outputs[0];
    const int function = function_of(call->op);
    wg_tensor *saved = call->op->saves_outputs ? y : x;
    if (call->input_count == 2)
        return wg__run_gate_slopes(call, function, g, gradients);
    switch (function) {
#define FUNCTION(ENUM, NAME, Y, SAVES, DX, ...)                                                    \
    case ENUM:                                                                                     \
        gradients[0] = DX;                                                                         \
        return wg__vjp_status();
#define SLOPED(ENUM, NAME, Y, SAVES, SLOPE, DX, ...)                                               \
    case ENUM:                                                                                     \
        if (!call->create_graph)                                                                   \
            break;                                                                                 \
        gradients[0] = DX;                                                                         \
        return wg__vjp_status();
#include "tensor/functions.def"
    }
    return wg__run_slopes(call, &(wg__map){.kind = WG__SLOPES, .function = function}, saved, g,
                          gradients);
}

static wg_tensor *decomposed_gelu_tanh(wg_tensor *x) {
    const double scale = M_SQRT1_2 * M_2_SQRTPI; /* sqrt(2/pi) */
    wg_tensor *cube = wg_mul(wg_mul(x, x), x);
    wg_tensor *inner = wg_mul_scalar(wg_add(x, wg_mul_scalar(cube, 0.044715)), scale);
    return wg_mul(x, wg_affine(wg_tanh(inner), 0.5, 0.5));
}

static wg_tensor *decomposed_hardsigmoid(wg_tensor *x) {
    const wg_dtype dtype = wg_tensor_dtype(x);
    wg_tensor *low = wg_le(x, wg_scalar(dtype, -3));
    wg_tensor *up = wg_masked_fill(wg_affine(x, 1.0 / 6, 0.5), low, 0);
    return wg_masked_fill(up, wg_ge(x, wg_scalar(dtype, 3)), 1);
}

/* Outside -3 to 3, where the curve is not used, 0 replaces x in it: its derivative could be
 * infinite there. */
static wg_tensor *decomposed_hardswish(wg_tensor *x) {
    const wg_dtype dtype = wg_tensor_dtype(x);
    wg_tensor *low = wg_le(x, wg_scalar(dtype, -3)), *high = wg_ge(x, wg_scalar(dtype, 3));
    wg_tensor *middle = wg_masked_fill(x, wg_logical_or(low, high), 0);
    return wg_where(high, x, wg_mul(middle, wg_affine(middle, 1.0 / 6, 0.5)));
}

static int decompose(wg_call *call) {
    wg_tensor *x = call->inputs[0], *y = NULL;
    switch (function_of(call->op)) {
#define FUSED(ENUM, NAME, Y, SLOPE, DECOMPOSED, ...)                                               \
    case ENUM:                                                                                     \
        y = DECOMPOSED;                                                                            \
        break;
#define GATE(ENUM, NAME, GATED, FUNCTION, DOC)                                                     \
    case ENUM:                                                                                     \
        y = wg_mul(FUNCTION(x), call->inputs[1]);                                                  \
        break;
#include "tensor/functions.def"
    }
    return wg__set_output(call, y);
}

/* ==== Derivatives of two operands ==== */

static int add_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    for (int i = 0; i < 2; i++)
        if (wg__wants(call, i))
            gradients[i] = wg__sum_like(cotangents[0], call, i);
    if (wg__wants(call, 1) && function_of(call->op) == WG_SUB)
        gradients[1] = wg_neg(gradients[1]);
    return wg__vjp_status();
}

/* da = g / b, db = -g y / b. */
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
    wg_tensor *scaled = tangents[1] ? wg_mul(call->outputs[0], tangents[1]) : NULL;
    wg_tensor *numerator = !scaled        ? tangents[0]
                           : !tangents[0] ? wg_neg(scaled)
                                          : wg_sub(tangents[0], scaled);
    if (numerator)
        output_tangents[0] = wg_div(numerator, call->inputs[1]);
    return wg__vjp_status();
}

/* g times the share of operand a: 1 - ((a < b) + (a <= b)) / 2 for maximum; for minimum, exchange a
 * and b. With a NaN both operands get all of g, as in PyTorch. */
static wg_tensor *share(wg_tensor *g, wg_tensor *larger, wg_tensor *smaller) {
    const wg_dtype dtype = wg_tensor_dtype(g);
    wg_tensor *twice =
        wg_add(wg_cast(wg_lt(larger, smaller), dtype), wg_cast(wg_le(larger, smaller), dtype));
    return wg_mul(g, wg_affine(twice, -0.5, 1));
}

/* g times the derivative by input i.
 *
 *     mul          b, a                         maximum, minimum   1 where chosen, 1/2 at ties
 *     pow          b a^(b-1), but 0 at a = b = 0; y log a, but 0 where a = 0 and b >= 0
 *     atan2        (b / r) / r, -(a / r) / r with r = hypot(a, b), so that no square overflows
 *     hypot        a / y, b / y
 *     logaddexp    sigmoid(a - b), sigmoid(b - a)
 *     xlogy        log b, but 0 where a = 0 and b <= 0; a / b
 *     remainder, fmod   1, -q with q = (a - y) / b, rounded to an integer
 *
 * Singular operands are replaced before the function is applied, not in the result, so that higher
 * derivatives contain no 0 * inf either. */
static wg_tensor *pair_partial(wg_call *call, int i, wg_tensor *g) {
    wg_tensor *a = call->inputs[0], *b = call->inputs[1], *other = call->inputs[1 - i];
    wg_tensor *zero, *flat;
    switch (function_of(call->op)) {
    case WG_MUL:
        return wg_mul(g, other);
    case WG_MAXIMUM:
        return share(g, call->inputs[i], other);
    case WG_MINIMUM:
        return share(g, other, call->inputs[i]);
    case WG_POW:
        zero = wg_scalar(call->output_specs[0].dtype, 0);
        if (i == 0) {
            flat = wg_logical_and(wg_eq(a, zero), wg_eq(b, zero));
            return wg_mul(wg_mul(g, b), wg_pow(a, wg_where(flat, zero, wg_add_scalar(b, -1))));
        }
        flat = wg_logical_and(wg_eq(a, zero), wg_ge(b, zero));
        return wg_mul(wg_mul(g, call->outputs[0]),
                      wg_log(wg_where(flat, wg_add_scalar(zero, 1), a)));
    case WG_ATAN2: {
        wg_tensor *r = wg_hypot(a, b);
        wg_tensor *slope = wg_mul(wg_div(g, r), wg_div(other, r));
        return i == 0 ? slope : wg_neg(slope);
    }
    case WG_HYPOT:
        return wg_mul(g, wg_div(call->inputs[i], call->outputs[0]));
    case WG_LOGADDEXP:
        return wg_mul(g, wg_sigmoid(wg_sub(call->inputs[i], other)));
    case WG_XLOGY:
        if (i == 1)
            return wg_div(wg_mul(g, a), b);
        zero = wg_scalar(call->output_specs[0].dtype, 0);
        flat = wg_logical_and(wg_eq(a, zero), wg_le(b, zero));
        return wg_mul(g, wg_log(wg_where(flat, wg_add_scalar(zero, 1), b)));
    default: /* remainder, fmod */
        if (i == 0)
            return g;
        return wg_neg(wg_mul(g, wg_round(wg_div(wg_sub(a, call->outputs[0]), b))));
    }
}

WG__DERIVATIVES_BY_PARTIALS(pair)

static wg_tensor *angle(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_affine(wg_rand(generator, WG_F64, ndim, shape), 2.4, -1.2);
}

static wg_tensor *inside(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_affine(wg_rand(generator, WG_F64, ndim, shape), 1.7, -0.85);
}

static wg_tensor *beyond(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_affine(wg_rand(generator, WG_F64, ndim, shape), 2, 1.25);
}

UNARY_SAMPLE(sample_normal, wg__sample_normal)
UNARY_SAMPLE(sample_positive, wg__sample_positive)
UNARY_SAMPLE(sample_nonzero, wg__sample_nonzero)
UNARY_SAMPLE(sample_off_steps, wg__sample_off_steps)
UNARY_SAMPLE(sample_turn, angle)
UNARY_SAMPLE(sample_inside, inside)
UNARY_SAMPLE(sample_beyond, beyond)
UNARY_SAMPLE(sample_off_poles, wg__sample_off_poles)
UNARY_SAMPLE(sample_steps, wg__sample_steps)

/* Odd multiples of 1/8 by multiples of 1/2: no quotient is an integer. */
static wg_tensor *eighths(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_affine(wg_cast(wg_randint(generator, -12, 12, ndim, shape), WG_F64), 0.25, 0.125);
}

static wg_tensor *halves(wg_generator *generator, int ndim, const int64_t *shape) {
    wg_tensor *x = wg_cast(wg_randint(generator, 1, 6, ndim, shape), WG_F64);
    wg_tensor *sign = wg_cast(wg_randint(generator, 0, 2, ndim, shape), WG_F64);
    return wg_mul(x, wg_affine(sign, 1, -0.5));
}

/* With zeros, NaN and infinities. */
static wg_tensor *quotient(wg_generator *generator, int ndim, const int64_t *shape) {
    wg_tensor *divisor = wg__sample_coarse(generator, ndim, shape);
    return wg_div(wg__sample_coarse(generator, ndim, shape), divisor);
}

PAIR_SAMPLE(pair_normal, wg__sample_normal, wg__sample_normal)
PAIR_SAMPLE(pair_nonzero, wg__sample_nonzero, wg__sample_nonzero)
PAIR_SAMPLE(sample_quotients, wg__sample_normal, wg__sample_nonzero)
PAIR_SAMPLE(sample_powers, wg__sample_positive, wg__sample_normal)
PAIR_SAMPLE(sample_logarithms, wg__sample_nonzero, wg__sample_positive)
PAIR_SAMPLE(sample_unequal, wg__sample_distinct, wg__sample_off_steps)
PAIR_SAMPLE(sample_divisions, eighths, halves)
PAIR_SAMPLE(sample_comparisons, wg__sample_coarse, wg__sample_coarse)
PAIR_SAMPLE(sample_logic, wg__sample_truth, wg__sample_truth)
UNARY_SAMPLE(sample_negations, wg__sample_truth)
UNARY_SAMPLE(sample_kinds, quotient)

WG__SHAPES(gate, (wg__sample_nonzero, wg__sample_normal), "2 3 1, 2 3 1", "1 2 35, 1 2 35",
           "2 2 2, 2 2 2")

static int acosh_bench(wg_generator *generator, wg_sample *sample) {
    sample->inputs[0] = wg_add_scalar(wg_rand(generator, WG_F32, 1, (int64_t[]){1 << 22}), 1);
    return wg__sample_status(sample, 1);
}

WG__LARGE_BY(logic, int, (wg__sample_truth), "4194304, 4194304", 0)
WG__LARGE_BY(negation, int, (wg__sample_truth), "4194304", 0)

/* The kinks of hardsigmoid and hardswish. */
static int kinks_at_three(const void *options, double *kinks) {
    (void)options;
    kinks[0] = -3;
    kinks[1] = 3;
    return 2;
}

static const wg_op_exceptions hard = {.kinks = kinks_at_three};

#define RECORD(NAME, INPUTS, DOC)                                                                  \
    WG__OP(NAME, INPUTS, DOC), .batch = wg_batch_aligned, .forward = forward
#define PAIR_RECORD(NAME, DOC) RECORD(NAME, 2, DOC), .differentiable = 3, .bench = wg__bench_two
#define BY_PARTIALS(NAME, DOC)                                                                     \
    PAIR_RECORD(NAME, DOC), .vjp = pair_vjp, .jvp = pair_jvp, .saves_inputs = 3
/* A quotient by 0 has no limit. */
#define DIVISION(NAME, DOC)                                                                        \
    BY_PARTIALS(NAME, DOC), .saves_outputs = 1,                                                    \
                            .exceptions = &(const wg_op_exceptions){.undefined_at = WG_AT_ZERO},   \
                            .infer = infer_arithmetic, .sample = sample_divisions
#define CHOICE(NAME, ADJECTIVE)                                                                    \
    BY_PARTIALS(NAME, "y = the " ADJECTIVE " of a and b, with broadcasting; NaN if either is. "    \
                      "Kink at a = b, where each gets half of the gradient."),                     \
        .infer = infer_arithmetic, .sample = sample_unequal
#define COMPARISON(NAME, RELATION, WITH_NAN)                                                       \
    RECORD(NAME, 2, "y = (a " RELATION " b), bool, with broadcasting; " WITH_NAN " with a NaN."),  \
        .no_gradient = "its values are bools: piecewise constant in the operands",                 \
        .infer = infer_comparison, .sample = sample_comparisons, .bench = wg__bench_two
#define LOGIC(NAME, WORD)                                                                          \
    RECORD(NAME, 2, "y = a " WORD " b, of bools, with broadcasting."),                             \
        .no_gradient = "its operands and results are bools", .infer = infer_logic,                 \
        .sample = sample_logic, .bench = logic_bench
#define KIND(NAME, DOC)                                                                            \
    RECORD(NAME, 1, DOC),                                                                          \
        .no_gradient = "its values are bools: piecewise constant in the operand",                  \
        .infer = infer_comparison, .sample = sample_kinds, .bench = wg__bench_one

#define FUNCTION(ENUM, NAME, Y, SAVES, DX, SAMPLE, DOC)                                            \
    [ENUM] = {RECORD(NAME, 1, DOC),                                                                \
              .differentiable = 1,                                                                 \
              .infer = infer_arithmetic,                                                           \
              SAVES,                                                                               \
              .vjp = vjp,                                                                          \
              .jvp = wg__jvp_diagonal,                                                             \
              .sample = SAMPLE,                                                                    \
              .bench = (ENUM) == WG_ACOSH ? acosh_bench : wg__bench_one},
#define SLOPED(ENUM, NAME, Y, SAVES, SLOPE, DX, SAMPLE, DOC)                                       \
    FUNCTION(ENUM, NAME, Y, SAVES, DX, SAMPLE, DOC)
#define FUSED(ENUM, NAME, Y, SLOPE, DECOMPOSED, SAMPLE, DOC)                                       \
    [ENUM] = {RECORD(NAME, 1, DOC " Fused."),                                                      \
              .differentiable = 1,                                                                 \
              .infer = infer_arithmetic,                                                           \
              .saves_inputs = 1,                                                                   \
              .saves_rounded = 1,                                                                  \
              .exceptions = (ENUM) == WG_HARDSIGMOID || (ENUM) == WG_HARDSWISH ? &hard : NULL,     \
              .vjp = vjp,                                                                          \
              .decompose = decompose,                                                              \
              .sample = SAMPLE,                                                                    \
              .bench = wg__bench_one},
#define GATE(ENUM, NAME, GATED, FUNCTION, DOC)                                                     \
    [ENUM] = {WG__OP(NAME, 2, DOC),   .saves_inputs = 3,                                           \
              .saves_rounded = 3,     .differentiable = 3,                                         \
              .infer = infer_gate,    .batch = wg__batch_leading,                                  \
              .forward = forward,     .vjp = vjp,                                                  \
              .decompose = decompose, .sample = gate_sample,                                       \
              .bench = wg__bench_two},

const wg_op wg__elementwise_ops[WG__ELEMENTWISE_COUNT] = {
#include "tensor/functions.def"
    [WG_ADD] = {PAIR_RECORD("add", "y = a + b with broadcasting; of bools: or."),
                .infer = infer_arithmetic, .vjp = add_vjp, .jvp = wg_jvp_linear,
                .sample = pair_normal},
    [WG_SUB] = {PAIR_RECORD("sub", "y = a - b with broadcasting."), .infer = infer_arithmetic,
                .vjp = add_vjp, .jvp = wg_jvp_linear, .sample = pair_normal},
    [WG_MUL] = {BY_PARTIALS("mul",
                            "y = a b, element by element, with broadcasting; of bools: and."),
                .infer = infer_arithmetic, .sample = pair_normal},
    [WG_DIV] = {PAIR_RECORD("div", "y = a / b with broadcasting, true division."),
                .saves_inputs = 2, .saves_outputs = 1, .infer = infer_arithmetic, .vjp = div_vjp,
                .jvp = div_jvp, .sample = sample_quotients},
    [WG_POW] = {BY_PARTIALS("pow", "y = a^b with broadcasting. The derivative in b is y log a, 0 "
                                   "where a = 0 and b >= 0; NaN in a where b is no integer and a "
                                   "< 0."),
                .saves_outputs = 1, .infer = infer_arithmetic, .sample = sample_powers},
    [WG_MAXIMUM] = {CHOICE("maximum", "larger")},
    [WG_MINIMUM] = {CHOICE("minimum", "smaller")},
    [WG_ATAN2] = {BY_PARTIALS("atan2", "y = the angle of the point (b, a), -pi to pi, with "
                                       "broadcasting. Jumps where a is 0 and b < 0; the derivative "
                                       "at (0, 0) is NaN."),
                  .infer = infer_arithmetic, .sample = pair_nonzero},
    [WG_HYPOT] = {BY_PARTIALS("hypot", "y = sqrt(a^2 + b^2) without overflow of the squares, with "
                                       "broadcasting. The derivative at (0, 0) is NaN."),
                  .saves_outputs = 1, .infer = infer_arithmetic, .sample = pair_nonzero},
    [WG_LOGADDEXP] = {BY_PARTIALS("logaddexp",
                                  "y = ln(e^a + e^b) without overflow, with broadcasting."),
                      .infer = infer_arithmetic, .sample = pair_normal},
    [WG_XLOGY] = {BY_PARTIALS("xlogy", "y = a ln b with broadcasting, and 0 where a = 0 (but NaN "
                                       "where b is); the derivative in a is 0 where a = 0 and b "
                                       "<= 0."),
                  .infer = infer_arithmetic, .sample = sample_logarithms},
    [WG_REMAINDER] = {DIVISION("remainder", "y = a - b floor(a / b) with broadcasting: of the sign "
                                            "of b, as Python's %. Jumps where a / b is whole.")},
    [WG_FMOD] = {DIVISION("fmod", "y = a - b trunc(a / b) with broadcasting: of the sign of a, as "
                                  "C's %. Jumps where a / b is whole.")},
    [WG_EQ] = {COMPARISON("eq", "==", "false")},
    [WG_NE] = {COMPARISON("ne", "!=", "true")},
    [WG_LT] = {COMPARISON("lt", "<", "false")},
    [WG_LE] = {COMPARISON("le", "<=", "false")},
    [WG_GT] = {COMPARISON("gt", ">", "false")},
    [WG_GE] = {COMPARISON("ge", ">=", "false")},
    [WG_LOGICAL_AND] = {LOGIC("logical_and", "and")},
    [WG_LOGICAL_OR] = {LOGIC("logical_or", "or")},
    [WG_LOGICAL_XOR] = {LOGIC("logical_xor", "exclusive or")},
    [WG_LOGICAL_NOT] = {RECORD("logical_not", 1, "y = not x, of bools."),
                        .no_gradient = "its operands and results are bools", .infer = infer_logic,
                        .sample = sample_negations, .bench = negation_bench},
    [WG_ISNAN] = {KIND("isnan", "y = (x is NaN), bool.")},
    [WG_ISINF] = {KIND("isinf", "y = (x is inf or -inf), bool.")},
    [WG_ISFINITE] = {KIND("isfinite", "y = (x is neither NaN nor infinite), bool.")},
};

const wg__op_table wg__ops_functions = {NULL, WG__ELEMENTWISE_COUNT};
