/* Leaves whose gradients the tests of optimizers choose, and what these tests share. */
#ifndef WG_TESTS_LEAVES_H
#define WG_TESTS_LEAVES_H

#include "optim/optimizer.h"
#include "tests/support/testing.h"

/* The optimizers by their names. */
enum { OPTIMIZERS = 6 };
extern const char *const optimizer_names[OPTIMIZERS];

/* x, which requires a gradient now. */
wg_tensor *leaf_of(wg_tensor *x);

/* Adds it to the optimizer, with decay. Fails the test after an error. */
wg_tensor *added(wg_optimizer *optimizer, const char *name, wg_tensor *leaf);

/* Sets the gradient, as backward would; the second to one number everywhere. */
void set_gradient(wg_tensor *leaf, wg_tensor *gradient);
void set_full_gradient(wg_tensor *leaf, double value);

/* A tensor of a list of numbers, at most 64. */
wg_tensor *tensor_of_list(const json_t *list, wg_dtype dtype, int ndim, const int64_t *shape);

/* A state of the optimizer. */
wg_tensor *state_of(const wg_optimizer *optimizer, int64_t index);

/* The first element. */
double first_of(const wg_tensor *x);

/* Fails unless there is no optimizer and an ARGUMENT error with this part. */
void assert_none(const wg_optimizer *optimizer, const char *part);

#endif
