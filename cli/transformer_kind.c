/* The Transformer, which translates, as `wengert pretrain' and `eval' know it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model_kind.h"
#include "cli/results.h"
#include "cli/settings.h"
#include "data/score/bleu.h"
#include "data/batches/translation_batch.h"
#include "objectives/translation.h"

typedef struct parts {
    wg__texts text;
    wg_transformer *model;
    wg_translation *translation;
} parts;

/* ---- Configurations, as JSON objects ---- */

/* A preset leaves open what the tokenizer decides. */
static json_t *read_preset(const char *name) {
    static const char *const open[] = {"vocab_size", "decoder_vocab_size", "pad_token_id",
                                       "eos_token_id", "decoder_start_token_id"};
    wg_transformer_config preset;
    json_t *config = wg_transformer_config_preset(&preset, name) < 0
                         ? NULL
                         : wg__config_object(wg_transformer_config_to_json(&preset));
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        json_object_del(config, open[i]);
    return config;
}

static json_t *read_config(const json_t *settings) {
    return wg__setting_text(settings, "config") ? wg__config_object(wg__config_text(settings))
                                                : read_preset(wg__setting_text(settings, "preset"));
}

/* What the configuration leaves open, by the tokenizer. NULL with an error. */
static char *complete_config(json_t *config, const wg_tokenizer *tokenizer) {
    wg_translation_tokens tokens;
    if (wg_translation_tokens_of(tokenizer, &tokens) < 0)
        return NULL;
    const json_int_t size = (json_int_t)wg_tokenizer_size(tokenizer);
    json_t *rest =
        json_pack("{s:I, s:i, s:i, s:i}", "vocab_size", size, "pad_token_id", (int)tokens.pad,
                  "eos_token_id", (int)tokens.end, "decoder_start_token_id", (int)tokens.start);
    json_object_update_missing(config, rest);
    json_decref(rest);
    return json_dumps(config, 0);
}

/* ---- Text and task ---- */

static int create(wg__training *t) {
    parts *mine = t->parts;
    json_t *config = read_config(t->settings);
    if (!config)
        return -1;
    t->tokenizer = wg__make_tokenizer(
        t->settings, wg__vocabulary_size(t->settings, wg__setting_integer(config, "vocab_size")));
    char *json = t->tokenizer ? complete_config(config, t->tokenizer) : NULL;
    json_decref(config);
    wg_transformer_config read;
    if (json && wg_transformer_config_from_json(&read, json) == 0)
        mine->model = wg_transformer_new(&read, (uint64_t)wg__setting_integer(t->settings, "seed"));
    free(json);
    return mine->model ? 0 : -1;
}

static int load(wg__training *t, const char *path) {
    return wg_transformer_load(path, &((parts *)t->parts)->model, &t->tokenizer);
}

static int pose(wg__training *t) {
    parts *mine = t->parts;
    const wg_translation_options options = {
        .batch = wg__setting_integer(t->settings, "batch"),
        .longest = wg__setting_integer(t->settings, "seq"),
        .seed = (uint64_t)wg__setting_integer(t->settings, "seed"),
        .evaluation_batches = WG__EVALUATION_BATCHES,
    };
    if (wg__texts_load(t, WG_TEXT_PAIRS, &mine->text) < 0)
        return -1;
    mine->translation = wg_translation_new(mine->model, t->tokenizer, mine->text.training,
                                           mine->text.held_out, &options);
    if (!mine->translation)
        return -1;
    t->task = wg_translation_task(mine->translation);
    t->vocabulary = mine->model->config.decoder_vocab_size;
    return 0;
}

static int pose_measuring(wg__training *t, const wg__measuring *m) {
    parts *mine = t->parts;
    mine->text.held_out = wg_dataset_load(m->corpus_count, m->corpus, t->tokenizer,
                                          &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
    if (mine->text.held_out)
        mine->translation =
            wg_translation_new(mine->model, t->tokenizer, NULL, mine->text.held_out, NULL);
    return mine->translation ? 0 : -1;
}

static wg_module *module_of(void *all) {
    return &((parts *)all)->model->module;
}

static void clear(void *all) {
    parts *mine = all;
    wg_translation_free(mine->translation);
    if (mine->model)
        wg_module_free(&mine->model->module);
    wg__texts_clear(&mine->text);
}

/* The tokens of all sources. */
static int64_t source_tokens(const wg_dataset *pairs) {
    int64_t total = 0;
    for (int64_t i = 0; i < wg_dataset_sentences(pairs); i += 2)
        total += wg_dataset_sentence_start(pairs, i + 1) - wg_dataset_sentence_start(pairs, i);
    return total;
}

static void describe(const wg__training *t) {
    const parts *mine = t->parts;
    const long long sources = source_tokens(mine->text.training);
    const long long left_out = wg_translation_left_out(mine->translation);
    fprintf(stderr,
            "text   %lld pairs, %lld and %lld tokens, in %lld batches; %lld pairs held out\n",
            (long long)wg_dataset_documents(mine->text.training) - left_out, sources,
            (long long)wg_dataset_tokens(mine->text.training) - sources,
            (long long)wg_translation_epoch(mine->translation),
            (long long)wg_dataset_documents(mine->text.held_out));
    if (left_out > 0)
        fprintf(stderr, "       %lld pairs left out, as they have more than %lld tokens\n",
                left_out, (long long)wg__setting_integer(t->settings, "seq"));
}

static int evaluate(const wg__training *t, wg_metrics *metrics) {
    return wg_translation_evaluate(((parts *)t->parts)->translation, metrics);
}

static int measure(const wg__training *t, const wg__measuring *m, wg_metrics *metrics) {
    const wg_translation_scoring scoring = {
        .translator = {.batch = m->batch, .beam = m->beam},
        .lowercase = m->lowercase,
        .output = m->predictions,
    };
    if (evaluate(t, metrics) < 0)
        return -1;
    return wg_translation_score(((parts *)t->parts)->translation, &scoring, metrics);
}

/* ---- Results ---- */

/* With translations: sacreBLEU's line. */
static void print_bleu(const wg_metrics *metrics) {
    const bool lowercase = wg_metrics_weight(metrics, "bleu_lc") > 0;
    const double ours = wg_metrics_get(metrics, "hypothesis_tokens");
    const double theirs = wg_metrics_get(metrics, "reference_tokens");
    printf("BLEU|%s = %.1f %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %.0f "
           "ref_len = %.0f)\n",
           wg_bleu_signature(lowercase), wg_metrics_get(metrics, lowercase ? "bleu_lc" : "bleu"),
           wg_metrics_get(metrics, "bleu_precision_1"), wg_metrics_get(metrics, "bleu_precision_2"),
           wg_metrics_get(metrics, "bleu_precision_3"), wg_metrics_get(metrics, "bleu_precision_4"),
           wg_metrics_get(metrics, "brevity_penalty"), theirs > 0 ? ours / theirs : 0, ours,
           theirs);
}

static bool has_bleu(const wg_metrics *metrics) {
    return wg_metrics_weight(metrics, "reference_tokens") > 0;
}

static void print(const wg_metrics *metrics) {
    printf("translations     loss %.4f, perplexity %.2f; %.0f tokens\n",
           wg_metrics_get(metrics, "loss"), wg_metrics_get(metrics, "perplexity"),
           wg_metrics_weight(metrics, "loss"));
    if (has_bleu(metrics))
        print_bleu(metrics);
}

static json_t *results(const wg_metrics *metrics) {
    json_t *object = json_object();
    for (int i = 0; i < metrics->count; i++) {
        const wg_metric *metric = &metrics->metrics[i];
        json_object_set_new(object, metric->name, wg__json_number(wg_metric_value(metric)));
    }
    json_object_set_new(object, "tokens",
                        json_integer((json_int_t)wg_metrics_weight(metrics, "loss")));
    if (has_bleu(metrics))
        json_object_set_new(
            object, "bleu_signature",
            json_string(wg_bleu_signature(wg_metrics_weight(metrics, "bleu_lc") > 0)));
    return object;
}

/* The paper's training, section 5: its rate at the peak is that of its base model, and its warm-up
 * is a tenth of a shorter run. */
const wg__model_kind wg__transformer_kind = {
    .name = "transformer",
    .type = "transformer",
    .defaults = "{\"preset\": \"transformer-tiny\", \"tokenizer\": \"bpe\", \"schedule\": "
                "\"noam\", \"optimizer\": \"adam\", \"lr\": 0.0007, \"beta2\": 0.98, \"batch\": "
                "4096, \"longest-warmup\": 4000}",
    .takes_pairs = true,
    .parts_size = sizeof(parts),
    .create = create,
    .load = load,
    .pose = pose,
    .pose_measuring = pose_measuring,
    .module = module_of,
    .clear = clear,
    .describe = describe,
    .evaluate = evaluate,
    .measure = measure,
    .print = print,
    .results = results,
};
