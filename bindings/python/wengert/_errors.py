"""The library's errors as exceptions.

Each code has an exception, which is also the built-in one that a Python programmer would expect. Its
text is the library's message.
"""
from . import _api
from ._library import lib


class WengertError(Exception):
    """Any error of the library; `code` is its name ("SHAPE"), `where` the op that failed."""
    code = "NONE"
    where = ""


def exception(name, code, *bases):
    return type(name, (WengertError,) + bases, {"code": code, "__module__": "wengert"})


ShapeError = exception("ShapeError", "SHAPE", ValueError)
DtypeError = exception("DtypeError", "DTYPE", TypeError)
OutOfRangeError = exception("OutOfRangeError", "INDEX", IndexError)
ArgumentError = exception("ArgumentError", "ARGUMENT", ValueError)
OutOfMemoryError = exception("OutOfMemoryError", "MEMORY", MemoryError)
GradientError = exception("GradientError", "GRADIENT", RuntimeError)
NotFoundError = exception("NotFoundError", "NOT_FOUND", LookupError)
FileError = exception("FileError", "IO", OSError)
FormatError = exception("FormatError", "FORMAT", ValueError)
StateError = exception("StateError", "STATE", RuntimeError)
AnomalyError = exception("AnomalyError", "ANOMALY", ArithmeticError)

BY_CODE = {_api.wg_error_code["WG_ERROR_" + e.code]: e for e in (
    ShapeError, DtypeError, OutOfRangeError, ArgumentError, OutOfMemoryError, GradientError,
    NotFoundError, FileError, FormatError, StateError, AnomalyError)}


def pending():
    """The pending error of this thread as an exception, cleared; or None."""
    address = lib.wg_error_pending()
    if not address:
        return None
    found = _api.wg_error.from_address(address)
    error = BY_CODE.get(found.code, WengertError)(found.message.decode(errors="replace"))
    error.where = found.where.decode(errors="replace")
    lib.wg_error_clear()
    return error


def fail(where):
    """Raises the pending error; `where` names a call that failed without one."""
    raise pending() or StateError("%s: failed, and gave no reason" % where)
