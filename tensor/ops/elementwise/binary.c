/* Arithmetic of two operands with broadcasting.
 *
 * Operands of different dtypes are cast to the higher one before the op runs, so a kernel sees one
 * dtype, and the gradients find their way back through the casts. */
#include "tensor/ops/registry.h"
#include "tensor/ops/elementwise/pair.h"

static int sample_normal(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_binary(index, generator, sample, wg__sample_normal, wg__sample_normal);
}

/* ---- add: y = a + b; of bools: or.   da = g, db = g. ---- */

PAIR_FLOAT_LOOPS(add, a + b)
PAIR_WRAPPING_LOOPS(add, a + b)
PAIR_LOOP(add_bool, uint8_t, uint8_t, a | b)

static int add_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(add),
                                                   INTEGERS(add), [WG_BOOL] = add_bool};
    return wg__elementwise_call(call, loops, NULL);
}

static int add_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    for (int i = 0; i < 2; i++)
        if (wg__wants(call, i))
            gradients[i] = wg__sum_like(cotangents[0], call, i);
    return wg__vjp_status();
}

static const wg_op add = {
    .name = "add",
    .doc = "y = a + b with broadcasting; of bools: or.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .differentiable = 3,
    .infer = wg__infer_pair,
    .forward = add_forward,
    .vjp = add_vjp,
    .jvp = wg_jvp_linear,
    .sample = sample_normal,
    .bench = wg__bench_two,
};

wg_tensor *wg_add(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&add, a, b, false);
}

/* ---- sub: y = a - b.   da = g, db = -g. ---- */

PAIR_FLOAT_LOOPS(sub, a - b)
PAIR_WRAPPING_LOOPS(sub, a - b)

static int sub_infer(wg_call *call) {
    if (call->input_specs[0].dtype == WG_BOOL)
        return wg__op_fail(call, WG_ERROR_DTYPE,
                           "bools have no difference; cast them, or use logical_xor");
    return wg__infer_pair(call);
}

static int sub_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(sub), INTEGERS(sub)};
    return wg__elementwise_call(call, loops, NULL);
}

static int sub_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (wg__wants(call, 0))
        gradients[0] = wg__sum_like(cotangents[0], call, 0);
    if (wg__wants(call, 1))
        gradients[1] = wg_neg(wg__sum_like(cotangents[0], call, 1));
    return wg__vjp_status();
}

static const wg_op sub = {
    .name = "sub",
    .doc = "y = a - b with broadcasting.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .differentiable = 3,
    .infer = sub_infer,
    .forward = sub_forward,
    .vjp = sub_vjp,
    .jvp = wg_jvp_linear,
    .sample = sample_normal,
    .bench = wg__bench_two,
};

wg_tensor *wg_sub(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&sub, a, b, false);
}

/* ---- mul: y = a b; of bools: and.   da = g b, db = g a. ---- */

PAIR_FLOAT_LOOPS(mul, a *b)
PAIR_WRAPPING_LOOPS(mul, a *b)
PAIR_LOOP(mul_bool, uint8_t, uint8_t, a &b)

static int mul_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(mul),
                                                   INTEGERS(mul), [WG_BOOL] = mul_bool};
    return wg__elementwise_call(call, loops, NULL);
}

static wg_tensor *mul_partial(wg_call *call, int i, wg_tensor *direction) {
    return wg_mul(direction, call->inputs[1 - i]);
}

WG__DERIVATIVES_BY_PARTIALS(mul)

static const wg_op mul = {
    .name = "mul",
    .doc = "y = a b, element by element, with broadcasting; of bools: and.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .saves_inputs = 3,
    .differentiable = 3,
    .infer = wg__infer_pair,
    .forward = mul_forward,
    .vjp = mul_vjp,
    .jvp = mul_jvp,
    .sample = sample_normal,
    .bench = wg__bench_two,
};

wg_tensor *wg_mul(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&mul, a, b, false);
}

/* ---- div: y = a / b.   da = g / b, db = -g y / b. ---- */

PAIR_FLOAT_LOOPS(div, a / b)

static int div_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(div)};
    return wg__elementwise_call(call, loops, NULL);
}

static int div_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *scaled = wg_div(cotangents[0], call->inputs[1]);
    if (wg__wants(call, 0))
        gradients[0] = wg__sum_like(scaled, call, 0);
    if (wg__wants(call, 1))
        gradients[1] = wg_neg(wg__sum_like(wg_mul(scaled, call->outputs[0]), call, 1));
    return wg__vjp_status();
}

/* (da - y db) / b */
static int div_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *scaled = tangents[1] == NULL ? NULL : wg_mul(call->outputs[0], tangents[1]);
    wg_tensor *numerator = scaled == NULL        ? tangents[0]
                           : tangents[0] == NULL ? wg_neg(scaled)
                                                 : wg_sub(tangents[0], scaled);
    if (numerator != NULL)
        output_tangents[0] = wg_div(numerator, call->inputs[1]);
    return wg__vjp_status();
}

static int div_sample(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_binary(index, generator, sample, wg__sample_normal, wg__sample_nonzero);
}

static const wg_op div_op = {
    .name = "div",
    .doc = "y = a / b with broadcasting, true division.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .saves_inputs = 2,
    .saves_outputs = 1,
    .differentiable = 3,
    .infer = wg__infer_float_pair,
    .forward = div_forward,
    .vjp = div_vjp,
    .jvp = div_jvp,
    .sample = div_sample,
    .bench = wg__bench_two,
};

wg_tensor *wg_div(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&div_op, a, b, true);
}

/* ---- pow: y = a^b.   da = g b a^(b-1), which at a = b = 0 is 0; db = g y log a, which is 0 where
 * a = 0 and b >= 0. ---- */

static int pow_forward(wg_call *call) {
    return wg__run_pair(call, wg__call_simd(call)->pow);
}

/* The singular places are taken out of the operands, not out of the result, so that the derivatives
 * of these gradients hold no 0 * inf either. */
static wg_tensor *pow_partial(wg_call *call, int i, wg_tensor *direction) {
    wg_tensor *a = call->inputs[0], *b = call->inputs[1];
    wg_tensor *zero = wg_scalar(call->output_specs[0].dtype, 0);
    wg_tensor *a_is_zero = wg_eq(a, zero);
    if (i == 0) {
        wg_tensor *both_zero = wg_logical_and(a_is_zero, wg_eq(b, zero));
        wg_tensor *lower = wg_where(both_zero, zero, wg_add_scalar(b, -1));
        return wg_mul(wg_mul(direction, b), wg_pow(a, lower));
    }
    wg_tensor *flat = wg_logical_and(a_is_zero, wg_ge(b, zero));
    wg_tensor *base = wg_where(flat, wg_add_scalar(zero, 1), a);
    return wg_mul(wg_mul(direction, call->outputs[0]), wg_log(base));
}

WG__DERIVATIVES_BY_PARTIALS(pow)

static int pow_sample(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_binary(index, generator, sample, wg__sample_positive, wg__sample_normal);
}

static const wg_op pow_op = {
    .name = "pow",
    .doc = "y = a^b with broadcasting. The derivative in b is y log a, 0 where a = 0 and b >= 0; "
           "NaN in a where b is no integer and a < 0.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .saves_inputs = 3,
    .saves_outputs = 1,
    .differentiable = 3,
    .infer = wg__infer_float_pair,
    .forward = pow_forward,
    .vjp = pow_vjp,
    .jvp = pow_jvp,
    .sample = pow_sample,
    .bench = wg__bench_two,
};

wg_tensor *wg_pow(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&pow_op, a, b, true);
}

/* ---- maximum, minimum: y = the larger, the smaller of a and b; NaN if either is.   da = g where a
 * is chosen, g / 2 at ties. ---- */

/* NaN is the only number that differs from itself: it is chosen wherever it stands. */
PAIR_FLOAT_LOOPS(maximum, ((a > b) | (a != a)) ? a : b)
PAIR_LOOP(maximum_i32, int32_t, int32_t, a > b ? a : b)
PAIR_LOOP(maximum_i64, int64_t, int64_t, a > b ? a : b)
PAIR_LOOP(maximum_u8, uint8_t, uint8_t, a > b ? a : b)

static int maximum_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(maximum),
                                                   INTEGERS(maximum), [WG_BOOL] = maximum_u8};
    return wg__elementwise_call(call, loops, NULL);
}

/* g weighted by how much of y is a: 1 - ((a < b) + (a <= b)) / 2 for maximum, with the operands
 * exchanged for minimum. Beside a NaN each has all of it, as in PyTorch. */
static wg_tensor *share(wg_tensor *g, wg_tensor *larger, wg_tensor *smaller) {
    const wg_dtype dtype = wg_tensor_dtype(g);
    wg_tensor *twice =
        wg_add(wg_cast(wg_lt(larger, smaller), dtype), wg_cast(wg_le(larger, smaller), dtype));
    return wg_mul(g, wg_affine(twice, -0.5, 1));
}

static wg_tensor *maximum_partial(wg_call *call, int i, wg_tensor *direction) {
    return share(direction, call->inputs[i], call->inputs[1 - i]);
}

WG__DERIVATIVES_BY_PARTIALS(maximum)

/* Multiples of 1/4 against the same with 1/8 more: never tied. */
static wg_tensor *sample_between(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_affine(wg__sample_distinct(generator, ndim, shape), 1, 0.0625);
}

static int extremum_sample(int index, wg_generator *generator, wg_sample *sample) {
    return wg__sample_binary(index, generator, sample, wg__sample_distinct, sample_between);
}

static const wg_op maximum = {
    .name = "maximum",
    .doc = "y = the larger of a and b, with broadcasting; NaN if either is. Kink at a = b, where "
           "each gets half of the gradient.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .saves_inputs = 3,
    .differentiable = 3,
    .infer = wg__infer_pair,
    .forward = maximum_forward,
    .vjp = maximum_vjp,
    .jvp = maximum_jvp,
    .sample = extremum_sample,
    .bench = wg__bench_two,
};

wg_tensor *wg_maximum(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&maximum, a, b, false);
}

PAIR_FLOAT_LOOPS(minimum, ((a < b) | (a != a)) ? a : b)
PAIR_LOOP(minimum_i32, int32_t, int32_t, a < b ? a : b)
PAIR_LOOP(minimum_i64, int64_t, int64_t, a < b ? a : b)
PAIR_LOOP(minimum_u8, uint8_t, uint8_t, a < b ? a : b)

static int minimum_forward(wg_call *call) {
    static const wg__loop loops[WG_DTYPE_COUNT] = {FLOATS(minimum),
                                                   INTEGERS(minimum), [WG_BOOL] = minimum_u8};
    return wg__elementwise_call(call, loops, NULL);
}

static wg_tensor *minimum_partial(wg_call *call, int i, wg_tensor *direction) {
    return share(direction, call->inputs[1 - i], call->inputs[i]);
}

WG__DERIVATIVES_BY_PARTIALS(minimum)

static const wg_op minimum = {
    .name = "minimum",
    .doc = "y = the smaller of a and b, with broadcasting; NaN if either is. Kink at a = b, where "
           "each gets half of the gradient.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .saves_inputs = 3,
    .differentiable = 3,
    .infer = wg__infer_pair,
    .forward = minimum_forward,
    .vjp = minimum_vjp,
    .jvp = minimum_jvp,
    .sample = extremum_sample,
    .bench = wg__bench_two,
};

wg_tensor *wg_minimum(wg_tensor *a, wg_tensor *b) {
    return wg__apply_two(&minimum, a, b, false);
}

static const wg_op *const ops[] = {&add, &sub, &mul, &div_op, &pow_op, &maximum, &minimum};

const wg__op_family wg__family_binary = {ops, sizeof ops / sizeof *ops};
