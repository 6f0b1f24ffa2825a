/* llama2.c's .bin, read and written. See llama2c.h. */
#include "io/llama2c.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/weights/file.h"
#include "tensor/internal.h"

#define MAGIC 0x616b3432u

enum { HEADER_0 = 28, HEADER_1 = 256 };

/* What these files leave unsaid: run.c has it as constants. */
static const wg__llama_sizes unsaid = {.eps = 1e-5, .theta = 10000, .begin = 1, .end = 2};

/* ---- The order of tensors ---- */

static const wg__llama_part_id order_0[] = {
    WG__TOKENS,   WG__ATTENTION_NORM, WG__QUERY, WG__KEY, WG__VALUE, WG__OUTPUT,
    WG__NET_NORM, WG__GATE,           WG__DOWN,  WG__UP,  WG__NORM,  WG__HEAD};
static const wg__llama_part_id order_1[] = {WG__ATTENTION_NORM, WG__NET_NORM, WG__NORM,  WG__TOKENS,
                                            WG__QUERY,          WG__KEY,      WG__VALUE, WG__OUTPUT,
                                            WG__GATE,           WG__DOWN,     WG__UP,    WG__HEAD};

/* Two tables of a number for each position and pair. */
static int64_t table_bytes(const wg__llama_sizes *sizes) {
    return 2 * sizes->positions * (sizes->width / sizes->heads / 2) * 4;
}

static int visit_part(const wg__llama_sizes *sizes, wg__llama_part_id part, int64_t *offset,
                      wg__llama2c_visitor visit, void *context) {
    wg_spec spec = {.dtype = WG_F32};
    spec.ndim = wg__llama_shape(sizes, part, spec.shape);
    const int64_t layers = wg__llama_parts[part].by_layer ? sizes->layers : 1,
                  bytes = wg__stored_bytes(WG__STORED_F32, spec.ndim, spec.shape);
    char name[128];
    for (int64_t layer = 0; layer < layers; layer++) {
        wg__llama_published(name, sizeof name, part, layer);
        if (bytes < 0 || *offset > INT64_MAX / 2 - bytes ||
            visit(name, &spec, *offset, wg__llama_ordered_heads(sizes, name), context) < 0)
            return -1;
        *offset += bytes;
    }
    return 0;
}

int64_t wg__llama2c_walk(const wg__llama_sizes *sizes, int version, wg__llama2c_visitor visit,
                         void *context) {
    int64_t offset = version ? HEADER_1 : HEADER_0;
    for (int i = 0; i < WG__PART_COUNT; i++) {
        const wg__llama_part_id part = version ? order_1[i] : order_0[i];
        if (part == WG__HEAD && sizes->tied)
            continue;
        if (part == WG__HEAD && version == 0)
            offset += table_bytes(sizes);
        if (visit_part(sizes, part, &offset, visit, context) < 0)
            return -1;
    }
    return version == 0 && sizes->tied ? offset + table_bytes(sizes) : offset;
}

/* ---- Reading ---- */

static int32_t signed_le32(const uint8_t *bytes) {
    const uint32_t value = wg__le32(bytes);
    return value > INT32_MAX ? (int32_t)(value - 0x80000000u) + INT32_MIN : (int32_t)value;
}

/* A vocabulary of INT32_MIN has no positive; it stays negative and is refused. */
static void take_seven(wg__llama_sizes *sizes, const uint8_t *bytes) {
    sizes->width = signed_le32(bytes);
    sizes->inner = signed_le32(bytes + 4);
    sizes->layers = signed_le32(bytes + 8);
    sizes->heads = signed_le32(bytes + 12);
    sizes->key_value_heads = signed_le32(bytes + 16);
    sizes->vocabulary = signed_le32(bytes + 20);
    sizes->positions = signed_le32(bytes + 24);
}

static int read_header(wg_weights *file, wg__llama_sizes *sizes, int *version) {
    uint8_t bytes[HEADER_1];
    *sizes = unsaid;
    if (wg__input_read(&file->files[0], 0, bytes, HEADER_0) < 0)
        return -1;
    *version = wg__le32(bytes) == MAGIC;
    if (*version == 0) {
        take_seven(sizes, bytes);
        sizes->tied = sizes->vocabulary > 0;
        sizes->vocabulary = llabs(sizes->vocabulary);
        return 0;
    }
    if (wg__input_read(&file->files[0], 0, bytes, HEADER_1) < 0)
        return -1;
    if (wg__le32(bytes + 4) != 1)
        return wg__weights_fail(file, "is version %d of llama2.c's format; 0 and 1 are read",
                                (int)signed_le32(bytes + 4));
    take_seven(sizes, bytes + 8);
    if (bytes[36] > 1)
        return wg__weights_fail(file, "shared_classifier is %d; wanted 0 or 1", bytes[36]);
    sizes->tied = bytes[36];
    return 0;
}

static int add_tensor(const char *name, const wg_spec *spec, int64_t offset, int64_t adjacent_heads,
                      void *context) {
    const wg__weights_entry entry = {
        .spec = *spec,
        .stored = WG__STORED_F32,
        .offset = offset,
        .bytes = wg__stored_bytes(WG__STORED_F32, spec->ndim, spec->shape),
        .adjacent_heads = adjacent_heads,
    };
    return wg__weights_add(context, name, &entry);
}

static int open_llama2c(wg_weights *file) {
    wg__llama_sizes sizes;
    int version;
    if (read_header(file, &sizes, &version) < 0)
        return -1;
    if (wg__llama_sizes_check(&sizes, file->files[0].size) < 0)
        return wg__weights_fail(
            file,
            "is no llama2.c file, or cut short: dim %lld, hidden_dim %lld, n_layers %lld, n_heads "
            "%lld, n_kv_heads %lld, vocab_size %lld, seq_len %lld do not fit each other or %lld "
            "bytes",
            (long long)sizes.width, (long long)sizes.inner, (long long)sizes.layers,
            (long long)sizes.heads, (long long)sizes.key_value_heads, (long long)sizes.vocabulary,
            (long long)sizes.positions, (long long)file->files[0].size);
    const int64_t size = wg__llama2c_walk(&sizes, version, add_tensor, file);
    if (size < 0)
        return -1;
    if (size != file->files[0].size)
        return wg__weights_fail(file, "has %lld bytes; a model of the sizes that it tells has %lld",
                                (long long)file->files[0].size, (long long)size);
    file->config = wg__llama_sizes_json(&sizes);
    return file->config ? 0 : -1;
}

const wg__weights_format wg__weights_llama2c = {.name = "llama2c", .open = open_llama2c};

/* ---- Writing ---- */

static int place_tensor(const char *name, const wg_spec *spec, int64_t offset,
                        int64_t adjacent_heads, void *context) {
    wg_weights_writer *writer = context;
    for (int64_t i = 0; i < writer->count; i++) {
        wg__weights_slot *slot = &writer->slots[i];
        if (strcmp(slot->name, name) != 0)
            continue;
        if (!wg__same_shape(&slot->spec, spec))
            return wg_fail(WG_ERROR_ARGUMENT, "llama2c",
                           "%s has not the shape that the configuration says", name);
        slot->stored = WG__STORED_F32;
        slot->offset = offset;
        slot->bytes = wg__stored_bytes(WG__STORED_F32, spec->ndim, spec->shape);
        slot->adjacent_heads = adjacent_heads;
        return 0;
    }
    return wg_fail(WG_ERROR_ARGUMENT, "llama2c", "%s is missing", name);
}

static int write_header(wg_weights_writer *writer, const wg__llama_sizes *sizes, int version) {
    uint8_t bytes[HEADER_1] = {0}, *seven = version ? bytes + 8 : bytes;
    const int64_t vocabulary =
        version == 0 && !sizes->tied ? -sizes->vocabulary : sizes->vocabulary;
    const int64_t values[7] = {sizes->width,           sizes->inner, sizes->layers,   sizes->heads,
                               sizes->key_value_heads, vocabulary,   sizes->positions};
    if (version) {
        wg__put_le32(bytes, MAGIC);
        wg__put_le32(bytes + 4, 1);
        bytes[36] = sizes->tied;
    }
    for (int i = 0; i < 7; i++)
        wg__put_le32(seven + 4 * i, (uint32_t)values[i]);
    return wg__output_write(writer->output, 0, bytes, version ? HEADER_1 : HEADER_0);
}

/* The tables that version 0 keeps: readers skip them, but they are what they are said to be. */
static int write_tables(wg_weights_writer *writer, const wg__llama_sizes *sizes, int64_t offset) {
    const int64_t pairs = sizes->width / sizes->heads / 2, row = 4 * pairs;
    uint8_t *bytes = wg__alloc((size_t)(2 * row));
    int status = bytes ? 0 : -1;
    for (int64_t t = 0; status == 0 && t < sizes->positions; t++) {
        for (int64_t i = 0; i < pairs; i++) {
            const double angle = (double)t * pow(sizes->theta, -(double)i / (double)pairs);
            const float values[2] = {(float)cos(angle), (float)sin(angle)};
            wg__stored_encode(WG__STORED_F32, 1, &values[0], bytes + 4 * i);
            wg__stored_encode(WG__STORED_F32, 1, &values[1], bytes + row + 4 * i);
        }
        status = wg__output_write(writer->output, offset + t * row, bytes, row);
        if (status == 0)
            status = wg__output_write(writer->output, offset + (sizes->positions + t) * row,
                                      bytes + row, row);
    }
    wg__free(bytes);
    return status;
}

static int check_unsaid(const wg__llama_sizes *sizes) {
    if (sizes->eps != unsaid.eps || sizes->theta != unsaid.theta)
        return wg_fail(WG_ERROR_ARGUMENT, "llama2c",
                       "has no place for rms_norm_eps %g and rope_theta %g; they must be %g and %g",
                       sizes->eps, sizes->theta, unsaid.eps, unsaid.theta);
    return 0;
}

static int begin_llama2c(wg_weights_writer *writer) {
    const int version = writer->options->version;
    wg__llama_sizes sizes;
    if (writer->type != WG_WEIGHTS_KEEP && writer->type != WG_WEIGHTS_F32)
        return wg_fail(WG_ERROR_ARGUMENT, "llama2c", "is written in f32 only");
    if (version != 0 && version != 1)
        return wg_fail(WG_ERROR_ARGUMENT, "llama2c", "has no version %d; 0 and 1 are written",
                       version);
    if (wg__llama_sizes_read(&sizes, writer->options->config, "llama2c") < 0 ||
        check_unsaid(&sizes) < 0)
        return -1;
    const int64_t parts = sizes.layers * 9 + (sizes.tied ? 2 : 3);
    if (writer->count != parts)
        return wg_fail(WG_ERROR_ARGUMENT, "llama2c",
                       "%lld tensors are given; the configuration's model has %lld",
                       (long long)writer->count, (long long)parts);
    const int64_t size = wg__llama2c_walk(&sizes, version, place_tensor, writer);
    if (size < 0 || write_header(writer, &sizes, version) < 0)
        return -1;
    const int64_t head = sizes.tied ? 0 : sizes.vocabulary * sizes.width * 4;
    return version == 0 ? write_tables(writer, &sizes, size - head - table_bytes(&sizes)) : 0;
}

const wg__weights_kind wg__llama2c_writer = {.name = "llama2c", .begin = begin_llama2c};
