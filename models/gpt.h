/* GPT-2   (Radford, Wu, Child, Luan, Amodei & Sutskever 2019, "Language Models are Unsupervised
 * Multitask Learners").
 *
 *     ids -> word + position -> N x [ x + attention(norm(x)) -> x + net(norm(x)) ] -> norm
 *         -> logits
 *
 * Learned positions, layer normalization before each sublayer, a tanh GELU, logits by the word
 * table. Parameters have the names of the published PyTorch checkpoints
 * (transformer.h.0.attn.c_attn.weight ... transformer.ln_f.bias), which store weights as (I, O). */
#ifndef WG_MODELS_GPT_H
#define WG_MODELS_GPT_H

#include "../nn/feed_forward.h"
#include "../nn/norm.h"
#include "../nn/stack.h"
#include "model.h"

WG_BEGIN_DECLS

/* The members are the published JSON keys: docs/configurations.md describes them. */
typedef struct wg_gpt_config {
    int64_t vocab_size;
    int64_t n_positions; /* the longest T */
    int64_t n_embd;      /* C; n_head must divide it */
    int64_t n_layer;
    int64_t n_head;
    int64_t n_inner; /* of the feed-forward net */
    wg_activation activation_function;
    double embd_pdrop, attn_pdrop, resid_pdrop; /* dropout of embeddings, weights, sublayers */
    double layer_norm_epsilon;
    double initializer_range;
    int64_t bos_token_id, eos_token_id; /* -1: none */
} wg_gpt_config;

typedef struct wg_gpt_layer {
    wg_module module;
    wg_layer_norm *attention_norm, *net_norm;
    wg_multi_head_attention *attention;
    wg_feed_forward *net;
} wg_gpt_layer;

typedef struct wg_gpt {
    wg_module module;
    wg_gpt_config config;
    wg_embedding *words, *positions;
    wg_gpt_layer **layers; /* config.n_layer */
    wg_layer_norm *norm;
} wg_gpt;

/* Layer `index` of `layers`, an array of wg_gpt_layer: a wg_stack_layer. */
wg_tensor *wg__gpt_layer_forward(void *layers, int64_t index, wg_tensor *x,
                                 const wg_stack_inputs *inputs);

/* The model type, with the presets "gpt2-tiny" (2 layers, width 128), "gpt2-mini" (4, 256) and the
 * published "gpt2-124m" (12, 768), "gpt2-medium" (24, 1024), "gpt2-large" (36, 1280) and "gpt2-xl"
 * (48, 1600). */
WG_API extern const wg_model_type wg_gpt_type;

WG_END_DECLS

#endif
