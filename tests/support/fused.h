/* Compares results at several numbers of threads. */
#ifndef WG_TESTS_FUSED_H
#define WG_TESTS_FUSED_H

#include "autograd/autograd.h"

/* The tensors that `make` returns, at most `count`, have the same bits at 1, 2 and 3 threads. */
typedef void (*fused_results)(int count, wg_tensor **results);
void assert_same_bits_at_any_thread_count(int count, fused_results make);

#endif
