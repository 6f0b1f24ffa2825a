/* The characters of the words that a vocabulary is learnt from, with how often each occurs. Used by
 * WordPiece's and SentencePiece's training. */
#ifndef WG_DATA_TOKENIZER_ALPHABET_H
#define WG_DATA_TOKENIZER_ALPHABET_H

#include <stdbool.h>

#include "data/tokenizer/merges.h"

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
