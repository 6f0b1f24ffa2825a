/* The graph that recording builds: its nodes, leaves, hooks and checkpointed regions. internal.h
 * has a drawing. */
#include "autograd/internal.h"

#include <string.h>

#include "base/array.h"

WG__THREAD_LOCAL wg__region_run wg__active_region;

/* ---- Release, without recursion: a chain of a million nodes frees on a small stack ---- */

static WG__THREAD_LOCAL wg_node *to_free; /* nodes without references */
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

bool wg__node_drop_saved(wg_node *node) {
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
    drop(&node->rounded); /* every op that saved it has run backward */
    /* An op that saved nothing can run backward again. */
    node->freed |= wg__node_drop_saved(node);
}

static void free_hooks(wg__hook **list) {
    while (*list) {
        wg__hook *first = *list;
        *list = first->next;
        wg_release(first->leaf);
        wg__free(first);
    }
}

void wg__region_release(wg__region *region) {
    if (!wg__refcount_drop(&region->refcount))
        return;
    for (int i = 0; i < region->input_count; i++)
        wg_release(region->inputs[i].tensor);
    wg__free(region->own_context);
    wg__free(region->inputs);
    wg__free(region->generators);
    wg__free(region->calls);
    wg__free(region);
}

void wg__node_release(wg_node *node) {
    if (!wg__refcount_drop(&node->refcount))
        return;
    node->next_to_free = to_free;
    to_free = node;
    if (freeing) /* the loop below, further up this stack, frees it */
        return;
    freeing = true;
    while (to_free) {
        wg_node *next = to_free;
        to_free = next->next_to_free;
        wg__node_free_saved(next);
        for (int j = 0; j < next->output_count; j++)
            wg_release(next->gradients[j]);
        free_hooks(&next->hooks);
        free_hooks(&next->post_hooks);
        wg__free(next->origin);
        if (next->region) {
            next->region->calls[next->region_call].node = NULL;
            wg__region_release(next->region);
        }
        for (int i = 0; i < next->input_count; i++)
            if (next->edges[i].node)
                wg__node_release(next->edges[i].node);
        wg__free(next);
    }
    freeing = false;
}

/* ---- Recording ---- */

/* A node, its arrays and room for options, all in one block. The caller fills in the last parts:
 * the specs and the options. */
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

static int save(wg__saved *saved, const wg_tensor *x, bool bare) {
    if (!x)
        return 0;
    saved->tensor = wg__tensor_reference(x, bare);
    saved->version = wg__tensor_version(x);
    return saved->tensor ? 0 : -1;
}

/* ---- Mixed precision: tensors that are saved in bf16. The bf16 copy of a tensor belongs to the
 * node that computed the tensor, and all ops that save the tensor share the copy. ---- */

static int save_rounded(wg__saved *saved, wg_tensor *x) {
    wg_node *maker = x->node;
    const uint64_t version = wg__tensor_version(x);
    if (maker->rounded && x->output_index == 0 && maker->rounded_from == version)
        return save(saved, maker->rounded, true);
    wg_scope scope;
    wg_scope_begin(&scope);
    const bool recording = wg_set_grad_enabled(false);
    const wg_tensor *copy = wg_cast(x, WG_BF16);
    wg_set_grad_enabled(recording);
    int status = copy ? save(saved, copy, true) : -1;
    if (status == 0 && x->output_index == 0) {
        drop(&maker->rounded);
        maker->rounded = wg__tensor_reference(copy, true);
        maker->rounded_from = version;
        status = maker->rounded ? 0 : -1;
    }
    wg_scope_end(&scope, NULL);
    return status;
}

static int save_all(wg_node *node, const wg_call *call) {
    for (int i = 0; i < call->input_count; i++) {
        wg_tensor *x = call->inputs[i];
        const bool is_rounded = call->op->saves_rounded >> i & 1 && x && x->spec.dtype == WG_F32 &&
                                x->node && x->node->op && !x->tangents &&
                                wg__matmul_dtype() == WG_BF16;
        if (call->op->saves_inputs >> i & 1 &&
            (is_rounded ? save_rounded(&node->inputs[i], x) : save(&node->inputs[i], x, false)) < 0)
            return -1;
    }
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

/* ---- Regions: the first run lists its calls, so that the second run finds their nodes ---- */

static uint64_t hash_shapes(const wg_call *call) {
    const int inputs = call->input_count;
    uint64_t hash = WG__HASH_BEGIN;
    for (int k = 0; k < inputs + call->output_count; k++) {
        const wg_spec *spec = k < inputs ? &call->input_specs[k] : &call->outputs[k - inputs]->spec;
        hash = wg__hash(hash, &spec->dtype, sizeof spec->dtype);
        hash = wg__hash(hash, &spec->ndim, sizeof spec->ndim);
        hash = wg__hash(hash, spec->shape, (size_t)wg__larger(spec->ndim, 0) * sizeof *spec->shape);
    }
    return hash;
}

/* In the first run of a region: adds a new node to the region. Stores the versions of the inputs,
 * but saves no tensors. */
static int region_add(wg_node *node, const wg_call *call) {
    wg__region *region = wg__active_region.region;
    if (wg__reserve(&region->calls, region->count, &region->capacity, region->count + 1,
                    sizeof *region->calls) < 0)
        return -1;
    region->calls[region->count] = (wg__region_call){call->op, hash_shapes(call), node};
    node->region_call = region->count++;
    node->region = region;
    wg__refcount_add(&region->refcount);
    for (int i = 0; i < call->input_count; i++)
        if (call->inputs[i]) {
            node->inputs[i].version = wg__tensor_version(call->inputs[i]);
            node->lacks |= call->op->saves_inputs >> i & 1;
        }
    for (int k = 0; k < WG_MAX_SAVED; k++)
        node->lacks |= call->saved[k] != NULL;
    node->lacks |= call->op->saves_outputs != 0;
    return 0;
}

/* In the second run of a region: finds the node of the same call in the first run and saves the
 * tensors that the node lacks. NULL if the node was freed, and outside of a second run. -1 with
 * GRADIENT if the runs differ. */
static int find_replayed(const wg_call *call, wg_node **node) {
    *node = NULL;
    if (!wg__active_region.again)
        return 0;
    const wg__region *region = wg__active_region.region;
    if (wg__active_region.next == region->count)
        return wg__op_fail(call, WG_ERROR_GRADIENT,
                           "the second run of a checkpointed function has this call, the first one "
                           "had ended");
    const wg__region_call *first = &region->calls[wg__active_region.next++];
    if (first->op != call->op || first->shapes != hash_shapes(call))
        return wg__op_fail(
            call, WG_ERROR_GRADIENT,
            "the second run of a checkpointed function has this call where the first "
            "had %s%s",
            first->op->name, first->op == call->op ? " of other shapes" : "");
    *node = first->node;
    if (!*node)
        return 0;
    /* The same tensor has the same version in both runs, unless it was written in between. A write
     * matters even where this node saves nothing: another node may save the outputs. */
    for (int i = 0; i < call->input_count; i++)
        if (call->inputs[i] && (*node)->inputs[i].version != wg__tensor_version(call->inputs[i]))
            return wg__op_fail(call, WG_ERROR_GRADIENT,
                               "operand %d was written in place between the first run of a "
                               "checkpointed function and the second; write to a clone, or run "
                               "backward first",
                               i);
    if ((*node)->lacks && save_all(*node, call) < 0)
        return -1;
    (*node)->lacks = false;
    return 0;
}

/* ---- Recording a call ---- */

/* Sets the node of the floating outputs. The first one takes over the caller's reference. */
static void attach_outputs(wg_node *node, const wg_call *call) {
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
    if (find_replayed(call, &node) < 0)
        return -1;
    if (node) {
        wg__node_retain(node);
        attach_outputs(node, call);
        return 0;
    }
    const wg_op *op = call->op;
    node = node_new(op, call->input_count, call->output_count, op->options_size);
    if (!node)
        return -1;
    for (int i = 0; i < call->input_count; i++)
        node->input_specs[i] = call->input_specs[i];
    for (int j = 0; j < call->output_count; j++)
        node->output_specs[j] = call->output_specs[j];
    if (op->options_size)
        memcpy(node->options, call->options, op->options_size);
    if (wg__origin_make(&node->origin) < 0 ||
        (wg__active_region.region && !wg__active_region.again ? region_add(node, call)
                                                              : save_all(node, call)) < 0) {
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
    attach_outputs(node, call);
    return 0;
}

static const wg_op *op_of(const wg_node *node) {
    return node->op;
}

static const wg__autograd_hooks autograd_hooks = {
    .record = record,
    .retain = wg__node_retain,
    .release = wg__node_release,
    .op_of = op_of,
};

int wg_set_requires_grad(wg_tensor *x, bool wanted) {
    if (!x)
        return -1;
    if (x->node && x->node->op)
        return wg_fail(WG_ERROR_GRADIENT, "set_requires_grad",
                       "the tensor was computed by %s; only leaves can be changed, detach it first",
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
    if (x->node)
        return 0;
    wg_node *leaf = node_new(NULL, 0, 1, 0);
    if (!leaf)
        return -1;
    leaf->output_specs[0] = x->spec;
    atomic_store(&wg__autograd, &autograd_hooks);
    x->node = leaf;
    x->output_index = 0;
    return 0;
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
        return wg_fail(WG_ERROR_GRADIENT, "retain_grad", "the tensor requires no gradient");
    x->node->retains[x->output_index] = true;
    return 0;
}

wg_tensor *wg_detach(wg_tensor *x) {
    wg_tensor *y = x ? wg__tensor_view(x, &x->spec, x->strides, x->offset) : NULL;
    return y && x->tangents && wg__forward->detach_samples(y, x->tangents) < 0 ? NULL : y;
}

/* ---- Hooks. A node has a list of hooks on the gradients of its outputs. Hooks that run when a
 * leaf's gradient is complete are in a second list; they allow backward to add to the gradient in
 * place. ---- */

static atomic_int last_id;

/* Appends a copy to a list. Returns the hook's id, or -1. */
static int append(wg__hook **place, wg__hook hook) {
    wg__hook *added = wg__alloc(sizeof *added);
    if (!added)
        return -1;
    *added = hook;
    added->id = atomic_fetch_add(&last_id, 1) + 1;
    while (*place)
        place = &(*place)->next;
    *place = added;
    return added->id;
}

int wg_register_hook(wg_tensor *x, wg_gradient_hook hook, void *context) {
    if (!x)
        return -1;
    if (!x->node)
        return wg_fail(WG_ERROR_GRADIENT, "register_hook", "the tensor requires no gradient");
    if (wg__active_region.again && x->node->region == wg__active_region.region) {
        /* The first run of the checkpointed function registered the hook; 0: removed since then. */
        const wg__hook *first = x->node->hooks;
        while (first && (first->output_index != x->output_index || first->function != hook ||
                         first->context != context))
            first = first->next;
        return first ? first->id : 0;
    }
    return append(
        &x->node->hooks,
        (wg__hook){.output_index = x->output_index, .function = hook, .context = context});
}

int wg_register_post_accumulate_grad_hook(wg_tensor *x, wg_post_accumulate_grad_hook hook,
                                          void *context) {
    static const char where[] = "register_post_accumulate_grad_hook";
    if (!x)
        return -1;
    if (!x->node)
        return wg_fail(WG_ERROR_GRADIENT, where, "the tensor requires no gradient");
    if (x->node->op)
        return wg_fail(WG_ERROR_GRADIENT, where,
                       "the tensor was computed by %s; only leaves keep a gradient, use "
                       "wg_register_hook",
                       x->node->op->name);
    wg__hook added = {.after = hook, .leaf = wg__tensor_reference(x, true), .context = context};
    if (!added.leaf)
        return -1;
    int id = append(&x->node->post_hooks, added);
    if (id < 0)
        wg_release(added.leaf);
    return id;
}

static bool remove_from(wg__hook **place, int output_index, int id) {
    for (; *place; place = &(*place)->next) {
        wg__hook *found = *place;
        if (found->id != id || found->output_index != output_index)
            continue;
        *place = found->next;
        wg_release(found->leaf);
        wg__free(found);
        return true;
    }
    return false;
}

int wg_remove_hook(wg_tensor *x, int id) {
    if (!x)
        return -1;
    if (x->node && (remove_from(&x->node->hooks, x->output_index, id) ||
                    remove_from(&x->node->post_hooks, x->output_index, id)))
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, "remove_hook", "the tensor has no hook %d", id);
}

/* The first hook of an output whose id is above `id`. Ids grow along a list, so the search works
 * even if the hook with this id has removed itself. */
static const wg__hook *hook_after(const wg__hook *hook, int output_index, int id) {
    while (hook && (hook->id <= id || hook->output_index != output_index))
        hook = hook->next;
    return hook;
}

int wg__hooks_run(wg_node *node, int output_index, wg_tensor **gradient) {
    const wg_spec *wanted = &node->output_specs[output_index];
    const wg__hook *hook = NULL;
    for (int id = 0; (hook = hook_after(node->hooks, output_index, id));) {
        id = hook->id;
        const wg_tensor *by = hook->function(*gradient, hook->context);
        char is[128], should[128];
        if (wg_error_pending())
            return -1;
        if (!by)
            continue;
        if (!wg__same_shape(&by->spec, wanted) || by->spec.dtype != wanted->dtype)
            return wg_fail(WG_ERROR_GRADIENT, "backward",
                           "a hook on the gradient of %s returned %s; wanted %s",
                           node->op ? node->op->name : "a leaf",
                           wg_spec_text(is, sizeof is, &by->spec),
                           wg_spec_text(should, sizeof should, wanted));
        wg_tensor *kept = wg__tensor_reference(by, false);
        if (!kept)
            return -1;
        wg_release(*gradient);
        *gradient = kept;
    }
    return 0;
}

int wg__post_hooks_run(wg_node *node) {
    const wg__hook *hook = NULL;
    for (int id = 0; (hook = hook_after(node->post_hooks, 0, id));) {
        id = hook->id;
        /* A fresh handle on the leaf. */
        wg_tensor *leaf = wg__tensor_reference(hook->leaf, true);
        if (leaf) {
            wg__node_retain(node);
            leaf->node = node;
        }
        int status = leaf ? hook->after(leaf, hook->context) : -1;
        wg_release(leaf);
        if (wg_error_pending())
            return -1;
        if (status < 0)
            return wg_fail(WG_ERROR_GRADIENT, "backward",
                           "a hook on the gradient of a leaf failed");
    }
    return 0;
}
