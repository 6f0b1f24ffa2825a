/* Parallel loops. threads.c is the one file that knows OpenMP.
 *
 * Work is always cut into the same chunks, whatever the number of threads, so that reductions over
 * chunks give the same bits at any thread count. */
#ifndef WG_BASE_THREADS_H
#define WG_BASE_THREADS_H

#include "base/internal.h"

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

#endif
