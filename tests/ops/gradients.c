/* Gradients that the registry's sweep does not cover: composed ops, kinks, in-place accumulation,
 * dtypes. */
#include "autograd/autograd.h"
#include "gradcheck/gradcheck.h"
#include "tensor/ops.h"

#include <math.h>

#include "tests/support/tensors.h"

/* ---- Ops made of others, to the second order ---- */

typedef wg_tensor *(*function)(wg_tensor *const *in);

FUNCTION(call_function, (*(function *)context)(inputs))

static wg_tensor *leaf(wg_generator *generator, int ndim, const int64_t *shape) {
    wg_tensor *x = leaf_of(wg_randn(generator, WG_F64, ndim, shape));
    return x;
}

static void check(function f) {
    wg_generator generator = {.seed = 11};
    wg_tensor *in[] = {leaf(&generator, WG_DIMS(2, 3)), leaf(&generator, WG_DIMS(2, 3))};
    wg_gradcheck(call_function, &f, 2, in, 1, &(wg_gradcheck_options){.order = 2}, NULL);
    assert_no_error();
}

/* Each uses both operands, and not linearly, so that no order of differentiation is trivial. */

#define OF_TWO(NAME, ...)                                                                          \
    static wg_tensor *NAME(wg_tensor *const *in) {                                                 \
        return __VA_ARGS__;                                                                        \
    }
OF_TWO(product, wg_mul(wg_mul(in[0], in[1]), in[1]))
OF_TWO(means, wg_mean(product(in), WG_DIMS(1), true))
OF_TWO(variances, wg_var(product(in), WG_DIMS(0), 1, false))
OF_TWO(variance_of_all, wg_var(product(in), WG_ALL, 0, true))
OF_TWO(selections, wg_mul(wg_select(in[0], 1, -1), wg_select(product(in), 1, 0)))
OF_TWO(squeezes, wg_squeeze(wg_mul(wg_unsqueeze(in[0], 1), wg_unsqueeze(product(in), 1)), 1))

static wg_tensor *splits(wg_tensor *const *in) {
    wg_tensor *parts[3], *chunks[2];
    if (wg_split(product(in), 1, 3, (int64_t[]){1, 0, 2}, parts) < 0 ||
        wg_chunk(in[0], 1, 2, chunks) < 0)
        return NULL;
    return wg_mul(wg_mul(parts[0], parts[2]), chunks[0]);
}

static wg_tensor *stacks(wg_tensor *const *in) {
    wg_tensor *y = wg_stack(WG_TENSORS(in[0], product(in), in[0]), 1);
    return wg_mul(y, wg_stack(WG_TENSORS(in[1], in[1], in[0]), -2));
}

OF_TWO(triangles, wg_mul(wg_tril(product(in), 0), wg_triu(in[0], -1)))

static wg_tensor *selected_rows(wg_tensor *const *in) {
    wg_tensor *index = wg_from_array(WG_I32, WG_DIMS(4), (int32_t[]){2, 0, 2, 2});
    return wg_mul(wg_index_select(product(in), 1, index), wg_index_select(in[0], 1, index));
}

OF_TWO(sums_to, wg_mul(wg_sum_to(product(in), WG_DIMS(3)), wg_sum_to(in[0], WG_DIMS(2, 1))))
OF_TWO(plain_numbers, wg_mul_scalar(wg_add_scalar(wg_pow_scalar(product(in), 3), 2), -0.5))
OF_TWO(copies, wg_contiguous(wg_transpose(wg_clone(product(in)), 0, 1)))

TEST(ops_made_of_others_have_the_right_gradients) {
    static const function functions[] = {means,         variances, variance_of_all, selections,
                                         squeezes,      splits,    stacks,          triangles,
                                         selected_rows, sums_to,   plain_numbers,   copies};
    for (size_t i = 0; i < WG_COUNT(functions); i++)
        check(functions[i]);
}

/* ---- Kinks ---- */

static wg_tensor *wanted(int count, const double *values) {
    return leaf_of(wg_from_array(WG_F64, WG_DIMS(count), values));
}

/* Fails unless the gradient of the sum of y with respect to x is `expected`; no gradient counts as
 * zeros. */
static void assert_gradient(wg_tensor *y, wg_tensor *x, const double *expected) {
    wg_zero_grad(x);
    backward_from(wg_sum(y, WG_ALL, false), NULL);
    wg_tensor *gradient = wg_gradient(x) ? wg_gradient(x) : wg_zeros_like(x);
    assert_close(gradient, wg_from_array(WG_F64, 1, wg_tensor_shape(x), expected), 1e-15, 0);
}

TEST(kinks_have_the_derivatives_that_are_written) {
    wg_tensor *x = wanted(3, (double[]){-1, 0, 1});
    assert_gradient(wg_abs(x), x, (double[]){-1, 0, 1});
    assert_gradient(wg_relu(x), x, (double[]){0, 0, 1});
    assert_gradient(wg_sign(wg_add(x, x)), x, (double[]){0, 0, 0});
    assert_gradient(wg_clamp(x, -1, 0), x, (double[]){1, 1, 0});
    assert_gradient(wg_clamp(x, -INFINITY, 0.5), x, (double[]){1, 1, 0});
    assert_gradient(wg_maximum(x, wg_scalar(WG_F64, 0)), x, (double[]){0, 0.5, 1});
    assert_gradient(wg_minimum(wg_scalar(WG_F64, 0), x), x, (double[]){1, 0.5, 0});
}

TEST(ties_share_the_gradient_evenly) {
    wg_tensor *x = wanted(4, (double[]){3, 1, 3, 2});
    assert_gradient(wg_max(x, WG_ALL, false), x, (double[]){0.5, 0, 0.5, 0});
    assert_gradient(wg_min(wg_neg(x), WG_DIMS(0), true), x, (double[]){-0.5, 0, -0.5, 0});
    assert_gradient(wg_maximum(x, x), x, (double[]){1, 1, 1, 1});
}

TEST(powers_of_zero_have_finite_gradients) {
    wg_tensor *a = wanted(4, (double[]){0, 0, 0, 2});
    wg_tensor *b = wanted(4, (double[]){0, 1, 2, 0});
    assert_gradient(wg_pow(a, b), a, (double[]){0, 1, 0, 0});
    assert_gradient(wg_pow(a, b), b, (double[]){0, 0, 0, log(2)});
    wg_tensor *x = wanted(2, (double[]){0, 3});
    assert_gradient(wg_pow_scalar(x, 0), x, (double[]){0, 0});
    assert_gradient(wg_pow_scalar(x, 1), x, (double[]){1, 1});
    assert_gradient(wg_pow_scalar(x, 2), x, (double[]){0, 6});
}

TEST(what_where_and_masked_fill_leave_out_gets_no_gradient_even_where_it_is_infinite) {
    wg_tensor *x = wanted(2, (double[]){0, 4});
    wg_tensor *safe = wg_gt(x, wg_scalar(WG_F64, 0));
    assert_gradient(wg_where(safe, x, wg_scalar(WG_F64, 1)), x, (double[]){0, 1});
    assert_gradient(wg_masked_fill(x, wg_logical_not(safe), -INFINITY), x, (double[]){0, 1});
}

/* ---- Accumulation ---- */

TEST(parts_of_one_tensor_add_their_gradients_up) {
    wg_tensor *x = wanted(6, (double[]){0, 1, 2, 3, 4, 5});
    wg_tensor *y = wg_mul_scalar(x, 1); /* so that an intermediate is accumulated, too */
    wg_tensor *parts[3];
    ck_assert_int_eq(wg_split(y, 0, 3, (int64_t[]){1, 2, 3}, parts), 0);
    wg_tensor *total = wg_sum(wg_mul_scalar(parts[0], 2), WG_ALL, false);
    total = wg_add(total, wg_sum(wg_mul_scalar(parts[2], 3), WG_ALL, false));
    total = wg_add(total, wg_sum(wg_slice(y, 0, WG_END, WG_END, -2), WG_ALL, false));
    total = wg_add(total, wg_sum(wg_slice(x, 0, 1, 3, 1), WG_ALL, false));
    assert_gradient(total, x, (double[]){2, 2, 1, 4, 3, 4});
}

TEST(an_embedding_adds_its_rows_onto_the_gradient_that_is_there) {
    wg_tensor *weight = leaf_of(wg_reshape(wg_arange(WG_F64, 0, 6, 1), WG_DIMS(3, 2)));
    wg_tensor *index = wg_from_array(WG_I64, WG_DIMS(2, 2), (int64_t[]){2, 0, 2, 2});
    wg_backward(wg_sum(wg_embedding_op(weight, index, -1), WG_ALL, false), NULL);
    wg_backward(wg_sum(wg_embedding_op(weight, wg_scalar(WG_I64, 1), -1), WG_ALL, false), NULL);
    assert_close(wg_gradient(weight),
                 wg_from_array(WG_F64, WG_DIMS(3, 2), (double[]){1, 1, 1, 1, 3, 3}), 0, 0);
}

TEST(a_padding_row_gets_no_gradient_at_any_order) {
    wg_generator generator = {.seed = 3};
    wg_tensor *weight = leaf(&generator, WG_DIMS(3, 2));
    wg_tensor *index = wg_from_array(WG_I64, WG_DIMS(4), (int64_t[]){2, 0, 1, 2});
    wg_tensor *rows = wg_embedding_op(weight, index, 2);
    assert_close(wg_select(rows, 0, 0), wg_select(weight, 0, 2), 0, 0);
    for (int order = 1; order <= 2; order++) {
        wg_tensor *gradient, *output = wg_sum(wg_mul(rows, rows), WG_ALL, false);
        const wg_backward_options options = {.retain_graph = true, .create_graph = order == 2};
        ck_assert_int_eq(wg_grad(1, &output, NULL, 1, &weight, &options, &gradient), 0);
        wg_tensor *expected = wg_mul_scalar(wg_detach(weight), 2);
        wg_fill_(wg_select(expected, 0, 2), 0);
        assert_close(gradient, expected, 1e-15, 0);
    }
}

TEST(a_join_of_many_tensors_gives_each_its_gradient) {
    enum { MANY = 70 };
    wg_tensor *parts[MANY], *weights = wg_arange(WG_F64, 0, MANY, 1);
    for (int i = 0; i < MANY; i++)
        parts[i] = wanted(1, (double[]){i});
    wg_tensor *joined = wg_cat(MANY, parts, 0);
    assert_close(joined, weights, 0, 0);
    wg_backward(wg_sum(wg_mul(joined, weights), WG_ALL, false), NULL);
    for (int i = 0; i < MANY; i++)
        ck_assert_double_eq(wg_item(wg_gradient(parts[i])), i);
}

/* tanh, sigmoid, erf and the gelus of intermediates that have no other holder during backward, so
 * that its last pass may overwrite the saved tensors. */
static wg_tensor *functions_of_passing_values(wg_tensor *x) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *y = wg_tanh(wg_mul(x, x));
    y = wg_sigmoid(wg_erf(wg_add(y, x)));
    y = wg_gelu(wg_mul(y, x));
    return wg_scope_end(&scope, wg_sum(wg_gelu_tanh(wg_add(y, x)), WG_ALL, false));
}

TEST(the_last_pass_through_a_graph_gives_the_gradients_of_the_first) {
    wg_generator generator = {.seed = 9};
    wg_tensor *x = leaf(&generator, WG_DIMS(3, 50));
    wg_tensor *total = functions_of_passing_values(x);
    wg_backward(total, &(wg_backward_options){.retain_graph = true});
    wg_tensor *kept = wg_clone(wg_gradient(x));
    wg_zero_grad(x);
    wg_backward(total, NULL);
    assert_close(wg_gradient(x), kept, 0, 0);
}

/* ---- Dtypes ---- */

TEST(a_gradient_has_the_dtype_of_its_tensor) {
    wg_tensor *half = wg_full(WG_BF16, WG_DIMS(3), 2), *single = wg_full(WG_F32, WG_DIMS(3), 3);
    wg_set_requires_grad(half, true);
    wg_set_requires_grad(single, true);
    wg_tensor *y = wg_mul(wg_mul(half, single), wg_full(WG_I64, WG_DIMS(3), 5));
    ck_assert_int_eq(wg_tensor_dtype(y), WG_F32);
    wg_backward(wg_mean(wg_cast(y, WG_F64), WG_ALL, false), NULL);
    assert_close(wg_gradient(half), wg_full(WG_BF16, WG_DIMS(3), 5), 0, 0);
    assert_close(wg_gradient(single), wg_full(WG_F32, WG_DIMS(3), 10.0 / 3), 1e-7, 0);
}

/* Gradients are computed from results rounded to 2^-9; 1 - y^2 doubles that error, and the gradient
 * is rounded again. */
TEST(bf16_goes_forward_and_back_through_every_function) {
    static wg_tensor *(*const functions[])(wg_tensor *) = {
        wg_neg,  wg_abs,     wg_sign, wg_exp,  wg_log,  wg_sqrt,      wg_rsqrt,
        wg_tanh, wg_sigmoid, wg_erf,  wg_relu, wg_gelu, wg_gelu_tanh, wg_clone};
    for (size_t i = 0; i < WG_COUNT(functions); i++) {
        wg_tensor *half = wg_transpose(
            wg_cast(wg_reshape(wg_arange(WG_F32, 0.25, 1.75, 0.25), WG_DIMS(2, 3)), WG_BF16), 0, 1);
        wg_tensor *single = wg_cast(half, WG_F32);
        wg_set_requires_grad(half, true);
        wg_set_requires_grad(single, true);
        wg_tensor *y = functions[i](half), *expected = functions[i](single);
        assert_close(y, wg_cast(wg_detach(expected), WG_BF16), 0, 0);
        wg_backward(wg_sum(y, WG_ALL, false), NULL);
        wg_backward(wg_sum(expected, WG_ALL, false), NULL);
        if (wg_gradient(single))
            assert_close(wg_cast(wg_gradient(half), WG_F32), wg_gradient(single), 0x1p-8, 0x1p-7);
    }
}

TEST(nothing_flows_back_through_integers) {
    wg_tensor *x = wanted(2, (double[]){1.5, 2.5});
    ck_assert(!wg_requires_grad(wg_cast(x, WG_I64)));
    ck_assert(!wg_requires_grad(wg_gt(x, x)));
    ck_assert(!wg_requires_grad(wg_argmax(x, 0, false)));
    assert_gradient(wg_mul(x, wg_cast(x, WG_I32)), x, (double[]){1, 2});
}

/* An op takes up to WG_MAX_INPUTS; more are joined in groups. */
TEST(cat_of_a_hundred_tensors_gives_each_its_gradient) {
    enum { MANY = 100 };
    wg_tensor *parts[MANY], *weights = wg_arange(WG_F64, 0, MANY, 1);
    for (int i = 0; i < MANY; i++) {
        parts[i] = wg_ones(WG_F64, WG_DIMS(1));
        if (i == 3 || i >= 62)
            ck_assert_int_eq(wg_set_requires_grad(parts[i], true), 0);
    }
    wg_tensor *joined = wg_cat(MANY, parts, 0);
    ck_assert_int_eq(wg_backward(wg_sum(wg_mul(joined, weights), WG_ALL, false), NULL), 0);
    for (int i = 0; i < MANY; i++) {
        if (i != 3 && i < 62) {
            ck_assert_ptr_null(wg_gradient(parts[i]));
            continue;
        }
        ck_assert_ptr_nonnull(wg_gradient(parts[i]));
        ck_assert_double_eq(wg_item(wg_gradient(parts[i])), i);
    }
}

TEST(an_op_of_more_inputs_than_masks_have_bits_is_refused) {
    static const wg_op crowd = {
        .name = "crowd", .min_inputs = 1, .max_inputs = WG_MAX_INPUTS + 1, .output_count = 1};
    wg_tensor *x = wg_ones(WG_F64, WG_DIMS(1));
    refused(wg_apply_one(&crowd, 1, &x, NULL), ARGUMENT,
            "crowd: its record says up to 33 operands");
}
