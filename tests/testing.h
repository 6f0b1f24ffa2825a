/* What every test program shares: a Check runner that holds each test to leaving nothing behind. */
#ifndef WG_TESTS_TESTING_H
#define WG_TESTS_TESTING_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>

#include "tensor/easy.h"
#include "tensor/tensor.h"

#define WG_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Runs the tests, each in a case of its own, and returns main's exit code. After a test its root
 * scope is cleared; a test fails that leaves a tensor alive or an error pending. */
int wg_run_tests(const char *topic, size_t count, const TTest *const *tests);

/* Fails the test unless an error of that code is pending whose message contains `part`; clears it.
 */
void assert_error(wg_error_code code, const char *part);

/* Fails the test, with the error's message, if one is pending. */
void assert_no_error(void);

/* Fails the test, naming the first bad element, unless x has the shape and dtype of `expected` and
 * |x - expected| <= atol + rtol |expected| everywhere; NaN equals NaN. */
void assert_close(const wg_tensor *x, const wg_tensor *expected, double rtol, double atol);

/* The path of a file in tests/fixtures; a static buffer. */
const char *fixture(const char *name);

/* The path of a file in the real data that some machines have ($WENGERT_DATA, else ../shared/data
 * beside the source), or NULL, with a line saying that the test skips, when it is not there. */
const char *real_data(const char *name);

/* A directory for the test's files, made empty; a static buffer. */
const char *scratch(void);

#endif
