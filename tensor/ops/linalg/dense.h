/* Views of tensors as matrices and rows for the kernels. */
#ifndef WG_TENSOR_OPS_LINALG_DENSE_H
#define WG_TENSOR_OPS_LINALG_DENSE_H

#include "tensor/gemm/gemm.h"
#include "tensor/internal.h"

/* x, of rank 2 or more, if the strides of its last two axes are positive, as GEMM needs; otherwise
 * (an expanded or reversed x) a copy in the innermost scope. NULL if out of memory. */
wg_tensor *wg__gemm_operand(wg_tensor *x);

/* The first matrix of a batch: the last two axes, at index 0 of all leading axes. */
wg__matrix wg__matrix_of(const wg_tensor *x);

/* A tensor as rows of its last axis. */
typedef struct wg__rows {
    wg_tensor *tensor; /* x itself, or a copy of it in the innermost scope */
    int64_t rows, columns;
    int64_t row_stride, column_stride; /* in elements; at least 1, or unused */
} wg__rows;

/* Views x, of rank 1 or more, as rows. Copies x if its strides do not allow that, or if `dense` and
 * the column stride is not 1. -1 if out of memory. */
int wg__rows_of(wg_tensor *x, bool dense, wg__rows *rows);

/* The first element of a row. */
void *wg__row(const wg__rows *rows, int64_t row);

wg__matrix wg__rows_matrix(const wg__rows *rows);

/* C (m, n) = A (m, k) B (k, n). */
static inline wg__product wg__product_of(wg_dtype dtype, int64_t m, int64_t n, int64_t k,
                                         wg__matrix a, wg__matrix b, wg__matrix c) {
    return (wg__product){
        .dtype = dtype, .m = m, .n = n, .k = k, .alpha = 1, .a = a, .b = b, .c = c};
}

/* wg_op.flops of a product: output 0 has an element for each sum over the last axis of input 0. */
double wg__matmul_flops(const wg_call *call);

/* Adds the sum of all rows, of column_stride 1, to `sums` (columns). -1 if out of memory. */
int wg__add_row_sums(const wg__rows *rows, wg_tensor *sums);

#endif
