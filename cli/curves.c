/* The curves of a run: see curves.h. */
#include "cli/curves.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* ---- Reading ---- */

int wg__run_history_read(wg__run_history *run, const char *path) {
    *run = (wg__run_history){.path = path};
    wg_checkpoint *file = wg_checkpoint_open(path);
    if (!file)
        return -1;
    int result = wg_history_get(&run->training, file, WG_HISTORY_TRAINING);
    if (result == 0)
        result = wg_history_get(&run->evaluation, file, WG_HISTORY_EVALUATION);
    wg_checkpoint_close(file);
    if (result == 0 && !wg__has_panel(run, WG__PANEL_LOSSES))
        result = wg_fail(WG_ERROR_STATE, path, "it has no training history");
    return result;
}

void wg__run_history_clear(wg__run_history *run) {
    wg_history_clear(&run->training);
    wg_history_clear(&run->evaluation);
}

/* ---- Which metrics: those whose names end in loss or accuracy ---- */

static bool ends_in(const char *text, const char *end) {
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static bool has_part_losses(const wg_history *history) {
    for (int i = 0; i < history->column_count; i++)
        if (ends_in(history->names[i], "_loss"))
            return true;
    return false;
}

bool wg__belongs(const wg__run_history *run, const char *metric, wg__panel_kind which) {
    if (which == WG__PANEL_ACCURACIES)
        return ends_in(metric, "accuracy");
    return has_part_losses(&run->training) ? ends_in(metric, "_loss") : strcmp(metric, "loss") == 0;
}

bool wg__has_panel(const wg__run_history *run, wg__panel_kind which) {
    for (int i = 0; i < run->training.column_count; i++)
        if (wg__belongs(run, run->training.names[i], which))
            return true;
    return false;
}

/* ---- Curves ---- */

/* The finite points of a column of the history. A point may be the mean of several steps; its count
 * is their number. */
static void take_points(const wg_history *history, const double *values, wg__curve *curve,
                        double *weights) {
    const double *steps = wg_history_column(history, "step"),
                 *counts = wg_history_column(history, "count");
    for (int64_t i = 0; i < history->row_count; i++)
        if (isfinite(values[i])) {
            weights[curve->count] = counts && isfinite(counts[i]) ? counts[i] : 1;
            curve->steps[curve->count] = steps[i];
            curve->values[curve->count++] = values[i];
        }
}

/* Each value becomes the mean of those in (step - smooth, step], by their weights. */
static void smooth_values(wg__curve *curve, const double *weights, double smooth) {
    double *means = wg__cli_calloc((size_t)curve->count, sizeof *means), sum = 0, weight = 0;
    int64_t first = 0;
    for (int64_t i = 0; i < curve->count; i++) {
        sum += weights[i] * curve->values[i];
        weight += weights[i];
        for (; first < i && curve->steps[first] <= curve->steps[i] - smooth; first++) {
            sum -= weights[first] * curve->values[first];
            weight -= weights[first];
        }
        means[i] = first == i ? curve->values[i] : sum / weight;
    }
    memcpy(curve->values, means, (size_t)curve->count * sizeof *means);
    free(means);
}

static void thin(wg__curve *curve, const double *weights, int64_t most) {
    const int64_t width = (curve->count + most - 1) / most;
    int64_t kept = 0;
    for (int64_t row = 0; width > 1 && row < curve->count; row += width) {
        double value = 0, step = 0, weight = 0;
        for (int64_t i = row; i < row + width && i < curve->count; i++) {
            value += weights[i] * curve->values[i];
            step += weights[i] * curve->steps[i];
            weight += weights[i];
        }
        curve->steps[kept] = step / weight;
        curve->values[kept++] = value / weight;
    }
    if (width > 1)
        curve->count = kept;
}

wg__curve wg__curve_of(const wg_history *history, const char *metric, double smooth, int64_t most) {
    const double *values = wg_history_column(history, metric);
    const size_t rows = (size_t)history->row_count;
    wg__curve curve = {0};
    if (!values)
        return curve;
    double *weights = wg__cli_calloc(rows, sizeof *weights);
    curve.steps = wg__cli_calloc(rows, sizeof *curve.steps);
    curve.values = wg__cli_calloc(rows, sizeof *curve.values);
    take_points(history, values, &curve, weights);
    if (smooth > 1)
        smooth_values(&curve, weights, smooth);
    thin(&curve, weights, most);
    free(weights);
    return curve;
}

void wg__curve_clear(wg__curve *curve) {
    free(curve->steps);
    free(curve->values);
    *curve = (wg__curve){0};
}

/* ---- Titles ---- */

const char *wg__metric_title(const char *metric, char *text, size_t size) {
    snprintf(text, size, "%s", metric);
    for (char *c = text; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    return text;
}

const char *wg__run_title(const char *path, char *text, size_t size) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t length = strlen(name);
    const bool has_ending = length > 3 && strcmp(name + length - 3, ".h5") == 0;
    snprintf(text, size, "%.*s", (int)(has_ending ? length - 3 : length), name);
    return text;
}
