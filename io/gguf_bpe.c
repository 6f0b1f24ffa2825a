/* Byte-level BPE in GGUF ("gpt2": tokens, their types, merges as "left right"), out of and into the
 * JSON that data/tokenizer/tokenizer.h describes. llama.cpp has no patterns in its files, only names of those
 * that it knows: a tokenizer that splits otherwise cannot be kept. */
#include <string.h>

#include "io/gguf.h"
#include "base/json.h"
#include "tensor/internal.h"

enum { NORMAL = 1, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5 };

/* The published patterns, by llama.cpp's names. */
static const struct {
    const char *name, *pattern;
    bool whole_words; /* a part that is a token is not merged */
} splits[] = {
    {"gpt-2", "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     false},
    {"llama-bpe",
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
     "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     true},
};

enum { SPLITS = sizeof splits / sizeof splits[0] };

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* ---- Writing ---- */

/* The number of its split, or -1. */
static int find_split(const json_t *options) {
    for (int i = 0; i < SPLITS; i++)
        if (strcmp(text_of(options, "pattern"), splits[i].pattern) == 0 &&
            json_is_true(json_object_get(options, "whole_words")) == splits[i].whole_words &&
            !json_is_true(json_object_get(options, "prefix_space")))
            return i;
    return -1;
}

bool wg__gguf_is_bpe(const json_t *root) {
    return strcmp(text_of(root, "kind"), "bpe") == 0 &&
           find_split(json_object_get(root, "options")) >= 0;
}

static int put_types(wg__buffer *header, const json_t *root, int64_t count, int64_t vocabulary) {
    uint8_t *types = wg__alloc((size_t)vocabulary);
    if (!types)
        return -1;
    memset(types, NORMAL, (size_t)count);
    memset(types + count, UNUSED, (size_t)(vocabulary - count));
    size_t i;
    json_t *added;
    json_array_foreach(json_object_get(root, "added"), i, added) {
        const json_int_t id = json_integer_value(json_object_get(added, "id"));
        if (id >= 0 && id < count)
            types[id] = json_is_true(json_object_get(added, "special")) ? CONTROL : USER_DEFINED;
    }
    wg__gguf_put_array(header, "tokenizer.ggml.token_type", WG__GGUF_I32, (uint64_t)vocabulary);
    for (int64_t id = 0; id < vocabulary && !wg_error_pending(); id++)
        wg__gguf_add_u32(header, types[id]);
    wg__free(types);
    return wg_error_pending() ? -1 : 0;
}

static int put_tokens(wg__buffer *header, const json_t *tokens, int64_t vocabulary) {
    const int64_t count = (int64_t)json_array_size(tokens);
    char padding[32];
    wg__gguf_put_array(header, "tokenizer.ggml.tokens", WG__GGUF_STRING, (uint64_t)vocabulary);
    for (int64_t i = 0; i < vocabulary && !wg_error_pending(); i++) {
        snprintf(padding, sizeof padding, "[PAD%lld]", (long long)i);
        const char *text =
            i < count ? json_string_value(json_array_get(tokens, (size_t)i)) : padding;
        wg__gguf_add_string(header, text ? text : "", text ? strlen(text) : 0);
    }
    return wg_error_pending() ? -1 : 0;
}

static int put_merges(wg__buffer *header, const json_t *tokens, const json_t *merges) {
    const size_t count = json_array_size(merges) / 2;
    wg__buffer merge = {0};
    wg__gguf_put_array(header, "tokenizer.ggml.merges", WG__GGUF_STRING, count);
    for (size_t i = 0; i < 2 * count && !wg_error_pending(); i++) {
        const json_int_t id = json_integer_value(json_array_get(merges, i));
        const char *text = json_string_value(json_array_get(tokens, (size_t)id));
        if (i % 2 == 0)
            merge.count = 0;
        else
            wg__buffer_add(&merge, " ", 1);
        wg__buffer_add(&merge, text ? text : "", text ? (int64_t)strlen(text) : 0);
        if (i % 2 == 1)
            wg__gguf_add_string(header, merge.bytes, (size_t)merge.count);
    }
    wg__buffer_free(&merge);
    return wg_error_pending() ? -1 : 0;
}

int wg__gguf_put_bpe(wg__buffer *header, const json_t *root, int64_t vocabulary, int *keys) {
    const json_t *tokens = json_object_get(root, "vocabulary"),
                 *options = json_object_get(root, "options");
    const int64_t count = (int64_t)json_array_size(tokens);
    const int split = find_split(options);
    *keys += 6;
    if (wg__gguf_put_text(header, "tokenizer.ggml.model", "gpt2") < 0 ||
        wg__gguf_put_text(header, "tokenizer.ggml.pre", splits[split].name) < 0 ||
        put_tokens(header, tokens, vocabulary) < 0 ||
        put_types(header, root, count, vocabulary) < 0 ||
        put_merges(header, tokens, json_object_get(options, "merges")) < 0)
        return -1;
    return wg__gguf_put_bool(header, "tokenizer.ggml.add_bos_token", splits[split].whole_words);
}

/* ---- Reading ---- */

typedef struct reading {
    const json_t *tokens, *types, *merges;
    int64_t count;
    int split;
    json_t *ids; /* {token: id} */
} reading;

/* What pads the table up to the model's vocabulary is no token of the tokenizer. */
static int64_t count_tokens(const json_t *types) {
    size_t count = json_array_size(types);
    while (count > 0 && json_integer_value(json_array_get(types, count - 1)) == UNUSED)
        count--;
    return (int64_t)count;
}

static bool find_lists(const json_t *metadata, reading *r) {
    r->tokens = json_object_get(metadata, "tokenizer.ggml.tokens");
    r->types = json_object_get(metadata, "tokenizer.ggml.token_type");
    r->merges = json_object_get(metadata, "tokenizer.ggml.merges");
    r->split = -1;
    for (int i = 0; i < SPLITS; i++)
        if (strcmp(text_of(metadata, "tokenizer.ggml.pre"), splits[i].name) == 0)
            r->split = i;
    r->count = count_tokens(r->types);
    return r->split >= 0 && r->count > 0 && json_is_array(r->merges) &&
           json_array_size(r->types) == json_array_size(r->tokens);
}

/* False for tokens that are no text, or stand there twice. */
static bool number_tokens(reading *r) {
    r->ids = json_object();
    for (int64_t i = 0; i < r->count; i++) {
        const char *token = json_string_value(json_array_get(r->tokens, (size_t)i));
        if (!token || json_object_get(r->ids, token) ||
            json_object_set_new(r->ids, token, json_integer(i)) < 0)
            return false;
    }
    return true;
}

/* The two ids of "left right", flat; NULL for a merge of what is no token. */
static json_t *merges_of(const reading *r) {
    json_t *list = json_array();
    for (size_t i = 0; list && i < json_array_size(r->merges); i++) {
        const char *merge = json_string_value(json_array_get(r->merges, i));
        const char *space = merge && *merge ? strchr(merge + 1, ' ') : NULL;
        char *left = space ? wg__strdup(merge) : NULL;
        json_t *first = NULL, *second = NULL;
        if (left) {
            left[space - merge] = '\0';
            first = json_object_get(r->ids, left);
            second = json_object_get(r->ids, space + 1);
        }
        wg__free(left);
        if (!first || !second || json_array_append(list, first) < 0 ||
            json_array_append(list, second) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *added_of(const reading *r) {
    json_t *list = json_array();
    for (int64_t i = 0; i < r->count; i++) {
        const json_int_t type = json_integer_value(json_array_get(r->types, (size_t)i));
        if (type == CONTROL || type == USER_DEFINED)
            json_array_append_new(list,
                                  json_pack("{s:I, s:O, s:b, s:b, s:b}", "id", (json_int_t)i,
                                            "text", json_array_get(r->tokens, (size_t)i), "special",
                                            type == CONTROL, "strip_left", 0, "strip_right", 0));
    }
    return list;
}

static json_t *special_of(const reading *r, const json_t *metadata) {
    static const char *const keys[][2] = {{"tokenizer.ggml.padding_token_id", "pad"},
                                          {"tokenizer.ggml.bos_token_id", "begin"},
                                          {"tokenizer.ggml.eos_token_id", "end"}};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        json_t *id = json_object_get(metadata, keys[i][0]);
        if (json_is_integer(id) && json_integer_value(id) < r->count)
            json_object_set(object, keys[i][1], id);
    }
    return object;
}

json_t *wg__gguf_bpe_of(const json_t *metadata) {
    reading r = {0};
    json_t *root = NULL, *tokens = NULL;
    if (find_lists(metadata, &r) && number_tokens(&r)) {
        json_t *merges = merges_of(&r);
        tokens = merges ? json_array() : NULL;
        for (int64_t i = 0; tokens && i < r.count; i++)
            json_array_append(tokens, json_array_get(r.tokens, (size_t)i));
        if (tokens)
            root = json_pack("{s:s, s:s, s:{s:s, s:b, s:b, s:o}, s:o, s:o, s:o}", "format",
                             "wengert-tokenizer", "kind", "bpe", "options", "pattern",
                             splits[r.split].pattern, "prefix_space", 0, "whole_words",
                             splits[r.split].whole_words, "merges", merges, "special",
                             special_of(&r, metadata), "added", added_of(&r), "vocabulary", tokens);
    }
    json_decref(r.ids);
    return root;
}
