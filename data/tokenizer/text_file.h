/* Text files as a whole, and UTF-8: validity, lengths of characters, white space. */
#ifndef WG_DATA_TOKENIZER_TEXT_FILE_H
#define WG_DATA_TOKENIZER_TEXT_FILE_H

#include <stdint.h>
#include <utf8proc.h>

#include "base/array.h"

/* The bytes of a file, followed by a NUL; freed with wg__free. `where` names the caller in the
 * error. NULL with NOT_FOUND, IO, MEMORY. */
char *wg__text_file_read(const char *path, int64_t *length, const char *where);

/* The offset of the first byte that is not valid UTF-8 (RFC 3629: no surrogates, nothing overlong),
 * or -1. */
int64_t wg__utf8_invalid(const char *text, int64_t length);

/* -1 with FORMAT, naming `name` (a path), line and byte, unless the text is UTF-8. */
int wg__utf8_check(const char *text, int64_t length, const char *name, const char *where);

/* Appends `text` with every `from` (NULL: none) replaced by `to`. [MEMORY] */
int wg__append_replaced(wg__text *out, const char *text, const char *from, const char *to);

/* The bytes of the first character of a UTF-8 text that is not empty. */
static inline int64_t wg__utf8_length(const char *text) {
    return utf8proc_utf8class[(unsigned char)*text];
}

/* The bytes of the first character if it has Unicode's property White_Space; else, and for an empty
 * text, 0. */
int64_t wg__space_length(const char *text, int64_t length);

#endif
