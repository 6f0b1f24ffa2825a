/* Compares the kernels of fused ops with their decomposition, and results at several numbers of
 * threads. */
#ifndef WG_TESTS_FUSED_H
#define WG_TESTS_FUSED_H

#include "autograd/autograd.h"

/* For every sample of a fused op, with its floating inputs cast to `dtype`: the kernels and the
 * decomposition give the same outputs and the same gradients of all inputs that can have one. */
void assert_fused(const char *op, wg_dtype dtype, double rtol, double atol);

/* The tensors that `make` returns, at most `count`, have the same bits at 1, 2 and 3 threads. */
typedef void (*fused_results)(int count, wg_tensor **results);
void assert_same_bits_at_any_thread_count(int count, fused_results make);

#endif
