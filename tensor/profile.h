/* What the library was asked for, counted: for benches. */
#ifndef WG_TENSOR_PROFILE_H
#define WG_TENSOR_PROFILE_H

#include "api.h"

/* Floating-point operations, two a multiply-add, of all the matrix products of f32 and f64 that
 * this thread asked for so far. Attention counts all queries by all keys, also where a mask saves
 * it some, and what a backward pass computes again counts for nothing: forward and twice as much
 * backward, as papers count it. */
WG_API double wg_product_flops(void);

#endif
