/* Tensor files that were cut short or altered. */
#ifndef WG_TESTS_WEIGHTS_DAMAGE_H
#define WG_TESTS_WEIGHTS_DAMAGE_H

#include "tests/support/testing.h"

/* Opens a file and reads all of it; true if that went well. */
bool reads_whole(const char *path);

/* An error with a reason; IO and MEMORY would be none of the file's doing. `at` is for the message.
 */
void assert_refused(const char *format, long at);

/* Fails the test unless the file is refused wherever it is cut: byte by byte where structure is, at
 * both ends, and here and there between. */
void cut_everywhere(const char *path, const char *format);

#endif
