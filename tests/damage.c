/* Files that were altered or cut short: see damage.h. */
#include "tests/damage.h"

#include <stdio.h>

#include "tests/testing.h"

/* HDF5 1.10.8 forgets a block (H5O_t) when an object's header has a wrong checksum: what the leak
 * checker of a sanitized build finds at the end is not ours. */
WG_API const char *__lsan_default_suppressions(void);
WG_API const char *__lsan_default_options(void);

const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5";
}

const char *__lsan_default_options(void) {
    return "print_suppressions=0";
}

void assert_damage_is_told(const char *path, int places, int least,
                           bool (*is_told_or_right)(const char *path, const void *context,
                                                    bool *error),
                           const void *context) {
    static char bytes[1 << 20];
    const char *bad = in_scratch("bad.h5");
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    ck_assert_uint_lt(size, sizeof bytes);
    fclose(file);
    int altered = 0;
    for (size_t at = 0; at < size; at += 1 + size / (size_t)places) {
        bool error = false;
        bytes[at] ^= 0x10;
        write_file(bad, bytes, size);
        bytes[at] ^= 0x10;
        ck_assert_msg(is_told_or_right(bad, context, &error), "byte %zu", at);
        altered += error;
        error = false;
        write_file(bad, bytes, at);
        ck_assert_msg(is_told_or_right(bad, context, &error) && error, "%zu bytes", at);
    }
    ck_assert_int_gt(altered, least);
}
