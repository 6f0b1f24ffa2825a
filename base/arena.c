/* Stretches of memory in which free pieces merge: see arena.h.
 *
 * Every piece begins with a tag that knows the neighbours:
 *
 *     | tag | memory of a block        | tag | free              | tag | memory ...
 *     ^ before                         ^ piece                   ^ piece + piece->size
 *
 * The free ones are in a treap (Seidel and Aragon 1996) by size, then address. */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/poison.h"

typedef struct stretch stretch;

typedef struct piece {
    size_t size;          /* with this tag, a multiple of 64 */
    struct piece *before; /* the neighbour at lower addresses; NULL: the stretch begins here */
    stretch *home;
    bool is_free;
    size_t held;           /* if free: so much of it has memory, at most */
    struct piece *smaller; /* if free: subtrees */
    struct piece *larger;
} piece;

struct stretch {
    char *begin, *top, *end; /* multiples of a huge page */
    piece *last;             /* the piece that ends at top; NULL: top is begin */
    stretch *next;
};

enum { TAG = 64, LEAST = 64 << 10, HUGE_PAGE = 2 << 20 };

/* Addresses cost nothing; where their number is limited, a stretch has as few as will do. */
static const size_t usual_stretch = (size_t)64 << 30;

#ifdef WG__POISONS
enum { RED_ZONE = 1024 }; /* behind each block, so that who reads past it does not read the next */
#else
enum { RED_ZONE = 0 };
#endif

_Static_assert(sizeof(piece) <= TAG, "a tag holds a piece");

static stretch *stretches;
static piece *free_pieces;
static size_t held;

static size_t round_up(size_t bytes, size_t step) {
    return (bytes + step - 1) / step * step;
}

/* ---- The free pieces ---- */

static bool comes_before(const piece *a, const piece *b) {
    return a->size != b->size ? a->size < b->size : (uintptr_t)a < (uintptr_t)b;
}

/* Of addresses, so that equal sets of pieces make equal trees. */
static uint64_t priority(const piece *p) {
    return (uint64_t)((uintptr_t)p / TAG) * 0x9e3779b97f4a7c15U;
}

/* The pieces of a tree that come before p, and the others. */
static void split_tree(piece *tree, const piece *p, piece **smaller, piece **larger) {
    while (tree) {
        if (comes_before(tree, p)) {
            *smaller = tree;
            smaller = &tree->larger;
            tree = tree->larger;
        } else {
            *larger = tree;
            larger = &tree->smaller;
            tree = tree->smaller;
        }
    }
    *smaller = *larger = NULL;
}

/* All of `smaller` comes before all of `larger`. */
static piece *join_trees(piece *smaller, piece *larger) {
    piece *tree = NULL, **place = &tree;
    while (smaller && larger) {
        if (priority(smaller) > priority(larger)) {
            *place = smaller;
            place = &smaller->larger;
            smaller = smaller->larger;
        } else {
            *place = larger;
            place = &larger->smaller;
            larger = larger->smaller;
        }
    }
    *place = smaller ? smaller : larger;
    return tree;
}

static void enter(piece *p) {
    piece **place = &free_pieces;
    while (*place && priority(*place) > priority(p))
        place = comes_before(*place, p) ? &(*place)->larger : &(*place)->smaller;
    split_tree(*place, p, &p->smaller, &p->larger);
    *place = p;
    p->is_free = true;
    held += p->held;
}

static void leave(piece *p) {
    piece **place = &free_pieces;
    while (*place != p)
        place = comes_before(*place, p) ? &(*place)->larger : &(*place)->smaller;
    *place = join_trees(p->smaller, p->larger);
    p->is_free = false;
    held -= p->held;
}

/* The smallest that has `size` bytes, or NULL. */
static piece *best_fit(size_t size) {
    piece *best = NULL;
    for (piece *p = free_pieces; p;) {
        if (p->size >= size)
            best = p;
        p = p->size >= size ? p->smaller : p->larger;
    }
    return best;
}

/* ---- Neighbours ---- */

static piece *after(const piece *p) {
    return p == p->home->last ? NULL : (piece *)((char *)p + p->size);
}

/* Makes one of a piece and the one after it; neither is in the tree. */
static void absorb(piece *p, piece *next) {
    p->size += next->size;
    p->held += next->held;
    if (p->home->last == next)
        p->home->last = p;
    else
        after(p)->before = p;
    ASAN_POISON_MEMORY_REGION(next, TAG);
}

static piece *make_piece(void *memory, size_t size, piece *before, stretch *home) {
    ASAN_UNPOISON_MEMORY_REGION(memory, TAG);
    piece *p = memory;
    *p = (piece){.size = size, .before = before, .home = home};
    return p;
}

/* Leaves `size` bytes to p and makes a free piece of the rest. */
static void cut(piece *p, size_t size) {
    if (p->size == size)
        return;
    piece *next = after(p), *rest = make_piece((char *)p + size, p->size - size, p, p->home);
    rest->held = p->held < rest->size ? p->held : rest->size;
    if (next)
        next->before = rest;
    else
        p->home->last = rest;
    p->size = size;
    enter(rest);
}

static piece *merge_with_neighbours(piece *p) {
    piece *next = after(p);
    if (next && next->is_free) {
        leave(next);
        absorb(p, next);
    }
    piece *before = p->before;
    if (!before || !before->is_free)
        return p;
    leave(before);
    absorb(before, p);
    return before;
}

/* ---- Stretches ---- */

/* Addresses without memory for a stretch of so many bytes. */
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
    madvise(begin, bytes, MADV_HUGEPAGE);
    __lsan_register_root_region(begin, bytes);
    *s = (stretch){.begin = begin, .top = begin, .end = begin + bytes, .next = stretches};
    stretches = s;
    return s;
}

static void give_up(stretch *s) {
    stretch **link = &stretches;
    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    __lsan_unregister_root_region(s->begin, (size_t)(s->end - s->begin));
    munmap(s->begin, (size_t)(s->end - s->begin));
    free(s);
}

/* Gives a stretch `bytes` more, a multiple of a huge page; a free piece at its top, or NULL. */
static piece *raise_top(stretch *s, size_t bytes) {
    if (mprotect(s->top, bytes, PROT_READ | PROT_WRITE) < 0)
        return NULL;
    ASAN_POISON_MEMORY_REGION(s->top, bytes);
    piece *p = make_piece(s->top, bytes, s->last, s);
    p->held = bytes;
    s->last = p;
    s->top += bytes;
    p = merge_with_neighbours(p);
    enter(p);
    return p;
}

/* A free piece of at least `size` bytes at the top of a stretch, or NULL. */
static piece *grow(size_t size) {
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

/* Takes away the memory of the free piece at the top. */
static void lower_top(stretch *s) {
    piece *last = s->last;
    char *const top = (char *)round_up((uintptr_t)last, HUGE_PAGE);
    const size_t bytes = (size_t)(s->top - top);
    if (bytes == 0 ||
        mmap(top, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return;
    madvise(top, bytes, MADV_HUGEPAGE);
    s->top = top;
    if ((char *)last > top - TAG)
        s->last = last->before;
    else
        last->size -= bytes;
}

/* ---- For the allocator ---- */

bool wg__arena_takes(size_t bytes) {
    return bytes >= LEAST;
}

void *wg__arena_alloc(size_t bytes, bool *asked) {
    const size_t size = TAG + round_up(bytes, 64) + RED_ZONE;
    piece *p = best_fit(size);
    *asked = !p || p->held < size;
    p = p ? p : grow(size);
    if (!p)
        return NULL;
    leave(p);
    cut(p, size);
    ASAN_UNPOISON_MEMORY_REGION((char *)p + TAG, bytes);
    return (char *)p + TAG;
}

void wg__arena_free(void *memory) {
    piece *p = (piece *)((char *)memory - TAG);
    ASAN_POISON_MEMORY_REGION(memory, p->size - TAG);
    p->held = p->size;
    enter(merge_with_neighbours(p));
}

/* The pages behind the tag of a free piece. */
static void release_pages(piece *p) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = (uintptr_t)p + p->size;
    const uintptr_t first = round_up((uintptr_t)p + TAG, page), last = end / page * page;
    if (p->held > 0 && first < last)
        madvise((void *)first, last - first, MADV_DONTNEED);
    held -= p->held;
    p->held = 0;
}

static piece *first_piece(const stretch *s) {
    return s->last ? (piece *)s->begin : NULL;
}

void wg__arena_trim(void) {
    stretch *next;
    for (stretch *s = stretches; s; s = next) {
        next = s->next;
        piece *last = s->last;
        if (last && last->is_free) {
            leave(last);
            if (last->before == NULL) { /* and there is no other */
                give_up(s);
                continue;
            }
            lower_top(s);
            if (s->last == last)
                enter(last);
        }
        for (piece *p = first_piece(s); p; p = after(p))
            if (p->is_free)
                release_pages(p);
    }
}

size_t wg__arena_held(void) {
    return held;
}
