/* Growing arrays and strings, and sorting. */
#ifndef WG_BASE_ARRAY_H
#define WG_BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Makes room for `wanted` elements in the array that `items`, a pointer to a pointer, points to. If
 * its capacity is not enough, the first `used` elements move to a block at least twice as large. 0,
 * or -1 with MEMORY and no change.
 *
 *     if (wg__reserve(&list->items, list->count, &list->capacity, wanted, sizeof *list->items) < 0)
 *         return -1; */
int wg__reserve(void *items, int64_t used, int64_t *capacity, int64_t wanted, size_t element_size);

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
