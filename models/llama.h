/* LLaMA   (Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models",
 * arXiv:2302.13971; with grouped-query attention, Touvron et al. 2023, arXiv:2307.09288).
 *
 *     ids -> embed -> N x [ x + attention(norm(x)) -> x + SwiGLU(norm(x)) ] -> norm -> logits
 *
 * RMSNorm before each sublayer, rotary positions in every attention, no biases. Parameter paths are
 * those of the published PyTorch checkpoints (model.layers.0.self_attn.q_proj.weight ...
 * lm_head.weight), and pairs of the rotation are halves, as there. */
#ifndef WG_MODELS_LLAMA_H
#define WG_MODELS_LLAMA_H

#include "../nn/linear.h"
#include "../nn/feed_forward.h"
#include "../nn/norm.h"
#include "../nn/positions.h"
#include "language_model.h"

WG_BEGIN_DECLS

/* ---- Configuration: the members are the published JSON keys. Begin with a preset or a JSON text.
 * ---- */

typedef struct wg_llama_config {
    int64_t vocab_size;
    int64_t hidden_size; /* C; num_attention_heads must divide it into even parts */
    int64_t intermediate_size;
    int64_t num_hidden_layers;
    int64_t num_attention_heads;
    int64_t num_key_value_heads; /* a divisor of num_attention_heads */
    wg_gate hidden_act;
    int64_t max_position_embeddings;
    double rms_norm_eps;
    double rope_theta;
    wg_rotary_options rope_scaling; /* its base stays 0 */
    double initializer_range;
    bool tie_word_embeddings;
    int64_t bos_token_id, eos_token_id; /* -1: none */
} wg_llama_config;

/* Fills the configuration of "llama-260k" (5 layers, width 64), "llama-15m" (6, 288), "llama-42m"
 * (8, 512), "llama-110m" (12, 768), or "llama-7b" (32, 4096). -1 with [ARGUMENT, listing them] */
WG_API int wg_llama_config_preset(wg_llama_config *config, const char *name);

/* The name of preset `index`, or NULL beyond the last. */
WG_API const char *wg_llama_preset_name(int index);

/* 0 if a model can be made of it; -1 with [ARGUMENT, naming the key, its value and the rule] */
WG_API int wg_llama_config_validate(const wg_llama_config *config);

/* Reads a published config.json, as wg_bert_config_from_json does. -1 with [FORMAT, ARGUMENT,
 * MEMORY]
 */
WG_API int wg_llama_config_from_json(wg_llama_config *config, const char *json);

/* The configuration as JSON text; the caller frees it with wg_text_free. NULL with MEMORY. */
WG_API char *wg_llama_config_to_json(const wg_llama_config *config);

/* ---- The model ---- */

typedef struct wg_llama_layer {
    wg_module module;
    wg_rms_norm *input_norm, *attention_output_norm;
    wg_multi_head_attention *attention;
    wg_gated_feed_forward *feed_forward;
} wg_llama_layer;

typedef struct wg_llama {
    wg_module module;
    wg_llama_config config;
    wg_embedding *embedding;
    wg_llama_layer **layers; /* config.num_hidden_layers */
    wg_rms_norm *norm;
    wg_linear *head;      /* lm_head; its weight may be tied to the embedding */
    wg_tensor *cos, *sin; /* of all positions, (max_position_embeddings, D/2); kept, not saved */
} wg_llama;

/* Weights from a normal distribution with standard deviation initializer_range, those of the
 * projections back onto the residual stream by 1/sqrt(2 N) less (Radford et al. 2019); norms 1. A
 * root, freed with wg_module_free(&model->module); its generator begins at `seed`. NULL with
 * [ARGUMENT, MEMORY] */
WG_API wg_llama *wg_llama_new(const wg_llama_config *config, uint64_t seed);

/* (B, T) i64 or i32   ->   (B, T, C), normalised. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_llama_forward(wg_llama *model, wg_tensor *ids,
                                   const wg_decoder_inputs *inputs);

/* (.., C)   ->   (.., V). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_llama_logits(wg_llama *model, wg_tensor *hidden);

/* The model as the loops of decoding and training see it; borrows it. */
WG_API wg_language_model wg_llama_language_model(wg_llama *model);

WG_END_DECLS

#endif
