/* The caching allocator.
 *
 *     [ header, 64 bytes | block, a multiple of 64 bytes ]
 *
 * Small blocks are found at once: their sizes are rounded up to classes, four to a power of two, so
 * that a block fits whatever asks for its class again, and a freed one goes to the list of its
 * class. Larger ones are nearly all of the memory: the arena cuts them to measure. */
#include "tensor/alloc.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/arena.h"
#include "tensor/internal.h"
#include "tensor/poison.h"

enum { HEADER = 64, STEPS = 4, CLASSES = 64 * STEPS, OF_ARENA = -1 };

typedef struct header {
    size_t size;         /* of the block, its class's */
    struct header *next; /* in the list of its class */
    int size_class;      /* or OF_ARENA */
} header;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static header *free_lists[CLASSES];
static size_t small_cached;
static wg_alloc_stats stats; /* but for cached_bytes */
static int64_t failing_after = -1;

/* The class of a size, counted as (power of two, quarter): 64, 80, 96, 112, 128, 160... */
static int class_of(size_t bytes, size_t *rounded) {
    enum { SMALLEST = 6 }; /* 2^6 = 64 */
    const int power = bytes <= 64 ? SMALLEST : 63 - __builtin_clzll(bytes);
    const size_t size = (size_t)1 << power, step = size / STEPS;
    const size_t quarters = bytes <= size ? 0 : (bytes - size + step - 1) >> (power - 2);
    *rounded = size + quarters * step;
    return (power - SMALLEST) * STEPS + (int)quarters;
}

static void trim_locked(void) {
    for (int i = 0; i < CLASSES; i++)
        while (free_lists[i]) {
            header *block = free_lists[i];
            free_lists[i] = block->next;
            small_cached -= block->size;
            ASAN_UNPOISON_MEMORY_REGION((char *)block + HEADER, block->size);
            free(block);
        }
    wg__arena_trim();
}

/* A block of that class, cached or fresh, or NULL. */
static header *take_small(int size_class, size_t size, bool *asked) {
    header *block = free_lists[size_class];
    *asked = !block;
    if (block) {
        free_lists[size_class] = block->next;
        small_cached -= size;
        return block;
    }
    return aligned_alloc(64, HEADER + ((size + 63) & ~(size_t)63));
}

static header *take_of_size(int size_class, size_t size) {
    bool asked;
    header *block = size_class == OF_ARENA ? wg__arena_alloc(HEADER + size, &asked)
                                           : take_small(size_class, size, &asked);
    if (!block)
        return NULL;
    stats.system_allocations += asked;
    block->size = size;
    block->size_class = size_class;
    return block;
}

static header *take_locked(size_t bytes) {
    size_t size = (bytes + 63) & ~(size_t)63;
    const int size_class = wg__arena_takes(HEADER + size) ? OF_ARENA : class_of(bytes, &size);
    header *block = take_of_size(size_class, size);
    if (block)
        return block;
    trim_locked();
    return take_of_size(size_class, size);
}

static header *take(size_t bytes) {
    header *block = NULL;
    pthread_mutex_lock(&lock);
    if (failing_after != 0) {
        if (failing_after > 0)
            failing_after--;
        block = take_locked(bytes);
    }
    if (block) {
        stats.live_blocks++;
        stats.live_bytes += (int64_t)block->size;
        if (stats.live_bytes > stats.peak_bytes)
            stats.peak_bytes = stats.live_bytes;
    }
    pthread_mutex_unlock(&lock);
    return block;
}

void *wg__alloc(size_t bytes) {
    void *memory = wg__try_alloc(bytes);
    if (!memory)
        wg_fail(WG_ERROR_MEMORY, "alloc", "no memory for %zu bytes", bytes);
    return memory;
}

void *wg__try_alloc(size_t bytes) {
    header *block = bytes <= (size_t)1 << 62 ? take(bytes) : NULL;
    if (!block)
        return NULL;
    char *memory = (char *)block + HEADER;
    /* What rounding added stays poisoned, so that a read beyond the end is still caught. */
    ASAN_POISON_MEMORY_REGION(memory, block->size);
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
    return memory;
}

void *wg__calloc(size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) {
        wg_fail(WG_ERROR_MEMORY, "alloc", "no memory for %zu times %zu bytes", count, size);
        return NULL;
    }
    void *block = wg__alloc(count * size);
    return block ? memset(block, 0, count * size) : NULL;
}

char *wg__strdup(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = wg__alloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void wg__free(void *memory) {
    if (!memory)
        return;
    header *block = (header *)((char *)memory - HEADER);
    ASAN_POISON_MEMORY_REGION(memory, block->size);
    pthread_mutex_lock(&lock);
    stats.live_blocks--;
    stats.live_bytes -= (int64_t)block->size;
    if (block->size_class == OF_ARENA) {
        wg__arena_free(block);
    } else {
        block->next = free_lists[block->size_class];
        free_lists[block->size_class] = block;
        small_cached += block->size;
    }
    pthread_mutex_unlock(&lock);
}

wg_alloc_stats wg_alloc_get_stats(void) {
    pthread_mutex_lock(&lock);
    wg_alloc_stats now = stats;
    now.cached_bytes = (int64_t)(small_cached + wg__arena_held());
    pthread_mutex_unlock(&lock);
    return now;
}

void wg_alloc_trim(void) {
    pthread_mutex_lock(&lock);
    trim_locked();
    pthread_mutex_unlock(&lock);
}

void wg_alloc_fail_after(int64_t n) {
    pthread_mutex_lock(&lock);
    failing_after = n < 0 ? -1 : n;
    pthread_mutex_unlock(&lock);
}
