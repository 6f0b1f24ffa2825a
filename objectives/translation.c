/* Translating as a task: see translation.h. */
#include "objectives/translation.h"

#include <math.h>
#include <string.h>

#include "data/score/bleu.h"
#include "base/array.h"
#include "data/tokenizer/text_file.h"
#include "data/batches/translation_batch.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "objectives/task_checkpoint.h"

#define WHERE "translation"

struct wg_translation {
    wg_transformer *model;
    const wg_tokenizer *tokenizer;
    const wg_dataset *training, *held_out;
    wg_translation_options options;
    wg_batches *batches;  /* NULL without training pairs */
    wg_batches *measured; /* of the held-out pairs; NULL without */
    int64_t fingerprint;  /* of the training pairs */
};

/* ---- Making one ---- */

static int check_vocabulary(const wg_translation *t) {
    const wg_transformer_config *config = &t->model->config;
    const int64_t size = wg_tokenizer_size(t->tokenizer);
    const int64_t least = config->vocab_size < config->decoder_vocab_size
                              ? config->vocab_size
                              : config->decoder_vocab_size;
    wg_translation_tokens tokens;
    if (size > least)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the tokenizer has %lld tokens; the model's vocabulary holds %lld",
                       (long long)size, (long long)least);
    if (wg_translation_tokens_of(t->tokenizer, &tokens) < 0)
        return -1;
    if (tokens.end != config->eos_token_id)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "eos_token_id of the model is %lld; the tokenizer ends a sentence by %ld",
                       (long long)config->eos_token_id, (long)tokens.end);
    return 0;
}

static wg_batches *make_batches(const wg_translation *t, const wg_dataset *pairs, int64_t tokens,
                                int64_t longest) {
    const wg_transformer_config *config = &t->model->config;
    const wg_translation_tokens around = {.start = (int32_t)config->decoder_start_token_id,
                                          .end = (int32_t)config->eos_token_id,
                                          .pad = (int32_t)config->pad_token_id};
    const wg_translation_batch_options options = {
        .tokens = tokens, .longest = longest, .seed = t->options.seed};
    return wg_translation_batches_new(pairs, &around, &options);
}

/* What is measured is measured whole: no pair is left out. */
static int prepare_held_out(wg_translation *t) {
    const int64_t most = t->model->config.max_position_embeddings;
    const int64_t tokens = t->options.batch > most ? t->options.batch : most;
    t->measured = make_batches(t, t->held_out, tokens, most);
    if (!t->measured)
        return -1;
    const int64_t left_out = wg_translation_batches_left_out(t->measured);
    if (left_out == 0)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                   "%lld of the pairs to measure on are longer than the model's %lld positions; "
                   "leave them out",
                   (long long)left_out, (long long)most);
}

static int prepare(wg_translation *t) {
    const int64_t positions = t->model->config.max_position_embeddings;
    if (t->options.batch == 0)
        t->options.batch = 4096;
    if (t->options.longest == 0)
        t->options.longest = positions < 128 ? positions : 128;
    if (check_vocabulary(t) < 0)
        return -1;
    if (t->options.longest > positions)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "sentences of %lld tokens are too long; the model has %lld positions",
                       (long long)t->options.longest, (long long)positions);
    if (t->training) {
        t->batches = make_batches(t, t->training, t->options.batch, t->options.longest);
        if (!t->batches)
            return -1;
        t->fingerprint = wg_dataset_fingerprint(t->training);
        if (wg_error_pending())
            return -1;
    }
    return t->held_out ? prepare_held_out(t) : 0;
}

wg_translation *wg_translation_new(wg_transformer *model, const wg_tokenizer *tokenizer,
                                   const wg_dataset *training, const wg_dataset *held_out,
                                   const wg_translation_options *options) {
    wg_translation *t = model && tokenizer ? wg__calloc(1, sizeof *t) : NULL;
    if (!t)
        return NULL;
    *t = (wg_translation){
        .model = model, .tokenizer = tokenizer, .training = training, .held_out = held_out};
    if (options)
        t->options = *options;
    if (prepare(t) == 0)
        return t;
    wg_translation_free(t);
    return NULL;
}

void wg_translation_free(wg_translation *translation) {
    if (!translation)
        return;
    wg_batches_free(translation->batches);
    wg_batches_free(translation->measured);
    wg__free(translation);
}

int64_t wg_translation_left_out(const wg_translation *translation) {
    return wg_translation_batches_left_out(translation->batches);
}

int64_t wg_translation_epoch(const wg_translation *translation) {
    return wg_batches_examples(translation->batches);
}

/* ---- Losses ---- */

static wg_tensor *loss_of(wg_translation *t, wg_batches *batches, wg_translation_batch *batch) {
    *batch = (wg_translation_batch){0};
    if (wg_batches_next(batches, batch) < 0)
        return NULL;
    return wg_transformer_loss(t->model, &(wg_transformer_batch){.source = batch->source,
                                                                 .source_keep = batch->source_keep,
                                                                 .target = batch->target,
                                                                 .labels = batch->labels});
}

static wg_tensor *next_loss(void *context, wg_metrics *metrics) {
    wg_translation *t = context;
    wg_translation_batch batch;
    wg_tensor *loss = loss_of(t, t->batches, &batch);
    metrics->tokens += batch.tokens;
    return loss;
}

/* ---- Evaluation ---- */

static int evaluate_batch(wg_translation *t, wg_metrics *metrics) {
    wg_translation_batch batch;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *loss = loss_of(t, t->measured, &batch);
    int result = loss ? wg_metrics_add(metrics, "loss", wg_item(loss), (double)batch.tokens) : -1;
    wg_scope_end(&scope, NULL);
    metrics->tokens += batch.tokens;
    return result < 0 || wg_error_pending() ? -1 : 0;
}

static int evaluate_batches(wg_translation *t, int64_t count, wg_metrics *metrics) {
    const wg_data_position first = {.seed = t->options.seed};
    if (wg_batches_seek(t->measured, &first) < 0)
        return -1;
    for (int64_t i = 0; i < count; i++)
        if (evaluate_batch(t, metrics) < 0)
            return -1;
    return wg_metrics_add(metrics, "perplexity", exp(wg_metrics_get(metrics, "loss")),
                          wg_metrics_weight(metrics, "loss"));
}

static int evaluate_during_training(void *context, wg_metrics *metrics) {
    wg_translation *t = context;
    const int64_t count = wg_batches_examples(t->measured);
    const int64_t limit = t->options.evaluation_batches;
    return evaluate_batches(t, limit > 0 && limit < count ? limit : count, metrics);
}

static int evaluate_all(void *context, wg_metrics *metrics) {
    wg_translation *t = context;
    return evaluate_batches(t, wg_batches_examples(t->measured), metrics);
}

static int check_held_out(const wg_translation *t) {
    return t->held_out ? 0
                       : wg_fail(WG_ERROR_STATE, WHERE,
                                 "there are no held-out pairs to measure the model on");
}

int wg_translation_evaluate(wg_translation *translation, wg_metrics *metrics) {
    if (check_held_out(translation) < 0)
        return -1;
    const wg_task task = {
        .context = translation, .module = &translation->model->module, .evaluate = evaluate_all};
    return wg_task_evaluate(&task, metrics);
}

/* ---- BLEU ---- */

static int add_bleu(const wg_bleu *bleu, bool lowercase, double pairs, wg_metrics *metrics) {
    const wg_bleu_score score = wg_bleu_measure(bleu);
    if (wg_metrics_add(metrics, lowercase ? "bleu_lc" : "bleu", score.score, pairs) < 0)
        return -1;
    for (int n = 0; n < WG_BLEU_ORDER; n++) {
        char name[WG_METRIC_NAME_SIZE];
        snprintf(name, sizeof name, "bleu_precision_%d", n + 1);
        if (wg_metrics_add(metrics, name, score.precisions[n], pairs) < 0)
            return -1;
    }
    if (wg_metrics_add(metrics, "brevity_penalty", score.brevity_penalty, pairs) < 0 ||
        wg_metrics_add(metrics, "hypothesis_tokens", (double)bleu->hypothesis_tokens, pairs) < 0)
        return -1;
    return wg_metrics_add(metrics, "reference_tokens", (double)bleu->reference_tokens, pairs);
}

static int write_lines(const char *path, int64_t count, char *const *lines) {
    wg__text text = {0};
    int result = 0;
    for (int64_t i = 0; result == 0 && i < count; i++) {
        result = wg__text_append(&text, lines[i], (int64_t)strlen(lines[i]));
        if (result == 0)
            result = wg__text_append(&text, "\n", 1);
    }
    if (result == 0)
        result = wg__text_file_write(path, text.bytes, text.length, WHERE);
    wg__free(text.bytes);
    return result;
}

/* Lines of text, some or all of them yet to come. */
static char **new_lines(int64_t count) {
    return wg__calloc((size_t)count, sizeof(char *));
}

static void free_lines(int64_t count, char **lines) {
    for (int64_t i = 0; lines && i < count; i++)
        wg_text_free(lines[i]);
    wg__free(lines);
}

/* One side of all held-out pairs; NULL with an error. */
static char **read_texts(const wg_translation *t, wg_side side) {
    const int64_t count = wg_dataset_documents(t->held_out);
    char **texts = new_lines(count);
    for (int64_t i = 0; texts && i < count; i++)
        if (!(texts[i] = wg_dataset_pair_text(t->held_out, side, i))) {
            free_lines(count, texts);
            return NULL;
        }
    return texts;
}

static int score_translations(const wg_translation *t, const wg_translation_scoring *scoring,
                              char *const *translations, char *const *references,
                              wg_metrics *metrics) {
    const int64_t count = wg_dataset_documents(t->held_out);
    wg_bleu bleu = {0};
    if (scoring->output && write_lines(scoring->output, count, translations) < 0)
        return -1;
    for (int64_t i = 0; i < count; i++)
        if (wg_bleu_add(&bleu, translations[i], references[i], scoring->lowercase) < 0)
            return -1;
    return add_bleu(&bleu, scoring->lowercase, (double)count, metrics);
}

int wg_translation_score(wg_translation *translation, const wg_translation_scoring *scoring,
                         wg_metrics *metrics) {
    static const wg_translation_scoring usual = {0};
    if (check_held_out(translation) < 0)
        return -1;
    if (!scoring)
        scoring = &usual;
    const int64_t count = wg_dataset_documents(translation->held_out);
    char **sources = read_texts(translation, WG_SOURCE);
    char **references = sources ? read_texts(translation, WG_TARGET) : NULL;
    char **translations = references ? new_lines(count) : NULL;
    int result = -1;
    if (translations)
        result =
            wg_translate_texts(translation->model, translation->tokenizer, count,
                               (const char *const *)sources, &scoring->translator, translations);
    if (result == 0)
        result = score_translations(translation, scoring, translations, references, metrics);
    free_lines(count, sources);
    free_lines(count, references);
    free_lines(count, translations);
    return result;
}

/* ---- Checkpoints ---- */

static int save(void *context, wg_checkpoint *file) {
    const wg_translation *t = context;
    return wg__task_save(file, wg_transformer_config_to_json(&t->model->config), t->tokenizer,
                         t->batches, t->fingerprint);
}

static int restore(void *context, wg_checkpoint *file) {
    wg_translation *t = context;
    return wg_batches_restore(t->batches, file, t->fingerprint);
}

wg_task wg_translation_task(wg_translation *translation) {
    return (wg_task){
        .context = translation,
        .module = &translation->model->module,
        .loss = next_loss,
        .evaluate = translation->held_out ? evaluate_during_training : NULL,
        .save = save,
        .restore = restore,
    };
}
