/* Steps of all parameters at once, steps during a backward pass, and the norm of gradients. */
#include "optim/internal.h"

#include <math.h>

#include "tensor/internal.h"
#include "tensor/span.h"

static int find_gradient(wg__optimizer_entry *entry, const char *where) {
    entry->gradient = NULL;
    if (wg_tensor_dtype(entry->parameter) != entry->dtype)
        return wg_fail(WG_ERROR_STATE, where,
                       "the dtype of \"%s\" was changed after it was added; make a new optimizer",
                       entry->name);
    const wg__optimizer_shard *shard = &entry->optimizer->shard;
    if (shard->gradients) {
        const int64_t start = shard->starts[entry - entry->optimizer->entries];
        if (entry->used && entry->end > entry->begin)
            entry->gradient = shard->gradients + (size_t)start * wg_dtype_size(entry->dtype);
        return 0;
    }
    wg_tensor *gradient = wg_gradient(entry->parameter);
    if (!gradient)
        return 0;
    /* A gradient that is part of a graph may share memory with a parameter, which the step writes.
     */
    bool is_readable = wg_tensor_is_contiguous(gradient);
    for (int64_t i = 0; i < entry->optimizer->count && !wg__tensor_is_sole(gradient); i++)
        is_readable = is_readable && wg__overlap_of(entry->optimizer->entries[i].parameter,
                                                    gradient) == WG__OVERLAP_NONE;
    if (!is_readable)
        gradient = wg_clone(wg_detach(gradient));
    if (!gradient)
        return -1;
    entry->gradient = wg_tensor_data(gradient);
    return 0;
}

/* Returns how many gradients there are, or -1. */
static int64_t find_gradients(wg_optimizer *optimizer, const char *where) {
    int64_t found = 0;
    for (int64_t i = 0; i < optimizer->count; i++) {
        if (find_gradient(&optimizer->entries[i], where) < 0)
            return -1;
        found += optimizer->entries[i].gradient || optimizer->entries[i].used;
    }
    return found;
}

static void measure_chunk(const wg__optimizer_chunk *chunk, void *context) {
    const wg_optimizer *optimizer = context;
    optimizer->partial_norms[chunk->chunk] = chunk->entry->loops->square_sum(
        chunk->end - chunk->begin, wg__entry_gradient(chunk->entry, chunk->begin));
}

static double norm_of(const wg_optimizer *optimizer, int64_t first, int64_t last) {
    const wg__optimizer_entry *entries = optimizer->entries;
    double sum = 0;
    int64_t end = last < optimizer->count ? entries[last].first_chunk : optimizer->chunks;
    for (int64_t i = first < last ? entries[first].first_chunk : end; i < end; i++)
        sum += optimizer->partial_norms[i];
    return sqrt(sum);
}

static int check_norm(wg_optimizer *optimizer, const char *where, double norm) {
    optimizer->not_finite = !isfinite(norm);
    if (!optimizer->not_finite)
        return 0;
    int64_t i = 0;
    while (i < optimizer->count && isfinite(norm_of(optimizer, i, i + 1)))
        i++;
    return wg_fail(WG_ERROR_GRADIENT, where,
                   "the gradient of \"%s\" is not finite; drop it by wg_optimizer_zero_grad",
                   i < optimizer->count ? optimizer->entries[i].name : "all together");
}

int wg_optimizer_clip(wg_optimizer *optimizer, double max_norm, double *norm) {
    static const char where[] = "optimizer_clip";
    if (!optimizer || wg_error_pending() || wg__optimizer_check_outside(optimizer, where) < 0)
        return -1;
    if (!(max_norm >= 0))
        return wg_fail(WG_ERROR_ARGUMENT, where, "max_norm is %g; wanted 0 or more", max_norm);
    wg__span span;
    wg_scope scope;
    wg__span_begin(&span, "gradient norm", WG_PROFILE_REGION);
    wg_scope_begin(&scope);
    int64_t found = find_gradients(optimizer, where);
    for (int64_t i = 0; i < optimizer->chunks; i++)
        optimizer->partial_norms[i] = 0;
    optimizer->first = 0;
    optimizer->last = optimizer->count;
    if (found > 0)
        wg__optimizer_walk(optimizer, measure_chunk, optimizer);
    /* Each chunk belongs to one rank and is 0 on all others, so the sum is exact. */
    if (found >= 0 && wg_group_sum(optimizer->shard.group, WG_GROUP_F64, optimizer->chunks,
                                   optimizer->partial_norms) < 0)
        found = -1;
    wg_scope_end(&scope, NULL);
    wg__span_end(&span);
    if (found < 0)
        return -1;
    double measured = norm_of(optimizer, 0, optimizer->count);
    if (norm)
        *norm = measured;
    optimizer->gradient_scale = max_norm > 0 && measured > max_norm ? max_norm / measured : 1;
    return check_norm(optimizer, where, measured);
}

/* Steps the entries from optimizer->first to last. */
static int update(wg_optimizer *optimizer, double learning_rate) {
    const int status = optimizer->rule->step(optimizer, learning_rate);
    for (int64_t i = optimizer->first; i < optimizer->last; i++)
        if (optimizer->entries[i].gradient)
            wg_tensor_touch(optimizer->entries[i].parameter);
    return status;
}

static int check_step(const wg_optimizer *optimizer, const char *where, double learning_rate) {
    if (!optimizer || wg_error_pending() || wg__optimizer_check_outside(optimizer, where) < 0)
        return -1;
    if (!isfinite(learning_rate) || learning_rate < 0)
        return wg_fail(WG_ERROR_ARGUMENT, where, "a learning rate of %g; wanted 0 or more",
                       learning_rate);
    if (wg__optimizer_check_groups(optimizer, where) < 0)
        return -1;
    if (optimizer->not_finite)
        return wg_fail(WG_ERROR_GRADIENT, where,
                       "the gradients are not finite; drop them by wg_optimizer_zero_grad");
    return 0;
}

int wg_optimizer_step(wg_optimizer *optimizer, double learning_rate) {
    if (check_step(optimizer, "optimizer_step", learning_rate) < 0)
        return -1;
    wg__span span;
    wg_scope scope;
    wg__span_begin(&span, "optimizer", WG_PROFILE_REGION);
    wg_scope_begin(&scope);
    const int64_t found = find_gradients(optimizer, "optimizer_step");
    int status = -1;
    if (found == 0)
        wg_fail(WG_ERROR_GRADIENT, "optimizer_step",
                "no parameter has a gradient; call wg_backward first");
    if (found > 0) {
        optimizer->steps++;
        optimizer->first = 0;
        optimizer->last = optimizer->count;
        status = update(optimizer, learning_rate);
    }
    wg_scope_end(&scope, NULL);
    wg__span_end(&span);
    if (status == 0)
        wg_optimizer_zero_grad(optimizer);
    return status;
}

/* ---- A step during a backward pass:
 *
 *     backward   vjp of layer 3 |                     | vjp of layer 2 |                     | ...
 *     step                      | layer 3's gradients |                | layer 2's gradients |
 *
 * Hooks on the parameters run the steps; they are registered from begin to end. ---- */

/* Measures, steps and drops the gradient of an entry, if there is one. */
static int step_entry(wg__optimizer_entry *entry, const char *where) {
    wg_optimizer *optimizer = entry->optimizer;
    const int64_t index = entry - optimizer->entries;
    if (find_gradient(entry, where) < 0)
        return -1;
    if (!entry->gradient)
        return 0;
    optimizer->first = index;
    optimizer->last = index + 1;
    wg__span span;
    if (optimizer->in_backward.norm) {
        wg__span_begin(&span, "gradient norm", WG_PROFILE_REGION);
        wg__optimizer_walk(optimizer, measure_chunk, optimizer);
        wg__span_end(&span);
        if (check_norm(optimizer, where, norm_of(optimizer, index, index + 1)) < 0)
            return -1;
    }
    if (optimizer->in_backward.stepped++ == 0)
        optimizer->steps++;
    wg__span_begin(&span, "optimizer", WG_PROFILE_REGION);
    const int status = update(optimizer, optimizer->in_backward.learning_rate);
    wg__span_end(&span);
    if (status < 0)
        return -1;
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
    if (check_step(optimizer, where, learning_rate) < 0)
        return -1;
    if (wg__optimizer_is_sharded(optimizer))
        return wg_fail(WG_ERROR_STATE, where, "a sharded optimizer steps after backward");
    if (optimizer->gradient_scale != 1)
        return wg_fail(WG_ERROR_STATE, where, "the gradients were clipped; use wg_optimizer_step");
    for (int64_t i = 0; i < optimizer->chunks; i++)
        optimizer->partial_norms[i] = 0;
    optimizer->in_backward =
        (wg__step_in_backward){.open = true, .learning_rate = learning_rate, .norm = norm};
    for (int64_t i = 0; i < optimizer->count; i++) {
        wg__optimizer_entry *entry = &optimizer->entries[i];
        entry->stepped = false;
        if (!wg_requires_grad(entry->parameter)) /* frozen after it was added */
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
    int status = wg_error_pending() ? -1 : 0;
    /* Backward did not reach these entries, but they may have a gradient of earlier passes. */
    for (int64_t i = 0; status == 0 && i < optimizer->count; i++)
        status = step_entry(&optimizer->entries[i], where);
    if (status == 0 && optimizer->in_backward.stepped == 0)
        status = wg_fail(WG_ERROR_GRADIENT, where,
                         "no parameter has a gradient; call wg_backward after "
                         "wg_optimizer_step_begin");
    if (status == 0 && optimizer->in_backward.norm) {
        *optimizer->in_backward.norm = norm_of(optimizer, 0, optimizer->count);
        status = check_norm(optimizer, where, *optimizer->in_backward.norm);
    }
    wg_scope_end(&scope, NULL);
    return status;
}
