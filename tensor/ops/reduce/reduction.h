/* The engine of reductions over axes.
 *
 * The axes of an operand are sorted by stride, and the positions along the kept axes are cut into
 * blocks:
 *
 *                last axis -->
 *     kept    +---------+---------+-----+
 *     axes    | block 0 | block 1 |  2  |     the last axis has the smallest stride
 *       |     +---------+---------+-----+
 *       v     | block 3 | block 4 |  5  |
 *             +---------+---------+-----+
 *
 * The cut depends on shape and strides alone, so any number of threads gives the same bits. */
#ifndef WG_TENSOR_OPS_REDUCE_REDUCTION_H
#define WG_TENSOR_OPS_REDUCE_REDUCTION_H

#include "tensor/internal.h"

/* ---- Axes and blocks ---- */

/* The maximum width of a block: its accumulators stay in the first-level cache, and a row is long
 * enough for prefetching. */
#define WG__BLOCK_WIDTH 1024

/* Rows shorter than this are not worth a call of a kernel each. */
#define WG__SHORT_ROW 8

/* The maximum number of items if there are few blocks: enough for any number of threads. */
#define WG__MAX_ITEMS 64

typedef struct wg__stepped_axis {
    int64_t size;
    int64_t in, out; /* strides, in elements, of the operand and of the output */
} wg__stepped_axis;

/* Adjacent axes that one stride can walk are merged; an axis of size 1 is the only axis. */
typedef struct wg__axes {
    int count;                          /* at least 1 */
    wg__stepped_axis axis[WG_MAX_DIMS]; /* the smallest stride in the operand last */
} wg__axes;

/* The kept axes of x, outside the mask, with the strides of a contiguous output of their shape; or
 * the reduced axes, in the mask, with output strides of 0. */
wg__axes wg__axes_of(const wg_tensor *x, int64_t mask, bool reduced);

static inline const wg__stepped_axis *wg__axes_last(const wg__axes *axes) {
    return &axes->axis[axes->count - 1];
}

typedef struct wg__blocks {
    wg__axes kept;
    int64_t width;   /* of a block; the last block of a row may be narrower */
    int64_t per_row; /* blocks along the last axis */
    int64_t count;
} wg__blocks;

/* Cuts the axes, none of size 0, into blocks of that width. */
void wg__blocks_cut(wg__blocks *blocks, int64_t width);

/* A block: its width along the last axis, and the offsets of its first position. */
typedef struct wg__block {
    int64_t width, in, out;
} wg__block;

wg__block wg__block_at(const wg__blocks *blocks, int64_t index);

/* ---- Kernels ---- */

/* The kernels of a reduction for a dtype. An accumulator has at most 8 bytes. */
typedef struct wg__reduction {
    size_t size; /* of an accumulator */

    /* Sets accumulators to the neutral value. */
    void (*start)(int64_t count, void *to);

    /* Joins an element into each of `count` accumulators; the elements are `stride` apart. */
    void (*add_row)(int64_t count, void *to, const void *x, int64_t stride);

    /* Joins `count` elements, `stride` apart, into a single accumulator. */
    void (*add_run)(int64_t count, void *to, const void *x, int64_t stride);

    /* Joins the accumulators `from` into the accumulators `to`. */
    void (*join)(int64_t count, void *to, const void *from);

    /* Writes accumulators as elements of the output, `stride` apart. */
    void (*finish)(int64_t count, const void *from, void *y, int64_t stride);
} wg__reduction;

/* Independent accumulators of a run of elements: enough that compilers make a vector loop of them
 * instead of unrolling it. */
#define WG__LANES 32

/* The kernels NAME: elements of TYPE are read by READ into accumulators of ACCUMULATOR, which begin
 * as NEUTRAL, are joined by the expression JOIN in a and b, and leave by WRITE as OUTPUT. */
#define WG__REDUCTION(NAME, TYPE, READ, ACCUMULATOR, NEUTRAL, JOIN, OUTPUT, WRITE)                 \
    static inline ACCUMULATOR NAME##_joined(ACCUMULATOR a, ACCUMULATOR b) {                        \
        return JOIN;                                                                               \
    }                                                                                              \
    static inline ACCUMULATOR NAME##_run_at(const TYPE *x, int64_t n, int64_t stride) {            \
        ACCUMULATOR lanes[WG__LANES];                                                              \
        for (int l = 0; l < WG__LANES; l++)                                                        \
            lanes[l] = NEUTRAL;                                                                    \
        int64_t i = 0;                                                                             \
        for (; i + WG__LANES <= n; i += WG__LANES)                                                 \
            for (int l = 0; l < WG__LANES; l++)                                                    \
                lanes[l] = NAME##_joined(lanes[l], (ACCUMULATOR)READ(x[(i + l) * stride]));        \
        for (; i < n; i++)                                                                         \
            lanes[i % WG__LANES] =                                                                 \
                NAME##_joined(lanes[i % WG__LANES], (ACCUMULATOR)READ(x[i * stride]));             \
        for (int half = WG__LANES / 2; half > 0; half /= 2)                                        \
            for (int l = 0; l < half; l++)                                                         \
                lanes[l] = NAME##_joined(lanes[l], lanes[l + half]);                               \
        return lanes[0];                                                                           \
    }                                                                                              \
    static void NAME##_run(int64_t count, void *to, const void *x, int64_t stride) {               \
        ACCUMULATOR *total = to;                                                                   \
        *total = NAME##_joined(*total, stride == 1 ? NAME##_run_at(x, count, 1)                    \
                                                   : NAME##_run_at(x, count, stride));             \
    }                                                                                              \
    static inline void NAME##_row_at(ACCUMULATOR *restrict to, const TYPE *x, int64_t n,           \
                                     int64_t stride) {                                             \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = NAME##_joined(to[i], (ACCUMULATOR)READ(x[i * stride]));                        \
    }                                                                                              \
    static void NAME##_row(int64_t count, void *to, const void *x, int64_t stride) {               \
        if (stride == 1)                                                                           \
            NAME##_row_at(to, x, count, 1);                                                        \
        else                                                                                       \
            NAME##_row_at(to, x, count, stride);                                                   \
    }                                                                                              \
    static void NAME##_start(int64_t count, void *to) {                                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            ((ACCUMULATOR *)to)[i] = NEUTRAL;                                                      \
    }                                                                                              \
    static void NAME##_join(int64_t count, void *to, const void *from) {                           \
        for (int64_t i = 0; i < count; i++)                                                        \
            ((ACCUMULATOR *)to)[i] =                                                               \
                NAME##_joined(((ACCUMULATOR *)to)[i], ((const ACCUMULATOR *)from)[i]);             \
    }                                                                                              \
    static void NAME##_finish(int64_t count, const void *from, void *y, int64_t stride) {          \
        for (int64_t i = 0; i < count; i++)                                                        \
            ((OUTPUT *)y)[i * stride] = (OUTPUT)WRITE(((const ACCUMULATOR *)from)[i]);             \
    }

#define WG__KERNELS(NAME, ACCUMULATOR)                                                             \
    { sizeof(ACCUMULATOR), NAME##_start, NAME##_row, NAME##_run, NAME##_join, NAME##_finish }

/* Each element of y, contiguous, becomes the reduction of x over the axes of the mask. -1 if out of
 * memory. */
int wg__reduce(const wg__reduction *kernels, const wg_tensor *x, int64_t mask, wg_tensor *y);

#endif
