/* What blank infilling and clozes share: Part A and Part B of sequences in the making. */
#ifndef WG_OBJECTIVES_BLANK_BATCHES_H
#define WG_OBJECTIVES_BLANK_BATCHES_H

#include "objectives/blank_infilling.h"

/* -1 with ARGUMENT if the vocabulary of the model does not hold these tokens. */
int wg__blank_check_model(const char *where, const wg_model *model, const wg_blank_tokens *tokens);

/* True if the words of the vocabulary begin with the space before them (bpe, sentencepiece). */
bool wg__spaces_begin_words(const wg_tokenizer *tokenizer);

/* Where the first "[MASK]", "[sMASK]" or "[gMASK]" of a text begins; NULL: it has none. */
const char *wg__blank_find_mask(const char *text);

/* Appends a text as wg__blank_encode does, without a [CLS]. On failure the list may be longer.
 * [FORMAT as wg_tokenizer_encode, MEMORY] */
int wg__blank_encode_stretch(const wg_blank_tokens *tokens, const wg_tokenizer *tokenizer,
                             const char *text, wg_token_list *list);

/* A text and what is blank in it. */
typedef struct wg__blanked_text {
    const int32_t *text;
    int64_t count;
    const wg__blank_span *spans; /* in the order of Part B; none overlaps another */
    int64_t span_count;
    int32_t mask;
    bool goes_on; /* the document, after this text: that a span ends here is not to be learned */
} wg__blanked_text;

/* A sequence in the making, of a batch that is allocated: what it is put together from. */
typedef struct wg__blank_row {
    int64_t *ids, *positions, *blocks; /* filled with padding */
    int64_t length;
    int64_t *target_positions, *labels; /* of the next target of the batch */
    int64_t offset;                     /* of the sequence in B * T */
} wg__blank_row;

/* Allocates a batch of so many targets. [scope; MEMORY, when it is {0}] */
int wg__blank_batch_allocate(const wg_blank_tokens *tokens, int64_t rows, int64_t length,
                             int64_t targets, wg__blank_batch *batch);

/* The first sequence of a batch; then each behind the one before it. */
wg__blank_row wg__blank_row_first(const wg__blank_batch *batch);
void wg__blank_row_next(wg__blank_row *row, const wg__blank_batch *batch);

/* Appends a token of Part A. */
void wg__blank_row_put(wg__blank_row *row, int64_t id);

/* Appends a span of Part B whose mask stands at `place`, and its targets; `ends`: its end, too, is
 * to be predicted. */
void wg__blank_row_put_span(wg__blank_row *row, const wg_blank_tokens *tokens, int64_t place,
                            const int32_t *ids, int64_t count, bool ends);

/* Makes a batch of so many sequences, as long as the longest, rounded up to a multiple. [scope] */
int wg__blanked_batch(const wg_blank_tokens *tokens, int64_t rows, const wg__blanked_text *blanks,
                      int64_t multiple, wg__blank_batch *batch);

#endif
