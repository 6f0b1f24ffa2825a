/* Values in a checkpoint, each a dataset that h5py and h5dump read as it is.
 *
 *     value           dataset                                            guarded by
 *     tensor          chunks of up to half a MiB                         Fletcher-32 on each
 *     rank-0 tensor,  scalar, kept in the object's header ("compact")    the header's checksum
 *     number
 *     text            scalar fixed-length UTF-8                          the attribute "crc32"
 *     no elements     nothing but the header                             the header's checksum
 *
 * bool is the enum {FALSE, TRUE} that h5py uses; bf16, which HDF5 has no type for, is u16 with the
 * attribute dtype = "bf16". This is what writing (checkpoint_put.c) and reading (checkpoint_get.c)
 * share. */
#ifndef WG_IO_CHECKPOINT_DATA_H
#define WG_IO_CHECKPOINT_DATA_H

#include "io/checkpoint/file.h"

/* "/a/b": absolute, without empty or "." parts. */
bool wg__checkpoint_is_path(const char *name);

/* The type of a dtype in memory and, as we run on little-endian machines or HDF5 swaps, on disk. To
 * be closed. */
hid_t wg__hdf5_type_of(wg_dtype dtype, bool on_disk);

/* That of a text of so many bytes. */
hid_t wg__hdf5_text_type(size_t size);

/* The dtype of a stored type; a text counts as u8; -1 for what Wengert has none for. */
int wg__hdf5_dtype_of(hid_t type, hid_t dataset);

/* The CRC of zlib, gzip and PNG (polynomial 0x04c11db7, reflected), so that Python's zlib.crc32
 * gives the same. */
uint32_t wg__crc32(const char *bytes, size_t count);

#endif
