/* The Transformer: see transformer.h.
 *
 * Letters: B pairs, S source and T target positions, C = d_model, V = decoder_vocab_size. */
#include "models/transformer.h"

#include "data/tokenizer/kind.h"
#include "models/internal.h"

#define WHERE "transformer_config" /* in messages */

/* The vocabulary has the paper's 37000 byte pairs, with fairseq's special tokens: a decoder begins
 * with the end token. */
#define PRESET(layers, width, heads, inner, dropped, ...)                                          \
    &(const wg_transformer_config) {                                                               \
        .vocab_size = 37000, .decoder_vocab_size = 37000,                                          \
        .share_encoder_decoder_embeddings = true, .d_model = width, .encoder_layers = layers,      \
        .decoder_layers = layers, .encoder_attention_heads = heads,                                \
        .decoder_attention_heads = heads, .encoder_ffn_dim = inner, .decoder_ffn_dim = inner,      \
        .activation_function = WG_ACTIVATION_RELU, .scale_embedding = true, .dropout = dropped,    \
        .label_smoothing = 0.1, .pad_token_id = 1, .eos_token_id = 2, .decoder_start_token_id = 2, \
        __VA_ARGS__                                                                                \
    }
#define SINUSOIDS .static_position_embeddings = true, .max_position_embeddings = 1024

/* The best settings found for transformer-mini on the 29000 pairs of Multi30k (docs/training.md).
 */
#define MINI_TRAINING                                                                              \
    "{\"optimizer\": \"muon\", \"lr\": 0.006, \"schedule\": \"linear\", \"final\": 0, "            \
    "\"longest-warmup\": 60, \"batch\": 2048}"

/* Two small models, "mini" with norms before the sublayers; then the paper's table 3. */
static const wg_model_preset presets[] = {
    {.name = "transformer-tiny", .config = PRESET(4, 128, 4, 256, 0.3, SINUSOIDS)},
    {.name = "transformer-mini",
     .config =
         PRESET(3, 256, 8, 512, 0.3, .normalize_before = true, .max_position_embeddings = 128),
     .training = MINI_TRAINING},
    {.name = "transformer-base",
     .config = PRESET(6, 512, 8, 2048, 0.1, SINUSOIDS),
     .bench = {16, 32, 10000}},
    {.name = "transformer-big", .config = PRESET(6, 1024, 16, 4096, 0.3, SINUSOIDS)},
    {0},
};

#define AT(key) .name = #key, .offset = offsetof(wg_transformer_config, key)

static const wg_setting rows[] = {
    {AT(vocab_size), WG__SIZE, .role = WG__SOURCE_VOCABULARY,
     .help = "tokens; `pretrain` fills it in"},
    {AT(decoder_vocab_size), WG__SIZE, .role = WG__VOCABULARY, .derived = "`vocab_size`",
     .help = "tokens of the target"},
    {AT(share_encoder_decoder_embeddings), WG__FLAG, .standard = "true",
     .help = "one word table for source and target"},
    WG__WIDTH_ROW(d_model),
    {AT(encoder_layers), WG__SIZE, .role = WG__ENCODER_LAYERS, .help = "layers of the encoder"},
    {AT(decoder_layers), WG__SIZE, .role = WG__LAYERS, .help = "layers of the decoder"},
    {AT(encoder_attention_heads), WG__SIZE, .role = WG__HEADS,
     .help = "heads of the encoder, a divisor of the width"},
    {AT(decoder_attention_heads), WG__SIZE, .role = WG__HEADS,
     .help = "heads of the decoder, likewise"},
    {AT(encoder_ffn_dim), WG__SIZE, .help = "the inner width of the encoder's feed-forward net"},
    {AT(decoder_ffn_dim), WG__SIZE, .help = "the inner width of the decoder's feed-forward net"},
    {AT(activation_function), WG__ACTIVATION, .standard = "\"relu\"",
     .help = "the activation of the feed-forward nets"},
    {AT(normalize_before), WG__FLAG, .standard = "false",
     .help = "norms come before the sublayers, not after them"},
    {AT(scale_embedding), WG__FLAG, .standard = "true",
     .help = "words are scaled by the root of the width"},
    {AT(static_position_embeddings), WG__FLAG, .standard = "true",
     .help = "positions are sinusoids; if not, learned vectors"},
    {AT(dropout), WG__PROBABILITY, .standard = "0.1",
     .help = "dropout of embeddings and sublayers"},
    {AT(attention_dropout), WG__PROBABILITY, .standard = "0",
     .help = "dropout of attention weights"},
    {AT(activation_dropout), WG__PROBABILITY, .standard = "0",
     .help = "dropout inside of the feed-forward nets"},
    {AT(label_smoothing), WG__PROBABILITY, .standard = "0.1",
     .help = "the share of a label that is spread over all tokens"},
    {AT(max_position_embeddings), WG__SIZE, .role = WG__POSITIONS, .standard = "1024",
     .help = "the longest source or target"},
    {AT(pad_token_id), WG__INTEGER, .role = WG__PAD, .standard = "1",
     .help = "padding, -1 for none; `pretrain` fills it in"},
    {AT(eos_token_id), WG__INTEGER, .role = WG__END, .standard = "2",
     .help = "the token that ends a target, likewise"},
    {AT(decoder_start_token_id), WG__INTEGER, .role = WG__BEGIN, .standard = "2",
     .help = "the first token of the decoder, likewise"},
    WG__ONLY("tie_word_embeddings", "true"),
    WG__ONLY("normalize_embedding", "false"),
    WG__ONLY("add_bias_logits", "false"),
    {WG__NO_MEMBER("add_final_layer_norm"), .derived = "`normalize_before`",
     .help = "no other value is known"},
};

static int read_more(wg_config *json, void *read) {
    wg_transformer_config *config = read;
    bool final_norm = config->normalize_before;
    if (wg__config_boolean(json, "add_final_layer_norm", &final_norm) < 0)
        return -1;
    if (final_norm != config->normalize_before)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "add_final_layer_norm is %s; wanted %s",
                       final_norm ? "true" : "false", final_norm ? "false" : "true");
    if (!wg__config_has(json, "decoder_vocab_size"))
        config->decoder_vocab_size = config->vocab_size;
    return 0;
}

/* The decoder needs a token to begin with and a token to end with. */
static int check_target_token(const char *key, int64_t token, int64_t vocabulary) {
    return token >= 0 && token < vocabulary
               ? 0
               : wg__settings_refuse(WHERE, key, (double)token,
                                     "a token of the target's vocabulary");
}

static int check(const void *checked) {
    const wg_transformer_config *config = checked;
    const int64_t targets = config->decoder_vocab_size,
                  smaller = targets < config->vocab_size ? targets : config->vocab_size;
    if (config->share_encoder_decoder_embeddings && targets != config->vocab_size)
        return wg__settings_refuse(WHERE, "decoder_vocab_size", (double)targets,
                                   "vocab_size where share_encoder_decoder_embeddings is true");
    if (config->pad_token_id < -1 || config->pad_token_id >= smaller)
        return wg__settings_refuse(WHERE, "pad_token_id", (double)config->pad_token_id,
                                   "a token of the vocabulary, or -1 for none");
    if (check_target_token("eos_token_id", config->eos_token_id, targets) < 0)
        return -1;
    return check_target_token("decoder_start_token_id", config->decoder_start_token_id, targets);
}

static int fit_config(void *fitting, wg_model_fit *fit) {
    wg_transformer_config *config = fitting;
    wg__translation_tokens tokens;
    fit->learnt = fit->file ? config->vocab_size : 0;
    if (!fit->tokenizer)
        return 0;
    if (wg__translation_tokens_of(fit->tokenizer, &tokens) < 0)
        return -1;
    wg__fit(fit, "vocab_size", &config->vocab_size, wg_tokenizer_size(fit->tokenizer));
    wg__fit(fit, "decoder_vocab_size", &config->decoder_vocab_size, config->vocab_size);
    wg__fit(fit, "pad_token_id", &config->pad_token_id, tokens.pad);
    wg__fit(fit, "eos_token_id", &config->eos_token_id, tokens.end);
    wg__fit(fit, "decoder_start_token_id", &config->decoder_start_token_id, tokens.start);
    return 0;
}

/* Arguments for the layers of a stack. */
typedef struct layer_kind {
    const wg_transformer_config *config;
    int64_t heads, inner;
    bool decodes;
} layer_kind;

static wg_multi_head_attention *attention_new(wg_module *parent, const char *name, bool causal,
                                              const layer_kind *kind) {
    const wg_multi_head_attention_options options = {
        .dropout = kind->config->attention_dropout,
        .causal = causal,
        .query_name = "q_proj",
        .key_name = "k_proj",
        .value_name = "v_proj",
        .output_name = "out_proj",
    };
    return wg_multi_head_attention_new(parent, name, kind->config->d_model, kind->heads, &options);
}

static wg_add_norm *add_norm_new(wg_module *parent, const char *norm_name, const layer_kind *kind) {
    const wg_add_norm_options options = {
        .pre = kind->config->normalize_before,
        .dropout = kind->config->dropout,
        .norm_name = norm_name,
    };
    return wg_add_norm_new(parent, "", kind->config->d_model, &options);
}

static void *layer_new(wg_module *parent, const char *name, int64_t index, const void *from) {
    const layer_kind *kind = from;
    (void)index;
    wg_transformer_layer *layer = wg_module_new(parent, name, sizeof *layer);
    if (!layer)
        return NULL;
    wg_module *module = &layer->module;
    layer->self_attention = attention_new(module, "self_attn", kind->decodes, kind);
    layer->self_norm = add_norm_new(module, "self_attn_layer_norm", kind);
    if (kind->decodes) {
        layer->memory_attention = attention_new(module, "encoder_attn", false, kind);
        layer->memory_norm = add_norm_new(module, "encoder_attn_layer_norm", kind);
    }
    const wg_feed_forward_options net = {
        .activation = kind->config->activation_function,
        .dropout = kind->config->activation_dropout,
        .init = {WG_INIT_XAVIER_UNIFORM, 1},
        .up_name = "fc1",
        .down_name = "fc2",
    };
    layer->net = wg_feed_forward_new(module, "", kind->config->d_model, kind->inner, &net);
    layer->net_norm = add_norm_new(module, "final_layer_norm", kind);
    return wg_module_finish(module);
}

/* Vectors of variance 1/C: words times sqrt(C), and logits of normalized vectors, begin at size 1.
 */
static wg_embedding *table_new(wg_module *module, const char *name, int64_t count, int64_t width) {
    const wg_embedding_options options = {.init = {WG_INIT_NORMAL, 1 / sqrt((double)width)}};
    return wg_embedding_new(module, name, count, width, &options);
}

/* The learned positions, the layers and the last norm of a stack. */
static void add_layers(wg_module *module, const char *name, int64_t count, const layer_kind *kind,
                       wg_transformer_stack *stack) {
    const wg_transformer_config *config = kind->config;
    const int64_t width = config->d_model;
    char path[64];
    snprintf(path, sizeof path, "%s.embed_positions", name);
    if (!config->static_position_embeddings)
        stack->positions = table_new(module, path, config->max_position_embeddings, width);
    snprintf(path, sizeof path, "%s.layers", name);
    stack->layers = wg__layers_new(module, path, count, layer_new, kind);
    stack->layer_count = stack->layers ? count : 0;
    snprintf(path, sizeof path, "%s.layer_norm", name);
    if (config->normalize_before)
        stack->norm = wg_layer_norm_new(module, path, width, NULL);
}

void *wg__transformer_new(const void *from, uint64_t seed) {
    const wg_transformer_config *config = from;
    wg_transformer *model = wg__model_root(&wg_transformer_type, config, sizeof *model, seed);
    if (!model)
        return NULL;
    wg_module *module = &model->module;
    const int64_t width = config->d_model;
    const layer_kind encoder = {config, config->encoder_attention_heads, config->encoder_ffn_dim,
                                false},
                     decoder = {config, config->decoder_attention_heads, config->decoder_ffn_dim,
                                true};
    model->encoder.words = table_new(module, "encoder.embed_tokens", config->vocab_size, width);
    add_layers(module, "encoder", config->encoder_layers, &encoder, &model->encoder);
    if (!config->share_encoder_decoder_embeddings)
        model->decoder.words =
            table_new(module, "decoder.embed_tokens", config->decoder_vocab_size, width);
    else if (model->encoder.words) {
        /* Encoder and decoder share the table of words, under two names. */
        wg_module *second = wg_module_new(module, "decoder.embed_tokens", sizeof *second);
        if (second)
            wg_module_tie(second, "weight", model->encoder.words->weight);
        model->decoder.words = second ? model->encoder.words : NULL;
    }
    add_layers(module, "decoder", config->decoder_layers, &decoder, &model->decoder);
    if (model->decoder.words) {
        const wg_linear_options tied = {.no_bias = true,
                                        .tied_weight = model->decoder.words->weight};
        model->output = wg_linear_new(module, "decoder.output_projection", width,
                                      config->decoder_vocab_size, &tied);
    }
    return wg_module_finish(module);
}

static wg_tensor *layer_forward(void *stack, int64_t index, wg_tensor *x,
                                const wg_stack_inputs *inputs) {
    wg_transformer_layer *layer = ((wg_transformer_stack *)stack)->layers[index];
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *y = wg_add_norm_before(layer->self_norm, x);
    y = wg_multi_head_attention_forward(layer->self_attention, y, &inputs->self);
    x = wg_add_norm_after(layer->self_norm, x, y);
    if (layer->memory_attention) {
        y = wg_add_norm_before(layer->memory_norm, x);
        y = wg_multi_head_attention_forward(layer->memory_attention, y, &inputs->memory);
        x = wg_add_norm_after(layer->memory_norm, x, y);
    }
    y = wg_feed_forward_forward(layer->net, wg_add_norm_before(layer->net_norm, x));
    return wg_scope_end(&scope, wg_add_norm_after(layer->net_norm, x, y));
}

/* words sqrt(C) + positions, with dropout: (B, T)   ->   (B, T, C). */
static wg_tensor *embed(wg_transformer *model, const wg_transformer_stack *stack,
                        const wg_model_inputs *inputs, int64_t first) {
    const wg_transformer_config *config = &model->config;
    const wg_dtype dtype = wg_tensor_dtype(stack->words->weight);
    const int64_t count = wg_tensor_size(inputs->ids, 1), width = config->d_model;
    wg_tensor *ids = inputs->position_ids, *positions;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x = wg_embedding_forward(stack->words, inputs->ids);
    if (config->scale_embedding)
        x = wg_mul_scalar(x, sqrt((double)width));

    /* (T, C), or (B, T, C) at position_ids */
    if (stack->positions)
        positions = ids ? wg_embedding_forward(stack->positions, ids)
                        : wg_slice(stack->positions->weight, 0, first, first + count, 1);
    else if (ids)
        positions = wg_embedding_op(
            wg__sinusoidal_table(dtype, width, 0, config->max_position_embeddings, NULL), ids, -1);
    else
        positions = wg__sinusoidal_table(dtype, width, first, count, NULL);
    return wg_scope_end(&scope, wg_dropout(&model->module, wg_add(x, positions), config->dropout));
}

static wg_tensor *stack_forward(wg_transformer *model, wg_transformer_stack *stack,
                                const wg_model_inputs *inputs,
                                const wg_stack_inputs *stack_inputs) {
    const int64_t first =
        wg__first_position("transformer", inputs, model->config.max_position_embeddings);
    if (first < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x = wg_stack_forward(&model->module, stack->layer_count, layer_forward, stack,
                                    embed(model, stack, inputs, first), stack_inputs);
    return wg_scope_end(&scope, stack->norm ? wg_layer_norm_forward(stack->norm, x) : x);
}

static wg_tensor *encode(wg_module *module, wg_tensor *ids, wg_tensor *keep) {
    wg_transformer *model = (wg_transformer *)module;
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_stack_inputs stack_inputs = {.self.mask = wg_padding_mask(keep)};
    return wg_scope_end(&scope, stack_forward(model, &model->encoder,
                                              &(wg_model_inputs){.ids = ids}, &stack_inputs));
}

static wg_tensor *forward(wg_module *module, const wg_model_inputs *inputs) {
    wg_transformer *model = (wg_transformer *)module;
    if (wg__check_memory_states("transformer", inputs) < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_stack_inputs stack_inputs = {
        .self.mask = wg_padding_mask(inputs->keep),
        .memory = {.memory = inputs->memory, .mask = wg_padding_mask(inputs->memory_keep)},
        .self_caches = inputs->caches,
        .memory_caches = inputs->memory_caches,
    };
    return wg_scope_end(&scope, stack_forward(model, &model->decoder, inputs, &stack_inputs));
}

static wg_model_head head_of(wg_module *module, wg_tensor *hidden) {
    const wg_transformer *model = (wg_transformer *)module;
    return (wg_model_head){.linear = model->output,
                           .hidden = hidden,
                           .label_smoothing = model->config.label_smoothing};
}

/* Training as in section 5 of the paper, with the peak rate of the base model. The warm-up is 4000
 * steps, or a tenth of a shorter run. */
const wg_model_type wg_transformer_type = {
    .name = "transformer",
    .model_type = "transformer",
    .published = "marian",
    .title = "Transformer (Vaswani et al. 2017)",
    .shape = WG_ENCODER_DECODER,
    .settings = {WHERE, sizeof(wg_transformer_config), sizeof rows / sizeof rows[0], rows},
    .ignored =
        WG__KEYS("_num_labels", "bad_words_ids", "bos_token_id", "classif_dropout",
                 "classifier_dropout", "decoder_layerdrop", "encoder_layerdrop",
                 "extra_pos_embeddings", "force_bos_token_to_be_generated", "forced_eos_token_id",
                 "gradient_checkpointing", "id2label", "init_std", "is_encoder_decoder", "label2id",
                 "max_length", "num_beams", "num_hidden_layers", "tokenizer_class"),
    .presets = presets,
    .bench_preset = "transformer-base",
    .training = "{\"tokenizer\": \"bpe\", \"schedule\": \"noam\", \"optimizer\": \"adam\", "
                "\"lr\": 0.0007, \"beta2\": 0.98, \"batch\": 4096, \"longest-warmup\": 4000}",
    .smallest = "{\"vocab_size\": 9, \"d_model\": 4, \"encoder_layers\": 1, "
                "\"decoder_layers\": 1, \"encoder_attention_heads\": 2, "
                "\"decoder_attention_heads\": 2, \"encoder_ffn_dim\": 5, "
                "\"decoder_ffn_dim\": 5, \"attention_dropout\": 0.1, "
                "\"static_position_embeddings\": false, \"activation_function\": \"gelu\", "
                "\"max_position_embeddings\": 5, \"pad_token_id\": 0}",
    .objectives = "translation",
    .read_more = read_more,
    .check = check,
    .fit = fit_config,
    .config = wg__root_config,
    .names = {.marker = ".encoder_attn.", .adapted = {"q_proj", "v_proj"}},
    .create = wg__transformer_new,
    .encode = encode,
    .forward = forward,
    .head = head_of,
};
