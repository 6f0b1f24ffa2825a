/* The caching allocator.
 *
 *     [ header, 64 bytes | block, a multiple of 64 bytes ]
 *
 * Small blocks: sizes are rounded up to size classes, four to a power of two, and each class has
 * lists of free blocks. The smallest classes also have a list per thread, which takes no lock.
 *
 * Large blocks, nearly all of the memory, come from the arena, which splits free space to size and
 * merges neighbours:
 *
 *     stretch  | block | free | block | block | free |  addresses without memory  |
 *              begin                                 top                         end
 *
 *     piece    | tag | memory of a block        | tag | free              | tag | memory ...
 *              ^ before                         ^ piece                   ^ piece + piece->size
 *
 * A piece begins with a tag that knows its neighbours; no two free pieces are neighbours. A block
 * is cut from the lowest free piece that fits, so that training steps, which are alike, find their
 * blocks at the same addresses. Free pieces are in a treap (Seidel and Aragon 1996) ordered by
 * address, each with the largest size below it. Stretches ask for huge pages, so that memory
 * bandwidth and not TLB misses limits reading a matrix once for each token.
 *
 * Mixed precision frees f32 tensors and allocates bf16 ones of as many elements in their place.
 * What a piece holds beside its block is therefore in proportion to it, so that two halves fit. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/internal.h"
#include "base/system.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the arena and shared lists */

/* ---- Counters ---- */

WG__THREAD_LOCAL wg__thread_counters wg__own_counters;

static pthread_mutex_t counters_lock = PTHREAD_MUTEX_INITIALIZER;
static wg__thread_counters *listed_counters;
static int64_t counts_of_ended_threads[WG__COUNTERS];

static void prepare_for_fork(void);

static void list_counters(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare_for_fork);
    pthread_mutex_lock(&counters_lock);
    wg__own_counters.next = listed_counters;
    wg__own_counters.is_listed = true;
    listed_counters = &wg__own_counters;
    pthread_mutex_unlock(&counters_lock);
}

static void unlist_counters(void) {
    wg__thread_counters *own = &wg__own_counters;
    pthread_mutex_lock(&counters_lock);
    wg__thread_counters **place = &listed_counters;
    while (*place != own)
        place = &(*place)->next;
    *place = own->next;
    for (int i = 0; i < WG__COUNTERS; i++) {
        counts_of_ended_threads[i] += own->counts[i];
        own->counts[i] = 0;
    }
    own->is_listed = false;
    pthread_mutex_unlock(&counters_lock);
}

int64_t wg__counter_sum(wg__counter counter) {
    pthread_mutex_lock(&counters_lock);
    int64_t sum = counts_of_ended_threads[counter];
    for (const wg__thread_counters *c = listed_counters; c; c = c->next)
        sum += atomic_load_explicit(&c->counts[counter], memory_order_relaxed);
    pthread_mutex_unlock(&counters_lock);
    return sum;
}

typedef struct stretch stretch;

typedef struct piece {
    size_t size;          /* including this tag; a multiple of 64 */
    struct piece *before; /* the neighbour at lower addresses; NULL: the stretch begins here */
    stretch *home;
    bool is_free;
    size_t held;         /* if free: bytes with memory, an upper bound */
    size_t largest;      /* if free: the largest size in the tree below it, its own included */
    struct piece *lower; /* if free: subtrees */
    struct piece *higher;
} piece;

struct stretch {
    char *begin, *top, *end; /* multiples of a huge page */
    piece *last;             /* the piece that ends at top; NULL: top is begin */
    stretch *next;
};

enum { TAG = 64, HEADER = 64, LEAST_LARGE = 64 << 10, HUGE_PAGE = 2 << 20 };

/* Bytes that a stretch reserves: address space without memory costs nothing. Where it is limited, a
 * stretch is only as long as the request. */
static const size_t usual_stretch = (size_t)64 << 30;

#ifdef WG__POISONS
enum { RED_ZONE = 1024 }; /* behind each block, so that an overrun does not reach the next one */
#else
enum { RED_ZONE = 0 };
#endif

_Static_assert(sizeof(piece) <= TAG, "a tag holds a piece");

static stretch *stretches;
static piece *free_pieces;
static size_t free_held; /* bytes of free pieces that have memory */

static size_t round_up(size_t bytes, size_t step) {
    return (bytes + step - 1) / step * step;
}

/* ---- The arena: free pieces ---- */

/* The treap's priority depends on the address alone, so that equal sets of pieces make equal
 * trees. */
static uint64_t priority(const piece *p) {
    return (uint64_t)((uintptr_t)p / TAG) * 0x9e3779b97f4a7c15U;
}

static size_t largest_of(const piece *tree) {
    return tree ? tree->largest : 0;
}

static piece *with_subtrees(piece *p, piece *lower, piece *higher) {
    const size_t below = largest_of(lower), above = largest_of(higher);
    const size_t most = below > above ? below : above;
    p->lower = lower;
    p->higher = higher;
    p->largest = p->size > most ? p->size : most;
    return p;
}

static bool is_below(const piece *a, const piece *b) {
    return (uintptr_t)a < (uintptr_t)b;
}

/* NOLINTBEGIN(misc-no-recursion): at most as deep as the tree, which is about 2 ln n for n pieces,
 * 28 for a million. */

/* Splits a tree into the pieces below p and those above it. */
static void split_tree(piece *tree, const piece *p, piece **below, piece **above) {
    piece *middle;
    if (!tree) {
        *below = *above = NULL;
    } else if (is_below(tree, p)) {
        split_tree(tree->higher, p, &middle, above);
        *below = with_subtrees(tree, tree->lower, middle);
    } else {
        split_tree(tree->lower, p, below, &middle);
        *above = with_subtrees(tree, middle, tree->higher);
    }
}

/* All pieces of `below` are below those of `above`. */
static piece *join_trees(piece *below, piece *above) {
    if (!below || !above)
        return below ? below : above;
    if (priority(below) > priority(above))
        return with_subtrees(below, below->lower, join_trees(below->higher, above));
    return with_subtrees(above, join_trees(below, above->lower), above->higher);
}

static piece *tree_with(piece *tree, piece *p) {
    piece *below, *above;
    if (!tree || priority(tree) <= priority(p)) {
        split_tree(tree, p, &below, &above);
        return with_subtrees(p, below, above);
    }
    if (is_below(p, tree))
        return with_subtrees(tree, tree_with(tree->lower, p), tree->higher);
    return with_subtrees(tree, tree->lower, tree_with(tree->higher, p));
}

static piece *tree_without(piece *tree, const piece *p) {
    assert(tree); /* which holds p */
    if (tree == p)
        return join_trees(tree->lower, tree->higher);
    if (is_below(p, tree))
        return with_subtrees(tree, tree_without(tree->lower, p), tree->higher);
    return with_subtrees(tree, tree->lower, tree_without(tree->higher, p));
}

/* NOLINTEND(misc-no-recursion) */

static void insert_free(piece *p) {
    free_pieces = tree_with(free_pieces, p);
    p->is_free = true;
    free_held += p->held;
}

static void remove_free(piece *p) {
    free_pieces = tree_without(free_pieces, p);
    p->is_free = false;
    free_held -= p->held;
}

/* The lowest free piece of at least `size` bytes, or NULL. */
static piece *first_fit(size_t size) {
    piece *p = free_pieces;
    if (largest_of(p) < size)
        return NULL;
    while (largest_of(p->lower) >= size || p->size < size)
        p = largest_of(p->lower) >= size ? p->lower : p->higher;
    return p;
}

/* ---- The arena: neighbours ---- */

static piece *piece_after(const piece *p) {
    return p == p->home->last ? NULL : (piece *)((char *)p + p->size);
}

/* Joins a piece and the one after it; neither is in the tree. */
static void join_pieces(piece *p, piece *next) {
    p->size += next->size;
    p->held += next->held;
    if (p->home->last == next)
        p->home->last = p;
    else
        piece_after(p)->before = p;
    ASAN_POISON_MEMORY_REGION(next, TAG);
}

static piece *make_piece(void *memory, size_t size, piece *before, stretch *home) {
    ASAN_UNPOISON_MEMORY_REGION(memory, TAG);
    piece *p = memory;
    *p = (piece){.size = size, .before = before, .home = home};
    return p;
}

/* Shortens p to `size` bytes and makes a free piece of the rest. */
static void split_piece(piece *p, size_t size) {
    if (p->size == size)
        return;
    piece *next = piece_after(p), *rest = make_piece((char *)p + size, p->size - size, p, p->home);
    rest->held = p->held < rest->size ? p->held : rest->size;
    if (next)
        next->before = rest;
    else
        p->home->last = rest;
    p->size = size;
    insert_free(rest);
}

static piece *merge_with_neighbours(piece *p) {
    piece *next = piece_after(p);
    if (next && next->is_free) {
        remove_free(next);
        join_pieces(p, next);
    }
    piece *before = p->before;
    if (!before || !before->is_free)
        return p;
    remove_free(before);
    join_pieces(before, p);
    return before;
}

/* ---- The arena: stretches ---- */

/* Reserves addresses without memory for a stretch of that many bytes. */
static stretch *reserve(size_t bytes) {
    stretch *s = calloc(1, sizeof *s);
    void *memory = s ? mmap(NULL, bytes + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                     : MAP_FAILED;
    if (memory == MAP_FAILED) {
        free(s);
        return NULL;
    }
    char *begin = (char *)round_up((uintptr_t)memory, HUGE_PAGE);
    if (begin > (char *)memory)
        munmap(memory, (size_t)(begin - (char *)memory));
    munmap(begin + bytes, (size_t)((char *)memory + HUGE_PAGE - begin));
    wg__prefer_huge_pages(begin, bytes);
    __lsan_register_root_region(begin, bytes);
    *s = (stretch){.begin = begin, .top = begin, .end = begin + bytes, .next = stretches};
    stretches = s;
    return s;
}

static void unmap_stretch(stretch *s) {
    stretch **link = &stretches;
    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    __lsan_unregister_root_region(s->begin, (size_t)(s->end - s->begin));
    munmap(s->begin, (size_t)(s->end - s->begin));
    free(s);
}

/* Gives a stretch `bytes` more memory, a multiple of a huge page. Returns the free piece at its
 * top, or NULL. */
static piece *raise_top(stretch *s, size_t bytes) {
    if (mprotect(s->top, bytes, PROT_READ | PROT_WRITE) < 0)
        return NULL;
    ASAN_POISON_MEMORY_REGION(s->top, bytes);
    piece *p = make_piece(s->top, bytes, s->last, s);
    p->held = bytes;
    s->last = p;
    s->top += bytes;
    p = merge_with_neighbours(p);
    insert_free(p);
    return p;
}

/* Makes a free piece of at least `size` bytes at the top of a stretch; NULL if out of memory. */
static piece *grow_arena(size_t size) {
    for (stretch *s = stretches; s; s = s->next) {
        const size_t there = s->last && s->last->is_free ? s->last->size : 0;
        const size_t lacking = round_up(size - there, HUGE_PAGE);
        if ((size_t)(s->end - s->top) >= lacking)
            return raise_top(s, lacking);
    }
    const size_t bytes = round_up(size, HUGE_PAGE);
    stretch *s = bytes < usual_stretch ? reserve(usual_stretch) : NULL;
    s = s ? s : reserve(bytes);
    return s ? raise_top(s, bytes) : NULL;
}

/* Returns the memory of the free piece at the top to the system. */
static void lower_top(stretch *s) {
    piece *last = s->last;
    char *const top = (char *)round_up((uintptr_t)last, HUGE_PAGE);
    const size_t bytes = (size_t)(s->top - top);
    if (bytes == 0 ||
        mmap(top, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return;
    wg__prefer_huge_pages(top, bytes);
    s->top = top;
    if ((char *)last > top - TAG)
        s->last = last->before;
    else
        last->size -= bytes;
}

/* ---- The arena: blocks ---- */

/* The size of a piece for a block of that many bytes, which have a header before them. What is
 * added doubles where the bytes do: a thousandth of them or two, and a hundredth with red zones. */
static size_t piece_size(size_t bytes) {
    size_t times = 1;
    while (times * 2 * LEAST_LARGE <= bytes)
        times *= 2;
    return times * (TAG + HEADER + RED_ZONE) + round_up(bytes, 64);
}

/* A block of that many bytes behind room for its header, 64-byte aligned; NULL if out of memory.
 * `asked` receives whether the system had to supply memory. */
static void *arena_alloc(size_t bytes, bool *asked) {
    const size_t size = piece_size(bytes);
    piece *p = first_fit(size);
    *asked = !p || p->held < size;
    p = p ? p : grow_arena(size);
    if (!p)
        return NULL;
    remove_free(p);
    split_piece(p, size);
    ASAN_UNPOISON_MEMORY_REGION((char *)p + TAG, HEADER + bytes);
    return (char *)p + TAG;
}

static void arena_free(void *memory) {
    piece *p = (piece *)((char *)memory - TAG);
    ASAN_POISON_MEMORY_REGION(memory, p->size - TAG);
    p->held = p->size;
    insert_free(merge_with_neighbours(p));
}

/* Returns the whole pages of a free piece, except for its tag, to the system. */
static void release_pages(piece *p) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = (uintptr_t)p + p->size;
    const uintptr_t first = round_up((uintptr_t)p + TAG, page), last = end / page * page;
    if (p->held > 0 && first < last)
        wg__release_pages((void *)first, last - first);
    free_held -= p->held;
    p->held = 0;
}

/* Returns the memory of all free pieces to the system. */
static void arena_trim(void) {
    stretch *next;
    for (stretch *s = stretches; s; s = next) {
        next = s->next;
        piece *last = s->last;
        if (last && last->is_free) {
            remove_free(last);
            if (last->before == NULL) { /* the only piece */
                unmap_stretch(s);
                continue;
            }
            lower_top(s);
            if (s->last == last)
                insert_free(last);
        }
        for (piece *p = s->last ? (piece *)s->begin : NULL; p; p = piece_after(p))
            if (p->is_free)
                release_pages(p);
    }
}

/* ---- Small blocks: size classes ---- */

enum { CLASSES = 256, OF_ARENA = -1 };

/* A thread keeps free blocks of up to 2^11 bytes, such as handles and nodes, in lists of its own.
 */
enum { OWN_UNIT = 64, OWN_CLASSES = 32, OWN_BYTES = OWN_CLASSES * OWN_UNIT, OWN_ROOM = 1 << 18 };

typedef struct header {
    size_t size;         /* of the block, rounded up to its class */
    struct header *next; /* in the free list of its class */
    int size_class;      /* or OF_ARENA */
} header;

/* This thread's free lists, and how many bytes they may hold: 0 until begin_own. */
static WG__THREAD_LOCAL header *own_lists[OWN_CLASSES];
static WG__THREAD_LOCAL int64_t own_room;

/* Guarded by `lock`. */
static header *free_lists[CLASSES];
static int64_t lent_bytes;   /* small blocks that are in use or in the lists of threads */
static int64_t shared_bytes; /* small blocks in free_lists */
static int64_t large_bytes, peak_bytes, system_allocations;

static atomic_int_fast64_t failing_after = -1;

/* The class of a size up to OWN_BYTES: 64, 128, 192... */
static inline int own_class_of(size_t bytes) {
    return bytes == 0 ? 0 : (int)((bytes - 1) / OWN_UNIT);
}

/* The class of any size. Above OWN_BYTES there are four classes to a power of two: 2560, 3072,
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

/* ---- Small blocks: the lists of one thread ---- */

static header *take_own(size_t bytes) {
    header **list = &own_lists[own_class_of(bytes)];
    header *block = *list;
    if (block) {
        *list = block->next;
        wg__counter_add(WG__COUNT_CACHED_BYTES, -(int64_t)block->size);
    }
    return block;
}

static bool keep_own(header *block) {
    if (wg__counter_own(WG__COUNT_CACHED_BYTES) + (int64_t)block->size > own_room)
        return false;
    wg__counter_add(WG__COUNT_CACHED_BYTES, (int64_t)block->size);
    block->next = own_lists[block->size_class];
    own_lists[block->size_class] = block;
    return true;
}

/* Puts a small block into the list of its class that all threads share. */
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
            wg__counter_add(WG__COUNT_CACHED_BYTES, -(int64_t)block->size);
            share_locked(block);
        }
}

static pthread_key_t at_thread_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Runs when the thread ends. Blocks that it frees afterwards go to the shared lists. */
static void end_own(void *context) {
    (void)context;
    pthread_mutex_lock(&lock);
    share_own_locked();
    own_room = 0;
    pthread_mutex_unlock(&lock);
    unlist_counters();
}

static void make_key(void) {
    pthread_key_create(&at_thread_exit, end_own);
}

/* Registers the thread. Called on every use of the shared lists, from which a thread's first block
 * always comes. A call after end_own makes end_own run once more. */
static void begin_own(void) {
    static WG__THREAD_LOCAL bool begun;
    if (wg__own_counters.is_listed)
        return;
    list_counters();
    pthread_once(&once, make_key);
    pthread_setspecific(at_thread_exit, own_lists);
    if (!begun)
        own_room = OWN_ROOM;
    begun = true;
}

/* ---- Blocks that all threads share ---- */

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
    arena_trim();
}

/* A block of that class, cached or new; NULL if out of memory. */
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
    header *block =
        size_class == OF_ARENA ? arena_alloc(size, &asked) : take_small(size_class, size, &asked);
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
    const int size_class = HEADER + size >= LEAST_LARGE ? OF_ARENA : class_of(bytes, &size);
    header *block = take_of_size(size_class, size);
    if (block)
        return block;
    trim_locked();
    return take_of_size(size_class, size);
}

static int64_t live_bytes_locked(void) {
    return large_bytes + lent_bytes - wg__counter_sum(WG__COUNT_CACHED_BYTES);
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
        arena_free(block);
    } else {
        share_locked(block);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- fork: the child gets both locks free, and lists that nobody is in the midst of changing ----
 */

static void take_locks(void) {
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&counters_lock);
}

static void give_locks(void) {
    pthread_mutex_unlock(&counters_lock);
    pthread_mutex_unlock(&lock);
}

static void prepare_for_fork(void) {
    pthread_atfork(take_locks, give_locks, give_locks);
}

/* ---- The functions of internal.h and alloc.h ---- */

/* Counts down the failure hook; true if this allocation must fail. */
static bool must_fail(void) {
    int_fast64_t left = atomic_load_explicit(&failing_after, memory_order_relaxed);
    while (left > 0 && !atomic_compare_exchange_weak(&failing_after, &left, left - 1))
        continue;
    return left == 0;
}

static header *take(size_t bytes) {
    if (must_fail())
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
    wg__counter_add(WG__COUNT_BLOCKS, 1);
    char *memory = (char *)block + HEADER;
    /* The padding stays poisoned, so that AddressSanitizer reports a read beyond the end. */
    ASAN_POISON_MEMORY_REGION(memory, block->size);
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
    return memory;
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

void *wg__try_alloc_array(int64_t count, size_t element_size) {
    size_t bytes;
    if (count < 0 || __builtin_mul_overflow((size_t)count, element_size, &bytes))
        return NULL;
    return wg__try_alloc(bytes);
}

void *wg__alloc_array(int64_t count, size_t element_size) {
    size_t bytes;
    if (count < 0 || __builtin_mul_overflow((size_t)count, element_size, &bytes)) {
        wg_fail(WG_ERROR_MEMORY, "alloc", "no memory for %lld times %zu bytes", (long long)count,
                element_size);
        return NULL;
    }
    return wg__alloc(bytes);
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
    wg__counter_add(WG__COUNT_BLOCKS, -1);
}

char *wg_text_new(const char *text) {
    return text ? wg__strdup(text) : NULL;
}

void wg_text_free(char *text) {
    wg__free(text);
}

wg_alloc_stats wg_alloc_get_stats(void) {
    pthread_mutex_lock(&lock);
    note_peak_locked();
    const int64_t waiting = shared_bytes + wg__counter_sum(WG__COUNT_CACHED_BYTES);
    const wg_alloc_stats now = {.live_blocks = wg__counter_sum(WG__COUNT_BLOCKS),
                                .live_bytes = live_bytes_locked(),
                                .peak_bytes = peak_bytes,
                                .cached_bytes = waiting + (int64_t)free_held,
                                .system_allocations = system_allocations};
    pthread_mutex_unlock(&lock);
    return now;
}

int64_t wg_memory_available(void) {
    int64_t reserved = 0;
    pthread_mutex_lock(&lock);
    for (const stretch *s = stretches; s; s = s->next)
        reserved += s->end - s->top;
    pthread_mutex_unlock(&lock);
    const int64_t left = wg__memory_left(reserved);
    return left == INT64_MAX ? left : left + wg_alloc_get_stats().cached_bytes;
}

void wg_alloc_reset_peak(void) {
    pthread_mutex_lock(&lock);
    peak_bytes = live_bytes_locked();
    pthread_mutex_unlock(&lock);
}

void wg_alloc_trim(void) {
    pthread_mutex_lock(&lock);
    trim_locked();
    pthread_mutex_unlock(&lock);
}

void wg__alloc_fail_after(int64_t n) {
    atomic_store(&failing_after, n < 0 ? -1 : n);
}

bool wg__malloc_has(size_t bytes) {
    void *volatile block = malloc(bytes); /* clang leaves out a block that nobody reads */
    if (!block) {
        wg_alloc_trim();
        block = malloc(bytes);
    }
    const bool has = block != NULL;
    free(block);
    return has;
}
