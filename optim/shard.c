/* ZeRO's share of an optimizer   (Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward
 * Training Trillion Parameter Models"): each of N ranks stores a part of the state, and updates the
 * elements that belong to it.
 *
 *     parameter     | embedding               | query  | key    | norm |
 *     rank 0        | ########                | ###    |     ###| #### |
 *     rank 1        |         ########        |    ### |        |      |
 *     rank 2        |                 ########|       #| ###    |      |
 *
 * Each parameter is cut at chunks of WG__GRAIN elements, into at most one range for each rank, so
 * that loops over chunks, and the sums kept for them, are the same as in one process. All ranks
 * have the same number of elements, within a chunk. A parameter that a rule updates as a whole, a
 * matrix of Muon's, belongs to one rank; the largest parameters are given out first, and shares of
 * ranks differ by a matrix at most. */
#include "optim/internal.h"

#include <string.h>

#include "base/group_internal.h"
#include "tensor/internal.h"

#define WHERE "shard"

void wg__optimizer_shard_clear(wg_optimizer *optimizer) {
    wg__free(optimizer->shard.bounds);
    wg__free(optimizer->shard.gradients);
    wg__free(optimizer->shard.starts);
    optimizer->shard = (wg__optimizer_shard){0};
}

void wg__optimizer_share(const wg_optimizer *optimizer, int64_t index, int rank, int64_t *begin,
                         int64_t *end) {
    const wg__optimizer_shard *shard = &optimizer->shard;
    *begin = 0;
    *end = wg_tensor_count(optimizer->entries[index].parameter);
    if (!shard->bounds)
        return;
    const int64_t *bounds = shard->bounds + index * (wg_group_size(shard->group) + 1);
    *begin = bounds[rank];
    *end = bounds[rank + 1];
}

static int least_loaded(const int64_t *loads, int ranks) {
    int least = 0;
    for (int rank = 1; rank < ranks; rank++)
        if (loads[rank] < loads[least])
            least = rank;
    return least;
}

static bool is_whole(const wg_optimizer *optimizer, int64_t index) {
    const wg__optimizer_rule *rule = optimizer->rule;
    return rule->steps_whole ||
           (rule->is_whole && rule->is_whole(optimizer, &optimizer->entries[index]));
}

int wg__optimizer_shard_state(wg_optimizer *optimizer) {
    wg__optimizer_shard *shard = &optimizer->shard;
    if (!shard->group)
        return 0;
    const int ranks = wg_group_size(shard->group);
    int64_t *loads = wg__calloc((size_t)ranks, sizeof *loads);
    bool *is_placed = wg__calloc((size_t)optimizer->count, sizeof *is_placed);
    shard->bounds = wg__calloc((size_t)wg__times(optimizer->count, ranks + 1), sizeof(int64_t));
    const int status = loads && is_placed && shard->bounds ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < optimizer->count; i++)
        is_placed[i] = !is_whole(optimizer, i);
    /* The largest whole parameter without a rank goes to the rank with the fewest elements. */
    for (int64_t left = optimizer->count; status == 0 && left > 0; left--) {
        int64_t largest = -1, most = -1;
        for (int64_t i = 0; i < optimizer->count; i++) {
            const int64_t count = wg_tensor_count(optimizer->entries[i].parameter);
            if (is_placed[i] || count <= most)
                continue;
            largest = i;
            most = count;
        }
        if (largest < 0)
            break;
        const int owner = least_loaded(loads, ranks);
        for (int rank = 0; rank <= ranks; rank++)
            shard->bounds[largest * (ranks + 1) + rank] = rank > owner ? most : 0;
        is_placed[largest] = true;
        loads[owner] += most;
    }
    for (int64_t i = 0; status == 0 && i < optimizer->count; i++) {
        const int64_t count = wg_tensor_count(optimizer->entries[i].parameter);
        int64_t *bounds = shard->bounds + i * (ranks + 1);
        if (is_whole(optimizer, i))
            continue;
        /* Each chunk goes to the rank with the fewest elements. Then the chunks of each rank become
         * a range. */
        memset(bounds, 0, (size_t)(ranks + 1) * sizeof *bounds);
        for (int64_t at = 0; at < count; at += WG__GRAIN) {
            const int rank = least_loaded(loads, ranks);
            loads[rank] += wg__smaller(WG__GRAIN, count - at);
            bounds[rank + 1] += WG__GRAIN;
        }
        for (int rank = 0; rank < ranks; rank++)
            bounds[rank + 1] = wg__smaller(bounds[rank] + bounds[rank + 1], count);
    }
    wg__free(loads);
    wg__free(is_placed);
    if (status < 0)
        return -1;
    for (int64_t i = 0; i < optimizer->count; i++) {
        wg__optimizer_entry *entry = &optimizer->entries[i];
        wg__optimizer_share(optimizer, i, wg_group_rank(shard->group), &entry->begin, &entry->end);
        if (wg__optimizer_prepare(optimizer, entry) < 0)
            return -1;
    }
    return 0;
}

int wg__optimizer_sum_gradients(wg_optimizer *optimizer) {
    wg__optimizer_shard *shard = &optimizer->shard;
    const wg__optimizer_entry *entries = optimizer->entries;
    if (optimizer->count == 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "there are no parameters");
    for (int64_t i = 1; i < optimizer->count; i++)
        if (entries[i].dtype != entries[0].dtype)
            return wg_fail(WG_ERROR_DTYPE, WHERE,
                           "parameters of several dtypes, which several ranks do not train");
    shard->starts = wg__calloc((size_t)optimizer->count, sizeof *shard->starts);
    for (int64_t i = optimizer->count; shard->starts && i-- > 0;) {
        shard->starts[i] = shard->elements;
        shard->elements += entries[i].end - entries[i].begin;
    }
    shard->gradients = wg__calloc((size_t)shard->elements + 1, wg_dtype_size(entries[0].dtype));
    return shard->starts && shard->gradients ? 0 : -1;
}

int64_t wg__optimizer_state_bytes(const wg_optimizer *optimizer) {
    int64_t bytes = 0;
    for (int64_t i = 0; i < optimizer->count; i++) {
        const wg__optimizer_entry *entry = &optimizer->entries[i];
        for (int s = 0; s < entry->state_count; s++)
            bytes += wg_tensor_count(entry->states[s]) * (int64_t)wg_dtype_size(entry->dtype);
    }
    return bytes;
}

/* The bytes of each rank's part of a state, freed by wg__free. */
static int64_t *parts_of(const wg_optimizer *optimizer, const wg__optimizer_entry *entry,
                         int state) {
    const int ranks = wg_group_size(optimizer->shard.group);
    const int64_t size = (int64_t)wg_dtype_size(entry->dtype);
    const int64_t all = wg_tensor_count(entry->parameter);
    int64_t *parts = wg__alloc_array(ranks, sizeof *parts);
    for (int rank = 0; parts && rank < ranks; rank++) {
        int64_t begin, end;
        wg__optimizer_share(optimizer, entry - optimizer->entries, rank, &begin, &end);
        parts[rank] =
            size * (end - begin == all ? wg__spec_count(&entry->state_specs[state]) : end - begin);
    }
    return parts;
}

/* Rank 0 broadcasts the index of a state to the ranks in wg__optimizer_send_states; -1: the end. */
int wg__optimizer_end_gather(const wg_optimizer *optimizer) {
    int64_t none = -1;
    return wg_group_broadcast(optimizer->shard.group, 0, sizeof none, &none);
}

int wg__optimizer_send_states(const wg_optimizer *optimizer) {
    for (int64_t index;;) {
        int state, status = -1;
        if (wg_group_broadcast(optimizer->shard.group, 0, sizeof index, &index) < 0)
            return -1;
        const wg__optimizer_entry *entry =
            index < 0 ? NULL : wg__optimizer_state_entry(optimizer, index, &state);
        if (!entry)
            return 0;
        int64_t *parts = parts_of(optimizer, entry, state);
        if (!parts) /* rank 0 waits for this part */
            wg_group_abort(optimizer->shard.group, "there is no memory to send optimizer state");
        else
            status = wg__group_gather(optimizer->shard.group, parts,
                                      wg_tensor_data(entry->states[state]));
        wg__free(parts);
        if (status < 0)
            return -1;
    }
}

wg_tensor *wg__optimizer_gather_state(const wg_optimizer *optimizer, int64_t index) {
    int state;
    const wg__optimizer_entry *entry = wg__optimizer_state_entry(optimizer, index, &state);
    const wg_spec *spec = &entry->state_specs[state];
    wg_tensor *whole = wg_zeros(spec->dtype, spec->ndim, spec->shape);
    int64_t *parts = whole ? parts_of(optimizer, entry, state) : NULL;
    if (!parts)
        return NULL;
    memcpy(wg_tensor_data(whole), wg_tensor_data(entry->states[state]), (size_t)parts[0]);
    int status = wg_group_broadcast(optimizer->shard.group, 0, sizeof index, &index);
    if (status == 0)
        status = wg__group_gather(optimizer->shard.group, parts, wg_tensor_data(whole));
    wg__free(parts);
    return status == 0 ? whole : NULL;
}

void wg__optimizer_set_state(wg_optimizer *optimizer, int64_t index, const wg_tensor *whole) {
    int state;
    const wg__optimizer_entry *entry = wg__optimizer_state_entry(optimizer, index, &state);
    const size_t size = wg_dtype_size(entry->dtype);
    wg_tensor *part = entry->states[state];
    const char *from = wg_tensor_data(whole);
    memcpy(wg_tensor_data(part), from + (size_t)entry->begin * size,
           (size_t)wg_tensor_count(part) * size);
}
