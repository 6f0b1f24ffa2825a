/* Products of vectors and of small matrices (contracts in simd.h). Every element is summed in the
 * order of k, so its bits do not depend on the split of the work. */

/* Four independent sums hide the latency of an addition; they are added in f64 after each block. */
static inline double dot(int64_t n, const real *a, const real *b) {
    double total = 0;
    int64_t i = 0;
    while (i + LANES <= n) {
        int64_t end = n - i < SUM_BLOCK ? n : i + SUM_BLOCK;
        vector s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
        for (; i + 4 * LANES <= end; i += 4 * LANES) {
            s0 += load_stream(a + i) * load(b + i);
            s1 += load_stream(a + i + LANES) * load(b + i + LANES);
            s2 += load_stream(a + i + 2 * LANES) * load(b + i + 2 * LANES);
            s3 += load_stream(a + i + 3 * LANES) * load(b + i + 3 * LANES);
        }
        for (; i + LANES <= end; i += LANES)
            s0 += load_stream(a + i) * load(b + i);
        total += (double)sum_lanes((s0 + s1) + (s2 + s3));
    }
    if (i < n)
        total += (double)sum_lanes(load_part(a + i, n - i, 0) * load_part(b + i, n - i, 0));
    return total;
}

/* The same for a few rows of x; the row of A is read once for all. */
WG__ALWAYS_INLINE void dots(const int x_rows, int64_t n, const real *a, const real *x,
                            int64_t x_stride, double *totals) {
    int64_t i = 0;
    for (int r = 0; r < x_rows; r++)
        totals[r] = 0;
    while (i + LANES <= n) {
        const int64_t end = n - i < SUM_BLOCK ? n : i + SUM_BLOCK;
        vector sums[WG__ROWS_AT_ONCE][2] = {{{0}}};
        for (; i + 2 * LANES <= end; i += 2 * LANES) {
            const vector first = load_stream(a + i), second = load_stream(a + i + LANES);
            for (int r = 0; r < x_rows; r++) {
                sums[r][0] += first * load(x + r * x_stride + i);
                sums[r][1] += second * load(x + r * x_stride + i + LANES);
            }
        }
        for (; i + LANES <= end; i += LANES)
            for (int r = 0; r < x_rows; r++)
                sums[r][0] += load_stream(a + i) * load(x + r * x_stride + i);
        for (int r = 0; r < x_rows; r++)
            totals[r] += (double)sum_lanes(sums[r][0] + sums[r][1]);
    }
    if (i < n)
        for (int r = 0; r < x_rows; r++)
            totals[r] += (double)sum_lanes(load_part(a + i, n - i, 0) *
                                           load_part(x + r * x_stride + i, n - i, 0));
}

/* Elements begin..end of x_rows rows of y. */
WG__ALWAYS_INLINE void products_of_rows(const int x_rows, const wg__row_products *p, int64_t begin,
                                        int64_t end, const real *x, real *y) {
    double totals[WG__ROWS_AT_ONCE];
    for (int64_t o = begin; o < end; o++) {
        const real *a = (const real *)p->a + o * p->a_stride;
        if (x_rows == 1)
            totals[0] = dot(p->n, a, x);
        else
            dots(x_rows, p->n, a, x, p->x_stride, totals);
        for (int r = 0; r < x_rows; r++) {
            real *to = y + r * p->y_stride + o * p->y_step;
            const double product = p->alpha * totals[r];
            *to = (real)(p->beta == 0 ? product : product + p->beta * (double)*to);
        }
    }
}

static void row_products(int64_t begin, int64_t end, void *context) {
    const wg__row_products *p = context;
#define OF(rows) products_of_rows(rows, p, begin, end, x, y)
    for (int64_t r = 0; r < p->x_rows; r += WG__ROWS_AT_ONCE) {
        const real *x = (const real *)p->x + r * p->x_stride;
        real *y = (real *)p->y + r * p->y_stride;
        const int64_t left = p->x_rows - r;
        switch (left < WG__ROWS_AT_ONCE ? left : WG__ROWS_AT_ONCE) {
            WG__CASES(WG__ROWS_AT_ONCE, OF)
        }
    }
#undef OF
}

/* Sums of at most this many vectors stay in registers from the first row to the last. */
enum { FEW_VECTORS = 4 };

WG__ALWAYS_INLINE void add_short_rows(const int vectors, int64_t rows, int64_t row_stride,
                                      const real *a, real scale, const real *x, int64_t x_stride,
                                      real *y) {
    vector sums[FEW_VECTORS];
    for (int v = 0; v < vectors; v++)
        sums[v] = load(y + v * LANES);
    for (int64_t l = 0; l < rows; l++) {
        const real factor = scale * x[l * x_stride];
        for (int v = 0; v < vectors; v++)
            sums[v] += factor * load(a + l * row_stride + v * LANES);
    }
    for (int v = 0; v < vectors; v++)
        store(y + v * LANES, sums[v]);
}

/* y += the sum of 4 rows, each times its factor, added in order. */
static inline void add_four_rows(int64_t n, int64_t row_stride, const real *a, const real *factor,
                                 real *y) {
    const real *a1 = a + row_stride, *a2 = a1 + row_stride, *a3 = a2 + row_stride;
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        vector sum = load(y + j) + factor[0] * load(a + j);
        sum += factor[1] * load(a1 + j);
        sum += factor[2] * load(a2 + j);
        sum += factor[3] * load(a3 + j);
        store(y + j, sum);
    }
    if (j < n) {
        const int64_t rest = n - j;
        vector sum = load_part(y + j, rest, 0) + factor[0] * load_part(a + j, rest, 0);
        sum += factor[1] * load_part(a1 + j, rest, 0);
        sum += factor[2] * load_part(a2 + j, rest, 0);
        sum += factor[3] * load_part(a3 + j, rest, 0);
        store_part(y + j, sum, rest);
    }
}

static void add_scaled_rows(int64_t rows, int64_t n, int64_t row_stride, const void *a,
                            double scale, const void *x, int64_t x_stride, void *y) {
    const real *row = a, *by = x;
    real *sum = y;
    if (n == FEW_VECTORS * LANES) {
        add_short_rows(FEW_VECTORS, rows, row_stride, row, (real)scale, by, x_stride, sum);
        return;
    }
    if (n == FEW_VECTORS / 2 * LANES) {
        add_short_rows(FEW_VECTORS / 2, rows, row_stride, row, (real)scale, by, x_stride, sum);
        return;
    }
    int64_t l = 0;
    for (; l + 4 <= rows; l += 4) {
        real factor[4];
        for (int i = 0; i < 4; i++)
            factor[i] = (real)scale * by[(l + i) * x_stride];
        add_four_rows(n, row_stride, row + l * row_stride, factor, sum);
    }
    for (; l < rows; l++) {
        const real factor = (real)scale * by[l * x_stride];
        int64_t j = 0;
        for (; j + LANES <= n; j += LANES)
            store(sum + j, load(sum + j) + factor * load(row + l * row_stride + j));
        if (j < n)
            store_part(sum + j,
                       load_part(sum + j, n - j, 0) +
                           factor * load_part(row + l * row_stride + j, n - j, 0),
                       n - j);
    }
}

/* ---- Small matrices: a panel of B is copied, its rows padded to whole vectors; then each row of C
 * is summed over the panel in registers. ---- */

enum { PANEL = 4 }; /* vectors in a row of a panel, at most */

WG__ALWAYS_INLINE void small_panel(const int vectors, int64_t m, int64_t n, int64_t k, double alpha,
                                   const real *a, int64_t a_row, int64_t a_column, const vector *b,
                                   double beta, real *c, int64_t c_row) {
    for (int64_t i = 0; i < m; i++) {
        vector sum[PANEL];
        for (int v = 0; v < vectors; v++)
            sum[v] = (vector){0};
        for (int64_t l = 0; l < k; l++) {
            const real factor = a[i * a_row + l * a_column];
            for (int v = 0; v < vectors; v++)
                sum[v] += factor * b[l * vectors + v];
        }
        for (int v = 0; v < vectors; v++) {
            const int64_t count = n - v * LANES;
            real *to = c + i * c_row + v * LANES;
            vector y = (real)alpha * sum[v];
            if (count >= LANES) {
                store(to, beta != 0 ? y + (real)beta * load(to) : y);
                continue;
            }
            if (beta != 0)
                y += (real)beta * load_part(to, count, 0);
            store_part(to, y, count);
        }
    }
}

static void small_product(int64_t m, int64_t n, int64_t k, double alpha, const void *a,
                          int64_t a_row, int64_t a_column, const void *b, int64_t b_row,
                          int64_t b_column, double beta, void *c, int64_t c_row) {
    vector panel[WG__SMALL_K * PANEL];
    for (int64_t begin = 0; begin < n; begin += PANEL * LANES) {
        const int64_t count = n - begin < PANEL * LANES ? n - begin : PANEL * LANES;
        const int vectors = (int)((count + LANES - 1) / LANES);
        for (int64_t l = 0; l < k; l++) {
            real *to = (real *)&panel[l * vectors];
            const real *from = (const real *)b + l * b_row + begin * b_column;
            panel[(l + 1) * vectors - 1] = (vector){0};
            for (int64_t j = 0; j < count; j++)
                to[j] = from[j * b_column];
        }
        real *to = (real *)c + begin;
#define OF(vectors)                                                                                \
    small_panel(vectors, m, count, k, alpha, a, a_row, a_column, panel, beta, to, c_row)
        switch (vectors) { WG__CASES(4, OF) } /* a constant number of sums stays in registers */
#undef OF
    }
}

/* ---- Panels ----
 *
 * Products of matrices that fit in the L1 and L2 caches (contracts in simd.h). A tile of C, some
 * rows by a panel of B, is summed in registers.
 *
 *                     B   panel  panel
 *                        +-----+-----+
 *                        |     |     |      The kernel reads A one number at a time, at any stride,
 *                        +-----+-----+      and whole rows of a panel of B, which are contiguous.
 *        A  +-----+   C  +-----+-----+
 *           |     |      |tile |     |
 *           +-----+      +-----+-----+ */

/* The most rows that leave registers for a row of a panel and a number of A. */
#if defined(__AVX512F__)
#define WG__TILE_ROWS 8
#elif defined(__aarch64__) && !defined(WG__NEON_PAIRS)
#define WG__TILE_ROWS 12
#elif defined(__AVX2__) || defined(WG__NEON_PAIRS)
#define WG__TILE_ROWS 6
#else
#define WG__TILE_ROWS 4
#endif

WG__ALWAYS_INLINE void panel_tile(const int rows, const int vectors, const bool a_by_columns,
                                  const wg__panel_product *p, const real *a, const real *b,
                                  const real *d, real *c) {
    const int64_t a_row = a_by_columns ? 1 : p->a_row, a_column = p->a_column;
    const int pieces = vectors * PIECES;
    piece sums[WG__TILE_ROWS][WG__PANEL_VECTORS * PIECES];
    WG__UNROLL for (int r = 0; r < rows; r++) WG__UNROLL for (int i = 0; i < pieces; i++)
        sums[r][i] = (piece){0};
    /* C is written after the sums, so there is time to fetch it from memory. */
    WG__UNROLL for (int r = 0; r < rows; r++) WG__UNROLL for (int v = 0; v < vectors; v++)
        __builtin_prefetch(c + r * p->c_row + v * LANES, 1);
    for (int64_t l = 0; l < p->k; l++, a += a_column, b += p->b_row) {
        piece row[WG__PANEL_VECTORS * PIECES];
        WG__UNROLL for (int i = 0; i < pieces; i++) row[i] = load_piece(b + i * PIECE_LANES);
        WG__UNROLL for (int r = 0; r < rows; r++) {
            const real factor = a[r * a_row];
            WG__UNROLL for (int i = 0; i < pieces; i++) sums[r][i] += factor * row[i];
        }
    }
    const real alpha = (real)p->alpha;
    WG__UNROLL for (int r = 0; r < rows; r++, c += p->c_row) {
        WG__UNROLL for (int i = 0; i < pieces; i++) store_piece(
            c + i * PIECE_LANES,
            d ? load_piece(d + i * PIECE_LANES) + alpha * sums[r][i] : alpha * sums[r][i]);
        d = d ? d + p->d_row : NULL;
    }
}

/* Computes tiles of `rows` rows while at least `rows` rows are left. */
#define WG__TILES(rows)                                                                            \
    for (; i + (rows) <= p->m; i += (rows))                                                        \
        panel_tile(rows, vectors, a_by_columns, p, a + i * a_row, b, d ? d + i * p->d_row : NULL,  \
                   c + i * p->c_row);

WG__ALWAYS_INLINE void panel_column(const int vectors, const bool a_by_columns,
                                    const wg__panel_product *p, const real *b, const real *d,
                                    real *c) {
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

/* Packs LANES rows of x as columns of a panel. */
static inline void pack_vector_columns(int64_t n, const real *x, int64_t stride, real *to) {
    const int64_t panel = WG__PANEL_VECTORS * LANES;
    int64_t l = 0;
    for (; l + LANES <= n; l += LANES) {
        vector v[LANES];
        WG__UNROLL for (int i = 0; i < LANES; i++) v[i] = load(x + i * stride + l);
        transpose_vectors(v);
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
