/* Arithmetic of two operands with broadcasting, and of one with plain numbers.
 *
 * Operands of different dtypes are cast to the higher one before the op runs, so a kernel sees one
 * dtype, and the gradients find their way back through the casts. */
#include "tensor/ops/elementwise.h"
#include "tensor/ops/families.h"

#include <math.h>

/* ---- Inner loops ---- */

/* The loop NAME of y = EXPRESSION in a and b, read from elements of TYPE into variables of AS. The
 * layouts that matter (all contiguous; one operand repeated) are constants for the compiler, which
 * then vectorises them. */
#define LOOP(NAME, TYPE, AS, EXPRESSION)                                                           \
    static inline void NAME##_at(int64_t n, char *const *data, int64_t sy, int64_t sa,             \
                                 int64_t sb) {                                                     \
        TYPE *restrict y = (TYPE *)data[0];                                                        \
        const TYPE *pa = (const TYPE *)data[1], *pb = (const TYPE *)data[2];                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const AS a = (AS)pa[i * sa], b = (AS)pb[i * sb];                                       \
            y[i * sy] = (TYPE)(EXPRESSION);                                                        \
        }                                                                                          \
    }                                                                                              \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        (void)context;                                                                             \
        const int64_t size = (int64_t)sizeof(TYPE);                                                \
        const int64_t sy = strides[0] / size, sa = strides[1] / size, sb = strides[2] / size;      \
        if (sy == 1 && sa == 1 && sb == 1)                                                         \
            NAME##_at(n, data, 1, 1, 1);                                                           \
        else if (sy == 1 && sa == 1 && sb == 0)                                                    \
            NAME##_at(n, data, 1, 1, 0);                                                           \
        else if (sy == 1 && sa == 0 && sb == 1)                                                    \
            NAME##_at(n, data, 1, 0, 1);                                                           \
        else                                                                                       \
            NAME##_at(n, data, sy, sa, sb);                                                        \
    }

/* Integers wrap around: the arithmetic is that of unsigned numbers, which C defines. */
#define WRAPPING_LOOPS(NAME, EXPRESSION)                                                           \
    LOOP(NAME##_i32, int32_t, uint32_t, EXPRESSION)                                                \
    LOOP(NAME##_i64, int64_t, uint64_t, EXPRESSION)                                                \
    LOOP(NAME##_u8, uint8_t, uint32_t, EXPRESSION)

#define FLOAT_LOOPS(NAME, EXPRESSION)                                                              \
    LOOP(NAME##_f32, float, float, EXPRESSION)                                                     \
    LOOP(NAME##_f64, double, double, EXPRESSION)

#define FLOATS(NAME) [WG_F32] = NAME##_f32, [WG_F64] = NAME##_f64
#define INTEGERS(NAME) [WG_I32] = NAME##_i32, [WG_I64] = NAME##_i64, [WG_U8] = NAME##_u8

/* ---- What the two-operand ops share ---- */

static int infer(wg_call *call) {
    if (wg__check_same_dtype(call, 0, 1) < 0)
        return -1;
    return wg__infer_broadcast(call, 0, call->input_specs[0].dtype);
}

static int infer_float(wg_call *call) {
    return wg__infer_float(call) < 0 ? -1 : infer(call);
}

static int sample_normal(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_binary(index, generator, sample, wg__sample_normal, wg__sample_normal);
}

/* ---- add: y = a + b; of bools: or.   da = g, db = g. ---- */

FLOAT_LOOPS(add, a + b)
WRAPPING_LOOPS(add, a + b)
LOOP(add_bool, uint8_t, uint8_t, a | b)

static int add_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(add),
                                                   INTEGERS(add), [WG_BOOL] = add_bool};
    return wg__elementwise_call(call, loops, NULL);
}

static int add_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    for (int i = 0; i < 2; i++)
        if (wg__wants(call, i))
            gradients[i] = wg__sum_like(cotangents[0], call, i);
    return wg__vjp_status();
}

static const wg_op add = {
    .name = "add",
    .doc = "y = a + b with broadcasting; of bools: or.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .differentiable = 3,
    .infer = infer,
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

FLOAT_LOOPS(sub, a - b)
WRAPPING_LOOPS(sub, a - b)

static int sub_infer(wg_call *call) {
    if (call->input_specs[0].dtype == WG_BOOL)
        return wg__op_fail(call, WG_ERROR_DTYPE,
                           "bools have no difference; cast them, or use logical_xor");
    return infer(call);
}

static int sub_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(sub), INTEGERS(sub)};
    return wg__elementwise_call(call, loops, NULL);
}

static int sub_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (wg__wants(call, 0))
        gradients[0] = wg__sum_like(cotangents[0], call, 0);
    if (wg__wants(call, 1))
        gradients[1] = wg_neg(wg__sum_like(cotangents[0], call, 1));
    return wg__vjp_status();
}

static const wg_op sub = {
    .name = "sub",
    .doc = "y = a - b with broadcasting.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .differentiable = 3,
    .infer = sub_infer,
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

FLOAT_LOOPS(mul, a *b)
WRAPPING_LOOPS(mul, a *b)
LOOP(mul_bool, uint8_t, uint8_t, a &b)

static int mul_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(mul),
                                                   INTEGERS(mul), [WG_BOOL] = mul_bool};
    return wg__elementwise_call(call, loops, NULL);
}

static wg_tensor *mul_partial(wg_call *call, int i, wg_tensor *direction) {
    return wg_mul(direction, call->inputs[1 - i]);
}

WG__DERIVATIVES_BY_PARTIALS(mul)

static const wg_op mul = {
    .name = "mul",
    .doc = "y = a b, element by element, with broadcasting; of bools: and.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .saves_inputs = 3,
    .differentiable = 3,
    .infer = infer,
    .forward = mul_forward,
    .vjp = mul_vjp,
    .jvp = mul_jvp,
    .sample = sample_normal,
    .bench = wg__bench_two,
};

wg_tensor *wg_mul(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&mul, a, b, false);
}

/* ---- div: y = a / b.   da = g / b, db = -g y / b. ---- */

FLOAT_LOOPS(div, a / b)

static int div_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(div)};
    return wg__elementwise_call(call, loops, NULL);
}

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

static int div_sample(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_binary(index, generator, sample, wg__sample_normal, wg__sample_nonzero);
}

static const wg_op div_op = {
    .name = "div",
    .doc = "y = a / b with broadcasting, true division.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .saves_inputs = 2,
    .saves_outputs = 1,
    .differentiable = 3,
    .infer = infer_float,
    .forward = div_forward,
    .vjp = div_vjp,
    .jvp = div_jvp,
    .sample = div_sample,
    .bench = wg__bench_two,
};

wg_tensor *wg_div(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&div_op, a, b, true);
}

/* ---- pow: y = a^b.   da = g b a^(b-1), which at a = b = 0 is 0; db = g y log a, which is 0 where
 * a = 0 and b >= 0. ---- */

LOOP(pow_f32, float, float, powf(a, b))
LOOP(pow_f64, double, double, pow(a, b))

static int pow_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(pow)};
    return wg__elementwise_call(call, loops, NULL);
}

/* The singular places are taken out of the operands, not out of the result, so that the derivatives
 * of these gradients hold no 0 * inf either. */
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

WG__DERIVATIVES_BY_PARTIALS(pow)

static int pow_sample(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_binary(index, generator, sample, wg__sample_positive, wg__sample_normal);
}

static const wg_op pow_op = {
    .name = "pow",
    .doc = "y = a^b with broadcasting. The derivative in b is y log a, 0 where a = 0 and b >= 0; "
           "NaN in a where b is no integer and a < 0.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .saves_inputs = 3,
    .saves_outputs = 1,
    .differentiable = 3,
    .infer = infer_float,
    .forward = pow_forward,
    .vjp = pow_vjp,
    .jvp = pow_jvp,
    .sample = pow_sample,
    .bench = wg__bench_two,
};

wg_tensor *wg_pow(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&pow_op, a, b, true);
}

/* ---- maximum, minimum: y = the larger, the smaller of a and b; NaN if either is.   da = g where a
 * is chosen, g / 2 at ties. ---- */

/* NaN is the only number that differs from itself: it is chosen wherever it stands. */
FLOAT_LOOPS(maximum, ((a > b) | (a != a)) ? a : b)
LOOP(maximum_i32, int32_t, int32_t, a > b ? a : b)
LOOP(maximum_i64, int64_t, int64_t, a > b ? a : b)
LOOP(maximum_u8, uint8_t, uint8_t, a > b ? a : b)

static int maximum_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(maximum),
                                                   INTEGERS(maximum), [WG_BOOL] = maximum_u8};
    return wg__elementwise_call(call, loops, NULL);
}

/* g weighted by how much of y is a: 1 - ((a < b) + (a <= b)) / 2 for maximum, with the operands
 * exchanged for minimum. Beside a NaN each has all of it, as in PyTorch. */
static wg_tensor *share(wg_tensor *g, wg_tensor *larger, wg_tensor *smaller) {
    const wg_dtype dtype = wg_tensor_dtype(g);
    wg_tensor *twice =
        wg_add(wg_cast(wg_lt(larger, smaller), dtype), wg_cast(wg_le(larger, smaller), dtype));
    return wg_mul(g, wg_affine(twice, -0.5, 1));
}

static wg_tensor *maximum_partial(wg_call *call, int i, wg_tensor *direction) {
    return share(direction, call->inputs[i], call->inputs[1 - i]);
}

WG__DERIVATIVES_BY_PARTIALS(maximum)

/* Multiples of 1/4 against the same with 1/8 more: never tied. */
static wg_tensor *sample_between(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_affine(wg__sample_distinct(generator, ndim, shape), 1, 0.0625);
}

static int extremum_sample(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_binary(index, generator, sample, wg__sample_distinct, sample_between);
}

static const wg_op maximum = {
    .name = "maximum",
    .doc = "y = the larger of a and b, with broadcasting; NaN if either is. Kink at a = b, where "
           "each gets half of the gradient.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .saves_inputs = 3,
    .differentiable = 3,
    .infer = infer,
    .forward = maximum_forward,
    .vjp = maximum_vjp,
    .jvp = maximum_jvp,
    .sample = extremum_sample,
    .bench = wg__bench_two,
};

wg_tensor *wg_maximum(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&maximum, a, b, false);
}

FLOAT_LOOPS(minimum, ((a < b) | (a != a)) ? a : b)
LOOP(minimum_i32, int32_t, int32_t, a < b ? a : b)
LOOP(minimum_i64, int64_t, int64_t, a < b ? a : b)
LOOP(minimum_u8, uint8_t, uint8_t, a < b ? a : b)

static int minimum_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(minimum),
                                                   INTEGERS(minimum), [WG_BOOL] = minimum_u8};
    return wg__elementwise_call(call, loops, NULL);
}

static wg_tensor *minimum_partial(wg_call *call, int i, wg_tensor *direction) {
    return share(direction, call->inputs[1 - i], call->inputs[i]);
}

WG__DERIVATIVES_BY_PARTIALS(minimum)

static const wg_op minimum = {
    .name = "minimum",
    .doc = "y = the smaller of a and b, with broadcasting; NaN if either is. Kink at a = b, where "
           "each gets half of the gradient.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .saves_inputs = 3,
    .differentiable = 3,
    .infer = infer,
    .forward = minimum_forward,
    .vjp = minimum_vjp,
    .jvp = minimum_jvp,
    .sample = extremum_sample,
    .bench = wg__bench_two,
};

wg_tensor *wg_minimum(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&minimum, a, b, false);
}

/* ---- Loops of one operand with the numbers of an options struct as `o`. ---- */

#define LOOP_1(NAME, TYPE, OPTIONS, EXPRESSION)                                                    \
    static inline void NAME##_at(int64_t n, char *const *data, int64_t sy, int64_t sx,             \
                                 const OPTIONS o) {                                                \
        TYPE *restrict y = (TYPE *)data[0];                                                        \
        const TYPE *px = (const TYPE *)data[1];                                                    \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const TYPE x = px[i * sx];                                                             \
            y[i * sy] = (TYPE)(EXPRESSION);                                                        \
        }                                                                                          \
    }                                                                                              \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        const OPTIONS o = *(const OPTIONS *)context;                                               \
        const int64_t size = (int64_t)sizeof(TYPE);                                                \
        const int64_t sy = strides[0] / size, sx = strides[1] / size;                              \
        if (sy == 1 && sx == 1)                                                                    \
            NAME##_at(n, data, 1, 1, o);                                                           \
        else                                                                                       \
            NAME##_at(n, data, sy, sx, o);                                                         \
    }

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

LOOP_1(affine_f32, float, affine_options, x *(float)o.scale + (float)o.shift)
LOOP_1(affine_f64, double, affine_options, x *o.scale + o.shift)
LOOP_1(affine_i32, int32_t, affine_options, affine_integer(x, o))
LOOP_1(affine_i64, int64_t, affine_options, affine_integer(x, o))
LOOP_1(affine_u8, uint8_t, affine_options, affine_integer(x, o))
LOOP_1(affine_bool, uint8_t, affine_options, x *o.scale + o.shift != 0)

static int affine_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(affine),
                                                   INTEGERS(affine), [WG_BOOL] = affine_bool};
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

LOOP_1(pow_scalar_f32, float, pow_options, powf(x, (float)o.exponent))
LOOP_1(pow_scalar_f64, double, pow_options, pow(x, o.exponent))
LOOP_1(square_f32, float, pow_options, ((void)o, x *x))
LOOP_1(square_f64, double, pow_options, ((void)o, x *x))

static int pow_scalar_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(pow_scalar)};
    static const wg__loop square_loops[WG_DTYPE_COUNT] = {FLOATS(square)};
    const pow_options *options = call->options;
    return wg__elementwise_call(call, options->exponent == 2 ? square_loops : loops, options);
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

static const wg_op *const ops[] = {&add,     &sub,     &mul,    &div_op,    &pow_op,
                                   &maximum, &minimum, &affine, &pow_scalar};

const wg__op_family wg__family_binary = {ops, sizeof ops / sizeof *ops};
