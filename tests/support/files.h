/* Files as bytes, and how many there are. */
#ifndef WG_TESTS_FILES_H
#define WG_TESTS_FILES_H

#include "tests/support/testing.h"

/* All that is in a file, and a NUL; data is freed with free. */
typedef struct bytes {
    uint8_t *data;
    size_t count;
} bytes;

bytes read_bytes(const char *path);

/* How many files a folder has whose names do not begin with a dot. */
int files_in(const char *path);

#endif
