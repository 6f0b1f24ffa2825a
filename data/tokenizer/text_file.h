/* Whole text files: read and written at once, and checked to be UTF-8. */
#ifndef WG_DATA_TOKENIZER_TEXT_FILE_H
#define WG_DATA_TOKENIZER_TEXT_FILE_H

#include <stdint.h>

/* The bytes of a file, followed by a NUL; freed with wg__free. `where` names the caller in the
 * error. NULL with NOT_FOUND, IO, MEMORY. */
char *wg__text_file_read(const char *path, int64_t *length, const char *where);

/* Writes a file beside `path`, syncs it and renames it over `path`, so that the old one survives
 * any failure. [IO] */
int wg__text_file_write(const char *path, const char *text, int64_t length, const char *where);

/* The offset of the first byte that is not valid UTF-8 (RFC 3629: no surrogates, nothing overlong),
 * or -1. */
int64_t wg__utf8_invalid(const char *text, int64_t length);

/* -1 with FORMAT, naming `name` (a path), line and byte, unless the text is UTF-8. */
int wg__utf8_check(const char *text, int64_t length, const char *name, const char *where);

#endif
