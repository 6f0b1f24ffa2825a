/* One node of the walk back: its vjp, and what becomes of the gradients that it gives. */
#include "autograd/pass.h"

#include <string.h>

#include "autograd/anomaly.h"
#include "autograd/region.h"
#include "tensor/ops.h"
#include "tensor/span.h"

/* ---- Adding up ---- */

wg_tensor **wg__pass_cotangent_of(wg__pass *p, wg__edge edge) {
    wg__pass_entry *e = &p->entries[edge.node->slot];
    wg_tensor **place = &e->cotangents[edge.output_index];
    bool takes_gradient = p->input_count == 0 && !edge.node->op && !edge.node->hooks && !p->in_ops;
    if (takes_gradient && !e->holds_gradient) {
        e->holds_gradient = true;
        *place = edge.node->gradients[0];
        edge.node->gradients[0] = NULL;
    }
    return place;
}

static bool is_ours_to_write(const wg__pass *p, const wg_tensor *x) {
    return !p->in_ops && wg__tensor_is_sole(x) && wg_tensor_is_contiguous(x);
}

int wg__pass_put(wg_tensor **place, wg_tensor *sum) {
    wg_tensor *kept = sum ? wg__tensor_reference(sum, false) : NULL;
    if (!kept)
        return -1;
    wg_release(*place);
    *place = kept;
    return 0;
}

int wg__pass_accumulate(wg__pass *p, wg_tensor **place, wg_tensor *gradient) {
    if (!*place)
        return wg__pass_put(place, gradient);
    if (is_ours_to_write(p, *place))
        return wg_add_(*place, gradient, 1);
    return wg__pass_put(place, wg_add(*place, gradient));
}

/* ---- Running one node ---- */

/* A fused op whose gradient is to be differentiated again: its decomposition is recorded on
 * stand-ins for its inputs, where the walk of wg_grad ends, and that walk is recorded in turn. */
static int walk_decomposition(const wg__pass *p, wg_call *call, wg_tensor *const *cotangents,
                              wg_tensor **gradients) {
    wg_tensor *all[WG_MAX_INPUTS], *wanted[WG_MAX_INPUTS], *found[WG_MAX_INPUTS];
    int which[WG_MAX_INPUTS], wanted_count = 0, output_count = 0;
    for (int i = 0; i < call->input_count; i++) {
        all[i] = call->inputs[i];
        if (!(call->wants >> i & 1))
            continue;
        all[i] = wg__stand_in(call->inputs[i]);
        wanted[wanted_count] = all[i];
        which[wanted_count++] = i;
    }
    wg_call again = *call;
    again.inputs = all;
    memset(again.outputs, 0, sizeof again.outputs);
    if (call->op->decompose(&again) < 0)
        return -1;
    wg_tensor *outputs[WG_MAX_OUTPUTS], *weights[WG_MAX_OUTPUTS];
    for (int j = 0; j < call->output_count; j++) {
        if (!cotangents[j] || !wg_requires_grad(again.outputs[j]))
            continue;
        outputs[output_count] = again.outputs[j];
        weights[output_count++] = cotangents[j];
    }
    if (output_count == 0)
        return 0;
    wg_backward_options options = {.create_graph = p->create_graph};
    if (wg_grad(output_count, outputs, weights, wanted_count, wanted, &options, found) < 0)
        return -1;
    for (int k = 0; k < wanted_count; k++)
        gradients[which[k]] = found[k];
    return 0;
}

static int differentiate_decomposition(const wg__pass *p, wg_call *call,
                                       wg_tensor *const *cotangents, wg_tensor **gradients) {
    bool was = wg_set_grad_enabled(true);
    int status = walk_decomposition(p, call, cotangents, gradients);
    wg_set_grad_enabled(was);
    return status;
}

static int check_saved(const wg_node *node, const wg__saved *saved, const char *what, int index) {
    if (!saved->tensor || wg_tensor_version(saved->tensor) == saved->version)
        return 0;
    char text[128];
    return wg_fail(
        WG_ERROR_GRADIENT, "backward",
        "%s %d of %s, %s, was written in place after it was saved (version %llu, "
        "saved at %llu); write to a clone, or run backward first",
        what, index, node->op->name, wg_spec_text(text, sizeof text, &saved->tensor->spec),
        (unsigned long long)wg_tensor_version(saved->tensor), (unsigned long long)saved->version);
}

/* Whether a leaf may be written once this node has run. */
static bool frees_a_leaf(const wg__pass *p, const wg_node *node) {
    for (int i = 0; i < node->input_count && p->input_count == 0; i++)
        if (node->edges[i].node && node->edges[i].node->post_hooks)
            return true;
    return false;
}

/* The call that vjp sees. A saved output gets its node back, so that its use can be recorded.
 * A node that saves nothing can do without the second run of its region, but that run needs the
 * leaves as they were in the first. */
static int unpack(const wg__pass *p, wg_node *node, wg_call *call, wg_tensor **inputs) {
    const bool runs_again = node->lacks || (wg__region_waits(node) && frees_a_leaf(p, node));
    if (runs_again && wg__region_run_again(node) < 0)
        return -1;
    if (node->freed)
        return wg_fail(WG_ERROR_GRADIENT, "backward",
                       "what %s saved is freed: a second backward through one graph needs "
                       "retain_graph on the first",
                       node->op->name);
    wg__node_call(node, inputs, call);
    for (int i = 0; i < node->input_count; i++)
        if (check_saved(node, &node->inputs[i], "input", i) < 0)
            return -1;
    for (int j = 0; j < node->output_count; j++) {
        wg__saved *saved = &node->outputs[j];
        if (check_saved(node, saved, "output", j) < 0)
            return -1;
        if (!saved->tensor || !p->create_graph)
            continue;
        call->outputs[j] = wg_alias(saved->tensor);
        if (!call->outputs[j])
            return -1;
        wg__node_retain(node);
        call->outputs[j]->node = node;
        call->outputs[j]->output_index = j;
    }
    return 0;
}

static int check_gradient(const wg_node *node, int input, const wg_tensor *gradient) {
    const wg_spec *wanted = &node->input_specs[input];
    if (wg__same_shape(&gradient->spec, wanted) && gradient->spec.dtype == wanted->dtype)
        return 0;
    char is[128], should[128];
    return wg_fail(WG_ERROR_GRADIENT, "backward",
                   "the vjp of %s gave input %d a gradient of %s; wanted %s", node->op->name, input,
                   wg_spec_text(is, sizeof is, &gradient->spec),
                   wg_spec_text(should, sizeof should, wanted));
}

/* Runs the vjp and hands its gradients on along the edges. */
static int run_vjp(wg__pass *p, wg__pass_entry *e, wg_tensor **inputs, wg_tensor **gradients) {
    wg_node *node = e->node;
    wg_call call;
    if (unpack(p, node, &call, inputs) < 0)
        return -1;
    call.create_graph = p->in_ops;
    call.last_use = !p->retain_graph && !p->in_ops && !wg__checks_anomalies;
    bool decomposes = p->in_ops && node->op->decompose;
    for (int i = 0; i < node->input_count; i++) {
        gradients[i] = NULL;
        if (!wg__pass_needs(p, node, i))
            continue;
        call.wants |= (uint32_t)1 << i;
        if (decomposes || wg__checks_anomalies || !(node->op->accumulates >> i & 1))
            continue;
        wg_tensor *running = *wg__pass_cotangent_of(p, node->edges[i]);
        if (running && is_ours_to_write(p, running))
            gradients[i] = running;
    }
    wg__anomaly_state before = wg__anomaly_enter(node);
    int status = decomposes ? differentiate_decomposition(p, &call, e->cotangents, gradients)
                            : node->op->vjp(&call, e->cotangents, gradients);
    wg__anomaly_leave(before);
    if (status < 0)
        return wg_error_pending()
                   ? -1
                   : wg_fail(WG_ERROR_GRADIENT, "backward", "the vjp of %s failed", node->op->name);
    if (before.checks && wg__check_vjp(node, e->cotangents, gradients) < 0)
        return -1;
    for (int i = 0; i < node->input_count; i++) {
        if (!gradients[i] || !wg__pass_needs(p, node, i))
            continue;
        wg_tensor **place = wg__pass_cotangent_of(p, node->edges[i]);
        if (gradients[i] == *place) /* added onto where it stood */
            continue;
        if (check_gradient(node, i, gradients[i]) < 0 ||
            wg__pass_accumulate(p, place, gradients[i]) < 0)
            return -1;
    }
    return wg_error_pending() ? -1 : 0;
}

/* What a vjp reads and writes, for the profile. */
static double bytes_of(const wg__pass_entry *e, wg_tensor *const *inputs,
                       wg_tensor *const *gradients) {
    const int count = e->node->input_count;
    return wg__bytes_of(count, inputs) + wg__bytes_of(count, gradients) +
           wg__bytes_of(WG_MAX_OUTPUTS, e->cotangents);
}

int wg__pass_run_op(wg__pass *p, wg__pass_entry *e) {
    wg_tensor *inputs[WG_MAX_INPUTS], *gradients[WG_MAX_INPUTS];
    wg_scope scope;
    wg_scope_begin(&scope);
    wg__span span;
    wg__span_begin(&span, e->node->op->name, WG_PROFILE_BACKWARD);
    int status = run_vjp(p, e, inputs, gradients);
    if (span.taken) {
        const wg_node *node = e->node;
        const double bytes = status < 0 || node->op->is_view ? 0 : bytes_of(e, inputs, gradients);
        wg__span_close(&span, bytes, node->input_count, node->input_specs);
    }
    wg_scope_end(&scope, NULL);
    if (status == 0 && !p->retain_graph && !p->create_graph)
        wg__node_free_saved(e->node);
    return status;
}
