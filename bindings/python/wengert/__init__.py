"""Wengert: differentiable tensors and neural networks on CPUs.

    import wengert as wg

    w = wg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    loss = (w * w).sum()
    loss.backward()
    print(w.grad)           tensor([2. 4. 6.], dtype=f32)

Ops are functions here and methods of Tensor; wengert.nn has modules, wengert.optim optimizers,
wengert.train the training loop, wengert.autograd derivatives of functions, gradcheck() the gradient
checker. Tensors and NumPy arrays share memory: x.numpy(), from_numpy(array).
"""
from . import _api, _call, _families, _ops
from ._call import Generator
from ._errors import (AnomalyError, ArgumentError, DtypeError, FileError, FormatError, GradientError,
                      NotFoundError, OutOfMemoryError, OutOfRangeError, ShapeError, StateError,
                      WengertError)
from ._families import *  # noqa: F403
from ._library import lib as _lib
from ._ops import *  # noqa: F403
from ._tensor import Tensor, arange, einsum, empty, from_numpy, index_put, select, tensor

# Ops as methods; what _tensor.py defines stays.
for _op in _ops.METHODS + _families.METHODS:
    if _op.__name__ not in Tensor.__dict__:
        setattr(Tensor, _op.__name__, _op)
Tensor.select = select
Tensor.index_put = index_put

from . import autograd, files, nn, optim, train  # noqa: E402
from .autograd import (detect_anomaly, enable_grad, grad, gradcheck, gradcheck_module,  # noqa: E402
                       hessian, hvp, jacobian, jvp, no_grad, vjp)
from .files import load, save  # noqa: E402

__version__ = _lib.wg_version().decode()


def manual_seed(seed):
    """Seeds this thread's random numbers."""
    _lib.wg_manual_seed(seed)


def set_threads(threads):
    """How many threads the library uses. The same seed gives the same bits at any number."""
    _call._check(_lib.wg_set_threads(threads))


def threads():
    return _lib.wg_threads()


def tensors_alive():
    """How many tensors the library holds in this process, to find what is kept too long."""
    return _lib.wg_tensors_alive()


def ops():
    """The names of the library's ops."""
    return [_api.wg_op.from_address(_lib.wg_op_at(i)).name.decode()
            for i in range(_lib.wg_op_count())]
