/* GPT-2   (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners").
 *
 * Letters: B sequences, T positions, C = n_embd, V = vocab_size. */
#include "models/gpt.h"

#include "models/decoder.h"
#include "nn/module.h"
#include "nn/stack.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "nn/internal.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Construction ---- */

static wg_initializer weight_init(const wg_gpt_config *config) {
    return (wg_initializer){WG_INIT_NORMAL, config->initializer_range};
}

/* What adds onto the residual stream begins smaller the more layers add to it (section 2.3). */
static wg_initializer residual_init(const wg_gpt_config *config) {
    return (wg_initializer){WG_INIT_NORMAL,
                            wg__residual_scale(config->initializer_range, 2 * config->n_layer)};
}

static wg_layer_norm *norm(wg_module *parent, const char *name, const wg_gpt_config *config) {
    const wg_layer_norm_options options = {.eps = config->layer_norm_epsilon};
    return wg_layer_norm_new(parent, name, config->n_embd, &options);
}

static wg_gpt_layer *layer_new(wg_module *parent, int64_t index, const wg_gpt_config *config) {
    char name[40];
    snprintf(name, sizeof name, "transformer.h.%" PRId64, index);
    wg_gpt_layer *layer = wg_module_new(parent, name, sizeof *layer);
    if (!layer)
        return NULL;
    wg_module *module = &layer->module;
    const wg_multi_head_attention_options attention = {
        .dropout = config->attn_pdrop,
        .causal = true,
        .joint = true,
        .transposed = true,
        .init = weight_init(config),
        .output_init = residual_init(config),
        .joint_name = "c_attn",
        .output_name = "c_proj",
    };
    const wg_feed_forward_options net = {
        .activation = config->activation_function,
        .transposed = true,
        .init = weight_init(config),
        .down_init = residual_init(config),
        .up_name = "c_fc",
        .down_name = "c_proj",
    };
    layer->attention_norm = norm(module, "ln_1", config);
    layer->attention =
        wg_multi_head_attention_new(module, "attn", config->n_embd, config->n_head, &attention);
    layer->net_norm = norm(module, "ln_2", config);
    layer->net = wg_feed_forward_new(module, "mlp", config->n_embd, config->n_inner, &net);
    return wg_module_finish(module);
}

static void gpt_destroy(wg_module *module) {
    wg__free(((wg_gpt *)module)->layers);
}

wg_gpt *wg_gpt_new(const wg_gpt_config *config, uint64_t seed) {
    if (wg_gpt_config_validate(config) < 0)
        return NULL;
    wg_gpt *model = wg_module_new(NULL, "", sizeof *model);
    if (!model)
        return NULL;
    wg_module *module = &model->module;
    module->destroy = gpt_destroy;
    module->generator = (wg_generator){.seed = seed};
    model->config = *config;
    model->layers = wg__calloc((size_t)config->n_layer, sizeof *model->layers);
    const wg_embedding_options embedding = {.init = weight_init(config)};
    model->words =
        wg_embedding_new(module, "transformer.wte", config->vocab_size, config->n_embd, &embedding);
    model->positions = wg_embedding_new(module, "transformer.wpe", config->n_positions,
                                        config->n_embd, &embedding);
    for (int64_t i = 0; model->layers && i < config->n_layer; i++)
        model->layers[i] = layer_new(module, i, config);
    model->norm = norm(module, "transformer.ln_f", config);
    return wg_module_finish(module);
}

/* ---- Forward ---- */

static wg_tensor *layer_forward(void *model, int64_t index, wg_tensor *x,
                                const wg_stack_inputs *inputs) {
    wg_gpt_layer *layer = ((wg_gpt *)model)->layers[index];
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *attended = wg_multi_head_attention_forward(
        layer->attention, wg_layer_norm_forward(layer->attention_norm, x), &inputs->self);
    x = wg_add(x, wg_dropout(&layer->module, attended, inputs->dropout));
    wg_tensor *fed = wg_feed_forward_forward(layer->net, wg_layer_norm_forward(layer->net_norm, x));
    return wg_scope_end(&scope, wg_add(x, wg_dropout(&layer->module, fed, inputs->dropout)));
}

/* word + position, with dropout: (B, T)   ->   (B, T, C). */
static wg_tensor *embed(wg_gpt *model, wg_tensor *ids, const wg__decoder_positions *at) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *positions =
        at->ids ? at->ids
                : wg_arange(WG_I64, (double)at->first, (double)(at->first + at->count), 1);
    wg_tensor *x = wg_add(wg_embedding_forward(model->words, ids),
                          wg_embedding_forward(model->positions, positions));
    return wg_scope_end(&scope, wg_dropout(&model->module, x, model->config.embd_pdrop));
}

wg_tensor *wg_gpt_forward(wg_gpt *model, wg_tensor *ids, const wg_decoder_inputs *inputs) {
    const wg_gpt_config *config = &model->config;
    wg__decoder_positions positions;
    if (wg__decoder_begin("gpt", ids, inputs, config->n_positions, &positions) < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_stack_inputs around = {
        .self.mask = inputs ? wg_padding_mask(inputs->keep) : NULL,
        .self_caches = inputs ? inputs->caches : NULL,
        .dropout = config->resid_pdrop,
    };
    wg_tensor *x = wg_stack_forward(&model->module, config->n_layer, layer_forward, model,
                                    embed(model, ids, &positions), &around);
    return wg_scope_end(&scope, wg_layer_norm_forward(model->norm, x));
}

wg_tensor *wg_gpt_logits(wg_gpt *model, wg_tensor *hidden) {
    return wg_embedding_logits(model->words, hidden);
}

/* ---- As a language model ---- */

static wg_tensor *forward(void *model, wg_tensor *ids, const wg_decoder_inputs *inputs) {
    return wg_gpt_forward(model, ids, inputs);
}

static wg_tensor *logits(void *model, wg_tensor *hidden) {
    return wg_gpt_logits(model, hidden);
}

static wg_tensor *loss(void *model, wg_tensor *hidden, wg_tensor *labels, int64_t ignore_index) {
    return wg_embedding_loss(((wg_gpt *)model)->words, hidden, labels, ignore_index, NULL);
}

static char *config_json(const void *model) {
    return wg_gpt_config_to_json(&((const wg_gpt *)model)->config);
}

wg_language_model wg_gpt_language_model(wg_gpt *model) {
    return (wg_language_model){
        .model = model,
        .module = &model->module,
        .type = "gpt2",
        .vocab_size = model->config.vocab_size,
        .max_positions = model->config.n_positions,
        .layers = model->config.n_layer,
        .forward = forward,
        .logits = logits,
        .loss = loss,
        .config = config_json,
    };
}
