/* The caching allocator under every tensor, handle and graph node.
 *
 * Blocks are 64-byte aligned. Freed blocks are kept for later requests; free space among large
 * blocks is merged and split. From the second training step on, no memory is requested from the
 * system, and a process holds little more than its peak use. Thread safe. */
#ifndef WG_BASE_ALLOC_H
#define WG_BASE_ALLOC_H

#include <stdint.h>

#include "api.h"

WG_BEGIN_DECLS

typedef struct wg_alloc_stats {
    int64_t live_blocks;  /* blocks in use */
    int64_t live_bytes;   /* their size; small blocks count as their size class */
    int64_t peak_bytes;   /* the largest live_bytes so far, up to 256 KiB a thread too low */
    int64_t cached_bytes; /* free blocks, including pages that the system may have taken back */
    int64_t system_allocations; /* requests so far that the cache did not serve */
} wg_alloc_stats;

/* The statistics of the whole process. */
WG_API wg_alloc_stats wg_alloc_get_stats(void);

/* A copy of a text for user functions that return one to the library (wg_objective.config). Freed
 * with wg_text_free. NULL with [MEMORY], or for NULL */
WG_API char *wg_text_new(const char *text);

/* Frees a string that a function of the library returned; NULL is allowed. */
WG_API void wg_text_free(char *text);

WG_END_DECLS

#endif
