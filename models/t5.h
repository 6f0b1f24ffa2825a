/* T5   (Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
 * Transformer", arXiv:1910.10683), 1.0 and 1.1.
 *
 *     source ids -> embed -> N x [ x + attention(norm(x)) -> x + net(norm(x)) ] -> norm -> memory
 *     target ids -> embed -> N x [ x + attention(norm(x)) -> x + attention(norm(x), memory)
 *                                  -> x + net(norm(x)) ] -> norm -> logits
 *
 * RMSNorm before each sublayer, no biases, unscaled scores. Each stack learns a bias for each
 * bucket of distances and each head: its first block owns them, and all its blocks add them to
 * their scores of self-attention. Parameters have the names of the published PyTorch checkpoints
 * (encoder.block.0.layer.0.SelfAttention.q.weight ...). */
#ifndef WG_MODELS_T5_H
#define WG_MODELS_T5_H

#include "../nn/linear.h"
#include "../nn/feed_forward.h"
#include "../nn/positions.h"
#include "../nn/norm.h"
#include "model.h"

WG_BEGIN_DECLS

/* The inner net of 1.0, and of 1.1. */
typedef enum wg_t5_feed_forward { WG_T5_RELU, WG_T5_GATED_GELU } wg_t5_feed_forward;

/* The members are the published JSON keys: docs/configurations.md describes them. */
typedef struct wg_t5_config {
    int64_t vocab_size;
    int64_t d_model; /* C */
    int64_t d_kv;    /* D, the width of a head */
    int64_t d_ff;
    int64_t num_layers; /* of the encoder */
    int64_t num_decoder_layers;
    int64_t num_heads;
    int64_t relative_attention_num_buckets;
    int64_t relative_attention_max_distance;
    double dropout_rate;
    double layer_norm_epsilon;
    double initializer_factor;
    wg_t5_feed_forward feed_forward_proj;
    bool tie_word_embeddings; /* logits by the word table, scaled by 1/sqrt(C) (1.0) */
    int64_t pad_token_id, eos_token_id, decoder_start_token_id;
} wg_t5_config;

typedef struct wg_t5_block {
    wg_module module;
    wg_rms_norm *attention_norm, *memory_norm, *net_norm; /* memory_norm: of the decoder */
    wg_multi_head_attention *attention, *memory_attention;
    wg_feed_forward *net; /* one of the two */
    wg_gated_feed_forward *gated_net;
} wg_t5_block;

typedef struct wg_t5_stack {
    wg_module module;
    int64_t count;
    wg_t5_block **blocks; /* count of them */
    wg_relative_position *positions;
    wg_rms_norm *norm;
} wg_t5_stack;

typedef struct wg_t5 {
    wg_module module;
    wg_t5_config config;
    wg_embedding *words; /* shared */
    wg_t5_stack *encoder, *decoder;
    wg_linear *head; /* lm_head; NULL where logits come by the word table */
} wg_t5;

/* The model type, with the presets "t5-tiny" (4 + 4 layers, width 256), "t5-mini" (4 + 4, 384),
 * "t5-small" (6 + 6, 512) and "t5-base" (12 + 12, 768) of 1.0, and "t5-v1_1-tiny", "t5-v1_1-mini"
 * and "t5-v1_1-small" (8 + 8, 512). */
WG_API extern const wg_model_type wg_t5_type;

WG_END_DECLS

#endif
