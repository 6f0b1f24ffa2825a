/* T5's pre-training as a task: see t5_pretraining.h. */
#include "objectives/t5_pretraining.h"

#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "objectives/task_checkpoint.h"

#define WHERE "t5_pretraining"

struct wg_t5_pretraining {
    wg_t5 *model;
    const wg_tokenizer *tokenizer;
    const wg_dataset *training, *held_out;
    wg_batches *batches, *held_out_batches; /* NULL without such a text */
    wg_data_position held_out_start;
    int64_t batch, evaluation_batches;
    double unigram_loss; /* of the held-out text */
};

/* ---- Making one ---- */

/* That the model means by its numbers what the tokenizer does. */
static int check_tokens(const wg_t5_config *config, const wg_tokenizer *tokenizer) {
    wg_t5_tokens tokens;
    if (wg_t5_tokens_of(tokenizer, &tokens) < 0)
        return -1;
    if (tokens.vocab_size > config->vocab_size)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the tokenizer has %lld tokens with its sentinels; the model's vocabulary "
                       "holds %lld",
                       (long long)tokens.vocab_size, (long long)config->vocab_size);
    if (config->eos_token_id == tokens.end)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                   "the model's eos_token_id is %lld, and the tokenizer's </s> is %ld",
                   (long long)config->eos_token_id, (long)tokens.end);
}

static int prepare(wg_t5_pretraining *p, const wg_t5_pretraining_options *options) {
    const wg_t5_batch_options batching = {
        .batch = options->batch, .sequence = options->sequence, .seed = options->seed};
    p->batch = options->batch ? options->batch : 32;
    p->evaluation_batches = options->evaluation_batches;
    if (check_tokens(&p->model->config, p->tokenizer) < 0)
        return -1;
    if (p->training && !(p->batches = wg_t5_batches_new(p->training, p->tokenizer, &batching)))
        return -1;
    if (!p->held_out)
        return 0;
    p->held_out_batches = wg_t5_batches_new(p->held_out, p->tokenizer, &batching);
    p->held_out_start = wg_batches_position(p->held_out_batches);
    p->unigram_loss =
        wg_dataset_unigram_loss(p->training ? p->training : p->held_out, NULL, p->held_out);
    return wg_error_pending() ? -1 : 0;
}

wg_t5_pretraining *wg_t5_pretraining_new(wg_t5 *model, const wg_tokenizer *tokenizer,
                                         const wg_dataset *training, const wg_dataset *held_out,
                                         const wg_t5_pretraining_options *options) {
    static const wg_t5_pretraining_options defaults = {0};
    wg_t5_pretraining *pretraining = wg__calloc(1, sizeof *pretraining);
    if (!pretraining)
        return NULL;
    *pretraining = (wg_t5_pretraining){
        .model = model, .tokenizer = tokenizer, .training = training, .held_out = held_out};
    if (prepare(pretraining, options ? options : &defaults) == 0)
        return pretraining;
    wg_t5_pretraining_free(pretraining);
    return NULL;
}

void wg_t5_pretraining_free(wg_t5_pretraining *pretraining) {
    if (!pretraining)
        return;
    wg_batches_free(pretraining->batches);
    wg_batches_free(pretraining->held_out_batches);
    wg__free(pretraining);
}

/* ---- Losses ---- */

static wg_tensor *next_loss(void *context, wg_metrics *metrics) {
    wg_t5_pretraining *pretraining = context;
    wg_t5_batch batch;
    if (wg_batches_next(pretraining->batches, &batch) < 0)
        return NULL;
    metrics->tokens += batch.tokens;
    return wg_t5_loss(pretraining->model, batch.input_ids, NULL, batch.labels);
}

/* ---- Evaluation ---- */

/* The labels, flat, with those that are no tokens of the text ignored; how many are left. */
static wg_tensor *text_labels(const wg_t5_pretraining *p, const wg_t5_batch *batch,
                              int64_t *count) {
    const wg_t5_tokens *tokens = wg_t5_batches_tokens(p->held_out_batches);
    const int64_t all = wg_tensor_count(batch->labels);
    const int64_t *labels = wg_tensor_data(batch->labels);
    wg_tensor *kept = wg_empty(WG_I64, WG_DIMS(all));
    int64_t *out = kept ? wg_tensor_data(kept) : NULL;
    *count = 0;
    for (int64_t i = 0; out && i < all; i++) {
        const int32_t id = (int32_t)labels[i];
        const bool is_text = id != tokens->end && wg_t5_sentinel_number(tokens, id) < 0;
        out[i] = is_text ? id : WG_IGNORE_INDEX;
        *count += is_text;
    }
    return kept;
}

static int evaluate_batch(wg_t5_pretraining *p, wg_metrics *metrics) {
    wg_t5_batch batch;
    if (wg_batches_next(p->held_out_batches, &batch) < 0)
        return -1;
    int64_t count;
    wg_tensor *logits = wg_reshape(wg_t5_forward(p->model, batch.input_ids, NULL, batch.labels),
                                   WG_DIMS(-1, p->model->config.vocab_size));
    wg_tensor *labels = wg_reshape(batch.labels, WG_DIMS(-1));
    wg_tensor *text = text_labels(p, &batch, &count);
    const double loss = wg_item(wg_cross_entropy(logits, labels, WG_IGNORE_INDEX, NULL));
    const double word_loss = wg_item(wg_cross_entropy(logits, text, WG_IGNORE_INDEX, NULL));
    wg_tensor *right = wg_eq(wg_argmax(logits, -1, false), text);
    const double correct = wg_item(wg_sum(wg_cast(right, WG_I64), WG_ALL, false));
    if (wg_error_pending())
        return -1;
    metrics->tokens += batch.tokens;
    const double texts = (double)count;
    if (wg_metrics_add(metrics, "loss", loss, (double)wg_tensor_count(labels)) < 0 ||
        wg_metrics_add(metrics, "word_loss", word_loss, texts) < 0 ||
        wg_metrics_add(metrics, "word_accuracy", correct / texts, texts) < 0)
        return -1;
    return wg_metrics_add(metrics, "unigram_loss", p->unigram_loss, texts);
}

/* The same `count` batches from the start of the held-out text, however often it is called. */
static int evaluate_batches(wg_t5_pretraining *p, int64_t count, wg_metrics *metrics) {
    if (wg_batches_seek(p->held_out_batches, &p->held_out_start) < 0)
        return -1;
    int result = 0;
    for (int64_t i = 0; result == 0 && i < count; i++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        result = evaluate_batch(p, metrics);
        wg_scope_end(&scope, NULL);
    }
    return result;
}

static int64_t epoch_batches(const wg_t5_pretraining *p) {
    return (wg_batches_examples(p->held_out_batches) + p->batch - 1) / p->batch;
}

static int evaluate_during_training(void *context, wg_metrics *metrics) {
    wg_t5_pretraining *p = context;
    const int64_t count = epoch_batches(p), limit = p->evaluation_batches;
    return evaluate_batches(p, limit > 0 && limit < count ? limit : count, metrics);
}

static int evaluate_epoch(void *context, wg_metrics *metrics) {
    return evaluate_batches(context, epoch_batches(context), metrics);
}

int wg_t5_pretraining_evaluate(wg_t5_pretraining *pretraining, wg_metrics *metrics) {
    if (!pretraining->held_out)
        return wg_fail(WG_ERROR_STATE, WHERE, "there is no held-out text to measure the model on");
    const wg_task task = {
        .context = pretraining, .module = &pretraining->model->module, .evaluate = evaluate_epoch};
    return wg_task_evaluate(&task, metrics);
}

/* ---- Checkpoints ---- */

static int save(void *context, wg_checkpoint *file) {
    const wg_t5_pretraining *p = context;
    return wg__task_save(file, wg_t5_config_to_json(&p->model->config), p->tokenizer, p->batches,
                         wg_dataset_fingerprint(p->training));
}

static int restore(void *context, wg_checkpoint *file) {
    const wg_t5_pretraining *p = context;
    return wg_batches_restore(p->batches, file, wg_dataset_fingerprint(p->training));
}

wg_task wg_t5_pretraining_task(wg_t5_pretraining *pretraining) {
    return (wg_task){
        .context = pretraining,
        .module = &pretraining->model->module,
        .loss = next_loss,
        .evaluate = pretraining->held_out ? evaluate_during_training : NULL,
        .save = save,
        .restore = restore,
    };
}
