/* The history of a run: a table that grows by a row for each step or evaluation.
 *
 *     step  loss   mlm_loss  ...      a column appears with its first value;
 *        1  9.81       9.10           earlier rows have NaN there
 *        2  9.77       9.06
 *
 * In a checkpoint each column is a dataset with a number for each row.
 *
 * A history has at most WG_HISTORY_ROWS rows, however long the run is. When it is full,
 * neighbouring old rows are joined, and "count" is the number of rows joined into a row. The newest
 * WG_HISTORY_RECENT rows are never joined. So old rows become evenly coarser:
 *
 *     step   1.5   3.5   5.5  ...  4095  4096
 *     count    2     2     2  ...     1     1
 *
 * Without the column "count" no rows are joined. */
#ifndef WG_TRAIN_HISTORY_H
#define WG_TRAIN_HISTORY_H

#include "../io/checkpoint/checkpoint.h"
#include "metrics.h"

WG_BEGIN_DECLS

#define WG_HISTORY_COLUMNS 24
#define WG_HISTORY_ROWS 4096
#define WG_HISTORY_RECENT 1024

typedef struct wg_history {
    int column_count;
    char names[WG_HISTORY_COLUMNS][WG_METRIC_NAME_SIZE];
    double *columns[WG_HISTORY_COLUMNS]; /* row_count numbers each */
    int64_t row_count, capacity;
} wg_history;

/* How two rows are joined. MEAN: the mean of both rows, weighted by their counts ("step", too); if
 * a metric is NaN in either row, the joined row has the value of that row which has a number.
 * LATER: the later row; but the row with the least "loss" of all is never joined to a later one. A
 * count is then the number of rows since the row before. */
typedef enum wg__history_join { WG__HISTORY_MEAN, WG__HISTORY_LATER } wg__history_join;

/* Makes room for a row: joins old rows if the history is full. The choice of rows depends on the
 * rows alone, so a resumed run has the same history. [ARGUMENT for too many columns; MEMORY] */
int wg__history_make_room(wg_history *history, wg__history_join join);

/* The number of rows that were joined into a row; at least 1. */
int64_t wg__history_count(const wg_history *history, int64_t row);

/* The row with the least finite "loss"; -1 if there is none. */
int64_t wg__history_best(const wg_history *history);

/* Begins a row, of NaN everywhere. {0} is an empty history. [MEMORY] */
int wg__history_add_row(wg_history *history);

/* Writes into the last row, which must exist. [ARGUMENT for too many columns; MEMORY] */
int wg__history_set(wg_history *history, const char *name, double value);

/* The column of that name, row_count numbers, borrowed until the history changes; NULL if there is
 * none (no error is recorded). */
WG_API const double *wg_history_column(const wg_history *history, const char *name);

/* Writes every column as a dataset below `group`; an empty history writes nothing. [as
 * wg_checkpoint_put_tensor] */
int wg__history_put(const wg_history *history, wg_checkpoint *file, const char *group);

/* Reads what wg__history_put wrote, into an empty history; a group that is not there leaves it
 * empty. [FORMAT] */
WG_API int wg_history_get(wg_history *history, wg_checkpoint *file, const char *group);

/* Frees the columns and makes the history empty. */
WG_API void wg_history_clear(wg_history *history);

WG_END_DECLS

#endif
