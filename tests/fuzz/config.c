/* Fuzzes the readers of config.json: the text is read as the configuration of every model, and what
 * could be read is written and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "models/internal.h"

/* The configuration of a model as it is written; NULL if the text could not be read. */
static char *through_model(const char *json, const wg_model_type *type) {
    void *config = malloc(type->settings.size);
    char *written = config && wg_model_config_from_json(type, json, config) == 0
                        ? wg_model_config_to_json(type, config)
                        : NULL;
    free(config);
    return written;
}

/* The same with a head of a kind. The model is made without memory, and of few
 * layers. */
static char *through_head(const char *json, const wg_model_type *type, wg__head_kind kind) {
    char *encoder = through_model(json, type), *written = NULL;
    void *config = malloc(type->settings.size);
    if (encoder && config && wg_model_config_from_json(type, encoder, config) == 0 &&
        type->encoder.make && wg__model_config_sizes(type, config).layers <= 64) {
        wg_set_meta_init(true);
        wg__headed_encoder *model = wg__headed_encoder_of(type, kind, json);
        wg_set_meta_init(false);
        if (model) {
            written = wg__headed_encoder_config(model);
            wg_module_free(&model->module);
        }
    }
    free(config);
    wg_text_free(encoder);
    return written;
}

static void read_as(const char *json, const wg_model_type *type, int kind) {
    char *written =
        kind < 0 ? through_model(json, type) : through_head(json, type, (wg__head_kind)kind);
    wg_error_clear();
    if (!written)
        return;
    char *again =
        kind < 0 ? through_model(written, type) : through_head(written, type, (wg__head_kind)kind);
    if (!again) /* what was written could not be read */
        abort();
    wg_text_free(again);
    wg_text_free(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    char *json = malloc(count + 1);
    memcpy(json, bytes, count);
    json[count] = '\0';
    for (int i = 0; wg_model_type_at(i); i++)
        for (int kind = -1; kind < WG_HEAD_KINDS; kind++)
            read_as(json, wg_model_type_at(i), kind);
    free(json);
    return 0;
}
