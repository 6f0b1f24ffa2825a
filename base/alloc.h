/* The caching allocator under every tensor, handle and graph node.
 *
 * Blocks are 64-byte aligned. What is freed waits for what is asked for next, large blocks of any
 * size for others of any size, so that from the second training step on nothing is asked of the
 * system, and a process holds little more than it ever used at once. Thread safe. */
#ifndef WG_BASE_ALLOC_H
#define WG_BASE_ALLOC_H

#include <stdint.h>

#include "api.h"

WG_BEGIN_DECLS

typedef struct wg_alloc_stats {
    int64_t live_blocks;  /* blocks in use */
    int64_t live_bytes;   /* their size, rounded up: small ones to size classes */
    int64_t peak_bytes;   /* the largest live_bytes so far, but for 256 KiB a thread */
    int64_t cached_bytes; /* held for reuse, at most: what the system took back may be among it */
    int64_t system_allocations; /* how often what was cached would not do, ever */
} wg_alloc_stats;

/* The counters of the whole process, now. */
WG_API wg_alloc_stats wg_alloc_get_stats(void);

/* Gives all cached blocks back to the system, but for small ones, 256 KiB at most for each other
 * thread, which that thread keeps for itself until it ends. */
WG_API void wg_alloc_trim(void);

/* For tests: the allocation that follows n successful ones, and every one after it, fails with
 * WG_ERROR_MEMORY until the hook is reset by a negative n. Counts cached and fresh blocks alike. */
WG_API void wg_alloc_fail_after(int64_t n);

WG_END_DECLS

#endif
