/* Arithmetic, comparison and logic against PyTorch: tests/fixtures/ops/binary.py has the cases. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

static wg_tensor *affine(const reference_case *c, wg_tensor *const *in) {
    return wg_affine(in[0], reference_number(c, "scale"), reference_number(c, "shift"));
}

static wg_tensor *add_scalar(const reference_case *c, wg_tensor *const *in) {
    return wg_add_scalar(in[0], reference_number(c, "c"));
}

static wg_tensor *mul_scalar(const reference_case *c, wg_tensor *const *in) {
    return wg_mul_scalar(in[0], reference_number(c, "c"));
}

static wg_tensor *pow_scalar(const reference_case *c, wg_tensor *const *in) {
    return wg_pow_scalar(in[0], reference_number(c, "c"));
}

static wg_tensor *lerp(const reference_case *c, wg_tensor *const *in) {
    (void)c;
    return wg_lerp(in[0], in[1], in[2]);
}

static wg_tensor *addcmul(const reference_case *c, wg_tensor *const *in) {
    return wg_addcmul(in[0], in[1], in[2], reference_number(c, "value"));
}

static wg_tensor *addcdiv(const reference_case *c, wg_tensor *const *in) {
    return wg_addcdiv(in[0], in[1], in[2], reference_number(c, "value"));
}

SUITES {
    static const reference_op table[] = {
        {"add", .binary = wg_add},
        {"sub", .binary = wg_sub},
        {"mul", .binary = wg_mul},
        {"div", .binary = wg_div},
        {"pow", .binary = wg_pow},
        {"maximum", .binary = wg_maximum},
        {"minimum", .binary = wg_minimum},
        {"atan2", .binary = wg_atan2},
        {"hypot", .binary = wg_hypot},
        {"logaddexp", .binary = wg_logaddexp},
        {"xlogy", .binary = wg_xlogy},
        {"remainder", .binary = wg_remainder},
        {"fmod", .binary = wg_fmod},
        {"lerp", .one = lerp},
        {"addcmul", .one = addcmul},
        {"addcdiv", .one = addcdiv},
        {"affine", .one = affine},
        {"add_scalar", .one = add_scalar},
        {"mul_scalar", .one = mul_scalar},
        {"pow_scalar", .one = pow_scalar},
        {"eq", .binary = wg_eq},
        {"ne", .binary = wg_ne},
        {"lt", .binary = wg_lt},
        {"le", .binary = wg_le},
        {"gt", .binary = wg_gt},
        {"ge", .binary = wg_ge},
        {"logical_and", .binary = wg_logical_and},
        {"logical_or", .binary = wg_logical_or},
        {"logical_xor", .binary = wg_logical_xor},
        {"logical_not", .unary = wg_logical_not},
    };
    add_reference_suite("reference_binary", "ops/binary.json", WG_COUNT(table), table);
}
