/* Products that are large on both sides: BLIS's kernels, over operands that are packed here. */
#ifndef WG_TENSOR_GEMM_LARGE_H
#define WG_TENSOR_GEMM_LARGE_H

#include "tensor/gemm_product.h"

/* Of f32 or f64, with m and n above 0. */
void wg__gemm_large(const wg__product *product);

#endif
