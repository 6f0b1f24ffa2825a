/* A Transformer from a checkpoint. */
#include <string.h>

#include "io/config.h"
#include "models/load.h"
#include "models/transformer.h"

#define WHERE "transformer"

static int check_type(const char *json) {
    wg_config *config = wg_config_parse(json, "/config");
    const char *type = NULL;
    int result = -1;
    if (config && wg_config_require(config, 1, (const char *const[]){"model_type"}) == 0 &&
        wg_config_text(config, "model_type", &type) == 0)
        result = strcmp(type, "transformer") == 0
                     ? 0
                     : wg_fail(WG_ERROR_STATE, WHERE,
                               "it is a model of type \"%s\"; wanted \"transformer\"", type);
    wg_config_free(config);
    return result;
}

static wg_module *make_module(const char *json, void *context) {
    wg_transformer **model = context;
    wg_transformer_config config;
    if (check_type(json) < 0 || wg_transformer_config_from_json(&config, json) < 0)
        return NULL;
    *model = wg_transformer_new(&config, 0);
    return *model ? &(*model)->module : NULL;
}

int wg_transformer_load(const char *path, wg_transformer **model, wg_tokenizer **tokenizer) {
    *model = NULL;
    if (wg__model_load(path, make_module, model, tokenizer))
        return 0;
    *model = NULL;
    return -1;
}
