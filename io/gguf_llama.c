/* A LLaMA in GGUF: its configuration and its tokenizer as llama.cpp's keys, and its tensors' names.
 */
#include <stdlib.h>
#include <string.h>

#include "io/gguf.h"
#include "io/llama_layout.h"
#include "tensor/internal.h"

/* ---- Reading: the configuration ---- */

static int take_size(const wg_weights *file, const json_t *metadata, const char *key,
                     int64_t *size) {
    const json_t *value = json_object_get(metadata, key);
    if (!value && *size)
        return 0;
    if (!json_is_integer(value))
        return wg__weights_fail(file, "%s is missing or no integer", key);
    *size = json_integer_value(value);
    return 0;
}

static int take_number(const wg_weights *file, const json_t *metadata, const char *key,
                       double *number) {
    const json_t *value = json_object_get(metadata, key);
    if (!value)
        return 0;
    if (!json_is_number(value))
        return wg__weights_fail(file, "%s is no number", key);
    *number = json_number_value(value);
    return 0;
}

/* An f32 that was written for a short decimal: 1e-5, not 9.99999974e-06. */
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

/* The table of tokens tells the vocabulary; what it has no key for. */
static int take_vocabulary(const wg_weights *file, wg__llama_sizes *sizes) {
    for (int64_t i = 0; i < file->count; i++)
        if (strcmp(file->entries[i].name, wg__llama_parts[WG__TOKENS].gguf) == 0 &&
            file->entries[i].spec.ndim == 2)
            sizes->vocabulary = file->entries[i].spec.shape[0];
        else if (strcmp(file->entries[i].name, wg__llama_parts[WG__HEAD].gguf) == 0)
            sizes->tied = false;
    return sizes->vocabulary ? 0 : wg__weights_fail(file, "has no token_embd.weight");
}

static int take_sizes(const wg_weights *file, const json_t *metadata, wg__llama_sizes *s) {
    *s = (wg__llama_sizes){.eps = 1e-5, .theta = 10000, .tied = true};
    int64_t rotated = 0, begin = 1, end = 2;
    if (take_size(file, metadata, "llama.embedding_length", &s->width) < 0 ||
        take_size(file, metadata, "llama.feed_forward_length", &s->inner) < 0 ||
        take_size(file, metadata, "llama.block_count", &s->layers) < 0 ||
        take_size(file, metadata, "llama.attention.head_count", &s->heads) < 0 ||
        take_size(file, metadata, "llama.context_length", &s->positions) < 0)
        return -1;
    s->key_value_heads = s->heads;
    if (take_size(file, metadata, "llama.attention.head_count_kv", &s->key_value_heads) < 0 ||
        take_number(file, metadata, "llama.attention.layer_norm_rms_epsilon", &s->eps) < 0 ||
        take_number(file, metadata, "llama.rope.freq_base", &s->theta) < 0 ||
        take_size(file, metadata, "tokenizer.ggml.bos_token_id", &begin) < 0 ||
        take_size(file, metadata, "tokenizer.ggml.eos_token_id", &end) < 0 ||
        take_vocabulary(file, s) < 0)
        return -1;
    s->eps = short_decimal(s->eps);
    s->theta = short_decimal(s->theta);
    s->begin = begin < s->vocabulary ? begin : -1;
    s->end = end < s->vocabulary ? end : -1;
    if (wg__llama_sizes_check(s, file->files[0].size) < 0)
        return wg__weights_fail(file, "the sizes of its metadata do not fit each other");
    rotated = s->width / s->heads;
    if (take_size(file, metadata, "llama.rope.dimension_count", &rotated) < 0)
        return -1;
    if (rotated != s->width / s->heads || json_object_get(metadata, "llama.rope.scaling.type"))
        return wg__weights_fail(file, "turns a part of each head, or scales positions; that is not "
                                      "read yet");
    return 0;
}

static int rename_tensors(wg_weights *file, const wg__llama_sizes *sizes) {
    char name[WG__MAX_TENSOR_NAME + 32];
    for (int64_t i = 0; i < file->count; i++) {
        wg__weights_entry *entry = &file->entries[i];
        if (!wg__llama_from_gguf(name, sizeof name, entry->name))
            continue;
        char *copy = wg__strdup(name);
        if (!copy)
            return -1;
        wg__free(entry->name);
        entry->name = copy;
        entry->adjacent_heads = wg__llama_ordered_heads(sizes, name);
        if (entry->adjacent_heads &&
            (entry->spec.ndim != 2 || entry->spec.shape[0] % (2 * entry->adjacent_heads) != 0))
            return wg__weights_fail(file, "%.200s does not have %lld heads of even width", name,
                                    (long long)entry->adjacent_heads);
    }
    return 0;
}

int wg__gguf_take_llama(wg_weights *file, const json_t *metadata) {
    wg__llama_sizes sizes;
    if (take_sizes(file, metadata, &sizes) < 0 || rename_tensors(file, &sizes) < 0)
        return -1;
    file->config = wg__llama_sizes_json(&sizes);
    return file->config ? wg__gguf_take_tokenizer(metadata, &file->tokenizer) : -1;
}
