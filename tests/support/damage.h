/* Files that were altered or cut short, which their readers must refuse. */
#ifndef WG_TESTS_DAMAGE_H
#define WG_TESTS_DAMAGE_H

#include "tests/support/testing.h"

/* A number that depends on all that a file holds; any number if an error is pending. */
typedef int64_t (*fingerprint_of_file)(const char *path, const void *context);

/* Alters a bit of a file at about `places` places, one at a time, and cuts the file at each of
 * them. Fails unless every cut is an error, each altered bit is an error or leaves the fingerprint
 * as it was, and more than `least` of the altered bits are errors: most of an HDF5 file is unused
 * room of chunks. */
void assert_damage_is_told(const char *path, int places, int least,
                           fingerprint_of_file fingerprint_of, const void *context);

/* For tests that damage HDF5 files: the leak checker of a sanitized build passes over leaks in the
 * HDF5 library. HDF5 1.10.8 loses a block (H5O_t) when an object header has a wrong checksum. */
void pass_over_leaks_of_hdf5(void);

/* Opens a tensor file and reads all of it; true if there was no error. */
bool reads_whole(const char *path);

/* Fails unless a FORMAT error is pending, which it clears. `at` is part of the message. */
void assert_file_refused(const char *format, long at);

/* Fails unless a tensor file is refused wherever it is cut: at each byte near both ends, where the
 * structure is, and at some between. */
void cut_everywhere(const char *path, const char *format);

#endif
