/* Products that are large on both sides, over operands that are packed here. */
#ifndef WG_TENSOR_GEMM_LARGE_H
#define WG_TENSOR_GEMM_LARGE_H

#include "tensor/gemm/kernel.h"

/* Of f32 or f64, as the kernel is, with m and n above 0. */
void wg__gemm_large(const wg__product *product, const wg__gemm_kernel *kernel);

#endif
