/* Data parallelism: the ranks of a group compare their options and share state and buffers.
 * exchange.c sums the gradients. See trainer.h. */
#include "train/internal.h"

#include <stdio.h>

#include "base/array.h"
#include "tensor/internal.h"
#include "tensor/simd/simd.h"
#include "data/internal.h"

#define WHERE "train"

int wg__trainer_share(wg_trainer *trainer, int status) {
    const int shared = wg_group_check(trainer->options.group, status);
    if (shared < 0)
        trainer->error_is_shared = true;
    return shared;
}

int wg__trainer_check_group(const wg_trainer *trainer) {
    const wg_trainer_options *options = &trainer->options;
    const int ranks = wg_group_size(options->group);
    if (options->zero < 0 || options->zero > 2)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "stage %d of ZeRO; 1 (optimizer state is sharded) and 2 (gradients too) are "
                       "there, and 0 for none",
                       options->zero);
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

static int broadcast(wg_group *group, wg_tensor *x) {
    if (!wg_tensor_is_contiguous(x))
        return wg_fail(WG_ERROR_STATE, WHERE, "a tensor of the module is not contiguous");
    return wg_group_broadcast(group, 0, (size_t)wg_tensor_count(x) * wg_dtype_size(x->spec.dtype),
                              wg_tensor_data(x));
}

/* A buffer that training writes, for example a running mean. */
typedef struct written {
    wg_tensor *buffer; /* borrowed from the module */
    uint64_t version;  /* when all ranks last had the same values */
} written;

struct wg__shared_buffers {
    written *buffers;
    int64_t count, capacity;
    double *sums; /* room for a flag of each buffer, and for the elements of the largest buffer */
};

void wg__shared_buffers_free(wg__shared_buffers *shared) {
    if (!shared)
        return;
    wg__free(shared->buffers);
    wg__free(shared->sums);
    wg__free(shared);
}

/* The mean over the `writers` ranks that have written the buffer. */
static int average_buffer(wg_group *group, wg_tensor *x, bool has_written, double writers,
                          double *sums) {
    const int64_t count = wg_tensor_count(x);
    void *data = wg_tensor_data(x);
    for (int64_t i = 0; i < count; i++)
        sums[i] = !has_written                   ? 0
                  : wg_tensor_dtype(x) == WG_F32 ? ((const float *)data)[i]
                                                 : ((const double *)data)[i];
    if (wg_group_sum(group, WG_GROUP_F64, count, sums) < 0)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        if (wg_tensor_dtype(x) == WG_F32)
            ((float *)data)[i] = (float)(sums[i] / writers);
        else
            ((double *)data)[i] = sums[i] / writers;
    }
    wg_tensor_touch(x);
    return 0;
}

int wg__trainer_share_buffers(wg_trainer *trainer) {
    wg__shared_buffers *shared = trainer->buffers;
    wg_group *group = trainer->options.group;
    for (int64_t i = 0; i < shared->count; i++)
        shared->sums[i] =
            wg__tensor_version(shared->buffers[i].buffer) != shared->buffers[i].version;
    if (shared->count == 0)
        return 0;
    double *writers = wg__alloc_array(shared->count, sizeof *writers);
    if (!writers) { /* all other ranks wait in the sum below */
        wg_group_abort(group, "there is no memory for a step");
        return -1;
    }
    memcpy(writers, shared->sums, (size_t)shared->count * sizeof *writers);
    int status = wg_group_sum(group, WG_GROUP_F64, shared->count, writers);
    for (int64_t i = 0; status == 0 && i < shared->count; i++) {
        written *own = &shared->buffers[i];
        const wg_dtype dtype = wg_tensor_dtype(own->buffer);
        if (writers[i] == 0)
            continue;
        if (dtype == WG_F32 || dtype == WG_F64)
            status =
                average_buffer(group, own->buffer, wg__tensor_version(own->buffer) != own->version,
                               writers[i], shared->sums);
        else
            status = broadcast(group, own->buffer);
        own->version = wg__tensor_version(own->buffer);
    }
    wg__free(writers);
    return status;
}

static int agree(wg_trainer *trainer, const wg_state_dict *state) {
    wg_group *group = trainer->options.group;
    char text[256];
    if (wg__group_agree(group, "the version of Wengert", wg_version()) < 0 ||
        wg__group_agree(group, "the processor's instruction set", wg__simd_for(WG_F32)->name) < 0 ||
        wg__group_agree(group, "deterministic mode", wg_is_deterministic() ? "on" : "off") < 0)
        return -1;
    uint64_t found = WG__HASH_BEGIN; /* of names and shapes of parameters and buffers */
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
    snprintf(text, sizeof text, "%lld tensors of %lld numbers, fingerprint %016llx",
             (long long)state->count, (long long)elements, (unsigned long long)found);
    if (wg__group_agree(group, "the model", text) < 0)
        return -1;
    const wg_trainer_options *o = &trainer->options;
    const wg_schedule *s = &o->schedule;
    snprintf(
        text, sizeof text,
        "steps %lld, accumulate %lld in %lld, clip %g, average %g, evaluate every %lld, "
        "patience %lld, ZeRO %d%s, %s; %s to %g, %g at the end, warm-up %lld of %lld, decay %lld, "
        "width %lld",
        (long long)o->steps, (long long)o->accumulate, (long long)o->accumulate_ramp, o->clip,
        o->average_decay, (long long)o->evaluate_every, (long long)o->patience, o->zero,
        o->bf16_gradients ? " bf16" : "", wg_dtype_name(o->matmul_dtype),
        wg__schedule_name(s->kind), s->peak, s->final, (long long)s->warmup_steps,
        (long long)s->total_steps, (long long)s->decay_steps, (long long)s->width);
    if (wg__group_agree(group, "the options of training", text) < 0 ||
        (trainer->task.agree && trainer->task.agree(trainer->task.context, group) < 0))
        return -1;
    const wg_data_position at = wg__batches_position(trainer->task.batches);
    snprintf(text, sizeof text, "step %lld, epoch %lld, example %lld of %lld, seed %llu",
             (long long)trainer->step, (long long)at.epoch, (long long)at.next,
             (long long)wg__batches_examples(trainer->task.batches), (unsigned long long)at.seed);
    return wg__group_agree(group, "the place in the run", text);
}

int wg__trainer_begin_group(wg_trainer *trainer) {
    if (!trainer->exchange)
        return 0;
    wg_state_dict *state = wg_module_state(trainer->task.module);
    wg__shared_buffers_free(trainer->buffers);
    wg__shared_buffers *shared = trainer->buffers = wg__calloc(1, sizeof *shared);
    int status = state && shared ? 0 : -1;
    int64_t room = 1;
    for (int64_t i = 0; status == 0 && i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        if (slot->kind != WG_SLOT_BUFFER || slot->tied)
            continue;
        /* The broadcast below gives all ranks the same values, without a new version. */
        const written added = {slot->tensor, wg__tensor_version(slot->tensor)};
        room = wg__larger(room, wg_tensor_count(slot->tensor));
        status =
            wg__append(&shared->buffers, &shared->count, &shared->capacity, &added, sizeof added);
    }
    if (status == 0) {
        shared->sums = wg__alloc_array(wg__larger(room, shared->count), sizeof(double));
        status = shared->sums ? 0 : -1;
    }
    status = wg__trainer_share(trainer, status);
    if (status == 0)
        status = agree(trainer, state);

    /* All ranks begin with the weights, buffers, optimizer state and random numbers of rank 0. */
    wg_group *group = trainer->options.group;
    for (int64_t i = 0; status == 0 && i < state->count; i++)
        if (!state->entries[i].slot->tied)
            status = broadcast(group, state->entries[i].slot->tensor);
    for (int64_t i = 0; status == 0 && !trainer->shares_state; i++) {
        const char *slot, *name;
        wg_tensor *x;
        if (!wg__optimizer_state(trainer->optimizer, i, &slot, &name, &x))
            break;
        status = broadcast(group, x);
    }
    if (status == 0)
        status = wg_group_broadcast(group, 0, sizeof(wg_generator),
                                    wg_module_generator(trainer->task.module));
    wg_state_dict_free(state);
    return status;
}

int64_t wg__trainer_weight_bytes(const wg_trainer *trainer) {
    const wg_optimizer *optimizer = trainer->optimizer;
    int64_t bytes = 0;
    for (int64_t i = 0; i < optimizer->count; i++)
        bytes += wg_tensor_count(optimizer->entries[i].parameter) *
                 (int64_t)wg_dtype_size(optimizer->entries[i].dtype);
    return bytes;
}

/* A rank that sends the gradients of each batch stores none. */
void wg__trainer_memory(const wg_trainer *trainer, int64_t *state, int64_t *gradients) {
    const int64_t all = wg__trainer_weight_bytes(trainer);
    const bool keeps = !trainer->shares_state ||
                       (trainer->options.zero == 1 &&
                        trainer->options.accumulate > wg_group_size(trainer->options.group));
    *state = wg__optimizer_state_bytes(trainer->optimizer);
    *gradients = (keeps ? all : 0) + wg__exchange_bytes(trainer->exchange);
}
