/* SentencePiece's BPE: of all neighbours that together are a piece, those are joined first whose
 * piece has the best score. Which pairs these are is worked out beforehand, so that merging runs
 * over numbers as in merges.h; of equal scores the leftmost pair is first, so equal scores share a
 * rank. */
#include <string.h>
#include <utf8proc.h>

#include "data/tokenizer/bpe_kind.h"
#include "data/tokenizer/sentencepiece_kind.h"
#include "tensor/internal.h"

#define WHERE "sentencepiece"

static int64_t character_length(const char *text) {
    return utf8proc_utf8class[(unsigned char)*text];
}

/* The piece that text can become, or -1. */
static int32_t piece_of(const wg__pieces *p, const char *text, int64_t length) {
    int64_t id = wg__strings_find(&p->base.vocabulary, text, length);
    return id >= 0 && p->types[id] == WG__PIECE_NORMAL ? (int32_t)id : -1;
}

/* The number by which a character is merged, or -1. */
static int32_t number_of_character(const wg__pieces *p, const char *text, int64_t length) {
    int32_t id = piece_of(p, text, length);
    if (id >= 0)
        return id;
    int64_t extra = wg__strings_find(&p->extra_characters, text, length);
    return extra < 0 ? -1 : (int32_t)(p->base.vocabulary.count + extra);
}

/* ---- Tables ---- */

/* Adds the ways in which a piece comes of two others, or of characters. */
static int add_ways(wg__pieces *p, int32_t id, int32_t rank) {
    const char *text = wg__strings_text(&p->base.vocabulary, id);
    int64_t length = wg__strings_length(&p->base.vocabulary, id), head = character_length(text);
    for (; head < length; head += character_length(text + head)) {
        int64_t tail = length - head;
        bool tail_is_character = character_length(text + head) == tail;
        int32_t left = head == character_length(text) ? number_of_character(p, text, head)
                                                      : piece_of(p, text, head);
        int32_t right = tail_is_character ? number_of_character(p, text + head, tail)
                                          : piece_of(p, text + head, tail);
        if (left < 0 || right < 0)
            continue;
        wg__pair *pair = wg__pairs_add(&p->merges, left, right);
        if (!pair)
            return -1;
        pair->first = rank;
        pair->second = id;
    }
    return 0;
}

static int add_extra_characters(wg__pieces *p) {
    for (int64_t i = 0; i < p->base.vocabulary.count; i++) {
        const char *text = wg__strings_text(&p->base.vocabulary, i);
        const char *end = text + wg__strings_length(&p->base.vocabulary, i);
        for (; p->types[i] == WG__PIECE_NORMAL && text < end; text += character_length(text))
            if (piece_of(p, text, character_length(text)) < 0 &&
                wg__strings_add(&p->extra_characters, text, character_length(text)) < 0)
                return -1;
    }
    return 0;
}

static int merge_by_scores(wg__pieces *p) {
    int64_t count = p->base.vocabulary.count;
    int32_t *ranks = wg__alloc((size_t)(count + 1) * sizeof *ranks);
    int status = ranks ? wg__rank_scores(count, p->scores, ranks) : -1;
    if (status == 0)
        status = add_extra_characters(p);
    for (int64_t i = 0; status == 0 && i < count; i++)
        if (p->types[i] == WG__PIECE_NORMAL)
            status = add_ways(p, (int32_t)i, ranks[i]);
    wg__free(ranks);
    return status;
}

static int merge_by_list(wg__pieces *p, int64_t count, const int32_t (*merges)[2]) {
    p->merge_list = wg__alloc((size_t)(count + 1) * sizeof *p->merge_list);
    if (!p->merge_list)
        return -1;
    p->merge_count = count;
    for (int64_t i = 0; i < count; i++) {
        memcpy(p->merge_list[i], merges[i], sizeof merges[i]);
        if (wg__add_merge(&p->merges, &p->base.vocabulary, i, merges[i], WHERE) < 0)
            return -1;
    }
    return 0;
}

/* Whether a space stands in pieces only at their beginning. */
static bool parts_at_spaces(const wg__pieces *p) {
    for (int64_t i = 0; i < p->base.vocabulary.count; i++) {
        const char *text = wg__strings_text(&p->base.vocabulary, i);
        while (strncmp(text, WG__SPACE_SYMBOL, 3) == 0)
            text += 3;
        if ((p->types[i] == WG__PIECE_NORMAL || p->types[i] == WG__PIECE_USER_DEFINED) &&
            strstr(text, WG__SPACE_SYMBOL))
            return false;
    }
    return true;
}

int wg__pieces_prepare_bpe(wg__pieces *p, int64_t merge_count, const int32_t (*merges)[2]) {
    for (int64_t i = 0; i < p->base.vocabulary.count; i++)
        if (p->types[i] == WG__PIECE_UNUSED)
            return wg_fail(WG_ERROR_FORMAT, WHERE,
                           "piece %lld is unused, which is not supported in a BPE model",
                           (long long)i + 1);
    if ((p->settings.by_merges ? merge_by_list(p, merge_count, merges) : merge_by_scores(p)) < 0)
        return -1;
    for (int c = 0; c < 128; c++)
        p->ascii[c] = number_of_character(p, &(char){(char)c}, 1);
    p->parts_at_spaces = parts_at_spaces(p);
    return 0;
}

/* ---- Cutting ---- */

/* Numbers of the characters and of the user-defined pieces, which no merge touches. */
static int find_symbols(wg__piece_cutting *cutting, const char *text, int64_t length) {
    const wg__pieces *p = cutting->pieces;
    wg_token_list *symbols = &cutting->symbols;
    int32_t *ids = wg__grow(symbols->ids, 0, &symbols->capacity, length, sizeof *ids);
    if (!ids)
        return -1;
    symbols->ids = ids;
    symbols->count = 0;
    int64_t size, number;
    for (int64_t at = 0; at < length; at += size) {
        unsigned char byte = (unsigned char)text[at];
        int32_t id;
        if (p->normalizer.kept_begins[byte] &&
            (size = wg__normalize_kept(&p->normalizer, text + at, length - at, &number)) > 0) {
            id = p->kept_ids[number];
        } else {
            size = utf8proc_utf8class[byte];
            id = byte < 128 ? p->ascii[byte] : number_of_character(p, text + at, size);
        }
        ids[symbols->count++] = id;
    }
    return 0;
}

static int cut_part(wg__piece_cutting *cutting, const char *text, int64_t length) {
    const wg__pieces *p = cutting->pieces;
    if (find_symbols(cutting, text, length) < 0)
        return -1;
    const int32_t *ids = cutting->symbols.ids;
    int64_t count =
        wg__merge(&p->merges, cutting->symbols.ids, cutting->symbols.count, cutting->space);
    if (count < 0)
        return -1;
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        bool known = ids[i] >= 0 && ids[i] < p->base.vocabulary.count;
        int64_t size =
            known ? wg__strings_length(&p->base.vocabulary, ids[i]) : character_length(text + at);
        if ((known ? wg_token_list_append(cutting->list, ids[i])
                   : wg__append_unknown(cutting, text + at, size)) < 0)
            return -1;
        cutting->after_unknown &= !known;
        at += size;
    }
    return 0;
}

/* Where the spaces and the word after them end with which the text begins. */
static int64_t part_end(const char *text, int64_t length) {
    int64_t at = 0;
    while (length - at >= 3 && memcmp(text + at, WG__SPACE_SYMBOL, 3) == 0)
        at += 3;
    for (; at < length; at++) {
        const char *next = memchr(text + at, *WG__SPACE_SYMBOL, (size_t)(length - at));
        if (!next)
            break;
        at = next - text;
        if (length - at >= 3 && memcmp(next, WG__SPACE_SYMBOL, 3) == 0)
            return at;
    }
    return length;
}

/* Parts that no piece goes on from can be merged one by one, which stays in the cache. */
int wg__cut_bpe(wg__piece_cutting *cutting, const char *text, int64_t length) {
    int64_t size;
    for (int64_t at = 0; at < length; at += size) {
        size = cutting->pieces->parts_at_spaces ? part_end(text + at, length - at) : length;
        if (cut_part(cutting, text + at, size) < 0)
            return -1;
    }
    return 0;
}
