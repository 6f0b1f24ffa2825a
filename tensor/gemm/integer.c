/* Integer matrices are counts and paths through graphs, not the work of training: rows of C are the
 * chunks, and the innermost loop runs along a row of B and one of C. */
#include "tensor/gemm/integer.h"

#include "tensor/iter.h"

typedef struct product {
    int64_t n, k;
    int64_t alpha, beta;
    wg__matrix a, b, c;
} product;

/* Unsigned arithmetic wraps around where that of C's signed integers is undefined. i32 is computed
 * in 64 bits, of which the lower half is right whatever came before. */
#define ROWS(NAME, TYPE)                                                                           \
    static void NAME(int64_t begin, int64_t end, void *context) {                                  \
        const product *p = context;                                                                \
        for (int64_t i = begin; i < end; i++) {                                                    \
            TYPE *c = (TYPE *)p->c.data + i * p->c.row_stride;                                     \
            const TYPE *a = (const TYPE *)p->a.data + i * p->a.row_stride;                         \
            for (int64_t j = 0; j < p->n; j++) {                                                   \
                TYPE *out = &c[j * p->c.column_stride];                                            \
                *out = p->beta == 0 ? 0 : (TYPE)((uint64_t)p->beta * (uint64_t)*out);              \
            }                                                                                      \
            for (int64_t l = 0; l < p->k; l++) {                                                   \
                const uint64_t factor = (uint64_t)p->alpha * (uint64_t)a[l * p->a.column_stride];  \
                const TYPE *b = (const TYPE *)p->b.data + l * p->b.row_stride;                     \
                for (int64_t j = 0; j < p->n; j++) {                                               \
                    TYPE *out = &c[j * p->c.column_stride];                                        \
                    *out = (TYPE)((uint64_t)*out + factor * (uint64_t)b[j * p->b.column_stride]);  \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

ROWS(rows_i32, int32_t)
ROWS(rows_i64, int64_t)
ROWS(rows_u8, uint8_t)

void wg__gemm_integer(wg_dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, wg__matrix a,
                      wg__matrix b, double beta, wg__matrix c) {
    product p = {n, k, (int64_t)alpha, (int64_t)beta, a, b, c};
    const int64_t row_work = n * (k + 1);
    wg__parallel_for(m, 1 + WG__GRAIN / (row_work + 1),
                     dtype == WG_I32   ? rows_i32
                     : dtype == WG_I64 ? rows_i64
                                       : rows_u8,
                     &p);
}
