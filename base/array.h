/* Growing arrays and strings, sorting, and suggestions for misspelt names. */
#ifndef WG_BASE_ARRAY_H
#define WG_BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/internal.h"

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

/* A wg__index_comparison that sorts an array of doubles from the largest to the smallest. */
int wg__largest_first(int64_t a, int64_t b, const void *values);

/* A table of distinct strings, numbered 0, 1, 2... in the order they were added.
 *
 *     bytes    [ P A D ] \0 u n \0 # # a f f \0 ...     all strings, NUL-terminated
 *     starts   0           6      9           ...       count + 1 of them
 *     slots    open addressing: the upper half of a string's hash, and its number
 *
 * The hash is FNV-1a, byte by byte, so that one pass over a word gives the hashes of all its
 * prefixes; WordPiece's longest match looks them up. */

typedef struct wg__strings_slot {
    uint32_t tag;
    int32_t number; /* -1: free */
} wg__strings_slot;

typedef struct wg__strings {
    char *bytes;
    int64_t byte_capacity;
    int64_t *starts;
    int64_t start_capacity;
    int64_t count;
    int64_t longest; /* bytes of the longest string */
    wg__strings_slot *slots;
    uint64_t slot_mask; /* the number of slots, a power of two, less one */
} wg__strings;

/* One step of wg__hash, which begins with WG__HASH_BEGIN. */
static inline uint64_t wg__hash_step(uint64_t hash, char byte) {
    return (hash ^ (unsigned char)byte) * UINT64_C(1099511628211);
}

/* The number of a string, which may hold any bytes; a new string is added. `strings` {0} is an
 * empty table. -1 with MEMORY, or ARGUMENT beyond 2^31 - 1 strings. */
int64_t wg__strings_add(wg__strings *strings, const char *text, int64_t length);

/* The number of a string, or -1. */
int64_t wg__strings_find(const wg__strings *strings, const char *text, int64_t length);

/* The number of the string `head` followed by `tail`, whose hash is known, or -1. */
int64_t wg__strings_find_joined(const wg__strings *strings, uint64_t hash, const char *head,
                                int64_t head_length, const char *tail, int64_t tail_length);

/* The string of a number in the table, NUL-terminated; borrowed until the next one is added. */
static inline const char *wg__strings_text(const wg__strings *strings, int64_t number) {
    return strings->bytes + strings->starts[number];
}

static inline int64_t wg__strings_length(const wg__strings *strings, int64_t number) {
    return strings->starts[number + 1] - strings->starts[number] - 1;
}

/* Frees the table's memory and makes it empty. */
void wg__strings_clear(wg__strings *strings);

/* ---- Suggestions at the end of messages about a misspelt name ---- */

/* Writes "; did you mean 'NAME'?" to `text`, or "" if no name is near, and returns `text`. `name`
 * gives the candidates by index, and NULL after the last one; it gets `context`. A name is
 * near if it begins with `typed`, or if few letters, a third of `typed` or one, must be inserted,
 * deleted, replaced or exchanged with their neighbour (Damerau 1964). Case does not count, nor '_'
 * for '-'. The first of equally near names wins. */
WG__COMMAND const char *wg__suggestion(char *text, size_t size, const char *typed,
                                       const char *(*name)(const void *context, int index),
                                       const void *context);

#endif
