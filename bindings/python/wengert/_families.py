"""Functions of which the library has one for a whole family: convolutions and pools by rank, Fourier
transforms by axes, probability distributions."""
from inspect import Parameter, Signature

from . import _api
from ._call import (_byref, _c_void_p, _enum, _generator, _integers, _lib, _maybe, _one, _options,
                    _spatial, _tensor, _with_extra)

METHODS = []
__all__ = []


def _give(name, function, doc, method=True):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    globals()[name] = function
    __all__.append(name)
    if method:
        METHODS.append(function)


def _convolution(function, rank):
    def convolve(x, weight, bias=None, **options):
        return _one(function, _tensor(x), _tensor(weight), _maybe(bias),
                    _options(_api.wg_conv_options, options, rank))
    return convolve


def _max_pool(rank):
    def max_pool(x, return_indices=False, **options):
        indices = _c_void_p()
        return _with_extra(return_indices, indices, _lib.wg_max_pool, _tensor(x),
                           _options(_api.wg_pool_options, options, rank), _byref(indices))
    return max_pool


def _avg_pool(rank):
    def avg_pool(x, **options):
        return _one(_lib.wg_avg_pool, _tensor(x), _options(_api.wg_pool_options, options, rank))
    return avg_pool


def _adaptive_max_pool(rank):
    def adaptive_max_pool(x, size, return_indices=False):
        indices = _c_void_p()
        return _with_extra(return_indices, indices, _lib.wg_adaptive_max_pool, _tensor(x), rank,
                           _spatial(size, rank), _byref(indices))
    return adaptive_max_pool


def _adaptive_avg_pool(rank):
    def adaptive_avg_pool(x, size):
        return _one(_lib.wg_adaptive_avg_pool, _tensor(x), rank, _spatial(size, rank))
    return adaptive_avg_pool


for _rank, _shape in ((1, "(N, C, L)"), (2, "(N, C, H, W)"), (3, "(N, C, D, H, W)")):
    _options_of = "\n\nOptions, a number or one for each spatial axis: "
    _give("conv%dd" % _rank, _convolution(_lib.wg_conv_op, _rank),
          "The convolution of x %s, with or without N, by a weight (O, C / groups, kernel), plus a "
          "bias (O).%sstride, padding, dilation; groups, same_padding." % (_shape, _options_of))
    _give("conv_transpose%dd" % _rank, _convolution(_lib.wg_conv_transpose_op, _rank),
          "The transposed convolution of x %s by a weight (C, O / groups, kernel), plus a bias (O)."
          "%sstride, padding, dilation, output_padding; groups." % (_shape, _options_of))
    _give("max_pool%dd" % _rank, _max_pool(_rank),
          "The largest element of each window of x %s and, if return_indices, its place in the "
          "channel.%skernel, stride, padding, dilation; ceil_mode." % (_shape, _options_of))
    _give("avg_pool%dd" % _rank, _avg_pool(_rank),
          "The mean of each window of x %s.%skernel, stride, padding; ceil_mode, exclude_padding, "
          "divisor_override." % (_shape, _options_of))
    _give("adaptive_max_pool%dd" % _rank, _adaptive_max_pool(_rank),
          "max_pool%dd into `size` windows along each axis, which share it evenly." % _rank)
    _give("adaptive_avg_pool%dd" % _rank, _adaptive_avg_pool(_rank),
          "avg_pool%dd into `size` windows along each axis, which share it evenly." % _rank)


# ---- Fourier transforms ----

def _transform(function):
    def transform(x, n=0, axis=-1, norm="backward"):
        return _one(function, _tensor(x), 1, _integers(axis), _integers(n),
                    _enum(_api.wg_fft_norm, norm))
    return transform


def _transform2(function):
    def transform2(x, n_a=0, n_b=0, axis_a=-2, axis_b=-1, norm="backward"):
        return _one(function, _tensor(x), 2, _integers((axis_a, axis_b)), _integers((n_a, n_b)),
                    _enum(_api.wg_fft_norm, norm))
    return transform2


for _name, _doc in (("fft", "The Fourier transform of complex numbers, pairs (re, im) on the last "
                            "axis, of n of them"),
                    ("ifft", "The inverse of fft"),
                    ("rfft", "The first n/2 + 1 numbers of the transform of real ones"),
                    ("irfft", "The inverse of rfft, of n real numbers")):
    _function = getattr(_lib, "wg_" + _name)
    _give(_name, _transform(_function), _doc + ", along an axis.")
    _give(_name + "2", _transform2(_function), _doc + ", along two axes.")


# ---- Distributions ----

# The parameters of each, and those that its entropy takes.
_DISTRIBUTIONS = {
    "normal": ("mean std", "std"), "uniform": ("low high", "low high"),
    "exponential": ("rate", "rate"), "laplace": ("mean scale", "scale"),
    "gamma": ("concentration rate", "concentration rate"), "beta": ("a b", "a b"),
    "dirichlet": ("concentration", "concentration"), "student_t": ("df mean scale", "df scale"),
    "bernoulli": ("logits", "logits"), "categorical": ("logits", "logits"),
    "multivariate_normal": ("mean scale_tril", "scale_tril"),
}


def _distribution(kind, names, values):
    """The struct, which keeps the tensors alive."""
    given = dict(zip(names, map(_tensor, values)))
    made = _api.wg_distribution(_enum(_api.wg_distribution_kind, kind))
    for i, name in enumerate(_DISTRIBUTIONS[kind][0].split()):
        made.parameters[i] = given[name]._as_parameter_ if name in given else None
    made.tensors = given
    return made


def _with_names(function, names, **optional):
    """The function, whose arguments may be given by these names, too."""
    signature = Signature(
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names] +
        [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=value)
         for name, value in optional.items()])

    def call(*given, **named):
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        return function(*bound.args)
    call.__signature__ = signature
    return call


def _functions_of(kind):
    names, of_entropy = (text.split() for text in _DISTRIBUTIONS[kind])

    def log_prob(value, *parameters):
        return _one(_lib.wg_distribution_log_prob, _byref(_distribution(kind, names, parameters)),
                    _tensor(value))

    def entropy(*parameters):
        return _one(_lib.wg_distribution_entropy,
                    _byref(_distribution(kind, of_entropy, parameters)))

    def sample(*arguments):
        *parameters, generator = arguments
        return _one(_lib.wg_distribution_sample, _generator(generator),
                    _byref(_distribution(kind, names, parameters)))

    def kl(*parameters):
        p, q = parameters[:len(names)], parameters[len(names):]
        return _one(_lib.wg_distribution_kl, _byref(_distribution(kind, names, p)),
                    _byref(_distribution(kind, names, q)))

    listed = ", ".join(names)
    _give(kind + "_log_prob", _with_names(log_prob, ["value"] + names),
          "The log density of %s(%s) at value." % (kind, listed))
    _give(kind + "_entropy", _with_names(entropy, of_entropy),
          "The entropy of %s(%s), in nats." % (kind, ", ".join(of_entropy)))
    if kind != "bernoulli":
        _give(kind + "_sample", _with_names(sample, names, generator=None),
              "A sample of %s(%s)." % (kind, listed), method=False)
    if kind != "student_t":
        _give(kind + "_kl", _with_names(kl, ["p_" + n for n in names] + ["q_" + n for n in names]),
              "KL(p || q) of two %s(%s): the parameters of p, then the parameters of q." % (kind, listed))


for _kind in _DISTRIBUTIONS:
    _functions_of(_kind)
