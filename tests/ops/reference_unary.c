/* Elementwise functions against PyTorch: tests/fixtures/ops/unary.py has the cases. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

SUITES {
    static const reference_op table[] = {
        {"neg", .unary = wg_neg},
        {"abs", .unary = wg_abs},
        {"exp", .unary = wg_exp},
        {"exp2", .unary = wg_exp2},
        {"expm1", .unary = wg_expm1},
        {"log", .unary = wg_log},
        {"log2", .unary = wg_log2},
        {"log10", .unary = wg_log10},
        {"log1p", .unary = wg_log1p},
        {"sqrt", .unary = wg_sqrt},
        {"rsqrt", .unary = wg_rsqrt},
        {"cbrt", .unary = wg_cbrt},
        {"reciprocal", .unary = wg_reciprocal},
        {"square", .unary = wg_square},
        {"tanh", .unary = wg_tanh},
        {"sigmoid", .unary = wg_sigmoid},
        {"erf", .unary = wg_erf},
    };
    add_reference_suite("reference_unary", "ops/unary.json", WG_COUNT(table), table);
}
