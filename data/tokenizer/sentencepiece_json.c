/* SentencePiece in our own JSON: settings, scores, types, merges, and the character rules in
 * base64. */
#include <string.h>

#include "data/tokenizer/base64.h"
#include "data/tokenizer/bpe_kind.h"
#include "data/tokenizer/sentencepiece_kind.h"
#include "tensor/internal.h"

#define WHERE "sentencepiece"

/* ---- Writing ---- */

static json_t *types_to_json(const wg__pieces *p) {
    json_t *list = json_array();
    for (int64_t i = 0; list && i < p->base.vocabulary.count; i++)
        if (json_array_append_new(list, json_integer(p->types[i])) < 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

static json_t *charsmap_to_json(const wg__pieces *p) {
    wg__text text = {0};
    json_t *json = NULL;
    if (wg__base64_encode(p->normalizer.charsmap.blob, p->normalizer.charsmap.length, &text) == 0)
        json = json_stringn(text.bytes, (size_t)text.length);
    wg__free(text.bytes);
    return json;
}

json_t *wg__pieces_to_json(const wg_tokenizer *tokenizer) {
    const wg__pieces *p = (const wg__pieces *)tokenizer;
    const wg__piece_settings *s = &p->settings;
    return json_pack(
        "{s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:i, s:b, s:b, s:b, s:b, s:b, s:i, s:s, "
        "s:o, s:o, s:o, "
        "s:o}",
        "unigram", s->unigram, "by_merges", s->by_merges, "byte_fallback", s->byte_fallback,
        "part_unknowns", s->part_unknowns, "split_spaces", s->split_spaces, "split_words",
        s->split_words, "exact_sums", s->exact_sums, "prefix", (int)s->prefix, "prefix_first",
        s->prefix_first, "space_suffix", s->space_suffix, "remove_spaces", s->remove_spaces,
        "plain_spaces", s->plain_spaces, "by_grapheme", s->by_grapheme, "strip", (int)s->strip,
        "unknown_text", s->unknown_text, "charsmap", charsmap_to_json(p), "types", types_to_json(p),
        "scores", wg__numbers_to_json(p->base.vocabulary.count, p->scores), "merges",
        wg__merges_to_json(p->merge_count, (const int32_t(*)[2])p->merge_list));
}

/* ---- Reading ---- */

static int read_settings(const json_t *json, wg__piece_settings *s) {
    int flags[12], prefix, strip;
    json_error_t error;
    if (json_unpack_ex(
            (json_t *)json, &error, 0,
            "{s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:i, s:b, s:b, s:b, s:b, s:b, s:i, s:s}",
            "unigram", &flags[0], "by_merges", &flags[1], "byte_fallback", &flags[2],
            "part_unknowns", &flags[3], "split_spaces", &flags[4], "split_words", &flags[5],
            "exact_sums", &flags[6], "prefix", &prefix, "prefix_first", &flags[7], "space_suffix",
            &flags[8], "remove_spaces", &flags[9], "plain_spaces", &flags[10], "by_grapheme",
            &flags[11], "strip", &strip, "unknown_text", &s->unknown_text) < 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "bad options: %s", error.text);
    if (prefix < 0 || prefix >= WG__PREFIX_COUNT || strip < 0 || strip >= WG__STRIP_COUNT)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "bad options: prefix %d, strip %d", prefix, strip);
    bool *places[] = {&s->unigram,      &s->by_merges,     &s->byte_fallback, &s->part_unknowns,
                      &s->split_spaces, &s->split_words,   &s->exact_sums,    &s->prefix_first,
                      &s->space_suffix, &s->remove_spaces, &s->plain_spaces,  &s->by_grapheme};
    for (int i = 0; i < 12; i++)
        *places[i] = flags[i];
    s->prefix = (wg__space_prefix)prefix;
    s->strip = (wg__strip)strip;
    return 0;
}

static int read_types(const json_t *list, int64_t count, uint8_t *types) {
    bool good = (int64_t)json_array_size(list) == count;
    for (int64_t i = 0; good && i < count; i++) {
        const json_t *type = json_array_get(list, (size_t)i);
        json_int_t value = json_integer_value(type);
        good = json_is_integer(type) && value >= 0 && value <= UINT8_MAX;
        types[i] = (uint8_t)value;
    }
    return good ? 0
                : wg_fail(WG_ERROR_FORMAT, WHERE, "\"types\" is no list of %lld types",
                          (long long)count);
}

/* Fills the model from the JSON; what it allocates the caller frees in every case. */
static int read_model(const json_t *json, wg__piece_model *model, double **scores, uint8_t *types,
                      int32_t (**merges)[2], wg__text *charsmap) {
    const json_t *map = json_object_get(json, "charsmap");
    if (read_settings(json, &model->settings) < 0 ||
        read_types(json_object_get(json, "types"), model->count, types) < 0)
        return -1;
    *scores = wg__numbers_of_json(json_object_get(json, "scores"), model->count, "scores", WHERE);
    if (!*scores)
        return -1;
    *merges = wg__merges_of_json(json_object_get(json, "merges"), &model->merge_count, WHERE);
    if (!*merges)
        return -1;
    if (!json_is_string(map))
        return wg_fail(WG_ERROR_FORMAT, WHERE, "\"charsmap\" is no text");
    if (wg__base64_decode(json_string_value(map), (int64_t)json_string_length(map), charsmap,
                          WHERE) < 0)
        return -1;
    model->scores = *scores;
    model->types = types;
    model->merges = (const int32_t(*)[2]) * merges;
    model->charsmap = charsmap->length ? charsmap->bytes : NULL;
    model->charsmap_length = charsmap->length;
    return 0;
}

wg_tokenizer *wg__pieces_from_json(const json_t *options, int64_t count, const char *const *texts) {
    wg__piece_model model = {.count = count, .texts = texts};
    double *scores = NULL;
    uint8_t *types = wg__alloc((size_t)count + 1);
    int32_t(*merges)[2] = NULL;
    wg__text charsmap = {0};
    wg__pieces *pieces = NULL;
    if (types && read_model(options, &model, &scores, types, &merges, &charsmap) == 0)
        pieces = wg__pieces_new(&model);
    wg__free(scores);
    wg__free(types);
    wg__free(merges);
    wg__free(charsmap.bytes);
    return pieces ? &pieces->base : NULL;
}
