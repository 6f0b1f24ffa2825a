/* What GLM's batches and a cloze share: sequences in the making, and text with masks in it. */
#ifndef WG_DATA_BATCHES_GLM_PARTS_H
#define WG_DATA_BATCHES_GLM_PARTS_H

#include "data/batches/glm_batch.h"

/* ---- Sequences ---- */

/* A text and what is blank in it. */
typedef struct wg__glm_blanks {
    const int32_t *text;
    int64_t count;
    const wg_glm_span *spans; /* in the order of Part B; none overlaps another */
    int64_t span_count;
    int32_t mask;
    bool goes_on; /* the document, after this text: that a span ends here is not to be learned */
} wg__glm_blanks;

/* A sequence in the making, of a batch that is allocated: what it is put together from. */
typedef struct wg__glm_row {
    int64_t *ids, *positions, *blocks; /* filled with padding */
    int64_t length;
    int64_t *target_positions, *labels; /* of the next target of the batch */
    int64_t offset;                     /* of the sequence in B * T */
} wg__glm_row;

/* Allocates a batch of so many targets. [scope; MEMORY, when it is {0}] */
int wg__glm_batch_allocate(const wg_glm_tokens *tokens, int64_t rows, int64_t length,
                           int64_t targets, wg_glm_batch *batch);

/* The first sequence of a batch; then each behind the one before it. */
wg__glm_row wg__glm_row_first(const wg_glm_batch *batch);
void wg__glm_row_next(wg__glm_row *row, const wg_glm_batch *batch);

/* Appends a token of Part A. */
void wg__glm_row_put(wg__glm_row *row, int64_t id);

/* Appends a span of Part B whose mask stands at `place`, and its targets; `ends`: its end, too, is
 * to be predicted. */
void wg__glm_row_put_span(wg__glm_row *row, const wg_glm_tokens *tokens, int64_t place,
                          const int32_t *ids, int64_t count, bool ends);

/* Makes a batch of so many sequences, as long as the longest, rounded up to a multiple. [scope] */
int wg__glm_blanks_batch(const wg_glm_tokens *tokens, int64_t rows, const wg__glm_blanks *blanks,
                         int64_t multiple, wg_glm_batch *batch);

/* ---- Text with masks in it ---- */

/* True if the words of the vocabulary begin with the space before them (bpe, sentencepiece). */
bool wg__spaces_begin_words(const wg_tokenizer *tokenizer);

/* Where the first "[MASK]", "[sMASK]" or "[gMASK]" of a text begins; NULL: it has none. */
const char *wg__glm_find_mask(const char *text);

/* Appends a text as wg_glm_encode does, without a [CLS]. On failure the list may be longer.
 * [FORMAT as wg_tokenizer_encode, MEMORY] */
int wg__glm_encode_stretch(const wg_glm_tokens *tokens, const wg_tokenizer *tokenizer,
                           const char *text, wg_token_list *list);

#endif
