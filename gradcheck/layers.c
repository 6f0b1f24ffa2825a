/* The library's layers as examples for the checker: each in several forms, very small, with random
 * parameters (the initial ones and zeros of a norm would hide mistakes). */
#include "nn/attention.h"
#include "nn/conv.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/positions.h"
#include "nn/recurrent.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "gradcheck/internal.h"
#include "nn/internal.h"

/* Examples, places, features, heads, tokens in the vocabulary. */
enum { B = 2, T = 3, C = 4, H = 2, VOCABULARY = 5 };

/* Makes a sample of a layer with an input of this shape, or without inputs for ndim -1. Each
 * parameter becomes the mean of its value and a random number. */
static int make_sample(wg_module_sample *sample, wg_generator *generator, void *layer,
                       wg_function forward, int ndim, const int64_t *shape) {
    sample->module = layer;
    sample->forward = forward;
    wg_state_dict *state = layer ? wg_module_state(layer) : NULL;
    if (!state)
        return -1;
    const bool recorded = wg_set_grad_enabled(false);
    for (int64_t i = 0; i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        if (slot->kind != WG_SLOT_PARAMETER || slot->tied)
            continue;
        const wg_spec *spec = &slot->tensor->spec;
        wg_tensor *random = wg_randn(generator, spec->dtype, spec->ndim, spec->shape);
        wg_copy_(slot->tensor, wg_mul_scalar(wg_add(slot->tensor, random), 0.5));
    }
    wg_set_grad_enabled(recorded);
    wg_state_dict_free(state);
    wg_module_generator(sample->module)->seed = generator->seed;
    sample->input_count = ndim >= 0;
    if (ndim >= 0)
        sample->inputs[0] = wg_randn(generator, WG_F64, ndim, shape);
    return wg_error_pending() ? -1 : 1;
}

/* The function of a layer: `layer` and `inputs` give RESULT. */
#define FORWARD(NAME, RESULT)                                                                      \
    static int NAME##_forward(int input_count, wg_tensor *const *inputs, int output_count,         \
                              wg_tensor **outputs, void *layer) {                                  \
        (void)input_count, (void)inputs, (void)output_count;                                       \
        outputs[0] = RESULT;                                                                       \
        return outputs[0] ? 0 : -1;                                                                \
    }

/* The sample function of a layer: MAKE makes the layer from forms[index]. The last arguments are
 * the shape of the input. */
#define LAYER(NAME, MAKE, ...)                                                                     \
    static int NAME##_sample(int index, wg_generator *generator, wg_module_sample *sample) {       \
        if (index >= (int)(sizeof NAME##_forms / sizeof *NAME##_forms))                            \
            return 0;                                                                              \
        return make_sample(sample, generator, MAKE, NAME##_forward, __VA_ARGS__);                  \
    }

static const wg_linear_options linear_forms[] = {{0}, {.no_bias = true}, {.transposed = true}};
FORWARD(linear, wg_linear_forward(layer, inputs[0]))
LAYER(linear, wg_linear_new(NULL, "", C, 3, &linear_forms[index]), WG_DIMS(B, T, C))

static wg_tensor *ids(void) {
    static const int64_t tokens[B * T] = {1, 0, 4, 4, 2, 1};
    return wg_from_array(WG_I64, WG_DIMS(B, T), tokens);
}

static const wg_embedding_options embedding_forms[] = {{0}};
FORWARD(embedding, wg_embedding_forward(layer, ids()))
LAYER(embedding, wg_embedding_new(NULL, "", VOCABULARY, C, &embedding_forms[index]), -1, NULL)

static const wg_relative_position_options relative_position_forms[] = {
    {.buckets = 8, .max_distance = 10}, {.buckets = 8, .max_distance = 10, .bidirectional = true}};
FORWARD(relative_position, wg__relative_position_forward(layer, 1, T, 5))
LAYER(relative_position, wg__relative_position_new(NULL, "", H, &relative_position_forms[index]),
      -1, NULL)

static const wg_block_position_options block_position_forms[] = {{{0}}};
FORWARD(block_position, wg__block_position_forward(layer, inputs[0], ids(), ids()))
LAYER(block_position, wg__block_position_new(NULL, "", VOCABULARY, C, &block_position_forms[index]),
      WG_DIMS(B, T, C))

static const wg_layer_norm_options layer_norm_forms[] = {{0}, {.no_bias = true}};
FORWARD(layer_norm, wg_layer_norm_forward(layer, inputs[0]))
LAYER(layer_norm, wg_layer_norm_new(NULL, "", C, &layer_norm_forms[index]), WG_DIMS(B, T, C))

static const wg_rms_norm_options rms_norm_forms[] = {{0}, {.eps_outside = true}};
FORWARD(rms_norm, wg_rms_norm_forward(layer, inputs[0]))
LAYER(rms_norm, wg_rms_norm_new(NULL, "", C, &rms_norm_forms[index]), WG_DIMS(B, T, C))

static const wg_batch_norm_options batch_norm_forms[] = {{0}, {.no_affine = true}};
FORWARD(batch_norm, wg_batch_norm_forward(layer, inputs[0]))
LAYER(batch_norm, wg_batch_norm_new(NULL, "", C, &batch_norm_forms[index]), WG_DIMS(B, C, T))

static const wg_group_norm_options group_norm_forms[] = {{0}, {.no_affine = true}};
FORWARD(group_norm, wg_group_norm_forward(layer, inputs[0]))
LAYER(group_norm, wg_group_norm_new(NULL, "", 2, C, &group_norm_forms[index]), WG_DIMS(B, C, T))

/* Around tanh, a sublayer without parameters. */
static const wg_add_norm_options add_norm_forms[] = {{.dropout = 0.2}, {.pre = true}};
FORWARD(add_norm,
        wg_add_norm_after(layer, inputs[0], wg_tanh(wg_add_norm_before(layer, inputs[0]))))
LAYER(add_norm, wg_add_norm_new(NULL, "", C, &add_norm_forms[index]), WG_DIMS(B, T, C))

#define CONVOLUTION(NAME, RANK, ...)                                                               \
    FORWARD(NAME##RANK##d, wg_conv_forward(layer, inputs[0]))                                      \
    LAYER(                                                                                         \
        NAME##RANK##d,                                                                             \
        wg_##NAME##_new(NULL, "", RANK, 2, 2, (int64_t[]){2, 2, 2}, &NAME##RANK##d_forms[index]),  \
        __VA_ARGS__)

static const wg_conv_layer_options conv1d_forms[] = {{.conv = {.padding = {1}}},
                                                     {.conv = {.stride = {2}, .groups = 2}}};
static const wg_conv_layer_options conv2d_forms[] = {
    {.conv = {.stride = {2, 1}, .padding = {1, 0}}},
    {.conv = {.groups = 2, .dilation = {1, 2}}, .no_bias = true}};
static const wg_conv_layer_options conv3d_forms[] = {{.conv = {.padding = {1, 0, 0}}}};
static const wg_conv_layer_options conv_transpose1d_forms[] = {{.conv = {.stride = {2}}}};
static const wg_conv_layer_options conv_transpose2d_forms[] = {
    {.conv = {.stride = {2, 2}, .output_padding = {1, 0}, .groups = 2}}};
static const wg_conv_layer_options conv_transpose3d_forms[] = {{.conv = {.stride = {1, 2, 1}}}};
CONVOLUTION(conv, 1, WG_DIMS(B, 2, 4))
CONVOLUTION(conv, 2, WG_DIMS(B, 2, 3, 4))
CONVOLUTION(conv, 3, WG_DIMS(1, 2, 2, 2, 3))
CONVOLUTION(conv_transpose, 1, WG_DIMS(B, 2, 3))
CONVOLUTION(conv_transpose, 2, WG_DIMS(1, 2, 2, 3))
CONVOLUTION(conv_transpose, 3, WG_DIMS(1, 2, 2, 2, 2))

static const wg_feed_forward_options feed_forward_forms[] = {{.activation = WG_ACTIVATION_GELU},
                                                             {.dropout = 0.2}};
FORWARD(feed_forward, wg_feed_forward_forward(layer, inputs[0]))
LAYER(feed_forward, wg_feed_forward_new(NULL, "", C, 5, &feed_forward_forms[index]),
      WG_DIMS(B, T, C))

static const wg_gated_feed_forward_options gated_feed_forward_forms[] = {{.bias = true},
                                                                         {.joint = true}};
FORWARD(gated_feed_forward, wg_gated_feed_forward_forward(layer, inputs[0]))
LAYER(gated_feed_forward,
      wg_gated_feed_forward_new(NULL, "", C, 5, &gated_feed_forward_forms[index]), WG_DIMS(B, T, C))

static const wg_multi_head_attention_options multi_head_attention_forms[] = {
    {0}, {.causal = true, .key_value_heads = 1, .no_bias = true}, {.joint = true, .dropout = 0.2}};
FORWARD(multi_head_attention, wg_multi_head_attention_forward(layer, inputs[0], NULL))
LAYER(multi_head_attention,
      wg_multi_head_attention_new(NULL, "", C, H, &multi_head_attention_forms[index]),
      WG_DIMS(B, T, C))

static const wg_recurrent_options lstm_forms[] = {{0}, {.layers = 2, .bidirectional = true}},
                                  gru_forms[] = {{0}, {.bidirectional = true, .no_bias = true}};
FORWARD(lstm, wg_lstm_forward(layer, inputs[0], NULL, NULL))
LAYER(lstm, wg_lstm_new(NULL, "", C, 3, &lstm_forms[index]), WG_DIMS(T, B, C))
FORWARD(gru, wg_gru_forward(layer, inputs[0], NULL))
LAYER(gru, wg_gru_new(NULL, "", C, 3, &gru_forms[index]), WG_DIMS(T, B, C))

static const bool min_gru_forms[] = {true, false}; /* biases */
FORWARD(min_gru, wg_min_gru_forward(layer, inputs[0], NULL))
LAYER(min_gru, wg_min_gru_new(NULL, "", C, 3, min_gru_forms[index]), WG_DIMS(B, T, C))

static const wg_mamba_options mamba_forms[] = {{.state = 2, .kernel = 2}};
FORWARD(mamba, wg_mamba_forward(layer, inputs[0], NULL))
LAYER(mamba, wg_mamba_new(NULL, "", C, &mamba_forms[index]), WG_DIMS(1, T, C))

static const wg_module_example layers[] = {
    {"add_norm", add_norm_sample},
    {"batch_norm", batch_norm_sample},
    {"block_position", block_position_sample},
    {"conv1d", conv1d_sample},
    {"conv2d", conv2d_sample},
    {"conv3d", conv3d_sample},
    {"conv_transpose1d", conv_transpose1d_sample},
    {"conv_transpose2d", conv_transpose2d_sample},
    {"conv_transpose3d", conv_transpose3d_sample},
    {"embedding", embedding_sample},
    {"feed_forward", feed_forward_sample},
    {"gated_feed_forward", gated_feed_forward_sample},
    {"group_norm", group_norm_sample},
    {"gru", gru_sample},
    {"layer_norm", layer_norm_sample},
    {"linear", linear_sample},
    {"lstm", lstm_sample},
    {"mamba", mamba_sample},
    {"min_gru", min_gru_sample},
    {"multi_head_attention", multi_head_attention_sample},
    {"relative_position", relative_position_sample},
    {"rms_norm", rms_norm_sample},
};

const wg_module_example *wg__gradcheck_layer_at(int index) {
    return index >= 0 && index < (int)(sizeof layers / sizeof *layers) ? &layers[index] : NULL;
}
