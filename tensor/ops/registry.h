/* The families of built-in ops, in the order of ops.h. Each table stands at the foot of its file.
 */
#ifndef WG_TENSOR_OPS_REGISTRY_H
#define WG_TENSOR_OPS_REGISTRY_H

#include "tensor/internal.h"

extern const wg__op_family wg__family_cast;
extern const wg__op_family wg__family_view;
extern const wg__op_family wg__family_permute;
extern const wg__op_family wg__family_slice;
extern const wg__op_family wg__family_shape;
extern const wg__op_family wg__family_arrange;
extern const wg__op_family wg__family_diagonal;
extern const wg__op_family wg__family_window;
extern const wg__op_family wg__family_take;
extern const wg__op_family wg__family_binary;
extern const wg__op_family wg__family_binary_math;
extern const wg__op_family wg__family_ternary;
extern const wg__op_family wg__family_scalar;
extern const wg__op_family wg__family_compare;
extern const wg__op_family wg__family_unary;
extern const wg__op_family wg__family_trigonometric;
extern const wg__op_family wg__family_special;
extern const wg__op_family wg__family_rounding;
extern const wg__op_family wg__family_activation;
extern const wg__op_family wg__family_gate;
extern const wg__op_family wg__family_select;
extern const wg__op_family wg__family_reduce;
extern const wg__op_family wg__family_product;
extern const wg__op_family wg__family_vector_norm;
extern const wg__op_family wg__family_logsumexp;
extern const wg__op_family wg__family_extremum;
extern const wg__op_family wg__family_truth;
extern const wg__op_family wg__family_cumulative;
extern const wg__op_family wg__family_linear_scan;
extern const wg__op_family wg__family_sort;
extern const wg__op_family wg__family_unique;
extern const wg__op_family wg__family_matmul;
extern const wg__op_family wg__family_quantized;
extern const wg__op_family wg__family_quantized_linear;
extern const wg__op_family wg__family_einsum;
extern const wg__op_family wg__family_linear_algebra;
extern const wg__op_family wg__family_index;
extern const wg__op_family wg__family_scatter;
extern const wg__op_family wg__family_nonzero;
extern const wg__op_family wg__family_advanced_index;
extern const wg__op_family wg__family_softmax;
extern const wg__op_family wg__family_norm;
extern const wg__op_family wg__family_attention;
extern const wg__op_family wg__family_position;
extern const wg__op_family wg__family_dropout;
extern const wg__op_family wg__family_cross_entropy;
extern const wg__op_family wg__family_linear_loss;
extern const wg__op_family wg__family_loss;

#endif
