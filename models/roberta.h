/* RoBERTa: a robustly optimized BERT pretraining approach   (Liu et al. 2019): BERT's encoder,
 * trained on masked words alone, without segments and without next sentences.
 *
 *     <s> a </s>                ids (B, T)
 *        | BERT's encoder (bert.h), whose position table begins at row pad_token_id + 1
 *     sequence (B, T, C) ----> masked language model: dense, GELU, LayerNorm, logits (N, V)
 *        | first position, dense, tanh
 *     pooled (B, C) ---------> a classifier's head
 *
 * The published checkpoints of roberta-base, distilroberta-base, xlm-roberta-base and CamemBERT
 * have this form; parameter paths are theirs (roberta.encoder.layer.0.attention.self.query.weight
 * ... lm_head.decoder.bias). Positions count from the left, so padding has to be on the right, as
 * it is in all batches here. */
#ifndef WG_MODELS_ROBERTA_H
#define WG_MODELS_ROBERTA_H

#include "bert.h"

WG_BEGIN_DECLS

/* The members, and the members of `bert`, are the published JSON keys: docs/configurations.md
 * describes them. The first pad_token_id + 1 rows of the position table belong to no position, so
 * the longest T is max_position_embeddings - (pad_token_id + 1). */
typedef struct wg_roberta_config {
    wg_bert_config bert;
    int64_t bos_token_id, eos_token_id; /* -1: none */
} wg_roberta_config;

/* The type of wg_roberta_for_masked_lm. Presets: "roberta-mini" (4 layers, width 256),
 * "roberta-small" (6, 384) and "roberta-base" (12, 768); all with the published vocabulary of
 * 50265. */
WG_API extern const wg_model_type wg_roberta_type;

typedef struct wg_roberta {
    wg_module module;
    wg_roberta_config config;
    wg_bert *bert;    /* "roberta" */
    wg_linear *dense; /* classifier.dense, of the pooled output; NULL without one */
} wg_roberta;

typedef struct wg_roberta_for_masked_lm {
    wg_module module;
    wg_roberta *encoder;
    wg_bert_predictions *head; /* "lm_head" */
} wg_roberta_for_masked_lm;

WG_END_DECLS

#endif
