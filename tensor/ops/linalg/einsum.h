/* The order of the products of einsum and tensordot. */
#ifndef WG_TENSOR_OPS_LINALG_EINSUM_H
#define WG_TENSOR_OPS_LINALG_EINSUM_H

#include "tensor/internal.h"

/* A set of labels: bit i for label i. */
typedef uint64_t wg__index_set;

/* A product of two operands. Its result replaces operand `left`. */
typedef struct wg__contraction_step {
    int left, right;
} wg__contraction_step;

/* The order of the count - 1 products. For up to 8 operands it is the cheapest order. For more, the
 * first products are greedy: the pair whose product saves the most memory, until 8 operands are
 * left. Returns the total multiply-adds; INFINITY if every order tried has an intermediate result
 * of more than WG_MAX_DIMS labels. */
double wg__contraction_order(int count, const wg__index_set *operands, wg__index_set output,
                             const int64_t *sizes, wg__contraction_step *steps);

#endif
