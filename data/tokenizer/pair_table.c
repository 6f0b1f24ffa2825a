/* A table from pairs of numbers. See pairs.h. */
#include <string.h>

#include "data/tokenizer/pair_table.h"
#include "tensor/internal.h"

static wg__pair *free_slot(wg__pair *slots, uint64_t mask, int32_t left, int32_t right) {
    uint64_t i = wg__pair_hash(left, right) & mask;
    while (slots[i].left >= 0)
        i = (i + 1) & mask;
    return &slots[i];
}

/* Keeps at least half of the slots free. */
static int make_room(wg__pairs *pairs) {
    uint64_t size = pairs->slots ? pairs->mask + 1 : 0;
    if ((uint64_t)(pairs->count + 1) * 2 <= size)
        return 0;
    size = size ? size * 2 : 64;
    wg__pair *slots = wg__alloc(size * sizeof *slots);
    if (!slots)
        return -1;
    memset(slots, 0xff, size * sizeof *slots); /* every number -1 */
    for (uint64_t i = 0; pairs->slots && i <= pairs->mask; i++)
        if (pairs->slots[i].left >= 0)
            *free_slot(slots, size - 1, pairs->slots[i].left, pairs->slots[i].right) =
                pairs->slots[i];
    wg__free(pairs->slots);
    pairs->slots = slots;
    pairs->mask = size - 1;
    return 0;
}

wg__pair *wg__pairs_add(wg__pairs *pairs, int32_t left, int32_t right) {
    wg__pair *slot = (wg__pair *)wg__pairs_find(pairs, left, right);
    if (slot)
        return slot;
    if (make_room(pairs) < 0)
        return NULL;
    slot = free_slot(pairs->slots, pairs->mask, left, right);
    slot->left = left;
    slot->right = right;
    pairs->count++;
    return slot;
}

void wg__pairs_clear(wg__pairs *pairs) {
    wg__free(pairs->slots);
    *pairs = (wg__pairs){0};
}
