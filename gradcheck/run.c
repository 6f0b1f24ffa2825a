/* Functions that all checks use: verdicts in words, runs of the function with values and gradients
 * as plain arrays, and snapshots of inputs. */
#include "gradcheck/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tensor/ops.h"
#include "gradcheck/internal.h"

static const struct {
    const char *name, *function, *words, *advice;
} diagnoses[] = {
#define WG_DIAGNOSIS(name, function, words, advice) {#name, function, words, advice},
    WG_DIAGNOSES(WG_DIAGNOSIS)
#undef WG_DIAGNOSIS
};

const char *wg_diagnosis_name(wg_diagnosis diagnosis) {
    const size_t count = sizeof diagnoses / sizeof *diagnoses;
    return diagnoses[(size_t)diagnosis < count ? diagnosis : WG_DIAGNOSIS_WRONG].name;
}

const char *wg__diagnosis_words(wg_diagnosis diagnosis) {
    return diagnoses[diagnosis].words;
}

/* Text that grows in a buffer. */
typedef struct text {
    char *buffer;
    size_t size, used;
} text;

WG_PRINTF(2, 3) static void append(text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(t->buffer + t->used, t->size - t->used, format, arguments);
    va_end(arguments);
    t->used += length > 0 ? (size_t)length : 0;
    t->used = t->used < t->size ? t->used : t->size - 1;
}

const char *wg__index_text(char *buffer, size_t size, const wg_gradcheck_index *index) {
    text t = {buffer, size, 0};
    append(&t, "(");
    for (int d = 0; d < index->ndim; d++)
        append(&t, "%s%lld", d ? ", " : "", (long long)index->at[d]);
    append(&t, index->ndim == 1 ? ",)" : ")");
    return buffer;
}

const char *wg__gradcheck_input_text(char *buffer, size_t size, const wg__gradcheck *c, int input) {
    const wg_gradcheck_options *o = &c->options;
    int parameter = input - c->user_count;
    if (parameter < 0)
        snprintf(buffer, size, "input %d", input);
    else if (parameter < o->parameter_count && o->parameter_names)
        snprintf(buffer, size, "parameter %s", o->parameter_names[parameter]);
    else if (parameter < o->parameter_count)
        snprintf(buffer, size, "parameter %d", parameter);
    else
        snprintf(buffer, size, "the cotangent of output %d", parameter - o->parameter_count);
    return buffer;
}

int wg__gradcheck_fail(wg__gradcheck *c, wg_diagnosis diagnosis, int input, const char *format,
                       ...) {
    wg_gradcheck_report *r = c->report;
    text t = {r->message, sizeof r->message, 0};
    /* In order 2 the context is the check of order 1. */
    const wg_op *op = c->order > 1 ? ((const wg__gradcheck *)c->context)->op : c->op;
    if (op)
        append(&t, "%.64s, ", op->name);
    if (r->sample >= 0)
        append(&t, "sample %d%s%s: ", r->sample, r->variant[0] ? ", " : "", r->variant);
    if (c->order > 1)
        append(&t, "order %d: ", c->order);
    char finding[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding, sizeof finding, format, arguments);
    va_end(arguments);
    append(&t, "%s", finding);
    if (wg_error_pending())
        append(&t, ": %.400s", wg_error_pending()->message);
    wg_error_clear();
    if (diagnosis != WG_DIAGNOSIS_FAILED)
        append(&t, ". Diagnosis: %s", diagnoses[diagnosis].words);
    const char *function = c->found.blames ? c->found.blames : diagnoses[diagnosis].function;
    const char *advice = diagnoses[diagnosis].advice;
    /* A function under check has no vjp, but its ops have. */
    if (*advice && op)
        append(&t, ". Look at %s%s%s", function, *function ? ": " : "", advice);
    else if (*advice && strcmp(function, "vjp") == 0)
        append(
            &t,
            ". Look at the vjp of each op in it, which wg_gradcheck_op or `wengert gradcheck OP` "
            "checks: %s",
            advice);
    else if (*advice)
        append(&t, ". Look at: %s", advice);
    if (*advice && op && strcmp(function, "vjp or forward") == 0)
        append(&t,
               ". They disagree: without a decomposition or a jvp nothing says which one is wrong");
    append(&t, ". Replay with seed %llu", (unsigned long long)r->seed);
    r->passed = false;
    r->diagnosis = diagnosis;
    r->function = op ? function : "";
    r->at_order = c->order;
    r->input = input;
    int parameter = input - c->user_count;
    bool named = parameter >= 0 && parameter < c->options.parameter_count;
    snprintf(r->name, sizeof r->name, "%s",
             named && c->options.parameter_names ? c->options.parameter_names[parameter] : "");
    return -1;
}

int wg__gradcheck_fail_at(wg__gradcheck *c, wg_diagnosis diagnosis, int64_t at, const char *before,
                          const char *format, ...) {
    const int w = wg__selection_find(&c->wanted, at), input = c->wanted.index[w];
    char name[160], index[128], rest[192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(rest, sizeof rest, format, arguments);
    va_end(arguments);
    c->report->coordinate = wg__index_of(at - c->wanted.at[w], &c->wanted.tensors[w]->spec);
    return wg__gradcheck_fail(c, diagnosis, input, "%sthe gradient of %s at %s%s", before,
                              wg__gradcheck_input_text(name, sizeof name, c, input),
                              wg__index_text(index, sizeof index, &c->report->coordinate), rest);
}

int wg__gradcheck_no_memory(wg__gradcheck *c) {
    return wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the check itself");
}

void wg__unravel(int64_t number, int ndim, const int64_t *shape, int64_t *index) {
    for (int d = ndim - 1; d >= 0; d--) {
        index[d] = number % shape[d];
        number /= shape[d];
    }
}

wg_gradcheck_index wg__index_of(int64_t number, const wg_spec *spec) {
    wg_gradcheck_index index = {.ndim = spec->ndim};
    wg__unravel(number, spec->ndim, spec->shape, index.at);
    return index;
}

int wg__selection_find(const wg__selection *selection, int64_t element) {
    int k = 0;
    while (k + 1 < selection->count && selection->at[k + 1] <= element)
        k++;
    return k;
}

int wg__read_doubles(wg_tensor *x, double *out) {
    return wg_to_array(wg_cast(x, WG_F64), out);
}

char *wg__element_address(const wg_tensor *x, int64_t number) {
    int64_t index[WG_MAX_DIMS], at = 0;
    wg__unravel(number, wg_tensor_ndim(x), wg_tensor_shape(x), index);
    for (int d = 0; d < wg_tensor_ndim(x); d++)
        at += index[d] * wg_tensor_strides(x)[d];
    return (char *)wg_tensor_data(x) + at * (int64_t)wg_dtype_size(wg_tensor_dtype(x));
}

int wg__snapshot_take(wg__snapshot *snapshot, wg_tensor *x) {
    *snapshot = (wg__snapshot){.of = x};
    if (!x)
        return 0;
    snapshot->version = wg__tensor_version(x);
    snapshot->bytes = wg__alloc_array(wg_tensor_count(x) + 1, wg_dtype_size(wg_tensor_dtype(x)));
    return snapshot->bytes ? wg_to_array(x, snapshot->bytes) : -1;
}

bool wg__snapshot_holds(const wg__snapshot *snapshot) {
    const wg_tensor *x = snapshot->of;
    size_t size = wg_dtype_size(wg_tensor_dtype(x));
    if (!x)
        return true;
    for (int64_t i = 0; i < wg_tensor_count(x); i++)
        if (memcmp(wg__element_address(x, i), (char *)snapshot->bytes + (size_t)i * size, size) !=
            0)
            return false;
    return wg__tensor_version(x) == snapshot->version;
}

static void snapshot_restore(const wg__snapshot *snapshot) {
    wg_tensor *x = snapshot->of;
    size_t size = wg_dtype_size(wg_tensor_dtype(x));
    for (int64_t i = 0; x && i < wg_tensor_count(x); i++)
        memcpy(wg__element_address(x, i), (char *)snapshot->bytes + (size_t)i * size, size);
    wg_tensor_touch(x);
}

void wg__gradcheck_restore(wg__gradcheck *c) {
    for (int w = 0; w < c->wanted.count; w++)
        snapshot_restore(&c->snapshots[c->wanted.index[w]]);
    for (int i = 0; i < c->input_count; i++) /* inputs with a common storage share its version */
        c->snapshots[i].version = wg__tensor_version(c->inputs[i]);
}

int wg__gradcheck_inputs_unmodified(wg__gradcheck *c, const char *when) {
    for (int i = 0; i < c->input_count; i++) {
        if (wg__snapshot_holds(&c->snapshots[i]))
            continue;
        bool moved = c->inputs[i] && wg__tensor_version(c->inputs[i]) != c->snapshots[i].version;
        for (int k = 0; k < c->input_count; k++)
            snapshot_restore(&c->snapshots[k]);
        char name[160];
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_INPUT_MODIFIED, i, "%s writes to %s%s", when,
                                  wg__gradcheck_input_text(name, sizeof name, c, i),
                                  moved ? "" : " without counting it as a write");
    }
    return 0;
}

int wg__gradcheck_run(wg__gradcheck *c) {
    memset(c->outputs, 0, (size_t)c->output_count * sizeof *c->outputs);
    int status = c->function(c->user_count, c->inputs, c->output_count, c->outputs, c->context);
    if (status < 0 || wg_error_pending())
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the function failed");
    for (int j = 0; j < c->output_count; j++)
        if (!c->outputs[j])
            return wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the function gave no output %d",
                                      j);
    return 0;
}

/* Reads the floating outputs, then all other outputs. */
static int read_values(wg__gradcheck *c, double *values) {
    for (int pass = 0; pass < 2; pass++)
        for (int j = 0; j < c->output_count; j++) {
            wg_tensor *y = c->outputs[j];
            const wg_spec *spec = &c->output_specs[j];
            if (wg_dtype_is_float(spec->dtype) != (pass == 0))
                continue;
            if (!wg__same_shape(&y->spec, spec) || y->spec.dtype != spec->dtype)
                return wg__gradcheck_fail(c, WG_DIAGNOSIS_NONDETERMINISTIC, -1,
                                          "output %d changes its shape or dtype from run to run",
                                          j);
            wg__read_doubles(y, values);
            values += wg_tensor_count(y);
        }
    return wg_error_pending() ? wg__gradcheck_no_memory(c) : 0;
}

/* Allocates the arrays once the outputs are known, and reads the values. */
static int first_run(wg__gradcheck *c) {
    if (wg__gradcheck_run(c) < 0)
        return -1;
    for (int j = 0; j < c->output_count; j++) {
        c->output_specs[j] = c->outputs[j]->spec;
        int64_t count = wg_tensor_count(c->outputs[j]);
        c->all_count += count;
        if (!wg_dtype_is_float(c->output_specs[j].dtype))
            continue;
        c->weighted.index[c->weighted.count] = j;
        c->weighted.at[c->weighted.count++] = c->weighted.elements;
        c->weighted.elements += count;
    }
    size_t values = (size_t)c->weighted.elements, all = (size_t)c->all_count;
    size_t coordinates = (size_t)c->wanted.elements;
    c->weight_values = wg__calloc((size_t)(wg__times(5, values) + 1), sizeof(double));
    c->values = wg__calloc((size_t)(wg__times(3, all) + 1), sizeof(double));
    c->sums.analytic = wg__calloc((size_t)(wg__times(5, coordinates) + 1), sizeof(double));
    c->kinks_at = wg__calloc(coordinates + 1, sizeof(int64_t));
    if (wg_error_pending())
        return wg__gradcheck_no_memory(c);
    c->slopes = c->weight_values + values;
    c->spreads = c->slopes + values;
    c->first = c->spreads + values;
    c->far = c->first + values;
    c->plus = c->values + all;
    c->minus = c->plus + all;
    c->sums.numeric = c->sums.analytic + coordinates;
    c->sums.radius = c->sums.numeric + coordinates;
    c->gradient = c->sums.radius + coordinates;
    c->other = c->gradient + coordinates;
    return read_values(c, c->values);
}

int wg__gradcheck_prepare(wg__gradcheck *c) {
    size_t inputs = (size_t)c->input_count + 1, outputs = (size_t)c->output_count + 1;
    c->wanted.index = wg__calloc(inputs, sizeof *c->wanted.index);
    c->wanted.at = wg__calloc(inputs, sizeof *c->wanted.at);
    c->wanted.tensors = wg__calloc(inputs, sizeof *c->wanted.tensors);
    c->snapshots = wg__calloc(inputs, sizeof *c->snapshots);
    c->outputs = wg__calloc(outputs, sizeof *c->outputs);
    c->output_specs = wg__calloc(outputs, sizeof *c->output_specs);
    c->weighted.index = wg__calloc(outputs, sizeof *c->weighted.index);
    c->weighted.at = wg__calloc(outputs, sizeof *c->weighted.at);
    c->weighted.tensors = wg__calloc(outputs, sizeof *c->weighted.tensors);
    if (wg_error_pending())
        return wg__gradcheck_no_memory(c);

    /* The wanted inputs. */
    for (int i = 0; i < c->input_count; i++) {
        wg_tensor *x = c->inputs[i];
        if (wg__snapshot_take(&c->snapshots[i], x) < 0)
            return wg__gradcheck_no_memory(c);
        if (!wg_requires_grad(x) || wg_tensor_dtype(x) != c->dtype)
            continue;
        c->wanted.index[c->wanted.count] = i;
        c->wanted.at[c->wanted.count] = c->wanted.elements;
        c->wanted.tensors[c->wanted.count++] = x;
        c->wanted.elements += wg_tensor_count(x);
    }
    for (int w = 0; w < c->wanted.count; w++)
        if (wg__overlaps_itself(c->wanted.tensors[w])) /* elements cannot be moved one by one */
            return wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, c->wanted.index[w],
                                      "elements of input %d share an address, as in an expanded "
                                      "view: clone it",
                                      c->wanted.index[w]);

    wg_scope scope;
    wg_scope_begin(&scope);
    int status = first_run(c);
    wg_scope_end(&scope, NULL);
    /* Outputs without requires_grad get cotangents, too: their gradient must be 0. In order 2 all
     * cotangents are views that are not contiguous. */
    wg_generator generator = {.seed = c->options.seed, .offset = (uint64_t)c->order << 32};
    for (int k = 0; k < c->weighted.count && status == 0; k++) {
        const wg_spec *spec = &c->output_specs[c->weighted.index[k]];
        wg_tensor *weights = wg_randn(&generator, WG_F64, spec->ndim, spec->shape);
        weights = wg_cast(weights, spec->dtype);
        c->weighted.tensors[k] = c->order > 1 ? wg__layout_strided(weights) : weights;
        wg__read_doubles(c->weighted.tensors[k], c->weight_values + c->weighted.at[k]);
    }
    return status < 0 ? -1 : wg_error_pending() ? wg__gradcheck_no_memory(c) : 0;
}

void wg__gradcheck_free(wg__gradcheck *c) {
    for (int i = 0; c->snapshots && i < c->input_count; i++)
        wg__free(c->snapshots[i].bytes);
    void *const blocks[] = {
        c->snapshots,        c->wanted.index,    c->wanted.at,        c->wanted.tensors,
        c->weighted.index,   c->weighted.at,     c->weighted.tensors, c->outputs,
        c->output_specs,     c->weight_values,   c->values,           c->sums.analytic,
        c->entries.analytic, c->entries.numeric, c->entries.radius,   c->kinks_at};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        wg__free(blocks[i]);
}

int wg__gradcheck_pull_tensors(wg__gradcheck *c, const wg_backward_options *options,
                               wg_tensor **gradients) {
    wg_tensor **roots = wg__calloc((size_t)(wg__times(c->weighted.count, 2) + 1), sizeof *roots);
    if (!roots)
        return wg__gradcheck_no_memory(c);
    wg_tensor **cotangents = roots + c->weighted.count;
    int count = 0, status = 0;
    for (int k = 0; k < c->weighted.count; k++) {
        wg_tensor *y = c->outputs[c->weighted.index[k]];
        if (!wg_requires_grad(y) || !c->weighted.tensors[k])
            continue; /* backward cannot start there */
        roots[count] = y;
        cotangents[count++] = c->weighted.tensors[k];
    }
    if (count > 0)
        status = wg_grad(count, roots, cotangents, c->wanted.count, c->wanted.tensors, options,
                         gradients);
    else
        for (int w = 0; w < c->wanted.count; w++)
            gradients[w] = wg_zeros_like(c->wanted.tensors[w]);
    wg__free(roots);
    return status < 0 || wg_error_pending() ? -1 : 0;
}

int wg__gradcheck_pull(wg__gradcheck *c, bool retain_graph, double *gradients) {
    wg_tensor **found = wg__calloc((size_t)c->wanted.count + 1, sizeof *found);
    if (!found)
        return wg__gradcheck_no_memory(c);
    wg_scope scope;
    wg_scope_begin(&scope);
    int status =
        wg__gradcheck_pull_tensors(c, &(wg_backward_options){.retain_graph = retain_graph}, found);
    for (int w = 0; w < c->wanted.count && status == 0; w++)
        status = wg__read_doubles(found[w], gradients + c->wanted.at[w] - c->wanted.at[0]);
    wg_scope_end(&scope, NULL);
    wg__free(found);
    return status < 0 ? wg__gradcheck_fail(c, WG_DIAGNOSIS_BACKWARD_FAILED, -1, "backward failed")
                      : 0;
}

int wg__gradcheck_evaluate(wg__gradcheck *c, double *values, double *gradients) {
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = wg__gradcheck_run(c);
    if (status == 0 && values)
        status = read_values(c, values);
    if (status == 0 && gradients)
        status = wg__gradcheck_pull(c, false, gradients);
    wg_scope_end(&scope, NULL);
    return status;
}
