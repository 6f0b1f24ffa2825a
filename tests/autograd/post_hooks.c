/* Hooks that run when a leaf's gradient is complete: when they are called, and what they may do to
 * the leaf during the pass. */
#include "autograd/functional.h"

#include "autograd/internal.h"
#include "tensor/ops.h"
#include "tests/autograd/leaves.h"
#include "tests/support/tensors.h"

/* The calls of a hook. */
typedef struct record {
    int calls, order;
    double first, second; /* the gradient that it saw last */
    wg_tensor *own;       /* the tensor that the hook is on, if it is to remove itself */
    int id;
} record;

static int calls; /* of `watch`, in this test */

static int watch(wg_tensor *x, void *context) {
    record *seen = context;
    seen->calls++;
    seen->order = ++calls;
    seen->first = wg_at(wg_gradient(x), (int64_t[]){0});
    seen->second = wg_at(wg_gradient(x), (int64_t[]){1});
    return seen->own ? wg_remove_hook(seen->own, seen->id) : 0;
}

static void assert_saw(const record *seen, int times, double first, double second) {
    ck_assert_int_eq(seen->calls, times);
    ck_assert_double_eq_tol(seen->first, first, 1e-12);
    ck_assert_double_eq_tol(seen->second, second, 1e-12);
}

/* x -= g, then the gradient is freed. */
static int descend(wg_tensor *x, void *context) {
    (void)context;
    int status = wg_add_(x, wg_gradient(x), -1);
    wg_zero_grad(x);
    return status;
}

static int refuse(wg_tensor *x, void *context) {
    (void)x, (void)context;
    return wg_fail(WG_ERROR_STATE, "hook", "wants no more");
}

static int refuse_in_silence(wg_tensor *x, void *context) {
    (void)x, (void)context;
    return -1;
}

/* ---- When ---- */

TEST(a_hook_is_called_once_when_all_uses_have_contributed) {
    wg_tensor *x = leaf(1, 2);
    record seen = {0};
    ck_assert_int_gt(wg_register_post_accumulate_grad_hook(x, watch, &seen), 0);
    backward_from(sum(wg_add(wg_mul(x, x), wg_exp(wg_mul_scalar(wg_mul(x, x), 0)))), NULL);
    assert_saw(&seen, 1, 2, 4);
    assert_values(wg_gradient(x), 2, 4);
}

TEST(a_hook_sees_what_earlier_passes_left_added) {
    wg_tensor *x = leaf(1, 2);
    record seen = {0};
    wg_register_post_accumulate_grad_hook(x, watch, &seen);
    for (int pass = 1; pass <= 3; pass++) {
        wg_backward(sum(wg_mul(x, x)), NULL);
        assert_saw(&seen, pass, 2 * pass, 4 * pass);
    }
    assert_no_error();
}

TEST(a_leaf_that_no_gradient_comes_to_is_not_called) {
    wg_tensor *x = leaf(1, 2), *y = leaf(3, 4);
    record seen = {0};
    wg_register_post_accumulate_grad_hook(x, watch, &seen);
    backward_from(sum(wg_mul(y, y)), NULL);
    ck_assert_int_eq(seen.calls, 0);
}

TEST(leaves_are_called_as_backward_comes_to_them_and_tied_ones_last) {
    enum { DEPTH = 5 };
    wg_tensor *tied = leaf(1, 2), *layers[DEPTH], *x = wg_mul(tied, tied);
    record seen[DEPTH + 1] = {0};
    calls = 0;
    wg_register_post_accumulate_grad_hook(tied, watch, &seen[DEPTH]);
    for (int i = 0; i < DEPTH; i++) {
        layers[i] = leaf(1 + 0.1 * i, 2);
        wg_register_post_accumulate_grad_hook(layers[i], watch, &seen[i]);
        x = i % 2 == 0 ? wg_mul(layers[i], x) : wg_mul(x, layers[i]);
    }
    backward_from(sum(wg_mul(tied, x)), NULL);
    for (int i = 0; i < DEPTH; i++)
        ck_assert_int_eq(seen[i].order, DEPTH - i);
    ck_assert_int_eq(seen[DEPTH].order, DEPTH + 1);
}

TEST(the_functional_form_calls_none) {
    wg_tensor *x = leaf(1, 2), *y = sum(wg_mul(x, x)), *gradient;
    record seen = {0};
    wg_register_post_accumulate_grad_hook(x, watch, &seen);
    ck_assert_int_eq(wg_grad(1, &y, NULL, 1, &x, NULL, &gradient), 0);
    ck_assert_int_eq(seen.calls, 0);
    assert_values(gradient, 2, 4);
}

TEST(hooks_run_in_the_order_in_which_they_were_registered) {
    wg_tensor *x = leaf(1, 2);
    record first = {0}, second = {0};
    calls = 0;
    wg_register_post_accumulate_grad_hook(x, watch, &first);
    wg_register_post_accumulate_grad_hook(x, watch, &second);
    wg_register_post_accumulate_grad_hook(x, descend, NULL);
    backward_from(sum(wg_mul(x, x)), NULL);
    ck_assert_int_eq(first.order, 1);
    ck_assert_int_eq(second.order, 2);
    assert_values(x, 1 - 2, 2 - 4);
}

static wg_tensor *triple(wg_tensor *gradient, void *context) {
    (void)context;
    return wg_mul_scalar(gradient, 3);
}

TEST(a_hook_sees_what_a_hook_on_the_gradient_made_of_it) {
    wg_tensor *x = leaf(1, 2);
    record seen = {0};
    wg_register_post_accumulate_grad_hook(x, watch, &seen);
    wg_register_hook(x, triple, NULL);
    for (int pass = 1; pass <= 2; pass++) {
        wg_backward(sum(wg_mul(x, x)), NULL);
        assert_saw(&seen, pass, 6 * pass, 12 * pass);
    }
    assert_no_error();
}

TEST(a_removed_hook_is_called_no_more_and_may_remove_itself) {
    wg_tensor *x = leaf(1, 2);
    record once = {.own = x}, twice = {0};
    once.id = wg_register_post_accumulate_grad_hook(x, watch, &once);
    int id = wg_register_post_accumulate_grad_hook(x, watch, &twice);
    for (int pass = 0; pass < 2; pass++)
        backward_from(sum(wg_mul(x, x)), NULL);
    ck_assert_int_eq(once.calls, 1);
    ck_assert_int_eq(twice.calls, 2);
    ck_assert_int_eq(wg_remove_hook(x, id), 0);
    wg_backward(sum(wg_mul(x, x)), NULL);
    ck_assert_int_eq(twice.calls, 2);
    failed(wg_remove_hook(x, once.id), ARGUMENT, "no hook");
}

TEST(a_hook_outlives_the_handle_that_it_was_registered_for) {
    wg_tensor *x = wg_keep(leaf(1, 2)), *y = sum(wg_mul(x, x));
    record seen = {0};
    wg_register_post_accumulate_grad_hook(x, watch, &seen);
    wg_register_post_accumulate_grad_hook(x, descend, NULL);
    wg_release(x);
    backward_from(y, NULL);
    assert_saw(&seen, 1, 2, 4);
}

/* ---- Writing to the leaf while the pass goes on ---- */

TEST(a_leaf_that_is_stepped_at_once_is_as_one_stepped_after_the_pass) {
    wg_tensor *ends[2][3];
    for (int at_once = 0; at_once < 2; at_once++) {
        wg_tensor *tied = leaf(0.5, -0.25), *w = leaf(1.5, 0.75), *b = leaf(-1, 2);
        wg_tensor *leaves[] = {tied, w, b};
        for (int i = 0; i < 3 && at_once; i++)
            wg_register_post_accumulate_grad_hook(leaves[i], descend, NULL);
        for (int step = 0; step < 4; step++) {
            wg_tensor *h = wg_tanh(wg_add(wg_mul(wg_exp(tied), w), b));
            ck_assert_int_eq(wg_backward(sum(wg_mul(wg_mul(h, w), tied)), NULL), 0);
            for (int i = 0; i < 3 && !at_once; i++) {
                wg_set_grad_enabled(false);
                descend(leaves[i], NULL);
                wg_set_grad_enabled(true);
            }
            for (int i = 0; i < 3; i++)
                ck_assert_ptr_null(wg_gradient(leaves[i]));
        }
        for (int i = 0; i < 3; i++)
            ends[at_once][i] = wg_clone(wg_detach(leaves[i]));
    }
    assert_no_error();
    for (int i = 0; i < 3; i++)
        assert_close(ends[1][i], ends[0][i], 0, 0);
}

enum { LAYERS = 12, SIDE = 128 };

/* Bytes in use at the peak of a pass through LAYERS products, above those before it. */
static int64_t peak_of_backward(wg_post_accumulate_grad_hook hook) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x = wg_ones(WG_F32, WG_DIMS(1, SIDE));
    for (int i = 0; i < LAYERS; i++) {
        wg_tensor *w = leaf_of(wg_full(WG_F32, WG_DIMS(SIDE, SIDE), 0.001));
        if (hook)
            wg_register_post_accumulate_grad_hook(w, hook, NULL);
        x = wg_matmul(x, w);
    }
    wg_tensor *loss = sum(x);
    const int64_t before = peak_begin();
    wg_backward(loss, NULL);
    const int64_t bytes = peak_end(before);
    wg_scope_end(&scope, NULL);
    return bytes;
}

TEST(gradients_that_hooks_drop_are_never_all_in_memory) {
    const int64_t gradient = SIDE * SIDE * 4;
    ck_assert_int_ge(peak_of_backward(NULL), LAYERS * gradient);
    ck_assert_int_lt(peak_of_backward(descend), 2 * gradient);
    assert_no_error();
}

TEST(what_still_needs_the_leaf_as_it_was_is_an_error) {
    wg_tensor *x = leaf(1, 2), *w = leaf(3, 4);
    wg_register_post_accumulate_grad_hook(x, descend, NULL);
    wg_tensor *y = wg_mul(w, wg_detach(x)); /* the result has no edge to x */
    failed(wg_backward(sum(wg_mul(wg_exp(y), x)), NULL), GRADIENT,
           "was written in place after it was saved");
    y = wg_exp(wg_mul(x, w));
    ck_assert_int_eq(wg_backward(sum(y), &(wg_backward_options){.retain_graph = true}), 0);
    failed(wg_backward(sum(y), NULL), GRADIENT, "was written in place after it was saved");
}

/* exp(x) w + b: the last op saves nothing, so backward needs no second run for it. */
static int affine(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                  void *context) {
    wg_tensor *const *leaves = context;
    (void)input_count, (void)output_count;
    outputs[0] = wg_add(wg_mul(wg_exp(inputs[0]), leaves[0]), leaves[1]);
    return outputs[0] ? 0 : -1;
}

TEST(a_recomputed_function_runs_again_before_its_leaves_are_written) {
    wg_tensor *ends[2][3];
    for (int again = 0; again < 2; again++) {
        wg_tensor *x = leaf(0.5, 0.25), *w = leaf(3, 4), *b = leaf(5, 6), *y;
        wg_tensor *leaves[] = {w, b, x};
        for (int i = 0; i < 3; i++)
            wg_register_post_accumulate_grad_hook(leaves[i], descend, NULL);
        if (again)
            wg_activation_checkpoint(affine, leaves, 1, &x, 1, &y, NULL);
        else
            affine(1, &x, 1, &y, leaves);
        ck_assert_int_eq(wg_backward(sum(y), NULL), 0);
        assert_no_error();
        for (int i = 0; i < 3; i++)
            ends[again][i] = wg_clone(wg_detach(leaves[i]));
    }
    for (int i = 0; i < 3; i++)
        assert_close(ends[1][i], ends[0][i], 0, 0);
}

/* exp(x + b), where b has no edge: the output that exp saves is computed from b. */
FUNCTION(shifted, wg_exp(wg_add(x, wg_detach(context))))

TEST(a_recomputed_function_that_needs_the_leaf_as_it_was_is_an_error) {
    wg_tensor *x = leaf(1, 2), *b = leaf(3, 4), *y;
    wg_register_post_accumulate_grad_hook(b, descend, NULL);
    wg_activation_checkpoint(shifted, b, 1, &x, 1, &y, NULL);
    failed(wg_backward(sum(wg_mul(y, b)), NULL), GRADIENT,
           "written in place between the first run");
}

/* ---- What goes wrong ---- */

TEST(a_hook_that_fails_stops_the_pass_and_the_gradient_stays) {
    const wg_post_accumulate_grad_hook hooks[] = {refuse, refuse_in_silence};
    for (size_t i = 0; i < WG_COUNT(hooks); i++) {
        wg_tensor *x = leaf(1, 2), *w = leaf(3, 4);
        wg_register_post_accumulate_grad_hook(w, hooks[i], NULL);
        ck_assert_int_eq(wg_backward(sum(wg_mul(wg_exp(x), w)), NULL), -1);
        if (i == 0)
            assert_error(WG_ERROR_STATE, "wants no more");
        else
            assert_error(WG_ERROR_GRADIENT, "a hook on the gradient of a leaf failed");
        assert_values(wg_gradient(w), 2.718281828459045, 7.38905609893065);
        ck_assert_ptr_null(wg_gradient(x));
    }
}

TEST(only_leaves_that_want_a_gradient_have_them) {
    wg_tensor *x = leaf(1, 2);
    failed(wg_register_post_accumulate_grad_hook(wg_exp(x), watch, NULL), GRADIENT,
           "was computed by exp; only leaves keep a gradient");
    failed(wg_register_post_accumulate_grad_hook(wg_detach(x), watch, NULL), GRADIENT,
           "requires no gradient");
    ck_assert_int_eq(wg_register_post_accumulate_grad_hook(NULL, watch, NULL), -1);
}

static int step(wg_tensor *x) {
    record seen = {0};
    return wg_register_post_accumulate_grad_hook(x, watch, &seen) < 0 ||
                   wg_register_post_accumulate_grad_hook(x, descend, NULL) < 0
               ? -1
               : wg_backward(sum(wg_mul(x, x)), NULL);
}

TEST(lack_of_memory_anywhere_is_an_error_and_no_leak) {
    assert_no_leak_without_memory(step);
}
