/* Classification: a label of a text, or of two, by an encoder with a head on its first token
 * (Devlin et al. 2019, section 4.1).
 *
 *     labelled text --> shuffled examples --> encoder, pooler, dropout, classifier -->
 * cross-entropy
 *
 * The labels are those of the training file, in the order of wg_labels_sort. Metric of a step,
 * beside its loss: accuracy. Of an evaluation: `loss`, `accuracy`, `majority` (the accuracy of
 * always predicting the commonest label) and, of two labels, `f1` (of the second) and `mcc`
 * (Matthews' correlation, 0 where it is not defined). */
#ifndef WG_OBJECTIVES_CLASSIFICATION_H
#define WG_OBJECTIVES_CLASSIFICATION_H

#include "../models/heads.h"
#include "objective.h"

WG_BEGIN_DECLS

/* Encoders. Reads files of wg_labelled_text_load. */
extern WG_API const wg_objective wg_classification;

WG_END_DECLS

#endif
