/* T5, as `wengert pretrain' and `eval' know it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/model_kind.h"
#include "cli/results.h"
#include "cli/settings.h"
#include "io/config.h"
#include "train/t5_pretraining.h"

/* ---- Pre-training ---- */

typedef struct parts {
    wg_t5_config config; /* of a new model */
    wg_token_stream *training, *held_out;
    wg_t5 *model;
    wg_t5_pretraining *pretraining;
} parts;

/* The configuration that preset or file name, before the vocabulary is known. */
static int read_config(const wg__training *p) {
    wg_t5_config *config = &((parts *)p->parts)->config;
    const char *path = wg__setting_text(p->settings, "config");
    if (!path)
        return wg_t5_config_preset(config, wg__setting_text(p->settings, "preset"));
    wg_config *file = wg_config_load(path);
    char *json = file ? wg_config_to_json(file) : NULL;
    int result = json ? wg_t5_config_from_json(config, json) : -1;
    wg_text_free(json);
    wg_config_free(file);
    return result;
}

/* The tokens that T5 adds to a vocabulary that lacks them, </s>, <pad> and the sentinels, are not
 * learnt. */
enum { ADDED_TOKENS = WG_T5_SENTINELS + 2 };

/* The tokens to learn: 0 leaves it to the defaults. -1 with an error. */
static int64_t vocabulary_to_learn(const wg__training *p, bool configured) {
    const int64_t size = ((const parts *)p->parts)->config.vocab_size;
    if (!configured)
        return wg__vocabulary_size(p->settings, 0);
    if (size > ADDED_TOKENS)
        return wg__vocabulary_size(p->settings, size - ADDED_TOKENS);
    return wg_fail(WG_ERROR_ARGUMENT, "pretrain t5",
                   "vocab_size is %lld; %d of its tokens are sentinels, </s> and <pad>",
                   (long long)size, ADDED_TOKENS);
}

static int load_text(wg__training *p) {
    parts *mine = p->parts;
    return wg__load_streams(p->settings, p->tokenizer, WG__STREAM_HELD_OUT, &mine->training,
                            &mine->held_out);
}

/* What stands for the end and for padding is the tokenizer's affair; a preset takes the
 * vocabulary's size, too. */
static int begin_new(wg__training *p) {
    parts *mine = p->parts;
    const bool configured = wg__setting_text(p->settings, "config");
    const int64_t size = read_config(p) < 0 ? -1 : vocabulary_to_learn(p, configured);
    wg_t5_tokens tokens;
    p->tokenizer = size < 0 ? NULL : wg__make_tokenizer(p->settings, size);
    if (!p->tokenizer || wg_t5_tokens_of(p->tokenizer, &tokens) < 0)
        return -1;
    if (!configured)
        mine->config.vocab_size = tokens.vocab_size;
    mine->config.eos_token_id = tokens.end;
    mine->config.pad_token_id = mine->config.decoder_start_token_id = tokens.pad;
    mine->model = wg_t5_new(&mine->config, (uint64_t)wg__setting_integer(p->settings, "seed"));
    return mine->model ? load_text(p) : -1;
}

static int begin_resumed(wg__training *p) {
    parts *mine = p->parts;
    if (wg__model_kind_require(p->resumed, p->kind, "pretrain t5") < 0 ||
        wg_t5_load(p->resumed, &mine->model, &p->tokenizer) < 0)
        return -1;
    return load_text(p);
}

static int begin(wg__training *p) {
    parts *mine = p->parts = calloc(1, sizeof *mine);
    if (!mine || (p->resumed ? begin_resumed(p) : begin_new(p)) < 0)
        return -1;
    const wg_t5_pretraining_options options = {
        .batch = wg__setting_integer(p->settings, "batch"),
        .sequence = wg__setting_integer(p->settings, "seq"),
        .seed = (uint64_t)wg__setting_integer(p->settings, "seed"),
        .evaluation_batches = WG__EVALUATION_BATCHES,
    };
    mine->pretraining =
        wg_t5_pretraining_new(mine->model, p->tokenizer, mine->training, mine->held_out, &options);
    if (!mine->pretraining)
        return -1;
    p->task = wg_t5_pretraining_task(mine->pretraining);
    p->vocabulary = mine->model->config.vocab_size;
    return 0;
}

static void end(wg__training *p) {
    parts *mine = p->parts;
    if (!mine)
        return;
    wg_t5_pretraining_free(mine->pretraining);
    if (mine->model)
        wg_module_free(&mine->model->module);
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
    return wg_t5_pretraining_evaluate(((parts *)p->parts)->pretraining, metrics);
}

/* ---- Measuring ---- */

static int measure(const wg__measuring *m, wg_metrics *metrics) {
    wg_t5 *model;
    wg_tokenizer *tokenizer;
    if (wg_t5_load(m->run, &model, &tokenizer) < 0)
        return -1;
    const wg_t5_pretraining_options options = {
        .batch = m->batch, .sequence = m->sequence, .seed = m->seed};
    wg_token_stream *text = wg_token_stream_load(m->corpus_count, m->corpus, tokenizer, NULL);
    wg_t5_pretraining *pretraining =
        text ? wg_t5_pretraining_new(model, tokenizer, NULL, text, &options) : NULL;
    int result = pretraining ? wg_t5_pretraining_evaluate(pretraining, metrics) : -1;
    wg_t5_pretraining_free(pretraining);
    wg_token_stream_free(text);
    wg_tokenizer_free(tokenizer);
    wg_module_free(&model->module);
    return result;
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
    static const char *const means[] = {"loss", "word_loss", "word_accuracy", "unigram_loss"};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof means / sizeof means[0]; i++)
        json_object_set_new(object, means[i], wg__json_number(wg_metrics_get(metrics, means[i])));
    json_object_set_new(object, "words",
                        json_integer((json_int_t)wg_metrics_weight(metrics, "word_loss")));
    return object;
}

/* Adafactor at a step size relative to the weights, as T5 was trained (section 3.1.2; its rate, the
 * inverse square root of the step, begins at 1e-2, for runs of 2^19 steps), here with the schedule
 * of the other models, which suits short runs. */
const wg__model_kind wg__t5_kind = {
    .name = "t5",
    .type = "t5",
    .defaults = "{\"preset\": \"t5-tiny\", \"tokenizer\": \"bpe\", \"optimizer\": \"adafactor\", "
                "\"lr\": 0.02, \"schedule\": \"cosine\", \"final\": 0.1}",
    .begin = begin,
    .end = end,
    .describe = describe,
    .evaluate = evaluate,
    .measure = measure,
    .print = print,
    .results = results,
};
