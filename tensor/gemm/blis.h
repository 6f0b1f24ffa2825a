/* BLIS's products, on the calling thread alone. Only blis.c includes BLIS, and only its public
 * typed interface, of BLIS 0.9 to 2.x. Its docs/Multithreading.md says of calls with a rntm_t,
 * which are the ones used here: "This method has the benefit of being thread-safe [...] your
 * application can spawn two threads at the application level, with each thread requesting different
 * degrees of parallelism". In a build without BLIS, wg__blis_gemm always returns false. */
#ifndef WG_TENSOR_GEMM_BLIS_H
#define WG_TENSOR_GEMM_BLIS_H

#include "tensor/gemm/gemm.h"

#include <stdbool.h>

/* Computes a product of f32 or f64 without a row. False, with nothing done, if BLIS has no kernels
 * for this processor or no memory for its buffers (some 20 MB for each thread). */
bool wg__blis_gemm(const wg__product *product);

/* Must be true before a call of LAPACK, whose BLAS may be BLIS: there is memory for BLIS's buffers,
 * without which BLIS ends the program. */
bool wg__blis_is_ready(void);

/* The version of BLIS, and the processors for which it has chosen its kernels: "zen"; "generic" for
 * the portable kernels; "unknown" if there is no memory to begin with; "none" in a build without
 * BLIS. */
const char *wg__blis_version(void);
const char *wg__blis_family(void);

#endif
