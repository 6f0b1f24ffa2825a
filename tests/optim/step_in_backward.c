/* Optimizer steps during backward: the bits of a whole step in less memory, and what they
 * refuse. */
#include "tests/optim/leaves.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/functional.h"
#include "base/alloc.h"
#include "tensor/ops.h"
#include "optim/internal.h"

/* ---- A network whose parameters are used once, twice, in one pass of two, or not at all ---- */

enum { ROWS = 6, WORDS = 20, WIDTH = 12, INNER = 3000, STEPS = 4 };

enum { EMBED, BIAS, UP, DOWN, CUBE, FIRST_PASS, UNUSED, PARAMETERS };

static const struct {
    const char *name;
    int ndim;
    int64_t shape[3];
} parameters[] = {
    [EMBED] = {"embed", 2, {WORDS, WIDTH}}, [BIAS] = {"bias", 1, {WIDTH}},
    [UP] = {"up", 2, {WIDTH, INNER}},       [DOWN] = {"down", 2, {INNER, WIDTH}},
    [CUBE] = {"cube", 3, {2, 3, WIDTH}},    [FIRST_PASS] = {"first_pass", 2, {5, 7}},
    [UNUSED] = {"unused", 1, {9}},
};

typedef struct network {
    wg_tensor *parameters[PARAMETERS];
    wg_tensor *x;
    wg_optimizer *optimizer;
    bool recomputes;
} network;

static network network_new(const char *name, wg_dtype dtype) {
    wg_generator generator = {.seed = 11};
    network net = {.optimizer = wg_optimizer_new(
                       &(wg_optimizer_choice){.name = name, .weight_decay = 0.1, .momentum = 0.9})};
    for (int i = 0; i < PARAMETERS; i++) {
        wg_tensor *w = wg_randn(&generator, dtype, parameters[i].ndim, parameters[i].shape);
        net.parameters[i] = leaf_of(wg_mul_scalar(w, 0.3));
        wg_optimizer_add(net.optimizer, parameters[i].name, net.parameters[i], i == BIAS);
    }
    net.x = wg_randn(&generator, dtype, WG_DIMS(ROWS, WORDS));
    return net;
}

static int hidden(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                  void *context) {
    wg_tensor *const *w = ((const network *)context)->parameters;
    (void)input_count, (void)output_count;
    wg_tensor *h = wg_matmul(wg_gelu(wg_matmul(inputs[0], w[UP])), w[DOWN]);
    outputs[0] = wg_add(wg_add(h, inputs[0]), w[BIAS]);
    return outputs[0] ? 0 : -1;
}

static wg_tensor *loss_of(network *net, bool first_pass) {
    wg_tensor *const *w = net->parameters;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *h = wg_tanh(wg_matmul(net->x, w[EMBED]));
    if (net->recomputes)
        wg_activation_checkpoint(hidden, net, 1, &h, 1, &h, NULL);
    else
        hidden(1, &h, 1, &h, net);
    h = wg_add(h, wg_sum(w[CUBE], 2, (int64_t[]){0, 1}, false));
    wg_tensor *logits = wg_matmul(h, wg_transpose(w[EMBED], 0, 1)); /* tied */
    wg_tensor *loss = wg_mean(wg_square(logits), WG_ALL, false);
    if (first_pass)
        loss = wg_add(loss, wg_mean(wg_square(w[FIRST_PASS]), WG_ALL, false));
    return wg_scope_end(&scope, loss);
}

/* One way to take steps. */
typedef struct way {
    bool in_backward, recomputes;
    int passes; /* backward passes in a step */
    bool unmeasured;
} way;

static void take_step(network *net, const way *way, double *norm) {
    const double rate = 0.01;
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int pass = 1; pass < way->passes; pass++)
        ck_assert_int_eq(wg_backward(loss_of(net, true), NULL), 0);
    wg_tensor *loss = loss_of(net, false);
    *norm = 0;
    if (way->in_backward) {
        ck_assert_int_eq(
            wg_optimizer_step_begin(net->optimizer, rate, way->unmeasured ? NULL : norm), 0);
        ck_assert_int_eq(wg_backward(loss, NULL), 0);
        ck_assert_int_eq(wg_optimizer_step_end(net->optimizer), 0);
    } else {
        ck_assert_int_eq(wg_backward(loss, NULL), 0);
        ck_assert_int_eq(wg_optimizer_clip(net->optimizer, 0, norm), 0);
        ck_assert_int_eq(wg_optimizer_step(net->optimizer, rate), 0);
    }
    wg_scope_end(&scope, NULL);
    for (int i = 0; i < PARAMETERS; i++)
        ck_assert_ptr_null(wg_gradient(net->parameters[i]));
}

static void append(char **bytes, size_t *size, const wg_tensor *x) {
    const size_t more = (size_t)wg_tensor_count(x) * wg_dtype_size(wg_tensor_dtype(x));
    *bytes = realloc(*bytes, *size + more);
    memcpy(*bytes + *size, wg_tensor_data(x), more);
    *size += more;
}

/* All weights and states after some steps, and their norms; freed with free. */
static char *train(const char *name, wg_dtype dtype, const way *way, size_t *size, double *norms) {
    network net = network_new(name, dtype);
    const char *slot, *parameter;
    wg_tensor *state;
    char *bytes = NULL;
    *size = 0;
    net.recomputes = way->recomputes;
    for (int step = 0; step < STEPS; step++)
        take_step(&net, way, &norms[step]);
    ck_assert_int_eq(wg_optimizer_steps(net.optimizer), STEPS);
    for (int i = 0; i < PARAMETERS; i++)
        append(&bytes, size, net.parameters[i]);
    for (int64_t i = 0; wg__optimizer_state(net.optimizer, i, &slot, &parameter, &state); i++)
        append(&bytes, size, state);
    wg_optimizer_free(net.optimizer);
    assert_no_error();
    return bytes;
}

static void assert_alike(const char *name, wg_dtype dtype, const way *one, const way *other) {
    size_t size, other_size;
    double norms[STEPS], other_norms[STEPS];
    wg_scope scope;
    wg_scope_begin(&scope);
    char *bytes = train(name, dtype, one, &size, norms);
    char *others = train(name, dtype, other, &other_size, other_norms);
    ck_assert_uint_eq(size, other_size);
    ck_assert_msg(memcmp(bytes, others, size) == 0, "%s of %s", name, wg_dtype_name(dtype));
    if (!one->unmeasured && !other->unmeasured)
        ck_assert_mem_eq(norms, other_norms, sizeof norms);
    free(bytes);
    free(others);
    wg_scope_end(&scope, NULL);
}

START_TEST(every_optimizer_takes_the_bits_of_whole_steps) {
    static const way within[] = {{.in_backward = true},
                                 {.in_backward = true, .passes = 3},
                                 {.in_backward = true, .recomputes = true},
                                 {.in_backward = true, .unmeasured = true}};
    for (size_t i = 0; i < OPTIMIZERS; i++) {
        for (size_t w = 0; w < WG_COUNT(within); w++)
            assert_alike(optimizer_names[i], WG_F32, &(way){.passes = within[w].passes},
                         &within[w]);
        assert_alike(optimizer_names[i], WG_F64, &(way){0}, &within[0]);
    }
}
END_TEST

START_TEST(threads_change_no_bit) {
    const int before = wg_threads();
    size_t size, other_size;
    double norms[STEPS], other_norms[STEPS];
    for (size_t i = 0; i < OPTIMIZERS; i++) {
        wg_set_threads(1);
        char *one = train(optimizer_names[i], WG_F32, &(way){.in_backward = true}, &size, norms);
        for (int threads = 2; threads <= 3; threads++) {
            wg_set_threads(threads);
            char *other = train(optimizer_names[i], WG_F32, &(way){.in_backward = true},
                                &other_size, other_norms);
            ck_assert_mem_eq(one, other, size);
            ck_assert_mem_eq(norms, other_norms, sizeof norms);
            free(other);
        }
        free(one);
    }
    wg_set_threads(before);
}
END_TEST

START_TEST(a_parameter_that_was_frozen_since_is_left_alone) {
    network net = network_new("adamw", WG_F32);
    const double up = first_of(net.parameters[UP]);
    const double down = first_of(net.parameters[DOWN]);
    double norm;
    wg_set_requires_grad(net.parameters[UP], false);
    for (int step = 0; step < 2; step++)
        take_step(&net, &(way){.in_backward = true}, &norm);
    ck_assert(first_of(net.parameters[UP]) == up);
    ck_assert(first_of(net.parameters[DOWN]) != down);
    wg_optimizer_free(net.optimizer);
}
END_TEST

/* ---- Memory ---- */

enum { LAYERS = 12, SIDE = 128 };

/* The peak of memory of a step of LAYERS products, above the memory before its backward. */
static int64_t peak_of_step(bool in_backward) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    wg_tensor *x = wg_ones(WG_F32, WG_DIMS(1, SIDE));
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        x = wg_matmul(x, added(optimizer, name, wg_full(WG_F32, WG_DIMS(SIDE, SIDE), 0.01)));
    }
    wg_tensor *loss = wg_sum(x, WG_ALL, false);
    const int64_t before = peak_begin();
    if (in_backward)
        ck_assert_int_eq(wg_optimizer_step_begin(optimizer, 0.01, NULL), 0);
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    ck_assert_int_eq(
        in_backward ? wg_optimizer_step_end(optimizer) : wg_optimizer_step(optimizer, 0.01), 0);
    const int64_t bytes = peak_end(before);
    wg_optimizer_free(optimizer);
    wg_scope_end(&scope, NULL);
    return bytes;
}

START_TEST(gradients_are_not_in_memory_together) {
    const int64_t gradient = SIDE * SIDE * 4;
    ck_assert_int_ge(peak_of_step(false), LAYERS * gradient);
    ck_assert_int_lt(peak_of_step(true), 2 * gradient);
}
END_TEST

START_TEST(steps_after_the_second_ask_the_system_for_no_memory) {
    network net = network_new("adamw", WG_F32);
    double norm;
    int64_t before = 0;
    for (int step = 0; step < 5; step++) {
        if (step == 2)
            before = wg_alloc_get_stats().system_allocations;
        take_step(&net, &(way){.in_backward = true}, &norm);
    }
    ck_assert_int_eq(wg_alloc_get_stats().system_allocations, before);
    wg_optimizer_free(net.optimizer);
}
END_TEST

static int step_without_memory(network *net, int64_t successes) {
    double norm;
    wg__alloc_fail_after(successes);
    if (wg_optimizer_step_begin(net->optimizer, 0.01, &norm) == 0) {
        wg_backward(loss_of(net, false), NULL);
        wg_optimizer_step_end(net->optimizer);
    }
    wg__alloc_fail_after(-1);
    return wg_error_pending() ? -1 : 0;
}

START_TEST(lack_of_memory_anywhere_is_an_error_and_no_leak) {
    for (int recomputes = 0; recomputes < 2; recomputes++) {
        int status = -1;
        for (int64_t n = 0; status < 0; n++) {
            ck_assert_int_lt(n, 1000);
            wg_scope scope;
            wg_scope_begin(&scope);
            network net = network_new("muon", WG_F32);
            net.recomputes = recomputes;
            status = step_without_memory(&net, n);
            if (status < 0)
                assert_error(WG_ERROR_MEMORY, "");
            wg_optimizer_zero_grad(net.optimizer);
            double norm; /* the hooks are removed, and the next step is a usual one */
            take_step(&net, &(way){.in_backward = true}, &norm);
            wg_optimizer_free(net.optimizer);
            wg_scope_end(&scope, NULL);
            ck_assert_int_eq(wg_tensors_alive(), 0);
            ck_assert_int_eq(wg_alloc_get_stats().live_blocks, 0);
        }
    }
}
END_TEST

/* ---- What is refused, and what an error leaves ---- */

static wg_tensor *leaf(double value) {
    return leaf_of(wg_full(WG_F64, WG_DIMS(2), value));
}

static wg_tensor *sum(wg_tensor *x) {
    return wg_sum(x, WG_ALL, false);
}

/* w = w - g for two parameters; the gradient of `early' comes first. */
typedef struct pair {
    wg_tensor *early, *late;
    wg_optimizer *optimizer;
} pair;

static pair pair_new(void) {
    pair p = {leaf(1), leaf(2), wg_sgd_new(NULL)};
    ck_assert_int_eq(wg_optimizer_add(p.optimizer, "late", p.late, false), 0);
    ck_assert_int_eq(wg_optimizer_add(p.optimizer, "early", p.early, false), 0);
    return p;
}

/* early late^3: gradients late^3 = 8 of early, and 3 early late^2 = 12 of late. */
static wg_tensor *pair_loss(const pair *p) {
    return sum(wg_mul(wg_mul(wg_mul(p->late, p->late), p->late), p->early));
}

START_TEST(a_gradient_that_is_not_finite_stops_the_step_where_it_is) {
    pair p = pair_new();
    double norm = -1;
    /* The derivative of the square root is infinite at 0. */
    wg_tensor *loss = sum(wg_mul(wg_sqrt(wg_add_scalar(p.late, -2)), p.early));
    ck_assert_int_eq(wg_optimizer_step_begin(p.optimizer, 0.5, &norm), 0);
    ck_assert_int_eq(wg_backward(wg_add(loss, sum(p.early)), NULL), -1);
    assert_fails(wg_optimizer_step_end(p.optimizer), WG_ERROR_GRADIENT,
                 "the gradient of \"late\" is not finite");
    ck_assert(first_of(p.early) == 0.5 &&
              first_of(p.late) == 2); /* one is stepped, the other is not */
    ck_assert_int_eq(wg_optimizer_steps(p.optimizer), 1);
    assert_fails(wg_optimizer_step_begin(p.optimizer, 0.5, &norm), WG_ERROR_GRADIENT,
                 "not finite; drop them by wg_optimizer_zero_grad");
    wg_optimizer_zero_grad(p.optimizer);

    ck_assert_int_eq(wg_optimizer_step_begin(p.optimizer, 0.5, &norm), 0);
    ck_assert_int_eq(wg_backward(sum(wg_mul(wg_mul_scalar(p.early, INFINITY), p.late)), NULL), -1);
    assert_fails(wg_optimizer_step_end(p.optimizer), WG_ERROR_GRADIENT, "is not finite");
    ck_assert_int_eq(wg_optimizer_steps(p.optimizer), 1); /* none was stepped */
    wg_optimizer_free(p.optimizer);
}
END_TEST

START_TEST(a_broken_backward_steps_what_came_before_and_the_next_step_is_whole) {
    pair p = pair_new();
    wg_tensor *square = wg_mul(p.late, p.late), *loss = sum(wg_mul(wg_exp(square), p.early));
    wg_set_grad_enabled(false);
    wg_fill_(p.late, 1); /* which the product has saved */
    wg_set_grad_enabled(true);
    ck_assert_int_eq(wg_optimizer_step_begin(p.optimizer, 0.5, NULL), 0);
    ck_assert_int_eq(wg_backward(loss, NULL), -1);
    assert_fails(wg_optimizer_step_end(p.optimizer), WG_ERROR_GRADIENT, "written in place");
    ck_assert(first_of(p.early) != 1 && first_of(p.late) == 1);
    ck_assert_int_eq(wg_optimizer_steps(p.optimizer), 1);
    wg_optimizer_zero_grad(p.optimizer);

    const double early = first_of(p.early);
    double norm = 0;
    ck_assert_int_eq(wg_optimizer_step_begin(p.optimizer, 0.5, &norm), 0);
    ck_assert_int_eq(wg_backward(pair_loss(&p), NULL), 0);
    ck_assert_int_eq(wg_optimizer_step_end(p.optimizer), 0);
    ck_assert_double_eq_tol(first_of(p.early), early - 0.5, 1e-12);
    ck_assert_double_eq_tol(first_of(p.late), 1 - 0.5 * 3 * early, 1e-9 * fabs(early));
    ck_assert_double_eq_tol(norm, sqrt(2 + 2 * 9 * early * early), 1e-9 * norm);
    wg_optimizer_free(p.optimizer);
}
END_TEST

START_TEST(a_step_encloses_one_backward_pass) {
    pair p = pair_new();
    ck_assert_int_eq(wg_optimizer_step_begin(p.optimizer, 0.5, NULL), 0);
    ck_assert_int_eq(wg_backward(pair_loss(&p), NULL), 0);
    ck_assert_int_eq(wg_backward(pair_loss(&p), NULL), -1);
    assert_fails(wg_optimizer_step_end(p.optimizer), WG_ERROR_STATE,
                 "\"early\" was stepped already");
    wg_optimizer_zero_grad(p.optimizer);
    ck_assert_int_eq(wg_optimizer_step_begin(p.optimizer, 0.5, NULL), 0);
    assert_fails(wg_optimizer_step_end(p.optimizer), WG_ERROR_GRADIENT,
                 "no parameter has a gradient");
    ck_assert_int_eq(wg_optimizer_steps(p.optimizer), 1);
    wg_optimizer_free(p.optimizer);
}
END_TEST

START_TEST(a_backward_that_is_to_be_differentiated_is_refused) {
    pair p = pair_new();
    ck_assert_int_eq(wg_optimizer_step_begin(p.optimizer, 0.5, NULL), 0);
    ck_assert_int_eq(wg_backward(pair_loss(&p), &(wg_backward_options){.create_graph = true}), -1);
    assert_fails(wg_optimizer_step_end(p.optimizer), WG_ERROR_GRADIENT, "leave out create_graph");
    ck_assert(first_of(p.early) == 1 && first_of(p.late) == 2);
    wg_optimizer_zero_grad(p.optimizer);
    wg_optimizer_free(p.optimizer);
}
END_TEST

START_TEST(a_step_is_not_to_be_mixed_with_another) {
    pair p = pair_new();
    assert_fails(wg_optimizer_step_end(p.optimizer), WG_ERROR_STATE, "no step was begun");
    assert_fails(wg_optimizer_step_begin(p.optimizer, NAN, NULL), WG_ERROR_ARGUMENT,
                 "a learning rate of nan");
    ck_assert_int_eq(wg_optimizer_step_begin(p.optimizer, 0.5, NULL), 0);
    assert_fails(wg_optimizer_step_begin(p.optimizer, 0.5, NULL), WG_ERROR_STATE,
                 "optimizer_step_begin: a step in backward is under way");
    assert_fails(wg_optimizer_step(p.optimizer, 0.5), WG_ERROR_STATE,
                 "optimizer_step: a step in backward is under way");
    assert_fails(wg_optimizer_clip(p.optimizer, 1, NULL), WG_ERROR_STATE,
                 "optimizer_clip: a step in backward is under way");
    assert_fails(wg_optimizer_add(p.optimizer, "third", leaf(3), false), WG_ERROR_STATE,
                 "optimizer_add: a step in backward is under way");
    ck_assert_int_eq(wg_backward(pair_loss(&p), NULL), 0);
    ck_assert_int_eq(wg_optimizer_step_end(p.optimizer), 0);
    ck_assert(first_of(p.early) == 1 - 0.5 * 8 && first_of(p.late) == 2 - 0.5 * 12);

    ck_assert_int_eq(wg_backward(pair_loss(&p), NULL), 0);
    ck_assert_int_eq(wg_optimizer_clip(p.optimizer, 1e-3, NULL), 0);
    assert_fails(wg_optimizer_step_begin(p.optimizer, 0.5, NULL), WG_ERROR_STATE,
                 "the gradients were clipped");
    ck_assert_int_eq(wg_optimizer_step(p.optimizer, 0.5), 0);
    wg_optimizer_free(p.optimizer);
}
END_TEST

START_TEST(an_optimizer_that_is_freed_leaves_the_parameters_alone) {
    pair p = pair_new();
    wg_optimizer *other = wg_sgd_new(NULL);
    wg_optimizer_add(other, "late", p.late, false);
    ck_assert_int_eq(wg_optimizer_step_begin(p.optimizer, 0.5, NULL), 0);
    ck_assert_int_eq(wg_optimizer_step_begin(other, 0.25, NULL), 0);
    wg_optimizer_free(p.optimizer);
    ck_assert_int_eq(wg_backward(pair_loss(&p), NULL), 0);
    ck_assert_int_eq(wg_optimizer_step_end(other), 0);
    ck_assert(first_of(wg_gradient(p.early)) == 8 && first_of(p.early) == 1 &&
              first_of(p.late) == 2 - 0.25 * 12);
    wg_optimizer_free(other);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        every_optimizer_takes_the_bits_of_whole_steps,
        threads_change_no_bit,
        a_parameter_that_was_frozen_since_is_left_alone,
        gradients_are_not_in_memory_together,
        steps_after_the_second_ask_the_system_for_no_memory,
        lack_of_memory_anywhere_is_an_error_and_no_leak,
        a_gradient_that_is_not_finite_stops_the_step_where_it_is,
        a_broken_backward_steps_what_came_before_and_the_next_step_is_whole,
        a_step_encloses_one_backward_pass,
        a_backward_that_is_to_be_differentiated_is_refused,
        a_step_is_not_to_be_mixed_with_another,
        an_optimizer_that_is_freed_leaves_the_parameters_alone,
    };
    add_suite("step_in_backward", tests);
}
