/* Labels by filling a blank: patterns and verbalizers   (Schick & Schütze 2021, arXiv:2001.07676;
 * for GLM Du et al. 2022, arXiv:2103.10360, section 2.3).
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
 * Every verbalizer is a span of Part B that sees Part A and itself, but no other verbalizer, so one
 * forward serves all labels. The score of a label is the log probability that the blank holds its
 * verbalizer and nothing more: the sum over the targets of the span, including its end token.
 * Verbalizers of any length compare, also where one begins with another. */
#ifndef WG_OBJECTIVES_CLOZE_H
#define WG_OBJECTIVES_CLOZE_H

#include "../data/dataset/examples.h"
#include "blank_infilling.h"

typedef struct wg__cloze wg__cloze;

/* A pattern has one blank ("[MASK]", "[sMASK]" or "[gMASK]") and a place for each text of an
 * example: "{text}" for one, "{text_a}" and "{text_b}" for two, in any order. verbalizers[i] fills
 * the blank for labels[i]; there are two labels or more, and the cloze sorts them by
 * wg__labels_sort. All is copied. Freed with wg__cloze_free. NULL with [FORMAT for text that is not
 * UTF-8; ARGUMENT for another pattern, fewer labels, or verbalizers that are empty, the same, or
 * not wholly known to the tokenizer; MEMORY] */
wg__cloze *wg__cloze_new(const wg_tokenizer *tokenizer, const char *pattern,
                         const wg__labels *labels, const char *const *verbalizers);

void wg__cloze_free(wg__cloze *cloze);

/* The tokens of the longest verbalizer with its start token, the greatest block position. */
int64_t wg__cloze_longest(const wg__cloze *cloze);

/* {"pattern": "...", "verbalizers": {"LABEL": "TEXT", ...}}, freed with wg_text_free. [MEMORY] */
char *wg__cloze_to_json(const wg__cloze *cloze);

/* [FORMAT; as wg__cloze_new] */
wg__cloze *wg__cloze_from_json(const char *json, const wg_tokenizer *tokenizer);

/* Reads texts with these labels. Where the words of the vocabulary begin with their space (bpe and
 * sentencepiece), a space before a text belongs to the text. [as wg__labelled_text_load; ARGUMENT
 * for two texts a line and a pattern for one, or for one text and a pattern for two] */
wg__labelled_text *wg__cloze_text_load(const wg__cloze *cloze, const char *path,
                                       const wg_tokenizer *tokenizer);

/* B examples of K labels. Owned by the scope that was open. */
typedef struct wg__cloze_batch {
    wg__blank_batch blanks; /* its N are B * S: every example has the same S targets */
    wg_tensor *mask;        /* (B, 1, T, T) bool: true where a token sees another */
    wg_tensor *verbalized;  /* (B, S) i64: the label of each target's verbalizer, 0 .. K - 1 */
    wg_tensor *labels;      /* (B) i64: the labels that the examples have */
    int64_t label_count;    /* K */
} wg__cloze_batch;

/* 0 if a Part A of `sequence` tokens has room for texts. [ARGUMENT, with the length of the
 * pattern] */
int wg__cloze_check_sequence(const wg__cloze *cloze, int64_t sequence);

/* Fills `batch` with examples of a text of wg__cloze_text_load. A Part A longer than `sequence`
 * loses tokens of its texts, as wg__token_pair_cut cuts them. T is a multiple of 8. [scope;
 * ARGUMENT as above, MEMORY] */
int wg__cloze_batch_read(const wg__cloze *cloze, const wg__labelled_text *text, int64_t sequence,
                         int64_t count, const int64_t *examples, wg__cloze_batch *batch);

/* log p(verbalizer | pattern) of each label, (B, K). Its softmax is p(label), and its cross-entropy
 * the loss. [scope; INDEX, ARGUMENT as wg_model_forward] */
wg_tensor *wg__cloze_scores(const wg_model *model, const wg__cloze_batch *batch);

#endif
