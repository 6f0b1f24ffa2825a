/* Products of labelled tensors, summed over the labels that the result lacks: einsum and tensordot
 * both become one of these contractions. */
#ifndef WG_TENSOR_OPS_LINALG_EINSUM_H
#define WG_TENSOR_OPS_LINALG_EINSUM_H

#include "tensor/internal.h"

#define WG__MAX_LABELS 60

/* A set of labels: bit i for label i. */
typedef uint64_t wg__index_set;

/* A tensor whose axes have labels. */
typedef struct wg__labelled {
    wg_tensor *tensor;
    int labels[WG_MAX_DIMS]; /* 0 to WG__MAX_LABELS - 1 */
} wg__labelled;

/* The axes of a label have its size, or size 1, which is repeated. A label that comes twice in one
 * operand is the diagonal of its axes, which are of one size. */
typedef struct wg__contraction {
    int count;
    wg__labelled operands[WG_MAX_INPUTS]; /* of one dtype */
    int64_t sizes[WG__MAX_LABELS];
    int output_ndim;
    int output[WG_MAX_DIMS]; /* labels of operands, each once */
} wg__contraction;

/* The result, made of public ops: a view of an operand if there is nothing to compute. Overwrites
 * the operands. NULL for lack of memory, or if an intermediate result needs more than WG_MAX_DIMS
 * axes; `call` is for messages. */
wg_tensor *wg__contract(const wg_call *call, wg__contraction *contraction);

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
