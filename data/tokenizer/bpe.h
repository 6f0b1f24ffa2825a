/* Byte-level byte-pair encoding, GPT-2's   (Sennrich et al. 2016; Radford et al. 2019,
 * section 2.2).
 *
 *     "Hello world"
 *       split by a regular expression: "Hello", " world"
 *     H e l l o   \u0120 w o r l d             bytes, each as a character that prints
 *       neighbours joined, the pairs that were learnt first before the later ones
 *     Hello   \u0120world
 *
 * Any text has ids, and they decode to exactly that text. With the published files the ids equal
 * those of openai/gpt-2's encoder.py, except for characters that only one of the two Unicode tables
 * knows. wg_tokenizer_load reads vocab.json with merges.txt, and wg_tokenizer_export writes them.
 */
#ifndef WG_DATA_TOKENIZER_BPE_H
#define WG_DATA_TOKENIZER_BPE_H

#include "tokenizer.h"

WG_BEGIN_DECLS

typedef struct wg_bpe_options {
    const char *pattern; /* the regular expression that splits texts; NULL: GPT-2's */
    bool prefix_space;   /* put a space before a text that does not begin with one */
    bool whole_words;    /* a part that equals a token is that token, whatever the merges are */
} wg_bpe_options;

typedef struct wg_bpe_training {
    int64_t vocabulary_size; /* 0: 4096; fewer if the text has no more pairs to merge */
    int64_t min_frequency;   /* a pair of pieces seen less often is not merged; 0: 2 */
    wg_bpe_options options;
} wg_bpe_training;

/* Learns a vocabulary: the 256 bytes, in the order of their characters as in GPT-2's, then merges,
 * then
 * "<|endoftext|>", which vocabulary_size counts. Each merge joins the most frequent pair of
 * neighbours in the parts of the text; of equals the first in order of their tokens. The same text
 * gives the same vocabulary everywhere. Freed with wg_tokenizer_free. [FORMAT for text that is not
 * UTF-8, or empty; ARGUMENT for a vocabulary below 257] */
WG_API wg_tokenizer *wg_bpe_train(const char *text, int64_t length,
                                  const wg_bpe_training *training);

/* The same from text files, counted together. [also NOT_FOUND, IO] */
WG_API wg_tokenizer *wg_bpe_train_files(int count, const char *const *paths,
                                        const wg_bpe_training *training);

WG_END_DECLS

#endif
