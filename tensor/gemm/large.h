/* Large products, over packed operands; their kernels, and how products are cut into parts. */
#ifndef WG_TENSOR_GEMM_LARGE_H
#define WG_TENSOR_GEMM_LARGE_H

#include "tensor/gemm/blis.h"
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

/* A kernel reads an operand in slivers: `width` rows of A, or columns of B. A packed sliver has one
 * vector for each k, `step` elements apart. */
typedef struct wg__kernel_side {
    int64_t width, step;
} wg__kernel_side;

/* Computes a tile of C, a.width rows by b.width columns, from two slivers. */
typedef struct wg__gemm_kernel {
    wg_dtype dtype;
    wg__kernel_side a, b;
    bool by_rows;                    /* wants the rows of C contiguous, otherwise its columns */
    bool reads_a;                    /* can read A unpacked */
    const wg__simd *simd;            /* the kernel of tensor/simd; NULL: that of BLIS */
    const wg__bf16_kernels *rounded; /* if not NULL: that of products that round to bf16 */
    wg__blis_kernel blis;
} wg__gemm_kernel;

/* BLIS's kernel for this processor, that of tensor/simd, and the faster of the two, or in
 * deterministic mode the latter. dtype is f32 or f64. */
wg__gemm_kernel wg__gemm_kernel_of_blis(wg_dtype dtype);
wg__gemm_kernel wg__gemm_kernel_of_panels(wg_dtype dtype);
wg__gemm_kernel wg__gemm_kernel_for(wg_dtype dtype);

/* The kernel of products that round to bf16, from one of the tables of tensor/simd. */
wg__gemm_kernel wg__gemm_kernel_of_bf16(const wg__bf16_kernels *kernels);

/* Computes a product of the kernel's dtype with m and n above 0. */
void wg__gemm_large(const wg__product *product, wg__gemm_kernel kernel);

#endif
