/* ZeRO stages 1 and 2   (Rajbhandari et al. 2020): gradients are summed at the rank that steps
 * them, and the stepped weights go to all.
 *
 *     bucket    | rank 0's | rank 1's | rank 2's |   of some parameters, the last ones first
 *
 *     backward  | layer 3 | layer 2 | layer 1 | ... | clip, step |
 *     network             | bucket 0: each part to its rank | 1 | 2 | ... | weights to all |
 *     memory    gradients are dropped as their bucket is sent; a rank keeps the sums of its share
 *
 * Stage 2 sends the gradients of each batch, so no rank ever has all of them. Stage 1 adds up those
 * of a rank's batches first, and sends them once a step. Few buckets are under way at a time: they
 * are begun in order, and one that finds none free waits for the oldest. */
#include "train/trainer_state.h"

#include "base/group_internal.h"
#include "optim/internal.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tensor/span.h"

#define WHERE "train"

enum { BUCKET_BYTES = 4 << 20, LEAST_BUCKET_BYTES = 64 << 10, UNDER_WAY = 3 };

/* Part number `part` of `parts` of what each rank steps of an entry. */
typedef struct item {
    int64_t entry, part, parts;
} item;

typedef struct bucket {
    int64_t first, last; /* items [first, last) */
    int64_t entries;     /* that have items in it */
    int64_t missing;     /* of them, how many have no whole gradient as yet */
    int *counts;         /* (ranks) elements of each rank's part */
    int64_t elements;
} bucket;

/* A bucket that is under way. */
typedef struct slot {
    char *buffer;
    wg__exchange *exchange;
    int64_t bucket; /* -1: the slot is free */
} slot;

typedef struct hooked {
    wg_trainer *trainer;
    int64_t index;
    int hook; /* 0: none */
} hooked;

struct wg__zero {
    wg_group_element element;
    size_t size; /* of an element */
    int64_t item_count, bucket_count, largest;
    item *items;
    bucket *buckets;
    int64_t *first_bucket, *last_bucket; /* (entries) of those with items of each */
    hooked *hooks;                       /* (entries) */
    bool *is_taken; /* (entries) this round's gradient is whole, or will not come */
    bool *used;     /* (entries) it was there in some round of the step */
    slot slots[UNDER_WAY];
    int64_t begun; /* buckets of this round */
};

void wg__zero_free(wg__zero *zero) {
    if (!zero)
        return;
    for (int64_t i = 0; zero->buckets && i < zero->bucket_count; i++)
        wg__free(zero->buckets[i].counts);
    for (int i = 0; i < UNDER_WAY; i++)
        wg__free(zero->slots[i].buffer);
    wg__free(zero->items);
    wg__free(zero->buckets);
    wg__free(zero->first_bucket);
    wg__free(zero->last_bucket);
    wg__free(zero->hooks);
    wg__free(zero->is_taken);
    wg__free(zero->used);
    wg__free(zero);
}

/* ---- Buckets ---- */

static wg_group *group_of(const wg_trainer *trainer) {
    return trainer->options.group;
}

/* The elements [*begin, *end) of the item's entry that rank `rank` steps. */
static void slice_of(const wg_trainer *trainer, const item *it, int rank, int64_t *begin,
                     int64_t *end) {
    int64_t first, last;
    wg__optimizer_share(trainer->optimizer, it->entry, rank, &first, &last);
    *begin = first + (last - first) / it->parts * it->part;
    *end = it->part == it->parts - 1 ? last : *begin + (last - first) / it->parts;
}

/* Elements in a bucket, about: what is under way shall be little beside the model, and what comes
 * in from all ranks fit an int. */
static int64_t bucket_limit(const wg_trainer *trainer, const wg__zero *zero) {
    int64_t all = 0, bytes;
    for (int64_t i = 0; i < trainer->optimizer->count; i++)
        all += wg_tensor_count(trainer->optimizer->entries[i].parameter);
    bytes = wg__larger(all * (int64_t)zero->size / 16, LEAST_BUCKET_BYTES);
    bytes =
        wg__smaller(wg__smaller(bytes, BUCKET_BYTES), (1 << 30) / wg_group_size(group_of(trainer)));
    return wg__larger(bytes / (int64_t)zero->size, 1);
}

static int64_t parts_of(const wg_trainer *trainer, int64_t entry, int64_t limit) {
    const int64_t count = wg_tensor_count(trainer->optimizer->entries[entry].parameter);
    return wg__larger(wg__ceil_divide(count, limit), 1);
}

static int64_t elements_of(const wg_trainer *trainer, const item *it) {
    int64_t begin, end, sum = 0;
    for (int rank = 0; rank < wg_group_size(group_of(trainer)); rank++) {
        slice_of(trainer, it, rank, &begin, &end);
        sum += end - begin;
    }
    return sum;
}

/* The items of all entries, the last entry first: backward completes them about in that order. */
static int make_items(const wg_trainer *trainer, wg__zero *zero, int64_t limit) {
    const int64_t count = trainer->optimizer->count;
    for (int64_t i = 0; i < count; i++)
        zero->item_count += parts_of(trainer, i, limit);
    zero->items = wg__calloc((size_t)zero->item_count, sizeof *zero->items);
    zero->buckets = wg__calloc((size_t)zero->item_count, sizeof *zero->buckets);
    if (!zero->items || !zero->buckets)
        return -1;
    int64_t at = 0;
    for (int64_t i = count; i-- > 0;) {
        const int64_t parts = parts_of(trainer, i, limit);
        for (int64_t part = 0; part < parts; part++)
            zero->items[at++] = (item){i, part, parts};
    }
    return 0;
}

static int count_parts(const wg_trainer *trainer, const wg__zero *zero, bucket *b) {
    const int ranks = wg_group_size(group_of(trainer));
    b->counts = wg__calloc((size_t)ranks, sizeof *b->counts);
    for (int rank = 0; b->counts && rank < ranks; rank++)
        for (int64_t i = b->first; i < b->last; i++) {
            int64_t begin, end;
            slice_of(trainer, &zero->items[i], rank, &begin, &end);
            b->counts[rank] += (int)(end - begin);
        }
    return b->counts ? 0 : -1;
}

/* Counts an entry once, however many items of it are in the bucket. */
static void note_entries(wg__zero *zero, int64_t number) {
    bucket *b = &zero->buckets[number];
    for (int64_t i = b->first; i < b->last; i++) {
        const item *it = &zero->items[i];
        if (it->part == 0)
            zero->first_bucket[it->entry] = number;
        zero->last_bucket[it->entry] = number;
        b->entries += i == b->first || it->entry != zero->items[i - 1].entry;
    }
}

static int make_buckets(const wg_trainer *trainer, wg__zero *zero, int64_t limit) {
    for (int64_t i = 0; i < zero->item_count;) {
        bucket *b = &zero->buckets[zero->bucket_count++];
        *b = (bucket){.first = i};
        do
            b->elements += elements_of(trainer, &zero->items[i++]);
        while (i < zero->item_count &&
               b->elements + elements_of(trainer, &zero->items[i]) <= limit);
        b->last = i;
        note_entries(zero, zero->bucket_count - 1);
        zero->largest = wg__larger(zero->largest, b->elements);
        if (count_parts(trainer, zero, b) < 0)
            return -1;
    }
    for (int i = 0; i < UNDER_WAY; i++) {
        zero->slots[i].bucket = -1;
        zero->slots[i].buffer = wg__alloc((size_t)zero->largest * zero->size + 1);
        if (!zero->slots[i].buffer)
            return -1;
    }
    return 0;
}

int wg__zero_make(wg_trainer *trainer) {
    const wg_optimizer *optimizer = trainer->optimizer;
    const size_t count = (size_t)optimizer->count;
    wg__zero *zero = trainer->zero = wg__calloc(1, sizeof *zero);
    if (!zero)
        return -1;
    zero->size = wg_dtype_size(optimizer->entries[0].dtype);
    zero->element = optimizer->entries[0].dtype == WG_F64 ? WG_GROUP_F64 : WG_GROUP_F32;
    zero->first_bucket = wg__calloc(count, sizeof *zero->first_bucket);
    zero->last_bucket = wg__calloc(count, sizeof *zero->last_bucket);
    zero->hooks = wg__calloc(count, sizeof *zero->hooks);
    zero->is_taken = wg__calloc(count, sizeof *zero->is_taken);
    zero->used = wg__calloc(count, sizeof *zero->used);
    if (!zero->first_bucket || !zero->last_bucket || !zero->hooks || !zero->is_taken || !zero->used)
        return -1;
    const int64_t limit = bucket_limit(trainer, zero);
    return make_items(trainer, zero, limit) < 0 ? -1 : make_buckets(trainer, zero, limit);
}

int64_t wg__zero_buffer_bytes(const wg__zero *zero) {
    return 2 * UNDER_WAY * zero->largest * (int64_t)zero->size;
}

/* ---- Contents of a bucket ---- */

/* Calls `move` for each slice of a rank's part (of all ranks' parts: rank -1), with where it stands
 * in the buffer. */
static void for_slices(wg_trainer *trainer, const bucket *b, int rank, char *buffer,
                       void (*move)(wg_trainer *trainer, int64_t entry, int64_t begin, int64_t end,
                                    char *at)) {
    wg__zero *zero = trainer->zero;
    for (int r = 0; r < wg_group_size(group_of(trainer)); r++) {
        for (int64_t i = b->first; i < b->last && (rank < 0 || r == rank); i++) {
            int64_t begin, end;
            slice_of(trainer, &zero->items[i], r, &begin, &end);
            if (end > begin)
                move(trainer, zero->items[i].entry, begin, end, buffer);
            buffer += (size_t)(end - begin) * zero->size;
        }
        if (rank >= 0 && r != rank)
            buffer += (size_t)b->counts[r] * zero->size;
    }
}

static void pack_gradient(wg_trainer *trainer, int64_t entry, int64_t begin, int64_t end,
                          char *at) {
    const size_t size = trainer->zero->size;
    const wg_tensor *gradient = wg_gradient(trainer->optimizer->entries[entry].parameter);
    if (gradient)
        memcpy(at, (const char *)wg_tensor_data(gradient) + (size_t)begin * size,
               (size_t)(end - begin) * size);
    else
        memset(at, 0, (size_t)(end - begin) * size);
}

static void add_sum(wg_trainer *trainer, int64_t entry, int64_t begin, int64_t end, char *at) {
    const wg__optimizer_shard *shard = &trainer->optimizer->shard;
    const int64_t start = shard->starts[entry] + begin - trainer->optimizer->entries[entry].begin;
    if (trainer->zero->element == WG_GROUP_F64) {
        double *to = (double *)shard->gradients + start;
        for (int64_t i = 0; i < end - begin; i++)
            to[i] += ((const double *)at)[i];
    } else {
        float *to = (float *)shard->gradients + start;
        for (int64_t i = 0; i < end - begin; i++)
            to[i] += ((const float *)at)[i];
    }
}

static char *weights_at(const wg_trainer *trainer, int64_t entry, int64_t begin) {
    return (char *)wg_tensor_data(trainer->optimizer->entries[entry].parameter) +
           (size_t)begin * trainer->zero->size;
}

static void pack_weights(wg_trainer *trainer, int64_t entry, int64_t begin, int64_t end, char *at) {
    memcpy(at, weights_at(trainer, entry, begin), (size_t)(end - begin) * trainer->zero->size);
}

static void unpack_weights(wg_trainer *trainer, int64_t entry, int64_t begin, int64_t end,
                           char *at) {
    memcpy(weights_at(trainer, entry, begin), at, (size_t)(end - begin) * trainer->zero->size);
}

/* ---- Gradients ---- */

/* Waits for the bucket in a slot, and adds this rank's part to its gradients. */
static int end_slot(wg_trainer *trainer, slot *s) {
    if (s->bucket < 0)
        return 0;
    const int status = wg__group_end_exchange(group_of(trainer), &s->exchange);
    if (status == 0)
        for_slices(trainer, &trainer->zero->buckets[s->bucket], wg_group_rank(group_of(trainer)),
                   s->buffer, add_sum);
    s->bucket = -1;
    return status;
}

/* Drops the gradients of which the last item is in the bucket. */
static void drop_gradients(wg_trainer *trainer, const bucket *b) {
    for (int64_t i = b->first; i < b->last; i++) {
        const item *it = &trainer->zero->items[i];
        if (it->part == it->parts - 1)
            wg_zero_grad(trainer->optimizer->entries[it->entry].parameter);
    }
}

/* Sends the buckets that are whole, in order, and lets those under way go on. */
static int begin_whole_buckets(wg_trainer *trainer) {
    wg__zero *zero = trainer->zero;
    for (; zero->begun < zero->bucket_count && zero->buckets[zero->begun].missing == 0;
         zero->begun++) {
        const bucket *b = &zero->buckets[zero->begun];
        slot *s = &zero->slots[zero->begun % UNDER_WAY];
        if (end_slot(trainer, s) < 0)
            return -1;
        for_slices(trainer, b, -1, s->buffer, pack_gradient);
        drop_gradients(trainer, b);
        if (wg__group_begin_reduce_scatter(group_of(trainer), zero->element,
                                           wg__trainer_transit(trainer), b->counts, s->buffer,
                                           &s->exchange) < 0)
            return -1;
        s->bucket = zero->begun;
    }
    for (int i = 0; i < UNDER_WAY; i++)
        if (wg__group_progress(group_of(trainer), &zero->slots[i].exchange) < 0)
            return -1;
    return 0;
}

static void take_gradient(wg_trainer *trainer, int64_t entry) {
    wg__zero *zero = trainer->zero;
    if (zero->is_taken[entry])
        return;
    zero->is_taken[entry] = true;
    if (wg_gradient(trainer->optimizer->entries[entry].parameter))
        zero->used[entry] = true;
    for (int64_t b = zero->first_bucket[entry]; b <= zero->last_bucket[entry]; b++)
        zero->buckets[b].missing--;
}

static int take_in_backward(wg_tensor *leaf, void *context) {
    const hooked *of = context;
    (void)leaf; /* the entry's parameter */
    take_gradient(of->trainer, of->index);
    return begin_whole_buckets(of->trainer);
}

static void remove_hooks(wg_trainer *trainer) {
    wg__zero *zero = trainer->zero;
    for (int64_t i = 0; i < trainer->optimizer->count; i++) {
        if (zero->hooks[i].hook > 0)
            wg_remove_hook(trainer->optimizer->entries[i].parameter, zero->hooks[i].hook);
        zero->hooks[i].hook = 0;
    }
}

void wg__zero_begin_step(wg_trainer *trainer) {
    const wg__optimizer_shard *shard = &trainer->optimizer->shard;
    memset(shard->gradients, 0, (size_t)shard->elements * trainer->zero->size);
    for (int64_t i = 0; i < trainer->optimizer->count; i++)
        trainer->zero->used[i] = false;
}

void wg__zero_begin_round(wg_trainer *trainer) {
    wg__zero *zero = trainer->zero;
    zero->begun = 0;
    for (int64_t i = 0; i < trainer->optimizer->count; i++)
        zero->is_taken[i] = false;
    for (int64_t i = 0; i < zero->bucket_count; i++)
        zero->buckets[i].missing = zero->buckets[i].entries;
}

int wg__zero_sum_in_backward(wg_trainer *trainer) {
    for (int64_t i = 0; i < trainer->optimizer->count; i++) {
        wg_tensor *parameter = trainer->optimizer->entries[i].parameter;
        if (!wg_requires_grad(parameter))
            continue;
        hooked *of = &trainer->zero->hooks[i];
        *of = (hooked){.trainer = trainer, .index = i};
        of->hook = wg_register_post_accumulate_grad_hook(parameter, take_in_backward, of);
        if (of->hook < 0) {
            remove_hooks(trainer);
            return -1;
        }
    }
    return 0;
}

int wg__zero_end_round(wg_trainer *trainer) {
    wg__span span;
    wg__span_begin(&span, "sum gradients", WG_PROFILE_REGION);
    remove_hooks(trainer);
    for (int64_t i = trainer->optimizer->count; i-- > 0;)
        take_gradient(trainer, i);
    const int status = begin_whole_buckets(trainer);
    wg__span_end(&span);
    return status;
}

int wg__zero_end_step(wg_trainer *trainer) {
    wg__zero *zero = trainer->zero;
    int status = 0;
    wg__span span;
    wg__span_begin(&span, "sum gradients", WG_PROFILE_REGION);
    for (int64_t i = 0; i < UNDER_WAY; i++) /* the oldest first: they were begun in this order */
        if (end_slot(trainer, &zero->slots[(zero->begun + i) % UNDER_WAY]) < 0)
            status = -1;
    wg__span_end(&span);
    return status;
}

int wg__zero_take_sums(wg_trainer *trainer) {
    const wg_optimizer *optimizer = trainer->optimizer;
    double *flags = wg__alloc((size_t)optimizer->count * sizeof *flags);
    if (!flags) /* the others are in the exchange below */
        wg_group_abort(group_of(trainer), "there is no memory for a step");
    for (int64_t i = 0; i < optimizer->count; i++)
        flags[i] = trainer->zero->used[i];
    const int status = wg_group_max(group_of(trainer), WG_GROUP_F64, optimizer->count, flags);
    for (int64_t i = 0; i < optimizer->count; i++)
        optimizer->entries[i].used = flags[i] != 0;
    wg__free(flags);
    return status;
}

/* ---- Weights ---- */

static int end_weights(wg_trainer *trainer, slot *s) {
    if (s->bucket < 0)
        return 0;
    const int status = wg__group_end_exchange(group_of(trainer), &s->exchange);
    if (status == 0)
        for_slices(trainer, &trainer->zero->buckets[s->bucket], -1, s->buffer, unpack_weights);
    s->bucket = -1;
    return status;
}

int wg__zero_gather_weights(wg_trainer *trainer) {
    wg__zero *zero = trainer->zero;
    const int rank = wg_group_rank(group_of(trainer));
    int status = 0;
    wg__span span;
    wg__span_begin(&span, "gather weights", WG_PROFILE_REGION);
    for (int64_t i = 0; status == 0 && i < zero->bucket_count; i++) {
        slot *s = &zero->slots[i % UNDER_WAY];
        status = end_weights(trainer, s);
        for_slices(trainer, &zero->buckets[i], rank, s->buffer, pack_weights);
        if (status == 0)
            status = wg__group_begin_all_gather(group_of(trainer), zero->element,
                                                zero->buckets[i].counts, s->buffer, &s->exchange);
        s->bucket = status == 0 ? i : -1;
    }
    for (int64_t i = 0; i < UNDER_WAY; i++)
        if (end_weights(trainer, &zero->slots[(zero->bucket_count + i) % UNDER_WAY]) < 0)
            status = -1;
    for (int64_t i = 0; i < trainer->optimizer->count; i++)
        wg_tensor_touch(trainer->optimizer->entries[i].parameter);
    wg__span_end(&span);
    return status;
}
