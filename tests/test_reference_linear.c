/* Products against PyTorch: tests/fixtures/ops/linear.py has the cases. */
#include "tensor/ops.h"

#include "tests/reference.h"

static wg_tensor *linear(const reference_case *c, wg_tensor *const *in) {
    (void)c;
    return wg_linear_op(in[0], in[1], in[2]);
}

static wg_tensor *einsum(const reference_case *c, wg_tensor *const *in) {
    return wg_einsum(reference_text(c, "equation"), c->input_count, in);
}

int main(void) {
    static const reference_op table[] = {
        {"matmul", .binary = wg_matmul},
        {"linear", .one = linear},
        {"einsum", .one = einsum},
    };
    return wg_run_reference("reference_linear", "ops/linear.json", WG_COUNT(table), table);
}
