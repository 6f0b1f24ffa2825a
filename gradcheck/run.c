/* What the checks stand on: verdicts in words, runs of the function under check with values and
 * gradients as plain arrays, snapshots of inputs, and layouts of memory. */
#include "gradcheck/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tensor/ops.h"
#include "tensor/internal.h"
#include "gradcheck/internal.h"

/* ---- Diagnoses in words ---- */

static const struct {
    const char *name, *function, *words, *advice;
} diagnoses[] = {
#define WG_DIAGNOSIS(name, function, words, advice) {#name, function, words, advice},
    WG_DIAGNOSES(WG_DIAGNOSIS)
#undef WG_DIAGNOSIS
};

static size_t known(wg_diagnosis diagnosis) {
    size_t count = sizeof diagnoses / sizeof *diagnoses;
    return (size_t)diagnosis < count ? (size_t)diagnosis : (size_t)WG_DIAGNOSIS_WRONG;
}

const char *wg_diagnosis_name(wg_diagnosis diagnosis) {
    return diagnoses[known(diagnosis)].name;
}

const char *wg__diagnosis_words(wg_diagnosis diagnosis) {
    return diagnoses[known(diagnosis)].words;
}

const char *wg__diagnosis_function(wg_diagnosis diagnosis) {
    return diagnoses[known(diagnosis)].function;
}

const char *wg__diagnosis_advice(wg_diagnosis diagnosis) {
    return diagnoses[known(diagnosis)].advice;
}

/* ---- Text that grows in a buffer ---- */

typedef struct text {
    char *buffer;
    size_t size, used;
} text;

static void say(text *t, const char *format, ...) WG_PRINTF(2, 3);

static void say(text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(t->buffer + t->used, t->size - t->used, format, arguments);
    va_end(arguments);
    t->used += length > 0 ? (size_t)length : 0;
    t->used = t->used < t->size ? t->used : t->size - 1;
}

const char *wg__index_text(char *buffer, size_t size, int ndim, const int64_t *index) {
    text t = {buffer, size, 0};
    say(&t, "(");
    for (int d = 0; d < ndim; d++)
        say(&t, "%s%lld", d ? ", " : "", (long long)index[d]);
    say(&t, ndim == 1 ? ",)" : ")");
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

/* ---- Verdicts: the paragraph that describes a failure ---- */

/* The op that is checked, also in order 2, whose context is the check of order 1; or NULL. */
static const wg_op *op_of(const wg__gradcheck *c) {
    return c->order > 1 ? ((const wg__gradcheck *)c->context)->op : c->op;
}

/* "softmax, sample 2, stepped: order 1: " as far as there is something to say. */
static void say_where(text *t, const wg__gradcheck *c) {
    const wg_gradcheck_report *r = c->report;
    const wg_op *op = op_of(c);
    if (op)
        say(t, "%.64s, ", op->name);
    if (r->sample >= 0)
        say(t, "sample %d%s%s: ", r->sample, r->variant[0] ? ", " : "", r->variant);
    if (c->order > 1)
        say(t, "order %d: ", c->order);
}

/* Where to look. A function under check has no vjp of its own: its ops have. */
static void say_advice(text *t, const wg__gradcheck *c, wg_diagnosis diagnosis,
                       const char *function) {
    const char *advice = wg__diagnosis_advice(diagnosis);
    const wg_op *op = op_of(c);
    if (!*advice)
        return;
    if (op)
        say(t, ". Look at %s%s%s", function, *function ? ": " : "", advice);
    else if (strcmp(function, "vjp") == 0)
        say(t,
            ". Look at the vjp of each op in it, which wg_gradcheck_op or `wengert gradcheck OP` "
            "checks: %s",
            advice);
    else
        say(t, ". Look at: %s", advice);
    if (op && strcmp(function, "vjp or forward") == 0)
        say(t, ". They disagree: without a decomposition or a jvp nothing says which one is wrong");
}

int wg__gradcheck_fail(wg__gradcheck *c, wg_diagnosis diagnosis, int input, const char *format,
                       ...) {
    wg_gradcheck_report *r = c->report;
    text t = {r->message, sizeof r->message, 0};
    say_where(&t, c);
    char finding[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding, sizeof finding, format, arguments);
    va_end(arguments);
    say(&t, "%s", finding);
    const wg_error *reason = wg_error_pending();
    if (reason)
        say(&t, ": %.400s", reason->message);
    wg_error_clear();
    if (diagnosis != WG_DIAGNOSIS_FAILED)
        say(&t, ". Diagnosis: %s", wg__diagnosis_words(diagnosis));
    const char *function = c->blames ? c->blames : wg__diagnosis_function(diagnosis);
    r->function = op_of(c) ? function : "";
    say_advice(&t, c, diagnosis, function);
    say(&t, ". Replay with seed %llu", (unsigned long long)r->seed);
    r->passed = false;
    r->diagnosis = diagnosis;
    r->at_order = c->order;
    r->input = input;
    int parameter = input - c->user_count;
    bool named = parameter >= 0 && parameter < c->options.parameter_count;
    snprintf(r->name, sizeof r->name, "%s",
             named && c->options.parameter_names ? c->options.parameter_names[parameter] : "");
    return -1;
}

int wg__gradcheck_no_memory(wg__gradcheck *c) {
    return wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the check itself");
}

/* ---- Numbers and places ---- */

void wg__unravel(int64_t number, int ndim, const int64_t *shape, int64_t *index) {
    for (int d = ndim - 1; d >= 0; d--) {
        index[d] = number % shape[d];
        number /= shape[d];
    }
}

int wg__gradcheck_input_of(const wg__gradcheck *c, int64_t coordinate) {
    int w = 0;
    while (w + 1 < c->wanted_count && c->wanted_at[w + 1] <= coordinate)
        w++;
    return w;
}

const char *wg__gradcheck_place(char *buffer, size_t size, wg__gradcheck *c, int64_t at) {
    wg_gradcheck_report *r = c->report;
    const int w = wg__gradcheck_input_of(c, at);
    const wg_spec *x = &c->wanted_inputs[w]->spec;
    char name[160], index[128];
    r->ndim = x->ndim;
    wg__unravel(at - c->wanted_at[w], x->ndim, x->shape, r->coordinate);
    snprintf(buffer, size, "%s at %s", wg__gradcheck_input_text(name, sizeof name, c, c->wanted[w]),
             wg__index_text(index, sizeof index, x->ndim, r->coordinate));
    return buffer;
}

int wg__gradcheck_output_of(const wg__gradcheck *c, int64_t value) {
    int j = 0;
    while (j + 1 < c->weighted_count && c->weighted_at[j + 1] <= value)
        j++;
    return j;
}

int wg__read_doubles(wg_tensor *x, double *out) {
    return wg_to_array(wg_cast(x, WG_F64), out);
}

/* ---- Snapshots ---- */

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

void wg__gradcheck_put_back(wg__gradcheck *c) {
    for (int w = 0; w < c->wanted_count; w++)
        snapshot_restore(&c->snapshots[c->wanted[w]]);
    for (int i = 0; i < c->input_count; i++) /* views of one storage share its version */
        c->snapshots[i].version = wg__tensor_version(c->inputs[i]);
}

void wg__snapshot_free(wg__snapshot *snapshot) {
    wg__free(snapshot->bytes);
    snapshot->bytes = NULL;
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

/* ---- Space ---- */

void wg__gradcheck_free(wg__gradcheck *c) {
    for (int i = 0; c->snapshots && i < c->input_count; i++)
        wg__snapshot_free(&c->snapshots[i]);
    void *const blocks[] = {c->wanted,      c->wanted_at,        c->wanted_inputs, c->snapshots,
                            c->outputs,     c->weights,          c->output_specs,  c->weighted,
                            c->weighted_at, c->weight_values,    c->values,        c->analytic,
                            c->jacobian,    c->numeric_jacobian, c->spread,        c->kinks_at};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        wg__free(blocks[i]);
}

int wg__gradcheck_prepare(wg__gradcheck *c) {
    size_t inputs = (size_t)c->input_count + 1, outputs = (size_t)c->output_count + 1;
    c->wanted = wg__calloc(inputs, sizeof *c->wanted);
    c->wanted_at = wg__calloc(inputs, sizeof *c->wanted_at);
    c->wanted_inputs = wg__calloc(inputs, sizeof *c->wanted_inputs);
    c->snapshots = wg__calloc(inputs, sizeof *c->snapshots);
    c->outputs = wg__calloc(outputs, sizeof *c->outputs);
    c->output_specs = wg__calloc(outputs, sizeof *c->output_specs);
    c->weighted = wg__calloc(outputs, sizeof *c->weighted);
    c->weighted_at = wg__calloc(outputs, sizeof *c->weighted_at);
    c->weights = wg__calloc(outputs, sizeof *c->weights);
    if (wg_error_pending())
        return wg__gradcheck_no_memory(c);
    for (int i = 0; i < c->input_count; i++) {
        wg_tensor *x = c->inputs[i];
        if (wg__snapshot_take(&c->snapshots[i], x) < 0)
            return wg__gradcheck_no_memory(c);
        if (!wg_requires_grad(x) || wg_tensor_dtype(x) != c->dtype)
            continue;
        c->wanted[c->wanted_count] = i;
        c->wanted_at[c->wanted_count] = c->coordinate_count;
        c->wanted_inputs[c->wanted_count++] = x;
        c->coordinate_count += wg_tensor_count(x);
    }
    for (int w = 0; w < c->wanted_count; w++)
        if (wg__overlaps_itself(c->wanted_inputs[w])) /* two elements cannot be moved apart */
            return wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, c->wanted[w],
                                      "elements of input %d share an address, as in an expanded "
                                      "view: clone it",
                                      c->wanted[w]);
    return 0;
}

/* ---- Forward ---- */

int wg__gradcheck_run(wg__gradcheck *c) {
    memset(c->outputs, 0, (size_t)c->output_count * sizeof *c->outputs);
    int status = c->function(c->argument_count, c->inputs, c->output_count, c->outputs, c->context);
    if (status < 0 || wg_error_pending())
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the function failed");
    for (int j = 0; j < c->output_count; j++)
        if (!c->outputs[j])
            return wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the function gave no output %d",
                                      j);
    return 0;
}

/* Reads the floating outputs, and then the others. */
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

/* ---- The first run ---- */

/* One block for the arrays as long as the values, one for those as long as the gradients. */
static int make_arrays(wg__gradcheck *c) {
    size_t values = (size_t)c->value_count, all = (size_t)c->all_count;
    size_t coordinates = (size_t)c->coordinate_count;
    c->weight_values = wg__calloc((size_t)(wg__times(3, values) + 1), sizeof(double));
    c->values = wg__calloc((size_t)(wg__times(3, all) + 1), sizeof(double));
    c->analytic = wg__calloc((size_t)(wg__times(3, coordinates) + 1), sizeof(double));
    c->kinks_at = wg__calloc(coordinates + 1, sizeof(int64_t));
    if (wg_error_pending())
        return wg__gradcheck_no_memory(c);
    c->slopes = c->weight_values + values;
    c->spreads = c->slopes + values;
    c->plus = c->values + all;
    c->minus = c->plus + all;
    c->numeric = c->analytic + coordinates;
    c->radius = c->numeric + coordinates;
    return 0;
}

/* Standard normal weights for every floating output. Outputs that backward does not reach are
 * weighted too: their gradient is claimed to be 0. In order 2 they are views whose elements do not
 * lie one after the other. */
static int make_weights(wg__gradcheck *c) {
    wg_generator generator = {.seed = c->options.seed, .offset = (uint64_t)c->order << 32};
    for (int k = 0; k < c->weighted_count; k++) {
        const wg_spec *spec = &c->output_specs[c->weighted[k]];
        wg_tensor *weights = wg_randn(&generator, WG_F64, spec->ndim, spec->shape);
        weights = wg_cast(weights, spec->dtype);
        c->weights[k] = c->order > 1 ? wg__layout_strided(weights) : weights;
        wg__read_doubles(c->weights[k], c->weight_values + c->weighted_at[k]);
    }
    return wg_error_pending() ? wg__gradcheck_no_memory(c) : 0;
}

int wg__gradcheck_measure(wg__gradcheck *c) {
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = wg__gradcheck_run(c);
    for (int j = 0; j < c->output_count && status == 0; j++) {
        c->output_specs[j] = c->outputs[j]->spec;
        int64_t count = wg_tensor_count(c->outputs[j]);
        c->all_count += count;
        if (!wg_dtype_is_float(c->output_specs[j].dtype))
            continue;
        c->weighted[c->weighted_count] = j;
        c->weighted_at[c->weighted_count++] = c->value_count;
        c->value_count += count;
    }
    if (status == 0)
        status = make_arrays(c);
    if (status == 0)
        status = read_values(c, c->values);
    wg_scope_end(&scope, NULL);
    return status < 0 ? -1 : make_weights(c);
}

/* ---- Backward ---- */

int wg__gradcheck_pull_tensors(wg__gradcheck *c, const wg__pull_options *pull,
                               wg_tensor **gradients) {
    wg_tensor **roots = wg__calloc((size_t)(wg__times(c->weighted_count, 2) + 1), sizeof *roots);
    if (!roots)
        return wg__gradcheck_no_memory(c);
    wg_tensor **cotangents = roots + c->weighted_count;
    wg_tensor *const *weights = pull->weights ? pull->weights : c->weights;
    int count = 0;
    for (int k = 0; k < c->weighted_count; k++) {
        if (!wg_requires_grad(c->outputs[c->weighted[k]]) || !weights[k])
            continue; /* backward cannot start there */
        roots[count] = c->outputs[c->weighted[k]];
        cotangents[count++] = weights[k];
    }
    int first = pull->only ? pull->only - 1 : 0, wanted = pull->only ? 1 : c->wanted_count;
    int status = 0;
    if (count > 0)
        status = wg_grad(count, roots, cotangents, wanted, &c->wanted_inputs[first],
                         &(wg_backward_options){.create_graph = pull->create_graph,
                                                .retain_graph = pull->retain_graph},
                         gradients);
    else
        for (int i = 0; i < wanted; i++)
            gradients[i] = wg_zeros_like(c->wanted_inputs[first + i]);
    wg__free(roots);
    return status < 0 || wg_error_pending() ? -1 : 0;
}

int wg__gradcheck_pull(wg__gradcheck *c, const wg__pull_options *pull, double *gradients) {
    wg_tensor **found = wg__calloc((size_t)c->wanted_count + 1, sizeof *found);
    if (!found)
        return wg__gradcheck_no_memory(c);
    wg_scope scope;
    wg_scope_begin(&scope);
    int first = pull->only ? pull->only - 1 : 0, wanted = pull->only ? 1 : c->wanted_count;
    int status = wg__gradcheck_pull_tensors(c, pull, found);
    for (int i = 0; i < wanted && status == 0; i++)
        status =
            wg__read_doubles(found[i], gradients + c->wanted_at[first + i] - c->wanted_at[first]);
    wg_scope_end(&scope, NULL);
    wg__free(found);
    return status < 0 ? wg__gradcheck_fail(c, WG_DIAGNOSIS_BACKWARD_FAILED, -1, "backward failed")
                      : 0;
}

int wg__gradcheck_values_and_gradient(wg__gradcheck *c, const wg__pull_options *pull,
                                      double *values, double *gradients) {
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = wg__gradcheck_run(c);
    if (status == 0 && values)
        status = read_values(c, values);
    if (status == 0 && gradients)
        status = wg__gradcheck_pull(c, pull, gradients);
    wg_scope_end(&scope, NULL);
    return status;
}

int wg__gradcheck_evaluate(wg__gradcheck *c, double *values) {
    return wg__gradcheck_values_and_gradient(c, NULL, values, NULL);
}

int wg__gradcheck_gradient(wg__gradcheck *c, const wg__pull_options *pull, double *gradients) {
    return wg__gradcheck_values_and_gradient(c, pull, NULL, gradients);
}
