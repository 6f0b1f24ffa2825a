"""The broken ops of tests/gradcheck/ through PyTorch's gradcheck: a table in Markdown of what each checker says.

    /usr/bin/python3 bench/torch_gradcheck.py
    chroot /opt/trixie python3 - < bench/torch_gradcheck.py        (without the comparison with the tests' source)

Each op is the torch.autograd.Function of the C function of that name, with the same mistake and on the same
samples: x^2 of (3, 2) and (3, 3), the transpose of (3, 3), a b of (3, 2) and (2). `torch.autograd.gradcheck` and
then `gradgradcheck` run with their defaults. "caught" means that either fails or raises an error for any
sample; the column says which of the two. What Wengert says is the diagnosis that the test named in the row asserts,
by default; that it does is looked up in the test's source. Mistakes that PyTorch has no place for are left out: a
decomposition, a jvp (forward mode is off by default there), accumulation by the op itself.
"""
import math
import os
import re
import sys
import warnings

import torch
from torch.autograd import Function, gradcheck, gradgradcheck

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__)) if "__file__" in globals() and __file__ != "<stdin>" else ""


def function_of(forward, backward, saves=True, jvp=None):
    """A Function with that forward (of the inputs) and backward (of the context, the inputs, cotangents)."""

    class Broken(Function):
        @staticmethod
        def forward(ctx, *inputs):
            if saves:
                ctx.save_for_backward(*inputs)
            return forward(ctx, *inputs)

        @staticmethod
        def backward(ctx, *cotangents):
            return backward(ctx, *(ctx.saved_tensors if saves else ()), *cotangents)

    return Broken.apply


# ---- The sound parts ----

def square(ctx, x):
    return x * x


def right(ctx, x, g):
    return 2 * x * g


def scale(ctx, a, b):
    return a * b


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def squares():
    return [(normal(3, 2),), (normal(3, 3),)]


def matrices():
    return [(normal(3, 3),)]


def rows():
    return [(normal(3, 2), normal(2))]


def pairs():
    return [(normal(3, 4), normal(3, 4))]


def no_broadcast():
    return [(normal(3, 2), normal(3, 2))]


def of_square(backward, forward=square):
    return function_of(forward, backward), squares


# ---- The broken parts, by the names of the C functions ----

stale = {}


def stale_forward(ctx, x):
    stale["slopes"] = 2 * x.detach()
    return x * x


def stale_vjp(ctx, x, g):
    return stale["slopes"].reshape(-1)[: x.numel()].reshape(x.shape) * g if stale["slopes"].numel() >= x.numel() else g


def clobbering_forward(ctx, x):
    y = x * x
    x.mul_(0.5)
    return y


def sneaking_forward(ctx, x):
    y = x * x
    x.data.view(-1)[0] = 7
    return y


def vjp_modifying_input(ctx, x, g):
    gradient = 2 * x * g
    x.data.zero_()
    return gradient


def vjp_without_tail(ctx, x, g):
    gradient = (2 * x * g).clone()
    gradient.reshape(-1)[64:] = 0
    return gradient


def vjp_without_remainder(ctx, x, g):
    gradient = (2 * x * g).clone()
    n = gradient.numel()
    if n >= 128:
        gradient.reshape(-1)[n // 8 * 8:] = 0
    return gradient


def vjp_of_4096(ctx, x, g):
    gradient = (2 * x * g).clone()
    gradient.reshape(-1)[4096:] = 0
    return gradient


def forward_without_tail(ctx, x):
    y = x * x
    y.reshape(-1)[64:] = 0
    return y


def vjp_wrong_when_long(ctx, x, g):
    return 2 * x * g * (1.5 if x.numel() > 200 else 1)


def vjp_that_sums_256_rows(ctx, a, b, g):
    each = g * a
    return g * b, each[:256].sum(0) if each.dim() == 2 else each


def wrong_where(condition, factor):
    def vjp(ctx, x, g):
        gradient = (2 * x * g).clone()
        gradient[condition(x)] = factor * g[condition(x)]
        return gradient
    return vjp


def tanh_vjp_that_overflows(ctx, x, g):
    e = torch.exp(2 * x)
    return g * 4 * e / ((e + 1) * (e + 1))


def largest_vjp(ctx, x, g):
    is_largest = (x == x.max()).to(x.dtype)
    return is_largest * g * is_largest.sum()


def ramp_vjp_of_2(ctx, x, g):
    return g * ((x > 0).to(x.dtype) + 2 * (x == 0).to(x.dtype))


def vjp_that_looks_at_the_mask(ctx, a, b, g):
    first = g * b * (2 if ctx.needs_input_grad == (True, False) else 1)
    return first, (g * a).sum(0)


def powers_vjp_for_both(ctx, x, g2, g3):
    if g2 is not None and g3 is not None:
        return 2 * x * g2 + 3 * x * x * g3
    return 2 * x * (g2 if g2 is not None else g3)


def powers_forward(ctx, x):
    ctx.set_materialize_grads(False)
    return x**2, x**3


def forward_without_strides(ctx, x):
    flat = torch.as_strided(x, (x.numel(),), (1,), x.storage_offset()).reshape(x.shape)
    return flat * flat


def vjp_without_strides(ctx, x, g):
    flat = torch.as_strided(g, (g.numel(),), (1,), g.storage_offset()).reshape(g.shape) if g.stride() != (0, 0) else g
    return 2 * x * flat


handed = {}


def vjp_with_one_buffer(ctx, x, g):
    gradient = 2 * x * g
    key = tuple(x.shape)
    if key in handed:
        handed[key] += gradient.detach()
    else:
        handed[key] = gradient.detach().clone()
    return handed[key]


kept = []


def keeping_forward(ctx, x):
    kept.append(x.clone())
    return x * x


cache = {}


def forward_with_a_cache(ctx, x):
    key = x.data_ptr()
    if cache.get("key") != key:
        cache["key"], cache["values"] = key, (x * x).detach().clone()
    return cache["values"].clone() if cache["values"].shape == x.shape else x * x


def vjp_off_in_f32(ctx, x, g):
    return x * g * (2.002 if x.dtype == torch.float32 else 2)


def forward_off_in_f32(ctx, x):
    return x * x * (1.001 if x.dtype == torch.float32 else 1)


def vjp_without_tail_in_f32(ctx, x, g):
    return vjp_without_tail(ctx, x, g) if x.dtype == torch.float32 else 2 * x * g


def vjp_failing(ctx, x, g):
    raise RuntimeError("cannot go back")


def diagonal_too(ctx, x, g):
    return 2 * x * g + g.tril().triu()


def threaded_forward(ctx, x):
    return x * (1 + 1e-15 * torch.get_num_threads()) * x


# What the op does wrong, the test of ours, its diagnosis, what the test says it with, the op and its samples.
TABLE = [
    ("the factor 2 is missing", "a_missing_factor_is_named", "FACTOR", of_square(lambda c, x, g: x * g)),
    ("the wrong sign", "a_wrong_sign_is_named", "SIGN", of_square(lambda c, x, g: -2 * x * g)),
    ("a transpose is missing", "a_missing_transpose_is_named", "TRANSPOSED",
     (function_of(lambda c, x: x.t().clone(), lambda c, x, g: g.clone()), matrices)),
    ("not summed over a broadcast axis", "an_unsummed_broadcast_axis_is_named", "UNSUMMED",
     (function_of(scale, lambda c, a, b, g: (g * b, g * a)), rows)),
    ("only one row of a broadcast axis", "a_broadcast_axis_of_which_one_index_is_taken_is_named", "UNSUMMED",
     (function_of(scale, lambda c, a, b, g: (g * b, (g * a)[0])), rows)),
    ("a mean in place of a sum", "a_mean_in_place_of_a_sum_is_explained", "FACTOR",
     (function_of(scale, lambda c, a, b, g: (g * b, (g * a).mean(0))), rows)),
    ("not summed; no sample broadcasts", "broadcasting_is_tried_where_samples_do_not", "UNSUMMED",
     (function_of(scale, lambda c, a, b, g: (g * b, g * a)), no_broadcast)),
    ("the gradient is constant", "a_constant_gradient_is_named", "CONSTANT",
     of_square(lambda c, x, g: torch.ones_like(x))),
    ("the cotangent is left out", "a_cotangent_left_out_is_named", "IGNORES_COTANGENT",
     of_square(lambda c, x, g: 2 * x)),
    ("the input is left out", "an_input_left_out_is_named", "IGNORES_INPUTS", of_square(lambda c, x, g: 2 * g)),
    ("a gradient of zeros", "a_gradient_of_zeros_is_named", "ZERO", of_square(lambda c, x, g: torch.zeros_like(x))),
    ("a gradient of NaN", "a_gradient_of_nan_is_named", "NOT_FINITE", of_square(lambda c, x, g: x * math.nan)),
    ("no gradient (None, NULL)", "a_null_gradient_is_named", "MISSING", of_square(lambda c, x, g: None)),
    ("two gradients are exchanged", "exchanged_gradients_are_named", "EXCHANGED",
     (function_of(scale, lambda c, a, b, g: (g * a, g * b)), pairs)),
    ("wrong everywhere", "what_fits_no_pattern_is_said_to_be_wrong", "WRONG",
     of_square(lambda c, x, g: torch.exp(x) * g)),
    ("wrong on the diagonal", "what_fits_no_pattern_is_said_to_be_wrong", "LOCAL", of_square(diagonal_too)),
    ("a gradient of the wrong shape", "a_gradient_of_the_wrong_shape_is_named", "WRONG_SHAPE",
     of_square(lambda c, x, g: (2 * x * g).reshape(-1))),
    ("a gradient of the wrong dtype", "a_gradient_of_the_wrong_dtype_is_named", "WRONG_DTYPE",
     of_square(lambda c, x, g: (2 * x * g).float())),
    ("backward raises an error", "a_vjp_that_fails_gives_its_reason", "BACKWARD_FAILED", of_square(vjp_failing)),
    ("the second derivative is cut", "a_vjp_that_cuts_the_graph_is_caught_by_default", "CUT",
     of_square(lambda c, x, g: 2 * x.detach() * g)),
    ("backward uses what another run saved", "a_stale_save_is_named", "STALE",
     (function_of(stale_forward, stale_vjp), squares)),
    ("forward gives the result of an earlier run", "a_forward_that_remembers_an_earlier_run_is_caught", "REMEMBERED",
     of_square(right, forward_with_a_cache)),
    ("forward writes to its input", "a_modified_input_is_named", "INPUT_MODIFIED",
     of_square(right, clobbering_forward)),
    ("the same, behind the version counter", "a_modified_input_is_named", "INPUT_MODIFIED",
     of_square(right, sneaking_forward)),
    ("backward writes to an input", "an_input_that_backward_modifies_is_named", "INPUT_MODIFIED",
     of_square(vjp_modifying_input)),
    ("backward writes to the cotangent", "a_modified_cotangent_is_named", "COTANGENT_MODIFIED",
     of_square(lambda c, x, g: (2 * x * g, g.data.zero_())[0])),
    ("backward is random", "an_op_that_is_not_deterministic_is_named", "NONDETERMINISTIC",
     of_square(lambda c, x, g: 2 * (x + torch.randn_like(x)) * g)),
    ("forward is random", "an_op_that_is_not_deterministic_is_named", "NONDETERMINISTIC",
     of_square(right, lambda c, x: x + torch.randn_like(x))),
    ("a gradient's memory is used again", "a_gradient_buffer_that_is_used_again_is_caught", "NONDETERMINISTIC",
     of_square(vjp_with_one_buffer)),
    ("the result depends on the number of threads", "results_that_depend_on_the_number_of_threads_are_caught",
     "THREADS", of_square(right, threaded_forward)),
    ("tensors are left alive", "tensors_left_alive_are_counted", "ALIVE", of_square(right, keeping_forward)),
    ("the mask of wanted gradients is ignored", "a_mask_of_wanted_gradients_that_is_ignored_is_named", "WANTS_IGNORED",
     (function_of(scale, lambda c, a, b, g: (g * b, (g * a).sum(0))), rows)),
    ("a gradient depends on that mask", "a_mask_of_wanted_gradients_that_is_ignored_is_named", "WANTS_IGNORED",
     (function_of(scale, vjp_that_looks_at_the_mask), rows)),
    ("a missing cotangent is not a zero", "missing_cotangents_that_are_not_zeros_are_caught", "COTANGENTS",
     (function_of(powers_forward, powers_vjp_for_both), squares)),
    ("forward ignores strides", "a_kernel_that_ignores_strides_is_named", "LAYOUT",
     of_square(right, forward_without_strides)),
    ("backward ignores strides", "a_backward_kernel_that_ignores_strides_is_named", "LAYOUT",
     of_square(vjp_without_strides)),
    ("the gradient ends after 64 elements", "a_gradient_that_ends_after_64_elements_is_caught", "TAIL",
     of_square(vjp_without_tail)),
    ("no gradient after the last whole vector", "elements_after_the_last_whole_vector_are_checked", "TAIL",
     of_square(vjp_without_remainder)),
    ("the gradient ends after 4096 elements", "a_gradient_that_ends_after_4096_elements_is_caught", "TAIL",
     of_square(vjp_of_4096)),
    ("forward ends after 64 elements", "a_forward_that_ends_after_64_elements_is_caught", "TAIL",
     of_square(right, forward_without_tail)),
    ("wrong beyond 200 elements", "a_gradient_that_is_wrong_in_long_inputs_only_is_caught", "LONG",
     of_square(vjp_wrong_when_long)),
    ("a sum stops after 256 rows", "a_sum_that_stops_early_is_caught", "TAIL",
     (function_of(scale, vjp_that_sums_256_rows), rows)),
    ("wrong where x = 0", "a_gradient_that_is_wrong_at_zero_is_caught", "AT_ZERO",
     of_square(wrong_where(lambda x: x == 0, 1))),
    ("NaN where x = 0", "a_gradient_that_is_wrong_at_zero_is_caught", "AT_ZERO",
     of_square(wrong_where(lambda x: x == 0, math.nan))),
    ("wrong where x = -0", "a_gradient_that_is_wrong_at_negative_zero_is_caught", "AT_NEGATIVE_ZERO",
     of_square(wrong_where(lambda x: (x == 0) & torch.signbit(x), 1))),
    ("wrong where x is below 1e-30", "a_gradient_that_is_wrong_at_subnormal_numbers_is_caught", "AT_TINY",
     of_square(wrong_where(lambda x: (x != 0) & (x.abs() < 1e-30), 2))),
    ("wrong where x is subnormal", "a_gradient_that_is_wrong_at_subnormal_numbers_is_caught", "AT_TINY",
     of_square(wrong_where(lambda x: (x != 0) & (x.abs() < sys.float_info.min), 2))),
    ("NaN where x > 50", "a_gradient_that_is_wrong_at_large_numbers_is_caught", "AT_LARGE",
     of_square(wrong_where(lambda x: x > 50, math.nan))),
    ("0 where x < -500", "a_gradient_that_is_wrong_at_large_numbers_is_caught", "AT_LARGE",
     of_square(wrong_where(lambda x: x < -500, 0))),
    ("inf / inf where exp(2 x) overflows", "a_quotient_of_infinities_is_caught", "AT_LARGE",
     of_square(tanh_vjp_that_overflows, lambda c, x: torch.tanh(x))),
    ("the gradient of max counts ties twice", "a_gradient_that_counts_ties_twice_is_caught", "AT_TIES",
     of_square(largest_vjp, lambda c, x: x.max())),
    ("a slope of 2 at the kink of max(x, 0)", "a_slope_beyond_those_of_a_kink_is_caught", "AT_ZERO",
     of_square(ramp_vjp_of_2, lambda c, x: x.clamp(min=0))),
    ("a factor of 1.0005 in backward", "a_factor_of_1_0005_is_caught", "SMALL_FACTOR",
     of_square(lambda c, x, g: 2 * 1.0005 * x * g)),
    ("a factor of 1.00005 in forward", "a_forward_off_by_a_factor_of_1_00005_is_not_laid_to_the_vjp", "SMALL_FACTOR",
     of_square(right, lambda c, x: x * x * 1.00005)),
    ("forward off by 1.001 in f32", "kernels_that_are_wrong_in_f32_only_are_caught", "F32",
     of_square(right, forward_off_in_f32)),
    ("backward off by 1.001 in f32", "kernels_that_are_wrong_in_f32_only_are_caught", "F32",
     of_square(vjp_off_in_f32)),
    ("the tail is lost in f32", "kernels_that_are_wrong_in_f32_only_are_caught", "F32",
     of_square(vjp_without_tail_in_f32)),
]


# No mistakes in PyTorch.
ALLOWED = {
    "not summed over a broadcast axis": "autograd sums",
    "not summed; no sample broadcasts": "autograd sums",
    "the mask of wanted gradients is ignored": "allowed",
}


# ---- What PyTorch says ----

def fails(check, function, inputs):
    stale.clear(), handed.clear(), cache.clear(), kept.clear()
    inputs = tuple(x.clone().requires_grad_() for x in inputs)
    try:
        return not check(function, inputs)
    except Exception:  # GradcheckError, or an error of the op or of autograd
        return True


def verdict(function, samples):
    torch.manual_seed(0)
    samples = samples()
    for check in (gradcheck, gradgradcheck):
        if any(fails(check, function, inputs) for inputs in samples):
            return check.__name__
    return ""


# ---- What the tests say ----

def asserted(diagnosis):
    """True where a test of the gradient checker asserts that diagnosis."""
    for name in ("broken", "kinds", "gradcheck"):
        with open(os.path.join(HERE, "..", "tests", "gradcheck", name + ".c"), encoding="utf-8") as file:
            if re.search(r"\b(WG_DIAGNOSIS_)?" + diagnosis + r"\b", file.read()):
                return True
    return False


def main():
    caught = {"gradcheck": 0, "gradgradcheck": 0, "": 0, "allowed": 0}
    print("| the mistake | PyTorch %s | Wengert |" % torch.__version__.split("+")[0].split("a")[0])
    print("| --- | --- | --- |")
    for text, test, diagnosis, (function, samples) in TABLE:
        if HERE and not asserted(diagnosis):
            sys.exit("tests/gradcheck/: no test asserts %s (%s)" % (diagnosis, test))
        found = verdict(function, samples)
        allowed = not found and text in ALLOWED
        caught["allowed" if allowed else found] += 1
        print("| %s | %s | `%s` |" % (text, ALLOWED[text] if allowed else found or "-", diagnosis), flush=True)
    print("\n%d of %d caught by gradcheck, %d more by gradgradcheck, %d missed, %d no mistakes there"
          % (caught["gradcheck"], len(TABLE), caught["gradgradcheck"], caught[""], caught["allowed"]))


main()
