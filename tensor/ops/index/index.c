/* Reading and writing along an axis by a tensor of indices: gather and scatter, their relatives,
 * and embeddings. */
#include "tensor/ops/index/indexing.h"
#include "tensor/ops/support.h"

#include <string.h>

typedef struct index_options {
    int axis;
    bool checked;  /* gather: the indices are known to be in range */
    bool *outside; /* gather: set to true if an index is out of range, and the result is zeros;
                    * NULL: an index out of range is an error */
} index_options;

/* Runs an op of x and an index, which is cast to i64. */
static wg_tensor *apply_indexed(const wg_op *op, wg_tensor *x, wg_tensor *index,
                                const void *options) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *const inputs[] = {x, wg__index_as_i64(index)};
    return wg_scope_end(&scope, wg_apply_one(op, 2, inputs, options));
}

/* -1 with SHAPE unless input 1 has the rank of x, input 0, and no size beyond x's off the axis. */
static int check_index_shape(const wg_call *call) {
    const wg_spec *x = &call->input_specs[0], *index = &call->input_specs[1];
    const int axis = ((const index_options *)call->options)->axis;
    if (index->ndim != x->ndim)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "ranks %d and %d differ; x and index need the same rank", x->ndim,
                           index->ndim);
    for (int i = 0; i < x->ndim; i++)
        if (i != axis && index->shape[i] > x->shape[i])
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "size %lld of axis %d of index is beyond that of x, %lld",
                               (long long)index->shape[i], i, (long long)x->shape[i]);
    return 0;
}

/* ---- gather: y[..i..] = x[..index[..i..]..] along an axis.
 * dx = g, added at the gathered positions. ---- */

static int gather_infer(wg_call *call) {
    if (wg__check_is_index(call, 1) < 0 || check_index_shape(call) < 0)
        return -1;
    call->output_specs[0] = call->input_specs[1];
    call->output_specs[0].dtype = call->input_specs[0].dtype;
    return 0;
}

static int gather_forward(wg_call *call) {
    const index_options *options = call->options;
    const wg_tensor *x = call->inputs[0], *y = call->outputs[0];
    long long found;
    if (!wg__gather(x, options->axis, call->inputs[1], y, options->checked ? NULL : &found))
        return 0;
    if (!options->outside)
        return wg__fail_index_range(call, found, x->spec.shape[options->axis]);
    memset(wg__tensor_address(y), 0,
           (size_t)wg__spec_count(&y->spec) * wg_dtype_size(y->spec.dtype));
    *options->outside = true;
    return 0;
}

WG__VJP(gather,
        wg__scattered(call, ((const index_options *)call->options)->axis, call->inputs[1], g))

WG__EXAMPLES(gather, index_options, (wg__sample_normal), {{.axis = 1}, "4 3, 4 2 <3"},
             {{.axis = 0}, "3 4, 5 3 <3"}, {{.axis = 0}, "3, 6 <3"},
             {{.axis = 1}, "2 3 2, 2 4 2 <3"}, {{.axis = 2}, "2 1 3, 1 1 1 <3"})

/* Gathers 2^11 random rows of a 2^11 x 2^11 matrix. */
static int gather_bench(wg_generator *generator, wg_sample *sample) {
    static const index_options rows = {.axis = 0};
    const int64_t size = 2048, shape[] = {size, size};
    sample->options = &rows;
    sample->inputs[0] = wg_rand(generator, WG_F32, 2, shape);
    sample->inputs[1] =
        wg_expand(wg_randint(generator, 0, size, 2, (int64_t[]){size, 1}), 2, shape);
    return wg__sample_status(sample, 2);
}

static const wg_op gather = {
    WG__OP("gather", 2,
           "y[..i..] = x[..index[..i..]..] along an axis; index has the rank of x and gives y its "
           "shape. The index has no gradient."),
    .options_size = sizeof(index_options),
    .saves_inputs = 2,
    .differentiable = 1,
    WG__FUNCTIONS(gather),
    .jvp = wg_jvp_linear,
    .batch = wg__batch_axis};

wg_tensor *wg_gather(wg_tensor *x, int axis, wg_tensor *index) {
    const int along = wg__axis_of(x, axis, "gather");
    return along < 0 ? NULL : apply_indexed(&gather, x, index, &(index_options){.axis = along});
}

/* wg_gather by i64 indices that are in range. */
static wg_tensor *gather_checked(wg_tensor *x, int axis, wg_tensor *index) {
    return wg_apply_one(&gather, 2, (wg_tensor *[]){x, index},
                        &(index_options){.axis = axis, .checked = true});
}

/* Checks the index of index_select, so that errors carry its name. */
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

/* A gather whose index is repeated along all axes but one by strides of 0. */
wg_tensor *wg_index_select(wg_tensor *x, int axis, wg_tensor *index) {
    const int along = index ? wg__axis_of(x, axis, "index_select") : -1;
    if (along < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    index = wg__index_as_i64(index);
    if (index == NULL || check_line_index(x, along, index) < 0)
        return wg_scope_end(&scope, NULL);
    int64_t line[WG_MAX_DIMS], shape[WG_MAX_DIMS];
    for (int i = 0; i < x->spec.ndim; i++) {
        line[i] = i == along ? index->spec.shape[0] : 1;
        shape[i] = i == along ? index->spec.shape[0] : x->spec.shape[i];
    }
    index = wg_expand(wg_reshape(index, x->spec.ndim, line), x->spec.ndim, shape);
    return wg_scope_end(&scope, gather_checked(x, along, index));
}

/* ---- embedding: y = weight[index], of weight: (V, C) and index: (...).
 * dweight = g, added to the rows at the index, without the padding row. Fused: gradients of weight
 * accumulate in place. ---- */

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

/* Views the index (...) as (N, C), each entry repeated along its row. */
static int embedding_forward(wg_call *call) {
    wg_tensor *weight = call->inputs[0], *index = call->inputs[1];
    if (wg__check_index_range(call, 1, weight->spec.shape[0]) < 0)
        return -1;
    const int64_t shape[] = {wg__spec_count(&index->spec), weight->spec.shape[1]};
    index = wg_expand(wg_reshape(index, 2, (int64_t[]){shape[0], 1}), 2, shape);
    wg_tensor *rows = wg_reshape(call->outputs[0], 2, shape);
    if (index == NULL || rows == NULL)
        return -1;
    wg__gather(weight, 0, index, rows, NULL);
    return 0;
}

static int embedding_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg_spec *weight = &call->input_specs[0];
    const bool is_bf16 = weight->dtype == WG_BF16;
    const int64_t shape[] = {wg__spec_count(&call->input_specs[1]), weight->shape[1]};
    wg_tensor *index = wg_reshape(call->inputs[1], 2, (int64_t[]){shape[0], 1});
    index = wg_expand(index, 2, shape);
    wg_tensor *g = wg_reshape(cotangents[0], 2, shape);
    if (is_bf16)
        g = wg_cast(g, WG_F32);
    wg_tensor *total = gradients[0] != NULL && !is_bf16
                           ? gradients[0]
                           : wg_zeros(is_bf16 ? WG_F32 : weight->dtype, 2, weight->shape);
    if (index == NULL || g == NULL || total == NULL)
        return -1;
    wg__scatter_add(total, 0, index, g, *(const int64_t *)call->options, false);
    wg_tensor_touch(total);
    if (is_bf16)
        total = gradients[0] == NULL ? wg_cast(total, WG_BF16) : wg_add(gradients[0], total);
    gradients[0] = total;
    return wg__vjp_status();
}

/* Padding rows come from a second, unrecorded selection, and so have no gradient. */
static int embedding_decompose(wg_call *call) {
    const int64_t padding = *(const int64_t *)call->options;
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
    return wg__set_output(
        call, wg_reshape(rows, call->output_specs[0].ndim, call->output_specs[0].shape));
}

WG__EXAMPLES(embedding, int64_t, (wg__sample_normal), {-1, "3 3, 4 <3"}, {-1, "3 3, 4 2 <3"},
             {-1, "3 3, <3"})

static const wg_op embedding = {
    WG__OP("embedding_op", 2,
           "weight: (V, C), index: (...) -> (..., C): rows of a table. The gradient is added up by "
           "row, except for a padding row. The index has no gradient. Fused."),
    .options_size = sizeof(int64_t),
    .saves_inputs = 3,
    .differentiable = 1,
    .accumulates = 1,
    .infer = embedding_infer,
    .forward = embedding_forward,
    .vjp = embedding_vjp,
    WG__COMPOSED(embedding)};

wg_tensor *wg_embedding_op(wg_tensor *weight, wg_tensor *index, int64_t padding_index) {
    return apply_indexed(&embedding, weight, index, &padding_index);
}

static int one_hot_infer(wg_call *call) {
    const int64_t classes = *(const int64_t *)call->options;
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

/* data[0] is the output, with a stride of `classes` elements; data[1] is the index. */
static void set_ones(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    (void)context;
    for (int64_t i = 0; i < n; i++) {
        const int64_t index = *(const int64_t *)(data[1] + i * strides[1]);
        ((int64_t *)(data[0] + i * strides[0]))[index] = 1;
    }
}

static int one_hot_forward(wg_call *call) {
    wg_tensor *index = call->inputs[0], *y = call->outputs[0];
    if (wg__check_index_range(call, 0, *(const int64_t *)call->options) < 0)
        return -1;
    memset(wg__tensor_address(y), 0, (size_t)wg__spec_count(&y->spec) * sizeof(int64_t));
    wg_tensor *first_class = wg__tensor_view(y, &index->spec, y->strides, 0);
    if (first_class == NULL)
        return -1;
    wg__iterate(2, (wg_tensor *[]){first_class, index}, set_ones, NULL);
    return 0;
}

WG__EXAMPLES(one_hot, int64_t, (wg__sample_normal), {3, "<3"}, {3, "3 2 <3"})

static const wg_op one_hot = {
    WG__OP("one_hot", 1, "index (...) -> (..., classes), i64: 1 at each index, else 0."),
    .options_size = sizeof(int64_t),
    .no_gradient = "its operand is indices",
    .infer = one_hot_infer,
    .forward = one_hot_forward,
    .sample = one_hot_sample,
    .batch = wg_batch_aligned};

wg_tensor *wg_one_hot(wg_tensor *index, int64_t classes) {
    wg_scope scope;
    wg_scope_begin(&scope);
    index = wg__index_as_i64(index);
    return wg_scope_end(&scope, wg_apply_one(&one_hot, 1, &index, &classes));
}

/* ==== NumPy's take and take_along_axis: negative indices count from the end. ==== */

static int check_take_index(wg_call *call) {
    return call->input_specs[1].dtype == WG_I32 ? 0 : wg__check_is_index(call, 1);
}

/* ---- take_along_axis: y[..i..] = x[..index[..i..]..] along an axis; x and index broadcast along
 * all other axes. ---- */

/* The expanded shapes of x and the index; -1 with an error. */
static int take_shapes(const wg_call *call, int *axis, int64_t *x_shape, int64_t *index_shape) {
    const wg_spec *x = &call->input_specs[0], *index = &call->input_specs[1];
    *axis = wg__axis(((const index_options *)call->options)->axis, x->ndim, call->op->name);
    if (*axis < 0)
        return -1;
    if (index->ndim != x->ndim)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "ranks %d and %d differ; x and index need the same rank", x->ndim,
                           index->ndim);
    for (int i = 0; i < x->ndim; i++) {
        const int64_t m = x->shape[i], n = index->shape[i];
        if (i != *axis && m != n && m != 1 && n != 1)
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "sizes %lld and %lld of axis %d do not broadcast", (long long)m,
                               (long long)n, i);
        x_shape[i] = i == *axis || m != 1 ? m : n;
        index_shape[i] = i == *axis || n != 1 ? n : m;
    }
    return 0;
}

static int take_along_axis_infer(wg_call *call) {
    int64_t x_shape[WG_MAX_DIMS], index_shape[WG_MAX_DIMS];
    int axis;
    return check_take_index(call) < 0 ? -1 : take_shapes(call, &axis, x_shape, index_shape);
}

/* Tries a gather first: most indices are not negative, and the gather checks them as it reads. */
static int take_along_axis_decompose(wg_call *call) {
    const int ndim = call->input_specs[0].ndim;
    int64_t x_shape[WG_MAX_DIMS], index_shape[WG_MAX_DIMS];
    int axis;
    if (take_shapes(call, &axis, x_shape, index_shape) < 0)
        return -1;
    wg_tensor *x = wg_expand(call->inputs[0], ndim, x_shape), *index = call->inputs[1];
    if (wg__spec_count(&index->spec) == wg__shape_count(ndim, index_shape)) { /* not broadcast */
        bool outside = false;
        wg_tensor *y =
            apply_indexed(&gather, x, index, &(index_options){.axis = axis, .outside = &outside});
        if (!y || !outside)
            return wg__set_output(call, y);
    }
    index = wg__index_from_front(call, index, axis, x_shape[axis]);
    return wg__set_output(call, gather_checked(x, axis, wg_expand(index, ndim, index_shape)));
}

/* Negative indices, too, of an axis of size 3. */
static wg_tensor *around_3(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_randint(generator, -3, 3, ndim, shape);
}

WG__EXAMPLES(take_along_axis, index_options, (wg__sample_normal, around_3),
             {{.axis = 1}, "2 3, 2 4"}, {{.axis = -1}, "1 3, 3 2"}, {{.axis = 0}, "3 1 2, 2 3 1"})

static const wg_op take_along_axis = {
    WG__OP("take_along_axis", 2,
           "y[..i..] = x[..index[..i..]..] along an axis; x and index broadcast along all other "
           "axes. Negative indices count from the end. The index has no gradient."),
    .options_size = sizeof(index_options), .differentiable = 1, .infer = take_along_axis_infer,
    WG__COMPOSED(take_along_axis)};

wg_tensor *wg_take_along_axis(wg_tensor *x, int axis, wg_tensor *index) {
    return wg_apply_one(&take_along_axis, 2, (wg_tensor *[]){x, index},
                        &(index_options){.axis = axis});
}

static int take_decompose(wg_call *call) {
    const wg_spec *spec = &call->input_specs[1];
    wg_tensor *x = wg_reshape(call->inputs[0], 1, (int64_t[]){wg__spec_count(call->input_specs)});
    wg_tensor *index = wg__index_from_front(call, call->inputs[1], 0, wg_tensor_count(x));
    index = wg_reshape(index, 1, (int64_t[]){wg__spec_count(spec)});
    return wg__set_output(call, wg_reshape(gather_checked(x, 0, index), spec->ndim, spec->shape));
}

static int take_sample(int index, wg_generator *generator, wg_sample *sample) {
    const int status = wg__sample_unary(index, generator, sample, wg__sample_normal);
    if (status <= 0)
        return status;
    const int64_t size = wg_tensor_count(sample->inputs[0]);
    sample->inputs[1] = wg_randint(generator, -size, size, index % 3, (int64_t[]){3, 2});
    return wg__sample_status(sample, 2);
}

static const wg_op take = {
    WG__OP("take", 2,
           "y[i] = the element of that number of x, in row-major order; y has the shape of the "
           "index. Negative indices count from the end. The index has no gradient."),
    .differentiable = 1, .infer = check_take_index, WG__COMPOSED(take)};

wg_tensor *wg_take(wg_tensor *x, wg_tensor *index) {
    return wg_apply_one(&take, 2, (wg_tensor *[]){x, index}, NULL);
}

/* ==== Scatter: the adjoints of gather ==== */

WG__EXAMPLES(scatter, index_options, (wg__sample_normal), {{.axis = 1}, "4 3, 4 2 <3, 4 2"},
             {{.axis = 0}, "3 4, 5 3 <3, 5 3"}, {{.axis = 0}, "3, 6 <3, 6"},
             {{.axis = 1}, "2 3 2, 2 4 2 <3, 2 4 2"}, {{.axis = 2}, "2 1 3, 1 1 1 <3, 1 1 1"})

static int scatter_bench(wg_generator *generator, wg_sample *sample) {
    if (gather_bench(generator, sample) < 0)
        return -1;
    sample->inputs[2] = wg_clone(sample->inputs[0]);
    return wg__sample_status(sample, 3);
}

static int scatter_infer(wg_call *call) {
    if (wg__check_is_index(call, 1) < 0 || check_index_shape(call) < 0 ||
        wg__check_same_dtype(call, 0, 2) < 0)
        return -1;
    if (!wg__same_shape(&call->input_specs[1], &call->input_specs[2]))
        return wg__op_fail(call, WG_ERROR_SHAPE, "index and src must have one shape");
    return wg__infer_like(call);
}

static int scatter_add_infer(wg_call *call) {
    const wg_dtype dtype = call->input_specs[0].dtype;
    if (dtype == WG_BOOL || dtype == WG_BF16)
        return wg__op_fail(call, WG_ERROR_DTYPE, "%s does not add up; cast the operands",
                           wg_dtype_name(dtype));
    return scatter_infer(call);
}

/* Copies x, and writes or adds src. The test is on a function, not on the record's address, since a
 * call may have a copy of the record. */
static int scatter_forward(wg_call *call) {
    const wg_tensor *x = call->inputs[0], *index = call->inputs[1], *src = call->inputs[2];
    const int axis = ((const index_options *)call->options)->axis;
    wg_tensor *y = call->outputs[0];
    if (wg__check_index_range(call, 1, x->spec.shape[axis]) < 0)
        return -1;
    wg__convert(y, x);
    if (call->op->infer == scatter_add_infer)
        wg__scatter_add(y, axis, index, src, -1, false);
    else
        wg__scatter(y, axis, index, src);
    return 0;
}

#define SCATTER(NAME, DOC)                                                                         \
    WG__OP(#NAME, 3, DOC), .options_size = sizeof(index_options), .saves_inputs = 2,               \
                           .differentiable = 5, .infer = NAME##_infer, .forward = scatter_forward, \
                           .vjp = NAME##_vjp, .jvp = wg_jvp_linear, .sample = scatter_sample,      \
                           .bench = scatter_bench, .batch = wg__batch_axis

/* ---- scatter_add: y = x with src[..i..] added at [..index[..i..]..] along an axis.
 * dx = g, dsrc = gather of g. ---- */

static int scatter_add_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const int axis = ((const index_options *)call->options)->axis;
    if (wg__wants(call, 0))
        gradients[0] = cotangents[0];
    if (wg__wants(call, 2))
        gradients[2] = gather_checked(cotangents[0], axis, call->inputs[1]);
    return wg__vjp_status();
}

static const wg_op scatter_add = {
    SCATTER(scatter_add,
            "y = x with src[..i..] added at [..index[..i..]..] along an axis; src has the shape of "
            "index. The index has no gradient.")};

/* Casts x and src to their common dtype and the index to i64. Sums of bf16 are computed in f32 and
 * rounded once. */
static wg_tensor *apply_scatter(const wg_op *op, wg_tensor *x, int axis, wg_tensor *index,
                                wg_tensor *src) {
    const int along = wg__axis_of(x, axis, op->name);
    if (along < 0)
        return NULL;
    wg_tensor *y = NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (wg__promote(&x, &src)) {
        const wg_dtype dtype = x->spec.dtype;
        if (op == &scatter_add) {
            x = wg__widen(x);
            src = wg__widen(src);
        }
        y = wg_apply_one(op, 3, (wg_tensor *[]){x, wg__index_as_i64(index), src},
                         &(index_options){.axis = along});
        if (op == &scatter_add)
            y = wg__narrow(y, dtype);
    }
    return wg_scope_end(&scope, y);
}

wg_tensor *wg_scatter_add(wg_tensor *x, int axis, wg_tensor *index, wg_tensor *src) {
    return apply_scatter(&scatter_add, x, axis, index, src);
}

/* ---- scatter: y = x with src[..i..] stored at [..index[..i..]..] along an axis. Of several values
 * for one element the last is stored.
 * dx = g, 0 where a value was stored; dsrc = gather of g, 0 for values that were
 * overwritten. ---- */

/* True for each index entry whose value was stored last: scatters the numbers of the entries and
 * compares. */
static wg_tensor *is_last_writer(const wg_spec *x, int axis, wg_tensor *index) {
    /* Keep one position of each axis along which the index is broadcast. */
    for (int i = 0; index && i < index->spec.ndim; i++)
        if (i != axis && index->strides[i] == 0 && index->spec.shape[i] > 1)
            index = wg_narrow(index, i, 0, 1);
    if (!index)
        return NULL;
    const wg_spec *spec = &index->spec;
    int64_t shape[WG_MAX_DIMS];
    memcpy(shape, spec->shape, sizeof shape);
    shape[axis] = x->shape[axis];
    wg_tensor *number = wg_arange(WG_I64, 0, (double)wg__spec_count(spec), 1);
    number = wg_reshape(number, spec->ndim, spec->shape);
    wg_tensor *owner = wg_scatter(wg_zeros(WG_I64, x->ndim, shape), axis, index, number);
    return wg_eq(wg_gather(owner, axis, index), number);
}

static int scatter_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const int axis = ((const index_options *)call->options)->axis;
    const wg_spec *src = &call->input_specs[2];
    wg_tensor *g = cotangents[0], *index = call->inputs[1];
    if (wg__wants(call, 0))
        gradients[0] = wg_scatter(g, axis, index, wg_zeros(src->dtype, src->ndim, src->shape));
    if (wg__wants(call, 2))
        gradients[2] = wg_where(is_last_writer(&call->input_specs[0], axis, index),
                                wg_gather(g, axis, index), wg_scalar(src->dtype, 0));
    return wg__vjp_status();
}

static const wg_op scatter = {SCATTER(
    scatter,
    "y = x with src[..i..] stored at [..index[..i..]..] along an axis; of several values for one "
    "element the last stays; src has the shape of index. The index has no gradient.")};

wg_tensor *wg_scatter(wg_tensor *x, int axis, wg_tensor *index, wg_tensor *src) {
    return apply_scatter(&scatter, x, axis, index, src);
}

const wg__op_table wg__ops_index =
    WG__OP_TABLE(&gather, &embedding, &one_hot, &take_along_axis, &take, &scatter_add, &scatter);
