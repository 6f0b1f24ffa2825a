/* T5, as `wengert pretrain' and `eval' know it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/model_kind.h"
#include "cli/results.h"
#include "cli/settings.h"
#include "objectives/t5_pretraining.h"

typedef struct parts {
    wg__texts text;
    wg_t5 *model;
    wg_t5_pretraining *pretraining;
} parts;

static int read_config(const json_t *settings, wg_t5_config *config) {
    if (!wg__setting_text(settings, "config"))
        return wg_t5_config_preset(config, wg__setting_text(settings, "preset"));
    char *json = wg__config_text(settings);
    int result = json ? wg_t5_config_from_json(config, json) : -1;
    wg_text_free(json);
    return result;
}

/* The tokens that T5 adds to a vocabulary that lacks them, </s>, <pad> and the sentinels, are not
 * learnt. */
enum { ADDED_TOKENS = WG_T5_SENTINELS + 2 };

/* The tokens to learn. -1 with an error. */
static int64_t vocabulary_to_learn(const json_t *settings, const wg_t5_config *config) {
    if (!wg__setting_text(settings, "config"))
        return wg__vocabulary_size(settings, 0);
    if (config->vocab_size > ADDED_TOKENS)
        return wg__vocabulary_size(settings, config->vocab_size - ADDED_TOKENS);
    return wg_fail(WG_ERROR_ARGUMENT, "pretrain t5",
                   "vocab_size is %lld; %d of its tokens are sentinels, </s> and <pad>",
                   (long long)config->vocab_size, ADDED_TOKENS);
}

/* What stands for the end and for padding is the tokenizer's affair; a preset takes the
 * vocabulary's size, too. */
static int create(wg__training *t) {
    parts *mine = t->parts;
    wg_t5_config config;
    wg_t5_tokens tokens;
    const int64_t size =
        read_config(t->settings, &config) < 0 ? -1 : vocabulary_to_learn(t->settings, &config);
    t->tokenizer = size < 0 ? NULL : wg__make_tokenizer(t->settings, size);
    if (!t->tokenizer || wg_t5_tokens_of(t->tokenizer, &tokens) < 0)
        return -1;
    if (!wg__setting_text(t->settings, "config"))
        config.vocab_size = tokens.vocab_size;
    config.eos_token_id = tokens.end;
    config.pad_token_id = config.decoder_start_token_id = tokens.pad;
    mine->model = wg_t5_new(&config, (uint64_t)wg__setting_integer(t->settings, "seed"));
    return mine->model ? 0 : -1;
}

static int load(wg__training *t, const char *path) {
    return wg_t5_load(path, &((parts *)t->parts)->model, &t->tokenizer);
}

static int pose(wg__training *t) {
    parts *mine = t->parts;
    const wg_t5_pretraining_options options = {
        .batch = wg__setting_integer(t->settings, "batch"),
        .sequence = wg__setting_integer(t->settings, "seq"),
        .seed = (uint64_t)wg__setting_integer(t->settings, "seed"),
        .evaluation_batches = WG__EVALUATION_BATCHES,
    };
    if (wg__texts_load(t, WG_TEXT_STREAM, &mine->text) < 0)
        return -1;
    mine->pretraining = wg_t5_pretraining_new(mine->model, t->tokenizer, mine->text.training,
                                              mine->text.held_out, &options);
    if (!mine->pretraining)
        return -1;
    t->task = wg_t5_pretraining_task(mine->pretraining);
    t->vocabulary = mine->model->config.vocab_size;
    return 0;
}

static int pose_measuring(wg__training *t, const wg__measuring *m) {
    parts *mine = t->parts;
    const wg_t5_pretraining_options options = {
        .batch = m->batch, .sequence = m->sequence, .seed = m->seed};
    wg_dataset *text = wg_dataset_load(m->corpus_count, m->corpus, t->tokenizer,
                                       &(wg_dataset_options){.kind = WG_TEXT_STREAM});
    mine->text.held_out = text;
    if (text)
        mine->pretraining = wg_t5_pretraining_new(mine->model, t->tokenizer, NULL, text, &options);
    return mine->pretraining ? 0 : -1;
}

static wg_module *module_of(void *all) {
    return &((parts *)all)->model->module;
}

static void clear(void *all) {
    parts *mine = all;
    wg_t5_pretraining_free(mine->pretraining);
    if (mine->model)
        wg_module_free(&mine->model->module);
    wg__texts_clear(&mine->text);
}

static void describe(const wg__training *t) {
    wg__stream_describe(&((const parts *)t->parts)->text);
}

static int evaluate(const wg__training *t, wg_metrics *metrics) {
    return wg_t5_pretraining_evaluate(((parts *)t->parts)->pretraining, metrics);
}

/* ---- Results ---- */

static void print(const wg_metrics *metrics) {
    const double loss = wg_metrics_get(metrics, "word_loss");
    printf("tokens of spans  loss %.4f, perplexity %.1f, accuracy %.1f %% of %.0f\n", loss,
           exp(loss), 100 * wg_metrics_get(metrics, "word_accuracy"),
           wg_metrics_weight(metrics, "word_loss"));
    printf("by frequency          %.4f\n", wg_metrics_get(metrics, "unigram_loss"));
    printf("with sentinels   loss %.4f\n", wg_metrics_get(metrics, "loss"));
}

static json_t *results(const wg_metrics *metrics) {
    static const char *const means[] = {"loss", "word_loss", "word_accuracy", "unigram_loss", NULL};
    return wg__json_metrics(metrics, means, "word_loss", "words");
}

/* Adafactor at a step size relative to the weights, as T5 was trained (section 3.1.2; its rate, the
 * inverse square root of the step, begins at 1e-2, for runs of 2^19 steps), here with the schedule
 * of the other models, which suits short runs. */
const wg__model_kind wg__t5_kind = {
    .name = "t5",
    .type = "t5",
    .defaults = "{\"preset\": \"t5-tiny\", \"tokenizer\": \"bpe\", \"optimizer\": \"adafactor\", "
                "\"lr\": 0.02, \"schedule\": \"cosine\", \"final\": 0.1}",
    .parts_size = sizeof(parts),
    .create = create,
    .load = load,
    .pose = pose,
    .pose_measuring = pose_measuring,
    .module = module_of,
    .clear = clear,
    .describe = describe,
    .evaluate = evaluate,
    .print = print,
    .results = results,
};
