/* Checking the derivative of a function: the order of things. See gradcheck.h for the mathematics,
 * and gradcheck_check.h for where what is. */
#include "gradcheck/gradcheck.h"

#include <stdio.h>
#include <string.h>

#include "gradcheck/check.h"

/* ---- Options ---- */

static double either(double given, double otherwise) {
    return given > 0 ? given : otherwise;
}

wg_gradcheck_options wg__gradcheck_defaults(const wg_gradcheck_options *options) {
    wg_gradcheck_options o = options ? *options : (wg_gradcheck_options){0};
    o.eps = either(o.eps, o.f32 ? 1.0 / 256 : 1e-6);
    o.atol = either(o.atol, o.f32 ? 1e-3 : 1e-5);
    o.rtol = either(o.rtol, o.f32 ? 1e-2 : 1e-3);
    o.order = o.order > 0 ? o.order : 1;
    return o;
}

bool wg__gradcheck_begin(const wg_gradcheck_options *options, wg_gradcheck_report *report) {
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
        wg__gradcheck_end(-1, report);
        return false;
    }
    report->passed = true;
    report->diagnosis = WG_DIAGNOSIS_NONE;
    return true;
}

int wg__gradcheck_end(int status, wg_gradcheck_report *report) {
    if (status == 0)
        return 0;
    wg_error_clear();
    return wg_fail(WG_ERROR_GRADIENT, "gradcheck", "%s", report->message);
}

/* ---- One function ---- */

int wg__gradcheck_all(wg__gradcheck *c) {
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
    if (c->options.forward && wg__gradcheck_forward_mode(c) < 0)
        return -1;
    return c->options.order > 1 && c->kinks == 0 ? wg__gradcheck_order2(c) : 0;
}

static int judge(wg__gradcheck *c) {
    wg_gradcheck_report *r = c->report;
    const char *reason = c->options.zero_gradient;
    if (r->compared == 0)
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_NOTHING_COMPARED, -1,
                                  "no element of an %s input wants a gradient",
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
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the check itself");
    for (int i = 0; i < c->user_count; i++)
        all[i] = inputs[i];
    for (int i = 0; i < parameters; i++)
        all[c->user_count + i] = c->options.parameters[i];
    c->inputs = all;
    c->input_count = c->user_count + parameters;
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = wg__gradcheck_all(c);
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
                       .options = wg__gradcheck_defaults(options),
                       .report = report ? report : &own};
    c.dtype = c.options.f32 ? WG_F32 : WG_F64;
    if (!wg__gradcheck_begin(&c.options, c.report))
        return -1;
    bool recording = wg_set_grad_enabled(true);
    int status = check_function(&c, inputs);
    wg_set_grad_enabled(recording);
    return wg__gradcheck_end(status, c.report);
}
