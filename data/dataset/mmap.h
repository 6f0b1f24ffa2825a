/* Texts of any size, mapped into memory. A pass over a file releases the pages that it has read, so
 * that it needs no more than a few MiB. A pipe is copied to a temporary file first.
 *
 * A file must not be truncated while it is mapped. */
#ifndef WG_DATA_DATASET_MMAP_H
#define WG_DATA_DATASET_MMAP_H

#include <stdint.h>

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

/* Releases the pages before `at`, which a pass over the text has reached. They may still be read.
 */
void wg__text_map_pass(wg__text_map *map, int64_t at);

/* Releases all pages; those that are read next are mapped again. */
void wg__text_map_rest(wg__text_map *map);

/* -1 with FORMAT, naming `name`, line and byte, unless the text is UTF-8. */
int wg__text_map_check(wg__text_map *map, const char *name, const char *where);

#endif
