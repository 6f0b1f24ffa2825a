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
static int create(wg__training *t) {
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

static int load(wg__training *t, const char *path) {
    return wg_bert_for_sequence_classification_load(path, &((parts *)t->parts)->model,
                                                    &t->tokenizer);
}

static wg_labelled_text *read_text(const wg__training *t, const char *path) {
    parts *mine = t->parts;
    return wg_labelled_text_load(path, t->tokenizer, &mine->model->labels, NULL);
}

static wg_classification *classification_of(const wg__training *t,
                                            const wg_classification_options *options) {
    const parts *mine = t->parts;
    return wg_classification_new(mine->model, t->tokenizer, mine->labelling.training,
                                 mine->labelling.held_out, options);
}

static const wg__labelling_kind labelling_kind = {.read = read_text,
                                                  .classification = classification_of};

static int pose(wg__training *t) {
    parts *mine = t->parts;
    mine->labelling.labels = &mine->model->labels;
    t->vocabulary = mine->model->bert->config.vocab_size;
    return wg__labelling_pose(t, &labelling_kind);
}

static int pose_measuring(wg__training *t, const wg__measuring *m) {
    parts *mine = t->parts;
    mine->labelling.labels = &mine->model->labels;
    return wg__labelling_pose_measuring(t, m, &labelling_kind,
                                        mine->model->bert->config.max_position_embeddings);
}

static wg_module *module_of(void *all) {
    return &((parts *)all)->model->module;
}

static void clear(void *all) {
    parts *mine = all;
    wg__labelling_clear(&mine->labelling);
    if (mine->model)
        wg_module_free(&mine->model->module);
    wg_labels_free(&mine->labels);
}

const wg__model_kind wg__classify_task = {
    .name = "classify",
    .type = "bert",
    .mark = "/model/classifier/weight",
    .defaults = "{\"lr\": 5e-5, \"epochs\": 3, \"schedule\": \"linear\", \"weight-decay\": 0.01, "
                "\"eval-every\": 500}",
    .parts_size = sizeof(parts),
    .create = create,
    .load = load,
    .pose = pose,
    .pose_measuring = pose_measuring,
    .module = module_of,
    .clear = clear,
    .describe = wg__labelling_describe,
    .evaluate = wg__labelling_evaluate,
    .measure = wg__labelling_measure,
    .print = wg__labelling_print,
    .results = wg__labelling_results,
};
