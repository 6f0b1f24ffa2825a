/* Products of integer matrices, which BLIS does not have. */
#ifndef WG_TENSOR_GEMM_INTEGER_H
#define WG_TENSOR_GEMM_INTEGER_H

#include "tensor/gemm/gemm.h"

/* wg__gemm (gemm.h) for i32, i64 and u8. What does not fit the dtype wraps around; alpha and beta
 * are truncated to integers. */
void wg__gemm_integer(wg_dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, wg__matrix a,
                      wg__matrix b, double beta, wg__matrix c);

#endif
