/* Products of blocks of integers, with quantized weights (quantize.h): the rows of x become blocks
 * of 32 signed bytes and an f32 scale, and what is summed are products of integers.
 *
 *     kernels_i8.c   compiled as the kernels of simd.h are, and once more for processors whose
 *                    vectors multiply four bytes at once (VNNI)
 *     simd.c         picks the table
 *
 *     y_o = sum over blocks b, in their order, of (sum of levels x_b w_ob) (scale x_b  scale w_ob)
 *
 * The sums of integers are exact, and a block adds one rounded product to y_o whichever rows are
 * multiplied with it: so the same bits come from one row of x and from many. */
#ifndef WG_TENSOR_SIMD_BLOCKS_H
#define WG_TENSOR_SIMD_BLOCKS_H

#include <stdint.h>

/* A few rows of x as `multiply` takes them; of each block in turn, R being the number of rows:
 *
 *     4 levels of row 0 | of row 1 | ...   the next 4 of row 0 | ...   8 times in all
 *     R scales f32      R offsets i32: the sum of the block's levels, times the kernel's offset
 */
#define WG__TILE_BLOCK 40 /* bytes of a block of a row */
#define WG__MOST_TILE_ROWS 12

typedef struct wg__block_products {
    /* What a product of a block begins with is that many times the sum of x's levels. */
    int32_t offset;

    /* Adds to sums, (rows, 16), the products of a tile with 16 rows side by side. */
    void (*multiply)(int64_t rows, int64_t blocks, const uint8_t *weights, const void *tile,
                     float *sums);
} wg__block_products;

typedef struct wg__block_kernels {
    const char *name;  /* of the instruction set */
    int64_t tile_rows; /* at most, in a tile */

    /* Rows of x, x_stride apart, of 32 `blocks` numbers each. The scale of a block is its largest
     * magnitude / 127 and NaN where a number is not finite; a level is a number times the inverse
     * of the scale, to the nearest integer, ties to even. */
    void (*quantise)(int64_t rows, int64_t blocks, const float *x, int64_t x_stride, int32_t offset,
                     void *tile);

    wg__block_products q8_0, q4_0;
} wg__block_kernels;

/* The kernels that this CPU runs, from the plainest, 0, to the best; NULL beyond. */
const wg__block_kernels *wg__block_kernels_at(int index);

/* The best of them. */
const wg__block_kernels *wg__block_kernels_for_cpu(void);

#endif
