/* Reading values of a checkpoint: what a dataset says of itself is checked before it is believed.
 * See checkpoint_data.h. */
#include "io/checkpoint/data.h"

#include <string.h>

#include "tensor/internal.h"

/* The most that compression can shrink bytes by (deflate: 1032), and then some: a file that claims
 * more data than that holds none of it, and no memory is asked for on its word. */
#define MOST_EXPANSION 2048

/* ---- What a dataset is ---- */

/* FORMAT: a dataset that is not what was asked for. */
static int refuse(const wg_checkpoint *file, const char *name, const char *reason) {
    return wg_fail(WG_ERROR_FORMAT, "checkpoint_get", "%s: %s %s", file->path, name, reason);
}

/* Negative with an error, which may be one that was pending. */
static hid_t open_dataset(wg_checkpoint *file, const char *name) {
    if (!file || wg_error_pending())
        return -1;
    if (!wg_checkpoint_has(file, name)) {
        wg_fail(WG_ERROR_NOT_FOUND, "checkpoint_get", "%s has no %s", file->path, name);
        return -1;
    }
    hid_t dataset = H5Dopen2(file->file, name, H5P_DEFAULT);
    if (dataset < 0)
        wg__checkpoint_fail(file, name, "checkpoint_get");
    return dataset;
}

static int read_shape(wg_checkpoint *file, const char *name, hid_t dataset, wg_dtype dtype,
                      wg_spec *spec) {
    hsize_t sizes[H5S_MAX_RANK];
    int64_t shape[WG_MAX_DIMS];
    hid_t space = H5Dget_space(dataset);
    H5S_class_t kind = H5Sget_simple_extent_type(space);
    int rank = H5Sget_simple_extent_dims(space, sizes, NULL);
    H5Sclose(space);
    if ((kind != H5S_SCALAR && kind != H5S_SIMPLE) || rank < 0 || rank > WG_MAX_DIMS)
        return refuse(file, name, "has a rank that no tensor has");
    for (int axis = 0; axis < rank; axis++)
        shape[axis] = sizes[axis] > INT64_MAX ? INT64_MAX : (int64_t)sizes[axis];
    return wg__spec_make(spec, dtype, rank, shape, "checkpoint_get");
}

/* -1 unless the file itself holds all the bytes. */
static int check_storage(wg_checkpoint *file, const char *name, hid_t dataset, uint64_t bytes) {
    hid_t creation = H5Dget_create_plist(dataset);
    H5D_layout_t layout = H5Pget_layout(creation);
    int elsewhere = H5Pget_external_count(creation);
    H5Pclose(creation);
    if (layout == H5D_VIRTUAL || elsewhere != 0)
        return refuse(file, name, "lies in another file");
    uint64_t stored = H5Dget_storage_size(dataset);
    uint64_t most = layout == H5D_CHUNKED ? MOST_EXPANSION : 1;
    if (bytes / most > stored || (bytes > 0 && stored == 0))
        return refuse(file, name, "has less data than its shape says");
    return 0;
}

static bool is_text(hid_t dataset) {
    hid_t type = H5Dget_type(dataset);
    bool text = H5Tget_class(type) == H5T_STRING;
    H5Tclose(type);
    return text;
}

/* What a dataset is, and the size of an element: of a text, which has rank 0, its length. */
static int describe(wg_checkpoint *file, const char *name, hid_t dataset, wg_spec *spec,
                    size_t *size) {
    hid_t type = H5Dget_type(dataset);
    int dtype = wg__hdf5_dtype_of(type, dataset);
    *size = H5Tget_size(type);
    H5Tclose(type);
    if (dtype < 0)
        return refuse(file, name, "has a type that no dtype stands for");
    if (read_shape(file, name, dataset, (wg_dtype)dtype, spec) < 0)
        return -1;
    if (is_text(dataset) && spec->ndim != 0)
        return refuse(file, name, "is a list of texts; wanted one");
    return check_storage(file, name, dataset, (uint64_t)wg__spec_count(spec) * *size);
}

int wg__checkpoint_spec(wg_checkpoint *file, const char *name, wg_spec *spec) {
    hid_t dataset = open_dataset(file, name);
    size_t size;
    int status = dataset < 0 ? -1 : describe(file, name, dataset, spec, &size);
    if (dataset >= 0)
        H5Dclose(dataset);
    return status;
}

/* ---- Tensors ---- */

static int read_elements(wg_checkpoint *file, const char *name, hid_t dataset, hid_t type,
                         void *out) {
    if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) < 0)
        return wg__checkpoint_fail(file, name, "checkpoint_get");
    return 0;
}

/* The types of memory and file are the same for texts and bools, where HDF5 converts nothing. */
static hid_t type_to_read(hid_t dataset, const wg_spec *spec) {
    return spec->dtype == WG_BOOL ? H5Dget_type(dataset) : wg__hdf5_type_of(spec->dtype, false);
}

/* Bytes other than 0 and 1 are no bools. */
static void make_bools(wg_tensor *x) {
    uint8_t *values = wg_tensor_data(x);
    int64_t count = wg_tensor_count(x);
    for (int64_t i = 0; i < count; i++)
        values[i] = values[i] != 0;
}

static wg_tensor *read_tensor(wg_checkpoint *file, const char *name, hid_t dataset) {
    wg_spec spec;
    size_t size;
    if (describe(file, name, dataset, &spec, &size) < 0)
        return NULL;
    if (is_text(dataset)) {
        refuse(file, name, "is a text, no tensor");
        return NULL;
    }
    wg_tensor *x = wg_empty(spec.dtype, spec.ndim, spec.shape);
    if (!x || wg_tensor_count(x) == 0)
        return x;
    hid_t type = type_to_read(dataset, &spec);
    int status = read_elements(file, name, dataset, type, wg_tensor_data(x));
    H5Tclose(type);
    if (status == 0 && spec.dtype == WG_BOOL)
        make_bools(x);
    return status < 0 ? NULL : x;
}

wg_tensor *wg_checkpoint_get_tensor(wg_checkpoint *file, const char *name) {
    hid_t dataset = open_dataset(file, name);
    if (dataset < 0)
        return NULL;
    wg_tensor *x = read_tensor(file, name, dataset);
    H5Dclose(dataset);
    return x;
}

wg_tensor *wg_checkpoint_get_numbers(wg_checkpoint *file, const char *name) {
    wg_tensor *x = wg_checkpoint_get_tensor(file, name);
    if (x && (wg_tensor_dtype(x) != WG_F64 || wg_tensor_ndim(x) != 1)) {
        refuse(file, name, "is no list of f64");
        return NULL;
    }
    return x;
}

/* ---- Numbers and texts ---- */

/* A scalar of dtype `wanted` into *value. */
static int get_scalar(wg_checkpoint *file, const char *name, wg_dtype wanted, void *value) {
    hid_t dataset = open_dataset(file, name);
    if (dataset < 0)
        return -1;
    wg_spec spec;
    size_t size;
    int status = describe(file, name, dataset, &spec, &size);
    if (status == 0 && (spec.ndim != 0 || spec.dtype != wanted))
        status = refuse(file, name, wanted == WG_I64 ? "is no integer" : "is no number");
    hid_t type = wg__hdf5_type_of(wanted, false);
    if (status == 0)
        status = read_elements(file, name, dataset, type, value);
    H5Tclose(type);
    H5Dclose(dataset);
    return status;
}

int wg_checkpoint_get_integer(wg_checkpoint *file, const char *name, int64_t *value) {
    return get_scalar(file, name, WG_I64, value);
}

int wg_checkpoint_get_number(wg_checkpoint *file, const char *name, double *value) {
    return get_scalar(file, name, WG_F64, value);
}

/* -1 unless the text is the one that was written. A text of other writers has no attribute. */
static int check_crc(wg_checkpoint *file, const char *name, hid_t dataset, const char *text) {
    uint32_t crc = 0;
    if (H5Aexists(dataset, "crc32") <= 0)
        return 0;
    hid_t attribute = H5Aopen(dataset, "crc32", H5P_DEFAULT);
    hid_t space = H5Aget_space(attribute);
    bool read = H5Sget_simple_extent_npoints(space) == 1 &&
                H5Aread(attribute, H5T_NATIVE_UINT32, &crc) >= 0;
    H5Sclose(space);
    H5Aclose(attribute);
    if (!read || crc != wg__crc32(text, strlen(text)))
        return refuse(file, name, "is damaged: its checksum is another");
    return 0;
}

static char *read_text(wg_checkpoint *file, const char *name, hid_t dataset) {
    wg_spec spec;
    size_t size;
    if (describe(file, name, dataset, &spec, &size) < 0)
        return NULL;
    if (!is_text(dataset)) {
        refuse(file, name, "is no text");
        return NULL;
    }
    char *text = wg__alloc(size + 1);
    if (!text)
        return NULL;
    text[size] = '\0';
    hid_t type = H5Dget_type(dataset);
    int status = read_elements(file, name, dataset, type, text);
    H5Tclose(type);
    if (status == 0 && check_crc(file, name, dataset, text) == 0)
        return text;
    wg__free(text);
    return NULL;
}

char *wg_checkpoint_get_text(wg_checkpoint *file, const char *name) {
    hid_t dataset = open_dataset(file, name);
    if (dataset < 0)
        return NULL;
    char *text = read_text(file, name, dataset);
    H5Dclose(dataset);
    return text;
}
