/* Products of many rows with quantized weights.
 *
 *                    panel
 *     weights W^T    +----+
 *                    +----+ depth     First x is packed into tiles. A unit of work is some tiles
 *        x  +------+ +----+           by the outputs of a panel: a piece of the weights at a time
 *           |tiles | |unit|           is packed into the L1 cache and multiplied by all tiles of
 *           +------+ +----+           the unit.
 */
#include "tensor/gemm/gemm.h"

#include <string.h>

#include "tensor/internal.h"
#include "tensor/quantize_rows.h"
#include "tensor/simd/simd.h"

/* The numbers or multiply-adds in a chunk of a parallel loop. */
enum { WORK = 16384, CACHE_LINE = 64 };

/* ---- bf16 ---- */

enum {
    PANEL_BYTES = 32768, /* the L1 cache; smaller pieces load and store the sums more often */
    BF16_ROWS = 240,     /* rows of x in a unit, at most */
};

typedef struct bf16_job {
    const wg__bf16_kernels *kernels;
    const wg__quantized_product *p; /* products of the same x */
    int64_t panels;                 /* of all products together */
    int64_t tiles, parts;           /* a part is the tiles of a unit */
    int64_t depth;                  /* numbers in a row of a panel */
    char *x;
} bf16_job;

/* The rows of x are divided evenly among the tiles, and the tiles among the parts. */
static int64_t first_row(const bf16_job *j, int64_t tile) {
    return tile * j->p->x_rows / j->tiles;
}

/* The pairs of so many numbers, in whole blocks. */
static int64_t pairs(const bf16_job *j, int64_t numbers) {
    return wg__ceil_divide(numbers, 2 * j->kernels->block_pairs) * j->kernels->block_pairs;
}

static void pack_tiles(int64_t begin, int64_t end, void *context) {
    const bf16_job *j = context;
    for (int64_t t = begin; t < end; t++) {
        const int64_t row = first_row(j, t), rows = first_row(j, t + 1) - row;
        j->kernels->pack_tile(rows, j->p->n, j->p->x + row * j->p->x_stride, j->p->x_stride,
                              j->x + row * pairs(j, j->p->n) * j->kernels->pair_bytes);
    }
}

typedef struct bf16_unit {
    const wg__quantized_product *p;
    int64_t from, to;      /* tiles */
    int64_t output, count; /* of a panel */
    int64_t row;           /* of x and y, the first */
    float bias[WG__MOST_PAIR_COLUMNS];
    _Alignas(CACHE_LINE) float sums[BF16_ROWS * WG__MOST_PAIR_COLUMNS];
    _Alignas(CACHE_LINE) char panel[PANEL_BYTES];
} bf16_unit;

/* Multiplies the piece at `depth` of the unit's weights by all its tiles. */
static void multiply_piece(const bf16_job *j, bf16_unit *u, int64_t depth) {
    const wg__bf16_kernels *kernels = j->kernels;
    const wg__quantized_product *p = u->p;
    const int64_t n = wg__smaller(j->depth, p->n - depth);
    const bool first = depth == 0, to_y = depth + n == p->n && u->count == kernels->columns;
    /* The next piece of the unit's outputs, or the first piece of the next panel. */
    const bool is_last = depth + j->depth >= p->n;
    const int64_t next_output = u->output + (is_last ? kernels->columns : 0),
                  at = is_last ? 0 : depth + j->depth,
                  next_count = wg__smaller(kernels->columns, p->outputs - next_output),
                  next_bytes = 2 * wg__smaller(j->depth, p->n - at);
    kernels->pack_panel(u->count, n, p->weight + u->output * p->weight_stride + 2 * depth,
                        p->weight_stride, u->panel);
    for (int64_t t = u->from; t < u->to; t++) {
        const int64_t row = first_row(j, t), rows = first_row(j, t + 1) - row;
        float *sums = u->sums + (row - u->row) * kernels->columns;
        /* Each tile prefetches a share of the weights that follow this piece. */
        const int64_t share = t - u->from, shares = u->to - u->from;
        for (int64_t r = share * next_count / shares; r < (share + 1) * next_count / shares; r++)
            for (int64_t b = 0; b < next_bytes; b += CACHE_LINE)
                __builtin_prefetch(p->weight + (next_output + r) * p->weight_stride + 2 * at + b, 0,
                                   3);
        kernels->multiply(&(wg__pair_product){
            .rows = rows,
            .pairs = pairs(j, n),
            .panel = u->panel,
            .tile = j->x + (row * pairs(j, p->n) + rows * depth / 2) * kernels->pair_bytes,
            .from = first ? u->bias : sums,
            .from_row = first ? 0 : kernels->columns,
            .to = to_y ? p->y + row * p->y_stride + u->output : sums,
            .to_row = to_y ? p->y_stride : kernels->columns});
    }
}

static void multiply_bf16_units(int64_t begin, int64_t end, void *context) {
    const bf16_job *j = context;
    const int64_t columns = j->kernels->columns;
    bf16_unit u;
    if (j->kernels->begin)
        j->kernels->begin();
    for (int64_t i = begin; i < end; i++) {
        int64_t panel = i % j->panels;
        const wg__quantized_product *p = j->p;
        for (; panel >= wg__ceil_divide(p->outputs, columns); p++)
            panel -= wg__ceil_divide(p->outputs, columns);
        const int64_t part = i / j->panels, output = panel * columns;
        u.p = p;
        u.from = part * j->tiles / j->parts;
        u.to = (part + 1) * j->tiles / j->parts;
        u.output = output;
        u.count = wg__smaller(columns, p->outputs - output);
        u.row = first_row(j, u.from);
        for (int64_t o = 0; o < columns; o++)
            u.bias[o] = p->bias && o < u.count ? p->bias[output + o] : 0;
        for (int64_t depth = 0; depth < p->n; depth += j->depth)
            multiply_piece(j, &u, depth);
        const int64_t row_end = first_row(j, u.to);
        for (int64_t r = u.row; u.count < columns && r < row_end; r++)
            memcpy(p->y + r * p->y_stride + output, u.sums + (r - u.row) * columns,
                   (size_t)u.count * sizeof *p->y);
    }
    if (j->kernels->end)
        j->kernels->end();
}

int wg__bf16_product(const wg__bf16_kernels *kernels, int count,
                     const wg__quantized_product *products) {
    const int64_t x_rows = products->x_rows, n = products->n;
    bf16_job j = {.kernels = kernels,
                  .p = products,
                  .depth = 2 * PANEL_BYTES / (kernels->columns * kernels->pair_bytes),
                  .tiles = wg__ceil_divide(x_rows, kernels->tile_rows)};
    for (int i = 0; i < count; i++)
        j.panels += wg__ceil_divide(products[i].outputs, kernels->columns);
    if (j.panels == 0 || x_rows == 0)
        return 0;
    j.parts = wg__ceil_divide(j.tiles, BF16_ROWS / kernels->tile_rows);
    j.x = wg__alloc_array(
        wg__times(wg__times(x_rows, pairs(&j, n)), kernels->pair_bytes) + WG__TILE_ROOM, 1);
    if (!j.x)
        return -1;
    memset(j.x + x_rows * pairs(&j, n) * kernels->pair_bytes, 0, WG__TILE_ROOM);
    wg__parallel_for(j.tiles, 1 + WORK / (n * kernels->tile_rows + 1), pack_tiles, &j);
    wg__parallel_for(j.parts * j.panels, 1, multiply_bf16_units, &j);
    wg__free(j.x);
    return 0;
}

/* ---- Blocks of integers. A panel is a group of 16 outputs. Rows of the weight that are not stored
 * interleaved (x16) are interleaved here, a piece at a time. ---- */

enum {
    BLOCK_ROWS =
        12 * WG__MOST_TILE_ROWS, /* rows of x in a unit; their tiles stay in the L2 cache */
    GATHERED = 16,               /* blocks of a row that are interleaved at a time */
};

typedef struct block_job {
    const wg__quantized_product *p; /* products of the same x */
    wg_quantization quantization;   /* of a single row, without x16 */
    bool side_by_side;
    const wg__block_kernels *kernels;
    int64_t groups; /* of 16 outputs, of all products together */
    int64_t blocks;
    uint8_t *tiles;
} block_job;

static void quantize_tiles(int64_t begin, int64_t end, void *context) {
    const block_job *j = context;
    const int32_t offset =
        j->quantization == WG_QUANTIZATION_Q8_0 ? j->kernels->q8_0_offset : j->kernels->q4_0_offset;
    for (int64_t t = begin; t < end; t++) {
        const int64_t row = t * j->kernels->tile_rows;
        const int64_t rows = wg__smaller(j->kernels->tile_rows, j->p->x_rows - row);
        j->kernels->quantize(rows, j->blocks, j->p->x + row * j->p->x_stride, j->p->x_stride,
                             offset, j->tiles + row * j->blocks * WG__TILE_BLOCK);
    }
}

/* Adds the products of tiles from..to with `count` blocks of 16 rows, from block `first` on. */
static void multiply_tiles(const block_job *j, int64_t from, int64_t to, int64_t first,
                           int64_t count, const uint8_t *weights, float *sums) {
    for (int64_t t = from; t < to; t++) {
        const int64_t row = t * j->kernels->tile_rows;
        const int64_t rows = wg__smaller(j->kernels->tile_rows, j->p->x_rows - row);
        j->kernels->multiply(j->quantization, rows, count, weights,
                             j->tiles + (row * j->blocks + first * rows) * WG__TILE_BLOCK, sums);
        sums += rows * WG__GROUP;
    }
}

static void multiply_block_units(int64_t begin, int64_t end, void *context) {
    static const uint8_t zeros[WG__MOST_BLOCK_BYTES];
    const block_job *j = context;
    const int64_t bytes = wg__quantization_block_bytes(j->quantization);
    for (int64_t u = begin; u < end; u++) {
        int64_t group = u % j->groups;
        const wg__quantized_product *p = j->p;
        for (; group >= wg__ceil_divide(p->outputs, WG__GROUP); p++)
            group -= wg__ceil_divide(p->outputs, WG__GROUP);
        const int64_t row = u / j->groups * BLOCK_ROWS, output = group * WG__GROUP;
        const int64_t rows = wg__smaller(BLOCK_ROWS, p->x_rows - row),
                      from = row / j->kernels->tile_rows,
                      to = wg__ceil_divide(row + rows, j->kernels->tile_rows);
        const bool in_place = j->side_by_side && output + WG__GROUP <= p->outputs;
        const size_t count_bytes =
            (size_t)wg__smaller(WG__GROUP, p->outputs - output) * sizeof(float);
        float sums[BLOCK_ROWS * WG__GROUP], bias[WG__GROUP] = {0};
        if (p->bias)
            memcpy(bias, p->bias + output, count_bytes);
        for (int64_t r = 0; r < rows; r++)
            memcpy(sums + r * WG__GROUP, bias, sizeof bias);
        const uint8_t *weight = (const uint8_t *)p->weight + output * p->weight_stride;
        if (in_place)
            multiply_tiles(j, from, to, 0, j->blocks, weight, sums);
        for (int64_t first = 0; !in_place && first < j->blocks; first += GATHERED) {
            uint8_t piece[GATHERED * WG__GROUP * WG__MOST_BLOCK_BYTES];
            const int64_t count = wg__smaller(GATHERED, j->blocks - first);
            /* Interleaves `count` blocks of up to 16 rows; zeros beyond the last row. */
            for (int64_t r = 0; r < WG__GROUP; r++)
                for (int64_t b = 0; b < count; b++)
                    wg__group_put(j->quantization, r,
                                  output + r < p->outputs
                                      ? weight + r * p->weight_stride + (first + b) * bytes
                                      : zeros,
                                  piece + b * bytes * WG__GROUP);
            multiply_tiles(j, from, to, first, count, piece, sums);
        }
        for (int64_t r = 0; r < rows; r++)
            memcpy(p->y + (row + r) * p->y_stride + output, sums + r * WG__GROUP, count_bytes);
    }
}

int wg__block_product(wg_quantization quantization, int count,
                      const wg__quantized_product *products) {
    const int64_t x_rows = products->x_rows, n = products->n;
    const wg_quantization of_a_row = wg__quantization_of_a_row(quantization);
    const wg__block_kernels *kernels = wg__block_kernels_at(WG__BEST);
    block_job j = {.p = products,
                   .quantization = of_a_row,
                   .side_by_side = quantization != of_a_row,
                   .kernels = kernels,
                   .blocks = n / WG__BLOCK};
    for (int i = 0; i < count; i++)
        j.groups += wg__ceil_divide(products[i].outputs, WG__GROUP);
    if (j.groups == 0 || x_rows == 0)
        return 0;
    j.tiles = wg__alloc_array(wg__times(wg__times(x_rows, j.blocks), WG__TILE_BLOCK), 1);
    if (!j.tiles)
        return -1;
    const int64_t tiles = wg__ceil_divide(x_rows, kernels->tile_rows),
                  units = wg__ceil_divide(x_rows, BLOCK_ROWS) * j.groups,
                  unit_work = wg__smaller(x_rows, BLOCK_ROWS) * WG__GROUP * n;
    wg__parallel_for(tiles, 1 + WORK / (n * kernels->tile_rows + 1), quantize_tiles, &j);
    wg__parallel_for(units, 1 + WORK / (unit_work + 1), multiply_block_units, &j);
    wg__free(j.tiles);
    return 0;
}
