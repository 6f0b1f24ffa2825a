/* The options of a run: accumulation, averages, optimizers, clipping. On a linear regression. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "tensor/ops.h"
#include "tests/train/regression.h"
#include "tensor/internal.h"
#include "train/internal.h"

enum { WIDTH = REGRESSION_WIDTH };

/* ---- Accumulation ---- */

static void run_in_batches(int64_t batch, int64_t accumulate, double *weight, double *loss) {
    regression t = regression_make(batch, WG_F64);
    wg_trainer *trainer = regression_trainer(
        &t, "adamw", (wg_trainer_options){.steps = 12, .accumulate = accumulate});
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    ck_assert_int_eq(t.row, 12 * batch * accumulate);
    wg_to_array(wg_detach(t.weight), weight);
    const wg_history *history = wg_trainer_history(trainer);
    *loss = wg_history_column(history, "loss")[11];
    ck_assert_double_eq_tol(*loss, wg_history_column(history, "regression_loss")[11], 1e-14);
    wg_trainer_free(trainer);
    regression_free(&t);
}

START_TEST(accumulated_batches_step_as_one_of_their_size) {
    double whole[WIDTH], parts[WIDTH], whole_loss, parts_loss;
    run_in_batches(24, 1, whole, &whole_loss);
    run_in_batches(8, 3, parts, &parts_loss);
    ck_assert_double_eq_tol(whole_loss, parts_loss, 1e-12);
    for (int i = 0; i < WIDTH; i++)
        ck_assert_double_eq_tol(whole[i], parts[i], 1e-12);
    run_in_batches(8, 1, parts, &parts_loss);
    ck_assert(fabs(whole[0] - parts[0]) > 1e-6);
}
END_TEST

START_TEST(the_number_of_batches_rises_in_a_straight_line) {
    static const int64_t wanted[] = {1, 1, 2, 2, 3, 3, 4, 5, 5};
    int64_t sum = 0;
    for (size_t step = 0; step < WG_COUNT(wanted); step++) {
        ck_assert_int_eq(wg__trainer_batches(5, 7, (int64_t)step), wanted[step]);
        sum += wanted[step];
    }
    ck_assert_int_eq(wg__trainer_batches(0, 7, 3), 1);
    regression t = regression_make(8, WG_F64);
    wg_trainer *trainer = regression_trainer(
        &t, "adamw",
        (wg_trainer_options){.steps = WG_COUNT(wanted), .accumulate = 5, .accumulate_ramp = 7});
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    ck_assert_int_eq(t.row, 8 * sum);
    wg_trainer_free(trainer);
    regression_free(&t);
}
END_TEST

/* ---- The average ---- */

typedef struct listener {
    regression *t;
    double weights[40]; /* after each step */
    int64_t stop_after;
    volatile sig_atomic_t stop;
} listener;

static void listen(const wg_train_report *report, void *context) {
    listener *l = context;
    l->weights[report->step] = first_element(l->t->weight);
    l->stop = report->step == l->stop_after;
}

START_TEST(the_average_is_evaluated_and_saved_as_the_model) {
    regression t = regression_make(8, WG_F64);
    listener l = {.t = &t};
    const char *path = in_scratch("average.h5");
    wg_trainer *trainer = regression_trainer(&t, "adamw",
                                             (wg_trainer_options){.steps = 10,
                                                                  .average_decay = 0.7,
                                                                  .evaluate_every = 1,
                                                                  .path = path,
                                                                  .listener = listen,
                                                                  .listener_context = &l});
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    double average = l.weights[1];
    for (int step = 1; step <= 10; step++) {
        average = step == 1 ? average : 0.7 * average + 0.3 * l.weights[step];
        ck_assert_double_eq_tol(t.seen[step - 1], average, 1e-14);
    }
    double saved[WIDTH], trained[WIDTH];
    read_saved(path, "/model/weight", saved);
    read_saved(path, "/train/weights/weight", trained);
    ck_assert(saved[0] == t.seen[9]);
    ck_assert(trained[0] == l.weights[10] && trained[0] == first_element(t.weight));
    wg__trainer_swap_average(trainer);
    ck_assert(first_element(t.weight) == saved[0]);
    wg_trainer_free(trainer);
    regression_free(&t);
}
END_TEST

START_TEST(a_run_is_resumed_with_an_average_if_it_was_begun_with_one) {
    for (int averaged = 0; averaged < 2; averaged++) {
        regression t = regression_make(8, WG_F32);
        const char *path = in_scratch("run.h5");
        wg_trainer_options options = {
            .steps = 3, .path = path, .average_decay = averaged ? 0.9 : 0};
        wg_trainer *trainer = regression_trainer(&t, "adamw", options);
        ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
        wg_trainer_free(trainer);
        options.average_decay = averaged ? 0 : 0.9;
        trainer = regression_trainer(&t, "adamw", options);
        assert_fails(wg_trainer_resume(trainer, path), WG_ERROR_STATE,
                     averaged ? "begun with an average" : "begun without");
        wg_trainer_free(trainer);
        regression_free(&t);
    }
}
END_TEST

/* ---- Resuming, whatever the optimizer ---- */

/* Runs to the end, or to `stop_after`. */
static void run_part(const char *optimizer, bool clips, wg_dtype matmul_dtype, const char *path,
                     bool resumes, int64_t stop_after) {
    regression t = regression_make(8, WG_F32);
    listener l = {.t = &t, .stop_after = stop_after};
    wg_trainer_options options = {.steps = 14,
                                  .clip = clips ? 1 : -1,
                                  .step_in_backward = !clips,
                                  .accumulate = 3,
                                  .accumulate_ramp = 9,
                                  .average_decay = 0.8,
                                  .evaluate_every = 2,
                                  .patience = 10,
                                  .path = path,
                                  .best_path = in_scratch("best.h5"),
                                  .listener = listen,
                                  .listener_context = &l,
                                  .stop = &l.stop,
                                  .matmul_dtype = matmul_dtype};
    wg_trainer *trainer = regression_trainer(&t, optimizer, options);
    if (resumes)
        ck_assert_int_eq(wg_trainer_resume(trainer, path), 0);
    ck_assert_int_eq(wg_trainer_run(trainer),
                     stop_after ? WG_TRAIN_INTERRUPTED : WG_TRAIN_FINISHED);
    ck_assert_int_eq(wg_trainer_evaluations(trainer)->row_count, stop_after ? 3 : 7);
    wg_trainer_free(trainer);
    regression_free(&t);
}

static const char *const names[] = {"sgd", "adam", "adamw", "adafactor", "lion", "muon"};

/* Clipped and, for odd i, not clipped with steps in backward. */
START_TEST(every_optimizer_goes_on_bit_for_bit) {
    static const char *const tensors[] = {"/model/weight", "/train/weights/weight", "/model/bias"};
    for (size_t i = 0; i < 2 * WG_COUNT(names); i++) {
        const char *straight = in_scratch("straight.h5"), *stopped = in_scratch("stopped.h5");
        const char *name = names[i / 2];
        const bool clips = i % 2 == 0;
        run_part(name, clips, WG_F32, straight, false, 0);
        run_part(name, clips, WG_F32, stopped, false, 5); /* the flag is seen after step 6 */
        ck_assert_int_eq(saved_step(stopped), 6);
        run_part(name, clips, WG_F32, stopped, true, 0);
        for (size_t j = 0; j < WG_COUNT(tensors); j++) {
            double one[WIDTH] = {0}, other[WIDTH] = {0};
            read_saved(straight, tensors[j], one);
            read_saved(stopped, tensors[j], other);
            ck_assert_msg(memcmp(one, other, sizeof one) == 0, "%s: %s", name, tensors[j]);
        }
    }
}
END_TEST

START_TEST(a_run_in_bf16_goes_on_bit_for_bit_and_is_not_that_of_f32) {
    const char *straight = in_scratch("straight.h5"), *stopped = in_scratch("stopped.h5");
    double f32[WIDTH], one[WIDTH], other[WIDTH];
    run_part("adamw", true, WG_F32, straight, false, 0);
    read_saved(straight, "/train/weights/weight", f32);
    run_part("adamw", true, WG_BF16, straight, false, 0);
    run_part("adamw", true, WG_BF16, stopped, false, 5);
    ck_assert_int_eq(saved_step(stopped), 6);
    run_part("adamw", true, WG_BF16, stopped, true, 0);
    ck_assert_int_eq(wg__matmul_dtype(), WG_F32);
    read_saved(straight, "/train/weights/weight", one);
    read_saved(stopped, "/train/weights/weight", other);
    ck_assert_mem_eq(one, other, sizeof one);
    ck_assert_mem_ne(one, f32, sizeof one);
}
END_TEST

/* ---- Without clipping ---- */

enum { RUN_STEPS = 9 };

/* The results of a run. */
typedef struct run {
    double weight[WIDTH], bias, norms[RUN_STEPS], losses[RUN_STEPS];
} run;

static run run_with_clip(const char *optimizer, double clip, bool in_backward, int64_t accumulate,
                         wg_dtype dtype) {
    run found = {.bias = NAN};
    regression t = regression_make(8, dtype);
    wg_trainer *trainer = regression_trainer(&t, optimizer,
                                             (wg_trainer_options){.steps = RUN_STEPS,
                                                                  .clip = clip,
                                                                  .step_in_backward = in_backward,
                                                                  .accumulate = accumulate,
                                                                  .average_decay = 0.5});
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg__trainer_swap_average(trainer);
    wg_to_array(wg_cast(wg_detach(t.weight), WG_F64), found.weight);
    found.bias = wg_at(t.bias, (int64_t[]){0});
    const wg_history *history = wg_trainer_history(trainer);
    memcpy(found.norms, wg_history_column(history, "grad_norm"), sizeof found.norms);
    memcpy(found.losses, wg_history_column(history, "loss"), sizeof found.losses);
    wg_trainer_free(trainer);
    regression_free(&t);
    return found;
}

/* A limit that is never reached clips nothing, but needs all gradients in memory at once. */
START_TEST(a_run_without_clipping_has_the_bits_of_one_that_is_never_clipped) {
    for (size_t i = 0; i < WG_COUNT(names); i++)
        for (int64_t accumulate = 1; accumulate <= 3; accumulate += 2)
            for (int wide = 0; wide < 2; wide++) {
                const wg_dtype dtype = wide ? WG_F64 : WG_F32;
                const run never = run_with_clip(names[i], 1e30, false, accumulate, dtype);
                const run without = run_with_clip(names[i], -1, false, accumulate, dtype);
                const run in_backward = run_with_clip(names[i], -1, true, accumulate, dtype);
                ck_assert_msg(memcmp(&without, &never, sizeof never) == 0, "%s, %d batches, %s",
                              names[i], (int)accumulate, wg_dtype_name(dtype));
                ck_assert_msg(memcmp(&in_backward, &never, sizeof never) == 0,
                              "%s, %d batches, %s, in backward", names[i], (int)accumulate,
                              wg_dtype_name(dtype));
                ck_assert(without.norms[RUN_STEPS - 1] > 0);
            }
}
END_TEST

/* The counters after each step. */
static void count_allocations(const wg_train_report *report, void *context) {
    int64_t *counts = context;
    counts[report->step] = wg_alloc_get_stats().system_allocations;
}

START_TEST(no_memory_is_asked_of_the_system_after_the_first_step) {
    for (size_t i = 0; i < 2 * WG_COUNT(names); i++) {
        int64_t counts[41];
        regression t = regression_make(8, WG_F32);
        wg_trainer *trainer = regression_trainer(&t, names[i / 2],
                                                 (wg_trainer_options){.steps = 40,
                                                                      .clip = i % 2 ? -1 : 1,
                                                                      .step_in_backward = i % 2,
                                                                      .accumulate = 2,
                                                                      .average_decay = 0.9,
                                                                      .evaluate_every = 1,
                                                                      .listener = count_allocations,
                                                                      .listener_context = counts});
        ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
        ck_assert_int_eq(counts[40], counts[1]);
        wg_trainer_free(trainer);
        regression_free(&t);
    }
}
END_TEST

/* ---- Refusals ---- */

START_TEST(options_out_of_range_are_refused) {
    regression t = regression_make(8, WG_F32);
    wg_task task = {.context = &t, .module = t.module, .loss = regression_loss};
    const wg_trainer_options of_i32 = {.steps = 1, .matmul_dtype = WG_I32};
    assert_fails(wg_trainer_new(&task, wg_adamw_new(NULL), &of_i32), WG_ERROR_DTYPE,
                 "wanted f32 or bf16");
    const wg_trainer_options bad[] = {{.steps = 1, .accumulate = -1},
                                      {.steps = 1, .patience = -1},
                                      {.steps = 1, .average_decay = 1},
                                      {.steps = 1, .average_decay = -0.5},
                                      {.steps = 1, .step_in_backward = true}};
    for (size_t i = 0; i < WG_COUNT(bad); i++) {
        assert_fails(wg_trainer_new(&task, wg_adamw_new(NULL), &bad[i]), WG_ERROR_ARGUMENT, "");
    }
    regression_free(&t);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        accumulated_batches_step_as_one_of_their_size,
        the_number_of_batches_rises_in_a_straight_line,
        the_average_is_evaluated_and_saved_as_the_model,
        a_run_is_resumed_with_an_average_if_it_was_begun_with_one,
        every_optimizer_goes_on_bit_for_bit,
        a_run_in_bf16_goes_on_bit_for_bit_and_is_not_that_of_f32,
        a_run_without_clipping_has_the_bits_of_one_that_is_never_clipped,
        no_memory_is_asked_of_the_system_after_the_first_step,
        options_out_of_range_are_refused,
    };
    add_suite("trainer_options", tests);
}
