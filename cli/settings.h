/* The settings of a training run: what its arguments say, what a file of settings says, what the
 * run that is resumed says, and the defaults, in that order; one JSON object, which the checkpoint
 * keeps.
 *
 *     given on the command line   {"steps": 200, "lr": 0.001}
 *     in the file of --settings   {"lr": 0.01, "seed": 7}
 *     kept by the checkpoint      {"steps": 100, "lr": 0.001, "batch": 16, ...}
 *     defaults                    {"batch": 32, "seq": 128, ...}
 *
 * Its keys are the names of the options. */
#ifndef WG_CLI_SETTINGS_H
#define WG_CLI_SETTINGS_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "cli/model_kind.h"
#include "cli/profile.h"

/* The keys of options that set something; a verb's other options begin at WG__KEY_VERB. */
enum {
    WG__SET_MODEL = WG__KEY_OWN,
    WG__SET_TRAIN,
    WG__SET_PRESET,
    WG__SET_CONFIG,
    WG__SET_INIT,
    WG__SET_TOKENIZER,
    WG__SET_VOCAB_SIZE,
    WG__SET_EVAL,
    WG__SET_CORPUS,
    WG__SET_CORPUS_WEIGHTS,
    WG__SET_TOKENS,
    WG__SET_EVAL_TARGET,
    WG__SET_STEPS,
    WG__SET_EPOCHS,
    WG__SET_BATCH,
    WG__SET_SEQ,
    WG__SET_LR,
    WG__SET_SCHEDULE,
    WG__SET_WARMUP,
    WG__SET_FINAL,
    WG__SET_DECAY_STEPS,
    WG__SET_OPTIMIZER,
    WG__SET_MOMENTUM,
    WG__SET_BETA1,
    WG__SET_BETA2,
    WG__SET_WEIGHT_DECAY,
    WG__SET_CLIP,
    WG__SET_SEED,
    WG__SET_EVAL_EVERY,
    WG__SET_SAVE_EVERY,
    WG__SET_ACCUMULATE,
    WG__SET_EMA,
    WG__SET_PATIENCE,
    WG__SET_KEEP_BEST,
    WG__SET_KEEP_EVERY,
    WG__SET_RECOMPUTE,
    /* Those of the kinds whose defaults have them. */
    WG__SET_OWN,
    WG__SET_MASKED_SHARE = WG__SET_OWN,
    WG__SET_SPAN_MEAN,
    WG__SET_SENTENCE_SHARE,
    WG__SET_DOCUMENT_SHARE,
    WG__SET_PATTERN,
    WG__SET_VERBALIZER,
    WG__SET_END,
    WG__KEY_VERB = WG__SET_END + 100
};

/* What is said about this start of the run and not kept with it. */
typedef struct wg__run_arguments {
    const wg__model_kind *kind;
    const char *out;
    const char *log; /* NULL: none */
    int threads;     /* 0: as the library finds it */
    wg__profiling profiling;
    bool resume, overwrite, json;
    bool show_batch;  /* print the first batch, and be done */
    json_t *given;    /* the settings on the command line and in a file of settings */
    json_t *in_file;  /* the latter, as far as they rule; NULL: there are none */
    const char *file; /* the latter's */
} wg__run_arguments;

/* The options of every run, as a child of a verb's parser; its input is a wg__run_arguments whose
 * `given` is an object. */
extern const struct argp wg__run_options;

/* Takes up the value of an option that sets something. Does not return on wrong usage. */
void wg__setting_give(struct argp_state *state, int key, const char *text,
                      wg__run_arguments *arguments);

/* Takes up a file of settings: a JSON object whose keys are the names of options. What the command
 * line says rules, whether it stands before or after. Does not return if the file is not good. */
void wg__settings_read(const char *path, wg__run_arguments *arguments);

/* Frees what reading the arguments made. */
void wg__run_arguments_clear(wg__run_arguments *arguments);

/* The name by which a file is found from any folder; itself if it is not there at all. */
json_t *wg__setting_file(const char *path);

/* The settings that rule: those given, then those of `note`, which the checkpoint of the resumed
 * run kept, then defaults, of the kind of model (JSON) before those of all. note is NULL for a new
 * run. The caller frees them by json_decref. NULL after having told of a setting that the run
 * cannot change (`path` is its file), or of a bad note.
 */
json_t *wg__settings_merge(const json_t *given, const char *note, const char *path,
                           const char *kind_defaults);

/* Sets how many steps a run has, unless that was said, by its epochs of so many examples; and its
 * warm-up, unless that was said. */
void wg__settings_decide_steps(json_t *settings, int64_t examples);

/* Values of settings; NULL, 0, 0.0 or false for one that is not there. Texts are borrowed. */
const char *wg__setting_text(const json_t *settings, const char *name);
int64_t wg__setting_integer(const json_t *settings, const char *name);
double wg__setting_number(const json_t *settings, const char *name);
bool wg__setting_flag(const json_t *settings, const char *name);

#endif
