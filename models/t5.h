/* T5   (Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
 * Transformer", arXiv:1910.10683), 1.0 and 1.1.
 *
 *     source ids -> embed -> N x [ x + attention(norm(x)) -> x + net(norm(x)) ] -> norm -> memory
 *     target ids -> embed -> N x [ x + attention(norm(x)) -> x + attention(norm(x), memory)
 *                                  -> x + net(norm(x)) ] -> norm -> logits
 *
 * RMSNorm before each sublayer, no biases, scores that are not scaled, to which the first block of
 * each stack adds a learned number for the distance, which all its blocks share. Parameter paths
 * are those of the published PyTorch checkpoints (encoder.block.0.layer.0.SelfAttention.q.weight
 * ...). */
#ifndef WG_MODELS_T5_H
#define WG_MODELS_T5_H

#include "../data/batches/t5_batch.h"
#include "../nn/attention.h"
#include "../nn/linear.h"
#include "../nn/feed_forward.h"
#include "../nn/positions.h"
#include "../nn/norm.h"
#include "generate/beam.h"

WG_BEGIN_DECLS

/* ---- Configuration: the members are the published JSON keys. Begin with a preset or a JSON text.
 * ---- */

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
    bool gated;               /* feed_forward_proj: "gated-gelu" (1.1), or "relu" (1.0) */
    bool tie_word_embeddings; /* logits by the word table, scaled by 1/sqrt(C) (1.0) */
    int64_t pad_token_id, eos_token_id, decoder_start_token_id;
} wg_t5_config;

/* Fills the configuration of "t5-tiny" (4 + 4 layers, width 256), "t5-mini" (4 + 4, 384),
 * "t5-small" (6 + 6, 512) or "t5-base" (12 + 12, 768) of 1.0, or of "t5-v1_1-tiny", "t5-v1_1-mini"
 * or "t5-v1_1-small" (8 + 8, 512). -1 with [ARGUMENT, listing them] */
WG_API int wg_t5_config_preset(wg_t5_config *config, const char *name);

/* The name of preset `index`, or NULL beyond the last. */
WG_API const char *wg_t5_preset_name(int index);

/* 0 if a model can be made of it; -1 with [ARGUMENT, naming the key, its value and the rule] */
WG_API int wg_t5_config_validate(const wg_t5_config *config);

/* Reads a published config.json, as wg_bert_config_from_json does. -1 with [FORMAT, ARGUMENT,
 * MEMORY]
 */
WG_API int wg_t5_config_from_json(wg_t5_config *config, const char *json);

/* The configuration as JSON text; the caller frees it with wg_text_free. NULL with MEMORY. */
WG_API char *wg_t5_config_to_json(const wg_t5_config *config);

/* ---- The model ---- */

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

/* Weights as the published code draws them (Mesh TensorFlow's). A root, freed with
 * wg_module_free(&model->module); its generator begins at `seed`. NULL with [ARGUMENT, MEMORY] */
WG_API wg_t5 *wg_t5_new(const wg_t5_config *config, uint64_t seed);

/* ids: (B, Ts) i64 or i32   keep: (B, Ts) bool, false for padding, or NULL   ->   the memory,
 * (B, Ts, C). [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_t5_encode(wg_t5 *model, wg_tensor *ids, wg_tensor *keep);

/* Caches of generation: two a decoder layer, that of its own positions and that of the memory. */
typedef struct wg_t5_caches {
    wg_kv_cache *own, *memory;
} wg_t5_caches;

/* ids: (B, Tt), beginning with decoder_start_token_id   memory: (B, Ts, C) with its `keep`   ->
 * (B, Tt, C). `caches` may be NULL. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_t5_decode(wg_t5 *model, wg_tensor *ids, wg_tensor *memory, wg_tensor *keep,
                               const wg_t5_caches *caches);

/* (.., C)   ->   (.., V). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_t5_logits(wg_t5 *model, wg_tensor *hidden);

/* The logits of the labels (B, Tt), given the source: the decoder reads them one place later, after
 * decoder_start_token_id, and those of -100 as padding   ->   (B, Tt, V). [scope; SHAPE, INDEX,
 * DTYPE] */
WG_API wg_tensor *wg_t5_forward(wg_t5 *model, wg_tensor *ids, wg_tensor *keep, wg_tensor *labels);

/* Mean cross-entropy of the labels, -100 for those that count for nothing. Rank 0. Logits are never
 * stored whole. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_t5_loss(wg_t5 *model, wg_tensor *ids, wg_tensor *keep, wg_tensor *labels);

/* ---- Filling blanks ---- */

/* Writes what belongs into the blanks of B texts, ids (B, S) i64 or i32 with their `keep` (B, S),
 * or NULL, in which sentinels stand (data/batches/t5_batch.h), by beam search in evaluation mode
 * and without recording. A result is a target as in training: <extra_id_0>, one token of the text
 * or more, <extra_id_1>.. up to one sentinel more than the text has; nothing else can be said, and
 * results[i].ended is false for one that max_tokens cut. options: NULL for greedy search; start and
 * end are the configuration's, whatever they hold. The caller frees results[i].tokens, also after a
 * failure. Returns 0 or -1. [SHAPE, INDEX, DTYPE; ARGUMENT for a text without a blank or with more
 * of them than sentinels but the last; MEMORY] */
WG_API int wg_t5_fill(wg_t5 *model, const wg_t5_tokens *tokens, wg_tensor *ids, wg_tensor *keep,
                      int64_t max_tokens, const wg_beam_options *options, wg_beam_result *results);

/* Reads the model and the tokenizer of a checkpoint. The model is a root to be freed with
 * wg_module_free(&(*model)->module). Both are NULL after an error.
 * [NOT_FOUND, IO, FORMAT; STATE for a checkpoint of something else] */
WG_API int wg_t5_load(const char *path, wg_t5 **model, wg_tokenizer **tokenizer);

WG_END_DECLS

#endif
