/* What the verbs print: progress on stderr, results as JSON on stdout or in files; and the signal
 * by which Ctrl-C ends them in good order. */
#ifndef WG_CLI_OUTPUT_H
#define WG_CLI_OUTPUT_H

#include <jansson.h>
#include <signal.h>
#include <stdio.h>

#include "data/tokenizer/wordpiece.h"
#include "objectives/objective.h"

/* ---- Progress: a live line on a terminal, plain lines now and then elsewhere ---- */

typedef struct wg__progress {
    bool is_terminal;
    bool line_open;     /* a live line stands on the terminal */
    double last_shown;  /* by a clock that never goes back */
    double tokens_rate; /* a mean over the latest steps */
} wg__progress;

wg__progress wg__progress_begin(void);

/* A wg_train_listener; context is the wg__progress. */
void wg__progress_report(const wg_train_report *report, void *context);

/* Leaves the cursor on a fresh line. */
void wg__progress_end(wg__progress *progress);

/* Notes on token files, on stderr. */
void wg__note_tokens(void *context, const char *line);

/* ---- Results ---- */

/* A JSON number; null for one that is not finite, which JSON cannot write. */
json_t *wg__json_number(double value);

/* An object of the metrics that an evaluation found, with the weights that the rows name. */
json_t *wg__json_metrics(const wg_metric_row *rows, const wg_metrics *metrics);

/* Prints a JSON object to stdout, indented, or on one line, and frees it. */
void wg__print_json(json_t *object);
void wg__print_json_line(json_t *object);

/* ---- Signals ---- */

/* From now on the first SIGINT or SIGTERM sets what wg__stop_signal gives; a second one ends the
 * process at once. */
void wg__listen_for_stop(void);

/* The signal that came, or 0. */
const volatile sig_atomic_t *wg__stop_signal(void);

#endif
