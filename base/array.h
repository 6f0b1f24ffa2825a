/* Arrays that grow. */
#ifndef WG_BASE_ARRAY_H
#define WG_BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/* A block with room for `wanted` elements that begins with the `used` first elements of `block`:
 * `block` itself if it has room, or a larger one (at least twice as large) in its stead. NULL with
 * MEMORY; `block` is then as it was. */
void *wg__grow(void *block, int64_t used, int64_t *capacity, int64_t wanted, size_t element_size);

/* Bytes of text, always followed by a NUL once anything was appended. {0} is empty; `bytes` is
 * freed with wg__free. */
typedef struct wg__text {
    char *bytes;
    int64_t length, capacity;
} wg__text;

/* [MEMORY] */
int wg__text_append(wg__text *text, const char *bytes, int64_t length);

#endif
