/* ZeRO   (Rajbhandari et al. 2020): gradients are summed at the rank that steps them, and the
 * stepped weights go to all.
 *
 *     bucket    | rank 0's | rank 1's | rank 2's |   of some parameters, the last ones first
 *
 *     backward  | layer 3 | layer 2 | layer 1 | ... | clip, step |
 *     network             | bucket 0: each part to its rank | 1 | 2 | ... | weights to all |
 *     memory    gradients are dropped as their bucket is sent; a rank keeps the sums of its share
 *
 * Stage 2 sends the gradients of each batch, so no rank ever has all of them. Stage 1 adds up those
 * of a rank's batches first, and sends them once a step. Few buckets are under way at a time: they
 * are begun in order, and one that finds none free waits for the oldest.
 *
 * Stage 3 also keeps the weights in shares, and the parameters have no memory. A layer's weights
 * come from all ranks when an op reads the first of them:
 *
 *     forward   | layer 1 | layer 2 | layer 3 | loss | layer 3 | layer 2 | layer 1 |  backward
 *     network   | 2       | 3       | head    |      | 2       | 1       |
 *     memory    | 1, 2    | 1, 2, 3 | 2, 3 .. |      the layers read last, and the next one
 *
 * The order in which layers are read is learnt from the first batch, which rank 0 runs alone while
 * the others only send, and is then that of each batch on each rank, so that the next layer's
 * weights are under way while one computes, and a rank that has no batch, or has failed, knows what
 * the others wait for. Gathers depend on nothing but gathers: a bucket of gradients that finds no
 * buffer free takes one more instead of waiting for ranks that may wait for this one's weights. */
#include "train/trainer_state.h"

#include "base/array.h"
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
    char *buffer; /* stage 3: NULL while it is free */
    wg__exchange *exchange;
    int64_t bucket; /* -1: the slot is free */
} slot;

/* The parameters of one layer of a stack, or those between two stacks: which entries of the
 * optimizer they are, and which buckets they fill. */
typedef struct layer {
    int64_t first_entry, last_entry;   /* [first, last) */
    int64_t first_bucket, last_bucket; /* [first, last) */
    bool is_here;                      /* its parameters have elements */
} layer;

/* Weights of a layer on their way to all ranks. */
typedef struct gather {
    int64_t layer; /* -1: none */
    slot *slots;   /* one for each of its buckets */
} gather;

/* Stage 3: where the weights are. */
typedef enum weights_mode {
    WEIGHTS_WHOLE,  /* in the parameters, of each rank: outside of a run, and for an evaluation */
    WEIGHTS_APART,  /* in shares, and nobody may read a parameter */
    WEIGHTS_SERVED, /* the same; rank 0 reads parameters, and the others send it what it asks for */
    WEIGHTS_ROUND   /* the same; all ranks read parameters, in the order that was learnt */
} weights_mode;

/* The order in which a batch reads layers. */
typedef struct schedule {
    int64_t *layers;
    int64_t count, capacity;
    bool learns;          /* reads are added to it */
    int64_t ended, begun; /* in this round: how many gathers have ended, and been begun */
} schedule;

typedef struct fetcher {
    wg__fetcher base; /* first, so that it is its address */
    wg_trainer *trainer;
    int64_t layer;
} fetcher;

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
    slot *slots;    /* (slot_count) a bucket takes the next one, in a ring */
    int64_t slot_count;
    int64_t begun;          /* buckets of this round */
    int64_t sent, received; /* buckets of all rounds that were begun, and have ended */
    /* Of stage 3: */
    layer *layers;
    int64_t layer_count;
    fetcher *fetchers; /* (layer_count) */
    weights_mode mode;
    int64_t before; /* the layer that was fetched last; -1: none */
    gather gather;  /* the one that is under way */
    schedule order;
};

/* Parameters without elements stay so: nobody brings them back any more. */
static void forget_fetchers(wg__zero *zero) {
    if (zero->layer_count == 0)
        return;
    const wg_optimizer *optimizer = zero->fetchers[0].trainer->optimizer;
    for (int64_t i = 0; i < optimizer->count; i++)
        wg__tensor_set_fetcher(optimizer->entries[i].parameter, NULL, WHERE);
}

void wg__zero_free(wg__zero *zero) {
    if (!zero)
        return;
    if (zero->mode != WEIGHTS_WHOLE)
        forget_fetchers(zero);
    for (int64_t i = 0; zero->buckets && i < zero->bucket_count; i++)
        wg__free(zero->buckets[i].counts);
    for (int64_t i = 0; zero->slots && i < zero->slot_count; i++)
        wg__free(zero->slots[i].buffer);
    wg__free(zero->slots);
    wg__free(zero->layers);
    wg__free(zero->fetchers);
    wg__free(zero->order.layers);
    wg__free(zero->gather.slots);
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

/* The layer that an entry is in. */
static int64_t layer_of(const wg__zero *zero, int64_t entry) {
    int64_t i = 0;
    while (entry >= zero->layers[i].last_entry)
        i++;
    return i;
}

/* Whether an item may go into the same bucket as the one before it. In stage 3 a bucket holds items
 * of one layer only. */
static bool is_near(const wg__zero *zero, int64_t index) {
    return !zero->layers ||
           layer_of(zero, zero->items[index].entry) == layer_of(zero, zero->items[index - 1].entry);
}

static int make_slots(wg__zero *zero) {
    zero->slot_count = zero->layers ? wg__larger(UNDER_WAY, zero->bucket_count) : UNDER_WAY;
    zero->slots = wg__calloc((size_t)zero->slot_count, sizeof *zero->slots);
    for (int64_t i = 0; zero->slots && i < zero->slot_count; i++) {
        zero->slots[i].bucket = -1;
        if (zero->layers)
            continue;
        zero->slots[i].buffer = wg__alloc_array(wg__times(zero->largest, zero->size) + 1, 1);
        if (!zero->slots[i].buffer)
            return -1;
    }
    return zero->slots ? 0 : -1;
}

static int make_buckets(const wg_trainer *trainer, wg__zero *zero, int64_t limit) {
    for (int64_t i = 0; i < zero->item_count;) {
        bucket *b = &zero->buckets[zero->bucket_count++];
        *b = (bucket){.first = i};
        do
            b->elements += elements_of(trainer, &zero->items[i++]);
        while (i < zero->item_count && is_near(zero, i) &&
               b->elements + elements_of(trainer, &zero->items[i]) <= limit);
        b->last = i;
        note_entries(zero, zero->bucket_count - 1);
        zero->largest = wg__larger(zero->largest, b->elements);
        if (count_parts(trainer, zero, b) < 0)
            return -1;
    }
    return make_slots(zero);
}

/* ---- Layers ---- */

/* The part of a parameter's path that names its layer, "encoder.layer.3", by its length: up to the
 * first number. 0: it is in no stack. */
static size_t layer_name(const char *path) {
    for (const char *at = path; *at;) {
        const size_t length = strcspn(at, ".");
        if (length > 0 && strspn(at, "0123456789") == length)
            return (size_t)(at - path) + length;
        at += length + (at[length] == '.');
    }
    return 0;
}

static bool is_same_layer(const char *a, const char *b) {
    const size_t length = layer_name(a);
    return length == layer_name(b) && strncmp(a, b, length) == 0;
}

static int fetch_layer(wg__fetcher *base);
static int touch_layer(wg__fetcher *base);

static int find_layers(wg_trainer *trainer, wg__zero *zero) {
    const wg__optimizer_entry *entries = trainer->optimizer->entries;
    const size_t count = (size_t)trainer->optimizer->count;
    zero->before = -1;
    zero->layers = wg__calloc(count, sizeof *zero->layers);
    zero->fetchers = wg__calloc(count, sizeof *zero->fetchers);
    if (!zero->layers || !zero->fetchers)
        return -1;
    for (int64_t i = 0; i < trainer->optimizer->count; i++) {
        if (i == 0 || !is_same_layer(entries[i - 1].name, entries[i].name)) {
            zero->fetchers[zero->layer_count] =
                (fetcher){{fetch_layer, touch_layer}, trainer, zero->layer_count};
            zero->layers[zero->layer_count++] = (layer){.first_entry = i, .is_here = true};
        }
        zero->layers[zero->layer_count - 1].last_entry = i + 1;
    }
    return 0;
}

/* The buckets of each layer, and room for as many that are under way. */
static int make_gathers(wg__zero *zero) {
    int64_t most = 0;
    for (int64_t b = 0; b < zero->bucket_count; b++) {
        layer *of = &zero->layers[layer_of(zero, zero->items[zero->buckets[b].first].entry)];
        if (of->last_bucket == 0)
            of->first_bucket = b;
        of->last_bucket = b + 1;
        most = wg__larger(most, of->last_bucket - of->first_bucket);
    }
    zero->gather = (gather){-1, wg__calloc((size_t)most, sizeof(slot))};
    return zero->gather.slots ? 0 : -1;
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
    if ((wg__trainer_shards_weights(trainer) && find_layers(trainer, zero) < 0) ||
        make_items(trainer, zero, limit) < 0 || make_buckets(trainer, zero, limit) < 0)
        return -1;
    return zero->layers ? make_gathers(zero) : 0;
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

/* From where a step changes them. */
static void pack_weights(wg_trainer *trainer, int64_t entry, int64_t begin, int64_t end, char *at) {
    memcpy(at, wg__entry_weight(&trainer->optimizer->entries[entry], begin),
           (size_t)(end - begin) * trainer->zero->size);
}

static void unpack_weights(wg_trainer *trainer, int64_t entry, int64_t begin, int64_t end,
                           char *at) {
    memcpy(weights_at(trainer, entry, begin), at, (size_t)(end - begin) * trainer->zero->size);
}

/* ---- Gradients ---- */

/* Waits for the oldest bucket, and adds this rank's part to its gradients. Sums are added in the
 * order in which they were begun, so that they are the same bits each time. */
static int end_oldest(wg_trainer *trainer) {
    wg__zero *zero = trainer->zero;
    slot *s = &zero->slots[zero->received++ % zero->slot_count];
    const int status = wg__group_end_exchange(group_of(trainer), &s->exchange);
    if (status == 0)
        for_slices(trainer, &zero->buckets[s->bucket], wg_group_rank(group_of(trainer)), s->buffer,
                   add_sum);
    s->bucket = -1;
    if (zero->layers) {
        wg__free(s->buffer);
        s->buffer = NULL;
    }
    return status;
}

/* Ends those that have come in, and lets the others go on. */
static int end_arrived(wg_trainer *trainer) {
    wg__zero *zero = trainer->zero;
    for (bool done = true; done && zero->received < zero->sent;) {
        slot *s = &zero->slots[zero->received % zero->slot_count];
        if (wg__group_test(group_of(trainer), &s->exchange, &done) < 0 ||
            (done && end_oldest(trainer) < 0))
            return -1;
    }
    return 0;
}

/* A slot for one more bucket. With stage 3 that is never one to wait for, but for buckets of the
 * round before, which all ranks have begun. */
static slot *free_slot(wg_trainer *trainer) {
    wg__zero *zero = trainer->zero;
    while (zero->sent - zero->received >= zero->slot_count)
        if (end_oldest(trainer) < 0)
            return NULL;
    slot *s = &zero->slots[zero->sent % zero->slot_count];
    if (!s->buffer)
        s->buffer = wg__alloc_array(wg__times(zero->largest, zero->size) + 1, 1);
    if (!s->buffer) /* the others wait for this bucket */
        wg_group_abort(group_of(trainer), "there is no memory for a step");
    return s;
}

/* Drops the gradients of which the last item is in the bucket. */
static void drop_gradients(wg_trainer *trainer, const bucket *b) {
    for (int64_t i = b->first; i < b->last; i++) {
        const item *it = &trainer->zero->items[i];
        if (it->part == it->parts - 1)
            wg_zero_grad(trainer->optimizer->entries[it->entry].parameter);
    }
}

/* Sends the buckets that are whole, in order, as long as less than `most` are under way, and lets
 * those go on. */
static int begin_whole_buckets(wg_trainer *trainer, int64_t most) {
    wg__zero *zero = trainer->zero;
    if (end_arrived(trainer) < 0)
        return -1;
    for (; zero->begun < zero->bucket_count && zero->buckets[zero->begun].missing == 0 &&
           zero->sent - zero->received < most;
         zero->begun++) {
        const bucket *b = &zero->buckets[zero->begun];
        slot *s = free_slot(trainer);
        if (!s)
            return -1;
        for_slices(trainer, b, -1, s->buffer, pack_gradient);
        drop_gradients(trainer, b);
        if (wg__group_begin_reduce_scatter(group_of(trainer), zero->element,
                                           wg__trainer_transit(trainer), b->counts, s->buffer,
                                           &s->exchange) < 0)
            return -1;
        s->bucket = zero->begun;
        zero->sent++;
    }
    return end_arrived(trainer);
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
    return begin_whole_buckets(of->trainer, INT64_MAX);
}

/* ---- Stage 3: weights that come and go ---- */

static int begin_gather(wg_trainer *trainer, int64_t number) {
    wg__zero *zero = trainer->zero;
    const layer *of = &zero->layers[number];
    int status = 0;
    zero->gather.layer = number;
    for (int64_t i = of->first_bucket; i < of->last_bucket; i++) {
        const bucket *b = &zero->buckets[i];
        slot *s = &zero->gather.slots[i - of->first_bucket];
        s->buffer = wg__alloc_array(wg__times(b->elements, zero->size) + 1, 1);
        if (!s->buffer) /* the others wait for this rank's part */
            wg_group_abort(group_of(trainer), "there is no memory for the weights of a layer");
        for_slices(trainer, b, wg_group_rank(group_of(trainer)), s->buffer, pack_weights);
        if (wg__group_begin_all_gather(group_of(trainer), zero->element, b->counts, s->buffer,
                                       &s->exchange) < 0)
            status = -1;
    }
    return status;
}

static void drop_layer(wg_trainer *trainer, layer *of) {
    for (int64_t i = of->first_entry; of->is_here && i < of->last_entry; i++)
        wg__tensor_drop(trainer->optimizer->entries[i].parameter);
    of->is_here = false;
}

static void drop_layers(wg_trainer *trainer) {
    for (int64_t i = 0; i < trainer->zero->layer_count; i++)
        drop_layer(trainer, &trainer->zero->layers[i]);
    trainer->zero->before = -1;
}

static int restore_layer(wg_trainer *trainer, layer *of) {
    of->is_here = true;
    for (int64_t i = of->first_entry; i < of->last_entry; i++)
        if (wg__tensor_restore(trainer->optimizer->entries[i].parameter) < 0)
            return -1;
    return 0;
}

/* Waits for the weights that are under way, and puts them into the parameters, or not. */
static int end_gather(wg_trainer *trainer, bool keeps) {
    wg__zero *zero = trainer->zero;
    layer *of = &zero->layers[zero->gather.layer];
    wg__span span;
    wg__span_begin(&span, "gather weights", WG_PROFILE_REGION);
    int status = keeps ? restore_layer(trainer, of) : 0;
    for (int64_t i = of->first_bucket; i < of->last_bucket; i++) {
        slot *s = &zero->gather.slots[i - of->first_bucket];
        if (wg__group_end_exchange(group_of(trainer), &s->exchange) < 0)
            status = -1;
        if (keeps && status == 0)
            for_slices(trainer, &zero->buckets[i], -1, s->buffer, unpack_weights);
        wg__free(s->buffer);
        s->buffer = NULL;
    }
    zero->gather.layer = -1;
    wg__span_end(&span);
    return status;
}

static int begin_ahead(wg_trainer *trainer) {
    schedule *order = &trainer->zero->order;
    if (order->begun > order->ended || order->begun == order->count)
        return 0;
    return begin_gather(trainer, order->layers[order->begun++]);
}

/* The next layer of the order comes in, and the one after it is begun. */
static int read_next(wg_trainer *trainer, bool keeps) {
    int status = begin_ahead(trainer);
    if (end_gather(trainer, keeps) < 0)
        status = -1;
    trainer->zero->order.ended++;
    return begin_ahead(trainer) < 0 ? -1 : status;
}

/* A batch may pass over layers, such as those of a part of the model that it has no use for. */
static int read_in_order(wg_trainer *trainer, int64_t number) {
    schedule *order = &trainer->zero->order;
    int64_t at = order->ended;
    while (at < order->count && order->layers[at] != number)
        at++;
    if (at == order->count)
        return wg_fail(WG_ERROR_STATE, WHERE,
                       "the model reads the layer of \"%s\" where the first batch of the run did "
                       "not; weights that are sharded by layer (ZeRO 3) want the order of layers "
                       "to be the same in all batches: use stage 2",
                       trainer->optimizer->entries[trainer->zero->layers[number].first_entry].name);
    while (order->ended < at)
        if (read_next(trainer, false) < 0)
            return -1;
    return read_next(trainer, true);
}

/* Rank 0's alone: the others are in wg__optimizer_send_states. */
static int read_served(wg_trainer *trainer, int64_t number) {
    if (wg__optimizer_ask(trainer->optimizer, -2 - number) < 0 || begin_gather(trainer, number) < 0)
        return -1;
    return end_gather(trainer, true);
}

static int fetch_layer(wg__fetcher *base) {
    const fetcher *of = (const fetcher *)base;
    wg__zero *zero = of->trainer->zero;
    if (zero->mode != WEIGHTS_SERVED && zero->mode != WEIGHTS_ROUND)
        return wg_fail(WG_ERROR_STATE, WHERE,
                       "the weights are sharded over the ranks (ZeRO 3), and there during a "
                       "training step, an evaluation, and after a run alone");
    for (int64_t i = 0; i < zero->layer_count; i++)
        if (i != zero->before)
            drop_layer(of->trainer, &zero->layers[i]);
    zero->before = of->layer;
    if ((zero->mode == WEIGHTS_SERVED ? read_served : read_in_order)(of->trainer, of->layer) < 0)
        return -1;
    return zero->order.learns ? wg__append(&zero->order.layers, &zero->order.count,
                                           &zero->order.capacity, &of->layer, sizeof of->layer)
                              : 0;
}

/* MPI goes on while it is called, so ops that read weights call it. */
static int touch_layer(wg__fetcher *base) {
    wg_trainer *trainer = ((const fetcher *)base)->trainer;
    return trainer->zero->gather.layer < 0
               ? 0
               : wg__group_progress(group_of(trainer), &trainer->zero->gather.slots[0].exchange);
}

static void begin_reading(wg_trainer *trainer) {
    wg__zero *zero = trainer->zero;
    zero->order.begun = zero->order.ended = 0;
    zero->mode = WEIGHTS_ROUND;
    begin_ahead(trainer); /* what fails here fails in the first read, too */
}

/* Takes part in the gathers that this rank has not read, for those that do. */
static int end_reading(wg_trainer *trainer) {
    wg__zero *zero = trainer->zero;
    int status = 0;
    drop_layers(trainer);
    while (zero->order.ended < zero->order.count)
        if (begin_whole_buckets(trainer, UNDER_WAY) < 0 || read_next(trainer, false) < 0)
            status = -1;
    zero->mode = WEIGHTS_APART;
    return status;
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
    if (zero->layers)
        begin_reading(trainer);
}

static int add_hooks(wg_trainer *trainer, wg_post_accumulate_grad_hook hook) {
    for (int64_t i = 0; i < trainer->optimizer->count; i++) {
        wg_tensor *parameter = trainer->optimizer->entries[i].parameter;
        if (!wg_requires_grad(parameter))
            continue;
        hooked *of = &trainer->zero->hooks[i];
        *of = (hooked){.trainer = trainer, .index = i};
        of->hook = wg_register_post_accumulate_grad_hook(parameter, hook, of);
        if (of->hook < 0) {
            remove_hooks(trainer);
            return -1;
        }
    }
    return 0;
}

int wg__zero_sum_in_backward(wg_trainer *trainer) {
    return add_hooks(trainer, take_in_backward);
}

int wg__zero_end_round(wg_trainer *trainer) {
    wg__span span;
    wg__span_begin(&span, "sum gradients", WG_PROFILE_REGION);
    remove_hooks(trainer);
    for (int64_t i = trainer->optimizer->count; i-- > 0;)
        take_gradient(trainer, i);
    int status = trainer->zero->layers ? end_reading(trainer) : 0;
    if (begin_whole_buckets(trainer, INT64_MAX) < 0)
        status = -1;
    wg__span_end(&span);
    return status;
}

int wg__zero_end_step(wg_trainer *trainer) {
    wg__zero *zero = trainer->zero;
    int status = 0;
    wg__span span;
    wg__span_begin(&span, "sum gradients", WG_PROFILE_REGION);
    while (zero->received < zero->sent)
        if (end_oldest(trainer) < 0)
            status = -1;
    wg__span_end(&span);
    return status;
}

int wg__zero_take_sums(wg_trainer *trainer) {
    const wg_optimizer *optimizer = trainer->optimizer;
    double *flags = wg__alloc_array(optimizer->count, sizeof *flags);
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

/* ---- Stage 3: whole, apart, and what rank 0 reads alone ---- */

static int serve(void *context, int64_t number) {
    wg_trainer *trainer = context;
    if (-2 - number == trainer->zero->layer_count) {
        wg_average_swap(trainer->average);
        return 0;
    }
    return begin_gather(trainer, -2 - number) < 0 || end_gather(trainer, false) < 0 ? -1 : 0;
}

void wg__zero_take_weights(wg_trainer *trainer) {
    const wg_optimizer *optimizer = trainer->optimizer;
    for (int64_t i = 0; i < optimizer->count; i++) {
        const wg__optimizer_entry *entry = &optimizer->entries[i];
        if (entry->end > entry->begin)
            memcpy(wg__entry_weight(entry, entry->begin), weights_at(trainer, i, entry->begin),
                   (size_t)(entry->end - entry->begin) * trainer->zero->size);
    }
}

int wg__zero_part_weights(wg_trainer *trainer) {
    wg__zero *zero = trainer->zero;
    wg_optimizer *optimizer = trainer->optimizer;
    if (zero->mode != WEIGHTS_WHOLE)
        return 0;
    for (int64_t l = 0; l < zero->layer_count; l++)
        for (int64_t i = zero->layers[l].first_entry; i < zero->layers[l].last_entry; i++)
            if (wg__tensor_set_fetcher(optimizer->entries[i].parameter, &zero->fetchers[l].base,
                                       WHERE) < 0) {
                forget_fetchers(zero);
                return -1;
            }
    wg__zero_take_weights(trainer);
    drop_layers(trainer);
    optimizer->shard.serve = serve;
    optimizer->shard.context = trainer;
    zero->mode = WEIGHTS_APART;
    return 0;
}

int wg__zero_join_weights(wg_trainer *trainer) {
    wg__zero *zero = trainer->zero;
    int status = 0;
    if (zero->mode == WEIGHTS_WHOLE)
        return 0;
    for (int64_t l = 0; l < zero->layer_count; l++)
        if (begin_gather(trainer, l) < 0 || end_gather(trainer, true) < 0)
            status = -1;
    if (status < 0)
        return -1;
    forget_fetchers(zero);
    zero->mode = WEIGHTS_WHOLE;
    return 0;
}

bool wg__zero_is_whole(const wg_trainer *trainer) {
    return trainer->zero->mode == WEIGHTS_WHOLE;
}

void wg__zero_begin_served(wg_trainer *trainer) {
    trainer->zero->mode = WEIGHTS_SERVED;
}

void wg__zero_end_served(wg_trainer *trainer) {
    drop_layers(trainer);
    trainer->zero->mode = WEIGHTS_APART;
}

void wg__zero_swap_average(wg_trainer *trainer) {
    const weights_mode mode = trainer->zero->mode;
    if (mode == WEIGHTS_SERVED) {
        wg__optimizer_ask(trainer->optimizer, -2 - trainer->zero->layer_count);
        drop_layers(trainer);
    }
    if (mode == WEIGHTS_WHOLE && wg__zero_part_weights(trainer) < 0)
        return;
    wg_average_swap(trainer->average);
    if (mode == WEIGHTS_WHOLE)
        wg__zero_join_weights(trainer);
}

static int drop_in_backward(wg_tensor *leaf, void *context) {
    (void)context;
    wg_zero_grad(leaf);
    return 0;
}

int wg__zero_begin_learning(wg_trainer *trainer) {
    trainer->zero->order.count = 0;
    trainer->zero->order.learns = true;
    wg__zero_begin_served(trainer);
    return add_hooks(trainer, drop_in_backward);
}

void wg__zero_end_learning(wg_trainer *trainer) {
    remove_hooks(trainer);
    trainer->zero->order.learns = false;
    wg__zero_end_served(trainer);
}

int wg__zero_share_order(wg_trainer *trainer) {
    schedule *order = &trainer->zero->order;
    int64_t count = order->count;
    if (wg_group_broadcast(group_of(trainer), 0, sizeof count, &count) < 0)
        return -1;
    if (wg__reserve(&order->layers, order->count, &order->capacity, count, sizeof *order->layers) <
        0) /* the others are in the broadcast below */
        wg_group_abort(group_of(trainer), "there is no memory for a step");
    order->count = count;
    return wg_group_broadcast(group_of(trainer), 0, (size_t)count * sizeof *order->layers,
                              order->layers);
}
