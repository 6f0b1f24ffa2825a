/* llama2.c's .bin (export.py of karpathy/llama2.c): a header, then the tensors of a LLaMA in f32.
 * The same tensor of all layers comes together: every layer's q, then every layer's k.
 *
 *     version 0   7 x i32: dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size (negative:
 *                 the head is not tied to the table), seq_len; tensors; before the head, tables of
 *                 the rotation
 *     version 1   256 bytes: "24ka" (0x616b3432), i32 1, the 7 x i32, u8 1 if the head is shared,
 *                 zeros; tensors, norms first
 *
 * Shapes come from the module tree of the model, made without memory. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/internal.h"
#include "io/config.h"
#include "tensor/internal.h"
#include "models/internal.h"

#define MAGIC 0x616b3432u

enum { HEADER_0 = 28, HEADER_1 = 256, MOST_LAYERS = 4096 };

/* run.c's constants: values that the files do not store. */
static const wg_llama_config constants = {.hidden_act = WG_GATE_SWIGLU,
                                          .rms_norm_eps = 1e-5,
                                          .rope_theta = 10000,
                                          .initializer_range = 0.02,
                                          .bos_token_id = 1,
                                          .eos_token_id = 2};

/* The numbers of a header, in its order. */
static const size_t sizes[] = {offsetof(wg_llama_config, hidden_size),
                               offsetof(wg_llama_config, intermediate_size),
                               offsetof(wg_llama_config, num_hidden_layers),
                               offsetof(wg_llama_config, num_attention_heads),
                               offsetof(wg_llama_config, num_key_value_heads),
                               offsetof(wg_llama_config, vocab_size),
                               offsetof(wg_llama_config, max_position_embeddings)};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static int64_t *size_of(const wg_llama_config *config, int index) {
    return (int64_t *)((char *)(uintptr_t)config + sizes[index]);
}

#define LAYER "model.layers."
#define HEAD "lm_head.weight"

/* Published names. A name that begins with a dot means that tensor of every layer, in order. */
static const char *const *const order_0 =
    WG__KEYS("model.embed_tokens.weight", ".input_layernorm.weight", ".self_attn.q_proj.weight",
             ".self_attn.k_proj.weight", ".self_attn.v_proj.weight", ".self_attn.o_proj.weight",
             ".post_attention_layernorm.weight", ".mlp.gate_proj.weight", ".mlp.down_proj.weight",
             ".mlp.up_proj.weight", "model.norm.weight", HEAD);
static const char *const *const order_1 =
    WG__KEYS(".input_layernorm.weight", ".post_attention_layernorm.weight", "model.norm.weight",
             "model.embed_tokens.weight", ".self_attn.q_proj.weight", ".self_attn.k_proj.weight",
             ".self_attn.v_proj.weight", ".self_attn.o_proj.weight", ".mlp.gate_proj.weight",
             ".mlp.down_proj.weight", ".mlp.up_proj.weight", HEAD);

typedef int (*tensor_visitor)(const char *name, const wg_spec *spec, int64_t offset,
                              int64_t heads_to_reorder, void *context);

/* The bytes of two tables of f32, (positions, pairs). */
static int64_t table_bytes(const wg_llama_config *c) {
    const int64_t pairs = c->hidden_size / c->num_attention_heads / 2;
    return wg__times(8, wg__times(c->max_position_embeddings, pairs));
}

/* Calls `visit` for every tensor at its offset; a negative answer ends the walk. Returns the size
 * of a file of these tensors, or -1 with an error. */
static int64_t walk_tensors(const wg_llama_config *config, int version, tensor_visitor visit,
                            void *context) {
    const bool was = wg_set_meta_init(true);
    wg_llama *model = wg__llama_new(config, 0);
    wg_set_meta_init(was);
    if (!model)
        return -1;
    int64_t offset = version ? HEADER_1 : HEADER_0;
    int status = 0;
    for (const char *const *part = version ? order_1 : order_0; status == 0 && *part; part++) {
        const bool is_head = strcmp(*part, HEAD) == 0, by_layer = **part == '.';
        const int64_t layers = by_layer ? config->num_hidden_layers : 1;
        offset += is_head && version == 0 ? table_bytes(config) : 0;
        if (is_head && config->tie_word_embeddings)
            continue;
        for (int64_t i = 0; status == 0 && i < layers; i++) {
            char name[128];
            if (by_layer)
                snprintf(name, sizeof name, LAYER "%" PRId64 "%s", i, *part);
            else
                snprintf(name, sizeof name, "%s", *part);
            const wg_slot *slot = wg_module_find(&model->module, name);
            const wg_spec *spec = slot ? &slot->tensor->spec : NULL;
            const int64_t bytes =
                slot ? wg__storage_bytes(WG__STORAGE_F32, spec->ndim, spec->shape) : 0;
            if (!slot)
                status = wg_fail(WG_ERROR_ARGUMENT, "llama2c", "a llama has no tensor %s", name);
            else if (bytes < 0 || offset > INT64_MAX / 2 - bytes)
                status = wg_fail(WG_ERROR_FORMAT, "llama2c", "the model is too large");
            else
                status =
                    visit(name, spec, offset, wg__llama_heads_to_reorder(config, name), context);
            offset += bytes;
        }
    }
    wg_module_free(&model->module);
    return status < 0 ? -1 : offset;
}

static int read_header(wg_weights *file, wg_llama_config *config, int *version) {
    uint8_t bytes[HEADER_1];
    *config = constants;
    if (wg__input_read(&file->files[0], 0, bytes, HEADER_0) < 0)
        return -1;
    *version = wg__le32(bytes) == MAGIC;
    if (*version == 1 && wg__input_read(&file->files[0], 0, bytes, HEADER_1) < 0)
        return -1;
    if (*version == 1 && wg__le32(bytes + 4) != 1)
        return wg__weights_fail(file, "is version %d of llama2.c's format; 0 and 1 are read",
                                (int32_t)wg__le32(bytes + 4));
    if (*version == 1 && bytes[36] > 1)
        return wg__weights_fail(file, "shared_classifier is %d; wanted 0 or 1", bytes[36]);
    const uint8_t *seven = *version ? bytes + 8 : bytes;
    for (int i = 0; i < SIZES; i++)
        *size_of(config, i) = (int32_t)wg__le32(seven + 4 * i);
    config->tie_word_embeddings = *version ? bytes[36] : config->vocab_size > 0;
    if (*version == 0)
        config->vocab_size = llabs(config->vocab_size);
    return 0;
}

static int add_tensor(const char *name, const wg_spec *spec, int64_t offset, int64_t heads,
                      void *context) {
    const wg__weights_entry entry = {
        .spec = *spec,
        .storage = WG__STORAGE_F32,
        .offset = offset,
        .bytes = wg__storage_bytes(WG__STORAGE_F32, spec->ndim, spec->shape),
        .extra = heads,
    };
    return wg__weights_add(context, name, &entry);
}

static int list_llama2c(wg_weights *file, int index) {
    (void)index; /* there is one file */
    wg_llama_config config;
    int version;
    if (read_header(file, &config, &version) < 0)
        return -1;
    /* Do not make a module tree of more layers than the file can hold. */
    if (wg__llama_config_fits(&config, file->files[0].size) < 0 ||
        config.num_hidden_layers > MOST_LAYERS ||
        config.num_hidden_layers >
            file->files[0].size / 4 / config.hidden_size / config.intermediate_size)
        return wg__weights_fail(
            file,
            "is no llama2.c file, or cut short: dim %lld, hidden_dim %lld, n_layers %lld, n_heads "
            "%lld, n_kv_heads %lld, vocab_size %lld, seq_len %lld do not fit each other or %lld "
            "bytes",
            (long long)config.hidden_size, (long long)config.intermediate_size,
            (long long)config.num_hidden_layers, (long long)config.num_attention_heads,
            (long long)config.num_key_value_heads, (long long)config.vocab_size,
            (long long)config.max_position_embeddings, (long long)file->files[0].size);
    config.bos_token_id = config.vocab_size > 1 ? 1 : -1;
    config.eos_token_id = config.vocab_size > 2 ? 2 : -1;
    const int64_t size = walk_tensors(&config, version, add_tensor, file);
    if (size < 0)
        return -1;
    if (size != file->files[0].size)
        return wg__weights_fail(file, "has %lld bytes; a model of its header's sizes has %lld",
                                (long long)file->files[0].size, (long long)size);
    file->config = wg_model_config_to_json(&wg_llama_type, &config);
    return file->config ? 0 : -1;
}

const wg__weights_reader wg__weights_llama2c = {
    .name = "llama2c", .list = list_llama2c, .arrange = wg__llama_to_halves};

static int place_tensor(const char *name, const wg_spec *spec, int64_t offset, int64_t heads,
                        void *context) {
    wg_weights_writer *writer = context;
    for (int64_t i = 0; i < writer->count; i++) {
        wg__weights_slot *slot = &writer->slots[i];
        if (strcmp(slot->name, name) != 0)
            continue;
        if (!wg__same_shape(&slot->spec, spec))
            return wg_fail(WG_ERROR_ARGUMENT, "llama2c",
                           "the shape of %s is not that of the configuration", name);
        slot->storage = WG__STORAGE_F32;
        slot->offset = offset;
        slot->bytes = wg__storage_bytes(WG__STORAGE_F32, spec->ndim, spec->shape);
        slot->extra = heads;
        return 0;
    }
    return wg_fail(WG_ERROR_ARGUMENT, "llama2c", "%s is missing", name);
}

/* Version 0 has tables of the rotation, which readers skip. */
static int write_tables(wg_weights_writer *writer, const wg_llama_config *config, int64_t offset) {
    const int64_t pairs = config->hidden_size / config->num_attention_heads / 2, row = 4 * pairs;
    uint8_t *bytes = wg__alloc_array(wg__times(2, row), 1);
    int status = bytes ? 0 : -1;
    for (int64_t t = 0; status == 0 && t < config->max_position_embeddings; t++) {
        for (int64_t i = 0; i < pairs; i++) {
            const double angle = (double)t * pow(config->rope_theta, -(double)i / (double)pairs);
            const float values[2] = {(float)cos(angle), (float)sin(angle)};
            wg__storage_encode(WG__STORAGE_F32, 1, &values[0], bytes + 4 * i);
            wg__storage_encode(WG__STORAGE_F32, 1, &values[1], bytes + row + 4 * i);
        }
        status = wg__output_write(&writer->output, offset + t * row, bytes, row);
        if (status == 0)
            status = wg__output_write(&writer->output,
                                      offset + (config->max_position_embeddings + t) * row,
                                      bytes + row, row);
    }
    wg__free(bytes);
    return status;
}

static int begin_llama2c(wg_weights_writer *writer, const wg_weights_options *options) {
    const int version = options->version;
    wg_llama_config config;
    if (writer->type != WG_WEIGHTS_KEEP && writer->type != WG_WEIGHTS_F32)
        return wg_fail(WG_ERROR_ARGUMENT, "llama2c", "is written in f32 only");
    if (version != 0 && version != 1)
        return wg_fail(WG_ERROR_ARGUMENT, "llama2c", "has no version %d; 0 and 1 are written",
                       version);
    if (wg__llama_config_for(&config, options->config, "llama2c") < 0)
        return -1;
    if (config.rms_norm_eps != constants.rms_norm_eps || config.rope_theta != constants.rope_theta)
        return wg_fail(WG_ERROR_ARGUMENT, "llama2c",
                       "has no place for rms_norm_eps %g and rope_theta %g; they must be %g and %g",
                       config.rms_norm_eps, config.rope_theta, constants.rms_norm_eps,
                       constants.rope_theta);
    const int64_t size = walk_tensors(&config, version, place_tensor, writer);
    if (size < 0)
        return -1;
    for (int64_t i = 0; i < writer->count; i++)
        if (writer->slots[i].offset == 0)
            return wg_fail(WG_ERROR_ARGUMENT, "llama2c",
                           "%s is no tensor of a llama of this configuration",
                           writer->slots[i].name);
    uint8_t header[HEADER_1] = {0}, *seven = version ? header + 8 : header;
    for (int i = 0; i < SIZES; i++)
        wg__put_le(seven + 4 * i, (uint32_t)*size_of(&config, i), 4);
    if (version == 0 && !config.tie_word_embeddings)
        wg__put_le(seven + 20, (uint32_t)-config.vocab_size, 4);
    if (version) {
        wg__put_le(header, MAGIC, 4);
        wg__put_le(header + 4, 1, 4);
        header[36] = config.tie_word_embeddings;
    }
    if (wg__output_write(&writer->output, 0, header, version ? HEADER_1 : HEADER_0) < 0)
        return -1;
    const int64_t head = config.tie_word_embeddings
                             ? 0
                             : wg__times(4, wg__times(config.vocab_size, config.hidden_size));
    if (version != 0)
        return 0;
    return write_tables(writer, &config, size - head - table_bytes(&config));
}

const wg__weights_format wg__llama2c_writer = {
    .name = "llama2c", .begin = begin_llama2c, .arrange = wg__llama_to_adjacent};

int wg__llama_config_for(wg_llama_config *config, const char *json, const char *where) {
    if (!json)
        return wg_fail(WG_ERROR_ARGUMENT, where, "is written with the model's configuration only");
    wg_config *parsed = wg__config_parse(json, "config.json");
    const char *type = "of no model_type";
    int status = parsed ? wg__config_text(parsed, "model_type", &type) : -1;
    if (status == 0 && strcmp(type, "llama") != 0)
        status = wg_fail(WG_ERROR_ARGUMENT, where, "holds a llama only; this model is %.64s", type);
    wg__config_free(parsed);
    if (status < 0 || wg_model_config_from_json(&wg_llama_type, json, config) < 0)
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
    const int64_t most = 1 << 27;
    for (int i = 0; i < SIZES; i++)
        if (*size_of(c, i) < 1 || *size_of(c, i) > most)
            return -1;
    if (c->hidden_size % (2 * c->num_attention_heads) != 0 ||
        c->num_attention_heads % c->num_key_value_heads != 0)
        return -1;
    if (!(c->rms_norm_eps > 0 && isfinite(c->rms_norm_eps) && c->rope_theta > 0 &&
          isfinite(c->rope_theta)))
        return -1;
    /* Each layer, word and inner unit has at least hidden_size numbers. */
    const int64_t numbers = bytes > INT64_MAX / 8 ? INT64_MAX : bytes * 8,
                  rows = numbers / c->hidden_size;
    return c->num_hidden_layers > rows || c->vocab_size > rows || c->intermediate_size > rows ? -1
                                                                                              : 0;
}

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
        return wg__fail_null(WG_ERROR_SHAPE, "llama", "%s has no %lld heads of even width",
                             wg_spec_text(text, sizeof text, spec), (long long)heads);
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
