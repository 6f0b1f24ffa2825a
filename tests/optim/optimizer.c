/* AdamW against ten steps of PyTorch's, and what all optimizers have in common: clipping, options,
 * errors. */
#include "tests/optim/leaves.h"

#include <float.h>
#include <math.h>

#include "autograd/internal.h"
#include "tensor/ops.h"
#include "nn/linear.h"
#include "optim/internal.h"

static wg_tensor *full_leaf(int64_t count, double value) {
    return leaf_of(wg_full(WG_F32, 1, &count, value));
}

/* ---- Ten steps of PyTorch 1.13 ---- */

static wg_tensor *from_json(const json_t *object, const char *key, wg_dtype dtype,
                            const wg_tensor *like) {
    return tensor_of_list(json_object_get(object, key), dtype, wg_tensor_ndim(like),
                          wg_tensor_shape(like));
}

static void assert_state(const wg_optimizer *optimizer, int64_t index, const char *slot,
                         const json_t *run, double rtol) {
    const char *found_slot, *name;
    wg_tensor *tensor;
    ck_assert_int_eq(wg__optimizer_state(optimizer, index, &found_slot, &name, &tensor), 1);
    ck_assert_str_eq(found_slot, slot);
    ck_assert_str_eq(name, "weight");
    assert_close(tensor, from_json(run, slot, wg_tensor_dtype(tensor), tensor), rtol, rtol);
}

static void check_run(const char *name, wg_dtype dtype, double rtol) {
    json_t *runs = json_load_file(fixture("adamw.json"), 0, NULL);
    const json_t *run = json_object_get(runs, name);
    ck_assert_ptr_nonnull(run);
    double max_norm = json_real_value(json_object_get(run, "max_norm"));
    const json_t *begin = json_object_get(run, "begin");
    wg_tensor *weight = leaf_of(from_json(begin, "weight", dtype, wg_empty(dtype, WG_DIMS(3, 5))));
    wg_tensor *bias = leaf_of(from_json(begin, "bias", dtype, wg_empty(dtype, WG_DIMS(3))));
    wg_optimizer *optimizer =
        wg_adamw_new(&(wg_adamw_options){.beta2 = 0.98, .eps = 1e-6, .weight_decay = 0.1});
    ck_assert_int_eq(wg_optimizer_add(optimizer, "weight", weight, false), 0);
    ck_assert_int_eq(wg_optimizer_add(optimizer, "bias", bias, true), 0);
    const json_t *step;
    size_t i;
    json_array_foreach(json_object_get(run, "steps"), i, step) {
        set_gradient(weight, from_json(step, "weight_gradient", dtype, weight));
        set_gradient(bias, from_json(step, "bias_gradient", dtype, bias));
        double norm = 0, expected = json_real_value(json_object_get(step, "norm"));
        ck_assert_int_eq(wg_optimizer_clip(optimizer, max_norm, &norm), 0);
        ck_assert_msg(fabs(norm - expected) <= rtol * expected, "norm %.9g, not %.9g", norm,
                      expected);
        double rate = json_real_value(json_object_get(step, "rate"));
        ck_assert_int_eq(wg_optimizer_step(optimizer, rate), 0);
        assert_close(weight, from_json(step, "weight", dtype, weight), rtol, rtol);
        assert_close(bias, from_json(step, "bias", dtype, bias), rtol, rtol);
    }
    ck_assert_int_eq(wg_optimizer_steps(optimizer), 10);
    assert_state(optimizer, 0, "exp_avg", run, rtol);
    assert_state(optimizer, 1, "exp_avg_sq", run, rtol);
    wg_optimizer_free(optimizer);
    json_decref(runs);
}

/* clip_grad_norm_ divides by the norm of 200 plus 1e-6. */
START_TEST(ten_steps_equal_those_of_pytorch) {
    check_run("f32", WG_F32, 1e-6);
    check_run("f64", WG_F64, 1e-13);
    check_run("f32_clipped", WG_F32, 1e-6);
    check_run("f64_clipped", WG_F64, 1e-8);
}
END_TEST

/* ---- What a step does ---- */

START_TEST(a_step_drops_the_gradients_and_counts_a_write) {
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    wg_tensor *w = added(optimizer, "w", full_leaf(3, 1));
    uint64_t version = wg__tensor_version(w);
    set_full_gradient(w, 2);
    ck_assert_int_eq(wg_optimizer_step(optimizer, 0.125), 0);
    ck_assert_ptr_null(wg_gradient(w));
    ck_assert_uint_gt(wg__tensor_version(w), version);
    int64_t size = 3;
    assert_close(w, wg_full(WG_F32, 1, &size, 0.875), 1e-6, 0); /* the first step is lr sign(g) */
    wg_optimizer_free(optimizer);
}
END_TEST

START_TEST(decay_shrinks_only_what_decays_and_has_a_gradient) {
    wg_optimizer *optimizer = wg_adamw_new(&(wg_adamw_options){.weight_decay = 0.5});
    wg_tensor *used = added(optimizer, "used", full_leaf(2, 8));
    wg_tensor *unused = added(optimizer, "unused", full_leaf(40000, 8));
    wg_tensor *last = added(optimizer, "last", full_leaf(3, 8)), *bias = full_leaf(2, 8);
    wg_optimizer_add(optimizer, "bias", bias, true);
    set_full_gradient(used, 0);
    set_full_gradient(last, 0);
    set_full_gradient(bias, 0);
    const uint64_t version = wg__tensor_version(unused);
    ck_assert_int_eq(wg_optimizer_step(optimizer, 0.5), 0);
    ck_assert(first_of(used) == 6 && wg_at(last, (int64_t[]){2}) == 6);
    ck_assert(first_of(unused) == 8 && wg_at(bias, (int64_t[]){1}) == 8);
    ck_assert_uint_eq(wg__tensor_version(unused), version);
    wg_optimizer_free(optimizer);
}
END_TEST

START_TEST(a_gradient_of_any_strides_is_stepped_in_order) {
    wg_optimizer *optimizer = wg_adamw_new(&(wg_adamw_options){.beta1 = 0.5});
    wg_tensor *w = leaf_of(wg_zeros(WG_F32, WG_DIMS(2, 3)));
    wg_optimizer_add(optimizer, "w", w, false);
    set_gradient(w, wg_transpose(wg_reshape(wg_arange(WG_F32, 0, 6, 1), WG_DIMS(3, 2)), 0, 1));
    double norm = 0;
    ck_assert_int_eq(wg_optimizer_clip(optimizer, 0, &norm), 0);
    ck_assert_double_eq_tol(norm, sqrt(55), 1e-12);
    ck_assert_int_eq(wg_optimizer_step(optimizer, 1e-3), 0);
    const wg_tensor *state = state_of(optimizer, 0);
    ck_assert(wg_at(state, (int64_t[]){0, 1}) == 1);
    ck_assert(wg_at(state, (int64_t[]){1, 0}) == 0.5);
    wg_optimizer_free(optimizer);
}
END_TEST

/* A gradient that fades would leave subnormal moments: they are set to 0. */
START_TEST(moments_never_become_subnormal) {
    wg_optimizer *optimizer = wg_adamw_new(&(wg_adamw_options){.beta1 = 0.5, .beta2 = 0.5});
    wg_tensor *w = added(optimizer, "w", full_leaf(40, 1));
    for (int step = 0; step < 200; step++) {
        set_full_gradient(w, step == 0 ? 1 : 0);
        ck_assert_int_eq(wg_optimizer_step(optimizer, 1e-3), 0);
        const char *slot, *name;
        wg_tensor *state;
        for (int64_t i = 0; wg__optimizer_state(optimizer, i, &slot, &name, &state); i++) {
            double value = wg_at(state, (int64_t[]){39});
            ck_assert_msg(value == 0 || fabs(value) >= FLT_MIN, "%s is %g", slot, value);
        }
    }
    wg_optimizer_free(optimizer);
}
END_TEST

/* ---- Clipping ---- */

START_TEST(the_norm_is_over_all_gradients_and_measuring_changes_nothing) {
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    wg_tensor *a = full_leaf(30000, 1), *b = full_leaf(1, 1);
    wg_optimizer_add(optimizer, "a", a, false);
    wg_optimizer_add(optimizer, "b", b, false);
    set_full_gradient(a, 2);
    set_full_gradient(b, 100);
    double norm = 0;
    ck_assert_int_eq(wg_optimizer_clip(optimizer, 0, &norm), 0);
    ck_assert_double_eq_tol(norm, sqrt(30000 * 4.0 + 1e4), 1e-9);
    ck_assert_int_eq(wg_optimizer_step(optimizer, 1e-3), 0);
    const wg_tensor *state = state_of(optimizer, 0);
    ck_assert_double_eq_tol(first_of(state), 0.2, 1e-7);
    wg_optimizer_free(optimizer);
}
END_TEST

START_TEST(clipping_lasts_for_one_step) {
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    wg_tensor *w = added(optimizer, "w", full_leaf(4, 1));
    const wg_tensor *state = state_of(optimizer, 0);
    set_full_gradient(w, 50); /* norm 100, clipped to 1: each element 0.5 */
    ck_assert_int_eq(wg_optimizer_clip(optimizer, 1, NULL), 0);
    ck_assert_int_eq(wg_optimizer_step(optimizer, 1e-3), 0);
    ck_assert_double_eq_tol(first_of(state), 0.05, 1e-7);
    set_full_gradient(w, 50);
    ck_assert_int_eq(wg_optimizer_step(optimizer, 1e-3), 0);
    ck_assert_double_eq_tol(first_of(state), 0.045 + 5, 1e-5);
    wg_optimizer_free(optimizer);
}
END_TEST

START_TEST(a_norm_beyond_f32_is_measured) {
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    wg_tensor *w = added(optimizer, "w", full_leaf(4, 1));
    set_full_gradient(w, 3e38);
    double norm = 0;
    ck_assert_int_eq(wg_optimizer_clip(optimizer, 1, &norm), 0);
    ck_assert_double_eq_tol(norm / 6e38, 1, 1e-6);
    ck_assert_int_eq(wg_optimizer_step(optimizer, 1e-3), 0);
    ck_assert_double_eq_tol(first_of(w), 0.999, 1e-6);
    wg_optimizer_free(optimizer);
}
END_TEST

static void check_bad_gradient(double bad) {
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    wg_tensor *good = full_leaf(20000, 1), *w = full_leaf(20000, 1);
    wg_optimizer_add(optimizer, "good", good, false);
    wg_optimizer_add(optimizer, "bad.weight", w, false);
    set_full_gradient(good, 1);
    set_full_gradient(w, 1);
    ((float *)wg_tensor_data(wg_gradient(w)))[17000] = (float)bad;
    assert_fails(wg_optimizer_clip(optimizer, 1, NULL), WG_ERROR_GRADIENT,
                 "\"bad.weight\" is not finite");
    assert_fails(wg_optimizer_step(optimizer, 1e-3), WG_ERROR_GRADIENT, "not finite");
    ck_assert(first_of(good) == 1);
    ck_assert_int_eq(wg_optimizer_steps(optimizer), 0);
    wg_optimizer_zero_grad(optimizer);
    set_full_gradient(good, 1);
    ck_assert_int_eq(wg_optimizer_step(optimizer, 1e-3), 0);
    wg_optimizer_free(optimizer);
}

START_TEST(gradients_that_are_not_finite_are_never_stepped) {
    check_bad_gradient(NAN);
    check_bad_gradient(INFINITY);
    check_bad_gradient(-INFINITY);
}
END_TEST

/* ---- Refusals ---- */

START_TEST(a_pending_error_stops_steps_and_clipping) {
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    wg_tensor *w = added(optimizer, "w", full_leaf(4, 1));
    set_full_gradient(w, 1);
    wg_fail(WG_ERROR_SHAPE, "forward", "failed");
    double norm = -1;
    ck_assert_int_eq(wg_optimizer_clip(optimizer, 1, &norm), -1);
    assert_fails(wg_optimizer_step(optimizer, 1e-3), WG_ERROR_SHAPE, "forward: failed");
    ck_assert(first_of(w) == 1);
    ck_assert(norm == -1);
    ck_assert_ptr_nonnull(wg_gradient(w));
    wg_optimizer_free(optimizer);
}
END_TEST

START_TEST(a_step_without_any_gradient_is_refused) {
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    added(optimizer, "w", full_leaf(4, 1));
    assert_fails(wg_optimizer_step(optimizer, 1e-3), WG_ERROR_GRADIENT,
                 "no parameter has a gradient");
    ck_assert_int_eq(wg_optimizer_steps(optimizer), 0);
    wg_optimizer_free(optimizer);
}
END_TEST

START_TEST(what_cannot_be_stepped_is_not_added) {
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    wg_tensor *w = full_leaf(4, 1);
    ck_assert_int_eq(wg_optimizer_add(optimizer, "w", w, false), 0);
    assert_fails(wg_optimizer_add(optimizer, "w", full_leaf(4, 1), false), WG_ERROR_ARGUMENT,
                 "\"w\" is here already");
    assert_fails(wg_optimizer_add(optimizer, "again", w, false), WG_ERROR_ARGUMENT,
                 "\"again\" is here already, as \"w\"");
    assert_fails(wg_optimizer_add(optimizer, "x", wg_zeros(WG_F32, WG_DIMS(2)), false),
                 WG_ERROR_GRADIENT, "\"x\" requires no gradient");
    assert_fails(wg_optimizer_add(optimizer, "x", leaf_of(wg_zeros(WG_BF16, WG_DIMS(2))), false),
                 WG_ERROR_DTYPE, "\"x\" is bf16");
    ck_assert_int_eq(wg_optimizer_add(optimizer, "x", NULL, false), -1);
    const char *slot, *name;
    wg_tensor *state;
    ck_assert_int_eq(wg__optimizer_state(optimizer, 2, &slot, &name, &state), 0);
    ck_assert_int_eq(wg__optimizer_state(optimizer, -1, &slot, &name, &state), 0);
    wg_optimizer_free(optimizer);
}
END_TEST

/* In a step one of them would be written while the other is. */
START_TEST(a_parameter_in_the_memory_of_another_is_refused) {
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    wg_tensor *w = wg_zeros(WG_F32, WG_DIMS(6));
    wg_tensor *const parts[] = {
        w, wg_slice(w, 0, 2, WG_END, 1), wg_slice(w, 0, 0, 1, 1),
        wg_from_blob(WG_F32, WG_DIMS(6), NULL, wg_tensor_data(w), NULL, NULL)};
    wg_tensor *first = leaf_of(wg_slice(w, 0, 0, 4, 1));
    ck_assert_int_eq(wg_optimizer_add(optimizer, "first", first, false), 0);
    for (size_t i = 0; i < WG_COUNT(parts); i++) {
        wg_tensor *leaf = leaf_of(wg_detach(parts[i]));
        assert_fails(wg_optimizer_add(optimizer, "second", leaf, false), WG_ERROR_ARGUMENT,
                     "\"second\" shares memory with \"first\"");
    }
    wg_tensor *last = leaf_of(wg_slice(w, 0, 4, WG_END, 1));
    ck_assert_int_eq(wg_optimizer_add(optimizer, "last", last, false), 0);
    wg_optimizer_free(optimizer);
}
END_TEST

/* With create_graph the gradient is the cotangent itself, here a parameter that is stepped before.
 */
START_TEST(a_gradient_that_is_a_parameter_is_read_before_the_step) {
    wg_optimizer *optimizer = wg_sgd_new(NULL);
    wg_tensor *w = full_leaf(3, 8), *x = full_leaf(3, 1);
    wg_optimizer_add(optimizer, "w", w, false);
    wg_optimizer_add(optimizer, "x", x, false);
    const wg_backward_options options = {.cotangent = w, .create_graph = true};
    ck_assert_int_eq(wg_backward(x, &options), 0);
    set_full_gradient(w, 4);
    ck_assert_int_eq(wg_optimizer_step(optimizer, 0.5), 0);
    ck_assert_double_eq(first_of(w), 8 - 0.5 * 4);
    ck_assert_double_eq(first_of(x), 1 - 0.5 * 8);
    wg_optimizer_free(optimizer);
}
END_TEST

START_TEST(rates_and_options_out_of_range_are_refused) {
    assert_none(wg_adamw_new(&(wg_adamw_options){.beta1 = 1}), "beta1 is 1");
    assert_none(wg_adamw_new(&(wg_adamw_options){.beta2 = NAN}), "beta2");
    assert_none(wg_adamw_new(&(wg_adamw_options){.eps = -1}), "eps");
    assert_none(wg_adamw_new(&(wg_adamw_options){.weight_decay = -0.1}), "weight_decay");
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    assert_fails(wg_optimizer_step(optimizer, NAN), WG_ERROR_ARGUMENT, "learning rate");
    assert_fails(wg_optimizer_step(optimizer, -1), WG_ERROR_ARGUMENT, "learning rate");
    assert_fails(wg_optimizer_clip(optimizer, -1, NULL), WG_ERROR_ARGUMENT, "max_norm");
    wg_optimizer_free(optimizer);
}
END_TEST

START_TEST(a_module_is_added_with_its_paths_ties_and_decay) {
    wg_module *root = wg_module_new(NULL, "", sizeof *root);
    wg_linear *linear = wg_linear_new(root, "up", 3, 2, NULL);
    wg_linear *tied =
        wg_linear_new(root, "down", 3, 2, &(wg_linear_options){.tied_weight = linear->weight});
    wg_module_buffer(root, "position_ids", wg_arange(WG_I64, 0, 3, 1));
    wg_optimizer *optimizer = wg_sgd_new(&(wg_sgd_options){.momentum = 0.5, .weight_decay = 0.1});
    ck_assert_int_eq(wg_optimizer_add_module(optimizer, root), 0);
    const char *const expected[] = {"up.weight", "up.bias", "down.bias"};
    const char *slot, *name;
    wg_tensor *state;
    for (int64_t i = 0; i < 3; i++) {
        ck_assert_int_eq(wg__optimizer_state(optimizer, i, &slot, &name, &state), 1);
        ck_assert_str_eq(name, expected[i]);
    }
    ck_assert_int_eq(wg__optimizer_state(optimizer, 3, &slot, &name, &state), 0);
    /* With gradients of 0 only the decay changes a parameter: it changes the weight, but not the
     * biases. */
    set_gradient(linear->weight, wg_zeros(WG_F32, WG_DIMS(2, 3)));
    set_gradient(linear->bias, wg_zeros(WG_F32, WG_DIMS(2)));
    bool recording = wg_set_grad_enabled(false);
    wg_fill_(linear->weight, 1);
    wg_fill_(linear->bias, 1);
    wg_set_grad_enabled(recording);
    ck_assert_int_eq(wg_optimizer_step(optimizer, 1), 0);
    ck_assert_double_eq_tol(wg_at(tied->weight, (int64_t[]){0, 0}), 0.9, 1e-6);
    ck_assert_double_eq(wg_at(linear->bias, (int64_t[]){0}), 1);
    assert_fails(wg_optimizer_add_module(optimizer, root), WG_ERROR_ARGUMENT,
                 "\"up.weight\" is here already");
    ck_assert_int_eq(wg_optimizer_add_module(NULL, root), -1);
    wg_optimizer_free(optimizer);
    wg_module_free(root);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        ten_steps_equal_those_of_pytorch,
        a_step_drops_the_gradients_and_counts_a_write,
        decay_shrinks_only_what_decays_and_has_a_gradient,
        a_gradient_of_any_strides_is_stepped_in_order,
        moments_never_become_subnormal,
        the_norm_is_over_all_gradients_and_measuring_changes_nothing,
        clipping_lasts_for_one_step,
        a_norm_beyond_f32_is_measured,
        gradients_that_are_not_finite_are_never_stepped,
        a_pending_error_stops_steps_and_clipping,
        a_step_without_any_gradient_is_refused,
        what_cannot_be_stepped_is_not_added,
        a_parameter_in_the_memory_of_another_is_refused,
        a_gradient_that_is_a_parameter_is_read_before_the_step,
        rates_and_options_out_of_range_are_refused,
        a_module_is_added_with_its_paths_ties_and_decay,
    };
    add_suite("optim", tests);
}
