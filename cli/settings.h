/* The settings of a pre-training run: what its arguments say, what the run that is resumed says,
 * and the defaults, in that order; one JSON object, which the checkpoint keeps.
 *
 *     given on the command line   {"steps": 200, "lr": 0.001}
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

#include "cli/model_kind.h"

/* What is said about this start of the run and not kept with it. */
typedef struct wg__pretrain_arguments {
    const wg__model_kind *kind;
    const char *out;
    const char *log; /* NULL: none */
    int threads;     /* 0: as the library finds it */
    bool resume, overwrite, json;
    json_t *given; /* the settings on the command line */
} wg__pretrain_arguments;

/* Reads the arguments of `wengert pretrain`. Does not return on wrong usage. */
void wg__settings_parse(int argc, char **argv, wg__pretrain_arguments *arguments);

/* The settings that rule: those given, then those of `note`, which the checkpoint of the resumed
 * run kept, then defaults, of the kind of model (JSON) before those of all. note is NULL for a new
 * run. The caller frees them by json_decref. NULL after having told of a setting that the run
 * cannot change (`path` is its file), or of a bad note.
 */
json_t *wg__settings_merge(const json_t *given, const char *note, const char *path,
                           const char *kind_defaults);

/* Values of settings; NULL, 0, 0.0 or false for one that is not there. Texts are borrowed. */
const char *wg__setting_text(const json_t *settings, const char *name);
int64_t wg__setting_integer(const json_t *settings, const char *name);
double wg__setting_number(const json_t *settings, const char *name);
bool wg__setting_flag(const json_t *settings, const char *name);

#endif
