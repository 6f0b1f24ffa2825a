/* Translating as a task for the trainer   (Vaswani et al. 2017, section 5).
 *
 *     pairs of sentences --> batches of like length --> Transformer --> smoothed cross-entropy
 *
 * Metric of a step, beside its loss: none. Of an evaluation: `loss` (cross-entropy without
 * smoothing, the mean over the target's tokens, the end counted) and `perplexity` (e to it). With
 * translations, too: `bleu` (or `bleu_lc`, without regard to case), `bleu_precision_1` to `_4`,
 * `brevity_penalty`, `hypothesis_tokens` and `reference_tokens`, as sacreBLEU counts them. */
#ifndef WG_OBJECTIVES_TRANSLATION_H
#define WG_OBJECTIVES_TRANSLATION_H

#include "../data/dataset/dataset.h"
#include "translator.h"
#include "../train/trainer.h"

WG_BEGIN_DECLS

typedef struct wg_translation wg_translation;

typedef struct wg_translation_options {
    int64_t batch;              /* tokens of a side in a batch, with padding; 0: 4096 */
    int64_t longest;            /* pairs with more tokens in a side are not trained on; 0: 128 */
    uint64_t seed;              /* of the batches */
    int64_t evaluation_batches; /* in an evaluation during training, at most; 0: all pairs */
} wg_translation_options;

/* All of these are borrowed and must outlive it. held_out may be NULL: then the task has no
 * evaluation; so may training, if nothing but an evaluation is wanted. Freed with
 * wg_translation_free. [ARGUMENT, also for a vocabulary beyond the model's, an end token that is
 * not the model's, or held-out sentences beyond its positions; MEMORY] */
WG_API wg_translation *wg_translation_new(wg_transformer *model, const wg_tokenizer *tokenizer,
                                          const wg_dataset *training, const wg_dataset *held_out,
                                          const wg_translation_options *options);
WG_API void wg_translation_free(wg_translation *translation);

/* The task, whose functions use `translation`. It saves /config, /tokenizer and /train/data, and
 * refuses to go on with other pairs than it was begun with. There must be training pairs. */
WG_API wg_task wg_translation_task(wg_translation *translation);

/* Pairs that are not trained on, as they are too long; batches in an epoch. */
WG_API int64_t wg_translation_left_out(const wg_translation *translation);
WG_API int64_t wg_translation_epoch(const wg_translation *translation);

/* Measures the loss on all held-out pairs. [STATE if there are none] */
WG_API int wg_translation_evaluate(wg_translation *translation, wg_metrics *metrics);

typedef struct wg_translation_scoring {
    wg_translator_options translator;
    bool lowercase;     /* of BLEU */
    const char *output; /* the translations are written here, one a line; NULL: nowhere */
} wg_translation_scoring;

/* Translates all held-out sources and measures BLEU, for which the texts of the pairs are read
 * again. [STATE if there are no pairs, or their texts are gone; IO for an output that cannot be
 * written; as wg_translate_texts] */
WG_API int wg_translation_score(wg_translation *translation, const wg_translation_scoring *scoring,
                                wg_metrics *metrics);

WG_END_DECLS

#endif
