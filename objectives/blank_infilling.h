/* Blank infilling: spans are written token after token   (Du et al. 2022, arXiv:2103.10360, section
 * 2.1, figure 2).
 *
 *     text              x1  x2  x3  x4  x5  x6           spans: x5 x6, then x3
 *
 *                       Part A                      Part B
 *     input_ids         CLS x1  x2  [M] x4  [M]     [S] x5  x6  [S] x3
 *     position_ids       0   1   2   3   4   5       5   5   5   3   3
 *     block_position_ids 0   0   0   0   0   0       1   2   3   1   2
 *     labels                                        x5  x6  [E] x3  [E]
 *
 * Part A is the text with one mask in place of each span; Part B has the spans in random order,
 * each after a start token and followed by an end token to predict. A token of Part B has the
 * position of its mask, and its place in the span as second position; Part A's second position is
 * 0. All tokens see Part A; a token of Part B also sees the tokens before it in Part B. So the
 * attention mask depends only on the length of Part A.
 *
 * A run may mix three ways of masking a text:
 *
 *     [MASK]    spans with lengths from Poisson(3), until 15 % of the text are masked
 *     [sMASK]   whole sentences, until 15 % of the text are masked
 *     [gMASK]   the last 50 to 100 % of the text; the end token of this span is predicted only if
 *               the document ends there
 *
 * Documents are read in order, in texts of whole sentences. An evaluation always fills spans,
 * [MASK]. Its metrics:
 *
 *     loss           the mean over all targets, including the ends of blanks
 *     word_loss      the mean over targets that are words of the text
 *     unigram_loss   the loss of predicting these words by their frequency in the training text */
#ifndef WG_OBJECTIVES_BLANK_INFILLING_H
#define WG_OBJECTIVES_BLANK_INFILLING_H

#include "../data/tokenizer/kind.h"
#include "objective.h"

/* Appends Part A: [CLS] and the text, with "[MASK]", "[sMASK]" and "[gMASK]" read as masks. Where
 * the words of the vocabulary begin with their space (bpe and sentencepiece), a space before a mask
 * is part of the blank. On failure the list is as it was. [FORMAT as wg_tokenizer_encode, MEMORY]
 */
int wg__blank_encode(const wg_blank_tokens *tokens, const wg_tokenizer *tokenizer, const char *text,
                     wg_token_list *list);

/* The text with its masks replaced by `blanks`, one for each; freed with wg_text_free. [INDEX for
 * an id outside the vocabulary, MEMORY] */
char *wg__blank_filled_text(const wg_tokenizer *tokenizer, const char *text,
                            const wg_token_list *blanks);

/* ---- A batch ---- */

/* B sequences, the longest of T tokens; N tokens of Part B are to be predicted. Owned by the scope
 * that was open. */
typedef struct wg__blank_batch {
    wg_tensor *input_ids;          /* (B, T) i64 */
    wg_tensor *position_ids;       /* (B, T) i64; 0 for padding */
    wg_tensor *block_position_ids; /* (B, T) i64; 0 for padding, which ends sequences */
    wg_tensor *part_a;             /* (B) i64: the number of tokens of Part A */
    wg_tensor *target_positions;   /* (N) i64, ascending, of B * T */
    wg_tensor *labels;             /* (N) i64: the tokens to predict there */
    int64_t tokens;                /* without the padding */
} wg__blank_batch;

/* Tokens first .. end - 1 of a text. */
typedef struct wg__blank_span {
    int64_t first, end;
} wg__blank_span;

/* A sequence of a batch as a table like figure 2 of the paper: a line for each token with both
 * positions, its label and the tokens that it sees. Freed with wg_text_free. [INDEX, MEMORY] */
char *wg__blank_batch_show(const wg__blank_batch *batch, int64_t row,
                           const wg_tokenizer *tokenizer);

/* ---- Batches of a text ---- */

typedef struct wg__blank_batch_options {
    int64_t batch;       /* B; 0: 32 */
    int64_t sequence;    /* the longest text with its [CLS]: no position id is above it. A span adds
                          * two tokens to a sequence. 0: 128, at least 8 */
    uint64_t seed;       /* of all choices */
    double masked_share; /* of a text, at least; 0: 0.15 */
    double span_mean;    /* of the Poisson distribution, without its 0; 0: 3 */
    double sentence_share; /* of examples with masked sentences; an example with only one sentence
                            * has masked spans */
    double document_share; /* of examples with one span at the end; the remaining examples have
                            * masked spans */
} wg__blank_batch_options;

/* Batches (wg__blank_batch; T is a multiple of 8) of a text of sentences, which must outlive them.
 * [ARGUMENT for options out of range or a tokenizer of another vocabulary] */
wg_batches *wg__blank_batches_new(const wg_dataset *text, const wg_tokenizer *tokenizer,
                                  const wg__blank_batch_options *options);

/* ---- Writing into blanks ---- */

/* One blank. */
typedef struct wg__blank {
    wg_token_list tokens; /* owned by the caller; generated tokens are appended */
    wg_generation_end end;
} wg__blank;

typedef struct wg__blank_fill_options {
    wg_sampling sampling;
    int64_t beam;           /* hypotheses of a beam search; 0: sampling */
    double alpha;           /* the search's length penalty, as in beam.h */
    int64_t max_tokens;     /* of each blank; 0: up to the model's positions */
    wg_generator generator; /* of all draws */
    /* Called for each token as it is drawn, with the number of its blank as `text`; not in a
     * search. */
    void (*listener)(const wg_generated_token *token, void *context);
    void *listener_context;
    const volatile sig_atomic_t *stop; /* not 0: write no more. NULL: none */
} wg__blank_fill_options;

/* The number of masks among the ids. */
int64_t wg__blank_count(const wg_blank_tokens *tokens, const wg_token_list *part_a);

/* Writes into the blanks of Part A (wg__blank_encode), one for each mask. A blank gets at least one
 * token of the tokenizer, none of GLM's own, until the end token is likelier or max_tokens are
 * written. The module is in evaluation mode meanwhile, and nothing is recorded. On failure, blanks
 * may have been written. [ARGUMENT for bad options, a text without a blank or longer than the
 * model's positions, logits that are no numbers; INDEX for ids outside the model's vocabulary;
 * MEMORY] */
int wg__blank_fill(const wg_model *model, const wg_blank_tokens *tokens,
                   const wg_token_list *part_a, const wg__blank_fill_options *options,
                   wg__blank *blanks);

/* ---- Building Part A and Part B of a sequence, also for clozes. blank_batches.c ---- */

/* [ARGUMENT if the vocabulary of the model does not hold these tokens] */
int wg__blank_check_model(const char *where, const wg_model *model, const wg_blank_tokens *tokens);

/* True if the words of the vocabulary begin with the space before them (bpe, sentencepiece). */
bool wg__spaces_begin_words(const wg_tokenizer *tokenizer);

/* The first "[MASK]", "[sMASK]" or "[gMASK]" of a text; NULL: it has none. */
const char *wg__blank_find_mask(const char *text);

/* Appends a text as wg__blank_encode does, without a [CLS]. On failure the list may be longer.
 * [FORMAT as wg_tokenizer_encode, MEMORY] */
int wg__blank_encode_stretch(const wg_blank_tokens *tokens, const wg_tokenizer *tokenizer,
                             const char *text, wg_token_list *list);

/* A text and its blanks. */
typedef struct wg__blanked_text {
    const int32_t *text;
    int64_t count;
    const wg__blank_span *spans; /* in the order of Part B; none is empty or overlaps another */
    int64_t span_count;
    int32_t mask;
    bool goes_on; /* the document continues after this text: no span may learn to end here */
} wg__blanked_text;

/* A sequence under construction in an allocated batch. */
typedef struct wg__blank_row {
    int64_t *ids, *positions, *blocks; /* filled with padding */
    int64_t length;
    int64_t *target_positions, *labels; /* of the next target of the batch */
    int64_t offset;                     /* of the sequence in B * T */
} wg__blank_row;

/* Allocates a batch with `targets` targets; {0} after an error. [scope; MEMORY] */
int wg__blank_batch_allocate(const wg_blank_tokens *tokens, int64_t rows, int64_t length,
                             int64_t targets, wg__blank_batch *batch);

/* The first sequence of a batch; then each behind the one before it. */
wg__blank_row wg__blank_row_first(const wg__blank_batch *batch);
void wg__blank_row_next(wg__blank_row *row, const wg__blank_batch *batch);

/* Appends a token: in Part A, `position` is the row's length and `block` 0. */
void wg__blank_row_append(wg__blank_row *row, int64_t id, int64_t position, int64_t block);

/* Appends a span of Part B and its targets. `place` is the position of the span's mask; `ends` adds
 * the end token to the targets. */
void wg__blank_row_append_span(wg__blank_row *row, const wg_blank_tokens *tokens, int64_t place,
                               const int32_t *ids, int64_t count, bool ends);

/* Makes a batch of `rows` sequences. T is the longest length, rounded up to a multiple. [scope] */
int wg__blanked_batch(const wg_blank_tokens *tokens, int64_t rows, const wg__blanked_text *blanks,
                      int64_t multiple, wg__blank_batch *batch);

#endif
