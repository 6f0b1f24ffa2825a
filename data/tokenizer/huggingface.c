/* Hugging Face's tokenizer.json. See huggingface.h; huggingface_parts.c reads what goes before and
 * after the model. */
#include <string.h>

#include "data/tokenizer/bpe.h"
#include "data/tokenizer/bpe_kind.h"
#include "data/tokenizer/huggingface.h"
#include "data/tokenizer/huggingface_parts.h"
#include "data/tokenizer/sentencepiece_kind.h"
#include "data/tokenizer/wordpiece.h"
#include "tensor/internal.h"

#define WHERE "tokenizer.json"

/* What is gathered of a file before a tokenizer is made of it. */
typedef struct reading {
    const char *name;
    const json_t *model, *added;
    wg__huggingface_parts parts;
    const char **tokens; /* of the model, then those that were added behind them */
    double *scores;      /* Unigram's */
    int64_t model_count, count;
    int32_t unknown; /* -1: none */
} reading;

/* ---- Vocabulary ---- */

static int64_t added_id(const json_t *token) {
    const json_t *id = json_object_get(token, "id");
    return json_is_integer(id) ? (int64_t)json_integer_value(id) : -1;
}

/* Tokens that are added have to go on where the model's end. */
static int append_added(reading *r, int64_t capacity) {
    size_t i;
    json_t *token;
    json_array_foreach((json_t *)r->added, i, token) {
        const char *text = json_string_value(json_object_get(token, "content"));
        int64_t id = added_id(token);
        if (!text || id < 0 || id >= capacity)
            return wg_fail(WG_ERROR_FORMAT, WHERE,
                           "%s: added token %zu has no content, or an id beyond the vocabulary",
                           r->name, i + 1);
        if (r->tokens[id] && strcmp(r->tokens[id], text) != 0)
            return wg_fail(WG_ERROR_FORMAT, WHERE,
                           "%s: token %lld is \"%.100s\", and is added as \"%.100s\"", r->name,
                           (long long)id, r->tokens[id], text);
        r->tokens[id] = text;
        if (id >= r->count)
            r->count = id + 1;
    }
    for (int64_t id = 0; id < r->count; id++)
        if (!r->tokens[id])
            return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: no token has the id %lld", r->name,
                           (long long)id);
    return 0;
}

static int read_unigram_vocabulary(reading *r, const json_t *vocabulary) {
    size_t i;
    json_t *entry;
    json_array_foreach((json_t *)vocabulary, i, entry) {
        const json_t *score = json_array_get(entry, 1);
        r->tokens[i] = json_string_value(json_array_get(entry, 0));
        if (!r->tokens[i] || !json_is_number(score))
            return wg_fail(WG_ERROR_FORMAT, WHERE,
                           "%s: entry %zu of the vocabulary is no pair of "
                           "text and score",
                           r->name, i);
        r->scores[i] = json_number_value(score);
    }
    return 0;
}

static int read_vocabulary(reading *r) {
    const json_t *vocabulary = json_object_get(r->model, "vocab");
    bool unigram = json_is_array(vocabulary);
    r->model_count = r->count =
        (int64_t)(unigram ? json_array_size(vocabulary) : json_object_size(vocabulary));
    int64_t capacity = r->count + (int64_t)json_array_size(r->added);
    if (r->count == 0 || capacity > INT32_MAX)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: the model has no vocabulary", r->name);
    r->tokens = wg__calloc((size_t)capacity, sizeof *r->tokens);
    r->scores = wg__calloc((size_t)capacity, sizeof *r->scores);
    if (!r->tokens || !r->scores)
        return -1;
    const char **by_id = NULL;
    int status = 0;
    if (unigram) {
        status = read_unigram_vocabulary(r, vocabulary);
    } else {
        by_id = wg__tokens_by_id(vocabulary, &r->count, r->name);
        status = by_id ? 0 : -1;
        for (int64_t i = 0; by_id && i < r->count; i++)
            r->tokens[i] = by_id[i];
    }
    wg__free(by_id);
    return status < 0 ? -1 : append_added(r, capacity);
}

static int64_t find_token(const reading *r, const char *text) {
    for (int64_t i = 0; text && i < r->count; i++)
        if (strcmp(r->tokens[i], text) == 0)
            return i;
    return -1;
}

/* ---- Merges: "left right", or in newer files ["left", "right"] ---- */

static int read_merge(const reading *r, const wg__strings *known, const json_t *entry, size_t i,
                      int32_t merge[2]) {
    const char *left = json_string_value(json_array_get(entry, 0));
    const char *right = json_string_value(json_array_get(entry, 1));
    const char *text = json_string_value(entry), *blank = text ? strchr(text, ' ') : NULL;
    int64_t length = left ? (int64_t)strlen(left) : 0;
    if (blank) {
        left = text;
        length = blank - text;
        right = blank + 1;
    }
    if (!left || !right)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: merge %zu is not of two tokens", r->name,
                       i + 1);
    merge[0] = (int32_t)wg__strings_find(known, left, length);
    merge[1] = (int32_t)wg__strings_find(known, right, (int64_t)strlen(right));
    if (merge[0] < 0 || merge[1] < 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: merge %zu is of what is no token", r->name,
                       i + 1);
    return 0;
}

static int read_merges(const reading *r, int32_t (**merges)[2], int64_t *count) {
    const json_t *list = json_object_get(r->model, "merges");
    wg__strings known = {0};
    int status = 0;
    for (int64_t i = 0; status == 0 && i < r->count; i++)
        status = wg__strings_add(&known, r->tokens[i], (int64_t)strlen(r->tokens[i])) < 0 ? -1 : 0;
    if (status == 0 && known.count != r->count)
        status = wg_fail(WG_ERROR_FORMAT, WHERE, "%s: a token stands there twice", r->name);
    *count = (int64_t)json_array_size(list);
    *merges = wg__alloc((size_t)(*count + 1) * sizeof **merges);
    if (!*merges)
        status = -1;
    size_t i;
    json_t *entry;
    json_array_foreach((json_t *)list, i, entry) {
        if (status < 0)
            break;
        status = read_merge(r, &known, entry, i, (*merges)[i]);
    }
    wg__strings_clear(&known);
    return status;
}

/* ---- Models ---- */

static int refuse_option(const reading *r, const char *key) {
    const json_t *value = json_object_get(r->model, key);
    bool empty = !value || json_is_null(value) || json_is_false(value) ||
                 (json_is_string(value) && json_string_length(value) == 0) ||
                 (json_is_number(value) && json_number_value(value) == 0);
    return empty ? 0
                 : wg_fail(WG_ERROR_FORMAT, WHERE, "%s: the model's %s is not supported", r->name,
                           key);
}

static wg_tokenizer *make_wordpiece(reading *r) {
    const char *prefix = json_string_value(json_object_get(r->model, "continuing_subword_prefix"));
    const char *unknown = json_string_value(json_object_get(r->model, "unk_token"));
    const json_t *longest = json_object_get(r->model, "max_input_chars_per_word");
    if (!r->parts.bert || (prefix && strcmp(prefix, "##") != 0) ||
        (unknown && strcmp(unknown, "[UNK]") != 0) || (longest && !json_is_integer(longest))) {
        wg_fail(WG_ERROR_FORMAT, WHERE,
                "%s: WordPiece is supported with BertNormalizer, BertPreTokenizer, \"##\" and "
                "\"[UNK]\"",
                r->name);
        return NULL;
    }
    int64_t characters = longest ? (int64_t)json_integer_value(longest) : 100;
    wg_wordpiece_options options = {
        .cased = r->parts.cased,
        .huggingface = true,
        .max_word_characters = characters < 1 || characters > INT32_MAX ? -1 : (int)characters};
    return wg_wordpiece_new(r->count, r->tokens, &options);
}

static wg_tokenizer *make_byte_level(reading *r) {
    int32_t(*merges)[2] = NULL;
    int64_t count;
    wg_tokenizer *tokenizer = NULL;
    wg_bpe_options options = {
        .pattern = r->parts.pattern,
        .prefix_space = r->parts.prefix_space,
        .whole_words = json_is_true(json_object_get(r->model, "ignore_merges")),
    };
    if (refuse_option(r, "byte_fallback") == 0 && read_merges(r, &merges, &count) == 0)
        tokenizer = wg_bpe_new(r->count, r->tokens, count, (const int32_t(*)[2])merges, &options);
    wg__free(merges);
    return tokenizer;
}

/* True if all bytes have a token <0x..>. */
static bool has_bytes(const reading *r, uint8_t *types) {
    int found = 0;
    for (int64_t i = 0; i < r->count; i++) {
        const char *t = r->tokens[i];
        const char *digits = "0123456789ABCDEF";
        if (strlen(t) == 6 && strncmp(t, "<0x", 3) == 0 && strchr(digits, t[3]) &&
            strchr(digits, t[4]) && t[5] == '>') {
            types[i] = WG__PIECE_BYTE;
            found++;
        }
    }
    return found == 256;
}

static void set_types(reading *r, wg__piece_settings *settings, uint8_t *types) {
    memset(types, WG__PIECE_NORMAL, (size_t)r->count);
    if (json_is_true(json_object_get(r->model, "byte_fallback")))
        settings->byte_fallback = has_bytes(r, types);
    if (!settings->byte_fallback)
        memset(types, WG__PIECE_NORMAL, (size_t)r->count);
    size_t i;
    json_t *token;
    json_array_foreach((json_t *)r->added, i,
                       token) if (json_is_true(json_object_get(token, "special")) ||
                                  added_id(token) >= r->model_count) types[added_id(token)] =
        WG__PIECE_CONTROL;
    types[r->unknown] = WG__PIECE_UNKNOWN;
}

static wg_tokenizer *make_pieces(reading *r, bool unigram) {
    wg__piece_model model = {.settings = r->parts.pieces,
                             .count = r->count,
                             .texts = r->tokens,
                             .scores = r->scores,
                             .charsmap = r->parts.charsmap.bytes,
                             .charsmap_length = r->parts.charsmap.length};
    if (r->unknown < 0) {
        wg_fail(WG_ERROR_FORMAT, WHERE, "%s: a model without an unknown token is not supported",
                r->name);
        return NULL;
    }
    uint8_t *types = wg__alloc((size_t)r->count);
    int32_t(*merges)[2] = NULL;
    wg__pieces *pieces = NULL;
    model.settings.unigram = model.settings.exact_sums = unigram;
    model.settings.by_merges = !unigram;
    model.settings.unknown_text = r->tokens[r->unknown];
    model.settings.part_unknowns = !unigram && !json_is_true(json_object_get(r->model, "fuse_unk"));
    if (types && (unigram || (refuse_option(r, "ignore_merges") == 0 &&
                              read_merges(r, &merges, &model.merge_count) == 0))) {
        set_types(r, &model.settings, types);
        model.types = types;
        model.merges = (const int32_t(*)[2])merges;
        pieces = wg__pieces_new(&model);
    }
    wg__free(types);
    wg__free(merges);
    return pieces ? &pieces->base : NULL;
}

/* Old files do not say which model they have. */
static const char *type_of_model(const json_t *model) {
    const char *type = json_string_value(json_object_get(model, "type"));
    return type                                                  ? type
           : json_object_get(model, "merges")                    ? "BPE"
           : json_object_get(model, "continuing_subword_prefix") ? "WordPiece"
           : json_is_array(json_object_get(model, "vocab"))      ? "Unigram"
                                                                 : "";
}

static wg_tokenizer *make(reading *r) {
    const char *type = type_of_model(r->model);
    const json_t *unknown_id = json_object_get(r->model, "unk_id");
    r->unknown = (int32_t)find_token(r, json_string_value(json_object_get(r->model, "unk_token")));
    if (strcmp(type, "WordPiece") == 0)
        return make_wordpiece(r);
    if (strcmp(type, "BPE") == 0) {
        if (refuse_option(r, "dropout") < 0 || refuse_option(r, "continuing_subword_prefix") < 0 ||
            refuse_option(r, "end_of_word_suffix") < 0)
            return NULL;
        return r->parts.byte_level ? make_byte_level(r) : make_pieces(r, false);
    }
    if (strcmp(type, "Unigram") == 0) {
        json_int_t id = json_is_integer(unknown_id) ? json_integer_value(unknown_id) : -1;
        r->unknown = id >= 0 && id < r->model_count ? (int32_t)id : -1;
        return make_pieces(r, true);
    }
    wg_fail(WG_ERROR_FORMAT, WHERE, "%s: models of type \"%.100s\" are not supported", r->name,
            type);
    return NULL;
}

/* ---- Added tokens ---- */

static int add_tokens(const reading *r, wg_tokenizer *tokenizer) {
    size_t i;
    json_t *entry;
    json_array_foreach((json_t *)r->added, i, entry) {
        if (json_is_true(json_object_get(entry, "single_word")))
            return wg_fail(WG_ERROR_FORMAT, WHERE,
                           "%s: single_word of added token %zu is not supported", r->name, i + 1);
        wg__added_token token = {(int32_t)added_id(entry),
                                 json_is_true(json_object_get(entry, "special")),
                                 json_is_true(json_object_get(entry, "lstrip")),
                                 json_is_true(json_object_get(entry, "rstrip"))};
        if (wg__tokenizer_add(tokenizer, NULL, &token) < 0)
            return -1;
    }
    return wg__tokenizer_find_special(tokenizer);
}

wg_tokenizer *wg__huggingface_read(const json_t *root, const char *name) {
    reading r = {.name = name,
                 .model = json_object_get(root, "model"),
                 .added = json_object_get(root, "added_tokens")};
    wg_tokenizer *tokenizer = NULL;
    if (wg__huggingface_read_parts(root, name, &r.parts) == 0 && read_vocabulary(&r) == 0)
        tokenizer = make(&r);
    if (tokenizer && add_tokens(&r, tokenizer) < 0) {
        wg_tokenizer_free(tokenizer);
        tokenizer = NULL;
    }
    wg__free(r.parts.charsmap.bytes);
    wg__free(r.tokens);
    wg__free(r.scores);
    return tokenizer;
}
