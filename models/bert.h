/* BERT: pre-training of deep bidirectional transformers   (Devlin et al. 2019).
 *
 *     tokens, segments (B, T)
 *        | word + position + segment embeddings, LayerNorm, dropout
 *        | N x [ self-attention, Add & Norm, feed-forward, Add & Norm ]      (post-norm)
 *     sequence (B, T, C) ----> masked language model: logits (N, V), the decoder is the word table
 *        | first position, dense, tanh
 *     pooled (B, C) ---------> next sentence: logits (B, 2), class 0: "B follows A"
 *
 * Parameter paths are those of the published PyTorch checkpoints
 * (bert.encoder.layer.0.attention.self.query.weight ... cls.seq_relationship.bias). */
#ifndef WG_MODELS_BERT_H
#define WG_MODELS_BERT_H

#include "../data/batches/bert_batch.h"
#include "../nn/norm.h"
#include "../nn/attention.h"
#include "../nn/linear.h"
#include "../nn/feed_forward.h"

WG_BEGIN_DECLS

/* ---- Configuration ---- */

/* The members are the published JSON keys. No member has a hidden default: begin with a preset or
 * with a JSON text. */
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

/* Fills the configuration of a published size: "bert-tiny" (2 layers, width 128), "bert-mini" (4,
 * 256), "bert-small" (4, 512) or "bert-base" (12, 768), each with the uncased vocabulary's 30522
 * tokens. -1 with [ARGUMENT, listing the names] */
WG_API int wg_bert_config_preset(wg_bert_config *config, const char *name);

/* The name of preset `index`, or NULL beyond the last. */
WG_API const char *wg_bert_preset_name(int index);

/* 0 if a model can be made of it; -1 with [ARGUMENT, naming the key, its value and the rule] */
WG_API int wg_bert_config_validate(const wg_bert_config *config);

/* Reads a published config.json. Keys that are left out keep BERT-base's values, except the sizes
 * (vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size), which must
 * be there; those of published files that change nothing here are passed over, any other unknown
 * key is refused. The result is validated; after an error *config is as it was.
 * -1 with [FORMAT, ARGUMENT, MEMORY] */
WG_API int wg_bert_config_from_json(wg_bert_config *config, const char *json);

/* The configuration as JSON text; the caller frees it with wg_text_free. NULL with MEMORY. */
WG_API char *wg_bert_config_to_json(const wg_bert_config *config);

/* ---- The encoder ---- */

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
    wg_embedding *word_embeddings, *position_embeddings, *token_type_embeddings;
    wg_layer_norm *embedding_norm;
    wg_bert_layer **layers; /* config.num_hidden_layers */
    wg_linear *pooler;      /* NULL without one */
} wg_bert;

typedef struct wg_bert_options {
    bool no_pooler; /* of models that use the sequence output alone */
} wg_bert_options;

/* The encoder with its pooler, unless options say otherwise, initialised as the paper's code does:
 * weights from a normal distribution with standard deviation initializer_range, truncated at two of
 * them; biases 0, norms 1; the padding token's vector 0. `parent` owns it; NULL makes it a root.
 * Fine-tuning heads hang a child "bert". NULL with [ARGUMENT, MEMORY] */
WG_API wg_bert *wg_bert_new(wg_module *parent, const char *name, const wg_bert_config *config,
                            const wg_bert_options *options);

/* The sequence output, (B, T, C).   input_ids: (B, T) i64 or i32   token_type_ids: the same, or
 * NULL: all 0   attention_mask: (B, T) bool, false for padding, or NULL: no padding.
 * [scope; SHAPE, also for T beyond max_position_embeddings; DTYPE, INDEX] */
WG_API wg_tensor *wg_bert_forward(wg_bert *bert, wg_tensor *input_ids, wg_tensor *token_type_ids,
                                  wg_tensor *attention_mask);

/* The pooled output, tanh(W sequence[:, 0] + b): (B, T, C)   ->   (B, C). The model
 * must have a pooler. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_bert_pool(wg_bert *bert, wg_tensor *sequence);

/* ---- Pre-training: masked language model and next sentence ---- */

typedef struct wg_bert_for_pretraining {
    wg_module module;
    wg_bert *bert;
    wg_linear *transform; /* cls.predictions.transform.dense */
    wg_layer_norm *transform_norm;
    wg_linear *decoder;       /* weight tied to the word table, bias to cls.predictions.bias */
    wg_linear *next_sentence; /* cls.seq_relationship */
} wg_bert_for_pretraining;

/* A root, freed with wg_module_free(&model->module); its generator, for initial values and dropout,
 * begins at `seed`. NULL with [ARGUMENT, MEMORY] */
WG_API wg_bert_for_pretraining *wg_bert_for_pretraining_new(const wg_bert_config *config,
                                                            uint64_t seed);

/* Logits of the masked language model.   sequence: (B, T, C)
 * positions: (N) i64 or i32, flat, b T + t   ->   (N, V); NULL: everywhere   ->   (B, T, V).
 * [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_bert_mlm_logits(wg_bert_for_pretraining *model, wg_tensor *sequence,
                                     wg_tensor *positions);

/* Logits of the next sentence.   sequence: (B, T, C)   ->   (B, 2). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_bert_nsp_logits(wg_bert_for_pretraining *model, wg_tensor *sequence);

typedef struct wg_bert_loss {
    wg_tensor *total;               /* rank 0: mlm + nsp. The one to run backward on. */
    wg_tensor *mlm;                 /* rank 0: mean over the masked tokens of -log p(label) */
    wg_tensor *nsp;                 /* rank 0, or NULL without next_sentence_labels */
    int64_t mlm_correct, mlm_count; /* right predictions and labels, if they were counted */
    int64_t nsp_correct, nsp_count;
} wg_bert_loss;

/* The pre-training loss of a batch. A label of -100 counts for nothing; next_sentence_labels may be
 * NULL: no such task. count_correct also counts right predictions. Logits are never stored whole.
 * Returns 0, or -1 with every tensor NULL. [scope; SHAPE, INDEX, DTYPE] */
WG_API int wg_bert_pretraining_loss(wg_bert_for_pretraining *model, const wg_bert_batch *batch,
                                    bool count_correct, wg_bert_loss *loss);

WG_END_DECLS

#endif
