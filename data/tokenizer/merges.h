/* Byte-pair merges (Sennrich et al. 2016): applying merges to a text, and learning them from a
 * text. Used by BPE, WordPiece's training, SentencePiece and llama2.c. */
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

/* Returns the pair's slot, for the caller to write first and second until the next call. A new slot
 * has first = second = -1. left and right are 0 or more. NULL with MEMORY. */
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
 * Joins neighbours that are a pair of the table, the pair with the lowest rank first, the leftmost
 * of equal ranks, until no neighbours are a pair.
 *
 *     l o w e r     (l, o) 3   (o, w) 9   (e, r) 1       ranks from the table
 *     l o w er      (l, o) 3   (o, w) 9
 *     lo w er       (lo, w) 4
 *     low er
 */

/* Scratch memory for many calls of wg__merge. {0} is empty; `block` is freed with wg__free. */
typedef struct wg__merge_buffer {
    char *block;
    int64_t capacity;
} wg__merge_buffer;

/* Joins `count` ids in place by the table (left, right) -> (rank, joined). Ids without a pair,
 * including negative ids, stay. Short sequences are scanned; long sequences use a heap and take
 * O(n log n). Returns the number of remaining ids, or -1 with MEMORY. */
int64_t wg__merge(const wg__pair_table *merges, int32_t *ids, int64_t count,
                  wg__merge_buffer *buffer);

/* Writes the rank of each score: 0 for the best score; equal scores have equal ranks. [MEMORY] */
int wg__rank_scores(int64_t count, const double *scores, int32_t *ranks);

/* ---- Learning merges ----
 * Joins the most frequent pair of neighbouring pieces in the words of a text, again and again. Each
 * distinct word is stored once, with its count.
 *
 *     word      low x 5    lowest x 2    newer x 6
 *     pieces    l ##o ##w  l ##o ##w ##e ##s ##t   n ##e ##w ##e ##r
 *     pairs     (##o, ##w) 7   (##w, ##e) 8   (##e, ##r) 6 ...   each with a list of its words
 *     merge     ##we from ##w and ##e, the most frequent pair; only its words are recounted
 *
 * A heap has entries (count, pair). A merge may lower or raise the counts of other pairs. A raised
 * count pushes a new entry. A lowered count is found when its entry is popped, and the entry is
 * pushed again. So the time depends on the number of changes, not on the length of the text. */

typedef struct wg__merge_training {
    /* The caller sets these, counts words, then adds the initial pieces. */
    int64_t most_pieces;     /* training stops at this number of pieces */
    int64_t min_frequency;   /* rarer pairs are not joined */
    int64_t most_characters; /* of a joined piece; 0: no limit */
    int64_t prefix;          /* bytes (##) to remove from the second piece of a pair */
    wg__strings words;
    int64_t *word_counts;
    wg__strings pieces; /* first the caller's initial pieces */

    /* The result: joined pieces at the end of `pieces`, and their pairs, in order. */
    int32_t (*merges)[2];
    int64_t merge_count;

    /* Private. */
    int64_t word_count_capacity, merge_capacity;
    int32_t *symbols; /* the pieces of word w: word_lengths[w] pieces from word_starts[w] on */
    int64_t *word_starts;
    int32_t *word_lengths;  /* 0: the initial pieces cannot spell the word */
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

/* Writes the numbers of the initial pieces of a word to `symbols`, at most one per byte of the
 * word. Returns their number; 0 skips the word. */
typedef int32_t (*wg__word_splitter)(const wg__merge_training *training, const char *word,
                                     int64_t length, int32_t *symbols);

/* Joins the most frequent pair, the first in byte order of equally frequent pairs, until there are
 * most_pieces pieces or no pair is frequent enough. [MEMORY] */
int wg__learn_merges(wg__merge_training *training, wg__word_splitter split);

/* Frees all memory of the struct and zeroes it. */
void wg__merge_training_clear(wg__merge_training *training);

/* ---- The alphabet: the characters of the counted words, with their frequencies. Used by
 * WordPiece's and SentencePiece's training. ---- */

typedef struct wg__letter {
    const char *text; /* one character in UTF-8; borrowed from the alphabet's `texts` */
    int64_t count;
    bool within; /* occurs in words of several characters */
} wg__letter;

/* {0} is empty; free `letters` with wg__free and `texts` with wg__strings_clear. */
typedef struct wg__alphabet {
    wg__letter *letters; /* by frequency, the highest first; equal frequencies in byte order */
    int64_t count, capacity;
    wg__strings texts;
} wg__alphabet;

/* Fills an empty alphabet with the characters of the counted words. [MEMORY] */
int wg__alphabet_count(wg__alphabet *alphabet, const wg__merge_training *words);

/* The number of the most frequent letters that make up 99.95 % of the text. */
int64_t wg__alphabet_covering(const wg__alphabet *alphabet);

#endif
