/* The dispatcher wg_apply: checks the operands, runs an op and records it. */
#include "tensor/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tensor/internal.h"
#include "tensor/span.h"

int (*_Atomic wg__anomaly_check)(const wg_call *call);

WG__THREAD_LOCAL bool wg__checks_anomalies;

int wg__op_fail(const wg_call *call, wg_error_code code, const char *format, ...) {
    char operands[512], rule[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(rule, sizeof rule, format, arguments);
    va_end(arguments);
    return wg_fail(
        code, call->op->name, "%s: %s",
        wg__operands_text(operands, sizeof operands, call->input_count, call->input_specs), rule);
}

static bool has_outputs(const wg_call *call) {
    for (int j = 0; j < call->output_count; j++)
        if (!call->outputs[j])
            return false;
    return true;
}

WG__NOINLINE static void close_span(wg__span *span, const wg_call *call, int status) {
    double bytes = wg__bytes_of(call->input_count, call->inputs);
    bytes += wg__bytes_of(status == 0 ? call->output_count : 0, call->outputs);
    wg__span_close(span, call->op->is_view ? 0 : bytes, call->input_count, call->input_specs);
}

/* Checks the operands and fills in a call. Returns whether an input carries tangents. -1 with
 * ARGUMENT, or STATE if an input has no memory. */
static int begin_call(wg_call *call, const wg_op *op, int input_count, wg_tensor *const *inputs,
                      wg_spec *specs, const void *options) {
    if (op->max_inputs > WG_MAX_INPUTS)
        return wg_fail(WG_ERROR_ARGUMENT, op->name,
                       "its record says up to %d operands; an op takes at most %d", op->max_inputs,
                       WG_MAX_INPUTS);
    if (input_count < op->min_inputs || input_count > op->max_inputs)
        return wg_fail(WG_ERROR_ARGUMENT, op->name, "%d operands; it takes %d to %d", input_count,
                       op->min_inputs, op->max_inputs);
    if (op->options_size && !options)
        return wg_fail(WG_ERROR_ARGUMENT, op->name, "its options are NULL");
    for (int i = 0; i < input_count; i++)
        if (!inputs[i] && i < op->min_inputs)
            return wg_error_pending()
                       ? -1
                       : wg_fail(WG_ERROR_ARGUMENT, op->name, "operand %d is NULL", i);

    bool dual = false;
    for (int i = 0; i < input_count; i++) {
        specs[i] = inputs[i] ? inputs[i]->spec : (wg_spec){.ndim = -1};
        if (!inputs[i])
            continue;
        dual |= inputs[i]->tangents != NULL;
        if (wg__tensor_is_meta(inputs[i]) &&
            !(inputs[i]->tangents && wg__forward->highest(inputs[i])))
            return wg__check_memory(inputs[i], op->name);
    }

    /* Member by member: the output specs, most of a call's bytes, stay unset. */
    call->op = op;
    call->options = options;
    call->input_count = input_count;
    call->inputs = inputs;
    call->input_specs = specs;
    call->output_count = op->output_count;
    memset(call->outputs, 0, sizeof call->outputs);
    memset(call->saved, 0, sizeof call->saved);
    call->wants = 0;
    const bool records = op->vjp && wg_grad_enabled();
    for (int i = 0; records && i < input_count; i++)
        if (inputs[i] && inputs[i]->node && op->differentiable >> i & 1)
            call->wants |= (uint32_t)1 << i;
    call->create_graph = call->last_use = false;
    return dual;
}

static int prepare_outputs(wg_call *call) {
    const wg_op *op = call->op;
    if (op->infer && op->infer(call) < 0)
        return -1;
    if (!op->forward || op->is_view || op->places_outputs)
        return 0;
    for (int j = 0; j < call->output_count; j++) {
        call->outputs[j] = wg__tensor_new(&call->output_specs[j]);
        if (!call->outputs[j])
            return -1;
    }
    return 0;
}

WG_COLD static int clear_outputs(const wg_op *op, wg_tensor **outputs) {
    for (int j = 0; j < op->output_count; j++)
        outputs[j] = NULL;
    return -1;
}

/* The whole run in one function, so that a kernel is one call below. */
int wg_apply(const wg_op *op, int input_count, wg_tensor *const *inputs, const void *options,
             wg_tensor **outputs) {
    wg_spec specs[WG_MAX_INPUTS];
    wg_call call;
    const int dual = begin_call(&call, op, input_count, inputs, specs, options);
    if (dual < 0)
        return clear_outputs(op, outputs);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg__span span = {.taken = false};
    if (op->forward)
        wg__span_begin(&span, op->name, WG_PROFILE_FORWARD);
    int status;
    if (dual && op->forward) {
        status = wg__forward->run_dual(&call);
    } else if (prepare_outputs(&call) < 0) {
        status = -1;
    } else if (!op->forward) {
        status = op->decompose(&call) < 0 || !has_outputs(&call) ? -1 : 0;
    } else {
        /* This op is recorded and checked for NaN, but not the ops that its kernel calls. */
        const bool was = wg_set_grad_enabled(false), checks = wg__checks_anomalies;
        wg__checks_anomalies = false;
        status = op->forward(&call);
        wg_set_grad_enabled(was);
        wg__checks_anomalies = checks;
        if (status < 0 || !has_outputs(&call) || (checks && wg__anomaly_check(&call) < 0))
            status = -1;
        else
            status = call.wants ? wg__autograd->record(&call) : 0;
    }
    if (span.taken)
        close_span(&span, &call, status);
    for (int j = 0; status == 0 && j < op->output_count; j++)
        outputs[j] = wg_scope_escape(call.outputs[j]);
    wg_scope_end(&scope, NULL);
    return status == 0 ? 0 : clear_outputs(op, outputs);
}

wg_tensor *wg_apply_one(const wg_op *op, int input_count, wg_tensor *const *inputs,
                        const void *options) {
    wg_tensor *outputs[WG_MAX_OUTPUTS];
    return wg_apply(op, input_count, inputs, options, outputs) < 0 ? NULL : outputs[0];
}

int wg_jvp_linear(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *inputs[WG_MAX_INPUTS];
    for (int i = 0; i < call->input_count; i++) {
        bool varies = call->op->differentiable >> i & 1 && call->inputs[i];
        inputs[i] = !varies       ? call->inputs[i]
                    : tangents[i] ? tangents[i]
                                  : wg_zeros_like(call->inputs[i]);
    }
    return wg_apply(call->op, call->input_count, inputs, call->options, output_tangents);
}
