/* Predicting the next token as a task: see language_modeling.h. */
#include "objectives/language_modeling.h"

#include <math.h>

#include "tensor/internal.h"
#include "tensor/ops.h"
#include "objectives/task_checkpoint.h"

#define WHERE "language_modeling"

struct wg_language_modeling {
    wg_language_model model;
    const wg_tokenizer *tokenizer;
    const wg_dataset *training, *held_out;
    wg_batches *batches; /* NULL without a training text */
    wg_language_modeling_options options;
    double unigram_loss;      /* of the held-out text */
    wg_token_window *windows; /* (batch) scratch of evaluations */
};

/* ---- Making one ---- */

static int check(const wg_language_modeling *modeling) {
    const wg_language_model *model = &modeling->model;
    const int64_t sequence = modeling->options.sequence;
    if (modeling->options.batch < 1 || sequence < 1)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "batches of %lld sequences of %lld tokens",
                       (long long)modeling->options.batch, (long long)sequence);
    if (sequence > model->max_positions)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "a sequence of %lld tokens is too long; the model has %lld positions",
                       (long long)sequence, (long long)model->max_positions);
    if (wg_tokenizer_size(modeling->tokenizer) > model->vocab_size)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the tokenizer has %lld tokens; the model's vocabulary holds %lld",
                       (long long)wg_tokenizer_size(modeling->tokenizer),
                       (long long)model->vocab_size);
    if (modeling->held_out && wg_dataset_tokens(modeling->held_out) < 2)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the text to measure on has one token; two are needed");
    return 0;
}

static int prepare(wg_language_modeling *modeling) {
    const wg_language_modeling_options *options = &modeling->options;
    if (check(modeling) < 0)
        return -1;
    modeling->windows = wg__alloc((size_t)options->batch * sizeof *modeling->windows);
    if (!modeling->windows)
        return -1;
    if (modeling->held_out)
        modeling->unigram_loss = wg_dataset_unigram_loss(
            modeling->training ? modeling->training : modeling->held_out, NULL, modeling->held_out);
    if (!modeling->training)
        return wg_error_pending() ? -1 : 0;
    const wg_causal_batch_options batching = {
        .batch = options->batch, .sequence = options->sequence, .seed = options->seed};
    modeling->batches = wg_causal_batches_new(modeling->training, &batching);
    return modeling->batches && !wg_error_pending() ? 0 : -1;
}

wg_language_modeling *wg_language_modeling_new(const wg_language_model *model,
                                               const wg_tokenizer *tokenizer,
                                               const wg_dataset *training,
                                               const wg_dataset *held_out,
                                               const wg_language_modeling_options *options) {
    wg_language_modeling *modeling = wg__calloc(1, sizeof *modeling);
    if (!modeling)
        return NULL;
    *modeling = (wg_language_modeling){
        .model = *model, .tokenizer = tokenizer, .training = training, .held_out = held_out};
    if (options)
        modeling->options = *options;
    if (modeling->options.batch == 0)
        modeling->options.batch = 32;
    if (modeling->options.sequence == 0)
        modeling->options.sequence = 128;
    if (prepare(modeling) < 0) {
        wg_language_modeling_free(modeling);
        return NULL;
    }
    return modeling;
}

void wg_language_modeling_free(wg_language_modeling *modeling) {
    if (!modeling)
        return;
    wg_batches_free(modeling->batches);
    wg__free(modeling->windows);
    wg__free(modeling);
}

/* ---- Losses ---- */

static wg_tensor *next_loss(void *context, wg_metrics *metrics) {
    wg_language_modeling *modeling = context;
    wg_causal_batch batch;
    if (wg_batches_next(modeling->batches, &batch) < 0)
        return NULL;
    wg_tensor *loss = wg_language_model_loss(&modeling->model, batch.ids, batch.labels);
    metrics->tokens += batch.tokens;
    return wg_metrics_add(metrics, "perplexity", exp(wg_item(loss)), 1) < 0 ? NULL : loss;
}

/* ---- Evaluation ---- */

/* How many windows the held-out text has, the last of which may be shorter. */
static int64_t count_windows(const wg_language_modeling *modeling) {
    if (modeling->options.by_document)
        return wg_dataset_documents(modeling->held_out);
    const int64_t labels = wg_dataset_tokens(modeling->held_out) - 1;
    return (labels + modeling->options.sequence - 1) / modeling->options.sequence;
}

static wg_token_window window_at(const wg_language_modeling *modeling, int64_t index) {
    const wg_dataset *text = modeling->held_out;
    const int64_t sequence = modeling->options.sequence;
    if (modeling->options.by_document)
        return (wg_token_window){wg_dataset_document_start(text, index),
                                 wg_dataset_document_start(text, index + 1)};
    const int64_t end = (index + 1) * sequence + 1, tokens = wg_dataset_tokens(text);
    return (wg_token_window){index * sequence, end < tokens ? end : tokens};
}

/* Measures on `count` windows from the first-th on. */
static int evaluate_batch(wg_language_modeling *modeling, int64_t first, int64_t count,
                          wg_metrics *metrics) {
    const int64_t sequence = modeling->options.sequence;
    wg_causal_batch batch;
    for (int64_t i = 0; i < count; i++)
        modeling->windows[i] = window_at(modeling, first + i);
    if (wg_causal_batch_read(modeling->held_out, count, modeling->windows, sequence, &batch) < 0)
        return -1;
    wg_tensor *loss = wg_language_model_loss(&modeling->model, batch.ids, batch.labels);
    metrics->tokens += batch.tokens;
    return wg_metrics_add(metrics, "loss", wg_item(loss), (double)batch.tokens);
}

/* What follows from the mean loss. */
static int conclude(const wg_language_modeling *modeling, wg_metrics *metrics) {
    const double loss = wg_metrics_get(metrics, "loss");
    const double weight = wg_metrics_weight(metrics, "loss");
    const double tokens = (double)wg_dataset_tokens(modeling->held_out);
    const double bits = loss / log(2) * tokens / (double)wg_dataset_bytes(modeling->held_out);
    if (wg_metrics_add(metrics, "perplexity", exp(loss), weight) < 0 ||
        wg_metrics_add(metrics, "bits_per_byte", bits, weight) < 0)
        return -1;
    return wg_metrics_add(metrics, "unigram_loss", modeling->unigram_loss, weight);
}

static int evaluate_windows(wg_language_modeling *modeling, int64_t windows, wg_metrics *metrics) {
    const int64_t batch = modeling->options.batch;
    for (int64_t first = 0; first < windows; first += batch) {
        wg_scope scope;
        wg_scope_begin(&scope);
        const int64_t left = windows - first;
        int result = evaluate_batch(modeling, first, left < batch ? left : batch, metrics);
        wg_scope_end(&scope, NULL);
        if (result < 0 || wg_error_pending())
            return -1;
    }
    return conclude(modeling, metrics);
}

static int evaluate_during_training(void *context, wg_metrics *metrics) {
    wg_language_modeling *modeling = context;
    const int64_t windows = count_windows(modeling);
    const int64_t limit = modeling->options.evaluation_batches * modeling->options.batch;
    return evaluate_windows(modeling, limit > 0 && limit < windows ? limit : windows, metrics);
}

static int evaluate_all(void *context, wg_metrics *metrics) {
    return evaluate_windows(context, count_windows(context), metrics);
}

int wg_language_modeling_evaluate(wg_language_modeling *modeling, wg_metrics *metrics) {
    if (!modeling->held_out)
        return wg_fail(WG_ERROR_STATE, WHERE, "there is no held-out text to measure the model on");
    const wg_task task = {
        .context = modeling, .module = modeling->model.module, .evaluate = evaluate_all};
    return wg_task_evaluate(&task, metrics);
}

/* ---- Checkpoints ---- */

static int save(void *context, wg_checkpoint *file) {
    const wg_language_modeling *modeling = context;
    return wg__task_save(file, modeling->model.config(modeling->model.model), modeling->tokenizer,
                         modeling->batches, wg_dataset_fingerprint(modeling->training));
}

static int restore(void *context, wg_checkpoint *file) {
    const wg_language_modeling *modeling = context;
    const int64_t fingerprint = wg_dataset_fingerprint(modeling->training);
    return wg_batches_restore(modeling->batches, file, fingerprint);
}

wg_task wg_language_modeling_task(wg_language_modeling *modeling) {
    return (wg_task){
        .context = modeling,
        .module = modeling->model.module,
        .loss = next_loss,
        .evaluate = modeling->held_out ? evaluate_during_training : NULL,
        .save = save,
        .restore = restore,
    };
}
