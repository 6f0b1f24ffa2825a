/* The gradient checker catches what is wrong, passes what is right, and says where. */
#include "autograd/gradcheck.h"

#include <math.h>
#include <string.h>

#include "tensor/ops.h"
#include "tests/testing.h"

/* ---- Ops under check: y = x^2 and its company, each right or wrong in one way ---- */

static int same_as_first(wg_call *call) {
    call->output_specs[0] = call->input_specs[0];
    return 0;
}

static int square_forward(wg_call *call) {
    return wg_copy_(call->outputs[0], wg_mul(call->inputs[0], call->inputs[0]));
}

static int square_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(wg_mul_scalar(call->inputs[0], 2), cotangents[0]);
    return 0;
}

static int square_vjp_half(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(call->inputs[0], cotangents[0]);
    return 0;
}

static int square_vjp_negative(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(wg_mul_scalar(call->inputs[0], -2), cotangents[0]);
    return 0;
}

static int square_vjp_without_cotangent(wg_call *call, wg_tensor *const *cotangents,
                                        wg_tensor **gradients) {
    (void)cotangents;
    gradients[0] = wg_mul_scalar(call->inputs[0], 2);
    return 0;
}

static int square_vjp_nan(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)cotangents;
    gradients[0] = wg_mul_scalar(call->inputs[0], NAN);
    return 0;
}

/* Right, but not to be differentiated again: the path through x is cut. */
static int square_vjp_cut(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(wg_mul_scalar(wg_detach(call->inputs[0]), 2), cotangents[0]);
    return 0;
}

static int zero_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call, (void)cotangents, (void)gradients;
    return 0;
}

static int flip_forward(wg_call *call) {
    return wg_copy_(call->outputs[0], wg_transpose(call->inputs[0], 0, 1));
}

static int flip_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call;
    gradients[0] = wg_transpose(cotangents[0], 0, 1);
    return 0;
}

static int flip_vjp_untransposed(wg_call *call, wg_tensor *const *cotangents,
                                 wg_tensor **gradients) {
    (void)call;
    gradients[0] = cotangents[0];
    return 0;
}

static int add_row_forward(wg_call *call) {
    return wg_copy_(call->outputs[0], wg_add(call->inputs[0], call->inputs[1]));
}

static int add_row_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call;
    gradients[0] = cotangents[0];
    gradients[1] = wg_sum(cotangents[0], WG_DIMS(0), false);
    return 0;
}

static int add_row_vjp_unsummed(wg_call *call, wg_tensor *const *cotangents,
                                wg_tensor **gradients) {
    (void)call;
    gradients[0] = cotangents[0];
    gradients[1] = cotangents[0];
    return 0;
}

static int add_row_vjp_one_row(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call;
    gradients[0] = cotangents[0];
    gradients[1] = wg_select(cotangents[0], 0, 0);
    return 0;
}

/* a - b with its gradients exchanged. */
static int sub_forward(wg_call *call) {
    return wg_copy_(call->outputs[0], wg_sub(call->inputs[0], call->inputs[1]));
}

static int sub_vjp_exchanged(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call;
    gradients[0] = wg_neg(cotangents[0]);
    gradients[1] = cotangents[0];
    return 0;
}

static int square_samples(int index, wg_generator *generator, wg_sample *sample) {
    sample->input_count = 1;
    sample->inputs[0] = wg_randn(generator, WG_F64, WG_DIMS(3, 2 + index));
    return index < 2;
}

static int matrix_samples(int index, wg_generator *generator, wg_sample *sample) {
    sample->input_count = 1;
    sample->inputs[0] = wg_randn(generator, WG_F64, WG_DIMS(3, 3));
    return index < 1;
}

static int row_samples(int index, wg_generator *generator, wg_sample *sample) {
    sample->input_count = 2;
    sample->inputs[0] = wg_randn(generator, WG_F64, WG_DIMS(3, 2));
    sample->inputs[1] = wg_randn(generator, WG_F64, WG_DIMS(2));
    return index < 1;
}

static int pair_samples(int index, wg_generator *generator, wg_sample *sample) {
    sample->input_count = 2;
    sample->inputs[0] = wg_randn(generator, WG_F64, WG_DIMS(4));
    sample->inputs[1] = wg_randn(generator, WG_F64, WG_DIMS(4));
    return index < 1;
}

static int f32_samples(int index, wg_generator *generator, wg_sample *sample) {
    sample->input_count = 1;
    sample->inputs[0] = wg_randn(generator, WG_F32, WG_DIMS(3));
    return index < 1;
}

static int no_samples(int index, wg_generator *generator, wg_sample *sample) {
    (void)index, (void)generator, (void)sample;
    return 0;
}

static int failing_samples(int index, wg_generator *generator, wg_sample *sample) {
    (void)index, (void)generator, (void)sample;
    return wg_fail(WG_ERROR_ARGUMENT, "sampler", "out of order");
}

static wg_op square_op(int (*vjp)(wg_call *, wg_tensor *const *, wg_tensor **)) {
    return (wg_op){.name = "square",
                   .doc = "x^2",
                   .min_inputs = 1,
                   .max_inputs = 1,
                   .output_count = 1,
                   .saves_inputs = 1,
                   .differentiable = 1,
                   .infer = same_as_first,
                   .forward = square_forward,
                   .vjp = vjp,
                   .sample = square_samples};
}

static wg_op flip_op(int (*vjp)(wg_call *, wg_tensor *const *, wg_tensor **)) {
    wg_op op = square_op(vjp);
    op.name = "flip";
    op.forward = flip_forward;
    op.sample = matrix_samples;
    return op;
}

static wg_op add_row_op(int (*vjp)(wg_call *, wg_tensor *const *, wg_tensor **)) {
    wg_op op = square_op(vjp);
    op.name = "add_row";
    op.min_inputs = op.max_inputs = 2;
    op.differentiable = 3;
    op.forward = add_row_forward;
    op.sample = row_samples;
    return op;
}

static const wg_gradcheck_options second_order = {.order = 2};

static void assert_passes(const wg_op *op, int order, int64_t compared) {
    wg_gradcheck_report report;
    int result = wg_gradcheck_op(op, &(wg_gradcheck_options){.order = order}, &report);
    ck_assert_msg(result == 0 && report.passed, "%s", report.message);
    ck_assert_int_eq(report.compared, compared);
    assert_no_error();
}

static void assert_caught(wg_op op, const char *part) {
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck_op(&op, NULL, &report), -1);
    ck_assert(!report.passed);
    ck_assert_msg(strstr(report.message, part), "\"%s\" does not say \"%s\"", report.message, part);
    assert_error(WG_ERROR_GRADIENT, part);
}

/* ---- Ops ---- */

START_TEST(right_ops_pass) {
    wg_op square = square_op(square_vjp), flip = flip_op(flip_vjp), row = add_row_op(add_row_vjp);
    assert_passes(&square, 1, 6 + 9);
    assert_passes(&flip, 1, 9);
    assert_passes(&row, 1, 6 + 2);
}
END_TEST

START_TEST(right_ops_pass_at_second_order) {
    wg_op square = square_op(square_vjp), flip = flip_op(flip_vjp), row = add_row_op(add_row_vjp);
    assert_passes(&square, 2, 3 * (6 + 9)); /* order 1, then inputs and weights */
    assert_passes(&flip, 2, 3 * 9);
    assert_passes(&row, 2, 8 + 8 + 6);
}
END_TEST

START_TEST(a_wrong_factor_is_caught) {
    assert_caught(square_op(square_vjp_half), "square, sample 0: order 1, input 0 at (");
}
END_TEST

START_TEST(a_wrong_sign_is_caught) {
    assert_caught(square_op(square_vjp_negative), "square, sample 0: order 1, input 0");
}
END_TEST

START_TEST(a_cotangent_left_out_is_caught) {
    assert_caught(square_op(square_vjp_without_cotangent), "order 1, input 0");
}
END_TEST

START_TEST(a_gradient_of_nan_is_caught) {
    assert_caught(square_op(square_vjp_nan), "analytic nan");
}
END_TEST

START_TEST(a_gradient_left_out_is_caught) {
    assert_caught(square_op(zero_vjp), "analytic 0");
}
END_TEST

START_TEST(a_transposed_gradient_is_caught) {
    assert_caught(flip_op(flip_vjp_untransposed), "flip, sample 0: order 1, input 0");
}
END_TEST

START_TEST(an_unsummed_broadcast_is_caught) {
    assert_caught(add_row_op(add_row_vjp_unsummed), "(3, 2) f64");
}
END_TEST

START_TEST(a_broadcast_summed_over_one_row_is_caught) {
    assert_caught(add_row_op(add_row_vjp_one_row), "order 1, input 1 at (");
}
END_TEST

START_TEST(exchanged_gradients_are_caught) {
    wg_op op = add_row_op(sub_vjp_exchanged);
    op.forward = sub_forward;
    op.sample = pair_samples;
    assert_caught(op, "order 1, input ");
}
END_TEST

START_TEST(a_vjp_that_cuts_the_graph_is_caught_at_second_order_only) {
    wg_op op = square_op(square_vjp_cut);
    assert_passes(&op, 1, 6 + 9);
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck_op(&op, &second_order, &report), -1);
    ck_assert_int_eq(report.order, 2);
    ck_assert_int_eq(report.input, 0);
    ck_assert(report.analytic == 0 && fabs(report.numeric) > 1e-3);
    assert_error(WG_ERROR_GRADIENT, "square, sample 0: order 2, input 0");
}
END_TEST

START_TEST(an_op_that_says_why_it_has_no_gradient_passes_uncompared) {
    wg_op op = square_op(NULL);
    op.differentiable = 0;
    op.no_gradient = "because it is a test";
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck_op(&op, NULL, &report), 0);
    ck_assert(report.passed && report.compared == 0);
    ck_assert_str_eq(report.message, "no gradient: because it is a test");
}
END_TEST

static int failing_forward(wg_call *call) {
    return wg_fail(WG_ERROR_ARGUMENT, call->op->name, "cannot");
}

START_TEST(a_forward_pass_that_fails_is_caught) {
    wg_op op = square_op(square_vjp);
    op.forward = failing_forward;
    assert_caught(op, "the function failed: square: cannot");
    op.differentiable = 0;
    op.no_gradient = "because it is a test";
    assert_caught(op, "the forward pass failed: square: cannot");
}
END_TEST

START_TEST(an_op_that_cannot_be_checked_is_refused) {
    wg_op op = square_op(square_vjp);
    op.sample = NULL;
    assert_caught(op, "has no samples");
    op.sample = no_samples;
    assert_caught(op, "has no samples");
    op.sample = failing_samples;
    assert_caught(op, "sample 0: cannot be made: sampler: out of order");
    op.sample = f32_samples;
    assert_caught(op, "nothing was compared");
    op = square_op(NULL);
    assert_caught(op, "neither vjp nor a reason");
    op.differentiable = 0;
    assert_caught(op, "neither vjp nor a reason");
}
END_TEST

/* ---- Functions ---- */

static wg_tensor *leaf(int rows, int columns) {
    wg_generator generator = {.seed = 7};
    wg_tensor *x = wg_randn(&generator, WG_F64, WG_DIMS(rows, columns));
    wg_set_requires_grad(x, true);
    return x;
}

/* sum of tanh(a) b over rows, and a itself times 3 */
static int two_outputs(int input_count, wg_tensor *const *inputs, int output_count,
                       wg_tensor **outputs, void *context) {
    (void)input_count, (void)output_count, (void)context;
    outputs[0] = wg_sum(wg_mul(wg_tanh(inputs[0]), inputs[1]), WG_DIMS(0), false);
    outputs[1] = wg_mul_scalar(inputs[0], 3);
    return 0;
}

START_TEST(a_function_of_two_inputs_and_outputs_passes) {
    wg_tensor *inputs[] = {leaf(2, 3), wg_mul_scalar(wg_detach(leaf(2, 3)), 2)};
    wg_set_requires_grad(inputs[1], true);
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck(two_outputs, NULL, 2, inputs, 2, &second_order, &report), 0);
    ck_assert_int_eq(report.compared, 12 + (12 + 3 + 6));
    ck_assert(report.largest_error < 0.01);
}
END_TEST

START_TEST(only_inputs_that_want_a_gradient_are_moved) {
    wg_tensor *inputs[] = {leaf(2, 3), wg_detach(leaf(2, 3))};
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck(two_outputs, NULL, 2, inputs, 2, NULL, &report), 0);
    ck_assert_int_eq(report.compared, 6);
}
END_TEST

START_TEST(nothing_compared_is_a_failure) {
    wg_tensor *unwanted[] = {wg_detach(leaf(2, 3)), wg_detach(leaf(2, 3))};
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck(two_outputs, NULL, 2, unwanted, 2, NULL, &report), -1);
    assert_error(WG_ERROR_GRADIENT, "nothing was compared");
    wg_tensor *empty[] = {leaf(0, 3), leaf(0, 3)};
    ck_assert_int_eq(wg_gradcheck(two_outputs, NULL, 2, empty, 2, NULL, &report), -1);
    ck_assert(!report.passed);
    assert_error(WG_ERROR_GRADIENT, "nothing was compared");
}
END_TEST

/* x^2, whose gradient is off by 1 at (1, 2) */
static int spoilt_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    square_vjp(call, cotangents, gradients);
    gradients[0] = wg_clone(gradients[0]);
    ((double *)wg_tensor_data(gradients[0]))[1 * 3 + 2] += 1;
    return 0;
}

static int sum_of_squares(int input_count, wg_tensor *const *inputs, int output_count,
                          wg_tensor **outputs, void *context) {
    (void)input_count, (void)output_count;
    wg_tensor *right = wg_mul(inputs[0], inputs[0]);
    outputs[0] = wg_add(right, wg_apply_one(context, 1, &inputs[1], NULL));
    return 0;
}

START_TEST(the_report_names_the_coordinate_and_both_values) {
    wg_op op = square_op(spoilt_vjp);
    wg_tensor *inputs[] = {leaf(2, 3), leaf(2, 3)};
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck(sum_of_squares, &op, 2, inputs, 1, NULL, &report), -1);
    ck_assert_int_eq(report.order, 1);
    ck_assert_int_eq(report.input, 1);
    ck_assert_int_eq(report.ndim, 2);
    ck_assert(report.coordinate[0] == 1 && report.coordinate[1] == 2);
    ck_assert_double_eq_tol(report.analytic - report.numeric, 1, 1e-6);
    ck_assert_double_eq_tol(report.largest_absolute_error, 1, 1e-6);
    char values[128];
    snprintf(values, sizeof(values), "order 1, input 1 at (1, 2): numeric %.9g, analytic %.9g",
             report.numeric, report.analytic);
    assert_error(WG_ERROR_GRADIENT, values);
}
END_TEST

START_TEST(inputs_are_left_as_they_were) {
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
END_TEST

START_TEST(views_are_moved_where_they_lie) {
    wg_tensor *base = wg_detach(leaf(3, 4));
    wg_tensor *x = wg_slice(wg_transpose(base, 0, 1), 0, WG_END, WG_END, -2);
    wg_set_requires_grad(x, true);
    wg_tensor *inputs[] = {x, leaf(2, 3)};
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck(two_outputs, NULL, 2, inputs, 2, NULL, &report), 0);
    ck_assert_int_eq(report.compared, 12);
}
END_TEST

START_TEST(an_expanded_input_is_refused) {
    wg_tensor *x = wg_expand(wg_detach(leaf(1, 3)), WG_DIMS(2, 3));
    wg_set_requires_grad(x, true);
    wg_tensor *inputs[] = {leaf(2, 3), x};
    ck_assert_int_eq(wg_gradcheck(two_outputs, NULL, 2, inputs, 2, NULL, NULL), -1);
    assert_error(WG_ERROR_GRADIENT, "input 1 is an expanded view");
}
END_TEST

/* A function that knows its parameter without its arguments, as a module does. */
static int closure(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                   void *context) {
    (void)input_count, (void)inputs, (void)output_count;
    outputs[0] = wg_exp(context);
    return 0;
}

START_TEST(a_parameter_behind_the_function_is_checked) {
    wg_tensor *parameter = leaf(2, 2);
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck(closure, parameter, 1, &parameter, 1, &second_order, &report), 0);
    ck_assert_int_eq(report.compared, 12);
}
END_TEST

static int never_twice_the_same(int input_count, wg_tensor *const *inputs, int output_count,
                                wg_tensor **outputs, void *context) {
    (void)input_count, (void)output_count;
    outputs[0] = wg_mul_scalar(inputs[0], ++*(int *)context);
    return 0;
}

START_TEST(a_function_with_two_results_for_one_input_is_refused) {
    int calls = 0;
    wg_tensor *x = leaf(2, 2);
    ck_assert_int_eq(wg_gradcheck(never_twice_the_same, &calls, 1, &x, 1, NULL, NULL), -1);
    assert_error(WG_ERROR_GRADIENT, "two results");
}
END_TEST

static int detached(int input_count, wg_tensor *const *inputs, int output_count,
                    wg_tensor **outputs, void *context) {
    (void)input_count, (void)output_count, (void)context;
    outputs[0] = wg_exp(wg_detach(inputs[0]));
    return 0;
}

START_TEST(an_output_that_hides_its_gradient_is_caught) {
    wg_tensor *x = leaf(2, 2);
    ck_assert_int_eq(wg_gradcheck(detached, NULL, 1, &x, 1, NULL, NULL), -1);
    assert_error(WG_ERROR_GRADIENT, "analytic 0");
}
END_TEST

static int misshapen(int input_count, wg_tensor *const *inputs, int output_count,
                     wg_tensor **outputs, void *context) {
    (void)input_count, (void)output_count, (void)context;
    outputs[0] = wg_add(inputs[0], inputs[1]);
    return outputs[0] ? 0 : -1;
}

START_TEST(a_function_that_fails_gives_its_reason) {
    wg_tensor *inputs[] = {leaf(2, 3), leaf(4, 5)};
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck(misshapen, NULL, 2, inputs, 1, NULL, &report), -1);
    ck_assert(!report.passed);
    ck_assert_ptr_nonnull(strstr(report.message, "order 1: the function failed: add: "));
    assert_error(WG_ERROR_GRADIENT, report.message);
}
END_TEST

START_TEST(a_pending_error_is_left_alone) {
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
END_TEST

START_TEST(an_order_beyond_two_is_refused) {
    wg_tensor *inputs[] = {leaf(2, 3), leaf(2, 3)};
    wg_gradcheck_options third = {.order = 3};
    ck_assert_int_eq(wg_gradcheck(two_outputs, NULL, 2, inputs, 2, &third, NULL), -1);
    assert_error(WG_ERROR_GRADIENT, "order 3");
}
END_TEST

START_TEST(the_check_works_while_recording_is_off) {
    wg_tensor *inputs[] = {leaf(2, 3), leaf(2, 3)};
    wg_set_grad_enabled(false);
    ck_assert_int_eq(wg_gradcheck(two_outputs, NULL, 2, inputs, 2, NULL, NULL), 0);
    ck_assert(!wg_grad_enabled());
    wg_set_grad_enabled(true);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {right_ops_pass,
                                  right_ops_pass_at_second_order,
                                  a_wrong_factor_is_caught,
                                  a_wrong_sign_is_caught,
                                  a_cotangent_left_out_is_caught,
                                  a_gradient_of_nan_is_caught,
                                  a_gradient_left_out_is_caught,
                                  a_transposed_gradient_is_caught,
                                  an_unsummed_broadcast_is_caught,
                                  a_broadcast_summed_over_one_row_is_caught,
                                  exchanged_gradients_are_caught,
                                  a_vjp_that_cuts_the_graph_is_caught_at_second_order_only,
                                  an_op_that_says_why_it_has_no_gradient_passes_uncompared,
                                  a_forward_pass_that_fails_is_caught,
                                  an_op_that_cannot_be_checked_is_refused,
                                  a_function_of_two_inputs_and_outputs_passes,
                                  only_inputs_that_want_a_gradient_are_moved,
                                  nothing_compared_is_a_failure,
                                  the_report_names_the_coordinate_and_both_values,
                                  inputs_are_left_as_they_were,
                                  views_are_moved_where_they_lie,
                                  an_expanded_input_is_refused,
                                  a_parameter_behind_the_function_is_checked,
                                  a_function_with_two_results_for_one_input_is_refused,
                                  an_output_that_hides_its_gradient_is_caught,
                                  a_function_that_fails_gives_its_reason,
                                  a_pending_error_is_left_alone,
                                  an_order_beyond_two_is_refused,
                                  the_check_works_while_recording_is_off};
    return wg_run_tests("gradcheck", WG_COUNT(tests), tests);
}
