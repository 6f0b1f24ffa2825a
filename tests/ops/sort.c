/* Sorting long rows, of every dtype, by every algorithm; gathering from and scattering to such
 * rows. */
#include "tensor/ops.h"

#include <math.h>
#include <string.h>

#include "tests/support/tensors.h"

static bool is_all_true(wg_tensor *x) {
    return wg_item(wg_all(x, WG_ALL, false)) == 1;
}

/* Rows of integers with ties, of both signs where the dtype has them; some floats are NaN. */
static wg_tensor *rows_of(wg_generator *generator, wg_dtype dtype, int64_t rows, int64_t n) {
    wg_tensor *x = wg_randint(generator, -n / 4 - 1, n / 4 + 1, WG_DIMS(rows, n));
    if (!wg_dtype_is_float(dtype))
        return wg_cast(x, dtype);
    wg_tensor *y = wg_cast(wg_mul_scalar(wg_cast(x, WG_F64), 0.125), dtype);
    return wg_masked_fill(y, wg_eq(x, wg_scalar(WG_I64, 1)), NAN);
}

/* Whether all neighbours are in order: by value, NaN last, then by index. */
static void check_order(wg_tensor *values, wg_tensor *indices, bool descending) {
    if (descending) /* in descending order, the indices of ties descend, too */
        values = wg_flip(values, WG_DIMS(1));
    wg_tensor *at = descending ? wg_neg(wg_flip(indices, WG_DIMS(1))) : indices;
    wg_tensor *a = wg_slice(values, 1, 0, -1, 1), *b = wg_slice(values, 1, 1, WG_END, 1);
    wg_tensor *nan_a = wg_ne(a, a), *nan_b = wg_ne(b, b);
    wg_tensor *before = wg_logical_or(wg_lt(a, b), wg_logical_and(nan_b, wg_logical_not(nan_a)));
    wg_tensor *tied = wg_logical_or(wg_eq(a, b), wg_logical_and(nan_a, nan_b));
    wg_tensor *in_turn = wg_lt(wg_slice(at, 1, 0, -1, 1), wg_slice(at, 1, 1, WG_END, 1));
    ck_assert(is_all_true(wg_logical_or(before, wg_logical_and(tied, in_turn))));
}

static void check_sort(wg_tensor *x, bool descending) {
    wg_tensor *values, *indices;
    ck_assert_int_eq(wg_sort(x, -1, descending, &values, &indices), 0);
    assert_close(values, wg_gather(x, 1, indices), 0, 0);
    wg_tensor *ones = wg_scatter_add(wg_zeros_like(indices), 1, indices, wg_ones_like(indices));
    ck_assert(is_all_true(wg_eq(ones, wg_scalar(WG_I64, 1)))); /* each index comes once */
    check_order(values, indices, descending);
}

static const int64_t lengths[] = {1, 2, 48, 49, 300, 70001};

TEST(sorted_rows_are_in_order_and_stable) {
    wg_generator generator = {.seed = 1};
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < WG_COUNT(lengths); i++)
            for (int descending = 0; descending < 2; descending++)
                IN_SCOPE() {
                    check_sort(rows_of(&generator, (wg_dtype)dtype, 3, lengths[i]), descending);
                }
}

TEST(the_best_of_a_row_are_the_first_of_its_order) {
    const int64_t counts[] = {1, 2, 40, 200, 69999};
    wg_generator generator = {.seed = 2};
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < WG_COUNT(counts); i++)
            for (int largest = 0; largest < 2; largest++)
                IN_SCOPE() {
                    wg_tensor *x =
                        rows_of(&generator, (wg_dtype)dtype, 2, counts[i] < 300 ? 300 : 70001);
                    wg_tensor *values, *indices, *sorted, *order;
                    ck_assert_int_eq(wg_topk(x, counts[i], 1, largest, &values, &indices), 0);
                    ck_assert_int_eq(wg_sort(x, 1, largest, &sorted, &order), 0);
                    assert_close(values, wg_slice(sorted, 1, 0, counts[i], 1), 0, 0);
                    assert_close(indices, wg_slice(order, 1, 0, counts[i], 1), 0, 0);
                }
}

TEST(half_of_a_row_is_on_each_side_of_its_median) {
    wg_generator generator = {.seed = 3};
    for (int64_t n = 9999; n <= 10000; n++) {
        wg_tensor *x = wg_randn(&generator, WG_F32, WG_DIMS(3, n));
        wg_tensor *below = wg_count_nonzero(wg_lt(x, wg_median(x, 1, true)), WG_DIMS(1), false);
        ck_assert(is_all_true(wg_eq(below, wg_scalar(WG_I64, (double)((n - 1) / 2)))));
    }
}

TEST(the_values_put_back_by_their_indices_are_the_operand) {
    wg_generator generator = {.seed = 4};
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++) {
        wg_tensor *x = rows_of(&generator, (wg_dtype)dtype, 5, 2000), *values, *inverse, *counts;
        ck_assert_int_eq(wg_unique(x, &values, &inverse, &counts), 0);
        const int64_t n = wg_tensor_count(values);
        assert_close(wg_reshape(wg_index_select(values, 0, wg_reshape(inverse, WG_DIMS(-1))),
                                WG_DIMS(5, 2000)),
                     x, 0, 0);
        assert_close(counts, wg_bincount(wg_reshape(inverse, WG_DIMS(-1)), NULL, n), 0, 0);
        check_order(wg_unsqueeze(values, 0),
                    wg_unsqueeze(wg_neg(wg_arange(WG_I64, 0, (double)n, 1)), 0),
                    false); /* there are no ties, whose indices would be out of order */
    }
}

TEST(any_number_of_threads_gives_the_same_order) {
    wg_generator generator = {.seed = 5};
    const int threads = wg_threads();
    wg_tensor *x = rows_of(&generator, WG_F32, 100, 777);
    wg_set_threads(1);
    wg_tensor *alone = wg_argsort(x, 1, false);
    for (int n = 2; n <= 5; n++) {
        wg_set_threads(n);
        assert_close(wg_argsort(x, 1, false), alone, 0, 0);
    }
    wg_set_threads(threads);
}

/* ---- Columns whose indices lie one after the other: the gradient of sort along the first axis.
 * The number of columns is no multiple of those that are scattered together. ---- */

enum { COLUMNS = 50, LENGTH = 40, TAKEN = 33 };

static wg_tensor *whole_numbers(wg_generator *generator, wg_dtype dtype, int64_t rows,
                                int64_t columns) {
    return wg_cast(wg_randint(generator, 0, 20, WG_DIMS(rows, columns)), dtype);
}

static wg_tensor *turned(wg_tensor *x) {
    return wg_transpose(x, 0, 1);
}

TEST(columns_are_scattered_as_rows_are) {
    wg_generator generator = {.seed = 6};
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++) {
        if (dtype == WG_BOOL)
            continue;
        wg_tensor *y = whole_numbers(&generator, (wg_dtype)dtype, LENGTH, COLUMNS);
        wg_tensor *x = whole_numbers(&generator, (wg_dtype)dtype, TAKEN, COLUMNS);
        wg_tensor *repeated = wg_randint(&generator, 0, LENGTH, WG_DIMS(COLUMNS, TAKEN));
        wg_tensor *rows = wg_contiguous(turned(y)), *added = wg_contiguous(turned(x));
        assert_close(wg_scatter_add(y, 0, turned(repeated), x),
                     turned(wg_scatter_add(rows, 1, repeated, added)), 0, 0);
        wg_tensor *random = wg_rand(&generator, WG_F32, WG_DIMS(COLUMNS, LENGTH));
        wg_tensor *distinct = wg_slice(wg_argsort(random, 1, false), 1, 0, TAKEN, 1);
        assert_close(wg_scatter(y, 0, turned(distinct), x),
                     turned(wg_scatter(rows, 1, distinct, added)), 0, 0);
    }
}

TEST(the_gradient_of_sorted_columns_is_that_of_sorted_rows) {
    wg_generator generator = {.seed = 7};
    for (int dtype = WG_F32; dtype <= WG_F64; dtype++) {
        wg_tensor *x = wg_rand(&generator, (wg_dtype)dtype, WG_DIMS(LENGTH, COLUMNS));
        wg_tensor *g = wg_rand(&generator, (wg_dtype)dtype, WG_DIMS(LENGTH, COLUMNS));
        wg_tensor *across = wg_contiguous(turned(x)), *down = wg_clone(x), *values;
        wg_set_requires_grad(across, true);
        wg_set_requires_grad(down, true);
        wg_sort(down, 0, false, &values, NULL);
        backward_from(values, g);
        wg_sort(across, 1, false, &values, NULL);
        backward_from(values, wg_contiguous(turned(g)));
        assert_close(wg_gradient(down), turned(wg_gradient(across)), 0, 0);
    }
}

/* ---- Indices are checked while a row is gathered ---- */

enum { LONG = 5000 };

/* (2, LONG): 0, but for one element. */
static wg_tensor *zeros_but_one(int64_t row, int64_t column, int64_t value) {
    wg_tensor *index = wg_zeros(WG_I64, WG_DIMS(2, LONG));
    ((int64_t *)wg_tensor_data(index))[row * LONG + column] = value;
    return index;
}

static const int64_t places[] = {0, 1023, 1024, LONG - 1};

TEST(an_index_outside_is_found_anywhere_in_a_long_row) {
    wg_tensor *x = wg_rand(&(wg_generator){.seed = 8}, WG_F32, WG_DIMS(2, LONG));
    for (size_t i = 0; i < 2 * WG_COUNT(places); i++) {
        const int64_t row = (int64_t)i % 2, column = places[i / 2];
        refused(wg_gather(x, 1, zeros_but_one(row, column, LONG)), INDEX,
                "index 5000 is out of range");
        refused(wg_gather(x, 1, zeros_but_one(row, column, -1)), INDEX, "index -1 is out of range");
        refused(wg_take_along_axis(x, 1, zeros_but_one(row, column, LONG)), INDEX,
                "index 5000 is out of range of axis 1");
        refused(wg_take_along_axis(x, 1, zeros_but_one(row, column, -LONG - 1)), INDEX,
                "index -5001 is out of range of axis 1");
    }
}

TEST(a_negative_index_anywhere_in_a_long_row_counts_from_the_end) {
    for (size_t i = 0; i < 2 * WG_COUNT(places); i++) {
        const int64_t row = (int64_t)i % 2, column = places[i / 2];
        wg_tensor *x = wg_rand(&(wg_generator){.seed = 9}, WG_F32, WG_DIMS(2, LONG));
        wg_set_requires_grad(x, true);
        wg_tensor *y = wg_take_along_axis(x, 1, zeros_but_one(row, column, -1));
        wg_tensor *same = wg_take_along_axis(x, 1, zeros_but_one(row, column, LONG - 1));
        assert_close(y, same, 0, 0);
        ck_assert_int_eq(wg_backward(wg_sum(y, WG_ALL, false), NULL), 0);
        const float *g = wg_tensor_data(wg_gradient(x));
        ck_assert_float_eq(g[row * LONG], LONG - 1);
        ck_assert_float_eq(g[row * LONG + LONG - 1], 1);
        ck_assert_float_eq(g[(1 - row) * LONG], LONG);
    }
}
