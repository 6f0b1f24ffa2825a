/* Tensor files of any format: opening, listing, reading. See weights.h. */
#include "io/weights/weights.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <utf8proc.h>

#include "base/array.h"
#include "io/llama_layout.h"
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

/* ---- The list ---- */

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

static int check_entry(const wg_weights *file, const char *name, const wg__weights_entry *entry) {
    const size_t length = strlen(name);
    if (length == 0 || length > WG__MAX_TENSOR_NAME || !is_utf8(name, length))
        return wg__weights_fail(file, "tensor %lld has no name of 1 to %d bytes of UTF-8",
                                (long long)file->count, WG__MAX_TENSOR_NAME);
    if (file->file_count == 0)
        return 0;
    const int64_t size = file->files[entry->file].size;
    if (entry->offset < 0 || entry->bytes < 0 || entry->offset > size ||
        entry->bytes > size - entry->offset)
        return wg__weights_fail(file, "%.200s: %lld bytes at %lld are beyond the end, %lld", name,
                                (long long)entry->bytes, (long long)entry->offset, (long long)size);
    return 0;
}

int wg__weights_add(wg_weights *file, const char *name, const wg__weights_entry *entry) {
    if (check_entry(file, name, entry) < 0)
        return -1;
    if (file->count >= WG__MAX_TENSORS)
        return wg__weights_fail(file, "more than %d tensors", WG__MAX_TENSORS);
    wg__weights_entry *entries =
        wg__grow(file->entries, file->count, &file->capacity, file->count + 1, sizeof *entries);
    if (!entries)
        return -1;
    file->entries = entries;
    wg__weights_entry *added = &file->entries[file->count];
    *added = *entry;
    added->name = wg__strdup(name);
    if (!added->name)
        return -1;
    file->count++;
    return 0;
}

static int compare_by_name(const void *a, const void *b, void *context) {
    const wg_weights *file = context;
    return strcmp(file->entries[*(const int64_t *)a].name, file->entries[*(const int64_t *)b].name);
}

/* Sorts the names; -1 with FORMAT if two are the same. */
static int sort_names(wg_weights *file) {
    file->by_name = wg__alloc(((size_t)file->count + 1) * sizeof *file->by_name);
    if (!file->by_name)
        return -1;
    for (int64_t i = 0; i < file->count; i++)
        file->by_name[i] = i;
    qsort_r(file->by_name, (size_t)file->count, sizeof *file->by_name, compare_by_name, file);
    for (int64_t i = 1; i < file->count; i++)
        if (compare_by_name(&file->by_name[i - 1], &file->by_name[i], file) == 0)
            return wg__weights_fail(file, "two tensors are called %.200s",
                                    file->entries[file->by_name[i]].name);
    return 0;
}

static int compare_by_offset(const void *a, const void *b, void *context) {
    const wg_weights *file = context;
    const int64_t x = file->entries[*(const int64_t *)a].offset,
                  y = file->entries[*(const int64_t *)b].offset;
    return (x > y) - (x < y);
}

int wg__weights_check_apart(const wg_weights *file) {
    int64_t *order = wg__alloc(((size_t)file->count + 1) * sizeof *order), end = 0;
    if (!order)
        return -1;
    for (int64_t i = 0; i < file->count; i++)
        order[i] = i;
    qsort_r(order, (size_t)file->count, sizeof *order, compare_by_offset, (void *)file);
    int status = 0;
    for (int64_t i = 0; i < file->count && status == 0; i++) {
        const wg__weights_entry *entry = &file->entries[order[i]];
        if (entry->bytes && entry->offset < end)
            status = wg__weights_fail(file, "%.200s overlaps another tensor", entry->name);
        if (entry->offset + entry->bytes > end)
            end = entry->offset + entry->bytes;
    }
    wg__free(order);
    return status;
}

/* ---- Which format ---- */

static bool ends_in(const char *text, const char *end) {
    const size_t length = strlen(text), part = strlen(end);
    return length >= part && strcmp(text + length - part, end) == 0;
}

static bool begins(const uint8_t *bytes, int64_t count, const char *with, int64_t length) {
    return count >= length && memcmp(bytes, with, (size_t)length) == 0;
}

/* What it begins with tells, and the suffix for those that begin with nothing of their own. */
static const wg__weights_format *format_of(const wg_weights *file) {
    uint8_t bytes[16] = {0};
    const int64_t size = file->files[0].size, count = size < 16 ? size : 16;
    if (wg__input_read(&file->files[0], 0, bytes, count) < 0)
        return NULL;
    if (begins(bytes, count, "\x89HDF\r\n\x1a\n", 8))
        return &wg__weights_hdf5;
    if (begins(bytes, count, "PK\x03\x04", 4) || begins(bytes, count, "PK\x05\x06", 4))
        return &wg__weights_pytorch;
    if (begins(bytes, count, "GGUF", 4))
        return &wg__weights_gguf;
    if (ends_in(file->path, ".safetensors") || (count > 8 && bytes[8] == '{'))
        return &wg__weights_safetensors;
    if (begins(bytes, count, "\x80\x02\x8a\x0al\xfc\x9c", 7)) {
        wg__weights_fail(file,
                         "is what torch.save wrote before PyTorch 1.6; load it there, and save "
                         "it again");
        return NULL;
    }
    if (begins(bytes, count, "24ka", 4) || ends_in(file->path, ".bin"))
        return &wg__weights_llama2c;
    static const struct {
        const char *suffix;
        const wg__weights_format *format;
    } suffixes[] = {{".h5", &wg__weights_hdf5},
                    {".gguf", &wg__weights_gguf},
                    {".pt", &wg__weights_pytorch},
                    {".pth", &wg__weights_pytorch}};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (ends_in(file->path, suffixes[i].suffix)) {
            wg__weights_fail(file, "does not begin as a file of %s does; is it cut short?",
                             suffixes[i].format->name);
            return NULL;
        }
    wg__weights_fail(file, "is none of HDF5, safetensors, PyTorch's zip, llama2.c's .bin and GGUF");
    return NULL;
}

/* The file of a folder that holds the tensors; freed with wg__free. */
static char *file_of_folder(const char *folder) {
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json",
                                        "pytorch_model.bin", "pytorch_model.bin.index.json"};
    struct stat status;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *path = wg__path_in(folder, names[i]);
        if (!path || stat(path, &status) == 0)
            return path;
        wg__free(path);
    }
    wg_fail(WG_ERROR_NOT_FOUND, WHERE,
            "%s has no model.safetensors and no pytorch_model.bin, nor an index.json of either",
            folder);
    return NULL;
}

/* ---- Opening ---- */

static int open_single(wg_weights *file) {
    file->files = wg__calloc(1, sizeof *file->files);
    if (!file->files || wg__input_open(&file->files[0], file->path) < 0)
        return -1;
    file->file_count = 1;
    file->format = format_of(file);
    return file->format ? file->format->open(file) : -1;
}

static int open_path(wg_weights *file) {
    if (ends_in(file->path, ".index.json"))
        return wg__weights_open_shards(file);
    return open_single(file);
}

wg_weights *wg_weights_open(const char *path) {
    if (!path || wg_error_pending())
        return NULL;
    struct stat status;
    wg_weights *file = wg__calloc(1, sizeof *file);
    if (!file)
        return NULL;
    const bool is_folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    file->path = is_folder ? file_of_folder(path) : wg__strdup(path);
    if (file->path && open_path(file) == 0 && sort_names(file) == 0)
        return file;
    wg_weights_close(file);
    return NULL;
}

void wg_weights_close(wg_weights *file) {
    if (!file)
        return;
    if (file->format && file->format->close)
        file->format->close(file);
    for (int64_t i = 0; i < file->count; i++)
        wg__free(file->entries[i].name);
    for (int i = 0; i < file->file_count; i++)
        wg__input_close(&file->files[i]);
    wg__free(file->entries);
    wg__free(file->files);
    wg__free(file->by_name);
    wg__free(file->config);
    wg__free(file->tokenizer);
    wg__free(file->path);
    wg__free(file);
}

/* ---- Asking ---- */

const char *wg_weights_format(const wg_weights *file) {
    return file ? file->format->name : NULL;
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

const wg_spec *wg_weights_spec(const wg_weights *file, int64_t index) {
    return has(file, index) ? &file->entries[index].spec : NULL;
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

const char *wg_weights_config(const wg_weights *file) {
    return file ? file->config : NULL;
}

const char *wg_weights_tokenizer(const wg_weights *file) {
    return file ? file->tokenizer : NULL;
}

/* ---- Reading ---- */

/* The bytes of an entry, decoded into a tensor of that spec (all of a strided one's extent in one
 * dimension). Bytes are read in runs of whole blocks, so that no second tensor is in memory. */
static wg_tensor *read_run(const wg_weights *file, const wg__weights_entry *entry,
                           const wg_spec *spec) {
    wg_tensor *x = wg__tensor_new(spec);
    const int64_t block = wg__stored_block(entry->stored),
                  block_bytes = wg__stored_block_bytes(entry->stored), most = 32768,
                  blocks = entry->bytes / block_bytes;
    uint8_t *bytes = x ? wg__alloc((size_t)(most * block_bytes)) : NULL;
    char *out = bytes ? wg__tensor_address(x) : NULL;
    const size_t size = wg_dtype_size(spec->dtype);
    int status = bytes ? 0 : -1;
    for (int64_t at = 0; status == 0 && at < blocks; at += most) {
        const int64_t count = blocks - at < most ? blocks - at : most;
        status = wg__input_read(&file->files[entry->file], entry->offset + at * block_bytes, bytes,
                                count * block_bytes);
        if (status == 0)
            wg__stored_decode(entry->stored, count * block, bytes,
                              out + size * (size_t)(at * block));
    }
    wg__free(bytes);
    return status < 0 ? NULL : x;
}

static wg_tensor *read_strided(const wg_weights *file, const wg__weights_entry *entry) {
    const int64_t extent = entry->bytes / wg__stored_block_bytes(entry->stored);
    const wg_spec flat = {.dtype = entry->spec.dtype, .ndim = 1, .shape = {extent}};
    wg_tensor *run = read_run(file, entry, &flat);
    wg_tensor *view = run ? wg__tensor_view(run, &entry->spec, entry->strides, 0) : NULL;
    return wg_contiguous(view);
}

wg_tensor *wg_weights_read(wg_weights *file, int64_t index) {
    if (!file || wg_error_pending())
        return NULL;
    if (!has(file, index)) {
        wg_fail(WG_ERROR_INDEX, WHERE, "%s has no tensor %lld", file->path, (long long)index);
        return NULL;
    }
    if (file->format->read)
        return file->format->read(file, index);
    const wg__weights_entry *entry = &file->entries[index];
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x =
        entry->is_strided ? read_strided(file, entry) : read_run(file, entry, &entry->spec);
    if (x && entry->adjacent_heads)
        x = wg__llama_rows(x, entry->adjacent_heads, WG__ADJACENT_TO_HALVES);
    return wg_scope_end(&scope, x);
}
