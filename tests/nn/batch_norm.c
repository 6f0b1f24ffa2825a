/* Batch normalisation against PyTorch (tests/fixtures/batch_norm.py). A case is one of its
 * forms. */
#include <stdio.h>

#include "nn/norm.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"

/* The channels and steps of the fixture; the last step is one of evaluation. */
enum { C = 5, STEPS = 4 };

static const struct {
    const char *name;
    wg_batch_norm_options options;
} forms[] = {
    {"rows", {.no_running = false}},      {"sequences", {.momentum = 0.3, .eps = 1e-3}},
    {"cumulative", {.cumulative = true}}, {"plain", {.no_affine = true}},
    {"untracked", {.no_running = true}},  {"images", {.momentum = 0}},
    {"volumes", {.cumulative = true}},
};

static const char *form_name(int index) {
    return forms[index].name;
}

/* ---- Beside PyTorch ---- */

static wg_tensor *load(int form, const char *name, wg_dtype dtype) {
    return wg_cast(fixture_tensor("batch_norm/%s/%s", forms[form].name, name), dtype);
}

static wg_batch_norm *load_layer(int form, wg_dtype dtype) {
    wg_batch_norm *norm = wg_batch_norm_new(NULL, "", C, &forms[form].options);
    ck_assert_int_eq(wg_module_to(&norm->module, dtype), 0);
    bool recording = wg_set_grad_enabled(false);
    if (norm->weight) {
        wg_copy_(norm->weight, load(form, "weight", dtype));
        wg_copy_(norm->bias, load(form, "bias", dtype));
    }
    wg_set_grad_enabled(recording);
    return norm;
}

static wg_tensor *load_step(int form, const char *name, int64_t step, wg_dtype dtype) {
    return wg_select(load(form, name, dtype), 0, step);
}

static void check_step(wg_batch_norm *norm, int form, int64_t step, wg_dtype dtype,
                       double tolerance) {
    wg_tensor *x = wg_clone(load_step(form, "x", step, dtype));
    wg_set_requires_grad(x, true);
    wg_module_train(&norm->module, step < STEPS - 1);
    wg_tensor *y = wg_batch_norm_forward(norm, x);
    assert_close(wg_detach(y), load_step(form, "y", step, dtype), tolerance, tolerance);
    const wg_backward_options backward = {.cotangent = load_step(form, "cotangent", step, dtype)};
    ck_assert_int_eq(wg_backward(y, &backward), 0);
    assert_close(wg_gradient(x), load_step(form, "dx", step, dtype), tolerance, tolerance);
    if (norm->weight) {
        assert_close(wg_gradient(norm->weight), load_step(form, "dweight", step, dtype), tolerance,
                     tolerance);
        assert_close(wg_gradient(norm->bias), load_step(form, "dbias", step, dtype), tolerance,
                     tolerance);
        wg_zero_grad(norm->weight);
        wg_zero_grad(norm->bias);
    }
    if (norm->running_mean) {
        assert_close(norm->running_mean, load_step(form, "running_mean", step, dtype), tolerance,
                     tolerance);
        assert_close(norm->running_var, load_step(form, "running_var", step, dtype), tolerance,
                     tolerance);
    }
}

static void check_layer(int form, wg_dtype dtype, double tolerance) {
    wg_batch_norm *norm = load_layer(form, dtype);
    for (int64_t step = 0; step < STEPS; step++)
        check_step(norm, form, step, dtype, tolerance);
    if (norm->running_mean)
        ck_assert_double_eq(wg_item(norm->num_batches_tracked), STEPS - 1);
    wg_scope_clear_root();
    wg_module_free(&norm->module);
}

START_TEST(outputs_gradients_and_running_statistics_equal_pytorch) {
    check_layer(_i, WG_F64, 1e-12);
    check_layer(_i, WG_F32, 1e-5);
}
END_TEST

/* ---- Names and errors ---- */

START_TEST(slots_have_pytorchs_names) {
    static const char *const names[] = {"weight", "bias", "running_mean", "running_var",
                                        "num_batches_tracked"};
    wg_batch_norm *norm = wg_batch_norm_new(NULL, "", C, &forms[_i].options);
    const bool there[] = {norm->weight, norm->weight, norm->running_mean, norm->running_mean,
                          norm->running_mean};
    for (size_t i = 0; i < WG_COUNT(names); i++) {
        const wg_slot *slot = wg_module_find(&norm->module, names[i]);
        ck_assert_int_eq(slot != NULL, there[i]);
        if (slot) {
            ck_assert_int_eq(slot->kind, i < 2 ? WG_SLOT_PARAMETER : WG_SLOT_BUFFER);
            ck_assert(i >= 2 || slot->no_decay);
        }
    }
    wg_module_free(&norm->module);
}
END_TEST

START_TEST(a_batch_without_a_variance_is_refused_where_it_is_wanted) {
    wg_batch_norm *norm = wg_batch_norm_new(NULL, "", C, &forms[_i].options);
    wg_tensor *one = wg_ones(WG_F32, WG_DIMS(1, C));
    assert_fails(wg_batch_norm_forward(norm, one), WG_ERROR_SHAPE,
                 "1 values a channel have no variance");
    wg_module_train(&norm->module, false);
    wg_tensor *y = wg_batch_norm_forward(norm, one);
    ck_assert_int_eq(y != NULL, norm->running_mean != NULL);
    if (!y)
        assert_error(WG_ERROR_SHAPE, "1 values a channel have no variance");
    wg_scope_clear_root();
    wg_module_free(&norm->module);
}
END_TEST

START_TEST(what_does_not_fit_is_refused) {
    wg_batch_norm *norm = wg_batch_norm_new(NULL, "", C, &forms[_i].options);
    assert_fails(wg_batch_norm_forward(norm, wg_ones(WG_F32, WG_DIMS(C))), WG_ERROR_SHAPE,
                 "x has rank 1; wanted (N, C), (N, C, L), (N, C, H, W) or (N, C, D, H, W)");
    assert_fails(wg_batch_norm_forward(norm, wg_ones(WG_F32, WG_DIMS(2, C + 1))), WG_ERROR_SHAPE,
                 "x has 6 channels in axis 1; wanted 5");
    wg_module_free(&norm->module);
    assert_fails(wg_batch_norm_new(NULL, "", C, &(wg_batch_norm_options){.momentum = 2}),
                 WG_ERROR_ARGUMENT, "momentum is 2");
}
END_TEST

SUITES {
    const TTest *const of_each[] = {
        outputs_gradients_and_running_statistics_equal_pytorch,
        slots_have_pytorchs_names,
        a_batch_without_a_variance_is_refused_where_it_is_wanted,
        what_does_not_fit_is_refused,
    };
    add_suite_of_each("batch_norm", of_each, WG_COUNT(forms), form_name);
}
