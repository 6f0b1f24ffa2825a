/* Writing values into a checkpoint: see checkpoint_data.h. */
#include "io/checkpoint/data.h"

#include <string.h>

#include "tensor/internal.h"

#define CHUNK_BYTES (512 << 10)

/* ---- Places ---- */

/* Makes the groups above `name` that are not there yet. */
static int make_groups(wg_checkpoint *file, const char *name) {
    hid_t creation = H5Pcreate(H5P_GROUP_CREATE);
    int status = 0;
    if (wg__hdf5_plain_groups(creation) < 0)
        status = wg__checkpoint_fail(file, name, "checkpoint_put");
    char prefix[WG__MAX_PATH];
    for (const char *slash = strchr(name + 1, '/'); slash && status == 0;
         slash = strchr(slash + 1, '/')) {
        memcpy(prefix, name, (size_t)(slash - name));
        prefix[slash - name] = '\0';
        if (H5Lexists(file->file, prefix, H5P_DEFAULT) > 0)
            continue;
        hid_t group = H5Gcreate2(file->file, prefix, H5P_DEFAULT, creation, H5P_DEFAULT);
        if (group < 0)
            status = wg__checkpoint_fail(file, prefix, "checkpoint_put");
        else
            H5Gclose(group);
    }
    H5Pclose(creation);
    return status;
}

/* 0 if a value may be put there. */
static int check_free(wg_checkpoint *file, const char *name) {
    if (wg_error_pending())
        return -1;
    if (file->failed)
        return wg_fail(WG_ERROR_STATE, "checkpoint_put", "%s: an earlier part failed", file->path);
    if (!wg__checkpoint_is_path(name))
        return wg_fail(WG_ERROR_ARGUMENT, "checkpoint_put",
                       "\"%s\" is no name; wanted /group/.../name", name);
    if (wg_checkpoint_has(file, name))
        return wg_fail(WG_ERROR_ARGUMENT, "checkpoint_put", "%s has a \"%s\" already", file->path,
                       name);
    return 0;
}

/* ---- Datasets ---- */

static int put_attribute(hid_t dataset, const char *name, hid_t type, const void *value) {
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(dataset, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    int status = attribute >= 0 && H5Awrite(attribute, type, value) >= 0 ? 0 : -1;
    if (attribute >= 0)
        H5Aclose(attribute);
    H5Sclose(space);
    return status;
}

/* Chunks of whole rows: the first axes are cut until a chunk is small enough, evenly, so that the
 * last one is not mostly padding. */
static void choose_chunk(const wg_spec *spec, hsize_t *chunk) {
    int64_t bytes = wg__spec_count(spec) * (int64_t)wg_dtype_size(spec->dtype);
    for (int axis = 0; axis < spec->ndim; axis++) {
        int64_t size = spec->shape[axis], pieces = (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
        if (pieces > size)
            pieces = size;
        int64_t part = (size + pieces - 1) / pieces;
        chunk[axis] = (hsize_t)part;
        bytes = bytes / size * part;
    }
}

/* How a dataset of that spec is laid out and guarded; negative with HDF5's error. */
static hid_t layout_of(const wg_spec *spec, bool is_text) {
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    herr_t status = H5Pset_obj_track_times(creation, false);
    if (status >= 0)
        status = H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
    if (status >= 0 && spec->ndim == 0 && !is_text)
        status = H5Pset_layout(creation, H5D_COMPACT);
    if (status >= 0 && spec->ndim > 0 && wg__spec_count(spec) > 0) {
        hsize_t chunk[WG_MAX_DIMS];
        choose_chunk(spec, chunk);
        status = H5Pset_chunk(creation, spec->ndim, chunk);
        if (status >= 0)
            status = H5Pset_fletcher32(creation);
    }
    if (status >= 0)
        return creation;
    H5Pclose(creation);
    return -1;
}

static hid_t space_of(const wg_spec *spec) {
    hsize_t sizes[WG_MAX_DIMS];
    for (int axis = 0; axis < spec->ndim; axis++)
        sizes[axis] = (hsize_t)spec->shape[axis];
    return spec->ndim ? H5Screate_simple(spec->ndim, sizes, NULL) : H5Screate(H5S_SCALAR);
}

/* A new dataset of a type, or -1 with the error recorded. */
static hid_t make_dataset(wg_checkpoint *file, const char *name, const wg_spec *spec, hid_t type,
                          bool is_text) {
    if (make_groups(file, name) < 0)
        return -1;
    hid_t space = space_of(spec), creation = layout_of(spec, is_text);
    hid_t dataset = H5Dcreate2(file->file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    if (dataset < 0)
        wg__checkpoint_fail(file, name, "checkpoint_put");
    if (creation >= 0)
        H5Pclose(creation);
    H5Sclose(space);
    return dataset;
}

/* 0 unless HDF5, or the disk below it, has failed. */
static int check_written(wg_checkpoint *file, const char *name, herr_t status) {
    if (status < 0 || file->disk.error)
        return wg__checkpoint_fail(file, name, "checkpoint_put");
    return 0;
}

/* Closes a dataset (negative: it was never made), which writes what HDF5 still holds of it. */
static int close_written(wg_checkpoint *file, const char *name, hid_t dataset, int status) {
    herr_t closed = dataset < 0 ? -1 : H5Dclose(dataset);
    return status < 0 ? -1 : check_written(file, name, closed);
}

/* ---- Values ---- */

/* Elements in row-major order. */
static int put_elements(wg_checkpoint *file, const char *name, const wg_spec *spec,
                        const void *data) {
    hid_t on_disk = wg__hdf5_type_of(spec->dtype, true),
          in_memory = wg__hdf5_type_of(spec->dtype, false);
    hid_t dataset = make_dataset(file, name, spec, on_disk, false);
    int status = dataset < 0 ? -1 : 0;
    if (status == 0 && wg__spec_count(spec) > 0)
        status = check_written(file, name,
                               H5Dwrite(dataset, in_memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
    if (status == 0 && spec->dtype == WG_BF16) {
        hid_t type = wg__hdf5_text_type(4);
        status = check_written(file, name, put_attribute(dataset, "dtype", type, "bf16"));
        H5Tclose(type);
    }
    status = close_written(file, name, dataset, status);
    H5Tclose(in_memory);
    H5Tclose(on_disk);
    return status;
}

int wg_checkpoint_put_tensor(wg_checkpoint *file, const char *name, const wg_tensor *x) {
    if (!file || !x || wg__check_memory(x, "checkpoint_put") < 0 || check_free(file, name) < 0)
        return -1;
    if (wg_tensor_is_contiguous(x))
        return put_elements(file, name, &x->spec, wg__tensor_address(x));
    size_t bytes = (size_t)wg_tensor_count(x) * wg_dtype_size(x->spec.dtype);
    void *copy = wg__alloc(bytes ? bytes : 1);
    int status = copy && wg_to_array(x, copy) == 0 ? put_elements(file, name, &x->spec, copy) : -1;
    wg__free(copy);
    return status;
}

int wg_checkpoint_put_integer(wg_checkpoint *file, const char *name, int64_t value) {
    if (!file || check_free(file, name) < 0)
        return -1;
    return put_elements(file, name, &(wg_spec){.dtype = WG_I64}, &value);
}

int wg_checkpoint_put_number(wg_checkpoint *file, const char *name, double value) {
    if (!file || check_free(file, name) < 0)
        return -1;
    return put_elements(file, name, &(wg_spec){.dtype = WG_F64}, &value);
}

int wg_checkpoint_put_numbers(wg_checkpoint *file, const char *name, int64_t count,
                              const double *values) {
    wg_spec spec;
    if (!file || check_free(file, name) < 0 ||
        wg__spec_make(&spec, WG_F64, 1, &count, "checkpoint_put") < 0)
        return -1;
    return put_elements(file, name, &spec, values);
}

int wg_checkpoint_put_text(wg_checkpoint *file, const char *name, const char *text) {
    if (!file || !text || check_free(file, name) < 0)
        return -1;
    size_t length = strlen(text);
    uint32_t crc = wg__crc32(text, length);
    hid_t type =
        wg__hdf5_text_type(length ? length : 1); /* HDF5 has no type of no bytes: one NUL */
    hid_t dataset = make_dataset(file, name, &(wg_spec){.dtype = WG_U8}, type, true);
    int status = dataset < 0 ? -1 : 0;
    if (status == 0)
        status =
            check_written(file, name, H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text));
    if (status == 0)
        status = check_written(file, name, put_attribute(dataset, "crc32", H5T_STD_U32LE, &crc));
    status = close_written(file, name, dataset, status);
    H5Tclose(type);
    return status;
}
