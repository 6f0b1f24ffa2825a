/* The tables of built-in ops, in the order of ops.h. Each table stands at the foot of its file. */
#ifndef WG_TENSOR_OPS_REGISTRY_H
#define WG_TENSOR_OPS_REGISTRY_H

#include "tensor/internal.h"

extern const wg__op_table wg__ops_unary;
extern const wg_op wg__elementwise_ops[]; /* those of wg__ops_functions */
extern const wg__op_table wg__ops_functions;
extern const wg__op_table wg__ops_view;
extern const wg__op_table wg__ops_slice;
extern const wg__op_table wg__ops_arrange;
extern const wg__op_table wg__ops_unfold_pad;
extern const wg__op_table wg__ops_reduce;
extern const wg__op_table wg__ops_scan;
extern const wg__op_table wg__ops_statistics;
extern const wg__op_table wg__ops_softmax;
extern const wg__op_table wg__ops_norm;
extern const wg__op_table wg__ops_index;
extern const wg__op_table wg__ops_advanced_index;
extern const wg__op_table wg__ops_sort;
extern const wg__op_table wg__ops_segment;
extern const wg__op_table wg__ops_matmul;
extern const wg__op_table wg__ops_quantized;
extern const wg__op_table wg__ops_einsum;
extern const wg__op_table wg__ops_distance;
extern const wg__op_table wg__ops_solve;
extern const wg__op_table wg__ops_decompose;
extern const wg__op_table wg__ops_matrix_functions;
extern const wg__op_table wg__ops_fft;
extern const wg__op_table wg__ops_conv;
extern const wg__op_table wg__ops_pool;
extern const wg__op_table wg__ops_interpolate;
extern const wg__op_table wg__ops_attention;
extern const wg__op_table wg__ops_recurrent;
extern const wg__op_table wg__ops_cross_entropy;
extern const wg__op_table wg__ops_linear_loss;
extern const wg__op_table wg__ops_loss;
extern const wg__op_table wg__ops_distributions;

#endif
