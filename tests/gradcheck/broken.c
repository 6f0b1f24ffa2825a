/* Ops that are broken in one way each: the gradient checker finds them and says how. */
#include <math.h>
#include <string.h>

#include "tensor/ops.h"
#include "tests/gradcheck/sound.h"
#include "tests/support/tensors.h"

/* ---- Gradients by wrong formulas ---- */

VJP(vjp_of_half, wg_mul(x, g))
VJP(vjp_negative, wg_mul(wg_mul_scalar(x, -2), g))
VJP(vjp_untransposed, g)
VJP(vjp_constant, wg_ones_like(x))
VJP(vjp_f32, wg_cast(wg_mul(wg_mul_scalar(x, 2), g), WG_F32))
VJP(vjp_without_cotangent, wg_mul_scalar(x, 2))
VJP(vjp_without_input, wg_mul_scalar(g, 2))
VJP(vjp_zero, wg_zeros_like(x))
VJP(vjp_nan, wg_mul_scalar(x, NAN))
VJP(vjp_flat, wg_reshape(wg_mul(wg_mul_scalar(x, 2), g), WG_DIMS(-1)))
VJP(vjp_wrong, wg_mul(wg_exp(x), g))

/* Wrong on the diagonal. */
VJP(vjp_wrong_in_places, wg_add(wg_mul(wg_mul_scalar(x, 2), g), wg_tril(wg_triu(g, 0), 0)))

VJP_OF_TWO(vjp_unsummed, wg_mul(g, b), wg_mul(g, a))
VJP_OF_TWO(vjp_of_one_row, wg_mul(g, b), wg_select(wg_mul(g, a), 0, 0))
VJP_OF_TWO(vjp_of_mean, wg_mul(g, b), wg_mean(wg_mul(g, a), WG_DIMS(0), false))
VJP_OF_TWO(vjp_exchanged, wg_mul(g, a), wg_mul(g, b))

SAMPLES(pair_samples, 0, wg_randn(generator, WG_F64, WG_DIMS(3, 4)),
        wg_randn(generator, WG_F64, WG_DIMS(3, 4)))

/* The only sample does not broadcast. */
SAMPLES(single_row_samples, 0, wg_randn(generator, WG_F64, WG_DIMS(3, 2)),
        wg_randn(generator, WG_F64, WG_DIMS(3, 2)))

static int vjp_null(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call, (void)cotangents, (void)gradients;
    return 0;
}

static int vjp_failing(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)cotangents, (void)gradients;
    return wg_fail(WG_ERROR_STATE, call->op->name, "cannot go back");
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

/* Adds twice the gradient to the one that is there. */
static int vjp_accumulating_wrongly(wg_call *call, wg_tensor *const *cotangents,
                                    wg_tensor **gradients) {
    wg_tensor *gradient = wg_mul(wg_mul_scalar(call->inputs[0], 2), cotangents[0]);
    if (gradients[0])
        return wg_add_(gradients[0], gradient, 2);
    gradients[0] = gradient;
    return 0;
}

/* ---- Operands that are written, and state ---- */

static int vjp_modifying_input(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(wg_mul_scalar(call->inputs[0], 2), cotangents[0]);
    return wg_fill_(call->inputs[0], 0);
}

static int vjp_writing_to_cotangent(wg_call *call, wg_tensor *const *cotangents,
                                    wg_tensor **gradients) {
    square_vjp(call, cotangents, gradients);
    return wg_fill_(cotangents[0], 0);
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

/* Every call writes what its backward needs to the same place. */
static double stale_slopes[64];

static int stale_forward(wg_call *call) {
    if (wg_tensor_count(call->inputs[0]) <= (int64_t)WG_COUNT(stale_slopes))
        wg_to_array(wg_mul_scalar(call->inputs[0], 2), stale_slopes);
    return square_forward(call);
}

VJP(stale_vjp, wg_mul(g, wg_from_array(WG_F64, call->input_specs[0].ndim,
                                       call->input_specs[0].shape, stale_slopes)))

static wg_tensor *noise_like(const wg_spec *spec) {
    return wg_randn(NULL, WG_F64, spec->ndim, spec->shape);
}

VJP(random_vjp, wg_mul(wg_mul_scalar(wg_add(x, noise_like(&call->input_specs[0])), 2), g))
FORWARD(random_forward, wg_add(x, noise_like(&call->input_specs[0])))

/* A sum whose parts depend on the number of threads. */
FORWARD(threaded_forward, wg_mul(wg_mul_scalar(x, 1 + 1e-15 * wg_threads()), x))

/* ---- Layouts ---- */

/* Reads memory as if it were contiguous. */
static int forward_without_strides(wg_call *call) {
    const double *x = wg_tensor_data(call->inputs[0]);
    double *y = wg_tensor_data(call->outputs[0]);
    for (int64_t i = 0; i < wg_tensor_count(call->outputs[0]); i++)
        y[i] = x[i] * x[i];
    return 0;
}

static int vjp_without_strides(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const double *g = wg_tensor_data(cotangents[0]);
    gradients[0] = wg_clone(wg_mul_scalar(call->inputs[0], 2));
    double *out = wg_tensor_data(gradients[0]);
    for (int64_t i = 0; i < wg_tensor_count(gradients[0]); i++)
        out[i] *= g[i];
    return 0;
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

static int64_t stride(const wg_tensor *x, int axis) {
    return wg_tensor_strides(x)[axis];
}

/* Takes a cotangent that is expanded along both axes for one that is expanded along the last alone.
 */
VJP(vjp_for_one_expansion,
    wg_mul(wg_mul_scalar(x, stride(g, 0) == 0 && stride(g, 1) == 0 ? 4 : 2), g))

/* Is wrong where two layouts meet: an input that is flipped, and a cotangent that is stepped. */
VJP(vjp_for_one_layout, wg_mul(wg_mul_scalar(x, stride(x, 0) < 0 && stride(g, 1) == 2 ? 4 : 2), g))

/* ---- Each is caught ---- */

#define ROW(NAME, BASE, VJP_OF_IT, DIAGNOSIS, ...)                                                 \
    {                                                                                              \
        .name = NAME, .base = BASE##_op, .vjp = VJP_OF_IT, .diagnosis = WG_DIAGNOSIS_##DIAGNOSIS,  \
        .words = __VA_ARGS__                                                                       \
    }

static const broken_op broken[] = {
    ROW("missing factor", square, vjp_of_half, FACTOR, "analytic = 0.5 * numeric"),
    ROW("wrong sign", square, vjp_negative, SIGN, "the wrong sign"),
    ROW("missing transpose", flip, vjp_untransposed, TRANSPOSED,
        "axis 0 of the cotangent and axis 1 of the cotangent are exchanged"),
    ROW("constant", square, vjp_constant, CONSTANT, "a constant"),
    ROW("stale save", square, stale_vjp, STALE, "after the function ran on other inputs",
        .forward = stale_forward),
    ROW("modified input", square, square_vjp, INPUT_MODIFIED, "the function writes to input 0",
        .forward = clobbering_forward),
    ROW("uncounted write", square, square_vjp, INPUT_MODIFIED, "without counting it as a write",
        .forward = sneaking_forward),
    ROW("input modified by backward", square, vjp_modifying_input, INPUT_MODIFIED,
        "the vjp writes to input 0"),
    ROW("random vjp", square, random_vjp, NONDETERMINISTIC, "backward run twice"),
    ROW("random forward", square, square_vjp, NONDETERMINISTIC, "the function run twice",
        .forward = random_forward),
    ROW("null gradient", square, vjp_null, MISSING, "the vjp left it NULL"),
    ROW("gradient of the wrong dtype", square, vjp_f32, WRONG_DTYPE, "f32; wanted"),
    ROW("cotangent left out", square, vjp_without_cotangent, IGNORES_COTANGENT,
        "the cotangent is ignored"),
    ROW("input left out", square, vjp_without_input, IGNORES_INPUTS,
        "does not depend on the inputs"),
    ROW("zeros", square, vjp_zero, ZERO, "all 9 are 0"),
    ROW("NaN", square, vjp_nan, NOT_FINITE, "analytic nan"),
    ROW("mean in place of a sum", scale, vjp_of_mean, FACTOR,
        "1 / 3, the size of axis 0 of the output"),
    ROW("exchanged gradients", scale, vjp_exchanged, EXCHANGED, "it is that of input ",
        .sample = pair_samples),
    ROW("broadcasting that no sample has", scale, vjp_unsummed, UNSUMMED,
        "sample 0, input 1 rank 0", "input 1 rank 0", .sample = single_row_samples),
    ROW("ignored mask", scale, vjp_greedy, WANTS_IGNORED,
        "input 1 has a gradient where input 0 alone requires one"),
    ROW("gradient by the mask", scale, vjp_that_looks_at_the_mask, WANTS_IGNORED, "wanted alone"),
    ROW("gradient of the wrong shape", square, vjp_flat, WRONG_SHAPE, "(6) f64; wanted (3, 2) f64"),
    ROW("modified cotangent", square, vjp_writing_to_cotangent, COTANGENT_MODIFIED,
        "the cotangent of output 0"),
    ROW("wrong accumulation", square, vjp_accumulating_wrongly, ACCUMULATION,
        "after two backward passes", .accumulates = 1),
    ROW("ignored strides", square, square_vjp, LAYOUT, "contiguous copy",
        "input 0 transposed along axes 0 and 1", .forward = forward_without_strides),
    ROW("ignored strides of the cotangent", square, vjp_without_strides, LAYOUT,
        "contiguous copies", "cotangent 0 transposed along axes 0 and 1"),
    ROW("ignored stride of 0", square, square_vjp, LAYOUT, "contiguous copy",
        "input 0 expanded along axis 0", .forward = forward_without_zero_stride),
    ROW("one expansion of the cotangent", square, vjp_for_one_expansion, LAYOUT,
        "contiguous copies", "cotangent 0 expanded along all axes"),
    ROW("pair of layouts", square, vjp_for_one_layout, LAYOUT, "contiguous copies",
        "input 0 flipped along axis 0, cotangent 0 stepped along axis 1"),
    ROW("wrong", square, vjp_wrong, WRONG, "analytic"),
    ROW("wrong in places", square, vjp_wrong_in_places, LOCAL, "of 9 coordinates disagree"),
    ROW("failing vjp", square, vjp_failing, BACKWARD_FAILED,
        "the vjp failed: square: cannot go back"),
};

static const char *name_of(int i) {
    return broken[i].name;
}

TEST_OF_EACH(a_broken_op_is_caught_and_its_fault_is_named, WG_COUNT(broken), name_of) {
    assert_diagnosed(&broken[_i]);
}

/* ---- And more of the report ---- */

TEST(the_report_has_the_factor_and_the_axis) {
    const wg_op half = square_op(vjp_of_half);
    wg_gradcheck_report report = assert_caught(half, WG_DIAGNOSIS_FACTOR, "");
    ck_assert_double_eq_tol(report.factor, 0.5, 1e-6);
    assert_caught_with(half, &fast, WG_DIAGNOSIS_FACTOR, "a missing factor");
    report = assert_caught(scale_op(vjp_unsummed), WG_DIAGNOSIS_UNSUMMED, "summed over axis 0");
    ck_assert_int_eq(report.axis, 0);
    ck_assert_int_eq(report.input, 1);
    report = assert_caught(scale_op(vjp_of_one_row), WG_DIAGNOSIS_UNSUMMED,
                           "only index 0 of axis 0 of the cotangent arrives");
    ck_assert_int_eq(report.axis, 0);
}

TEST(faults_of_variants_are_not_in_the_samples_alone) {
    wg_op op = scale_op(vjp_unsummed);
    op.sample = single_row_samples;
    assert_passes(op, &samples_alone);
    op = square_op(square_vjp);
    op.forward = forward_without_strides;
    assert_passes(op, &samples_alone);
}

TEST(an_input_that_is_not_saved_is_named) {
    wg_op op = square_op(square_vjp);
    op.saves_inputs = 0;
    assert_caught(op, WG_DIAGNOSIS_MISSING, "input 0 is not in saves_inputs");
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
    failed(wg_gradcheck_op(&op, NULL, &report), GRADIENT, "");
    ck_assert_int_eq(report.output, 1);
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
