/* Reductions of many elements: their accuracy, and the same bits at any number of threads. */
#include "tensor/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/tensors.h"

/* ---- Against plain loops ---- */

/* A naive sum over the axes of the mask, one element at a time in long double. */
static wg_tensor *naive_sum(const wg_tensor *x, unsigned mask) {
    int64_t shape[WG_MAX_DIMS], index[WG_MAX_DIMS] = {0}, strides[WG_MAX_DIMS], step = 1;
    const int ndim = wg_tensor_ndim(x);
    for (int i = ndim - 1; i >= 0; i--) {
        shape[i] = mask >> i & 1 ? 1 : wg_tensor_size(x, i);
        strides[i] = mask >> i & 1 ? 0 : step;
        step *= shape[i];
    }
    long double *sums = calloc((size_t)step, sizeof *sums);
    ck_assert_ptr_nonnull(sums);
    for (int64_t count = wg_tensor_count(x); count > 0; count--) {
        int64_t to = 0;
        for (int i = 0; i < ndim; i++)
            to += index[i] * strides[i];
        sums[to] += wg_at(x, index);
        for (int i = ndim - 1; i >= 0 && ++index[i] == wg_tensor_size(x, i); i--)
            index[i] = 0;
    }
    wg_tensor *y = wg_empty(WG_F64, ndim, shape);
    for (int64_t i = 0; i < step; i++)
        ((double *)wg_tensor_data(y))[i] = (double)sums[i];
    free(sums);
    return y;
}

/* Every set of axes of x. */
static void check_all_axes(wg_tensor *x) {
    const int ndim = wg_tensor_ndim(x);
    for (unsigned mask = 1; mask < 1u << ndim; mask++) {
        int64_t axes[WG_MAX_DIMS];
        int count = 0;
        for (int i = 0; i < ndim; i++)
            if (mask >> i & 1)
                axes[count++] = i;
        IN_SCOPE() {
            assert_close(wg_cast(wg_sum(x, count, axes, true), WG_F64), naive_sum(x, mask), 1e-13,
                         1e-11);
        }
    }
}

TEST(sums_over_any_axes_agree_with_a_plain_loop) {
    wg_generator generator = {.seed = 1};
    check_all_axes(wg_randn(&generator, WG_F64, WG_DIMS(5, 300, 17)));
    check_all_axes(wg_randn(&generator, WG_F64, WG_DIMS(2, 3, 700, 9)));
    check_all_axes(wg_randn(&generator, WG_F64, WG_DIMS(20000, 3)));
    check_all_axes(wg_randn(&generator, WG_F64, WG_DIMS(3, 20000)));
}

TEST(sums_of_strided_operands_agree_with_a_plain_loop) {
    wg_generator generator = {.seed = 2};
    wg_tensor *x = wg_randn(&generator, WG_F64, WG_DIMS(40, 30, 50));
    check_all_axes(wg_permute(x, WG_DIMS(2, 0, 1)));
    check_all_axes(wg_slice(wg_slice(x, 2, WG_END, WG_END, -2), 0, 1, WG_END, 3));
    check_all_axes(wg_expand(wg_select(x, 0, 3), WG_DIMS(70, 30, 50)));
    check_all_axes(wg_expand(wg_slice(x, 2, 0, 1, 1), WG_DIMS(40, 30, 70)));
}

TEST(the_largest_is_found_wherever_it_stands) {
    wg_tensor *x = wg_full(WG_F32, WG_DIMS(50000), -2);
    float *data = wg_tensor_data(x);
    for (int64_t i = 0; i < 50000; i += 4999)
        IN_SCOPE() {
            data[i] = 3;
            ck_assert_double_eq(wg_item(wg_max(x, WG_ALL, false)), 3);
            ck_assert_double_eq(wg_item(wg_min(wg_neg(x), WG_ALL, false)), -3);
            ck_assert_double_eq(wg_item(wg_argmax(x, 0, false)), (double)i);
            data[i] = NAN;
            ck_assert_double_nan(wg_item(wg_max(x, WG_ALL, false)));
            ck_assert_double_nan(wg_item(wg_min(x, WG_ALL, false)));
            ck_assert_double_eq(wg_item(wg_argmax(x, 0, false)), (double)i);
            data[i] = -2;
        }
}

/* Whether y holds the first index of the largest element along an axis of x, which y lacks. */
static void check_argmax(wg_tensor *x, int axis) {
    wg_tensor *y = wg_argmax(x, axis, true);
    wg_tensor *largest = wg_max(x, WG_DIMS(axis), true);
    ck_assert_double_eq(wg_item(wg_all(wg_eq(wg_gather(x, axis, y), largest), WG_ALL, false)), 1);
    wg_tensor *at = wg_arange(WG_I64, 0, (double)wg_tensor_size(x, axis), 1);
    for (int i = axis + 1; i < wg_tensor_ndim(x); i++)
        at = wg_unsqueeze(at, -1);
    wg_tensor *earlier = wg_logical_and(wg_lt(at, y), wg_eq(x, largest));
    ck_assert_double_eq(wg_item(wg_any(earlier, WG_ALL, false)), 0);
    assert_close(wg_argmin(wg_neg(x), axis, true), y, 0, 0);
}

TEST(the_first_of_the_largest_is_found_in_any_layout) {
    const wg_dtype dtypes[] = {WG_F32, WG_F64, WG_BF16, WG_I32, WG_I64};
    wg_generator generator = {.seed = 11};
    for (size_t d = 0; d < WG_COUNT(dtypes); d++)
        IN_SCOPE() {
            wg_tensor *x = wg_cast(wg_randint(&generator, -50, 50, WG_DIMS(7, 300, 33)), dtypes[d]);
            wg_tensor *tall = wg_reshape(x, WG_DIMS(-1, 11));
            wg_tensor *views[] = {x, wg_permute(x, WG_DIMS(2, 0, 1)), tall,
                                  wg_slice(wg_slice(x, 2, WG_END, WG_END, -2), 1, 1, WG_END, 3),
                                  wg_expand(wg_slice(x, 1, 0, 1, 1), WG_DIMS(7, 40, 33))};
            for (size_t i = 0; i < WG_COUNT(views); i++)
                for (int axis = 0; axis < wg_tensor_ndim(views[i]); axis++)
                    check_argmax(views[i], axis);
            check_argmax(wg_reshape(x, WG_DIMS(-1)), 0);
        }
}

TEST(the_logarithm_of_a_long_sum_of_exponentials_is_that_of_its_parts) {
    wg_generator generator = {.seed = 12};
    wg_tensor *x = wg_mul_scalar(wg_randn(&generator, WG_F64, WG_DIMS(2, 300000)), 5);
    wg_tensor *expected = wg_log(wg_sum(wg_exp(x), WG_DIMS(1), false));
    assert_close(wg_logsumexp(x, WG_DIMS(1), false), expected, 1e-14, 0);
    assert_close(wg_logsumexp(wg_add_scalar(x, 2000), WG_DIMS(1), false),
                 wg_add_scalar(expected, 2000), 1e-14, 0);
    assert_close(wg_logsumexp(wg_transpose(x, 0, 1), WG_DIMS(0), false), expected, 1e-14, 0);
}

/* ---- Accuracy ---- */

TEST(a_sum_of_f32_is_rounded_once) {
    const int64_t n = 3000000;
    wg_tensor *x = wg_full(WG_F32, WG_DIMS(n), 0.1f);
    const double exact = (double)0.1f * (double)n;
    ck_assert_float_eq((float)wg_item(wg_sum(x, WG_ALL, false)), (float)exact);
    wg_tensor *columns = wg_sum(wg_reshape(x, WG_DIMS(-1, 3)), WG_DIMS(0), false);
    ck_assert_float_eq((float)wg_at(columns, (int64_t[]){2}), (float)(exact / 3));
}

TEST(running_sums_of_f32_are_rounded_once) {
    const int64_t n = 3000000;
    wg_tensor *y = wg_cumsum(wg_full(WG_F32, WG_DIMS(n), 0.1f), 0);
    const float *data = wg_tensor_data(y);
    for (int64_t i = 0; i < n; i += 99999)
        ck_assert_float_eq(data[i], (float)((double)0.1f * (double)(i + 1)));
}

TEST(large_numbers_that_cancel_leave_the_small_ones) {
    wg_tensor *x = wg_zeros(WG_F32, WG_DIMS(30001));
    float *data = wg_tensor_data(x);
    data[0] = 1e9f;
    data[15000] = 0.5f;
    data[30000] = -1e9f;
    ck_assert_double_eq(wg_item(wg_sum(x, WG_ALL, false)), 0.5);
}

TEST(the_variance_of_large_close_numbers_keeps_its_digits) {
    wg_generator generator = {.seed = 5};
    wg_tensor *x = wg_randn(&generator, WG_F64, WG_DIMS(10000));
    const double variance = wg_item(wg_var(x, WG_ALL, 1, false));
    ck_assert_double_eq_tol(variance, 1, 0.05);
    wg_tensor *far = wg_add_scalar(x, 1e8);
    ck_assert_double_eq_tol(wg_item(wg_var(far, WG_ALL, 1, false)), variance, 1e-7);
}

TEST(integer_sums_wrap_around_in_i64) {
    wg_tensor *x = wg_full(WG_I32, WG_DIMS(4), INT32_MAX);
    ck_assert_double_eq(wg_item(wg_sum(x, WG_ALL, false)), 4.0 * INT32_MAX);
    wg_tensor *ends = wg_from_array(WG_I64, WG_DIMS(2), (int64_t[]){INT64_MAX, 1});
    int64_t total;
    wg_to_array(wg_sum(ends, WG_ALL, false), &total);
    ck_assert(total == INT64_MIN);
}

/* ---- Threads ---- */

static wg_tensor *sum_all(wg_tensor *x) {
    return wg_sum(x, WG_ALL, false);
}

static wg_tensor *sum_rows(wg_tensor *x) {
    return wg_sum(x, WG_DIMS(0), false);
}

static wg_tensor *sum_columns(wg_tensor *x) {
    return wg_sum(x, WG_DIMS(1), false);
}

static wg_tensor *sum_few_columns(wg_tensor *x) {
    return wg_sum(wg_reshape(x, WG_DIMS(-1, 3)), WG_DIMS(0), false);
}

static wg_tensor *variance(wg_tensor *x) {
    return wg_var(x, WG_DIMS(0), 1, false);
}

static wg_tensor *running_sums(wg_tensor *x) {
    return wg_cumsum(x, 0);
}

static wg_tensor *norm(wg_tensor *x) {
    return wg_norm(x, 3, WG_ALL, false);
}

static wg_tensor *logsumexp(wg_tensor *x) {
    return wg_logsumexp(x, WG_ALL, false);
}

/* Few rows of many addends. */
static wg_tensor *scatter(wg_tensor *x) {
    wg_generator generator = {.seed = 8};
    wg_tensor *index = wg_randint(&generator, 0, 5, WG_DIMS(wg_tensor_size(x, 0), 1));
    wg_tensor *to = wg_zeros(wg_tensor_dtype(x), WG_DIMS(5, wg_tensor_size(x, 1)));
    return wg_scatter_add(to, 0, wg_expand(index, 2, wg_tensor_shape(x)), x);
}

TEST(any_number_of_threads_gives_the_same_bits) {
    static wg_tensor *(*const reductions[])(wg_tensor *) = {sum_all,         sum_rows, sum_columns,
                                                            sum_few_columns, variance, scatter,
                                                            running_sums,    norm,     logsumexp};
    const wg_dtype dtypes[] = {WG_F32, WG_F64};
    wg_generator generator = {.seed = 7};
    const int threads = wg_threads();
    for (size_t d = 0; d < WG_COUNT(dtypes); d++) {
        wg_tensor *x = wg_randn(&generator, dtypes[d], WG_DIMS(999, 333));
        for (size_t i = 0; i < WG_COUNT(reductions); i++) {
            wg_set_threads(1);
            wg_tensor *alone = reductions[i](x);
            const size_t bytes = (size_t)wg_tensor_count(alone) * wg_dtype_size(dtypes[d]);
            for (int n = 5; n >= 2; n--) {
                wg_set_threads(n);
                wg_tensor *together = reductions[i](x);
                ck_assert_mem_eq(wg_tensor_data(together), wg_tensor_data(alone), bytes);
            }
        }
    }
    wg_set_threads(threads);
}
