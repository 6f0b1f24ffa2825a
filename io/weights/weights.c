/* Tensor files: opening with a format's reader, listing, reading, and filling modules.
 *
 * To fill a module, names and shapes are compared, everything is read, then everything is copied,
 * so that nothing changes unless all goes well. */
#include "io/weights/weights.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <utf8proc.h>

#include "base/array.h"
#include "io/internal.h"
#include "io/weights/file.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "weights"

int wg__weights_fail(const wg_weights *file, const char *format, ...) {
    char text[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return wg_fail(WG_ERROR_FORMAT, WHERE, "%.300s: %s", file->path, text);
}

static bool is_utf8(const char *text, size_t length) {
    utf8proc_int32_t character;
    for (size_t i = 0; i < length;) {
        const utf8proc_ssize_t size = utf8proc_iterate((const utf8proc_uint8_t *)text + i,
                                                       (utf8proc_ssize_t)(length - i), &character);
        if (size <= 0)
            return false;
        i += (size_t)size;
    }
    return true;
}

int wg__weights_add(wg_weights *file, const char *name, const wg__weights_entry *entry) {
    const size_t length = strlen(name);
    const int64_t size = file->file_count ? file->files[entry->file].size : INT64_MAX;
    if (length == 0 || length > WG__MAX_TENSOR_NAME || !is_utf8(name, length))
        return wg__weights_fail(file, "tensor %lld has no name of 1 to %d bytes of UTF-8",
                                (long long)file->count, WG__MAX_TENSOR_NAME);
    if (entry->offset < 0 || entry->bytes < 0 || entry->offset > size ||
        entry->bytes > size - entry->offset)
        return wg__weights_fail(file, "%.200s: %lld bytes at %lld are beyond the end, %lld", name,
                                (long long)entry->bytes, (long long)entry->offset, (long long)size);
    if (file->count >= WG__MAX_TENSORS)
        return wg__weights_fail(file, "more than %d tensors", WG__MAX_TENSORS);
    if (wg__reserve(&file->entries, file->count, &file->capacity, file->count + 1,
                    sizeof *file->entries) < 0)
        return -1;
    wg__weights_entry *added = &file->entries[file->count];
    *added = *entry;
    added->name = wg__strdup(name);
    if (!added->name)
        return -1;
    file->count++;
    return 0;
}

static int compare_by_name(int64_t a, int64_t b, const void *context) {
    const wg_weights *file = context;
    return strcmp(file->entries[a].name, file->entries[b].name);
}

static int compare_by_offset(int64_t a, int64_t b, const void *context) {
    const wg_weights *file = context;
    const wg__weights_entry *x = &file->entries[a], *y = &file->entries[b];
    return x->offset != y->offset ? (x->offset > y->offset) - (x->offset < y->offset)
                                  : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

int wg__weights_check_overlap(const wg_weights *file) {
    int64_t *order = wg__sorted_indices(0, file->count, compare_by_offset, file), end = 0;
    int status = order ? 0 : -1;
    for (int64_t i = 0; i < file->count && status == 0; i++) {
        const wg__weights_entry *entry = &file->entries[order[i]];
        if (entry->bytes && entry->offset < end)
            status = wg__weights_fail(file, "%.200s overlaps another tensor", entry->name);
        end = wg__larger(end, entry->offset + entry->bytes);
    }
    wg__free(order);
    return status;
}

int wg__weights_check_cover(const wg_weights *file, int64_t first, int64_t begin, int64_t end) {
    int64_t *order = wg__sorted_indices(first, file->count, compare_by_offset, file);
    int status = order ? 0 : -1;
    for (int64_t i = 0; i < file->count - first && status == 0; i++) {
        const wg__weights_entry *entry = &file->entries[order[i]];
        if (entry->offset != begin)
            status =
                wg__weights_fail(file, "%.200s %s", entry->name,
                                 entry->offset < begin ? "overlaps another tensor"
                                                       : "follows bytes that belong to no tensor");
        begin = entry->offset + entry->bytes;
    }
    if (status == 0 && begin != end)
        status = wg__weights_fail(file, "%lld bytes at the end belong to no tensor",
                                  (long long)(end - begin));
    wg__free(order);
    return status;
}

enum { MOST_LISTED = 16 };

int wg__weights_keep_metadata(wg_weights *file, const json_t *metadata) {
    if (!metadata || file->metadata)
        return 0;
    json_t *kept = json_object();
    const char *key;
    json_t *value;
    char text[48];
    json_object_foreach((json_t *)metadata, key, value) {
        snprintf(text, sizeof text, "%zu values", json_array_size(value));
        if (json_array_size(value) > MOST_LISTED)
            json_object_set_new(kept, key, json_string(text));
        else
            json_object_set(kept, key, value);
    }
    char *json = json_dumps(kept, JSON_COMPACT | JSON_REAL_PRECISION(7));
    json_decref(kept);
    file->metadata = json ? wg__strdup(json) : NULL;
    free(json);
    return file->metadata ? 0 : wg_fail(WG_ERROR_MEMORY, WHERE, "no memory for the metadata");
}

wg_weights *wg__weights_open_as(const char *path, const wg__weights_reader *reader) {
    if (!path || wg_error_pending())
        return NULL;
    wg_weights *file = wg__calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->reader = reader;
    file->path = wg__strdup(path);
    int status = file->path ? 0 : -1;
    if (status == 0 && reader->open)
        status = reader->open(file);
    else if (status == 0) {
        file->files = wg__calloc(1, sizeof *file->files);
        status = file->files ? wg__input_open(&file->files[0], path) : -1;
        file->file_count = status == 0;
        if (status == 0)
            status = reader->list(file, 0);
    }
    file->by_name = status == 0 ? wg__sorted_indices(0, file->count, compare_by_name, file) : NULL;
    for (int64_t i = 1; file->by_name && i < file->count; i++)
        if (compare_by_name(file->by_name[i - 1], file->by_name[i], file) == 0)
            status = wg__weights_fail(file, "two tensors are called %.200s",
                                      file->entries[file->by_name[i]].name);
    if (status == 0 && file->by_name)
        return file;
    wg_weights_close(file);
    return NULL;
}

void wg_weights_close(wg_weights *file) {
    if (!file)
        return;
    if (file->reader->close)
        file->reader->close(file);
    for (int64_t i = 0; i < file->count; i++)
        wg__free(file->entries[i].name);
    for (int i = 0; i < file->file_count; i++)
        wg__input_close(&file->files[i]);
    wg__free(file->entries);
    wg__free(file->files);
    wg__free(file->by_name);
    wg__free(file->config);
    wg__free(file->tokenizer);
    wg__free(file->tokenizer_refused);
    wg__free(file->metadata);
    wg__free(file->path);
    wg__free(file);
}

const char *wg__weights_format_name(const wg_weights *file) {
    return file ? file->reader->name : NULL;
}

int64_t wg_weights_count(const wg_weights *file) {
    return file ? file->count : 0;
}

static bool has(const wg_weights *file, int64_t index) {
    return file && index >= 0 && index < file->count;
}

const char *wg_weights_name(const wg_weights *file, int64_t index) {
    return has(file, index) ? file->entries[index].name : NULL;
}

const wg_spec *wg__weights_spec(const wg_weights *file, int64_t index) {
    return has(file, index) ? &file->entries[index].spec : NULL;
}

/* Readers that open no file of bytes keep tensors in their own dtype. */
const char *wg__weights_stored(const wg_weights *file, int64_t index) {
    if (!has(file, index))
        return NULL;
    const wg__weights_entry *entry = &file->entries[index];
    return file->file_count ? wg__storage_kinds[entry->storage].name
                            : wg_dtype_name(entry->spec.dtype);
}

int64_t wg__weights_stored_bytes(const wg_weights *file, int64_t index) {
    if (!has(file, index))
        return 0;
    const wg__weights_entry *entry = &file->entries[index];
    if (file->file_count)
        return wg__storage_bytes(entry->storage, entry->spec.ndim, entry->spec.shape);
    return wg__spec_count(&entry->spec) * (int64_t)wg_dtype_size(entry->spec.dtype);
}

int64_t wg__weights_file_bytes(const wg_weights *file) {
    struct stat status;
    int64_t bytes = 0;
    if (file && file->file_count == 0)
        return stat(file->path, &status) == 0 ? (int64_t)status.st_size : 0;
    for (int i = 0; file && i < file->file_count; i++)
        bytes += file->files[i].size;
    return bytes;
}

int64_t wg_weights_find(const wg_weights *file, const char *name) {
    int64_t low = 0, high = name ? wg_weights_count(file) : 0;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = strcmp(file->entries[file->by_name[middle]].name, name);
        if (order == 0)
            return file->by_name[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

const char *wg__weights_config(const wg_weights *file) {
    return file ? file->config : NULL;
}

const char *wg__weights_metadata(const wg_weights *file) {
    return file ? file->metadata : NULL;
}

const char *wg__weights_tokenizer(const wg_weights *file) {
    return file ? file->tokenizer : NULL;
}

/* Decodes the bytes of an entry into a tensor of that spec: for a strided entry, one dimension with
 * all elements from the first to the last. Bytes are read in runs of whole blocks, so that memory
 * holds one tensor only. */
static wg_tensor *read_run(const wg_weights *file, const wg__weights_entry *entry,
                           const wg_spec *spec) {
    wg_tensor *x = wg__tensor_new(spec);
    const int64_t block = wg__storage_kinds[entry->storage].block,
                  block_bytes = wg__storage_kinds[entry->storage].block_bytes, most = 32768,
                  blocks = entry->bytes / block_bytes;
    uint8_t *bytes = x ? wg__alloc_array(wg__times(most, block_bytes), 1) : NULL;
    char *out = bytes ? wg__tensor_address(x) : NULL;
    const size_t size = wg_dtype_size(spec->dtype);
    int status = bytes ? 0 : -1;
    for (int64_t at = 0; status == 0 && at < blocks; at += most) {
        const int64_t count = blocks - at < most ? blocks - at : most;
        status = wg__input_read(&file->files[entry->file], entry->offset + at * block_bytes, bytes,
                                count * block_bytes);
        if (status == 0)
            wg__storage_decode(entry->storage, count * block, bytes,
                               out + size * (size_t)(at * block));
    }
    wg__free(bytes);
    return status < 0 ? NULL : x;
}

wg_tensor *wg_weights_read(wg_weights *file, int64_t index) {
    if (!file || wg_error_pending())
        return NULL;
    if (!has(file, index))
        return wg__fail_null(WG_ERROR_INDEX, WHERE, "%s has no tensor %lld", file->path,
                             (long long)index);
    if (file->reader->read)
        return file->reader->read(file, index);
    const wg__weights_entry *entry = &file->entries[index];
    wg_scope scope;
    wg_scope_begin(&scope);
    const int64_t extent = entry->bytes / wg__storage_kinds[entry->storage].block_bytes;
    const wg_spec flat = {.dtype = entry->spec.dtype, .ndim = 1, .shape = {extent}};
    wg_tensor *x = read_run(file, entry, entry->is_strided ? &flat : &entry->spec);
    if (x && entry->is_strided)
        x = wg_contiguous(wg__tensor_view(x, &entry->spec, entry->strides, 0));
    if (x && file->reader->arrange)
        x = file->reader->arrange(entry, x);
    return wg_scope_end(&scope, x);
}

/* The tensor of the file for each slot of the module. */
typedef struct match {
    const wg_state_dict *state;
    int64_t *found;     /* by slot: the tensor's index, or -1 to leave the slot alone */
    bool *used;         /* by tensor of the file: whether a slot has its name */
    wg_tensor **loaded; /* by slot: the tensor that was read */
    int64_t loaded_count;
    wg__differences differences;
} match;

static void add_name(char **names, int64_t *count, const char *name) {
    names[*count] = wg__strdup(name);
    *count += names[*count] != NULL;
}

/* Fills `m`, whose arrays get_module frees, and the lists of names that are left out. */
static int match_all(match *m, wg_weights *file, wg_module *module, const char *prefix,
                     wg_left_out *left_out) {
    *m = (match){.state = wg_module_state(module)};
    if (!m->state)
        return -1;
    const size_t slots = (size_t)m->state->count + 1, tensors = (size_t)file->count + 1;
    m->found = wg__calloc(slots, sizeof *m->found);
    m->used = wg__calloc(tensors, sizeof *m->used);
    m->loaded = wg__calloc(slots, sizeof *m->loaded);
    left_out->missing = wg__calloc(slots, sizeof(char *));
    left_out->misshapen = wg__calloc(slots, sizeof(char *));
    left_out->unexpected = wg__calloc(tensors, sizeof(char *));
    if (!m->found || !m->used || !m->loaded || !left_out->missing || !left_out->misshapen ||
        !left_out->unexpected)
        return -1;
    for (int64_t i = 0; i < m->state->count && !wg_error_pending(); i++) {
        const wg_state_entry *entry = &m->state->entries[i];
        m->found[i] = -1;
        if (entry->slot->tied)
            continue;
        char *name = wg__joined(prefix, entry->path, "");
        const int64_t found = wg_weights_find(file, name); /* -1 for NULL */
        wg__free(name);
        if (found < 0) {
            wg__note_difference(&m->differences.missing, entry->path);
            add_name(left_out->missing, &left_out->missing_count, entry->path);
            continue;
        }
        m->used[found] = true;
        if (wg__note_spec(&m->differences, entry->path, &file->entries[found].spec,
                          &entry->slot->tensor->spec))
            add_name(left_out->misshapen, &left_out->misshapen_count, entry->path);
        else
            m->found[i] = found;
    }
    for (int64_t i = 0; i < file->count; i++) {
        const char *name = file->entries[i].name;
        if (m->used[i] || !wg__starts_with(name, prefix))
            continue;
        wg__note_difference(&m->differences.unexpected, name);
        add_name(left_out->unexpected, &left_out->unexpected_count, name);
    }
    return wg_error_pending() ? -1 : 0;
}

/* The number of slots filled. `strict`: nothing may be left out. */
static int64_t get_module(wg_weights *file, const char *prefix, wg_module *module, bool strict,
                          wg_left_out *left_out) {
    match m;
    int status = match_all(&m, file, module, prefix, left_out);
    if (status == 0 && strict)
        status = wg__check_differences(&m.differences, file->path, "weights_get_module");
    /* Everything is read before anything is copied, so that a failure changes nothing. */
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int64_t i = 0; status == 0 && i < m.state->count; i++) {
        if (m.found[i] < 0)
            continue;
        m.loaded[i] = wg_weights_read(file, m.found[i]);
        m.loaded_count++;
        status = m.loaded[i] ? 0 : -1;
    }
    const bool recording = wg_set_grad_enabled(false);
    for (int64_t i = 0; status == 0 && i < m.state->count; i++)
        if (m.loaded[i])
            status = wg_copy_(m.state->entries[i].slot->tensor, m.loaded[i]);
    wg_set_grad_enabled(recording);
    wg_scope_end(&scope, NULL);
    wg_state_dict_free((wg_state_dict *)m.state);
    wg__free(m.found);
    wg__free(m.used);
    wg__free(m.loaded);
    return status < 0 ? -1 : m.loaded_count;
}

int wg_weights_get_module(wg_weights *file, wg_module *module) {
    wg_left_out none = {0};
    if (!file || !module || wg_error_pending())
        return -1;
    const int64_t loaded = get_module(file, "", module, true, &none);
    wg__left_out_free(&none);
    return loaded < 0 ? -1 : 0;
}

int64_t wg__weights_get_module_partial(wg_weights *file, const char *prefix, wg_module *module,
                                       wg_left_out *left_out) {
    wg_left_out own = {0};
    if (left_out)
        *left_out = own;
    if (!file || !module || wg_error_pending())
        return -1;
    const int64_t loaded = get_module(file, prefix ? prefix : "", module, false, &own);
    if (loaded >= 0 && left_out)
        *left_out = own;
    else
        wg__left_out_free(&own);
    return loaded;
}

void wg__left_out_free(wg_left_out *left_out) {
    if (!left_out)
        return;
    char **const lists[] = {left_out->missing, left_out->unexpected, left_out->misshapen};
    const int64_t counts[] = {left_out->missing_count, left_out->unexpected_count,
                              left_out->misshapen_count};
    for (int list = 0; list < 3; list++) {
        for (int64_t i = 0; i < counts[list]; i++)
            wg__free(lists[list][i]);
        wg__free(lists[list]);
    }
    *left_out = (wg_left_out){0};
}
