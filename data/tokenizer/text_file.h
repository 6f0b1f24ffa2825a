/* Text files as a whole, and UTF-8: validity, lengths of characters, white space. */
#ifndef WG_DATA_TOKENIZER_TEXT_FILE_H
#define WG_DATA_TOKENIZER_TEXT_FILE_H

#include <stdint.h>
#include <utf8proc.h>

#include "base/array.h"

/* The bytes of a file, followed by a NUL; freed with wg__free. `where` names the caller in the
 * error. NULL with NOT_FOUND, IO, MEMORY. */
char *wg__text_file_read(const char *path, int64_t *length, const char *where);

/* The offset of the first byte that is not valid UTF-8 (RFC 3629), or -1. */
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

/* Texts of any size, mapped into memory. A pass over a file releases the pages that it has read, so
 * that it needs no more than a few MiB. A pipe is copied to a temporary file first.
 *
 * A file must not be truncated while it is mapped. */

typedef struct wg__text_map {
    const char *bytes;
    int64_t length;
    int64_t modified; /* nanoseconds since 1970; 0 for a text in memory */
    int64_t passed;   /* pages before were released */
    void *mapping;    /* NULL: `bytes` are borrowed */
} wg__text_map;

/* Maps a file. `where` names the caller in errors. [NOT_FOUND, IO] */
int wg__text_map_open(wg__text_map *map, const char *path, const char *where);

/* A text in memory, which must outlive the map; length -1: up to the first NUL. */
wg__text_map wg__text_map_of(const char *text, int64_t length);

void wg__text_map_close(wg__text_map *map);

/* Releases the pages before `at`, which a pass over the text reached. They may still be read. */
void wg__text_map_pass(wg__text_map *map, int64_t at);

/* Releases all pages; those that are read next are mapped again. */
void wg__text_map_rest(wg__text_map *map);

/* -1 with FORMAT, naming `name`, line and byte, unless the text is UTF-8. */
int wg__text_map_check(wg__text_map *map, const char *name, const char *where);

#endif
