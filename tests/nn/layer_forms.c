/* All layers but attention in all their forms, against PyTorch and against central differences. */
#include "nn/feed_forward.h"
#include "nn/conv.h"
#include "nn/norm.h"
#include "nn/attention.h"
#include "nn/positions.h"
#include "nn/linear.h"
#include "tensor/ops.h"
#include "tests/nn/layer_case.h"
#include "tests/support/testing.h"
#include "nn/internal.h"

/* The sizes of tests/fixtures/layers.py. */
enum { B = 2, T = 5, C = 12, H = 3, OUT = 7, VOCABULARY = 9, INNER = 20, FIRST = 2 };

/* ---- Linear layers and tables ---- */

static void *linear_new(const void *options) {
    return wg_linear_new(NULL, "", C, OUT, options);
}

static wg_tensor *linear(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)given;
    return wg_linear_forward(layer, inputs[0]);
}

/* Some tokens occur twice, one not at all. */
static wg_tensor *token_ids(void) {
    static const int64_t ids[B * T] = {1, 0, 2, 8, 2, 4, 5, 2, 6, 1};
    return wg_from_array(WG_I64, WG_DIMS(B, T), ids);
}

static void *embedding_new(const void *options) {
    return wg_embedding_new(NULL, "", VOCABULARY, C, options);
}

static wg_tensor *look_up(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)inputs, (void)given;
    return wg_embedding_forward(layer, token_ids());
}

/* Learned positions. */
static wg_tensor *add_positions(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)given;
    wg_tensor *positions = wg_arange(WG_I64, FIRST, FIRST + T, 1);
    return wg_add(inputs[0], wg_embedding_forward(layer, positions));
}

/* A table that embeds the tokens and makes the logits, with a nonlinear function between. */
typedef struct tied {
    wg_module module;
    wg_embedding *table;
    wg_linear *decoder; /* or NULL: the table makes the logits */
} tied;

static void *tied_new(const void *with_bias) {
    tied *t = wg_module_new(NULL, "", sizeof *t);
    t->table = wg_embedding_new(&t->module, "table", VOCABULARY, C, NULL);
    if (with_bias)
        t->decoder = wg_linear_new(&t->module, "decoder", C, VOCABULARY,
                                   &(wg_linear_options){.tied_weight = t->table->weight});
    return wg_module_finish(&t->module);
}

static wg_tensor *tied_logits(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)given;
    tied *t = layer;
    wg_tensor *x = wg_tanh(wg_add(wg_embedding_forward(t->table, token_ids()), inputs[0]));
    return t->decoder ? wg_linear_forward(t->decoder, x) : wg_embedding_logits(t->table, x);
}

/* ---- Positions ---- */

static void *block_position_new(const void *options) {
    return wg__block_position_new(NULL, "", VOCABULARY, C, options);
}

static wg_tensor *add_block_positions(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)given;
    static const int64_t places[B * T] = {0, 1, 2, 1, 1, 0, 1, 2, 3, 3};
    static const int64_t blocks[B * T] = {0, 0, 0, 1, 2, 0, 0, 0, 0, 1};
    return wg__block_position_forward(layer, inputs[0],
                                      wg_from_array(WG_I64, WG_DIMS(B, T), places),
                                      wg_from_array(WG_I64, WG_DIMS(B, T), blocks));
}

static void *relative_position_new(const void *options) {
    return wg__relative_position_new(NULL, "", H, options);
}

typedef struct places {
    int64_t first, queries, keys;
} places;

static const places few = {FIRST, 6, 14}, far = {150, 1, 301}; /* distances from -150 to 150 */

static wg_tensor *relative_bias(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)inputs;
    const places *at = given;
    return wg__relative_position_forward(layer, at->first, at->queries, at->keys);
}

/* A module without parameters. */
static void *nothing_new(const void *options) {
    (void)options;
    return wg_module_new(NULL, "", sizeof(wg_module));
}

static wg_tensor *add_sinusoids(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)layer, (void)given;
    const wg_dtype dtype = wg_tensor_dtype(inputs[0]);
    return wg_add(inputs[0], wg__sinusoidal_table(dtype, C, FIRST, T, NULL));
}

/* ---- Norms ---- */

static void *layer_norm_new(const void *options) {
    return wg_layer_norm_new(NULL, "", C, options);
}

static wg_tensor *layer_norm(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)given;
    return wg_layer_norm_forward(layer, inputs[0]);
}

static void *rms_norm_new(const void *options) {
    return wg_rms_norm_new(NULL, "", C, options);
}

static wg_tensor *rms_norm(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)given;
    return wg_rms_norm_forward(layer, inputs[0]);
}

static void *batch_norm_new(const void *options) {
    return wg_batch_norm_new(NULL, "", C, options);
}

static wg_tensor *batch_norm(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)given;
    return wg_batch_norm_forward(layer, inputs[0]);
}

/* ---- Convolutions, and norms of images ---- */

typedef struct conv_form {
    wg_conv *(*make)(wg_module *, const char *, int, int64_t, int64_t, const int64_t *,
                     const wg_conv_layer_options *);
    int rank;
    int64_t out, kernel[3];
    wg_conv_layer_options options;
} conv_form;

static void *conv_new(const void *options) {
    const conv_form *form = options;
    return form->make(NULL, "", form->rank, 4, form->out, form->kernel, &form->options);
}

static wg_tensor *conv(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)given;
    return wg_conv_forward(layer, inputs[0]);
}

static void *group_norm_new(const void *options) {
    const wg_group_norm_options *form = options;
    return wg_group_norm_new(NULL, "", form->no_affine ? 3 : 2, 6, form);
}

static wg_tensor *group_norm(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)given;
    return wg_group_norm_forward(layer, inputs[0]);
}

/* ---- Feed-forward nets ---- */

static wg_tensor *every_activation(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)layer, (void)given;
    wg_tensor *values[32];
    int count = 0;
    for (; wg_activation_name((wg_activation)count); count++)
        values[count] = wg_activate((wg_activation)count, inputs[0]);
    return wg_stack(count, values, 0);
}

static void *feed_forward_new(const void *options) {
    return wg_feed_forward_new(NULL, "", C, INNER, options);
}

static wg_tensor *feed_forward(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)given;
    return wg_feed_forward_forward(layer, inputs[0]);
}

static void *gated_new(const void *options) {
    return wg_gated_feed_forward_new(NULL, "", C, INNER, options);
}

static wg_tensor *gated(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)given;
    return wg_gated_feed_forward_forward(layer, inputs[0]);
}

/* ---- Add & Norm: an encoder layer as a user writes one ---- */

typedef struct encoder {
    wg_module module;
    wg_multi_head_attention *attention;
    wg_add_norm *attention_norm;
    wg_feed_forward *feed_forward;
    wg_add_norm *output_norm;
} encoder;

typedef struct encoder_options {
    bool pre;
    double dropout;
    wg_activation activation;
} encoder_options;

static void *encoder_new(const void *options) {
    const encoder_options *o = options;
    encoder *e = wg_module_new(NULL, "", sizeof *e);
    const wg_multi_head_attention_options attention = {.dropout = o->dropout};
    const wg_add_norm_options norm = {.pre = o->pre, .eps = 1e-6, .dropout = o->dropout};
    const wg_feed_forward_options net = {.activation = o->activation, .dropout = o->dropout};
    e->attention = wg_multi_head_attention_new(&e->module, "attention", C, H, &attention);
    e->attention_norm = wg_add_norm_new(&e->module, "attention_norm", C, &norm);
    e->feed_forward = wg_feed_forward_new(&e->module, "feed_forward", C, INNER, &net);
    e->output_norm = wg_add_norm_new(&e->module, "output_norm", C, &norm);
    return wg_module_finish(&e->module);
}

static wg_tensor *encode(void *layer, wg_tensor *const *inputs, const void *given) {
    (void)given;
    static const bool keep[B * T] = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0};
    encoder *e = layer;
    const wg_attention_inputs beside = {
        .mask = wg_padding_mask(wg_from_array(WG_BOOL, WG_DIMS(B, T), keep))};
    wg_tensor *x = inputs[0];
    wg_tensor *attended = wg_multi_head_attention_forward(
        e->attention, wg_add_norm_before(e->attention_norm, x), &beside);
    x = wg_add_norm_after(e->attention_norm, x, attended);
    wg_tensor *fed =
        wg_feed_forward_forward(e->feed_forward, wg_add_norm_before(e->output_norm, x));
    return wg_add_norm_after(e->output_norm, x, fed);
}

/* ---- The table ---- */

#define FORM(name, type, ...)                                                                      \
    .make = name##_new, .options = &(const type) {                                                 \
        __VA_ARGS__                                                                                \
    }
#define SEQUENCES .input_count = 1, .input_shapes = {{B, T, C}}
#define RELATIVE(...)                                                                              \
    FORM(relative_position, wg_relative_position_options, __VA_ARGS__), .forward = relative_bias
#define GATED(...)                                                                                 \
    FORM(gated, wg_gated_feed_forward_options, __VA_ARGS__), .forward = gated, SEQUENCES
#define BATCH_NORM(...)                                                                            \
    FORM(batch_norm, wg_batch_norm_options, __VA_ARGS__),                                          \
        .forward = batch_norm, .modes_differ = true, .held_by = "test_batch_norm"
#define CONV(...)                                                                                  \
    FORM(conv, conv_form, __VA_ARGS__), .forward = conv, .input_count = 1, .input_shapes
#define ENCODER(...) FORM(encoder, encoder_options, __VA_ARGS__), .forward = encode, SEQUENCES

#define GATE_FORM(kind_, published, op) {"gated_" published, GATED(.kind = WG_GATE_##kind_)},

static const layer_case forms[] = {
    {"linear", .make = linear_new, .forward = linear, SEQUENCES},
    {"linear_no_bias", FORM(linear, wg_linear_options, .no_bias = true), .forward = linear,
     SEQUENCES},
    {"linear_transposed", FORM(linear, wg_linear_options, .transposed = true), .forward = linear,
     SEQUENCES},
    {"embedding", .make = embedding_new, .forward = look_up},
    {"embedding_padding",
     FORM(embedding, wg_embedding_options, .has_padding = true, .padding_index = 2),
     .forward = look_up, .no_slope = "the row of padding gets no gradient"},
    {"tied_logits", .make = tied_new, .forward = tied_logits, SEQUENCES},
    {"tied_decoder", .make = tied_new, .options = "with a bias", .forward = tied_logits, SEQUENCES},
    {"learned_positions", .make = embedding_new, .forward = add_positions, SEQUENCES},
    {"sinusoidal_positions", .make = nothing_new, .forward = add_sinusoids, SEQUENCES},
    {"block_positions", .make = block_position_new, .forward = add_block_positions, SEQUENCES},
    {"relative_position", RELATIVE(.buckets = 8, .max_distance = 10), .given = &few},
    {"relative_position_both", RELATIVE(.buckets = 8, .max_distance = 10, .bidirectional = true),
     .given = &few},
    {"relative_position_of_t5", .make = relative_position_new, .forward = relative_bias,
     .given = &far},
    {"relative_position_of_t5_both", RELATIVE(.bidirectional = true), .given = &far},
    {"layer_norm", FORM(layer_norm, wg_layer_norm_options, .eps = 1e-3), .forward = layer_norm,
     SEQUENCES},
    {"layer_norm_no_bias", FORM(layer_norm, wg_layer_norm_options, .no_bias = true),
     .forward = layer_norm, SEQUENCES},
    {"rms_norm", FORM(rms_norm, wg_rms_norm_options, .eps = 1e-3), .forward = rms_norm, SEQUENCES},
    {"rms_norm_outside", FORM(rms_norm, wg_rms_norm_options, .eps = 1e-3, .eps_outside = true),
     .forward = rms_norm, SEQUENCES},
    {"batch_norm", BATCH_NORM(.momentum = 0.3), .input_count = 1, .input_shapes = {{6, C}}},
    {"batch_norm_of_sequences", BATCH_NORM(.eps = 1e-3), .input_count = 1,
     .input_shapes = {{B, C, T}}},
    {"batch_norm_cumulative", BATCH_NORM(.cumulative = true), .input_count = 1,
     .input_shapes = {{6, C}}},
    {"batch_norm_no_affine", BATCH_NORM(.no_affine = true), .input_count = 1,
     .input_shapes = {{6, C}}},
    {"batch_norm_no_running", BATCH_NORM(.no_running = true), .input_count = 1,
     .input_shapes = {{6, C}}},
    {"conv1d", CONV(wg_conv_new, 1, 6, {3}, {.conv = {.padding = {1}}}) = {{B, 4, 9}}},
    {"conv2d", CONV(wg_conv_new, 2, 6, {3, 2},
                    {.conv = {.stride = {2, 1}, .padding = {1, 0}}}) = {{B, 4, 6, 5}}},
    {"conv2d_groups",
     CONV(wg_conv_new, 2, 6, {3, 3},
          {.conv = {.dilation = {2, 2}, .groups = 2}, .no_bias = true}) = {{B, 4, 6, 5}}},
    {"conv2d_same",
     CONV(wg_conv_new, 2, 3, {3, 4}, {.conv = {.same_padding = true}}) = {{B, 4, 6, 5}}},
    {"conv2d_reflect",
     CONV(wg_conv_new, 2, 3, {3, 3},
          {.conv = {.padding = {2, 1}}, .padding_mode = WG_PAD_REFLECT}) = {{B, 4, 6, 5}}},
    {"conv_transpose1d",
     CONV(wg_conv_transpose_new, 1, 6, {3}, {.conv = {.stride = {2}}}) = {{B, 4, 5}}},
    {"conv_transpose2d",
     CONV(wg_conv_transpose_new, 2, 6, {3, 3},
          {.conv = {.stride = {2, 2}, .padding = {1, 1}, .output_padding = {1, 0}, .groups = 2}}) =
         {{B, 4, 3, 4}}},
    {"group_norm", FORM(group_norm, wg_group_norm_options, .eps = 1e-3), .forward = group_norm,
     .input_count = 1, .input_shapes = {{B, 6, 3, 4}}},
    {"group_norm_no_affine", FORM(group_norm, wg_group_norm_options, .no_affine = true),
     .forward = group_norm, .input_count = 1, .input_shapes = {{B, 6, 7}}},
    {"activations", .make = nothing_new, .forward = every_activation, SEQUENCES},
    {"feed_forward", FORM(feed_forward, wg_feed_forward_options, .activation = WG_ACTIVATION_RELU),
     .forward = feed_forward, SEQUENCES},
    {"feed_forward_transposed",
     FORM(feed_forward, wg_feed_forward_options, .activation = WG_ACTIVATION_GELU_TANH,
          .no_bias = true, .transposed = true),
     .forward = feed_forward, SEQUENCES},
    {"feed_forward_with_dropout",
     FORM(feed_forward, wg_feed_forward_options, .activation = WG_ACTIVATION_RELU, .dropout = 0.4),
     .forward = feed_forward, SEQUENCES, .file = "feed_forward", .modes_differ = true},
    WG_GATES(GATE_FORM){"gated_bias", GATED(.bias = true)},
    {"gated_joint", GATED(.kind = WG_GATE_GEGLU, .joint = true)},
    {"gated_silu_with_dropout", GATED(.dropout = 0.4), .file = "gated_silu", .modes_differ = true},
    {"post_norm_encoder", ENCODER(.activation = WG_ACTIVATION_RELU)},
    {"pre_norm_encoder", ENCODER(.pre = true, .activation = WG_ACTIVATION_GELU)},
    {"post_norm_encoder_with_dropout", ENCODER(.dropout = 0.2, .activation = WG_ACTIVATION_RELU),
     .file = "post_norm_encoder", .modes_differ = true},
    {"pre_norm_encoder_with_dropout",
     ENCODER(.pre = true, .dropout = 0.2, .activation = WG_ACTIVATION_GELU),
     .file = "pre_norm_encoder", .modes_differ = true},
};

SUITES {
    add_layer_suite("layer_forms", WG_COUNT(forms), forms);
}
