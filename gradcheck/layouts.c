/* Layouts of memory: an op must give the same results for a view and for its contiguous copy.
 *
 *     expanded      the first slice, repeated by a stride of 0
 *     flipped       a negative stride
 *     stepped       every second slice of a larger tensor
 *     padded        neighbouring slices of a larger tensor
 *     transposed    two axes exchanged in memory
 *     offset        contiguous, from the fourth element of the storage
 *
 * Each input and each cotangent is tried in each layout along each axis. Then pairs of layouts are
 * tried, of the same tensor and of two tensors. Memory between the elements holds NaN. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gradcheck/check.h"
#include "tensor/ops.h"

typedef enum kind { OFFSET, TRANSPOSED, STEPPED, PADDED, FLIPPED, EXPANDED } kind;

typedef struct layout {
    kind kind;
    int axis;  /* ALL_AXES is for EXPANDED */
    int other; /* TRANSPOSED: the second axis */
} layout;

enum { ALL_AXES = -1, MAX_LAYOUTS = 2 + 4 * WG_MAX_DIMS + WG_MAX_DIMS * (WG_MAX_DIMS - 1) / 2 };

/* A tensor of NaN with x at begin, begin + step, ... of the axis. */
static wg_tensor *embed(wg_tensor *x, int axis, int64_t size, int64_t begin, int64_t step) {
    if (!x)
        return NULL;
    int64_t shape[WG_MAX_DIMS];
    memcpy(shape, wg_tensor_shape(x), sizeof shape);
    const int64_t end = begin + step * (shape[axis] - 1) + 1;
    shape[axis] = size;
    wg_tensor *larger = wg_full(wg_tensor_dtype(x), wg_tensor_ndim(x), shape, NAN);
    wg_copy_(wg_slice(larger, axis, begin, end, step), x);
    return larger;
}

/* Returns a view with the elements of x in all the layouts, applied in order. EXPANDED repeats
 * the first slice of x. */
static wg_tensor *view_of(wg_tensor *x, int count, const layout *layouts) {
    if (!x || count == 0)
        return wg_clone(x);
    const layout *l = &layouts[count - 1];
    const int ndim = wg_tensor_ndim(x);
    const int64_t size = ndim > 0 && l->axis >= 0 ? wg_tensor_size(x, l->axis) : 1;
    const int64_t line = wg_tensor_count(x);
    wg_tensor *base;
    switch (l->kind) {
    case OFFSET: /* the first in every list, so no layout is below it */
        base = embed(wg_reshape(x, 1, &line), 0, line + 3, 3, 1);
        return wg_reshape(wg_slice(base, 0, 3, WG_END, 1), ndim, wg_tensor_shape(x));
    case TRANSPOSED:
        base = view_of(wg_transpose(x, l->axis, l->other), count - 1, layouts);
        return wg_transpose(base, l->axis, l->other);
    case STEPPED:
        base = view_of(embed(x, l->axis, 2 * size + 1, 1, 2), count - 1, layouts);
        return wg_slice(base, l->axis, 1, WG_END, 2);
    case PADDED:
        base = view_of(embed(x, l->axis, size + 3, 1, 1), count - 1, layouts);
        return wg_slice(base, l->axis, 1, size + 1, 1);
    case FLIPPED:
        base = view_of(wg_slice(x, l->axis, WG_END, WG_END, -1), count - 1, layouts);
        return wg_slice(base, l->axis, WG_END, WG_END, -1);
    default:
        base = view_of(x, count - 1, layouts);
        for (int d = 0; base && d < ndim; d++)
            if (l->axis == ALL_AXES || l->axis == d)
                base = wg_slice(base, d, 0, 1, 1);
        return wg_expand(base, ndim, wg_tensor_shape(x));
    }
}

wg_tensor *wg__layout_strided(wg_tensor *x) {
    const int ndim = wg_tensor_ndim(x);
    const layout layout = {ndim > 1 ? TRANSPOSED : STEPPED, 0, ndim - 1};
    return ndim > 0 ? view_of(x, 1, &layout) : x;
}

/* A tensor in a layout. Targets are the inputs and, after them, the cotangents. */
typedef struct place {
    int target;
    layout layout;
} place;

typedef struct sweep {
    wg__gradcheck *c;
    wg_tensor **views;              /* of each target, for the case at hand */
    wg_tensor **wanted;             /* the views of the wanted inputs */
    layout (*layouts)[MAX_LAYOUTS]; /* of each target */
    int *layout_count;
    int target_count; /* without cotangents if no gradient is wanted */
    wg__results viewed, copied;
} sweep;

static wg_tensor *target_of(const wg__gradcheck *c, int target) {
    if (target >= c->input_count)
        return c->weighted.tensors[target - c->input_count];
    return c->inputs[target] ? wg_detach(c->inputs[target]) : NULL;
}

/* Writes "input 0 expanded along axis 1, cotangent 0 flipped along axis 0"; after "f32: " in f32.
 */
static void name_case(const wg__gradcheck *c, int count, const place *places) {
    static const char *const kinds[] = {"offset", "transposed", "stepped",
                                        "padded", "flipped",    "expanded"};
    char *name = c->report->variant;
    const size_t size = sizeof c->report->variant;
    int used = snprintf(name, size, "%s", c->dtype == WG_F32 && !c->options.f32 ? "f32: " : "");
    for (int i = 0; i < count && used < (int)size; i++) {
        const layout *l = &places[i].layout;
        const int cotangent = places[i].target - c->input_count;
        used += snprintf(name + used, size - (size_t)used, "%s%s %d %s", i ? ", " : "",
                         cotangent < 0 ? "input" : "cotangent",
                         cotangent < 0 ? places[i].target : cotangent, kinds[l->kind]);
        if (used >= (int)size || l->kind == OFFSET)
            continue;
        if (l->axis == ALL_AXES)
            used += snprintf(name + used, size - (size_t)used, " along all axes");
        else if (l->kind == TRANSPOSED)
            used += snprintf(name + used, size - (size_t)used, " along axes %d and %d", l->axis,
                             l->other);
        else
            used += snprintf(name + used, size - (size_t)used, " along axis %d", l->axis);
    }
}

/* Runs the op and its backward on the views. */
static int run_views(sweep *s, const wg__results *r) {
    wg__gradcheck again = *s->c;
    again.inputs = s->views;
    again.wanted.tensors = s->wanted;
    for (int w = 0; w < again.wanted.count; w++) {
        s->wanted[w] = s->views[again.wanted.index[w]];
        wg_set_requires_grad(s->wanted[w], true);
    }
    again.weighted.tensors = s->views + again.input_count;
    return wg__gradcheck_evaluate(&again, r->values, again.wanted.count ? r->gradients : NULL);
}

/* Makes the views of a case, or with `copied` contiguous copies of the views. */
static int make_views(sweep *s, int count, const place *places, bool copied) {
    for (int t = 0; t < s->target_count; t++) {
        layout layouts[2];
        int used = 0;
        for (int i = 0; i < count; i++)
            if (places[i].target == t)
                layouts[used++] = places[i].layout;
        wg_tensor *x = target_of(s->c, t);
        if (used > 0)
            x = view_of(x, used, layouts);
        s->views[t] = used > 0 && copied ? wg_clone(x) : x;
    }
    return wg_error_pending() ? wg__gradcheck_no_memory(s->c) : 0;
}

/* Compares a case with the sample. An expanded tensor has other values than the sample, so it is
 * compared with a run on a contiguous copy. If the op refuses the values of the copy, nothing is
 * compared. */
static int check_case(sweep *s, int count, const place *places) {
    wg__gradcheck *c = s->c;
    const wg_gradcheck_report before = *c->report;
    const double *values = c->values, *gradients = c->sums.analytic;
    bool expanded = false;
    for (int i = 0; i < count; i++)
        expanded |= places[i].layout.kind == EXPANDED;
    name_case(c, count, places);
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = 0;
    if (expanded) {
        status = make_views(s, count, places, true);
        if (status == 0 && run_views(s, &s->copied) < 0) {
            *c->report = before;
            c->report->refused++;
            wg_scope_end(&scope, NULL);
            return 0;
        }
        values = s->copied.values;
        gradients = s->copied.gradients;
    }
    c->report->variants++;
    if (status == 0 && (make_views(s, count, places, false) < 0 || run_views(s, &s->viewed) < 0))
        status = -1;
    const wg__results *r = &s->viewed;
    int64_t at = status < 0 ? -1 : wg__gradcheck_unlike(c, c->all_count, r->values, values, 1);
    if (at >= 0)
        status = wg__gradcheck_fail(c, WG_DIAGNOSIS_LAYOUT, -1,
                                    "the function gives %.9g where a contiguous copy gives %.9g",
                                    r->values[at], values[at]);
    at = status == 0 && c->wanted.count
             ? wg__gradcheck_unlike(c, c->wanted.elements, r->gradients, gradients, 1)
             : -1;
    if (at >= 0)
        status = wg__gradcheck_fail_at(c, WG_DIAGNOSIS_LAYOUT, at, "",
                                       " is %.9g where contiguous copies give %.9g",
                                       r->gradients[at], gradients[at]);
    wg_scope_end(&scope, NULL);
    return status;
}

/* Checks every pair whose number is a multiple of `step` (INT64_MAX: none). *total: the number of
 * pairs. */
static int check_pairs(sweep *s, int64_t step, int64_t *total) {
    const int targets = s->target_count;
    int status = 0;
    *total = 0;
    for (int t = 0; t < targets; t++)
        for (int i = 0; i < s->layout_count[t]; i++)
            for (int u = t; u < targets; u++)
                for (int j = u == t ? i + 1 : 0; j < s->layout_count[u] && status == 0; j++)
                    if ((*total)++ % step == 0 && step < INT64_MAX)
                        status = check_case(
                            s, 2, (place[]){{t, s->layouts[t][i]}, {u, s->layouts[u][j]}});
    return status;
}

static int sweep_all(sweep *s) {
    enum { MOST_PAIRS = 2000 }; /* of a sample */
    wg__gradcheck *c = s->c;
    int64_t total;
    /* List the layouts that each target can have. The first layouts catch a kernel that ignores
     * strides before it can read beyond the storage. */
    for (int t = 0; t < s->target_count; t++) {
        const wg_tensor *x = target_of(c, t);
        const int64_t *shape = wg_tensor_shape(x);
        const int ndim = wg_tensor_ndim(x);
        layout *next = s->layouts[t];
        if (x)
            *next++ = (layout){OFFSET, 0, 0};
        for (int axis = 0; axis < ndim; axis++)
            for (int other = axis + 1; other < ndim; other++)
                if (shape[axis] > 1 && shape[other] > 1)
                    *next++ = (layout){TRANSPOSED, axis, other};
        for (kind kind = STEPPED; kind <= EXPANDED; kind++)
            for (int axis = 0; axis < ndim; axis++)
                if (shape[axis] > 1 || kind < FLIPPED)
                    *next++ = (layout){kind, axis, 0};
        if (ndim > 1 && wg_tensor_count(x) > 1)
            *next++ = (layout){EXPANDED, ALL_AXES, 0};
        s->layout_count[t] = (int)(next - s->layouts[t]);
    }

    int status = 0;
    for (int t = 0; t < s->target_count; t++)
        for (int i = 0; i < s->layout_count[t] && status == 0; i++)
            status = check_case(s, 1, &(place){t, s->layouts[t][i]});
    if (status < 0 || c->derived)
        return status;
    const int threads = wg_threads();
    wg_set_threads(1); /* waking threads would take most of the time */
    check_pairs(s, INT64_MAX, &total);
    status = check_pairs(s, 1 + total / MOST_PAIRS, &total);
    wg_set_threads(threads);
    return status;
}

int wg__gradcheck_layouts(wg__gradcheck *c) {
    sweep s = {.c = c,
               .target_count = c->input_count + (c->wanted.count > 0 ? c->weighted.count : 0)};
    const size_t targets = (size_t)s.target_count, all = (size_t)c->all_count;
    const size_t coordinates = (size_t)c->wanted.elements;
    char name[sizeof c->report->variant];
    memcpy(name, c->report->variant, sizeof name);
    s.views = wg__calloc(targets + (size_t)c->wanted.count + 1, sizeof(wg_tensor *));
    s.layouts = wg__calloc(targets + 1, sizeof *s.layouts);
    s.layout_count = wg__calloc(targets + 1, sizeof *s.layout_count);
    double *numbers = wg__alloc_array(wg__times(2, all + coordinates) + 1, sizeof *numbers);
    int status = -1;
    if (s.views && s.layouts && s.layout_count && numbers) {
        s.wanted = s.views + targets;
        s.viewed = (wg__results){numbers, numbers + all};
        s.copied = (wg__results){numbers + all + coordinates, numbers + 2 * all + coordinates};
        status = sweep_all(&s);
    } else {
        wg__gradcheck_no_memory(c);
    }
    wg__free(s.views);
    wg__free(s.layouts);
    wg__free(s.layout_count);
    wg__free(numbers);
    if (status == 0)
        memcpy(c->report->variant, name, sizeof name);
    return status;
}

int wg__gradcheck_layouts_in_f32(wg__gradcheck *c) {
    if (c->dtype != WG_F64)
        return 0;
    wg_tensor **inputs = wg__calloc((size_t)c->input_count + 1, sizeof *inputs);
    if (!inputs)
        return wg__gradcheck_no_memory(c);
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int i = 0; i < c->input_count; i++) {
        wg_tensor *x = c->inputs[i];
        inputs[i] = x && wg_tensor_dtype(x) == WG_F64 ? wg_cast(wg_detach(x), WG_F32) : x;
        if (x != inputs[i] && wg_requires_grad(x)) {
            inputs[i] = wg_detach(inputs[i]);
            wg_set_requires_grad(inputs[i], true);
        }
    }
    wg__gradcheck narrow = {.function = c->function,
                            .context = c->context,
                            .op = c->op,
                            .user_count = c->user_count,
                            .input_count = c->input_count,
                            .inputs = inputs,
                            .output_count = c->output_count,
                            .order = 1,
                            .derived = c->derived,
                            .dtype = WG_F32,
                            .options = c->options,
                            .report = c->report};
    wg_tensor *outputs[WG_MAX_OUTPUTS];
    const wg__sampled_op *sampled = c->context;
    int status = 0;
    if (wg_error_pending())
        status = wg__gradcheck_no_memory(c);
    else if (wg_apply(c->op, c->input_count, inputs, sampled->options, outputs) < 0)
        wg_error_clear(); /* the op does not take f32 */
    else {
        status = wg__gradcheck_prepare(&narrow);
        if (status == 0 && narrow.wanted.count > 0)
            status = wg__gradcheck_evaluate(&narrow, NULL, narrow.sums.analytic);
        if (status == 0)
            status = wg__gradcheck_layouts(&narrow);
    }
    wg__gradcheck_free(&narrow);
    wg_scope_end(&scope, NULL);
    wg__free(inputs);
    return status;
}
