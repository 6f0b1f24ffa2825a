/* GPT-2: see gpt.h.
 *
 * Letters: B sequences, T positions, C = n_embd, V = vocab_size. */
#include "models/gpt.h"

#include "models/internal.h"

#define WHERE "gpt_config" /* in messages */

#define PRESET(layers, width, heads)                                                               \
    &(const wg_gpt_config) {                                                                       \
        .vocab_size = 50257, .n_positions = 1024, .n_embd = width, .n_layer = layers,              \
        .n_head = heads, .n_inner = 4 * (width), .activation_function = WG_ACTIVATION_GELU_TANH,   \
        .embd_pdrop = 0.1, .attn_pdrop = 0.1, .resid_pdrop = 0.1, .layer_norm_epsilon = 1e-5,      \
        .initializer_range = 0.02, .bos_token_id = 50256, .eos_token_id = 50256                    \
    }

/* Two small ones, and the published sizes. */
static const wg_model_preset presets[] = {
    {.name = "gpt2-tiny", .config = PRESET(2, 128, 2)},
    {.name = "gpt2-mini", .config = PRESET(4, 256, 4)},
    {.name = "gpt2-124m", .config = PRESET(12, 768, 12), .bench = {4, 64, 50257}},
    {.name = "gpt2-medium", .config = PRESET(24, 1024, 16)},
    {.name = "gpt2-large", .config = PRESET(36, 1280, 20)},
    {.name = "gpt2-xl", .config = PRESET(48, 1600, 25)},
    {0},
};

#define AT(key) .name = #key, .offset = offsetof(wg_gpt_config, key)

static const wg_setting rows[] = {
    WG__VOCABULARY_ROW,
    WG__POSITIONS_ROW(n_positions, "1024", WG__POSITIONS_OF_RUN),
    WG__WIDTH_ROW(n_embd),
    WG__LAYERS_ROW(n_layer),
    {AT(n_head), WG__SIZE, .role = WG__HEADS, .help = "heads, a divisor of the width"},
    {AT(n_inner), WG__SIZE, .derived = "4 `n_embd`",
     .help = "the inner width of the feed-forward net"},
    {AT(activation_function), WG__ACTIVATION, .standard = "\"gelu_new\"", .help = "its activation"},
    {AT(embd_pdrop), WG__PROBABILITY, .standard = "0.1", .help = "dropout of embeddings"},
    {AT(attn_pdrop), WG__PROBABILITY, .standard = "0.1", .help = "dropout of attention weights"},
    {AT(resid_pdrop), WG__PROBABILITY, .standard = "0.1", .help = "dropout of sublayers"},
    {AT(layer_norm_epsilon), WG__POSITIVE, .standard = "1e-5", .help = "added to the variance"},
    WG__RANGE_ROW,
    {AT(bos_token_id), WG__MAYBE_TOKEN, .role = WG__BEGIN, .standard = "50256",
     .help = "the token that begins a text, -1 for none; `pretrain` fills it in"},
    {AT(eos_token_id), WG__MAYBE_TOKEN, .role = WG__END, .standard = "50256",
     .help = "the token that ends one, likewise"},
    WG__ONLY("scale_attn_weights", "true"),
    WG__ONLY("scale_attn_by_inverse_layer_idx", "false"),
    WG__ONLY("tie_word_embeddings", "true"),
};

static int read_more(wg_config *json, void *read) {
    wg_gpt_config *config = read;
    if (!wg__config_has(json, "n_inner"))
        config->n_inner = 4 * config->n_embd;
    return 0;
}

static void *layer_new(wg_module *parent, const char *name, int64_t index, const void *from) {
    const wg_gpt_config *config = from;
    const double range = config->initializer_range;
    const wg_initializer init = {WG_INIT_NORMAL, range},
                         residual = {WG_INIT_NORMAL,
                                     wg__residual_scale(range, 2 * config->n_layer)};
    (void)index;
    wg_gpt_layer *layer = wg_module_new(parent, name, sizeof *layer);
    if (!layer)
        return NULL;
    wg_module *module = &layer->module;
    const wg_multi_head_attention_options attention = {
        .dropout = config->attn_pdrop,
        .causal = true,
        .joint = true,
        .transposed = true,
        .init = init,
        .output_init = residual,
        .joint_name = "c_attn",
        .output_name = "c_proj",
    };
    const wg_feed_forward_options net = {
        .activation = config->activation_function,
        .transposed = true,
        .init = init,
        .down_init = residual,
        .up_name = "c_fc",
        .down_name = "c_proj",
    };
    const wg_layer_norm_options norm = {.eps = config->layer_norm_epsilon};
    layer->attention_norm = wg_layer_norm_new(module, "ln_1", config->n_embd, &norm);
    layer->attention =
        wg_multi_head_attention_new(module, "attn", config->n_embd, config->n_head, &attention);
    layer->net_norm = wg_layer_norm_new(module, "ln_2", config->n_embd, &norm);
    layer->net = wg_feed_forward_new(module, "mlp", config->n_embd, config->n_inner, &net);
    return wg_module_finish(module);
}

void *wg__gpt_new(const void *from, uint64_t seed) {
    const wg_gpt_config *config = from;
    wg_gpt *model = wg__model_root(&wg_gpt_type, config, sizeof *model, seed);
    if (!model)
        return NULL;
    wg_module *module = &model->module;
    const wg_embedding_options embedding = {.init = {WG_INIT_NORMAL, config->initializer_range}};
    model->words =
        wg_embedding_new(module, "transformer.wte", config->vocab_size, config->n_embd, &embedding);
    model->positions = wg_embedding_new(module, "transformer.wpe", config->n_positions,
                                        config->n_embd, &embedding);
    model->layers = wg__layers_new(module, "transformer.h", config->n_layer, layer_new, config);
    const wg_layer_norm_options norm = {.eps = config->layer_norm_epsilon};
    model->norm = wg_layer_norm_new(module, "transformer.ln_f", config->n_embd, &norm);
    return wg_module_finish(module);
}

wg_tensor *wg__gpt_layer_forward(void *layers, int64_t index, wg_tensor *x,
                                 const wg_stack_inputs *inputs) {
    wg_gpt_layer *layer = ((wg_gpt_layer **)layers)[index];
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *attended = wg_multi_head_attention_forward(
        layer->attention, wg_layer_norm_forward(layer->attention_norm, x), &inputs->self);
    x = wg_add(wg__stack_output_rows(x, inputs),
               wg_dropout(&layer->module, attended, inputs->dropout));
    wg_tensor *fed = wg_feed_forward_forward(layer->net, wg_layer_norm_forward(layer->net_norm, x));
    return wg_scope_end(&scope, wg_add(x, wg_dropout(&layer->module, fed, inputs->dropout)));
}

/* word + position, with dropout: (B, T)   ->   (B, T, C). */
static wg_tensor *embed(wg_gpt *model, const wg_model_inputs *inputs, int64_t first) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *positions = wg__position_ids(inputs, first);
    wg_tensor *x = wg_add(wg_embedding_forward(model->words, inputs->ids),
                          wg_embedding_forward(model->positions, positions));
    return wg_scope_end(&scope, wg_dropout(&model->module, x, model->config.embd_pdrop));
}

static wg_tensor *forward(wg_module *module, const wg_model_inputs *inputs) {
    wg_gpt *model = (wg_gpt *)module;
    const int64_t first = wg__first_position("gpt", inputs, model->config.n_positions);
    if (first < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_stack_inputs stack_inputs = {
        .self.mask = wg_padding_mask(inputs->keep),
        .self_caches = inputs->caches,
        .dropout = model->config.resid_pdrop,
    };
    wg_tensor *x = wg_stack_forward(module, model->config.n_layer, wg__gpt_layer_forward,
                                    model->layers, embed(model, inputs, first), &stack_inputs);
    return wg_scope_end(&scope, wg_layer_norm_forward(model->norm, x));
}

static wg_model_head head_of(wg_module *module, wg_tensor *hidden) {
    return (wg_model_head){.table = ((wg_gpt *)module)->words, .hidden = hidden};
}

const wg_model_type wg_gpt_type = {
    .name = "gpt",
    .model_type = "gpt2",
    .title = "GPT-2 (Radford et al. 2019)",
    .shape = WG_DECODER,
    .settings = {WHERE, sizeof(wg_gpt_config), sizeof rows / sizeof rows[0], rows},
    .ignored = WG__KEYS("n_ctx", "output_past", "pad_token_id", "reorder_and_upcast_attn",
                        "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
                        "summary_type", "summary_use_proj", "task_specific_params"),
    .presets = presets,
    .bench_preset = "gpt2-124m",
    .training = WG__DECODER_TRAINING,
    .smallest = "{\"vocab_size\": 9, \"n_positions\": 5, \"n_embd\": 4, \"n_layer\": 2, "
                "\"n_head\": 2, \"n_inner\": 6, \"bos_token_id\": 0, \"eos_token_id\": 0}",
    .objectives = "causal-lm",
    .read_more = read_more,
    .config = wg__root_config,
    .names = {.architecture = "GPT2LMHeadModel",
              .marker = ".attn.c_attn.",
              .prefix = "transformer.",
              .heads = {"lm_head."},
              .ignored = {".attn.bias", ".attn.masked_bias"},
              .copies = {{"lm_head.weight", "transformer.wte.weight"}},
              .adapted = {"c_attn"}},
    .create = wg__gpt_new,
    .forward = forward,
    .head = head_of,
};
