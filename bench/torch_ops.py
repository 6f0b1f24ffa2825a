"""The ops of `wengert bench ops` in PyTorch, on operands of the same shapes: user CPU time on one thread.

    build/wengert bench ops --threads 1 --json > ours.json
    /usr/bin/python3 bench/torch_ops.py [ours.json] [OP...]

With ours.json, a row has both times and their ratio; what is below 1 is faster here. Those of Wengert are
wall-clock times: compare on a machine that does nothing else.
"""
import json
import os
import sys
import time

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
rand, randn = torch.rand, torch.randn
N = 1 << 22
vector = lambda: rand(N)
matrix = lambda *shape: lambda: rand(*shape)


def integers(high, *shape):
    return lambda: torch.randint(0, high, shape)


# Each op: its operands and its function. Floating operands want gradients, unless the name ends in "!".
OPS = {}


def add(names, function, *operands):
    for name in names.split():
        OPS[name] = (function if function else getattr(torch, name.rstrip("!")), operands)


add("exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square tanh sigmoid erf sin cos tan asin acos "
    "atan sinh cosh asinh atanh erfc lgamma digamma neg abs sign! floor! ceil! round! trunc! isnan! relu", None, vector)
add("acosh", None, lambda: rand(N) + 1)
add("polygamma", lambda x: torch.polygamma(1, x), vector)
for name in "gelu silu mish softplus hardswish hardsigmoid leaky_relu elu".split():
    add(name, getattr(F, name), vector)
add("log_sigmoid", F.logsigmoid, vector)
add("add sub mul div pow maximum minimum atan2 hypot logaddexp xlogy remainder fmod eq! lt!", None, vector, vector)
add("lerp", torch.lerp, vector, vector, vector)
add("addcmul addcdiv", None, vector, vector, vector)
add("sum prod max! min!", None, matrix(256, 128, 128))
add("cumsum cumprod logcumsumexp cummax cummin", None, matrix(4096, 1024))
for name in "cumsum cumprod logcumsumexp".split():
    OPS[name] = ((lambda f: lambda x: f(x, 1))(getattr(torch, name)), OPS[name][1])
for name in "cummax cummin".split():
    OPS[name] = ((lambda f: lambda x: f(x, 1).values)(getattr(torch, name)), OPS[name][1])
add("softmax log_softmax", None, matrix(4096, 1024))
for name in "softmax log_softmax".split():
    OPS[name] = ((lambda f: lambda x: f(x, 1))(getattr(torch, name)), OPS[name][1])
add("layer_norm_op", lambda x, w, b: F.layer_norm(x, (1024,), w, b), matrix(4096, 1024), matrix(1024), matrix(1024))
add("sort", lambda x: x.sort(1, stable=True).values, matrix(1024, 4096))
add("topk", lambda x: x.topk(40, 1).values, matrix(1024, 4096))
add("median", lambda x: x.median(1).values, matrix(1024, 4096))
add("quantile", lambda x, q: torch.quantile(x, q, 1), matrix(1024, 4096), lambda: torch.tensor([0.1, 0.5, 0.9]))
add("nanquantile", lambda x, q: torch.nanquantile(x, q, 1), matrix(1024, 4096), lambda: torch.tensor([0.1, 0.5, 0.9]))
add("histc!", lambda x: torch.histc(x, 100, 0, 1), vector)
add("unique!", lambda x: torch.unique(x, return_inverse=True, return_counts=True), matrix(1024, 1024))
add("searchsorted!", lambda x: torch.searchsorted(torch.arange(0, 1, 2.0 ** -16), x), vector)
add("segment_sum", lambda x, i: torch.zeros(1 << 12, 64).index_add(0, i, x), matrix(1 << 16, 64), integers(1 << 12, 1 << 16))
add("segment_max!", lambda x, i: torch.zeros(1 << 12, 64).scatter_reduce(
    0, i[:, None].expand(-1, 64), x, "amax", include_self=False), matrix(1 << 16, 64), integers(1 << 12, 1 << 16))
add("matmul", None, matrix(1024, 1024), matrix(1024, 1024))
add("linear", F.linear, matrix(512, 1024), matrix(2048, 1024), matrix(2048))
add("addmm", None, matrix(1024, 1024), matrix(1024, 1024), matrix(1024, 1024))
add("einsum", lambda a, b: torch.einsum("bqhd,bkhd->bhqk", a, b), matrix(8, 512, 8, 64), matrix(8, 512, 8, 64))
add("cdist", torch.cdist, matrix(2048, 256), matrix(2048, 256))
OFFSETS = [0, 300, 500, 756, 1000, 1300, 1500, 1800, 2048]
add("grouped_mm", lambda a, b: torch.cat([a[i:j] @ b[e] for e, (i, j) in enumerate(zip(OFFSETS, OFFSETS[1:]))]),
    matrix(2048, 512), matrix(8, 512, 1024))
add("fft", lambda x: torch.view_as_real(torch.fft.fft(torch.view_as_complex(x))), matrix(2048, 1024, 2))
add("rfft", lambda x: torch.view_as_real(torch.fft.rfft(x)), matrix(4096, 1024))
add("irfft", lambda x: torch.fft.irfft(torch.view_as_complex(x)), matrix(4096, 513, 2))


def cpu_time(function):
    """The least user CPU time, in ms, of calls that take half a second together."""
    function()
    best, spent = float("inf"), 0.0
    while spent < 0.5:
        start = os.times().user
        begin = time.process_time()
        function()
        taken = time.process_time() - begin
        best, spent = min(best, taken), spent + max(taken, os.times().user - start)
    return 1e3 * best


def measure(name):
    function, makers = OPS[name]
    operands = [make() for make in makers]
    with torch.no_grad():
        forward = cpu_time(lambda: function(*operands))
    if name.endswith("!"):
        return forward, None
    leaves = [x.requires_grad_() for x in operands if x.is_floating_point()]
    y = function(*operands)
    g = torch.rand_like(y)
    return forward, cpu_time(lambda: torch.autograd.grad(y, leaves, g, retain_graph=True, allow_unused=True))


def main():
    arguments = sys.argv[1:]
    ours = {}
    if arguments and arguments[0].endswith(".json"):
        ours = {row["op"]: row for row in json.load(open(arguments.pop(0)))["ops"]}
    wanted = arguments or [name.rstrip("!") for name in OPS]
    unknown = [name for name in wanted if name not in OPS and name + "!" not in OPS]
    if unknown:
        sys.exit("torch_ops.py: no op is named %s; without names, all are timed" % ", ".join(unknown))
    print("torch %s, user CPU time on one thread\n" % torch.__version__)
    print("%-16s %12s %12s %12s %12s" % ("op", "forward ms", "backward ms", "ours/theirs", "backward"))
    for name in wanted:
        forward, backward = measure(name if name in OPS else name + "!")
        row = ours.get(name, {})
        ratios = [row[key] / theirs if row.get(key) and theirs else None
                  for key, theirs in (("forward_ms", forward), ("backward_ms", backward))]
        print("%-16s %12.3f %12s %12s %12s" % (
            name, forward, *["-" if v is None else "%.3f" % v for v in (backward, *ratios)]), flush=True)


if __name__ == "__main__":
    main()
