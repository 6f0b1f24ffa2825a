/* Masked language modelling: some tokens are hidden and predicted   (Devlin et al. 2019,
 * section 3.1 and appendix A.1, A.2; create_pretraining_data.py). Two plans say how a text becomes
 * sequences.
 *
 * Pairs, of objective masked-lm (masked_pairs.c): sentences, with next sentence prediction where
 * the model has a head for it.
 *
 *     ids              [CLS] the man [MASK] to [SEP] he bought milk [SEP] [PAD]
 *     token_type_ids     0   0   0    0    0    0    1    1    1     1     0
 *     keep               1   1   1    1    1    1    1    1    1     1     0
 *     positions        { 3, ... } of the B * T flattened, labels { went, ... }
 *
 * An epoch goes through each document in order. An example gathers sentences up to a target length:
 * T - 3, or, in one of ten examples, a random shorter length. The first few sentences are the first
 * segment. The second segment has the remaining sentences or, in half of the examples, sentences of
 * another document; the document then goes on with its unused sentences. 15 % of the tokens are
 * predicted: of these, 80 % are replaced by [MASK], 10 % by a random token, 10 % stay. All choices
 * are drawn anew in every epoch.
 *
 * Packed text, of mlm and hybrid (masked_packed.c)   (Liu et al. 2019, "RoBERTa", arXiv:1907.11692,
 * section 4.2):
 *
 *     text        ... the man went to the shop | A new document ...
 *     ids         [CLS] the man [MASK] to the [SEP] a new [MASK] ...       T tokens, no padding
 *
 * Each epoch cuts the text into consecutive windows from a random offset on; where a document ends
 * within a window, the window has [SEP] and goes on with the next document. A share of the tokens
 * is predicted: of their units 80 % are replaced by [MASK], 10 % by random tokens, and 10 % stay.
 * The share may change linearly over the run   (Warner et al. 2024; Yang et al. 2023,
 * arXiv:2212.05650).
 *
 *     unit      tokens masked together
 *     token     one token
 *     word      the tokens of a word   (whole word masking, Devlin et al. 2019)
 *     span      words next to each other, of geometric lengths   (Joshi et al. 2020, "SpanBERT")
 *
 * objective mlm      the masked token at t is predicted from hidden state t
 * objective hybrid   the masked token at t is predicted from hidden state t - 1, and in a share of
 *                    the sequences, nothing is masked, attention is causal, and every next token is
 *                    predicted. One model then fills blanks and continues texts. Which
 *                    sequences are causal depends on their places in the epoch: where the share is
 *                    a quarter, every fourth is   (GPT-BERT, Charpentier & Samuel 2024,
 *                    arXiv:2410.24159).
 *
 * Metrics of a step:
 *
 *     mlm_loss, mlm_accuracy    over masked tokens
 *     nsp_loss, nsp_accuracy    over pairs
 *     causal_loss               hybrid, over the tokens of causal sequences
 *
 * An evaluation has these and:
 *
 *     unigram_loss   the loss of predicting masked tokens by their frequency in the training corpus
 *     nsp_random     the share of pairs with a random second segment; always guessing the commoner
 *                    answer has the accuracy max(nsp_random, 1 - nsp_random)
 *     loss           pairs: mlm_loss + nsp_loss; hybrid: the mean of mlm_loss and causal_loss,
 *                    weighted by sequences */
#ifndef WG_OBJECTIVES_MASKED_LM_H
#define WG_OBJECTIVES_MASKED_LM_H

#include "objective.h"

/* B sequences of T tokens, Bc of them causal; N masked tokens are predicted. Owned by the scope
 * that was open. */
typedef struct wg__masked_batch {
    wg_tensor *ids;       /* (B - Bc, T) i64, with masks; NULL if all are causal */
    wg_tensor *positions; /* (N) i64, ascending, of (B - Bc) T: the hidden states to predict
                           * from */
    wg_tensor *labels;    /* (N) i64: the tokens that were masked */
    /* Of pairs. */
    wg_tensor *token_type_ids; /* (B, T) i64: 0 up to the first [SEP] and for padding, else 1 */
    wg_tensor *keep;           /* (B, T) bool: false for padding */
    wg_tensor *next_sentence_labels; /* (B) i64: 0 it follows, 1 it is random, as published */
    /* Of hybrid; NULL without causal sequences. */
    wg_tensor *causal_ids;    /* (Bc, T) i64 */
    wg_tensor *causal_labels; /* (Bc, T) i64: the next token */
    int64_t tokens;           /* without the padding */
} wg__masked_batch;

typedef struct wg__pair_batch_options {
    int64_t batch;      /* B; 0: 32 */
    int64_t sequence;   /* T; 0: 128, at least 8 */
    uint64_t seed;      /* of all choices */
    double short_share; /* examples with a shorter target; 0: 0.1; negative: none */
} wg__pair_batch_options;

/* Batches (wg__masked_batch) of a text of sentences, which must outlive them. [ARGUMENT for options
 * out of range, a text of fewer than two documents or of another vocabulary, or a tokenizer without
 * [CLS], [SEP], [MASK] or [PAD]] */
wg_batches *wg__pair_batches_new(const wg_dataset *text, const wg_tokenizer *tokenizer,
                                 const wg__pair_batch_options *options);

typedef struct wg__packed_batch_options {
    int64_t batch;    /* B; 0: 32 */
    int64_t sequence; /* T; 0: 128, at least 8 */
    uint64_t seed;    /* of all choices */
    wg_mlm_options masking;
    bool predicts_from_before; /* positions are one before the masked ones */
} wg__packed_batch_options;

/* The same of packed text. [ARGUMENT for options out of range, a text shorter than a sequence or of
 * another vocabulary, or a tokenizer without [CLS], [SEP] or [MASK]] */
wg_batches *wg__packed_batches_new(const wg_dataset *text, const wg_tokenizer *tokenizer,
                                   const wg__packed_batch_options *options);

/* Sets the share of masked tokens of the packed batches that follow. */
void wg__packed_batches_set_share(wg_batches *batches, double masked_share);

/* The name of a wg_mask_unit; NULL: there is none. */
const char *wg__mask_unit_name(int unit);

/* The losses of a batch: of the masked words, and of the next sentences of pairs or the next tokens
 * of causal sequences. Their means are over different numbers of labels. */
typedef struct wg__masked_loss {
    wg_tensor *parts[2]; /* rank 0: the mean of -log p(label). NULL: there is none */
    int64_t correct[2];  /* right predictions, but of next tokens */
    int64_t count[2];    /* labels */
} wg__masked_loss;

/* Computes the losses of a batch, its sequences cut into `sequence_parts` parts. A label of
 * WG_IGNORE_INDEX counts for nothing; next_sentence_labels may be NULL. Logits are never stored
 * whole. 0, or -1 with every tensor NULL. [scope; SHAPE, INDEX, DTYPE] */
int wg__masked_loss_of(const wg_model *model, const wg__masked_batch *batch, int64_t sequence_parts,
                       wg__masked_loss *loss);

#endif
