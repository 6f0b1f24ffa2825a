"""Runs the cases of tests/fixtures/ops, values and gradients that PyTorch and NumPy gave, through the
Python functions: the arguments that their signatures make of C's are right, and nothing is lost."""
import json
import pathlib
import unittest

import numpy as np

import wengert as wg

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "tests" / "fixtures" / "ops"
NUMPY = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
         "bool": np.bool_, "bf16": np.float32}

# Arguments whose names differ between Python and the cases.
NAMES = {"axes": "axis", "first": "first_axis", "last": "last_axis", "divisor": "divisor_override",
         "from": "source", "to": "destination"}
KEEP_AXES = ("roll",)
REDUCTIONS = ["mean", "sum", "none"]
SEGMENT_REDUCTIONS = ["sum", "mean", "max", "min"]
INTERNAL = ("gamma_slope", "gamma_slope_derivative", "gamma_quantile_derivative")  # have no public functions


def array(values, dtype, shape):
    return np.array([float(v) if isinstance(v, str) else v for v in values],
                    NUMPY[dtype]).reshape(shape)


def operand(record, requires_grad):
    """The leaf in memory, and the view of it that the op sees."""
    if record is None:
        return None
    x = wg.tensor(array(record["values"], record["dtype"], record.get("shape", [])))
    if record["dtype"] == "bf16":
        x = x.cast("bf16")
    layout = record.get("layout", "c")
    x = {"c": lambda: x, "t": lambda: x.transpose(-1, -2), "r": lambda: x.flip(-1),
         "s": lambda: x[..., 1::2], "e": lambda: x.expand(2, *x.shape[1:])}[layout]()
    if requires_grad:
        x.requires_grad_()
    return x


def keywords(op, arguments):
    found = {}
    for name, value in (arguments or {}).items():
        if isinstance(value, str) and value.lower().lstrip("-") in ("inf", "nan", "infinity"):
            value = float(value)
        if name == "axes" and op not in KEEP_AXES:
            value = value or None
        if name in ("divisor", "groups"):  # in the file all integers of windows are lists
            value = value[0]
        if name == "reduction":
            value = (SEGMENT_REDUCTIONS if "segment" in op else REDUCTIONS)[value]
        found[name if op == "roll" else NAMES.get(name, name)] = value
    return found


def call(op, xs, given):
    if op in ("index", "index_put"):
        if op == "index":
            return wg._call._one(wg._lib.wg_index, xs[0], len(xs) - 1, wg._call._tensors(xs[1:]))
        return wg.index_put(xs[0], xs[2:], xs[1], **given)
    if op in ("cat", "stack"):
        return getattr(wg, op)(xs, **given)
    if op == "meshgrid":
        return wg.meshgrid(xs)
    if op == "einsum":
        return wg.einsum(given["equation"], *xs)
    if op == "polygamma":
        return wg.polygamma(given["n"], xs[0])
    if op == "pad":
        ends = given.pop("widths")
        return wg.pad(xs[0], list(zip(ends[::2], ends[1::2])), **given)
    if op == "arange":
        return wg.arange(given["start"], given["stop"], given["step"], given["dtype"])
    if op == "interpolate":
        mode = "linear" if given.pop("linear", False) else "nearest"
        return wg.interpolate(xs[0], mode=mode, **given)
    if op == "linear_scan":
        return wg.linear_scan(*xs[:2], given["axis"], *xs[2:])
    if op.endswith("fft2"):
        (n_a, n_b), (axis_a, axis_b) = given["sizes"], given["axis"]
        return getattr(wg, op)(xs[0], n_a, n_b, axis_a, axis_b, given["norm"])
    if op in ("cross_entropy", "nll_loss"):
        return getattr(wg, op)(*xs[:2], weight=xs[2] if len(xs) > 2 else None, **given)
    if op == "linear_cross_entropy":
        return wg.linear_cross_entropy(*xs[:4], weight=xs[4], **given)
    if "max_pool" in op:
        given["return_indices"] = True
    if op == "permute":
        return wg.permute(xs[0], given["order"])
    if op in ("gather", "index_select", "take_along_axis", "scatter", "scatter_add"):
        return getattr(wg, op)(xs[0], given["axis"], *xs[1:])
    if op == "matrix_norm":
        given["order"] = ["fro", "nuc", 2, -2, 1, -1, float("inf"), float("-inf")][given["order"]]
    if op in ("qr", "eigh", "svd"):  # of vectors of either sign the cases have the squares
        found = getattr(wg, op)(*xs, **given)
        return tuple(y if (op, i) in (("eigh", 0), ("svd", 1)) else y * y
                     for i, y in enumerate(found))
    name = {"slice": "slice_", "embedding_op": "embedding"}.get(op, op)
    return getattr(wg, name)(*xs, **given)


def numbers(x):
    x = x.detach()
    return (x.cast("f32") if x.dtype == "bf16" else x).numpy()


class Fixtures(unittest.TestCase):
    def compare(self, found, expected, rtol, atol):
        found = np.asarray(found, np.float64)
        expected = np.asarray(expected, np.float64)
        self.assertEqual(found.shape, expected.shape)
        np.testing.assert_allclose(found, expected, rtol, atol)

    def run_case(self, case):
        gradients = case.get("gradients") or []
        xs = [operand(x, i < len(gradients) and gradients[i] is not None)
              for i, x in enumerate(case.get("inputs", []))]
        found = call(case["op"], list(xs), keywords(case["op"], case.get("arguments")))
        found = found if isinstance(found, tuple) else (found,)
        self.assertEqual(len(found), len(case["outputs"]))
        for y, expected in zip(found, case["outputs"]):
            self.assertEqual(y.dtype, expected["dtype"])
            shape = expected.get("shape", [])
            self.assertEqual(list(y.shape), shape)
            self.compare(numbers(y), array(expected["values"], y.dtype, shape),
                         case.get("rtol", 0), case.get("atol", 0))
        if not gradients:
            return
        pairs = [(y, wg.tensor(array(c, y.dtype, y.shape)).cast(y.dtype))
                 for y, c in zip(found, case["cotangents"]) if c is not None]
        wanted = [i for i, g in enumerate(gradients) if g is not None]
        got = wg.grad([y for y, _ in pairs], [xs[i] for i in wanted], [c for _, c in pairs])
        for i, gradient in zip(wanted, got):
            self.compare(numbers(gradient), array(gradients[i], gradient.dtype, xs[i].shape),
                         case.get("gradient_rtol", 0), case.get("gradient_atol", 0))


def add(family):
    cases = json.loads((FIXTURES / (family + ".json")).read_text())["cases"]

    def test(self):
        before = wg.tensors_alive()
        for number, case in enumerate(cases):
            if case["op"] in INTERNAL:
                continue
            with self.subTest(op=case["op"], line=number + 2):
                self.run_case(case)
        del case
        self.assertEqual(wg.tensors_alive(), before)

    setattr(Fixtures, "test_" + family, test)


for path in sorted(FIXTURES.glob("*.json")):
    add(path.stem)

if __name__ == "__main__":
    unittest.main()
