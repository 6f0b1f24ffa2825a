# Written by generate.py from the public headers: make -C build update-python. Do not edit.

"""Every op and constructor of tensors, with its contract."""
from . import _api
from ._call import (_axes, _byref, _c_void_p, _check, _dtype, _enum, _generator, _inf, _integers,
                    _largest, _lib, _maybe, _one, _options, _pairs, _many,
                    _same_length, _several, _spatial, _tensor, _tensors, _with_extra,
                    END)
from ._tensor import select


def zeros(shape, dtype="f32"):
    """Every element 0, 1 or `value` (converted as a C cast does, clamped to an integer dtype's range).

    Errors: SHAPE."""
    shape = _integers(shape)
    _count = len(shape)
    return _one(_lib.wg_zeros, _dtype(dtype), _count, shape)


def ones(shape, dtype="f32"):
    """Every element 0, 1 or `value` (converted as a C cast does, clamped to an integer dtype's range).

    Errors: SHAPE."""
    shape = _integers(shape)
    _count = len(shape)
    return _one(_lib.wg_ones, _dtype(dtype), _count, shape)


def full(shape, value, dtype="f32"):
    """Every element 0, 1 or `value` (converted as a C cast does, clamped to an integer dtype's range).

    Errors: SHAPE."""
    shape = _integers(shape)
    _count = len(shape)
    return _one(_lib.wg_full, _dtype(dtype), _count, shape, value)


def zeros_like(x):
    """Zeros, ones, another value or uninitialised elements with the shape and dtype of x."""
    return _one(_lib.wg_zeros_like, _tensor(x))


def ones_like(x):
    """Zeros, ones, another value or uninitialised elements with the shape and dtype of x."""
    return _one(_lib.wg_ones_like, _tensor(x))


def full_like(x, value):
    """Zeros, ones, another value or uninitialised elements with the shape and dtype of x."""
    return _one(_lib.wg_full_like, _tensor(x), value)


def empty_like(x):
    """Zeros, ones, another value or uninitialised elements with the shape and dtype of x."""
    return _one(_lib.wg_empty_like, _tensor(x))


def linspace(start, stop, count, dtype="f32"):
    """`count` numbers at equal distances from start to stop, both included: [count]. Integers are
    rounded down, as in NumPy.

    Errors: ARGUMENT for a negative count."""
    return _one(_lib.wg_linspace, _dtype(dtype), start, stop, count)


def logspace(start, stop, count, base=10.0, dtype="f32"):
    """base to the power of each of linspace(start, stop, count). Integers are truncated.

    Errors: ARGUMENT for a negative count."""
    return _one(_lib.wg_logspace, _dtype(dtype), start, stop, count, base)


def eye(rows, columns, dtype="f32"):
    """Zeros with ones on the main diagonal: [rows, columns].

    Errors: SHAPE."""
    return _one(_lib.wg_eye, _dtype(dtype), rows, columns)


def tri(rows, columns, diagonal=0, dtype="f32"):
    """Ones on and below the diagonal `diagonal` (0: the main one, 1: the one above it), zeros above:
    [rows, columns].

    Errors: SHAPE."""
    return _one(_lib.wg_tri, _dtype(dtype), rows, columns, diagonal)


def rand(shape, dtype="f32", generator=None):
    """Uniform in [0, 1), of a floating dtype. Consumes one draw; NULL is the default generator.

    Errors: SHAPE, DTYPE."""
    shape = _integers(shape)
    _count = len(shape)
    return _one(_lib.wg_rand, _generator(generator), _dtype(dtype), _count, shape)


def randn(shape, dtype="f32", generator=None):
    """Standard normal (Box-Muller), of a floating dtype. Consumes one draw.

    Errors: SHAPE, DTYPE."""
    shape = _integers(shape)
    _count = len(shape)
    return _one(_lib.wg_randn, _generator(generator), _dtype(dtype), _count, shape)


def rand_like(x, generator=None):
    """The same two with the shape and dtype of x.

    Errors: DTYPE."""
    return _one(_lib.wg_rand_like, _generator(generator), _tensor(x))


def randn_like(x, generator=None):
    """The same two with the shape and dtype of x.

    Errors: DTYPE."""
    return _one(_lib.wg_randn_like, _generator(generator), _tensor(x))


def normal(shape, mean=0.0, std=1.0, dtype="f32", generator=None):
    """Normal with a mean and a standard deviation, of a floating dtype. Consumes one draw.

    Errors: SHAPE, DTYPE, ARGUMENT for a negative or infinite deviation."""
    shape = _integers(shape)
    _count = len(shape)
    return _one(_lib.wg_normal, _generator(generator), _dtype(dtype), _count, shape, mean, std)


def trunc_normal(shape, mean=0.0, std=1.0, low=-2.0, high=2.0, dtype="f32", generator=None):
    """The normal distribution truncated to [low, high], exact in the tails, too. A limit may be
    infinite. Consumes one draw.

    Errors: SHAPE, DTYPE, ARGUMENT unless std > 0 and low < high."""
    shape = _integers(shape)
    _count = len(shape)
    return _one(_lib.wg_trunc_normal, _generator(generator), _dtype(dtype), _count, shape, mean, std, low, high)


def bernoulli(p, generator=None):
    """1 with probability p, else 0, for each element of p, in its floating dtype. Consumes one draw.

    Errors: DTYPE, ARGUMENT outside 0 <= p <= 1."""
    return _one(_lib.wg_bernoulli, _generator(generator), _tensor(p))


def multinomial(samples, weights=None, replacement=False, generator=None):
    """Categories drawn by weights that need not sum to 1.   weights: (..., V) floating   ->
    (..., samples) i64. Without replacement the samples of a row are distinct, in the order
    of drawing. A category of weight 0 is never drawn. Consumes one draw.

    Errors: SHAPE, DTYPE, ARGUMENT for weights that are negative or not finite, for rows that sum to 0, for fewer than 1 sample, and, without replacement, for more samples than weights above 0."""
    return _one(_lib.wg_multinomial, _generator(generator), _maybe(weights), samples, replacement)


def randint(low, high, shape, generator=None):
    """Integers uniform in [low, high), dtype i64. Consumes one draw.

    Errors: SHAPE, ARGUMENT."""
    shape = _integers(shape)
    _count = len(shape)
    return _one(_lib.wg_randint, _generator(generator), low, high, _count, shape)


def randperm(n, generator=None):
    """A random permutation of 0..n-1, i64 [n] (Fisher-Yates). Consumes one draw.

    Errors: ARGUMENT."""
    return _one(_lib.wg_randperm, _generator(generator), n)


def fill_(x, value):
    """Sets all elements to a value, cast to the dtype of x. 0, or -1 with

    Errors: ARGUMENT, GRADIENT."""
    _check(_lib.wg_fill_(_tensor(x), value))


def copy_(x, src):
    """Copies src, broadcast to the shape of x and cast to its dtype; src may overlap x.

    Errors: SHAPE, ARGUMENT, GRADIENT."""
    _check(_lib.wg_copy_(_tensor(x), _tensor(src)))


def add_(x, y, alpha):
    """x += alpha * y, with y of the same shape and dtype, which may overlap x.

    Errors: SHAPE, DTYPE, ARGUMENT, GRADIENT."""
    _check(_lib.wg_add_(_tensor(x), _tensor(y), alpha))


def scale_(x, alpha):
    """x *= alpha, of a floating dtype.

    Errors: DTYPE, ARGUMENT, GRADIENT."""
    _check(_lib.wg_scale_(_tensor(x), alpha))


def cast(x, dtype):
    """x in another dtype, or an alias of x if it has that dtype already. Floats are truncated to
    integers and clamped to their range, and NaN gives 0; anything to bool is x != 0. Differentiable
    between floating dtypes."""
    return _one(_lib.wg_cast, _tensor(x), _dtype(dtype))


def clone(x):
    """A copy of x in contiguous memory."""
    return _one(_lib.wg_clone, _tensor(x))


def contiguous(x):
    """x in contiguous memory: an alias if x is contiguous already, else a copy."""
    return _one(_lib.wg_contiguous, _tensor(x))


def affine(x, scale, shift):
    """x * scale + shift, in the dtype of x; for integers the result is truncated."""
    return _one(_lib.wg_affine, _tensor(x), scale, shift)


def add_scalar(x, c):
    """x + c, in the dtype of x"""
    return _one(_lib.wg_add_scalar, _tensor(x), c)


def mul_scalar(x, c):
    """x * c, in the dtype of x"""
    return _one(_lib.wg_mul_scalar, _tensor(x), c)


def pow_scalar(x, c):
    """x^c; integers are cast to f32"""
    return _one(_lib.wg_pow_scalar, _tensor(x), c)


def clamp(x, low=-_inf, high=_inf):
    """x limited to [low, high]. The derivative is 1 from low to high inclusive, as in PyTorch. Pass
    -INFINITY or INFINITY to leave a side open.

    Errors: ARGUMENT if low > high."""
    return _one(_lib.wg_clamp, _tensor(x), low, high)


def nan_to_num(x, nan=0.0, posinf=_largest, neginf=-_largest):
    """Replaces NaN, inf and -inf by numbers, where the derivative is 0. PyTorch's and NumPy's defaults
    are 0, DBL_MAX and -DBL_MAX: a number outside the range of the dtype becomes its largest.
    Integers and bools are copied."""
    return _one(_lib.wg_nan_to_num, _tensor(x), nan, posinf, neginf)


def neg(x):
    """-x

    Errors: DTYPE for bool."""
    return _one(_lib.wg_neg, _tensor(x))


def abs(x):
    """|x|; derivative sign(x), 0 at 0"""
    return _one(_lib.wg_abs, _tensor(x))


def exp(x):
    """e^x"""
    return _one(_lib.wg_exp, _tensor(x))


def exp2(x):
    """2^x"""
    return _one(_lib.wg_exp2, _tensor(x))


def expm1(x):
    """e^x - 1, exact near 0"""
    return _one(_lib.wg_expm1, _tensor(x))


def log(x):
    """ln x"""
    return _one(_lib.wg_log, _tensor(x))


def log2(x):
    """log x to the base 2"""
    return _one(_lib.wg_log2, _tensor(x))


def log10(x):
    """log x to the base 10"""
    return _one(_lib.wg_log10, _tensor(x))


def log1p(x):
    """ln(1 + x), exact near 0"""
    return _one(_lib.wg_log1p, _tensor(x))


def sqrt(x):
    """x^(1/2)"""
    return _one(_lib.wg_sqrt, _tensor(x))


def rsqrt(x):
    """x^(-1/2)"""
    return _one(_lib.wg_rsqrt, _tensor(x))


def cbrt(x):
    """x^(1/3), with the sign of x"""
    return _one(_lib.wg_cbrt, _tensor(x))


def reciprocal(x):
    """1 / x"""
    return _one(_lib.wg_reciprocal, _tensor(x))


def square(x):
    """x^2; bools are cast to i64"""
    return _one(_lib.wg_square, _tensor(x))


def tanh(x):
    """tanh x; derivative 1 - y^2"""
    return _one(_lib.wg_tanh, _tensor(x))


def sigmoid(x):
    """1 / (1 + e^-x); derivative y (1 - y)"""
    return _one(_lib.wg_sigmoid, _tensor(x))


def erf(x):
    """erf x; derivative 2/sqrt(pi) e^(-x^2)"""
    return _one(_lib.wg_erf, _tensor(x))


def sign(x):
    """-1, 0 or 1; NaN of NaN, as in NumPy"""
    return _one(_lib.wg_sign, _tensor(x))


def floor(x):
    """the largest integer not above x"""
    return _one(_lib.wg_floor, _tensor(x))


def ceil(x):
    """the smallest integer not below x"""
    return _one(_lib.wg_ceil, _tensor(x))


def round(x):
    """the nearest integer, the even one of two"""
    return _one(_lib.wg_round, _tensor(x))


def trunc(x):
    """x without its fraction"""
    return _one(_lib.wg_trunc, _tensor(x))


def sin(x):
    """derivative cos x"""
    return _one(_lib.wg_sin, _tensor(x))


def cos(x):
    """derivative -sin x"""
    return _one(_lib.wg_cos, _tensor(x))


def tan(x):
    """derivative 1 + y^2"""
    return _one(_lib.wg_tan, _tensor(x))


def asin(x):
    """derivative 1 / sqrt(1 - x^2)"""
    return _one(_lib.wg_asin, _tensor(x))


def acos(x):
    """derivative -1 / sqrt(1 - x^2)"""
    return _one(_lib.wg_acos, _tensor(x))


def atan(x):
    """derivative 1 / (1 + x^2)"""
    return _one(_lib.wg_atan, _tensor(x))


def sinh(x):
    """derivative cosh x"""
    return _one(_lib.wg_sinh, _tensor(x))


def cosh(x):
    """derivative sinh x"""
    return _one(_lib.wg_cosh, _tensor(x))


def asinh(x):
    """derivative 1 / sqrt(x^2 + 1)"""
    return _one(_lib.wg_asinh, _tensor(x))


def acosh(x):
    """derivative 1 / sqrt(x^2 - 1)"""
    return _one(_lib.wg_acosh, _tensor(x))


def atanh(x):
    """derivative 1 / (1 - x^2)"""
    return _one(_lib.wg_atanh, _tensor(x))


def erfc(x):
    """1 - erf x, exact where that is small"""
    return _one(_lib.wg_erfc, _tensor(x))


def lgamma(x):
    """ln |Gamma(x)|; derivative digamma(x)"""
    return _one(_lib.wg_lgamma, _tensor(x))


def digamma(x):
    """Gamma'(x) / Gamma(x); NaN at -1, -2..."""
    return _one(_lib.wg_digamma, _tensor(x))


def polygamma(n, x):
    """The n-th derivative of digamma(x); infinite at 0, -1, -2...

    Errors: ARGUMENT for n < 0."""
    return _one(_lib.wg_polygamma, n, _tensor(x))


def add(a, b):
    """a + b; of bools: or

    Errors: SHAPE."""
    return _one(_lib.wg_add, _tensor(a), _tensor(b))


def sub(a, b):
    """a - b

    Errors: SHAPE, DTYPE for bools."""
    return _one(_lib.wg_sub, _tensor(a), _tensor(b))


def mul(a, b):
    """a b; of bools: and

    Errors: SHAPE."""
    return _one(_lib.wg_mul, _tensor(a), _tensor(b))


def div(a, b):
    """a / b, true division: integers are cast to f32.

    Errors: SHAPE."""
    return _one(_lib.wg_div, _tensor(a), _tensor(b))


def pow(a, b):
    """a^b; integers are cast to f32. da = b a^(b-1), db = a^b log a (0 where a = 0 and b >= 0, as in
    PyTorch).

    Errors: SHAPE."""
    return _one(_lib.wg_pow, _tensor(a), _tensor(b))


def maximum(a, b):
    """The larger or the smaller of a and b; NaN if either is NaN. At ties each gets half of the
    gradient.

    Errors: SHAPE."""
    return _one(_lib.wg_maximum, _tensor(a), _tensor(b))


def minimum(a, b):
    """The larger or the smaller of a and b; NaN if either is NaN. At ties each gets half of the
    gradient.

    Errors: SHAPE."""
    return _one(_lib.wg_minimum, _tensor(a), _tensor(b))


def atan2(a, b):
    """The angle of the point (b, a), from -pi to pi; integers are cast to f32. da = b / (a^2 + b^2),
    db = -a / (a^2 + b^2), computed without overflow, and NaN at (0, 0).

    Errors: SHAPE."""
    return _one(_lib.wg_atan2, _tensor(a), _tensor(b))


def hypot(a, b):
    """sqrt(a^2 + b^2) without overflow of the squares; integers are cast to f32. The derivative at (0,
    0) is NaN, as in PyTorch.

    Errors: SHAPE."""
    return _one(_lib.wg_hypot, _tensor(a), _tensor(b))


def logaddexp(a, b):
    """ln(e^a + e^b) without overflow; integers are cast to f32.

    Errors: SHAPE."""
    return _one(_lib.wg_logaddexp, _tensor(a), _tensor(b))


def xlogy(a, b):
    """a ln b, and 0 where a is 0 (but NaN where b is NaN); integers are cast to f32. da = ln b, 0 where
    a = 0 and b <= 0; db = a / b.

    Errors: SHAPE."""
    return _one(_lib.wg_xlogy, _tensor(a), _tensor(b))


def remainder(a, b):
    """The remainder of a division. remainder: a - b floor(a / b), with the sign of b, as Python's %.
    fmod: a - b trunc(a / b), with the sign of a, as C's %. Division by 0 gives NaN for floats and an
    error for integers. da = 1, db = the negative of the rounded quotient.

    Errors: SHAPE, DTYPE for bools, ARGUMENT for an integer divided by 0."""
    return _one(_lib.wg_remainder, _tensor(a), _tensor(b))


def fmod(a, b):
    """The remainder of a division. remainder: a - b floor(a / b), with the sign of b, as Python's %.
    fmod: a - b trunc(a / b), with the sign of a, as C's %. Division by 0 gives NaN for floats and an
    error for integers. da = 1, db = the negative of the rounded quotient.

    Errors: SHAPE, DTYPE for bools, ARGUMENT for an integer divided by 0."""
    return _one(_lib.wg_fmod, _tensor(a), _tensor(b))


def lerp(a, b, weight):
    """a + weight (b - a): a at weight 0, b at weight 1. Integers are cast to f32.

    Errors: SHAPE."""
    return _one(_lib.wg_lerp, _tensor(a), _tensor(b), _tensor(weight))


def addcmul(x, a, b, value=1.0):
    """x + value a b. For integer operands, value must be an integer of their dtype.

    Errors: SHAPE, DTYPE for bools, ARGUMENT."""
    return _one(_lib.wg_addcmul, _tensor(x), _tensor(a), _tensor(b), value)


def addcdiv(x, a, b, value=1.0):
    """x + value a / b, true division: integers are cast to f32.

    Errors: SHAPE."""
    return _one(_lib.wg_addcdiv, _tensor(x), _tensor(a), _tensor(b), value)


def eq(a, b):
    """a == b

    Errors: SHAPE."""
    return _one(_lib.wg_eq, _tensor(a), _tensor(b))


def ne(a, b):
    """a != b

    Errors: SHAPE."""
    return _one(_lib.wg_ne, _tensor(a), _tensor(b))


def lt(a, b):
    """a <  b

    Errors: SHAPE."""
    return _one(_lib.wg_lt, _tensor(a), _tensor(b))


def le(a, b):
    """a <= b

    Errors: SHAPE."""
    return _one(_lib.wg_le, _tensor(a), _tensor(b))


def gt(a, b):
    """a >  b

    Errors: SHAPE."""
    return _one(_lib.wg_gt, _tensor(a), _tensor(b))


def ge(a, b):
    """a >= b

    Errors: SHAPE."""
    return _one(_lib.wg_ge, _tensor(a), _tensor(b))


def logical_and(a, b):
    """Logic on the truth (!= 0) of any dtype.

    Errors: SHAPE."""
    return _one(_lib.wg_logical_and, _tensor(a), _tensor(b))


def logical_or(a, b):
    """Logic on the truth (!= 0) of any dtype.

    Errors: SHAPE."""
    return _one(_lib.wg_logical_or, _tensor(a), _tensor(b))


def logical_xor(a, b):
    """Logic on the truth (!= 0) of any dtype.

    Errors: SHAPE."""
    return _one(_lib.wg_logical_xor, _tensor(a), _tensor(b))


def logical_not(x):
    """Logic on the truth (!= 0) of any dtype.

    Errors: SHAPE."""
    return _one(_lib.wg_logical_not, _tensor(x))


def isnan(x):
    """x is NaN"""
    return _one(_lib.wg_isnan, _tensor(x))


def isinf(x):
    """x is inf or -inf"""
    return _one(_lib.wg_isinf, _tensor(x))


def isfinite(x):
    """neither NaN nor infinite"""
    return _one(_lib.wg_isfinite, _tensor(x))


def where(condition, a, b):
    """condition ? a : b, all three broadcast; condition is bool.

    Errors: SHAPE, DTYPE."""
    return _one(_lib.wg_where, _tensor(condition), _tensor(a), _tensor(b))


def masked_fill(x, mask, value):
    """`value` where the bool mask, broadcast to x, is true, and x elsewhere.

    Errors: SHAPE, DTYPE."""
    return _one(_lib.wg_masked_fill, _tensor(x), _tensor(mask), value)


def relu(x):
    """max(x, 0), which keeps the dtype of integers; derivative 0 at 0."""
    return _one(_lib.wg_relu, _tensor(x))


def leaky_relu(x, slope=0.01):
    """x above 0, slope x below (PyTorch's default is 0.01); derivative slope at 0. This function and
    those below cast integers and bools to f32."""
    return _one(_lib.wg_leaky_relu, _tensor(x), slope)


def elu(x, alpha=1.0):
    """x above 0, alpha (e^x - 1) below (PyTorch's default is 1); derivative alpha at 0   (Clevert et
    al. 2016)."""
    return _one(_lib.wg_elu, _tensor(x), alpha)


def gelu(x):
    """x Phi(x) = x/2 (1 + erf(x / sqrt 2))   (Hendrycks & Gimpel 2016), the form of BERT."""
    return _one(_lib.wg_gelu, _tensor(x))


def gelu_tanh(x):
    """x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the form of GPT-2."""
    return _one(_lib.wg_gelu_tanh, _tensor(x))


def silu(x):
    """x / (1 + e^-x), also known as swish   (Ramachandran et al. 2017), the form of LLaMA. NaN at -inf,
    as in PyTorch."""
    return _one(_lib.wg_silu, _tensor(x))


def mish(x):
    """x tanh(log(1 + e^x))   (Misra 2020). NaN at -inf, as in PyTorch."""
    return _one(_lib.wg_mish, _tensor(x))


def softplus(x, beta=1.0, threshold=20.0):
    """log(1 + e^(beta x)) / beta, and x itself where beta x > threshold. A beta of 0 means 1 and a
    threshold of 0 means 20, PyTorch's defaults; pass INFINITY for no threshold.

    Errors: ARGUMENT for a beta that is not finite or a threshold of NaN."""
    return _one(_lib.wg_softplus, _tensor(x), beta, threshold)


def log_sigmoid(x):
    """log(1 / (1 + e^-x)), without overflow: PyTorch's logsigmoid."""
    return _one(_lib.wg_log_sigmoid, _tensor(x))


def hardsigmoid(x):
    """x/6 + 1/2 limited to [0, 1]; derivative 0 at -3 and 3, as in PyTorch."""
    return _one(_lib.wg_hardsigmoid, _tensor(x))


def hardswish(x):
    """x hardsigmoid(x)   (Howard et al. 2019); derivative 0 at -3 and 1 at 3, the values beyond these
    kinks; NaN at -inf."""
    return _one(_lib.wg_hardswish, _tensor(x))


def glu(gate, value):
    """f: sigmoid

    Errors: SHAPE."""
    return _one(_lib.wg_glu, _tensor(gate), _tensor(value))


def swiglu(gate, value):
    """f: silu

    Errors: SHAPE."""
    return _one(_lib.wg_swiglu, _tensor(gate), _tensor(value))


def geglu(gate, value):
    """f: gelu

    Errors: SHAPE."""
    return _one(_lib.wg_geglu, _tensor(gate), _tensor(value))


def reglu(gate, value):
    """f: relu

    Errors: SHAPE."""
    return _one(_lib.wg_reglu, _tensor(gate), _tensor(value))


def dropout(x, p, seed, offset):
    """Sets each element to 0 with probability p and multiplies the others by 1 / (1 - p)   (Srivastava
    et al. 2014). Word i of draw `offset` under `seed` decides element i, so backward draws the same
    mask.

    Errors: ARGUMENT outside 0 <= p < 1, DTYPE."""
    return _one(_lib.wg_dropout_op, _tensor(x), p, seed, offset)


def reshape(x, shape):
    """The same elements in row-major order under another shape; one size may be -1, which is inferred.
    Copies only if no strides on the memory of x give that shape.

    Errors: SHAPE."""
    shape = _integers(shape)
    _count = len(shape)
    return _one(_lib.wg_reshape, _tensor(x), _count, shape)


def squeeze(x, axis):
    """Removes an axis of size 1.

    Errors: INDEX, SHAPE."""
    return _one(_lib.wg_squeeze, _tensor(x), axis)


def unsqueeze(x, axis):
    """Adds an axis of size 1 before `axis`; -1 adds it last.

    Errors: INDEX, SHAPE."""
    return _one(_lib.wg_unsqueeze, _tensor(x), axis)


def flatten(x, first_axis=0, last_axis=-1):
    """Joins the axes from first_axis to last_axis into one, by reshape; a scalar becomes a vector of
    one element.

    Errors: INDEX, ARGUMENT if the first comes after the last."""
    return _one(_lib.wg_flatten, _tensor(x), first_axis, last_axis)


def unflatten(x, axis, sizes):
    """Splits one axis into `ndim` axes of these sizes, whose product is its size; one of them may be
    -1, which is inferred.

    Errors: INDEX, SHAPE."""
    sizes = _integers(sizes)
    _count = len(sizes)
    return _one(_lib.wg_unflatten, _tensor(x), axis, _count, sizes)


def expand(x, shape):
    """Repeats axes of size 1, and new leading axes, up to the given shape by a stride of 0; a size of
    -1 keeps that of x. NumPy's broadcast_to.

    Errors: SHAPE."""
    shape = _integers(shape)
    _count = len(shape)
    return _one(_lib.wg_expand, _tensor(x), _count, shape)


def permute(x, order):
    """Axis i of the result is axis order[i] of x; `order` is a permutation of all axes.

    Errors: INDEX, SHAPE."""
    order = _integers(order)
    _count = len(order)
    return _one(_lib.wg_permute, _tensor(x), _count, order)


def transpose(x, axis_a, axis_b):
    """Exchanges two axes.

    Errors: INDEX."""
    return _one(_lib.wg_transpose, _tensor(x), axis_a, axis_b)


def movedim(x, source, destination):
    """Axis from[i] of x becomes axis to[i] of the result; the others keep their order. NumPy's
    moveaxis.

    Errors: INDEX, ARGUMENT for more axes than a tensor has."""
    source = _integers(source)
    _count = len(source)
    destination = _integers(destination)
    _same_length(_count, destination)
    return _one(_lib.wg_movedim, _tensor(x), _count, source, destination)


def slice_(x, axis, start=0, stop=END, step=1):
    """x[start:stop:step] along one axis, with Python's rules, as a view: negative start and stop count
    from the end, and both are clamped to the axis. The step may be negative. WG_END means the end:
    as stop of a positive step, the end of the axis; as start of a negative step, the last element;
    as stop of a negative step, include element 0.

    Errors: INDEX, ARGUMENT for step 0."""
    return _one(_lib.wg_slice, _tensor(x), axis, start, stop, step)


def narrow(x, axis, start, length):
    """x[start:start + length] along one axis, as a view. A negative start counts from the end; the
    whole range must lie within the axis.

    Errors: INDEX."""
    return _one(_lib.wg_narrow, _tensor(x), axis, start, length)


def split(x, axis, sizes):
    """Splits an axis into `count` parts of the given sizes, whose sum is its size; `parts` receives the
    views. Returns 0 or -1.

    Errors: SHAPE, INDEX."""
    sizes = _integers(sizes)
    _count = len(sizes)
    _parts = (_c_void_p * (_count or 1))()
    return _many(_parts, _count, _lib.wg_split, _tensor(x), axis, _count, sizes, _parts)


def chunk(x, axis, count):
    """Splits an axis into `count` parts of ceil(size / count); the last parts may be smaller or empty.
    `parts` receives the views. Returns 0 or -1.

    Errors: ARGUMENT, INDEX."""
    _parts = (_c_void_p * (count or 1))()
    return _many(_parts, count, _lib.wg_chunk, _tensor(x), axis, count, _parts)


def diagonal(x, offset=0, axis_a=0, axis_b=1):
    """The elements at i of axis_a and i + offset of axis_b, for every i where both exist, as a view.
    The two axes are removed, and the diagonal becomes the last axis; it is empty for an offset
    outside x.

    Errors: INDEX."""
    return _one(_lib.wg_diagonal, _tensor(x), offset, axis_a, axis_b)


def diag_embed(x, offset=0, axis_a=-2, axis_b=-1):
    """Square matrices with the last axis of x (..., n) on the diagonal `offset`, and 0 elsewhere. The
    result has one axis more than x; axis_a (rows) and axis_b (columns) have size n + |offset|.

    Errors: INDEX, SHAPE."""
    return _one(_lib.wg_diag_embed, _tensor(x), offset, axis_a, axis_b)


def tril(x, diagonal=0):
    """Keeps the elements on and below (tril) or on and above (triu) the diagonal `diagonal` of the last
    two axes; the others become 0.

    Errors: SHAPE below rank 2."""
    return _one(_lib.wg_tril, _tensor(x), diagonal)


def triu(x, diagonal=0):
    """Keeps the elements on and below (tril) or on and above (triu) the diagonal `diagonal` of the last
    two axes; the others become 0.

    Errors: SHAPE below rank 2."""
    return _one(_lib.wg_triu, _tensor(x), diagonal)


def cat(tensors, axis=0):
    """Joins tensors along an existing axis; their dtypes are promoted.

    Errors: SHAPE, INDEX."""
    tensors = _tensors(tensors)
    _count = len(tensors)
    return _one(_lib.wg_cat, _count, tensors, axis)


def stack(tensors, axis=0):
    """Joins tensors of one shape along a new axis.

    Errors: SHAPE, INDEX."""
    tensors = _tensors(tensors)
    _count = len(tensors)
    return _one(_lib.wg_stack, _count, tensors, axis)


def meshgrid(vectors):
    """The coordinates of a grid: vectors of sizes n0, n1, ... give as many views (n0, n1, ...). Output
    i varies along axis i as vector i does, and is constant along the others: indexing "ij" of NumPy
    and PyTorch. A scalar counts as a vector of one element. Returns 0 or -1.

    Errors: SHAPE, ARGUMENT for no vectors or more than WG_MAX_DIMS."""
    vectors = _tensors(vectors)
    _count = len(vectors)
    _outputs = (_c_void_p * (_count or 1))()
    return _many(_outputs, _count, _lib.wg_meshgrid, _count, vectors, _outputs)


def flip(x, axis=None):
    """x with the elements of the given axes in reverse order, as a view; `0, NULL` reverses all axes.

    Errors: INDEX, ARGUMENT."""
    axis = _axes(axis)
    _count = len(axis) if axis is not None else 0
    return _one(_lib.wg_flip, _tensor(x), _count, axis)


def roll(x, shifts, axes=None):
    """Moves the elements along axis axes[i] by shifts[i] places, from the end around to the front;
    negative shifts move them back. The shifts of an axis that is given twice add up. With axes NULL
    there is one shift, of the elements in row-major order.

    Errors: INDEX, ARGUMENT."""
    shifts = _integers(shifts)
    _count = len(shifts)
    axes = _integers(axes)
    return _one(_lib.wg_roll, _tensor(x), _count, shifts, axes)


def tile(x, repeats):
    """x repeated repeats[i] times along each axis, as NumPy's tile and PyTorch's repeat. The last
    repeat belongs to the last axis; missing repeats are 1, and extra ones add leading axes. The
    result may be a view where nothing is repeated.

    Errors: ARGUMENT for negative or too many repeats, SHAPE."""
    repeats = _integers(repeats)
    _count = len(repeats)
    return _one(_lib.wg_tile, _tensor(x), _count, repeats)


def repeat_interleave(x, repeats, axis):
    """Each element of one axis `repeats` times in a row: NumPy's repeat. The result may be a view where
    nothing is repeated.

    Errors: INDEX, ARGUMENT for negative repeats, SHAPE."""
    return _one(_lib.wg_repeat_interleave, _tensor(x), repeats, axis)


def unfold(x, axis, size, step):
    """The windows of `size` elements that begin at every step-th place of an axis, as PyTorch's unfold:
    the axis then counts windows, and a new last axis runs through each window. A view, in which
    overlapping windows share their elements.

    Errors: INDEX, SHAPE if x is shorter than a window, ARGUMENT for a size or step below 1."""
    return _one(_lib.wg_unfold, _tensor(x), axis, size, step)


def pad(x, widths, mode="constant", value=0.0):
    """Pads the last axis_count axes of x at both ends. `widths` holds the pair (before, after) of each
    axis, first axis first as in NumPy (PyTorch begins with the last axis); negative widths crop.
    `value` is the number v of WG_PAD_CONSTANT.

    Errors: SHAPE where the mode or the cropping needs more elements than there are, ARGUMENT."""
    widths = _pairs(widths)
    _count = len(widths) // 2
    return _one(_lib.wg_pad, _tensor(x), _count, widths, _enum(_api.wg_pad_mode, mode), value)


def sum(x, axis=None, keepdim=False):
    """The sum; integers and bools sum in i64.

    Errors: INDEX."""
    axis = _axes(axis)
    _count = len(axis) if axis is not None else 0
    return _one(_lib.wg_sum, _tensor(x), _count, axis, keepdim)


def mean(x, axis=None, keepdim=False):
    """The mean; integers are cast to f32. The mean of no elements is NaN.

    Errors: INDEX."""
    axis = _axes(axis)
    _count = len(axis) if axis is not None else 0
    return _one(_lib.wg_mean, _tensor(x), _count, axis, keepdim)


def var(x, axis=None, correction=1, keepdim=False):
    """The variance, sum (x - mean)^2 / (n - correction). Correction 1 gives the unbiased variance, 0
    that of the population. Integers are cast to f32; n - correction is at least 0.

    Errors: INDEX."""
    axis = _axes(axis)
    _count = len(axis) if axis is not None else 0
    return _one(_lib.wg_var, _tensor(x), _count, axis, correction, keepdim)


def std(x, axis=None, correction=1, keepdim=False):
    """The standard deviation, the square root of var. Where it is 0 its derivative is 0, as in
    PyTorch.

    Errors: INDEX."""
    axis = _axes(axis)
    _count = len(axis) if axis is not None else 0
    return _one(_lib.wg_std, _tensor(x), _count, axis, correction, keepdim)


def sum_to(x, shape):
    """x summed over the axes along which broadcasting repeated it, back to `shape`: the adjoint of
    expand.

    Errors: SHAPE."""
    shape = _integers(shape)
    _count = len(shape)
    return _one(_lib.wg_sum_to, _tensor(x), _count, shape)


def prod(x, axis=None, keepdim=False):
    """The product; integers and bools multiply in i64. The product of no elements is 1. The gradient is
    exact beside any number of zeros, to any order.

    Errors: INDEX."""
    axis = _axes(axis)
    _count = len(axis) if axis is not None else 0
    return _one(_lib.wg_prod, _tensor(x), _count, axis, keepdim)


def norm(x, p=2.0, axis=None, keepdim=False):
    """The p-norm of vectors, (sum |x|^p)^(1/p), for any p: INFINITY gives the largest |x|, -INFINITY
    the smallest, 0 the number of elements that are not 0. Integers are cast to f32. This is
    PyTorch's linalg.vector_norm; matrix_norm has the norms of matrices. Kinks are treated as in
    PyTorch: the derivative of |x| at 0 is 0, as is that of a norm of 0 and that of order 0; tied
    largest or smallest elements share the gradient evenly.

    Errors: INDEX, ARGUMENT for NaN, SHAPE for no elements with p < 0 or infinite."""
    axis = _axes(axis)
    _count = len(axis) if axis is not None else 0
    return _one(_lib.wg_norm, _tensor(x), p, _count, axis, keepdim)


def logsumexp(x, axis=None, keepdim=False):
    """log sum e^x, computed from x - max, so that no exponential overflows; integers are cast to f32.
    The result is -inf for no elements and for elements that are all -inf; there the gradient is NaN,
    as in PyTorch.

    Errors: INDEX."""
    axis = _axes(axis)
    _count = len(axis) if axis is not None else 0
    return _one(_lib.wg_logsumexp, _tensor(x), _count, axis, keepdim)


def any(x, axis=None, keepdim=False):
    """Whether any, and whether all of the elements are not 0, as bool; NaN is not 0. Of no elements:
    false and true. PyTorch gives u8 for u8, this gives bool. No gradient.

    Errors: INDEX."""
    axis = _axes(axis)
    _count = len(axis) if axis is not None else 0
    return _one(_lib.wg_any, _tensor(x), _count, axis, keepdim)


def all(x, axis=None, keepdim=False):
    """Whether any, and whether all of the elements are not 0, as bool; NaN is not 0. Of no elements:
    false and true. PyTorch gives u8 for u8, this gives bool. No gradient.

    Errors: INDEX."""
    axis = _axes(axis)
    _count = len(axis) if axis is not None else 0
    return _one(_lib.wg_all, _tensor(x), _count, axis, keepdim)


def count_nonzero(x, axis=None, keepdim=False):
    """How many elements are not 0, as i64. No gradient.

    Errors: INDEX."""
    axis = _axes(axis)
    _count = len(axis) if axis is not None else 0
    return _one(_lib.wg_count_nonzero, _tensor(x), _count, axis, keepdim)


def quantile(x, q, axis=-1, keepdim=False, interpolation="linear"):
    """The quantiles q, from 0 to 1, of the n elements along an axis: those at rank q (n - 1) in
    ascending order. q: () or (Q)   ->   the shape of x without the axis, or with size 1 there
    (keepdim), behind an axis Q for several. Integers are cast to f32; q is cast to the dtype of x. A
    line with NaN has the quantile NaN; nanquantile leaves NaN out, and gives it for lines of nothing
    else. Both x and q have gradients.

    Errors: INDEX, SHAPE for no elements, ARGUMENT for a q that is not from 0 to 1."""
    return _one(_lib.wg_quantile, _tensor(x), _tensor(q), axis, keepdim, _enum(_api.wg_quantile_interpolation, interpolation))


def nanquantile(x, q, axis=-1, keepdim=False, interpolation="linear"):
    """quantile without the NaN of each line. [scope; as quantile]"""
    return _one(_lib.wg_nanquantile, _tensor(x), _tensor(q), axis, keepdim, _enum(_api.wg_quantile_interpolation, interpolation))


def histc(x, bins=100, low=0.0, high=0.0):
    """How many elements of x lie in each of `bins` bins of one width from low to high: (bins), in the
    dtype of x as in PyTorch (integers are cast to f32). The last bin includes `high`; elements
    outside and NaN do not count. If low and high are both 0, they are the smallest and the largest
    element. No gradient.

    Errors: ARGUMENT."""
    return _one(_lib.wg_histc, _tensor(x), bins, low, high)


def histogram(x, edges, weights=None, density=False):
    """The same with bins between ascending edges (B + 1): how many elements lie in [edge, next edge),
    the last bin including its end; with weights, of the shape of x, their sum. With `density`
    divided by the sum over all bins and by the width of each. (B), in the dtype of x. Weights NULL:
    1 each; they alone have a gradient. Returns NULL while an error is pending.

    Errors: SHAPE, ARGUMENT."""
    return _one(_lib.wg_histogram, _tensor(x), _tensor(edges), _maybe(weights), density)


def max(x, axis=None, keepdim=False):
    """The largest or smallest over axes: PyTorch's amax and amin; NaN if there is one. Tied elements
    share the gradient evenly.

    Errors: INDEX, SHAPE for no elements."""
    axis = _axes(axis)
    _count = len(axis) if axis is not None else 0
    return _one(_lib.wg_max, _tensor(x), _count, axis, keepdim)


def min(x, axis=None, keepdim=False):
    """The largest or smallest over axes: PyTorch's amax and amin; NaN if there is one. Tied elements
    share the gradient evenly.

    Errors: INDEX, SHAPE for no elements."""
    axis = _axes(axis)
    _count = len(axis) if axis is not None else 0
    return _one(_lib.wg_min, _tensor(x), _count, axis, keepdim)


def argmax(x, axis, keepdim=False):
    """The i64 index of the first largest or first smallest element along one axis; of the first NaN, if
    there is one. No gradient.

    Errors: INDEX, SHAPE for no elements."""
    return _one(_lib.wg_argmax, _tensor(x), axis, keepdim)


def argmin(x, axis, keepdim=False):
    """The i64 index of the first largest or first smallest element along one axis; of the first NaN, if
    there is one. No gradient.

    Errors: INDEX, SHAPE for no elements."""
    return _one(_lib.wg_argmin, _tensor(x), axis, keepdim)


def linear_scan(a, b, axis, initial=None):
    """y_i = a_i y_(i-1) + b_i, a linear recurrence, as in state-space models and exponential averages,
    from y_(-1) = initial. a and b broadcast, and initial to their shape without the axis; a NULL
    initial means 0, and a_0 is not used then. Integers are cast to f32.

    Errors: INDEX, SHAPE."""
    return _one(_lib.wg_linear_scan, _tensor(a), _tensor(b), axis, _maybe(initial))


def cumsum(x, axis):
    """x_0 + ... + x_i, and x_0 ... x_i, at each place i; integers and bools in i64. f32 and bf16
    accumulate in f64. The gradient of cumprod is exact beside any number of zeros, to any order.

    Errors: INDEX."""
    return _one(_lib.wg_cumsum, _tensor(x), axis)


def cumprod(x, axis):
    """x_0 + ... + x_i, and x_0 ... x_i, at each place i; integers and bools in i64. f32 and bf16
    accumulate in f64. The gradient of cumprod is exact beside any number of zeros, to any order.

    Errors: INDEX."""
    return _one(_lib.wg_cumprod, _tensor(x), axis)


def logcumsumexp(x, axis):
    """log(e^x_0 + ... + e^x_i) at each place i, without overflow; integers are cast to f32. The
    gradient is NaN where the result is -inf.

    Errors: INDEX."""
    return _one(_lib.wg_logcumsumexp, _tensor(x), axis)


def cummax(x, axis):
    """The largest or smallest of x_0 ... x_i at each place i, and its i64 index. Of equal elements and
    of NaNs the last one counts and gets the gradient, as in PyTorch. Pass NULL for `values` or
    `indices` if they are not needed. Returns 0 or -1.

    Errors: INDEX."""
    _values = _c_void_p()
    _indices = _c_void_p()
    return _several((_values, _indices,), _lib.wg_cummax, _tensor(x), axis, _byref(_values), _byref(_indices))


def cummin(x, axis):
    """The largest or smallest of x_0 ... x_i at each place i, and its i64 index. Of equal elements and
    of NaNs the last one counts and gets the gradient, as in PyTorch. Pass NULL for `values` or
    `indices` if they are not needed. Returns 0 or -1.

    Errors: INDEX."""
    _values = _c_void_p()
    _indices = _c_void_p()
    return _several((_values, _indices,), _lib.wg_cummin, _tensor(x), axis, _byref(_values), _byref(_indices))


def softmax(x, axis=-1):
    """e^x / sum e^x along one axis, computed from x - max. A row that is all -inf gives zeros.

    Errors: INDEX, DTYPE."""
    return _one(_lib.wg_softmax, _tensor(x), axis)


def log_softmax(x, axis=-1):
    """x - log sum e^x along one axis.

    Errors: INDEX, DTYPE."""
    return _one(_lib.wg_log_softmax, _tensor(x), axis)


def layer_norm(x, weight=None, bias=None, eps=1e-5):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last axis   (Ba et al. 2016, eq. 4).
    x: (..., C)   weight, bias: (C), either may be NULL. Fused.

    Errors: SHAPE, DTYPE."""
    return _one(_lib.wg_layer_norm_op, _tensor(x), _maybe(weight), _maybe(bias), eps)


def rms_norm(x, weight=None, eps=1e-6, eps_outside=False):
    """x / sqrt(mean(x^2) + eps) * weight over the last axis, as in LLaMA, or with eps_outside
    x / (sqrt(mean(x^2)) + eps) * weight, as in the paper's code   (Zhang & Sennrich 2019, eq. 4).
    x: (..., C)   weight: (C) or NULL. Fused.

    Errors: SHAPE, DTYPE."""
    return _one(_lib.wg_rms_norm_op, _tensor(x), _maybe(weight), eps, eps_outside)


def batch_norm(x, weight=None, bias=None, eps=1e-5):
    """Normalises each channel over the batch, and over all places of it   (Ioffe & Szegedy 2015, alg.
    1):

        y = (x - mean) / sqrt(variance + eps) * weight + bias

    x: (B, C, ...)   weight, bias: (C), either may be NULL   ->   y as x, mean and (biased) variance
    (C), f32 for a bf16 x. Pass NULL for `mean` or `variance` if they are not needed. Fused. Returns
    0 or -1.

    Errors: SHAPE, also for a channel without values; DTYPE."""
    _y = _c_void_p()
    _mean = _c_void_p()
    _variance = _c_void_p()
    return _several((_y, _mean, _variance,), _lib.wg_batch_norm_op, _tensor(x), _maybe(weight), _maybe(bias), eps, _byref(_y), _byref(_mean), _byref(_variance))


def normalize_channels(x, mean, variance, weight=None, bias=None, eps=1e-5):
    """The same by a given mean and variance of each channel, (C), as batch norm in evaluation. Fused.

    Errors: SHAPE, DTYPE."""
    return _one(_lib.wg_normalize_channels, _tensor(x), _tensor(mean), _tensor(variance), _maybe(weight), _maybe(bias), eps)


def gather(x, axis, index):
    """y[..i..] = x[..index[..i..]..] along `axis`. index has the rank of x and, along the other axes,
    no size above that of x; y has the shape of index.

    Errors: SHAPE, INDEX, DTYPE."""
    return _one(_lib.wg_gather, _tensor(x), axis, _tensor(index))


def index_select(x, axis, index):
    """The slices of x at index (n) along one axis.

    Errors: SHAPE, INDEX, DTYPE."""
    return _one(_lib.wg_index_select, _tensor(x), axis, _tensor(index))


def embedding(weight, index, padding_index=-1):
    """Rows of a table.   weight: (V, C)   index: (...)   ->   (..., C). The gradient is added up in the
    rows that were used, except row padding_index (-1: none), which gets none.

    Errors: SHAPE, INDEX, DTYPE."""
    return _one(_lib.wg_embedding_op, _tensor(weight), _tensor(index), padding_index)


def one_hot(index, classes):
    """index (...) -> (..., classes), i64, with a 1 at each index and 0 elsewhere. No gradient.

    Errors: INDEX, DTYPE, ARGUMENT."""
    return _one(_lib.wg_one_hot, _tensor(index), classes)


def take_along_axis(x, axis, index):
    """y[..i..] = x[..index[..i..]..] along one axis; along the others x and index, of the same rank,
    broadcast.

    Errors: SHAPE, INDEX, DTYPE."""
    return _one(_lib.wg_take_along_axis, _tensor(x), axis, _tensor(index))


def take(x, index):
    """The elements of x with these numbers in row-major order, in the shape of the index: NumPy's take
    without an axis, PyTorch's take.

    Errors: INDEX, DTYPE."""
    return _one(_lib.wg_take, _tensor(x), _tensor(index))


def scatter_add(x, axis, index, src):
    """A copy of x with src[..i..] added at [..index[..i..]..] along `axis`; src has the shape of index.

    Errors: SHAPE, INDEX, DTYPE."""
    return _one(_lib.wg_scatter_add, _tensor(x), axis, _tensor(index), _tensor(src))


def scatter(x, axis, index, src):
    """A copy of x with src[..i..] stored at [..index[..i..]..] along `axis`; src has the shape of
    index. Of several values for one place the last in row-major order is stored, and only that one
    has a gradient.

    Errors: SHAPE, INDEX, DTYPE."""
    return _one(_lib.wg_scatter, _tensor(x), axis, _tensor(index), _tensor(src))


def nonzero(x):
    """The coordinates of the elements that are not 0, in row-major order: (count, rank of x), i64. No
    gradient."""
    return _one(_lib.wg_nonzero, _tensor(x))


def bincount(x, weights=None, min_length=0):
    """How often each number occurs in x, of rank 1 and dtype i64 or i32: (max(x) + 1), or (min_length)
    if that is longer, i64. With weights, of the shape of x, the sum of the weights of each number,
    in their dtype (f64 for integers); the gradient of the weights is gathered. Returns NULL while an
    error is pending.

    Errors: SHAPE, DTYPE, INDEX for negative numbers, ARGUMENT."""
    return _one(_lib.wg_bincount, _tensor(x), _maybe(weights), min_length)


def searchsorted(sorted, values, right=False):
    """For each value, the number of elements of an ascending row that are less than it (with `right`,
    less or equal): the i64 place where inserting it keeps the row sorted. sorted: (n), or (..., n)
    with the leading axes of the values. Dtypes are promoted; NaN sorts after all numbers. No
    gradient.

    Errors: SHAPE, DTYPE."""
    return _one(_lib.wg_searchsorted, _tensor(sorted), _tensor(values), right)


def masked_select(x, mask):
    """The elements of x where the bool mask is true, in row-major order: (count). The two broadcast.

    Errors: SHAPE, DTYPE."""
    return _one(_lib.wg_masked_select, _tensor(x), _tensor(mask))


def masked_scatter(x, mask, source):
    """A copy of x in which the elements where the bool mask, broadcast to x, is true are replaced by
    the first elements of source, in row-major order and cast to the dtype of x.

    Errors: SHAPE, also for a source that is too short; DTYPE."""
    return _one(_lib.wg_masked_scatter, _tensor(x), _tensor(mask), _tensor(source))


def sort(x, axis=-1, descending=False):
    """The elements along one axis in ascending or descending order, and the i64 indices where they come
    from; equal elements keep their order. The gradient goes back to where the values come from. Pass
    NULL for `values` or `indices` if they are not needed. Returns 0 or -1.

    Errors: INDEX."""
    _values = _c_void_p()
    _indices = _c_void_p()
    return _several((_values, _indices,), _lib.wg_sort, _tensor(x), axis, descending, _byref(_values), _byref(_indices))


def argsort(x, axis=-1, descending=False):
    """The indices of sort alone. No gradient.

    Errors: INDEX."""
    return _one(_lib.wg_argsort, _tensor(x), axis, descending)


def topk(x, k, axis=-1, largest=True):
    """The k largest or smallest elements along one axis, in order, and their i64 indices: the first k
    of sort. Of equal elements the first come first (PyTorch does not specify this). Pass NULL for
    `values` or `indices` if they are not needed. Returns 0 or -1.

    Errors: INDEX, ARGUMENT for k beyond the axis."""
    _values = _c_void_p()
    _indices = _c_void_p()
    return _several((_values, _indices,), _lib.wg_topk, _tensor(x), k, axis, largest, _byref(_values), _byref(_indices))


def median(x, axis=-1, keepdim=False):
    """The middle element in order along one axis, of an even number the lower one, as in PyTorch; NaN
    if there is one. The gradient goes to that element, of equal elements to one.

    Errors: INDEX, SHAPE for no elements."""
    return _one(_lib.wg_median, _tensor(x), axis, keepdim)


def unique(x):
    """The distinct values of x in ascending order (U), where all NaNs are one value as in NumPy; for
    each element of x the i64 index of its value, in the shape of x; and how often each value occurs,
    i64 (U). Pass NULL for results that are not needed. No gradient. Returns 0 or -1."""
    _values = _c_void_p()
    _inverse = _c_void_p()
    _counts = _c_void_p()
    return _several((_values, _inverse, _counts,), _lib.wg_unique, _tensor(x), _byref(_values), _byref(_inverse), _byref(_counts))


def segment_reduce(x, offsets, reduction="mean", empty=0.0):
    """Reduces the rows offsets[s] up to offsets[s + 1] of x to row s, as torch.segment_reduce does.
    x: (N, ...)   offsets: (S + 1), i64 or i32, ascending from 0 to N   ->   (S, ...)
    Segments without rows become `empty`: PyTorch has 0 for sums, NaN for means, -inf and inf for the
    largest and the smallest. Integers are cast to f32.

    Errors: SHAPE, INDEX, DTYPE, ARGUMENT."""
    return _one(_lib.wg_segment_reduce, _tensor(x), _tensor(offsets), _enum(_api.wg_segment_reduction, reduction), empty)


def unsorted_segment_reduce(x, ids, segments, reduction="mean", empty=0.0):
    """The same of rows in any order, where row i belongs to segment ids[i]: what graph networks call
    scatter, which has 0 for segments without rows.
    x: (N, ...)   ids: (N), i64 or i32, from 0 to segments - 1   ->   (segments, ...)

    Errors: SHAPE, INDEX, DTYPE, ARGUMENT."""
    return _one(_lib.wg_unsorted_segment_reduce, _tensor(x), _tensor(ids), segments, _enum(_api.wg_segment_reduction, reduction), empty)


def matmul(a, b):
    """a: (..., M, K)   b: (..., K, N)   ->   (..., M, N). Leading axes broadcast; a vector is a row on
    the left and a column on the right, as in NumPy's @. GEMM takes operands of any strides without a
    copy. Integers wrap around. PyTorch's bmm and mm are the same.

    Errors: SHAPE, DTYPE for bools."""
    return _one(_lib.wg_matmul, _tensor(a), _tensor(b))


def linear(x, weight, bias=None):
    """The product of a linear layer, x W^T + bias.
    x: (..., I)   weight: (O, I)   bias: (O) or NULL   ->   (..., O)
    Fused; the gradient of weight is accumulated in place.

    Errors: SHAPE, DTYPE."""
    return _one(_lib.wg_linear_op, _tensor(x), _tensor(weight), _maybe(bias))


def grouped_mm(a, b, offsets):
    """The products of a mixture of experts: rows offsets[e] up to offsets[e + 1] of a times matrix e.
    a: (T, K), sorted by expert   b: (E, K, N)   ->   (T, N)
    offsets: (E + 1), i64 or i32, ascending from 0 to T; PyTorch's offs lack the first of them.
    If b has rank 2, the groups lie along the axis that is summed over, as in gradients:
    a: (K, T)   b: (T, N)   ->   (E, K, N), product e being of those columns and rows alone.
    Each group is a packed product, in both directions.

    Errors: SHAPE, INDEX, DTYPE."""
    return _one(_lib.wg_grouped_mm, _tensor(a), _tensor(b), _tensor(offsets))


def cdist(a, b, p=2.0):
    """The distance of each row of a from each row of b, the p-norm of their difference, p >= 0 or
    INFINITY; 0 counts the coordinates that differ.
    a: (..., P, M)   b: (..., R, M)   ->   (..., P, R), the leading axes broadcast
    Where a distance is 0 its derivative is 0, as in PyTorch. Euclidean distances of many points are
    a matrix product, but pairs near each other, for which its digits cancel, are computed from
    their differences. Integers are cast to f32. Fused.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_cdist, _tensor(a), _tensor(b), p)


def quantize(x, quantization):
    """Quantizes the rows of x, (..., I) f32 -> (..., bytes) u8, and dequantizes them to f32 again. I is
    a multiple of the quantization's block. No gradient.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_quantize, _tensor(x), _enum(_api.wg_quantization, quantization))


def dequantize(quantized, quantization):
    """Quantizes the rows of x, (..., I) f32 -> (..., bytes) u8, and dequantizes them to f32 again. I is
    a multiple of the quantization's block. No gradient.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_dequantize, _tensor(quantized), _enum(_api.wg_quantization, quantization))


def quantized_linear(x, weight, quantization, bias=None):
    """x W^T + bias with a quantized W, which f32 kernels read without dequantizing it first: generating
    text one token at a time is limited by the speed of reading weights.
    x: (..., I)   weight: (O, bytes) u8   bias: (O) or NULL   ->   (..., O)

    In f32, blocks of integers are multiplied as in llama.cpp: each group of 32 elements of a row of
    x is rounded to integers from -127 to 127 times (its largest magnitude / 127), and products of
    integers are summed. For normally distributed x this changes y by about 0.5 % of its size. A row
    of x gives the same bits alone and among other rows. bf16 weights use x as it is for up to 16
    rows; more rows are rounded to bf16 if the processor multiplies bf16. In f64, and for gradients
    and tangents, nothing is rounded.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_quantized_linear, _tensor(x), _tensor(weight), _enum(_api.wg_quantization, quantization), _maybe(bias))


def tensordot(a, b, axes_a, axes_b):
    """The sum over `count` pairs of axes, axes_a[i] of a with axes_b[i] of b, which have equal sizes.
    The result has the other axes of a and then those of b. A count of 0 gives the product of every
    element with every other. NumPy's axes=N pairs the last N axes of a with the first N of b.

    Errors: INDEX, SHAPE, ARGUMENT, DTYPE for bools."""
    axes_a = _integers(axes_a)
    _count = len(axes_a)
    axes_b = _integers(axes_b)
    _same_length(_count, axes_b)
    return _one(_lib.wg_tensordot, _tensor(a), _tensor(b), _count, axes_a, axes_b)


def outer(a, b):
    """All elements of a times all elements of b: (M) x (N) -> (M, N). Other ranks are flattened, as in
    NumPy.

    Errors: SHAPE if the result is too large."""
    return _one(_lib.wg_outer, _tensor(a), _tensor(b))


def dot(a, b):
    """The sum of a[i] b[i] of two vectors of one size: a rank-0 tensor, of their dtype.

    Errors: SHAPE, DTYPE for bools."""
    return _one(_lib.wg_dot, _tensor(a), _tensor(b))


def addmm(c, a, b, beta=1.0, alpha=1.0):
    """beta c + alpha a b, by one GEMM onto a copy of c.   a: (M, K)   b: (K, N)   c: broadcasts to
    (M, N). With beta 0, c is not read, so its NaNs do not matter. For integers, the factors must be
    integers.

    Errors: SHAPE, ARGUMENT, DTYPE for bools."""
    return _one(_lib.wg_addmm, _tensor(c), _tensor(a), _tensor(b), beta, alpha)


def solve(a, b, from_right=False):
    """X with A X = B, by LU with partial pivoting, or with from_right (PyTorch's left=False) X A = B.
    a: (..., N, N)   b: (..., N, K)   ->   (..., N, K); or b: (..., N) -> (..., N), if b is of rank 1
    or has the shape of a without its last axis. Leading axes broadcast. For b of vectors from_right
    must be false.

    Errors: SHAPE, DTYPE, ARGUMENT for a singular a."""
    return _one(_lib.wg_solve, _tensor(a), _tensor(b), from_right)


def solve_triangular(a, b, upper, unit=False, from_right=False):
    """The same with one triangle of a, the upper or the lower one; the other is not read. With `unit`
    (PyTorch's unitriangular) its diagonal is taken as ones and not read, either.

    Errors: SHAPE, DTYPE, ARGUMENT for a 0 on the diagonal."""
    return _one(_lib.wg_solve_triangular, _tensor(a), _tensor(b), upper, unit, from_right)


def inv(a):
    """A^-1: (..., N, N). solve is faster and more exact than a product with it.

    Errors: SHAPE, DTYPE, ARGUMENT for a singular a."""
    return _one(_lib.wg_inv, _tensor(a))


def det(a):
    """det A: (..., N, N) -> (...), 0 of a singular one, where backward fails.

    Errors: SHAPE, DTYPE; GRADIENT in backward."""
    return _one(_lib.wg_det, _tensor(a))


def slogdet(a):
    """The sign of det A and log |det A|, (...) each, which neither overflow nor underflow: 0 and -inf
    of a singular matrix, where backward fails. The sign has no gradient. Pass NULL for what is not
    needed. Returns 0 or -1.

    Errors: SHAPE, DTYPE; GRADIENT in backward."""
    _sign = _c_void_p()
    _logabsdet = _c_void_p()
    return _several((_sign, _logabsdet,), _lib.wg_slogdet, _tensor(a), _byref(_sign), _byref(_logabsdet))


def cholesky(a, upper=False):
    """The lower triangle L with L L^T = A, or the upper one, L^T.   a: (..., N, N)   ->   (..., N, N)

    Errors: SHAPE, DTYPE, ARGUMENT if a is not positive definite."""
    return _one(_lib.wg_cholesky, _tensor(a), upper)


def qr(a, complete=False):
    """A = Q R with orthonormal columns of Q and an upper triangle R, by Householder's reflections; the
    diagonal of R may be negative.   a: (..., M, N)   K = min(M, N)   ->   Q (..., M, K), R (..., K,
    N); with `complete` Q (..., M, M), R (..., M, N). Pass NULL for what is not needed. Returns 0 or
    -1. Derivatives want independent columns, the first K of a wide matrix; there is none of a
    complete Q with M > N.

    Errors: SHAPE, DTYPE; GRADIENT or ARGUMENT in backward."""
    _q = _c_void_p()
    _r = _c_void_p()
    return _several((_q, _r,), _lib.wg_qr, _tensor(a), complete, _byref(_q), _byref(_r))


def eigh(a):
    """A = V diag(w) V^T of a symmetric A: eigenvalues (..., N) in ascending order, and eigenvectors,
    the columns of V (..., N, N), of either sign. Pass NULL for what is not needed. Returns 0 or -1.
    Eigenvectors of eigenvalues that are equal, but for rounding, have no derivative: backward
    through them fails, as does forward mode; backward through the eigenvalues alone does not.

    Errors: SHAPE, DTYPE, ARGUMENT for infinite elements and NaN; GRADIENT in backward."""
    _eigenvalues = _c_void_p()
    _eigenvectors = _c_void_p()
    return _several((_eigenvalues, _eigenvectors,), _lib.wg_eigh, _tensor(a), _byref(_eigenvalues), _byref(_eigenvectors))


def eigvalsh(a):
    """the eigenvalues alone"""
    return _one(_lib.wg_eigvalsh, _tensor(a))


def svd(a, full_matrices=False):
    """A = U diag(S) V^T with orthonormal columns of U and V, and S in descending order, >= 0.
    a: (..., M, N)   K = min(M, N)   ->   U (..., M, K), S (..., K), V^T (..., K, N); with
    full_matrices U (..., M, M), V^T (..., N, N). Pass NULL for what is not needed. Returns 0 or -1.
    Singular vectors of singular values that are equal but for rounding have no derivative, nor do
    those of 0 where M != N, nor those which full_matrices adds: backward through them fails, as does
    forward mode; backward through S alone does not.

    Errors: SHAPE, DTYPE, ARGUMENT for infinite elements and NaN; GRADIENT in backward."""
    _u = _c_void_p()
    _s = _c_void_p()
    _vt = _c_void_p()
    return _several((_u, _s, _vt,), _lib.wg_svd, _tensor(a), full_matrices, _byref(_u), _byref(_s), _byref(_vt))


def svdvals(a):
    """S alone"""
    return _one(_lib.wg_svdvals, _tensor(a))


def lstsq(a, b):
    """The X that minimises |A X - B|, and of several the one of least norm, by QR.
    a: (..., M, N) of full rank   b: (..., M, K) or (M)   ->   (..., N, K) or (..., N)
    Leading axes broadcast.

    Errors: SHAPE, DTYPE, ARGUMENT if a has not full rank."""
    return _one(_lib.wg_lstsq, _tensor(a), _tensor(b))


def pinv(a, rtol=0.0):
    """The pseudoinverse of Moore and Penrose, (..., M, N) -> (..., N, M), over the singular values
    above rtol times the largest; an rtol of 0 is PyTorch's default, max(M, N) times the epsilon of
    the dtype. The derivative is that at constant rank.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_pinv, _tensor(a), rtol)


def matrix_power(a, n):
    """A^n by repeated squaring: the identity for n = 0, a power of the inverse for n < 0.
    a: (..., N, N)   ->   (..., N, N)

    Errors: SHAPE, DTYPE, ARGUMENT for a singular a and n < 0."""
    return _one(_lib.wg_matrix_power, _tensor(a), n)


def matrix_exp(a):
    """e^A = 1 + A + A^2 / 2! + ..., by scaling and squaring with Pade's approximant   (Higham 2005).
    a: (..., N, N)   ->   (..., N, N)

    Errors: SHAPE, DTYPE."""
    return _one(_lib.wg_matrix_exp, _tensor(a))


def matrix_norm(a, order="fro", keepdim=False):
    """A norm of matrices, (..., M, N) -> (...), or (..., 1, 1) with keepdim. Kinks at ties, which share
    the gradient, and of the nuclear norm at singular values of 0.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_matrix_norm, _tensor(a), _enum(_api.wg_matrix_norm_order, order), keepdim)


def fft(x, n=0, axis=-1, norm="backward"):
    """y_k = sum_j x_j e^(-2 pi i j k / n), and its inverse with e^(2 pi i j k / n).
    x: (..., N, ..., 2)   ->   (..., n, ..., 2)

    Errors: INDEX, SHAPE, ARGUMENT."""
    return _one(_lib.wg_fft, _tensor(x), n, axis, _enum(_api.wg_fft_norm, norm))


def ifft(x, n=0, axis=-1, norm="backward"):
    """y_k = sum_j x_j e^(-2 pi i j k / n), and its inverse with e^(2 pi i j k / n).
    x: (..., N, ..., 2)   ->   (..., n, ..., 2)

    Errors: INDEX, SHAPE, ARGUMENT."""
    return _one(_lib.wg_ifft, _tensor(x), n, axis, _enum(_api.wg_fft_norm, norm))


def rfft(x, n=0, axis=-1, norm="backward"):
    """The first n/2 + 1 numbers of the transform of real ones, of which the others are conjugates.
    x: (..., N, ...)   ->   (..., n/2 + 1, ..., 2)

    Errors: INDEX, SHAPE, ARGUMENT."""
    return _one(_lib.wg_rfft, _tensor(x), n, axis, _enum(_api.wg_fft_norm, norm))


def irfft(x, n=0, axis=-1, norm="backward"):
    """The inverse of rfft: n real numbers, 2 (M - 1) of them if n is 0. The imaginary parts of numbers
    0 and, for an even n, n/2 are not read.
    x: (..., M, ..., 2)   ->   (..., n, ...)

    Errors: INDEX, SHAPE, ARGUMENT."""
    return _one(_lib.wg_irfft, _tensor(x), n, axis, _enum(_api.wg_fft_norm, norm))


def fft2(x, n_a=0, n_b=0, axis_a=-2, axis_b=-1, norm="backward"):
    """The same along two axes, of sizes n_a and n_b; PyTorch's default axes are -2 and -1. Of rfft2 and
    irfft2, axis_b is the one that is halved.

    Errors: INDEX, SHAPE, ARGUMENT."""
    return _one(_lib.wg_fft2, _tensor(x), n_a, n_b, axis_a, axis_b, _enum(_api.wg_fft_norm, norm))


def ifft2(x, n_a=0, n_b=0, axis_a=-2, axis_b=-1, norm="backward"):
    """ifft along two axes; otherwise as fft2."""
    return _one(_lib.wg_ifft2, _tensor(x), n_a, n_b, axis_a, axis_b, _enum(_api.wg_fft_norm, norm))


def rfft2(x, n_a=0, n_b=0, axis_a=-2, axis_b=-1, norm="backward"):
    """rfft along two axes, of which axis_b is halved; otherwise as fft2."""
    return _one(_lib.wg_rfft2, _tensor(x), n_a, n_b, axis_a, axis_b, _enum(_api.wg_fft_norm, norm))


def irfft2(x, n_a=0, n_b=0, axis_a=-2, axis_b=-1, norm="backward"):
    """The inverse of rfft2; otherwise as fft2."""
    return _one(_lib.wg_irfft2, _tensor(x), n_a, n_b, axis_a, axis_b, _enum(_api.wg_fft_norm, norm))


def fft_conv1d(x, weight, bias=None, padding=0):
    """conv1d with a stride of 1 by way of rfft, in a time that does not grow with the kernel: for
    kernels of hundreds of elements, as in long convolutions (Poli et al. 2023).
    x: (N, C, L)   weight: (O, C, K)   bias: (O) or NULL   ->   (N, O, L + 2 padding - K + 1)
    Returns NULL while an error is pending.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_fft_conv1d, _tensor(x), _tensor(weight), _maybe(bias), padding)


def conv1d(x, weight, bias=None, **options):
    """What networks call convolution, a correlation: each output channel is the sum, over the channels
    of its group, of the products of a kernel and the windows of x.
    x: (N, C, L)   weight: (O, C / groups, K)   bias: (O) or NULL   ->   (N, O, P)
        P = (L + 2 padding - dilation (K - 1) - 1) / stride + 1, rounded down
    x may lack N, as y does then. Forward and gradients are packed products that read the windows
    from a few images at a time.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_conv1d, _tensor(x), _tensor(weight), _maybe(bias), _options(_api.wg_conv_options, options, 1))


def conv2d(x, weight, bias=None, **options):
    """conv1d of images: x: (N, C, H, W)   weight: (O, C / groups, KH, KW). [scope; as conv1d]"""
    return _one(_lib.wg_conv2d, _tensor(x), _tensor(weight), _maybe(bias), _options(_api.wg_conv_options, options, 2))


def conv3d(x, weight, bias=None, **options):
    """conv1d of volumes: x: (N, C, D, H, W)   weight: (O, C / groups, KD, KH, KW).
    [scope; as conv1d]"""
    return _one(_lib.wg_conv3d, _tensor(x), _tensor(weight), _maybe(bias), _options(_api.wg_conv_options, options, 3))


def conv_transpose1d(x, weight, bias=None, **options):
    """The transposed convolution, also called deconvolution: the adjoint in x of the convolution with
    the same weight and options. Each element of x adds a kernel, times itself, to a window of y.
    x: (N, C, L)   weight: (C, O / groups, K)   bias: (O) or NULL   ->   (N, O, P)
        P = (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_conv_transpose1d, _tensor(x), _tensor(weight), _maybe(bias), _options(_api.wg_conv_options, options, 1))


def conv_transpose2d(x, weight, bias=None, **options):
    """conv_transpose1d of images, (N, C, H, W). [scope; as conv_transpose1d]"""
    return _one(_lib.wg_conv_transpose2d, _tensor(x), _tensor(weight), _maybe(bias), _options(_api.wg_conv_options, options, 2))


def conv_transpose3d(x, weight, bias=None, **options):
    """conv_transpose1d of volumes, (N, C, D, H, W). [scope; as conv_transpose1d]"""
    return _one(_lib.wg_conv_transpose3d, _tensor(x), _tensor(weight), _maybe(bias), _options(_api.wg_conv_options, options, 3))


def max_pool1d(x, return_indices=False, **options):
    """The largest element of each window of a channel, or the mean.
    x: (N, C, L) or (C, L)   ->   (N, C, P) or (C, P)
        P = (L + 2 padding - dilation (kernel - 1) - 1) / stride + 1

    P is rounded down, or up with ceil_mode. 2d: (N, C, H, W); 3d: (N, C, D, H, W). `indices`, unless
    NULL, receives the places of the largest in their channel, in row-major order, i64. Of equal
    elements the first counts and gets the gradient; NaN is the largest.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    _indices = _c_void_p()
    return _with_extra(return_indices, _indices, _lib.wg_max_pool1d, _tensor(x), _options(_api.wg_pool_options, options, 1), _byref(_indices))


def max_pool2d(x, return_indices=False, **options):
    """The largest element of each window of a channel, or the mean.
    x: (N, C, L) or (C, L)   ->   (N, C, P) or (C, P)
        P = (L + 2 padding - dilation (kernel - 1) - 1) / stride + 1

    P is rounded down, or up with ceil_mode. 2d: (N, C, H, W); 3d: (N, C, D, H, W). `indices`, unless
    NULL, receives the places of the largest in their channel, in row-major order, i64. Of equal
    elements the first counts and gets the gradient; NaN is the largest.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    _indices = _c_void_p()
    return _with_extra(return_indices, _indices, _lib.wg_max_pool2d, _tensor(x), _options(_api.wg_pool_options, options, 2), _byref(_indices))


def max_pool3d(x, return_indices=False, **options):
    """The largest element of each window of a channel, or the mean.
    x: (N, C, L) or (C, L)   ->   (N, C, P) or (C, P)
        P = (L + 2 padding - dilation (kernel - 1) - 1) / stride + 1

    P is rounded down, or up with ceil_mode. 2d: (N, C, H, W); 3d: (N, C, D, H, W). `indices`, unless
    NULL, receives the places of the largest in their channel, in row-major order, i64. Of equal
    elements the first counts and gets the gradient; NaN is the largest.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    _indices = _c_void_p()
    return _with_extra(return_indices, _indices, _lib.wg_max_pool3d, _tensor(x), _options(_api.wg_pool_options, options, 3), _byref(_indices))


def avg_pool1d(x, **options):
    """The largest element of each window of a channel, or the mean.
    x: (N, C, L) or (C, L)   ->   (N, C, P) or (C, P)
        P = (L + 2 padding - dilation (kernel - 1) - 1) / stride + 1

    P is rounded down, or up with ceil_mode. 2d: (N, C, H, W); 3d: (N, C, D, H, W). `indices`, unless
    NULL, receives the places of the largest in their channel, in row-major order, i64. Of equal
    elements the first counts and gets the gradient; NaN is the largest.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_avg_pool1d, _tensor(x), _options(_api.wg_pool_options, options, 1))


def avg_pool2d(x, **options):
    """The largest element of each window of a channel, or the mean.
    x: (N, C, L) or (C, L)   ->   (N, C, P) or (C, P)
        P = (L + 2 padding - dilation (kernel - 1) - 1) / stride + 1

    P is rounded down, or up with ceil_mode. 2d: (N, C, H, W); 3d: (N, C, D, H, W). `indices`, unless
    NULL, receives the places of the largest in their channel, in row-major order, i64. Of equal
    elements the first counts and gets the gradient; NaN is the largest.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_avg_pool2d, _tensor(x), _options(_api.wg_pool_options, options, 2))


def avg_pool3d(x, **options):
    """The largest element of each window of a channel, or the mean.
    x: (N, C, L) or (C, L)   ->   (N, C, P) or (C, P)
        P = (L + 2 padding - dilation (kernel - 1) - 1) / stride + 1

    P is rounded down, or up with ceil_mode. 2d: (N, C, H, W); 3d: (N, C, D, H, W). `indices`, unless
    NULL, receives the places of the largest in their channel, in row-major order, i64. Of equal
    elements the first counts and gets the gradient; NaN is the largest.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_avg_pool3d, _tensor(x), _options(_api.wg_pool_options, options, 3))


def adaptive_max_pool1d(x, size, return_indices=False):
    """Pooling into `size` windows along each spatial axis (1, 2 or 3 numbers) that share the axis
    evenly: window i of P goes from floor(i L / P) up to ceil((i + 1) L / P), so that neighbours may
    overlap by an element. A size of 1 is the mean of the whole channel.

    Errors: SHAPE, DTYPE."""
    _indices = _c_void_p()
    return _with_extra(return_indices, _indices, _lib.wg_adaptive_max_pool1d, _tensor(x), _spatial(size, 1), _byref(_indices))


def adaptive_max_pool2d(x, size, return_indices=False):
    """Pooling into `size` windows along each spatial axis (1, 2 or 3 numbers) that share the axis
    evenly: window i of P goes from floor(i L / P) up to ceil((i + 1) L / P), so that neighbours may
    overlap by an element. A size of 1 is the mean of the whole channel.

    Errors: SHAPE, DTYPE."""
    _indices = _c_void_p()
    return _with_extra(return_indices, _indices, _lib.wg_adaptive_max_pool2d, _tensor(x), _spatial(size, 2), _byref(_indices))


def adaptive_max_pool3d(x, size, return_indices=False):
    """Pooling into `size` windows along each spatial axis (1, 2 or 3 numbers) that share the axis
    evenly: window i of P goes from floor(i L / P) up to ceil((i + 1) L / P), so that neighbours may
    overlap by an element. A size of 1 is the mean of the whole channel.

    Errors: SHAPE, DTYPE."""
    _indices = _c_void_p()
    return _with_extra(return_indices, _indices, _lib.wg_adaptive_max_pool3d, _tensor(x), _spatial(size, 3), _byref(_indices))


def adaptive_avg_pool1d(x, size):
    """Pooling into `size` windows along each spatial axis (1, 2 or 3 numbers) that share the axis
    evenly: window i of P goes from floor(i L / P) up to ceil((i + 1) L / P), so that neighbours may
    overlap by an element. A size of 1 is the mean of the whole channel.

    Errors: SHAPE, DTYPE."""
    return _one(_lib.wg_adaptive_avg_pool1d, _tensor(x), _spatial(size, 1))


def adaptive_avg_pool2d(x, size):
    """Pooling into `size` windows along each spatial axis (1, 2 or 3 numbers) that share the axis
    evenly: window i of P goes from floor(i L / P) up to ceil((i + 1) L / P), so that neighbours may
    overlap by an element. A size of 1 is the mean of the whole channel.

    Errors: SHAPE, DTYPE."""
    return _one(_lib.wg_adaptive_avg_pool2d, _tensor(x), _spatial(size, 2))


def adaptive_avg_pool3d(x, size):
    """Pooling into `size` windows along each spatial axis (1, 2 or 3 numbers) that share the axis
    evenly: window i of P goes from floor(i L / P) up to ceil((i + 1) L / P), so that neighbours may
    overlap by an element. A size of 1 is the mean of the whole channel.

    Errors: SHAPE, DTYPE."""
    return _one(_lib.wg_adaptive_avg_pool3d, _tensor(x), _spatial(size, 3))


def interpolate(x, size, mode="nearest", align_corners=False):
    """x with other sizes of its spatial axes, 1 to 3 of them, by PyTorch's interpolate(x, size).
    x: (N, C, L), (N, C, H, W) or (N, C, D, H, W)   ->   (N, C, size...)
    Linearly, output o lies at (o + 1/2) L / size - 1/2, or with align_corners at o (L - 1) /
    (size - 1), so that the first and the last elements stay in place. Shrinking does not average.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    size = _integers(size)
    _count = len(size)
    return _one(_lib.wg_interpolate, _tensor(x), _count, size, _enum(_api.wg_interpolation, mode), align_corners)


def attention(q, k, v, mask=None, **options):
    """Scaled dot-product attention, softmax(q k^T / sqrt(D)) v   (Vaswani et al. 2017, eq. 1).
    q: (B, H, Tq, D)   k, v: (B, Hkv, Tk, D), Hkv divides H   ->   (B, H, Tq, D)
    mask: NULL, or bool and broadcastable to (B, H, Tq, Tk), true where a query may see a key.
    Rows that may attend to nothing give zeros. Fused: scores are stored for one tile of queries at a
    time, and keys that no query of a tile sees, before the first or after the last that one does,
    are skipped. The result is a view whose memory is (B, Tq, H, D), so that merging heads copies
    nothing.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_attention, _tensor(q), _tensor(k), _tensor(v), _maybe(mask), _options(_api.wg_attention_options, options))


def rotary(x, cos, sin, pairing="halves"):
    """Rotates each pair (a, b) of the last axis to (a cos - b sin, a sin + b cos)   (Su et al. 2021,
    eq. 34).   x: (..., T, D)   cos, sin: (..., T, P) with 2 P <= D, broadcast   ->   the shape of x.
    Elements beyond 2 P are copied. The tables have no gradient.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_rotary, _tensor(x), _tensor(cos), _tensor(sin), _enum(_api.wg_rotary_pairing, pairing))


def lstm(gates, weight_hh, h0, c0, reverse):
    """All h of an LSTM, from the parts of its gates that come from the inputs, x W_ih^T + b:
    gates: (T, B, 4 H), in the order i, f, g, o   weight_hh: (4 H, H)   h0, c0: (B, H)
        ->   *hidden: (T, B, H) and *last_cell: (B, H), which may be NULL
    With `reverse` from the last place to the first. Fused. 0, or -1 with both NULL.

    Errors: SHAPE, DTYPE."""
    _hidden = _c_void_p()
    _last_cell = _c_void_p()
    return _several((_hidden, _last_cell,), _lib.wg_lstm_op, _tensor(gates), _tensor(weight_hh), _tensor(h0), _tensor(c0), reverse, _byref(_hidden), _byref(_last_cell))


def gru(gates, weight_hh, bias_hh, h0, reverse):
    """All h of a GRU:
    gates: (T, B, 3 H), in the order r, z, n   weight_hh: (3 H, H)   bias_hh: (3 H) or NULL
    h0: (B, H)   ->   (T, B, H). Fused.

    Errors: SHAPE, DTYPE."""
    return _one(_lib.wg_gru_op, _tensor(gates), _tensor(weight_hh), _tensor(bias_hh), _tensor(h0), reverse)


def cross_entropy(logits, target, ignore_index=-100, **options):
    """-log softmax(logits)[target] of each row, reduced: a rank-0 tensor, or (N) with
    WG_REDUCTION_NONE.
    logits: (N, V)   target: (N) i64 or i32, or (N, V) floating.
    Class targets equal to ignore_index do not count; if no other target is left the mean is NaN, as
    in PyTorch. Floating targets are probabilities t, for -sum_c t_c log softmax(logits)_c; they get
    a gradient, too, their mean is over N, and ignore_index must be negative. Fused: no copy of the
    logits is made for backward. options: NULL for the plain mean.

    Errors: SHAPE, DTYPE, INDEX, ARGUMENT."""
    return _one(_lib.wg_cross_entropy, _tensor(logits), _tensor(target), ignore_index, _options(_api.wg_cross_entropy_options, options))


def nll_loss(log_probabilities, target, ignore_index=-100, **options):
    """-log_probabilities[target] of each row of log probabilities (N, V), for class targets and without
    label smoothing; otherwise as cross_entropy.

    Errors: SHAPE, DTYPE, INDEX, ARGUMENT."""
    return _one(_lib.wg_nll_loss, _tensor(log_probabilities), _tensor(target), ignore_index, _options(_api.wg_cross_entropy_options, options))


def linear_cross_entropy(x, linear_weight, target, linear_bias=None, ignore_index=-100, **options):
    """cross_entropy of the logits x linear_weight^T + linear_bias, computed in chunks of rows, so
    that the logits are never stored whole. x: (N, D)   linear_weight: (V, D)   target: as in
    cross_entropy   linear_bias: (V) or NULL While recording, gradients are computed together with
    the losses, so that the logits are computed once, and backward only multiplies by its cotangent.
    With WG_REDUCTION_NONE every row has its own cotangent, and backward computes the logits again.
    Rows with ignored targets cost almost nothing. Fused for class targets; for floating targets the
    logits are stored.

    Errors: SHAPE, DTYPE, INDEX, ARGUMENT."""
    return _one(_lib.wg_linear_cross_entropy, _tensor(x), _tensor(linear_weight), _tensor(target), _maybe(linear_bias), ignore_index, _options(_api.wg_cross_entropy_options, options))


def mse_loss(x, target, reduction="mean"):
    """(x - target)^2

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_mse_loss, _tensor(x), _tensor(target), _enum(_api.wg_reduction, reduction))


def l1_loss(x, target, reduction="mean"):
    """|x - target|; derivative 0 where they are equal.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_l1_loss, _tensor(x), _tensor(target), _enum(_api.wg_reduction, reduction))


def smooth_l1_loss(x, target, beta=1.0, reduction="mean"):
    """With d = |x - target|: d^2 / (2 beta) where d < beta, d - beta / 2 elsewhere   (Girshick 2015,
    eq. 3). A beta of 0 gives l1_loss.

    Errors: SHAPE, DTYPE, ARGUMENT for a negative beta."""
    return _one(_lib.wg_smooth_l1_loss, _tensor(x), _tensor(target), beta, _enum(_api.wg_reduction, reduction))


def bce_with_logits(logits, target, weight=None, pos_weight=None, reduction="mean"):
    """The cross-entropy of sigmoid(logits) for targets from 0 to 1, without overflow:
    -weight (pos_weight target log sigmoid(logits) + (1 - target) log sigmoid(-logits)). weight and
    pos_weight broadcast to the logits, and may be NULL for 1.

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_bce_with_logits, _tensor(logits), _tensor(target), _maybe(weight), _maybe(pos_weight), _enum(_api.wg_reduction, reduction))


def kl_div(log_input, target, log_target=False, reduction="mean"):
    """The Kullback-Leibler divergence of log probabilities from the target: target (log target -
    log_input), 0 where target is 0; with log_target, e^target (target - log_input).

    Errors: SHAPE, DTYPE, ARGUMENT."""
    return _one(_lib.wg_kl_div, _tensor(log_input), _tensor(target), log_target, _enum(_api.wg_reduction, reduction))


def cosine_similarity(a, b, axis=1, eps=1e-8):
    """The cosine of the angle between a and b along one axis, a b / (max(|a|, eps) max(|b|, eps)), with
    broadcasting. PyTorch's eps is 1e-8.

    Errors: SHAPE, INDEX, DTYPE."""
    return _one(_lib.wg_cosine_similarity, _tensor(a), _tensor(b), axis, eps)


def normal_log_prob(value, mean, std):
    """The log density at value.

    Errors: SHAPE."""
    return _one(_lib.wg_normal_log_prob, _tensor(value), _tensor(mean), _tensor(std))


def normal_entropy(std):
    """The entropy, in nats.

    Errors: SHAPE."""
    return _one(_lib.wg_normal_entropy, _tensor(std))


def normal_sample(mean, std, generator=None):
    """mean + std z with a standard normal z. Reparameterized.

    Errors: SHAPE."""
    return _one(_lib.wg_normal_sample, _generator(generator), _tensor(mean), _tensor(std))


def normal_kl(p_mean, p_std, q_mean, q_std):
    """KL(p || q) = log(q_std / p_std) + (p_std^2 + (p_mean - q_mean)^2) / (2 q_std^2) - 1/2."""
    return _one(_lib.wg_normal_kl, _tensor(p_mean), _tensor(p_std), _tensor(q_mean), _tensor(q_std))


def uniform_log_prob(value, low, high):
    """The log density at value.

    Errors: SHAPE."""
    return _one(_lib.wg_uniform_log_prob, _tensor(value), _tensor(low), _tensor(high))


def uniform_entropy(low, high):
    """The entropy, in nats.

    Errors: SHAPE."""
    return _one(_lib.wg_uniform_entropy, _tensor(low), _tensor(high))


def uniform_sample(low, high, generator=None):
    """Reparameterized.

    Errors: SHAPE."""
    return _one(_lib.wg_uniform_sample, _generator(generator), _tensor(low), _tensor(high))


def uniform_kl(p_low, p_high, q_low, q_high):
    """Infinite where q does not cover p.

    Errors: SHAPE."""
    return _one(_lib.wg_uniform_kl, _tensor(p_low), _tensor(p_high), _tensor(q_low), _tensor(q_high))


def exponential_log_prob(value, rate):
    """The log density at value.

    Errors: SHAPE."""
    return _one(_lib.wg_exponential_log_prob, _tensor(value), _tensor(rate))


def exponential_entropy(rate):
    """The entropy, in nats.

    Errors: SHAPE."""
    return _one(_lib.wg_exponential_entropy, _tensor(rate))


def exponential_sample(rate, generator=None):
    """Reparameterized."""
    return _one(_lib.wg_exponential_sample, _generator(generator), _tensor(rate))


def exponential_kl(p_rate, q_rate):
    """KL(p || q).

    Errors: SHAPE."""
    return _one(_lib.wg_exponential_kl, _tensor(p_rate), _tensor(q_rate))


def laplace_log_prob(value, mean, scale):
    """The log density at value.

    Errors: SHAPE."""
    return _one(_lib.wg_laplace_log_prob, _tensor(value), _tensor(mean), _tensor(scale))


def laplace_entropy(scale):
    """The entropy, in nats.

    Errors: SHAPE."""
    return _one(_lib.wg_laplace_entropy, _tensor(scale))


def laplace_sample(mean, scale, generator=None):
    """Reparameterized.

    Errors: SHAPE."""
    return _one(_lib.wg_laplace_sample, _generator(generator), _tensor(mean), _tensor(scale))


def laplace_kl(p_mean, p_scale, q_mean, q_scale):
    """KL(p || q).

    Errors: SHAPE."""
    return _one(_lib.wg_laplace_kl, _tensor(p_mean), _tensor(p_scale), _tensor(q_mean), _tensor(q_scale))


def gamma_log_prob(value, concentration, rate):
    """The log density at value.

    Errors: SHAPE."""
    return _one(_lib.wg_gamma_log_prob, _tensor(value), _tensor(concentration), _tensor(rate))


def gamma_entropy(concentration, rate):
    """The entropy, in nats.

    Errors: SHAPE."""
    return _one(_lib.wg_gamma_entropy, _tensor(concentration), _tensor(rate))


def gamma_sample(concentration, rate, generator=None):
    """By Marsaglia and Tsang's method (2000). Reparameterized implicitly (Figurnov et al. 2018): the
    derivative by the concentration is that of the quantile at a fixed probability, and so are the
    second and the third.

    Errors: SHAPE; GRADIENT in a fourth backward."""
    return _one(_lib.wg_gamma_sample, _generator(generator), _tensor(concentration), _tensor(rate))


def gamma_kl(p_concentration, p_rate, q_concentration, q_rate):
    """KL(p || q).

    Errors: SHAPE."""
    return _one(_lib.wg_gamma_kl, _tensor(p_concentration), _tensor(p_rate), _tensor(q_concentration), _tensor(q_rate))


def beta_log_prob(value, a, b):
    """The log density at value.

    Errors: SHAPE."""
    return _one(_lib.wg_beta_log_prob, _tensor(value), _tensor(a), _tensor(b))


def beta_entropy(a, b):
    """The entropy, in nats.

    Errors: SHAPE."""
    return _one(_lib.wg_beta_entropy, _tensor(a), _tensor(b))


def beta_sample(a, b, generator=None):
    """Of two gamma samples, the first's share. Reparameterized by them.

    Errors: SHAPE."""
    return _one(_lib.wg_beta_sample, _generator(generator), _tensor(a), _tensor(b))


def beta_kl(p_a, p_b, q_a, q_b):
    """KL(p || q).

    Errors: SHAPE."""
    return _one(_lib.wg_beta_kl, _tensor(p_a), _tensor(p_b), _tensor(q_a), _tensor(q_b))


def dirichlet_log_prob(value, concentration):
    """The log density at value.

    Errors: SHAPE."""
    return _one(_lib.wg_dirichlet_log_prob, _tensor(value), _tensor(concentration))


def dirichlet_entropy(concentration):
    """The entropy, in nats.

    Errors: SHAPE."""
    return _one(_lib.wg_dirichlet_entropy, _tensor(concentration))


def dirichlet_sample(concentration, generator=None):
    """Gamma samples over their sum. Reparameterized by them.

    Errors: SHAPE."""
    return _one(_lib.wg_dirichlet_sample, _generator(generator), _tensor(concentration))


def dirichlet_kl(p_concentration, q_concentration):
    """KL(p || q).

    Errors: SHAPE."""
    return _one(_lib.wg_dirichlet_kl, _tensor(p_concentration), _tensor(q_concentration))


def student_t_log_prob(value, df, mean, scale):
    """The log density at value.

    Errors: SHAPE."""
    return _one(_lib.wg_student_t_log_prob, _tensor(value), _tensor(df), _tensor(mean), _tensor(scale))


def student_t_entropy(df, scale):
    """The entropy, in nats.

    Errors: SHAPE."""
    return _one(_lib.wg_student_t_entropy, _tensor(df), _tensor(scale))


def student_t_sample(df, mean, scale, generator=None):
    """Reparameterized, by df through a gamma sample.

    Errors: SHAPE."""
    return _one(_lib.wg_student_t_sample, _generator(generator), _tensor(df), _tensor(mean), _tensor(scale))


def bernoulli_log_prob(value, logits):
    """The log density at value.

    Errors: SHAPE."""
    return _one(_lib.wg_bernoulli_log_prob, _tensor(value), _tensor(logits))


def bernoulli_entropy(logits):
    """The entropy, in nats.

    Errors: SHAPE."""
    return _one(_lib.wg_bernoulli_entropy, _tensor(logits))


def bernoulli_kl(p_logits, q_logits):
    """KL(p || q).

    Errors: SHAPE."""
    return _one(_lib.wg_bernoulli_kl, _tensor(p_logits), _tensor(q_logits))


def categorical_log_prob(value, logits):
    """The log density at value.

    Errors: SHAPE."""
    return _one(_lib.wg_categorical_log_prob, _tensor(value), _tensor(logits))


def categorical_entropy(logits):
    """The entropy, in nats.

    Errors: SHAPE."""
    return _one(_lib.wg_categorical_entropy, _tensor(logits))


def categorical_sample(logits, generator=None):
    """(...) i64, by the Gumbel trick. No gradient.

    Errors: SHAPE."""
    return _one(_lib.wg_categorical_sample, _generator(generator), _tensor(logits))


def categorical_kl(p_logits, q_logits):
    """KL(p || q).

    Errors: SHAPE."""
    return _one(_lib.wg_categorical_kl, _tensor(p_logits), _tensor(q_logits))


def multivariate_normal_log_prob(value, mean, scale_tril):
    """The log density at value.

    Errors: SHAPE."""
    return _one(_lib.wg_multivariate_normal_log_prob, _tensor(value), _tensor(mean), _tensor(scale_tril))


def multivariate_normal_entropy(scale_tril):
    """The entropy, in nats.

    Errors: SHAPE."""
    return _one(_lib.wg_multivariate_normal_entropy, _tensor(scale_tril))


def multivariate_normal_sample(mean, scale_tril, generator=None):
    """mean + L z. Reparameterized.

    Errors: SHAPE."""
    return _one(_lib.wg_multivariate_normal_sample, _generator(generator), _tensor(mean), _tensor(scale_tril))


def multivariate_normal_kl(p_mean, p_scale_tril, q_mean, q_scale_tril):
    """KL(p || q).

    Errors: SHAPE."""
    return _one(_lib.wg_multivariate_normal_kl, _tensor(p_mean), _tensor(p_scale_tril), _tensor(q_mean), _tensor(q_scale_tril))


# Those whose first operand is a tensor: they are methods, too.
METHODS = [
    zeros_like,
    ones_like,
    full_like,
    empty_like,
    fill_,
    copy_,
    add_,
    scale_,
    cast,
    clone,
    contiguous,
    affine,
    add_scalar,
    mul_scalar,
    pow_scalar,
    clamp,
    nan_to_num,
    neg,
    abs,
    exp,
    exp2,
    expm1,
    log,
    log2,
    log10,
    log1p,
    sqrt,
    rsqrt,
    cbrt,
    reciprocal,
    square,
    tanh,
    sigmoid,
    erf,
    sign,
    floor,
    ceil,
    round,
    trunc,
    sin,
    cos,
    tan,
    asin,
    acos,
    atan,
    sinh,
    cosh,
    asinh,
    acosh,
    atanh,
    erfc,
    lgamma,
    digamma,
    add,
    sub,
    mul,
    div,
    pow,
    maximum,
    minimum,
    atan2,
    hypot,
    logaddexp,
    xlogy,
    remainder,
    fmod,
    lerp,
    addcmul,
    addcdiv,
    eq,
    ne,
    lt,
    le,
    gt,
    ge,
    logical_and,
    logical_or,
    logical_xor,
    logical_not,
    isnan,
    isinf,
    isfinite,
    where,
    masked_fill,
    relu,
    leaky_relu,
    elu,
    gelu,
    gelu_tanh,
    silu,
    mish,
    softplus,
    log_sigmoid,
    hardsigmoid,
    hardswish,
    glu,
    swiglu,
    geglu,
    reglu,
    dropout,
    reshape,
    squeeze,
    unsqueeze,
    flatten,
    unflatten,
    expand,
    permute,
    transpose,
    movedim,
    slice_,
    narrow,
    split,
    chunk,
    diagonal,
    diag_embed,
    tril,
    triu,
    flip,
    roll,
    tile,
    repeat_interleave,
    unfold,
    pad,
    sum,
    mean,
    var,
    std,
    sum_to,
    prod,
    norm,
    logsumexp,
    any,
    all,
    count_nonzero,
    quantile,
    nanquantile,
    histc,
    histogram,
    max,
    min,
    argmax,
    argmin,
    linear_scan,
    cumsum,
    cumprod,
    logcumsumexp,
    cummax,
    cummin,
    softmax,
    log_softmax,
    layer_norm,
    rms_norm,
    batch_norm,
    normalize_channels,
    gather,
    index_select,
    embedding,
    one_hot,
    take_along_axis,
    take,
    scatter_add,
    scatter,
    nonzero,
    bincount,
    searchsorted,
    masked_select,
    masked_scatter,
    sort,
    argsort,
    topk,
    median,
    unique,
    segment_reduce,
    unsorted_segment_reduce,
    matmul,
    linear,
    grouped_mm,
    cdist,
    quantize,
    dequantize,
    quantized_linear,
    tensordot,
    outer,
    dot,
    addmm,
    solve,
    solve_triangular,
    inv,
    det,
    slogdet,
    cholesky,
    qr,
    eigh,
    eigvalsh,
    svd,
    svdvals,
    lstsq,
    pinv,
    matrix_power,
    matrix_exp,
    matrix_norm,
    fft,
    ifft,
    rfft,
    irfft,
    fft2,
    ifft2,
    rfft2,
    irfft2,
    fft_conv1d,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    interpolate,
    attention,
    rotary,
    lstm,
    gru,
    cross_entropy,
    nll_loss,
    linear_cross_entropy,
    mse_loss,
    l1_loss,
    smooth_l1_loss,
    bce_with_logits,
    kl_div,
    cosine_similarity,
    normal_log_prob,
    normal_entropy,
    normal_kl,
    uniform_log_prob,
    uniform_entropy,
    uniform_kl,
    exponential_log_prob,
    exponential_entropy,
    exponential_kl,
    laplace_log_prob,
    laplace_entropy,
    laplace_kl,
    gamma_log_prob,
    gamma_entropy,
    gamma_kl,
    beta_log_prob,
    beta_entropy,
    beta_kl,
    dirichlet_log_prob,
    dirichlet_entropy,
    dirichlet_kl,
    student_t_log_prob,
    student_t_entropy,
    bernoulli_log_prob,
    bernoulli_entropy,
    bernoulli_kl,
    categorical_log_prob,
    categorical_entropy,
    categorical_kl,
    multivariate_normal_log_prob,
    multivariate_normal_entropy,
    multivariate_normal_kl,
]

__all__ = [
    "zeros",
    "ones",
    "full",
    "zeros_like",
    "ones_like",
    "full_like",
    "empty_like",
    "linspace",
    "logspace",
    "eye",
    "tri",
    "rand",
    "randn",
    "rand_like",
    "randn_like",
    "normal",
    "trunc_normal",
    "bernoulli",
    "multinomial",
    "randint",
    "randperm",
    "fill_",
    "copy_",
    "add_",
    "scale_",
    "cast",
    "clone",
    "contiguous",
    "affine",
    "add_scalar",
    "mul_scalar",
    "pow_scalar",
    "clamp",
    "nan_to_num",
    "neg",
    "abs",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "cbrt",
    "reciprocal",
    "square",
    "tanh",
    "sigmoid",
    "erf",
    "sign",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
    "erfc",
    "lgamma",
    "digamma",
    "polygamma",
    "add",
    "sub",
    "mul",
    "div",
    "pow",
    "maximum",
    "minimum",
    "atan2",
    "hypot",
    "logaddexp",
    "xlogy",
    "remainder",
    "fmod",
    "lerp",
    "addcmul",
    "addcdiv",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "isnan",
    "isinf",
    "isfinite",
    "where",
    "masked_fill",
    "relu",
    "leaky_relu",
    "elu",
    "gelu",
    "gelu_tanh",
    "silu",
    "mish",
    "softplus",
    "log_sigmoid",
    "hardsigmoid",
    "hardswish",
    "glu",
    "swiglu",
    "geglu",
    "reglu",
    "dropout",
    "reshape",
    "squeeze",
    "unsqueeze",
    "flatten",
    "unflatten",
    "expand",
    "permute",
    "transpose",
    "movedim",
    "slice_",
    "narrow",
    "split",
    "chunk",
    "diagonal",
    "diag_embed",
    "tril",
    "triu",
    "cat",
    "stack",
    "meshgrid",
    "flip",
    "roll",
    "tile",
    "repeat_interleave",
    "unfold",
    "pad",
    "sum",
    "mean",
    "var",
    "std",
    "sum_to",
    "prod",
    "norm",
    "logsumexp",
    "any",
    "all",
    "count_nonzero",
    "quantile",
    "nanquantile",
    "histc",
    "histogram",
    "max",
    "min",
    "argmax",
    "argmin",
    "linear_scan",
    "cumsum",
    "cumprod",
    "logcumsumexp",
    "cummax",
    "cummin",
    "softmax",
    "log_softmax",
    "layer_norm",
    "rms_norm",
    "batch_norm",
    "normalize_channels",
    "gather",
    "index_select",
    "embedding",
    "one_hot",
    "take_along_axis",
    "take",
    "scatter_add",
    "scatter",
    "nonzero",
    "bincount",
    "searchsorted",
    "masked_select",
    "masked_scatter",
    "sort",
    "argsort",
    "topk",
    "median",
    "unique",
    "segment_reduce",
    "unsorted_segment_reduce",
    "matmul",
    "linear",
    "grouped_mm",
    "cdist",
    "quantize",
    "dequantize",
    "quantized_linear",
    "tensordot",
    "outer",
    "dot",
    "addmm",
    "solve",
    "solve_triangular",
    "inv",
    "det",
    "slogdet",
    "cholesky",
    "qr",
    "eigh",
    "eigvalsh",
    "svd",
    "svdvals",
    "lstsq",
    "pinv",
    "matrix_power",
    "matrix_exp",
    "matrix_norm",
    "fft",
    "ifft",
    "rfft",
    "irfft",
    "fft2",
    "ifft2",
    "rfft2",
    "irfft2",
    "fft_conv1d",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "interpolate",
    "attention",
    "rotary",
    "lstm",
    "gru",
    "cross_entropy",
    "nll_loss",
    "linear_cross_entropy",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "bce_with_logits",
    "kl_div",
    "cosine_similarity",
    "normal_log_prob",
    "normal_entropy",
    "normal_sample",
    "normal_kl",
    "uniform_log_prob",
    "uniform_entropy",
    "uniform_sample",
    "uniform_kl",
    "exponential_log_prob",
    "exponential_entropy",
    "exponential_sample",
    "exponential_kl",
    "laplace_log_prob",
    "laplace_entropy",
    "laplace_sample",
    "laplace_kl",
    "gamma_log_prob",
    "gamma_entropy",
    "gamma_sample",
    "gamma_kl",
    "beta_log_prob",
    "beta_entropy",
    "beta_sample",
    "beta_kl",
    "dirichlet_log_prob",
    "dirichlet_entropy",
    "dirichlet_sample",
    "dirichlet_kl",
    "student_t_log_prob",
    "student_t_entropy",
    "student_t_sample",
    "bernoulli_log_prob",
    "bernoulli_entropy",
    "bernoulli_kl",
    "categorical_log_prob",
    "categorical_entropy",
    "categorical_sample",
    "categorical_kl",
    "multivariate_normal_log_prob",
    "multivariate_normal_entropy",
    "multivariate_normal_sample",
    "multivariate_normal_kl",
]
