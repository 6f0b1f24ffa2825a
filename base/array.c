/* Arrays and texts: see array.h and internal.h. */
#include <string.h>
#include <stdbool.h>

#include "base/array.h"
#include "base/internal.h"

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
    wg_fail(WG_ERROR_MEMORY, "alloc", "no memory for %lld times %zu bytes", (long long)count,
            element_size);
    return NULL;
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

/* FNV's high bits are weak; this mixes them into the low ones, which choose the slot. */
static uint64_t spread(uint64_t hash) {
    return hash ^ (hash >> 29);
}

static uint32_t tag_of(uint64_t hash) {
    return (uint32_t)(hash >> 32);
}

int64_t wg__strings_find_joined(const wg__strings *strings, uint64_t hash, const char *head,
                                int64_t head_length, const char *tail, int64_t tail_length) {
    if (strings->count == 0)
        return -1;
    uint32_t tag = tag_of(hash);
    uint64_t i = spread(hash) & strings->slot_mask;
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
    uint64_t i = spread(hash) & mask;
    while (slots[i].number >= 0)
        i = (i + 1) & mask;
    slots[i] = (wg__strings_slot){.tag = tag_of(hash), .number = (int32_t)number};
}

/* Grows the slots so that at least half of them stay free. */
static int grow_slots(wg__strings *strings) {
    uint64_t slots = strings->slots ? strings->slot_mask + 1 : 0;
    if ((uint64_t)(strings->count + 1) * 2 <= slots)
        return 0;
    slots = slots ? slots * 2 : 64;
    wg__strings_slot *grown = wg__alloc_array(slots, sizeof *grown);
    if (!grown)
        return -1;
    memset(grown, 0xff, slots * sizeof *grown); /* every number -1 */
    for (int64_t n = 0; n < strings->count; n++) {
        const char *text = wg__strings_text(strings, n);
        insert(grown, slots - 1, wg__hash(WG__HASH_BEGIN, text, wg__strings_length(strings, n)), n);
    }
    wg__free(strings->slots);
    strings->slots = grown;
    strings->slot_mask = slots - 1;
    return 0;
}

static int grow_bytes(wg__strings *strings, int64_t length) {
    int64_t used = strings->count ? strings->starts[strings->count] : 0;
    if (wg__reserve(&strings->bytes, used, &strings->byte_capacity, used + length + 1, 1) < 0)
        return -1;
    if (wg__reserve(&strings->starts, strings->count ? strings->count + 1 : 0,
                    &strings->start_capacity, strings->count + 2, sizeof *strings->starts) < 0)
        return -1;
    if (strings->count == 0)
        strings->starts[0] = 0;
    return 0;
}

int64_t wg__strings_add(wg__strings *strings, const char *text, int64_t length) {
    uint64_t hash = wg__hash(WG__HASH_BEGIN, text, length);
    int64_t known = wg__strings_find_joined(strings, hash, "", 0, text, length);
    if (known >= 0)
        return known;
    if (strings->count >= INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, "strings", "more than 2^31 - 1 distinct strings");
    if (grow_slots(strings) < 0 || grow_bytes(strings, length) < 0)
        return -1;
    int64_t number = strings->count, start = strings->starts[number];
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
