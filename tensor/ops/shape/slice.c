/* Parts of a tensor: slices of an axis, diagonals and triangles of matrices. */
#include "tensor/ops/support.h"

#include <string.h>

/* ---- slice: y = `count` elements along an axis of x, every `step`-th from `start` on.
 * dx = unslice of g.
 * unslice: y = zeros, of `size` along the axis, with x at the elements that slice reads.
 * dx = slice of g. The two ops are adjoints, so derivatives of any order use only them. ---- */

typedef struct slice_options {
    int axis;
    int64_t start, step, count; /* resolved: start >= 0, and step 1 if count < 2 */
    int64_t size;               /* of the axis, in the operand of slice */
} slice_options;

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

/* The view of `whole` that the slice selects. */
static wg_tensor *slice_view(const wg_tensor *whole, const slice_options *options) {
    wg_spec spec = whole->spec;
    int64_t strides[WG_MAX_DIMS];
    memcpy(strides, whole->strides, sizeof strides);
    spec.shape[options->axis] = options->count;
    const int64_t offset = options->count > 0 ? options->start * strides[options->axis] : 0;
    strides[options->axis] *= options->step;
    return wg__tensor_view(whole, &spec, strides, whole->offset + offset);
}

/* Changes the size of the axis. The options were resolved for the size `from`; with any other size
 * a view could reach beyond its base. */
static int infer_resized(wg_call *call, int64_t from, int64_t to) {
    const int axis = ((const slice_options *)call->options)->axis;
    const wg_spec *x = &call->input_specs[0];
    if (axis >= x->ndim || x->shape[axis] != from)
        return wg__op_fail(call, WG_ERROR_SHAPE, "axis %d must have size %lld", axis,
                           (long long)from);
    call->output_specs[0] = *x;
    call->output_specs[0].shape[axis] = to;
    return 0;
}

static int slice_infer(wg_call *call) {
    const slice_options *options = call->options;
    return infer_resized(call, options->size, options->count);
}

static int slice_forward(wg_call *call) {
    return wg__set_output(call, slice_view(call->inputs[0], call->options));
}

static const wg_op unslice;

/* The gradients of several slices of a tensor (the heads of a split) accumulate in place if no
 * other handle shares the total. The cost of a slice is then proportional to its size. */
static int slice_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[0], *total = gradients[0];
    if (total != NULL && !call->create_graph && wg__tensor_is_sole(total))
        return wg_add_(slice_view(total, call->options), g, 1);
    wg_tensor *part = wg_apply_one(&unslice, 1, &g, call->options);
    gradients[0] = total == NULL ? part : wg_add(total, part);
    return wg__vjp_status();
}

WG__EXAMPLES(slice, slice_options, (wg__sample_normal),
             {{.axis = 1, .start = 0, .step = 2, .count = 2, .size = 3}, "2 3"},
             {{.axis = 0, .start = 1, .step = 1, .count = 3, .size = 5}, "5"},
             {{.axis = 2, .start = 2, .step = -1, .count = 3, .size = 3}, "2 2 3"},
             {{.axis = 0, .start = 0, .step = 1, .count = 1, .size = 1}, "1"})

static const wg_op slice = {
    WG__VIEW_OP(slice, slice_options, "y = x[start:stop:step] along one axis. A view."),
    .accumulates = 1, .batch = wg__batch_axis};

static int unslice_infer(wg_call *call) {
    const slice_options *options = call->options;
    return infer_resized(call, options->count, options->size);
}

static int unslice_forward(wg_call *call) {
    const slice_options *options = call->options;
    wg_tensor *y = call->outputs[0], *part = slice_view(y, options);
    if (part == NULL)
        return -1;
    if (options->step != 1 && wg_fill_(y, 0) < 0)
        return -1;
    /* With step 1, only the elements before and after the part are cleared. */
    const int64_t end = options->start + options->count;
    for (int i = 0; options->step == 1 && i < 2; i++) {
        slice_options border = *options;
        border.start = i == 0 ? 0 : end;
        border.count = i == 0 ? options->start : options->size - end;
        wg_tensor *zeros = slice_view(y, &border);
        if (zeros == NULL || wg_fill_(zeros, 0) < 0)
            return -1;
    }
    wg__convert(part, call->inputs[0]);
    return 0;
}

WG__VJP(unslice, wg_apply_one(&slice, 1, &g, call->options))

WG__EXAMPLES(unslice, slice_options, (wg__sample_normal),
             {{.axis = 1, .start = 0, .step = 2, .count = 2, .size = 3}, "2 2"},
             {{.axis = 0, .start = 1, .step = 1, .count = 3, .size = 5}, "3"},
             {{.axis = 2, .start = 2, .step = -1, .count = 3, .size = 3}, "2 2 3"},
             {{.axis = 0, .start = 0, .step = 1, .count = 1, .size = 1}, "1"})
WG__LARGE(unslice, slice_options, "2048 1024", .axis = 1, .step = 2, .count = 1024, .size = 2048)

static const wg_op unslice = {
    WG__LINEAR_OP(unslice, slice_options,
                  "y = zeros with x at [start:stop:step] along an axis: the adjoint of slice."),
    .batch = wg__batch_axis};

/* As in Python, negative start and stop count from the end, and both are clamped to the axis. */
wg_tensor *wg_slice(wg_tensor *x, int axis, int64_t start, int64_t stop, int64_t step) {
    const int along = wg__axis_of(x, axis, "slice");
    if (along < 0)
        return NULL;
    if (step == 0)
        return wg__fail_null(WG_ERROR_ARGUMENT, "slice",
                             "a step of 0; steps are at least 1 or at most -1");
    const int64_t size = x->spec.shape[along];
    start += start < 0 ? size : 0;
    stop += stop < 0 ? size : 0;
    slice_options options = {.axis = along, .step = step, .size = size};
    int64_t last; /* one past the end, in the direction of the step */
    if (step > 0) {
        options.start = clamp(start, 0, size);
        last = clamp(stop, 0, size);
        if (last > options.start)
            options.count = (last - options.start - 1) / step + 1;
    } else {
        options.start = clamp(start, -1, size - 1);
        last = stop == WG_END ? -1 : clamp(stop, -1, size - 1);
        if (options.start > last)
            options.count = -((options.start - last - 1) / step) + 1;
    }
    if (options.count < 2)
        options.step = 1;
    if (options.count == 0)
        options.start = 0;
    return wg_apply_one(&slice, 1, &x, &options);
}

typedef struct narrow_options {
    int axis;
    int64_t start, length;
} narrow_options;

static int narrow_decompose(wg_call *call) {
    const narrow_options *options = call->options;
    const int axis = wg__axis(options->axis, call->input_specs[0].ndim, call->op->name);
    if (axis < 0)
        return -1;
    const int64_t size = call->input_specs[0].shape[axis], length = options->length;
    const int64_t start = options->start < 0 ? options->start + size : options->start;
    if (start < 0 || start > size || length < 0 || length > size - start)
        return wg__op_fail(
            call, WG_ERROR_INDEX, "%lld elements from %lld on reach beyond axis %d, of size %lld",
            (long long)length, (long long)options->start, options->axis, (long long)size);
    return wg__set_output(call, wg_slice(call->inputs[0], axis, start, start + length, 1));
}

WG__EXAMPLES(narrow, narrow_options, (wg__sample_normal), {{1, 1, 2}, "2 3"}, {{0, -4, 2}, "5 2"},
             {{-1, 3, 0}, "2 3"})

static const wg_op narrow = {WG__COMPOSITE_OP(
    narrow, narrow_options,
    "y = x[start : start + length] along an axis, which must lie within the axis. A view.")};

wg_tensor *wg_narrow(wg_tensor *x, int axis, int64_t start, int64_t length) {
    return wg_apply_one(&narrow, 1, &x, &(narrow_options){axis, start, length});
}

/* ---- select: one index of an axis, which is removed.
 * dx = unslice of g with the axis restored. ---- */

typedef struct select_options {
    int axis;
    int64_t index;
} select_options;

static int select_infer(wg_call *call) {
    const select_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    wg_spec *out = &call->output_specs[0];
    const int axis = wg__axis(options->axis, x->ndim, call->op->name);
    if (axis < 0)
        return -1;
    const int64_t size = x->shape[axis];
    if (options->index < -size || options->index >= size)
        return wg__op_fail(call, WG_ERROR_INDEX,
                           "index %lld is out of range of axis %d, of size %lld",
                           (long long)options->index, options->axis, (long long)size);
    out->dtype = x->dtype;
    out->ndim = x->ndim - 1;
    for (int i = 0; i < out->ndim; i++)
        out->shape[i] = x->shape[i < axis ? i : i + 1];
    return 0;
}

/* The equivalent slice, which keeps the axis with size 1. */
static slice_options slice_of_one(const wg_call *call) {
    const select_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    const int axis = options->axis < 0 ? options->axis + x->ndim : options->axis;
    const int64_t size = x->shape[axis];
    const int64_t at = options->index < 0 ? options->index + size : options->index;
    return (slice_options){.axis = axis, .start = at, .step = 1, .count = 1, .size = size};
}

/* The selected view of `whole`, a tensor of the shape of input 0. */
static wg_tensor *select_view(const wg_call *call, const wg_tensor *whole) {
    const slice_options one = slice_of_one(call);
    const wg_spec *spec = &call->output_specs[0];
    int64_t strides[WG_MAX_DIMS] = {0};
    for (int i = 0; i < spec->ndim; i++)
        strides[i] = whole->strides[i < one.axis ? i : i + 1];
    return wg__tensor_view(whole, spec, strides,
                           whole->offset + one.start * whole->strides[one.axis]);
}

static int select_forward(wg_call *call) {
    return wg__set_output(call, select_view(call, call->inputs[0]));
}

/* Accumulates in place as slice_vjp does. */
static int select_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[0], *total = gradients[0];
    if (total != NULL && !call->create_graph && wg__tensor_is_sole(total))
        return wg_add_(select_view(call, total), g, 1);
    const slice_options one = slice_of_one(call);
    wg_tensor *with_axis = wg_unsqueeze(g, one.axis);
    wg_tensor *part = wg_apply_one(&unslice, 1, &with_axis, &one);
    gradients[0] = total == NULL ? part : wg_add(total, part);
    return wg__vjp_status();
}

WG__EXAMPLES(select, select_options, (wg__sample_normal), {{1, 2}, "2 3"}, {{0, -1}, "3 2"},
             {{-1, 0}, "2 1"})

static const wg_op select_op = {
    WG__VIEW_OP(select, select_options,
                "y = x at an index along an axis; the axis is removed. A view."),
    .accumulates = 1, .batch = wg__batch_axis};

wg_tensor *wg_select(wg_tensor *x, int axis, int64_t index) {
    return wg_apply_one(&select_op, 1, &x, &(select_options){axis, index});
}

int wg_split(wg_tensor *x, int axis, int count, const int64_t *sizes, wg_tensor **parts) {
    for (int i = 0; i < count; i++)
        parts[i] = NULL;
    const int along = wg__axis_of(x, axis, "split");
    if (along < 0)
        return -1;
    int64_t left = x->spec.shape[along];
    for (int i = 0; i < count && left >= 0; i++)
        left = sizes[i] < 0 ? -1 : left - sizes[i];
    if (left != 0) {
        char text[160];
        return wg_fail(WG_ERROR_SHAPE, "split",
                       "%s: the sizes of the parts must sum to %lld, the size of axis %d",
                       wg_spec_text(text, sizeof text, &x->spec), (long long)x->spec.shape[along],
                       axis);
    }
    for (int64_t i = 0, start = 0; i < count; start += sizes[i++]) {
        parts[i] = wg_slice(x, along, start, start + sizes[i], 1);
        if (parts[i] == NULL)
            return -1;
    }
    return 0;
}

int wg_chunk(wg_tensor *x, int axis, int count, wg_tensor **parts) {
    for (int i = 0; i < count; i++)
        parts[i] = NULL;
    const int along = wg__axis_of(x, axis, "chunk");
    if (along < 0)
        return -1;
    if (count < 1)
        return wg_fail(WG_ERROR_ARGUMENT, "chunk", "%d parts; there is at least 1", count);
    const int64_t size = x->spec.shape[along];
    const int64_t part = size / count + (size % count != 0);
    for (int i = 0; i < count; i++) {
        const int64_t start = part * i < size ? part * i : size;
        parts[i] = wg_slice(x, along, start, size - start < part ? size : start + part, 1);
        if (parts[i] == NULL)
            return -1;
    }
    return 0;
}

/* ==== Diagonals of matrices, and the triangles that they bound.
 *
 *     offset -1   0   1           columns - rows
 *              \   \   \
 *             [ .   .   . ]
 *             [ .   .   . ]    ==== */

/* ---- diagonal: y[..., i] = x[.. i .. i + offset ..].
 * dx = diag_embed of g.
 * diag_embed: y = zeros with x on a diagonal.
 * dx = diagonal of g. The two ops are adjoints. ---- */

typedef struct diagonal_options {
    int axis_a, axis_b; /* of rows and columns, resolved: not negative, and different */
    int64_t offset;
    int64_t rows, columns; /* diag_embed: the sizes of the two axes */
} diagonal_options;

static int64_t diagonal_length(int64_t rows, int64_t columns, int64_t offset) {
    if (offset > 0)
        columns = offset < columns ? columns - offset : 0;
    else
        rows = offset > -rows ? rows + offset : 0;
    return rows < columns ? rows : columns;
}

/* The shape of x without the two axes, and with the diagonal as the last axis. */
static void diagonal_spec(const wg_spec *x, const diagonal_options *options, wg_spec *y) {
    const int a = options->axis_a, b = options->axis_b;
    *y = (wg_spec){.dtype = x->dtype};
    for (int i = 0; i < x->ndim; i++)
        if (i != a && i != b)
            y->shape[y->ndim++] = x->shape[i];
    y->shape[y->ndim++] = diagonal_length(x->shape[a], x->shape[b], options->offset);
}

static wg_tensor *diagonal_view(const wg_tensor *x, const diagonal_options *options) {
    const int a = options->axis_a, b = options->axis_b;
    wg_spec spec;
    int64_t strides[WG_MAX_DIMS], offset = x->offset;
    int ndim = 0;
    diagonal_spec(&x->spec, options, &spec);
    for (int i = 0; i < x->spec.ndim; i++)
        if (i != a && i != b)
            strides[ndim++] = x->strides[i];
    strides[ndim] = x->strides[a] + x->strides[b];
    if (spec.shape[ndim] > 0)
        offset += options->offset > 0 ? options->offset * x->strides[b]
                                      : -options->offset * x->strides[a];
    return wg__tensor_view(x, &spec, strides, offset);
}

static int diagonal_infer(wg_call *call) {
    const diagonal_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    if (options->axis_a >= x->ndim || options->axis_b >= x->ndim)
        return wg__op_fail(call, WG_ERROR_SHAPE, "there are no axes %d and %d", options->axis_a,
                           options->axis_b);
    diagonal_spec(x, options, &call->output_specs[0]);
    return 0;
}

static int diagonal_forward(wg_call *call) {
    return wg__set_output(call, diagonal_view(call->inputs[0], call->options));
}

static const wg_op diag_embed;

static int diagonal_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    diagonal_options options = *(const diagonal_options *)call->options;
    options.rows = call->input_specs[0].shape[options.axis_a];
    options.columns = call->input_specs[0].shape[options.axis_b];
    gradients[0] = wg_apply_one(&diag_embed, 1, cotangents, &options);
    return wg__vjp_status();
}

WG__EXAMPLES(diagonal, diagonal_options, (wg__sample_normal), {{0, 1, 0, 3, 3}, "3 3"},
             {{0, 1, 1, 2, 4}, "2 4"}, {{2, 0, -1, 4, 3}, "3 2 4"}, {{1, 2, -2, 3, 2}, "2 3 2"},
             {{1, 0, 5, 2, 2}, "2 2"})

static const wg_op diagonal = {
    WG__VIEW_OP(diagonal, diagonal_options,
                "y[..., i] = x at i along an axis and i + offset along another axis; the two axes "
                "are removed, and the diagonal is the last axis. A view."),
    .batch = wg__batch_axes};

/* Resolves the two axes; false with an error. */
static bool resolve_axes(diagonal_options *options, int ndim, int axis_a, int axis_b,
                         const char *where) {
    options->axis_a = wg__axis(axis_a, ndim, where);
    options->axis_b = options->axis_a < 0 ? -1 : wg__axis(axis_b, ndim, where);
    if (options->axis_b < 0)
        return false;
    if (options->axis_a == options->axis_b)
        wg_fail(WG_ERROR_INDEX, where, "axis %d is given twice; a diagonal lies in two", axis_a);
    return options->axis_a != options->axis_b;
}

wg_tensor *wg_diagonal(wg_tensor *x, int64_t offset, int axis_a, int axis_b) {
    diagonal_options options = {.offset = offset};
    if (x == NULL || !resolve_axes(&options, x->spec.ndim, axis_a, axis_b, "diagonal"))
        return NULL;
    return wg_apply_one(&diagonal, 1, &x, &options);
}

static int diag_embed_infer(wg_call *call) {
    const diagonal_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    const int64_t length = diagonal_length(options->rows, options->columns, options->offset);
    const int ndim = x->ndim + 1;
    int64_t shape[WG_MAX_DIMS];
    if (ndim > WG_MAX_DIMS || options->axis_a >= ndim || options->axis_b >= ndim)
        return wg__op_fail(call, WG_ERROR_SHAPE, "one axis more than %d is beyond %d", x->ndim,
                           WG_MAX_DIMS);
    if (x->ndim < 1 || x->shape[x->ndim - 1] != length)
        return wg__op_fail(call, WG_ERROR_SHAPE, "the last axis must have size %lld",
                           (long long)length);
    for (int i = 0, from = 0; i < ndim; i++)
        shape[i] = i == options->axis_a   ? options->rows
                   : i == options->axis_b ? options->columns
                                          : x->shape[from++];
    return wg__spec_make(&call->output_specs[0], x->dtype, ndim, shape, call->op->name);
}

static int diag_embed_forward(wg_call *call) {
    wg_tensor *y = call->outputs[0];
    wg_tensor *on_diagonal = diagonal_view(y, call->options);
    if (on_diagonal == NULL || wg_fill_(y, 0) < 0)
        return -1;
    wg__convert(on_diagonal, call->inputs[0]);
    return 0;
}

WG__VJP(diag_embed, wg_apply_one(&diagonal, 1, &g, call->options))

WG__EXAMPLES(diag_embed, diagonal_options, (wg__sample_normal), {{0, 1, 0, 3, 3}, "3"},
             {{0, 1, 1, 2, 4}, "2"}, {{2, 0, -1, 4, 3}, "2 3"}, {{1, 2, -2, 3, 2}, "2 1"},
             {{1, 0, 5, 2, 2}, "0"})
WG__LARGE(diag_embed, diagonal_options, "64 256", 1, 2, 0, 256, 256)

static const wg_op diag_embed = {
    WG__LINEAR_OP(
        diag_embed, diagonal_options,
        "y = zeros with the last axis of x on the diagonal of two new axes: the adjoint of "
        "diagonal."),
    .batch = wg__batch_axes};

wg_tensor *wg_diag_embed(wg_tensor *x, int64_t offset, int axis_a, int axis_b) {
    diagonal_options options = {.offset = offset};
    char text[160];
    if (x == NULL)
        return NULL;
    if (x->spec.ndim < 1 || offset > INT32_MAX || offset < -INT32_MAX)
        return wg__fail_null(
            WG_ERROR_SHAPE, "diag_embed",
            "%s at offset %lld; wanted a rank of 1 or more, and an offset of 31 bits",
            wg_spec_text(text, sizeof text, &x->spec), (long long)offset);
    if (!resolve_axes(&options, x->spec.ndim + 1, axis_a, axis_b, "diag_embed"))
        return NULL;
    options.rows = options.columns =
        x->spec.shape[x->spec.ndim - 1] + (offset > 0 ? offset : -offset);
    return wg_apply_one(&diag_embed, 1, &x, &options);
}

/* ---- tril, triu: y = the lower, the upper triangle of x over the last two axes; 0 elsewhere.
 * dx = the same triangle of g. ---- */

typedef struct triangle_job {
    const char *x;
    char *y;
    int64_t rows, columns, size; /* size: bytes of an element */
    int64_t diagonal;
    bool lower;
} triangle_job;

static void copy_triangles(int64_t begin, int64_t end, void *context) {
    const triangle_job *job = context;
    const int64_t size = job->size, bytes = job->columns * size;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i % job->rows;
        /* The offset of the first column above the diagonal in tril, on the diagonal in triu. */
        const int64_t cut = clamp(row + job->diagonal + job->lower, 0, job->columns) * size;
        const char *x = job->x + i * bytes;
        char *y = job->y + i * bytes;
        const int64_t kept = job->lower ? 0 : cut, zero = job->lower ? cut : 0;
        const int64_t kept_bytes = job->lower ? cut : bytes - cut;
        memcpy(y + kept, x + kept, (size_t)kept_bytes);
        memset(y + zero, 0, (size_t)(bytes - kept_bytes));
    }
}

static int triangle_infer(wg_call *call) {
    if (call->input_specs[0].ndim < 2)
        return wg__op_fail(call, WG_ERROR_SHAPE, "there is no matrix; wanted a rank of 2 or more");
    return wg__infer_like(call);
}

static int triangle_forward(wg_call *call, bool lower) {
    const wg_tensor *x = wg_contiguous(call->inputs[0]);
    if (x == NULL)
        return -1;
    const int ndim = x->spec.ndim;
    const int64_t diagonal = *(const int64_t *)call->options;
    triangle_job job = {.x = wg__tensor_address(x),
                        .y = wg__tensor_address(call->outputs[0]),
                        .rows = x->spec.shape[ndim - 2],
                        .columns = x->spec.shape[ndim - 1],
                        .size = (int64_t)wg_dtype_size(x->spec.dtype),
                        .lower = lower};
    job.diagonal = clamp(diagonal, -job.rows - 1, job.columns + 1);
    if (wg_tensor_count(x) > 0)
        wg__parallel_for(wg_tensor_count(x) / job.columns, WG__GRAIN / job.columns + 1,
                         copy_triangles, &job);
    return 0;
}

static int tril_forward(wg_call *call) {
    return triangle_forward(call, true);
}

static int triu_forward(wg_call *call) {
    return triangle_forward(call, false);
}

WG__VJP(triangle, wg_apply_one(call->op, 1, &g, call->options))

WG__EXAMPLES(triangle, int64_t, (wg__sample_normal), {0, "1 3 3"}, {-1, "2 4 2"}, {2, "1 2 5"},
             {-9, "2 2 2"})
WG__LARGE(triangle, int64_t, "2048 2048", 0)

#define TRIANGLE(NAME, DOC)                                                                        \
    WG__OP(#NAME, 1, DOC), .options_size = sizeof(int64_t), .differentiable = 1,                   \
                           .infer = triangle_infer, .forward = NAME##_forward,                     \
                           .vjp = triangle_vjp, .jvp = wg_jvp_linear, .sample = triangle_sample,   \
                           .bench = triangle_bench, .batch = wg_batch_aligned

static const wg_op tril = {
    TRIANGLE(tril, "y = x on and below a diagonal of the last two axes, 0 above it.")};
static const wg_op triu = {
    TRIANGLE(triu, "y = x on and above a diagonal of the last two axes, 0 below it.")};

wg_tensor *wg_tril(wg_tensor *x, int64_t diagonal) {
    return wg_apply_one(&tril, 1, &x, &diagonal);
}

wg_tensor *wg_triu(wg_tensor *x, int64_t diagonal) {
    return wg_apply_one(&triu, 1, &x, &diagonal);
}

const wg__op_table wg__ops_slice =
    WG__OP_TABLE(&slice, &unslice, &narrow, &select_op, &diagonal, &diag_embed, &tril, &triu);
