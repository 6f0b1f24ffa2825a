/* Tensors of constants, sequences and C arrays. */
#include <math.h>
#include <string.h>

#include "tensor/internal.h"

wg_tensor *wg_empty(wg_dtype dtype, int ndim, const int64_t *shape) {
    wg_spec spec;
    if (wg__spec_make(&spec, dtype, ndim, shape, "empty") < 0)
        return NULL;
    return wg__tensor_new(&spec);
}

wg_tensor *wg_full(wg_dtype dtype, int ndim, const int64_t *shape, double value) {
    wg_tensor *x = wg_empty(dtype, ndim, shape);
    return wg_fill_(x, value) < 0 ? NULL : x;
}

wg_tensor *wg_zeros(wg_dtype dtype, int ndim, const int64_t *shape) {
    return wg_full(dtype, ndim, shape, 0);
}

wg_tensor *wg_ones(wg_dtype dtype, int ndim, const int64_t *shape) {
    return wg_full(dtype, ndim, shape, 1);
}

wg_tensor *wg_empty_like(const wg_tensor *x) {
    return x ? wg__tensor_new(&x->spec) : NULL;
}

wg_tensor *wg_full_like(const wg_tensor *x, double value) {
    wg_tensor *y = wg_empty_like(x);
    return wg_fill_(y, value) < 0 ? NULL : y;
}

wg_tensor *wg_zeros_like(const wg_tensor *x) {
    return wg_full_like(x, 0);
}

wg_tensor *wg_ones_like(const wg_tensor *x) {
    return wg_full_like(x, 1);
}

wg_tensor *wg_scalar(wg_dtype dtype, double value) {
    return wg_full(dtype, 0, NULL, value);
}

wg_tensor *(wg_from_array)(wg_dtype dtype, int ndim, const int64_t *shape, const void *data) {
    wg_tensor *x = wg_empty(dtype, ndim, shape);
    size_t bytes = (size_t)wg_tensor_count(x) * wg_dtype_size(dtype);
    if (!x || bytes == 0)
        return x;
    if (!data)
        return wg__fail_null(WG_ERROR_ARGUMENT, "from_array", "the array is NULL; wanted %zu bytes",
                             bytes);
    memcpy(wg_tensor_data(x), data, bytes);
    return x;
}

wg_tensor *wg_arange(wg_dtype dtype, double start, double stop, double step) {
    double size = ceil((stop - start) / step);
    if (step == 0 || !(size >= 0) || size > 0x1p53) {
        /* An empty range the right way round has size 0; -0.0 and below is the wrong way. */
        return wg__fail_null(WG_ERROR_ARGUMENT, "arange", "from %g to %g by steps of %g", start,
                             stop, step);
    }
    int64_t count = (int64_t)size;
    wg_tensor *x = wg_empty(dtype, 1, &count);
    if (!x)
        return NULL;
    size_t element = wg_dtype_size(dtype);
    char *data = wg_tensor_data(x);
    for (int64_t i = 0; i < count; i++)
        wg__set_element(dtype, data + (size_t)i * element, start + (double)i * step);
    return x;
}

/* Numbers from start to stop, or powers of *base by them. They are counted from the nearer end, so
 * that both ends are exact. */
static wg_tensor *spaced(wg_dtype dtype, double start, double stop, int64_t count,
                         const double *base, const char *where) {
    if (count < 0)
        return wg__fail_null(WG_ERROR_ARGUMENT, where, "%lld numbers", (long long)count);
    wg_tensor *x = wg_empty(dtype, 1, &count);
    char *data = wg_tensor_data(x);
    const double step = count > 1 ? (stop - start) / (double)(count - 1) : 0;
    for (int64_t i = 0; x && i < count; i++) {
        double value =
            i < (count + 1) / 2 ? start + (double)i * step : stop - (double)(count - 1 - i) * step;
        if (base)
            value = pow(*base, value);
        else if (!wg_dtype_is_float(dtype))
            value = floor(value);
        wg__set_element(dtype, data + (size_t)i * wg_dtype_size(dtype), value);
    }
    return x;
}

wg_tensor *wg_linspace(wg_dtype dtype, double start, double stop, int64_t count) {
    return spaced(dtype, start, stop, count, NULL, "linspace");
}

wg_tensor *wg_logspace(wg_dtype dtype, double start, double stop, int64_t count, double base) {
    return spaced(dtype, start, stop, count, &base, "logspace");
}

wg_tensor *wg_eye(wg_dtype dtype, int64_t rows, int64_t columns) {
    wg_tensor *x = wg_zeros(dtype, 2, (int64_t[]){rows, columns});
    char *data = wg_tensor_data(x);
    for (int64_t i = 0; x && i < rows && i < columns; i++)
        wg__set_element(dtype, data + (size_t)(i * columns + i) * wg_dtype_size(dtype), 1);
    return x;
}

wg_tensor *wg_tri(wg_dtype dtype, int64_t rows, int64_t columns, int64_t diagonal) {
    wg_tensor *x = wg_zeros(dtype, 2, (int64_t[]){rows, columns});
    char *data = wg_tensor_data(x);
    for (int64_t i = 0; x && i < rows; i++)
        for (int64_t j = 0; j < columns && j - i <= diagonal; j++)
            wg__set_element(dtype, data + (size_t)(i * columns + j) * wg_dtype_size(dtype), 1);
    return x;
}
