/* The public functions of the checker, the order of its checks, and second order. gradcheck.h
 * explains the mathematics. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gradcheck/check.h"
#include "tensor/ops.h"

wg_gradcheck_options wg__gradcheck_defaults(const wg_gradcheck_options *options) {
    wg_gradcheck_options o = options ? *options : (wg_gradcheck_options){0};
    o.eps = o.eps > 0 ? o.eps : o.f32 ? 1.0 / 256 : 1e-6;
    o.atol = wg__option(o.atol, o.f32 ? 1e-3 : 1e-6);
    o.rtol = wg__option(o.rtol, o.f32 ? 1e-2 : 1e-5);
    o.order = o.order > 0 ? o.order : 1;
    return o;
}

wg_gradcheck_report wg__gradcheck_report(uint64_t seed) {
    return (wg_gradcheck_report){.passed = true,
                                 .function = "",
                                 .seed = seed,
                                 .sample = -1,
                                 .input = -1,
                                 .output = -1,
                                 .axis = -1};
}

void wg__gradcheck_merge(wg_gradcheck_report *all, const wg_gradcheck_report *one, bool replaces) {
    const wg_gradcheck_report before = *all;
    if (replaces)
        *all = *one;
    all->samples = before.samples;
    all->variants = before.variants + one->variants;
    all->refused = before.refused + one->refused;
    all->order = one->order > before.order ? one->order : before.order;
    all->forward = before.forward || one->forward;
    all->compared = before.compared + one->compared;
    all->kinks = before.kinks + one->kinks;
    all->largest_error = fmax(before.largest_error, one->largest_error);
    all->largest_absolute_error = fmax(before.largest_absolute_error, one->largest_absolute_error);
}

int wg__gradcheck_end(int status, wg_gradcheck_report *report) {
    if (status == 0)
        return 0;
    wg_error_clear();
    return wg_fail(WG_ERROR_GRADIENT, "gradcheck", "%s", report->message);
}

bool wg__gradcheck_begin(const wg_gradcheck_options *options, wg_gradcheck_report *report) {
    *report = wg__gradcheck_report(options->seed);
    if (!wg_error_pending() && options->order <= 2)
        return true;
    report->passed = false;
    report->diagnosis = WG_DIAGNOSIS_FAILED;
    if (wg_error_pending()) {
        snprintf(report->message, sizeof report->message, "refused: an error is pending");
        return false;
    }
    snprintf(report->message, sizeof report->message, "order %d; wanted 1 or 2", options->order);
    wg__gradcheck_end(-1, report);
    return false;
}

/* Second order is first order of another function:
 *
 *     (inputs, cotangents of the outputs)  ->  the gradients of the wanted inputs
 *
 * Its backward differentiates the recorded backward of the first function. All cotangents here are
 * views that are not contiguous. */

/* Reads its inputs from `context`, the check of first order: the checker moves them in place. */
static int gradient_function(int input_count, wg_tensor *const *inputs, int output_count,
                             wg_tensor **outputs, void *context) {
    (void)input_count, (void)inputs, (void)output_count;
    wg__gradcheck again = *(const wg__gradcheck *)context;
    wg_gradcheck_report ignored = *again.report;
    again.report = &ignored;
    again.outputs = wg__calloc((size_t)again.output_count + 1, sizeof *outputs);
    if (!again.outputs)
        return -1;
    int status = again.function(again.user_count, again.inputs, again.output_count, again.outputs,
                                again.context);
    if (status == 0)
        status = wg__gradcheck_pull_tensors(&again, &(wg_backward_options){.create_graph = true},
                                            outputs);
    wg__free(again.outputs);
    return status;
}

static int order2(wg__gradcheck *first) {
    int weights = first->weighted.count, inputs = first->input_count;
    wg_tensor **all = wg__calloc((size_t)(inputs + wg__times(2, weights) + 1), sizeof *all);
    if (!all)
        return wg__gradcheck_no_memory(first);
    wg_tensor **plain = all + inputs + weights;
    memcpy(all, first->inputs, (size_t)inputs * sizeof *all);
    memcpy(plain, first->weighted.tensors, (size_t)weights * sizeof *all);
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int k = 0; k < weights; k++) {
        first->weighted.tensors[k] = wg__layout_strided(plain[k]);
        wg_set_requires_grad(first->weighted.tensors[k], true);
        all[inputs + k] = first->weighted.tensors[k];
    }
    wg__gradcheck second = {.function = gradient_function,
                            .context = first,
                            .user_count = first->user_count,
                            .input_count = inputs + weights,
                            .inputs = all,
                            .output_count = first->wanted.count,
                            .order = 2,
                            .derived = first->derived,
                            .dtype = first->dtype,
                            .options = first->options,
                            .report = first->report};
    int status = wg__gradcheck_prepare(&second);
    /* Recording must not change the gradient: without it a fused op has the gradient of its
     * kernels, with it the gradient of its decomposition. */
    int64_t at = status < 0 ? -1
                            : wg__gradcheck_unlike(first, first->wanted.elements, second.values,
                                                   first->sums.analytic, 1);
    if (at >= 0) {
        char name[160];
        int input = first->wanted.index[wg__selection_find(&first->wanted, at)];
        status = wg__gradcheck_fail(&second, WG_DIAGNOSIS_RECORDED, input,
                                    "the gradient of %s is %.9g with create_graph, %.9g without",
                                    wg__gradcheck_input_text(name, sizeof name, first, input),
                                    second.values[at], first->sums.analytic[at]);
    }
    if (status == 0)
        status = wg__gradcheck_conduct_before(&second);
    if (status == 0 && second.wanted.elements > 0)
        status = wg__gradcheck_differences(&second);
    if (second.report->order < 2 && status == 0)
        second.report->order = 2;
    wg__gradcheck_free(&second);
    memcpy(first->weighted.tensors, plain, (size_t)weights * sizeof *plain);
    wg_scope_end(&scope, NULL);
    wg__free(all);
    return status;
}

int wg__gradcheck_all(wg__gradcheck *c) {
    if (wg__gradcheck_prepare(c) < 0 || wg__gradcheck_conduct_before(c) < 0 ||
        wg__gradcheck_decomposed_values(c) < 0)
        return -1;
    bool compares = c->wanted.elements > 0;
    if (compares && wg__gradcheck_differences(c) < 0)
        return -1;
    if (compares)
        c->report->order = 1;
    if (!c->derived && wg__gradcheck_conduct_after(c) < 0)
        return -1;
    if (c->op && !c->derived && !c->options.no_variants &&
        (wg__gradcheck_layouts(c) < 0 || wg__gradcheck_layouts_in_f32(c) < 0 ||
         wg__gradcheck_leaves_alone(c) < 0))
        return -1;
    if (wg__gradcheck_decomposed_gradient(c) < 0)
        return -1;
    bool has_jvp = c->op && c->op->jvp;
    if (compares && !c->found.jumps && (c->options.forward || has_jvp) &&
        wg__gradcheck_forward_mode(c, c->options.forward) < 0)
        return -1;
    if (wg__gradcheck_f32(c, false) < 0)
        return -1;
    if (!compares || c->found.jumps)
        return 0;
    return c->options.order > 1 && c->found.kinks == 0 ? order2(c) : 0;
}

int wg_gradcheck(wg_function function, void *context, int input_count, wg_tensor *const *inputs,
                 int output_count, const wg_gradcheck_options *options,
                 wg_gradcheck_report *report) {
    wg_gradcheck_report own = {0}, *r = report ? report : &own;
    wg__gradcheck c = {.function = function,
                       .context = context,
                       .user_count = input_count,
                       .output_count = output_count,
                       .order = 1,
                       .options = wg__gradcheck_defaults(options),
                       .report = r};
    const char *reason = c.options.zero_gradient;
    c.dtype = c.options.f32 ? WG_F32 : WG_F64;
    c.input_count = input_count + c.options.parameter_count; /* the parameters come last */
    if (!wg__gradcheck_begin(&c.options, r))
        return -1;
    wg_tensor **all = wg__calloc((size_t)c.input_count + 1, sizeof *all);
    if (!all)
        return wg__gradcheck_end(wg__gradcheck_no_memory(&c), r);
    for (int i = 0; i < c.input_count; i++)
        all[i] = i < input_count ? inputs[i] : c.options.parameters[i - input_count];
    c.inputs = all;
    const bool recording = wg_set_grad_enabled(true);
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = wg__gradcheck_all(&c);
    if (status == 0 && r->compared == 0)
        status = wg__gradcheck_fail(&c, WG_DIAGNOSIS_NOTHING_COMPARED, -1,
                                    "no element of an %s input requires a gradient",
                                    wg_dtype_name(c.dtype));
    else if (status == 0 && !c.found.nonzero && !reason)
        status = wg__gradcheck_fail(&c, WG_DIAGNOSIS_ALL_ZERO, -1, "the gradients of all inputs");
    else if (status == 0 && c.found.nonzero && reason)
        status = wg__gradcheck_fail(&c, WG_DIAGNOSIS_NOT_ZERO, -1, "%.300s", reason);
    else if (status == 0)
        snprintf(r->message, sizeof r->message,
                 "%lld coordinates agree, the worst to %.2g of the tolerance",
                 (long long)r->compared, r->largest_error);
    wg__gradcheck_free(&c);
    wg_scope_end(&scope, NULL);
    wg_set_grad_enabled(recording);
    wg__free(all);
    return wg__gradcheck_end(status, r);
}

/* The user's function, which draws the same random numbers in each run. */
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

int wg_gradcheck_module(wg_module *module, wg_function function, void *context, int input_count,
                        wg_tensor *const *inputs, int output_count,
                        const wg_gradcheck_options *options, wg_gradcheck_report *report) {
    wg_gradcheck_options given = options ? *options : (wg_gradcheck_options){0};
    wg_gradcheck_report own = {0};
    report = report ? report : &own;
    *report =
        (wg_gradcheck_report){.seed = given.seed, .function = "", .diagnosis = WG_DIAGNOSIS_FAILED};
    if (!module || wg_error_pending())
        return -1;
    if (given.parameter_count > 0)
        return wg_fail(WG_ERROR_ARGUMENT, "gradcheck_module",
                       "options list %d parameters; the module has its own", given.parameter_count);
    wg_state_dict *state = wg_module_state(module);
    if (!state)
        return -1;
    replayed r = {function, context, module, *wg_module_generator(module)};
    wg_tensor **parameters = wg__calloc((size_t)state->count + 1, sizeof *parameters);
    const char **names = wg__calloc((size_t)state->count + 1, sizeof *names);
    wg_dtype before = WG_F32; /* of its parameters */
    for (int64_t i = state->count - 1; i >= 0; i--)
        if (state->entries[i].slot->kind == WG_SLOT_PARAMETER)
            before = wg_tensor_dtype(state->entries[i].slot->tensor);
    int status = parameters && names ? wg_module_to(module, given.f32 ? WG_F32 : WG_F64) : -1;
    if (status == 0) {
        for (int64_t i = 0; i < state->count; i++) {
            const wg_slot *slot = state->entries[i].slot;
            if (slot->kind != WG_SLOT_PARAMETER || slot->tied)
                continue;
            names[given.parameter_count] = state->entries[i].path;
            parameters[given.parameter_count++] = slot->tensor;
        }
        given.parameters = parameters;
        given.parameter_names = names;
        status = wg_gradcheck(replay, &r, input_count, inputs, output_count, &given, report);
        if (status < 0) /* wg_module_to refuses while an error is pending; it is recorded again */
            wg_error_clear();
        if (wg_module_to(module, before) < 0)
            status = -1;
        else if (status < 0)
            wg_fail(WG_ERROR_GRADIENT, "gradcheck", "%s", report->message);
    }
    *wg_module_generator(module) = r.generator;
    wg__free(parameters);
    wg__free(names);
    wg_state_dict_free(state);
    return status;
}

static int check_example(wg_module_sample *sample, const wg_gradcheck_options *options, int index,
                         wg_gradcheck_report *all) {
    wg_gradcheck_report one = {.function = ""};
    for (int i = 0; i < sample->input_count; i++) {
        wg_tensor *x = sample->inputs[i];
        if (!x || wg_tensor_dtype(x) != WG_F64)
            continue;
        sample->inputs[i] = wg_detach(options->f32 ? wg_cast(x, WG_F32) : x);
        wg_set_requires_grad(sample->inputs[i], true);
    }
    int status = wg_gradcheck_module(
        sample->module, sample->forward, sample->context ? sample->context : sample->module,
        sample->input_count, sample->inputs, sample->output_count ? sample->output_count : 1,
        options, &one);
    one.sample = index;
    if (status < 0 && !one.message[0])
        snprintf(one.message, sizeof one.message, "%s",
                 wg_error_pending() ? wg_error_pending()->message : "the sample has no module");
    wg__gradcheck_merge(all, &one, true);
    return status;
}

int wg_gradcheck_example(const wg_module_example *example, const wg_gradcheck_options *options,
                         wg_gradcheck_report *report) {
    wg_gradcheck_options o = options ? *options : (wg_gradcheck_options){0};
    wg_gradcheck_report own = {0};
    report = report ? report : &own;
    if (!wg__gradcheck_begin(&o, report))
        return -1;
    int status = 0, more = 1;
    for (int k = 0; more > 0 && status == 0; k++) {
        wg_generator generator = {.seed = o.seed, .offset = (uint64_t)k << 16};
        wg_module_sample sample = {0};
        wg_scope scope;
        wg_scope_begin(&scope);
        more = example->sample(k, &generator, &sample);
        if (more < 0 || wg_error_pending() || (more > 0 && !(sample.module && sample.forward))) {
            status = -1;
            report->diagnosis = WG_DIAGNOSIS_FAILED;
            snprintf(report->message, sizeof report->message,
                     "%.60s, sample %d cannot be made: %.900s", example->name, k,
                     wg_error_pending() ? wg_error_pending()->message
                                        : "wanted a module and its forward");
        } else if (more > 0) {
            status = check_example(&sample, &o, k, report);
            report->samples++;
        }
        wg_module_free(sample.module);
        wg_scope_end(&scope, NULL);
    }
    if (status == 0 && report->samples == 0) {
        status = -1;
        report->diagnosis = WG_DIAGNOSIS_FAILED;
        snprintf(report->message, sizeof report->message, "%s has no samples", example->name);
    }
    report->passed = status == 0;
    return wg__gradcheck_end(status, report);
}
