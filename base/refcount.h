/* How many hold a thing that several share. */
#ifndef WG_BASE_REFCOUNT_H
#define WG_BASE_REFCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>

/* One more holds it; who asks holds it, or borrows from who does. */
static inline void wg__refcount_add(atomic_int *refcount) {
    atomic_fetch_add_explicit(refcount, 1, memory_order_relaxed);
}

static inline bool wg__refcount_is_one(atomic_int *refcount) {
    return atomic_load_explicit(refcount, memory_order_acquire) == 1;
}

/* One holder less: true says that it was the last, and the thing is to be freed. A sole holder, as
 * most are, need not count down: nobody else can reach the thing. */
static inline bool wg__refcount_drop(atomic_int *refcount) {
    return wg__refcount_is_one(refcount) ||
           atomic_fetch_sub_explicit(refcount, 1, memory_order_acq_rel) == 1;
}

#endif
