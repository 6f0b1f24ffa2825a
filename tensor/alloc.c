/* The caching allocator.
 *
 *     [ header, 64 bytes | block, a multiple of 64 bytes ]
 *
 * Sizes are rounded up to classes, four to a power of two, so that a block fits whatever asks for
 * its class again and at most a fifth is wasted. A freed block goes to the list of its class.
 * Larger blocks are cut of slabs on huge pages, the largest are some by themselves: reading and
 * first touching them would otherwise take twice the time. */
#include "tensor/alloc.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tensor/internal.h"
#include "tensor/slab.h"

#if defined(__SANITIZE_ADDRESS__)
#define WG_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WG_POISONS 1
#endif
#endif

#ifdef WG_POISONS
#include <sanitizer/asan_interface.h>
enum { USES_SLABS = 0 }; /* whose blocks have neighbours that may be read */
#else
enum { USES_SLABS = 1 };
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

enum { HEADER = 64, STEPS = 4, CLASSES = 64 * STEPS };

typedef struct header {
    size_t size; /* of the block, its class's */
    struct header *next;
    wg__slab *slab; /* NULL: a block by itself */
    int size_class;
    bool released; /* idle, and its pages were given back */
} header;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static header *free_lists[CLASSES];
static wg_alloc_stats stats;
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

static header *alone(size_t whole) {
    size_t alignment = 64;
    if (whole >= 2 * (size_t)WG__HUGE_PAGE) {
        alignment = WG__HUGE_PAGE;
        whole = (whole + WG__HUGE_PAGE - 1) & ~((size_t)WG__HUGE_PAGE - 1);
    }
    header *block = aligned_alloc(alignment, whole);
    if (block && alignment == WG__HUGE_PAGE)
        madvise(block, whole, MADV_HUGEPAGE);
    return block;
}

static header *from_system(size_t size) {
    const size_t whole = HEADER + ((size + 63) & ~(size_t)63);
    wg__slab *slab = NULL;
    header *block = USES_SLABS && wg__slab_fits(whole) ? wg__slab_cut(whole, &slab) : alone(whole);
    if (block)
        block->slab = slab;
    return block;
}

/* Forgets a cached block that goes, or gives its pages back where its slab stays. True if it
 * stays. */
static bool trim_block(header *block) {
    if (!block->released)
        stats.cached_bytes -= (int64_t)block->size;
    if (!block->slab) {
        ASAN_UNPOISON_MEMORY_REGION((char *)block + HEADER, block->size);
        free(block);
        return false;
    }
    if (wg__slab_is_idle(block->slab))
        return false;
    if (!block->released)
        wg__slab_release_pages((char *)block + HEADER, block->size);
    block->released = true;
    return true;
}

static void trim_locked(void) {
    for (int i = 0; i < CLASSES; i++) {
        header *block = free_lists[i];
        free_lists[i] = NULL;
        while (block) {
            header *next = block->next;
            if (trim_block(block)) {
                block->next = free_lists[i];
                free_lists[i] = block;
            }
            block = next;
        }
    }
    wg__slab_free_idle();
}

static header *take_locked(int size_class, size_t size) {
    header *block = free_lists[size_class];
    if (block) {
        free_lists[size_class] = block->next;
        if (!block->released)
            stats.cached_bytes -= (int64_t)size;
        block->released = false;
        if (block->slab)
            block->slab->idle--;
        return block;
    }
    block = from_system(size);
    if (!block) {
        trim_locked();
        block = from_system(size);
    }
    if (block) {
        stats.system_allocations++;
        block->size = size;
        block->size_class = size_class;
        block->released = false;
    }
    return block;
}

static header *take(size_t bytes) {
    size_t size;
    int size_class = class_of(bytes, &size);
    header *block = NULL;
    pthread_mutex_lock(&lock);
    if (failing_after != 0) {
        if (failing_after > 0)
            failing_after--;
        block = take_locked(size_class, size);
    }
    if (block) {
        stats.live_blocks++;
        stats.live_bytes += (int64_t)size;
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
    block->next = free_lists[block->size_class];
    free_lists[block->size_class] = block;
    if (block->slab)
        block->slab->idle++;
    stats.live_blocks--;
    stats.live_bytes -= (int64_t)block->size;
    stats.cached_bytes += (int64_t)block->size;
    pthread_mutex_unlock(&lock);
}

wg_alloc_stats wg_alloc_get_stats(void) {
    pthread_mutex_lock(&lock);
    wg_alloc_stats now = stats;
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
