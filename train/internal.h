/* What train/ declares for the library and the command, and does not install. */
#ifndef WG_TRAIN_INTERNAL_H
#define WG_TRAIN_INTERNAL_H

#include "base/internal.h"
#include "train/metrics.h"
#include "train/trainer.h"

/* ---- Of train/metrics.h ---- */

/* The mean of one metric; NaN at weight 0. */
WG__COMMAND double wg__metric_value(const wg_metric *metric);

/* ---- Of train/trainer.h ---- */

/* How many batches a step takes that follows `step` others. */
WG__COMMAND int64_t wg__trainer_batches(int64_t accumulate, int64_t accumulate_ramp, int64_t step);

/* Bytes of optimizer state and of gradients that this process holds during a run, with the buffers
 * in which gradients travel; the gradients that are in the midst of a backward pass come on top. */
WG__COMMAND void wg__trainer_memory(const wg_trainer *trainer, int64_t *state, int64_t *gradients);

/* Bytes of trained weights that this process holds. */
WG__COMMAND int64_t wg__trainer_weight_bytes(const wg_trainer *trainer);

/* Puts the average of the weights, if the trainer keeps one, in their place, for measuring or using
 * the model; and back, which is due before the run goes on or is saved. */
WG__COMMAND void wg__trainer_swap_average(wg_trainer *trainer);

#endif
