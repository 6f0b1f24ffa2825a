/* GLM, as `wengert pretrain' and `eval' know it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/model_kind.h"
#include "cli/results.h"
#include "cli/settings.h"
#include "io/config.h"
#include "train/blank_infilling.h"

/* ---- Pre-training ---- */

typedef struct parts {
    wg_glm_config config; /* of a new model */
    wg_corpus *corpus, *held_out;
    wg_glm *model;
    wg_blank_infilling *infilling;
} parts;

/* The configuration that preset or file name, before the vocabulary is known. A preset has as many
 * positions as the sequences want. */
static int read_config(const wg__training *p) {
    wg_glm_config *config = &((parts *)p->parts)->config;
    const char *path = wg__setting_text(p->settings, "config");
    if (!path) {
        int result = wg_glm_config_preset(config, wg__setting_text(p->settings, "preset"));
        config->max_sequence_length = wg__setting_integer(p->settings, "seq");
        return result;
    }
    wg_config *file = wg_config_load(path);
    char *json = file ? wg_config_to_json(file) : NULL;
    int result = json ? wg_glm_config_from_json(config, json) : -1;
    wg_text_free(json);
    wg_config_free(file);
    return result;
}

/* The tokens that GLM adds to a vocabulary that lacks them are not learnt. */
enum { ADDED_TOKENS = 4 };

static int64_t vocabulary_to_learn(const wg__training *p, bool configured) {
    const int64_t size = ((const parts *)p->parts)->config.vocab_size;
    return wg__vocabulary_size(p->settings, configured ? size - ADDED_TOKENS : 0);
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
    p->tokenizer = wg__make_tokenizer(p->settings, vocabulary_to_learn(p, configured));
    if (!p->tokenizer || load_text(p) < 0)
        return -1;
    wg_glm_tokens tokens;
    if (wg_glm_tokens_of(p->tokenizer, &tokens) < 0)
        return -1;
    if (!configured)
        mine->config.vocab_size = tokens.vocab_size;
    mine->model = wg_glm_new(&mine->config, (uint64_t)wg__setting_integer(p->settings, "seed"));
    return mine->model ? 0 : -1;
}

static int begin_resumed(wg__training *p) {
    parts *mine = p->parts;
    if (wg__model_kind_require(p->resumed, p->kind, "pretrain glm") < 0 ||
        wg_glm_load(p->resumed, &mine->model, &p->tokenizer) < 0)
        return -1;
    return load_text(p);
}

static wg_glm_batch_options batch_options(const wg__training *p) {
    return (wg_glm_batch_options){
        .batch = wg__setting_integer(p->settings, "batch"),
        .sequence = wg__setting_integer(p->settings, "seq"),
        .seed = (uint64_t)wg__setting_integer(p->settings, "seed"),
        .masked_share = wg__setting_number(p->settings, "masked-share"),
        .span_mean = wg__setting_number(p->settings, "span-mean"),
        .sentence_share = wg__setting_number(p->settings, "sentence-share"),
        .document_share = wg__setting_number(p->settings, "document-share"),
    };
}

static int begin(wg__training *p) {
    parts *mine = p->parts = calloc(1, sizeof *mine);
    if (!mine || (p->resumed ? begin_resumed(p) : begin_new(p)) < 0)
        return -1;
    const wg_blank_infilling_options options = {.batches = batch_options(p),
                                                .evaluation_batches = WG__EVALUATION_BATCHES};
    mine->infilling =
        wg_blank_infilling_new(mine->model, p->tokenizer, mine->corpus, mine->held_out, &options);
    if (!mine->infilling)
        return -1;
    p->task = wg_blank_infilling_task(mine->infilling);
    p->vocabulary = mine->model->config.vocab_size;
    return 0;
}

static void end(wg__training *p) {
    parts *mine = p->parts;
    if (!mine)
        return;
    wg_blank_infilling_free(mine->infilling);
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
    return wg_blank_infilling_evaluate(((parts *)p->parts)->infilling, metrics);
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

static int show_batch(const wg__training *p) {
    const wg_glm_batch_options options = batch_options(p);
    wg_glm_batches *batches =
        wg_glm_batches_new(((const parts *)p->parts)->corpus, p->tokenizer, &options);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_glm_batch batch;
    int result = wg_glm_batches_next(batches, &batch) < 0 ? -1 : show(&batch, p->tokenizer);
    wg_scope_end(&scope, NULL);
    wg_glm_batches_free(batches);
    return result;
}

/* ---- Measuring ---- */

static int measure(const wg__measuring *m, wg_metrics *metrics) {
    wg_glm *model;
    wg_tokenizer *tokenizer;
    if (wg_glm_load(m->run, &model, &tokenizer) < 0)
        return -1;
    const wg_blank_infilling_options options = {
        .batches = {.batch = m->batch,
                    .sequence =
                        wg__sequence_of(m->sequence, 128, model->config.max_sequence_length),
                    .seed = m->seed}};
    wg_corpus *corpus = wg_corpus_load(m->corpus_count, m->corpus, tokenizer, NULL);
    wg_blank_infilling *infilling =
        corpus ? wg_blank_infilling_new(model, tokenizer, corpus, corpus, &options) : NULL;
    int result = infilling ? wg_blank_infilling_evaluate(infilling, metrics) : -1;
    wg_blank_infilling_free(infilling);
    wg_corpus_free(corpus);
    wg_tokenizer_free(tokenizer);
    wg_module_free(&model->module);
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
    static const char *const means[] = {"loss", "word_loss", "unigram_loss"};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof means / sizeof means[0]; i++)
        json_object_set_new(object, means[i], wg__json_number(wg_metrics_get(metrics, means[i])));
    json_object_set_new(object, "words",
                        json_integer((json_int_t)wg_metrics_weight(metrics, "word_loss")));
    return object;
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
    .begin = begin,
    .end = end,
    .describe = describe,
    .show_batch = show_batch,
    .evaluate = evaluate,
    .measure = measure,
    .print = print,
    .results = results,
};
