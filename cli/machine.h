/* Medians, and the speed of the machine. */
#ifndef WG_CLI_MACHINE_H
#define WG_CLI_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/internal.h"
#include "tensor/dtype.h"

/* The median of the figures, which are sorted. */
double wg__median(int64_t count, double *figures);

/* The best speed of the machine on the library's number of threads. */
typedef struct wg__machine {
    int threads;
    double bandwidth;   /* bytes a second that memcpy reads and writes, from and to memory */
    double sgemm_flops; /* floating-point operations a second of large f32 matrix products */
} wg__machine;

/* Measures them, in about two seconds. -1 with an error. */
int wg__measure_machine(wg__machine *machine);

/* sgemm alone: the median over runs, of the shape that does best. -1 with an error. */
int wg__measure_sgemm(double *flops);

/* The median time in seconds of an f32 product (M, K) x (K, N), computed in f32 or bf16. With
 * `transposed`, B is stored as (N, K). -1 with an error. */
double wg__time_product(int64_t m, int64_t n, int64_t k, bool transposed, wg_dtype dtype);

/* Reads a buffer that is larger than the caches, on huge pages, by the library's number of threads.
 * Benches measure its rate between their runs, because other programs make memory slower at times.
 * NULL with an error. */
typedef struct wg__reader wg__reader;
wg__reader *wg__reader_new(void);

/* Bytes a second, now: the better of two passes. */
double wg__reader_rate(wg__reader *reader);

/* NULL is allowed. */
void wg__reader_free(wg__reader *reader);

/* Evicts everything from the caches by writing to 96 MiB. -1 with an error. */
int wg__evict_caches(void);

/* ---- --profile and --trace, of every verb that trains ---- */

typedef struct wg__profiling {
    bool table;        /* --profile */
    const char *trace; /* --trace FILE; NULL: none */
} wg__profiling;

/* Rows of a struct that has the member `profiling`. */
#define WG__ROWS_PROFILE(type)                                                                     \
    {"profile", WG_SETTING_FLAG, offsetof(type, profiling.table),                                  \
     .help = "Tell in the end, on stderr, where the time of the steps went: by op, forward and "   \
             "backward, beside sgemm's peak and the memory's bandwidth"},                          \
    {                                                                                              \
        "trace", WG_SETTING_TEXT, offsetof(type, profiling.trace),                                 \
            .argument = "FILE",                                                                    \
            .help = "Write what ran when, up to a million ops, as JSON for chrome://tracing and "  \
                    "Perfetto"                                                                     \
    }

/* Begins profiling, and makes the file, so that a path that cannot be written fails before the
 * steps. -1 with an error. */
int wg__profiling_begin(const wg__profiling *profiling);

/* Ends it, prints the table and writes the file. -1 with an error. */
int wg__profiling_end(const wg__profiling *profiling);

#endif
