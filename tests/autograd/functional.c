/* Forward mode, and how forward and reverse mode nest. */
#include "autograd/functional.h"

#include <math.h>

#include "tensor/ops.h"
#include "tests/support/tensors.h"

/* ---- Helpers ---- */

static wg_tensor *scalar(double value) {
    return wg_scalar(WG_F64, value);
}

static wg_tensor *sum(wg_tensor *x) {
    return wg_sum(x, WG_ALL, false);
}

static wg_tensor *cube(wg_tensor *x) {
    return wg_mul(x, wg_mul(x, x));
}

static void assert_value(const wg_tensor *x, double expected) {
    assert_close(x, scalar(expected), 1e-12, 1e-12);
}

static int status_of(wg_tensor *const *outputs, int count) {
    for (int j = 0; j < count; j++)
        if (!outputs[j])
            return -1;
    return 0;
}

/* The derivative of a function of one input at x in the direction 1. */
static wg_tensor *slope(wg_function function, wg_tensor *x, void *context) {
    wg_tensor *one = wg_ones_like(x), *tangent;
    wg_jvp(function, context, 1, &x, &one, 1, NULL, &tangent);
    return tangent;
}

static const wg_backward_options recorded = {.create_graph = true};

/* d y / d x, recorded. */
static wg_tensor *gradient_of(wg_tensor *y, wg_tensor *x) {
    wg_tensor *gradient = NULL;
    wg_grad(1, &y, NULL, 1, &x, &recorded, &gradient);
    return gradient;
}

/* ---- Forward mode ---- */

FUNCTION(cubes, cube(x))
FUNCTION(itself, x)
FUNCTION(constant, scalar(3))
FUNCTION(halted, wg_mul(x, wg_detach(wg_mul(x, x))))
FUNCTION(written, wg_fill_(x, 1) < 0 ? NULL : x)
FUNCTION(rounded, wg_cast(x, WG_I64))
FUNCTION(nothing, NULL)

TEST(the_jvp_of_a_cube) {
    wg_tensor *x = numbers(1, -2, 3), *v = numbers(1, 10, 100);
    wg_tensor *y, *tangent;
    ck_assert_int_eq(wg_jvp(cubes, NULL, 1, &x, &v, 1, &y, &tangent), 0);
    assert_close(y, numbers(1, -8, 27), 1e-12, 0);
    assert_close(tangent, numbers(3, 120, 2700), 1e-12, 0);
}

TEST(the_jvp_of_the_function_that_returns_its_input) {
    wg_tensor *x = scalar(2), *v = scalar(5), *y, *tangent;
    ck_assert_int_eq(wg_jvp(itself, NULL, 1, &x, &v, 1, &y, &tangent), 0);
    assert_value(y, 2);
    assert_value(tangent, 5);
}

TEST(the_tangent_of_a_constant_is_zero) {
    assert_value(slope(constant, scalar(2), NULL), 0);
}

TEST(a_detached_tensor_has_no_tangent) {
    assert_value(slope(halted, scalar(2), NULL), 4);
}

/* Only reverse mode needs recording. */
TEST(forward_mode_works_while_recording_is_off) {
    bool was = wg_set_grad_enabled(false);
    assert_value(slope(cubes, scalar(2), NULL), 12);
    wg_set_grad_enabled(was);
}

TEST(an_output_of_integers_has_no_tangent) {
    wg_tensor *x = scalar(2), *y, *tangent;
    ck_assert_int_eq(wg_jvp(rounded, NULL, 1, &x, &x, 1, &y, &tangent), 0);
    ck_assert_ptr_null(tangent);
    ck_assert_double_eq(wg_item(y), 2);
}

static int of_three(int input_count, wg_tensor *const *inputs, int output_count,
                    wg_tensor **outputs, void *context) {
    (void)input_count, (void)context;
    outputs[0] = wg_mul(inputs[0], inputs[1]);
    outputs[1] = inputs[2] ? wg_exp(inputs[2]) : wg_tanh(inputs[0]);
    return status_of(outputs, output_count);
}

TEST(a_null_tangent_stands_for_zero) {
    wg_tensor *inputs[] = {scalar(2), scalar(3), scalar(0)};
    wg_tensor *tangents[] = {NULL, scalar(10), NULL}, *outputs[2], *found[2];
    ck_assert_int_eq(wg_jvp(of_three, NULL, 3, inputs, tangents, 2, outputs, found), 0);
    assert_value(outputs[0], 6);
    assert_value(found[0], 20);
    assert_value(outputs[1], 1);
    assert_value(found[1], 0);
}

TEST(a_null_input_is_null_in_the_function) {
    wg_tensor *inputs[] = {scalar(2), scalar(3), NULL};
    wg_tensor *tangents[] = {scalar(1), NULL, NULL}, *found[2];
    ck_assert_int_eq(wg_jvp(of_three, NULL, 3, inputs, tangents, 2, NULL, found), 0);
    assert_value(found[1], 1 - tanh(2) * tanh(2));
    tangents[2] = scalar(1);
    failed(wg_jvp(of_three, NULL, 3, inputs, tangents, 2, NULL, found), ARGUMENT, "input 2");
}

TEST(a_tangent_that_does_not_fit_is_refused) {
    wg_tensor *x = scalar(2), *v = numbers(1, 2), *y = x, *tangent = x;
    failed(wg_jvp(cubes, NULL, 1, &x, &v, 1, &y, &tangent), SHAPE, "(2) f64");
    ck_assert(!y && !tangent);
    v = wg_scalar(WG_F32, 1);
    failed(wg_jvp(cubes, NULL, 1, &x, &v, 1, &y, &tangent), DTYPE, "() f32");
    x = v = wg_scalar(WG_I64, 1);
    failed(wg_jvp(itself, NULL, 1, &x, &v, 1, &y, &tangent), DTYPE, "no tangent");
}

TEST(a_tensor_with_a_tangent_is_not_written_in_place) {
    refused(slope(written, scalar(2), NULL), GRADIENT, "wg_jvp");
}

TEST(what_the_function_does_wrong_is_an_error) {
    refused(slope(nothing, scalar(2), NULL), ARGUMENT, "failed without an error");
    wg_fail(WG_ERROR_STATE, "test", "before");
    refused(slope(cubes, scalar(2), NULL), STATE, "before");
}

static wg_tensor *leaked;
FUNCTION(leaking, wg_alias(leaked = wg_keep(wg_exp(x))))

TEST(what_outlives_the_run_has_no_tangent) {
    assert_value(slope(leaking, scalar(0), NULL), 1);
    ck_assert_int_eq(wg_fill_(leaked, 2), 0);
    assert_value(wg_mul(leaked, leaked), 4);
    wg_release(leaked);
}

/* ---- Forward in forward ---- */

typedef struct nested {
    wg_function function;
    int depth;
} nested;

/* Each derivative by a wg_jvp of its own. */
static int derivative(int input_count, wg_tensor *const *inputs, int output_count,
                      wg_tensor **outputs, void *context) {
    nested inner = *(nested *)context;
    if (inner.depth == 0)
        return inner.function(input_count, inputs, output_count, outputs, NULL);
    inner.depth--;
    outputs[0] = slope(derivative, inputs[0], &inner);
    return status_of(outputs, output_count);
}

FUNCTION(exponential, wg_exp(wg_mul_scalar(x, 2)))
FUNCTION(exponential_of_square, wg_exp(wg_mul(x, x)))

TEST(derivatives_of_an_exponential_to_the_fifth_order) {
    const double x = 0.7;
    for (int order = 0; order <= 5; order++) {
        nested outer = {exponential, order};
        wg_tensor *y;
        wg_tensor *at = scalar(x);
        ck_assert_int_eq(derivative(1, &at, 1, &y, &outer), 0);
        assert_value(y, pow(2, order) * exp(2 * x));
    }
}

/* d^4 / dx^4 e^(x^2) = (16 x^4 + 48 x^2 + 12) e^(x^2) */
TEST(the_fourth_derivative_of_a_gaussian) {
    const double x = 0.5, u = x * x;
    nested outer = {exponential_of_square, 4};
    wg_tensor *at = scalar(x), *y;
    ck_assert_int_eq(derivative(1, &at, 1, &y, &outer), 0);
    assert_value(y, (16 * u * u + 48 * u + 12) * exp(u));
}

/* The perturbations of two nested runs must not be taken for each other: d/dx (x d/dy (x + y)) is 1
 * and not 2   (Siskind & Pearlmutter 2005, Perturbation confusion and referential transparency). */
FUNCTION(add_outer, wg_add(context, x))

FUNCTION(confused, wg_mul(x, slope(add_outer, scalar(1), x)))

TEST(perturbations_are_not_confused) {
    assert_value(slope(confused, scalar(1), NULL), 1);
}

/* ---- Reverse in forward, forward in reverse ---- */

/* The gradient of sum x^3 tanh x by reverse mode, at an input that the function makes require
 * it. */
static wg_tensor *inner_gradient(wg_tensor *x, const wg_backward_options *options) {
    wg_tensor *at = wg_alias(x), *gradient = NULL;
    if (!wg_requires_grad(at) && wg_set_requires_grad(at, true) < 0)
        return NULL;
    wg_tensor *y = sum(wg_mul(cube(at), wg_tanh(at)));
    wg_grad(1, &y, NULL, 1, &at, options, &gradient);
    return gradient;
}

static double second_derivative(double x) {
    double t = tanh(x), d = 1 - t * t;
    return 6 * x * t + 6 * x * x * d - 2 * x * x * x * t * d;
}

FUNCTION(plain_gradient, inner_gradient(x, NULL))
FUNCTION(recorded_gradient, inner_gradient(x, &recorded))

TEST(reverse_in_forward) {
    assert_value(slope(plain_gradient, scalar(0.6), NULL), second_derivative(0.6));
    assert_value(slope(recorded_gradient, scalar(0.6), NULL), second_derivative(0.6));
}

TEST(reverse_in_forward_of_an_input_that_wants_a_gradient) {
    wg_tensor *x = leaf_of(scalar(0.6));
    assert_value(wg_detach(slope(plain_gradient, x, NULL)), second_derivative(0.6));
}

TEST(forward_in_reverse) {
    wg_tensor *x = leaf_of(scalar(2));
    wg_tensor *first = slope(cubes, x, NULL); /* 3 x^2 */
    assert_value(wg_detach(first), 12);
    wg_tensor *second = gradient_of(first, x);
    assert_value(wg_detach(second), 12);
    assert_value(wg_detach(gradient_of(second, x)), 6);
}

FUNCTION(forward_of_exponential, slope(exponential, x, NULL))

static wg_tensor *reverse_of_forward(wg_tensor *x) {
    wg_tensor *at = wg_alias(x);
    if (!wg_requires_grad(at) && wg_set_requires_grad(at, true) < 0)
        return NULL;
    return gradient_of(slope(forward_of_exponential, at, NULL), at);
}

FUNCTION(forward_of_reverse_of_forward, reverse_of_forward(x))

TEST(forward_of_reverse_of_forward_of_forward) {
    assert_value(slope(forward_of_reverse_of_forward, scalar(0.4), NULL), 16 * exp(0.8));
}

/* A node saved its output, whose tangent is recorded on that node: a cycle, which must be broken
 * when the level ends. The runner checks that nothing stays alive. */
FUNCTION(saves_outputs, sum(wg_exp(wg_tanh(x))))

TEST(recorded_tangents_of_saved_outputs_leave_nothing_alive) {
    wg_tensor *x = leaf_of(scalar(0.3));
    double t = tanh(0.3), d = 1 - t * t;
    wg_tensor *first = slope(saves_outputs, x, NULL);
    assert_value(wg_detach(first), exp(t) * d);
    assert_value(wg_detach(gradient_of(first, x)), exp(t) * (d * d - 2 * t * d));
}

/* ---- Fused ops ---- */

static wg_tensor *fused_loss(wg_tensor *x) {
    wg_tensor *target = wg_from_array(WG_I64, WG_DIMS(2), (int64_t[]){1, 2});
    return wg_cross_entropy(wg_layer_norm_op(x, NULL, NULL, 1e-5), target, -100, NULL);
}

FUNCTION(loss_of_rows, fused_loss(x))

static wg_tensor *fused_gradient(wg_tensor *x) {
    wg_tensor *at = wg_alias(x), *loss, *gradient = NULL;
    if (!wg_requires_grad(at))
        wg_set_requires_grad(at, true);
    loss = fused_loss(at);
    wg_grad(1, &loss, NULL, 1, &at, NULL, &gradient);
    return gradient;
}

FUNCTION(gradient_of_rows, fused_gradient(x))

TEST(fused_ops_forward_and_reverse_in_forward) {
    wg_generator generator = {.seed = 5};
    wg_tensor *x = wg_randn(&generator, WG_F64, WG_DIMS(2, 4));
    wg_tensor *v = wg_randn(&generator, WG_F64, WG_DIMS(2, 4)), *slope_by_forward, *by_forward;
    wg_tensor *leaf = wg_clone(x), *by_reverse;
    wg_set_requires_grad(leaf, true);
    wg_tensor *gradient = gradient_of(fused_loss(leaf), leaf);
    ck_assert_int_eq(wg_grad(1, &gradient, &v, 1, &leaf, NULL, &by_reverse), 0);
    ck_assert_int_eq(wg_jvp(loss_of_rows, NULL, 1, &x, &v, 1, NULL, &slope_by_forward), 0);
    assert_value(slope_by_forward, wg_item(sum(wg_mul(wg_detach(gradient), v))));
    ck_assert_int_eq(wg_jvp(gradient_of_rows, NULL, 1, &x, &v, 1, NULL, &by_forward), 0);
    assert_close(by_forward, by_reverse, 1e-10, 1e-12);
}
