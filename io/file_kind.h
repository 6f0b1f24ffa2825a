/* Says what kind of file or folder a path is, for messages that wanted another one. A file is known
 * by its first bytes, a folder by the names in it. */
#ifndef WG_IO_FILE_KIND_H
#define WG_IO_FILE_KIND_H

#include <stdbool.h>
#include <stddef.h>

/* Writes what `path` is and what can be done with it, to follow "PATH is": "a file of safetensors,
 * no checkpoint; `wengert convert PATH model.h5' makes one of it". Returns `text`. NULL for a file
 * that begins as HDF5 does, and for one that cannot be read. */
const char *wg__file_kind(const char *path, char *text, size_t size);

/* Whether a regular file begins as HDF5's do: checkpoints and token files, and no text. False with
 * IO if a read failed; without an error if it cannot be opened, or is a pipe, which can be read
 * once. */
bool wg__is_hdf5_file(const char *path);

/* False for NULL, too. */
bool wg__is_file(const char *path);
bool wg__is_folder(const char *path);

#endif
