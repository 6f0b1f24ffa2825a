/* Products with weights in blocks of integers.
 *
 *                     16 outputs
 *     weights W^T       +----+
 *                       |    |
 *        x    +------+  +----+
 *             |tiles |  |unit|
 *             +------+  +----+
 *
 * A unit of work is a chunk of x's tiles by 16 outputs, whose weights stay in the nearest cache
 * while tile after tile is multiplied. Rows of the weight that do not stand side by side are
 * brought there, a piece at a time. */
#include "tensor/gemm/block_product.h"

#include <string.h>

#include "base/internal.h"
#include "tensor/iter.h"
#include "tensor/quantize_rows.h"
#include "tensor/simd/blocks.h"

enum {
    ROWS_AT_ONCE = 12 * WG__MOST_TILE_ROWS, /* of x, whose tiles stay in the second cache */
    PIECE = 16,                             /* blocks of 16 rows that are brought side by side */
    WORK = 16384,                           /* multiply-adds that are worth a chunk */
};

typedef struct job {
    const wg__quantized_product *p; /* of the same x */
    wg_quantization quantization;   /* of a row by itself */
    bool side_by_side;
    const wg__block_kernels *kernels;
    const wg__block_products *products;
    int64_t groups; /* of 16 outputs, of all products together */
    int64_t blocks;
    uint8_t *tiles;
} job;

static int64_t rows_of_tile(const job *j, int64_t tile) {
    return wg__smaller(j->kernels->tile_rows, j->p->x_rows - tile * j->kernels->tile_rows);
}

static uint8_t *tile_at(const job *j, int64_t tile) {
    return j->tiles + tile * j->kernels->tile_rows * j->blocks * WG__TILE_BLOCK;
}

static void quantise_tiles(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    for (int64_t t = begin; t < end; t++)
        j->kernels->quantise(rows_of_tile(j, t), j->blocks,
                             j->p->x + t * j->kernels->tile_rows * j->p->x_stride, j->p->x_stride,
                             j->products->offset, tile_at(j, t));
}

/* ---- A unit ---- */

/* Blocks first... of up to 16 rows from `output` on, side by side; beyond the last row, zeros. */
static void gather(const job *j, const wg__quantized_product *p, int64_t output, int64_t first,
                   int64_t count, uint8_t *to) {
    const int64_t bytes = wg_quantization_block_bytes(j->quantization);
    static const uint8_t zeros[WG__MOST_BLOCK_BYTES];
    for (int64_t r = 0; r < WG__GROUP; r++) {
        const bool is_there = output + r < p->outputs;
        const uint8_t *row = (const uint8_t *)p->weight + (output + r) * p->weight_stride;
        for (int64_t b = 0; b < count; b++)
            wg__group_put(j->quantization, r, is_there ? row + (first + b) * bytes : zeros,
                          to + b * bytes * WG__GROUP);
    }
}

/* Adds the products of all tiles from..to with blocks first... of 16 rows. */
static void multiply_tiles(const job *j, int64_t from, int64_t to, int64_t first, int64_t count,
                           const uint8_t *weights, float *sums) {
    for (int64_t t = from; t < to; t++) {
        const int64_t rows = rows_of_tile(j, t);
        j->products->multiply(rows, count, weights, tile_at(j, t) + first * rows * WG__TILE_BLOCK,
                              sums);
        sums += rows * WG__GROUP;
    }
}

/* Each row's sums begin with the bias. */
static void begin_sums(const wg__quantized_product *p, int64_t rows, int64_t output, float *sums) {
    float bias[WG__GROUP] = {0};
    const int64_t count = wg__smaller(WG__GROUP, p->outputs - output);
    if (p->bias)
        memcpy(bias, p->bias + output, (size_t)count * sizeof *bias);
    for (int64_t r = 0; r < rows; r++)
        memcpy(sums + r * WG__GROUP, bias, sizeof bias);
}

static void store_sums(const wg__quantized_product *p, int64_t row, int64_t rows, int64_t output,
                       const float *sums) {
    const int64_t count = wg__smaller(WG__GROUP, p->outputs - output);
    for (int64_t r = 0; r < rows; r++)
        memcpy(p->y + (row + r) * p->y_stride + output, sums + r * WG__GROUP,
               (size_t)count * sizeof *sums);
}

static void multiply_unit(const job *j, const wg__quantized_product *p, int64_t row,
                          int64_t output) {
    const int64_t rows = wg__smaller(ROWS_AT_ONCE, p->x_rows - row),
                  from = row / j->kernels->tile_rows,
                  to = wg__ceil_divide(row + rows, j->kernels->tile_rows);
    const bool in_place = j->side_by_side && output + WG__GROUP <= p->outputs;
    float sums[ROWS_AT_ONCE * WG__GROUP];
    begin_sums(p, rows, output, sums);
    if (in_place)
        multiply_tiles(j, from, to, 0, j->blocks,
                       (const uint8_t *)p->weight + output * p->weight_stride, sums);
    for (int64_t first = 0; !in_place && first < j->blocks; first += PIECE) {
        uint8_t piece[PIECE * WG__GROUP * WG__MOST_BLOCK_BYTES];
        const int64_t count = wg__smaller(PIECE, j->blocks - first);
        gather(j, p, output, first, count, piece);
        multiply_tiles(j, from, to, first, count, piece, sums);
    }
    store_sums(p, row, rows, output, sums);
}

static int64_t groups_of(const wg__quantized_product *p) {
    return wg__ceil_divide(p->outputs, WG__GROUP);
}

static void multiply_units(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    for (int64_t u = begin; u < end; u++) {
        int64_t group = u % j->groups;
        const wg__quantized_product *p = j->p;
        for (; group >= groups_of(p); p++)
            group -= groups_of(p);
        multiply_unit(j, p, u / j->groups * ROWS_AT_ONCE, group * WG__GROUP);
    }
}

int wg__block_product(wg_quantization quantization, int count,
                      const wg__quantized_product *products) {
    const int64_t x_rows = products->x_rows, n = products->n;
    const wg_quantization of_a_row = wg__quantization_of_a_row(quantization);
    const wg__block_kernels *kernels = wg__block_kernels_for_cpu();
    job j = {.p = products,
             .quantization = of_a_row,
             .side_by_side = quantization != of_a_row,
             .kernels = kernels,
             .products = of_a_row == WG_QUANTIZATION_Q8_0 ? &kernels->q8_0 : &kernels->q4_0,
             .blocks = n / WG__BLOCK};
    for (int i = 0; i < count; i++)
        j.groups += groups_of(&products[i]);
    if (j.groups == 0 || x_rows == 0)
        return 0;
    j.tiles = wg__alloc((size_t)(x_rows * j.blocks * WG__TILE_BLOCK));
    if (!j.tiles)
        return -1;
    const int64_t tiles = wg__ceil_divide(x_rows, kernels->tile_rows),
                  units = wg__ceil_divide(x_rows, ROWS_AT_ONCE) * j.groups,
                  unit_work = wg__smaller(x_rows, ROWS_AT_ONCE) * WG__GROUP * n;
    wg__parallel_for(tiles, 1 + WORK / (n * kernels->tile_rows + 1), quantise_tiles, &j);
    wg__parallel_for(units, 1 + WORK / (unit_work + 1), multiply_units, &j);
    wg__free(j.tiles);
    return 0;
}
