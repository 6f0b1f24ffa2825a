/* Reading a tokenizer from a file of any format: what is in it tells which. See tokenizer.h. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "data/tokenizer/bpe.h"
#include "data/tokenizer/huggingface.h"
#include "data/tokenizer/sentencepiece_kind.h"
#include "data/tokenizer/text_file.h"
#include "data/tokenizer/kind.h"
#include "data/tokenizer/wordpiece.h"
#include "io/checkpoint/checkpoint.h"
#include "tensor/internal.h"

#define WHERE "wg_tokenizer_load"

/* HDF5's signature is no beginning of a text: 0x89 is not UTF-8. */
static const char checkpoint_signature[8] = "\x89HDF\r\n\x1a\n";

static bool is_checkpoint(const char *path) {
    char begin[sizeof checkpoint_signature] = {0};
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    bool same = fread(begin, sizeof begin, 1, file) == 1 &&
                memcmp(begin, checkpoint_signature, sizeof begin) == 0;
    fclose(file);
    return same;
}

static wg_tokenizer *load_from_checkpoint(const char *path) {
    wg_checkpoint *file = wg_checkpoint_open(path);
    char *json = file ? wg_checkpoint_get_text(file, "/tokenizer") : NULL;
    wg_tokenizer *tokenizer = wg_tokenizer_from_json(json);
    wg_text_free(json);
    wg_checkpoint_close(file);
    return tokenizer;
}

/* ---- Two files, each beside the other ---- */

static bool exists(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* The path of a file in a folder (`in`), or beside a file. NULL without memory. */
static char *path_of(const char *path, bool in, const char *name) {
    wg__text text = {0};
    const char *slash = strrchr(path, '/');
    int64_t length = in ? (int64_t)strlen(path) : slash ? slash - path : 0;
    if (wg__text_append(&text, path, length) < 0 ||
        ((in || slash) && wg__text_append(&text, "/", 1) < 0) ||
        wg__text_append(&text, name, (int64_t)strlen(name)) < 0) {
        wg__free(text.bytes);
        return NULL;
    }
    return text.bytes;
}

/* GPT-2's two files given one of them: the other has one of these names. */
static wg_tokenizer *load_bpe(const char *path, bool is_merges) {
    const char *const names[] = {is_merges ? "vocab.json" : "merges.txt",
                                 is_merges ? "encoder.json" : "vocab.bpe"};
    for (int i = 0; i < 2; i++) {
        char *other = path_of(path, false, names[i]);
        if (!other)
            return NULL;
        if (exists(other)) {
            wg_tokenizer *tokenizer =
                wg_bpe_load(is_merges ? other : path, is_merges ? path : other, NULL);
            wg__free(other);
            return tokenizer;
        }
        wg__free(other);
    }
    wg_fail(WG_ERROR_NOT_FOUND, WHERE, "%s needs %s beside it", path, names[0]);
    return NULL;
}

/* ---- One file ---- */

/* "format" may also be a word of GPT-2's vocabulary: then it is an id. */
static wg_tokenizer *load_json(const char *path, const json_t *root) {
    const json_t *format = json_object_get(root, "format");
    const json_t *first = json_object_iter_value(json_object_iter((json_t *)root));
    if (!json_is_string(format) && json_is_integer(first))
        return load_bpe(path, false);
    if (json_is_object(json_object_get(root, "model")))
        return wg__huggingface_read(root, path);
    return wg__tokenizer_from_json_root(root);
}

/* A first piece (field 1) whose text (field 1 of it) comes first: no text begins so, since an empty
 * line is no token, and no length of llama2.c's file has its second byte set. */
static bool is_sentencepiece(const char *bytes, int64_t length) {
    return length > 3 && bytes[0] == '\n' && bytes[1] > 0 && bytes[2] == '\n';
}

/* It begins with the length of the longest token, 32 bits of which the upper half is 0: a text has
 * no NUL. */
static bool is_llama2c(const char *bytes, int64_t length) {
    return length >= 12 && bytes[2] == '\0' && bytes[3] == '\0';
}

/* A vocab.txt does not tell whether it is cased; a tokenizer_config.json beside it may. */
static int read_case(const char *path, wg_wordpiece_options *options) {
    char *beside = path_of(path, false, "tokenizer_config.json");
    int64_t length;
    char *bytes = beside && exists(beside) ? wg__text_file_read(beside, &length, WHERE) : NULL;
    json_t *root = bytes ? wg__tokenizer_parse_json(bytes, length, beside) : NULL;
    options->cased = json_is_false(json_object_get(root, "do_lower_case"));
    json_decref(root);
    wg__free(bytes);
    wg__free(beside);
    return wg_error_pending() ? -1 : 0;
}

static wg_tokenizer *load_wordpiece(const char *path) {
    wg_wordpiece_options options = {0};
    return read_case(path, &options) < 0 ? NULL : wg_wordpiece_load(path, &options);
}

static wg_tokenizer *load_bytes(const char *path, const char *bytes, int64_t length) {
    if (bytes[strspn(bytes, " \t\r\n")] == '{') {
        json_t *root = wg__tokenizer_parse_json(bytes, length, path);
        wg_tokenizer *tokenizer = root ? load_json(path, root) : NULL;
        json_decref(root);
        return tokenizer;
    }
    if (is_sentencepiece(bytes, length))
        return wg__sentencepiece_read(bytes, length, path);
    if (is_llama2c(bytes, length))
        return wg__llama2c_read(bytes, length, path);
    if (strncmp(bytes, "#version", 8) == 0)
        return load_bpe(path, true);
    return load_wordpiece(path);
}

/* The path of the file of a folder that is read; NULL without one, or without memory. */
static char *find_in_folder(const char *folder) {
    static const char *const names[] = {"wengert.json", "tokenizer.json", "tokenizer.model",
                                        "vocab.json",   "encoder.json",   "vocab.txt",
                                        "tokenizer.bin"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *path = path_of(folder, true, names[i]);
        if (!path || exists(path))
            return path;
        wg__free(path);
    }
    return NULL;
}

bool wg_tokenizer_is_in(const char *folder) {
    char *path = folder ? find_in_folder(folder) : NULL;
    const bool found = path;
    wg__free(path);
    return found;
}

static wg_tokenizer *load_from_folder(const char *folder) {
    char *path = find_in_folder(folder);
    wg_tokenizer *tokenizer = path ? wg_tokenizer_load(path) : NULL;
    if (!path && !wg_error_pending())
        wg_fail(WG_ERROR_NOT_FOUND, WHERE,
                "%s has none of wengert.json, tokenizer.json, tokenizer.model, vocab.json, "
                "vocab.txt and tokenizer.bin",
                folder);
    wg__free(path);
    return tokenizer;
}

wg_tokenizer *wg_tokenizer_load(const char *path) {
    struct stat status;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return load_from_folder(path);
    if (is_checkpoint(path))
        return load_from_checkpoint(path);
    int64_t length;
    char *bytes = wg__text_file_read(path, &length, WHERE);
    wg_tokenizer *tokenizer = bytes ? load_bytes(path, bytes, length) : NULL;
    wg__free(bytes);
    return tokenizer;
}
