/* Models from checkpoints. */
#include "models/load.h"

#include "io/checkpoint/checkpoint.h"

static wg_module *read_model(wg_checkpoint *file,
                             wg_module *(*make)(const char *config, void *context), void *context) {
    char *config = wg_checkpoint_get_text(file, "/config");
    wg_module *module = config ? make(config, context) : NULL;
    wg_text_free(config);
    if (module && wg_checkpoint_get_module(file, "/model", module) < 0) {
        wg_module_free(module);
        module = NULL;
    }
    return module;
}

static wg_tokenizer *read_tokenizer(wg_checkpoint *file) {
    char *json = wg_checkpoint_get_text(file, "/tokenizer");
    wg_tokenizer *tokenizer = json ? wg_tokenizer_from_json(json) : NULL;
    wg_text_free(json);
    return tokenizer;
}

wg_module *wg__model_load(const char *path, wg_module *(*make)(const char *config, void *context),
                          void *context, wg_tokenizer **tokenizer) {
    *tokenizer = NULL;
    wg_checkpoint *file = wg_checkpoint_open(path);
    if (!file)
        return NULL;
    wg_module *module = read_model(file, make, context);
    if (module)
        *tokenizer = read_tokenizer(file);
    wg_checkpoint_close(file);
    if (module && !*tokenizer) {
        wg_module_free(module);
        return NULL;
    }
    return module;
}
