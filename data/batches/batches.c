/* Batches of examples: see batches.h. */
#include "data/internal.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/internal.h"
#include "tensor/ops.h"
#include "tensor/internal.h"
#include "tensor/span.h"

#define WHERE "batches"

struct wg_batches {
    wg_batch_source source;
    wg_batches_options options; /* owns copies of `weights` and `source_ends` */
    wg_data_position position;  /* the next example */
    bool planned;               /* `count` and `order` belong to the position's epoch */
    int64_t count;              /* examples in the epoch */
    int64_t *order;             /* (count) their indices, shuffled */
    int64_t order_capacity;
    wg_example *examples; /* (batch) the batch being built */
};

/* The finaliser of SplitMix64 (Steele et al. 2014): one-to-one, every bit depends on all. */
static uint64_t mix(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Stream 0 orders the epoch, and stream 1 + i belongs to its example i: no stream depends on how
 * many numbers another stream drew. */
static wg_generator generator_of(const wg_data_position *at, uint64_t stream) {
    return (wg_generator){.seed = mix(mix(mix(at->seed) ^ (uint64_t)at->epoch) ^ stream)};
}

int64_t wg__random_between(wg_generator *generator, int64_t low, int64_t high) {
    return low + (int64_t)wg_random_below(generator, (uint64_t)(high - low + 1));
}

void wg__weigh_examples(const wg_batches_options *options, const int64_t *ends, int64_t count,
                        wg_generator *generator, int64_t *order) {
    double total = 0, sum = 0; /* of the weights of sources with examples */
    for (int64_t i = 0; i < options->sources; i++)
        if (ends[i] > (i > 0 ? ends[i - 1] : 0))
            total += options->weights[i];
    int64_t filled = 0;
    for (int64_t i = 0; i < options->sources; i++) {
        const int64_t first = i > 0 ? ends[i - 1] : 0, end = ends[i];
        if (end == first)
            continue;
        sum += options->weights[i];
        const int64_t until = llrint((double)count * (sum / total));
        /* First the whole source as often as it fits, then a random subset of it (selection
         * sampling: Knuth, The Art of Computer Programming, 3.4.2). */
        for (; until - filled >= end - first; filled += end - first)
            for (int64_t k = first; k < end; k++)
                order[filled + k - first] = k;
        for (int64_t k = first; filled < until; k++)
            if ((int64_t)wg_random_below(generator, (uint64_t)(end - k)) < until - filled)
                order[filled++] = k;
    }
}

/* Moves to `position` and plans its epoch. */
static int plan(wg_batches *batches, wg_data_position position) {
    const wg_batches_options *o = &batches->options;
    wg_epoch epoch = {.position = {position.seed, position.epoch, 0},
                      .generator = generator_of(&position, 0),
                      .examples = o->examples,
                      .source_ends = (int64_t *)o->source_ends};
    batches->position = position;
    batches->planned = false;
    if (batches->source.plan && batches->source.plan(batches->source.context, &epoch) < 0)
        return -1;
    if (epoch.examples < 1)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "an epoch has no example");
    int64_t first = 0; /* checks the ends: a caller or the source's plan wrote them */
    for (int64_t i = 0; epoch.source_ends && i < o->sources; first = epoch.source_ends[i++])
        if (epoch.source_ends[i] < first || epoch.source_ends[i] > epoch.examples)
            return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                           "source %lld has the examples %lld to %lld of %lld", (long long)i,
                           (long long)first, (long long)epoch.source_ends[i] - 1,
                           (long long)epoch.examples);
    if (epoch.source_ends && first == 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "no source has an example");
    if (wg__reserve(&batches->order, 0, &batches->order_capacity, epoch.examples,
                    sizeof *batches->order) < 0)
        return -1;
    int64_t *order = batches->order;
    batches->count = epoch.examples;
    if (epoch.source_ends)
        wg__weigh_examples(o, epoch.source_ends, epoch.examples, &epoch.generator, order);
    else
        for (int64_t i = 0; i < epoch.examples; i++)
            order[i] = i;
    /* Fisher & Yates. */
    const int64_t count = epoch.examples;
    for (int64_t k = 0; k < count; k++) {
        const int64_t i = o->shuffle_from_last ? count - 1 - k : k,
                      j = wg__random_between(&epoch.generator, 0, i);
        const int64_t swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
    batches->planned = true;
    return 0;
}

static int check_position(const wg_data_position *position, int64_t count) {
    if (position->epoch < 0 || position->next < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "epoch %lld, example %lld is no position",
                       (long long)position->epoch, (long long)position->next);
    if (position->next >= count)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "example %lld of an epoch of %lld: were the data others?",
                       (long long)position->next, (long long)count);
    return 0;
}

/* Moves to a position. Does not check that the epoch has the example. */
static int go_to(wg_batches *batches, wg_data_position position) {
    const wg_data_position *at = &batches->position;
    if (!batches->planned || at->seed != position.seed || at->epoch != position.epoch)
        return plan(batches, position);
    batches->position = position;
    return 0;
}

int wg__batches_seek(wg_batches *batches, const wg_data_position *position) {
    if (!batches || !position || check_position(position, INT64_MAX) < 0)
        return -1;
    const wg_data_position before = batches->position;
    if (go_to(batches, *position) == 0 && check_position(position, batches->count) == 0)
        return 0;
    go_to(batches, before); /* after a failure, the next batch plans the epoch again */
    return -1;
}

wg_data_position wg__batches_position(const wg_batches *batches) {
    return batches ? batches->position : (wg_data_position){0};
}

int64_t wg__batches_examples(const wg_batches *batches) {
    return batches ? batches->count : 0;
}

int64_t wg__batches_in_epoch(const wg_batches *batches) {
    return wg__ceil_divide(batches->count, batches->options.batch);
}

#define SEED "/train/data/seed"
#define EPOCH "/train/data/epoch"
#define NEXT "/train/data/next"
#define FINGERPRINT "/train/data/fingerprint"

int wg_batches_save(const wg_batches *batches, wg_checkpoint *file, int64_t fingerprint) {
    const wg_data_position position = wg__batches_position(batches);
    if (wg_checkpoint_put_integer(file, SEED, (int64_t)position.seed) < 0 ||
        wg_checkpoint_put_integer(file, EPOCH, position.epoch) < 0 ||
        wg_checkpoint_put_integer(file, NEXT, position.next) < 0)
        return -1;
    return wg_checkpoint_put_integer(file, FINGERPRINT, fingerprint);
}

int wg__batches_restore(wg_batches *batches, wg_checkpoint *file, int64_t fingerprint,
                        const char *where, const char *what) {
    int64_t seed, epoch, next, saved;
    if (wg_checkpoint_get_integer(file, SEED, &seed) < 0 ||
        wg_checkpoint_get_integer(file, EPOCH, &epoch) < 0 ||
        wg_checkpoint_get_integer(file, NEXT, &next) < 0 ||
        wg_checkpoint_get_integer(file, FINGERPRINT, &saved) < 0)
        return -1;
    if (saved != fingerprint)
        return wg_fail(WG_ERROR_STATE, where, "%s differ from the run's", what);
    return wg__batches_seek(
        batches, &(wg_data_position){.seed = (uint64_t)seed, .epoch = epoch, .next = next});
}

int wg_batches_restore(wg_batches *batches, wg_checkpoint *file, int64_t fingerprint) {
    return wg__batches_restore(batches, file, fingerprint, WHERE, "the data");
}

/* Selects the next `count` examples, and plans the next epoch where one ends. */
static int select_examples(wg_batches *batches, int64_t count) {
    const wg_batch_source *source = &batches->source;
    for (int64_t row = 0; row < count; row++) {
        wg_data_position *at = &batches->position;
        wg_example *example = &batches->examples[row];
        *example = (wg_example){.index = batches->order[at->next],
                                .place = at->next,
                                .generator = generator_of(at, (uint64_t)at->next + 1)};
        if (source->take)
            source->take(source->context, row, example);
        if (++at->next == batches->count &&
            plan(batches, (wg_data_position){.seed = at->seed, .epoch = at->epoch + 1}) < 0)
            return -1;
    }
    return 0;
}

int wg__batches_advance(wg_batches *batches, bool ends_with_epoch, void *batch) {
    if (!batches)
        return -1;
    const wg_data_position before = batches->position;
    wg__span span;
    wg__span_begin(&span, "data", WG_PROFILE_REGION);
    int status = batches->planned ? 0 : plan(batches, before);
    int64_t count = batches->options.batch;
    if (ends_with_epoch && count > batches->count - before.next)
        count = batches->count - before.next;
    if (status == 0)
        status = select_examples(batches, count);
    if (status == 0 && batch)
        status = batches->source.build(batches->source.context, count, batches->examples, batch);
    wg__span_end(&span);
    if (status < 0)
        go_to(batches, before); /* after a failure, the next call plans the epoch again */
    return status;
}

int wg_batches_next(wg_batches *batches, void *batch) {
    return wg__batches_advance(batches, false, batch);
}

static int prepare(wg_batches *batches, const wg_batches_options *options) {
    wg_batches_options *o = &batches->options;
    if (options)
        *o = *options;
    const double *weights = o->weights;
    const int64_t *ends = o->source_ends;
    o->weights = NULL; /* until the batches have copies */
    o->source_ends = NULL;
    if (!weights)
        o->sources = 0;
    if (o->sources < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "%lld sources", (long long)o->sources);
    if (o->sources > 0) {
        const size_t count = (size_t)o->sources;
        double total = 0;
        for (size_t i = 0; i < count; i++) {
            total += weights[i];
            if (!(weights[i] > 0) || !isfinite(total))
                return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                               "source %zu has the weight %g; wanted one above 0, and a finite sum",
                               i, weights[i]);
        }
        double *copied_weights = wg__alloc_array(o->sources, sizeof *copied_weights);
        int64_t *copied_ends = wg__calloc(count, sizeof *copied_ends);
        o->weights = copied_weights;
        o->source_ends = copied_ends;
        if (!copied_weights || !copied_ends)
            return -1;
        memcpy(copied_weights, weights, count * sizeof *weights);
        if (ends)
            memcpy(copied_ends, ends, count * sizeof *ends);
    }
    if (wg__batch_sizes(WHERE, &o->batch, NULL) < 0)
        return -1;
    batches->examples = wg__alloc_array(o->batch, sizeof *batches->examples);
    return batches->examples ? plan(batches, (wg_data_position){.seed = o->seed}) : -1;
}

wg_batches *wg_batches_new(const wg_batch_source *source, const wg_batches_options *options) {
    wg_batches *batches = wg__calloc(1, sizeof *batches);
    if (!batches) {
        if (source->free)
            source->free(source->context);
        return NULL;
    }
    batches->source = *source;
    if (prepare(batches, options) == 0)
        return batches;
    wg_batches_free(batches);
    return NULL;
}

void wg_batches_free(wg_batches *batches) {
    if (!batches)
        return;
    if (batches->source.free)
        batches->source.free(batches->source.context);
    wg__free((void *)batches->options.weights);
    wg__free((void *)batches->options.source_ends);
    wg__free(batches->order);
    wg__free(batches->examples);
    wg__free(batches);
}

void *wg__batches_context(const wg_batches *batches) {
    return batches->source.context;
}

#define SHORTEST_SEQUENCE 8
#define LONGEST_SEQUENCE (1 << 20)

int wg__batch_sizes(const char *where, int64_t *batch, int64_t *sequence) {
    if (*batch == 0)
        *batch = 32;
    if (*batch < 1 || *batch > INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, where, "batches of %lld; wanted from 1 to %d",
                       (long long)*batch, INT32_MAX);
    if (sequence && *sequence == 0)
        *sequence = 128;
    if (sequence && (*sequence < SHORTEST_SEQUENCE || *sequence > LONGEST_SEQUENCE))
        return wg_fail(WG_ERROR_ARGUMENT, where,
                       "sequences of %lld tokens; they must have %d to %d", (long long)*sequence,
                       SHORTEST_SEQUENCE, LONGEST_SEQUENCE);
    return 0;
}

int wg__batch_vocabulary(const char *where, const wg_dataset *text, int64_t size) {
    if (size == wg_dataset_vocabulary(text))
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, where,
                   "the text was tokenized with a vocabulary of %lld tokens, this one has %lld",
                   (long long)wg_dataset_vocabulary(text), (long long)size);
}

void wg__note_source_ends(const wg_dataset *text, int64_t documents, int64_t examples,
                          int64_t *source, int64_t *ends) {
    for (;
         *source < wg__dataset_sources(text) && wg__dataset_source_end(text, *source) <= documents;
         ++*source)
        if (ends)
            ends[*source] = examples;
}

void wg__use_weights(const wg_dataset *text, wg_batches_options *options) {
    options->weights = wg__dataset_weights(text);
    options->sources = options->weights ? wg__dataset_sources(text) : 0;
}

/* ---- Windows of a stream ---- */

int64_t wg__document_token(const wg_dataset *text, int64_t document) {
    const int64_t start = wg__dataset_document_start(text, document);
    return wg__dataset_sentences(text) > 0 ? wg__dataset_sentence_start(text, start) : start;
}

int wg__windows_begin(wg__windows *windows, const char *where, const wg_dataset *text,
                      int64_t length, int64_t batch) {
    if (wg_dataset_tokens(text) <= length)
        return wg_fail(WG_ERROR_ARGUMENT, where,
                       "the text has %lld tokens, and one sequence of %lld takes %lld; give more "
                       "text or shorter sequences",
                       (long long)wg_dataset_tokens(text), (long long)length,
                       (long long)length + 1);
    windows->text = text;
    windows->length = length;
    windows->starts = wg__alloc_array(batch, sizeof *windows->starts);
    return windows->starts ? 0 : -1;
}

static int plan_windows(void *context, wg_epoch *epoch) {
    enum { DRAWS_BITS = 40 }; /* each epoch has 2^40 random numbers of the seed's sequence */
    wg__windows *windows = context;
    const wg_dataset *text = windows->text;
    const int64_t number = epoch->position.epoch, length = windows->length;
    const int64_t labels = wg_dataset_tokens(text) - 1, spare = labels - length + 1;
    if (number >= INT64_C(1) << (63 - DRAWS_BITS))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "epoch %lld is no position", (long long)number);
    epoch->generator =
        (wg_generator){.seed = epoch->position.seed, .offset = (uint64_t)number << DRAWS_BITS};
    windows->offset =
        (int64_t)wg_random_below(&epoch->generator, (uint64_t)(spare < length ? spare : length));
    epoch->examples = (labels - windows->offset) / length;
    for (int64_t i = 0; epoch->source_ends && i < wg__dataset_sources(text); i++) {
        const int64_t end = wg__document_token(text, wg__dataset_source_end(text, i));
        const int64_t before =
            end > windows->offset ? (end - windows->offset + length - 1) / length : 0;
        epoch->source_ends[i] = before < epoch->examples ? before : epoch->examples;
    }
    return 0;
}

static void select_window(void *context, int64_t row, const wg_example *example) {
    wg__windows *windows = context;
    windows->starts[row] = windows->offset + example->index * windows->length;
}

wg_batches *wg__window_batches_new(wg__windows *windows, wg_batch_source source, int64_t batch,
                                   uint64_t seed) {
    wg_batches_options options = {.batch = batch, .seed = seed};
    wg__use_weights(windows->text, &options);
    source.context = windows;
    source.plan = plan_windows;
    source.take = select_window;
    return wg_batches_new(&source, &options);
}

/* ---- Batches of tensors in memory ---- */

typedef struct rows {
    int count;
    wg_tensor *tensors[WG_MAX_BATCH_TENSORS]; /* owned */
} rows;

static void free_rows(void *context) {
    rows *data = context;
    for (int i = 0; i < data->count; i++)
        wg_release(data->tensors[i]);
    wg__free(data);
}

static int build_rows(void *context, int64_t count, const wg_example *examples, void *batch) {
    const rows *data = context;
    wg_tensor **built = batch;
    wg_scope scope;
    for (int i = 0; i < data->count; i++)
        built[i] = NULL;
    int64_t *numbers = wg__alloc_array(count, sizeof *numbers);
    if (!numbers)
        return -1;
    for (int64_t row = 0; row < count; row++)
        numbers[row] = examples[row].index;
    wg_scope_begin(&scope);
    wg_tensor *index = wg_from_array(WG_I64, 1, &count, numbers);
    wg__free(numbers);
    int status = 0;
    for (int i = 0; status == 0 && i < data->count; i++) {
        built[i] = wg_scope_escape(wg_index_select(data->tensors[i], 0, index));
        status = built[i] ? 0 : -1;
    }
    wg_scope_end(&scope, NULL);
    return status;
}

static int check(int count, wg_tensor *const *tensors) {
    if (count < 1 || count > WG_MAX_BATCH_TENSORS)
        return wg_fail(WG_ERROR_ARGUMENT, "tensor_batches", "%d tensors; wanted 1 to %d", count,
                       WG_MAX_BATCH_TENSORS);
    for (int i = 0; i < count; i++) {
        if (!tensors[i])
            return wg_error_pending()
                       ? -1
                       : wg_fail(WG_ERROR_ARGUMENT, "tensor_batches", "tensor %d is NULL", i);
        if (tensors[i]->spec.ndim == 0)
            return wg_fail(WG_ERROR_SHAPE, "tensor_batches",
                           "tensor %d has no rows: it is a single number", i);
        if (tensors[i]->spec.shape[0] != tensors[0]->spec.shape[0])
            return wg_fail(
                WG_ERROR_SHAPE, "tensor_batches", "tensor %d has %lld rows, and tensor 0 has %lld",
                i, (long long)tensors[i]->spec.shape[0], (long long)tensors[0]->spec.shape[0]);
    }
    return 0;
}

wg_batches *wg_tensor_batches_new(int count, wg_tensor *const *tensors,
                                  const wg_batches_options *options) {
    if (check(count, tensors) < 0)
        return NULL;
    rows *data = wg__calloc(1, sizeof *data);
    if (!data)
        return NULL;
    for (; data->count < count; data->count++)
        if (!(data->tensors[data->count] = wg_keep(wg_detach(tensors[data->count])))) {
            free_rows(data);
            return NULL;
        }
    const wg_batch_source source = {.context = data, .build = build_rows, .free = free_rows};
    wg_batches_options chosen = options ? *options : (wg_batches_options){0};
    chosen.examples = tensors[0]->spec.shape[0];
    return wg_batches_new(&source, &chosen);
}

int64_t wg_tensors_fingerprint(int count, wg_tensor *const *tensors) {
    uint64_t hash = WG__HASH_BEGIN;
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int i = 0; i < count; i++) {
        const wg_tensor *x = wg_contiguous(tensors[i]);
        if (!x) {
            wg_scope_end(&scope, NULL);
            return 0;
        }
        const int64_t head[] = {x->spec.dtype, x->spec.ndim};
        hash = wg__hash(hash, head, sizeof head);
        hash = wg__hash(hash, x->spec.shape, (size_t)x->spec.ndim * sizeof *x->spec.shape);
        hash = wg__hash(hash, wg_tensor_data(x),
                        (size_t)wg_tensor_count(x) * wg_dtype_size(x->spec.dtype));
    }
    wg_scope_end(&scope, NULL);
    return (int64_t)(hash ? hash : 1);
}
