/* Products of many rows with weights in bf16: a panel of W^T at a time becomes f32 in the nearest
 * caches, where all rows of x meet it. To memory it is never unpacked. */
#include "tensor/bf16_product.h"

#include <string.h>

#include "tensor/counts.h"
#include "tensor/iter.h"

enum {
    MOST_COLUMNS = 32, /* of a panel: WG__PANEL_VECTORS of the widest vectors */
    DEPTH = 128,       /* of a panel, so that it and what it is made of fit the nearest cache */
    ROWS_AT_ONCE = 240 /* of x, for which a panel is made anew */
};

typedef struct job {
    const wg__packed_product *p;
    const wg__simd *kernels;
    int64_t outputs, columns, panels; /* columns: of a panel */
} job;

/* The numbers from `depth` on of `count` rows of W, as a panel. */
static void make_panel(const job *j, int64_t output, int64_t count, int64_t depth, int64_t n,
                       float *panel) {
    float rows[MOST_COLUMNS * DEPTH];
    for (int64_t r = 0; r < count; r++)
        j->kernels->unpack[WG_PACKING_BF16](
            n, j->p->weight + (output + r) * j->p->weight_stride + 2 * depth, rows + r * n);
    j->kernels->pack_columns(count, n, rows, n, 1, panel);
}

static void multiply_unit(const job *j, int64_t row, int64_t output) {
    const wg__packed_product *p = j->p;
    const int64_t rows = wg__smaller(ROWS_AT_ONCE, p->x_rows - row),
                  count = wg__smaller(j->columns, j->outputs - output);
    float panel[MOST_COLUMNS * DEPTH], partial[ROWS_AT_ONCE * MOST_COLUMNS];
    float bias[MOST_COLUMNS] = {0};
    float *y = p->y + row * p->y_stride + output;
    const bool whole = count == j->columns; /* else whole vectors find room only here */
    float *c = whole ? y : partial;
    const int64_t c_row = whole ? p->y_stride : MOST_COLUMNS;
    if (p->bias)
        memcpy(bias, p->bias + output, (size_t)count * sizeof *bias);
    for (int64_t depth = 0; depth < p->n; depth += DEPTH) {
        const int64_t n = wg__smaller(DEPTH, p->n - depth);
        make_panel(j, output, count, depth, n, panel);
        j->kernels->panel_product(&(wg__panel_product){.m = rows,
                                                       .n = count,
                                                       .k = n,
                                                       .alpha = 1,
                                                       .a = p->x + row * p->x_stride + depth,
                                                       .a_row = p->x_stride,
                                                       .a_column = 1,
                                                       .b = panel,
                                                       .b_row = j->columns,
                                                       .d = depth == 0 ? bias : c,
                                                       .d_row = depth == 0 ? 0 : c_row,
                                                       .c = c,
                                                       .c_row = c_row});
    }
    for (int64_t r = 0; !whole && r < rows; r++)
        memcpy(y + r * p->y_stride, c + r * c_row, (size_t)count * sizeof *y);
}

static void multiply_units(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    for (int64_t u = begin; u < end; u++)
        multiply_unit(j, u / j->panels * ROWS_AT_ONCE, u % j->panels * j->columns);
}

void wg__bf16_product(int64_t outputs, const wg__packed_product *p) {
    const wg__simd *kernels = wg__simd_for(WG_F32);
    job j = {.p = p,
             .kernels = kernels,
             .outputs = outputs,
             .columns = WG__PANEL_VECTORS * kernels->lanes};
    j.panels = wg__ceil_divide(outputs, j.columns);
    wg__parallel_for(wg__ceil_divide(p->x_rows, ROWS_AT_ONCE) * j.panels, 1, multiply_units, &j);
}
