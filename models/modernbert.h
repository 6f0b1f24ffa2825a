/* ModernBERT   (Warner et al. 2024, "Smarter, Better, Faster, Longer", arXiv:2412.13663).
 *
 *     ids (B, T)
 *        | word embeddings, LayerNorm, dropout
 *        | N x [ x + attention(norm(x)), x + GeGLU(norm(x)) ]     the first layer has no first norm
 *        | LayerNorm
 *     hidden (B, T, C) ----> every position: dense, GELU, LayerNorm, word table: logits (N, V)
 *        | [CLS], or the mean, then the same dense, GELU, LayerNorm
 *     pooled (B, C) -------> classifier
 *
 * Rotary positions in every attention, and no biases but the decoder's. Every third layer attends
 * to all positions. Local layers attend up to a distance of local_attention / 2. Global and local
 * layers have different rotary bases:
 *
 *     layer        0       1      2      3       4      5      6     ...
 *     attention  global  local  local  global  local  local  global
 *
 * Parameters have the names of the published PyTorch checkpoints (model.layers.0.attn.Wqkv.weight
 * ... decoder.bias), and the rotation pairs the two halves of a head. The option bigram_vocab_size
 * adds a table of hashed bigrams (model.embeddings.bigram_embeddings.weight) to the word
 * embeddings. */
#ifndef WG_MODELS_MODERNBERT_H
#define WG_MODELS_MODERNBERT_H

#include "../nn/feed_forward.h"
#include "../nn/linear.h"
#include "../nn/norm.h"
#include "model.h"

WG_BEGIN_DECLS

typedef enum wg_pooling {
    WG_POOLING_CLS, /* the first position */
    WG_POOLING_MEAN /* the mean of all positions but padding */
} wg_pooling;

/* The members are the published JSON keys: docs/configurations.md describes them. */
typedef struct wg_modernbert_config {
    int64_t vocab_size;
    int64_t hidden_size;       /* C; num_attention_heads must divide it into even parts */
    int64_t intermediate_size; /* of the gated feed-forward net */
    int64_t num_hidden_layers;
    int64_t num_attention_heads;
    wg_gate hidden_activation;
    int64_t max_position_embeddings; /* the longest T */
    double initializer_range;
    double norm_eps;
    bool norm_bias;
    double global_rope_theta, local_rope_theta;
    int64_t local_attention; /* positions that a local layer sees, half on each side */
    int64_t global_attn_every_n_layers;
    bool attention_bias, mlp_bias, decoder_bias, classifier_bias;
    double attention_dropout, embedding_dropout, mlp_dropout, classifier_dropout;
    wg_activation classifier_activation; /* of the head */
    wg_pooling classifier_pooling;
    int64_t pad_token_id;                                           /* -1: none, as below */
    int64_t bos_token_id, eos_token_id, cls_token_id, sep_token_id; /* in no formula */
    int64_t bigram_vocab_size; /* rows of a table of hashed bigrams (../nn/linear.h); 0: none */
} wg_modernbert_config;

/* The type of wg_modernbert_for_masked_lm. Presets: "modernbert-3m" (6 layers, width 192) and
 * "modernbert-3m-bigrams" (the same with 65536 rows of bigrams) for small corpora,
 * "modernbert-mini" (6, 256), "modernbert-small" (12, 384) and the published "modernbert-base" (22,
 * 768). */
WG_API extern const wg_model_type wg_modernbert_type;

/* ---- The encoder, and the head that all tasks share ---- */

typedef struct wg_modernbert_layer {
    wg_module module;
    wg_layer_norm *attention_norm; /* NULL in layer 0, whose input is normalized */
    wg_multi_head_attention *attention;
    wg_layer_norm *feed_forward_norm;
    wg_gated_feed_forward *feed_forward;
    double dropout; /* of attention's output */
    bool local;
} wg_modernbert_layer;

typedef struct wg_modernbert {
    wg_module module;
    wg_modernbert_config config;
    wg_embedding *embedding;
    wg_embedding *bigrams; /* NULL: none */
    wg_layer_norm *embedding_norm;
    wg_modernbert_layer **layers; /* config.num_hidden_layers */
    wg_layer_norm *final_norm;
    wg_linear *head; /* head.dense */
    wg_layer_norm *head_norm;
    wg_tensor *cos[2], *sin[2]; /* of global and of local layers, (max_position_embeddings, D/2);
                                 * kept, not saved */
} wg_modernbert;

/* A wg_modernbert from a wg_modernbert_config: the encoder with its head, whatever `pooler` says.
 * Weights begin as in the published code: normal with standard deviation initializer_range,
 * truncated at two standard deviations; in the head and in projections onto the residual stream
 * initializer_range / sqrt(2 N); norms 1, biases 0, the padding token's vector 0. `parent` owns it;
 * NULL makes it a root. The name "" gives the published paths. NULL with [ARGUMENT, MEMORY] */
void *wg__modernbert_new(wg_module *parent, const char *name, const void *config, bool pooler);

/* The hidden states, (B, T, C), of inputs->ids or embeddings, with keep, position_ids, causal and
 * caches. The distance that a local layer sees counts tokens, whatever position_ids say.
 * [scope; SHAPE, also for T beyond max_position_embeddings; DTYPE, INDEX] */
wg_tensor *wg__modernbert_forward(wg_module *model, const wg_model_inputs *inputs);

/* LayerNorm(act(W x)): (.., C)   ->   (.., C). [scope; SHAPE, DTYPE] */
wg_tensor *wg__modernbert_head(wg_module *model, wg_tensor *x);

/* The head of [CLS], or of the mean of the positions that `keep` (B, T) has (NULL: all):
 * (B, T, C)   ->   (B, C). [scope; SHAPE, DTYPE] */
wg_tensor *wg__modernbert_pool(wg_module *model, wg_tensor *hidden, wg_tensor *keep);

/* ---- The masked language model ---- */

typedef struct wg_modernbert_for_masked_lm {
    wg_module module;
    wg_modernbert *encoder;
    wg_linear *decoder; /* weight tied to the word table */
} wg_modernbert_for_masked_lm;

WG_END_DECLS

#endif
