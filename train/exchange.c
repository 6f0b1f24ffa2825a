/* The sum of gradients over the ranks of a group, for all stages of ZeRO   (Rajbhandari et al.
 * 2020).
 *
 *     bucket    | rank 0's | rank 1's | rank 2's |   gradients of some parameters, the last
 *                                                    parameters first; stage 0 has no shares
 *     backward  | layer 3 | layer 2 | layer 1 | ... | clip, step |
 *     network             | bucket 0: each part to its rank | 1 | 2 | ... | weights to all |
 *     memory    gradients are dropped as their bucket is sent; a rank keeps the sums of its share
 *
 *     stage   a bucket ends with            a rank steps   rounds of a step   after the step
 *     0       its sums at all ranks         everything     1                  -
 *     1       the sums of a share at each   its share      1                  weights to all
 *     2       the same                      its share      one a batch        weights to all
 *
 * Stage 2 sends the gradients of each batch, so no rank ever has all gradients. With stages 0 and 1
 * a rank adds up the gradients of its batches first, and sends the sums once a step. The sums over
 * ranks are in the optimizer (optim/shard.c), which steps from there; stage 0 adds up its buckets
 * in this array. With stages 1 and 2 few buckets are in flight: they are begun in order, and a
 * bucket without a free slot waits for the oldest one. All ranks exchange all buckets of a round,
 * even a rank that has failed or has no batch, so that no rank waits for ever. */
#include "train/internal.h"

#include "tensor/span.h"

enum { IN_FLIGHT = WG__BUCKETS_UNDER_WAY };

/* Part number `part` of `parts` of an entry, cut from the share of each rank. */
typedef struct item {
    int64_t entry, part, parts;
} item;

typedef struct bucket {
    int64_t first, last; /* items [first, last) */
    int64_t entries;     /* entries with items in this bucket */
    int64_t missing;     /* entries whose gradient is not yet complete */
    int *counts;         /* (shares) elements of each rank's part */
    int64_t elements;
} bucket;

/* A bucket in flight. */
typedef struct slot {
    char *buffer;
    wg__exchange *exchange;
} slot;

/* The gradient of an entry. */
typedef struct gradient {
    wg__exchange_plan *plan;
    int64_t entry;
    int64_t first_bucket, last_bucket; /* the buckets with its items */
    int hook;                          /* 0: none */
    bool is_complete;                  /* in this round; also if the entry gets no gradient */
    bool is_used;                      /* a round of this step had a gradient */
} gradient;

struct wg__exchange_plan {
    wg_optimizer *optimizer;
    wg_group *group;
    int stage;
    int shares, own; /* stage 0: a single share, which all ranks have */
    wg__transit transit;
    wg_group_element element;
    size_t size; /* of an element */
    int64_t item_count, bucket_count, largest;
    item *items;
    bucket *buckets;
    gradient *gradients; /* (entries) */
    slot *slots;         /* (slot_count) a ring: each bucket uses the next slot */
    int64_t slot_count;
    char *buffers;          /* of the slots; NULL with stage 0, which uses the optimizer's sums */
    int64_t begun;          /* buckets of this round */
    int64_t sent, received; /* buckets of all rounds in this step: begun, and ended */
};

void wg__exchange_plan_free(wg__exchange_plan *plan) {
    if (!plan)
        return;
    for (int64_t i = 0; plan->buckets && i < plan->bucket_count; i++)
        wg__free(plan->buckets[i].counts);
    wg__free(plan->items);
    wg__free(plan->buckets);
    wg__free(plan->gradients);
    wg__free(plan->slots);
    wg__free(plan->buffers);
    wg__free(plan);
}

/* The elements [*begin, *end) of an item's entry in a share. */
static void slice_of(const wg__exchange_plan *plan, const item *it, int share, int64_t *begin,
                     int64_t *end) {
    int64_t first, last;
    wg__optimizer_share(plan->optimizer, it->entry, share, &first, &last);
    *begin = first + (last - first) / it->parts * it->part;
    *end = it->part == it->parts - 1 ? last : *begin + (last - first) / it->parts;
}

static int64_t elements_of(const wg__exchange_plan *plan, const item *it) {
    int64_t begin, end, sum = 0;
    for (int share = 0; share < plan->shares; share++) {
        slice_of(plan, it, share, &begin, &end);
        sum += end - begin;
    }
    return sum;
}

static int64_t parts_of(const wg__exchange_plan *plan, int64_t entry, int64_t limit) {
    const wg_tensor *parameter = plan->optimizer->entries[entry].parameter;
    return wg__larger(wg__ceil_divide(wg_tensor_count(parameter), limit), 1);
}

/* Cuts the entries into items, and puts the items into buckets of at most `limit` elements, the
 * last entry first: backward completes gradients roughly in this order. */
static int make_buckets(wg__exchange_plan *plan, int64_t limit) {
    for (int64_t i = 0; i < plan->optimizer->count; i++)
        plan->item_count += parts_of(plan, i, limit);
    plan->items = wg__calloc((size_t)plan->item_count, sizeof *plan->items);
    plan->buckets = wg__calloc((size_t)plan->item_count, sizeof *plan->buckets);
    if (!plan->items || !plan->buckets)
        return -1;
    item *next = plan->items;
    for (int64_t i = plan->optimizer->count; i-- > 0;)
        for (int64_t part = 0, parts = parts_of(plan, i, limit); part < parts; part++)
            *next++ = (item){i, part, parts};

    for (int64_t i = 0; i < plan->item_count;) {
        const int64_t number = plan->bucket_count++;
        bucket *b = &plan->buckets[number];
        b->first = i;
        do
            b->elements += elements_of(plan, &plan->items[i++]);
        while (i < plan->item_count && b->elements + elements_of(plan, &plan->items[i]) <= limit);
        b->last = i;
        plan->largest = wg__larger(plan->largest, b->elements);
        b->counts = wg__calloc((size_t)plan->shares, sizeof *b->counts);
        if (!b->counts)
            return -1;
        for (int64_t k = b->first; k < b->last; k++) {
            const item *it = &plan->items[k];
            for (int share = 0; share < plan->shares; share++) {
                int64_t begin, end;
                slice_of(plan, it, share, &begin, &end);
                b->counts[share] += (int)(end - begin);
            }
            if (it->part == 0)
                plan->gradients[it->entry].first_bucket = number;
            plan->gradients[it->entry].last_bucket = number;
            b->entries += k == b->first || it->entry != it[-1].entry;
        }
    }
    return 0;
}

/* The buckets in flight are small beside the model, and the parts from all ranks fit an int. */
int64_t wg__bucket_bytes(int64_t gradient_bytes, int64_t ranks) {
    const int64_t bytes = wg__larger(gradient_bytes / 16, 64 << 10);
    return wg__smaller(wg__smaller(bytes, WG__BUCKET_BYTES), (1 << 30) / ranks);
}

wg__exchange_plan *wg__exchange_plan_new(wg_optimizer *optimizer, wg_group *group, int stage,
                                         wg__transit transit) {
    if (wg__optimizer_sum_gradients(optimizer) < 0)
        return NULL;
    wg__exchange_plan *plan = wg__calloc(1, sizeof *plan);
    if (!plan)
        return NULL;
    const wg_dtype dtype = optimizer->entries[0].dtype;
    *plan = (wg__exchange_plan){.optimizer = optimizer,
                                .group = group,
                                .stage = stage,
                                .shares = stage > 0 ? wg_group_size(group) : 1,
                                .own = stage > 0 ? wg_group_rank(group) : 0,
                                .transit = transit,
                                .element = dtype == WG_F64 ? WG_GROUP_F64 : WG_GROUP_F32,
                                .size = wg_dtype_size(dtype)};
    plan->gradients = wg__calloc((size_t)optimizer->count, sizeof *plan->gradients);
    int64_t all = 0;
    for (int64_t i = 0; plan->gradients && i < optimizer->count; i++) {
        plan->gradients[i] = (gradient){.plan = plan, .entry = i};
        all += wg_tensor_count(optimizer->entries[i].parameter);
    }
    const int64_t bytes =
        wg__bucket_bytes(all * (int64_t)plan->size, (int64_t)wg_group_size(group));
    const int64_t limit = wg__larger(bytes / (int64_t)plan->size, 1); /* elements of a bucket */
    const bool is_made = plan->gradients && make_buckets(plan, limit) == 0;
    /* Stage 0 has a slot for each bucket, whose buffer is a part of the optimizer's sums. */
    plan->slot_count = stage > 0 ? IN_FLIGHT : plan->bucket_count;
    plan->slots = is_made ? wg__calloc((size_t)plan->slot_count, sizeof *plan->slots) : NULL;
    if (is_made && stage > 0)
        plan->buffers =
            wg__alloc_array(wg__times(wg__times(plan->largest, plan->size), IN_FLIGHT) + 1, 1);
    char *at = stage > 0 ? plan->buffers : optimizer->shard.gradients;
    if (!plan->slots || !at) {
        wg__exchange_plan_free(plan);
        return NULL;
    }
    for (int64_t i = 0; i < plan->slot_count; i++) {
        plan->slots[i].buffer = at;
        at += (size_t)(stage > 0 ? plan->largest : plan->buckets[i].elements) * plan->size;
    }
    return plan;
}

int64_t wg__exchange_bytes(const wg__exchange_plan *plan) {
    const int64_t in_flight = plan && plan->stage > 0 ? 2 * IN_FLIGHT * plan->largest : 0;
    return plan ? (plan->optimizer->shard.elements + in_flight) * (int64_t)plan->size : 0;
}

/* The copies between the slots' buffers and the entries. */
typedef enum movement { PACK_GRADIENTS, ADD_SUMS, PACK_WEIGHTS, UNPACK_WEIGHTS } movement;

/* Moves elements [begin, end) of an entry. */
static void move(wg__exchange_plan *plan, movement what, int64_t index, int64_t begin, int64_t end,
                 char *at) {
    const wg__optimizer_entry *entry = &plan->optimizer->entries[index];
    const wg__optimizer_shard *shard = &plan->optimizer->shard;
    const size_t offset = (size_t)begin * plan->size, bytes = (size_t)(end - begin) * plan->size;
    char *weights = (char *)wg_tensor_data(entry->parameter) + offset;
    if (what == PACK_WEIGHTS) {
        memcpy(at, weights, bytes);
    } else if (what == UNPACK_WEIGHTS) {
        memcpy(weights, at, bytes);
    } else if (what == PACK_GRADIENTS) {
        const wg_tensor *own = wg_gradient(entry->parameter);
        if (own)
            memcpy(at, (const char *)wg_tensor_data(own) + offset, bytes);
        else
            memset(at, 0, bytes);
    } else if (plan->element == WG_GROUP_F64) {
        double *to = (double *)shard->gradients + shard->starts[index] + begin - entry->begin;
        for (int64_t i = 0; i < end - begin; i++)
            to[i] += ((const double *)at)[i];
    } else {
        float *to = (float *)shard->gradients + shard->starts[index] + begin - entry->begin;
        for (int64_t i = 0; i < end - begin; i++)
            to[i] += ((const float *)at)[i];
    }
}

/* Moves the slices of a share (-1: of all shares) from or to their places in the buffer. */
static void move_slices(wg__exchange_plan *plan, movement what, const bucket *b, int share,
                        char *buffer) {
    for (int s = 0; s < plan->shares; s++) {
        for (int64_t i = b->first; i < b->last && (share < 0 || s == share); i++) {
            int64_t begin, end;
            slice_of(plan, &plan->items[i], s, &begin, &end);
            if (end > begin)
                move(plan, what, plan->items[i].entry, begin, end, buffer);
            buffer += (size_t)(end - begin) * plan->size;
        }
        if (share >= 0 && s != share)
            buffer += (size_t)b->counts[s] * plan->size;
    }
}

/* Waits for the oldest bucket, and adds this rank's part to its gradients. Buckets are added in the
 * order of their begin, so that sums are the same bits each time. */
static int end_oldest(wg__exchange_plan *plan) {
    const int64_t number = plan->received++;
    slot *s = &plan->slots[number % plan->slot_count];
    const int status = wg__group_end_exchange(plan->group, &s->exchange);
    if (status == 0 && plan->stage > 0)
        move_slices(plan, ADD_SUMS, &plan->buckets[number % plan->bucket_count], plan->own,
                    s->buffer);
    return status;
}

/* Ends the buckets that have arrived, without waiting for others. */
static int end_arrived(wg__exchange_plan *plan) {
    for (bool done = true; done && plan->received < plan->sent;) {
        slot *s = &plan->slots[plan->received % plan->slot_count];
        if (wg__group_test(plan->group, &s->exchange, &done) < 0 || (done && end_oldest(plan) < 0))
            return -1;
    }
    return 0;
}

/* Sends the complete buckets, in order, and lets the buckets in flight progress. Drops a gradient
 * when its last item is sent. */
static int begin_complete_buckets(wg__exchange_plan *plan) {
    if (end_arrived(plan) < 0)
        return -1;
    for (; plan->begun < plan->bucket_count && plan->buckets[plan->begun].missing == 0;
         plan->begun++) {
        const bucket *b = &plan->buckets[plan->begun];
        if (plan->sent - plan->received >= plan->slot_count && end_oldest(plan) < 0)
            return -1;
        slot *s = &plan->slots[plan->sent % plan->slot_count];
        move_slices(plan, PACK_GRADIENTS, b, -1, s->buffer);
        for (const item *it = plan->items + b->first; it < plan->items + b->last; it++)
            if (it->part == it->parts - 1)
                wg_zero_grad(plan->optimizer->entries[it->entry].parameter);
        const int status =
            plan->stage > 0
                ? wg__group_begin_reduce_scatter(plan->group, plan->element, plan->transit,
                                                 b->counts, s->buffer, &s->exchange)
                : wg__group_begin_sum(plan->group, plan->element, plan->transit, b->counts[0],
                                      s->buffer, &s->exchange);
        if (status < 0)
            return -1;
        plan->sent++;
    }
    return end_arrived(plan);
}

static void complete_gradient(gradient *of) {
    wg__exchange_plan *plan = of->plan;
    if (of->is_complete)
        return;
    of->is_complete = true;
    of->is_used |= wg_gradient(plan->optimizer->entries[of->entry].parameter) != NULL;
    for (int64_t b = of->first_bucket; b <= of->last_bucket; b++)
        plan->buckets[b].missing--;
}

static int complete_in_backward(wg_tensor *leaf, void *context) {
    gradient *of = context;
    (void)leaf; /* the entry's parameter */
    complete_gradient(of);
    return begin_complete_buckets(of->plan);
}

static void remove_hooks(wg__exchange_plan *plan) {
    for (int64_t i = 0; i < plan->optimizer->count; i++) {
        gradient *of = &plan->gradients[i];
        if (of->hook > 0)
            wg_remove_hook(plan->optimizer->entries[i].parameter, of->hook);
        of->hook = 0;
    }
}

void wg__exchange_begin(wg__exchange_plan *plan, bool is_first) {
    const wg__optimizer_shard *shard = &plan->optimizer->shard;
    if (is_first && plan->stage > 0)
        memset(shard->gradients, 0, (size_t)shard->elements * plan->size);
    if (is_first)
        plan->sent = plan->received = 0;
    plan->begun = 0;
    for (int64_t i = 0; i < plan->optimizer->count; i++) {
        plan->gradients[i].is_complete = false;
        plan->gradients[i].is_used &= !is_first;
    }
    for (int64_t i = 0; i < plan->bucket_count; i++)
        plan->buckets[i].missing = plan->buckets[i].entries;
}

int wg__exchange_in_backward(wg__exchange_plan *plan) {
    for (int64_t i = 0; i < plan->optimizer->count; i++) {
        gradient *of = &plan->gradients[i];
        wg_tensor *parameter = plan->optimizer->entries[i].parameter;
        if (!wg_requires_grad(parameter))
            continue;
        of->hook = wg_register_post_accumulate_grad_hook(parameter, complete_in_backward, of);
        if (of->hook < 0) {
            remove_hooks(plan);
            return -1;
        }
    }
    return 0;
}

int wg__exchange_end(wg__exchange_plan *plan, bool is_last) {
    wg__span span;
    wg__span_begin(&span, "sum gradients", WG_PROFILE_REGION);
    remove_hooks(plan);
    for (int64_t i = plan->optimizer->count; i-- > 0;)
        complete_gradient(&plan->gradients[i]);
    int status = begin_complete_buckets(plan);
    while (is_last && plan->received < plan->sent)
        if (end_oldest(plan) < 0)
            status = -1;
    wg__span_end(&span);
    return status;
}

int wg__exchange_mark_used(wg__exchange_plan *plan) {
    const int64_t count = plan->optimizer->count;
    double *flags = wg__alloc_array(count, sizeof *flags);
    if (!flags) /* all other ranks wait in the exchange below */
        wg_group_abort(plan->group, "there is no memory for a step");
    for (int64_t i = 0; i < count; i++)
        flags[i] = plan->gradients[i].is_used;
    const int status = wg__group_max(plan->group, WG_GROUP_F64, count, flags);
    for (int64_t i = 0; i < count; i++)
        plan->optimizer->entries[i].used = flags[i] != 0;
    wg__free(flags);
    return status;
}

int wg__exchange_gather_weights(wg__exchange_plan *plan) {
    int status = 0;
    wg__span span;
    wg__span_begin(&span, "gather weights", WG_PROFILE_REGION);
    for (int64_t i = 0; i < plan->bucket_count + IN_FLIGHT; i++) {
        slot *s = &plan->slots[i % IN_FLIGHT];
        if (s->exchange && wg__group_end_exchange(plan->group, &s->exchange) < 0)
            status = -1;
        else if (i >= IN_FLIGHT && status == 0)
            move_slices(plan, UNPACK_WEIGHTS, &plan->buckets[i - IN_FLIGHT], -1, s->buffer);
        if (i >= plan->bucket_count || status < 0)
            continue;
        const bucket *b = &plan->buckets[i];
        move_slices(plan, PACK_WEIGHTS, b, plan->own, s->buffer);
        status = wg__group_begin_all_gather(plan->group, plan->element, b->counts, s->buffer,
                                            &s->exchange);
    }
    for (int64_t i = 0; i < plan->optimizer->count; i++)
        wg_tensor_touch(plan->optimizer->entries[i].parameter);
    wg__span_end(&span);
    return status;
}
