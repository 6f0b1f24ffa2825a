"""Modules: the layers of the library, and custom networks made of them.

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.up = nn.Linear(2, 16)
            self.down = nn.Linear(16, 1)

        def forward(self, x):
            return self.down(self.up(x).tanh())

A Module is a node of the library's module tree, so its parameters have the paths that its attributes
say ("up.weight"), errors name the layer, and files of weights, optimizers, gradcheck_module and the
Trainer take it whole.
"""
import ctypes

from . import _api, _call
from ._call import borrowed
from ._errors import NotFoundError, fail
from ._library import lib
from ._tensor import Tensor, tensor


class _Tree:
    """Owns a root of the library's. When the root becomes a child of another tree, this one hands on
    to that: who holds a module of a tree thus holds the whole."""

    def __init__(self, root):
        self.root, self.joined = root, None

    def __del__(self):
        if self.root and lib and not _call.sys.is_finalizing():
            lib.wg_module_free(self.root)

    def join(self, other):
        self.root, self.joined = None, other


class Parameter:
    """Assigned to an attribute of a Module it becomes a trained tensor (f32) with these values. With
    decay=False weight decay leaves it alone, as biases and norms want it."""

    def __init__(self, values, decay=True):
        self.values, self.decay = tensor(values, "f32"), decay


class Buffer:
    """Assigned to an attribute of a Module it becomes a tensor that is saved, not trained."""

    def __init__(self, values):
        self.values = tensor(values)


class Module:
    """A network or a layer. Subclasses call super().__init__() first and define forward."""

    def __init__(self):
        self._hold(lib.wg_module_new(None, b"", ctypes.sizeof(_api.wg_module)))

    def _hold(self, handle):
        if not handle:
            fail(type(self).__name__)
        object.__setattr__(self, "_as_parameter_", handle)
        object.__setattr__(self, "_tree", _Tree(handle))
        object.__setattr__(self, "_children", {})

    def __call__(self, *inputs, **keywords):
        return self.forward(*inputs, **keywords)

    def forward(self, *inputs):
        raise NotImplementedError("%s has no forward" % type(self).__name__)

    # ---- Attributes: children, parameters, buffers ----

    def __setattr__(self, name, value):
        if isinstance(value, (list, tuple)) and value and all(isinstance(v, Module) for v in value):
            value = ModuleList(value)
        if not isinstance(value, (Module, Parameter, Buffer)):
            object.__setattr__(self, name, value)
            return
        if "_tree" not in self.__dict__:
            raise TypeError("%s.__init__ must call super().__init__() before it assigns %s"
                            % (type(self).__name__, name))
        if isinstance(value, Module):
            self.add_module(name, value)
            object.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            self._parameter(name, value)
        else:
            if not lib.wg_module_buffer(self, name.encode(), value.values):
                fail(name)

    def add_module(self, name, module):
        """Makes a root module a child under that name."""
        if not lib.wg_module_add(self, str(name).encode(), module):
            fail("add_module")
        module._tree.join(self._tree)
        self._children[str(name)] = module

    def _parameter(self, name, value):
        shape = _call._integers(value.values.shape)
        handle = lib.wg_module_parameter(self, name.encode(), len(shape), shape)
        if not handle:
            fail(name)
        before = lib.wg_set_grad_enabled(False)
        Tensor(handle, self._tree).copy_(value.values)
        lib.wg_set_grad_enabled(before)
        if not value.decay:
            lib.wg_module_no_decay(self, name.encode())

    def __getattr__(self, name):
        if name.startswith("__") or "_tree" not in self.__dict__:
            raise AttributeError(name)
        try:
            return self.find(name)
        except NotFoundError:
            raise AttributeError("%s has no %r" % (type(self).__name__, name)) from None

    def find(self, path):
        """The parameter or buffer of that path below this module."""
        address = lib.wg_module_find(self, path.encode())
        if not address:
            raise NotFoundError("%r is no parameter or buffer; there are: %s" % (
                path, ", ".join(self.state_dict()) or "none"))
        return Tensor(_api.wg_slot.from_address(address).tensor, self._tree)

    def children(self):
        return list(self._children.values())

    # ---- The tree as a whole ----

    def _slots(self):
        address = lib.wg_module_state(self)
        if not address:
            fail("state_dict")
        state = _api.wg_state_dict.from_address(address)
        entries = (_api.wg_state_entry * state.count).from_address(state.entries) \
            if state.count else []
        found = [(e.path.decode(), _api.wg_slot.from_address(e.slot)) for e in entries]
        lib.wg_state_dict_free(address)
        return found

    def state_dict(self):
        """All parameters and buffers by their paths, tied ones included."""
        return {path: Tensor(slot.tensor, self._tree) for path, slot in self._slots()}

    def named_parameters(self):
        """(path, tensor) of each parameter, tied ones once."""
        return [(path, Tensor(slot.tensor, self._tree)) for path, slot in self._slots()
                if slot.kind == 0 and not slot.tied]

    def parameters(self):
        return [parameter for _, parameter in self.named_parameters()]

    def parameter_count(self):
        """The number of trained numbers."""
        return lib.wg_module_parameter_count(self)

    def load_state_dict(self, values):
        """Copies values by their paths: arrays or Tensors. All must be there and fit."""
        slots = {path: t for path, t in self.state_dict().items()}
        missing = [path for path in slots if path not in values]
        unexpected = [path for path in values if path not in slots]
        if missing or unexpected:
            raise NotFoundError("load_state_dict: missing: %s; unexpected: %s" % (
                ", ".join(missing) or "none", ", ".join(unexpected) or "none"))
        given = {path: _call._tensor(values[path]).detach() for path in slots}
        wrong = ["%s is %s and is given %s" % (p, t.shape, given[p].shape)
                 for p, t in slots.items() if t.shape != given[p].shape]
        if wrong:
            raise ValueError("load_state_dict: " + "; ".join(wrong))
        before = lib.wg_set_grad_enabled(False)
        try:
            for path, target in slots.items():
                target.copy_(given[path])
        finally:
            lib.wg_set_grad_enabled(before)

    def save(self, path):
        """Writes the weights; the suffix says the format: .safetensors, .h5."""
        from .files import save
        save(path, {p: Tensor(s.tensor, self._tree) for p, s in self._slots() if not s.tied})

    def load(self, path):
        """Reads the weights from a file of any format: all names and shapes must fit."""
        from .files import opened
        with opened(path) as file:
            _call._check(lib.wg_weights_get_module(file, self))
        return self

    def train(self, mode=True):
        """Training (dropout, batch statistics) or evaluation, of the whole tree."""
        lib.wg_module_train(self, mode)
        return self

    def eval(self):
        return self.train(False)

    @property
    def training(self):
        return lib.wg_module_is_training(self)

    def requires_grad_(self, wanted=True):
        """False freezes the parameters below this module."""
        _call._check(lib.wg_module_requires_grad(self, wanted))
        return self

    def zero_grad(self):
        for parameter in self.parameters():
            lib.wg_zero_grad(parameter)

    def to(self, dtype):
        """Changes the dtype of all floating parameters and buffers: "f32" or "f64"."""
        _call._check(lib.wg_module_to(self, _call._dtype(dtype)))
        return self

    def dropout(self, x, p):
        """In training zeroes each element with probability p and scales the rest; else x."""
        return borrowed(lib.wg_dropout, self, _call._tensor(x), p)

    def __repr__(self):
        lines = ["%s(" % type(self).__name__]
        for name, child in self._children.items():
            lines.append("    %s: %s" % (name, repr(child).replace("\n", "\n    ")))
        own = [(path, slot) for path, slot in self._slots() if "." not in path]
        for path, slot in own:
            lines.append("    %s %s" % (path, Tensor(slot.tensor, self._tree).shape))
        return "\n".join(lines + [")"])


class ModuleList(Module):
    """Modules in a row: net.layers[0] has the path "layers.0"."""

    def __init__(self, modules=()):
        super().__init__()
        for module in modules:
            self.append(module)

    def append(self, module):
        self.add_module(len(self._children), module)

    def __len__(self):
        return len(self._children)

    def __getitem__(self, index):
        return list(self._children.values())[index]

    def __iter__(self):
        return iter(self._children.values())


class Sequential(Module):
    """Calls its steps one after the other: Modules, and functions of one tensor."""

    def __init__(self, *steps):
        super().__init__()
        self.steps = tuple(step for step in steps)
        for i, step in enumerate(steps):
            if isinstance(step, Module):
                self.add_module(i, step)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)

    def forward(self, x):
        for step in self.steps:
            x = step(x)
        return x


# ---- Layers of the library ----

def _layer(make, options, *arguments):
    return make(None, b"", *(list(arguments) + [options]))


class Linear(Module):
    """y = x W^T + b. x: (..., in_features) -> (..., out_features)"""

    def __init__(self, in_features, out_features, bias=True, **options):
        made = _call._options(_api.wg_linear_options, dict(options, no_bias=not bias))
        self._hold(_layer(lib.wg_linear_new, made, in_features, out_features))

    def forward(self, x):
        return borrowed(lib.wg_linear_forward, self, _call._tensor(x))


class Embedding(Module):
    """A table of learned vectors. index: (...) i64 or i32 -> (..., width)"""

    def __init__(self, count, width, padding_index=None, **options):
        if padding_index is not None:
            options.update(has_padding=True, padding_index=padding_index)
        made = _call._options(_api.wg_embedding_options, options)
        self._hold(_layer(lib.wg_embedding_new, made, count, width))

    def forward(self, index):
        return borrowed(lib.wg_embedding_forward, self, _call._tensor(index))

    def logits(self, x):
        """x weight^T, of a model whose head is tied to its embedding."""
        return borrowed(lib.wg_embedding_logits, self, _call._tensor(x))


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last axis."""

    def __init__(self, width, eps=1e-5, bias=True):
        made = _call._options(_api.wg_layer_norm_options, {"eps": eps, "no_bias": not bias})
        self._hold(_layer(lib.wg_layer_norm_new, made, width))

    def forward(self, x):
        return borrowed(lib.wg_layer_norm_forward, self, _call._tensor(x))


class RMSNorm(Module):
    """x / sqrt(mean(x^2) + eps) * weight over the last axis."""

    def __init__(self, width, eps=1e-6, eps_outside=False):
        made = _call._options(_api.wg_rms_norm_options, {"eps": eps, "eps_outside": eps_outside})
        self._hold(_layer(lib.wg_rms_norm_new, made, width))

    def forward(self, x):
        return borrowed(lib.wg_rms_norm_forward, self, _call._tensor(x))


class BatchNorm(Module):
    """Batch normalisation of (N, C), (N, C, L), (N, C, H, W) or (N, C, D, H, W)."""

    def __init__(self, channels, eps=1e-5, momentum=0.1, affine=True, running=True,
                 cumulative=False):
        made = _call._options(_api.wg_batch_norm_options, {
            "eps": eps, "momentum": momentum, "no_affine": not affine, "no_running": not running,
            "cumulative": cumulative})
        self._hold(_layer(lib.wg_batch_norm_new, made, channels))

    def forward(self, x):
        return borrowed(lib.wg_batch_norm_forward, self, _call._tensor(x))


class GroupNorm(Module):
    """Group normalisation of (N, C, ...)."""

    def __init__(self, groups, channels, eps=1e-5, affine=True):
        made = _call._options(_api.wg_group_norm_options, {"eps": eps, "no_affine": not affine})
        self._hold(_layer(lib.wg_group_norm_new, made, groups, channels))

    def forward(self, x):
        return borrowed(lib.wg_group_norm_forward, self, _call._tensor(x))


class _Conv(Module):
    rank, make = 0, None

    def __init__(self, in_channels, out_channels, kernel, bias=True, padding_mode="constant",
                 init=None, **options):
        made = _call._options(_api.wg_conv_layer_options, {
            "no_bias": not bias, "padding_mode": padding_mode, "init": init})
        made.struct.conv = _call._options(_api.wg_conv_options, options, self.rank).struct
        self._hold(_layer(type(self).make, made, self.rank, in_channels, out_channels,
                          _call._spatial(kernel, self.rank)))

    def forward(self, x):
        return borrowed(lib.wg_conv_forward, self, _call._tensor(x))


def _conv(name, rank, make):
    return type(name, (_Conv,), {
        "rank": rank, "make": make, "__module__": __name__,
        "__doc__": "A convolution with its weight. Options: stride, padding, dilation, groups, "
                   "output_padding, same_padding: a number, or one for each spatial axis."})


Conv1d = _conv("Conv1d", 1, lib.wg_conv_new)
Conv2d = _conv("Conv2d", 2, lib.wg_conv_new)
Conv3d = _conv("Conv3d", 3, lib.wg_conv_new)
ConvTranspose1d = _conv("ConvTranspose1d", 1, lib.wg_conv_transpose_new)
ConvTranspose2d = _conv("ConvTranspose2d", 2, lib.wg_conv_transpose_new)
ConvTranspose3d = _conv("ConvTranspose3d", 3, lib.wg_conv_transpose_new)


class MultiHeadAttention(Module):
    """Multi-head attention. x: (B, T, width) -> (B, T, width). The options are the members of
    wg_multi_head_attention_options: causal, dropout, key_value_heads, joint..."""

    def __init__(self, width, heads, bias=True, **options):
        made = _call._options(_api.wg_multi_head_attention_options, dict(options, no_bias=not bias))
        self._hold(_layer(lib.wg_multi_head_attention_new, made, width, heads))

    def forward(self, x, memory=None, mask=None, bias=None, cos=None, sin=None):
        inputs = _call._options(_api.wg_attention_inputs, {
            "memory": memory, "mask": mask, "bias": bias, "cos": cos, "sin": sin})
        return borrowed(lib.wg_multi_head_attention_forward, self, _call._tensor(x), inputs)


class FeedForward(Module):
    """down(f(up(x))): width -> inner -> width."""

    def __init__(self, width, inner, activation="gelu", bias=True, dropout=0.0, **options):
        made = _call._options(_api.wg_feed_forward_options, dict(
            options, activation=activation, no_bias=not bias, dropout=dropout))
        self._hold(_layer(lib.wg_feed_forward_new, made, width, inner))

    def forward(self, x):
        return borrowed(lib.wg_feed_forward_forward, self, _call._tensor(x))


class GatedFeedForward(Module):
    """down(f(gate(x)) * up(x)): SwiGLU and its like by kind."""

    def __init__(self, width, inner, kind="swiglu", bias=False, dropout=0.0, **options):
        made = _call._options(_api.wg_gated_feed_forward_options, dict(
            options, kind=kind, bias=bias, dropout=dropout))
        self._hold(_layer(lib.wg_gated_feed_forward_new, made, width, inner))

    def forward(self, x):
        return borrowed(lib.wg_gated_feed_forward_forward, self, _call._tensor(x))


class Dropout(Module):
    """In training zeroes each element with probability p and scales the rest by 1 / (1 - p)."""

    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        return self.dropout(x, self.p)
