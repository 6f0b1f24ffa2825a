/* Results, as JSON on stdout or in files. */
#ifndef WG_CLI_RESULTS_H
#define WG_CLI_RESULTS_H

#include <jansson.h>
#include <stdio.h>

#include "train/metrics.h"

/* A JSON number; null for one that is not finite, which JSON cannot write. */
json_t *wg__json_number(double value);

/* An object of the means of these metrics, as many as there are up to a NULL, and of what `counted`
 * weighs, which is called `weight`. */
json_t *wg__json_metrics(const wg_metrics *metrics, const char *const *means, const char *counted,
                         const char *weight);

/* Prints a JSON object to stdout, indented, and frees it. */
void wg__print_json(json_t *object);

/* The same on one line. */
void wg__print_json_line(json_t *object);

/* A file for results, and its end, which tells whether all of it could be written. NULL, or -1,
 * with an error. */
FILE *wg__results_open(const char *path);
int wg__results_close(FILE *file, const char *path);

#endif
