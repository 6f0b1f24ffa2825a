/* The public functions of the checker, the order of its checks, second order and forward mode. See
 * gradcheck.h for the mathematics. */
#include "gradcheck/gradcheck.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gradcheck/check.h"
#include "tensor/ops.h"

/* ---- Options ---- */

static double either(double given, double otherwise) {
    return given > 0 ? given : otherwise;
}

static wg_gradcheck_options with_defaults(const wg_gradcheck_options *options) {
    wg_gradcheck_options o = options ? *options : (wg_gradcheck_options){0};
    o.eps = either(o.eps, o.f32 ? 1.0 / 256 : 1e-6);
    o.atol = either(o.atol, o.f32 ? 1e-3 : 1e-5);
    o.rtol = either(o.rtol, o.f32 ? 1e-2 : 1e-3);
    o.order = o.order > 0 ? o.order : 1;
    return o;
}

/* Ends a public function: the status -1 makes the report's message the error. */
static int end(int status, wg_gradcheck_report *report) {
    if (status == 0)
        return 0;
    wg_error_clear();
    return wg_fail(WG_ERROR_GRADIENT, "gradcheck", "%s", report->message);
}

/* Begins a public function. False, with the report saying so, while an error is pending or for
 * options that make no sense. */
static bool begin(const wg_gradcheck_options *options, wg_gradcheck_report *report) {
    *report = (wg_gradcheck_report){.seed = options->seed,
                                    .sample = -1,
                                    .input = -1,
                                    .output = -1,
                                    .axis = -1,
                                    .diagnosis = WG_DIAGNOSIS_FAILED};
    if (wg_error_pending()) {
        snprintf(report->message, sizeof report->message, "refused: an error is pending");
        return false;
    }
    if (options->order > 2) {
        snprintf(report->message, sizeof report->message, "order %d; wanted 1 or 2",
                 options->order);
        end(-1, report);
        return false;
    }
    report->passed = true;
    report->diagnosis = WG_DIAGNOSIS_NONE;
    return true;
}

/* ---- Second order is first order of another function:
 *
 *     (inputs, cotangents of the outputs)  ->  the gradients of the wanted inputs
 *
 * whose backward differentiates the recorded backward of the first. All cotangents are views here,
 * whose elements do not lie one after the other. ---- */

/* Finds its inputs in `context`, the check of first order: they are moved in place. */
static int gradient_function(int input_count, wg_tensor *const *inputs, int output_count,
                             wg_tensor **outputs, void *context) {
    (void)input_count, (void)inputs, (void)output_count;
    wg__gradcheck again = *(const wg__gradcheck *)context;
    wg_gradcheck_report ignored = *again.report;
    again.report = &ignored;
    again.outputs = wg__calloc((size_t)again.output_count + 1, sizeof *outputs);
    if (!again.outputs)
        return -1;
    int status = again.function(again.argument_count, again.inputs, again.output_count,
                                again.outputs, again.context);
    if (status == 0)
        status =
            wg__gradcheck_pull_tensors(&again, &(wg__pull_options){.create_graph = true}, outputs);
    wg__free(again.outputs);
    return status;
}

/* Recording must not change the gradient: for a fused op the one comes from its decomposition and
 * the other from its kernels. */
static int compare_with_first(wg__gradcheck *second, const wg__gradcheck *first) {
    int64_t at =
        wg__gradcheck_unlike(first, first->coordinate_count, second->values, first->analytic, 1);
    if (at < 0)
        return 0;
    char name[160];
    int input = first->wanted[wg__gradcheck_input_of(first, at)];
    return wg__gradcheck_fail(second, WG_DIAGNOSIS_RECORDED, input,
                              "the gradient of %s is %.9g with create_graph, %.9g without",
                              wg__gradcheck_input_text(name, sizeof name, first, input),
                              second->values[at], first->analytic[at]);
}

static int check_second(wg__gradcheck *second, const wg__gradcheck *first) {
    if (wg__gradcheck_prepare(second) < 0 || wg__gradcheck_measure(second) < 0 ||
        compare_with_first(second, first) < 0 || wg__gradcheck_conduct_before(second) < 0)
        return -1;
    return second->coordinate_count == 0 ? 0 : wg__gradcheck_differences(second);
}

static int order2(wg__gradcheck *first) {
    int weights = first->weighted_count, inputs = first->input_count;
    wg_tensor **all = wg__calloc((size_t)(inputs + 2 * weights) + 1, sizeof *all);
    if (!all)
        return wg__gradcheck_fail(first, WG_DIAGNOSIS_FAILED, -1, "the check itself");
    wg_tensor **plain = all + inputs + weights;
    memcpy(all, first->inputs, (size_t)inputs * sizeof *all);
    memcpy(plain, first->weights, (size_t)weights * sizeof *all);
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int k = 0; k < weights; k++) {
        first->weights[k] = wg__layout_strided(plain[k]);
        wg_set_requires_grad(first->weights[k], true);
        all[inputs + k] = first->weights[k];
    }
    wg__gradcheck second = {.function = gradient_function,
                            .context = first,
                            .user_count = first->user_count,
                            .input_count = inputs + weights,
                            .inputs = all,
                            .output_count = first->wanted_count,
                            .order = 2,
                            .derived = first->derived,
                            .dtype = first->dtype,
                            .options = first->options,
                            .report = first->report};
    int status = check_second(&second, first);
    if (second.report->order < 2 && status == 0)
        second.report->order = 2;
    wg__gradcheck_free(&second);
    memcpy(first->weights, plain, (size_t)weights * sizeof *plain);
    wg_scope_end(&scope, NULL);
    wg__free(all);
    return status;
}

/* ---- Forward mode against differences, and against reverse mode:
 *
 *     J t  from wg_jvp       against  J t  by differences
 *     w^T (J t)              against  (w^T J) t, which is exact but for rounding
 *
 * for random tangents t of all inputs together, and of each alone, where the others' are missing.
 * Parameters are constants in forward mode. ---- */

typedef struct forward {
    wg__gradcheck *c;
    double *direction; /* coordinate_count: t */
    double *tangent;   /* value_count: J t of wg_jvp */
    double *numeric, *radius;
} forward;

static bool takes_part(const wg__gradcheck *c, int w, int only) {
    return c->wanted[w] < c->user_count && (only < 0 || w == only);
}

/* Random tangents for the wanted inputs, or for one of them. */
static void make_tangents(forward *f, int only, wg_tensor **tangents) {
    const wg__gradcheck *c = f->c;
    wg_generator generator = {.seed = c->options.seed, .offset = (uint64_t)(only + 2) << 48};
    memset(f->direction, 0, (size_t)c->coordinate_count * sizeof(double));
    for (int w = 0; w < c->wanted_count; w++) {
        const wg_spec *spec = &c->wanted_inputs[w]->spec;
        if (!takes_part(c, w, only))
            continue;
        wg_tensor *t = wg_cast(wg_randn(&generator, WG_F64, spec->ndim, spec->shape), spec->dtype);
        tangents[c->wanted[w]] = t;
        wg__read_doubles(t, f->direction + c->wanted_at[w]);
    }
}

static int read_tangents(forward *f, wg_tensor *const *found) {
    const wg__gradcheck *c = f->c;
    for (int k = 0; k < c->weighted_count; k++) {
        const wg_tensor *t = found[c->weighted[k]];
        const wg_spec *spec = &c->output_specs[c->weighted[k]];
        if (!t || !wg__same_shape(&t->spec, spec) || t->spec.dtype != spec->dtype)
            return wg__gradcheck_fail(
                f->c, WG_DIAGNOSIS_FORWARD_MODE, -1,
                "the tangent of output %d is missing, or of another shape or dtype",
                c->weighted[k]);
        wg__read_doubles(found[c->weighted[k]], f->tangent + c->weighted_at[k]);
    }
    return 0;
}

/* The values must be those of a run without tangents. */
static int compare_values(forward *f, wg_tensor *const *outputs) {
    wg__gradcheck *c = f->c;
    for (int k = 0; k < c->weighted_count; k++) {
        int64_t count = wg_tensor_count(outputs[c->weighted[k]]);
        wg__read_doubles(wg_detach(outputs[c->weighted[k]]), c->plus);
        if (wg__gradcheck_unlike(c, count, c->plus, c->values + c->weighted_at[k], 1) >= 0)
            return wg__gradcheck_fail(c, WG_DIAGNOSIS_FORWARD_MODE, -1,
                                      "under forward mode output %d has other values",
                                      c->weighted[k]);
    }
    return 0;
}

static int run_forward_mode(forward *f, int only) {
    wg__gradcheck *c = f->c;
    wg_tensor **tangents =
        wg__calloc((size_t)(c->argument_count + 2 * c->output_count) + 1, sizeof *tangents);
    if (!tangents)
        return wg__gradcheck_no_memory(c);
    wg_tensor **found = tangents + c->argument_count, **outputs = found + c->output_count;
    wg_scope scope;
    wg_scope_begin(&scope);
    make_tangents(f, only, tangents);
    int status = wg_jvp(c->function, c->context, c->argument_count, c->inputs, tangents,
                        c->output_count, outputs, found);
    if (status < 0 || wg_error_pending())
        status = wg__gradcheck_fail(c, WG_DIAGNOSIS_FORWARD_MODE, -1, "forward mode failed");
    else
        status = compare_values(f, outputs) < 0 ? -1 : read_tangents(f, found);
    wg_scope_end(&scope, NULL);
    wg__free(tangents);
    return status;
}

/* Out of the Jacobian where there is one: it knows the kinks. */
static int difference_along(forward *f) {
    wg__gradcheck *c = f->c;
    if (!c->jacobian) {
        int status = wg__gradcheck_slope(c, f->direction, -1, c->options.eps);
        memcpy(f->numeric, c->slopes, (size_t)c->value_count * sizeof(double));
        memset(f->radius, 0, (size_t)c->value_count * sizeof(double));
        return status;
    }
    for (int64_t i = 0; i < c->value_count; i++) {
        f->numeric[i] = f->radius[i] = 0;
        for (int64_t at = 0; at < c->coordinate_count; at++) {
            f->numeric[i] += f->direction[at] * c->numeric_jacobian[at * c->value_count + i];
            f->radius[i] += fabs(f->direction[at]) * c->spread[at * c->value_count + i];
        }
    }
    return 0;
}

/* "; forward = 0.5 * numeric", if that is so. */
static void explain_tangents(const forward *f, char *buffer, size_t size) {
    const wg__gradcheck *c = f->c;
    double products = 0, squares = 0;
    for (int64_t i = 0; i < c->value_count; i++) {
        products += f->numeric[i] * f->tangent[i];
        squares += f->numeric[i] * f->numeric[i];
    }
    double factor = products / squares;
    bool all = c->value_count > 1 && isfinite(factor);
    for (int64_t i = 0; all && i < c->value_count; i++)
        all = wg__gradcheck_agrees(c, factor * f->numeric[i], f->tangent[i], f->radius[i]);
    buffer[0] = '\0';
    if (all)
        snprintf(buffer, size, "; forward = %.5g * numeric in all of them", factor);
}

static int compare_tangents(forward *f, int only) {
    wg__gradcheck *c = f->c;
    double forward_sum = 0, reverse_sum = 0, scale = 1;
    for (int64_t i = 0; i < c->value_count; i++) {
        if (!wg__gradcheck_agrees(c, f->numeric[i], f->tangent[i], f->radius[i])) {
            int k = wg__gradcheck_output_of(c, i);
            const wg_spec *y = &c->output_specs[c->weighted[k]];
            int64_t index[WG_MAX_DIMS];
            char at[128], what[64];
            wg__unravel(i - c->weighted_at[k], y->ndim, y->shape, index);
            explain_tangents(f, what, sizeof what);
            return wg__gradcheck_fail(
                c, WG_DIAGNOSIS_FORWARD_MODE, only < 0 ? -1 : c->wanted[only],
                "along random tangents, the tangent of output %d at %s: numeric "
                "%.9g, forward %.9g%s",
                c->weighted[k], wg__index_text(at, sizeof at, y->ndim, index), f->numeric[i],
                f->tangent[i], what);
        }
        forward_sum += c->weight_values[i] * f->tangent[i];
        scale += fabs(c->weight_values[i] * f->tangent[i]);
    }
    for (int64_t at = 0; at < c->coordinate_count; at++)
        reverse_sum += c->analytic[at] * f->direction[at];
    if (c->kinks > 0 ||
        fabs(forward_sum - reverse_sum) <= (c->dtype == WG_F64 ? 1e-10 : 1e-4) * scale)
        return 0;
    return wg__gradcheck_fail(
        c, WG_DIAGNOSIS_FORWARD_MODE, only < 0 ? -1 : c->wanted[only],
        "along random tangents, weighted by random cotangents: forward mode gives "
        "%.12g, reverse mode %.12g",
        forward_sum, reverse_sum);
}

static int forward_mode(wg__gradcheck *c) {
    size_t values = (size_t)c->value_count, coordinates = (size_t)c->coordinate_count;
    double *room = wg__alloc((coordinates + 3 * values + 1) * sizeof *room);
    if (!room)
        return wg__gradcheck_no_memory(c);
    forward f = {c, room, room + coordinates, room + coordinates + values,
                 room + coordinates + 2 * values};
    int status = 0;
    for (int only = -1; only < (c->wanted_count > 1 ? c->wanted_count : 0) && status == 0; only++) {
        bool any = false;
        for (int w = 0; w < c->wanted_count; w++)
            any |= takes_part(c, w, only);
        if (!any)
            continue;
        status = run_forward_mode(&f, only);
        if (status == 0)
            status = difference_along(&f);
        if (status == 0)
            status = compare_tangents(&f, only);
        c->report->forward = true;
    }
    wg__free(room);
    return status;
}

/* ---- One function ---- */

static int check_all(wg__gradcheck *c) {
    if (wg__gradcheck_prepare(c) < 0 || wg__gradcheck_measure(c) < 0 ||
        wg__gradcheck_conduct_before(c) < 0)
        return -1;
    bool compares = c->coordinate_count > 0;
    if (compares && wg__gradcheck_differences(c) < 0)
        return -1;
    if (compares)
        c->report->order = 1;
    if (!c->derived && wg__gradcheck_conduct_after(c) < 0)
        return -1;
    if (c->layouts && wg__gradcheck_layouts(c) < 0)
        return -1;
    if (!compares || c->jumps)
        return 0;
    if (c->options.forward && forward_mode(c) < 0)
        return -1;
    return c->options.order > 1 && c->kinks == 0 ? order2(c) : 0;
}

static int judge(wg__gradcheck *c) {
    wg_gradcheck_report *r = c->report;
    const char *reason = c->options.zero_gradient;
    if (r->compared == 0)
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_NOTHING_COMPARED, -1,
                                  "no element of an %s input requires a gradient",
                                  wg_dtype_name(c->dtype));
    if (!c->nonzero && !reason)
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_ALL_ZERO, -1, "the gradients of all inputs");
    if (c->nonzero && reason)
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_NOT_ZERO, -1, "%.300s", reason);
    snprintf(r->message, sizeof r->message,
             "%lld coordinates agree, the worst to %.2g of the tolerance", (long long)r->compared,
             r->largest_error);
    return 0;
}

/* Inputs, and the parameters after them. */
static int check_function(wg__gradcheck *c, wg_tensor *const *inputs) {
    int parameters = c->options.parameter_count;
    wg_tensor **all = wg__calloc((size_t)(c->user_count + parameters) + 1, sizeof *all);
    if (!all)
        return wg__gradcheck_no_memory(c);
    for (int i = 0; i < c->user_count; i++)
        all[i] = inputs[i];
    for (int i = 0; i < parameters; i++)
        all[c->user_count + i] = c->options.parameters[i];
    c->inputs = all;
    c->input_count = c->user_count + parameters;
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = check_all(c);
    if (status == 0)
        status = judge(c);
    wg__gradcheck_free(c);
    wg_scope_end(&scope, NULL);
    wg__free(all);
    return status;
}

int wg_gradcheck(wg_function function, void *context, int input_count, wg_tensor *const *inputs,
                 int output_count, const wg_gradcheck_options *options,
                 wg_gradcheck_report *report) {
    wg_gradcheck_report own;
    wg__gradcheck c = {.function = function,
                       .context = context,
                       .argument_count = input_count,
                       .user_count = input_count,
                       .output_count = output_count,
                       .order = 1,
                       .options = with_defaults(options),
                       .report = report ? report : &own};
    c.dtype = c.options.f32 ? WG_F32 : WG_F64;
    if (!begin(&c.options, c.report))
        return -1;
    bool recording = wg_set_grad_enabled(true);
    int status = check_function(&c, inputs);
    wg_set_grad_enabled(recording);
    return end(status, c.report);
}

/* ---- Modules: a function whose parameters the checker finds in the module ---- */

/* The user's function, with the same random numbers each time. */
typedef struct replayed {
    wg_function function;
    void *context;
    wg_module *module;
    wg_generator generator;
} replayed;

static int replay(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                  void *context) {
    replayed *r = context;
    *wg_module_generator(r->module) = r->generator;
    return r->function(input_count, inputs, output_count, outputs, r->context);
}

/* The dtype of its parameters; f32 for none. */
static wg_dtype dtype_of(const wg_state_dict *state) {
    for (int64_t i = 0; i < state->count; i++)
        if (state->entries[i].slot->kind == WG_SLOT_PARAMETER)
            return wg_tensor_dtype(state->entries[i].slot->tensor);
    return WG_F32;
}

static int check_module(replayed *r, const wg_state_dict *state, int input_count,
                        wg_tensor *const *inputs, int output_count, wg_gradcheck_options options,
                        wg_gradcheck_report *report) {
    wg_tensor **parameters = wg__calloc((size_t)state->count + 1, sizeof *parameters);
    const char **names = wg__calloc((size_t)state->count + 1, sizeof *names);
    int status = parameters && names ? 0 : -1;
    for (int64_t i = 0; i < state->count && status == 0; i++) {
        const wg_slot *slot = state->entries[i].slot;
        if (slot->kind != WG_SLOT_PARAMETER || slot->tied)
            continue;
        names[options.parameter_count] = state->entries[i].path;
        parameters[options.parameter_count++] = slot->tensor;
    }
    options.parameters = parameters;
    options.parameter_names = names;
    if (status == 0)
        status = wg_gradcheck(replay, r, input_count, inputs, output_count, &options, report);
    wg__free(parameters);
    wg__free(names);
    return status;
}

/* Also after a failure, whose error has to stay. */
static int cast_back(wg_module *module, wg_dtype dtype, int status,
                     const wg_gradcheck_report *report) {
    if (status == 0)
        return wg_module_to(module, dtype);
    wg_error_clear();
    return wg_module_to(module, dtype) < 0
               ? -1
               : wg_fail(WG_ERROR_GRADIENT, "gradcheck", "%s", report->message);
}

int wg_gradcheck_module(wg_module *module, wg_function function, void *context, int input_count,
                        wg_tensor *const *inputs, int output_count,
                        const wg_gradcheck_options *options, wg_gradcheck_report *report) {
    wg_gradcheck_options given = options ? *options : (wg_gradcheck_options){0};
    wg_gradcheck_report own;
    report = report ? report : &own;
    *report = (wg_gradcheck_report){.seed = given.seed, .diagnosis = WG_DIAGNOSIS_FAILED};
    if (!module || wg_error_pending())
        return -1;
    if (given.parameter_count > 0)
        return wg_fail(WG_ERROR_ARGUMENT, "gradcheck_module",
                       "options list %d parameters; the module has its own", given.parameter_count);
    wg_state_dict *state = wg_module_state(module);
    if (!state)
        return -1;
    replayed r = {function, context, module, *wg_module_generator(module)};
    wg_dtype before = dtype_of(state);
    int status = wg_module_to(module, given.f32 ? WG_F32 : WG_F64);
    if (status == 0) {
        status = check_module(&r, state, input_count, inputs, output_count, given, report);
        status = cast_back(module, before, status, report);
    }
    *wg_module_generator(module) = r.generator;
    wg_state_dict_free(state);
    return status;
}

/* ---- Ops, on their samples and on variants of them ---- */

/* Failed samples that are looked at, for the one that explains best. */
enum { MAX_FAILURES = 4 };

typedef struct op_check {
    const wg_op *op;
    wg_gradcheck_options options; /* with defaults */
    wg_gradcheck_report *report;  /* totals, and the worst or the best explained failure */
    int failures;
    double merit; /* of the failure in the report */
    bool nonzero; /* some gradient was not zero */
} op_check;

/* The context of apply_sample. */
typedef struct sampled_op {
    const wg_op *op;
    const void *options;
} sampled_op;

static int apply_sample(int input_count, wg_tensor *const *inputs, int output_count,
                        wg_tensor **outputs, void *context) {
    (void)output_count;
    const sampled_op *sampled = context;
    return wg_apply(sampled->op, input_count, inputs, sampled->options, outputs);
}

/* The explained failure of the sample with the most coordinates has the highest merit. */
static double merit(const wg_gradcheck_report *r) {
    switch (r->diagnosis) {
    case WG_DIAGNOSIS_WRONG:
    case WG_DIAGNOSIS_LOCAL:
    case WG_DIAGNOSIS_FAILED:
    case WG_DIAGNOSIS_JUMP:
        return (double)r->compared;
    default:
        return 1e12 + (double)r->compared;
    }
}

static void merge(op_check *o, const wg_gradcheck_report *one) {
    wg_gradcheck_report *all = o->report, kept = *all;
    bool first_failure = !one->passed && all->passed;
    bool better =
        one->passed ? all->passed && (all->compared == 0 || one->largest_error > all->largest_error)
                    : first_failure || merit(one) > o->merit;
    if (better)
        *all = *one;
    if (better && !one->passed)
        o->merit = merit(one);
    all->samples = kept.samples;
    all->variants = kept.variants + one->variants;
    all->refused = kept.refused + one->refused;
    all->order = one->order > kept.order ? one->order : kept.order;
    all->forward = kept.forward || one->forward;
    all->compared = kept.compared + one->compared;
    all->kinks = kept.kinks + one->kinks;
    all->largest_error = fmax(kept.largest_error, one->largest_error);
    all->largest_absolute_error = fmax(kept.largest_absolute_error, one->largest_absolute_error);
}

static wg__gradcheck check_of(const op_check *o, const wg_sample *sample, sampled_op *sampled,
                              wg_gradcheck_report *report) {
    *sampled = (sampled_op){o->op, sample->options};
    return (wg__gradcheck){.function = apply_sample,
                           .context = sampled,
                           .op = o->op,
                           .argument_count = sample->input_count,
                           .user_count = sample->input_count,
                           .input_count = sample->input_count,
                           .inputs = sample->inputs,
                           .output_count = o->op->output_count,
                           .order = 1,
                           .dtype = o->options.f32 ? WG_F32 : WG_F64,
                           .options = o->options,
                           .report = report};
}

/* Floating inputs are cast to the checked dtype, and require a gradient where the op has one. */
static void make_leaves(const op_check *o, wg_sample *sample) {
    for (int i = 0; i < sample->input_count; i++) {
        wg_tensor *x = sample->inputs[i];
        if (!x)
            continue;
        if (o->options.f32 && wg_tensor_dtype(x) == WG_F64)
            x = wg_cast(x, WG_F32);
        wg_dtype checked = o->options.f32 ? WG_F32 : WG_F64;
        x = wg_detach(x);
        if (o->op->differentiable >> i & 1 && wg_tensor_dtype(x) == checked)
            wg_set_requires_grad(x, true);
        sample->inputs[i] = x;
    }
}

/* True when the op takes these inputs and gives numbers; an error that says it does not is no
 * failure of a variant. */
static bool is_taken(const op_check *o, const wg_sample *sample) {
    wg_tensor *outputs[WG_MAX_OUTPUTS];
    wg_scope scope;
    wg_scope_begin(&scope);
    bool taken =
        wg_apply(o->op, sample->input_count, sample->inputs, sample->options, outputs) == 0;
    for (int j = 0; taken && j < o->op->output_count; j++) {
        if (!wg_dtype_is_float(wg_tensor_dtype(outputs[j])))
            continue;
        wg_tensor *finite = wg_eq(wg_sub(wg_detach(outputs[j]), wg_detach(outputs[j])),
                                  wg_scalar(wg_tensor_dtype(outputs[j]), 0));
        wg_tensor *all = wg_sum(wg_cast(finite, WG_F64), 0, NULL, false);
        taken = wg_item(all) == (double)wg_tensor_count(outputs[j]);
    }
    const wg_error *error = wg_error_pending();
    bool refused = error && (error->code == WG_ERROR_SHAPE || error->code == WG_ERROR_DTYPE ||
                             error->code == WG_ERROR_INDEX || error->code == WG_ERROR_ARGUMENT);
    if (refused)
        wg_error_clear();
    wg_scope_end(&scope, NULL);
    return taken || (error && !refused); /* the check itself reports other errors */
}

static int check_one(op_check *o, const wg_sample *sample, int number, const char *variant,
                     bool layouts, wg_gradcheck_report *report) {
    sampled_op sampled;
    wg__gradcheck c = check_of(o, sample, &sampled, report);
    c.derived = variant[0] != '\0';
    c.layouts = layouts;
    report->sample = number;
    snprintf(report->variant, sizeof report->variant, "%s", variant);
    if (c.derived)
        c.options.order = 1;
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = check_all(&c);
    o->nonzero |= c.nonzero;
    wg__gradcheck_free(&c);
    wg_scope_end(&scope, NULL);
    return status;
}

/* Checks only that the results are the same bits at any number of threads. */
static int check_grown(op_check *o, const wg_sample *sample, int number, const char *variant,
                       wg_gradcheck_report *report) {
    sampled_op sampled;
    wg__gradcheck c = check_of(o, sample, &sampled, report);
    report->sample = number;
    snprintf(report->variant, sizeof report->variant, "%s", variant);
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = wg__gradcheck_prepare(&c);
    if (status == 0)
        status = wg__gradcheck_measure(&c);
    if (status == 0 && c.wanted_count > 0)
        status = wg__gradcheck_gradient(&c, &(wg__pull_options){0}, c.analytic);
    if (status == 0)
        status = wg__gradcheck_threads(&c);
    wg__gradcheck_free(&c);
    wg_scope_end(&scope, NULL);
    return status;
}

static wg_gradcheck_report blank(const op_check *o) {
    return (wg_gradcheck_report){.passed = true,
                                 .seed = o->options.seed,
                                 .sample = -1,
                                 .input = -1,
                                 .output = -1,
                                 .axis = -1};
}

/* The verdict on a sample or a variant that could not be made. */
static int cannot_be_made(op_check *o, int sample, const char *variant) {
    wg_gradcheck_report report = blank(o);
    wg__gradcheck c = {.op = o->op, .order = 1, .report = &report, .user_count = WG_MAX_INPUTS};
    report.sample = sample;
    snprintf(report.variant, sizeof report.variant, "%s", variant);
    wg__gradcheck_fail(&c, WG_DIAGNOSIS_FAILED, -1, "cannot be made");
    merge(o, &report);
    return -1;
}

/* Returns as check_one does; a variant that is refused passes. */
static int check_variant(op_check *o, wg_sample *variant, int sample, const char *name,
                         bool grown) {
    wg_gradcheck_report report = blank(o);
    int status = 0;
    make_leaves(o, variant);
    if (wg_error_pending() || is_taken(o, variant)) {
        report.variants = 1;
        status = grown ? check_grown(o, variant, sample, name, &report)
                       : check_one(o, variant, sample, name, false, &report);
    } else {
        report.refused = 1;
    }
    merge(o, &report);
    return status;
}

static int check_variants(op_check *o, const wg_sample *sample, int number) {
    int status = 0, more = 1;
    for (int grown = 0; grown < (number == 0 ? 2 : 1); grown++)
        for (int v = 0; status == 0; v++) {
            char name[64] = "";
            wg_sample variant;
            wg_scope scope;
            wg_scope_begin(&scope);
            more = grown ? wg__variant_grown(o->op, v, sample, &variant, name, sizeof name)
                         : wg__variant_of_shape(o->op, v, sample, &variant, name, sizeof name);
            if (wg_error_pending())
                status = cannot_be_made(o, number, name);
            else if (more > 0)
                status = check_variant(o, &variant, number, name, grown);
            wg_scope_end(&scope, NULL);
            if (more == 0)
                break;
        }
    return status;
}

/* Returns as op->sample does: 1, 0 after the last sample, -1 when nothing more is to be learnt. */
static int check_next_sample(op_check *o, int index) {
    wg_generator generator = {.seed = o->options.seed, .offset = (uint64_t)index << 16};
    wg_sample sample = {0};
    wg_gradcheck_report report = blank(o);
    wg_scope scope;
    wg_scope_begin(&scope);
    int more = o->op->sample(index, &generator, &sample), status = 0;
    make_leaves(o, &sample);
    if (more < 0 || wg_error_pending()) {
        status = cannot_be_made(o, index, "");
        more = -1;
    } else if (more > 0) {
        status = check_one(o, &sample, index, "", !o->options.no_variants, &report);
        merge(o, &report);
    }
    if (more > 0 && status == 0 && o->failures == 0 && !o->options.no_variants)
        status = check_variants(o, &sample, index);
    wg_scope_end(&scope, NULL);
    o->failures += status < 0;
    return o->failures >= MAX_FAILURES ? -1 : more;
}

static int refuse(op_check *o, wg_diagnosis diagnosis, const char *what) {
    wg__gradcheck c = {.op = o->op, .order = 1, .report = o->report, .user_count = WG_MAX_INPUTS};
    o->report->sample = -1;
    return wg__gradcheck_fail(&c, diagnosis, -1, "%s", what);
}

static int judge_op(op_check *o) {
    const wg_op *op = o->op;
    wg_gradcheck_report *r = o->report;
    const char *reason = op->zero_gradient ? op->zero_gradient : o->options.zero_gradient;
    if (!r->passed)
        return -1;
    if (r->samples == 0)
        return refuse(o, WG_DIAGNOSIS_FAILED, "it has no samples");
    if (!op->differentiable) {
        snprintf(r->message, sizeof r->message, "no gradient: %.400s", op->no_gradient);
        return 0;
    }
    if (r->compared == 0)
        return refuse(o, WG_DIAGNOSIS_NOTHING_COMPARED,
                      "no sample has an f64 input that is differentiable");
    if (!o->nonzero && !reason)
        return refuse(o, WG_DIAGNOSIS_ALL_ZERO, "the gradients of all samples");
    if (o->nonzero && reason)
        return refuse(o, WG_DIAGNOSIS_NOT_ZERO, reason);
    snprintf(
        r->message, sizeof r->message,
        "%d samples and %d variants, %lld coordinates agree, the worst to %.2g of the tolerance",
        r->samples, r->variants, (long long)r->compared, r->largest_error);
    return 0;
}

static int check_samples(op_check *o) {
    const wg_op *op = o->op;
    if (!op->sample)
        return refuse(o, WG_DIAGNOSIS_FAILED, "it has no samples");
    if (op->differentiable ? !op->vjp && !wg_op_is_composite(op) : !op->no_gradient)
        return refuse(o, WG_DIAGNOSIS_FAILED, "it has neither vjp nor a reason for having none");
    int more = 1;
    bool recording = wg_set_grad_enabled(true);
    for (int k = 0; more > 0; k++) {
        more = check_next_sample(o, k);
        o->report->samples += more != 0;
    }
    wg_set_grad_enabled(recording);
    return judge_op(o);
}

int wg_gradcheck_op(const wg_op *op, const wg_gradcheck_options *options,
                    wg_gradcheck_report *report) {
    wg_gradcheck_report own;
    op_check o = {.op = op, .options = with_defaults(options), .report = report ? report : &own};
    if (!begin(&o.options, o.report))
        return -1;
    return end(check_samples(&o), o.report);
}

/* ---- Ops in a shared library of the user's ---- */

/* Its ops have to run on the very library that checks them. */
static bool shares_library(void *handle) {
    void *symbol = dlsym(handle, "wg_op_count");
    int (*theirs)(void);
    memcpy(&theirs, &symbol, sizeof theirs);
    return theirs == wg_op_count;
}

static const wg_op_library *find_ops(void *handle, const char *path) {
    const wg_op_library *library = dlsym(handle, "wengert_ops");
    if (!library)
        wg_fail(WG_ERROR_FORMAT, "op_library",
                "%s exports no ops: it needs WG_EXPORT_OPS(&op, ...) outside of its "
                "functions",
                path);
    else if (!shares_library(handle))
        wg_fail(WG_ERROR_FORMAT, "op_library",
                "%s runs on another copy of libwengert than this command: link it with the library "
                "that the command is linked with (a command built with --disable-shared can load "
                "no ops)",
                path);
    else if (library->op_size != sizeof(wg_op) || library->call_size != sizeof(wg_call) ||
             library->sample_size != sizeof(wg_sample))
        wg_fail(
            WG_ERROR_FORMAT, "op_library",
            "%s was compiled against the headers of another version of wengert: compile it anew",
            path);
    else
        return library;
    return NULL;
}

const wg_op *const *wg_op_library_open(const char *path) {
    char with_slash[4096]; /* without one, dlopen would search the system's folders */
    snprintf(with_slash, sizeof with_slash, "%s%s", strchr(path, '/') ? "" : "./", path);
    if (access(with_slash, R_OK) < 0) {
        wg_fail(WG_ERROR_NOT_FOUND, "op_library", "%s cannot be read", path);
        return NULL;
    }
    void *handle = dlopen(with_slash, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        wg_fail(WG_ERROR_FORMAT, "op_library",
                "%s is no shared library that can be opened: %s; compile it as in cc -shared "
                "-fPIC my_op.c -o my_op.so $(pkg-config --cflags --libs wengert)",
                path, dlerror());
        return NULL;
    }
    const wg_op_library *library = find_ops(handle, path);
    if (!library)
        dlclose(handle);
    return library ? library->ops : NULL;
}
