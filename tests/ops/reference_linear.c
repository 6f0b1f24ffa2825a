/* Products against PyTorch: tests/fixtures/ops/linear.py has the cases. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

static wg_tensor *linear(const reference_case *c, wg_tensor *const *in) {
    (void)c;
    return wg_linear_op(in[0], in[1], in[2]);
}

static wg_tensor *einsum(const reference_case *c, wg_tensor *const *in) {
    return wg_einsum(reference_text(c, "equation"), c->input_count, in);
}

static wg_tensor *tensordot(const reference_case *c, wg_tensor *const *in) {
    int64_t axes_a[REFERENCE_LIST], axes_b[REFERENCE_LIST];
    const int count = reference_integers(c, "axes_a", axes_a);
    reference_integers(c, "axes_b", axes_b);
    return wg_tensordot(in[0], in[1], count, axes_a, axes_b);
}

static wg_tensor *addmm(const reference_case *c, wg_tensor *const *in) {
    return wg_addmm(in[0], in[1], in[2], reference_number(c, "beta"), reference_number(c, "alpha"));
}

SUITES {
    static const reference_op table[] = {
        {"matmul", .binary = wg_matmul}, {"linear", .one = linear},     {"einsum", .one = einsum},
        {"tensordot", .one = tensordot}, {"outer", .binary = wg_outer}, {"dot", .binary = wg_dot},
        {"addmm", .one = addmm},
    };
    add_reference_suite("reference_linear", "ops/linear.json", WG_COUNT(table), table);
}
