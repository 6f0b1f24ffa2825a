/* BERT, as `wengert pretrain' and `eval' know it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/model_kind.h"
#include "cli/results.h"
#include "cli/settings.h"
#include "io/config.h"
#include "train/bert_pretraining.h"

/* ---- Pre-training ---- */

typedef struct parts {
    wg_bert_config config; /* of a new model */
    wg_corpus *corpus;     /* what is trained on */
    wg_corpus *held_out;   /* what is measured on */
    wg_bert_for_pretraining *model;
    wg_bert_pretraining *modeling;
} parts;

/* The configuration that preset or file name, before the vocabulary is known. */
static int read_config(const wg__training *p) {
    wg_bert_config *config = &((parts *)p->parts)->config;
    const char *path = wg__setting_text(p->settings, "config");
    if (!path)
        return wg_bert_config_preset(config, wg__setting_text(p->settings, "preset"));
    wg_config *file = wg_config_load(path);
    char *json = file ? wg_config_to_json(file) : NULL;
    int result = json ? wg_bert_config_from_json(config, json) : -1;
    wg_text_free(json);
    wg_config_free(file);
    return result;
}

static int load_text(wg__training *p) {
    parts *mine = p->parts;
    return wg__load_corpora(p->settings, p->tokenizer, WG__CORPUS_HELD_OUT, &mine->corpus,
                            &mine->held_out);
}

/* A preset takes the vocabulary's size; a configuration file has said its own. */
static int begin_new(wg__training *p) {
    parts *mine = p->parts;
    const bool configured = wg__setting_text(p->settings, "config");
    if (read_config(p) < 0)
        return -1;
    p->tokenizer = wg__make_tokenizer(
        p->settings, wg__vocabulary_size(p->settings, configured ? mine->config.vocab_size : 0));
    if (!p->tokenizer || load_text(p) < 0)
        return -1;
    if (!configured)
        mine->config.vocab_size = wg_tokenizer_size(p->tokenizer);
    mine->model = wg_bert_for_pretraining_new(&mine->config,
                                              (uint64_t)wg__setting_integer(p->settings, "seed"));
    return mine->model ? 0 : -1;
}

static int begin_resumed(wg__training *p) {
    parts *mine = p->parts;
    if (wg__model_kind_require(p->resumed, p->kind, "pretrain bert") < 0)
        return -1;
    return wg_bert_load(p->resumed, &mine->model, &p->tokenizer) < 0 ? -1 : load_text(p);
}

static int begin(wg__training *p) {
    parts *mine = p->parts = calloc(1, sizeof *mine);
    if (!mine || (p->resumed ? begin_resumed(p) : begin_new(p)) < 0)
        return -1;
    const wg_bert_pretraining_options options = {
        .batch = wg__setting_integer(p->settings, "batch"),
        .sequence = wg__setting_integer(p->settings, "seq"),
        .seed = (uint64_t)wg__setting_integer(p->settings, "seed"),
        .evaluation_batches = WG__EVALUATION_BATCHES,
    };
    mine->modeling =
        wg_bert_pretraining_new(mine->model, p->tokenizer, mine->corpus, mine->held_out, &options);
    if (!mine->modeling)
        return -1;
    p->task = wg_bert_pretraining_task(mine->modeling);
    p->vocabulary = mine->model->bert->config.vocab_size;
    return 0;
}

static void end(wg__training *p) {
    parts *mine = p->parts;
    if (!mine)
        return;
    wg_bert_pretraining_free(mine->modeling);
    if (mine->model)
        wg_module_free(&mine->model->module);
    wg_corpus_free(mine->corpus);
    wg_corpus_free(mine->held_out);
    wg_tokenizer_free(p->tokenizer);
    free(mine);
}

static void describe(const wg__training *p) {
    const parts *mine = p->parts;
    wg__describe_corpora(mine->corpus, mine->held_out);
}

static int evaluate(const wg__training *p, wg_metrics *metrics) {
    return wg_bert_pretraining_evaluate(((parts *)p->parts)->modeling, metrics);
}

/* ---- Measuring ---- */

static int measure(const wg__measuring *m, wg_metrics *metrics) {
    wg_bert_for_pretraining *model;
    wg_tokenizer *tokenizer;
    if (wg_bert_load(m->run, &model, &tokenizer) < 0)
        return -1;
    const wg_bert_pretraining_options options = {
        .batch = m->batch,
        .sequence = wg__sequence_of(m->sequence, 128, model->bert->config.max_position_embeddings),
        .seed = m->seed};
    wg_corpus *corpus = wg_corpus_load(m->corpus_count, m->corpus, tokenizer, NULL);
    wg_bert_pretraining *modeling =
        corpus ? wg_bert_pretraining_new(model, tokenizer, corpus, corpus, &options) : NULL;
    int result = modeling ? wg_bert_pretraining_evaluate(modeling, metrics) : -1;
    wg_bert_pretraining_free(modeling);
    wg_corpus_free(corpus);
    wg_tokenizer_free(tokenizer);
    wg_module_free(&model->module);
    return result;
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
    static const char *const means[] = {"mlm_loss", "unigram_loss", "mlm_accuracy", "nsp_loss",
                                        "nsp_accuracy"};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof means / sizeof means[0]; i++)
        json_object_set_new(object, means[i], wg__json_number(wg_metrics_get(metrics, means[i])));
    json_object_set_new(object, "nsp_chance", wg__json_number(chance(metrics)));
    json_object_set_new(object, "mlm_tokens",
                        json_integer((json_int_t)wg_metrics_weight(metrics, "mlm_loss")));
    json_object_set_new(object, "nsp_pairs",
                        json_integer((json_int_t)wg_metrics_weight(metrics, "nsp_loss")));
    return object;
}

const wg__model_kind wg__bert_kind = {
    .name = "bert",
    .type = "bert",
    .defaults = "{\"preset\": \"bert-tiny\", \"tokenizer\": \"wordpiece\", \"schedule\": "
                "\"linear\", \"weight-decay\": 0.01}",
    .begin = begin,
    .end = end,
    .describe = describe,
    .evaluate = evaluate,
    .measure = measure,
    .print = print,
    .results = results,
};
