/* BLIS has kernels in assembly for many processors; ours (tensor/simd/panels.h) are compiled for
 * vectors of 512 bits among others. Ours read A a number at a time, wherever it stands, so that
 * mostly just the smaller operand of a training step, the weight, is packed.
 *
 *     B, packed: a panel of whole vectors      +---+
 *                                              |   |
 *     A, in place, if its rows are contiguous  +---+
 *     (else packed as B is)             +---+  +---+
 *                                       |   |  | C |
 *                                       +---+  +---+
 */
#include "tensor/gemm/kernel.h"

#include <assert.h>

/* What ours sums in registers: 8 rows of two vectors of 512 bits. */
enum { TILE_BYTES = 8 * WG__PANEL_VECTORS * 64 };

/* A tile of C that is no memory of C: as many panels of A as of B. */
enum { MOST_WIDTH_BYTES = WG__PANEL_VECTORS * 64, MOST_WIDTH = MOST_WIDTH_BYTES / 4 };

wg__gemm_kernel wg__gemm_kernel_of_blis(wg_dtype dtype) {
    const wg__blis_kernel blis = wg__blis_kernel_for(dtype);
    assert(blis.a.step <= WG__KERNEL_MOST_STEP && blis.b.step <= WG__KERNEL_MOST_STEP);
    return (wg__gemm_kernel){.dtype = dtype,
                             .a = {blis.a.width, blis.a.step},
                             .b = {blis.b.width, blis.b.step},
                             .by_rows = blis.by_rows,
                             .blis = blis};
}

wg__gemm_kernel wg__gemm_kernel_of_panels(wg_dtype dtype) {
    const wg__simd *simd = wg__simd_for(dtype);
    const wg__kernel_side panel = {WG__PANEL_VECTORS * simd->lanes,
                                   WG__PANEL_VECTORS * simd->lanes};
    return (wg__gemm_kernel){
        .dtype = dtype, .a = panel, .b = panel, .by_rows = true, .reads_a = true, .simd = simd};
}

/* Ours has the larger tile where BLIS has no kernel for the longest vectors: it chooses by the name
 * of the processor, and 0.9 gives a Zen 4 the kernels of Zen 3. */
wg__gemm_kernel wg__gemm_kernel_for(wg_dtype dtype) {
    const wg__gemm_kernel blis = wg__gemm_kernel_of_blis(dtype);
    const int64_t bytes = blis.a.width * blis.b.width * (int64_t)wg_dtype_size(dtype);
    if (wg__simd_level_of_cpu() == WG__SIMD_V4 && bytes < TILE_BYTES)
        return wg__gemm_kernel_of_panels(dtype);
    return blis;
}

void wg__gemm_pack(const wg__gemm_kernel *kernel, bool of_a, int64_t count, int64_t k,
                   const void *x, int64_t stride, int64_t k_stride, void *to) {
    const wg__simd *simd = kernel->simd;
    if (!simd)
        wg__blis_pack(&kernel->blis, of_a ? &kernel->blis.a : &kernel->blis.b, count, k, x, stride,
                      k_stride, to);
    else if (stride == 1 && count == kernel->b.width)
        simd->pack_rows(k, count, x, k_stride, 1, to);
    else
        simd->pack_columns(count, k, x, stride, k_stride, to);
}

/* ---- Multiplying ---- */

/* to = factor from, m by n elements. */
static void copy(wg_dtype dtype, int64_t m, int64_t n, double factor, wg__matrix from,
                 wg__matrix to) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const void *x = wg__matrix_at(dtype, from, i, j).data;
            void *y = wg__matrix_at(dtype, to, i, j).data;
            if (dtype == WG_F32)
                *(float *)y = (float)factor * *(const float *)x;
            else
                *(double *)y = factor * *(const double *)x;
        }
}

static void multiply_panels(const wg__gemm_kernel *kernel, const wg__product *p, bool a_stands) {
    _Alignas(64) char tile[MOST_WIDTH * MOST_WIDTH_BYTES];
    const bool is_whole = p->n % kernel->simd->lanes == 0 && p->c.column_stride == 1 &&
                          (p->row || p->beta == 0 || p->beta == 1);
    const bool adds = p->row || p->beta != 0;
    wg__matrix c = p->c, d = p->row ? (wg__matrix){(void *)p->row, 0, 1} : c;
    if (!is_whole) {
        c = (wg__matrix){tile, kernel->b.width, 1};
        if (adds)
            copy(p->dtype, p->m, p->n, p->row ? 1 : p->beta, d, c);
        d = c;
    }
    kernel->simd->panel_product(
        &(wg__panel_product){.m = p->m,
                             .n = p->n,
                             .k = p->k,
                             .alpha = p->alpha,
                             .a = p->a.data,
                             .a_row = a_stands ? p->a.row_stride : 1,
                             .a_column = a_stands ? p->a.column_stride : kernel->a.step,
                             .b = p->b.data,
                             .b_row = kernel->b.step,
                             .d = adds ? d.data : NULL,
                             .d_row = d.row_stride,
                             .c = c.data,
                             .c_row = c.row_stride});
    if (!is_whole)
        copy(p->dtype, p->m, p->n, 1, c, p->c);
}

void wg__gemm_multiply(const wg__gemm_kernel *kernel, const wg__product *product, bool a_stands) {
    if (kernel->simd) {
        multiply_panels(kernel, product, a_stands);
        return;
    }
    wg__product without_row = *product;
    wg__product_place_row(&without_row);
    wg__blis_multiply(&kernel->blis, &without_row);
}
