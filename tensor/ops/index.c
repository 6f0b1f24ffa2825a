/* Indexing by tensors of indices. A record sees i64 indices; the functions cast i32. */
#include "tensor/convert.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/families.h"

#include <string.h>

/* ---- Indices ---- */

static int check_is_index(const wg_call *call, int i) {
    const wg_dtype dtype = call->input_specs[i].dtype;
    if (dtype == WG_I64)
        return 0;
    return wg__op_fail(call, WG_ERROR_DTYPE, "indices are i64 or i32, not %s; cast operand %d",
                       wg_dtype_name(dtype), i);
}

static wg_tensor *as_i64(wg_tensor *index) {
    return index != NULL && index->spec.dtype == WG_I32 ? wg_cast(index, WG_I64) : index;
}

typedef struct range {
    int64_t size;
    atomic_bool has_outside;
    atomic_llong outside; /* one of the indices outside */
} range;

static void find_outside(int64_t n, char *const *data, const int64_t *strides,
                         const void *context) {
    range *range = (struct range *)context;
    for (int64_t i = 0; i < n; i++) {
        const int64_t index = *(const int64_t *)(data[0] + i * strides[0]);
        if (index < 0 || index >= range->size) {
            atomic_store(&range->outside, index);
            atomic_store(&range->has_outside, true);
        }
    }
}

/* Whether some index is outside [0, size); if so, `found` becomes one of them. Repeated axes (of
 * stride 0) are read once. */
static bool has_outside(const wg_tensor *index, int64_t size, long long *found) {
    wg_tensor once = *index;
    for (int i = 0; i < once.spec.ndim; i++)
        if (once.strides[i] == 0 && once.spec.shape[i] > 1)
            once.spec.shape[i] = 1;
    range range = {.size = size};
    wg__iterate(1, (wg_tensor *[]){&once}, find_outside, &range);
    *found = atomic_load(&range.outside);
    return atomic_load(&range.has_outside);
}

static int check_range(const wg_call *call, int i, int64_t size) {
    long long found;
    if (!has_outside(call->inputs[i], size, &found))
        return 0;
    return wg__op_fail(call, WG_ERROR_INDEX, "index %lld is out of range; wanted 0 to %lld", found,
                       (long long)size - 1);
}

/* ---- The walk of gather and scatter_add ----
 *
 * `indexed` (x, or the tensor that is added to) is addressed by an index along `axis` and by its
 * place along the others; `index` and `values` have one shape. A row is a stretch of the last other
 * axis, the inner one. */

typedef struct walk {
    char *indexed;
    char *values;
    const int64_t *index;
    size_t size; /* bytes of an element */
    int ndim, axis, inner;
    int64_t shape[WG_MAX_DIMS];
    int64_t indexed_strides[WG_MAX_DIMS], index_strides[WG_MAX_DIMS], value_strides[WG_MAX_DIMS];
    int64_t block; /* scatter_add: places along the inner axis that an item takes */
    int64_t skip;  /* scatter_add: an index that is left out, or -1 */
} walk;

static walk walk_make(const wg_tensor *indexed, int axis, const wg_tensor *index,
                      const wg_tensor *values) {
    walk walk = {.indexed = wg__tensor_address(indexed),
                 .values = wg__tensor_address(values),
                 .index = wg__tensor_address(index),
                 .size = wg_dtype_size(values->spec.dtype),
                 .ndim = index->spec.ndim,
                 .axis = axis,
                 .skip = -1};
    const size_t bytes = (size_t)walk.ndim * sizeof(int64_t);
    memcpy(walk.shape, index->spec.shape, bytes);
    memcpy(walk.indexed_strides, indexed->strides, bytes);
    memcpy(walk.index_strides, index->strides, bytes);
    memcpy(walk.value_strides, values->strides, bytes);
    if (walk.ndim == 1) /* an axis of size 1 to be the inner one */
        walk.shape[walk.ndim++] = 1;
    walk.inner = axis == walk.ndim - 1 ? walk.ndim - 2 : walk.ndim - 1;
    return walk;
}

/* Offsets, in elements, of one place. */
typedef struct place {
    int64_t indexed, index, value;
} place;

/* The place number `rest` of those along all axes but `a` and `b`. */
static place place_at(const walk *walk, int64_t rest, int a, int b) {
    place place = {0};
    for (int i = walk->ndim - 1; i >= 0; i--) {
        if (i == a || i == b)
            continue;
        const int64_t at = rest % walk->shape[i];
        rest /= walk->shape[i];
        place.index += at * walk->index_strides[i];
        place.value += at * walk->value_strides[i];
        if (i != walk->axis)
            place.indexed += at * walk->indexed_strides[i];
    }
    return place;
}

static int64_t count_without(const walk *walk, int a, int b) {
    int64_t count = 1;
    for (int i = 0; i < walk->ndim; i++)
        count *= i == a || i == b ? 1 : walk->shape[i];
    return count;
}

/* ---- gather: y[..i..] = x[..index[..i..]..] along an axis.   dx = g scattered to where it came
 * from. ---- */

/* Elements are moved as bits, so that one row serves all dtypes of a size. */
#define GATHER_ROW(NAME, TYPE)                                                                     \
    static void NAME(const walk *walk, place at) {                                                 \
        const int64_t n = walk->shape[walk->inner];                                                \
        const int64_t sx = walk->indexed_strides[walk->inner];                                     \
        const int64_t si = walk->index_strides[walk->inner];                                       \
        const int64_t sy = walk->value_strides[walk->inner];                                       \
        const int64_t along = walk->indexed_strides[walk->axis];                                   \
        const TYPE *x = (const TYPE *)walk->indexed + at.indexed;                                  \
        const int64_t *index = walk->index + at.index;                                             \
        TYPE *y = (TYPE *)walk->values + at.value;                                                 \
        if (si == 0 && sx == 1 && sy == 1) {                                                       \
            memcpy(y, x + *index * along, (size_t)n * sizeof(TYPE));                               \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i * sy] = x[index[i * si] * along + i * sx];                                         \
    }

GATHER_ROW(gather_row_1, uint8_t)
GATHER_ROW(gather_row_2, uint16_t)
GATHER_ROW(gather_row_4, uint32_t)
GATHER_ROW(gather_row_8, uint64_t)

static void gather_rows(int64_t begin, int64_t end, void *context) {
    const walk *walk = context;
    for (int64_t row = begin; row < end; row++) {
        const place at = place_at(walk, row, walk->inner, walk->inner);
        switch (walk->size) {
        case 1:
            gather_row_1(walk, at);
            break;
        case 2:
            gather_row_2(walk, at);
            break;
        case 4:
            gather_row_4(walk, at);
            break;
        default:
            gather_row_8(walk, at);
        }
    }
}

/* Fills y, of index's shape. The indices have been checked. */
static void run_gather(const wg_tensor *x, int axis, const wg_tensor *index, const wg_tensor *y) {
    if (wg__spec_count(&y->spec) == 0)
        return;
    walk walk = walk_make(x, axis, index, y);
    wg__parallel_for(count_without(&walk, walk.inner, walk.inner),
                     WG__GRAIN / walk.shape[walk.inner] + 1, gather_rows, &walk);
}

typedef struct index_options {
    int axis;
} index_options;

/* index must have the rank of x and, off the axis, no size beyond x's. */
static int check_index_shape(const wg_call *call) {
    const int axis = ((const index_options *)call->options)->axis;
    const wg_spec *x = &call->input_specs[0], *index = &call->input_specs[1];
    if (index->ndim != x->ndim)
        return wg__op_fail(call, WG_ERROR_SHAPE, "ranks %d and %d differ; index needs that of x",
                           x->ndim, index->ndim);
    for (int i = 0; i < x->ndim; i++)
        if (i != axis && index->shape[i] > x->shape[i])
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "size %lld of axis %d of index is beyond that of x, %lld",
                               (long long)index->shape[i], i, (long long)x->shape[i]);
    return 0;
}

static int gather_infer(wg_call *call) {
    if (check_is_index(call, 1) < 0 || check_index_shape(call) < 0)
        return -1;
    call->output_specs[0] = call->input_specs[1];
    call->output_specs[0].dtype = call->input_specs[0].dtype;
    return 0;
}

static int gather_forward(wg_call *call) {
    const int axis = ((const index_options *)call->options)->axis;
    const wg_tensor *x = call->inputs[0], *index = call->inputs[1];
    if (check_range(call, 1, x->spec.shape[axis]) < 0)
        return -1;
    run_gather(x, axis, index, call->outputs[0]);
    return 0;
}

static int gather_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const int axis = ((const index_options *)call->options)->axis;
    const wg_spec *x = &call->input_specs[0];
    gradients[0] =
        wg_scatter_add(wg_zeros(x->dtype, x->ndim, x->shape), axis, call->inputs[1], cotangents[0]);
    return wg__vjp_status();
}

typedef struct index_case {
    index_options options;
    int ndim;
    int64_t x[3], index[3];
} index_case;

static const index_case index_cases[] = {
    {{1}, 2, {3, 4}, {3, 2}},       {{0}, 2, {3, 4}, {5, 3}},       {{0}, 1, {4}, {6}},
    {{1}, 3, {2, 3, 2}, {2, 4, 2}}, {{2}, 3, {2, 1, 3}, {1, 1, 1}},
};

/* x and an index into it; the options name the axis. */
static int sample_index(int i, wg_generator *generator, wg_sample *sample) {
    if (i >= (int)(sizeof index_cases / sizeof *index_cases))
        return 0;
    const index_case *c = &index_cases[i];
    sample->options = &c->options;
    sample->inputs[0] = wg__sample_normal(generator, c->ndim, c->x);
    sample->inputs[1] = wg_randint(generator, 0, c->x[c->options.axis], c->ndim, c->index);
    return wg__sample_status(sample, 2);
}

static const wg_op gather = {
    .name = "gather",
    .doc = "y[..i..] = x[..index[..i..]..] along an axis; index has the rank of x and gives y its "
           "shape. The index has no gradient.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .options_size = sizeof(index_options),
    .saves_inputs = 2,
    .differentiable = 1,
    .infer = gather_infer,
    .forward = gather_forward,
    .vjp = gather_vjp,
    .sample = sample_index,
};

wg_tensor *wg_gather(wg_tensor *x, int axis, wg_tensor *index) {
    const int along = x == NULL ? -1 : wg__axis(axis, x->spec.ndim, "gather");
    if (along < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, wg_apply_one(&gather, 2, (wg_tensor *[]){x, as_i64(index)},
                                             &(index_options){along}));
}

/* index_select is a gather whose index is repeated, by strides of 0, along the other axes. */

static wg_tensor *index_select(wg_tensor *x, int axis, wg_tensor *index) {
    int64_t line[WG_MAX_DIMS], shape[WG_MAX_DIMS];
    for (int i = 0; i < x->spec.ndim; i++) {
        line[i] = i == axis ? index->spec.shape[0] : 1;
        shape[i] = i == axis ? index->spec.shape[0] : x->spec.shape[i];
    }
    index = wg_expand(wg_reshape(index, x->spec.ndim, line), x->spec.ndim, shape);
    return wg_gather(x, axis, index);
}

/* What index_select asks of its index, in its own name. */
static int check_line_index(const wg_tensor *x, int axis, const wg_tensor *index) {
    char text[160], index_text[160];
    wg_spec_text(text, sizeof text, &x->spec);
    wg_spec_text(index_text, sizeof index_text, &index->spec);
    long long found;
    if (index->spec.dtype != WG_I64)
        return wg_fail(WG_ERROR_DTYPE, "index_select",
                       "%s x %s: indices are i64 or i32; cast operand 1", text, index_text);
    if (index->spec.ndim != 1)
        return wg_fail(WG_ERROR_SHAPE, "index_select", "%s x %s: wanted an index of rank 1", text,
                       index_text);
    if (has_outside(index, x->spec.shape[axis], &found))
        return wg_fail(WG_ERROR_INDEX, "index_select",
                       "%s x %s: index %lld is out of range; wanted 0 to %lld", text, index_text,
                       found, (long long)x->spec.shape[axis] - 1);
    return 0;
}

wg_tensor *wg_index_select(wg_tensor *x, int axis, wg_tensor *index) {
    const int along =
        x == NULL || index == NULL ? -1 : wg__axis(axis, x->spec.ndim, "index_select");
    if (along < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    index = as_i64(index);
    const bool fits = index != NULL && check_line_index(x, along, index) == 0;
    return wg_scope_end(&scope, fits ? index_select(x, along, index) : NULL);
}

/* ---- scatter_add: y = x with src[..i..] added at [..index[..i..]..] along an axis.   dx = g, dsrc
 * = gather of g.
 *
 * An item takes a block of the inner axis at one place of the others, and all of the axis: no two
 * items add to one element, and each element sees its addends in the order of the index. ---- */

#define SCATTER_ITEM(NAME, TYPE, SUM)                                                              \
    static void NAME(const walk *walk, place at, int64_t n) {                                      \
        const int64_t sy = walk->indexed_strides[walk->inner];                                     \
        const int64_t si = walk->index_strides[walk->inner];                                       \
        const int64_t ss = walk->value_strides[walk->inner];                                       \
        const int64_t along = walk->indexed_strides[walk->axis];                                   \
        for (int64_t k = 0; k < walk->shape[walk->axis]; k++) {                                    \
            const int64_t *index = walk->index + at.index + k * walk->index_strides[walk->axis];   \
            const TYPE *restrict src =                                                             \
                (const TYPE *)walk->values + at.value + k * walk->value_strides[walk->axis];       \
            TYPE *restrict y = (TYPE *)walk->indexed + at.indexed;                                 \
            if (si == 0 && *index == walk->skip)                                                   \
                continue;                                                                          \
            if (si == 0 && sy == 1 && ss == 1) {                                                   \
                y += *index * along;                                                               \
                for (int64_t i = 0; i < n; i++)                                                    \
                    y[i] = (TYPE)((SUM)y[i] + (SUM)src[i]);                                        \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const int64_t to = index[i * si] * along + i * sy;                                 \
                y[to] = (TYPE)((SUM)y[to] + (SUM)src[i * ss]);                                     \
            }                                                                                      \
        }                                                                                          \
    }

SCATTER_ITEM(scatter_f32, float, float)
SCATTER_ITEM(scatter_f64, double, double)
SCATTER_ITEM(scatter_i32, int32_t, uint32_t)
SCATTER_ITEM(scatter_i64, int64_t, uint64_t)
SCATTER_ITEM(scatter_u8, uint8_t, uint32_t)

typedef struct scatter {
    walk walk;
    void (*run)(const walk *walk, place at, int64_t n);
} scatter;

/* Places along the inner axis of one item. */
#define SCATTER_BLOCK 64

static void scatter_items(int64_t begin, int64_t end, void *context) {
    const scatter *scatter = context;
    const walk *walk = &scatter->walk;
    const int64_t size = walk->shape[walk->inner];
    const int64_t blocks = (size + SCATTER_BLOCK - 1) / SCATTER_BLOCK;
    for (int64_t item = begin; item < end; item++) {
        place at = place_at(walk, item / blocks, walk->axis, walk->inner);
        const int64_t first = item % blocks * SCATTER_BLOCK;
        at.indexed += first * walk->indexed_strides[walk->inner];
        at.index += first * walk->index_strides[walk->inner];
        at.value += first * walk->value_strides[walk->inner];
        scatter->run(walk, at, size - first < SCATTER_BLOCK ? size - first : SCATTER_BLOCK);
    }
}

/* Adds src onto y, of a dtype other than bf16 and bool. The indices have been checked; `skip` is
 * left out where the index is repeated along the inner axis. */
static void run_scatter(wg_tensor *y, int axis, const wg_tensor *index, const wg_tensor *src,
                        int64_t skip) {
    if (wg__spec_count(&src->spec) == 0)
        return;
    scatter scatter = {.walk = walk_make(y, axis, index, src)};
    scatter.walk.skip = skip;
    scatter.run = y->spec.dtype == WG_F32   ? scatter_f32
                  : y->spec.dtype == WG_F64 ? scatter_f64
                  : y->spec.dtype == WG_I32 ? scatter_i32
                  : y->spec.dtype == WG_I64 ? scatter_i64
                                            : scatter_u8;
    const walk *walk = &scatter.walk;
    const int64_t blocks = (walk->shape[walk->inner] + SCATTER_BLOCK - 1) / SCATTER_BLOCK;
    wg__parallel_for(blocks * count_without(walk, axis, walk->inner),
                     WG__GRAIN / (SCATTER_BLOCK * walk->shape[axis]) + 1, scatter_items, &scatter);
}

static int scatter_add_infer(wg_call *call) {
    const wg_dtype dtype = call->input_specs[0].dtype;
    if (check_is_index(call, 1) < 0 || check_index_shape(call) < 0 ||
        wg__check_same_dtype(call, 0, 2) < 0)
        return -1;
    if (dtype == WG_BOOL || dtype == WG_BF16)
        return wg__op_fail(call, WG_ERROR_DTYPE, "%s does not add up; cast the operands",
                           wg_dtype_name(dtype));
    if (!wg__same_shape(&call->input_specs[1], &call->input_specs[2]))
        return wg__op_fail(call, WG_ERROR_SHAPE, "index and src must have one shape");
    return wg__infer_like(call);
}

static int scatter_add_forward(wg_call *call) {
    const int axis = ((const index_options *)call->options)->axis;
    const wg_tensor *x = call->inputs[0], *index = call->inputs[1];
    if (check_range(call, 1, x->spec.shape[axis]) < 0)
        return -1;
    wg__convert(call->outputs[0], x);
    run_scatter(call->outputs[0], axis, index, call->inputs[2], -1);
    return 0;
}

static int scatter_add_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const int axis = ((const index_options *)call->options)->axis;
    if (wg__wants(call, 0))
        gradients[0] = cotangents[0];
    if (wg__wants(call, 2))
        gradients[2] = wg_gather(cotangents[0], axis, call->inputs[1]);
    return wg__vjp_status();
}

static int scatter_add_sample(int index, wg_generator *generator, wg_sample *sample) {
    const int status = sample_index(index, generator, sample);
    if (status <= 0)
        return status;
    sample->inputs[2] =
        wg__sample_normal(generator, index_cases[index].ndim, index_cases[index].index);
    return wg__sample_status(sample, 3);
}

static const wg_op scatter_add = {
    .name = "scatter_add",
    .doc = "y = x with src[..i..] added at [..index[..i..]..] along an axis; src has the shape of "
           "index. The index has no gradient.",
    .min_inputs = 3,
    .max_inputs = 3,
    .output_count = 1,
    .options_size = sizeof(index_options),
    .saves_inputs = 2,
    .differentiable = 5,
    .infer = scatter_add_infer,
    .forward = scatter_add_forward,
    .vjp = scatter_add_vjp,
    .sample = scatter_add_sample,
};

/* bf16 adds up in f32, and rounds once. */
static wg_tensor *scatter_add_promoted(wg_tensor *x, int axis, wg_tensor *index, wg_tensor *src) {
    if (!wg__promote(&x, &src))
        return NULL;
    const bool is_bf16 = x->spec.dtype == WG_BF16;
    if (is_bf16) {
        x = wg_cast(x, WG_F32);
        src = wg_cast(src, WG_F32);
    }
    wg_tensor *y = wg_apply_one(&scatter_add, 3, (wg_tensor *[]){x, as_i64(index), src},
                                &(index_options){axis});
    return is_bf16 ? wg_cast(y, WG_BF16) : y;
}

wg_tensor *wg_scatter_add(wg_tensor *x, int axis, wg_tensor *index, wg_tensor *src) {
    const int along = x == NULL ? -1 : wg__axis(axis, x->spec.ndim, "scatter_add");
    if (along < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, scatter_add_promoted(x, along, index, src));
}

/* ---- embedding: y = the rows of a table, weight: (V, C), that index: (...) names.   dweight = g
 * added up by row, except for the padding row. Fused: gradients of weight are added in place. ----
 */

typedef struct embedding_options {
    int64_t padding_index;
} embedding_options;

static int embedding_infer(wg_call *call) {
    const wg_spec *weight = &call->input_specs[0], *index = &call->input_specs[1];
    if (check_is_index(call, 1) < 0)
        return -1;
    if (weight->ndim != 2 || index->ndim == WG_MAX_DIMS)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted a weight (V, C) and an index below rank %d", WG_MAX_DIMS);
    wg_spec shape = *index;
    shape.shape[shape.ndim++] = weight->shape[1];
    return wg__spec_make(&call->output_specs[0], weight->dtype, shape.ndim, shape.shape,
                         call->op->name);
}

/* The index (...) as (N, C), every entry repeated along its row. */
static wg_tensor *row_index(wg_tensor *index, int64_t columns) {
    const int64_t count = wg__spec_count(&index->spec);
    return wg_expand(wg_reshape(index, 2, (int64_t[]){count, 1}), 2, (int64_t[]){count, columns});
}

static int embedding_forward(wg_call *call) {
    wg_tensor *weight = call->inputs[0];
    if (check_range(call, 1, weight->spec.shape[0]) < 0)
        return -1;
    wg_tensor *index = row_index(call->inputs[1], weight->spec.shape[1]);
    wg_tensor *rows = index == NULL ? NULL : wg_reshape(call->outputs[0], 2, index->spec.shape);
    if (rows == NULL)
        return -1;
    run_gather(weight, 0, index, rows);
    return 0;
}

static int embedding_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg_spec *weight = &call->input_specs[0];
    const bool is_bf16 = weight->dtype == WG_BF16;
    wg_tensor *index = row_index(call->inputs[1], weight->shape[1]);
    wg_tensor *g = index == NULL ? NULL : wg_reshape(cotangents[0], 2, index->spec.shape);
    if (is_bf16)
        g = wg_cast(g, WG_F32);
    wg_tensor *total = gradients[0] != NULL && !is_bf16
                           ? gradients[0]
                           : wg_zeros(is_bf16 ? WG_F32 : weight->dtype, 2, weight->shape);
    if (g == NULL || total == NULL)
        return -1;
    run_scatter(total, 0, index, g, ((const embedding_options *)call->options)->padding_index);
    wg_tensor_touch(total);
    if (is_bf16)
        total = gradients[0] == NULL ? wg_cast(total, WG_BF16) : wg_add(gradients[0], total);
    gradients[0] = total;
    return wg__vjp_status();
}

/* Rows of padding are those of a second, unrecorded selection. */
static int embedding_decompose(wg_call *call) {
    const int64_t padding = ((const embedding_options *)call->options)->padding_index;
    const int64_t count = wg__spec_count(&call->input_specs[1]);
    wg_tensor *weight = call->inputs[0], *index = wg_reshape(call->inputs[1], 1, &count);
    wg_tensor *rows = wg_index_select(weight, 0, index);
    if (padding >= 0) {
        const bool was = wg_set_grad_enabled(false);
        wg_tensor *frozen = wg_index_select(weight, 0, index);
        wg_set_grad_enabled(was);
        wg_tensor *is_padding = wg_eq(index, wg_scalar(WG_I64, (double)padding));
        rows = wg_where(wg_unsqueeze(is_padding, 1), frozen, rows);
    }
    call->outputs[0] = wg_reshape(rows, call->output_specs[0].ndim, call->output_specs[0].shape);
    return call->outputs[0] == NULL ? -1 : 0;
}

static int embedding_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const embedding_options no_padding = {-1};
    static const int ndims[] = {1, 2, 0};
    if (index >= 3)
        return 0;
    sample->options = &no_padding;
    sample->inputs[0] = wg__sample_normal(generator, 2, (int64_t[]){5, 3});
    sample->inputs[1] = wg_randint(generator, 0, 5, ndims[index], (int64_t[]){4, 2});
    return wg__sample_status(sample, 2);
}

static const wg_op embedding = {
    .name = "embedding_op",
    .doc = "weight: (V, C), index: (...) -> (..., C): rows of a table. The gradient is added up by "
           "row, except for a padding row. The index has no gradient. Fused.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .options_size = sizeof(embedding_options),
    .saves_inputs = 3,
    .differentiable = 1,
    .accumulates = 1,
    .infer = embedding_infer,
    .forward = embedding_forward,
    .vjp = embedding_vjp,
    .decompose = embedding_decompose,
    .sample = embedding_sample,
};

wg_tensor *wg_embedding_op(wg_tensor *weight, wg_tensor *index, int64_t padding_index) {
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, wg_apply_one(&embedding, 2, (wg_tensor *[]){weight, as_i64(index)},
                                             &(embedding_options){padding_index}));
}

/* ---- one_hot: y[.., c] = 1 where c is the index, else 0. ---- */

typedef struct one_hot_options {
    int64_t classes;
} one_hot_options;

static int one_hot_infer(wg_call *call) {
    const int64_t classes = ((const one_hot_options *)call->options)->classes;
    if (check_is_index(call, 0) < 0)
        return -1;
    if (classes < 1)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "%lld classes; there is at least 1",
                           (long long)classes);
    wg_spec shape = call->input_specs[0];
    if (shape.ndim < WG_MAX_DIMS)
        shape.shape[shape.ndim] = classes;
    return wg__spec_make(&call->output_specs[0], WG_I64, shape.ndim + 1, shape.shape,
                         call->op->name);
}

/* The output walks with a stride of `classes` elements. */
static void set_ones(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    (void)context;
    for (int64_t i = 0; i < n; i++) {
        const int64_t index = *(const int64_t *)(data[1] + i * strides[1]);
        ((int64_t *)(data[0] + i * strides[0]))[index] = 1;
    }
}

static int one_hot_forward(wg_call *call) {
    wg_tensor *index = call->inputs[0], *y = call->outputs[0];
    if (check_range(call, 0, ((const one_hot_options *)call->options)->classes) < 0)
        return -1;
    memset(wg__tensor_address(y), 0, (size_t)wg__spec_count(&y->spec) * sizeof(int64_t));
    wg_tensor *first_class = wg__tensor_view(y, &index->spec, y->strides, 0);
    if (first_class == NULL)
        return -1;
    wg__iterate(2, (wg_tensor *[]){first_class, index}, set_ones, NULL);
    return 0;
}

static int one_hot_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const one_hot_options options = {4};
    if (index >= 2)
        return 0;
    sample->options = &options;
    sample->inputs[0] = wg_randint(generator, 0, 4, 2 * index, (int64_t[]){3, 2});
    return wg__sample_status(sample, 1);
}

static const wg_op one_hot = {
    .name = "one_hot",
    .doc = "index (...) -> (..., classes), i64: 1 at each index, else 0.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(one_hot_options),
    .no_gradient = "its operand is indices",
    .infer = one_hot_infer,
    .forward = one_hot_forward,
    .sample = one_hot_sample,
};

wg_tensor *wg_one_hot(wg_tensor *index, int64_t classes) {
    wg_scope scope;
    wg_scope_begin(&scope);
    index = as_i64(index);
    return wg_scope_end(&scope, wg_apply_one(&one_hot, 1, &index, &(one_hot_options){classes}));
}

static const wg_op *const ops[] = {&gather, &scatter_add, &embedding, &one_hot};

const wg__op_family wg__family_index = {ops, sizeof ops / sizeof *ops};
