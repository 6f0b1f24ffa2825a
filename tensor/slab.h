/* Stretches of memory on huge pages, of which the allocator cuts its larger blocks: a matrix that
 * is read once a token is then read at the speed of memory, not at that of page tables.
 *
 *     slab  | block | block | block |  not yet cut  |
 *
 * A block that was cut stays what it is; a slab goes when all of its blocks are idle. Under the
 * allocator's lock. */
#ifndef WG_TENSOR_SLAB_H
#define WG_TENSOR_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WG__HUGE_PAGE = 2 << 20 };

typedef struct wg__slab {
    struct wg__slab *next;
    char *memory;
    size_t cut;     /* bytes that belong to blocks */
    int64_t blocks; /* that were cut */
    int64_t idle;   /* of them, those that nobody uses: the allocator counts */
} wg__slab;

/* True of sizes that are cut of slabs. */
bool wg__slab_fits(size_t bytes);

/* A block of so many bytes, a multiple of 64 that fits, and where it is from; NULL if the system
 * gives no memory for another slab. */
void *wg__slab_cut(size_t bytes, wg__slab **from);

bool wg__slab_is_idle(const wg__slab *slab);

/* Gives the slabs back of which all blocks are idle. */
void wg__slab_free_idle(void);

/* Gives back the memory of the whole pages in here; the addresses stay, and read as zeros. */
void wg__slab_release_pages(char *begin, size_t bytes);

#endif
