/* GGUF, written: the header of a LLaMA. Vectors stay f32, as llama.cpp wants them. */
#include <string.h>

#include "io/gguf.h"
#include "io/llama_layout.h"
#include "tensor/internal.h"

enum { ALIGNMENT = 32 };

/* ---- Values ---- */

int wg__gguf_add_u32(wg__buffer *header, uint32_t value) {
    uint8_t bytes[4];
    wg__put_le32(bytes, value);
    return wg__buffer_add(header, bytes, 4);
}

static int add_u64(wg__buffer *header, uint64_t value) {
    uint8_t bytes[8];
    wg__put_le64(bytes, value);
    return wg__buffer_add(header, bytes, 8);
}

int wg__gguf_add_f32(wg__buffer *header, double value) {
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return wg__gguf_add_u32(header, bits);
}

int wg__gguf_add_string(wg__buffer *header, const char *text, size_t length) {
    return add_u64(header, length) < 0 ? -1 : wg__buffer_add(header, text, (int64_t)length);
}

static int add_key(wg__buffer *header, const char *key, uint32_t type) {
    return wg__gguf_add_string(header, key, strlen(key)) < 0 ? -1 : wg__gguf_add_u32(header, type);
}

int wg__gguf_put_text(wg__buffer *header, const char *key, const char *value) {
    return add_key(header, key, WG__GGUF_STRING) < 0
               ? -1
               : wg__gguf_add_string(header, value, strlen(value));
}

int wg__gguf_put_u32(wg__buffer *header, const char *key, uint32_t value) {
    return add_key(header, key, WG__GGUF_U32) < 0 ? -1 : wg__gguf_add_u32(header, value);
}

int wg__gguf_put_f32(wg__buffer *header, const char *key, double value) {
    return add_key(header, key, WG__GGUF_F32) < 0 ? -1 : wg__gguf_add_f32(header, value);
}

int wg__gguf_put_bool(wg__buffer *header, const char *key, bool value) {
    return add_key(header, key, WG__GGUF_BOOL) < 0 ? -1
                                                   : wg__buffer_add(header, &(uint8_t){value}, 1);
}

int wg__gguf_put_array(wg__buffer *header, const char *key, uint32_t type, uint64_t count) {
    if (add_key(header, key, WG__GGUF_ARRAY) < 0 || wg__gguf_add_u32(header, type) < 0)
        return -1;
    return add_u64(header, count);
}

/* ---- The metadata ---- */

/* llama.cpp's enum of what most of a file is. */
static uint32_t file_type(wg_weights_type type) {
    switch (type) {
    case WG_WEIGHTS_F16:
        return 1;
    case WG_WEIGHTS_Q8_0:
        return 7;
    case WG_WEIGHTS_BF16:
        return 32;
    default:
        return 0;
    }
}

static int put_metadata(wg__buffer *header, const wg_weights_writer *writer,
                        const wg__llama_sizes *s, int *keys) {
    *keys = 14;
    wg__gguf_put_text(header, "general.architecture", "llama");
    wg__gguf_put_text(header, "general.name", "wengert");
    wg__gguf_put_u32(header, "general.file_type", file_type(writer->type));
    wg__gguf_put_u32(header, "general.quantization_version", 2);
    wg__gguf_put_u32(header, "llama.context_length", (uint32_t)s->positions);
    wg__gguf_put_u32(header, "llama.embedding_length", (uint32_t)s->width);
    wg__gguf_put_u32(header, "llama.block_count", (uint32_t)s->layers);
    wg__gguf_put_u32(header, "llama.feed_forward_length", (uint32_t)s->inner);
    wg__gguf_put_u32(header, "llama.attention.head_count", (uint32_t)s->heads);
    wg__gguf_put_u32(header, "llama.attention.head_count_kv", (uint32_t)s->key_value_heads);
    wg__gguf_put_u32(header, "llama.rope.dimension_count", (uint32_t)(s->width / s->heads));
    wg__gguf_put_f32(header, "llama.rope.freq_base", s->theta);
    wg__gguf_put_f32(header, "llama.attention.layer_norm_rms_epsilon", s->eps);
    wg__gguf_put_u32(header, "llama.vocab_size", (uint32_t)s->vocabulary);
    if (s->begin >= 0) {
        wg__gguf_put_u32(header, "tokenizer.ggml.bos_token_id", (uint32_t)s->begin);
        ++*keys;
    }
    if (s->end >= 0) {
        wg__gguf_put_u32(header, "tokenizer.ggml.eos_token_id", (uint32_t)s->end);
        ++*keys;
    }
    if (wg_error_pending())
        return -1;
    return wg__gguf_put_tokenizer(header, writer->options->tokenizer, s->vocabulary, keys);
}

/* ---- The tensors ---- */

static wg__stored stored_for(wg_weights_type type, const wg_spec *spec) {
    if (spec->ndim < 2)
        return WG__STORED_F32;
    if (type == WG_WEIGHTS_KEEP)
        return spec->dtype == WG_BF16 ? WG__STORED_BF16 : WG__STORED_F32;
    const wg__stored stored = wg__stored_for(type, WG_F32);
    return wg__stored_bytes(stored, spec->ndim, spec->shape) < 0 ? WG__STORED_F16 : stored;
}

static uint32_t type_of(wg__stored stored) {
    switch (stored) {
    case WG__STORED_F16:
        return 1;
    case WG__STORED_Q8_0:
        return 8;
    case WG__STORED_BF16:
        return 30;
    default:
        return 0;
    }
}

static int put_info(wg__buffer *header, const wg__weights_slot *slot, const char *name) {
    if (wg__gguf_add_string(header, name, strlen(name)) < 0 ||
        wg__gguf_add_u32(header, (uint32_t)slot->spec.ndim) < 0)
        return -1;
    for (int i = slot->spec.ndim - 1; i >= 0; i--)
        if (add_u64(header, (uint64_t)slot->spec.shape[i]) < 0)
            return -1;
    return wg__gguf_add_u32(header, type_of(slot->stored)) < 0
               ? -1
               : add_u64(header, (uint64_t)slot->offset);
}

/* Offsets are from the header's end. */
static int put_tensors(wg__buffer *header, wg_weights_writer *writer,
                       const wg__llama_sizes *sizes) {
    int64_t offset = 0;
    char name[WG__MAX_TENSOR_NAME + 32];
    for (int64_t i = 0; i < writer->count; i++) {
        wg__weights_slot *slot = &writer->slots[i];
        if (!wg__llama_to_gguf(name, sizeof name, slot->name))
            return wg_fail(WG_ERROR_ARGUMENT, "gguf", "%s is no tensor of a llama", slot->name);
        if (!wg_dtype_is_float(slot->spec.dtype))
            return wg_fail(WG_ERROR_ARGUMENT, "gguf", "%s is not of a floating dtype", slot->name);
        slot->stored = stored_for(writer->type, &slot->spec);
        slot->bytes = wg__stored_bytes(slot->stored, slot->spec.ndim, slot->spec.shape);
        slot->adjacent_heads = wg__llama_ordered_heads(sizes, slot->name);
        slot->offset = offset;
        if (put_info(header, slot, name) < 0)
            return -1;
        offset += (slot->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return 0;
}

static int write_header(wg_weights_writer *writer, const wg__buffer *body, int keys) {
    uint8_t begin[24] = "GGUF", zeros[ALIGNMENT] = {0};
    wg__put_le32(begin + 4, 3);
    wg__put_le64(begin + 8, (uint64_t)writer->count);
    wg__put_le64(begin + 16, (uint64_t)keys);
    const int64_t end = 24 + body->count, data = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (wg__output_write(writer->output, 0, begin, 24) < 0 ||
        wg__output_write(writer->output, 24, body->bytes, body->count) < 0 ||
        wg__output_write(writer->output, end, zeros, data - end) < 0)
        return -1;
    for (int64_t i = 0; i < writer->count; i++) {
        wg__weights_slot *slot = &writer->slots[i];
        slot->offset += data;
        /* the padding after it, too: readers map the file up to there */
        const int64_t stop = slot->offset + slot->bytes, padding = -stop & (ALIGNMENT - 1);
        if (wg__output_write(writer->output, stop, zeros, padding) < 0)
            return -1;
    }
    return 0;
}

static int begin_gguf(wg_weights_writer *writer) {
    wg__llama_sizes sizes;
    if (wg__llama_sizes_read(&sizes, writer->options->config, "gguf") < 0)
        return -1;
    wg__buffer body = {0};
    int keys;
    int status = put_metadata(&body, writer, &sizes, &keys);
    if (status == 0)
        status = put_tensors(&body, writer, &sizes);
    if (status == 0)
        status = write_header(writer, &body, keys);
    wg__buffer_free(&body);
    return status;
}

const wg__weights_kind wg__gguf_writer = {.name = "gguf", .begin = begin_gguf};
