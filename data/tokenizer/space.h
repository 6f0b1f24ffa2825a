/* White space as Unicode has it. */
#ifndef WG_DATA_TOKENIZER_SPACE_H
#define WG_DATA_TOKENIZER_SPACE_H

#include <stdint.h>

/* How many bytes the character takes with which a UTF-8 text begins, if it has the property
 * White_Space; else, and for an empty text, 0. */
int64_t wg__space_length(const char *text, int64_t length);

#endif
