/* Comparison and logic, which give bools and have no gradient; and choosing by a condition: where
 * and masked_fill. */
#include "tensor/internal.h"
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"

/* ---- Comparisons: loops and samples ---- */

static int comparison_infer(wg_call *call) {
    return wg__check_same_dtype(call, 0, 1) < 0 ? -1 : wg__infer_broadcast(call, 0, WG_BOOL);
}

/* Integers from -1 to 1, so that ties and zeros occur. */
static wg_tensor *sample_coarse(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_cast(wg_randint(generator, -1, 2, ndim, shape), WG_F64);
}

PAIR_SAMPLE(comparison_sample, sample_coarse, sample_coarse)

/* ---- eq, ne, lt, le, gt, ge: y = whether the relation holds; every relation with a NaN is false,
 * except ne. ---- */

/* The op NAME: loops for every dtype, the record and the public function. */
#define COMPARISON(NAME, RELATION, WITH_NAN)                                                       \
    PAIR_LOOP_TO(NAME##_f32, uint8_t, float, float, a RELATION b)                                  \
    PAIR_LOOP_TO(NAME##_f64, uint8_t, double, double, a RELATION b)                                \
    PAIR_LOOP_TO(NAME##_i32, uint8_t, int32_t, int32_t, a RELATION b)                              \
    PAIR_LOOP_TO(NAME##_i64, uint8_t, int64_t, int64_t, a RELATION b)                              \
    PAIR_LOOP_TO(NAME##_u8, uint8_t, uint8_t, uint8_t, a RELATION b)                               \
    FORWARD(NAME, NULL, ALL_DTYPES(NAME))                                                          \
    static const wg_op NAME = {                                                                    \
        WG__OP(#NAME, 2,                                                                           \
               "y = (a " #RELATION " b), bool, with broadcasting; " WITH_NAN " with a NaN."),      \
        .no_gradient = "its values are bools: piecewise constant in the operands",                 \
        .infer = comparison_infer,                                                                 \
        .batch = wg_batch_aligned,                                                                 \
        .forward = NAME##_forward,                                                                 \
        .sample = comparison_sample,                                                               \
        .bench = wg__bench_two};                                                                   \
    wg_tensor *wg_##NAME(wg_tensor *a, wg_tensor *b) {                                             \
        return wg__apply_two(&NAME, a, b, false);                                                  \
    }

COMPARISON(eq, ==, "false")
COMPARISON(ne, !=, "true")
COMPARISON(lt, <, "false")
COMPARISON(le, <=, "false")
COMPARISON(gt, >, "false")
COMPARISON(ge, >=, "false")

/* ---- logical_and, logical_or, logical_xor, logical_not: of bools; other dtypes are cast to
 * bool. ---- */

static int logic_infer(wg_call *call) {
    for (int i = 0; i < call->input_count; i++)
        if (call->input_specs[i].dtype != WG_BOOL)
            return wg__op_fail(call, WG_ERROR_DTYPE, "takes bools; cast operand %d", i);
    return wg__infer_broadcast(call, 0, WG_BOOL);
}

static wg_tensor *sample_truth(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_cast(wg_randint(generator, 0, 2, ndim, shape), WG_BOOL);
}

PAIR_SAMPLE(logic_sample, sample_truth, sample_truth)

static int logic_bench(wg_generator *generator, wg_sample *sample) {
    const int64_t shape[] = {1 << 22};
    for (int i = 0; i < 2; i++)
        sample->inputs[i] = sample_truth(generator, 1, shape);
    return wg__sample_status(sample, 2);
}

static wg_tensor *truth(wg_tensor *x) {
    return x == NULL || x->spec.dtype == WG_BOOL ? x : wg_cast(x, WG_BOOL);
}

static wg_tensor *combine(const wg_op *op, wg_tensor *a, wg_tensor *b) {
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, wg_apply_one(op, 2, (wg_tensor *[]){truth(a), truth(b)}, NULL));
}

/* The op NAME: y = a WORD b. */
#define LOGIC(NAME, OPERATOR, WORD)                                                                \
    PAIR_LOOP_TO(NAME##_bool, uint8_t, uint8_t, uint8_t, a OPERATOR b)                             \
    FORWARD(NAME, NULL, [WG_BOOL] = NAME##_bool)                                                   \
    static const wg_op NAME = {WG__OP(#NAME, 2, "y = a " WORD " b, of bools, with broadcasting."), \
                               .no_gradient = "its operands and results are bools",                \
                               .infer = logic_infer,                                               \
                               .batch = wg_batch_aligned,                                          \
                               .forward = NAME##_forward,                                          \
                               .sample = logic_sample,                                             \
                               .bench = logic_bench};                                              \
    wg_tensor *wg_##NAME(wg_tensor *a, wg_tensor *b) {                                             \
        return combine(&NAME, a, b);                                                               \
    }

LOGIC(logical_and, &, "and")
LOGIC(logical_or, |, "or")
LOGIC(logical_xor, ^, "exclusive or")

LOOP(not_bool, uint8_t, !x)

FORWARD(logical_not, NULL, [WG_BOOL] = not_bool)

UNARY_SAMPLE(logical_not_sample, sample_truth)

static int logical_not_bench(wg_generator *generator, wg_sample *sample) {
    const int64_t shape[] = {1 << 22};
    sample->inputs[0] = sample_truth(generator, 1, shape);
    return wg__sample_status(sample, 1);
}

static const wg_op logical_not = {
    WG__OP("logical_not", 1, "y = not x, of bools."),
    .no_gradient = "its operands and results are bools",
    .infer = logic_infer,
    .batch = wg_batch_aligned,
    .forward = logical_not_forward,
    .sample = logical_not_sample,
    .bench = logical_not_bench,
};

wg_tensor *wg_logical_not(wg_tensor *x) {
    wg_scope scope;
    wg_scope_begin(&scope);
    x = truth(x);
    return wg_scope_end(&scope, wg_apply_one(&logical_not, 1, &x, NULL));
}

/* ---- isnan, isinf, isfinite: y = whether x is of that kind; integers are finite. ---- */

#define KIND_LOOP(NAME, TYPE, EXPRESSION)                                                          \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        (void)context;                                                                             \
        uint8_t *restrict y = (uint8_t *)data[0];                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const TYPE x = *(const TYPE *)(data[1] + i * strides[1]);                              \
            y[i * strides[0]] = (EXPRESSION);                                                      \
        }                                                                                          \
    }

static int kind_infer(wg_call *call) {
    return wg__infer_broadcast(call, 0, WG_BOOL);
}

/* Quotients of integers from -1 to 1: every kind occurs. */
static wg_tensor *sample_quotient(wg_generator *generator, int ndim, const int64_t *shape) {
    wg_tensor *divisor = sample_coarse(generator, ndim, shape);
    return wg_div(sample_coarse(generator, ndim, shape), divisor);
}

UNARY_SAMPLE(kind_sample, sample_quotient)

/* The op NAME: y = EXPRESSION in x. */
#define KIND(NAME, EXPRESSION, DOC)                                                                \
    KIND_LOOP(NAME##_f32, float, EXPRESSION)                                                       \
    KIND_LOOP(NAME##_f64, double, EXPRESSION)                                                      \
    KIND_LOOP(NAME##_i32, int32_t, EXPRESSION)                                                     \
    KIND_LOOP(NAME##_i64, int64_t, EXPRESSION)                                                     \
    KIND_LOOP(NAME##_u8, uint8_t, EXPRESSION)                                                      \
    FORWARD(NAME, NULL, ALL_DTYPES(NAME))                                                          \
    static const wg_op NAME##_op = {                                                               \
        WG__OP(#NAME, 1, DOC),                                                                     \
        .no_gradient = "its values are bools: piecewise constant in the operand",                  \
        .infer = kind_infer,                                                                       \
        .batch = wg_batch_aligned,                                                                 \
        .forward = NAME##_forward,                                                                 \
        .sample = kind_sample,                                                                     \
        .bench = wg__bench_one};                                                                   \
    wg_tensor *wg_##NAME(wg_tensor *x) {                                                           \
        return wg_apply_one(&NAME##_op, 1, &x, NULL);                                              \
    }

/* A difference with itself is 0 for finite numbers, NaN for all others; integers never differ. */
KIND(isnan, x != x, "y = (x is NaN), bool.")
KIND(isinf, (x == x) & (x - x != 0), "y = (x is inf or -inf), bool.")
KIND(isfinite, x - x == 0, "y = (x is neither NaN nor infinite), bool.")

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
    static const wg__sampler samplers[] = {sample_truth, wg__sample_normal, wg__sample_normal};
    return wg__sample_ternary(index, generator, sample, samplers);
}

static int where_bench(wg_generator *generator, wg_sample *sample) {
    const int64_t shape[] = {1 << 22};
    sample->inputs[0] = sample_truth(generator, 1, shape);
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
    sample->inputs[1] = sample_truth(generator, cases[index].ndims[1], cases[index].shapes[1]);
    return wg__sample_status(sample, 2);
}

static int masked_fill_bench(wg_generator *generator, wg_sample *sample) {
    static const fill_options options = {-2.5};
    const int64_t shape[] = {1 << 22};
    sample->options = &options;
    sample->inputs[0] = wg_rand(generator, WG_F32, 1, shape);
    sample->inputs[1] = sample_truth(generator, 1, shape);
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

static const wg_op *const ops[] = {&eq,          &ne,          &lt,          &le,
                                   &gt,          &ge,          &logical_and, &logical_or,
                                   &logical_xor, &logical_not, &isnan_op,    &isinf_op,
                                   &isfinite_op, &where,       &masked_fill};

const wg__op_table wg__ops_compare = {ops, sizeof ops / sizeof *ops};
