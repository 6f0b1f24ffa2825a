/* How nodes come to be, are shared, and go. */
#include "autograd/node.h"

#include <stdio.h>
#include <string.h>

#include "autograd/anomaly.h"
#include "autograd/autograd.h"
#include "autograd/forward.h"
#include "autograd/region.h"

/* ---- Release, without recursion: a chain of a million nodes frees on a small stack ---- */

static WG__THREAD_LOCAL wg_node *to_free; /* nodes that nobody holds any more */
static WG__THREAD_LOCAL bool freeing;

void wg__node_retain(wg_node *node) {
    wg__refcount_add(&node->refcount);
}

static bool drop(wg_tensor **saved) {
    wg_tensor *tensor = *saved;
    if (!tensor)
        return false;
    *saved = NULL;
    wg_release(tensor);
    return true;
}

/* Says whether there was anything. */
static bool drop_all(wg_node *node) {
    bool any = false;
    for (int i = 0; i < node->input_count; i++)
        any |= drop(&node->inputs[i].tensor);
    for (int j = 0; j < node->output_count; j++)
        any |= drop(&node->outputs[j].tensor);
    for (int k = 0; k < WG_MAX_SAVED; k++)
        any |= drop(&node->extras[k]);
    return any;
}

void wg__node_call(const wg_node *node, wg_tensor **inputs, wg_call *call) {
    *call = (wg_call){.op = node->op,
                      .options = node->options,
                      .input_count = node->input_count,
                      .inputs = inputs,
                      .input_specs = node->input_specs,
                      .output_count = node->output_count};
    memcpy(call->output_specs, node->output_specs,
           (size_t)node->output_count * sizeof *call->output_specs);
    memcpy(call->saved, node->extras, sizeof call->saved);
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i].tensor;
    for (int j = 0; j < node->output_count; j++)
        call->outputs[j] = node->outputs[j].tensor;
}

void wg__node_free_saved(wg_node *node) {
    node->freed |= drop_all(node); /* an op that saved nothing can run backward again */
}

static void free_node(wg_node *node) {
    wg__node_free_saved(node);
    for (int j = 0; j < node->output_count; j++)
        wg_release(node->gradients[j]);
    wg__hooks_free(node);
    wg__free(node->origin);
    if (node->region)
        wg__region_forget(node);
    for (int i = 0; i < node->input_count; i++)
        if (node->edges[i].node)
            wg__node_release(node->edges[i].node);
    wg__free(node);
}

void wg__node_release(wg_node *node) {
    if (!wg__refcount_drop(&node->refcount))
        return;
    node->next_to_free = to_free;
    to_free = node;
    if (freeing) /* the loop below, further up this stack, comes to it */
        return;
    freeing = true;
    while (to_free) {
        wg_node *next = to_free;
        to_free = next->next_to_free;
        free_node(next);
    }
    freeing = false;
}

/* ---- Recording ---- */

/* A node, its arrays and room for options, all in one block. What is to be filled in by the caller
 * comes last: the specs and the options. */
static wg_node *node_new(const wg_op *op, int input_count, int output_count, size_t options_size) {
    const size_t n = (size_t)input_count, m = (size_t)output_count;
    const size_t zeros = sizeof(wg_node) + n * sizeof(wg__edge) + (n + m) * sizeof(wg__saved) +
                         m * sizeof(wg_tensor *);
    const size_t filled = (zeros + (n + m) * sizeof(wg_spec) + 15) & ~(size_t)15;
    wg_node *node = wg__alloc(filled + options_size);
    if (!node)
        return NULL;
    memset(node, 0, zeros);
    node->edges = (wg__edge *)(node + 1);
    node->inputs = (wg__saved *)(node->edges + n);
    node->outputs = node->inputs + n;
    node->gradients = (wg_tensor **)(node->outputs + m);
    node->input_specs = (wg_spec *)(node->gradients + m);
    node->output_specs = node->input_specs + n;
    if (options_size)
        node->options = (char *)node + filled;
    atomic_init(&node->refcount, 1);
    node->op = op;
    node->input_count = input_count;
    node->output_count = output_count;
    return node;
}

static wg_node *node_of(const wg_call *call) {
    const wg_op *op = call->op;
    wg_node *node = node_new(op, call->input_count, call->output_count, op->options_size);
    if (!node)
        return NULL;
    for (int i = 0; i < call->input_count; i++)
        node->input_specs[i] = call->input_specs[i];
    for (int j = 0; j < call->output_count; j++)
        node->output_specs[j] = call->output_specs[j];
    if (op->options_size)
        memcpy(node->options, call->options, op->options_size);
    return node;
}

static int save(wg__saved *saved, const wg_tensor *x, bool bare) {
    if (!x)
        return 0;
    saved->tensor = wg__tensor_reference(x, bare);
    saved->version = wg_tensor_version(x);
    return saved->tensor ? 0 : -1;
}

static int save_all(wg_node *node, const wg_call *call) {
    for (int i = 0; i < call->input_count; i++)
        if (call->op->saves_inputs >> i & 1 && save(&node->inputs[i], call->inputs[i], false) < 0)
            return -1;
    for (int j = 0; j < call->output_count; j++)
        if (call->op->saves_outputs >> j & 1 && save(&node->outputs[j], call->outputs[j], true) < 0)
            return -1;
    for (int k = 0; k < WG_MAX_SAVED; k++) {
        if (!call->saved[k])
            continue;
        node->extras[k] = wg__tensor_reference(call->saved[k], true);
        if (!node->extras[k])
            return -1;
    }
    return 0;
}

/* ---- In a recomputed region ---- */

void wg__node_note_versions(wg_node *node, const wg_call *call) {
    for (int i = 0; i < call->input_count; i++)
        if (call->inputs[i]) {
            node->inputs[i].version = wg_tensor_version(call->inputs[i]);
            node->lacks |= call->op->saves_inputs >> i & 1;
        }
    for (int k = 0; k < WG_MAX_SAVED; k++)
        node->lacks |= call->saved[k] != NULL;
    node->lacks |= call->op->saves_outputs != 0;
}

/* The same tensor has the same version in both runs, unless it was written in between; which also
 * matters where a node saves nothing, as others save what it computed. */
int wg__node_fill(wg_node *node, const wg_call *call) {
    for (int i = 0; i < call->input_count; i++)
        if (call->inputs[i] && node->inputs[i].version != wg_tensor_version(call->inputs[i]))
            return wg__op_fail(call, WG_ERROR_GRADIENT,
                               "operand %d was written in place between the first run of a "
                               "recomputed function and the second; write to a clone, or run "
                               "backward first",
                               i);
    if (!node->lacks)
        return 0;
    if (save_all(node, call) < 0)
        return -1;
    node->lacks = false;
    return 0;
}

void wg__node_unfill(wg_node *node) {
    node->lacks |= drop_all(node);
}

/* ---- Recording a call ---- */

/* The caller's hold on the node goes to the first of them. */
static void give_outputs(wg_node *node, const wg_call *call) {
    bool is_held = false;
    for (int j = 0; j < call->output_count; j++) {
        wg_tensor *output = call->outputs[j];
        if (!wg_dtype_is_float(output->spec.dtype))
            continue;
        if (is_held)
            wg__node_retain(node);
        is_held = true;
        output->node = node;
        output->output_index = j;
    }
    if (!is_held)
        wg__node_release(node);
}

static int record(const wg_call *call) {
    wg_node *node = NULL;
    if (wg__region_replayed(call, &node) < 0)
        return -1;
    if (node) {
        wg__node_retain(node);
        give_outputs(node, call);
        return 0;
    }
    node = node_of(call);
    if (!node)
        return -1;
    if (wg__origin_make(&node->origin) < 0 ||
        (wg__region_is_open() ? wg__region_add(node, call) : save_all(node, call)) < 0) {
        wg__node_release(node);
        return -1;
    }
    for (int i = 0; i < call->input_count; i++) {
        const wg_tensor *input = call->inputs[i];
        if (!input || !input->node || !(call->wants >> i & 1))
            continue;
        node->edges[i] = (wg__edge){input->node, input->output_index};
        wg__node_retain(input->node);
    }
    give_outputs(node, call);
    return 0;
}

static bool is_leaf(const wg_node *node) {
    return !node->op;
}

static const char *maker(const wg_node *node) {
    return node->op ? node->op->name : "leaf";
}

static const wg__autograd_hooks hooks = {
    .record = record,
    .retain = wg__node_retain,
    .release = wg__node_release,
    .is_leaf = is_leaf,
    .maker = maker,
    .run_dual = wg__run_dual,
    .share_tangents = wg__tangents_share,
    .release_tangents = wg__tangents_release,
    .is_dual = wg__is_dual,
    .check_forward = wg__check_forward,
};

void wg__autograd_start(void) {
    wg__install_autograd(&hooks);
}

/* ---- Leaves ---- */

static int make_leaf(wg_tensor *x) {
    wg_node *leaf = node_new(NULL, 0, 1, 0);
    if (!leaf)
        return -1;
    leaf->output_specs[0] = x->spec;
    wg__autograd_start();
    x->node = leaf;
    x->output_index = 0;
    return 0;
}

int wg_set_requires_grad(wg_tensor *x, bool wanted) {
    if (!x)
        return -1;
    if (x->node && !is_leaf(x->node))
        return wg_fail(WG_ERROR_GRADIENT, "set_requires_grad",
                       "the tensor was computed by %s; only leaves can be told, detach it first",
                       x->node->op->name);
    if (!wanted) {
        if (x->node)
            wg__node_release(x->node);
        x->node = NULL;
        return 0;
    }
    if (!wg_dtype_is_float(x->spec.dtype))
        return wg_fail(WG_ERROR_DTYPE, "set_requires_grad",
                       "%s has no gradient; wanted a floating dtype", wg_dtype_name(x->spec.dtype));
    return x->node ? 0 : make_leaf(x);
}

wg_tensor *wg_gradient(const wg_tensor *x) {
    return x && x->node ? x->node->gradients[x->output_index] : NULL;
}

void wg_zero_grad(wg_tensor *x) {
    if (!x || !x->node)
        return;
    wg_tensor *gradient = x->node->gradients[x->output_index];
    x->node->gradients[x->output_index] = NULL;
    wg_release(gradient);
}

int wg_retain_grad(wg_tensor *x) {
    if (!x)
        return -1;
    if (!x->node)
        return wg_fail(WG_ERROR_GRADIENT, "retain_grad", "the tensor wants no gradient");
    x->node->retains[x->output_index] = true;
    return 0;
}

wg_tensor *wg_detach(wg_tensor *x) {
    return x ? wg__tensor_view(x, &x->spec, x->strides, x->offset) : NULL;
}
