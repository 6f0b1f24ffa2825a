/* Peaks of memory: see peak.h. */
#include "tests/support/peak.h"

#include <sys/resource.h>

#include "base/alloc.h"

/* The peak that is counted is of the whole process: brought to what is in use now, and then
 * measured. */
memory_peak peak_begin(void) {
    const wg_alloc_stats now = wg_alloc_get_stats();
    memory_peak peak;
    peak.ballast = wg_keep(wg_empty(WG_U8, WG_DIMS(now.peak_bytes - now.live_bytes + 1)));
    peak.before = wg_alloc_get_stats().live_bytes;
    return peak;
}

int64_t peak_end(const memory_peak *peak) {
    const int64_t bytes = wg_alloc_get_stats().peak_bytes - peak->before;
    wg_release(peak->ballast);
    return bytes;
}

int64_t peak_of_process(void) {
#if defined __SANITIZE_ADDRESS__
    return 0;
#else
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)usage.ru_maxrss * 1024;
#endif
}
