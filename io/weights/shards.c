/* A model in several files, which an index names:
 *
 *     {"metadata": {...}, "weight_map": {"wte.weight": "model-00001-of-00002.safetensors", ...}}
 *
 * The files stand beside the index; they hold what it says, and nothing else. */
#include <jansson.h>
#include <string.h>

#include "io/weights/file.h"
#include "tensor/internal.h"

enum { MOST_INDEX = 100000000, MOST_FILES = 4096 };

/* The files' names in the order in which the index first names them; a JSON object {name: index}.
 */
static json_t *number_files(wg_weights *file, const json_t *map) {
    json_t *numbers = json_object();
    const char *tensor;
    json_t *value;
    json_object_foreach((json_t *)map, tensor, value) {
        const char *name = json_string_value(value);
        if (!name || !*name || *name == '.' || strchr(name, '/') || strchr(name, '\\')) {
            wg__weights_fail(file, "%.200s is to be in what is no name of a file beside the index",
                             tensor);
            json_decref(numbers);
            return NULL;
        }
        if (!json_object_get(numbers, name))
            json_object_set_new(numbers, name, json_integer((json_int_t)json_object_size(numbers)));
    }
    if (json_object_size(numbers) == 0 || json_object_size(numbers) > MOST_FILES) {
        wg__weights_fail(file, "weight_map names %zu files; wanted 1 to %d",
                         json_object_size(numbers), MOST_FILES);
        json_decref(numbers);
        return NULL;
    }
    return numbers;
}

static int open_file(wg_weights *file, const char *name) {
    char *path = wg__path_beside(file->path, name);
    if (!path)
        return -1;
    wg__input *input = &file->files[file->file_count];
    int status = wg__input_open(input, path);
    wg__free(path);
    if (status < 0)
        return -1;
    uint8_t begin[2] = {0};
    file->file_count++;
    if (wg__input_read(input, 0, begin, 2) < 0)
        return -1;
    const bool is_zip = memcmp(begin, "PK", 2) == 0;
    const wg__weights_format *format = is_zip ? &wg__weights_pytorch : &wg__weights_safetensors;
    if (file->format && file->format != format)
        return wg__weights_fail(file, "%.200s is of another format than the files before it", name);
    file->format = format;
    return is_zip ? wg__pytorch_list(file, file->file_count - 1)
                  : wg__safetensors_list(file, file->file_count - 1);
}

static int open_files(wg_weights *file, const json_t *map, const json_t *numbers) {
    file->files = wg__calloc(json_object_size(numbers), sizeof *file->files);
    if (!file->files)
        return -1;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)numbers, name, value) {
        if (open_file(file, name) < 0)
            return -1;
    }
    for (int64_t i = 0; i < file->count; i++) {
        const wg__weights_entry *entry = &file->entries[i];
        const char *said = json_string_value(json_object_get(map, entry->name));
        const json_t *number = said ? json_object_get(numbers, said) : NULL;
        if (!number || json_integer_value(number) != entry->file)
            return wg__weights_fail(file, "%.200s stands in %.200s, which the index does not say",
                                    entry->name, file->files[entry->file].path);
    }
    if (file->count != (int64_t)json_object_size(map))
        return wg__weights_fail(file, "weight_map names %zu tensors; the files hold %lld",
                                json_object_size(map), (long long)file->count);
    return 0;
}

int wg__weights_open_shards(wg_weights *file) {
    int64_t length;
    char *text = wg__read_whole(file->path, MOST_INDEX, &length);
    if (!text)
        return -1;
    json_error_t error;
    json_t *root = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    wg__free(text);
    if (!root)
        return wg__weights_fail(file, "is no JSON, line %d: %s", error.line, error.text);
    const json_t *map = json_object_get(root, "weight_map");
    int status = json_is_object(map) ? 0 : wg__weights_fail(file, "has no weight_map");
    json_t *numbers = status == 0 ? number_files(file, map) : NULL;
    status = numbers ? open_files(file, map, numbers) : -1;
    json_decref(numbers);
    json_decref(root);
    return status;
}
