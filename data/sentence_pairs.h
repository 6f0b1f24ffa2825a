/* Sentences and their translations: two files, line by line, tokenised by one vocabulary.
 *
 *     train.de                     train.en
 *     Ein Hund läuft.              A dog runs.             pair 0
 *     Zwei Katzen schlafen.        Two cats are asleep.    pair 1
 *
 * A line is a sentence, whatever stands in it; a last one without line break counts. */
#ifndef WG_DATA_SENTENCE_PAIRS_H
#define WG_DATA_SENTENCE_PAIRS_H

#include "tokenizer.h"

typedef struct wg_sentence_pairs wg_sentence_pairs;

/* The part of the pairs that is kept, as shares of their number: [0, x) and [x, 1) have nothing in
 * common. */
typedef struct wg_sentence_pairs_options {
    double begin; /* from here on */
    double end;   /* up to here; 0: 1 */
} wg_sentence_pairs_options;

/* Reads and tokenises `count` files, an even number: a source and its target, and so on. `options`
 * may be NULL for all pairs. The tokenizer is not kept. Freed with wg_sentence_pairs_free.
 * [NOT_FOUND, IO; FORMAT for files of different line counts, a line without a word, or text that is
 * not UTF-8, with file and line; ARGUMENT for an odd number of files, or shares that leave no pair;
 * MEMORY] */
WG_API wg_sentence_pairs *wg_sentence_pairs_load(int count, const char *const *paths,
                                                 const wg_tokenizer *tokenizer,
                                                 const wg_sentence_pairs_options *options);

/* The same of two texts in memory, each closed by a NUL. */
WG_API wg_sentence_pairs *wg_sentence_pairs_from_texts(const char *source, const char *target,
                                                       const wg_tokenizer *tokenizer,
                                                       const wg_sentence_pairs_options *options);

/* Frees them; NULL is allowed. */
WG_API void wg_sentence_pairs_free(wg_sentence_pairs *pairs);

/* How many pairs there are. Given NULL: 0. */
WG_API int64_t wg_sentence_pairs_count(const wg_sentence_pairs *pairs);

/* The size of the vocabulary that they were tokenised with. */
WG_API int64_t wg_sentence_pairs_vocabulary(const wg_sentence_pairs *pairs);

typedef enum wg_side { WG_SOURCE, WG_TARGET } wg_side;

/* One side of pair `index`, in text and in tokens, of which *count tells how many they are;
 * borrowed. NULL out of range. */
WG_API const char *wg_sentence_pairs_text(const wg_sentence_pairs *pairs, wg_side side,
                                          int64_t index);
WG_API const int32_t *wg_sentence_pairs_tokens(const wg_sentence_pairs *pairs, wg_side side,
                                               int64_t index, int64_t *count);

/* The tokens of a side together. */
WG_API int64_t wg_sentence_pairs_total(const wg_sentence_pairs *pairs, wg_side side);

/* Pairs with the same fingerprint are the same to a run (FNV-1a over their ids). */
WG_API int64_t wg_sentence_pairs_fingerprint(const wg_sentence_pairs *pairs);

#endif
