/* The order of the elements of a row: stable, with a NaN after all numbers and equal to every other
 * one, and with -0 equal to 0. */
#ifndef WG_TENSOR_OPS_INDEX_ORDER_H
#define WG_TENSOR_OPS_INDEX_ORDER_H

#include "tensor/internal.h"

/* Bytes that wg__order needs for a row of n elements. */
size_t wg__order_room(wg_dtype dtype, int64_t n);

/* The indices of the first k elements of the ascending or descending order of n contiguous ones, in
 * that order. In time n for k = n, and n log k at most for fewer. */
void wg__order(wg_dtype dtype, bool descending, int64_t n, const void *x, int64_t k, void *room,
               int64_t *order);

/* Whether two elements of a row have the same place in that order. */
bool wg__order_same(wg_dtype dtype, const void *x, int64_t i, int64_t j);

#endif
