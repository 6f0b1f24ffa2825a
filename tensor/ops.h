/* Every operation on tensors. Each call is recorded for backward when an input requires a gradient;
 * there is no second set of functions for autograd.
 *
 * How to read the contracts: `x: (B, T, C)` gives shapes. Broadcasting is NumPy's. A negative axis
 * counts from the end. Operands of different dtypes are cast to the dtype that wg__dtype_promote
 * gives. [scope; SHAPE, DTYPE] names the owner of the result and the possible errors beside MEMORY.
 * A NULL operand gives NULL. Lists are a count and a pointer (WG_DIMS and WG_TENSORS of easy.h
 * write them); the list of axes `0, NULL` means all axes. A fused op has kernels forward and
 * backward. */
#ifndef WG_TENSOR_OPS_H
#define WG_TENSOR_OPS_H

#include "op.h"
#include "quantize.h"

WG_BEGIN_DECLS

/* ---- Casting and copying (ops/elementwise/unary.c) ---- */

/* x in another dtype, or an alias of x if it has that dtype already. Floats are truncated to
 * integers and clamped to their range, and NaN gives 0; anything to bool is x != 0. Differentiable
 * between floating dtypes. [scope] */
WG_API wg_tensor *wg_cast(wg_tensor *x, wg_dtype dtype);

/* A copy of x in contiguous memory. [scope] */
WG_API wg_tensor *wg_clone(wg_tensor *x);

/* x in contiguous memory: an alias if x is contiguous already, else a copy. [scope] */
WG_API wg_tensor *wg_contiguous(wg_tensor *x);

/* ---- One operand and plain numbers (ops/elementwise/unary.c) ---- */

/* x * scale + shift, in the dtype of x; for integers the result is truncated. [scope] */
WG_API wg_tensor *wg_affine(wg_tensor *x, double scale, double shift);
WG_API wg_tensor *wg_add_scalar(wg_tensor *x, double c); /* x + c, in the dtype of x [scope] */
WG_API wg_tensor *wg_mul_scalar(wg_tensor *x, double c); /* x * c, in the dtype of x [scope] */
WG_API wg_tensor *wg_pow_scalar(wg_tensor *x, double c); /* x^c; integers are cast to f32 [scope] */

/* x limited to [low, high]. The derivative is 1 from low to high inclusive, as in PyTorch. Pass
 * -INFINITY or INFINITY to leave a side open. [scope; ARGUMENT if low > high] */
WG_API wg_tensor *wg_clamp(wg_tensor *x, double low, double high);

/* Replaces NaN, inf and -inf by numbers, where the derivative is 0. PyTorch's and NumPy's defaults
 * are 0, DBL_MAX and -DBL_MAX: a number outside the range of the dtype becomes its largest.
 * Integers and bools are copied. [scope] */
WG_API wg_tensor *wg_nan_to_num(wg_tensor *x, double nan, double posinf, double neginf);

/* The n-th derivative of digamma(x); infinite at 0, -1, -2... [scope; ARGUMENT for n < 0] */
WG_API wg_tensor *wg_polygamma(int n, wg_tensor *x);

/* x above 0, slope x below (PyTorch's default is 0.01); derivative slope at 0. Integers and
 * bools are cast to f32, here and by elu and softplus. [scope] */
WG_API wg_tensor *wg_leaky_relu(wg_tensor *x, double slope);

/* x above 0, alpha (e^x - 1) below (PyTorch's default is 1); derivative alpha at 0   (Clevert et
 * al. 2016). [scope] */
WG_API wg_tensor *wg_elu(wg_tensor *x, double alpha);

/* log(1 + e^(beta x)) / beta, and x itself where beta x > threshold. A beta of 0 means 1 and a
 * threshold of 0 means 20, PyTorch's defaults; WG_ZERO is a threshold of 0, INFINITY is none.
 * [scope; ARGUMENT for a beta that is not finite or a threshold of NaN] */
WG_API wg_tensor *wg_softplus(wg_tensor *x, double beta, double threshold);

/* Sets each element to 0 with probability p and multiplies the remaining elements by 1 / (1 - p)
 * (Srivastava et al. 2014). Word i of draw `offset` under `seed` decides element i, so backward
 * draws the same mask. [scope; ARGUMENT outside 0 <= p < 1, DTYPE] */
WG_API wg_tensor *wg_dropout_op(wg_tensor *x, double p, uint64_t seed, uint64_t offset);

/* ---- Elementwise functions without options (ops/elementwise/functions.c) ---- */

/* Programs that were compiled with the functions below hold these numbers, so a new function is
 * added at the end. */
/* clang-format off */
typedef enum wg_elementwise_op {
    WG_NEG, WG_ABS, WG_SQUARE, WG_EXP, WG_EXP2, WG_EXPM1, WG_LOG, WG_LOG2, WG_LOG10, WG_LOG1P,
    WG_SQRT, WG_RSQRT, WG_CBRT, WG_RECIPROCAL, WG_TANH, WG_SIGMOID, WG_ERF,
    WG_SIGN, WG_FLOOR, WG_CEIL, WG_ROUND, WG_TRUNC,
    WG_SIN, WG_COS, WG_TAN, WG_ASIN, WG_ACOS, WG_ATAN, WG_SINH, WG_COSH, WG_ASINH, WG_ACOSH,
    WG_ATANH, WG_ERFC, WG_LGAMMA, WG_DIGAMMA,
    WG_ADD, WG_SUB, WG_MUL, WG_DIV, WG_POW, WG_MAXIMUM, WG_MINIMUM, WG_ATAN2, WG_HYPOT,
    WG_LOGADDEXP, WG_XLOGY, WG_REMAINDER, WG_FMOD,
    WG_EQ, WG_NE, WG_LT, WG_LE, WG_GT, WG_GE, WG_LOGICAL_AND, WG_LOGICAL_OR, WG_LOGICAL_XOR,
    WG_LOGICAL_NOT, WG_ISNAN, WG_ISINF, WG_ISFINITE,
    WG_RELU, WG_GELU, WG_GELU_TANH, WG_SILU, WG_MISH, WG_LOG_SIGMOID, WG_HARDSIGMOID,
    WG_HARDSWISH, WG_GLU, WG_SWIGLU, WG_GEGLU, WG_REGLU
} wg_elementwise_op;
/* clang-format on */

/* Function `op` of a, or of a and b; the functions below have their contracts.
 * [scope; ARGUMENT outside the enum] */
WG_API wg_tensor *wg_elementwise(wg_elementwise_op op, wg_tensor *a, wg_tensor *b);

/* clang-format off */
/* ---- Unary functions. Integers and bools are cast to f32 first, except by neg, abs and square.
 * ---- */

/* -x [scope; DTYPE for bool] */
static inline wg_tensor *wg_neg(wg_tensor *x) { return wg_elementwise(WG_NEG, x, NULL); }
/* |x|; derivative sign(x), 0 at 0 [scope] */
static inline wg_tensor *wg_abs(wg_tensor *x) { return wg_elementwise(WG_ABS, x, NULL); }
/* e^x [scope] */
static inline wg_tensor *wg_exp(wg_tensor *x) { return wg_elementwise(WG_EXP, x, NULL); }
/* 2^x [scope] */
static inline wg_tensor *wg_exp2(wg_tensor *x) { return wg_elementwise(WG_EXP2, x, NULL); }
/* e^x - 1, exact near 0 [scope] */
static inline wg_tensor *wg_expm1(wg_tensor *x) { return wg_elementwise(WG_EXPM1, x, NULL); }
/* ln x [scope] */
static inline wg_tensor *wg_log(wg_tensor *x) { return wg_elementwise(WG_LOG, x, NULL); }
/* log x to the base 2 [scope] */
static inline wg_tensor *wg_log2(wg_tensor *x) { return wg_elementwise(WG_LOG2, x, NULL); }
/* log x to the base 10 [scope] */
static inline wg_tensor *wg_log10(wg_tensor *x) { return wg_elementwise(WG_LOG10, x, NULL); }
/* ln(1 + x), exact near 0 [scope] */
static inline wg_tensor *wg_log1p(wg_tensor *x) { return wg_elementwise(WG_LOG1P, x, NULL); }
/* x^(1/2) [scope] */
static inline wg_tensor *wg_sqrt(wg_tensor *x) { return wg_elementwise(WG_SQRT, x, NULL); }
/* x^(-1/2) [scope] */
static inline wg_tensor *wg_rsqrt(wg_tensor *x) { return wg_elementwise(WG_RSQRT, x, NULL); }
/* x^(1/3), with the sign of x [scope] */
static inline wg_tensor *wg_cbrt(wg_tensor *x) { return wg_elementwise(WG_CBRT, x, NULL); }
/* 1 / x [scope] */
static inline wg_tensor *wg_reciprocal(wg_tensor *x) {
    return wg_elementwise(WG_RECIPROCAL, x, NULL);
}
/* x^2; bools are cast to i64 [scope] */
static inline wg_tensor *wg_square(wg_tensor *x) { return wg_elementwise(WG_SQUARE, x, NULL); }
/* tanh x; derivative 1 - y^2 [scope] */
static inline wg_tensor *wg_tanh(wg_tensor *x) { return wg_elementwise(WG_TANH, x, NULL); }
/* 1 / (1 + e^-x); derivative y (1 - y) [scope] */
static inline wg_tensor *wg_sigmoid(wg_tensor *x) { return wg_elementwise(WG_SIGMOID, x, NULL); }
/* erf x; derivative 2/sqrt(pi) e^(-x^2) [scope] */
static inline wg_tensor *wg_erf(wg_tensor *x) { return wg_elementwise(WG_ERF, x, NULL); }

/* ---- Sign and rounding. They keep the dtype of integers and bools; their derivative is 0. ---- */

/* -1, 0 or 1; NaN of NaN, as in NumPy [scope] */
static inline wg_tensor *wg_sign(wg_tensor *x) { return wg_elementwise(WG_SIGN, x, NULL); }
/* the largest integer not above x [scope] */
static inline wg_tensor *wg_floor(wg_tensor *x) { return wg_elementwise(WG_FLOOR, x, NULL); }
/* the smallest integer not below x [scope] */
static inline wg_tensor *wg_ceil(wg_tensor *x) { return wg_elementwise(WG_CEIL, x, NULL); }
/* the nearest integer, the even one of two [scope] */
static inline wg_tensor *wg_round(wg_tensor *x) { return wg_elementwise(WG_ROUND, x, NULL); }
/* x without its fraction [scope] */
static inline wg_tensor *wg_trunc(wg_tensor *x) { return wg_elementwise(WG_TRUNC, x, NULL); }

/* ---- Trigonometric, hyperbolic and special functions. Integers and bools are cast to f32. Angles
 * are in radians. Outside a function's domain the result is NaN. ---- */

/* derivative cos x [scope] */
static inline wg_tensor *wg_sin(wg_tensor *x) { return wg_elementwise(WG_SIN, x, NULL); }
/* derivative -sin x [scope] */
static inline wg_tensor *wg_cos(wg_tensor *x) { return wg_elementwise(WG_COS, x, NULL); }
/* derivative 1 + y^2 [scope] */
static inline wg_tensor *wg_tan(wg_tensor *x) { return wg_elementwise(WG_TAN, x, NULL); }
/* derivative 1 / sqrt(1 - x^2) [scope] */
static inline wg_tensor *wg_asin(wg_tensor *x) { return wg_elementwise(WG_ASIN, x, NULL); }
/* derivative -1 / sqrt(1 - x^2) [scope] */
static inline wg_tensor *wg_acos(wg_tensor *x) { return wg_elementwise(WG_ACOS, x, NULL); }
/* derivative 1 / (1 + x^2) [scope] */
static inline wg_tensor *wg_atan(wg_tensor *x) { return wg_elementwise(WG_ATAN, x, NULL); }
/* derivative cosh x [scope] */
static inline wg_tensor *wg_sinh(wg_tensor *x) { return wg_elementwise(WG_SINH, x, NULL); }
/* derivative sinh x [scope] */
static inline wg_tensor *wg_cosh(wg_tensor *x) { return wg_elementwise(WG_COSH, x, NULL); }
/* derivative 1 / sqrt(x^2 + 1) [scope] */
static inline wg_tensor *wg_asinh(wg_tensor *x) { return wg_elementwise(WG_ASINH, x, NULL); }
/* derivative 1 / sqrt(x^2 - 1) [scope] */
static inline wg_tensor *wg_acosh(wg_tensor *x) { return wg_elementwise(WG_ACOSH, x, NULL); }
/* derivative 1 / (1 - x^2) [scope] */
static inline wg_tensor *wg_atanh(wg_tensor *x) { return wg_elementwise(WG_ATANH, x, NULL); }

/* 1 - erf x, exact where that is small [scope] */
static inline wg_tensor *wg_erfc(wg_tensor *x) { return wg_elementwise(WG_ERFC, x, NULL); }
/* ln |Gamma(x)|; derivative digamma(x) [scope] */
static inline wg_tensor *wg_lgamma(wg_tensor *x) { return wg_elementwise(WG_LGAMMA, x, NULL); }
/* Gamma'(x) / Gamma(x); NaN at -1, -2... [scope] */
static inline wg_tensor *wg_digamma(wg_tensor *x) { return wg_elementwise(WG_DIGAMMA, x, NULL); }

/* ---- Two operands with broadcasting ---- */

/* a + b; of bools: or [scope; SHAPE] */
static inline wg_tensor *wg_add(wg_tensor *a, wg_tensor *b) { return wg_elementwise(WG_ADD, a, b); }
/* a - b [scope; SHAPE, DTYPE for bools] */
static inline wg_tensor *wg_sub(wg_tensor *a, wg_tensor *b) { return wg_elementwise(WG_SUB, a, b); }
/* a b; of bools: and [scope; SHAPE] */
static inline wg_tensor *wg_mul(wg_tensor *a, wg_tensor *b) { return wg_elementwise(WG_MUL, a, b); }

/* a / b, true division: integers are cast to f32. [scope; SHAPE] */
static inline wg_tensor *wg_div(wg_tensor *a, wg_tensor *b) { return wg_elementwise(WG_DIV, a, b); }

/* a^b; integers are cast to f32. da = b a^(b-1), db = a^b log a (0 where a = 0 and b >= 0, as in
 * PyTorch). [scope; SHAPE] */
static inline wg_tensor *wg_pow(wg_tensor *a, wg_tensor *b) { return wg_elementwise(WG_POW, a, b); }

/* The larger or the smaller of a and b; NaN if either is NaN. At ties each gets half of the
 * gradient. [scope; SHAPE] */
static inline wg_tensor *wg_maximum(wg_tensor *a, wg_tensor *b) {
    return wg_elementwise(WG_MAXIMUM, a, b);
}
static inline wg_tensor *wg_minimum(wg_tensor *a, wg_tensor *b) {
    return wg_elementwise(WG_MINIMUM, a, b);
}

/* The angle of the point (b, a), from -pi to pi; integers are cast to f32. da = b / (a^2 + b^2),
 * db = -a / (a^2 + b^2), computed without overflow, and NaN at (0, 0). [scope; SHAPE] */
static inline wg_tensor *wg_atan2(wg_tensor *a, wg_tensor *b) {
    return wg_elementwise(WG_ATAN2, a, b);
}

/* sqrt(a^2 + b^2) without overflow of the squares; integers are cast to f32. The derivative at (0,
 * 0) is NaN, as in PyTorch. [scope; SHAPE] */
static inline wg_tensor *wg_hypot(wg_tensor *a, wg_tensor *b) {
    return wg_elementwise(WG_HYPOT, a, b);
}

/* ln(e^a + e^b) without overflow; integers are cast to f32. [scope; SHAPE] */
static inline wg_tensor *wg_logaddexp(wg_tensor *a, wg_tensor *b) {
    return wg_elementwise(WG_LOGADDEXP, a, b);
}

/* a ln b, and 0 where a is 0 (but NaN where b is NaN); integers are cast to f32. da = ln b, 0 where
 * a = 0 and b <= 0; db = a / b. [scope; SHAPE] */
static inline wg_tensor *wg_xlogy(wg_tensor *a, wg_tensor *b) {
    return wg_elementwise(WG_XLOGY, a, b);
}

/* The remainder of a division. remainder: a - b floor(a / b), with the sign of b, as Python's %.
 * fmod: a - b trunc(a / b), with the sign of a, as C's %. Division by 0 gives NaN for floats and an
 * error for integers. da = 1, db = the negative of the rounded quotient.
 * [scope; SHAPE, DTYPE for bools, ARGUMENT for an integer divided by 0] */
static inline wg_tensor *wg_remainder(wg_tensor *a, wg_tensor *b) {
    return wg_elementwise(WG_REMAINDER, a, b);
}
static inline wg_tensor *wg_fmod(wg_tensor *a, wg_tensor *b) {
    return wg_elementwise(WG_FMOD, a, b);
}

/* ---- Comparison and logic: bool results, no gradient ---- */

/* a == b [scope; SHAPE] */
static inline wg_tensor *wg_eq(wg_tensor *a, wg_tensor *b) { return wg_elementwise(WG_EQ, a, b); }
/* a != b [scope; SHAPE] */
static inline wg_tensor *wg_ne(wg_tensor *a, wg_tensor *b) { return wg_elementwise(WG_NE, a, b); }
/* a <  b [scope; SHAPE] */
static inline wg_tensor *wg_lt(wg_tensor *a, wg_tensor *b) { return wg_elementwise(WG_LT, a, b); }
/* a <= b [scope; SHAPE] */
static inline wg_tensor *wg_le(wg_tensor *a, wg_tensor *b) { return wg_elementwise(WG_LE, a, b); }
/* a >  b [scope; SHAPE] */
static inline wg_tensor *wg_gt(wg_tensor *a, wg_tensor *b) { return wg_elementwise(WG_GT, a, b); }
/* a >= b [scope; SHAPE] */
static inline wg_tensor *wg_ge(wg_tensor *a, wg_tensor *b) { return wg_elementwise(WG_GE, a, b); }

/* Logic on the truth (!= 0) of any dtype. [scope; SHAPE] */
static inline wg_tensor *wg_logical_and(wg_tensor *a, wg_tensor *b) {
    return wg_elementwise(WG_LOGICAL_AND, a, b);
}
static inline wg_tensor *wg_logical_or(wg_tensor *a, wg_tensor *b) {
    return wg_elementwise(WG_LOGICAL_OR, a, b);
}
static inline wg_tensor *wg_logical_xor(wg_tensor *a, wg_tensor *b) {
    return wg_elementwise(WG_LOGICAL_XOR, a, b);
}
static inline wg_tensor *wg_logical_not(wg_tensor *x) {
    return wg_elementwise(WG_LOGICAL_NOT, x, NULL);
}

/* x is NaN [scope] */
static inline wg_tensor *wg_isnan(wg_tensor *x) { return wg_elementwise(WG_ISNAN, x, NULL); }
/* x is inf or -inf [scope] */
static inline wg_tensor *wg_isinf(wg_tensor *x) { return wg_elementwise(WG_ISINF, x, NULL); }
/* neither NaN nor infinite [scope] */
static inline wg_tensor *wg_isfinite(wg_tensor *x) { return wg_elementwise(WG_ISFINITE, x, NULL); }

/* ---- Activation functions ---- */

/* max(x, 0), which keeps the dtype of integers; derivative 0 at 0. The functions below cast
 * integers and bools to f32. [scope] */
static inline wg_tensor *wg_relu(wg_tensor *x) { return wg_elementwise(WG_RELU, x, NULL); }

/* x Phi(x) = x/2 (1 + erf(x / sqrt 2))   (Hendrycks & Gimpel 2016), the form of BERT. [scope] */
static inline wg_tensor *wg_gelu(wg_tensor *x) { return wg_elementwise(WG_GELU, x, NULL); }

/* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the form of GPT-2. [scope] */
static inline wg_tensor *wg_gelu_tanh(wg_tensor *x) {
    return wg_elementwise(WG_GELU_TANH, x, NULL);
}

/* x / (1 + e^-x), also known as swish   (Ramachandran et al. 2017), the form of LLaMA. NaN at -inf,
 * as in PyTorch. [scope] */
static inline wg_tensor *wg_silu(wg_tensor *x) { return wg_elementwise(WG_SILU, x, NULL); }

/* x tanh(log(1 + e^x))   (Misra 2020). NaN at -inf, as in PyTorch. [scope] */
static inline wg_tensor *wg_mish(wg_tensor *x) { return wg_elementwise(WG_MISH, x, NULL); }

/* log(1 / (1 + e^-x)), without overflow: PyTorch's logsigmoid. [scope] */
static inline wg_tensor *wg_log_sigmoid(wg_tensor *x) {
    return wg_elementwise(WG_LOG_SIGMOID, x, NULL);
}

/* x/6 + 1/2 limited to [0, 1]; derivative 0 at -3 and 3, as in PyTorch. [scope] */
static inline wg_tensor *wg_hardsigmoid(wg_tensor *x) {
    return wg_elementwise(WG_HARDSIGMOID, x, NULL);
}

/* x hardsigmoid(x)   (Howard et al. 2019); derivative 0 at -3 and 1 at 3, the values beyond these
 * kinks; NaN at -inf. [scope] */
static inline wg_tensor *wg_hardswish(wg_tensor *x) {
    return wg_elementwise(WG_HARDSWISH, x, NULL);
}

/* ---- Gated units, f(gate) value, of equal shapes   (Shazeer 2020). Fused. PyTorch's glu(x, axis)
 * is wg_glu of the second half of x and the first; wg_chunk gives the halves. ---- */

/* f: sigmoid [scope; SHAPE] */
static inline wg_tensor *wg_glu(wg_tensor *gate, wg_tensor *value) {
    return wg_elementwise(WG_GLU, gate, value);
}
/* f: silu [scope; SHAPE] */
static inline wg_tensor *wg_swiglu(wg_tensor *gate, wg_tensor *value) {
    return wg_elementwise(WG_SWIGLU, gate, value);
}
/* f: gelu [scope; SHAPE] */
static inline wg_tensor *wg_geglu(wg_tensor *gate, wg_tensor *value) {
    return wg_elementwise(WG_GEGLU, gate, value);
}
/* f: relu [scope; SHAPE] */
static inline wg_tensor *wg_reglu(wg_tensor *gate, wg_tensor *value) {
    return wg_elementwise(WG_REGLU, gate, value);
}

/* clang-format on */

/* ---- Three operands with broadcasting, in one pass (ops/elementwise/unary.c) ---- */

/* a + weight (b - a): a at weight 0, b at weight 1. Integers are cast to f32. [scope; SHAPE] */
WG_API wg_tensor *wg_lerp(wg_tensor *a, wg_tensor *b, wg_tensor *weight);

/* x + value a b. For integer operands, value must be an integer of their dtype.
 * [scope; SHAPE, DTYPE for bools, ARGUMENT] */
WG_API wg_tensor *wg_addcmul(wg_tensor *x, wg_tensor *a, wg_tensor *b, double value);

/* x + value a / b, true division: integers are cast to f32. [scope; SHAPE] */
WG_API wg_tensor *wg_addcdiv(wg_tensor *x, wg_tensor *a, wg_tensor *b, double value);

/* ---- Choosing by a condition (ops/elementwise/unary.c) ---- */

/* condition ? a : b, all three broadcast; condition is bool. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_where(wg_tensor *condition, wg_tensor *a, wg_tensor *b);

/* `value` where the bool mask, broadcast to x, is true, and x elsewhere. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_masked_fill(wg_tensor *x, wg_tensor *mask, double value);

/* ---- Views: no element is copied (ops/shape/view.c) ---- */

/* The same elements in row-major order under another shape; one size may be -1, which is inferred.
 * Copies only if no strides on the memory of x give that shape. [scope; SHAPE] */
WG_API wg_tensor *wg_reshape(wg_tensor *x, int ndim, const int64_t *shape);

/* Removes an axis of size 1. [scope; INDEX, SHAPE] */
WG_API wg_tensor *wg_squeeze(wg_tensor *x, int axis);

/* Adds an axis of size 1 before `axis`; -1 adds it last. [scope; INDEX, SHAPE] */
WG_API wg_tensor *wg_unsqueeze(wg_tensor *x, int axis);

/* Joins the axes from first_axis to last_axis into one, by reshape; a scalar becomes a vector of
 * size 1. [scope; INDEX, ARGUMENT if the first comes after the last] */
WG_API wg_tensor *wg_flatten(wg_tensor *x, int first_axis, int last_axis);

/* Splits one axis into `ndim` axes of these sizes, whose product is its size; one of them may be
 * -1, which is inferred. [scope; INDEX, SHAPE] */
WG_API wg_tensor *wg_unflatten(wg_tensor *x, int axis, int ndim, const int64_t *sizes);

/* Repeats axes of size 1, and new leading axes, up to the given shape by a stride of 0; a size of
 * -1 keeps the size of x. NumPy's broadcast_to. [scope; SHAPE] */
WG_API wg_tensor *wg_expand(wg_tensor *x, int ndim, const int64_t *shape);

/* Axis i of the result is axis order[i] of x; `order` is a permutation of all axes.
 * [scope; INDEX, SHAPE] */
WG_API wg_tensor *wg_permute(wg_tensor *x, int count, const int64_t *order);

/* Exchanges two axes. [scope; INDEX] */
WG_API wg_tensor *wg_transpose(wg_tensor *x, int axis_a, int axis_b);

/* Axis from[i] of x becomes axis to[i] of the result; unlisted axes keep their order. NumPy's
 * moveaxis. [scope; INDEX, ARGUMENT for more axes than a tensor has] */
WG_API wg_tensor *wg_movedim(wg_tensor *x, int count, const int64_t *from, const int64_t *to);

/* ---- Slices, diagonals and triangles (ops/shape/slice.c) ---- */

#define WG_END INT64_MAX /* the end of an axis, in wg_slice */

/* x[start:stop:step] along one axis, with Python's rules, as a view: negative start and stop count
 * from the end, and both are clamped to the axis. The step may be negative. WG_END means the end:
 * as stop of a positive step, the end of the axis; as start of a negative step, the last element;
 * as stop of a negative step, include element 0. [scope; INDEX, ARGUMENT for step 0] */
WG_API wg_tensor *wg_slice(wg_tensor *x, int axis, int64_t start, int64_t stop, int64_t step);

/* x[start:start + length] along one axis, as a view. A negative start counts from the end; the
 * whole range must lie within the axis. [scope; INDEX] */
WG_API wg_tensor *wg_narrow(wg_tensor *x, int axis, int64_t start, int64_t length);

/* The slice of x at an index of an axis, as a view without the axis; a negative index counts from
 * the end. [scope; INDEX] */
WG_API wg_tensor *wg_select(wg_tensor *x, int axis, int64_t index);

/* Splits an axis into `count` parts of the given sizes, whose sum is its size; `parts` receives the
 * views. Returns 0 or -1. [scope; SHAPE, INDEX] */
WG_API int wg_split(wg_tensor *x, int axis, int count, const int64_t *sizes, wg_tensor **parts);

/* Splits an axis into `count` parts of ceil(size / count); the last parts may be smaller or empty.
 * `parts` receives the views. Returns 0 or -1. [scope; ARGUMENT, INDEX] */
WG_API int wg_chunk(wg_tensor *x, int axis, int count, wg_tensor **parts);

/* The elements at i of axis_a and i + offset of axis_b, for every i where both exist, as a view.
 * The two axes are removed, and the diagonal becomes the last axis; it is empty for an offset
 * outside x. [scope; INDEX] */
WG_API wg_tensor *wg_diagonal(wg_tensor *x, int64_t offset, int axis_a, int axis_b);

/* Square matrices with the last axis of x (..., n) on the diagonal `offset`, and 0 elsewhere. The
 * result has one axis more than x; axis_a (rows) and axis_b (columns) have size n + |offset|.
 * [scope; INDEX, SHAPE] */
WG_API wg_tensor *wg_diag_embed(wg_tensor *x, int64_t offset, int axis_a, int axis_b);

/* Keeps the elements on and below (tril) or on and above (triu) the diagonal `diagonal` of the last
 * two axes, and sets all other elements to 0. [scope; SHAPE below rank 2] */
WG_API wg_tensor *wg_tril(wg_tensor *x, int64_t diagonal);
WG_API wg_tensor *wg_triu(wg_tensor *x, int64_t diagonal);

/* ---- Joining, reversing and repeating (ops/shape/arrange.c) ---- */

/* Joins tensors along an existing axis; their dtypes are promoted. [scope; SHAPE, INDEX] */
WG_API wg_tensor *wg_cat(int count, wg_tensor *const *tensors, int axis);

/* Joins tensors of equal shape along a new axis. [scope; SHAPE, INDEX] */
WG_API wg_tensor *wg_stack(int count, wg_tensor *const *tensors, int axis);

/* The coordinates of a grid: for each vector, of sizes n0, n1, ..., a view (n0, n1, ...). Output i
 * varies along axis i as vector i does, and is constant along all other axes: indexing "ij" of
 * NumPy and PyTorch. A scalar counts as a vector of size 1. Returns 0 or -1. [scope; SHAPE,
 * ARGUMENT for no vectors or more than WG_MAX_DIMS] */
WG_API int wg_meshgrid(int count, wg_tensor *const *vectors, wg_tensor **outputs);

/* x with the elements of the given axes in reverse order, as a view; `0, NULL` reverses all axes.
 * [scope; INDEX, ARGUMENT] */
WG_API wg_tensor *wg_flip(wg_tensor *x, int axis_count, const int64_t *axes);

/* Moves the elements along axis axes[i] by shifts[i] places, from the end around to the front;
 * negative shifts move them back. The shifts of an axis that is given twice add up. With axes NULL
 * there is one shift, of the elements in row-major order. [scope; INDEX, ARGUMENT] */
WG_API wg_tensor *wg_roll(wg_tensor *x, int count, const int64_t *shifts, const int64_t *axes);

/* x repeated repeats[i] times along each axis, as NumPy's tile and PyTorch's repeat. The last
 * repeat belongs to the last axis; missing repeats are 1, and extra ones add leading axes. The
 * result may be a view where nothing is repeated. [scope; ARGUMENT for negative or too many
 * repeats, SHAPE] */
WG_API wg_tensor *wg_tile(wg_tensor *x, int count, const int64_t *repeats);

/* Each element of an axis `repeats` times in a row: NumPy's repeat. The result may be a view where
 * nothing is repeated. [scope; INDEX, ARGUMENT for negative repeats, SHAPE] */
WG_API wg_tensor *wg_repeat_interleave(wg_tensor *x, int64_t repeats, int axis);

/* ---- Windows and padding (ops/shape/unfold_pad.c) ---- */

/* The windows of `size` elements that begin at every step-th place of an axis, as PyTorch's unfold:
 * the axis then counts windows, and a new last axis runs through each window. The result is a view;
 * overlapping windows share their elements. [scope; INDEX, SHAPE if x is shorter than a window,
 * ARGUMENT for a size or step below 1] */
WG_API wg_tensor *wg_unfold(wg_tensor *x, int axis, int64_t size, int64_t step);

typedef enum wg_pad_mode {
    WG_PAD_CONSTANT,  /* v v | 0 1 2 3 | v v */
    WG_PAD_REFLECT,   /* 2 1 | 0 1 2 3 | 2 1; at most the size less 1 */
    WG_PAD_REPLICATE, /* 0 0 | 0 1 2 3 | 3 3 (NumPy's "edge") */
    WG_PAD_CIRCULAR   /* 2 3 | 0 1 2 3 | 0 1; at most the size (NumPy's "wrap") */
} wg_pad_mode;

/* Pads the last axis_count axes of x at both ends. `widths` holds the pair (before, after) of each
 * axis, first axis first as in NumPy (PyTorch begins with the last axis); negative widths crop.
 * `value` is the number v of WG_PAD_CONSTANT. [scope; SHAPE where the mode or the cropping needs
 * more elements than there are, ARGUMENT] */
WG_API wg_tensor *wg_pad(wg_tensor *x, int axis_count, const int64_t *widths, wg_pad_mode mode,
                         double value);

/* ---- Reductions over axes (ops/reduce/reduce.c) ---- */

/* Reduced axes are removed, or kept with size 1 by keepdim. */

/* The sum; integers and bools sum in i64. [scope; INDEX] */
WG_API wg_tensor *wg_sum(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);

/* The mean; integers are cast to f32. The mean of no elements is NaN. [scope; INDEX] */
WG_API wg_tensor *wg_mean(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);

/* The variance, sum (x - mean)^2 / (n - correction). Correction 1 gives the unbiased variance, 0
 * the population variance. Integers are cast to f32; n - correction is at least 0.
 * [scope; INDEX] */
WG_API wg_tensor *wg_var(wg_tensor *x, int axis_count, const int64_t *axes, double correction,
                         bool keepdim);

/* The standard deviation, the square root of wg_var. Where it is 0 its derivative is 0, as in
 * PyTorch. [scope; INDEX] */
WG_API wg_tensor *wg_std(wg_tensor *x, int axis_count, const int64_t *axes, double correction,
                         bool keepdim);

/* x summed over the axes along which broadcasting repeated it, back to `shape`: the adjoint of
 * wg_expand. [scope; SHAPE] */
WG_API wg_tensor *wg_sum_to(wg_tensor *x, int ndim, const int64_t *shape);

/* The product; integers and bools multiply in i64. The product of no elements is 1. The gradient is
 * exact beside any number of zeros, to any order. [scope; INDEX] */
WG_API wg_tensor *wg_prod(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);

/* The p-norm of vectors, (sum |x|^p)^(1/p), for any p: INFINITY gives the largest |x|, -INFINITY
 * the smallest, 0 the number of elements that are not 0. Integers are cast to f32. This is
 * PyTorch's linalg.vector_norm; wg_matrix_norm has the norms of matrices. Kinks are treated as in
 * PyTorch: the derivative is 0 for |x| at 0, for a norm of 0 and for order 0; tied largest or
 * smallest elements share the gradient evenly. [scope; INDEX, ARGUMENT for NaN, SHAPE for no
 * elements with p < 0 or infinite] */
WG_API wg_tensor *wg_norm(wg_tensor *x, double p, int axis_count, const int64_t *axes,
                          bool keepdim);

/* log sum e^x, computed from x - max, so that no exponential overflows; integers are cast to f32.
 * The result is -inf for no elements and for elements that are all -inf; there the gradient is NaN,
 * as in PyTorch. [scope; INDEX] */
WG_API wg_tensor *wg_logsumexp(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);

/* Whether any, and whether all of the elements are not 0, as bool; NaN is not 0. Of no elements:
 * false and true. PyTorch gives u8 for u8, this gives bool. No gradient. [scope; INDEX] */
WG_API wg_tensor *wg_any(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);
WG_API wg_tensor *wg_all(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);

/* How many elements are not 0, as i64. No gradient. [scope; INDEX] */
WG_API wg_tensor *wg_count_nonzero(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);

/* ---- Quantiles and histograms (ops/reduce/statistics.c) ---- */

/* The value at a rank r between two elements. "linear", PyTorch's default, interpolates by the
 * fraction of r; "lower" and "higher" take one element, "midpoint" the mean of both, and "nearest"
 * the nearer element (halfway, the element of even rank). */
typedef enum wg_quantile_interpolation {
    WG_QUANTILE_LINEAR,
    WG_QUANTILE_LOWER,
    WG_QUANTILE_HIGHER,
    WG_QUANTILE_MIDPOINT,
    WG_QUANTILE_NEAREST
} wg_quantile_interpolation;

/* The quantiles q, from 0 to 1, of the n elements along an axis: those at rank q (n - 1) in
 * ascending order. q: () or (Q)   ->   the shape of x without the axis, or with size 1 there
 * (keepdim), behind an axis Q for several. Integers are cast to f32; q is cast to the dtype of x. A
 * line with NaN has the quantile NaN; nanquantile leaves NaN out, and gives it for lines of nothing
 * else. Both x and q have gradients. [scope; INDEX, SHAPE for no elements, ARGUMENT for a q that is
 * not from 0 to 1] */
WG_API wg_tensor *wg_quantile(wg_tensor *x, wg_tensor *q, int axis, bool keepdim,
                              wg_quantile_interpolation interpolation);

/* wg_quantile without the NaN of each line. [scope; as wg_quantile] */
WG_API wg_tensor *wg_nanquantile(wg_tensor *x, wg_tensor *q, int axis, bool keepdim,
                                 wg_quantile_interpolation interpolation);

/* How many elements of x lie in each of `bins` bins of equal width from low to high: (bins), in the
 * dtype of x as in PyTorch (integers are cast to f32). The last bin includes `high`; elements
 * outside and NaN do not count. If low and high are both 0, they are the smallest and the largest
 * element. No gradient. [scope; ARGUMENT] */
WG_API wg_tensor *wg_histc(wg_tensor *x, int64_t bins, double low, double high);

/* The same with bins between ascending edges (B + 1): how many elements lie in [edge, next edge),
 * the last bin including its end; with weights, of the shape of x, their sum. With `density`
 * divided by the sum over all bins and by the width of each. (B), in the dtype of x. Weights NULL:
 * 1 each; they alone have a gradient. Returns NULL while an error is pending. [scope; SHAPE,
 * ARGUMENT] */
WG_API wg_tensor *wg_histogram(wg_tensor *x, wg_tensor *edges, wg_tensor *weights, bool density);

/* ---- The largest and the smallest (ops/reduce/reduce.c) ---- */

/* The largest or smallest over axes: PyTorch's amax and amin; NaN if there is one. Tied elements
 * share the gradient evenly. [scope; INDEX, SHAPE for no elements] */
WG_API wg_tensor *wg_max(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);
WG_API wg_tensor *wg_min(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);

/* The i64 index of the first largest or first smallest element along one axis; of the first NaN, if
 * there is one. No gradient. [scope; INDEX, SHAPE for no elements] */
WG_API wg_tensor *wg_argmax(wg_tensor *x, int axis, bool keepdim);
WG_API wg_tensor *wg_argmin(wg_tensor *x, int axis, bool keepdim);

/* ---- Scans along one axis (ops/reduce/scan.c) ---- */

/* y_i = a_i y_(i-1) + b_i, a linear recurrence, as in state-space models and exponential averages,
 * from y_(-1) = initial. a and b broadcast, and initial to their shape without the axis; a NULL
 * initial means 0, and a_0 is not used then. Integers are cast to f32. [scope; INDEX, SHAPE] */
WG_API wg_tensor *wg_linear_scan(wg_tensor *a, wg_tensor *b, int axis, wg_tensor *initial);

/* x_0 + ... + x_i, and x_0 ... x_i, at each place i; integers and bools in i64. f32 and bf16
 * accumulate in f64. The gradient of cumprod is exact beside any number of zeros, to any order.
 * [scope; INDEX] */
WG_API wg_tensor *wg_cumsum(wg_tensor *x, int axis);
WG_API wg_tensor *wg_cumprod(wg_tensor *x, int axis);

/* log(e^x_0 + ... + e^x_i) at each place i, without overflow; integers are cast to f32. The
 * gradient is NaN where the result is -inf. [scope; INDEX] */
WG_API wg_tensor *wg_logcumsumexp(wg_tensor *x, int axis);

/* The largest or smallest of x_0 ... x_i at each place i, and its i64 index. Of equal elements and
 * of NaNs the last one counts and gets the gradient, as in PyTorch. Pass NULL for `values` or
 * `indices` if they are not needed. Returns 0 or -1. [scope; INDEX] */
WG_API int wg_cummax(wg_tensor *x, int axis, wg_tensor **values, wg_tensor **indices);
WG_API int wg_cummin(wg_tensor *x, int axis, wg_tensor **values, wg_tensor **indices);

/* ---- Softmax and normalization (ops/reduce/softmax.c, norm.c) ---- */

/* e^x / sum e^x along one axis, computed from x - max. A row that is all -inf gives zeros.
 * [scope; INDEX, DTYPE] */
WG_API wg_tensor *wg_softmax(wg_tensor *x, int axis);

/* x - log sum e^x along one axis. [scope; INDEX, DTYPE] */
WG_API wg_tensor *wg_log_softmax(wg_tensor *x, int axis);

/* (x - mean) / sqrt(var + eps) * weight + bias over the last axis   (Ba et al. 2016, eq. 4).
 * x: (..., C)   weight, bias: (C), either may be NULL. Fused. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_layer_norm_op(wg_tensor *x, wg_tensor *weight, wg_tensor *bias, double eps);

/* x / sqrt(mean(x^2) + eps) * weight over the last axis, as in LLaMA, or with eps_outside
 * x / (sqrt(mean(x^2)) + eps) * weight, as in the paper's code   (Zhang & Sennrich 2019, eq. 4).
 * x: (..., C)   weight: (C) or NULL. Fused. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_rms_norm_op(wg_tensor *x, wg_tensor *weight, double eps, bool eps_outside);

/* Normalizes each channel over the batch, and over all places of it   (Ioffe & Szegedy 2015, alg.
 * 1):
 *
 *     y = (x - mean) / sqrt(variance + eps) * weight + bias
 *
 * x: (B, C, ...)   weight, bias: (C), either may be NULL   ->   y as x, mean and (biased) variance
 * (C), f32 for a bf16 x. Pass NULL for `mean` or `variance` if they are not needed. Fused. Returns
 * 0 or -1. [scope; SHAPE, also for a channel without values; DTYPE] */
WG_API int wg_batch_norm_op(wg_tensor *x, wg_tensor *weight, wg_tensor *bias, double eps,
                            wg_tensor **y, wg_tensor **mean, wg_tensor **variance);

/* The same by a given mean and variance of each channel, (C), as batch norm in evaluation. Fused.
 * [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_normalize_channels(wg_tensor *x, wg_tensor *mean, wg_tensor *variance,
                                        wg_tensor *weight, wg_tensor *bias, double eps);

/* ---- Indexing along one axis (ops/index/index.c) ---- */

/* Indices are i64 or i32. Negative ones are out of range, except in wg_take_along_axis and wg_take,
 * where they count from the end. */

/* y[..i..] = x[..index[..i..]..] along `axis`. index has the rank of x and is at most as large as x
 * along every other axis; y has the shape of index. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_gather(wg_tensor *x, int axis, wg_tensor *index);

/* The slices of x at index (n) along one axis. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_index_select(wg_tensor *x, int axis, wg_tensor *index);

/* Rows of a table.   weight: (V, C)   index: (...)   ->   (..., C). The gradient is added up in the
 * rows that were used, except row padding_index (-1: none), which gets none.
 * [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_embedding_op(wg_tensor *weight, wg_tensor *index, int64_t padding_index);

/* index (...) -> (..., classes), i64, with a 1 at each index and 0 elsewhere. No gradient.
 * [scope; INDEX, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_one_hot(wg_tensor *index, int64_t classes);

/* y[..i..] = x[..index[..i..]..] along `axis`. x and index have the same rank; their further axes
 * broadcast. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_take_along_axis(wg_tensor *x, int axis, wg_tensor *index);

/* The elements of x with these numbers in row-major order, in the shape of the index: NumPy's take
 * without an axis, PyTorch's take. [scope; INDEX, DTYPE] */
WG_API wg_tensor *wg_take(wg_tensor *x, wg_tensor *index);

/* A copy of x with src[..i..] added at [..index[..i..]..] along `axis`; src has the shape of index.
 * [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_scatter_add(wg_tensor *x, int axis, wg_tensor *index, wg_tensor *src);

/* A copy of x with src[..i..] stored at [..index[..i..]..] along `axis`; src has the shape of
 * index. Of several values for one place the last in row-major order is stored, and only that one
 * has a gradient. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_scatter(wg_tensor *x, int axis, wg_tensor *index, wg_tensor *src);

/* ---- Ops whose results are indices or counts (ops/index/advanced_index.c) ---- */

/* The coordinates of the elements that are not 0, in row-major order: (count, rank of x), i64. No
 * gradient. [scope] */
WG_API wg_tensor *wg_nonzero(wg_tensor *x);

/* How often each number occurs in x, of rank 1 and dtype i64 or i32: (max(x) + 1), or (min_length)
 * if that is longer, i64. With weights, of the shape of x, the sum of the weights of each number,
 * in their dtype (f64 for integers); the gradient of the weights is gathered. Returns NULL while an
 * error is pending. [scope; SHAPE, DTYPE, INDEX for negative numbers, ARGUMENT] */
WG_API wg_tensor *wg_bincount(wg_tensor *x, wg_tensor *weights, int64_t min_length);

/* For each value, the number of elements of an ascending row that are less than it (with `right`,
 * less or equal): the i64 place where inserting it keeps the row sorted. sorted: (n), or (..., n)
 * with the leading axes of the values. Dtypes are promoted; NaN sorts after all numbers. No
 * gradient. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_searchsorted(wg_tensor *sorted, wg_tensor *values, bool right);

/* ---- Indexing by several tensors and by masks (ops/index/advanced_index.c) ---- */

/* These follow NumPy's advanced indexing. Each index belongs to the next axis of x. It is i64 or
 * i32 (negative ones count from the end), or NULL for the whole axis, Python's `:`. A bool index of
 * rank r covers r axes and means the coordinates of its true elements. Axes after the last index
 * are taken whole. There are at most 6 indices. Since NULL is an index, the functions return NULL
 * while an error is pending. */

/* x[i, j, ...]: the indices are broadcast against each other, and their shape replaces the axes
 * that have an index. If there is a NULL between two indices, their shape comes first.
 *
 *     wg_index(x, WG_TENSORS(mask))           x[mask]
 *     wg_index(x, WG_TENSORS(NULL, rows))     x[:, rows]
 *
 * [scope; SHAPE, INDEX, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_index(wg_tensor *x, int count, wg_tensor *const *indices);

/* A copy of x with the values, broadcast and cast to its dtype, stored at x[i, j, ...], or added
 * there if `accumulate` is true. Of several values stored at one place the last one stays, and only
 * that one has a gradient. [scope; SHAPE, INDEX, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_index_put(wg_tensor *x, int count, wg_tensor *const *indices,
                               wg_tensor *values, bool accumulate);

/* The elements of x where the bool mask is true, in row-major order: (count). The two broadcast.
 * [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_masked_select(wg_tensor *x, wg_tensor *mask);

/* A copy of x. Where the bool mask, broadcast to x, is true, the first elements of source, cast to
 * the dtype of x, replace the elements in row-major order. [scope; SHAPE, also for a source that is
 * too short; DTYPE] */
WG_API wg_tensor *wg_masked_scatter(wg_tensor *x, wg_tensor *mask, wg_tensor *source);

/* ---- Sorting and choosing by rank (ops/index/sort.c) ---- */

/* NaN comes after all numbers; -0 and 0 are equal. Rows are sorted in parallel, each in a time
 * linear in its length. */

/* The elements along one axis in ascending or descending order, and the i64 indices where they come
 * from; equal elements keep their order. The gradient goes back to where the values come from. Pass
 * NULL for `values` or `indices` if they are not needed. Returns 0 or -1. [scope; INDEX] */
WG_API int wg_sort(wg_tensor *x, int axis, bool descending, wg_tensor **values,
                   wg_tensor **indices);

/* The indices of wg_sort alone. No gradient. [scope; INDEX] */
WG_API wg_tensor *wg_argsort(wg_tensor *x, int axis, bool descending);

/* The k largest or smallest elements along one axis, in order, and their i64 indices: the first k
 * of wg_sort. Of equal elements the first come first (PyTorch does not specify this). Pass NULL for
 * `values` or `indices` if they are not needed. Returns 0 or -1.
 * [scope; INDEX, ARGUMENT for k beyond the axis] */
WG_API int wg_topk(wg_tensor *x, int64_t k, int axis, bool largest, wg_tensor **values,
                   wg_tensor **indices);

/* The middle element in order along one axis, of an even number the lower one, as in PyTorch; NaN
 * if there is one. The gradient goes to that element, of equal elements to one. [scope; INDEX,
 * SHAPE for no elements] */
WG_API wg_tensor *wg_median(wg_tensor *x, int axis, bool keepdim);

/* The distinct values of x in ascending order (U), where all NaNs are one value as in NumPy; for
 * each element of x the i64 index of its value, in the shape of x; and how often each value occurs,
 * i64 (U). Pass NULL for results that are not needed. No gradient. Returns 0 or -1. [scope] */
WG_API int wg_unique(wg_tensor *x, wg_tensor **values, wg_tensor **inverse, wg_tensor **counts);

/* ---- Segments of rows (ops/index/segment.c) ---- */

typedef enum wg_segment_reduction {
    WG_SEGMENT_SUM,
    WG_SEGMENT_MEAN,
    WG_SEGMENT_MAX, /* NaN if there is one; ties share the gradient */
    WG_SEGMENT_MIN
} wg_segment_reduction;

/* Reduces the rows offsets[s] up to offsets[s + 1] of x to row s, as torch.segment_reduce does.
 * x: (N, ...)   offsets: (S + 1), i64 or i32, ascending from 0 to N   ->   (S, ...)
 * Segments without rows become `empty`: PyTorch has 0 for sums, NaN for means, -inf and inf for the
 * largest and the smallest. Integers are cast to f32. [scope; SHAPE, INDEX, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_segment_reduce(wg_tensor *x, wg_tensor *offsets,
                                    wg_segment_reduction reduction, double empty);

/* The same of rows in any order, where row i belongs to segment ids[i]: what graph networks call
 * scatter, which has 0 for segments without rows.
 * x: (N, ...)   ids: (N), i64 or i32, from 0 to segments - 1   ->   (segments, ...)
 * [scope; SHAPE, INDEX, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_unsorted_segment_reduce(wg_tensor *x, wg_tensor *ids, int64_t segments,
                                             wg_segment_reduction reduction, double empty);

/* ---- Matrix products (ops/linalg/matmul.c) ---- */

/* a: (..., M, K)   b: (..., K, N)   ->   (..., M, N). Leading axes broadcast; a vector is a row on
 * the left and a column on the right, as in NumPy's @. GEMM takes operands of any strides without a
 * copy. Integers wrap around. PyTorch's bmm and mm are the same. [scope; SHAPE, DTYPE for bools] */
WG_API wg_tensor *wg_matmul(wg_tensor *a, wg_tensor *b);

/* Mixed precision   (Micikevicius et al. 2018; Kalamkar et al. 2019 for bf16). With WG_BF16, the
 * products of f32 tensors that this thread makes from now on round their operands to bf16 (to
 * nearest, ties to even) and sum in f32: wg_matmul, wg_linear_op, wg_linear_cross_entropy and the
 * functions and layers that call them. wg_attention rounds queries, keys and values, and multiplies
 * them in f32. For backward, linear layers, attention and the fused activations save their operands
 * in bf16, in half the memory. Backward rounds in the calls whose forward pass did, whatever is set
 * by then. Tensors stay f32, as do all other ops, and f64 is not rounded.
 *
 * A sum begins with 0, the bias or the elements it is added to. For each pair along the inner axis
 * the second product is added, then the first, each with one rounding. So the bits are the same on
 * every processor with fused multiply-adds; but AVX512-BF16 takes numbers and sums below 2^-126 for
 * 0, and AMX sums in another order. NaN and infinities follow IEEE 754. Returns the previous dtype;
 * initially WG_F32. [DTYPE for another dtype than f32 and bf16, which changes nothing] */
WG_API wg_dtype wg_set_matmul_dtype(wg_dtype dtype);

/* The product of a linear layer, x W^T + bias.
 * x: (..., I)   weight: (O, I)   bias: (O) or NULL   ->   (..., O)
 * Fused; the gradient of weight is accumulated in place. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_linear_op(wg_tensor *x, wg_tensor *weight, wg_tensor *bias);

/* ---- Products of groups of rows (ops/linalg/matmul.c) ---- */

/* The products of a mixture of experts: rows offsets[e] up to offsets[e + 1] of a times matrix e.
 * a: (T, K), sorted by expert   b: (E, K, N)   ->   (T, N)
 * offsets: (E + 1), i64 or i32, ascending from 0 to T; PyTorch's offs lack the first of them.
 * If b has rank 2, the groups lie along the axis that is summed over, as in gradients:
 * a: (K, T)   b: (T, N)   ->   (E, K, N), product e of the columns and rows of group e
 * Each group is a packed product, in both directions. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_grouped_mm(wg_tensor *a, wg_tensor *b, wg_tensor *offsets);

/* ---- Distances (ops/linalg/distance.c) ---- */

/* The distance of each row of a from each row of b, the p-norm of their difference, p >= 0 or
 * INFINITY; 0 counts the coordinates that differ.
 * a: (..., P, M)   b: (..., R, M)   ->   (..., P, R), the leading axes broadcast
 * Where a distance is 0 its derivative is 0, as in PyTorch. Euclidean distances of many points are
 * a matrix product; pairs near each other are computed from their differences, because the digits
 * of the product would cancel. Integers are cast to f32. Fused. [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_cdist(wg_tensor *a, wg_tensor *b, double p);

/* ---- Quantized weights (ops/linalg/quantized.c; quantize.h has the quantizations) ---- */

/* Quantizes the rows of x, (..., I) f32 -> (..., bytes) u8, and dequantizes them to f32 again. I is
 * a multiple of the quantization's block. No gradient. [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_quantize(wg_tensor *x, wg_quantization quantization);
WG_API wg_tensor *wg_dequantize(wg_tensor *quantized, wg_quantization quantization);

/* x W^T + bias with a quantized W, which f32 kernels read without dequantizing it first: generating
 * text one token at a time is limited by the speed of reading weights.
 * x: (..., I)   weight: (O, bytes) u8   bias: (O) or NULL   ->   (..., O)
 *
 * In f32, blocks of integers are multiplied as in llama.cpp: each group of 32 elements of a row of
 * x is rounded to integers from -127 to 127 times (its largest magnitude / 127), and products of
 * integers are summed. For normally distributed x this changes y by about 0.5 % of its size. A row
 * of x gives the same bits alone and among other rows. bf16 weights use x as it is for up to 16
 * rows; more rows are rounded to bf16 if the processor multiplies bf16. In f64, and for gradients
 * and tangents, nothing is rounded. [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_quantized_linear(wg_tensor *x, wg_tensor *weight, wg_quantization quantization,
                                      wg_tensor *bias);

#define WG_MAX_QUANTIZED_WEIGHTS 3

/* ---- Sums of products (ops/linalg/einsum.c) ---- */

/* The sum, over every label that the result lacks, of the product of all operands, in Einstein's
 * notation as NumPy and PyTorch write it.
 *
 *     "ij,jk->ik"         a matrix product          "bqhd,bkhd->bhqk"   scores of attention
 *     "ii->i"  "ii"       a diagonal, the trace     "i,j->ij"           an outer product
 *     "...ij,...jk"       as wg_matmul
 *
 * There is one term for each operand and one letter (a-z, A-Z) for each axis. A letter that occurs
 * twice in a term takes the diagonal of two axes of equal size. Between operands, sizes of 1 are
 * repeated. "..." means the axes of a term that have no letter; they broadcast. Without "->", the
 * result has "..." and the letters that occur once, in the order of ASCII. Spaces between tokens
 * are ignored.
 *
 * Up to 32 operands are multiplied in the order that costs least, each time by wg_matmul on views,
 * or by wg_mul where nothing is summed over. Dtypes are promoted; integers wrap around. The result
 * may be a view, of any strides. [scope; SHAPE, ARGUMENT, DTYPE for bools] */
WG_API wg_tensor *wg_einsum(const char *equation, int count, wg_tensor *const *operands);

/* ---- Other products (ops/linalg/matmul.c, einsum.c) ---- */

/* The sum over `count` pairs of axes, axes_a[i] of a with axes_b[i] of b, which have equal sizes.
 * The result has the remaining axes of a, then the remaining axes of b. A count of 0 gives the
 * product of every element of a with every element of b. NumPy's axes=N pairs the last N axes of a
 * with the first N of b.
 * [scope; INDEX, SHAPE, ARGUMENT, DTYPE for bools] */
WG_API wg_tensor *wg_tensordot(wg_tensor *a, wg_tensor *b, int count, const int64_t *axes_a,
                               const int64_t *axes_b);

/* All elements of a times all elements of b: (M) x (N) -> (M, N). Other ranks are flattened, as in
 * NumPy. [scope; SHAPE if the result is too large] */
WG_API wg_tensor *wg_outer(wg_tensor *a, wg_tensor *b);

/* The sum of a[i] b[i] of two vectors of equal size: a rank-0 tensor, of their dtype.
 * [scope; SHAPE, DTYPE for bools] */
WG_API wg_tensor *wg_dot(wg_tensor *a, wg_tensor *b);

/* beta c + alpha a b, by one GEMM onto a copy of c.   a: (M, K)   b: (K, N)   c: broadcasts to
 * (M, N). With beta 0, c is not read, so its NaNs do not matter. For integers, the factors must be
 * integers. [scope; SHAPE, ARGUMENT, DTYPE for bools] */
WG_API wg_tensor *wg_addmm(wg_tensor *c, wg_tensor *a, wg_tensor *b, double beta, double alpha);

/* ---- Systems of equations and determinants, by LAPACK (ops/linalg/solve.c) ---- */

/* Here and in the two sections below, matrices are the last two axes, of f32 or f64 (integers are
 * cast to f32, bf16 is computed in f32), and leading axes are a batch. Names, arguments and results
 * follow torch.linalg. All functions have derivatives of any order and forward mode, unless their
 * contract says otherwise. A derivative that does not exist is an error of backward, GRADIENT.
 * Matrices of a batch are treated in parallel, each on one thread, so results do not depend on
 * threads. LAPACK is called for one matrix at a time unless it is known to allow calls by several
 * threads (wg_kernels.lapack_at_once). */

/* X with A X = B, by LU with partial pivoting, or with from_right (PyTorch's left=False) X A = B.
 * a: (..., N, N)   b: (..., N, K)   ->   (..., N, K); or b: (..., N) -> (..., N), if b is of rank 1
 * or has the shape of a without its last axis. Leading axes broadcast. For b of vectors from_right
 * must be false. [scope; SHAPE, DTYPE, ARGUMENT for a singular a] */
WG_API wg_tensor *wg_solve(wg_tensor *a, wg_tensor *b, bool from_right);

/* The same with the upper or the lower triangle of a. Elements outside of it are not read. With
 * `unit` (PyTorch's unitriangular) the diagonal is not read either and taken as ones.
 * [scope; SHAPE, DTYPE, ARGUMENT for a 0 on the diagonal] */
WG_API wg_tensor *wg_solve_triangular(wg_tensor *a, wg_tensor *b, bool upper, bool unit,
                                      bool from_right);

/* A^-1: (..., N, N). wg_solve is faster and more exact than a product with it.
 * [scope; SHAPE, DTYPE, ARGUMENT for a singular a] */
WG_API wg_tensor *wg_inv(wg_tensor *a);

/* det A: (..., N, N) -> (...), 0 of a singular one, where backward fails.
 * [scope; SHAPE, DTYPE; GRADIENT in backward] */
WG_API wg_tensor *wg_det(wg_tensor *a);

/* The sign of det A and log |det A|, (...) each, which neither overflow nor underflow: 0 and -inf
 * of a singular matrix, where backward fails. The sign has no gradient. Pass NULL for outputs that
 * you do not need. Returns 0 or -1. [scope; SHAPE, DTYPE; GRADIENT in backward] */
WG_API int wg_slogdet(wg_tensor *a, wg_tensor **sign, wg_tensor **logabsdet);

/* ---- Decompositions, by LAPACK (ops/linalg/decompose.c) ---- */

/* Functions of symmetric matrices read (A + A^T) / 2 of their operand A, so that their gradients
 * are symmetric; PyTorch reads the lower triangle. */

/* The lower triangle L with L L^T = A, or the upper one, L^T.   a: (..., N, N)   ->   (..., N, N)
 * [scope; SHAPE, DTYPE, ARGUMENT if a is not positive definite] */
WG_API wg_tensor *wg_cholesky(wg_tensor *a, bool upper);

/* A = Q R with orthonormal columns of Q and an upper triangle R, by Householder's reflections; the
 * diagonal of R may be negative.   a: (..., M, N)   K = min(M, N)   ->   Q (..., M, K), R (..., K,
 * N); with `complete` Q (..., M, M), R (..., M, N). Pass NULL for outputs that you do not need.
 * Returns 0 or -1. Derivatives need independent columns, the first K of a wide matrix; a complete Q
 * with M > N has no derivative. [scope; SHAPE, DTYPE; GRADIENT or ARGUMENT in backward] */
WG_API int wg_qr(wg_tensor *a, bool complete, wg_tensor **q, wg_tensor **r);

/* A = V diag(w) V^T of a symmetric A: eigenvalues (..., N) in ascending order, and eigenvectors,
 * the columns of V (..., N, N), of either sign. Pass NULL for outputs that you do not need. Returns
 * 0 or -1. Eigenvectors of eigenvalues that are equal, but for rounding, have no derivative:
 * backward through them fails, as does forward mode; backward through the eigenvalues alone works.
 * [scope; SHAPE, DTYPE, ARGUMENT for infinite elements and NaN; GRADIENT in backward] */
WG_API int wg_eigh(wg_tensor *a, wg_tensor **eigenvalues, wg_tensor **eigenvectors);
WG_API wg_tensor *wg_eigvalsh(wg_tensor *a); /* the eigenvalues alone */

/* A = U diag(S) V^T with orthonormal columns of U and V, and S in descending order, >= 0.
 * a: (..., M, N)   K = min(M, N)   ->   U (..., M, K), S (..., K), V^T (..., K, N); with
 * full_matrices U (..., M, M), V^T (..., N, N). Pass NULL for outputs that you do not need. Returns
 * 0 or -1. Some singular vectors have no derivative: of singular values that are equal but for
 * rounding, of a singular value 0 where M != N, and the vectors that full_matrices adds. Backward
 * and forward mode through them fail; backward through S alone works.
 * [scope; SHAPE, DTYPE, ARGUMENT for infinite elements and NaN; GRADIENT in backward] */
WG_API int wg_svd(wg_tensor *a, bool full_matrices, wg_tensor **u, wg_tensor **s, wg_tensor **vt);
WG_API wg_tensor *wg_svdvals(wg_tensor *a); /* S alone */

/* ---- Functions of matrices (ops/linalg/matrix_functions.c) ---- */

/* The X that minimizes |A X - B|; of several, the one with the least norm. By QR.
 * a: (..., M, N) of full rank   b: (..., M, K) or (M)   ->   (..., N, K) or (..., N)
 * Leading axes broadcast. [scope; SHAPE, DTYPE, ARGUMENT if a has not full rank] */
WG_API wg_tensor *wg_lstsq(wg_tensor *a, wg_tensor *b);

/* The pseudoinverse of Moore and Penrose, (..., M, N) -> (..., N, M), over the singular values
 * above rtol times the largest; an rtol of 0 is PyTorch's default, max(M, N) times the epsilon of
 * the dtype; WG_ZERO is an rtol of 0. The derivative is that at constant rank. [scope; SHAPE,
 * DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_pinv(wg_tensor *a, double rtol);

/* A^n by repeated squaring: the identity for n = 0, a power of the inverse for n < 0.
 * a: (..., N, N)   ->   (..., N, N) [scope; SHAPE, DTYPE, ARGUMENT for a singular a and n < 0] */
WG_API wg_tensor *wg_matrix_power(wg_tensor *a, int64_t n);

/* e^A = 1 + A + A^2 / 2! + ..., by scaling and squaring with Pade's approximant   (Higham 2005).
 * a: (..., N, N)   ->   (..., N, N) [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_matrix_exp(wg_tensor *a);

/* PyTorch's ord: "fro", "nuc", 2, -2, 1, -1, inf and -inf. */
typedef enum wg_matrix_norm_order {
    WG_MATRIX_NORM_FRO,      /* Frobenius': the root of the sum of squares */
    WG_MATRIX_NORM_NUC,      /* nuclear: the sum of the singular values */
    WG_MATRIX_NORM_2,        /* spectral: the largest singular value */
    WG_MATRIX_NORM_MINUS_2,  /* the smallest */
    WG_MATRIX_NORM_1,        /* the largest sum of |a| down a column */
    WG_MATRIX_NORM_MINUS_1,  /* the smallest */
    WG_MATRIX_NORM_INF,      /* the largest sum of |a| along a row */
    WG_MATRIX_NORM_MINUS_INF /* the smallest */
} wg_matrix_norm_order;

/* A norm of matrices, (..., M, N) -> (...), or (..., 1, 1) with keepdim. Kinks at ties, which share
 * the gradient, and of the nuclear norm at singular values of 0. [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_matrix_norm(wg_tensor *a, wg_matrix_norm_order order, bool keepdim);

/* ---- Fourier transforms (ops/fft/fft.c) ---- */

/* The factors of the transforms of n numbers: PyTorch's norm. */
typedef enum wg_fft_norm {
    WG_FFT_BACKWARD, /* the inverse by 1/n: the default of PyTorch and NumPy */
    WG_FFT_ORTHO,    /* both by 1/sqrt(n) */
    WG_FFT_FORWARD   /* fft by 1/n, the inverse not at all */
} wg_fft_norm;

/* Transforms along the given axes in turn. Complex numbers are pairs (re, im) on the last axis, as
 * torch.view_as_real gives them, and axes are counted without it: -1 is the axis before the pairs.
 * `sizes` has a size for each axis; NULL, or a size 0, keeps the size of x. Another size n keeps
 * the first n numbers of the axis, or appends zeros to them. Derivatives of any order are
 * transforms again. Integers are cast to f32; bf16 is computed in f32. */

/* y_k = sum_j x_j e^(-2 pi i j k / n).
 * x: (..., N, ..., 2)   ->   (..., n, ..., 2) [scope; INDEX, SHAPE, ARGUMENT] */
WG_API wg_tensor *wg_fft(wg_tensor *x, int axis_count, const int64_t *axes, const int64_t *sizes,
                         wg_fft_norm norm);

/* The inverse of wg_fft, with e^(2 pi i j k / n). [scope; as wg_fft] */
WG_API wg_tensor *wg_ifft(wg_tensor *x, int axis_count, const int64_t *axes, const int64_t *sizes,
                          wg_fft_norm norm);

/* The transform of real numbers: the first n/2 + 1 numbers along the last of the axes. All further
 * numbers are conjugates of these.
 * x: (..., N, ...)   ->   (..., n/2 + 1, ..., 2) [scope; INDEX, SHAPE, ARGUMENT] */
WG_API wg_tensor *wg_rfft(wg_tensor *x, int axis_count, const int64_t *axes, const int64_t *sizes,
                          wg_fft_norm norm);

/* The inverse of rfft: n real numbers along the last of the axes, 2 (M - 1) of them if n is 0. The
 * imaginary parts of numbers 0 and, for an even n, n/2 are not read.
 * x: (..., M, ..., 2)   ->   (..., n, ...) [scope; INDEX, SHAPE, ARGUMENT] */
WG_API wg_tensor *wg_irfft(wg_tensor *x, int axis_count, const int64_t *axes, const int64_t *sizes,
                           wg_fft_norm norm);

/* wg_conv_op of lines with a stride of 1 by way of rfft, in a time that does not grow with the
 * kernel: for kernels of hundreds of elements, as in long convolutions (Poli et al. 2023).
 * x: (N, C, L)   weight: (O, C, K)   bias: (O) or NULL   ->   (N, O, L + 2 padding - K + 1)
 * Returns NULL while an error is pending. [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_fft_conv1d(wg_tensor *x, wg_tensor *weight, wg_tensor *bias, int64_t padding);

/* ---- Convolution (ops/conv/conv.c) ---- */

/* An entry of a list belongs to one spatial axis, the first to the first; 0 is its default. So a
 * stride of 2 in two dimensions is {2, 2}. */
typedef struct wg_conv_options {
    int64_t stride[3];         /* from window to window; default 1 */
    int64_t padding[3];        /* zeros before and after the axis */
    int64_t dilation[3];       /* from element to element of a window; default 1 */
    int64_t output_padding[3]; /* conv_transpose alone: places more at the end of the axis */
    int64_t groups;            /* channels are cut into so many groups of their own; default 1 */
    bool same_padding;         /* conv alone: pads so that y has the size of x, as PyTorch's "same";
                                  with a stride of 1 */
} wg_conv_options;

/* What networks call convolution, a correlation: each output channel is the sum, over the channels
 * of its group, of the products of a kernel and the windows of x. The rank of the weight says along
 * how many axes, 1 to 3:
 * x: (N, C, L)         weight: (O, C / groups, K)            bias: (O) or NULL   ->   (N, O, P)
 *    (N, C, H, W)              (O, C / groups, KH, KW)
 *    (N, C, D, H, W)           (O, C / groups, KD, KH, KW)
 *     P = (L + 2 padding - dilation (K - 1) - 1) / stride + 1, rounded down
 * x may lack N, as y does then. Forward and gradients are packed products that read the windows
 * from a few images at a time. [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_conv_op(wg_tensor *x, wg_tensor *weight, wg_tensor *bias,
                             const wg_conv_options *options);

/* The transposed convolution, also called deconvolution: the adjoint in x of the convolution with
 * the same weight and options. Each element of x adds a kernel, times itself, to a window of y.
 * x: (N, C, L)   weight: (C, O / groups, K)   bias: (O) or NULL   ->   (N, O, P)
 *     P = (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1
 * and of images and volumes, as wg_conv_op. [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_conv_transpose_op(wg_tensor *x, wg_tensor *weight, wg_tensor *bias,
                                       const wg_conv_options *options);

/* ---- Pooling (ops/conv/pool.c) ---- */

/* An entry of a list belongs to one spatial axis, the first to the first; 0 is its default. */
typedef struct wg_pool_options {
    int64_t kernel[3];        /* the size of a window along 1 to 3 axes; there is no default */
    int64_t stride[3];        /* from window to window; default: the kernel */
    int64_t padding[3];       /* at both ends of the axis, at most half of the kernel: of a maximum
                                 minus infinity, of a mean zeros */
    int64_t dilation[3];      /* max_pool alone: from element to element of a window; default 1 */
    bool ceil_mode;           /* windows may reach beyond the end, if they begin before it */
    bool exclude_padding;     /* avg_pool alone: PyTorch's count_include_pad=False, the mean of the
                                 elements of x */
    int64_t divisor_override; /* avg_pool alone: what to divide the sum by; 0: the elements */
} wg_pool_options;

/* The largest element of each window of a channel, or the mean. The kernel has a size for each
 * spatial axis, 1 to 3 of them.
 * x: (N, C, L) or (C, L)   ->   (N, C, P) or (C, P)
 *     P = (L + 2 padding - dilation (kernel - 1) - 1) / stride + 1
 *
 * P is rounded down, or up with ceil_mode. 2d: (N, C, H, W); 3d: (N, C, D, H, W). `indices`, unless
 * NULL, receives the places of the largest in their channel, in row-major order, i64. Of equal
 * elements the first counts and gets the gradient; NaN is the largest. [scope; SHAPE, DTYPE,
 * ARGUMENT] */
WG_API wg_tensor *wg_max_pool(wg_tensor *x, const wg_pool_options *options, wg_tensor **indices);
WG_API wg_tensor *wg_avg_pool(wg_tensor *x, const wg_pool_options *options);

/* max_pool into `size` windows along each spatial axis (1, 2 or 3 numbers) that share the axis
 * evenly: window i of P goes from floor(i L / P) up to ceil((i + 1) L / P), so that neighbours may
 * overlap by an element. With a size of 1 the window is the whole channel.
 * [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_adaptive_max_pool(wg_tensor *x, int axis_count, const int64_t *size,
                                       wg_tensor **indices);

/* avg_pool into the windows of wg_adaptive_max_pool: a size of 1 gives the mean of the channel.
 * [scope; as wg_adaptive_max_pool] */
WG_API wg_tensor *wg_adaptive_avg_pool(wg_tensor *x, int axis_count, const int64_t *size);

/* ---- Images in another size (ops/conv/interpolate.c) ---- */

typedef enum wg_interpolation {
    WG_INTERPOLATE_NEAREST, /* PyTorch's "nearest": element floor(o L / size) for output o */
    WG_INTERPOLATE_LINEAR   /* PyTorch's "linear", "bilinear" and "trilinear", by the axes */
} wg_interpolation;

/* x with other sizes of its spatial axes, 1 to 3 of them, by PyTorch's interpolate(x, size).
 * x: (N, C, L), (N, C, H, W) or (N, C, D, H, W)   ->   (N, C, size...)
 * Linearly, output o lies at (o + 1/2) L / size - 1/2, or with align_corners at o (L - 1) /
 * (size - 1), so that the first and the last elements stay in place. Shrinking does not average.
 * [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_interpolate(wg_tensor *x, int axis_count, const int64_t *size,
                                 wg_interpolation mode, bool align_corners);

/* ---- Attention (ops/attention/attention.c) ---- */

typedef struct wg_attention_options {
    double scale;   /* of the scores; 0: 1/sqrt(D); WG_ZERO: 0 */
    bool causal;    /* query i sees keys up to i + (Tk - Tq), its own position */
    double dropout; /* probability of dropping an attention weight; 0 in evaluation */
    uint64_t seed;  /* of the dropout: see wg_dropout_op */
    uint64_t offset;
    int64_t window; /* a query sees keys at most this many positions from its own; 0: at any
                       distance. Then the time of all queries is O(Tq window), and no mask is made
                       (sliding windows: Beltagy et al. 2020, Longformer). */
} wg_attention_options;

/* Scaled dot-product attention, softmax(q k^T / sqrt(D)) v   (Vaswani et al. 2017, eq. 1).
 * q: (B, H, Tq, D)   k, v: (B, Hkv, Tk, D), Hkv divides H   ->   (B, H, Tq, D)
 * mask: NULL, or bool and broadcastable to (B, H, Tq, Tk), true where a query may see a key.
 * Rows that may attend to nothing give zeros. Fused: scores are stored for one tile of queries at a
 * time, and keys that no query of a tile sees, before the first or after the last that one does,
 * are skipped. The result is a view whose memory is (B, Tq, H, D), so that merging heads copies
 * nothing. [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_attention(wg_tensor *q, wg_tensor *k, wg_tensor *v, wg_tensor *mask,
                               const wg_attention_options *options);

/* ---- Rotary positions (ops/attention/attention.c) ---- */

/* Which two elements of the last axis, of width D >= 2 P, form a pair. */
typedef enum wg_rotary_pairing {
    WG_ROTARY_HALVES,  /* i and i + P: GPT-NeoX, and LLaMA's weights as Hugging Face stores them */
    WG_ROTARY_ADJACENT /* 2 i and 2 i + 1: the paper, and LLaMA's weights as Meta stores them */
} wg_rotary_pairing;

/* Rotates each pair (a, b) of the last axis to (a cos - b sin, a sin + b cos)   (Su et al. 2021,
 * eq. 34).   x: (..., T, D)   cos, sin: (..., T, P) with 2 P <= D, broadcast   ->   the shape of x.
 * Elements beyond 2 P are copied. The tables have no gradient. [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_rotary(wg_tensor *x, wg_tensor *cos, wg_tensor *sin,
                            wg_rotary_pairing pairing);

/* ---- Recurrent layers over whole sequences (ops/recurrent/recurrent.c); nn/recurrent.h has the
 * layers ---- */

/* All h of an LSTM, from the parts of its gates that come from the inputs, x W_ih^T + b:
 * gates: (T, B, 4 H), in the order i, f, g, o   weight_hh: (4 H, H)   h0, c0: (B, H)
 *     ->   *hidden: (T, B, H) and *last_cell: (B, H), which may be NULL
 * With `reverse` from the last place to the first. Fused. 0, or -1 with both NULL.
 * [scope; SHAPE, DTYPE] */
WG_API int wg_lstm_op(wg_tensor *gates, wg_tensor *weight_hh, wg_tensor *h0, wg_tensor *c0,
                      bool reverse, wg_tensor **hidden, wg_tensor **last_cell);

/* All h of a GRU:
 * gates: (T, B, 3 H), in the order r, z, n   weight_hh: (3 H, H)   bias_hh: (3 H) or NULL
 * h0: (B, H)   ->   (T, B, H). Fused. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_gru_op(wg_tensor *gates, wg_tensor *weight_hh, wg_tensor *bias_hh,
                            wg_tensor *h0, bool reverse);

/* ---- Cross-entropy (ops/loss/cross_entropy.c, ops/loss/linear_loss.c) ---- */

/* The usual ignore_index, PyTorch's: rows whose target equals it do not count. */
#define WG_IGNORE_INDEX (-100)

/* How the losses of rows or elements become the result. PyTorch's batchmean is their sum divided by
 * the batch size. The mean of no losses is NaN. */
typedef enum wg_reduction { WG_REDUCTION_MEAN, WG_REDUCTION_SUM, WG_REDUCTION_NONE } wg_reduction;

typedef struct wg_cross_entropy_options {
    wg_reduction reduction; /* the mean is weighted: divided by the sum of the targets' weights */
    double label_smoothing; /* the share of a target that is spread evenly over the classes: 0..1 */
    wg_tensor *weight;      /* (V): of each class; NULL: 1 each. It gets no gradient. */
    int64_t *correct;       /* receives the number of rows whose largest logit, the first of equal
                               ones, is at their target, without ignored rows; NULL: not counted */
} wg_cross_entropy_options;

/* -log softmax(logits)[target] of each row, reduced: a rank-0 tensor, or (N) with
 * WG_REDUCTION_NONE.
 * logits: (N, V)   target: (N) i64 or i32, or (N, V) floating.
 * Class targets equal to ignore_index do not count; if no other target is left the mean is NaN, as
 * in PyTorch. Floating targets are probabilities t, for -sum_c t_c log softmax(logits)_c; they get
 * a gradient, too, their mean is over N, and ignore_index must be negative. Fused: no copy of the
 * logits is made for backward. options: NULL for the plain mean. [scope; SHAPE, DTYPE, INDEX,
 * ARGUMENT] */
WG_API wg_tensor *wg_cross_entropy(wg_tensor *logits, wg_tensor *target, int64_t ignore_index,
                                   const wg_cross_entropy_options *options);

/* -log_probabilities[target] of each row of log probabilities (N, V), for class targets and without
 * label smoothing; otherwise as wg_cross_entropy. [scope; SHAPE, DTYPE, INDEX, ARGUMENT] */
WG_API wg_tensor *wg_nll_loss(wg_tensor *log_probabilities, wg_tensor *target, int64_t ignore_index,
                              const wg_cross_entropy_options *options);

/* wg_cross_entropy of the logits x linear_weight^T + linear_bias, computed in chunks of rows, so
 * that the logits are never stored whole.
 * x: (N, D)   linear_weight: (V, D)   target: as in wg_cross_entropy   linear_bias: (V) or NULL
 * While recording, gradients are computed together with the losses, so that the logits are computed
 * once, and backward only multiplies by its cotangent.
 * With WG_REDUCTION_NONE every row has its own cotangent, and backward computes the logits again.
 * Rows with ignored targets cost almost nothing. Fused for class targets; for floating targets the
 * logits are stored. [scope; SHAPE, DTYPE, INDEX, ARGUMENT] */
WG_API wg_tensor *wg_linear_cross_entropy(wg_tensor *x, wg_tensor *linear_weight, wg_tensor *target,
                                          wg_tensor *linear_bias, int64_t ignore_index,
                                          const wg_cross_entropy_options *options);

/* ---- Losses of elements (ops/loss/loss.c) ---- */

/* x and target have one shape; use wg_expand to compare with a broadcast target. Both get
 * gradients. */

/* (x - target)^2 [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_mse_loss(wg_tensor *x, wg_tensor *target, wg_reduction reduction);

/* |x - target|; derivative 0 where they are equal. [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_l1_loss(wg_tensor *x, wg_tensor *target, wg_reduction reduction);

/* With d = |x - target|: d^2 / (2 beta) where d < beta, d - beta / 2 elsewhere   (Girshick 2015,
 * eq. 3). A beta of 0 gives l1_loss. [scope; SHAPE, DTYPE, ARGUMENT for a negative beta] */
WG_API wg_tensor *wg_smooth_l1_loss(wg_tensor *x, wg_tensor *target, double beta,
                                    wg_reduction reduction);

/* The cross-entropy of sigmoid(logits) for targets from 0 to 1, without overflow:
 * -weight (pos_weight target log sigmoid(logits) + (1 - target) log sigmoid(-logits)). weight and
 * pos_weight broadcast to the logits, and may be NULL for 1. [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_bce_with_logits(wg_tensor *logits, wg_tensor *target, wg_tensor *weight,
                                     wg_tensor *pos_weight, wg_reduction reduction);

/* The Kullback-Leibler divergence of log probabilities from the target: target (log target -
 * log_input), 0 where target is 0; with log_target, e^target (target - log_input).
 * [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_kl_div(wg_tensor *log_input, wg_tensor *target, bool log_target,
                            wg_reduction reduction);

/* The cosine of the angle between a and b along one axis, a b / (max(|a|, eps) max(|b|, eps)), with
 * broadcasting. PyTorch's eps is 1e-8. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_cosine_similarity(wg_tensor *a, wg_tensor *b, int axis, double eps);

WG_END_DECLS

#endif
