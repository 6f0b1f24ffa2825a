"""Optimizers and learning-rate schedules.

    optimizer = wengert.optim.AdamW(model, lr=1e-3, weight_decay=0.01)
    loss.backward()
    optimizer.clip(1.0)
    optimizer.step()            # also drops the gradients
"""
import ctypes

from . import _api, _call
from ._errors import fail
from ._library import lib
from ._tensor import Tensor


# 0 itself, where 0 stands for a default (base/api.h).
WG_ZERO = 2.2250738585072014e-308


class Optimizer:
    """Updates the parameters of a Module, or a list of Tensors that require a gradient."""

    def __init__(self, handle, parameters, lr):
        self._as_parameter_ = None
        if not handle:
            fail(type(self).__name__)
        self._as_parameter_, self.lr, self._kept = handle, lr, []
        if parameters is not None:
            self.add(parameters)

    def __del__(self):
        if self._as_parameter_ and lib:
            lib.wg_optimizer_free(self._as_parameter_)

    def add(self, parameters):
        """Takes the parameters of a Module, a list of Tensors, or a dict of them by name."""
        self._kept.append(parameters)
        if hasattr(parameters, "named_parameters"):
            _call._check(lib.wg_optimizer_add_module(self, parameters))
            return
        if isinstance(parameters, Tensor):
            parameters = [parameters]
        named = parameters.items() if isinstance(parameters, dict) else (
            (str(len(self._kept)) + "." + str(i), p) for i, p in enumerate(list(parameters)))
        for name, parameter in named:
            _call._check(lib.wg_optimizer_add(self, name.encode(), parameter, False))
            self._kept.append(parameter)

    def step(self, lr=None):
        """One update of every parameter that has a gradient, which is dropped."""
        _call._check(lib.wg_optimizer_step(self, self.lr if lr is None else lr))

    def clip(self, max_norm):
        """The global norm of all gradients; if it exceeds max_norm the next step scales them."""
        norm = ctypes.c_double()
        _call._check(lib.wg_optimizer_clip(self, max_norm, ctypes.byref(norm)))
        return norm.value

    def zero_grad(self):
        """Drops all gradients without a step."""
        lib.wg_optimizer_zero_grad(self)

    @property
    def steps(self):
        """The number of steps taken so far."""
        return lib.wg_optimizer_steps(self)


def _optimizer(name, lr, doc):
    make = getattr(lib, "wg_%s_new" % name.lower())
    struct = getattr(_api, "wg_%s_options" % name.lower(), _api.wg_adamw_options)

    def init(self, parameters=None, lr=lr, **options):
        for option in ("momentum", "beta1", "beta2"):
            if options.get(option) == 0:
                options[option] = WG_ZERO
        Optimizer.__init__(self, make(_call._options(struct, options)), parameters, lr)

    names = ", ".join(n for n, _ in struct._fields_)
    return type(name, (Optimizer,), {"__init__": init, "__module__": "wengert.optim",
                                     "__doc__": "%s Options: %s." % (doc, names)})


AdamW = _optimizer("AdamW", 1e-3, "Loshchilov & Hutter 2019.")
Adam = _optimizer("Adam", 1e-3, "Kingma & Ba 2015.")
SGD = _optimizer("SGD", 1e-3, "Stochastic gradient descent.")
Adafactor = _optimizer("Adafactor", 1e-2, "Shazeer & Stern 2018.")
Lion = _optimizer("Lion", 1e-4, "Chen et al. 2023.")
Muon = _optimizer("Muon", 1e-2, "Jordan et al. 2024.")


class Schedule:
    """A learning rate for each step: kind is "linear", "constant", "cosine", "wsd", "noam" or
    "inverse-sqrt". schedule(step) is the rate of that step, counted from 0."""

    def __init__(self, kind, peak, total_steps=0, warmup_steps=0, final=0.0, decay_steps=0, width=0):
        found = lib.wg_schedule_find(kind.encode())
        if found < 0:
            raise ValueError("there is no schedule %r; there are linear, constant, cosine, wsd, noam "
                             "and inverse-sqrt" % kind)
        self.struct = _api.wg_schedule(found, peak, final, warmup_steps, total_steps, decay_steps,
                                       width)

    def __call__(self, step):
        return lib.wg_schedule_rate(ctypes.byref(self.struct), step)
