/* Averages of weights: over steps, and over checkpoints. */
#include "tests/optim/leaves.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/checkpoint/checkpoint.h"
#include "base/alloc.h"
#include "tensor/ops.h"
#include "optim/internal.h"
#include "tensor/internal.h"
#include "io/internal.h"

static void set(wg_tensor *x, double value) {
    ck_assert_int_eq(wg_fill_(x, value), 0);
}

/* Without decay it is the mean. */
START_TEST(an_average_follows_its_formula) {
    for (int decays = 0; decays < 2; decays++) {
        wg_tensor *x = wg_zeros(decays ? WG_F64 : WG_F32, WG_DIMS(3));
        wg_average *average = wg__average_new(decays ? 0.9 : 0);
        ck_assert_int_eq(wg__average_add(average, x), 0);
        double expected = 0;
        const int steps = decays ? 12 : 5;
        for (int step = 0; step < steps; step++) {
            const double value = decays ? sin(step) : step * step;
            const double share = decays && step > 0 ? 0.1 : 1.0 / (step + 1);
            set(x, value);
            wg__average_update(average);
            expected = (1 - share) * expected + share * value;
            wg__average_swap(average);
            ck_assert_double_eq_tol(first_of(x), expected, decays ? 1e-15 : 1e-6);
            wg__average_swap(average);
            ck_assert(first_of(x) == value);
        }
        ck_assert_int_eq(average->updates, steps);
        wg__average_free(average);
    }
}
END_TEST

/* At sizes around those of chunks and blocks. */
START_TEST(a_swap_is_exact_at_any_size_and_counts_a_write) {
    static const int64_t sizes[] = {0, 1, 1023, 1025, 16384, 50001};
    wg_generator generator = {.seed = 2};
    for (size_t i = 0; i < WG_COUNT(sizes); i++) {
        wg_tensor *x = wg_randn(&generator, WG_F32, 1, &sizes[i]);
        wg_tensor *before = wg_clone(x), *after = wg_randn(&generator, WG_F32, 1, &sizes[i]);
        wg_average *average = wg__average_new(0.5);
        ck_assert_int_eq(wg__average_add(average, x), 0);
        wg__average_update(average);
        wg_copy_(x, after);
        uint64_t version = wg__tensor_version(x);
        wg__average_swap(average);
        ck_assert_uint_gt(wg__tensor_version(x), version);
        assert_close(x, before, 0, 0);
        wg__average_swap(average);
        assert_close(x, after, 0, 0);
        wg__average_free(average);
    }
}
END_TEST

START_TEST(what_cannot_be_averaged_is_refused) {
    assert_fails(wg__average_new(1), WG_ERROR_ARGUMENT, "decay is 1");
    assert_fails(wg__average_new(NAN), WG_ERROR_ARGUMENT, "decay");
    wg_average *average = wg__average_new(0.5);
    assert_fails(wg__average_add(average, wg_zeros(WG_I64, WG_DIMS(2))), WG_ERROR_DTYPE, "i64");
    assert_fails(wg__average_add(average, wg_transpose(wg_zeros(WG_F32, WG_DIMS(2, 3)), 0, 1)),
                 WG_ERROR_ARGUMENT, "strided");
    wg__average_update(average);
    assert_fails(wg__average_add(average, wg_zeros(WG_F32, WG_DIMS(2))), WG_ERROR_STATE,
                 "before the first");
    wg__average_free(average);
}
END_TEST

/* Two swaps would not bring back what the two tensors share. */
START_TEST(a_tensor_in_the_memory_of_another_is_not_averaged) {
    wg_tensor *x = wg_zeros(WG_F32, WG_DIMS(6));
    wg_average *average = wg__average_new(0.5);
    ck_assert_int_eq(wg__average_add(average, wg_slice(x, 0, 0, 4, 1)), 0);
    ck_assert_int_eq(wg__average_add(average, wg_slice(x, 0, 4, WG_END, 1)), 0);
    wg_tensor *const shared[] = {x, wg_slice(x, 0, 3, WG_END, 1), wg_slice(x, 0, 0, 4, 1)};
    for (size_t i = 0; i < WG_COUNT(shared); i++) {
        assert_fails(wg__average_add(average, shared[i]), WG_ERROR_ARGUMENT,
                     "shares memory with tensor");
    }
    wg__average_free(average);
}
END_TEST

START_TEST(no_memory_is_an_error_and_nothing_leaks) {
    wg_tensor *x = wg_zeros(WG_F32, WG_DIMS(20));
    int64_t blocks = wg_alloc_get_stats().live_blocks;
    int status = -1;
    for (int64_t n = 0; status < 0; n++) {
        ck_assert_int_lt(n, 10);
        wg__alloc_fail_after(n);
        wg_average *average = wg__average_new(0.5);
        status = wg__average_add(average, x);
        wg__alloc_fail_after(-1);
        if (status < 0)
            assert_error(WG_ERROR_MEMORY, "");
        wg__average_free(average);
        ck_assert_int_eq(wg_alloc_get_stats().live_blocks, blocks);
    }
}
END_TEST

/* ---- Checkpoints ---- */

typedef struct model {
    wg_module *module;
    wg_tensor *weight, *count;
} model;

static model make_model(void) {
    model m = {.module = wg_module_new(NULL, "", sizeof(wg_module))};
    m.weight = wg_module_parameter(m.module, "weight", WG_DIMS(2, 3));
    m.count = wg_module_buffer(m.module, "count", wg_zeros(WG_I64, WG_DIMS(1)));
    wg_module_tie(m.module, "again", m.weight);
    wg_set_grad_enabled(false);
    set(m.weight, -1);
    wg_set_grad_enabled(true);
    return m;
}

static const char *save_model(model *m, int number, double value) {
    static char paths[4][600];
    snprintf(paths[number], sizeof paths[number], "%s/%d.h5", scratch(), number);
    wg_set_grad_enabled(false);
    set(m->weight, value);
    set(m->count, number);
    wg_set_grad_enabled(true);
    wg_checkpoint *file = wg_checkpoint_create(paths[number]);
    ck_assert_int_eq(wg_checkpoint_put_module(file, "/model", m->module), 0);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    return paths[number];
}

START_TEST(checkpoints_are_averaged) {
    model m = make_model();
    const char *paths[] = {save_model(&m, 0, 1), save_model(&m, 1, 2), save_model(&m, 2, 6)};
    ck_assert_int_eq(wg__checkpoint_average(3, paths, "/model", m.module), 0);
    ck_assert_double_eq_tol(wg_at(m.weight, (int64_t[]){1, 2}), 3, 1e-6);
    ck_assert(first_of(m.count) == 2);
    wg_module_free(m.module);
}
END_TEST

START_TEST(checkpoints_that_cannot_be_averaged_leave_the_weights) {
    model m = make_model();
    const char *paths[] = {save_model(&m, 0, 1), "none.h5"};
    wg_set_grad_enabled(false);
    set(m.weight, 5);
    wg_set_grad_enabled(true);
    assert_fails(wg__checkpoint_average(2, paths, "/model", m.module), WG_ERROR_NOT_FOUND,
                 "none.h5");
    ck_assert(wg_at(m.weight, (int64_t[]){0, 0}) == 5);
    assert_fails(wg__checkpoint_average(0, paths, "/model", m.module), WG_ERROR_ARGUMENT,
                 "0 files");
    wg_module_free(m.module);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        an_average_follows_its_formula,
        a_swap_is_exact_at_any_size_and_counts_a_write,
        what_cannot_be_averaged_is_refused,
        a_tensor_in_the_memory_of_another_is_not_averaged,
        no_memory_is_an_error_and_nothing_leaks,
        checkpoints_are_averaged,
        checkpoints_that_cannot_be_averaged_leave_the_weights,
    };
    add_suite("average", tests);
}
