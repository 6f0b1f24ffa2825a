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
static int begin_new(wg__training *t) {
    parts *mine = t->parts;
    const char *path = wg__finetuning_model(t);
    if (!path || wg_glm_load(path, &mine->model, &t->tokenizer) < 0)
        return -1;
    mine->model->module.generator =
        (wg_generator){.seed = (uint64_t)wg__setting_integer(t->settings, "seed")};
    mine->cloze = new_cloze(t->settings, t->tokenizer);
    return mine->cloze ? 0 : -1;
}

static int begin_resumed(wg__training *t) {
    parts *mine = t->parts;
    if (wg__model_kind_require(t->resumed, t->kind, "finetune --task cloze") < 0)
        return -1;
    return wg_glm_cloze_load(t->resumed, &mine->model, &t->tokenizer, &mine->cloze);
}

static int begin(wg__training *t) {
    parts *mine = t->parts = calloc(1, sizeof *mine);
    if (!mine || (t->resumed ? begin_resumed(t) : begin_new(t)) < 0)
        return -1;
    wg__labelling *l = &mine->labelling;
    const wg_classification_options options = wg__labelling_options(t->settings);
    l->labels = wg_cloze_labels(mine->cloze);
    l->training =
        wg_cloze_text_load(mine->cloze, wg__setting_text(t->settings, "train"), t->tokenizer);
    if (l->training)
        l->held_out =
            wg_cloze_text_load(mine->cloze, wg__setting_text(t->settings, "eval"), t->tokenizer);
    if (l->held_out)
        l->classification = wg_cloze_classification_new(mine->model, mine->cloze, t->tokenizer,
                                                        l->training, l->held_out, &options);
    if (!l->classification)
        return -1;
    t->vocabulary = mine->model->config.vocab_size;
    wg__labelling_begun(t);
    return 0;
}

static void end(wg__training *t) {
    parts *mine = t->parts;
    if (!mine)
        return;
    wg__labelling_clear(&mine->labelling);
    wg_cloze_free(mine->cloze);
    if (mine->model)
        wg_module_free(&mine->model->module);
    wg_tokenizer_free(t->tokenizer);
    free(mine);
}

/* ---- Measuring ---- */

static int measure(const wg__measuring *m, wg_metrics *metrics) {
    wg_glm *model;
    wg_tokenizer *tokenizer;
    wg_cloze *cloze;
    if (wg__finetuning_one_file(m) < 0 || wg_glm_cloze_load(m->run, &model, &tokenizer, &cloze) < 0)
        return -1;
    const wg_classification_options options = {
        .batch = m->batch,
        .sequence = wg__sequence_of(m->sequence, 128, model->config.max_sequence_length)};
    wg__labelling l = {.labels = wg_cloze_labels(cloze),
                       .held_out = wg_cloze_text_load(cloze, m->corpus[0], tokenizer)};
    if (l.held_out)
        l.classification =
            wg_cloze_classification_new(model, cloze, tokenizer, NULL, l.held_out, &options);
    const int status = l.classification ? wg__labelling_measure(m, &l, metrics) : -1;
    wg__labelling_clear(&l);
    wg_cloze_free(cloze);
    wg_tokenizer_free(tokenizer);
    wg_module_free(&model->module);
    return status;
}

const wg__model_kind wg__cloze_task = {
    .name = "cloze",
    .type = "glm",
    .mark = "cloze",
    .defaults = "{\"lr\": 5e-5, \"epochs\": 3, \"schedule\": \"linear\", \"weight-decay\": 0.01, "
                "\"eval-every\": 500, \"pattern\": null, \"verbalizer\": null}",
    .begin = begin,
    .end = end,
    .describe = wg__labelling_describe,
    .evaluate = wg__labelling_evaluate,
    .measure = measure,
    .print = wg__labelling_print,
    .results = wg__labelling_results,
};
