/* Strided loops over tensors, and the one place that knows OpenMP.
 *
 * Work is always cut into the same chunks, whatever the number of threads, so that reductions over
 * chunks give the same bits at any thread count. */
#ifndef WG_TENSOR_ITER_H
#define WG_TENSOR_ITER_H

#include "tensor/internal.h"

#define WG__MAX_OPERANDS 6

/* Elements of light work that are worth one chunk. */
#define WG__GRAIN 16384

/* Runs body on [0, count) in chunks of `grain`, in parallel when there are several: each thread a
 * run of neighbours, one after the other, and then what others have not begun. Must not be nested;
 * body must not record errors or make tensors. */
typedef void (*wg__range_body)(int64_t begin, int64_t end, void *context);
void wg__parallel_for(int64_t count, int64_t grain, wg__range_body body, void *context);

/* The threads that a GEMM of that many multiply-adds is worth, in this context (1 inside a
 * parallel_for). */
int wg__gemm_threads(double multiply_adds);

/* An inner loop over n elements: operand i starts at data[i] and steps by strides[i] BYTES (0 for a
 * broadcast one). */
typedef void (*wg__loop)(int64_t n, char *const *data, const int64_t *strides, const void *context);

/* Runs `loop` over all elements of operands[0] (the output), reading the others broadcast to its
 * shape. Axes are merged and ordered so that the inner loop is long and, where possible,
 * contiguous in the output. */
void wg__iterate(int operand_count, wg_tensor *const *operands, wg__loop loop, const void *context);

#endif
