/* Masked language modelling, with next sentence prediction where the model has a head for it
 * (Devlin et al. 2019, section 3.1 and appendix A.1, A.2; create_pretraining_data.py).
 *
 *     input_ids        [CLS] the man [MASK] to [SEP] he bought milk [SEP] [PAD]
 *     token_type_ids     0    0   0    0    0    0    1    1    1     1     0
 *     attention_mask     1    1   1    1    1    1    1    1    1     1     0
 *     masked_positions  { 3, ... } of the B * T flattened, masked_labels { went, ... }
 *
 * An epoch goes through each document in order: sentences are gathered up to the target length
 * (T - 3; in one of ten examples a shorter one at random), the first few of them are the first
 * segment, and the second is either the next sentences or, in half of the examples, sentences from
 * another document; then the sentences that were not used come next. 15 % of the tokens are
 * predicted: of these, 80 % are replaced by [MASK], 10 % by a random token, 10 % stay. All choices
 * are drawn anew in every epoch.
 *
 * Metrics of a step: mlm_loss, mlm_accuracy (over masked tokens), nsp_loss, nsp_accuracy (over
 * pairs). Of an evaluation: these, their sum `loss`, `unigram_loss` (what predicting the masked
 * tokens by their frequency in the training corpus would lose) and `nsp_random` (the share of pairs
 * whose second half is random, so that always guessing the commoner answer is right in
 * max(nsp_random, 1 - nsp_random) of them). */
#ifndef WG_OBJECTIVES_MASKED_LM_H
#define WG_OBJECTIVES_MASKED_LM_H

#include "objective.h"

/* B sequences of T tokens; N tokens are masked among them all. Owned by the scope that was open. */
typedef struct wg__masked_batch {
    wg_tensor *input_ids;        /* (B, T) i64 */
    wg_tensor *token_type_ids;   /* (B, T) i64: 0 up to the first [SEP] and for padding, then 1 */
    wg_tensor *attention_mask;   /* (B, T) bool: false for padding */
    wg_tensor *masked_positions; /* (N) i64, ascending, of B * T */
    wg_tensor *masked_labels;    /* (N) i64: what stood there */
    wg_tensor *next_sentence_labels; /* (B) i64: 0 it follows, 1 it is random, as published */
    int64_t tokens;                  /* without the padding */
} wg__masked_batch;

typedef struct wg__masked_batch_options {
    int64_t batch;           /* B; 0: 32 */
    int64_t sequence;        /* T; 0: 128, at least 8 */
    uint64_t seed;           /* of all choices */
    double masked_share;     /* 0: 0.15 */
    double short_share;      /* examples with a shorter target; 0: 0.1; negative: none */
    int64_t max_predictions; /* masked in one sequence at most; 0: ceil(masked_share T) */
} wg__masked_batch_options;

/* Batches (wg__masked_batch) of a text of sentences, which must outlive them, with the ids that the
 * special tokens have in `tokenizer`. [ARGUMENT for options out of range, a text of fewer than two
 * documents or of another vocabulary, or a tokenizer without [CLS], [SEP], [MASK] or [PAD]] */
wg_batches *wg__masked_batches_new(const wg_dataset *text, const wg_tokenizer *tokenizer,
                                   const wg__masked_batch_options *options);

/* The loss of a batch and its parts. */
typedef struct wg__masked_loss {
    wg_tensor *total;               /* rank 0: mlm + nsp. The one to run backward on. */
    wg_tensor *mlm;                 /* rank 0: mean over the masked tokens of -log p(label) */
    wg_tensor *nsp;                 /* rank 0; NULL without labels or head */
    int64_t mlm_correct, mlm_count; /* right predictions and labels, if they were counted */
    int64_t nsp_correct, nsp_count;
} wg__masked_loss;

/* Takes the loss of a batch. A label of WG_IGNORE_INDEX counts for nothing; next_sentence_labels
 * may be NULL. count_correct also counts right predictions. Logits are never stored whole. 0, or -1
 * with every tensor NULL. [scope; SHAPE, INDEX, DTYPE] */
int wg__masked_lm_loss(const wg_model *model, const wg__masked_batch *batch, bool count_correct,
                       wg__masked_loss *loss);

/* Ranks the tokens for each [MASK] of a text, as the record's `fill`. from_before: the model
 * predicts a token from the hidden state one before it. [ARGUMENT for a text without [MASK]] */
int wg__fill_masks(const wg_model *model, const wg_tokenizer *tokenizer,
                   const wg_use_options *options, const char *text, bool from_before,
                   wg_filled *filled);

/* The pseudo-log-likelihood of texts, as the record's `score`. */
int wg__score_masks(const wg_model *model, const wg_tokenizer *tokenizer,
                    const wg_score_options *options, const wg_text_batch *texts, bool from_before,
                    wg_score *scores);

#endif
