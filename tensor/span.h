/* Spans of the profile: times the code between wg__span_begin and wg__span_end.
 *
 *     wg__span span;
 *     wg__span_begin(&span, "data", WG_PROFILE_REGION);
 *     ...
 *     wg__span_end(&span);
 */
#ifndef WG_TENSOR_SPAN_H
#define WG_TENSOR_SPAN_H

#include <stdatomic.h>

#include "tensor/profile.h"
#include "tensor/tensor.h"

typedef struct wg__span {
    bool taken; /* false: no profile was being taken when the span began */
    const char *name;
    wg_profile_kind kind;
    double start, flops;
} wg__span;

extern atomic_bool wg__profiles;

void wg__span_open(wg__span *span, const char *name, wg_profile_kind kind);
void wg__span_close(wg__span *span, double bytes, int operand_count, const wg_spec *operands);

/* `name` must outlive the profile. */
static inline void wg__span_begin(wg__span *span, const char *name, wg_profile_kind kind) {
    span->taken = atomic_load_explicit(&wg__profiles, memory_order_relaxed);
    if (span->taken)
        wg__span_open(span, name, kind);
}

static inline void wg__span_end(wg__span *span) {
    if (span->taken)
        wg__span_close(span, 0, 0, NULL);
}

/* The bytes of tensors, NULL ones aside; elements that an axis repeats count once. */
double wg__bytes_of(int count, wg_tensor *const *tensors);

#endif
