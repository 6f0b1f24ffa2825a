/* Labels told by filling a blank: patterns and verbalizers   (Schick & Schütze 2021,
 * arXiv:2001.07676; for GLM Du et al. 2022, arXiv:2103.10360, section 2.3).
 *
 *     pattern       {text} It was [MASK] .          verbalizers   no = bad   yes = a gem
 *
 *                       Part A                               Part B
 *     input_ids         CLS so odd . It was [M] .    [S] bad     [S] a   gem
 *     position_ids       0  1  2   3 4  5   6   7     6  6        6  6   6
 *     block_position_ids 0  0  0   0 0  0   0   0     1  2        1  2   3
 *     targets                                        bad [E]      a  gem [E]
 *     labels                                          0   0       1  1   1
 *
 * A text is put into the pattern, whose blank every verbalizer is then tried in: each is a span of
 * Part B that sees all of Part A and what is before it in the span, but none of the others, as if
 * it were alone. So Part A is gone through once, however many labels there are.
 *
 * What a label scores is the log probability that the blank holds its verbalizer and nothing more:
 * the sum over the span's targets, its end token among them. With the end, verbalizers of any
 * length can be held against each other, also where one begins with another. */
#ifndef WG_OBJECTIVES_CLOZE_H
#define WG_OBJECTIVES_CLOZE_H

#include "../data/dataset/examples.h"
#include "blank_infilling.h"

typedef struct wg__cloze wg__cloze;

/* A pattern has one blank ("[MASK]", or "[sMASK]" or "[gMASK]") and a place for each text of an
 * example: "{text}" for one, "{text_a}" and "{text_b}" for two, in any order. verbalizers[i] says
 * what the blank holds if the label is labels[i], of which there are two or more; in the cloze,
 * labels are in the order of wg__labels_sort. All is copied. Freed with wg__cloze_free. NULL with
 * [FORMAT for text that is not UTF-8; ARGUMENT for a pattern that is not such, fewer labels, or
 * verbalizers that are empty, the same, or not wholly known to the tokenizer; MEMORY] */
wg__cloze *wg__cloze_new(const wg_tokenizer *tokenizer, const char *pattern,
                         const wg__labels *labels, const char *const *verbalizers);

/* Frees it; NULL is allowed. */
void wg__cloze_free(wg__cloze *cloze);

/* The labels, borrowed; and how many tokens the longest verbalizer has with its start token: its
 * block positions go up to that. */
const wg__labels *wg__cloze_labels(const wg__cloze *cloze);
int64_t wg__cloze_longest(const wg__cloze *cloze);

/* {"pattern": "...", "verbalizers": {"LABEL": "TEXT", ...}}. The caller frees it with wg_text_free.
 * NULL with MEMORY. */
char *wg__cloze_to_json(const wg__cloze *cloze);

/* The cloze that such a text tells of. [FORMAT; as wg__cloze_new] */
wg__cloze *wg__cloze_from_json(const char *json, const wg_tokenizer *tokenizer);

/* Reads texts with these labels, tokenised as the pattern has them: where the words of the
 * vocabulary begin with their space (bpe and sentencepiece), one before a text is part of it.
 * [as wg__labelled_text_load; ARGUMENT for two texts a line and a pattern for one, or the other way
 * round] */
wg__labelled_text *wg__cloze_text_load(const wg__cloze *cloze, const char *path,
                                       const wg_tokenizer *tokenizer);

/* ---- Batches ---- */

/* B examples of K labels. Owned by the scope that was open. */
typedef struct wg__cloze_batch {
    wg__blank_batch blanks; /* its N are B * S: every example has the same S targets */
    wg_tensor *mask;        /* (B, 1, T, T) bool: who sees whom */
    wg_tensor *verbalized; /* (B, S) i64: the label whose verbalizer the target is of, 0 .. K - 1 */
    wg_tensor *labels;     /* (B) i64: the labels that the examples have */
    int64_t label_count;   /* K */
} wg__cloze_batch;

/* 0 if texts fit into a Part A of so many tokens. [ARGUMENT, with what the pattern takes] */
int wg__cloze_check_sequence(const wg__cloze *cloze, int64_t sequence);

/* Fills `batch` with these examples of a text of wg__cloze_text_load. A Part A that is longer than
 * `sequence` loses tokens of its texts, as wg__token_pair_cut cuts them. T is a multiple of 8.
 * [scope; ARGUMENT as above, MEMORY] */
int wg__cloze_batch_read(const wg__cloze *cloze, const wg__labelled_text *text, int64_t sequence,
                         int64_t count, const int64_t *examples, wg__cloze_batch *batch);

/* Scores of labels: the logarithms of p(verbalizer | pattern), (B, K). Their softmax is p(label),
 * and their cross-entropy the loss. [scope; INDEX, ARGUMENT as wg_model_forward] */
wg_tensor *wg__cloze_scores(const wg_model *model, const wg__cloze_batch *batch);

#endif
