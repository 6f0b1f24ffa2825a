/* The fuzzers of tensor files share their body: a file of those bytes is opened as one format, and
 * all of it read. Errors are what is hoped for; the sanitizers judge. */
#ifndef WG_TESTS_FUZZ_WEIGHTS_H
#define WG_TESTS_FUZZ_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

/* `name` is the file's: its suffix tells the format where the bytes do not. */
void wg__fuzz_weights(const char *name, const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

#endif
