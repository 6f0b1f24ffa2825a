"""Finds and opens libwengert.

The library is looked for in this order, and the first that exists is opened:

    1. the file that the environment variable WENGERT_LIBRARY names
    2. .libs/libwengert.so.0 of the build that made this package in its folder python
    3. libwengert.so.0 beside this package's prefix: PREFIX/lib for PREFIX/lib/python3/dist-packages
    4. libwengert.so.0 where the system's loader looks (LD_LIBRARY_PATH, ldconfig)
"""
import ctypes
import os
import pathlib

from . import _api

SONAME = "libwengert.so.0"


def candidates():
    named = os.environ.get("WENGERT_LIBRARY")
    if named:
        return [named]
    here = pathlib.Path(__file__).resolve()
    places = [here.parents[2] / ".libs" / SONAME]
    places += [parent / SONAME for parent in here.parents[1:5] if parent.name.startswith("lib")]
    return [str(place) for place in places if place.exists()] + [SONAME]


def open_library():
    tried = candidates()
    for path in tried:
        try:
            library = ctypes.CDLL(path)
            break
        except OSError as error:
            reason = error
    else:
        raise ImportError(
            "wengert: cannot open %s (%s); build or install the library, or set WENGERT_LIBRARY to "
            "its file" % (tried[-1], reason))
    declare(library)
    version = library.wg_version().decode()
    if version.split(".")[:2] != _api.VERSION.split(".")[:2]:
        raise ImportError(
            "wengert: %s is version %s, and this package is for %s; set WENGERT_LIBRARY to the file "
            "of the library that belongs to it" % (path, version, _api.VERSION))
    return library


def declare(library):
    for name, (result, parameters) in _api.FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError("wengert: the library has no %s; it is not of version %s"
                              % (name, _api.VERSION)) from None
        function.restype = result
        function.argtypes = parameters
    for name, (row, operands) in _api.ELEMENTWISE.items():
        setattr(library, name, elementwise(library, name, row, operands))


def elementwise(library, name, row, operands):
    """What the header has as an inline function."""
    number = _api.wg_elementwise_op[row]

    def function(a, b=None):
        return library.wg_elementwise(number, a, b)

    function.__name__ = name
    return function


lib = open_library()
