/* Batches of sentence pairs: see translation_batch.h. */
#include "data/batches/translation_batch.h"

#include <stdlib.h>
#include <string.h>

#include "data/batches/rng.h"
#include "data/batches/epochs.h"
#include "data/dataset/token_view.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "translation_batch"

int wg_translation_tokens_of(const wg_tokenizer *tokenizer, wg_translation_tokens *tokens) {
    if (!tokenizer)
        return -1;
    int32_t start = wg_tokenizer_special(tokenizer, WG_TOKEN_BEGIN);
    int32_t end = wg_tokenizer_special(tokenizer, WG_TOKEN_END);
    if (end < 0) {
        start = wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS);
        end = wg_tokenizer_special(tokenizer, WG_TOKEN_SEPARATOR);
    }
    if (end < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the %s tokenizer has no token that ends a sentence; one of bpe has",
                       wg_tokenizer_kind(tokenizer));
    *tokens = (wg_translation_tokens){.start = start >= 0 ? start : end,
                                      .end = end,
                                      .pad = wg_tokenizer_special(tokenizer, WG_TOKEN_PAD)};
    return 0;
}

/* ---- A batch ---- */

/* Rows of ids that are filled up to the longest: (B, T). */
typedef struct table {
    int64_t rows, columns;
    int64_t *ids;
    bool *keep;
    bool padded; /* `keep` is false somewhere */
} table;

static int table_begin(table *t, int64_t rows, int64_t columns) {
    const size_t size = (size_t)(rows * columns);
    *t = (table){.rows = rows,
                 .columns = columns,
                 .ids = wg__alloc((size + 1) * sizeof *t->ids),
                 .keep = wg__alloc(size + 1)};
    return t->ids && t->keep ? 0 : -1;
}

static void table_end(table *t) {
    wg__free(t->ids);
    wg__free(t->keep);
}

/* A row: `first` unless it is -1, `count` ids, `last` likewise, and `pad` where nothing counts. */
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

static wg_tensor *ids_of(const table *t) {
    return wg_from_array(WG_I64, WG_DIMS(t->rows, t->columns), t->ids);
}

/* The rows of one side of a batch before they are laid out. */
typedef struct rows {
    int64_t longest;
    int32_t *ids; /* (longest) of the row at hand */
} rows;

static int rows_begin(rows *r, const wg_sentence_pairs *pairs, wg_side side, int64_t count,
                      const int64_t *indices) {
    *r = (rows){0};
    for (int64_t i = 0; i < count; i++) {
        const int64_t length = wg_sentence_pairs_length(pairs, side, indices[i]);
        if (length < 0) /* an error that is pending stays */
            return wg_fail(WG_ERROR_INDEX, WHERE, "pair %lld of %lld", (long long)indices[i],
                           (long long)wg_sentence_pairs_count(pairs));
        r->longest = length > r->longest ? length : r->longest;
    }
    r->ids = wg__alloc((size_t)(r->longest + 1) * sizeof *r->ids);
    return r->ids ? 0 : -1;
}

static int64_t pad_of(const wg_translation_tokens *tokens) {
    return tokens->pad >= 0 ? tokens->pad : tokens->end;
}

static int read_sources(const wg_sentence_pairs *pairs, const wg_translation_tokens *tokens,
                        int64_t count, const int64_t *indices, wg_translation_batch *batch) {
    rows r;
    table t = {0};
    int result = rows_begin(&r, pairs, WG_SOURCE, count, indices);
    if (result == 0)
        result = table_begin(&t, count, r.longest + 1);
    for (int64_t i = 0; result == 0 && i < count; i++) {
        const int64_t length = wg_sentence_pairs_length(pairs, WG_SOURCE, indices[i]);
        result = wg_sentence_pairs_read(pairs, WG_SOURCE, indices[i], r.ids);
        if (result == 0)
            fill_row(&t, i, -1, r.ids, length, tokens->end, pad_of(tokens));
    }
    if (result == 0) {
        batch->source = ids_of(&t);
        batch->source_keep =
            t.padded ? wg_from_array(WG_BOOL, WG_DIMS(count, t.columns), t.keep) : NULL;
        result = batch->source && (batch->source_keep || !t.padded) ? 0 : -1;
    }
    table_end(&t);
    wg__free(r.ids);
    return result;
}

static int read_targets(const wg_sentence_pairs *pairs, const wg_translation_tokens *tokens,
                        int64_t count, const int64_t *indices, wg_translation_batch *batch) {
    rows r;
    table target = {0}, labels = {0};
    int result = rows_begin(&r, pairs, WG_TARGET, count, indices);
    if (result == 0 && (table_begin(&target, count, r.longest + 1) < 0 ||
                        table_begin(&labels, count, r.longest + 1) < 0))
        result = -1;
    for (int64_t i = 0; result == 0 && i < count; i++) {
        const int64_t length = wg_sentence_pairs_length(pairs, WG_TARGET, indices[i]);
        result = wg_sentence_pairs_read(pairs, WG_TARGET, indices[i], r.ids);
        if (result < 0)
            break;
        fill_row(&target, i, tokens->start, r.ids, length, -1, pad_of(tokens));
        fill_row(&labels, i, -1, r.ids, length, tokens->end, WG_IGNORE_INDEX);
        batch->tokens += length + 1;
    }
    if (result == 0) {
        batch->target = ids_of(&target);
        batch->labels = ids_of(&labels);
        result = batch->target && batch->labels ? 0 : -1;
    }
    table_end(&target);
    table_end(&labels);
    wg__free(r.ids);
    return result;
}

int wg_translation_batch_read(const wg_sentence_pairs *pairs, const wg_translation_tokens *tokens,
                              int64_t count, const int64_t *indices, wg_translation_batch *batch) {
    *batch = (wg_translation_batch){0};
    if (!pairs || read_sources(pairs, tokens, count, indices, batch) < 0)
        return -1;
    return read_targets(pairs, tokens, count, indices, batch);
}

int wg_translation_sources(int64_t count, const wg_token_list *rows,
                           const wg_translation_tokens *tokens, wg_tensor **source,
                           wg_tensor **keep) {
    int64_t longest = 0;
    for (int64_t i = 0; i < count; i++)
        longest = rows[i].count > longest ? rows[i].count : longest;
    table t;
    int result = table_begin(&t, count, longest + 1);
    for (int64_t i = 0; result == 0 && i < count; i++)
        fill_row(&t, i, -1, rows[i].ids, rows[i].count, tokens->end, pad_of(tokens));
    if (result == 0) {
        *source = ids_of(&t);
        *keep = t.padded ? wg_from_array(WG_BOOL, WG_DIMS(count, t.columns), t.keep) : NULL;
        result = *source && (*keep || !t.padded) ? 0 : -1;
    }
    table_end(&t);
    return result;
}

/* ---- An epoch ---- */

/* A pair among those of an epoch. Tokens are of the longer side, and of the source, each with its
 * end. */
typedef struct candidate {
    uint32_t pair;
    uint32_t draw; /* orders those of equal lengths */
    int32_t longer, source;
} candidate;

struct wg_translation_batches {
    const wg_sentence_pairs *pairs;
    wg_translation_tokens tokens;
    wg_translation_batch_options options;
    int64_t candidate_count;
    candidate
        *candidates;     /* without weights in the order of the epoch, else in that of the pairs */
    wg__mixture mixture; /* of candidates */
    int64_t *chosen;     /* (candidate_count) of these, by weight; NULL without weights */
    candidate *drawn;    /* (candidate_count) those of the epoch; `candidates` without weights */
    int64_t *starts;     /* (most batches + 1) the one of these with which each batch begins */
    int64_t most;        /* batches of an epoch */
    wg__epochs epochs;   /* of batches */
    int64_t *indices;    /* (the most pairs of a batch) scratch */
};

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

/* Draws of an epoch's own generator that shuffling its batches does not come to. */
#define CHOOSING (UINT64_C(1) << 62)
#define ORDERING UINT64_MAX

/* Takes the pairs of an epoch by their weights. One that comes again is drawn anew: the copies do
 * not stand together. */
static void choose(wg_translation_batches *b, uint64_t seed) {
    wg_generator generator = {.seed = seed, .offset = CHOOSING};
    wg__mixture_fill(&b->mixture, &generator, b->candidate_count, b->chosen);
    const uint64_t pairs = (uint64_t)wg_sentence_pairs_count(b->pairs);
    uint64_t copy = 0;
    for (int64_t i = 0; i < b->candidate_count; i++) {
        const bool again = i > 0 && b->chosen[i] <= b->chosen[i - 1];
        copy = again ? copy + 1 : copy;
        b->drawn[i] = b->candidates[b->chosen[i]];
        b->drawn[i].draw = wg_random_bits(seed, ORDERING, copy * pairs + b->drawn[i].pair);
    }
}

/* Cuts the pairs of an epoch, which are in order, into batches as large as they may be: a batch is
 * as wide as its last pair. The number of batches. */
static int64_t cut(wg_translation_batches *b) {
    int64_t count = 0;
    b->starts[0] = 0;
    for (int64_t i = 1; i <= b->candidate_count; i++) {
        const int64_t held = i - b->starts[count];
        if (i == b->candidate_count || (held + 1) * b->drawn[i].longer > b->options.tokens)
            b->starts[++count] = i;
    }
    return count;
}

/* Makes the batches of an epoch. Without weights the lengths in their order are those of every
 * epoch, and so are the cuts. */
static int64_t make_epoch(void *context, const wg_data_position *position) {
    wg_translation_batches *b = context;
    const uint64_t seed = wg__chance_of_epoch(position).seed;
    if (b->chosen)
        choose(b, seed);
    else
        for (int64_t i = 0; i < b->candidate_count; i++)
            b->drawn[i].draw = wg_random_bits(seed, ORDERING, b->drawn[i].pair);
    qsort(b->drawn, (size_t)b->candidate_count, sizeof *b->drawn, compare);
    return cut(b);
}

int wg_translation_batches_next(wg_translation_batches *batches, wg_translation_batch *batch) {
    if (!batches)
        return -1;
    const wg_data_position before = batches->epochs.position;
    const int64_t *start = batches->starts + wg__epochs_example(&batches->epochs);
    const int64_t count = start[1] - start[0];
    for (int64_t i = 0; i < count; i++)
        batches->indices[i] = batches->drawn[start[0] + i].pair;
    wg__epochs_advance(&batches->epochs);
    if (wg_translation_batch_read(batches->pairs, &batches->tokens, count, batches->indices,
                                  batch) == 0)
        return 0;
    wg__epochs_return(&batches->epochs, before);
    return -1;
}

int64_t wg_translation_batches_count(const wg_translation_batches *batches) {
    return batches ? batches->epochs.count : 0;
}

int64_t wg_translation_batches_left_out(const wg_translation_batches *batches) {
    return batches ? wg_sentence_pairs_count(batches->pairs) - batches->candidate_count : 0;
}

wg_data_position wg_translation_batches_position(const wg_translation_batches *batches) {
    return batches ? batches->epochs.position : (wg_data_position){0};
}

int wg_translation_batches_seek(wg_translation_batches *batches, const wg_data_position *position) {
    return batches && position ? wg__epochs_seek(&batches->epochs, WHERE, position) : -1;
}

/* ---- Making them ---- */

static int check(const wg_translation_batch_options *options) {
    if (options->tokens < 1 || options->longest < 1 || options->tokens > INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "batches of %lld tokens, sentences of up to %lld",
                       (long long)options->tokens, (long long)options->longest);
    if (options->tokens < options->longest)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "batches of %lld tokens do not hold one sentence of %lld; make them larger, "
                       "or the longest sentence shorter",
                       (long long)options->tokens, (long long)options->longest);
    return 0;
}

static int add_candidate(wg_translation_batches *b, int64_t pair) {
    const int64_t source = wg_sentence_pairs_length(b->pairs, WG_SOURCE, pair);
    const int64_t target = wg_sentence_pairs_length(b->pairs, WG_TARGET, pair);
    const int64_t longer = (source > target ? source : target) + 1;
    if (source < 0 || target < 0)
        return -1;
    if (longer <= b->options.longest)
        b->candidates[b->candidate_count++] = (candidate){
            .pair = (uint32_t)pair, .longer = (int32_t)longer, .source = (int32_t)source + 1};
    return 0;
}

static int find_candidates(wg_translation_batches *b) {
    const wg__token_view *view = wg__sentence_pairs_view(b->pairs);
    const int64_t pairs = wg_sentence_pairs_count(b->pairs);
    if (pairs > UINT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "%lld pairs are more than 2^32", (long long)pairs);
    b->candidates = wg__alloc((size_t)pairs * sizeof *b->candidates);
    if (!b->candidates || wg__mixture_of(&b->mixture, view) < 0)
        return -1;
    for (int64_t i = 0; i < pairs; i++) {
        if (add_candidate(b, i) < 0)
            return -1;
        wg__mixture_reach(&b->mixture, view, i + 1, b->candidate_count);
    }
    if (b->candidate_count > 0)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE, "every pair has a sentence of more than %lld tokens",
                   (long long)b->options.longest);
}

/* Each batch but the last has as many pairs at least as fit if all of them are of the longest; and
 * no pair has less than two tokens a side. */
static int allocate(wg_translation_batches *b) {
    const int64_t count = b->candidate_count;
    const int64_t least = b->options.tokens / b->options.longest, largest = b->options.tokens / 2;
    const size_t size = (size_t)count;
    b->most = (count + least - 1) / least;
    b->starts = wg__alloc((size_t)(b->most + 1) * sizeof *b->starts);
    b->indices = wg__alloc((size_t)(largest < count ? largest : count) * sizeof *b->indices);
    b->drawn = b->candidates;
    if (!b->starts || !b->indices)
        return -1;
    if (b->mixture.sources == 0)
        return 0;
    b->chosen = wg__alloc(size * sizeof *b->chosen);
    b->drawn = wg__alloc(size * sizeof *b->drawn);
    return b->chosen && b->drawn ? 0 : -1;
}

static int prepare(wg_translation_batches *b) {
    if (check(&b->options) < 0 || find_candidates(b) < 0 || allocate(b) < 0 ||
        wg__epochs_begin(&b->epochs, b->most, b->options.seed) < 0)
        return -1;
    wg__epochs_make(&b->epochs, make_epoch, b);
    return 0;
}

wg_translation_batches *wg_translation_batches_new(const wg_sentence_pairs *pairs,
                                                   const wg_translation_tokens *tokens,
                                                   const wg_translation_batch_options *options) {
    wg_translation_batches *batches = pairs && tokens ? wg__calloc(1, sizeof *batches) : NULL;
    if (!batches)
        return NULL;
    batches->pairs = pairs;
    batches->tokens = *tokens;
    if (options)
        batches->options = *options;
    if (batches->options.tokens == 0)
        batches->options.tokens = 4096;
    if (batches->options.longest == 0)
        batches->options.longest = 128;
    if (prepare(batches) == 0)
        return batches;
    wg_translation_batches_free(batches);
    return NULL;
}

void wg_translation_batches_free(wg_translation_batches *batches) {
    if (!batches)
        return;
    if (batches->drawn != batches->candidates)
        wg__free(batches->drawn);
    wg__free(batches->candidates);
    wg__free(batches->chosen);
    wg__mixture_clear(&batches->mixture);
    wg__free(batches->starts);
    wg__epochs_clear(&batches->epochs);
    wg__free(batches->indices);
    wg__free(batches);
}
