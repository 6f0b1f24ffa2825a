/* The gradient checker passes correct ops, and says where and how others are wrong. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "tensor/ops.h"
#include "tests/gradcheck/sound.h"
#include "tests/support/tensors.h"
#include "gradcheck/check.h"
#include "gradcheck/internal.h"

/* ---- Right ops ---- */

TEST(right_ops_pass) {
    static const wg_gradcheck_options all = {.order = 2, .forward = true};
    const wg_op ops[] = {square_op(square_vjp), flip_op(flip_vjp), scale_op(scale_vjp),
                         powers_op(powers_vjp)};
    for (size_t i = 0; i < WG_COUNT(ops); i++) {
        wg_gradcheck_report report = assert_passes(ops[i], &all);
        ck_assert_int_eq(report.order, 2);
        ck_assert(report.forward && report.variants > 8 && report.kinks == 0);
    }
}

TEST(coordinates_are_counted_over_samples_and_orders) {
    wg_gradcheck_options options = samples_alone;
    options.order = 1;
    ck_assert_int_eq(assert_passes(square_op(square_vjp), &options).compared, 6 + 9);
    ck_assert_int_eq(assert_passes(scale_op(scale_vjp), &options).compared, 6 + 2);
    options.order = 2; /* order 1, then inputs and cotangents */
    ck_assert_int_eq(assert_passes(square_op(square_vjp), &options).compared, 3 * (6 + 9));
    ck_assert_int_eq(assert_passes(scale_op(scale_vjp), &options).compared, 8 + 8 + 6);
}

TEST(right_ops_pass_in_fast_mode) {
    wg_gradcheck_report report = assert_passes(scale_op(scale_vjp), &fast);
    ck_assert_int_gt(report.compared, 0);
    assert_passes(powers_op(powers_vjp), &fast);
}

TEST(right_ops_pass_in_f32) {
    static const wg_gradcheck_options f32 = {.f32 = true, .order = 2, .forward = true};
    ck_assert_int_gt(assert_passes(square_op(square_vjp), &f32).compared, 15);
    assert_passes(scale_op(scale_vjp), &f32);
}

/* ---- Functions ---- */

static wg_tensor *leaf(int rows, int columns) {
    return leaf_of(normal(7, WG_F64, WG_DIMS(rows, columns)));
}

/* sum of tanh(a) b over rows, and a itself times 3 */
static int two_outputs(int input_count, wg_tensor *const *inputs, int output_count,
                       wg_tensor **outputs, void *context) {
    (void)input_count, (void)output_count, (void)context;
    outputs[0] = wg_sum(wg_mul(wg_tanh(inputs[0]), inputs[1]), WG_DIMS(0), false);
    outputs[1] = wg_mul_scalar(inputs[0], 3);
    return 0;
}

TEST(a_function_of_two_inputs_and_outputs_passes) {
    wg_tensor *inputs[] = {leaf(2, 3), leaf_of(wg_mul_scalar(wg_detach(leaf(2, 3)), 2))};
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck(two_outputs, NULL, 2, inputs, 2, &second_order, &report), 0);
    ck_assert_int_eq(report.compared, 12 + (12 + 3 + 6));
    ck_assert(report.largest_error < 0.01);
}

TEST(only_inputs_that_want_a_gradient_are_moved) {
    wg_tensor *inputs[] = {leaf(2, 3), wg_detach(leaf(2, 3))};
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck(two_outputs, NULL, 2, inputs, 2, NULL, &report), 0);
    ck_assert_int_eq(report.compared, 6);
}

TEST(nothing_compared_is_a_failure) {
    wg_tensor *unwanted[] = {wg_detach(leaf(2, 3)), wg_detach(leaf(2, 3))};
    wg_gradcheck_report report;
    failed(wg_gradcheck(two_outputs, NULL, 2, unwanted, 2, NULL, &report), GRADIENT,
           "nothing was compared");
    wg_tensor *empty[] = {leaf(0, 3), leaf(0, 3)};
    ck_assert_int_eq(wg_gradcheck(two_outputs, NULL, 2, empty, 2, NULL, &report), -1);
    ck_assert(!report.passed);
    assert_error(WG_ERROR_GRADIENT, "nothing was compared");
}

/* x^2, whose gradient is off by 1 at (1, 2) */
static int spoilt_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    square_vjp(call, cotangents, gradients);
    gradients[0] = wg_clone(gradients[0]);
    ((double *)wg_tensor_data(gradients[0]))[1 * 3 + 2] += 1;
    return 0;
}

FUNCTION(sum_of_squares, wg_add(wg_mul(x, x), wg_apply_one(context, 1, &inputs[1], NULL)))

TEST(the_report_names_the_coordinate_and_both_values) {
    wg_op op = square_op(spoilt_vjp);
    wg_tensor *inputs[] = {leaf(2, 3), leaf(2, 3)};
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck(sum_of_squares, &op, 2, inputs, 1, NULL, &report), -1);
    ck_assert_int_eq(report.at_order, 1);
    ck_assert_int_eq(report.input, 1);
    ck_assert_int_eq(report.coordinate.ndim, 2);
    ck_assert(report.coordinate.at[0] == 1 && report.coordinate.at[1] == 2);
    ck_assert_double_eq_tol(report.analytic - report.numeric, 1, 1e-6);
    ck_assert_double_eq_tol(report.largest_absolute_error, 1, 1e-6);
    char values[128];
    snprintf(values, sizeof(values), "input 1 at (1, 2): numeric %.9g, analytic %.9g",
             report.numeric, report.analytic);
    assert_error(WG_ERROR_GRADIENT, values);
}

TEST(inputs_are_left_as_they_were) {
    wg_op op = square_op(spoilt_vjp);
    wg_tensor *inputs[] = {leaf(2, 3), leaf(2, 3)};
    double before[6], after[6];
    wg_to_array(inputs[1], before);
    ck_assert_int_eq(wg_gradcheck(sum_of_squares, &op, 2, inputs, 1, NULL, NULL), -1);
    wg_error_clear();
    wg_to_array(inputs[1], after);
    ck_assert(memcmp(before, after, sizeof(before)) == 0);
    ck_assert_ptr_null(wg_gradient(inputs[0]));
}

TEST(views_are_moved_where_they_lie) {
    wg_tensor *base = wg_detach(leaf(3, 4));
    wg_tensor *x = wg_slice(wg_transpose(base, 0, 1), 0, WG_END, WG_END, -2);
    wg_tensor *inputs[] = {leaf_of(x), leaf(2, 3)};
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck(two_outputs, NULL, 2, inputs, 2, NULL, &report), 0);
    ck_assert_int_eq(report.compared, 12);
}

TEST(an_input_with_two_elements_at_one_address_is_refused) {
    wg_tensor *const views[] = {wg_expand(wg_detach(leaf(1, 3)), WG_DIMS(2, 3)),
                                wg_unfold(wg_select(wg_detach(leaf(1, 4)), 0, 0), 0, 3, 1)};
    for (size_t i = 0; i < WG_COUNT(views); i++) {
        wg_tensor *inputs[] = {leaf(2, 3), leaf_of(views[i])};
        failed(wg_gradcheck(two_outputs, NULL, 2, inputs, 2, NULL, NULL), GRADIENT,
               "elements of input 1 share an address");
    }
}

/* A function with a parameter that is not among its arguments, as a module has. */
FUNCTION(closure, wg_exp(context))

TEST(a_parameter_behind_the_function_is_checked) {
    wg_tensor *parameter = leaf(2, 2);
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck(closure, parameter, 1, &parameter, 1, &second_order, &report), 0);
    ck_assert_int_eq(report.compared, 12);
}

FUNCTION(never_twice_the_same, wg_mul_scalar(x, ++*(int *)context))

TEST(a_function_with_two_results_for_one_input_is_refused) {
    int calls = 0;
    wg_tensor *x = leaf(2, 2);
    failed(wg_gradcheck(never_twice_the_same, &calls, 1, &x, 1, NULL, NULL), GRADIENT,
           "two results");
}

FUNCTION(detached, wg_exp(wg_detach(x)))

TEST(an_output_that_hides_its_gradient_is_caught) {
    wg_tensor *x = leaf(2, 2);
    failed(wg_gradcheck(detached, NULL, 1, &x, 1, NULL, NULL), GRADIENT, "analytic 0");
}

FUNCTION(misshapen, wg_add(x, inputs[1]))

TEST(a_function_that_fails_gives_its_reason) {
    wg_tensor *inputs[] = {leaf(2, 3), leaf(4, 5)};
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck(misshapen, NULL, 2, inputs, 1, NULL, &report), -1);
    ck_assert(!report.passed);
    ck_assert_ptr_nonnull(strstr(report.message, "the function failed: add: "));
    assert_error(WG_ERROR_GRADIENT, report.message);
}

TEST(a_pending_error_is_left_alone) {
    wg_op op = square_op(square_vjp);
    wg_tensor *inputs[] = {leaf(2, 3), leaf(2, 3)};
    wg_fail(WG_ERROR_STATE, "test", "the first error");
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck(two_outputs, NULL, 2, inputs, 2, NULL, &report), -1);
    ck_assert(!report.passed);
    ck_assert_int_eq(wg_gradcheck_op(&op, NULL, &report), -1);
    ck_assert(!report.passed);
    assert_error(WG_ERROR_STATE, "the first error");
}

TEST(an_order_beyond_two_is_refused) {
    wg_tensor *inputs[] = {leaf(2, 3), leaf(2, 3)};
    wg_gradcheck_options third = {.order = 3};
    failed(wg_gradcheck(two_outputs, NULL, 2, inputs, 2, &third, NULL), GRADIENT, "order 3");
}

TEST(the_check_works_while_recording_is_off) {
    wg_tensor *inputs[] = {leaf(2, 3), leaf(2, 3)};
    wg_set_grad_enabled(false);
    ck_assert_int_eq(wg_gradcheck(two_outputs, NULL, 2, inputs, 2, NULL, NULL), 0);
    ck_assert(!wg_grad_enabled());
    wg_set_grad_enabled(true);
}

/* ---- Broken parts: tests/gradcheck/broken.c has them all ---- */

static int vjp_null(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call, (void)cotangents, (void)gradients;
    return 0;
}

VJP(vjp_of_half, wg_mul(x, g))
VJP(vjp_wrong, wg_mul(wg_exp(x), g))

/* Reads memory as if it were contiguous. */
static int forward_without_strides(wg_call *call) {
    const double *x = wg_tensor_data(call->inputs[0]);
    double *y = wg_tensor_data(call->outputs[0]);
    for (int64_t i = 0; i < wg_tensor_count(call->outputs[0]); i++)
        y[i] = x[i] * x[i];
    return 0;
}

FORWARD(random_forward,
        wg_add(x, wg_randn(NULL, WG_F64, call->input_specs[0].ndim, call->input_specs[0].shape)))

TEST(a_function_has_no_constants_but_its_ops_have) {
    wg_op op = square_op(vjp_of_half);
    wg_tensor *inputs[] = {leaf(2, 3), leaf(2, 3)};
    failed(wg_gradcheck(sum_of_squares, &op, 2, inputs, 1, NULL, NULL), GRADIENT,
           "Look at the vjp of each op in it, which wg_gradcheck_op");
}

/* ---- The second order ---- */

/* Correct, but not differentiable again: the path through x is cut. */
VJP(vjp_cut, wg_mul(wg_mul_scalar(wg_detach(x), 2), g))

TEST(a_vjp_that_cuts_the_graph_is_caught_by_default) {
    assert_caught(square_op(vjp_cut), WG_DIAGNOSIS_CUT, "order 2: ");
    assert_passes(square_op(vjp_cut), &(wg_gradcheck_options){.order = 1});
    wg_gradcheck_report report =
        assert_caught_with(square_op(vjp_cut), &second_order, WG_DIAGNOSIS_CUT, "order 2: ");
    ck_assert_int_eq(report.at_order, 2);
    ck_assert_int_eq(report.input, 0);
    ck_assert(report.analytic == 0 && fabs(report.numeric) > 1e-3);
}

static int vjp_with_two_ways(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    return call->create_graph ? vjp_of_half(call, cotangents, gradients)
                              : square_vjp(call, cotangents, gradients);
}

TEST(a_recorded_backward_with_another_gradient_is_named) {
    assert_passes(square_op(vjp_with_two_ways), &(wg_gradcheck_options){.order = 1});
    assert_caught_with(square_op(vjp_with_two_ways), &second_order, WG_DIAGNOSIS_RECORDED,
                       "with create_graph");
}

/* ---- Forward mode ---- */

TEST(a_wrong_jvp_is_caught_when_forward_mode_is_asked) {
    static const wg_gradcheck_options forward = {.forward = true};
    wg_op op = square_op(square_vjp);
    op.jvp = square_jvp;
    ck_assert(assert_passes(op, &forward).forward);
    op.jvp = vjp_of_half;
    assert_caught_with(op, &forward, WG_DIAGNOSIS_JVP, "forward = 0.5 * numeric");
}

/* ---- Kinks, jumps and zeros ---- */

/* max(x, 0) at points that include 0, where any derivative from 0 to 1 is right. */
static double slope_at_zero;

FORWARD(ramp_forward, wg_relu(x))

static int ramp_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *x = call->inputs[0], *zero = wg_zeros_like(x);
    wg_tensor *slope = wg_where(wg_gt(x, zero), wg_ones_like(x), zero);
    slope = wg_where(wg_eq(x, zero), wg_mul_scalar(wg_ones_like(x), slope_at_zero), slope);
    gradients[0] = wg_mul(slope, cotangents[0]);
    return status_of(gradients[0]);
}

SAMPLES(ramp_samples, 0, wg_arange(WG_F64, -2, 3, 1))

static wg_op ramp_op(double slope) {
    wg_op op = square_op(ramp_vjp);
    slope_at_zero = slope;
    op.name = "ramp";
    op.forward = ramp_forward;
    op.sample = ramp_samples;
    return op;
}

TEST(at_a_kink_any_slope_between_is_a_subgradient) {
    const double slopes[] = {0, 0.3, 0.5, 1};
    for (size_t i = 0; i < WG_COUNT(slopes); i++)
        ck_assert_int_eq(assert_passes(ramp_op(slopes[i]), &samples_alone).kinks, 1);
    ck_assert_int_eq(
        assert_passes(ramp_op(0.3), &(wg_gradcheck_options){.fast = true, .no_variants = true})
            .kinks,
        1);
    ck_assert_int_eq(assert_passes(ramp_op(0.3), &second_order).order, 1);
}

TEST(at_a_kink_a_slope_beyond_is_wrong) {
    assert_caught(ramp_op(1.5), WG_DIAGNOSIS_KINK, "the slopes to its sides are 0 and 1");
    assert_caught(ramp_op(-0.1), WG_DIAGNOSIS_KINK, "the slopes to its sides are 0 and 1");
}

/* A steep curve is not a kink. */
FORWARD(steep_forward, wg_mul_scalar(wg_mul(wg_mul(x, x), x), 1e6))
VJP(steep_vjp, wg_mul(wg_mul_scalar(wg_mul(x, x), 3e6), g))
SAMPLES(near_zero_samples, 0, wg_full(WG_F64, WG_DIMS(2, 2), 1e-3))

TEST(a_steep_curve_is_no_kink) {
    wg_op op = square_op(steep_vjp);
    op.forward = steep_forward;
    op.sample = near_zero_samples;
    ck_assert_int_eq(assert_passes(op, &samples_alone).kinks, 0);
}

FORWARD(step_forward, wg_add(x, wg_ge(x, wg_zeros_like(x))))
VJP(step_vjp, g)

TEST(a_sample_at_a_jump_is_refused) {
    wg_op op = ramp_op(0);
    op.forward = step_forward;
    op.vjp = step_vjp;
    assert_caught(op, WG_DIAGNOSIS_JUMP, "move the sample away");
}

static int constant_forward(wg_call *call) {
    return wg_fill_(call->outputs[0], 3);
}

TEST(gradients_that_are_all_zero_need_a_reason) {
    wg_op op = square_op(vjp_null);
    op.forward = constant_forward;
    assert_caught(op, WG_DIAGNOSIS_ALL_ZERO, "no reason is declared");
    op.exceptions = &(wg_op_exceptions){.zero_gradient = "it is a constant"};
    assert_passes(op, NULL);
    op.exceptions = NULL;
    assert_passes(op, &(wg_gradcheck_options){.zero_gradient = "it is a constant"});
    op = square_op(square_vjp);
    op.exceptions = &(wg_op_exceptions){.zero_gradient = "or so its author thinks"};
    assert_caught(op, WG_DIAGNOSIS_NOT_ZERO, "or so its author thinks");
}

/* ---- Ops that cannot be checked ---- */

TEST(an_op_that_says_why_it_has_no_gradient_passes_uncompared) {
    wg_op op = square_op(NULL);
    op.differentiable = 0;
    op.no_gradient = "because it is a test";
    wg_gradcheck_report report = assert_passes(op, NULL);
    ck_assert(report.compared == 0 && report.order == 0 && report.variants > 8);
    ck_assert_str_eq(report.message, "no gradient: because it is a test");
    op.forward = forward_without_strides;
    assert_caught(op, WG_DIAGNOSIS_LAYOUT, "contiguous copy");
    op.forward = random_forward;
    assert_caught(op, WG_DIAGNOSIS_NONDETERMINISTIC, "the function run twice");
}

static int failing_forward(wg_call *call) {
    return wg_fail(WG_ERROR_ARGUMENT, call->op->name, "cannot");
}

TEST(a_forward_pass_that_fails_is_caught) {
    wg_op op = square_op(square_vjp);
    op.forward = failing_forward;
    assert_caught(op, WG_DIAGNOSIS_FAILED, "sample 0: the function failed: square: cannot");
    op.differentiable = 0;
    op.no_gradient = "because it is a test";
    op.vjp = NULL;
    assert_caught(op, WG_DIAGNOSIS_FAILED, "the function failed: square: cannot");
}

SAMPLES(f32_samples, 0, wg_randn(generator, WG_F32, WG_DIMS(3)))

static int no_samples(int index, wg_generator *generator, wg_sample *sample) {
    (void)index, (void)generator, (void)sample;
    return 0;
}

static int failing_samples(int index, wg_generator *generator, wg_sample *sample) {
    (void)index, (void)generator, (void)sample;
    return wg_fail(WG_ERROR_ARGUMENT, "sampler", "out of order");
}

TEST(an_op_that_cannot_be_checked_is_refused) {
    wg_op op = square_op(square_vjp);
    op.sample = NULL;
    assert_caught(op, WG_DIAGNOSIS_FAILED, "it has no samples");
    op.sample = no_samples;
    assert_caught(op, WG_DIAGNOSIS_FAILED, "it has no samples");
    op.sample = failing_samples;
    assert_caught(op, WG_DIAGNOSIS_FAILED, "sample 0: cannot be made: sampler: out of order");
    op.sample = f32_samples;
    assert_caught(op, WG_DIAGNOSIS_NOTHING_COMPARED, "nothing was compared");
    op = square_op(NULL);
    assert_caught(op, WG_DIAGNOSIS_FAILED, "neither vjp nor a reason");
    op.differentiable = 0;
    assert_caught(op, WG_DIAGNOSIS_FAILED, "neither vjp nor a reason");
}

/* ---- Lack of memory ---- */

static int small_samples(int index, wg_generator *generator, wg_sample *sample) {
    sample->input_count = 2;
    sample->inputs[0] = wg_randn(generator, WG_F64, WG_DIMS(2, 1));
    sample->inputs[1] = wg_randn(generator, WG_F64, WG_DIMS(1));
    return index < 1 ? sample->inputs[1] ? 1 : -1 : 0;
}

TEST(lack_of_memory_anywhere_is_an_error_and_no_leak) {
    static const wg_gradcheck_options all = {.order = 2, .forward = true};
    wg_op op = scale_op(scale_vjp);
    op.sample = small_samples;
    wg_gradcheck_op(&op, &all, NULL);
    assert_no_error();
    int64_t tensors = wg_tensors_alive(), blocks = wg_alloc_get_stats().live_blocks;
    int64_t failures = 0;
    for (int64_t n = 0, done = 0; !done; n += 1 + n / 50) {
        wg__alloc_fail_after(n);
        done = wg_gradcheck_op(&op, &all, NULL) == 0;
        wg__alloc_fail_after(-1);
        if (!done)
            assert_error(WG_ERROR_GRADIENT, "");
        assert_no_error();
        failures += !done;
        ck_assert_msg(wg_tensors_alive() == tensors, "tensors leaked, n = %lld", (long long)n);
        ck_assert_msg(wg_alloc_get_stats().live_blocks == blocks, "memory leaked, n = %lld",
                      (long long)n);
    }
    ck_assert_int_gt(failures, 100);
}

/* ---- Replaying ---- */

TEST(the_same_seed_gives_the_same_report) {
    wg_op op = square_op(vjp_wrong);
    wg_gradcheck_options options = {.seed = 17};
    wg_gradcheck_report one, again, other;
    wg_gradcheck_op(&op, &options, &one);
    wg_error_clear();
    wg_gradcheck_op(&op, &options, &again);
    wg_error_clear();
    options.seed = 18;
    wg_gradcheck_op(&op, &options, &other);
    wg_error_clear();
    ck_assert_str_eq(one.message, again.message);
    ck_assert_ptr_nonnull(strstr(one.message, "Replay with seed 17"));
    ck_assert(one.seed == 17 && one.numeric == again.numeric && one.numeric != other.numeric);
}

TEST(every_diagnosis_has_words) {
    for (int d = 0; d <= WG_DIAGNOSIS_ALIVE; d++)
        ck_assert(*wg_diagnosis_name(d) && *wg__diagnosis_words(d));
    ck_assert_str_eq(wg_diagnosis_name(WG_DIAGNOSIS_STALE), "STALE");
}
