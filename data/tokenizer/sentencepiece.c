/* SentencePiece: making a tokenizer, encoding, decoding. See sentencepiece.h; sentencepiece_bpe.c
 * and unigram.c cut text into pieces, sentencepiece_model.c reads files. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "data/tokenizer/sentencepiece_kind.h"
#include "data/tokenizer/space.h"
#include "tensor/internal.h"

#define WHERE "sentencepiece"
#define UNKNOWN_PENALTY 10.0 /* that an unknown character is worse than the worst piece */

/* ---- Making one ---- */

static int find_unknown(wg__pieces *p) {
    int32_t unknown = -1;
    for (int64_t i = 0; i < p->base.vocabulary.count; i++) {
        if (p->types[i] != WG__PIECE_UNKNOWN)
            continue;
        if (unknown >= 0)
            return wg_fail(WG_ERROR_FORMAT, WHERE, "the pieces %d and %lld are both unknown",
                           unknown, (long long)i);
        unknown = (int32_t)i;
    }
    if (unknown < 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "no piece stands for the unknown");
    return wg__tokenizer_set_special(&p->base, WG_TOKEN_UNKNOWN, unknown);
}

static int byte_of(const char *text) {
    unsigned byte;
    char end;
    return sscanf(text, "<0x%2X%c", &byte, &end) == 2 && end == '>' ? (int)byte : -1;
}

static int find_bytes(wg__pieces *p) {
    for (int64_t i = 0; i < p->base.vocabulary.count; i++)
        if (p->types[i] == WG__PIECE_BYTE && byte_of(wg__strings_text(&p->base.vocabulary, i)) < 0)
            return wg_fail(WG_ERROR_FORMAT, WHERE, "piece %lld is of type byte, but no byte",
                           (long long)i + 1);
    for (int byte = 0; byte < 256 && p->settings.byte_fallback; byte++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", byte);
        p->bytes[byte] = wg_tokenizer_id(&p->base, text);
        if (p->bytes[byte] < 0 || p->types[p->bytes[byte]] != WG__PIECE_BYTE)
            return wg_fail(WG_ERROR_FORMAT, WHERE,
                           "no piece of bytes is %s, but unknown characters become bytes", text);
    }
    return 0;
}

static int keep_user_defined(wg__pieces *p) {
    int64_t count = p->base.vocabulary.count;
    p->kept_ids = wg__alloc((size_t)(count + 1) * sizeof *p->kept_ids);
    if (!p->kept_ids)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        if (p->types[i] != WG__PIECE_USER_DEFINED)
            continue;
        const char *text = wg__strings_text(&p->base.vocabulary, i);
        int64_t number =
            wg__strings_add(&p->normalizer.kept, text, wg__strings_length(&p->base.vocabulary, i));
        if (number < 0)
            return -1;
        p->kept_ids[number] = (int32_t)i;
        p->normalizer.kept_begins[(unsigned char)*text] = true;
    }
    return 0;
}

static int add_control(wg__pieces *p) {
    for (int64_t i = 0; i < p->base.vocabulary.count; i++) {
        wg__added_token token = {.id = (int32_t)i, .special = true};
        if (p->types[i] == WG__PIECE_CONTROL && wg__tokenizer_add(&p->base, NULL, &token) < 0)
            return -1;
    }
    return 0;
}

/* The trie has what text can become; the worst score is that of normal pieces (of all of them, in
 * Hugging Face's way). */
static int prepare_unigram(wg__pieces *p) {
    int64_t count = p->base.vocabulary.count;
    double worst = DBL_MAX, best = FLT_MIN;
    p->bonus = wg__calloc((size_t)count + 1, sizeof *p->bonus);
    if (!p->bonus)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        uint8_t type = p->types[i];
        if (type == WG__PIECE_NORMAL || p->settings.exact_sums)
            worst = fmin(worst, p->scores[i]);
        if (type == WG__PIECE_NORMAL)
            best = fmax(best, p->scores[i]);
        p->bonus[i] = type == WG__PIECE_USER_DEFINED;
        if ((type == WG__PIECE_NORMAL || type == WG__PIECE_USER_DEFINED) &&
            wg__unigram_add(&p->unigram, wg__strings_text(&p->base.vocabulary, i),
                            wg__strings_length(&p->base.vocabulary, i), (int32_t)i) < 0)
            return -1;
    }
    p->unigram.scores = p->scores;
    p->unigram.bonus = p->bonus;
    p->unigram.single = !p->settings.exact_sums;
    p->unigram.best_score = best;
    p->unigram.unknown_score = worst - UNKNOWN_PENALTY;
    if (p->unigram.single)
        p->unigram.unknown_score = (float)((float)worst - (float)UNKNOWN_PENALTY);
    return 0;
}

static int copy_pieces(wg__pieces *p, const wg__piece_model *model) {
    size_t count = (size_t)model->count;
    p->scores = wg__calloc(count + 1, sizeof *p->scores);
    p->types = wg__alloc(count + 1);
    if (!p->scores || !p->types ||
        wg__tokenizer_set_vocabulary(&p->base, model->count, model->texts, "piece") < 0)
        return -1;
    if (count > 0)
        memcpy(p->types, model->types, count);
    if (model->scores)
        memcpy(p->scores, model->scores, count * sizeof *p->scores);
    for (size_t i = 0; i < count; i++) {
        if (p->types[i] < WG__PIECE_NORMAL || p->types[i] > WG__PIECE_BYTE)
            return wg_fail(WG_ERROR_FORMAT, WHERE, "piece %zu is of type %d, which is none", i + 1,
                           p->types[i]);
        if (!isfinite(p->scores[i]))
            return wg_fail(WG_ERROR_FORMAT, WHERE, "the score of piece %zu is no number", i + 1);
    }
    return 0;
}

static int copy_settings(wg__pieces *p, const wg__piece_model *model) {
    const wg__piece_settings *s = &model->settings;
    p->settings = *s;
    p->unknown_text = wg__strdup(s->unknown_text ? s->unknown_text : " \u2047 ");
    if (!p->unknown_text)
        return -1;
    p->settings.unknown_text = p->unknown_text;
    wg__normalizer *n = &p->normalizer;
    n->prefix = s->prefix;
    n->prefix_first = s->prefix_first;
    n->space_suffix = s->space_suffix;
    n->remove_spaces = s->remove_spaces;
    n->plain_spaces = s->plain_spaces;
    n->by_grapheme = s->by_grapheme;
    return model->charsmap ? wg__charsmap_set(&n->charsmap, model->charsmap, model->charsmap_length)
                           : 0;
}

static int fill(wg__pieces *p, const wg__piece_model *model) {
    if (copy_settings(p, model) < 0 || copy_pieces(p, model) < 0 || find_unknown(p) < 0 ||
        find_bytes(p) < 0 || keep_user_defined(p) < 0 || add_control(p) < 0)
        return -1;
    return p->settings.unigram ? prepare_unigram(p)
                               : wg__pieces_prepare_bpe(p, model->merge_count, model->merges);
}

wg__pieces *wg__pieces_new(const wg__piece_model *model) {
    wg__pieces *p = wg__tokenizer_new(&wg__sentencepiece_kind, sizeof *p);
    if (p && fill(p, model) < 0) {
        wg_tokenizer_free(&p->base);
        return NULL;
    }
    return p;
}

static void clear(wg_tokenizer *tokenizer) {
    wg__pieces *p = (wg__pieces *)tokenizer;
    wg__free(p->unknown_text);
    wg__normalizer_clear(&p->normalizer);
    wg__free(p->kept_ids);
    wg__free(p->scores);
    wg__free(p->types);
    wg__pairs_clear(&p->merges);
    wg__free(p->merge_list);
    wg__strings_clear(&p->extra_characters);
    wg__pairs_clear(&p->unigram.trie);
    wg__free(p->bonus);
}

/* ---- Encoding ---- */

int wg__append_unknown(wg__piece_cutting *cutting, const char *character, int64_t length) {
    const wg__pieces *p = cutting->pieces;
    for (int64_t i = 0; p->settings.byte_fallback && i < length; i++)
        if (wg_token_list_append(cutting->list, p->bytes[(unsigned char)character[i]]) < 0)
            return -1;
    if (p->settings.byte_fallback || (cutting->after_unknown && !p->settings.part_unknowns))
        return 0;
    cutting->after_unknown = true;
    return wg_token_list_append(cutting->list, p->base.special[WG_TOKEN_UNKNOWN]);
}

/* Appends the pieces of the best way, which is known from its end. */
static int append_way(wg__piece_cutting *cutting, const char *text, int64_t length) {
    wg_token_list *ends = &cutting->symbols;
    ends->count = 0;
    for (int64_t end = length; end > 0; end = cutting->nodes[end].start)
        if (wg_token_list_append(ends, (int32_t)end) < 0)
            return -1;
    for (int64_t i = ends->count - 1; i >= 0; i--) {
        const wg__unigram_node *node = &cutting->nodes[ends->ids[i]];
        if (node->piece < 0) {
            if (wg__append_unknown(cutting, text + node->start, ends->ids[i] - node->start) < 0)
                return -1;
            continue;
        }
        cutting->after_unknown = false;
        if (wg_token_list_append(cutting->list, node->piece) < 0)
            return -1;
    }
    return 0;
}

static int cut_unigram(wg__piece_cutting *cutting, const char *text, int64_t length) {
    if (length >= INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "a stretch of text of 2^31 bytes or more");
    wg__unigram_node *nodes =
        wg__grow(cutting->nodes, 0, &cutting->node_capacity, length + 1, sizeof *nodes);
    if (!nodes)
        return -1;
    cutting->nodes = nodes;
    wg__unigram_cut(&cutting->pieces->unigram, text, length, nodes);
    return append_way(cutting, text, length);
}

static int cut(wg__piece_cutting *cutting, const char *text, int64_t length) {
    return cutting->pieces->settings.unigram ? cut_unigram(cutting, text, length)
                                             : wg__cut_bpe(cutting, text, length);
}

/* Where the first part ends that begins with a space: before the next one. */
static int64_t part_end(const char *text, int64_t length) {
    const char *next =
        length > 3 ? memmem(text + 3, (size_t)length - 3, WG__SPACE_SYMBOL, 3) : NULL;
    if (*text != *WG__SPACE_SYMBOL)
        next = memmem(text, (size_t)length, WG__SPACE_SYMBOL, 3);
    return next ? next - text : length;
}

static int cut_parts(wg__piece_cutting *cutting, const char *text, int64_t length) {
    int64_t size;
    if (!cutting->pieces->settings.split_words)
        return cut(cutting, text, length);
    for (int64_t at = 0; at < length; at += size) {
        size = part_end(text + at, length - at);
        cutting->after_unknown = false;
        if (cut(cutting, text + at, size) < 0)
            return -1;
    }
    return 0;
}

static int encode_stretch(wg__piece_cutting *cutting, const char *text, int64_t length, bool first,
                          wg__text *normalized) {
    normalized->length = 0;
    cutting->after_unknown = false;
    if (wg__normalize(&cutting->pieces->normalizer, text, length, first, normalized) < 0)
        return -1;
    return normalized->length ? cut_parts(cutting, normalized->bytes, normalized->length) : 0;
}

static int encode_words(wg__piece_cutting *cutting, const char *text, int64_t length, bool first,
                        wg__text *normalized) {
    int64_t end, size;
    for (int64_t at = 0; at < length; at = end) {
        while (at < length && (size = wg__space_length(text + at, length - at)) > 0)
            at += size;
        for (end = at; end < length && wg__space_length(text + end, length - end) == 0;)
            end += utf8proc_utf8class[(unsigned char)text[end]];
        if (end > at &&
            encode_stretch(cutting, text + at, end - at, first && at == 0, normalized) < 0)
            return -1;
    }
    return 0;
}

static int encode(const wg_tokenizer *tokenizer, const char *text, int64_t length, bool first,
                  wg__token_sink *sink) {
    const wg__pieces *p = (const wg__pieces *)tokenizer;
    wg__merge_space space = {0};
    wg__piece_cutting cutting = {.pieces = p, .list = &sink->list, .space = &space};
    wg__text replaced = {0}, normalized = {0};
    int status = 0;
    if (p->settings.by_grapheme) {
        status = wg__replace_graphemes(&p->normalizer, text, length, &replaced);
        text = replaced.bytes;
        length = replaced.length;
    }
    if (status == 0)
        status = p->settings.split_spaces
                     ? encode_words(&cutting, text, length, first, &normalized)
                     : encode_stretch(&cutting, text, length, first, &normalized);
    wg__free(replaced.bytes);
    wg__free(normalized.bytes);
    wg_token_list_free(&cutting.symbols);
    wg__merge_space_clear(&space);
    wg__free(cutting.nodes);
    return status;
}

/* ---- Decoding ---- */

/* Appends a piece with spaces for U+2581, less what is the normaliser's at the beginning. */
static int decode_piece(const wg__pieces *p, int32_t id, wg__decode_state *state, wg__text *text) {
    const char *at = wg__strings_text(&p->base.vocabulary, id), *symbol;
    bool strip = !state->begun && p->settings.strip != WG__STRIP_NONE &&
                 strncmp(at, WG__SPACE_SYMBOL, 3) == 0;
    if (strip) {
        at += 3;
        state->begun = p->settings.strip == WG__STRIP_ONE;
    }
    state->begun |= *at != '\0';
    while ((symbol = strstr(at, WG__SPACE_SYMBOL))) {
        if (wg__text_append(text, at, symbol - at) < 0 || wg__text_append(text, " ", 1) < 0)
            return -1;
        at = symbol + 3;
    }
    return wg__text_append(text, at, (int64_t)strlen(at));
}

static int decode(const wg_tokenizer *tokenizer, int32_t id, const wg_decode_options *options,
                  wg__decode_state *state, wg__text *text) {
    (void)options;
    const wg__pieces *p = (const wg__pieces *)tokenizer;
    const char *token = wg__strings_text(&p->base.vocabulary, id);
    switch (p->types[id]) {
    case WG__PIECE_CONTROL:
        return wg__text_append(text, token, (int64_t)strlen(token));
    case WG__PIECE_UNKNOWN:
        state->begun = true;
        return wg__text_append(text, p->unknown_text, (int64_t)strlen(p->unknown_text));
    case WG__PIECE_BYTE:
        state->begun = true;
        return wg__text_append(text, &(char){(char)byte_of(token)}, 1);
    default:
        return decode_piece(p, id, state, text);
    }
}

const wg__tokenizer_kind wg__sentencepiece_kind = {
    .name = "sentencepiece",
    .encode = encode,
    .decode = decode,
    .options_to_json = wg__pieces_to_json,
    .from_json = wg__pieces_from_json,
    .clear = clear,
};
