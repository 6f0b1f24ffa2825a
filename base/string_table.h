/* A table of distinct strings, numbered 0, 1, 2... in the order in which they were added.
 *
 *     bytes    [ P A D ] \0 u n \0 # # a f f \0 ...     all strings, NUL-terminated
 *     starts   0           6      9           ...       count + 1 of them
 *     slots    open addressing: the upper half of a string's hash, and its number
 *
 * The hash is FNV-1a, byte by byte, so that one pass over a word gives the hashes of all its
 * prefixes; WordPiece's longest match looks them up. */
#ifndef WG_BASE_STRING_TABLE_H
#define WG_BASE_STRING_TABLE_H

#include <stdint.h>

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

#define WG__HASH_EMPTY UINT64_C(14695981039346656037)

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

#endif
