/* Replacing a file atomically. After a crash PATH holds the whole old file or the whole new one,
 * because the bytes go to PATH.tmp, which is synced and then renamed.
 *
 *     begin     open and lock PATH.tmp
 *               write to r.descriptor
 *     finish    sync, rename, sync folder
 *     end       remove PATH.tmp if it is still there, and unlock
 *
 * The temporary name is fixed, so the next writer reuses the file of a killed process. The lock
 * admits one writer at a time. */
#ifndef WG_BASE_REPLACEMENT_H
#define WG_BASE_REPLACEMENT_H

#include <stdint.h>

typedef struct wg__replacement {
    char *path;      /* the place, behind symbolic links */
    char *temporary; /* PATH.tmp; NULL once it is renamed */
    int descriptor;  /* open for reading and writing, empty at first */
} wg__replacement;

/* Begins to write a new file, or a file of the same mode in place of an existing one. After an
 * error there is nothing to end. -1 with NOT_FOUND, MEMORY, IO (also if another process writes the
 * file, and does not end within two seconds). */
int wg__replacement_begin(wg__replacement *r, const char *path, const char *where);

/* Puts the file into its place, on disk when this returns 0. -1 with IO, MEMORY. */
int wg__replacement_finish(wg__replacement *r, const char *where);

/* Closes the file, and removes it if it is not at its place. May be called twice. */
void wg__replacement_end(wg__replacement *r);

/* Writes `count` bytes as the whole file of that name. -1 with NOT_FOUND, IO, MEMORY. */
int wg__replace_file(const char *path, const void *bytes, int64_t count, const char *where);

/* Records errno as NOT_FOUND or IO, "PATH: reason", and returns -1. */
int wg__fail_with_errno(const char *path, const char *where);

/* Writes a whole range of an open file, also if a signal interrupts. -1 with errno. */
int wg__write_at(int descriptor, const void *bytes, int64_t count, int64_t offset);

#endif
