/* BERT: pre-training of deep bidirectional transformers   (Devlin et al. 2019).
 *
 *     tokens, segments (B, T)
 *        | word + position + segment embeddings, LayerNorm, dropout
 *        | N x [ self-attention, Add & Norm, feed-forward, Add & Norm ]      (post-norm)
 *     sequence (B, T, C) ----> masked language model: logits (N, V), the decoder is the word table
 *        | first position, dense, tanh
 *     pooled (B, C) ---------> next sentence: logits (B, 2), class 0: "B follows A"
 *
 * Parameters have the names of the published PyTorch checkpoints
 * (bert.encoder.layer.0.attention.self.query.weight ... cls.seq_relationship.bias). */
#ifndef WG_MODELS_BERT_H
#define WG_MODELS_BERT_H

#include "../nn/norm.h"
#include "../nn/linear.h"
#include "../nn/feed_forward.h"
#include "model.h"

WG_BEGIN_DECLS

/* The members are the published JSON keys: docs/configurations.md describes them. */
typedef struct wg_bert_config {
    int64_t vocab_size;
    int64_t hidden_size; /* C; num_attention_heads must divide it */
    int64_t num_hidden_layers;
    int64_t num_attention_heads;
    int64_t intermediate_size; /* of the feed-forward net */
    wg_activation hidden_act;
    double hidden_dropout_prob;
    double attention_probs_dropout_prob;
    int64_t max_position_embeddings; /* the longest T */
    int64_t type_vocab_size;         /* segments */
    double initializer_range;
    double layer_norm_eps;
    int64_t pad_token_id;
} wg_bert_config;

/* The type of wg_bert_for_pretraining. Presets: "bert-tiny" (2 layers, width 128), "bert-mini" (4,
 * 256), "bert-small" (4, 512), "bert-base" (12, 768); all with the 30522 uncased tokens. */
WG_API extern const wg_model_type wg_bert_type;

typedef struct wg_bert_layer {
    wg_module module;
    wg_multi_head_attention *attention;
    wg_add_norm *attention_norm;
    wg_feed_forward *feed_forward;
    wg_add_norm *output_norm;
} wg_bert_layer;

typedef struct wg_bert {
    wg_module module;
    wg_bert_config config;
    int64_t first_position;
    wg_embedding *word_embeddings, *position_embeddings, *token_type_embeddings;
    wg_layer_norm *embedding_norm;
    wg_bert_layer **layers; /* config.num_hidden_layers */
    wg_linear *pooler;      /* NULL without one */
} wg_bert;

typedef struct wg_bert_options {
    bool no_pooler;         /* of models that use the sequence output alone */
    int64_t first_position; /* the row of position 0 in the position table; above 0 in RoBERTa */
} wg_bert_options;

/* The encoder, with a pooler unless no_pooler. Weights begin as in the paper's code: normal with
 * standard deviation initializer_range, truncated at two standard deviations; biases 0, norms 1,
 * the padding token's vector 0. `parent` owns it; NULL makes it a root. Models with a fine-tuning
 * head name it "bert". NULL with [ARGUMENT, MEMORY] */
wg_bert *wg__bert_new(wg_module *parent, const char *name, const wg_bert_config *config,
                      const wg_bert_options *options);

/* The sequence output, (B, T, C), of inputs->ids or embeddings, token_type_ids and keep.
 * [scope; SHAPE, also for T beyond max_position_embeddings - first_position; DTYPE, INDEX] */
wg_tensor *wg__bert_forward(wg_module *bert, const wg_model_inputs *inputs);

/* The pooled output, tanh(W sequence[:, 0] + b): (B, T, C)   ->   (B, C). The model
 * must have a pooler. [scope; SHAPE, DTYPE] */
wg_tensor *wg__bert_pool(wg_module *bert, wg_tensor *sequence, wg_tensor *keep);

/* The wg_model_type.sizes of types whose configuration begins with a wg_bert_config. */
void wg__bert_sizes(const void *config, wg_model_sizes *sizes);

/* The masked language model's head on a BERT: logits = decoder(LayerNorm(act(dense(hidden)))). */
typedef struct wg_bert_predictions {
    wg_module module;
    wg_activation activation;
    wg_linear *dense; /* (C, C) */
    wg_layer_norm *norm;
    wg_linear *decoder; /* weight tied to the word table, bias to the head's "bias" (V) */
} wg_bert_predictions;

/* A head named `name` of `parent`, which owns it and the encoder; its dense layer and its norm have
 * the names given. NULL with [MEMORY] */
wg_bert_predictions *wg__bert_predictions_new(wg_module *parent, const char *name,
                                              const wg_bert *bert, wg_activation activation,
                                              const char *dense_name, const char *norm_name);

/* The wg_model_type.head of BERT and RoBERTa. */
wg_model_head wg__bert_predictions_head(wg_bert_predictions *head, wg_tensor *hidden);

typedef struct wg_bert_for_pretraining {
    wg_module module;
    wg_bert *bert;
    wg_bert_predictions *predictions; /* "cls.predictions" */
    wg_linear *next_sentence;         /* "cls.seq_relationship" */
} wg_bert_for_pretraining;

WG_END_DECLS

#endif
