/* Labels told by filling a blank: GLM with a pattern and verbalizers, as `wengert finetune' and
 * `eval' know it. */
#include <stdlib.h>

#include "cli/finetuning.h"
#include "cli/labelling.h"
#include "cli/settings.h"

/* ---- Fine-tuning ---- */

typedef struct parts {
    wg__labelling labelling;
    wg_glm *model;
    wg_cloze *cloze;
} parts;

/* What --pattern and --verbalizer say, which are as wg_cloze_from_json has them. */
static wg_cloze *new_cloze(const json_t *settings, const wg_tokenizer *tokenizer) {
    json_t *object = json_pack("{s:O, s:O}", "pattern", json_object_get(settings, "pattern"),
                               "verbalizers", json_object_get(settings, "verbalizer"));
    char *json = object ? json_dumps(object, 0) : NULL;
    wg_cloze *cloze = json ? wg_cloze_from_json(json, tokenizer) : NULL;
    free(json);
    json_decref(object);
    return cloze;
}

/* Dropout goes on from the seed of this run, not from where pretraining left it. */
static int create(wg__training *t) {
    parts *mine = t->parts;
    const char *path = wg__finetuning_model(t);
    if (!path || wg_glm_load(path, &mine->model, &t->tokenizer) < 0)
        return -1;
    mine->model->module.generator =
        (wg_generator){.seed = (uint64_t)wg__setting_integer(t->settings, "seed")};
    mine->cloze = new_cloze(t->settings, t->tokenizer);
    return mine->cloze ? 0 : -1;
}

static int load(wg__training *t, const char *path) {
    parts *mine = t->parts;
    return wg_glm_cloze_load(path, &mine->model, &t->tokenizer, &mine->cloze);
}

static wg_labelled_text *read_text(const wg__training *t, const char *path) {
    return wg_cloze_text_load(((parts *)t->parts)->cloze, path, t->tokenizer);
}

static wg_classification *classification_of(const wg__training *t,
                                            const wg_classification_options *options) {
    const parts *mine = t->parts;
    return wg_cloze_classification_new(mine->model, mine->cloze, t->tokenizer,
                                       mine->labelling.training, mine->labelling.held_out, options);
}

static const wg__labelling_kind labelling_kind = {.read = read_text,
                                                  .classification = classification_of};

static int pose(wg__training *t) {
    parts *mine = t->parts;
    mine->labelling.labels = wg_cloze_labels(mine->cloze);
    t->vocabulary = mine->model->config.vocab_size;
    return wg__labelling_pose(t, &labelling_kind);
}

static int pose_measuring(wg__training *t, const wg__measuring *m) {
    parts *mine = t->parts;
    mine->labelling.labels = wg_cloze_labels(mine->cloze);
    return wg__labelling_pose_measuring(t, m, &labelling_kind,
                                        mine->model->config.max_sequence_length);
}

static wg_module *module_of(void *all) {
    return &((parts *)all)->model->module;
}

static void clear(void *all) {
    parts *mine = all;
    wg__labelling_clear(&mine->labelling);
    wg_cloze_free(mine->cloze);
    if (mine->model)
        wg_module_free(&mine->model->module);
}

const wg__model_kind wg__cloze_task = {
    .name = "cloze",
    .type = "glm",
    .mark = "cloze",
    .defaults = "{\"lr\": 5e-5, \"epochs\": 3, \"schedule\": \"linear\", \"weight-decay\": 0.01, "
                "\"eval-every\": 500, \"pattern\": null, \"verbalizer\": null}",
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
