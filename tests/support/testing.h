/* The runner and the assertions of all test programs. A test fails if it leaves a tensor, memory or
 * an error behind. */
#ifndef WG_TESTS_TESTING_H
#define WG_TESTS_TESTING_H

#include <check.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/internal.h"
#include "data/batches/batches.h"
#include "tensor/easy.h"
#include "tensor/tensor.h"

#define WG_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Check writes the place of every assertion that holds into a file, to tell where a test was when
 * it crashed. With millions of elements to compare that was most of the time of the tests, so a
 * crash names the test alone. */
#define _mark_point(file, line) ((void)0)

/* Says that sanitizers do not watch a function: the loop of a reference, whose sums would be most
 * of the time of a test. */
#define UNCHECKED __attribute__((no_sanitize("address", "undefined")))

/* Opens the function in which a file adds its suites to the program, before main runs:
 *
 *     SUITES {
 *         const TTest *const tests[] = {a_sum_of_nothing_is_zero, ...};
 *         add_suite("reduce", tests);
 *     }
 */
#define SUITES __attribute__((constructor)) static void add_suites(void)

/* A test of the suite that is named after its file; SUITES has no line for it:
 *
 *     TEST(a_sum_of_nothing_is_zero) {
 *         ...
 *     }
 *
 * TEST_OF_EACH runs once for each of `count` things, at most 64, with the number of the thing in
 * `_i`, in a case that has its name. */
#define TEST(test) TEST_WITH(test, 0, NULL)
#define TEST_OF_EACH(test, count, name_of) TEST_WITH(test, count, name_of)
#define TEST_WITH(test, count, name_of)                                                            \
    static void test(int _i CK_ATTRIBUTE_UNUSED);                                                  \
    static const TTest test##_test = {#test, test, __FILE__, __LINE__};                            \
    __attribute__((constructor)) static void add_##test(void) {                                    \
        add_test(&test##_test, count, name_of);                                                    \
    }                                                                                              \
    static void test(int _i CK_ATTRIBUTE_UNUSED)

void add_test(const TTest *test, int count, const char *(*name_of)(int thing));

/* Adds a suite of an array of tests. Each runs in a process of its own; afterwards its root scope
 * is cleared, and the test fails if it left a tensor alive, memory in use or an error pending.
 * CK_RUN_SUITE=NAME in the environment runs one suite, CK_RUN_CASE=NAME one case. */
#define add_suite(name, tests) (add_suite)(name, WG_COUNT(tests), tests)
void(add_suite)(const char *name, size_t count, const TTest *const *tests);

/* The same for several things, such as models: each test runs once for each of them, with its
 * number in `_i`, in a case that has its name. */
#define add_suite_of_each(name, tests, things, name_of)                                            \
    add_suite_of_range(name, WG_COUNT(tests), tests, 0, things, name_of)

/* The same for the things numbered from `first` up to `end`. */
void add_suite_of_range(const char *name, size_t count, const TTest *const *tests, int first,
                        int end, const char *(*name_of)(int thing));

/* ---- Assertions. Macros add the file and the line, so that a failure names the line of the test.
 * ---- */

/* Fails the test unless an error of that code is pending whose message contains `part`; clears it.
 */
void assert_error(const char *file, int line, wg_error_code code, const char *part);
#define assert_error(code, part) (assert_error)(__FILE__, __LINE__, code, part)

/* Fails the test unless a call gives NULL or a negative number, and assert_error holds. */
void assert_failed(const char *file, int line, const char *call, bool failed, wg_error_code code,
                   const char *part);
static inline bool number_is_failure(int64_t result) {
    return result < 0;
}
static inline bool pointer_is_failure(const void *result) {
    return !result;
}
#define assert_fails(call, code, part)                                                             \
    assert_failed(__FILE__, __LINE__, #call,                                                       \
                  _Generic((call),                                                                 \
                  int: number_is_failure,                                                          \
                  int64_t: number_is_failure,                                                      \
                  default: pointer_is_failure)(call),                                              \
                  code, part)

/* Fails the test, with the error's message, if one is pending. */
void assert_no_error(const char *file, int line);
#define assert_no_error() (assert_no_error)(__FILE__, __LINE__)

/* Fails the test, naming the first bad element, unless x has the shape and dtype of `expected` and
 * |x - expected| <= atol + rtol |expected| everywhere; NaN equals NaN. */
void assert_close(const char *file, int line, const wg_tensor *x, const wg_tensor *expected,
                  double rtol, double atol);
#define assert_close(x, expected, rtol, atol)                                                      \
    (assert_close)(__FILE__, __LINE__, x, expected, rtol, atol)

/* ---- Data ---- */

/* Batches of two tensors to train on: rows of random numbers (rows, width), and their sums (rows,
 * 1). Freed with wg_batches_free. */
wg_batches *sums_of_rows(int64_t rows, int64_t width, int64_t batch);

/* ---- Files ---- */

/* The path of a file in tests/fixtures; a static buffer. */
const char *fixture(const char *name);

/* An array of the fixtures, named SUITE/ARRAY as by printf: the tensor ARRAY of
 * tests/fixtures/SUITE.safetensors (tests/fixtures/archive.py). */
wg_tensor *fixture_tensor(const char *format, ...) WG_PRINTF(1, 2);

/* A tensor of f64 from a fixture, {"shape": [2, 1], "values": [0.5, 1]}. */
wg_tensor *tensor_from_json(const json_t *json);

/* The path of a file of the real data that some machines have in $WENGERT_DATA, by default
 * ../shared/data beside the source. Without the file: NULL, and a line that says what is skipped.
 */
const char *real_data(const char *name);

/* A folder for the test's files, which is created empty at the first call and removed after the
 * test; a static buffer. */
const char *scratch(void);

/* The path of a file in that folder; one of sixteen static buffers in turn. */
const char *in_scratch(const char *name);

/* Writes a file; the second writes a text into that folder and returns its path. */
void write_file(const char *path, const void *bytes, size_t count);
const char *write_text(const char *name, const char *text);

/* All bytes of a file, and a NUL behind them; data is freed with free. */
typedef struct bytes {
    uint8_t *data;
    size_t count;
} bytes;

bytes read_bytes(const char *path);

/* Fails the test unless two files have the same bytes, or the same first `count` bytes if that is
 * above 0. */
void assert_same_files(const char *a, const char *b, size_t count);

/* The number of files and folders in a folder. */
int files_in(const char *path);

/* Makes a locale with a decimal comma in the scratch folder and uses it for numbers until the case
 * ends. Returns false and prints a line where localedef cannot make the locale. */
bool take_decimal_comma(void);

/* ---- Memory ---- */

/* Frees an object when the test ends, the latest first; returns it. A text is one that wg_text_free
 * frees. */
#define owned(object) ((__typeof__(object))own(object, KIND_OF_OWNED(object)))
#define KIND_OF_OWNED(object)                                                                      \
    _Generic((object), char *: OWN_TEXT, wg_tokenizer *: OWN_TOKENIZER, wg_dataset *: OWN_DATASET, \
        wg_batches *: OWN_BATCHES, wg_weights *: OWN_WEIGHTS, wg_checkpoint *: OWN_CHECKPOINT,     \
        wg_config *: OWN_CONFIG, wg_module *: OWN_MODULE, wg_decode_stream *: OWN_STREAM,          \
        json_t *: OWN_JSON, wg__squad *: OWN_EXAMPLES, wg__labelled_text *: OWN_EXAMPLES,          \
        wg__tagged_words *: OWN_EXAMPLES)
typedef struct wg_tokenizer wg_tokenizer;
typedef struct wg_dataset wg_dataset;
typedef struct wg_weights wg_weights;
typedef struct wg_checkpoint wg_checkpoint;
typedef struct wg_config wg_config;
typedef struct wg_module wg_module;
typedef struct wg_decode_stream wg_decode_stream;
typedef struct wg__squad wg__squad;
typedef struct wg__labelled_text wg__labelled_text;
typedef struct wg__tagged_words wg__tagged_words;
typedef enum owned_kind {
    OWN_TEXT,
    OWN_TOKENIZER,
    OWN_DATASET,
    OWN_BATCHES,
    OWN_WEIGHTS,
    OWN_CHECKPOINT,
    OWN_CONFIG,
    OWN_MODULE,
    OWN_STREAM,
    OWN_JSON,
    OWN_EXAMPLES
} owned_kind;
void *own(void *object, owned_kind kind);

/* Runs `work` with its n-th allocation failing, and all after it, for each n until it returns true.
 * Fails unless each run before had an error of memory and left no more blocks in use than there
 * were. Returns the number of these runs. */
typedef bool memory_work(const void *context);
int fail_every_allocation(memory_work *work, const void *context);

/* The most bytes of the library's that were in use between the two calls, beyond those at the
 * first, whose result the second is given. */
int64_t peak_begin(void);
int64_t peak_end(int64_t before);

/* The most bytes that the process has had; 0 under AddressSanitizer, which needs memory of its own.
 */
int64_t peak_of_process(void);

#endif
