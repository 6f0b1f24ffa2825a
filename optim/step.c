/* A step of all parameters at once, and the norm of their gradients. */
#include "optim/internal.h"

#include <math.h>

#include "tensor/ops.h"
#include "tensor/span.h"

/* ---- Gradients ---- */

int wg__optimizer_find_gradient(wg__optimizer_entry *entry, const char *where) {
    entry->gradient = NULL;
    if (wg_tensor_dtype(entry->parameter) != entry->dtype)
        return wg_fail(WG_ERROR_STATE, where,
                       "the dtype of \"%s\" was changed after it was added; make a new optimizer",
                       entry->name);
    wg_tensor *gradient = wg_gradient(entry->parameter);
    if (!gradient)
        return 0;
    if (!wg_tensor_is_contiguous(gradient))
        gradient = wg_contiguous(wg_detach(gradient));
    if (!gradient)
        return -1;
    entry->gradient = wg_tensor_data(gradient);
    return 0;
}

/* Returns how many gradients there are, or -1. */
static int64_t find_gradients(wg_optimizer *optimizer, const char *where) {
    int64_t found = 0;
    for (int64_t i = 0; i < optimizer->count; i++) {
        if (wg__optimizer_find_gradient(&optimizer->entries[i], where) < 0)
            return -1;
        found += optimizer->entries[i].gradient != NULL;
    }
    return found;
}

/* ---- Their norm ---- */

static void measure_chunk(const wg__optimizer_chunk *chunk, void *context) {
    const wg_optimizer *optimizer = context;
    int64_t count = chunk->end - chunk->begin;
    const wg__optimizer_loops *loops = wg__optimizer_loops_of(optimizer, chunk->entry);
    optimizer->partial_norms[chunk->chunk] =
        loops->square_sum(count, wg__entry_gradient(chunk->entry, chunk->begin));
}

void wg__optimizer_forget_norms(wg_optimizer *optimizer) {
    for (int64_t i = 0; i < optimizer->chunks; i++)
        optimizer->partial_norms[i] = 0;
}

void wg__optimizer_measure(wg_optimizer *optimizer, int64_t first, int64_t last) {
    optimizer->first = first;
    optimizer->last = last;
    wg__optimizer_walk(optimizer, measure_chunk, optimizer);
}

double wg__optimizer_norm(const wg_optimizer *optimizer, int64_t first, int64_t last) {
    const wg__optimizer_entry *entries = optimizer->entries;
    double sum = 0;
    int64_t end = last < optimizer->count ? entries[last].first_chunk : optimizer->chunks;
    for (int64_t i = first < last ? entries[first].first_chunk : end; i < end; i++)
        sum += optimizer->partial_norms[i];
    return sqrt(sum);
}

/* The name of the first parameter whose gradient is not finite: its norm is not. */
static const char *first_bad_name(const wg_optimizer *optimizer) {
    for (int64_t i = 0; i < optimizer->count; i++)
        if (!isfinite(wg__optimizer_norm(optimizer, i, i + 1)))
            return optimizer->entries[i].name;
    return "all together";
}

int wg__optimizer_check_norm(wg_optimizer *optimizer, const char *where, double norm) {
    optimizer->not_finite = !isfinite(norm);
    if (!optimizer->not_finite)
        return 0;
    return wg_fail(WG_ERROR_GRADIENT, where,
                   "the gradient of \"%s\" is not finite; drop it by wg_optimizer_zero_grad",
                   first_bad_name(optimizer));
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
    wg__optimizer_forget_norms(optimizer);
    if (found > 0)
        wg__optimizer_measure(optimizer, 0, optimizer->count);
    wg_scope_end(&scope, NULL);
    wg__span_end(&span);
    if (found < 0)
        return -1;
    double measured = wg__optimizer_norm(optimizer, 0, optimizer->count);
    if (norm)
        *norm = measured;
    optimizer->gradient_scale = max_norm > 0 && measured > max_norm ? max_norm / measured : 1;
    return wg__optimizer_check_norm(optimizer, where, measured);
}

/* ---- The step ---- */

int wg__optimizer_check_outside(const wg_optimizer *optimizer, const char *where) {
    return optimizer->in_backward.open
               ? wg_fail(WG_ERROR_STATE, where,
                         "a step in backward is under way; wg_optimizer_step_end comes first")
               : 0;
}

void wg__optimizer_update(wg_optimizer *optimizer, int64_t first, int64_t last,
                          double learning_rate) {
    optimizer->first = first;
    optimizer->last = last;
    optimizer->rule->step(optimizer, learning_rate);
    for (int64_t i = first; i < last; i++)
        if (optimizer->entries[i].gradient)
            wg_tensor_touch(optimizer->entries[i].parameter);
}

static int step_found(wg_optimizer *optimizer, double learning_rate) {
    int64_t found = find_gradients(optimizer, "optimizer_step");
    if (found < 0)
        return -1;
    if (found == 0)
        return wg_fail(WG_ERROR_GRADIENT, "optimizer_step",
                       "no parameter has a gradient; call wg_backward first");
    optimizer->steps++;
    wg__optimizer_update(optimizer, 0, optimizer->count, learning_rate);
    return 0;
}

int wg__optimizer_check_step(const wg_optimizer *optimizer, const char *where,
                             double learning_rate) {
    if (!optimizer || wg_error_pending() || wg__optimizer_check_outside(optimizer, where) < 0)
        return -1;
    if (!isfinite(learning_rate) || learning_rate < 0)
        return wg_fail(WG_ERROR_ARGUMENT, where, "a learning rate of %g; wanted 0 or more",
                       learning_rate);
    if (optimizer->not_finite)
        return wg_fail(WG_ERROR_GRADIENT, where,
                       "the gradients are not finite; drop them by wg_optimizer_zero_grad");
    return 0;
}

int wg_optimizer_step(wg_optimizer *optimizer, double learning_rate) {
    if (wg__optimizer_check_step(optimizer, "optimizer_step", learning_rate) < 0)
        return -1;
    wg__span span;
    wg_scope scope;
    wg__span_begin(&span, "optimizer", WG_PROFILE_REGION);
    wg_scope_begin(&scope);
    int status = step_found(optimizer, learning_rate);
    wg_scope_end(&scope, NULL);
    wg__span_end(&span);
    if (status == 0)
        wg_optimizer_zero_grad(optimizer);
    return status;
}
