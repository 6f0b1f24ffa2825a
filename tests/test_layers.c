/* The layers: values and gradients beside PyTorch's, dropout, initial values, errors. */
#include "tests/layer_case.h"
#include "tests/testing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/gradcheck.h"
#include "nn/add_norm.h"
#include "nn/attention.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "tensor/alloc.h"
#include "tensor/npy.h"
#include "tensor/ops.h"

/* The sizes of tests/fixtures/layers.py. */
enum { B = 2, T = 5, M = 4, C = 12, H = 3, INNER = 20, MEMORY_WIDTH = 8 };

/* ---- Beside PyTorch ---- */

static wg_tensor *padding(const bool *keep, int64_t length) {
    return wg_padding_mask(wg_from_array(WG_BOOL, WG_DIMS(B, length), keep));
}

static wg_tensor *keep_mask(void) {
    const bool keep[B * T] = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0};
    return padding(keep, T);
}

static wg_tensor *norm_forward(void *layer, wg_tensor *const *inputs) {
    return wg_layer_norm_forward(layer, inputs[0]);
}

START_TEST(layer_norm_equals_pytorch) {
    const layer_case test = {
        .file = "layer_norm",
        .layer = wg_layer_norm_new(NULL, "", C, &(wg_layer_norm_options){.eps = 1e-3}),
        .forward = norm_forward,
        .input_count = 1,
        .input_shapes = {{B, T, C}},
    };
    hold_against_pytorch(&test);
}
END_TEST

static wg_tensor *attend(void *layer, wg_tensor *const *inputs) {
    return wg_multi_head_attention_forward(layer, inputs[0],
                                           &(wg_attention_inputs){.mask = keep_mask()});
}

START_TEST(self_attention_with_padding_equals_pytorch) {
    const layer_case test = {
        .file = "self_attention",
        .layer = wg_multi_head_attention_new(NULL, "", C, H, NULL),
        .forward = attend,
        .input_count = 1,
        .input_shapes = {{B, T, C}},
    };
    hold_against_pytorch(&test);
}
END_TEST

static wg_tensor *attend_causally(void *layer, wg_tensor *const *inputs) {
    return wg_multi_head_attention_forward(layer, inputs[0], NULL);
}

START_TEST(causal_attention_equals_pytorch) {
    const wg_multi_head_attention_options options = {.causal = true};
    const layer_case test = {
        .file = "causal_attention",
        .layer = wg_multi_head_attention_new(NULL, "", C, H, &options),
        .forward = attend_causally,
        .input_count = 1,
        .input_shapes = {{B, T, C}},
    };
    hold_against_pytorch(&test);
}
END_TEST

static wg_tensor *attend_to_memory(void *layer, wg_tensor *const *inputs) {
    const bool keep[B * M] = {1, 1, 0, 0, 1, 1, 1, 1};
    return wg_multi_head_attention_forward(
        layer, inputs[0], &(wg_attention_inputs){.memory = inputs[1], .mask = padding(keep, M)});
}

START_TEST(cross_attention_to_a_narrower_memory_equals_pytorch) {
    const wg_multi_head_attention_options options = {.memory_width = MEMORY_WIDTH};
    const layer_case test = {
        .file = "cross_attention",
        .layer = wg_multi_head_attention_new(NULL, "", C, H, &options),
        .forward = attend_to_memory,
        .input_count = 2,
        .input_shapes = {{B, T, C}, {B, M, MEMORY_WIDTH}},
    };
    hold_against_pytorch(&test);
}
END_TEST

/* An encoder layer as a user writes one. */
typedef struct encoder {
    wg_module module;
    wg_multi_head_attention *attention;
    wg_add_norm *attention_norm;
    wg_feed_forward *feed_forward;
    wg_add_norm *output_norm;
} encoder;

static encoder *encoder_new(bool pre, double dropout, wg_activation activation) {
    encoder *e = wg_module_new(NULL, "", sizeof *e);
    const wg_add_norm_options norm = {.pre = pre, .eps = 1e-6, .dropout = dropout};
    const wg_feed_forward_options net = {.activation = activation};
    e->attention = wg_multi_head_attention_new(
        &e->module, "attention", C, H, &(wg_multi_head_attention_options){.dropout = dropout});
    e->attention_norm = wg_add_norm_new(&e->module, "attention_norm", C, &norm);
    e->feed_forward = wg_feed_forward_new(&e->module, "feed_forward", C, INNER, &net);
    e->output_norm = wg_add_norm_new(&e->module, "output_norm", C, &norm);
    return wg_module_finish(&e->module);
}

static wg_tensor *encode(void *layer, wg_tensor *const *inputs) {
    encoder *e = layer;
    wg_tensor *x = inputs[0];
    wg_tensor *attended =
        wg_multi_head_attention_forward(e->attention, wg_add_norm_before(e->attention_norm, x),
                                        &(wg_attention_inputs){.mask = keep_mask()});
    x = wg_add_norm_after(e->attention_norm, x, attended);
    wg_tensor *fed =
        wg_feed_forward_forward(e->feed_forward, wg_add_norm_before(e->output_norm, x));
    return wg_add_norm_after(e->output_norm, x, fed);
}

START_TEST(a_post_norm_encoder_layer_equals_pytorch) {
    const layer_case test = {
        .file = "post_norm_encoder",
        .layer = encoder_new(false, 0, WG_ACTIVATION_RELU),
        .forward = encode,
        .input_count = 1,
        .input_shapes = {{B, T, C}},
    };
    hold_against_pytorch(&test);
}
END_TEST

START_TEST(a_pre_norm_encoder_layer_equals_pytorch) {
    const layer_case test = {
        .file = "pre_norm_encoder",
        .layer = encoder_new(true, 0, WG_ACTIVATION_GELU),
        .forward = encode,
        .input_count = 1,
        .input_shapes = {{B, T, C}},
    };
    hold_against_pytorch(&test);
}
END_TEST

/* ---- Against central differences ---- */

static int encode_for_check(int input_count, wg_tensor *const *inputs, int output_count,
                            wg_tensor **outputs, void *context) {
    (void)input_count, (void)output_count;
    encoder *e = context;
    outputs[0] = encode(e, inputs);
    return outputs[0] ? 0 : -1;
}

static void check_encoder(bool pre) {
    encoder *e = encoder_new(pre, 0.2, WG_ACTIVATION_GELU_TANH);
    wg_generator generator = {3, 0};
    wg_tensor *x = wg_randn(&generator, WG_F64, WG_DIMS(B, T, C));
    wg_set_requires_grad(x, true);
    wg_gradcheck_report report;
    int status = wg_gradcheck_module(&e->module, encode_for_check, e, 1, &x, 1, NULL, &report);
    ck_assert_msg(status == 0, "%s", report.message);
    ck_assert_int_eq(report.compared, B * T * C + wg_module_parameter_count(&e->module));
    wg_module_free(&e->module);
}

START_TEST(encoder_layers_with_dropout_have_the_gradient_of_their_forward) {
    check_encoder(false);
    check_encoder(true);
}
END_TEST

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

START_TEST(a_child_without_a_name_shows_in_no_path) {
    wg_module *root = wg_module_new(NULL, "", sizeof *root);
    const wg_feed_forward_options names = {.up_name = "intermediate.dense",
                                           .down_name = "output.dense"};
    wg_feed_forward *net = wg_feed_forward_new(root, "", 4, 8, &names);
    wg_add_norm_new(root, "output", 4, &(wg_add_norm_options){.norm_name = "LayerNorm"});
    static const char *const wanted[] = {"intermediate.dense.weight", "intermediate.dense.bias",
                                         "output.dense.weight",       "output.dense.bias",
                                         "output.LayerNorm.weight",   "output.LayerNorm.bias"};
    wg_state_dict *state = wg_module_state(root);
    ck_assert_int_eq(state->count, WG_COUNT(wanted));
    for (int64_t i = 0; i < state->count; i++) {
        ck_assert_str_eq(state->entries[i].path, wanted[i]);
        ck_assert_ptr_eq(wg_module_find(root, wanted[i]), state->entries[i].slot);
    }
    ck_assert_ptr_eq(wg_module_find(root, "output.dense.weight")->tensor, net->down->weight);
    wg_state_dict_free(state);
    wg_module_free(root);
}
END_TEST

START_TEST(weight_decay_spares_biases_and_norms_alone) {
    encoder *e = encoder_new(false, 0, WG_ACTIVATION_GELU);
    wg_state_dict *state = wg_module_state(&e->module);
    for (int64_t i = 0; i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        ck_assert_int_eq(slot->no_decay, wg_tensor_ndim(slot->tensor) == 1);
    }
    wg_state_dict_free(state);
    wg_module_free(&e->module);
}
END_TEST

START_TEST(a_tied_weight_is_one_tensor_and_must_fit) {
    wg_module *root = wg_module_new(NULL, "", sizeof *root);
    wg_embedding *table = wg_embedding_new(root, "table", 7, 3, NULL);
    const wg_linear_options tied = {.tied_weight = table->weight, .no_bias = true};
    wg_linear *decoder = wg_linear_new(root, "decoder", 3, 7, &tied);
    ck_assert_ptr_eq(decoder->weight, table->weight);
    ck_assert_int_eq(wg_module_parameter_count(root), 21);
    ck_assert_ptr_null(wg_linear_new(root, "other", 7, 3, &tied));
    assert_error(WG_ERROR_SHAPE, "tied weight");
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
    wg_activation activation;
    ck_assert_int_eq(wg_activation_parse("gelu_new", &activation), 0);
    ck_assert_int_eq(activation, WG_ACTIVATION_GELU_TANH);
    ck_assert_int_eq(wg_activation_parse("gelu_pytorch_tanh", &activation), 0);
    ck_assert_int_eq(activation, WG_ACTIVATION_GELU_TANH);
    ck_assert_int_eq(wg_activation_parse("gelu", &activation), 0);
    ck_assert_str_eq(wg_activation_name(activation), "gelu");
    ck_assert_int_eq(wg_activation_parse("swish", &activation), 0);
    ck_assert_int_eq(activation, WG_ACTIVATION_SILU);
    for (int i = 0; wg_activation_name((wg_activation)i); i++) {
        ck_assert_int_eq(wg_activation_parse(wg_activation_name((wg_activation)i), &activation), 0);
        ck_assert_int_eq(activation, i);
    }
    ck_assert_int_eq(activation, WG_ACTIVATION_HARDSWISH);
    activation = WG_ACTIVATION_GELU;
    wg_tensor *one = wg_ones(WG_F64, WG_DIMS(1));
    const double minus_one[] = {-1};
    wg_tensor *below = wg_from_array(WG_F64, WG_DIMS(1), minus_one);
    ck_assert_double_eq(wg_item(wg_activate(WG_ACTIVATION_LEAKY_RELU, below)), -0.01);
    ck_assert_double_eq_tol(wg_item(wg_activate(WG_ACTIVATION_ELU, below)), expm1(-1), 1e-15);
    ck_assert_double_eq_tol(wg_item(wg_activate(WG_ACTIVATION_SOFTPLUS, below)), log1p(exp(-1)),
                            1e-15);
    ck_assert_double_eq_tol(wg_item(wg_activate(activation, one)), 0.8413447460685429, 1e-14);
    ck_assert_int_eq(wg_activation_parse("gulp", &activation), -1);
    assert_error(WG_ERROR_ARGUMENT,
                 "\"gulp\" is none of gelu, gelu_new, relu, tanh, sigmoid, silu");
}
END_TEST

START_TEST(impossible_sizes_are_refused_by_name) {
    ck_assert_ptr_null(wg_multi_head_attention_new(NULL, "", 10, 4, NULL));
    assert_error(WG_ERROR_ARGUMENT, "4 heads do not divide width 10");
    ck_assert_ptr_null(wg_linear_new(NULL, "", 0, 4, NULL));
    assert_error(WG_ERROR_ARGUMENT, "in is 0");
    ck_assert_ptr_null(wg_add_norm_new(NULL, "", 4, &(wg_add_norm_options){.dropout = 1}));
    assert_error(WG_ERROR_ARGUMENT, "dropout is 1");
    const wg_embedding_options options = {.has_padding = true, .padding_index = 5};
    ck_assert_ptr_null(wg_embedding_new(NULL, "", 5, 3, &options));
    assert_error(WG_ERROR_INDEX, "padding index 5");
    ck_assert_ptr_null(wg_padding_mask(wg_zeros(WG_I64, WG_DIMS(2, 3))));
    assert_error(WG_ERROR_DTYPE, "bool");
}
END_TEST

START_TEST(constructing_a_layer_without_memory_fails_cleanly) {
    for (int64_t n = 0;; n++) {
        wg_alloc_fail_after(n);
        wg_feed_forward *net = wg_feed_forward_new(NULL, "", 4, 8, NULL);
        wg_alloc_fail_after(-1);
        if (net) {
            wg_module_free(&net->module);
            ck_assert_int_gt(n, 8);
            return;
        }
        assert_error(WG_ERROR_MEMORY, "");
    }
}
END_TEST

/* ---- Initial values ---- */

static void moments(wg_tensor *x, double *mean, double *deviation, double *largest) {
    *mean = wg_item(wg_mean(x, WG_ALL, false));
    *deviation = sqrt(wg_item(wg_var(x, WG_ALL, 0, false)));
    *largest = wg_item(wg_max(wg_abs(x), WG_ALL, false));
}

START_TEST(every_kind_of_initialisation_has_its_spread) {
    /* Of a weight (300, 200): kind, scale, standard deviation, bound (0: none). */
    static const struct {
        wg_init_kind kind;
        double scale, deviation, bound;
    } cases[] = {
        {WG_INIT_ZEROS, 0, 0, 1e-30},
        {WG_INIT_UNIFORM, 0.3, 0.17320508, 0.3},
        {WG_INIT_NORMAL, 0.5, 0.5, 0},
        {WG_INIT_TRUNCATED_NORMAL, 0.02, 0.02 * 0.8796257, 0.04},
        {WG_INIT_XAVIER_UNIFORM, 0, 0.063245553, 0.10954451},
        {WG_INIT_XAVIER_NORMAL, 2, 0.12649111, 0},
        {WG_INIT_KAIMING_UNIFORM, 0, 0.070710678, 0.12247449},
        {WG_INIT_KAIMING_NORMAL, 1.4142136, 0.1, 0},
    };
    wg_generator generator = {11, 0};
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        wg_tensor *x = wg_ones(WG_F32, WG_DIMS(300, 200));
        const wg_initializer how = {cases[i].kind, cases[i].scale};
        ck_assert_int_eq(wg_initialize(x, &how, &generator), 0);
        double mean, deviation, largest;
        moments(x, &mean, &deviation, &largest);
        /* 60000 numbers: the mean is off by deviation / 245, the deviation by a 350th of itself */
        ck_assert_double_le(fabs(mean), 5 * cases[i].deviation / 245);
        ck_assert_double_le(fabs(deviation - cases[i].deviation), 0.015 * cases[i].deviation);
        if (cases[i].bound > 0)
            ck_assert_double_le(largest, cases[i].bound * (1 + 1e-6));
        if (cases[i].bound > 0 && cases[i].deviation > 0)
            ck_assert_double_ge(largest, 0.99 * cases[i].bound);
    }
}
END_TEST

START_TEST(the_tails_that_truncation_removes_spread_over_the_rest) {
    wg_generator generator = {5, 0};
    wg_tensor *x = wg_empty(WG_F64, WG_DIMS(200000));
    wg_initialize(x, &(wg_initializer){WG_INIT_TRUNCATED_NORMAL, 1}, &generator);
    /* P(|x| < 1 given |x| < 2) = 0.682689 / 0.954500 */
    wg_tensor *inside = wg_lt(wg_abs(x), wg_ones(WG_F64, WG_DIMS(1)));
    double share = wg_item(wg_sum(inside, WG_ALL, false)) / 200000;
    ck_assert_double_eq_tol(share, 0.715233, 0.004);
    ck_assert_int_eq(generator.offset, 1);
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

START_TEST(initialising_refuses_what_it_cannot_do) {
    wg_tensor *vector = wg_zeros(WG_F32, WG_DIMS(3)), *ids = wg_zeros(WG_I64, WG_DIMS(3));
    wg_initialize(vector, &(wg_initializer){WG_INIT_XAVIER_NORMAL, 1}, NULL);
    assert_error(WG_ERROR_SHAPE, "rank 1");
    wg_initialize(ids, &(wg_initializer){WG_INIT_ZEROS, 0}, NULL);
    assert_error(WG_ERROR_DTYPE, "i64");
    wg_initialize(vector, &(wg_initializer){WG_INIT_NORMAL, -1}, NULL);
    assert_error(WG_ERROR_ARGUMENT, "-1");
    wg_initialize(vector, &(wg_initializer){WG_INIT_DEFAULT, 0}, NULL);
    assert_error(WG_ERROR_ARGUMENT, "wg_init_kind");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        layer_norm_equals_pytorch,
        self_attention_with_padding_equals_pytorch,
        causal_attention_equals_pytorch,
        cross_attention_to_a_narrower_memory_equals_pytorch,
        a_post_norm_encoder_layer_equals_pytorch,
        a_pre_norm_encoder_layer_equals_pytorch,
        encoder_layers_with_dropout_have_the_gradient_of_their_forward,
        dropout_rests_in_evaluation_and_without_probability,
        dropout_differs_from_draw_to_draw_and_is_replayed_from_the_generator,
        a_child_without_a_name_shows_in_no_path,
        weight_decay_spares_biases_and_norms_alone,
        a_tied_weight_is_one_tensor_and_must_fit,
        the_padding_row_begins_at_zero_and_gets_no_gradient,
        activations_go_by_their_published_names,
        impossible_sizes_are_refused_by_name,
        constructing_a_layer_without_memory_fails_cleanly,
        every_kind_of_initialisation_has_its_spread,
        the_tails_that_truncation_removes_spread_over_the_rest,
        the_same_generator_gives_the_same_weights,
        initialising_refuses_what_it_cannot_do,
    };
    return wg_run_tests("layers", WG_COUNT(tests), tests);
}
