/* Batches for T5: spans to be written again   (Raffel et al. 2020, arXiv:1910.10683, section 3.1.4,
 * figure 2; random_spans_noise_mask and random_spans_helper of the published code).
 *
 *     text        Thank you for inviting me to your party last week
 *     input_ids   Thank you <X> me to your party <Y> week </s>
 *     labels      <X> for inviting <Y> last <Z> </s>
 *
 * Each span that is taken out of the text leaves a sentinel, the first <extra_id_0>, the next
 * <extra_id_1>; the labels are the spans, each after its sentinel, and one more sentinel. What the
 * decoder reads is the labels one place later, after the padding token: wg_t5_loss does that.
 *
 * 15 % of a text go, in spans of 3 tokens in the mean: from both follow, for each length of a text,
 * how many tokens go and in how many spans. Where these begin and end is drawn evenly from all ways
 * to cut what goes, and what stays, into so many parts; a text begins with a part that stays and
 * ends with one that goes.
 *
 * Texts are windows of a stream, as causal_batch.h has them, as long as fills the encoder: all
 * inputs of a run have one length, and so do all labels, without padding. */
#ifndef WG_DATA_BATCHES_T5_BATCH_H
#define WG_DATA_BATCHES_T5_BATCH_H

#include "causal_batch.h"

WG_BEGIN_DECLS

/* ---- The tokens of T5 ---- */

enum { WG_T5_SENTINELS = 100 };

/* Ids beyond the tokenizer's own are those of tokens that its vocabulary lacks: </s> and padding
 * first, then 100 sentinels, of which the last id is <extra_id_0>, as in the published models. A
 * model for it has vocab_size words, or more. */
typedef struct wg_t5_tokens {
    int32_t sentinels[WG_T5_SENTINELS]; /* <extra_id_0>, <extra_id_1>.. */
    int sentinel_count;                 /* as many as the vocabulary has, or all */
    int32_t end, pad;                   /* </s>, <pad> */
    int64_t tokenizer_size, vocab_size;
} wg_t5_tokens;

/* -1 for NULL. */
WG_API int wg_t5_tokens_of(const wg_tokenizer *tokenizer, wg_t5_tokens *tokens);

/* Which sentinel an id is, or -1. */
WG_API int wg_t5_sentinel_number(const wg_t5_tokens *tokens, int32_t id);

/* Appends the ids of a text in which each "<extra_id_0>", "<extra_id_1>".., in this order, or
 * "[MASK]" is a blank, and </s>. White space before a blank is left out, as it belongs to what is
 * written there. Gives the number of blanks, or -1, when the list is as it was. [ARGUMENT for
 * blanks in another order, or more of them than sentinels but the last; as wg_tokenizer_encode] */
WG_API int wg_t5_encode_blanks(const wg_tokenizer *tokenizer, const wg_t5_tokens *tokens,
                               const char *text, wg_token_list *list);

/* The part of a target, as the model writes it, that belongs in a blank: what stands between its
 * sentinel and the next. Empty if there is none. */
WG_API wg_token_window wg_t5_answer(const wg_t5_tokens *tokens, const wg_token_list *target,
                                    int blank);

/* ---- A batch ---- */

/* Owned by the scope that was open. */
typedef struct wg_t5_batch {
    wg_tensor *input_ids; /* (B, S) i64 */
    wg_tensor *labels;    /* (B, T) i64 */
    int64_t tokens;       /* of both, B (S + T) */
} wg_t5_batch;

/* Fills `batch` with one sequence: a text without these spans, which are in the order of the text.
 * [scope; ARGUMENT for a span that is empty, overlaps or touches another, or is not in the text, or
 * for more of them than there are sentinels; MEMORY] */
WG_API int wg_t5_batch_of_spans(const wg_t5_tokens *tokens, const int32_t *text, int64_t count,
                                const wg_token_window *spans, int64_t span_count,
                                wg_t5_batch *batch);

/* ---- How long everything is ---- */

typedef struct wg_t5_lengths {
    int64_t text;            /* tokens */
    int64_t noise, spans;    /* tokens that go, in so many spans */
    int64_t inputs, targets; /* S and T: with sentinels and </s> */
} wg_t5_lengths;

/* The lengths for a text of so many tokens, at least 2: round(density text) tokens go, in
 * round(noise / mean_span) spans, halves to even; of each at least one, and one token stays. */
WG_API wg_t5_lengths wg_t5_lengths_of(int64_t text, double density, double mean_span);

/* Spans of a text of these lengths, by chance; room for lengths->spans. */
WG_API void wg_t5_draw_spans(const wg_t5_lengths *lengths, wg_generator *generator,
                             wg_token_window *spans);

/* ---- Batches of a stream ---- */

typedef struct wg_t5_batch_options {
    int64_t batch;        /* B; 0: 32 */
    int64_t sequence;     /* of inputs: S is the greatest that a text gives up to it; 0: 128, at
                           * least 8 */
    uint64_t seed;        /* of all choices */
    double noise_density; /* 0: 0.15 */
    double mean_span;     /* 0: 3 */
} wg_t5_batch_options;

/* Batches (wg_t5_batch) of a stream, which must outlive them; an example is a text. [ARGUMENT for
 * options out of range, sequences with more spans than there are sentinels, a tokenizer of another
 * vocabulary, or too short a stream; MEMORY] */
WG_API wg_batches *wg_t5_batches_new(const wg_dataset *stream, const wg_tokenizer *tokenizer,
                                     const wg_t5_batch_options *options);

/* The lengths of all of them, and the tokens that they are made of. */
WG_API wg_t5_lengths wg_t5_batches_lengths(const wg_batches *batches);
WG_API const wg_t5_tokens *wg_t5_batches_tokens(const wg_batches *batches);

WG_END_DECLS

#endif
