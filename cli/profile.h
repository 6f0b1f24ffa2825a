/* --profile and --trace, of every verb that trains. */
#ifndef WG_CLI_PROFILE_H
#define WG_CLI_PROFILE_H

#include <stdbool.h>

typedef struct wg__profiling {
    bool table;        /* --profile */
    const char *trace; /* --trace FILE; NULL: none */
} wg__profiling;

/* Lines of an option table, keys WG__KEY_PROFILE and WG__KEY_TRACE of cli.h. */
#define WG__OPTIONS_PROFILE                                                                        \
    {"profile",                                                                                    \
     WG__KEY_PROFILE,                                                                              \
     NULL,                                                                                         \
     0,                                                                                            \
     "Tell in the end, on stderr, where the time of the steps went: by op, forward and backward, " \
     "beside sgemm's peak and the memory's bandwidth",                                             \
     0},                                                                                           \
    {                                                                                              \
        "trace", WG__KEY_TRACE, "FILE", 0,                                                         \
            "Write what ran when, up to a million ops, as JSON for chrome://tracing and Perfetto", \
            0                                                                                      \
    }

/* Begins what is asked for, and makes the file, so that one that cannot be made is known before the
 * steps. -1 with an error. */
int wg__profiling_begin(const wg__profiling *profiling);

/* Ends it, prints the table and writes the file. -1 with an error. */
int wg__profiling_end(const wg__profiling *profiling);

#endif
