/* Data parallelism: what the ranks of a group compare, sum and share. See trainer.h.
 *
 *     gradients   |  weight  | bias |     embedding     |  ...
 *     buffer      |   piece 0    |   piece 1    |   piece 2   ...
 *
 * Gradients are copied into a buffer, whose pieces are summed over the ranks and copied back. */
#include "train/trainer_state.h"

#include <math.h>
#include <stdio.h>

#include "optim/internal.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tensor/simd/simd.h"
#include "tensor/span.h"

#define WHERE "train"

/* Bytes that are summed at a time: enough for the network's full speed, little beside a model. */
enum { PIECE_BYTES = 4 << 20 };

int wg__trainer_share(wg_trainer *trainer, int status) {
    const int shared = wg_group_check(trainer->options.group, status);
    if (shared < 0)
        trainer->is_told = true;
    return shared;
}

int wg__trainer_check_group(const wg_trainer *trainer) {
    const wg_trainer_options *options = &trainer->options;
    const int ranks = wg_group_size(options->group);
    if (ranks == 1)
        return 0;
    if (options->accumulate < ranks)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "a step has %lld batch%s, too few for %d ranks, which share out whole "
                       "batches; --accumulate %d (of a smaller --batch) gives each rank one",
                       (long long)options->accumulate, options->accumulate == 1 ? "" : "es", ranks,
                       ranks);
    if (!trainer->task.batches)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the task does not name its batches, which %d ranks are to share; set "
                       "wg_task.batches",
                       ranks);
    return 0;
}

/* ---- Before the first step ---- */

/* Names and shapes of parameters and buffers. */
static int describe_module(const wg_state_dict *state, char *text, size_t size) {
    uint64_t found = WG__HASH_BEGIN;
    int64_t elements = 0;
    for (int64_t i = 0; i < state->count; i++) {
        const wg_state_entry *entry = &state->entries[i];
        const wg_tensor *x = entry->slot->tensor;
        const int dtype = (int)wg_tensor_dtype(x);
        found = wg__hash(found, entry->path, strlen(entry->path));
        found = wg__hash(found, &dtype, sizeof dtype);
        found = wg__hash(found, wg_tensor_shape(x), (size_t)wg_tensor_ndim(x) * sizeof(int64_t));
        elements += entry->slot->tied ? 0 : wg_tensor_count(x);
    }
    return snprintf(text, size, "%lld tensors of %lld numbers, fingerprint %016llx",
                    (long long)state->count, (long long)elements, (unsigned long long)found);
}

static void describe_options(const wg_trainer_options *o, char *text, size_t size) {
    const wg_schedule *s = &o->schedule;
    snprintf(text, size,
             "steps %lld, accumulate %lld in %lld, clip %g, average %g, evaluate every %lld, "
             "patience %lld; %s to %g, %g at the end, warm-up %lld of %lld, decay %lld, width %lld",
             (long long)o->steps, (long long)o->accumulate, (long long)o->accumulate_ramp, o->clip,
             o->average_decay, (long long)o->evaluate_every, (long long)o->patience,
             wg_schedule_name(s->kind), s->peak, s->final, (long long)s->warmup_steps,
             (long long)s->total_steps, (long long)s->decay_steps, (long long)s->width);
}

static int agree(wg_trainer *trainer, const wg_state_dict *state) {
    wg_group *group = trainer->options.group;
    char text[256];
    if (wg_group_agree(group, "the version of Wengert", wg_version()) < 0 ||
        wg_group_agree(group, "the processor's instruction set", wg__simd_for(WG_F32)->name) < 0)
        return -1;
    describe_module(state, text, sizeof text);
    if (wg_group_agree(group, "the model", text) < 0)
        return -1;
    describe_options(&trainer->options, text, sizeof text);
    if (wg_group_agree(group, "the options of training", text) < 0 ||
        (trainer->task.agree && trainer->task.agree(trainer->task.context, group) < 0))
        return -1;
    const wg_data_position at = wg_batches_position(trainer->task.batches);
    snprintf(text, sizeof text, "step %lld, epoch %lld, example %lld of %lld, seed %llu",
             (long long)trainer->step, (long long)at.epoch, (long long)at.next,
             (long long)wg_batches_examples(trainer->task.batches), (unsigned long long)at.seed);
    return wg_group_agree(group, "the place in the run", text);
}

static int broadcast(wg_group *group, wg_tensor *x) {
    if (!wg_tensor_is_contiguous(x))
        return wg_fail(WG_ERROR_STATE, WHERE, "a tensor of the module is not contiguous");
    return wg_group_broadcast(group, 0, (size_t)wg_tensor_count(x) * wg_dtype_size(x->spec.dtype),
                              wg_tensor_data(x));
}

/* All ranks begin with the weights, buffers, optimizer state and random numbers of rank 0. */
static int take_state(wg_trainer *trainer, const wg_state_dict *state) {
    wg_group *group = trainer->options.group;
    const char *slot, *name;
    wg_tensor *x;
    for (int64_t i = 0; i < state->count; i++)
        if (!state->entries[i].slot->tied && broadcast(group, state->entries[i].slot->tensor) < 0)
            return -1;
    for (int64_t i = 0; wg__optimizer_state(trainer->optimizer, i, &slot, &name, &x); i++)
        if (broadcast(group, x) < 0)
            return -1;
    return wg_group_broadcast(group, 0, sizeof(wg_generator),
                              wg_module_generator(trainer->task.module));
}

int wg__trainer_begin_group(wg_trainer *trainer) {
    if (!wg__trainer_is_shared(trainer))
        return 0;
    wg_state_dict *state = wg_module_state(trainer->task.module);
    int status = wg__trainer_share(trainer, state ? 0 : -1);
    if (status == 0)
        status = agree(trainer, state) < 0 || take_state(trainer, state) < 0 ? -1 : 0;
    wg_state_dict_free(state);
    return status;
}

/* ---- Gradients ---- */

/* A parameter that no batch of this rank used has a gradient of zeros, if another rank's did. */
static int make_zero_gradient(wg_tensor *parameter) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *zeros = wg_zeros_like(parameter);
    const int status = wg_backward(wg_sum(wg_mul(parameter, zeros), 0, NULL, false), NULL);
    wg_scope_end(&scope, NULL);
    return status;
}

/* Parameters that have a gradient on any rank, into `used`. */
static int find_used(wg_trainer *trainer, bool *used) {
    const wg_optimizer *optimizer = trainer->optimizer;
    double *flags = wg__alloc((size_t)optimizer->count * sizeof *flags);
    if (!flags)
        return -1;
    for (int64_t i = 0; i < optimizer->count; i++)
        flags[i] = wg_gradient(optimizer->entries[i].parameter) != NULL;
    int status = wg_group_max(trainer->options.group, WG_GROUP_F64, optimizer->count, flags);
    for (int64_t i = 0; status == 0 && i < optimizer->count; i++) {
        wg_tensor *parameter = optimizer->entries[i].parameter;
        used[i] = flags[i] != 0;
        if (used[i] && !wg_gradient(parameter))
            status = make_zero_gradient(parameter);
    }
    wg__free(flags);
    return status;
}

/* A place among the gradients: byte `at` of that of entry number `entry`. */
typedef struct place {
    int64_t entry;
    size_t at;
} place;

/* Copies up to PIECE_BYTES of the gradients of a dtype to the buffer, or back. Returns how many,
 * and moves the place behind them. */
static size_t copy_piece(const wg_optimizer *optimizer, const bool *used, wg_dtype dtype,
                         place *from, char *buffer, bool back) {
    size_t copied = 0;
    while (from->entry < optimizer->count && copied < PIECE_BYTES) {
        wg_tensor *parameter = optimizer->entries[from->entry].parameter;
        const size_t size = (size_t)wg_tensor_count(parameter) * wg_dtype_size(dtype);
        const bool counts = used[from->entry] && wg_tensor_dtype(parameter) == dtype;
        if (!counts || from->at == size) {
            *from = (place){from->entry + 1, 0};
            continue;
        }
        const size_t room = PIECE_BYTES - copied, left = size - from->at;
        const size_t part = left < room ? left : room;
        char *gradient = (char *)wg_tensor_data(wg_gradient(parameter)) + from->at;
        memcpy(back ? gradient : buffer + copied, back ? buffer + copied : gradient, part);
        copied += part;
        from->at += part;
    }
    return copied;
}

static int sum_dtype(wg_trainer *trainer, const bool *used, wg_dtype dtype, char *buffer) {
    const wg_group_element element = dtype == WG_F32 ? WG_GROUP_F32 : WG_GROUP_F64;
    place next = {0};
    for (;;) {
        place begin = next;
        const size_t bytes = copy_piece(trainer->optimizer, used, dtype, &next, buffer, false);
        if (bytes == 0)
            return 0;
        if (wg_group_sum(trainer->options.group, element, (int64_t)(bytes / wg_dtype_size(dtype)),
                         buffer) < 0)
            return -1;
        copy_piece(trainer->optimizer, used, dtype, &begin, buffer, true);
    }
}

int wg__trainer_sum_gradients(wg_trainer *trainer) {
    bool *used = wg__alloc((size_t)trainer->optimizer->count * sizeof *used);
    char *buffer = wg__alloc(PIECE_BYTES);
    wg__span span;
    wg__span_begin(&span, "sum gradients", WG_PROFILE_REGION);
    int status = used && buffer ? find_used(trainer, used) : -1;
    if (status == 0 && (sum_dtype(trainer, used, WG_F32, buffer) < 0 ||
                        sum_dtype(trainer, used, WG_F64, buffer) < 0))
        status = -1;
    wg__span_end(&span);
    wg__free(used);
    wg__free(buffer);
    return status;
}

/* ---- Metrics ---- */

static const wg_metric *find_metric(const wg_metrics *metrics, const char *name) {
    for (int i = 0; i < metrics->count; i++)
        if (strcmp(metrics->metrics[i].name, name) == 0)
            return &metrics->metrics[i];
    return NULL;
}

int wg__trainer_sum_metrics(wg_trainer *trainer, double *loss, wg_metrics *metrics) {
    wg_group *group = trainer->options.group;
    wg_metrics all = *metrics; /* rank 0 has the first batch of the step, so it knows all names */
    if (wg_group_broadcast(group, 0, sizeof all, &all) < 0)
        return -1;
    double sums[2 + 2 * WG_METRIC_MAX] = {*loss, (double)metrics->tokens};
    for (int i = 0; i < all.count; i++) {
        const wg_metric *mine = find_metric(metrics, all.metrics[i].name);
        sums[2 + 2 * i] = mine ? mine->sum : 0;
        sums[3 + 2 * i] = mine ? mine->weight : 0;
    }
    if (wg_group_sum(group, WG_GROUP_F64, 2 + 2 * all.count, sums) < 0)
        return -1;
    for (int i = 0; i < metrics->count; i++)
        if (!find_metric(&all, metrics->metrics[i].name))
            return wg_fail(WG_ERROR_STATE, WHERE, "only some batches have the metric \"%s\"",
                           metrics->metrics[i].name);
    *loss = sums[0];
    all.tokens = (int64_t)sums[1];
    for (int i = 0; i < all.count; i++) {
        all.metrics[i].sum = sums[2 + 2 * i];
        all.metrics[i].weight = sums[3 + 2 * i];
    }
    *metrics = all;
    return 0;
}
