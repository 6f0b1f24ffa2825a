/* Views of a tensor under another shape or order of axes. They share the operand's storage; only a
 * reshape that no strides can express copies elements. */
#include "tensor/ops/support.h"

#include <string.h>

/* The requested shape; infer resolves sizes of -1. */
typedef struct shape_options {
    int ndim;
    int64_t shape[WG_MAX_DIMS];
} shape_options;

/* False, with SHAPE, for a rank outside 0 to WG_MAX_DIMS. */
static bool shape_options_make(shape_options *options, int ndim, const int64_t *shape,
                               const char *where) {
    *options = (shape_options){.ndim = ndim};
    if (ndim < 0 || ndim > WG_MAX_DIMS) {
        wg_fail(WG_ERROR_SHAPE, where, "rank %d; ranks go from 0 to %d", ndim, WG_MAX_DIMS);
        return false;
    }
    if (ndim > 0)
        memcpy(options->shape, shape, (size_t)ndim * sizeof *shape);
    return true;
}

/* ---- reshape: the same elements in row-major order.   dx = reshape(g, shape of x). ---- */

/* Replaces a -1 in `shape` so that the shape has `count` elements. */
static int complete_shape(const wg_call *call, int64_t count, int ndim, int64_t *shape) {
    int unknown = -1;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] != -1)
            continue;
        if (unknown >= 0)
            return wg__op_fail(call, WG_ERROR_SHAPE, "two sizes are -1; at most one can be");
        unknown = i;
    }
    if (unknown < 0)
        return 0;
    wg_spec known;
    shape[unknown] = 1;
    if (wg__spec_make(&known, WG_U8, ndim, shape, call->op->name) < 0)
        return -1;
    const int64_t product = wg__spec_count(&known);
    if (product == 0 || count % product != 0)
        return wg__op_fail(
            call, WG_ERROR_SHAPE,
            "%lld elements cannot be divided by the product of the remaining sizes, %lld",
            (long long)count, (long long)product);
    shape[unknown] = count / product;
    return 0;
}

static int reshape_infer(wg_call *call) {
    const shape_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    wg_spec *out = &call->output_specs[0];
    int64_t shape[WG_MAX_DIMS];
    memcpy(shape, options->shape, sizeof shape);
    if (complete_shape(call, wg__spec_count(x), options->ndim, shape) < 0 ||
        wg__spec_make(out, x->dtype, options->ndim, shape, call->op->name) < 0)
        return -1;
    if (wg__spec_count(out) != wg__spec_count(x)) {
        char text[160];
        return wg__op_fail(call, WG_ERROR_SHAPE, "%lld elements do not fit %s, which has %lld",
                           (long long)wg__spec_count(x), wg_spec_text(text, sizeof text, out),
                           (long long)wg__spec_count(out));
    }
    return 0;
}

/* The strides that view x, in row-major order, under the shape `to`; false if no strides can.
 * Adjacent axes of x that a single stride walks form a run. From the last axis on, whole axes of
 * `to` must fill each run. */
static bool reshaped_strides(const wg_tensor *x, const wg_spec *to, int64_t *strides) {
    const int64_t *shape = x->spec.shape;
    int axis = x->spec.ndim - 1, cut = to->ndim - 1;
    if (wg__spec_count(to) == 0) {
        wg__contiguous_strides(to, strides);
        return true;
    }
    while (true) {
        while (axis >= 0 && shape[axis] == 1)
            axis--;
        if (axis < 0)
            break;
        const int64_t step = x->strides[axis];
        int64_t run = 1, covered = 1;
        for (; axis >= 0 && (shape[axis] == 1 || x->strides[axis] == run * step); axis--)
            run *= shape[axis];
        for (; covered < run; cut--) {
            strides[cut] = covered * step;
            covered *= to->shape[cut];
        }
        if (covered != run)
            return false;
    }
    for (; cut >= 0; cut--) /* the remaining axes have size 1 */
        strides[cut] = 1;
    return true;
}

static int reshape_forward(wg_call *call) {
    const wg_tensor *x = call->inputs[0];
    const wg_spec *to = &call->output_specs[0];
    int64_t strides[WG_MAX_DIMS];
    if (reshaped_strides(x, to, strides))
        return wg__set_output(call, wg__tensor_view(x, to, strides, x->offset));
    wg__contiguous_strides(&x->spec, strides);
    wg_tensor *copy = wg__tensor_new(to);
    wg_tensor *as_x = copy == NULL ? NULL : wg__tensor_view(copy, &x->spec, strides, 0);
    if (as_x == NULL)
        return -1;
    wg__convert(as_x, x);
    return wg__set_output(call, copy);
}

WG__VJP(reshape, wg_reshape(g, call->input_specs[0].ndim, call->input_specs[0].shape))

WG__UNARY_SAMPLES(reshape, shape_options, {2, {3, 2}}, {2, {1, 1}}, {0, {0}}, {2, {4, -1}})

static const wg_op reshape = {
    WG__VIEW_OP(
        reshape, shape_options,
        "y = the elements of x in row-major order under another shape; one size may be -1. A "
        "view wherever the strides of x allow one."),
    .batch = wg__batch_reshape};

static wg_tensor *apply_shape(const wg_op *op, wg_tensor *x, int ndim, const int64_t *shape) {
    shape_options options;
    if (x == NULL || !shape_options_make(&options, ndim, shape, op->name))
        return NULL;
    return wg_apply_one(op, 1, &x, &options);
}

wg_tensor *wg_reshape(wg_tensor *x, int ndim, const int64_t *shape) {
    return apply_shape(&reshape, x, ndim, shape);
}

/* ---- squeeze, unsqueeze: remove or add an axis of size 1, always as a view. The vjp of squeeze is
 * unsqueeze, and the vjp of unsqueeze is squeeze. ---- */

static int squeeze_infer(wg_call *call) {
    const int given = *(const int *)call->options;
    const wg_spec *x = &call->input_specs[0];
    wg_spec *out = &call->output_specs[0];
    const int axis = wg__axis(given, x->ndim, call->op->name);
    if (axis < 0)
        return -1;
    if (x->shape[axis] != 1)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "axis %d has size %lld; only an axis of size 1 goes", given,
                           (long long)x->shape[axis]);
    *out = (wg_spec){.dtype = x->dtype, .ndim = x->ndim - 1};
    for (int i = 0; i < out->ndim; i++)
        out->shape[i] = x->shape[i < axis ? i : i + 1];
    return 0;
}

static int squeeze_forward(wg_call *call) {
    const int given = *(const int *)call->options;
    const wg_tensor *x = call->inputs[0];
    const int axis = wg__axis(given, x->spec.ndim, call->op->name);
    int64_t strides[WG_MAX_DIMS] = {0};
    for (int i = 0; i < x->spec.ndim - 1; i++)
        strides[i] = x->strides[i < axis ? i : i + 1];
    return wg__set_output(call, wg__tensor_view(x, &call->output_specs[0], strides, x->offset));
}

WG__VJP(squeeze, wg_unsqueeze(g, *(const int *)call->options))

WG__EXAMPLES(squeeze, int, (wg__sample_normal), {1, "2 1 3"}, {-1, "2 3 1"}, {0, "1 1 1"})

static const wg_op squeeze = {
    WG__VIEW_OP(squeeze, int, "y = x without one axis, of size 1. A view."),
    .batch = wg__batch_axis};

wg_tensor *wg_squeeze(wg_tensor *x, int axis) {
    return wg_apply_one(&squeeze, 1, &x, &axis);
}

static int unsqueeze_infer(wg_call *call) {
    const int given = *(const int *)call->options;
    const wg_spec *x = &call->input_specs[0];
    if (x->ndim == WG_MAX_DIMS)
        return wg__op_fail(call, WG_ERROR_SHAPE, "a tensor of rank %d takes no further axis",
                           x->ndim);
    const int axis = wg__axis(given, x->ndim + 1, call->op->name);
    if (axis < 0)
        return -1;
    wg_spec *out = &call->output_specs[0];
    out->dtype = x->dtype;
    out->ndim = x->ndim + 1;
    for (int i = 0; i < out->ndim; i++)
        out->shape[i] = i == axis ? 1 : x->shape[i < axis ? i : i - 1];
    return 0;
}

/* An axis of size 1 may have any stride. The chosen stride keeps a contiguous tensor contiguous. */
static int unsqueeze_forward(wg_call *call) {
    const int given = *(const int *)call->options;
    const wg_tensor *x = call->inputs[0];
    const int ndim = x->spec.ndim, axis = wg__axis(given, ndim + 1, call->op->name);
    const int64_t stride = axis < ndim ? x->spec.shape[axis] * x->strides[axis] : 1;
    int64_t strides[WG_MAX_DIMS] = {0};
    for (int i = 0; i <= ndim; i++)
        strides[i] = i == axis ? stride : x->strides[i < axis ? i : i - 1];
    return wg__set_output(call, wg__tensor_view(x, &call->output_specs[0], strides, x->offset));
}

WG__VJP(unsqueeze, wg_squeeze(g, *(const int *)call->options))

WG__UNARY_SAMPLES(unsqueeze, int, 1, 0, -1, -2)

static const wg_op unsqueeze = {
    WG__VIEW_OP(unsqueeze, int, "y = x with an axis of size 1 more. A view."),
    .batch = wg__batch_axis};

wg_tensor *wg_unsqueeze(wg_tensor *x, int axis) {
    return wg_apply_one(&unsqueeze, 1, &x, &axis);
}

typedef struct flatten_options {
    int first_axis, last_axis;
} flatten_options;

static int flatten_decompose(wg_call *call) {
    const flatten_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    const int rank = x->ndim ? x->ndim : 1;
    const int first = wg__axis(options->first_axis, rank, call->op->name);
    const int last = first < 0 ? -1 : wg__axis(options->last_axis, rank, call->op->name);
    int64_t shape[WG_MAX_DIMS];
    int ndim = 0;
    if (last < 0)
        return -1;
    if (first > last)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "axis %d comes after axis %d",
                           options->first_axis, options->last_axis);
    for (int i = 0; i < first; i++)
        shape[ndim++] = x->shape[i];
    shape[ndim] = 1;
    for (int i = first; i <= last && i < x->ndim; i++)
        shape[ndim] *= x->shape[i];
    ndim++;
    for (int i = last + 1; i < x->ndim; i++)
        shape[ndim++] = x->shape[i];
    return wg__set_output(call, wg_reshape(call->inputs[0], ndim, shape));
}

WG__UNARY_SAMPLES(flatten, flatten_options, {0, -1}, {0, -1}, {0, 0}, {1, 2})

static const wg_op flatten = {WG__COMPOSITE_OP(
    flatten, flatten_options,
    "y = x with the axes from first to last as one, by reshape; a scalar becomes (1).")};

wg_tensor *wg_flatten(wg_tensor *x, int first_axis, int last_axis) {
    return wg_apply_one(&flatten, 1, &x, &(flatten_options){first_axis, last_axis});
}

typedef struct unflatten_options {
    int axis;
    shape_options sizes;
} unflatten_options;

static int unflatten_decompose(wg_call *call) {
    const unflatten_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    const int axis = wg__axis(options->axis, x->ndim, call->op->name), parts = options->sizes.ndim;
    int64_t sizes[WG_MAX_DIMS], shape[2 * WG_MAX_DIMS];
    wg_spec cut;
    if (axis < 0)
        return -1;
    memcpy(sizes, options->sizes.shape, sizeof sizes);
    if (complete_shape(call, x->shape[axis], parts, sizes) < 0 ||
        wg__spec_make(&cut, WG_U8, parts, sizes, call->op->name) < 0)
        return -1;
    const int ndim = x->ndim - 1 + parts;
    if (parts < 1 || ndim > WG_MAX_DIMS || wg__spec_count(&cut) != x->shape[axis])
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "axis %d, of size %lld, is not cut into %d axes whose sizes multiply to "
                           "%lld; ranks go to %d",
                           options->axis, (long long)x->shape[axis], parts,
                           (long long)wg__spec_count(&cut), WG_MAX_DIMS);
    memcpy(shape, x->shape, (size_t)axis * sizeof *shape);
    memcpy(shape + axis, sizes, (size_t)parts * sizeof *shape);
    memcpy(shape + axis + parts, x->shape + axis + 1, (size_t)(x->ndim - axis - 1) * sizeof *shape);
    return wg__set_output(call, wg_reshape(call->inputs[0], ndim, shape));
}

WG__EXAMPLES(unflatten, unflatten_options, (wg__sample_normal), {{0, {2, {2, -1}}}, "4 3"},
             {{-2, {3, {1, 2, 2}}}, "4 2"}, {{1, {1, {3}}}, "2 3"})

static const wg_op unflatten = {WG__COMPOSITE_OP(
    unflatten, unflatten_options,
    "y = x with one axis cut into several, by reshape; one of their sizes may be -1.")};

wg_tensor *wg_unflatten(wg_tensor *x, int axis, int ndim, const int64_t *sizes) {
    unflatten_options options = {.axis = axis};
    if (x == NULL || !shape_options_make(&options.sizes, ndim, sizes, "unflatten"))
        return NULL;
    return wg_apply_one(&unflatten, 1, &x, &options);
}

/* ---- expand: axes of size 1, and new leading axes, repeated by a stride of 0.
 * dx = g summed over the repeated axes. ---- */

static int expand_infer(wg_call *call) {
    const shape_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    const int added = options->ndim - x->ndim;
    int64_t shape[WG_MAX_DIMS];
    if (added < 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "to rank %d; expanding drops no axis",
                           options->ndim);
    for (int i = 0; i < options->ndim; i++) {
        const int64_t size = i < added ? 1 : x->shape[i - added];
        shape[i] = options->shape[i] == -1 && i >= added ? size : options->shape[i];
        if (size != 1 && size != shape[i])
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "size %lld of axis %d is not %lld; only a size of 1 is repeated",
                               (long long)size, i - added, (long long)shape[i]);
    }
    return wg__spec_make(&call->output_specs[0], x->dtype, options->ndim, shape, call->op->name);
}

static int expand_forward(wg_call *call) {
    const wg_tensor *x = call->inputs[0];
    int64_t strides[WG_MAX_DIMS];
    if (!wg__broadcast_strides(x, &call->output_specs[0], strides))
        return wg__op_fail(call, WG_ERROR_SHAPE, "the shapes do not broadcast");
    return wg__set_output(call, wg__tensor_view(x, &call->output_specs[0], strides, x->offset));
}

WG__VJP(expand, wg__sum_like(g, call, 0))

WG__UNARY_SAMPLES(expand, shape_options, {3, {2, -1, 3}}, {2, {2, 2}}, {2, {3, 4}},
                  {4, {2, 3, -1, 2}})

static const wg_op expand = {
    WG__VIEW_OP(
        expand, shape_options,
        "y = x with axes of size 1, and new leading axes, repeated to a shape; -1 keeps a size. "
        "A view by strides of 0."),
    .batch = wg__batch_expand};

wg_tensor *wg_expand(wg_tensor *x, int ndim, const int64_t *shape) {
    return apply_shape(&expand, x, ndim, shape);
}

/* ==== Axes in another order ==== */

/* ---- permute: axis i of y is axis order[i] of x.   dx = the inverse permutation of g. ---- */

typedef struct permute_options {
    int order[WG_MAX_DIMS];
} permute_options;

static int permute_infer(wg_call *call) {
    const permute_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    call->output_specs[0] = *x;
    for (int i = 0; i < x->ndim; i++)
        call->output_specs[0].shape[i] = x->shape[options->order[i]];
    return 0;
}

static int permute_forward(wg_call *call) {
    const permute_options *options = call->options;
    const wg_tensor *x = call->inputs[0];
    int64_t strides[WG_MAX_DIMS];
    for (int i = 0; i < x->spec.ndim; i++)
        strides[i] = x->strides[options->order[i]];
    return wg__set_output(call, wg__tensor_view(x, &call->output_specs[0], strides, x->offset));
}

static int permute_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const permute_options *options = call->options;
    const int ndim = call->input_specs[0].ndim;
    int64_t inverse[WG_MAX_DIMS] = {0};
    for (int i = 0; i < ndim; i++)
        inverse[options->order[i]] = i;
    gradients[0] = wg_permute(cotangents[0], ndim, inverse);
    return wg__vjp_status();
}

WG__UNARY_SAMPLES(permute, permute_options, {{1, 0}}, {{0}}, {{0}}, {{2, 0, 3, 1}})

static int permute_batch(wg_call *call, uint32_t batched, int64_t samples) {
    (void)samples, (void)batched;
    const permute_options *one = call->options;
    permute_options all = {{0}};
    for (int i = 0; i < call->input_specs[0].ndim; i++) /* the last axis may be -1 */
        all.order[1 + i] = one->order[i] < 0 ? one->order[i] : one->order[i] + 1;
    return wg_apply(call->op, 1, call->inputs, &all, call->outputs);
}

static const wg_op permute = {
    WG__VIEW_OP(permute, permute_options, "Axis i of y is axis order[i] of x. A view."),
    .batch = permute_batch};

wg_tensor *wg_permute(wg_tensor *x, int count, const int64_t *order) {
    permute_options options = {{0}};
    char text[160];
    if (x == NULL)
        return NULL;
    if (count != x->spec.ndim)
        return wg__fail_null(WG_ERROR_SHAPE, "permute",
                             "%s: an order of %d axes; name each axis once",
                             wg_spec_text(text, sizeof text, &x->spec), count);
    unsigned seen = 0;
    for (int i = 0; i < count; i++) {
        options.order[i] = wg__axis(order[i], count, "permute");
        if (options.order[i] < 0)
            return NULL;
        if (seen >> options.order[i] & 1u)
            return wg__fail_null(WG_ERROR_INDEX, "permute",
                                 "%s: axis %lld comes twice; name each axis once",
                                 wg_spec_text(text, sizeof text, &x->spec), (long long)order[i]);
        seen |= 1u << options.order[i];
    }
    return wg_apply_one(&permute, 1, &x, &options);
}

/* ---- transpose: exchanges two axes; a permutation with less overhead.
 * dx = the transpose of g. ---- */

typedef struct transpose_options {
    int axis_a, axis_b;
} transpose_options;

/* Exchanges the entries of the two axes in a shape or strides; -1 with INDEX. */
static int exchange(const wg_call *call, int64_t *of_axes) {
    const transpose_options *options = call->options;
    const int ndim = call->input_specs[0].ndim;
    const int a = wg__axis(options->axis_a, ndim, call->op->name);
    const int b = a < 0 ? -1 : wg__axis(options->axis_b, ndim, call->op->name);
    if (b < 0)
        return -1;
    const int64_t of_a = of_axes[a];
    of_axes[a] = of_axes[b];
    of_axes[b] = of_a;
    return 0;
}

static int transpose_infer(wg_call *call) {
    call->output_specs[0] = call->input_specs[0];
    return exchange(call, call->output_specs[0].shape);
}

static int transpose_forward(wg_call *call) {
    const wg_tensor *x = call->inputs[0];
    int64_t strides[WG_MAX_DIMS];
    memcpy(strides, x->strides, sizeof strides);
    if (exchange(call, strides) < 0)
        return -1;
    return wg__set_output(call, wg__tensor_view(x, &call->output_specs[0], strides, x->offset));
}

WG__VJP(transpose, wg_apply_one(call->op, 1, &g, call->options))

WG__EXAMPLES(transpose, transpose_options, (wg__sample_normal), {{0, 1}, "2 3 1"},
             {{-1, 0}, "2 3 4"}, {{1, 1}, "2 2 2"})

static const wg_op transpose = {
    WG__VIEW_OP(transpose, transpose_options, "y = x with two axes exchanged. A view."),
    .batch = wg__batch_axes};

wg_tensor *wg_transpose(wg_tensor *x, int axis_a, int axis_b) {
    return wg_apply_one(&transpose, 1, &x, &(transpose_options){axis_a, axis_b});
}

typedef struct movedim_options {
    int count;
    int64_t from[WG_MAX_DIMS], to[WG_MAX_DIMS];
} movedim_options;

static int movedim_decompose(wg_call *call) {
    const movedim_options *options = call->options;
    const int ndim = call->input_specs[0].ndim;
    const int64_t taken = wg__axis_mask(options->count, options->from, ndim, call->op->name);
    const int64_t filled = wg__axis_mask(options->count, options->to, ndim, call->op->name);
    int64_t order[WG_MAX_DIMS];
    if (taken < 0 || filled < 0)
        return -1;
    for (int axis = 0, place = 0; axis < ndim; axis++) {
        if (taken >> axis & 1)
            continue;
        while (filled >> place & 1)
            place++;
        order[place++] = axis;
    }
    for (int i = 0; i < options->count; i++)
        order[wg__axis(options->to[i], ndim, call->op->name)] = options->from[i];
    return wg__set_output(call, wg_permute(call->inputs[0], ndim, order));
}

WG__UNARY_SAMPLES(movedim, movedim_options, {1, {0}, {-1}}, {0, {0}, {0}}, {1, {0}, {0}},
                  {2, {3, 0}, {0, 2}})

static const wg_op movedim = {WG__COMPOSITE_OP(
    movedim, movedim_options,
    "Axis from[i] of x is axis to[i] of y; all remaining axes keep their order. A view.")};

wg_tensor *wg_movedim(wg_tensor *x, int count, const int64_t *from, const int64_t *to) {
    movedim_options options = {.count = count};
    if (x == NULL)
        return NULL;
    if (count < 0 || count > WG_MAX_DIMS)
        return wg__fail_null(WG_ERROR_ARGUMENT, "movedim", "%d axes; there are at most %d", count,
                             WG_MAX_DIMS);
    if (count > 0) {
        memcpy(options.from, from, (size_t)count * sizeof *from);
        memcpy(options.to, to, (size_t)count * sizeof *to);
    }
    return wg_apply_one(&movedim, 1, &x, &options);
}

const wg__op_table wg__ops_view = WG__OP_TABLE(&reshape, &squeeze, &unsqueeze, &flatten, &unflatten,
                                               &expand, &permute, &transpose, &movedim);
