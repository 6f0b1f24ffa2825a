/* wg_vjp, wg_hvp, wg_jacobian and wg_hessian: against torch.autograd.functional, against closed
 * forms, and nested. */
#include "autograd/functional.h"

#include <jansson.h>
#include <math.h>

#include "base/alloc.h"
#include "tensor/ops.h"
#include "tests/support/tensors.h"

/* ---- Helpers ---- */

static const wg_transform_options recorded = {.create_graph = true};

static wg_tensor *sum(wg_tensor *x) {
    return wg_sum(x, WG_ALL, false);
}

static wg_tensor *cube(wg_tensor *x) {
    return wg_mul(x, wg_mul(x, x));
}

static int status_of(wg_tensor *const *outputs, int count) {
    for (int j = 0; j < count; j++)
        if (!outputs[j])
            return -1;
    return 0;
}

/* ---- Against PyTorch ---- */

static json_t *fixtures;

static void read_list(const char *name, size_t count, wg_tensor **tensors) {
    const json_t *list = json_object_get(fixtures, name);
    ck_assert_uint_eq(json_array_size(list), count);
    for (size_t i = 0; i < count; i++)
        tensors[i] = tensor_from_json(json_array_get(list, i));
}

static void assert_list(size_t count, wg_tensor *const *found, const json_t *list) {
    ck_assert_uint_eq(json_array_size(list), count);
    for (size_t i = 0; i < count; i++) {
        ck_assert(!wg_requires_grad(found[i]));
        assert_close(found[i], tensor_from_json(json_array_get(list, i)), 1e-12, 1e-12);
    }
}

enum { INPUTS = 3, OUTPUTS = 2 };

typedef struct point {
    wg_tensor *inputs[INPUTS], *tangents[INPUTS], *cotangents[OUTPUTS];
} point;

static point read_point(void) {
    point p;
    fixtures = json_load_file(fixture("functional.json"), 0, NULL);
    ck_assert_ptr_nonnull(fixtures);
    read_list("inputs", INPUTS, p.inputs);
    read_list("tangents", INPUTS, p.tangents);
    read_list("cotangents", OUTPUTS, p.cotangents);
    return p;
}

/* The network of tests/fixtures/functional.py. */
static int network(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                   void *context) {
    (void)input_count, (void)context;
    wg_tensor *hidden = wg_tanh(wg_matmul(inputs[0], inputs[1]));
    outputs[0] = wg_matmul(hidden, inputs[2]);
    if (output_count > 1)
        outputs[1] = wg_mean(wg_sigmoid(hidden), 1, (int64_t[]){0}, false);
    return status_of(outputs, output_count);
}

/* Its loss, with the fused cross-entropy. */
static int loss(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                void *context) {
    wg_tensor *parts[2];
    if (network(input_count, inputs, 2, parts, context) < 0)
        return -1;
    wg_tensor *target = wg_ones(WG_I64, WG_DIMS(3));
    wg_tensor *penalty =
        wg_add(sum(wg_mul(parts[1], parts[1])), wg_mul_scalar(sum(wg_exp(inputs[2])), 0.1));
    outputs[0] = wg_add(wg_cross_entropy(parts[0], target, -100, NULL), penalty);
    return status_of(outputs, output_count);
}

TEST(products_and_jacobians_are_those_of_pytorch) {
    point p = read_point();
    wg_tensor *outputs[OUTPUTS], *tangents[OUTPUTS], *gradients[INPUTS];
    wg_tensor *jacobians[OUTPUTS * INPUTS];
    wg_jvp(network, NULL, INPUTS, p.inputs, p.tangents, OUTPUTS, outputs, tangents);
    assert_no_error();
    assert_list(OUTPUTS, outputs, json_object_get(fixtures, "outputs"));
    assert_list(OUTPUTS, tangents, json_object_get(fixtures, "jvp"));
    wg_vjp(network, NULL, INPUTS, p.inputs, OUTPUTS, p.cotangents, NULL, outputs, gradients);
    assert_no_error();
    assert_list(OUTPUTS, outputs, json_object_get(fixtures, "outputs"));
    assert_list(INPUTS, gradients, json_object_get(fixtures, "vjp"));
    wg_jacobian(network, NULL, INPUTS, p.inputs, OUTPUTS, NULL, jacobians);
    assert_no_error();
    for (size_t j = 0; j < OUTPUTS; j++)
        assert_list(INPUTS, jacobians + j * INPUTS,
                    json_array_get(json_object_get(fixtures, "jacobian"), j));
    json_decref(fixtures);
}

TEST(second_derivatives_are_those_of_pytorch) {
    point p = read_point();
    wg_tensor *value, *products[INPUTS], *hessians[INPUTS * INPUTS];
    wg_hvp(loss, NULL, INPUTS, p.inputs, p.tangents, NULL, &value, products);
    assert_no_error();
    assert_close(value, tensor_from_json(json_object_get(fixtures, "loss")), 1e-13, 0);
    assert_list(INPUTS, products, json_object_get(fixtures, "hvp"));
    wg_hessian(loss, NULL, INPUTS, p.inputs, NULL, hessians);
    assert_no_error();
    for (size_t i = 0; i < INPUTS; i++)
        assert_list(INPUTS, hessians + i * INPUTS,
                    json_array_get(json_object_get(fixtures, "hessian"), i));
    json_decref(fixtures);
}

/* ---- Jacobians ---- */

typedef struct counted {
    int runs;
    int copies; /* how often the input is repeated in the output */
} counted;

/* x -> cubes of x, side by side with themselves. */
static int repeated_cubes(int input_count, wg_tensor *const *inputs, int output_count,
                          wg_tensor **outputs, void *context) {
    counted *of = context;
    (void)input_count;
    of->runs++;
    wg_tensor *parts[] = {cube(inputs[0]), cube(inputs[0])};
    outputs[0] = wg_cat(of->copies, parts, -1);
    return status_of(outputs, output_count);
}

TEST(a_jacobian_with_few_inputs_is_made_in_forward_mode) {
    counted of = {.copies = 2};
    wg_tensor *x = numbers(1, 2), *jacobian;
    ck_assert_int_eq(wg_jacobian(repeated_cubes, &of, 1, &x, 1, NULL, &jacobian), 0);
    const double expected[] = {3, 0, 0, 12, 3, 0, 0, 12};
    assert_close(jacobian, wg_from_array(WG_F64, WG_DIMS(4, 2), expected), 1e-12, 0);
    ck_assert_int_eq(of.runs, 2); /* for the sizes, and for both columns at once */
}

TEST(a_square_jacobian_is_made_in_reverse_mode) {
    counted of = {.copies = 1};
    wg_tensor *x = numbers(1, 2), *jacobian;
    ck_assert_int_eq(wg_jacobian(repeated_cubes, &of, 1, &x, 1, NULL, &jacobian), 0);
    assert_close(jacobian, wg_from_array(WG_F64, WG_DIMS(2, 2), (double[]){3, 0, 0, 12}), 1e-12, 0);
    ck_assert_int_eq(of.runs, 1);
}

/* The gradient at the leaf x of the sum of squares of the Jacobian of x^3 (and its copies): 36 x^3
 * a copy. */
TEST(a_recorded_jacobian_can_be_differentiated) {
    for (int copies = 1; copies <= 2; copies++) {
        counted of = {.copies = copies};
        wg_tensor *x = numbers(1, 2), *jacobian;
        wg_set_requires_grad(x, true);
        ck_assert_int_eq(wg_jacobian(repeated_cubes, &of, 1, &x, 1, &recorded, &jacobian), 0);
        backward_from(sum(wg_mul(jacobian, jacobian)), NULL);
        assert_close(wg_gradient(x), numbers(36.0 * copies, 288.0 * copies), 1e-12, 0);
        ck_assert_int_eq(wg_jacobian(repeated_cubes, &of, 1, &x, 1, NULL, &jacobian), 0);
        ck_assert(!wg_requires_grad(jacobian));
    }
}

/* (x, indices or nothing, constant) -> (x at the indices, the constant) */
static int chosen(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                  void *context) {
    (void)input_count, (void)context;
    outputs[0] = wg_index_select(inputs[0], 0, inputs[1]);
    outputs[1] = wg_alias(inputs[1]);
    outputs[2] = wg_ones(WG_F64, 0, NULL);
    return status_of(outputs, output_count);
}

TEST(what_has_no_derivatives_has_no_jacobian_and_what_is_constant_a_zero_one) {
    wg_tensor *x = numbers(1, 2, 3);
    wg_tensor *index = wg_from_array(WG_I64, WG_DIMS(2), (int64_t[]){2, 0});
    wg_tensor *inputs[] = {x, index, NULL}, *jacobians[9];
    ck_assert_int_eq(wg_jacobian(chosen, NULL, 3, inputs, 3, NULL, jacobians), 0);
    assert_close(jacobians[0], wg_from_array(WG_F64, WG_DIMS(2, 3), (double[]){0, 0, 1, 1, 0, 0}),
                 0, 0);
    assert_close(jacobians[6], wg_zeros(WG_F64, WG_DIMS(3)), 0, 0);
    for (int k = 0; k < 9; k++)
        ck_assert((k == 0 || k == 6) == (jacobians[k] != NULL));
}

FUNCTION(itself, x)

/* (2 x) cut to 8 elements, and the sum of x. */
static int cut_and_sum(int input_count, wg_tensor *const *inputs, int output_count,
                       wg_tensor **outputs, void *context) {
    (void)input_count, (void)output_count, (void)context;
    outputs[0] = wg_mul_scalar(wg_slice(inputs[0], 0, 0, 8, 1), 2);
    outputs[1] = wg_sum(inputs[0], WG_ALL, false);
    return 0;
}

TEST(rows_of_one_output_leave_another_of_one_element_out) {
    wg_tensor *x = wg_arange(WG_F64, 0, 16, 1), *jacobians[2];
    ck_assert_int_eq(wg_jacobian(cut_and_sum, NULL, 1, &x, 2, NULL, jacobians), 0);
    ck_assert_double_eq(wg_at(jacobians[0], (int64_t[]){3, 3}), 2);
    ck_assert_double_eq(wg_at(jacobians[0], (int64_t[]){3, 4}), 0);
    ck_assert_double_eq(wg_at(jacobians[1], (int64_t[]){15}), 1);
}

TEST(the_jacobian_of_what_has_no_elements) {
    wg_tensor *x = wg_zeros(WG_F64, WG_DIMS(0, 2)), *jacobian;
    ck_assert_int_eq(wg_jacobian(itself, NULL, 1, &x, 1, NULL, &jacobian), 0);
    assert_close(jacobian, wg_zeros(WG_F64, WG_DIMS(0, 2, 0, 2)), 0, 0);
}

TEST(a_jacobian_of_more_than_eight_dimensions_is_refused) {
    wg_tensor *x = wg_ones(WG_F64, WG_DIMS(1, 1, 1, 1, 2)), *jacobian = x;
    failed(wg_jacobian(itself, NULL, 1, &x, 1, NULL, &jacobian), SHAPE,
           "10 dimensions; there are at most 8");
    ck_assert_ptr_null(jacobian);
}

/* ---- vjp, hvp and hessian ---- */

TEST(a_vjp_leaves_the_gradients_of_leaves_alone) {
    counted of = {.copies = 1};
    wg_tensor *x = numbers(1, 2), *gradient, *y;
    wg_tensor *v = numbers(1, 10);
    wg_set_requires_grad(x, true);
    ck_assert_int_eq(wg_vjp(repeated_cubes, &of, 1, &x, 1, &v, NULL, &y, &gradient), 0);
    assert_close(gradient, numbers(3, 120), 1e-12, 0);
    ck_assert(!wg_gradient(x) && !wg_requires_grad(y) && !wg_requires_grad(gradient));
    failed(wg_vjp(repeated_cubes, &of, 1, &x, 1, NULL, NULL, &y, &gradient), SHAPE, "cotangent");
    ck_assert(!y && !gradient);
}

/* sum a x^3, where the parameter a is not an input. */
FUNCTION(weighted_cubes, sum(wg_mul(context, cube(x))))

TEST(parameters_that_are_no_inputs_take_gradients_of_recorded_results) {
    wg_tensor *x = numbers(1, 2), *v = numbers(1, 10), *product;
    wg_tensor *a = leaf_of(numbers(5, 7));
    ck_assert_int_eq(wg_hvp(weighted_cubes, a, 1, &x, &v, &recorded, NULL, &product), 0);
    assert_close(wg_detach(product), numbers(30, 840), 1e-12, 0);
    wg_backward(sum(product), NULL); /* of sum 6 a x v */
    assert_close(wg_gradient(a), numbers(6, 120), 1e-12, 0);
    ck_assert(!wg_requires_grad(x));
}

FUNCTION(linear, wg_add(sum(x), sum(inputs[1])))

TEST(the_second_derivatives_of_a_linear_function_are_zero) {
    wg_tensor *inputs[] = {numbers(1, 2), wg_scalar(WG_F64, 3)}, *found[4];
    wg_tensor *vectors[] = {NULL, wg_scalar(WG_F64, 1)};
    ck_assert_int_eq(wg_hvp(linear, NULL, 2, inputs, vectors, NULL, NULL, found), 0);
    assert_close(found[0], wg_zeros(WG_F64, WG_DIMS(2)), 0, 0);
    assert_close(found[1], wg_scalar(WG_F64, 0), 0, 0);
    ck_assert_int_eq(wg_hessian(linear, NULL, 2, inputs, NULL, found), 0);
    assert_close(found[0], wg_zeros(WG_F64, WG_DIMS(2, 2)), 0, 0);
    assert_close(found[2], wg_zeros(WG_F64, WG_DIMS(2)), 0, 0);
}

TEST(a_null_vector_of_a_hessian_product_stands_for_zero) {
    wg_tensor *inputs[] = {numbers(1, 2), numbers(3, 4)};
    wg_tensor *vectors[] = {NULL, numbers(1, 1)}, *found[2];
    ck_assert_int_eq(wg_hvp(weighted_cubes, inputs[1], 1, inputs, vectors + 1, NULL, NULL, found),
                     0);
    assert_close(found[0], numbers(18, 48), 1e-12, 0);
    ck_assert_int_eq(wg_hvp(weighted_cubes, inputs[1], 1, inputs, vectors, NULL, NULL, found), 0);
    assert_close(found[0], wg_zeros(WG_F64, WG_DIMS(2)), 0, 0);
}

TEST(a_hessian_is_of_one_output_of_one_element) {
    counted of = {.copies = 1};
    wg_tensor *x = numbers(1, 2), *found = x, *value = x;
    failed(wg_hvp(repeated_cubes, &of, 1, &x, &x, NULL, &value, &found), SHAPE,
           "more than one element");
    ck_assert(!found && !value);
    failed(wg_hessian(repeated_cubes, &of, 1, &x, NULL, &found), SHAPE, "more than one element");
    wg_tensor *v = wg_scalar(WG_F64, 1);
    failed(wg_hvp(weighted_cubes, x, 1, &x, &v, NULL, &value, &found), SHAPE, "() f64");
}

/* ---- Nesting, to the fourth order ---- */

FUNCTION(gaussian, wg_exp(wg_mul(x, x)))

typedef struct nested {
    const char *modes; /* from the outside in: 'f' jvp, 'r' vjp, 'j' Jacobian, 'h' Hessian,
                          'p' Hessian-vector product */
} nested;

/* A derivative of the Gaussian at a number, by nested transforms. */
static int derivative(int input_count, wg_tensor *const *inputs, int output_count,
                      wg_tensor **outputs, void *context) {
    const nested *outer = context;
    nested inner = {outer->modes + 1};
    wg_tensor *one = wg_ones_like(inputs[0]);
    switch (outer->modes[0]) {
    case 'f':
        return wg_jvp(derivative, &inner, 1, inputs, &one, 1, NULL, outputs);
    case 'r':
        return wg_vjp(derivative, &inner, 1, inputs, 1, &one, &recorded, NULL, outputs);
    case 'j':
        return wg_jacobian(derivative, &inner, 1, inputs, 1, &recorded, outputs);
    case 'h':
        return wg_hessian(derivative, &inner, 1, inputs, &recorded, outputs);
    case 'p':
        return wg_hvp(derivative, &inner, 1, inputs, &one, &recorded, NULL, outputs);
    default:
        return gaussian(input_count, inputs, output_count, outputs, NULL);
    }
}

/* The n-th derivative of e^(x^2) is a polynomial times e^(x^2). */
static double gaussian_derivative(int order, double x) {
    double u = x * x;
    const double polynomials[] = {1, 2 * x, 4 * u + 2, 8 * u * x + 12 * x,
                                  16 * u * u + 48 * u + 12};
    return polynomials[order] * exp(u);
}

TEST(every_nesting_of_modes_gives_the_same_derivatives) {
    static const struct {
        const char *modes;
        int order;
    } cases[] = {{"f", 1},    {"r", 1},    {"j", 1},    {"h", 2},    {"p", 2},    {"ff", 2},
                 {"fr", 2},   {"rf", 2},   {"rr", 2},   {"jf", 2},   {"fj", 2},   {"jr", 2},
                 {"rj", 2},   {"fff", 3},  {"frf", 3},  {"rfr", 3},  {"ffr", 3},  {"rrf", 3},
                 {"rff", 3},  {"frr", 3},  {"rrr", 3},  {"fh", 3},   {"hf", 3},   {"rh", 3},
                 {"ph", 4},   {"hp", 4},   {"rrrr", 4}, {"ffff", 4}, {"frfr", 4}, {"rfrf", 4},
                 {"rffr", 4}, {"frrf", 4}, {"hh", 4}};
    for (size_t k = 0; k < WG_COUNT(cases); k++) {
        nested outer = {cases[k].modes};
        wg_tensor *x = wg_scalar(WG_F64, 0.6), *y;
        derivative(1, &x, 1, &y, &outer);
        assert_no_error();
        double expected = gaussian_derivative(cases[k].order, 0.6);
        ck_assert_msg(fabs(wg_item(y) - expected) <= 1e-11 * expected,
                      "modes %s: %.17g; wanted %.17g", cases[k].modes, wg_item(y), expected);
    }
}

/* ---- Lack of memory ---- */

static int run_all(void *context) {
    const point *p = context;
    wg_tensor *found[INPUTS * INPUTS], *value;
    if (wg_vjp(network, NULL, INPUTS, p->inputs, OUTPUTS, p->cotangents, NULL, NULL, found) < 0 ||
        wg_hvp(loss, NULL, INPUTS, p->inputs, p->tangents, NULL, &value, found) < 0)
        return -1;
    counted of = {.copies = 2};
    wg_tensor *x = wg_ones(WG_F64, WG_DIMS(2));
    return x ? wg_jacobian(repeated_cubes, &of, 1, &x, 1, &recorded, found) : -1;
}

TEST(lack_of_memory_anywhere_is_an_error_and_no_leak) {
    point p = read_point();
    json_decref(fixtures);
    fail_each_allocation(run_all, &p);
}
