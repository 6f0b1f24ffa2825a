/* Broken ops of kinds that a check of the samples in f64 alone does not find: each is caught by
 * default, with the diagnosis that says which function of the op to look at. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tensor/ops.h"
#include "tests/gradcheck/sound.h"
#include "tests/support/testing.h"

/* As assert_caught, and the report names that function. */
static void assert_blamed(wg_op op, wg_diagnosis diagnosis, const char *function) {
    wg_gradcheck_report report = assert_caught(op, diagnosis, "");
    ck_assert_msg(strcmp(report.function, function) == 0, "%s is blamed: %s", report.function,
                  report.message);
}

static int64_t count_of(const wg_tensor *x) {
    return wg_tensor_count(x);
}

/* The right gradient, as memory of its own to be spoilt. */
static int right_gradient(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    int status = square_vjp(call, cotangents, gradients);
    gradients[0] = gradients[0] ? wg_clone(gradients[0]) : NULL;
    return status < 0 || !gradients[0] ? -1 : 0;
}

static double value_at(const wg_tensor *x, int64_t i) {
    return wg_tensor_dtype(x) == WG_F64 ? ((const double *)wg_tensor_data(x))[i]
                                        : (double)((const float *)wg_tensor_data(x))[i];
}

static void put_at(wg_tensor *x, int64_t i, double value) {
    if (wg_tensor_dtype(x) == WG_F64)
        ((double *)wg_tensor_data(x))[i] = value;
    else
        ((float *)wg_tensor_data(x))[i] = (float)value;
}

/* ---- Long inputs ---- */

static int vjp_without_tail(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (right_gradient(call, cotangents, gradients) < 0)
        return -1;
    for (int64_t i = 64; i < count_of(gradients[0]); i++)
        put_at(gradients[0], i, 0);
    return 0;
}

TEST(a_gradient_that_ends_after_64_elements_is_caught) {
    assert_blamed(square_op(vjp_without_tail), WG_DIAGNOSIS_TAIL, "vjp");
}

/* Whole vectors of 8, and only where there are some. */
static int vjp_without_remainder(wg_call *call, wg_tensor *const *cotangents,
                                 wg_tensor **gradients) {
    if (right_gradient(call, cotangents, gradients) < 0)
        return -1;
    int64_t count = count_of(gradients[0]);
    for (int64_t i = count / 8 * 8; count >= 128 && i < count; i++)
        put_at(gradients[0], i, 0);
    return 0;
}

TEST(elements_after_the_last_whole_vector_are_checked) {
    assert_blamed(square_op(vjp_without_remainder), WG_DIAGNOSIS_TAIL, "vjp");
}

static int vjp_of_4096(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (right_gradient(call, cotangents, gradients) < 0)
        return -1;
    for (int64_t i = 4096; i < count_of(gradients[0]); i++)
        put_at(gradients[0], i, 0);
    return 0;
}

TEST(a_gradient_that_ends_after_4096_elements_is_caught) {
    assert_blamed(square_op(vjp_of_4096), WG_DIAGNOSIS_TAIL, "vjp");
}

static int forward_without_tail(wg_call *call) {
    if (square_forward(call) < 0)
        return -1;
    for (int64_t i = 64; i < count_of(call->outputs[0]); i++)
        put_at(call->outputs[0], i, 0);
    return 0;
}

TEST(a_forward_that_ends_after_64_elements_is_caught) {
    wg_op op = square_op(square_vjp);
    op.forward = forward_without_tail;
    assert_blamed(op, WG_DIAGNOSIS_TAIL, "forward");
}

static int vjp_wrong_when_long(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (right_gradient(call, cotangents, gradients) < 0)
        return -1;
    return count_of(gradients[0]) > 200 ? wg_scale_(gradients[0], 1.5) : 0;
}

TEST(a_gradient_that_is_wrong_in_long_inputs_only_is_caught) {
    assert_blamed(square_op(vjp_wrong_when_long), WG_DIAGNOSIS_LONG, "vjp");
}

/* The gradient of b sums at most 256 rows. */
static int vjp_that_sums_256_rows(wg_call *call, wg_tensor *const *cotangents,
                                  wg_tensor **gradients) {
    if (call->wants & 1)
        gradients[0] = wg_mul(cotangents[0], call->inputs[1]);
    if (!(call->wants & 2))
        return 0;
    wg_tensor *each = wg_mul(cotangents[0], call->inputs[0]);
    if (wg_tensor_ndim(each) == 2 && wg_tensor_size(each, 0) > 256)
        each = wg_slice(each, 0, 0, 256, 1);
    gradients[1] = to_shape_of_b(call, each);
    return 0;
}

TEST(a_sum_that_stops_early_is_caught) {
    assert_blamed(scale_op(vjp_that_sums_256_rows), WG_DIAGNOSIS_TAIL, "vjp");
}

/* ---- Values ---- */

/* The gradient where x is as `is` says is another one. */
static int vjp_wrong_where(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients,
                           bool (*is)(double), double factor) {
    if (right_gradient(call, cotangents, gradients) < 0)
        return -1;
    wg_tensor *x = wg_contiguous(call->inputs[0]), *g = wg_contiguous(cotangents[0]);
    for (int64_t i = 0; i < count_of(x); i++)
        if (is(value_at(x, i)))
            put_at(gradients[0], i, factor * value_at(g, i));
    return 0;
}

static bool is_zero(double x) {
    return x == 0;
}

static bool is_negative_zero(double x) {
    return x == 0 && signbit(x);
}

static bool is_tiny(double x) {
    return x != 0 && fabs(x) < 1e-30;
}

static bool is_subnormal(double x) {
    return x != 0 && fabs(x) < DBL_MIN;
}

static bool is_above_50(double x) {
    return x > 50;
}

static bool is_below_minus_500(double x) {
    return x < -500;
}

#define WRONG_WHERE(NAME, IS, FACTOR)                                                              \
    static int NAME(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {          \
        return vjp_wrong_where(call, cotangents, gradients, IS, FACTOR);                           \
    }
WRONG_WHERE(vjp_wrong_at_zero, is_zero, 1)
WRONG_WHERE(vjp_nan_at_zero, is_zero, NAN)
WRONG_WHERE(vjp_wrong_at_negative_zero, is_negative_zero, 1)
WRONG_WHERE(vjp_wrong_at_tiny, is_tiny, 2)
WRONG_WHERE(vjp_wrong_at_subnormal, is_subnormal, 2)
WRONG_WHERE(vjp_nan_when_large, is_above_50, NAN)
WRONG_WHERE(vjp_zero_when_very_negative, is_below_minus_500, 0)

TEST(a_gradient_that_is_wrong_at_zero_is_caught) {
    assert_blamed(square_op(vjp_wrong_at_zero), WG_DIAGNOSIS_AT_ZERO, "vjp");
    assert_blamed(square_op(vjp_nan_at_zero), WG_DIAGNOSIS_AT_ZERO, "vjp");
}

TEST(a_gradient_that_is_wrong_at_negative_zero_is_caught) {
    assert_blamed(square_op(vjp_wrong_at_negative_zero), WG_DIAGNOSIS_AT_NEGATIVE_ZERO, "vjp");
}

TEST(a_gradient_that_is_wrong_at_subnormal_numbers_is_caught) {
    assert_blamed(square_op(vjp_wrong_at_tiny), WG_DIAGNOSIS_AT_TINY, "vjp");
    assert_blamed(square_op(vjp_wrong_at_subnormal), WG_DIAGNOSIS_AT_TINY, "vjp");
}

TEST(a_gradient_that_is_wrong_at_large_numbers_is_caught) {
    assert_blamed(square_op(vjp_nan_when_large), WG_DIAGNOSIS_AT_LARGE, "vjp");
    assert_blamed(square_op(vjp_zero_when_very_negative), WG_DIAGNOSIS_AT_LARGE, "vjp");
}

/* tanh by exponentials that overflow. */
static int tanh_forward(wg_call *call) {
    return wg_copy_(call->outputs[0], wg_tanh(call->inputs[0]));
}

static int tanh_vjp_that_overflows(wg_call *call, wg_tensor *const *cotangents,
                                   wg_tensor **gradients) {
    wg_tensor *e = wg_exp(wg_mul_scalar(call->inputs[0], 2)), *more = wg_add_scalar(e, 1);
    gradients[0] = wg_mul(cotangents[0], wg_div(wg_mul_scalar(e, 4), wg_mul(more, more)));
    return status_of(gradients[0]);
}

TEST(a_quotient_of_infinities_is_caught) {
    wg_op op = square_op(tanh_vjp_that_overflows);
    op.forward = tanh_forward;
    assert_blamed(op, WG_DIAGNOSIS_AT_LARGE, "vjp");
}

/* max over all elements, whose gradient goes to each of the largest. */
static int scalar_infer(wg_call *call) {
    call->output_specs[0] = call->input_specs[0];
    call->output_specs[0].ndim = 0;
    return wg_tensor_count(call->inputs[0]) > 0
               ? 0
               : wg_fail(WG_ERROR_SHAPE, call->op->name, "no elements");
}

static int largest_forward(wg_call *call) {
    return wg_copy_(call->outputs[0], wg_max(call->inputs[0], 0, NULL, false));
}

static int largest_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *x = call->inputs[0], *largest = wg_max(x, 0, NULL, false);
    wg_tensor *is = wg_cast(wg_eq(x, largest), wg_tensor_dtype(x));
    gradients[0] = wg_mul(is, wg_mul_scalar(wg_mul(cotangents[0], wg_sum(is, 0, NULL, false)), 1));
    return status_of(gradients[0]);
}

TEST(a_gradient_that_counts_ties_twice_is_caught) {
    wg_op op = square_op(largest_vjp);
    op.infer = scalar_infer;
    op.forward = largest_forward;
    assert_blamed(op, WG_DIAGNOSIS_AT_TIES, "vjp");
}

/* max(x, 0) with a gradient of 2 at the kink, and at a kink that the op declares. */
static double ramp_at;

static int ramp_forward(wg_call *call) {
    return wg_copy_(call->outputs[0], wg_relu(wg_add_scalar(call->inputs[0], -ramp_at)));
}

static int ramp_vjp_of_2(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *x = wg_add_scalar(call->inputs[0], -ramp_at), *zero = wg_zeros_like(x);
    wg_tensor *slope = wg_cast(wg_gt(x, zero), wg_tensor_dtype(x));
    wg_tensor *twice = wg_mul_scalar(wg_cast(wg_eq(x, zero), wg_tensor_dtype(x)), 2);
    gradients[0] = wg_mul(cotangents[0], wg_add(slope, twice));
    return status_of(gradients[0]);
}

static int kink_at_a_half(const void *options, double *kinks) {
    (void)options;
    kinks[0] = 0.5;
    return 1;
}

TEST(a_slope_beyond_those_of_a_kink_is_caught) {
    wg_op op = square_op(ramp_vjp_of_2);
    op.forward = ramp_forward;
    ramp_at = 0;
    assert_blamed(op, WG_DIAGNOSIS_AT_ZERO, "vjp");
    ramp_at = 0.5;
    assert_passes(op, NULL);
    op.exceptions = &(wg_op_exceptions){.kinks = kink_at_a_half};
    assert_blamed(op, WG_DIAGNOSIS_KINK, "vjp");
}

/* Points at which the op declares that it has no derivative are compared for values alone. */
TEST(no_derivative_is_asked_for_where_none_is_declared) {
    wg_op op = square_op(vjp_nan_at_zero);
    op.exceptions = &(wg_op_exceptions){.undefined_at = WG_AT_ZERO};
    assert_passes(op, NULL);
}

/* ---- Small factors ---- */

static int square_decompose(wg_call *call) {
    call->outputs[0] = wg_mul(call->inputs[0], call->inputs[0]);
    return status_of(call->outputs[0]);
}

static int vjp_a_little_off(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(wg_mul_scalar(call->inputs[0], 2 * 1.0005), cotangents[0]);
    return 0;
}

TEST(a_factor_of_1_0005_is_caught) {
    assert_blamed(square_op(vjp_a_little_off), WG_DIAGNOSIS_SMALL_FACTOR, "vjp or forward");
    wg_op op = square_op(vjp_a_little_off);
    op.decompose = square_decompose;
    assert_blamed(op, WG_DIAGNOSIS_SMALL_FACTOR, "vjp");
    op.decompose = NULL;
    op.jvp = square_jvp;
    assert_blamed(op, WG_DIAGNOSIS_SMALL_FACTOR, "vjp or forward");
}

static int forward_a_little_off(wg_call *call) {
    return square_forward(call) < 0 ? -1 : wg_scale_(call->outputs[0], 1.00005);
}

/* The vjp is right. What else the op has says so; alone it is one against one. */
TEST(a_forward_off_by_a_factor_of_1_00005_is_not_laid_to_the_vjp) {
    wg_op op = square_op(square_vjp);
    op.forward = forward_a_little_off;
    assert_blamed(op, WG_DIAGNOSIS_SMALL_FACTOR, "vjp or forward");
    assert_caught(op, WG_DIAGNOSIS_SMALL_FACTOR,
                  "without a decomposition or a jvp nothing says which one is wrong");
    op.jvp = square_jvp;
    assert_blamed(op, WG_DIAGNOSIS_SMALL_FACTOR, "forward");
    assert_caught(op, WG_DIAGNOSIS_SMALL_FACTOR, "the jvp agrees with the vjp");
    op.decompose = square_decompose;
    assert_blamed(op, WG_DIAGNOSIS_DECOMPOSITION, "forward");
    assert_caught(op, WG_DIAGNOSIS_DECOMPOSITION, "the vjp agrees with decompose");
}

/* ---- f32 ---- */

static int forward_off_in_f32(wg_call *call) {
    bool narrow = wg_tensor_dtype(call->outputs[0]) == WG_F32;
    return square_forward(call) < 0 ? -1 : wg_scale_(call->outputs[0], narrow ? 1.001 : 1);
}

static int vjp_off_in_f32(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    bool narrow = wg_tensor_dtype(call->inputs[0]) == WG_F32;
    gradients[0] = wg_mul(wg_mul_scalar(call->inputs[0], narrow ? 2.002 : 2), cotangents[0]);
    return 0;
}

static int vjp_without_tail_in_f32(wg_call *call, wg_tensor *const *cotangents,
                                   wg_tensor **gradients) {
    return wg_tensor_dtype(call->inputs[0]) == WG_F32
               ? vjp_without_tail(call, cotangents, gradients)
               : square_vjp(call, cotangents, gradients);
}

TEST(kernels_that_are_wrong_in_f32_only_are_caught) {
    wg_op op = square_op(square_vjp);
    op.forward = forward_off_in_f32;
    assert_blamed(op, WG_DIAGNOSIS_F32, "forward");
    assert_blamed(square_op(vjp_off_in_f32), WG_DIAGNOSIS_F32, "vjp");
    assert_blamed(square_op(vjp_without_tail_in_f32), WG_DIAGNOSIS_F32, "vjp");
}

/* ---- The decomposition ---- */

static int cube_decompose(wg_call *call) {
    call->outputs[0] = wg_mul(wg_mul(call->inputs[0], call->inputs[0]), call->inputs[0]);
    return status_of(call->outputs[0]);
}

static int cut_decompose(wg_call *call) {
    call->outputs[0] = wg_mul(wg_detach(call->inputs[0]), call->inputs[0]);
    return status_of(call->outputs[0]);
}

static int forward_plus_a_constant(wg_call *call) {
    return wg_copy_(call->outputs[0],
                    wg_add_scalar(wg_mul(call->inputs[0], call->inputs[0]), 1e-4));
}

TEST(a_forward_that_is_not_its_decomposition_is_caught) {
    wg_op op = square_op(square_vjp);
    op.decompose = square_decompose;
    assert_passes(op, NULL);
    op.forward = forward_plus_a_constant; /* its derivative is right */
    assert_blamed(op, WG_DIAGNOSIS_DECOMPOSITION, "forward or decompose");
    assert_caught(op, WG_DIAGNOSIS_DECOMPOSITION, "the vjp agrees with both");
    op.forward = square_forward;
    op.decompose = cube_decompose;
    assert_blamed(op, WG_DIAGNOSIS_DECOMPOSITION, "decompose");
    assert_caught(op, WG_DIAGNOSIS_DECOMPOSITION, "the vjp agrees with forward");
}

TEST(a_decomposition_that_cuts_the_graph_is_caught) {
    wg_op op = square_op(square_vjp);
    op.decompose = cut_decompose;
    assert_blamed(op, WG_DIAGNOSIS_RECORDED, "decompose");
}

/* ---- Forward mode ---- */

static int jvp_of_half(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    output_tangents[0] = wg_mul(call->inputs[0], tangents[0]);
    return 0;
}

static int jvp_a_little_off(wg_call *call, wg_tensor *const *tangents,
                            wg_tensor **output_tangents) {
    output_tangents[0] = wg_mul(wg_mul_scalar(call->inputs[0], 2.0001), tangents[0]);
    return 0;
}

static int jvp_without_tail(wg_call *call, wg_tensor *const *tangents,
                            wg_tensor **output_tangents) {
    if (square_jvp(call, tangents, output_tangents) < 0)
        return -1;
    output_tangents[0] = wg_clone(output_tangents[0]);
    for (int64_t i = 64; i < count_of(output_tangents[0]); i++)
        put_at(output_tangents[0], i, 0);
    return 0;
}

TEST(a_jvp_that_disagrees_with_the_vjp_is_caught) {
    wg_op op = square_op(square_vjp);
    op.jvp = jvp_of_half;
    assert_blamed(op, WG_DIAGNOSIS_JVP, "jvp");
    op.jvp = jvp_a_little_off;
    assert_blamed(op, WG_DIAGNOSIS_JVP, "jvp");
    op.jvp = jvp_without_tail;
    assert_blamed(op, WG_DIAGNOSIS_JVP, "jvp");
}

/* ---- State ---- */

/* Knows an input by its address. */
static const void *known;
static double known_values[64];

static int forward_with_a_cache(wg_call *call) {
    int64_t count = count_of(call->inputs[0]);
    bool fits = count <= (int64_t)WG_COUNT(known_values);
    if (fits && known == wg_tensor_data(call->inputs[0]))
        memcpy(wg_tensor_data(call->outputs[0]), known_values,
               (size_t)count * wg_dtype_size(wg_tensor_dtype(call->outputs[0])));
    else if (square_forward(call) < 0)
        return -1;
    if (fits) {
        known = wg_tensor_data(call->inputs[0]);
        memcpy(known_values, wg_tensor_data(call->outputs[0]),
               (size_t)count * wg_dtype_size(wg_tensor_dtype(call->outputs[0])));
    }
    return 0;
}

TEST(a_forward_that_remembers_an_earlier_run_is_caught) {
    wg_op op = square_op(square_vjp);
    op.forward = forward_with_a_cache;
    assert_blamed(op, WG_DIAGNOSIS_REMEMBERED, "forward");
}

/* Seed 1 has a 0 in x, which is repeated when the sample is grown. */
TEST(equal_elements_of_a_long_quantile_are_no_false_alarm) {
    const wg_gradcheck_options options = {.seed = 1, .order = 1};
    assert_passes(*wg_op_find("quantile"), &options);
    assert_passes(*wg_op_find("nanquantile"), &options);
}

/* These seeds grow matrices of 3 x 4099, whose pseudoinverse by LAPACK in f32 has errors of 6e-3.
 */
TEST(the_pseudoinverse_of_a_long_matrix_is_right_in_f32) {
    for (uint64_t seed = 6; seed <= 12; seed += 6)
        assert_passes(*wg_op_find("pinv"), &(wg_gradcheck_options){.seed = seed, .order = 1});
}

/* Of ops whose records share functions. */
TEST(a_copy_of_a_record_computes_what_the_record_does) {
    static const char *const names[] = {"conv2d",
                                        "conv_transpose2d",
                                        "conv2d_weight",
                                        "avg_pool2d",
                                        "avg_pool2d_input",
                                        "fft",
                                        "rfft",
                                        "irfft",
                                        "solve_triangular",
                                        "solve",
                                        "lstm",
                                        "gru",
                                        "tril",
                                        "triu",
                                        "nanquantile",
                                        "quantile"};
    wg_generator generator = {.seed = 1};
    for (size_t i = 0; i < WG_COUNT(names); i++) {
        const wg_op *op = wg_op_find(names[i]);
        wg_op copy = *op;
        wg_sample sample = {0};
        wg_tensor *expected[WG_MAX_OUTPUTS], *found[WG_MAX_OUTPUTS];
        copy.name = "copy";
        ck_assert_int_eq(op->sample(0, &generator, &sample), 1);
        ck_assert_int_eq(wg_apply(op, sample.input_count, sample.inputs, sample.options, expected),
                         0);
        ck_assert_int_eq(wg_apply(&copy, sample.input_count, sample.inputs, sample.options, found),
                         0);
        assert_close(found[0], expected[0], 0, 0);
        assert_passes(copy, &(wg_gradcheck_options){.seed = 1, .order = 1});
    }
}
