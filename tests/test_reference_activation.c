/* Activations against PyTorch: tests/fixtures/ops/activation.py has the cases. */
#include "tensor/ops.h"

#include "tests/reference.h"

int main(void) {
    static const reference_op table[] = {
        {"relu", .unary = wg_relu},
        {"gelu", .unary = wg_gelu},
        {"gelu_tanh", .unary = wg_gelu_tanh},
    };
    return wg_run_reference("reference_activation", "ops/activation.json", WG_COUNT(table), table);
}
