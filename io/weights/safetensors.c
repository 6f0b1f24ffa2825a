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

/* {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, from `data` on */
static int add_tensor(wg_weights *file, int index, const char *name, const json_t *value,
                      int64_t data) {
    wg__weights_entry entry = {.file = index};
    if (!json_is_object(value) || json_object_size(value) != 3)
        return wg__weights_fail(file, "%.200s must have dtype, shape and data_offsets", name);
    const char *dtype = json_string_value(json_object_get(value, "dtype"));
    int i = 0;
    while (i < DTYPES && (!dtype || strcmp(dtype, dtypes[i].name) != 0))
        i++;
    if (i == DTYPES)
        return wg__weights_fail(file,
                                "%.200s: dtype %.32s is not one of F64, F32, F16, BF16, I64, I32, "
                                "U8 and BOOL",
                                name, dtype ? dtype : "is no text or missing; it");
    entry.storage = dtypes[i].storage;
    entry.spec.dtype = wg__storage_kinds[entry.storage].read_as;
    const json_t *shape = json_object_get(value, "shape"), *size;
    if (!json_is_array(shape) || json_array_size(shape) > WG_MAX_DIMS)
        return wg__weights_fail(file, "%.200s: shape must be a list of at most %d sizes", name,
                                WG_MAX_DIMS);
    size_t axis;
    json_array_foreach(shape, axis, size) {
        entry.spec.shape[entry.spec.ndim++] = json_integer_value(size);
        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return wg__weights_fail(file, "%.200s: shape has an element that is no size", name);
    }
    const json_t *offsets = json_object_get(value, "data_offsets"),
                 *from = json_array_get(offsets, 0), *to = json_array_get(offsets, 1);
    const int64_t begin = json_integer_value(from), end = json_integer_value(to),
                  room = file->files[index].size - data;
    entry.bytes = wg__storage_bytes(entry.storage, entry.spec.ndim, entry.spec.shape);
    if (json_array_size(offsets) != 2 || !json_is_integer(from) || !json_is_integer(to))
        return wg__weights_fail(file, "%.200s: data_offsets must be two numbers", name);
    if (begin < 0 || end < begin || end > room)
        return wg__weights_fail(file, "%.200s: data_offsets %lld to %lld are not within %lld bytes",
                                name, (long long)begin, (long long)end, (long long)room);
    if (entry.bytes != end - begin)
        return wg__weights_fail(file, "%.200s: its shape takes %lld bytes, its data_offsets %lld",
                                name, (long long)entry.bytes, (long long)(end - begin));
    entry.offset = data + begin;
    return wg__weights_add(file, name, &entry);
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
    json_error_t error;
    const bool is_read = wg__input_read(input, 8, text, (int64_t)length) == 0;
    json_t *root =
        is_read ? json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error) : NULL;
    wg__free(text);
    int status = -1;
    if (is_read && !root && json_error_code(&error) == json_error_out_of_memory)
        wg_fail(WG_ERROR_MEMORY, "safetensors", "no memory for %s", file->path);
    else if (is_read && !root)
        wg__weights_fail(file, "the header is no JSON, column %d: %s", error.column, error.text);
    else if (is_read && !json_is_object(root))
        wg__weights_fail(file, "the header is no JSON object");
    else if (is_read) {
        const int64_t data = 8 + (int64_t)length, first = file->count;
        const char *name;
        json_t *value;
        status = 0;
        json_object_foreach(root, name, value) {
            if (status == 0 && strcmp(name, "__metadata__") != 0)
                status = add_tensor(file, index, name, value, data);
        }
        if (status == 0)
            status = wg__weights_keep_metadata(file, json_object_get(root, "__metadata__"));
        if (status == 0)
            status = wg__weights_check_cover(file, first, data, input->size);
    }
    json_decref(root);
    return status;
}

const wg__weights_reader wg__weights_safetensors = {.name = "safetensors",
                                                    .list = list_safetensors};

static int begin_safetensors(wg_weights_writer *writer, const wg_weights_options *options) {
    (void)options;
    if (writer->type == WG_WEIGHTS_Q8_0)
        return wg_fail(WG_ERROR_ARGUMENT, "safetensors", "has no quantized numbers; gguf has");
    json_t *root = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    int64_t offset = 0;
    int status = root ? 0 : -1;
    for (int64_t i = 0; i < writer->count && status == 0; i++) {
        wg__weights_slot *slot = &writer->slots[i];
        slot->storage = wg__storage_for(writer->type, slot->spec.dtype);
        slot->bytes = wg__storage_bytes(slot->storage, slot->spec.ndim, slot->spec.shape);
        slot->offset = offset;
        const char *dtype = NULL;
        for (int k = 0; k < DTYPES; k++)
            if (dtypes[k].storage == slot->storage)
                dtype = dtypes[k].name;
        json_t *shape = json_array();
        for (int axis = 0; axis < slot->spec.ndim; axis++)
            wg__json_append(&shape, json_integer(slot->spec.shape[axis]));
        json_t *entry =
            json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype, "shape", shape, "data_offsets",
                      (json_int_t)offset, (json_int_t)(offset + slot->bytes));
        status = json_object_set_new(root, slot->name, entry);
        offset += slot->bytes;
    }
    char *text = status == 0 ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (!text)
        return wg_fail(WG_ERROR_MEMORY, "safetensors",
                       "no memory for the header, or a name is not UTF-8");
    /* Spaces pad the header, so that the tensors begin at a multiple of 8. */
    const int64_t length = (int64_t)strlen(text), padded = (length + 7) / 8 * 8;
    uint8_t size[8];
    wg__put_le(size, (uint64_t)padded, 8);
    status = -1;
    if (wg__output_write(&writer->output, 0, size, 8) == 0 &&
        wg__output_write(&writer->output, 8, text, length) == 0)
        status = wg__output_write(&writer->output, 8 + length, "       ", padded - length);
    for (int64_t i = 0; i < writer->count; i++)
        writer->slots[i].offset += 8 + padded;
    free(text);
    return status;
}

const wg__weights_format wg__safetensors_writer = {.name = "safetensors",
                                                   .begin = begin_safetensors};
