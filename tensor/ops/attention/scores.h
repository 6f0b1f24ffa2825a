/* A query's row of attention's scores: which keys it may see, what dropout multiplies its weights
 * by, and what is kept of it for backward. Query i is of sequence b and head h. */
#ifndef WG_TENSOR_OPS_ATTENTION_SCORES_H
#define WG_TENSOR_OPS_ATTENTION_SCORES_H

#include "tensor/ops/attention/tiles.h"

/* The number of a query, counted over all heads. */
int64_t wg__attention_query_number(const wg__attention *at, int64_t b, int64_t h, int64_t i);

/* How many keys a query sees before any mask. */
int64_t wg__attention_keys_before_mask(const wg__attention *at, int64_t i);

/* The query's row of the mask, which there must be; and the number of the last key that it shows,
 * of `most`, plus one; at least `least`. */
const bool *wg__attention_mask_row(const wg__attention *at, int64_t b, int64_t h, int64_t i);
int64_t wg__attention_keys_shown(const wg__attention *at, int64_t b, int64_t h, int64_t i,
                                 int64_t least, int64_t most);

/* The factors of dropout of the first n weights of a query, by its number: 0 where dropped,
 * 1 / (1 - p) elsewhere. */
void wg__attention_draw(const wg__attention *at, int64_t query, int64_t n, char *factors);

/* log sum e^s of a query, by its number; setting it does nothing where it is not wanted. */
double wg__attention_log_sum(const wg__attention *at, int64_t query);
void wg__attention_set_log_sum(const wg__attention *at, int64_t query, double value);

#endif
