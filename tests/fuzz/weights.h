/* The bodies of the fuzzers of tensor files and of files of data. */
#ifndef WG_TESTS_FUZZ_WEIGHTS_H
#define WG_TESTS_FUZZ_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

/* Writes the bytes to a file of that name and returns its path, which is borrowed. The file goes when
 * the program ends. */
const char *wg__fuzz_file(const char *name, const uint8_t *bytes, size_t count);

/* Reads the bytes as a tensor file of that name, whose suffix tells the format where the bytes do
 * not; aborts if the reader fails without an error. */
void wg__fuzz_weights(const char *name, const uint8_t *bytes, size_t count);

/* Reads the bytes behind the first one as a file of data, by the reader that the first one picks (see
 * data.c); aborts if the reader fails without an error. */
void wg__fuzz_data(const uint8_t *bytes, size_t count);

#endif
