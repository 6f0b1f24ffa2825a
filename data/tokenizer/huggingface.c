/* Reads tokenizer.json of huggingface/tokenizers: a file with a model and the steps around it.
 *
 *     normalizer      characters replaced
 *     pre_tokenizer   the text split
 *     model           the parts become tokens
 *     added_tokens    found as a whole in a text
 *     decoder         ids to text
 *     post_processor  special tokens around a text, which encoding here does not add
 *
 * Supports what these published files need: BERT (WordPiece), GPT-2 and LLaMA 3 (byte-level BPE),
 * LLaMA 1 and 2 (BPE with bytes for unknown characters), T5 (Unigram). Refuses unsupported parts by
 * name.
 *
 * With the option special_tokens the ids equal the ids of the library's
 * encode(add_special_tokens=False). Without the option, special tokens in the text are ordinary
 * text; the library always finds them. huggingface_write.c writes the file. */
#include <string.h>

#include "data/tokenizer/kind.h"
#include "data/tokenizer/sentencepiece.h"
#include "data/tokenizer/tokenizer.h"
#include "data/internal.h"
#include "io/config.h"
#include "tensor/easy.h"

#define WHERE "tokenizer.json"
#define DEEPEST 8 /* nested sequences */

/* ---- Steps: normalizer, pre_tokenizer and decoder ----
 * Each part of the file is one step or a Sequence of steps. Unknown steps are refused. */

/* The settings that the steps make. */
typedef struct steps {
    bool bert, cased; /* BertNormalizer and BertPreTokenizer */
    bool byte_level;
    bool prefix_space;         /* byte_level's */
    const char *pattern;       /* byte_level's; borrowed; NULL: GPT-2's */
    wg__piece_settings pieces; /* only the settings about spaces */
    wg__text charsmap;         /* freed with wg__free */
} steps;

/* The state of reading the steps. */
typedef struct step_reading {
    const char *name;
    const char *part; /* "normalizer"... */
    steps *steps;
    bool normalizer_bert, normalizer_prepends, normalizer_spaces, collapses;
    bool splits, whitespace, metaspace;
} step_reading;

typedef int (*step_reader)(step_reading *r, const json_t *step, const char *type);

static const char *text_of(const json_t *step, const char *key) {
    const char *text = json_string_value(json_object_get(step, key));
    return text ? text : "";
}

static bool says(const json_t *step, const char *key, const char *text) {
    return strcmp(text_of(step, key), text) == 0;
}

/* A boolean member, or `missing` without one. */
static bool flag(const json_t *step, const char *key, bool missing) {
    const json_t *value = json_object_get(step, key);
    return json_is_boolean(value) ? json_is_true(value) : missing;
}

static int refuse_step(const step_reading *r, const char *type, const char *why) {
    return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: the %s \"%.100s\" is not supported%s", r->name,
                   r->part, type, why);
}

/* The first member of an object that is not null and not in `known`; or NULL. */
static const char *unknown_member(const json_t *object, int count, const char *const *known) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        if (!json_is_null(value) && !wg__is_among(key, count, known))
            return key;
    }
    return NULL;
}

/* Calls `read` for each step of a part. */
/* NOLINTNEXTLINE(misc-no-recursion): at most DEEPEST deep */
static int read_steps(step_reading *r, const json_t *part, const char *list, step_reader read,
                      int depth) {
    if (!part || json_is_null(part))
        return 0;
    const char *type = text_of(part, "type");
    const char *key = unknown_member(
        part, WG_NAMES("type", "normalizers", "pretokenizers", "decoders", "clean_text",
                       "lowercase", "strip_accents", "prepend", "pattern", "handle_chinese_chars",
                       "content", "replacement", "str_rep", "split", "precompiled_charsmap",
                       "behavior", "invert", "use_regex", "trim_offsets", "add_prefix_space",
                       "start", "stop", "prefix", "cleanup", "prepend_scheme"));
    if (key)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "%s: \"%.64s\" of the %s \"%.100s\" is not known here", r->name, key,
                       r->part, type);
    if (strcmp(type, "Sequence") != 0)
        return read(r, part, type);
    if (depth == DEEPEST)
        return refuse_step(r, type, " nested so deeply");
    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(part, list), i, step) {
        if (read_steps(r, step, list, read, depth + 1) < 0)
            return -1;
    }
    return 0;
}

/* {"String": text} or {"Regex": text} */
static bool replaces(const json_t *step, const char *kind, const char *pattern,
                     const char *content) {
    return says(json_object_get(step, "pattern"), kind, pattern) && says(step, "content", content);
}

static int read_normalizer(step_reading *r, const json_t *step, const char *type) {
    steps *s = r->steps;
    if (strcmp(type, "BertNormalizer") == 0) {
        bool lower = flag(step, "lowercase", true);
        if (!flag(step, "clean_text", true) || !flag(step, "handle_chinese_chars", true) ||
            flag(step, "strip_accents", lower) != lower)
            return refuse_step(r, type,
                               " but with clean_text, handle_chinese_chars, and accents "
                               "stripped if and only if letters are lower-cased");
        s->cased = !lower;
        r->normalizer_bert = true;
        return 0;
    }
    if (strcmp(type, "Precompiled") == 0) {
        const json_t *map = json_object_get(step, "precompiled_charsmap");
        if (s->charsmap.length > 0 || !json_is_string(map))
            return refuse_step(r, type, " twice, or without its table");
        s->pieces.by_grapheme = true;
        return wg__base64_decode(json_string_value(map), (int64_t)json_string_length(map),
                                 &s->charsmap, WHERE);
    }
    if (strcmp(type, "Prepend") == 0 && says(step, "prepend", WG__SPACE_SYMBOL)) {
        r->normalizer_prepends = true;
        return 0;
    }
    if (strcmp(type, "Replace") == 0 && replaces(step, "String", " ", WG__SPACE_SYMBOL)) {
        r->normalizer_spaces = true;
        return 0;
    }
    if (strcmp(type, "Replace") == 0 && replaces(step, "Regex", " {2,}", " ")) {
        r->collapses = true;
        return 0;
    }
    return refuse_step(r, type, "");
}

static int read_pre_tokenizer(step_reading *r, const json_t *step, const char *type) {
    steps *s = r->steps;
    if (strcmp(type, "BertPreTokenizer") == 0) {
        s->bert = r->normalizer_bert;
        return s->bert ? 0 : refuse_step(r, type, " without BertNormalizer");
    }
    if (strcmp(type, "ByteLevel") == 0) {
        bool splits = flag(step, "use_regex", true);
        if (splits && r->splits)
            return refuse_step(r, type, " that splits after another split");
        s->byte_level = true;
        s->prefix_space = flag(step, "add_prefix_space", true);
        if (s->prefix_space && r->splits)
            return refuse_step(r, type, " with a space put before each part");
        return splits || r->splits ? 0 : refuse_step(r, type, " without a pattern to split by");
    }
    if (strcmp(type, "Split") == 0) {
        const char *pattern = text_of(json_object_get(step, "pattern"), "Regex");
        if (*pattern == '\0' || r->splits || !says(step, "behavior", "Isolated") ||
            flag(step, "invert", false))
            return refuse_step(r, type, " but once, by a Regex, Isolated and not inverted");
        r->splits = true;
        s->pattern = pattern;
        return 0;
    }
    if (strcmp(type, "WhitespaceSplit") == 0 && !r->metaspace) {
        r->whitespace = s->pieces.split_spaces = true;
        return 0;
    }
    if (strcmp(type, "Metaspace") == 0) {
        const char *scheme = text_of(step, "prepend_scheme");
        if (!says(step, "replacement", WG__SPACE_SYMBOL) || r->metaspace)
            return refuse_step(r, type, " twice, or with another character than U+2581");
        const bool first = strcmp(scheme, "first") == 0;
        const bool always =
            *scheme == '\0' ? flag(step, "add_prefix_space", true) : strcmp(scheme, "always") == 0;
        if (*scheme != '\0' && !always && !first && strcmp(scheme, "never") != 0)
            return refuse_step(r, type, " with this prepend_scheme");
        r->metaspace = true;
        s->pieces.prefix = always || first ? WG__PREFIX_MISSING : WG__PREFIX_NONE;
        s->pieces.prefix_first = first;
        s->pieces.split_words = flag(step, "split", true);
        return 0;
    }
    return refuse_step(r, type, "");
}

static int read_decoder(step_reading *r, const json_t *step, const char *type) {
    wg__piece_settings *pieces = &r->steps->pieces;
    const json_t *start = json_object_get(step, "start");
    if (strcmp(type, "Metaspace") == 0) {
        bool none = says(step, "prepend_scheme", "never") || !flag(step, "add_prefix_space", true);
        pieces->strip = none ? WG__STRIP_NONE : WG__STRIP_ONE;
        return 0;
    }
    if (strcmp(type, "Strip") == 0 && says(step, "content", " ") &&
        json_integer_value(start) == 1 && json_integer_value(json_object_get(step, "stop")) == 0) {
        pieces->strip = WG__STRIP_ONE;
        return 0;
    }
    if ((strcmp(type, "Replace") == 0 && replaces(step, "String", WG__SPACE_SYMBOL, " ")) ||
        strcmp(type, "ByteFallback") == 0 || strcmp(type, "Fuse") == 0 ||
        strcmp(type, "ByteLevel") == 0 || strcmp(type, "WordPiece") == 0)
        return 0;
    return refuse_step(r, type, "");
}

static int read_all_steps(const json_t *root, const char *name, steps *steps) {
    step_reading r = {.name = name, .part = "normalizer", .steps = steps};
    if (read_steps(&r, json_object_get(root, "normalizer"), "normalizers", read_normalizer, 0) < 0)
        return -1;
    r.part = "pre_tokenizer";
    if (read_steps(&r, json_object_get(root, "pre_tokenizer"), "pretokenizers", read_pre_tokenizer,
                   0) < 0)
        return -1;
    r.part = "decoder";
    if (read_steps(&r, json_object_get(root, "decoder"), "decoders", read_decoder, 0) < 0)
        return -1;
    /* Checks combinations of steps, and makes the settings that depend on several steps. */
    wg__piece_settings *pieces = &steps->pieces;
    r.part = "normalizer";
    if (r.normalizer_bert && !steps->bert)
        return refuse_step(&r, "BertNormalizer", " without BertPreTokenizer");
    if (r.collapses && !r.whitespace)
        return refuse_step(&r, "Replace", " of several spaces without WhitespaceSplit");
    bool spaces = r.normalizer_prepends || r.normalizer_spaces || steps->charsmap.length > 0;
    if ((steps->byte_level || steps->bert) && (spaces || r.metaspace || r.whitespace))
        return refuse_step(&r, "Sequence", " before this pre_tokenizer");
    if (r.normalizer_prepends) {
        if (r.metaspace || !r.normalizer_spaces)
            return refuse_step(&r, "Prepend", " but with spaces replaced, and without Metaspace");
        pieces->prefix = WG__PREFIX_ALWAYS;
    }
    if (r.splits && !steps->byte_level)
        return refuse_step(&r, "Split", " without ByteLevel");
    pieces->plain_spaces = !r.normalizer_spaces && !r.metaspace;
    return 0;
}

/* The contents of a file. */
typedef struct reading {
    const char *name;
    const json_t *model, *added;
    steps steps;
    const char **tokens; /* the model's tokens, then added tokens */
    double *scores;      /* Unigram's */
    int64_t model_count, count;
    int32_t unknown; /* -1: none */
    bool normalizes; /* the file has a normalizer */
} reading;

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
    for (int64_t i = 0; unigram && status == 0 && i < r->count; i++) {
        const json_t *entry = json_array_get(vocabulary, (size_t)i),
                     *score = json_array_get(entry, 1);
        r->tokens[i] = json_string_value(json_array_get(entry, 0));
        r->scores[i] = json_number_value(score);
        if (!r->tokens[i] || !json_is_number(score))
            status = wg_fail(WG_ERROR_FORMAT, WHERE,
                             "%s: entry %lld of the vocabulary is not a pair of text and score",
                             r->name, (long long)i);
    }
    if (!unigram) {
        by_id = wg__tokens_by_id(vocabulary, &r->count, r->name);
        status = by_id ? 0 : -1;
        for (int64_t i = 0; by_id && i < r->count; i++)
            r->tokens[i] = by_id[i];
    }
    wg__free(by_id);
    if (status < 0)
        return -1;
    /* An added token has an id of the model's vocabulary, with the same text, or one of the next
     * ids, without gaps. */
    size_t i;
    json_t *token;
    json_array_foreach((json_t *)r->added, i, token) {
        const char *text = json_string_value(json_object_get(token, "content"));
        const json_t *number = json_object_get(token, "id");
        const int64_t id = json_is_integer(number) ? (int64_t)json_integer_value(number) : -1;
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

/* Reads the merges: "left right", or ["left", "right"] in newer files. */
static int read_merges(const reading *r, int32_t (**merges)[2], int64_t *count) {
    const json_t *list = json_object_get(r->model, "merges");
    wg__strings known = {0};
    int status = 0;
    for (int64_t i = 0; status == 0 && i < r->count; i++)
        status = wg__strings_add(&known, r->tokens[i], (int64_t)strlen(r->tokens[i])) < 0 ? -1 : 0;
    if (status == 0 && known.count != r->count)
        status = wg_fail(WG_ERROR_FORMAT, WHERE, "%s: a token occurs twice", r->name);
    *count = (int64_t)json_array_size(list);
    *merges = wg__alloc_array(*count + 1, sizeof **merges);
    if (!*merges)
        status = -1;
    for (int64_t i = 0; status == 0 && i < *count; i++) {
        const json_t *entry = json_array_get(list, (size_t)i);
        const char *left = json_string_value(json_array_get(entry, 0));
        const char *right = json_string_value(json_array_get(entry, 1));
        const char *text = json_string_value(entry), *blank = text ? strchr(text, ' ') : NULL;
        int64_t length = left ? (int64_t)strlen(left) : 0;
        if (blank) {
            left = text;
            length = blank - text;
            right = blank + 1;
        }
        int32_t *merge = (*merges)[i];
        if (left && right) {
            merge[0] = (int32_t)wg__strings_find(&known, left, length);
            merge[1] = (int32_t)wg__strings_find(&known, right, (int64_t)strlen(right));
        }
        if (!left || !right)
            status = wg_fail(WG_ERROR_FORMAT, WHERE, "%s: merge %lld is not of two tokens", r->name,
                             (long long)i + 1);
        else if (merge[0] < 0 || merge[1] < 0)
            status = wg_fail(WG_ERROR_FORMAT, WHERE,
                             "%s: merge %lld contains a text that is not a token", r->name,
                             (long long)i + 1);
    }
    wg__strings_clear(&known);
    return status;
}

/* ---- Making a tokenizer ---- */

static int refuse_option(const reading *r, const char *key) {
    const json_t *value = json_object_get(r->model, key);
    bool empty = !value || json_is_null(value) || json_is_false(value) ||
                 (json_is_string(value) && json_string_length(value) == 0) ||
                 (json_is_number(value) && json_number_value(value) == 0);
    return empty ? 0
                 : wg_fail(WG_ERROR_FORMAT, WHERE, "%s: the model's %s is not supported", r->name,
                           key);
}

static wg_tokenizer *make_pieces(reading *r, bool unigram) {
    wg__piece_model model = {.settings = r->steps.pieces,
                             .count = r->count,
                             .texts = r->tokens,
                             .scores = r->scores,
                             .charsmap = r->steps.charsmap.bytes,
                             .charsmap_length = r->steps.charsmap.length};
    if (r->unknown < 0)
        return wg__fail_null(WG_ERROR_FORMAT, WHERE,
                             "%s: a model without an unknown token is not supported", r->name);
    uint8_t *types = wg__alloc((size_t)r->count);
    int32_t(*merges)[2] = NULL;
    wg_tokenizer *tokenizer = NULL;
    model.settings.unigram = model.settings.exact_sums = unigram;
    model.settings.by_merges = !unigram;
    model.settings.unknown_text = r->tokens[r->unknown];
    model.settings.part_unknowns = !unigram && !json_is_true(json_object_get(r->model, "fuse_unk"));
    if (types && (unigram || (refuse_option(r, "ignore_merges") == 0 &&
                              read_merges(r, &merges, &model.merge_count) == 0))) {
        memset(types, WG__PIECE_NORMAL, (size_t)r->count);
        if (json_is_true(json_object_get(r->model, "byte_fallback"))) {
            /* Finds the tokens <0x00> to <0xFF>; byte_fallback needs all 256. */
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
            model.settings.byte_fallback = found == 256;
        }
        if (!model.settings.byte_fallback)
            memset(types, WG__PIECE_NORMAL, (size_t)r->count);
        size_t i;
        json_t *token;
        json_array_foreach((json_t *)r->added, i, token) {
            const json_int_t id = json_integer_value(json_object_get(token, "id"));
            if (json_is_true(json_object_get(token, "special")) || id >= r->model_count)
                types[id] = WG__PIECE_CONTROL;
        }
        types[r->unknown] = WG__PIECE_UNKNOWN;
        model.types = types;
        model.merges = (const int32_t(*)[2])merges;
        tokenizer = wg__sentencepiece_new(&model);
    }
    wg__free(types);
    wg__free(merges);
    return tokenizer;
}

static wg_tokenizer *make_tokenizer(reading *r) {
    const json_t *model = r->model;
    const char *type = json_string_value(json_object_get(model, "type"));
    if (!type) /* old files do not name the type of their model */
        type = json_object_get(model, "merges")                      ? "BPE"
               : json_object_get(model, "continuing_subword_prefix") ? "WordPiece"
               : json_is_array(json_object_get(model, "vocab"))      ? "Unigram"
                                                                     : "";
    const json_t *unknown_id = json_object_get(model, "unk_id");
    const char *unknown = json_string_value(json_object_get(model, "unk_token"));
    r->unknown = -1;
    for (int64_t i = r->count - 1; unknown && i >= 0; i--)
        if (strcmp(r->tokens[i], unknown) == 0)
            r->unknown = (int32_t)i;
    if (strcmp(type, "WordPiece") == 0) {
        const char *prefix = json_string_value(json_object_get(model, "continuing_subword_prefix"));
        const json_t *longest = json_object_get(model, "max_input_chars_per_word");
        if (!r->steps.bert || (prefix && strcmp(prefix, "##") != 0) ||
            (unknown && strcmp(unknown, "[UNK]") != 0) || (longest && !json_is_integer(longest)))
            return wg__fail_null(
                WG_ERROR_FORMAT, WHERE,
                "%s: WordPiece is supported with BertNormalizer, BertPreTokenizer, \"##\" and "
                "\"[UNK]\"",
                r->name);
        int64_t characters = longest ? (int64_t)json_integer_value(longest) : 100;
        wg_wordpiece_options options = {
            .cased = r->steps.cased,
            .huggingface = true,
            .max_word_characters = characters < 1 || characters > INT32_MAX ? -1 : (int)characters};
        return wg__wordpiece_new(r->count, r->tokens, &options);
    }
    if (strcmp(type, "BPE") == 0) {
        if (refuse_option(r, "dropout") < 0 || refuse_option(r, "continuing_subword_prefix") < 0 ||
            refuse_option(r, "end_of_word_suffix") < 0)
            return NULL;
        if (!r->steps.byte_level)
            return make_pieces(r, false);
        int32_t(*merges)[2] = NULL;
        int64_t count;
        wg_tokenizer *tokenizer = NULL;
        const wg_bpe_options options = {.pattern = r->steps.pattern,
                                        .prefix_space = r->steps.prefix_space,
                                        .whole_words =
                                            json_is_true(json_object_get(model, "ignore_merges"))};
        if (refuse_option(r, "byte_fallback") == 0 && read_merges(r, &merges, &count) == 0)
            tokenizer =
                wg__bpe_new(r->count, r->tokens, count, (const int32_t(*)[2])merges, &options);
        wg__free(merges);
        return tokenizer;
    }
    if (strcmp(type, "Unigram") == 0) {
        json_int_t id = json_is_integer(unknown_id) ? json_integer_value(unknown_id) : -1;
        r->unknown = id >= 0 && id < r->model_count ? (int32_t)id : -1;
        return make_pieces(r, true);
    }
    return wg__fail_null(WG_ERROR_FORMAT, WHERE, "%s: models of type \"%.100s\" are not supported",
                         r->name, type);
}

static int add_tokens(const reading *r, wg_tokenizer *tokenizer) {
    size_t i;
    json_t *entry;
    json_array_foreach((json_t *)r->added, i, entry) {
        const char *unknown =
            unknown_member(entry, WG_NAMES("id", "content", "single_word", "lstrip", "rstrip",
                                           "normalized", "special"));
        if (json_is_true(json_object_get(entry, "single_word")))
            unknown = "single_word";
        wg__added_token token = {(int32_t)json_integer_value(json_object_get(entry, "id")),
                                 json_is_true(json_object_get(entry, "special")),
                                 json_is_true(json_object_get(entry, "lstrip")),
                                 json_is_true(json_object_get(entry, "rstrip")),
                                 r->normalizes &&
                                     json_is_true(json_object_get(entry, "normalized"))};
        if (token.normalized && !token.special)
            unknown = "normalized";
        if (unknown)
            return wg_fail(WG_ERROR_FORMAT, WHERE,
                           "%s: \"%.64s\" of the added token \"%.64s\" is not supported; "
                           "added tokens are found before the text is normalized",
                           r->name, unknown, r->tokens[token.id]);
        if (wg__tokenizer_add(tokenizer, NULL, &token) < 0)
            return -1;
    }
    return wg__tokenizer_find_special(tokenizer);
}

/* Refuses unknown members. Ignores truncation and padding, which are settings of the library's
 * calls, and the post_processor: here, objectives put the special tokens around a text. */
static int check_root(const json_t *root, const char *name) {
    const char *key = unknown_member(root, WG_NAMES("version", "truncation", "padding",
                                                    "added_tokens", "normalizer", "pre_tokenizer",
                                                    "post_processor", "decoder", "model"));
    const char *member = unknown_member(json_object_get(root, "model"),
                                        WG_NAMES("type", "vocab", "merges", "unk_token", "unk_id",
                                                 "dropout", "continuing_subword_prefix",
                                                 "end_of_word_suffix", "max_input_chars_per_word",
                                                 "fuse_unk", "byte_fallback", "ignore_merges"));
    return key || member ? wg_fail(WG_ERROR_FORMAT, WHERE, "%s: \"%.64s\"%s is not known here",
                                   name, key ? key : member, key ? "" : " of the model")
                         : 0;
}

wg_tokenizer *wg__huggingface_read(const json_t *root, const char *name) {
    const json_t *normalizer = json_object_get(root, "normalizer");
    reading r = {.name = name,
                 .model = json_object_get(root, "model"),
                 .added = json_object_get(root, "added_tokens"),
                 .normalizes = normalizer && !json_is_null(normalizer)};
    wg_tokenizer *tokenizer = NULL;
    if (check_root(root, name) == 0 && read_all_steps(root, name, &r.steps) == 0 &&
        read_vocabulary(&r) == 0)
        tokenizer = make_tokenizer(&r);
    if (tokenizer)
        tokenizer = wg__tokenizer_checked(tokenizer, add_tokens(&r, tokenizer));
    wg__free(r.steps.charsmap.bytes);
    wg__free(r.tokens);
    wg__free(r.scores);
    return tokenizer;
}
