/* A run of wengert pretrain or wengert finetune, from its settings to its results.
 *
 *     settings --> tokenizer, model, text --> training --> trainer --> results
 *
 * What differs between models and objectives is in their records. training.c fills the first half
 * of a run from the arguments; run.c makes the second. */
#ifndef WG_CLI_RUN_H
#define WG_CLI_RUN_H

#include "cli/cli.h"
#include "cli/output.h"
#include "cli/profile.h"
#include "cli/settings.h"
#include "io/event_file.h"
#include "train/trainer.h"

/* All that a run is made of. */
typedef struct wg__run {
    /* What the arguments say. */
    wg__run_settings settings;
    const wg_model_type *type; /* of pretrain; NULL until it is known */
    const wg_objective *objective;
    const char *out, *log;   /* log NULL: none */
    const char *tensorboard; /* a folder for event files; NULL: none */
    const char *file;        /* of --settings; NULL: none */
    int threads;             /* 0: as the library finds it */
    double timeout;          /* seconds; of a group */
    wg__profiling profiling;
    bool resume, overwrite, json, show_batch, dry_run;
    bool objective_given; /* by --objective */
    bool target_due;      /* the argument that comes next is the target of --eval SOURCE */

    /* What the run makes of the arguments. */
    char command[64];     /* that resumes the run */
    int64_t steps_before; /* of a resumed run: how long it was to be; 0 */
    char *note;           /* the settings as text */
    char *best;           /* where the best checkpoint goes; NULL: nowhere */
    char *stem;           /* of RUN.h5, for checkpoints that are kept; NULL: none is */
    wg_tokenizer *tokenizer;
    wg_model model;
    wg_dataset *text, *held_out;
    wg_training *training;
    wg_trainer *trainer;
    wg__progress progress;
    wg_event_file *events; /* of --tensorboard; NULL: none, or one that could not be written */
    int64_t peak_bytes;    /* of memory, while the trainer ran */
} wg__run;

/* Whether it is a run of finetune. */
static inline bool wg__run_finetunes(const wg__run *r) {
    return r->settings.parts[0].table == &wg__tuning_rows;
}

/* Refuses a folder that cannot be written to, and a file that is there or is not, now and not after
 * the training. Exit codes, here and below; an error has been told. */
int wg__run_check_output(const wg__run *r);

/* Takes the settings that the run in r->out was begun with, to go on with it. -1 after an error. */
int wg__run_take_note(wg__run *r);

/* Trains, saves and prints the results. */
int wg__run_train(wg__run *r);

/* Makes a few steps and prints the memory and time that the run would take; writes nothing. */
int wg__run_dry(wg__run *r);

/* Prints the first batch as tables, of objectives that can. */
int wg__run_show_batch(wg__run *r);

/* Frees all that the run is made of. */
void wg__run_clear(wg__run *r);

#endif
