/* Tensors of two f64 numbers for tests of backward. */
#ifndef WG_TESTS_LEAVES_H
#define WG_TESTS_LEAVES_H

#include "tests/support/testing.h"

wg_tensor *vector(double first, double second);

/* The same with requires_grad. */
wg_tensor *leaf(double first, double second);

wg_tensor *sum(wg_tensor *x);

/* Fails unless x exists and has these values, to 1e-12. */
void assert_values(wg_tensor *x, double first, double second);

/* Runs `step`, which returns 0 or fails, on a new leaf (1, 2) with its first allocation failing,
 * then its second, until none fails. Fails unless each lack of memory is an error and leaves
 * nothing behind. */
void assert_no_leak_without_memory(int (*step)(wg_tensor *x));

#endif
