/* A LLaMA in GGUF, read and written: names, configuration and tensors. See internal.h. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "formats/internal.h"
#include "io/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"

enum { ALIGNMENT = 32 };

#define PUBLISHED_LAYER "model.layers."
#define GGUF_LAYER "blk."

static const struct {
    const char *published, *gguf; /* of a layer: without "model.layers.N." and "blk.N." */
    bool by_layer;
} names[] = {
    {"model.embed_tokens.weight", "token_embd.weight", false},
    {"input_layernorm.weight", "attn_norm.weight", true},
    {"self_attn.q_proj.weight", "attn_q.weight", true},
    {"self_attn.k_proj.weight", "attn_k.weight", true},
    {"self_attn.v_proj.weight", "attn_v.weight", true},
    {"self_attn.o_proj.weight", "attn_output.weight", true},
    {"post_attention_layernorm.weight", "ffn_norm.weight", true},
    {"mlp.gate_proj.weight", "ffn_gate.weight", true},
    {"mlp.down_proj.weight", "ffn_down.weight", true},
    {"mlp.up_proj.weight", "ffn_up.weight", true},
    {"model.norm.weight", "output_norm.weight", false},
    {"lm_head.weight", "output.weight", false},
};

static bool translate_name(char *buffer, size_t size, const char *name, bool to_gguf) {
    const char *from_layer = to_gguf ? PUBLISHED_LAYER : GGUF_LAYER,
               *to_layer = to_gguf ? GGUF_LAYER : PUBLISHED_LAYER;
    const size_t length = strlen(from_layer);
    const bool by_layer = strncmp(name, from_layer, length) == 0;
    const int digits = by_layer ? (int)strspn(name + length, "0123456789") : 0;
    const bool is_layer = digits > 0 && name[length + (size_t)digits] == '.';
    const char *rest = is_layer ? name + length + digits + 1 : NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *from = to_gguf ? names[i].published : names[i].gguf,
                   *to = to_gguf ? names[i].gguf : names[i].published;
        if (names[i].by_layer != (rest != NULL) || strcmp(rest ? rest : name, from) != 0)
            continue;
        if (rest)
            snprintf(buffer, size, "%s%.*s.%s", to_layer, digits, name + strlen(from_layer), to);
        else
            snprintf(buffer, size, "%s", to);
        return true;
    }
    return false;
}

static int read_size(const wg_weights *file, const json_t *metadata, const char *key,
                     int64_t *size) {
    const json_t *value = json_object_get(metadata, key);
    if (!value && *size)
        return 0;
    if (!json_is_integer(value))
        return wg__weights_fail(file, "%s is missing or no integer", key);
    *size = json_integer_value(value);
    return 0;
}

static int read_number(const wg_weights *file, const json_t *metadata, const char *key,
                       double *number) {
    const json_t *value = json_object_get(metadata, key);
    if (!value)
        return 0;
    if (!json_is_number(value))
        return wg__weights_fail(file, "%s is no number", key);
    *number = json_number_value(value);
    return 0;
}

/* The shortest decimal that rounds to the same f32: 1e-5, not 9.99999974e-06. */
static double short_decimal(double value) {
    for (int digits = 1; digits < 9; digits++) {
        char text[32];
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
        const double read = strtod(text, NULL);
        if ((float)read == (float)value)
            return read;
    }
    return value;
}

/* Positions are divided by a factor. Without a type it is linear, also under the older key. */
static int read_scaling(const wg_weights *file, const json_t *metadata, wg_llama_config *c) {
    const json_t *type = json_object_get(metadata, "llama.rope.scaling.type");
    const char *name = type ? json_string_value(type) : "linear";
    double factor = 0;
    if (!name || (strcmp(name, "linear") != 0 && strcmp(name, "none") != 0))
        return wg__weights_fail(file,
                                "llama.rope.scaling.type is \"%.64s\"; positions are scaled as "
                                "\"linear\" or \"none\" only",
                                name ? name : "no text");
    if (read_number(file, metadata, "llama.rope.scale_linear", &factor) < 0 ||
        read_number(file, metadata, "llama.rope.scaling.factor", &factor) < 0)
        return -1;
    if (strcmp(name, "linear") == 0 && factor != 1)
        c->rope_scaling.factor = short_decimal(factor);
    return 0;
}

/* Every key of the architecture is read by read_config, is known to change nothing, or is refused.
 * A key that changes the computation must have `value` or `other`: with these our LLaMA computes
 * the same. Keys that other programs add have other prefixes. */
static int check_keys(const wg_weights *file, const wg_llama_config *c, const json_t *metadata) {
    const double width = (double)(c->hidden_size / c->num_attention_heads);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)metadata, key, value) {
        const double found =
                         json_is_boolean(value) ? json_is_true(value) : json_number_value(value),
                     all = found >= (double)c->max_position_embeddings ? found : 0;
        const struct {
            const char *key;
            double value, other;
        } rows[] = {
            {"llama.attention.causal", 1, 1},
            {"llama.attention.clamp_kqv", 0, 0},
            {"llama.attention.key_length", width, width},
            {"llama.attention.max_alibi_bias", 0, 0},
            {"llama.attention.scale", 1 / sqrt(width), 0},
            {"llama.attention.sliding_window", 0, all},
            {"llama.attention.value_length", width, width},
            {"llama.expert_count", 0, 0},
            {"llama.expert_used_count", 0, 0},
            {"llama.rope.dimension_count", width, width},
            {"llama.rope.scaling.attn_factor", 1, 0},
            {"llama.use_parallel_residual", 0, 0},
            {"llama.vocab_size", (double)c->vocab_size, (double)c->vocab_size},
        };
        const char *layout = json_string_value(value);
        const bool is_other = strncmp(key, "llama.", 6) != 0;
        bool known = is_other || (strcmp(key, "llama.tensor_data_layout") == 0 && layout &&
                                  strcmp(layout, "Meta AI original pth") == 0);
        known = known ||
                wg__is_among(key + 6,
                             WG_NAMES("attention.head_count", "attention.head_count_kv",
                                      "attention.layer_norm_epsilon",
                                      "attention.layer_norm_rms_epsilon", "block_count",
                                      "context_length", "embedding_length", "feed_forward_length",
                                      "rope.freq_base", "rope.scale_linear", "rope.scaling.factor",
                                      "rope.scaling.finetuned",
                                      "rope.scaling.original_context_length", "rope.scaling.type"));
        for (size_t i = 0; !known && i < sizeof rows / sizeof rows[0]; i++) {
            known = strcmp(key, rows[i].key) == 0;
            if (known && (float)found != (float)rows[i].value &&
                (float)found != (float)rows[i].other)
                return wg__weights_fail(file, "%s is %g; only %g is read", key, found,
                                        rows[i].value);
        }
        if (!known)
            return wg__weights_fail(file,
                                    "the key %.100s is not known here; it may change what the "
                                    "model computes",
                                    key);
    }
    return 0;
}

static int read_config(const wg_weights *file, const json_t *metadata, wg_llama_config *c) {
    *c = (wg_llama_config){.hidden_act = WG_GATE_SWIGLU,
                           .rms_norm_eps = 1e-5,
                           .rope_theta = 10000,
                           .initializer_range = 0.02};
    int64_t begin = 1, end = 2;
    if (read_size(file, metadata, "llama.embedding_length", &c->hidden_size) < 0 ||
        read_size(file, metadata, "llama.feed_forward_length", &c->intermediate_size) < 0 ||
        read_size(file, metadata, "llama.block_count", &c->num_hidden_layers) < 0 ||
        read_size(file, metadata, "llama.attention.head_count", &c->num_attention_heads) < 0 ||
        read_size(file, metadata, "llama.context_length", &c->max_position_embeddings) < 0)
        return -1;
    c->num_key_value_heads = c->num_attention_heads;
    if (read_size(file, metadata, "llama.attention.head_count_kv", &c->num_key_value_heads) < 0 ||
        read_number(file, metadata, "llama.attention.layer_norm_rms_epsilon", &c->rms_norm_eps) <
            0 ||
        read_number(file, metadata, "llama.rope.freq_base", &c->rope_theta) < 0 ||
        read_size(file, metadata, "tokenizer.ggml.bos_token_id", &begin) < 0 ||
        read_size(file, metadata, "tokenizer.ggml.eos_token_id", &end) < 0)
        return -1;
    /* The vocabulary has no key: the table of tokens has its size. An output.weight is an untied
     * head. */
    c->vocab_size = 0;
    c->tie_word_embeddings = true;
    for (int64_t i = 0; i < file->count; i++)
        if (strcmp(file->entries[i].name, "token_embd.weight") == 0 &&
            file->entries[i].spec.ndim == 2)
            c->vocab_size = file->entries[i].spec.shape[0];
        else if (strcmp(file->entries[i].name, "output.weight") == 0)
            c->tie_word_embeddings = false;
        else if (strcmp(file->entries[i].name, "rope_freqs.weight") == 0)
            return wg__weights_fail(file, "rope_freqs.weight scales the positions of each "
                                          "frequency, as in LLaMA 3.1, and is not read from GGUF; "
                                          "convert the model's folder");
    if (!c->vocab_size)
        return wg__weights_fail(file, "has no token_embd.weight");
    c->rms_norm_eps = short_decimal(c->rms_norm_eps);
    c->rope_theta = short_decimal(c->rope_theta);
    c->bos_token_id = begin < c->vocab_size ? begin : -1;
    c->eos_token_id = end < c->vocab_size ? end : -1;
    if (wg__llama_config_fits(c, file->files[0].size) < 0)
        return wg__weights_fail(file, "the sizes of its metadata do not fit each other");
    if (read_scaling(file, metadata, c) < 0 || check_keys(file, c, metadata) < 0)
        return -1;
    const json_t *type = json_object_get(metadata, "general.type"),
                 *parts = json_object_get(metadata, "split.count");
    if (type && strcmp(json_is_string(type) ? json_string_value(type) : "", "model") != 0)
        return wg__weights_fail(file, "general.type is no \"model\": it holds something else");
    if (json_integer_value(parts) > 1)
        return wg__weights_fail(file,
                                "split.count is %lld: it is one of several files; join them "
                                "by llama-gguf-split --merge",
                                (long long)json_integer_value(parts));
    return 0;
}

static int read_llama(wg_weights *file, const json_t *metadata) {
    wg_llama_config config;
    if (read_config(file, metadata, &config) < 0)
        return -1;
    char name[WG__MAX_TENSOR_NAME + 32];
    for (int64_t i = 0; i < file->count; i++) {
        wg__weights_entry *entry = &file->entries[i];
        if (!translate_name(name, sizeof name, entry->name, false))
            continue;
        char *copy = wg__strdup(name);
        if (!copy)
            return -1;
        wg__free(entry->name);
        entry->name = copy;
        entry->extra = wg__llama_heads_to_reorder(&config, name);
        if (entry->extra &&
            (entry->spec.ndim != 2 || entry->spec.shape[0] % (2 * entry->extra) != 0))
            return wg__weights_fail(file, "%.200s does not have %lld heads of even width", name,
                                    (long long)entry->extra);
    }
    char *plain = wg_model_config_to_json(&wg_llama_type, &config);
    wg_config *json = plain ? wg__config_parse(plain, file->path) : NULL;
    /* eos_token_id becomes a list if llama.cpp ends texts by more tokens. */
    static const char *const keys[] = {"tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    const int64_t end = config.eos_token_id;
    json_t *ends = json_array();
    if (end >= 0)
        wg__json_append(&ends, json_integer(end));
    for (int i = 0; i < 2; i++) {
        const json_t *id = json_object_get(metadata, keys[i]);
        if (json_is_integer(id) && json_integer_value(id) != end)
            wg__json_append(&ends, json_integer(json_integer_value(id)));
    }
    if (json && json_array_size(ends) > (size_t)(end >= 0))
        wg__config_set(json, "eos_token_id", json_incref(ends));
    json_decref(ends);
    if (json && !wg_error_pending())
        file->config = wg__config_to_json(json);
    wg__config_free(json);
    wg_text_free(plain);
    return file->config
               ? wg__gguf_read_tokenizer(metadata, &file->tokenizer, &file->tokenizer_refused)
               : -1;
}

static int list_gguf(wg_weights *file, int index) {
    (void)index; /* there is one file */
    json_t *metadata;
    if (wg__gguf_read(file, &metadata) < 0)
        return -1;
    const char *architecture = json_string_value(json_object_get(metadata, "general.architecture"));
    int status = wg__weights_keep_metadata(file, metadata);
    if (status == 0 && architecture && strcmp(architecture, "llama") == 0)
        status = read_llama(file, metadata);
    json_decref(metadata);
    return status;
}

const wg__weights_reader wg__weights_gguf = {
    .name = "gguf", .list = list_gguf, .arrange = wg__llama_to_halves};

static int write_metadata(wg__text *header, const wg_weights_writer *writer,
                          const wg_llama_config *c, const char *tokenizer, int *keys) {
    const int64_t file_type = writer->type == WG_WEIGHTS_F16    ? 1
                              : writer->type == WG_WEIGHTS_Q8_0 ? 7
                              : writer->type == WG_WEIGHTS_BF16 ? 32
                                                                : 0;
    const struct {
        const char *key;
        uint32_t type;
        int64_t bits; /* -1: no key */
    } rows[] = {
        {"general.file_type", WG__GGUF_U32, file_type},
        {"general.quantization_version", WG__GGUF_U32, 2},
        {"llama.context_length", WG__GGUF_U32, c->max_position_embeddings},
        {"llama.embedding_length", WG__GGUF_U32, c->hidden_size},
        {"llama.block_count", WG__GGUF_U32, c->num_hidden_layers},
        {"llama.feed_forward_length", WG__GGUF_U32, c->intermediate_size},
        {"llama.attention.head_count", WG__GGUF_U32, c->num_attention_heads},
        {"llama.attention.head_count_kv", WG__GGUF_U32, c->num_key_value_heads},
        {"llama.rope.dimension_count", WG__GGUF_U32, c->hidden_size / c->num_attention_heads},
        {"llama.rope.freq_base", WG__GGUF_F32, wg__gguf_f32(c->rope_theta)},
        {"llama.attention.layer_norm_rms_epsilon", WG__GGUF_F32, wg__gguf_f32(c->rms_norm_eps)},
        {"llama.vocab_size", WG__GGUF_U32, c->vocab_size},
        {"tokenizer.ggml.bos_token_id", WG__GGUF_U32, c->bos_token_id},
        {"tokenizer.ggml.eos_token_id", WG__GGUF_U32, c->eos_token_id},
    };
    *keys = 2;
    wg__gguf_write_text(header, "general.architecture", "llama");
    wg__gguf_write_text(header, "general.name", "wengert");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].bits >= 0) {
            wg__gguf_write(header, rows[i].key, rows[i].type, (uint64_t)rows[i].bits);
            ++*keys;
        }
    if (wg_error_pending())
        return -1;
    return wg__gguf_write_tokenizer(header, tokenizer, c->vocab_size, keys);
}

/* Vectors stay f32: llama.cpp requires it. */
static wg__storage_dtype storage_for(wg_weights_type type, const wg_spec *spec) {
    if (spec->ndim < 2)
        return WG__STORAGE_F32;
    if (type == WG_WEIGHTS_KEEP)
        return spec->dtype == WG_BF16 ? WG__STORAGE_BF16 : WG__STORAGE_F32;
    const wg__storage_dtype storage = wg__storage_for(type, WG_F32);
    return wg__storage_bytes(storage, spec->ndim, spec->shape) < 0 ? WG__STORAGE_F16 : storage;
}

static int write_tensor_infos(wg__text *header, wg_weights_writer *writer,
                              const wg_llama_config *config) {
    int64_t offset = 0;
    char name[WG__MAX_TENSOR_NAME + 32];
    for (int64_t i = 0; i < writer->count; i++) {
        wg__weights_slot *slot = &writer->slots[i];
        if (!translate_name(name, sizeof name, slot->name, true))
            return wg_fail(WG_ERROR_ARGUMENT, "gguf", "%s is no tensor of a llama", slot->name);
        if (!wg_dtype_is_float(slot->spec.dtype))
            return wg_fail(WG_ERROR_ARGUMENT, "gguf", "%s is not of a floating dtype", slot->name);
        slot->storage = storage_for(writer->type, &slot->spec);
        slot->bytes = wg__storage_bytes(slot->storage, slot->spec.ndim, slot->spec.shape);
        slot->extra = wg__llama_heads_to_reorder(config, slot->name);
        slot->offset = offset;
        wg__gguf_append_string(header, name, strlen(name));
        wg__gguf_append(header, WG__GGUF_U32, (uint32_t)slot->spec.ndim);
        for (int axis = slot->spec.ndim - 1; axis >= 0; axis--)
            wg__gguf_append(header, WG__GGUF_U64, (uint64_t)slot->spec.shape[axis]);
        wg__gguf_append(header, WG__GGUF_U32, wg__gguf_type_of(slot->storage));
        wg__gguf_append(header, WG__GGUF_U64, (uint64_t)slot->offset);
        offset += (slot->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return wg_error_pending() ? -1 : 0;
}

static int begin_gguf(wg_weights_writer *writer, const wg_weights_options *options) {
    wg_llama_config config;
    if (wg__llama_config_for(&config, options->config, "gguf") < 0)
        return -1;
    wg__text body = {0};
    int keys, status = -1;
    if (write_metadata(&body, writer, &config, options->tokenizer, &keys) == 0)
        status = write_tensor_infos(&body, writer, &config);
    uint8_t begin[24] = "GGUF", zeros[ALIGNMENT] = {0};
    wg__put_le(begin + 4, 3, 4);
    wg__put_le(begin + 8, (uint64_t)writer->count, 8);
    wg__put_le(begin + 16, (uint64_t)keys, 8);
    const int64_t end = 24 + body.length, data = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (status < 0 || wg__output_write(&writer->output, 0, begin, 24) < 0 ||
        wg__output_write(&writer->output, 24, body.bytes, body.length) < 0 ||
        wg__output_write(&writer->output, end, zeros, data - end) < 0)
        status = -1;
    for (int64_t i = 0; status == 0 && i < writer->count; i++) {
        wg__weights_slot *slot = &writer->slots[i];
        slot->offset += data;
        /* with the padding after it: readers map the file up to the padding's end */
        const int64_t stop = slot->offset + slot->bytes, padding = -stop & (ALIGNMENT - 1);
        status = wg__output_write(&writer->output, stop, zeros, padding);
    }
    wg__free(body.bytes);
    return status;
}

const wg__weights_format wg__gguf_writer = {
    .name = "gguf", .begin = begin_gguf, .arrange = wg__llama_to_adjacent};
