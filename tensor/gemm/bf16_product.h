/* y = x W^T + bias with W quantized as bf16, of many rows of x (simd/bf16.h). */
#ifndef WG_TENSOR_GEMM_BF16_PRODUCT_H
#define WG_TENSOR_GEMM_BF16_PRODUCT_H

#include "tensor/simd/bf16.h"
#include "tensor/simd/simd.h"

/* `count` products of the same x by these kernels. Threads share the rows of all W; each output has
 * the same bits from any number of threads, of rows of x and of products. -1 for lack of memory. */
int wg__bf16_product(const wg__bf16_kernels *kernels, int count,
                     const wg__quantized_product *products);

#endif
