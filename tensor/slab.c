/* Stretches of memory on huge pages: see slab.h. */
#include "tensor/slab.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Smaller blocks are not worth it, of larger ones a slab would hold too few. */
enum { LEAST = 64 << 10, MOST = 16 << 20, SLAB = 64 << 20 };

static wg__slab *slabs;

bool wg__slab_fits(size_t bytes) {
    return bytes >= LEAST && bytes <= MOST;
}

static wg__slab *slab_new(void) {
    wg__slab *slab = calloc(1, sizeof *slab);
    if (!slab)
        return NULL;
    slab->memory = aligned_alloc(WG__HUGE_PAGE, SLAB);
    if (!slab->memory) {
        free(slab);
        return NULL;
    }
    madvise(slab->memory, SLAB, MADV_HUGEPAGE);
    slab->next = slabs;
    slabs = slab;
    return slab;
}

void *wg__slab_cut(size_t bytes, wg__slab **from) {
    wg__slab *slab = slabs;
    while (slab && SLAB - slab->cut < bytes)
        slab = slab->next;
    if (!slab)
        slab = slab_new();
    if (!slab)
        return NULL;
    void *block = slab->memory + slab->cut;
    slab->cut += bytes;
    slab->blocks++;
    *from = slab;
    return block;
}

bool wg__slab_is_idle(const wg__slab *slab) {
    return slab->idle == slab->blocks;
}

void wg__slab_free_idle(void) {
    for (wg__slab **link = &slabs; *link;) {
        wg__slab *slab = *link;
        if (!wg__slab_is_idle(slab)) {
            link = &slab->next;
            continue;
        }
        *link = slab->next;
        free(slab->memory);
        free(slab);
    }
}

void wg__slab_release_pages(char *begin, size_t bytes) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)begin + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)begin + bytes) / page * page;
    if (first < end)
        madvise((void *)first, end - first, MADV_DONTNEED);
}
