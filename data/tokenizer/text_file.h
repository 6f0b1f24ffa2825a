/* Reading and mapping text files, lines, and UTF-8: validity, lengths of characters, white space.
 */
#ifndef WG_DATA_TOKENIZER_TEXT_FILE_H
#define WG_DATA_TOKENIZER_TEXT_FILE_H

#include <stdbool.h>
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

/* The length in bytes of the first character of a UTF-8 text that is not empty. */
static inline int64_t wg__utf8_length(const char *text) {
    return utf8proc_utf8class[(unsigned char)*text];
}

/* The length in bytes of the first character if it has Unicode's property White_Space, else 0; 0
 * for an empty text. */
int64_t wg__space_length(const char *text, int64_t length);

/* The number of characters of a UTF-8 text. */
int64_t wg__utf8_count(const char *text, int64_t length);

/* White space of ASCII. */
static inline bool wg__is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

/* ---- Texts of any size, mapped into memory ----
 *
 * A pass over a file releases the pages that it has read, so that it needs no more than a few MiB.
 * A pipe is copied to a temporary file first. A file must not be truncated while it is mapped. */

typedef struct wg__text_map {
    const char *bytes;
    int64_t length;
    int64_t modified; /* nanoseconds since 1970; 0 for a text in memory */
    int64_t passed;   /* pages before this byte were released */
    void *mapping;    /* NULL: `bytes` are borrowed */
} wg__text_map;

/* Maps a file. `where` names the caller in errors. [NOT_FOUND, IO] */
int wg__text_map_open(wg__text_map *map, const char *path, const char *where);

/* A text in memory, which must outlive the map; length -1: up to the first NUL. */
wg__text_map wg__text_map_of(const char *text, int64_t length);

void wg__text_map_close(wg__text_map *map);

/* Releases the pages before byte `at`; a later read maps them again. */
void wg__text_map_pass(wg__text_map *map, int64_t at);

/* Releases all pages; a later read maps them again. */
void wg__text_map_release(wg__text_map *map);

/* -1 with FORMAT, naming `name`, line and byte, unless the text is UTF-8. */
int wg__text_map_check(wg__text_map *map, const char *name, const char *where);

/* ---- Lines ---- */

/* A line of this text ends a document, as in TinyStories. */
#define WG__END_OF_TEXT "<|endoftext|>"
enum { WG__END_OF_TEXT_LENGTH = sizeof WG__END_OF_TEXT - 1 };

typedef struct wg__trimmed_line {
    const char *whole, *text;     /* with and without the blanks at both ends */
    int64_t whole_length, length; /* of `whole`, without its line break, and of `text` */
    bool carriage_return;         /* the line break is CR LF */
    bool ends_document;           /* `text` is WG__END_OF_TEXT */
} wg__trimmed_line;

/* The line that begins at *at, before the end of the text; *at moves to the next line. */
wg__trimmed_line wg__next_line(wg__text_map *text, int64_t *at);

#endif
