/* T5's pre-training as a task for the trainer: spans that went are written again.
 *
 *     text, tokenizer --> stream --> batches --> T5 --> cross-entropy
 *
 * Metrics of a step, beside its loss: none but the tokens, of inputs and targets. Of an evaluation:
 * `loss` (the mean over targets, of which two in five are sentinels or </s>, and soon known),
 * `word_loss` and `word_accuracy` (over the tokens of the text alone) and `unigram_loss` (what
 * predicting the tokens of the held-out text by their frequency in the training text would lose,
 * to be held against word_loss). */
#ifndef WG_OBJECTIVES_T5_PRETRAINING_H
#define WG_OBJECTIVES_T5_PRETRAINING_H

#include "../data/batches/t5_batch.h"
#include "../models/t5.h"
#include "../train/trainer.h"

WG_BEGIN_DECLS

typedef struct wg_t5_pretraining wg_t5_pretraining;

typedef struct wg_t5_pretraining_options {
    int64_t batch;              /* 0: 32 */
    int64_t sequence;           /* of inputs, as wg_t5_batch_options; 0: 128 */
    uint64_t seed;              /* of the batches */
    int64_t evaluation_batches; /* in an evaluation during training, at most; 0: all of an epoch */
} wg_t5_pretraining_options;

/* All of these are borrowed and must outlive it. held_out may be NULL: then the task has no
 * evaluation; so may training, if nothing but an evaluation is wanted. Freed with
 * wg_t5_pretraining_free. [ARGUMENT, also for a tokenizer whose tokens, with sentinels, </s> and
 * padding, are not those of the model; as wg_t5_batches_new] */
WG_API wg_t5_pretraining *wg_t5_pretraining_new(wg_t5 *model, const wg_tokenizer *tokenizer,
                                                const wg_dataset *training,
                                                const wg_dataset *held_out,
                                                const wg_t5_pretraining_options *options);
WG_API void wg_t5_pretraining_free(wg_t5_pretraining *pretraining);

/* The task, whose functions use `pretraining`. It saves /config, /tokenizer and /train/data, and
 * refuses to go on with another text than it was begun with. There must be a training text. */
WG_API wg_task wg_t5_pretraining_task(wg_t5_pretraining *pretraining);

/* Measures the model on one epoch of the held-out text, the same batches each time. Without a
 * training text, `unigram_loss` is by the frequencies in the held-out text itself. [STATE if there
 * is none] */
WG_API int wg_t5_pretraining_evaluate(wg_t5_pretraining *pretraining, wg_metrics *metrics);

WG_END_DECLS

#endif
