/* Whether tensors share memory, which a write in place has to know.
 *
 *     x[0:5]   |0|1|2|3|4| |      x[1:6] += x[0:5] would read elements that it has written:
 *     x[1:6]   | |1|2|3|4|5|      the source is copied first
 *
 *     x        |1|                expand(x, 5) *= 2 would write one element five times:
 *     expand   |1| 5 times        a target like this is refused
 *
 * The answers are exact for the layouts that ops make. They come from a search of bounded length. A
 * layout of wg_from_blob for which the search does not end in time counts as overlapping. */
#ifndef WG_TENSOR_OVERLAP_H
#define WG_TENSOR_OVERLAP_H

#include "tensor/internal.h"

typedef enum wg__overlap {
    WG__OVERLAP_NONE,   /* no byte belongs to both */
    WG__OVERLAP_SAME,   /* element i of one is element i of the other */
    WG__OVERLAP_PARTIAL /* anything else */
} wg__overlap;

/* How the elements of x and y overlap. Tensors of different storages can overlap only if the memory
 * of one of them belongs to the caller (wg_from_blob). */
wg__overlap wg__overlap_of(const wg_tensor *x, const wg_tensor *y);

/* True if two elements of x share an address. */
bool wg__overlaps_itself(const wg_tensor *x);

#endif
