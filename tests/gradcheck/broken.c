/* Ops that are broken in one way each: the gradient checker finds them and says how. */
#include <math.h>
#include <string.h>

#include "tensor/ops.h"
#include "tests/gradcheck/sound.h"
#include "tests/support/testing.h"

/* ---- Ten broken ops ---- */

static int vjp_of_half(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(call->inputs[0], cotangents[0]);
    return 0;
}

TEST(a_missing_factor_is_named) {
    wg_gradcheck_report report =
        assert_caught(square_op(vjp_of_half), WG_DIAGNOSIS_FACTOR, "analytic = 0.5 * numeric");
    ck_assert_double_eq_tol(report.factor, 0.5, 1e-6);
    assert_caught_with(square_op(vjp_of_half), &fast, WG_DIAGNOSIS_FACTOR, "a missing factor");
}

static int vjp_negative(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(wg_mul_scalar(call->inputs[0], -2), cotangents[0]);
    return 0;
}

TEST(a_wrong_sign_is_named) {
    assert_caught(square_op(vjp_negative), WG_DIAGNOSIS_SIGN, "the wrong sign");
}

static int vjp_untransposed(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call;
    gradients[0] = cotangents[0];
    return 0;
}

TEST(a_missing_transpose_is_named) {
    assert_caught(flip_op(vjp_untransposed), WG_DIAGNOSIS_TRANSPOSED,
                  "axis 0 of the cotangent and axis 1 of the cotangent are exchanged");
}

static int vjp_unsummed(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (call->wants & 1)
        gradients[0] = wg_mul(cotangents[0], call->inputs[1]);
    if (call->wants & 2)
        gradients[1] = wg_mul(cotangents[0], call->inputs[0]);
    return 0;
}

TEST(an_unsummed_broadcast_axis_is_named) {
    wg_gradcheck_report report =
        assert_caught(scale_op(vjp_unsummed), WG_DIAGNOSIS_UNSUMMED, "summed over axis 0");
    ck_assert_int_eq(report.axis, 0);
    ck_assert_int_eq(report.input, 1);
}

static int vjp_constant(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)cotangents;
    gradients[0] = wg_ones_like(call->inputs[0]);
    return 0;
}

TEST(a_constant_gradient_is_named) {
    assert_caught(square_op(vjp_constant), WG_DIAGNOSIS_CONSTANT, "a constant");
}

/* Every call writes what its backward needs to the same place. */
static double stale_slopes[64];

static int stale_forward(wg_call *call) {
    if (wg_tensor_count(call->inputs[0]) <= (int64_t)WG_COUNT(stale_slopes))
        wg_to_array(wg_mul_scalar(call->inputs[0], 2), stale_slopes);
    return square_forward(call);
}

static int stale_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg_spec *x = &call->input_specs[0];
    gradients[0] = wg_mul(cotangents[0], wg_from_array(WG_F64, x->ndim, x->shape, stale_slopes));
    return 0;
}

TEST(a_stale_save_is_named) {
    wg_op op = square_op(stale_vjp);
    op.forward = stale_forward;
    assert_caught(op, WG_DIAGNOSIS_STALE, "after the function ran on other inputs");
}

static int clobbering_forward(wg_call *call) {
    int status = square_forward(call);
    return status < 0 ? -1 : wg_scale_(call->inputs[0], 0.5);
}

/* Writes without raising the version counter. */
static int sneaking_forward(wg_call *call) {
    int status = square_forward(call);
    *(double *)wg_tensor_data(call->inputs[0]) = 7;
    return status;
}

TEST(a_modified_input_is_named) {
    wg_op op = square_op(square_vjp);
    op.forward = clobbering_forward;
    assert_caught(op, WG_DIAGNOSIS_INPUT_MODIFIED, "the function writes to input 0");
    op.forward = sneaking_forward;
    assert_caught(op, WG_DIAGNOSIS_INPUT_MODIFIED, "without counting it as a write");
}

static int vjp_modifying_input(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(wg_mul_scalar(call->inputs[0], 2), cotangents[0]);
    return wg_fill_(call->inputs[0], 0);
}

TEST(an_input_that_backward_modifies_is_named) {
    assert_caught(square_op(vjp_modifying_input), WG_DIAGNOSIS_INPUT_MODIFIED,
                  "the vjp writes to input 0");
}

static int random_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *noise =
        wg_randn(NULL, WG_F64, call->input_specs[0].ndim, call->input_specs[0].shape);
    gradients[0] = wg_mul(wg_mul_scalar(wg_add(call->inputs[0], noise), 2), cotangents[0]);
    return 0;
}

static int random_forward(wg_call *call) {
    wg_tensor *noise =
        wg_randn(NULL, WG_F64, call->input_specs[0].ndim, call->input_specs[0].shape);
    return wg_copy_(call->outputs[0], wg_add(call->inputs[0], noise));
}

TEST(an_op_that_is_not_deterministic_is_named) {
    assert_caught(square_op(random_vjp), WG_DIAGNOSIS_NONDETERMINISTIC, "backward run twice");
    wg_op op = square_op(square_vjp);
    op.forward = random_forward;
    assert_caught(op, WG_DIAGNOSIS_NONDETERMINISTIC, "the function run twice");
}

static int vjp_null(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call, (void)cotangents, (void)gradients;
    return 0;
}

TEST(a_null_gradient_is_named) {
    assert_caught(square_op(vjp_null), WG_DIAGNOSIS_MISSING, "the vjp left it NULL");
    wg_op op = square_op(square_vjp);
    op.saves_inputs = 0;
    assert_caught(op, WG_DIAGNOSIS_MISSING, "input 0 is not in saves_inputs");
}

static int vjp_f32(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_cast(wg_mul(wg_mul_scalar(call->inputs[0], 2), cotangents[0]), WG_F32);
    return 0;
}

TEST(a_gradient_of_the_wrong_dtype_is_named) {
    assert_caught(square_op(vjp_f32), WG_DIAGNOSIS_WRONG_DTYPE, "f32; wanted");
}

/* ---- And more ---- */

static int vjp_without_cotangent(wg_call *call, wg_tensor *const *cotangents,
                                 wg_tensor **gradients) {
    (void)cotangents;
    gradients[0] = wg_mul_scalar(call->inputs[0], 2);
    return 0;
}

TEST(a_cotangent_left_out_is_named) {
    assert_caught(square_op(vjp_without_cotangent), WG_DIAGNOSIS_IGNORES_COTANGENT,
                  "the cotangent is ignored");
}

static int vjp_without_input(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call;
    gradients[0] = wg_mul_scalar(cotangents[0], 2);
    return 0;
}

TEST(an_input_left_out_is_named) {
    assert_caught(square_op(vjp_without_input), WG_DIAGNOSIS_IGNORES_INPUTS,
                  "does not depend on the inputs");
}

static int vjp_zero(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)cotangents;
    gradients[0] = wg_zeros_like(call->inputs[0]);
    return 0;
}

TEST(a_gradient_of_zeros_is_named) {
    assert_caught(square_op(vjp_zero), WG_DIAGNOSIS_ZERO, "all 9 are 0");
}

static int vjp_nan(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)cotangents;
    gradients[0] = wg_mul_scalar(call->inputs[0], NAN);
    return 0;
}

TEST(a_gradient_of_nan_is_named) {
    assert_caught(square_op(vjp_nan), WG_DIAGNOSIS_NOT_FINITE, "analytic nan");
}

static int vjp_of_one_row(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (call->wants & 1)
        gradients[0] = wg_mul(cotangents[0], call->inputs[1]);
    if (call->wants & 2)
        gradients[1] = wg_select(wg_mul(cotangents[0], call->inputs[0]), 0, 0);
    return 0;
}

TEST(a_broadcast_axis_of_which_one_index_is_taken_is_named) {
    wg_gradcheck_report report = assert_caught(scale_op(vjp_of_one_row), WG_DIAGNOSIS_UNSUMMED,
                                               "only index 0 of axis 0 of the cotangent arrives");
    ck_assert_int_eq(report.axis, 0);
}

static int vjp_of_mean(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (call->wants & 1)
        gradients[0] = wg_mul(cotangents[0], call->inputs[1]);
    if (call->wants & 2)
        gradients[1] = wg_mean(wg_mul(cotangents[0], call->inputs[0]), WG_DIMS(0), false);
    return 0;
}

TEST(a_mean_in_place_of_a_sum_is_explained) {
    assert_caught(scale_op(vjp_of_mean), WG_DIAGNOSIS_FACTOR,
                  "1 / 3, the size of axis 0 of the output");
}

static int pair_samples(int index, wg_generator *generator, wg_sample *sample) {
    sample->input_count = 2;
    sample->inputs[0] = wg_randn(generator, WG_F64, WG_DIMS(3, 4));
    sample->inputs[1] = wg_randn(generator, WG_F64, WG_DIMS(3, 4));
    return index < 1;
}

static int vjp_exchanged(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (call->wants & 1)
        gradients[0] = wg_mul(cotangents[0], call->inputs[0]);
    if (call->wants & 2)
        gradients[1] = wg_mul(cotangents[0], call->inputs[1]);
    return 0;
}

TEST(exchanged_gradients_are_named) {
    wg_op op = scale_op(vjp_exchanged);
    op.sample = pair_samples;
    assert_caught(op, WG_DIAGNOSIS_EXCHANGED, "it is that of input ");
}

/* The only sample does not broadcast. */
static int single_row_samples(int index, wg_generator *generator, wg_sample *sample) {
    sample->input_count = 2;
    sample->inputs[0] = wg_randn(generator, WG_F64, WG_DIMS(3, 2));
    sample->inputs[1] = wg_randn(generator, WG_F64, WG_DIMS(3, 2));
    return index < 1;
}

static int vjp_that_never_broadcasts(wg_call *call, wg_tensor *const *cotangents,
                                     wg_tensor **gradients) {
    return vjp_unsummed(call, cotangents, gradients);
}

TEST(broadcasting_is_tried_where_samples_do_not) {
    wg_op op = scale_op(vjp_that_never_broadcasts);
    op.sample = single_row_samples;
    assert_passes(op, &samples_alone);
    wg_gradcheck_report report =
        assert_caught(op, WG_DIAGNOSIS_UNSUMMED, "sample 0, input 1 rank 0");
    ck_assert_str_eq(report.variant, "input 1 rank 0");
}

static int vjp_greedy(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(cotangents[0], call->inputs[1]);
    gradients[1] = to_shape_of_b(call, wg_mul(cotangents[0], call->inputs[0]));
    return 0;
}

static int vjp_that_looks_at_the_mask(wg_call *call, wg_tensor *const *cotangents,
                                      wg_tensor **gradients) {
    scale_vjp(call, cotangents, gradients);
    if (call->wants == 1)
        gradients[0] = wg_mul_scalar(gradients[0], 2);
    return 0;
}

TEST(a_mask_of_wanted_gradients_that_is_ignored_is_named) {
    assert_caught(scale_op(vjp_greedy), WG_DIAGNOSIS_WANTS_IGNORED,
                  "input 1 has a gradient where input 0 alone requires one");
    assert_caught(scale_op(vjp_that_looks_at_the_mask), WG_DIAGNOSIS_WANTS_IGNORED, "wanted alone");
}

static int vjp_flat(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    square_vjp(call, cotangents, gradients);
    gradients[0] = wg_reshape(gradients[0], WG_DIMS(-1));
    return 0;
}

TEST(a_gradient_of_the_wrong_shape_is_named) {
    assert_caught(square_op(vjp_flat), WG_DIAGNOSIS_WRONG_SHAPE, "(6) f64; wanted (3, 2) f64");
}

static int vjp_writing_to_cotangent(wg_call *call, wg_tensor *const *cotangents,
                                    wg_tensor **gradients) {
    square_vjp(call, cotangents, gradients);
    return wg_fill_(cotangents[0], 0);
}

TEST(a_modified_cotangent_is_named) {
    assert_caught(square_op(vjp_writing_to_cotangent), WG_DIAGNOSIS_COTANGENT_MODIFIED,
                  "the cotangent of output 0");
}

/* Memory that is returned as the gradient and overwritten by the next vjp. */
static wg_tensor *handed_out;

static int vjp_with_one_buffer(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *gradient = wg_mul(wg_mul_scalar(call->inputs[0], 2), cotangents[0]);
    if (handed_out && wg_tensor_count(handed_out) == wg_tensor_count(gradient) &&
        wg_tensor_ndim(handed_out) == wg_tensor_ndim(gradient) &&
        memcmp(wg_tensor_shape(handed_out), wg_tensor_shape(gradient),
               (size_t)wg_tensor_ndim(gradient) * sizeof(int64_t)) == 0) {
        wg_add_(handed_out, gradient, 1);
    } else {
        wg_release(handed_out);
        handed_out = wg_keep(wg_clone(gradient));
    }
    gradients[0] = handed_out;
    return 0;
}

TEST(a_gradient_buffer_that_is_used_again_is_caught) {
    assert_caught(square_op(vjp_with_one_buffer), WG_DIAGNOSIS_NONDETERMINISTIC,
                  "backward run twice");
    wg_release(handed_out);
}

/* Adds twice the gradient to the one that is there. */
static int vjp_accumulating_wrongly(wg_call *call, wg_tensor *const *cotangents,
                                    wg_tensor **gradients) {
    wg_tensor *gradient = wg_mul(wg_mul_scalar(call->inputs[0], 2), cotangents[0]);
    if (gradients[0])
        return wg_add_(gradients[0], gradient, 2);
    gradients[0] = gradient;
    return 0;
}

TEST(wrong_accumulation_is_named) {
    wg_op op = square_op(vjp_accumulating_wrongly);
    op.accumulates = 1;
    assert_caught(op, WG_DIAGNOSIS_ACCUMULATION, "after two backward passes");
}

static int powers_vjp_for_both(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (cotangents[0] && cotangents[1])
        return powers_vjp(call, cotangents, gradients);
    wg_tensor *only = cotangents[0] ? cotangents[0] : cotangents[1];
    gradients[0] = wg_mul(only, wg_mul_scalar(call->inputs[0], 2));
    return 0;
}

TEST(missing_cotangents_that_are_not_zeros_are_caught) {
    wg_op op = powers_op(powers_vjp_for_both);
    assert_caught_with(op, &fast, WG_DIAGNOSIS_COTANGENTS, "under missing ones");
    wg_gradcheck_report report; /* slow mode sees them in the Jacobian */
    ck_assert_int_eq(wg_gradcheck_op(&op, NULL, &report), -1);
    ck_assert_int_eq(report.output, 1);
    wg_error_clear();
}

/* Reads memory as if it were contiguous. */
static int forward_without_strides(wg_call *call) {
    const double *x = wg_tensor_data(call->inputs[0]);
    double *y = wg_tensor_data(call->outputs[0]);
    for (int64_t i = 0; i < wg_tensor_count(call->outputs[0]); i++)
        y[i] = x[i] * x[i];
    return 0;
}

TEST(a_kernel_that_ignores_strides_is_named) {
    wg_op op = square_op(square_vjp);
    op.forward = forward_without_strides;
    assert_passes(op, &samples_alone);
    wg_gradcheck_report report = assert_caught(op, WG_DIAGNOSIS_LAYOUT, "contiguous copy");
    ck_assert_str_eq(report.variant, "input 0 transposed along axes 0 and 1");
}

static int vjp_without_strides(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const double *g = wg_tensor_data(cotangents[0]);
    gradients[0] = wg_clone(wg_mul_scalar(call->inputs[0], 2));
    double *out = wg_tensor_data(gradients[0]);
    for (int64_t i = 0; i < wg_tensor_count(gradients[0]); i++)
        out[i] *= g[i];
    return 0;
}

TEST(a_backward_kernel_that_ignores_strides_is_named) {
    wg_gradcheck_report report =
        assert_caught(square_op(vjp_without_strides), WG_DIAGNOSIS_LAYOUT, "contiguous copies");
    ck_assert_str_eq(report.variant, "cotangent 0 transposed along axes 0 and 1");
}

/* Walks a matrix by its strides, but takes a stride of 0 along axis 0 for the stride of a
 * contiguous matrix. */
static int forward_without_zero_stride(wg_call *call) {
    wg_tensor *x = call->inputs[0];
    const int64_t *shape = wg_tensor_shape(x), *strides = wg_tensor_strides(x);
    const int64_t row_stride = strides[0] ? strides[0] : shape[1];
    wg_tensor *walked = wg_clone(x);
    for (int64_t i = 0; wg_tensor_dtype(x) == WG_F64 && i < shape[0]; i++)
        for (int64_t j = 0; j < shape[1]; j++)
            ((double *)wg_tensor_data(walked))[i * shape[1] + j] =
                ((const double *)wg_tensor_data(x))[i * row_stride + j * strides[1]];
    return wg_copy_(call->outputs[0], wg_mul(walked, walked));
}

TEST(a_kernel_that_ignores_a_stride_of_0_is_named) {
    wg_op op = square_op(square_vjp);
    op.forward = forward_without_zero_stride;
    wg_gradcheck_report report = assert_caught(op, WG_DIAGNOSIS_LAYOUT, "contiguous copy");
    ck_assert_str_eq(report.variant, "input 0 expanded along axis 0");
}

/* Takes a cotangent that is expanded along both axes for one that is expanded along the last alone.
 */
static int vjp_for_one_expansion(wg_call *call, wg_tensor *const *cotangents,
                                 wg_tensor **gradients) {
    const int64_t *strides = wg_tensor_strides(cotangents[0]);
    double factor = strides[0] == 0 && strides[1] == 0 ? 4 : 2;
    gradients[0] = wg_mul(wg_mul_scalar(call->inputs[0], factor), cotangents[0]);
    return status_of(gradients[0]);
}

TEST(a_backward_kernel_for_one_expansion_is_named) {
    wg_gradcheck_report report =
        assert_caught(square_op(vjp_for_one_expansion), WG_DIAGNOSIS_LAYOUT, "contiguous copies");
    ck_assert_str_eq(report.variant, "cotangent 0 expanded along all axes");
}

/* Is wrong where two layouts meet: an input that is flipped, and a cotangent that is stepped. */
static int vjp_for_one_layout(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    bool meet =
        wg_tensor_strides(call->inputs[0])[0] < 0 && wg_tensor_strides(cotangents[0])[1] == 2;
    gradients[0] = wg_mul(wg_mul_scalar(call->inputs[0], meet ? 4 : 2), cotangents[0]);
    return status_of(gradients[0]);
}

TEST(a_backward_kernel_that_fails_for_a_pair_of_layouts_is_named) {
    wg_gradcheck_report report =
        assert_caught(square_op(vjp_for_one_layout), WG_DIAGNOSIS_LAYOUT, "contiguous copies");
    ck_assert_str_eq(report.variant,
                     "input 0 flipped along axis 0, cotangent 0 stepped along axis 1");
}

/* A sum whose parts depend on the number of threads. */
static int threaded_forward(wg_call *call) {
    wg_tensor *scaled = wg_mul_scalar(call->inputs[0], 1 + 1e-15 * wg_threads());
    return wg_copy_(call->outputs[0], wg_mul(scaled, call->inputs[0]));
}

TEST(results_that_depend_on_the_number_of_threads_are_caught) {
    wg_op op = square_op(square_vjp);
    op.forward = threaded_forward;
    int threads = wg_threads();
    assert_caught(op, WG_DIAGNOSIS_THREADS, "threads");
    ck_assert_int_eq(wg_threads(), threads);
}

static wg_tensor *kept[100000];
static int kept_count;

static int keeping_forward(wg_call *call) {
    kept[kept_count++] = wg_keep(wg_clone(call->inputs[0]));
    return square_forward(call);
}

TEST(tensors_left_alive_are_counted) {
    wg_op op = square_op(square_vjp);
    op.forward = keeping_forward;
    assert_caught(op, WG_DIAGNOSIS_ALIVE, "leave 1 tensors alive");
    while (kept_count > 0)
        wg_release(kept[--kept_count]);
}

/* Wrong on the diagonal. */
static int vjp_wrong_in_places(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    square_vjp(call, cotangents, gradients);
    gradients[0] = wg_add(gradients[0], wg_tril(wg_triu(cotangents[0], 0), 0));
    return status_of(gradients[0]);
}

static int vjp_wrong(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(wg_exp(call->inputs[0]), cotangents[0]);
    return 0;
}

TEST(what_fits_no_pattern_is_said_to_be_wrong) {
    assert_caught(square_op(vjp_wrong), WG_DIAGNOSIS_WRONG, "analytic");
    assert_caught(square_op(vjp_wrong_in_places), WG_DIAGNOSIS_LOCAL, "of 9 coordinates disagree");
}

static int vjp_failing(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)cotangents, (void)gradients;
    return wg_fail(WG_ERROR_STATE, call->op->name, "cannot go back");
}

TEST(a_vjp_that_fails_gives_its_reason) {
    assert_caught(square_op(vjp_failing), WG_DIAGNOSIS_BACKWARD_FAILED,
                  "the vjp failed: square: cannot go back");
}
