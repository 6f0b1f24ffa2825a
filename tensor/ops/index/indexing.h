/* Checks of indices, and reading and writing along an axis by a tensor of indices. */
#ifndef WG_TENSOR_OPS_INDEX_INDEXING_H
#define WG_TENSOR_OPS_INDEX_INDEXING_H

#include "tensor/internal.h"

/* ---- Indices: records see i64, functions cast i32 ---- */

/* -1 with DTYPE unless input i is i64. */
int wg__check_is_index(const wg_call *call, int i);

/* i32 indices cast to i64; any other tensor, or NULL, is returned unchanged. */
wg_tensor *wg__index_as_i64(wg_tensor *index);

/* Whether some index is outside [low, high); if so, `found` becomes one of them. */
bool wg__index_outside(const wg_tensor *index, int64_t low, int64_t high, long long *found);

/* -1 with INDEX unless the indices in input i are in [0, size). */
int wg__check_index_range(const wg_call *call, int i, int64_t size);

/* The error of an index outside [0, size): -1 with INDEX. */
int wg__fail_index_range(const wg_call *call, long long found, int64_t size);

/* i32 or i64 indices of an axis, where negative ones count from the end, as i64 indices from 0 on.
 * NULL with INDEX for an index outside [-size, size). */
wg_tensor *wg__index_from_front(const wg_call *call, wg_tensor *index, int axis, int64_t size);

/* ---- Ops along one axis ---- */

/* y[..i..] = x[..index[..i..]..]. y has the shape of index. Checks the indices on the way, so that
 * they are read once: returns whether some index is outside of x; if so, `found` becomes one of
 * them, and elements of y are undefined. A NULL `found` says that the indices have been checked. */
bool wg__gather(const wg_tensor *x, int axis, const wg_tensor *index, const wg_tensor *y,
                long long *found);

/* y[..index[..i..]..] += src[..i..], of a dtype other than bf16 and bool. Each element receives its
 * addends in the order of the index. An index equal to `skip` is left out if the index is repeated
 * along the inner axis (-1: none). `from_zeros` says that y is all 0. */
void wg__scatter_add(wg_tensor *y, int axis, const wg_tensor *index, const wg_tensor *src,
                     int64_t skip, bool from_zeros);

/* For a vjp: zeros of the shape of input 0, of a floating dtype, with g added at
 * [..index[..i..]..], where the i64 indices are known to be in range. NULL with an error. */
wg_tensor *wg__scattered(const wg_call *call, int axis, wg_tensor *index, wg_tensor *g);

/* y[..index[..i..]..] = src[..i..]: of several values for one place the last is stored. */
void wg__scatter(wg_tensor *y, int axis, const wg_tensor *index, const wg_tensor *src);

#endif
