/* Softmax and log-softmax against PyTorch along any axis, and where e^x overflows or a whole row is
 * masked. */
#include "autograd/autograd.h"
#include "tensor/ops.h"
#include "tests/support/fused.h"
#include "tests/support/tensors.h"

#include <math.h>
#include <stdio.h>

static wg_tensor *stored(const char *name, const char *array) {
    return fixture_tensor("kernels/%s_%s", name, array);
}

static void assert_like_pytorch(const char *name, wg_tensor *(*function)(wg_tensor *, int),
                                int axis) {
    wg_tensor *x = leaf_of(stored(name, "x"));
    wg_tensor *y = function(x, axis);
    assert_close(wg_detach(y), stored(name, "y"), 1e-5, 1e-7);
    backward_from(y, stored(name, "dy"));
    assert_close(wg_gradient(x), stored(name, "dx"), 1e-5, 1e-6);
}

TEST(softmax_along_any_axis_is_that_of_pytorch) {
    assert_like_pytorch("softmax_last", wg_softmax, -1);
    assert_like_pytorch("softmax_middle", wg_softmax, 1);
}

TEST(log_softmax_along_any_axis_is_that_of_pytorch) {
    assert_like_pytorch("log_softmax_last", wg_log_softmax, 2);
    assert_like_pytorch("log_softmax_first", wg_log_softmax, -3);
}

TEST(large_logits_neither_overflow_nor_vanish) {
    const double values[] = {1e4, 1e4 - 1, -1e4}, e = exp(-1);
    wg_tensor *x = wg_cast(wg_from_array(WG_F64, WG_DIMS(3), values), WG_F32);
    const double y[] = {1 / (1 + e), e / (1 + e), 0};
    const double log_y[] = {-log1p(e), -1 - log1p(e), -2e4 - log1p(e)};
    assert_close(wg_softmax(x, 0), wg_cast(wg_from_array(WG_F64, WG_DIMS(3), y), WG_F32), 1e-6, 0);
    assert_close(wg_log_softmax(x, 0), wg_cast(wg_from_array(WG_F64, WG_DIMS(3), log_y), WG_F32),
                 1e-6, 0);
}

TEST(softmax_of_a_masked_row_is_zero_and_passes_no_gradient) {
    wg_tensor *x = wg_full(WG_F32, WG_DIMS(2, 40), -INFINITY);
    wg_fill_(wg_select(wg_select(x, 0, 1), 0, 7), 3);
    wg_set_requires_grad(x, true);
    wg_tensor *y = wg_softmax(x, 1);
    wg_tensor *expected = wg_zeros(WG_F32, WG_DIMS(2, 40));
    wg_fill_(wg_select(wg_select(expected, 0, 1), 0, 7), 1);
    assert_close(wg_detach(y), expected, 0, 0);
    backward_from(y, wg_ones(WG_F32, WG_DIMS(2, 40)));
    assert_close(wg_gradient(x), wg_zeros(WG_F32, WG_DIMS(2, 40)), 0, 0);
}

/* A careless f32 sum of 30000 numbers of at most 1 loses digits. */
TEST(long_rows_sum_to_one) {
    wg_generator generator = {.seed = 3};
    wg_tensor *x = wg_randn(&generator, WG_F32, WG_DIMS(3, 30522));
    wg_tensor *sums = wg_sum(wg_cast(wg_softmax(x, 1), WG_F64), WG_DIMS(1), false);
    assert_close(sums, wg_ones(WG_F64, WG_DIMS(3)), 1e-6, 0);
    wg_tensor *wide = wg_log_softmax(wg_cast(x, WG_F64), 1);
    assert_close(wg_log_softmax(x, 1), wg_cast(wide, WG_F32), 1e-6, 0);
}

static void both(int count, wg_tensor **results) {
    (void)count;
    wg_generator generator = {.seed = 4};
    wg_tensor *x = wg_randn(&generator, WG_F32, WG_DIMS(70, 1001));
    results[0] = wg_softmax(x, 1);
    results[1] = wg_log_softmax(x, 0);
}

TEST(softmax_has_the_same_bits_at_any_thread_count) {
    assert_same_bits_at_any_thread_count(2, both);
}
