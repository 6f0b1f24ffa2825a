/* Our own JSON of a tokenizer: all that is needed to encode and decode. See tokenizer.h. */
#include <string.h>

#include "data/tokenizer/bpe_kind.h"
#include "data/tokenizer/sentencepiece_kind.h"
#include "data/tokenizer/text_file.h"
#include "data/tokenizer/kind.h"
#include "tensor/internal.h"

#define FORMAT_NAME "wengert-tokenizer"

static const wg__tokenizer_kind *const kinds[] = {
    &wg__bpe_kind,     &wg__byte_kind,          &wg__char_kind,
    &wg__llama2c_kind, &wg__sentencepiece_kind, &wg__wordpiece_kind,
};

static const char *const special_names[WG_TOKEN_SPECIAL_COUNT] = {
    [WG_TOKEN_PAD] = "pad",     [WG_TOKEN_UNKNOWN] = "unknown",
    [WG_TOKEN_CLASS] = "class", [WG_TOKEN_SEPARATOR] = "separator",
    [WG_TOKEN_MASK] = "mask",   [WG_TOKEN_BEGIN] = "begin",
    [WG_TOKEN_END] = "end",
};

/* ---- Numbers ---- */

json_t *wg__numbers_to_json(int64_t count, const double *numbers) {
    json_t *list = json_array();
    for (int64_t i = 0; list && i < count; i++)
        if (json_array_append_new(list, json_real(numbers[i])) < 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

double *wg__numbers_of_json(const json_t *json, int64_t count, const char *key, const char *where) {
    bool good = json_is_array(json) && (int64_t)json_array_size(json) == count;
    double *numbers = good ? wg__alloc((size_t)(count + 1) * sizeof *numbers) : NULL;
    for (int64_t i = 0; numbers && good && i < count; i++) {
        const json_t *number = json_array_get(json, (size_t)i);
        good = json_is_number(number);
        numbers[i] = json_number_value(number);
    }
    if (!good) {
        wg_fail(WG_ERROR_FORMAT, where, "\"%s\" is no list of %lld numbers", key, (long long)count);
        wg__free(numbers);
        return NULL;
    }
    return numbers;
}

/* ---- Writing ---- */

static json_t *vocabulary_to_json(const wg__strings *vocabulary) {
    json_t *list = json_array();
    for (int64_t i = 0; list && i < vocabulary->count; i++)
        if (json_array_append_new(list, json_string(wg__strings_text(vocabulary, i))) < 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

static json_t *special_to_json(const wg_tokenizer *tokenizer) {
    json_t *object = json_object();
    for (int i = 0; object && i < WG_TOKEN_SPECIAL_COUNT; i++)
        if (tokenizer->special[i] >= 0 &&
            json_object_set_new(object, special_names[i], json_integer(tokenizer->special[i])) <
                0) {
            json_decref(object);
            object = NULL;
        }
    return object;
}

static json_t *added_to_json(const wg_tokenizer *tokenizer) {
    json_t *list = json_array();
    for (int64_t i = 0; list && i < tokenizer->added_texts.count; i++) {
        const wg__added_token *token = &tokenizer->added[i];
        json_t *entry =
            json_pack("{s:i, s:s, s:b, s:b, s:b}", "id", token->id, "text",
                      wg__strings_text(&tokenizer->added_texts, i), "special", token->special,
                      "strip_left", token->strip_left, "strip_right", token->strip_right);
        if (json_array_append_new(list, entry) < 0) {
            json_decref(list);
            list = NULL;
        }
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
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "format", FORMAT_NAME, "kind",
                  tokenizer->kind->name, "options", tokenizer->kind->options_to_json(tokenizer),
                  "special", special_to_json(tokenizer), "added", added_to_json(tokenizer),
                  "vocabulary", vocabulary_to_json(&tokenizer->vocabulary));
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

int wg_tokenizer_save(const wg_tokenizer *tokenizer, const char *path) {
    char *json = wg_tokenizer_to_json(tokenizer);
    if (!json)
        return -1;
    int status = wg__text_file_write(path, json, (int64_t)strlen(json), "wg_tokenizer_save");
    wg__free(json);
    return status;
}

/* ---- Reading ---- */

static const wg__tokenizer_kind *kind_of_name(const char *name) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    wg_fail(WG_ERROR_FORMAT, "tokenizer", "no tokenizer is of kind \"%.100s\" here", name);
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

static int read_added(wg_tokenizer *tokenizer, const json_t *added) {
    size_t i;
    json_t *entry;
    json_array_foreach((json_t *)added, i, entry) {
        const char *text;
        int id, special, strip_left, strip_right;
        json_error_t error;
        if (json_unpack_ex(entry, &error, 0, "{s:i, s:s, s:b, s:b, s:b}", "id", &id, "text", &text,
                           "special", &special, "strip_left", &strip_left, "strip_right",
                           &strip_right) < 0)
            return wg_fail(WG_ERROR_FORMAT, "tokenizer", "added token %zu: %s", i + 1, error.text);
        wg__added_token token = {id, special, strip_left, strip_right};
        if (wg__tokenizer_add(tokenizer, text, &token) < 0)
            return -1;
    }
    return 0;
}

static int read_special(wg_tokenizer *tokenizer, const json_t *special) {
    for (int i = 0; i < WG_TOKEN_SPECIAL_COUNT; i++) {
        const json_t *id = json_object_get(special, special_names[i]);
        if (!id)
            continue;
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) >= wg_tokenizer_size(tokenizer))
            return wg_fail(WG_ERROR_FORMAT, "tokenizer",
                           "the special token \"%s\" is no id of the vocabulary", special_names[i]);
        if (wg__tokenizer_set_special(tokenizer, i, (int32_t)json_integer_value(id)) < 0)
            return -1;
    }
    return 0;
}

/* Files that were written before there were other kinds than WordPiece have neither: then the kind
 * has found its special tokens by their names. */
static wg_tokenizer *with_added(wg_tokenizer *tokenizer, const json_t *special,
                                const json_t *added) {
    if (!tokenizer || (!special && !added))
        return tokenizer;
    wg__tokenizer_clear_added(tokenizer);
    if (read_added(tokenizer, added) < 0 || read_special(tokenizer, special) < 0) {
        wg_tokenizer_free(tokenizer);
        return NULL;
    }
    return tokenizer;
}

wg_tokenizer *wg__tokenizer_from_json_root(const json_t *root) {
    const char *format, *name;
    json_t *options, *vocabulary, *special = NULL, *added = NULL;
    json_error_t error;
    if (json_unpack_ex((json_t *)root, &error, 0, "{s:s, s:s, s:o, s:o, s?o, s?o}", "format",
                       &format, "kind", &name, "options", &options, "vocabulary", &vocabulary,
                       "special", &special, "added", &added) < 0) {
        wg_fail(WG_ERROR_FORMAT, "tokenizer", "not a tokenizer: %s", error.text);
        return NULL;
    }
    if (strcmp(format, FORMAT_NAME) != 0) {
        wg_fail(WG_ERROR_FORMAT, "tokenizer", "\"format\" is \"%.100s\", not \"" FORMAT_NAME "\"",
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
    return with_added(tokenizer, special, added);
}

json_t *wg__tokenizer_parse_json(const char *json, int64_t length, const char *name) {
    json_error_t error;
    json_t *root = json_loadb(json, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        wg_fail(WG_ERROR_FORMAT, "tokenizer", "%s is not JSON: line %d: %s", name, error.line,
                error.text);
    return root;
}

wg_tokenizer *wg_tokenizer_from_json(const char *json) {
    json_t *root = json ? wg__tokenizer_parse_json(json, (int64_t)strlen(json), "the text") : NULL;
    wg_tokenizer *tokenizer = root ? wg__tokenizer_from_json_root(root) : NULL;
    json_decref(root);
    return tokenizer;
}
