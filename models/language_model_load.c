/* Causal language models by their configurations and from checkpoints. */
#include <stdio.h>
#include <string.h>

#include "io/config.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "models/load.h"

#define WHERE "language_model"

/* ---- The models, by model_type ---- */

static int gpt_new(wg_language_model *model, const char *json, uint64_t seed) {
    wg_gpt_config config;
    wg_gpt *gpt = wg_gpt_config_from_json(&config, json) < 0 ? NULL : wg_gpt_new(&config, seed);
    if (!gpt)
        return -1;
    *model = wg_gpt_language_model(gpt);
    return 0;
}

static int llama_new(wg_language_model *model, const char *json, uint64_t seed) {
    wg_llama_config config;
    wg_llama *llama =
        wg_llama_config_from_json(&config, json) < 0 ? NULL : wg_llama_new(&config, seed);
    if (!llama)
        return -1;
    *model = wg_llama_language_model(llama);
    return 0;
}

static const struct {
    const char *type;
    int (*make)(wg_language_model *model, const char *json, uint64_t seed);
} kinds[] = {{"gpt2", gpt_new}, {"llama", llama_new}};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static int make(wg_language_model *model, const char *type, const char *json, uint64_t seed) {
    for (int i = 0; i < KINDS; i++)
        if (strcmp(type, kinds[i].type) == 0)
            return kinds[i].make(model, json, seed);
    return wg_fail(WG_ERROR_STATE, WHERE,
                   "it is a model of type \"%s\"; wanted one that predicts what comes next, of "
                   "type \"gpt2\" or \"llama\"",
                   type);
}

int wg_language_model_new(wg_language_model *model, const char *config_json, uint64_t seed) {
    *model = (wg_language_model){0};
    wg_config *config = wg_config_parse(config_json, "config.json");
    const char *type = NULL;
    int result = -1;
    if (config && wg_config_require(config, 1, (const char *const[]){"model_type"}) == 0 &&
        wg_config_text(config, "model_type", &type) == 0)
        result = make(model, type, config_json, seed);
    wg_config_free(config);
    return result;
}

void wg_language_model_free(wg_language_model *model) {
    if (model->module)
        wg_module_free(model->module);
    *model = (wg_language_model){0};
}

/* ---- From a checkpoint ---- */

static wg_module *make_module(const char *json, void *context) {
    wg_language_model *model = context;
    return wg_language_model_new(model, json, 0) < 0 ? NULL : model->module;
}

int wg_language_model_load(const char *path, wg_language_model *model, wg_tokenizer **tokenizer) {
    *model = (wg_language_model){0};
    if (wg__model_load(path, make_module, model, tokenizer))
        return 0;
    *model = (wg_language_model){0};
    return -1;
}
