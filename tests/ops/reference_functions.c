/* Trigonometric and special functions, rounding, and the handling of what is not a number, against
 * PyTorch: tests/fixtures/ops/functions.py has the cases. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

static wg_tensor *polygamma(const reference_case *c, wg_tensor *const *in) {
    return wg_polygamma((int)reference_integer(c, "n"), in[0]);
}

static wg_tensor *nan_to_num(const reference_case *c, wg_tensor *const *in) {
    return wg_nan_to_num(in[0], reference_number(c, "nan"), reference_number(c, "posinf"),
                         reference_number(c, "neginf"));
}

static wg_tensor *clamp(const reference_case *c, wg_tensor *const *in) {
    return wg_clamp(in[0], reference_number(c, "low"), reference_number(c, "high"));
}

SUITES {
    static const reference_op table[] = {
        {"sin", .unary = wg_sin},        {"cos", .unary = wg_cos},
        {"tan", .unary = wg_tan},        {"asin", .unary = wg_asin},
        {"acos", .unary = wg_acos},      {"atan", .unary = wg_atan},
        {"sinh", .unary = wg_sinh},      {"cosh", .unary = wg_cosh},
        {"asinh", .unary = wg_asinh},    {"acosh", .unary = wg_acosh},
        {"atanh", .unary = wg_atanh},    {"erfc", .unary = wg_erfc},
        {"lgamma", .unary = wg_lgamma},  {"digamma", .unary = wg_digamma},
        {"sign", .unary = wg_sign},      {"floor", .unary = wg_floor},
        {"ceil", .unary = wg_ceil},      {"round", .unary = wg_round},
        {"trunc", .unary = wg_trunc},    {"isnan", .unary = wg_isnan},
        {"isinf", .unary = wg_isinf},    {"isfinite", .unary = wg_isfinite},
        {"polygamma", .one = polygamma}, {"nan_to_num", .one = nan_to_num},
        {"clamp", .one = clamp},
    };
    add_reference_suite("reference_functions", "ops/functions.json", WG_COUNT(table), table);
}
