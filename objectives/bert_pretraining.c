/* BERT's pre-training as a task: see bert_pretraining.h. */
#include "objectives/bert_pretraining.h"

#include "models/load.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "objectives/task_checkpoint.h"

struct wg_bert_pretraining {
    wg_bert_for_pretraining *model;
    const wg_tokenizer *tokenizer;
    const wg_dataset *corpus, *held_out;
    wg_batches *batches;
    wg_batches *held_out_batches; /* NULL without a held-out corpus */
    wg_data_position held_out_start;
    int64_t batch;
    int64_t evaluation_batches;
    int64_t fingerprint; /* of the training corpus */
};

static int check(const wg_bert_pretraining *pretraining, int64_t sequence) {
    const wg_bert_config *config = &pretraining->model->bert->config;
    if (sequence > config->max_position_embeddings)
        return wg_fail(WG_ERROR_ARGUMENT, "bert",
                       "a sequence of %lld tokens is too long; the model has %lld positions",
                       (long long)sequence, (long long)config->max_position_embeddings);
    if (wg_tokenizer_size(pretraining->tokenizer) > config->vocab_size)
        return wg_fail(WG_ERROR_ARGUMENT, "bert",
                       "the tokenizer has %lld tokens; the model's vocabulary holds %lld",
                       (long long)wg_tokenizer_size(pretraining->tokenizer),
                       (long long)config->vocab_size);
    return 0;
}

wg_bert_pretraining *wg_bert_pretraining_new(wg_bert_for_pretraining *model,
                                             const wg_tokenizer *tokenizer,
                                             const wg_dataset *corpus, const wg_dataset *held_out,
                                             const wg_bert_pretraining_options *options) {
    static const wg_bert_pretraining_options defaults = {0};
    if (!options)
        options = &defaults;
    wg_bert_pretraining *pretraining = wg__calloc(1, sizeof *pretraining);
    if (!pretraining)
        return NULL;
    wg_bert_batch_options batching = {
        .batch = options->batch ? options->batch : 32,
        .sequence = options->sequence ? options->sequence : 128,
        .seed = options->seed,
    };
    *pretraining = (wg_bert_pretraining){
        .model = model,
        .tokenizer = tokenizer,
        .corpus = corpus,
        .held_out = held_out,
        .batch = batching.batch,
        .evaluation_batches = options->evaluation_batches,
    };
    if (check(pretraining, batching.sequence) < 0)
        goto failed;
    pretraining->fingerprint = wg_dataset_fingerprint(corpus);
    pretraining->batches = wg_bert_batches_new(corpus, tokenizer, &batching);
    if (!pretraining->batches)
        goto failed;
    if (held_out) {
        pretraining->held_out_batches = wg_bert_batches_new(held_out, tokenizer, &batching);
        if (!pretraining->held_out_batches)
            goto failed;
        pretraining->held_out_start = wg_batches_position(pretraining->held_out_batches);
    }
    return pretraining;
failed:
    wg_bert_pretraining_free(pretraining);
    return NULL;
}

void wg_bert_pretraining_free(wg_bert_pretraining *pretraining) {
    if (!pretraining)
        return;
    wg_batches_free(pretraining->batches);
    wg_batches_free(pretraining->held_out_batches);
    wg__free(pretraining);
}

/* ---- Losses ---- */

/* The loss of one batch, and what it says, weighted by what was counted. */
static wg_tensor *measure(wg_bert_pretraining *pretraining, const wg_bert_batch *batch,
                          wg_metrics *metrics) {
    wg_bert_loss loss;
    if (wg_bert_pretraining_loss(pretraining->model, batch, true, &loss) < 0)
        return NULL;
    double masked = (double)loss.mlm_count, pairs = (double)loss.nsp_count;
    metrics->tokens += batch->tokens;
    if (wg_metrics_add(metrics, "mlm_loss", wg_item(loss.mlm), masked) < 0 ||
        wg_metrics_add(metrics, "mlm_accuracy", (double)loss.mlm_correct / masked, masked) < 0 ||
        wg_metrics_add(metrics, "nsp_loss", wg_item(loss.nsp), pairs) < 0 ||
        wg_metrics_add(metrics, "nsp_accuracy", (double)loss.nsp_correct / pairs, pairs) < 0)
        return NULL;
    return loss.total;
}

static wg_tensor *next_loss(void *context, wg_metrics *metrics) {
    wg_bert_pretraining *pretraining = context;
    wg_bert_batch batch;
    if (wg_batches_next(pretraining->batches, &batch) < 0)
        return NULL;
    return measure(pretraining, &batch, metrics);
}

/* ---- Evaluation ---- */

static int evaluate_batch(wg_bert_pretraining *pretraining, wg_metrics *metrics) {
    wg_bert_batch batch;
    if (wg_batches_next(pretraining->held_out_batches, &batch) < 0)
        return -1;
    if (!measure(pretraining, &batch, metrics))
        return -1;
    double masked = (double)wg_tensor_count(batch.masked_labels);
    double unigram = wg_dataset_unigram_loss(pretraining->corpus, batch.masked_labels, NULL);
    double random = wg_item(wg_mean(wg_cast(batch.next_sentence_labels, WG_F64), 0, NULL, false));
    if (wg_metrics_add(metrics, "unigram_loss", unigram, masked) < 0)
        return -1;
    return wg_metrics_add(metrics, "nsp_random", random, (double)pretraining->batch);
}

/* The same `count` batches from the start of the held-out corpus, however often it is called. */
static int evaluate_batches(wg_bert_pretraining *pretraining, int64_t count, wg_metrics *metrics) {
    if (wg_batches_seek(pretraining->held_out_batches, &pretraining->held_out_start) < 0)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        int result = evaluate_batch(pretraining, metrics);
        wg_scope_end(&scope, NULL);
        if (result < 0)
            return -1;
    }
    double loss = wg_metrics_get(metrics, "mlm_loss") + wg_metrics_get(metrics, "nsp_loss");
    return wg_metrics_add(metrics, "loss", loss, wg_metrics_weight(metrics, "mlm_loss"));
}

static int64_t epoch_batches(const wg_bert_pretraining *pretraining) {
    int64_t examples = wg_batches_examples(pretraining->held_out_batches);
    return (examples + pretraining->batch - 1) / pretraining->batch;
}

static int evaluate_during_training(void *context, wg_metrics *metrics) {
    wg_bert_pretraining *pretraining = context;
    int64_t count = epoch_batches(pretraining);
    int64_t limit = pretraining->evaluation_batches;
    return evaluate_batches(pretraining, limit > 0 && limit < count ? limit : count, metrics);
}

static int evaluate_epoch(void *context, wg_metrics *metrics) {
    wg_bert_pretraining *pretraining = context;
    return evaluate_batches(pretraining, epoch_batches(pretraining), metrics);
}

int wg_bert_pretraining_evaluate(wg_bert_pretraining *pretraining, wg_metrics *metrics) {
    if (!pretraining->held_out)
        return wg_fail(WG_ERROR_STATE, "bert", "there is no held-out text to measure the model on");
    wg_task task = {
        .context = pretraining,
        .module = &pretraining->model->module,
        .evaluate = evaluate_epoch,
    };
    return wg_task_evaluate(&task, metrics);
}

/* ---- Checkpoints ---- */

static int save(void *context, wg_checkpoint *file) {
    const wg_bert_pretraining *pretraining = context;
    return wg__task_save(file, wg_bert_config_to_json(&pretraining->model->bert->config),
                         pretraining->tokenizer, pretraining->batches, pretraining->fingerprint);
}

static int restore(void *context, wg_checkpoint *file) {
    const wg_bert_pretraining *pretraining = context;
    return wg_batches_restore(pretraining->batches, file, pretraining->fingerprint);
}

wg_task wg_bert_pretraining_task(wg_bert_pretraining *pretraining) {
    return (wg_task){
        .context = pretraining,
        .module = &pretraining->model->module,
        .loss = next_loss,
        .evaluate = pretraining->held_out ? evaluate_during_training : NULL,
        .save = save,
        .restore = restore,
    };
}

/* ---- From a checkpoint ---- */

static wg_module *make_model(const char *json, void *context) {
    (void)context;
    wg_bert_config config;
    if (wg_bert_config_from_json(&config, json) < 0)
        return NULL;
    wg_bert_for_pretraining *model = wg_bert_for_pretraining_new(&config, 0);
    return model ? &model->module : NULL;
}

int wg_bert_load(const char *path, wg_bert_for_pretraining **model, wg_tokenizer **tokenizer) {
    *model = (wg_bert_for_pretraining *)wg__model_load(path, make_model, NULL, tokenizer);
    return *model ? 0 : -1;
}
