/* What the objective `contrastive` shares with its tests. */
#ifndef WG_OBJECTIVES_CONTRASTIVE_H
#define WG_OBJECTIVES_CONTRASTIVE_H

#include "data/dataset/text_lines.h"
#include "objectives/objective.h"

/* The mean cross-entropy of similarities (B, B), of which those of the diagonal are the right ones;
 * *right is how many of these are the largest of their row. [scope; SHAPE] */
wg_tensor *wg__contrastive_loss(wg_tensor *similarities, double *right);

#endif
