/* --profile and --trace, of every verb that trains. */
#ifndef WG_CLI_PROFILE_H
#define WG_CLI_PROFILE_H

#include <stdbool.h>

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

/* Begins what is asked for, and makes the file, so that one that cannot be made is known before the
 * steps. -1 with an error. */
int wg__profiling_begin(const wg__profiling *profiling);

/* Ends it, prints the table and writes the file. -1 with an error. */
int wg__profiling_end(const wg__profiling *profiling);

#endif
