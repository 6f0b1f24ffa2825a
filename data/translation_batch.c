/* Batches of sentence pairs: see translation_batch.h. */
#include "data/translation_batch.h"

#include <stdlib.h>
#include <string.h>

#include "data/chance.h"
#include "data/epochs.h"
#include "tensor/easy.h"
#include "tensor/internal.h"

#define WHERE "translation_batch"

/* The label that counts for nothing, as in the published models. */
enum { IGNORED = -100 };

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

static int64_t longest_row(const wg_sentence_pairs *pairs, wg_side side, int64_t count,
                           const int64_t *indices) {
    int64_t longest = 0, length;
    for (int64_t i = 0; i < count; i++) {
        if (!wg_sentence_pairs_tokens(pairs, side, indices[i], &length))
            return wg_fail(WG_ERROR_INDEX, WHERE, "pair %lld of %lld", (long long)indices[i],
                           (long long)wg_sentence_pairs_count(pairs));
        longest = length > longest ? length : longest;
    }
    return longest;
}

static int64_t pad_of(const wg_translation_tokens *tokens) {
    return tokens->pad >= 0 ? tokens->pad : tokens->end;
}

static int read_sources(const wg_sentence_pairs *pairs, const wg_translation_tokens *tokens,
                        int64_t count, const int64_t *indices, wg_translation_batch *batch) {
    const int64_t longest = longest_row(pairs, WG_SOURCE, count, indices);
    table t = {0};
    int result = longest < 0 ? -1 : table_begin(&t, count, longest + 1);
    for (int64_t i = 0, length; result == 0 && i < count; i++) {
        const int32_t *ids = wg_sentence_pairs_tokens(pairs, WG_SOURCE, indices[i], &length);
        fill_row(&t, i, -1, ids, length, tokens->end, pad_of(tokens));
    }
    if (result == 0) {
        batch->source = ids_of(&t);
        batch->source_keep =
            t.padded ? wg_from_array(WG_BOOL, WG_DIMS(count, t.columns), t.keep) : NULL;
        result = batch->source && (batch->source_keep || !t.padded) ? 0 : -1;
    }
    table_end(&t);
    return result;
}

static int read_targets(const wg_sentence_pairs *pairs, const wg_translation_tokens *tokens,
                        int64_t count, const int64_t *indices, wg_translation_batch *batch) {
    const int64_t longest = longest_row(pairs, WG_TARGET, count, indices);
    table target = {0}, labels = {0};
    int result = longest < 0 || table_begin(&target, count, longest + 1) < 0 ||
                         table_begin(&labels, count, longest + 1) < 0
                     ? -1
                     : 0;
    for (int64_t i = 0, length; result == 0 && i < count; i++) {
        const int32_t *ids = wg_sentence_pairs_tokens(pairs, WG_TARGET, indices[i], &length);
        fill_row(&target, i, tokens->start, ids, length, -1, pad_of(tokens));
        fill_row(&labels, i, -1, ids, length, tokens->end, IGNORED);
        batch->tokens += length + 1;
    }
    if (result == 0) {
        batch->target = ids_of(&target);
        batch->labels = ids_of(&labels);
        result = batch->target && batch->labels ? 0 : -1;
    }
    table_end(&target);
    table_end(&labels);
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

/* A pair among those of an epoch. */
typedef struct candidate {
    int64_t pair;
    uint32_t draw;          /* orders those of equal lengths */
    int64_t longer, source; /* tokens: of the longer side, of the source, each with its end */
} candidate;

struct wg_translation_batches {
    const wg_sentence_pairs *pairs;
    wg_translation_tokens tokens;
    wg_translation_batch_options options;
    int64_t candidate_count, count; /* of pairs and of batches */
    candidate *candidates;          /* in the order of their lengths */
    int64_t *starts;                /* (count + 1) the candidate with which each batch begins */
    wg__epochs epochs;              /* of batches */
    wg_data_position ordered;       /* the epoch whose order the candidates have */
    int64_t *indices;               /* (the most pairs of a batch) scratch */
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

/* Gives the candidates the order of the epoch that has come. The lengths in their order are those
 * of every epoch, and so are the cuts. */
static void order(wg_translation_batches *b) {
    const wg_data_position *now = &b->epochs.position;
    if (now->epoch == b->ordered.epoch && now->seed == b->ordered.seed)
        return;
    /* The epoch's own generator, at a draw that shuffling the batches does not come to. */
    const wg_generator generator = wg__chance_of_epoch(now);
    for (int64_t i = 0; i < b->candidate_count; i++)
        b->candidates[i].draw =
            wg_random_bits(generator.seed, UINT64_MAX, (uint64_t)b->candidates[i].pair);
    qsort(b->candidates, (size_t)b->candidate_count, sizeof *b->candidates, compare);
    b->ordered = *now;
}

int wg_translation_batches_next(wg_translation_batches *batches, wg_translation_batch *batch) {
    if (!batches)
        return -1;
    order(batches);
    const wg_data_position before = batches->epochs.position;
    const int64_t *start = batches->starts + wg__epochs_example(&batches->epochs);
    const int64_t count = start[1] - start[0];
    for (int64_t i = 0; i < count; i++)
        batches->indices[i] = batches->candidates[start[0] + i].pair;
    wg__epochs_advance(&batches->epochs);
    if (wg_translation_batch_read(batches->pairs, &batches->tokens, count, batches->indices,
                                  batch) == 0)
        return 0;
    wg__epochs_return(&batches->epochs, before);
    return -1;
}

int64_t wg_translation_batches_count(const wg_translation_batches *batches) {
    return batches ? batches->count : 0;
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

static int find_candidates(wg_translation_batches *b) {
    const int64_t pairs = wg_sentence_pairs_count(b->pairs);
    b->candidates = wg__alloc((size_t)pairs * sizeof *b->candidates);
    if (!b->candidates)
        return -1;
    for (int64_t i = 0; i < pairs; i++) {
        int64_t source, target;
        wg_sentence_pairs_tokens(b->pairs, WG_SOURCE, i, &source);
        wg_sentence_pairs_tokens(b->pairs, WG_TARGET, i, &target);
        const int64_t longer = (source > target ? source : target) + 1;
        if (longer <= b->options.longest)
            b->candidates[b->candidate_count++] =
                (candidate){.pair = i, .longer = longer, .source = source + 1};
    }
    if (b->candidate_count > 0)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE, "every pair has a sentence of more than %lld tokens",
                   (long long)b->options.longest);
}

/* Cuts the candidates, which are in order, into batches as large as they may be: a batch is as wide
 * as its last pair. */
static int cut(wg_translation_batches *b) {
    int64_t most = 0;
    b->starts = wg__alloc((size_t)(b->candidate_count + 1) * sizeof *b->starts);
    if (!b->starts)
        return -1;
    b->starts[0] = 0;
    for (int64_t i = 1; i <= b->candidate_count; i++) {
        const int64_t held = i - b->starts[b->count];
        if (i < b->candidate_count && (held + 1) * b->candidates[i].longer <= b->options.tokens)
            continue;
        most = held > most ? held : most;
        b->starts[++b->count] = i;
    }
    b->indices = wg__alloc((size_t)most * sizeof *b->indices);
    return b->indices ? 0 : -1;
}

static int prepare(wg_translation_batches *b) {
    if (check(&b->options) < 0 || find_candidates(b) < 0)
        return -1;
    qsort(b->candidates, (size_t)b->candidate_count, sizeof *b->candidates, compare);
    b->ordered.epoch = -1;
    return cut(b) < 0 ? -1 : wg__epochs_begin(&b->epochs, b->count, b->options.seed);
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
    wg__free(batches->candidates);
    wg__free(batches->starts);
    wg__epochs_clear(&batches->epochs);
    wg__free(batches->indices);
    wg__free(batches);
}
