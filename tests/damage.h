/* Files that were altered or cut short. */
#ifndef WG_TESTS_DAMAGE_H
#define WG_TESTS_DAMAGE_H

#include <stdbool.h>

/* Alters a bit of a file at about `places` places, one at a time, and cuts it short at each of
 * them. `is_told_or_right` reads what became of it and is to be true of an error with a reason,
 * which it tells and clears, and of what is read as it was. Fails unless that is so, every cut is
 * told, and so are more than `least` of the altered bits: most of an HDF5 file is unused room of
 * chunks. */
void assert_damage_is_told(const char *path, int places, int least,
                           bool (*is_told_or_right)(const char *path, const void *context,
                                                    bool *error),
                           const void *context);

#endif
