/* The Transformer   (Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser & Polosukhin 2017,
 * "Attention Is All You Need", arXiv:1706.03762).
 *
 *     source -> sqrt(C) word + position -> N x [ attention, net ] ---------> memory
 *                                                                              |
 *     target -> sqrt(C) word + position -> N x [ causal attention, attention to memory, net ]
 *                                                                              |
 *                                        logits, by the target's word table <--'
 *
 * Every sublayer is wrapped in Add & Norm: the norm comes after the sublayer as in the paper, or
 * before it (normalize_before), and then each stack ends with a norm. Positions are sinusoids,
 * sines and cosines alternating, or learned vectors (static_position_embeddings false), which did
 * as well in the paper. Sinusoids have elements of size 0.7, words of size 1. Learned positions
 * begin with size 1/sqrt(C), and on Multi30k the loss then falls faster (docs/training.md).
 *
 * Parameter paths are fairseq's (encoder.layers.0.self_attn.q_proj.weight ...
 * decoder.output_projection.weight); configurations have the keys that Marian's models are
 * published with. Weights that were trained with all sines before all cosines, as both programs
 * have them, need their channels reordered. Learned positions are encoder.embed_positions.weight
 * and decoder.embed_positions.weight, without the rows for padding that fairseq has in front. */
#ifndef WG_MODELS_TRANSFORMER_H
#define WG_MODELS_TRANSFORMER_H

#include "../nn/norm.h"
#include "../nn/linear.h"
#include "../nn/feed_forward.h"
#include "model.h"

WG_BEGIN_DECLS

/* The members are the published JSON keys: docs/configurations.md describes them. */
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
    bool static_position_embeddings;                       /* sinusoids; else learned vectors */
    double dropout, attention_dropout, activation_dropout; /* of sublayers and embeddings, attention
                                                              weights, inner activations */
    double label_smoothing;                       /* a key of our own: see wg_transformer_type */
    int64_t max_position_embeddings;              /* the longest source or target */
    int64_t pad_token_id;                         /* -1: none */
    int64_t eos_token_id, decoder_start_token_id; /* of the target */
} wg_transformer_config;

typedef struct wg_transformer_layer {
    wg_module module;
    wg_multi_head_attention *self_attention, *memory_attention; /* NULL in the encoder */
    wg_add_norm *self_norm, *memory_norm, *net_norm;
    wg_feed_forward *net;
} wg_transformer_layer;

typedef struct wg_transformer_stack {
    wg_embedding *words;     /* the decoder's is the encoder's where they are shared */
    wg_embedding *positions; /* (max_position_embeddings, C) learned; NULL: sinusoids */
    int64_t layer_count;
    wg_transformer_layer **layers;
    wg_layer_norm *norm; /* with normalize_before; else NULL */
} wg_transformer_stack;

typedef struct wg_transformer {
    wg_module module;
    wg_transformer_config config;
    wg_transformer_stack encoder, decoder;
    wg_linear *output; /* its weight is tied to decoder.words */
} wg_transformer;

/* The model type, with the presets "transformer-tiny" (4 + 4 layers, width 128: Wu et al. 2021,
 * arXiv:2105.14462, for small corpora), "transformer-mini" (3 + 3, 256, norms before the sublayers,
 * learned positions, trained by Muon), and the paper's "transformer-base" (6 + 6, 512) and
 * "transformer-big" (6 + 6, 1024).
 *
 * In training, wg_model_loss spreads label_smoothing of each label evenly over the vocabulary
 * (section 5.4); in evaluation it does not, and exp of the loss is the perplexity. */
WG_API extern const wg_model_type wg_transformer_type;

WG_END_DECLS

#endif
