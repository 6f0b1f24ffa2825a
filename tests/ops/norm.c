/* Layer normalisation against PyTorch and against its decomposition, far from zero, with the same
 * bits at any number of threads. */
#include "autograd/autograd.h"
#include "tensor/npy.h"
#include "tensor/ops.h"
#include "tests/support/fused.h"
#include "tests/support/testing.h"

#include <stdio.h>

static wg_tensor *stored(const char *array) {
    char file[128];
    snprintf(file, sizeof file, "kernels/layer_norm_%s.npy", array);
    return wg_npy_load(fixture(file));
}

static wg_tensor *normal(uint64_t seed, int ndim, const int64_t *shape) {
    wg_generator generator = {.seed = seed};
    return wg_randn(&generator, WG_F32, ndim, shape);
}

START_TEST(layer_norm_is_that_of_pytorch) {
    wg_tensor *inputs[] = {stored("x"), stored("weight"), stored("bias")};
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(wg_set_requires_grad(inputs[i], true), 0);
    wg_tensor *y = wg_layer_norm_op(inputs[0], inputs[1], inputs[2], 1e-5);
    assert_close(wg_detach(y), stored("y"), 1e-5, 1e-6);
    wg_backward_options cotangent = {.cotangent = stored("dy")};
    ck_assert_int_eq(wg_backward(y, &cotangent), 0);
    assert_close(wg_gradient(inputs[0]), stored("dx"), 1e-5, 2e-6);
    assert_close(wg_gradient(inputs[1]), stored("dweight"), 1e-5, 5e-6);
    assert_close(wg_gradient(inputs[2]), stored("dbias"), 1e-5, 5e-6);
}
END_TEST

START_TEST(layer_norm_is_its_decomposition) {
    assert_fused("layer_norm", WG_F64, 1e-11, 1e-11);
    assert_fused("layer_norm", WG_F32, 1e-4, 1e-5);
}
END_TEST

/* The variance is computed from differences from the mean, not as a difference of large squares. */
START_TEST(rows_far_from_zero_are_normalised_as_well) {
    wg_tensor *x = normal(1, WG_DIMS(4, 300));
    wg_tensor *y = wg_layer_norm_op(wg_add_scalar(x, 4096), NULL, NULL, 0);
    assert_close(y, wg_layer_norm_op(x, NULL, NULL, 0), 0, 1e-3);
}
END_TEST

START_TEST(a_constant_row_becomes_the_bias) {
    wg_tensor *bias = normal(2, WG_DIMS(33));
    wg_tensor *y = wg_layer_norm_op(wg_full(WG_F32, WG_DIMS(33), 7), NULL, bias, 1e-12);
    assert_close(y, bias, 0, 0);
}
END_TEST

START_TEST(layer_norm_takes_any_strides) {
    wg_tensor *x = wg_transpose(normal(3, WG_DIMS(9, 6, 5)), 0, 2);
    wg_tensor *weight = wg_slice(normal(4, WG_DIMS(18)), 0, 0, WG_END, 2);
    wg_tensor *bias = wg_slice(normal(5, WG_DIMS(9)), 0, WG_END, WG_END, -1);
    assert_close(wg_layer_norm_op(x, weight, bias, 1e-5),
                 wg_layer_norm_op(wg_clone(x), wg_clone(weight), wg_clone(bias), 1e-5), 0, 0);
}
END_TEST

static void norm_and_gradients(int count, wg_tensor **results) {
    (void)count;
    wg_tensor *inputs[] = {normal(6, WG_DIMS(5, 409, 100)), normal(7, WG_DIMS(100)),
                           normal(8, WG_DIMS(100))};
    for (int i = 0; i < 3; i++)
        wg_set_requires_grad(inputs[i], true);
    results[0] = wg_layer_norm_op(inputs[0], inputs[1], inputs[2], 1e-5);
    wg_tensor *g = normal(9, WG_DIMS(5, 409, 100));
    wg_grad(1, results, &g, 3, inputs, NULL, results + 1);
}

START_TEST(layer_norm_has_the_same_bits_at_any_thread_count) {
    assert_same_bits_at_any_thread_count(4, norm_and_gradients);
}
END_TEST

START_TEST(layer_norm_adds_onto_the_gradients_that_are_there) {
    wg_tensor *x = normal(10, WG_DIMS(3, 8));
    wg_tensor *weight = normal(11, WG_DIMS(8)), *bias = normal(12, WG_DIMS(8));
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
END_TEST

SUITES {
    const TTest *const tests[] = {layer_norm_is_that_of_pytorch,
                                  layer_norm_is_its_decomposition,
                                  rows_far_from_zero_are_normalised_as_well,
                                  a_constant_row_becomes_the_bias,
                                  layer_norm_takes_any_strides,
                                  layer_norm_has_the_same_bits_at_any_thread_count,
                                  layer_norm_adds_onto_the_gradients_that_are_there};
    add_suite("norm", tests);
}
