/* Causal language modelling: see causal_lm.h. */
#include "objectives/causal_lm.h"

#include <math.h>

#include "data/internal.h"
#include "objectives/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tensor/span.h"

#define WHERE "causal-lm"

typedef struct causal {
    double unigram_loss;      /* of the held-out text */
    wg_token_window *windows; /* (B) of the current batch */
} causal;

/* Row i of the batch has the tokens of windows[i], shifted by one between ids and labels. */
static int read_windows(const wg_dataset *stream, int64_t count, const wg_token_window *windows,
                        int64_t sequence, wg_causal_batch *batch) {
    const size_t size = (size_t)wg__times(count, sequence);
    int64_t *ids = wg__alloc_array(wg__times(2, size), sizeof *ids), *labels = ids + size;
    int32_t *tokens = wg__alloc_array(sequence + 1, sizeof *tokens);
    int status = ids && tokens ? 0 : -1;
    *batch = (wg_causal_batch){0};
    for (int64_t row = 0; status == 0 && row < count; row++) {
        const wg_token_window window = windows[row];
        const int64_t used = wg__smaller(window.end - window.start - 1, sequence);
        status = used < 0
                     ? wg_fail(WG_ERROR_INDEX, WHERE, "a window from token %lld to %lld has none",
                               (long long)window.start, (long long)window.end)
                     : wg__dataset_read(stream, window.start, used + 1, tokens);
        for (int64_t i = 0; status == 0 && i < sequence; i++) {
            ids[row * sequence + i] = i < used ? tokens[i] : tokens[0];
            labels[row * sequence + i] = i < used ? tokens[i + 1] : WG_IGNORE_INDEX;
        }
        batch->tokens += used;
    }
    if (status == 0) {
        batch->ids = wg_from_array(WG_I64, WG_DIMS(count, sequence), ids);
        batch->labels = wg_from_array(WG_I64, WG_DIMS(count, sequence), labels);
    }
    wg__free(tokens);
    wg__free(ids);
    return batch->ids && batch->labels ? 0 : -1;
}

int wg__causal_batch_read(const wg_dataset *stream, int64_t count, const wg_token_window *windows,
                          int64_t sequence, wg_causal_batch *batch) {
    wg__span span;
    wg__span_begin(&span, "data", WG_PROFILE_REGION);
    const int status = stream ? read_windows(stream, count, windows, sequence, batch) : -1;
    wg__span_end(&span);
    return status;
}

typedef struct causal_source {
    wg__windows windows;
    int64_t sequence;
    wg_token_window *chosen; /* (B) scratch */
} causal_source;

static int build(void *context, int64_t count, const wg_example *examples, void *batch) {
    causal_source *s = context;
    (void)examples;
    for (int64_t i = 0; i < count; i++)
        s->chosen[i] =
            (wg_token_window){s->windows.starts[i], s->windows.starts[i] + s->sequence + 1};
    return read_windows(s->windows.text, count, s->chosen, s->sequence, batch);
}

static void free_source(void *context) {
    causal_source *s = context;
    wg__free(s->windows.starts);
    wg__free(s->chosen);
    wg__free(s);
}

wg_batches *wg_causal_batches_new(const wg_dataset *stream,
                                  const wg_causal_batch_options *options) {
    const wg_causal_batch_options o = options ? *options : (wg_causal_batch_options){0};
    int64_t batch = o.batch, sequence = o.sequence ? o.sequence : 128;
    if (!stream || wg__batch_sizes(WHERE, &batch, NULL) < 0)
        return NULL;
    if (sequence < 1 || sequence > INT32_MAX)
        return wg__fail_null(WG_ERROR_ARGUMENT, WHERE, "sequences of %lld tokens",
                             (long long)sequence);
    causal_source *s = wg__calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->sequence = sequence;
    s->chosen = wg__alloc_array(batch, sizeof *s->chosen);
    if (!s->chosen || wg__windows_begin(&s->windows, WHERE, stream, sequence, batch) < 0) {
        free_source(s);
        return NULL;
    }
    return wg__window_batches_new(
        &s->windows, (wg_batch_source){.build = build, .free = free_source}, batch, o.seed);
}

/* An evaluation without training uses all positions of the model, up to LONGEST, and batches of
 * about TOKENS tokens, to keep the logits small. */
static void choose_sizes(wg_training *t) {
    enum { LONGEST = 1024, TOKENS = 2048 };
    wg_training_setup *setup = &t->setup;
    const int64_t positions = wg_model_sizes_of(setup->model).positions;
    if (setup->sequence == 0)
        setup->sequence = wg__smaller(positions, setup->training ? 128 : LONGEST);
    if (setup->batch == 0 && !setup->training)
        setup->batch = setup->sequence < TOKENS ? TOKENS / setup->sequence : 1;
}

/* The held-out text is measured in windows from its start. */
static wg_batches *make_batches(const wg_training_setup *setup, const wg_dataset *text,
                                bool measured) {
    const wg_causal_batch_options options = {
        .batch = setup->batch, .sequence = setup->sequence, .seed = setup->seed};
    return measured ? NULL : wg_causal_batches_new(text, &options);
}

static int begin(wg_training *t) {
    const wg_training_setup *setup = &t->setup;
    causal *mine = t->context = wg__calloc(1, sizeof *mine);
    if (!mine)
        return -1;
    mine->windows = wg__alloc_array(setup->batch, sizeof *mine->windows);
    if (!mine->windows)
        return -1;
    if (setup->held_out && wg_dataset_tokens(setup->held_out) < 2)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the text to measure on has one token; two are needed");
    if (setup->held_out)
        mine->unigram_loss = wg_dataset_unigram_loss(
            setup->training ? setup->training : setup->held_out, NULL, setup->held_out);
    return wg_error_pending() ? -1 : 0;
}

static void end(wg_training *t) {
    causal *mine = t->context;
    if (mine)
        wg__free(mine->windows);
    wg__free(mine);
}

static wg_tensor *batch_loss(const wg_training *t, const wg_causal_batch *batch, int64_t parts) {
    const wg_model *model = t->setup.model;
    wg_tensor *ids = wg__cut_sequences(batch->ids, parts);
    wg_tensor *labels = wg__cut_sequences(batch->labels, parts);
    wg_tensor *hidden = wg_model_forward(model, &(wg_model_inputs){.ids = ids});
    return wg_model_loss(model, hidden, NULL, labels, NULL);
}

static wg_tensor *loss_of(wg_training *t, const void *batch, wg_metrics *metrics) {
    (void)metrics;
    return batch_loss(t, batch, wg__sequence_parts(t));
}

/* Measures on `count` windows from number `first` on. The last one may be shorter. */
static int evaluate_batch(const wg_training *t, int64_t first, int64_t count, void *context,
                          wg_metrics *metrics) {
    (void)context;
    causal *mine = t->context;
    const wg_evaluation_options *how = t->setup.evaluation;
    const wg_dataset *text = t->setup.held_out;
    const int64_t sequence = t->setup.sequence, tokens = wg_dataset_tokens(text);
    wg_causal_batch batch;
    for (int64_t i = first; i < first + count; i++)
        mine->windows[i - first] =
            how && how->by_document
                ? (wg_token_window){wg__dataset_document_start(text, i),
                                    wg__dataset_document_start(text, i + 1)}
                : (wg_token_window){i * sequence, wg__smaller((i + 1) * sequence + 1, tokens)};
    if (wg__causal_batch_read(text, count, mine->windows, sequence, &batch) < 0)
        return -1;
    wg_tensor *value = batch_loss(t, &batch, 1);
    metrics->tokens += batch.tokens;
    return wg_metrics_add(metrics, "loss", wg_item(value), (double)batch.tokens);
}

static int evaluate(wg_training *t, int64_t batches, wg_metrics *metrics) {
    const wg_evaluation_options *how = t->setup.evaluation;
    const wg_dataset *text = t->setup.held_out;
    const int64_t batch = t->setup.batch;
    const int64_t all = how && how->by_document
                            ? wg__dataset_documents(text)
                            : wg__ceil_divide(wg_dataset_tokens(text) - 1, t->setup.sequence);
    const int64_t windows = batches > 0 && batches * batch < all ? batches * batch : all;
    if (wg__evaluate_examples(t, 0, windows, evaluate_batch, NULL, metrics) < 0)
        return -1;
    /* Metrics that follow from the mean loss. */
    const causal *mine = t->context;
    const double loss = wg_metrics_get(metrics, "loss");
    const double weight = wg_metrics_weight(metrics, "loss");
    const double bits =
        loss / log(2) * (double)wg_dataset_tokens(text) / (double)wg__dataset_bytes(text);
    if (wg_metrics_add(metrics, "perplexity", exp(loss), weight) < 0 ||
        wg_metrics_add(metrics, "bits_per_byte", bits, weight) < 0)
        return -1;
    return wg_metrics_add(metrics, "unigram_loss", mine->unigram_loss, weight);
}

static const wg_metric_row rows[] = {
    {.name = "loss", .weight = "tokens"},
    {.name = "perplexity"},
    {.name = "bits_per_byte"},
    {.name = "unigram_loss"},
    {0},
};

static void print(const wg_metrics *metrics, FILE *stream) {
    fprintf(stream,
            "next tokens      loss %.4f, perplexity %.1f, %.4f bits per byte; %.0f tokens\n",
            wg_metrics_get(metrics, "loss"), wg_metrics_get(metrics, "perplexity"),
            wg_metrics_get(metrics, "bits_per_byte"), wg_metrics_weight(metrics, "loss"));
    fprintf(stream, "by frequency          %.4f\n", wg_metrics_get(metrics, "unigram_loss"));
}

/* The prompt begins with the begin token, unless the same token ends texts (GPT-2's prompts have no
 * begin token); without a prompt the text is the begin token alone. */
static int read_prompt(const wg_model *model, const wg_tokenizer *tokenizer, const char *prompt,
                       wg_generation *text, wg_prompt_room *room) {
    const int64_t positions = wg_model_sizes_of(model).positions;
    const int32_t begins = wg_tokenizer_special(tokenizer, WG_TOKEN_BEGIN);
    const int32_t ends = wg_tokenizer_special(tokenizer, WG_TOKEN_END);
    wg_token_list *list = &text->tokens;
    if (!prompt && begins < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "generate",
                       "this model's tokenizer has no token that begins a text; give a --prompt");
    if (begins >= 0 && (!prompt || begins != ends) && wg_token_list_append(list, begins) < 0)
        return -1;
    if (prompt && wg_tokenizer_encode(tokenizer, prompt, -1, NULL, list) < 0)
        return -1;
    *room = (wg_prompt_room){.positions = positions,
                             .most_read = positions - 1,
                             .most_written = positions - list->count};
    return 0;
}

static int generate(const wg_model *model, const wg_tokenizer *tokenizer,
                    const wg_use_options *options, wg_generation *text) {
    const int32_t specials[] = {wg_tokenizer_special(tokenizer, WG_TOKEN_BEGIN),
                                wg_tokenizer_special(tokenizer, WG_TOKEN_END)};
    const int64_t known = wg_tokenizer_size(tokenizer);
    wg_generation_options how = options->generation;
    how.vocabulary = known < wg_model_sizes_of(model).vocabulary ? known : 0;
    how.stop_ids = specials;
    how.stop_count = 2;
    text->generator = options->generator;
    return wg_generate(model, 1, text, &how);
}

/*     ids      <s> x1  x2          x1  x2
 *     labels   x1  x2  x3          x2  x3                                                     */
int wg__score_next_tokens(const wg_model *model, int32_t begin_id, const wg_score_options *options,
                          const wg_text_batch *texts, wg_score *scores) {
    const int64_t rows = texts->count, n = texts->length, first = begin_id < 0;
    const int64_t length = n - first, size = rows * length;
    if (length == 0)
        return 0;
    int32_t *ids = wg__alloc_array(wg__times(2, size), sizeof *ids), *labels = ids + size;
    double *losses = wg__alloc_array(size, sizeof *losses);
    int status = ids && losses ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < size; i++) {
        const int32_t *next = texts->ids + i / length * n + first + i % length;
        labels[i] = *next;
        ids[i] = first + i % length == 0 ? begin_id : next[-1];
    }
    if (status == 0) {
        const wg_model_inputs inputs = {.ids = wg_from_array(WG_I32, WG_DIMS(rows, length), ids),
                                        .causal = true};
        status = wg__score_losses(model, options, &inputs, NULL,
                                  wg_from_array(WG_I32, WG_DIMS(rows, length), labels), losses);
    }
    for (int64_t i = 0; status == 0 && i < size; i++) {
        scores[i / length].log_probability -= losses[i];
        scores[i / length].tokens++;
    }
    wg__free(losses);
    wg__free(ids);
    return status;
}

static int score(const wg_model *model, const wg_tokenizer *tokenizer,
                 const wg_score_options *options, const wg_text_batch *texts, wg_score *scores) {
    return wg__score_next_tokens(model, wg_tokenizer_special(tokenizer, WG_TOKEN_BEGIN), options,
                                 texts, scores);
}

const wg_objective wg_causal_lm = {
    .name = "causal-lm",
    .title = "predicts the next token (Radford et al. 2018)",
    .shapes = WG_DECODER,
    .evaluation = WG_EVALUATES_BY_DOCUMENT,
    .data = {.text = WG_TEXT_STREAM,
             .sizes = choose_sizes,
             .cuts_sequences = true,
             .batches = make_batches,
             WG__BATCH_OF(wg_causal_batch, tokens),
             .describe = wg__describe_text},
    .training =
        &(const wg_objective_training){
            .begin = begin, .end = end, .loss = loss_of, .evaluate = evaluate},
    .use = {.prompt = read_prompt, .generate = generate, .score = score},
    .metrics = rows,
    .print = print,
};
