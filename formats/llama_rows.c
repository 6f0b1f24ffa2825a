/* Configurations and rows of a LLaMA in GGUF and llama2.c's files. See llama_rows.h. */
#include "formats/llama_rows.h"

#include <math.h>
#include <string.h>

#include "io/config.h"
#include "tensor/internal.h"

/* ---- Configurations ---- */

static int check_model_type(const char *text, const char *where) {
    wg_config *json = wg_config_parse(text, "config.json");
    const char *type = "of no model_type";
    int status = json ? wg_config_text(json, "model_type", &type) : -1;
    if (status == 0 && strcmp(type, "llama") != 0)
        status = wg_fail(WG_ERROR_ARGUMENT, where, "holds a llama only; this model is %.64s", type);
    wg_config_free(json);
    return status;
}

int wg__llama_config_for(wg_llama_config *config, const char *json, const char *where) {
    if (!json)
        return wg_fail(WG_ERROR_ARGUMENT, where, "is written with the model's configuration only");
    if (check_model_type(json, where) < 0 ||
        wg_model_config_from_json(&wg_llama_type, json, config) < 0)
        return -1;
    if (config->hidden_act != WG_GATE_SWIGLU)
        return wg_fail(WG_ERROR_ARGUMENT, where, "holds a llama with hidden_act silu only");
    if (config->rope_scaling.factor != 0)
        return wg_fail(WG_ERROR_ARGUMENT, where,
                       "this format is written without rope_scaling; safetensors and hdf5 keep it");
    if (wg__llama_config_fits(config, INT64_MAX) < 0)
        return wg_fail(WG_ERROR_ARGUMENT, where, "the configuration's sizes do not fit together");
    return 0;
}

int wg__llama_config_fits(const wg_llama_config *c, int64_t bytes) {
    const int64_t most = 1 << 27, sizes[] = {c->hidden_size,
                                             c->intermediate_size,
                                             c->num_hidden_layers,
                                             c->num_attention_heads,
                                             c->num_key_value_heads,
                                             c->vocab_size,
                                             c->max_position_embeddings};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i] < 1 || sizes[i] > most)
            return -1;
    if (c->hidden_size % (2 * c->num_attention_heads) != 0 ||
        c->num_attention_heads % c->num_key_value_heads != 0)
        return -1;
    if (!(c->rms_norm_eps > 0 && isfinite(c->rms_norm_eps) && c->rope_theta > 0 &&
          isfinite(c->rope_theta)))
        return -1;
    /* Layers, words and the inner width each stand for at least hidden_size numbers. */
    const int64_t numbers = bytes > INT64_MAX / 8 ? INT64_MAX : bytes * 8,
                  rows = numbers / c->hidden_size;
    return c->num_hidden_layers > rows || c->vocab_size > rows || c->intermediate_size > rows ? -1
                                                                                              : 0;
}

/* ---- Rows ---- */

int64_t wg__llama_heads_to_reorder(const wg_llama_config *config, const char *name) {
    if (wg__ends_with(name, ".self_attn.q_proj.weight"))
        return config->num_attention_heads;
    if (wg__ends_with(name, ".self_attn.k_proj.weight"))
        return config->num_key_value_heads;
    return 0;
}

static wg_tensor *reorder(const wg_tensor *x, int64_t heads, bool to_halves) {
    const wg_spec *spec = &x->spec;
    if (spec->ndim != 2 || heads < 1 || spec->shape[0] % (2 * heads) != 0) {
        char text[64];
        wg_fail(WG_ERROR_SHAPE, "llama", "%s has no %lld heads of even width",
                wg_spec_text(text, sizeof text, spec), (long long)heads);
        return NULL;
    }
    wg_tensor *result = wg__tensor_new(spec);
    if (!result)
        return NULL;
    const int64_t width = spec->shape[0] / heads, half = width / 2;
    const size_t row = (size_t)spec->shape[1] * wg_dtype_size(spec->dtype);
    if (row == 0) /* then there may be any number of rows */
        return result;
    const char *from = wg__tensor_address(x);
    char *to = wg__tensor_address(result);
    for (int64_t head = 0; head < heads; head++)
        for (int64_t i = 0; i < width; i++) {
            const size_t adjacent = (size_t)(head * width + i),
                         halves = (size_t)(head * width + i % 2 * half + i / 2);
            if (to_halves)
                memcpy(to + halves * row, from + adjacent * row, row);
            else
                memcpy(to + adjacent * row, from + halves * row, row);
        }
    return result;
}

wg_tensor *wg__llama_to_halves(const wg__weights_entry *entry, wg_tensor *x) {
    return entry->extra ? reorder(x, entry->extra, true) : x;
}

wg_tensor *wg__llama_to_adjacent(const wg__weights_slot *slot, wg_tensor *x) {
    return slot->extra ? reorder(x, slot->extra, false) : x;
}
