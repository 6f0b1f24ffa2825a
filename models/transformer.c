/* The Transformer   (Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762).
 *
 * Letters: B pairs, S source and T target positions, C = d_model, V = decoder_vocab_size. */
#include "models/transformer.h"

#include "models/decoder.h"
#include "nn/module.h"
#include "nn/positions.h"
#include "nn/stack.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- Construction ---- */

/* What a stack's layers are made from. */
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

static wg_transformer_layer *layer_new(wg_module *parent, const char *name,
                                       const layer_kind *kind) {
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

static void add_layers(wg_module *module, const char *name, int64_t count, const layer_kind *kind,
                       wg_transformer_stack *stack) {
    char path[64];
    stack->layers = wg__calloc((size_t)count, sizeof *stack->layers);
    stack->layer_count = stack->layers ? count : 0;
    for (int64_t i = 0; i < stack->layer_count; i++) {
        snprintf(path, sizeof path, "%s.layers.%" PRId64, name, i);
        stack->layers[i] = layer_new(module, path, kind);
    }
    if (!kind->config->normalize_before)
        return;
    snprintf(path, sizeof path, "%s.layer_norm", name);
    stack->norm = wg_layer_norm_new(module, path, kind->config->d_model, NULL);
}

/* Of variance 1/C, so that words times sqrt(C), and logits of normalised vectors, begin at 1. */
static wg_embedding *words_new(wg_module *module, const char *name, int64_t count, int64_t width) {
    const wg_embedding_options options = {.init = {WG_INIT_NORMAL, 1 / sqrt((double)width)}};
    return wg_embedding_new(module, name, count, width, &options);
}

static void add_encoder(wg_transformer *model) {
    const wg_transformer_config *config = &model->config;
    const layer_kind kind = {config, config->encoder_attention_heads, config->encoder_ffn_dim,
                             false};
    model->encoder.words =
        words_new(&model->module, "encoder.embed_tokens", config->vocab_size, config->d_model);
    add_layers(&model->module, "encoder", config->encoder_layers, &kind, &model->encoder);
}

/* The second name of the word table that encoder and decoder share. */
static wg_embedding *share_words(wg_module *module, wg_embedding *words) {
    wg_module *second = wg_module_new(module, "decoder.embed_tokens", sizeof *second);
    if (!second)
        return NULL;
    wg_module_tie(second, "weight", words->weight);
    return words;
}

static void add_decoder(wg_transformer *model) {
    const wg_transformer_config *config = &model->config;
    const layer_kind kind = {config, config->decoder_attention_heads, config->decoder_ffn_dim,
                             true};
    wg_module *module = &model->module;
    model->decoder.words = config->share_encoder_decoder_embeddings
                               ? share_words(module, model->encoder.words)
                               : words_new(module, "decoder.embed_tokens",
                                           config->decoder_vocab_size, config->d_model);
    add_layers(module, "decoder", config->decoder_layers, &kind, &model->decoder);
    if (!model->decoder.words)
        return;
    const wg_linear_options tied = {.no_bias = true, .tied_weight = model->decoder.words->weight};
    model->output = wg_linear_new(module, "decoder.output_projection", config->d_model,
                                  config->decoder_vocab_size, &tied);
}

static void transformer_destroy(wg_module *module) {
    wg_transformer *model = (wg_transformer *)module;
    wg__free(model->encoder.layers);
    wg__free(model->decoder.layers);
}

wg_transformer *wg_transformer_new(const wg_transformer_config *config, uint64_t seed) {
    if (wg_transformer_config_validate(config) < 0)
        return NULL;
    wg_transformer *model = wg_module_new(NULL, "", sizeof *model);
    if (!model)
        return NULL;
    model->module.destroy = transformer_destroy;
    model->module.generator = (wg_generator){.seed = seed};
    model->config = *config;
    add_encoder(model);
    add_decoder(model);
    return wg_module_finish(&model->module);
}

/* ---- Layers ---- */

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
static wg_tensor *embed(wg_transformer *model, wg_embedding *words, wg_tensor *ids,
                        const wg__decoder_positions *at) {
    const wg_transformer_config *config = &model->config;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x = wg_embedding_forward(words, ids);
    if (config->scale_embedding)
        x = wg_mul_scalar(x, sqrt((double)config->d_model));
    const wg_dtype dtype = wg_tensor_dtype(words->weight);
    wg_tensor *positions =
        at->ids ? wg_embedding_op(wg_sinusoidal_table(dtype, config->d_model, 0,
                                                      config->max_position_embeddings, NULL),
                                  at->ids, -1)
                : wg_sinusoidal_table(dtype, config->d_model, at->first, at->count, NULL);
    x = wg_add(x, positions);
    return wg_scope_end(&scope, wg_dropout(&model->module, x, config->dropout));
}

static wg_tensor *stack_forward(wg_transformer *model, wg_transformer_stack *stack, wg_tensor *ids,
                                const wg__decoder_positions *at, const wg_stack_inputs *around) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x = wg_stack_forward(&model->module, stack->layer_count, layer_forward, stack,
                                    embed(model, stack->words, ids, at), around);
    return wg_scope_end(&scope, stack->norm ? wg_layer_norm_forward(stack->norm, x) : x);
}

/* ---- Forward ---- */

wg_tensor *wg_transformer_encode(wg_transformer *model, wg_tensor *source, wg_tensor *keep) {
    wg__decoder_positions positions;
    if (wg__decoder_begin("transformer", source, NULL, model->config.max_position_embeddings,
                          &positions) < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_stack_inputs around = {.self.mask = wg_padding_mask(keep)};
    return wg_scope_end(&scope, stack_forward(model, &model->encoder, source, &positions, &around));
}

wg_tensor *wg_transformer_decode(wg_transformer *model, wg_tensor *target,
                                 const wg_transformer_memory *memory,
                                 const wg_decoder_inputs *inputs) {
    wg__decoder_positions positions;
    if (wg__decoder_begin("transformer", target, inputs, model->config.max_position_embeddings,
                          &positions) < 0)
        return NULL;
    if (!memory->states) {
        wg_fail(WG_ERROR_ARGUMENT, "transformer",
                "there is no memory; wanted the states that wg_transformer_encode gives");
        return NULL;
    }
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_stack_inputs around = {
        .self.mask = wg_padding_mask(inputs ? inputs->keep : NULL),
        .memory = {.memory = memory->states, .mask = wg_padding_mask(memory->keep)},
        .self_caches = inputs ? inputs->caches : NULL,
        .memory_caches = memory->caches,
    };
    return wg_scope_end(&scope, stack_forward(model, &model->decoder, target, &positions, &around));
}

wg_tensor *wg_transformer_logits(wg_transformer *model, wg_tensor *hidden) {
    return wg_linear_forward(model->output, hidden);
}

/* What the decoder makes of a batch: (B, T, C). */
static wg_tensor *run(wg_transformer *model, const wg_transformer_batch *batch) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_transformer_memory memory = {
        .states = wg_transformer_encode(model, batch->source, batch->source_keep),
        .keep = batch->source_keep,
    };
    const wg_decoder_inputs inputs = {.keep = batch->target_keep};
    return wg_scope_end(&scope, wg_transformer_decode(model, batch->target, &memory, &inputs));
}

wg_tensor *wg_transformer_forward(wg_transformer *model, const wg_transformer_batch *batch) {
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, wg_transformer_logits(model, run(model, batch)));
}

wg_tensor *wg_transformer_loss(wg_transformer *model, const wg_transformer_batch *batch) {
    const bool training = wg_module_is_training(&model->module);
    const wg_cross_entropy_options options = {.label_smoothing =
                                                  training ? model->config.label_smoothing : 0};
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *hidden = run(model, batch);
    return wg_scope_end(
        &scope, wg_linear_loss(model->output, hidden, batch->labels, WG_IGNORE_INDEX, &options));
}
