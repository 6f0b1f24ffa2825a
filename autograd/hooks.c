/* Functions that a user has called on the gradient of a tensor: a list on the node that made it;
 * and those on a leaf whose gradient is there: another list, as they leave backward free to add to
 * the gradient in place. */
#include "autograd/node.h"
#include "autograd/region.h"

static atomic_int last_id;

/* The hook that the first run of a recomputed function has registered; 0: it was removed since. */
static int id_of(const wg_node *node, int output_index, wg_gradient_hook function,
                 const void *context) {
    for (const wg__hook *hook = node->hooks; hook; hook = hook->next)
        if (hook->output_index == output_index && hook->function == function &&
            hook->context == context)
            return hook->id;
    return 0;
}

static void free_hook(wg__hook *hook) {
    wg_release(hook->leaf);
    wg__free(hook);
}

/* Puts a copy at the end of a list; its id, or -1. */
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
        return wg_fail(WG_ERROR_GRADIENT, "register_hook", "the tensor wants no gradient");
    if (wg__region_repeats(x->node))
        return id_of(x->node, x->output_index, hook, context);
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
        return wg_fail(WG_ERROR_GRADIENT, where, "the tensor wants no gradient");
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
        free_hook(found);
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

static void free_list(wg__hook **list) {
    while (*list) {
        wg__hook *first = *list;
        *list = first->next;
        free_hook(first);
    }
}

void wg__hooks_free(wg_node *node) {
    free_list(&node->hooks);
    free_list(&node->post_hooks);
}

/* The first hook of that output with a higher id: ids grow along a list, and the one that ran last
 * may have removed itself. */
static const wg__hook *hook_after(const wg__hook *hook, int output_index, int id) {
    while (hook && (hook->id <= id || hook->output_index != output_index))
        hook = hook->next;
    return hook;
}

static int replace(const wg_node *node, int output_index, wg_tensor **gradient,
                   const wg_tensor *by) {
    const wg_spec *wanted = &node->output_specs[output_index];
    if (!wg__same_shape(&by->spec, wanted) || by->spec.dtype != wanted->dtype) {
        char is[128], should[128];
        return wg_fail(WG_ERROR_GRADIENT, "backward",
                       "a hook on the gradient of %s returned %s; wanted %s",
                       node->op ? node->op->name : "a leaf", wg_spec_text(is, sizeof is, &by->spec),
                       wg_spec_text(should, sizeof should, wanted));
    }
    wg_tensor *kept = wg__tensor_reference(by, false);
    if (!kept)
        return -1;
    wg_release(*gradient);
    *gradient = kept;
    return 0;
}

int wg__hooks_run(wg_node *node, int output_index, wg_tensor **gradient) {
    const wg__hook *hook = NULL;
    for (int id = 0; (hook = hook_after(node->hooks, output_index, id));) {
        id = hook->id;
        const wg_tensor *returned = hook->function(*gradient, hook->context);
        if (wg_error_pending() || (returned && replace(node, output_index, gradient, returned) < 0))
            return -1;
    }
    return 0;
}

/* A handle on the leaf, whichever of its own are still there. */
static wg_tensor *handle_on(const wg__hook *hook, wg_node *node) {
    wg_tensor *leaf = wg__tensor_reference(hook->leaf, true);
    if (!leaf)
        return NULL;
    wg__node_retain(node);
    leaf->node = node;
    return leaf;
}

int wg__post_hooks_run(wg_node *node) {
    const wg__hook *hook = NULL;
    for (int id = 0; (hook = hook_after(node->post_hooks, 0, id));) {
        id = hook->id;
        wg_tensor *leaf = handle_on(hook, node);
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
