/* Holds the kernels of fused ops against their decomposition, and anything against itself at other
 * numbers of threads. */
#ifndef WG_TESTS_FUSED_H
#define WG_TESTS_FUSED_H

#include "autograd/autograd.h"

/* For every sample of a fused op, its floating inputs cast to `dtype`: the outputs and the
 * gradients of all inputs that can have one, by the kernels and by the decomposition, agree. */
void assert_fused(const char *op, wg_dtype dtype, double rtol, double atol);

/* The tensors that `make` gives, up to `count` of them, have the same bits at 1, 2 and 3
 * threads. */
typedef void (*fused_results)(int count, wg_tensor **results);
void assert_same_bits_at_any_thread_count(int count, fused_results make);

#endif
