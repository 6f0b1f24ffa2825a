/* Helpers of the ops that call LAPACK: checks of matrices, copies in column-major order, messages,
 * samples. */
#ifndef WG_TENSOR_OPS_LINALG_MATRICES_H
#define WG_TENSOR_OPS_LINALG_MATRICES_H

#include "tensor/ops/linalg/lapack.h"
#include "tensor/ops/support.h"

/* -1 unless input 0 is a batch of matrices (..., M, N) of f32 or f64, with sizes that LAPACK can
 * address, and, with `square`, M = N. [DTYPE, SHAPE] */
int wg__check_matrices(const wg_call *call, bool square);

/* wg__infer_like for square matrices. */
int wg__infer_square(wg_call *call);

/* Sets the spec of output `output`: the dtype and the leading axes of input 0, then (rows, columns)
 * for ndim 2, (rows) for 1, nothing for 0. */
void wg__infer_matrix(wg_call *call, int output, int ndim, int64_t rows, int64_t columns);

/* A new tensor, and a copy of x, in the innermost scope. The matrices, over the last two axes, are
 * in column-major order, one after another. */
wg_tensor *wg__column_major_new(const wg_spec *spec);
wg_tensor *wg__column_major(wg_tensor *x);

/* A job on the matrices of input 0: dtype, count, m, n. */
wg__lapack wg__lapack_job(const wg_call *call);

/* Writes "matrix 3 of the batch", or "the matrix" if there is no batch. Returns buffer. */
const char *wg__matrix_text(char *buffer, size_t size, const wg_call *call, int64_t matrix);

/* The error that the job found a singular matrix; -1. [ARGUMENT] */
int wg__fail_singular(const wg_call *call, const wg__lapack *job);

/* x with the last two axes exchanged, and (x + x^T) / 2. */
wg_tensor *wg__transposed(wg_tensor *x);
wg_tensor *wg__symmetric_part(wg_tensor *x);

/* x (...) -> (..., 1, 1), to scale matrices. */
wg_tensor *wg__as_scales(wg_tensor *x);

/* Element i of a contiguous tensor. */
static inline double wg__value_at(const wg_tensor *x, int64_t i) {
    return wg__element(x->spec.dtype, (const char *)wg__tensor_address(x) +
                                          i * (int64_t)wg_dtype_size(x->spec.dtype));
}

/* Well-conditioned matrices of f64: normally distributed, with 3 added to the diagonal. */
wg_tensor *wg__sample_matrices(wg_generator *generator, int ndim, const int64_t *shape);

/* Matrices of f32 with 32 added to the diagonal, for benches on (64, 128, 128). */
wg_tensor *wg__sample_large_matrices(wg_generator *generator, int ndim, const int64_t *shape);

#endif
