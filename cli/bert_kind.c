/* BERT, as `wengert pretrain' and `eval' know it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/model_kind.h"
#include "cli/results.h"
#include "cli/settings.h"
#include "objectives/bert_pretraining.h"

typedef struct parts {
    wg__texts text;
    wg_bert_for_pretraining *model;
    wg_bert_pretraining *modeling;
} parts;

static int read_config(const json_t *settings, wg_bert_config *config) {
    if (!wg__setting_text(settings, "config"))
        return wg_bert_config_preset(config, wg__setting_text(settings, "preset"));
    char *json = wg__config_text(settings);
    int result = json ? wg_bert_config_from_json(config, json) : -1;
    wg_text_free(json);
    return result;
}

/* A preset takes the vocabulary's size; a configuration file has said its own. */
static int create(wg__training *t) {
    parts *mine = t->parts;
    const bool configured = wg__setting_text(t->settings, "config");
    wg_bert_config config;
    if (read_config(t->settings, &config) < 0)
        return -1;
    t->tokenizer = wg__make_tokenizer(
        t->settings, wg__vocabulary_size(t->settings, configured ? config.vocab_size : 0));
    if (!t->tokenizer)
        return -1;
    if (!configured)
        config.vocab_size = wg_tokenizer_size(t->tokenizer);
    mine->model =
        wg_bert_for_pretraining_new(&config, (uint64_t)wg__setting_integer(t->settings, "seed"));
    return mine->model ? 0 : -1;
}

static int load(wg__training *t, const char *path) {
    return wg_bert_load(path, &((parts *)t->parts)->model, &t->tokenizer);
}

static int pose(wg__training *t) {
    parts *mine = t->parts;
    const wg_bert_pretraining_options options = {
        .batch = wg__setting_integer(t->settings, "batch"),
        .sequence = wg__setting_integer(t->settings, "seq"),
        .seed = (uint64_t)wg__setting_integer(t->settings, "seed"),
        .evaluation_batches = WG__EVALUATION_BATCHES,
    };
    if (wg__texts_load(t, WG_TEXT_SENTENCES, &mine->text) < 0)
        return -1;
    mine->modeling = wg_bert_pretraining_new(mine->model, t->tokenizer, mine->text.training,
                                             mine->text.held_out, &options);
    if (!mine->modeling)
        return -1;
    t->task = wg_bert_pretraining_task(mine->modeling);
    t->vocabulary = mine->model->bert->config.vocab_size;
    return 0;
}

static int pose_measuring(wg__training *t, const wg__measuring *m) {
    parts *mine = t->parts;
    const wg_bert_pretraining_options options = {
        .batch = m->batch,
        .sequence =
            wg__sequence_of(m->sequence, 128, mine->model->bert->config.max_position_embeddings),
        .seed = m->seed};
    wg_dataset *text = wg_dataset_load(m->corpus_count, m->corpus, t->tokenizer, NULL);
    mine->text.held_out = text;
    if (text)
        mine->modeling = wg_bert_pretraining_new(mine->model, t->tokenizer, text, text, &options);
    return mine->modeling ? 0 : -1;
}

static wg_module *module_of(void *all) {
    return &((parts *)all)->model->module;
}

static void clear(void *all) {
    parts *mine = all;
    wg_bert_pretraining_free(mine->modeling);
    if (mine->model)
        wg_module_free(&mine->model->module);
    wg__texts_clear(&mine->text);
}

static void describe(const wg__training *t) {
    wg__sentences_describe(&((const parts *)t->parts)->text);
}

static int evaluate(const wg__training *t, wg_metrics *metrics) {
    return wg_bert_pretraining_evaluate(((parts *)t->parts)->modeling, metrics);
}

/* ---- Results ---- */

/* How often always guessing the commoner answer is right. */
static double chance(const wg_metrics *metrics) {
    double random = wg_metrics_get(metrics, "nsp_random");
    return fmax(random, 1 - random);
}

static void print(const wg_metrics *metrics) {
    double loss = wg_metrics_get(metrics, "mlm_loss");
    printf("masked words     loss %.4f, perplexity %.1f, accuracy %.1f %% of %.0f\n", loss,
           exp(loss), 100 * wg_metrics_get(metrics, "mlm_accuracy"),
           wg_metrics_weight(metrics, "mlm_loss"));
    printf("by word frequency     %.4f\n", wg_metrics_get(metrics, "unigram_loss"));
    printf("next sentences   loss %.4f, accuracy %.1f %% of %.0f pairs\n",
           wg_metrics_get(metrics, "nsp_loss"), 100 * wg_metrics_get(metrics, "nsp_accuracy"),
           wg_metrics_weight(metrics, "nsp_loss"));
    printf("by guessing           accuracy %.1f %%\n", 100 * chance(metrics));
}

static json_t *results(const wg_metrics *metrics) {
    static const char *const means[] = {"mlm_loss", "unigram_loss", "mlm_accuracy",
                                        "nsp_loss", "nsp_accuracy", NULL};
    json_t *object = wg__json_metrics(metrics, means, "mlm_loss", "mlm_tokens");
    json_object_set_new(object, "nsp_chance", wg__json_number(chance(metrics)));
    json_object_set_new(object, "nsp_pairs",
                        json_integer((json_int_t)wg_metrics_weight(metrics, "nsp_loss")));
    return object;
}

const wg__model_kind wg__bert_kind = {
    .name = "bert",
    .type = "bert",
    .defaults = "{\"preset\": \"bert-tiny\", \"tokenizer\": \"wordpiece\", \"schedule\": "
                "\"linear\", \"weight-decay\": 0.01}",
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
