/* The plan of a walk back:
 *
 *     collect   every node that the outputs depend on, with how many edges lead to it
 *     sort      each after all that depend on it
 *     need      backwards: which of them lead to a wanted input */
#include "autograd/pass.h"

#include <string.h>

/* ---- Where a walk can stop ---- */

/* Passes its input through, recorded: a new place in the graph, where a walk can stop. */
static int identity_infer(wg_call *call) {
    call->output_specs[0] = call->input_specs[0];
    return 0;
}

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
    .infer = identity_infer,
    .forward = identity_forward,
    .vjp = identity_vjp,
    .jvp = wg_jvp_linear,
};

wg_tensor *wg__stand_in(wg_tensor *x) {
    if (wg_requires_grad(x))
        return wg_apply_one(&identity, 1, &x, NULL);
    wg_tensor *leaf = wg_alias(x);
    return wg_set_requires_grad(leaf, true) < 0 ? NULL : leaf;
}

/* ---- The table ---- */

static int grow(wg__pass *p) {
    int64_t capacity = p->capacity ? p->capacity * 2 : 64;
    wg__pass_entry *entries = wg__alloc((size_t)capacity * sizeof *entries);
    int64_t *stack = wg__alloc((size_t)capacity * sizeof *stack);
    if (!entries || !stack) {
        wg__free(entries);
        wg__free(stack);
        return -1;
    }
    if (p->count) {
        memcpy(entries, p->entries, (size_t)p->count * sizeof *entries);
        memcpy(stack, p->stack, (size_t)p->count * sizeof *stack);
    }
    wg__free(p->entries);
    wg__free(p->stack);
    p->entries = entries;
    p->stack = stack;
    p->capacity = capacity;
    return 0;
}

static bool is_new(const wg__pass *p, const wg_node *node) {
    return node->visit != p->id;
}

static int add_node(wg__pass *p, wg_node *node) {
    if (p->count == p->capacity && grow(p) < 0)
        return -1;
    p->entries[p->count] =
        (wg__pass_entry){.node = node, .outer_visit = node->visit, .outer_slot = node->slot};
    node->visit = p->id;
    node->slot = p->count++;
    wg__node_retain(node);
    return 0;
}

/* A stand-in that the functional form asks for: nothing beyond it can matter. */
static bool is_end(const wg__pass *p, const wg_node *node) {
    for (int i = 0; i < p->input_count && node->op == &identity; i++)
        if (p->inputs[i]->node == node)
            return true;
    return false;
}

/* The node that input leads to, or NULL where the walk does not go. */
static wg_node *target_of(const wg__pass *p, const wg_node *node, int input) {
    return is_end(p, node) ? NULL : node->edges[input].node;
}

/* The table itself is the queue: nodes beyond `next` are still to be expanded. */
static int collect(wg__pass *p, int output_count, wg_tensor *const *outputs) {
    for (int i = 0; i < output_count; i++)
        if (is_new(p, outputs[i]->node) && add_node(p, outputs[i]->node) < 0)
            return -1;
    for (int64_t next = 0; next < p->count; next++) {
        wg_node *node = p->entries[next].node;
        for (int i = 0; i < node->input_count; i++) {
            wg_node *target = target_of(p, node, i);
            if (!target)
                continue;
            if (is_new(p, target) && add_node(p, target) < 0)
                return -1;
            p->entries[target->slot].pending++;
        }
    }
    return 0;
}

/* Slots in the order in which they will run: each node comes after all that depend on it (Kahn
 * 1962), a leaf at once. Uses the pending counts up. */
static void sort_nodes(wg__pass *p, int64_t *order) {
    int64_t top = 0, done = 0;
    for (int64_t i = 0; i < p->count; i++)
        if (p->entries[i].pending == 0)
            p->stack[top++] = i;
    while (top > 0) {
        int64_t slot = p->stack[--top];
        order[done++] = slot;
        wg_node *node = p->entries[slot].node;
        for (int i = 0; i < node->input_count; i++) {
            wg_node *target = target_of(p, node, i);
            if (!target || --p->entries[target->slot].pending > 0)
                continue;
            if (target->op)
                p->stack[top++] = target->slot;
            else
                order[done++] = target->slot;
        }
    }
}

static void mark_needed(wg__pass *p, const int64_t *order) {
    for (int i = 0; i < p->input_count; i++)
        if (!is_new(p, p->inputs[i]->node))
            p->entries[p->inputs[i]->node->slot].needed = true;
    for (int64_t i = p->count - 1; i >= 0; i--) {
        wg__pass_entry *e = &p->entries[order[i]];
        e->needed |= p->input_count == 0;
        for (int k = 0; k < e->node->input_count && !e->needed; k++) {
            wg_node *target = target_of(p, e->node, k);
            e->needed = target && p->entries[target->slot].needed;
        }
    }
}

int64_t *wg__pass_plan(wg__pass *p, int output_count, wg_tensor *const *outputs) {
    if (collect(p, output_count, outputs) < 0)
        return NULL;
    int64_t *order = wg__alloc((size_t)p->count * sizeof *order);
    if (!order)
        return NULL;
    sort_nodes(p, order);
    mark_needed(p, order);
    return order;
}

bool wg__pass_needs(const wg__pass *p, const wg_node *node, int input) {
    const wg_node *target = target_of(p, node, input);
    return target && p->entries[target->slot].needed;
}

void wg__pass_end(wg__pass *p) {
    for (int64_t i = 0; i < p->count; i++) {
        wg__pass_entry *e = &p->entries[i];
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
    wg__free(p->stack);
}
