/* Named weighted means, and the table of a run's metrics: see metrics.h and history.h. */
#include "train/history.h"

#include <math.h>
#include <string.h>

#include "train/internal.h"

enum { FIRST_CAPACITY = 1024 };

/* Rows that joining makes free. */
enum { ROOM = 512 };

static const char count_name[] = "count";

static int column_index(const wg_history *history, const char *name) {
    for (int i = 0; i < history->column_count; i++)
        if (strcmp(history->names[i], name) == 0)
            return i;
    return -1;
}

static int resize(wg_history *history, int64_t capacity) {
    for (int i = 0; i < history->column_count; i++) {
        double *column = wg__alloc_array(capacity, sizeof *column);
        if (!column)
            return -1;
        memcpy(column, history->columns[i], (size_t)history->row_count * sizeof *column);
        wg__free(history->columns[i]);
        history->columns[i] = column;
    }
    history->capacity = capacity;
    return 0;
}

int wg__history_add_row(wg_history *history) {
    if (history->row_count == history->capacity &&
        resize(history, history->capacity ? 2 * history->capacity : FIRST_CAPACITY) < 0)
        return -1;
    for (int i = 0; i < history->column_count; i++)
        history->columns[i][history->row_count] = strcmp(history->names[i], count_name) ? NAN : 1;
    history->row_count++;
    return 0;
}

static int add_column(wg_history *history, const char *name) {
    if (history->column_count == WG_HISTORY_COLUMNS || strlen(name) >= WG_METRIC_NAME_SIZE)
        return wg_fail(WG_ERROR_ARGUMENT, "history",
                       "no room for '%s': %d columns with names of %d bytes are kept", name,
                       WG_HISTORY_COLUMNS, WG_METRIC_NAME_SIZE - 1);
    double *column = wg__alloc_array(history->capacity, sizeof *column);
    if (!column)
        return -1;
    for (int64_t row = 0; row < history->row_count; row++)
        column[row] = NAN;
    int index = history->column_count++;
    strcpy(history->names[index], name);
    history->columns[index] = column;
    return index;
}

int wg__history_set(wg_history *history, const char *name, double value) {
    int index = column_index(history, name);
    if (index < 0)
        index = add_column(history, name);
    if (index < 0)
        return -1;
    history->columns[index][history->row_count - 1] = value;
    return 0;
}

/* ---- A bounded number of rows ---- */

int64_t wg__history_count(const wg_history *history, int64_t row) {
    const double *counts = wg_history_column(history, count_name);
    return counts ? (int64_t)counts[row] : 1;
}

int64_t wg__history_best(const wg_history *history) {
    const double *losses = wg_history_column(history, "loss");
    int64_t best = -1;
    for (int64_t row = 0; losses && row < history->row_count; row++)
        if (isfinite(losses[row]) && (best < 0 || losses[row] < losses[best]))
            best = row;
    return best;
}

/* Joins neighbouring old rows whose counts add up to at most `most`. */
static void join_old(wg_history *history, wg__history_join join, double most) {
    const double *counts = wg_history_column(history, count_name);
    const int64_t old = history->row_count - WG_HISTORY_RECENT;
    int64_t best = join == WG__HISTORY_LATER ? wg__history_best(history) : -1, kept = 0;
    for (int64_t row = 0; row < history->row_count; row++) {
        const bool joins =
            row > 0 && row < old && kept - 1 != best && counts[kept - 1] + counts[row] <= most;
        const int64_t to = joins ? kept - 1 : kept;
        const double to_count = counts[to], from_count = counts[row];
        for (int i = 0; i < history->column_count; i++) {
            double *column = history->columns[i], a = column[to], b = column[row];
            if (joins && column == counts)
                column[to] = to_count + from_count;
            else if (!joins || join != WG__HISTORY_MEAN || isnan(a))
                column[to] = b;
            else if (!isnan(b))
                column[to] = (a * to_count + b * from_count) / (to_count + from_count);
        }
        kept += !joins;
        if (row == best)
            best = kept - 1;
    }
    history->row_count = kept;
}

int wg__history_make_room(wg_history *history, wg__history_join join) {
    if (history->row_count < WG_HISTORY_ROWS)
        return 0;
    const bool has_counts = column_index(history, count_name) >= 0;
    const int index = has_counts ? 0 : add_column(history, count_name);
    if (index < 0)
        return -1;
    for (int64_t row = 0; !has_counts && row < history->row_count; row++)
        history->columns[index][row] = 1;
    double most = 1;
    for (int64_t row = 0; row < history->row_count; row++)
        most = fmax(most, (double)wg__history_count(history, row));
    join_old(history, join, most);
    while (history->row_count > WG_HISTORY_ROWS - ROOM)
        join_old(history, join, most *= 2);
    return history->capacity > WG_HISTORY_ROWS ? resize(history, WG_HISTORY_ROWS) : 0;
}

/* ---- Columns ---- */

const double *wg_history_column(const wg_history *history, const char *name) {
    int index = column_index(history, name);
    return index < 0 ? NULL : history->columns[index];
}

int wg__history_put(const wg_history *history, wg_checkpoint *file, const char *group) {
    char name[256];
    for (int i = 0; history->row_count > 0 && i < history->column_count; i++) {
        snprintf(name, sizeof name, "%s/%s", group, history->names[i]);
        wg_scope scope;
        wg_scope_begin(&scope);
        const int status = wg_checkpoint_put_tensor(
            file, name, wg_from_array(WG_F64, 1, &history->row_count, history->columns[i]));
        wg_scope_end(&scope, NULL);
        if (status < 0)
            return -1;
    }
    return 0;
}

/* ---- Reading: the datasets of the file are the columns ---- */

typedef struct column_list {
    const char *group;
    size_t group_length;
    wg_history *history;
} column_list;

/* Adds a column for the dataset "GROUP/NAME". Its numbers are read later. */
static int visit_column(const char *name, const wg_spec *spec, void *context) {
    column_list *list = context;
    wg_history *history = list->history;
    if (strncmp(name, list->group, list->group_length) != 0 || name[list->group_length] != '/')
        return 0;
    const char *column = name + list->group_length + 1;
    if (spec->ndim != 1 || spec->dtype != WG_F64)
        return wg_fail(WG_ERROR_FORMAT, "history", "%s is no list of f64", name);
    if (history->column_count > 0 && spec->shape[0] != history->row_count)
        return wg_fail(WG_ERROR_FORMAT, "history", "%s: the columns of a history differ in length",
                       name);
    if (history->column_count == 0)
        history->row_count = history->capacity = spec->shape[0];
    return add_column(history, column) < 0 ? -1 : 0;
}

int wg_history_get(wg_history *history, wg_checkpoint *file, const char *group) {
    column_list list = {.group = group, .group_length = strlen(group), .history = history};
    int result = wg_checkpoint_each(file, visit_column, &list);
    for (int i = 0; result == 0 && i < history->column_count; i++) {
        char name[256];
        snprintf(name, sizeof name, "%s/%s", group, history->names[i]);
        wg_scope scope;
        wg_scope_begin(&scope);
        result = wg_to_array(wg_checkpoint_get_tensor(file, name), history->columns[i]);
        wg_scope_end(&scope, NULL);
    }
    if (result < 0)
        wg_history_clear(history);
    return result < 0 ? -1 : 0;
}

void wg_history_clear(wg_history *history) {
    for (int i = 0; i < history->column_count; i++)
        wg__free(history->columns[i]);
    *history = (wg_history){0};
}

/* ---- Named weighted means ---- */

static const wg_metric *find(const wg_metrics *metrics, const char *name) {
    for (int i = 0; i < metrics->count; i++)
        if (strcmp(metrics->metrics[i].name, name) == 0)
            return &metrics->metrics[i];
    return NULL;
}

int wg_metrics_add(wg_metrics *metrics, const char *name, double value, double weight) {
    wg_metric *metric = (wg_metric *)find(metrics, name);
    if (!metric) {
        size_t length = strlen(name);
        if (length == 0 || length >= WG_METRIC_NAME_SIZE)
            return wg_fail(WG_ERROR_ARGUMENT, "metrics",
                           "'%s' is no name for a metric; wanted 1 to %d bytes", name,
                           WG_METRIC_NAME_SIZE - 1);
        if (metrics->count == WG_METRIC_MAX)
            return wg_fail(WG_ERROR_ARGUMENT, "metrics", "'%s' is one too many: %d are kept", name,
                           WG_METRIC_MAX);
        metric = &metrics->metrics[metrics->count++];
        *metric = (wg_metric){0};
        memcpy(metric->name, name, length + 1);
    }
    if (weight != 0) { /* a value with weight 0 may be NaN */
        metric->sum += value * weight;
        metric->weight += weight;
    }
    return 0;
}

double wg__metric_value(const wg_metric *metric) {
    return metric->weight == 0 ? NAN : metric->sum / metric->weight;
}

double wg_metrics_get(const wg_metrics *metrics, const char *name) {
    const wg_metric *metric = find(metrics, name);
    return metric ? wg__metric_value(metric) : NAN;
}

double wg_metrics_weight(const wg_metrics *metrics, const char *name) {
    const wg_metric *metric = find(metrics, name);
    return metric ? metric->weight : 0;
}

int wg__metrics_sum(wg_group *group, wg_metrics *metrics) {
    wg_metrics all = *metrics;
    if (wg_group_size(group) == 1)
        return 0;
    if (wg_group_broadcast(group, 0, sizeof all, &all) < 0)
        return -1;
    double sums[1 + 2 * WG_METRIC_MAX] = {(double)metrics->tokens};
    for (int i = 0; i < all.count; i++) {
        const wg_metric *mine = find(metrics, all.metrics[i].name);
        sums[1 + 2 * i] = mine ? mine->sum : 0;
        sums[2 + 2 * i] = mine ? mine->weight : 0;
    }
    if (wg_group_sum(group, WG_GROUP_F64, 1 + 2 * all.count, sums) < 0)
        return -1;
    for (int i = 0; i < metrics->count; i++)
        if (!find(&all, metrics->metrics[i].name))
            return wg_fail(WG_ERROR_STATE, "metrics", "only some ranks have the metric \"%s\"",
                           metrics->metrics[i].name);
    all.tokens = (int64_t)sums[0];
    for (int i = 0; i < all.count; i++) {
        all.metrics[i].sum = sums[1 + 2 * i];
        all.metrics[i].weight = sums[2 + 2 * i];
    }
    *metrics = all;
    return 0;
}
