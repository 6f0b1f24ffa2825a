/* Learning a SentencePiece vocabulary: BPE (Sennrich et al. 2016) or the unigram language model
 * (Kudo 2018), as in SentencePiece (Kudo & Richardson 2018).
 *
 *     "low lower  low"
 *       each word begins with U+2581; letters, digits and other characters are counted apart
 *     \u2581low x 2   \u2581lower
 *       the most frequent pair of neighbours is joined first
 *     <unk> <s> </s>   [<0x00> ... <0xFF>]   lo \u2581lo \u2581low ...   o l w \u2581 ...
 *       special        bytes, if asked for   merges in order             characters by count
 *     <unk> <s> </s>   [<0x00> ... <0xFF>]   \u2581low \u2581lower we   e l o w \u2581 ...
 *       unigram, the same words              pieces and characters, the most probable first
 *
 * A piece has at most 16 characters, all letters, all digits or all others.
 *
 * The model has SentencePiece's normaliser "identity": characters stay as they are, white space at
 * the ends of a text is removed, several spaces become one, and each text begins with a space. */
#ifndef WG_DATA_TOKENIZER_SENTENCEPIECE_TRAIN_H
#define WG_DATA_TOKENIZER_SENTENCEPIECE_TRAIN_H

#include "tokenizer.h"

WG_BEGIN_DECLS

typedef struct wg_sentencepiece_training {
    bool unigram;            /* or BPE */
    int64_t vocabulary_size; /* 0: 4096; fewer if the text has no more pieces to learn */
    int64_t min_frequency;   /* BPE: a pair of pieces seen less often is not merged; 0: 2 */
    int64_t alphabet_limit;  /* only the most frequent characters become pieces; 0: as many as make
                              * up 99.95 % of the text */
    bool byte_fallback;      /* other characters become their bytes, not <unk> */
} wg_sentencepiece_training;

/* Learns a vocabulary. <unk>, <s> and </s> have the ids 0, 1 and 2. Of equally frequent pairs the
 * first in byte order is joined; unigram.h has the steps of the other kind. Freed with
 * wg_tokenizer_free. [FORMAT for text that is not UTF-8, or has no words; ARGUMENT for a vocabulary
 * that cannot hold the characters; MEMORY] */
WG_API wg_tokenizer *wg_sentencepiece_train(const char *text, int64_t length,
                                            const wg_sentencepiece_training *training);

/* The same from text files, counted together. [also NOT_FOUND, IO] */
WG_API wg_tokenizer *wg_sentencepiece_train_files(int count, const char *const *paths,
                                                  const wg_sentencepiece_training *training);

/* Writes SentencePiece's tokenizer.model, beside it first and then renamed. [ARGUMENT for a
 * tokenizer that such a file cannot express; IO, MEMORY] */
WG_API int wg_sentencepiece_save(const wg_tokenizer *tokenizer, const char *path);

WG_END_DECLS

#endif
