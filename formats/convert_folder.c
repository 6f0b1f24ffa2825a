/* Writing the folder of a published model. */
#include "formats/convert_folder.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "io/weights/binary_file.h"
#include "io/config.h"
#include "tensor/internal.h"

#define WHERE "convert"

enum { MOST_TOKENIZER = 1 << 28 };

char *wg__folder_begin(const char *folder) {
    if (mkdir(folder, 0777) < 0 && errno != EEXIST) {
        wg_fail(errno == ENOENT ? WG_ERROR_NOT_FOUND : WG_ERROR_IO, WHERE, "%s: %s", folder,
                strerror(errno));
        return NULL;
    }
    return wg__path_in(folder, "model.safetensors");
}

static int write_file(const char *folder, const char *name, const char *bytes, int64_t count) {
    char *path = wg__path_in(folder, name);
    wg__output *output = path ? wg__output_create(path) : NULL;
    wg__free(path);
    if (!output)
        return -1;
    if (wg__output_write(output, 0, bytes, count) == 0)
        return wg__output_commit(output);
    wg__output_abort(output);
    return -1;
}

/* Jansson's lists have no place in wg_config: the one that is wanted goes into the text. */
int wg__folder_config(const char *folder, const char *architecture, const char *json) {
    const char *rest = strchr(json, '{');
    char text[128] = "{";
    if (architecture)
        snprintf(text, sizeof text, "{\n  \"architectures\": [\"%s\"],", architecture);
    wg__text buffer = {0};
    int status = rest ? 0 : -1;
    if (status == 0)
        status = wg__text_append(&buffer, text, (int64_t)strlen(text));
    if (status == 0)
        status = wg__text_append(&buffer, rest + 1, (int64_t)strlen(rest + 1));
    if (status == 0)
        status = write_file(folder, "config.json", buffer.bytes, buffer.length);
    wg__free(buffer.bytes);
    return status;
}

/* ---- The tokenizer ---- */

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool is_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static int copy_file(const char *folder, const char *path, const char *name) {
    int64_t count;
    char *bytes = wg__read_whole(path, MOST_TOKENIZER, &count);
    const int status = bytes ? write_file(folder, name, bytes, count) : -1;
    wg__free(bytes);
    return status;
}

/* Some files are a tokenizer by themselves. */
static bool is_enough(const char *name) {
    return strcmp(name, "tokenizer.json") == 0 || strcmp(name, "tokenizer.model") == 0;
}

static int copy_files(const char *folder, const char *from, int *copied) {
    static const char *const names[] = {"wengert.json",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "tokenizer.model",
                                        "vocab.json",
                                        "merges.txt",
                                        "vocab.txt",
                                        "tokenizer.bin",
                                        "added_tokens.json"};
    int status = 0;
    for (size_t i = 0; status == 0 && i < sizeof names / sizeof names[0]; i++) {
        const char *slash = strrchr(from, '/'), *base = slash ? slash + 1 : from;
        char *path = is_folder(from) ? wg__path_in(from, names[i]) : NULL;
        if (!path && strcmp(base, names[i]) == 0 && is_enough(base))
            path = wg__strdup(from);
        if (path && is_file(path)) {
            status = copy_file(folder, path, names[i]);
            ++*copied;
        }
        wg__free(path);
    }
    return wg_error_pending() ? -1 : status;
}

int wg__folder_tokenizer(const char *folder, const char *from, const wg_tokenizer *tokenizer,
                         bool *published) {
    int copied = 0;
    *published = true;
    if (copy_files(folder, from, &copied) < 0)
        return -1;
    return copied ? 0 : wg_tokenizer_export(tokenizer, folder, published);
}
