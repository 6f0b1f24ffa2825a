/* Span corruption: spans are taken out of a text and written again   (Raffel et al. 2020,
 * arXiv:1910.10683, section 3.1.4, figure 2; random_spans_noise_mask and random_spans_helper of the
 * published code).
 *
 *     text        Thank you for inviting me to your party last week
 *     input_ids   Thank you <X> me to your party <Y> week </s>
 *     labels      <X> for inviting <Y> last <Z> </s>
 *
 * Each span leaves a sentinel, the first <extra_id_0>, the next <extra_id_1>; the labels are the
 * spans, each after its sentinel, and one more sentinel. The decoder reads the labels one place
 * later, after the padding token (wg_model_shift_right).
 *
 * 15 % of the tokens are removed (the noise), in spans of 3 tokens in the mean; the length of a
 * text decides the number of noise tokens and of spans. Noise and kept tokens are both cut into so
 * many parts, all cuts being equally likely; a text begins with a kept part and ends with a span.
 *
 * Texts are windows of a stream, as in causal_lm.h, as long as fills the encoder: all inputs of a
 * run have one length, and all labels another, without padding.
 *
 * Metrics of an evaluation:
 *
 *     loss                       the mean over all labels
 *     word_loss, word_accuracy   over labels that are tokens of the text
 *     unigram_loss               the loss of predicting tokens by their frequency in the training
 *                                text */
#ifndef WG_OBJECTIVES_SPAN_CORRUPTION_H
#define WG_OBJECTIVES_SPAN_CORRUPTION_H

#include "../data/tokenizer/kind.h"
#include "causal_lm.h"

/* Appends the ids of a text and </s>; each "<extra_id_0>", "<extra_id_1>".., in this order, or
 * "[MASK]" is a blank. White space before a blank belongs to the blank. Gives the number of blanks,
 * or -1, when the list is as it was. [ARGUMENT for blanks in another order, or more of them than
 * sentinels but the last; as wg_tokenizer_encode] */
int wg__span_encode_blanks(const wg_tokenizer *tokenizer, const wg__sentinels *tokens,
                           const char *text, wg_token_list *list);

/* The tokens of a target between the sentinel of a blank and the next; empty if there is none. */
wg_token_window wg__span_answer(const wg__sentinels *tokens, const wg_token_list *target,
                                int blank);

/* ---- A batch ---- */

/* Owned by the scope that was open. */
typedef struct wg__span_batch {
    wg_tensor *input_ids; /* (B, S) i64 */
    wg_tensor *labels;    /* (B, T) i64 */
    int64_t tokens;       /* of both, B (S + T) */
} wg__span_batch;

/* Fills `batch` with one sequence: a text without these spans, in order. Two spans do not touch.
 * There are fewer spans than sentinels. [scope; MEMORY] */
int wg__span_batch_of_spans(const wg__sentinels *tokens, const int32_t *text, int64_t count,
                            const wg_token_window *spans, int64_t span_count,
                            wg__span_batch *batch);

/* ---- How long everything is ---- */

typedef struct wg__span_lengths {
    int64_t text;            /* tokens */
    int64_t noise, spans;    /* tokens to remove, and the number of spans */
    int64_t inputs, targets; /* S and T: with sentinels and </s> */
} wg__span_lengths;

/* The lengths for a text of 2 tokens or more: noise = round(density text), spans = round(noise /
 * mean_span), halves to even; both are at least 1, and at least one token stays. */
wg__span_lengths wg__span_lengths_of(int64_t text, double density, double mean_span);

/* Draws spans of a text of these lengths; room for lengths->spans. */
void wg__span_draw(const wg__span_lengths *lengths, wg_generator *generator,
                   wg_token_window *spans);

/* ---- Batches of a stream ---- */

typedef struct wg__span_batch_options {
    int64_t batch;        /* B; 0: 32 */
    int64_t sequence;     /* of inputs: S is the greatest that a text gives up to it; 0: 128, at
                           * least 8 */
    uint64_t seed;        /* of all choices */
} wg__span_batch_options;

/* Batches (wg__span_batch) of a stream, which must outlive them; an example is a text. [ARGUMENT
 * for options out of range, sequences with more spans than there are sentinels, a tokenizer of
 * another vocabulary, or too short a stream; MEMORY] */
wg_batches *wg__span_batches_new(const wg_dataset *stream, const wg_tokenizer *tokenizer,
                                 const wg__span_batch_options *options);

wg__span_lengths wg__span_batches_lengths(const wg_batches *batches);

/* ---- Filling blanks ---- */

/* Fills the blanks of B texts, ids (B, S) i64 or i32 with sentinels, `keep` (B, S) or NULL, by beam
 * search in evaluation mode and without recording. A result is a target as in training:
 * <extra_id_0>, one token of the text or more, <extra_id_1>.. up to one sentinel more than the text
 * has; results[i].ended is false for one that max_tokens cut. options: NULL for greedy search;
 * start and end are the configuration's. The caller frees results[i].tokens, also after a failure.
 * [SHAPE, INDEX, DTYPE; ARGUMENT for a text without a blank or with more of them than sentinels but
 * the last; MEMORY] */
int wg__span_fill(const wg_model *model, const wg__sentinels *sentinels, wg_tensor *ids,
                  wg_tensor *keep, int64_t max_tokens, const wg_beam_options *options,
                  wg_beam_result *results);

#endif
