/* The axes of an operand as memory has them, and the places along them cut into blocks: how the
 * work of reductions and of searches is divided.
 *
 *                last axis -->
 *     kept    +---------+---------+-----+
 *     axes    | block 0 | block 1 |  2  |     the last axis is the one of the smallest stride
 *       |     +---------+---------+-----+
 *       v     | block 3 | block 4 |  5  |
 *             +---------+---------+-----+
 *
 * The cut depends on shape and strides alone, so any number of threads gives the same bits. */
#ifndef WG_TENSOR_OPS_SHAPE_AXES_H
#define WG_TENSOR_OPS_SHAPE_AXES_H

#include "tensor/iter.h"

/* Places of a block, at most: what is kept of them stays in the first-level cache, and a row of
 * them is long enough to be fetched ahead. */
#define WG__BLOCK_WIDTH 1024

/* A row is worth a call from that many places on. */
#define WG__SHORT_ROW 8

/* Items that the work of few blocks is cut into, at most: enough for any number of threads. */
#define WG__MAX_ITEMS 64

typedef struct wg__stepped_axis {
    int64_t size;
    int64_t in, out; /* strides, in elements, of the operand and of the output */
} wg__stepped_axis;

/* Neighbours that step as one are one; none has size 1 unless it is the only one. */
typedef struct wg__axes {
    int count;                          /* at least 1 */
    wg__stepped_axis axis[WG_MAX_DIMS]; /* the smallest stride in the operand last */
} wg__axes;

/* The axes of x that are not in the mask, with the strides of a contiguous output of their shape;
 * and those that are, with 0. */
wg__axes wg__axes_kept(const wg_tensor *x, int64_t mask);
wg__axes wg__axes_reduced(const wg_tensor *x, int64_t mask);

static inline const wg__stepped_axis *wg__axes_last(const wg__axes *axes) {
    return &axes->axis[axes->count - 1];
}

/* The product of the sizes. */
int64_t wg__axes_count(const wg__axes *axes);

typedef struct wg__blocks {
    wg__axes kept;
    int64_t width;   /* of a block, unless its row ends before */
    int64_t per_row; /* blocks along the last axis */
    int64_t count;
} wg__blocks;

/* Cuts the axes into blocks of that width; none of them has size 0. */
void wg__blocks_cut(wg__blocks *blocks, int64_t width);

/* Where a block lies: its places along the last axis, and the way to its first. */
typedef struct wg__block {
    int64_t width, in, out;
} wg__block;

wg__block wg__block_at(const wg__blocks *blocks, int64_t index);

#endif
