/* WordPiece as BERT defines it   (Devlin et al. 2019; Wu et al. 2016, section 4.1).
 *
 *     "Unaffable, isn't it?"
 *       clean, lower-case, NFD without accents, split at spaces, CJK and punctuation
 *     unaffable  ,  isn  '  t  it  ?
 *       longest match from the left; pieces that continue a word begin with ##
 *     un ##aff ##able  ,  isn  '  t  it  ?
 *
 * With the published vocabularies the ids equal those of google-research/bert's tokenization.py on
 * any text, except for characters that Unicode assigned after that Python was released. */
#ifndef WG_DATA_TOKENIZER_WORDPIECE_H
#define WG_DATA_TOKENIZER_WORDPIECE_H

#include "tokenizer.h"

WG_BEGIN_DECLS

typedef struct wg_wordpiece_options {
    bool cased;              /* keep capitals and accents, as the cased models do */
    int max_word_characters; /* longer words become [UNK]; 0: 200, as published (others use 100) */
    bool huggingface;        /* fold rare characters as huggingface/tokenizers does, not as
                              * google-research/bert; a tokenizer.json means this */
} wg_wordpiece_options;

/* A tokenizer of these tokens in this order; they are copied. Freed with wg_tokenizer_free.
 * [FORMAT for an empty, repeated or non-UTF-8 token, or if [UNK] is missing] */
WG_API wg_tokenizer *wg_wordpiece_new(int64_t count, const char *const *tokens,
                                      const wg_wordpiece_options *options);

/* Reads a vocab.txt, one token a line. Freed with wg_tokenizer_free.
 * [NOT_FOUND, IO; FORMAT with the line, or if [UNK] is missing] */
WG_API wg_tokenizer *wg_wordpiece_load(const char *path, const wg_wordpiece_options *options);

/* Writes the vocabulary as a vocab.txt, beside it first and then renamed.
 * [IO; ARGUMENT if it is not a WordPiece tokenizer] */
WG_API int wg_wordpiece_save(const wg_tokenizer *tokenizer, const char *path);

/* What a vocabulary makes of the text that it was learnt from. */
typedef struct wg_wordpiece_report {
    int64_t tokens, unknown; /* of the whole text; `unknown` of them are [UNK] */
    int64_t alphabet;        /* characters that the vocabulary has */
    int64_t wanted_alphabet; /* characters that it was to have; more if it is too small for them */
    int64_t wanted_vocabulary; /* the size that holds these */
} wg_wordpiece_report;

typedef struct wg_wordpiece_training {
    int64_t vocabulary_size; /* 0: 4096; fewer if the text has no more pairs to merge */
    int64_t min_frequency;   /* a pair of pieces seen less often is not merged; 0: 2 */
    int64_t alphabet_limit;  /* only so many of the most frequent characters; 0: as many as make up
                              * 99.95 % of the text, at least 1000, as far as the vocabulary holds
                              * them */
    wg_wordpiece_options options;
    wg_wordpiece_report *report; /* is filled in; NULL: it is not wanted */
} wg_wordpiece_training;

/* Learns a vocabulary: [PAD] [UNK] [CLS] [SEP] [MASK], then the characters of the text (each as the
 * beginning of a word, and with ## if it occurs within longer words), then merges. Each merge joins
 * the most frequent pair of neighbouring pieces in the words of the text (as byte-pair encoding
 * does, Sennrich et al. 2016); of equals the first in byte order. The same text gives the same
 * vocabulary everywhere. Freed with wg_tokenizer_free. [FORMAT for text that is not UTF-8 or has no
 * words; ARGUMENT for a vocabulary that cannot hold the specials and the characters (of the default
 * alphabet: 1000 of them), saying what size can] */
WG_API wg_tokenizer *wg_wordpiece_train(const char *text, int64_t length,
                                        const wg_wordpiece_training *training);

/* The same from text files, counted together. [also NOT_FOUND, IO] */
WG_API wg_tokenizer *wg_wordpiece_train_files(int count, const char *const *paths,
                                              const wg_wordpiece_training *training);

WG_END_DECLS

#endif
