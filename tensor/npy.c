/* Reads and writes NumPy's .npy files.
 *
 *     "\x93NUMPY"  major minor  length (u16; u32 from version 2)
 *     "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", spaces, a line end
 *     the elements
 *
 * The header is a Python literal; only this form of it is read. Its sizes are checked against the
 * file's size before memory is allocated. */
#include "tensor/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replacement.h"
#include "tensor/internal.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_SIZE 6
#define MAX_HEADER 65536 /* a tuple of 8 sizes needs far less */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are read as they lie");

static const struct {
    const char *text;
    wg_dtype dtype;
} descriptions[] = {{"<f4", WG_F32}, {"<f8", WG_F64}, {"<i4", WG_I32}, {"<i8", WG_I64},
                    {"|u1", WG_U8},  {"<u1", WG_U8},  {"|b1", WG_BOOL}};

#define DESCRIPTION_COUNT (sizeof(descriptions) / sizeof(descriptions[0]))

static const char *description_of(wg_dtype dtype) {
    for (size_t i = 0; i < DESCRIPTION_COUNT; i++)
        if (descriptions[i].dtype == dtype)
            return descriptions[i].text;
    return NULL;
}

int wg_npy_save(const wg_tensor *x, const char *path) {
    if (!x || wg__check_memory(x, "npy") < 0)
        return -1;
    if (!description_of(x->spec.dtype))
        return wg_fail(WG_ERROR_DTYPE, "npy", "%s: NumPy has no %s; cast to f32", path,
                       wg_dtype_name(x->spec.dtype));
    char header[512];
    wg__replacement r;
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_tensor *flat = wg_tensor_is_contiguous(x) ? x : wg__copy_of(x);
    int status = flat ? wg__replacement_begin(&r, path, "npy") : -1;
    if (status == 0) {
        memcpy(header, MAGIC "\x01\x00", MAGIC_SIZE + 2);
        size_t used = MAGIC_SIZE + 4;
        used += (size_t)snprintf(header + used, sizeof header - used,
                                 "{'descr': '%s', 'fortran_order': False, 'shape': (",
                                 description_of(x->spec.dtype));
        for (int d = 0; d < x->spec.ndim; d++)
            used += (size_t)snprintf(header + used, sizeof header - used, "%s%" PRId64 "%s",
                                     d ? " " : "", x->spec.shape[d],
                                     d + 1 < x->spec.ndim || d == 0 ? "," : "");
        used += (size_t)snprintf(header + used, sizeof header - used, "), }");
        do /* the elements begin at a multiple of 64 */
            header[used++] = ' ';
        while (used % 64 != 0);
        header[used - 1] = '\n';
        header[MAGIC_SIZE + 2] = (char)((used - MAGIC_SIZE - 4) & 0xff);
        header[MAGIC_SIZE + 3] = (char)((used - MAGIC_SIZE - 4) >> 8);
        const int64_t size = (int64_t)used;
        const int64_t bytes = wg_tensor_count(flat) * (int64_t)wg_dtype_size(flat->spec.dtype);
        if (wg__write_at(r.descriptor, header, size, 0) < 0 ||
            wg__write_at(r.descriptor, wg_tensor_data(flat), bytes, size) < 0)
            status = wg__fail_with_errno(path, "npy");
        else
            status = wg__replacement_finish(&r, "npy");
        wg__replacement_end(&r);
    }
    wg_scope_end(&scope, NULL);
    return status;
}

typedef struct reader {
    const char *path;
    FILE *file;
    bool has_dtype, has_order, has_shape;
    wg_dtype dtype;
    bool fortran;
    int ndim;
    int64_t shape[WG_MAX_DIMS];
} reader;

WG_PRINTF(2, 3) static int refuse(const reader *r, const char *format, ...) {
    char why[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof(why), format, arguments);
    va_end(arguments);
    return wg_fail(WG_ERROR_FORMAT, "npy", "%s: %s", r->path, why);
}

/* Skips `text`, and spaces before it, if it comes next. */
static bool accept(const char **at, const char *text) {
    *at += strspn(*at, " \n");
    size_t length = strlen(text);
    if (strncmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

static int parse_dtype(reader *r, const char **at) {
    r->has_dtype = true;
    for (size_t i = 0; i < DESCRIPTION_COUNT; i++) {
        char quoted[8];
        snprintf(quoted, sizeof(quoted), "'%s'", descriptions[i].text);
        r->dtype = descriptions[i].dtype;
        if (accept(at, quoted))
            return 0;
    }
    return refuse(r, "elements of dtype %.*s; wanted little-endian f4, f8, i4, i8, u1 or b1",
                  (int)strcspn(*at, ",}\n"), *at);
}

/* A decimal size; -1 if there is no number, or if it is beyond any memory. */
static int64_t parse_size(const char **at) {
    *at += strspn(*at, " \n");
    if (**at < '0' || **at > '9')
        return -1;
    int64_t size = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (size > INT64_MAX / 16)
            return -1;
        size = size * 10 + (**at - '0');
    }
    return size;
}

static int parse_shape(reader *r, const char **at) {
    r->has_shape = true;
    if (!accept(at, "("))
        return refuse(r, "the shape is no tuple");
    while (!accept(at, ")")) {
        if (r->ndim == WG_MAX_DIMS)
            return refuse(r, "more than %d dimensions", WG_MAX_DIMS);
        int64_t size = parse_size(at);
        bool comma = accept(at, ",");
        if (size < 0 || (!comma && (r->ndim == 0 || **at != ')')))
            return refuse(r, "the shape is no tuple of sizes");
        r->shape[r->ndim++] = size;
    }
    return 0;
}

static int parse_dictionary(reader *r, const char *at) {
    int status = accept(&at, "{") ? 0 : refuse(r, "the header is no dictionary");
    while (status == 0 && !accept(&at, "}")) {
        if (!r->has_dtype && accept(&at, "'descr':")) {
            status = parse_dtype(r, &at);
        } else if (!r->has_shape && accept(&at, "'shape':")) {
            status = parse_shape(r, &at);
        } else if (!r->has_order && accept(&at, "'fortran_order':")) {
            r->has_order = true;
            r->fortran = accept(&at, "True");
            if (!r->fortran && !accept(&at, "False"))
                status = refuse(r, "fortran_order is neither True nor False");
        } else {
            status =
                refuse(r, "the header is no dictionary of descr, fortran_order and shape alone");
        }
        if (status == 0 && !accept(&at, ",") && *at != '}')
            status = refuse(r, "the header is no dictionary");
    }
    at += strspn(at, " \n");
    if (status == 0 && (*at || !r->has_dtype || !r->has_order || !r->has_shape))
        status = refuse(r, "the header is no dictionary of descr, fortran_order and shape");
    return status;
}

static int read_exactly(reader *r, void *bytes, size_t size) {
    if (fread(bytes, 1, size, r->file) == size)
        return 0;
    if (ferror(r->file))
        return wg_fail(WG_ERROR_IO, "npy", "%s: %s", r->path, strerror(errno));
    return refuse(r, "the file is cut short");
}

static int read_header(reader *r) {
    unsigned char start[MAGIC_SIZE + 2], length[4] = {0};
    if (read_exactly(r, start, sizeof(start)) < 0)
        return -1;
    if (memcmp(start, MAGIC, MAGIC_SIZE) != 0)
        return refuse(r, "no .npy file, for it does not begin with \\x93NUMPY");
    int major = start[MAGIC_SIZE], minor = start[MAGIC_SIZE + 1];
    if (major < 1 || major > 3 || minor != 0)
        return refuse(r, "format %d.%d; wanted 1.0, 2.0 or 3.0", major, minor);
    if (read_exactly(r, length, major == 1 ? 2 : 4) < 0)
        return -1;
    int64_t size = length[0] | length[1] << 8 | length[2] << 16 | (int64_t)length[3] << 24;
    if (size > MAX_HEADER)
        return refuse(r, "a header of %" PRId64 " bytes; at most %d are read", size, MAX_HEADER);
    char *text = wg__calloc((size_t)size + 1, 1);
    if (!text)
        return -1;
    int result = read_exactly(r, text, (size_t)size);
    if (result == 0)
        result = parse_dictionary(r, text);
    wg__free(text);
    return result;
}

static wg_tensor *read_elements(reader *r, const wg_spec *spec) {
    wg_tensor *x = wg_empty(spec->dtype, spec->ndim, spec->shape);
    if (!x)
        return NULL;
    int64_t count = wg_tensor_count(x);
    uint8_t *data = wg_tensor_data(x);
    if (count > 0 && read_exactly(r, data, (size_t)count * wg_dtype_size(spec->dtype)) < 0)
        return NULL;
    for (int64_t i = 0; spec->dtype == WG_BOOL && i < count; i++)
        data[i] = data[i] != 0;
    return x;
}

static wg_tensor *read_tensor(reader *r) {
    struct stat status;
    wg_spec spec;
    if (fstat(fileno(r->file), &status) != 0 || !S_ISREG(status.st_mode))
        return wg__fail_null(WG_ERROR_IO, "npy", "%s: not a regular file", r->path);
    if (read_header(r) < 0 || wg__spec_make(&spec, r->dtype, r->ndim, r->shape, "npy") < 0)
        return NULL;
    const int64_t wanted = wg__spec_count(&spec) * (int64_t)wg_dtype_size(spec.dtype);
    const int64_t left = status.st_size - ftell(r->file);
    if (left != wanted) {
        refuse(r, "the header promises %" PRId64 " bytes of elements; the file has %" PRId64,
               wanted, left);
        return NULL;
    }
    if (!r->fortran)
        return read_elements(r, &spec);
    /* Column-major elements are the row-major ones of the transposed tensor. */
    wg_spec transposed = spec;
    int64_t order[WG_MAX_DIMS];
    for (int d = 0; d < spec.ndim; d++) {
        order[d] = spec.ndim - 1 - d;
        transposed.shape[d] = spec.shape[order[d]];
    }
    return wg_contiguous(wg_permute(read_elements(r, &transposed), spec.ndim, order));
}

wg_tensor *wg_npy_load(const char *path) {
    reader r = {.path = path, .file = fopen(path, "rb")};
    if (!r.file)
        return wg__fail_null(errno == ENOENT ? WG_ERROR_NOT_FOUND : WG_ERROR_IO, "npy", "%s: %s",
                             path, strerror(errno));
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x = wg_scope_end(&scope, read_tensor(&r));
    fclose(r.file);
    return x;
}
