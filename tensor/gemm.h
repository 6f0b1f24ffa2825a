/* The one door to BLIS. */
#ifndef WG_TENSOR_GEMM_H
#define WG_TENSOR_GEMM_H

#include "tensor/dtype.h"

#include <stdint.h>

/* A matrix in memory: element (i, j) is at data[i * row_stride + j * column_stride]. */
typedef struct wg__matrix {
    void *data;
    int64_t row_stride, column_stride; /* in elements; not negative in C */
} wg__matrix;

/* C (M, N) = alpha A (M, K) B (K, N) + beta C, of dtype f32 or f64, on up to `threads` threads
 * (wg__gemm_threads says how many it is worth). With beta 0, C is never read. */
void wg__gemm(wg_dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, wg__matrix a,
              wg__matrix b, double beta, wg__matrix c, int threads);

#endif
