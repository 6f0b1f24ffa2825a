/* LLaMA   (Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models",
 * arXiv:2302.13971; with grouped-query attention, Touvron et al. 2023, arXiv:2307.09288).
 *
 *     ids -> embed -> N x [ x + attention(norm(x)) -> x + SwiGLU(norm(x)) ] -> norm -> logits
 *
 * RMSNorm before each sublayer, rotary positions in every attention, no biases. Parameters
 * have the names of the published PyTorch checkpoints (model.layers.0.self_attn.q_proj.weight ...
 * lm_head.weight), and the rotation pairs the two halves of a head, as there. The option
 * bigram_vocab_size adds a table of hashed bigrams (model.embed_bigrams.weight) to the embedding.
 */
#ifndef WG_MODELS_LLAMA_H
#define WG_MODELS_LLAMA_H

#include "../nn/linear.h"
#include "../nn/feed_forward.h"
#include "../nn/norm.h"
#include "../nn/positions.h"
#include "model.h"

WG_BEGIN_DECLS

/* The members are the published JSON keys: docs/configurations.md describes them. */
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
    int64_t bigram_vocab_size; /* rows of a table of hashed bigrams (../nn/linear.h); 0: none */
} wg_llama_config;

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
    wg_embedding *bigrams;   /* NULL: none */
    wg_llama_layer **layers; /* config.num_hidden_layers */
    wg_rms_norm *norm;
    wg_linear *head;      /* lm_head; its weight may be tied to the embedding */
    wg_tensor *cos, *sin; /* of all positions, (max_position_embeddings, D/2); kept, not saved */
} wg_llama;

/* The model type. Presets: "llama-3m" (6 layers, width 192) and "llama-3m-bigrams" (the same with
 * 65536 rows of bigrams) for small corpora; "llama-260k" (5, 64), "llama-15m" (6, 288), "llama-42m"
 * (8, 512) and "llama-110m" (12, 768) of llama2.c's stories; "llama-7b" (32, 4096). */
WG_API extern const wg_model_type wg_llama_type;

WG_END_DECLS

#endif
