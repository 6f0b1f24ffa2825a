/* The backward pass:
 *
 *     plan   find every node that the outputs depend on, sort the nodes, and mark the needed ones
 *     run    each node once its cotangents are complete, the first outputs' nodes first: call its
 *            hooks, keep its cotangents as gradients where wanted, and run its vjp
 *
 * A pass has a table with one entry for each node; node->slot finds the entry:
 *
 *     slot   node         pending   cotangents
 *     0      of output    0         seed
 *     1      op           1         added up as the nodes that depend on it run
 *     ...    leaf         2         the leaf's gradient; cotangents are added to it in place
 */
#include "autograd/internal.h"

#include <string.h>

#include "base/array.h"
#include "tensor/ops/support.h"
#include "tensor/span.h"

typedef struct pass_entry {
    wg_node *node;
    int64_t pending; /* edges whose cotangents are not yet added */
    bool needed;
    bool holds_gradient;  /* cotangents[0] is the leaf's gradient; the pass adds to it in place */
    uint64_t outer_visit; /* node->visit before this pass; passes may nest, in a vjp */
    int64_t outer_slot;
    wg_tensor *cotangents[WG_MAX_OUTPUTS]; /* kept */
} pass_entry;

typedef struct pass {
    uint64_t id;
    bool retain_graph, create_graph;
    bool in_ops; /* vjps in public ops and decompositions, nothing in place: the gradient is itself
                    to be differentiated, by a recorded graph or by forward mode */
    int input_count; /* of the functional form; 0: leaves take their gradients */
    wg_tensor *const *inputs;
    wg_tensor **results; /* kept, one for each input */
    pass_entry *entries;
    int64_t count, capacity;
} pass;

static atomic_uint_fast64_t last_pass;

/* ---- The identity op: a node in the graph where a backward pass can stop ---- */

static int identity_forward(wg_call *call) {
    call->outputs[0] = wg_detach(call->inputs[0]);
    return call->outputs[0] ? 0 : -1;
}

static int identity_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call;
    gradients[0] = cotangents[0];
    return 0;
}

static const wg_op identity = {
    .name = "identity",
    .doc = "y = x",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .differentiable = 1,
    .is_view = true,
    .infer = wg__infer_like,
    .forward = identity_forward,
    .vjp = identity_vjp,
    .jvp = wg_jvp_linear,
    .batch = wg_batch_aligned,
};

wg_tensor *wg__stand_in(wg_tensor *x) {
    if (wg_requires_grad(x))
        return wg_apply_one(&identity, 1, &x, NULL);
    wg_tensor *leaf = wg_alias(x);
    return wg_set_requires_grad(leaf, true) < 0 ? NULL : leaf;
}

/* ---- The plan:
 *
 *     collect   find every node that the outputs depend on, and count the edges that lead to it
 *     sort      order each node after all nodes that depend on it
 *     need      in reverse order, mark the nodes that lead to a wanted input ---- */

static int add_node(pass *p, wg_node *node) {
    if (wg__reserve(&p->entries, p->count, &p->capacity, p->count + 1, sizeof *p->entries) < 0)
        return -1;
    p->entries[p->count] =
        (pass_entry){.node = node, .outer_visit = node->visit, .outer_slot = node->slot};
    node->visit = p->id;
    node->slot = p->count++;
    wg__node_retain(node);
    return 0;
}

/* The node that an input comes from. NULL where the pass stops: the input requires no gradient, or
 * this node is a stand-in that wg_grad computes the gradient of. */
static wg_node *target_of(const pass *p, const wg_node *node, int input) {
    for (int i = 0; i < p->input_count && node->op == &identity; i++)
        if (p->inputs[i]->node == node)
            return NULL;
    return node->edges[input].node;
}

/* The table is also the queue: the inputs of nodes from `next` on are not yet added. */
static int collect(pass *p, int output_count, wg_tensor *const *outputs) {
    for (int i = 0; i < output_count; i++)
        if (outputs[i]->node->visit != p->id && add_node(p, outputs[i]->node) < 0)
            return -1;
    for (int64_t next = 0; next < p->count; next++) {
        wg_node *node = p->entries[next].node;
        for (int i = 0; i < node->input_count; i++) {
            wg_node *target = target_of(p, node, i);
            if (!target)
                continue;
            if (target->visit != p->id && add_node(p, target) < 0)
                return -1;
            p->entries[target->slot].pending++;
        }
    }
    return 0;
}

/* Writes the slots in the order of their runs: each node after all nodes that depend on it (Kahn
 * 1962), a leaf as soon as possible. Counts `pending` down to 0. `order` has room for two lists:
 * the second is the stack of nodes that can run. */
static void sort_nodes(pass *p, int64_t *order) {
    int64_t *stack = order + p->count, top = 0, done = 0;
    for (int64_t i = 0; i < p->count; i++)
        if (p->entries[i].pending == 0)
            stack[top++] = i;
    while (top > 0) {
        int64_t slot = stack[--top];
        order[done++] = slot;
        wg_node *node = p->entries[slot].node;
        for (int i = 0; i < node->input_count; i++) {
            wg_node *target = target_of(p, node, i);
            if (!target || --p->entries[target->slot].pending > 0)
                continue;
            if (target->op)
                stack[top++] = target->slot;
            else
                order[done++] = target->slot;
        }
    }
}

static bool needs(const pass *p, const wg_node *node, int input) {
    const wg_node *target = target_of(p, node, input);
    return target && p->entries[target->slot].needed;
}

static wg_tensor **cotangent_of(pass *p, wg__edge edge) {
    pass_entry *e = &p->entries[edge.node->slot];
    wg_tensor **place = &e->cotangents[edge.output_index];
    bool takes_gradient = p->input_count == 0 && !edge.node->op && !edge.node->hooks && !p->in_ops;
    if (takes_gradient && !e->holds_gradient) {
        e->holds_gradient = true;
        *place = edge.node->gradients[0];
        edge.node->gradients[0] = NULL;
    }
    return place;
}

/* Whether x owns its memory alone and is contiguous, so that it can be written, or become the
 * gradient that a user holds. */
static bool is_owned(const wg_tensor *x) {
    return wg__tensor_is_sole(x) && wg_tensor_is_contiguous(x);
}

static int assign(wg_tensor **place, wg_tensor *sum) {
    wg_tensor *kept = sum ? wg__tensor_reference(sum, false) : NULL;
    if (!kept)
        return -1;
    wg_release(*place);
    *place = kept;
    return 0;
}

static int accumulate(pass *p, wg_tensor **place, wg_tensor *gradient) {
    if (!*place)
        return assign(place, gradient);
    if (!p->in_ops && is_owned(*place))
        return wg_add_(*place, gradient, 1);
    return assign(place, wg_add(*place, gradient));
}

/* ---- Running one node ---- */

/* The vjp of a fused op whose gradient is differentiated again: records the decomposition on
 * stand-ins for the inputs, and runs a recorded wg_grad from the outputs to the stand-ins. */
static int walk_decomposition(const pass *p, wg_call *call, wg_tensor *const *cotangents,
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

static int check_saved(const wg_node *node, const wg__saved *saved, const char *what, int index) {
    if (!saved->tensor || wg__tensor_version(saved->tensor) == saved->version)
        return 0;
    char text[128];
    return wg_fail(
        WG_ERROR_GRADIENT, "backward",
        "%s %d of %s, %s, was written in place after it was saved (version %llu, "
        "saved at %llu); write to a clone, or run backward first",
        what, index, node->op->name, wg_spec_text(text, sizeof text, &saved->tensor->spec),
        (unsigned long long)wg__tensor_version(saved->tensor), (unsigned long long)saved->version);
}

/* Fills in the call that the vjp sees. Under create_graph a saved output gets its node again, so
 * that the graph records its use. A node that saves nothing needs no second run of its region; the
 * region runs nevertheless if a leaf may be written after this node, because the second run needs
 * the leaves of the first. Inputs saved in bf16 are widened, unless the vjp reads bf16. If the
 * gradient is differentiated again, a widened input gets the node of the tensor it was saved from.
 */
static int unpack(const pass *p, wg_node *node, wg_call *call, wg_tensor **inputs) {
    bool frees_a_leaf = false; /* a post hook may write a leaf once this node has run */
    for (int i = 0; i < node->input_count && p->input_count == 0; i++)
        frees_a_leaf |= node->edges[i].node && node->edges[i].node->post_hooks;
    const bool runs_again = node->lacks || (node->region && !node->region->filled && frees_a_leaf);
    if (runs_again && wg__region_run_again(node) < 0)
        return -1;
    if (node->freed)
        return wg_fail(WG_ERROR_GRADIENT, "backward",
                       "what %s saved is freed: a second backward through one graph needs "
                       "retain_graph on the first",
                       node->op->name);
    wg__node_call(node, inputs, call);
    for (int i = 0; i < node->input_count; i++) {
        if (check_saved(node, &node->inputs[i], "input", i) < 0)
            return -1;
        if (!inputs[i] || inputs[i]->spec.dtype == node->input_specs[i].dtype ||
            (node->op->reads_rounded >> i & 1 && !p->in_ops))
            continue;
        const bool recording = wg_set_grad_enabled(false);
        inputs[i] = wg_cast(inputs[i], node->input_specs[i].dtype);
        wg_set_grad_enabled(recording);
        if (!inputs[i])
            return -1;
        if (p->in_ops && node->edges[i].node) {
            wg__node_retain(node->edges[i].node);
            inputs[i]->node = node->edges[i].node;
            inputs[i]->output_index = node->edges[i].output_index;
        }
    }
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

/* Runs the vjp and adds its gradients to the cotangents of the inputs' nodes. */
static int run_vjp(pass *p, pass_entry *e, wg_tensor **inputs, wg_tensor **gradients) {
    wg_node *node = e->node;
    wg_call call;
    if (unpack(p, node, &call, inputs) < 0)
        return -1;
    call.create_graph = p->in_ops;
    call.last_use = !p->retain_graph && !p->in_ops && !wg__checks_anomalies;
    bool decomposes = p->in_ops && node->op->decompose;
    for (int i = 0; i < node->input_count; i++) {
        gradients[i] = NULL;
        if (!needs(p, node, i))
            continue;
        call.wants |= (uint32_t)1 << i;
        if (decomposes || wg__checks_anomalies || !(node->op->accumulates >> i & 1))
            continue;
        wg_tensor *running = *cotangent_of(p, node->edges[i]);
        if (running && !p->in_ops && is_owned(running))
            gradients[i] = running;
    }
    wg__anomaly_state before = wg__anomaly_enter(node);
    const bool was = wg_set_grad_enabled(decomposes || wg_grad_enabled());
    int status = decomposes ? walk_decomposition(p, &call, e->cotangents, gradients)
                            : node->op->vjp(&call, e->cotangents, gradients);
    wg_set_grad_enabled(was);
    wg__anomaly_leave(before);
    if (status < 0)
        return wg_error_pending()
                   ? -1
                   : wg_fail(WG_ERROR_GRADIENT, "backward", "the vjp of %s failed", node->op->name);
    if (before.checks && wg__check_vjp(node, e->cotangents, gradients) < 0)
        return -1;
    for (int i = 0; i < node->input_count; i++) {
        if (!gradients[i] || !needs(p, node, i))
            continue;
        wg_tensor **place = cotangent_of(p, node->edges[i]);
        if (gradients[i] == *place) /* the vjp added to the cotangent in place */
            continue;
        const wg_spec *is = &gradients[i]->spec, *wanted = &node->input_specs[i];
        char given[128], should[128];
        if (!wg__same_shape(is, wanted) || is->dtype != wanted->dtype)
            return wg_fail(WG_ERROR_GRADIENT, "backward",
                           "the vjp of %s gave input %d a gradient of %s; wanted %s",
                           node->op->name, i, wg_spec_text(given, sizeof given, is),
                           wg_spec_text(should, sizeof should, wanted));
        if (accumulate(p, place, gradients[i]) < 0)
            return -1;
    }
    return wg_error_pending() ? -1 : 0;
}

static int run_op(pass *p, pass_entry *e) {
    wg_tensor *inputs[WG_MAX_INPUTS], *gradients[WG_MAX_INPUTS];
    wg_scope scope;
    wg_scope_begin(&scope);
    wg__span span;
    wg__span_begin(&span, e->node->op->name, WG_PROFILE_BACKWARD);
    int status = run_vjp(p, e, inputs, gradients);
    if (span.taken) {
        const wg_node *node = e->node;
        double bytes = 0; /* that the vjp reads and writes */
        if (status == 0 && !node->op->is_view)
            bytes = wg__bytes_of(node->input_count, inputs) +
                    wg__bytes_of(node->input_count, gradients) +
                    wg__bytes_of(WG_MAX_OUTPUTS, e->cotangents);
        wg__span_close(&span, bytes, node->input_count, node->input_specs);
    }
    wg_scope_end(&scope, NULL);
    if (status == 0 && !p->retain_graph && !p->create_graph)
        wg__node_free_saved(e->node);
    return status;
}

/* ---- Uses of a node's cotangents: captured, retained, or a leaf's gradient ---- */

static int keep_gradient(pass *p, wg_node *node, int index, wg_tensor *cotangent) {
    wg_tensor *sum = p->create_graph || is_owned(cotangent) ? cotangent : wg_clone(cotangent);
    if (sum && node->gradients[index])
        sum = wg_add(node->gradients[index], sum);
    return assign(&node->gradients[index], sum);
}

static int run_entry(pass *p, pass_entry *e) {
    wg_node *node = e->node;
    bool any = false;
    for (int j = 0; j < WG_MAX_OUTPUTS; j++)
        any |= e->cotangents[j] != NULL;
    if (!any || !e->needed)
        return 0;
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = 0;
    for (int j = 0; j < WG_MAX_OUTPUTS && node->hooks && status == 0; j++)
        if (e->cotangents[j] && !e->holds_gradient)
            status = wg__hooks_run(node, j, &e->cotangents[j]);
    for (int i = 0; i < p->input_count && status == 0; i++) {
        const wg_tensor *input = p->inputs[i];
        wg_tensor *cotangent = input->node == node ? e->cotangents[input->output_index] : NULL;
        if (cotangent && !p->create_graph && !is_owned(cotangent))
            status = assign(&p->results[i], wg_clone(cotangent));
        else if (cotangent)
            status = assign(&p->results[i], cotangent);
    }
    for (int j = 0; j < WG_MAX_OUTPUTS && status == 0 && p->input_count == 0; j++)
        if (node->op && node->retains[j] && e->cotangents[j])
            status = keep_gradient(p, node, j, e->cotangents[j]);
    /* A leaf's cotangent is its gradient (cotangent_of has moved the earlier gradient here). */
    if (status == 0 && !node->op && p->input_count == 0 && e->cotangents[0]) {
        wg_tensor *gradient = e->holds_gradient ? e->cotangents[0] : NULL;
        if (gradient && !p->create_graph && !is_owned(gradient))
            gradient = wg_clone(gradient);
        if (!e->holds_gradient)
            status = keep_gradient(p, node, 0, e->cotangents[0]);
        else if (!gradient)
            status = -1;
        if (gradient && gradient == e->cotangents[0])
            e->cotangents[0] = NULL;
        if (gradient)
            node->gradients[0] = gradient->scope ? wg_keep(gradient) : gradient;
    }
    if (status == 0 && node->post_hooks && p->input_count == 0)
        status = wg__post_hooks_run(node);
    wg_scope_end(&scope, NULL);
    if (status == 0 && node->op) {
        bool leads_on = false;
        for (int i = 0; i < node->input_count; i++)
            leads_on |= needs(p, node, i);
        status = leads_on ? run_op(p, e) : 0;
    }
    for (int j = 0; j < WG_MAX_OUTPUTS; j++)
        if (node->op || status == 0) { /* after an error walk restores a leaf's gradient */
            wg_release(e->cotangents[j]);
            e->cotangents[j] = NULL;
        }
    return status;
}

/* ---- The pass ---- */

static int seed_output(pass *p, const wg_tensor *output, wg_tensor *cotangent) {
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
    return accumulate(p, cotangent_of(p, (wg__edge){output->node, output->output_index}),
                      cotangent);
}

static int check_outputs(int count, wg_tensor *const *outputs, const char *where) {
    if (wg_error_pending())
        return -1;
    for (int i = 0; i < count; i++) {
        if (!outputs[i])
            return wg_fail(WG_ERROR_ARGUMENT, where, "output %d is NULL", i);
        if (!outputs[i]->node)
            return wg_fail(
                WG_ERROR_GRADIENT, where,
                "output %d requires no gradient: nothing that it was computed from does, "
                "or recording was off",
                i);
    }
    return 0;
}

static int walk(pass *p, const wg_backward_options *options, int output_count,
                wg_tensor *const *outputs, wg_tensor *const *cotangents) {
    p->id = atomic_fetch_add(&last_pass, 1) + 1;
    p->create_graph = options && options->create_graph;
    p->in_ops = p->create_graph || wg__innermost_level;
    p->retain_graph = options && (options->retain_graph || options->create_graph);
    bool was = wg_set_grad_enabled(p->create_graph);
    wg_scope scope;
    wg_scope_begin(&scope);
    int64_t *order = NULL;
    if (collect(p, output_count, outputs) == 0)
        order = wg__alloc_array(wg__times(p->count, 2), sizeof *order);
    int status = order ? 0 : -1;
    if (order)
        sort_nodes(p, order);

    /* Mark the needed nodes: the nodes of the inputs, and nodes with a needed input. */
    for (int i = 0; i < p->input_count; i++)
        if (p->inputs[i]->node->visit == p->id)
            p->entries[p->inputs[i]->node->slot].needed = true;
    for (int64_t i = order ? p->count - 1 : -1; i >= 0; i--) {
        pass_entry *e = &p->entries[order[i]];
        e->needed |= p->input_count == 0;
        for (int k = 0; k < e->node->input_count && !e->needed; k++)
            e->needed = needs(p, e->node, k);
    }

    for (int i = 0; i < output_count && status == 0; i++)
        status = seed_output(p, outputs[i], cotangents ? cotangents[i] : NULL);
    for (int64_t i = 0; i < p->count && status == 0; i++)
        status = run_entry(p, &p->entries[order[i]]);
    wg__free(order);
    wg_scope_end(&scope, NULL);
    for (int64_t i = 0; i < p->count; i++) {
        pass_entry *e = &p->entries[i];
        if (e->holds_gradient && e->cotangents[0] && !e->node->gradients[0]) {
            e->node->gradients[0] = e->cotangents[0];
            e->cotangents[0] = NULL;
        }
        for (int j = 0; j < WG_MAX_OUTPUTS; j++)
            wg_release(e->cotangents[j]);
        e->node->visit = e->outer_visit;
        e->node->slot = e->outer_slot;
        wg__node_release(e->node);
    }
    wg__free(p->entries);
    wg_set_grad_enabled(was);
    return status;
}

int wg_backward(wg_tensor *output, const wg_backward_options *options) {
    if (check_outputs(1, &output, "backward") < 0)
        return -1;
    pass p = {0};
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
            return wg_fail(WG_ERROR_GRADIENT, "grad", "input %d requires no gradient", i);
    pass p = {.input_count = input_count, .inputs = inputs, .results = gradients};
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
