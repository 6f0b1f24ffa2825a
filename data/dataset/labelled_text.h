/* Texts with labels, or with numbers, one example a line of a file that table.h reads:
 *
 *     sentence	label                          sentence1	sentence2	label
 *     it 's a charming journey .	1         Where is it?	It is here.	entailment
 *
 * Texts are tokenised once. */
#ifndef WG_DATA_DATASET_LABELLED_TEXT_H
#define WG_DATA_DATASET_LABELLED_TEXT_H

#include "labels.h"
#include "table.h"
#include "../batches/pair_batch.h"

typedef struct wg__labelled_text wg__labelled_text;

/* How a file is read; {0}: without changes. */
typedef struct wg__labelled_text_options {
    const char *before[2]; /* a prefix of the first and of the second text of a line; NULL: none */
    wg__table_columns columns;
    bool several; /* a label field holds any number of labels, with commas between them */
} wg__labelled_text_options;

/* Reads a file; `options` may be NULL. If `labels` is {0} it becomes the labels found, in order;
 * else there may be no others. If `labels` is NULL, the label column holds numbers. Freed with
 * wg__labelled_text_free. NULL with [as wg__table_read; FORMAT, with the line: an empty text, a
 * label that is unknown or no number, no example at all, or one label only] */
wg__labelled_text *wg__labelled_text_load(const char *path, const wg_tokenizer *tokenizer,
                                          wg__labels *labels,
                                          const wg__labelled_text_options *options);

/* Frees it; NULL is allowed. */
void wg__labelled_text_free(wg__labelled_text *text);

/* How many examples there are, and their tokens. Given NULL: 0. */
int64_t wg__labelled_text_examples(const wg__labelled_text *text);
int64_t wg__labelled_text_tokens(const wg__labelled_text *text);

/* The tokens of an example, borrowed; the number of its label; or its number. */
wg_token_pair wg__labelled_text_pair(const wg__labelled_text *text, int64_t example);
int64_t wg__labelled_text_label(const wg__labelled_text *text, int64_t example);
double wg__labelled_text_value(const wg__labelled_text *text, int64_t example);

/* Whether an example has this one of several labels. */
bool wg__labelled_text_has(const wg__labelled_text *text, int64_t example, int64_t label);

/* Identifies the examples: a resumed run must have the same. */
uint64_t wg__labelled_text_fingerprint(const wg__labelled_text *text);

/* ---- Batches ---- */

/* Owned by the scope that was open. */
typedef struct wg__labelled_batch {
    wg_pair_batch inputs;
    wg_tensor *labels; /* (B) i64; of numbers (B) f32; of several labels (B, K) f32, 0 or 1 */
} wg__labelled_batch;

/* Fills `batch` with these examples. [scope; MEMORY] */
int wg__labelled_batch_read(const wg__labelled_text *text, const wg_pair_frame *frame,
                            int64_t count, const int64_t *examples, wg__labelled_batch *batch);

#endif
