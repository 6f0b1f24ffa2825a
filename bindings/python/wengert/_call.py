"""How Python calls the library.

Who owns what. In C a tensor belongs to the innermost open scope. A Python call opens a scope of its
own, runs the function, takes what it gives out of the scope (wg_keep), and ends the scope, so that
what the function made on the way is gone. The kept handle belongs to a Tensor, which releases it when
Python has no more references to it. So Python code sees no scopes:

    wg_scope_begin(&s)    y = wg_softmax(x, -1)    wg_keep(y)    wg_scope_end(&s, NULL)    Tensor(y)

Handles that belong to someone else (a gradient, a parameter of a module, an operand that comes back
as the result) get a handle of Python's own on the same storage and node by wg_alias.
"""
import ctypes
import math
import operator
import sys

import numpy

from . import _api
from ._errors import fail, pending
from ._library import lib as _lib

_byref = ctypes.byref
_c_void_p = ctypes.c_void_p
_inf = math.inf
_largest = sys.float_info.max
END = 2 ** 63 - 1

tensor_class = None   # tensor.py sets these two
make_tensor = None


# ---- Calls ----

def _one(function, *arguments):
    """The tensor that an op gives."""
    scope = _api.wg_scope()
    _lib.wg_scope_begin(_byref(scope))
    handle = function(*arguments)
    if handle:
        _lib.wg_keep(handle)
    _lib.wg_scope_end(_byref(scope), None)
    if not handle:
        fail(function.__name__)
    return tensor_class(handle)


def own(handle):
    """A Tensor on the storage and node of a handle that is someone else's; None for NULL."""
    if not handle:
        return None
    return _one(_lib.wg_alias, handle)


def borrowed(function, *arguments):
    """The tensor that a function gives, which may be an operand or belong to a module."""
    scope = _api.wg_scope()
    _lib.wg_scope_begin(_byref(scope))
    handle = function(*arguments)
    handle = _lib.wg_alias(handle) if handle else None
    if handle:
        _lib.wg_keep(handle)
    _lib.wg_scope_end(_byref(scope), None)
    if not handle:
        fail(function.__name__)
    return tensor_class(handle)


def _run(function, arguments, collect):
    scope = _api.wg_scope()
    _lib.wg_scope_begin(_byref(scope))
    status = function(*arguments)
    failed = status is None or status < 0
    handles = [] if failed else [h or None for h in collect()]
    for handle in handles:
        _lib.wg_keep(handle)
    _lib.wg_scope_end(_byref(scope), None)
    if failed:
        fail(function.__name__)
    return tuple(tensor_class(h) if h else None for h in handles)


def _several(outputs, function, *arguments):
    """The tensors that a function returning 0 or -1 puts into `outputs`."""
    return _run(function, arguments, lambda: [output.value for output in outputs])


def _many(array, count, function, *arguments):
    """The same of an array of outputs."""
    return _run(function, arguments, lambda: list(array)[:count])


def _with_extra(wanted, extra, function, *arguments):
    """The tensor that a function returns and, if that is wanted, the one that it puts aside."""
    scope = _api.wg_scope()
    _lib.wg_scope_begin(_byref(scope))
    handle = function(*arguments)
    kept = [handle, extra.value][:2 if wanted else 1] if handle else []
    for h in kept:
        _lib.wg_keep(h)
    _lib.wg_scope_end(_byref(scope), None)
    if not handle:
        fail(function.__name__)
    found = tuple(tensor_class(h) for h in kept)
    return found if wanted else found[0]


def _check(result):
    """Raises the pending error after a function that failed: returned a negative number or NULL."""
    if result is None or result < 0:
        fail("the call")
    return result


def raise_pending():
    """After a function that returns nothing."""
    error = pending()
    if error:
        raise error


# ---- Arguments ----

def _tensor(x):
    return x if type(x) is tensor_class else make_tensor(x)


def _maybe(x):
    return None if x is None else _tensor(x)


class Handles:
    """An array of handles, which keeps the tensors alive while a call runs."""

    def __init__(self, tensors):
        self.tensors = tensors
        self._as_parameter_ = (_c_void_p * max(len(tensors), 1))(
            *[None if t is None else t._as_parameter_ for t in tensors])

    def __len__(self):
        return len(self.tensors)


def _tensors(xs):
    if isinstance(xs, tensor_class):
        raise TypeError("one tensor is given where a list of tensors is wanted: [x]")
    return Handles([_maybe(x) for x in xs])


def is_integer(x):
    return isinstance(x, (int, numpy.integer))


def _integers(values):
    """A C array of integers from an int or a sequence of them; None stays."""
    if values is None:
        return None
    try:
        values = [operator.index(v) for v in ([values] if is_integer(values) else values)]
    except TypeError:
        raise TypeError("%r: an int or a sequence of ints is wanted" % (values,)) from None
    return (ctypes.c_int64 * len(values))(*values)


def _axes(axis):
    if axis is None:
        return None
    axes = _integers(axis)
    if len(axes) == 0:
        raise ValueError("axis is empty: axis=None means all axes")
    return axes


def _pairs(widths):
    """(before, after) of each axis; a single pair or number belongs to the last axis."""
    if is_integer(widths):
        widths = [(widths, widths)]
    elif len(widths) == 2 and all(map(is_integer, widths)):
        widths = [widths]
    return _integers([end for pair in widths for end in pair])


def _spatial(value, rank):
    """One integer for each spatial axis."""
    values = [value] * rank if is_integer(value) else list(value)
    if len(values) != rank:
        raise ValueError("%r: %d numbers are wanted, one for each spatial axis" % (value, rank))
    return _integers(values)


def _same_length(count, values):
    if values is None or len(values) != count:
        raise ValueError("lists of one length are wanted; the first has %d entries and another %s"
                         % (count, "none" if values is None else len(values)))


class Generator:
    """Random numbers of their own: randn((2, 3), generator=Generator(7)). Its state is two integers,
    seed and offset."""

    def __init__(self, seed, offset=0):
        self._state = _api.wg_generator(seed, offset)
        self._as_parameter_ = _byref(self._state)

    @property
    def seed(self):
        return self._state.seed

    @property
    def offset(self):
        return self._state.offset


def _generator(generator):
    if generator is not None and not isinstance(generator, Generator):
        raise TypeError("generator=%r: a wengert.Generator is wanted" % (generator,))
    return generator


DTYPES = ["f32", "f64", "bf16", "i32", "i64", "u8", "bool"]
DTYPE_CODES = {name: code for code, name in enumerate(DTYPES)}
NUMPY_NAMES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "uint8": "u8",
               "bool": "bool"}


def _dtype(dtype):
    """The code of a dtype that is given by its name, or as NumPy has it."""
    code = DTYPE_CODES.get(dtype) if isinstance(dtype, str) else None
    if code is None:
        try:
            code = DTYPE_CODES.get(NUMPY_NAMES.get(numpy.dtype(dtype).name))
        except TypeError:
            pass
    if code is None:
        raise TypeError("%r is no dtype of Wengert: it has %s" % (dtype, ", ".join(DTYPES)))
    return code


def _enum(values, choice):
    """A constant of an enumeration from the end of its name: "mean" for WG_REDUCTION_MEAN, -2 for
    WG_MATRIX_NORM_MINUS_2. An integer that ends no name is the constant itself."""
    ends = {}
    prefix = common_prefix(list(values))
    for name, value in values.items():
        ends[name[len(prefix):].lower()] = value
    wanted = str(choice).lower()
    wanted = ("minus_" + wanted[1:] if wanted.startswith("-") else wanted).replace("-", "_")
    if isinstance(choice, int) and wanted not in ends:
        return choice
    if wanted not in ends:
        raise ValueError("%r is not among %s" % (choice, ", ".join(ends)))
    return ends[wanted]


def common_prefix(names):
    first, last = min(names), max(names)
    n = 0
    while n < len(first) and first[n] == last[n]:
        n += 1
    return first[:first.rfind("_", 0, n + 1) + 1]


class Options:
    """A struct of options, and what it points to."""

    def __init__(self, struct, kept):
        self.struct, self.kept = struct, kept
        self._as_parameter_ = _byref(struct)


def initializer(value):
    """How a parameter begins: "zeros", or ("normal", 0.02)."""
    name, scale = (value, 0.0) if isinstance(value, str) else value
    return _api.wg_initializer(_enum(_api.wg_init_kind, name), scale)


ENUM_MEMBERS = {"reduction": "wg_reduction", "activation": "wg_activation",
                "padding_mode": "wg_pad_mode", "pairing": "wg_rotary_pairing", "kind": "wg_gate"}


def _options(struct_class, given, rank=None):
    """The struct with those members set that are given by name; the rest is 0, the default."""
    struct, kept = struct_class(), []
    fields = dict(struct_class._fields_)
    for name, value in given.items():
        if name not in fields or name == "correct":
            names = [n for n, _ in struct_class._fields_ if n != "correct"]
            raise TypeError("%s is no option here; there are %s" % (name, ", ".join(names)))
        kind = fields[name]
        if value is None:
            continue
        if kind is _api.wg_initializer:
            value = initializer(value)
        elif isinstance(value, str) and name in ENUM_MEMBERS:
            value = _enum(getattr(_api, ENUM_MEMBERS[name]), value)
        if isinstance(value, str):
            value = value.encode()
        if isinstance(value, tensor_class) or kind is _c_void_p:
            value = _tensor(value)
            kept.append(value)
            value = value._as_parameter_
        elif issubclass(kind, ctypes.Array):
            values = _spatial(value, rank or kind._length_)
            value = kind(*list(values))
        setattr(struct, name, value)
    return Options(struct, kept)
