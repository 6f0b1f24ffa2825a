/* The unigram language model of SentencePiece   (Kudo 2018): each piece has a log probability, and
 * of all ways to segment a text the one with the greatest sum is taken. Here are the pieces as a
 * trie, and learning them. sentencepiece.c segments texts. */
#ifndef WG_DATA_TOKENIZER_UNIGRAM_H
#define WG_DATA_TOKENIZER_UNIGRAM_H

#include <stdbool.h>

#include "data/tokenizer/merges.h"

/* The pieces as a trie. {0} has none. */
typedef struct wg__unigram {
    wg__pair_table trie;  /* (node, byte) -> (next node, the piece that ends there, or -1) */
    int32_t node_count;   /* including the root, 0 */
    double unknown_score; /* of a character that is no piece */
    double best_score;
    bool *bonus; /* user-defined pieces, which always win */
} wg__unigram;

/* Adds a piece to the trie. [MEMORY; ARGUMENT beyond 2^31 - 1 nodes] */
int wg__unigram_add(wg__unigram *model, const char *text, int64_t length, int32_t piece);

/* ---- Learning the pieces ----
 *
 *     seeds    the substrings of at most 16 characters that occur twice or more, the 20 times as
 *              many as are wanted with the greatest frequency x characters, and all characters
 *     EM       twice: how often each piece is expected in all segmentations of the words, weighted
 *              by their probability (forward and backward sums), gives its new probability
 *     pruning  a quarter of the pieces goes: those without which the likelihood of the words falls
 *              least; then EM again, until a tenth more than wanted are left
 *     end      the most probable ones, and all characters
 *
 * These are the steps of google/sentencepiece's trainer. Seeds differ in one point: a word that
 * occurs n times counts n times there, too. */

typedef struct wg__unigram_training {
    const wg__strings *words;
    const int64_t *word_counts;
    const wg__strings
        *letters; /* the characters that become pieces; words with others are left out */
    const wg__letter *counted; /* the same characters, in the same order, with their counts */
    int64_t piece_count;       /* wanted, with the characters; of a small text there are fewer */

    /* The result, the most probable piece first. */
    wg__strings pieces;
    double *scores; /* log probabilities, rounded to float as files hold them */
} wg__unigram_training;

/* Fills the result. [MEMORY] */
int wg__learn_unigram(wg__unigram_training *training);

/* Frees the result. */
void wg__unigram_training_clear(wg__unigram_training *training);

#endif
