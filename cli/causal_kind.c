/* GPT and LLaMA, models that predict the next token, as `wengert pretrain' and `eval' know them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model_kind.h"
#include "cli/results.h"
#include "cli/settings.h"
#include "io/config.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "train/language_modeling.h"

typedef struct parts {
    wg_token_stream *training, *held_out;
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

static json_t *take_json(char *text) {
    json_t *object = text ? json_loads(text, 0, NULL) : NULL;
    wg_text_free(text);
    return object;
}

/* A preset leaves open what text and settings decide: the vocabulary, and how many positions. */
static json_t *read_preset(const wg__training *p) {
    const char *name = wg__setting_text(p->settings, "preset");
    const bool gpt = p->kind == &wg__gpt_kind;
    json_t *config = take_json(gpt ? gpt_preset(name) : llama_preset(name));
    json_object_del(config, "vocab_size");
    json_object_del(config, "bos_token_id");
    json_object_del(config, "eos_token_id");
    if (config)
        json_object_set_new(config, gpt ? "n_positions" : "max_position_embeddings",
                            json_integer(wg__setting_integer(p->settings, "seq")));
    return config;
}

static json_t *read_file(const wg__training *p, const char *path) {
    wg_config *file = wg_config_load(path);
    json_t *config = file ? take_json(wg_config_to_json(file)) : NULL;
    wg_config_free(file);
    const char *type = json_string_value(json_object_get(config, "model_type"));
    if (!type || strcmp(type, p->kind->type) == 0)
        return config;
    wg_fail(WG_ERROR_ARGUMENT, path, "its model_type is \"%s\"; %s is \"%s\"", type, p->kind->name,
            p->kind->type);
    json_decref(config);
    return NULL;
}

static json_t *read_config(const wg__training *p) {
    const char *path = wg__setting_text(p->settings, "config");
    return path ? read_file(p, path) : read_preset(p);
}

/* What the configuration leaves open, by the tokenizer. */
static char *complete_config(const wg__training *p, json_t *config) {
    const wg_tokenizer *tokenizer = p->tokenizer;
    json_t *rest = json_pack("{s:s, s:I, s:i, s:i}", "model_type", p->kind->type, "vocab_size",
                             (json_int_t)wg_tokenizer_size(tokenizer), "bos_token_id",
                             (int)wg_tokenizer_special(tokenizer, WG_TOKEN_BEGIN), "eos_token_id",
                             (int)wg_tokenizer_special(tokenizer, WG_TOKEN_END));
    json_object_update_missing(config, rest);
    json_decref(rest);
    return json_dumps(config, 0);
}

/* ---- Pre-training ---- */

static int load_text(wg__training *p) {
    parts *mine = p->parts;
    return wg__load_streams(p->settings, p->tokenizer, WG__STREAM_HELD_OUT, &mine->training,
                            &mine->held_out);
}

static int begin_new(wg__training *p) {
    parts *mine = p->parts;
    json_t *config = read_config(p);
    if (!config)
        return -1;
    p->tokenizer = wg__make_tokenizer(
        p->settings, wg__vocabulary_size(p->settings, wg__setting_integer(config, "vocab_size")));
    char *json = p->tokenizer ? complete_config(p, config) : NULL;
    json_decref(config);
    int result = json ? wg_language_model_new(&mine->model, json,
                                              (uint64_t)wg__setting_integer(p->settings, "seed"))
                      : -1;
    free(json);
    return result < 0 ? -1 : load_text(p);
}

static int begin_resumed(wg__training *p) {
    parts *mine = p->parts;
    char verb[32];
    snprintf(verb, sizeof verb, "pretrain %s", p->kind->name);
    if (wg__model_kind_require(p->resumed, p->kind, verb) < 0)
        return -1;
    return wg_language_model_load(p->resumed, &mine->model, &p->tokenizer) < 0 ? -1 : load_text(p);
}

static int begin(wg__training *p) {
    parts *mine = p->parts = calloc(1, sizeof *mine);
    if (!mine || (p->resumed ? begin_resumed(p) : begin_new(p)) < 0)
        return -1;
    const wg_language_modeling_options options = {
        .batch = wg__setting_integer(p->settings, "batch"),
        .sequence = wg__setting_integer(p->settings, "seq"),
        .seed = (uint64_t)wg__setting_integer(p->settings, "seed"),
        .evaluation_batches = WG__EVALUATION_BATCHES,
    };
    mine->modeling = wg_language_modeling_new(&mine->model, p->tokenizer, mine->training,
                                              mine->held_out, &options);
    if (!mine->modeling)
        return -1;
    p->task = wg_language_modeling_task(mine->modeling);
    p->vocabulary = mine->model.vocab_size;
    return 0;
}

static void end(wg__training *p) {
    parts *mine = p->parts;
    if (!mine)
        return;
    wg_language_modeling_free(mine->modeling);
    wg_language_model_free(&mine->model);
    wg_token_stream_free(mine->training);
    wg_token_stream_free(mine->held_out);
    wg_tokenizer_free(p->tokenizer);
    free(mine);
}

static void describe(const wg__training *p) {
    const parts *mine = p->parts;
    wg__describe_streams(mine->training, mine->held_out);
}

static int evaluate(const wg__training *p, wg_metrics *metrics) {
    return wg_language_modeling_evaluate(((parts *)p->parts)->modeling, metrics);
}

/* ---- Measuring ---- */

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

static int measure(const wg__measuring *m, wg_metrics *metrics) {
    wg_language_model model;
    wg_tokenizer *tokenizer;
    if (wg_language_model_load(m->run, &model, &tokenizer) < 0)
        return -1;
    const wg_language_modeling_options options = choose_options(m, &model);
    wg_token_stream *text = wg_token_stream_load(m->corpus_count, m->corpus, tokenizer, NULL);
    wg_language_modeling *modeling =
        text ? wg_language_modeling_new(&model, tokenizer, NULL, text, &options) : NULL;
    int result = modeling ? wg_language_modeling_evaluate(modeling, metrics) : -1;
    wg_language_modeling_free(modeling);
    wg_token_stream_free(text);
    wg_tokenizer_free(tokenizer);
    wg_language_model_free(&model);
    return result;
}

/* ---- Results ---- */

static void print(const wg_metrics *metrics) {
    printf("next tokens      loss %.4f, perplexity %.1f, %.4f bits per byte; %.0f tokens\n",
           wg_metrics_get(metrics, "loss"), wg_metrics_get(metrics, "perplexity"),
           wg_metrics_get(metrics, "bits_per_byte"), wg_metrics_weight(metrics, "loss"));
    printf("by frequency          %.4f\n", wg_metrics_get(metrics, "unigram_loss"));
}

static json_t *results(const wg_metrics *metrics) {
    static const char *const means[] = {"loss", "perplexity", "bits_per_byte", "unigram_loss"};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof means / sizeof means[0]; i++)
        json_object_set_new(object, means[i], wg__json_number(wg_metrics_get(metrics, means[i])));
    json_object_set_new(object, "tokens",
                        json_integer((json_int_t)wg_metrics_weight(metrics, "loss")));
    return object;
}

/* Touvron et al. 2023, section 2.2: AdamW (0.9, 0.95), cosine to a tenth, decay 0.1, clip 1,
 * warm-up 2000, but no more than a tenth of a short run; Radford et al. trained likewise, but for
 * the decays. */
#define SETTINGS                                                                                   \
    "\"tokenizer\": \"bpe\", \"optimizer\": \"adamw\", \"beta1\": 0.9, \"beta2\": 0.95, "          \
    "\"weight-decay\": 0.1, \"clip\": 1.0, \"schedule\": \"cosine\", \"final\": 0.1, "             \
    "\"longest-warmup\": 2000"

#define FUNCTIONS                                                                                  \
    .begin = begin, .end = end, .describe = describe, .evaluate = evaluate, .measure = measure,    \
    .print = print, .results = results

const wg__model_kind wg__gpt_kind = {.name = "gpt",
                                     .type = "gpt2",
                                     .defaults = "{\"preset\": \"gpt2-tiny\", " SETTINGS "}",
                                     FUNCTIONS};

const wg__model_kind wg__llama_kind = {.name = "llama",
                                       .type = "llama",
                                       .defaults = "{\"preset\": \"llama-260k\", " SETTINGS "}",
                                       FUNCTIONS};
