/* Classification of texts as a task for the trainer: fine-tuning BERT with a head, or GLM, which
 * fills a blank.
 *
 *     labelled text --> shuffled batches --> BERT for sequence classification --> cross-entropy
 *                                            GLM with a cloze
 *
 * Metric of a step, beside its loss: accuracy. Of an evaluation: `loss`, `accuracy`, `majority`
 * (the accuracy of always saying the label that is commonest there) and, of two labels, `f1` (of
 * the second) and `mcc` (Matthews' correlation, 0 where it is not defined). */
#ifndef WG_OBJECTIVES_CLASSIFICATION_H
#define WG_OBJECTIVES_CLASSIFICATION_H

#include "../data/dataset/labelled_text.h"
#include "../models/bert_heads.h"
#include "glm_cloze.h"
#include "../train/trainer.h"

WG_BEGIN_DECLS

typedef struct wg_classification wg_classification;

typedef struct wg_classification_options {
    int64_t batch;    /* 0: 32 */
    int64_t sequence; /* what is longer is cut, Part A of GLM; 0: 128, at most the model's positions
                       */
    uint64_t seed;    /* of the order of examples */
} wg_classification_options;

/* All of these are borrowed and must outlive it. `training` may be NULL, if nothing but an
 * evaluation is wanted, and so may held_out. Freed with wg_classification_free.
 * [ARGUMENT, also for a sequence beyond the model's positions, a vocabulary beyond the model's or a
 * tokenizer without [CLS], [SEP] and [PAD]; MEMORY] */
WG_API wg_classification *wg_classification_new(wg_bert_for_sequence_classification *model,
                                                const wg_tokenizer *tokenizer,
                                                const wg_labelled_text *training,
                                                const wg_labelled_text *held_out,
                                                const wg_classification_options *options);

/* The same by GLM; texts are of wg_cloze_text_load. [ARGUMENT, also for a sequence or a verbalizer
 * beyond the model's positions, a vocabulary beyond the model's or a pattern that leaves no room
 * for a text; MEMORY] */
WG_API wg_classification *wg_cloze_classification_new(wg_glm *model, const wg_cloze *cloze,
                                                      const wg_tokenizer *tokenizer,
                                                      const wg_labelled_text *training,
                                                      const wg_labelled_text *held_out,
                                                      const wg_classification_options *options);

/* Of either kind; NULL is allowed. */
WG_API void wg_classification_free(wg_classification *classification);

/* The task, whose functions use `classification`. It saves /config, /tokenizer and /train/data, and
 * refuses to go on with another text or cloze than it was begun with. There must be a training
 * text.
 */
WG_API wg_task wg_classification_task(wg_classification *classification);

/* Measures the model on the held-out text. `predictions`, unless it is NULL, gets the number of the
 * label that is predicted for each example. [STATE if there is no such text] */
WG_API int wg_classification_evaluate(wg_classification *classification, wg_metrics *metrics,
                                      int64_t *predictions);

WG_END_DECLS

#endif
