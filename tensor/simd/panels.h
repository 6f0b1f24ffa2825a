/* Products of matrices that are in the nearest caches (simd.h says what they compute): a tile of C,
 * some rows by a panel of B, is summed in registers.
 *
 *                     B   panel  panel
 *                        +-----+-----+
 *                        |     |     |      From A a number at a time, wherever it stands; from B
 *                        +-----+-----+      whole vectors, next to each other in a row of a panel.
 *        A  +-----+   C  +-----+-----+
 *           |     |      |tile |     |
 *           +-----+      +-----+-----+
 */
#include "tensor/simd/transpose.h"

/* As many as leave registers for a row of B and a number of A. */
#if defined(__AVX512F__)
#define WG__TILE_ROWS 8
#elif defined(__aarch64__)
#define WG__TILE_ROWS 12
#elif defined(__AVX2__)
#define WG__TILE_ROWS 6
#else
#define WG__TILE_ROWS 4
#endif

WG__OF_KNOWN void panel_tile(const int rows, const int vectors, const bool a_by_columns,
                             const wg__panel_product *p, const real *a, const real *b,
                             const real *d, real *c) {
    const int64_t a_row = a_by_columns ? 1 : p->a_row, a_column = p->a_column;
    vector sums[WG__TILE_ROWS][WG__PANEL_VECTORS];
    WG__UNROLL for (int r = 0; r < rows; r++) WG__UNROLL for (int v = 0; v < vectors; v++)
        sums[r][v] = (vector){0};
    /* C is written when all is summed: until then it can come from memory. */
    WG__UNROLL for (int r = 0; r < rows; r++) WG__UNROLL for (int v = 0; v < vectors; v++)
        __builtin_prefetch(c + r * p->c_row + v * LANES, 1);
    for (int64_t l = 0; l < p->k; l++, a += a_column, b += p->b_row) {
        vector row[WG__PANEL_VECTORS];
        WG__UNROLL for (int v = 0; v < vectors; v++) row[v] = load(b + v * LANES);
        WG__UNROLL for (int r = 0; r < rows; r++) {
            const real factor = a[r * a_row];
            WG__UNROLL for (int v = 0; v < vectors; v++) sums[r][v] += factor * row[v];
        }
    }
    const real alpha = (real)p->alpha;
    WG__UNROLL for (int r = 0; r < rows; r++, c += p->c_row) {
        WG__UNROLL for (int v = 0; v < vectors; v++)
            store(c + v * LANES, d ? load(d + v * LANES) + alpha * sums[r][v] : alpha * sums[r][v]);
        d = d ? d + p->d_row : NULL;
    }
}

/* Tiles of so many rows, while that many are left. */
#define WG__TILES(rows)                                                                            \
    for (; i + (rows) <= p->m; i += (rows))                                                        \
        panel_tile(rows, vectors, a_by_columns, p, a + i * a_row, b, d ? d + i * p->d_row : NULL,  \
                   c + i * p->c_row);

WG__OF_KNOWN void panel_column(const int vectors, const bool a_by_columns,
                               const wg__panel_product *p, const real *b, const real *d, real *c) {
    const int64_t a_row = a_by_columns ? 1 : p->a_row;
    const real *a = p->a;
    int64_t i = 0;
    WG__TILES(WG__TILE_ROWS)
#if WG__TILE_ROWS > 8
    WG__TILES(8)
#endif
#if WG__TILE_ROWS > 4
    WG__TILES(4)
#endif
    WG__TILES(2)
    WG__TILES(1)
}

static void panel_product(const wg__panel_product *p) {
    const int64_t panel = WG__PANEL_VECTORS * LANES;
    const bool by_columns = p->a_row == 1;
    for (int64_t j = 0; j < p->n; j += panel) {
        const real *b = (const real *)p->b + j / panel * p->b_panel;
        const real *d = p->d ? (const real *)p->d + j : NULL;
        real *c = (real *)p->c + j;
        const bool whole = p->n - j > LANES;
        if (whole && by_columns)
            panel_column(WG__PANEL_VECTORS, true, p, b, d, c);
        else if (whole)
            panel_column(WG__PANEL_VECTORS, false, p, b, d, c);
        else if (by_columns)
            panel_column(1, true, p, b, d, c);
        else
            panel_column(1, false, p, b, d, c);
    }
}

/* ---- Packing ---- */

/* Columns begin..begin + LANES of a panel, of as many rows of x. */
static inline void pack_vector_columns(int64_t n, const real *x, int64_t stride, real *to) {
    const int64_t panel = WG__PANEL_VECTORS * LANES;
    int64_t l = 0;
    for (; l + LANES <= n; l += LANES) {
        vector v[LANES];
        WG__UNROLL for (int i = 0; i < LANES; i++) v[i] = load(x + i * stride + l);
        turn(v);
        WG__UNROLL for (int i = 0; i < LANES; i++) store(to + (l + i) * panel, v[i]);
    }
    for (; l < n; l++)
        for (int i = 0; i < LANES; i++)
            to[l * panel + i] = x[i * stride + l];
}

static void pack_columns(int64_t count, int64_t n, const void *x, int64_t stride, int64_t step,
                         void *panels) {
    const int64_t panel = WG__PANEL_VECTORS * LANES;
    for (int64_t begin = 0; begin < count; begin += LANES) {
        const real *from = (const real *)x + begin * stride;
        real *to = (real *)panels + begin / panel * panel * n + begin % panel;
        const int64_t here = count - begin < LANES ? count - begin : LANES;
        if (here == LANES && step == 1) {
            pack_vector_columns(n, from, stride, to);
            continue;
        }
        for (int64_t l = 0; l < n; l++)
            for (int64_t i = 0; i < LANES; i++)
                to[l * panel + i] = i < here ? from[i * stride + l * step] : 0;
    }
}

static void pack_rows(int64_t count, int64_t n, const void *x, int64_t stride, int64_t step,
                      void *rows) {
    const int64_t padded = (n + LANES - 1) / LANES * LANES;
    real *to = rows;
    for (int64_t i = 0; i < count; i++, to += padded) {
        const real *from = (const real *)x + i * stride;
        int64_t j = 0;
        for (; step == 1 && j + LANES <= n; j += LANES)
            store(to + j, load(from + j));
        for (; j < n; j++)
            to[j] = from[j * step];
        for (; j < padded; j++)
            to[j] = 0;
    }
}
