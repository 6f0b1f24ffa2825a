/* Matrix products: which algorithm computes which shape.
 *
 *     integers                             a loop; BLIS has no integers
 *     an outer product (k = 1)             a scaled row of B for each row of C
 *     a matrix and one or a few vectors    dot products or sums of columns, in tensor/simd
 *     tiny    (up to TINY multiply-adds)   one kernel of tensor/simd, with less overhead than BLIS
 *     small   (up to SMALL)                one call of BLIS, which does not pack them
 *     skinny  (a side below SKINNY)        strips of STRIP rows or columns, a call of BLIS each
 *     large, gathered, rounded to bf16     blocks of packed operands: large.c
 *
 * Where BLIS has only portable kernels for this processor (BLIS 0.9 and Zen 5), in a build without
 * BLIS and in deterministic mode (kernels.h), large.c computes BLIS's share, too.
 *
 * The choice and the strips depend on the shape alone, so the bits are the same at any number of
 * threads. */
#include "tensor/gemm/gemm.h"

#include "tensor/internal.h"
#include "tensor/kernels.h"

enum { SKINNY = 64, STRIP = 1024 };
#define SMALL 4.0e6

/* Multiply-adds of the largest tiny product; above it BLIS is about as fast. */
enum { TINY = 32768 };

/* A chunk of a matrix times a vector: elements of whole rows, or the length of its columns. */
enum { CHUNK = 16384, COLUMN_CHUNK = 512 };

/* Up to FEW vectors, dot products are faster than BLIS if the matrix has at least MANY elements. */
enum { FEW = 8, MANY = 65536 };

_Thread_local double wg__product_flops;

/* ---- Integers. They are rare in training, so the loop is simple: a chunk is some rows of C, and
 * the innermost loop runs along a row of B and a row of C. ---- */

/* Unsigned arithmetic wraps around, while overflow of signed integers is undefined. i32 is computed
 * in 64 bits; the lower half is the wrapped result. */
#define ROWS(NAME, TYPE)                                                                           \
    static void NAME(int64_t begin, int64_t end, void *context) {                                  \
        const wg__product *p = context;                                                            \
        const uint64_t alpha = (uint64_t)(int64_t)p->alpha, beta = (uint64_t)(int64_t)p->beta;     \
        for (int64_t i = begin; i < end; i++) {                                                    \
            TYPE *c = (TYPE *)p->c.data + i * p->c.row_stride;                                     \
            const TYPE *a = (const TYPE *)p->a.data + i * p->a.row_stride;                         \
            for (int64_t j = 0; j < p->n; j++) {                                                   \
                TYPE *out = &c[j * p->c.column_stride];                                            \
                *out = beta == 0 ? 0 : (TYPE)(beta * (uint64_t)*out);                              \
            }                                                                                      \
            for (int64_t l = 0; l < p->k; l++) {                                                   \
                const uint64_t factor = alpha * (uint64_t)a[l * p->a.column_stride];               \
                const TYPE *b = (const TYPE *)p->b.data + l * p->b.row_stride;                     \
                for (int64_t j = 0; j < p->n; j++) {                                               \
                    TYPE *out = &c[j * p->c.column_stride];                                        \
                    *out = (TYPE)((uint64_t)*out + factor * (uint64_t)b[j * p->b.column_stride]);  \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

ROWS(multiply_i32, int32_t)
ROWS(multiply_i64, int64_t)
ROWS(multiply_u8, uint8_t)

/* ---- A matrix and one or a few vectors. Each element of the matrix is read once, so memory
 * bandwidth limits the speed:
 *
 *     contiguous rows       y is a dot product for each row; a chunk is some rows
 *     contiguous columns    y is a sum of scaled columns; a chunk is a part of all columns
 *
 * The vectors are columns of B. A vector on the left becomes one by transposing the product. ----
 */

/* y = alpha b a, with one rounding of alpha and one of each product, as add_scaled_rows has. */
static void scale_column(const wg__product *p, int64_t n, const void *a, void *y) {
    const double b = wg__element(p->dtype, p->b.data);
    const double factor = p->dtype == WG_F32 ? (double)((float)p->alpha * (float)b) : p->alpha * b;
    wg__simd_for(p->dtype)->rows.normalize(n, a, 0, factor, NULL, NULL, y);
}

/* Computes elements begin..end of a product with one vector, n = 1. C is contiguous. */
static void add_columns(int64_t begin, int64_t end, void *context) {
    const wg__product *p = context;
    void *y = wg__matrix_at(p->dtype, p->c, begin, 0).data;
    if (p->k == 1 && p->beta == 0) {
        scale_column(p, end - begin, wg__matrix_at(p->dtype, p->a, begin, 0).data, y);
        return;
    }
    for (int64_t i = 0; p->beta != 1 && i < end - begin; i++)
        if (p->dtype == WG_F32)
            ((float *)y)[i] = (float)(p->beta == 0 ? 0 : p->beta * ((float *)y)[i]);
        else
            ((double *)y)[i] = p->beta == 0 ? 0 : p->beta * ((double *)y)[i];
    wg__simd_for(p->dtype)->products.add_scaled_rows(p->k, end - begin, p->a.column_stride,
                                                     wg__matrix_at(p->dtype, p->a, begin, 0).data,
                                                     p->alpha, p->b.data, p->b.row_stride, y);
}

/* Computes rows begin..end of the outer product of two vectors, k = 1, whose rows are contiguous.
 */
static void multiply_outer(int64_t begin, int64_t end, void *context) {
    const wg__product *p = context;
    for (int64_t i = begin; i < end; i++) {
        wg__product row = *p;
        row.b.data = wg__matrix_at(p->dtype, p->a, i, 0).data;
        scale_column(&row, p->n, p->b.data, wg__matrix_at(p->dtype, p->c, i, 0).data);
    }
}

/* Computes the product if one side has so few vectors that row_products or add_columns is fastest.
 * Otherwise returns false and does nothing. */
static bool multiply_vectors(wg__product *p) {
    const bool transposes = p->n != 1 && (p->m == 1 || p->n >= p->m);
    wg__product v = transposes ? wg__product_transposed(p) : *p;
    const bool has_dots = (v.a.column_stride == 1 && v.b.row_stride == 1) || v.k <= 1;
    const bool has_columns = v.n == 1 && v.a.row_stride == 1 && v.c.row_stride == 1;
    const bool is_large = v.n <= FEW && v.m >= MANY / (v.k + 1) && v.k > 1;
    if (v.n == 1 ? !has_dots && !has_columns : !is_large || !has_dots)
        return false;
    wg__product_place_row(p);
    v.beta = p->beta;
    /* For k = 1 a dot product of a single element would be slower. */
    if (!has_dots || (v.k <= 1 && has_columns)) {
        wg__parallel_for(v.m, COLUMN_CHUNK, add_columns, &v);
        return true;
    }
    wg__row_products rows = {.a = v.a.data,
                             .a_stride = v.a.row_stride,
                             .n = v.k,
                             .x = v.b.data,
                             .x_rows = v.n,
                             .x_stride = v.b.column_stride,
                             .alpha = v.alpha,
                             .beta = v.beta,
                             .y = v.c.data,
                             .y_stride = v.c.column_stride,
                             .y_step = v.c.row_stride};
    wg__parallel_for(v.m, 1 + CHUNK / (v.k + 1), wg__simd_for(v.dtype)->products.row_products,
                     &rows);
    return true;
}

/* Computes a small product by BLIS, or by the blocks of large.c: in deterministic mode, where BLIS
 * cannot compute it, and for short dot products, contiguous rows of A times contiguous columns of
 * B. BLIS does not pack small products, and the columns of B would have to be. */
static void multiply_by_blis(const wg__product *p) {
    const bool has_dots = p->a.column_stride == 1 && p->b.row_stride == 1;
    const bool has_short_dots =
        has_dots && p->b.column_stride != 1 && p->k <= 128 && p->m >= SKINNY && p->n >= SKINNY;
    if (wg_is_deterministic() || has_short_dots || !wg__blis_gemm(p))
        wg__gemm_large(p, wg__gemm_kernel_of_panels(p->dtype));
}

/* Multiplies strips of a skinny product, cut along its longer side. */
static void multiply_strips(int64_t begin, int64_t end, void *context) {
    wg__product strip = *(const wg__product *)context;
    if (strip.m > strip.n) {
        strip.m = end - begin;
        strip.a = wg__matrix_at(strip.dtype, strip.a, begin, 0);
        strip.c = wg__matrix_at(strip.dtype, strip.c, begin, 0);
    } else {
        strip.n = end - begin;
        strip.b = wg__matrix_at(strip.dtype, strip.b, 0, begin);
        strip.c = wg__matrix_at(strip.dtype, strip.c, 0, begin);
        if (strip.row)
            strip.row = (const char *)strip.row + begin * (int64_t)wg_dtype_size(strip.dtype);
    }
    wg__product_place_row(&strip);
    multiply_by_blis(&strip);
}

void wg__gemm(const wg__product *product) {
    wg__product p = *product;
    if (p.m == 0 || p.n == 0)
        return;
    if (!wg_dtype_is_float(p.dtype)) {
        wg__parallel_for(p.m, 1 + WG__GRAIN / (p.n * (p.k + 1) + 1),
                         p.dtype == WG_I32   ? multiply_i32
                         : p.dtype == WG_I64 ? multiply_i64
                                             : multiply_u8,
                         &p);
        return;
    }
    if (p.k == 0) { /* C = row or beta C */
        wg__product_place_row(&p);
        for (int64_t i = 0; i < p.m && p.beta != 1; i++)
            for (int64_t j = 0; j < p.n; j++) {
                void *c = wg__matrix_at(p.dtype, p.c, i, j).data;
                wg__set_element(p.dtype, c, p.beta == 0 ? 0 : p.beta * wg__element(p.dtype, c));
            }
        return;
    }
    const double multiply_adds = (double)p.m * (double)p.n * (double)p.k;
    wg__product_flops += 2 * multiply_adds;
    if (p.rounds || p.gather) {
        wg__gemm_large(&p, p.rounds ? wg__gemm_kernel_of_bf16(wg__bf16_kernels_at(WG__BEST))
                                    : wg__gemm_kernel_of_panels(p.dtype));
        return;
    }
    const bool is_tiny = p.m != 1 && p.n != 1 && p.k <= WG__SMALL_K && p.m <= TINY && p.n <= TINY &&
                         p.m * p.n * p.k <= TINY && p.c.column_stride == 1;
    if (is_tiny) {
        wg__product_place_row(&p);
        wg__simd_for(p.dtype)->products.small(p.m, p.n, p.k, p.alpha, p.a.data, p.a.row_stride,
                                              p.a.column_stride, p.b.data, p.b.row_stride,
                                              p.b.column_stride, p.beta, p.c.data, p.c.row_stride);
        return;
    }
    /* Not for m == 1 or n < SKINNY: the matrix-vector kernels split those over threads. */
    const bool is_outer = p.k == 1 && p.beta == 0 && p.m > 1 && p.n >= SKINNY && !p.row &&
                          p.b.column_stride == 1 && p.c.column_stride == 1;
    if (is_outer) {
        wg__parallel_for(p.m, 1 + CHUNK / p.n, multiply_outer, &p);
    } else if (multiply_vectors(&p)) {
        return;
    } else if (multiply_adds <= SMALL) {
        wg__product_place_row(&p);
        multiply_by_blis(&p);
    } else if (wg__smaller(p.m, p.n) < SKINNY) {
        wg__parallel_for(wg__larger(p.m, p.n), STRIP, multiply_strips, &p);
    } else {
        wg__gemm_large(&p, wg__gemm_kernel_of_panels(p.dtype));
    }
}
