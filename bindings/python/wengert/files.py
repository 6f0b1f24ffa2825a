"""Files of tensors: safetensors, HDF5, GGUF, llama2.c and PyTorch's are read, the first two written
here; and NumPy's .npy."""
import contextlib
import ctypes
import os

from . import _api, _call
from ._errors import ArgumentError, fail
from ._library import lib

FORMATS = {".safetensors": b"safetensors", ".h5": b"hdf5", ".hdf5": b"hdf5"}


@contextlib.contextmanager
def opened(path):
    file = lib.wg_weights_open(os.fsencode(path))
    if not file:
        fail("load")
    try:
        yield file
    finally:
        lib.wg_weights_close(file)


def load(path):
    """The tensors of a file (the format is detected) or a folder of published weights, by name; of a
    .npy file its tensor."""
    if os.fspath(path).endswith(".npy"):
        return _call._one(lib.wg_npy_load, os.fsencode(path))
    with opened(path) as file:
        return {lib.wg_weights_name(file, i).decode(): _call._one(lib.wg_weights_read, file, i)
                for i in range(lib.wg_weights_count(file))}


def save(path, tensors):
    """Writes tensors by name to .safetensors or .h5, or one tensor to .npy. An old file stays if
    anything fails."""
    suffix = os.path.splitext(os.fspath(path))[1]
    if suffix == ".npy":
        _call._check(lib.wg_npy_save(_call._tensor(tensors), os.fsencode(path)))
        return
    if suffix not in FORMATS:
        raise ArgumentError("save: %r: the suffix says the format: %s or .npy"
                            % (os.fspath(path), ", ".join(FORMATS)))
    tensors = {name: _call._tensor(x) for name, x in tensors.items()}
    infos = (_api.wg_weights_info * max(len(tensors), 1))()
    for info, (name, x) in zip(infos, tensors.items()):
        info.name = name.encode()
        info.spec.dtype, info.spec.ndim = _call._dtype(x.dtype), x.ndim
        for axis, size in enumerate(x.shape):
            info.spec.shape[axis] = size
    options = _api.wg_weights_options()
    writer = lib.wg_weights_create(os.fsencode(path), FORMATS[suffix], ctypes.byref(options),
                                   len(tensors), infos)
    if not writer:
        fail("save")
    for i, x in enumerate(tensors.values()):
        if lib.wg_weights_put(writer, i, x) < 0:
            break
    _call._check(lib.wg_weights_commit(writer))
