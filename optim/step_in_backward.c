/* A step that goes along with a backward pass:
 *
 *     backward   vjp of layer 3 |                     | vjp of layer 2 |                     | ...
 *     step                      | layer 3's gradients |                | layer 2's gradients |
 *
 * by hooks that stand on the parameters from begin to end. */
#include "optim/internal.h"

#include "tensor/internal.h"
#include "tensor/span.h"

static int measure(wg_optimizer *optimizer, int64_t index, const char *where) {
    wg__span span;
    wg__span_begin(&span, "gradient norm", WG_PROFILE_REGION);
    wg__optimizer_measure(optimizer, index, index + 1);
    wg__span_end(&span);
    return wg__optimizer_check_norm(optimizer, where,
                                    wg__optimizer_norm(optimizer, index, index + 1));
}

/* Measures, steps and drops the gradient of an entry, if there is one. */
static int step_entry(wg__optimizer_entry *entry, const char *where) {
    wg_optimizer *optimizer = entry->optimizer;
    const int64_t index = entry - optimizer->entries;
    if (wg__optimizer_find_gradient(entry, where) < 0)
        return -1;
    if (!entry->gradient)
        return 0;
    if (optimizer->in_backward.norm && measure(optimizer, index, where) < 0)
        return -1;
    if (optimizer->in_backward.stepped++ == 0)
        optimizer->steps++;
    wg__span span;
    wg__span_begin(&span, "optimizer", WG_PROFILE_REGION);
    wg__optimizer_update(optimizer, index, index + 1, optimizer->in_backward.learning_rate);
    wg__span_end(&span);
    entry->stepped = true;
    wg_zero_grad(entry->parameter);
    return 0;
}

static int step_leaf(wg_tensor *leaf, void *context) {
    static const char where[] = "optimizer_step_begin";
    wg__optimizer_entry *entry = context;
    (void)leaf; /* the entry's own parameter */
    if (wg_grad_enabled())
        return wg_fail(WG_ERROR_GRADIENT, where,
                       "a step in backward cannot be recorded; leave out create_graph, or use "
                       "wg_optimizer_step");
    if (entry->stepped)
        return wg_fail(WG_ERROR_STATE, where,
                       "\"%s\" was stepped already: of several backward passes, the last one is "
                       "to be between wg_optimizer_step_begin and wg_optimizer_step_end",
                       entry->name);
    return step_entry(entry, where);
}

int wg_optimizer_step_begin(wg_optimizer *optimizer, double learning_rate, double *norm) {
    static const char where[] = "optimizer_step_begin";
    if (wg__optimizer_check_step(optimizer, where, learning_rate) < 0)
        return -1;
    if (optimizer->gradient_scale != 1)
        return wg_fail(WG_ERROR_STATE, where,
                       "the gradients were clipped; wg_optimizer_step steps such");
    wg__optimizer_forget_norms(optimizer);
    optimizer->in_backward.open = true;
    optimizer->in_backward.learning_rate = learning_rate;
    optimizer->in_backward.norm = norm;
    optimizer->in_backward.stepped = 0;
    for (int64_t i = 0; i < optimizer->count; i++) {
        wg__optimizer_entry *entry = &optimizer->entries[i];
        entry->stepped = false;
        if (!wg_requires_grad(entry->parameter)) /* it was frozen since it was added */
            continue;
        entry->hook = wg_register_post_accumulate_grad_hook(entry->parameter, step_leaf, entry);
        if (entry->hook < 0) {
            entry->hook = 0;
            wg__optimizer_leave_backward(optimizer);
            return -1;
        }
    }
    return 0;
}

void wg__optimizer_leave_backward(wg_optimizer *optimizer) {
    for (int64_t i = 0; i < optimizer->count && optimizer->in_backward.open; i++) {
        wg__optimizer_entry *entry = &optimizer->entries[i];
        if (entry->hook)
            wg_remove_hook(entry->parameter, entry->hook);
        entry->hook = 0;
    }
    optimizer->in_backward.open = false;
}

/* What backward did not come to, but has a gradient of passes before. */
static int step_rest(wg_optimizer *optimizer, const char *where) {
    for (int64_t i = 0; i < optimizer->count; i++)
        if (step_entry(&optimizer->entries[i], where) < 0)
            return -1;
    if (optimizer->in_backward.stepped == 0)
        return wg_fail(WG_ERROR_GRADIENT, where,
                       "no parameter has a gradient; call wg_backward after "
                       "wg_optimizer_step_begin");
    if (!optimizer->in_backward.norm)
        return 0;
    *optimizer->in_backward.norm = wg__optimizer_norm(optimizer, 0, optimizer->count);
    return wg__optimizer_check_norm(optimizer, where, *optimizer->in_backward.norm);
}

int wg_optimizer_step_end(wg_optimizer *optimizer) {
    static const char where[] = "optimizer_step_end";
    if (!optimizer)
        return -1;
    if (!optimizer->in_backward.open)
        return wg_error_pending() ? -1
                                  : wg_fail(WG_ERROR_STATE, where,
                                            "no step was begun; wg_optimizer_step_begin does");
    wg__optimizer_leave_backward(optimizer);
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = wg_error_pending() ? -1 : step_rest(optimizer, where);
    wg_scope_end(&scope, NULL);
    return status;
}
