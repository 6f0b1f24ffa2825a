/* Triangular factors of small matrices (simd.h lists them), which LAPACK would compute by calls too
 * small to be fast. Matrices are n x n, of column-major order:
 *
 *     column j      | done: L and U of     | j | to come |
 *                   | columns before j     |   |         |
 *
 * Left-looking: the products of all earlier columns are subtracted from column j before it is
 * finished, so a vector of the column stays in a register meanwhile. */

enum {
    TRIANGLE = 8, /* columns solved by scalars before their products are subtracted below */
    ROW = 128     /* factors of a row in a contiguous copy */
};

/* y[r] -= sum_k factor_(k, r) column_k for R columns y, V vectors of rows at a time. Factor (k, r)
 * is at factors[k + r factor_step]. Returns how many rows are done. */
WG__ALWAYS_INLINE int64_t subtract_vectors(const int R, const int V, int64_t begin, int64_t n,
                                           int64_t count, const real *columns, int64_t leading,
                                           const real *factors, int64_t factor_step, real *y,
                                           int64_t y_step) {
    for (; begin + V * LANES <= n; begin += V * LANES) {
        vector sums[4][4];
        WG__UNROLL for (int r = 0; r < R; r++) WG__UNROLL for (int v = 0; v < V; v++) sums[r][v] =
            load(y + r * y_step + begin + v * LANES);
        for (int64_t k = 0; k < count; k++) {
            const real *column = columns + k * leading + begin;
            vector x[4];
            WG__UNROLL for (int v = 0; v < V; v++) x[v] = load(column + v * LANES);
            WG__UNROLL for (int r = 0; r < R; r++) {
                const real factor = factors[k + r * factor_step];
                WG__UNROLL for (int v = 0; v < V; v++) sums[r][v] -= factor * x[v];
            }
        }
        WG__UNROLL for (int r = 0; r < R; r++) WG__UNROLL for (int v = 0; v < V; v++)
            store(y + r * y_step + begin + v * LANES, sums[r][v]);
    }
    return begin;
}

WG__ALWAYS_INLINE void subtract_columns(const int R, int64_t n, int64_t count, const real *columns,
                                        int64_t leading, const real *factors, int64_t factor_step,
                                        real *y, int64_t y_step) {
    int64_t done = subtract_vectors(R, R == 1 ? 4 : 2, 0, n, count, columns, leading, factors,
                                    factor_step, y, y_step);
    done =
        subtract_vectors(R, 1, done, n, count, columns, leading, factors, factor_step, y, y_step);
    if (done == n)
        return;
    const int64_t rest = n - done;
    vector sums[4];
    WG__UNROLL for (int r = 0; r < R; r++) sums[r] = load_part(y + r * y_step + done, rest, 0);
    for (int64_t k = 0; k < count; k++) {
        const vector x = load_part(columns + k * leading + done, rest, 0);
        WG__UNROLL for (int r = 0; r < R; r++) sums[r] -= factors[k + r * factor_step] * x;
    }
    WG__UNROLL for (int r = 0; r < R; r++) store_part(y + r * y_step + done, sums[r], rest);
}

/* R columns of b replaced by L^-1 b, with L the lower triangle of the first `count` columns of a,
 * its diagonal taken as ones if `unit`; the first `zeros` rows of b are 0. Rows from `count` to n
 * take the products, too. */
WG__ALWAYS_INLINE void solve_lower(const int R, bool unit, int64_t n, int64_t count, int64_t zeros,
                                   const real *a, real *b, int64_t b_step) {
    for (int64_t k = zeros / TRIANGLE * TRIANGLE; k < count; k += TRIANGLE) {
        const int64_t width = count - k < TRIANGLE ? count - k : TRIANGLE, end = k + width;
        for (int64_t column = k; column < end; column++)
            for (int r = 0; r < R; r++) {
                real *y = b + r * b_step;
                if (!unit)
                    y[column] /= a[column * n + column];
                for (int64_t row = column + 1; row < end; row++)
                    y[row] -= y[column] * a[column * n + row];
            }
        subtract_columns(R, n - end, width, a + k * n + end, n, b + k, b_step, b + end, b_step);
    }
}

WG__ALWAYS_INLINE void solve_upper(const int R, bool unit, int64_t n, const real *a, real *b,
                                   int64_t b_step) {
    for (int64_t k = (n - 1) / TRIANGLE * TRIANGLE; k >= 0; k -= TRIANGLE) {
        const int64_t end = k + TRIANGLE < n ? k + TRIANGLE : n;
        for (int64_t column = end - 1; column >= k; column--)
            for (int r = 0; r < R; r++) {
                real *y = b + r * b_step;
                if (!unit)
                    y[column] /= a[column * n + column];
                for (int64_t row = k; row < column; row++)
                    y[row] -= y[column] * a[column * n + row];
            }
        subtract_columns(R, k, end - k, a + k * n, n, b + k, b_step, b, b_step);
    }
}

static inline void exchange_rows(real *column, int64_t i, int64_t j) {
    const real held = column[i];
    column[i] = column[j];
    column[j] = held;
}

/* Returns LAPACK's INFO. */
static int64_t lu_factors(int64_t n, void *matrix, int32_t *pivots) {
    real *a = matrix;
    int64_t info = 0;
    for (int64_t j = 0; j < n; j++) {
        real *column = a + j * n;
        for (int64_t i = 0; i < j; i++)
            exchange_rows(column, i, pivots[i] - 1);
        solve_lower(1, true, n, j, 0, a, column, 0);
        int64_t pivot = j;
        for (int64_t i = j + 1; i < n; i++)
            if ((column[i] < 0 ? -column[i] : column[i]) >
                (column[pivot] < 0 ? -column[pivot] : column[pivot]))
                pivot = i;
        pivots[j] = (int32_t)pivot + 1;
        if (column[pivot] == 0) {
            info = info ? info : j + 1;
            continue;
        }
        if (pivot != j)
            for (int64_t k = 0; k <= j; k++)
                exchange_rows(a + k * n, j, pivot);
        const real divisor = column[j];
        for (int64_t i = j + 1; i < n; i++)
            column[i] /= divisor;
    }
    return info;
}

/* Solves for k columns of b. Leading zeros of the columns, as in an identity matrix, are skipped.
 */
static void lu_solve(int64_t n, int64_t k, const void *factors, const int32_t *pivots,
                     void *right) {
    const real *a = factors;
    real *b = right;
    for (int64_t j = 0; j < k; j++)
        for (int64_t i = 0; i < n; i++)
            exchange_rows(b + j * n, i, pivots[i] - 1);
    for (int64_t j = 0; j < k;) {
        real *here = b + j * n;
        const int together = k - j >= 4 ? 4 : 1;
        int64_t zeros = n;
        for (int r = 0; r < together; r++) {
            int64_t first = 0;
            while (first < zeros && here[r * n + first] == 0)
                first++;
            zeros = first;
        }
        if (together == 4) {
            solve_lower(4, true, n, n, zeros, a, here, n);
            solve_upper(4, false, n, a, here, n);
        } else {
            solve_lower(1, true, n, n, zeros, a, here, n);
            solve_upper(1, false, n, a, here, n);
        }
        j += together;
    }
}

/* Solves for k columns of b. */
static void triangular_solve(int64_t n, int64_t k, bool upper, bool unit, const void *triangle,
                             void *right) {
    const real *a = triangle;
    real *b = right;
    int64_t j = 0;
    for (; j + 4 <= k; j += 4)
        if (upper)
            solve_upper(4, unit, n, a, b + j * n, n);
        else
            solve_lower(4, unit, n, n, 0, a, b + j * n, n);
    for (; j < k; j++)
        if (upper)
            solve_upper(1, unit, n, a, b + j * n, n);
        else
            solve_lower(1, unit, n, n, 0, a, b + j * n, n);
}

/* Subtracts the products of `count` earlier columns from R columns, from row j on. */
WG__ALWAYS_INLINE void subtract_before(const int R, int64_t n, int64_t j, int64_t count,
                                       const real *before, real *columns) {
    real factors[4 * ROW];
    for (int64_t k = 0; k < count; k += ROW) {
        const int64_t here = count - k < ROW ? count - k : ROW;
        for (int64_t i = 0; i < here; i++)
            for (int r = 0; r < R; r++)
                factors[r * ROW + i] = before[(k + i) * n + j + r];
        subtract_columns(R, n - j, here, before + k * n + j, n, factors, ROW, columns + j, n);
    }
}

/* The lower triangle; the upper triangle is overwritten. The products of earlier columns are
 * subtracted from four columns at a time. Returns LAPACK's INFO. */
static int64_t cholesky_factor(int64_t n, void *matrix) {
    enum { TOGETHER = 4 };
    real *a = matrix;
    for (int64_t begin = 0; begin < n; begin += TOGETHER) {
        const bool whole = begin + TOGETHER <= n;
        const int64_t end = whole ? begin + TOGETHER : n;
        if (whole)
            subtract_before(TOGETHER, n, begin, begin, a, a + begin * n);
        for (int64_t j = begin; j < end; j++) {
            real *column = a + j * n;
            const int64_t first = whole ? begin : 0; /* the first column not subtracted yet */
            subtract_before(1, n, j, j - first, a + first * n, column);
            if (!(column[j] > 0))
                return j + 1;
            const real root = square_root(column[j] + (vector){0})[0];
            for (int64_t i = j; i < n; i++)
                column[i] /= root;
        }
    }
    return 0;
}
