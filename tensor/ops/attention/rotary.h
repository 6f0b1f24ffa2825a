/* Rows turned by rotary positions, for the ops that do it in passing. */
#ifndef WG_TENSOR_OPS_ATTENTION_ROTARY_H
#define WG_TENSOR_OPS_ATTENTION_ROTARY_H

#include "tensor/ops.h"

typedef struct wg__rotation {
    wg_dtype dtype; /* f32 or f64 */
    wg_rotary_pairing pairing;
    int64_t pairs, width; /* P, and D of a row: what is beyond 2 P stays */
} wg__rotation;

/* y = x turned by a row of each table; x and y are (D) and do not overlap, cos and sin (P). */
void wg__rotate_row(const wg__rotation *rotation, const void *x, const void *cos, const void *sin,
                    void *y);

#endif
