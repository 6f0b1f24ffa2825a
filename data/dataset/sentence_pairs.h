/* Sentences and their translations: two files, line by line, tokenised once by one vocabulary.
 *
 *     train.de                     train.en
 *     Ein Hund läuft.              A dog runs.             pair 0
 *     Zwei Katzen schlafen.        Two cats are asleep.    pair 1
 *
 *     documents   |0       |1       |2 ...           of the token file: a document is a pair,
 *     sentences   |0   |1  |2   |3  |4 ...           of two sentences, source and target
 *
 * A line is a sentence, whatever stands in it; a last one without line break counts.
 *
 * The tokens stand in a token file (tokens.h), whatever the size of the texts, and pairs are to be
 * used from one thread at a time. What reads them fails with FORMAT if that file is damaged, and
 * with IO if the disk is. The texts are in no token file: wg_sentence_pairs_text reads them again
 * where they were. */
#ifndef WG_DATA_DATASET_SENTENCE_PAIRS_H
#define WG_DATA_DATASET_SENTENCE_PAIRS_H

#include "tokens.h"

WG_BEGIN_DECLS

typedef struct wg_sentence_pairs wg_sentence_pairs;

typedef struct wg_sentence_pairs_options {
    const wg_token_storage *storage; /* where the tokens are kept; NULL: in a temporary file */
} wg_sentence_pairs_options;

/* Reads and tokenises files: a source and its target, and so on; a token file of pairs stands for
 * both. `options` may be NULL. The tokenizer is not kept. Freed with wg_sentence_pairs_free.
 * [NOT_FOUND, IO; FORMAT for files of different line counts, a line without a word, text that is
 * not UTF-8, with file and line, and for a damaged token file; ARGUMENT for a file without its
 * other side, and for a token file of another tokenizer or without pairs; MEMORY] */
WG_API wg_sentence_pairs *wg_sentence_pairs_load(int count, const char *const *paths,
                                                 const wg_tokenizer *tokenizer,
                                                 const wg_sentence_pairs_options *options);

/* The same of two texts in memory, each closed by a NUL. They are borrowed, for
 * wg_sentence_pairs_text alone: who asks for no text may free them. */
WG_API wg_sentence_pairs *wg_sentence_pairs_from_texts(const char *source, const char *target,
                                                       const wg_tokenizer *tokenizer,
                                                       const wg_sentence_pairs_options *options);

/* Frees them; NULL is allowed. */
WG_API void wg_sentence_pairs_free(wg_sentence_pairs *pairs);

/* Splits off the last `share` of the pairs of each two texts, to be held out of training: those
 * from number (1 - share) N on, rounded down, of N. `pairs` are as they were; both parts are freed
 * with wg_sentence_pairs_free. [ARGUMENT for a share outside (0, 1), or one that leaves a part
 * empty] */
WG_API int wg_sentence_pairs_split(const wg_sentence_pairs *pairs, double share,
                                   wg_sentence_pairs **training, wg_sentence_pairs **held_out);

/* The sources of pairs are what they were loaded from, two files or a token file each: how many
 * they are, and with which pair each ends (-1 out of range). */
WG_API int64_t wg_sentence_pairs_sources(const wg_sentence_pairs *pairs);
WG_API int64_t wg_sentence_pairs_source_end(const wg_sentence_pairs *pairs, int64_t source);

/* Weights, above 0, of the sources: in which proportions batches take from them, whatever their
 * sizes; parts that are split off later have them, too. And that of one, 0 if there are none.
 * [ARGUMENT unless there are as many as sources] */
WG_API int wg_sentence_pairs_weigh(wg_sentence_pairs *pairs, int count, const double *weights);
WG_API double wg_sentence_pairs_source_weight(const wg_sentence_pairs *pairs, int64_t source);

/* How many pairs there are. Given NULL: 0. */
WG_API int64_t wg_sentence_pairs_count(const wg_sentence_pairs *pairs);

/* The size of the vocabulary that they were tokenised with. */
WG_API int64_t wg_sentence_pairs_vocabulary(const wg_sentence_pairs *pairs);

typedef enum wg_side { WG_SOURCE, WG_TARGET } wg_side;

/* How many tokens one side of pair `index` has: at least 1. -1 out of range, and with an error if
 * the file cannot be read. */
WG_API int64_t wg_sentence_pairs_length(const wg_sentence_pairs *pairs, wg_side side,
                                        int64_t index);

/* Copies these tokens into `ids`. [INDEX] */
WG_API int wg_sentence_pairs_read(const wg_sentence_pairs *pairs, wg_side side, int64_t index,
                                  int32_t *ids);

/* One side of pair `index` as text, read again from where it came; pairs that are asked for in
 * order need one pass. The caller frees it with wg_text_free. Of pairs from a token file it is the
 * file whose path was written there, and if that is gone or has changed since, there is no text:
 * then tokens are all that is left. NULL with [INDEX; STATE for a file that is gone or another one;
 * IO, MEMORY] */
WG_API char *wg_sentence_pairs_text(const wg_sentence_pairs *pairs, wg_side side, int64_t index);

/* The tokens of a side together; goes through all pairs. -1 with an error. */
WG_API int64_t wg_sentence_pairs_total(const wg_sentence_pairs *pairs, wg_side side);

/* Pairs with the same fingerprint are the same to a run (FNV-1a over their starts and ids). 0 with
 * an error. */
WG_API int64_t wg_sentence_pairs_fingerprint(const wg_sentence_pairs *pairs);

WG_END_DECLS

#endif
