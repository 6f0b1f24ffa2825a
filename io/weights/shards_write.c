/* A model written in several files of safetensors, which an index names: as Hugging Face's
 * save_pretrained does it, so that the same tensors come into the same files.
 *
 *     tensors      a  b | c  d  e | f          in their order, as many as fit
 *     files        00001-of-00003  ...         each a writer of its own, all open until the end
 *     index.json   {"metadata": {"total_size": bytes}, "weight_map": {"a": "...", ...}} */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/weights/file.h"
#include "tensor/internal.h"

#define WHERE "safetensors"

enum { MOST_SHARDS = 4096 }; /* that are read */

typedef struct place {
    int64_t shard, index; /* of the tensor, within the shard */
} place;

struct wg__shards {
    char *path; /* of the one file that it would be */
    int64_t count, total_bytes, tensors;
    wg_weights_writer **writers;
    place *places; /* by tensor */
    char **names;  /* of the files, without their folder */
    json_t *map;   /* of the index: tensor to file */
};

void wg__shards_abort(wg__shards *shards) {
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
    wg__free(shards->path);
    wg__free(shards);
}

/* ---- Which tensor comes where ---- */

/* The tensors from `from` to before `to` that have no file yet share the next one. */
static void close_shard(wg__shards *shards, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++)
        if (shards->places[i].shard < 0)
            shards->places[i].shard = shards->count;
    shards->count++;
}

/* A tensor that is larger than a shard has one to itself at once; the one that is being filled goes
 * on, and is numbered when it is full. */
static void share_out(wg__shards *shards, const wg_weights_options *options,
                      const wg_weights_info *infos) {
    int64_t filled = 0, first = -1; /* of the shard that is being filled */
    for (int64_t i = 0; i < shards->tensors; i++) {
        const wg_spec *spec = &infos[i].spec;
        const wg__stored stored = wg__stored_for(options->type, spec->dtype);
        const int64_t bytes = wg__stored_bytes(stored, spec->ndim, spec->shape);
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
        close_shard(shards, first, shards->tensors);
}

static int name_files(wg__shards *shards) {
    const char *name;
    const size_t stem = wg__shard_stem(shards->path, &name), size = stem + 64;
    shards->names = wg__calloc((size_t)shards->count, sizeof *shards->names);
    for (int64_t i = 0; shards->names && i < shards->count; i++) {
        shards->names[i] = wg__alloc(size);
        if (!shards->names[i])
            return -1;
        snprintf(shards->names[i], size, "%.*s-%05lld-of-%05lld.safetensors", (int)stem, name,
                 (long long)i + 1, (long long)shards->count);
    }
    return shards->names ? 0 : -1;
}

static int begin_file(wg__shards *shards, int64_t shard, const wg_weights_options *options,
                      const wg_weights_info *infos) {
    wg_weights_info *mine = wg__alloc((size_t)shards->tensors * sizeof *mine);
    char *path = mine ? wg__path_beside(shards->path, shards->names[shard]) : NULL;
    int64_t count = 0;
    for (int64_t i = 0; path && i < shards->tensors; i++) {
        if (shards->places[i].shard != shard)
            continue;
        shards->places[i].index = count;
        mine[count++] = infos[i];
        if (json_object_set_new(shards->map, infos[i].name, json_string(shards->names[shard])) < 0)
            wg_fail(WG_ERROR_MEMORY, WHERE, "no memory for the index, or a name is not UTF-8");
    }
    const wg_weights_options single = {.type = options->type};
    if (path)
        shards->writers[shard] = wg_weights_create(path, "safetensors", &single, count, mine);
    wg__free(path);
    wg__free(mine);
    if (!shards->writers[shard])
        return -1;
    wg__free(shards->writers[shard]->whole_path);
    shards->writers[shard]->whole_path = NULL;
    return 0;
}

static int begin(wg__shards *shards, const wg_weights_options *options,
                 const wg_weights_info *infos) {
    if (shards->count > MOST_SHARDS)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "shards of %lld bytes would be %lld files; at most %d are read",
                       (long long)options->shard_bytes, (long long)shards->count, MOST_SHARDS);
    shards->map = json_object();
    if (!shards->map)
        return wg_fail(WG_ERROR_MEMORY, WHERE, "no memory for the index");
    shards->writers = wg__calloc((size_t)shards->count, sizeof(wg_weights_writer *));
    if (!shards->writers || name_files(shards) < 0)
        return -1;
    for (int64_t i = 0; i < shards->count; i++)
        if (begin_file(shards, i, options, infos) < 0)
            return -1;
    return 0;
}

int wg__shards_begin(wg__shards **shards, const char *path, const wg_weights_options *options,
                     int64_t count, const wg_weights_info *infos) {
    if (options->shard_bytes < 1)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "shards of %lld bytes; wanted at least 1",
                       (long long)options->shard_bytes);
    if (options->type == WG_WEIGHTS_Q8_0) /* of no size here: refused by the one file */
        return 0;
    wg__shards *s = wg__calloc(1, sizeof *s);
    if (!s)
        return -1;
    s->tensors = count;
    s->path = wg__strdup(path);
    s->places = wg__calloc((size_t)count + 1, sizeof *s->places);
    int status = s->path && s->places ? 0 : -1;
    if (status == 0) {
        share_out(s, options, infos);
        if (s->count > 1)
            status = begin(s, options, infos);
    }
    if (status < 0 || s->count < 2) {
        wg__shards_abort(s);
        return status;
    }
    *shards = s;
    return 0;
}

int wg__shards_put(wg__shards *shards, int64_t index, const wg_tensor *x) {
    const place *to = &shards->places[index];
    return wg_weights_put(shards->writers[to->shard], to->index, x);
}

/* ---- The end ---- */

static char *index_path(const wg__shards *shards) {
    const char *name;
    const size_t length = (size_t)(wg__shard_stem(shards->path, &name) + (name - shards->path)),
                 size = length + sizeof ".safetensors.index.json";
    char *path = wg__alloc(size);
    if (path)
        snprintf(path, size, "%.*s.safetensors.index.json", (int)length, shards->path);
    return path;
}

static int write_index(wg__shards *shards, const char *path) {
    json_t *root = json_pack("{s:{s:I}, s:O}", "metadata", "total_size",
                             (json_int_t)shards->total_bytes, "weight_map", shards->map);
    char *text =
        root ? json_dumps(root, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_ENSURE_ASCII) : NULL;
    json_decref(root);
    if (!text)
        return wg_fail(WG_ERROR_MEMORY, WHERE, "no memory for the index");
    const int64_t length = (int64_t)strlen(text);
    wg__output *output = wg__output_create(path);
    int status = output ? wg__output_write(output, 0, text, length) : -1;
    if (status == 0)
        status = wg__output_write(output, length, "\n", 1);
    if (status == 0)
        status = wg__output_commit(output);
    else
        wg__output_abort(output);
    free(text);
    return status;
}

/* The files come under their names; after a failure none is left, nor an index that names them. */
static int rename_files(wg__shards *shards) {
    int status = 0;
    int64_t renamed = 0;
    for (; status == 0 && renamed < shards->count; renamed++) {
        status = wg_weights_commit(shards->writers[renamed]);
        shards->writers[renamed] = NULL;
    }
    return status;
}

static void remove_files(const wg__shards *shards) {
    for (int64_t i = 0; i < shards->count; i++) {
        char *path = wg__path_beside(shards->path, shards->names[i]);
        if (path)
            unlink(path);
        wg__free(path);
    }
}

int wg__shards_commit(wg__shards *shards) {
    char *index = index_path(shards);
    int status = index ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < shards->count; i++)
        status = wg__output_sync(shards->writers[i]->output);
    if (status == 0) {
        unlink(index);
        status = rename_files(shards);
        if (status == 0)
            status = write_index(shards, index);
        if (status < 0) {
            remove_files(shards);
        } else {
            unlink(shards->path);
            wg__remove_stale_shards(shards->path, shards->count, shards->names);
        }
    }
    wg__free(index);
    wg__shards_abort(shards);
    return status;
}
