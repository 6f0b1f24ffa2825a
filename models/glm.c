/* GLM: see glm.h.
 *
 * Letters: B sequences, T positions, C = hidden_size, V = vocab_size, N = num_layers. */
#include "models/glm.h"

#include "data/tokenizer/kind.h"
#include "models/internal.h"
#include "tensor/easy.h"

#define WHERE "glm_config" /* in messages */

/* The vocabulary of bert-base-uncased plus GLM's own tokens, rounded up to a multiple of 128. */
#define PRESET(layers, width, heads)                                                               \
    &(const wg_glm_config) {                                                                       \
        .vocab_size = 30592, .hidden_size = width, .num_layers = layers,                           \
        .num_attention_heads = heads, .max_sequence_length = 512, .embedding_dropout_prob = 0.1,   \
        .attention_dropout_prob = 0.1, .output_dropout_prob = 0.1, .layernorm_epsilon = 1e-5,      \
        .initializer_range = 0.02                                                                  \
    }

/* Two small ones, and the published base and large. */
static const wg_model_preset presets[] = {
    {.name = "glm-tiny", .config = PRESET(2, 128, 2)},
    {.name = "glm-small", .config = PRESET(6, 384, 6), .bench = {8, 256, 30522}},
    {.name = "glm-base", .config = PRESET(12, 768, 12)},
    {.name = "glm-large", .config = PRESET(24, 1024, 16)},
    {0},
};

#define AT(key) .name = #key, .offset = offsetof(wg_glm_config, key)

static const wg_setting rows[] = {
    {AT(vocab_size), WG__SIZE, .role = WG__OWN_VOCABULARY, .help = "tokens, with GLM's own"},
    {AT(hidden_size), WG__SIZE, .role = WG__WIDTH,
     .help = "the width of the model; the feed-forward net has four times as much inside"},
    WG__LAYERS_ROW(num_layers),
    {AT(num_attention_heads), WG__SIZE, .role = WG__HEADS, .help = "heads, a divisor of the width"},
    {AT(max_sequence_length), WG__SIZE, .role = WG__POSITIONS_OF_RUN, .standard = "512",
     .help = "the longest sequence, and the longest text in a blank"},
    {AT(embedding_dropout_prob), WG__PROBABILITY, .standard = "0.1",
     .help = "dropout of embeddings"},
    {AT(attention_dropout_prob), WG__PROBABILITY, .standard = "0.1",
     .help = "dropout of attention weights"},
    {AT(output_dropout_prob), WG__PROBABILITY, .standard = "0.1", .help = "dropout of sublayers"},
    {AT(layernorm_epsilon), WG__POSITIVE, .standard = "1e-5", .help = "added to the variance"},
    WG__RANGE_ROW,
    {WG__NO_MEMBER("block_position_encoding"), .standard = "true",
     .help = "the second positions of the paper; no other value is known"},
    WG__ONLY("relative_encoding", "false"),
    {WG__NO_MEMBER("spell_length"), .standard = "0",
     .help = "length of trained prompts; no other value is known"},
};

static int write_more(wg_config *json, const void *config) {
    (void)config;
    return wg__config_set_boolean(json, "block_position_encoding", true);
}

/* A vocabulary without GLM's four tokens gets them added, so a tokenizer learns four tokens fewer.
 * A preset takes the vocabulary's size, and the length of the sequences as its positions. */
static int fit_config(void *fitting, wg_model_fit *fit) {
    enum { ADDED_TOKENS = 4 };
    wg_glm_config *config = fitting;
    wg_blank_tokens tokens;
    fit->learnt = fit->file ? config->vocab_size - ADDED_TOKENS : 0;
    if (!fit->tokenizer)
        return 0;
    if (wg__blank_tokens_of(fit->tokenizer, &tokens) < 0)
        return -1;
    wg__fit(fit, "vocab_size", &config->vocab_size, tokens.vocab_size);
    if (!fit->file && fit->sequence > 0)
        config->max_sequence_length = fit->sequence;
    return 0;
}

/* The order of layer normalization and residual connections, and the initial weights, are
 * Megatron-LM's (section 2.2). */
static void *layer_new(wg_module *parent, const char *name, int64_t index, const void *from) {
    const wg_glm_config *config = from;
    const double range = config->initializer_range;
    const wg_initializer init = {WG_INIT_NORMAL, range},
                         residual = {WG_INIT_NORMAL,
                                     wg__residual_scale(range, 2 * config->num_layers)};
    (void)index;
    wg_gpt_layer *layer = wg_module_new(parent, name, sizeof *layer);
    if (!layer)
        return NULL;
    wg_module *module = &layer->module;
    const int64_t width = config->hidden_size;
    const wg_multi_head_attention_options attention = {
        .dropout = config->attention_dropout_prob,
        .joint = true,
        .init = init,
        .output_init = residual,
        .joint_name = "query_key_value",
        .output_name = "dense",
    };
    const wg_feed_forward_options mlp = {
        .activation = WG_ACTIVATION_GELU_TANH,
        .init = init,
        .down_init = residual,
        .up_name = "dense_h_to_4h",
        .down_name = "dense_4h_to_h",
    };
    const wg_layer_norm_options norm = {.eps = config->layernorm_epsilon};
    layer->attention_norm = wg_layer_norm_new(module, "input_layernorm", width, &norm);
    layer->attention = wg_multi_head_attention_new(module, "attention", width,
                                                   config->num_attention_heads, &attention);
    layer->net_norm = wg_layer_norm_new(module, "post_attention_layernorm", width, &norm);
    layer->net = wg_feed_forward_new(module, "mlp", width, 4 * width, &mlp);
    return wg_module_finish(module);
}

void *wg__glm_new(const void *from, uint64_t seed) {
    const wg_glm_config *config = from;
    wg_glm *model = wg__model_root(&wg_glm_type, config, sizeof *model, seed);
    if (!model)
        return NULL;
    wg_module *module = &model->module;
    const wg_initializer init = {WG_INIT_NORMAL, config->initializer_range};
    const wg_embedding_options embedding = {.init = init};
    const int64_t width = config->hidden_size, positions = config->max_sequence_length + 1;
    model->words =
        wg_embedding_new(module, "word_embeddings", config->vocab_size, width, &embedding);
    const wg_block_position_options tables = {.init = init};
    model->positions = wg__block_position_new(module, "transformer", positions, width, &tables);
    model->layers =
        wg__layers_new(module, "transformer.layers", config->num_layers, layer_new, config);
    const wg_layer_norm_options norm = {.eps = config->layernorm_epsilon};
    model->norm = wg_layer_norm_new(module, "transformer.final_layernorm", width, &norm);
    return wg_module_finish(module);
}

/* word + position + block position, with dropout: (B, T)   ->   (B, T, C). */
static wg_tensor *embed(wg_glm *model, const wg_model_inputs *inputs, int64_t first) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *positions = wg__position_ids(inputs, first), *blocks = inputs->block_position_ids;
    if (!blocks)
        blocks = wg_zeros(WG_I64, WG_DIMS(wg_tensor_size(inputs->ids, 1)));
    wg_tensor *x = wg_embedding_forward(model->words, inputs->ids);
    x = wg__block_position_forward(model->positions, x, positions, blocks);
    return wg_scope_end(&scope,
                        wg_dropout(&model->module, x, model->config.embedding_dropout_prob));
}

static wg_tensor *forward(wg_module *module, const wg_model_inputs *inputs) {
    wg_glm *model = (wg_glm *)module;
    const wg_glm_config *config = &model->config;
    const int64_t first = wg__first_position("glm", inputs, INT64_MAX);
    const wg_tensor *a = inputs->part_a;
    int status = first < 0 ? -1 : 0;
    if (inputs->mask && a)
        status = wg_fail(WG_ERROR_ARGUMENT, "glm",
                         "part_a and a mask both tell what may be seen; give one of them");
    else if (first >= 0 && a &&
             (wg_tensor_ndim(a) != 1 || wg_tensor_size(a, 0) != wg_tensor_size(inputs->ids, 0)))
        status = wg_fail(
            WG_ERROR_SHAPE, "glm",
            "part_a has rank %d and %lld elements; wanted (B), one for each of %lld sequences",
            wg_tensor_ndim(a), (long long)wg_tensor_count(a),
            (long long)wg_tensor_size(inputs->ids, 0));
    if (status < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    const int64_t count = wg_tensor_size(inputs->ids, 1);
    const wg_stack_inputs stack_inputs = {
        .self.mask = inputs->part_a ? wg__prefix_mask(inputs->part_a, first, count) : inputs->mask,
        .self_caches = inputs->caches,
        .dropout = config->output_dropout_prob,
        .self.output_positions = inputs->output_positions,
    };
    wg_tensor *x = wg_stack_forward(module, config->num_layers, wg__gpt_layer_forward,
                                    model->layers, embed(model, inputs, first), &stack_inputs);
    return wg_scope_end(&scope, wg_layer_norm_forward(model->norm, x));
}

static wg_model_head head_of(wg_module *module, wg_tensor *hidden) {
    return (wg_model_head){.table = ((wg_glm *)module)->words, .hidden = hidden};
}

/* The weight decay and beta2 of training are the published code's. */
const wg_model_type wg_glm_type = {
    .name = "glm",
    .model_type = "glm",
    .title = "GLM (Du et al. 2022)",
    .shape = WG_PREFIX_DECODER,
    .settings = {WHERE, sizeof(wg_glm_config), sizeof rows / sizeof rows[0], rows},
    /* attention_scale guards the scores against overflow in half precision, and cancels; "cloze"
     * belongs to an objective. */
    .ignored = WG__KEYS("attention_scale", "auto_map", "checkpoint_activations",
                        "checkpoint_num_layers", "cloze", "max_memory_length", "output_predict",
                        "parallel_output", "pool_token", "spell_func"),
    .presets = presets,
    .bench_preset = "glm-small",
    .training = "{\"tokenizer\": \"wordpiece\", \"schedule\": \"cosine\", \"final\": 0.1, "
                "\"weight-decay\": 0.1, \"beta2\": 0.98}",
    .smallest = "{\"vocab_size\": 9, \"hidden_size\": 4, \"num_layers\": 2, "
                "\"num_attention_heads\": 2, \"max_sequence_length\": 5}",
    .objectives = "blank-infilling",
    .write_more = write_more,
    .fit = fit_config,
    .config = wg__root_config,
    .names = {.architecture = "GLMForConditionalGeneration",
              .marker = "block_position_embeddings.",
              .outer = "glm.",
              .kept = {"cloze"},
              .adapted = {"query_key_value"}},
    .create = wg__glm_new,
    .forward = forward,
    .head = head_of,
};
