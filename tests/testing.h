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
 * scope is cleared; a test fails that leaves a tensor alive, memory in use or an error pending. */
int wg_run_tests(const char *topic, size_t count, const TTest *const *tests);

/* The same with every test run for each of so many things, which have names: in the test, `_i` is
 * the number of the thing. */
int wg_run_tests_of_each(const char *topic, size_t count, const TTest *const *tests, int things,
                         const char *(*name)(int thing));

/* The assertions below are called without file and line, which macros put in: a failure names the
 * line of the test. */

/* Fails the test unless an error of that code is pending whose message contains `part`; clears it.
 */
void assert_error(const char *file, int line, wg_error_code code, const char *part);
#define assert_error(code, part) (assert_error)(__FILE__, __LINE__, code, part)

/* Fails the test, with the error's message, if one is pending. */
void assert_no_error(const char *file, int line);
#define assert_no_error() (assert_no_error)(__FILE__, __LINE__)

/* Fails the test, naming the first bad element, unless x has the shape and dtype of `expected` and
 * |x - expected| <= atol + rtol |expected| everywhere; NaN equals NaN. */
void assert_close(const char *file, int line, const wg_tensor *x, const wg_tensor *expected,
                  double rtol, double atol);
#define assert_close(x, expected, rtol, atol)                                                      \
    (assert_close)(__FILE__, __LINE__, x, expected, rtol, atol)

/* The path of a file in tests/fixtures; a static buffer. */
const char *fixture(const char *name);

/* The path of a file in the real data that some machines have ($WENGERT_DATA, else ../shared/data
 * beside the source), or NULL, with a line saying that the test skips, when it is not there. */
const char *real_data(const char *name);

/* A directory for the test's files, made empty; a static buffer. */
const char *scratch(void);

/* The path of a file there; one of sixteen static buffers in turn. */
const char *in_scratch(const char *name);

/* Writes a file; a text there, whose path is given as above. */
void write_file(const char *path, const void *bytes, size_t count);
const char *write_text(const char *name, const char *text);

#endif
