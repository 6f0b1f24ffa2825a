/* Trained models as the verbs use them: which objective a checkpoint has, whether a verb can use
 * it, and its model and tokenizer. See trained.h. */
#include "cli/trained.h"

#include <stdio.h>
#include <string.h>

void wg__training_command(const wg_objective *objective, const wg_model_type *type, char *text,
                          size_t size) {
    if (objective->finetunes)
        snprintf(text, size, "finetune --task %s", objective->name);
    else
        snprintf(text, size, "pretrain %s", type->name);
}

int wg__trained_refuse(const char *path, const char *verb, const char *takes) {
    const wg_objective *objective = wg_objective_of(path);
    const wg_model_type *type = objective ? wg_model_type_of(path) : NULL;
    if (!type)
        return -1;
    if (!objective->finetunes)
        return wg_fail(WG_ERROR_STATE, path, "it holds a %s model; `wengert %s' takes %s",
                       type->name, verb, takes);
    return wg_fail(WG_ERROR_STATE, path,
                   "it holds a model of `wengert finetune --task %s'; `wengert %s' takes %s",
                   objective->name, verb, takes);
}

const wg_objective *wg__trained_objective(const char *path, const char *verb,
                                          bool (*can)(const wg_objective *objective)) {
    const wg_objective *own = wg_objective_of(path), *objective;
    if (!own || can(own))
        return own;
    /* "bert, glm and t5": the models of pretraining objectives, and the fine-tuned tasks. */
    const char *names[32];
    int count = 0;
    const wg_model_type *type;
    for (int i = 0; (type = wg_model_type_at(i)) && count < 32; i++)
        if (can(wg_objective_find(type->objectives)))
            names[count++] = type->name;
    for (int i = 0; (objective = wg_objective_at(i)) && count < 32; i++)
        if (objective->finetunes && can(objective))
            names[count++] = objective->name;
    char takes[256] = "";
    for (int i = 0; i < count; i++)
        snprintf(takes + strlen(takes), sizeof takes - strlen(takes), "%s%s",
                 i == 0           ? ""
                 : i == count - 1 ? " and "
                                  : ", ",
                 names[i]);
    wg__trained_refuse(path, verb, takes);
    return NULL;
}

int wg__trained_load(wg__trained *trained, const wg_objective *objective, const char *path) {
    *trained = (wg__trained){.objective = objective};
    return objective->training->load
               ? objective->training->load(objective, path, &trained->model, &trained->tokenizer)
               : wg_model_load(path, &trained->model, &trained->tokenizer);
}

int wg__trained_quantize(const wg_model *model, int dtype) {
    return dtype == 0 ? 0 : wg_module_quantize(model->module, (wg_quantization)(dtype - 1));
}

void wg__trained_clear(wg__trained *trained) {
    wg_model_free(&trained->model);
    wg_tokenizer_free(trained->tokenizer);
    *trained = (wg__trained){0};
}
