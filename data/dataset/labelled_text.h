/* Texts with labels, one example a line, tab-separated as GLUE's:
 *
 *     sentence	label                          sentence1	sentence2	label
 *     it 's a charming journey .	1         Where is it?	It is here.	entailment
 *
 * The label is the last column. A first line whose last column is "label" is a header; nothing is
 * quoted; empty lines are skipped, and a line may end in CR LF. Texts are tokenised once. */
#ifndef WG_DATA_DATASET_LABELLED_TEXT_H
#define WG_DATA_DATASET_LABELLED_TEXT_H

#include "labels.h"
#include "../batches/pair_batch.h"

typedef struct wg__labelled_text wg__labelled_text;

/* How a file is read; {0}: without changes. */
typedef struct wg__labelled_text_options {
    const char *before[2]; /* a prefix of the first and of the second text of a line; NULL: none */
} wg__labelled_text_options;

/* Reads a file; `options` may be NULL. If `labels` is {0} it becomes the labels found, in order;
 * else there may be no others. Freed with wg__labelled_text_free. NULL with [NOT_FOUND, IO, MEMORY;
 * FORMAT, with the line: not UTF-8, not two or three columns or not as many as before, an empty
 * text, a label that is unknown, no example at all, or one label only] */
wg__labelled_text *wg__labelled_text_load(const char *path, const wg_tokenizer *tokenizer,
                                          wg__labels *labels,
                                          const wg__labelled_text_options *options);

/* Frees it; NULL is allowed. */
void wg__labelled_text_free(wg__labelled_text *text);

/* How many examples there are, and their tokens. Given NULL: 0. */
int64_t wg__labelled_text_examples(const wg__labelled_text *text);
int64_t wg__labelled_text_tokens(const wg__labelled_text *text);

/* The tokens of an example, borrowed, and the number of its label. */
wg_token_pair wg__labelled_text_pair(const wg__labelled_text *text, int64_t example);
int64_t wg__labelled_text_label(const wg__labelled_text *text, int64_t example);

/* Identifies the examples: a resumed run must have the same. */
uint64_t wg__labelled_text_fingerprint(const wg__labelled_text *text);

/* ---- Batches ---- */

/* Owned by the scope that was open. */
typedef struct wg__labelled_batch {
    wg_pair_batch inputs;
    wg_tensor *labels; /* (B) i64 */
} wg__labelled_batch;

/* Fills `batch` with these examples. [scope; MEMORY] */
int wg__labelled_batch_read(const wg__labelled_text *text, const wg_pair_frame *frame,
                            int64_t count, const int64_t *examples, wg__labelled_batch *batch);

#endif
