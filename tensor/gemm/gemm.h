/* The one door to BLIS. */
#ifndef WG_TENSOR_GEMM_GEMM_H
#define WG_TENSOR_GEMM_GEMM_H

#include "tensor/dtype.h"

#include <stdint.h>

/* A matrix in memory: element (i, j) is at data[i * row_stride + j * column_stride]. */
typedef struct wg__matrix {
    void *data;
    int64_t row_stride, column_stride; /* in elements, positive along axes longer than 1 */
} wg__matrix;

/* C (M, N) = alpha A (M, K) B (K, N) + beta C, of dtype f32, f64, i32, i64 or u8 (which wrap
 * around). With beta 0, C is never read.
 * Runs in parallel where that is worth it, on the calling thread alone within a parallel loop: the
 * same bits on any number of threads. Thread safe. */
void wg__gemm(wg_dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, wg__matrix a,
              wg__matrix b, double beta, wg__matrix c);

/* C (M, N) = A (M, K) B (K, N), plus `row`, N elements one after the other, in each row. */
void wg__gemm_plus_row(wg_dtype dtype, int64_t m, int64_t n, int64_t k, wg__matrix a, wg__matrix b,
                       const void *row, wg__matrix c);

/* Floating-point operations, two a multiply-add, of the f32 and f64 products that this thread asked
 * for so far. Who runs products on several threads at once saves the counter before and sets it
 * after, to what they come to beside it. */
extern _Thread_local double wg__product_flops;

#endif
