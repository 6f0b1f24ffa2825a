/* Long rows of integers in a checkpoint: appended to when written, read in ranges, and never held
 * whole in memory.
 *
 *     on disk      |chunk|chunk|chunk|chunk|chunk|rest.    32 KiB each, Fletcher-32 on each
 *     in memory       |           |     |                  the chunks used last, up to a limit
 *
 * Chunk i is cached at place i modulo the number of places, which for sequential and for random
 * reads hits as often as any other rule. One thread at a time, like all of a checkpoint. */
#ifndef WG_IO_CHECKPOINT_COLUMN_H
#define WG_IO_CHECKPOINT_COLUMN_H

#include "io/checkpoint/checkpoint.h"

typedef struct wg__column wg__column;

/* ---- Writing ---- */

/* Creates a row of unsigned integers of 2 bytes, or signed ones of 4 or 8 bytes, as a dataset named
 * as by wg_checkpoint_put_tensor. NULL with [IO, MEMORY, ARGUMENT, STATE] */
wg__column *wg__column_create(wg_checkpoint *file, const char *name, int width);

/* Appends values, which must fit the width. [IO] */
int wg__column_append(wg__column *column, int64_t count, const int32_t *values);
int wg__column_push(wg__column *column, int64_t value);

/* Writes the last chunk and frees the column in every case; NULL is allowed. [IO] */
int wg__column_end(wg__column *column);

/* ---- Reading ---- */

/* Opens a row whose values must be at least 0 and below `limit`, and caches at most `bytes` of it.
 * NULL with [NOT_FOUND; FORMAT for a dataset that is no such row; MEMORY] */
wg__column *wg__column_open(wg_checkpoint *file, const char *name, int64_t limit, int64_t bytes);

/* Frees a column that was read or written; NULL is allowed. */
void wg__column_free(wg__column *column);

/* The number of values; 0 given NULL. */
int64_t wg__column_count(const wg__column *column);

/* The value at an index, which must be within the row; -1 with [FORMAT for damage and values out of
 * range; IO, MEMORY] */
int64_t wg__column_at(wg__column *column, int64_t index);

/* The values of a range, which must be within the row. [FORMAT, IO, MEMORY] */
int wg__column_read(wg__column *column, int64_t first, int64_t count, int32_t *values);

#endif
