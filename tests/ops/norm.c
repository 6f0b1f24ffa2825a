/* Normalisation of rows and of channels against PyTorch and against its decomposition, far from
 * zero, with the same bits at any number of threads. */
#include "autograd/autograd.h"
#include "tensor/ops.h"
#include "tests/support/fused.h"
#include "tests/support/tensors.h"

#include <stdio.h>

static wg_tensor *stored(const char *array) {
    return fixture_tensor("kernels/layer_norm_%s", array);
}

TEST(layer_norm_is_that_of_pytorch) {
    wg_tensor *inputs[] = {stored("x"), stored("weight"), stored("bias")};
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(wg_set_requires_grad(inputs[i], true), 0);
    wg_tensor *y = wg_layer_norm_op(inputs[0], inputs[1], inputs[2], 1e-5);
    assert_close(wg_detach(y), stored("y"), 1e-5, 1e-6);
    backward_from(y, stored("dy"));
    assert_close(wg_gradient(inputs[0]), stored("dx"), 1e-5, 2e-6);
    assert_close(wg_gradient(inputs[1]), stored("dweight"), 1e-5, 5e-6);
    assert_close(wg_gradient(inputs[2]), stored("dbias"), 1e-5, 5e-6);
}

/* The variance is computed from differences from the mean, not as a difference of large squares. */
TEST(rows_far_from_zero_are_normalised_as_well) {
    wg_tensor *x = normal(1, WG_F32, WG_DIMS(4, 300));
    wg_tensor *y = wg_layer_norm_op(wg_add_scalar(x, 4096), NULL, NULL, 0);
    assert_close(y, wg_layer_norm_op(x, NULL, NULL, 0), 0, 1e-3);
}

TEST(a_constant_row_becomes_the_bias) {
    wg_tensor *bias = normal(2, WG_F32, WG_DIMS(33));
    wg_tensor *y = wg_layer_norm_op(wg_full(WG_F32, WG_DIMS(33), 7), NULL, bias, 1e-12);
    assert_close(y, bias, 0, 0);
}

TEST(layer_norm_takes_any_strides) {
    wg_tensor *x = wg_transpose(normal(3, WG_F32, WG_DIMS(9, 6, 5)), 0, 2);
    wg_tensor *weight = wg_slice(normal(4, WG_F32, WG_DIMS(18)), 0, 0, WG_END, 2);
    wg_tensor *bias = wg_slice(normal(5, WG_F32, WG_DIMS(9)), 0, WG_END, WG_END, -1);
    assert_close(wg_layer_norm_op(x, weight, bias, 1e-5),
                 wg_layer_norm_op(wg_clone(x), wg_clone(weight), wg_clone(bias), 1e-5), 0, 0);
}

static void norm_and_gradients(int count, wg_tensor **results) {
    (void)count;
    wg_tensor *inputs[] = {normal(6, WG_F32, WG_DIMS(5, 409, 100)), normal(7, WG_F32, WG_DIMS(100)),
                           normal(8, WG_F32, WG_DIMS(100))};
    for (int i = 0; i < 3; i++)
        wg_set_requires_grad(inputs[i], true);
    results[0] = wg_layer_norm_op(inputs[0], inputs[1], inputs[2], 1e-5);
    wg_tensor *g = normal(9, WG_F32, WG_DIMS(5, 409, 100));
    wg_grad(1, results, &g, 3, inputs, NULL, results + 1);
}

TEST(layer_norm_has_the_same_bits_at_any_thread_count) {
    assert_same_bits_at_any_thread_count(4, norm_and_gradients);
}

TEST(layer_norm_adds_onto_the_gradients_that_are_there) {
    wg_tensor *x = normal(10, WG_F32, WG_DIMS(3, 8));
    wg_tensor *weight = normal(11, WG_F32, WG_DIMS(8)), *bias = normal(12, WG_F32, WG_DIMS(8));
    wg_set_requires_grad(weight, true);
    wg_set_requires_grad(bias, true);
    wg_backward_options ones = {.cotangent = wg_ones(WG_F32, WG_DIMS(3, 8))};
    wg_tensor *once = NULL;
    for (int pass = 0; pass < 2; pass++) {
        ck_assert_int_eq(wg_backward(wg_layer_norm_op(x, weight, bias, 1e-5), &ones), 0);
        if (pass == 0)
            once = wg_clone(wg_gradient(weight));
    }
    assert_close(wg_gradient(weight), wg_mul_scalar(once, 2), 1e-6, 1e-6);
    assert_close(wg_gradient(bias), wg_full(WG_F32, WG_DIMS(8), 6), 0, 0);
}

/* ---- Channels ---- */

/* Few places of a channel, where sums are by columns, and many, where they are by rows. */
TEST(channels_far_from_zero_are_normalised_as_well) {
    for (int64_t places = 1; places <= 3000; places += 2999) {
        wg_tensor *x = normal(20, WG_F32, WG_DIMS(300, 3, places)), *y, *near, *mean, *variance;
        ck_assert_int_eq(wg_batch_norm_op(x, NULL, NULL, 1e-5, &near, NULL, &variance), 0);
        wg_tensor *far = wg_add_scalar(x, 4096), *variance_far;
        ck_assert_int_eq(wg_batch_norm_op(far, NULL, NULL, 1e-5, &y, &mean, &variance_far), 0);
        assert_close(y, near, 0, 2e-3);
        assert_close(variance_far, variance, 1e-4, 0);
        assert_close(mean, wg_full(WG_F32, WG_DIMS(3), 4096), 1e-4, 0);
    }
}

/* 300 x 3000 values a channel: sums in f32 alone would be off by 1e-5 and more. */
TEST(statistics_of_many_values_are_those_in_f64) {
    for (int64_t places = 1; places <= 3000; places += 2999) {
        wg_tensor *x = normal(21, WG_F32, WG_DIMS(900000 / places, 2, places)), *y, *found[2],
                  *wanted[2];
        x = wg_add_scalar(x, 2);
        ck_assert_int_eq(wg_batch_norm_op(x, NULL, NULL, 1e-5, &y, &found[0], &found[1]), 0);
        ck_assert_int_eq(
            wg_batch_norm_op(wg_cast(x, WG_F64), NULL, NULL, 1e-5, &y, &wanted[0], &wanted[1]), 0);
        for (int i = 0; i < 2; i++)
            assert_close(wg_cast(found[i], WG_F64), wanted[i], 3e-7, 0);
    }
}

static void batch_norms_and_gradients(int count, wg_tensor **results) {
    (void)count;
    for (int i = 0; i < 2; i++) {
        const int64_t places = i == 0 ? 1 : 150;
        wg_tensor *inputs[] = {normal(22, WG_F32, WG_DIMS(65, 300, places)),
                               normal(23, WG_F32, WG_DIMS(300)), normal(24, WG_F32, WG_DIMS(300))};
        for (int k = 0; k < 3; k++)
            wg_set_requires_grad(inputs[k], true);
        wg_tensor *g = normal(25, WG_F32, WG_DIMS(65, 300, places));
        wg_batch_norm_op(inputs[0], inputs[1], inputs[2], 1e-5, &results[4 * i], NULL, NULL);
        wg_grad(1, &results[4 * i], &g, 3, inputs, NULL, &results[4 * i + 1]);
    }
}

TEST(batch_norm_has_the_same_bits_at_any_thread_count) {
    assert_same_bits_at_any_thread_count(8, batch_norms_and_gradients);
}

TEST(batch_norm_adds_onto_the_gradients_that_are_there) {
    wg_tensor *x = normal(26, WG_F32, WG_DIMS(3, 8)), *y, *once = NULL;
    wg_tensor *weight = normal(27, WG_F32, WG_DIMS(8)), *bias = normal(28, WG_F32, WG_DIMS(8));
    wg_set_requires_grad(weight, true);
    wg_set_requires_grad(bias, true);
    wg_backward_options ramp = {.cotangent = normal(29, WG_F32, WG_DIMS(3, 8))};
    for (int pass = 0; pass < 2; pass++) {
        ck_assert_int_eq(wg_batch_norm_op(x, weight, bias, 1e-5, &y, NULL, NULL), 0);
        ck_assert_int_eq(wg_backward(y, &ramp), 0);
        if (pass == 0)
            once = wg_clone(wg_gradient(weight));
    }
    assert_close(wg_gradient(weight), wg_mul_scalar(once, 2), 1e-6, 1e-6);
}

/* A constant cotangent of y contributes nothing to the gradient of x, which must be exactly that
 * of the mean. */
TEST(one_value_a_channel_has_the_gradient_of_its_mean) {
    wg_tensor *x = normal(30, WG_F32, WG_DIMS(1, 40)), *outputs[3], *gradient;
    wg_tensor *g[] = {normal(31, WG_F32, WG_DIMS(1, 40)), normal(32, WG_F32, WG_DIMS(40))};
    wg_set_requires_grad(x, true);
    ck_assert_int_eq(wg_batch_norm_op(x, NULL, NULL, 1e-5, &outputs[0], &outputs[1], &outputs[2]),
                     0);
    ck_assert_int_eq(wg_grad(2, outputs, g, 1, &x, NULL, &gradient), 0);
    assert_close(wg_reshape(gradient, WG_DIMS(40)), g[1], 0, 0);
}

TEST(no_channels_or_no_images_give_nothing) {
    wg_tensor *y, *mean, *none = wg_ones(WG_F32, WG_DIMS(2, 0, 3)),
                         *three = wg_ones(WG_F32, WG_DIMS(3));
    ck_assert_int_eq(wg_batch_norm_op(none, NULL, NULL, 1e-5, &y, &mean, NULL), 0);
    ck_assert_int_eq(wg_tensor_size(y, 1) + wg_tensor_size(mean, 0), 0);
    y = wg_normalize_channels(wg_ones(WG_F32, WG_DIMS(0, 3)), three, three, NULL, NULL, 1e-5);
    ck_assert_int_eq(wg_tensor_size(y, 0), 0);
}

TEST(channels_that_do_not_fit_are_refused) {
    wg_tensor *x = wg_ones(WG_F32, WG_DIMS(2, 3)), *y, *two = wg_ones(WG_F32, WG_DIMS(2));
    failed(wg_batch_norm_op(x, two, NULL, 1e-5, &y, NULL, NULL), SHAPE,
           "wanted vectors of 3, a value for each channel");
    failed(wg_batch_norm_op(wg_ones(WG_F32, WG_DIMS(2)), NULL, NULL, 1e-5, &y, NULL, NULL), SHAPE,
           "wanted x of (B, C, ...)");
    failed(wg_batch_norm_op(wg_ones(WG_F32, WG_DIMS(0, 3)), NULL, NULL, 1e-5, &y, NULL, NULL),
           SHAPE, "a channel has no values to normalise");
    refused(wg_normalize_channels(x, two, two, NULL, NULL, 1e-5), SHAPE,
            "wanted vectors of 3, a value for each channel");
    ck_assert_ptr_null(wg_normalize_channels(wg_cast(x, WG_I64), two, two, NULL, NULL, 1e-5));
    wg_error_clear();
}
