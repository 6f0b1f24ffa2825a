"""Every op of Wengert beside PyTorch: processor time of one thread, forward and backward.

    /usr/bin/python3 bench/torch_ops.py [--wengert FILE] [--torch COMMAND] [--rounds N] [--save FILE] [OP...]

--wengert  the command (default build/wengert; its library is found beside it)
--torch    a Python that has PyTorch, as the words of a command: "chroot /opt/trixie python3"
           (default: this one)
--rounds   how often both are timed, in turns; the median counts (default 3)
--save     the table as JSON, too

An op with a large sample is timed by `wengert bench ops`, and its row here has operands of the same shapes
for PyTorch. The others, and uses of ops that the samples do not have (CASES), are timed by Wengert's
Python module. On both sides a run begins with cold caches, and what is measured is processor time, so that
other programs slow both down alike. A ratio is PyTorch's time by Wengert's: below 1 Wengert is slower.

Backward of PyTorch is torch.autograd.backward, as training calls it, which leaves gradients that own their
memory, as ours always do. torch.autograd.grad would return views of the cotangent for sum, add, cat or clone:
these cost nothing, and whoever writes to or steps by the gradient pays for the copy later.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__)) if "__file__" in globals() else ""
N = 1 << 22
SECONDS = 0.02  # that a direction is timed in each round
OFFSETS = [0, 300, 500, 756, 1000, 1300, 1500, 1800, 2048]

# Ops without a counterpart in PyTorch, and why.
NONE = {
    "cbrt": "no cube root of negative numbers",
    "linear_scan": "no first-order recurrence",
    "quantize": "another format",
    "dequantize": "another format",
    "quantized_linear": "another format",
}
VIEWS = ("reshape squeeze unsqueeze flatten unflatten expand permute transpose movedim slice narrow select "
         "diagonal flip unfold").split()


# ---- What PyTorch runs: op -> (function, makers of its operands, whether there is a gradient) ----

def torch_rows():
    import torch
    import torch.nn.functional as F

    rows = {}
    R = lambda *shape: lambda: torch.rand(*shape)
    Z = lambda *shape: lambda: torch.randn(*shape)
    I = lambda high, *shape: lambda: torch.randint(0, high, shape)
    B = lambda *shape: lambda: torch.rand(*shape) > 0.5
    vector = R(N)

    def add(names, function, *makers, grad=True):
        for name in names.split():
            rows[name] = (function or getattr(torch, name), makers, grad)

    # elementwise
    add("cast", lambda x: x.to(torch.bfloat16), vector)
    add("clone", lambda x: x.clone(), vector)
    add("affine", lambda x: torch.add(torch.tensor(0.25), x, alpha=-1.5), vector)
    add("clamp", lambda x: x.clamp(0.25, 0.75), vector)
    add("nan_to_num neg abs exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square tanh sigmoid erf "
        "sin cos tan asin acos atan sinh cosh asinh atanh erfc lgamma digamma relu", None, vector)
    add("sign floor ceil round trunc", None, vector)
    add("isnan isinf isfinite", None, vector, grad=False)
    add("pow_scalar", lambda x: x ** 1.5, vector)
    add("acosh", None, lambda: torch.rand(N) + 1)
    add("polygamma", lambda x: torch.polygamma(1, x), vector)
    add("add sub mul div pow maximum minimum atan2 hypot logaddexp xlogy remainder fmod", None, vector, vector)
    add("eq ne lt le gt ge", None, vector, vector, grad=False)
    add("logical_and logical_or logical_xor", None, B(N), B(N), grad=False)
    add("logical_not", None, B(N), grad=False)
    add("lerp", None, vector, vector, vector)
    add("addcmul addcdiv", None, vector, vector, vector)
    add("where", None, B(N), vector, vector)
    add("masked_fill", lambda x, m: x.masked_fill(m, -2.5), vector, B(N))
    for name in "gelu silu mish softplus hardswish hardsigmoid leaky_relu elu".split():
        add(name, getattr(F, name), vector)
    add("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), vector)
    add("log_sigmoid", F.logsigmoid, vector)
    add("glu", lambda g, v: torch.sigmoid(g) * v, vector, vector)
    add("swiglu", lambda g, v: F.silu(g) * v, vector, vector)
    add("geglu", lambda g, v: F.gelu(g) * v, vector, vector)
    add("reglu", lambda g, v: F.relu(g) * v, vector, vector)
    add("dropout", lambda x: F.dropout(x, 0.1), vector)
    # shapes
    add("unslice", lambda x: torch.slice_scatter(torch.zeros(2048, 2048), x, 1, 0, None, 2), R(2048, 1024))
    add("diag_embed", None, R(64, 256))
    add("tril triu", None, R(2048, 2048))
    add("cat", lambda a, b: torch.cat((a, b), 1), R(2048, 1024), R(2048, 1024))
    add("roll", lambda x: x.roll((700, 700), (0, 1)), R(2048, 2048))
    add("fold", lambda x: F.fold(x, (1, 2050), (1, 4), stride=(1, 2)), R(1024, 4, 1024))
    add("pad_constant", lambda x: F.pad(x, (1, 1, 1, 1)), R(64, 256, 256))
    # reductions and scans
    matrix = R(4096, 1024)
    add("sum mean var std prod", None, matrix)
    for name in "sum mean var std prod logsumexp softmax log_softmax cumsum cumprod logcumsumexp".split():
        add(name, (lambda f: lambda x: f(x, 1))(getattr(torch, name)), matrix)
    add("norm", lambda x: torch.linalg.vector_norm(x, 2, 1), matrix)
    add("any", lambda x: x.any(1), matrix, grad=False)
    add("all", lambda x: x.all(1), matrix, grad=False)
    add("count_nonzero", lambda x: torch.count_nonzero(x, 1), matrix, grad=False)
    add("argmax", lambda x: x.argmax(1), matrix, grad=False)
    add("argmin", lambda x: x.argmin(1), matrix, grad=False)
    add("max", lambda x: x.amax(1), matrix)
    add("min", lambda x: x.amin(1), matrix)
    add("cummax", lambda x: x.cummax(1).values, matrix)
    add("cummin", lambda x: x.cummin(1).values, matrix)
    quantiles = lambda: torch.tensor([0.1, 0.5, 0.9])
    add("quantile", lambda x, q: torch.quantile(x, q, 1), R(1024, 4096), quantiles)
    add("nanquantile", lambda x, q: torch.nanquantile(x, q, 1), R(1024, 4096), quantiles)
    add("histc", lambda x: torch.histc(x, 100, 0, 1), vector, grad=False)
    add("layer_norm", lambda x, w, b: F.layer_norm(x, (1024,), w, b), Z(4096, 1024), Z(1024), Z(1024))
    add("rms_norm", lambda x, w: F.rms_norm(x, (1024,), w, 1e-5) if hasattr(F, "rms_norm") else
        x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-5) * w, Z(4096, 1024), Z(1024))
    pictures, channels = Z(64, 64, 32, 32), Z(64)
    add("batch_norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), pictures, channels, channels)
    add("normalize_channels", lambda x, m, v, w, b: F.batch_norm(x, m.detach(), v.detach(), w, b, False), pictures,
        lambda: torch.zeros(64), lambda: torch.ones(64), channels, channels)
    # indices
    rows_of = I(2048, 2048, 1)
    square = R(2048, 2048)
    add("gather", lambda x, i: x.gather(0, i.expand(2048, 2048)), square, rows_of)
    add("scatter_add", lambda x, i, s: x.scatter_add(0, i.expand(2048, 2048), s), square, rows_of, square)
    add("scatter", lambda x, i, s: x.scatter(0, i.expand(2048, 2048), s), square, rows_of, square)
    add("nonzero", None, lambda: torch.randint(0, 2, (2048, 2048)).float(), grad=False)
    add("searchsorted", lambda s, x: torch.searchsorted(s, x), lambda: torch.arange(0, 1, 2.0 ** -16), vector,
        grad=False)
    add("index", lambda x, i, j: x[i, j], R(256, 256, 64), I(256, 1 << 16), I(256, 1 << 16))
    add("masked_select", lambda x: torch.masked_select(x, x > 0.5), vector)
    add("masked_select", lambda x, m: torch.masked_select(x, m), vector, B(N))
    add("sort", lambda x: torch.sort(x, dim=1, stable=True).values, R(1024, 4096))
    add("topk", lambda x: x.topk(40, 1).values, R(1024, 4096))
    add("median", lambda x: x.median(1).values, R(1024, 4096))
    add("unique", lambda x: torch.unique(x, return_inverse=True, return_counts=True), R(1024, 1024), grad=False)
    add("segment_sum", lambda x, i: torch.zeros(1 << 12, 64).index_add(0, i, x), R(1 << 16, 64), I(1 << 12, 1 << 16))
    add("segment_max", lambda x, i: torch.zeros(1 << 12, 64).scatter_reduce(
        0, i[:, None].expand(-1, 64), x, "amax", include_self=False), R(1 << 16, 64), I(1 << 12, 1 << 16))
    # products
    add("matmul", None, R(1024, 1024), R(1024, 1024))
    add("linear", F.linear, R(512, 1024), R(2048, 1024), R(2048))
    add("einsum", lambda a, b: torch.einsum("bqhd,bkhd->bhqk", a, b), R(8, 512, 8, 64), R(8, 512, 8, 64))
    add("tensordot", lambda a, b: torch.tensordot(a, b, ((0, 1), (2, 1))), R(32, 32, 1024), R(1024, 32, 32))
    add("outer", None, R(2048), R(2048))
    add("dot", None, vector, vector)
    add("addmm", None, R(1024, 1024), R(1024, 1024), R(1024, 1024))
    add("grouped_mm", lambda a, b: torch.cat(
        [a[i:j] @ b[e] for e, (i, j) in enumerate(zip(OFFSETS, OFFSETS[1:]))]), R(2048, 512), R(8, 512, 1024))
    add("cdist", None, R(2048, 256), R(2048, 256))
    # matrices
    def general():
        return torch.randn(64, 128, 128) + 32 * torch.eye(128)

    def definite():
        x = general()
        return x @ x.mT / 128 + torch.eye(128)

    L = torch.linalg
    add("solve", L.solve, general, Z(64, 128, 128))
    add("solve_triangular", lambda a, b: L.solve_triangular(a, b, upper=False), general, Z(64, 128, 128))
    add("inv", L.inv, general)
    add("det", L.det, general)
    add("slogdet", lambda x: L.slogdet(x)[1], general)
    add("cholesky", L.cholesky, definite)
    add("qr", L.qr, general)
    add("eigh", L.eigh, definite)
    add("svd", lambda x: L.svd(x, full_matrices=False), general)
    add("lstsq", lambda a, b: L.lstsq(a, b).solution, Z(64, 256, 64), Z(64, 256, 16))
    add("pinv", lambda x: L.pinv(x, rtol=1e-5), Z(64, 128, 64))
    add("matrix_power", lambda x: L.matrix_power(x, 8), general)
    add("matrix_exp", None, lambda: torch.randn(64, 128, 128) * 0.1)
    add("matrix_norm", lambda x: L.matrix_norm(x, "nuc"), general)
    # transforms
    add("fft", lambda x: torch.view_as_real(torch.fft.fft(torch.view_as_complex(x))), R(2048, 1024, 2))
    add("rfft", lambda x: torch.view_as_real(torch.fft.rfft(x)), R(4096, 1024))
    add("irfft", lambda x: torch.fft.irfft(torch.view_as_complex(x)), R(4096, 513, 2))
    # convolutions and pooling
    images = {1: (4, 256, 1024), 2: (8, 64, 56, 56), 3: (1, 32, 16, 48, 48)}
    kernels = {1: (256, 256, 3), 2: (64, 64, 3, 3), 3: (32, 32, 3, 3, 3)}
    for d in 1, 2, 3:
        convolution, transposed = getattr(F, "conv%dd" % d), getattr(F, "conv_transpose%dd" % d)
        of_weight = getattr(torch.nn.grad, "conv%dd_weight" % d)
        add("conv%dd" % d, (lambda f: lambda x, w: f(x, w, padding=1))(convolution), Z(*images[d]), Z(*kernels[d]))
        add("conv_transpose%dd" % d, (lambda f: lambda x, w: f(x, w, padding=1))(transposed), Z(*images[d]),
            Z(*kernels[d]))
        add("conv%dd_weight" % d, (lambda f, k: lambda x, g: f(x, k, g, padding=1))(of_weight, kernels[d]),
            Z(*images[d]), Z(*images[d]))
    large = {1: ((16, 64, 4096), 3, 2, 1), 2: ((4, 64, 128, 128), 3, 2, 1), 3: ((4, 32, 32, 32, 32), 2, 2, 0)}
    for d, (shape, kernel, stride, padding) in large.items():
        for name in "max_pool%dd", "avg_pool%dd":
            function = getattr(F, name % d)
            add(name % d, (lambda f, k, s, p: lambda x: f(x, k, s, p))(function, kernel, stride, padding), Z(*shape))
        smaller = shape[:2] + tuple(size // 2 for size in shape[2:])

        # the gradient of a mean pool: PyTorch's backward function
        def spread(g, d=d, shape=shape, k=kernel, s=stride, p=padding):
            x = torch.empty(shape)
            if d == 1:
                return torch.ops.aten.avg_pool2d_backward(
                    g[:, :, None], x[:, :, None], [1, k], [1, s], [0, p], False, True, None)[:, :, 0]
            function = getattr(torch.ops.aten, "avg_pool%dd_backward" % d)
            return function(g, x, [k] * d, [s] * d, [p] * d, False, True, None)

        add("avg_pool%dd_input" % d, spread, Z(*smaller))
    add("interpolate", lambda x: F.interpolate(x, size=(128, 128), mode="bilinear"), R(4, 64, 64, 64))
    # networks
    def attention(q, k, v):
        if hasattr(F, "scaled_dot_product_attention"):
            return F.scaled_dot_product_attention(q, k, v)
        return torch.softmax(q @ k.mT * 0.125, -1) @ v

    def rotary(x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    heads = Z(4, 8, 512, 64)
    add("attention", attention, heads, heads, heads)
    add("rotary", rotary, R(8, 8, 1024, 64), R(1024, 32), R(1024, 32))
    # nn's ops take the input already multiplied by its weight; one feature makes that cheap here
    for name, gates in (("lstm", 4), ("gru", 3)):
        def recurrent(x, w, u, h, c, name=name):
            if name == "lstm":
                return torch.lstm(x, (h, c), [w, u], False, 1, 0.0, True, False, False)
            return torch.gru(x, h, [w, u], False, 1, 0.0, True, False, False)

        add(name, recurrent, Z(64, 32, 1), Z(gates * 256, 1), lambda gates=gates: 0.06 * torch.randn(gates * 256, 256),
            Z(1, 32, 256), Z(1, 32, 256))
    add("cross_entropy", lambda x, t: F.cross_entropy(x, t), Z(512, 8192), I(8192, 512))
    add("soft_cross_entropy", lambda x, t: F.cross_entropy(x, t), Z(512, 8192), R(512, 8192))
    add("linear_cross_entropy", lambda x, w, t: F.cross_entropy(x @ w.T, t), Z(256, 256), Z(1 << 14, 256),
        I(1 << 14, 256))
    add("mse_loss", lambda a, b: F.mse_loss(a, b, reduction="none"), vector, vector)
    add("l1_loss", lambda a, b: F.l1_loss(a, b, reduction="none"), vector, vector)
    add("smooth_l1_loss", lambda a, b: F.smooth_l1_loss(a, b, reduction="none", beta=0.5), vector, vector)
    return rows


# ---- Ops without a sample, and uses that the samples do not have. The title begins with the op. Operands:
# R (0 to 1), Z (normal) of a shape, P (positive), B (bool), I (integers below the first number) ----

def cases(wg, torch):
    """(title, operands, gradient wanted, Wengert's function, PyTorch's): one of the two modules may be None."""
    F = torch.nn.functional if torch else None
    D = torch.distributions if torch else None
    R, Z, P, B, I = "R", "Z", "P", "B", "I"
    M = 1 << 20
    return [
        ("transpose, a copy of 4096 x 1024", [(R, 4096, 1024)], False,
         lambda x: wg.contiguous(wg.transpose(x, 0, 1)), lambda x: x.t().contiguous()),
        ("transpose, a copy of 4096 x 4096", [(R, 4096, 4096)], False,
         lambda x: wg.contiguous(wg.transpose(x, 0, 1)), lambda x: x.t().contiguous()),
        ("permute, a copy of 8 x 512 x 8 x 64 as 0213", [(R, 8, 512, 8, 64)], False,
         lambda x: wg.contiguous(x.permute(0, 2, 1, 3)), lambda x: x.permute(0, 2, 1, 3).contiguous()),
        ("permute, a copy of 16 x 64 x 64 x 64 as 0231", [(R, 16, 64, 64, 64)], False,
         lambda x: wg.contiguous(x.permute(0, 2, 3, 1)), lambda x: x.permute(0, 2, 3, 1).contiguous()),
        ("flip, a copy, both axes", [(R, 2048, 2048)], False,
         lambda x: wg.contiguous(wg.flip(x, [0, 1])), lambda x: x.flip(0, 1)),
        ("slice, a copy of every second", [(R, 2048, 2048)], False,
         lambda x: wg.contiguous(x[:, ::2]), lambda x: x[:, ::2].contiguous()),
        ("add, a transposed operand", [(R, 2048, 2048), (R, 2048, 2048)], True,
         lambda a, b: a + wg.transpose(b, 0, 1), lambda a, b: a + b.t()),
        ("add, a row", [(R, 4096, 1024), (R, 1024)], True, lambda a, b: a + b, lambda a, b: a + b),
        ("add, a column", [(R, 4096, 1024), (R, 4096, 1)], True, lambda a, b: a + b, lambda a, b: a + b),
        ("expand, a copy of rows", [(R, 4096, 1)], False,
         lambda x: wg.contiguous(x.expand(4096, 1024)), lambda x: x.expand(4096, 1024).contiguous()),
        ("tile", [(R, 1024, 1024)], True, lambda x: wg.contiguous(x.tile(2, 2)), lambda x: x.repeat(2, 2)),
        ("repeat_interleave", [(R, 1024, 1024)], True, lambda x: wg.contiguous(wg.repeat_interleave(x, 4, 1)),
         lambda x: x.repeat_interleave(4, 1)),
        ("pad, reflected", [(R, 64, 256, 256)], True,
         lambda x: wg.pad(x, [(1, 1), (1, 1)], mode="reflect"), lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect")),
        ("unfold, a copy of windows", [(R, 1024, 2050)], False,
         lambda x: wg.contiguous(wg.unfold(x, 1, 4, 2)), lambda x: x.unfold(1, 4, 2).contiguous()),
        ("argmax, over the first axis", [(R, 4096, 1024)], False, lambda x: wg.argmax(x, 0), lambda x: x.argmax(0)),
        ("argmax, over an inner axis", [(R, 64, 256, 256)], False, lambda x: wg.argmax(x, 1), lambda x: x.argmax(1)),
        ("argmin, over an inner axis", [(R, 64, 256, 256)], False, lambda x: wg.argmin(x, 1), lambda x: x.argmin(1)),
        ("argmax, of all", [(R, N)], False, lambda x: wg.argmax(x, 0), lambda x: x.argmax(0)),
        ("max, over the first axis", [(R, 4096, 1024)], True, lambda x: wg.max(x, 0), lambda x: x.amax(0)),
        ("sum, over the first axis", [(R, 4096, 1024)], True, lambda x: wg.sum(x, 0), lambda x: x.sum(0)),
        ("sum, over an inner axis", [(R, 64, 256, 256)], True, lambda x: wg.sum(x, 1), lambda x: x.sum(1)),
        ("sum, of all", [(R, N)], True, lambda x: wg.sum(x), lambda x: x.sum()),
        ("var, over the first axis", [(R, 4096, 1024)], True, lambda x: wg.var(x, 0), lambda x: x.var(0)),
        ("softmax, over the first axis", [(Z, 1024, 4096)], True, lambda x: wg.softmax(x, 0),
         lambda x: x.softmax(0)),
        ("cumsum, over the first axis", [(R, 4096, 1024)], True, lambda x: wg.cumsum(x, 0), lambda x: x.cumsum(0)),
        ("sort, of one line", [(R, M)], True, lambda x: wg.sort(x, 0)[0], lambda x: torch.sort(x, dim=0, stable=True).values),
        ("sort, over the first axis", [(R, 4096, 256)], True, lambda x: wg.sort(x, 0)[0],
         lambda x: torch.sort(x, dim=0, stable=True).values),
        ("sort, of i64", [(I, M, 1024, 1024)], False, lambda x: wg.sort(x, 1)[0],
         lambda x: torch.sort(x, dim=1, stable=True).values),
        ("argsort", [(R, 1024, 1024)], False, lambda x: wg.argsort(x, 1), lambda x: x.argsort(1)),
        ("topk, 1000 of one line", [(R, M)], True, lambda x: wg.topk(x, 1000, 0)[0], lambda x: x.topk(1000).values),
        ("median, of one line", [(R, M)], True, lambda x: wg.median(x, 0), lambda x: x.median(0).values),
        ("unique, of i64 below 1000", [(I, 1000, M)], False, lambda x: wg.unique(x),
         lambda x: torch.unique(x, return_inverse=True, return_counts=True)),
        ("searchsorted, few edges", [("L", 64), (R, N)], False, lambda s, x: wg.searchsorted(s, x),
         lambda s, x: torch.searchsorted(s, x)),
        ("einsum, bhqk,bkhd->bqhd", [(R, 8, 8, 512, 512), (R, 8, 512, 8, 64)], True,
         lambda a, b: wg.einsum("bhqk,bkhd->bqhd", a, b), lambda a, b: torch.einsum("bhqk,bkhd->bqhd", a, b)),
        ("einsum, bij,bjk->bik", [(R, 16, 256, 512), (R, 16, 512, 256)], True,
         lambda a, b: wg.einsum("bij,bjk->bik", a, b), lambda a, b: torch.einsum("bij,bjk->bik", a, b)),
        ("matmul, 64 of 128 x 128", [(R, 64, 128, 128), (R, 64, 128, 128)], True, lambda a, b: a @ b,
         lambda a, b: a @ b),
        ("matmul, a vector", [(R, 2048, 2048), (R, 2048)], True, lambda a, b: a @ b, lambda a, b: a @ b),
        ("fft, one line of 2^20", [(R, M, 2)], True, lambda x: wg.fft(x),
         lambda x: torch.view_as_real(torch.fft.fft(torch.view_as_complex(x)))),
        ("fft, lines of 1000", [(R, 1024, 1000, 2)], True, lambda x: wg.fft(x),
         lambda x: torch.view_as_real(torch.fft.fft(torch.view_as_complex(x)))),
        ("fft, lines of the prime 1009", [(R, 1024, 1009, 2)], True, lambda x: wg.fft(x),
         lambda x: torch.view_as_real(torch.fft.fft(torch.view_as_complex(x)))),
        ("rfft, one line of 2^20", [(R, M)], True, lambda x: wg.rfft(x),
         lambda x: torch.view_as_real(torch.fft.rfft(x))),
        ("conv2d, depthwise, stride 1", [(Z, 8, 128, 56, 56), (Z, 128, 1, 3, 3)], True,
         lambda x, w: wg.conv2d(x, w, padding=[1, 1], groups=128),
         lambda x, w: F.conv2d(x, w, padding=1, groups=128)),
        ("conv2d, depthwise, stride 2", [(Z, 8, 128, 56, 56), (Z, 128, 1, 3, 3)], True,
         lambda x, w: wg.conv2d(x, w, padding=[1, 1], stride=[2, 2], groups=128),
         lambda x, w: F.conv2d(x, w, padding=1, stride=2, groups=128)),
        ("conv2d, stride 2", [(Z, 8, 64, 56, 56), (Z, 128, 64, 3, 3)], True,
         lambda x, w: wg.conv2d(x, w, padding=[1, 1], stride=[2, 2]),
         lambda x, w: F.conv2d(x, w, padding=1, stride=2)),
        ("conv2d, kernel 1", [(Z, 8, 256, 28, 28), (Z, 256, 256, 1, 1)], True,
         lambda x, w: wg.conv2d(x, w), lambda x, w: F.conv2d(x, w)),
        ("max_pool2d, 2 x 2", [(Z, 8, 64, 112, 112)], True,
         lambda x: wg.max_pool2d(x, kernel=[2, 2]), lambda x: F.max_pool2d(x, 2)),
        ("embedding_op", [(Z, 32000, 512), (I, 32000, 8192)], True, lambda w, i: wg.embedding(w, i, -1),
         lambda w, i: F.embedding(i, w)),
        ("one_hot", [(I, 1000, 4096)], False, lambda i: wg.one_hot(i, 1000), lambda i: F.one_hot(i, 1000)),
        ("take_along_axis", [(R, 2048, 2048), (I, 2048, 2048, 2048)], True,
         lambda x, i: wg.take_along_axis(x, 1, i), lambda x, i: torch.take_along_dim(x, i, 1)),
        ("take", [(R, N), (I, N, M)], True, lambda x, i: wg.take(x, i), lambda x, i: x.take(i)),
        ("bincount", [(I, 1000, N)], False, lambda i: wg.bincount(i, None, 0), lambda i: torch.bincount(i)),
        ("histogram", [(R, M), ("L", 101)], False, lambda x, e: wg.histogram(x, e, None, False),
         lambda x, e: torch.histogram(x, e).hist),
        ("index_put", [(R, 256, 256, 64), (I, 256, 1 << 16), (I, 256, 1 << 16), (R, 1 << 16, 64)], True,
         lambda x, i, j, v: wg.index_put(x, [i, j], v), lambda x, i, j, v: x.index_put((i, j), v)),
        ("index_put, added", [(R, 256, 256, 64), (I, 256, 1 << 16), (I, 256, 1 << 16), (R, 1 << 16, 64)], True,
         lambda x, i, j, v: wg.index_put(x, [i, j], v, True),
         lambda x, i, j, v: x.index_put((i, j), v, accumulate=True)),
        ("masked_scatter", [(R, N), (B, N), (R, N)], True, lambda x, m, s: wg.masked_scatter(x, m, s),
         lambda x, m, s: x.masked_scatter(m, s)),
        ("nll_loss", [(Z, 4096, 1024), (I, 1024, 4096)], True, lambda x, t: wg.nll_loss(x, t),
         lambda x, t: F.nll_loss(x, t)),
        ("bce_with_logits", [(Z, N), (R, N)], True, lambda x, t: wg.bce_with_logits(x, t, None, None, "none"),
         lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="none")),
        ("kl_div", [(Z, N), (R, N)], True, lambda x, t: wg.kl_div(x, t, False, "none"),
         lambda x, t: F.kl_div(x, t, reduction="none")),
        ("cosine_similarity", [(Z, 4096, 1024), (Z, 4096, 1024)], True,
         lambda a, b: wg.cosine_similarity(a, b, 1, 1e-8), lambda a, b: F.cosine_similarity(a, b, 1)),
        ("normal_log_prob", [(Z, M), (Z, M), (P, M)], True, lambda x, m, s: wg.normal_log_prob(x, m, s),
         lambda x, m, s: D.Normal(m, s, False).log_prob(x)),
        ("normal_entropy", [(P, M)], True, lambda s: wg.normal_entropy(s), lambda s: D.Normal(0 * s, s, False).entropy()),
        ("normal_kl", [(Z, M), (P, M), (Z, M), (P, M)], True, lambda a, b, c, d: wg.normal_kl(a, b, c, d),
         lambda a, b, c, d: D.kl_divergence(D.Normal(a, b, False), D.Normal(c, d, False))),
        ("uniform_log_prob", [(R, M), ("O", M), (P, M)], True, lambda x, a, b: wg.uniform_log_prob(x, a, b),
         lambda x, a, b: D.Uniform(a, b, False).log_prob(x)),
        ("uniform_entropy", [("O", M), (P, M)], True, lambda a, b: wg.uniform_entropy(a, b),
         lambda a, b: D.Uniform(a, b, False).entropy()),
        ("uniform_kl", [("O", M), (P, M), ("O", M), (P, M)], True, lambda a, b, c, d: wg.uniform_kl(a, b, c, d),
         lambda a, b, c, d: D.kl_divergence(D.Uniform(a, b, False), D.Uniform(c, d, False))),
        ("exponential_log_prob", [(P, M), (P, M)], True, lambda x, r: wg.exponential_log_prob(x, r),
         lambda x, r: D.Exponential(r, False).log_prob(x)),
        ("exponential_entropy", [(P, M)], True, lambda r: wg.exponential_entropy(r),
         lambda r: D.Exponential(r, False).entropy()),
        ("exponential_kl", [(P, M), (P, M)], True, lambda a, b: wg.exponential_kl(a, b),
         lambda a, b: D.kl_divergence(D.Exponential(a, False), D.Exponential(b, False))),
        ("laplace_log_prob", [(Z, M), (Z, M), (P, M)], True, lambda x, m, s: wg.laplace_log_prob(x, m, s),
         lambda x, m, s: D.Laplace(m, s, False).log_prob(x)),
        ("laplace_entropy", [(P, M)], True, lambda s: wg.laplace_entropy(s),
         lambda s: D.Laplace(0 * s, s, False).entropy()),
        ("laplace_kl", [(Z, M), (P, M), (Z, M), (P, M)], True, lambda a, b, c, d: wg.laplace_kl(a, b, c, d),
         lambda a, b, c, d: D.kl_divergence(D.Laplace(a, b, False), D.Laplace(c, d, False))),
        ("gamma_log_prob", [(P, M), (P, M), (P, M)], True, lambda x, a, b: wg.gamma_log_prob(x, a, b),
         lambda x, a, b: D.Gamma(a, b, False).log_prob(x)),
        ("gamma_entropy", [(P, M), (P, M)], True, lambda a, b: wg.gamma_entropy(a, b),
         lambda a, b: D.Gamma(a, b, False).entropy()),
        ("gamma_kl", [(P, M), (P, M), (P, M), (P, M)], True, lambda a, b, c, d: wg.gamma_kl(a, b, c, d),
         lambda a, b, c, d: D.kl_divergence(D.Gamma(a, b, False), D.Gamma(c, d, False))),
        ("beta_log_prob", [("U", M), (P, M), (P, M)], True, lambda x, a, b: wg.beta_log_prob(x, a, b),
         lambda x, a, b: D.Beta(a, b, False).log_prob(x)),
        ("beta_entropy", [(P, M), (P, M)], True, lambda a, b: wg.beta_entropy(a, b),
         lambda a, b: D.Beta(a, b, False).entropy()),
        ("beta_kl", [(P, M), (P, M), (P, M), (P, M)], True, lambda a, b, c, d: wg.beta_kl(a, b, c, d),
         lambda a, b, c, d: D.kl_divergence(D.Beta(a, b, False), D.Beta(c, d, False))),
        ("dirichlet_log_prob", [("S", 1 << 16, 16), (P, 1 << 16, 16)], True, lambda x, a: wg.dirichlet_log_prob(x, a),
         lambda x, a: D.Dirichlet(a, False).log_prob(x)),
        ("dirichlet_entropy", [(P, 1 << 16, 16)], True, lambda a: wg.dirichlet_entropy(a),
         lambda a: D.Dirichlet(a, False).entropy()),
        ("dirichlet_kl", [(P, 1 << 16, 16), (P, 1 << 16, 16)], True, lambda a, b: wg.dirichlet_kl(a, b),
         lambda a, b: D.kl_divergence(D.Dirichlet(a, False), D.Dirichlet(b, False))),
        ("student_t_log_prob", [(Z, M), (P, M), (Z, M), (P, M)], True,
         lambda x, n, m, s: wg.student_t_log_prob(x, n, m, s), lambda x, n, m, s: D.StudentT(n, m, s, False).log_prob(x)),
        ("student_t_entropy", [(P, M), (P, M)], True, lambda n, s: wg.student_t_entropy(n, s),
         lambda n, s: D.StudentT(n, 0 * s, s, False).entropy()),
        ("bernoulli_log_prob", [(B + "F", M), (Z, M)], True, lambda x, l: wg.bernoulli_log_prob(x, l),
         lambda x, l: D.Bernoulli(logits=l, validate_args=False).log_prob(x)),
        ("bernoulli_entropy", [(Z, M)], True, lambda l: wg.bernoulli_entropy(l),
         lambda l: D.Bernoulli(logits=l, validate_args=False).entropy()),
        ("bernoulli_kl", [(Z, M), (Z, M)], True, lambda a, b: wg.bernoulli_kl(a, b),
         lambda a, b: D.kl_divergence(D.Bernoulli(logits=a, validate_args=False),
                                      D.Bernoulli(logits=b, validate_args=False))),
        ("categorical_log_prob", [(I, 16, 1 << 16), (Z, 1 << 16, 16)], True,
         lambda x, l: wg.categorical_log_prob(x, l),
         lambda x, l: D.Categorical(logits=l, validate_args=False).log_prob(x)),
        ("categorical_entropy", [(Z, 1 << 16, 16)], True, lambda l: wg.categorical_entropy(l),
         lambda l: D.Categorical(logits=l, validate_args=False).entropy()),
        ("categorical_kl", [(Z, 1 << 16, 16), (Z, 1 << 16, 16)], True, lambda a, b: wg.categorical_kl(a, b),
         lambda a, b: D.kl_divergence(D.Categorical(logits=a, validate_args=False),
                                      D.Categorical(logits=b, validate_args=False))),
        ("multivariate_normal_log_prob", [(Z, 1 << 14, 16), (Z, 1 << 14, 16), ("T", 16, 16)], True,
         lambda x, m, l: wg.multivariate_normal_log_prob(x, m, l),
         lambda x, m, l: D.MultivariateNormal(m, scale_tril=l, validate_args=False).log_prob(x)),
        ("multivariate_normal_entropy", [("T", 256, 16, 16)], True, lambda l: wg.multivariate_normal_entropy(l),
         lambda l: D.MultivariateNormal(torch.zeros(16), scale_tril=l, validate_args=False).entropy()),
        ("multivariate_normal_kl", [(Z, 256, 16), ("T", 256, 16, 16), (Z, 256, 16), ("T", 256, 16, 16)], True,
         lambda a, b, c, d: wg.multivariate_normal_kl(a, b, c, d),
         lambda a, b, c, d: D.kl_divergence(D.MultivariateNormal(a, scale_tril=b, validate_args=False),
                                            D.MultivariateNormal(c, scale_tril=d, validate_args=False))),
        ("rand", [], False, lambda: wg.rand(N), lambda: torch.rand(N)),
        ("randn", [], False, lambda: wg.randn(N), lambda: torch.randn(N)),
        ("randperm", [], False, lambda: wg.randperm(M), lambda: torch.randperm(M)),
        ("bernoulli", [(R, N)], False, lambda p: wg.bernoulli(p), lambda p: torch.bernoulli(p)),
        ("gamma_sample", [(P, M), ("1", M)], True, lambda a, b: wg.gamma_sample(a, b),
         lambda a, b: D.Gamma(a, b, False).rsample()),
        ("beta_sample", [(P, M), (P, M)], True, lambda a, b: wg.beta_sample(a, b),
         lambda a, b: D.Beta(a, b, False).rsample()),
        ("dirichlet_sample", [(P, 1 << 16, 16)], True, lambda a: wg.dirichlet_sample(a),
         lambda a: D.Dirichlet(a, False).rsample()),
        ("categorical_sample", [(Z, 1 << 12, 1024)], False, lambda l: wg.categorical_sample(l),
         lambda l: D.Categorical(logits=l, validate_args=False).sample()),
    ]


TITLES = [row[0] for row in cases(None, None)]


def operand(torch, kind, *shape):
    """An operand of a case, as a torch tensor."""
    if kind == "I":
        return torch.randint(0, shape[0], shape[1:])
    x = torch.rand(*shape)
    return {"R": lambda: x, "Z": lambda: torch.randn(*shape), "P": lambda: x * 3 + 1.1, "U": lambda: x * 0.9 + 0.05,
            "B": lambda: x > 0.5, "BF": lambda: (x > 0.5).float(), "O": lambda: -x, "1": lambda: torch.ones(*shape),
            "L": lambda: torch.linspace(0, 1, shape[0]), "S": lambda: x.softmax(-1),
            "T": lambda: (0.1 * x).tril(-1) + torch.diag_embed(x[..., 0] + 1)}[kind]()


# ---- Timing, in a separate process for each side ----

def repeat(run, evict):
    """The median processor time of a few runs, in ms. run() prepares and returns what is timed."""
    times, begun = [], time.process_time()
    for i in range(60):
        timed = run()
        evict()
        start = time.process_time()
        result = timed()
        taken = time.process_time() - start
        del result
        if i > 0:
            times.append(taken)
        if len(times) >= 5 and sum(times) >= SECONDS:
            break
    return 1e3 * statistics.median(times)


def torch_times(title):
    import torch
    if title in torch_times.rows:
        function, makers, wanted = torch_times.rows[title]
        operands = [make() for make in makers]
    else:
        _, kinds, wanted, _, function = cases(None, torch)[TITLES.index(title)]
        operands = [operand(torch, *kind) for kind in kinds]

    def forward():
        with torch.no_grad():
            return function(*operands)

    def flat(y):
        return [part for one in y for part in flat(one)] if isinstance(y, (tuple, list)) else [y]

    times = {"forward_ms": repeat(lambda: forward, torch_times.evict), "backward_ms": None}
    if wanted:
        leaves = [x.requires_grad_() for x in operands if x.is_floating_point()]

        def prepare():
            for x in leaves:
                x.grad = None
            outputs = [y for y in flat(function(*operands)) if y.requires_grad]
            weights = [torch.ones_like(y) for y in outputs]
            return lambda: torch.autograd.backward(outputs, weights)

        times["backward_ms"] = repeat(prepare, torch_times.evict)
    return times


def wengert_times(title):
    import torch
    import wengert as wg
    _, kinds, wanted, function, _ = cases(wg, torch)[TITLES.index(title)]
    operands = [wg.tensor(operand(torch, *kind).numpy()) for kind in kinds]

    def forward():
        with wg.no_grad():
            return function(*operands)

    times = {"forward_ms": repeat(lambda: forward, wengert_times.evict), "backward_ms": None}
    if wanted:
        leaves = [x for x in operands if x.dtype == "f32"]
        for x in leaves:
            x.requires_grad = True

        def prepare():
            y = function(*operands)
            weight = wg.ones_like(y)
            return lambda: wg.grad(y, leaves, weight)

        times["backward_ms"] = repeat(prepare, wengert_times.evict)
    return times


def work(side):
    """Reads titles from standard input and answers each with a line of JSON."""
    import torch
    torch.set_num_threads(1)
    torch.manual_seed(1)
    memory = torch.zeros(96 << 20, dtype=torch.uint8)
    measure = torch_times if side == "torch" else wengert_times
    measure.evict = lambda: memory.add_(1)
    if side == "wengert":
        import wengert
        wengert.set_threads(1)
    torch_times.rows = torch_rows()
    print(json.dumps({"version": torch.__version__, "rows": list(torch_times.rows)}), flush=True)
    for line in sys.stdin:
        try:
            answer = measure(line.strip())
        except Exception as error:  # an op that this version does not have
            answer = {"error": "%s: %s" % (type(error).__name__, str(error).splitlines()[0])}
        print(json.dumps(answer), flush=True)


class Worker:
    def __init__(self, command, side, environment):
        source = open(os.path.abspath(__file__)).read()
        self.process = subprocess.Popen(command + ["-c", source, "--work", side], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, universal_newlines=True,
                                        env=dict(os.environ, OMP_NUM_THREADS="1", **environment))
        hello = self.answer()
        self.version, self.rows = hello["version"], hello["rows"]

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit("torch_ops.py: %s ended" % " ".join(self.process.args[:3]))
        return json.loads(line)

    def measure(self, title):
        print(title, file=self.process.stdin, flush=True)
        return self.answer()


# ---- The table ----

def bench_ops(wengert, name):
    run = subprocess.run([wengert, "bench", "ops", name, "--threads", "1", "--processor-time", "--json", "--seconds",
                          str(SECONDS)], stdout=subprocess.PIPE, universal_newlines=True)
    if run.returncode:
        sys.exit("torch_ops.py: wengert bench ops %s failed" % name)
    return json.loads(run.stdout)["ops"][0]


def registry(wengert):
    """The names of all ops."""
    run = subprocess.run([wengert, "bench", "ops", "--small", "--seconds", "0", "--threads", "1", "--json"],
                         stdout=subprocess.PIPE, universal_newlines=True, check=True)
    return [row["op"] for row in json.loads(run.stdout)["ops"]]


def compare(wengert, ours, theirs, title, rounds):
    """A row: the medians of both, and the ratios."""
    in_command = title in theirs.rows
    row = {"op": title}
    found = {"ours": [], "theirs": []}
    for _ in range(rounds):
        found["ours"].append(bench_ops(wengert, title) if in_command else ours.measure(title))
        found["theirs"].append(theirs.measure(title))
    for side, answers in found.items():
        for answer in answers:
            if "error" in answer:
                row["error"] = "%s: %s" % ("Wengert" if side == "ours" else "PyTorch", answer["error"])
                return row
    for key in "forward_ms", "backward_ms":
        a, b = ([answer[key] for answer in answers] for answers in (found["ours"], found["theirs"]))
        a, b = (statistics.median(x) if None not in x else None for x in (a, b))
        row[key], row["torch_" + key] = a, b
        row[key.replace("ms", "ratio")] = b / a if a and b else None
    return row


def text(value, form="%.3f"):
    return "-" if value is None else form % value


def print_row(row):
    if "error" in row:
        print("%-44s %s" % (row["op"], row["error"]), flush=True)
        return
    cells = [text(row[key]) for key in ("forward_ms", "torch_forward_ms", "backward_ms", "torch_backward_ms")]
    ratios = [text(row[key], "%.2f") for key in ("forward_ratio", "backward_ratio")]
    print("%-44s %9s %9s %6s %10s %10s %6s" % (row["op"], *cells[:2], ratios[0], *cells[2:], ratios[1]), flush=True)


def print_summary(rows):
    ratios = sorted((row[key], "%s, %s" % (row["op"], key.split("_")[0])) for row in rows
                    for key in ("forward_ratio", "backward_ratio") if row.get(key))
    if not ratios:
        return
    values = [ratio for ratio, _ in ratios]
    print("\n%d ratios: " % len(ratios) + ", ".join(
        "%d %s" % (sum(low <= v < high for v in values), name) for low, high, name in (
            (0, 0.8, "below 0.8"), (0.8, 1, "0.8 to 1"), (1, 2, "1 to 2"), (2, 5, "2 to 5"), (5, 1e9, "5 and more"))))
    print("quartiles %s\n\nthe slowest ten:" % ", ".join("%.2f" % values[len(values) * i // 4] for i in (1, 2, 3)))
    for ratio, name in ratios[:10]:
        print("  %.2f  %s" % (ratio, name))


def main():
    parser = argparse.ArgumentParser(description="Every op of Wengert beside PyTorch, on one thread.")
    parser.add_argument("--wengert", default=os.path.join(HERE, "..", "build", "wengert"))
    parser.add_argument("--torch", default=sys.executable, metavar="COMMAND")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--save", metavar="FILE")
    parser.add_argument("ops", nargs="*", metavar="OP")
    a = parser.parse_args()
    names = registry(a.wengert)
    cased = {title.split(",")[0] for title in TITLES}
    folder = os.path.dirname(os.path.abspath(a.wengert))
    library = os.path.join(folder, ".libs", "libwengert.so")
    theirs = Worker(a.torch.split(), "torch", {})
    ours = Worker([sys.executable], "wengert", {
        "WENGERT_LIBRARY": library, "PYTHONPATH": os.path.join(folder, "python")})
    print("PyTorch %s, one thread, ms of processor time, medians of %d rounds\n" % (theirs.version, a.rounds))
    print("%-44s %9s %9s %6s %10s %10s %6s" % ("op", "forward", "PyTorch", "ratio", "backward", "PyTorch", "ratio"))
    rows = []
    for title in names + TITLES:
        op = title.split(",")[0]
        if a.ops and op not in a.ops and title not in a.ops:
            continue
        if op in NONE:
            print("%-44s PyTorch has %s" % (title, NONE[op]))
        elif title in VIEWS and title not in TITLES:
            print("%-44s a view, which moves nothing" % title)
        elif title not in TITLES and title not in theirs.rows:
            if title not in cased:
                print("%-44s no row" % title)
        elif len(rows) == 0 or title not in {row["op"] for row in rows}:
            rows.append(compare(a.wengert, ours, theirs, title, a.rounds))
            print_row(rows[-1])
    print_summary(rows)
    if a.save:
        json.dump({"torch": theirs.version, "rows": rows}, open(a.save, "w"), indent=1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2])
    else:
        main()
