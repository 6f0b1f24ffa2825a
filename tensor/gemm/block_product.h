/* y = x W^T + bias with W quantized in blocks of integers, by products of integers (simd/blocks.h).
 */
#ifndef WG_TENSOR_GEMM_BLOCK_PRODUCT_H
#define WG_TENSOR_GEMM_BLOCK_PRODUCT_H

#include "tensor/quantize.h"
#include "tensor/simd/simd.h"

/* `count` products of the same x. Their weights are quantized as `quantization`
 * says, not bf16; where rows stand side by side, weight_stride is their number of bytes. Threads
 * share the outputs; each has the same bits from any number of threads and of rows of x. -1 for
 * lack of memory. */
int wg__block_product(wg_quantization quantization, int count,
                      const wg__quantized_product *products);

#endif
