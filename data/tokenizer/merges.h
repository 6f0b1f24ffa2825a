/* Byte-pair merges (Sennrich et al. 2016): applying them to a text, and learning them from one.
 * Used by BPE, WordPiece's training, SentencePiece and llama2.c. */
#ifndef WG_DATA_TOKENIZER_MERGES_H
#define WG_DATA_TOKENIZER_MERGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

/* ---- A hash table from pairs of numbers to pairs of numbers ----
 * Open addressing, 16 bytes a slot.
 *
 *     (left, right) -> (first, second)      merges    (left id, right id) -> (rank, joined id)
 *                                           a trie    (node, byte) -> (next node, piece)
 */

typedef struct wg__pair {
    int32_t left, right; /* left -1: the slot is free */
    int32_t first, second;
} wg__pair;

/* {0} is an empty table. */
typedef struct wg__pair_table {
    wg__pair *slots;
    uint64_t mask; /* the number of slots, a power of two, less one */
    int64_t count;
} wg__pair_table;

/* Returns the pair's slot. A new slot has first = second = -1. The caller may write first and
 * second until the next call. left and right are 0 or more. NULL with MEMORY. */
wg__pair *wg__pair_table_add(wg__pair_table *table, int32_t left, int32_t right);

/* Frees the slots and makes the table empty. */
void wg__pair_table_clear(wg__pair_table *table);

static inline uint64_t wg__pair_hash(int32_t left, int32_t right) {
    uint64_t hash = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

/* The pair's slot, or NULL. */
static inline const wg__pair *wg__pair_table_find(const wg__pair_table *table, int32_t left,
                                                  int32_t right) {
    if (table->count == 0)
        return NULL;
    for (uint64_t i = wg__pair_hash(left, right) & table->mask;; i = (i + 1) & table->mask) {
        const wg__pair *slot = &table->slots[i];
        if (slot->left == left && slot->right == right)
            return slot;
        if (slot->left < 0)
            return NULL;
    }
}

/* ---- Applying merges ----
 * Of all neighbours that are a pair of the table, the pair of the lowest rank is joined first, and
 * of equal ranks the leftmost, until no neighbours are a pair.
 *
 *     l o w e r     (l, o) 3   (o, w) 9   (e, r) 1       ranks from the table
 *     l o w er      (l, o) 3   (o, w) 9
 *     lo w er       (lo, w) 4
 *     low er
 */

/* Scratch memory that is reused from word to word. {0} is empty. */
typedef struct wg__merge_buffer {
    char *block;
    int64_t capacity;
} wg__merge_buffer;

/* Joins `count` ids in place by the table (left, right) -> (rank, joined). Ids that are in no pair,
 * including negative ones, stay. Short sequences are scanned; long ones use a heap and take
 * O(n log n). Returns the number of ids that are left, or -1 with MEMORY. */
int64_t wg__merge(const wg__pair_table *merges, int32_t *ids, int64_t count,
                  wg__merge_buffer *buffer);

void wg__merge_buffer_clear(wg__merge_buffer *buffer);

/* Writes the rank of each score: 0 for the best; equal scores have equal ranks. [MEMORY] */
int wg__rank_scores(int64_t count, const double *scores, int32_t *ranks);

/* ---- Learning merges ----
 * Of all pairs of neighbouring pieces in the distinct words of a text, the most frequent is joined
 * first.
 *
 *     word      low x 5    lowest x 2    newer x 6
 *     pieces    l ##o ##w  l ##o ##w ##e ##s ##t   n ##e ##w ##e ##r
 *     pairs     (##o, ##w) 7   (##w, ##e) 8   (##e, ##r) 6 ...   each with the words it occurs in
 *     merge     ##we from ##w and ##e, the most frequent pair; only its words are recounted
 *
 * A heap holds (count, pair) entries. A pair's count only falls until a merge raises it, which
 * pushes a new entry. An entry whose count turns out to be too high is pushed again with the true
 * count. So the work depends on the number of changes, not on the size of the text. */

typedef struct wg__merge_training {
    /* Set by the caller, in this order: words are counted, then the initial pieces are added. */
    int64_t most_pieces;     /* training stops at this number of pieces */
    int64_t min_frequency;   /* a pair seen less often is not joined */
    int64_t most_characters; /* nor one whose piece would be longer; 0: no limit */
    int64_t prefix; /* bytes that a piece loses at its beginning when it becomes a right half */
    wg__strings words;
    int64_t *word_counts;
    wg__strings pieces; /* begins with the caller's initial pieces */

    /* The result: joined pieces at the end of `pieces`, and their pairs, in order. */
    int32_t (*merges)[2];
    int64_t merge_count;

    /* Private. */
    int64_t word_count_capacity, merge_capacity;
    int32_t *symbols; /* the pieces of word w: word_lengths[w] from word_starts[w] on */
    int64_t *word_starts;
    int32_t *word_lengths;  /* 0 for words that cannot be made of the initial pieces */
    wg__pair_table numbers; /* (left, right) -> (index in `pairs`, -) */
    struct wg__counted_pair *pairs;
    int64_t pair_count, pair_capacity;
    struct wg__pair_place *places;
    int64_t place_count, place_capacity;
    struct wg__training_entry *heap;
    int64_t heap_count, heap_capacity;
} wg__merge_training;

/* Counts one more occurrence of a word. [MEMORY] */
int wg__count_word(wg__merge_training *training, const char *word, int64_t length);

/* Writes the numbers of the initial pieces of a word into `symbols`, which has room for one per
 * byte of the word. Returns how many there are; 0 leaves the word out. */
typedef int32_t (*wg__word_splitter)(const wg__merge_training *training, const char *word,
                                     int64_t length, int32_t *symbols);

/* Joins the most frequent pair (of equals the first in byte order of its pieces) until there are
 * most_pieces pieces or no pair is frequent enough. [MEMORY] */
int wg__learn_merges(wg__merge_training *training, wg__word_splitter split);

/* Frees all memory of the struct and zeroes it. */
void wg__merge_training_clear(wg__merge_training *training);

/* The characters of the words that a vocabulary is learnt from, with how often each occurs. Used by
 * WordPiece's and SentencePiece's training. */

typedef struct wg__letter {
    const char *text; /* one character in UTF-8, of the alphabet's `texts` */
    int64_t count;
    bool within; /* occurs in words of several characters */
} wg__letter;

/* {0} is empty. */
typedef struct wg__alphabet {
    wg__letter *letters; /* the most frequent first, equally frequent ones in byte order */
    int64_t count;

    /* Private. */
    wg__strings texts;
    int64_t capacity;
} wg__alphabet;

/* Fills an empty alphabet with the characters of the words that were counted. [MEMORY] */
int wg__alphabet_count(wg__alphabet *alphabet, const wg__merge_training *words);

/* How many letters, the most frequent first, make up 99.95 % of the text. */
int64_t wg__alphabet_covering(const wg__alphabet *alphabet);

/* Frees the letters and makes the alphabet empty. */
void wg__alphabet_clear(wg__alphabet *alphabet);

#endif
