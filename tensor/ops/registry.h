/* The registry: tables of built-in ops. Each op file ends with its table. */
#ifndef WG_TENSOR_OPS_REGISTRY_H
#define WG_TENSOR_OPS_REGISTRY_H

#include "tensor/internal.h"

/* The table of the ops at these addresses. */
#define WG__OP_TABLE(...)                                                                          \
    {                                                                                              \
        (const wg_op *const[]){__VA_ARGS__},                                                       \
            sizeof((const wg_op *const[]){__VA_ARGS__}) / sizeof(const wg_op *)                    \
    }

/* TABLE(NAME) of each table wg__ops_NAME, in the order of ops.h. */
#define WG__OP_TABLES(TABLE)                                                                       \
    TABLE(unary), TABLE(functions), TABLE(view), TABLE(slice), TABLE(arrange), TABLE(unfold_pad),  \
        TABLE(reduce), TABLE(scan), TABLE(statistics), TABLE(softmax), TABLE(norm), TABLE(index),  \
        TABLE(advanced_index), TABLE(sort), TABLE(segment), TABLE(matmul), TABLE(quantized),       \
        TABLE(einsum), TABLE(distance), TABLE(solve), TABLE(decompose), TABLE(matrix_functions),   \
        TABLE(fft), TABLE(conv), TABLE(pool), TABLE(interpolate), TABLE(attention),                \
        TABLE(recurrent), TABLE(cross_entropy), TABLE(linear_loss), TABLE(loss),                   \
        TABLE(distributions)

#define WG__TABLE_NAME(NAME) wg__ops_##NAME
extern const wg__op_table WG__OP_TABLES(WG__TABLE_NAME);

extern const wg_op wg__elementwise_ops[]; /* the ops of wg__ops_functions */

#endif
