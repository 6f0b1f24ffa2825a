/* Autoregressive blank infilling, GLM's pre-training, as a task for the trainer   (Du et al. 2022,
 * section 2.1).
 *
 *     corpus, tokenizer --> texts with blanks --> GLM --> cross-entropy of what was blank
 *
 * Metric of a step, beside its loss: perplexity. An evaluation fills spans, [MASK], whatever the
 * mixture that is trained on: `loss` (the mean over the tokens
 * that are to be predicted, the end of each blank among them), `word_loss` (the mean over those of
 * the text alone) and `unigram_loss` (what predicting these by their frequency in the training
 * corpus would lose, which knows that no blank ends there). */
#ifndef WG_OBJECTIVES_BLANK_INFILLING_H
#define WG_OBJECTIVES_BLANK_INFILLING_H

#include "../data/batches/glm_batch.h"
#include "../models/glm.h"
#include "../train/trainer.h"

WG_BEGIN_DECLS

typedef struct wg_blank_infilling wg_blank_infilling;

typedef struct wg_blank_infilling_options {
    wg_glm_batch_options batches; /* `sequence` is at most the model's positions */
    int64_t evaluation_batches;   /* in an evaluation during training, at most; 0: all */
} wg_blank_infilling_options;

/* All of these are borrowed and must outlive it. held_out may be NULL: then the task has no
 * evaluation. Freed with wg_blank_infilling_free. [ARGUMENT, also for a sequence beyond the model's
 * positions, or tokens beyond its vocabulary; MEMORY] */
WG_API wg_blank_infilling *wg_blank_infilling_new(wg_glm *model, const wg_tokenizer *tokenizer,
                                                  const wg_dataset *corpus,
                                                  const wg_dataset *held_out,
                                                  const wg_blank_infilling_options *options);
WG_API void wg_blank_infilling_free(wg_blank_infilling *infilling);

/* The task, whose functions use `infilling`. It saves /config, /tokenizer and /train/data, and
 * refuses to go on with another corpus than it was begun with. */
WG_API wg_task wg_blank_infilling_task(wg_blank_infilling *infilling);

/* Measures the model on each text of the held-out corpus once, with the same blanks each time.
 * [STATE if there is none] */
WG_API int wg_blank_infilling_evaluate(wg_blank_infilling *infilling, wg_metrics *metrics);

WG_END_DECLS

#endif
