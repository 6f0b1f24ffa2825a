/* Patterns and verbalizers: see cloze.h. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "data/batches/cloze_parts.h"
#include "data/batches/glm_text.h"
#include "base/array.h"
#include "data/tokenizer/text_file.h"
#include "tensor/internal.h"

#define WHERE "cloze"

/* ---- The pattern ---- */

/* The places for texts: of a line's only one; of its first and second. */
static const char *const places[] = {"{text}", "{text_a}", "{text_b}"};
enum { ONLY, FIRST, SECOND, PLACES };

/* How often a pattern has a place. */
static int times(const char *pattern, const char *place) {
    int count = 0;
    for (const char *c = pattern; (c = strstr(c, place)) != NULL; c += strlen(place))
        count++;
    return count;
}

static int check_pattern(wg_cloze *cloze) {
    const char *pattern = cloze->pattern;
    if (wg__utf8_check(pattern, (int64_t)strlen(pattern), "the pattern", WHERE) < 0)
        return -1;
    int count[PLACES];
    for (int i = 0; i < PLACES; i++)
        count[i] = times(pattern, places[i]);
    cloze->pairs = count[ONLY] == 0;
    const bool good = cloze->pairs ? count[FIRST] == 1 && count[SECOND] == 1
                                   : count[ONLY] == 1 && count[FIRST] + count[SECOND] == 0;
    if (!good)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the pattern \"%.200s\" must have one place for the text, {text}, or one "
                       "for each of two, {text_a} and {text_b}",
                       pattern);
    const char *mask = wg__glm_find_mask(pattern);
    if (!mask || wg__glm_find_mask(mask + 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the pattern \"%.200s\" has %s; it must have one [MASK]", pattern,
                       mask ? "more than one blank" : "no blank");
    return 0;
}

/* Whether what stands at `c` in the pattern has the space before it as its own. */
static bool takes_space(const wg_cloze *cloze, const wg_tokenizer *tokenizer, const char *c) {
    return c > cloze->pattern && c[-1] == ' ' && wg__spaces_begin_words(tokenizer);
}

/* Appends the tokens of what the pattern has from `begin` to `end`. */
static int encode_stretch(const wg_cloze *cloze, const wg_tokenizer *tokenizer, const char *begin,
                          const char *end, wg_token_list *list) {
    wg__text text = {0};
    int status = wg__text_append(&text, begin, end - begin);
    if (status == 0)
        status = wg__glm_encode_stretch(&cloze->tokens, tokenizer, text.bytes, list);
    wg__free(text.bytes);
    return status;
}

static int encode_pattern(wg_cloze *cloze, const wg_tokenizer *tokenizer) {
    const int texts = cloze->pairs ? 2 : 1;
    const char *found[2] = {strstr(cloze->pattern, places[cloze->pairs ? FIRST : ONLY]),
                            cloze->pairs ? strstr(cloze->pattern, places[SECOND]) : NULL};
    cloze->turned = cloze->pairs && found[1] < found[0];
    if (wg_token_list_append(&cloze->stretches[0], cloze->tokens.beginning) < 0)
        return -1;
    const char *begin = cloze->pattern;
    for (int i = 0; i < texts; i++) {
        const int which = cloze->turned ? 1 - i : i;
        const bool spaced = takes_space(cloze, tokenizer, found[which]);
        cloze->reading.before[which] = spaced ? " " : NULL;
        if (encode_stretch(cloze, tokenizer, begin, found[which] - spaced, &cloze->stretches[i]) <
            0)
            return -1;
        begin = strchr(found[which], '}') + 1;
    }
    return encode_stretch(cloze, tokenizer, begin, begin + strlen(begin), &cloze->stretches[texts]);
}

/* ---- Verbalizers ---- */

static bool are_same(const wg_cloze *cloze, int64_t a, int64_t b) {
    const int64_t count = wg__cloze_count(cloze, a);
    return count == wg__cloze_count(cloze, b) &&
           memcmp(wg__cloze_ids(cloze, a), wg__cloze_ids(cloze, b),
                  (size_t)count * sizeof *cloze->spans.ids) == 0;
}

static int check_verbalizer(const wg_cloze *cloze, const wg_tokenizer *tokenizer, int64_t label) {
    char *const *names = cloze->labels.names, *const *texts = cloze->verbalizers;
    const int32_t unknown = wg_tokenizer_special(tokenizer, WG_TOKEN_UNKNOWN);
    if (wg__cloze_count(cloze, label) == 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "the verbalizer of \"%.80s\" is empty",
                       names[label]);
    for (int64_t i = 0; i < wg__cloze_count(cloze, label); i++)
        if (wg__cloze_ids(cloze, label)[i] == unknown)
            return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                           "the verbalizer \"%.80s\" of \"%.80s\" is not wholly known to the "
                           "tokenizer",
                           texts[label], names[label]);
    for (int64_t other = 0; other < label; other++)
        if (are_same(cloze, other, label))
            return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                           "the verbalizers \"%.80s\" of \"%.80s\" and \"%.80s\" of \"%.80s\" are "
                           "the same tokens",
                           texts[other], names[other], texts[label], names[label]);
    return 0;
}

/* Appends the tokens of a verbalizer where the blank of the pattern has it. */
static int encode_verbalizer(wg_cloze *cloze, const wg_tokenizer *tokenizer, int64_t label) {
    const char *text = cloze->verbalizers[label];
    wg__text whole = {0};
    int status = wg__utf8_check(text, (int64_t)strlen(text), "a verbalizer", WHERE);
    if (status == 0 && *text && takes_space(cloze, tokenizer, wg__glm_find_mask(cloze->pattern)))
        status = wg__text_append(&whole, " ", 1);
    if (status == 0)
        status = wg__text_append(&whole, text, (int64_t)strlen(text));
    if (status == 0)
        status = wg_tokenizer_encode(tokenizer, whole.bytes, whole.length, NULL, &cloze->spans);
    wg__free(whole.bytes);
    cloze->starts[label + 1] = cloze->spans.count;
    return status;
}

static int encode_verbalizers(wg_cloze *cloze, const wg_tokenizer *tokenizer) {
    for (int64_t label = 0; label < cloze->labels.count; label++)
        if (encode_verbalizer(cloze, tokenizer, label) < 0 ||
            check_verbalizer(cloze, tokenizer, label) < 0)
            return -1;
    return 0;
}

/* ---- Making one ---- */

static char *copy_text(const char *text) {
    wg__text copy = {0};
    return wg__text_append(&copy, text, (int64_t)strlen(text)) < 0 ? NULL : copy.bytes;
}

/* Takes labels, in their order, each with its verbalizer. */
static int copy_labels(wg_cloze *cloze, const wg_labels *labels, const char *const *verbalizers) {
    if (labels->count < 2)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "verbalizers of %lld labels; a classification has two or more",
                       (long long)labels->count);
    if (wg_labels_copy(&cloze->labels, labels) < 0)
        return -1;
    wg_labels_sort(&cloze->labels);
    cloze->verbalizers = wg__calloc((size_t)labels->count, sizeof *cloze->verbalizers);
    cloze->starts = wg__calloc((size_t)labels->count + 1, sizeof *cloze->starts);
    if (!cloze->verbalizers || !cloze->starts)
        return -1;
    for (int64_t i = 0; i < labels->count; i++) {
        const int64_t place = wg_labels_find(&cloze->labels, labels->names[i]);
        if (!(cloze->verbalizers[place] = copy_text(verbalizers[i])))
            return -1;
    }
    return 0;
}

static int make(wg_cloze *cloze, const wg_tokenizer *tokenizer, const char *pattern,
                const wg_labels *labels, const char *const *verbalizers) {
    cloze->pattern = copy_text(pattern);
    if (!cloze->pattern || wg_glm_tokens_of(tokenizer, &cloze->tokens) < 0 ||
        check_pattern(cloze) < 0 || copy_labels(cloze, labels, verbalizers) < 0)
        return -1;
    if (encode_pattern(cloze, tokenizer) < 0)
        return -1;
    return encode_verbalizers(cloze, tokenizer);
}

wg_cloze *wg_cloze_new(const wg_tokenizer *tokenizer, const char *pattern, const wg_labels *labels,
                       const char *const *verbalizers) {
    wg_cloze *cloze = wg__calloc(1, sizeof *cloze);
    if (cloze && make(cloze, tokenizer, pattern, labels, verbalizers) == 0)
        return cloze;
    wg_cloze_free(cloze);
    return NULL;
}

void wg_cloze_free(wg_cloze *cloze) {
    if (!cloze)
        return;
    for (int i = 0; i < 3; i++)
        wg_token_list_free(&cloze->stretches[i]);
    for (int64_t i = 0; cloze->verbalizers && i < cloze->labels.count; i++)
        wg__free(cloze->verbalizers[i]);
    wg__free(cloze->verbalizers);
    wg__free(cloze->starts);
    wg__free(cloze->pattern);
    wg_token_list_free(&cloze->spans);
    wg_labels_free(&cloze->labels);
    wg__free(cloze);
}

const wg_labels *wg_cloze_labels(const wg_cloze *cloze) {
    return &cloze->labels;
}

int64_t wg_cloze_longest(const wg_cloze *cloze) {
    int64_t longest = 0;
    for (int64_t label = 0; label < cloze->labels.count; label++) {
        const int64_t count = wg__cloze_count(cloze, label) + 1;
        longest = count > longest ? count : longest;
    }
    return longest;
}

/* ---- As JSON ---- */

char *wg_cloze_to_json(const wg_cloze *cloze) {
    json_t *verbalizers = json_object();
    for (int64_t i = 0; i < cloze->labels.count; i++)
        json_object_set_new(verbalizers, cloze->labels.names[i],
                            json_string(cloze->verbalizers[i]));
    json_t *object = json_pack("{s:s, s:o}", "pattern", cloze->pattern, "verbalizers", verbalizers);
    char *text = object ? json_dumps(object, JSON_INDENT(2)) : NULL;
    char *copy = text ? copy_text(text) : NULL;
    free(text);
    json_decref(object);
    if (!copy && !wg_error_pending())
        wg_fail(WG_ERROR_MEMORY, WHERE, "no memory to write it");
    return copy;
}

/* Labels and verbalizers of an object, the latter borrowed from it. */
static int read_verbalizers(const json_t *object, wg_labels *labels, const char **verbalizers) {
    const char *label;
    json_t *text;
    json_object_foreach((json_t *)object, label, text) {
        if (!json_is_string(text))
            return wg_fail(WG_ERROR_FORMAT, WHERE, "the verbalizer of \"%.80s\" is no text", label);
        const int64_t place = wg_labels_add(labels, label);
        if (place < 0)
            return -1;
        verbalizers[place] = json_string_value(text);
    }
    return 0;
}

static wg_cloze *read_json(const json_t *object, const wg_tokenizer *tokenizer) {
    const char *pattern = json_string_value(json_object_get(object, "pattern"));
    const json_t *texts = json_object_get(object, "verbalizers");
    if (!pattern || !json_is_object(texts)) {
        wg_fail(WG_ERROR_FORMAT, WHERE, "wanted {\"pattern\": TEXT, \"verbalizers\": {...}}");
        return NULL;
    }
    wg_labels labels = {0};
    const char **verbalizers = wg__calloc(json_object_size(texts) + 1, sizeof *verbalizers);
    wg_cloze *cloze = verbalizers && read_verbalizers(texts, &labels, verbalizers) == 0
                          ? wg_cloze_new(tokenizer, pattern, &labels, verbalizers)
                          : NULL;
    wg__free(verbalizers);
    wg_labels_free(&labels);
    return cloze;
}

wg_cloze *wg_cloze_from_json(const char *json, const wg_tokenizer *tokenizer) {
    json_error_t error;
    json_t *object = json_loads(json, JSON_REJECT_DUPLICATES, &error);
    wg_cloze *cloze = NULL;
    if (object)
        cloze = read_json(object, tokenizer);
    else
        wg_fail(WG_ERROR_FORMAT, WHERE, "line %d: %s", error.line, error.text);
    json_decref(object);
    return cloze;
}
