/* Joining tensors (cat, stack, meshgrid), and rearranging or repeating elements (flip, roll, tile,
 * repeat_interleave). */
#include "tensor/ops/support.h"

#include <string.h>

/* ---- cat: y = the concatenation of the operands along an axis.
 * Each gradient is its slice of g. ---- */

static int cat_infer(wg_call *call) {
    const int axis = *(const int *)call->options;
    wg_spec *out = &call->output_specs[0];
    *out = call->input_specs[0];
    for (int i = 1; i < call->input_count; i++) {
        const wg_spec *x = &call->input_specs[i];
        if (wg__check_same_dtype(call, 0, i) < 0)
            return -1;
        for (int d = 0; d < out->ndim; d++)
            if (x->ndim != out->ndim || (d != axis && x->shape[d] != out->shape[d]))
                return wg__op_fail(
                    call, WG_ERROR_SHAPE,
                    "operand %d does not fit operand 0; all axes but axis %d must have equal sizes",
                    i, axis);
        out->shape[axis] += x->shape[axis];
    }
    return 0;
}

/* Contiguous operands. y is written in the order of memory: for each index of the axes before the
 * axis, a row of y is a piece of each operand. */
typedef struct pieces {
    int count;
    int64_t row;                  /* bytes of a row of y */
    int64_t sizes[WG_MAX_INPUTS]; /* bytes of a piece */
    const char *from[WG_MAX_INPUTS];
    char *to;
} pieces;

static void copy_pieces(int64_t begin, int64_t end, void *context) {
    const pieces *job = context;
    char *to = job->to + begin * job->row;
    for (int64_t place = begin; place < end; place++)
        for (int i = 0; i < job->count; to += job->sizes[i++])
            memcpy(to, job->from[i] + place * job->sizes[i], (size_t)job->sizes[i]);
}

/* Copies contiguous operands as pieces, unless the pieces are too short or the rows too long. Else
 * copies each operand by itself. */
static int cat_forward(wg_call *call) {
    enum { SHORTEST_PIECE = 64, LONGEST_ROW = 1 << 18 }; /* bytes */
    const int axis = *(const int *)call->options;
    const wg_tensor *y = call->outputs[0];
    pieces job = {.count = call->input_count, .to = wg__tensor_address(y)};
    int64_t places = 1, after = (int64_t)wg_dtype_size(y->spec.dtype), offset = 0;
    for (int i = 0; i < y->spec.ndim; i++)
        *(i < axis ? &places : &after) *= i == axis ? 1 : y->spec.shape[i];
    job.row = y->spec.shape[axis] * after;
    bool as_pieces = job.row >= SHORTEST_PIECE * job.count && job.row <= LONGEST_ROW;
    for (int i = 0; i < job.count; i++) {
        as_pieces &= wg_tensor_is_contiguous(call->inputs[i]);
        job.from[i] = wg__tensor_address(call->inputs[i]);
        job.sizes[i] = call->inputs[i]->spec.shape[axis] * after;
    }
    if (as_pieces)
        wg__parallel_for(places, 1 + 4 * WG__GRAIN / job.row, copy_pieces, &job);
    for (int i = 0; i < job.count && !as_pieces; i++) {
        const wg_tensor *x = call->inputs[i];
        wg_tensor *part = wg__tensor_view(y, &x->spec, y->strides, offset);
        if (part == NULL)
            return -1;
        wg__convert(part, x);
        offset += x->spec.shape[axis] * y->strides[axis];
    }
    return 0;
}

static int cat_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const int axis = *(const int *)call->options;
    int64_t start = 0;
    for (int i = 0; i < call->input_count; i++) {
        const int64_t stop = start + call->input_specs[i].shape[axis];
        if (wg__wants(call, i))
            gradients[i] = wg_slice(cotangents[0], axis, start, stop, 1);
        start = stop;
    }
    return wg__vjp_status();
}

WG__EXAMPLES(cat, int, (wg__sample_normal), {1, "2 3, 2 1, 2 2"}, {0, "1 2 2, 3 2 2"}, {0, "2"})
WG__LARGE(cat, int, "2048 1024, 2048 1024", 1)

static const wg_op cat = {
    WG__OP_OF("cat", 1, WG_MAX_INPUTS, 1,
              "y = the concatenation of the operands along an axis; all other sizes are equal."),
    .options_size = sizeof(int),
    .differentiable = 0xffffffff,
    WG__FUNCTIONS(cat),
    .jvp = wg_jvp_linear,
    .batch = wg__batch_axis};

/* Joins operands of the same dtype: first groups of WG_MAX_INPUTS, then the results. Overwrites the
 * array. */
static wg_tensor *join(int count, wg_tensor **tensors, int axis) {
    while (count > WG_MAX_INPUTS) {
        int groups = 0;
        for (int i = 0; i < count; i += WG_MAX_INPUTS) {
            const int members = count - i < WG_MAX_INPUTS ? count - i : WG_MAX_INPUTS;
            tensors[groups] = wg_apply_one(&cat, members, tensors + i, &axis);
            if (tensors[groups++] == NULL)
                return NULL;
        }
        count = groups;
    }
    return wg_apply_one(&cat, count, tensors, &axis);
}

wg_tensor *wg_cat(int count, wg_tensor *const *tensors, int axis) {
    if (count < 1)
        return wg__fail_null(WG_ERROR_SHAPE, "cat", "%d tensors; there is at least 1", count);
    wg_tensor *y = NULL, **all = wg__alloc_array(count, sizeof *all);
    wg_scope scope;
    wg_scope_begin(&scope);
    if (all) {
        memcpy(all, tensors, (size_t)count * sizeof *all);
        bool all_given = true;
        for (int i = 0; i < count; i++)
            all_given &= all[i] != NULL;
        const int along =
            all_given && wg__promote_all(count, all) ? wg__axis_of(all[0], axis, "cat") : -1;
        if (along >= 0)
            y = join(count, all, along);
    }
    wg__free(all);
    return wg_scope_end(&scope, y);
}

wg_tensor *wg_stack(int count, wg_tensor *const *tensors, int axis) {
    if (count < 1)
        return wg__fail_null(WG_ERROR_SHAPE, "stack", "%d tensors; there is at least 1", count);
    for (int i = 0; i < count; i++) {
        if (tensors[i] == NULL)
            return NULL;
        if (!wg__same_shape(&tensors[0]->spec, &tensors[i]->spec)) {
            char first[160], other[160];
            return wg__fail_null(WG_ERROR_SHAPE, "stack",
                                 "%s x %s: tensors 0 and %d differ in shape; stack "
                                 "takes one shape, cat others",
                                 wg_spec_text(first, sizeof first, &tensors[0]->spec),
                                 wg_spec_text(other, sizeof other, &tensors[i]->spec), i);
        }
    }
    if (tensors[0]->spec.ndim == WG_MAX_DIMS)
        return wg__fail_null(WG_ERROR_SHAPE, "stack", "a tensor of rank %d takes no further axis",
                             WG_MAX_DIMS);
    const int along = wg__axis(axis, tensors[0]->spec.ndim + 1, "stack");
    if (along < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor **all = wg__alloc_array(count, sizeof *all), *y = NULL;
    for (int i = 0; i < count && all; i++) /* an axis of size 1, along which they are joined */
        all[i] = wg_unsqueeze(tensors[i], along);
    if (all)
        y = wg_cat(count, all, along);
    wg__free(all);
    return wg_scope_end(&scope, y);
}

/* Output i has vector i along axis i, repeated along all other axes by strides of 0. */
int wg_meshgrid(int count, wg_tensor *const *vectors, wg_tensor **outputs) {
    if (count < 1 || count > WG_MAX_DIMS)
        return wg_fail(WG_ERROR_ARGUMENT, "meshgrid", "%d vectors; wanted 1 to %d", count,
                       WG_MAX_DIMS);
    for (int i = 0; i < count; i++)
        outputs[i] = NULL;
    for (int i = 0; i < count; i++) {
        char text[160];
        if (vectors[i] == NULL)
            return -1;
        if (vectors[i]->spec.ndim > 1)
            return wg_fail(WG_ERROR_SHAPE, "meshgrid", "%s: operand %d is no vector",
                           wg_spec_text(text, sizeof text, &vectors[i]->spec), i);
    }
    wg_scope scope;
    wg_scope_begin(&scope);
    int64_t shape[WG_MAX_DIMS];
    bool failed = false;
    for (int i = 0; i < count; i++)
        shape[i] = wg_tensor_count(vectors[i]);
    for (int i = 0; i < count && !failed; i++) {
        int64_t line[WG_MAX_DIMS];
        for (int j = 0; j < count; j++)
            line[j] = j == i ? shape[i] : 1;
        outputs[i] = wg_expand(wg_reshape(vectors[i], count, line), count, shape);
        failed = !outputs[i];
    }
    for (int i = 0; i < count; i++)
        outputs[i] = failed ? NULL : wg_scope_escape(outputs[i]);
    wg_scope_end(&scope, NULL);
    return failed ? -1 : 0;
}

/* ==== Reversing, rolling and repeating ==== */

/* A list of axes; an empty list means all axes. */
typedef struct axes_options {
    int count;
    int64_t axes[WG_MAX_DIMS];
} axes_options;

static bool axes_options_make(axes_options *options, int count, const int64_t *axes,
                              const char *where) {
    *options = (axes_options){.count = count};
    if (count < 0 || count > WG_MAX_DIMS) {
        wg_fail(WG_ERROR_ARGUMENT, where, "%d axes; there are at most %d", count, WG_MAX_DIMS);
        return false;
    }
    if (count > 0)
        memcpy(options->axes, axes, (size_t)count * sizeof *axes);
    return true;
}

static int flip_decompose(wg_call *call) {
    const axes_options *options = call->options;
    const int ndim = call->input_specs[0].ndim, count = options->count ? options->count : ndim;
    wg_tensor *y = wg_alias(call->inputs[0]);
    if (wg__axis_mask(options->count, options->axes, ndim, call->op->name) < 0)
        return -1;
    for (int i = 0; i < count; i++)
        y = wg_slice(y, options->count ? (int)options->axes[i] : i, WG_END, WG_END, -1);
    return wg__set_output(call, y);
}

WG__UNARY_SAMPLES(flip, axes_options, {0, {0}}, {0, {0}}, {1, {-1}}, {2, {0, 2}})

static const wg_op flip = {WG__COMPOSITE_OP(
    flip, axes_options, "y = x with the elements of some axes, or of all, in reverse; a view.")};

wg_tensor *wg_flip(wg_tensor *x, int axis_count, const int64_t *axes) {
    axes_options options;
    if (!axes_options_make(&options, axis_count, axes, flip.name))
        return NULL;
    return wg_apply_one(&flip, 1, &x, &options);
}

/* ---- roll: y[i + shift] = x[i], modulo the size of each axis.   dx = g rolled back. ---- */

typedef struct roll_options {
    int64_t shifts[WG_MAX_DIMS]; /* for each axis */
} roll_options;

/* Copies x, which is not empty, into y. An axis with a shift is copied in two parts. */
static void copy_rolled(wg_tensor *y, const wg_tensor *x, const int64_t *shifts, int axis) {
    if (axis == x->spec.ndim) {
        wg__convert(y, x);
        return;
    }
    const int64_t size = x->spec.shape[axis], rest = shifts[axis] % size;
    const int64_t shift = rest < 0 ? rest + size : rest;
    wg_tensor from = wg__part_of(x, axis, 0, size - shift);
    wg_tensor to = wg__part_of(y, axis, shift, size - shift);
    copy_rolled(&to, &from, shifts, axis + 1);
    if (shift > 0) {
        from = wg__part_of(x, axis, size - shift, shift);
        to = wg__part_of(y, axis, 0, shift);
        copy_rolled(&to, &from, shifts, axis + 1);
    }
}

static int roll_forward(wg_call *call) {
    const roll_options *options = call->options;
    if (wg_tensor_count(call->inputs[0]) > 0)
        copy_rolled(call->outputs[0], call->inputs[0], options->shifts, 0);
    return 0;
}

static int roll_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    roll_options back = *(const roll_options *)call->options;
    for (int i = 0; i < WG_MAX_DIMS; i++)
        back.shifts[i] = -back.shifts[i];
    gradients[0] = wg_apply_one(call->op, 1, cotangents, &back);
    return wg__vjp_status();
}

WG__UNARY_SAMPLES(roll, roll_options, {{1, -1}}, {{0}}, {{1}}, {{-5, 0, 2, 1}})
WG__LARGE(roll, roll_options, "2048 2048", {700, 700})

static int roll_batch(wg_call *call, uint32_t batched, int64_t samples) {
    (void)samples, (void)batched;
    const roll_options *one = call->options;
    roll_options all = {{0}};
    memcpy(all.shifts + 1, one->shifts, sizeof one->shifts - sizeof *one->shifts);
    return wg_apply(call->op, 1, call->inputs, &all, call->outputs);
}

static const wg_op roll = {
    WG__OP("roll", 1, "y = x with the elements of some axes moved on by a shift, around the end."),
    .options_size = sizeof(roll_options),
    .differentiable = 1,
    .infer = wg__infer_like,
    .forward = roll_forward,
    .vjp = roll_vjp,
    .jvp = wg_jvp_linear,
    .sample = roll_sample,
    .bench = roll_bench,
    .batch = roll_batch};

wg_tensor *wg_roll(wg_tensor *x, int count, const int64_t *shifts, const int64_t *axes) {
    roll_options options = {{0}};
    if (x == NULL)
        return NULL;
    if (axes == NULL && count == 1) { /* in row-major order */
        const int64_t size = wg_tensor_count(x);
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *y = wg_reshape(x, 1, &size);
        options.shifts[0] = size > 0 ? shifts[0] % size : 0;
        y = wg_apply_one(&roll, 1, &y, &options);
        return wg_scope_end(&scope, wg_reshape(y, x->spec.ndim, x->spec.shape));
    }
    if (axes == NULL)
        return wg__fail_null(WG_ERROR_ARGUMENT, "roll",
                             "%d shifts without axes; the flat elements take 1", count);
    for (int i = 0; i < count; i++) {
        const int axis = wg__axis(axes[i], x->spec.ndim, "roll");
        if (axis < 0)
            return NULL;
        const int64_t size = x->spec.shape[axis];
        if (size > 0)
            options.shifts[axis] = (options.shifts[axis] + shifts[i] % size) % size;
    }
    return wg_apply_one(&roll, 1, &x, &options);
}

/* ---- tile, repeat_interleave: axes repeated by views of stride 0, then copied. ---- */

/* x with one axis `repeats` times as long: the whole axis repeated, or with `each` every element.
 * Expands x as (before, repeats, after). */
static wg_tensor *repeat_axis(wg_tensor *x, int axis, int64_t repeats, bool each) {
    if (x == NULL || repeats == 1)
        return x;
    wg_spec to = x->spec;
    int64_t before = 1, after = 1;
    for (int i = 0; i < x->spec.ndim; i++)
        *(i < axis || (i == axis && each) ? &before : &after) *= x->spec.shape[i];
    to.shape[axis] *= repeats;
    wg_tensor *y = wg_reshape(x, 3, (int64_t[]){before, 1, after});
    y = wg_expand(y, 3, (int64_t[]){before, repeats, after});
    return wg_reshape(y, to.ndim, to.shape);
}

static int check_repeats(const wg_call *call, int64_t repeats, int64_t size) {
    if (repeats < 0)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "%lld repeats; there are at least 0",
                           (long long)repeats);
    if (size > 0 && repeats > INT64_MAX / size)
        return wg__op_fail(call, WG_ERROR_SHAPE, "size %lld times %lld is beyond all memory",
                           (long long)size, (long long)repeats);
    return 0;
}

static int tile_decompose(wg_call *call) {
    const axes_options *repeats = call->options;
    const wg_spec *x = &call->input_specs[0];
    const int ndim = x->ndim > repeats->count ? x->ndim : repeats->count;
    const int first = ndim - repeats->count; /* of the axes with repeats */
    int64_t shape[WG_MAX_DIMS];
    for (int i = 0; i < ndim; i++) {
        shape[i] = i < ndim - x->ndim ? 1 : x->shape[i - (ndim - x->ndim)];
        if (i >= first && check_repeats(call, repeats->axes[i - first], shape[i]) < 0)
            return -1;
    }
    wg_tensor *y = wg_reshape(call->inputs[0], ndim, shape);
    for (int i = first; i < ndim; i++)
        y = repeat_axis(y, i, repeats->axes[i - first], false);
    return wg__set_output(call, y);
}

WG__UNARY_SAMPLES(tile, axes_options, {2, {2, 3}}, {2, {2, 2}}, {3, {1, 2, 3}}, {2, {3, 2}})

static const wg_op tile = {WG__COMPOSITE_OP(tile, axes_options,
                                            "y = x repeated along each axis; the repeats belong to "
                                            "the last axes, and extra repeats add leading axes.")};

wg_tensor *wg_tile(wg_tensor *x, int count, const int64_t *repeats) {
    axes_options options;
    if (x == NULL || !axes_options_make(&options, count, repeats, tile.name))
        return NULL;
    return wg_apply_one(&tile, 1, &x, &options);
}

typedef struct repeat_options {
    int64_t repeats;
    int axis;
} repeat_options;

static int repeat_interleave_decompose(wg_call *call) {
    const repeat_options *options = call->options;
    const int axis = wg__axis(options->axis, call->input_specs[0].ndim, call->op->name);
    if (axis < 0 || check_repeats(call, options->repeats, call->input_specs[0].shape[axis]) < 0)
        return -1;
    return wg__set_output(call,
                          repeat_axis(wg_alias(call->inputs[0]), axis, options->repeats, true));
}

WG__EXAMPLES(repeat_interleave, repeat_options, (wg__sample_normal), {{3, 1}, "2 3"},
             {{2, 0}, "3 2"}, {{2, -2}, "1 2"})

static const wg_op repeat_interleave = {WG__COMPOSITE_OP(
    repeat_interleave, repeat_options, "y = x with each element along an axis repeated in a row.")};

wg_tensor *wg_repeat_interleave(wg_tensor *x, int64_t repeats, int axis) {
    return wg_apply_one(&repeat_interleave, 1, &x, &(repeat_options){repeats, axis});
}

const wg__op_table wg__ops_arrange = WG__OP_TABLE(&cat, &flip, &roll, &tile, &repeat_interleave);
