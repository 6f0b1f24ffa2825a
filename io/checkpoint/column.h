/* Long rows of integers in a checkpoint, never whole in memory: appended to while they are written,
 * and read in ranges.
 *
 *     on disk      |chunk|chunk|chunk|chunk|chunk|rest.    32 KiB each, Fletcher-32 on each
 *     in memory       |           |     |                  those used last, up to so many bytes
 *
 * Chunk i has its place in memory at i modulo the places: what is read in order or by chance is
 * found again as often as by any other rule. One thread at a time, as all of a checkpoint. */
#ifndef WG_IO_CHECKPOINT_COLUMN_H
#define WG_IO_CHECKPOINT_COLUMN_H

#include "io/checkpoint/checkpoint.h"

typedef struct wg__column wg__column;

/* ---- Writing ---- */

/* A new row of unsigned integers of 2 bytes, or signed ones of 4 or 8; a dataset named as by
 * wg_checkpoint_put_tensor. NULL with [IO, MEMORY, ARGUMENT, STATE] */
wg__column *wg__column_create(wg_checkpoint *file, const char *name, int width);

/* Appends values, which fit. [IO] */
int wg__column_append(wg__column *column, int64_t count, const int32_t *values);
int wg__column_push(wg__column *column, int64_t value);

/* Writes what is left, and frees the column in every case; NULL is allowed. [IO] */
int wg__column_end(wg__column *column);

/* ---- Reading ---- */

/* A row to be read, whose values are to be 0 up to but without `limit`, with at most `bytes` of it
 * in memory. NULL with [NOT_FOUND; FORMAT for what is no such row; MEMORY] */
wg__column *wg__column_open(wg_checkpoint *file, const char *name, int64_t limit, int64_t bytes);

/* Frees it, whether it was read or written; NULL is allowed. */
void wg__column_free(wg__column *column);

/* How many values it has; NULL: 0. */
int64_t wg__column_count(const wg__column *column);

/* The value of that index, or -1 with [FORMAT for damage and values out of range; IO, MEMORY]. The
 * index must be one. */
int64_t wg__column_at(wg__column *column, int64_t index);

/* The values of a range, which must be one. [FORMAT, IO, MEMORY] */
int wg__column_read(wg__column *column, int64_t first, int64_t count, int32_t *values);

#endif
