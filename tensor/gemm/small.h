/* Products that BLIS is not made for: with a vector or a few, and of small matrices, where finding
 * its way to a kernel takes it longer than the product. */
#ifndef WG_TENSOR_GEMM_SMALL_H
#define WG_TENSOR_GEMM_SMALL_H

#include "tensor/gemm/gemm.h"

#include <stdbool.h>

/* True where wg__gemm_small takes the place of BLIS: a matter of sizes and strides alone. */
bool wg__gemm_is_small(int64_t m, int64_t n, int64_t k, wg__matrix a, wg__matrix b, wg__matrix c);

/* wg__gemm (gemm.h) where wg__gemm_is_small; dtype is f32 or f64. */
void wg__gemm_small(wg_dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, wg__matrix a,
                    wg__matrix b, double beta, wg__matrix c);

#endif
