/* The life of a checkpoint file: begun beside its place, then put there whole or not at all.
 *
 *     run.h5.tmp   created and locked  -> written -> synced --.
 *     run.h5       the old one, untouched ... replaced by <---' rename, folder synced
 *
 * The temporary name is fixed, so what a killed process leaves is taken over by the next save. The
 * lock on it keeps two processes from writing the same one; it goes with the process. */
#include "io/checkpoint/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensor/internal.h"

/* ---- Errors ---- */

/* HDF5 prints its errors unless told not to: it is told while any checkpoint is open. After a
 * failure it stays told, for it forgets memory when it meets damage (H5O_t in 1.10.8, at a wrong
 * checksum) and would complain of that when the program ends. */
static int silence_depth;
static bool stays_silent;
static H5E_auto2_t former_printer;
static void *former_context;

static void silence(void) {
    if (silence_depth++ > 0 || stays_silent)
        return;
    H5Eget_auto2(H5E_DEFAULT, &former_printer, &former_context);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static void unsilence(void) {
    if (--silence_depth == 0 && !stays_silent)
        H5Eset_auto2(H5E_DEFAULT, former_printer, former_context);
}

herr_t wg__hdf5_plain_groups(hid_t creation) {
    const unsigned most_links = 65535; /* that HDF5 lets a header have */
    if (H5Pset_obj_track_times(creation, false) < 0)
        return -1;
    return H5Pset_link_phase_change(creation, most_links, 0);
}

/* The first entry that H5Ewalk2 shows is the one closest to the cause. */
static herr_t take_description(unsigned index, const H5E_error2_t *error, void *context) {
    if (index == 0)
        snprintf(context, 256, "%s", error->desc ? error->desc : "");
    return 0;
}

/* IO for what the system says about the file itself. */
static int fail_with_errno(const char *path, const char *where) {
    return wg_fail(errno == ENOENT ? WG_ERROR_NOT_FOUND : WG_ERROR_IO, where, "%s: %s", path,
                   strerror(errno));
}

int wg__checkpoint_fail(wg_checkpoint *file, const char *name, const char *where) {
    char description[256] = "unknown reason";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_description, description);
    file->failed = true;
    stays_silent = true;
    if (file->disk.error) {
        errno = file->disk.error;
        return fail_with_errno(file->path, where);
    }
    return wg_fail(file->temporary ? WG_ERROR_IO : WG_ERROR_FORMAT, where, "%s%s%s %s: %s",
                   file->path, *name ? ": " : "", name,
                   file->temporary ? "cannot be written" : "is damaged or no checkpoint",
                   description);
}

/* ---- Both ways ---- */

/* Frees everything but the file on disk; NULL for a checkpoint whose making failed. */
static void free_checkpoint(wg_checkpoint *file) {
    if (file->file >= 0)
        H5Fclose(file->file);
    if (file->disk.descriptor >= 0)
        close(file->disk.descriptor);
    wg__free(file->temporary);
    wg__free(file->path);
    wg__free(file);
    unsilence();
}

static wg_checkpoint *checkpoint_of(const char *path) {
    wg_checkpoint *file = wg__calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->file = -1;
    file->disk.descriptor = -1;
    silence();
    file->path = wg__strdup(path);
    if (file->path)
        return file;
    free_checkpoint(file);
    return NULL;
}

/* ---- Writing ---- */

/* The old file, if there is one: its real place behind symbolic links, and its mode. */
static int find_place(const char *path, char **place, mode_t *mode) {
    struct stat status;
    char *real = NULL;
    *mode = 0;
    if (stat(path, &status) == 0) {
        if (!S_ISREG(status.st_mode))
            return wg_fail(WG_ERROR_IO, "checkpoint_create", "%s is not a regular file", path);
        *mode = status.st_mode & 0777;
        if (!(real = realpath(path, NULL)))
            return fail_with_errno(path, "checkpoint_create");
    }
    *place = wg__strdup(real ? real : path);
    free(real);
    return *place ? 0 : -1;
}

/* True if the descriptor is still the file of that name: a process that held the lock before may
 * have renamed it away. */
static bool is_still_there(int descriptor, const char *path) {
    struct stat ours, there;
    return fstat(descriptor, &ours) == 0 && stat(path, &there) == 0 &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

/* Opens and locks the temporary file, which may be a dead process's. Returns 0; 1 to try again; -1
 * with an error. */
static int try_temporary(wg_checkpoint *file) {
    int descriptor = open(file->temporary, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return fail_with_errno(file->temporary, "checkpoint_create");
    if (flock(descriptor, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        close(descriptor);
        return wg_fail(WG_ERROR_IO, "checkpoint_create",
                       "%s is being written by another process or checkpoint", file->path);
    }
    if (!is_still_there(descriptor, file->temporary)) {
        close(descriptor);
        return 1;
    }
    file->disk.descriptor = descriptor;
    return 0;
}

static int open_temporary(wg_checkpoint *file, mode_t mode) {
    size_t size = strlen(file->path) + sizeof ".tmp";
    file->temporary = wg__alloc(size);
    if (!file->temporary)
        return -1;
    snprintf(file->temporary, size, "%s.tmp", file->path);
    int status;
    do
        status = try_temporary(file);
    while (status > 0);
    if (status < 0)
        return -1;
    if (ftruncate(file->disk.descriptor, 0) < 0 ||
        (mode && fchmod(file->disk.descriptor, mode) < 0)) {
        fail_with_errno(file->temporary, "checkpoint_create");
        unlink(file->temporary);
        return -1;
    }
    return 0;
}

static int create_file(wg_checkpoint *file) {
    hid_t access = wg__disk_access(&file->disk), creation = H5Pcreate(H5P_FILE_CREATE);
    if (access >= 0 && creation >= 0 && wg__hdf5_plain_groups(creation) >= 0)
        file->file = H5Fcreate(file->path, H5F_ACC_TRUNC, creation, access);
    int status = file->file < 0 ? wg__checkpoint_fail(file, "", "checkpoint_create") : 0;
    H5Pclose(access);
    H5Pclose(creation);
    return status;
}

wg_checkpoint *wg_checkpoint_create(const char *path) {
    if (!path || wg_error_pending())
        return NULL;
    char *place = NULL;
    mode_t mode;
    if (find_place(path, &place, &mode) < 0)
        return NULL;
    wg_checkpoint *file = checkpoint_of(place);
    wg__free(place);
    if (!file)
        return NULL;
    if (open_temporary(file, mode) < 0) {
        free_checkpoint(file);
        return NULL;
    }
    if (create_file(file) < 0) {
        wg_checkpoint_abort(file);
        return NULL;
    }
    return file;
}

/* A file that nobody else has ever seen. */
static int open_unnamed(wg_checkpoint *file) {
    const size_t size = strlen(file->path) + sizeof "/wengert-XXXXXX";
    file->temporary = wg__alloc(size);
    if (!file->temporary)
        return -1;
    snprintf(file->temporary, size, "%s/wengert-XXXXXX", file->path);
    file->disk.descriptor = mkostemp(file->temporary, O_CLOEXEC);
    if (file->disk.descriptor < 0)
        return fail_with_errno(file->path, "checkpoint_create");
    unlink(file->temporary);
    return 0;
}

wg_checkpoint *wg__checkpoint_create_unnamed(void) {
    const char *folder = getenv("TMPDIR");
    wg_checkpoint *file =
        wg_error_pending() ? NULL : checkpoint_of(folder && *folder ? folder : "/tmp");
    if (!file)
        return NULL;
    file->unnamed = true;
    if (open_unnamed(file) < 0 || create_file(file) < 0) {
        free_checkpoint(file);
        return NULL;
    }
    return file;
}

void wg_checkpoint_abort(wg_checkpoint *file) {
    if (!file)
        return;
    file->disk.discard = true;
    if (file->temporary && !file->unnamed)
        unlink(file->temporary);
    free_checkpoint(file);
}

/* Makes the renaming last: a folder has to be synced as a file has. Some file systems have nothing
 * to sync for a folder, and say so by EINVAL. */
static int sync_folder(const char *path) {
    char *copy = wg__strdup(path);
    if (!copy)
        return -1;
    int status = 0;
    int descriptor = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0 || (fsync(descriptor) < 0 && errno != EINVAL))
        status = fail_with_errno(path, "checkpoint_commit");
    if (descriptor >= 0)
        close(descriptor);
    wg__free(copy);
    return status;
}

/* Writes out what HDF5 still holds, and sees it to the disk. */
static int finish_writing(wg_checkpoint *file) {
    if (file->failed)
        return wg_fail(WG_ERROR_STATE, "checkpoint_commit",
                       "%s: an earlier part could not be written; nothing is kept", file->path);
    herr_t closed = H5Fclose(file->file);
    file->file = -1;
    if (closed < 0 || file->disk.error)
        return wg__checkpoint_fail(file, "", "checkpoint_commit");
    if (!file->unnamed && fsync(file->disk.descriptor) < 0)
        return fail_with_errno(file->path, "checkpoint_commit");
    return 0;
}

/* Puts what was written in its place. */
static int finish(wg_checkpoint *file) {
    if (wg_error_pending() || finish_writing(file) < 0)
        return -1;
    if (!file->unnamed && rename(file->temporary, file->path) < 0)
        return fail_with_errno(file->path, "checkpoint_commit");
    return 0;
}

int wg_checkpoint_commit(wg_checkpoint *file) {
    if (!file)
        return -1;
    if (finish(file) < 0) {
        wg_checkpoint_abort(file);
        return -1;
    }
    int status = sync_folder(file->path);
    free_checkpoint(file);
    return status;
}

/* ---- Reading ---- */

/* Has HDF5 open what the descriptor is of. */
static int open_descriptor(wg_checkpoint *file) {
    hid_t access = wg__disk_access(&file->disk);
    if (access >= 0)
        file->file = H5Fopen(file->path, H5F_ACC_RDONLY, access);
    int result = file->file < 0 ? wg__checkpoint_fail(file, "", "checkpoint_open") : 0;
    H5Pclose(access);
    return result;
}

int wg__checkpoint_turn(wg_checkpoint *file) {
    if (finish(file) < 0 || (!file->unnamed && sync_folder(file->path) < 0))
        return -1;
    wg__free(file->temporary);
    file->temporary = NULL;
    return open_descriptor(file);
}

static int open_file(wg_checkpoint *file) {
    file->disk.descriptor = open(file->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file->disk.descriptor < 0)
        return fail_with_errno(file->path, "checkpoint_open");
    struct stat status;
    if (fstat(file->disk.descriptor, &status) == 0 && !S_ISREG(status.st_mode))
        return wg_fail(WG_ERROR_IO, "checkpoint_open", "%s is not a regular file", file->path);
    return open_descriptor(file);
}

wg_checkpoint *wg_checkpoint_open(const char *path) {
    if (!path || wg_error_pending())
        return NULL;
    wg_checkpoint *file = checkpoint_of(path);
    if (file && open_file(file) < 0) {
        free_checkpoint(file);
        return NULL;
    }
    return file;
}

void wg_checkpoint_close(wg_checkpoint *file) {
    if (file)
        free_checkpoint(file);
}
