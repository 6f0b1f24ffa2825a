/* What the ops that LAPACK computes share: checks of matrices, copies in LAPACK's order, casts,
 * messages, samples. */
#ifndef WG_TENSOR_OPS_LINALG_MATRICES_H
#define WG_TENSOR_OPS_LINALG_MATRICES_H

#include "tensor/ops.h"
#include "tensor/ops/linalg/lapack.h"
#include "tensor/ops/support.h"

/* -1 unless input 0 is a batch of matrices (..., M, N) of f32 or f64, with sizes that LAPACK can
 * address, and, with `square`, M = N. [DTYPE, SHAPE] */
int wg__check_matrices(const wg_call *call, bool square);

/* Sets the spec of output `output`: the dtype and the leading axes of input 0, and behind those the
 * last `ndim` axes. */
void wg__infer_matrix(wg_call *call, int output, int ndim, int64_t rows, int64_t columns);

/* A tensor whose matrices, its last two axes, lie in column-major order one after another; and a
 * copy of x in such memory. In the innermost scope. */
wg_tensor *wg__column_major_new(const wg_spec *spec);
wg_tensor *wg__column_major(wg_tensor *x);

/* A job on the matrices of input 0: dtype, count, m, n. */
wg__lapack wg__lapack_job(const wg_call *call);

/* "matrix 3 of the batch", or "the matrix" if there is one alone. Returns buffer. */
const char *wg__matrix_text(char *buffer, size_t size, const wg_call *call, int64_t matrix);

/* Records that the matrix for which the job stopped is singular; -1. [ARGUMENT] */
int wg__fail_singular(const wg_call *call, const wg__lapack *job);

/* x with the last two axes exchanged, and (x + x^T) / 2. */
wg_tensor *wg__transposed(wg_tensor *x);
wg_tensor *wg__symmetric_part(wg_tensor *x);

/* x (...) -> (..., 1, 1), so that it scales matrices. */
wg_tensor *wg__as_scales(wg_tensor *x);

/* Runs an op of one operand and of one or several outputs, with casts: integers to f32, and bf16 to
 * f32 and back. The outputs are in the innermost scope. -1 after an error, with all NULL. */
int wg__apply_matrices(const wg_op *op, wg_tensor *x, const void *options, wg_tensor **outputs);
wg_tensor *wg__apply_matrix(const wg_op *op, wg_tensor *x, const void *options);

/* Matrices of f64 that are far from singular: normal ones with 3 added along the diagonal. */
wg_tensor *wg__sample_matrices(wg_generator *generator, int ndim, const int64_t *shape);

/* Samples {options, rank, shape} of an op of one batch of matrices, made by MAKE. */
#define WG__MATRIX_SAMPLES(NAME, MAKE, OPTIONS, ...)                                               \
    static int NAME##_sample(int index, wg_generator *generator, wg_sample *sample) {              \
        static const struct {                                                                      \
            OPTIONS options;                                                                       \
            int ndim;                                                                              \
            int64_t shape[4];                                                                      \
        } cases[] = {__VA_ARGS__};                                                                 \
        if (index >= (int)(sizeof cases / sizeof *cases))                                          \
            return 0;                                                                              \
        sample->options = &cases[index].options;                                                   \
        sample->inputs[0] = MAKE(generator, cases[index].ndim, cases[index].shape);                \
        return wg__sample_status(sample, 1);                                                       \
    }

/* A batch of 64 matrices (128, 128) of f32, far from singular, for benches. */
wg_tensor *wg__bench_matrices(wg_generator *generator);

#endif
