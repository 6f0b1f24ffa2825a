/* Arithmetic on shapes. */
#include "tensor/shape.h"

#include <stdlib.h>

#include "tensor/internal.h"

int wg__spec_make(wg_spec *spec, wg_dtype dtype, int ndim, const int64_t *shape,
                  const char *where) {
    if (wg_dtype_size(dtype) == 0)
        return wg_fail(WG_ERROR_ARGUMENT, where, "%d is no dtype", (int)dtype);
    if (ndim < 0 || ndim > WG_MAX_DIMS)
        return wg_fail(WG_ERROR_SHAPE, where, "%d dimensions; there are 0 to %d", ndim,
                       WG_MAX_DIMS);
    if (ndim > 0 && !shape)
        return wg_fail(WG_ERROR_ARGUMENT, where, "the shape of %d dimensions is NULL", ndim);
    /* A size of 0 anywhere does not excuse the others from fitting: strides are their products. */
    double bytes = (double)wg_dtype_size(dtype);
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0)
            return wg_fail(WG_ERROR_SHAPE, where, "size %lld of dimension %d is negative",
                           (long long)shape[i], i);
        bytes *= shape[i] > 0 ? (double)shape[i] : 1;
        if (bytes > 0x1p62)
            return wg_fail(WG_ERROR_SHAPE, where, "more than 2^62 bytes");
        spec->shape[i] = shape[i];
    }
    spec->dtype = dtype;
    spec->ndim = ndim;
    return 0;
}

void wg__contiguous_strides(const wg_spec *spec, int64_t *strides) {
    int64_t stride = 1;
    for (int i = spec->ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= spec->shape[i] > 0 ? spec->shape[i] : 1;
    }
}

bool wg__broadcast(const wg_spec *a, const wg_spec *b, wg_spec *out) {
    int ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int i = 1; i <= ndim; i++) { /* from the last axis on */
        int64_t from_a = i <= a->ndim ? a->shape[a->ndim - i] : 1;
        int64_t from_b = i <= b->ndim ? b->shape[b->ndim - i] : 1;
        if (from_a != from_b && from_a != 1 && from_b != 1)
            return false;
        out->shape[ndim - i] = from_a == 1 ? from_b : from_a;
    }
    out->ndim = ndim;
    return true;
}

bool wg__broadcast_strides(const wg_tensor *x, const wg_spec *to, int64_t *strides) {
    int added = to->ndim - x->spec.ndim;
    if (added < 0)
        return false;
    for (int i = 0; i < to->ndim; i++) {
        int64_t size = i < added ? 1 : x->spec.shape[i - added];
        if (size != to->shape[i] && size != 1)
            return false;
        strides[i] = size == 1 ? 0 : x->strides[i - added];
    }
    return true;
}

int wg__axis(int64_t axis, int ndim, const char *where) {
    if (axis < -ndim || axis >= ndim)
        return wg_fail(WG_ERROR_INDEX, where, "axis %lld of a tensor of %d dimensions",
                       (long long)axis, ndim);
    return (int)(axis < 0 ? axis + ndim : axis);
}

int64_t wg__axis_mask(int count, const int64_t *axes, int ndim, const char *where) {
    if (!axes)
        return (1 << ndim) - 1;
    int64_t mask = 0;
    for (int i = 0; i < count; i++) {
        int axis = wg__axis(axes[i], ndim, where);
        if (axis < 0)
            return -1;
        if (mask & 1 << axis)
            return wg_fail(WG_ERROR_INDEX, where, "axis %lld is given twice", (long long)axes[i]);
        mask |= 1 << axis;
    }
    return mask;
}

void wg__reduced_spec(const wg_spec *x, int64_t axis_mask, bool keepdim, wg_spec *out) {
    int ndim = 0;
    for (int i = 0; i < x->ndim; i++) {
        bool reduced = axis_mask >> i & 1;
        if (!reduced || keepdim)
            out->shape[ndim++] = reduced ? 1 : x->shape[i];
    }
    out->ndim = ndim;
    out->dtype = x->dtype;
}
