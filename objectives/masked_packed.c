/* Masked language modelling on packed text: see masked_lm.h. */
#include "objectives/masked_lm.h"

#include <math.h>
#include <string.h>

#include "data/internal.h"
#include "data/tokenizer/kind.h"
#include "tensor/easy.h"
#include "tensor/internal.h"

#define WHERE "mlm"

typedef struct packing {
    wg__windows windows;
    wg__packed_batch_options options;
    double share; /* of tokens that are masked, now */
    const wg_dataset *text;
    int32_t class, separator, mask;
    int64_t *document_ends; /* (documents) the token behind each */
    bool *begins_word;      /* (V) */
    /* The current sequence; T + 1 entries each. */
    int32_t *read, *tokens; /* one block */
    int64_t *units;         /* the first token of each unit that may be masked */
    bool *masked;
    /* The current batch; B T entries each, in one block. */
    int64_t *ids, *positions, *labels;
} packing;

/* Writes T + 1 tokens from `start` on, between [CLS] and, where documents end, [SEP]. */
static int read_sequence(packing *p, int64_t start) {
    const int64_t length = p->options.sequence + 1, documents = wg__dataset_documents(p->text);
    if (wg__dataset_read(p->text, start, length - 1, p->read) < 0)
        return -1;
    int64_t low = 0, high = documents - 1; /* the document of `start` */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (p->document_ends[middle] > start)
            high = middle;
        else
            low = middle + 1;
    }
    p->tokens[0] = p->class;
    for (int64_t t = 1, i = 0; t < length; t++)
        if (start + i == p->document_ends[low] && i > 0 && low < documents - 1) {
            p->tokens[t] = p->separator;
            low++;
        } else {
            p->tokens[t] = p->read[i++];
        }
    return 0;
}

/* Finds the units that may be masked, tokens or words, and returns their number. *candidates: the
 * number of their tokens. */
static int64_t find_units(packing *p, int64_t *candidates) {
    const bool words = p->options.masking.unit != WG_MASK_TOKENS;
    int64_t count = 0;
    *candidates = 0;
    bool after_separator = true;
    for (int64_t t = 1; t < p->options.sequence; t++) {
        const int32_t token = p->tokens[t];
        if (token == p->separator) {
            after_separator = true;
            continue;
        }
        if (after_separator || !words || p->begins_word[token])
            p->units[count++] = t;
        after_separator = false;
        ++*candidates;
    }
    return count;
}

/* The end of the unit that begins at `start`. */
static int64_t unit_end(const packing *p, int64_t start) {
    int64_t end = start + 1;
    while (p->options.masking.unit != WG_MASK_TOKENS && end < p->options.sequence &&
           p->tokens[end] != p->separator && !p->begins_word[p->tokens[end]])
        end++;
    return end;
}

/* Masks tokens first .. end - 1: by [MASK] in 80 % of the cases, in 10 % by random tokens, and in
 * 10 % not at all. */
static void replace(packing *p, int64_t first, int64_t end, wg_generator *g, int64_t *ids) {
    const double chance = wg_random_uniform(g);
    const uint64_t vocabulary = (uint64_t)wg_dataset_vocabulary(p->text);
    for (int64_t t = first; t < end; t++) {
        p->masked[t] = true;
        if (chance < 0.8)
            ids[t] = p->mask;
        else if (chance < 0.9)
            ids[t] = (int64_t)wg_random_below(g, vocabulary);
    }
}

/* Masks units in random order; skips a unit with more tokens than are still wanted. */
static void mask_units(packing *p, int64_t count, int64_t wanted, wg_generator *g, int64_t *ids) {
    for (int64_t i = 0; i < count && wanted > 0; i++) {
        const int64_t j = wg__random_between(g, i, count - 1), start = p->units[j];
        p->units[j] = p->units[i];
        p->units[i] = start;
        const int64_t end = unit_end(p, start);
        if (end - start > wanted)
            continue;
        replace(p, start, end, g, ids);
        wanted -= end - start;
    }
}

/* Masks spans of words, which do not overlap. */
static void mask_spans(packing *p, int64_t count, int64_t wanted, wg_generator *g, int64_t *ids) {
    enum { LONGEST = 10, TRIES = 8 };
    const double stay = 1 - 1 / p->options.masking.span_mean;
    for (int64_t tries = TRIES * count; wanted > 0 && tries > 0; tries--) {
        int64_t words = 1;
        while (words < LONGEST && wg_random_uniform(g) < stay)
            words++;
        const int64_t first = wg__random_between(g, 0, count - 1);
        const int64_t start = p->units[first];
        int64_t end = start;
        for (int64_t w = first; w < count && w < first + words; w++) {
            if (p->units[w] != end && w > first) /* a [SEP] is between them */
                break;
            const int64_t next = unit_end(p, p->units[w]);
            if (next - start > wanted || p->masked[p->units[w]])
                break;
            end = next;
        }
        if (end == start)
            continue;
        replace(p, start, end, g, ids);
        wanted -= end - start;
    }
}

/* Makes either the causal or the masked sequences of a batch. The place of a sequence in the epoch
 * decides whether it is causal, so every stretch of an epoch has the same share of causal sequences
 * whatever the batch size. */
static int build_rows(packing *p, bool causal, int64_t all, const wg_example *examples,
                      wg__masked_batch *batch) {
    const int64_t length = p->options.sequence;
    const double share = p->options.masking.causal_share;
    int64_t rows = 0, count = 0;
    for (int64_t i = 0; i < all; i++) {
        const double place = (double)examples[i].place;
        if ((floor((place + 1) * share) > floor(place * share)) != causal)
            continue;
        if (read_sequence(p, p->windows.starts[i]) < 0)
            return -1;
        if (!causal) {
            wg_generator g = examples[i].generator;
            int64_t *ids = p->ids + rows * length, candidates;
            for (int64_t t = 0; t < length; t++)
                ids[t] = p->tokens[t];
            memset(p->masked, 0, (size_t)length * sizeof *p->masked);
            const int64_t units = find_units(p, &candidates);
            const int64_t wanted = (int64_t)fmax(1, rint(p->share * (double)candidates));
            if (units > 0 && p->options.masking.unit == WG_MASK_SPANS)
                mask_spans(p, units, wanted, &g, ids);
            else
                mask_units(p, units, wanted, &g, ids);
            for (int64_t t = 0; t < length; t++)
                if (p->masked[t]) {
                    p->positions[count] = rows * length + t - p->options.predicts_from_before;
                    p->labels[count++] = p->tokens[t];
                }
        }
        for (int64_t t = 0; causal && t < length; t++) {
            p->ids[rows * length + t] = p->tokens[t];
            p->labels[rows * length + t] = p->tokens[t + 1];
        }
        rows++;
    }
    if (rows == 0)
        return 0;
    wg_tensor *ids = wg_from_array(WG_I64, WG_DIMS(rows, length), p->ids);
    if (causal) {
        batch->causal_ids = ids;
        batch->causal_labels = wg_from_array(WG_I64, WG_DIMS(rows, length), p->labels);
        return ids && batch->causal_labels ? 0 : -1;
    }
    batch->ids = ids;
    batch->positions = wg_from_array(WG_I64, WG_DIMS(count), p->positions);
    batch->labels = wg_from_array(WG_I64, WG_DIMS(count), p->labels);
    return ids && batch->positions && batch->labels ? 0 : -1;
}

static int build(void *context, int64_t count, const wg_example *examples, void *built) {
    packing *p = context;
    wg__masked_batch *batch = built;
    *batch = (wg__masked_batch){.tokens = count * p->options.sequence};
    if (build_rows(p, false, count, examples, batch) == 0 &&
        build_rows(p, true, count, examples, batch) == 0)
        return 0;
    *batch = (wg__masked_batch){0};
    return -1;
}

static void free_packing(void *context) {
    packing *p = context;
    wg__free(p->windows.starts);
    wg__free(p->document_ends);
    wg__free(p->begins_word);
    wg__free(p->read);
    wg__free(p->units);
    wg__free(p->masked);
    wg__free(p->ids);
    wg__free(p);
}

static int prepare(packing *p, const wg_tokenizer *tokenizer) {
    wg__packed_batch_options *options = &p->options;
    const wg_mlm_options *o = &options->masking;
    if (wg__batch_sizes(WHERE, &options->batch, &options->sequence) < 0)
        return -1;
    if (!(o->masked_share > 0 && o->masked_share <= 1) ||
        !(o->final_masked_share >= 0 && o->final_masked_share <= 1) ||
        !(o->causal_share >= 0 && o->causal_share < 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "masked_share is %g, final_masked_share %g and causal_share %g; they must "
                       "be shares of 1",
                       o->masked_share, o->final_masked_share, o->causal_share);
    if (!wg__mask_unit_name(o->unit))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "there is no unit %d to mask", o->unit);
    if (o->unit == WG_MASK_SPANS && !(o->span_mean >= 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "span_mean is %g; it must be 1 or more",
                       o->span_mean);
    if (wg__windows_begin(&p->windows, WHERE, p->text, options->sequence - 1, options->batch) < 0)
        return -1;
    p->class = wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS);
    p->separator = wg_tokenizer_special(tokenizer, WG_TOKEN_SEPARATOR);
    p->mask = wg_tokenizer_special(tokenizer, WG_TOKEN_MASK);
    if (p->class < 0 || p->separator < 0 || p->mask < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the %s tokenizer has not all of [CLS], [SEP] and [MASK]; --tokenizer "
                       "wordpiece learns one that has",
                       wg_tokenizer_kind(tokenizer));
    const int64_t size = wg_tokenizer_size(tokenizer), documents = wg__dataset_documents(p->text);
    if (wg__batch_vocabulary(WHERE, p->text, size) < 0)
        return -1;
    const int64_t length = options->sequence + 1;
    const int64_t all = wg__times(options->batch, options->sequence);
    p->begins_word = wg__alloc_array(size, sizeof *p->begins_word);
    p->document_ends = wg__alloc_array(documents, sizeof *p->document_ends);
    p->read = wg__alloc_array(wg__times(2, length), sizeof *p->read);
    p->units = wg__alloc_array(length, sizeof *p->units);
    p->masked = wg__alloc_array(length, sizeof *p->masked);
    p->ids = wg__alloc_array(wg__times(3, all), sizeof *p->ids);
    if (wg_error_pending())
        return -1;
    p->tokens = p->read + length;
    p->positions = p->ids + all;
    p->labels = p->positions + all;
    for (int32_t id = 0; id < size; id++)
        p->begins_word[id] = wg__token_begins_word(tokenizer, id);
    for (int64_t d = 0; d < documents; d++)
        p->document_ends[d] = wg__document_token(p->text, d + 1);
    return wg_error_pending() ? -1 : 0;
}

wg_batches *wg__packed_batches_new(const wg_dataset *text, const wg_tokenizer *tokenizer,
                                   const wg__packed_batch_options *options) {
    packing *p = text && tokenizer ? wg__calloc(1, sizeof *p) : NULL;
    if (!p)
        return NULL;
    *p = (packing){.options = *options, .share = options->masking.masked_share, .text = text};
    if (prepare(p, tokenizer) < 0) {
        free_packing(p);
        return NULL;
    }
    return wg__window_batches_new(&p->windows,
                                  (wg_batch_source){.build = build, .free = free_packing},
                                  p->options.batch, p->options.seed);
}

void wg__packed_batches_set_share(wg_batches *batches, double masked_share) {
    ((packing *)wg__batches_context(batches))->share = masked_share;
}
