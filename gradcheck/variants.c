/* What is derived from a sample: the same values in other layouts of memory, and other shapes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gradcheck/check.h"
#include "tensor/ops.h"

/* ---- Layouts: views with the elements of x. Gaps hold NaN. NULL: x has no such layout. ---- */

/* Columns first: the first and the last axis exchanged in memory. */
static wg_tensor *transposed(wg_tensor *x) {
    int ndim = wg_tensor_ndim(x);
    return ndim < 2 ? NULL : wg_transpose(wg_clone(wg_transpose(x, 0, ndim - 1)), 0, ndim - 1);
}

/* Every second element of a larger tensor, beginning behind its first. */
static wg_tensor *stepped(wg_tensor *x) {
    int ndim = wg_tensor_ndim(x);
    int64_t shape[WG_MAX_DIMS];
    if (ndim == 0)
        return NULL;
    memcpy(shape, wg_tensor_shape(x), (size_t)ndim * sizeof(int64_t));
    shape[ndim - 1] = 2 * shape[ndim - 1] + 1;
    wg_tensor *place = wg_slice(wg_full(wg_tensor_dtype(x), ndim, shape, NAN), -1, 1, WG_END, 2);
    wg_copy_(place, x);
    return place;
}

/* A view that walks memory backwards on its last axis. */
static wg_tensor *reversed(wg_tensor *x) {
    if (wg_tensor_ndim(x) == 0)
        return NULL;
    wg_tensor *copy = wg_clone(wg_slice(x, -1, WG_END, WG_END, -1));
    return wg_slice(copy, -1, WG_END, WG_END, -1);
}

/* Contiguous, but not from the beginning of the storage. */
static wg_tensor *offset(wg_tensor *x) {
    int64_t count = wg_tensor_count(x), padded = count + 3;
    wg_tensor *line = wg_full(wg_tensor_dtype(x), 1, &padded, NAN);
    wg_tensor *place = wg_slice(line, 0, 3, WG_END, 1);
    place = wg_reshape(place, wg_tensor_ndim(x), wg_tensor_shape(x));
    wg_copy_(place, x);
    return place;
}

static const struct {
    const char *name;
    wg_tensor *(*view)(wg_tensor *x);
} layouts[] = {
    {"transposed", transposed}, {"stepped", stepped}, {"reversed", reversed}, {"offset", offset}};

enum { LAYOUTS = sizeof layouts / sizeof *layouts };

wg_tensor *wg__layout_strided(wg_tensor *x) {
    wg_tensor *view = transposed(x);
    if (!view)
        view = stepped(x);
    return view ? view : x;
}

/* ---- The same check on other handles ---- */

/* What a run on other handles gives. */
typedef struct results {
    double *values, *gradients;
} results;

static results results_new(const wg__gradcheck *c) {
    results r = {wg__alloc((size_t)c->all_count * sizeof(double) + 1),
                 wg__alloc((size_t)c->coordinate_count * sizeof(double) + 1)};
    return r;
}

static void results_free(results *r) {
    wg__free(r->values);
    wg__free(r->gradients);
}

/* Runs on these handles instead of c's own; wanted ones become leaves. */
static int run_with(wg__gradcheck *c, wg_tensor **inputs, wg_tensor *const *weights, results *r) {
    wg_tensor **wanted = wg__calloc((size_t)c->wanted_count + 1, sizeof *wanted);
    if (!wanted || !r->values || !r->gradients) {
        wg__free(wanted);
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the check itself");
    }
    for (int w = 0; w < c->wanted_count; w++) {
        wanted[w] = inputs[c->wanted[w]];
        wg_set_requires_grad(wanted[w], true);
    }
    wg__gradcheck again = *c;
    again.inputs = inputs;
    again.wanted_inputs = wanted;
    int status = wg__gradcheck_evaluate(&again, r->values);
    if (status == 0 && c->wanted_count > 0)
        status =
            wg__gradcheck_gradient(&again, &(wg__pull_options){.weights = weights}, r->gradients);
    wg__free(wanted);
    return status;
}

static int compare_results(wg__gradcheck *c, const results *r, const double *values,
                           const double *gradients) {
    int64_t at = wg__gradcheck_unlike(c, c->all_count, r->values, values, 1);
    if (at >= 0)
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_LAYOUT, -1,
                                  "the function gives %.9g where a contiguous copy gives %.9g",
                                  r->values[at], values[at]);
    at = c->wanted_count ? wg__gradcheck_unlike(c, c->coordinate_count, r->gradients, gradients, 1)
                         : -1;
    if (at < 0)
        return 0;
    int w = wg__gradcheck_input_of(c, at);
    const wg_tensor *x = c->wanted_inputs[w];
    char index[128];
    c->report->ndim = wg_tensor_ndim(x);
    wg__unravel(at - c->wanted_at[w], c->report->ndim, wg_tensor_shape(x), c->report->coordinate);
    return wg__gradcheck_fail(
        c, WG_DIAGNOSIS_LAYOUT, c->wanted[w],
        "the gradient of input %d at %s is %.9g where contiguous copies give %.9g", c->wanted[w],
        wg__index_text(index, sizeof index, c->report->ndim, c->report->coordinate),
        r->gradients[at], gradients[at]);
}

/* All inputs in one layout. */
static int inputs_in_layout(wg__gradcheck *c, int l, wg_tensor **inputs, results *r) {
    bool any = false;
    for (int i = 0; i < c->input_count; i++) {
        wg_tensor *x = c->inputs[i] ? wg_detach(c->inputs[i]) : NULL;
        wg_tensor *view = x ? layouts[l].view(x) : NULL;
        any |= view != NULL;
        inputs[i] = view ? view : x;
    }
    if (!any || wg_error_pending())
        return wg_error_pending()
                   ? wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the check itself")
                   : 0;
    snprintf(c->report->variant, sizeof c->report->variant, "inputs %s", layouts[l].name);
    c->report->variants++;
    int status = run_with(c, inputs, NULL, r);
    return status < 0 ? -1 : compare_results(c, r, c->values, c->analytic);
}

static int cotangents_in_layout(wg__gradcheck *c, int l, wg_tensor **weights, results *r) {
    bool any = false;
    for (int k = 0; k < c->weighted_count; k++) {
        wg_tensor *view = layouts[l].view(c->weights[k]);
        any |= view != NULL;
        weights[k] = view ? view : c->weights[k];
    }
    if (!any || c->wanted_count == 0 || wg_error_pending())
        return wg_error_pending()
                   ? wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the check itself")
                   : 0;
    snprintf(c->report->variant, sizeof c->report->variant, "cotangents %s", layouts[l].name);
    c->report->variants++;
    if (wg__gradcheck_gradient(c, &(wg__pull_options){.weights = weights}, r->gradients) < 0)
        return -1;
    memcpy(r->values, c->values, (size_t)c->all_count * sizeof(double));
    return compare_results(c, r, c->values, c->analytic);
}

/* One axis of one input is the first of its slices, over and over: a stride of 0. What it gives is
 * compared with what a copy of it gives, if there is such a thing. */
static int input_expanded(wg__gradcheck *c, int input, int axis, wg_tensor **inputs, results *r) {
    wg_tensor *x = wg_detach(c->inputs[input]);
    for (int i = 0; i < c->input_count; i++)
        inputs[i] = i == input ? NULL : c->inputs[i] ? wg_detach(c->inputs[i]) : NULL;
    wg_tensor *view = wg_expand(wg_slice(x, axis, 0, 1, 1), wg_tensor_ndim(x), wg_tensor_shape(x));
    snprintf(c->report->variant, sizeof c->report->variant, "input %d expanded along axis %d",
             input, axis);
    wg_gradcheck_report saved = *c->report;
    results copied = results_new(c);
    inputs[input] = wg_clone(view);
    int status = run_with(c, inputs, NULL, &copied);
    if (status < 0) { /* those values are not for this op */
        *c->report = saved;
        c->report->refused++;
        results_free(&copied);
        return 0;
    }
    c->report->variants++;
    inputs[input] = view;
    status = run_with(c, inputs, NULL, r);
    if (status == 0)
        status = compare_results(c, r, copied.values, copied.gradients);
    results_free(&copied);
    return status;
}

static int inputs_expanded(wg__gradcheck *c, wg_tensor **inputs, results *r) {
    int status = 0;
    for (int i = 0; i < c->input_count && status == 0; i++) {
        int ndim = wg_tensor_ndim(c->inputs[i]);
        for (int d = 0; d < ndim && status == 0; d += ndim > 1 ? ndim - 1 : 1)
            if (wg_tensor_shape(c->inputs[i])[d] > 1)
                status = input_expanded(c, i, d, inputs, r);
    }
    return status;
}

/* One input alone wants a gradient, so that the op knows it already when it runs forward. */
static int one_leaf(wg__gradcheck *c, int w, wg_tensor **inputs, results *r) {
    for (int i = 0; i < c->input_count; i++)
        inputs[i] = c->inputs[i] ? wg_detach(c->inputs[i]) : NULL;
    wg_tensor *x = inputs[c->wanted[w]];
    wg_set_requires_grad(x, true);
    wg__gradcheck again = *c;
    again.inputs = inputs;
    again.wanted = &c->wanted[w];
    again.wanted_inputs = &x;
    again.wanted_count = 1;
    if (wg__gradcheck_gradient(&again, &(wg__pull_options){0}, r->gradients) < 0)
        return -1;
    const double *expected = c->analytic + c->wanted_at[w];
    int64_t at = wg__gradcheck_unlike(c, wg_tensor_count(x), r->gradients, expected, 1);
    return at < 0 ? 0
                  : wg__gradcheck_fail(
                        c, WG_DIAGNOSIS_WANTS_IGNORED, c->wanted[w],
                        "where input %d alone requires a gradient, it gets %.9g instead "
                        "of %.9g",
                        c->wanted[w], r->gradients[at], expected[at]);
}

int wg__gradcheck_layouts(wg__gradcheck *c) {
    size_t count = (size_t)c->input_count + (size_t)c->weighted_count;
    wg_tensor **handles = wg__calloc(count + 1, sizeof *handles);
    results r = results_new(c);
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = handles && r.values && r.gradients ? 0 : -1;
    for (int l = 0; l < LAYOUTS && status == 0; l++) {
        status = inputs_in_layout(c, l, handles, &r);
        if (status == 0)
            status = cotangents_in_layout(c, l, handles, &r);
    }
    if (status == 0)
        status = inputs_expanded(c, handles, &r);
    if (status == 0)
        c->report->variant[0] = '\0';
    for (int w = 0; w < c->wanted_count && c->wanted_count > 1 && status == 0; w++)
        status = one_leaf(c, w, handles, &r);
    wg_scope_end(&scope, NULL);
    results_free(&r);
    wg__free(handles);
    return status;
}

/* ---- Shapes ---- */

static wg_tensor *first_of_axis(wg_tensor *x, int axis, int64_t size) {
    return wg_tensor_ndim(x) == 0 || wg_tensor_size(x, axis) <= size
               ? NULL
               : wg_slice(x, axis, 0, size, 1);
}

static wg_tensor *rank_0(wg_tensor *x) {
    if (wg_tensor_ndim(x) == 0 || wg_tensor_count(x) == 0)
        return NULL;
    while (wg_tensor_ndim(x) > 0)
        x = wg_select(x, 0, 0);
    return x;
}

static wg_tensor *one_row(wg_tensor *x) {
    return first_of_axis(x, 0, 1);
}

static wg_tensor *one_column(wg_tensor *x) {
    return wg_tensor_ndim(x) < 2 ? NULL : first_of_axis(x, -1, 1);
}

static wg_tensor *no_rows(wg_tensor *x) {
    return first_of_axis(x, 0, 0);
}

static wg_tensor *no_columns(wg_tensor *x) {
    return wg_tensor_ndim(x) < 2 ? NULL : first_of_axis(x, -1, 0);
}

static wg_tensor *without_first_axis(wg_tensor *x) {
    return wg_tensor_ndim(x) < 2 || wg_tensor_size(x, 0) < 1 ? NULL : wg_select(x, 0, 0);
}

/* Those of one input alone make it broadcast against the others, where the op knows that. Options
 * may name axes, and are right for their own rank only. */
static const struct {
    const char *name;
    wg_tensor *(*cut)(wg_tensor *x);
    bool changes_rank, alone_only;
} shapes[] = {{"rank 0", rank_0, true, false},
              {"axis 0 of size 1", one_row, false, false},
              {"last axis of size 1", one_column, false, false},
              {"axis 0 of size 0", no_rows, false, false},
              {"last axis of size 0", no_columns, false, false},
              {"without axis 0", without_first_axis, true, true}};

enum { SHAPES = sizeof shapes / sizeof *shapes };

int wg__variant_of_shape(const wg_op *op, int number, const wg_sample *sample, wg_sample *variant,
                         char *name, size_t size) {
    int kind = number % SHAPES, only = number / SHAPES - 1, count = 0;
    if (only >= sample->input_count)
        return 0;
    for (int i = 0; i < sample->input_count; i++)
        count += sample->inputs[i] != NULL;
    if (only < 0 ? shapes[kind].alone_only : count < 2)
        return -1;
    if (shapes[kind].changes_rank && op->options_size > 0)
        return -1;
    bool any = false;
    *variant = *sample;
    for (int i = 0; i < sample->input_count; i++) {
        wg_tensor *x = sample->inputs[i];
        if (!x || (only >= 0 && i != only))
            continue;
        wg_tensor *cut = shapes[kind].cut(x);
        any |= cut != NULL;
        if (cut)
            variant->inputs[i] = wg_clone(cut);
    }
    if (only < 0)
        snprintf(name, size, "%s", shapes[kind].name);
    else
        snprintf(name, size, "input %d %s", only, shapes[kind].name);
    return any ? 1 : -1;
}

/* ---- Grown ---- */

enum { MANY = 40000 }; /* elements: several chunks of the parallel loops */

/* x many times, along its first axis or its last. */
static wg_tensor *repeated(wg_tensor *x, bool last) {
    int ndim = wg_tensor_ndim(x);
    int64_t count = wg_tensor_count(x), shape[WG_MAX_DIMS + 1];
    if (ndim == 0 || ndim == WG_MAX_DIMS || count == 0)
        return x;
    int64_t times = (MANY + count - 1) / count;
    int at = last ? ndim : 0;
    wg_tensor *stacked = wg_unsqueeze(x, at);
    if (!stacked)
        return NULL;
    memcpy(shape, wg_tensor_shape(stacked), (size_t)(ndim + 1) * sizeof(int64_t));
    shape[at] = times;
    stacked = wg_expand(stacked, ndim + 1, shape);
    memcpy(shape, wg_tensor_shape(x), (size_t)ndim * sizeof(int64_t));
    shape[last ? ndim - 1 : 0] *= times;
    return wg_reshape(stacked, ndim, shape);
}

/* The shape rule says so, and that the outputs are of a size that a check should compute. */
static bool is_feasible(const wg_op *op, const wg_sample *sample) {
    wg_spec specs[WG_MAX_INPUTS];
    wg_call call = {.op = op,
                    .options = sample->options,
                    .input_count = sample->input_count,
                    .inputs = sample->inputs,
                    .input_specs = specs,
                    .output_count = op->output_count};
    for (int i = 0; i < sample->input_count; i++)
        specs[i] = sample->inputs[i] ? sample->inputs[i]->spec : (wg_spec){.ndim = -1};
    bool feasible = !op->infer || op->infer(&call) == 0;
    for (int j = 0; feasible && j < op->output_count; j++)
        feasible = wg__spec_count(&call.output_specs[j]) <= 4 * MANY;
    wg_error_clear();
    return feasible;
}

/* All inputs, tall or wide; then the first alone. How large a composite's result would be is not
 * known before; its ops are checked themselves. */
int wg__variant_grown(const wg_op *op, int number, const wg_sample *sample, wg_sample *variant,
                      char *name, size_t size) {
    static const char *const names[] = {"inputs tall", "inputs wide", "input 0 tall",
                                        "input 0 wide"};
    if (wg_op_is_composite(op) || number >= (int)(sizeof names / sizeof *names))
        return 0;
    *variant = *sample;
    for (int i = 0; i < (number < 2 ? sample->input_count : 1); i++)
        if (sample->inputs[i])
            variant->inputs[i] = wg_clone(repeated(sample->inputs[i], number % 2));
    snprintf(name, size, "%s", names[number]);
    return is_feasible(op, variant) ? 1 : -1;
}
