/* Arithmetic of counts. */
#ifndef WG_BASE_COUNTS_H
#define WG_BASE_COUNTS_H

#include <stdint.h>

static inline int64_t wg__smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t wg__larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* a / b, rounded up, of a >= 0 and b > 0. */
static inline int64_t wg__ceil_divide(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

#endif
