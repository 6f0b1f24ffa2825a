/* y = x W^T + bias with quantized W, for many rows of x, by the kernels of simd/simd.h. */
#ifndef WG_TENSOR_GEMM_QUANTIZED_H
#define WG_TENSOR_GEMM_QUANTIZED_H

#include "tensor/quantize.h"
#include "tensor/simd/simd.h"

/* Both functions compute `count` products of the same x. Each output has the same bits at any
 * number of threads, rows of x and products. -1 with [MEMORY]. */

/* W in bf16. */
int wg__bf16_product(const wg__bf16_kernels *kernels, int count,
                     const wg__quantized_product *products);

/* W in blocks of integers. For the x16 quantizations, weight_stride is the bytes of one row. */
int wg__block_product(wg_quantization quantization, int count,
                      const wg__quantized_product *products);

#endif
