/* The order of the products of einsum and tensordot. */
#ifndef WG_TENSOR_OPS_LINALG_EINSUM_H
#define WG_TENSOR_OPS_LINALG_EINSUM_H

#include "tensor/internal.h"

/* A set of labels: bit i for label i. */
typedef uint64_t wg__index_set;

/* Operand `right` is multiplied into operand `left`, which the result replaces. */
typedef struct wg__contraction_step {
    int left, right;
} wg__contraction_step;

/* The order of the count - 1 products of operands with those labels: the cheapest of all orders for
 * up to 8 operands; of more, the two whose product saves the most memory are multiplied until 8 are
 * left. Returns the multiply-adds of the whole; INFINITY if every order that was tried has an
 * intermediate result of more than WG_MAX_DIMS labels. */
double wg__contraction_order(int count, const wg__index_set *operands, wg__index_set output,
                             const int64_t *sizes, wg__contraction_step *steps);

#endif
