/* Views: handles on the storage of their operand under another shape, other strides, another first
 * element. No element is copied, except by a reshape that the strides leave no other way. */
#include "tensor/convert.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/families.h"

#include <string.h>

/* The shape that a reshape or an expand asks for; -1 is worked out by infer. */
typedef struct shape_options {
    int ndim;
    int64_t shape[WG_MAX_DIMS];
} shape_options;

/* False, with SHAPE, for a rank that no tensor has; then there is no shape to copy. */
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

/* Replaces the one -1 of `shape` by what makes `count` elements. */
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
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "%lld elements cannot be cut by the other sizes, whose product is %lld",
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

/* The strides under which the elements of x, in row-major order, have the shape `to`; false if
 * there are none. Neighbouring axes of x that step as one form a run; each run, from the last, must
 * be cut by whole axes of `to`. */
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
    for (; cut >= 0; cut--) /* what is left are ones */
        strides[cut] = 1;
    return true;
}

/* A contiguous tensor of the shape `to` with the elements of x. */
static wg_tensor *reshaped_copy(const wg_tensor *x, const wg_spec *to) {
    int64_t strides[WG_MAX_DIMS];
    wg__contiguous_strides(&x->spec, strides);
    wg_tensor *copy = wg__tensor_new(to);
    wg_tensor *as_x = copy == NULL ? NULL : wg__tensor_view(copy, &x->spec, strides, 0);
    if (as_x == NULL)
        return NULL;
    wg__convert(as_x, x);
    return copy;
}

static int reshape_forward(wg_call *call) {
    const wg_tensor *x = call->inputs[0];
    const wg_spec *to = &call->output_specs[0];
    int64_t strides[WG_MAX_DIMS];
    call->outputs[0] = reshaped_strides(x, to, strides) ? wg__tensor_view(x, to, strides, x->offset)
                                                        : reshaped_copy(x, to);
    return call->outputs[0] == NULL ? -1 : 0;
}

static int reshape_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_reshape(cotangents[0], call->input_specs[0].ndim, call->input_specs[0].shape);
    return wg__vjp_status();
}

static int reshape_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const shape_options shapes[] = {{2, {3, 2}}, {2, {1, 1}}, {0, {0}}, {2, {4, -1}}};
    sample->options = &shapes[index % 4];
    return wg__sample_unary(index, generator, sample, wg__sample_normal);
}

static const wg_op reshape = {
    .name = "reshape",
    .doc = "y = the elements of x in row-major order under another shape; one size may be -1. A "
           "view wherever the strides of x allow one.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(shape_options),
    .differentiable = 1,
    .is_view = true,
    .infer = reshape_infer,
    .forward = reshape_forward,
    .vjp = reshape_vjp,
    .jvp = wg_jvp_linear,
    .sample = reshape_sample,
};

wg_tensor *wg_reshape(wg_tensor *x, int ndim, const int64_t *shape) {
    shape_options options;
    if (x == NULL || !shape_options_make(&options, ndim, shape, "reshape"))
        return NULL;
    return wg_apply_one(&reshape, 1, &x, &options);
}

/* Squeeze and unsqueeze are reshapes, which are always views. */

wg_tensor *wg_squeeze(wg_tensor *x, int axis) {
    if (x == NULL)
        return NULL;
    const int dropped = wg__axis(axis, x->spec.ndim, "squeeze");
    if (dropped < 0)
        return NULL;
    if (x->spec.shape[dropped] != 1) {
        char text[160];
        wg_fail(WG_ERROR_SHAPE, "squeeze", "%s: axis %d has size %lld; only an axis of size 1 goes",
                wg_spec_text(text, sizeof text, &x->spec), axis, (long long)x->spec.shape[dropped]);
        return NULL;
    }
    int64_t shape[WG_MAX_DIMS];
    int ndim = 0;
    for (int i = 0; i < x->spec.ndim; i++)
        if (i != dropped)
            shape[ndim++] = x->spec.shape[i];
    return wg_reshape(x, ndim, shape);
}

wg_tensor *wg_unsqueeze(wg_tensor *x, int axis) {
    if (x == NULL)
        return NULL;
    if (x->spec.ndim == WG_MAX_DIMS) {
        wg_fail(WG_ERROR_SHAPE, "unsqueeze", "a tensor of rank %d takes no further axis",
                WG_MAX_DIMS);
        return NULL;
    }
    const int added = wg__axis(axis, x->spec.ndim + 1, "unsqueeze");
    if (added < 0)
        return NULL;
    int64_t shape[WG_MAX_DIMS];
    for (int i = 0; i <= x->spec.ndim; i++)
        shape[i] = i == added ? 1 : x->spec.shape[i < added ? i : i - 1];
    return wg_reshape(x, x->spec.ndim + 1, shape);
}

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
    call->outputs[0] = wg__tensor_view(x, &call->output_specs[0], strides, x->offset);
    return call->outputs[0] == NULL ? -1 : 0;
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

static int permute_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const permute_options orders[] = {{{1, 0}}, {{0}}, {{0}}, {{2, 0, 3, 1}}};
    sample->options = &orders[index % 4];
    return wg__sample_unary(index, generator, sample, wg__sample_normal);
}

static const wg_op permute = {
    .name = "permute",
    .doc = "Axis i of y is axis order[i] of x. A view.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(permute_options),
    .differentiable = 1,
    .is_view = true,
    .infer = permute_infer,
    .forward = permute_forward,
    .vjp = permute_vjp,
    .jvp = wg_jvp_linear,
    .sample = permute_sample,
};

wg_tensor *wg_permute(wg_tensor *x, int count, const int64_t *order) {
    permute_options options = {{0}};
    char text[160];
    if (x == NULL)
        return NULL;
    if (count != x->spec.ndim) {
        wg_fail(WG_ERROR_SHAPE, "permute", "%s: an order of %d axes; name each axis once",
                wg_spec_text(text, sizeof text, &x->spec), count);
        return NULL;
    }
    unsigned seen = 0;
    for (int i = 0; i < count; i++) {
        options.order[i] = wg__axis(order[i], count, "permute");
        if (options.order[i] < 0)
            return NULL;
        if (seen >> options.order[i] & 1u) {
            wg_fail(WG_ERROR_INDEX, "permute", "%s: axis %lld comes twice; name each axis once",
                    wg_spec_text(text, sizeof text, &x->spec), (long long)order[i]);
            return NULL;
        }
        seen |= 1u << options.order[i];
    }
    return wg_apply_one(&permute, 1, &x, &options);
}

wg_tensor *wg_transpose(wg_tensor *x, int axis_a, int axis_b) {
    if (x == NULL)
        return NULL;
    const int a = wg__axis(axis_a, x->spec.ndim, "transpose");
    const int b = wg__axis(axis_b, x->spec.ndim, "transpose");
    if (a < 0 || b < 0)
        return NULL;
    permute_options options = {{0, 1, 2, 3, 4, 5, 6, 7}};
    options.order[a] = b;
    options.order[b] = a;
    return wg_apply_one(&permute, 1, &x, &options);
}

/* ---- expand: axes of size 1, and new leading axes, repeated by a stride of 0.   dx = g summed
 * over the repeated axes. ---- */

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
    call->outputs[0] = wg__tensor_view(x, &call->output_specs[0], strides, x->offset);
    return call->outputs[0] == NULL ? -1 : 0;
}

static int expand_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg__sum_like(cotangents[0], call, 0);
    return wg__vjp_status();
}

static int expand_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const shape_options shapes[] = {
        {3, {2, -1, 3}}, {2, {2, 2}}, {2, {3, 4}}, {4, {2, 3, -1, 2}}};
    sample->options = &shapes[index % 4];
    return wg__sample_unary(index, generator, sample, wg__sample_normal);
}

static const wg_op expand = {
    .name = "expand",
    .doc = "y = x with axes of size 1, and new leading axes, repeated to a shape; -1 keeps a size. "
           "A view by strides of 0.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(shape_options),
    .differentiable = 1,
    .is_view = true,
    .infer = expand_infer,
    .forward = expand_forward,
    .vjp = expand_vjp,
    .jvp = wg_jvp_linear,
    .sample = expand_sample,
};

wg_tensor *wg_expand(wg_tensor *x, int ndim, const int64_t *shape) {
    shape_options options;
    if (x == NULL || !shape_options_make(&options, ndim, shape, "expand"))
        return NULL;
    return wg_apply_one(&expand, 1, &x, &options);
}

/* ---- slice: y = `count` elements of one axis of x, every `step`-th from `start` on.   dx =
 * unslice of g. unslice: y = zeros, of `size` along the axis, with x where slice reads.   dx =
 * slice of g. Each is the other's adjoint, which closes them under differentiation of any order.
 * ---- */

typedef struct slice_options {
    int axis;
    int64_t start, step, count; /* as resolved: start >= 0, and step 1 where count < 2 */
    int64_t size;               /* of the axis in the operand of slice */
} slice_options;

/* The elements of `whole` that the slice stands for, as a view. */
static wg_tensor *slice_view(const wg_tensor *whole, const slice_options *options) {
    wg_spec spec = whole->spec;
    int64_t strides[WG_MAX_DIMS];
    memcpy(strides, whole->strides, sizeof strides);
    spec.shape[options->axis] = options->count;
    const int64_t offset = options->count > 0 ? options->start * strides[options->axis] : 0;
    strides[options->axis] *= options->step;
    return wg__tensor_view(whole, &spec, strides, whole->offset + offset);
}

/* What an axis was resolved for is what it must be, or a view would reach beyond its base. */
static int check_resolved(const wg_call *call, int axis, int64_t size) {
    if (axis < call->input_specs[0].ndim && call->input_specs[0].shape[axis] == size)
        return 0;
    return wg__op_fail(call, WG_ERROR_SHAPE, "axis %d must have size %lld", axis, (long long)size);
}

static int slice_infer(wg_call *call) {
    const slice_options *options = call->options;
    if (check_resolved(call, options->axis, options->size) < 0)
        return -1;
    call->output_specs[0] = call->input_specs[0];
    call->output_specs[0].shape[options->axis] = options->count;
    return 0;
}

static int slice_forward(wg_call *call) {
    call->outputs[0] = slice_view(call->inputs[0], call->options);
    return call->outputs[0] == NULL ? -1 : 0;
}

static const wg_op unslice;

/* Parts of one tensor (the heads of a split) add onto one gradient, in place if nobody else can
 * see it, so that each costs its own size only. */
static int slice_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[0], *total = gradients[0];
    if (total != NULL && !call->create_graph && wg__tensor_is_sole(total))
        return wg_add_(slice_view(total, call->options), g, 1);
    wg_tensor *part = wg_apply_one(&unslice, 1, &g, call->options);
    gradients[0] = total == NULL ? part : wg_add(total, part);
    return wg__vjp_status();
}

static const slice_options sample_slices[] = {
    {.axis = 1, .start = 0, .step = 2, .count = 2, .size = 3},
    {.axis = 0, .start = 1, .step = 1, .count = 3, .size = 5},
    {.axis = 2, .start = 2, .step = -1, .count = 3, .size = 3},
    {.axis = 0, .start = 0, .step = 1, .count = 1, .size = 1},
};

/* A sample for slice (of the axis's size) or for unslice (of the slice's count). */
static int sample_slice(int index, wg_generator *generator, wg_sample *sample, bool whole) {
    static const int ndims[] = {2, 1, 3, 1};
    static const int64_t shapes[][3] = {{2, 0}, {0}, {2, 2, 0}, {0}};
    if (index >= (int)(sizeof sample_slices / sizeof *sample_slices))
        return 0;
    const slice_options *options = &sample_slices[index];
    int64_t shape[3];
    memcpy(shape, shapes[index], sizeof shape);
    shape[options->axis] = whole ? options->size : options->count;
    sample->options = options;
    sample->inputs[0] = wg__sample_normal(generator, ndims[index], shape);
    return wg__sample_status(sample, 1);
}

static int slice_sample(int index, wg_generator *generator, wg_sample *sample) {
    return sample_slice(index, generator, sample, true);
}

static const wg_op slice = {
    .name = "slice",
    .doc = "y = x[start:stop:step] along one axis. A view.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(slice_options),
    .differentiable = 1,
    .is_view = true,
    .accumulates = 1,
    .infer = slice_infer,
    .forward = slice_forward,
    .vjp = slice_vjp,
    .jvp = wg_jvp_linear,
    .sample = slice_sample,
};

static int unslice_infer(wg_call *call) {
    const slice_options *options = call->options;
    if (check_resolved(call, options->axis, options->count) < 0)
        return -1;
    call->output_specs[0] = call->input_specs[0];
    call->output_specs[0].shape[options->axis] = options->size;
    return 0;
}

static int unslice_forward(wg_call *call) {
    wg_tensor *y = call->outputs[0];
    wg_tensor *part = slice_view(y, call->options);
    if (part == NULL)
        return -1;
    memset(wg__tensor_address(y), 0,
           (size_t)wg__spec_count(&y->spec) * wg_dtype_size(y->spec.dtype));
    wg__convert(part, call->inputs[0]);
    return 0;
}

static int unslice_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_apply_one(&slice, 1, cotangents, call->options);
    return wg__vjp_status();
}

static int unslice_sample(int index, wg_generator *generator, wg_sample *sample) {
    return sample_slice(index, generator, sample, false);
}

static int unslice_bench(wg_generator *generator, wg_sample *sample) {
    static const slice_options options = {.axis = 1, .step = 2, .count = 1024, .size = 2048};
    sample->options = &options;
    sample->inputs[0] = wg_rand(generator, WG_F32, 2, (int64_t[]){2048, 1024});
    return wg__sample_status(sample, 1);
}

static const wg_op unslice = {
    .name = "unslice",
    .doc = "y = zeros with x at [start:stop:step] of one axis: the adjoint of slice.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(slice_options),
    .differentiable = 1,
    .infer = unslice_infer,
    .forward = unslice_forward,
    .vjp = unslice_vjp,
    .jvp = wg_jvp_linear,
    .sample = unslice_sample,
    .bench = unslice_bench,
};

/* An index of Python: negative ones count from the end; then limited to [low, high]. */
static int64_t resolve(int64_t index, int64_t size, int64_t low, int64_t high) {
    if (index < 0)
        index += size;
    return index < low ? low : index > high ? high : index;
}

/* start:stop:step on an axis of `size`, resolved; `step` is not 0. */
static slice_options resolve_slice(int axis, int64_t size, int64_t start, int64_t stop,
                                   int64_t step) {
    slice_options options = {.axis = axis, .step = step, .size = size};
    int64_t last; /* one beyond the end, in the direction of the step */
    if (step > 0) {
        options.start = resolve(start, size, 0, size);
        last = resolve(stop, size, 0, size);
        if (last > options.start)
            options.count = (last - options.start - 1) / step + 1;
    } else {
        options.start = resolve(start, size, -1, size - 1);
        last = stop == WG_END ? -1 : resolve(stop, size, -1, size - 1);
        if (options.start > last)
            options.count = -((options.start - last - 1) / step) + 1;
    }
    if (options.count < 2)
        options.step = 1;
    if (options.count == 0)
        options.start = 0;
    return options;
}

wg_tensor *wg_slice(wg_tensor *x, int axis, int64_t start, int64_t stop, int64_t step) {
    if (x == NULL)
        return NULL;
    const int along = wg__axis(axis, x->spec.ndim, "slice");
    if (along < 0)
        return NULL;
    if (step == 0) {
        wg_fail(WG_ERROR_ARGUMENT, "slice", "a step of 0; steps are at least 1 or at most -1");
        return NULL;
    }
    const slice_options options = resolve_slice(along, x->spec.shape[along], start, stop, step);
    return wg_apply_one(&slice, 1, &x, &options);
}

wg_tensor *wg_select(wg_tensor *x, int axis, int64_t index) {
    if (x == NULL)
        return NULL;
    const int along = wg__axis(axis, x->spec.ndim, "select");
    if (along < 0)
        return NULL;
    const int64_t size = x->spec.shape[along];
    const int64_t at = index < 0 ? index + size : index;
    if (at < 0 || at >= size) {
        char text[160];
        wg_fail(WG_ERROR_INDEX, "select", "%s: index %lld is out of range of axis %d, of size %lld",
                wg_spec_text(text, sizeof text, &x->spec), (long long)index, axis, (long long)size);
        return NULL;
    }
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, wg_squeeze(wg_slice(x, along, at, at + 1, 1), along));
}

int wg_split(wg_tensor *x, int axis, int count, const int64_t *sizes, wg_tensor **parts) {
    for (int i = 0; i < count; i++)
        parts[i] = NULL;
    if (x == NULL)
        return -1;
    const int along = wg__axis(axis, x->spec.ndim, "split");
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
    if (x == NULL)
        return -1;
    const int along = wg__axis(axis, x->spec.ndim, "chunk");
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

static const wg_op *const ops[] = {&reshape, &permute, &expand, &slice, &unslice};

const wg__op_family wg__family_view = {ops, sizeof ops / sizeof *ops};
