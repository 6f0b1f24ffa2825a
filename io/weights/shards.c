/* A model in several files (shards), listed by an index file:
 *
 *     {"metadata": {"total_size": bytes},
 *      "weight_map": {"wte.weight": "model-00001-of-00002.safetensors", ...}}
 *
 * The files are in the folder of the index. When reading, their tensors must be exactly the tensors
 * of the index. When writing, tensors are divided as by Hugging Face's save_pretrained, so that the
 * same tensors come into the same files:
 *
 *     tensors      a  b | c  d  e | f          in their order, up to the bytes of a shard
 *     files        00001-of-00003  ...         a writer for each, all open until the end
 */
#include <ctype.h>
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "io/weights/file.h"
#include "io/config.h"
#include "tensor/internal.h"

#define WHERE "safetensors"
#define SUFFIX ".safetensors"
#define INDEX_SUFFIX ".safetensors.index.json"

enum { MOST_INDEX = 100000000, MOST_FILES = 4096 };

/* Numbers the files in the order of their first tensor in the index: {name: number}. */
static json_t *number_files(wg_weights *file, const json_t *map) {
    json_t *numbers = json_object();
    const char *tensor;
    json_t *value;
    json_object_foreach((json_t *)map, tensor, value) {
        const char *name = json_string_value(value);
        if (!name || !*name || *name == '.' || strchr(name, '/') || strchr(name, '\\')) {
            wg__weights_fail(file, "the file of %.200s is no name of a file beside the index",
                             tensor);
            json_decref(numbers);
            return NULL;
        }
        if (!json_object_get(numbers, name)) {
            const size_t count = json_object_size(numbers);
            wg__json_put(&numbers, name, json_integer((json_int_t)count));
        }
        if (!numbers)
            return NULL;
    }
    if (json_object_size(numbers) == 0 || json_object_size(numbers) > MOST_FILES) {
        wg__weights_fail(file, "weight_map names %zu files; wanted 1 to %d",
                         json_object_size(numbers), MOST_FILES);
        json_decref(numbers);
        return NULL;
    }
    return numbers;
}

static int open_files(wg_weights *file, const json_t *map, const json_t *numbers) {
    file->files = wg__calloc(json_object_size(numbers), sizeof *file->files);
    if (!file->files)
        return -1;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)numbers, name, value) {
        char *path = wg__path_beside(file->path, name);
        const int index = file->file_count;
        const int status = path ? wg__input_open(&file->files[index], path) : -1;
        wg__free(path);
        if (status < 0)
            return -1;
        uint8_t begin[2] = {0};
        file->file_count++;
        if (wg__input_read(&file->files[index], 0, begin, 2) < 0)
            return -1;
        const bool is_zip = memcmp(begin, "PK", 2) == 0;
        const wg__weights_reader *reader = is_zip ? &wg__weights_pytorch : &wg__weights_safetensors;
        if (index > 0 && file->reader != reader)
            return wg__weights_fail(file, "%.200s is of another format than the files before it",
                                    name);
        file->reader = reader;
        if (reader->list(file, index) < 0)
            return -1;
    }
    for (int64_t i = 0; i < file->count; i++) {
        const wg__weights_entry *entry = &file->entries[i];
        const char *listed = json_string_value(json_object_get(map, entry->name));
        const json_t *number = listed ? json_object_get(numbers, listed) : NULL;
        if (!number || json_integer_value(number) != entry->file)
            return wg__weights_fail(file, "%.200s is in %.200s, which the index does not say",
                                    entry->name, file->files[entry->file].path);
    }
    if (file->count != (int64_t)json_object_size(map))
        return wg__weights_fail(file, "weight_map names %zu tensors; the files hold %lld",
                                json_object_size(map), (long long)file->count);
    return 0;
}

static int open_shards(wg_weights *file) {
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

/* Once the first file is open, the handle has that file's reader. */
const wg__weights_reader wg__weights_shards = {.name = "shards", .open = open_shards};

/* The length of NAME in FOLDER/NAME.safetensors; *name points at it. */
static size_t shard_stem(const char *path, const char **name) {
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    return strlen(*name) - (wg__ends_with(*name, SUFFIX) ? strlen(SUFFIX) : 0);
}

/* True for NAME-00001-of-00003.safetensors, with any numbers. */
static bool is_shard(const char *file, const char *stem, size_t length) {
    static const char pattern[] = "-00000-of-00000" SUFFIX;
    if (strncmp(file, stem, length) != 0 || strlen(file) != length + strlen(pattern))
        return false;
    for (size_t i = 0; pattern[i]; i++) {
        const char c = file[length + i];
        if (pattern[i] == '0' ? !isdigit((unsigned char)c) : c != pattern[i])
            return false;
    }
    return true;
}

/* Removes the shards of an earlier write of the same model, except the `count` named files, as
 * save_pretrained does. A file that cannot be removed stays: the model is complete without it. */
static void remove_stale_shards(const char *path, int64_t count, char *const *names) {
    const char *stem;
    const size_t length = shard_stem(path, &stem), size = (size_t)(stem - path) + 2;
    char *folder_path = wg__try_alloc(size);
    if (!folder_path)
        return;
    snprintf(folder_path, size, "%.*s.", (int)(stem - path), path);
    DIR *folder = opendir(folder_path);
    wg__free(folder_path);
    if (!folder)
        return;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (is_shard(entry->d_name, stem, length) &&
            !wg__is_among(entry->d_name, (int)count, (const char *const *)names))
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}

typedef struct place {
    int64_t shard, index; /* of the tensor, within the shard */
} place;

typedef struct shard_list {
    int64_t count, total_bytes;
    wg_weights_writer **writers;
    place *places; /* by tensor */
    char **names;  /* of the files, without their folder */
    json_t *map;   /* of the index: tensor to file */
} shard_list;

static void abort_shards(wg_weights_writer *writer) {
    shard_list *shards = writer->own;
    if (!shards)
        return;
    for (int64_t i = 0; shards->writers && i < shards->count; i++)
        wg_weights_abort(shards->writers[i]);
    for (int64_t i = 0; shards->names && i < shards->count; i++)
        wg__free(shards->names[i]);
    json_decref(shards->map);
    wg__free(shards->names);
    wg__free(shards->writers);
    wg__free(shards->places);
    wg__free(shards);
}

/* Puts the tensors from `from` to before `to` that have no file yet into the next one. */
static void close_shard(shard_list *shards, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++)
        if (shards->places[i].shard < 0)
            shards->places[i].shard = shards->count;
    shards->count++;
}

static int begin_files(wg_weights_writer *writer, const wg_weights_info *infos) {
    shard_list *shards = writer->own;
    const char *name;
    const size_t stem = shard_stem(writer->path, &name), size = strlen(name) + 64;
    shards->writers = wg__calloc((size_t)shards->count, sizeof(wg_weights_writer *));
    shards->names = wg__calloc((size_t)shards->count, sizeof *shards->names);
    wg_weights_info *mine = wg__alloc_array(writer->count + 1, sizeof *mine);
    int status = shards->writers && shards->names && mine ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < shards->count; i++) {
        shards->names[i] = wg__alloc(size);
        status = shards->names[i] ? 0 : -1;
        if (status == 0 && shards->count == 1)
            snprintf(shards->names[i], size, "%s", name);
        else if (status == 0)
            snprintf(shards->names[i], size, "%.*s-%05lld-of-%05lld" SUFFIX, (int)stem, name,
                     (long long)i + 1, (long long)shards->count);
    }
    for (int64_t i = 0; status == 0 && i < shards->count; i++) {
        int64_t count = 0;
        for (int64_t t = 0; t < writer->count; t++) {
            if (shards->places[t].shard != i)
                continue;
            shards->places[t].index = count;
            mine[count++] = infos[t];
            if (shards->map &&
                json_object_set_new(shards->map, infos[t].name, json_string(shards->names[i])) < 0)
                wg_fail(WG_ERROR_MEMORY, WHERE, "no memory for the index, or a name is not UTF-8");
        }
        char *path = wg__path_beside(writer->path, shards->names[i]);
        shards->writers[i] =
            wg__weights_begin(path, &wg__safetensors_writer,
                              &(wg_weights_options){.type = writer->type}, count, mine);
        wg__free(path);
        status = shards->writers[i] ? 0 : -1;
    }
    wg__free(mine);
    return status;
}

static int begin_shards(wg_weights_writer *writer, const wg_weights_options *options) {
    if (options->shard_bytes < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "shards of %lld bytes; wanted at least 1",
                       (long long)options->shard_bytes);
    shard_list *shards = writer->own = wg__calloc(1, sizeof *shards);
    wg_weights_info *infos = wg__alloc_array(writer->count + 1, sizeof *infos);
    if (shards)
        shards->places = wg__calloc((size_t)writer->count + 1, sizeof *shards->places);
    int status = infos && shards && shards->places ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < writer->count; i++)
        infos[i] = (wg_weights_info){writer->slots[i].name, writer->slots[i].spec};
    /* Q8_0 gives no sizes here; the single file refuses it. */
    if (status == 0 && options->shard_bytes && options->type != WG_WEIGHTS_Q8_0) {
        /* Divides the tensors. A tensor that is larger than a shard gets one to itself at once; the
         * shard that is being filled is continued after it, and numbered when it is full. */
        const int64_t tensors = writer->count;
        int64_t filled = 0, first = -1; /* of the shard that is being filled */
        for (int64_t i = 0; i < tensors; i++) {
            const wg_spec *spec = &infos[i].spec;
            const wg__storage_dtype storage = wg__storage_for(options->type, spec->dtype);
            const int64_t bytes = wg__storage_bytes(storage, spec->ndim, spec->shape);
            shards->total_bytes += bytes;
            if (bytes > options->shard_bytes) {
                shards->places[i].shard = shards->count++;
                continue;
            }
            if (filled + bytes > options->shard_bytes) {
                close_shard(shards, first, i);
                filled = 0;
                first = -1;
            }
            if (first < 0)
                first = i;
            shards->places[i].shard = -1;
            filled += bytes;
        }
        if (first >= 0)
            close_shard(shards, first, tensors);
    }
    if (status == 0 && shards->count > MOST_FILES)
        status = wg_fail(WG_ERROR_ARGUMENT, WHERE,
                         "shards of %lld bytes would be %lld files; at most %d are read",
                         (long long)options->shard_bytes, (long long)shards->count, MOST_FILES);
    if (status == 0 && shards->count == 0)
        shards->count = 1;
    if (status == 0 && shards->count > 1 && !(shards->map = json_object()))
        status = wg_fail(WG_ERROR_MEMORY, WHERE, "no memory for the index");
    if (status == 0)
        status = begin_files(writer, infos);
    wg__free(infos);
    return status;
}

static int put_shards(wg_weights_writer *writer, int64_t index, const wg_tensor *x) {
    const shard_list *shards = writer->own;
    const place *to = &shards->places[index];
    return wg_weights_put(shards->writers[to->shard], to->index, x);
}

static int commit_files(shard_list *shards) {
    int status = 0;
    for (int64_t i = 0; status == 0 && i < shards->count; i++) {
        status = wg_weights_commit(shards->writers[i]);
        shards->writers[i] = NULL;
    }
    return status;
}

/* After a failure neither the files nor an index that names them are left. */
static int commit_several(const char *path, shard_list *shards, const char *index) {
    /* Syncing all files before the first is renamed makes a failure of the commits unlikely. */
    for (int64_t i = 0; i < shards->count; i++) {
        const wg__replacement *output = &shards->writers[i]->output;
        if (wg_error_pending())
            return -1;
        if (fsync(output->descriptor) < 0)
            return wg__fail_with_errno(output->path, "file");
    }
    unlink(index);
    int status = commit_files(shards);
    json_t *root = json_pack("{s:{s:I}, s:O}", "metadata", "total_size",
                             (json_int_t)shards->total_bytes, "weight_map", shards->map);
    char *text =
        root ? json_dumps(root, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_ENSURE_ASCII) : NULL;
    json_decref(root);
    if (status == 0)
        status = text ? wg__write_whole(index, text, (int64_t)strlen(text), true)
                      : wg_fail(WG_ERROR_MEMORY, WHERE, "no memory for the index");
    free(text);
    if (status < 0) {
        for (int64_t i = 0; i < shards->count; i++) {
            char *file = wg__path_beside(path, shards->names[i]);
            if (file)
                unlink(file);
            wg__free(file);
        }
        return -1;
    }
    unlink(path);
    remove_stale_shards(path, shards->count, shards->names);
    return 0;
}

static int commit_shards(wg_weights_writer *writer) {
    shard_list *shards = writer->own;
    const char *name;
    const size_t length = shard_stem(writer->path, &name) + (size_t)(name - writer->path),
                 size = length + sizeof INDEX_SUFFIX;
    char *index = wg__alloc(size);
    if (index)
        snprintf(index, size, "%.*s" INDEX_SUFFIX, (int)length, writer->path);
    int status = -1;
    if (index && shards->count > 1)
        status = commit_several(writer->path, shards, index);
    else if (index && (status = commit_files(shards)) == 0) {
        unlink(index);
        remove_stale_shards(writer->path, 0, NULL);
    }
    wg__free(index);
    abort_shards(writer); /* frees the list: every writer is committed, or the commit failed */
    return status;
}

const wg__weights_format wg__shards_writer = {.name = "safetensors",
                                              .begin = begin_shards,
                                              .put = put_shards,
                                              .commit = commit_shards,
                                              .abort = abort_shards};
