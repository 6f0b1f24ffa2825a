/* BLEU of a corpus, as sacreBLEU computes it by default   (Papineni et al. 2002; Post 2018,
 * arXiv:1804.08771).
 *
 *     BLEU = BP exp(1/4 sum_n log p_n)
 *     p_n  = matching n-grams of all hypotheses / n-grams of all hypotheses
 *     BP   = min(1, exp(1 - r / c))          r, c: tokens of references and of hypotheses
 *
 * Tokens are those of mteval-v13a ("13a"). Orders of n-grams without a match count as 1/2, 1/4,
 * 1/8... matches ("exp"). The score is 0 if no token matches, or if no hypothesis has four tokens.
 *
 *     wg_bleu bleu = {0};
 *     for (i = 0; i < count; i++)
 *         wg_bleu_add(&bleu, hypotheses[i], references[i], false);
 *     wg_bleu_score score = wg_bleu_measure(&bleu);
 */
#ifndef WG_DATA_SCORE_BLEU_H
#define WG_DATA_SCORE_BLEU_H

#include <stdbool.h>
#include <stdint.h>

#include "../../base/api.h"

WG_BEGIN_DECLS

#define WG_BLEU_ORDER 4

/* The counts so far; {0} is nothing. */
typedef struct wg_bleu {
    int64_t matches[WG_BLEU_ORDER]; /* n-grams of hypotheses that are in their references */
    int64_t totals[WG_BLEU_ORDER];  /* n-grams of hypotheses */
    int64_t hypothesis_tokens, reference_tokens;
} wg_bleu;

/* Counts one hypothesis, which may be empty, and its reference, both UTF-8. lowercase: case is
 * ignored (sacreBLEU's -lc). After a failure `bleu` is unchanged. [FORMAT for text that is not
 * UTF-8; MEMORY] */
WG_API int wg_bleu_add(wg_bleu *bleu, const char *hypothesis, const char *reference,
                       bool lowercase);

typedef struct wg_bleu_score {
    double score;                     /* 0 to 100 */
    double precisions[WG_BLEU_ORDER]; /* in percent, smoothed */
    double brevity_penalty;
} wg_bleu_score;

/* The score of the counts. */
WG_API wg_bleu_score wg_bleu_measure(const wg_bleu *bleu);

/* sacreBLEU's signature of this score; static. */
WG_API const char *wg_bleu_signature(bool lowercase);

WG_END_DECLS

#endif
