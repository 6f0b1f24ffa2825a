/* The memory under the allocator's larger blocks: cut to measure and merged again, so that what a
 * process holds stays close to what is in use, and on huge pages, on which a matrix that is read
 * once a token is read at the speed of memory and not at that of page tables.
 *
 *     stretch  | block | free | block | block | free |  addresses without memory  |
 *              begin                                 top                         end
 *
 * No two free pieces are neighbours. A block comes out of the smallest free piece that it fits, the
 * first such in memory: what is free decides, not its history, so the steps of a training, which
 * are alike, find their blocks where those of the step before were. Under the allocator's lock. */
#ifndef WG_BASE_ARENA_H
#define WG_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

/* True of sizes that are worth it. */
bool wg__arena_takes(size_t bytes);

/* A block of so many bytes, 64-byte aligned, and whether the system had to give memory for it; NULL
 * if it gives none. */
void *wg__arena_alloc(size_t bytes, bool *asked);

void wg__arena_free(void *memory);

/* Gives the memory of what is free back to the system. */
void wg__arena_trim(void);

/* Bytes that are free and have memory. */
size_t wg__arena_held(void);

#endif
