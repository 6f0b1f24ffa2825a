/* The caching allocator.
 *
 *     [ header, 64 bytes | block, a multiple of 64 bytes ]
 *
 * Small blocks are found at once: their sizes are rounded up to classes, four to a power of two, so
 * that a block fits whatever asks for its class again, and a freed one goes to the list of its
 * class: that of the thread which freed it, for the smallest and while there is room, which takes
 * no lock, else that of all threads. Larger ones are nearly all of the memory: the arena cuts them
 * to measure. */
#include "base/alloc.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/internal.h"
#include "base/poison.h"
#include "base/counters.h"

enum { HEADER = 64, CLASSES = 256, OF_ARENA = -1 };

/* Blocks up to 2^11 bytes, handles and nodes among them, may wait in lists of a thread's own. */
enum { OWN_UNIT = 64, OWN_CLASSES = 32, OWN_BYTES = OWN_CLASSES * OWN_UNIT, OWN_ROOM = 1 << 18 };

typedef struct header {
    size_t size;         /* of the block, its class's */
    struct header *next; /* in the list of its class */
    int size_class;      /* or OF_ARENA */
} header;

/* Of this thread; and how many bytes they may take, 0 before they are begun. */
static WG__THREAD_LOCAL header *own_lists[OWN_CLASSES];
static WG__THREAD_LOCAL int64_t own_room;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static header *free_lists[CLASSES];
static int64_t lent_bytes;   /* of small blocks: in use, or in the lists of threads */
static int64_t shared_bytes; /* of those in free_lists */
static int64_t large_bytes, peak_bytes, system_allocations;

static atomic_int_fast64_t failing_after = -1;

/* The class of a size up to OWN_BYTES: 64, 128, 192... */
static inline int own_class_of(size_t bytes) {
    return bytes == 0 ? 0 : (int)((bytes - 1) / OWN_UNIT);
}

/* The class of any size; from OWN_BYTES on they are counted as (power of two, quarter): 2560, 3072,
 * 3584, 4096, 5120... */
static int class_of(size_t bytes, size_t *rounded) {
    enum { STEPS = 4, FIRST = 11 }; /* 2^11 = OWN_BYTES */
    if (bytes <= OWN_BYTES) {
        const int own = own_class_of(bytes);
        *rounded = (size_t)(own + 1) * OWN_UNIT;
        return own;
    }
    const int power = 63 - __builtin_clzll(bytes - 1);
    const size_t size = (size_t)1 << power, step = size / STEPS;
    const size_t quarters = (bytes - size + step - 1) >> (power - 2);
    *rounded = size + quarters * step;
    return OWN_CLASSES - 1 + (power - FIRST) * STEPS + (int)quarters;
}

/* ---- The lists of one thread ---- */

static header *take_own(size_t bytes) {
    header **list = &own_lists[own_class_of(bytes)];
    header *block = *list;
    if (block) {
        *list = block->next;
        wg__tally_add(WG__TALLY_WAITING, -(int64_t)block->size);
    }
    return block;
}

static bool keep_own(header *block) {
    if (wg__tally_own(WG__TALLY_WAITING) + (int64_t)block->size > own_room)
        return false;
    wg__tally_add(WG__TALLY_WAITING, (int64_t)block->size);
    block->next = own_lists[block->size_class];
    own_lists[block->size_class] = block;
    return true;
}

/* A small block that was lent comes back. */
static void share_locked(header *block) {
    lent_bytes -= (int64_t)block->size;
    shared_bytes += (int64_t)block->size;
    block->next = free_lists[block->size_class];
    free_lists[block->size_class] = block;
}

static void share_own_locked(void) {
    for (int i = 0; i < OWN_CLASSES; i++)
        while (own_lists[i]) {
            header *block = own_lists[i];
            own_lists[i] = block->next;
            wg__tally_add(WG__TALLY_WAITING, -(int64_t)block->size);
            share_locked(block);
        }
}

static pthread_key_t at_thread_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* What the thread frees after this, in other code that runs at its exit, all share. */
static void end_own(void *context) {
    (void)context;
    pthread_mutex_lock(&lock);
    share_own_locked();
    own_room = 0;
    pthread_mutex_unlock(&lock);
    wg__tally_end();
}

static void make_key(void) {
    pthread_key_create(&at_thread_exit, end_own);
}

/* Each thread comes here with its first block, as its lists are empty and take none; and with what
 * it does after end_own, which then runs once more. */
static void begin_own(void) {
    static WG__THREAD_LOCAL bool begun;
    if (wg__tally_is_begun())
        return;
    wg__tally_begin();
    pthread_once(&once, make_key);
    pthread_setspecific(at_thread_exit, own_lists);
    if (!begun)
        own_room = OWN_ROOM;
    begun = true;
}

/* ---- The lists of all, and the arena ---- */

static void trim_locked(void) {
    share_own_locked();
    for (int i = 0; i < CLASSES; i++)
        while (free_lists[i]) {
            header *block = free_lists[i];
            free_lists[i] = block->next;
            shared_bytes -= (int64_t)block->size;
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
        shared_bytes -= (int64_t)size;
    } else {
        block = aligned_alloc(64, HEADER + size);
    }
    lent_bytes += block ? (int64_t)size : 0;
    return block;
}

static header *take_of_size(int size_class, size_t size) {
    bool asked;
    header *block = size_class == OF_ARENA ? wg__arena_alloc(HEADER + size, &asked)
                                           : take_small(size_class, size, &asked);
    if (!block)
        return NULL;
    system_allocations += asked;
    large_bytes += size_class == OF_ARENA ? (int64_t)size : 0;
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

static int64_t live_bytes_locked(void) {
    return large_bytes + lent_bytes - wg__tally_sum(WG__TALLY_WAITING);
}

static void note_peak_locked(void) {
    const int64_t live = live_bytes_locked();
    if (live > peak_bytes)
        peak_bytes = live;
}

WG__APART static header *take_shared(size_t bytes) {
    if (bytes > (size_t)1 << 62)
        return NULL;
    begin_own();
    pthread_mutex_lock(&lock);
    header *block = take_locked(bytes);
    note_peak_locked();
    pthread_mutex_unlock(&lock);
    return block;
}

WG__APART static void free_shared(header *block) {
    begin_own();
    pthread_mutex_lock(&lock);
    if (block->size_class == OF_ARENA) {
        large_bytes -= (int64_t)block->size;
        wg__arena_free(block);
    } else {
        share_locked(block);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- What is asked for ---- */

/* Counts one against the hook. */
static bool is_to_fail(void) {
    int_fast64_t left = atomic_load_explicit(&failing_after, memory_order_relaxed);
    while (left > 0 && !atomic_compare_exchange_weak(&failing_after, &left, left - 1))
        continue;
    return left == 0;
}

static header *take(size_t bytes) {
    if (is_to_fail())
        return NULL;
    header *block = bytes <= OWN_BYTES ? take_own(bytes) : NULL;
    return block ? block : take_shared(bytes);
}

void *wg__alloc(size_t bytes) {
    void *memory = wg__try_alloc(bytes);
    if (!memory)
        wg_fail(WG_ERROR_MEMORY, "alloc", "no memory for %zu bytes", bytes);
    return memory;
}

void *wg__try_alloc(size_t bytes) {
    header *block = take(bytes);
    if (!block)
        return NULL;
    wg__tally_add(WG__TALLY_BLOCKS, 1);
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
    if (block->size > OWN_BYTES || !keep_own(block))
        free_shared(block);
    wg__tally_add(WG__TALLY_BLOCKS, -1);
}

wg_alloc_stats wg_alloc_get_stats(void) {
    pthread_mutex_lock(&lock);
    note_peak_locked();
    const int64_t waiting = shared_bytes + wg__tally_sum(WG__TALLY_WAITING);
    const wg_alloc_stats now = {.live_blocks = wg__tally_sum(WG__TALLY_BLOCKS),
                                .live_bytes = live_bytes_locked(),
                                .peak_bytes = peak_bytes,
                                .cached_bytes = waiting + (int64_t)wg__arena_held(),
                                .system_allocations = system_allocations};
    pthread_mutex_unlock(&lock);
    return now;
}

void wg_alloc_trim(void) {
    pthread_mutex_lock(&lock);
    trim_locked();
    pthread_mutex_unlock(&lock);
}

void wg_alloc_fail_after(int64_t n) {
    atomic_store(&failing_after, n < 0 ? -1 : n);
}
