/* T5: see t5.h.
 *
 * Letters: B sequences, Ts positions of the source, Tt of the target, C = d_model, D = d_kv,
 * H = num_heads, V = vocab_size. */
#include "models/t5.h"

#include <string.h>

#include "data/tokenizer/kind.h"
#include "models/internal.h"

#define WHERE "t5_config" /* in messages */

#define PRESET(layers, width, inner, heads, net)                                                   \
    &(const wg_t5_config) {                                                                        \
        .vocab_size = 32128, .d_model = width, .d_kv = 64, .d_ff = inner, .num_layers = layers,    \
        .num_decoder_layers = layers, .num_heads = heads, .relative_attention_num_buckets = 32,    \
        .relative_attention_max_distance = 128, .dropout_rate = 0.1, .layer_norm_epsilon = 1e-6,   \
        .initializer_factor = 1, .feed_forward_proj = net,                                         \
        .tie_word_embeddings = (net) == WG_T5_RELU, .pad_token_id = 0, .eos_token_id = 1,          \
        .decoder_start_token_id = 0                                                                \
    }

/* The published sizes. "tiny" and "mini" are T5-efficient's (Tay et al. 2021, arXiv:2109.10686,
 * table 2), here for both versions of T5. */
static const wg_model_preset presets[] = {
    {.name = "t5-tiny", .config = PRESET(4, 256, 1024, 4, WG_T5_RELU)},
    {.name = "t5-mini", .config = PRESET(4, 384, 1536, 8, WG_T5_RELU)},
    {.name = "t5-small", .config = PRESET(6, 512, 2048, 8, WG_T5_RELU), .bench = {16, 32, 32128}},
    {.name = "t5-base", .config = PRESET(12, 768, 3072, 12, WG_T5_RELU)},
    {.name = "t5-v1_1-tiny", .config = PRESET(4, 256, 1024, 4, WG_T5_GATED_GELU)},
    {.name = "t5-v1_1-mini", .config = PRESET(4, 384, 1536, 8, WG_T5_GATED_GELU)},
    {.name = "t5-v1_1-small", .config = PRESET(8, 512, 1024, 6, WG_T5_GATED_GELU)},
    {0},
};

static const char *feed_forward_name(int value) {
    static const char *const names[] = {"relu", "gated-gelu"};
    return value >= 0 && value < 2 ? names[value] : NULL;
}

#define AT(key) .name = #key, .offset = offsetof(wg_t5_config, key)

static const wg_setting rows[] = {
    {AT(vocab_size), WG__SIZE, .role = WG__OWN_VOCABULARY,
     .help = "tokens, with sentinels, `</s>` and padding"},
    WG__WIDTH_ROW(d_model),
    {AT(d_kv), WG__SIZE, .help = "the width of a head"},
    {AT(d_ff), WG__SIZE, .help = "the inner width of the feed-forward net"},
    {AT(num_layers), WG__SIZE, .role = WG__ENCODER_LAYERS, .help = "layers of the encoder"},
    {AT(num_decoder_layers), WG__SIZE, .role = WG__LAYERS, .derived = "`num_layers`",
     .help = "layers of the decoder"},
    {AT(num_heads), WG__SIZE, .help = "heads"},
    {AT(relative_attention_num_buckets), WG__SIZE, .standard = "32",
     .help = "buckets of distances, a multiple of 4"},
    {AT(relative_attention_max_distance), WG__SIZE, .standard = "128",
     .help = "distances from this one on share a bucket"},
    {AT(dropout_rate), WG__PROBABILITY, .standard = "0.1", .help = "dropout everywhere"},
    {AT(layer_norm_epsilon), WG__POSITIVE, .standard = "1e-6", .help = "added to the mean square"},
    {AT(initializer_factor), WG__POSITIVE, .standard = "1", .help = "scales the initial weights"},
    {AT(tie_word_embeddings), WG__FLAG, .standard = "true",
     .help = "the head is the word table, as in 1.0; `false`, as in 1.1: a separate head"},
    {AT(pad_token_id), WG__TOKEN, .standard = "0", .help = "the tokenizer's, when a run begins"},
    {AT(eos_token_id), WG__TOKEN, .standard = "1", .help = "likewise"},
    {AT(decoder_start_token_id), WG__TOKEN, .standard = "0", .help = "likewise the padding"},
    {AT(feed_forward_proj), .kind = WG_SETTING_CHOICE, .choice = feed_forward_name,
     .standard = "\"relu\"", .help = "the feed-forward net: `relu` of 1.0, or `gated-gelu` of 1.1"},
    {WG__NO_MEMBER("scale_decoder_outputs"), .derived = "`tie_word_embeddings`",
     .help = "as transformers 5 says it, with `tie_word_embeddings` true in any case: `false` is "
             "the head of 1.1"},
};

static int read_more(wg_config *json, void *read) {
    wg_t5_config *config = read;
    if (!wg__config_has(json, "num_decoder_layers"))
        config->num_decoder_layers = config->num_layers;
    bool scaled = config->tie_word_embeddings;
    if (wg__config_boolean(json, "scale_decoder_outputs", &scaled) < 0)
        return -1;
    if (scaled && !config->tie_word_embeddings)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "scale_decoder_outputs is true and tie_word_embeddings false; a head of its "
                       "own reads the decoder's outputs as they are: make both true or both false");
    config->tie_word_embeddings = scaled;
    return 0;
}

/* A vocabulary without </s>, <pad> and the sentinels gets them added, so a tokenizer learns that
 * many tokens fewer. A preset takes the vocabulary's size; end and padding are always the
 * tokenizer's. */
static int fit_config(void *fitting, wg_model_fit *fit) {
    enum { ADDED_TOKENS = WG_SENTINELS + 2 };
    wg_t5_config *config = fitting;
    wg__sentinels tokens;
    if (fit->file && config->vocab_size <= ADDED_TOKENS)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "vocab_size is %lld; %d of its tokens are sentinels, </s> and <pad>",
                       (long long)config->vocab_size, ADDED_TOKENS);
    fit->learnt = fit->file ? config->vocab_size - ADDED_TOKENS : 0;
    if (!fit->tokenizer)
        return 0;
    if (wg__sentinels_of(fit->tokenizer, &tokens) < 0)
        return -1;
    wg__fit(fit, "vocab_size", &config->vocab_size, tokens.vocab_size);
    config->eos_token_id = tokens.end;
    config->pad_token_id = config->decoder_start_token_id = tokens.pad;
    return 0;
}

static void sizes_of(const void *measured, wg_model_sizes *sizes) {
    const wg_t5_config *config = measured;
    sizes->source_vocabulary = config->vocab_size;
    sizes->cache_width = 2 * config->num_heads * config->d_kv;
    sizes->start_id = config->decoder_start_token_id;
    sizes->end_id = config->eos_token_id;
    sizes->pad_id = config->pad_token_id;
}

/* Initial weights have the published code's standard deviations: 1/sqrt(fan in), and 1/sqrt(C D)
 * for queries, since scores are not scaled. */
static wg_multi_head_attention *attention(wg_module *parent, const char *name, bool causal,
                                          const wg_t5_config *config) {
    const double factor = config->initializer_factor, width = (double)config->d_model,
                 inner = (double)(config->num_heads * config->d_kv);
    const wg_multi_head_attention_options options = {
        .head_width = config->d_kv,
        .scale = 1,
        .dropout = config->dropout_rate,
        .causal = causal,
        .no_bias = true,
        .init = {WG_INIT_NORMAL, factor / sqrt(width)},
        .output_init = {WG_INIT_NORMAL, factor / sqrt(inner)},
        .query_name = "q",
        .key_name = "k",
        .value_name = "v",
        .output_name = "o",
    };
    wg_multi_head_attention *made =
        wg_multi_head_attention_new(parent, name, config->d_model, config->num_heads, &options);
    if (made && made->query) {
        const wg_initializer query = {WG_INIT_NORMAL,
                                      factor / sqrt((double)(config->d_model * config->d_kv))};
        wg_initialize(made->query->weight, &query, wg_module_generator(parent));
    }
    return made;
}

/* The first block of a stack owns the positions. */
static void *block_new(wg_module *parent, const char *name, int64_t index, const void *from) {
    const wg_t5_config *config = from;
    wg_t5_stack *stack = (wg_t5_stack *)parent;
    const bool decodes = strcmp(parent->name, "decoder") == 0;
    const int64_t width = config->d_model, inner = config->d_ff;
    const double factor = config->initializer_factor;
    const wg_initializer in = {WG_INIT_NORMAL, factor / sqrt((double)width)},
                         out = {WG_INIT_NORMAL, factor / sqrt((double)inner)};
    const wg_rms_norm_options norm = {.eps = config->layer_norm_epsilon};
    wg_t5_block *block = wg_module_new(parent, name, sizeof *block);
    if (!block)
        return NULL;
    wg_module *module = &block->module;
    block->attention = attention(module, "layer.0.SelfAttention", decodes, config);
    const wg_relative_position_options positions = {
        .buckets = config->relative_attention_num_buckets,
        .max_distance = config->relative_attention_max_distance,
        .bidirectional = !decodes,
        .init = in,
    };
    if (index == 0 && block->attention)
        stack->positions = wg__relative_position_new(
            &block->attention->module, "relative_attention_bias", config->num_heads, &positions);
    block->attention_norm = wg_rms_norm_new(module, "layer.0.layer_norm", width, &norm);
    if (decodes) {
        block->memory_attention = attention(module, "layer.1.EncDecAttention", false, config);
        block->memory_norm = wg_rms_norm_new(module, "layer.1.layer_norm", width, &norm);
    }
    const char *net = decodes ? "layer.2.DenseReluDense" : "layer.1.DenseReluDense";
    const wg_gated_feed_forward_options gated = {.kind = WG_GATE_GEGLU_TANH,
                                                 .dropout = config->dropout_rate,
                                                 .init = in,
                                                 .down_init = out,
                                                 .gate_name = "wi_0",
                                                 .up_name = "wi_1",
                                                 .down_name = "wo"};
    const wg_feed_forward_options plain = {.activation = WG_ACTIVATION_RELU,
                                           .dropout = config->dropout_rate,
                                           .no_bias = true,
                                           .init = in,
                                           .down_init = out,
                                           .up_name = "wi",
                                           .down_name = "wo"};
    if (config->feed_forward_proj == WG_T5_GATED_GELU)
        block->gated_net = wg_gated_feed_forward_new(module, net, width, inner, &gated);
    else
        block->net = wg_feed_forward_new(module, net, width, inner, &plain);
    block->net_norm = wg_rms_norm_new(module, decodes ? "layer.2.layer_norm" : "layer.1.layer_norm",
                                      width, &norm);
    return wg_module_finish(module);
}

static wg_t5_stack *stack_new(wg_module *parent, const char *name, int64_t count,
                              const wg_t5_config *config) {
    wg_t5_stack *stack = wg_module_new(parent, name, sizeof *stack);
    if (!stack)
        return NULL;
    stack->count = count;
    stack->blocks = wg__layers_new(&stack->module, "block", count, block_new, config);
    const wg_rms_norm_options norm = {.eps = config->layer_norm_epsilon};
    stack->norm = wg_rms_norm_new(&stack->module, "final_layer_norm", config->d_model, &norm);
    return wg_module_finish(&stack->module);
}

void *wg__t5_new(const void *from, uint64_t seed) {
    const wg_t5_config *config = from;
    wg_t5 *model = wg__model_root(&wg_t5_type, config, sizeof *model, seed);
    if (!model)
        return NULL;
    wg_module *module = &model->module;
    const wg_initializer word = {WG_INIT_NORMAL, config->initializer_factor};
    model->words = wg_embedding_new(module, "shared", config->vocab_size, config->d_model,
                                    &(wg_embedding_options){.init = word});
    model->encoder = stack_new(module, "encoder", config->num_layers, config);
    model->decoder = stack_new(module, "decoder", config->num_decoder_layers, config);
    const wg_linear_options head = {.no_bias = true, .init = word};
    if (!config->tie_word_embeddings)
        model->head = wg_linear_new(module, "lm_head", config->d_model, config->vocab_size, &head);
    return wg_module_finish(module);
}

static wg_tensor *block_forward(void *stack, int64_t index, wg_tensor *x,
                                const wg_stack_inputs *inputs) {
    wg_t5_block *block = ((wg_t5_stack *)stack)->blocks[index];
    wg_module *module = &block->module;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *y = wg_rms_norm_forward(block->attention_norm, x);
    y = wg_multi_head_attention_forward(block->attention, y, &inputs->self);
    x = wg_add(x, wg_dropout(module, y, inputs->dropout));
    if (block->memory_attention) {
        y = wg_rms_norm_forward(block->memory_norm, x);
        y = wg_multi_head_attention_forward(block->memory_attention, y, &inputs->memory);
        x = wg_add(x, wg_dropout(module, y, inputs->dropout));
    }
    y = wg_rms_norm_forward(block->net_norm, x);
    y = block->net ? wg_feed_forward_forward(block->net, y)
                   : wg_gated_feed_forward_forward(block->gated_net, y);
    return wg_scope_end(&scope, wg_add(x, wg_dropout(module, y, inputs->dropout)));
}

static wg_tensor *stack_forward(wg_t5_stack *stack, wg_tensor *embedded,
                                const wg_stack_inputs *inputs) {
    wg_module *module = &stack->module;
    wg_tensor *x = wg_stack_forward(module, stack->count, block_forward, stack,
                                    wg_dropout(module, embedded, inputs->dropout), inputs);
    return wg_dropout(module, wg_rms_norm_forward(stack->norm, x), inputs->dropout);
}

static wg_tensor *encode(wg_module *module, wg_tensor *ids, wg_tensor *keep) {
    wg_t5 *model = (wg_t5 *)module;
    if (wg__first_position("t5", &(wg_model_inputs){.ids = ids}, INT64_MAX) < 0)
        return NULL;
    const int64_t length = wg_tensor_size(ids, 1);
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_stack_inputs stack_inputs = {
        .self.mask = wg_padding_mask(keep),
        .self.bias = wg__relative_position_forward(model->encoder->positions, 0, length, length),
        .dropout = model->config.dropout_rate,
    };
    wg_tensor *embedded = wg_embedding_forward(model->words, ids);
    return wg_scope_end(&scope, stack_forward(model->encoder, embedded, &stack_inputs));
}

static wg_tensor *forward(wg_module *module, const wg_model_inputs *inputs) {
    wg_t5 *model = (wg_t5 *)module;
    const int64_t first = wg__first_position("t5", inputs, INT64_MAX);
    if (first < 0 || wg__check_memory_states("t5", inputs) < 0)
        return NULL;
    const int64_t count = wg_tensor_size(inputs->ids, 1);
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_stack_inputs stack_inputs = {
        .self.mask = wg_padding_mask(inputs->keep),
        .self.bias =
            wg__relative_position_forward(model->decoder->positions, first, count, first + count),
        .memory = {.memory = inputs->memory, .mask = wg_padding_mask(inputs->memory_keep)},
        .self_caches = inputs->caches,
        .memory_caches = inputs->memory_caches,
        .dropout = model->config.dropout_rate,
    };
    wg_tensor *embedded = wg_embedding_forward(model->words, inputs->ids);
    return wg_scope_end(&scope, stack_forward(model->decoder, embedded, &stack_inputs));
}

/* The word table makes logits of the hidden states times 1/sqrt(C). */
static wg_model_head head_of(wg_module *module, wg_tensor *hidden) {
    const wg_t5 *model = (wg_t5 *)module;
    if (model->head)
        return (wg_model_head){.linear = model->head, .hidden = hidden};
    const double scale = 1 / sqrt((double)model->config.d_model);
    return (wg_model_head){.table = model->words, .hidden = wg_mul_scalar(hidden, scale)};
}

/* Training: Adafactor with steps relative to the weights, as in section 3.1.2. The paper's rate,
 * the inverse square root of the step from 1e-2 on, is for runs of 2^19 steps; a cosine schedule
 * suits short runs. */
const wg_model_type wg_t5_type = {
    .name = "t5",
    .model_type = "t5",
    .title = "T5 (Raffel et al. 2020)",
    .shape = WG_ENCODER_DECODER,
    .settings = {WHERE, sizeof(wg_t5_config), sizeof rows / sizeof rows[0], rows},
    .ignored = WG__KEYS("bos_token_id", "classifier_dropout", "dense_act_fn", "is_gated_act",
                        "n_positions", "output_past", "task_specific_params"),
    .presets = presets,
    .bench_preset = "t5-small",
    .training = "{\"tokenizer\": \"bpe\", \"optimizer\": \"adafactor\", \"lr\": 0.02, "
                "\"schedule\": \"cosine\", \"final\": 0.1}",
    .smallest = "{\"vocab_size\": 9, \"d_model\": 4, \"d_kv\": 3, \"d_ff\": 5, "
                "\"num_layers\": 1, \"num_heads\": 2, \"relative_attention_num_buckets\": 4, "
                "\"relative_attention_max_distance\": 8, "
                "\"feed_forward_proj\": \"gated-gelu\", \"tie_word_embeddings\": false}",
    .objectives = "span-corruption",
    .read_more = read_more,
    .fit = fit_config,
    .sizes = sizes_of,
    .config = wg__root_config,
    .names = {.architecture = "T5ForConditionalGeneration",
              .marker = ".SelfAttention.",
              .ignored = {".EncDecAttention.relative_attention_bias.weight"},
              .copies = {{"coder.embed_tokens.weight", "shared.weight"},
                         {"lm_head.weight", "shared.weight"}},
              .adapted = {"q", "v"}},
    .create = wg__t5_new,
    .encode = encode,
    .forward = forward,
    .head = head_of,
};
