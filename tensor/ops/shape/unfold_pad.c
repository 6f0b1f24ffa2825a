/* Sliding windows along an axis (unfold, fold), and padding (pad). */
#include "tensor/ops/support.h"

#include <string.h>

/* ---- unfold: y[.., i, .., j] = x[.., i step + j, ..], windows that may overlap.   dx = fold of g.
 * fold: y = zeros, of `length` along the axis, with each window added at the elements that unfold
 * reads.   dx = unfold of g. The two ops are adjoints.
 *
 *     x  0 1 2 3 4 5 6      size 3, step 2      y  0 1 2
 *        [...] |  |                                2 3 4
 *            [...] |                               4 5 6
 *                [...] ---- */

typedef struct unfold_options {
    int axis; /* resolved */
    int64_t size, step;
    int64_t length; /* fold: the size of the axis */
} unfold_options;

static int unfold_infer(wg_call *call) {
    const unfold_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    wg_spec *y = &call->output_specs[0];
    if (options->size < 1 || options->step < 1)
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "windows of %lld at steps of %lld; both are at least 1",
                           (long long)options->size, (long long)options->step);
    if (x->ndim == WG_MAX_DIMS)
        return wg__op_fail(call, WG_ERROR_SHAPE, "a tensor of rank %d takes no further axis",
                           WG_MAX_DIMS);
    if (options->axis >= x->ndim || x->shape[options->axis] < options->size)
        return wg__op_fail(call, WG_ERROR_SHAPE, "a window of %lld is larger than axis %d",
                           (long long)options->size, options->axis);
    *y = *x;
    y->shape[options->axis] = (x->shape[options->axis] - options->size) / options->step + 1;
    y->shape[y->ndim++] = options->size;
    return 0;
}

static int unfold_forward(wg_call *call) {
    const unfold_options *options = call->options;
    const wg_tensor *x = call->inputs[0];
    int64_t strides[WG_MAX_DIMS];
    memcpy(strides, x->strides, sizeof strides);
    strides[x->spec.ndim] = strides[options->axis];
    strides[options->axis] *= options->step;
    return wg__set_output(call, wg__tensor_view(x, &call->output_specs[0], strides, x->offset));
}

static const wg_op fold;

static int unfold_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    unfold_options options = *(const unfold_options *)call->options;
    options.length = call->input_specs[0].shape[options.axis];
    gradients[0] = wg_apply_one(&fold, 1, cotangents, &options);
    return wg__vjp_status();
}

WG__EXAMPLES(unfold, unfold_options, (wg__sample_normal), {{0, 3, 1, 5}, "5"},
             {{1, 2, 2, 5}, "2 5"}, {{0, 2, 3, 6}, "6 1 2"}, {{1, 4, 1, 4}, "3 4"})

static const wg_op unfold = {
    WG__VIEW_OP(unfold, unfold_options,
                "y = the windows of a size along an axis of x, `step` elements apart; a new last "
                "axis holds the elements of a window. A view."),
    .batch = wg__batch_axis};

wg_tensor *wg_unfold(wg_tensor *x, int axis, int64_t size, int64_t step) {
    const int along = wg__axis_of(x, axis, "unfold");
    if (along < 0)
        return NULL;
    return wg_apply_one(&unfold, 1, &x, &(unfold_options){along, size, step, 0});
}

static int fold_infer(wg_call *call) {
    const unfold_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    wg_spec *y = &call->output_specs[0];
    const int64_t windows = (options->length - options->size) / options->step + 1;
    *y = *x;
    if (--y->ndim <= options->axis || x->shape[options->axis] != windows ||
        x->shape[y->ndim] != options->size)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "axis %d must hold %lld windows, and the last axis %lld elements",
                           options->axis, (long long)windows, (long long)options->size);
    y->shape[options->axis] = options->length;
    return 0;
}

/* For each j, adds element j of all windows at once: these elements never overlap. bf16 is summed
 * in f32. */
static int fold_forward(wg_call *call) {
    const unfold_options *options = call->options;
    wg_tensor *y = call->outputs[0], *x = call->inputs[0], *sum = y;
    const int axis = options->axis, last = y->spec.ndim;
    if (y->spec.dtype == WG_BF16) {
        x = wg_cast(x, WG_F32);
        sum = wg_empty(WG_F32, y->spec.ndim, y->spec.shape);
    }
    if (x == NULL || wg_fill_(sum, 0) < 0)
        return -1;
    for (int64_t j = 0; j < options->size; j++) {
        wg_tensor to = *sum, from = *x;
        from.spec.ndim--;
        from.offset += j * x->strides[last];
        to.spec.shape[axis] = from.spec.shape[axis];
        to.strides[axis] *= options->step;
        to.offset += j * sum->strides[axis];
        if (wg_add_(&to, &from, 1) < 0)
            return -1;
    }
    return sum == y ? 0 : wg_copy_(y, sum);
}

WG__VJP(fold, wg_apply_one(&unfold, 1, &g, call->options))

WG__EXAMPLES(fold, unfold_options, (wg__sample_normal), {{0, 3, 1, 5}, "3 3"},
             {{1, 2, 2, 5}, "2 2 2"}, {{0, 2, 3, 6}, "2 1 2 2"}, {{1, 4, 1, 4}, "3 1 4"})
WG__LARGE(fold, unfold_options, "1024 1024 4", 1, 4, 2, 2050)

static const wg_op fold = {
    WG__LINEAR_OP(fold, unfold_options,
                  "y = zeros, with the windows in the last axis of x added at their positions "
                  "along an axis: the adjoint of unfold."),
    .batch = wg__batch_axis};

/* ---- Borders: constant, or copies of elements of x ---- */

typedef struct border_options {
    int64_t before[WG_MAX_DIMS], after[WG_MAX_DIMS]; /* of each axis; at least 0 */
    wg_pad_mode mode; /* constant; reflect or circular, of pad_edges and fold_edges */
    double value;
} border_options;

/* The maximum width of a border at an axis of `size`. */
static int64_t widest(wg_pad_mode mode, int64_t size) {
    if (mode == WG_PAD_REFLECT)
        return wg__larger(size - 1, 0);
    if (mode == WG_PAD_CIRCULAR)
        return size;
    return mode == WG_PAD_CONSTANT || size > 0 ? INT64_MAX : 0;
}

/* Adds the borders to the shape of input 0, or with `sign` -1 removes them. */
static int infer_borders(wg_call *call, int sign) {
    const border_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    int64_t shape[WG_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) {
        const int64_t before = options->before[i], after = options->after[i];
        if (before > INT64_MAX / 4 || after > INT64_MAX / 4)
            return wg__op_fail(call, WG_ERROR_SHAPE, "a border beyond all memory");
        shape[i] = x->shape[i] + sign * (before + after);
        const int64_t inside = sign > 0 ? x->shape[i] : shape[i];
        const int64_t most = widest(options->mode, inside);
        if (inside < 0 || before > most || after > most)
            return wg__op_fail(call, WG_ERROR_SHAPE, "borders of %lld and %lld at axis %d",
                               (long long)before, (long long)after, i);
    }
    return wg__spec_make(&call->output_specs[0], x->dtype, x->ndim, shape, call->op->name);
}

static int pad_constant_infer(wg_call *call) {
    return infer_borders(call, 1);
}

/* The axis of samples comes first, and has no border. */
static int border_batch(wg_call *call, uint32_t batched, int64_t samples) {
    (void)samples, (void)batched;
    const border_options *one = call->options;
    border_options all = {.value = one->value, .mode = one->mode};
    memcpy(all.before + 1, one->before, sizeof one->before - sizeof *one->before);
    memcpy(all.after + 1, one->after, sizeof one->after - sizeof *one->after);
    return wg_apply(call->op, 1, call->inputs, &all, call->outputs);
}

/* ---- pad_constant: y = x with a constant border.   dx = the inside of g. ---- */

/* Fills the borders axis by axis, each within the inside of all earlier axes. */
static int pad_constant_forward(wg_call *call) {
    const border_options *options = call->options;
    const wg_tensor *x = call->inputs[0];
    wg_tensor inside = *call->outputs[0];
    for (int i = 0; i < x->spec.ndim; i++) {
        const int64_t begin = options->before[i], size = x->spec.shape[i];
        wg_tensor before = wg__part_of(&inside, i, 0, begin);
        wg_tensor after = wg__part_of(&inside, i, begin + size, options->after[i]);
        if (wg_fill_(&before, options->value) < 0 || wg_fill_(&after, options->value) < 0)
            return -1;
        inside = wg__part_of(&inside, i, begin, size);
    }
    wg__convert(&inside, x);
    return 0;
}

static int pad_constant_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const border_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    wg_tensor *g = wg_alias(cotangents[0]);
    for (int i = 0; i < x->ndim; i++)
        g = wg_slice(g, i, options->before[i], options->before[i] + x->shape[i], 1);
    gradients[0] = g;
    return wg__vjp_status();
}

static int pad_constant_jvp(wg_call *call, wg_tensor *const *tangents,
                            wg_tensor **output_tangents) {
    border_options options = *(const border_options *)call->options;
    options.value = 0;
    return wg_apply(call->op, 1, tangents, &options, output_tangents);
}

WG__UNARY_SAMPLES(pad_constant, border_options, {{1, 0}, {2, 3}, WG_PAD_CONSTANT, 7},
                  {{0}, {0}, WG_PAD_CONSTANT, 1}, {{3}, {0}, WG_PAD_CONSTANT, -1},
                  {{1, 0, 2, 0}, {0, 1, 0, 0}, WG_PAD_CONSTANT, 0.5})
WG__LARGE(pad_constant, border_options, "64 256 256", {0, 1, 1}, {0, 1, 1}, WG_PAD_CONSTANT, 0)

static const wg_op pad_constant = {
    WG__OP("pad_constant", 1, "y = x with a constant border before and after each axis."),
    .options_size = sizeof(border_options), .differentiable = 1, WG__PRIMITIVE(pad_constant),
    .batch = border_batch};

/* ---- pad_edges: y = x with a border of copies of elements of x: reflected, or wrapped around.
 * fold_edges: the adjoint. It adds each element of the border to the element that was copied.
 *
 *     reflect, 2 before and 1 after      2 1 | 0 1 2 3 | 2
 *     circular                           2 3 | 0 1 2 3 | 0
 *
 * Each axis of y has three parts, so y has 3^ndim regions; each region is a view of x. ---- */

enum { INSIDE, BEFORE, AFTER, PARTS };

/* Narrows y to a region, and x to the elements that the region copies. Reflected axes of `read`,
 * which is x or y, are flipped. Returns false if the region is empty. */
static bool narrow_to_region(const border_options *options, int region, wg_tensor *x, wg_tensor *y,
                             wg_tensor *read) {
    for (int i = 0; i < x->spec.ndim; i++, region /= PARTS) {
        const int part = region % PARTS;
        const int64_t before = options->before[i], after = options->after[i];
        const int64_t size = x->spec.shape[i];
        const bool reflect = options->mode == WG_PAD_REFLECT;
        const int64_t count = part == INSIDE ? size : part == BEFORE ? before : after;
        int64_t from = 0, to = before;
        if (part == BEFORE) {
            from = reflect ? 1 : size - before;
            to = 0;
        } else if (part == AFTER) {
            from = reflect ? size - 1 - after : 0;
            to = before + size;
        }
        if (count == 0)
            return false;
        *x = wg__part_of(x, i, from, count);
        *y = wg__part_of(y, i, to, count);
        if (part != INSIDE && reflect) { /* flip */
            read->offset += (read->spec.shape[i] - 1) * read->strides[i];
            read->strides[i] = -read->strides[i];
        }
    }
    return true;
}

static int regions_of(const wg_tensor *x) {
    int regions = 1;
    for (int i = 0; i < x->spec.ndim; i++)
        regions *= PARTS;
    return regions;
}

static int pad_edges_forward(wg_call *call) {
    for (int region = 0; region < regions_of(call->inputs[0]); region++) {
        wg_tensor x = *call->inputs[0], y = *call->outputs[0];
        if (narrow_to_region(call->options, region, &x, &y, &x))
            wg__convert(&y, &x);
    }
    return 0;
}

static int fold_edges_infer(wg_call *call) {
    return infer_borders(call, -1);
}

/* bf16 is summed in f32. Region 0 is the inside. */
static int fold_edges_forward(wg_call *call) {
    wg_tensor *to = call->outputs[0], *from = call->inputs[0], *sum = to;
    if (to->spec.dtype == WG_BF16) {
        from = wg_cast(from, WG_F32);
        sum = wg_empty(WG_F32, to->spec.ndim, to->spec.shape);
    }
    if (!from || !sum)
        return -1;
    for (int region = 0; region < regions_of(to); region++) {
        wg_tensor x = *sum, y = *from;
        if (!narrow_to_region(call->options, region, &x, &y, &y))
            continue;
        if (region == 0)
            wg__convert(&x, &y);
        else if (wg_add_(&x, &y, 1) < 0)
            return -1;
    }
    return sum == to ? 0 : wg_copy_(to, sum);
}

static const wg_op pad_edges, fold_edges;

WG__VJP(pad_edges, wg_apply_one(&fold_edges, 1, &g, call->options))
WG__VJP(fold_edges, wg_apply_one(&pad_edges, 1, &g, call->options))

WG__EXAMPLES(pad_edges, border_options, (wg__sample_normal),
             {{{0, 0, 2}, {0, 0, 1}, WG_PAD_REFLECT, 0}, "1 2 3"},
             {{{1, 0, 2}, {1, 1, 0}, WG_PAD_REFLECT, 0}, "2 2 4"},
             {{{0, 2, 0}, {0, 1, 3}, WG_PAD_CIRCULAR, 0}, "1 2 3"})
WG__EXAMPLES(fold_edges, border_options, (wg__sample_normal),
             {{{0, 0, 2}, {0, 0, 1}, WG_PAD_REFLECT, 0}, "1 2 6"},
             {{{1, 0, 2}, {1, 1, 0}, WG_PAD_REFLECT, 0}, "4 3 6"},
             {{{0, 2, 0}, {0, 1, 3}, WG_PAD_CIRCULAR, 0}, "1 5 6"})

#define EDGES(NAME, INFER, DOC)                                                                    \
    WG__OP(#NAME, 1, DOC), .options_size = sizeof(border_options), .differentiable = 1,            \
                           .infer = INFER, .forward = NAME##_forward, .vjp = NAME##_vjp,           \
                           .jvp = wg_jvp_linear, .sample = NAME##_sample, .batch = border_batch

static const wg_op pad_edges = {EDGES(pad_edges, pad_constant_infer,
                                      "y = x with a border of copies of its elements at each axis: "
                                      "mirrored (reflect) or wrapped around (circular).")};
static const wg_op fold_edges = {EDGES(fold_edges, fold_edges_infer,
                                       "y = the inside of x, with each border element added to the "
                                       "element that pad_edges copies: the adjoint of pad_edges.")};

/* ---- pad: borders of all modes; negative widths crop. ---- */

typedef struct pad_options {
    int count; /* of the last axes */
    int64_t widths[2 * WG_MAX_DIMS];
    wg_pad_mode mode;
    double value;
} pad_options;

/* `count` copies of the first or the last element of an axis. */
static wg_tensor *copies(wg_tensor *x, int axis, int64_t count, bool first) {
    const int64_t place = first ? 0 : wg_tensor_size(x, axis) - 1;
    int64_t shape[WG_MAX_DIMS];
    memcpy(shape, wg_tensor_shape(x), sizeof shape);
    shape[axis] = count;
    return wg_expand(wg_slice(x, axis, place, place + 1, 1), wg_tensor_ndim(x), shape);
}

static int pad_decompose(wg_call *call) {
    const pad_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    const int first = x->ndim - options->count;
    border_options borders = {.mode = options->mode, .value = options->value};
    if (options->mode < WG_PAD_CONSTANT || options->mode > WG_PAD_CIRCULAR)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "mode %d is none of wg_pad_mode",
                           (int)options->mode);
    if (first < 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "widths for %d axes", options->count);
    wg_tensor *y = wg_alias(call->inputs[0]);
    for (int axis = first; axis < x->ndim; axis++) {
        const int64_t *widths = options->widths + 2 * (axis - first), size = x->shape[axis];
        const int64_t before = widths[0], after = widths[1];
        if (before < -size || after < -size || (before < 0 && after < 0 && before + after < -size))
            return wg__op_fail(call, WG_ERROR_SHAPE, "%lld and %lld crop more than axis %d has",
                               (long long)before, (long long)after, axis);
        const int64_t cut = wg__larger(-before, 0), end = size + wg__smaller(after, 0);
        const int64_t most = widest(options->mode, end - cut);
        if (before > most || after > most)
            return wg__op_fail(
                call, WG_ERROR_SHAPE,
                "widths %lld and %lld at axis %d, where this mode has elements for %lld",
                (long long)before, (long long)after, axis, (long long)most);
        if (before < 0 || after < 0)
            y = wg_slice(y, axis, cut, end, 1);
        borders.before[axis] = wg__larger(before, 0);
        borders.after[axis] = wg__larger(after, 0);
        if (options->mode == WG_PAD_REPLICATE && y && (before > 0 || after > 0)) {
            wg_tensor *parts[3];
            int count = 0;
            if (before > 0)
                parts[count++] = copies(y, axis, before, true);
            parts[count++] = y;
            if (after > 0)
                parts[count++] = copies(y, axis, after, false);
            y = wg_cat(count, parts, axis);
        }
    }
    if (options->mode != WG_PAD_REPLICATE)
        y = wg_apply_one(options->mode == WG_PAD_CONSTANT ? &pad_constant : &pad_edges, 1, &y,
                         &borders);
    return wg__set_output(call, y);
}

WG__EXAMPLES(pad, pad_options, (wg__sample_normal), {{1, {2, 1}, WG_PAD_REFLECT, 0}, "1 2 3"},
             {{2, {1, 0, 2, 3}, WG_PAD_REPLICATE, 0}, "2 3 1"},
             {{2, {2, 1, 0, 3}, WG_PAD_CIRCULAR, 0}, "1 2 3"},
             {{2, {-1, 2, 1, 0}, WG_PAD_CONSTANT, 3}, "1 2 2"},
             {{2, {1, -1, -1, 1}, WG_PAD_REFLECT, 0}, "1 3 3"})

static const wg_op pad = {WG__COMPOSITE_OP(
    pad, pad_options,
    "y = x with its last axes made longer at both ends: by a number, by their elements in "
    "reverse, by the last one, or around the end. Negative widths crop.")};

wg_tensor *wg_pad(wg_tensor *x, int axis_count, const int64_t *widths, wg_pad_mode mode,
                  double value) {
    pad_options options = {.count = axis_count, .mode = mode, .value = value};
    if (x == NULL)
        return NULL;
    if (axis_count < 0 || axis_count > WG_MAX_DIMS)
        return wg__fail_null(WG_ERROR_ARGUMENT, "pad", "%d axes; there are at most %d", axis_count,
                             WG_MAX_DIMS);
    if (axis_count > 0)
        memcpy(options.widths, widths, 2 * (size_t)axis_count * sizeof *widths);
    return wg_apply_one(&pad, 1, &x, &options);
}

const wg__op_table wg__ops_unfold_pad =
    WG__OP_TABLE(&unfold, &fold, &pad_constant, &pad_edges, &fold_edges, &pad);
