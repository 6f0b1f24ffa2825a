/* Replacing a file atomically: see replacement.h. */
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

/* Opens and locks the temporary file, which a killed process may have left. If the former holder of
 * the lock has renamed the file meanwhile, opens a new one. The lock is tried for two seconds: a
 * killed process holds its lock until its last write has reached the disk, and mpirun may return
 * earlier. */
static int open_temporary(wg__replacement *r, const char *where) {
    enum { TRIES = 100, NANOSECONDS = 20000000 };
    const struct timespec pause = {.tv_nsec = NANOSECONDS};
    for (;;) {
        struct stat ours, there;
        r->descriptor = open(r->temporary, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (r->descriptor < 0)
            return wg__fail_with_errno(r->path, where);
        bool is_locked = false;
        for (int i = 0; i <= TRIES && !is_locked; i++) {
            /* A file system without locks counts as locked. */
            is_locked = flock(r->descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
            if (!is_locked && i < TRIES)
                nanosleep(&pause, NULL);
        }
        if (is_locked && fstat(r->descriptor, &ours) == 0 && stat(r->temporary, &there) == 0 &&
            ours.st_ino == there.st_ino && ours.st_dev == there.st_dev)
            return 0;
        close(r->descriptor);
        r->descriptor = -1;
        if (!is_locked)
            return wg_fail(WG_ERROR_IO, where,
                           "%s is being written by another process or checkpoint", r->path);
    }
}

int wg__replacement_begin(wg__replacement *r, const char *path, const char *where) {
    *r = (wg__replacement){.descriptor = -1};
    mode_t mode;
    int status = find_place(r, path, &mode, where);
    if (status == 0)
        status = open_temporary(r, where);
    if (status == 0 &&
        (ftruncate(r->descriptor, 0) < 0 || (mode && fchmod(r->descriptor, mode) < 0)))
        status = wg__fail_with_errno(r->temporary, where);
    if (status < 0)
        wg__replacement_end(r);
    return status;
}

int wg__replacement_finish(wg__replacement *r, const char *where) {
    if (fsync(r->descriptor) < 0 || rename(r->temporary, r->path) < 0)
        return wg__fail_with_errno(r->path, where);
    wg__free(r->temporary);
    r->temporary = NULL;
    /* Without a sync of the folder, a crash may lose the rename. File systems that cannot sync a
     * folder answer EINVAL. */
    char *copy = wg__strdup(r->path);
    if (!copy)
        return -1;
    int status = 0;
    const int descriptor = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0 || (fsync(descriptor) < 0 && errno != EINVAL))
        status = wg__fail_with_errno(r->path, where);
    if (descriptor >= 0)
        close(descriptor);
    wg__free(copy);
    return status;
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
