/* BLEU of a corpus, as sacreBLEU computes it by default   (Papineni et al. 2002; Post 2018,
 * arXiv:1804.08771).
 *
 *     BLEU = BP exp(1/4 sum_n log p_n)
 *     p_n  = matching n-grams of all hypotheses / n-grams of all hypotheses
 *     BP   = min(1, exp(1 - r / c))          r, c: tokens of references and of hypotheses
 *
 * Tokens are those of mteval-v13a ("13a"), or, for Chinese, of sacreBLEU's "zh" or "char". Orders
 * of n-grams without a match count as 1/2, 1/4, 1/8... matches ("exp"). The score is 0 if no token
 * matches, or if no hypothesis has four tokens.
 *
 *     wg__bleu bleu = {0};
 *     for (i = 0; i < count; i++)
 *         wg__bleu_add(&bleu, hypotheses[i], references[i], (wg_bleu_rules){0});
 *     wg__bleu_score score = wg__bleu_measure(&bleu);
 */
#ifndef WG_DATA_SCORE_BLEU_H
#define WG_DATA_SCORE_BLEU_H

#include <stdbool.h>
#include <stdint.h>

#include "../../base/api.h"

#define WG_BLEU_ORDER 4

/* How texts become tokens, by sacreBLEU's names ("13a"). */
typedef enum wg_bleu_tokens {
    WG_BLEU_13A,  /* words and punctuation */
    WG_BLEU_ZH,   /* each Chinese character; the rest as 13a, without its entities */
    WG_BLEU_CHAR, /* each character but white space */
    WG_BLEU_TOKENS_COUNT
} wg_bleu_tokens;

typedef struct wg_bleu_rules {
    wg_bleu_tokens tokens;
    bool lowercase; /* case is ignored (sacreBLEU's -lc) */
} wg_bleu_rules;

/* The counts so far; {0} is nothing. */
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

/* "13a", "zh", "char"; NULL for another number. */
const char *wg__bleu_tokens_name(int tokens);

#endif
