/* BLIS: its products, on the calling thread alone, and its kernels. blis.c is the only file that
 * knows BLIS. */
#ifndef WG_TENSOR_GEMM_BLIS_H
#define WG_TENSOR_GEMM_BLIS_H

#include "tensor/gemm/gemm.h"

#include <stdbool.h>

/* A product of f32 or f64 without a row. `packs` forces the code that packs both operands, whatever
 * the shape. */
void wg__blis_gemm(const wg__product *product, bool packs);

/* How the kernel for this processor reads one operand: slivers of `width` rows of A, or columns of
 * B, packed with `step` elements for each k. */
typedef struct wg__blis_side {
    int64_t width, step;
    void (*pack)(void); /* BLIS's; NULL where it has none for that width */
} wg__blis_side;

/* The kernel that computes a tile of C, a.width rows by b.width columns, from two slivers. */
typedef struct wg__blis_kernel {
    wg_dtype dtype;
    wg__blis_side a, b;
    bool by_rows; /* the rows of C should be contiguous, else its columns */
    void (*multiply)(void);
    void *context; /* of BLIS */
} wg__blis_kernel;

/* dtype is f32 or f64. */
wg__blis_kernel wg__blis_kernel_for(wg_dtype dtype);

/* Packs `count` rows of A (columns of B), `stride` elements apart, and of each k elements, k_stride
 * apart. Zeros fill up the width. */
void wg__blis_pack(const wg__blis_kernel *kernel, const wg__blis_side *side, int64_t count,
                   int64_t k, const void *x, int64_t stride, int64_t k_stride, void *to);

/* A product of two packed slivers, in product->a and b. m and n are at most their widths, and there
 * is no row. */
void wg__blis_multiply(const wg__blis_kernel *kernel, const wg__product *product);

#endif
