/* y = x W^T + bias with W packed as bf16, of many rows of x (simd/bf16.h). */
#ifndef WG_TENSOR_BF16_PRODUCT_H
#define WG_TENSOR_BF16_PRODUCT_H

#include "tensor/simd/bf16.h"
#include "tensor/simd/simd.h"

/* By these kernels. Threads share the rows of W; each has the same bits from any number
 * of threads and of rows of x. -1 for lack of memory. */
int wg__bf16_product(const wg__bf16_kernels *kernels, const wg__packed_product *product);

#endif
