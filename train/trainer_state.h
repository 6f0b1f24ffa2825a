/* What the files of the trainer share: its state, and what may be said of it. */
#ifndef WG_TRAIN_TRAINER_STATE_H
#define WG_TRAIN_TRAINER_STATE_H

#include "io/log.h"
#include "optim/optimizer.h"
#include "train/trainer.h"

struct wg_trainer {
    wg_task task;
    wg_trainer_options options;
    wg_optimizer *optimizer;
    wg_average *average; /* NULL: none */
    wg__metric_log *log; /* NULL: none */
    int64_t step;        /* steps done */
    bool is_torn;        /* the next one failed when some weights had been stepped */
    wg_history training, evaluations;
    double begun; /* when this part of the run began, and at which step */
    int64_t begun_at;
    double last_save;
};

/* What may be behind a loss or a gradient that is not finite in the step after the last that is
 * done: one clause into `hint`. */
void wg__trainer_diagnose(const wg_trainer *trainer, char *hint, size_t size);

/* Refuses a trainer of which a step failed half way. */
int wg__trainer_check_whole(const wg_trainer *trainer);

/* Whether all elements are finite. To be called with recording off. */
bool wg__is_finite(wg_tensor *x);

/* The row of the best evaluation; -1 if there is none with a finite loss. */
int64_t wg__best_evaluation(const wg_history *evaluations);

#endif
