/* The curves of a run: metrics by step, in training and on held-out text, as `plot` and `report`
 * draw them. */
#ifndef WG_CLI_CURVES_H
#define WG_CLI_CURVES_H

#include "train/trainer.h"

/* The history of a checkpoint. {0} is none. */
typedef struct wg__run_history {
    const char *path;
    wg_history training, evaluation;
} wg__run_history;

/* -1 with [NOT_FOUND, IO, FORMAT; STATE for a checkpoint without a training] */
int wg__run_history_read(wg__run_history *run, const char *path);
void wg__run_history_clear(wg__run_history *run);

/* The curves and axes of one picture. */
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
 * mean. Freed with wg__curve_clear. */
wg__curve wg__curve_of(const wg_history *history, const char *metric, double smooth, int64_t most);
void wg__curve_clear(wg__curve *curve);

/* "mlm loss" of "mlm_loss"; of a path its name without folder and .h5. Written into `text`. */
const char *wg__metric_title(const char *metric, char *text, size_t size);
const char *wg__run_title(const char *path, char *text, size_t size);

#endif
