/* What a run would cost, by a few real steps that write nothing: --dry-run. */
#ifndef WG_CLI_DRY_RUN_H
#define WG_CLI_DRY_RUN_H

#include "objectives/objective.h"

typedef struct wg__dry_run_plan {
    wg_training *training;
    const wg_dataset *text;       /* of pretraining; NULL: files of examples */
    wg_trainer_options options;   /* those of the run; nothing that they name is written */
    int64_t batches;              /* of the whole run */
    int64_t batches_of_full_step; /* once their number has risen */
    wg_optimizer *optimizer;      /* empty; the dry run frees it */
    bool json;
} wg__dry_run_plan;

/* Trains for a few steps, which change the model in memory, and prints what they took. Returns the
 * exit code. */
int wg__dry_run(wg__dry_run_plan *plan);

#endif
