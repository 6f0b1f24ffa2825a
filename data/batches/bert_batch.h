/* Batches for BERT: masked language model and next sentence prediction
 * (Devlin et al. 2019, section 3.1 and appendix A.1, A.2; create_pretraining_data.py).
 *
 *     input_ids        [CLS] the man [MASK] to [SEP] he bought milk [SEP] [PAD]
 *     token_type_ids     0    0   0    0    0    0    1    1    1     1     0
 *     attention_mask     1    1   1    1    1    1    1    1    1     1     0
 *     masked_positions  { 3, ... } of the B * T flattened, masked_labels { went, ... }
 *
 * A document is gone through in order: sentences are gathered up to the target length (T - 3; in
 * one of ten examples a shorter one at random), the first few of them are the first segment, and
 * the second is either what follows or, in half of the examples, sentences from another document;
 * then what was not used is gone through next. 15 % of the tokens are predicted: of these, 80 % are
 * replaced by [MASK], 10 % by a random token, 10 % stay. All of it is chosen anew in every epoch.
 */
#ifndef WG_DATA_BATCHES_BERT_BATCH_H
#define WG_DATA_BATCHES_BERT_BATCH_H

#include "../dataset/dataset.h"
#include "batches.h"

WG_BEGIN_DECLS

/* B sequences of T tokens; N tokens are masked among them all. Owned by the scope that was open. */
typedef struct wg_bert_batch {
    wg_tensor *input_ids;        /* (B, T) i64 */
    wg_tensor *token_type_ids;   /* (B, T) i64: 0 up to the first [SEP] and for padding, then 1 */
    wg_tensor *attention_mask;   /* (B, T) bool: false for padding */
    wg_tensor *masked_positions; /* (N) i64, ascending, of B * T */
    wg_tensor *masked_labels;    /* (N) i64: what stood there */
    wg_tensor *next_sentence_labels; /* (B) i64: 0 it follows, 1 it is random, as published */
    int64_t tokens;                  /* without the padding */
} wg_bert_batch;

typedef struct wg_bert_batch_options {
    int64_t batch;           /* B; 0: 32 */
    int64_t sequence;        /* T; 0: 128, at least 8 */
    uint64_t seed;           /* of all choices */
    double masked_share;     /* 0: 0.15 */
    double short_share;      /* examples with a shorter target; 0: 0.1; negative: none */
    int64_t max_predictions; /* masked in one sequence at most; 0: ceil(masked_share T) */
} wg_bert_batch_options;

/* Batches (wg_bert_batch) of a text of sentences, which must outlive them, with the ids that the
 * special tokens have in `tokenizer`. [ARGUMENT for options out of range, a text of fewer than two
 * documents or of another vocabulary, or a tokenizer without [CLS], [SEP], [MASK] or [PAD]] */
WG_API wg_batches *wg_bert_batches_new(const wg_dataset *text, const wg_tokenizer *tokenizer,
                                       const wg_bert_batch_options *options);

WG_END_DECLS

#endif
