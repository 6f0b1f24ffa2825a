/* A run of wengert pretrain or wengert finetune, from its settings to its results.
 *
 *     settings --> tokenizer, model, text --> training --> trainer --> results
 *
 *     table               struct                 verb
 *     wg__text_rows       wg__text_settings      pretrain: model, tokenizer, text
 *     wg__tuning_rows     wg__tuning_settings    finetune: checkpoint, files
 *     wg__training_rows   wg__training_settings  both: batches, optimizer, schedule, saving
 *     the objective's     the objective's        both: --masked-share, --pattern...
 *
 * The rows are the options of the command line, the keys of --settings FILE, and the keys of
 * /train/note, where a checkpoint stores the settings of its run. Models and objectives differ only
 * by their records. training.c fills the first half of wg__run from the arguments; run.c makes the
 * second half. */
#ifndef WG_CLI_RUN_H
#define WG_CLI_RUN_H

#include "cli/options.h"
#include "cli/output.h"
#include "cli/machine.h"
#include "io/internal.h"
#include "train/trainer.h"
#include "optim/internal.h"

typedef struct wg__text_settings {
    const char *preset, *config, *init;
    const char *tokenizer;
    int64_t vocab_size, alphabet, extend_vocab;
    wg_setting_list corpus;
    wg_setting_numbers corpus_weights;
    const char *tokens, *eval, *eval_target;
} wg__text_settings;

typedef struct wg__tuning_settings {
    const char *model, *train, *eval;
    double epochs;
} wg__tuning_settings;

typedef struct wg__training_settings {
    wg_training_setup setup;    /* batch, sequence and seed */
    wg_trainer_options trainer; /* its numbers; a clip of 0 does not clip */
    int64_t seq_ramp, longest_warmup;
    int optimizer; /* of wg__optimizer_name */
    double momentum, beta1, beta2, weight_decay;
    bool recompute, deterministic, keep_best;
    int dtype, communication_dtype; /* of wg__product_dtype_name: of products, of gradients sent */
    int64_t zero;
    int64_t lora; /* rank; 0: none */
    const char *lora_targets;
    double lora_alpha, lora_dropout;
} wg__training_settings;

extern const wg_setting_table wg__text_rows, wg__tuning_rows, wg__training_rows;

/* All settings of a run, and where each value is from. */
typedef struct wg__run_settings {
    wg__text_settings text;
    wg__tuning_settings tuning;
    wg__training_settings training;
    void *objective; /* the options of the objective, NULL without rows */
    wg_settings all;
} wg__run_settings;

/* A run: its arguments, and the objects made from them. */
typedef struct wg__run {
    /* From the arguments: */
    wg__run_settings settings;
    const wg_model_type *type; /* of pretrain; NULL until it is known */
    const wg_objective *objective;
    const char *model_name, *objective_name; /* of the line; NULL: not given */
    const char *out, *log;                   /* log NULL: none */
    const char *tensorboard;                 /* a folder for event files; NULL: none */
    const char *file;                        /* of --settings; NULL: none */
    double timeout;                          /* seconds; of a group */
    wg__profiling profiling;
    bool finetunes; /* a run of finetune */
    bool resume, overwrite, json, show_batch, dry_run;

    /* Made by the run: */
    char command[64];     /* that resumes the run */
    int64_t steps_before; /* of a resumed run: the steps that it was planned for; else 0 */
    char *note;           /* the settings as text */
    char *best;           /* the path of --keep-best; NULL: not given */
    char *stem;           /* of RUN.h5, for the paths of --keep-every; NULL: not given */
    wg_tokenizer *tokenizer;
    wg_model model;
    wg_dataset *text, *held_out;
    wg_training *training;
    wg_trainer *trainer;
    wg__progress progress;
    wg_event_file *events; /* of --tensorboard; NULL: none, or one that could not be written */
    int64_t peak_bytes;    /* of memory, while the trainer ran */
} wg__run;

/* Checks before the training that the output can be written: the folder, and whether the file
 * exists as --resume or --overwrite need it. Returns the exit code, here and below, after a
 * message. */
int wg__run_check_output(const wg__run *r);

/* Reads the settings of the run in r->out, to resume it. -1 after a message. */
int wg__run_read_note(wg__run *r);

/* Trains, saves and prints the results. */
int wg__run_train(wg__run *r);

/* Prints the costs of the run (--dry-run), or its first batch (--show-batch), and trains nothing. */
int wg__run_preview(wg__run *r);

/* Frees all parts of the run. */
void wg__run_clear(wg__run *r);

/* --dry-run: trains for a few steps, which change the model in memory, and prints the memory and
 * time that the run would take. `options` are the run's, but no file is written. Frees the
 * optimizer, which has no parameters yet. Returns the exit code. */
int wg__dry_run(wg__run *r, wg_trainer_options options, wg_optimizer *optimizer);

#endif
