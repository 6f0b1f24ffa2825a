/* GLM   (Du, Qian, Liu, Ding, Qiu, Yang & Tang 2022, "GLM: General Language Model Pretraining with
 * Autoregressive Blank Infilling", arXiv:2103.10360).
 *
 *     ids -> word + position + block position -> N x [ x + attention(norm(x)) -> x + mlp(norm(x)) ]
 *         -> norm -> logits
 *
 * A sequence is Part A, a text with masks in it, and then Part B, the masked spans
 * (data/tokenizer/kind.h). Every position sees all of Part A; a position of Part B also sees the
 * positions before it in Part B. Layer normalization comes before each sublayer, a tanh GELU
 * between the linear layers, logits from the word table. Parameters have the names of the published
 * code (word_embeddings.weight, transformer.layers.0.attention.query_key_value.weight ...
 * transformer.final_layernorm.bias). */
#ifndef WG_MODELS_GLM_H
#define WG_MODELS_GLM_H

#include "../nn/positions.h"
#include "gpt.h"

WG_BEGIN_DECLS

/* The members are the published JSON keys: docs/configurations.md describes them. */
typedef struct wg_glm_config {
    int64_t vocab_size;          /* with the tokens of wg_blank_tokens */
    int64_t hidden_size;         /* C; num_attention_heads must divide it */
    int64_t num_layers;          /* N */
    int64_t num_attention_heads; /* H */
    int64_t max_sequence_length; /* position ids of either kind go from 0 to this, inclusive */
    double embedding_dropout_prob, attention_dropout_prob, output_dropout_prob;
    double layernorm_epsilon;
    double initializer_range;
} wg_glm_config;

typedef struct wg_glm {
    wg_module module;
    wg_glm_config config;
    wg_embedding *words;
    wg_block_position *positions;
    wg_gpt_layer **layers; /* config.num_layers */
    wg_layer_norm *norm;
} wg_glm;

/* The model type, with the presets "glm-tiny" (2 layers, width 128), "glm-small" (6, 384) and the
 * published "glm-base" (12, 768) and "glm-large" (24, 1024). */
WG_API extern const wg_model_type wg_glm_type;

WG_END_DECLS

#endif
