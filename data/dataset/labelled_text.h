/* Texts with labels, or with numbers, one example a line of a file that table.h reads:
 *
 *     sentence	label                          sentence1	sentence2	label
 *     it 's a charming journey .	1         Where is it?	It is here.	entailment
 *
 * Texts are tokenised once. */
#ifndef WG_DATA_DATASET_LABELLED_TEXT_H
#define WG_DATA_DATASET_LABELLED_TEXT_H

#include "examples.h"
#include "table.h"

/* How a file is read; {0}: without changes. */
typedef struct wg__labelled_text_options {
    const char *before[2]; /* a prefix of the first and of the second text of a line; NULL: none */
    wg__table_columns columns;
    bool several; /* a label field holds any number of labels, with commas between them */
} wg__labelled_text_options;

/* Where an example's tokens are. Its second text, if there are pairs, begins at `middle`. */
typedef struct wg__labelled_example {
    int64_t first, middle, end;
    int64_t label;       /* its number; of several: where they begin in `labels` */
    int64_t label_count; /* of several */
    double value;        /* instead, of a text with numbers */
} wg__labelled_example;

/* Targets of a batch: labels (B) i64; numbers (B) f32; several labels (B, K) f32, 0 or 1. */
typedef struct wg__labelled_text {
    wg__examples base;
    wg_token_list tokens;
    wg__labelled_example *examples;
    int64_t capacity;
    int64_t *labels; /* of examples with several */
    int64_t label_count, label_capacity;
    int64_t kinds; /* of labels: K */
    bool pairs, numbers, several;
} wg__labelled_text;

/* Reads a file; `options` may be NULL. If `labels` is {0} it becomes the labels found, in order;
 * else there may be no others. If `labels` is NULL, the label column holds numbers. Freed with
 * wg__examples_free. NULL with [as wg__table_read; FORMAT, with the line: an empty text, a label
 * that is unknown or no number, no example at all, or one label only] */
wg__labelled_text *wg__labelled_text_load(const char *path, const wg_tokenizer *tokenizer,
                                          wg__labels *labels,
                                          const wg__labelled_text_options *options);

/* The tokens of an example, borrowed. */
wg_token_pair wg__labelled_text_pair(const wg__labelled_text *text, int64_t example);

/* Whether an example has this one of several labels. */
bool wg__labelled_text_has(const wg__labelled_text *text, int64_t example, int64_t label);

#endif
