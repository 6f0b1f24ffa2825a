/* Softmax of many lines at once, its logarithm, and the gradients of both.
 *
 *                     columns -->
 *     n      x . . .  | LANES | LANES | ...       element i of line j is x[i stride + j]: the
 *     rows   | . . .                              lines lie side by side, and a vector holds an
 *            v . . .                              element of each of LANES of them
 *
 * A line's sums are added up in runs of SUM_RUN elements, in their order. */

enum { COLUMN_VECTORS = 4, SUM_RUN = 256 };

/* The largest element of each line, or NaN if it has one. */
WG__ALWAYS_INLINE void largest_of_columns(const int vectors, const int64_t count, int64_t n,
                                          int64_t stride, const real *x, vector *most) {
    lanes undefined[COLUMN_VECTORS] = {{0}};
    for (int v = 0; v < vectors; v++)
        most[v] = -(real)INFINITY + (vector){0};
    for (int64_t i = 0; i < n; i++)
        for (int v = 0; v < vectors; v++) {
            const vector element = load_first(count, x + i * stride + v * LANES);
            most[v] = larger(element, most[v]);
            undefined[v] |= element != element;
        }
    for (int v = 0; v < vectors; v++)
        most[v] = choose(undefined[v], (real)NAN + (vector){0}, most[v]);
}

/* With a shift of 0, the exponentials of a line of -inf are all 0, and so is their sum. */
WG__ALWAYS_INLINE void few_columns(const bool logarithm, const int vectors, const int64_t count,
                                   int64_t n, int64_t stride, const real *x, real *y) {
    vector shift[COLUMN_VECTORS], sum[COLUMN_VECTORS], run[COLUMN_VECTORS];
    largest_of_columns(vectors, count, n, stride, x, shift);
    for (int v = 0; v < vectors; v++) {
        sum[v] = (vector){0};
        if (!logarithm)
            shift[v] = choose(shift[v] == -(real)INFINITY, (vector){0}, shift[v]);
    }
    for (int64_t i = 0; i < n;) {
        const int64_t end = n - i < SUM_RUN ? n : i + SUM_RUN;
        memset(run, 0, sizeof run);
        for (; i < end; i++)
            for (int v = 0; v < vectors; v++) {
                const int64_t at = i * stride + v * LANES;
                const vector e = vector_exp(load_first(count, x + at) - shift[v]);
                run[v] += e;
                if (!logarithm)
                    store_first(count, y + at, e);
            }
        for (int v = 0; v < vectors; v++)
            sum[v] += run[v];
    }
    for (int v = 0; v < vectors; v++)
        sum[v] =
            logarithm ? vector_log(sum[v]) : choose(sum[v] == 0, (vector){0}, (real)1 / sum[v]);
    for (int64_t i = 0; i < n; i++)
        for (int v = 0; v < vectors; v++) {
            const int64_t at = i * stride + v * LANES;
            if (logarithm)
                store_first(count, y + at, load_first(count, x + at) - shift[v] - sum[v]);
            else
                store_first(count, y + at, load_first(count, y + at) * sum[v]);
        }
}

WG__ALWAYS_INLINE vector softmax_slope(const bool logarithm, vector y, vector dy, vector sum) {
    return logarithm ? dy - vector_exp(y) * sum : y * (dy - sum);
}

WG__ALWAYS_INLINE void few_columns_vjp(const bool logarithm, const int vectors, const int64_t count,
                                       int64_t n, int64_t stride, const real *y, const real *dy,
                                       real *dx) {
    vector sum[COLUMN_VECTORS] = {{0}}, run[COLUMN_VECTORS];
    for (int64_t i = 0; i < n;) {
        const int64_t end = n - i < SUM_RUN ? n : i + SUM_RUN;
        memset(run, 0, sizeof run);
        for (; i < end; i++)
            for (int v = 0; v < vectors; v++) {
                const int64_t at = i * stride + v * LANES;
                const vector g = load_first(count, dy + at);
                run[v] += logarithm ? g : g * load_first(count, y + at);
            }
        for (int v = 0; v < vectors; v++)
            sum[v] += run[v];
    }
    for (int64_t i = 0; i < n; i++)
        for (int v = 0; v < vectors; v++) {
            const int64_t at = i * stride + v * LANES;
            const vector slope = softmax_slope(logarithm, load_first(count, y + at),
                                               load_first(count, dy + at), sum[v]);
            store_first(count, dx + at, slope);
        }
}

/* Writes y: the softmax of a group of columns x or, with vjp, dx from the softmax x and dy. */
WG__ALWAYS_INLINE void column_group(const bool logarithm, const bool vjp, const int vectors,
                                    const int64_t count, int64_t n, int64_t stride, const real *x,
                                    const real *dy, real *y) {
    if (vjp)
        few_columns_vjp(logarithm, vectors, count, n, stride, x, dy, y);
    else
        few_columns(logarithm, vectors, count, n, stride, x, y);
}

/* Columns in groups of whole vectors; the remaining columns come last. */
WG__ALWAYS_INLINE void all_columns(const bool logarithm, const bool vjp, int64_t n, int64_t columns,
                                   int64_t stride, const real *x, const real *dy, real *y) {
    enum { GROUP = COLUMN_VECTORS * LANES };
    int64_t j = 0;
    for (; j + GROUP <= columns; j += GROUP)
        column_group(logarithm, vjp, COLUMN_VECTORS, LANES, n, stride, x + j, dy + j, y + j);
    for (; j + LANES <= columns; j += LANES)
        column_group(logarithm, vjp, 1, LANES, n, stride, x + j, dy + j, y + j);
    if (j < columns)
        column_group(logarithm, vjp, 1, columns - j, n, stride, x + j, dy + j, y + j);
}

static void softmax_columns(bool logarithm, int64_t n, int64_t columns, int64_t stride,
                            const void *x, const void *dy, void *y) {
    if (logarithm && dy)
        all_columns(true, true, n, columns, stride, x, dy, y);
    else if (logarithm)
        all_columns(true, false, n, columns, stride, x, x, y);
    else if (dy)
        all_columns(false, true, n, columns, stride, x, dy, y);
    else
        all_columns(false, false, n, columns, stride, x, x, y);
}

/* ---- Short rows: LANES rows at a time, transposed to lines side by side ---- */

/* t[i LANES + r] = element i of row r of the `count` rows of x, and 0 for missing rows. */
WG__ALWAYS_INLINE void transpose_rows(const int64_t count, int64_t n, const real *x, real *t) {
    for (int64_t i = 0; i < n; i += LANES) {
        const int64_t width = n - i < LANES ? n - i : LANES;
        vector v[LANES];
        WG__UNROLL for (int r = 0; r < LANES; r++) v[r] =
            r < count ? load_part(x + r * n + i, width, 0) : (vector){0};
        transpose_vectors(v);
        WG__UNROLL for (int e = 0; e < LANES; e++) store(t + (i + e) * LANES, v[e]);
    }
}

/* The reverse, for `count` rows of y. */
WG__ALWAYS_INLINE void transpose_back(const int64_t count, int64_t n, const real *t, real *y) {
    for (int64_t i = 0; i < n; i += LANES) {
        const int64_t width = n - i < LANES ? n - i : LANES;
        vector v[LANES];
        WG__UNROLL for (int e = 0; e < LANES; e++) v[e] = load(t + (i + e) * LANES);
        transpose_vectors(v);
        WG__UNROLL for (int r = 0; r < LANES; r++) if (r < count)
            store_part(y + r * n + i, v[r], width);
    }
}

WG__ALWAYS_INLINE void few_rows(const bool logarithm, const bool vjp, const int64_t count,
                                int64_t n, const real *x, const real *dy, real *y) {
    real tx[WG__SHORT_LINE * LANES], t[WG__SHORT_LINE * LANES];
    transpose_rows(count, n, x, vjp ? tx : t);
    if (vjp)
        transpose_rows(count, n, dy, t);
    column_group(logarithm, vjp, 1, LANES, n, LANES, vjp ? tx : t, t, t);
    transpose_back(count, n, t, y);
}

WG__ALWAYS_INLINE void short_rows(const bool logarithm, const bool vjp, int64_t rows, int64_t n,
                                  const real *x, const real *dy, real *y) {
    int64_t r = 0;
    for (; r + LANES <= rows; r += LANES)
        few_rows(logarithm, vjp, LANES, n, x + r * n, dy + r * n, y + r * n);
    if (r < rows)
        few_rows(logarithm, vjp, rows - r, n, x + r * n, dy + r * n, y + r * n);
}

static void softmax_short(bool logarithm, int64_t rows, int64_t n, const void *x, const void *dy,
                          void *y) {
    if (logarithm && dy)
        short_rows(true, true, rows, n, x, dy, y);
    else if (logarithm)
        short_rows(true, false, rows, n, x, x, y);
    else if (dy)
        short_rows(false, true, rows, n, x, dy, y);
    else
        short_rows(false, false, rows, n, x, x, y);
}

/* ---- The gradients along a row ---- */

WG__ALWAYS_INLINE void along_row_vjp(const bool logarithm, int64_t n, const real *y, const real *dy,
                                     real *dx) {
    double total = 0;
    int64_t i = 0;
    while (i + LANES <= n) {
        const int64_t end = n - i < SUM_BLOCK ? n : i + SUM_BLOCK;
        vector sum = {0};
        for (; i + LANES <= end; i += LANES)
            sum += logarithm ? load(dy + i) : load(dy + i) * load(y + i);
        total += (double)sum_lanes(sum);
    }
    if (i < n) {
        const vector g = load_part(dy + i, n - i, 0);
        total += (double)sum_lanes(logarithm ? g : g * load_part(y + i, n - i, 0));
    }
    const vector sum = (real)total + (vector){0};
    for (i = 0; i + LANES <= n; i += LANES)
        store(dx + i, softmax_slope(logarithm, load(y + i), load(dy + i), sum));
    if (i < n)
        store_part(
            dx + i,
            softmax_slope(logarithm, load_part(y + i, n - i, 0), load_part(dy + i, n - i, 0), sum),
            n - i);
}

static void row_softmax_vjp(bool logarithm, int64_t n, const void *y, const void *dy, void *dx) {
    if (logarithm)
        along_row_vjp(true, n, y, dy, dx);
    else
        along_row_vjp(false, n, y, dy, dx);
}
