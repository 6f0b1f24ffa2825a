/* safetensors: a u64 with the length of a JSON header, the header, the tensors' bytes.
 *
 *     {"__metadata__": {"format": "pt"},
 *      "wte.weight": {"dtype": "F32", "shape": [48, 16], "data_offsets": [0, 3072]}, ...}
 *
 * Offsets count from the header's end. The format demands that the bytes of the tensors follow each
 * other without holes and end with the file, and that the header has at most 100 MB. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "io/weights/file.h"
#include "tensor/internal.h"

enum { MOST_HEADER = 100000000 };

static const struct {
    const char *name;
    wg__storage_dtype storage;
} dtypes[] = {{"F64", WG__STORAGE_F64}, {"F32", WG__STORAGE_F32},   {"F16", WG__STORAGE_F16},
              {"I64", WG__STORAGE_I64}, {"BF16", WG__STORAGE_BF16}, {"I32", WG__STORAGE_I32},
              {"U8", WG__STORAGE_U8},   {"BOOL", WG__STORAGE_BOOL}};

enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* ---- Reading ---- */

static int read_dtype(wg_weights *file, const char *name, const json_t *value,
                      wg__weights_entry *entry) {
    const char *dtype = json_string_value(value);
    for (int i = 0; dtype && i < DTYPES; i++)
        if (strcmp(dtype, dtypes[i].name) == 0) {
            entry->storage = dtypes[i].storage;
            entry->spec.dtype = wg__storage_read_as(entry->storage);
            return 0;
        }
    return wg__weights_fail(
        file,
        "%.200s: dtype %.32s is not one of F64, F32, F16, BF16, I64, I32, U8 and "
        "BOOL",
        name, dtype ? dtype : "is no text or missing; it");
}

static int read_shape(wg_weights *file, const char *name, const json_t *value,
                      wg__weights_entry *entry) {
    const size_t ndim = json_array_size(value);
    if (!json_is_array(value) || ndim > WG_MAX_DIMS)
        return wg__weights_fail(file, "%.200s: shape must be a list of at most %d sizes", name,
                                WG_MAX_DIMS);
    entry->spec.ndim = (int)ndim;
    for (size_t i = 0; i < ndim; i++) {
        const json_t *size = json_array_get(value, i);
        entry->spec.shape[i] = json_integer_value(size);
        if (!json_is_integer(size) || entry->spec.shape[i] < 0)
            return wg__weights_fail(file, "%.200s: shape has what is no size", name);
    }
    return 0;
}

static int read_offsets(wg_weights *file, const char *name, const json_t *value, int64_t data,
                        wg__weights_entry *entry) {
    const json_t *from = json_array_get(value, 0), *to = json_array_get(value, 1);
    const int64_t begin = json_integer_value(from), end = json_integer_value(to),
                  room = file->files[entry->file].size - data,
                  bytes = wg__storage_bytes(entry->storage, entry->spec.ndim, entry->spec.shape);
    if (json_array_size(value) != 2 || !json_is_integer(from) || !json_is_integer(to))
        return wg__weights_fail(file, "%.200s: data_offsets must be two numbers", name);
    if (begin < 0 || end < begin || end > room)
        return wg__weights_fail(file, "%.200s: data_offsets %lld to %lld are not within %lld bytes",
                                name, (long long)begin, (long long)end, (long long)room);
    if (bytes != end - begin)
        return wg__weights_fail(file, "%.200s: its shape takes %lld bytes, its data_offsets %lld",
                                name, (long long)bytes, (long long)(end - begin));
    entry->offset = data + begin;
    entry->bytes = bytes;
    return 0;
}

static int add_tensor(wg_weights *file, int index, const char *name, const json_t *value,
                      int64_t data) {
    wg__weights_entry entry = {.file = index};
    if (!json_is_object(value) || json_object_size(value) != 3)
        return wg__weights_fail(file, "%.200s must have dtype, shape and data_offsets", name);
    if (read_dtype(file, name, json_object_get(value, "dtype"), &entry) < 0 ||
        read_shape(file, name, json_object_get(value, "shape"), &entry) < 0 ||
        read_offsets(file, name, json_object_get(value, "data_offsets"), data, &entry) < 0)
        return -1;
    return wg__weights_add(file, name, &entry);
}

static int list_header(wg_weights *file, int index, const json_t *root, int64_t data) {
    const int64_t first = file->count;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)root, name, value) {
        if (strcmp(name, "__metadata__") != 0 && add_tensor(file, index, name, value, data) < 0)
            return -1;
    }
    if (wg__weights_keep_metadata(file, json_object_get(root, "__metadata__")) < 0)
        return -1;
    return wg__weights_check_cover(file, first, data, file->files[index].size);
}

static json_t *parse_header(wg_weights *file, const char *text, int64_t length) {
    json_error_t error;
    json_t *root = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (!root && json_error_code(&error) == json_error_out_of_memory)
        wg_fail(WG_ERROR_MEMORY, "safetensors", "no memory for %s", file->path);
    else if (!root)
        wg__weights_fail(file, "the header is no JSON, column %d: %s", error.column, error.text);
    else if (!json_is_object(root)) {
        json_decref(root);
        wg__weights_fail(file, "the header is no JSON object");
        return NULL;
    }
    return root;
}

static int list_safetensors(wg_weights *file, int index) {
    const wg__input *input = &file->files[index];
    uint8_t begin[9];
    if (wg__input_read(input, 0, begin, 9) < 0)
        return -1;
    const uint64_t length = wg__le64(begin);
    if (length > MOST_HEADER || (int64_t)length > input->size - 8)
        return wg__weights_fail(file,
                                "is no safetensors file, or cut short: its header is to have "
                                "%llu bytes",
                                (unsigned long long)length);
    if (begin[8] != '{')
        return wg__weights_fail(file, "is no safetensors file: its header does not begin with {");
    char *text = wg__alloc((size_t)length);
    if (!text)
        return -1;
    json_t *root = NULL;
    if (wg__input_read(input, 8, text, (int64_t)length) == 0)
        root = parse_header(file, text, (int64_t)length);
    wg__free(text);
    const int status = root ? list_header(file, index, root, 8 + (int64_t)length) : -1;
    json_decref(root);
    return status;
}

const wg__weights_reader wg__weights_safetensors = {.name = "safetensors",
                                                    .list = list_safetensors};

/* ---- Writing ---- */

static json_t *describe(const wg__weights_slot *slot, int64_t begin) {
    const char *dtype = NULL;
    for (int i = 0; i < DTYPES; i++)
        if (dtypes[i].storage == slot->storage)
            dtype = dtypes[i].name;
    json_t *shape = json_array();
    for (int i = 0; i < slot->spec.ndim; i++)
        wg__json_append(&shape, json_integer(slot->spec.shape[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)(begin + slot->bytes));
}

/* Writes the header, padded with spaces so that the tensors begin at a multiple of 8. */
static int write_header(wg_weights_writer *writer, const json_t *root) {
    char *text = json_dumps(root, JSON_COMPACT);
    if (!text)
        return wg_fail(WG_ERROR_MEMORY, "safetensors", "no memory for the header");
    const int64_t length = (int64_t)strlen(text), padded = (length + 7) / 8 * 8;
    uint8_t size[8];
    wg__put_le64(size, (uint64_t)padded);
    int status = -1;
    if (wg__output_write(writer->output, 0, size, 8) == 0 &&
        wg__output_write(writer->output, 8, text, length) == 0)
        status = wg__output_write(writer->output, 8 + length, "       ", padded - length);
    for (int64_t i = 0; i < writer->count; i++)
        writer->slots[i].offset += 8 + padded;
    free(text);
    return status;
}

static int begin_safetensors(wg_weights_writer *writer, const wg_weights_options *options) {
    (void)options;
    if (writer->type == WG_WEIGHTS_Q8_0)
        return wg_fail(WG_ERROR_ARGUMENT, "safetensors", "has no quantised numbers; gguf has");
    json_t *root = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    int64_t offset = 0;
    int status = root ? 0 : -1;
    for (int64_t i = 0; i < writer->count && status == 0; i++) {
        wg__weights_slot *slot = &writer->slots[i];
        slot->storage = wg__storage_for(writer->type, slot->spec.dtype);
        slot->bytes = wg__storage_bytes(slot->storage, slot->spec.ndim, slot->spec.shape);
        slot->offset = offset;
        status = json_object_set_new(root, slot->name, describe(slot, offset));
        offset += slot->bytes;
    }
    if (status < 0)
        wg_fail(WG_ERROR_MEMORY, "safetensors", "no memory for the header, or a name is not UTF-8");
    else
        status = write_header(writer, root);
    json_decref(root);
    return status;
}

const wg__weights_format wg__safetensors_writer = {.name = "safetensors",
                                                   .begin = begin_safetensors};
