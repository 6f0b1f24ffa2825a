/* The transposition of as many vectors as they have elements. */
#ifndef WG_TENSOR_SIMD_TRANSPOSE_H
#define WG_TENSOR_SIMD_TRANSPOSE_H

#include "tensor/simd/vector.h"

/* Of two vectors, what a transposition by blocks of some elements exchanges: the first ones of each
 * pair of blocks, and the second ones. */
#define WG__PAIR_UP(a, b, first, second)                                                           \
    do {                                                                                           \
        const vector x = a, y = b;                                                                 \
        a = __builtin_shufflevector(x, y, WG__LIST first);                                         \
        b = __builtin_shufflevector(x, y, WG__LIST second);                                        \
    } while (0)
#define WG__LIST(...) __VA_ARGS__

#define WG__STAGE(blocks, first, second)                                                           \
    WG__UNROLL for (int i = 0; i < LANES; i++) if (!(i & (blocks)))                                \
        WG__PAIR_UP(v[i], v[i + (blocks)], first, second);

/* v[i][j] becomes v[j][i]. */
static inline void turn(vector *v) {
#if WG__LANES == 16
    WG__STAGE(8, (0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
              (8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
    WG__STAGE(4, (0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
              (4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))
    WG__STAGE(2, (0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
              (2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
    WG__STAGE(1, (0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),
              (1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))
#elif WG__LANES == 8
    WG__STAGE(4, (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15))
    WG__STAGE(2, (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15))
    WG__STAGE(1, (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15))
#elif WG__LANES == 4
    WG__STAGE(2, (0, 1, 4, 5), (2, 3, 6, 7))
    WG__STAGE(1, (0, 4, 2, 6), (1, 5, 3, 7))
#elif WG__LANES == 2
    WG__STAGE(1, (0, 2), (1, 3))
#else
    (void)v;
#endif
}

#endif
