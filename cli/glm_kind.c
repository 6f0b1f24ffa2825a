/* GLM, as `wengert pretrain' and `eval' know it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/model_kind.h"
#include "cli/results.h"
#include "cli/settings.h"
#include "objectives/blank_infilling.h"

typedef struct parts {
    wg__texts text;
    wg_glm *model;
    wg_blank_infilling *infilling;
} parts;

/* A preset has as many positions as the sequences want. */
static int read_config(const json_t *settings, wg_glm_config *config) {
    if (!wg__setting_text(settings, "config")) {
        int result = wg_glm_config_preset(config, wg__setting_text(settings, "preset"));
        config->max_sequence_length = wg__setting_integer(settings, "seq");
        return result;
    }
    char *json = wg__config_text(settings);
    int result = json ? wg_glm_config_from_json(config, json) : -1;
    wg_text_free(json);
    return result;
}

/* The tokens that GLM adds to a vocabulary that lacks them are not learnt. */
enum { ADDED_TOKENS = 4 };

/* A preset takes the vocabulary's size; a configuration file has said its own. */
static int create(wg__training *t) {
    parts *mine = t->parts;
    const bool configured = wg__setting_text(t->settings, "config");
    wg_glm_config config;
    wg_glm_tokens tokens;
    if (read_config(t->settings, &config) < 0)
        return -1;
    t->tokenizer = wg__make_tokenizer(
        t->settings,
        wg__vocabulary_size(t->settings, configured ? config.vocab_size - ADDED_TOKENS : 0));
    if (!t->tokenizer || wg_glm_tokens_of(t->tokenizer, &tokens) < 0)
        return -1;
    if (!configured)
        config.vocab_size = tokens.vocab_size;
    mine->model = wg_glm_new(&config, (uint64_t)wg__setting_integer(t->settings, "seed"));
    return mine->model ? 0 : -1;
}

static int load(wg__training *t, const char *path) {
    return wg_glm_load(path, &((parts *)t->parts)->model, &t->tokenizer);
}

static wg_glm_batch_options batch_options(const wg__training *t) {
    return (wg_glm_batch_options){
        .batch = wg__setting_integer(t->settings, "batch"),
        .sequence = wg__setting_integer(t->settings, "seq"),
        .seed = (uint64_t)wg__setting_integer(t->settings, "seed"),
        .masked_share = wg__setting_number(t->settings, "masked-share"),
        .span_mean = wg__setting_number(t->settings, "span-mean"),
        .sentence_share = wg__setting_number(t->settings, "sentence-share"),
        .document_share = wg__setting_number(t->settings, "document-share"),
    };
}

static int pose(wg__training *t) {
    parts *mine = t->parts;
    const wg_blank_infilling_options options = {.batches = batch_options(t),
                                                .evaluation_batches = WG__EVALUATION_BATCHES};
    if (wg__texts_load(t, WG_TEXT_SENTENCES, &mine->text) < 0)
        return -1;
    mine->infilling = wg_blank_infilling_new(mine->model, t->tokenizer, mine->text.training,
                                             mine->text.held_out, &options);
    if (!mine->infilling)
        return -1;
    t->task = wg_blank_infilling_task(mine->infilling);
    t->vocabulary = mine->model->config.vocab_size;
    return 0;
}

static int pose_measuring(wg__training *t, const wg__measuring *m) {
    parts *mine = t->parts;
    const wg_blank_infilling_options options = {
        .batches = {.batch = m->batch,
                    .sequence =
                        wg__sequence_of(m->sequence, 128, mine->model->config.max_sequence_length),
                    .seed = m->seed}};
    wg_dataset *text = wg_dataset_load(m->corpus_count, m->corpus, t->tokenizer, NULL);
    mine->text.held_out = text;
    if (text)
        mine->infilling = wg_blank_infilling_new(mine->model, t->tokenizer, text, text, &options);
    return mine->infilling ? 0 : -1;
}

static wg_module *module_of(void *all) {
    return &((parts *)all)->model->module;
}

static void clear(void *all) {
    parts *mine = all;
    wg_blank_infilling_free(mine->infilling);
    if (mine->model)
        wg_module_free(&mine->model->module);
    wg__texts_clear(&mine->text);
}

static void describe(const wg__training *t) {
    wg__sentences_describe(&((const parts *)t->parts)->text);
}

static int evaluate(const wg__training *t, wg_metrics *metrics) {
    return wg_blank_infilling_evaluate(((parts *)t->parts)->infilling, metrics);
}

/* ---- The first batch ---- */

static int show(const wg_glm_batch *batch, const wg_tokenizer *tokenizer) {
    for (int64_t row = 0; row < wg_tensor_size(batch->input_ids, 0); row++) {
        char *table = wg_glm_batch_show(batch, row, tokenizer);
        if (!table)
            return -1;
        printf("%ssequence %lld\n%s", row ? "\n" : "", (long long)row, table);
        wg_text_free(table);
    }
    return 0;
}

static int show_batch(const wg__training *t) {
    const wg_glm_batch_options options = batch_options(t);
    wg_batches *batches =
        wg_glm_batches_new(((const parts *)t->parts)->text.training, t->tokenizer, &options);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_glm_batch batch;
    int result = wg_batches_next(batches, &batch) < 0 ? -1 : show(&batch, t->tokenizer);
    wg_scope_end(&scope, NULL);
    wg_batches_free(batches);
    return result;
}

/* ---- Results ---- */

static void print(const wg_metrics *metrics) {
    const double loss = wg_metrics_get(metrics, "word_loss");
    printf("words in blanks  loss %.4f, perplexity %.1f; %.0f words\n", loss, exp(loss),
           wg_metrics_weight(metrics, "word_loss"));
    printf("by word frequency     %.4f\n", wg_metrics_get(metrics, "unigram_loss"));
    printf("with their ends  loss %.4f; %.0f blanks\n", wg_metrics_get(metrics, "loss"),
           wg_metrics_weight(metrics, "loss") - wg_metrics_weight(metrics, "word_loss"));
}

static json_t *results(const wg_metrics *metrics) {
    static const char *const means[] = {"loss", "word_loss", "unigram_loss", NULL};
    return wg__json_metrics(metrics, means, "word_loss", "words");
}

/* The decays of the published code; half of the texts with spans, the rest the mixture of the
 * paper's section 2.1, so that sentences are filled and texts continued, too. */
const wg__model_kind wg__glm_kind = {
    .name = "glm",
    .type = "glm",
    .defaults =
        "{\"preset\": \"glm-tiny\", \"tokenizer\": \"wordpiece\", \"schedule\": \"cosine\", "
        "\"final\": 0.1, \"weight-decay\": 0.1, \"beta2\": 0.98, \"masked-share\": 0.15, "
        "\"span-mean\": 3.0, \"sentence-share\": 0.25, \"document-share\": 0.25}",
    .parts_size = sizeof(parts),
    .create = create,
    .load = load,
    .pose = pose,
    .pose_measuring = pose_measuring,
    .module = module_of,
    .clear = clear,
    .describe = describe,
    .show_batch = show_batch,
    .evaluate = evaluate,
    .print = print,
    .results = results,
};
