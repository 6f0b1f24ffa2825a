/* SentencePiece: making a tokenizer, segmenting by BPE and unigram, decoding, JSON. See
 * sentencepiece.h. sentencepiece_model.c reads and writes tokenizer.model. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/tokenizer/sentencepiece.h"
#include "base/json.h"
#include "data/tokenizer/text_file.h"

#define WHERE "sentencepiece"
#define UNKNOWN_PENALTY 10.0 /* score of the worst piece - score of an unknown character */
#define UNIGRAM_GAIN 0.01    /* at least: score of a learnt piece - scores of its two parts */

/* The byte of a text "<0x0A>", or -1. */
static int byte_of(const char *text) {
    unsigned byte;
    char end;
    return sscanf(text, "<0x%2X%c", &byte, &end) == 2 && end == '>' ? (int)byte : -1;
}

/* The trie has only normal and user-defined pieces. The worst score is the minimum over the normal
 * pieces, or over all pieces as in Hugging Face's library (exact_sums). */
static int prepare_unigram(wg__pieces *p) {
    int64_t count = p->base.vocabulary.count;
    double worst = DBL_MAX, best = FLT_MIN;
    p->unigram.bonus = wg__calloc((size_t)count + 1, sizeof *p->unigram.bonus);
    if (!p->unigram.bonus)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        uint8_t type = p->types[i];
        if (type == WG__PIECE_NORMAL || p->settings.exact_sums)
            worst = fmin(worst, p->scores[i]);
        if (type == WG__PIECE_NORMAL)
            best = fmax(best, p->scores[i]);
        p->unigram.bonus[i] = type == WG__PIECE_USER_DEFINED;
        if ((type == WG__PIECE_NORMAL || type == WG__PIECE_USER_DEFINED) &&
            wg__unigram_add(&p->unigram, wg__strings_text(&p->base.vocabulary, i),
                            wg__strings_length(&p->base.vocabulary, i), (int32_t)i) < 0)
            return -1;
    }
    p->unigram.best_score = best;
    p->unigram.unknown_score = worst - UNKNOWN_PENALTY;
    if (!p->settings.exact_sums)
        p->unigram.unknown_score = (float)((float)worst - (float)UNKNOWN_PENALTY);
    return 0;
}

/* ---- Making a tokenizer: BPE ----
 * Joins neighbours that make a piece, first the pair that makes the piece with the best score. All
 * pairs are listed beforehand, for wg__merge. Equal scores have the same rank: then the leftmost
 * pair is joined first. */

/* The normal piece of this text, or -1. */
static int32_t piece_of(const wg__pieces *p, const char *text, int64_t length) {
    int64_t id = wg__strings_find(&p->base.vocabulary, text, length);
    return id >= 0 && p->types[id] == WG__PIECE_NORMAL ? (int32_t)id : -1;
}

/* The number of a character in merges, or -1. */
static int32_t number_of_character(const wg__pieces *p, const char *text, int64_t length) {
    int32_t id = piece_of(p, text, length);
    if (id >= 0)
        return id;
    int64_t extra = wg__strings_find(&p->extra_characters, text, length);
    return extra < 0 ? -1 : (int32_t)(p->base.vocabulary.count + extra);
}

/* Adds each pair of pieces or characters that makes this piece. */
static int add_pairs(wg__pieces *p, int32_t id, int32_t rank) {
    const char *text = wg__strings_text(&p->base.vocabulary, id);
    int64_t length = wg__strings_length(&p->base.vocabulary, id), head = wg__utf8_length(text);
    for (; head < length; head += wg__utf8_length(text + head)) {
        int64_t tail = length - head;
        bool tail_is_character = wg__utf8_length(text + head) == tail;
        int32_t left = head == wg__utf8_length(text) ? number_of_character(p, text, head)
                                                     : piece_of(p, text, head);
        int32_t right = tail_is_character ? number_of_character(p, text + head, tail)
                                          : piece_of(p, text + head, tail);
        if (left < 0 || right < 0)
            continue;
        wg__pair *pair = wg__pair_table_add(&p->merges.table, left, right);
        if (!pair)
            return -1;
        pair->first = rank;
        pair->second = id;
    }
    return 0;
}

static int prepare_bpe(wg__pieces *p, int64_t merge_count, const int32_t (*merges)[2]) {
    for (int64_t i = 0; i < p->base.vocabulary.count; i++)
        if (p->types[i] == WG__PIECE_UNUSED)
            return wg_fail(WG_ERROR_FORMAT, WHERE,
                           "piece %lld is unused, which is not supported in a BPE model",
                           (long long)i + 1);
    const wg__strings *vocabulary = &p->base.vocabulary;
    p->parts_at_spaces = true;
    for (int64_t i = 0; i < vocabulary->count; i++) {
        const char *text = wg__strings_text(vocabulary, i);
        const char *end = text + wg__strings_length(vocabulary, i), *rest = text;
        while (strncmp(rest, WG__SPACE_SYMBOL, 3) == 0)
            rest += 3;
        if ((p->types[i] == WG__PIECE_NORMAL || p->types[i] == WG__PIECE_USER_DEFINED) &&
            strstr(rest, WG__SPACE_SYMBOL))
            p->parts_at_spaces = false;
        /* Adds the characters of normal pieces that are no pieces themselves. */
        for (; !p->settings.by_merges && p->types[i] == WG__PIECE_NORMAL && text < end;
             text += wg__utf8_length(text))
            if (piece_of(p, text, wg__utf8_length(text)) < 0 &&
                wg__strings_add(&p->extra_characters, text, wg__utf8_length(text)) < 0)
                return -1;
    }
    if (p->settings.by_merges) {
        if (wg__set_merges(&p->merges, vocabulary, merge_count, merges, WHERE) < 0)
            return -1;
    } else {
        int32_t *ranks = wg__alloc_array(vocabulary->count + 1, sizeof *ranks);
        int status = ranks ? wg__rank_scores(vocabulary->count, p->scores, ranks) : -1;
        for (int64_t i = 0; status == 0 && i < vocabulary->count; i++)
            if (p->types[i] == WG__PIECE_NORMAL)
                status = add_pairs(p, (int32_t)i, ranks[i]);
        wg__free(ranks);
        if (status < 0)
            return -1;
    }
    for (int c = 0; c < 128; c++)
        p->ascii[c] = number_of_character(p, &(char){(char)c}, 1);
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
            return wg_fail(WG_ERROR_FORMAT, WHERE, "piece %zu is of type %d; types are 1 to 6",
                           i + 1, p->types[i]);
        if (!isfinite(p->scores[i]))
            return wg_fail(WG_ERROR_FORMAT, WHERE, "the score of piece %zu is not a finite number",
                           i + 1);
    }
    return 0;
}

static int copy_settings(wg__pieces *p, const wg__piece_model *model) {
    const char *unknown_text = model->settings.unknown_text;
    p->settings = model->settings;
    p->settings.unknown_text = wg__strdup(unknown_text ? unknown_text : " \u2047 ");
    p->normalizer.settings = &p->settings;
    if (!p->settings.unknown_text)
        return -1;
    return model->charsmap
               ? wg__charsmap_set(&p->normalizer.charsmap, model->charsmap, model->charsmap_length)
               : 0;
}

static int fill(wg__pieces *p, const wg__piece_model *model) {
    if (copy_settings(p, model) < 0 || copy_pieces(p, model) < 0)
        return -1;
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
        return wg_fail(WG_ERROR_FORMAT, WHERE, "no piece is of type unknown");
    if (wg__tokenizer_set_special(&p->base, WG_TOKEN_UNKNOWN, unknown) < 0)
        return -1;
    /* Checks the names of byte pieces; byte_fallback needs all 256. */
    for (int64_t i = 0; i < p->base.vocabulary.count; i++)
        if (p->types[i] == WG__PIECE_BYTE && byte_of(wg__strings_text(&p->base.vocabulary, i)) < 0)
            return wg_fail(WG_ERROR_FORMAT, WHERE,
                           "piece %lld is of type byte, but is not <0x00> to <0xFF>",
                           (long long)i + 1);
    for (int byte = 0; byte < 256 && p->settings.byte_fallback; byte++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", byte);
        p->bytes[byte] = wg_tokenizer_id(&p->base, text);
        if (p->bytes[byte] < 0 || p->types[p->bytes[byte]] != WG__PIECE_BYTE)
            return wg_fail(WG_ERROR_FORMAT, WHERE,
                           "byte_fallback is set, but the piece %s of type byte is missing", text);
    }
    /* User-defined pieces, which are not normalized, and control pieces. */
    int64_t count = p->base.vocabulary.count;
    p->kept_ids = wg__alloc_array(count + 1, sizeof *p->kept_ids);
    if (!p->kept_ids)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        const wg__added_token token = {.id = (int32_t)i, .special = true};
        if (p->types[i] == WG__PIECE_CONTROL && wg__tokenizer_add(&p->base, NULL, &token) < 0)
            return -1;
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
    return p->settings.unigram ? prepare_unigram(p)
                               : prepare_bpe(p, model->merge_count, model->merges);
}

wg_tokenizer *wg__sentencepiece_new(const wg__piece_model *model) {
    wg__pieces *p = wg__tokenizer_new(&wg__sentencepiece_kind, sizeof *p);
    return p ? wg__tokenizer_checked(&p->base, fill(p, model)) : NULL;
}

static void clear(wg_tokenizer *tokenizer) {
    wg__pieces *p = (wg__pieces *)tokenizer;
    wg__free((char *)(uintptr_t)p->settings.unknown_text);
    wg__free(p->normalizer.charsmap.blob);
    wg__strings_clear(&p->normalizer.kept);
    wg__free(p->kept_ids);
    wg__free(p->scores);
    wg__free(p->types);
    wg__pair_table_clear(&p->merges.table);
    wg__free(p->merges.pairs);
    wg__strings_clear(&p->extra_characters);
    wg__pair_table_clear(&p->unigram.trie);
    wg__free(p->unigram.bonus);
}

/* The last piece of the best segmentation of the first bytes of a text. */
typedef struct unigram_node {
    int32_t piece; /* -1: an unknown character */
    int32_t start; /* of the piece; -1: no segmentation yet */
    double score;
} unigram_node;

typedef struct segmenter {
    const wg__pieces *pieces;
    wg__token_sink *sink;
    wg_token_list symbols; /* scratch: BPE's symbols, or the ends of unigram's pieces */
    wg__merge_buffer buffer;
    unigram_node *nodes;
    int64_t node_capacity;
    wg__text normalized;
    bool after_unknown;        /* the last token is <unk> */
    wg__merge_training *words; /* counts the parts instead of segmenting them; NULL: segment */
} segmenter;

/* Appends an unknown character: its bytes, or one <unk> for a run of unknown characters. */
static int append_unknown(segmenter *g, const char *character, int64_t length) {
    const wg__pieces *p = g->pieces;
    for (int64_t i = 0; p->settings.byte_fallback && i < length; i++)
        if (wg_token_list_append(&g->sink->list, p->bytes[(unsigned char)character[i]]) < 0)
            return -1;
    if (p->settings.byte_fallback || (g->after_unknown && !p->settings.part_unknowns))
        return 0;
    g->after_unknown = true;
    return wg_token_list_append(&g->sink->list, p->base.special[WG_TOKEN_UNKNOWN]);
}

/* ---- Segmenting by BPE ---- */

static int merge_part(segmenter *g, const char *text, int64_t length) {
    const wg__pieces *p = g->pieces;
    if (wg__reserve(&g->symbols.ids, 0, &g->symbols.capacity, length, sizeof *g->symbols.ids) < 0)
        return -1;
    /* The numbers of characters, and the ids of user-defined pieces, which no merge has. */
    int32_t *ids = g->symbols.ids;
    int64_t count = 0, used, number;
    for (int64_t place = 0; place < length; place += used) {
        const unsigned char byte = (unsigned char)text[place];
        if (p->normalizer.kept_begins[byte] &&
            (used = wg__normalize_kept(&p->normalizer, text + place, length - place, &number)) >
                0) {
            ids[count++] = p->kept_ids[number];
        } else {
            used = (uint8_t)utf8proc_utf8class[byte];
            ids[count++] = byte < 128 ? p->ascii[byte] : number_of_character(p, text + place, used);
        }
    }
    count = wg__merge(&p->merges.table, ids, count, &g->buffer);
    if (count < 0)
        return -1;
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        bool known = ids[i] >= 0 && ids[i] < p->base.vocabulary.count;
        int64_t size =
            known ? wg__strings_length(&p->base.vocabulary, ids[i]) : wg__utf8_length(text + at);
        if ((known ? wg_token_list_append(&g->sink->list, ids[i])
                   : append_unknown(g, text + at, size)) < 0)
            return -1;
        g->after_unknown &= !known;
        at += size;
    }
    return 0;
}

/* The length of the first word of a text with the spaces before it. */
static int64_t word_end(const char *text, int64_t length) {
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

/* ---- Segmenting by the unigram language model   (Kudo 2018) ----
 * The best segmentation of a text has the greatest sum of log probabilities. Sums and comparisons
 * are rounded as in SentencePiece (EncodeOptimized of unigram_model.cc), so that both choose the
 * same of two nearly equal segmentations. */

/* Stores a segmentation that ends at `node` if the node has none, or only a worse one. */
static void offer(const wg__pieces *p, unigram_node *node, double score, int64_t start,
                  int32_t piece) {
    if (node->start >= 0 && !(score > node->score))
        return;
    *node = (unigram_node){piece, (int32_t)start, p->settings.exact_sums ? score : (float)score};
}

static int segment_by_scores(segmenter *g, const char *text, int64_t length) {
    if (length >= INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "a stretch of text of 2^31 bytes or more");
    if (wg__reserve(&g->nodes, 0, &g->node_capacity, length + 1, sizeof *g->nodes) < 0)
        return -1;
    /* Finds the last piece of the best segmentation of the first i bytes, for each i (Viterbi). */
    const wg__pieces *p = g->pieces;
    unigram_node *nodes = g->nodes;
    for (int64_t i = 0; i <= length; i++)
        nodes[i] = (unigram_node){-1, -1, 0.0};
    int64_t size;
    for (int64_t start = 0; start < length; start += size) {
        double here = nodes[start].score;
        bool known = false;
        int32_t node = 0;
        size = wg__utf8_length(text + start);
        for (int64_t at = start; at < length; at++) {
            const wg__pair *edge =
                wg__pair_table_find(&p->unigram.trie, node, (unsigned char)text[at]);
            if (!edge)
                break;
            node = edge->first;
            if (edge->second < 0)
                continue;
            const int64_t taken = at + 1 - start;
            double score = p->scores[edge->second];
            if (p->unigram.bonus[edge->second]) {
                score = (double)taken * p->unigram.best_score;
                score = (p->settings.exact_sums ? score : (float)score) - 0.1;
            }
            offer(p, &nodes[at + 1], score + here, start, edge->second);
            known |= taken == size;
        }
        if (!known) {
            double score = p->unigram.unknown_score + here;
            offer(p, &nodes[start + size], p->settings.exact_sums ? score : (float)score, start,
                  -1);
        }
    }
    /* Follows the best segmentation from its end, and appends its pieces. */
    wg_token_list *ends = &g->symbols;
    ends->count = 0;
    for (int64_t end = length; end > 0; end = g->nodes[end].start)
        if (wg_token_list_append(ends, (int32_t)end) < 0)
            return -1;
    for (int64_t i = ends->count - 1; i >= 0; i--) {
        const unigram_node *node = &g->nodes[ends->ids[i]];
        if (node->piece < 0) {
            if (append_unknown(g, text + node->start, ends->ids[i] - node->start) < 0)
                return -1;
            continue;
        }
        g->after_unknown = false;
        if (wg_token_list_append(&g->sink->list, node->piece) < 0)
            return -1;
    }
    return 0;
}

/* BPE merges each word separately if no piece spans words: the symbols of a word fit the cache. */
static int segment(segmenter *g, const char *text, int64_t length) {
    if (g->pieces->settings.unigram)
        return segment_by_scores(g, text, length);
    int64_t size;
    for (int64_t at = 0; at < length; at += size) {
        size = g->pieces->parts_at_spaces ? word_end(text + at, length - at) : length;
        if (merge_part(g, text + at, size) < 0)
            return -1;
    }
    return 0;
}

static int encode_stretch(segmenter *g, const char *text, int64_t length, bool first) {
    wg__text *normalized = &g->normalized;
    normalized->length = 0;
    if (wg__normalize(&g->pieces->normalizer, text, length, first, normalized) < 0)
        return -1;
    const int64_t end = normalized->length;
    const bool whole = !g->pieces->settings.split_words && !g->words;
    text = normalized->bytes;
    for (int64_t at = 0, size; at < end; at += size) {
        /* A part ends before the next U+2581. */
        const int64_t skipped = text[at] == *WG__SPACE_SYMBOL && end - at >= 3 ? 3 : 0;
        const char *next =
            whole ? NULL
                  : memmem(text + at + skipped, (size_t)(end - at - skipped), WG__SPACE_SYMBOL, 3);
        size = (next ? next - text : end) - at;
        g->after_unknown = false;
        if ((g->words ? wg__sentencepiece_count(g->words, text + at, size)
                      : segment(g, text + at, size)) < 0)
            return -1;
    }
    return 0;
}

static int encode_words(segmenter *g, const char *text, int64_t length, bool first) {
    int64_t end, size;
    for (int64_t at = 0; at < length; at = end) {
        while (at < length && (size = wg__space_length(text + at, length - at)) > 0)
            at += size;
        for (end = at; end < length && wg__space_length(text + end, length - end) == 0;)
            end += wg__utf8_length(text + end);
        if (end > at && encode_stretch(g, text + at, end - at, first && at == 0) < 0)
            return -1;
    }
    return 0;
}

static void clear_segmenter(segmenter *g) {
    wg__free(g->normalized.bytes);
    wg_token_list_free(&g->symbols);
    wg__free(g->buffer.block);
    wg__free(g->nodes);
}

static int encode_text(segmenter *g, const char *text, int64_t length, bool first) {
    const wg__pieces *p = g->pieces;
    wg__text replaced = {0};
    int status = 0;
    if (p->settings.by_grapheme) {
        status = wg__replace_graphemes(&p->normalizer, text, length, &replaced);
        text = replaced.bytes;
        length = replaced.length;
    }
    if (status == 0)
        status = p->settings.split_spaces ? encode_words(g, text, length, first)
                                          : encode_stretch(g, text, length, first);
    wg__free(replaced.bytes);
    clear_segmenter(g);
    return status;
}

static int encode(const wg_tokenizer *tokenizer, const char *text, int64_t length, bool first,
                  wg__token_sink *sink) {
    segmenter g = {.pieces = (const wg__pieces *)tokenizer, .sink = sink};
    return encode_text(&g, text, length, first);
}

/* ---- Extending the vocabulary (extend.c) ---- */

/* Encodes each line as a text. */
static int count_words(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                       wg__merge_training *words) {
    for (int64_t at = 0, end; at < length; at = end + 1) {
        const char *newline = memchr(text + at, '\n', (size_t)(length - at));
        end = newline ? newline - text : length;
        segmenter g = {.pieces = (const wg__pieces *)tokenizer, .words = words};
        if (end > at && encode_text(&g, text + at, end - at, true) < 0)
            return -1;
    }
    return 0;
}

/* Gives no ids for a word with bytes, unknown characters or user-defined pieces: it cannot become a
 * piece. */
static int encode_word(const wg_tokenizer *tokenizer, const char *word, int64_t length,
                       wg__token_sink *sink) {
    const wg__pieces *p = (const wg__pieces *)tokenizer;
    segmenter g = {.pieces = p, .sink = sink};
    const int64_t before = sink->list.count;
    const int status = segment(&g, word, length);
    clear_segmenter(&g);
    for (int64_t i = before; i < sink->list.count; i++)
        if (p->types[sink->list.ids[i]] != WG__PIECE_NORMAL)
            sink->list.count = before;
    return status;
}

/* The log probability of each learnt piece: its share of the pieces of the text, but at least
 * UNIGRAM_GAIN more than the sum of any two pieces that make it, so that encoding chooses the
 * learnt piece. */
static int unigram_scores(const wg__pieces *p, const wg__merge_training *words, double *scores) {
    const int64_t old = p->base.vocabulary.count, count = words->pieces.count;
    int64_t *uses = wg__calloc((size_t)count, sizeof *uses), all = 0;
    if (!uses)
        return -1;
    for (int64_t w = 0; w < words->words.count; w++)
        for (int32_t i = 0; i < words->word_lengths[w]; i++) {
            uses[words->symbols[words->word_starts[w] + i]] += words->word_counts[w];
            all += words->word_counts[w];
        }
    for (int64_t i = old; i < count; i++) {
        const char *text = wg__strings_text(&words->pieces, i);
        const int64_t length = wg__strings_length(&words->pieces, i);
        scores[i] = log((double)(uses[i] > 0 ? uses[i] : 1) / (double)all);
        for (int64_t head = wg__utf8_length(text); head < length;
             head += wg__utf8_length(text + head)) {
            const int64_t left = wg__strings_find(&words->pieces, text, head);
            const int64_t right = wg__strings_find(&words->pieces, text + head, length - head);
            if (left >= 0 && left < i && right >= 0 && right < i)
                scores[i] = fmax(scores[i], scores[left] + scores[right] + UNIGRAM_GAIN);
        }
    }
    wg__free(uses);
    return 0;
}

/* In BPE, new pieces have lower scores than all old pieces, in the order of training. */
static int extend_options(const wg_tokenizer *tokenizer, const wg__merge_training *words,
                          json_t *options) {
    const wg__pieces *p = (const wg__pieces *)tokenizer;
    const int64_t old = p->base.vocabulary.count, count = words->pieces.count;
    double *scores = wg__alloc_array(count, sizeof *scores), worst = 0;
    if (!scores)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        scores[i] = i < old ? p->scores[i] : worst - 1;
        worst = fmin(worst, scores[i]);
    }
    int status = p->settings.unigram ? unigram_scores(p, words, scores) : 0;
    for (int64_t i = old; status == 0 && i < count; i++)
        if (json_array_append_new(json_object_get(options, "types"),
                                  json_integer(WG__PIECE_NORMAL)) < 0 ||
            json_array_append_new(json_object_get(options, "scores"), json_real(scores[i])) < 0)
            status = wg_fail(WG_ERROR_MEMORY, WHERE, "no memory for the new pieces");
    wg__free(scores);
    return status;
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
        token = p->settings.unknown_text;
        return wg__text_append(text, token, (int64_t)strlen(token));
    case WG__PIECE_BYTE:
        state->begun = true;
        return wg__text_append(text, &(char){(char)byte_of(token)}, 1);
    default: {
        /* Appends a piece with spaces for U+2581, without the spaces that normalizing put before
         * the text. */
        const char *at = token;
        bool strip = !state->begun && p->settings.strip != WG__STRIP_NONE &&
                     strncmp(at, WG__SPACE_SYMBOL, 3) == 0;
        if (strip) {
            at += 3;
            state->begun = p->settings.strip == WG__STRIP_ONE;
        }
        state->begun |= *at != '\0';
        return wg__append_replaced(text, at, WG__SPACE_SYMBOL, " ");
    }
    }
}

/* ---- JSON ---- */

/* The members of wg__piece_settings in JSON. Enumerations are numbers. */
static const struct {
    const char *key;
    size_t offset;
    int values; /* the number of values of an enumeration; 0: a bool */
} settings_rows[] = {
    {"unigram", offsetof(wg__piece_settings, unigram), 0},
    {"by_merges", offsetof(wg__piece_settings, by_merges), 0},
    {"byte_fallback", offsetof(wg__piece_settings, byte_fallback), 0},
    {"part_unknowns", offsetof(wg__piece_settings, part_unknowns), 0},
    {"split_spaces", offsetof(wg__piece_settings, split_spaces), 0},
    {"split_words", offsetof(wg__piece_settings, split_words), 0},
    {"exact_sums", offsetof(wg__piece_settings, exact_sums), 0},
    {"prefix", offsetof(wg__piece_settings, prefix), WG__PREFIX_COUNT},
    {"prefix_first", offsetof(wg__piece_settings, prefix_first), 0},
    {"space_suffix", offsetof(wg__piece_settings, space_suffix), 0},
    {"remove_spaces", offsetof(wg__piece_settings, remove_spaces), 0},
    {"plain_spaces", offsetof(wg__piece_settings, plain_spaces), 0},
    {"by_grapheme", offsetof(wg__piece_settings, by_grapheme), 0},
    {"strip", offsetof(wg__piece_settings, strip), WG__STRIP_COUNT},
};
_Static_assert(sizeof(wg__space_prefix) == sizeof(int) && sizeof(wg__strip) == sizeof(int),
               "enumerations are read as int");
enum { SETTINGS = sizeof settings_rows / sizeof settings_rows[0] };

static json_t *options_to_json(const wg_tokenizer *tokenizer) {
    const wg__pieces *p = (const wg__pieces *)tokenizer;
    json_t *object = json_object();
    for (int i = 0; i < SETTINGS; i++) {
        const void *member = (const char *)&p->settings + settings_rows[i].offset;
        wg__json_put(&object, settings_rows[i].key,
                     settings_rows[i].values ? json_integer(*(const int *)member)
                                             : json_boolean(*(const bool *)member));
    }
    const wg__charsmap *map = &p->normalizer.charsmap;
    wg__text text = {0};
    json_t *charsmap = NULL, *types = json_array();
    if (wg__base64_encode(map->blob, map->length, &text) == 0)
        charsmap = json_stringn(text.bytes, (size_t)text.length);
    wg__free(text.bytes);
    for (int64_t i = 0; i < p->base.vocabulary.count; i++)
        wg__json_append(&types, json_integer(p->types[i]));
    json_t *other = json_pack("{s:s, s:o, s:o, s:o, s:o}", "unknown_text", p->settings.unknown_text,
                              "charsmap", charsmap, "types", types, "scores",
                              wg__numbers_to_json(p->base.vocabulary.count, p->scores), "merges",
                              wg__merges_to_json(&p->merges));
    if (!other || json_object_update(object, other) < 0 ||
        json_object_size(object) < SETTINGS + 5) {
        json_decref(object);
        object = NULL;
    }
    json_decref(other);
    return object;
}

static int read_settings(const json_t *json, wg__piece_settings *s) {
    for (int i = 0; i < SETTINGS; i++) {
        const json_t *value = json_object_get(json, settings_rows[i].key);
        void *member = (char *)s + settings_rows[i].offset;
        const int values = settings_rows[i].values;
        const json_int_t number = json_integer_value(value);
        if (values ? !json_is_integer(value) || number < 0 || number >= values
                   : !json_is_boolean(value))
            return wg_fail(WG_ERROR_FORMAT, WHERE, "bad options: \"%s\" is missing or invalid",
                           settings_rows[i].key);
        if (values)
            *(int *)member = (int)number;
        else
            *(bool *)member = json_is_true(value);
    }
    s->unknown_text = json_string_value(json_object_get(json, "unknown_text"));
    return s->unknown_text ? 0
                           : wg_fail(WG_ERROR_FORMAT, WHERE,
                                     "bad options: \"unknown_text\" is missing or invalid");
}

/* The types in a JSON list, freed with wg__free. NULL with FORMAT or MEMORY. */
static uint8_t *types_of_json(const json_t *list, int64_t count) {
    bool good = (int64_t)json_array_size(list) == count;
    uint8_t *types = wg__alloc((size_t)count + 1);
    for (int64_t i = 0; types && good && i < count; i++) {
        const json_t *type = json_array_get(list, (size_t)i);
        json_int_t value = json_integer_value(type);
        good = json_is_integer(type) && value >= 0 && value <= UINT8_MAX;
        types[i] = (uint8_t)value;
    }
    if (types && good)
        return types;
    if (types)
        wg_fail(WG_ERROR_FORMAT, WHERE, "\"types\" is not a list of %lld types", (long long)count);
    wg__free(types);
    return NULL;
}

static wg_tokenizer *from_json(const json_t *options, int64_t count, const char *const *texts) {
    wg__piece_model model = {.count = count, .texts = texts};
    const json_t *map = json_object_get(options, "charsmap");
    const json_t *list = json_object_get(options, "scores");
    uint8_t *types = NULL;
    if (read_settings(options, &model.settings) == 0)
        types = types_of_json(json_object_get(options, "types"), count);
    double *scores = types ? wg__numbers_of_json(list, count, "scores", WHERE) : NULL;
    int32_t(*merges)[2] = NULL;
    if (scores)
        merges = wg__merges_of_json(json_object_get(options, "merges"), &model.merge_count, WHERE);
    wg__text charsmap = {0};
    wg_tokenizer *tokenizer = NULL;
    if (merges && !json_is_string(map))
        wg_fail(WG_ERROR_FORMAT, WHERE, "\"charsmap\" is not a string");
    else if (merges && wg__base64_decode(json_string_value(map), (int64_t)json_string_length(map),
                                         &charsmap, WHERE) == 0) {
        model.scores = scores;
        model.types = types;
        model.merges = (const int32_t(*)[2])merges;
        model.charsmap = charsmap.length ? charsmap.bytes : NULL;
        model.charsmap_length = charsmap.length;
        tokenizer = wg__sentencepiece_new(&model);
    }
    wg__free(scores);
    wg__free(types);
    wg__free(merges);
    wg__free(charsmap.bytes);
    return tokenizer;
}

const wg__tokenizer_kind wg__sentencepiece_kind = {
    .name = "sentencepiece",
    .encode = encode,
    .decode = decode,
    .options_to_json = options_to_json,
    .from_json = from_json,
    .count_words = count_words,
    .encode_word = encode_word,
    .extend_options = extend_options,
    .clear = clear,
};
