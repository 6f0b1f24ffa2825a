/* The limits of backward: a million nodes on a small stack, several threads, little memory. */
#include "autograd/autograd.h"

#include <math.h>
#include <pthread.h>

#include "base/alloc.h"
#include "tensor/ops.h"
#include "tests/autograd/leaves.h"
#include "tests/support/tensors.h"

/* A leaf of one element. */
static wg_tensor *number(double value) {
    wg_tensor *x = leaf_of(wg_full(WG_F64, WG_DIMS(1), value));
    return x;
}

static wg_tensor *square(wg_tensor *x) {
    return wg_mul(x, x);
}

/* ---- Large graphs, on a small stack ---- */

#define MILLION 1000000

/* x + 1 + 1 + ..., kept. Only its last tensor has a handle, and holds all nodes. */
static wg_tensor *chain(const wg_tensor *x, int64_t length) {
    wg_tensor *last = wg_keep(wg_alias((wg_tensor *)x));
    for (int64_t i = 0; i < length && last; i++) {
        wg_tensor *next = wg_keep(wg_add_scalar(last, 1));
        wg_release(last);
        last = next;
    }
    return last;
}

static void *release_a_long_chain(void *blocks) {
    wg_tensor *x = number(1), *y = chain(x, MILLION);
    *(int64_t *)blocks = wg_alloc_get_stats().live_blocks;
    wg_release(y);
    return blocks;
}

static void *walk_a_long_chain(void *gradient) {
    wg_tensor *x = number(1), *y = chain(x, MILLION);
    backward_from(y, NULL);
    *(double *)gradient = wg_item(wg_gradient(x));
    wg_release(y);
    return gradient;
}

/* One stack frame a node would need far more than this. */
#define SMALL_STACK ((size_t)256 << 10)

static void run_on_small_stack(void *(*body)(void *), void *argument) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, SMALL_STACK), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, body, argument), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

TEST(a_chain_of_a_million_nodes_is_freed) {
    int64_t blocks = 0;
    run_on_small_stack(release_a_long_chain, &blocks);
    ck_assert_int_gt(blocks, MILLION);
    ck_assert_int_eq(wg_tensors_alive(), 0);
    ck_assert_int_eq(wg_alloc_get_stats().live_blocks, 0);
}

TEST(a_chain_of_a_million_nodes_is_walked) {
    double gradient = 0;
    run_on_small_stack(walk_a_long_chain, &gradient);
    ck_assert_double_eq(gradient, 1);
    ck_assert_int_eq(wg_tensors_alive(), 0);
}

/* ---- Threads ---- */

static void *train_alone(void *argument) {
    double *result = argument;
    wg_tensor *x = number(*result);
    for (int step = 0; step < 200; step++)
        IN_SCOPE() {
            wg_backward(sum(square(wg_add_scalar(x, -3))), NULL); /* minimum at 3 */
            wg_set_grad_enabled(false);
            wg_add_(x, wg_gradient(x), -0.1);
            wg_set_grad_enabled(true);
            wg_zero_grad(x);
        }
    *result = wg_error_pending() ? NAN : wg_item(x);
    return NULL; /* x is freed with the thread's root scope */
}

TEST(threads_train_side_by_side_in_their_own_scopes) {
    pthread_t threads[4];
    double results[4] = {-10, 0, 5, 100};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, train_alone, &results[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_double_eq_tol(results[i], 3, 1e-12);
    }
    ck_assert_int_eq(wg_tensors_alive(), 0);
}

/* ---- Memory ---- */

typedef struct perceptron {
    wg_tensor *w1, *w2, *x, *y;
} perceptron;

static wg_tensor *random_tensor(uint64_t seed, int64_t rows, int64_t columns) {
    wg_generator generator = {.seed = seed};
    return wg_randn(&generator, WG_F64, WG_DIMS(rows, columns));
}

static perceptron perceptron_new(void) {
    perceptron net = {random_tensor(1, 3, 5), random_tensor(2, 5, 2), random_tensor(3, 4, 3),
                      random_tensor(4, 4, 2)};
    wg_set_requires_grad(net.w1, true);
    wg_set_requires_grad(net.w2, true);
    return net;
}

/* The squared error of tanh(x w1) w2, in a scope of its own; 0 or -1. */
static int perceptron_backward(const perceptron *net) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *hidden = wg_tanh(wg_matmul(net->x, net->w1));
    wg_tensor *loss = wg_mean(square(wg_sub(wg_matmul(hidden, net->w2), net->y)), WG_ALL, false);
    int result = wg_backward(loss, NULL);
    wg_scope_end(&scope, NULL);
    return result;
}

typedef struct attempt {
    perceptron net;
    wg_tensor *expected; /* the gradient of w1 */
} attempt;

static int perceptron_step(void *context) {
    const attempt *a = context;
    const int status = perceptron_backward(&a->net);
    if (status == 0)
        assert_close(wg_gradient(a->net.w1), a->expected, 0, 0);
    wg_zero_grad(a->net.w1);
    wg_zero_grad(a->net.w2);
    return status;
}

TEST(lack_of_memory_anywhere_in_a_step_is_an_error_and_no_leak) {
    attempt a = {.net = perceptron_new()};
    ck_assert_int_eq(perceptron_backward(&a.net), 0);
    a.expected = wg_clone(wg_gradient(a.net.w1));
    wg_zero_grad(a.net.w1);
    wg_zero_grad(a.net.w2);
    fail_each_allocation(perceptron_step, &a);
}

/* The first path to x moves its gradient into the pass; the second path fails. */
TEST(a_broken_pass_loses_no_gradient_that_was_there) {
    wg_tensor *x = leaf(1, 2);
    bool done = false;
    for (int64_t n = 0; !done && n < 1000; n++) {
        wg_zero_grad(x);
        ck_assert_int_eq(wg_backward(sum(wg_mul_scalar(x, 10)), NULL), 0);
        IN_SCOPE() {
            wg_tensor *loss = wg_add(sum(x), sum(wg_exp(square(x))));
            wg__alloc_fail_after(n);
            done = wg_backward(loss, NULL) == 0;
            wg__alloc_fail_after(-1);
        }
        if (!done)
            assert_error(WG_ERROR_MEMORY, "");
        ck_assert_msg(wg_gradient(x), "allocation %lld failed, and the gradient is gone",
                      (long long)n);
        ck_assert_double_ge(wg_at(wg_gradient(x), (int64_t[]){0}), 10);
    }
    assert_values(wg_gradient(x), 11 + 2 * exp(1), 11 + 4 * exp(4));
}

static void descend(const perceptron *net) {
    wg_tensor *const weights[] = {net->w1, net->w2};
    wg_set_grad_enabled(false);
    for (int i = 0; i < 2; i++) {
        wg_add_(weights[i], wg_gradient(weights[i]), -0.1);
        wg_zero_grad(weights[i]);
    }
    wg_set_grad_enabled(true);
}

TEST(from_the_second_step_on_nothing_is_asked_of_the_system) {
    perceptron net = perceptron_new();
    int64_t tensors = wg_tensors_alive(), asked = 0;
    for (int step = 0; step < 10; step++) {
        ck_assert_int_eq(perceptron_backward(&net), 0);
        descend(&net);
        ck_assert_int_eq(wg_tensors_alive(), tensors);
        if (step == 0)
            asked = wg_alloc_get_stats().system_allocations;
    }
    ck_assert_int_gt(asked, 0);
    ck_assert_int_eq(wg_alloc_get_stats().system_allocations, asked);
    assert_no_error();
}
