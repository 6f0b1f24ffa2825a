/* Forward mode by dual numbers: tangents of tensors, and running an op on tensors that carry them.
 * internal.h explains the method. */
#include "autograd/internal.h"

#include <pthread.h>

struct wg_tangent {
    atomic_int refcount;
    wg__level *level;            /* NULL: it has ended */
    wg_tensor *tensor;           /* kept; NULL with the level */
    wg_tangent *lower;           /* of the next lower level; counted */
    wg_tangent *previous, *next; /* in the level's list */
};

/* A handle may be released by any thread, so the lists of entries need a lock. */
static pthread_mutex_t lists = PTHREAD_MUTEX_INITIALIZER;

/* Unlinks an entry from its level and returns its tensor; the caller releases the tensor after it
 * has unlocked. */
static wg_tensor *empty_entry(wg_tangent *entry) {
    wg_tensor *tensor = entry->tensor;
    if (entry->level) {
        if (entry->previous)
            entry->previous->next = entry->next;
        else
            entry->level->first = entry->next;
        if (entry->next)
            entry->next->previous = entry->previous;
    }
    entry->level = NULL;
    entry->tensor = NULL;
    entry->previous = entry->next = NULL;
    return tensor;
}

static wg_tangent *tangents_share(wg_tangent *tangents) {
    if (tangents)
        wg__refcount_add(&tangents->refcount);
    return tangents;
}

static void tangents_release(wg_tangent *tangents) {
    while (tangents && wg__refcount_drop(&tangents->refcount)) {
        wg_tangent *lower = tangents->lower;
        pthread_mutex_lock(&lists);
        wg_tensor *tensor = empty_entry(tangents);
        pthread_mutex_unlock(&lists);
        wg_release(tensor);
        wg__free(tangents);
        tangents = lower;
    }
}

/* The first entry whose level still runs. */
static wg_tangent *highest(const wg_tensor *x) {
    wg_tangent *entry = x ? x->tangents : NULL;
    while (entry && !entry->level)
        entry = entry->lower;
    return entry;
}

static void set_tangents(wg_tensor *x, wg_tangent *tangents) {
    wg_tangent *before = x->tangents;
    x->tangents = tangents_share(tangents);
    tangents_release(before);
}

int wg__tangent_push(wg_tensor *x, wg__level *level, wg_tensor *tangent) {
    wg_tangent *entry = wg__calloc(1, sizeof *entry);
    if (!entry)
        return -1;
    entry->tensor = wg__tensor_reference(tangent, false);
    if (!entry->tensor) {
        wg__free(entry);
        return -1;
    }
    atomic_init(&entry->refcount, 1);
    entry->lower = tangents_share(highest(x));
    entry->level = level;
    pthread_mutex_lock(&lists);
    entry->next = level->first;
    if (level->first)
        level->first->previous = entry;
    level->first = entry;
    pthread_mutex_unlock(&lists);
    set_tangents(x, entry);
    tangents_release(entry);
    return 0;
}

wg_tensor *wg__tangent_of(const wg_tensor *x, const wg__level *level) {
    const wg_tangent *entry = highest(x);
    return entry && entry->level == level ? entry->tensor : NULL;
}

/* Detaches the tensor of all samples behind a sample handle, so that no gradient from outside of
 * wg_vmap passes through y. wg_vmap's entry is the last in the list, because a sample handle gets
 * it first. */
static int detach_samples(wg_tensor *y, const wg_tangent *entry) {
    while (entry && entry->lower)
        entry = entry->lower;
    if (!entry || !entry->level || !entry->level->run_batch)
        return 0;
    wg_tensor *all = wg_detach(entry->tensor);
    return all ? wg__tangent_push(y, entry->level, all) : -1;
}

wg_tensor *wg__primal(wg_tensor *x, const wg__level *level) {
    wg_tensor *primal = wg_alias(x);
    if (!primal)
        return NULL;
    wg_tangent *entry = highest(x);
    set_tangents(primal, entry && entry->level == level ? entry->lower : entry);
    return primal;
}

/* ---- A jvp out of a vjp: the vjp is linear in its cotangent u, so its derivative in u, weighted
 * by the tangents, is the jvp, whatever u is.   d/du <J^T u, t> = J t ---- */

/* With recording on. `again` says whether the result is recorded too. */
static int jvp_by_vjps(wg_call *call, wg_tensor *const *tangents, bool again,
                       wg_tensor **output_tangents) {
    wg_tensor *stand_ins[WG_MAX_INPUTS], *outputs[WG_MAX_OUTPUTS];
    for (int i = 0; i < call->input_count; i++) {
        stand_ins[i] = tangents[i] ? wg__stand_in(call->inputs[i]) : call->inputs[i];
        if (tangents[i] && !stand_ins[i])
            return -1;
    }
    if (wg_apply(call->op, call->input_count, stand_ins, call->options, outputs) < 0)
        return -1;
    wg_tensor *ys[WG_MAX_OUTPUTS], *us[WG_MAX_OUTPUTS], *found[WG_MAX_OUTPUTS];
    int which[WG_MAX_OUTPUTS], y_count = 0;
    for (int j = 0; j < call->output_count; j++) {
        if (!wg_requires_grad(outputs[j]))
            continue;
        us[y_count] = wg_zeros_like(outputs[j]);
        if (wg_set_requires_grad(us[y_count], true) < 0)
            return -1;
        which[y_count] = j;
        ys[y_count++] = outputs[j];
    }
    wg_tensor *xs[WG_MAX_INPUTS], *weights[WG_MAX_INPUTS], *gradients[WG_MAX_INPUTS];
    int x_count = 0;
    for (int i = 0; i < call->input_count; i++)
        if (tangents[i]) {
            xs[x_count] = stand_ins[i];
            weights[x_count++] = tangents[i];
        }
    const wg_backward_options recorded = {.create_graph = true};
    if (y_count == 0)
        return 0;
    if (wg_grad(y_count, ys, us, x_count, xs, &recorded, gradients) < 0)
        return -1;
    int count = 0; /* of the gradients that depend on u */
    for (int k = 0; k < x_count; k++)
        if (wg_requires_grad(gradients[k])) {
            gradients[count] = gradients[k];
            weights[count++] = weights[k];
        }
    if (count == 0)
        return 0;
    const wg_backward_options options = {.create_graph = again};
    if (wg_grad(count, gradients, weights, y_count, us, &options, found) < 0)
        return -1;
    for (int k = 0; k < y_count; k++)
        output_tangents[which[k]] = found[k];
    return 0;
}

/* ---- One op ---- */

void wg__mark_saved(const wg_call *call) {
    wg_node *node = NULL;
    for (int j = 0; j < call->output_count && !node; j++)
        node = call->outputs[j]->node;
    if (!node)
        return;
    for (int i = 0; i < call->input_count; i++)
        if (node->inputs[i].tensor)
            set_tangents(node->inputs[i].tensor, call->inputs[i]->tangents);
    for (int j = 0; j < call->output_count; j++)
        if (node->outputs[j].tensor)
            set_tangents(node->outputs[j].tensor, call->outputs[j]->tangents);
}

/* Runs the op without `level`, and then its jvp. */
static int run_level(wg_call *call, wg__level *level, wg_tensor *const *primals,
                     wg_tensor *const *tangents) {
    const wg_op *op = call->op;
    if (wg_apply(op, call->input_count, primals, call->options, call->outputs) < 0)
        return -1;
    wg_call plain = *call;
    plain.inputs = primals;
    plain.create_graph = true;
    for (int j = 0; j < op->output_count; j++)
        plain.output_specs[j] = call->outputs[j]->spec;
    wg_tensor *found[WG_MAX_OUTPUTS] = {NULL};
    int status;
    wg__anomaly_state before = wg__anomaly_enter(NULL);
    if (op->jvp) {
        status = op->jvp(&plain, tangents, found);
    } else {
        const bool was = wg_set_grad_enabled(true);
        status = jvp_by_vjps(&plain, tangents, was, found);
        wg_set_grad_enabled(was);
    }
    wg__anomaly_leave(before);
    if (status < 0)
        return wg_error_pending()
                   ? -1
                   : wg_fail(WG_ERROR_GRADIENT, "jvp", "the jvp of %s failed", op->name);
    if (before.checks && wg__check_jvp(&plain, tangents, found) < 0)
        return -1;
    for (int j = 0; j < op->output_count; j++) {
        const wg_spec *wanted = &plain.output_specs[j];
        char is[128], should[128];
        if (!found[j] || !wg_dtype_is_float(wanted->dtype))
            continue;
        if (!wg__same_shape(&found[j]->spec, wanted) || found[j]->spec.dtype != wanted->dtype)
            return wg_fail(WG_ERROR_GRADIENT, "jvp",
                           "the jvp of %s gave output %d a tangent of %s; wanted %s", op->name, j,
                           wg_spec_text(is, sizeof is, &found[j]->spec),
                           wg_spec_text(should, sizeof should, wanted));
        if (wg__tangent_push(call->outputs[j], level, found[j]) < 0)
            return -1;
    }
    wg__mark_saved(call);
    return 0;
}

static int run_dual(wg_call *call) {
    const wg_op *op = call->op;
    wg__level *level = NULL; /* the highest one */
    for (int i = 0; i < call->input_count; i++) {
        const wg_tangent *entry = highest(call->inputs[i]);
        if (entry && (!level || entry->level->number > level->number))
            level = entry->level;
    }
    if (level && level->run_batch)
        return level->run_batch(call, level);
    wg_tensor *primals[WG_MAX_INPUTS], *tangents[WG_MAX_INPUTS];
    bool varies = false;
    for (int i = 0; i < call->input_count; i++) {
        wg_tensor *x = call->inputs[i];
        primals[i] = x ? wg__primal(x, level) : NULL;
        if (x && !primals[i])
            return -1;
        tangents[i] = op->differentiable >> i & 1 ? wg__tangent_of(x, level) : NULL;
        varies |= tangents[i] != NULL;
    }
    if (!varies)
        return wg_apply(op, call->input_count, primals, call->options, call->outputs);
    if (!op->decompose)
        return run_level(call, level, primals, tangents);
    /* A fused op runs by its decomposition, which takes care of all levels. */
    wg__anomaly_state before = wg__anomaly_enter(NULL);
    int status = op->infer(call) < 0 ? -1 : op->decompose(call);
    wg__anomaly_leave(before);
    if (!before.checks || status < 0)
        return status;
    wg_tensor *found[WG_MAX_OUTPUTS];
    for (int j = 0; j < call->output_count; j++)
        found[j] = wg__tangent_of(call->outputs[j], level);
    return wg__check_forward(call) < 0 ? -1 : wg__check_jvp(call, tangents, found);
}

static atomic_uint_fast64_t last_level;
WG__THREAD_LOCAL wg__level *wg__innermost_level;

static const wg__forward_hooks forward_hooks = {
    .run_dual = run_dual,
    .share = tangents_share,
    .release = tangents_release,
    .highest = highest,
    .detach_samples = detach_samples,
};

void wg__level_begin(wg__level *level) {
    atomic_store(&wg__forward, &forward_hooks);
    *level =
        (wg__level){.number = atomic_fetch_add(&last_level, 1) + 1, .outer = wg__innermost_level};
    wg__innermost_level = level;
}

void wg__level_end(wg__level *level) {
    for (bool more = true; more;) {
        pthread_mutex_lock(&lists);
        wg_tensor *tensor = level->first ? empty_entry(level->first) : NULL;
        more = level->first != NULL;
        pthread_mutex_unlock(&lists);
        wg_release(tensor);
    }
    wg__innermost_level = level->outer;
}
