/* Blank infilling as a task: see blank_infilling.h. */
#include "objectives/blank_infilling.h"

#include <math.h>

#include "tensor/internal.h"
#include "tensor/ops.h"
#include "objectives/glm_task.h"
#include "objectives/task_checkpoint.h"

#define WHERE "blank_infilling"

struct wg_blank_infilling {
    wg_glm *model;
    const wg_tokenizer *tokenizer;
    const wg_dataset *corpus, *held_out;
    wg_glm_tokens tokens;
    wg_batches *batches;
    wg_batches *held_out_batches; /* NULL without a held-out corpus */
    wg_data_position held_out_start;
    int64_t evaluation_batches;
    int64_t fingerprint; /* of the training corpus */
};

/* ---- Making one ---- */

static int prepare(wg_blank_infilling *infilling, const wg_glm_batch_options *batches) {
    const int64_t sequence = batches->sequence ? batches->sequence : 128;
    if (wg_glm_tokens_of(infilling->tokenizer, &infilling->tokens) < 0 ||
        wg__glm_task_check(WHERE, &infilling->model->config, &infilling->tokens, sequence) < 0)
        return -1;
    infilling->fingerprint = wg_dataset_fingerprint(infilling->corpus);
    infilling->batches = wg_glm_batches_new(infilling->corpus, infilling->tokenizer, batches);
    if (!infilling->batches || !infilling->held_out)
        return infilling->batches ? 0 : -1;
    wg_glm_batch_options spans = *batches;
    spans.sentence_share = spans.document_share = 0;
    infilling->held_out_batches =
        wg_glm_batches_new(infilling->held_out, infilling->tokenizer, &spans);
    infilling->held_out_start = wg_batches_position(infilling->held_out_batches);
    return infilling->held_out_batches ? 0 : -1;
}

wg_blank_infilling *wg_blank_infilling_new(wg_glm *model, const wg_tokenizer *tokenizer,
                                           const wg_dataset *corpus, const wg_dataset *held_out,
                                           const wg_blank_infilling_options *options) {
    static const wg_blank_infilling_options defaults = {0};
    if (!options)
        options = &defaults;
    wg_blank_infilling *infilling = wg__calloc(1, sizeof *infilling);
    if (!infilling)
        return NULL;
    *infilling = (wg_blank_infilling){.model = model,
                                      .tokenizer = tokenizer,
                                      .corpus = corpus,
                                      .held_out = held_out,
                                      .evaluation_batches = options->evaluation_batches};
    if (prepare(infilling, &options->batches) < 0) {
        wg_blank_infilling_free(infilling);
        return NULL;
    }
    return infilling;
}

void wg_blank_infilling_free(wg_blank_infilling *infilling) {
    if (!infilling)
        return;
    wg_batches_free(infilling->batches);
    wg_batches_free(infilling->held_out_batches);
    wg__free(infilling);
}

/* ---- Losses ---- */

static wg_glm_inputs inputs_of(const wg_glm_batch *batch) {
    return (wg_glm_inputs){.position_ids = batch->position_ids,
                           .block_position_ids = batch->block_position_ids,
                           .part_a = batch->part_a};
}

static wg_tensor *next_loss(void *context, wg_metrics *metrics) {
    wg_blank_infilling *infilling = context;
    wg_glm_batch batch;
    if (wg_batches_next(infilling->batches, &batch) < 0)
        return NULL;
    const wg_glm_inputs inputs = inputs_of(&batch);
    wg_tensor *loss = wg_glm_loss(infilling->model, batch.input_ids, &inputs,
                                  batch.target_positions, batch.labels);
    metrics->tokens += batch.tokens;
    return wg_metrics_add(metrics, "perplexity", exp(wg_item(loss)), 1) < 0 ? NULL : loss;
}

/* ---- Evaluation ---- */

static int measure(const wg_blank_infilling *infilling, const wg_glm_batch *batch,
                   wg_metrics *metrics) {
    const wg_glm_inputs inputs = inputs_of(batch);
    wg_tensor *hidden = wg_glm_forward(infilling->model, batch->input_ids, &inputs);
    wg_tensor *logits = wg_glm_logits(infilling->model, hidden, batch->target_positions);
    wg_tensor *is_word = wg_ne(batch->labels, wg_full(WG_I64, 0, NULL, infilling->tokens.end));
    wg_tensor *places = wg_reshape(wg_nonzero(is_word), 1, (int64_t[]){-1});
    wg_tensor *words = wg_index_select(batch->labels, 0, places);
    wg_tensor *word_logits = wg_index_select(logits, 0, places);
    const double loss = wg_item(wg_cross_entropy(logits, batch->labels, WG_IGNORE_INDEX, NULL));
    const double word_loss = wg_item(wg_cross_entropy(word_logits, words, WG_IGNORE_INDEX, NULL));
    const double count = (double)wg_tensor_count(batch->labels);
    const double word_count = (double)wg_tensor_count(words);
    metrics->tokens += batch->tokens;
    if (wg_metrics_add(metrics, "loss", loss, count) < 0 ||
        wg_metrics_add(metrics, "word_loss", word_loss, word_count) < 0)
        return -1;
    return wg_metrics_add(metrics, "unigram_loss",
                          wg_dataset_unigram_loss(infilling->corpus, words, NULL), word_count);
}

/* The same batches from the start of the held-out corpus, however often it is called; `limit` of
 * them at most, unless it is 0. */
static int evaluate_batches(wg_blank_infilling *infilling, int64_t limit, wg_metrics *metrics) {
    wg_batches *batches = infilling->held_out_batches;
    const int64_t epoch = infilling->held_out_start.epoch;
    if (wg_batches_seek(batches, &infilling->held_out_start) < 0)
        return -1;
    for (int64_t i = 0; wg_batches_position(batches).epoch == epoch; i++) {
        if (limit > 0 && i == limit)
            return 0;
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_glm_batch batch;
        int result = wg_batches_next_of_epoch(batches, &batch);
        if (result == 0)
            result = measure(infilling, &batch, metrics);
        wg_scope_end(&scope, NULL);
        if (result < 0 || wg_error_pending())
            return -1;
    }
    return 0;
}

static int evaluate_during_training(void *context, wg_metrics *metrics) {
    wg_blank_infilling *infilling = context;
    return evaluate_batches(infilling, infilling->evaluation_batches, metrics);
}

static int evaluate_all(void *context, wg_metrics *metrics) {
    return evaluate_batches(context, 0, metrics);
}

int wg_blank_infilling_evaluate(wg_blank_infilling *infilling, wg_metrics *metrics) {
    if (!infilling->held_out)
        return wg_fail(WG_ERROR_STATE, WHERE, "there is no held-out text to measure the model on");
    const wg_task task = {
        .context = infilling, .module = &infilling->model->module, .evaluate = evaluate_all};
    return wg_task_evaluate(&task, metrics);
}

/* ---- Checkpoints ---- */

static int save(void *context, wg_checkpoint *file) {
    const wg_blank_infilling *infilling = context;
    return wg__task_save(file, wg_glm_config_to_json(&infilling->model->config),
                         infilling->tokenizer, infilling->batches, infilling->fingerprint);
}

static int restore(void *context, wg_checkpoint *file) {
    const wg_blank_infilling *infilling = context;
    return wg_batches_restore(infilling->batches, file, infilling->fingerprint);
}

wg_task wg_blank_infilling_task(wg_blank_infilling *infilling) {
    return (wg_task){
        .context = infilling,
        .module = &infilling->model->module,
        .loss = next_loss,
        .evaluate = infilling->held_out ? evaluate_during_training : NULL,
        .save = save,
        .restore = restore,
    };
}
