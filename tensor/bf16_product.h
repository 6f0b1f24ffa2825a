/* y = x W^T + bias with W packed as bf16, of many rows of x. */
#ifndef WG_TENSOR_BF16_PRODUCT_H
#define WG_TENSOR_BF16_PRODUCT_H

#include <stdint.h>

#include "tensor/simd/simd.h"

/* In f32. Threads share the `outputs` rows of W; each has the same bits from any number of threads.
 */
void wg__bf16_product(int64_t outputs, const wg__packed_product *product);

#endif
