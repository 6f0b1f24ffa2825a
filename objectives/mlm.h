/* Masked language modelling on packed text, without sentence pairs   (Liu et al. 2019, "RoBERTa",
 * arXiv:1907.11692, section 4.2), and the hybrid of GPT-BERT, which also predicts the next token
 * (Charpentier & Samuel 2024, arXiv:2410.24159).
 *
 *     text        ... the man went to the shop | A new document ...
 *     a sequence  [CLS] the man [MASK] to the [SEP] a new [MASK] ...       T tokens, no padding
 *
 * In each epoch the text is cut into windows one after the other from a random offset on; a window
 * goes on behind the end of a document with [SEP]. A share of its tokens is predicted: of these
 * units 80 % are replaced by [MASK], 10 % by random tokens, and 10 % stay. The share may change
 * linearly over the run   (Warner et al. 2024; Yang et al. 2023, arXiv:2212.05650).
 *
 *     unit      what is masked together
 *     token     one token
 *     word      the tokens of a word   (whole word masking, Devlin et al. 2019)
 *     span      words next to each other, of geometric lengths   (Joshi et al. 2020, "SpanBERT")
 *
 * objective mlm      the masked token at t is predicted from hidden state t
 * objective hybrid   the masked token at t is predicted from hidden state t - 1, and in a share of
 *                    the sequences, nothing is masked, attention is causal, and every next token is
 *                    predicted. One model then fills blanks and continues texts. Which
 *                    sequences are causal depends on their places in the epoch: where the share is
 *                    a quarter, every fourth is.
 *
 * Metrics of a step and an evaluation: mlm_loss and mlm_accuracy over the masked tokens, of hybrid
 * also causal_loss; of an evaluation: `loss` (their mean, weighted by sequences) and
 * `unigram_loss`, the loss of predicting masked tokens by their frequency in the training text. */
#ifndef WG_OBJECTIVES_MLM_H
#define WG_OBJECTIVES_MLM_H

#include "objective.h"

/* B sequences of T tokens, the causal ones apart; N masked tokens are predicted. Owned by the scope
 * that was open. */
typedef struct wg__mlm_batch {
    wg_tensor *ids;           /* (B - Bc, T) i64, with masks; NULL if all are causal */
    wg_tensor *positions;     /* (N) i64, ascending, of (B - Bc) T: the hidden states to predict
                               * from */
    wg_tensor *labels;        /* (N) i64: what stood at the masked places */
    wg_tensor *causal_ids;    /* (Bc, T) i64; NULL without causal sequences */
    wg_tensor *causal_labels; /* (Bc, T) i64: the next token, WG_IGNORE_INDEX behind the last */
    int64_t tokens;           /* B T */
} wg__mlm_batch;

typedef struct wg__mlm_batch_options {
    int64_t batch;    /* B; 0: 32 */
    int64_t sequence; /* T; 0: 128, at least 8 */
    uint64_t seed;    /* of all choices */
    wg_mlm_options masking;
    bool predicts_from_before; /* positions are one before the masked ones */
} wg__mlm_batch_options;

/* Batches (wg__mlm_batch) of a text of sentences, which must outlive them. [ARGUMENT for options
 * out of range, a text shorter than a sequence or of another vocabulary, or a tokenizer without
 * [CLS], [SEP] or [MASK]] */
wg_batches *wg__mlm_batches_new(const wg_dataset *text, const wg_tokenizer *tokenizer,
                                const wg__mlm_batch_options *options);

/* Sets the share of masked tokens of the batches that follow. */
void wg__mlm_batches_set_share(wg_batches *batches, double masked_share);

#endif
