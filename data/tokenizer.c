/* What all tokenizers have in common. See tokenizer.h; the kinds stand in files of their own. */
#include <stdio.h>
#include <string.h>

#include "data/text_file.h"
#include "data/tokenizer_kind.h"
#include "data/wordpiece.h"
#include "io/checkpoint.h"
#include "tensor/internal.h"

#define FORMAT_NAME "wengert-tokenizer"

static const wg__tokenizer_kind *const kinds[] = {&wg__wordpiece_kind};

/* ---- Lists of ids ---- */

int wg_token_list_append(wg_token_list *list, int32_t id) {
    int32_t *ids = wg__grow(list->ids, list->count, &list->capacity, list->count + 1, sizeof *ids);
    if (!ids)
        return -1;
    list->ids = ids;
    ids[list->count++] = id;
    return 0;
}

void wg_token_list_free(wg_token_list *list) {
    wg__free(list->ids);
    *list = (wg_token_list){0};
}

/* ---- What a tokenizer is ---- */

const char *wg_tokenizer_kind(const wg_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->kind->name : NULL;
}

int64_t wg_tokenizer_size(const wg_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->vocabulary.count : 0;
}

const char *wg_tokenizer_token(const wg_tokenizer *tokenizer, int32_t id) {
    if (id < 0 || id >= wg_tokenizer_size(tokenizer))
        return NULL;
    return wg__strings_text(&tokenizer->vocabulary, id);
}

int32_t wg_tokenizer_id(const wg_tokenizer *tokenizer, const char *token) {
    if (!tokenizer || !token)
        return -1;
    return (int32_t)wg__strings_find(&tokenizer->vocabulary, token, (int64_t)strlen(token));
}

int32_t wg_tokenizer_special(const wg_tokenizer *tokenizer, wg_special_token which) {
    if (!tokenizer || (int)which < 0 || which >= WG_TOKEN_SPECIAL_COUNT)
        return -1;
    return tokenizer->special[which];
}

bool wg_tokenizer_is_special(const wg_tokenizer *tokenizer, int32_t id) {
    for (int i = 0; tokenizer && id >= 0 && i < WG_TOKEN_SPECIAL_COUNT; i++)
        if (tokenizer->special[i] == id)
            return true;
    return false;
}

void wg_tokenizer_free(wg_tokenizer *tokenizer) {
    if (!tokenizer)
        return;
    wg__strings_clear(&tokenizer->vocabulary);
    wg__free(tokenizer);
}

static int add_token(wg_tokenizer *tokenizer, const char *token, const char *entry) {
    wg__strings *vocabulary = &tokenizer->vocabulary;
    const char *where = tokenizer->kind->name;
    int64_t number = vocabulary->count, length = (int64_t)strlen(token);
    if (length == 0)
        return wg_fail(WG_ERROR_FORMAT, where, "%s %lld is empty", entry, (long long)number + 1);
    if (wg__utf8_invalid(token, length) >= 0)
        return wg_fail(WG_ERROR_FORMAT, where, "%s %lld is not UTF-8", entry,
                       (long long)number + 1);
    int64_t id = wg__strings_add(vocabulary, token, length);
    if (id >= 0 && id != number)
        return wg_fail(WG_ERROR_FORMAT, where,
                       "%s %lld is \"%s\" as %lld is; each token must stand once", entry,
                       (long long)number + 1, token, (long long)id + 1);
    return id < 0 ? -1 : 0;
}

int wg__tokenizer_set_vocabulary(wg_tokenizer *tokenizer, int64_t count, const char *const *tokens,
                                 const char *const special_names[WG_TOKEN_SPECIAL_COUNT],
                                 const char *entry) {
    for (int64_t i = 0; i < count; i++)
        if (add_token(tokenizer, tokens[i], entry) < 0)
            return -1;
    for (int i = 0; i < WG_TOKEN_SPECIAL_COUNT; i++)
        tokenizer->special[i] = wg_tokenizer_id(tokenizer, special_names[i]);
    return 0;
}

/* ---- Encoding and decoding ---- */

/* The special token whose text stands at `text`, or -1. */
static int32_t special_at(const wg_tokenizer *tokenizer, const char *text, int64_t length) {
    for (int i = 0; i < WG_TOKEN_SPECIAL_COUNT; i++) {
        int32_t id = tokenizer->special[i];
        if (id < 0)
            continue;
        int64_t token_length = wg__strings_length(&tokenizer->vocabulary, id);
        if (token_length <= length &&
            memcmp(wg__strings_text(&tokenizer->vocabulary, id), text, (size_t)token_length) == 0)
            return id;
    }
    return -1;
}

/* Encodes what stands between special tokens, and these as what they are. */
static int encode_with_special(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                               wg_token_list *list) {
    int64_t start = 0, at = 0, invalid = wg__utf8_invalid(text, length);
    if (invalid >= 0)
        return wg_fail(WG_ERROR_FORMAT, "tokenizer", "the text is not UTF-8 at byte %lld",
                       (long long)invalid);
    while (at < length) {
        int32_t id = special_at(tokenizer, text + at, length - at);
        if (id < 0) {
            at++;
            continue;
        }
        if (tokenizer->kind->encode(tokenizer, text + start, at - start, list) < 0 ||
            wg_token_list_append(list, id) < 0)
            return -1;
        at += wg__strings_length(&tokenizer->vocabulary, id);
        start = at;
    }
    return tokenizer->kind->encode(tokenizer, text + start, length - start, list);
}

int wg_tokenizer_encode(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                        const wg_encode_options *options, wg_token_list *list) {
    if (!tokenizer || !text || !list)
        return -1;
    if (length < 0)
        length = (int64_t)strlen(text);
    int64_t count = list->count;
    int status = options && options->special_tokens
                     ? encode_with_special(tokenizer, text, length, list)
                     : tokenizer->kind->encode(tokenizer, text, length, list);
    if (status < 0)
        list->count = count;
    return status < 0 ? -1 : 0;
}

char *wg_tokenizer_decode(const wg_tokenizer *tokenizer, const int32_t *ids, int64_t count,
                          const wg_decode_options *options) {
    static const wg_decode_options defaults;
    if (!tokenizer)
        return NULL;
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= tokenizer->vocabulary.count) {
            wg_fail(WG_ERROR_INDEX, "wg_tokenizer_decode",
                    "id %d is outside the vocabulary of %lld tokens", ids[i],
                    (long long)tokenizer->vocabulary.count);
            return NULL;
        }
    wg__text text = {0};
    if (wg__text_append(&text, "", 0) < 0 ||
        tokenizer->kind->decode(tokenizer, ids, count, options ? options : &defaults, &text) < 0) {
        wg__free(text.bytes);
        return NULL;
    }
    return text.bytes;
}

/* ---- Keeping ---- */

static json_t *vocabulary_to_json(const wg__strings *vocabulary) {
    json_t *list = json_array();
    for (int64_t i = 0; list && i < vocabulary->count; i++)
        if (json_array_append_new(list, json_string(wg__strings_text(vocabulary, i))) < 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

static int append_dump(const char *bytes, size_t size, void *context) {
    return wg__text_append(context, bytes, (int64_t)size);
}

static void *no_memory(void) {
    wg_fail(WG_ERROR_MEMORY, "tokenizer", "no memory for JSON");
    return NULL;
}

char *wg_tokenizer_to_json(const wg_tokenizer *tokenizer) {
    if (!tokenizer)
        return NULL;
    json_t *root =
        json_pack("{s:s, s:s, s:o, s:o}", "format", FORMAT_NAME, "kind", tokenizer->kind->name,
                  "options", tokenizer->kind->options_to_json(tokenizer), "vocabulary",
                  vocabulary_to_json(&tokenizer->vocabulary));
    if (!root)
        return no_memory();
    wg__text text = {0};
    int status = json_dump_callback(root, append_dump, &text, JSON_COMPACT);
    json_decref(root);
    if (status < 0) {
        wg__free(text.bytes);
        return no_memory();
    }
    return text.bytes;
}

static const wg__tokenizer_kind *kind_of_name(const char *name) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    wg_fail(WG_ERROR_FORMAT, "tokenizer", "no tokenizer is of kind \"%s\" here", name);
    return NULL;
}

/* The strings of a JSON list, borrowed from it. NULL with an error. */
static const char **tokens_of_json(const json_t *vocabulary) {
    if (!json_is_array(vocabulary)) {
        wg_fail(WG_ERROR_FORMAT, "tokenizer", "\"vocabulary\" is not a list");
        return NULL;
    }
    size_t count = json_array_size(vocabulary);
    const char **tokens = wg__alloc((count + 1) * sizeof *tokens);
    for (size_t i = 0; tokens && i < count; i++) {
        tokens[i] = json_string_value(json_array_get(vocabulary, i));
        if (!tokens[i]) {
            wg_fail(WG_ERROR_FORMAT, "tokenizer", "entry %zu of the vocabulary is not a string", i);
            wg__free(tokens);
            return NULL;
        }
    }
    return tokens;
}

static wg_tokenizer *from_json_root(json_t *root) {
    const char *format, *name;
    json_t *options, *vocabulary;
    json_error_t error;
    if (json_unpack_ex(root, &error, 0, "{s:s, s:s, s:o, s:o}", "format", &format, "kind", &name,
                       "options", &options, "vocabulary", &vocabulary) < 0) {
        wg_fail(WG_ERROR_FORMAT, "tokenizer", "not a tokenizer: %s", error.text);
        return NULL;
    }
    if (strcmp(format, FORMAT_NAME) != 0) {
        wg_fail(WG_ERROR_FORMAT, "tokenizer", "\"format\" is \"%s\", not \"" FORMAT_NAME "\"",
                format);
        return NULL;
    }
    const wg__tokenizer_kind *kind = kind_of_name(name);
    const char **tokens = kind ? tokens_of_json(vocabulary) : NULL;
    if (!tokens)
        return NULL;
    wg_tokenizer *tokenizer =
        kind->from_json(options, (int64_t)json_array_size(vocabulary), tokens);
    wg__free(tokens);
    return tokenizer;
}

static wg_tokenizer *from_json_bytes(const char *json, int64_t length) {
    json_error_t error;
    json_t *root = json_loadb(json, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        wg_fail(WG_ERROR_FORMAT, "tokenizer", "not JSON: line %d: %s", error.line, error.text);
        return NULL;
    }
    wg_tokenizer *tokenizer = from_json_root(root);
    json_decref(root);
    return tokenizer;
}

wg_tokenizer *wg_tokenizer_from_json(const char *json) {
    return json ? from_json_bytes(json, (int64_t)strlen(json)) : NULL;
}

int wg_tokenizer_save(const wg_tokenizer *tokenizer, const char *path) {
    char *json = wg_tokenizer_to_json(tokenizer);
    if (!json)
        return -1;
    int status = wg__text_file_write(path, json, (int64_t)strlen(json), "wg_tokenizer_save");
    wg__free(json);
    return status;
}

/* HDF5's signature is no beginning of a text: 0x89 is not UTF-8. */
static bool is_checkpoint(const char *path) {
    static const char signature[] = "\x89HDF\r\n\x1a\n";
    char begin[sizeof signature - 1] = {0};
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    bool same =
        fread(begin, sizeof begin, 1, file) == 1 && memcmp(begin, signature, sizeof begin) == 0;
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

wg_tokenizer *wg_tokenizer_load(const char *path) {
    if (is_checkpoint(path))
        return load_from_checkpoint(path);
    int64_t length;
    char *bytes = wg__text_file_read(path, &length, "wg_tokenizer_load");
    if (!bytes)
        return NULL;
    bool is_json = bytes[strspn(bytes, " \t\r\n")] == '{';
    wg_tokenizer *tokenizer = is_json ? from_json_bytes(bytes, length) : NULL;
    wg__free(bytes);
    return is_json ? tokenizer : wg_wordpiece_load(path, NULL);
}
