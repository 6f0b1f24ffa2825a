/* The one list of families, and the walk over their ops. */
#include <stddef.h>
#include <string.h>

#include "tensor/ops/registry.h"

static const wg__op_family *const families[] = {
    &wg__family_cast,
    &wg__family_view,
    &wg__family_permute,
    &wg__family_slice,
    &wg__family_shape,
    &wg__family_arrange,
    &wg__family_diagonal,
    &wg__family_window,
    &wg__family_take,
    &wg__family_binary,
    &wg__family_binary_math,
    &wg__family_ternary,
    &wg__family_scalar,
    &wg__family_compare,
    &wg__family_unary,
    &wg__family_trigonometric,
    &wg__family_special,
    &wg__family_rounding,
    &wg__family_activation,
    &wg__family_gate,
    &wg__family_select,
    &wg__family_reduce,
    &wg__family_product,
    &wg__family_vector_norm,
    &wg__family_logsumexp,
    &wg__family_extremum,
    &wg__family_truth,
    &wg__family_cumulative,
    &wg__family_linear_scan,
    &wg__family_sort,
    &wg__family_unique,
    &wg__family_matmul,
    &wg__family_quantized,
    &wg__family_quantized_linear,
    &wg__family_einsum,
    &wg__family_linear_algebra,
    &wg__family_index,
    &wg__family_scatter,
    &wg__family_nonzero,
    &wg__family_advanced_index,
    &wg__family_softmax,
    &wg__family_norm,
    &wg__family_attention,
    &wg__family_position,
    &wg__family_dropout,
    &wg__family_cross_entropy,
    &wg__family_linear_loss,
    &wg__family_loss,
    NULL,
};

int wg_op_count(void) {
    int count = 0;
    for (int i = 0; families[i]; i++)
        count += families[i]->count;
    return count;
}

const wg_op *wg_op_at(int index) {
    if (index < 0)
        return NULL;
    for (int i = 0; families[i]; index -= families[i]->count, i++)
        if (index < families[i]->count)
            return families[i]->ops[index];
    return NULL;
}

const wg_op *wg_op_find(const char *name) {
    for (int i = 0; i < wg_op_count(); i++)
        if (strcmp(wg_op_at(i)->name, name) == 0)
            return wg_op_at(i);
    return NULL;
}
