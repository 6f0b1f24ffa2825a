/* The vector kernels of products of rows, of small matrices and of panels, against plain C in
 * f64. */
#include "tests/tensor/simd_tables.h"

TEST_OF_TABLES(products_with_vectors_are_those_of_plain_c) {
    const double scale = -1.5;
    array x = normal(dtype, 21), y = normal(dtype, 22);
    for (size_t k = 0; k < WG_COUNT(lengths); k++) {
        const int64_t n = lengths[k];
        double sum = 0, size = 1;
        for (int64_t i = 0; i < n; i++) {
            sum += get(&x, i) * get(&y, i);
            size += fabs(get(&x, i) * get(&y, i));
        }
        array product = normal(dtype, 24);
        const double before = get(&product, 1);
        wg__row_products one = {.a = place(&x, 0), .x = place(&y, 0), .n = n, .x_rows = 1};
        one.alpha = 1;
        one.y = place(&product, 0);
        simd->products.row_products(0, 1, &one);
        assert_near(simd, "a dot product", dtype, get(&product, 0), sum, size);
        one.alpha = scale;
        one.beta = 2;
        one.y = place(&product, 1);
        simd->products.row_products(0, 1, &one);
        assert_near(simd, "a dot product that is added", dtype, get(&product, 1),
                    scale * sum + 2 * before, 2 * size);
    }
    enum { ROWS = 7, STRIDE = 50 };
    for (int64_t n = 0; n < STRIDE; n++) {
        array sums = normal(dtype, 23);
        const array before = sums;
        simd->products.add_scaled_rows(ROWS, n, STRIDE, place(&x, 0), scale, place(&y, 0), 3,
                                       place(&sums, 0));
        for (int64_t j = 0; j < n; j++) {
            double sum = get(&before, j);
            for (int64_t i = 0; i < ROWS; i++)
                sum += scale * get(&y, 3 * i) * get(&x, i * STRIDE + j);
            assert_near(simd, "a sum of scaled rows", dtype, get(&sums, j), sum, 20);
        }
        ck_assert_double_eq(get(&sums, n), get(&before, n));
    }
}

/* With few rows of x each row of A is read once for all of them; with more rows it is not. */
TEST_OF_TABLES(products_of_rows_are_those_of_plain_c) {
    enum { ROWS = 3, STRIDE = 41, X_STRIDE = 40 };
    array a = normal(dtype, 25), x = normal(dtype, 26);
    for (int64_t x_rows = 1; x_rows < 8; x_rows++)
        for (int64_t n = 0; n <= X_STRIDE; n++) {
            array y = normal(dtype, 27);
            const array before = y;
            wg__row_products product = {.a = place(&a, 0),
                                        .x = place(&x, 0),
                                        .n = n,
                                        .a_stride = STRIDE,
                                        .x_rows = x_rows,
                                        .x_stride = X_STRIDE,
                                        .alpha = 1.5,
                                        .beta = n % 2 ? 0 : -1,
                                        .y = place(&y, 0),
                                        .y_stride = 2 * ROWS,
                                        .y_step = 2};
            simd->products.row_products(1, ROWS, &product);
            for (int64_t i = 0; i < x_rows * ROWS; i++) {
                const int64_t r = i / ROWS, o = i % ROWS;
                const double was = get(&before, 2 * i);
                double sum = n % 2 ? 0 : -was;
                for (int64_t j = 0; j < n; j++)
                    sum += 1.5 * get(&a, o * STRIDE + j) * get(&x, r * X_STRIDE + j);
                if (o == 0) /* before the first element */
                    ck_assert_double_eq(get(&y, 2 * i), was);
                else
                    assert_near(simd, "a product of rows", dtype, get(&y, 2 * i), sum, 60);
                ck_assert_double_eq(get(&y, 2 * i + 1), get(&before, 2 * i + 1));
            }
        }
}

/* Each head has an array of its own; the kernel must not write beyond its y. */
static void check_heads(const wg__simd *simd, wg_dtype dtype, int heads, int64_t width) {
    enum { ROWS = 5, STRIDE = 75 };
    static array a[WG__HEADS_AT_ONCE], x[WG__HEADS_AT_ONCE], dots[WG__HEADS_AT_ONCE],
        sums[WG__HEADS_AT_ONCE];
    wg__head_products p = {.rows = ROWS, .width = width, .row_stride = STRIDE, .scale = -0.5}, q;
    for (int h = 0; h < heads; h++) {
        a[h] = normal(dtype, 60 + (uint64_t)h);
        x[h] = dots[h] = sums[h] = normal(dtype, 70 + (uint64_t)h);
        p.a[h] = place(&a[h], 1);
        p.vector[h] = place(&x[h], 0);
        p.y[h] = place(&dots[h], 0);
    }
    q = p;
    for (int h = 0; h < heads; h++)
        q.y[h] = place(&sums[h], 0);
    simd->products.head_dots(heads, &p);
    simd->products.head_sums(heads, &q);
    for (int h = 0; h < heads; h++) {
        for (int64_t r = 0; r < ROWS; r++) {
            double sum = 0;
            for (int64_t i = 0; i < width; i++)
                sum -= 0.5 * get(&a[h], 1 + r * STRIDE + i) * get(&x[h], i);
            assert_near(simd, "a head's dot product", dtype, get(&dots[h], r), sum, 40);
        }
        for (int64_t i = 0; i < width; i++) {
            double sum = 0;
            for (int64_t r = 0; r < ROWS; r++)
                sum -= 0.5 * get(&x[h], r) * get(&a[h], 1 + r * STRIDE + i);
            assert_near(simd, "a head's sum of rows", dtype, get(&sums[h], i), sum, 20);
        }
        ck_assert_double_eq(get(&dots[h], ROWS), get(&x[h], ROWS));
        ck_assert_double_eq(get(&sums[h], width), get(&x[h], width));
    }
}

TEST_OF_TABLES(products_of_heads_are_those_of_plain_c) {
    for (int heads = 1; heads <= WG__HEADS_AT_ONCE; heads++)
        for (int64_t width = 1; width <= 74; width++)
            check_heads(simd, dtype, heads, width);
}

/* B by rows or by columns; C is read only where beta is not 0, and never written outside of its
 * elements. */
static void check_small(const wg__simd *simd, wg_dtype dtype, int64_t n, double beta) {
    enum { M = 3, K = 4, C_ROW = 95 };
    array a = normal(dtype, 24), b = normal(dtype, 25), c = normal(dtype, 26);
    const array before = c;
    const bool transposed = n % 2;
    const int64_t b_row = transposed ? 1 : n, b_column = transposed ? K : 1;
    simd->products.small(M, n, K, 0.5, place(&a, 0), 2, 11, place(&b, 0), b_row, b_column, beta,
                         place(&c, 0), C_ROW);
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = beta == 0 ? 0 : beta * get(&before, i * C_ROW + j);
            for (int64_t l = 0; l < K; l++)
                sum += 0.5 * get(&a, 2 * i + 11 * l) * get(&b, l * b_row + j * b_column);
            assert_near(simd, "a small product", dtype, get(&c, i * C_ROW + j), sum, 10);
        }
        ck_assert_double_eq(get(&c, i * C_ROW + n), get(&before, i * C_ROW + n));
    }
}

TEST_OF_TABLES(small_products_are_those_of_plain_c) {
    for (int64_t n = 1; n <= 90; n++) {
        check_small(simd, dtype, n, 0);
        check_small(simd, dtype, n, -0.25);
    }
}

/* B is packed from columns or rows, contiguous or not; A is by rows or by columns; the product
 * overwrites C, or is added to C or to one row for all. */
static void check_panels(const wg__simd *simd, wg_dtype dtype, int64_t m, int64_t n, int form) {
    enum { K = 9, ROW = 48 };
    const bool across = form & 1, by_columns = form & 2, onto_c = form & 8, onto_row = form & 16;
    const int64_t step = form & 4 ? 2 : 1, panel = WG__PANEL_VECTORS * simd->lanes;
    const int64_t vectors = (n + simd->lanes - 1) / simd->lanes * simd->lanes;
    const int64_t stride = (across ? K : n) * step;
    array x = normal(dtype, 50), a = normal(dtype, 51), c = normal(dtype, 52);
    array row = normal(dtype, 53), *d = onto_row ? &row : onto_c ? &c : NULL;
    const int64_t d_row = onto_row ? 0 : ROW;
    array packed = {.dtype = dtype};
    const array before = c;
    (across ? simd->products.pack_columns : simd->products.pack_rows)(
        across ? n : K, across ? K : n, place(&x, 0), stride, step, place(&packed, 0));
    simd->products.panel(&(wg__panel_product){.m = m,
                                              .n = n,
                                              .k = K,
                                              .alpha = 0.5,
                                              .a = place(&a, 0),
                                              .a_row = by_columns ? 1 : K + 2,
                                              .a_column = by_columns ? m + 1 : 1,
                                              .b = place(&packed, 0),
                                              .b_panel = across ? K * panel : panel,
                                              .b_row = across ? panel : vectors,
                                              .d = d ? place(d, 0) : NULL,
                                              .d_row = d_row,
                                              .c = place(&c, 0),
                                              .c_row = ROW});
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = d ? get(onto_row ? &row : &before, i * d_row + j) : 0;
            for (int64_t l = 0; l < K; l++)
                sum += 0.5 * get(&a, by_columns ? i + l * (m + 1) : i * (K + 2) + l) *
                       get(&x, across ? j * stride + l * step : l * stride + j * step);
            assert_near(simd, "a product of panels", dtype, get(&c, i * ROW + j), sum, 10);
        }
        for (int64_t j = vectors; j < ROW; j++)
            ck_assert_double_eq(get(&c, i * ROW + j), get(&before, i * ROW + j));
    }
}

TEST_OF_TABLES(products_of_panels_are_those_of_plain_c) {
    for (int form = 0; form < 24; form++)
        for (int64_t m = 1; m <= 15; m++)
            for (int64_t n = 1; n <= 40; n += n < 6 ? 1 : 7)
                check_panels(simd, dtype, m, n, form);
}

/* T x of the solution is what b was. */
static void check_triangle(const wg__simd *simd, wg_dtype dtype, int64_t n, int64_t k, bool upper,
                           bool unit) {
    array a = normal(dtype, 11), b = normal(dtype, 12);
    const array before = b;
    for (int64_t i = 0; i < n * n; i++)
        set(&a, i, i % (n + 1) ? 0.1 * get(&a, i) : 2 + get(&a, i) / 8);
    simd->matrices.triangular_solve(n, k, upper, unit, place(&a, 0), place(&b, 0));
    for (int64_t j = 0; j < k; j++)
        for (int64_t i = 0; i < n; i++) {
            double sum = unit ? get(&b, j * n + i) : 0;
            for (int64_t l = upper ? i : 0; l <= (upper ? n - 1 : i); l++)
                sum += unit && l == i ? 0 : get(&a, l * n + i) * get(&b, j * n + l);
            assert_near(simd, "a triangular system", dtype, sum, get(&before, j * n + i), 10);
        }
    ck_assert_double_eq(get(&b, n * k), get(&before, n * k));
}

TEST_OF_TABLES(triangular_systems_are_solved) {
    for (int64_t n = 1; n <= 27; n += n < 9 ? 1 : 6)
        for (int64_t k = 1; k <= 6; k++)
            for (int form = 0; form < 4; form++)
                check_triangle(simd, dtype, n, k, form % 2, form / 2);
}
