/* Where time goes: spans of ops, forward and backward, and of regions beside them (data, optimizer,
 * save), told as a table and, if wanted, one by one.
 *
 *     wg_profile_begin(false);
 *     ... train ...
 *     wg_profile_end();
 *     for (int i = 0; i < wg_profile_rows(); i++)
 *         ... wg_profile_row_at(i) ...
 *     wg_profile_free();
 *
 * While none is taken an op pays for it by one branch. */
#ifndef WG_TENSOR_PROFILE_H
#define WG_TENSOR_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/api.h"

WG_BEGIN_DECLS

/* Floating-point operations, two a multiply-add, of all the matrix products of f32 and f64 that
 * this thread asked for so far. Attention counts all queries by all keys, also where a mask saves
 * it some, and what a backward pass computes again counts for nothing: forward and twice as much
 * backward, as papers count it. */
WG_API double wg_product_flops(void);

typedef enum wg_profile_kind {
    WG_PROFILE_FORWARD,
    WG_PROFILE_BACKWARD, /* with adding up the gradients that it hands on */
    WG_PROFILE_REGION
} wg_profile_kind;

/* "forward", "backward" or "region". */
WG_API const char *wg_profile_kind_name(wg_profile_kind kind);

/* All outermost spans of one name and kind. What ops call in passing is part of them; a composite
 * op has no span, those that it is made of have. */
typedef struct wg_profile_row {
    const char *name;
    wg_profile_kind kind;
    int64_t calls;
    double seconds;
    double flops; /* of matrix products */
    double bytes; /* of operands and results, each once; 0 for views and regions */
} wg_profile_row;

enum { WG_PROFILE_SHAPES = 96 };

/* One span, of whatever depth. */
typedef struct wg_profile_event {
    const char *name;
    wg_profile_kind kind;
    int thread;            /* counted from 1 as they come */
    double start, seconds; /* since wg_profile_begin */
    double flops;
    char shapes[WG_PROFILE_SHAPES]; /* of an op's operands; may be cut off */
} wg_profile_event;

/* Begins anew. `events` keeps the first million of spans, too. -1 with [MEMORY] */
WG_API int wg_profile_begin(bool events);

/* Ends it; what was found stays until it is freed or the next one begins. */
WG_API void wg_profile_end(void);

/* Ends it, too, and frees what was found: rows and events are no more. */
WG_API void wg_profile_free(void);

/* Seconds from begin to end. */
WG_API double wg_profile_seconds(void);

/* How many rows there are, after the end. */
WG_API int wg_profile_rows(void);

/* Row `index`, the dearest first; borrowed. NULL outside. */
WG_API const wg_profile_row *wg_profile_row_at(int index);

/* How many events there are. `lost` (may be NULL) is how many there was no room for. */
WG_API int64_t wg_profile_events(int64_t *lost);

/* Event `index`, in the order in which they ended; borrowed. NULL outside. */
WG_API const wg_profile_event *wg_profile_event_at(int64_t index);

WG_END_DECLS

#endif
