/* Recurrent layers against PyTorch, or against a loop over the places in PyTorch, and read in
 * parts.
 */
#include "nn/recurrent.h"

#include <math.h>
#include <string.h>

#include "tensor/ops.h"
#include "tests/nn/layer_case.h"
#include "tests/support/testing.h"

/* The sizes of tests/fixtures/layers.py. */
enum { B = 2, T = 5, IN = 4, HIDDEN = 3 };

/* ---- Beside PyTorch: the first states are a second input, and the last ones part of the output
 * ---- */

static wg_tensor *flat(wg_tensor *x) {
    return wg_reshape(x, WG_DIMS(-1));
}

static void *lstm_new(const void *options) {
    return wg_lstm_new(NULL, "", IN, HIDDEN, options);
}

static wg_tensor *lstm(void *layer, wg_tensor *const *inputs, const void *given) {
    const int64_t half = wg_tensor_size(inputs[1], 0) / 2;
    wg_tensor *h = wg_slice(inputs[1], 0, 0, half, 1), *c = wg_slice(inputs[1], 0, half, WG_END, 1);
    (void)given;
    wg_tensor *y = wg_lstm_forward(layer, inputs[0], &h, &c);
    return wg_cat(WG_TENSORS(flat(y), flat(h), flat(c)), 0);
}

static void *gru_new(const void *options) {
    return wg_gru_new(NULL, "", IN, HIDDEN, options);
}

static wg_tensor *gru(void *layer, wg_tensor *const *inputs, const void *given) {
    wg_tensor *h = inputs[1];
    (void)given;
    wg_tensor *y = wg_gru_forward(layer, inputs[0], &h);
    return wg_cat(WG_TENSORS(flat(y), flat(h)), 0);
}

static void *min_gru_new(const void *options) {
    (void)options;
    return wg_min_gru_new(NULL, "", IN, HIDDEN, true);
}

static wg_tensor *min_gru(void *layer, wg_tensor *const *inputs, const void *given) {
    wg_tensor *h = inputs[1];
    (void)given;
    wg_tensor *y = wg_min_gru_forward(layer, inputs[0], &h);
    return wg_cat(WG_TENSORS(flat(y), flat(h)), 0);
}

static void *mamba_new(const void *options) {
    return wg_mamba_new(NULL, "", IN, options);
}

static wg_tensor *mamba(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)given;
    return wg_mamba_forward(layer, inputs[0], NULL);
}

#define RECURRENT(...) .options = &(const wg_recurrent_options){__VA_ARGS__}, .input_count = 2
#define LSTM(...) .make = lstm_new, .forward = lstm, RECURRENT(__VA_ARGS__)
#define GRU(...) .make = gru_new, .forward = gru, RECURRENT(__VA_ARGS__)

static const layer_case forms[] = {
    {"lstm", LSTM(.batch_first = true), .input_shapes = {{B, T, IN}, {2, B, HIDDEN}}},
    {"lstm_stacked", LSTM(.layers = 2, .bidirectional = true),
     .input_shapes = {{T, B, IN}, {8, B, HIDDEN}}},
    {"lstm_no_bias", LSTM(.layers = 2, .no_bias = true),
     .input_shapes = {{T, B, IN}, {4, B, HIDDEN}}},
    {"lstm_with_dropout", LSTM(.layers = 2, .bidirectional = true, .dropout = 0.4),
     .input_shapes = {{T, B, IN}, {8, B, HIDDEN}}, .file = "lstm_stacked", .modes_differ = true},
    {"gru", GRU(.batch_first = true), .input_shapes = {{B, T, IN}, {1, B, HIDDEN}}},
    {"gru_stacked", GRU(.layers = 2, .bidirectional = true),
     .input_shapes = {{T, B, IN}, {4, B, HIDDEN}}},
    {"gru_no_bias", GRU(.no_bias = true), .input_shapes = {{T, B, IN}, {1, B, HIDDEN}}},
    {"min_gru", .make = min_gru_new, .forward = min_gru, .input_count = 2,
     .input_shapes = {{B, T, IN}, {B, HIDDEN}}},
    {"mamba", .make = mamba_new, .forward = mamba,
     .options = &(const wg_mamba_options){.state = 3, .kernel = 3, .rank = 2}, .input_count = 1,
     .input_shapes = {{B, T, IN}}},
};

/* ---- Names ---- */

START_TEST(parameters_have_pytorchs_names) {
    static const char *const names[] = {
        "weight_ih_l0",         "weight_hh_l0",         "bias_ih_l0",         "bias_hh_l0",
        "weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse", "bias_hh_l0_reverse",
        "weight_ih_l1",         "weight_hh_l1"};
    wg_lstm *layer = lstm_new(&(wg_recurrent_options){.layers = 2, .bidirectional = true});
    wg_state_dict *state = wg_module_state(&layer->module);
    ck_assert_int_eq(state->count, 16);
    for (size_t i = 0; i < WG_COUNT(names); i++)
        ck_assert_str_eq(state->entries[i].path, names[i]);
    ck_assert_int_eq(wg_tensor_size(layer->weights[2].weight_ih, 1), 2 * HIDDEN);
    ck_assert(state->entries[2].slot->no_decay && !state->entries[0].slot->no_decay);
    wg_state_dict_free(state);
    wg_module_free(&layer->module);
}
END_TEST

/* ---- A sequence that is read in parts, as generation does ---- */

/* The last layer's h of x (B, T, IN), read from place `begin` to `end`, after *state. */
typedef wg_tensor *(*reader)(void *layer, wg_tensor *x, void *state);

typedef struct hidden_and_cell {
    wg_tensor *h, *c;
} hidden_and_cell;

static wg_tensor *read_lstm(void *layer, wg_tensor *x, void *state) {
    hidden_and_cell *s = state;
    return wg_lstm_forward(layer, x, &s->h, &s->c);
}

static wg_tensor *read_gru(void *layer, wg_tensor *x, void *state) {
    return wg_gru_forward(layer, x, state);
}

static wg_tensor *read_min_gru(void *layer, wg_tensor *x, void *state) {
    return wg_min_gru_forward(layer, x, state);
}

static wg_tensor *read_mamba(void *layer, wg_tensor *x, void *state) {
    return wg_mamba_forward(layer, x, state);
}

START_TEST(a_sequence_read_in_parts_gives_the_same) {
    static const wg_recurrent_options two = {.layers = 2, .batch_first = true};
    void *const layers[] = {lstm_new(&two), gru_new(&two), min_gru_new(NULL), mamba_new(NULL)};
    const reader readers[] = {read_lstm, read_gru, read_min_gru, read_mamba};
    wg_generator generator = {.seed = 5};
    wg_tensor *x = wg_randn(&generator, WG_F32, WG_DIMS(B, T, IN));
    for (int i = 0; i < 4; i++) {
        wg_tensor *states[2][2] = {{NULL}}; /* as large as those of any layer */
        wg_tensor *whole = readers[i](layers[i], x, states[0]);
        wg_tensor *parts[] = {readers[i](layers[i], wg_slice(x, 1, 0, 3, 1), states[1]),
                              readers[i](layers[i], wg_slice(x, 1, 3, 4, 1), states[1]),
                              readers[i](layers[i], wg_slice(x, 1, 4, 5, 1), states[1])};
        assert_no_error();
        assert_close(wg_cat(3, parts, 1), whole, 1e-5, 1e-6);
        assert_close(states[1][0], states[0][0], 1e-5, 1e-6);
        if (states[0][1])
            assert_close(states[1][1], states[0][1], 1e-5, 1e-6);
        wg_module_free(layers[i]);
    }
}
END_TEST

START_TEST(a_sequence_of_no_places_keeps_the_state) {
    wg_lstm *layer = lstm_new(NULL);
    wg_tensor *h = wg_ones(WG_F32, WG_DIMS(1, B, HIDDEN)), *c = wg_full_like(h, 2);
    wg_tensor *y = wg_lstm_forward(layer, wg_zeros(WG_F32, WG_DIMS(0, B, IN)), &h, &c);
    assert_no_error();
    ck_assert_int_eq(wg_tensor_count(y), 0);
    assert_close(h, wg_ones(WG_F32, WG_DIMS(1, B, HIDDEN)), 0, 0);
    assert_close(c, wg_full(WG_F32, WG_DIMS(1, B, HIDDEN), 2), 0, 0);
    wg_module_free(&layer->module);
}
END_TEST

/* ---- Refusals ---- */

START_TEST(what_does_not_fit_is_refused) {
    assert_fails(wg_lstm_new(NULL, "", 0, 3, NULL), WG_ERROR_ARGUMENT, "in is 0");
    assert_fails(wg_gru_new(NULL, "", 2, 3, &(wg_recurrent_options){.dropout = 1}),
                 WG_ERROR_ARGUMENT, "dropout");
    assert_fails(wg_mamba_new(NULL, "", 4, &(wg_mamba_options){.state = -1}), WG_ERROR_ARGUMENT,
                 "state is -1");

    wg_lstm *layer = lstm_new(NULL);
    assert_fails(wg_lstm_forward(layer, wg_zeros(WG_F32, WG_DIMS(T, B, IN + 1)), NULL, NULL),
                 WG_ERROR_SHAPE, "wanted (T, B, I) with I = 4");
    wg_tensor *h = wg_zeros(WG_F32, WG_DIMS(2, B, HIDDEN));
    assert_fails(wg_lstm_forward(layer, wg_zeros(WG_F32, WG_DIMS(T, B, IN)), &h, NULL),
                 WG_ERROR_SHAPE, "wanted (1, 2, 3)");
    ck_assert_ptr_null(h);
    assert_fails(wg_gru_op(wg_zeros(WG_F32, WG_DIMS(T, B, 9)), wg_zeros(WG_F32, WG_DIMS(9, 4)),
                           NULL, wg_zeros(WG_F32, WG_DIMS(B, 3)), false),
                 WG_ERROR_SHAPE, "wanted (T, B, 3 H)");
    wg_module_free(&layer->module);
}
END_TEST

/* A batch of 37 is walked in three parts. Outputs, then the gradients of the input and of the
 * weight of the states. */
enum { MANY = 37, WIDE = 40 };

static void run_many(bool is_gru, int threads, bool first_alone, double *results) {
    wg_generator generator = {.seed = 5};
    wg_manual_seed(5);
    wg_recurrent *layer =
        is_gru ? wg_gru_new(NULL, "", IN, WIDE, NULL) : wg_lstm_new(NULL, "", IN, WIDE, NULL);
    const int before = wg_threads();
    wg_set_threads(threads);
    wg_tensor *weight = layer->weights[0].weight_hh;
    wg_copy_(wg_detach(weight), wg_randn(&generator, WG_F32, 2, wg_tensor_shape(weight)));
    wg_tensor *x = wg_randn(&generator, WG_F32, WG_DIMS(T, MANY, IN));
    x = first_alone ? wg_clone(wg_slice(x, 1, 0, 1, 1)) : x;
    wg_set_requires_grad(x, true);
    wg_tensor *y = is_gru ? wg_gru_forward(layer, x, NULL) : wg_lstm_forward(layer, x, NULL, NULL);
    wg_backward(wg_sum(wg_mul(y, y), WG_ALL, false), NULL);
    wg_tensor *all =
        wg_cat(WG_TENSORS(flat(wg_select(y, 1, 0)), flat(wg_select(wg_gradient(x), 1, 0)), flat(y),
                          flat(wg_gradient(x)), flat(wg_gradient(weight))),
               0);
    wg_to_array(wg_cast(wg_detach(all), WG_F64), results);
    wg_set_threads(before);
    wg_module_free(&layer->module);
}

START_TEST(a_batch_walked_in_parts_has_the_same_bits_at_any_number_of_threads) {
    enum { FIRST = T * (WIDE + IN), ALL = FIRST + T * MANY * (WIDE + IN) + 4 * WIDE * WIDE };
    static double one[ALL], many[ALL], alone[ALL];
    for (int is_gru = 0; is_gru < 2; is_gru++) {
        run_many(is_gru, 1, false, one);
        for (int threads = 2; threads <= 3; threads++) {
            run_many(is_gru, threads, false, many);
            ck_assert_int_eq(memcmp(one, many, sizeof one), 0);
        }
        run_many(is_gru, 2, true, alone);
        for (int i = 0; i < FIRST; i++)
            ck_assert_double_eq_tol(alone[i], one[i], 1e-4);
    }
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        parameters_have_pytorchs_names,
        a_sequence_read_in_parts_gives_the_same,
        a_sequence_of_no_places_keeps_the_state,
        what_does_not_fit_is_refused,
        a_batch_walked_in_parts_has_the_same_bits_at_any_number_of_threads,
    };
    add_suite("recurrent", tests);
    add_layer_suite("recurrent_forms", WG_COUNT(forms), forms);
}
