/* Indexing by tensors of indices. A record sees i64 indices; the functions cast i32. */
#include "tensor/convert.h"
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/index/indexing.h"

#include <string.h>

/* ---- gather: y[..i..] = x[..index[..i..]..] along an axis.   dx = g scattered to where it came
 * from. ---- */

static int gather_infer(wg_call *call) {
    if (wg__check_is_index(call, 1) < 0 || wg__check_index_shape(call) < 0)
        return -1;
    call->output_specs[0] = call->input_specs[1];
    call->output_specs[0].dtype = call->input_specs[0].dtype;
    return 0;
}

static int gather_forward(wg_call *call) {
    const int axis = ((const wg__index_options *)call->options)->axis;
    const wg_tensor *x = call->inputs[0], *index = call->inputs[1];
    if (wg__check_index_range(call, 1, x->spec.shape[axis]) < 0)
        return -1;
    wg__gather(x, axis, index, call->outputs[0]);
    return 0;
}

static int gather_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const int axis = ((const wg__index_options *)call->options)->axis;
    const wg_spec *x = &call->input_specs[0];
    gradients[0] =
        wg_scatter_add(wg_zeros(x->dtype, x->ndim, x->shape), axis, call->inputs[1], cotangents[0]);
    return wg__vjp_status();
}

static int gather_sample(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_index(index, generator, sample, NULL);
}

static const wg_op gather = {
    .name = "gather",
    .doc = "y[..i..] = x[..index[..i..]..] along an axis; index has the rank of x and gives y its "
           "shape. The index has no gradient.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .options_size = sizeof(wg__index_options),
    .saves_inputs = 2,
    .differentiable = 1,
    .infer = gather_infer,
    .forward = gather_forward,
    .vjp = gather_vjp,
    .jvp = wg_jvp_linear,
    .sample = gather_sample,
    .bench = wg__bench_index,
};

wg_tensor *wg_gather(wg_tensor *x, int axis, wg_tensor *index) {
    const int along = x == NULL ? -1 : wg__axis(axis, x->spec.ndim, "gather");
    if (along < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope,
                        wg_apply_one(&gather, 2, (wg_tensor *[]){x, wg__index_as_i64(index)},
                                     &(wg__index_options){along}));
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
    if (wg__index_outside(index, 0, x->spec.shape[axis], &found))
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
    index = wg__index_as_i64(index);
    const bool fits = index != NULL && check_line_index(x, along, index) == 0;
    return wg_scope_end(&scope, fits ? index_select(x, along, index) : NULL);
}

/* ---- embedding: y = the rows of a table, weight: (V, C), that index: (...) names.   dweight = g
 * added up by row, except for the padding row. Fused: gradients of weight are added in place. ----
 */

typedef struct embedding_options {
    int64_t padding_index;
} embedding_options;

static int embedding_infer(wg_call *call) {
    const wg_spec *weight = &call->input_specs[0], *index = &call->input_specs[1];
    if (wg__check_is_index(call, 1) < 0)
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
    if (wg__check_index_range(call, 1, weight->spec.shape[0]) < 0)
        return -1;
    wg_tensor *index = row_index(call->inputs[1], weight->spec.shape[1]);
    wg_tensor *rows = index == NULL ? NULL : wg_reshape(call->outputs[0], 2, index->spec.shape);
    if (rows == NULL)
        return -1;
    wg__gather(weight, 0, index, rows);
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
    wg__scatter_add(total, 0, index, g, ((const embedding_options *)call->options)->padding_index);
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
    return wg_scope_end(&scope, wg_apply_one(&embedding, 2,
                                             (wg_tensor *[]){weight, wg__index_as_i64(index)},
                                             &(embedding_options){padding_index}));
}

/* ---- one_hot: y[.., c] = 1 where c is the index, else 0. ---- */

typedef struct one_hot_options {
    int64_t classes;
} one_hot_options;

static int one_hot_infer(wg_call *call) {
    const int64_t classes = ((const one_hot_options *)call->options)->classes;
    if (wg__check_is_index(call, 0) < 0)
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
    if (wg__check_index_range(call, 0, ((const one_hot_options *)call->options)->classes) < 0)
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
    index = wg__index_as_i64(index);
    return wg_scope_end(&scope, wg_apply_one(&one_hot, 1, &index, &(one_hot_options){classes}));
}

static const wg_op *const ops[] = {&gather, &embedding, &one_hot};

const wg__op_family wg__family_index = {ops, sizeof ops / sizeof *ops};
