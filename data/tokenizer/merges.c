/* Byte-pair encoding's inner loop. See merges.h. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "data/tokenizer/merges.h"
#include "tensor/internal.h"

#define SHORT                                                                                      \
    48 /* ids; beyond that a heap is faster than looking at all of them for each merge             \
        */
#define NO_RANK INT32_MAX

typedef struct candidate {
    int32_t rank, joined;
} candidate;

static candidate candidate_of(const wg__pairs *merges, int32_t left, int32_t right) {
    const wg__pair *pair = left < 0 ? NULL : wg__pairs_find(merges, left, right);
    return pair ? (candidate){pair->first, pair->second} : (candidate){NO_RANK, -1};
}

/* ---- Few ids: the best is found by looking at all ---- */

static int64_t merge_short(const wg__pairs *merges, int32_t *ids, int64_t count) {
    candidate pairs[SHORT]; /* of ids[i] and ids[i + 1] */
    for (int64_t i = 0; i + 1 < count; i++)
        pairs[i] = candidate_of(merges, ids[i], ids[i + 1]);
    while (count > 1) {
        int64_t best = 0;
        for (int64_t i = 1; i + 1 < count; i++)
            if (pairs[i].rank < pairs[best].rank)
                best = i;
        if (pairs[best].rank == NO_RANK)
            break;
        ids[best] = pairs[best].joined;
        count--;
        for (int64_t i = best + 1; i < count; i++) {
            ids[i] = ids[i + 1];
            pairs[i - 1] = pairs[i];
        }
        if (best > 0)
            pairs[best - 1] = candidate_of(merges, ids[best - 1], ids[best]);
        if (best + 1 < count)
            pairs[best] = candidate_of(merges, ids[best], ids[best + 1]);
    }
    return count;
}

/* ---- Many ids: a list of those that are left, and a heap of the pairs that may be joined. An
 * entry that is out of date stays in the heap and is passed over when it comes up. ---- */

typedef struct entry {
    int32_t rank, at;
} entry;

typedef struct link {
    int32_t previous, next; /* -1: none */
    candidate pair;         /* of this and the next; rank NO_RANK, too, for an id that was joined */
} link;

typedef struct heap {
    entry *entries;
    int64_t count;
} heap;

static bool comes_before(entry a, entry b) {
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void push(heap *heap, entry entry) {
    int64_t i = heap->count++;
    for (; i > 0 && comes_before(entry, heap->entries[(i - 1) / 2]); i = (i - 1) / 2)
        heap->entries[i] = heap->entries[(i - 1) / 2];
    heap->entries[i] = entry;
}

static entry pop(heap *heap) {
    entry top = heap->entries[0], last = heap->entries[--heap->count];
    int64_t i = 0;
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && comes_before(heap->entries[child + 1], heap->entries[child]))
            child++;
        if (!comes_before(heap->entries[child], last))
            break;
        heap->entries[i] = heap->entries[child];
        i = child;
    }
    heap->entries[i] = last;
    return top;
}

static void look(const wg__pairs *merges, const int32_t *ids, link *links, int32_t at, heap *heap) {
    if (at < 0)
        return;
    int32_t next = links[at].next;
    links[at].pair = next < 0 ? (candidate){NO_RANK, -1} : candidate_of(merges, ids[at], ids[next]);
    if (links[at].pair.rank != NO_RANK)
        push(heap, (entry){links[at].pair.rank, at});
}

static int64_t merge_long(const wg__pairs *merges, int32_t *ids, int64_t length,
                          wg__merge_space *space) {
    if (length > INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, "tokenizer",
                       "more than 2^31 - 1 characters in one stretch");
    int32_t count = (int32_t)length;
    /* Every merge takes one id away and pushes two entries at most. */
    int64_t bytes = length * (int64_t)(sizeof(link) + 3 * sizeof(entry));
    char *block = wg__grow(space->block, 0, &space->capacity, bytes, 1);
    if (!block)
        return -1;
    space->block = block;
    link *links = (link *)block;
    heap heap = {(entry *)(links + count), 0};
    for (int32_t i = 0; i < count; i++)
        links[i] = (link){i - 1, i + 1 < count ? i + 1 : -1, {NO_RANK, -1}};
    for (int32_t i = 0; i < count; i++)
        look(merges, ids, links, i, &heap);
    while (heap.count > 0) {
        entry top = pop(&heap);
        link *link = &links[top.at];
        if (link->pair.rank != top.rank)
            continue;
        int32_t gone = link->next;
        ids[top.at] = link->pair.joined;
        link->next = links[gone].next;
        links[gone].pair.rank = NO_RANK;
        if (link->next >= 0)
            links[link->next].previous = top.at;
        look(merges, ids, links, link->previous, &heap);
        look(merges, ids, links, top.at, &heap);
    }
    int64_t left = 0;
    for (int32_t i = 0; i >= 0; i = links[i].next)
        ids[left++] = ids[i];
    return left;
}

int64_t wg__merge(const wg__pairs *merges, int32_t *ids, int64_t count, wg__merge_space *space) {
    if (count <= 1)
        return count;
    return count <= SHORT ? merge_short(merges, ids, count) : merge_long(merges, ids, count, space);
}

/* ---- Ranks ---- */

static int compare_scores(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x > y ? -1 : x < y;
}

int wg__rank_scores(int64_t count, const double *scores, int32_t *ranks) {
    double *sorted = wg__alloc((size_t)(count + 1) * sizeof *sorted);
    if (!sorted)
        return -1;
    memcpy(sorted, scores, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_scores);
    size_t distinct = 0;
    for (int64_t i = 0; i < count; i++)
        if (i == 0 || sorted[i] != sorted[distinct - 1])
            sorted[distinct++] = sorted[i];
    for (int64_t i = 0; i < count; i++) {
        const double *found = bsearch(&scores[i], sorted, distinct, sizeof *sorted, compare_scores);
        ranks[i] = (int32_t)(found - sorted);
    }
    wg__free(sorted);
    return 0;
}

void wg__merge_space_clear(wg__merge_space *space) {
    wg__free(space->block);
    *space = (wg__merge_space){0};
}
