/* The unigram language model   (Kudo 2018): of all ways to cut a text into pieces, the one whose
 * pieces' log probabilities add up to the most, found from left to right (Viterbi). */
#ifndef WG_DATA_TOKENIZER_UNIGRAM_H
#define WG_DATA_TOKENIZER_UNIGRAM_H

#include <stdbool.h>

#include "base/array.h"
#include "data/tokenizer/pair_table.h"

typedef struct wg__unigram {
    wg__pairs trie;       /* (node, byte) -> (next node, the piece that ends there, or -1) */
    int32_t node_count;   /* the root, 0, included */
    const double *scores; /* of pieces; borrowed */
    const bool *bonus;    /* pieces that are always taken; borrowed */
    double unknown_score; /* of a character that is no piece */
    double best_score;
    bool single; /* sums are rounded to float, as SentencePiece's are */
} wg__unigram;

/* Where the best way to the end of some bytes came from. */
typedef struct wg__unigram_node {
    int32_t piece; /* the last; -1: an unknown character */
    int32_t start; /* -1: no way leads here */
    double score;
} wg__unigram_node;

/* Adds a piece. [MEMORY] */
int wg__unigram_add(wg__unigram *model, const char *text, int64_t length, int32_t piece);

/* Cuts a UTF-8 text of at most 2^31 - 2 bytes: node i of `nodes`, which has room for length + 1, is
 * then the last piece of the best way through the first i bytes. */
void wg__unigram_cut(const wg__unigram *model, const char *text, int64_t length,
                     wg__unigram_node *nodes);

#endif
