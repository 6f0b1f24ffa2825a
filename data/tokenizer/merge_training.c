/* Learning merges. See merge_training.h. */
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "data/tokenizer/merge_training.h"
#include "tensor/internal.h"

typedef struct wg__counted_pair {
    int32_t left, right; /* pieces */
    int64_t count;
    int64_t last_place; /* in training.places, -1: none */
} pair;

/* That a pair occurs, or once occurred, in a word. */
typedef struct wg__pair_place {
    int32_t word;
    int64_t previous; /* place of the same pair, or -1 */
} place;

typedef struct wg__heap_entry {
    int64_t count;
    int64_t pair;
} heap_entry;

typedef wg__merge_training trainer;

int wg__count_word(trainer *t, const char *word, int64_t length) {
    int64_t known = t->words.count;
    int64_t number = wg__strings_add(&t->words, word, length);
    if (number < 0)
        return -1;
    if (number == known) {
        int64_t *counts =
            wg__grow(t->word_counts, known, &t->word_count_capacity, known + 1, sizeof *counts);
        if (!counts)
            return -1;
        t->word_counts = counts;
        counts[number] = 0;
    }
    t->word_counts[number]++;
    return 0;
}

/* ---- The heap: the greatest count on top, of equals the first in order of bytes ---- */

static bool comes_before(const trainer *t, heap_entry a, heap_entry b) {
    if (a.count != b.count)
        return a.count > b.count;
    const pair *x = &t->pairs[a.pair], *y = &t->pairs[b.pair];
    int order =
        strcmp(wg__strings_text(&t->pieces, x->left), wg__strings_text(&t->pieces, y->left));
    if (order == 0)
        order =
            strcmp(wg__strings_text(&t->pieces, x->right), wg__strings_text(&t->pieces, y->right));
    return order < 0;
}

static int heap_push(trainer *t, int64_t pair_number) {
    heap_entry *heap =
        wg__grow(t->heap, t->heap_count, &t->heap_capacity, t->heap_count + 1, sizeof *heap);
    if (!heap)
        return -1;
    t->heap = heap;
    heap_entry entry = {t->pairs[pair_number].count, pair_number};
    int64_t i = t->heap_count++;
    for (; i > 0 && comes_before(t, entry, heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = entry;
    return 0;
}

static heap_entry heap_pop(trainer *t) {
    heap_entry *heap = t->heap, top = heap[0], last = heap[--t->heap_count];
    int64_t i = 0;
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= t->heap_count)
            break;
        if (child + 1 < t->heap_count && comes_before(t, heap[child + 1], heap[child]))
            child++;
        if (!comes_before(t, heap[child], last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

/* ---- Pairs ---- */

static int64_t pair_number(trainer *t, int32_t left, int32_t right) {
    wg__pair *slot = wg__pairs_add(&t->numbers, left, right);
    if (!slot)
        return -1;
    if (slot->first >= 0)
        return slot->first;
    if (t->pair_count >= INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, "training", "more than 2^31 - 1 pairs of pieces");
    pair *pairs =
        wg__grow(t->pairs, t->pair_count, &t->pair_capacity, t->pair_count + 1, sizeof *pairs);
    if (!pairs)
        return -1;
    t->pairs = pairs;
    pairs[t->pair_count] = (pair){.left = left, .right = right, .last_place = -1};
    slot->first = (int32_t)t->pair_count;
    return t->pair_count++;
}

static int note_place(trainer *t, int64_t number, int64_t word) {
    place *places =
        wg__grow(t->places, t->place_count, &t->place_capacity, t->place_count + 1, sizeof *places);
    if (!places)
        return -1;
    t->places = places;
    places[t->place_count] = (place){(int32_t)word, t->pairs[number].last_place};
    t->pairs[number].last_place = t->place_count++;
    return 0;
}

/* Adds the pairs of a word to their counts, `sign` times. With `note`, the places of those that
 * have the piece `fresh` in them (any, if it is -1) are noted: the others were there before. */
static int count_pairs(trainer *t, int64_t word, int sign, bool note, int32_t fresh) {
    const int32_t *symbols = t->symbols + t->word_starts[word];
    for (int32_t i = 0; i + 1 < t->word_lengths[word]; i++) {
        int64_t number = pair_number(t, symbols[i], symbols[i + 1]);
        if (number < 0)
            return -1;
        t->pairs[number].count += sign * t->word_counts[word];
        if (note && (fresh < 0 || symbols[i] == fresh || symbols[i + 1] == fresh) &&
            note_place(t, number, word) < 0)
            return -1;
    }
    return 0;
}

/* ---- Words as pieces ---- */

static int cut_words(trainer *t, wg__word_cutter cut) {
    int64_t words = t->words.count, total = words ? t->words.starts[words] : 0;
    t->symbols = wg__alloc((size_t)(total + 1) * sizeof *t->symbols);
    t->word_starts = wg__alloc((size_t)(words + 1) * sizeof *t->word_starts);
    t->word_lengths = wg__alloc((size_t)(words + 1) * sizeof *t->word_lengths);
    if (!t->symbols || !t->word_starts || !t->word_lengths)
        return -1;
    for (int64_t w = 0; w < words; w++) {
        t->word_starts[w] = t->words.starts[w]; /* no more pieces than bytes */
        t->word_lengths[w] = cut(t, wg__strings_text(&t->words, w),
                                 wg__strings_length(&t->words, w), t->symbols + t->word_starts[w]);
        if (count_pairs(t, w, 1, true, -1) < 0)
            return -1;
    }
    for (int64_t p = 0; p < t->pair_count; p++)
        if (heap_push(t, p) < 0)
            return -1;
    return 0;
}

/* ---- Merging ---- */

/* The piece that two neighbours make: their texts, less the prefix of the second. */
static int32_t merged_piece(trainer *t, int32_t left, int32_t right) {
    wg__text text = {0};
    int64_t piece = -1;
    if (wg__text_append(&text, wg__strings_text(&t->pieces, left),
                        wg__strings_length(&t->pieces, left)) == 0 &&
        wg__text_append(&text, wg__strings_text(&t->pieces, right) + t->prefix,
                        wg__strings_length(&t->pieces, right) - t->prefix) == 0)
        piece = wg__strings_add(&t->pieces, text.bytes, text.length);
    wg__free(text.bytes);
    return (int32_t)piece;
}

static int note_merge(trainer *t, int32_t left, int32_t right) {
    int32_t(*merges)[2] =
        wg__grow(t->merges, t->merge_count, &t->merge_capacity, t->merge_count + 1, sizeof *merges);
    if (!merges)
        return -1;
    t->merges = merges;
    merges[t->merge_count][0] = left;
    merges[t->merge_count++][1] = right;
    return 0;
}

/* Joins every (left, right) of a word. */
static void merge_in_word(trainer *t, int64_t word, int32_t left, int32_t right, int32_t merged) {
    int32_t *symbols = t->symbols + t->word_starts[word];
    int32_t length = t->word_lengths[word], count = 0;
    for (int32_t i = 0; i < length; i++) {
        bool here = i + 1 < length && symbols[i] == left && symbols[i + 1] == right;
        symbols[count++] = here ? merged : symbols[i];
        i += here;
    }
    t->word_lengths[word] = count;
}

static bool has_pair(const trainer *t, int64_t word, int32_t left, int32_t right) {
    const int32_t *symbols = t->symbols + t->word_starts[word];
    for (int32_t i = 0; i + 1 < t->word_lengths[word]; i++)
        if (symbols[i] == left && symbols[i + 1] == right)
            return true;
    return false;
}

/* Pushes the pairs of a word that have the piece `fresh` in them: their counts may have risen. */
static int push_pairs(trainer *t, int64_t word, int32_t fresh) {
    const int32_t *symbols = t->symbols + t->word_starts[word];
    for (int32_t i = 0; i + 1 < t->word_lengths[word]; i++)
        if (symbols[i] == fresh || symbols[i + 1] == fresh) {
            int64_t number = pair_number(t, symbols[i], symbols[i + 1]);
            if (number < 0 || heap_push(t, number) < 0)
                return -1;
        }
    return 0;
}

static int merge(trainer *t, int64_t number) {
    int32_t left = t->pairs[number].left, right = t->pairs[number].right;
    int32_t merged = merged_piece(t, left, right);
    if (merged < 0 || note_merge(t, left, right) < 0)
        return -1;
    int64_t first = t->pairs[number].last_place;
    t->pairs[number].last_place = -1;
    for (int64_t p = first; p >= 0; p = t->places[p].previous) {
        int64_t word = t->places[p].word;
        if (!has_pair(t, word, left, right))
            continue;
        if (count_pairs(t, word, -1, false, merged) < 0)
            return -1;
        merge_in_word(t, word, left, right, merged);
        if (count_pairs(t, word, 1, true, merged) < 0)
            return -1;
    }
    for (int64_t p = first; p >= 0; p = t->places[p].previous)
        if (push_pairs(t, t->places[p].word, merged) < 0)
            return -1;
    return 0;
}

int wg__learn_merges(trainer *t, wg__word_cutter cut) {
    if (cut_words(t, cut) < 0)
        return -1;
    while (t->heap_count > 0 && t->pieces.count < t->most_pieces) {
        heap_entry top = heap_pop(t);
        int64_t count = t->pairs[top.pair].count;
        if (count < t->min_frequency)
            continue;
        int status = top.count == count ? merge(t, top.pair) : heap_push(t, top.pair);
        if (status < 0)
            return -1;
    }
    return 0;
}

void wg__merge_training_clear(trainer *t) {
    wg__strings_clear(&t->words);
    wg__free(t->word_counts);
    wg__strings_clear(&t->pieces);
    wg__free(t->merges);
    wg__free(t->symbols);
    wg__free(t->word_starts);
    wg__free(t->word_lengths);
    wg__pairs_clear(&t->numbers);
    wg__free(t->pairs);
    wg__free(t->places);
    wg__free(t->heap);
    *t = (trainer){0};
}
