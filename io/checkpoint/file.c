/* Creating, opening, committing and closing checkpoint files, with a file driver for HDF5. A file
 * is written as PATH.tmp and renamed over PATH when it is complete (base/replacement.h). */
#include "io/checkpoint/file.h"
#include "io/internal.h"
#include "io/weights/binary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* From 1.13 on, drivers need another header, and driver classes have a number; numbers from 512 on
 * are free. */
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void acquire_lock(void) {
    pthread_mutex_lock(&lock);
}

static void release_lock(void) {
    pthread_mutex_unlock(&lock);
}

/* The thread of a fork()ed child has another id and cannot unlock a recursive lock: make it new. */
static void renew_lock(void) {
    lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

static void prepare_for_fork(void) {
    pthread_atfork(acquire_lock, release_lock, renew_lock);
}

int wg__hdf5_hold(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare_for_fork);
    acquire_lock();
    return 0;
}

void wg__hdf5_release(const int *held) {
    (void)held;
    release_lock();
}

/* ---- HDF5's file driver: positioned reads and writes on our own descriptor ----
 *
 * HDF5 cannot close a file whose last writes failed: it keeps the file, and complains when the
 * program ends. So the driver keeps the reason of the first failed write and reports success;
 * the writer checks disk->error. The driver takes no file locks: HDF5's drivers refuse to
 * read on file systems without locks, and a file that is only replaced as a whole needs none. */

typedef struct driven_file {
    H5FD_t base; /* HDF5's; must come first */
    wg__disk *disk;
    haddr_t allocated; /* the end of the space that HDF5 has allocated ("eoa") */
    haddr_t end;       /* the end of the file ("eof") */
} driven_file;

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t most) {
    (void)name, (void)flags, (void)most;
    wg__disk *const *disk = H5Pget_driver_info(access); /* a copy of disk_access's pointer */
    struct stat status;
    if (!disk || fstat((*disk)->descriptor, &status) < 0)
        return NULL;
    driven_file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->disk = *disk;
    file->end = (haddr_t)status.st_size;
    return &file->base;
}

static herr_t driver_close(H5FD_t *base) {
    free(base);
    return 0;
}

/* HDF5 may gather small pieces of metadata into blocks and write them together. */
static herr_t driver_query(const H5FD_t *base, unsigned long *flags) {
    (void)base;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t driver_get_allocated(const H5FD_t *base, H5FD_mem_t type) {
    (void)type;
    return ((const driven_file *)base)->allocated;
}

static herr_t driver_set_allocated(H5FD_t *base, H5FD_mem_t type, haddr_t address) {
    (void)type;
    ((driven_file *)base)->allocated = address;
    return 0;
}

static haddr_t driver_get_end(const H5FD_t *base, H5FD_mem_t type) {
    (void)type;
    return ((const driven_file *)base)->end;
}

/* Bytes beyond the end read as zeros, as HDF5 expects of space that it has only allocated. */
static herr_t driver_read(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address,
                          size_t size, void *buffer) {
    (void)type, (void)transfer;
    wg__disk *disk = ((driven_file *)base)->disk;
    if (address > INT64_MAX - size)
        return -1;
    const int64_t count = wg__read_at(disk->descriptor, buffer, (int64_t)size, (int64_t)address);
    if (count < 0) {
        disk->error = errno;
        return -1;
    }
    memset((char *)buffer + count, 0, size - (size_t)count);
    return 0;
}

static herr_t driver_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address,
                           size_t size, const void *buffer) {
    (void)type, (void)transfer;
    driven_file *file = (driven_file *)base;
    wg__disk *disk = file->disk;
    if (address + size > file->end)
        file->end = address + size;
    if (!disk->discard &&
        wg__write_at(disk->descriptor, buffer, (int64_t)size, (int64_t)address) < 0) {
        disk->error = errno;
        disk->discard = true;
    }
    return 0;
}

/* Before closing, HDF5 sets the length of the file to the bytes that it has allocated. */
static herr_t driver_truncate(H5FD_t *base, hid_t transfer, hbool_t closing) {
    (void)transfer, (void)closing;
    driven_file *file = (driven_file *)base;
    wg__disk *disk = file->disk;
    if (!disk->discard && file->end != file->allocated &&
        ftruncate(disk->descriptor, (off_t)file->allocated) < 0) {
        disk->error = errno;
        disk->discard = true;
    }
    file->end = file->allocated;
    return 0;
}

static const H5FD_class_t driver_class = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)0x5747,
#endif
    .name = "wengert",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(wg__disk *),
    .open = driver_open,
    .close = driver_close,
    .query = driver_query,
    .get_eoa = driver_get_allocated,
    .set_eoa = driver_set_allocated,
    .get_eof = driver_get_end,
    .read = driver_read,
    .write = driver_write,
    .truncate = driver_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* A file access property list for H5Fcreate and H5Fopen on `disk`, which must outlive the file; the
 * file name is ignored. The format version is the one with checksums on all metadata. The caller
 * closes it; negative with HDF5's error. */
static hid_t disk_access(wg__disk *disk) {
    static hid_t driver = -1;
    if (H5Iis_valid(driver) <= 0)
        driver = H5FDregister(&driver_class);
    hid_t access = driver < 0 ? -1 : H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0)
        return -1;
    if (H5Pset_driver(access, driver, &disk) < 0 ||
        H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) < 0 ||
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0) {
        H5Pclose(access);
        return -1;
    }
    return access;
}

/* ---- Errors ---- */

/* HDF5's printing of errors is off while a checkpoint is open. After a failure it stays off: HDF5
 * leaks memory when it meets damage (H5O_t in 1.10.8, at a wrong checksum) and would report the
 * leak when the program ends. */
static int silence_depth;
static bool stays_silent;
static H5E_auto2_t former_printer;
static void *former_context;

herr_t wg__hdf5_plain_groups(hid_t creation) {
    const unsigned most_links = 65535; /* that HDF5 lets a header have */
    if (H5Pset_obj_track_times(creation, false) < 0)
        return -1;
    return H5Pset_link_phase_change(creation, most_links, 0);
}

/* Copies the first entry that H5Ewalk2 visits: it is closest to the cause. */
static herr_t copy_description(unsigned index, const H5E_error2_t *error, void *context) {
    if (index == 0)
        snprintf(context, 256, "%s", error->desc ? error->desc : "");
    return 0;
}

int wg__checkpoint_fail(wg_checkpoint *file, const char *name, const char *where) {
    char description[256] = "unknown reason";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, copy_description, description);
    file->failed = true;
    stays_silent = true;
    if (file->disk.error) {
        errno = file->disk.error;
        return wg__fail_with_errno(file->path, where);
    }
    return wg_fail(file->is_written ? WG_ERROR_IO : WG_ERROR_FORMAT, where, "%s%s%s %s: %s",
                   file->path, *name ? ": " : "", name,
                   file->is_written ? "cannot be written" : "is damaged or no checkpoint",
                   description);
}

/* ---- Files ---- */

static void free_checkpoint(wg_checkpoint *file) {
    if (file->file >= 0)
        H5Fclose(file->file);
    if (file->out.descriptor < 0 && file->disk.descriptor >= 0)
        close(file->disk.descriptor);
    wg__replacement_end(&file->out);
    wg__free(file->path);
    wg__free(file);
    if (--silence_depth == 0 && !stays_silent)
        H5Eset_auto2(H5E_DEFAULT, former_printer, former_context);
}

static wg_checkpoint *checkpoint_of(const char *path) {
    wg_checkpoint *file = wg__calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->file = -1;
    file->disk.descriptor = file->out.descriptor = -1;
    if (silence_depth++ == 0 && !stays_silent) {
        H5Eget_auto2(H5E_DEFAULT, &former_printer, &former_context);
        H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    }
    file->path = wg__strdup(path);
    if (file->path)
        return file;
    free_checkpoint(file);
    return NULL;
}

static int create_file(wg_checkpoint *file) {
    hid_t access = disk_access(&file->disk), creation = H5Pcreate(H5P_FILE_CREATE);
    if (access >= 0 && creation >= 0 && wg__hdf5_plain_groups(creation) >= 0)
        file->file = H5Fcreate(file->path, H5F_ACC_TRUNC, creation, access);
    int status = file->file < 0 ? wg__checkpoint_fail(file, "", "checkpoint_create") : 0;
    H5Pclose(access);
    H5Pclose(creation);
    return status;
}

wg_checkpoint *wg_checkpoint_create(const char *path) {
    WG__HOLD_HDF5;
    if (!path || wg_error_pending())
        return NULL;
    wg_checkpoint *file = checkpoint_of(path);
    if (!file)
        return NULL;
    if (wg__replacement_begin(&file->out, path, "checkpoint_create") == 0) {
        file->disk.descriptor = file->out.descriptor;
        file->is_written = true;
        if (create_file(file) == 0)
            return file;
    }
    wg_checkpoint_abort(file);
    return NULL;
}

wg_checkpoint *wg__checkpoint_create_unnamed(void) {
    WG__HOLD_HDF5;
    const char *folder = getenv("TMPDIR");
    wg_checkpoint *file =
        wg_error_pending() ? NULL : checkpoint_of(folder && *folder ? folder : "/tmp");
    if (!file)
        return NULL;
    file->unnamed = file->is_written = true;
    /* The file is unlinked at once, so that only the descriptor leads to it. */
    char *name = wg__path_in(file->path, "wengert-XXXXXX");
    file->disk.descriptor = name ? mkostemp(name, O_CLOEXEC) : -1;
    if (file->disk.descriptor >= 0)
        unlink(name);
    else if (name)
        wg__fail_with_errno(file->path, "checkpoint_create");
    wg__free(name);
    if (file->disk.descriptor < 0 || create_file(file) < 0) {
        free_checkpoint(file);
        return NULL;
    }
    return file;
}

void wg_checkpoint_abort(wg_checkpoint *file) {
    WG__HOLD_HDF5;
    if (!file)
        return;
    file->disk.discard = true;
    free_checkpoint(file);
}

static int finish(wg_checkpoint *file) {
    if (wg_error_pending())
        return -1;
    if (file->failed)
        return wg_fail(WG_ERROR_STATE, "checkpoint_commit",
                       "%s: an earlier part could not be written; nothing is kept", file->path);
    herr_t closed = H5Fclose(file->file);
    file->file = -1;
    if (closed < 0 || file->disk.error)
        return wg__checkpoint_fail(file, "", "checkpoint_commit");
    return file->unnamed ? 0 : wg__replacement_finish(&file->out, "checkpoint_commit");
}

int wg_checkpoint_commit(wg_checkpoint *file) {
    WG__HOLD_HDF5;
    if (!file)
        return -1;
    const int status = finish(file);
    wg_checkpoint_abort(file);
    return status;
}

static int open_descriptor(wg_checkpoint *file) {
    hid_t access = disk_access(&file->disk);
    if (access >= 0)
        file->file = H5Fopen(file->path, H5F_ACC_RDONLY, access);
    char text[1024];
    const bool is_open = file->file >= 0;
    const char *kind =
        is_open || file->disk.error ? NULL : wg__file_kind(file->path, text, sizeof text);
    if (kind)
        wg_fail(WG_ERROR_FORMAT, "checkpoint_open", "%s is %s", file->path, kind);
    else if (!is_open)
        wg__checkpoint_fail(file, "", "checkpoint_open");
    H5Pclose(access);
    return is_open ? 0 : -1;
}

int wg__checkpoint_reopen(wg_checkpoint *file) {
    WG__HOLD_HDF5;
    if (finish(file) < 0)
        return -1;
    file->is_written = false;
    return open_descriptor(file);
}

wg_checkpoint *wg_checkpoint_open(const char *path) {
    WG__HOLD_HDF5;
    if (!path || wg_error_pending())
        return NULL;
    wg_checkpoint *file = checkpoint_of(path);
    if (!file)
        return NULL;
    struct stat status = {0};
    char text[1024];
    file->disk.descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file->disk.descriptor < 0)
        wg__fail_with_errno(path, "checkpoint_open");
    else if (fstat(file->disk.descriptor, &status) == 0 && !S_ISREG(status.st_mode))
        wg_fail(WG_ERROR_IO, "checkpoint_open", "%s is %s", path,
                wg__file_kind(path, text, sizeof text));
    else if (open_descriptor(file) == 0)
        return file;
    free_checkpoint(file);
    return NULL;
}

void wg_checkpoint_close(wg_checkpoint *file) {
    WG__HOLD_HDF5;
    if (file)
        free_checkpoint(file);
}

const char *wg__checkpoint_library(void) {
    WG__HOLD_HDF5;
    static char version[48];
    unsigned major, minor, release;
    H5get_libversion(&major, &minor, &release);
    snprintf(version, sizeof version, "%u.%u.%u", major, minor, release);
    return version;
}
