/* How HDF5 reaches the disk: a driver of our own, on a descriptor that we opened.
 *
 * HDF5 cannot close a file whose last writes failed: it keeps it, and complains when the program
 * ends. So this driver keeps the reason of the first failed write, goes on as if all were well, and
 * whoever writes asks for the reason. It also takes no locks, which HDF5 would refuse to read
 * without on some file systems, and which a file that is only ever replaced whole does not need. */
#ifndef WG_IO_CHECKPOINT_HDF5_VFD_H
#define WG_IO_CHECKPOINT_HDF5_VFD_H

/* Later versions of HDF5 still have the functions of 1.10 under their names. */
#define H5_USE_110_API
#include <hdf5.h>
#include <stdbool.h>

typedef struct wg__disk {
    int descriptor; /* open for reading, or for both; the caller closes it */
    int error;      /* errno of the first failed write, or of the last failed read; 0: none */
    bool discard;   /* nothing is written any more */
} wg__disk;

/* A file access property list for H5Fcreate and H5Fopen on `disk`, which must outlive the file; its
 * name is not looked at. The format is the one that has checksums on all metadata. Closed with
 * H5Pclose; negative with HDF5's error. */
hid_t wg__disk_access(wg__disk *disk);

#endif
