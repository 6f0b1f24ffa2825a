/* What causal language models have in common: text is continued by one loop (decode.h) and trained
 * by one task (objectives/language_modeling.h), whichever model it is.
 *
 *     ids (B, T)  -->  hidden (B, T, C)  -->  logits (.., V)
 *
 * A model's file fills in the functions; wg_gpt_language_model and its like give it. */
#ifndef WG_MODELS_LANGUAGE_MODEL_H
#define WG_MODELS_LANGUAGE_MODEL_H

#include "../data/tokenizer/tokenizer.h"
#include "../nn/attention.h"

WG_BEGIN_DECLS

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

    /* The mean cross-entropy of those logits, which are not stored, and labels (..) but for
     * ignore_index: rank 0. [scope; SHAPE, INDEX, DTYPE] */
    wg_tensor *(*loss)(void *model, wg_tensor *hidden, wg_tensor *labels, int64_t ignore_index);

    /* The configuration as JSON; the caller frees it with wg_text_free. */
    char *(*config)(const void *model);
} wg_language_model;

/* Cross-entropy of predicting labels (B, T), -100 for those that count for nothing, from ids (B,
 * T): rank 0, the mean over the labels. Logits are never stored whole. [scope; SHAPE, INDEX, DTYPE]
 */
WG_API wg_tensor *wg_language_model_loss(const wg_language_model *model, wg_tensor *ids,
                                         wg_tensor *labels);

/* ---- By configuration ---- */

/* Makes the model that a published config.json describes, by its model_type: "gpt2" or "llama"; its
 * generator begins at `seed`. Freed with wg_language_model_free; after an error there is nothing to
 * free. [STATE for a model_type that is no causal language model, naming it; FORMAT, ARGUMENT,
 * MEMORY] */
WG_API int wg_language_model_new(wg_language_model *model, const char *config_json, uint64_t seed);

/* Reads the model and the tokenizer of a checkpoint. The model is freed with
 * wg_language_model_free, the tokenizer with wg_tokenizer_free; after an error there is nothing to
 * free. [NOT_FOUND, IO, FORMAT; STATE for a checkpoint of another kind of model] */
WG_API int wg_language_model_load(const char *path, wg_language_model *model,
                                  wg_tokenizer **tokenizer);

/* Frees the model behind it, and makes it {0}, which is allowed, too. */
WG_API void wg_language_model_free(wg_language_model *model);

WG_END_DECLS

#endif
