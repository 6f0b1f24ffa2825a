/* The walk back:
 *
 *     plan   every node that the outputs depend on, in order, and which of them matter (pass.c)
 *     run    each node once all its cotangents have come, the first outputs' nodes first: hooks,
 *            what is kept of its cotangents, and its vjp (pass_vjp.c) */
#include "autograd/autograd.h"

#include <string.h>

#include "autograd/forward.h"
#include "autograd/pass.h"
#include "tensor/ops.h"

static atomic_uint_fast64_t last_pass;

/* ---- What a node's cotangents are for, beside its vjp ---- */

/* A gradient that a user will hold must own its memory, laid out plainly. */
static wg_tensor *own(const wg__pass *p, wg_tensor *x) {
    if (p->create_graph || (wg__tensor_is_sole(x) && wg_tensor_is_contiguous(x)))
        return x;
    return wg_clone(x);
}

static int keep_gradient(wg__pass *p, wg_node *node, int index, wg_tensor *cotangent) {
    wg_tensor *sum = own(p, cotangent);
    if (sum && node->gradients[index])
        sum = wg_add(node->gradients[index], sum);
    return wg__pass_put(&node->gradients[index], sum);
}

/* A leaf's cotangent is its gradient (with what it had before, moved here by cotangent_of). */
static int finish_leaf(wg__pass *p, wg__pass_entry *e) {
    if (!e->cotangents[0])
        return 0;
    if (!e->holds_gradient)
        return keep_gradient(p, e->node, 0, e->cotangents[0]);
    wg_tensor *gradient = own(p, e->cotangents[0]);
    if (!gradient)
        return -1;
    if (gradient == e->cotangents[0])
        e->cotangents[0] = NULL;
    e->node->gradients[0] = gradient->scope ? wg_keep(gradient) : gradient;
    return 0;
}

static int capture(wg__pass *p, const wg__pass_entry *e) {
    for (int i = 0; i < p->input_count; i++) {
        const wg_tensor *input = p->inputs[i];
        wg_tensor *cotangent = input->node == e->node ? e->cotangents[input->output_index] : NULL;
        if (cotangent && wg__pass_put(&p->results[i], own(p, cotangent)) < 0)
            return -1;
    }
    return 0;
}

static int run_hooks(wg__pass_entry *e) {
    int status = 0;
    for (int j = 0; j < WG_MAX_OUTPUTS && e->node->hooks && status == 0; j++)
        if (e->cotangents[j] && !e->holds_gradient)
            status = wg__hooks_run(e->node, j, &e->cotangents[j]);
    return status;
}

static void release_cotangents(wg__pass_entry *e) {
    for (int j = 0; j < WG_MAX_OUTPUTS; j++) {
        wg_release(e->cotangents[j]);
        e->cotangents[j] = NULL;
    }
}

static int run_entry(wg__pass *p, wg__pass_entry *e) {
    wg_node *node = e->node;
    bool any = false;
    for (int j = 0; j < WG_MAX_OUTPUTS; j++)
        any |= e->cotangents[j] != NULL;
    if (!any || !e->needed)
        return 0;
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = run_hooks(e);
    if (status == 0 && p->input_count)
        status = capture(p, e);
    for (int j = 0; j < WG_MAX_OUTPUTS && status == 0 && p->input_count == 0; j++)
        if (node->op && node->retains[j] && e->cotangents[j])
            status = keep_gradient(p, node, j, e->cotangents[j]);
    if (status == 0 && !node->op && p->input_count == 0)
        status = finish_leaf(p, e);
    if (status == 0 && node->post_hooks && p->input_count == 0)
        status = wg__post_hooks_run(node);
    wg_scope_end(&scope, NULL);
    if (status == 0 && node->op) {
        bool leads_on = false;
        for (int i = 0; i < node->input_count; i++)
            leads_on |= wg__pass_needs(p, node, i);
        status = leads_on ? wg__pass_run_op(p, e) : 0;
    }
    if (node->op || status == 0) /* of a leaf, wg__pass_end gives a broken sum back */
        release_cotangents(e);
    return status;
}

/* ---- The pass ---- */

static int seed_output(wg__pass *p, const wg_tensor *output, wg_tensor *cotangent) {
    if (!cotangent) {
        if (wg_tensor_count(output) != 1) {
            char text[128];
            return wg_fail(WG_ERROR_SHAPE, "backward",
                           "%s has more than one element; wanted a cotangent of its shape",
                           wg_spec_text(text, sizeof text, &output->spec));
        }
        cotangent = wg_ones_like(output);
    } else if (!wg__same_shape(&output->spec, &cotangent->spec) ||
               output->spec.dtype != cotangent->spec.dtype) {
        char is[128], should[128];
        return wg_fail(WG_ERROR_SHAPE, "backward", "a cotangent of %s for an output of %s",
                       wg_spec_text(is, sizeof is, &cotangent->spec),
                       wg_spec_text(should, sizeof should, &output->spec));
    }
    if (!cotangent)
        return -1;
    return wg__pass_accumulate(
        p, wg__pass_cotangent_of(p, (wg__edge){output->node, output->output_index}), cotangent);
}

static int run_pass(wg__pass *p, int output_count, wg_tensor *const *outputs,
                    wg_tensor *const *cotangents) {
    int64_t *order = wg__pass_plan(p, output_count, outputs);
    if (!order)
        return -1;
    int status = 0;
    for (int i = 0; i < output_count && status == 0; i++)
        status = seed_output(p, outputs[i], cotangents ? cotangents[i] : NULL);
    for (int64_t i = 0; i < p->count && status == 0; i++)
        status = run_entry(p, &p->entries[order[i]]);
    wg__free(order);
    return status;
}

static int check_outputs(int count, wg_tensor *const *outputs, const char *where) {
    if (wg_error_pending())
        return -1;
    for (int i = 0; i < count; i++) {
        if (!outputs[i])
            return wg_fail(WG_ERROR_ARGUMENT, where, "output %d is NULL", i);
        if (!outputs[i]->node)
            return wg_fail(WG_ERROR_GRADIENT, where,
                           "output %d wants no gradient: nothing that it was computed from does, "
                           "or recording was off",
                           i);
    }
    return 0;
}

static int walk(wg__pass *p, const wg_backward_options *options, int output_count,
                wg_tensor *const *outputs, wg_tensor *const *cotangents) {
    p->id = atomic_fetch_add(&last_pass, 1) + 1;
    p->create_graph = options && options->create_graph;
    p->in_ops = p->create_graph || wg__level_is_open();
    p->retain_graph = options && (options->retain_graph || options->create_graph);
    bool was = wg_set_grad_enabled(p->create_graph);
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = run_pass(p, output_count, outputs, cotangents);
    wg_scope_end(&scope, NULL);
    wg__pass_end(p);
    wg_set_grad_enabled(was);
    return status;
}

int wg_backward(wg_tensor *output, const wg_backward_options *options) {
    if (check_outputs(1, &output, "backward") < 0)
        return -1;
    wg__pass p = {0};
    return walk(&p, options, 1, &output, options ? &options->cotangent : NULL);
}

int wg_grad(int output_count, wg_tensor *const *outputs, wg_tensor *const *cotangents,
            int input_count, wg_tensor *const *inputs, const wg_backward_options *options,
            wg_tensor **gradients) {
    memset(gradients, 0, (size_t)input_count * sizeof *gradients);
    if (check_outputs(output_count, outputs, "grad") < 0)
        return -1;
    for (int i = 0; i < input_count; i++)
        if (!inputs[i] || !inputs[i]->node)
            return wg_fail(WG_ERROR_GRADIENT, "grad", "input %d wants no gradient", i);
    wg__pass p = {.input_count = input_count, .inputs = inputs, .results = gradients};
    int status = input_count ? walk(&p, options, output_count, outputs, cotangents) : 0;
    for (int i = 0; i < input_count; i++) {
        wg_tensor *kept = gradients[i];
        gradients[i] = status < 0 ? NULL : kept ? wg_alias(kept) : wg_zeros_like(inputs[i]);
        wg_release(kept);
        if (status == 0 && !gradients[i])
            status = -1;
    }
    return status;
}
