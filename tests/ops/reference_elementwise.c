/* Elementwise ops and tensors out of numbers against PyTorch and NumPy. The cases of a suite are in
 * tests/fixtures/ops/SUITE.json, which SUITE.py writes: create, unary, functions, activation,
 * binary, cast. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

/* ---- Tensors out of numbers, against NumPy ---- */

static wg_tensor *arange(const reference_case *c, wg_tensor *const *in) {
    (void)in;
    return wg_arange(reference_dtype(c, "dtype"), reference_number(c, "start"),
                     reference_number(c, "stop"), reference_number(c, "step"));
}

static wg_tensor *linspace(const reference_case *c, wg_tensor *const *in) {
    (void)in;
    return wg_linspace(reference_dtype(c, "dtype"), reference_number(c, "start"),
                       reference_number(c, "stop"), reference_integer(c, "count"));
}

static wg_tensor *logspace(const reference_case *c, wg_tensor *const *in) {
    (void)in;
    return wg_logspace(reference_dtype(c, "dtype"), reference_number(c, "start"),
                       reference_number(c, "stop"), reference_integer(c, "count"),
                       reference_number(c, "base"));
}

static wg_tensor *eye(const reference_case *c, wg_tensor *const *in) {
    (void)in;
    return wg_eye(reference_dtype(c, "dtype"), reference_integer(c, "rows"),
                  reference_integer(c, "columns"));
}

static wg_tensor *tri(const reference_case *c, wg_tensor *const *in) {
    (void)in;
    return wg_tri(reference_dtype(c, "dtype"), reference_integer(c, "rows"),
                  reference_integer(c, "columns"), reference_integer(c, "diagonal"));
}

static const reference_op create_ops[] = {
    {"arange", .one = arange}, {"linspace", .one = linspace}, {"logspace", .one = logspace},
    {"eye", .one = eye},       {"tri", .one = tri},
};

/* ---- Functions of one operand ---- */

static const reference_op unary_ops[] = {
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

/* ---- Trigonometric and special functions, rounding, and values that are not finite ---- */

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

static const reference_op functions_ops[] = {
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

/* ---- Activation functions and gated units ---- */

static wg_tensor *leaky_relu(const reference_case *c, wg_tensor *const *in) {
    return wg_leaky_relu(in[0], reference_number(c, "slope"));
}

static wg_tensor *elu(const reference_case *c, wg_tensor *const *in) {
    return wg_elu(in[0], reference_number(c, "alpha"));
}

static wg_tensor *softplus(const reference_case *c, wg_tensor *const *in) {
    return wg_softplus(in[0], reference_number(c, "beta"), reference_number(c, "threshold"));
}

static const reference_op activation_ops[] = {
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

/* ---- Arithmetic, comparison and logic ---- */

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

static const reference_op binary_ops[] = {
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

/* ---- Casts ---- */

static wg_tensor *cast(const reference_case *c, wg_tensor *const *in) {
    return wg_cast(in[0], reference_dtype(c, "dtype"));
}

static const reference_op cast_ops[] = {{"cast", .one = cast}};

SUITES {
    add_reference_suite("create", create_ops);
    add_reference_suite("unary", unary_ops);
    add_reference_suite("functions", functions_ops);
    add_reference_suite("activation", activation_ops);
    add_reference_suite("binary", binary_ops);
    add_reference_suite("cast", cast_ops);
}
