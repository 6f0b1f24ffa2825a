/* Choosing: by a condition from two tensors, or between a tensor and a number. Elements are moved
 * as bits, so that one loop serves all dtypes of a size. */
#include "tensor/convert.h"
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"

/* The loop for the size of a dtype's elements, out of those for 1, 2, 4 and 8 bytes. */
static wg__loop loop_for(wg_dtype dtype, const wg__loop *loops) {
    const size_t size = wg_dtype_size(dtype);
    return loops[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3];
}

static int check_bool(const wg_call *call, int i) {
    if (call->input_specs[i].dtype == WG_BOOL)
        return 0;
    return wg__op_fail(call, WG_ERROR_DTYPE, "operand %d decides, and must be bool; cast it", i);
}

static wg_tensor *sample_truth(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_cast(wg_randint(generator, 0, 2, ndim, shape), WG_BOOL);
}

/* ---- where: y = condition ? a : b.   da = g where the condition is true, db = g where it is not.
 * ---- */

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
    static const struct {
        int ndims[3];
        int64_t shapes[3][3];
    } cases[] = {
        {{2, 2, 2}, {{2, 3}, {2, 3}, {2, 3}}},
        {{1, 2, 0}, {{3}, {2, 1}, {0}}},
        {{3, 1, 3}, {{2, 1, 2}, {2}, {1, 3, 1}}},
        {{0, 1, 1}, {{0}, {1}, {1}}},
    };
    if (index >= (int)(sizeof cases / sizeof *cases))
        return 0;
    for (int i = 0; i < 3; i++)
        sample->inputs[i] = (i == 0 ? sample_truth : wg__sample_normal)(
            generator, cases[index].ndims[i], cases[index].shapes[i]);
    return wg__sample_status(sample, 3);
}

static int where_bench(wg_generator *generator, wg_sample *sample) {
    const int64_t shape[] = {1 << 22};
    sample->inputs[0] = sample_truth(generator, 1, shape);
    for (int i = 1; i < 3; i++)
        sample->inputs[i] = wg_rand(generator, WG_F32, 1, shape);
    return wg__sample_status(sample, 3);
}

static const wg_op where = {
    .name = "where",
    .doc = "y = condition ? a : b, element by element, all three broadcast; the condition is bool "
           "and has no gradient.",
    .min_inputs = 3,
    .max_inputs = 3,
    .output_count = 1,
    .saves_inputs = 1,
    .differentiable = 6,
    .infer = where_infer,
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

static int masked_fill_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_masked_fill(cotangents[0], call->inputs[1], 0);
    return wg__vjp_status();
}

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
    .name = "masked_fill",
    .doc = "y = a plain number where the bool mask, broadcast to x, is true, and x elsewhere; the "
           "mask has no gradient.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .options_size = sizeof(fill_options),
    .saves_inputs = 2,
    .differentiable = 1,
    .infer = masked_fill_infer,
    .forward = masked_fill_forward,
    .vjp = masked_fill_vjp,
    .jvp = wg__jvp_diagonal,
    .sample = masked_fill_sample,
    .bench = masked_fill_bench,
};

wg_tensor *wg_masked_fill(wg_tensor *x, wg_tensor *mask, double value) {
    return wg_apply_one(&masked_fill, 2, (wg_tensor *[]){x, mask}, &(fill_options){value});
}

static const wg_op *const ops[] = {&where, &masked_fill};

const wg__op_family wg__family_select = {ops, sizeof ops / sizeof *ops};
