/* Cross-entropy against PyTorch: ignored targets, large logits, long rows, and which memory
 * backward may overwrite. */
#include "autograd/autograd.h"
#include "tensor/ops.h"
#include "tests/support/fused.h"
#include "tests/support/tensors.h"

#include <math.h>
#include <stdio.h>

static wg_tensor *stored(const char *array) {
    return fixture_tensor("kernels/cross_entropy_%s", array);
}

static wg_tensor *targets(int64_t rows, int64_t classes) {
    wg_generator generator = {.seed = 1};
    return wg_randint(&generator, 0, classes, WG_DIMS(rows));
}

static wg_tensor *logits(wg_dtype dtype, int64_t rows, int64_t classes) {
    wg_generator generator = {.seed = 2};
    return wg_randn(&generator, dtype, WG_DIMS(rows, classes));
}

TEST(cross_entropy_is_that_of_pytorch) {
    static const wg_dtype dtypes[] = {WG_I64, WG_I32};
    for (size_t i = 0; i < WG_COUNT(dtypes); i++) {
        wg_tensor *x = leaf_of(stored("x"));
        wg_tensor *loss = wg_cross_entropy(x, wg_cast(stored("target"), dtypes[i]), -100, NULL);
        assert_close(wg_detach(loss), stored("y"), 1e-6, 0);
        ck_assert_int_eq(wg_backward(loss, NULL), 0);
        assert_close(wg_gradient(x), stored("dx"), 1e-5, 1e-7);
    }
}

TEST(large_logits_give_large_losses) {
    const double values[] = {3000, 0, -3000};
    wg_tensor *x = wg_cast(wg_from_array(WG_F64, WG_DIMS(1, 3), values), WG_F32);
    for (int64_t target = 0; target < 3; target++)
        ck_assert_double_eq(
            wg_item(wg_cross_entropy(x, wg_full(WG_I64, WG_DIMS(1), (double)target), -100, NULL)),
            3000.0 * (double)target);
}

TEST(long_rows_lose_no_digits) {
    wg_tensor *target = targets(4, 30522);
    double single = wg_item(wg_cross_entropy(logits(WG_F32, 4, 30522), target, -100, NULL));
    wg_tensor *wide = wg_cast(logits(WG_F32, 4, 30522), WG_F64);
    ck_assert_double_eq_tol(single, wg_item(wg_cross_entropy(wide, target, -100, NULL)), 1e-5);
}

TEST(a_loss_of_no_targets_is_nan) {
    wg_tensor *x = logits(WG_F32, 3, 5), *none = wg_full(WG_I64, WG_DIMS(3), -1);
    ck_assert(isnan(wg_item(wg_cross_entropy(x, none, -1, NULL))));
}

/* The gradient is written over the logits only if the graph alone holds them and backward will not
 * run again. */
TEST(logits_that_somebody_holds_are_left_as_they_were) {
    for (int retain = 0; retain < 2; retain++) {
        wg_tensor *leaf = logits(WG_F32, 4, 50), *target = targets(4, 50), *held = NULL;
        wg_set_requires_grad(leaf, true);
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *x = wg_mul_scalar(leaf, 1);
        if (!retain)
            held = wg_scope_escape(wg_detach(x));
        wg_tensor *loss = wg_scope_end(&scope, wg_cross_entropy(x, target, -100, NULL));
        wg_backward_options options = {.retain_graph = retain};
        ck_assert_int_eq(wg_backward(loss, &options), 0);
        wg_tensor *first = wg_clone(wg_gradient(leaf));
        if (held)
            assert_close(held, wg_detach(leaf), 0, 0);
        if (!retain)
            continue;
        wg_zero_grad(leaf);
        ck_assert_int_eq(wg_backward(loss, NULL), 0);
        assert_close(wg_gradient(leaf), first, 0, 0);
    }
}

static void loss_and_gradient(int count, wg_tensor **results) {
    (void)count;
    wg_tensor *x = logits(WG_F32, 61, 3001), *target = targets(61, 3001);
    wg_set_requires_grad(x, true);
    results[0] = wg_cross_entropy(x, target, 5, NULL);
    wg_grad(1, results, NULL, 1, &x, NULL, results + 1);
}

TEST(cross_entropy_has_the_same_bits_at_any_thread_count) {
    assert_same_bits_at_any_thread_count(2, loss_and_gradient);
}

TEST(targets_out_of_range_are_refused) {
    wg_tensor *x = logits(WG_F32, 2, 5);
    const int64_t high[] = {1, 5}, low[] = {-1, 1};
    refused(wg_cross_entropy(x, wg_from_array(WG_I64, WG_DIMS(2), high), -100, NULL), INDEX,
            "target 5");
    refused(wg_cross_entropy(x, wg_from_array(WG_I64, WG_DIMS(2), low), -100, NULL), INDEX,
            "target -1");
    refused(wg_cross_entropy(x, targets(3, 5), -100, NULL), SHAPE, "(N, V)");
    refused(wg_cross_entropy(x, wg_zeros(WG_U8, WG_DIMS(2)), -100, NULL), DTYPE, "i64 or i32");
}
