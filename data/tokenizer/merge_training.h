/* Learning merges: pairs of neighbouring pieces over the distinct words of a text, the commonest
 * joined first.
 *
 *     word      low x 5    lowest x 2    newer x 6
 *     pieces    l ##o ##w  l ##o ##w ##e ##s ##t   n ##e ##w ##e ##r
 *     pairs     (##o, ##w) 7   (##w, ##e) 8   (##e, ##r) 6 ...   each with the words it occurs in
 *     merge     ##we from ##w and ##e, the commonest pair; only its words are counted anew
 *
 * A heap holds (count, pair) entries. A pair's count only falls until a merge makes it rise again,
 * which pushes a new entry; an entry that turns out to be too high is put back with the true count
 * (so the work goes with what changes, not with the size of the text). */
#ifndef WG_DATA_TOKENIZER_MERGE_TRAINING_H
#define WG_DATA_TOKENIZER_MERGE_TRAINING_H

#include "data/tokenizer/pair_table.h"
#include "base/string_table.h"

typedef struct wg__merge_training {
    /* Set by the caller, in this order: words are counted, the first pieces are added. */
    int64_t most_pieces;   /* where learning stops */
    int64_t min_frequency; /* a pair seen less often is not joined */
    int64_t prefix; /* bytes at the beginning of a piece that go when it is joined to another */
    wg__strings words;
    int64_t *word_counts;
    wg__strings pieces; /* the first ones are the caller's */

    /* What was learnt: joined pieces at the end of `pieces`, and these pairs, in order. */
    int32_t (*merges)[2];
    int64_t merge_count;

    /* The engine's own. */
    int64_t word_count_capacity, merge_capacity;
    int32_t *symbols; /* the pieces of word w: word_lengths[w] from word_starts[w] on */
    int64_t *word_starts;
    int32_t *word_lengths; /* 0 for words that cannot be made of the first pieces */
    wg__pairs numbers;     /* (left, right) -> (number of the pair, -) */
    struct wg__counted_pair *pairs;
    int64_t pair_count, pair_capacity;
    struct wg__pair_place *places;
    int64_t place_count, place_capacity;
    struct wg__heap_entry *heap;
    int64_t heap_count, heap_capacity;
} wg__merge_training;

/* Counts one more occurrence of a word. [MEMORY] */
int wg__count_word(wg__merge_training *training, const char *word, int64_t length);

/* Writes the numbers of the first pieces that a word is made of into `symbols`, which has room for
 * as many as the word has bytes. Returns how many; 0 for a word to be left out. */
typedef int32_t (*wg__word_cutter)(const wg__merge_training *training, const char *word,
                                   int64_t length, int32_t *symbols);

/* Joins the commonest pair, of equals the first in order of the bytes of its pieces, until there
 * are enough pieces or no pair is common enough. [MEMORY] */
int wg__learn_merges(wg__merge_training *training, wg__word_cutter cut);

/* Frees all that it holds. */
void wg__merge_training_clear(wg__merge_training *training);

#endif
