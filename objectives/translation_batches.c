/* Batches of sentences and their translations: see translation.h. */
#include <stdlib.h>
#include <string.h>

#include "data/internal.h"
#include "objectives/translation.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "translation"

/* Rows of ids that are filled up to the longest: (B, T). */
typedef struct table {
    int64_t rows, columns;
    int64_t *ids;
    bool *keep;
    bool padded; /* `keep` is false somewhere */
} table;

static int table_begin(table *t, int64_t rows, int64_t columns) {
    const size_t size = (size_t)wg__times(rows, columns);
    *t = (table){.rows = rows,
                 .columns = columns,
                 .ids = wg__alloc_array(size + 1, sizeof *t->ids),
                 .keep = wg__alloc(size + 1)};
    return t->ids && t->keep ? 0 : -1;
}

/* A row: `first` unless it is -1, `count` ids, `last` unless it is -1, and then `pad`. */
static void fill_row(table *t, int64_t row, int64_t first, const int32_t *ids, int64_t count,
                     int64_t last, int64_t pad) {
    int64_t *out = t->ids + row * t->columns, used = 0;
    if (first >= 0)
        out[used++] = first;
    for (int64_t i = 0; i < count; i++)
        out[used++] = ids[i];
    if (last >= 0)
        out[used++] = last;
    for (int64_t i = 0; i < t->columns; i++) {
        t->keep[row * t->columns + i] = i < used;
        if (i >= used)
            out[i] = pad;
    }
    t->padded |= used < t->columns;
}

/* The sources of a batch, and `keep`, or NULL where nothing is padded. */
static int make_sources(const table *t, wg_tensor **source, wg_tensor **keep) {
    *source = wg_from_array(WG_I64, WG_DIMS(t->rows, t->columns), t->ids);
    *keep = t->padded ? wg_from_array(WG_BOOL, WG_DIMS(t->rows, t->columns), t->keep) : NULL;
    return *source && (*keep || !t->padded) ? 0 : -1;
}

/* The number of tokens on one side of a pair; -1 out of range, or if the file cannot be read. */
static int64_t pair_length(const wg_dataset *pairs, wg_side side, int64_t pair) {
    const int64_t sentence = 2 * pair + side;
    if (pair < 0 || pair >= wg__dataset_documents(pairs))
        return -1;
    const int64_t length = wg__dataset_sentence_start(pairs, sentence + 1) -
                           wg__dataset_sentence_start(pairs, sentence);
    return wg_error_pending() ? -1 : length;
}

int wg__translation_batch_read(const wg_dataset *pairs, const wg__translation_tokens *tokens,
                               int64_t count, const int64_t *indices,
                               wg__translation_batch *batch) {
    const int64_t pad = tokens->pad >= 0 ? tokens->pad : tokens->end;
    int result = pairs ? 0 : -1;
    *batch = (wg__translation_batch){0};
    for (wg_side side = WG_SOURCE; result == 0 && side <= WG_TARGET; side++) {
        int64_t longest = 0;
        for (int64_t i = 0; i < count; i++) {
            const int64_t length = pair_length(pairs, side, indices[i]);
            if (length < 0) /* an error that is pending stays */
                return wg_fail(WG_ERROR_INDEX, WHERE, "pair %lld of %lld", (long long)indices[i],
                               (long long)wg__dataset_documents(pairs));
            longest = wg__larger(longest, length);
        }
        table given = {0}, labels = {0};
        int32_t *ids = wg__alloc_array(longest + 1, sizeof *ids);
        if (!ids || table_begin(&given, count, longest + 1) < 0 ||
            (side == WG_TARGET && table_begin(&labels, count, longest + 1) < 0))
            result = -1;
        for (int64_t i = 0; result == 0 && i < count; i++) {
            const int64_t length = pair_length(pairs, side, indices[i]);
            const int64_t first = wg__dataset_sentence_start(pairs, 2 * indices[i] + side);
            result = wg__dataset_read(pairs, first, length, ids);
            if (result == 0 && side == WG_SOURCE) {
                fill_row(&given, i, -1, ids, length, tokens->end, pad);
            } else if (result == 0) {
                fill_row(&given, i, tokens->start, ids, length, -1, pad);
                fill_row(&labels, i, -1, ids, length, tokens->end, WG_IGNORE_INDEX);
                batch->tokens += length + 1;
            }
        }
        if (result == 0 && side == WG_SOURCE) {
            result = make_sources(&given, &batch->source, &batch->source_keep);
        } else if (result == 0) {
            batch->target = wg_from_array(WG_I64, WG_DIMS(count, longest + 1), given.ids);
            batch->labels = wg_from_array(WG_I64, WG_DIMS(count, longest + 1), labels.ids);
            result = batch->target && batch->labels ? 0 : -1;
        }
        wg__free(given.ids);
        wg__free(given.keep);
        wg__free(labels.ids);
        wg__free(labels.keep);
        wg__free(ids);
    }
    return result;
}

int wg__translation_sources(int64_t count, const wg_token_list *rows,
                            const wg__translation_tokens *tokens, wg_tensor **source,
                            wg_tensor **keep) {
    int64_t longest = 0;
    for (int64_t i = 0; i < count; i++)
        longest = wg__larger(longest, rows[i].count);
    const int64_t pad = tokens->pad >= 0 ? tokens->pad : tokens->end;
    table t;
    int result = table_begin(&t, count, longest + 1);
    for (int64_t i = 0; result == 0 && i < count; i++)
        fill_row(&t, i, -1, rows[i].ids, rows[i].count, tokens->end, pad);
    if (result == 0)
        result = make_sources(&t, source, keep);
    wg__free(t.ids);
    wg__free(t.keep);
    return result;
}

/* A pair of an epoch. */
typedef struct candidate {
    uint32_t pair;
    uint32_t draw;          /* orders pairs of equal lengths */
    int32_t longer, source; /* tokens of the longer side and of the source, each with its end */
} candidate;

typedef struct bucketing {
    const wg_dataset *pairs;
    wg__translation_tokens tokens;
    wg__translation_batch_options options;
    int64_t candidate_count;
    candidate *candidates; /* with weights in the order of the pairs, else in the epoch's order */
    int64_t sources;       /* with weights; 0: without */
    double *weights;       /* (sources) */
    int64_t *source_ends;  /* (sources) of candidates */
    int64_t *chosen;       /* (candidate_count) of `candidates`, by weight; NULL without weights */
    candidate *drawn;      /* (candidate_count) the epoch's pairs; `candidates` without weights */
    int64_t *starts;       /* (most batches + 1) where in `drawn` each batch begins */
    int64_t *indices;      /* (the most pairs of a batch) scratch */
    int64_t index_count;
} bucketing;

static int compare(const void *left, const void *right) {
    const candidate *a = left, *b = right;
    if (a->longer != b->longer)
        return a->longer < b->longer ? -1 : 1;
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    if (a->draw != b->draw)
        return a->draw < b->draw ? -1 : 1;
    return (a->pair > b->pair) - (a->pair < b->pair);
}

/* Offsets of draws in an epoch's random sequence that shuffling its batches never reaches. */
#define CHOOSING (UINT64_C(1) << 62)
#define ORDERING UINT64_MAX

/* Makes the batches of an epoch. Without weights the sorted lengths are the same in every epoch, so
 * the cuts between batches are the same too. */
static int plan(void *context, wg_epoch *epoch) {
    bucketing *b = context;
    const uint64_t seed = epoch->generator.seed;
    if (b->chosen) {
        /* Chooses the pairs of the epoch by the weights of their sources. Copies of a pair get
         * different draws, so that they are not neighbours. */
        wg_generator generator = {.seed = seed, .offset = CHOOSING};
        const wg_batches_options weighted = {.sources = b->sources, .weights = b->weights};
        wg__weigh_examples(&weighted, b->source_ends, b->candidate_count, &generator, b->chosen);
        const uint64_t pairs = (uint64_t)wg__dataset_documents(b->pairs);
        uint64_t copy = 0;
        for (int64_t i = 0; i < b->candidate_count; i++) {
            const bool again = i > 0 && b->chosen[i] <= b->chosen[i - 1];
            copy = again ? copy + 1 : copy;
            b->drawn[i] = b->candidates[b->chosen[i]];
            b->drawn[i].draw = wg__random_bits(seed, ORDERING, copy * pairs + b->drawn[i].pair);
        }
    } else {
        for (int64_t i = 0; i < b->candidate_count; i++)
            b->drawn[i].draw = wg__random_bits(seed, ORDERING, b->drawn[i].pair);
    }
    qsort(b->drawn, (size_t)b->candidate_count, sizeof *b->drawn, compare);
    /* Cuts the sorted pairs into batches of the largest size: a batch is as wide as its last
     * pair. */
    int64_t count = 0;
    b->starts[0] = 0;
    for (int64_t i = 1; i <= b->candidate_count; i++) {
        const int64_t held = i - b->starts[count];
        if (i == b->candidate_count || (held + 1) * b->drawn[i].longer > b->options.tokens)
            b->starts[++count] = i;
    }
    epoch->examples = count;
    return 0;
}

/* Notes the pairs of a batch. */
static void take(void *context, int64_t row, const wg_example *example) {
    bucketing *b = context;
    const int64_t *start = b->starts + example->index;
    (void)row; /* there is one */
    b->index_count = start[1] - start[0];
    for (int64_t i = 0; i < b->index_count; i++)
        b->indices[i] = b->drawn[start[0] + i].pair;
}

static int build(void *context, int64_t count, const wg_example *examples, void *batch) {
    const bucketing *b = context;
    (void)count;
    (void)examples;
    return wg__translation_batch_read(b->pairs, &b->tokens, b->index_count, b->indices, batch);
}

static void free_bucketing(void *context) {
    bucketing *b = context;
    if (b->drawn != b->candidates)
        wg__free(b->drawn);
    wg__free(b->candidates);
    wg__free(b->chosen);
    wg__free(b->weights);
    wg__free(b->source_ends);
    wg__free(b->starts);
    wg__free(b->indices);
    wg__free(b);
}

int64_t wg__translation_batches_left_out(const wg_batches *batches) {
    const bucketing *b = batches ? wg__batches_context(batches) : NULL;
    return b ? wg__dataset_documents(b->pairs) - b->candidate_count : 0;
}

static int prepare(bucketing *b) {
    if (b->options.tokens < 1 || b->options.longest < 1 || b->options.tokens > INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "batches of %lld tokens, sentences of up to %lld",
                       (long long)b->options.tokens, (long long)b->options.longest);
    if (b->options.tokens < b->options.longest)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "batches of %lld tokens do not hold one sentence of %lld; make them larger, "
                       "or the longest sentence shorter",
                       (long long)b->options.tokens, (long long)b->options.longest);
    const double *weights = wg__dataset_weights(b->pairs);
    const int64_t pairs = wg__dataset_documents(b->pairs);
    if (pairs > UINT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "%lld pairs are more than 2^32", (long long)pairs);
    b->candidates = wg__alloc_array(pairs, sizeof *b->candidates);
    if (weights) {
        b->sources = wg__dataset_sources(b->pairs);
        b->weights = wg__alloc_array(b->sources, sizeof *b->weights);
        b->source_ends = wg__calloc((size_t)b->sources, sizeof *b->source_ends);
    }
    if (!b->candidates || (weights && (!b->weights || !b->source_ends)))
        return -1;
    if (weights)
        memcpy(b->weights, weights, (size_t)b->sources * sizeof *b->weights);
    for (int64_t i = 0, ended = 0; i < pairs; i++) {
        const int64_t source = pair_length(b->pairs, WG_SOURCE, i);
        const int64_t target = pair_length(b->pairs, WG_TARGET, i);
        const int64_t longer = wg__larger(source, target) + 1;
        if (source < 0 || target < 0)
            return -1;
        if (longer <= b->options.longest)
            b->candidates[b->candidate_count++] = (candidate){
                .pair = (uint32_t)i, .longer = (int32_t)longer, .source = (int32_t)source + 1};
        wg__note_source_ends(b->pairs, i + 1, b->candidate_count, &ended, b->source_ends);
    }
    if (b->candidate_count == 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "every pair has a sentence of more than %lld tokens",
                       (long long)b->options.longest);
    /* A batch, except the last, has at least tokens / longest pairs, and at most tokens / 2: no
     * pair has fewer than two tokens on its longer side. */
    const int64_t count = b->candidate_count;
    const int64_t least = b->options.tokens / b->options.longest, largest = b->options.tokens / 2;
    const size_t size = (size_t)count, most = (size_t)((count + least - 1) / least);
    b->starts = wg__alloc_array(most + 1, sizeof *b->starts);
    b->indices = wg__alloc_array(largest < count ? largest : count, sizeof *b->indices);
    b->drawn = b->candidates;
    if (!b->starts || !b->indices)
        return -1;
    if (b->sources == 0)
        return 0;
    b->chosen = wg__alloc_array(size, sizeof *b->chosen);
    b->drawn = wg__alloc_array(size, sizeof *b->drawn);
    return b->chosen && b->drawn ? 0 : -1;
}

wg_batches *wg__translation_batches_new(const wg_dataset *pairs,
                                        const wg__translation_tokens *tokens,
                                        const wg__translation_batch_options *options) {
    bucketing *b = pairs && tokens ? wg__calloc(1, sizeof *b) : NULL;
    if (!b)
        return NULL;
    b->pairs = pairs;
    b->tokens = *tokens;
    b->options = *options;
    if (b->options.tokens == 0)
        b->options.tokens = 4096;
    if (b->options.longest == 0)
        b->options.longest = 128;
    if (prepare(b) < 0) {
        free_bucketing(b);
        return NULL;
    }
    return wg_batches_new(
        &(wg_batch_source){
            .context = b, .build = build, .plan = plan, .take = take, .free = free_bucketing},
        &(wg_batches_options){.batch = 1, .seed = b->options.seed});
}
