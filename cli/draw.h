/* Pictures that need no network, no fonts and no scripts: SVG for a page or a file, and
 * bitmaps. Colours named var(--c0) follow the style of the page. */
#ifndef WG_CLI_DRAW_H
#define WG_CLI_DRAW_H

#include "train/trainer.h"

/* ---- The curves of a run: metrics by step, in training and on held-out text ---- */

/* The history of a checkpoint. {0} is none. wg_history_clear frees both. */
typedef struct wg__run_history {
    const char *path;
    wg_history training, evaluation;
} wg__run_history;

/* Both are empty for a checkpoint without a training. -1 with [NOT_FOUND, IO, FORMAT] */
int wg__run_history_read(wg__run_history *run, const char *path);

/* The metrics that share a pair of axes. */
typedef enum wg__panel_kind { WG__PANEL_LOSSES, WG__PANEL_ACCURACIES } wg__panel_kind;

/* Whether a run's metric is a loss (the total only if it is not the sum of others), or an accuracy;
 * and whether its training has any. */
bool wg__belongs(const wg__run_history *run, const char *metric, wg__panel_kind which);
bool wg__has_panel(const wg__run_history *run, wg__panel_kind which);

/* A metric by step. */
typedef struct wg__curve {
    int64_t count;
    double *steps, *values; /* (count) */
} wg__curve;

/* The finite values of a column; {0} if it is not there. Each is the mean over the last `smooth`
 * steps (1: itself), and where there are more than `most` of them, stretches of them become their
 * mean. The caller frees steps and values. */
wg__curve wg__curve_of(const wg_history *history, const char *metric, double smooth, int64_t most);

/* "mlm loss" of "mlm_loss"; of a path its name without folder and .h5. Written into `text`. */
const char *wg__metric_title(const char *metric, char *text, size_t size);
const char *wg__run_title(const char *path, char *text, size_t size);

/* ---- Pictures ---- */

/* Writes text with <, >, & and " as HTML and SVG have them. */
void wg__draw_text(FILE *file, const char *text);

/* A filled rectangle in an SVG that is open. */
void wg__draw_rectangle(FILE *file, double x, double y, double width, double height,
                        const char *fill, double opacity);

/* A curve of each metric of that kind, of training and of evaluations, with legend and axes. */
void wg__draw_curves(FILE *file, const wg__run_history *run, wg__panel_kind kind);

/* A small histogram below its name; nothing if no value is finite. */
void wg__draw_histogram(FILE *file, const char *name, int64_t count, const float *values,
                        bool is_gradient);

/* An image of (rows, columns) shares from 0, white, to 1, blue: a bitmap of 8 bits in base64. Small
 * shares are made visible by the square root. */
void wg__draw_bitmap(FILE *file, int64_t rows, int64_t columns, const float *shares);

#endif
