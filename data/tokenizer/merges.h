/* Byte-pair encoding's inner loop (Sennrich et al. 2016): of all neighbours that may be joined, the
 * ones of lowest rank are, the leftmost first, until none may.
 *
 *     l o w e r     (l, o) 3   (o, w) 9   (e, r) 1       ranks from the table
 *     l o w er      (l, o) 3   (o, w) 9
 *     lo w er       (lo, w) 4
 *     low er
 */
#ifndef WG_DATA_TOKENIZER_MERGES_H
#define WG_DATA_TOKENIZER_MERGES_H

#include "data/tokenizer/pair_table.h"

/* Memory that is used again from word to word. {0} is none yet. */
typedef struct wg__merge_space {
    char *block;
    int64_t capacity;
} wg__merge_space;

/* Joins `count` ids in place, as `merges` says: (left, right) -> (rank, joined). Ids that are in no
 * pair, negative ones among them, stay. Short sequences are scanned, long ones have a heap:
 * n log n. Returns how many are left, or -1 with MEMORY. */
int64_t wg__merge(const wg__pairs *merges, int32_t *ids, int64_t count, wg__merge_space *space);

/* Ranks by scores, the best first: equal scores have equal ranks. [MEMORY] */
int wg__rank_scores(int64_t count, const double *scores, int32_t *ranks);

void wg__merge_space_clear(wg__merge_space *space);

#endif
