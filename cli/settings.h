/* The settings of a training run: rows of typed tables (io/settings.h) that fill structs.
 *
 *     table               struct               verb
 *     wg__text_rows       wg__text_settings    pretrain: model, tokenizer, text
 *     wg__tuning_rows     wg__tuning_settings  finetune: checkpoint, files
 *     wg__training_rows   wg__training_settings  both: batches, optimizer, schedule, saving
 *     of the objective    its own              both: --masked-share, --pattern...
 *
 * The options of the command line, their lines of --help, the keys of --settings FILE and those of
 * /train/note, by which a checkpoint keeps the settings of its run, are made from the rows.
 *
 * Each value has an origin. A stronger origin rules, in whatever order values are given:
 *
 *     row's standard  <  model or objective  <  resumed checkpoint  <  file  <  command line  */
#ifndef WG_CLI_SETTINGS_H
#define WG_CLI_SETTINGS_H

#include <argp.h>
#include <jansson.h>

#include "cli/cli.h"
#include "objectives/objective.h"

typedef enum wg__setting_origin {
    WG__UNSET,
    WG__FROM_STANDARD,
    WG__FROM_RECORD,
    WG__FROM_CHECKPOINT,
    WG__FROM_FILE,
    WG__FROM_COMMAND
} wg__setting_origin;

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
    int64_t steps, batch, accumulate, accumulate_ramp, seq, seq_ramp;
    double lr;
    int schedule; /* wg_schedule_kind */
    int64_t warmup, longest_warmup;
    double final;
    int64_t decay_steps;
    int optimizer; /* of wg_optimizer_name */
    double momentum, beta1, beta2, weight_decay, clip;
    int64_t seed;
    double ema;
    bool recompute, step_in_backward, deterministic;
    int dtype; /* of products: wg_dtype f32 or bf16, by their place in the row's choices */
    int64_t zero;
    int communication_dtype; /* 0: f32, 1: bf16 */
    int64_t lora;            /* rank; 0: none */
    const char *lora_targets;
    double lora_alpha, lora_dropout;
    int64_t save_every, eval_every, patience;
    bool keep_best;
    int64_t keep_every;
} wg__training_settings;

extern const wg_setting_table wg__text_rows, wg__tuning_rows, wg__training_rows;

/* A table with its struct and the origin of each value. */
typedef struct wg__run_settings_part {
    const wg_setting_table *table;
    void *values;
    wg__setting_origin *origins; /* a value each */
} wg__run_settings_part;

/* All settings of a run. {0} is none; the first part is the verb's own. */
typedef struct wg__run_settings {
    wg__text_settings text;
    wg__tuning_settings tuning;
    wg__training_settings training;
    void *objective; /* the options of the objective, NULL without rows */
    int part_count;
    wg__run_settings_part parts[3];
    struct wg__owned *owned; /* texts and lists that values point to */
} wg__run_settings;

/* Prepares the tables of a verb, of which `own` is &wg__text_rows or &wg__tuning_rows, with their
 * standard values. These functions end the process with a message where there is no memory. */
void wg__run_settings_begin(wg__run_settings *settings, const wg_setting_table *own);

/* Adds the rows of the objective, and takes what was given of them before the objective was known.
 * Leaves with a usage message for options that the objective does not have; `user` names what they
 * are not for. */
void wg__run_settings_add_objective(wg__run_settings *settings, const wg_objective *objective,
                                    struct argp_state *state, const char *user);

/* A row of the objective without a standard value that was not given, or NULL. */
const wg_setting *wg__run_settings_missing(const wg__run_settings *settings);

void wg__run_settings_clear(wg__run_settings *settings);

/* The argp options of a verb: `before`, those of its tables and of the objectives that it reaches,
 * and `after`, both closed by {0}. Made once, and freed with the process. */
const struct argp_option *wg__run_settings_options(const wg_setting_table *own, bool finetunes,
                                                   const struct argp_option *before,
                                                   const struct argp_option *after);
enum { WG__KEY_SETTING = 20000 };

/* Takes an option of wg__run_settings_options; ARGP_ERR_UNKNOWN for another key. Leaves with a
 * message on wrong usage. Options of objectives wait until the objective is known. */
error_t wg__run_settings_parse(wg__run_settings *settings, struct argp_state *state, int key,
                               const char *text);

/* Takes a value by the name of its row, for arguments that are no options. */
void wg__run_settings_give(wg__run_settings *settings, struct argp_state *state, const char *name,
                           const char *text);

/* Takes a file of --settings: a JSON object whose keys are the names of options. Leaves with a
 * message if the file is not good. Keys of objectives wait until the objective is known. */
void wg__run_settings_read_file(wg__run_settings *settings, const char *path);

/* Takes a JSON object of a record ({"schedule": "cosine"}), or the note of the checkpoint `path`.
 * -1 after telling of a setting that the run cannot change, or of a note that is none. */
void wg__run_settings_take_record(wg__run_settings *settings, const char *json);
int wg__run_settings_take_note(wg__run_settings *settings, const char *note, const char *path);

/* True if a value was given by more than a standard; `member` points into one of the structs. */
bool wg__run_settings_given(const wg__run_settings *settings, const void *member);

/* Where a member's value is from. */
wg__setting_origin wg__run_settings_origin(const wg__run_settings *settings, const void *member);

/* Marks a member as set by the run itself, so that the note has it. */
void wg__run_settings_decide(wg__run_settings *settings, const void *member);

/* Compares all values among the ranks of a group, but for names of files, whose contents the
 * training compares. Collective. -1 with [STATE: names the option and the rank that differ] */
int wg__run_settings_agree(const wg__run_settings *settings, wg_group *group);

/* All values that are set, as indented JSON for the note; freed by free. NULL without memory. */
char *wg__run_settings_note(const wg__run_settings *settings);

#endif
