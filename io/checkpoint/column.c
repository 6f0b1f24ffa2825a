/* Columns, long rows of integers in a checkpoint: see file.h. */

#include <string.h>

#include "io/checkpoint/file.h"
#include "tensor/internal.h"

#define CHUNK_BYTES (32 << 10)

typedef struct place {
    int64_t chunk; /* the index of the chunk held here */
    char *values;  /* NULL: none yet */
} place;

struct wg__column {
    wg_checkpoint *file;
    char *name;
    hid_t dataset, type; /* type: of values in memory */
    int width;
    int64_t length; /* values in a chunk */
    int64_t count;  /* values of the row; while writing, with those in `pending` */
    int64_t limit;
    char *pending; /* while writing: the last chunk */
    int64_t place_count;
    place *places;
};

static hid_t type_of(int width, bool on_disk) {
    switch (width) {
    case 2:
        return on_disk ? H5T_STD_U16LE : H5T_NATIVE_UINT16;
    case 4:
        return on_disk ? H5T_STD_I32LE : H5T_NATIVE_INT32;
    default:
        return on_disk ? H5T_STD_I64LE : H5T_NATIVE_INT64;
    }
}

static wg__column *new_column(wg_checkpoint *file, const char *name) {
    wg__column *column = wg__calloc(1, sizeof *column);
    if (!column)
        return NULL;
    column->dataset = -1;
    column->file = file;
    column->name = wg__strdup(name);
    if (column->name)
        return column;
    wg__free(column);
    return NULL;
}

static void set_width(wg__column *column, int width) {
    column->width = width;
    column->length = CHUNK_BYTES / width;
    column->type = type_of(width, false);
}

void wg__column_free(wg__column *column) {
    WG__HOLD_HDF5;
    if (!column)
        return;
    if (column->dataset >= 0)
        H5Dclose(column->dataset);
    for (int64_t i = 0; i < column->place_count; i++)
        wg__free(column->places[i].values);
    wg__free(column->places);
    wg__free(column->pending);
    wg__free(column->name);
    wg__free(column);
}

/* Reads values first .. first + count - 1 of the dataset into `values`, or writes them. */
static int transfer(wg__column *column, bool writing, int64_t first, int64_t count, void *values) {
    WG__HOLD_HDF5;
    const hsize_t start = (hsize_t)first, size = (hsize_t)count;
    herr_t status = -1;
    const hid_t memory = H5Screate_simple(1, &size, NULL), space = H5Dget_space(column->dataset);
    if (H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &size, NULL) >= 0)
        status = writing
                     ? H5Dwrite(column->dataset, column->type, memory, space, H5P_DEFAULT, values)
                     : H5Dread(column->dataset, column->type, memory, space, H5P_DEFAULT, values);
    if (status < 0 || (writing && column->file->disk.error))
        wg__checkpoint_fail(column->file, column->name, "checkpoint_column");
    H5Sclose(space);
    H5Sclose(memory);
    return wg_error_pending() ? -1 : 0;
}

/* The access properties: HDF5 caches no chunks, as whole ones are written and read. */
static hid_t access_of(void) {
    const hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    if (H5Pset_chunk_cache(access, 1, 0, 1) >= 0)
        return access;
    H5Pclose(access);
    return -1;
}

wg__column *wg__column_create(wg_checkpoint *file, const char *name, int width) {
    WG__HOLD_HDF5;
    wg__column *column = file ? new_column(file, name) : NULL;
    if (!column)
        return NULL;
    set_width(column, width);
    column->pending = wg__alloc(CHUNK_BYTES);
    const hsize_t none = 0, unlimited = H5S_UNLIMITED;
    const hsize_t chunk = (hsize_t)column->length;
    const hid_t space = H5Screate_simple(1, &none, &unlimited), access = access_of(),
                creation = H5Pcreate(H5P_DATASET_CREATE);
    if (column->pending && access >= 0 && H5Pset_obj_track_times(creation, false) >= 0 &&
        H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER) >= 0 &&
        H5Pset_chunk(creation, 1, &chunk) >= 0 && H5Pset_fletcher32(creation) >= 0)
        column->dataset = H5Dcreate2(file->file, name, type_of(width, true), space, H5P_DEFAULT,
                                     creation, access);
    if (column->pending && column->dataset < 0)
        wg__checkpoint_fail(file, name, "checkpoint_column");
    H5Pclose(access);
    H5Pclose(creation);
    H5Sclose(space);
    if (column->dataset >= 0)
        return column;
    wg__column_free(column);
    return NULL;
}

static int write_pending(wg__column *column, int64_t count) {
    WG__HOLD_HDF5;
    const hsize_t size = (hsize_t)column->count;
    if (column->file->failed)
        return wg_fail(WG_ERROR_STATE, "checkpoint_column", "%s: an earlier part failed",
                       column->file->path);
    if (H5Dset_extent(column->dataset, &size) < 0)
        return wg__checkpoint_fail(column->file, column->name, "checkpoint_column");
    return transfer(column, true, column->count - count, count, column->pending);
}

int wg__column_push(wg__column *column, int64_t value) {
    const int64_t at = column->count % column->length;
    switch (column->width) {
    case 2:
        ((uint16_t *)column->pending)[at] = (uint16_t)value;
        break;
    case 4:
        ((int32_t *)column->pending)[at] = (int32_t)value;
        break;
    default:
        ((int64_t *)column->pending)[at] = value;
    }
    column->count++;
    return at + 1 == column->length ? write_pending(column, column->length) : 0;
}

int wg__column_append(wg__column *column, int64_t count, const int32_t *values) {
    for (int64_t i = 0; i < count; i++)
        if (wg__column_push(column, values[i]) < 0)
            return -1;
    return 0;
}

int wg__column_end(wg__column *column) {
    if (!column)
        return 0;
    const int64_t left = column->count % column->length;
    const int status = left > 0 ? write_pending(column, left) : 0;
    wg__column_free(column);
    return status;
}

/* -1 with FORMAT; with IO if a read failed, since HDF5 then reports a damaged file. */
static int refuse(const wg__column *column, const char *reason) {
    if (column->file->disk.error)
        return wg__checkpoint_fail(column->file, column->name, "checkpoint_column");
    return wg_fail(WG_ERROR_FORMAT, "checkpoint_column", "%s: %s %s", column->file->path,
                   column->name, reason);
}

static int open_dataset(wg__column *column) {
    const hid_t access = access_of();
    column->dataset = H5Dopen2(column->file->file, column->name, access);
    int status = 0;
    if (column->dataset < 0)
        status = wg__checkpoint_fail(column->file, column->name, "checkpoint_column");
    H5Pclose(access);
    if (status < 0)
        return -1;
    const hid_t space = H5Dget_space(column->dataset);
    hsize_t size = 0;
    const int ndim = H5Sget_simple_extent_ndims(space);
    if (ndim == 1)
        H5Sget_simple_extent_dims(space, &size, NULL);
    H5Sclose(space);
    const hid_t type = H5Dget_type(column->dataset);
    int width = 0;
    for (int i = 2; i <= 8; i *= 2)
        if (H5Tequal(type, type_of(i, true)) > 0)
            width = i;
    H5Tclose(type);
    if (ndim != 1 || width == 0)
        return refuse(column, "is no row of integers");
    set_width(column, width);
    column->count = (int64_t)size;
    /* The size may be damaged: the file must have bytes for all of it. */
    if (size > INT64_MAX / 16 ||
        H5Dget_storage_size(column->dataset) < size * (hsize_t)column->width)
        return refuse(column, "has fewer values than it says");
    const hid_t creation = H5Dget_create_plist(column->dataset);
    hsize_t length = 0;
    const bool is_chunked =
        H5Pget_layout(creation) == H5D_CHUNKED && H5Pget_chunk(creation, 1, &length) == 1;
    H5Pclose(creation);
    if (!is_chunked || length != (hsize_t)column->length)
        return refuse(column, "is cut into chunks of another size than 32 KiB");
    return 0;
}

wg__column *wg__column_open(wg_checkpoint *file, const char *name, int64_t limit, int64_t bytes) {
    WG__HOLD_HDF5;
    wg__column *column = file ? new_column(file, name) : NULL;
    if (!column)
        return NULL;
    column->limit = limit;
    if (open_dataset(column) == 0) {
        const int64_t chunks = (column->count + column->length - 1) / column->length;
        const int64_t most = bytes / CHUNK_BYTES;
        column->place_count = chunks < most ? chunks : most;
        column->places = wg__calloc((size_t)column->place_count + 1, sizeof *column->places);
        if (column->places)
            return column;
        column->place_count = 0;
    }
    wg__column_free(column);
    return NULL;
}

int64_t wg__column_count(const wg__column *column) {
    return column ? column->count : 0;
}

static int64_t value_at(const wg__column *column, const char *values, int64_t at) {
    switch (column->width) {
    case 2:
        return ((const uint16_t *)values)[at];
    case 4:
        return ((const int32_t *)values)[at];
    default:
        return ((const int64_t *)values)[at];
    }
}

static const char *chunk_at(wg__column *column, int64_t chunk) {
    place *place = &column->places[chunk % column->place_count];
    if (place->values && place->chunk == chunk)
        return place->values;
    const int64_t first = chunk * column->length, left = column->count - first;
    const int64_t count = left < column->length ? left : column->length;
    if (!place->values && !(place->values = wg__alloc(CHUNK_BYTES)))
        return NULL;
    place->chunk = -1;
    if (transfer(column, false, first, count, place->values) < 0)
        return NULL;
    for (int64_t i = 0; i < count; i++) {
        const int64_t value = value_at(column, place->values, i);
        if (value < 0 || value >= column->limit)
            return wg__fail_null(WG_ERROR_FORMAT, "checkpoint_column",
                                 "%s: %s has a value %lld, which is not below %lld",
                                 column->file->path, column->name, (long long)value,
                                 (long long)column->limit);
    }
    place->chunk = chunk;
    return place->values;
}

int64_t wg__column_at(wg__column *column, int64_t index) {
    const char *values = chunk_at(column, index / column->length);
    return values ? value_at(column, values, index % column->length) : -1;
}

int wg__column_read(wg__column *column, int64_t first, int64_t count, int32_t *values) {
    while (count > 0) {
        const char *from = chunk_at(column, first / column->length);
        if (!from)
            return -1;
        const int64_t at = first % column->length, left = column->length - at;
        const int64_t part = count < left ? count : left;
        if (column->width == 4)
            memcpy(values, (const int32_t *)from + at, (size_t)part * sizeof *values);
        else
            for (int64_t i = 0; i < part; i++)
                values[i] = (int32_t)value_at(column, from, at + i);
        first += part;
        values += part;
        count -= part;
    }
    return 0;
}
