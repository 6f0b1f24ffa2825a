/* Bytes as text, and back (RFC 4648, section 4). */
#ifndef WG_DATA_TOKENIZER_BASE64_H
#define WG_DATA_TOKENIZER_BASE64_H

#include "base/array.h"

/* Appends them. [MEMORY] */
int wg__base64_encode(const char *bytes, int64_t length, wg__text *text);

/* Appends what a text stands for. [MEMORY; FORMAT, with `where`, for what is no base64] */
int wg__base64_decode(const char *text, int64_t length, wg__text *bytes, const char *where);

#endif
