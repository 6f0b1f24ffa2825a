/* Products of many rows with weights in bf16.
 *
 *                    panel
 *     weights W^T    +----+
 *                    +----+ depth     All of x is laid in tiles first. A unit of work is some tiles
 *        x  +------+ +----+           by the outputs of a panel: piece after piece of these is laid
 *           |tiles | |unit|           in the nearest caches, where all the tiles meet it.
 *           +------+ +----+
 */
#include "tensor/gemm/bf16_product.h"

#include <string.h>

#include "base/internal.h"
#include "tensor/iter.h"

enum {
    PANEL_BYTES = 32768, /* what the nearest cache has; with less, sums come and go more often */
    ROWS_AT_ONCE = 240,  /* of x, for which a panel is made anew */
    CACHE_LINE = 64,
    WORK = 16384, /* numbers laid that are worth a chunk */
};

typedef struct job {
    const wg__bf16_kernels *kernels;
    const wg__quantized_product *p; /* of the same x */
    int64_t panels;                 /* of all products together */
    int64_t tiles, parts;           /* of tiles, as many as there are units of a panel */
    int64_t depth;                  /* numbers of a panel's rows */
    char *x;
} job;

/* The rows of x are shared evenly among the tiles, and these among the parts. */
static int64_t first_row(const job *j, int64_t tile) {
    return tile * j->p->x_rows / j->tiles;
}

static int64_t first_tile(const job *j, int64_t part) {
    return part * j->tiles / j->parts;
}

static int64_t pairs(int64_t numbers) {
    return wg__ceil_divide(numbers, 2);
}

static void lay_tiles(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    for (int64_t t = begin; t < end; t++) {
        const int64_t row = first_row(j, t), rows = first_row(j, t + 1) - row;
        j->kernels->lay_rows(rows, j->p->n, j->p->x + row * j->p->x_stride, j->p->x_stride,
                             j->x + row * pairs(j->p->n) * j->kernels->pair_bytes);
    }
}

/* ---- A unit ---- */

typedef struct unit {
    const wg__quantized_product *p;
    int64_t from, to;      /* tiles */
    int64_t output, count; /* of a panel */
    int64_t row;           /* of x and y, the first */
    float bias[WG__MOST_PAIR_COLUMNS];
    _Alignas(CACHE_LINE) float sums[ROWS_AT_ONCE * WG__MOST_PAIR_COLUMNS];
    _Alignas(CACHE_LINE) char panel[PANEL_BYTES];
} unit;

/* What comes after numbers depth... of the unit's outputs is fetched, share by share. */
static void fetch(const job *j, const unit *u, int64_t depth, int64_t share, int64_t shares) {
    const wg__quantized_product *p = u->p;
    const bool last = depth + j->depth >= p->n;
    const int64_t output = u->output + (last ? j->kernels->columns : 0),
                  at = last ? 0 : depth + j->depth,
                  count = wg__smaller(j->kernels->columns, p->outputs - output),
                  bytes = 2 * wg__smaller(j->depth, p->n - at);
    for (int64_t r = share * count / shares; r < (share + 1) * count / shares; r++)
        for (int64_t b = 0; b < bytes; b += CACHE_LINE)
            __builtin_prefetch(p->weight + (output + r) * p->weight_stride + 2 * at + b, 0, 3);
}

/* Numbers depth... of the unit's outputs by all its tiles. */
static void multiply_piece(const job *j, unit *u, int64_t depth) {
    const wg__bf16_kernels *kernels = j->kernels;
    const wg__quantized_product *p = u->p;
    const int64_t n = wg__smaller(j->depth, p->n - depth);
    const bool first = depth == 0, to_y = depth + n == p->n && u->count == kernels->columns;
    kernels->lay_panel(u->count, n, p->weight + u->output * p->weight_stride + 2 * depth,
                       p->weight_stride, u->panel);
    for (int64_t t = u->from; t < u->to; t++) {
        const int64_t row = first_row(j, t), rows = first_row(j, t + 1) - row;
        float *sums = u->sums + (row - u->row) * kernels->columns;
        fetch(j, u, depth, t - u->from, u->to - u->from);
        kernels->multiply(&(wg__pair_product){
            .rows = rows,
            .pairs = pairs(n),
            .panel = u->panel,
            .tile = j->x + (row * pairs(p->n) + rows * depth / 2) * kernels->pair_bytes,
            .from = first ? u->bias : sums,
            .from_row = first ? 0 : kernels->columns,
            .to = to_y ? p->y + row * p->y_stride + u->output : sums,
            .to_row = to_y ? p->y_stride : kernels->columns});
    }
}

static void multiply_unit(const job *j, const wg__quantized_product *p, int64_t part,
                          int64_t output, unit *u) {
    const int64_t columns = j->kernels->columns;
    u->p = p;
    u->from = first_tile(j, part);
    u->to = first_tile(j, part + 1);
    u->output = output;
    u->count = wg__smaller(columns, p->outputs - output);
    u->row = first_row(j, u->from);
    for (int64_t o = 0; o < columns; o++)
        u->bias[o] = p->bias && o < u->count ? p->bias[output + o] : 0;
    for (int64_t depth = 0; depth < p->n; depth += j->depth)
        multiply_piece(j, u, depth);
    const int64_t end = first_row(j, u->to);
    for (int64_t r = u->row; u->count < columns && r < end; r++)
        memcpy(p->y + r * p->y_stride + output, u->sums + (r - u->row) * columns,
               (size_t)u->count * sizeof *p->y);
}

static int64_t panels_of(const job *j, const wg__quantized_product *p) {
    return wg__ceil_divide(p->outputs, j->kernels->columns);
}

static void multiply_units(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    unit u;
    for (int64_t i = begin; i < end; i++) {
        int64_t panel = i % j->panels;
        const wg__quantized_product *p = j->p;
        for (; panel >= panels_of(j, p); p++)
            panel -= panels_of(j, p);
        multiply_unit(j, p, i / j->panels, panel * j->kernels->columns, &u);
    }
}

int wg__bf16_product(const wg__bf16_kernels *kernels, int count,
                     const wg__quantized_product *products) {
    const int64_t x_rows = products->x_rows, n = products->n;
    job j = {.kernels = kernels,
             .p = products,
             .depth = 2 * PANEL_BYTES / (kernels->columns * kernels->pair_bytes),
             .tiles = wg__ceil_divide(x_rows, kernels->tile_rows)};
    for (int i = 0; i < count; i++)
        j.panels += panels_of(&j, &products[i]);
    if (j.panels == 0 || x_rows == 0)
        return 0;
    j.parts = wg__ceil_divide(j.tiles, ROWS_AT_ONCE / kernels->tile_rows);
    j.x = wg__alloc((size_t)(x_rows * pairs(n) * kernels->pair_bytes));
    if (!j.x)
        return -1;
    wg__parallel_for(j.tiles, 1 + WORK / (n * kernels->tile_rows + 1), lay_tiles, &j);
    wg__parallel_for(j.parts * j.panels, 1, multiply_units, &j);
    wg__free(j.x);
    return 0;
}
