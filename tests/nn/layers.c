/* The layers: dropout, names, shapes, errors. layer_forms.c compares their results with
 * PyTorch's. */
#include "tests/support/testing.h"

#include <math.h>
#include <string.h>

#include "nn/conv.h"
#include "nn/norm.h"
#include "nn/attention.h"
#include "nn/module.h"
#include "nn/linear.h"
#include "nn/feed_forward.h"
#include "base/alloc.h"
#include "tensor/ops.h"
#include "nn/internal.h"

/* ---- Dropout ---- */

START_TEST(dropout_rests_in_evaluation_and_without_probability) {
    wg_module *root = wg_module_new(NULL, "", sizeof *root);
    wg_tensor *x = wg_ones(WG_F32, WG_DIMS(100));
    ck_assert_ptr_eq(wg_dropout(root, x, 0), x);
    wg_module_train(root, false);
    ck_assert_ptr_eq(wg_dropout(root, x, 0.5), x);
    ck_assert_int_eq(wg_module_generator(root)->offset, 0);
    wg_module_free(root);
}
END_TEST

START_TEST(dropout_differs_from_draw_to_draw_and_is_replayed_from_the_generator) {
    wg_module *root = wg_module_new(NULL, "", sizeof *root);
    wg_tensor *x = wg_ones(WG_F32, WG_DIMS(1000));
    wg_generator before = *wg_module_generator(root);
    float first[1000], second[1000], again[1000];
    wg_to_array(wg_dropout(root, x, 0.25), first);
    wg_to_array(wg_dropout(root, x, 0.25), second);
    *wg_module_generator(root) = before;
    wg_to_array(wg_dropout(root, x, 0.25), again);
    ck_assert(memcmp(first, second, sizeof first) != 0);
    ck_assert(memcmp(first, again, sizeof first) == 0);
    int kept = 0;
    for (int i = 0; i < 1000; i++) {
        ck_assert(first[i] == 0 || fabsf(first[i] - 4.0f / 3) < 1e-6f);
        kept += first[i] != 0;
    }
    ck_assert(kept > 690 && kept < 810); /* 750, with a standard deviation of 14 */
    wg_module_free(root);
}
END_TEST

/* ---- Names and shapes ---- */

START_TEST(weight_decay_spares_biases_and_norms_alone) {
    wg_module *root = wg_module_new(NULL, "", sizeof *root);
    wg_multi_head_attention_new(root, "attention", 12, 3, NULL);
    wg_feed_forward_new(root, "feed_forward", 12, 20, NULL);
    wg_add_norm_new(root, "output", 12, NULL);
    wg_state_dict *state = wg_module_state(root);
    for (int64_t i = 0; i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        ck_assert_int_eq(slot->no_decay, wg_tensor_ndim(slot->tensor) == 1);
    }
    wg_state_dict_free(state);
    wg_module_free(root);
}
END_TEST

START_TEST(a_tied_weight_is_one_tensor_and_must_fit) {
    wg_module *root = wg_module_new(NULL, "", sizeof *root);
    wg_embedding *table = wg_embedding_new(root, "table", 7, 3, NULL);
    const wg_linear_options tied = {.tied_weight = table->weight, .no_bias = true};
    wg_linear *decoder = wg_linear_new(root, "decoder", 3, 7, &tied);
    ck_assert_ptr_eq(decoder->weight, table->weight);
    ck_assert_int_eq(wg_module_parameter_count(root), 21);
    assert_fails(wg_linear_new(root, "other", 7, 3, &tied), WG_ERROR_SHAPE, "tied weight");
    wg_module_free(root);
}
END_TEST

START_TEST(the_padding_row_begins_at_zero_and_gets_no_gradient) {
    const wg_embedding_options options = {.has_padding = true, .padding_index = 2};
    wg_embedding *table = wg_embedding_new(NULL, "", 5, 3, &options);
    wg_tensor *index = wg_from_array(WG_I64, WG_DIMS(4), (int64_t[]){2, 1, 2, 1});
    wg_tensor *y = wg_embedding_forward(table, index);
    assert_close(wg_select(y, 0, 0), wg_zeros(WG_F32, WG_DIMS(3)), 0, 0);
    wg_backward(wg_sum(y, WG_ALL, false), NULL);
    const float wanted[15] = {[3] = 2, [4] = 2, [5] = 2};
    assert_close(wg_gradient(table->weight), wg_from_array(WG_F32, WG_DIMS(5, 3), wanted), 0, 0);
    wg_module_free(&table->module);
}
END_TEST

START_TEST(activations_go_by_their_published_names) {
    ck_assert_str_eq(wg_activation_name(WG_ACTIVATION_GELU_TANH), "gelu_new");
    ck_assert_str_eq(wg_activation_name(WG_ACTIVATION_GELU), "gelu");
    ck_assert_str_eq(wg_activation_name(WG_ACTIVATION_SILU), "silu");
    ck_assert_ptr_null(wg_activation_name((wg_activation)(WG_ACTIVATION_HARDSWISH + 1)));
    const wg_activation activation = WG_ACTIVATION_GELU;
    wg_tensor *one = wg_ones(WG_F64, WG_DIMS(1));
    const double minus_one[] = {-1};
    wg_tensor *below = wg_from_array(WG_F64, WG_DIMS(1), minus_one);
    ck_assert_double_eq(wg_item(wg_activate(WG_ACTIVATION_LEAKY_RELU, below)), -0.01);
    ck_assert_double_eq_tol(wg_item(wg_activate(WG_ACTIVATION_ELU, below)), expm1(-1), 1e-15);
    ck_assert_double_eq_tol(wg_item(wg_activate(WG_ACTIVATION_SOFTPLUS, below)), log1p(exp(-1)),
                            1e-15);
    ck_assert_double_eq_tol(wg_item(wg_activate(activation, one)), 0.8413447460685429, 1e-14);
}
END_TEST

START_TEST(impossible_sizes_are_refused_by_name) {
    assert_fails(wg_multi_head_attention_new(NULL, "", 10, 4, NULL), WG_ERROR_ARGUMENT,
                 "4 heads do not divide width 10");
    assert_fails(wg_linear_new(NULL, "", 0, 4, NULL), WG_ERROR_ARGUMENT, "in is 0");
    assert_fails(wg_add_norm_new(NULL, "", 4, &(wg_add_norm_options){.dropout = 1}),
                 WG_ERROR_ARGUMENT, "dropout is 1");
    const wg_embedding_options options = {.has_padding = true, .padding_index = 5};
    assert_fails(wg_embedding_new(NULL, "", 5, 3, &options), WG_ERROR_INDEX, "padding index 5");
    assert_fails(wg_padding_mask(wg_zeros(WG_I64, WG_DIMS(2, 3))), WG_ERROR_DTYPE, "bool");
    assert_fails(wg_group_norm_new(NULL, "", 4, 6, NULL), WG_ERROR_ARGUMENT,
                 "4 groups do not divide 6 channels");
    wg_group_norm *norm = wg_group_norm_new(NULL, "", 3, 6, NULL);
    assert_fails(wg_group_norm_forward(norm, wg_zeros(WG_F32, WG_DIMS(2, 5, 4))), WG_ERROR_SHAPE,
                 "group_norm: x is (2, 5, 4) f32; wanted (N, 6, ...)");
    wg_module_free(&norm->module);
}
END_TEST

START_TEST(impossible_convolutions_are_refused_by_name) {
    const int64_t kernel[] = {3, 0};
    assert_fails(wg_conv_new(NULL, "", 2, 4, 4, kernel, NULL), WG_ERROR_ARGUMENT,
                 "conv2d: kernel is 0");
    assert_fails(wg_conv_new(NULL, "", 1, 0, 4, kernel, NULL), WG_ERROR_ARGUMENT,
                 "conv1d: in is 0");
    const wg_conv_layer_options groups = {.conv = {.groups = 3}};
    assert_fails(wg_conv_transpose_new(NULL, "", 1, 6, 4, kernel, &groups), WG_ERROR_ARGUMENT,
                 "conv_transpose1d: groups is 3; it must be at least 1, and "
                 "divide in (6) and out (4)");
    const wg_conv_layer_options reflect = {.padding_mode = WG_PAD_REFLECT};
    assert_fails(wg_conv_transpose_new(NULL, "", 1, 4, 4, kernel, &reflect), WG_ERROR_ARGUMENT,
                 "padding_mode goes with a convolution that is not transposed");
}
END_TEST

START_TEST(a_convolution_has_pytorchs_names_and_spares_its_bias) {
    wg_conv *conv = wg_conv_new(NULL, "", 1, 4, 6, (int64_t[]){3}, NULL);
    ck_assert_ptr_eq(wg_module_find(&conv->module, "weight")->tensor, conv->weight);
    ck_assert(!wg_module_find(&conv->module, "weight")->no_decay);
    ck_assert(wg_module_find(&conv->module, "bias")->no_decay);
    assert_fails(wg_conv_forward(conv, wg_zeros(WG_F32, WG_DIMS(1, 3, 9))), WG_ERROR_SHAPE,
                 "conv1d: (1, 3, 9) f32 x (6, 4, 3) f32 x (6) f32: x has 3");
    wg_module_free(&conv->module);
}
END_TEST

START_TEST(constructing_a_layer_without_memory_fails_cleanly) {
    for (int64_t n = 0;; n++) {
        wg__alloc_fail_after(n);
        wg_feed_forward *net = wg_feed_forward_new(NULL, "", 4, 8, NULL);
        if (net)
            wg_conv_new(&net->module, "conv", 2, 2, 3, (int64_t[]){2, 2}, NULL);
        wg__alloc_fail_after(-1);
        if (net && wg_error_pending()) {
            wg_module_free(&net->module);
            net = NULL;
        }
        if (net) {
            wg_module_free(&net->module);
            ck_assert_int_gt(n, 8);
            return;
        }
        assert_error(WG_ERROR_MEMORY, "");
    }
}
END_TEST

/* The row of (previous, id); previous -1: none. */
static int64_t row_of(int64_t previous, int64_t id) {
    wg_tensor *ids = wg_from_array(WG_I64, WG_DIMS(1, 1), (int64_t[]){id});
    wg_tensor *before = wg_from_array(WG_I64, WG_DIMS(1), (int64_t[]){previous});
    return (int64_t)wg_item(wg__bigram_rows(ids, before, NULL, 1 << 20));
}

/* Rows of splitmix64 as Java's SplittableRandom and NumPy's tests have it: its first number from
 * the states 0 and 1234567. */
START_TEST(bigrams_are_hashed_by_splitmix64) {
    ck_assert_int_eq(row_of(0, 0), (int64_t)(0xe220a8397b1dcdafu & 0xfffff));
    ck_assert_int_eq(row_of(0, 1234567), (int64_t)(6457827717110365317u & 0xfffff));
}
END_TEST

START_TEST(a_bigram_reaches_over_calls_and_not_over_padding) {
    wg_tensor *ids = wg_from_array(WG_I64, WG_DIMS(2, 3), (int64_t[]){7, 8, 9, 7, 8, 9});
    wg_tensor *previous = wg_from_array(WG_I64, WG_DIMS(2), (int64_t[]){6, -1});
    wg_tensor *keep = wg_from_array(WG_BOOL, WG_DIMS(2, 4),
                                    (bool[]){true, true, true, true, false, false, true, true});
    const int64_t wanted[] = {row_of(6, 7),  row_of(7, 8),  row_of(8, 9),
                              row_of(-1, 7), row_of(-1, 8), row_of(8, 9)};
    assert_close(wg__bigram_rows(ids, previous, keep, 1 << 20),
                 wg_from_array(WG_I64, WG_DIMS(2, 3), wanted), 0, 0);
    const int64_t alone[] = {row_of(-1, 7), row_of(7, 8), row_of(8, 9),
                             row_of(-1, 7), row_of(7, 8), row_of(8, 9)};
    assert_close(wg__bigram_rows(wg_cast(ids, WG_I32), NULL, NULL, 1 << 20),
                 wg_from_array(WG_I64, WG_DIMS(2, 3), alone), 0, 0);
}
END_TEST

START_TEST(bigrams_of_other_shapes_are_refused) {
    wg_tensor *ids = wg_zeros(WG_I64, WG_DIMS(2, 3));
    assert_fails(wg__bigram_rows(wg_zeros(WG_I64, WG_DIMS(3)), NULL, NULL, 9), WG_ERROR_SHAPE,
                 "wanted (B, T)");
    assert_fails(wg__bigram_rows(ids, wg_zeros(WG_I64, WG_DIMS(3)), NULL, 9), WG_ERROR_SHAPE,
                 "wanted (2), one a sequence");
    assert_fails(wg__bigram_rows(ids, NULL, wg_ones(WG_BOOL, WG_DIMS(2, 2)), 9), WG_ERROR_SHAPE,
                 "wanted (2, 3) or with more columns");
    assert_fails(wg__bigram_rows(ids, NULL, wg_ones(WG_I64, WG_DIMS(2, 3)), 9), WG_ERROR_DTYPE,
                 "keep is i64; wanted bool");
    assert_fails(wg__bigram_rows(ids, NULL, NULL, 0), WG_ERROR_ARGUMENT, "rows is 0");
}
END_TEST

/* ---- Options of 0 ---- */

static void assert_elements(const wg_tensor *y, double first, double second) {
    double values[2];
    assert_no_error();
    ck_assert_int_eq(wg_to_array(y, values), 0);
    ck_assert_double_eq_tol(values[0], first, 1e-14);
    ck_assert_double_eq_tol(values[1], second, 1e-14);
}

START_TEST(an_option_of_zero_is_used_as_zero) {
    wg_module *root = wg_module_new(NULL, "", sizeof *root);
    wg_tensor *x = wg_from_array(WG_F64, WG_DIMS(2, 1, 2), (double[]){1e-3, 3e-3, 2e-3, 6e-3});
    wg_layer_norm *layer =
        wg_layer_norm_new(root, "layer", 2, &(wg_layer_norm_options){.eps = WG_ZERO});
    wg_rms_norm *rms = wg_rms_norm_new(root, "rms", 2, &(wg_rms_norm_options){.eps = WG_ZERO});
    const wg_batch_norm_options batch = {.eps = WG_ZERO, .momentum = WG_ZERO};
    wg_batch_norm *norm = wg_batch_norm_new(root, "batch", 2, &batch);
    wg_module_to(root, WG_F64);
    wg_tensor *row = wg_select(wg_select(x, 0, 0), 0, 0);
    assert_elements(wg_layer_norm_forward(layer, row), -1, 1);
    assert_elements(wg_rms_norm_forward(rms, row), 1 / sqrt(5), 3 / sqrt(5));
    assert_elements(wg_select(wg_batch_norm_forward(norm, wg_squeeze(x, 1)), 0, 0), -1, -1);
    assert_elements(norm->running_mean, 0, 0);
    assert_elements(norm->running_var, 1, 1);
    wg_tensor *heads = wg_unsqueeze(x, 0); /* (1, 2, 1, 2): two heads of one query */
    wg_tensor *keys = wg_cat(WG_TENSORS(heads, wg_mul_scalar(heads, 1e6)), 2);
    const wg_attention_options options = {.scale = WG_ZERO};
    wg_tensor *y = wg_attention(heads, keys, keys, NULL, &options);
    assert_elements(wg_select(wg_reshape(y, WG_DIMS(2, 2)), 0, 0), (1e-3 + 1e3) / 2,
                    (3e-3 + 3e3) / 2);
    assert_elements(wg_softplus(row, 1, WG_ZERO), 1e-3, 3e-3);
    wg_module_free(root);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        an_option_of_zero_is_used_as_zero,
        dropout_rests_in_evaluation_and_without_probability,
        dropout_differs_from_draw_to_draw_and_is_replayed_from_the_generator,
        weight_decay_spares_biases_and_norms_alone,
        a_tied_weight_is_one_tensor_and_must_fit,
        the_padding_row_begins_at_zero_and_gets_no_gradient,
        activations_go_by_their_published_names,
        impossible_sizes_are_refused_by_name,
        bigrams_are_hashed_by_splitmix64,
        a_bigram_reaches_over_calls_and_not_over_padding,
        bigrams_of_other_shapes_are_refused,
        impossible_convolutions_are_refused_by_name,
        a_convolution_has_pytorchs_names_and_spares_its_bias,
        constructing_a_layer_without_memory_fails_cleanly,
    };
    add_suite("layers", tests);
}
