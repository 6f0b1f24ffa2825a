/* LLaMA   (Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models",
 * arXiv:2302.13971).
 *
 * Letters: B sequences, T positions, C = hidden_size, D = C / num_attention_heads, V = vocab_size.
 */
#include "models/llama.h"

#include "models/decoder.h"
#include "nn/stack.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "nn/internal.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Construction ---- */

static wg_initializer weight_init(const wg_llama_config *config) {
    return (wg_initializer){WG_INIT_NORMAL, config->initializer_range};
}

/* What adds onto the residual stream begins smaller the more layers add to it. */
static wg_initializer residual_init(const wg_llama_config *config) {
    return (wg_initializer){WG_INIT_NORMAL, wg__residual_scale(config->initializer_range,
                                                               2 * config->num_hidden_layers)};
}

static wg_rms_norm *norm(wg_module *parent, const char *name, const wg_llama_config *config) {
    const wg_rms_norm_options options = {.eps = config->rms_norm_eps};
    return wg_rms_norm_new(parent, name, config->hidden_size, &options);
}

static wg_llama_layer *layer_new(wg_module *parent, int64_t index, const wg_llama_config *config) {
    char name[40];
    snprintf(name, sizeof name, "model.layers.%" PRId64, index);
    wg_llama_layer *layer = wg_module_new(parent, name, sizeof *layer);
    if (!layer)
        return NULL;
    wg_module *module = &layer->module;
    const wg_multi_head_attention_options attention = {
        .key_value_heads = config->num_key_value_heads,
        .causal = true,
        .no_bias = true,
        .pairing = WG_ROTARY_HALVES,
        .init = weight_init(config),
        .output_init = residual_init(config),
        .query_name = "q_proj",
        .key_name = "k_proj",
        .value_name = "v_proj",
        .output_name = "o_proj",
    };
    const wg_gated_feed_forward_options feed_forward = {
        .kind = config->hidden_act,
        .init = weight_init(config),
        .down_init = residual_init(config),
    };
    layer->attention = wg_multi_head_attention_new(module, "self_attn", config->hidden_size,
                                                   config->num_attention_heads, &attention);
    layer->feed_forward = wg_gated_feed_forward_new(module, "mlp", config->hidden_size,
                                                    config->intermediate_size, &feed_forward);
    layer->input_norm = norm(module, "input_layernorm", config);
    layer->attention_output_norm = norm(module, "post_attention_layernorm", config);
    return wg_module_finish(module);
}

static void llama_destroy(wg_module *module) {
    wg_llama *model = (wg_llama *)module;
    wg__free(model->layers);
    wg_release(model->cos);
    wg_release(model->sin);
}

static int add_tables(wg_llama *model) {
    const wg_llama_config *config = &model->config;
    wg_rotary_options options = config->rope_scaling;
    options.base = config->rope_theta;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *cos, *sin;
    int status = wg_rotary_tables(config->hidden_size / config->num_attention_heads, 0,
                                  config->max_position_embeddings, &options, &cos, &sin);
    if (status == 0) {
        model->cos = wg_keep(cos);
        model->sin = wg_keep(sin);
    }
    wg_scope_end(&scope, NULL);
    return status;
}

wg_llama *wg_llama_new(const wg_llama_config *config, uint64_t seed) {
    if (wg_llama_config_validate(config) < 0)
        return NULL;
    wg_llama *model = wg_module_new(NULL, "", sizeof *model);
    if (!model)
        return NULL;
    wg_module *module = &model->module;
    module->destroy = llama_destroy;
    module->generator = (wg_generator){.seed = seed};
    model->config = *config;
    model->layers = wg__calloc((size_t)config->num_hidden_layers, sizeof *model->layers);
    model->embedding =
        wg_embedding_new(module, "model.embed_tokens", config->vocab_size, config->hidden_size,
                         &(wg_embedding_options){.init = weight_init(config)});
    for (int64_t i = 0; model->layers && i < config->num_hidden_layers; i++)
        model->layers[i] = layer_new(module, i, config);
    model->norm = norm(module, "model.norm", config);
    const wg_linear_options head = {.no_bias = true,
                                    .init = weight_init(config),
                                    .tied_weight = config->tie_word_embeddings && model->embedding
                                                       ? model->embedding->weight
                                                       : NULL};
    model->head = wg_linear_new(module, "lm_head", config->hidden_size, config->vocab_size, &head);
    add_tables(model);
    return wg_module_finish(module);
}

/* ---- Forward ---- */

static wg_tensor *layer_forward(void *model, int64_t index, wg_tensor *x,
                                const wg_stack_inputs *inputs) {
    wg_llama_layer *layer = ((wg_llama *)model)->layers[index];
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *attended = wg_multi_head_attention_forward(
        layer->attention, wg_rms_norm_forward(layer->input_norm, x), &inputs->self);
    x = wg_add(x, attended);
    wg_tensor *fed = wg_gated_feed_forward_forward(
        layer->feed_forward, wg_rms_norm_forward(layer->attention_output_norm, x));
    return wg_scope_end(&scope, wg_add(x, fed));
}

/* The rows of a table at the positions: (T, D/2), or (B, 1, T, D/2). */
static wg_tensor *at_positions(wg_tensor *table, const wg__decoder_positions *positions,
                               wg_dtype dtype) {
    wg_tensor *rows = positions->ids ? wg_unsqueeze(wg_embedding_op(table, positions->ids, -1), 1)
                                     : wg_slice(table, 0, positions->first,
                                                positions->first + positions->count, 1);
    return wg_cast(rows, dtype);
}

wg_tensor *wg_llama_forward(wg_llama *model, wg_tensor *ids, const wg_decoder_inputs *inputs) {
    const wg_llama_config *config = &model->config;
    wg__decoder_positions positions;
    if (wg__decoder_begin("llama", ids, inputs, config->max_position_embeddings, &positions) < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_dtype dtype = wg_tensor_dtype(model->embedding->weight);
    const wg_stack_inputs around = {
        .self = {.mask = inputs ? wg_padding_mask(inputs->keep) : NULL,
                 .cos = at_positions(model->cos, &positions, dtype),
                 .sin = at_positions(model->sin, &positions, dtype)},
        .self_caches = inputs ? inputs->caches : NULL,
    };
    wg_tensor *x = wg_stack_forward(&model->module, config->num_hidden_layers, layer_forward, model,
                                    wg_embedding_forward(model->embedding, ids), &around);
    return wg_scope_end(&scope, wg_rms_norm_forward(model->norm, x));
}

wg_tensor *wg_llama_logits(wg_llama *model, wg_tensor *hidden) {
    return wg_linear_forward(model->head, hidden);
}

/* ---- As a language model ---- */

static wg_tensor *forward(void *model, wg_tensor *ids, const wg_decoder_inputs *inputs) {
    return wg_llama_forward(model, ids, inputs);
}

static wg_tensor *logits(void *model, wg_tensor *hidden) {
    return wg_llama_logits(model, hidden);
}

static wg_tensor *loss(void *model, wg_tensor *hidden, wg_tensor *labels, int64_t ignore_index) {
    return wg_linear_loss(((wg_llama *)model)->head, hidden, labels, ignore_index, NULL);
}

static char *config_json(const void *model) {
    return wg_llama_config_to_json(&((const wg_llama *)model)->config);
}

wg_language_model wg_llama_language_model(wg_llama *model) {
    return (wg_language_model){
        .model = model,
        .module = &model->module,
        .type = "llama",
        .vocab_size = model->config.vocab_size,
        .max_positions = model->config.max_position_embeddings,
        .layers = model->config.num_hidden_layers,
        .forward = forward,
        .logits = logits,
        .loss = loss,
        .config = config_json,
    };
}
