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

WG_BEGIN_DECLS

typedef struct wg_labelled_text wg_labelled_text;

/* How a file is read; {0}: without changes. */
typedef struct wg_labelled_text_options {
    const char *before[2]; /* a prefix of the first and of the second text of a line; NULL: none */
} wg_labelled_text_options;

/* Reads a file; `options` may be NULL. If `labels` is {0} it becomes the labels found, in order;
 * else there may be no others. Freed with wg_labelled_text_free. NULL with [NOT_FOUND, IO, MEMORY;
 * FORMAT, with the line: not UTF-8, not two or three columns or not as many as before, an empty
 * text, a label that is unknown, no example at all, or one label only] */
WG_API wg_labelled_text *wg_labelled_text_load(const char *path, const wg_tokenizer *tokenizer,
                                               wg_labels *labels,
                                               const wg_labelled_text_options *options);

/* Frees it; NULL is allowed. */
WG_API void wg_labelled_text_free(wg_labelled_text *text);

/* How many examples there are, and their tokens. Given NULL: 0. */
WG_API int64_t wg_labelled_text_examples(const wg_labelled_text *text);
WG_API int64_t wg_labelled_text_tokens(const wg_labelled_text *text);

/* The tokens of an example, borrowed, and the number of its label. */
WG_API wg_token_pair wg_labelled_text_pair(const wg_labelled_text *text, int64_t example);
WG_API int64_t wg_labelled_text_label(const wg_labelled_text *text, int64_t example);

/* Identifies the examples: a resumed run must have the same. */
WG_API uint64_t wg_labelled_text_fingerprint(const wg_labelled_text *text);

/* ---- Batches ---- */

/* Owned by the scope that was open. */
typedef struct wg_labelled_batch {
    wg_pair_batch inputs;
    wg_tensor *labels; /* (B) i64 */
} wg_labelled_batch;

/* Fills `batch` with these examples. [scope; MEMORY] */
WG_API int wg_labelled_batch_read(const wg_labelled_text *text, const wg_pair_frame *frame,
                                  int64_t count, const int64_t *examples, wg_labelled_batch *batch);

WG_END_DECLS

#endif
