/* Recording, backward, and the ownership of nodes, gradients and saved tensors. */
#include "autograd/autograd.h"

#include <math.h>

#include "tensor/ops.h"
#include "tests/support/tensors.h"
#include "tensor/internal.h"

/* ---- Helpers ---- */

static wg_tensor *vector(int64_t n, const double *values) {
    return wg_from_array(WG_F64, 1, &n, values);
}

static wg_tensor *leaf(int64_t n, const double *values) {
    wg_tensor *x = leaf_of(vector(n, values));
    return x;
}

/* A list of numbers as a count and a pointer, as the arguments of vector and leaf. */
#define NUMBERS(...)                                                                               \
    (int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (const double[]) {                \
        __VA_ARGS__                                                                                \
    }

static wg_tensor *square(wg_tensor *x) {
    return wg_mul(x, x);
}

static wg_tensor *sum(wg_tensor *x) {
    return wg_sum(x, WG_ALL, false);
}

static void assert_values(const wg_tensor *x, int64_t n, const double *values) {
    ck_assert_ptr_nonnull(x);
    assert_close(x, vector(n, values), 1e-12, 1e-12);
}

static void assert_backward(wg_tensor *output) {
    backward_from(output, NULL);
}

static const wg_backward_options retained = {.retain_graph = true};
static const wg_backward_options recorded = {.create_graph = true};

static wg_tensor *gradient_of(wg_tensor *output, wg_tensor *input) {
    wg_tensor *gradient = NULL;
    wg_grad(1, &output, NULL, 1, &input, &recorded, &gradient);
    assert_no_error();
    return gradient;
}

/* ---- Leaves ---- */

TEST(a_leaf_takes_its_gradient) {
    wg_tensor *x = leaf(NUMBERS(1, -2, 3));
    ck_assert_ptr_null(wg_gradient(x));
    assert_backward(sum(square(x)));
    assert_values(wg_gradient(x), NUMBERS(2, -4, 6));
    ck_assert(!wg_requires_grad(wg_gradient(x)));
}

TEST(a_second_backward_adds_to_the_gradient) {
    wg_tensor *x = leaf(NUMBERS(1, -2, 3));
    assert_backward(sum(square(x)));
    assert_backward(sum(wg_mul_scalar(x, 10)));
    assert_values(wg_gradient(x), NUMBERS(12, 6, 16));
}

TEST(a_gradient_forgotten_is_written_afresh) {
    wg_tensor *x = leaf(NUMBERS(1, -2, 3));
    assert_backward(sum(square(x)));
    wg_zero_grad(x);
    ck_assert_ptr_null(wg_gradient(x));
    assert_backward(sum(wg_mul_scalar(x, 10)));
    assert_values(wg_gradient(x), NUMBERS(10, 10, 10));
    wg_zero_grad(NULL);
}

TEST(only_leaves_that_want_a_gradient_take_one) {
    wg_tensor *x = leaf(NUMBERS(1, 2)), *y = vector(NUMBERS(3, 4));
    assert_backward(sum(wg_mul(x, y)));
    assert_values(wg_gradient(x), NUMBERS(3, 4));
    ck_assert_ptr_null(wg_gradient(y));
}

TEST(a_leaf_may_stop_wanting) {
    wg_tensor *x = leaf(NUMBERS(1, 2));
    assert_backward(sum(square(x)));
    ck_assert_int_eq(wg_set_requires_grad(x, false), 0);
    ck_assert(!wg_requires_grad(x));
    ck_assert_ptr_null(wg_gradient(x));
    ck_assert(!wg_requires_grad(square(x)));
}

TEST(only_floating_leaves_can_want) {
    failed(wg_set_requires_grad(wg_zeros(WG_I64, WG_DIMS(2)), true), DTYPE, "i64");
    wg_tensor *y = square(leaf(NUMBERS(1, 2)));
    failed(wg_set_requires_grad(y, false), GRADIENT, "mul");
    ck_assert_int_eq(wg_set_requires_grad(NULL, true), -1);
}

TEST(gradients_share_no_memory) {
    wg_tensor *x = leaf(NUMBERS(1, 2)), *y = leaf(NUMBERS(3, 4));
    wg_tensor *cotangent = vector(NUMBERS(5, 6));
    wg_backward(wg_add(x, y), &(wg_backward_options){.cotangent = cotangent});
    assert_no_error();
    ck_assert(!wg__tensor_shares_storage(wg_gradient(x), wg_gradient(y)));
    ck_assert(!wg__tensor_shares_storage(wg_gradient(x), cotangent));
    ck_assert(!wg__tensor_shares_storage(wg_gradient(y), cotangent));
    wg_fill_(wg_gradient(x), 0);
    assert_values(wg_gradient(y), NUMBERS(5, 6));
}

TEST(a_leaf_that_is_the_output_takes_the_cotangent) {
    wg_tensor *x = leaf(NUMBERS(7));
    assert_backward(x);
    assert_backward(x);
    assert_values(wg_gradient(x), NUMBERS(2));
}

TEST(a_tied_leaf_takes_the_gradient_of_both_uses) {
    wg_tensor *w = leaf(NUMBERS(2, 3)), *x = vector(NUMBERS(5, 7));
    wg_tensor *hidden = wg_tanh(wg_mul(w, x));
    assert_backward(sum(wg_mul(wg_alias(w), hidden)));
    double expected[2];
    for (int i = 0; i < 2; i++) {
        double weight = i ? 3 : 2, input = i ? 7 : 5, t = tanh(weight * input);
        expected[i] = t + weight * (1 - t * t) * input;
    }
    assert_values(wg_gradient(w), 2, expected);
}

TEST(gradients_keep_the_dtype_of_their_leaf) {
    wg_tensor *x = wg_ones(WG_F32, WG_DIMS(2)), *y = wg_ones(WG_F64, WG_DIMS(2));
    wg_set_requires_grad(x, true);
    wg_set_requires_grad(y, true);
    assert_backward(sum(wg_mul(x, y)));
    assert_close(wg_gradient(x), wg_ones(WG_F32, WG_DIMS(2)), 0, 0);
    assert_close(wg_gradient(y), wg_ones(WG_F64, WG_DIMS(2)), 0, 0);
}

/* ---- Recording ---- */

TEST(nothing_is_recorded_while_recording_is_off) {
    wg_tensor *x = leaf(NUMBERS(1, 2));
    ck_assert(wg_set_grad_enabled(false));
    wg_tensor *y = square(x);
    ck_assert(!wg_grad_enabled());
    ck_assert(!wg_set_grad_enabled(true));
    ck_assert(wg_requires_grad(x) && !wg_requires_grad(y));
    failed(wg_backward(sum(y), NULL), GRADIENT, "requires no gradient");
}

TEST(detaching_cuts_the_graph) {
    wg_tensor *x = leaf(NUMBERS(3, 4));
    wg_tensor *constant = wg_detach(x);
    ck_assert(!wg_requires_grad(constant) && wg__tensor_shares_storage(constant, x));
    assert_backward(sum(wg_mul(x, constant)));
    assert_values(wg_gradient(x), NUMBERS(3, 4));
    ck_assert_ptr_null(wg_detach(NULL));
}

TEST(recording_is_as_before_after_backward) {
    wg_tensor *x = leaf(NUMBERS(3));
    wg_tensor *y = square(x);
    wg_set_grad_enabled(false);
    assert_backward(y);
    ck_assert(!wg_grad_enabled());
    wg_set_grad_enabled(true);
    ck_assert_int_eq(wg_backward(y, NULL), -1);
    wg_error_clear();
    ck_assert(wg_grad_enabled());
}

TEST(writing_in_place_to_what_is_recorded_is_refused) {
    wg_tensor *x = leaf(NUMBERS(3, 4)), *y = square(x);
    failed(wg_fill_(x, 0), GRADIENT, "requires a gradient");
    failed(wg_add_(y, vector(NUMBERS(1, 1)), 1), GRADIENT, "recorded graph");
    wg_set_grad_enabled(false);
    ck_assert_int_eq(wg_fill_(x, 1), 0);
    wg_set_grad_enabled(true);
    assert_values(wg_detach(x), NUMBERS(1, 1));
}

/* ---- The graph ---- */

TEST(the_scope_of_the_forward_pass_may_end_first) {
    wg_tensor *x = leaf(NUMBERS(1, 2, 3));
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *loss = wg_scope_end(&scope, sum(wg_exp(square(x))));
    assert_backward(loss);
    assert_values(wg_gradient(x), NUMBERS(2 * exp(1), 4 * exp(4), 6 * exp(9)));
}

TEST(a_diamond_adds_up_its_paths) {
    wg_tensor *x = leaf(NUMBERS(3));
    wg_tensor *y = square(x);
    assert_backward(wg_add(y, square(y)));
    assert_values(wg_gradient(x), NUMBERS(6 + 2 * 9 * 6));
}

/* Visiting each path separately would take practically forever. */
TEST(sixty_diamonds_in_a_row_are_walked_once_each) {
    wg_tensor *x = leaf(NUMBERS(1)), *y = x;
    for (int i = 0; i < 60; i++)
        y = wg_add(y, y);
    assert_backward(y);
    assert_values(wg_gradient(x), NUMBERS(0x1p60));
}

TEST(broadcast_axes_are_summed) {
    wg_tensor *matrix = wg_ones(WG_F64, WG_DIMS(2, 3)), *row = wg_ones(WG_F64, WG_DIMS(3));
    wg_tensor *column = wg_ones(WG_F64, WG_DIMS(2, 1)), *scalar = wg_scalar(WG_F64, 1);
    wg_tensor *const all[] = {matrix, row, column, scalar};
    for (int i = 0; i < 4; i++)
        wg_set_requires_grad(all[i], true);
    wg_tensor *weights = wg_reshape(wg_arange(WG_F64, 0, 6, 1), WG_DIMS(2, 3));
    assert_backward(sum(wg_mul(wg_mul(weights, wg_mul(matrix, row)), wg_mul(column, scalar))));
    assert_close(wg_gradient(matrix), weights, 0, 0);
    assert_values(wg_gradient(row), NUMBERS(3, 5, 7));
    assert_close(wg_gradient(column), wg_from_array(WG_F64, WG_DIMS(2, 1), (double[]){3, 12}), 0,
                 0);
    assert_close(wg_gradient(scalar), wg_scalar(WG_F64, 15), 0, 0);
}

TEST(views_pass_gradients_to_where_they_look) {
    wg_tensor *x = leaf_of(wg_reshape(wg_arange(WG_F64, 0, 12, 1), WG_DIMS(3, 4)));
    wg_tensor *flipped = wg_slice(wg_transpose(x, 0, 1), 0, WG_END, WG_END, -2); /* rows 3, 1 */
    wg_tensor *column = wg_select(flipped, 1, 2);                                /* 11, 9 */
    wg_tensor *wide = wg_expand(wg_unsqueeze(column, 0), WG_DIMS(5, 2));
    wg_tensor *weights = vector(NUMBERS(1, 10));
    assert_backward(sum(wg_mul(wg_reshape(wide, WG_DIMS(5, 2)), weights)));
    double expected[12] = {0};
    expected[11] = 5;
    expected[9] = 50;
    assert_close(wg_gradient(x), wg_from_array(WG_F64, WG_DIMS(3, 4), expected), 0, 0);
}

TEST(a_graph_serves_one_backward_pass) {
    wg_tensor *x = leaf(NUMBERS(1, 2)), *y = sum(square(x));
    assert_backward(y);
    failed(wg_backward(y, NULL), GRADIENT, "retain_graph");
    assert_values(wg_gradient(x), NUMBERS(2, 4));
}

TEST(a_retained_graph_serves_again) {
    wg_tensor *x = leaf(NUMBERS(1, 2)), *y = sum(square(x));
    wg_backward(y, &retained);
    wg_backward(y, &retained);
    assert_backward(y);
    assert_values(wg_gradient(x), NUMBERS(6, 12));
}

TEST(backward_frees_what_the_graph_saved) {
    wg_tensor *x = leaf(NUMBERS(1, 2));
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *y = wg_scope_end(&scope, sum(wg_exp(square(x))));
    int64_t before = wg_tensors_alive(); /* x, y, and the saved tensor */
    assert_backward(y);
    ck_assert_int_gt(before, 3);
    ck_assert_int_eq(wg_tensors_alive(), 3); /* x, its gradient, y */
}

TEST(intermediate_gradients_stay_when_asked_for) {
    wg_tensor *x = leaf(NUMBERS(1, 2)), *y = square(x);
    ck_assert_int_eq(wg_retain_grad(y), 0);
    wg_tensor *z = wg_mul_scalar(y, 3), *loss = sum(wg_add(y, z));
    assert_backward(loss);
    assert_values(wg_gradient(y), NUMBERS(4, 4));
    assert_values(wg_gradient(x), NUMBERS(8, 16));
    ck_assert_ptr_null(wg_gradient(z));
    failed(wg_retain_grad(vector(NUMBERS(1))), GRADIENT, "requires no gradient");
}

/* ---- Versions ---- */

TEST(an_input_written_after_it_was_saved_is_refused) {
    wg_tensor *x = leaf(NUMBERS(1, 2)), *y = vector(NUMBERS(3, 4));
    wg_tensor *loss = sum(wg_mul(x, y));
    wg_fill_(wg_select(y, 0, 1), 9); /* written through a view of it */
    failed(wg_backward(loss, NULL), GRADIENT, "written in place");
    ck_assert_ptr_null(wg_gradient(x));
}

TEST(an_output_written_after_it_was_saved_is_refused) {
    wg_tensor *y = wg_exp(leaf(NUMBERS(1, 2)));
    wg_tensor *loss = sum(y);
    wg_fill_(wg_detach(y), 0);
    failed(wg_backward(loss, NULL), GRADIENT, "output 0 of exp");
}

TEST(what_was_not_saved_may_be_written) {
    wg_tensor *x = leaf(NUMBERS(1, 2)), *y = vector(NUMBERS(3, 4));
    wg_tensor *loss = sum(wg_add(x, y));
    wg_fill_(y, 9);
    assert_backward(loss);
    assert_values(wg_gradient(x), NUMBERS(1, 1));
}

/* ---- Refusals ---- */

TEST(backward_refuses_while_an_error_is_pending) {
    wg_tensor *x = leaf(NUMBERS(1, 2)), *loss = sum(square(x)), *gradient = x;
    wg_add(x, vector(NUMBERS(1, 2, 3)));
    ck_assert_int_eq(wg_backward(loss, NULL), -1);
    ck_assert_int_eq(wg_grad(1, &loss, NULL, 1, &x, NULL, &gradient), -1);
    ck_assert_ptr_null(gradient);
    refused(wg_gradient(x), SHAPE, "add");
    assert_backward(loss);
}

TEST(a_failed_forward_pass_gives_no_gradient) {
    wg_tensor *x = leaf(NUMBERS(1, 2));
    wg_tensor *loss = sum(square(wg_add(x, vector(NUMBERS(1, 2, 3)))));
    ck_assert_ptr_null(loss);
    ck_assert_int_eq(wg_backward(loss, NULL), -1);
    refused(wg_gradient(x), SHAPE, "add");
}

TEST(several_elements_need_a_cotangent) {
    wg_tensor *x = leaf(NUMBERS(1, 2));
    failed(wg_backward(square(x), NULL), SHAPE, "cotangent");
    wg_backward_options options = {.cotangent = vector(NUMBERS(1, 2, 3))};
    failed(wg_backward(square(x), &options), SHAPE, "(3) f64");
    options.cotangent = wg_ones(WG_F32, WG_DIMS(2));
    failed(wg_backward(square(x), &options), SHAPE, "(2) f32");
    options.cotangent = vector(NUMBERS(10, 100));
    wg_backward(square(x), &options);
    assert_values(wg_gradient(x), NUMBERS(20, 400));
}

/* ---- The functional form ---- */

TEST(grad_leaves_the_leaves_alone) {
    wg_tensor *x = leaf(NUMBERS(1, 2)), *y = leaf(NUMBERS(3, 4)), *z = wg_mul(x, y);
    wg_tensor *inputs[] = {x, z, y}, *gradients[3], *loss = sum(square(z));
    ck_assert_int_eq(wg_grad(1, &loss, NULL, 3, inputs, NULL, gradients), 0);
    assert_values(gradients[0], NUMBERS(2 * 3 * 3, 2 * 8 * 4));
    assert_values(gradients[1], NUMBERS(6, 16));
    assert_values(gradients[2], NUMBERS(2 * 3 * 1, 2 * 8 * 2));
    ck_assert(!wg_gradient(x) && !wg_gradient(y) && !wg_gradient(z));
    ck_assert(!wg_requires_grad(gradients[0]));
}

TEST(grad_of_an_unrelated_input_is_zero) {
    wg_tensor *inputs[] = {leaf(NUMBERS(1, 2)), leaf(NUMBERS(3, 4, 5))}, *gradients[2];
    wg_tensor *loss = sum(square(inputs[0]));
    ck_assert_int_eq(wg_grad(1, &loss, NULL, 2, inputs, NULL, gradients), 0);
    assert_values(gradients[0], NUMBERS(2, 4));
    assert_values(gradients[1], NUMBERS(0, 0, 0));
}

TEST(grad_of_the_output_itself_is_the_cotangent) {
    wg_tensor *x = leaf(NUMBERS(1, 2)), *y = square(x), *gradients[1];
    wg_tensor *cotangent = vector(NUMBERS(5, 7));
    ck_assert_int_eq(wg_grad(1, &y, &cotangent, 1, &y, NULL, gradients), 0);
    assert_values(gradients[0], NUMBERS(5, 7));
    ck_assert_int_eq(wg_grad(1, &x, &cotangent, 1, &x, NULL, gradients), 0);
    assert_values(gradients[0], NUMBERS(5, 7));
}

TEST(grad_sums_over_outputs) {
    wg_tensor *x = leaf(NUMBERS(1, 2)), *gradients[2];
    wg_tensor *outputs[] = {sum(square(x)), wg_mul_scalar(x, 3), sum(x)};
    wg_tensor *cotangents[] = {NULL, vector(NUMBERS(10, 100)), wg_scalar(WG_F64, -1)};
    ck_assert_int_eq(wg_grad(3, outputs, cotangents, 1, &x, NULL, gradients), 0);
    assert_values(gradients[0], NUMBERS(2 + 30 - 1, 4 + 300 - 1));
}

TEST(grad_takes_an_input_twice) {
    wg_tensor *x = leaf(NUMBERS(1, 2)), *gradients[2], *loss = sum(square(x));
    wg_tensor *inputs[] = {x, x};
    ck_assert_int_eq(wg_grad(1, &loss, NULL, 2, inputs, NULL, gradients), 0);
    assert_values(gradients[0], NUMBERS(2, 4));
    assert_values(gradients[1], NUMBERS(2, 4));
    ck_assert(!wg__tensor_shares_storage(gradients[0], gradients[1]));
}

TEST(grad_refuses_an_input_that_wants_none) {
    wg_tensor *x = leaf(NUMBERS(1, 2)), *loss = sum(square(x)), *gradients[2] = {x, x};
    wg_tensor *inputs[] = {x, vector(NUMBERS(1, 2))};
    failed(wg_grad(1, &loss, NULL, 2, inputs, NULL, gradients), GRADIENT, "input 1");
    ck_assert(!gradients[0] && !gradients[1]);
}

/* ---- Higher orders ---- */

TEST(derivatives_of_a_cube_to_the_fourth_order) {
    wg_tensor *x = leaf(NUMBERS(2));
    wg_tensor *f = wg_mul(square(x), x);
    const double expected[] = {12, 12, 6};
    for (int order = 0; order < 3; order++) {
        f = gradient_of(f, x);
        assert_values(f, 1, &expected[order]);
    }
    /* The third derivative does not depend on the value of x, but its graph may: 0 in both
     * cases. */
    if (wg_requires_grad(f))
        assert_values(gradient_of(f, x), NUMBERS(0));
}

TEST(second_derivative_of_tanh) {
    wg_tensor *x = leaf(NUMBERS(0.3, -1.2));
    wg_tensor *first = gradient_of(sum(wg_tanh(x)), x);
    wg_tensor *second = gradient_of(sum(first), x);
    double expected[2];
    for (int i = 0; i < 2; i++) {
        double t = tanh(i ? -1.2 : 0.3);
        expected[i] = -2 * t * (1 - t * t);
    }
    assert_values(second, 2, expected);
}

/* f = sum x^2 y: the Hessian times (v, w) is (2 y v + 2 x w, 2 x v). */
TEST(hessian_vector_products) {
    wg_tensor *inputs[] = {leaf(NUMBERS(1, 2)), leaf(NUMBERS(3, 4))}, *first[2], *product[2];
    wg_tensor *vectors[] = {vector(NUMBERS(5, 6)), vector(NUMBERS(7, 8))};
    wg_tensor *f = sum(wg_mul(square(inputs[0]), inputs[1]));
    ck_assert_int_eq(wg_grad(1, &f, NULL, 2, inputs, &recorded, first), 0);
    ck_assert_int_eq(wg_grad(2, first, vectors, 2, inputs, NULL, product), 0);
    assert_values(product[0], NUMBERS(2 * 3 * 5 + 2 * 1 * 7, 2 * 4 * 6 + 2 * 2 * 8));
    assert_values(product[1], NUMBERS(2 * 1 * 5, 2 * 2 * 6));
}

/* A gradient penalty: the gradient of |grad f|^2 into the leaves. */
TEST(a_gradient_can_be_part_of_a_loss) {
    wg_tensor *x = leaf(NUMBERS(1, 2));
    wg_tensor *gradient = gradient_of(sum(wg_mul(square(x), x)), x); /* 3 x^2 */
    assert_backward(sum(square(gradient)));                          /* sum 9 x^4 */
    assert_values(wg_gradient(x), NUMBERS(36, 288));
}

TEST(a_recorded_backward_leaves_gradients_that_can_be_differentiated) {
    wg_tensor *x = leaf(NUMBERS(1, 2));
    wg_backward(sum(wg_mul(square(x), x)), &recorded);
    assert_values(wg_detach(wg_gradient(x)), NUMBERS(3, 12));
    wg_tensor *first = wg_alias(wg_gradient(x));
    wg_zero_grad(x);
    assert_backward(sum(first));
    assert_values(wg_gradient(x), NUMBERS(6, 12));
}
