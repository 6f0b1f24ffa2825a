/* Tokens that an objective adds to a vocabulary: masks and marks of blanks, sentinels of spans.
 *
 * A token that the tokenizer has keeps its id; one that it lacks gets an id beyond the tokenizer's
 * own, as in the published code: a model for it has vocab_size words, or more. */
#ifndef WG_DATA_TOKENIZER_ADDED_TOKENS_H
#define WG_DATA_TOKENIZER_ADDED_TOKENS_H

#include "tokenizer.h"

/* ---- Blanks   (Du et al. 2022) ---- */

/* Ids beyond the tokenizer's own are those of tokens that its vocabulary lacks, as in the published
 * code: a model for it has vocab_size words, or more. */
typedef struct wg_blank_tokens {
    int32_t mask, sentence_mask, document_mask; /* [MASK], [sMASK], [gMASK] */
    int32_t start, end; /* <|startofpiece|>, <|endofpiece|>: [S] and [E] of the paper */
    int32_t beginning;  /* [CLS], before every text */
    int32_t pad;        /* [PAD], or, as nobody sees it, `end` */
    int64_t tokenizer_size, vocab_size;
} wg_blank_tokens;

/* -1 for NULL. */
int wg__blank_tokens_of(const wg_tokenizer *tokenizer, wg_blank_tokens *tokens);

/* True for [MASK], [sMASK] and [gMASK]. */
bool wg__blank_is_mask(const wg_blank_tokens *tokens, int32_t id);

/* ---- Sentinels of spans   (Raffel et al. 2020) ---- */

enum { WG_SENTINELS = 100 };

/* Ids beyond the tokenizer's own are those of tokens that its vocabulary lacks: </s> and padding
 * first, then 100 sentinels, of which the last id is <extra_id_0>, as in the published models. A
 * model for it has vocab_size words, or more. */
typedef struct wg__sentinels {
    int32_t sentinels[WG_SENTINELS]; /* <extra_id_0>, <extra_id_1>.. */
    int sentinel_count;              /* as many as the vocabulary has, or all */
    int32_t end, pad;                /* </s>, <pad> */
    int64_t tokenizer_size, vocab_size;
} wg__sentinels;

/* -1 for NULL. */
int wg__sentinels_of(const wg_tokenizer *tokenizer, wg__sentinels *tokens);

/* Which sentinel an id is, or -1. */
int wg__sentinel_number(const wg__sentinels *tokens, int32_t id);

/* ---- Sentences and their translations ---- */

/* The tokens around a sentence. */
typedef struct wg__translation_tokens {
    int32_t start; /* the decoder's first */
    int32_t end;   /* of source and target */
    int32_t pad;   /* -1: `end` stands where nothing counts */
} wg__translation_tokens;

/* Those of a tokenizer: its begin and its end of a text, which may be one token (GPT-2's
 * <|endoftext|>), or BERT's [CLS] and [SEP]. [ARGUMENT if it has no such tokens] */
int wg__translation_tokens_of(const wg_tokenizer *tokenizer, wg__translation_tokens *tokens);

#endif
