/* y = x W^T + bias with quantized W, for many rows of x (simd/simd.h, simd/simd.h). */
#ifndef WG_TENSOR_GEMM_QUANTIZED_H
#define WG_TENSOR_GEMM_QUANTIZED_H

#include "tensor/quantize.h"
#include "tensor/simd/simd.h"

/* `count` products of the same x. Threads share the outputs; each output has the same bits from any
 * number of threads, of rows of x and of products. -1 for lack of memory. */

/* W in bf16. */
int wg__bf16_product(const wg__bf16_kernels *kernels, int count,
                     const wg__quantized_product *products);

/* W in blocks of integers, by products of integers. Where rows stand side by side, weight_stride is
 * their number of bytes. */
int wg__block_product(wg_quantization quantization, int count,
                      const wg__quantized_product *products);

#endif
