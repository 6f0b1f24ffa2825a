/* The zip of torch.save:
 *
 *     NAME/data.pkl    a pickle that makes a dict of tensors, each of a storage
 *     NAME/data/0...   the storages' bytes, stored as they are
 *
 * A pickle is a program for a stack machine. This reads those instructions that a dict of tensors
 * takes and no others, and makes nothing but the values below: no code is ever found or run. */
#ifndef WG_IO_WEIGHTS_PYTORCH_ZIP_H
#define WG_IO_WEIGHTS_PYTORCH_ZIP_H

#include "io/weights/file.h"

/* ---- The zip ---- */

typedef struct wg__zip_entry {
    char *name;
    int64_t offset, size; /* of its bytes */
} wg__zip_entry;

typedef struct wg__zip {
    int64_t count;
    wg__zip_entry *entries; /* sorted by name */
} wg__zip;

/* Lists a zip, zip64 too; entries that are compressed or encrypted, names that stand twice, and
 * bytes that are in two entries are refused. Freed with wg__zip_free in every case. */
int wg__zip_read(const wg_weights *file, int index, wg__zip *zip);
void wg__zip_free(wg__zip *zip);

/* The entry of that name, or NULL. */
const wg__zip_entry *wg__zip_find(const wg__zip *zip, const char *name);

/* ---- The pickle ---- */

typedef struct wg__pickled_storage {
    wg__stored stored;
    char key[64]; /* its file is NAME/data/KEY */
    int64_t elements;
} wg__pickled_storage;

typedef struct wg__pickled_tensor {
    const char *name; /* of the keys that lead to it, with dots between */
    wg__pickled_storage storage;
    int64_t offset; /* in elements */
    int ndim;
    int64_t shape[WG_MAX_DIMS], strides[WG_MAX_DIMS];
} wg__pickled_tensor;

typedef int (*wg__pickle_visitor)(const wg__pickled_tensor *tensor, void *context);

/* Runs a pickle and calls `visit` for every tensor in the dict that it makes, or in dicts within
 * it; other values are passed over. `file` is for messages. -1 with FORMAT, MEMORY, or as visit
 * says. */
int wg__pickle_read(const wg_weights *file, const uint8_t *bytes, int64_t count,
                    wg__pickle_visitor visit, void *context);

#endif
