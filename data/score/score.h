/* Internal interface of the scores: BLEU's tokens, SQuAD's comparison of answers, correlations, and
 * spans of tags. */
#ifndef WG_DATA_SCORE_SCORE_H
#define WG_DATA_SCORE_SCORE_H

#include <stdbool.h>

#include "base/string_table.h"
#include "data/score/bleu.h"
#include "data/tokenizer/tokenizer.h"

/* ---- BLEU: the tokens of mteval-v13a, of "zh" and of "char", as in sacreBLEU. bleu.c ----
 *
 *     He said: &quot;1,000.5 km.&quot;
 *       lower case if asked for
 *       13a: entities replaced; zh: Chinese characters separated; char: all characters separated
 *       but of char: punctuation separated, except within numbers
 *     He said : " 1,000.5 km . "
 *       white space separates tokens
 */

/* Appends the tokens of a UTF-8 text as their numbers in `words`; new ones are added to it.
 * [FORMAT if the text is not UTF-8; MEMORY] */
int wg__bleu_tokenize(const char *text, wg_bleu_rules rules, wg__strings *words,
                      wg_token_list *tokens);

/* ---- SQuAD: answers compared as by the official evaluate-v1.1.py, and Chinese ones as by CMRC
 * 2018's (Cui et al. 2019). squad_score.c ---- */

/* An answer as it is compared: lower case, without punctuation and articles, one space between
 * words. Freed with wg__free. NULL with MEMORY. */
char *wg__squad_normalize(const char *text);

/* Compares normalised answers: *exact is 1 if they are equal, else 0; *f1 is the F1 of their words.
 * [MEMORY] */
int wg__squad_score(const char *answer, const char *wanted, double *exact, double *f1);

/* Compares answers by the rules of CMRC 2018, as they are, not normalised. Each ideograph is a
 * token and each other word is; case and punctuation are ignored. *exact is 1 if they are equal,
 * else 0; *f1 is the F1 by the longest run of tokens that both have. [MEMORY] */
int wg__squad_score_mixed(const char *answer, const char *wanted, double *exact, double *f1);

/* Adds the ideographs, and the letters and digits with them, of a text to the counts. True if at
 * least half of what was counted are ideographs: then answers are compared by the rules of CMRC. */
bool wg__squad_is_chinese(const char *text, int64_t *ideographs, int64_t *letters);

/* ---- Correlations of numbers; 0 where one list has a single value. correlation.c ---- */

/* Pearson's: cov(x, y) / (std(x) std(y)). */
double wg__pearson(int64_t count, const double *x, const double *y);

/* Spearman's: Pearson's of the ranks, where equal numbers share the mean of their ranks. [MEMORY]
 */
int wg__spearman(int64_t count, const double *x, const double *y, double *correlation);

/* ---- Spans of tags, as conlleval and seqeval's default mode count them. spans.c ----
 *
 *     tags     O  B-per I-per O  I-loc  B-loc I-per
 *     spans       [  per  ]     [loc ] [loc ][per ]
 *
 * A span begins at B-, and also at I- behind O or another type; it ends before O, B- and another
 * type. E- ends a span, and S- is one. A predicted span is right if a wanted one has the same first
 * and last word and the same type. */

/* True for "O", and for "B-", "I-", "E-" and "S-" with a type. */
bool wg__is_span_tag(const char *tag);

typedef struct wg__span_counts {
    int64_t wanted, predicted, right;
} wg__span_counts;

/* Adds the spans of a sentence. */
void wg__spans_count(int64_t count, const char *const *wanted, const char *const *predicted,
                     wg__span_counts *counts);

#endif
