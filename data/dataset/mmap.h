/* Texts of any size as if they were in memory: files are mapped, and what was gone through is let
 * go, so that a pass over a file needs no more than a few MiB. What is no file on disk (a pipe) is
 * copied to a temporary one first.
 *
 * A file must not be cut short while it is read. */
#ifndef WG_DATA_DATASET_MMAP_H
#define WG_DATA_DATASET_MMAP_H

#include <stdint.h>

typedef struct wg__text_map {
    const char *bytes;
    int64_t length;
    int64_t modified; /* nanoseconds since 1970; 0 for a text in memory */
    int64_t passed;   /* what is before was let go */
    void *mapping;    /* NULL: bytes are somebody else's */
} wg__text_map;

/* Maps a file. `where` names the caller in errors. [NOT_FOUND, IO] */
int wg__text_map_open(wg__text_map *map, const char *path, const char *where);

/* A text in memory, which must outlive the map; length -1: up to the first NUL. */
wg__text_map wg__text_map_of(const char *text, int64_t length);

void wg__text_map_close(wg__text_map *map);

/* Tells that a pass over the text has come to `at`. What is before may still be read. */
void wg__text_map_pass(wg__text_map *map, int64_t at);

/* Lets go of all of it, from wherever a pass is; what is needed next comes back. */
void wg__text_map_rest(wg__text_map *map);

/* -1 with FORMAT, naming `name`, line and byte, unless the text is UTF-8. */
int wg__text_map_check(wg__text_map *map, const char *name, const char *where);

#endif
