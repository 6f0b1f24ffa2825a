/* GPT and LLaMA, models that predict the next token, as `wengert pretrain' and `eval' know them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model_kind.h"
#include "cli/results.h"
#include "cli/settings.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "objectives/language_modeling.h"

typedef struct parts {
    wg__texts text;
    wg_language_model model;
    wg_language_modeling *modeling;
} parts;

/* ---- Configurations, as JSON objects ---- */

static char *gpt_preset(const char *name) {
    wg_gpt_config config;
    return wg_gpt_config_preset(&config, name) < 0 ? NULL : wg_gpt_config_to_json(&config);
}

static char *llama_preset(const char *name) {
    wg_llama_config config;
    return wg_llama_config_preset(&config, name) < 0 ? NULL : wg_llama_config_to_json(&config);
}

/* A preset leaves open what text and settings decide: the vocabulary, and how many positions. */
static json_t *read_preset(const wg__training *t) {
    const char *name = wg__setting_text(t->settings, "preset");
    const bool gpt = t->kind == &wg__gpt_kind;
    json_t *config = wg__config_object(gpt ? gpt_preset(name) : llama_preset(name));
    json_object_del(config, "vocab_size");
    json_object_del(config, "bos_token_id");
    json_object_del(config, "eos_token_id");
    if (config)
        json_object_set_new(config, gpt ? "n_positions" : "max_position_embeddings",
                            json_integer(wg__setting_integer(t->settings, "seq")));
    return config;
}

static json_t *read_file(const wg__training *t, const char *path) {
    json_t *config = wg__config_object(wg__config_text(t->settings));
    const char *type = json_string_value(json_object_get(config, "model_type"));
    if (!type || strcmp(type, t->kind->type) == 0)
        return config;
    wg_fail(WG_ERROR_ARGUMENT, path, "its model_type is \"%s\"; %s is \"%s\"", type, t->kind->name,
            t->kind->type);
    json_decref(config);
    return NULL;
}

static json_t *read_config(const wg__training *t) {
    const char *path = wg__setting_text(t->settings, "config");
    return path ? read_file(t, path) : read_preset(t);
}

/* What the configuration leaves open, by the tokenizer. */
static char *complete_config(const wg__training *t, json_t *config) {
    const wg_tokenizer *tokenizer = t->tokenizer;
    json_t *rest = json_pack("{s:s, s:I, s:i, s:i}", "model_type", t->kind->type, "vocab_size",
                             (json_int_t)wg_tokenizer_size(tokenizer), "bos_token_id",
                             (int)wg_tokenizer_special(tokenizer, WG_TOKEN_BEGIN), "eos_token_id",
                             (int)wg_tokenizer_special(tokenizer, WG_TOKEN_END));
    json_object_update_missing(config, rest);
    json_decref(rest);
    return json_dumps(config, 0);
}

/* ---- Text and task ---- */

static int create(wg__training *t) {
    parts *mine = t->parts;
    json_t *config = read_config(t);
    if (!config)
        return -1;
    t->tokenizer = wg__make_tokenizer(
        t->settings, wg__vocabulary_size(t->settings, wg__setting_integer(config, "vocab_size")));
    char *json = t->tokenizer ? complete_config(t, config) : NULL;
    json_decref(config);
    int result = json ? wg_language_model_new(&mine->model, json,
                                              (uint64_t)wg__setting_integer(t->settings, "seed"))
                      : -1;
    free(json);
    return result;
}

static int load(wg__training *t, const char *path) {
    return wg_language_model_load(path, &((parts *)t->parts)->model, &t->tokenizer);
}

static int pose(wg__training *t) {
    parts *mine = t->parts;
    const wg_language_modeling_options options = {
        .batch = wg__setting_integer(t->settings, "batch"),
        .sequence = wg__setting_integer(t->settings, "seq"),
        .seed = (uint64_t)wg__setting_integer(t->settings, "seed"),
        .evaluation_batches = WG__EVALUATION_BATCHES,
    };
    if (wg__texts_load(t, WG_TEXT_STREAM, &mine->text) < 0)
        return -1;
    mine->modeling = wg_language_modeling_new(&mine->model, t->tokenizer, mine->text.training,
                                              mine->text.held_out, &options);
    if (!mine->modeling)
        return -1;
    t->task = wg_language_modeling_task(mine->modeling);
    t->vocabulary = mine->model.vocab_size;
    return 0;
}

/* As many positions as the model has, within reason; batches whose logits stay small. */
static wg_language_modeling_options choose_options(const wg__measuring *m,
                                                   const wg_language_model *model) {
    enum { LONGEST = 1024, TOKENS = 2048 };
    wg_language_modeling_options options = {
        .batch = m->batch, .sequence = m->sequence, .by_document = m->by_document};
    if (options.sequence == 0)
        options.sequence = model->max_positions < LONGEST ? model->max_positions : LONGEST;
    if (options.batch == 0)
        options.batch = options.sequence < TOKENS ? TOKENS / options.sequence : 1;
    return options;
}

static int pose_measuring(wg__training *t, const wg__measuring *m) {
    parts *mine = t->parts;
    const wg_language_modeling_options options = choose_options(m, &mine->model);
    wg_dataset *text = wg_dataset_load(m->corpus_count, m->corpus, t->tokenizer,
                                       &(wg_dataset_options){.kind = WG_TEXT_STREAM});
    mine->text.held_out = text;
    if (text)
        mine->modeling = wg_language_modeling_new(&mine->model, t->tokenizer, NULL, text, &options);
    return mine->modeling ? 0 : -1;
}

static wg_module *module_of(void *all) {
    return ((parts *)all)->model.module;
}

static void clear(void *all) {
    parts *mine = all;
    wg_language_modeling_free(mine->modeling);
    wg_language_model_free(&mine->model);
    wg__texts_clear(&mine->text);
}

static void describe(const wg__training *t) {
    wg__stream_describe(&((const parts *)t->parts)->text);
}

static int evaluate(const wg__training *t, wg_metrics *metrics) {
    return wg_language_modeling_evaluate(((parts *)t->parts)->modeling, metrics);
}

/* ---- Results ---- */

static void print(const wg_metrics *metrics) {
    printf("next tokens      loss %.4f, perplexity %.1f, %.4f bits per byte; %.0f tokens\n",
           wg_metrics_get(metrics, "loss"), wg_metrics_get(metrics, "perplexity"),
           wg_metrics_get(metrics, "bits_per_byte"), wg_metrics_weight(metrics, "loss"));
    printf("by frequency          %.4f\n", wg_metrics_get(metrics, "unigram_loss"));
}

static json_t *results(const wg_metrics *metrics) {
    static const char *const means[] = {"loss", "perplexity", "bits_per_byte", "unigram_loss",
                                        NULL};
    return wg__json_metrics(metrics, means, "loss", "tokens");
}

/* Touvron et al. 2023, section 2.2: AdamW (0.9, 0.95), cosine to a tenth, decay 0.1, clip 1,
 * warm-up 2000, but no more than a tenth of a short run; Radford et al. trained likewise, but for
 * the decays. */
#define SETTINGS                                                                                   \
    "\"tokenizer\": \"bpe\", \"optimizer\": \"adamw\", \"beta1\": 0.9, \"beta2\": 0.95, "          \
    "\"weight-decay\": 0.1, \"clip\": 1.0, \"schedule\": \"cosine\", \"final\": 0.1, "             \
    "\"longest-warmup\": 2000"

#define FUNCTIONS                                                                                  \
    .parts_size = sizeof(parts), .create = create, .load = load, .pose = pose,                     \
    .pose_measuring = pose_measuring, .module = module_of, .clear = clear, .describe = describe,   \
    .evaluate = evaluate, .print = print, .results = results

const wg__model_kind wg__gpt_kind = {.name = "gpt",
                                     .type = "gpt2",
                                     .defaults = "{\"preset\": \"gpt2-tiny\", " SETTINGS "}",
                                     FUNCTIONS};

const wg__model_kind wg__llama_kind = {.name = "llama",
                                       .type = "llama",
                                       .defaults = "{\"preset\": \"llama-260k\", " SETTINGS "}",
                                       FUNCTIONS};
