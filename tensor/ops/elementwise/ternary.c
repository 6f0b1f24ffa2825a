/* Arithmetic of three operands with broadcasting, in one pass. All have one dtype when a kernel
 * sees them. */
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"

#include <math.h>

typedef struct value_options {
    double value;
} value_options;

/* The loop NAME of y = EXPRESSION in x, a and b, read from elements of TYPE into variables of AS,
 * and in `value`, that of the options. */
#define LOOP(NAME, TYPE, AS, EXPRESSION)                                                           \
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
    .name = #NAME, .doc = DOC, .min_inputs = 3, .max_inputs = 3, .output_count = 1,                \
    .differentiable = 7, .forward = NAME##_forward, .vjp = NAME##_vjp, .jvp = NAME##_jvp

static int infer(wg_call *call) {
    if (wg__check_same_dtype(call, 0, 1) < 0 || wg__check_same_dtype(call, 0, 2) < 0)
        return -1;
    return wg__infer_broadcast(call, 0, call->input_specs[0].dtype);
}

static int infer_float(wg_call *call) {
    return wg__infer_float(call) < 0 ? -1 : infer(call);
}

/* Casts the operands to their common dtype; with `floating`, to f32 at least. */
static wg_tensor *apply(const wg_op *op, wg_tensor *x, wg_tensor *a, wg_tensor *b,
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

static int sample(int index, wg_generator *generator, wg_sample *sample, wg__sampler last) {
    static const struct {
        int ndims[3];
        int64_t shapes[3][3];
    } cases[] = {
        {{2, 2, 2}, {{2, 3}, {2, 3}, {2, 3}}},
        {{1, 2, 0}, {{3}, {2, 1}, {0}}},
        {{3, 1, 3}, {{2, 1, 2}, {2}, {1, 3, 1}}},
        {{0, 0, 0}, {{0}, {0}, {0}}},
    };
    if (index >= (int)(sizeof cases / sizeof *cases))
        return 0;
    for (int i = 0; i < 3; i++)
        sample->inputs[i] = (i == 2 ? last : wg__sample_normal)(generator, cases[index].ndims[i],
                                                                cases[index].shapes[i]);
    return wg__sample_status(sample, 3);
}

/* ---- lerp: y = x + b (a - x), which at b = 1 is a.   dx = g (1 - b), da = g b, db = g (a - x).
 * ---- */

LOOP(lerp_f32, float, float, b < 0.5f ? x + b * (a - x) : a - (a - x) * (1 - b))
LOOP(lerp_f64, double, double, b < 0.5 ? x + b * (a - x) : a - (a - x) * (1 - b))

static int lerp_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {[WG_F32] = lerp_f32, [WG_F64] = lerp_f64};
    return wg__elementwise_call(call, loops, &(value_options){0});
}

static wg_tensor *lerp_partial(wg_call *call, int i, wg_tensor *direction) {
    wg_tensor *weight = call->inputs[2];
    if (i == 2)
        return wg_mul(direction, wg_sub(call->inputs[1], call->inputs[0]));
    return wg_mul(direction, i == 1 ? weight : wg_affine(weight, -1, 1));
}

WG__DERIVATIVES_BY_PARTIALS(lerp)

static int lerp_sample(int index, wg_generator *generator, wg_sample *drawn) {
    return sample(index, generator, drawn, wg__sample_normal);
}

static const wg_op lerp = {
    TERNARY(lerp, "y = a + weight (b - a) with broadcasting: a at weight 0, b at 1."),
    .saves_inputs = 7, .infer = infer_float, .sample = lerp_sample, .bench = wg__bench_three};

wg_tensor *wg_lerp(wg_tensor *a, wg_tensor *b, wg_tensor *weight) {
    return apply(&lerp, a, b, weight, NULL, true);
}

/* ---- addcmul: y = x + value a b.   dx = g, da = g value b, db = g value a. ---- */

LOOP(addcmul_f32, float, float, x + value * a * b)
LOOP(addcmul_f64, double, double, x + value * a * b)
LOOP(addcmul_i32, int32_t, uint32_t, x + value * a * b)
LOOP(addcmul_i64, int64_t, uint64_t, x + value * a * b)
LOOP(addcmul_u8, uint8_t, uint32_t, x + value * a * b)

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
    return infer(call);
}

static int addcmul_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {[WG_F32] = addcmul_f32,
                                                   [WG_F64] = addcmul_f64,
                                                   [WG_I32] = addcmul_i32,
                                                   [WG_I64] = addcmul_i64,
                                                   [WG_U8] = addcmul_u8};
    return wg__elementwise_call(call, loops, call->options);
}

static wg_tensor *scaled(const wg_call *call, wg_tensor *x) {
    const double value = ((const value_options *)call->options)->value;
    return value == 1 ? x : wg_mul_scalar(x, value);
}

static wg_tensor *addcmul_partial(wg_call *call, int i, wg_tensor *direction) {
    return i == 0 ? direction : scaled(call, wg_mul(direction, call->inputs[3 - i]));
}

WG__DERIVATIVES_BY_PARTIALS(addcmul)

static int addcmul_sample(int index, wg_generator *generator, wg_sample *drawn) {
    static const value_options options[] = {{-0.75}, {1}};
    drawn->options = &options[index % 2];
    return sample(index, generator, drawn, wg__sample_normal);
}

static int value_bench(wg_generator *generator, wg_sample *drawn) {
    static const value_options options = {-0.75};
    drawn->options = &options;
    return wg__bench_three(generator, drawn);
}

static const wg_op addcmul = {
    TERNARY(addcmul, "y = x + value a b with broadcasting, value a plain number."),
    .options_size = sizeof(value_options),
    .saves_inputs = 6,
    .infer = addcmul_infer,
    .sample = addcmul_sample,
    .bench = value_bench};

wg_tensor *wg_addcmul(wg_tensor *x, wg_tensor *a, wg_tensor *b, double value) {
    return apply(&addcmul, x, a, b, &(value_options){value}, false);
}

/* ---- addcdiv: y = x + value a / b.   dx = g, da = g value / b, db = -g value a / b^2. ---- */

LOOP(addcdiv_f32, float, float, x + value * a / b)
LOOP(addcdiv_f64, double, double, x + value * a / b)

static int addcdiv_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {[WG_F32] = addcdiv_f32, [WG_F64] = addcdiv_f64};
    return wg__elementwise_call(call, loops, call->options);
}

static wg_tensor *addcdiv_partial(wg_call *call, int i, wg_tensor *direction) {
    wg_tensor *a = call->inputs[1], *b = call->inputs[2];
    if (i == 0)
        return direction;
    wg_tensor *slope = scaled(call, wg_div(direction, b));
    return i == 1 ? slope : wg_neg(wg_mul(slope, wg_div(a, b)));
}

WG__DERIVATIVES_BY_PARTIALS(addcdiv)

static int addcdiv_sample(int index, wg_generator *generator, wg_sample *drawn) {
    static const value_options options[] = {{-0.75}, {1}};
    drawn->options = &options[index % 2];
    return sample(index, generator, drawn, wg__sample_nonzero);
}

static const wg_op addcdiv = {
    TERNARY(addcdiv, "y = x + value a / b with broadcasting, value a plain number."),
    .options_size = sizeof(value_options),
    .saves_inputs = 6,
    .infer = infer_float,
    .sample = addcdiv_sample,
    .bench = value_bench};

wg_tensor *wg_addcdiv(wg_tensor *x, wg_tensor *a, wg_tensor *b, double value) {
    return apply(&addcdiv, x, a, b, &(value_options){value}, true);
}

static const wg_op *const ops[] = {&lerp, &addcmul, &addcdiv};

const wg__op_family wg__family_ternary = {ops, sizeof ops / sizeof *ops};
