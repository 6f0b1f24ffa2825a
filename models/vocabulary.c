/* Adding tokens to a model's vocabulary: wg_model_extend_vocabulary of model.h.
 *
 *     rows of the old table    0 .. S-1            S .. V-1
 *                              the tokenizer's     an objective's own (masks, sentinels)
 *     rows of the new table    0 .. S-1   S .. S+N-1              S+N .. V+N-1
 *                              as before  means of their pieces   as before
 *
 * A parameter has a row for each token if it has N rows more in the new model than in the old
 * model. All other parameters are copied. */
#include <string.h>

#include "models/model.h"
#include "tensor/internal.h"

#define WHERE "extend"

typedef struct growth {
    const wg_vocabulary_extension *extension;
    int64_t tokens; /* S */
} growth;

static int fill_slot(const growth *g, const wg_state_entry *entry, wg_module *old) {
    const wg_slot *slot = wg_module_find(old, entry->path);
    wg_tensor *to = entry->slot->tensor, *from = slot ? slot->tensor : NULL;
    bool same = from && wg_tensor_ndim(from) == wg_tensor_ndim(to) &&
                wg_tensor_dtype(from) == wg_tensor_dtype(to);
    for (int d = 1; same && d < wg_tensor_ndim(to); d++)
        same = wg_tensor_size(from, d) == wg_tensor_size(to, d);
    const int64_t rows = same && wg_tensor_ndim(to) > 0 ? wg_tensor_size(to, 0) : 1;
    const int64_t before = same && wg_tensor_ndim(to) > 0 ? wg_tensor_size(from, 0) : 1;
    const bool grows =
        same && rows == before + g->extension->count && wg_tensor_dtype(to) == WG_F32;
    if (!same || (rows != before && !grows))
        return wg_fail(
            WG_ERROR_STATE, WHERE,
            "%s has not the shape that the extended model wants; the model's vocabulary is "
            "not that of its tokenizer",
            entry->path);
    if (!grows) {
        memcpy(wg_tensor_data(to), wg_tensor_data(from),
               (size_t)wg_tensor_count(to) * wg_dtype_size(wg_tensor_dtype(to)));
        return 0;
    }
    const wg_vocabulary_extension *x = g->extension;
    const int64_t width = wg_tensor_count(to) / rows;
    const float *old_rows = wg_tensor_data(from);
    float *row = wg_tensor_data(to);
    for (int64_t i = 0; i < rows; i++, row += width) {
        const int64_t added = i - g->tokens;
        if (added < 0 || added >= x->count) {
            memcpy(row, old_rows + (added < 0 ? i : i - x->count) * width,
                   (size_t)width * sizeof *row);
            continue;
        }
        const int64_t begin = x->starts[added], end = x->starts[added + 1];
        for (int64_t c = 0; c < width; c++) {
            double sum = 0;
            for (int64_t p = begin; p < end; p++)
                sum += old_rows[x->pieces[p] * width + c];
            row[c] = (float)(sum / (double)(end - begin));
        }
    }
    return 0;
}

int wg_model_extend_vocabulary(wg_model *model, const wg_tokenizer *tokenizer,
                               const wg_vocabulary_extension *extension) {
    if (wg_error_pending())
        return -1;
    if (model->config)
        return wg_fail(WG_ERROR_STATE, WHERE,
                       "the model is an encoder with a head; extend the pretrained model");
    const growth g = {extension, wg_tokenizer_size(tokenizer)};
    wg_model grown = {0};
    const wg_model_type *type = model->type;
    const int64_t tokens = wg_model_sizes_of(model).vocabulary;
    wg_model_fit fit = {.tokenizer = extension->tokenizer};
    void *config = wg__alloc(type->settings.size);
    if (config)
        memcpy(config, type->config(model->module), type->settings.size);
    int status = config ? wg_model_config_fit(type, config, &fit) : -1;
    if (status == 0 && wg__model_config_sizes(type, config).vocabulary != tokens + extension->count)
        status = wg_fail(WG_ERROR_STATE, WHERE,
                         "the model has %lld tokens and its tokenizer %lld; only a model with no "
                         "others than its tokenizer's and its objective's can be extended",
                         (long long)tokens, (long long)g.tokens);
    if (status == 0)
        status = wg_model_from_config(type, config, 0, &grown);
    wg__free(config);
    if (status == 0) {
        wg_state_dict *state = wg_module_state(grown.module);
        status = state ? 0 : -1;
        for (int64_t i = 0; status == 0 && i < state->count; i++)
            if (!state->entries[i].slot->tied)
                status = fill_slot(&g, &state->entries[i], model->module);
        wg_state_dict_free(state);
    }
    if (status < 0) {
        wg_model_free(&grown);
        return -1;
    }
    wg_model_free(model);
    *model = grown;
    return 0;
}
