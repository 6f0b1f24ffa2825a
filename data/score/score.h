/* Scores of predictions: BLEU, SQuAD's exact match and F1, correlations, and spans of tags. */
#ifndef WG_DATA_SCORE_SCORE_H
#define WG_DATA_SCORE_SCORE_H

#include <stdint.h>
#include <stdbool.h>

#include "base/array.h"
#include "data/tokenizer/tokenizer.h"
#include "base/api.h"

/* BLEU of a corpus, as sacreBLEU computes it by default   (Papineni et al. 2002; Post 2018,
 * arXiv:1804.08771).
 *
 *     BLEU = BP exp(1/4 sum_n log p_n)
 *     p_n  = matching n-grams of all hypotheses / n-grams of all hypotheses
 *     BP   = min(1, exp(1 - r / c))          r, c: tokens of references and of hypotheses
 *
 * Texts are tokenized by mteval-v13a ("13a"), or, for Chinese, by sacreBLEU's "zh" or "char".
 * Orders of n-grams without a match count as 1/2, 1/4, 1/8... matches ("exp"). The score is 0 if no
 * token matches, or if no hypothesis has four tokens.
 *
 *     wg__bleu bleu = {0};
 *     for (i = 0; i < count; i++)
 *         wg__bleu_add(&bleu, hypotheses[i], references[i], (wg_bleu_rules){0});
 *     wg__bleu_score score = wg__bleu_measure(&bleu);
 */

#define WG_BLEU_ORDER 4

/* sacreBLEU's tokenizers ("13a"). */
typedef enum wg_bleu_tokens {
    WG_BLEU_13A,  /* words and punctuation */
    WG_BLEU_ZH,   /* each Chinese character; other text as 13a, without replacing entities */
    WG_BLEU_CHAR, /* each character except white space */
    WG_BLEU_TOKENS_COUNT
} wg_bleu_tokens;

typedef struct wg_bleu_rules {
    wg_bleu_tokens tokens;
    bool lowercase; /* ignores case (sacreBLEU's -lc) */
} wg_bleu_rules;

/* The counts so far; {0} at first. */
typedef struct wg__bleu {
    int64_t matches[WG_BLEU_ORDER]; /* n-grams of hypotheses that are in their references */
    int64_t totals[WG_BLEU_ORDER];  /* n-grams of hypotheses */
    int64_t hypothesis_tokens, reference_tokens;
} wg__bleu;

/* Counts one hypothesis, which may be empty, and its reference, both UTF-8. After a failure `bleu`
 * is unchanged. [FORMAT for text that is not UTF-8; MEMORY] */
int wg__bleu_add(wg__bleu *bleu, const char *hypothesis, const char *reference,
                 wg_bleu_rules rules);

typedef struct wg__bleu_score {
    double score;                     /* 0 to 100 */
    double precisions[WG_BLEU_ORDER]; /* in percent, smoothed */
    double brevity_penalty;
} wg__bleu_score;

/* The score of the counts. */
wg__bleu_score wg__bleu_measure(const wg__bleu *bleu);

/* sacreBLEU's signature of this score; static. */
const char *wg__bleu_signature(wg_bleu_rules rules);

/* ---- BLEU: tokenizing as sacreBLEU's 13a, zh and char. bleu.c ----
 *
 *     He said: &quot;1,000.5 km.&quot;
 *       lower case, an option
 *       13a: entities replaced; zh: Chinese characters separated; char: all characters separated
 *       13a and zh: punctuation separated, except within numbers
 *     He said : " 1,000.5 km . "
 *       white space separates tokens
 */

/* Appends the tokens of a UTF-8 text as their numbers in `words`, and adds new tokens to `words`.
 * [FORMAT if the text is not UTF-8; MEMORY] */
int wg__bleu_tokenize(const char *text, wg_bleu_rules rules, wg__strings *words,
                      wg_token_list *tokens);

/* ---- SQuAD: compares answers like the official evaluate-v1.1.py, and Chinese answers like CMRC
 * 2018's script (Cui et al. 2019). squad_score.c ---- */

/* Normalizes an answer for comparison: lower case, without punctuation and articles, one space
 * between words. Freed with wg__free. NULL with MEMORY. */
char *wg__squad_normalize(const char *text);

/* Compares normalized answers: *exact is 1 if equal, else 0; *f1: F1 of their words. [MEMORY] */
int wg__squad_score(const char *answer, const char *wanted, double *exact, double *f1);

/* Compares answers by the rules of CMRC 2018, which ignore case and punctuation. Each ideograph and
 * each word is a token. *exact: 1 if equal, else 0; *f1: F1 of the longest common run of tokens.
 * [MEMORY] */
int wg__squad_score_mixed(const char *answer, const char *wanted, double *exact, double *f1);

/* Adds the ideographs of a text to *ideographs, and all letters, digits and ideographs to *letters.
 * True if at least half of *letters are ideographs: then the rules of CMRC 2018 apply. */
bool wg__squad_is_chinese(const char *text, int64_t *ideographs, int64_t *letters);

/* ---- Correlations of numbers; 0 if all numbers of a list are equal. spans.c ---- */

/* Pearson's: cov(x, y) / (std(x) std(y)). */
double wg__pearson(int64_t count, const double *x, const double *y);

/* Spearman's: Pearson's of the ranks; equal numbers share the mean of their ranks. [MEMORY] */
int wg__spearman(int64_t count, const double *x, const double *y, double *correlation);

/* ---- Spans of tags, counted like conlleval and seqeval's default mode. spans.c ----
 *
 *     tags     O  B-per I-per O  I-loc  B-loc I-per
 *     spans       [  per  ]     [loc ] [loc ][per ]
 *
 * A span begins at B-, or at I- after O or another type. It ends before O, B- or another type. E-
 * ends a span, and S- is a span of a single word. A predicted span is right if a wanted span has
 * the same first and last word and the same type. */

/* True for "O", and for "B-", "I-", "E-" and "S-" with a type. */
bool wg__is_span_tag(const char *tag);

typedef struct wg__span_counts {
    int64_t wanted, predicted, right;
} wg__span_counts;

/* Adds the spans of a sentence. */
void wg__spans_count(int64_t count, const char *const *wanted, const char *const *predicted,
                     wg__span_counts *counts);

#endif
