/* The vjp of an op, run by itself on what a run saved, as the engine would: so that its gradients
 * are seen before the engine refuses them or adds them up. */
#include <stdio.h>
#include <string.h>

#include "gradcheck/check.h"
#include "autograd/internal.h"
#include "tensor/ops.h"

/* The node of the op itself, or NULL: composites have none. */
static const wg_node *node_of(const wg__gradcheck *c) {
    for (int k = 0; k < c->weighted_count; k++) {
        const wg_node *node = c->outputs[c->weighted[k]]->node;
        if (node && node->op == c->op)
            return node;
    }
    return NULL;
}

static uint32_t wanted_by(const wg__gradcheck *c, const wg_node *node) {
    uint32_t wants = 0;
    for (int w = 0; w < c->wanted_count; w++)
        if (c->wanted[w] < node->input_count && node->edges[c->wanted[w]].node)
            wants |= (uint32_t)1 << c->wanted[w];
    return wants;
}

static int run_vjp(wg__gradcheck *c, const wg_node *node, uint32_t wants, wg_tensor **gradients) {
    wg_tensor *inputs[WG_MAX_INPUTS], *cotangents[WG_MAX_OUTPUTS] = {0};
    wg_call call;
    wg__node_call(node, inputs, &call);
    call.wants = wants;
    for (int k = 0; k < c->weighted_count; k++)
        cotangents[c->weighted[k]] = c->weights[k];
    memset(gradients, 0, WG_MAX_INPUTS * sizeof *gradients);
    bool recording = wg_set_grad_enabled(false);
    int status = node->op->vjp(&call, cotangents, gradients);
    wg_set_grad_enabled(recording);
    if (status == 0 && !wg_error_pending())
        return 0;
    /* What is not saved is NULL here, and an op that is given NULL says so, or passes it on. */
    char unsaved[96];
    wg__gradcheck_unsaved(unsaved, sizeof unsaved, c);
    const wg_error *error = wg_error_pending();
    bool is_null = !error || (*unsaved && strstr(error->message, "is NULL"));
    return wg__gradcheck_fail(c, is_null ? WG_DIAGNOSIS_MISSING : WG_DIAGNOSIS_BACKWARD_FAILED, -1,
                              "the vjp failed%s", is_null ? unsaved : "");
}

const char *wg__gradcheck_unsaved(char *buffer, size_t size, const wg__gradcheck *c) {
    buffer[0] = '\0';
    for (int i = 0; i < c->user_count && !buffer[0]; i++)
        if (!(c->op->saves_inputs >> i & 1) && c->inputs[i])
            snprintf(buffer, size, "; input %d is not in saves_inputs, so it is NULL there", i);
    return buffer;
}

/* The first axis of a gradient that its input lacks, or has with size 1; -1 if they are not shapes
 * of which the one broadcasts to the other. */
static int unsummed_axis(const wg_spec *gradient, const wg_spec *input) {
    int missing = gradient->ndim - input->ndim, axis = -1;
    for (int d = 0; missing >= 0 && d < input->ndim; d++)
        if (input->shape[d] != gradient->shape[missing + d] && input->shape[d] != 1)
            return -1;
    for (int d = gradient->ndim - 1; d >= 0 && missing >= 0; d--)
        if (d < missing || input->shape[d - missing] != gradient->shape[d])
            axis = d;
    return axis;
}

static bool is_reversed_shape(const wg_spec *a, const wg_spec *b) {
    for (int d = 0; d < a->ndim; d++)
        if (a->ndim != b->ndim || a->shape[d] != b->shape[b->ndim - 1 - d])
            return false;
    return a->ndim >= 2;
}

static int check_gradient(wg__gradcheck *c, const wg_node *node, int input,
                          const wg_tensor *gradient) {
    const wg_spec *is = &gradient->spec, *wanted = &node->input_specs[input];
    char text[128], other[128];
    wg_spec_text(text, sizeof text, is);
    wg_spec_text(other, sizeof other, wanted);
    if (is->dtype != wanted->dtype)
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_WRONG_DTYPE, input,
                                  "the vjp gave input %d a gradient of %s; wanted %s", input, text,
                                  other);
    if (wg__same_shape(is, wanted))
        return 0;
    int axis = unsummed_axis(is, wanted);
    c->report->axis = axis;
    if (axis >= 0)
        return wg__gradcheck_fail(
            c, WG_DIAGNOSIS_UNSUMMED, input,
            "the vjp gave input %d a gradient of %s; wanted %s, summed over axis %d", input, text,
            other, axis);
    return wg__gradcheck_fail(
        c, is_reversed_shape(is, wanted) ? WG_DIAGNOSIS_TRANSPOSED : WG_DIAGNOSIS_WRONG_SHAPE,
        input, "the vjp gave input %d a gradient of %s; wanted %s", input, text, other);
}

static int check_all_wanted(wg__gradcheck *c, const wg_node *node, uint32_t wants) {
    wg_tensor *gradients[WG_MAX_INPUTS];
    if (run_vjp(c, node, wants, gradients) < 0)
        return -1;
    for (int i = 0; i < node->input_count; i++) {
        c->null_gradient[i] = !gradients[i];
        if (gradients[i] && wants >> i & 1 && check_gradient(c, node, i, gradients[i]) < 0)
            return -1;
    }
    return 0;
}

static int check_one_wanted(wg__gradcheck *c, const wg_node *node, int only) {
    wg_tensor *gradients[WG_MAX_INPUTS];
    if (run_vjp(c, node, (uint32_t)1 << only, gradients) < 0)
        return -1;
    for (int i = 0; i < node->input_count; i++)
        if (i != only && gradients[i])
            return wg__gradcheck_fail(c, WG_DIAGNOSIS_WANTS_IGNORED, i,
                                      "input %d has a gradient where input %d alone wants one", i,
                                      only);
    return 0;
}

static int check_in_scope(wg__gradcheck *c) {
    if (wg__gradcheck_run(c) < 0)
        return -1;
    const wg_node *node = node_of(c);
    uint32_t wants = node ? wanted_by(c, node) : 0;
    if (!wants)
        return 0;
    if (check_all_wanted(c, node, wants) < 0)
        return -1;
    for (int i = 0; i < node->input_count; i++)
        if (wants >> i & 1 && wants != (uint32_t)1 << i && check_one_wanted(c, node, i) < 0)
            return -1;
    return 0;
}

int wg__gradcheck_vjp(wg__gradcheck *c) {
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = check_in_scope(c);
    wg_scope_end(&scope, NULL);
    return status < 0 ? -1 : wg__gradcheck_inputs_unmodified(c, "the vjp");
}
