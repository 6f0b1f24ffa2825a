/* What causal language models have in common: text is continued by one loop (decode.h) and trained
 * by one task (train/language_modeling.h), whichever model it is.
 *
 *     ids (B, T)  -->  hidden (B, T, C)  -->  logits (.., V)
 *
 * A model's file fills in the functions; wg_gpt_language_model and its like give it. */
#ifndef WG_MODELS_LANGUAGE_MODEL_H
#define WG_MODELS_LANGUAGE_MODEL_H

#include "../nn/attention.h"

/* What a decoder is given beside its ids; all may be NULL. */
typedef struct wg_decoder_inputs {
    wg_kv_cache *caches;     /* of generation, one a layer: the ids follow what these have seen */
    wg_tensor *position_ids; /* (B, T) i64 below max_positions, though padding may make T longer;
                              * NULL: those that follow what was seen, from 0 on */
    wg_tensor *keep; /* (B, Tk) bool, false for padding, over all that is seen; NULL: none */
} wg_decoder_inputs;

typedef struct wg_language_model {
    void *model;       /* handed to the functions */
    wg_module *module; /* its root */
    const char *type;  /* the published model_type: "gpt2", "llama" */
    int64_t vocab_size;
    int64_t max_positions; /* the longest sequence */
    int64_t layers;        /* of which each has a cache */

    /* ids (B, T) i64 or i32   ->   (B, T, C). `inputs` may be NULL.
     * [scope; SHAPE, also beyond max_positions; INDEX, DTYPE] */
    wg_tensor *(*forward)(void *model, wg_tensor *ids, const wg_decoder_inputs *inputs);

    /* (.., C)   ->   (.., V). [scope; SHAPE, DTYPE] */
    wg_tensor *(*logits)(void *model, wg_tensor *hidden);

    /* The configuration as JSON; the caller frees it with wg_text_free. */
    char *(*config)(const void *model);
} wg_language_model;

/* Cross-entropy of predicting labels (B, T), -100 for those that count for nothing, from ids (B,
 * T): rank 0, the mean over the labels. Logits do not outlive the call. [scope; SHAPE, INDEX,
 * DTYPE] */
WG_API wg_tensor *wg_language_model_loss(const wg_language_model *model, wg_tensor *ids,
                                         wg_tensor *labels);

#endif
