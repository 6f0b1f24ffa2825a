/* T5's batches: see t5_batch.h.
 *
 * Letters: B texts, S tokens of inputs, T of labels. */
#include "data/batches/t5_batch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/batches/builder.h"
#include "tensor/easy.h"
#include "tensor/internal.h"

#define WHERE "t5_batch"

/* ---- The tokens ---- */

static int32_t special_or_new(const wg_tokenizer *tokenizer, wg_special_token which,
                              wg_t5_tokens *tokens) {
    const int32_t id = wg_tokenizer_special(tokenizer, which);
    return id >= 0 ? id : (int32_t)tokens->vocab_size++;
}

int wg_t5_tokens_of(const wg_tokenizer *tokenizer, wg_t5_tokens *tokens) {
    if (!tokenizer)
        return -1;
    const int64_t size = wg_tokenizer_size(tokenizer);
    *tokens = (wg_t5_tokens){.tokenizer_size = size, .vocab_size = size};
    tokens->end = special_or_new(tokenizer, WG_TOKEN_END, tokens);
    tokens->pad = special_or_new(tokenizer, WG_TOKEN_PAD, tokens);
    int32_t id = 0;
    for (int i = 0; i < WG_T5_SENTINELS && id >= 0; i++) {
        char name[24];
        snprintf(name, sizeof name, "<extra_id_%d>", i);
        id = wg_tokenizer_id(tokenizer, name);
        if (id >= 0)
            tokens->sentinels[tokens->sentinel_count++] = id;
    }
    if (tokens->sentinel_count > 0)
        return 0;
    tokens->vocab_size += WG_T5_SENTINELS;
    tokens->sentinel_count = WG_T5_SENTINELS;
    for (int i = 0; i < WG_T5_SENTINELS; i++)
        tokens->sentinels[i] = (int32_t)tokens->vocab_size - 1 - i;
    return 0;
}

int wg_t5_sentinel_number(const wg_t5_tokens *tokens, int32_t id) {
    for (int i = 0; i < tokens->sentinel_count; i++)
        if (tokens->sentinels[i] == id)
            return i;
    return -1;
}

/* ---- Lengths and spans ---- */

static int64_t between(double x, int64_t low, int64_t high) {
    const int64_t rounded = (int64_t)nearbyint(x);
    return rounded < low ? low : rounded > high ? high : rounded;
}

wg_t5_lengths wg_t5_lengths_of(int64_t text, double density, double mean_span) {
    const int64_t noise = between((double)text * density, 1, text - 1), rest = text - noise;
    const int64_t spans = between((double)noise / mean_span, 1, noise < rest ? noise : rest);
    return (wg_t5_lengths){.text = text,
                           .noise = noise,
                           .spans = spans,
                           .inputs = rest + spans + 1,
                           .targets = noise + spans + 2};
}

/* Cuts a row of items into parts, none empty, all ways being equally likely: of the places between
 * two items each is a cut with the chance that is left for it (Knuth 2, algorithm 3.4.2S). */
static int64_t next_part(wg_generator *generator, int64_t *items, int64_t *parts) {
    int64_t length = 1;
    while (*items > length &&
           (int64_t)wg_random_below(generator, (uint64_t)(*items - length)) >= *parts - 1)
        length++;
    *items -= length;
    --*parts;
    return length;
}

void wg_t5_draw_spans(const wg_t5_lengths *lengths, wg_generator *generator,
                      wg_token_window *spans) {
    int64_t noise = lengths->noise, rest = lengths->text - noise;
    int64_t noise_parts = lengths->spans, rest_parts = lengths->spans;
    for (int64_t i = 0, at = 0; i < lengths->spans; i++) {
        spans[i].start = at + next_part(generator, &rest, &rest_parts);
        spans[i].end = at = spans[i].start + next_part(generator, &noise, &noise_parts);
    }
}

/* ---- One text ---- */

/* Where the inputs and the labels of a text go; they have room for all. */
typedef struct row {
    int64_t *inputs, *labels;
} row;

static void copy(int64_t **to, const int64_t *text, int64_t start, int64_t end) {
    for (int64_t i = start; i < end; i++)
        *(*to)++ = text[i];
}

static void corrupt(const wg_t5_tokens *tokens, const int64_t *text, int64_t count,
                    const wg_token_window *spans, int64_t span_count, row row) {
    int64_t at = 0;
    for (int64_t i = 0; i < span_count; i++) {
        copy(&row.inputs, text, at, spans[i].start);
        *row.inputs++ = *row.labels++ = tokens->sentinels[i];
        copy(&row.labels, text, spans[i].start, spans[i].end);
        at = spans[i].end;
    }
    copy(&row.inputs, text, at, count);
    *row.labels++ = tokens->sentinels[span_count];
    *row.inputs = *row.labels = tokens->end;
}

/* The tensors of rows that stand in one piece of memory, inputs first. */
static int make_batch(int64_t rows, const wg_t5_lengths *lengths, const int64_t *ids,
                      wg_t5_batch *batch) {
    const int64_t *labels = ids + rows * lengths->inputs;
    batch->input_ids = wg_from_array(WG_I64, WG_DIMS(rows, lengths->inputs), ids);
    batch->labels = wg_from_array(WG_I64, WG_DIMS(rows, lengths->targets), labels);
    batch->tokens = rows * (lengths->inputs + lengths->targets);
    return batch->input_ids && batch->labels ? 0 : -1;
}

static int check_spans(const wg_t5_tokens *tokens, int64_t count, const wg_token_window *spans,
                       int64_t span_count) {
    if (span_count >= tokens->sentinel_count)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "%lld spans; the %d sentinels are enough for %d",
                       (long long)span_count, tokens->sentinel_count, tokens->sentinel_count - 1);
    for (int64_t i = 0; i < span_count; i++) {
        const int64_t start = spans[i].start, end = spans[i].end;
        if (start < (i > 0 ? spans[i - 1].end + 1 : 0) || start >= end || end > count)
            return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                           "span %lld, from token %lld to %lld of %lld, is empty, overlaps or "
                           "touches another or is not in the text",
                           (long long)i, (long long)start, (long long)end, (long long)count);
    }
    return 0;
}

int wg_t5_batch_of_spans(const wg_t5_tokens *tokens, const int32_t *text, int64_t count,
                         const wg_token_window *spans, int64_t span_count, wg_t5_batch *batch) {
    *batch = (wg_t5_batch){0};
    if (!tokens || !text || check_spans(tokens, count, spans, span_count) < 0)
        return -1;
    wg_t5_lengths lengths = {.text = count, .spans = span_count};
    for (int64_t i = 0; i < span_count; i++)
        lengths.noise += spans[i].end - spans[i].start;
    lengths.inputs = count - lengths.noise + span_count + 1;
    lengths.targets = lengths.noise + span_count + 2;
    int64_t *ids = wg__alloc((size_t)(lengths.inputs + lengths.targets + count) * sizeof *ids);
    if (!ids)
        return -1;
    int64_t *wide = ids + lengths.inputs + lengths.targets;
    for (int64_t i = 0; i < count; i++)
        wide[i] = text[i];
    corrupt(tokens, wide, count, spans, span_count, (row){ids, ids + lengths.inputs});
    const int result = make_batch(1, &lengths, ids, batch);
    wg__free(ids);
    return result;
}

/* ---- Batches ---- */

typedef struct corruption {
    wg__windows windows;
    wg_t5_tokens tokens;
    wg_t5_lengths lengths;
    int32_t *read; /* scratch: the ids of one text, and the same wider */
    int64_t *text;
    int64_t *ids;           /* scratch: B rows of S inputs, then B of T labels */
    wg_token_window *spans; /* scratch, of one text */
} corruption;

/* All spans of a batch are drawn from the generator of its first example. */
static int build(void *context, int64_t count, const wg_example *examples, void *batch) {
    corruption *c = context;
    const wg_t5_lengths *lengths = &c->lengths;
    wg_generator generator = examples[0].generator;
    int64_t *labels = c->ids + count * lengths->inputs;
    *(wg_t5_batch *)batch = (wg_t5_batch){0};
    for (int64_t b = 0; b < count; b++) {
        if (wg_dataset_read(c->windows.text, c->windows.starts[b], lengths->text, c->read) < 0)
            return -1;
        for (int64_t i = 0; i < lengths->text; i++)
            c->text[i] = c->read[i];
        wg_t5_draw_spans(lengths, &generator, c->spans);
        corrupt(&c->tokens, c->text, lengths->text, c->spans, lengths->spans,
                (row){c->ids + b * lengths->inputs, labels + b * lengths->targets});
    }
    return make_batch(count, lengths, c->ids, batch);
}

static int plan(void *context, wg_epoch *epoch) {
    return wg__windows_plan(&((corruption *)context)->windows, epoch);
}

static void take(void *context, int64_t row, const wg_example *example) {
    wg__windows_take(&((corruption *)context)->windows, row, example);
}

static void free_corruption(void *context) {
    corruption *c = context;
    wg__free(c->windows.starts);
    wg__free(c->read);
    wg__free(c->text);
    wg__free(c->ids);
    wg__free(c->spans);
    wg__free(c);
}

/* ---- Making them ---- */

static int complete(wg_t5_batch_options *o) {
    if (wg__batch_sizes(WHERE, &o->batch, &o->sequence) < 0)
        return -1;
    o->noise_density = o->noise_density == 0 ? 0.15 : o->noise_density;
    o->mean_span = o->mean_span == 0 ? 3 : o->mean_span;
    if (!(o->noise_density > 0 && o->noise_density < 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "noise_density is %g; it must be between 0 and 1",
                       o->noise_density);
    if (!(o->mean_span >= 1 && isfinite(o->mean_span)))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "mean_span is %g; it must be 1 or more",
                       o->mean_span);
    return 0;
}

/* The longest text that leaves no more inputs than there is room for. */
static wg_t5_lengths fit(const wg_t5_batch_options *o) {
    wg_t5_lengths lengths = wg_t5_lengths_of(2, o->noise_density, o->mean_span), next = lengths;
    while (next.inputs <= o->sequence) {
        lengths = next;
        next = wg_t5_lengths_of(lengths.text + 1, o->noise_density, o->mean_span);
    }
    return lengths;
}

static int check_tokens(const corruption *c, const wg_dataset *stream) {
    const wg_t5_tokens *tokens = &c->tokens;
    if (wg__batch_vocabulary(WHERE, stream, tokens->tokenizer_size) < 0)
        return -1;
    if (c->lengths.spans < tokens->sentinel_count)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                   "sequences of %lld tokens have %lld spans; the %d sentinels are enough for %d; "
                   "give shorter sequences",
                   (long long)c->lengths.inputs, (long long)c->lengths.spans,
                   tokens->sentinel_count, tokens->sentinel_count - 1);
}

static int prepare(corruption *c, const wg_dataset *stream, const wg_tokenizer *tokenizer,
                   wg_t5_batch_options *o) {
    if (complete(o) < 0 || wg_t5_tokens_of(tokenizer, &c->tokens) < 0)
        return -1;
    c->lengths = fit(o);
    if (check_tokens(c, stream) < 0 ||
        wg__windows_begin(&c->windows, WHERE, stream, c->lengths.text, o->batch) < 0)
        return -1;
    const int64_t row = c->lengths.inputs + c->lengths.targets;
    c->read = wg__alloc((size_t)c->lengths.text * sizeof *c->read);
    c->text = wg__alloc((size_t)c->lengths.text * sizeof *c->text);
    c->ids = wg__alloc((size_t)(o->batch * row) * sizeof *c->ids);
    c->spans = wg__alloc((size_t)c->lengths.spans * sizeof *c->spans);
    return c->read && c->text && c->ids && c->spans ? 0 : -1;
}

wg_batches *wg_t5_batches_new(const wg_dataset *stream, const wg_tokenizer *tokenizer,
                              const wg_t5_batch_options *options) {
    wg_t5_batch_options o = options ? *options : (wg_t5_batch_options){0};
    corruption *c = stream && tokenizer ? wg__calloc(1, sizeof *c) : NULL;
    if (!c)
        return NULL;
    if (prepare(c, stream, tokenizer, &o) < 0) {
        free_corruption(c);
        return NULL;
    }
    wg_batches_options batching = {.batch = o.batch, .seed = o.seed};
    wg__use_weights(stream, &batching);
    return wg_batches_new(
        &(wg_batch_source){
            .context = c, .build = build, .plan = plan, .take = take, .free = free_corruption},
        &batching);
}

wg_t5_lengths wg_t5_batches_lengths(const wg_batches *batches) {
    return batches ? ((const corruption *)wg__batches_context(batches))->lengths
                   : (wg_t5_lengths){0};
}

const wg_t5_tokens *wg_t5_batches_tokens(const wg_batches *batches) {
    return batches ? &((const corruption *)wg__batches_context(batches))->tokens : NULL;
}

/* ---- Texts with blanks, as people write them ---- */

/* The next blank from `text` on: where it begins, how long it is, and the number in it, or -1 for
 * "[MASK]". */
typedef struct blank {
    const char *text; /* NULL: there is none */
    size_t length;
    long number;
} blank;

static blank read_blank(const char *text) {
    static const char mask[] = "[MASK]", sentinel[] = "<extra_id_";
    if (strncmp(text, mask, sizeof mask - 1) == 0)
        return (blank){text, sizeof mask - 1, -1};
    if (strncmp(text, sentinel, sizeof sentinel - 1) != 0)
        return (blank){0};
    const char *digits = text + sizeof sentinel - 1;
    const size_t count = strspn(digits, "0123456789");
    if (count < 1 || count > 8 || digits[count] != '>')
        return (blank){0};
    return (blank){text, sizeof sentinel + count, strtol(digits, NULL, 10)};
}

static blank find_blank(const char *text) {
    for (; *text; text++) {
        const blank found = read_blank(text);
        if (found.text)
            return found;
    }
    return (blank){0};
}

static int check_blank(const wg_t5_tokens *tokens, const blank *found, int expected) {
    if (found->number >= 0 && found->number != expected)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "<extra_id_%ld> stands where <extra_id_%d> is due: blanks are numbered in "
                       "the order of the text, from 0 on",
                       found->number, expected);
    if (expected + 1 < tokens->sentinel_count)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE, "the text has more than %d blanks",
                   tokens->sentinel_count - 1);
}

/* The bytes of a text without the white space at its end. */
static int64_t stripped(const char *text, const char *end) {
    while (end > text && strchr(" \t\r\n", end[-1]))
        end--;
    return end - text;
}

static int encode(const wg_tokenizer *tokenizer, const wg_t5_tokens *tokens, const char *text,
                  wg_token_list *list) {
    int blanks = 0;
    for (blank next; (next = find_blank(text)).text; text = next.text + next.length) {
        if (check_blank(tokens, &next, blanks) < 0 ||
            wg_tokenizer_encode(tokenizer, text, stripped(text, next.text), NULL, list) < 0 ||
            wg_token_list_append(list, tokens->sentinels[blanks]) < 0)
            return -1;
        blanks++;
    }
    if (wg_tokenizer_encode(tokenizer, text, -1, NULL, list) < 0)
        return -1;
    return wg_token_list_append(list, tokens->end) < 0 ? -1 : blanks;
}

int wg_t5_encode_blanks(const wg_tokenizer *tokenizer, const wg_t5_tokens *tokens, const char *text,
                        wg_token_list *list) {
    if (!tokenizer || !tokens || !text)
        return -1;
    const int64_t before = list->count;
    const int blanks = encode(tokenizer, tokens, text, list);
    if (blanks < 0)
        list->count = before;
    return blanks;
}

wg_token_window wg_t5_answer(const wg_t5_tokens *tokens, const wg_token_list *target, int blank) {
    int64_t start = 0;
    while (start < target->count && wg_t5_sentinel_number(tokens, target->ids[start]) != blank)
        start++;
    if (start < target->count)
        start++;
    int64_t end = start;
    while (end < target->count && wg_t5_sentinel_number(tokens, target->ids[end]) < 0)
        end++;
    return (wg_token_window){start, end};
}
