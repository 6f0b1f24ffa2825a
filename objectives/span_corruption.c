/* Span corruption: see span_corruption.h. */
#include "objectives/span_corruption.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/internal.h"
#include "models/generate/beam.h"
#include "objectives/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "models/internal.h"

#define WHERE "span-corruption"
#define DENSITY 0.15 /* the share of the tokens that is removed */
#define MEAN_SPAN 3  /* tokens */

wg__span_lengths wg__span_lengths_of(int64_t text, double density, double mean_span) {
    const double rounded_noise = nearbyint((double)text * density);
    const int64_t noise = (int64_t)fmax(1, fmin(rounded_noise, (double)(text - 1)));
    const int64_t kept = text - noise;
    const double rounded_spans = nearbyint((double)noise / mean_span);
    const int64_t spans = (int64_t)fmax(1, fmin(rounded_spans, (double)wg__smaller(noise, kept)));
    return (wg__span_lengths){.text = text,
                              .noise = noise,
                              .spans = spans,
                              .inputs = kept + spans + 1,
                              .targets = noise + spans + 2};
}

/* The length of the next part when *items are cut into *parts, none empty, all cuts being equally
 * likely: each place between two items is a cut with probability (cuts left) / (places left)
 * (Knuth 2, algorithm 3.4.2S). */
static int64_t next_part(wg_generator *generator, int64_t *items, int64_t *parts) {
    int64_t length = 1;
    while (*items > length &&
           (int64_t)wg_random_below(generator, (uint64_t)(*items - length)) >= *parts - 1)
        length++;
    *items -= length;
    --*parts;
    return length;
}

void wg__span_draw(const wg__span_lengths *lengths, wg_generator *generator,
                   wg_token_window *spans) {
    int64_t noise = lengths->noise, kept = lengths->text - noise;
    int64_t noise_parts = lengths->spans, kept_parts = lengths->spans;
    for (int64_t i = 0, at = 0; i < lengths->spans; i++) {
        spans[i].start = at + next_part(generator, &kept, &kept_parts);
        spans[i].end = at = spans[i].start + next_part(generator, &noise, &noise_parts);
    }
}

/* Where the inputs and the labels of a text go; they have room for all. */
typedef struct row {
    int64_t *inputs, *labels;
} row;

static void corrupt(const wg__sentinels *tokens, const int32_t *text, int64_t count,
                    const wg_token_window *spans, int64_t span_count, row row) {
    int64_t at = 0;
    for (int64_t i = 0; i <= span_count; i++) {
        for (const int64_t end = i < span_count ? spans[i].start : count; at < end; at++)
            *row.inputs++ = text[at];
        *row.labels++ = tokens->sentinels[i];
        if (i == span_count)
            break;
        *row.inputs++ = tokens->sentinels[i];
        for (; at < spans[i].end; at++)
            *row.labels++ = text[at];
    }
    *row.inputs = *row.labels = tokens->end;
}

/* Makes the tensors of `ids`: all rows of inputs, then all rows of labels. */
static int make_batch(int64_t rows, const wg__span_lengths *lengths, const int64_t *ids,
                      wg__span_batch *batch) {
    const int64_t *labels = ids + rows * lengths->inputs;
    batch->input_ids = wg_from_array(WG_I64, WG_DIMS(rows, lengths->inputs), ids);
    batch->labels = wg_from_array(WG_I64, WG_DIMS(rows, lengths->targets), labels);
    batch->tokens = rows * (lengths->inputs + lengths->targets);
    return batch->input_ids && batch->labels ? 0 : -1;
}

int wg__span_batch_of_spans(const wg__sentinels *tokens, const int32_t *text, int64_t count,
                            const wg_token_window *spans, int64_t span_count,
                            wg__span_batch *batch) {
    wg__span_lengths lengths = {.text = count, .spans = span_count};
    for (int64_t i = 0; i < span_count; i++)
        lengths.noise += spans[i].end - spans[i].start;
    lengths.inputs = count - lengths.noise + span_count + 1;
    lengths.targets = lengths.noise + span_count + 2;
    int64_t *ids = wg__alloc_array(lengths.inputs + lengths.targets, sizeof *ids);
    if (!ids)
        return -1;
    corrupt(tokens, text, count, spans, span_count, (row){ids, ids + lengths.inputs});
    const int result = make_batch(1, &lengths, ids, batch);
    wg__free(ids);
    return result;
}

/* ---- Batches of a text ---- */

typedef struct corruption {
    wg__windows windows;
    wg__sentinels tokens;
    wg__span_lengths lengths;
    int32_t *read;          /* (text) scratch: ids */
    int64_t *ids;           /* scratch: B rows of S inputs, then B of T labels */
    wg_token_window *spans; /* (spans) scratch */
} corruption;

static int build(void *context, int64_t count, const wg_example *examples, void *batch) {
    corruption *c = context;
    const wg__span_lengths *lengths = &c->lengths;
    int64_t *labels = c->ids + count * lengths->inputs;
    *(wg__span_batch *)batch = (wg__span_batch){0};
    for (int64_t b = 0; b < count; b++) {
        if (wg__dataset_read(c->windows.text, c->windows.starts[b], lengths->text, c->read) < 0)
            return -1;
        wg_generator generator = examples[b].generator;
        wg__span_draw(lengths, &generator, c->spans);
        corrupt(&c->tokens, c->read, lengths->text, c->spans, lengths->spans,
                (row){c->ids + b * lengths->inputs, labels + b * lengths->targets});
    }
    return make_batch(count, lengths, c->ids, batch);
}

static void free_corruption(void *context) {
    corruption *c = context;
    wg__free(c->windows.starts);
    wg__free(c->read);
    wg__free(c->ids);
    wg__free(c->spans);
    wg__free(c);
}

static int prepare(corruption *c, const wg_dataset *stream, const wg_tokenizer *tokenizer,
                   wg__span_batch_options *o) {
    if (wg__batch_sizes(WHERE, &o->batch, &o->sequence) < 0)
        return -1;
    if (wg__sentinels_of(tokenizer, &c->tokens) < 0)
        return -1;
    /* The longest text with inputs of at most `sequence` tokens. */
    wg__span_lengths lengths = wg__span_lengths_of(2, DENSITY, MEAN_SPAN), next = lengths;
    while (next.inputs <= o->sequence) {
        lengths = next;
        next = wg__span_lengths_of(lengths.text + 1, DENSITY, MEAN_SPAN);
    }
    c->lengths = lengths;
    if (wg__batch_vocabulary(WHERE, stream, c->tokens.tokenizer_size) < 0)
        return -1;
    if (lengths.spans >= c->tokens.sentinel_count)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "sequences of %lld tokens have %lld spans; the %d sentinels are enough for "
                       "%d; give shorter sequences",
                       (long long)lengths.inputs, (long long)lengths.spans,
                       c->tokens.sentinel_count, c->tokens.sentinel_count - 1);
    if (wg__windows_begin(&c->windows, WHERE, stream, lengths.text, o->batch) < 0)
        return -1;
    const int64_t row = c->lengths.inputs + c->lengths.targets;
    c->read = wg__alloc_array(c->lengths.text, sizeof *c->read);
    c->ids = wg__alloc_array(wg__times(o->batch, row), sizeof *c->ids);
    c->spans = wg__alloc_array(c->lengths.spans, sizeof *c->spans);
    return c->read && c->ids && c->spans ? 0 : -1;
}

wg_batches *wg__span_batches_new(const wg_dataset *stream, const wg_tokenizer *tokenizer,
                                 const wg__span_batch_options *options) {
    wg__span_batch_options o = options ? *options : (wg__span_batch_options){0};
    corruption *c = stream && tokenizer ? wg__calloc(1, sizeof *c) : NULL;
    if (!c)
        return NULL;
    if (prepare(c, stream, tokenizer, &o) < 0) {
        free_corruption(c);
        return NULL;
    }
    return wg__window_batches_new(
        &c->windows, (wg_batch_source){.build = build, .free = free_corruption}, o.batch, o.seed);
}

wg__span_lengths wg__span_batches_lengths(const wg_batches *batches) {
    return ((const corruption *)wg__batches_context(batches))->lengths;
}

/* ---- Texts with blanks ---- */

int wg__span_encode_blanks(const wg_tokenizer *tokenizer, const wg__sentinels *tokens,
                           const char *text, wg_token_list *list) {
    const int64_t before = list->count;
    int blanks = 0, status = 0;
    const char *at = text;
    while (status == 0 && *at) {
        const char *const mask = "[MASK]", *const sentinel = "<extra_id_";
        const char *next = NULL; /* behind the blank that begins here; NULL: there is none */
        long place = -1;
        if (strncmp(at, mask, strlen(mask)) == 0) {
            next = at + strlen(mask);
        } else if (strncmp(at, sentinel, strlen(sentinel)) == 0) {
            const char *digits = at + strlen(sentinel);
            const size_t count = strspn(digits, "0123456789");
            if (count >= 1 && count <= 8 && digits[count] == '>') {
                next = digits + count + 1;
                place = strtol(digits, NULL, 10);
            }
        }
        if (!next) {
            at++;
            continue;
        }
        int64_t length = at - text;
        while (length > 0 && strchr(" \t\r\n", text[length - 1]))
            length--;
        if (place >= 0 && place != blanks)
            status = wg_fail(WG_ERROR_ARGUMENT, WHERE,
                             "<extra_id_%ld> stands where <extra_id_%d> is due: blanks are "
                             "numbered in the order of the text, from 0 on",
                             place, blanks);
        else if (blanks + 1 >= tokens->sentinel_count)
            status = wg_fail(WG_ERROR_ARGUMENT, WHERE, "the text has more than %d blanks",
                             tokens->sentinel_count - 1);
        else if (wg_tokenizer_encode(tokenizer, text, length, NULL, list) < 0 ||
                 wg_token_list_append(list, tokens->sentinels[blanks]) < 0)
            status = -1;
        blanks++;
        text = at = next;
    }
    if (status == 0 && wg_tokenizer_encode(tokenizer, text, -1, NULL, list) == 0 &&
        wg_token_list_append(list, tokens->end) == 0)
        return blanks;
    list->count = before;
    return -1;
}

wg_token_window wg__span_answer(const wg__sentinels *tokens, const wg_token_list *target,
                                int blank) {
    int64_t start = 0;
    while (start < target->count && wg__sentinel_number(tokens, target->ids[start]) != blank)
        start++;
    if (start < target->count)
        start++;
    int64_t end = start;
    while (end < target->count && wg__sentinel_number(tokens, target->ids[end]) < 0)
        end++;
    return (wg_token_window){start, end};
}

/* ---- Training ---- */

typedef struct spans {
    wg__sentinels sentinels;
    double unigram_loss; /* of the held-out text */
} spans;

static wg_batches *make_batches(const wg_training_setup *setup, const wg_dataset *text,
                                bool measured) {
    (void)measured;
    return wg__span_batches_new(text, setup->tokenizer,
                                &(wg__span_batch_options){.batch = setup->batch,
                                                          .sequence = setup->sequence,
                                                          .seed = setup->seed});
}

static int begin(wg_training *t) {
    const wg_training_setup *setup = &t->setup;
    const wg_model_sizes sizes = wg_model_sizes_of(setup->model);
    spans *mine = t->context = wg__calloc(1, sizeof *mine);
    if (!mine || wg__sentinels_of(setup->tokenizer, &mine->sentinels) < 0 ||
        wg__check_vocabulary(WHERE, mine->sentinels.vocab_size, " with its sentinels",
                             sizes.vocabulary) < 0)
        return -1;
    if (sizes.end_id != mine->sentinels.end)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the model's eos_token_id is %lld, and the tokenizer's </s> is %ld",
                       (long long)sizes.end_id, (long)mine->sentinels.end);
    if (setup->held_out)
        mine->unigram_loss = wg_dataset_unigram_loss(
            setup->training ? setup->training : setup->held_out, NULL, setup->held_out);
    return wg_error_pending() ? -1 : 0;
}

/* The hidden states of the labels, (B, T, C). */
static wg_tensor *decode_labels(const wg_model *model, const wg__span_batch *batch) {
    wg_tensor *memory = wg_model_encode(model, batch->input_ids, NULL);
    wg_tensor *ids = wg_model_shift_right(model, batch->labels);
    return wg_model_forward(model, &(wg_model_inputs){.ids = ids, .memory = memory});
}

static wg_tensor *loss_of(wg_training *t, const void *batch, wg_metrics *metrics) {
    const wg__span_batch *spans = batch;
    const wg_model *model = t->setup.model;
    (void)metrics;
    return wg_model_loss(model, decode_labels(model, spans), NULL, spans->labels, NULL);
}

static int measure(wg_training *t, const void *read, wg_metrics *metrics) {
    const wg__span_batch *batch = read;
    const spans *mine = t->context;
    const wg_model *model = t->setup.model;
    wg_tensor *logits = wg_reshape(wg_model_logits(model, decode_labels(model, batch), NULL),
                                   WG_DIMS(-1, wg_model_sizes_of(model).vocabulary));
    wg_tensor *labels = wg_reshape(batch->labels, WG_DIMS(-1));
    /* `text`: the labels, with sentinels and </s> ignored. */
    const wg__sentinels *sentinels = &mine->sentinels;
    wg_tensor *text = wg_empty(WG_I64, WG_DIMS(wg_tensor_count(batch->labels)));
    const int64_t *ids = wg_tensor_data(batch->labels);
    int64_t *kept = text ? wg_tensor_data(text) : NULL, count = 0;
    for (int64_t i = 0; kept && i < wg_tensor_count(text); i++) {
        const bool is_text =
            ids[i] != sentinels->end && wg__sentinel_number(sentinels, (int32_t)ids[i]) < 0;
        kept[i] = is_text ? ids[i] : WG_IGNORE_INDEX;
        count += is_text;
    }
    const double all_loss = wg_item(wg_cross_entropy(logits, labels, WG_IGNORE_INDEX, NULL));
    const double word_loss = wg_item(wg_cross_entropy(logits, text, WG_IGNORE_INDEX, NULL));
    wg_tensor *right = wg_eq(wg_argmax(logits, -1, false), text);
    const double correct = wg_item(wg_sum(wg_cast(right, WG_I64), WG_ALL, false));
    const double words = (double)count;
    if (wg_error_pending() ||
        wg_metrics_add(metrics, "loss", all_loss, (double)wg_tensor_count(labels)) < 0 ||
        wg_metrics_add(metrics, "word_loss", word_loss, words) < 0 ||
        wg_metrics_add(metrics, "word_accuracy", correct / words, words) < 0)
        return -1;
    return wg_metrics_add(metrics, "unigram_loss", mine->unigram_loss, words);
}

static int evaluate(wg_training *t, int64_t batches, wg_metrics *metrics) {
    return wg__evaluate_batches(t, batches, false, measure, metrics);
}

static const wg_metric_row rows[] = {
    {.name = "loss"},
    {.name = "word_loss", .weight = "words"},
    {.name = "word_accuracy"},
    {.name = "unigram_loss"},
    {0},
};

static void print(const wg_metrics *metrics, FILE *stream) {
    const double word_loss = wg_metrics_get(metrics, "word_loss");
    fprintf(stream, "tokens of spans  loss %.4f, perplexity %.1f, accuracy %.1f %% of %.0f\n",
            word_loss, exp(word_loss), 100 * wg_metrics_get(metrics, "word_accuracy"),
            wg_metrics_weight(metrics, "word_loss"));
    fprintf(stream, "by frequency          %.4f\n", wg_metrics_get(metrics, "unigram_loss"));
    fprintf(stream, "with sentinels   loss %.4f\n", wg_metrics_get(metrics, "loss"));
}

/* ---- Filling blanks: beam search over valid targets ----
 *
 *     <extra_id_0> tokens of the text... <extra_id_1> ... <extra_id_n> </s>       n blanks */

/* A hypothesis: it has the sentinels below `next`, and its text has `blanks`. */
typedef struct progress {
    int next, blanks;
    bool empty; /* the current blank has no token yet */
} progress;

typedef struct rules {
    const wg__sentinels *tokens;
    int64_t vocabulary;
    bool *is_text;             /* (V) true for tokens of texts: no sentinel, </s> or padding */
    progress *rows, *new_rows; /* (R) */
} rules;

/* Makes the log probability of every token that may not come next -inf. Spans of training are never
 * empty, so a blank gets at least one token. */
static void restrict_all(void *context, int64_t rows, const int32_t *last,
                         float *log_probabilities) {
    rules *r = context;
    for (int64_t i = 0; i < rows; i++) {
        progress *row = &r->rows[i];
        row->empty = row->next <= row->blanks && last[i] == r->tokens->sentinels[row->next];
        row->next += row->empty;
        const bool in_blank = row->next > 0 && row->next <= row->blanks;
        const int32_t due =
            row->next <= row->blanks ? r->tokens->sentinels[row->next] : r->tokens->end;
        for (int64_t v = 0; v < r->vocabulary; v++)
            if (v == due ? in_blank && row->empty : !(in_blank && r->is_text[v]))
                log_probabilities[i * r->vocabulary + v] = -INFINITY;
    }
}

static void reorder(void *context, int64_t rows, const int64_t *from) {
    rules *r = context;
    for (int64_t i = 0; i < rows; i++)
        r->new_rows[i] = r->rows[from[i]];
    progress *before = r->rows;
    r->rows = r->new_rows;
    r->new_rows = before;
}

static int begin_rules(rules *r, wg_tensor *ids, int64_t beam) {
    const int64_t texts = wg_tensor_size(ids, 0), length = wg_tensor_size(ids, 1);
    r->is_text = wg__calloc((size_t)r->vocabulary, sizeof *r->is_text);
    r->rows = wg__calloc((size_t)wg__times(texts, beam), sizeof *r->rows);
    r->new_rows = wg__calloc((size_t)wg__times(texts, beam), sizeof *r->new_rows);
    int64_t *read = wg__alloc_array(wg__times(texts, length), sizeof *read);
    int result = r->is_text && r->rows && r->new_rows && read ? 0 : -1;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (result == 0)
        result = wg_to_array(wg_cast(ids, WG_I64), read);
    wg_scope_end(&scope, NULL);
    for (int64_t b = 0; result == 0 && b < texts; b++) {
        int blanks = 0;
        for (int64_t i = 0; i < length; i++)
            blanks += wg__sentinel_number(r->tokens, (int32_t)read[b * length + i]) >= 0;
        r->rows[b].blanks = blanks;
        if (blanks == 0 || blanks >= r->tokens->sentinel_count)
            result = wg_fail(WG_ERROR_ARGUMENT, WHERE, "a text has %d blanks; it must have 1 to %d",
                             blanks, r->tokens->sentinel_count - 1);
    }
    for (int32_t v = 0; result == 0 && v < r->tokens->tokenizer_size && v < r->vocabulary; v++)
        r->is_text[v] =
            v != r->tokens->pad && v != r->tokens->end && wg__sentinel_number(r->tokens, v) < 0;
    wg__free(read);
    return result;
}

int wg__span_fill(const wg_model *model, const wg__sentinels *tokens, wg_tensor *ids,
                  wg_tensor *keep, int64_t max_tokens, const wg_beam_options *options,
                  wg_beam_result *results) {
    wg_beam_options how = options ? *options : (wg_beam_options){.beam = 1};
    how.beam = how.beam == 0 ? 4 : how.beam;
    if (!ids)
        return -1;
    if (wg_tensor_ndim(ids) != 2)
        return wg_fail(WG_ERROR_SHAPE, WHERE, "the ids have rank %d; wanted (B, S)",
                       wg_tensor_ndim(ids));
    const int64_t vocabulary = wg_model_sizes_of(model).vocabulary;
    if (wg__check_vocabulary(WHERE, tokens->vocab_size, " with its sentinels", vocabulary) < 0)
        return -1;
    if (how.beam < 1)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "beam is %lld; it must be at least 1",
                       (long long)how.beam);
    const int64_t texts = wg_tensor_size(ids, 0);
    for (int64_t b = 0; b < texts; b++)
        results[b] = (wg_beam_result){0};
    rules r = {.tokens = tokens, .vocabulary = vocabulary};
    const wg_beam_rules beam_rules = {
        .context = &r, .restrict_rows = restrict_all, .reorder = reorder};
    how.rules = &beam_rules;
    int64_t *lengths = wg__alloc_array(texts, sizeof *lengths);
    int result = lengths ? begin_rules(&r, ids, how.beam) : -1;
    for (int64_t b = 0; result == 0 && b < texts; b++)
        lengths[b] = max_tokens;
    if (result == 0)
        result = wg__model_search(model, ids, keep, lengths, &how, results);
    wg__free(lengths);
    wg__free(r.is_text);
    wg__free(r.rows);
    wg__free(r.new_rows);
    return result;
}

static int fill(const wg_model *model, const wg_tokenizer *tokenizer, const wg_use_options *options,
                const char *text, wg_filled *filled) {
    wg__sentinels sentinels;
    wg_token_list source = {0};
    if (wg__sentinels_of(tokenizer, &sentinels) < 0)
        return -1;
    const int blanks = wg__span_encode_blanks(tokenizer, &sentinels, text, &source);
    int status = blanks < 0 ? -1 : 0;
    if (blanks == 0)
        status = wg_fail(WG_ERROR_ARGUMENT, "fill",
                         "there is no <extra_id_0> and no [MASK] in '%.200s'; write one where text "
                         "is wanted",
                         text);
    const wg_beam_options beam = {.beam = options->beam ? options->beam : 1};
    wg_beam_result result = {0};
    wg_scope scope;
    wg_scope_begin(&scope);
    if (status == 0)
        status = wg__span_fill(model, &sentinels,
                               wg_from_array(WG_I32, WG_DIMS(1, source.count), source.ids), NULL,
                               options->generation.max_tokens, &beam, &result);
    wg_scope_end(&scope, NULL);
    filled->blanks = status == 0 ? wg__calloc((size_t)blanks, sizeof *filled->blanks) : NULL;
    for (int i = 0; filled->blanks && i < blanks; i++) {
        wg_filled_blank *blank = &filled->blanks[filled->blank_count++];
        const wg_token_window part = wg__span_answer(&sentinels, &result.tokens, i);
        char name[24];
        snprintf(name, sizeof name, "<extra_id_%d>", i);
        blank->name = wg__strdup(name);
        blank->tokens = part.end - part.start;
        blank->text = wg_tokenizer_decode(tokenizer, result.tokens.ids + part.start, blank->tokens,
                                          &(wg_decode_options){.skip_special = true});
    }
    wg_token_list_free(&result.tokens);
    wg_token_list_free(&source);
    return filled->blanks && !wg_error_pending() ? status : -1;
}

const wg_objective wg_span_corruption = {
    .name = "span-corruption",
    .title = "writes spans that were taken out of a text (Raffel et al. 2020)",
    .shapes = WG_ENCODER_DECODER,
    .data = {.text = WG_TEXT_STREAM,
             .batches = make_batches,
             WG__BATCH_OF(wg__span_batch, tokens),
             .describe = wg__describe_text},
    .training =
        &(const wg_objective_training){.begin = begin, .loss = loss_of, .evaluate = evaluate},
    .use = {.fills = WG_FILLS_BY_BEAM, .fill = fill},
    .metrics = rows,
    .print = print,
};
