/* What a matrix product is to those who take it in parts. */
#ifndef WG_TENSOR_GEMM_PRODUCT_H
#define WG_TENSOR_GEMM_PRODUCT_H

#include "tensor/gemm/gemm.h"

/* C (m, n) = alpha A (m, k) B (k, n) + beta C, or, if row is not NULL, + row in each row of C. */
typedef struct wg__product {
    wg_dtype dtype;
    int64_t m, n, k;
    double alpha, beta;
    wg__matrix a, b, c;
    const void *row; /* n elements, one after the other */
} wg__product;

/* The matrix that begins at element (i, j). */
static inline wg__matrix wg__matrix_at(wg_dtype dtype, wg__matrix x, int64_t i, int64_t j) {
    const int64_t place = i * x.row_stride + j * x.column_stride;
    x.data = (char *)x.data + place * (int64_t)wg_dtype_size(dtype);
    return x;
}

/* The product of rows i.. of A and columns j.. of B. */
wg__product wg__product_part(const wg__product *product, int64_t i, int64_t m, int64_t j,
                             int64_t n);

/* Puts `row`, if there is one, into C, as what beta C has to be. */
void wg__product_place_row(wg__product *product);

#endif
