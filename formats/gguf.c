/* GGUF, llama.cpp's format, read and written. See gguf.h.
 *
 * The header is read through a window, so that no count in it is believed before the file has bytes
 * for it. */
#include "formats/gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/llama_rows.h"
#include "tensor/internal.h"

enum {
    ALIGNMENT = 32,
    WINDOW = 65536,
    MOST_TEXT = 1 << 24,
    MOST_KEYS = 65536,
    MOST_VALUES = 1 << 24
};

/* ---- GGUF's names of a LLaMA's tensors ---- */

#define PUBLISHED_LAYER "model.layers."
#define GGUF_LAYER "blk."

static const struct {
    const char *published, *gguf; /* of a layer: what follows "model.layers.N." and "blk.N." */
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

/* Of "PREFIX digits . rest": the rest, and the number of digits; else NULL. */
static const char *after_layer(const char *name, const char *prefix, int *digits) {
    const size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0)
        return NULL;
    *digits = (int)strspn(name + length, "0123456789");
    const char *rest = name + length + *digits;
    return *digits > 0 && *rest == '.' ? rest + 1 : NULL;
}

/* Writes the other name of a tensor; false if it has none. */
static bool translate_name(char *buffer, size_t size, const char *name, bool to_gguf) {
    const char *from_layer = to_gguf ? PUBLISHED_LAYER : GGUF_LAYER,
               *to_layer = to_gguf ? GGUF_LAYER : PUBLISHED_LAYER;
    int digits = 0;
    const char *rest = after_layer(name, from_layer, &digits);
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

/* ---- Types of tensors ---- */

static const struct {
    uint32_t type;
    wg__storage_dtype storage;
} types[] = {
    {0, WG__STORAGE_F32},  {1, WG__STORAGE_F16},  {2, WG__STORAGE_Q4_0}, {8, WG__STORAGE_Q8_0},
    {26, WG__STORAGE_I32}, {27, WG__STORAGE_I64}, {28, WG__STORAGE_F64}, {30, WG__STORAGE_BF16},
};

/* ---- Reading: bytes ---- */

typedef struct cursor {
    wg_weights *file;
    const wg__input *input;
    int64_t at;           /* offset in the file */
    int64_t begin, count; /* of the bytes in the window */
    uint8_t *window;
} cursor;

/* The next `count` bytes, no more than the window, or NULL. */
static const uint8_t *take(cursor *c, int64_t count) {
    if (c->at + count > c->begin + c->count || c->at < c->begin) {
        const int64_t rest = c->input->size - c->at, room = rest < WINDOW ? rest : WINDOW;
        if (count > rest) {
            wg__weights_fail(c->file, "ends in the middle of its header, at byte %lld",
                             (long long)c->at);
            return NULL;
        }
        if (wg__input_read(c->input, c->at, c->window, room) < 0)
            return NULL;
        c->begin = c->at;
        c->count = room;
    }
    const uint8_t *bytes = c->window + (c->at - c->begin);
    c->at += count;
    return bytes;
}

static int take_u32(cursor *c, uint32_t *value) {
    const uint8_t *bytes = take(c, 4);
    *value = bytes ? wg__le32(bytes) : 0;
    return bytes ? 0 : -1;
}

static int take_u64(cursor *c, uint64_t *value) {
    const uint8_t *bytes = take(c, 8);
    *value = bytes ? wg__le64(bytes) : 0;
    return bytes ? 0 : -1;
}

/* Reads a count of items that take at least `size` bytes each. */
static int take_count(cursor *c, const char *what, int64_t size, int64_t most, int64_t *count) {
    uint64_t value;
    if (take_u64(c, &value) < 0)
        return -1;
    if (value > (uint64_t)most || (int64_t)value > (c->input->size - c->at) / size)
        return wg__weights_fail(c->file, "%llu %s at byte %lld; the file has no room for them",
                                (unsigned long long)value, what, (long long)c->at);
    *count = (int64_t)value;
    return 0;
}

/* The caller frees *text with wg__free; its length is less than 2^24. */
static int take_string(cursor *c, char **text, int64_t *length) {
    if (take_count(c, "bytes of a text", 1, MOST_TEXT, length) < 0)
        return -1;
    *text = wg__alloc((size_t)*length + 1);
    if (!*text)
        return -1;
    for (int64_t done = 0; done < *length;) {
        const int64_t part = *length - done < WINDOW ? *length - done : WINDOW;
        const uint8_t *bytes = take(c, part);
        if (!bytes) {
            wg__free(*text);
            return -1;
        }
        memcpy(*text + done, bytes, (size_t)part);
        done += part;
    }
    (*text)[*length] = '\0';
    return 0;
}

/* ---- Reading: metadata ---- */

static const int8_t sizes[WG__GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

static json_t *number_of(uint32_t type, const uint8_t *bytes) {
    float single;
    double real;
    uint64_t bits = 0;
    for (int i = 0; i < sizes[type]; i++)
        bits |= (uint64_t)bytes[i] << 8 * i;
    const uint32_t low = (uint32_t)bits;
    switch (type) {
    case WG__GGUF_I8:
        return json_integer((int8_t)bits);
    case WG__GGUF_I16:
        return json_integer((int16_t)bits);
    case WG__GGUF_I32:
        return json_integer((int32_t)bits);
    case WG__GGUF_F32:
        memcpy(&single, &low, sizeof single);
        return isfinite(single) ? json_real((double)single) : json_null();
    case WG__GGUF_F64:
        memcpy(&real, &bits, sizeof real);
        return isfinite(real) ? json_real(real) : json_null();
    case WG__GGUF_BOOL:
        return json_boolean(bits);
    case WG__GGUF_U64: /* nothing that is counted exceeds 2^63 - 1 */
        return bits > INT64_MAX ? json_null() : json_integer((json_int_t)bits);
    default:
        return json_integer((json_int_t)bits);
    }
}

/* A text that is not UTF-8 becomes null: a token may be any bytes. */
static json_t *take_text(cursor *c) {
    char *text;
    int64_t length;
    if (take_string(c, &text, &length) < 0)
        return NULL;
    json_t *value = json_stringn(text, (size_t)length);
    wg__free(text);
    return value ? value : json_null();
}

static json_t *take_scalar(cursor *c, uint32_t type) {
    if (type == WG__GGUF_STRING)
        return take_text(c);
    const uint8_t *bytes = take(c, sizes[type]);
    return bytes ? number_of(type, bytes) : NULL;
}

/* Refuses lists of lists, which nothing here needs. */
static json_t *take_list(cursor *c, const char *key) {
    uint32_t type;
    int64_t count;
    if (take_u32(c, &type) < 0)
        return NULL;
    if (type >= WG__GGUF_TYPES || type == WG__GGUF_ARRAY) {
        wg__weights_fail(c->file, "%.100s is a list of values of type %u, which are not read", key,
                         type);
        return NULL;
    }
    if (take_count(c, "values of a list", sizes[type], MOST_VALUES, &count) < 0)
        return NULL;
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++)
        if (json_array_append_new(list, take_scalar(c, type)) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static int take_pair(cursor *c, json_t *metadata) {
    char *key;
    int64_t length;
    uint32_t type;
    if (take_string(c, &key, &length) < 0)
        return -1;
    int status = take_u32(c, &type);
    if (status == 0 && (length == 0 || strlen(key) != (size_t)length || length > 1024))
        status = wg__weights_fail(c->file, "has a key without a length of 1 to 1024 bytes");
    if (status == 0 && type >= WG__GGUF_TYPES)
        status = wg__weights_fail(c->file, "%.100s is of the unknown type %u", key, type);
    if (status == 0 && json_object_get(metadata, key))
        status = wg__weights_fail(c->file, "%.100s stands twice in it", key);
    json_t *value = NULL;
    if (status == 0)
        value = type == WG__GGUF_ARRAY ? take_list(c, key) : take_scalar(c, type);
    if (status == 0 && (!value || json_object_set_new(metadata, key, value) < 0))
        status = wg__weights_fail(c->file, "a key or value cannot be taken: no UTF-8 or no memory");
    wg__free(key);
    return status;
}

/* ---- Reading: tensors ---- */

static int take_type(cursor *c, const char *name, wg__weights_entry *entry) {
    uint32_t type;
    if (take_u32(c, &type) < 0)
        return -1;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].type == type) {
            entry->storage = types[i].storage;
            entry->spec.dtype = wg__storage_read_as(entry->storage);
            return 0;
        }
    return wg__weights_fail(
        c->file, "%.200s is of ggml's type %u; F32, F16, BF16, Q8_0 and Q4_0 are read", name, type);
}

static int take_shape(cursor *c, const char *name, wg__weights_entry *entry) {
    uint32_t ndim;
    if (take_u32(c, &ndim) < 0)
        return -1;
    if (ndim > WG_MAX_DIMS)
        return wg__weights_fail(c->file, "%.200s has %u dimensions; at most %d are read", name,
                                ndim, WG_MAX_DIMS);
    entry->spec.ndim = (int)ndim;
    for (int i = (int)ndim - 1; i >= 0; i--) {
        uint64_t size;
        if (take_u64(c, &size) < 0)
            return -1;
        if (size > INT64_MAX)
            return wg__weights_fail(c->file, "%.200s has a size of %llu", name,
                                    (unsigned long long)size);
        entry->spec.shape[i] = (int64_t)size;
    }
    return 0;
}

/* Offsets count from the end of the header, which is not known yet. */
static int take_info(cursor *c, wg__weights_entry *entry, const char *name) {
    uint64_t offset;
    if (take_shape(c, name, entry) < 0 || take_type(c, name, entry) < 0 || take_u64(c, &offset) < 0)
        return -1;
    entry->bytes = wg__storage_bytes(entry->storage, entry->spec.ndim, entry->spec.shape);
    if (entry->bytes < 0)
        return wg__weights_fail(c->file, "%.200s has too large a shape, or rows of no whole blocks",
                                name);
    if (offset > (uint64_t)c->input->size)
        return wg__weights_fail(c->file, "%.200s begins beyond the end, at %llu", name,
                                (unsigned long long)offset);
    entry->offset = (int64_t)offset;
    return 0;
}

static int take_tensor(cursor *c) {
    char *name;
    int64_t length;
    wg__weights_entry entry = {0};
    if (take_string(c, &name, &length) < 0)
        return -1;
    int status = strlen(name) == (size_t)length
                     ? take_info(c, &entry, name)
                     : wg__weights_fail(c->file, "a tensor's name holds a NUL");
    const int64_t offset = entry.offset;
    entry.offset = 0; /* place_tensors checks the bytes */
    if (status == 0)
        status = wg__weights_add(c->file, name, &entry);
    if (status == 0)
        c->file->entries[c->file->count - 1].offset = offset;
    wg__free(name);
    return status;
}

static int place_tensors(cursor *c, int64_t alignment) {
    const int64_t data = (c->at + alignment - 1) / alignment * alignment, size = c->input->size;
    for (int64_t i = 0; i < c->file->count; i++) {
        wg__weights_entry *entry = &c->file->entries[i];
        if (entry->offset % alignment != 0)
            return wg__weights_fail(c->file, "%.200s begins at %lld, no multiple of %lld",
                                    entry->name, (long long)entry->offset, (long long)alignment);
        entry->offset += data;
        if (entry->offset > size || entry->bytes > size - entry->offset)
            return wg__weights_fail(c->file, "%.200s: %lld bytes at %lld are beyond the end, %lld",
                                    entry->name, (long long)entry->bytes, (long long)entry->offset,
                                    (long long)size);
    }
    return wg__weights_check_apart(c->file);
}

/* ---- Reading: the header ---- */

static int read_alignment(wg_weights *file, const json_t *metadata, int64_t *alignment) {
    const json_t *value = json_object_get(metadata, "general.alignment");
    *alignment = value ? json_integer_value(value) : 32;
    if (*alignment < 1 || *alignment > 65536 || (*alignment & (*alignment - 1)) != 0)
        return wg__weights_fail(file, "general.alignment is no power of two up to 65536");
    return 0;
}

static int read_header(cursor *c, json_t *metadata) {
    const uint8_t *magic = take(c, 4);
    uint32_t version;
    int64_t tensors, keys, alignment;
    if (!magic)
        return -1;
    if (memcmp(magic, "GGUF", 4) != 0)
        return wg__weights_fail(c->file, "does not begin with GGUF");
    if (take_u32(c, &version) < 0)
        return -1;
    if (version != 2 && version != 3)
        return wg__weights_fail(c->file, "is version %u of GGUF, or big-endian; 2 and 3 are read",
                                version);
    if (take_count(c, "tensors", 25, WG__MAX_TENSORS, &tensors) < 0 ||
        take_count(c, "keys", 13, MOST_KEYS, &keys) < 0)
        return -1;
    for (int64_t i = 0; i < keys; i++)
        if (take_pair(c, metadata) < 0)
            return -1;
    for (int64_t i = 0; i < tensors; i++)
        if (take_tensor(c) < 0)
            return -1;
    return read_alignment(c->file, metadata, &alignment) < 0 ? -1 : place_tensors(c, alignment);
}

/* Reads the header: metadata as a JSON object (numbers, texts, lists), and the tensors, under
 * GGUF's names. *metadata is the caller's, NULL after an error. */
static int read_metadata(wg_weights *file, json_t **metadata) {
    cursor c = {.file = file, .input = &file->files[0], .window = wg__alloc(WINDOW)};
    *metadata = c.window ? json_object() : NULL;
    const int status = *metadata ? read_header(&c, *metadata) : -1;
    if (status < 0) {
        json_decref(*metadata);
        *metadata = NULL;
    }
    wg__free(c.window);
    return status;
}

/* ---- Reading: a LLaMA ---- */

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

/* The vocabulary has no key: the table of tokens has its size. An output.weight is an untied head.
 */
static int take_vocabulary(const wg_weights *file, wg_llama_config *c) {
    c->vocab_size = 0;
    c->tie_word_embeddings = true;
    for (int64_t i = 0; i < file->count; i++)
        if (strcmp(file->entries[i].name, "token_embd.weight") == 0 &&
            file->entries[i].spec.ndim == 2)
            c->vocab_size = file->entries[i].spec.shape[0];
        else if (strcmp(file->entries[i].name, "output.weight") == 0)
            c->tie_word_embeddings = false;
    return c->vocab_size ? 0 : wg__weights_fail(file, "has no token_embd.weight");
}

static int take_config(const wg_weights *file, const json_t *metadata, wg_llama_config *c) {
    *c = (wg_llama_config){.hidden_act = WG_GATE_SWIGLU,
                           .rms_norm_eps = 1e-5,
                           .rope_theta = 10000,
                           .initializer_range = 0.02};
    int64_t begin = 1, end = 2;
    if (take_size(file, metadata, "llama.embedding_length", &c->hidden_size) < 0 ||
        take_size(file, metadata, "llama.feed_forward_length", &c->intermediate_size) < 0 ||
        take_size(file, metadata, "llama.block_count", &c->num_hidden_layers) < 0 ||
        take_size(file, metadata, "llama.attention.head_count", &c->num_attention_heads) < 0 ||
        take_size(file, metadata, "llama.context_length", &c->max_position_embeddings) < 0)
        return -1;
    c->num_key_value_heads = c->num_attention_heads;
    if (take_size(file, metadata, "llama.attention.head_count_kv", &c->num_key_value_heads) < 0 ||
        take_number(file, metadata, "llama.attention.layer_norm_rms_epsilon", &c->rms_norm_eps) <
            0 ||
        take_number(file, metadata, "llama.rope.freq_base", &c->rope_theta) < 0 ||
        take_size(file, metadata, "tokenizer.ggml.bos_token_id", &begin) < 0 ||
        take_size(file, metadata, "tokenizer.ggml.eos_token_id", &end) < 0 ||
        take_vocabulary(file, c) < 0)
        return -1;
    c->rms_norm_eps = short_decimal(c->rms_norm_eps);
    c->rope_theta = short_decimal(c->rope_theta);
    c->bos_token_id = begin < c->vocab_size ? begin : -1;
    c->eos_token_id = end < c->vocab_size ? end : -1;
    if (wg__llama_config_fits(c, file->files[0].size) < 0)
        return wg__weights_fail(file, "the sizes of its metadata do not fit each other");
    const int64_t width = c->hidden_size / c->num_attention_heads;
    int64_t rotated = width;
    if (take_size(file, metadata, "llama.rope.dimension_count", &rotated) < 0)
        return -1;
    if (rotated != width || json_object_get(metadata, "llama.rope.scaling.type"))
        return wg__weights_fail(file, "rotates a part of each head, or scales positions; that is "
                                      "not read yet");
    return 0;
}

/* Gives the tensors their published names. */
static int rename_tensors(wg_weights *file, const wg_llama_config *config) {
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
        entry->extra = wg__llama_heads_to_reorder(config, name);
        if (entry->extra &&
            (entry->spec.ndim != 2 || entry->spec.shape[0] % (2 * entry->extra) != 0))
            return wg__weights_fail(file, "%.200s does not have %lld heads of even width", name,
                                    (long long)entry->extra);
    }
    return 0;
}

static int take_llama(wg_weights *file, const json_t *metadata) {
    wg_llama_config config;
    if (take_config(file, metadata, &config) < 0 || rename_tensors(file, &config) < 0)
        return -1;
    file->config = wg_llama_config_to_json(&config);
    return file->config ? wg__gguf_take_tokenizer(metadata, &file->tokenizer) : -1;
}

static int list_gguf(wg_weights *file, int index) {
    (void)index; /* there is one file */
    json_t *metadata;
    if (read_metadata(file, &metadata) < 0)
        return -1;
    const char *architecture = json_string_value(json_object_get(metadata, "general.architecture"));
    int status = 0;
    if (architecture && strcmp(architecture, "llama") == 0)
        status = take_llama(file, metadata);
    json_decref(metadata);
    return status;
}

const wg__weights_reader wg__weights_gguf = {
    .name = "gguf", .list = list_gguf, .arrange = wg__llama_to_halves};

/* ---- Writing: values ---- */

int wg__gguf_add_u32(wg__text *header, uint32_t value) {
    uint8_t bytes[4];
    wg__put_le32(bytes, value);
    return wg__text_append(header, bytes, 4);
}

static int add_u64(wg__text *header, uint64_t value) {
    uint8_t bytes[8];
    wg__put_le64(bytes, value);
    return wg__text_append(header, bytes, 8);
}

int wg__gguf_add_f32(wg__text *header, double value) {
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return wg__gguf_add_u32(header, bits);
}

int wg__gguf_add_string(wg__text *header, const char *text, size_t length) {
    return add_u64(header, length) < 0 ? -1 : wg__text_append(header, text, (int64_t)length);
}

static int add_key(wg__text *header, const char *key, uint32_t type) {
    return wg__gguf_add_string(header, key, strlen(key)) < 0 ? -1 : wg__gguf_add_u32(header, type);
}

int wg__gguf_put_text(wg__text *header, const char *key, const char *value) {
    return add_key(header, key, WG__GGUF_STRING) < 0
               ? -1
               : wg__gguf_add_string(header, value, strlen(value));
}

int wg__gguf_put_u32(wg__text *header, const char *key, uint32_t value) {
    return add_key(header, key, WG__GGUF_U32) < 0 ? -1 : wg__gguf_add_u32(header, value);
}

int wg__gguf_put_f32(wg__text *header, const char *key, double value) {
    return add_key(header, key, WG__GGUF_F32) < 0 ? -1 : wg__gguf_add_f32(header, value);
}

int wg__gguf_put_bool(wg__text *header, const char *key, bool value) {
    return add_key(header, key, WG__GGUF_BOOL) < 0 ? -1
                                                   : wg__text_append(header, &(uint8_t){value}, 1);
}

int wg__gguf_put_array(wg__text *header, const char *key, uint32_t type, uint64_t count) {
    if (add_key(header, key, WG__GGUF_ARRAY) < 0 || wg__gguf_add_u32(header, type) < 0)
        return -1;
    return add_u64(header, count);
}

/* ---- Writing: metadata ---- */

/* llama.cpp's number for the type of most tensors of a file. */
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

static int put_metadata(wg__text *header, const wg_weights_writer *writer, const wg_llama_config *c,
                        const char *tokenizer, int *keys) {
    *keys = 14;
    wg__gguf_put_text(header, "general.architecture", "llama");
    wg__gguf_put_text(header, "general.name", "wengert");
    wg__gguf_put_u32(header, "general.file_type", file_type(writer->type));
    wg__gguf_put_u32(header, "general.quantization_version", 2);
    wg__gguf_put_u32(header, "llama.context_length", (uint32_t)c->max_position_embeddings);
    wg__gguf_put_u32(header, "llama.embedding_length", (uint32_t)c->hidden_size);
    wg__gguf_put_u32(header, "llama.block_count", (uint32_t)c->num_hidden_layers);
    wg__gguf_put_u32(header, "llama.feed_forward_length", (uint32_t)c->intermediate_size);
    wg__gguf_put_u32(header, "llama.attention.head_count", (uint32_t)c->num_attention_heads);
    wg__gguf_put_u32(header, "llama.attention.head_count_kv", (uint32_t)c->num_key_value_heads);
    wg__gguf_put_u32(header, "llama.rope.dimension_count",
                     (uint32_t)(c->hidden_size / c->num_attention_heads));
    wg__gguf_put_f32(header, "llama.rope.freq_base", c->rope_theta);
    wg__gguf_put_f32(header, "llama.attention.layer_norm_rms_epsilon", c->rms_norm_eps);
    wg__gguf_put_u32(header, "llama.vocab_size", (uint32_t)c->vocab_size);
    if (c->bos_token_id >= 0) {
        wg__gguf_put_u32(header, "tokenizer.ggml.bos_token_id", (uint32_t)c->bos_token_id);
        ++*keys;
    }
    if (c->eos_token_id >= 0) {
        wg__gguf_put_u32(header, "tokenizer.ggml.eos_token_id", (uint32_t)c->eos_token_id);
        ++*keys;
    }
    if (wg_error_pending())
        return -1;
    return wg__gguf_put_tokenizer(header, tokenizer, c->vocab_size, keys);
}

/* ---- Writing: tensors ---- */

/* Vectors stay f32, as llama.cpp wants them. */
static wg__storage_dtype storage_for(wg_weights_type type, const wg_spec *spec) {
    if (spec->ndim < 2)
        return WG__STORAGE_F32;
    if (type == WG_WEIGHTS_KEEP)
        return spec->dtype == WG_BF16 ? WG__STORAGE_BF16 : WG__STORAGE_F32;
    const wg__storage_dtype storage = wg__storage_for(type, WG_F32);
    return wg__storage_bytes(storage, spec->ndim, spec->shape) < 0 ? WG__STORAGE_F16 : storage;
}

static uint32_t type_of(wg__storage_dtype storage) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].storage == storage)
            return types[i].type;
    return 0;
}

static int put_info(wg__text *header, const wg__weights_slot *slot, const char *name) {
    if (wg__gguf_add_string(header, name, strlen(name)) < 0 ||
        wg__gguf_add_u32(header, (uint32_t)slot->spec.ndim) < 0)
        return -1;
    for (int i = slot->spec.ndim - 1; i >= 0; i--)
        if (add_u64(header, (uint64_t)slot->spec.shape[i]) < 0)
            return -1;
    return wg__gguf_add_u32(header, type_of(slot->storage)) < 0
               ? -1
               : add_u64(header, (uint64_t)slot->offset);
}

/* Offsets are from the header's end. */
static int put_tensors(wg__text *header, wg_weights_writer *writer, const wg_llama_config *config) {
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
        if (put_info(header, slot, name) < 0)
            return -1;
        offset += (slot->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return 0;
}

static int write_header(wg_weights_writer *writer, const wg__text *body, int keys) {
    uint8_t begin[24] = "GGUF", zeros[ALIGNMENT] = {0};
    wg__put_le32(begin + 4, 3);
    wg__put_le64(begin + 8, (uint64_t)writer->count);
    wg__put_le64(begin + 16, (uint64_t)keys);
    const int64_t end = 24 + body->length, data = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (wg__output_write(writer->output, 0, begin, 24) < 0 ||
        wg__output_write(writer->output, 24, body->bytes, body->length) < 0 ||
        wg__output_write(writer->output, end, zeros, data - end) < 0)
        return -1;
    for (int64_t i = 0; i < writer->count; i++) {
        wg__weights_slot *slot = &writer->slots[i];
        slot->offset += data;
        /* and the padding after it: readers map the file up to there */
        const int64_t stop = slot->offset + slot->bytes, padding = -stop & (ALIGNMENT - 1);
        if (wg__output_write(writer->output, stop, zeros, padding) < 0)
            return -1;
    }
    return 0;
}

static int begin_gguf(wg_weights_writer *writer, const wg_weights_options *options) {
    wg_llama_config config;
    if (wg__llama_config_for(&config, options->config, "gguf") < 0)
        return -1;
    wg__text body = {0};
    int keys;
    int status = put_metadata(&body, writer, &config, options->tokenizer, &keys);
    if (status == 0)
        status = put_tensors(&body, writer, &config);
    if (status == 0)
        status = write_header(writer, &body, keys);
    wg__free(body.bytes);
    return status;
}

const wg__weights_format wg__gguf_writer = {
    .name = "gguf", .begin = begin_gguf, .arrange = wg__llama_to_adjacent};
