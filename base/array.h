/* Growing arrays and strings, and sorting. */
#ifndef WG_BASE_ARRAY_H
#define WG_BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Makes room for `wanted` elements. Returns `block` if its capacity is enough; otherwise frees it
 * and returns a block at least twice as large with its first `used` elements. NULL with MEMORY;
 * `block` is then unchanged. */
void *wg__grow(void *block, int64_t used, int64_t *capacity, int64_t wanted, size_t element_size);

/* The same for the pointer that `items` points to. 0, or -1 with MEMORY.
 *
 *     if (wg__reserve(&list->items, list->count, &list->capacity, wanted, sizeof *list->items) < 0)
 *         return -1; */
static inline int wg__reserve(void *items, int64_t used, int64_t *capacity, int64_t wanted,
                              size_t element_size) {
    void *block;
    memcpy(&block, items, sizeof block);
    block = wg__grow(block, used, capacity, wanted, element_size);
    if (block)
        memcpy(items, &block, sizeof block);
    return block ? 0 : -1;
}

/* Appends a copy of the element. 0, or -1 with MEMORY.
 *
 *     return wg__append(&list->items, &list->count, &list->capacity, &item, sizeof item); */
static inline int wg__append(void *items, int64_t *count, int64_t *capacity, const void *element,
                             size_t element_size) {
    if (wg__reserve(items, *count, capacity, *count + 1, element_size) < 0)
        return -1;
    char *block;
    memcpy(&block, items, sizeof block);
    memcpy(block + (size_t)(*count)++ * element_size, element, element_size);
    return 0;
}

/* A string, NUL-terminated once anything was appended. {0} is empty; free `bytes` with wg__free. */
typedef struct wg__text {
    char *bytes;
    int64_t length, capacity;
} wg__text;

/* [MEMORY] */
int wg__text_append(wg__text *text, const void *bytes, int64_t length);

/* The indices from `first` up to `end` in the order of a comparison, equal ones in the order of
 * their numbers; freed with wg__free. In place of qsort_r, whose arguments depend on the system.
 * [MEMORY] */
typedef int (*wg__index_comparison)(int64_t a, int64_t b, const void *context);
int64_t *wg__sorted_indices(int64_t first, int64_t end, wg__index_comparison compare,
                            const void *context);

/* Compares two of an array of doubles: the largest come first. */
int wg__largest_first(int64_t a, int64_t b, const void *values);

#endif
