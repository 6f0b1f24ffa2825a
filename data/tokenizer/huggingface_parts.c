/* What goes before and after the model of a tokenizer.json. Each of the three may be one step or a
 * Sequence of steps; a step that is not listed here is refused. */
#include <string.h>

#include "data/tokenizer/base64.h"
#include "data/tokenizer/huggingface_parts.h"
#include "tensor/internal.h"

#define WHERE "tokenizer.json"
#define DEEPEST 8 /* of sequences in sequences */

typedef struct reading {
    const char *name;
    const char *part; /* "normalizer"... */
    wg__huggingface_parts *parts;
    bool normalizer_bert, normalizer_prepends, normalizer_spaces, collapses;
    bool splits, whitespace, metaspace;
} reading;

typedef int (*step_reader)(reading *r, const json_t *step, const char *type);

static const char *text_of(const json_t *step, const char *key) {
    const char *text = json_string_value(json_object_get(step, key));
    return text ? text : "";
}

static bool says(const json_t *step, const char *key, const char *text) {
    return strcmp(text_of(step, key), text) == 0;
}

/* A boolean member; `missing` is what it is taken for if it is not there. */
static bool flag(const json_t *step, const char *key, bool missing) {
    const json_t *value = json_object_get(step, key);
    return json_is_boolean(value) ? json_is_true(value) : missing;
}

static int refuse(const reading *r, const char *type, const char *why) {
    return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: the %s \"%.100s\" is not supported%s", r->name,
                   r->part, type, why);
}

/* Runs through the steps of a part. */
static int read_steps(reading *r, const json_t *part, const char *list, step_reader read,
                      int depth) {
    if (!part || json_is_null(part))
        return 0;
    const char *type = text_of(part, "type");
    if (strcmp(type, "Sequence") != 0)
        return read(r, part, type);
    if (depth == DEEPEST)
        return refuse(r, type, " so deep in others");
    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(part, list), i,
                       step) if (read_steps(r, step, list, read, depth + 1) < 0) return -1;
    return 0;
}

/* ---- Normalizers ---- */

/* {"String": text} or {"Regex": text} */
static bool replaces(const json_t *step, const char *kind, const char *pattern,
                     const char *content) {
    return says(json_object_get(step, "pattern"), kind, pattern) && says(step, "content", content);
}

static int read_normalizer(reading *r, const json_t *step, const char *type) {
    wg__huggingface_parts *parts = r->parts;
    if (strcmp(type, "BertNormalizer") == 0) {
        bool lower = flag(step, "lowercase", true);
        if (!flag(step, "clean_text", true) || !flag(step, "handle_chinese_chars", true) ||
            flag(step, "strip_accents", lower) != lower)
            return refuse(r, type,
                          " but with clean_text, handle_chinese_chars, and accents "
                          "stripped if and only if letters are lower-cased");
        parts->cased = !lower;
        r->normalizer_bert = true;
        return 0;
    }
    if (strcmp(type, "Precompiled") == 0) {
        const json_t *map = json_object_get(step, "precompiled_charsmap");
        if (parts->charsmap.length > 0 || !json_is_string(map))
            return refuse(r, type, " twice, or without its table");
        parts->pieces.by_grapheme = true;
        return wg__base64_decode(json_string_value(map), (int64_t)json_string_length(map),
                                 &parts->charsmap, WHERE);
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
    return refuse(r, type, "");
}

/* ---- Pre-tokenizers ---- */

static int read_metaspace(reading *r, const json_t *step) {
    wg__piece_settings *pieces = &r->parts->pieces;
    const char *scheme = text_of(step, "prepend_scheme");
    if (!says(step, "replacement", WG__SPACE_SYMBOL) || r->metaspace)
        return refuse(r, "Metaspace", " twice, or with another character than U+2581");
    bool always =
        *scheme == '\0' ? flag(step, "add_prefix_space", true) : strcmp(scheme, "always") == 0;
    bool first = strcmp(scheme, "first") == 0;
    if (*scheme != '\0' && !always && !first && strcmp(scheme, "never") != 0)
        return refuse(r, "Metaspace", " with such a prepend_scheme");
    r->metaspace = true;
    pieces->prefix = always || first ? WG__PREFIX_MISSING : WG__PREFIX_NONE;
    pieces->prefix_first = first;
    pieces->split_words = flag(step, "split", true);
    return 0;
}

static int read_pre_tokenizer(reading *r, const json_t *step, const char *type) {
    wg__huggingface_parts *parts = r->parts;
    if (strcmp(type, "BertPreTokenizer") == 0) {
        parts->bert = r->normalizer_bert;
        return parts->bert ? 0 : refuse(r, type, " without BertNormalizer");
    }
    if (strcmp(type, "ByteLevel") == 0) {
        bool splits = flag(step, "use_regex", true);
        if (splits && r->splits)
            return refuse(r, type, " that splits after another split");
        parts->byte_level = true;
        parts->prefix_space = flag(step, "add_prefix_space", true);
        if (parts->prefix_space && r->splits)
            return refuse(r, type, " with a space put before each part");
        return splits || r->splits ? 0 : refuse(r, type, " without a pattern to split by");
    }
    if (strcmp(type, "Split") == 0) {
        const char *pattern = text_of(json_object_get(step, "pattern"), "Regex");
        if (*pattern == '\0' || r->splits || !says(step, "behavior", "Isolated") ||
            flag(step, "invert", false))
            return refuse(r, type, " but once, by a Regex, Isolated and not inverted");
        r->splits = true;
        parts->pattern = pattern;
        return 0;
    }
    if (strcmp(type, "WhitespaceSplit") == 0 && !r->metaspace) {
        r->whitespace = parts->pieces.split_spaces = true;
        return 0;
    }
    return strcmp(type, "Metaspace") == 0 ? read_metaspace(r, step) : refuse(r, type, "");
}

/* ---- Decoders ---- */

static int read_decoder(reading *r, const json_t *step, const char *type) {
    wg__piece_settings *pieces = &r->parts->pieces;
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
    return refuse(r, type, "");
}

/* ---- All of it ---- */

/* What the steps make together. */
static int settle(reading *r) {
    wg__huggingface_parts *parts = r->parts;
    wg__piece_settings *pieces = &parts->pieces;
    r->part = "normalizer";
    if (r->normalizer_bert && !parts->bert)
        return refuse(r, "BertNormalizer", " without BertPreTokenizer");
    if (r->collapses && !r->whitespace)
        return refuse(r, "Replace", " of several spaces without WhitespaceSplit");
    bool spaces = r->normalizer_prepends || r->normalizer_spaces || parts->charsmap.length > 0;
    if ((parts->byte_level || parts->bert) && (spaces || r->metaspace || r->whitespace))
        return refuse(r, "Sequence", " before such a pre_tokenizer");
    if (r->normalizer_prepends) {
        if (r->metaspace || !r->normalizer_spaces)
            return refuse(r, "Prepend", " but with spaces replaced, and without Metaspace");
        pieces->prefix = WG__PREFIX_ALWAYS;
    }
    if (r->splits && !parts->byte_level)
        return refuse(r, "Split", " without ByteLevel");
    pieces->plain_spaces = !r->normalizer_spaces && !r->metaspace;
    return 0;
}

int wg__huggingface_read_parts(const json_t *root, const char *name, wg__huggingface_parts *parts) {
    reading r = {.name = name, .part = "normalizer", .parts = parts};
    if (read_steps(&r, json_object_get(root, "normalizer"), "normalizers", read_normalizer, 0) < 0)
        return -1;
    r.part = "pre_tokenizer";
    if (read_steps(&r, json_object_get(root, "pre_tokenizer"), "pretokenizers", read_pre_tokenizer,
                   0) < 0)
        return -1;
    r.part = "decoder";
    if (read_steps(&r, json_object_get(root, "decoder"), "decoders", read_decoder, 0) < 0)
        return -1;
    return settle(&r);
}
