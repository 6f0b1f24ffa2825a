/* BLIS's products, on the calling thread alone, and its kernels. Only blis.c includes BLIS. */
#ifndef WG_TENSOR_GEMM_BLIS_H
#define WG_TENSOR_GEMM_BLIS_H

#include "tensor/gemm/gemm.h"

#include <stdbool.h>

/* Computes a product of f32 or f64 without a row. If `packs`, both operands are packed whatever the
 * shape. False, with nothing done, if there is no memory for BLIS's buffers (some 20 MB for each
 * thread). */
bool wg__blis_gemm(const wg__product *product, bool packs);

/* b (n, k): replaced by T^-1 b, where T is a triangle of (n, n), which is not singular. Both are in
 * column-major order, n and k at least 2. False, with nothing done, without memory as above. */
bool wg__blis_solve(wg_dtype dtype, bool upper, bool unit, int64_t n, int64_t k, void *triangle,
                    void *right);

/* Brackets a call of another library that computes with BLIS, as LAPACK does. False, with nothing
 * to end, if there is no memory for BLIS's buffers, without which BLIS ends the program. */
bool wg__blis_begin_call(void);
void wg__blis_end_call(void);

/* How the kernel for this processor reads one operand: slivers of `width` rows of A, or columns of
 * B, packed with `step` elements for each k. */
typedef struct wg__blis_side {
    int64_t width, step;
    void (*pack)(void); /* BLIS's packing kernel; NULL if it has none for that width */
} wg__blis_side;

/* The kernel that computes a tile of C, a.width rows by b.width columns, from two slivers. */
typedef struct wg__blis_kernel {
    wg_dtype dtype;
    wg__blis_side a, b;
    bool by_rows; /* wants the rows of C contiguous, otherwise its columns */
    void (*multiply)(void);
    void *context; /* of BLIS */
} wg__blis_kernel;

/* The version of BLIS, and the processors for which it has chosen its kernels: "zen"; "unknown" if
 * there is no memory to begin with. */
const char *wg__blis_version(void);
const char *wg__blis_family(void);

/* Whether BLIS has only its portable kernels in C for this processor: BLIS 0.9 does not know those
 * after Zen 4. */
bool wg__blis_is_generic(void);

/* dtype is f32 or f64. */
wg__blis_kernel wg__blis_kernel_for(wg_dtype dtype);

/* Packs `count` rows of A (or columns of B), `stride` elements apart. Each has k elements, k_stride
 * apart. Zeros fill the rest of the width. */
void wg__blis_pack(const wg__blis_kernel *kernel, const wg__blis_side *side, int64_t count,
                   int64_t k, const void *x, int64_t stride, int64_t k_stride, void *to);

/* Computes the product of two packed slivers, in product->a and product->b. m and n are at most
 * their widths, and there is no row. */
void wg__blis_multiply(const wg__blis_kernel *kernel, const wg__product *product);

#endif
