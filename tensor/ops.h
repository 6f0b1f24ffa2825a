/* Every operation on tensors. Each is recorded for backward when an input wants a gradient; there
 * is no second family of functions for autograd.
 *
 * Reading the contracts: `x: (B, T, C)` gives shapes; broadcasting is NumPy's; a negative axis
 * counts from the end; dtypes meet by wg_dtype_promote where two floating or integer operands
 * differ. [scope; SHAPE, DTYPE] names the owner of the result and the errors beside MEMORY. A NULL
 * operand gives NULL. Lists are a count and a pointer (WG_DIMS and WG_TENSORS of easy.h write
 * them); a list of axes that is `0, NULL` means all axes. */
#ifndef WG_TENSOR_OPS_H
#define WG_TENSOR_OPS_H

#include "op.h"
#include "quantize.h"

WG_BEGIN_DECLS

/* ---- Casting and copying (ops/cast.c) ---- */

/* x in another dtype; the same handle's alias if it has it already. Float to integer truncates and
 * clamps to the range, NaN gives 0; anything to bool is x != 0. Differentiable between floats.
 * [scope] */
WG_API wg_tensor *wg_cast(wg_tensor *x, wg_dtype dtype);

/* A contiguous tensor of the same elements: x itself (an alias) if it is so already. [scope] */
WG_API wg_tensor *wg_contiguous(wg_tensor *x);

/* A contiguous copy, always. [scope] */
WG_API wg_tensor *wg_clone(wg_tensor *x);

/* ---- Views: no element is copied (ops/view.c, ops/permute.c, ops/slice.c) ---- */

/* The same elements in row-major order under another shape; one size may be -1 and is worked out.
 * Copies only when the strides of x leave no other way. [scope; SHAPE] */
WG_API wg_tensor *wg_reshape(wg_tensor *x, int ndim, const int64_t *shape);

/* Drops an axis of size 1. [scope; INDEX, SHAPE] */
WG_API wg_tensor *wg_squeeze(wg_tensor *x, int axis);

/* Adds an axis of size 1 before `axis`; -1 adds it last. [scope; INDEX, SHAPE] */
WG_API wg_tensor *wg_unsqueeze(wg_tensor *x, int axis);

/* The axes from first_axis to last_axis as one, as reshape does it; a scalar becomes a vector of
 * one. [scope; INDEX, ARGUMENT if the first comes after the last] */
WG_API wg_tensor *wg_flatten(wg_tensor *x, int first_axis, int last_axis);

/* One axis cut into `ndim` axes of these sizes, which multiply to its size; one of them may be -1
 * and is worked out. [scope; INDEX, SHAPE] */
WG_API wg_tensor *wg_unflatten(wg_tensor *x, int axis, int ndim, const int64_t *sizes);

/* Repeats axes of size 1 (and new leading axes) to the given shape by a stride of 0; -1 keeps a
 * size. NumPy's broadcast_to is this. [scope; SHAPE] */
WG_API wg_tensor *wg_expand(wg_tensor *x, int ndim, const int64_t *shape);

/* Exchanges two axes. [scope; INDEX] */
WG_API wg_tensor *wg_transpose(wg_tensor *x, int axis_a, int axis_b);

/* Axis i of the result is axis order[i] of x; `order` is a permutation of all axes.
 * [scope; INDEX, SHAPE] */
WG_API wg_tensor *wg_permute(wg_tensor *x, int count, const int64_t *order);

/* Axis from[i] of x becomes axis to[i] of the result; the others stay in their order. NumPy's
 * moveaxis. [scope; INDEX, ARGUMENT for more axes than a tensor has] */
WG_API wg_tensor *wg_movedim(wg_tensor *x, int count, const int64_t *from, const int64_t *to);

/* x[start:stop:step] along one axis, as Python slices: negative start and stop count from the end,
 * both are clamped to the axis; step may be negative (then WG_END as stop runs through index 0, and
 * WG_END as start begins at the last). WG_END as stop of a positive step is the end.
 * [scope; INDEX, ARGUMENT for step 0] */
#define WG_END INT64_MAX
WG_API wg_tensor *wg_slice(wg_tensor *x, int axis, int64_t start, int64_t stop, int64_t step);

/* x[start:start + length] along one axis; a negative start counts from the end, and all of it must
 * be there. [scope; INDEX] */
WG_API wg_tensor *wg_narrow(wg_tensor *x, int axis, int64_t start, int64_t length);

/* x at one index of one axis, which goes away; a negative index counts from the end.
 * [scope; INDEX] */
WG_API wg_tensor *wg_select(wg_tensor *x, int axis, int64_t index);

/* Cuts an axis into parts of `count` given sizes, which sum to its size; `parts` receives the
 * views. Returns 0 or -1. [scope; SHAPE, INDEX] */
WG_API int wg_split(wg_tensor *x, int axis, int count, const int64_t *sizes, wg_tensor **parts);

/* Cuts an axis into `count` parts of ceil(size / count) (the last may be smaller, and parts beyond
 * the end are empty); `parts` receives the views. Returns 0 or -1. [scope; ARGUMENT, INDEX] */
WG_API int wg_chunk(wg_tensor *x, int axis, int count, wg_tensor **parts);

/* ---- Joining (ops/shape.c) ---- */

/* Joins tensors along an existing axis; their dtypes are promoted. [scope; SHAPE, INDEX] */
WG_API wg_tensor *wg_cat(int count, wg_tensor *const *tensors, int axis);

/* Joins tensors of one shape along a new axis. [scope; SHAPE, INDEX] */
WG_API wg_tensor *wg_stack(int count, wg_tensor *const *tensors, int axis);

/* The coordinates of a grid: vectors of sizes n0, n1, ... give as many outputs (n0, n1, ...), of
 * which output i is vector i along axis i and the same along all others: NumPy's and PyTorch's
 * indexing "ij". Views; a scalar is a vector of one. Returns 0 or -1. [scope; SHAPE, ARGUMENT for
 * no vectors or more than WG_MAX_DIMS] */
WG_API int wg_meshgrid(int count, wg_tensor *const *vectors, wg_tensor **outputs);

/* ---- Arranging (ops/arrange.c) ---- */

/* x with the elements of the named axes in reverse order; a list of none names all. A view.
 * [scope; INDEX, ARGUMENT] */
WG_API wg_tensor *wg_flip(wg_tensor *x, int axis_count, const int64_t *axes);

/* x with the elements of axis axes[i] moved on by shifts[i] places (back by negative ones), around
 * the end; of an axis that is named twice the shifts add up. With axes NULL there is one shift,
 * which is that of the elements in row-major order. [scope; INDEX, ARGUMENT] */
WG_API wg_tensor *wg_roll(wg_tensor *x, int count, const int64_t *shifts, const int64_t *axes);

/* x repeats[i] times along each axis, as NumPy's tile: the last repeat is that of the last axis;
 * missing ones are 1, and ones too many make new leading axes. PyTorch's repeat is this. May be a
 * view where nothing is repeated. [scope; ARGUMENT for negative repeats or too many, SHAPE] */
WG_API wg_tensor *wg_tile(wg_tensor *x, int count, const int64_t *repeats);

/* Each element of one axis so many times, next to each other: NumPy's repeat. May be a view where
 * nothing is repeated. [scope; INDEX, ARGUMENT for negative repeats, SHAPE] */
WG_API wg_tensor *wg_repeat_interleave(wg_tensor *x, int64_t repeats, int axis);

/* ---- Diagonals and triangles (ops/diagonal.c) ---- */

/* x at i of axis_a and i + offset of axis_b, for all i that are in both: the two axes go, and the
 * diagonal becomes the last. A view, of no elements where the offset leads out of x.
 * [scope; INDEX] */
WG_API wg_tensor *wg_diagonal(wg_tensor *x, int64_t offset, int axis_a, int axis_b);

/* Square matrices with the last axis of x (..., n) on the diagonal `offset`, 0 elsewhere: the
 * result, of one rank more, has the size n + |offset| along axis_a (rows) and axis_b (columns).
 * [scope; INDEX, SHAPE] */
WG_API wg_tensor *wg_diag_embed(wg_tensor *x, int64_t offset, int axis_a, int axis_b);

/* Keeps the elements on and below (tril) or on and above (triu) the diagonal `diagonal` of the last
 * two axes, 0 elsewhere. [scope; SHAPE below rank 2] */
WG_API wg_tensor *wg_tril(wg_tensor *x, int64_t diagonal);
WG_API wg_tensor *wg_triu(wg_tensor *x, int64_t diagonal);

/* ---- Windows and padding (ops/window.c) ---- */

/* The windows of `size` elements that begin at every step-th place of an axis, as PyTorch's unfold:
 * the axis now counts the windows, and a new last one runs through each. A view, in which
 * overlapping windows share their elements. [scope; INDEX, SHAPE if x is shorter than a window,
 * ARGUMENT for a size or step below 1] */
WG_API wg_tensor *wg_unfold(wg_tensor *x, int axis, int64_t size, int64_t step);

typedef enum wg_pad_mode {
    WG_PAD_CONSTANT,  /* v v | 0 1 2 3 | v v */
    WG_PAD_REFLECT,   /* 2 1 | 0 1 2 3 | 2 1; at most the size less 1 */
    WG_PAD_REPLICATE, /* 0 0 | 0 1 2 3 | 3 3 (NumPy's "edge") */
    WG_PAD_CIRCULAR   /* 2 3 | 0 1 2 3 | 0 1; at most the size (NumPy's "wrap") */
} wg_pad_mode;

/* The last axis_count axes of x made longer at both ends. `widths` holds (before, after) of each,
 * in their order (NumPy's; PyTorch begins at the last axis); negative ones crop. `value` is that of
 * WG_PAD_CONSTANT. [scope; SHAPE where the mode or the cropping wants more elements than there are,
 * ARGUMENT] */
WG_API wg_tensor *wg_pad(wg_tensor *x, int axis_count, const int64_t *widths, wg_pad_mode mode,
                         double value);

/* ---- Taking (ops/take.c). Indices are i64 or i32; negative ones count from the end. ---- */

/* x[..index[..i..]..] along one axis; along all others x and index, of the same rank, broadcast.
 * [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_take_along_axis(wg_tensor *x, int axis, wg_tensor *index);

/* The elements of these numbers of x in row-major order, in the shape of the index: NumPy's take
 * without an axis, PyTorch's take. [scope; INDEX, DTYPE] */
WG_API wg_tensor *wg_take(wg_tensor *x, wg_tensor *index);

/* ---- Arithmetic with broadcasting (ops/binary.c) ---- */

WG_API wg_tensor *wg_add(wg_tensor *a, wg_tensor *b); /* a + b; of bools: or [scope; SHAPE] */
WG_API wg_tensor *wg_sub(wg_tensor *a, wg_tensor *b); /* a - b [scope; SHAPE, DTYPE for bools] */
WG_API wg_tensor *wg_mul(wg_tensor *a, wg_tensor *b); /* a b; of bools: and [scope; SHAPE] */

/* a / b, true division: integers are cast to f32 first. [scope; SHAPE] */
WG_API wg_tensor *wg_div(wg_tensor *a, wg_tensor *b);

/* a to the power b, elementwise; integers are cast to f32. da = b a^(b-1), db = a^b log a (0 where
 * a = 0 and b >= 0, as PyTorch). [scope; SHAPE] */
WG_API wg_tensor *wg_pow(wg_tensor *a, wg_tensor *b);

/* The larger or smaller of two; NaN if either is. At ties each gets half of the gradient.
 * [scope; SHAPE] */
WG_API wg_tensor *wg_maximum(wg_tensor *a, wg_tensor *b);
WG_API wg_tensor *wg_minimum(wg_tensor *a, wg_tensor *b);

/* ---- Functions of two operands with broadcasting (ops/binary_math.c). Integers and bools are cast
 * to f32 first, except by remainder and fmod. ---- */

/* The angle of the point (b, a), from -pi to pi. da = b / (a^2 + b^2), db = -a / (a^2 + b^2), which
 * do not overflow, and are NaN at (0, 0). [scope; SHAPE] */
WG_API wg_tensor *wg_atan2(wg_tensor *a, wg_tensor *b);

/* sqrt(a^2 + b^2) without overflow of the squares. The derivative at (0, 0) is NaN, as PyTorch's.
 * [scope; SHAPE] */
WG_API wg_tensor *wg_hypot(wg_tensor *a, wg_tensor *b);

/* ln(e^a + e^b) without overflow. [scope; SHAPE] */
WG_API wg_tensor *wg_logaddexp(wg_tensor *a, wg_tensor *b);

/* a ln b, and 0 where a is 0 (but NaN where b is). da = ln b, 0 where a = 0 and b <= 0; db = a / b.
 * [scope; SHAPE] */
WG_API wg_tensor *wg_xlogy(wg_tensor *a, wg_tensor *b);

/* The rest of a division: a - b floor(a / b), of the sign of b, as Python's %; and a - b trunc(a /
 * b), of the sign of a, as C's. A divisor of 0 gives NaN, and is an error among integers. da = 1,
 * db = the negative of the rounded quotient. [scope; SHAPE, DTYPE for bools, ARGUMENT] */
WG_API wg_tensor *wg_remainder(wg_tensor *a, wg_tensor *b);
WG_API wg_tensor *wg_fmod(wg_tensor *a, wg_tensor *b);

/* ---- Arithmetic of three operands with broadcasting, in one pass (ops/ternary.c) ---- */

/* a + weight (b - a): a at weight 0, b at weight 1. Integers are cast to f32. [scope; SHAPE] */
WG_API wg_tensor *wg_lerp(wg_tensor *a, wg_tensor *b, wg_tensor *weight);

/* x + value a b with a plain number, which among integers has to be one of their dtype.
 * [scope; SHAPE, DTYPE for bools, ARGUMENT] */
WG_API wg_tensor *wg_addcmul(wg_tensor *x, wg_tensor *a, wg_tensor *b, double value);

/* x + value a / b, a true division: integers are cast to f32. [scope; SHAPE] */
WG_API wg_tensor *wg_addcdiv(wg_tensor *x, wg_tensor *a, wg_tensor *b, double value);

/* ---- One operand and plain numbers (ops/scalar.c) ---- */

/* x * scale + shift with plain numbers, in the dtype of x (integers: rounded toward zero). [scope]
 */
WG_API wg_tensor *wg_affine(wg_tensor *x, double scale, double shift);

/* x with a plain number: x + c, x * c, x ^ c. pow casts integers to f32. [scope] */
WG_API wg_tensor *wg_add_scalar(wg_tensor *x, double c);
WG_API wg_tensor *wg_mul_scalar(wg_tensor *x, double c);
WG_API wg_tensor *wg_pow_scalar(wg_tensor *x, double c);

/* x limited to [low, high]; the derivative is 1 from low to high inclusive, as PyTorch. Use
 * -INFINITY and INFINITY for an open side. [scope; ARGUMENT if low > high] */
WG_API wg_tensor *wg_clamp(wg_tensor *x, double low, double high);

/* x with plain numbers in the place of NaN, inf and -inf, where the derivative is 0. PyTorch's and
 * NumPy's defaults are 0, DBL_MAX and -DBL_MAX: a number beyond those of the dtype stands for its
 * largest. Integers and bools are copied. [scope] */
WG_API wg_tensor *wg_nan_to_num(wg_tensor *x, double nan, double posinf, double neginf);

/* ---- Comparison and logic, giving bool; no gradient (ops/compare.c) ---- */

WG_API wg_tensor *wg_eq(wg_tensor *a, wg_tensor *b); /* a == b [scope; SHAPE] */
WG_API wg_tensor *wg_ne(wg_tensor *a, wg_tensor *b); /* a != b [scope; SHAPE] */
WG_API wg_tensor *wg_lt(wg_tensor *a, wg_tensor *b); /* a <  b [scope; SHAPE] */
WG_API wg_tensor *wg_le(wg_tensor *a, wg_tensor *b); /* a <= b [scope; SHAPE] */
WG_API wg_tensor *wg_gt(wg_tensor *a, wg_tensor *b); /* a >  b [scope; SHAPE] */
WG_API wg_tensor *wg_ge(wg_tensor *a, wg_tensor *b); /* a >= b [scope; SHAPE] */

/* Logic on the truth (!= 0) of any dtype. [scope; SHAPE] */
WG_API wg_tensor *wg_logical_and(wg_tensor *a, wg_tensor *b);
WG_API wg_tensor *wg_logical_or(wg_tensor *a, wg_tensor *b);
WG_API wg_tensor *wg_logical_xor(wg_tensor *a, wg_tensor *b);
WG_API wg_tensor *wg_logical_not(wg_tensor *x);

WG_API wg_tensor *wg_isnan(wg_tensor *x);    /* x is NaN [scope] */
WG_API wg_tensor *wg_isinf(wg_tensor *x);    /* x is inf or -inf [scope] */
WG_API wg_tensor *wg_isfinite(wg_tensor *x); /* x is neither; integers are finite [scope] */

/* ---- Elementwise functions (ops/unary.c). Integers and bools are cast to f32 first, except by
 * neg, abs and square. ---- */

WG_API wg_tensor *wg_neg(wg_tensor *x);        /* -x [scope; DTYPE for bool] */
WG_API wg_tensor *wg_abs(wg_tensor *x);        /* |x|; derivative sign(x), 0 at 0 [scope] */
WG_API wg_tensor *wg_exp(wg_tensor *x);        /* e^x [scope] */
WG_API wg_tensor *wg_exp2(wg_tensor *x);       /* 2^x [scope] */
WG_API wg_tensor *wg_expm1(wg_tensor *x);      /* e^x - 1, exact near 0 [scope] */
WG_API wg_tensor *wg_log(wg_tensor *x);        /* ln x [scope] */
WG_API wg_tensor *wg_log2(wg_tensor *x);       /* log x to the base 2 [scope] */
WG_API wg_tensor *wg_log10(wg_tensor *x);      /* log x to the base 10 [scope] */
WG_API wg_tensor *wg_log1p(wg_tensor *x);      /* ln(1 + x), exact near 0 [scope] */
WG_API wg_tensor *wg_sqrt(wg_tensor *x);       /* x^(1/2) [scope] */
WG_API wg_tensor *wg_rsqrt(wg_tensor *x);      /* x^(-1/2) [scope] */
WG_API wg_tensor *wg_cbrt(wg_tensor *x);       /* x^(1/3), of the sign of x [scope] */
WG_API wg_tensor *wg_reciprocal(wg_tensor *x); /* 1 / x [scope] */
WG_API wg_tensor *wg_square(wg_tensor *x);     /* x^2; of bools in i64 [scope] */
WG_API wg_tensor *wg_tanh(wg_tensor *x);       /* tanh x; derivative 1 - y^2 [scope] */
WG_API wg_tensor *wg_sigmoid(wg_tensor *x);    /* 1 / (1 + e^-x); derivative y (1 - y) [scope] */
WG_API wg_tensor *wg_erf(wg_tensor *x);        /* erf x; derivative 2/sqrt(pi) e^(-x^2) [scope] */

/* ---- Trigonometric and hyperbolic functions, in radians (ops/trigonometric.c). Integers and bools
 * are cast to f32. Outside of a function's domain the result is NaN. ---- */

WG_API wg_tensor *wg_sin(wg_tensor *x);   /* derivative cos x [scope] */
WG_API wg_tensor *wg_cos(wg_tensor *x);   /* derivative -sin x [scope] */
WG_API wg_tensor *wg_tan(wg_tensor *x);   /* derivative 1 + y^2 [scope] */
WG_API wg_tensor *wg_asin(wg_tensor *x);  /* derivative 1 / sqrt(1 - x^2) [scope] */
WG_API wg_tensor *wg_acos(wg_tensor *x);  /* derivative -1 / sqrt(1 - x^2) [scope] */
WG_API wg_tensor *wg_atan(wg_tensor *x);  /* derivative 1 / (1 + x^2) [scope] */
WG_API wg_tensor *wg_sinh(wg_tensor *x);  /* derivative cosh x [scope] */
WG_API wg_tensor *wg_cosh(wg_tensor *x);  /* derivative sinh x [scope] */
WG_API wg_tensor *wg_asinh(wg_tensor *x); /* derivative 1 / sqrt(x^2 + 1) [scope] */
WG_API wg_tensor *wg_acosh(wg_tensor *x); /* derivative 1 / sqrt(x^2 - 1) [scope] */
WG_API wg_tensor *wg_atanh(wg_tensor *x); /* derivative 1 / (1 - x^2) [scope] */

/* ---- Special functions (ops/special.c). Integers and bools are cast to f32. ---- */

WG_API wg_tensor *wg_erfc(wg_tensor *x);    /* 1 - erf x, exact where that is small [scope] */
WG_API wg_tensor *wg_lgamma(wg_tensor *x);  /* ln |Gamma(x)|; derivative digamma(x) [scope] */
WG_API wg_tensor *wg_digamma(wg_tensor *x); /* Gamma'(x) / Gamma(x), NaN at -1, -2... [scope] */

/* The n-th derivative of digamma(x); infinite at 0, -1, -2... [scope; ARGUMENT for n < 0] */
WG_API wg_tensor *wg_polygamma(int n, wg_tensor *x);

/* ---- Sign and rounding (ops/rounding.c). Integers and bools keep their dtype; the derivative is 0
 * everywhere. ---- */

WG_API wg_tensor *wg_sign(wg_tensor *x);  /* -1, 0 or 1; of NaN: NaN, as NumPy [scope] */
WG_API wg_tensor *wg_floor(wg_tensor *x); /* the largest whole number not above x [scope] */
WG_API wg_tensor *wg_ceil(wg_tensor *x);  /* the smallest whole number not below x [scope] */
WG_API wg_tensor *wg_round(wg_tensor *x); /* the nearest whole number, of two the even [scope] */
WG_API wg_tensor *wg_trunc(wg_tensor *x); /* x without its fraction [scope] */

/* ---- Activation functions (ops/activation.c). Integers and bools are cast to f32 first, except by
 * relu. ---- */

WG_API wg_tensor *wg_relu(wg_tensor *x); /* max(x, 0); derivative 0 at 0 [scope] */

/* x above 0, slope x below (PyTorch's default is 0.01); derivative slope at 0. [scope] */
WG_API wg_tensor *wg_leaky_relu(wg_tensor *x, double slope);

/* x above 0, alpha (e^x - 1) below (PyTorch's default is 1); derivative alpha at 0   (Clevert et
 * al. 2016). [scope] */
WG_API wg_tensor *wg_elu(wg_tensor *x, double alpha);

/* x Phi(x) = x/2 (1 + erf(x / sqrt 2))   (Hendrycks & Gimpel 2016), the form of BERT. [scope] */
WG_API wg_tensor *wg_gelu(wg_tensor *x);

/* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the form of GPT-2. [scope] */
WG_API wg_tensor *wg_gelu_tanh(wg_tensor *x);

/* x / (1 + e^-x), also known as swish   (Ramachandran et al. 2017), the form of LLaMA. NaN at -inf,
 * as PyTorch's. [scope] */
WG_API wg_tensor *wg_silu(wg_tensor *x);

/* x tanh(log(1 + e^x))   (Misra 2020). NaN at -inf, as PyTorch's. [scope] */
WG_API wg_tensor *wg_mish(wg_tensor *x);

/* log(1 + e^(beta x)) / beta, and x itself where beta x > threshold. A beta of 0 stands for 1, a
 * threshold of 0 for 20, PyTorch's defaults; INFINITY as the threshold is none.
 * [scope; ARGUMENT for a beta that is no finite number or a threshold of NaN] */
WG_API wg_tensor *wg_softplus(wg_tensor *x, double beta, double threshold);

/* log(1 / (1 + e^-x)), without overflow: PyTorch's logsigmoid. [scope] */
WG_API wg_tensor *wg_log_sigmoid(wg_tensor *x);

/* x/6 + 1/2 limited to [0, 1]; derivative 0 at -3 and 3, as PyTorch. [scope] */
WG_API wg_tensor *wg_hardsigmoid(wg_tensor *x);

/* x hardsigmoid(x)   (Howard et al. 2019); derivative 0 at -3 and 1 at 3, beside the flat
 * sides of hardsigmoid; NaN at -inf. [scope] */
WG_API wg_tensor *wg_hardswish(wg_tensor *x);

/* ---- Gated units (ops/gate.c): f(gate) value, of equal shapes   (Shazeer 2020). Fused. PyTorch's
 * glu(x, axis) is wg_glu of the second half of x and the first, which wg_chunk gives. ---- */

WG_API wg_tensor *wg_glu(wg_tensor *gate, wg_tensor *value);    /* f: sigmoid [scope; SHAPE] */
WG_API wg_tensor *wg_swiglu(wg_tensor *gate, wg_tensor *value); /* f: silu [scope; SHAPE] */
WG_API wg_tensor *wg_geglu(wg_tensor *gate, wg_tensor *value);  /* f: gelu [scope; SHAPE] */
WG_API wg_tensor *wg_reglu(wg_tensor *gate, wg_tensor *value);  /* f: relu [scope; SHAPE] */

/* ---- Choosing (ops/select.c) ---- */

/* condition ? a : b, all three broadcast; condition is bool. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_where(wg_tensor *condition, wg_tensor *a, wg_tensor *b);

/* x with `value` where the bool mask, broadcast to x, is true. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_masked_fill(wg_tensor *x, wg_tensor *mask, double value);

/* ---- Reductions (ops/reduce.c, product.c, vector_norm.c, logsumexp.c). Reduced axes go away, or
 * stay as 1 with keepdim. ---- */

/* The sum; integers and bools sum in i64. [scope; INDEX] */
WG_API wg_tensor *wg_sum(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);

/* The mean; integers are cast to f32. Of no elements: NaN. [scope; INDEX] */
WG_API wg_tensor *wg_mean(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);

/* The variance, sum (x - mean)^2 / (n - correction), and its square root: correction 1 is the
 * unbiased one, 0 the population's. Integers are cast to f32; n - correction below 0 is 0. Where
 * the deviation is 0 its derivative is 0, as PyTorch. [scope; INDEX] */
WG_API wg_tensor *wg_var(wg_tensor *x, int axis_count, const int64_t *axes, double correction,
                         bool keepdim);
WG_API wg_tensor *wg_std(wg_tensor *x, int axis_count, const int64_t *axes, double correction,
                         bool keepdim);

/* x summed over the axes that broadcasting gave it, back to `shape`: the adjoint of expand.
 * [scope; SHAPE] */
WG_API wg_tensor *wg_sum_to(wg_tensor *x, int ndim, const int64_t *shape);

/* The product; integers and bools multiply in i64. Of no elements: 1. The gradient is right beside
 * any number of zeros, to any order. [scope; INDEX] */
WG_API wg_tensor *wg_prod(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);

/* The p-norm of vectors, (sum |x|^p)^(1/p): any p, with INFINITY the largest |x|, with -INFINITY
 * the smallest, with 0 the number of elements that are not 0. Integers are cast to f32. At kinks as
 * PyTorch: the derivative of |x| at 0 is 0, that of a norm of 0 too, that of order 0 is 0 anywhere;
 * elements tied for a largest or smallest share the gradient evenly. PyTorch's linalg.vector_norm;
 * the norm of a matrix that is not a vector's is Frobenius' alone, p = 2 over two axes.
 * [scope; INDEX, ARGUMENT for NaN, SHAPE for no elements with p < 0 or infinite] */
WG_API wg_tensor *wg_norm(wg_tensor *x, double p, int axis_count, const int64_t *axes,
                          bool keepdim);

/* log sum e^x, computed from x - max, so that no exponential overflows; integers are cast to f32.
 * Of no elements, or of -inf alone: -inf, at which the gradient is NaN, as PyTorch. [scope; INDEX]
 */
WG_API wg_tensor *wg_logsumexp(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);

/* ---- The largest and the smallest (ops/extremum.c) ---- */

/* The largest or smallest over axes: PyTorch's amax and amin; NaN if there is one. Elements tied
 * for it share the gradient evenly. [scope; INDEX, SHAPE for no elements] */
WG_API wg_tensor *wg_max(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);
WG_API wg_tensor *wg_min(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);

/* The i64 index of the first largest or first smallest element along one axis; of the first NaN, if
 * there is one. No gradient. [scope; INDEX, SHAPE for no elements] */
WG_API wg_tensor *wg_argmax(wg_tensor *x, int axis, bool keepdim);
WG_API wg_tensor *wg_argmin(wg_tensor *x, int axis, bool keepdim);

/* ---- Reductions of truth (ops/truth.c): whether an element is not 0, of any dtype; NaN is not. No
 * gradients. ---- */

/* Whether any, whether all of the elements are true, as bool (for u8, too, where PyTorch gives u8).
 * Of no elements: false, true. [scope; INDEX] */
WG_API wg_tensor *wg_any(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);
WG_API wg_tensor *wg_all(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);

/* How many elements are true, as i64. [scope; INDEX] */
WG_API wg_tensor *wg_count_nonzero(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim);

/* ---- Scans along one axis (ops/cumulative.c, linear_scan.c) ---- */

/* x_0 + ... + x_i, and x_0 ... x_i, at each place i; integers and bools in i64. f32 and bf16
 * accumulate in f64. The gradient of cumprod is right beside any number of zeros, to any order.
 * [scope; INDEX] */
WG_API wg_tensor *wg_cumsum(wg_tensor *x, int axis);
WG_API wg_tensor *wg_cumprod(wg_tensor *x, int axis);

/* The largest or smallest of x_0 ... x_i at each place, and the i64 index where it stands: of ties
 * and of NaNs the last one, which gets the gradient, as PyTorch. `values` or `indices` may be NULL
 * for what is not wanted. Returns 0 or -1. [scope; INDEX] */
WG_API int wg_cummax(wg_tensor *x, int axis, wg_tensor **values, wg_tensor **indices);
WG_API int wg_cummin(wg_tensor *x, int axis, wg_tensor **values, wg_tensor **indices);

/* y_i = a_i y_(i-1) + b_i with y_0 = b_0: a linear recurrence, as of state-space models and of
 * exponential averages. a and b broadcast; integers are cast to f32. a_0 is not used.
 * [scope; INDEX, SHAPE] */
WG_API wg_tensor *wg_linear_scan(wg_tensor *a, wg_tensor *b, int axis);

/* ---- Sorting and choosing by rank (ops/sort.c, unique.c). NaN comes after all numbers, -0 and 0
 * are equal. Rows are sorted in parallel, each in a time linear in its length. ---- */

/* The elements along one axis in ascending or descending order, and the i64 indices where they come
 * from; equal ones stay in their order. `values` or `indices` may be NULL for what is not wanted.
 * The gradient goes back to where the values come from. Returns 0 or -1. [scope; INDEX] */
WG_API int wg_sort(wg_tensor *x, int axis, bool descending, wg_tensor **values,
                   wg_tensor **indices);

/* Those indices alone. No gradient. [scope; INDEX] */
WG_API wg_tensor *wg_argsort(wg_tensor *x, int axis, bool descending);

/* The k largest or smallest elements along one axis, in their order, and their i64 indices: the
 * first k of wg_sort, so of equal ones the first (which PyTorch leaves open). Either may be NULL.
 * Returns 0 or -1. [scope; INDEX, ARGUMENT for k beyond the axis] */
WG_API int wg_topk(wg_tensor *x, int64_t k, int axis, bool largest, wg_tensor **values,
                   wg_tensor **indices);

/* The middle element in order along one axis, of an even number the lower one, as PyTorch; NaN if
 * there is one. The gradient goes to that element, of equal ones to one. [scope; INDEX, SHAPE for
 * no elements] */
WG_API wg_tensor *wg_median(wg_tensor *x, int axis, bool keepdim);

/* The values of x in ascending order (U), all NaNs being one, as NumPy; for each element of x the
 * i64 index of its value among them, in the shape of x; and how often each value comes, i64 (U).
 * Any may be NULL. No gradient. Returns 0 or -1. [scope] */
WG_API int wg_unique(wg_tensor *x, wg_tensor **values, wg_tensor **inverse, wg_tensor **counts);

/* ---- Matrix products (ops/matmul.c) ---- */

/* a: (..., M, K)   b: (..., K, N)   ->   (..., M, N): leading axes broadcast; a vector is a row on
 * the left and a column on the right, as NumPy's @. Any strides go to GEMM without a copy.
 * Integers wrap around. PyTorch's bmm and mm are the same. [scope; SHAPE, DTYPE for bools] */
WG_API wg_tensor *wg_matmul(wg_tensor *a, wg_tensor *b);

/* x W^T + bias, the layer's product.   x: (..., I)   weight: (O, I)   bias: (O) or NULL   ->
 * (..., O). Fused; the gradient of weight is accumulated in place. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_linear_op(wg_tensor *x, wg_tensor *weight, wg_tensor *bias);

/* ---- Weights kept small (ops/linalg/quantized.c, quantized_linear.c; the quantizations are in
 * quantize.h) ---- */

/* The rows of x, (..., I) f32, quantized: (..., bytes) u8; and the numbers of quantized rows, f32.
 * I is a multiple of the quantization's block. No gradient. [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_quantize(wg_tensor *x, wg_quantization quantization);
WG_API wg_tensor *wg_dequantize(wg_tensor *quantized, wg_quantization quantization);

/* x W^T + bias with quantized rows for W, which in f32 are read as they are: what writing text one
 * token at a time costs is the reading of the weights.   x: (..., I)   weight: (O, bytes) u8
 * bias: (O) or NULL   ->   (..., O).
 *
 * In f32, blocks of integers are multiplied as llama.cpp does it: 32 elements of a row of x in turn
 * are rounded to integers from -127 to 127 times their largest magnitude / 127, and products of
 * integers are summed. That moves y by about 0.5 % of its size, where x is normally distributed. A
 * row of x gives the same bits alone and among others. bf16 takes x as it is up to 16 rows; more of
 * them are rounded to bf16 where the processor multiplies such numbers. In f64, and for gradients
 * and tangents, nothing is rounded. [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_quantized_linear(wg_tensor *x, wg_tensor *weight, wg_quantization quantization,
                                      wg_tensor *bias);

/* The same with `count` weights, 1 to WG_MAX_QUANTIZED_WEIGHTS, whose outputs come side by side:
 * (..., O1 + O2 + O3). They are read in one go, which takes less than one after the other where x
 * has a row. `biases` is NULL where there are none, as is one of them.
 * [scope; SHAPE, DTYPE, ARGUMENT] */
#define WG_MAX_QUANTIZED_WEIGHTS 3
WG_API wg_tensor *wg_quantized_linears(wg_tensor *x, int count, wg_tensor *const *weights,
                                       wg_quantization quantization, wg_tensor *const *biases);

/* ---- Sums of products (ops/einsum.c) ---- */

/* The sum, over every label that the result lacks, of the product of all operands, in Einstein's
 * notation as NumPy and PyTorch write it.
 *
 *     "ij,jk->ik"         a matrix product          "bqhd,bkhd->bhqk"   scores of attention
 *     "ii->i"  "ii"       a diagonal, the trace     "i,j->ij"           an outer product
 *     "...ij,...jk"       as wg_matmul
 *
 * One term an operand, a letter (a-z, A-Z) an axis; a letter that comes twice in a term is a
 * diagonal, which is for axes of one size; between operands, sizes of 1 are repeated. "..." stands
 * for the axes of a term that have no letter, which broadcast. Without "->", the result has "..."
 * and the letters that come once, in the order of ASCII. Spaces between tokens are free.
 *
 * Up to 32 operands, multiplied in the order that costs least, each time by wg_matmul on views, or
 * by wg_mul where nothing is summed over. Dtypes are promoted; integers wrap around. The result may
 * be a view, of any strides. [scope; SHAPE, ARGUMENT, DTYPE for bools] */
WG_API wg_tensor *wg_einsum(const char *equation, int count, wg_tensor *const *operands);

/* ---- Products by other names (ops/linear_algebra.c). Masks for triangular matrices are wg_tri,
 * wg_tril and wg_triu. ---- */

/* The sum over `count` pairs of axes, axes_a[i] of a with axes_b[i] of b, which have equal sizes;
 * the result has the other axes of a and then those of b. A count of 0 is the product of every
 * element with every other; NumPy's axes=N is the last N of a with the first N of b.
 * [scope; INDEX, SHAPE, ARGUMENT, DTYPE for bools] */
WG_API wg_tensor *wg_tensordot(wg_tensor *a, wg_tensor *b, int count, const int64_t *axes_a,
                               const int64_t *axes_b);

/* All elements of a times all of b: (M) x (N) -> (M, N). Other ranks are flattened, as NumPy does.
 * [scope; SHAPE if that is too large] */
WG_API wg_tensor *wg_outer(wg_tensor *a, wg_tensor *b);

/* The sum of a[i] b[i] of two vectors of one size: a rank-0 tensor, of their dtype.
 * [scope; SHAPE, DTYPE for bools] */
WG_API wg_tensor *wg_dot(wg_tensor *a, wg_tensor *b);

/* beta c + alpha a b, by one GEMM onto a copy of c.   a: (M, K)   b: (K, N)   c: broadcasts to
 * (M, N). With beta 0, c is not read, so that its NaNs stay away. Factors of integers are whole.
 * [scope; SHAPE, ARGUMENT, DTYPE for bools] */
WG_API wg_tensor *wg_addmm(wg_tensor *c, wg_tensor *a, wg_tensor *b, double beta, double alpha);

/* ---- Indexing (ops/index.c, scatter.c). Indices are i64 or i32; negative ones are out of range.
 * ---- */

/* out[..i..] = x[..index[..i..]..] along `axis`; index has the rank of x and no size beyond its
 * other sizes. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_gather(wg_tensor *x, int axis, wg_tensor *index);

/* A copy of x with src[..i..] added at [..index[..i..]..] along `axis`; src has the shape of index.
 * [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_scatter_add(wg_tensor *x, int axis, wg_tensor *index, wg_tensor *src);

/* A copy of x with src[..i..] instead at [..index[..i..]..] along `axis`; src has the shape of
 * index. Of those that go to one place the last, in row-major order along the axis, stays, and it
 * alone has a gradient. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_scatter(wg_tensor *x, int axis, wg_tensor *index, wg_tensor *src);

/* The slices of x at index (n) along one axis. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_index_select(wg_tensor *x, int axis, wg_tensor *index);

/* Rows of a table.   weight: (V, C)   index: (...)   ->   (..., C). The gradient touches only the
 * rows that were used, except row padding_index (-1: none), which gets none.
 * [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_embedding_op(wg_tensor *weight, wg_tensor *index, int64_t padding_index);

/* index (...) -> (..., classes) of dtype i64 with a 1 at each index. No gradient.
 * [scope; INDEX, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_one_hot(wg_tensor *index, int64_t classes);

/* ---- Indexing by several tensors and by masks, as NumPy's advanced indexing
 * (ops/advanced_index.c). An index belongs to the next axis of x: i64 or i32 (negative ones count
 * from the end), or NULL for all of the axis, Python's `:`; one of dtype bool belongs to as many
 * axes as it has and stands for the coordinates of what is true in it. Axes beyond the last index
 * are taken whole. At most 6 indices, and NULL is returned while an error is pending. ---- */

/* x[i, j, ...]: the indices are broadcast against each other, and their shape takes the place of
 * the axes that have one; where a NULL stands between two of them, it comes first. wg_index(x,
 * WG_TENSORS(mask))         x[mask] wg_index(x, WG_TENSORS(NULL, rows))   x[:, rows] [scope; SHAPE,
 * INDEX, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_index(wg_tensor *x, int count, wg_tensor *const *indices);

/* A copy of x with the values, broadcast and cast to its dtype, at x[i, j, ...]: they are added
 * there with `accumulate`; else, of several for one place, the last stays, and it alone has a
 * gradient. [scope; SHAPE, INDEX, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_index_put(wg_tensor *x, int count, wg_tensor *const *indices,
                               wg_tensor *values, bool accumulate);

/* The elements of x where the bool mask is true, in row-major order: (count). The two broadcast.
 * [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_masked_select(wg_tensor *x, wg_tensor *mask);

/* A copy of x with the first elements of source, in row-major order and cast to the dtype of x,
 * where the bool mask, broadcast to x, is true. [scope; SHAPE, also for a source too short; DTYPE]
 */
WG_API wg_tensor *wg_masked_scatter(wg_tensor *x, wg_tensor *mask, wg_tensor *source);

/* ---- Where and how often (ops/nonzero.c) ---- */

/* The coordinates of the elements that are not 0, in row-major order: (count, rank of x), i64. No
 * gradient. [scope] */
WG_API wg_tensor *wg_nonzero(wg_tensor *x);

/* How often each number is in x, of rank 1, of i64 or i32: (max(x) + 1) or (min_length) if that is
 * longer, i64. With weights, of the shape of x, the sum of those instead, in their dtype (f64 for
 * integers); their gradient is gathered. NULL while an error is pending.
 * [scope; SHAPE, DTYPE, INDEX for negative numbers, ARGUMENT] */
WG_API wg_tensor *wg_bincount(wg_tensor *x, wg_tensor *weights, int64_t min_length);

/* For each value the number of elements less than it (right: or equal to it) in a row sorted up, in
 * front of which it belongs: i64. sorted: (n), or (..., n) with the leading axes of the values.
 * Dtypes are promoted; NaN stands behind all numbers. No gradient. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_searchsorted(wg_tensor *sorted, wg_tensor *values, bool right);

/* ---- Softmax and normalisation (ops/softmax.c, ops/norm.c) ---- */

/* e^x / sum e^x along one axis, computed from x - max. A row that is all -inf gives zeros.
 * [scope; INDEX, DTYPE] */
WG_API wg_tensor *wg_softmax(wg_tensor *x, int axis);

/* x - log sum e^x along one axis. [scope; INDEX, DTYPE] */
WG_API wg_tensor *wg_log_softmax(wg_tensor *x, int axis);

/* (x - mean) / sqrt(var + eps) * weight + bias over the last axis   (Ba et al. 2016, eq. 4).
 * x: (..., C)   weight, bias: (C), either may be NULL. Fused. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_layer_norm_op(wg_tensor *x, wg_tensor *weight, wg_tensor *bias, double eps);

/* x / sqrt(mean(x^2) + eps) * weight over the last axis, as LLaMA has it, or with eps_outside x /
 * (sqrt(mean(x^2)) + eps) * weight, as the paper's code   (Zhang & Sennrich 2019, eq. 4).
 * x: (..., C)   weight: (C) or NULL. Fused. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_rms_norm_op(wg_tensor *x, wg_tensor *weight, double eps, bool eps_outside);

/* ---- Attention (ops/attention.c) ---- */

typedef struct wg_attention_options {
    double scale;   /* of the scores; 0 is 1/sqrt(D) */
    bool causal;    /* query i sees keys up to i + (Tk - Tq) */
    double dropout; /* probability of dropping an attention weight; 0 in evaluation */
    uint64_t seed;  /* of the dropout: see wg_dropout_op */
    uint64_t offset;
} wg_attention_options;

/* Scaled dot-product attention, softmax(q k^T / sqrt(D)) v   (Vaswani et al. 2017, eq. 1).
 * q: (B, H, Tq, D)   k, v: (B, Hkv, Tk, D), Hkv divides H   ->   (B, H, Tq, D)
 * mask: NULL, or bool and broadcastable to (B, H, Tq, Tk), true where a query may see a key.
 * Rows that may attend to nothing give zeros. Fused: T x T is never stored for the whole batch.
 * The result is a view whose memory is (B, Tq, H, D), so that merging heads copies nothing.
 * [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_attention(wg_tensor *q, wg_tensor *k, wg_tensor *v, wg_tensor *mask,
                               const wg_attention_options *options);

/* ---- Positions (ops/position.c) ---- */

/* Which elements of the last axis, of width D = 2 P, are turned together. */
typedef enum wg_rotary_pairing {
    WG_ROTARY_HALVES,  /* i and i + P: GPT-NeoX, and LLaMA's weights as Hugging Face has them */
    WG_ROTARY_ADJACENT /* 2 i and 2 i + 1: the paper, and LLaMA's weights as Meta has them */
} wg_rotary_pairing;

/* Rotary positions   (Su et al. 2021, eq. 34): each pair (a, b) of the last axis becomes (a cos - b
 * sin, a sin + b cos).   x: (..., T, D)   cos, sin: (..., T, P) with 2 P <= D, broadcast   ->   as
 * x. Elements beyond 2 P stay as they are. The tables have no gradient. [scope; SHAPE, DTYPE,
 * ARGUMENT]
 */
WG_API wg_tensor *wg_rotary(wg_tensor *x, wg_tensor *cos, wg_tensor *sin,
                            wg_rotary_pairing pairing);

/* ---- Randomness (ops/dropout.c) ---- */

/* Zeroes each element with the given probability and scales the rest by 1 / (1 - p)   (Srivastava
 * et al. 2014). Element i is decided by draw `offset` under `seed`, so backward replays the mask.
 * [scope; ARGUMENT outside 0 <= p < 1, DTYPE] */
WG_API wg_tensor *wg_dropout_op(wg_tensor *x, double p, uint64_t seed, uint64_t offset);

/* ---- Losses (ops/cross_entropy.c, ops/linear_loss.c, ops/loss.c) ---- */

/* The usual ignore_index: PyTorch's mark for a target that counts for nothing. */
#define WG_IGNORE_INDEX (-100)

/* What becomes of the losses of rows or elements. PyTorch's batchmean is their sum, divided by the
 * batch. The mean of none is NaN. */
typedef enum wg_reduction { WG_REDUCTION_MEAN, WG_REDUCTION_SUM, WG_REDUCTION_NONE } wg_reduction;

typedef struct wg_cross_entropy_options {
    wg_reduction reduction; /* the mean is weighted: divided by the sum of the targets' weights */
    double label_smoothing; /* the share of a target that is spread evenly over the classes: 0..1 */
    wg_tensor *weight;      /* (V): of each class; NULL: 1 each. It is given no gradient. */
    int64_t *correct;       /* receives how many rows have the largest of their logits, the first of
                               equals, at their target, a class that is not ignored; NULL: uncounted */
} wg_cross_entropy_options;

/* -log softmax(logits)[target] of each row, reduced: a rank-0 tensor, or (N) with
 * WG_REDUCTION_NONE.
 * logits: (N, V)   target: (N) i64 or i32; those equal to ignore_index count for nothing, and with
 * no other target the mean is NaN, as PyTorch's.
 * target: (N, V) floating: probabilities t, for -sum_c t_c log softmax(logits)_c, which get a
 * gradient, too; their mean is over N, and ignore_index must be negative.
 * Fused: no copy of the logits is made for backward. options: NULL for the plain mean.
 * [scope; SHAPE, DTYPE, INDEX, ARGUMENT] */
WG_API wg_tensor *wg_cross_entropy(wg_tensor *logits, wg_tensor *target, int64_t ignore_index,
                                   const wg_cross_entropy_options *options);

/* The same of log probabilities, (N, V): -log_probabilities[target], for classes alone and without
 * label smoothing. [scope; SHAPE, DTYPE, INDEX, ARGUMENT] */
WG_API wg_tensor *wg_nll_loss(wg_tensor *log_probabilities, wg_tensor *target, int64_t ignore_index,
                              const wg_cross_entropy_options *options);

/* wg_cross_entropy of the logits x linear_weight^T + linear_bias, of which few rows are in memory
 * at a time. x: (N, D)   linear_weight: (V, D)   target: as there   linear_bias: (V) or NULL While
 * recording, the gradients are computed together with the losses, so that the logits are computed
 * once, and backward only multiplies by its cotangent; with WG_REDUCTION_NONE, where every row has
 * its own, it computes the logits again. Rows with ignored targets cost next to nothing. Fused for
 * targets that are classes; of others the logits are stored. [scope; SHAPE, DTYPE, INDEX, ARGUMENT]
 */
WG_API wg_tensor *wg_linear_cross_entropy(wg_tensor *x, wg_tensor *linear_weight, wg_tensor *target,
                                          wg_tensor *linear_bias, int64_t ignore_index,
                                          const wg_cross_entropy_options *options);

/* All below take x and target of one shape; to compare with a broadcast target, expand it. Both get
 * gradients. */

/* (x - target)^2 [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_mse_loss(wg_tensor *x, wg_tensor *target, wg_reduction reduction);

/* |x - target|; derivative 0 where they are equal. [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_l1_loss(wg_tensor *x, wg_tensor *target, wg_reduction reduction);

/* With d = |x - target|: d^2 / (2 beta) where d < beta, d - beta / 2 elsewhere (Girshick 2015, eq.
 * 3); with a beta of 0, l1_loss. [scope; SHAPE, DTYPE, ARGUMENT for a negative beta] */
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

/* The cosine of the angle between a and b along one axis, a b / (max(|a|, eps) max(|b|, eps)), a
 * and b broadcast. PyTorch's eps is 1e-8. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_cosine_similarity(wg_tensor *a, wg_tensor *b, int axis, double eps);

WG_END_DECLS

#endif
