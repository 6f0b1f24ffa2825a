/* How much memory something takes at its peak. */
#ifndef WG_TESTS_PEAK_H
#define WG_TESTS_PEAK_H

#include "tests/support/testing.h"

typedef struct memory_peak {
    wg_tensor *ballast;
    int64_t before;
} memory_peak;

/* From here on, and so far: bytes of ours in use at the peak, above those at the begin. */
memory_peak peak_begin(void);
int64_t peak_end(const memory_peak *peak);

/* Bytes that the process had at its peak; 0 under AddressSanitizer, which has memory of its own. */
int64_t peak_of_process(void);

#endif
