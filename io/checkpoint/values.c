/* Values in a checkpoint, each a dataset that h5py and h5dump read as it is.
 *
 *     value           dataset                                            guarded by
 *     tensor          chunks of up to half a MiB                         Fletcher-32 on each
 *     rank-0 tensor,  scalar, kept in the object's header ("compact")    the header's checksum
 *     number
 *     text            scalar fixed-length UTF-8                          the attribute "crc32"
 *     no elements     nothing but the header                             the header's checksum
 *
 * bool is the enum {FALSE, TRUE} that h5py uses. HDF5 has no type for bf16: it is u16 with the
 * attribute dtype = "bf16". Readers check the type and shape of a dataset before they use it. */
#include "base/array.h"
#include "io/checkpoint/file.h"
#include "io/weights/binary_file.h"
#include "tensor/internal.h"

#include <errno.h>
#include <string.h>
#include "io/internal.h"

#define CHUNK_BYTES (512 << 10)

/* Deflate shrinks bytes at most by a factor of 1032. A dataset that claims to expand by more is
 * damaged, and no memory is allocated for it. */
#define MOST_EXPANSION 2048

/* True for "/a/b": absolute, without empty or "." parts. */
static bool is_path(const char *name) {
    size_t length = strlen(name);
    if (name[0] != '/' || length >= WG__MAX_PATH)
        return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part++;
        size_t size = strcspn(part, "/");
        if (size == 0 || strncmp(part, ".", size) == 0)
            return false;
    }
    return true;
}

/* True if HDF5 found an object; false with an error if the disk failed. */
static bool is_found(const wg_checkpoint *file, htri_t found) {
    if (found < 0 && file->disk.error) {
        errno = file->disk.error;
        wg__fail_with_errno(file->path, "checkpoint_get");
    }
    return found > 0;
}

bool wg_checkpoint_has(const wg_checkpoint *file, const char *name) {
    WG__HOLD_HDF5;
    char prefix[WG__MAX_PATH]; /* every part of the path must exist */
    for (size_t i = 1; file && name && is_path(name); i++) {
        if (name[i] != '/' && name[i] != '\0')
            continue;
        memcpy(prefix, name, i);
        prefix[i] = '\0';
        if (!is_found(file, H5Lexists(file->file, prefix, H5P_DEFAULT)))
            return false;
        if (name[i] == '\0')
            return is_found(file, H5Oexists_by_name(file->file, prefix, H5P_DEFAULT));
    }
    return false;
}

/* The HDF5 type of a dtype in memory, or little-endian on disk. The caller closes it. */
static hid_t hdf5_type_of(wg_dtype dtype, bool on_disk) {
    const hid_t types[][2] = {
        /* HDF5's names are of variables */
        [WG_F32] = {H5T_NATIVE_FLOAT, H5T_IEEE_F32LE},
        [WG_F64] = {H5T_NATIVE_DOUBLE, H5T_IEEE_F64LE},
        [WG_BF16] = {H5T_NATIVE_UINT16, H5T_STD_U16LE},
        [WG_I32] = {H5T_NATIVE_INT32, H5T_STD_I32LE},
        [WG_I64] = {H5T_NATIVE_INT64, H5T_STD_I64LE},
        [WG_U8] = {H5T_NATIVE_UINT8, H5T_STD_U8LE},
    };
    if (dtype != WG_BOOL)
        return H5Tcopy(types[dtype][on_disk]);
    hid_t type = H5Tenum_create(H5T_STD_I8LE);
    int8_t value = 0;
    H5Tenum_insert(type, "FALSE", &value);
    value = 1;
    H5Tenum_insert(type, "TRUE", &value);
    return type;
}

/* The HDF5 type of a text of `size` bytes. The caller closes it. */
static hid_t text_type(size_t size) {
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, size);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

static bool is_bf16(hid_t dataset) {
    char name[8] = "";
    if (H5Aexists(dataset, "dtype") <= 0)
        return false;
    hid_t attribute = H5Aopen(dataset, "dtype", H5P_DEFAULT), type = H5Aget_type(attribute);
    if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 && H5Tget_size(type) == 4)
        H5Aread(attribute, type, name);
    H5Tclose(type);
    H5Aclose(attribute);
    return strcmp(name, "bf16") == 0;
}

/* The dtype of a stored type; a text counts as u8; -1 for a type without a dtype. */
static int dtype_of(hid_t type, hid_t dataset) {
    static const struct {
        H5T_class_t class;
        size_t size;
        wg_dtype dtype;
        bool is_signed;
    } numbers[] = {{H5T_FLOAT, 4, WG_F32, false},  {H5T_FLOAT, 8, WG_F64, false},
                   {H5T_INTEGER, 1, WG_U8, false}, {H5T_INTEGER, 2, WG_BF16, false},
                   {H5T_INTEGER, 4, WG_I32, true}, {H5T_INTEGER, 8, WG_I64, true}};
    const H5T_class_t class = H5Tget_class(type);
    const size_t size = H5Tget_size(type);
    const bool is_signed = class == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2;
    if (class == H5T_STRING)
        return H5Tis_variable_str(type) == 0 ? WG_U8 : -1;
    if (class == H5T_ENUM)
        return size == 1 && H5Tget_nmembers(type) == 2 ? WG_BOOL : -1;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].class == class && numbers[i].size == size &&
            numbers[i].is_signed == is_signed)
            return numbers[i].dtype != WG_BF16 || is_bf16(dataset) ? (int)numbers[i].dtype : -1;
    return -1;
}

/* ---- Writing ---- */

static int make_groups(wg_checkpoint *file, const char *name) {
    hid_t creation = H5Pcreate(H5P_GROUP_CREATE);
    int status =
        wg__hdf5_plain_groups(creation) < 0 ? wg__checkpoint_fail(file, name, "checkpoint_put") : 0;
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

static int check_free(wg_checkpoint *file, const char *name) {
    if (wg_error_pending())
        return -1;
    if (file->failed)
        return wg_fail(WG_ERROR_STATE, "checkpoint_put", "%s: an earlier part failed", file->path);
    if (!is_path(name))
        return wg_fail(WG_ERROR_ARGUMENT, "checkpoint_put",
                       "\"%s\" is no name; wanted /group/.../name", name);
    if (wg_checkpoint_has(file, name))
        return wg_fail(WG_ERROR_ARGUMENT, "checkpoint_put", "%s has a \"%s\" already", file->path,
                       name);
    return 0;
}

/* The creation properties of a dataset: its layout and checksums. Negative with HDF5's error. */
static hid_t layout_of(const wg_spec *spec, bool text) {
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    herr_t status = H5Pset_obj_track_times(creation, false);
    if (status >= 0)
        status = H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
    if (status >= 0 && spec->ndim == 0 && !text)
        status = H5Pset_layout(creation, H5D_COMPACT);
    if (status >= 0 && spec->ndim > 0 && wg__spec_count(spec) > 0) {
        hsize_t chunk[WG_MAX_DIMS];
        /* Chunks of whole rows: the first axes are cut until a chunk is small enough. Parts are
         * even, so that the last chunk is not mostly padding. */
        int64_t bytes = wg__spec_count(spec) * (int64_t)wg_dtype_size(spec->dtype);
        for (int axis = 0; axis < spec->ndim; axis++) {
            int64_t size = spec->shape[axis], pieces = (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
            if (pieces > size)
                pieces = size;
            int64_t part = (size + pieces - 1) / pieces;
            chunk[axis] = (hsize_t)part;
            bytes = bytes / size * part;
        }
        status = H5Pset_chunk(creation, spec->ndim, chunk);
        if (status >= 0)
            status = H5Pset_fletcher32(creation);
    }
    if (status >= 0)
        return creation;
    H5Pclose(creation);
    return -1;
}

/* The contents of a dataset: elements in row-major order, or a text; and an attribute. */
typedef struct contents {
    wg_spec spec;
    bool is_text;
    hid_t on_disk, in_memory; /* types */
    const void *data;
    const char *attribute; /* NULL: none */
    hid_t attribute_type;
    const void *attribute_value;
} contents;

/* HDF5 writes buffered data only when the dataset is closed, so errors are checked again then. */
static int put_contents(wg_checkpoint *file, const char *name, const contents *c) {
    if (make_groups(file, name) < 0)
        return -1;
    hsize_t sizes[WG_MAX_DIMS];
    for (int axis = 0; axis < c->spec.ndim; axis++)
        sizes[axis] = (hsize_t)c->spec.shape[axis];
    const hid_t place = c->spec.ndim ? H5Screate_simple(c->spec.ndim, sizes, NULL)
                                     : H5Screate(H5S_SCALAR),
                creation = layout_of(&c->spec, c->is_text);
    const hid_t dataset =
        H5Dcreate2(file->file, name, c->on_disk, place, H5P_DEFAULT, creation, H5P_DEFAULT);
    if (dataset < 0)
        wg__checkpoint_fail(file, name, "checkpoint_put");
    if (creation >= 0)
        H5Pclose(creation);
    H5Sclose(place);
    if (dataset < 0)
        return -1;
    bool written = wg__spec_count(&c->spec) == 0 ||
                   H5Dwrite(dataset, c->in_memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, c->data) >= 0;
    if (written && c->attribute) {
        hid_t space = H5Screate(H5S_SCALAR);
        hid_t attribute =
            H5Acreate2(dataset, c->attribute, c->attribute_type, space, H5P_DEFAULT, H5P_DEFAULT);
        written = attribute >= 0 && H5Awrite(attribute, c->attribute_type, c->attribute_value) >= 0;
        if (attribute >= 0)
            H5Aclose(attribute);
        H5Sclose(space);
    }
    if (!written || file->disk.error)
        wg__checkpoint_fail(file, name, "checkpoint_put");
    if (H5Dclose(dataset) < 0 || file->disk.error)
        wg__checkpoint_fail(file, name, "checkpoint_put");
    return wg_error_pending() ? -1 : 0;
}

static int put_elements(wg_checkpoint *file, const char *name, const wg_spec *spec,
                        const void *data) {
    contents c = {.spec = *spec,
                  .on_disk = hdf5_type_of(spec->dtype, true),
                  .in_memory = hdf5_type_of(spec->dtype, false),
                  .data = data,
                  .attribute = spec->dtype == WG_BF16 ? "dtype" : NULL,
                  .attribute_type = text_type(4),
                  .attribute_value = "bf16"};
    const int status = put_contents(file, name, &c);
    H5Tclose(c.attribute_type);
    H5Tclose(c.in_memory);
    H5Tclose(c.on_disk);
    return status;
}

int wg_checkpoint_put_tensor(wg_checkpoint *file, const char *name, const wg_tensor *x) {
    WG__HOLD_HDF5;
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
    WG__HOLD_HDF5;
    if (!file || check_free(file, name) < 0)
        return -1;
    return put_elements(file, name, &(wg_spec){.dtype = WG_I64}, &value);
}

int wg__checkpoint_put_number(wg_checkpoint *file, const char *name, double value) {
    WG__HOLD_HDF5;
    if (!file || check_free(file, name) < 0)
        return -1;
    return put_elements(file, name, &(wg_spec){.dtype = WG_F64}, &value);
}

int wg_checkpoint_put_text(wg_checkpoint *file, const char *name, const char *text) {
    WG__HOLD_HDF5;
    if (!file || !text || check_free(file, name) < 0)
        return -1;
    size_t length = strlen(text);
    uint32_t crc = wg__crc(text, length, WG__CRC32);
    hid_t type = text_type(length ? length : 1); /* HDF5 has no type of no bytes: one NUL */
    int status = put_contents(file, name,
                              &(contents){.spec = {.dtype = WG_U8},
                                          .is_text = true,
                                          .on_disk = type,
                                          .in_memory = type,
                                          .data = text,
                                          .attribute = "crc32",
                                          .attribute_type = H5T_STD_U32LE,
                                          .attribute_value = &crc});
    H5Tclose(type);
    return status;
}

/* ---- Reading ---- */

/* -1 with FORMAT: the dataset is of another kind than the caller asked for, or damaged; with IO if
 * a read failed, since HDF5 then reports a damaged file. */
static int refuse(wg_checkpoint *file, const char *name, const char *reason) {
    if (file->disk.error)
        return wg__checkpoint_fail(file, name, "checkpoint_get");
    return wg_fail(WG_ERROR_FORMAT, "checkpoint_get", "%s: %s %s", file->path, name, reason);
}

/* An open dataset and its description. A text has rank 0 and its length as size. */
typedef struct dataset {
    hid_t id;
    wg_spec spec;
    size_t size; /* of an element */
    bool is_text;
} dataset;

static int describe(wg_checkpoint *file, const char *name, dataset *d) {
    hid_t type = H5Dget_type(d->id);
    int dtype = dtype_of(type, d->id);
    d->size = H5Tget_size(type);
    d->is_text = H5Tget_class(type) == H5T_STRING;
    const bool variable = d->is_text && H5Tis_variable_str(type) > 0;
    H5Tclose(type);
    if (variable)
        return refuse(file, name,
                      "is a text of variable length; wanted one of fixed length, which h5py writes "
                      "of numpy.bytes_(text)");
    if (dtype < 0)
        return refuse(file, name, "has a type with no dtype");
    const wg_dtype element = (wg_dtype)dtype;
    hsize_t sizes[H5S_MAX_RANK];
    int64_t shape[WG_MAX_DIMS];
    hid_t space = H5Dget_space(d->id);
    H5S_class_t kind = H5Sget_simple_extent_type(space);
    int rank = H5Sget_simple_extent_dims(space, sizes, NULL);
    H5Sclose(space);
    if ((kind != H5S_SCALAR && kind != H5S_SIMPLE) || rank < 0 || rank > WG_MAX_DIMS)
        return refuse(file, name, "has a rank that no tensor has");
    for (int axis = 0; axis < rank; axis++)
        shape[axis] = sizes[axis] > INT64_MAX ? INT64_MAX : (int64_t)sizes[axis];
    if (wg__spec_make(&d->spec, element, rank, shape, "checkpoint_get") < 0)
        return -1;
    if (d->is_text && d->spec.ndim != 0)
        return refuse(file, name, "is a list of texts; wanted one");
    /* -1 unless the file itself holds all the bytes. */
    const uint64_t bytes = (uint64_t)wg__spec_count(&d->spec) * d->size;
    hid_t creation = H5Dget_create_plist(d->id);
    H5D_layout_t layout = H5Pget_layout(creation);
    int elsewhere = H5Pget_external_count(creation);
    H5Pclose(creation);
    if (layout == H5D_VIRTUAL || elsewhere != 0)
        return refuse(file, name, "lies in another file");
    uint64_t stored = H5Dget_storage_size(d->id);
    uint64_t most = layout == H5D_CHUNKED ? MOST_EXPANSION : 1;
    if (bytes / most > stored || (bytes > 0 && stored == 0))
        return refuse(file, name, "has less data than its shape says");
    return 0;
}

/* -1, with nothing open, also if an error was pending before. */
static int open_dataset(wg_checkpoint *file, const char *name, dataset *d) {
    *d = (dataset){.id = -1};
    if (!file || wg_error_pending())
        return -1;
    if (!wg_checkpoint_has(file, name))
        return wg_fail(WG_ERROR_NOT_FOUND, "checkpoint_get", "%s has no %s", file->path, name);
    d->id = H5Dopen2(file->file, name, H5P_DEFAULT);
    if (d->id < 0)
        return wg__checkpoint_fail(file, name, "checkpoint_get");
    int status = describe(file, name, d);
    if (status == 0 && file->disk.error) /* an attribute may have been passed over */
        status = wg__checkpoint_fail(file, name, "checkpoint_get");
    if (status == 0)
        return 0;
    H5Dclose(d->id);
    return -1;
}

int wg__checkpoint_spec(wg_checkpoint *file, const char *name, wg_spec *spec) {
    WG__HOLD_HDF5;
    dataset d;
    if (open_dataset(file, name, &d) < 0)
        return -1;
    H5Dclose(d.id);
    *spec = d.spec;
    return 0;
}

static int read_elements(wg_checkpoint *file, const char *name, hid_t dataset, hid_t type,
                         void *out) {
    if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) < 0)
        return wg__checkpoint_fail(file, name, "checkpoint_get");
    return 0;
}

wg_tensor *wg_checkpoint_get_tensor(wg_checkpoint *file, const char *name) {
    WG__HOLD_HDF5;
    dataset d;
    if (open_dataset(file, name, &d) < 0)
        return NULL;
    wg_tensor *x = NULL;
    if (d.is_text)
        refuse(file, name, "is a text, no tensor");
    else
        x = wg_empty(d.spec.dtype, d.spec.ndim, d.spec.shape);
    if (x && wg_tensor_count(x) > 0) {
        hid_t type =
            d.spec.dtype == WG_BOOL ? H5Dget_type(d.id) : hdf5_type_of(d.spec.dtype, false);
        if (read_elements(file, name, d.id, type, wg_tensor_data(x)) < 0)
            x = NULL;
        else if (d.spec.dtype == WG_BOOL) {
            /* Maps every byte but 0 to 1. */
            uint8_t *values = wg_tensor_data(x);
            int64_t count = wg_tensor_count(x);
            for (int64_t i = 0; i < count; i++)
                values[i] = values[i] != 0;
        }
        H5Tclose(type);
    }
    H5Dclose(d.id);
    return x;
}

int wg_checkpoint_get_integer(wg_checkpoint *file, const char *name, int64_t *value) {
    WG__HOLD_HDF5;
    dataset d;
    if (open_dataset(file, name, &d) < 0)
        return -1;
    const int status = d.spec.ndim == 0 && d.spec.dtype == WG_I64
                           ? read_elements(file, name, d.id, H5T_NATIVE_INT64, value)
                           : refuse(file, name, "is no integer");
    H5Dclose(d.id);
    return status;
}

/* -1 if the text differs from its checksum. Texts of other programs have none. */
static int check_crc(wg_checkpoint *file, const char *name, hid_t dataset, const char *text) {
    uint32_t crc = 0;
    const htri_t found = H5Aexists(dataset, "crc32");
    if (found <= 0)
        return found == 0 ? 0 : refuse(file, name, "is damaged: its attributes cannot be read");
    hid_t attribute = H5Aopen(dataset, "crc32", H5P_DEFAULT);
    hid_t space = H5Aget_space(attribute);
    bool read = H5Sget_simple_extent_npoints(space) == 1 &&
                H5Aread(attribute, H5T_NATIVE_UINT32, &crc) >= 0;
    H5Sclose(space);
    H5Aclose(attribute);
    if (!read || crc != wg__crc(text, strlen(text), WG__CRC32))
        return refuse(file, name, "is damaged: its checksum is another");
    return 0;
}

char *wg_checkpoint_get_text(wg_checkpoint *file, const char *name) {
    WG__HOLD_HDF5;
    dataset d;
    if (open_dataset(file, name, &d) < 0)
        return NULL;
    int status = d.is_text ? 0 : refuse(file, name, "is no text");
    char *text = status == 0 ? wg__calloc(d.size + 1, 1) : NULL;
    if (text) {
        const hid_t type = H5Dget_type(d.id);
        status = read_elements(file, name, d.id, type, text);
        H5Tclose(type);
    }
    if (text && (status < 0 || check_crc(file, name, d.id, text) < 0)) {
        wg__free(text);
        text = NULL;
    }
    H5Dclose(d.id);
    return text;
}

void wg__name_list_free(wg__name_list *list) {
    for (int64_t i = 0; i < list->count; i++)
        wg__free(list->names[i]);
    wg__free(list->names);
    *list = (wg__name_list){0};
}

typedef struct visit {
    const char *group;
    wg__name_list *list;
} visit;

/* HDF5 visits groups recursively and finds each by its whole path: a file of 3 MB with 20000 nested
 * groups took minutes. */
enum { MOST_NESTED = 256 };

/* Adds the dataset behind a link; skips links to other files and dangling links. */
static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *link, void *context) {
    const visit *visit = context;
    if (link->type != H5L_TYPE_HARD)
        return 0;
    int depth = 0;
    for (const char *c = name; *c; c++)
        depth += *c == '/';
    if (depth > MOST_NESTED)
        return wg_fail(WG_ERROR_FORMAT, "checkpoint_list", "groups are nested more than %d deep",
                       MOST_NESTED);
    hid_t object = H5Oopen(group, name, H5P_DEFAULT);
    if (object < 0)
        return -1;
    bool is_dataset = H5Iget_type(object) == H5I_DATASET;
    H5Oclose(object);
    if (!is_dataset)
        return 0;
    wg__name_list *list = visit->list;
    char *path = wg__path_in(strcmp(visit->group, "/") == 0 ? "" : visit->group, name);
    if (path && wg__append(&list->names, &list->count, &list->capacity, &path, sizeof path) == 0)
        return 0;
    wg__free(path);
    return -1;
}

int wg__checkpoint_list(wg_checkpoint *file, const char *group, wg__name_list *list) {
    WG__HOLD_HDF5;
    *list = (wg__name_list){0};
    visit visit = {group, list};
    hid_t id = H5Gopen2(file->file, group, H5P_DEFAULT);
    if (id < 0)
        return wg__checkpoint_fail(file, group, "checkpoint_list");
    int status = 0;
    if (H5Lvisit(id, H5_INDEX_NAME, H5_ITER_INC, visit_link, &visit) < 0)
        status = wg_error_pending() ? -1 : wg__checkpoint_fail(file, group, "checkpoint_list");
    H5Gclose(id);
    if (status < 0)
        wg__name_list_free(list);
    return status;
}

int wg_checkpoint_each(wg_checkpoint *file, wg_checkpoint_visitor visit, void *context) {
    WG__HOLD_HDF5;
    wg__name_list list;
    if (!file || wg_error_pending() || wg__checkpoint_list(file, "/", &list) < 0)
        return -1;
    int status = 0;
    for (int64_t i = 0; i < list.count && status >= 0; i++) {
        wg_spec spec;
        status = wg__checkpoint_spec(file, list.names[i], &spec);
        if (status == 0)
            status = visit(list.names[i], &spec, context);
    }
    wg__name_list_free(&list);
    return status < 0 ? status : 0;
}
