/* Files that were altered or cut short: see damage.h. */
#include "tests/support/damage.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/api.h"
#include "formats/weights_files.h"

/* ---- Leaks of HDF5 ---- */

WG_API const char *__lsan_default_suppressions(void);
WG_API const char *__lsan_default_options(void);

const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5";
}

const char *__lsan_default_options(void) {
    return "print_suppressions=0";
}

/* A program that calls this function is linked with the two above, which do the work. */
void pass_over_leaks_of_hdf5(void) {
}

/* ---- Checkpoints and token files ---- */

typedef struct reader {
    fingerprint_of_file fingerprint_of;
    const void *context;
    int64_t whole; /* the fingerprint of the intact file */
} reader;

/* Whether an error is pending, which is cleared; if not, the file has to read as the intact one. */
static bool is_told(const reader *r, const char *path, const char *damage, size_t at) {
    const int64_t found = r->fingerprint_of(path, r->context);
    const bool told = wg_error_pending();
    wg_error_clear();
    ck_assert_msg(told || found == r->whole, "%s at %zu was not noticed", damage, at);
    return told;
}

void assert_damage_is_told(const char *path, int places, int least,
                           fingerprint_of_file fingerprint_of, const void *context) {
    pass_over_leaks_of_hdf5();
    static char bytes[1 << 20];
    const char *bad = in_scratch("bad.h5");
    const reader r = {fingerprint_of, context, fingerprint_of(path, context)};
    assert_no_error();
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    ck_assert_uint_lt(size, sizeof bytes);
    fclose(file);
    int altered = 0;
    for (size_t at = 0; at < size; at += 1 + size / (size_t)places) {
        bytes[at] ^= 0x10;
        write_file(bad, bytes, size);
        bytes[at] ^= 0x10;
        altered += is_told(&r, bad, "a flipped bit", at);
        write_file(bad, bytes, at);
        ck_assert_msg(is_told(&r, bad, "a cut", at), "a file of %zu bytes was read", at);
    }
    ck_assert_int_gt(altered, least);
}

/* ---- Tensor files ---- */

bool reads_whole(const char *path) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_weights *file = wg_weights_open(path);
    bool good = file;
    for (int64_t i = 0; good && i < wg_weights_count(file); i++)
        good = wg_weights_read(file, i);
    wg_weights_close(file);
    wg_scope_end(&scope, NULL);
    return good;
}

void assert_file_refused(const char *format, long at) {
    const wg_error *error = wg_error_pending();
    ck_assert_msg(error && error->code == WG_ERROR_FORMAT, "%s cut at %ld: %s", format, at,
                  error ? error->message : "no error");
    wg_error_clear();
}

void cut_everywhere(const char *path, const char *format) {
    const bytes file = read_bytes(path);
    const long count = (long)file.count;
    free(file.data);
    for (long at = count - 1; at >= 0; at -= at < 6000 || count - at < 600 ? 1 : 997) {
        ck_assert_int_eq(truncate(path, at), 0);
        ck_assert_msg(!reads_whole(path), "%s cut at %ld is read", format, at);
        assert_file_refused(format, at);
    }
}
