/* Elementwise functions against PyTorch: tests/fixtures/ops/unary.py has the cases. */
#include "tensor/ops.h"

#include "tests/reference.h"

static wg_tensor *clamp(const reference_case *c, wg_tensor *const *in) {
    return wg_clamp(in[0], reference_number(c, "low"), reference_number(c, "high"));
}

int main(void) {
    static const reference_op table[] = {
        {"neg", .unary = wg_neg},     {"abs", .unary = wg_abs},   {"sign", .unary = wg_sign},
        {"exp", .unary = wg_exp},     {"log", .unary = wg_log},   {"sqrt", .unary = wg_sqrt},
        {"rsqrt", .unary = wg_rsqrt}, {"tanh", .unary = wg_tanh}, {"sigmoid", .unary = wg_sigmoid},
        {"erf", .unary = wg_erf},     {"clamp", .one = clamp},
    };
    return wg_run_reference("reference_unary", "ops/unary.json", WG_COUNT(table), table);
}
