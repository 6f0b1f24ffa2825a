/* The kinds of files and folders, for messages; differences between tensors. See internal.h. */
#include "io/internal.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utf8proc.h>

#include "base/internal.h"
#include "io/weights/binary_file.h"
#include "tensor/easy.h"
#include "tensor/internal.h"

enum { READ = 4096 }; /* bytes of a file that decide its kind */

#define CONVERT ", no checkpoint; `wengert convert %s model.h5' makes one of it"

/* The first bytes of each kind of file, and its name in messages; %s is its path. */
static const struct {
    const char *bytes;
    size_t count;
    const char *text;
} beginnings[] = {
    {"GGUF", 4, "a file of GGUF" CONVERT},
    {"PK\x03\x04", 4, "a zip, as torch.save writes" CONVERT},
    {"24ka", 4, "a file of llama2.c" CONVERT},
    {"\x80\x02\x8a\x0al\xfc\x9c", 7,
     "what torch.save wrote before PyTorch 1.6; load it there, save it again, and `wengert "
     "convert' it"},
    {"\x80\x04", 2, "a pickle of Python; save its tensors by torch.save, and `wengert convert' it"},
    {"\x93NUMPY", 6, "an array of NumPy, no checkpoint"},
    {"\x1f\x8b", 2, "compressed by gzip; unpack it first"},
    {"\x28\xb5\x2f\xfd", 4, "compressed by zstd; unpack it first"},
    {"\xfd"
     "7zXZ",
     5, "compressed by xz; unpack it first"},
    {"version https://git-lfs", 23,
     "only the pointer to a file that Git LFS keeps; `git lfs pull' brings the file"},
};

/* True for UTF-8 without control characters; a character may be cut off at the end. */
static bool is_text(const uint8_t *bytes, int64_t count) {
    utf8proc_int32_t character;
    for (int64_t i = 0; i < count;) {
        const utf8proc_ssize_t length = utf8proc_iterate(bytes + i, count - i, &character);
        if (length <= 0)
            return i > 0 && count - i < 4 && count == READ;
        if (character < ' ' && !isspace((int)character))
            return false;
        i += length;
    }
    return count > 0;
}

static const char *kind_of_file(const char *path, const uint8_t *bytes, int64_t count,
                                int64_t file_size, char *text, size_t size) {
    const size_t known = sizeof beginnings / sizeof beginnings[0];
    const bool is_plain = is_text(bytes, count);
    const char *begin = (const char *)bytes + strspn((const char *)bytes, " \t\r\n");
    const char *format = "no checkpoint: it does not begin as a file of HDF5 does";
    size_t i = 0;
    if (count >= 4 && memcmp(bytes, "\x89HDF", 4) == 0)
        return NULL;
    while (i < known && (count < (int64_t)beginnings[i].count ||
                         memcmp(bytes, beginnings[i].bytes, beginnings[i].count) != 0))
        i++;
    if (count == 0)
        format = "an empty file";
    else if (i < known)
        format = beginnings[i].text;
    else if (count > 8 && bytes[8] == '{' && wg__le64(bytes) <= (uint64_t)file_size - 8)
        format = "a file of safetensors" CONVERT;
    else if (is_plain && *begin != '{' && *begin != '[')
        format = "plain text, no checkpoint; `wengert pretrain MODEL --corpus %s' trains on it";
    else if (is_plain && strstr(begin, "\"weight_map\""))
        format = "the index of several files of tensors" CONVERT;
    else if (is_plain && (strstr(begin, "\"model_type\"") || strstr(begin, "\"hidden_size\"") ||
                          strstr(begin, "\"n_embd\"")))
        format = "the configuration of a model, without weights; `wengert pretrain MODEL --config "
                 "%s' trains one";
    else if (is_plain && (strstr(begin, "\"added_tokens\"") || strstr(begin, "\"kind\"")))
        format = "a tokenizer, without a model; `wengert tokenizer' and --tokenizer take it";
    else if (is_plain)
        format = "a file of JSON, no checkpoint";
    else if (wg__ends_with(path, ".bin"))
        format = "no checkpoint; if it holds tensors of llama2.c, `wengert convert %s model.h5' "
                 "makes one of it";
    snprintf(text, size, format, path);
    return text;
}

char *wg__find_in_folder(const char *folder, int count, const char *const *names) {
    for (int i = 0; i < count; i++) {
        char *path = wg__path_in(folder, names[i]);
        if (!path || wg__is_file(path))
            return path;
        wg__free(path);
    }
    return NULL;
}

char *wg__find_weights(const char *folder) {
    return wg__find_in_folder(folder,
                              WG_NAMES("model.safetensors", "model.safetensors.index.json",
                                       "pytorch_model.bin", "pytorch_model.bin.index.json"));
}

const char *wg__file_kind(const char *path, char *text, size_t size) {
    struct stat status;
    if (stat(path, &status) < 0)
        return NULL;
    if (S_ISDIR(status.st_mode)) {
        char name[256] = "", *weights = wg__find_weights(path);
        /* the first checkpoint in the alphabet */
        DIR *directory = opendir(path);
        for (const struct dirent *entry; directory && (entry = readdir(directory));)
            if (wg__ends_with(entry->d_name, ".h5") && strlen(entry->d_name) < sizeof name &&
                (!*name || strcmp(entry->d_name, name) < 0))
                strcpy(name, entry->d_name);
        if (directory)
            closedir(directory);
        if (weights)
            snprintf(text, size, "the folder of a published model" CONVERT, path);
        else if (*name)
            snprintf(text, size, "a folder; did you mean the checkpoint %s/%s?", path, name);
        else
            snprintf(text, size, "a folder; a checkpoint is one file, and none is in it");
        wg__free(weights);
        return text;
    }
    if (!S_ISREG(status.st_mode)) /* opening and closing a pipe would end its writer */
        return strcpy(text, "not a regular file");
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return NULL;
    uint8_t bytes[READ + 1] = {0};
    const int64_t count = wg__read_at(descriptor, bytes, READ, 0);
    close(descriptor);
    return count < 0 ? NULL : kind_of_file(path, bytes, count, status.st_size, text, size);
}

bool wg__is_hdf5_file(const char *path) {
    static const uint8_t signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    if (!wg__is_file(path))
        return false;
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    uint8_t bytes[sizeof signature];
    const int64_t count = wg__read_at(descriptor, bytes, sizeof bytes, 0);
    if (count < 0)
        wg__fail_with_errno(path, "file");
    close(descriptor);
    return count == sizeof bytes && memcmp(bytes, signature, sizeof bytes) == 0;
}

bool wg__is_file(const char *path) {
    struct stat status;
    return path && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

bool wg__is_folder(const char *path) {
    struct stat status;
    return path && stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Names that do not fit become "...". */
void wg__note_difference(wg__difference *difference, const char *name) {
    size_t used = strlen(difference->names), room = sizeof difference->names - used;
    const char *separator = difference->count++ ? ", " : "";
    difference->biases += wg__ends_with(name, "bias");
    if (difference->is_full)
        return;
    difference->is_full = strlen(separator) + strlen(name) + sizeof ", ..." > room;
    snprintf(difference->names + used, room, "%s%s", separator, difference->is_full ? "..." : name);
}

bool wg__note_spec(wg__differences *differences, const char *name, const wg_spec *found,
                   const wg_spec *wanted) {
    bool floats = wg_dtype_is_float(found->dtype) && wg_dtype_is_float(wanted->dtype);
    if (wg__same_shape(found, wanted) && (floats || found->dtype == wanted->dtype))
        return false;
    char text[1184], has[64], wants[64];
    snprintf(text, sizeof text, "%.1023s is %s, wanted %s", name,
             wg_spec_text(has, sizeof has, found), wg_spec_text(wants, sizeof wants, wanted));
    wg__note_difference(floats && (found->ndim == 2 && wanted->ndim == 2 &&
                                   found->shape[0] == wanted->shape[1] &&
                                   found->shape[1] == wanted->shape[0])
                            ? &differences->transposed
                            : &differences->misshapen,
                        text);
    return true;
}

int wg__check_differences(const wg__differences *differences, const char *path, const char *where) {
    const wg__difference *missing = &differences->missing;
    const struct {
        const char *kind;
        const wg__difference *of;
        const char *advice;
    } kinds[] = {{"missing", missing,
                  missing->biases == missing->count
                      ? ": a model that was trained without biases is completed with zeros"
                      : ""},
                 {"unexpected", &differences->unexpected, ""},
                 {"transposed", &differences->transposed,
                  ": transpose them before you save, and square ones of the same kind, too"},
                 {"misshapen", &differences->misshapen, ""}};
    char text[1024] = "";
    for (int i = 0; i < 4; i++)
        if (kinds[i].of->count)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld %s (%s)%s",
                     *text ? "; " : "", (long long)kinds[i].of->count, kinds[i].kind,
                     kinds[i].of->names, kinds[i].advice);
    if (!*text)
        return 0;
    return wg_fail(missing->count ? WG_ERROR_NOT_FOUND : WG_ERROR_FORMAT, where, "%s: %s", path,
                   text);
}
