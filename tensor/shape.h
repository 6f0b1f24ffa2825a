/* Arithmetic on shapes. Functions that can fail return -1 with an error recorded. */
#ifndef WG_TENSOR_SHAPE_H
#define WG_TENSOR_SHAPE_H

#include "tensor/tensor.h"

/* Fills a spec. -1 with SHAPE for a bad rank, a negative size, or a product beyond 2^62 bytes. */
int wg__spec_make(wg_spec *spec, wg_dtype dtype, int ndim, const int64_t *shape, const char *where);

static inline int64_t wg__spec_count(const wg_spec *spec) {
    int64_t count = 1;
    for (int i = 0; i < spec->ndim; i++)
        count *= spec->shape[i];
    return count;
}

static inline bool wg__same_shape(const wg_spec *a, const wg_spec *b) {
    if (a->ndim != b->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

/* Row-major strides, in elements. */
void wg__contiguous_strides(const wg_spec *spec, int64_t *strides);

/* The NumPy broadcast of two shapes into out->ndim and out->shape; false if they do not fit. */
bool wg__broadcast(const wg_spec *a, const wg_spec *b, wg_spec *out);

/* The strides under which `x` is read as if it had the (broadcast) shape `to`; false if x does not
 * broadcast to it. */
bool wg__broadcast_strides(const wg_tensor *x, const wg_spec *to, int64_t *strides);

/* An axis in 0..ndim-1 from one that may be negative; -1 with INDEX. */
int wg__axis(int64_t axis, int ndim, const char *where);

/* A bit mask of axes (0, NULL: all of them); -1 with INDEX for one out of range or given twice. */
int64_t wg__axis_mask(int count, const int64_t *axes, int ndim, const char *where);

/* The shape left when the axes of the mask are reduced. */
void wg__reduced_spec(const wg_spec *x, int64_t axis_mask, bool keepdim, wg_spec *out);

#endif
