/* Files that take the place of others: see replacement.h. */
#include "base/replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/internal.h"

int wg__fail_with_errno(const char *path, const char *where) {
    const int reason = errno;
    const char *slash = strrchr(path, '/');
    char folder[512] = "";
    if (slash && slash > path && (size_t)(slash - path) < sizeof folder)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    if (reason == ENOENT && *folder && access(folder, F_OK) < 0)
        return wg_fail(WG_ERROR_NOT_FOUND, where, "%s: %s: there is no folder %s", path,
                       strerror(reason), folder);
    return wg_fail(reason == ENOENT ? WG_ERROR_NOT_FOUND : WG_ERROR_IO, where, "%s: %s", path,
                   strerror(reason));
}

int wg__write_at(int descriptor, const void *bytes, int64_t count, int64_t offset) {
    for (int64_t done = 0; done < count;) {
        const ssize_t put = pwrite(descriptor, (const char *)bytes + done, (size_t)(count - done),
                                   (off_t)(offset + done));
        if (put < 0 && errno != EINTR)
            return -1;
        done += put > 0 ? put : 0;
    }
    return 0;
}

/* The place to write to: an existing file's path behind symbolic links, and its mode (0: none). */
static int find_place(wg__replacement *r, const char *path, mode_t *mode, const char *where) {
    struct stat status;
    char *real = NULL;
    *mode = 0;
    if (stat(path, &status) == 0) {
        if (!S_ISREG(status.st_mode))
            return wg_fail(WG_ERROR_IO, where, "%s is not a regular file", path);
        *mode = status.st_mode & 0777;
        if (!(real = realpath(path, NULL)))
            return wg__fail_with_errno(path, where);
    }
    r->path = wg__strdup(real ? real : path);
    free(real);
    const size_t length = r->path ? strlen(r->path) : 0;
    r->temporary = r->path ? wg__alloc(length + sizeof ".tmp") : NULL;
    if (!r->temporary)
        return -1;
    memcpy(r->temporary, r->path, length);
    memcpy(r->temporary + length, ".tmp", sizeof ".tmp");
    return 0;
}

/* True if the descriptor is still the file of that name: the process that held the lock before may
 * have renamed it. */
static bool is_still_there(int descriptor, const char *path) {
    struct stat ours, there;
    return fstat(descriptor, &ours) == 0 && stat(path, &there) == 0 &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

/* Locks the file, also on a file system that has no locks; false if another holds the lock. A
 * killed process holds its lock until the disk has what it was writing, although whoever waited for
 * the process may have gone on (mpirun does): so the lock is waited for a moment. */
static bool lock(int descriptor) {
    enum { TRIES = 100, NANOSECONDS = 20000000 };
    const struct timespec pause = {.tv_nsec = NANOSECONDS};
    for (int i = 0; flock(descriptor, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK; i++) {
        if (i == TRIES)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

/* Opens and locks the temporary file, which a killed process may have left. Returns 0; 1 to try
 * again; -1 with an error. */
static int open_temporary(wg__replacement *r, const char *where) {
    r->descriptor = open(r->temporary, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (r->descriptor < 0)
        return wg__fail_with_errno(r->path, where);
    if (lock(r->descriptor)) {
        if (is_still_there(r->descriptor, r->temporary))
            return 0;
        close(r->descriptor);
        r->descriptor = -1;
        return 1;
    }
    close(r->descriptor);
    r->descriptor = -1;
    return wg_fail(WG_ERROR_IO, where, "%s is being written by another process or checkpoint",
                   r->path);
}

int wg__replacement_begin(wg__replacement *r, const char *path, const char *where) {
    *r = (wg__replacement){.descriptor = -1};
    mode_t mode;
    int status = find_place(r, path, &mode, where) < 0 ? -1 : 1;
    while (status > 0)
        status = open_temporary(r, where);
    if (status == 0 &&
        (ftruncate(r->descriptor, 0) < 0 || (mode && fchmod(r->descriptor, mode) < 0)))
        status = wg__fail_with_errno(r->temporary, where);
    if (status < 0)
        wg__replacement_end(r);
    return status;
}

/* Syncs the folder of `path`, without which a rename may be lost in a crash. File systems that
 * cannot sync a folder answer EINVAL. */
static int sync_folder(const char *path, const char *where) {
    char *copy = wg__strdup(path);
    if (!copy)
        return -1;
    int status = 0;
    const int descriptor = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0 || (fsync(descriptor) < 0 && errno != EINVAL))
        status = wg__fail_with_errno(path, where);
    if (descriptor >= 0)
        close(descriptor);
    wg__free(copy);
    return status;
}

int wg__replacement_finish(wg__replacement *r, const char *where) {
    if (fsync(r->descriptor) < 0 || rename(r->temporary, r->path) < 0)
        return wg__fail_with_errno(r->path, where);
    wg__free(r->temporary);
    r->temporary = NULL;
    return sync_folder(r->path, where);
}

void wg__replacement_end(wg__replacement *r) {
    /* Only the holder of the lock removes the file. */
    if (r->descriptor >= 0 && r->temporary)
        unlink(r->temporary);
    if (r->descriptor >= 0)
        close(r->descriptor);
    wg__free(r->temporary);
    wg__free(r->path);
    *r = (wg__replacement){.descriptor = -1};
}

int wg__replace_file(const char *path, const void *bytes, int64_t count, const char *where) {
    wg__replacement r;
    if (wg__replacement_begin(&r, path, where) < 0)
        return -1;
    int status = wg__write_at(r.descriptor, bytes, count, 0) < 0
                     ? wg__fail_with_errno(r.path, where)
                     : wg__replacement_finish(&r, where);
    wg__replacement_end(&r);
    return status;
}
