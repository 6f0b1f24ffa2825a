/* Internals of checkpoints: the open file, HDF5's lock and errors, lists of datasets, and columns
 * of integers. */
#ifndef WG_IO_CHECKPOINT_FILE_H
#define WG_IO_CHECKPOINT_FILE_H

#include "base/replacement.h"
#include "io/checkpoint/checkpoint.h"

/* Later versions of HDF5 still have the functions of 1.10 under their names. */
#define H5_USE_110_API
#include <hdf5.h>

typedef struct wg__disk {
    int descriptor; /* open for reading, or for both; the checkpoint closes it */
    int error;      /* errno of the first failed write, or of the last failed read; 0: none */
    bool discard;   /* further writes are dropped */
} wg__disk;

/* Debian's build of HDF5 is not thread-safe, so one recursive lock is around all of its calls. A
 * function that calls HDF5 begins with WG__HOLD_HDF5; and holds the lock until it returns. In a
 * child of fork() the lock is free. */
int wg__hdf5_hold(void);
void wg__hdf5_release(const int *held);
#define WG__HOLD_HDF5                                                                              \
    __attribute__((cleanup(wg__hdf5_release), unused)) const int hdf5_is_held = wg__hdf5_hold()

#define WG__MAX_PATH 1024 /* of names within a file */

struct wg_checkpoint {
    char *path;          /* of the finished file */
    wg__replacement out; /* where a file with a name is written */
    bool is_written;     /* else it is read */
    bool unnamed;        /* the file has no name, and vanishes when it is closed */
    wg__disk disk;
    hid_t file;
    bool failed; /* a put failed: the file must not be committed */
};

/* Records why HDF5's last call failed (IO: the disk; FORMAT: the file is damaged) and returns -1.
 * Must be called before any other call of HDF5. */
int wg__checkpoint_fail(wg_checkpoint *file, const char *name, const char *where);

/* Begins a file without a name in the folder for temporary files ($TMPDIR, else /tmp). It vanishes
 * when it is closed, however the process ends. NULL with [NOT_FOUND, IO, MEMORY] */
wg_checkpoint *wg__checkpoint_create_unnamed(void);

/* Ends writing and opens the same file for reading: all values are on disk, and a file that has a
 * name is at its place, as after wg_checkpoint_commit. After an error the file can only be given to
 * wg_checkpoint_abort. [IO, FORMAT; STATE after a put that failed] */
int wg__checkpoint_reopen(wg_checkpoint *file);

/* Sets the creation properties of groups, the root included: no times, so that the same contents
 * give the same bytes, and all links in the header, where one checksum guards them. (Beyond eight
 * links HDF5 would use a heap; at damage there, 1.10.8 frees memory that it never allocated.)
 * Negative with HDF5's error. */
herr_t wg__hdf5_plain_groups(hid_t creation);

/* ---- Datasets (values.c) ---- */

/* The absolute names of all datasets below `group`, by name within each group. */
typedef struct wg__name_list {
    int64_t count, capacity;
    char **names;
} wg__name_list;

int wg__checkpoint_list(wg_checkpoint *file, const char *group, wg__name_list *list);
void wg__name_list_free(wg__name_list *list);

/* The spec of a dataset, checked against the bytes of the file. -1 with NOT_FOUND, FORMAT. */
int wg__checkpoint_spec(wg_checkpoint *file, const char *name, wg_spec *spec);

/* Columns: long rows of integers in a checkpoint. They are written by appending, read in ranges,
 * and never whole in memory.
 *
 *     on disk      |chunk|chunk|chunk|chunk|chunk|last.    32 KiB each, Fletcher-32 on each
 *     in memory       |           |     |                  a cache of chunks, up to a limit
 *
 * The cache is direct-mapped: chunk i is at place i modulo the number of places. For sequential and
 * for random reads other rules hit no more often. A column is for one thread at a time. */

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
 * NULL with [NOT_FOUND; FORMAT for a dataset that is no row of integers; MEMORY] */
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
