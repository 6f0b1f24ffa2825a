/* Fuzzes the readers of config.json: the text is read as the configuration of every model, and what
 * could be read is written and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/published.h"

static void read_as(const char *json, const char *type) {
    wg__published_model *model = wg__published_read(json, type);
    wg_error_clear();
    if (!model)
        return;
    wg__published_model *again = wg__published_read(model->config, type);
    if (!again) /* what was written could not be read */
        abort();
    wg__published_free(again);
    wg__published_free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    static const char *const types[] = {NULL, "bert", "gpt2", "llama", "t5", "glm", "transformer"};
    char *json = malloc(count + 1);
    memcpy(json, bytes, count);
    json[count] = '\0';
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        read_as(json, types[i]);
    free(json);
    return 0;
}
