/* Correct ops, and assertions about the gradient checker: see sound.h. */
#include "tests/gradcheck/sound.h"

#include <string.h>

#include "tensor/ops.h"
#include "tests/support/testing.h"

static int same_as_first(wg_call *call) {
    call->output_specs[0] = call->input_specs[0];
    return 0;
}

int status_of(const void *result) {
    return result ? 0 : -1;
}

/* square: y = x^2. */

int square_forward(wg_call *call) {
    return wg_copy_(call->outputs[0], wg_mul(call->inputs[0], call->inputs[0]));
}

int square_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(wg_mul_scalar(call->inputs[0], 2), cotangents[0]);
    return status_of(gradients[0]);
}

int square_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    output_tangents[0] = wg_mul(wg_mul_scalar(call->inputs[0], 2), tangents[0]);
    return status_of(output_tangents[0]);
}

SAMPLES(square_samples, 1, wg_randn(generator, WG_F64, WG_DIMS(3, 2 + index)))

wg_op square_op(vjp vjp) {
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

/* flip: the transpose of a square matrix. */

FORWARD(flip_forward, wg_transpose(x, 0, 1))

int flip_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    (void)call;
    gradients[0] = wg_transpose(cotangents[0], 0, 1);
    return status_of(gradients[0]);
}

static int flip_infer(wg_call *call) {
    if (call->input_specs[0].ndim != 2)
        return wg_fail(WG_ERROR_SHAPE, call->op->name, "wanted a matrix");
    call->output_specs[0] = call->input_specs[0];
    call->output_specs[0].shape[0] = call->input_specs[0].shape[1];
    call->output_specs[0].shape[1] = call->input_specs[0].shape[0];
    return 0;
}

SAMPLES(matrix_samples, 0, wg_randn(generator, WG_F64, WG_DIMS(3, 3)))

wg_op flip_op(vjp vjp) {
    wg_op op = square_op(vjp);
    op.name = "flip";
    op.infer = flip_infer;
    op.forward = flip_forward;
    op.sample = matrix_samples;
    return op;
}

/* scale: a b, where b broadcasts to a. */

static int scale_infer(wg_call *call) {
    const wg_spec *a = &call->input_specs[0], *b = &call->input_specs[1];
    for (int d = 0; d < b->ndim; d++)
        if (b->ndim > a->ndim ||
            (b->shape[d] != 1 && b->shape[d] != a->shape[a->ndim - b->ndim + d]))
            return wg_fail(WG_ERROR_SHAPE, call->op->name, "b does not broadcast to a");
    return same_as_first(call);
}

FORWARD(scale_forward, wg_mul(x, call->inputs[1]))

wg_tensor *to_shape_of_b(const wg_call *call, wg_tensor *gradient) {
    return wg_sum_to(gradient, call->input_specs[1].ndim, call->input_specs[1].shape);
}

int scale_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (call->wants & 1)
        gradients[0] = wg_mul(cotangents[0], call->inputs[1]);
    if (call->wants & 2)
        gradients[1] = to_shape_of_b(call, wg_mul(cotangents[0], call->inputs[0]));
    return 0;
}

SAMPLES(row_samples, 0, wg_randn(generator, WG_F64, WG_DIMS(3, 2)),
        wg_randn(generator, WG_F64, WG_DIMS(2)))

wg_op scale_op(vjp vjp) {
    wg_op op = square_op(vjp);
    op.name = "scale";
    op.min_inputs = op.max_inputs = 2;
    op.saves_inputs = op.differentiable = 3;
    op.infer = scale_infer;
    op.forward = scale_forward;
    op.sample = row_samples;
    return op;
}

/* powers: x^2 and x^3. */

static int powers_infer(wg_call *call) {
    call->output_specs[1] = call->input_specs[0];
    return same_as_first(call);
}

static int powers_forward(wg_call *call) {
    return wg_copy_(call->outputs[0], wg_pow_scalar(call->inputs[0], 2)) < 0
               ? -1
               : wg_copy_(call->outputs[1], wg_pow_scalar(call->inputs[0], 3));
}

int powers_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *x = call->inputs[0], *sum = wg_zeros_like(x);
    if (cotangents[0])
        sum = wg_add(sum, wg_mul(cotangents[0], wg_mul_scalar(x, 2)));
    if (cotangents[1])
        sum = wg_add(sum, wg_mul(cotangents[1], wg_mul_scalar(wg_mul(x, x), 3)));
    gradients[0] = sum;
    return status_of(sum);
}

wg_op powers_op(vjp vjp) {
    wg_op op = square_op(vjp);
    op.name = "powers";
    op.output_count = 2;
    op.infer = powers_infer;
    op.forward = powers_forward;
    return op;
}

/* ---- What is asserted ---- */

const wg_gradcheck_options second_order = {.order = 2};
const wg_gradcheck_options samples_alone = {.no_variants = true};
const wg_gradcheck_options fast = {.fast = true};

wg_gradcheck_report assert_passes(wg_op op, const wg_gradcheck_options *options) {
    wg_gradcheck_report report;
    int result = wg_gradcheck_op(&op, options, &report);
    ck_assert_msg(result == 0 && report.passed, "%s", report.message);
    ck_assert_int_eq(report.diagnosis, WG_DIAGNOSIS_NONE);
    assert_no_error();
    return report;
}

wg_gradcheck_report assert_caught_with(wg_op op, const wg_gradcheck_options *options,
                                       wg_diagnosis diagnosis, const char *part) {
    wg_gradcheck_report report;
    ck_assert_int_eq(wg_gradcheck_op(&op, options, &report), -1);
    ck_assert(!report.passed);
    ck_assert_msg(report.diagnosis == diagnosis, "%s is taken for %s: %s",
                  wg_diagnosis_name(diagnosis), wg_diagnosis_name(report.diagnosis),
                  report.message);
    ck_assert_msg(strstr(report.message, part), "\"%s\" does not say \"%s\"", report.message, part);
    assert_error(WG_ERROR_GRADIENT, part);
    return report;
}

wg_gradcheck_report assert_caught(wg_op op, wg_diagnosis diagnosis, const char *part) {
    return assert_caught_with(op, NULL, diagnosis, part);
}

wg_op build(const broken_op *broken) {
    wg_op op = broken->base(broken->vjp);
    op.forward = broken->forward ? broken->forward : op.forward;
    op.infer = broken->infer ? broken->infer : op.infer;
    op.sample = broken->sample ? broken->sample : op.sample;
    op.jvp = broken->jvp;
    op.decompose = broken->decompose;
    op.accumulates = broken->accumulates;
    return op;
}

wg_gradcheck_report assert_diagnosed(const broken_op *broken) {
    const wg_gradcheck_report report =
        assert_caught(build(broken), broken->diagnosis, broken->words ? broken->words : "");
    if (broken->variant)
        ck_assert_str_eq(report.variant, broken->variant);
    if (broken->function)
        ck_assert_msg(strcmp(report.function, broken->function) == 0, "%s is blamed: %s",
                      report.function, report.message);
    return report;
}
