/* Classification of texts by a fine-tuned BERT, as `wengert finetune' and `eval' know it. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/bert_task.h"
#include "cli/results.h"
#include "cli/settings.h"
#include "train/classification.h"

/* ---- Fine-tuning ---- */

typedef struct parts {
    wg_labels labels; /* of a new model */
    wg_labelled_text *training, *held_out;
    wg_bert_for_sequence_classification *model;
    wg_classification *classification;
} parts;

/* The labels of a new model are those of its training text, which is tokenised as the checkpoint
 * says: so the tokenizer is read first. */
static int begin_new(wg__training *t) {
    parts *mine = t->parts;
    wg_bert_origin origin;
    if (wg__bert_task_origin(t, &origin) < 0)
        return -1;
    wg_tokenizer *tokenizer = wg_tokenizer_load(origin.path);
    mine->training = tokenizer ? wg_labelled_text_load(wg__setting_text(t->settings, "train"),
                                                       tokenizer, &mine->labels)
                               : NULL;
    wg_tokenizer_free(tokenizer);
    if (!mine->training)
        return -1;
    return wg_bert_for_sequence_classification_begin(&origin, &mine->labels, &mine->model,
                                                     &t->tokenizer);
}

static int begin_resumed(wg__training *t) {
    parts *mine = t->parts;
    if (wg__model_kind_require(t->resumed, t->kind, "finetune --task classify") < 0 ||
        wg_bert_for_sequence_classification_load(t->resumed, &mine->model, &t->tokenizer) < 0)
        return -1;
    mine->training = wg_labelled_text_load(wg__setting_text(t->settings, "train"), t->tokenizer,
                                           &mine->model->labels);
    return mine->training ? 0 : -1;
}

static int begin(wg__training *t) {
    parts *mine = t->parts = calloc(1, sizeof *mine);
    if (!mine || (t->resumed ? begin_resumed(t) : begin_new(t)) < 0)
        return -1;
    mine->held_out = wg_labelled_text_load(wg__setting_text(t->settings, "eval"), t->tokenizer,
                                           &mine->model->labels);
    if (!mine->held_out)
        return -1;
    const wg_classification_options options = {
        .batch = wg__setting_integer(t->settings, "batch"),
        .sequence = wg__setting_integer(t->settings, "seq"),
        .seed = (uint64_t)wg__setting_integer(t->settings, "seed"),
    };
    mine->classification =
        wg_classification_new(mine->model, t->tokenizer, mine->training, mine->held_out, &options);
    if (!mine->classification)
        return -1;
    t->task = wg_classification_task(mine->classification);
    t->vocabulary = mine->model->bert->config.vocab_size;
    t->examples = wg_labelled_text_examples(mine->training);
    return 0;
}

static void end(wg__training *t) {
    parts *mine = t->parts;
    if (!mine)
        return;
    wg_classification_free(mine->classification);
    if (mine->model)
        wg_module_free(&mine->model->module);
    wg_labelled_text_free(mine->training);
    wg_labelled_text_free(mine->held_out);
    wg_labels_free(&mine->labels);
    wg_tokenizer_free(t->tokenizer);
    free(mine);
}

static void describe(const wg__training *t) {
    const parts *mine = t->parts;
    fprintf(
        stderr, "text   %lld examples of %lld labels, %lld tokens; %lld examples to measure on\n",
        (long long)wg_labelled_text_examples(mine->training), (long long)mine->model->labels.count,
        (long long)wg_labelled_text_tokens(mine->training),
        (long long)wg_labelled_text_examples(mine->held_out));
}

static int evaluate(const wg__training *t, wg_metrics *metrics) {
    return wg_classification_evaluate(((parts *)t->parts)->classification, metrics, NULL);
}

/* ---- Measuring ---- */

/* One label a line, in the order of the examples. */
static int write_predictions(const char *path, const wg_labels *labels, int64_t count,
                             const int64_t *predictions) {
    FILE *file = wg__results_open(path);
    for (int64_t i = 0; file && i < count; i++)
        fprintf(file, "%s\n", labels->names[predictions[i]]);
    return file ? wg__results_close(file, path) : -1;
}

static int measure_text(const wg__measuring *m, wg_classification *classification,
                        const wg_labels *labels, int64_t count, wg_metrics *metrics) {
    int64_t *predictions = calloc((size_t)count, sizeof *predictions);
    int status = predictions ? wg_classification_evaluate(classification, metrics, predictions)
                             : wg_fail(WG_ERROR_MEMORY, "eval", "no memory for predictions");
    if (status == 0 && m->predictions)
        status = write_predictions(m->predictions, labels, count, predictions);
    free(predictions);
    return status;
}

static int measure(const wg__measuring *m, wg_metrics *metrics) {
    wg_bert_for_sequence_classification *model;
    wg_tokenizer *tokenizer;
    if (wg__bert_task_one_file(m) < 0 ||
        wg_bert_for_sequence_classification_load(m->run, &model, &tokenizer) < 0)
        return -1;
    const wg_classification_options options = {
        .batch = m->batch, .sequence = wg__bert_sequence(m->sequence, 128, &model->bert->config)};
    wg_labelled_text *text = wg_labelled_text_load(m->corpus[0], tokenizer, &model->labels);
    wg_classification *classification =
        text ? wg_classification_new(model, tokenizer, NULL, text, &options) : NULL;
    int status = classification ? measure_text(m, classification, &model->labels,
                                               wg_labelled_text_examples(text), metrics)
                                : -1;
    wg_classification_free(classification);
    wg_labelled_text_free(text);
    wg_tokenizer_free(tokenizer);
    wg_module_free(&model->module);
    return status;
}

/* ---- Results ---- */

static void print(const wg_metrics *metrics) {
    printf("labels           loss %.4f, accuracy %.2f %% of %.0f\n",
           wg_metrics_get(metrics, "loss"), 100 * wg_metrics_get(metrics, "accuracy"),
           wg_metrics_weight(metrics, "accuracy"));
    if (wg_metrics_weight(metrics, "f1") > 0)
        printf("of two labels    F1 %.2f %%, Matthews' correlation %.4f\n",
               100 * wg_metrics_get(metrics, "f1"), wg_metrics_get(metrics, "mcc"));
    printf("commonest label       accuracy %.2f %%\n", 100 * wg_metrics_get(metrics, "majority"));
}

static json_t *results(const wg_metrics *metrics) {
    static const char *const means[] = {"loss", "accuracy", "majority", "f1", "mcc"};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof means / sizeof means[0]; i++)
        if (wg_metrics_weight(metrics, means[i]) > 0)
            json_object_set_new(object, means[i],
                                wg__json_number(wg_metrics_get(metrics, means[i])));
    json_object_set_new(object, "examples",
                        json_integer((json_int_t)wg_metrics_weight(metrics, "accuracy")));
    return object;
}

const wg__model_kind wg__classify_task = {
    .name = "classify",
    .type = "bert",
    .mark = "/model/classifier/weight",
    .defaults = "{\"lr\": 5e-5, \"epochs\": 3, \"schedule\": \"linear\", \"weight-decay\": 0.01, "
                "\"eval-every\": 500}",
    .begin = begin,
    .end = end,
    .describe = describe,
    .evaluate = evaluate,
    .measure = measure,
    .print = print,
    .results = results,
};
