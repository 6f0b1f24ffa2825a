/* Distributions: normal and truncated normal numbers, coins, categories. Bounds are five standard
 * errors, of fixed seeds. */
#include "base/alloc.h"
#include "tensor/ops.h"

#include <math.h>
#include <stdlib.h>

#include "tests/support/tensors.h"

#define DRAWS 40000

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Events of probability 1 always occur, those of probability 0 never. */
static void assert_share(double count, double p) {
    if (p == 0 || p == 1)
        ck_assert_double_eq(count / DRAWS, p);
    else
        ck_assert_double_eq_tol(count / DRAWS, p, 5 * sqrt(p * (1 - p) / DRAWS));
}

/* The Kolmogorov-Smirnov statistic times the root of the number of samples: above 2 in one of 1500
 * cases. */
static double distance_to(const wg_tensor *x, double (*cumulative)(double at, const double *of),
                          const double *of) {
    const int64_t n = wg_tensor_count(x);
    double *sorted = malloc((size_t)n * sizeof *sorted), distance = 0;
    wg_to_array(wg_cast((wg_tensor *)x, WG_F64), sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    for (int64_t i = 0; i < n; i++) {
        const double expected = cumulative(sorted[i], of);
        distance = fmax(distance, fabs(expected - (double)i / (double)n));
        distance = fmax(distance, fabs(expected - (double)(i + 1) / (double)n));
    }
    free(sorted);
    return distance * sqrt((double)n);
}

/* ---- Normal ---- */

static double normal_cumulative(double x, const double *mean_std) {
    return erfc(-(x - mean_std[0]) / mean_std[1] * M_SQRT1_2) / 2;
}

/* P(X > x) of the standard normal, which keeps its precision far out. */
static double tail(double x) {
    return erfc(x * M_SQRT1_2) / 2;
}

/* Mean, standard deviation and bounds of truncated normals. Each tail is computed on its own
 * side. */
static double truncated_cumulative(double x, const double *of) {
    double at = (x - of[0]) / of[1], low = (of[2] - of[0]) / of[1], high = (of[3] - of[0]) / of[1];
    if (high < 0)
        return (tail(-at) - tail(-low)) / (tail(-high) - tail(-low));
    return (tail(low) - tail(at)) / (tail(low) - tail(high));
}

TEST(normal_numbers_have_mean_and_deviation) {
    for (wg_dtype dtype = WG_F32; dtype <= WG_F64; dtype++) {
        wg_generator generator = {.seed = 21};
        const double of[] = {-3, 0.5};
        wg_tensor *x = wg_normal(&generator, dtype, WG_DIMS(DRAWS), -3, 0.5);
        ck_assert_double_lt(distance_to(x, normal_cumulative, of), 2);
        ck_assert_double_lt(2, distance_to(wg_add_scalar(x, 0.02), normal_cumulative, of));
    }
    wg_generator generator = {.seed = 21};
    assert_close(wg_normal(&generator, WG_F64, WG_DIMS(5), 7, 0), wg_full(WG_F64, WG_DIMS(5), 7), 0,
                 0);
}

TEST(truncated_normal_numbers_have_their_distribution_between_the_limits) {
    static const double cases[][4] = {
        {0, 1, -2, 2},    {5, 0.02, 4.96, 5.04}, {0, 1, -INFINITY, INFINITY},
        {0, 1, -0.5, 1},  {1, 2, 3, INFINITY},   {0, 1, 4, INFINITY},
        {0, 1, 8, 8.01},  {0, 1, 30, INFINITY},  {0, 1, -INFINITY, -6},
        {2, 3, -40, -20}, {0, 1, 0, INFINITY},   {0, 1, -0.1, INFINITY},
        {0, 1, 1, 1.5},   {0, 1, -3, 0},         {-1, 0.5, -1, 1e9},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        const double *of = cases[i];
        wg_generator generator = {.seed = 22 + i};
        wg_tensor *x =
            wg_trunc_normal(&generator, WG_F64, WG_DIMS(DRAWS), of[0], of[1], of[2], of[3]);
        ck_assert_double_ge(wg_item(wg_min(x, WG_ALL, false)), of[2]);
        ck_assert_double_le(wg_item(wg_max(x, WG_ALL, false)), of[3]);
        const double distance = distance_to(x, truncated_cumulative, of);
        ck_assert_msg(distance < 2, "case %zu: distance %g", i, distance);
        ck_assert_uint_eq(generator.offset, 1);
    }
}

TEST(a_limit_far_beyond_the_normal_is_what_is_left) {
    wg_generator generator = {.seed = 23};
    wg_tensor *x = wg_trunc_normal(&generator, WG_F64, WG_DIMS(100), 0, 1, 1e12, INFINITY);
    assert_close(x, wg_full(WG_F64, WG_DIMS(100), 1e12), 1e-15, 0);
    x = wg_trunc_normal(&generator, WG_F64, WG_DIMS(100), 0, 1, -2e7, -1e7);
    assert_close(x, wg_full(WG_F64, WG_DIMS(100), -1e7), 1e-12, 0);
    wg_tensor *narrow = wg_trunc_normal(&generator, WG_BF16, WG_DIMS(100), 0, 1, -2, 2);
    ck_assert_int_eq(wg_tensor_dtype(narrow), WG_BF16);
    ck_assert_double_le(wg_item(wg_max(wg_abs(narrow), WG_ALL, false)), 2);
}

/* ---- Coins ---- */

TEST(coins_fall_with_their_probability) {
    static const double chances[] = {0, 1e-3, 0.25, 0.5, 0.9, 1};
    for (wg_dtype dtype = WG_F32; dtype <= WG_BF16; dtype++)
        for (size_t i = 0; i < WG_COUNT(chances); i++) {
            wg_generator generator = {.seed = 24};
            wg_tensor *p = wg_full(dtype, WG_DIMS(DRAWS), chances[i]);
            const double chance = wg_at(p, (int64_t[]){0}); /* rounded to the dtype */
            wg_tensor *x = wg_cast(wg_bernoulli(&generator, p), WG_F64);
            assert_share(wg_item(wg_sum(x, WG_ALL, false)), chance);
            assert_close(wg_mul(x, x), x, 0, 0);
            ck_assert_uint_eq(generator.offset, 1);
        }
}

TEST(each_coin_has_the_probability_of_its_place) {
    wg_generator generator = {.seed = 25};
    wg_tensor *p = wg_transpose(wg_eye(WG_F32, 300, 200), 0, 1);
    wg_tensor *x = wg_bernoulli(&generator, p);
    assert_close(x, p, 0, 0);
    ck_assert_int_eq(wg_tensor_dtype(x), WG_F32);
    ck_assert_int_eq(wg_tensor_count(wg_bernoulli(&generator, wg_zeros(WG_F64, WG_DIMS(0, 2)))), 0);
}

/* ---- Categories ---- */

TEST(categories_come_by_their_weights) {
    const double weights[] = {0, 1, 0, 3, 0.5, 0, 5.5, 0};
    wg_generator generator = {.seed = 26};
    wg_tensor *w = wg_from_array(WG_F64, WG_DIMS(8), weights);
    const int64_t *x = wg_tensor_data(wg_multinomial(&generator, w, DRAWS, true));
    int64_t counts[8] = {0};
    for (int i = 0; i < DRAWS; i++)
        counts[x[i]]++;
    for (int i = 0; i < 8; i++)
        assert_share((double)counts[i], weights[i] / 10);
    ck_assert_uint_eq(generator.offset, 1);
}

/* Two of three without replacement: first i with probability w[i], then j with w[j] / (1 -
 * w[i]). */
TEST(without_replacement_the_second_is_drawn_from_what_is_left) {
    const double w[] = {0.2, 0.5, 0.3};
    wg_generator generator = {.seed = 27};
    wg_tensor *weights = wg_expand(wg_from_array(WG_F64, WG_DIMS(3), w), WG_DIMS(DRAWS, 3));
    const int64_t *x = wg_tensor_data(wg_multinomial(&generator, weights, 2, false));
    int64_t counts[3][3] = {{0}};
    for (int i = 0; i < DRAWS; i++)
        counts[x[2 * i]][x[2 * i + 1]]++;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            assert_share((double)counts[i][j], i == j ? 0 : w[i] * w[j] / (1 - w[i]));
}

TEST(without_replacement_nothing_comes_twice_and_no_weight_of_zero_comes) {
    wg_generator generator = {.seed = 28};
    wg_tensor *w = wg_rand(&generator, WG_F32, WG_DIMS(3, 4, 50));
    w = wg_mul(w, wg_cast(wg_gt(w, wg_full(WG_F32, WG_DIMS(1), 0.3)), WG_F32));
    wg_tensor *x = wg_multinomial(&generator, w, 20, false);
    ck_assert_int_eq(wg_tensor_size(x, 0) * 100 + wg_tensor_size(x, 1) * 10, 340);
    ck_assert_int_eq(wg_tensor_size(x, 2), 20);
    const int64_t *chosen = wg_tensor_data(x);
    for (int row = 0; row < 12; row++) {
        bool seen[50] = {false};
        for (int s = 0; s < 20; s++) {
            const int64_t i = chosen[row * 20 + s];
            ck_assert(0 <= i && i < 50 && !seen[i]);
            ck_assert_double_gt(wg_at(w, (int64_t[]){row / 4, row % 4, i}), 0);
            seen[i] = true;
        }
    }
    wg_tensor *all = wg_multinomial(&generator, wg_ones(WG_F64, WG_DIMS(9)), 9, false);
    ck_assert_double_eq(wg_item(wg_sum(all, WG_ALL, false)), 36);
}

TEST(weights_of_any_size_and_layout_give_the_same_categories) {
    wg_generator generator = {.seed = 29}, a = {.seed = 30}, b = a, c = a;
    wg_tensor *w = wg_rand(&generator, WG_F64, WG_DIMS(7, 40));
    wg_tensor *turned = wg_transpose(wg_clone(wg_transpose(w, 0, 1)), 0, 1);
    wg_tensor *large = wg_mul_scalar(w, 0x1p300);
    wg_tensor *x = wg_multinomial(&a, w, 30, true);
    assert_close(wg_multinomial(&b, turned, 30, true), x, 0, 0);
    assert_close(wg_multinomial(&c, large, 30, true), x, 0, 0);
    ck_assert_int_eq(wg_tensor_count(wg_multinomial(&a, wg_ones(WG_F32, WG_DIMS(0, 3)), 2, true)),
                     0);
}

/* ---- All of them ---- */

TEST(any_number_of_threads_draws_the_same) {
    wg_tensor *expected[5] = {0};
    const int before = wg_threads();
    for (int threads = 1; threads <= 4; threads += 3) {
        wg_set_threads(threads);
        wg_generator generator = {.seed = 31};
        wg_tensor *p = wg_rand(&generator, WG_F32, WG_DIMS(100, 1000));
        wg_tensor *const drawn[] = {
            wg_bernoulli(&generator, p), wg_multinomial(&generator, p, 5, true),
            wg_multinomial(&generator, p, 5, false),
            wg_trunc_normal(&generator, WG_F32, WG_DIMS(100001), 0, 1, -1, 3),
            wg_normal(&generator, WG_F64, WG_DIMS(100001), 1, 2)};
        for (int i = 0; i < 5; i++) {
            if (threads > 1)
                assert_close(drawn[i], expected[i], 0, 0);
            expected[i] = drawn[i];
        }
    }
    wg_set_threads(before);
}

TEST(numbers_like_a_tensor_have_its_shape_and_dtype) {
    wg_generator a = {.seed = 32}, b = a;
    const wg_tensor *x = wg_zeros(WG_F32, WG_DIMS(4, 5));
    assert_close(wg_rand_like(&a, x), wg_rand(&b, WG_F32, WG_DIMS(4, 5)), 0, 0);
    assert_close(wg_randn_like(&a, x), wg_randn(&b, WG_F32, WG_DIMS(4, 5)), 0, 0);
    assert_close(wg_full_like(x, 2.5), wg_full(WG_F32, WG_DIMS(4, 5), 2.5), 0, 0);
    ck_assert_ptr_null(wg_rand_like(&a, NULL));
    ck_assert_ptr_null(wg_randn_like(&a, NULL));
    ck_assert_ptr_null(wg_full_like(NULL, 1));
}

static int call_without_memory(void *context) {
    const int call = *(const int *)context;
    wg_tensor *p = wg_full(WG_F32, WG_DIMS(3, 4), 0.5), *pair[2] = {0};
    wg_tensor *vectors[] = {wg_ones(WG_F32, WG_DIMS(2)), wg_ones(WG_F32, WG_DIMS(3))};
    const wg_tensor *y = call == 0   ? wg_bernoulli(NULL, p)
                         : call == 1 ? wg_multinomial(NULL, p, 2, true)
                         : call == 2 ? wg_multinomial(NULL, p, 2, false)
                         : call == 3 ? wg_trunc_normal(NULL, WG_BF16, WG_DIMS(9), 0, 1, 0, 1)
                         : call == 4 ? wg_linspace(WG_F32, 0, 1, 9)
                         : call == 5 ? wg_eye(WG_F32, 3, 3)
                         : call == 6 ? wg_tri(WG_F32, 3, 3, 0)
                         : wg_meshgrid(2, vectors, pair) == 0 ? pair[0]
                                                              : NULL;
    return y ? 0 : -1;
}

TEST(lack_of_memory_is_an_error_and_no_leak) {
    for (int call = 0; call < 8; call++)
        fail_each_allocation(call_without_memory, &call);
}

TEST(what_cannot_be_drawn_is_refused_and_takes_no_draw) {
    wg_generator g = {.seed = 33};
    refused(wg_normal(&g, WG_I32, WG_DIMS(2), 0, 1), DTYPE, "normal: i32");
    refused(wg_normal(&g, WG_F32, WG_DIMS(2), 0, -1), ARGUMENT, "deviation -1");
    refused(wg_normal(&g, WG_F32, WG_DIMS(2), NAN, 1), ARGUMENT, "mean nan");
    refused(wg_trunc_normal(&g, WG_I32, WG_DIMS(2), 0, 1, -1, 1), DTYPE, "trunc_normal");
    refused(wg_trunc_normal(&g, WG_F32, WG_DIMS(2), 0, 0, -1, 1), ARGUMENT, "deviation 0");
    refused(wg_trunc_normal(&g, WG_F32, WG_DIMS(2), 0, 1, 1, 1), ARGUMENT, "[1, 1]");
    refused(wg_trunc_normal(&g, WG_F32, WG_DIMS(2), 0, 1, NAN, 1), ARGUMENT, "[nan, 1]");
    refused(wg_bernoulli(&g, wg_zeros(WG_I64, WG_DIMS(2))), DTYPE, "bernoulli: i64");
    refused(wg_bernoulli(&g, wg_full(WG_F32, WG_DIMS(2), 1.5)), ARGUMENT,
            "bernoulli: element 0 is 1.5; wanted 0 <= p <= 1");
    refused(wg_bernoulli(&g, wg_full(WG_F32, WG_DIMS(2), NAN)), ARGUMENT, "is nan");
    wg_tensor *w = wg_from_array(WG_F64, WG_DIMS(2, 3), (double[]){1, 0, 0, 1, 1, 1});
    refused(wg_multinomial(&g, wg_ones(WG_I64, WG_DIMS(2)), 1, true), DTYPE, "i64");
    refused(wg_multinomial(&g, wg_scalar(WG_F32, 1), 1, true), SHAPE, "() f32");
    refused(wg_multinomial(&g, wg_ones(WG_F32, WG_DIMS(2, 0)), 1, true), SHAPE, "(2, 0)");
    refused(wg_multinomial(&g, w, 0, true), ARGUMENT, "0 samples");
    refused(wg_multinomial(&g, w, 2, false), ARGUMENT,
            "multinomial: row 0 has 1 weights above 0, their sum is 1; wanted at least 2");
    refused(wg_multinomial(&g, wg_zeros(WG_F32, WG_DIMS(3)), 1, true), ARGUMENT, "sum is 0");
    refused(wg_multinomial(&g, wg_full(WG_F32, WG_DIMS(3), -1), 1, true), ARGUMENT,
            "weight 0 of row 0 is -1");
    refused(wg_multinomial(&g, wg_full(WG_F32, WG_DIMS(3), INFINITY), 1, true), ARGUMENT, "is inf");
    refused(wg_multinomial(&g, wg_full(WG_F64, WG_DIMS(3), 1e308), 1, true), ARGUMENT,
            "finite sum");
    ck_assert_ptr_null(wg_bernoulli(&g, NULL));
    ck_assert_ptr_null(wg_multinomial(&g, NULL, 0, true));
    ck_assert_uint_eq(g.offset, 0);
    refused(wg_linspace(WG_F32, 0, 1, -1), ARGUMENT, "linspace: -1 numbers");
    refused(wg_logspace(WG_F32, 0, 1, -1, 2), ARGUMENT, "logspace: -1 numbers");
    refused(wg_eye(WG_F32, -1, 2), SHAPE, "negative");
    refused(wg_tri(WG_F32, 2, -1, 0), SHAPE, "negative");
}
