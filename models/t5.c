/* T5   (Raffel et al. 2020, arXiv:1910.10683).
 *
 * Letters: B sequences, Ts positions of the source, Tt of the target, C = d_model, D = d_kv,
 * H = num_heads, V = vocab_size. */
#include "models/t5.h"

#include "nn/module.h"
#include "nn/stack.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- Construction: standard deviations are those of the published code ---- */

static wg_initializer normal(const wg_t5_config *config, double fan) {
    return (wg_initializer){WG_INIT_NORMAL, config->initializer_factor / sqrt(fan)};
}

static wg_rms_norm *norm(wg_module *parent, const char *name, const wg_t5_config *config) {
    const wg_rms_norm_options options = {.eps = config->layer_norm_epsilon};
    return wg_rms_norm_new(parent, name, config->d_model, &options);
}

/* Queries are drawn as if for scaled scores; keys, values and the output with 1/sqrt(fan in). */
static wg_multi_head_attention *attention(wg_module *parent, const char *name, bool causal,
                                          const wg_t5_config *config) {
    const wg_multi_head_attention_options options = {
        .head_width = config->d_kv,
        .scale = 1,
        .dropout = config->dropout_rate,
        .causal = causal,
        .no_bias = true,
        .init = normal(config, (double)config->d_model),
        .output_init = normal(config, (double)(config->num_heads * config->d_kv)),
        .query_name = "q",
        .key_name = "k",
        .value_name = "v",
        .output_name = "o",
    };
    wg_multi_head_attention *made =
        wg_multi_head_attention_new(parent, name, config->d_model, config->num_heads, &options);
    if (made && made->query) {
        const wg_initializer query = normal(config, (double)(config->d_model * config->d_kv));
        wg_initialize(made->query->weight, &query, wg_module_generator(parent));
    }
    return made;
}

static void add_net(wg_t5_block *block, const char *name, const wg_t5_config *config) {
    const wg_initializer in = normal(config, (double)config->d_model);
    const wg_initializer out = normal(config, (double)config->d_ff);
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
    if (config->gated)
        block->gated_net =
            wg_gated_feed_forward_new(&block->module, name, config->d_model, config->d_ff, &gated);
    else
        block->net =
            wg_feed_forward_new(&block->module, name, config->d_model, config->d_ff, &plain);
}

/* The first block of a stack owns the positions. */
static wg_t5_block *block_new(wg_t5_stack *stack, int64_t index, bool decodes,
                              const wg_t5_config *config) {
    char name[40];
    snprintf(name, sizeof name, "block.%" PRId64, index);
    wg_t5_block *block = wg_module_new(&stack->module, name, sizeof *block);
    if (!block)
        return NULL;
    wg_module *module = &block->module;
    block->attention = attention(module, "layer.0.SelfAttention", decodes, config);
    const wg_relative_position_options positions = {
        .buckets = config->relative_attention_num_buckets,
        .max_distance = config->relative_attention_max_distance,
        .bidirectional = !decodes,
        .init = normal(config, (double)config->d_model),
    };
    if (index == 0 && block->attention)
        stack->positions = wg_relative_position_new(
            &block->attention->module, "relative_attention_bias", config->num_heads, &positions);
    block->attention_norm = norm(module, "layer.0.layer_norm", config);
    if (decodes) {
        block->memory_attention = attention(module, "layer.1.EncDecAttention", false, config);
        block->memory_norm = norm(module, "layer.1.layer_norm", config);
    }
    add_net(block, decodes ? "layer.2.DenseReluDense" : "layer.1.DenseReluDense", config);
    block->net_norm = norm(module, decodes ? "layer.2.layer_norm" : "layer.1.layer_norm", config);
    return wg_module_finish(module);
}

static void stack_destroy(wg_module *module) {
    wg__free(((wg_t5_stack *)module)->blocks);
}

static wg_t5_stack *stack_new(wg_module *parent, const char *name, int64_t count, bool decodes,
                              const wg_t5_config *config) {
    wg_t5_stack *stack = wg_module_new(parent, name, sizeof *stack);
    if (!stack)
        return NULL;
    stack->module.destroy = stack_destroy;
    stack->count = count;
    stack->blocks = wg__calloc((size_t)count, sizeof *stack->blocks);
    for (int64_t i = 0; stack->blocks && i < count; i++)
        stack->blocks[i] = block_new(stack, i, decodes, config);
    stack->norm = norm(&stack->module, "final_layer_norm", config);
    return wg_module_finish(&stack->module);
}

wg_t5 *wg_t5_new(const wg_t5_config *config, uint64_t seed) {
    if (wg_t5_config_validate(config) < 0)
        return NULL;
    wg_t5 *model = wg_module_new(NULL, "", sizeof *model);
    if (!model)
        return NULL;
    wg_module *module = &model->module;
    module->generator = (wg_generator){.seed = seed};
    model->config = *config;
    const wg_initializer word = {WG_INIT_NORMAL, config->initializer_factor};
    model->words = wg_embedding_new(module, "shared", config->vocab_size, config->d_model,
                                    &(wg_embedding_options){.init = word});
    model->encoder = stack_new(module, "encoder", config->num_layers, false, config);
    model->decoder = stack_new(module, "decoder", config->num_decoder_layers, true, config);
    const wg_linear_options head = {.no_bias = true, .init = word};
    if (!config->tie_word_embeddings)
        model->head = wg_linear_new(module, "lm_head", config->d_model, config->vocab_size, &head);
    return wg_module_finish(module);
}

/* ---- Forward ---- */

static wg_tensor *feed(wg_t5_block *block, wg_tensor *x) {
    return block->net ? wg_feed_forward_forward(block->net, x)
                      : wg_gated_feed_forward_forward(block->gated_net, x);
}

static wg_tensor *add(wg_t5_block *block, wg_tensor *x, wg_tensor *y,
                      const wg_stack_inputs *inputs) {
    return wg_add(x, wg_dropout(&block->module, y, inputs->dropout));
}

static wg_tensor *block_forward(void *stack, int64_t index, wg_tensor *x,
                                const wg_stack_inputs *inputs) {
    wg_t5_block *block = ((wg_t5_stack *)stack)->blocks[index];
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *y = wg_rms_norm_forward(block->attention_norm, x);
    y = wg_multi_head_attention_forward(block->attention, y, &inputs->self);
    x = add(block, x, y, inputs);
    if (block->memory_attention) {
        y = wg_rms_norm_forward(block->memory_norm, x);
        y = wg_multi_head_attention_forward(block->memory_attention, y, &inputs->memory);
        x = add(block, x, y, inputs);
    }
    wg_tensor *fed = feed(block, wg_rms_norm_forward(block->net_norm, x));
    return wg_scope_end(&scope, add(block, x, fed, inputs));
}

static wg_tensor *stack_forward(wg_t5_stack *stack, wg_tensor *embedded,
                                const wg_stack_inputs *inputs) {
    wg_module *module = &stack->module;
    wg_tensor *x = wg_stack_forward(module, stack->count, block_forward, stack,
                                    wg_dropout(module, embedded, inputs->dropout), inputs);
    return wg_dropout(module, wg_rms_norm_forward(stack->norm, x), inputs->dropout);
}

static int check_ids(const wg_tensor *ids, const char *what) {
    if (!ids)
        return -1;
    if (wg_tensor_ndim(ids) == 2)
        return 0;
    return wg_fail(WG_ERROR_SHAPE, "t5", "%s have rank %d; wanted (B, T)", what,
                   wg_tensor_ndim(ids));
}

wg_tensor *wg_t5_encode(wg_t5 *model, wg_tensor *ids, wg_tensor *keep) {
    if (check_ids(ids, "source ids") < 0)
        return NULL;
    const int64_t length = wg_tensor_size(ids, 1);
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_stack_inputs inputs = {
        .self.mask = wg_padding_mask(keep),
        .self.bias = wg_relative_position_forward(model->encoder->positions, 0, length, length),
        .dropout = model->config.dropout_rate,
    };
    wg_tensor *embedded = wg_embedding_forward(model->words, ids);
    return wg_scope_end(&scope, stack_forward(model->encoder, embedded, &inputs));
}

wg_tensor *wg_t5_decode(wg_t5 *model, wg_tensor *ids, wg_tensor *memory, wg_tensor *keep,
                        const wg_t5_caches *caches) {
    if (check_ids(ids, "target ids") < 0 || !memory)
        return NULL;
    const int64_t first = caches ? caches->own[0].length : 0, count = wg_tensor_size(ids, 1);
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_stack_inputs inputs = {
        .self.bias =
            wg_relative_position_forward(model->decoder->positions, first, count, first + count),
        .memory = {.memory = memory, .mask = wg_padding_mask(keep)},
        .self_caches = caches ? caches->own : NULL,
        .memory_caches = caches ? caches->memory : NULL,
        .dropout = model->config.dropout_rate,
    };
    wg_tensor *embedded = wg_embedding_forward(model->words, ids);
    return wg_scope_end(&scope, stack_forward(model->decoder, embedded, &inputs));
}

/* What the word table makes logits of. */
static wg_tensor *scaled(const wg_t5 *model, wg_tensor *hidden) {
    return wg_mul_scalar(hidden, 1 / sqrt((double)model->config.d_model));
}

wg_tensor *wg_t5_logits(wg_t5 *model, wg_tensor *hidden) {
    if (model->head)
        return wg_linear_forward(model->head, hidden);
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, wg_embedding_logits(model->words, scaled(model, hidden)));
}

/* The labels one place later, after the token that begins; ignored ones read as padding. */
static wg_tensor *shift_right(const wg_t5 *model, wg_tensor *labels) {
    const double padding = (double)model->config.pad_token_id;
    wg_tensor *ignored = wg_eq(labels, wg_scalar(wg_tensor_dtype(labels), WG_IGNORE_INDEX));
    wg_tensor *read = wg_slice(wg_masked_fill(labels, ignored, padding), 1, 0, -1, 1);
    wg_tensor *start = wg_full(wg_tensor_dtype(labels), WG_DIMS(wg_tensor_size(labels, 0), 1),
                               (double)model->config.decoder_start_token_id);
    return wg_cat(2, (wg_tensor *[]){start, read}, 1);
}

/* What the decoder makes of the source and of labels (B, Tt): (B, Tt, C). */
static wg_tensor *run(wg_t5 *model, wg_tensor *ids, wg_tensor *keep, wg_tensor *labels) {
    if (check_ids(labels, "labels") < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *memory = wg_t5_encode(model, ids, keep);
    return wg_scope_end(&scope,
                        wg_t5_decode(model, shift_right(model, labels), memory, keep, NULL));
}

wg_tensor *wg_t5_forward(wg_t5 *model, wg_tensor *ids, wg_tensor *keep, wg_tensor *labels) {
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, wg_t5_logits(model, run(model, ids, keep, labels)));
}

wg_tensor *wg_t5_loss(wg_t5 *model, wg_tensor *ids, wg_tensor *keep, wg_tensor *labels) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *hidden = run(model, ids, keep, labels);
    wg_tensor *loss =
        model->head
            ? wg_linear_loss(model->head, hidden, labels, WG_IGNORE_INDEX, NULL)
            : wg_embedding_loss(model->words, scaled(model, hidden), labels, WG_IGNORE_INDEX, NULL);
    return wg_scope_end(&scope, loss);
}
