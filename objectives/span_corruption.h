/* Span corruption: spans that are taken out of a text are written again   (Raffel et al. 2020,
 * arXiv:1910.10683, section 3.1.4, figure 2; random_spans_noise_mask and random_spans_helper of the
 * published code).
 *
 *     text        Thank you for inviting me to your party last week
 *     input_ids   Thank you <X> me to your party <Y> week </s>
 *     labels      <X> for inviting <Y> last <Z> </s>
 *
 * Each span that is taken out of the text leaves a sentinel, the first <extra_id_0>, the next
 * <extra_id_1>; the labels are the spans, each after its sentinel, and one more sentinel. What the
 * decoder reads is the labels one place later, after the padding token: wg_model_shift_right does
 * that.
 *
 * 15 % of a text go, in spans of 3 tokens in the mean: from both follow, for each length of a text,
 * how many tokens go and in how many spans. Where these begin and end is drawn evenly from all ways
 * to cut what goes, and what stays, into so many parts; a text begins with a part that stays and
 * ends with one that goes.
 *
 * Texts are windows of a stream, as causal_lm.h has them, as long as fills the encoder: all
 * inputs of a run have one length, and so do all labels, without padding.
 *
 * Metrics of an evaluation: `loss` (the mean over all labels), `word_loss` and `word_accuracy`
 * (over those that are tokens of the text) and `unigram_loss` (what predicting the tokens of the
 * text by their frequency in the training text would lose). */
#ifndef WG_OBJECTIVES_SPAN_CORRUPTION_H
#define WG_OBJECTIVES_SPAN_CORRUPTION_H

#include "../data/tokenizer/kind.h"
#include "causal_lm.h"

/* Appends the ids of a text in which each "<extra_id_0>", "<extra_id_1>".., in this order, or
 * "[MASK]" is a blank, and </s>. White space before a blank is left out, as it belongs to what is
 * written there. Gives the number of blanks, or -1, when the list is as it was. [ARGUMENT for
 * blanks in another order, or more of them than sentinels but the last; as wg_tokenizer_encode] */
int wg__span_encode_blanks(const wg_tokenizer *tokenizer, const wg__sentinels *tokens,
                           const char *text, wg_token_list *list);

/* The part of a target, as the model writes it, that belongs in a blank: what stands between its
 * sentinel and the next. Empty if there is none. */
wg_token_window wg__span_answer(const wg__sentinels *tokens, const wg_token_list *target,
                                int blank);

/* ---- A batch ---- */

/* Owned by the scope that was open. */
typedef struct wg__span_batch {
    wg_tensor *input_ids; /* (B, S) i64 */
    wg_tensor *labels;    /* (B, T) i64 */
    int64_t tokens;       /* of both, B (S + T) */
} wg__span_batch;

/* Fills `batch` with one sequence: a text without these spans, which are in the order of the text.
 * [scope; ARGUMENT for a span that is empty, overlaps or touches another, or is not in the text, or
 * for more of them than there are sentinels; MEMORY] */
int wg__span_batch_of_spans(const wg__sentinels *tokens, const int32_t *text, int64_t count,
                            const wg_token_window *spans, int64_t span_count,
                            wg__span_batch *batch);

/* ---- How long everything is ---- */

typedef struct wg__span_lengths {
    int64_t text;            /* tokens */
    int64_t noise, spans;    /* tokens that go, in so many spans */
    int64_t inputs, targets; /* S and T: with sentinels and </s> */
} wg__span_lengths;

/* The lengths for a text of so many tokens, at least 2: round(density text) tokens go, in
 * round(noise / mean_span) spans, halves to even; of each at least one, and one token stays. */
wg__span_lengths wg__span_lengths_of(int64_t text, double density, double mean_span);

/* Spans of a text of these lengths, by chance; room for lengths->spans. */
void wg__span_draw(const wg__span_lengths *lengths, wg_generator *generator,
                   wg_token_window *spans);

/* ---- Batches of a stream ---- */

typedef struct wg__span_batch_options {
    int64_t batch;        /* B; 0: 32 */
    int64_t sequence;     /* of inputs: S is the greatest that a text gives up to it; 0: 128, at
                           * least 8 */
    uint64_t seed;        /* of all choices */
    double noise_density; /* 0: 0.15 */
    double mean_span;     /* 0: 3 */
} wg__span_batch_options;

/* Batches (wg__span_batch) of a stream, which must outlive them; an example is a text. [ARGUMENT
 * for options out of range, sequences with more spans than there are sentinels, a tokenizer of
 * another vocabulary, or too short a stream; MEMORY] */
wg_batches *wg__span_batches_new(const wg_dataset *stream, const wg_tokenizer *tokenizer,
                                 const wg__span_batch_options *options);

/* The lengths of all of them. */
wg__span_lengths wg__span_batches_lengths(const wg_batches *batches);

/* ---- Filling blanks ---- */

/* Writes what belongs into the blanks of B texts, ids (B, S) i64 or i32 with their `keep` (B, S),
 * or NULL, in which sentinels stand, by beam search in evaluation mode and without recording. A
 * result is a target as in training: <extra_id_0>, one token of the text or more, <extra_id_1>.. up
 * to one sentinel more than the text has; nothing else can be written, and results[i].ended is
 * false for one that max_tokens cut. options: NULL for greedy search; start and end are the
 * configuration's, whatever they hold. The caller frees results[i].tokens, also after a failure.
 * Returns 0 or -1. [SHAPE, INDEX, DTYPE; ARGUMENT for a text without a blank or with more of them
 * than sentinels but the last; MEMORY] */
int wg__span_fill(const wg_model *model, const wg__sentinels *sentinels, wg_tensor *ids,
                  wg_tensor *keep, int64_t max_tokens, const wg_beam_options *options,
                  wg_beam_result *results);

#endif
