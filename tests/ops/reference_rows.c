/* Softmax, its logarithm and layer normalisation against PyTorch: tests/fixtures/ops/rows.py has
 * the cases. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

static wg_tensor *softmax(const reference_case *c, wg_tensor *const *in) {
    return wg_softmax(in[0], (int)reference_integer(c, "axis"));
}

static wg_tensor *log_softmax(const reference_case *c, wg_tensor *const *in) {
    return wg_log_softmax(in[0], (int)reference_integer(c, "axis"));
}

static wg_tensor *layer_norm(const reference_case *c, wg_tensor *const *in) {
    return wg_layer_norm_op(in[0], in[1], in[2], reference_number(c, "eps"));
}

SUITES {
    static const reference_op table[] = {
        {"softmax", .one = softmax},
        {"log_softmax", .one = log_softmax},
        {"layer_norm", .one = layer_norm},
    };
    add_reference_suite("reference_rows", "ops/rows.json", WG_COUNT(table), table);
}
