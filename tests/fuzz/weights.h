/* The body of the fuzzers of tensor files. */
#ifndef WG_TESTS_FUZZ_WEIGHTS_H
#define WG_TESTS_FUZZ_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

/* Reads the bytes as a tensor file of that name, whose suffix tells the format where the bytes do
 * not; aborts if the reader fails without an error. */
void wg__fuzz_weights(const char *name, const uint8_t *bytes, size_t count);

#endif
