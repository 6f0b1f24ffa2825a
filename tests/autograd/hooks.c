/* Hooks on gradients: when they are called, on what, and what they may change. */
#include "autograd/functional.h"

#include "tensor/ops.h"
#include "tests/autograd/leaves.h"
#include "tests/support/tensors.h"

/* The calls of a hook. */
typedef struct record {
    int calls;
    double first, second; /* the gradient that it was given last */
    double factor;        /* 0: leaves the gradient */
    wg_tensor *own;       /* the tensor that the hook is on, if it is to remove itself */
    int id;
} record;

static wg_tensor *watch(wg_tensor *gradient, void *context) {
    record *seen = context;
    seen->calls++;
    seen->first = wg_at(gradient, (int64_t[]){0});
    seen->second = wg_at(gradient, (int64_t[]){1});
    if (seen->own)
        wg_remove_hook(seen->own, seen->id);
    return seen->factor != 0 ? wg_mul_scalar(gradient, seen->factor) : NULL;
}

static void assert_saw(const record *seen, int calls, double first, double second) {
    ck_assert_int_eq(seen->calls, calls);
    ck_assert_double_eq_tol(seen->first, first, 1e-12);
    ck_assert_double_eq_tol(seen->second, second, 1e-12);
}

static wg_tensor *refuse(wg_tensor *gradient, void *context) {
    (void)gradient, (void)context;
    wg_fail(WG_ERROR_STATE, "hook", "wants no more");
    return NULL;
}

static wg_tensor *shrink(wg_tensor *gradient, void *context) {
    (void)context;
    return wg_slice(gradient, 0, 0, 1, 1);
}

TEST(a_hook_on_an_intermediate_sees_its_whole_gradient_once) {
    wg_tensor *x = leaf(1, 2), *y = wg_mul(x, x);
    record seen = {0};
    ck_assert_int_gt(wg_register_hook(y, watch, &seen), 0);
    backward_from(sum(wg_add(wg_mul_scalar(y, 3), wg_mul(y, y))), NULL);
    assert_saw(&seen, 1, 3 + 2, 3 + 8);
    assert_values(wg_gradient(x), 2 * 5, 4 * 11);
}

TEST(a_returned_tensor_takes_the_place_of_the_gradient) {
    wg_tensor *x = leaf(1, 2), *y = wg_mul(x, x);
    record seen = {.factor = 10};
    wg_register_hook(y, watch, &seen);
    wg_retain_grad(y);
    backward_from(sum(y), NULL);
    assert_values(wg_gradient(y), 10, 10);
    assert_values(wg_gradient(x), 20, 40);
}

/* The gradient that the leaf had accumulated before is not part of it. */
TEST(a_hook_on_a_leaf_sees_the_gradient_of_its_pass) {
    wg_tensor *x = leaf(1, 2);
    record seen = {.factor = 0.5};
    wg_backward(sum(wg_mul_scalar(x, 100)), NULL);
    wg_register_hook(x, watch, &seen);
    for (int pass = 1; pass <= 2; pass++) {
        backward_from(sum(wg_add(wg_mul(x, x), x)), NULL);
        assert_saw(&seen, pass, 3, 5);
        assert_values(wg_gradient(x), 100 + pass * 1.5, 100 + pass * 2.5);
    }
}

TEST(hooks_run_in_order_each_on_what_the_one_before_left) {
    wg_tensor *x = leaf(1, 2);
    record first = {.factor = 10}, second = {.factor = 7}, third = {0};
    wg_register_hook(x, watch, &first);
    wg_register_hook(x, watch, &second);
    wg_register_hook(x, watch, &third);
    wg_backward(sum(x), NULL);
    assert_saw(&second, 1, 10, 10);
    assert_saw(&third, 1, 70, 70);
    assert_values(wg_gradient(x), 70, 70);
}

TEST(a_removed_hook_is_called_no_more) {
    wg_tensor *x = leaf(1, 2);
    record removed = {.factor = 10}, itself = {.own = x}, stays = {0};
    int id = wg_register_hook(x, watch, &removed);
    itself.id = wg_register_hook(x, watch, &itself);
    wg_register_hook(x, watch, &stays);
    ck_assert_int_eq(wg_remove_hook(x, id), 0);
    for (int pass = 0; pass < 2; pass++)
        backward_from(sum(x), NULL);
    ck_assert_int_eq(removed.calls, 0);
    ck_assert_int_eq(itself.calls, 1);
    ck_assert_int_eq(stays.calls, 2);
    failed(wg_remove_hook(x, id), ARGUMENT, "no hook");
    ck_assert_int_eq(wg_remove_hook(NULL, id), -1);
}

TEST(the_functional_form_calls_hooks) {
    wg_tensor *x = leaf(1, 2), *y = wg_mul(x, x), *loss = sum(y);
    record of_y = {.factor = 10}, of_x = {.factor = 3};
    wg_tensor *inputs[] = {x, y}, *found[2];
    wg_register_hook(y, watch, &of_y);
    wg_register_hook(x, watch, &of_x);
    ck_assert_int_eq(wg_grad(1, &loss, NULL, 2, inputs, NULL, found), 0);
    assert_saw(&of_y, 1, 1, 1);
    assert_saw(&of_x, 1, 20, 40);
    assert_values(found[1], 10, 10);
    assert_values(found[0], 60, 120);
    ck_assert_ptr_null(wg_gradient(x));
}

/* d/dx of 10 * 2 x is 20. */
TEST(what_a_hook_does_is_recorded_under_create_graph) {
    wg_tensor *x = leaf(1, 2), *loss = sum(wg_mul(x, x)), *first, *second;
    record seen = {.factor = 10};
    wg_register_hook(x, watch, &seen);
    const wg_backward_options recorded = {.create_graph = true};
    ck_assert_int_eq(wg_grad(1, &loss, NULL, 1, &x, &recorded, &first), 0);
    seen.factor = 0;
    wg_tensor *total = sum(first);
    ck_assert_int_eq(wg_grad(1, &total, NULL, 1, &x, NULL, &second), 0);
    assert_values(second, 20, 20);
}

/* The parts of a split are outputs of one node or of several; each has its own hooks. */
TEST(a_hook_is_of_one_output) {
    wg_tensor *x = leaf(3, 1), *parts[2];
    wg_tensor *wide = wg_reshape(wg_stack(2, (wg_tensor *[]){x, x}, 0), WG_DIMS(4));
    record seen = {.factor = 10};
    ck_assert_int_eq(wg_chunk(wide, 0, 2, parts), 0);
    wg_register_hook(parts[1], watch, &seen);
    backward_from(sum(wg_add(parts[0], wg_mul_scalar(parts[1], 2))), NULL);
    assert_saw(&seen, 1, 2, 2);
    assert_values(wg_gradient(x), 21, 21);
}

TEST(what_a_hook_does_wrong_stops_the_pass) {
    wg_tensor *x = leaf(1, 2), *y = wg_mul(x, x);
    wg_register_hook(y, shrink, NULL);
    failed(wg_backward(sum(y), NULL), GRADIENT,
           "a hook on the gradient of mul returned (1) f64; wanted (2)");
    y = wg_mul(x, x);
    wg_register_hook(y, refuse, NULL);
    failed(wg_backward(sum(y), NULL), STATE, "wants no more");
    ck_assert_ptr_null(wg_gradient(x));
}

TEST(a_tensor_that_wants_no_gradient_has_no_hooks) {
    failed(wg_register_hook(vector(1, 2), watch, NULL), GRADIENT, "requires no gradient");
    ck_assert_int_eq(wg_register_hook(NULL, watch, NULL), -1);
}

static int step(wg_tensor *x) {
    record seen = {.factor = 2};
    wg_tensor *y = wg_mul(x, x);
    return wg_register_hook(y, watch, &seen) < 0 || wg_register_hook(x, watch, &seen) < 0
               ? -1
               : wg_backward(sum(y), NULL);
}

TEST(lack_of_memory_anywhere_is_an_error_and_no_leak) {
    assert_no_leak_without_memory(step);
}
