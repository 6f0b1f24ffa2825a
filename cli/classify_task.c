/* Classification of texts by a fine-tuned BERT, as `wengert finetune' and `eval' know it. */
#include <stdlib.h>

#include "cli/finetuning.h"
#include "cli/labelling.h"
#include "cli/settings.h"

/* ---- Fine-tuning ---- */

typedef struct parts {
    wg__labelling labelling;
    wg_labels labels; /* of a new model */
    wg_bert_for_sequence_classification *model;
} parts;

/* The labels of a new model are those of its training text, which is tokenised as the checkpoint
 * says: so the tokenizer is read first. */
static int begin_new(wg__training *t) {
    parts *mine = t->parts;
    wg_bert_origin origin;
    if (wg__finetuning_origin(t, &origin) < 0)
        return -1;
    wg_tokenizer *tokenizer = wg_tokenizer_load(origin.path);
    mine->labelling.training = tokenizer
                                   ? wg_labelled_text_load(wg__setting_text(t->settings, "train"),
                                                           tokenizer, &mine->labels, NULL)
                                   : NULL;
    wg_tokenizer_free(tokenizer);
    if (!mine->labelling.training)
        return -1;
    return wg_bert_for_sequence_classification_begin(&origin, &mine->labels, &mine->model,
                                                     &t->tokenizer);
}

static int begin_resumed(wg__training *t) {
    parts *mine = t->parts;
    if (wg__model_kind_require(t->resumed, t->kind, "finetune --task classify") < 0 ||
        wg_bert_for_sequence_classification_load(t->resumed, &mine->model, &t->tokenizer) < 0)
        return -1;
    mine->labelling.training = wg_labelled_text_load(wg__setting_text(t->settings, "train"),
                                                     t->tokenizer, &mine->model->labels, NULL);
    return mine->labelling.training ? 0 : -1;
}

static int begin(wg__training *t) {
    parts *mine = t->parts = calloc(1, sizeof *mine);
    if (!mine || (t->resumed ? begin_resumed(t) : begin_new(t)) < 0)
        return -1;
    wg__labelling *l = &mine->labelling;
    const wg_classification_options options = wg__labelling_options(t->settings);
    l->labels = &mine->model->labels;
    l->held_out = wg_labelled_text_load(wg__setting_text(t->settings, "eval"), t->tokenizer,
                                        &mine->model->labels, NULL);
    if (l->held_out)
        l->classification =
            wg_classification_new(mine->model, t->tokenizer, l->training, l->held_out, &options);
    if (!l->classification)
        return -1;
    t->vocabulary = mine->model->bert->config.vocab_size;
    wg__labelling_begun(t);
    return 0;
}

static void end(wg__training *t) {
    parts *mine = t->parts;
    if (!mine)
        return;
    wg__labelling_clear(&mine->labelling);
    if (mine->model)
        wg_module_free(&mine->model->module);
    wg_labels_free(&mine->labels);
    wg_tokenizer_free(t->tokenizer);
    free(mine);
}

/* ---- Measuring ---- */

static int measure(const wg__measuring *m, wg_metrics *metrics) {
    wg_bert_for_sequence_classification *model;
    wg_tokenizer *tokenizer;
    if (wg__finetuning_one_file(m) < 0 ||
        wg_bert_for_sequence_classification_load(m->run, &model, &tokenizer) < 0)
        return -1;
    const wg_classification_options options = {
        .batch = m->batch,
        .sequence = wg__sequence_of(m->sequence, 128, model->bert->config.max_position_embeddings)};
    wg__labelling l = {.labels = &model->labels,
                       .held_out =
                           wg_labelled_text_load(m->corpus[0], tokenizer, &model->labels, NULL)};
    if (l.held_out)
        l.classification = wg_classification_new(model, tokenizer, NULL, l.held_out, &options);
    const int status = l.classification ? wg__labelling_measure(m, &l, metrics) : -1;
    wg__labelling_clear(&l);
    wg_tokenizer_free(tokenizer);
    wg_module_free(&model->module);
    return status;
}

const wg__model_kind wg__classify_task = {
    .name = "classify",
    .type = "bert",
    .mark = "/model/classifier/weight",
    .defaults = "{\"lr\": 5e-5, \"epochs\": 3, \"schedule\": \"linear\", \"weight-decay\": 0.01, "
                "\"eval-every\": 500}",
    .begin = begin,
    .end = end,
    .describe = wg__labelling_describe,
    .evaluate = wg__labelling_evaluate,
    .measure = measure,
    .print = wg__labelling_print,
    .results = wg__labelling_results,
};
