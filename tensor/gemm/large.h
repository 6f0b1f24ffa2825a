/* Large products, over packed operands; their kernels, and how products are cut into parts. */
#ifndef WG_TENSOR_GEMM_LARGE_H
#define WG_TENSOR_GEMM_LARGE_H

#include "tensor/gemm/gemm.h"
#include "tensor/simd/simd.h"

#include <stdbool.h>

/* ---- Parts of products ---- */

/* The product of m rows of A from row i and n columns of B from column j. */
wg__product wg__product_part(const wg__product *product, int64_t i, int64_t m, int64_t j,
                             int64_t n);

/* The product of the transposed matrices, C^T = B^T A^T. It must have no row. A gathered B becomes
 * a gathered A, which the caller has to remember. */
wg__product wg__product_transposed(const wg__product *product);

/* Copies `row`, if there is one, into C and sets beta to 1. */
void wg__product_place_row(wg__product *product);

/* ---- Kernels ---- */

/* Computes a tile of C, a_width rows by b_width columns, from two slivers: a_width rows of A and
 * b_width columns of B. A packed sliver has one vector of that width for each k. */
typedef struct wg__gemm_kernel {
    wg_dtype dtype;
    int64_t a_width, b_width;
    const wg__simd *simd;            /* its panel_product computes, or */
    const wg__bf16_kernels *rounded; /* if not NULL, the kernel of products that round to bf16 */
} wg__gemm_kernel;

/* The panels of tensor/simd for this processor. dtype is f32 or f64. */
wg__gemm_kernel wg__gemm_kernel_of_panels(wg_dtype dtype);

/* The kernel of products that round to bf16, from one of the tables of tensor/simd. */
wg__gemm_kernel wg__gemm_kernel_of_bf16(const wg__bf16_kernels *kernels);

/* Computes a product of the kernel's dtype with m and n above 0. */
void wg__gemm_large(const wg__product *product, wg__gemm_kernel kernel);

#endif
