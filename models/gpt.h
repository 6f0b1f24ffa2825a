/* GPT-2   (Radford, Wu, Child, Luan, Amodei & Sutskever 2019, "Language Models are Unsupervised
 * Multitask Learners").
 *
 *     ids -> word + position -> N x [ x + attention(norm(x)) -> x + net(norm(x)) ] -> norm ->
 * logits
 *
 * Learned positions, layer normalisation before each sublayer, a tanh GELU, logits by the word
 * table. Parameter paths are those of the published PyTorch checkpoints
 * (transformer.h.0.attn.c_attn.weight
 * ... transformer.ln_f.bias), whose weights stand as (I, O). */
#ifndef WG_MODELS_GPT_H
#define WG_MODELS_GPT_H

#include "../nn/linear.h"
#include "../nn/feed_forward.h"
#include "../nn/norm.h"
#include "language_model.h"

WG_BEGIN_DECLS

/* ---- Configuration: the members are the published JSON keys. Begin with a preset or a JSON text.
 * ---- */

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

/* Fills the configuration of "gpt2-tiny" (2 layers, width 128), "gpt2-mini" (4, 256), "gpt2-124m"
 * (12, 768), "gpt2-medium" (24, 1024), "gpt2-large" (36, 1280) or "gpt2-xl" (48, 1600).
 * -1 with [ARGUMENT, listing them] */
WG_API int wg_gpt_config_preset(wg_gpt_config *config, const char *name);

/* The name of preset `index`, or NULL beyond the last. */
WG_API const char *wg_gpt_preset_name(int index);

/* 0 if a model can be made of it; -1 with [ARGUMENT, naming the key, its value and the rule] */
WG_API int wg_gpt_config_validate(const wg_gpt_config *config);

/* Reads a published config.json, as wg_bert_config_from_json does. -1 with [FORMAT, ARGUMENT,
 * MEMORY]
 */
WG_API int wg_gpt_config_from_json(wg_gpt_config *config, const char *json);

/* The configuration as JSON text; the caller frees it with wg_text_free. NULL with MEMORY. */
WG_API char *wg_gpt_config_to_json(const wg_gpt_config *config);

/* ---- The model ---- */

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

/* Weights from a normal distribution with standard deviation initializer_range, those of the
 * projections back onto the residual stream by 1/sqrt(2 N) less; biases 0, norms 1. A root, freed
 * with wg_module_free(&model->module); its generator begins at `seed`. NULL with [ARGUMENT, MEMORY]
 */
WG_API wg_gpt *wg_gpt_new(const wg_gpt_config *config, uint64_t seed);

/* (B, T) i64 or i32   ->   (B, T, C), normalised. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_gpt_forward(wg_gpt *model, wg_tensor *ids, const wg_decoder_inputs *inputs);

/* (.., C)   ->   (.., V). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_gpt_logits(wg_gpt *model, wg_tensor *hidden);

/* The model as the loops of decoding and training see it; borrows it. */
WG_API wg_language_model wg_gpt_language_model(wg_gpt *model);

WG_END_DECLS

#endif
