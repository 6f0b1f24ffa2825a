/* One or two texts as a sequence for BERT, and batches of them   (Devlin et al. 2019, figure 2).
 *
 *     input_ids        [CLS] it 's a charm [SEP]  and  often moving [SEP] [PAD] [PAD]
 *     token_type_ids     0   0  0 0   0      0     1    1     1      1     0     0
 *     attention_mask     1   1  1 1   1      1     1    1     1      1     0     0
 *
 * Texts that are too long together lose tokens at their ends, always the longer one, the second
 * where they are equal, as the published code cuts them. A batch is as long as its longest. */
#ifndef WG_DATA_BATCHES_PAIR_BATCH_H
#define WG_DATA_BATCHES_PAIR_BATCH_H

#include "base/internal.h"
#include "data/tokenizer/tokenizer.h"

/* Tokens of one or two texts; borrowed. */
typedef struct wg_token_pair {
    const int32_t *first, *second; /* second NULL: there is none */
    int64_t first_count, second_count;
} wg_token_pair;

/* The pair with no more than `room` tokens, at least one of each text: see above. */
wg_token_pair wg__token_pair_cut(const wg_token_pair *pair, int64_t room);

/* B sequences of T tokens. Owned by the scope that was open. */
typedef struct wg_pair_batch {
    wg_tensor *input_ids;      /* (B, T) i64 */
    wg_tensor *token_type_ids; /* (B, T) i64: 1 for the second text and its [SEP]; NULL: all 0 */
    wg_tensor *attention_mask; /* (B, T) bool: false for padding; NULL: there is none */
    int64_t tokens;            /* without the padding */
} wg_pair_batch;

/* What stands around texts, and how long a sequence may be. */
typedef struct wg_pair_frame {
    int32_t pad_id, class_id, separator_id;
    int doubled; /* 1: two separators stand between the texts, as in RoBERTa: <s> a </s> </s> b
                  * </s>; 0: one does */
    int64_t sequence;
} wg_pair_frame;

/* 1 for a tokenizer of RoBERTa's, whose sequences begin with <s>; 0 for others. */
int wg__doubles_separators(const wg_tokenizer *tokenizer);

/* The frame that a tokenizer gives. [ARGUMENT without [CLS], [SEP] or [PAD], or for a sequence of
 * fewer than 8 tokens] */
WG__COMMAND int wg__pair_frame_of(const wg_tokenizer *tokenizer, int64_t sequence,
                                  wg_pair_frame *frame);

/* Fills `batch` with at least one pair. [scope; MEMORY] */
WG__COMMAND int wg__pair_batch_make(const wg_pair_frame *frame, int64_t count,
                                    const wg_token_pair *pairs, wg_pair_batch *batch);

/* FNV-1a over the tokens of a pair, going on from `hash`: what tells data apart. */
uint64_t wg__pair_fingerprint(uint64_t hash, const wg_token_pair *pair);

#endif
