/* A table from pairs of numbers to a pair of numbers: open addressing, 16 bytes a slot.
 *
 *     (left, right) -> (first, second)      merges: (rank, joined piece); a trie: (next node,
 * piece)
 */
#ifndef WG_DATA_TOKENIZER_PAIR_TABLE_H
#define WG_DATA_TOKENIZER_PAIR_TABLE_H

#include <stdint.h>

typedef struct wg__pair {
    int32_t left, right; /* left -1: the slot is free */
    int32_t first, second;
} wg__pair;

/* {0} is an empty table. */
typedef struct wg__pairs {
    wg__pair *slots;
    uint64_t mask; /* the number of slots, a power of two, less one */
    int64_t count;
} wg__pairs;

/* The pair's slot, made with first = second = -1 if it is new; it may be written to and stays until
 * the next call. left and right are 0 or more. NULL with MEMORY. */
wg__pair *wg__pairs_add(wg__pairs *pairs, int32_t left, int32_t right);

/* Frees what the table holds and makes it empty. */
void wg__pairs_clear(wg__pairs *pairs);

static inline uint64_t wg__pair_hash(int32_t left, int32_t right) {
    uint64_t hash = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

/* The pair's slot, or NULL. */
static inline const wg__pair *wg__pairs_find(const wg__pairs *pairs, int32_t left, int32_t right) {
    if (pairs->count == 0)
        return 0;
    for (uint64_t i = wg__pair_hash(left, right) & pairs->mask;; i = (i + 1) & pairs->mask) {
        const wg__pair *slot = &pairs->slots[i];
        if (slot->left == left && slot->right == right)
            return slot;
        if (slot->left < 0)
            return 0;
    }
}

#endif
