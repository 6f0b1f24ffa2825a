/* A profile of where time goes: spans of ops, forward and backward, and of regions (data,
 * optimizer, save), as a table and, on request, one by one. The option `--profile` of the
 * command prints the table; a program writes the spans to a file:
 *
 *     wg_profile_begin(true);
 *     ... train ...
 *     wg_profile_end();
 *     wg_trace_write("trace.json");      (io/trace.h)
 *
 * While no profile is taken, an op pays one branch. */
#ifndef WG_TENSOR_PROFILE_H
#define WG_TENSOR_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/api.h"

WG_BEGIN_DECLS

typedef enum wg_profile_kind {
    WG_PROFILE_FORWARD,
    WG_PROFILE_BACKWARD, /* with the sums of the gradients that the op passes on */
    WG_PROFILE_REGION
} wg_profile_kind;

/* All outermost spans with the same name and kind. They include the ops that an op calls. A
 * composite op has no span; its parts have. */
typedef struct wg_profile_row {
    const char *name;
    wg_profile_kind kind;
    int64_t calls;
    double seconds;
    double flops; /* of matrix products */
    double bytes; /* of operands and results, each once; 0 for views and regions */
} wg_profile_row;

enum { WG_PROFILE_SHAPES = 96 };

/* A span at any depth. */
typedef struct wg_profile_event {
    const char *name;
    wg_profile_kind kind;
    int thread;            /* numbered from 1 in the order of their first span */
    double start, seconds; /* since wg_profile_begin */
    double flops;
    char shapes[WG_PROFILE_SHAPES]; /* of an op's operands; may be cut off */
} wg_profile_event;

/* Starts a new profile. With `events` it also keeps the first million spans. -1 with [MEMORY] */
WG_API int wg_profile_begin(bool events);

/* Ends the profile. Its rows and events stay until the next wg_profile_begin. */
WG_API void wg_profile_end(void);

WG_END_DECLS

#endif
