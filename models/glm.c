/* GLM   (Du et al. 2022, "GLM: General Language Model Pretraining with Autoregressive Blank
 * Infilling").
 *
 * Letters: B sequences, T positions, C = hidden_size, V = vocab_size, N = num_layers. */
#include "models/glm.h"

#include "models/load.h"
#include "nn/module.h"
#include "nn/stack.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "nn/internal.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Construction ---- */

static wg_initializer weight_init(const wg_glm_config *config) {
    return (wg_initializer){WG_INIT_NORMAL, config->initializer_range};
}

/* What adds onto the residual stream begins smaller the more layers add to it, as in Megatron-LM,
 * whose order of layer normalisation and residual connections GLM has taken over (section 2.2). */
static wg_initializer residual_init(const wg_glm_config *config) {
    return (wg_initializer){WG_INIT_NORMAL,
                            wg__residual_scale(config->initializer_range, 2 * config->num_layers)};
}

static wg_layer_norm *norm(wg_module *parent, const char *name, const wg_glm_config *config) {
    const wg_layer_norm_options options = {.eps = config->layernorm_epsilon};
    return wg_layer_norm_new(parent, name, config->hidden_size, &options);
}

static wg_glm_layer *layer_new(wg_module *parent, int64_t index, const wg_glm_config *config) {
    char name[48];
    snprintf(name, sizeof name, "transformer.layers.%" PRId64, index);
    wg_glm_layer *layer = wg_module_new(parent, name, sizeof *layer);
    if (!layer)
        return NULL;
    wg_module *module = &layer->module;
    const int64_t width = config->hidden_size;
    const wg_multi_head_attention_options attention = {
        .dropout = config->attention_dropout_prob,
        .joint = true,
        .init = weight_init(config),
        .output_init = residual_init(config),
        .joint_name = "query_key_value",
        .output_name = "dense",
    };
    const wg_feed_forward_options mlp = {
        .activation = WG_ACTIVATION_GELU_TANH,
        .init = weight_init(config),
        .down_init = residual_init(config),
        .up_name = "dense_h_to_4h",
        .down_name = "dense_4h_to_h",
    };
    layer->attention_norm = norm(module, "input_layernorm", config);
    layer->attention = wg_multi_head_attention_new(module, "attention", width,
                                                   config->num_attention_heads, &attention);
    layer->mlp_norm = norm(module, "post_attention_layernorm", config);
    layer->mlp = wg_feed_forward_new(module, "mlp", width, 4 * width, &mlp);
    return wg_module_finish(module);
}

static void glm_destroy(wg_module *module) {
    wg__free(((wg_glm *)module)->layers);
}

wg_glm *wg_glm_new(const wg_glm_config *config, uint64_t seed) {
    if (wg_glm_config_validate(config) < 0)
        return NULL;
    wg_glm *model = wg_module_new(NULL, "", sizeof *model);
    if (!model)
        return NULL;
    wg_module *module = &model->module;
    module->destroy = glm_destroy;
    module->generator = (wg_generator){.seed = seed};
    model->config = *config;
    model->layers = wg__calloc((size_t)config->num_layers, sizeof *model->layers);
    const wg_embedding_options embedding = {.init = weight_init(config)};
    const int64_t width = config->hidden_size, positions = config->max_sequence_length + 1;
    model->words =
        wg_embedding_new(module, "word_embeddings", config->vocab_size, width, &embedding);
    const wg_block_position_options tables = {.init = weight_init(config)};
    model->positions = wg_block_position_new(module, "transformer", positions, width, &tables);
    for (int64_t i = 0; model->layers && i < config->num_layers; i++)
        model->layers[i] = layer_new(module, i, config);
    model->norm = norm(module, "transformer.final_layernorm", config);
    return wg_module_finish(module);
}

static wg_module *make_module(const char *json, void *context) {
    (void)context;
    wg_glm_config config;
    wg_glm *model = wg_glm_config_from_json(&config, json) < 0 ? NULL : wg_glm_new(&config, 0);
    return model ? &model->module : NULL;
}

int wg_glm_load(const char *path, wg_glm **model, wg_tokenizer **tokenizer) {
    *model = (wg_glm *)wg__model_load(path, make_module, NULL, tokenizer);
    return *model ? 0 : -1;
}

/* ---- Forward ---- */

static int check_inputs(const wg_tensor *ids, const wg_glm_inputs *inputs) {
    if (!ids)
        return -1;
    if (wg_tensor_ndim(ids) != 2)
        return wg_fail(WG_ERROR_SHAPE, "glm", "ids have rank %d; wanted (B, T)",
                       wg_tensor_ndim(ids));
    if (inputs->mask && inputs->part_a)
        return wg_fail(WG_ERROR_ARGUMENT, "glm",
                       "part_a and a mask both tell what may be seen; give one of them");
    const wg_tensor *a = inputs->part_a;
    if (a && (wg_tensor_ndim(a) != 1 || wg_tensor_size(a, 0) != wg_tensor_size(ids, 0)))
        return wg_fail(WG_ERROR_SHAPE, "glm",
                       "part_a has rank %d and %lld elements; wanted (B), one for each of %lld "
                       "sequences",
                       wg_tensor_ndim(a), (long long)wg_tensor_count(a),
                       (long long)wg_tensor_size(ids, 0));
    return 0;
}

/* word + position + block position, with dropout: (B, T)   ->   (B, T, C). */
static wg_tensor *embed(wg_glm *model, wg_tensor *ids, const wg_glm_inputs *inputs, int64_t seen) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const int64_t count = wg_tensor_size(ids, 1);
    wg_tensor *positions = inputs->position_ids, *blocks = inputs->block_position_ids;
    if (!positions)
        positions = wg_arange(WG_I64, (double)seen, (double)(seen + count), 1);
    if (!blocks)
        blocks = wg_zeros(WG_I64, WG_DIMS(count));
    wg_tensor *x = wg_embedding_forward(model->words, ids);
    x = wg_block_position_forward(model->positions, x, positions, blocks);
    return wg_scope_end(&scope,
                        wg_dropout(&model->module, x, model->config.embedding_dropout_prob));
}

static wg_tensor *layer_forward(void *model, int64_t index, wg_tensor *x,
                                const wg_stack_inputs *inputs) {
    wg_glm_layer *layer = ((wg_glm *)model)->layers[index];
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *attended = wg_multi_head_attention_forward(
        layer->attention, wg_layer_norm_forward(layer->attention_norm, x), &inputs->self);
    x = wg_add(x, wg_dropout(&layer->module, attended, inputs->dropout));
    wg_tensor *fed = wg_feed_forward_forward(layer->mlp, wg_layer_norm_forward(layer->mlp_norm, x));
    return wg_scope_end(&scope, wg_add(x, wg_dropout(&layer->module, fed, inputs->dropout)));
}

wg_tensor *wg_glm_forward(wg_glm *model, wg_tensor *ids, const wg_glm_inputs *inputs) {
    static const wg_glm_inputs nothing;
    if (!inputs)
        inputs = &nothing;
    if (check_inputs(ids, inputs) < 0)
        return NULL;
    const wg_glm_config *config = &model->config;
    const int64_t seen = inputs->caches ? inputs->caches[0].length : 0;
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_stack_inputs around = {
        .self.mask = inputs->part_a ? wg_prefix_mask(inputs->part_a, seen, wg_tensor_size(ids, 1))
                                    : inputs->mask,
        .self_caches = inputs->caches,
        .dropout = config->output_dropout_prob,
    };
    wg_tensor *x = wg_stack_forward(&model->module, config->num_layers, layer_forward, model,
                                    embed(model, ids, inputs, seen), &around);
    return wg_scope_end(&scope, wg_layer_norm_forward(model->norm, x));
}

/* ---- Logits and loss ---- */

/* The hidden states at positions (N), flat; NULL: all of them. */
static wg_tensor *at_positions(wg_tensor *hidden, wg_tensor *positions) {
    return positions ? wg_index_select(wg_flatten(hidden, 0, -2), 0, positions) : hidden;
}

wg_tensor *wg_glm_logits(wg_glm *model, wg_tensor *hidden, wg_tensor *positions) {
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, wg_embedding_logits(model->words, at_positions(hidden, positions)));
}

wg_tensor *wg_glm_loss(wg_glm *model, wg_tensor *ids, const wg_glm_inputs *inputs,
                       wg_tensor *positions, wg_tensor *labels) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *hidden = at_positions(wg_glm_forward(model, ids, inputs), positions);
    return wg_scope_end(&scope,
                        wg_embedding_loss(model->words, hidden, labels, WG_IGNORE_INDEX, NULL));
}
