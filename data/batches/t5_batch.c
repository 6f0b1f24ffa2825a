/* T5's batches: see t5_batch.h.
 *
 * Letters: B texts, S tokens of inputs, T of labels. */
#include "data/batches/t5_batch.h"

#include <math.h>
#include <stdio.h>

#include "data/batches/batch_options.h"
#include "data/batches/rng.h"
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

struct wg_t5_batches {
    wg_causal_batches *texts;
    wg_t5_tokens tokens;
    wg_t5_lengths lengths;
    int64_t batch;
    int64_t *ids;           /* scratch: B rows of S inputs, then B of T labels */
    wg_token_window *spans; /* scratch, of one text */
};

int wg_t5_batches_next(wg_t5_batches *batches, wg_t5_batch *batch) {
    *batch = (wg_t5_batch){0};
    if (!batches)
        return -1;
    const wg_data_position before = wg_causal_batches_position(batches->texts);
    const wg_t5_lengths *lengths = &batches->lengths;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_causal_batch texts;
    int result = wg_causal_batches_next(batches->texts, &texts);
    const int64_t *text = result == 0 ? wg_tensor_data(texts.ids) : NULL;
    int64_t *labels = batches->ids + batches->batch * lengths->inputs;
    wg_generator generator = wg__chance_of_example(&before);
    for (int64_t b = 0; result == 0 && b < batches->batch; b++) {
        wg_t5_draw_spans(lengths, &generator, batches->spans);
        corrupt(&batches->tokens, text + b * lengths->text, lengths->text, batches->spans,
                lengths->spans,
                (row){batches->ids + b * lengths->inputs, labels + b * lengths->targets});
    }
    wg_scope_end(&scope, NULL);
    if (result == 0)
        result = make_batch(batches->batch, lengths, batches->ids, batch);
    if (result < 0)
        wg_causal_batches_seek(batches->texts, &before);
    return result;
}

/* ---- Making them ---- */

static int complete(wg_t5_batch_options *o) {
    if (wg__batch_options_sizes(WHERE, &o->batch, &o->sequence) < 0)
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

static int check_tokens(const wg_t5_batches *batches, const wg_token_stream *stream) {
    const wg_t5_tokens *tokens = &batches->tokens;
    if (tokens->tokenizer_size != wg_token_stream_vocabulary(stream))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the text was tokenised with a vocabulary of %lld tokens, this one has %lld",
                       (long long)wg_token_stream_vocabulary(stream),
                       (long long)tokens->tokenizer_size);
    if (batches->lengths.spans < tokens->sentinel_count)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                   "sequences of %lld tokens have %lld spans; the %d sentinels are enough for %d; "
                   "give shorter sequences",
                   (long long)batches->lengths.inputs, (long long)batches->lengths.spans,
                   tokens->sentinel_count, tokens->sentinel_count - 1);
}

static int make(wg_t5_batches *batches, const wg_token_stream *stream,
                const wg_tokenizer *tokenizer, wg_t5_batch_options *options) {
    if (complete(options) < 0 || wg_t5_tokens_of(tokenizer, &batches->tokens) < 0)
        return -1;
    batches->batch = options->batch;
    batches->lengths = fit(options);
    if (check_tokens(batches, stream) < 0)
        return -1;
    const wg_causal_batch_options texts = {
        .batch = options->batch, .sequence = batches->lengths.text, .seed = options->seed};
    batches->texts = wg_causal_batches_new(stream, &texts);
    if (!batches->texts)
        return -1;
    const int64_t row = batches->lengths.inputs + batches->lengths.targets;
    batches->ids = wg__alloc((size_t)(options->batch * row) * sizeof *batches->ids);
    batches->spans = wg__alloc((size_t)batches->lengths.spans * sizeof *batches->spans);
    return batches->ids && batches->spans ? 0 : -1;
}

wg_t5_batches *wg_t5_batches_new(const wg_token_stream *stream, const wg_tokenizer *tokenizer,
                                 const wg_t5_batch_options *options) {
    if (!stream || !tokenizer)
        return NULL;
    wg_t5_batch_options o = options ? *options : (wg_t5_batch_options){0};
    wg_t5_batches *batches = wg__calloc(1, sizeof *batches);
    if (!batches)
        return NULL;
    if (make(batches, stream, tokenizer, &o) == 0)
        return batches;
    wg_t5_batches_free(batches);
    return NULL;
}

void wg_t5_batches_free(wg_t5_batches *batches) {
    if (!batches)
        return;
    wg_causal_batches_free(batches->texts);
    wg__free(batches->ids);
    wg__free(batches->spans);
    wg__free(batches);
}

/* ---- What and where they are ---- */

wg_t5_lengths wg_t5_batches_lengths(const wg_t5_batches *batches) {
    return batches ? batches->lengths : (wg_t5_lengths){0};
}

const wg_t5_tokens *wg_t5_batches_tokens(const wg_t5_batches *batches) {
    return batches ? &batches->tokens : NULL;
}

int64_t wg_t5_batches_examples(const wg_t5_batches *batches) {
    return batches ? wg_causal_batches_examples(batches->texts) : 0;
}

wg_data_position wg_t5_batches_position(const wg_t5_batches *batches) {
    return batches ? wg_causal_batches_position(batches->texts) : (wg_data_position){0};
}

int wg_t5_batches_seek(wg_t5_batches *batches, const wg_data_position *position) {
    return batches ? wg_causal_batches_seek(batches->texts, position) : -1;
}
