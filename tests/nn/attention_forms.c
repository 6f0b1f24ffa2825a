/* Multi-head attention in all its forms, against PyTorch and against central differences. */
#include "nn/attention.h"

#include "nn/positions.h"
#include "tensor/profile.h"
#include "tensor/ops.h"
#include "tests/nn/layer_case.h"
#include "tests/support/testing.h"
#include "nn/internal.h"
#include "tensor/internal.h"

/* The sizes of tests/fixtures/layers.py. */
enum { B = 2, T = 5, M = 4, C = 12, H = 3, MEMORY_WIDTH = 8, RANK = 5 };

/* ---- What the forward is given beside x ---- */

typedef struct rotary_given {
    int64_t width;
    wg_rotary_options options;
    bool of_rows; /* the second sequence begins 4 positions later than the first */
} rotary_given;

typedef enum mask_given {
    NO_MASK,
    PADDING,
    PADDING_OF_MEMORY,
    PREFIX,
    ARBITRARY /* another one for each head */
} mask_given;

typedef struct given {
    mask_given mask;
    const rotary_given *rotary;
    bool memory, bias; /* what the second input is */
    bool weights;      /* are asked for, and appended to the output */
    int64_t window;
    bool some; /* the output is wanted at some_positions alone */
} given;

static wg_tensor *padding(const bool *keep, int64_t length) {
    return wg_padding_mask(wg_from_array(WG_BOOL, WG_DIMS(B, length), keep));
}

static wg_tensor *arbitrary_mask(void) {
    bool seen[B * H * T * T], *at = seen;
    for (int b = 0; b < B; b++)
        for (int h = 0; h < H; h++)
            for (int i = 0; i < T; i++)
                for (int j = 0; j < T; j++)
                    *at++ = i == j || (2 * b + 5 * h + 7 * i + 4 * j) % 3 != 0;
    return wg_from_array(WG_BOOL, WG_DIMS(B, H, T, T), seen);
}

static wg_tensor *mask_of(mask_given mask) {
    static const bool keep[B * T] = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0};
    static const bool keep_memory[B * M] = {1, 1, 0, 0, 1, 1, 1, 1};
    static const int64_t prefix[B] = {2, 4};
    switch (mask) {
    case NO_MASK:
        break;
    case PADDING:
        return padding(keep, T);
    case PADDING_OF_MEMORY:
        return padding(keep_memory, M);
    case PREFIX:
        return wg__prefix_mask(wg_from_array(WG_I64, WG_DIMS(B), prefix), 0, T);
    case ARBITRARY:
        return arbitrary_mask();
    }
    return NULL;
}

/* In no order, one of them twice, not as many of each sequence. */
static wg_tensor *some_positions(void) {
    static const int64_t positions[] = {T + 4, 1, T + 4};
    return wg_from_array(WG_I64, WG_DIMS(WG_COUNT(positions)), positions);
}

/* Tables from position 3 on. */
static void turn(const rotary_given *r, wg_dtype dtype, wg_attention_inputs *inputs) {
    enum { FIRST = 3, LATER = 7 };
    wg__rotary_tables(r->width, FIRST, T, &r->options, &inputs->cos, &inputs->sin);
    if (r->of_rows) {
        wg_tensor *cos, *sin;
        wg__rotary_tables(r->width, LATER, T, &r->options, &cos, &sin);
        inputs->cos = wg_unsqueeze(wg_stack(2, (wg_tensor *[]){inputs->cos, cos}, 0), 1);
        inputs->sin = wg_unsqueeze(wg_stack(2, (wg_tensor *[]){inputs->sin, sin}, 0), 1);
    }
    inputs->cos = wg_cast(inputs->cos, dtype);
    inputs->sin = wg_cast(inputs->sin, dtype);
}

static wg_tensor *attend(void *layer, wg_tensor *const *inputs, const void *context) {
    const given *g = context;
    wg_tensor *weights = NULL;
    wg_attention_inputs beside = {.mask = mask_of(g->mask),
                                  .memory = g->memory ? inputs[1] : NULL,
                                  .bias = g->bias ? inputs[1] : NULL,
                                  .weights = g->weights ? &weights : NULL,
                                  .window = g->window,
                                  .output_positions = g->some ? some_positions() : NULL};
    if (g->rotary)
        turn(g->rotary, wg_tensor_dtype(inputs[0]), &beside);
    wg_tensor *y = wg_multi_head_attention_forward(layer, inputs[0], &beside);
    if (!g->weights)
        return y;
    wg_tensor *both[] = {wg_reshape(y, WG_DIMS(-1)), wg_reshape(weights, WG_DIMS(-1))};
    return wg_cat(2, both, 0);
}

/* ---- Forms ---- */

static void *attention_new(const void *options) {
    return wg_multi_head_attention_new(NULL, "", C, H, options);
}

static void *six_heads_new(const void *options) {
    return wg_multi_head_attention_new(NULL, "", C, 6, options);
}

static void *two_heads_new(const void *options) {
    return wg_multi_head_attention_new(NULL, "", C, 2, options);
}

#define FORM(maker, ...)                                                                           \
    .make = maker, .options = &(const wg_multi_head_attention_options){__VA_ARGS__},               \
    .forward = attend
#define DEFAULTS .make = attention_new, .forward = attend
#define GIVEN(...)                                                                                 \
    .given = &(const given) {                                                                      \
        __VA_ARGS__                                                                                \
    }
#define SELF .input_count = 1, .input_shapes = {{B, T, C}}
#define CROSS .input_count = 2, .input_shapes = {{B, T, C}, {B, M, MEMORY_WIDTH}}
#define BIASED .input_count = 2, .input_shapes = {{B, T, C}, {H, T, T}}

/* Two heads that share one head of keys and values of width 8: four angles. */
#define TURNED .key_value_heads = 1, .head_width = 8, .causal = true, .no_bias = true

static const rotary_given plain = {.width = 4};
static const rotary_given stretched = {.width = 8, .options = {.base = 100, .factor = 4}};
static const rotary_given llama31 = {.width = 8,
                                     .options = {.base = 100,
                                                 .factor = 8,
                                                 .low_frequency_factor = 1,
                                                 .high_frequency_factor = 4,
                                                 .original_positions = 64}};
static const rotary_given partial = {.width = 4, .of_rows = true};

static const layer_case forms[] = {
    {"self_attention", DEFAULTS, GIVEN(.mask = PADDING), SELF},
    {"causal_attention", FORM(attention_new, .causal = true), GIVEN(.mask = NO_MASK), SELF},
    {"padded_causal_attention", FORM(attention_new, .causal = true), GIVEN(.mask = PADDING), SELF},
    {"prefix_attention", DEFAULTS, GIVEN(.mask = PREFIX), SELF},
    {"masked_attention", DEFAULTS, GIVEN(.mask = ARBITRARY), SELF},
    {"cross_attention", FORM(attention_new, .memory_width = MEMORY_WIDTH),
     GIVEN(.mask = PADDING_OF_MEMORY, .memory = true), CROSS},
    {"grouped_attention",
     FORM(six_heads_new, .key_value_heads = 2, .head_width = 4, .causal = true, .no_bias = true),
     GIVEN(.rotary = &plain), SELF},
    {"multi_query_attention", FORM(attention_new, .key_value_heads = 1), GIVEN(.mask = PADDING),
     SELF},
    {"joint_attention", FORM(attention_new, .joint = true, .causal = true, .transposed = true),
     GIVEN(.mask = NO_MASK), SELF},
    {"joint_grouped_attention", FORM(attention_new, .joint = true, .key_value_heads = 1),
     GIVEN(.mask = NO_MASK), SELF},
    {"low_rank_attention", FORM(attention_new, .causal = true, .no_bias = true, .value_rank = RANK),
     GIVEN(.mask = NO_MASK), SELF},
    {"low_rank_cross_attention",
     FORM(attention_new, .key_value_heads = 1, .memory_width = MEMORY_WIDTH, .value_rank = RANK),
     GIVEN(.mask = PADDING_OF_MEMORY, .memory = true), CROSS},
    {"biased_attention", FORM(attention_new, .causal = true, .no_bias = true), GIVEN(.bias = true),
     BIASED},
    {"t5_attention", FORM(attention_new, .scale = 1, .head_width = 6, .no_bias = true),
     GIVEN(.mask = PADDING, .bias = true), BIASED},
    {"attention_weights", DEFAULTS, GIVEN(.mask = PADDING, .weights = true), SELF},
    {"cross_attention_weights", FORM(attention_new, .memory_width = MEMORY_WIDTH),
     GIVEN(.mask = PADDING_OF_MEMORY, .memory = true, .weights = true), CROSS},
    {"causal_attention_with_dropout", FORM(attention_new, .causal = true, .dropout = 0.3),
     GIVEN(.mask = NO_MASK), SELF, .file = "causal_attention", .modes_differ = true},
    {"attention_weights_with_dropout", FORM(attention_new, .dropout = 0.3),
     GIVEN(.mask = PADDING, .weights = true), SELF, .file = "attention_weights",
     .modes_differ = true},
    {"rotary_adjacent",
     FORM(six_heads_new, .key_value_heads = 2, .head_width = 4, .causal = true, .no_bias = true,
          .pairing = WG_ROTARY_ADJACENT),
     GIVEN(.rotary = &plain), SELF},
    {"rotary_stretched", FORM(two_heads_new, TURNED, .pairing = WG_ROTARY_ADJACENT),
     GIVEN(.rotary = &stretched), SELF},
    {"rotary_llama31", FORM(two_heads_new, TURNED), GIVEN(.rotary = &llama31), SELF},
    {"rotary_partial", FORM(two_heads_new, TURNED), GIVEN(.rotary = &partial), SELF},
};

/* ---- Outputs at some positions alone ---- */

static const char *form_name(int index) {
    return forms[index].name;
}

/* The gradient of a parameter or an input, which is zeroed then. */
static wg_tensor *take_gradient(wg_tensor *x) {
    wg_tensor *gradient = wg_clone(wg_gradient(x));
    wg_zero_grad(x);
    return gradient;
}

static void assert_rows_are_of_the_whole(const layer_case *form, given how) {
    wg_multi_head_attention *layer = form->make(form->options);
    wg_module_to(&layer->module, WG_F64);
    wg_module_train(&layer->module, false);
    wg_state_dict *state = wg_module_state(&layer->module);
    wg_generator generator = {.seed = 5};
    wg_tensor *leaves[16] = {0};
    int count = 0;
    for (; count < form->input_count; count++) {
        const int64_t *shape = form->input_shapes[count];
        leaves[count] = wg_randn(&generator, WG_F64, 3, shape);
        wg_set_requires_grad(leaves[count], true);
    }
    for (int64_t i = 0; i < state->count; i++)
        leaves[count++] = state->entries[i].slot->tensor;
    wg_tensor *expected =
        wg_index_select(wg_flatten(attend(layer, leaves, &how), 0, 1), 0, some_positions());
    how.some = true;
    wg_tensor *found = attend(layer, leaves, &how);
    assert_no_error();
    assert_close(found, expected, 1e-12, 1e-12);
    ck_assert_int_eq(wg_backward(wg_sum(wg_square(expected), WG_ALL, false), NULL), 0);
    wg_tensor *gradients[16];
    for (int i = 0; i < count; i++)
        gradients[i] = take_gradient(leaves[i]);
    ck_assert_int_eq(wg_backward(wg_sum(wg_square(found), WG_ALL, false), NULL), 0);
    for (int i = 0; i < count; i++)
        assert_close(take_gradient(leaves[i]), gradients[i], 1e-11, 1e-11);
    wg_state_dict_free(state);
    wg_module_free(&layer->module);
}

START_TEST(outputs_at_some_positions_are_rows_of_the_whole) {
    given how = *(const given *)forms[_i].given;
    how.weights = false;
    assert_rows_are_of_the_whole(&forms[_i], how);
}
END_TEST

START_TEST(outputs_at_some_positions_are_rows_of_the_whole_in_a_window) {
    given how = *(const given *)forms[_i].given;
    how.weights = false;
    how.window = 1;
    assert_rows_are_of_the_whole(&forms[_i], how);
}
END_TEST

/* Of 10 positions 3 are wanted, 2 of them of one sequence: queries and the output are of fewer
 * rows, keys and values of all. */
START_TEST(outputs_at_some_positions_take_fewer_products) {
    const wg_multi_head_attention_options joint = {.joint = true};
    wg_multi_head_attention *layers[] = {attention_new(NULL), attention_new(&joint)};
    for (size_t i = 0; i < WG_COUNT(layers); i++) {
        wg_tensor *x = wg_ones(WG_F32, WG_DIMS(B, T, C));
        const double before = wg__counted_product_flops();
        attend(layers[i], &x, &(const given){.some = true});
        const double rows = 4 + 2 * B * T + 3, scores = 2 * 4 * T;
        ck_assert_double_eq(wg__counted_product_flops() - before, 2 * (rows * C * C + scores * C));
        wg_module_free(&layers[i]->module);
    }
}
END_TEST

SUITES {
    add_layer_suite("attention_forms", WG_COUNT(forms), forms);
    const TTest *const of_each[] = {
        outputs_at_some_positions_are_rows_of_the_whole,
        outputs_at_some_positions_are_rows_of_the_whole_in_a_window,
    };
    add_suite_of_each("attention_positions", of_each, WG_COUNT(forms), form_name);
    const TTest *const of_all[] = {outputs_at_some_positions_take_fewer_products};
    add_suite("attention_positions_cost", of_all);
}
