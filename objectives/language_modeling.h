/* Predicting the next token as a task for the trainer, for any causal language model.
 *
 *     text, tokenizer --> stream --> windows --> model --> cross-entropy
 *
 * Metric of a step, beside its loss: perplexity. Of an evaluation: `loss` (the mean over tokens),
 * `perplexity` (e to it), `bits_per_byte` (loss / log 2 x tokens / bytes of the held-out text,
 * whatever the tokenizer) and `unigram_loss` (what predicting the tokens of the held-out text by
 * their frequency in the training text would lose). */
#ifndef WG_OBJECTIVES_LANGUAGE_MODELING_H
#define WG_OBJECTIVES_LANGUAGE_MODELING_H

#include "../data/batches/causal_batch.h"
#include "../models/language_model.h"
#include "../train/trainer.h"

WG_BEGIN_DECLS

typedef struct wg_language_modeling wg_language_modeling;

typedef struct wg_language_modeling_options {
    int64_t batch;              /* 0: 32 */
    int64_t sequence;           /* 0: 128, at most the model's positions */
    uint64_t seed;              /* of the batches */
    int64_t evaluation_batches; /* in an evaluation during training, at most; 0: the whole text */
    bool by_document; /* evaluations measure each document from its beginning, as far as a sequence
                       * goes, instead of all of the text cut into sequences */
} wg_language_modeling_options;

/* All of these are borrowed and must outlive it (of `model` what is behind it). held_out may be
 * NULL: then the task has no evaluation; so may training, if nothing but an evaluation is wanted.
 * Freed with wg_language_modeling_free. [ARGUMENT, also for a sequence beyond the model's
 * positions, a vocabulary beyond the model's, or too short a text; MEMORY] */
WG_API wg_language_modeling *wg_language_modeling_new(const wg_language_model *model,
                                                      const wg_tokenizer *tokenizer,
                                                      const wg_dataset *training,
                                                      const wg_dataset *held_out,
                                                      const wg_language_modeling_options *options);
WG_API void wg_language_modeling_free(wg_language_modeling *modeling);

/* The task, whose functions use `modeling`. It saves /config, /tokenizer and /train/data, and
 * refuses to go on with another text than it was begun with. There must be a training text. */
WG_API wg_task wg_language_modeling_task(wg_language_modeling *modeling);

/* Measures the model on the whole held-out text, each token but the first predicted once (of each
 * document, by_document). Without a
 * training text, `unigram_loss` is by the frequencies in the held-out text itself. [STATE if there
 * is none] */
WG_API int wg_language_modeling_evaluate(wg_language_modeling *modeling, wg_metrics *metrics);

WG_END_DECLS

#endif
