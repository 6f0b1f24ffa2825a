/* Products with weights in bf16 (quantize.h) of many rows of x, two numbers of a row at a time.
 *
 *     kernels_bf16.c   compiled as the kernels of simd.h are, and once more for processors that
 *                      multiply pairs of bf16 (AVX512-BF16)
 *     simd.c           picks the table
 *
 * A lane of a vector sums the products of one output in the order of the row's numbers: so a row
 * of x has the same bits whichever others are multiplied with it. Processors that multiply pairs
 * take x rounded to bf16, to nearest and ties to even; others take it as it is. Sums are f32. */
#ifndef WG_TENSOR_SIMD_BF16_H
#define WG_TENSOR_SIMD_BF16_H

#include <stdbool.h>
#include <stdint.h>

enum { WG__MOST_PAIR_COLUMNS = 32 }; /* of a panel */

/* The products of a tile with a panel, added to `from`, go to `to`: (rows, columns), with so many
 * elements from row to row. `to` may be `from`. */
typedef struct wg__pair_product {
    int64_t rows, pairs;
    const void *panel, *tile;
    const float *from;
    int64_t from_row;
    float *to;
    int64_t to_row;
} wg__pair_product;

typedef struct wg__bf16_kernels {
    const char *name;   /* of the instruction set */
    bool rounds_x;      /* to bf16 */
    int64_t tile_rows;  /* at most, in a tile */
    int64_t columns;    /* of a panel: so many outputs */
    int64_t pair_bytes; /* of two numbers of x in a tile */

    /* Up to tile_rows rows of x, x_stride apart, of n numbers each become a tile: the first pair of
     * row 0, of row 1..., the second pairs... A 0 follows an odd n. */
    void (*lay_rows)(int64_t rows, int64_t n, const float *x, int64_t x_stride, void *tile);

    /* Up to `columns` rows of the weight, weight_stride bytes apart, of n numbers each become a
     * panel in the same way, with zeros for the rows that are not there. A panel has room for n up
     * to a multiple of `columns`. */
    void (*lay_panel)(int64_t outputs, int64_t n, const void *weight, int64_t weight_stride,
                      void *panel);

    void (*multiply)(const wg__pair_product *p);
} wg__bf16_kernels;

/* The kernels that this CPU runs, from the plainest, 0, to the best; NULL beyond. */
const wg__bf16_kernels *wg__bf16_kernels_at(int index);

/* The best of them. */
const wg__bf16_kernels *wg__bf16_kernels_for_cpu(void);

#endif
