/* Helpers of the ops that call LAPACK: see matrices.h. */
#include "tensor/ops/linalg/matrices.h"

#include <stdio.h>

int wg__check_matrices(const wg_call *call, bool square) {
    const wg_spec *a = &call->input_specs[0];
    if (wg__check_kernel_dtype(call) < 0)
        return -1;
    if (a->ndim < 2)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted a matrix, or a batch of them: (..., M, N)");
    const int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1];
    if (square && m != n)
        return wg__op_fail(call, WG_ERROR_SHAPE, "the matrices are %lld x %lld; wanted square ones",
                           (long long)m, (long long)n);
    if (m > INT32_MAX || n > INT32_MAX)
        return wg__op_fail(call, WG_ERROR_SHAPE, "LAPACK takes up to %d rows and columns",
                           INT32_MAX);
    return 0;
}

int wg__infer_square(wg_call *call) {
    return wg__check_matrices(call, true) < 0 ? -1 : wg__infer_like(call);
}

void wg__infer_matrix(wg_call *call, int output, int ndim, int64_t rows, int64_t columns) {
    wg_spec *out = &call->output_specs[output];
    *out = call->input_specs[0];
    out->ndim -= 2;
    if (ndim > 0)
        out->shape[out->ndim++] = rows;
    if (ndim > 1)
        out->shape[out->ndim++] = columns;
}

wg_tensor *wg__column_major_new(const wg_spec *spec) {
    wg_spec transposed = *spec;
    transposed.shape[spec->ndim - 1] = spec->shape[spec->ndim - 2];
    transposed.shape[spec->ndim - 2] = spec->shape[spec->ndim - 1];
    wg_tensor *x = wg__tensor_new(&transposed);
    return x ? wg_transpose(x, -2, -1) : NULL;
}

wg_tensor *wg__column_major(wg_tensor *x) {
    wg_tensor *copy = x ? wg__column_major_new(&x->spec) : NULL;
    return copy && wg_copy_(copy, x) == 0 ? copy : NULL;
}

wg__lapack wg__lapack_job(const wg_call *call) {
    const wg_spec *a = &call->input_specs[0];
    return (wg__lapack){.dtype = a->dtype,
                        .count = wg__shape_count(a->ndim - 2, a->shape),
                        .m = a->shape[a->ndim - 2],
                        .n = a->shape[a->ndim - 1]};
}

const char *wg__matrix_text(char *buffer, size_t size, const wg_call *call, int64_t matrix) {
    if (call->input_specs[0].ndim == 2)
        snprintf(buffer, size, "the matrix");
    else
        snprintf(buffer, size, "matrix %lld of the batch", (long long)matrix);
    return buffer;
}

int wg__fail_singular(const wg_call *call, const wg__lapack *job) {
    char text[64];
    return wg__op_fail(call, WG_ERROR_ARGUMENT,
                       "%s is singular (row or column %lld depends on earlier ones); wg_pinv and "
                       "wg_lstsq are for such systems, or add a small multiple of the identity",
                       wg__matrix_text(text, sizeof text, call, job->matrix), (long long)job->info);
}

wg_tensor *wg__transposed(wg_tensor *x) {
    return wg_transpose(x, -2, -1);
}

wg_tensor *wg__symmetric_part(wg_tensor *x) {
    return wg_mul_scalar(wg_add(x, wg__transposed(x)), 0.5);
}

wg_tensor *wg__as_scales(wg_tensor *x) {
    return wg_unsqueeze(wg_unsqueeze(x, -1), -1);
}

static wg_tensor *with_diagonal(wg_tensor *x, double value) {
    const int64_t rows = wg_tensor_size(x, -2), columns = wg_tensor_size(x, -1);
    return wg_add(x, wg_mul_scalar(wg_eye(wg_tensor_dtype(x), rows, columns), value));
}

wg_tensor *wg__sample_matrices(wg_generator *generator, int ndim, const int64_t *shape) {
    return with_diagonal(wg_randn(generator, WG_F64, ndim, shape), 3);
}

wg_tensor *wg__sample_large_matrices(wg_generator *generator, int ndim, const int64_t *shape) {
    return with_diagonal(wg_randn(generator, WG_F32, ndim, shape), 32);
}
