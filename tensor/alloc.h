/* The caching allocator under every tensor, handle and graph node.
 *
 * Blocks are 64-byte aligned and come back to a list of their size class when freed, so that from
 * the second training step on nothing is asked of the system. Thread safe. */
#ifndef WG_TENSOR_ALLOC_H
#define WG_TENSOR_ALLOC_H

#include <stdint.h>

#include "api.h"

typedef struct wg_alloc_stats {
    int64_t live_blocks;        /* blocks in use */
    int64_t live_bytes;         /* their size, rounded up to size classes */
    int64_t peak_bytes;         /* the largest live_bytes so far */
    int64_t cached_bytes;       /* held for reuse */
    int64_t system_allocations; /* how often no cached block would do, ever */
} wg_alloc_stats;

/* The counters of the whole process, now. */
WG_API wg_alloc_stats wg_alloc_get_stats(void);

/* Gives all cached blocks back to the system. */
WG_API void wg_alloc_trim(void);

/* For tests: the allocation that follows n successful ones, and every one after it, fails with
 * WG_ERROR_MEMORY until the hook is reset by a negative n. Counts cached and fresh blocks alike. */
WG_API void wg_alloc_fail_after(int64_t n);

#endif
