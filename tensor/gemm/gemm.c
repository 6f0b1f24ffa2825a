/* Matrix products.
 *
 *     tiny, or with a few vectors            not by BLIS: gemm_small.c
 *     small     (up to SMALL multiply-adds)  one call of BLIS, which mostly does not pack
 *     skinny    (a side below SKINNY)        strips of STRIP, by the same kernels
 *     large                                  gemm_large.c
 *
 * Which of them is a matter of the shape alone, and so are the strips: the same bits come at any
 * thread count. */
#include "tensor/gemm/gemm.h"

#include "tensor/gemm/blis.h"
#include "base/internal.h"
#include "tensor/gemm/integer.h"
#include "tensor/gemm/large.h"
#include "tensor/gemm/small.h"
#include "tensor/iter.h"

enum { SKINNY = 64, STRIP = 1024 };
#define SMALL 4.0e6

_Thread_local double wg__product_flops;

/* Without packing, rows of A against columns of B are dot products, which are slow when short. */
static bool small_packs(const wg__product *p) {
    bool dots = p->a.column_stride == 1 && p->b.row_stride == 1 && p->b.column_stride != 1;
    return dots && p->k <= 128 && p->m >= SKINNY && p->n >= SKINNY;
}

/* A strip of a skinny product, along its longer side. */
static void run_strips(int64_t begin, int64_t end, void *context) {
    const wg__product *p = context;
    for (int64_t strip = begin; strip < end; strip++) {
        const int64_t at = strip * STRIP;
        wg__product part = p->m > p->n
                               ? wg__product_part(p, at, wg__smaller(STRIP, p->m - at), 0, p->n)
                               : wg__product_part(p, 0, p->m, at, wg__smaller(STRIP, p->n - at));
        wg__product_place_row(&part);
        wg__blis_gemm(&part, false);
    }
}

static void run(wg__product p) {
    if (p.m == 0 || p.n == 0)
        return;
    const double multiply_adds = (double)p.m * (double)p.n * (double)p.k;
    const int64_t shorter = wg__smaller(p.m, p.n), longer = p.m + p.n - shorter;
    wg__product_flops += 2 * multiply_adds;
    const bool is_small = wg__gemm_is_small(p.m, p.n, p.k, p.a, p.b, p.c);
    if (is_small || multiply_adds <= SMALL)
        wg__product_place_row(&p);
    if (is_small)
        wg__gemm_small(p.dtype, p.m, p.n, p.k, p.alpha, p.a, p.b, p.beta, p.c);
    else if (multiply_adds <= SMALL)
        wg__blis_gemm(&p, small_packs(&p));
    else if (shorter < SKINNY)
        wg__parallel_for((longer + STRIP - 1) / STRIP, 1, run_strips, &p);
    else {
        const wg__gemm_kernel kernel = wg__gemm_kernel_for(p.dtype);
        wg__gemm_large(&p, &kernel);
    }
}

void wg__gemm(wg_dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, wg__matrix a,
              wg__matrix b, double beta, wg__matrix c) {
    if (wg_dtype_is_float(dtype))
        run((wg__product){dtype, m, n, k, alpha, beta, a, b, c, NULL});
    else
        wg__gemm_integer(dtype, m, n, k, alpha, a, b, beta, c);
}

void wg__gemm_plus_row(wg_dtype dtype, int64_t m, int64_t n, int64_t k, wg__matrix a, wg__matrix b,
                       const void *row, wg__matrix c) {
    run((wg__product){dtype, m, n, k, 1, 0, a, b, c, row});
}
