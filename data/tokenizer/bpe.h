/* Byte-level byte-pair encoding, GPT-2's   (Sennrich et al. 2016; Radford et al. 2019,
 * section 2.2).
 *
 *     "Hello world"
 *       split by a regular expression: "Hello", " world"
 *     H e l l o   \u0120 w o r l d             bytes, each as a character that prints
 *       neighbours joined, what was learnt first before what was learnt later
 *     Hello   \u0120world
 *
 * Any text has ids, and they decode to that very text. With the published files the ids equal those
 * of openai/gpt-2's encoder.py, except for characters that Unicode assigned after the tables of one
 * of the two were made. */
#ifndef WG_DATA_TOKENIZER_BPE_H
#define WG_DATA_TOKENIZER_BPE_H

#include "tokenizer.h"

WG_BEGIN_DECLS

typedef struct wg_bpe_options {
    const char *pattern; /* by which texts are split; NULL: GPT-2's */
    bool prefix_space;   /* put a space before a text that has none there */
    bool whole_words;    /* a part that is itself a token is that token, whatever the merges say */
} wg_bpe_options;

/* A tokenizer of these tokens, spelt in GPT-2's alphabet of bytes, and of merges: pairs of ids, in
 * the order in which they were learnt. Every byte must have a token; tokens that are outside the
 * alphabet ("<|im start|>") can be special or nothing. "<|endoftext|>" and other special tokens are
 * found by their published names. All is copied. Freed with wg_tokenizer_free.
 * [FORMAT for a token that is empty, repeated or missing, a merge whose result is no token, or a
 * bad pattern] */
WG_API wg_tokenizer *wg_bpe_new(int64_t count, const char *const *tokens, int64_t merge_count,
                                const int32_t (*merges)[2], const wg_bpe_options *options);

/* Reads vocab.json (token to id) and merges.txt (two tokens a line) as GPT-2 has them; encoder.json
 * and vocab.bpe are other names of the same. Freed with wg_tokenizer_free.
 * [NOT_FOUND, IO; FORMAT with what is wrong] */
WG_API wg_tokenizer *wg_bpe_load(const char *vocabulary_path, const char *merges_path,
                                 const wg_bpe_options *options);

/* Writes these two files, each beside it first and then renamed.
 * [IO; ARGUMENT if it is no bpe tokenizer] */
WG_API int wg_bpe_save(const wg_tokenizer *tokenizer, const char *vocabulary_path,
                       const char *merges_path);

typedef struct wg_bpe_training {
    int64_t vocabulary_size; /* 0: 4096; fewer are made if the text has no more to merge */
    int64_t min_frequency;   /* a pair of pieces seen less often is not merged; 0: 2 */
    wg_bpe_options options;
} wg_bpe_training;

/* Learns a vocabulary: the 256 bytes, in the order of their characters as GPT-2 has it, then
 * merges, then "<|endoftext|>", which the size counts. Each merge joins the two neighbours that
 * occur together most often in the parts of the text; of equals the first in order of their tokens.
 * The same text gives the same vocabulary everywhere. Freed with wg_tokenizer_free. [FORMAT for
 * text that is not UTF-8, or empty; ARGUMENT for a vocabulary below 257] */
WG_API wg_tokenizer *wg_bpe_train(const char *text, int64_t length,
                                  const wg_bpe_training *training);

/* The same from text files, counted together. [also NOT_FOUND, IO] */
WG_API wg_tokenizer *wg_bpe_train_files(int count, const char *const *paths,
                                        const wg_bpe_training *training);

WG_END_DECLS

#endif
