/* Files that were altered or cut short. */
#ifndef WG_TESTS_DAMAGE_H
#define WG_TESTS_DAMAGE_H

#include <stdint.h>

/* A number that all that a file holds goes into; whatever with an error pending. */
typedef int64_t (*fingerprint_of_file)(const char *path, const void *context);

/* Alters a bit of a file at about `places` places, one at a time, and cuts it short at each of
 * them. Fails unless each time there is an error, or the fingerprint of the whole file, every cut
 * is an error, and so are more than `least` of the altered bits: most of an HDF5 file is unused
 * room of chunks. */
void assert_damage_is_told(const char *path, int places, int least,
                           fingerprint_of_file fingerprint_of, const void *context);

#endif
