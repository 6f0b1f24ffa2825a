/* GLM   (Du, Qian, Liu, Ding, Qiu, Yang & Tang 2022, "GLM: General Language Model Pretraining with
 * Autoregressive Blank Infilling", arXiv:2103.10360).
 *
 *     ids -> word + position + block position -> N x [ x + attention(norm(x)) -> x + mlp(norm(x)) ]
 *         -> norm -> logits
 *
 * A sequence is Part A, a text with masks in it, and then Part B, the spans that the masks stand
 * for (data/batches/glm_batch.h). Every position sees all of Part A; one of Part B sees what is
 * before it in Part B, too. Layer normalisation comes before each sublayer, a tanh GELU between the
 * linear layers, logits from the word table. Parameter paths are those of the published code
 * (word_embeddings.weight, transformer.layers.0.attention.query_key_value.weight ...
 * transformer.final_layernorm.bias). */
#ifndef WG_MODELS_GLM_H
#define WG_MODELS_GLM_H

#include "../data/tokenizer/tokenizer.h"
#include "../nn/attention.h"
#include "../nn/positions.h"
#include "../nn/linear.h"
#include "../nn/feed_forward.h"
#include "../nn/norm.h"

WG_BEGIN_DECLS

/* ---- Configuration: the members are the published JSON keys. Begin with a preset or a JSON text.
 * ---- */

typedef struct wg_glm_config {
    int64_t vocab_size;          /* with the tokens of wg_glm_tokens */
    int64_t hidden_size;         /* C; num_attention_heads must divide it */
    int64_t num_layers;          /* N */
    int64_t num_attention_heads; /* H */
    int64_t max_sequence_length; /* position ids of either kind go from 0 to this, inclusive */
    double embedding_dropout_prob, attention_dropout_prob, output_dropout_prob;
    double layernorm_epsilon;
    double initializer_range;
} wg_glm_config;

/* Fills the configuration of "glm-tiny" (2 layers, width 128), "glm-small" (6, 384), "glm-base"
 * (12, 768) or "glm-large" (24, 1024), the last two as published. -1 with [ARGUMENT, listing them]
 */
WG_API int wg_glm_config_preset(wg_glm_config *config, const char *name);

/* The name of preset `index`, or NULL beyond the last. */
WG_API const char *wg_glm_preset_name(int index);

/* 0 if a model can be made of it; -1 with [ARGUMENT, naming the key, its value and the rule] */
WG_API int wg_glm_config_validate(const wg_glm_config *config);

/* Reads a published config.json, as wg_bert_config_from_json does. -1 with [FORMAT, ARGUMENT,
 * MEMORY]
 */
WG_API int wg_glm_config_from_json(wg_glm_config *config, const char *json);

/* The configuration as JSON text; the caller frees it with wg_text_free. NULL with MEMORY. */
WG_API char *wg_glm_config_to_json(const wg_glm_config *config);

/* ---- The model ---- */

typedef struct wg_glm_layer {
    wg_module module;
    wg_layer_norm *attention_norm, *mlp_norm;
    wg_multi_head_attention *attention;
    wg_feed_forward *mlp;
} wg_glm_layer;

typedef struct wg_glm {
    wg_module module;
    wg_glm_config config;
    wg_embedding *words;
    wg_block_position *positions;
    wg_glm_layer **layers; /* config.num_layers */
    wg_layer_norm *norm;
} wg_glm;

/* Weights from a normal distribution with standard deviation initializer_range, those of the
 * projections back onto the residual stream by 1/sqrt(2 N) less; biases 0, norms 1. A root, freed
 * with wg_module_free(&model->module); its generator begins at `seed`. NULL with [ARGUMENT, MEMORY]
 */
WG_API wg_glm *wg_glm_new(const wg_glm_config *config, uint64_t seed);

/* Reads the model and the tokenizer of a checkpoint; the model is freed as one of wg_glm_new. Both
 * are NULL after an error. [NOT_FOUND, IO, FORMAT, also for a checkpoint of something else] */
WG_API int wg_glm_load(const char *path, wg_glm **model, wg_tokenizer **tokenizer);

/* What the model is given beside ids (B, T); all may be NULL. */
typedef struct wg_glm_inputs {
    wg_tensor *position_ids;       /* (B, T) i64: Part B has those of its masks; NULL: 0, 1, ... */
    wg_tensor *block_position_ids; /* (B, T) i64: 0 in Part A, 1, 2, ... in a span; NULL: all 0 */
    wg_tensor *part_a;   /* (B) i64: how many tokens of the sequence are Part A; NULL: all of it */
    wg_tensor *mask;     /* instead of part_a: bool, broadcastable to (B, H, T, Tk), true where a
                          * position may see another, such as a row of padding in front wants it */
    wg_kv_cache *caches; /* of generation, one a layer: the ids follow what these have seen, which
                          * they all see. Tk = T and what was seen */
} wg_glm_inputs;

/* (B, T) i64 or i32   ->   (B, T, C), normalised. `inputs` may be NULL.
 * [scope; SHAPE; ARGUMENT for part_a beside a mask; INDEX, DTYPE] */
WG_API wg_tensor *wg_glm_forward(wg_glm *model, wg_tensor *ids, const wg_glm_inputs *inputs);

/* Logits.   hidden: (B, T, C)   positions: (N) i64 or i32, flat, b T + t   ->   (N, V)
 * NULL: everywhere   ->   (B, T, V). [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_glm_logits(wg_glm *model, wg_tensor *hidden, wg_tensor *positions);

/* The objective, equation 2 of the paper: the mean over the N positions (flat, of Part B) of -log
 * p(label), rank 0. Labels of -100 count for nothing. Logits are never stored
 * whole. [scope; SHAPE, INDEX, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_glm_loss(wg_glm *model, wg_tensor *ids, const wg_glm_inputs *inputs,
                              wg_tensor *positions, wg_tensor *labels);

WG_END_DECLS

#endif
