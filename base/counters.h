/* Counts of the whole process that change with every op. Each thread counts on its own, and waits
 * for no other: only who wants to know adds up what all have counted. */
#ifndef WG_BASE_COUNTERS_H
#define WG_BASE_COUNTERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread_local.h"

typedef enum wg__tally_kind {
    WG__TALLY_TENSORS, /* handles alive */
    WG__TALLY_BLOCKS,  /* of memory in use */
    WG__TALLY_WAITING, /* bytes that wait in the threads' own lists of free blocks */
    WG__TALLY_COUNT
} wg__tally_kind;

/* One thread's. May be negative: what one thread takes another may give back. */
typedef struct wg__tally {
    atomic_int_fast64_t counts[WG__TALLY_COUNT]; /* written by the thread alone */
    struct wg__tally *next;                      /* of all threads that count */
    bool is_listed;
} wg__tally;

extern WG__THREAD_LOCAL wg__tally wg__own_tally;

/* A thread counts between these: the allocator begins with its first block, and ends at its exit.
 */
void wg__tally_begin(void);
void wg__tally_end(void);

static inline bool wg__tally_is_begun(void) {
    return wg__own_tally.is_listed;
}

/* What this thread has counted. */
static inline int64_t wg__tally_own(wg__tally_kind kind) {
    return atomic_load_explicit(&wg__own_tally.counts[kind], memory_order_relaxed);
}

static inline void wg__tally_add(wg__tally_kind kind, int64_t more) {
    atomic_store_explicit(&wg__own_tally.counts[kind], wg__tally_own(kind) + more,
                          memory_order_relaxed);
}

/* What all threads have counted so far, those that are gone as well. */
int64_t wg__tally_sum(wg__tally_kind kind);

#endif
