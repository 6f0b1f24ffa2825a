/* Output of the verbs: progress on stderr, results as JSON on stdout or in files. Also the handler
 * that lets a verb finish its step and save after Ctrl-C. */
#ifndef WG_CLI_OUTPUT_H
#define WG_CLI_OUTPUT_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "data/tokenizer/tokenizer.h"
#include "objectives/objective.h"

/* ---- Progress: a live line on a terminal, plain lines now and then elsewhere ---- */

typedef struct wg__progress {
    bool is_terminal;   /* isatty(STDERR_FILENO); all members below begin as 0 */
    bool line_open;     /* the live line is on the terminal */
    double last_shown;  /* by a clock that never goes back */
    double tokens_rate; /* a mean over the latest steps */
} wg__progress;

/* A wg_train_listener; context is the wg__progress. */
void wg__progress_report(const wg_train_report *report, void *context);

/* Leaves the cursor on a fresh line. */
void wg__progress_end(wg__progress *progress);

/* Listeners that print a note to stderr: of token files, and of models that are converted. */
void wg__note_tokens(void *context, const char *line);
void wg__note_model(const char *message, void *context);

/* ---- Results ---- */

/* A JSON number; null for one that is not finite, which JSON cannot write. */
json_t *wg__json_number(double value);

/* The number of that key; 0 if it is missing. */
double wg__json_number_at(const json_t *object, const char *key);

/* An object of the metrics that an evaluation found, with the weights that the rows name. */
json_t *wg__json_metrics(const wg_metric_row *rows, const wg_metrics *metrics);

/* Prints a JSON object to stdout and frees it. `layout` is JSON_INDENT(2), or 0 for one line. */
void wg__print_json(size_t layout, json_t *object);

/* ---- Signals ---- */

/* The signal that arrived, or 0. */
extern volatile sig_atomic_t wg__stop_signal;

/* From now on the first SIGINT or SIGTERM sets wg__stop_signal; a second one ends the process at
 * once. */
void wg__listen_for_stop(void);

/* The exit code of a verb: of the pending error for -1, of the signal if one came, or 0. */
int wg__cli_end(int status);

/* ---- Numbers, sizes and times as people write them, and whether to write in colours ---- */

/* A short text by value: wg__count(4385000).text is "4.39 M" until the full expression ends. */
typedef struct wg__unit_text {
    char text[32];
} wg__unit_text;

wg__unit_text wg__count(double count); /* "512", "4.39 M", "124 M", "7.24 G" */
wg__unit_text wg__bytes(double bytes); /* "512 B", "16.7 MiB", "1.5 GiB" */
wg__unit_text wg__seconds(
    double seconds); /* "820 us", "3.4 ms", "12.3 s", "4 min 10 s", "2 h 5 min" */

/* The escape sequences of a style where the stream takes colours, else "": it is a terminal,
 * NO_COLOR is unset or empty (https://no-color.org), and TERM is not "dumb". */
typedef struct wg__style {
    const char *bold, *dim, *accent, *plain;
} wg__style;
wg__style wg__style_of(FILE *stream);

/* ---- The tensors of a file as a tree, by the parts of their names: for `info' and `report' ----
 *
 *     {"name": "encoder.layer", "numbers": N, "bytes": N, "children": [
 *         {"name": "0", ..., "alike": 12, "last": "11"},        layer 0 shown for 0 to 11
 *     {"name": "pooler.dense.weight", "numbers": N, "bytes": N, "dtype": "f32", "shape": [2, 2]} */

/* A tensor as lists of tensors have it: {"name", "dtype" (as stored), "shape", "numbers",
 * "bytes"}. */
json_t *wg__tensor_row(const char *name, const char *type, int ndim, const int64_t *shape,
                       int64_t bytes);

/* Writes a list of sizes as "(2, 3)". */
void wg__shape_write(FILE *stream, const json_t *shape);

/* The tree of a list of wg__tensor_row; the root's name is "". A node with one child is joined with
 * it by a dot. Neighbours with numbers as names and equal children become one node, with their
 * count in "alike" and the last name in "last". */
json_t *wg__weights_tree(const json_t *rows);

/* Prints the children of the root, indented. */
void wg__weights_tree_print(const json_t *root, FILE *stream);

#endif
