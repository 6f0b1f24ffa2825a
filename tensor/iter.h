/* Strided loops over tensors. */
#ifndef WG_TENSOR_ITER_H
#define WG_TENSOR_ITER_H

#include "base/threads.h"
#include "tensor/internal.h"

#define WG__MAX_OPERANDS 6

/* An inner loop over n elements: operand i starts at data[i] and steps by strides[i] BYTES (0 for a
 * broadcast one). */
typedef void (*wg__loop)(int64_t n, char *const *data, const int64_t *strides, const void *context);

/* The same over `rows` rows of n elements, which lie at row_strides from each other. */
typedef void (*wg__plane_loop)(int64_t rows, int64_t n, char *const *data,
                               const int64_t *row_strides, const int64_t *strides);

/* Runs `loop` over all elements of operands[0] (the output), reading the others broadcast to its
 * shape. Axes are merged and ordered so that the inner loop is long and, where possible,
 * contiguous in the output. */
void wg__iterate(int operand_count, wg_tensor *const *operands, wg__loop loop, const void *context);

/* The same, and `plane` on whole rows where an inner loop is short (64 elements at most). */
void wg__iterate_planes(int operand_count, wg_tensor *const *operands, wg__loop loop,
                        wg__plane_loop plane);

#endif
