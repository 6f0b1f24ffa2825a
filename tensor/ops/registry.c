/* The registry: the one list of op tables, and the walk over their ops. */
#include <stddef.h>
#include <string.h>

#include "tensor/ops/registry.h"

static const wg__op_table *const tables[] = {
    &wg__ops_unary,
    &wg__ops_functions,
    &wg__ops_view,
    &wg__ops_slice,
    &wg__ops_arrange,
    &wg__ops_unfold_pad,
    &wg__ops_reduce,
    &wg__ops_scan,
    &wg__ops_statistics,
    &wg__ops_softmax,
    &wg__ops_norm,
    &wg__ops_index,
    &wg__ops_advanced_index,
    &wg__ops_sort,
    &wg__ops_segment,
    &wg__ops_matmul,
    &wg__ops_quantized,
    &wg__ops_einsum,
    &wg__ops_distance,
    &wg__ops_solve,
    &wg__ops_decompose,
    &wg__ops_matrix_functions,
    &wg__ops_fft,
    &wg__ops_conv,
    &wg__ops_pool,
    &wg__ops_interpolate,
    &wg__ops_attention,
    &wg__ops_recurrent,
    &wg__ops_cross_entropy,
    &wg__ops_linear_loss,
    &wg__ops_loss,
    &wg__ops_distributions,
    NULL,
};

int wg_op_count(void) {
    int count = 0;
    for (int i = 0; tables[i]; i++)
        count += tables[i]->count;
    return count;
}

const wg_op *wg_op_at(int index) {
    if (index < 0)
        return NULL;
    for (int i = 0; tables[i]; index -= tables[i]->count, i++)
        if (index < tables[i]->count)
            return tables[i]->ops ? tables[i]->ops[index] : &wg__elementwise_ops[index];
    return NULL;
}

const wg_op *wg_op_find(const char *name) {
    for (int i = 0; i < wg_op_count(); i++)
        if (strcmp(wg_op_at(i)->name, name) == 0)
            return wg_op_at(i);
    return NULL;
}
