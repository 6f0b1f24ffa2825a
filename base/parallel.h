/* How many threads the library uses. */
#ifndef WG_BASE_PARALLEL_H
#define WG_BASE_PARALLEL_H

#include "api.h"

/* How many threads the library's loops and GEMM use from now on; at first OMP_NUM_THREADS or the
 * number of processors. The same seed gives the same bits at any number. -1 with [ARGUMENT below 1]
 */
WG_API int wg_set_threads(int threads);
WG_API int wg_threads(void);

#endif
