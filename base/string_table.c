/* A table of distinct strings. See string_table.h. */
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/string_table.h"
#include "base/internal.h"

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
    for (int64_t n = 0; n < strings->count; n++)
        insert(
            grown, slots - 1,
            wg__hash(WG__HASH_BEGIN, wg__strings_text(strings, n), wg__strings_length(strings, n)),
            n);
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
