/* What classification has to know of a model that tells labels; the rest is the same for all. */
#ifndef WG_OBJECTIVES_CLASSIFICATION_PARTS_H
#define WG_OBJECTIVES_CLASSIFICATION_PARTS_H

#include "objectives/classification.h"

/* What a model says about a batch of B examples. */
typedef struct wg__scores {
    wg_tensor *logits; /* (B, K) */
    wg_tensor *labels; /* (B) i64 */
    int64_t tokens;    /* that went through the model */
} wg__scores;

/* A model, and how its batches are made; the first member of a struct of its own. */
typedef struct wg__labeller wg__labeller;
struct wg__labeller {
    wg_module *module;
    const wg_labels *labels; /* K of them */

    /* [scope] 0 or -1 with an error. */
    int (*score)(const wg__labeller *labeller, const wg_labelled_text *text, int64_t count,
                 const int64_t *examples, wg__scores *scores);

    /* Writes all that it takes to use the model, and where the run stands in its data. */
    int (*save)(const wg__labeller *labeller, wg_checkpoint *file, const wg_batches *batches,
                int64_t fingerprint);

    /* -1 with an error if a run of that file cannot go on with this one; NULL: it can. */
    int (*check)(const wg__labeller *labeller, wg_checkpoint *file);
};

/* The options with what they leave open. [ARGUMENT] */
int wg__classification_complete(const wg_classification_options *options,
                                wg_classification_options *completed);

/* Takes the labeller, which is freed by wg__free, also after an error. NULL for one is an error
 * that is pending. [MEMORY] */
wg_classification *wg__classification_new(wg__labeller *labeller, const wg_labelled_text *training,
                                          const wg_labelled_text *held_out,
                                          const wg_classification_options *options);

#endif
