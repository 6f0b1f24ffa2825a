/* Names, shapes and orders of rows of a LLaMA in other formats. See llama_layout.h. */
#include "io/llama_layout.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/config.h"
#include "tensor/internal.h"

/* ---- Sizes ---- */

static int read_sizes(wg__llama_sizes *sizes, wg_config *json) {
    static const char *const required[] = {"vocab_size", "hidden_size", "intermediate_size",
                                           "num_hidden_layers", "num_attention_heads"};
    *sizes =
        (wg__llama_sizes){.positions = 2048, .eps = 1e-6, .theta = 10000, .begin = 1, .end = 2};
    if (wg_config_require(json, 5, required) < 0)
        return -1;
    wg_config_integer(json, "vocab_size", &sizes->vocabulary);
    wg_config_integer(json, "hidden_size", &sizes->width);
    wg_config_integer(json, "intermediate_size", &sizes->inner);
    wg_config_integer(json, "num_hidden_layers", &sizes->layers);
    wg_config_integer(json, "num_attention_heads", &sizes->heads);
    sizes->key_value_heads = sizes->heads;
    wg_config_integer(json, "num_key_value_heads", &sizes->key_value_heads);
    wg_config_integer(json, "max_position_embeddings", &sizes->positions);
    wg_config_number(json, "rms_norm_eps", &sizes->eps);
    wg_config_number(json, "rope_theta", &sizes->theta);
    wg_config_boolean(json, "tie_word_embeddings", &sizes->tied);
    wg_config_integer(json, "bos_token_id", &sizes->begin);
    return wg_config_first_integer(json, "eos_token_id", &sizes->end);
}

int wg__llama_sizes_read(wg__llama_sizes *sizes, const char *text, const char *where) {
    if (!text)
        return wg_fail(WG_ERROR_ARGUMENT, where, "is written with the model's configuration only");
    wg_config *json = wg_config_parse(text, "config.json");
    const char *type = "of no model_type", *act = "silu";
    int status = json ? wg_config_text(json, "model_type", &type) : -1;
    if (status == 0)
        status = wg_config_text(json, "hidden_act", &act);
    if (status == 0 && strcmp(type, "llama") != 0)
        status = wg_fail(WG_ERROR_ARGUMENT, where, "holds a llama only; this model is %.64s", type);
    if (status == 0 && strcmp(act, "silu") != 0)
        status = wg_fail(WG_ERROR_ARGUMENT, where, "hidden_act must be silu; it is %.64s", act);
    if (status == 0 && wg_config_has(json, "rope_scaling"))
        status =
            wg_fail(WG_ERROR_ARGUMENT, where,
                    "this format is written without rope_scaling; safetensors and hdf5 keep it");
    if (status == 0)
        status = read_sizes(sizes, json);
    wg_config_free(json);
    if (status == 0 && wg__llama_sizes_check(sizes, INT64_MAX) < 0)
        status = wg_fail(WG_ERROR_ARGUMENT, where, "the configuration's sizes do not fit together");
    return status;
}

char *wg__llama_sizes_json(const wg__llama_sizes *sizes) {
    wg_config *json = wg_config_new();
    wg_config_set_text(json, "model_type", "llama");
    wg_config_set_integer(json, "vocab_size", sizes->vocabulary);
    wg_config_set_integer(json, "hidden_size", sizes->width);
    wg_config_set_integer(json, "intermediate_size", sizes->inner);
    wg_config_set_integer(json, "num_hidden_layers", sizes->layers);
    wg_config_set_integer(json, "num_attention_heads", sizes->heads);
    wg_config_set_integer(json, "num_key_value_heads", sizes->key_value_heads);
    wg_config_set_integer(json, "max_position_embeddings", sizes->positions);
    wg_config_set_number(json, "rms_norm_eps", sizes->eps);
    wg_config_set_number(json, "rope_theta", sizes->theta);
    wg_config_set_boolean(json, "tie_word_embeddings", sizes->tied);
    wg_config_set_integer(json, "bos_token_id", sizes->begin);
    wg_config_set_integer(json, "eos_token_id", sizes->end);
    char *text = wg_error_pending() ? NULL : wg_config_to_json(json);
    wg_config_free(json);
    return text;
}

int wg__llama_sizes_check(const wg__llama_sizes *s, int64_t bytes) {
    const int64_t most = 1 << 27,
                  sizes[] = {s->width,           s->inner,      s->layers,   s->heads,
                             s->key_value_heads, s->vocabulary, s->positions};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i] < 1 || sizes[i] > most)
            return -1;
    if (s->width % (2 * s->heads) != 0 || s->heads % s->key_value_heads != 0)
        return -1;
    if (!(s->eps > 0 && isfinite(s->eps) && s->theta > 0 && isfinite(s->theta)))
        return -1;
    /* A layer has more numbers than width and inner; each takes at least four bits. */
    const int64_t numbers = bytes > INT64_MAX / 8 ? INT64_MAX : bytes * 8;
    return s->layers > numbers / s->width || s->vocabulary > numbers / s->width ||
                   s->inner > numbers / s->width
               ? -1
               : 0;
}

/* ---- Rows ---- */

wg_tensor *wg__llama_rows(const wg_tensor *x, int64_t heads, wg__llama_order order) {
    if (!x)
        return NULL;
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
    if (row == 0) /* and there may be any number of them */
        return result;
    const char *from = wg__tensor_address(x);
    char *to = wg__tensor_address(result);
    for (int64_t head = 0; head < heads; head++)
        for (int64_t i = 0; i < width; i++) {
            const size_t adjacent = (size_t)(head * width + i),
                         halves = (size_t)(head * width + i % 2 * half + i / 2);
            if (order == WG__ADJACENT_TO_HALVES)
                memcpy(to + halves * row, from + adjacent * row, row);
            else
                memcpy(to + adjacent * row, from + halves * row, row);
        }
    return result;
}

/* ---- Parts ---- */

const wg__llama_part wg__llama_parts[WG__PART_COUNT] = {
    [WG__TOKENS] = {"model.embed_tokens.weight", "token_embd.weight", false, WG__VOCABULARY,
                    WG__WIDTH},
    [WG__ATTENTION_NORM] = {"input_layernorm.weight", "attn_norm.weight", true, WG__WIDTH,
                            WG__NONE},
    [WG__QUERY] = {"self_attn.q_proj.weight", "attn_q.weight", true, WG__WIDTH, WG__WIDTH},
    [WG__KEY] = {"self_attn.k_proj.weight", "attn_k.weight", true, WG__KEYS, WG__WIDTH},
    [WG__VALUE] = {"self_attn.v_proj.weight", "attn_v.weight", true, WG__KEYS, WG__WIDTH},
    [WG__OUTPUT] = {"self_attn.o_proj.weight", "attn_output.weight", true, WG__WIDTH, WG__WIDTH},
    [WG__NET_NORM] = {"post_attention_layernorm.weight", "ffn_norm.weight", true, WG__WIDTH,
                      WG__NONE},
    [WG__GATE] = {"mlp.gate_proj.weight", "ffn_gate.weight", true, WG__INNER, WG__WIDTH},
    [WG__DOWN] = {"mlp.down_proj.weight", "ffn_down.weight", true, WG__WIDTH, WG__INNER},
    [WG__UP] = {"mlp.up_proj.weight", "ffn_up.weight", true, WG__INNER, WG__WIDTH},
    [WG__NORM] = {"model.norm.weight", "output_norm.weight", false, WG__WIDTH, WG__NONE},
    [WG__HEAD] = {"lm_head.weight", "output.weight", false, WG__VOCABULARY, WG__WIDTH},
};

#define PUBLISHED_LAYER "model.layers."
#define GGUF_LAYER "blk."

const char *wg__llama_published(char *buffer, size_t size, wg__llama_part_id part, int64_t layer) {
    const wg__llama_part *p = &wg__llama_parts[part];
    if (p->by_layer)
        snprintf(buffer, size, PUBLISHED_LAYER "%" PRId64 ".%s", layer, p->published);
    else
        snprintf(buffer, size, "%s", p->published);
    return buffer;
}

static int64_t size_of(const wg__llama_sizes *sizes, wg__llama_dimension dimension) {
    switch (dimension) {
    case WG__WIDTH:
        return sizes->width;
    case WG__INNER:
        return sizes->inner;
    case WG__KEYS:
        return sizes->width / sizes->heads * sizes->key_value_heads;
    case WG__VOCABULARY:
        return sizes->vocabulary;
    default:
        return 0;
    }
}

int wg__llama_shape(const wg__llama_sizes *sizes, wg__llama_part_id part, int64_t *shape) {
    shape[0] = size_of(sizes, wg__llama_parts[part].rows);
    shape[1] = size_of(sizes, wg__llama_parts[part].columns);
    return wg__llama_parts[part].columns == WG__NONE ? 1 : 2;
}

/* PREFIX DIGITS . REST: gives REST and the digits' length, or NULL. */
static const char *after_layer(const char *name, const char *prefix, int *digits) {
    const size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0)
        return NULL;
    *digits = (int)strspn(name + length, "0123456789");
    const char *rest = name + length + *digits;
    return *digits > 0 && *rest == '.' ? rest + 1 : NULL;
}

static bool rename_part(char *buffer, size_t size, const char *name, bool to_gguf) {
    const char *from_layer = to_gguf ? PUBLISHED_LAYER : GGUF_LAYER,
               *to_layer = to_gguf ? GGUF_LAYER : PUBLISHED_LAYER;
    int digits = 0;
    const char *rest = after_layer(name, from_layer, &digits);
    for (int i = 0; i < WG__PART_COUNT; i++) {
        const wg__llama_part *part = &wg__llama_parts[i];
        const char *from = to_gguf ? part->published : part->gguf,
                   *to = to_gguf ? part->gguf : part->published;
        if (part->by_layer != (rest != NULL) || strcmp(rest ? rest : name, from) != 0)
            continue;
        if (rest)
            snprintf(buffer, size, "%s%.*s.%s", to_layer, digits, name + strlen(from_layer), to);
        else
            snprintf(buffer, size, "%s", to);
        return true;
    }
    return false;
}

bool wg__llama_to_gguf(char *buffer, size_t size, const char *published) {
    return rename_part(buffer, size, published, true);
}

bool wg__llama_from_gguf(char *buffer, size_t size, const char *gguf) {
    return rename_part(buffer, size, gguf, false);
}

int64_t wg__llama_ordered_heads(const wg__llama_sizes *sizes, const char *name) {
    int digits;
    const char *rest = after_layer(name, PUBLISHED_LAYER, &digits);
    if (rest && strcmp(rest, wg__llama_parts[WG__QUERY].published) == 0)
        return sizes->heads;
    if (rest && strcmp(rest, wg__llama_parts[WG__KEY].published) == 0)
        return sizes->key_value_heads;
    return 0;
}
