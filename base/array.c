/* Growing arrays, strings, sorting and suggestions: see array.h and internal.h. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"

void *wg__try_alloc_array(int64_t count, size_t element_size) {
    size_t bytes;
    if (count < 0 || __builtin_mul_overflow((size_t)count, element_size, &bytes))
        return NULL;
    return wg__try_alloc(bytes);
}

void *wg__alloc_array(int64_t count, size_t element_size) {
    size_t bytes;
    if (count >= 0 && !__builtin_mul_overflow((size_t)count, element_size, &bytes))
        return wg__alloc(bytes);
    return wg__fail_null(WG_ERROR_MEMORY, "alloc", "no memory for %lld times %zu bytes",
                         (long long)count, element_size);
}

void *wg__calloc(size_t count, size_t size) {
    void *block = wg__alloc_array(count > INT64_MAX ? -1 : (int64_t)count, size);
    return block ? memset(block, 0, count * size) : NULL;
}

int64_t wg__times(int64_t a, int64_t b) {
    const int64_t most = (int64_t)1 << 60;
    int64_t product;
    const bool is_counted = a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, &product);
    return is_counted && product < most ? product : most;
}

char *wg__strdup(const char *text) {
    const size_t size = strlen(text) + 1;
    char *copy = wg__alloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

char *wg_text_new(const char *text) {
    return text ? wg__strdup(text) : NULL;
}

void wg_text_free(char *text) {
    wg__free(text);
}

/* The capacity doubles, so that appending n elements costs O(n). */
int wg__reserve(void *items, int64_t used, int64_t *capacity, int64_t wanted, size_t element_size) {
    void *block;
    memcpy(&block, items, sizeof block);
    if (block && wanted <= *capacity)
        return 0;
    const int64_t doubled = *capacity < 8 ? 16 : *capacity < INT64_MAX / 2 ? *capacity * 2 : wanted;
    const int64_t larger = wg__larger(doubled, wanted);
    void *grown = wg__alloc_array(larger, element_size);
    if (!grown)
        return -1;
    if (block)
        memcpy(grown, block, (size_t)used * element_size);
    wg__free(block);
    memcpy(items, &grown, sizeof grown);
    *capacity = larger;
    return 0;
}

int wg__text_append(wg__text *text, const void *bytes, int64_t length) {
    if (wg__reserve(&text->bytes, text->length, &text->capacity, text->length + length + 1, 1) < 0)
        return -1;
    memcpy(text->bytes + text->length, bytes, (size_t)length);
    text->length += length;
    text->bytes[text->length] = '\0';
    return 0;
}

/* Merges runs of 1, 2, 4, ... indices back and forth between both halves of a block. */
int64_t *wg__sorted_indices(int64_t first, int64_t end, wg__index_comparison compare,
                            const void *context) {
    const int64_t count = end - first;
    int64_t *order = wg__alloc_array(wg__times(count + 1, 2), sizeof *order);
    for (int64_t i = 0; order && i < count; i++)
        order[i] = first + i;
    for (int64_t run = 1; order && run < count; run *= 2) {
        memcpy(order + count, order, (size_t)count * sizeof *order);
        const int64_t *from = order + count;
        for (int64_t begin = 0; begin < count; begin += 2 * run) {
            const int64_t middle = wg__smaller(begin + run, count),
                          stop = wg__smaller(begin + 2 * run, count);
            for (int64_t i = begin, j = middle, k = begin; k < stop; k++)
                order[k] = j == stop || (i < middle && compare(from[i], from[j], context) <= 0)
                               ? from[i++]
                               : from[j++];
        }
    }
    return order;
}

int wg__largest_first(int64_t a, int64_t b, const void *values) {
    const double x = ((const double *)values)[a], y = ((const double *)values)[b];
    return (x < y) - (x > y);
}

/* ---- Strings ---- */

int64_t wg__strings_find_joined(const wg__strings *strings, uint64_t hash, const char *head,
                                int64_t head_length, const char *tail, int64_t tail_length) {
    if (strings->count == 0)
        return -1;
    /* FNV's high bits are weak; hash >> 29 mixes them into the low bits, which choose the slot. */
    uint32_t tag = (uint32_t)(hash >> 32);
    uint64_t i = (hash ^ (hash >> 29)) & strings->slot_mask;
    for (;; i = (i + 1) & strings->slot_mask) {
        wg__strings_slot slot = strings->slots[i];
        if (slot.number < 0)
            return -1;
        if (slot.tag != tag ||
            wg__strings_length(strings, slot.number) != head_length + tail_length)
            continue;
        const char *text = wg__strings_text(strings, slot.number);
        if (memcmp(text, head, (size_t)head_length) == 0 &&
            memcmp(text + head_length, tail, (size_t)tail_length) == 0)
            return slot.number;
    }
}

int64_t wg__strings_find(const wg__strings *strings, const char *text, int64_t length) {
    return wg__strings_find_joined(strings, wg__hash(WG__HASH_BEGIN, text, length), "", 0, text,
                                   length);
}

static void insert(wg__strings_slot *slots, uint64_t mask, uint64_t hash, int64_t number) {
    uint64_t i = (hash ^ (hash >> 29)) & mask;
    while (slots[i].number >= 0)
        i = (i + 1) & mask;
    slots[i] = (wg__strings_slot){.tag = (uint32_t)(hash >> 32), .number = (int32_t)number};
}

int64_t wg__strings_add(wg__strings *strings, const char *text, int64_t length) {
    uint64_t hash = wg__hash(WG__HASH_BEGIN, text, length);
    int64_t known = wg__strings_find_joined(strings, hash, "", 0, text, length);
    if (known >= 0)
        return known;
    if (strings->count >= INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, "strings", "more than 2^31 - 1 distinct strings");
    const int64_t number = strings->count, start = number ? strings->starts[number] : 0;
    uint64_t slots = strings->slots ? strings->slot_mask + 1 : 0;
    if ((uint64_t)(number + 1) * 2 > slots) { /* at least half of the slots stay free */
        slots = slots ? slots * 2 : 64;
        wg__strings_slot *grown = wg__alloc_array(slots, sizeof *grown);
        if (!grown)
            return -1;
        memset(grown, 0xff, slots * sizeof *grown); /* every number -1 */
        for (int64_t n = 0; n < number; n++) {
            const char *old = wg__strings_text(strings, n);
            insert(grown, slots - 1, wg__hash(WG__HASH_BEGIN, old, wg__strings_length(strings, n)),
                   n);
        }
        wg__free(strings->slots);
        strings->slots = grown;
        strings->slot_mask = slots - 1;
    }
    if (wg__reserve(&strings->bytes, start, &strings->byte_capacity, start + length + 1, 1) < 0 ||
        wg__reserve(&strings->starts, number ? number + 1 : 0, &strings->start_capacity, number + 2,
                    sizeof *strings->starts) < 0)
        return -1;
    strings->starts[number] = start;
    memcpy(strings->bytes + start, text, (size_t)length);
    strings->bytes[start + length] = '\0';
    strings->starts[number + 1] = start + length + 1;
    strings->count = number + 1;
    if (length > strings->longest)
        strings->longest = length;
    insert(strings->slots, strings->slot_mask, hash, number);
    return number;
}

void wg__strings_clear(wg__strings *strings) {
    wg__free(strings->bytes);
    wg__free(strings->starts);
    wg__free(strings->slots);
    *strings = (wg__strings){0};
}

enum { LONGEST = 64 }; /* longer names are not compared */

static char folded(char letter) {
    return letter == '_' ? '-' : (char)tolower((unsigned char)letter);
}

/* How many letters are inserted, deleted, replaced or exchanged with their neighbour:
 *
 *     d(i, j) = min( d(i-1, j) + 1, d(i, j-1) + 1, d(i-1, j-1) + [a_i != b_j],
 *                    d(i-2, j-2) + 1 if a_i a_i-1 = b_j-1 b_j ) */
static int edit_distance(const char *a, const char *b) {
    const int n = (int)strlen(a), m = (int)strlen(b);
    int rows[3][LONGEST + 1]; /* d(i, .), in turns */
    for (int j = 0; j <= m; j++)
        rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = rows[i % 3];
        const int *before = rows[(i - 1) % 3], *two_before = rows[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            const char x = folded(a[i - 1]), y = folded(b[j - 1]);
            now[j] = 1 + (before[j] < now[j - 1] ? before[j] : now[j - 1]);
            if (before[j - 1] + (x != y) < now[j])
                now[j] = before[j - 1] + (x != y);
            if (i > 1 && j > 1 && x == folded(b[j - 2]) && y == folded(a[i - 2]) &&
                two_before[j - 2] + 1 < now[j])
                now[j] = two_before[j - 2] + 1;
        }
    }
    return rows[n % 3][m];
}

const char *wg__suggestion(char *text, size_t size, const char *typed,
                           const char *(*name)(const void *context, int index),
                           const void *context) {
    const size_t length = strlen(typed);
    int least = (int)(length < 7 ? 1 : (length + 1) / 4) + 1; /* a quarter may be wrong */
    const char *nearest = NULL, *candidate;
    for (int i = 0; length > 0 && length <= LONGEST && (candidate = name(context, i)); i++) {
        if (strlen(candidate) > LONGEST)
            continue;
        int distance = edit_distance(typed, candidate);
        size_t same = 0;
        while (same < length && folded(candidate[same]) == folded(typed[same]))
            same++;
        if (length >= 3 && same == length && distance > 1)
            distance = 1;
        if (distance < least) {
            least = distance;
            nearest = candidate;
        }
    }
    if (nearest)
        snprintf(text, size, "; did you mean '%s'?", nearest);
    else
        text[0] = '\0';
    return text;
}
