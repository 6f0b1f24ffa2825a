"""Tensor: an n-d array that can be differentiated and that shares memory with NumPy."""
import ctypes
import sys

import numpy as np

from . import _api, _call
from ._call import DTYPES, _byref, _dtype, _integers, _one, borrowed, own
from ._errors import DtypeError, GradientError, fail
from ._library import lib

_release = lib.wg_release
_finalizing = sys.is_finalizing

# By the codes of DTYPES; bf16 has no NumPy dtype.
NUMPY_DTYPES = [np.float32, np.float64, None, np.int32, np.int64, np.uint8, np.bool_]


class Tensor:
    """An n-d array. Ops are methods and functions of the module: x.softmax(-1), wengert.softmax(x).

    Made by tensor(), from_numpy(), zeros(), randn() and by ops. Operators broadcast as NumPy's do."""

    __slots__ = ("_as_parameter_", "_owner", "__weakref__")
    __array_ufunc__ = None  # so that array + tensor is a Tensor's affair
    __hash__ = object.__hash__  # by identity, although == compares elements

    def __init__(self, handle, owner=None):
        self._as_parameter_ = handle
        self._owner = owner  # of a handle that is not this object's: a module's tree

    def __del__(self):
        if self._owner is None and not _finalizing():
            _release(self._as_parameter_)

    # ---- What it is ----

    @property
    def dtype(self):
        """ "f32", "f64", "bf16", "i32", "i64", "u8" or "bool"."""
        return DTYPES[lib.wg_tensor_dtype(self)]

    @property
    def ndim(self):
        return lib.wg_tensor_ndim(self)

    @property
    def shape(self):
        sizes = lib.wg_tensor_shape(self)
        return tuple((ctypes.c_int64 * self.ndim).from_address(sizes))

    @property
    def strides(self):
        """The distance between neighbours along each axis, in elements."""
        steps = lib.wg_tensor_strides(self)
        return tuple((ctypes.c_int64 * self.ndim).from_address(steps))

    @property
    def size(self):
        """The number of elements."""
        return lib.wg_tensor_count(self)

    @property
    def is_contiguous(self):
        return lib.wg_tensor_is_contiguous(self)

    def __len__(self):
        if self.ndim == 0:
            raise TypeError("len() of a tensor without axes")
        return self.shape[0]

    def __repr__(self):
        size = lib.wg_format(None, 0, self) + 1
        text = ctypes.create_string_buffer(size)
        lib.wg_format(text, size, self)
        more = ", requires_grad=True" if self.requires_grad else ""
        body = text.value.decode().replace("\n", "\n       ")
        return "tensor(%s, dtype=%s%s)" % (body, self.dtype, more)

    # ---- Elements and NumPy ----

    def item(self):
        """The only element, as a Python number."""
        if self.size != 1:
            lib.wg_item(self)
            fail("item")
        if self.dtype in ("bf16", "f32", "f64"):
            return lib.wg_item(self)
        return self.detach().numpy().reshape(-1)[0].item()

    def numpy(self):
        """An array on the same memory: what is written to one is seen in the other (after writing
        to the array, touch() tells backward). It keeps the memory alive."""
        if self.requires_grad:
            raise GradientError("numpy: the tensor requires a gradient, which writes to the array "
                                "would not know of; use x.detach().numpy()")
        dtype = NUMPY_DTYPES[lib.wg_tensor_dtype(self)]
        if dtype is None:
            raise DtypeError('numpy: NumPy has no bf16; use x.cast("f32").numpy()')
        if self.size == 0:
            return np.empty(self.shape, dtype)
        return np.asarray(_Memory(self, np.dtype(dtype)))

    def __array__(self, dtype=None):
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def tolist(self):
        return self.detach().numpy().tolist()

    def touch(self):
        """Says that the memory was written through an array, so that backward refuses values that
        it saved before."""
        lib.wg_tensor_touch(self)
        return self

    def copy_(self, source):
        """Copies `source` into this tensor, broadcast and cast. The two may overlap: x[1:].copy_(
        x[:-1]) shifts x by one. An expanded view cannot be written to."""
        _call._check(lib.wg_copy_(self, _call._tensor(source)))
        return self

    def fill_(self, value):
        _call._check(lib.wg_fill_(self, value))
        return self

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __bool__(self):
        if self.size != 1:
            raise ValueError("the truth of a tensor with %d elements is ambiguous: use x.any() or "
                             "x.all()" % self.size)
        return bool(self.item())

    def __index__(self):
        if self.dtype not in ("i32", "i64", "u8"):
            raise TypeError("only a tensor of integers is an index; this is %s" % self.dtype)
        return self.item()

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    # ---- Gradients ----

    @property
    def requires_grad(self):
        return lib.wg_requires_grad(self)

    @requires_grad.setter
    def requires_grad(self, wanted):
        self.requires_grad_(wanted)

    def requires_grad_(self, wanted=True):
        """Makes this a leaf whose gradient backward computes, or undoes it. Returns the tensor."""
        _call._check(lib.wg_set_requires_grad(self, wanted))
        return self

    @property
    def grad(self):
        """The gradient that backward has left here, or None. Setting it to None forgets it."""
        return own(lib.wg_gradient(self))

    @grad.setter
    def grad(self, value):
        if value is not None:
            raise TypeError("a gradient can only be set to None")
        lib.wg_zero_grad(self)

    def retain_grad(self):
        """Asks backward for the gradient of this intermediate tensor, too."""
        _call._check(lib.wg_retain_grad(self))
        return self

    def backward(self, cotangent=None, retain_graph=False, create_graph=False):
        """Adds d self / d leaf, weighted by the cotangent, to the gradient of every leaf."""
        options = _call._options(_api.wg_backward_options, {
            "cotangent": cotangent, "retain_graph": retain_graph, "create_graph": create_graph})
        scope = _api.wg_scope()
        lib.wg_scope_begin(_byref(scope))
        status = lib.wg_backward(self, options)
        lib.wg_scope_end(_byref(scope), None)
        if status < 0:
            fail("backward")

    def detach(self):
        """The same memory, of which backward knows nothing."""
        return _one(lib.wg_detach, self)

    # ---- Shapes, where Python has more than one way to say them ----

    def reshape(self, *shape):
        return _ops().reshape(self, _flat(shape))

    def expand(self, *shape):
        return _ops().expand(self, _flat(shape))

    def permute(self, *order):
        return _ops().permute(self, _flat(order))

    def tile(self, *repeats):
        return _ops().tile(self, _flat(repeats))

    @property
    def T(self):
        """The axes in reverse order, as NumPy's."""
        return _ops().permute(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self):
        """The last two axes exchanged."""
        return _ops().transpose(self, -2, -1)

    def float(self):
        return _ops().cast(self, "f32")

    def double(self):
        return _ops().cast(self, "f64")

    def long(self):
        return _ops().cast(self, "i64")

    # ---- Indexing ----

    def __getitem__(self, index):
        view, indices = basic_view(self, index)
        if indices is None:
            return view if view is not self else own(self._as_parameter_)
        indices = _call.Handles(indices)
        return _one(lib.wg_index, view, len(indices), indices)

    def __setitem__(self, index, value):
        view, indices = basic_view(self, index)
        value = scalar_like(value, self) if is_number(value) else _call._tensor(value)
        if indices is None:
            view.copy_(value)
            return
        indices = _call.Handles(indices)
        view.copy_(_one(lib.wg_index_put, view, len(indices), indices, value, False))


class _Memory:
    """What NumPy asks for the memory of a tensor; the array keeps it, and it the tensor."""

    def __init__(self, tensor, dtype):
        self.tensor = tensor
        self.__array_interface__ = {
            "version": 3, "shape": tensor.shape, "typestr": dtype.str,
            "strides": tuple(s * dtype.itemsize for s in tensor.strides),
            "data": (lib.wg_tensor_data(tensor), False)}


def _ops():
    from . import _ops as module
    return module


def _flat(values):
    """(2, 3) from f(2, 3) and from f((2, 3))."""
    return values[0] if len(values) == 1 and not _call.is_integer(values[0]) else values


# ---- Operators ----

def is_number(x):
    return isinstance(x, (int, float, np.generic)) and not isinstance(x, Tensor)


def scalar_like(number, x):
    """A number as a tensor to combine with x. As in PyTorch it has the dtype of x, or f32 if x has
    integers and the number is a float."""
    number = number.item() if isinstance(number, np.generic) else number
    dtype = x.dtype
    if dtype not in ("f32", "f64", "bf16"):
        if isinstance(number, float):
            dtype = "f32"
        elif dtype == "bool" and not isinstance(number, bool):
            dtype = "i64"
    if dtype == "i64" and abs(number) > 2 ** 53:  # beyond what a double holds
        return tensor(np.int64(number))
    return _one(lib.wg_scalar, _dtype(dtype), number)


def _operand(y, x):
    return y if type(y) is Tensor else scalar_like(y, x) if is_number(y) else tensor(y)


def _binary(name):
    function = getattr(lib, "wg_" + name)

    def operator(self, other):
        try:
            other = _operand(other, self)
        except (TypeError, ValueError) as error:
            if isinstance(other, (str, bytes)) or other is None:
                return NotImplemented
            raise error
        return _one(function, self, other)

    def reflected(self, other):
        if isinstance(other, (str, bytes)) or other is None:
            return NotImplemented
        return _one(function, _operand(other, self), self)

    return operator, reflected


for _name, _method in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("div", "truediv"),
                       ("pow", "pow"), ("matmul", "matmul"), ("remainder", "mod")):
    _forward, _reflected = _binary(_name)
    setattr(Tensor, "__%s__" % _method, _forward)
    setattr(Tensor, "__r%s__" % _method, _reflected)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Tensor, "__%s__" % _name, _binary(_name)[0])
for _name in ("and", "or", "xor"):
    _forward, _reflected = _binary("logical_" + _name)
    setattr(Tensor, "__%s__" % _name, _forward)
    setattr(Tensor, "__r%s__" % _name, _reflected)
Tensor.__neg__ = lambda self: _one(lib.wg_neg, self)
Tensor.__abs__ = lambda self: _one(lib.wg_abs, self)
Tensor.__invert__ = lambda self: _one(lib.wg_logical_not, self)
Tensor.__floordiv__ = lambda self, other: _ops().floor(self / other)
Tensor.__rfloordiv__ = lambda self, other: _ops().floor(other / self)


# ---- Indices, as NumPy has them ----

def basic_view(x, index):
    """The view that slices, ints, None and ... give, and the list of index tensors for wg_index
    (None: the whole axis), or None if there are none."""
    items = list(index) if isinstance(index, tuple) else [index]
    items = [as_index(i) for i in items]
    advanced = any(isinstance(i, Tensor) for i in items)
    if advanced:  # NumPy then counts ints among the arrays
        items = [tensor(np.int64(i)) if type(i) is int else i for i in items]
    ellipses = sum(1 for i in items if i is Ellipsis)
    if ellipses > 1:
        raise IndexError("an index has at most one ...")
    used = sum(axes_of(i) for i in items)
    if used > x.ndim:
        raise IndexError("%d indices for a tensor of shape %s" % (used, x.shape))
    at = [i is Ellipsis for i in items].index(True) if ellipses else len(items)
    items[at:at + ellipses] = [slice(None)] * (x.ndim - used)
    ops, axis, indices = _ops(), 0, []
    for item in items:
        if item is None:
            x = ops.unsqueeze(x, axis)
        elif type(item) is int:
            x = ops.select(x, axis, item)
            continue
        elif isinstance(item, slice):
            if item != slice(None):
                x = ops.slice_(x, axis, *slice_ends(item))
        else:
            indices += [None] * (axis - len(indices)) + [item]
            axis += axes_of(item)
            indices += [] if item.dtype != "bool" else [Whole] * (axes_of(item) - 1)
            continue
        axis += 1
    return x, [i for i in indices if i is not Whole] if advanced else None


class Whole:
    """The further axes that a bool index covers."""


def as_index(item):
    if item is None or item is Ellipsis or isinstance(item, (slice, Tensor)):
        if isinstance(item, Tensor) and item.ndim == 0 and item.dtype in ("i32", "i64"):
            return int(item)
        return item
    if isinstance(item, (bool, np.bool_)):
        raise IndexError("a bool is no index; a mask is a tensor or an array of bools")
    if _call.is_integer(item):
        return int(item)
    array = np.asarray(item)
    if array.size == 0 and array.dtype == np.float64:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise IndexError("indices are ints, slices, None, ..., and tensors of integers or bools; "
                         "this one is of %s" % array.dtype)
    return tensor(array if array.dtype == np.bool_ else array.astype(np.int64))


def axes_of(item):
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, Tensor) and item.dtype == "bool" else 1


def slice_ends(s):
    step = 1 if s.step is None else s.step.__index__()
    start = (0 if step > 0 else _call.END) if s.start is None else s.start.__index__()
    stop = _call.END if s.stop is None else s.stop.__index__()
    return start, stop, step


# ---- Making tensors ----

def tensor(data, dtype=None, requires_grad=False):
    """A new tensor with a copy of the data: an array, nested lists, a number or a Tensor. Python's
    floats become f32, as in PyTorch; arrays keep their dtype."""
    if isinstance(data, Tensor):
        made = _ops().clone(data.detach())
    else:
        array = np.asarray(data)
        if not hasattr(data, "dtype") and array.dtype == np.float64 and not contains_arrays(data):
            array = array.astype(np.float32)
        if array.dtype == np.float16:
            array = array.astype(np.float32)
        if array.dtype.name not in _call.NUMPY_NAMES:
            if array.dtype.kind not in "iu":
                raise DtypeError("tensor: %s is no dtype of Wengert: it has %s"
                                 % (array.dtype, ", ".join(DTYPES)))
            array = array.astype(np.int64)
        shape, array = array.shape, np.ascontiguousarray(array)
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        made = _one(lib.wg_from_array, _dtype(array.dtype), len(shape), _integers(shape),
                    ctypes.c_void_p(array.ctypes.data))
    if dtype is not None:
        made = _ops().cast(made, dtype)
    return made.requires_grad_() if requires_grad else made


def contains_arrays(data):
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return hasattr(data, "dtype")


_shared = {}  # arrays whose memory tensors use, by an id of their own
_next_id = [1]


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _forget(context):
    _shared.pop(context, None)


def from_numpy(array):
    """A tensor on the memory of an array: what is written to one is seen in the other. tensor()
    copies instead. The array lives as long as the memory is used."""
    if not isinstance(array, np.ndarray):
        raise TypeError("from_numpy: a NumPy array is wanted, not %s; tensor() takes more"
                        % type(array).__name__)
    dtype = _dtype(array.dtype)
    item = array.dtype.itemsize
    if not array.dtype.isnative or not array.flags.aligned or any(
            s % item for s, n in zip(array.strides, array.shape) if n > 1):
        raise ValueError("from_numpy: the elements are not aligned native numbers; tensor(array) "
                         "copies them")
    if not array.flags.writeable:
        raise ValueError("from_numpy: the array is read-only; tensor(array) copies it")
    strides = _integers([s // item for s in array.strides])
    key = _next_id[0]
    _next_id[0] += 1
    _shared[key] = array
    try:
        return _one(lib.wg_from_blob, dtype, array.ndim, _integers(array.shape), strides,
                    ctypes.c_void_p(array.ctypes.data), _forget, ctypes.c_void_p(key))
    except Exception:
        _shared.pop(key, None)
        raise


def arange(start, stop=None, step=1, dtype=None):
    """start, start + step, ... up to, not including, stop. i64 unless a number is a float."""
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        dtype = "i64" if all(isinstance(v, int) for v in (start, stop, step)) else "f32"
    return _one(lib.wg_arange, _dtype(dtype), start, stop, step)


def empty(shape, dtype="f32"):
    """Uninitialised elements."""
    shape = _integers(shape)
    return _one(lib.wg_empty, _dtype(dtype), len(shape), shape)


def select(x, axis, index):
    """x at one index of one axis, as a view without that axis."""
    return _one(lib.wg_select, _call._tensor(x), axis, index)


def einsum(equation, *operands):
    """The sum of products in Einstein's notation: einsum("ij,jk->ik", a, b)."""
    operands = _call._tensors(operands)
    return _one(lib.wg_einsum, equation.encode(), len(operands), operands)


def index_put(x, indices, values, accumulate=False):
    """A copy of x with the values stored at x[indices], or added there."""
    indices = _call._tensors(indices)
    return _one(lib.wg_index_put, _call._tensor(x), len(indices), indices, _call._tensor(values),
                accumulate)


_call.tensor_class = Tensor
_call.make_tensor = tensor
