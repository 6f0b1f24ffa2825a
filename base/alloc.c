/* The caching allocator.
 *
 *     block      [ header, 64 bytes | memory, a multiple of 64 bytes ]
 *
 *     to 64 KiB  size classes, each with a list of free blocks; the classes up to 2 KiB also have a
 *                list per thread, which takes no lock
 *     above      cut from the lowest free piece of the arena that fits, so that training steps,
 *                which are alike, find their blocks at the same addresses
 *
 *     arena      | block | free | block | block | free |  addresses without memory  |
 *                                                     top                          end
 *     pieces     {begin, size, held}...   the free pieces, by address; no two touch
 *
 * The arena asks for huge pages, so that memory bandwidth and not TLB misses limits reading a
 * matrix once for each token. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/internal.h"
#include "base/system.h"

enum { HEADER = 64, UNIT = 64, OWN_BYTES = 2048, LARGE_BYTES = 64 << 10, HUGE_PAGE = 2 << 20 };
/* LARGE is also the number of classes of small blocks. */
enum { OWN_CLASSES = OWN_BYTES / UNIT, LARGE = 56, OWN_ROOM = 1 << 18 };
static const size_t usual_reserve = (size_t)64 << 30; /* addresses without memory cost nothing */

#ifdef WG__POISONS
enum { RED_ZONE = 1024 }; /* behind each block, so that an overrun does not reach the next one */
#else
enum { RED_ZONE = 0 };
#endif

typedef struct header {
    size_t size;         /* of the memory behind the header */
    struct header *next; /* in the list of its class */
    int size_class;      /* or LARGE */
} header;

typedef struct piece {
    char *begin;
    size_t size, held; /* held: bytes that have memory, counted as if they came first */
} piece;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all but what threads own */
static struct {
    piece *pieces;
    int64_t count, room, blocks; /* free pieces, places for them, blocks that are in use */
    char *top, *end;
} arena;
static header *shared_lists[LARGE];
static WG__THREAD_LOCAL header *own_lists[OWN_CLASSES];
static WG__THREAD_LOCAL int64_t own_room; /* bytes that own_lists may hold; 0 until begin_thread */
static int64_t lent_bytes;                /* in use or in the lists of threads */
static int64_t shared_bytes;              /* in shared_lists */
static int64_t peak_bytes, system_allocations;
static atomic_int_fast64_t failing_after = -1;

WG__THREAD_LOCAL wg__thread_counters wg__own_counters;
static wg__thread_counters *listed_counters;
static int64_t counts_of_ended_threads[WG__COUNTERS];

/* ---- The arena ---- */

static size_t round_up(size_t bytes, size_t step) {
    return (bytes + step - 1) / step * step;
}

static void replace_pieces(int64_t at, int64_t removed, int64_t added, piece p) {
    piece *here = arena.pieces + at;
    memmove(here + added, here + removed, (size_t)(arena.count - at - removed) * sizeof p);
    arena.count += added - removed;
    if (added)
        *here = p;
}

/* Merges p with the free pieces that it touches. */
static void add_piece(piece p) {
    int64_t i = 0;
    for (int64_t high = arena.count; i < high;) {
        const int64_t middle = (i + high) / 2;
        if (arena.pieces[middle].begin < p.begin)
            i = middle + 1;
        else
            high = middle;
    }
    const piece *next = arena.pieces + i, *last = i > 0 ? next - 1 : NULL;
    const bool joins_next = i < arena.count && p.begin + p.size == next->begin;
    const bool joins_last = last && last->begin + last->size == p.begin;
    if (joins_next)
        p = (piece){p.begin, p.size + next->size, p.held + next->held};
    if (joins_last)
        p = (piece){last->begin, p.size + last->size, p.held + last->held};
    replace_pieces(i - joins_last, joins_last + joins_next, 1, p);
}

/* Returns the addresses above the arena's top to the system. */
static void release_addresses(void) {
    if (arena.top < arena.end)
        munmap(arena.top, (size_t)(arena.end - arena.top));
    arena.end = arena.top;
}

/* Adds free memory at the top, so that a free piece has `size` bytes. Where the arena has too few
 * addresses, it moves to new ones and releases its unused old ones. Where the system limits
 * addresses, the arena reserves only the bytes of this request. */
static bool grow(size_t size) {
    const piece *last = arena.count > 0 ? arena.pieces + arena.count - 1 : NULL;
    const bool touches = last && last->begin + last->size == arena.top;
    size_t more = round_up(size - (touches ? last->size : 0), HUGE_PAGE);
    if ((size_t)(arena.end - arena.top) < more) {
        more = round_up(size, HUGE_PAGE);
        size_t bytes = more < usual_reserve ? usual_reserve : more;
        char *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            at = mmap(NULL, bytes = more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            return false;
        release_addresses();
        wg__prefer_huge_pages(at, bytes);
        __lsan_register_root_region(at, bytes);
        arena.top = bytes - more < HUGE_PAGE ? at : (char *)round_up((uintptr_t)at, HUGE_PAGE);
        arena.end = at + bytes;
        arena.blocks++; /* a region counts as a block: see cut_block */
    }
    if (mprotect(arena.top, more, PROT_READ | PROT_WRITE) < 0)
        return false;
    ASAN_POISON_MEMORY_REGION(arena.top, more);
    arena.top += more;
    add_piece((piece){arena.top - more, more, more});
    return true;
}

/* The bytes of a block with its header. The header doubles with the block, so that two blocks of
 * half the size fit the place of a freed one: mixed precision frees f32 and allocates bf16. */
static size_t piece_size(size_t bytes) {
    size_t header = HEADER + RED_ZONE;
    for (size_t large = 2 * LARGE_BYTES; large <= bytes; large *= 2)
        header *= 2;
    return header + bytes;
}

static piece *first_fit(size_t size) {
    for (piece *p = arena.pieces; p < arena.pieces + arena.count; p++)
        if (p->size >= size)
            return p;
    return NULL;
}

/* `asked` receives whether the system had to supply memory. Above every block, and at the begin of
 * a region, there is a free piece at most: so with room for all of them a free needs no memory. */
static header *cut_block(size_t bytes, bool *asked) {
    const size_t size = piece_size(bytes);
    if (arena.blocks + 2 > arena.room) {
        const size_t room = (size_t)arena.room * 2 + 64, wanted = room * sizeof(piece);
        void *longer = realloc(arena.pieces, wanted);
        if (!longer)
            return NULL;
        arena.pieces = longer;
        arena.room = (int64_t)room;
    }
    piece *p = first_fit(size);
    *asked = !p || p->held < size;
    if (!p && grow(size))
        p = first_fit(size);
    if (!p)
        return NULL;
    header *block = (header *)p->begin;
    const size_t left = p->size - size;
    *p = (piece){p->begin + size, left, p->held > size ? p->held - size : 0};
    if (left == 0)
        replace_pieces(p - arena.pieces, 1, 0, *p);
    arena.blocks++;
    ASAN_UNPOISON_MEMORY_REGION(block, HEADER + bytes);
    return block;
}

/* ---- Small blocks ---- */

static header *alloc_locked(size_t bytes) {
    const bool is_large = round_up(bytes, UNIT) + HEADER >= LARGE_BYTES;
    int size_class = LARGE;
    /* Classes of 64, 128, 192... 2048 bytes, and from there four to a power of two: 2560, 3072,
     * 3584, 4096, 5120... */
    if (!is_large && bytes <= OWN_BYTES) {
        bytes = bytes == 0 ? UNIT : round_up(bytes, UNIT);
        size_class = (int)(bytes / UNIT) - 1;
    } else if (!is_large) {
        const int power = 63 - __builtin_clzll(bytes - 1); /* from 11 on */
        bytes = round_up(bytes, (size_t)1 << (power - 2));
        const int quarters = (int)((bytes - ((size_t)1 << power)) >> (power - 2));
        size_class = OWN_CLASSES - 1 + (power - 11) * 4 + quarters;
    }
    header *block = is_large ? NULL : shared_lists[size_class];
    bool asked = !block;
    if (block) {
        shared_lists[size_class] = block->next;
        shared_bytes -= (int64_t)bytes;
    } else if (is_large)
        block = cut_block(bytes = round_up(bytes, UNIT), &asked);
    else
        block = aligned_alloc(UNIT, HEADER + bytes);
    if (!block)
        return NULL;
    lent_bytes += (int64_t)bytes;
    system_allocations += asked;
    *block = (header){.size = bytes, .size_class = size_class};
    return block;
}

static void free_locked(header *block) {
    lent_bytes -= (int64_t)block->size;
    if (block->size_class == LARGE) {
        const size_t size = piece_size(block->size);
        ASAN_POISON_MEMORY_REGION(block, size);
        arena.blocks--;
        add_piece((piece){(char *)block, size, size});
        return;
    }
    shared_bytes += (int64_t)block->size;
    block->next = shared_lists[block->size_class];
    shared_lists[block->size_class] = block;
}

static void share_own_lists(void) {
    for (int i = 0; i < OWN_CLASSES; i++)
        for (header *block; (block = own_lists[i]);) {
            own_lists[i] = block->next;
            wg__counter_add(WG__COUNT_CACHED_BYTES, -(int64_t)block->size);
            free_locked(block);
        }
}

/* Frees the small blocks and returns the whole pages of the free pieces to the system. */
static void trim_locked(void) {
    share_own_lists();
    for (int i = 0; i < LARGE; i++)
        for (header *block; (block = shared_lists[i]);) {
            shared_lists[i] = block->next;
            shared_bytes -= (int64_t)block->size;
            ASAN_UNPOISON_MEMORY_REGION((char *)block + HEADER, block->size);
            free(block);
        }
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (piece *p = arena.pieces; p < arena.pieces + arena.count; p++) {
        const uintptr_t first = round_up((uintptr_t)p->begin, page);
        const uintptr_t end = (uintptr_t)(p->begin + p->size) / page * page;
        if (first < end)
            wg__release_pages((void *)first, end - first);
        p->held = 0;
    }
    release_addresses();
}

/* ---- Threads and fork ---- */

static int64_t sum_locked(wg__counter counter) {
    int64_t sum = counts_of_ended_threads[counter];
    for (const wg__thread_counters *c = listed_counters; c; c = c->next)
        sum += atomic_load_explicit(&c->counts[counter], memory_order_relaxed);
    return sum;
}

static void lock_arena(void) {
    pthread_mutex_lock(&lock);
}

static void unlock_arena(void) {
    pthread_mutex_unlock(&lock);
}

/* Adds the counts of a thread that is gone to the counts of ended threads. */
static void keep_counts(wg__thread_counters *counters) {
    for (int i = 0; i < WG__COUNTERS; i++) {
        counts_of_ended_threads[i] += counters->counts[i];
        counters->counts[i] = 0;
    }
}

/* Runs when a thread ends. Blocks that it frees afterwards go to the shared lists. */
static void end_thread(void *own) {
    wg__thread_counters *counters = own, **place = &listed_counters;
    lock_arena();
    share_own_lists();
    own_room = 0;
    while (*place != counters)
        place = &(*place)->next;
    *place = counters->next;
    keep_counts(counters);
    counters->is_listed = false;
    unlock_arena();
}

static pthread_key_t at_thread_exit;

/* The child of a fork has the calling thread alone. The counters of all other threads leave the
 * list, because new threads of the child may get their memory. */
static void begin_child(void) {
    for (wg__thread_counters *c = listed_counters; c; c = c->next)
        if (c != &wg__own_counters)
            keep_counts(c);
    wg__own_counters.next = NULL;
    listed_counters = wg__own_counters.is_listed ? &wg__own_counters : NULL;
    unlock_arena();
}

/* A fork waits for the lock, so that the child gets consistent lists and a free lock. */
static void begin_process(void) {
    pthread_key_create(&at_thread_exit, end_thread);
    pthread_atfork(lock_arena, unlock_arena, begin_child);
}

/* Locks, and lists the thread's counters at its first call. A thread's first block comes from the
 * shared lists, so every thread with blocks is listed. A block after end_thread lists the counters
 * again, and end_thread runs once more. */
static void enter(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static WG__THREAD_LOCAL bool begun;
    if (wg__own_counters.is_listed) {
        lock_arena();
        return;
    }
    pthread_once(&once, begin_process);
    pthread_setspecific(at_thread_exit, &wg__own_counters);
    own_room = begun ? 0 : OWN_ROOM;
    begun = true;
    lock_arena();
    wg__own_counters.next = listed_counters;
    wg__own_counters.is_listed = true;
    listed_counters = &wg__own_counters;
}

WG__NOINLINE static header *alloc_shared(size_t bytes) {
    if (bytes > (size_t)1 << 62)
        return NULL;
    enter();
    header *block = alloc_locked(bytes);
    if (!block) {
        trim_locked();
        block = alloc_locked(bytes);
    }
    peak_bytes = wg__larger(peak_bytes, lent_bytes - sum_locked(WG__COUNT_CACHED_BYTES));
    unlock_arena();
    return block;
}

WG__NOINLINE static void free_shared(header *block) {
    enter();
    free_locked(block);
    unlock_arena();
}

void *wg__try_alloc(size_t bytes) {
    int_fast64_t left = atomic_load_explicit(&failing_after, memory_order_relaxed);
    while (left > 0 && !atomic_compare_exchange_weak(&failing_after, &left, left - 1))
        continue;
    if (left == 0)
        return NULL;
    header *block = bytes <= OWN_BYTES ? own_lists[(bytes - (bytes > 0)) / UNIT] : NULL;
    if (block) {
        own_lists[block->size_class] = block->next;
        wg__counter_add(WG__COUNT_CACHED_BYTES, -(int64_t)block->size);
    } else if (!(block = alloc_shared(bytes)))
        return NULL;
    wg__counter_add(WG__COUNT_BLOCKS, 1);
    char *memory = (char *)block + HEADER;
    /* The padding stays poisoned, so that AddressSanitizer reports a read beyond the end. */
    ASAN_POISON_MEMORY_REGION(memory, block->size);
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
    return memory;
}

void wg__free(void *memory) {
    if (!memory)
        return;
    header *block = (header *)((char *)memory - HEADER);
    ASAN_POISON_MEMORY_REGION(memory, block->size);
    if (block->size <= OWN_BYTES &&
        wg__counter_own(WG__COUNT_CACHED_BYTES) + (int64_t)block->size <= own_room) {
        wg__counter_add(WG__COUNT_CACHED_BYTES, (int64_t)block->size);
        block->next = own_lists[block->size_class];
        own_lists[block->size_class] = block;
    } else
        free_shared(block);
    wg__counter_add(WG__COUNT_BLOCKS, -1);
}

void *wg__alloc(size_t bytes) {
    void *memory = wg__try_alloc(bytes);
    if (!memory)
        wg_fail(WG_ERROR_MEMORY, "alloc", "no memory for %zu bytes", bytes);
    return memory;
}

void wg__alloc_fail_after(int64_t n) {
    atomic_store(&failing_after, n < 0 ? -1 : n);
}

int64_t wg__counter_sum(wg__counter counter) {
    lock_arena();
    const int64_t sum = sum_locked(counter);
    unlock_arena();
    return sum;
}

wg_alloc_stats wg_alloc_get_stats(void) {
    lock_arena();
    const int64_t cached = sum_locked(WG__COUNT_CACHED_BYTES), live = lent_bytes - cached;
    peak_bytes = wg__larger(peak_bytes, live);
    wg_alloc_stats now = {.live_blocks = sum_locked(WG__COUNT_BLOCKS),
                          .live_bytes = live,
                          .peak_bytes = peak_bytes,
                          .cached_bytes = shared_bytes + cached,
                          .system_allocations = system_allocations};
    for (int64_t i = 0; i < arena.count; i++)
        now.cached_bytes += (int64_t)arena.pieces[i].held;
    unlock_arena();
    return now;
}

int64_t wg__memory_available(void) {
    lock_arena();
    const int64_t reserved = arena.end - arena.top;
    unlock_arena();
    const int64_t left = wg__memory_left(reserved);
    return left == INT64_MAX ? left : left + wg_alloc_get_stats().cached_bytes;
}

void wg__alloc_reset_peak(void) {
    lock_arena();
    peak_bytes = lent_bytes - sum_locked(WG__COUNT_CACHED_BYTES);
    unlock_arena();
}

void wg__alloc_trim(void) {
    lock_arena();
    trim_locked();
    unlock_arena();
}
