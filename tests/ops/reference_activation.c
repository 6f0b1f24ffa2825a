/* Activation functions and gated units against PyTorch: tests/fixtures/ops/activation.py has the
 * cases. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

static wg_tensor *leaky_relu(const reference_case *c, wg_tensor *const *in) {
    return wg_leaky_relu(in[0], reference_number(c, "slope"));
}

static wg_tensor *elu(const reference_case *c, wg_tensor *const *in) {
    return wg_elu(in[0], reference_number(c, "alpha"));
}

static wg_tensor *softplus(const reference_case *c, wg_tensor *const *in) {
    return wg_softplus(in[0], reference_number(c, "beta"), reference_number(c, "threshold"));
}

SUITES {
    static const reference_op table[] = {
        {"relu", .unary = wg_relu},
        {"leaky_relu", .one = leaky_relu},
        {"elu", .one = elu},
        {"gelu", .unary = wg_gelu},
        {"gelu_tanh", .unary = wg_gelu_tanh},
        {"silu", .unary = wg_silu},
        {"mish", .unary = wg_mish},
        {"softplus", .one = softplus},
        {"log_sigmoid", .unary = wg_log_sigmoid},
        {"hardsigmoid", .unary = wg_hardsigmoid},
        {"hardswish", .unary = wg_hardswish},
        {"glu", .binary = wg_glu},
        {"swiglu", .binary = wg_swiglu},
        {"geglu", .binary = wg_geglu},
        {"reglu", .binary = wg_reglu},
    };
    add_reference_suite("reference_activation", "ops/activation.json", WG_COUNT(table), table);
}
