/* Functions that a user has called on the gradient of a tensor: a list on the node that made it. */
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

int wg_register_hook(wg_tensor *x, wg_gradient_hook hook, void *context) {
    if (!x)
        return -1;
    if (!x->node)
        return wg_fail(WG_ERROR_GRADIENT, "register_hook", "the tensor wants no gradient");
    if (wg__region_repeats(x->node))
        return id_of(x->node, x->output_index, hook, context);
    wg__hook *added = wg__calloc(1, sizeof *added);
    if (!added)
        return -1;
    *added = (wg__hook){.id = atomic_fetch_add(&last_id, 1) + 1,
                        .output_index = x->output_index,
                        .function = hook,
                        .context = context};
    wg__hook **place = &x->node->hooks;
    while (*place)
        place = &(*place)->next;
    *place = added;
    return added->id;
}

int wg_remove_hook(wg_tensor *x, int id) {
    if (!x)
        return -1;
    for (wg__hook **place = x->node ? &x->node->hooks : NULL; place && *place;
         place = &(*place)->next) {
        wg__hook *found = *place;
        if (found->id != id || found->output_index != x->output_index)
            continue;
        *place = found->next;
        wg__free(found);
        return 0;
    }
    return wg_fail(WG_ERROR_ARGUMENT, "remove_hook", "the tensor has no hook %d", id);
}

void wg__hooks_free(wg_node *node) {
    while (node->hooks) {
        wg__hook *first = node->hooks;
        node->hooks = first->next;
        wg__free(first);
    }
}

/* The first hook of that output with a higher id: ids grow along the list, and the one that ran
 * last may have removed itself. */
static const wg__hook *hook_after(const wg_node *node, int output_index, int id) {
    const wg__hook *hook = node->hooks;
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
    for (int id = 0; (hook = hook_after(node, output_index, id));) {
        id = hook->id;
        const wg_tensor *returned = hook->function(*gradient, hook->context);
        if (wg_error_pending() || (returned && replace(node, output_index, gradient, returned) < 0))
            return -1;
    }
    return 0;
}
