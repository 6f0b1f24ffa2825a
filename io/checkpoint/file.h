/* What the files of the checkpoint share: the open file, and HDF5's errors as ours. */
#ifndef WG_IO_CHECKPOINT_FILE_H
#define WG_IO_CHECKPOINT_FILE_H

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/hdf5_vfd.h"

#define WG__MAX_PATH 1024 /* of names within a file */

struct wg_checkpoint {
    char *path;      /* of the finished file */
    char *temporary; /* of the file that is being written; NULL: this one is read */
    bool unnamed;    /* it has no name any more, and goes when it is closed */
    wg__disk disk;
    hid_t file;
    bool failed; /* a put went wrong: the file must not be committed */
};

/* -1 after recording why HDF5's last call failed: IO if the disk did, FORMAT if the file is bad.
 * To be called before any other call of HDF5. */
int wg__checkpoint_fail(wg_checkpoint *file, const char *name, const char *where);

/* Begins a file without a name, in the folder for temporary files ($TMPDIR, else /tmp), which goes
 * when it is closed, however the process ends. NULL with [NOT_FOUND, IO, MEMORY] */
wg_checkpoint *wg__checkpoint_create_unnamed(void);

/* Ends writing and goes on reading: all values are on disk, and a file that has a name is at its
 * place, as by wg_checkpoint_commit. After an error the file is only good for wg_checkpoint_abort.
 * [IO, FORMAT; STATE after a put that failed] */
int wg__checkpoint_turn(wg_checkpoint *file);

/* How groups, the root among them, are made: without times, so that the same contents give the same
 * bytes, and with all links in the header, where one checksum guards them. (Beyond eight they would
 * go into a heap; meeting damage there, 1.10.8 frees what it never allocated.) Negative with HDF5's
 * error. */
herr_t wg__hdf5_plain_groups(hid_t creation);

/* ---- Datasets (checkpoint_list.c, checkpoint_get.c) ---- */

/* The absolute names of all datasets below `group`, sorted as HDF5 sorts: by name in each group. */
typedef struct wg__name_list {
    int64_t count, capacity;
    char **names;
} wg__name_list;

int wg__checkpoint_list(wg_checkpoint *file, const char *group, wg__name_list *list);
void wg__name_list_free(wg__name_list *list);

/* The spec of a dataset, checked against what the file really holds; -1 with NOT_FOUND, FORMAT. */
int wg__checkpoint_spec(wg_checkpoint *file, const char *name, wg_spec *spec);

#endif
