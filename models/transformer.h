/* The Transformer   (Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser & Polosukhin 2017,
 * "Attention Is All You Need", arXiv:1706.03762).
 *
 *     source -> sqrt(C) word + position -> N x [ attention, net ] ---------> memory
 *                                                                              |
 *     target -> sqrt(C) word + position -> N x [ causal attention, attention to memory, net ]
 *                                                                              |
 *                                        logits, by the target's word table <--'
 *
 * Every sublayer stands in Add & Norm, with the norm behind it as in the paper, or before it
 * (normalize_before), when each stack ends with a norm of its own. Positions are sinusoids, sines
 * and cosines in turn.
 *
 * Parameter paths are fairseq's (encoder.layers.0.self_attn.q_proj.weight ...
 * decoder.output_projection.weight); configurations have the keys that Marian's models are
 * published with. Weights that were trained with all sines before all cosines, as both programs
 * have them, need their channels reordered. */
#ifndef WG_MODELS_TRANSFORMER_H
#define WG_MODELS_TRANSFORMER_H

#include "../nn/norm.h"
#include "../nn/linear.h"
#include "../nn/feed_forward.h"
#include "generate/beam.h"
#include "language_model.h"

WG_BEGIN_DECLS

/* ---- Configuration: the members are the published JSON keys. Begin with a preset or a JSON text.
 * ---- */

typedef struct wg_transformer_config {
    int64_t vocab_size;                    /* of the source, or of both */
    int64_t decoder_vocab_size;            /* of the target */
    bool share_encoder_decoder_embeddings; /* one word table, and so one vocabulary, for both */
    int64_t d_model;                       /* C; both numbers of heads must divide it */
    int64_t encoder_layers, decoder_layers;
    int64_t encoder_attention_heads, decoder_attention_heads;
    int64_t encoder_ffn_dim, decoder_ffn_dim;
    wg_activation activation_function;
    bool normalize_before;
    bool scale_embedding;                                  /* words are scaled by sqrt(C) */
    double dropout, attention_dropout, activation_dropout; /* of sublayers and embeddings, attention
                                                              weights, inner activations */
    double label_smoothing;                       /* a key of our own: see wg_transformer_loss */
    int64_t max_position_embeddings;              /* the longest source or target */
    int64_t pad_token_id;                         /* -1: none */
    int64_t eos_token_id, decoder_start_token_id; /* of the target */
} wg_transformer_config;

/* Fills the configuration of "transformer-tiny" (4+4 layers, width 128: Wu et al. 2021,
 * arXiv:2105.14462, for small corpora), "transformer-mini" (3+3, 256), or of the paper's
 * "transformer-base" (6+6, 512) and "transformer-big" (6+6, 1024). -1 with [ARGUMENT, listing them]
 */
WG_API int wg_transformer_config_preset(wg_transformer_config *config, const char *name);

/* The name of preset `index`, or NULL beyond the last. */
WG_API const char *wg_transformer_preset_name(int index);

/* 0 if a model can be made of it; -1 with [ARGUMENT, naming the key, its value and the rule] */
WG_API int wg_transformer_config_validate(const wg_transformer_config *config);

/* Reads a published config.json, as wg_bert_config_from_json does. -1 with [FORMAT, ARGUMENT,
 * MEMORY] */
WG_API int wg_transformer_config_from_json(wg_transformer_config *config, const char *json);

/* The configuration as JSON text; the caller frees it with wg_text_free. NULL with MEMORY. */
WG_API char *wg_transformer_config_to_json(const wg_transformer_config *config);

/* ---- The model ---- */

typedef struct wg_transformer_layer {
    wg_module module;
    wg_multi_head_attention *self_attention, *memory_attention; /* NULL in the encoder */
    wg_add_norm *self_norm, *memory_norm, *net_norm;
    wg_feed_forward *net;
} wg_transformer_layer;

typedef struct wg_transformer_stack {
    wg_embedding *words; /* that of the decoder is the encoder's where they are shared */
    int64_t layer_count;
    wg_transformer_layer **layers;
    wg_layer_norm *norm; /* with normalize_before; else NULL */
} wg_transformer_stack;

typedef struct wg_transformer {
    wg_module module;
    wg_transformer_config config;
    wg_transformer_stack encoder, decoder;
    wg_linear *output; /* its weight is that of decoder.words */
} wg_transformer;

/* Word vectors from a normal distribution with variance 1/C, other weights Xavier uniform, biases
 * 0, norms 1. A root, freed with wg_module_free(&model->module); its generator begins at `seed`.
 * NULL with [ARGUMENT, MEMORY] */
WG_API wg_transformer *wg_transformer_new(const wg_transformer_config *config, uint64_t seed);

/* source: (B, S) i64 or i32   keep: (B, S) bool, false for padding; NULL: none   ->   (B, S, C).
 * [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_transformer_encode(wg_transformer *model, wg_tensor *source, wg_tensor *keep);

/* What the decoder sees of the source. */
typedef struct wg_transformer_memory {
    wg_tensor *states;   /* (B, S, C), of wg_transformer_encode */
    wg_tensor *keep;     /* (B, S) bool, false for padding; NULL: none */
    wg_kv_cache *caches; /* of generation, one a layer, with room for S positions: filled at the
                            first call, and looked at instead of `states` afterwards; NULL: none */
} wg_transformer_memory;

/* target: (B, T) i64 or i32, each beginning with decoder_start_token_id   ->   (B, T, C).
 * `inputs` may be NULL. [scope; SHAPE, INDEX, DTYPE; ARGUMENT without states] */
WG_API wg_tensor *wg_transformer_decode(wg_transformer *model, wg_tensor *target,
                                        const wg_transformer_memory *memory,
                                        const wg_decoder_inputs *inputs);

/* (.., C)   ->   (.., V). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_transformer_logits(wg_transformer *model, wg_tensor *hidden);

/* Pairs of sentences. */
typedef struct wg_transformer_batch {
    wg_tensor *source, *source_keep; /* (B, S), as above */
    wg_tensor *target, *target_keep; /* (B, T), likewise: what is given to the decoder */
    wg_tensor *labels;               /* (B, T): what it is to say; -100 counts for nothing */
} wg_transformer_batch;

/* The logits of every label, (B, T, V). batch->labels may be NULL. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_transformer_forward(wg_transformer *model, const wg_transformer_batch *batch);

/* Cross-entropy, the mean over the labels: rank 0. In training label_smoothing of each label is
 * spread evenly over the vocabulary (section 5.4); in evaluation it is not, and exp of the loss is
 * the perplexity. Logits are never stored whole. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_transformer_loss(wg_transformer *model, const wg_transformer_batch *batch);

/* Reads the model and the tokenizer of a checkpoint. The model is a root to be freed with
 * wg_module_free(&(*model)->module). Both are NULL after an error.
 * [NOT_FOUND, IO, FORMAT; STATE for a checkpoint of something else] */
WG_API int wg_transformer_load(const char *path, wg_transformer **model, wg_tokenizer **tokenizer);

/* ---- Translation ---- */

/* Translates B sources by beam search, in evaluation mode and without recording: beam.h tells what
 * the options, NULL for their defaults, and results[0 .. B-1] are. Start and end are the
 * configuration's, whatever the options hold. A translation has up to as many tokens as its source
 * and 50 more, as in the paper, and no more than max_position_embeddings. The caller frees
 * results[i].tokens, also after a failure. Returns 0 or -1. [SHAPE, INDEX, DTYPE, ARGUMENT, MEMORY]
 */
WG_API int wg_transformer_translate(wg_transformer *model, wg_tensor *source, wg_tensor *keep,
                                    const wg_beam_options *options, wg_beam_result *results);

WG_END_DECLS

#endif
