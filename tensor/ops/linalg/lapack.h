/* LAPACK's routines on batches of matrices. Only lapack.c includes LAPACKE.
 *
 * Matrices are of f32 or f64, in LAPACK's column-major order, so that LAPACKE transposes nothing,
 * one after another:
 *
 *     a  [a00 a10 a20  a01 a11 a21  ...][a00 a10 ...   a batch of `count` matrices
 *
 * Threads share the matrices of a batch; a matrix is one call on one thread. A lock serializes the
 * calls of LAPACK unless the library is known to be thread-safe. */
#ifndef WG_TENSOR_OPS_LINALG_LAPACK_H
#define WG_TENSOR_OPS_LINALG_LAPACK_H

#include "tensor/internal.h"

/* The arrays of a routine, each with `count` matrices or vectors; see wg__lapack_routine for their
 * sizes. */
typedef struct wg__lapack {
    wg_dtype dtype;
    int64_t count;
    int64_t m, n, k;  /* at most INT32_MAX each */
    bool upper, unit; /* of triangles: upper or lower; the diagonal is read or taken as ones */
    bool full;        /* square Q, U and V^T */
    void *a, *b, *u, *s, *vt;
    int32_t *pivots;
    /* After the run: the first matrix whose LAPACK INFO is not 0, and its INFO; else 0. */
    int64_t matrix;
    int64_t info;
} wg__lapack;

typedef enum wg__lapack_routine {
    /* a (n, n): replaced by its triangles L and U; pivots (n): row i was exchanged with row
     * pivots[i] - 1. INFO: the first pivot that is exactly 0, counted from 1. getrf */
    WG__LU,
    /* b (n, k): replaced by a^-1 b; a (n, n) by its triangles, pivots (n) is filled. INFO as above.
     * getrf, getrs */
    WG__SOLVE,
    /* a (n, n): replaced by its inverse; pivots (n) is filled. INFO as above. getrf, getri */
    WG__INVERSE,
    /* b (n, k): replaced by T^-1 b, where T is one triangle of a (n, n). INFO: the first element of
     * the diagonal that is 0, counted from 1. trtrs */
    WG__TRIANGULAR,
    /* a (n, n): its lower triangle is replaced by L with L L^T = a, and its upper one by zeros.
     * INFO: the order of the first leading minor that is not positive. potrf */
    WG__CHOLESKY,
    /* a (m, n): replaced by R in its upper triangle, with other numbers below; u (m, min(m, n), or
     * m if full): Q. geqrf, orgqr */
    WG__QR,
    /* a (n, n): its lower triangle is read, a is replaced by the eigenvectors as columns; s (n):
     * the eigenvalues in ascending order. INFO: it has not converged. syevd */
    WG__EIGH,
    /* a (m, n): destroyed; u (m, r), s (q), vt (r', n) with q = min(m, n), r = r' = q, or m and n
     * if full; without u and vt, which are NULL then, s alone. INFO: it has not converged. gesdd */
    WG__SVD
} wg__lapack_routine;

/* Runs a routine on all matrices of `a`. Sets job->a, allocates job->pivots in the innermost scope
 * if the routine has pivots, and stores LAPACK's INFO in job->info. -1 for a NULL `a`, or if out of
 * memory. */
int wg__lapack_run(wg__lapack *job, wg__lapack_routine routine, wg_tensor *a);

/* The LAPACK library in use. */
typedef struct wg__lapack_library {
    const char *name, *file; /* for messages */
    bool at_once; /* several threads may call it at once; if not, a lock serializes the calls */
} wg__lapack_library;

const wg__lapack_library *wg__lapack_in_use(void);

#endif
