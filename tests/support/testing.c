/* The runner and the assertions of all test programs: see testing.h. */
#include "tests/support/testing.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "data/dataset/dataset.h"
#include "data/dataset/examples.h"
#include "data/tokenizer/tokenizer.h"
#include "formats/weights_files.h"
#include "io/checkpoint/checkpoint.h"
#include "io/config.h"
#include "nn/module.h"
#include "tensor/ops.h"
#include "tensor/random.h"
#include "base/internal.h"

/* Seconds that one test may take, with sanitizers on a busy machine. */
#define TIMEOUT 300

static char scratch_path[512];

/* ---- The runner ---- */

static SRunner *runner;

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static void remove_tree(const char *path) {
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* The objects that are freed when the test ends. */
static struct {
    owned_kind kind;
    void *object;
} * possessions;
static size_t possessions_count;

void *own(void *object, owned_kind kind) {
    possessions = realloc(possessions, (possessions_count + 1) * sizeof *possessions);
    possessions[possessions_count].kind = kind;
    possessions[possessions_count++].object = object;
    return object;
}

static void free_one(owned_kind kind, void *object) {
    switch (kind) {
    case OWN_TEXT:
        wg_text_free(object);
        break;
    case OWN_TOKENIZER:
        wg_tokenizer_free(object);
        break;
    case OWN_DATASET:
        wg_dataset_free(object);
        break;
    case OWN_BATCHES:
        wg_batches_free(object);
        break;
    case OWN_WEIGHTS:
        wg_weights_close(object);
        break;
    case OWN_CHECKPOINT:
        wg_checkpoint_close(object);
        break;
    case OWN_CONFIG:
        wg__config_free(object);
        break;
    case OWN_MODULE:
        wg_module_free(object);
        break;
    case OWN_STREAM:
        wg_decode_stream_free(object);
        break;
    case OWN_JSON:
        json_decref(object);
        break;
    case OWN_EXAMPLES:
        wg__examples_free(object);
        break;
    }
}

static void free_owned(void) {
    for (; possessions_count > 0; possessions_count--)
        free_one(possessions[possessions_count - 1].kind,
                 possessions[possessions_count - 1].object);
    free(possessions);
    possessions = NULL;
}

static void set_up(void) {
    scratch_path[0] = '\0';
    wg_error_clear();
    wg__alloc_reset_peak();
}

static void tear_down(void) {
    wg__alloc_fail_after(-1);
    free_owned();
    setlocale(LC_NUMERIC, "C"); /* cases may share a process */
    unsetenv("LOCPATH");
    const wg_error *error = wg_error_pending();
    if (error)
        ck_abort_msg("the test left an error pending: %s", error->message);
    wg_scope_clear_root();
    ck_assert_msg(wg_tensors_alive() == 0, "the test left %lld tensors alive",
                  (long long)wg_tensors_alive());
    long long blocks = wg_alloc_get_stats().live_blocks;
    ck_assert_msg(blocks == 0, "the test left %lld blocks of memory in use", blocks);
    if (scratch_path[0])
        remove_tree(scratch_path);
}

/* A case is a process of its own, so that a crash is a failed case. Under AddressSanitizer each
 * process would be searched for leaks when it ends, which takes longer than most cases: there all
 * cases share one process, which is searched once, but for suites with cases that change what
 * others see: the numbers of calls, limits of the process, memory in use, the locale. All cases of
 * test_io have processes of their own, since one of them reads what a child prints, and a child of
 * a process with threads prints complaints of the search for leaks. */
#ifdef __SANITIZE_ADDRESS__
static void fork_cases(void) {
    srunner_set_fork_status(runner, CK_FORK);
}

static void share_process(void) {
    srunner_set_fork_status(runner, CK_NOFORK);
}

static void set_process_of(TCase *tcase, const char *name) {
    static const char *const apart[] = {"anomaly", "decoder_configs", "locale", "token_file"};
    bool forks = strcmp(program_invocation_short_name, "test_io") == 0;
    for (size_t i = 0; i < WG_COUNT(apart); i++)
        forks |= strcmp(name, apart[i]) == 0;
    if (forks)
        tcase_add_unchecked_fixture(tcase, fork_cases, share_process);
}
#else
static void set_process_of(TCase *tcase, const char *name) {
    (void)tcase, (void)name;
}
#endif

static TCase *new_case(Suite *suite, const char *name) {
    TCase *tcase = tcase_create(name);
    set_process_of(tcase, name);
    tcase_set_timeout(tcase, TIMEOUT);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_tcase(suite, tcase);
    return tcase;
}

static Suite *new_suite(const char *name) {
    Suite *suite = suite_create(name);
    if (runner)
        srunner_add_suite(runner, suite);
    else
        runner = srunner_create(suite);
    return suite;
}

void(add_suite)(const char *name, size_t count, const TTest *const *tests) {
    Suite *suite = new_suite(name);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(new_case(suite, name), tests[i]);
}

void add_suite_of_range(const char *name, size_t count, const TTest *const *tests, int first,
                        int end, const char *(*name_of)(int thing)) {
    Suite *suite = new_suite(name);
    for (int thing = first; thing < end; thing++) {
        TCase *tcase = new_case(suite, name_of(thing));
        for (size_t i = 0; i < count; i++)
            tcase_add_loop_test(tcase, tests[i], thing, thing + 1);
    }
}

/* "bpe" for tests/data/bpe.c; in a static buffer, since cases keep the pointers. */
static const char *name_of_file(const char *file) {
    static char names[64][64];
    static int count;
    char *name = names[count++ % 64];
    snprintf(name, sizeof names[0], "%s", strrchr(file, '/') + 1);
    name[strcspn(name, ".")] = '\0';
    return name;
}

void add_test(const TTest *test, int count, const char *(*name_of)(int thing)) {
    static const char *file = "";
    static const char *name;
    static Suite *suite;
    static TCase *cases[64]; /* those of the things, which the tests of a file share */
    if (strcmp(file, test->file) != 0) {
        file = test->file;
        name = name_of_file(file);
        suite = new_suite(name);
        cases[0] = NULL;
    }
    if (!name_of)
        tcase_add_test(new_case(suite, name), test);
    const bool first = !cases[0];
    for (int thing = 0; thing < count; thing++) {
        if (first)
            cases[thing] = new_case(suite, name_of(thing));
        tcase_add_loop_test(cases[thing], test, thing, thing + 1);
    }
}

int main(void) {
    srunner_set_tap(runner, "-");
#ifdef __SANITIZE_ADDRESS__
    share_process();
#endif
    srunner_run_all(runner, CK_SILENT);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- Errors ---- */

void(assert_error)(const char *file, int line, wg_error_code code, const char *part) {
    const wg_error *error = wg_error_pending();
    if (!error)
        ck_abort_msg("%s:%d: no error is pending; wanted %s \"%s\"", file, line,
                     wg_error_name(code), part);
    if (error->code != code || !strstr(error->message, part))
        ck_abort_msg("%s:%d: the error is %s \"%s\"; wanted %s \"%s\"", file, line,
                     wg_error_name(error->code), error->message, wg_error_name(code), part);
    wg_error_clear();
}

void assert_failed(const char *file, int line, const char *call, bool failed, wg_error_code code,
                   const char *part) {
    if (!failed)
        ck_abort_msg("%s:%d: %s does not fail; wanted %s \"%s\"", file, line, call,
                     wg_error_name(code), part);
    (assert_error)(file, line, code, part);
}

void(assert_no_error)(const char *file, int line) {
    const wg_error *error = wg_error_pending();
    if (error)
        ck_abort_msg("%s:%d: %s \"%s\"", file, line, wg_error_name(error->code), error->message);
}

/* ---- Tensors ---- */

/* Advances an index to the next element in row-major order. */
static void next_index(int ndim, const int64_t *shape, int64_t *index) {
    for (int d = ndim - 1; d >= 0 && ++index[d] == shape[d]; d--)
        index[d] = 0;
}

static const char *index_text(char *buffer, size_t size, int ndim, const int64_t *index) {
    size_t used = (size_t)snprintf(buffer, size, "(");
    for (int d = 0; d < ndim; d++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%lld", d ? ", " : "",
                                 (long long)index[d]);
    snprintf(buffer + used, size - used, ")");
    return buffer;
}

static wg_spec spec_of(const wg_tensor *x) {
    wg_spec spec = {.dtype = wg_tensor_dtype(x), .ndim = wg_tensor_ndim(x)};
    memcpy(spec.shape, wg_tensor_shape(x), (size_t)spec.ndim * sizeof(int64_t));
    return spec;
}

static bool same_spec(const wg_spec *a, const wg_spec *b) {
    return a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(int64_t)) == 0;
}

/* Equal values pass at any tolerance, infinities too. */
static bool is_close(double value, double expected, double rtol, double atol) {
    if (isnan(value) || isnan(expected))
        return isnan(value) && isnan(expected);
    if (isinf(value) || isinf(expected))
        return value == expected;
    return fabs(value - expected) <= atol + rtol * fabs(expected);
}

void(assert_close)(const char *file, int line, const wg_tensor *x, const wg_tensor *expected,
                   double rtol, double atol) {
    (assert_no_error)(file, line);
    if (!x || !expected)
        ck_abort_msg("%s:%d: the %s tensor is NULL", file, line, x ? "expected" : "given");
    wg_spec spec = spec_of(x), wanted = spec_of(expected);
    char text[256], wanted_text[256];
    if (!same_spec(&spec, &wanted))
        ck_abort_msg("%s:%d: the tensor is %s; wanted %s", file, line,
                     wg_spec_text(text, sizeof(text), &spec),
                     wg_spec_text(wanted_text, sizeof(wanted_text), &wanted));
    int64_t index[WG_MAX_DIMS] = {0};
    for (int64_t i = 0, count = wg_tensor_count(x); i < count; i++) {
        double value = wg_at(x, index), other = wg_at(expected, index);
        if (!is_close(value, other, rtol, atol))
            ck_abort_msg("%s:%d: element %s is %.17g; wanted %.17g, off by %.3g", file, line,
                         index_text(text, sizeof(text), spec.ndim, index), value, other,
                         fabs(value - other));
        next_index(spec.ndim, spec.shape, index);
    }
}

/* ---- Files ---- */

const char *fixture(const char *name) {
    static char path[1024];
    snprintf(path, sizeof(path), "%s/tests/fixtures/%s", WG_SOURCE_DIR, name);
    return path;
}

wg_tensor *fixture_tensor(const char *format, ...) {
    char name[128], file[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    char *array = strchr(name, '/');
    ck_assert_ptr_nonnull(array);
    *array++ = '\0';
    snprintf(file, sizeof file, "%s.safetensors", name);
    wg_weights *archive = wg_weights_open(fixture(file));
    ck_assert_msg(archive && wg_weights_find(archive, array) >= 0, "%s: no %s", file, array);
    wg_tensor *x = wg_weights_read(archive, wg_weights_find(archive, array));
    wg_weights_close(archive);
    return x;
}

const char *real_data(const char *name) {
    static char path[1024];
    const char *folder = getenv("WENGERT_DATA");
    if (folder)
        snprintf(path, sizeof(path), "%s/%s", folder, name);
    else
        snprintf(path, sizeof(path), "%s/../shared/data/%s", WG_SOURCE_DIR, name);
    if (access(path, R_OK) == 0)
        return path;
    printf("# skips what needs %s\n", path);
    return NULL;
}

const char *scratch(void) {
    if (scratch_path[0])
        return scratch_path;
    snprintf(scratch_path, sizeof(scratch_path), "scratch/%s", program_invocation_short_name);
    remove_tree(scratch_path);
    if ((mkdir("scratch", 0777) < 0 && errno != EEXIST) || mkdir(scratch_path, 0777) < 0)
        ck_abort_msg("%s: %s", scratch_path, strerror(errno));
    return scratch_path;
}

const char *in_scratch(const char *name) {
    static char paths[16][700];
    static int next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", scratch(), name);
    return path;
}

wg_tensor *tensor_from_json(const json_t *json) {
    const json_t *sizes = json_object_get(json, "shape"), *list = json_object_get(json, "values");
    static double values[4096];
    int64_t shape[WG_MAX_DIMS];
    ck_assert(list && json_array_size(list) <= WG_COUNT(values) &&
              json_array_size(sizes) <= WG_MAX_DIMS);
    for (size_t d = 0; d < json_array_size(sizes); d++)
        shape[d] = json_integer_value(json_array_get(sizes, d));
    for (size_t i = 0; i < json_array_size(list); i++)
        values[i] = json_number_value(json_array_get(list, i));
    return wg_from_array(WG_F64, (int)json_array_size(sizes), shape, values);
}

wg_batches *sums_of_rows(int64_t rows, int64_t width, int64_t batch) {
    wg_generator generator = {.seed = 8};
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x = wg_randn(&generator, WG_F32, WG_DIMS(rows, width));
    wg_tensor *y = wg_sum(x, WG_DIMS(1), true);
    wg_batches *batches =
        wg_tensor_batches_new(WG_TENSORS(x, y), &(wg_batches_options){.batch = batch});
    wg_scope_end(&scope, NULL);
    return batches;
}

void write_file(const char *path, const void *bytes, size_t count) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
    ck_assert_int_eq(fclose(file), 0);
}

const char *write_text(const char *name, const char *text) {
    const char *path = in_scratch(name);
    write_file(path, text, strlen(text));
    return path;
}

bytes read_bytes(const char *path) {
    FILE *stream = fopen(path, "rb");
    ck_assert_ptr_nonnull(stream);
    fseek(stream, 0, SEEK_END);
    bytes file = {.count = (size_t)ftell(stream)};
    rewind(stream);
    file.data = malloc(file.count + 1);
    ck_assert_uint_eq(fread(file.data, 1, file.count, stream), file.count);
    file.data[file.count] = '\0';
    fclose(stream);
    return file;
}

void assert_same_files(const char *a, const char *b, size_t count) {
    const bytes first = read_bytes(a), second = read_bytes(b);
    if (count == 0) {
        ck_assert_uint_eq(first.count, second.count);
        count = first.count;
    }
    ck_assert_msg(first.count >= count && second.count >= count &&
                      memcmp(first.data, second.data, count) == 0,
                  "%s and %s differ", a, b);
    free(first.data);
    free(second.data);
}

int files_in(const char *path) {
    DIR *folder = opendir(path);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(folder);
    return count;
}

/* ---- Memory ---- */

int fail_every_allocation(memory_work *work, const void *context) {
    const int64_t blocks = wg_alloc_get_stats().live_blocks;
    for (int n = 0;; n++) {
        wg__alloc_fail_after(n);
        const bool done = work(context);
        wg__alloc_fail_after(-1);
        if (done)
            return n;
        assert_error(WG_ERROR_MEMORY, "");
        ck_assert_int_eq(wg_alloc_get_stats().live_blocks, blocks);
    }
}

int64_t peak_begin(void) {
    wg__alloc_reset_peak();
    return wg_alloc_get_stats().live_bytes;
}

int64_t peak_end(int64_t before) {
    return wg_alloc_get_stats().peak_bytes - before;
}

int64_t peak_of_process(void) {
#if defined __SANITIZE_ADDRESS__
    return 0;
#else
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)usage.ru_maxrss * 1024;
#endif
}

/* ---- Locale ---- */

bool take_decimal_comma(void) {
    char command[1200], number[8];
    const char *source = write_text("comma.txt", "LC_NUMERIC\ndecimal_point \",\"\n"
                                                 "thousands_sep \"\"\ngrouping -1\n"
                                                 "END LC_NUMERIC\n");
    snprintf(command, sizeof command, "localedef -c -i %s %s/comma >/dev/null 2>&1", source,
             scratch());
    /* localedef writes the locale (-c) and exits with 1, because it has LC_NUMERIC alone. */
    if (system(command) < 0 || setenv("LOCPATH", scratch(), 1) != 0 ||
        !setlocale(LC_NUMERIC, "comma")) {
        puts("# skipped: localedef cannot make a locale");
        return false;
    }
    snprintf(number, sizeof number, "%.1f", 1.5);
    ck_assert_str_eq(number, "1,5");
    return true;
}
