/* Elementwise ops of three operands that broadcast: where, lerp, addcmul and addcdiv in one pass,
 * and masked_fill, whose third operand is a number. */
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"

#include <math.h>

/* ==== Choosing. Elements are copied as bits, so that one loop serves all dtypes of a size. ==== */

/* Picks the loop for the size of a dtype's elements: 1, 2, 4 or 8 bytes. */
static wg__loop loop_for(wg_dtype dtype, const wg__loop *loops) {
    const size_t size = wg_dtype_size(dtype);
    /* cppcheck-suppress CastIntegerToAddressAtReturn ; the array holds function pointers */
    return loops[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3];
}

static int check_bool(const wg_call *call, int i) {
    if (call->input_specs[i].dtype == WG_BOOL)
        return 0;
    return wg__op_fail(call, WG_ERROR_DTYPE, "operand %d decides, and must be bool; cast it", i);
}

/* ---- where: y = condition ? a : b.
 * da = g where the condition is true, db = g where it is not. ---- */

#define WHERE_LOOP(NAME, TYPE)                                                                     \
    static inline void NAME##_at(int64_t n, char *const *data, int64_t sy, int64_t sc, int64_t sa, \
                                 int64_t sb) {                                                     \
        TYPE *restrict y = (TYPE *)data[0];                                                        \
        const uint8_t *restrict condition = (const uint8_t *)data[1];                              \
        const TYPE *restrict pa = (const TYPE *)data[2], *restrict pb = (const TYPE *)data[3];     \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const TYPE a = pa[i * sa], b = pb[i * sb];                                             \
            y[i * sy] = condition[i * sc] ? a : b;                                                 \
        }                                                                                          \
    }                                                                                              \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        (void)context;                                                                             \
        const int64_t size = (int64_t)sizeof(TYPE);                                                \
        const int64_t sy = strides[0] / size, sc = strides[1];                                     \
        const int64_t sa = strides[2] / size, sb = strides[3] / size;                              \
        if (sy == 1 && sc == 1 && sa == 1 && sb == 1)                                              \
            NAME##_at(n, data, 1, 1, 1, 1);                                                        \
        else                                                                                       \
            NAME##_at(n, data, sy, sc, sa, sb);                                                    \
    }

WHERE_LOOP(where_1, uint8_t)
WHERE_LOOP(where_2, uint16_t)
WHERE_LOOP(where_4, uint32_t)
WHERE_LOOP(where_8, uint64_t)

static int where_infer(wg_call *call) {
    if (check_bool(call, 0) < 0 || wg__check_same_dtype(call, 1, 2) < 0)
        return -1;
    return wg__infer_broadcast(call, 0, call->input_specs[1].dtype);
}

static int where_forward(wg_call *call) {
    static const wg__loop loops[] = {where_1, where_2, where_4, where_8};
    wg_tensor *const operands[] = {call->outputs[0], call->inputs[0], call->inputs[1],
                                   call->inputs[2]};
    wg__iterate(4, operands, loop_for(call->output_specs[0].dtype, loops), NULL);
    return 0;
}

static int where_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[0], *condition = call->inputs[0];
    if (wg__wants(call, 1))
        gradients[1] = wg__sum_like(wg_masked_fill(g, wg_logical_not(condition), 0), call, 1);
    if (wg__wants(call, 2))
        gradients[2] = wg__sum_like(wg_masked_fill(g, condition, 0), call, 2);
    return wg__vjp_status();
}

static int where_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const wg__sampler samplers[] = {wg__sample_truth, wg__sample_normal, wg__sample_normal};
    return wg__sample_ternary(index, generator, sample, samplers);
}

static int where_bench(wg_generator *generator, wg_sample *sample) {
    const int64_t shape[] = {1 << 22};
    sample->inputs[0] = wg__sample_truth(generator, 1, shape);
    for (int i = 1; i < 3; i++)
        sample->inputs[i] = wg_rand(generator, WG_F32, 1, shape);
    return wg__sample_status(sample, 3);
}

static const wg_op where = {
    WG__OP("where", 3,
           "y = condition ? a : b, element by element, all three broadcast; the condition is bool "
           "and has no gradient."),
    .saves_inputs = 1,
    .differentiable = 6,
    .infer = where_infer,
    .batch = wg_batch_aligned,
    .forward = where_forward,
    .vjp = where_vjp,
    .jvp = wg_jvp_linear,
    .sample = where_sample,
    .bench = where_bench,
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

typedef struct fill_options {
    double value;
} fill_options;

/* `context` is the value as an element. */
#define FILL_LOOP(NAME, TYPE)                                                                      \
    static inline void NAME##_at(int64_t n, char *const *data, int64_t sy, int64_t sx, int64_t sm, \
                                 const TYPE value) {                                               \
        TYPE *restrict y = (TYPE *)data[0];                                                        \
        const TYPE *restrict px = (const TYPE *)data[1];                                           \
        const uint8_t *restrict mask = (const uint8_t *)data[2];                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const TYPE x = px[i * sx];                                                             \
            y[i * sy] = mask[i * sm] ? value : x;                                                  \
        }                                                                                          \
    }                                                                                              \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        const TYPE value = *(const TYPE *)context;                                                 \
        const int64_t size = (int64_t)sizeof(TYPE);                                                \
        const int64_t sy = strides[0] / size, sx = strides[1] / size, sm = strides[2];             \
        if (sy == 1 && sx == 1 && sm == 1)                                                         \
            NAME##_at(n, data, 1, 1, 1, value);                                                    \
        else                                                                                       \
            NAME##_at(n, data, sy, sx, sm, value);                                                 \
    }

FILL_LOOP(fill_1, uint8_t)
FILL_LOOP(fill_2, uint16_t)
FILL_LOOP(fill_4, uint32_t)
FILL_LOOP(fill_8, uint64_t)

static int masked_fill_infer(wg_call *call) {
    if (check_bool(call, 1) < 0 || wg__infer_broadcast(call, 0, call->input_specs[0].dtype) < 0)
        return -1;
    if (!wg__same_shape(&call->output_specs[0], &call->input_specs[0]))
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "the mask must broadcast to x; expand x to fill more of it");
    return 0;
}

static int masked_fill_forward(wg_call *call) {
    static const wg__loop loops[] = {fill_1, fill_2, fill_4, fill_8};
    const wg_dtype dtype = call->output_specs[0].dtype;
    uint64_t element = 0;
    wg__set_element(dtype, &element, ((const fill_options *)call->options)->value);
    wg_tensor *const operands[] = {call->outputs[0], call->inputs[0], call->inputs[1]};
    wg__iterate(3, operands, loop_for(dtype, loops), &element);
    return 0;
}

WG__VJP(masked_fill, wg_masked_fill(g, call->inputs[1], 0))

static int masked_fill_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const fill_options options = {-2.5};
    static const struct {
        int ndims[2];
        int64_t shapes[2][3];
    } cases[] = {
        {{2, 2}, {{2, 3}, {2, 3}}},
        {{3, 2}, {{2, 3, 2}, {3, 1}}},
        {{1, 0}, {{4}, {0}}},
        {{0, 0}, {{0}, {0}}},
    };
    if (index >= (int)(sizeof cases / sizeof *cases))
        return 0;
    sample->options = &options;
    sample->inputs[0] = wg__sample_normal(generator, cases[index].ndims[0], cases[index].shapes[0]);
    sample->inputs[1] = wg__sample_truth(generator, cases[index].ndims[1], cases[index].shapes[1]);
    return wg__sample_status(sample, 2);
}

static int masked_fill_bench(wg_generator *generator, wg_sample *sample) {
    static const fill_options options = {-2.5};
    const int64_t shape[] = {1 << 22};
    sample->options = &options;
    sample->inputs[0] = wg_rand(generator, WG_F32, 1, shape);
    sample->inputs[1] = wg__sample_truth(generator, 1, shape);
    return wg__sample_status(sample, 2);
}

static const wg_op masked_fill = {
    WG__OP("masked_fill", 2,
           "y = a plain number where the bool mask, broadcast to x, is true, and x elsewhere; the "
           "mask has no gradient."),
    .options_size = sizeof(fill_options),
    .saves_inputs = 2,
    .differentiable = 1,
    .infer = masked_fill_infer,
    .batch = wg__batch_repeated_first,
    .forward = masked_fill_forward,
    .vjp = masked_fill_vjp,
    .jvp = wg__jvp_diagonal,
    .sample = masked_fill_sample,
    .bench = masked_fill_bench,
};

wg_tensor *wg_masked_fill(wg_tensor *x, wg_tensor *mask, double value) {
    return wg_apply_one(&masked_fill, 2, (wg_tensor *[]){x, mask}, &(fill_options){value});
}

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
    WG__OP(#NAME, 3, DOC), .differentiable = 7, .batch = wg_batch_aligned,                         \
                           .forward = NAME##_forward, .vjp = NAME##_vjp, .jvp = NAME##_jvp
#define VALUE(NAME, DOC)                                                                           \
    TERNARY(NAME, DOC), .options_size = sizeof(value_options), .saves_inputs = 6,                  \
                        .sample = value_sample, .bench = value_bench

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
    static const wg__sampler normal[] = {wg__sample_normal, wg__sample_normal, wg__sample_normal};
    return wg__sample_ternary(index, generator, sample, normal);
}

static const wg_op lerp = {
    TERNARY(lerp, "y = a + weight (b - a) with broadcasting: a at weight 0, b at 1."),
    .saves_inputs = 7, .infer = infer_ternary_float, .sample = lerp_sample,
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

WG__LARGE(value, value_options, "4194304, 4194304, 4194304", -0.75)

static const wg_op addcmul = {
    VALUE(addcmul, "y = x + value a b with broadcasting, value a plain number."),
    .infer = addcmul_infer};

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
    VALUE(addcdiv, "y = x + value a / b with broadcasting, value a plain number."),
    .infer = infer_ternary_float};

wg_tensor *wg_addcdiv(wg_tensor *x, wg_tensor *a, wg_tensor *b, double value) {
    return apply_three(&addcdiv, x, a, b, &(value_options){value}, true);
}

static const wg_op *const ops[] = {&where, &masked_fill, &lerp, &addcmul, &addcdiv};

const wg__op_table wg__ops_ternary = {ops, sizeof ops / sizeof *ops};
