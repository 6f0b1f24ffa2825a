/* Files that were altered or cut short: see damage.h. */
#include "tests/support/damage.h"

#include <stdio.h>

#include "tests/support/hdf5_leaks.h"
#include "tests/support/testing.h"

typedef struct reader {
    fingerprint_of_file fingerprint_of;
    const void *context;
    int64_t whole; /* of the file as it was */
} reader;

/* Whether there is an error, which is cleared; else the file was read as it was. */
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
