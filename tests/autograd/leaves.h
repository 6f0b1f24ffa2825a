/* Tensors of two f64 numbers, for tests of what backward does with them. */
#ifndef WG_TESTS_LEAVES_H
#define WG_TESTS_LEAVES_H

#include "tests/support/testing.h"

wg_tensor *vector(double first, double second);

/* One that wants a gradient. */
wg_tensor *leaf(double first, double second);

wg_tensor *sum(wg_tensor *x);

/* Fails unless x is there and holds them, to 1e-12. */
void assert_values(wg_tensor *x, double first, double second);

/* Fails unless `step`, which gives 0 or an error and is run on a new leaf (1, 2), tells every lack
 * of memory and leaves nothing behind: its first allocation fails, then its second, until none
 * does. */
void assert_no_leak_without_memory(int (*step)(wg_tensor *x));

#endif
