/* Dropout: its rate, that the mask is a function of (seed, offset, index) alone, and that backward
 * replays it. */
#include "autograd/autograd.h"
#include "tensor/ops.h"
#include "tests/support/fused.h"
#include "tests/support/tensors.h"

#include <math.h>

enum { COUNT = 200000 };

static double mean_of(wg_tensor *x) {
    return wg_item(wg_mean(wg_cast(x, WG_F64), WG_ALL, false));
}

/* Whether each element was kept, as 0 or 1 in f64. */
static wg_tensor *kept(double p, uint64_t seed, uint64_t offset, int64_t count) {
    wg_tensor *y = wg_dropout_op(wg_ones(WG_F32, WG_DIMS(count)), p, seed, offset);
    return wg_cast(wg_ne(y, wg_scalar(WG_F32, 0)), WG_F64);
}

TEST(the_share_of_kept_elements_is_that_asked_for) {
    static const double probabilities[] = {0.01, 0.1, 0.5, 0.9};
    for (size_t i = 0; i < WG_COUNT(probabilities); i++) {
        double p = probabilities[i];
        /* five standard deviations of the binomial's share */
        ck_assert_double_eq_tol(mean_of(kept(p, 1, i, COUNT)), 1 - p,
                                5 * sqrt(p * (1 - p) / COUNT));
    }
}

TEST(kept_elements_are_scaled_and_the_others_zero) {
    wg_generator generator = {.seed = 2};
    wg_tensor *x = wg_randn(&generator, WG_F32, WG_DIMS(1000));
    wg_tensor *scaled = wg_mul_scalar(x, 1 / (1 - 0.2));
    wg_tensor *mask = wg_cast(kept(0.2, 3, 4, 1000), WG_F32);
    assert_close(wg_dropout_op(x, 0.2, 3, 4), wg_mul(scaled, mask), 1e-6, 0);
    /* A dropped element is zero, even if it was not finite. */
    wg_tensor *infinite = wg_dropout_op(wg_full(WG_F32, WG_DIMS(1000), INFINITY), 0.2, 3, 4);
    ck_assert(!isnan(wg_item(wg_max(infinite, WG_ALL, false))));
}

/* The masks of neighbours, of elements 16 and 64 apart (the kernels' steps), and of other draws and
 * seeds are independent. */
TEST(decisions_are_independent) {
    static const int64_t distances[] = {1, 2, 4, 16, 64, 128};
    wg_tensor *all = kept(0.5, 5, 6, COUNT);
    double limit = 5 * sqrt(3.0 / 16 / COUNT);
    for (size_t i = 0; i < WG_COUNT(distances); i++) {
        wg_tensor *here = wg_slice(all, 0, 0, COUNT - 128, 1);
        wg_tensor *there = wg_slice(all, 0, distances[i], COUNT - 128 + distances[i], 1);
        ck_assert_double_eq_tol(mean_of(wg_mul(here, there)), 0.25, limit);
    }
    ck_assert_double_eq_tol(mean_of(wg_mul(all, kept(0.5, 5, 7, COUNT))), 0.25, limit);
    ck_assert_double_eq_tol(mean_of(wg_mul(all, kept(0.5, 6, 6, COUNT))), 0.25, limit);
}

TEST(an_element_is_decided_by_its_index_alone) {
    wg_tensor *all = kept(0.3, 8, 9, 1000);
    static const int64_t counts[] = {1, 63, 64, 65, 500};
    for (size_t i = 0; i < WG_COUNT(counts); i++)
        assert_close(kept(0.3, 8, 9, counts[i]), wg_clone(wg_slice(all, 0, 0, counts[i], 1)), 0, 0);
    wg_tensor *wide = wg_dropout_op(wg_ones(WG_F64, WG_DIMS(10, 100)), 0.3, 8, 9);
    assert_close(wg_cast(wg_ne(wide, wg_scalar(WG_F64, 0)), WG_F64),
                 wg_reshape(all, WG_DIMS(10, 100)), 0, 0);
    wg_tensor *turned = wg_transpose(wg_ones(WG_F64, WG_DIMS(100, 10)), 0, 1);
    assert_close(wg_dropout_op(turned, 0.3, 8, 9), wide, 0, 0);
}

TEST(backward_drops_the_same_elements) {
    wg_tensor *x = leaf_of(wg_ones(WG_F32, WG_DIMS(777)));
    wg_tensor *y = wg_dropout_op(x, 0.4, 10, 11);
    backward_from(y, wg_ones(WG_F32, WG_DIMS(777)));
    assert_close(wg_gradient(x), wg_detach(y), 0, 0);
}

static void large_draw(int count, wg_tensor **results) {
    (void)count;
    results[0] = wg_dropout_op(wg_ones(WG_F32, WG_DIMS(COUNT + 7)), 0.1, 12, 13);
}

TEST(dropout_has_the_same_bits_at_any_thread_count) {
    assert_same_bits_at_any_thread_count(1, large_draw);
}

TEST(a_probability_of_zero_keeps_all_and_others_are_refused) {
    wg_tensor *x = wg_full(WG_F32, WG_DIMS(100), 3);
    assert_close(wg_dropout_op(x, 0, 14, 15), x, 0, 0);
    static const double refused[] = {1, -0.1, 1.5, NAN};
    for (size_t i = 0; i < WG_COUNT(refused); i++) {
        refused(wg_dropout_op(x, refused[i], 0, 0), ARGUMENT, "0 <= p < 1");
    }
}
