/* The kernels that large products are made of, and how they take their operands. */
#ifndef WG_TENSOR_GEMM_KERNEL_H
#define WG_TENSOR_GEMM_KERNEL_H

#include "tensor/gemm/blis.h"
#include "tensor/gemm/product.h"
#include "tensor/simd/simd.h"

#include <stdbool.h>

/* A kernel takes an operand as slivers of `width` rows of A, or columns of B. A packed sliver is
 * one vector after the other, for each k, `step` elements apart. */
typedef struct wg__kernel_side {
    int64_t width, step;
} wg__kernel_side;

/* Makes a tile of C, a.width rows by b.width columns, of two slivers. */
typedef struct wg__gemm_kernel {
    wg_dtype dtype;
    wg__kernel_side a, b;
    bool by_rows;         /* it likes the rows of C to be contiguous, else its columns */
    bool reads_a;         /* it takes A where it stands, if the rows of A are contiguous */
    const wg__simd *simd; /* ours, or NULL: */
    wg__blis_kernel blis;
} wg__gemm_kernel;

/* step of either side is at most that. */
enum { WG__KERNEL_MOST_STEP = 64 };

/* How far beyond its end a packed sliver may be read. */
enum { WG__KERNEL_SLIVER_ROOM = 64 };

/* That of BLIS for this processor; ours; and the one of the two that is to be used here. dtype is
 * f32 or f64. */
wg__gemm_kernel wg__gemm_kernel_of_blis(wg_dtype dtype);
wg__gemm_kernel wg__gemm_kernel_of_panels(wg_dtype dtype);
wg__gemm_kernel wg__gemm_kernel_for(wg_dtype dtype);

/* Packs `count` rows of A (of_a; else columns of B), at most its width, which are `stride` elements
 * apart, and of each k elements, k_stride apart. */
void wg__gemm_pack(const wg__gemm_kernel *kernel, bool of_a, int64_t count, int64_t k,
                   const void *x, int64_t stride, int64_t k_stride, void *to);

/* A product of a sliver of A and one of B: packed ones, of which data alone counts, or, where
 * `a_stands`, rows of A as they are. m and n are at most the widths. */
void wg__gemm_multiply(const wg__gemm_kernel *kernel, const wg__product *product, bool a_stands);

#endif
