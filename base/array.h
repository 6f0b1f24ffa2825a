/* Growing arrays and strings. */
#ifndef WG_BASE_ARRAY_H
#define WG_BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/* Makes room for `wanted` elements. Returns `block` if its capacity is enough; otherwise frees it
 * and returns a block at least twice as large with its first `used` elements. NULL with MEMORY;
 * `block` is then unchanged.
 *
 *     item *items = wg__grow(list->items, list->count, &list->capacity, list->count + 1,
 *                            sizeof *items);
 *     if (!items)
 *         return -1;
 *     list->items = items; */
void *wg__grow(void *block, int64_t used, int64_t *capacity, int64_t wanted, size_t element_size);

/* A string, NUL-terminated once anything was appended. {0} is empty; free `bytes` with wg__free. */
typedef struct wg__text {
    char *bytes;
    int64_t length, capacity;
} wg__text;

/* [MEMORY] */
int wg__text_append(wg__text *text, const void *bytes, int64_t length);

#endif
