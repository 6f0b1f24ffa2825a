/* Anomaly mode names the op that made the first NaN and its caller. Each test runs in a process of
 * its own, so the mode ends with it even if it fails. */
#include "autograd/functional.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tensor/ops.h"
#include "tests/autograd/leaves.h"
#include "tests/support/tensors.h"

/* A caller with a symbol, which is not inlined. */
wg_tensor *take_the_root(wg_tensor *x);

__attribute__((noinline, visibility("default"))) wg_tensor *take_the_root(wg_tensor *x) {
    wg_tensor *y = wg_sqrt(x);
    return wg_alias(y);
}

/* Fails unless the pending error contains each of the parts; clears it. */
static void assert_blamed(int count, const char *const *parts) {
    const wg_error *error = wg_error_pending();
    ck_assert_msg(error && error->code == WG_ERROR_ANOMALY, "the error is %s",
                  error ? error->message : "missing");
    for (int i = 0; i < count; i++)
        ck_assert_msg(strstr(error->message, parts[i]), "\"%s\" is not in \"%s\"", parts[i],
                      error->message);
    wg_error_clear();
}

#define BLAMED(...)                                                                                \
    assert_blamed((int)WG_COUNT(((const char *[]){__VA_ARGS__})), (const char *[]){__VA_ARGS__})

TEST(the_mode_is_off_at_first_and_says_what_it_was) {
    ck_assert(wg_requires_grad(leaf(1, 1)));
    ck_assert(!wg_set_anomaly_mode(true));
    ck_assert(wg_set_anomaly_mode(false));
    ck_assert(!wg_set_anomaly_mode(false));
    ck_assert_ptr_nonnull(wg_sqrt(leaf(4, -1)));
    assert_no_error();
}

TEST(a_forward_that_makes_a_nan_is_named_with_its_caller) {
    wg_set_anomaly_mode(true);
    ck_assert_ptr_null(take_the_root(leaf(4, -1)));
    BLAMED("sqrt: (2) f64: ", "output 0 at (1)", "called by take_the_root in test_autograd+0x");
}

/* addr2line accepts the offset, and it leads back to this program's function, into which the op's
 * function of ops.h may be inlined. */
TEST(the_offset_of_the_caller_lies_in_the_caller) {
    wg_set_anomaly_mode(true);
    take_the_root(leaf(4, -1));
    const char *at = strstr(wg_error_pending()->message, "test_autograd+");
    unsigned long offset = 0;
    ck_assert(at && sscanf(at, "test_autograd+%lx", &offset) == 1);
    wg_error_clear();
    char command[256], line[256] = "";
    bool found = false;
    snprintf(command, sizeof command, "addr2line -i -f -e /proc/%d/exe %#lx 2>&1", (int)getpid(),
             offset);
    FILE *stream = popen(command, "r");
    if (!stream || !fgets(line, sizeof line, stream) || strstr(line, "not found"))
        printf("# skips for want of addr2line\n");
    else {
        do
            found = found || strncmp(line, "take_the_root", 13) == 0;
        while (fgets(line, sizeof line, stream));
        ck_assert_msg(found, "addr2line ends with %s", line);
    }
    if (stream)
        pclose(stream);
}

TEST(a_nan_that_came_in_is_nobodys_fault) {
    wg_set_anomaly_mode(true);
    wg_tensor *x = leaf(4, NAN);
    backward_from(sum(wg_add(wg_mul_scalar(wg_add(x, x), 3), x)), NULL);
    wg_backward_options options = {.cotangent = wg_detach(x)};
    wg_backward(wg_exp(x), &options);
    assert_no_error();
    ck_assert_int_eq(wg_backward(sum(wg_exp(x)), NULL), -1);
    BLAMED("exp: (2) f64: its vjp", "cotangents without one (but the forward call had one)");
}

/* The derivative of the square root at 0 is infinite; times a cotangent of 0 it is NaN. */
TEST(a_vjp_that_makes_a_nan_is_named_with_the_forward_call) {
    wg_set_anomaly_mode(true);
    wg_tensor *x = leaf(4, 0);
    wg_tensor *y = take_the_root(x), *z = wg_mul_scalar(y, 0);
    ck_assert_int_eq(wg_backward(sum(z), NULL), -1);
    BLAMED("sqrt: (2) f64: its vjp", "operand 0 at (1)", "call 1, recorded by take_the_root in ");
    ck_assert_ptr_null(wg_gradient(x));
}

TEST(a_call_from_before_the_mode_is_named_without_a_caller) {
    wg_tensor *y = wg_mul_scalar(take_the_root(leaf(4, 0)), 0);
    wg_set_anomaly_mode(true);
    ck_assert_int_eq(wg_backward(sum(y), NULL), -1);
    BLAMED("sqrt: (2) f64: its vjp", "recorded before anomaly mode was on");
}

TEST(a_vjp_of_a_vjp_is_named_with_the_op_within_which_it_was_recorded) {
    wg_set_anomaly_mode(true);
    wg_tensor *x = leaf(4, 0), *roots = sum(take_the_root(x)), *first, *second;
    const wg_backward_options recorded = {.create_graph = true};
    ck_assert_int_eq(wg_grad(1, &roots, NULL, 1, &x, &recorded, &first), 0); /* (0.25, inf) */
    wg_tensor *zero = wg_zeros_like(x);
    ck_assert_int_eq(wg_grad(1, &first, &zero, 1, &x, NULL, &second), -1);
    BLAMED("its vjp made a NaN", "recorded in the vjp of sqrt of call 1 by ");
}

/* If all targets are ignored, the loss is 0 / 0. */
TEST(fused_ops_are_asked_as_a_whole) {
    wg_tensor *x = wg_ones(WG_F64, WG_DIMS(1, 3)), *target = wg_full(WG_I64, WG_DIMS(1), -100);
    wg_set_anomaly_mode(true);
    wg_cross_entropy(x, target, -100, NULL);
    BLAMED("cross_entropy: (1, 3) f64 x (1) i64: it made a NaN", "output 0 at ()");
    wg_set_requires_grad(x, true);
    wg_tensor *y = wg_layer_norm_op(x, NULL, NULL, 1e-5);
    wg_backward_options options = {.cotangent = wg_full(WG_F64, WG_DIMS(1, 3), INFINITY)};
    ck_assert_int_eq(wg_backward(y, &options), -1);
    BLAMED("layer_norm: (1, 3) f64", "its vjp made a NaN", "operand 0 at (0, 0)");
    options.create_graph = true; /* by the decomposition */
    ck_assert_int_eq(wg_backward(wg_layer_norm_op(x, NULL, NULL, 1e-5), &options), -1);
    BLAMED("layer_norm: (1, 3) f64", "its vjp made a NaN");
}

FUNCTION(roots, take_the_root(x))

FUNCTION(losses, wg_cross_entropy(x, context, -100, NULL))

TEST(forward_mode_is_asked_too) {
    wg_tensor *x = leaf(4, 0), *v = wg_zeros_like(x), *tangent;
    wg_set_anomaly_mode(true);
    ck_assert_int_eq(wg_jvp(roots, NULL, 1, &x, &v, 1, NULL, &tangent), -1);
    BLAMED("sqrt: (2) f64: its jvp made a NaN", "output 0 at (1)", "called by take_the_root");
    x = leaf(4, -1);
    ck_assert_int_eq(wg_jvp(roots, NULL, 1, &x, &v, 1, NULL, &tangent), -1);
    BLAMED("sqrt: (2) f64: it made a NaN", "called by take_the_root");
    x = v = wg_ones(WG_F64, WG_DIMS(1, 3));
    wg_tensor *target = wg_full(WG_I64, WG_DIMS(1), -100);
    ck_assert_int_eq(wg_jvp(losses, target, 1, &x, &v, 1, NULL, &tangent), -1);
    BLAMED("cross_entropy: (1, 3) f64 x (1) i64: it made a NaN");
}

static void *root_of_minus_one(void *found) {
    wg_scope scope;
    wg_scope_begin(&scope);
    *(double *)found = wg_item(wg_sqrt(wg_scalar(WG_F64, -1)));
    wg_scope_end(&scope, NULL);
    return wg_error_pending() ? NULL : found;
}

TEST(the_mode_is_of_one_thread) {
    wg_set_anomaly_mode(true);
    pthread_t thread;
    double found = 0;
    void *status;
    ck_assert_int_eq(pthread_create(&thread, NULL, root_of_minus_one, &found), 0);
    pthread_join(thread, &status);
    ck_assert(status && isnan(found));
}

TEST(gradients_are_the_same_in_anomaly_mode) {
    wg_generator generator = {.seed = 3};
    wg_tensor *w = wg_randn(&generator, WG_F32, WG_DIMS(8, 8)), *gradients[2];
    wg_tensor *target = wg_zeros(WG_I64, WG_DIMS(8));
    wg_set_requires_grad(w, true);
    for (int on = 0; on < 2; on++) {
        wg_set_anomaly_mode(on);
        wg_zero_grad(w);
        wg_tensor *h =
            wg_layer_norm_op(wg_linear_op(wg_linear_op(w, w, NULL), w, NULL), NULL, NULL, 1e-5);
        backward_from(wg_cross_entropy(h, target, -100, NULL), NULL);
        gradients[on] = wg_clone(wg_gradient(w));
    }
    assert_close(gradients[1], gradients[0], 1e-5, 1e-7); /* weights are not summed in place */
}

static int step(wg_tensor *x) {
    return wg_backward(sum(wg_exp(wg_sqrt(x))), NULL);
}

TEST(lack_of_memory_anywhere_is_an_error_and_no_leak) {
    wg_set_anomaly_mode(true);
    assert_no_leak_without_memory(step);
}
