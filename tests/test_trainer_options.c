/* What a run can be told: accumulation, averages, patience, best checkpoints; and what it says when
 * it diverges. On a linear regression over a table that is read row by row. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/alloc.h"
#include "tensor/ops.h"
#include "tests/testing.h"
#include "train/trainer.h"

enum { WIDTH = 5, ROWS = 960, MAX_EVALUATIONS = 64 };

typedef struct toy {
    wg_module *module;
    wg_tensor *weight, *bias;
    wg_tensor *table; /* kept: ROWS x WIDTH */
    int64_t batch, row;
    int64_t poison_at; /* the batch from this row on is not a number; 0: none */
    double blow_up;    /* what the loss of every batch from `poison_at` on is multiplied by */
    bool steep;        /* what makes a loss bad leaves its value, but not the weight's gradient */
    const double *script; /* losses that evaluations give; NULL: what they measure */
    bool has_no_loss;
    int evaluations;
    double seen[MAX_EVALUATIONS]; /* weight[0] at each evaluation */
} toy;

static double first(const wg_tensor *x) {
    return wg_at(x, (int64_t[]){0, 0});
}

static wg_tensor *measure(toy *t, wg_tensor *x) {
    wg_tensor *target = wg_sum(x, 1, (int64_t[]){1}, true);
    wg_tensor *difference = wg_sub(wg_add(wg_matmul(x, t->weight), t->bias), target);
    return wg_mean(wg_mul(difference, difference), WG_ALL, false);
}

/* 0, by a root whose derivative there is infinite. */
static wg_tensor *steep(wg_tensor *x) {
    return wg_sum(wg_sqrt(wg_mul_scalar(x, 0)), WG_ALL, false);
}

static wg_tensor *toy_loss(void *context, wg_metrics *metrics) {
    toy *t = context;
    int64_t begin = t->row % ROWS;
    t->row += t->batch;
    wg_tensor *loss = measure(t, wg_slice(t->table, 0, begin, begin + t->batch, 1));
    if (t->poison_at > 0 && t->row > t->poison_at)
        loss = t->steep ? wg_add(loss, steep(t->weight)) : wg_mul_scalar(loss, t->blow_up);
    metrics->tokens += t->batch;
    return wg_metrics_add(metrics, "toy_loss", wg_item(loss), (double)t->batch) < 0 ? NULL : loss;
}

static int toy_evaluate(void *context, wg_metrics *metrics) {
    toy *t = context;
    ck_assert_int_lt(t->evaluations, MAX_EVALUATIONS);
    t->seen[t->evaluations] = first(t->weight);
    double loss = t->script ? t->script[t->evaluations] : wg_item(measure(t, t->table));
    t->evaluations++;
    return wg_metrics_add(metrics, t->has_no_loss ? "accuracy" : "loss", loss, 1);
}

static int toy_save(void *context, wg_checkpoint *file) {
    toy *t = context;
    return wg_checkpoint_put_integer(file, "/train/data/row", t->row);
}

static int toy_restore(void *context, wg_checkpoint *file) {
    toy *t = context;
    return wg_checkpoint_get_integer(file, "/train/data/row", &t->row);
}

static toy make_toy(int64_t batch, wg_dtype dtype) {
    toy t = {.module = wg_module_new(NULL, "", sizeof(wg_module)), .batch = batch};
    t.weight = wg_module_parameter(t.module, "weight", WG_DIMS(WIDTH, 1));
    t.bias = wg_module_parameter(t.module, "bias", WG_DIMS(1));
    wg_module_no_decay(t.module, "bias");
    wg_set_grad_enabled(false);
    ck_assert_int_eq(wg_fill_(t.weight, 0.25), 0);
    ck_assert_int_eq(wg_fill_(t.bias, 0.5), 0);
    wg_set_grad_enabled(true);
    ck_assert_int_eq(wg_module_to(t.module, dtype), 0);
    wg_generator generator = {.seed = 6};
    t.table = wg_keep(wg_randn(&generator, dtype, WG_DIMS(ROWS, WIDTH)));
    return t;
}

static void free_toy(toy *t) {
    wg_release(t->table);
    wg_module_free(t->module);
}

static wg_trainer *make_trainer(toy *t, const char *optimizer, wg_trainer_options options) {
    wg_task task = {
        .context = t,
        .module = t->module,
        .loss = toy_loss,
        .evaluate = toy_evaluate,
        .save = toy_save,
        .restore = toy_restore,
    };
    if (options.schedule.peak == 0)
        options.schedule = (wg_schedule){.kind = WG_SCHEDULE_COSINE,
                                         .peak = 0.02,
                                         .warmup_steps = 3,
                                         .total_steps = options.steps};
    wg_trainer *trainer = wg_trainer_new(
        &task, wg_optimizer_new(&(wg_optimizer_choice){.name = optimizer, .weight_decay = 0.01}),
        &options);
    ck_assert_ptr_nonnull(trainer);
    return trainer;
}

/* A tensor of a checkpoint, as f64, into `values`. */
static void read_tensor(const char *path, const char *name, double *values) {
    wg_checkpoint *file = wg_checkpoint_open(path);
    wg_tensor *x = wg_checkpoint_get_tensor(file, name);
    ck_assert_ptr_nonnull(x);
    wg_to_array(wg_cast(x, WG_F64), values);
    wg_checkpoint_close(file);
}

static double saved_bias(const char *path) {
    double bias = NAN;
    read_tensor(path, "/model/bias", &bias);
    return bias;
}

static int64_t saved_step(const char *path) {
    int64_t step = -1;
    wg_checkpoint *file = wg_checkpoint_open(path);
    wg_checkpoint_get_integer(file, "/train/step", &step);
    wg_checkpoint_close(file);
    return step;
}

/* ---- Accumulation ---- */

static void run_in_batches(int64_t batch, int64_t accumulate, double *weight, double *loss) {
    toy t = make_toy(batch, WG_F64);
    wg_trainer *trainer =
        make_trainer(&t, "adamw", (wg_trainer_options){.steps = 12, .accumulate = accumulate});
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    ck_assert_int_eq(t.row, 12 * batch * accumulate);
    wg_to_array(wg_detach(t.weight), weight);
    const wg_history *history = wg_trainer_history(trainer);
    *loss = wg_history_column(history, "loss")[11];
    ck_assert_double_eq_tol(*loss, wg_history_column(history, "toy_loss")[11], 1e-14);
    wg_trainer_free(trainer);
    free_toy(&t);
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

/* ---- The average ---- */

typedef struct listener {
    toy *t;
    double weights[40]; /* after each step */
    int64_t stop_after;
    volatile sig_atomic_t stop;
} listener;

static void listen(const wg_train_report *report, void *context) {
    listener *l = context;
    l->weights[report->step] = first(l->t->weight);
    l->stop = report->step == l->stop_after;
}

START_TEST(the_average_is_evaluated_and_saved_as_the_model) {
    toy t = make_toy(8, WG_F64);
    listener l = {.t = &t};
    const char *path = in_scratch("average.h5");
    wg_trainer *trainer = make_trainer(&t, "adamw",
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
    read_tensor(path, "/model/weight", saved);
    read_tensor(path, "/train/weights/weight", trained);
    ck_assert(saved[0] == t.seen[9]);
    ck_assert(trained[0] == l.weights[10] && trained[0] == first(t.weight));
    wg_trainer_swap_average(trainer);
    ck_assert(first(t.weight) == saved[0]);
    wg_trainer_free(trainer);
    free_toy(&t);
}
END_TEST

START_TEST(a_run_is_resumed_with_an_average_if_it_was_begun_with_one) {
    for (int averaged = 0; averaged < 2; averaged++) {
        toy t = make_toy(8, WG_F32);
        const char *path = in_scratch("run.h5");
        wg_trainer_options options = {
            .steps = 3, .path = path, .average_decay = averaged ? 0.9 : 0};
        wg_trainer *trainer = make_trainer(&t, "adamw", options);
        ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
        wg_trainer_free(trainer);
        options.average_decay = averaged ? 0 : 0.9;
        trainer = make_trainer(&t, "adamw", options);
        ck_assert_int_eq(wg_trainer_resume(trainer, path), -1);
        assert_error(WG_ERROR_STATE, averaged ? "begun with an average" : "begun without");
        wg_trainer_free(trainer);
        free_toy(&t);
    }
}
END_TEST

/* ---- Resuming, whatever the optimizer ---- */

/* Steps to the end, or to `stop_after`. */
static void run_part(const char *optimizer, double clip, const char *path, bool resumes,
                     int64_t stop_after) {
    toy t = make_toy(8, WG_F32);
    listener l = {.t = &t, .stop_after = stop_after};
    wg_trainer_options options = {.steps = 14,
                                  .clip = clip,
                                  .accumulate = 3,
                                  .average_decay = 0.8,
                                  .evaluate_every = 2,
                                  .patience = 10,
                                  .path = path,
                                  .best_path = in_scratch("best.h5"),
                                  .listener = listen,
                                  .listener_context = &l,
                                  .stop = &l.stop};
    wg_trainer *trainer = make_trainer(&t, optimizer, options);
    if (resumes)
        ck_assert_int_eq(wg_trainer_resume(trainer, path), 0);
    ck_assert_int_eq(wg_trainer_run(trainer),
                     stop_after ? WG_TRAIN_INTERRUPTED : WG_TRAIN_FINISHED);
    ck_assert_int_eq(wg_trainer_evaluations(trainer)->row_count, stop_after ? 3 : 7);
    wg_trainer_free(trainer);
    free_toy(&t);
}

static const char *const names[] = {"sgd", "adam", "adamw", "adafactor", "lion", "muon"};

/* Clipped and, where i is odd, not: then weights move during backward. */
START_TEST(every_optimizer_goes_on_bit_for_bit) {
    static const char *const tensors[] = {"/model/weight", "/train/weights/weight", "/model/bias"};
    for (size_t i = 0; i < 2 * WG_COUNT(names); i++) {
        const char *straight = in_scratch("straight.h5"), *stopped = in_scratch("stopped.h5");
        const char *name = names[i / 2];
        const double clip = i % 2 ? -1 : 1;
        run_part(name, clip, straight, false, 0);
        run_part(name, clip, stopped, false, 5); /* the flag is seen after step 6 */
        ck_assert_int_eq(saved_step(stopped), 6);
        run_part(name, clip, stopped, true, 0);
        for (size_t j = 0; j < WG_COUNT(tensors); j++) {
            double one[WIDTH] = {0}, other[WIDTH] = {0};
            read_tensor(straight, tensors[j], one);
            read_tensor(stopped, tensors[j], other);
            ck_assert_msg(memcmp(one, other, sizeof one) == 0, "%s: %s", name, tensors[j]);
        }
    }
}
END_TEST

/* ---- Without clipping ---- */

enum { RUN_STEPS = 9 };

/* What a run of some steps was. */
typedef struct run {
    double weight[WIDTH], bias, norms[RUN_STEPS], losses[RUN_STEPS];
} run;

static run run_with_clip(const char *optimizer, double clip, int64_t accumulate, wg_dtype dtype) {
    run found = {.bias = NAN};
    toy t = make_toy(8, dtype);
    wg_trainer *trainer = make_trainer(
        &t, optimizer,
        (wg_trainer_options){
            .steps = RUN_STEPS, .clip = clip, .accumulate = accumulate, .average_decay = 0.5});
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_trainer_swap_average(trainer);
    wg_to_array(wg_cast(wg_detach(t.weight), WG_F64), found.weight);
    found.bias = wg_at(t.bias, (int64_t[]){0});
    const wg_history *history = wg_trainer_history(trainer);
    memcpy(found.norms, wg_history_column(history, "grad_norm"), sizeof found.norms);
    memcpy(found.losses, wg_history_column(history, "loss"), sizeof found.losses);
    wg_trainer_free(trainer);
    free_toy(&t);
    return found;
}

/* A norm that is never reached clips nothing, but has every gradient in memory together. */
START_TEST(a_run_without_clipping_has_the_bits_of_one_that_is_never_clipped) {
    for (size_t i = 0; i < WG_COUNT(names); i++)
        for (int64_t accumulate = 1; accumulate <= 3; accumulate += 2)
            for (int wide = 0; wide < 2; wide++) {
                const wg_dtype dtype = wide ? WG_F64 : WG_F32;
                const run without = run_with_clip(names[i], -1, accumulate, dtype);
                const run never = run_with_clip(names[i], 1e30, accumulate, dtype);
                ck_assert_msg(memcmp(&without, &never, sizeof never) == 0, "%s, %d batches, %s",
                              names[i], (int)accumulate, wg_dtype_name(dtype));
                ck_assert(without.norms[RUN_STEPS - 1] > 0);
            }
}
END_TEST

START_TEST(a_run_that_fails_in_the_midst_of_a_step_is_not_saved_and_does_not_go_on) {
    const char *path = in_scratch("torn.h5"), *other = in_scratch("other.h5");
    for (int clips = 0; clips < 2; clips++) {
        toy t = make_toy(8, WG_F32);
        t.poison_at = 32, t.steep = true; /* the bias is stepped before the weight */
        wg_trainer_options options = {
            .steps = 20, .clip = clips ? 1 : -1, .path = path, .save_every = 1};
        wg_trainer *trainer = make_trainer(&t, "adamw", options);
        ck_assert_int_eq(wg_trainer_run(trainer), -1);
        ck_assert_ptr_nonnull(strstr(wg_error_pending()->message, "step 5"));
        assert_error(WG_ERROR_GRADIENT, "the gradient of \"weight\" is not finite");
        ck_assert_int_eq(saved_step(path), 4);
        const double saved = saved_bias(path);
        ck_assert((wg_at(t.bias, (int64_t[]){0}) == saved) == (clips == 1));
        if (clips) {
            ck_assert_int_eq(wg_trainer_save(trainer, other), 0);
        } else {
            ck_assert_int_eq(wg_trainer_save(trainer, other), -1);
            assert_error(WG_ERROR_STATE, "step 5 failed when some weights had been stepped");
            ck_assert_int_eq(wg_trainer_run(trainer), -1);
            assert_error(WG_ERROR_STATE, "resume the run from its last checkpoint");
        }
        wg_trainer_free(trainer);
        t.poison_at = 0;
        options.steps = 6;
        trainer = make_trainer(&t, "adamw", options); /* the last good step is what goes on */
        ck_assert_int_eq(wg_trainer_resume(trainer, path), 0);
        ck_assert(wg_at(t.bias, (int64_t[]){0}) == saved);
        ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
        wg_trainer_free(trainer);
        free_toy(&t);
    }
}
END_TEST

/* What the counters say after each step. */
static void count_allocations(const wg_train_report *report, void *context) {
    int64_t *counts = context;
    counts[report->step] = wg_alloc_get_stats().system_allocations;
}

START_TEST(no_memory_is_asked_of_the_system_after_the_first_step) {
    for (size_t i = 0; i < 2 * WG_COUNT(names); i++) {
        int64_t counts[41];
        toy t = make_toy(8, WG_F32);
        wg_trainer *trainer = make_trainer(&t, names[i / 2],
                                           (wg_trainer_options){.steps = 40,
                                                                .clip = i % 2 ? -1 : 1,
                                                                .accumulate = 2,
                                                                .average_decay = 0.9,
                                                                .evaluate_every = 1,
                                                                .listener = count_allocations,
                                                                .listener_context = counts});
        ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
        ck_assert_int_eq(counts[40], counts[1]);
        wg_trainer_free(trainer);
        free_toy(&t);
    }
}
END_TEST

/* ---- Patience, and the best ---- */

/* The lowest is the third; the fourth is as low, which is no better; NaN is never better. */
static const double losses[] = {5, 4, 3, 3, NAN, 6, 2, 1, 1, 1};

START_TEST(a_run_stops_when_evaluations_become_no_better) {
    toy t = make_toy(8, WG_F32);
    t.script = losses;
    const char *path = in_scratch("last.h5"), *best = in_scratch("best.h5");
    wg_trainer_options options = {
        .steps = 20, .evaluate_every = 2, .patience = 3, .path = path, .best_path = best};
    wg_trainer *trainer = make_trainer(&t, "adamw", options);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_OUT_OF_PATIENCE);
    ck_assert_int_eq(wg_trainer_steps(trainer), 12);
    ck_assert_int_eq(saved_step(path), 12);
    ck_assert_int_eq(saved_step(best), 6);
    int64_t step = 0;
    double loss = 0;
    ck_assert(wg_trainer_best(trainer, &step, &loss));
    ck_assert_int_eq(step, 6);
    ck_assert(loss == 3);
    wg_trainer_free(trainer);

    trainer = make_trainer(&t, "adamw", options); /* resumed, it has no more patience either */
    ck_assert_int_eq(wg_trainer_resume(trainer, path), 0);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_OUT_OF_PATIENCE);
    ck_assert_int_eq(wg_trainer_steps(trainer), 12);
    wg_trainer_free(trainer);

    options.patience = 4;
    trainer = make_trainer(&t, "adamw", options);
    ck_assert_int_eq(wg_trainer_resume(trainer, path), 0);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    ck_assert_int_eq(saved_step(path), 20);
    ck_assert_int_eq(saved_step(best), 16);
    wg_trainer_free(trainer);
    free_toy(&t);
}
END_TEST

START_TEST(the_best_checkpoint_is_a_run_to_go_on_with) {
    toy t = make_toy(8, WG_F32);
    t.script = losses;
    const char *best = in_scratch("best.h5");
    wg_trainer_options options = {.steps = 12, .evaluate_every = 2, .best_path = best};
    wg_trainer *trainer = make_trainer(&t, "adamw", options);
    ck_assert(!wg_trainer_best(trainer, &(int64_t){0}, &(double){0}));
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    double end = first(t.weight);
    wg_trainer_free(trainer);
    t.evaluations = 3;
    trainer = make_trainer(&t, "adamw", options);
    ck_assert_int_eq(wg_trainer_resume(trainer, best), 0);
    ck_assert_int_eq(wg_trainer_steps(trainer), 6);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    ck_assert(first(t.weight) == end);
    wg_trainer_free(trainer);
    free_toy(&t);
}
END_TEST

START_TEST(the_best_wants_a_loss_to_go_by) {
    toy t = make_toy(8, WG_F32);
    t.has_no_loss = true;
    wg_trainer *trainer =
        make_trainer(&t, "adamw", (wg_trainer_options){.steps = 2, .patience = 1});
    ck_assert_int_eq(wg_trainer_run(trainer), -1);
    assert_error(WG_ERROR_STATE, "no \"loss\"");
    wg_trainer_free(trainer);
    free_toy(&t);
}
END_TEST

START_TEST(options_out_of_range_are_refused) {
    toy t = make_toy(8, WG_F32);
    wg_task task = {.context = &t, .module = t.module, .loss = toy_loss};
    const wg_trainer_options bad[] = {{.steps = 1, .accumulate = -1},
                                      {.steps = 1, .patience = -1},
                                      {.steps = 1, .average_decay = 1},
                                      {.steps = 1, .average_decay = -0.5}};
    for (size_t i = 0; i < WG_COUNT(bad); i++) {
        ck_assert_ptr_null(wg_trainer_new(&task, wg_adamw_new(NULL), &bad[i]));
        assert_error(WG_ERROR_ARGUMENT, "");
    }
    free_toy(&t);
}
END_TEST

/* ---- Divergence ---- */

static void check_hint(toy *t, wg_trainer_options options, const char *step, const char *hint) {
    options.schedule = (wg_schedule){.kind = WG_SCHEDULE_CONSTANT, .peak = 1e-3};
    wg_trainer *trainer = make_trainer(t, "sgd", options);
    ck_assert_int_eq(wg_trainer_run(trainer), -1);
    ck_assert_ptr_nonnull(strstr(wg_error_pending()->message, step));
    assert_error(WG_ERROR_GRADIENT, hint);
    wg_trainer_free(trainer);
    free_toy(t);
}

START_TEST(divergence_names_the_step_and_what_may_be_behind_it) {
    toy t = make_toy(8, WG_F32);
    t.poison_at = 80, t.blow_up = NAN;
    check_hint(&t, (wg_trainer_options){.steps = 20}, "step 11: loss: it is nan",
               "look at this batch");

    t = make_toy(8, WG_F32);
    t.poison_at = 80, t.blow_up = 1e20;
    check_hint(&t, (wg_trainer_options){.steps = 20, .clip = -1}, "step 12",
               "in step 11 the gradient had");

    t = make_toy(8, WG_F32);
    wg_set_grad_enabled(false);
    ck_assert_int_eq(wg_fill_(t.bias, INFINITY), 0);
    wg_set_grad_enabled(true);
    check_hint(&t, (wg_trainer_options){.steps = 20}, "step 1", "hint: bias was not finite");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        accumulated_batches_step_as_one_of_their_size,
        the_average_is_evaluated_and_saved_as_the_model,
        a_run_is_resumed_with_an_average_if_it_was_begun_with_one,
        every_optimizer_goes_on_bit_for_bit,
        a_run_without_clipping_has_the_bits_of_one_that_is_never_clipped,
        a_run_that_fails_in_the_midst_of_a_step_is_not_saved_and_does_not_go_on,
        no_memory_is_asked_of_the_system_after_the_first_step,
        a_run_stops_when_evaluations_become_no_better,
        the_best_checkpoint_is_a_run_to_go_on_with,
        the_best_wants_a_loss_to_go_by,
        options_out_of_range_are_refused,
        divergence_names_the_step_and_what_may_be_behind_it,
    };
    return wg_run_tests("trainer_options", WG_COUNT(tests), tests);
}
