/* Parts of one axis: the slice, a view, and what is made of it. */
#include "tensor/convert.h"
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"

#include <string.h>

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

/* Zeros in y from begin up to end of an axis. */
static int fill_with_zeros(wg_tensor *y, int axis, int64_t begin, int64_t end) {
    const slice_options part = {
        .axis = axis, .start = begin, .step = 1, .count = end - begin, .size = end};
    wg_tensor *view = slice_view(y, &part);
    return view == NULL ? -1 : wg_fill_(view, 0);
}

static int unslice_forward(wg_call *call) {
    const slice_options *options = call->options;
    wg_tensor *y = call->outputs[0], *part = slice_view(y, options);
    const int64_t begin = options->start, end = begin + options->count, size = options->size;
    if (part == NULL)
        return -1;
    if (options->step != 1) {
        if (wg_fill_(y, 0) < 0)
            return -1;
    } else if (fill_with_zeros(y, options->axis, 0, begin) < 0 ||
               fill_with_zeros(y, options->axis, end, size) < 0) {
        return -1;
    }
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

/* ---- narrow: a slice that is refused where it would reach beyond the axis. ---- */

typedef struct narrow_options {
    int axis;
    int64_t start, length;
} narrow_options;

static int narrow_infer(wg_call *call) {
    const narrow_options *options = call->options;
    const int axis = wg__axis(options->axis, call->input_specs[0].ndim, call->op->name);
    if (axis < 0)
        return -1;
    const int64_t size = call->input_specs[0].shape[axis];
    const int64_t start = options->start < 0 ? options->start + size : options->start;
    if (start < 0 || start > size || options->length < 0 || options->length > size - start)
        return wg__op_fail(
            call, WG_ERROR_INDEX, "%lld elements from %lld on reach beyond axis %d, of size %lld",
            (long long)options->length, (long long)options->start, options->axis, (long long)size);
    return 0;
}

static int narrow_decompose(wg_call *call) {
    const narrow_options *options = call->options;
    wg_tensor *x = call->inputs[0];
    const int64_t size = wg_tensor_size(x, options->axis);
    const int64_t start = options->start < 0 ? options->start + size : options->start;
    call->outputs[0] = wg_slice(x, options->axis, start, start + options->length, 1);
    return call->outputs[0] == NULL ? -1 : 0;
}

static int narrow_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const narrow_options options[] = {{1, 1, 2}, {0, -4, 2}, {-1, 3, 0}};
    static const int64_t shapes[][2] = {{2, 3}, {5, 2}, {2, 3}};
    if (index >= (int)(sizeof options / sizeof *options))
        return 0;
    sample->options = &options[index];
    sample->inputs[0] = wg__sample_normal(generator, 2, shapes[index]);
    return wg__sample_status(sample, 1);
}

static const wg_op narrow = {
    .name = "narrow",
    .doc = "y = `length` elements of one axis of x from `start` on, all of which must be there. A "
           "view.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(narrow_options),
    .differentiable = 1,
    .infer = narrow_infer,
    .decompose = narrow_decompose,
    .sample = narrow_sample,
};

wg_tensor *wg_narrow(wg_tensor *x, int axis, int64_t start, int64_t length) {
    return wg_apply_one(&narrow, 1, &x, &(narrow_options){axis, start, length});
}

/* ---- select: a slice of one, without its axis.   dx = unslice of g, given the axis back. ---- */

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

/* The slice that keeps the axis. */
static slice_options slice_of_one(const wg_call *call) {
    const select_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    const int axis = options->axis < 0 ? options->axis + x->ndim : options->axis;
    const int64_t size = x->shape[axis];
    const int64_t at = options->index < 0 ? options->index + size : options->index;
    return (slice_options){.axis = axis, .start = at, .step = 1, .count = 1, .size = size};
}

/* The elements of `whole`, which has x's shape, that are selected. */
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
    call->outputs[0] = select_view(call, call->inputs[0]);
    return call->outputs[0] == NULL ? -1 : 0;
}

/* As of slices, in place if nobody else can see the sum. */
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

static int select_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const select_options options[] = {{1, 2}, {0, -1}, {-1, 0}};
    static const int64_t shapes[][2] = {{2, 3}, {3, 2}, {2, 1}};
    if (index >= (int)(sizeof options / sizeof *options))
        return 0;
    sample->options = &options[index];
    sample->inputs[0] = wg__sample_normal(generator, 2, shapes[index]);
    return wg__sample_status(sample, 1);
}

static const wg_op select_op = {
    .name = "select",
    .doc = "y = x at one index of one axis, which goes away. A view.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(select_options),
    .differentiable = 1,
    .is_view = true,
    .accumulates = 1,
    .infer = select_infer,
    .forward = select_forward,
    .vjp = select_vjp,
    .jvp = wg_jvp_linear,
    .sample = select_sample,
};

wg_tensor *wg_select(wg_tensor *x, int axis, int64_t index) {
    return wg_apply_one(&select_op, 1, &x, &(select_options){axis, index});
}

/* ---- split, chunk: several slices. ---- */

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

static const wg_op *const ops[] = {&slice, &unslice, &narrow, &select_op};

const wg__op_family wg__family_slice = {ops, sizeof ops / sizeof *ops};
