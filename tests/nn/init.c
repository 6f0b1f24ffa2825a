/* Initial values: the distributions of torch.nn.init and of new layers (tests/fixtures/init.py),
 * and what is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/attention.h"
#include "nn/conv.h"
#include "nn/linear.h"
#include "nn/module.h"
#include "nn/norm.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"
#include "nn/internal.h"

/* ---- Beside PyTorch ---- */

enum { QUANTILES = 21 };

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The quantiles of n samples deviate by 0.5/sqrt(n) of the samples at most (one standard
 * deviation): in the middle of a normal distribution 1.25/sqrt(n) of its deviations, at its 5th and
 * 95th percentile 2.1/sqrt(n). The extremes of a bounded distribution are close to its bounds;
 * those of others are not compared. */
static void hold_beside_pytorch(const char *name, wg_tensor *x, bool bounded) {
    const int64_t count = wg_tensor_count(x);
    double wanted[QUANTILES], *numbers = malloc((size_t)count * sizeof *numbers);
    ck_assert_int_eq(wg_to_array(fixture_tensor("init/%s", name), wanted), 0);
    ck_assert_int_eq(wg_to_array(wg_cast(wg_detach(x), WG_F64), numbers), 0);
    qsort(numbers, (size_t)count, sizeof *numbers, ascending);
    const double deviation = (wanted[15] - wanted[5]) / 1.349;
    for (int i = 1; i < QUANTILES - 1; i++) {
        const double at = (double)(count - 1) * i / (QUANTILES - 1);
        const double off = numbers[(int64_t)at] - wanted[i];
        ck_assert_msg(fabs(off) < 4 * 2.1 / sqrt((double)count) * deviation,
                      "%s: %g is quantile %d; wanted %g", name, wanted[i] + off, i, wanted[i]);
    }
    const double ends[] = {numbers[0], numbers[count - 1]},
                 limits[] = {wanted[0], wanted[QUANTILES - 1]};
    for (int i = 0; bounded && i < 2; i++)
        ck_assert_msg(fabs(ends[i]) <= fabs(limits[i]) * (1 + 1e-4) &&
                          fabs(ends[i]) >= fabs(limits[i]) * (1 - 5e-3),
                      "%s: %g is an end; wanted %g", name, ends[i], limits[i]);
    free(numbers);
}

START_TEST(every_kind_has_the_distribution_that_pytorch_gives_it) {
    const double gain_of_tanh = 5.0 / 3, gain_of_relu = sqrt(2);
    const struct {
        const char *name;
        wg_initializer how;
        bool bounded, field; /* field: a weight (O, I, 20) */
    } cases[] = {
        {"uniform", {WG_INIT_UNIFORM, 0.3}, .bounded = true},
        {"normal", {WG_INIT_NORMAL, 0.5}, .bounded = false},
        {"truncated_normal", {WG_INIT_TRUNCATED_NORMAL, 0.02}, .bounded = true},
        {"scaled_residual", {WG_INIT_NORMAL, wg__residual_scale(0.02, 24)}, .bounded = false},
        {"xavier_uniform", {WG_INIT_XAVIER_UNIFORM, 0}, .bounded = true},
        {"xavier_uniform_field", {WG_INIT_XAVIER_UNIFORM, 0}, .bounded = true, .field = true},
        {"xavier_normal", {WG_INIT_XAVIER_NORMAL, gain_of_tanh}, .bounded = false},
        {"xavier_normal_field", {WG_INIT_XAVIER_NORMAL, gain_of_tanh}, .field = true},
        {"kaiming_uniform", {WG_INIT_KAIMING_UNIFORM, 0}, .bounded = true},
        {"kaiming_uniform_field", {WG_INIT_KAIMING_UNIFORM, 0}, .bounded = true, .field = true},
        {"kaiming_normal", {WG_INIT_KAIMING_NORMAL, gain_of_relu}, .bounded = false},
        {"kaiming_normal_field", {WG_INIT_KAIMING_NORMAL, gain_of_relu}, .field = true},
    };
    wg_generator generator = {11, 0};
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        wg_tensor *x = cases[i].field ? wg_ones(WG_F32, WG_DIMS(60, 50, 20))
                                      : wg_ones(WG_F32, WG_DIMS(300, 200));
        ck_assert_int_eq(wg_initialize(x, &cases[i].how, &generator), 0);
        hold_beside_pytorch(cases[i].name, x, cases[i].bounded);
    }
    ck_assert_int_eq(generator.offset, WG_COUNT(cases));
}
END_TEST

START_TEST(new_layers_begin_as_pytorchs) {
    wg_module *root = wg_module_new(NULL, "", sizeof *root);
    root->generator.seed = 3;
    const wg_multi_head_attention_options narrow = {.memory_width = 200};
    wg_linear *linear = wg_linear_new(root, "linear", 200, 300, NULL);
    wg_embedding *table = wg_embedding_new(root, "table", 300, 200, NULL);
    wg_multi_head_attention *attention =
        wg_multi_head_attention_new(root, "attention", 300, 3, &narrow);
    wg_layer_norm *norm = wg_layer_norm_new(root, "norm", 300, NULL);
    const int64_t kernel[] = {4, 5};
    wg_conv *conv = wg_conv_new(root, "conv", 2, 60, 50, kernel, NULL);
    wg_conv *transposed = wg_conv_transpose_new(root, "transposed", 2, 50, 120, kernel,
                                                &(wg_conv_layer_options){.conv = {.groups = 2}});
    assert_no_error();
    hold_beside_pytorch("conv2d", conv->weight, true);
    hold_beside_pytorch("conv_transpose2d", transposed->weight, true);
    hold_beside_pytorch("linear", linear->weight, true);
    hold_beside_pytorch("embedding", table->weight, false);
    hold_beside_pytorch("attention", attention->key->weight, true);
    wg_tensor *zeros = wg_zeros(WG_F32, WG_DIMS(300));
    assert_close(wg_detach(linear->bias), zeros, 0, 0);
    assert_close(wg_detach(attention->key->bias), zeros, 0, 0);
    assert_close(wg_detach(norm->bias), zeros, 0, 0);
    const double bound = 1 / sqrt(60 * 4 * 5);
    const double largest = wg_item(wg_max(wg_abs(conv->bias), WG_ALL, false));
    ck_assert(largest <= bound && largest > 0.8 * bound);
    assert_close(wg_detach(norm->weight), wg_ones(WG_F32, WG_DIMS(300)), 0, 0);
    wg_module_free(root);
}
END_TEST

/* ---- Errors, and the same again ---- */

START_TEST(constants_are_constants) {
    wg_tensor *x = wg_rand(NULL, WG_F32, WG_DIMS(7));
    ck_assert_int_eq(wg_initialize(x, &(wg_initializer){WG_INIT_ZEROS, 0}, NULL), 0);
    assert_close(x, wg_zeros(WG_F32, WG_DIMS(7)), 0, 0);
    ck_assert_int_eq(wg_initialize(x, &(wg_initializer){WG_INIT_ONES, 0}, NULL), 0);
    assert_close(x, wg_ones(WG_F32, WG_DIMS(7)), 0, 0);
}
END_TEST

START_TEST(the_same_generator_gives_the_same_weights) {
    float first[12], second[12];
    for (int i = 0; i < 2; i++) {
        wg_module *root = wg_module_new(NULL, "", sizeof *root);
        root->generator = (wg_generator){42, 0};
        wg_linear *linear = wg_linear_new(root, "linear", 4, 3, NULL);
        wg_to_array(linear->weight, i ? second : first);
        ck_assert_double_eq(wg_at(linear->bias, (int64_t[]){0}), 0);
        ck_assert(wg_requires_grad(linear->weight));
        wg_module_free(root);
    }
    ck_assert(memcmp(first, second, sizeof first) == 0);
}
END_TEST

START_TEST(initialising_refuses_an_expanded_view) {
    wg_tensor *x = wg_ones(WG_F32, WG_DIMS(1, 3)), *view = wg_expand(x, WG_DIMS(2, 3));
    for (int kind = WG_INIT_ZEROS; kind <= WG_INIT_KAIMING_NORMAL; kind++) {
        wg_initializer how = {kind, 0};
        assert_fails(wg_initialize(view, &how, NULL), WG_ERROR_ARGUMENT, "share an address");
        assert_close(x, wg_ones_like(x), 0, 0);
    }
}
END_TEST

START_TEST(initialising_refuses_what_it_cannot_do) {
    wg_tensor *vector = wg_zeros(WG_F32, WG_DIMS(3)), *ids = wg_zeros(WG_I64, WG_DIMS(3));
    wg_initialize(vector, &(wg_initializer){WG_INIT_XAVIER_NORMAL, 1}, NULL);
    assert_error(WG_ERROR_SHAPE, "rank 1");
    wg_initialize(ids, &(wg_initializer){WG_INIT_ZEROS, 0}, NULL);
    assert_error(WG_ERROR_DTYPE, "i64");
    wg_initialize(vector, &(wg_initializer){WG_INIT_NORMAL, -1}, NULL);
    assert_error(WG_ERROR_ARGUMENT, "-1");
    wg_initialize(vector, &(wg_initializer){WG_INIT_NORMAL, wg__residual_scale(0.02, 0)}, NULL);
    assert_error(WG_ERROR_ARGUMENT, "nan");
    wg_initialize(vector, &(wg_initializer){WG_INIT_DEFAULT, 0}, NULL);
    assert_error(WG_ERROR_ARGUMENT, "wg_init_kind");
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        every_kind_has_the_distribution_that_pytorch_gives_it,
        new_layers_begin_as_pytorchs,
        constants_are_constants,
        the_same_generator_gives_the_same_weights,
        initialising_refuses_an_expanded_view,
        initialising_refuses_what_it_cannot_do,
    };
    add_suite("init", tests);
}
