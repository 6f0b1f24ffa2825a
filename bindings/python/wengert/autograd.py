"""Derivatives: of tensors by grad(), of Python functions by jvp(), vjp(), jacobian(), hessian(), hvp().

A function takes Tensors and returns a Tensor or a tuple of them. An exception that it raises comes out
of the transform as it is.
"""
import contextlib
import ctypes
import weakref

from . import _api, _call
from ._call import _byref, _c_void_p, _tensor
from ._errors import fail
from ._library import lib
from ._tensor import Tensor


@contextlib.contextmanager
def _grad_enabled(enabled):
    before = lib.wg_set_grad_enabled(enabled)
    try:
        yield
    finally:
        lib.wg_set_grad_enabled(before)


def no_grad():
    """`with no_grad():` records nothing for backward. Also a decorator."""
    return _grad_enabled(False)


def enable_grad():
    """`with enable_grad():` records again inside of no_grad()."""
    return _grad_enabled(True)


@contextlib.contextmanager
def detect_anomaly():
    """`with detect_anomaly():` an op that makes a NaN of operands without one raises AnomalyError."""
    before = lib.wg_set_anomaly_mode(True)
    try:
        yield
    finally:
        lib.wg_set_anomaly_mode(before)


def _list(x):
    return [x] if isinstance(x, Tensor) or not isinstance(x, (list, tuple)) else list(x)


def _like(given, x):
    """One result for one Tensor, a tuple for a list of them."""
    return given[0] if not isinstance(x, (list, tuple)) else given


def _optional(tensors, count, what):
    """A list with a tensor or None for each of `count`; None stays."""
    if tensors is None:
        return None
    tensors = _list(tensors)
    if len(tensors) != count:
        raise ValueError("%d %s for %d tensors" % (len(tensors), what, count))
    return _call._tensors(tensors)


def grad(outputs, inputs, cotangents=None, retain_graph=False, create_graph=False):
    """d (sum of outputs weighted by cotangents) / d inputs; leaves keep the gradients they have."""
    outs, ins = _call._tensors(_list(outputs)), _call._tensors(_list(inputs))
    cotangents = _optional(cotangents, len(outs), "cotangents")
    options = _call._options(_api.wg_backward_options, {
        "retain_graph": retain_graph, "create_graph": create_graph})
    found = (_c_void_p * max(len(ins), 1))()
    return _like(_call._many(found, len(ins), lib.wg_grad, len(outs), outs, cotangents, len(ins),
                              ins, options, found), inputs)


# ---- Python functions, called by C ----

class Function:
    """A Python function as a wg_function. Its results must outlive the call, in which Python frees
    them: the innermost scope, which is the caller's, gets a handle on each."""

    def __init__(self, function):
        self.function, self.error = function, None
        this = weakref.ref(self)  # the callback would be in a cycle that Python never frees
        self.callback = _api.wg_function(lambda *given: this().call(*given))

    def call(self, input_count, inputs, output_count, outputs, context):
        try:
            handles = (_c_void_p * input_count).from_address(inputs) if input_count else []
            given = _list(self.function(*[_call.own(h) for h in handles]))
            if len(given) != output_count:
                raise ValueError("the function gives %d outputs; earlier it gave %d"
                                 % (len(given), output_count))
            found = (_c_void_p * output_count).from_address(outputs)
            for i, y in enumerate(given):
                found[i] = lib.wg_alias(_tensor(y))
            return 0
        except BaseException as error:  # KeyboardInterrupt, too
            return self.fail(error)

    def fail(self, error):
        self.error = error
        return refuse(error)

    def outputs(self, inputs):
        """Runs the function without recording; returns its outputs."""
        with no_grad():
            return self.function(*inputs)

    def check(self, status, where):
        """Raises what the function raised, or the library's error."""
        if self.error:
            error, self.error = self.error, None
            lib.wg_error_clear()
            raise error
        if status is None or status < 0:
            fail(where)


def refuse(error):
    """Makes an exception in a callback an error of the library, which then stops. Returns -1."""
    lib.wg_error_clear()
    code = _api.wg_error_code["WG_ERROR_STATE"]
    return lib.wg_fail(code, b"python", b"%s",
                       ctypes.c_char_p(("%s: %s" % (type(error).__name__, error)).encode()))


def _transform(function, run, count):
    """Runs a transform that puts `count` tensors into arrays; gives them as Tensors."""
    scope = _api.wg_scope()
    found = (_c_void_p * max(count, 1))()
    lib.wg_scope_begin(_byref(scope))
    status = run(found)
    handles = [h for h in list(found)[:count]] if status == 0 and not function.error else []
    for handle in handles:
        if handle:
            lib.wg_keep(handle)
    lib.wg_scope_end(_byref(scope), None)
    tensors = [Tensor(h) if h else None for h in handles]
    function.check(status, "the transform")
    return tensors


def _prepared(function, inputs):
    wrapped = Function(function)
    ins = _call._tensors(_list(inputs))
    given = wrapped.outputs(ins.tensors)
    return wrapped, ins, given, len(_list(given))


def _create(create_graph):
    return _call._options(_api.wg_transform_options, {"create_graph": create_graph})


def _at(array, start):
    return ctypes.c_void_p(ctypes.addressof(array) + start * ctypes.sizeof(_c_void_p))


def jvp(function, inputs, tangents):
    """The values of a function, and their derivatives along the tangents (forward mode)."""
    wrapped, ins, given, m = _prepared(function, inputs)
    directions = _optional(tangents, len(ins), "tangents")
    found = _transform(wrapped, lambda out: lib.wg_jvp(
        wrapped.callback, None, len(ins), ins, directions, m, out, _at(out, m)), 2 * m)
    return _like(tuple(found[:m]), given), _like(tuple(found[m:]), given)


def vjp(function, inputs, cotangents=None, create_graph=False):
    """The values of a function, and the gradients of its inputs under the cotangents."""
    wrapped, ins, given, m = _prepared(function, inputs)
    n = len(ins)
    weights = _optional(cotangents, m, "cotangents")
    found = _transform(wrapped, lambda out: lib.wg_vjp(
        wrapped.callback, None, n, ins, m, weights, _create(create_graph), out, _at(out, m)), m + n)
    return _like(tuple(found[:m]), given), _like(tuple(found[m:]), inputs)


def hvp(function, inputs, vectors, create_graph=False):
    """The value of a function with one output of one element, and its Hessian times the vectors."""
    wrapped, n = Function(function), len(_list(inputs))
    ins, directions = _call._tensors(_list(inputs)), _optional(vectors, n, "vectors")
    found = _transform(wrapped, lambda out: lib.wg_hvp(
        wrapped.callback, None, n, ins, directions, _create(create_graph), out, _at(out, 1)), 1 + n)
    return found[0], _like(tuple(found[1:]), inputs)


def jacobian(function, inputs, create_graph=False):
    """All derivatives d output / d input, of shape (sizes of the output, sizes of the input): a
    Tensor, a tuple for several inputs, and a tuple of those for several outputs."""
    wrapped, ins, given, m = _prepared(function, inputs)
    n = len(ins)
    found = _transform(wrapped, lambda out: lib.wg_jacobian(
        wrapped.callback, None, n, ins, m, _create(create_graph), out), m * n)
    rows = tuple(_like(tuple(found[j * n:(j + 1) * n]), inputs) for j in range(m))
    return _like(rows, given)


def hessian(function, inputs, create_graph=False):
    """All second derivatives of a function with one output of one element."""
    wrapped, ins = Function(function), _call._tensors(_list(inputs))
    n = len(ins)
    found = _transform(wrapped, lambda out: lib.wg_hessian(
        wrapped.callback, None, n, ins, _create(create_graph), out), n * n)
    rows = tuple(_like(tuple(found[i * n:(i + 1) * n]), inputs) for i in range(n))
    return _like(rows, inputs)


# ---- The gradient checker ----

class Report:
    """What gradcheck found; its text is the library's message."""

    def __init__(self, report):
        names = {v: k[len("WG_DIAGNOSIS_"):] for k, v in _api.wg_diagnosis.items()}
        self.passed = report.passed
        self.diagnosis = names[report.diagnosis]
        self.compared = report.compared
        self.kinks = report.kinks
        self.largest_error = report.largest_error
        self.message = report.message.decode(errors="replace")

    def __bool__(self):
        return self.passed

    def __repr__(self):
        return self.message or "gradcheck: %s after %d comparisons" % (
            "passed" if self.passed else self.diagnosis, self.compared)


def gradcheck(function, inputs=(), parameters=None, raises=True, **options):
    """Compares the gradients of a Python function with central differences, in f64: for each input,
    and for each of `parameters`, that is f64 and requires a gradient. A wrong one raises
    GradientError with a diagnosis, or with raises=False gives a Report that is false.

    The options are the members of wg_gradcheck_options: eps, atol, rtol, order=2, forward=True,
    fast=True, f32=True, seed."""
    wrapped, ins, given, m = _prepared(function, inputs)
    made = _call._options(_api.wg_gradcheck_options, options)
    if parameters is not None:
        held = _call._tensors(list(parameters))
        made.kept.append(held)
        made.struct.parameter_count = len(held)
        made.struct.parameters = ctypes.addressof(held._as_parameter_)
    return _checked(wrapped, raises, lambda report: lib.wg_gradcheck(
        wrapped.callback, None, len(ins), ins, m, made, report))


def gradcheck_module(module, *inputs, raises=True, **options):
    """Compares the gradients of module(*inputs) with central differences, for the inputs that require
    one and for every parameter; the module computes in f64 meanwhile."""
    made = _call._options(_api.wg_gradcheck_options, options)
    wrapped, ins = Function(lambda *xs: module(*xs)), _call._tensors(list(inputs))
    count = len(_list(wrapped.outputs([x.float() if x.dtype == "f64" else x for x in ins.tensors])))
    return _checked(wrapped, raises, lambda report: lib.wg_gradcheck_module(
        module, wrapped.callback, None, len(ins), ins, count, made, report))


def _checked(wrapped, raises, run):
    report = _api.wg_gradcheck_report()
    scope = _api.wg_scope()
    lib.wg_scope_begin(_byref(scope))
    status = run(_byref(report))
    lib.wg_scope_end(_byref(scope), None)
    if wrapped.error or (status < 0 and (raises or not report.message)):
        wrapped.check(status, "gradcheck")
    lib.wg_error_clear()
    return Report(report)
