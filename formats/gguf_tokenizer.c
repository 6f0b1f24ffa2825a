/* Tokenizers in GGUF's metadata, to and from the JSON of data/tokenizer/tokenizer.h.
 *
 *     tokenizer.ggml.model   is
 *     llama                  SentencePiece BPE: pieces with scores and types, spaces as U+2581
 *     gpt2                   byte-level BPE: tokens, their types, merges as "left right"
 *
 * GGUF names the pattern that splits a text before BPE, and llama.cpp knows a fixed set of names. A
 * tokenizer with another pattern cannot be written. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "data/tokenizer/sentencepiece.h"
#include "data/tokenizer/text_file.h"
#include "formats/internal.h"
#include "io/config.h"
#include "tensor/easy.h"

/* The published patterns, by llama.cpp's names. */
static const struct {
    const char *name, *pattern;
    bool whole_words; /* a part that is a token is not merged */
} splits[] = {
    {"gpt-2", WG__GPT2_PATTERN, false},
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

/* ---- Keys of any tokenizer ---- */

/* True if texts begin with the begin token: as in objectives/causal_lm.c, if another token ends a
 * text. */
static bool adds_begin(const json_t *root) {
    const json_t *special = json_object_get(root, "special"),
                 *begin = json_object_get(special, "begin");
    return json_is_integer(begin) && !json_equal(begin, json_object_get(special, "end"));
}

/* Writes the reason why the tokenizer of the metadata would split texts differently here; false if
 * there is none. Known keys are read here or in gguf.c, or do not change the tokens of a text: the
 * ids of special tokens, say. */
static bool find_reason(const json_t *metadata, char *reason, size_t size) {
    static const char prefix[] = "tokenizer.ggml.";
    static const char *const false_only[] = {"tokenizer.ggml.add_eos_token",
                                             "tokenizer.ggml.add_sep_token",
                                             "tokenizer.ggml.remove_extra_whitespaces"};
    const char *key;
    json_t *value;
    for (int i = 0; i < 3; i++)
        if (json_is_true(json_object_get(metadata, false_only[i]))) {
            snprintf(reason, size, "%s is true; only false is read", false_only[i]);
            return true;
        }
    json_object_foreach((json_t *)metadata, key, value) {
        if (strncmp(key, prefix, strlen(prefix)) != 0 || wg__ends_with(key, "_token_id") ||
            wg__is_among(key + strlen(prefix),
                         WG_NAMES("model", "pre", "tokens", "scores", "token_type", "merges",
                                  "add_bos_token", "add_eos_token", "add_space_prefix",
                                  "token_type_count", "add_sep_token", "remove_extra_whitespaces")))
            continue;
        snprintf(reason, size, "the key %.100s is not known here; it may change the tokens", key);
        return true;
    }
    return false;
}

static bool flag(const json_t *metadata, const char *key, bool missing) {
    const json_t *value = json_object_get(metadata, key);
    return json_is_boolean(value) ? json_is_true(value) : missing;
}

/* ---- Byte-level BPE: writing ---- */

/* The pattern of a byte-level BPE; -1: another kind, or an unknown pattern. */
static int find_split(const json_t *root) {
    const json_t *options = json_object_get(root, "options");
    for (int i = 0; i < SPLITS && strcmp(text_of(root, "kind"), "bpe") == 0; i++)
        if (strcmp(text_of(options, "pattern"), splits[i].pattern) == 0 &&
            json_is_true(json_object_get(options, "whole_words")) == splits[i].whole_words &&
            !json_is_true(json_object_get(options, "prefix_space")))
            return i;
    return -1;
}

static void write_bpe(wg__text *header, const json_t *root, int64_t vocabulary) {
    const json_t *tokens = json_object_get(root, "vocabulary"),
                 *options = json_object_get(root, "options"),
                 *merges = json_object_get(options, "merges");
    const int64_t count = (int64_t)json_array_size(tokens);
    uint8_t *types = wg__alloc((size_t)vocabulary);
    if (!types)
        return;
    wg__gguf_write_text(header, "tokenizer.ggml.model", "gpt2");
    wg__gguf_write_text(header, "tokenizer.ggml.pre", splits[find_split(root)].name);
    wg__gguf_write_array(header, "tokenizer.ggml.tokens", WG__GGUF_STRING, (uint64_t)vocabulary);
    for (int64_t i = 0; i < vocabulary && !wg_error_pending(); i++) {
        char padding[32];
        snprintf(padding, sizeof padding, "[PAD%lld]", (long long)i);
        const char *text =
            i < count ? json_string_value(json_array_get(tokens, (size_t)i)) : padding;
        wg__gguf_append_string(header, text ? text : "", text ? strlen(text) : 0);
    }
    memset(types, WG__PIECE_NORMAL, (size_t)count);
    memset(types + count, WG__PIECE_UNUSED, (size_t)(vocabulary - count));
    size_t index;
    json_t *added;
    json_array_foreach(json_object_get(root, "added"), index, added) {
        const json_int_t id = json_integer_value(json_object_get(added, "id"));
        if (id >= 0 && id < count)
            types[id] = json_is_true(json_object_get(added, "special")) ? WG__PIECE_CONTROL
                                                                        : WG__PIECE_USER_DEFINED;
    }
    wg__gguf_write_array(header, "tokenizer.ggml.token_type", WG__GGUF_I32, (uint64_t)vocabulary);
    for (int64_t id = 0; id < vocabulary && !wg_error_pending(); id++)
        wg__gguf_append(header, WG__GGUF_U32, types[id]);
    wg__free(types);
    const size_t merge_count = json_array_size(merges) / 2;
    wg__text merge = {0};
    wg__gguf_write_array(header, "tokenizer.ggml.merges", WG__GGUF_STRING, merge_count);
    for (size_t i = 0; i < 2 * merge_count && !wg_error_pending(); i++) {
        const json_int_t id = json_integer_value(json_array_get(merges, i));
        const char *text = json_string_value(json_array_get(tokens, (size_t)id));
        if (i % 2 == 0)
            merge.length = 0;
        else
            wg__text_append(&merge, " ", 1);
        wg__text_append(&merge, text ? text : "", text ? (int64_t)strlen(text) : 0);
        if (i % 2 == 1)
            wg__gguf_append_string(header, merge.bytes, (size_t)merge.length);
    }
    wg__free(merge.bytes);
    wg__gguf_write(header, "tokenizer.ggml.add_bos_token", WG__GGUF_BOOL, adds_begin(root));
}

/* ---- Byte-level BPE: reading ---- */

typedef struct reading {
    const json_t *tokens, *types, *merges;
    int64_t count;
    int split;
    json_t *ids; /* {token: id} */
} reading;

/* The number of tokens before the unused ones that pad the table to the model's vocabulary. */
static int64_t count_unpadded(const json_t *types) {
    size_t count = json_array_size(types);
    while (count > 0 && json_integer_value(json_array_get(types, count - 1)) == WG__PIECE_UNUSED)
        count--;
    return (int64_t)count;
}

/* The two ids of each "left right", in one list; NULL if one is no token, or with MEMORY. */
static json_t *merges_of(const reading *r) {
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(r->merges); i++) {
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
        if (!first || !second) {
            json_decref(list);
            return NULL;
        }
        wg__json_append(&list, json_incref(first));
        wg__json_append(&list, json_incref(second));
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
            wg__json_put(&object, keys[i][1], json_incref(id));
    }
    /* drop a begin token that is not put before texts */
    if (!flag(metadata, "tokenizer.ggml.add_bos_token", splits[r->split].whole_words) && object &&
        !json_equal(json_object_get(object, "begin"), json_object_get(object, "end")))
        json_object_del(object, "begin");
    return object;
}

/* The tokenizer of the metadata as JSON; NULL if it is not one of these. */
static json_t *bpe_of(const json_t *metadata) {
    reading r = {.tokens = json_object_get(metadata, "tokenizer.ggml.tokens"),
                 .types = json_object_get(metadata, "tokenizer.ggml.token_type"),
                 .merges = json_object_get(metadata, "tokenizer.ggml.merges"),
                 .split = -1};
    for (int i = 0; i < SPLITS; i++)
        if (strcmp(text_of(metadata, "tokenizer.ggml.pre"), splits[i].name) == 0)
            r.split = i;
    r.count = count_unpadded(r.types);
    if (r.split < 0 || r.count == 0 || !json_is_array(r.merges) ||
        json_array_size(r.types) != json_array_size(r.tokens))
        return NULL;
    json_t *root = NULL;
    bool is_numbered = true; /* false if a token is no text, or occurs twice */
    r.ids = json_object();
    for (int64_t i = 0; is_numbered && i < r.count; i++) {
        const char *token = json_string_value(json_array_get(r.tokens, (size_t)i));
        is_numbered = token && !json_object_get(r.ids, token);
        if (is_numbered)
            wg__json_put(&r.ids, token, json_integer(i));
    }
    if (is_numbered && r.ids) {
        json_t *merges = merges_of(&r);
        json_t *tokens = merges ? json_array() : NULL, *added = merges ? json_array() : NULL;
        for (int64_t i = 0; tokens && i < r.count; i++) {
            json_t *token = json_array_get(r.tokens, (size_t)i);
            const json_int_t type = json_integer_value(json_array_get(r.types, (size_t)i));
            wg__json_append(&tokens, json_incref(token));
            if (type == WG__PIECE_CONTROL || type == WG__PIECE_USER_DEFINED)
                wg__json_append(&added,
                                json_pack("{s:I, s:O, s:b, s:b, s:b}", "id", (json_int_t)i, "text",
                                          token, "special", type == WG__PIECE_CONTROL, "strip_left",
                                          0, "strip_right", 0));
        }
        if (tokens)
            root = json_pack("{s:s, s:s, s:{s:s, s:b, s:b, s:o}, s:o, s:o, s:o}", "format",
                             "wengert-tokenizer", "kind", "bpe", "options", "pattern",
                             splits[r.split].pattern, "prefix_space", 0, "whole_words",
                             splits[r.split].whole_words, "merges", merges, "special",
                             special_of(&r, metadata), "added", added, "vocabulary", tokens);
        else {
            json_decref(merges);
            json_decref(added);
        }
        if (merges && !root)
            wg_fail(WG_ERROR_MEMORY, "gguf", "no memory for the tokenizer");
    }
    json_decref(r.ids);
    return root;
}

enum { FIRST_BYTE = 3, AFTER_BYTES = FIRST_BYTE + 256 };
static const char *const controls[FIRST_BYTE] = {"<unk>", "<s>", "</s>"};

/* ---- LLaMA's: writing ---- */

typedef struct pieces {
    const json_t *tokens, *scores, *types; /* types NULL: as llama2.c has them */
    int64_t count;
    bool plain_spaces;
    bool prefixed;  /* a space is put before a text */
    bool add_begin; /* and the begin token */
} pieces;

/* True if llama.cpp supports the settings of a SentencePiece BPE: unchanged white space, possibly
 * with a space put before the text, and bytes for unknown characters. */
static bool are_as_llama(const json_t *options) {
    static const char *const off[] = {"unigram",      "by_merges",    "split_spaces", "split_words",
                                      "prefix_first", "space_suffix", "remove_spaces"};
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++)
        if (json_is_true(json_object_get(options, off[i])))
            return false;
    return json_is_true(json_object_get(options, "byte_fallback")) &&
           json_integer_value(json_object_get(options, "prefix")) != WG__PREFIX_MISSING &&
           *text_of(options, "charsmap") == '\0';
}

static bool find_pieces(const json_t *root, pieces *p) {
    const char *kind = json_string_value(json_object_get(root, "kind"));
    const json_t *options = json_object_get(root, "options");
    const bool is_llama2c = kind && strcmp(kind, "llama2c") == 0;
    const bool is_bpe = kind && strcmp(kind, "sentencepiece") == 0 && are_as_llama(options);
    if (!is_llama2c && !is_bpe)
        return false;
    p->tokens = json_object_get(root, "vocabulary");
    p->scores = json_object_get(options, "scores");
    p->types = is_bpe ? json_object_get(options, "types") : NULL;
    p->count = (int64_t)json_array_size(p->tokens);
    p->plain_spaces = is_llama2c || json_is_true(json_object_get(options, "plain_spaces"));
    p->prefixed =
        is_llama2c || json_integer_value(json_object_get(options, "prefix")) == WG__PREFIX_ALWAYS;
    p->add_begin = adds_begin(root);
    return p->count > 0 && (int64_t)json_array_size(p->scores) == p->count &&
           (!is_bpe || (int64_t)json_array_size(p->types) == p->count);
}

static uint32_t type_of(const pieces *p, int64_t id) {
    if (id >= p->count)
        return WG__PIECE_UNUSED;
    if (p->types)
        return (uint32_t)json_integer_value(json_array_get(p->types, (size_t)id));
    if (id < FIRST_BYTE)
        return id == 0 ? WG__PIECE_UNKNOWN : WG__PIECE_CONTROL;
    return id < AFTER_BYTES ? WG__PIECE_BYTE : WG__PIECE_NORMAL;
}

static void write_pieces(wg__text *header, const pieces *p, int64_t vocabulary) {
    const uint64_t count = (uint64_t)vocabulary;
    wg__gguf_write_text(header, "tokenizer.ggml.model", "llama");
    wg__gguf_write_array(header, "tokenizer.ggml.tokens", WG__GGUF_STRING, count);
    for (int64_t i = 0; i < vocabulary && !wg_error_pending(); i++) {
        /* llama2.c's files have a newline before and after the control pieces. */
        char padding[32];
        snprintf(padding, sizeof padding, "[PAD%lld]", (long long)i);
        const char *text = i >= p->count ? padding
                           : !p->types && i < FIRST_BYTE
                               ? controls[i]
                               : json_string_value(json_array_get(p->tokens, (size_t)i));
        const bool marks_spaces = p->plain_spaces && type_of(p, i) == WG__PIECE_NORMAL;
        wg__text marked = {0};
        if (!text)
            wg_fail(WG_ERROR_FORMAT, "gguf", "token %lld of the tokenizer is no text",
                    (long long)i);
        else if (wg__append_replaced(&marked, text, marks_spaces ? " " : NULL, WG__SPACE_SYMBOL) ==
                 0)
            wg__gguf_append_string(header, marked.bytes, (size_t)marked.length);
        wg__free(marked.bytes);
    }
    wg__gguf_write_array(header, "tokenizer.ggml.scores", WG__GGUF_F32, count);
    for (int64_t i = 0; i < vocabulary && !wg_error_pending(); i++)
        wg__gguf_append(header, WG__GGUF_F32,
                        wg__gguf_f32(i < p->count
                                         ? json_number_value(json_array_get(p->scores, (size_t)i))
                                         : -1e6));
    wg__gguf_write_array(header, "tokenizer.ggml.token_type", WG__GGUF_I32, count);
    for (int64_t i = 0; i < vocabulary && !wg_error_pending(); i++)
        wg__gguf_append(header, WG__GGUF_U32, type_of(p, i));
    wg__gguf_write(header, "tokenizer.ggml.unknown_token_id", WG__GGUF_U32, 0);
    wg__gguf_write(header, "tokenizer.ggml.add_bos_token", WG__GGUF_BOOL, p->add_begin);
    wg__gguf_write(header, "tokenizer.ggml.add_space_prefix", WG__GGUF_BOOL, p->prefixed);
}

int wg__gguf_write_tokenizer(wg__text *header, const char *json, int64_t vocabulary, int *keys) {
    pieces p;
    json_error_t error;
    json_t *root = json ? json_loads(json, JSON_REJECT_DUPLICATES, &error) : NULL;
    if (json && !root)
        return wg_fail(WG_ERROR_FORMAT, "gguf", "the tokenizer is no JSON: %s", error.text);
    if (find_split(root) >= 0 &&
        (int64_t)json_array_size(json_object_get(root, "vocabulary")) <= vocabulary) {
        *keys += 6;
        write_bpe(header, root, vocabulary);
    } else if (find_pieces(root, &p) && p.count <= vocabulary) {
        *keys += 7;
        write_pieces(header, &p, vocabulary);
    } else {
        ++*keys;
        wg__gguf_write_text(header, "tokenizer.ggml.model", "none");
    }
    json_decref(root);
    return wg_error_pending() ? -1 : 0;
}

bool wg__gguf_keeps_tokenizer(const char *json) {
    pieces p;
    json_t *root = json ? json_loads(json, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const bool keeps = root && (find_split(root) >= 0 || find_pieces(root, &p));
    json_decref(root);
    return keeps;
}

/* ---- LLaMA's: reading ---- */

/* True for the layout of LLaMA's tokens: <unk>, <s>, </s>, the bytes, the pieces. */
static bool is_as_llama(const json_t *metadata) {
    const char *model = json_string_value(json_object_get(metadata, "tokenizer.ggml.model"));
    const json_t *tokens = json_object_get(metadata, "tokenizer.ggml.tokens"),
                 *scores = json_object_get(metadata, "tokenizer.ggml.scores"),
                 *types = json_object_get(metadata, "tokenizer.ggml.token_type");
    const size_t count = json_array_size(tokens);
    if (!model || strcmp(model, "llama") != 0 || count < AFTER_BYTES ||
        json_array_size(scores) != count || json_array_size(types) != count)
        return false;
    const pieces p = {.count = (int64_t)count};
    for (size_t i = 0; i < count; i++) {
        const json_int_t type = json_integer_value(json_array_get(types, i));
        const bool padded = i >= AFTER_BYTES && type == WG__PIECE_UNUSED;
        if (!json_is_string(json_array_get(tokens, i)) ||
            !json_is_number(json_array_get(scores, i)) ||
            (type != type_of(&p, (int64_t)i) && !padded))
            return false;
    }
    return true;
}

static json_t *token_of(const json_t *metadata, size_t id) {
    static const char *const written[] = {"<unk>", "\n<s>\n", "\n</s>\n"};
    if (id < FIRST_BYTE)
        return json_string(written[id]);
    wg__text plain = {0};
    const json_t *token = json_array_get(json_object_get(metadata, "tokenizer.ggml.tokens"), id);
    json_t *text = NULL;
    if (wg__append_replaced(&plain, json_string_value(token), WG__SPACE_SYMBOL, " ") == 0)
        text = json_stringn(plain.bytes, (size_t)plain.length);
    wg__free(plain.bytes);
    return text;
}

/* LLaMA's tokenizer as JSON: kind llama2c if a space is put before a text, else sentencepiece. */
static json_t *tokenizer_of(const json_t *metadata) {
    const bool prefixed = flag(metadata, "tokenizer.ggml.add_space_prefix", true);
    const json_t *all_types = json_object_get(metadata, "tokenizer.ggml.token_type");
    const size_t count = (size_t)count_unpadded(all_types);
    const json_t *texts = json_object_get(metadata, "tokenizer.ggml.tokens");
    json_t *tokens = json_array(), *scores = json_array(), *added = json_array();
    for (size_t i = 0; i < count; i++) {
        const json_t *score = json_array_get(json_object_get(metadata, "tokenizer.ggml.scores"), i);
        wg__json_append(&tokens,
                        prefixed ? token_of(metadata, i) : json_incref(json_array_get(texts, i)));
        wg__json_append(&scores, json_real(json_number_value(score)));
    }
    for (int i = 0; i < FIRST_BYTE; i++)
        wg__json_append(&added, json_pack("{s:i, s:s, s:b, s:b, s:b}", "id", i, "text", controls[i],
                                          "special", 1, "strip_left", 0, "strip_right", 0));
    json_t *options, *types = prefixed ? NULL : json_array();
    for (size_t i = 0; !prefixed && i < count; i++)
        wg__json_append(&types, json_incref(json_array_get(all_types, i)));
    if (prefixed)
        options = json_pack("{s:o}", "scores", scores);
    else
        options = json_pack(
            "{s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:i, s:b, s:b, s:b, s:b, s:b, s:i, s:s, s:s, "
            "s:o, s:o, s:[]}",
            "unigram", 0, "by_merges", 0, "byte_fallback", 1, "part_unknowns", 0, "split_spaces", 0,
            "split_words", 0, "exact_sums", 0, "prefix", WG__PREFIX_NONE, "prefix_first", 0,
            "space_suffix", 0, "remove_spaces", 0, "plain_spaces", 0, "by_grapheme", 0, "strip",
            WG__STRIP_NONE, "unknown_text", " \u2047 ", "charsmap", "", "types", types, "scores",
            scores, "merges");
    json_t *root =
        json_pack("{s:s, s:s, s:o, s:{s:i, s:i}, s:o, s:o}", "format", "wengert-tokenizer", "kind",
                  prefixed ? "llama2c" : "sentencepiece", "options", options, "special", "unknown",
                  0, "end", 2, "added", added, "vocabulary", tokens);
    if (root && flag(metadata, "tokenizer.ggml.add_bos_token", true) &&
        json_object_set_new(json_object_get(root, "special"), "begin", json_integer(1)) < 0) {
        json_decref(root);
        root = NULL;
    }
    if (!root)
        wg_fail(WG_ERROR_MEMORY, "gguf", "no memory for the tokenizer");
    return root;
}

int wg__gguf_read_tokenizer(const json_t *metadata, char **json, char **refused) {
    char reason[200];
    *json = *refused = NULL;
    const char *model = json_string_value(json_object_get(metadata, "tokenizer.ggml.model"));
    json_t *root = model && strcmp(model, "gpt2") == 0 ? bpe_of(metadata)
                   : is_as_llama(metadata)             ? tokenizer_of(metadata)
                                                       : NULL;
    if (!root)
        return wg_error_pending() ? -1 : 0;
    const bool read = !find_reason(metadata, reason, sizeof reason);
    if (read)
        *json = wg__json_text(root, "{", ", ", "}\n");
    else
        *refused = wg__strdup(reason);
    json_decref(root);
    return *json || *refused ? 0 : -1;
}
