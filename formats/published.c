/* The tensors of published checkpoints: which model, and which of its tensors a name is. */
#include "formats/published.h"

#include <stdio.h>
#include <string.h>

#include "io/config_json.h"
#include "formats/published_kind.h"
#include "tensor/internal.h"

#define WHERE "convert"

/* ---- Which model ---- */

/* "bert, gpt2, ..." */
static const char *list_types(char *text, size_t size) {
    text[0] = '\0';
    for (const wg__published_kind *kind = wg__published_kinds; kind->type; kind++)
        snprintf(text + strlen(text), size - strlen(text), "%s%s", text[0] ? ", " : "", kind->type);
    return text;
}

static int list_type(wg__published_model *model, const char *json, const char *type) {
    char types[128];
    for (const wg__published_kind *kind = wg__published_kinds; kind->type; kind++)
        if (strcmp(type, kind->type) == 0) {
            model->kind = kind;
            model->type = kind->type;
            model->architecture = kind->architecture;
            return kind->list(model, json);
        }
    return wg_fail(WG_ERROR_FORMAT, WHERE, "model_type \"%.64s\" is not converted; these are: %s",
                   type, list_types(types, sizeof types));
}

wg__published_model *wg__published_read(const char *json, const char *type) {
    char types[128];
    wg__published_model *model = json ? wg__calloc(1, sizeof *model) : NULL;
    wg_config *config = model ? wg_config_parse(json, "config.json") : NULL;
    int status = config ? wg_config_text(config, "model_type", &type) : -1;
    if (status == 0 && !type)
        status = wg_fail(WG_ERROR_FORMAT, WHERE,
                         "config.json has no model_type, and the names of the tensors are not "
                         "those of any of these: %s",
                         list_types(types, sizeof types));
    if (status == 0) {
        model->ends = wg__config_list_length(config, "eos_token_id");
        status = list_type(model, json, type);
    }
    wg_config_free(config);
    if (status == 0)
        return model;
    wg__published_free(model);
    return NULL;
}

void wg__published_free(wg__published_model *model) {
    if (!model)
        return;
    wg__free(model->config);
    wg__free(model->tensors);
    wg__free(model);
}

/* ---- Names ---- */

/* What files of the bare model leave out. */
static const char *missing_prefix(const wg__published_kind *kind, const char *name) {
    for (size_t i = 0; i < sizeof kind->heads / sizeof kind->heads[0]; i++)
        if (kind->heads[i] && wg__starts_with(name, kind->heads[i]))
            return "";
    return wg__starts_with(name, kind->prefix) ? "" : kind->prefix;
}

static bool says_nothing_new(const wg__published_model *model, const char *name) {
    const wg__published_kind *kind = model->kind;
    for (size_t i = 0; i < sizeof kind->repeated / sizeof kind->repeated[0]; i++)
        if (kind->repeated[i] && wg__ends_with(name, kind->repeated[i]))
            return true;
    return model->tied_head && strcmp(name, "lm_head.weight") == 0;
}

int64_t wg__published_find(const wg__published_model *model, const char *name) {
    if (strlen(name) > 140)
        return -1;
    char full[160];
    if (wg__starts_with(name, model->kind->outer))
        name += strlen(model->kind->outer);
    snprintf(full, sizeof full, "%s%s", missing_prefix(model->kind, name), name);
    if (wg__ends_with(full, "LayerNorm.gamma"))
        strcpy(full + strlen(full) - strlen("gamma"), "weight");
    else if (wg__ends_with(full, "LayerNorm.beta"))
        strcpy(full + strlen(full) - strlen("beta"), "bias");
    for (int64_t i = 0; i < model->count; i++)
        if (strcmp(full, model->tensors[i].name) == 0)
            return i;
    return says_nothing_new(model, full) ? -2 : -1;
}

const char *wg__published_type_of(const char *name) {
    for (const wg__published_kind *kind = wg__published_kinds; kind->type; kind++)
        if (strstr(name, kind->marker))
            return kind->type;
    return NULL;
}
