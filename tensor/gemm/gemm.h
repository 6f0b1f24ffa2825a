/* Matrix products of floats and integers. Only this folder uses BLIS. */
#ifndef WG_TENSOR_GEMM_GEMM_H
#define WG_TENSOR_GEMM_GEMM_H

#include "tensor/simd/simd.h"

#include <stdbool.h>
#include <stdint.h>

/* A matrix in memory: element (i, j) is at data[i * row_stride + j * column_stride]. */
typedef struct wg__matrix {
    void *data;
    int64_t row_stride, column_stride; /* in elements; positive along axes longer than 1 */
} wg__matrix;

/* A matrix B that is not stored: a function writes the parts that are packed. For example, its
 * columns are the overlapping windows of an image. A part has at most WG__MOST_GATHERED rows and
 * columns. */
#define WG__MOST_GATHERED 384
typedef struct wg__gather {
    /* Writes `rows` rows from `row` on, of `columns` columns from `column` on. Rows (with `down`,
     * columns) are contiguous and `step` elements apart. Gaps between them may be overwritten, but
     * nothing behind the last one. Thread safe. */
    void (*read)(const void *context, int64_t row, int64_t rows, int64_t column, int64_t columns,
                 int64_t step, void *to);
    const void *context;
    bool down;
} wg__gather;

/* C (m, n) = alpha A (m, k) B (k, n) + beta C. If `row` is not NULL, each row of C becomes that row
 * of alpha A B plus `row`, a bias, instead. With beta 0 or a row, C is not read.
 *
 * A product of f32 that `rounds` has alpha 1 and beta 0 or 1 and rounds its operands to bf16 (to
 * nearest, ties to even; NaN stays NaN). Its sums are f32: one begins with 0, the row or C, and
 * each pair of k adds the second product, then the first, with one rounding each:
 *
 *     c = row_j or beta c_ij
 *     for l = 0, 2, 4, ...:   c = fma(a_i(l+1), b_(l+1)j, c),   c = fma(a_il, b_lj, c)
 *
 * where numbers beyond an odd k are 0. This is the order of AVX512-BF16, which takes numbers and
 * sums below 2^-126 for 0; other processors keep them. AMX takes them for 0, too, and adds 32
 * numbers of k at a time in another order:
 *
 *     for l = 0, 32, 64, ...:
 *         even = 0,  for s = 0, 2, ... 30:   even = fma(a_i(l+s), b_(l+s)j, even)
 *         odd  = 0,  for s = 1, 3, ... 31:   odd  = fma(a_i(l+s), b_(l+s)j, odd)
 *         c = c + (even + odd) */
typedef struct wg__product {
    wg_dtype dtype;            /* f32, f64, i32, i64 or u8 */
    bool rounds;               /* f32 only, without a gather */
    bool a_is_bf16, b_is_bf16; /* of a product that rounds: stored so */
    int64_t m, n, k;
    double alpha, beta;
    wg__matrix a, b, c;
    const void *row;          /* n contiguous elements, floats only */
    const wg__gather *gather; /* NULL: B is in memory; else b is not read, floats only */
} wg__product;

/* Computes a product. Integers wrap around; alpha and beta are truncated to integers for them. Runs
 * in parallel where that is faster, but on the calling thread alone inside a parallel loop. The
 * bits are the same at any number of threads. Thread safe. */
void wg__gemm(const wg__product *product);

/* The floating-point operations, two for each multiply-add, of all f32 and f64 products that this
 * thread has requested. An op that runs products on several threads at once saves the counter
 * before them and sets it afterwards. */
extern _Thread_local double wg__product_flops;

static inline wg__matrix wg__transposed(wg__matrix x) {
    return (wg__matrix){x.data, x.column_stride, x.row_stride};
}

/* The matrix that begins at element (i, j). */
static inline wg__matrix wg__matrix_at(wg_dtype dtype, wg__matrix x, int64_t i, int64_t j) {
    const int64_t place = i * x.row_stride + j * x.column_stride;
    x.data = (char *)x.data + place * (int64_t)wg_dtype_size(dtype);
    return x;
}

/* ---- y = x W^T + bias with quantized W, for many rows of x ----
 *
 * Both functions compute `count` products of the same x. Each output has the same bits at any
 * number of threads, rows of x and products. -1 with [MEMORY]. */

/* W in bf16. */
int wg__bf16_product(const wg__bf16_kernels *kernels, int count,
                     const wg__quantized_product *products);

/* W in blocks of integers. For the x16 quantizations, too, weight_stride is the bytes of a row. */
int wg__block_product(wg_quantization quantization, int count,
                      const wg__quantized_product *products);

/* ---- What wg__gemm chooses from ---- */

/* The product of the transposed matrices, C^T = B^T A^T. The product must have no row. A gathered B
 * becomes a gathered A; the record does not say so, the caller must. */
wg__product wg__product_transposed(const wg__product *product);

/* Copies `row`, if there is one, into C and sets beta to 1. */
void wg__product_place_row(wg__product *product);

/* Computes a tile of C, a_width rows by b_width columns, from two slivers: a_width rows of A and
 * b_width columns of B. A packed sliver has one vector of that width for each k. */
typedef struct wg__gemm_kernel {
    wg_dtype dtype;
    int64_t a_width, b_width, lanes;
    void (*multiply)(const wg__panel_product *tile);
    const wg__simd *simd;            /* packs, or */
    const wg__bf16_kernels *rounded; /* if not NULL, packs and rounds to bf16 */
} wg__gemm_kernel;

/* The panels of tensor/simd for this processor. dtype is f32 or f64. */
wg__gemm_kernel wg__gemm_kernel_of_panels(wg_dtype dtype);

/* The kernel of products that round to bf16, from one of the tables of tensor/simd. */
wg__gemm_kernel wg__gemm_kernel_of_bf16(const wg__bf16_kernels *kernels);

/* Computes a product of the kernel's dtype with m and n above 0: large.c. */
void wg__gemm_large(const wg__product *product, wg__gemm_kernel kernel);

/* Computes a product of f32 or f64 without a row by BLIS, on the calling thread alone. False, with
 * nothing done, in a build without BLIS and if BLIS has no kernels for this processor: blis.c. */
bool wg__blis_gemm(const wg__product *product);

/* The version of BLIS, and the processor family of its kernels: "zen"; "generic" for the portable
 * kernels. Both are "none" in a build without BLIS. */
const char *wg__blis_version(void);
const char *wg__blis_family(void);

#endif
