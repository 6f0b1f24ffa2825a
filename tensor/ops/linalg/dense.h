/* What the ops on matrices and rows share: tensors as kernels take them. */
#ifndef WG_TENSOR_OPS_LINALG_DENSE_H
#define WG_TENSOR_OPS_LINALG_DENSE_H

#include "tensor/gemm/gemm.h"
#include "tensor/internal.h"

/* x, of rank 2 or more, if GEMM can walk its last two axes, by positive strides; else (it was
 * expanded or reversed) a copy in the innermost scope. NULL for lack of memory. */
wg_tensor *wg__gemm_operand(wg_tensor *x);

/* The matrix of the last two axes at the first index of the others. */
wg__matrix wg__matrix_of(const wg_tensor *x);

/* A tensor as rows of its last axis. */
typedef struct wg__rows {
    wg_tensor *tensor; /* x itself, or a copy of it in the innermost scope */
    int64_t rows, columns;
    int64_t row_stride, column_stride; /* in elements; at least 1, or unused */
} wg__rows;

/* Sees x, of rank 1 or more, as rows; copies it where its strides allow no other way, or where
 * `dense` asks for column_stride 1 and it has another. -1 for lack of memory. */
int wg__rows_of(wg_tensor *x, bool dense, wg__rows *rows);

/* The first element of a row. */
void *wg__row(const wg__rows *rows, int64_t row);

wg__matrix wg__rows_matrix(const wg__rows *rows);

/* The tensor for a gradient of that spec: the one that is there to be added onto, or a new one,
 * filled with zeros. NULL for lack of memory. */
wg_tensor *wg__gradient_to_add(wg_tensor *there, const wg_spec *spec);

/* Adds the sum of all rows, whose column_stride is 1, to `sums`, (columns). -1 for lack of
 * memory. */
int wg__add_row_sums(const wg__rows *rows, wg_tensor *sums);

#endif
