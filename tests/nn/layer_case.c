/* Layers against PyTorch and against central differences: see layer_case.h. */
#include "tests/nn/layer_case.h"

#include <stdio.h>
#include <stdlib.h>

#include "gradcheck/gradcheck.h"
#include "nn/module.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"

/* The cases of all suites of the program: Check passes a test one number. */
enum { MOST_CASES = 128 };
static const layer_case *cases[MOST_CASES];
static int cases_count;

static const char *case_name(int index) {
    return cases[index]->name;
}

static int rank_of(const int64_t *shape) {
    int rank = 0;
    while (shape[rank])
        rank++;
    return rank;
}

/* ---- A flat file of tensors, read one after the other ---- */

wg_tensor *take(layer_file *file, wg_dtype dtype, int ndim, const int64_t *shape) {
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    wg_tensor *part = wg_slice(file->flat, 0, file->at, file->at + count, 1);
    file->at += count;
    return wg_cast(wg_reshape(part, ndim, shape), dtype);
}

wg_tensor *take_like(layer_file *file, const wg_tensor *x) {
    return take(file, wg_tensor_dtype(x), wg_tensor_ndim(x), wg_tensor_shape(x));
}

static void load_parameters(wg_state_dict *state, layer_file *file) {
    bool recording = wg_set_grad_enabled(false);
    for (int64_t i = 0; i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        if (slot->tied)
            continue;
        wg_copy_(slot->tensor, take_like(file, slot->tensor));
        wg_zero_grad(slot->tensor);
    }
    wg_set_grad_enabled(recording);
}

/* ---- Beside PyTorch ---- */

/* Forward and backward in one dtype; every number has to be within `tolerance`, relative and
 * absolute. */
static void hold_against_file(const layer_case *test, void *layer, wg_dtype dtype,
                              double tolerance) {
    ck_assert_int_eq(wg_module_to(layer, dtype), 0);
    wg_state_dict *state = wg_module_state(layer);
    layer_file file = {fixture_tensor("layers/%s", test->file ? test->file : test->name), 0};
    wg_tensor *inputs[2];
    for (int i = 0; i < test->input_count; i++) {
        const int64_t *shape = test->input_shapes[i];
        inputs[i] = wg_clone(take(&file, dtype, rank_of(shape), shape));
        wg_set_requires_grad(inputs[i], true);
    }
    load_parameters(state, &file);
    wg_tensor *y = test->forward(layer, inputs, test->given);
    assert_no_error();
    wg_tensor *cotangent = take_like(&file, y);
    assert_close(y, take_like(&file, y), tolerance, tolerance);
    ck_assert_int_eq(wg_backward(y, &(wg_backward_options){.cotangent = cotangent}), 0);
    for (int i = 0; i < test->input_count; i++)
        assert_close(wg_gradient(inputs[i]), take_like(&file, inputs[i]), tolerance, tolerance);
    for (int64_t i = 0; i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        if (!slot->tied)
            assert_close(wg_gradient(slot->tensor), take_like(&file, slot->tensor), tolerance,
                         tolerance);
    }
    ck_assert_int_eq(file.at, wg_tensor_count(file.flat));
    wg_state_dict_free(state);
}

START_TEST(outputs_and_gradients_equal_pytorch) {
    const layer_case *test = cases[_i];
    if (test->held_by)
        return;
    void *layer = test->make(test->options);
    assert_no_error();
    wg_module_train(layer, !test->modes_differ);
    hold_against_file(test, layer, WG_F64, 1e-11);
    hold_against_file(test, layer, WG_F32, 2e-5);
    wg_module_free(layer);
}
END_TEST

/* ---- Beside central differences ---- */

typedef struct under_check {
    const layer_case *test;
    void *layer;
} under_check;

static int run(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
               void *context) {
    (void)input_count, (void)output_count;
    const under_check *c = context;
    outputs[0] = c->test->forward(c->layer, inputs, c->test->given);
    return outputs[0] ? 0 : -1;
}

/* Replaces the initial ones and zeros of norms and biases, which would hide mistakes. */
static void spread_parameters(wg_module *layer) {
    wg_state_dict *state = wg_module_state(layer);
    const wg_initializer how = {WG_INIT_NORMAL, 0.5};
    for (int64_t i = 0; i < state->count; i++)
        if (state->entries[i].slot->kind == WG_SLOT_PARAMETER)
            wg_initialize(state->entries[i].slot->tensor, &how, wg_module_generator(layer));
    wg_state_dict_free(state);
}

/* Checks every coordinate of every input and parameter, then second derivatives and forward mode by
 * random projections. */
static void check_slopes(under_check *c, wg_tensor *const *inputs) {
    static const wg_gradcheck_options whole = {.seed = 1},
                                      deeper = {.order = 2, .forward = true, .fast = true};
    const int count = c->test->input_count;
    int64_t coordinates = wg_module_parameter_count(c->layer);
    for (int i = 0; i < count; i++)
        coordinates += wg_tensor_count(inputs[i]);
    wg_gradcheck_report report;
    int status = wg_gradcheck_module(c->layer, run, c, count, inputs, 1, &whole, &report);
    ck_assert_msg(status == 0, "%s", report.message);
    ck_assert_int_eq(report.compared, coordinates);
    status = wg_gradcheck_module(c->layer, run, c, count, inputs, 1, &deeper, &report);
    ck_assert_msg(status == 0, "%s", report.message);
    ck_assert_int_eq(report.order, 2);
}

START_TEST(gradients_are_the_slopes_of_the_forward) {
    const layer_case *test = cases[_i];
    if (test->no_slope)
        return;
    wg_manual_seed(17);
    under_check c = {test, test->make(test->options)};
    assert_no_error();
    spread_parameters(c.layer);
    wg_generator generator = {.seed = 3};
    wg_tensor *inputs[2];
    for (int i = 0; i < test->input_count; i++) {
        const int64_t *shape = test->input_shapes[i];
        inputs[i] = wg_randn(&generator, WG_F64, rank_of(shape), shape);
        wg_set_requires_grad(inputs[i], true);
    }
    check_slopes(&c, inputs);
    if (test->modes_differ) {
        wg_module_train(c.layer, false);
        check_slopes(&c, inputs);
    }
    wg_module_free(c.layer);
}
END_TEST

void add_layer_suite(const char *name, int count, const layer_case *table) {
    const TTest *const of_each[] = {outputs_and_gradients_equal_pytorch,
                                    gradients_are_the_slopes_of_the_forward};
    const int first = cases_count;
    if (cases_count + count > MOST_CASES) {
        fprintf(stderr, "more than %d cases of layers: raise MOST_CASES\n", MOST_CASES);
        exit(1);
    }
    for (int i = 0; i < count; i++)
        cases[cases_count++] = &table[i];
    add_suite_of_range(name, WG_COUNT(of_each), of_each, first, cases_count, case_name);
}
