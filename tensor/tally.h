/* Counts of the whole process that change with every op. Each thread counts on its own, and waits
 * for no other: only who wants to know adds up what all have counted. */
#ifndef WG_TENSOR_TALLY_H
#define WG_TENSOR_TALLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tensor/thread_local.h"

typedef enum wg__tally_kind {
    WG__TALLY_TENSORS,     /* handles alive */
    WG__TALLY_BLOCKS,      /* of memory in use */
    WG__TALLY_SMALL_BYTES, /* of the small ones of them */
    WG__TALLY_COUNT
} wg__tally_kind;

/* One thread's. May be negative: what one thread takes another may give back. */
typedef struct wg__tally {
    atomic_int_fast64_t counts[WG__TALLY_COUNT]; /* written by the thread alone */
    struct wg__tally *next;                      /* of all threads that count */
    bool is_listed;
} wg__tally;

extern WG__THREAD_LOCAL wg__tally wg__own_tally;

void wg__tally_begin(void); /* lists this thread's */

static inline void wg__tally_add(wg__tally_kind kind, int64_t more) {
    if (!wg__own_tally.is_listed)
        wg__tally_begin();
    atomic_int_fast64_t *count = &wg__own_tally.counts[kind];
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

/* What all threads have counted so far, those that are gone as well. */
int64_t wg__tally_sum(wg__tally_kind kind);

#endif
