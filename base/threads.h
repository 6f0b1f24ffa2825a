/* Parallel loops, on threads of the library's own.
 *
 * The chunks of a loop do not depend on the number of threads, so that reductions over chunks give
 * the same bits at any thread count. */
#ifndef WG_BASE_THREADS_H
#define WG_BASE_THREADS_H

#include "base/internal.h"

/* The elements in a chunk of an elementwise loop. */
#define WG__GRAIN 16384

/* Runs body on [0, count) in chunks of `grain`, in parallel if there are several chunks. A loop
 * inside a body runs on the calling thread alone. Several threads may call this at the same time.
 * body must not record errors or make tensors. */
typedef void (*wg__range_body)(int64_t begin, int64_t end, void *context);
void wg__parallel_for(int64_t count, int64_t grain, wg__range_body body, void *context);

/* How many threads a GEMM of that many multiply-adds should use; 1 inside a parallel loop. */
int wg__gemm_threads(double multiply_adds);

#endif
