/* The HDF5 file driver on a descriptor: positioned reads and writes, and nothing else. */
#include "io/checkpoint/hdf5_vfd.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* From 1.13 on, what drivers need stands in a header of its own, and classes have a number: those
 * from 512 on are for everybody. */
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

typedef struct driven_file {
    H5FD_t base; /* HDF5's; must come first */
    wg__disk *disk;
    haddr_t allocated; /* the end of what HDF5 has allocated ("eoa") */
    haddr_t end;       /* the end of the file ("eof") */
} driven_file;

/* What wg__disk_access hands to driver_open through the property list. */
typedef struct driver_info {
    wg__disk *disk;
} driver_info;

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t most) {
    (void)name, (void)flags, (void)most;
    const driver_info *info = H5Pget_driver_info(access);
    struct stat status;
    if (!info || fstat(info->disk->descriptor, &status) < 0)
        return NULL;
    driven_file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->disk = info->disk;
    file->end = (haddr_t)status.st_size;
    return &file->base;
}

static herr_t driver_close(H5FD_t *base) {
    free(base);
    return 0;
}

/* Small pieces of metadata are gathered into blocks, and written together. */
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

/* What lies beyond the end reads as zeros, as HDF5 expects of space that it has only allocated. */
static herr_t driver_read(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address,
                          size_t size, void *buffer) {
    (void)type, (void)transfer;
    wg__disk *disk = ((driven_file *)base)->disk;
    if (address > INT64_MAX - size)
        return -1;
    char *to = buffer;
    while (size > 0) {
        ssize_t count = pread(disk->descriptor, to, size, (off_t)address);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            disk->error = errno;
            return -1;
        }
        if (count == 0) {
            memset(to, 0, size);
            break;
        }
        to += count;
        address += (haddr_t)count;
        size -= (size_t)count;
    }
    return 0;
}

static void note_failure(wg__disk *disk) {
    disk->error = errno;
    disk->discard = true;
}

static herr_t driver_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address,
                           size_t size, const void *buffer) {
    (void)type, (void)transfer;
    driven_file *file = (driven_file *)base;
    const char *from = buffer;
    if (address + size > file->end)
        file->end = address + size;
    while (size > 0 && !file->disk->discard) {
        ssize_t count = pwrite(file->disk->descriptor, from, size, (off_t)address);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            note_failure(file->disk);
            break;
        }
        from += count;
        address += (haddr_t)count;
        size -= (size_t)count;
    }
    return 0;
}

/* Before closing, HDF5 makes the file as long as what it has allocated. */
static herr_t driver_truncate(H5FD_t *base, hid_t transfer, hbool_t closing) {
    (void)transfer, (void)closing;
    driven_file *file = (driven_file *)base;
    if (!file->disk->discard && file->end != file->allocated &&
        ftruncate(file->disk->descriptor, (off_t)file->allocated) < 0)
        note_failure(file->disk);
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
    .fapl_size = sizeof(driver_info),
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

/* HDF5 forgets drivers when an application closes the library as a whole. */
static hid_t registered_driver(void) {
    static hid_t driver = -1;
    if (H5Iis_valid(driver) <= 0)
        driver = H5FDregister(&driver_class);
    return driver;
}

hid_t wg__disk_access(wg__disk *disk) {
    hid_t driver = registered_driver();
    hid_t access = driver < 0 ? -1 : H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0)
        return -1;
    if (H5Pset_driver(access, driver, &(driver_info){disk}) < 0 ||
        H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) < 0 ||
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0) {
        H5Pclose(access);
        return -1;
    }
    return access;
}
