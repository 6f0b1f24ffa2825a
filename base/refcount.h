/* How many hold a thing that several share. */
#ifndef WG_BASE_REFCOUNT_H
#define WG_BASE_REFCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>

/* One more holds it; who asks holds it, or borrows from who does. */
static inline void wg__hold(atomic_int *references) {
    atomic_fetch_add_explicit(references, 1, memory_order_relaxed);
}

static inline bool wg__is_sole_holder(atomic_int *references) {
    return atomic_load_explicit(references, memory_order_acquire) == 1;
}

/* One holder less: true says that it was the last, and the thing is to be freed. A sole holder, as
 * most are, need not count down: nobody else can reach the thing. */
static inline bool wg__let_go(atomic_int *references) {
    return wg__is_sole_holder(references) ||
           atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}

#endif
