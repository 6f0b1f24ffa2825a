/* BERT's pre-training as a task for the trainer: masked words and next sentences.
 *
 *     corpus, tokenizer --> batches --> BERT for pre-training --> mlm loss + nsp loss
 *
 * Metrics of a step: mlm_loss, mlm_accuracy (over masked tokens), nsp_loss, nsp_accuracy (over
 * pairs). Of an evaluation: these, their sum `loss`, `unigram_loss` (what predicting the masked
 * tokens by their frequency in the training corpus would lose) and `nsp_random` (the share of pairs
 * whose second half is random, so that always guessing the commoner answer is right in
 * max(nsp_random, 1 - nsp_random) of them). */
#ifndef WG_OBJECTIVES_BERT_PRETRAINING_H
#define WG_OBJECTIVES_BERT_PRETRAINING_H

#include "../models/bert.h"
#include "../train/trainer.h"

WG_BEGIN_DECLS

typedef struct wg_bert_pretraining wg_bert_pretraining;

typedef struct wg_bert_pretraining_options {
    int64_t batch;              /* 0: 32 */
    int64_t sequence;           /* 0: 128, at most the model's positions */
    uint64_t seed;              /* of the batches */
    int64_t evaluation_batches; /* in an evaluation during training, at most; 0: all of an epoch */
} wg_bert_pretraining_options;

/* All of these are borrowed and must outlive it. held_out may be NULL: then the task has no
 * evaluation. Freed with wg_bert_pretraining_free.
 * [ARGUMENT, also for a sequence beyond the model's positions or another vocabulary] */
WG_API wg_bert_pretraining *wg_bert_pretraining_new(wg_bert_for_pretraining *model,
                                                    const wg_tokenizer *tokenizer,
                                                    const wg_dataset *corpus,
                                                    const wg_dataset *held_out,
                                                    const wg_bert_pretraining_options *options);
WG_API void wg_bert_pretraining_free(wg_bert_pretraining *pretraining);

/* The task, whose functions use `pretraining`. It saves /config, /tokenizer and /train/data, and
 * refuses to go on with another corpus than it was begun with. */
WG_API wg_task wg_bert_pretraining_task(wg_bert_pretraining *pretraining);

/* Measures the model on one epoch of the held-out corpus, the same batches each time. [STATE if
 * there is none] */
WG_API int wg_bert_pretraining_evaluate(wg_bert_pretraining *pretraining, wg_metrics *metrics);

/* Reads the model and the tokenizer of a checkpoint. The model is a root to be freed with
 * wg_module_free(&(*model)->module). Both are NULL after an error.
 * [NOT_FOUND, IO, FORMAT; STATE for a checkpoint of something else] */
WG_API int wg_bert_load(const char *path, wg_bert_for_pretraining **model,
                        wg_tokenizer **tokenizer);

WG_END_DECLS

#endif
