/* The training loop of all models, on a model of one matrix. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tensor/kernels.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"
#include "train/trainer.h"
#include "base/internal.h"
#include "io/internal.h"
#include "tensor/internal.h"

enum { WIDTH = 4, BATCH = 8 };

/* Learns y = x + noise by a matrix: the data come from a generator, the noise from the module's
 * generator. */
typedef struct toy {
    wg_module *module;
    wg_tensor *weight;
    wg_generator data;
    int64_t poison_step; /* the step whose loss is NaN; 0: none */
    int64_t steps;
    int evaluations;
} toy;

static wg_tensor *toy_error(toy *t, wg_tensor *x) {
    wg_tensor *difference = wg_sub(wg_matmul(x, t->weight), x);
    return wg_mean(wg_mul(difference, difference), WG_ALL, false);
}

static wg_tensor *toy_loss(void *context, wg_metrics *metrics) {
    toy *t = context;
    wg_tensor *x = wg_randn(&t->data, WG_F32, WG_DIMS(BATCH, WIDTH));
    wg_tensor *noise = wg_randn(wg_module_generator(t->module), WG_F32, WG_DIMS(BATCH, WIDTH));
    wg_tensor *loss = toy_error(t, wg_add(x, wg_mul_scalar(noise, 0.01)));
    if (++t->steps == t->poison_step)
        loss = wg_mul_scalar(loss, NAN);
    metrics->tokens += BATCH;
    return wg_metrics_add(metrics, "toy_loss", wg_item(loss), BATCH) < 0 ? NULL : loss;
}

static int toy_evaluate(void *context, wg_metrics *metrics) {
    toy *t = context;
    t->evaluations++;
    ck_assert(!wg_module_is_training(t->module));
    ck_assert(!wg_grad_enabled());
    wg_generator held_out = {.seed = 99};
    wg_tensor *x = wg_randn(&held_out, WG_F32, WG_DIMS(BATCH, WIDTH));
    return wg_metrics_add(metrics, "loss", wg_item(toy_error(t, x)), BATCH);
}

static int toy_save(void *context, wg_checkpoint *file) {
    toy *t = context;
    return wg_checkpoint_put_integer(file, "/train/data/offset", (int64_t)t->data.offset);
}

static int toy_restore(void *context, wg_checkpoint *file) {
    toy *t = context;
    int64_t offset = 0;
    int result = wg_checkpoint_get_integer(file, "/train/data/offset", &offset);
    t->data.offset = (uint64_t)offset;
    return result;
}

static toy make_toy(void) {
    toy t = {.module = wg_module_new(NULL, "", sizeof(wg_module)), .data = {.seed = 7}};
    t.weight = wg_module_parameter(t.module, "weight", WG_DIMS(WIDTH, WIDTH));
    wg_module_generator(t.module)->seed = 5;
    wg_set_grad_enabled(false);
    ck_assert_int_eq(wg_fill_(t.weight, 0.5), 0);
    wg_set_grad_enabled(true);
    return t;
}

static wg_trainer *make_trainer(toy *t, wg_trainer_options options) {
    wg_task task = {
        .context = t,
        .module = t->module,
        .loss = toy_loss,
        .evaluate = toy_evaluate,
        .save = toy_save,
        .restore = toy_restore,
    };
    if (options.schedule.peak == 0)
        options.schedule.peak = 0.05;
    options.schedule.total_steps = options.steps;
    return wg_trainer_new(&task, wg_adamw_new(&(wg_adamw_options){.weight_decay = 0.01}), &options);
}

/* Trains a new toy and writes its weights to a file. */
static void run_to_end(wg_trainer_options options, float *weights) {
    toy t = make_toy();
    wg_trainer *trainer = make_trainer(&t, options);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_to_array(t.weight, weights);
    wg_trainer_free(trainer);
    wg_module_free(t.module);
}

START_TEST(a_metric_is_a_weighted_mean) {
    wg_metrics metrics = {0};
    ck_assert_int_eq(wg_metrics_add(&metrics, "accuracy", 1.0, 3), 0);
    ck_assert_int_eq(wg_metrics_add(&metrics, "accuracy", 0.0, 1), 0);
    ck_assert_double_eq(wg_metrics_get(&metrics, "accuracy"), 0.75);
    ck_assert_double_eq(wg_metrics_weight(&metrics, "accuracy"), 4);
    ck_assert_int_eq(metrics.count, 1);
}
END_TEST

START_TEST(a_metric_of_nothing_is_not_a_number) {
    wg_metrics metrics = {0};
    ck_assert_int_eq(wg_metrics_add(&metrics, "accuracy", NAN, 0), 0);
    ck_assert(isnan(wg_metrics_get(&metrics, "accuracy")));
    ck_assert(isnan(wg_metrics_get(&metrics, "unknown")));
    ck_assert_int_eq(wg_metrics_add(&metrics, "accuracy", 0.5, 2), 0);
    ck_assert_double_eq(wg_metrics_get(&metrics, "accuracy"), 0.5);
}
END_TEST

START_TEST(metrics_refuse_bad_names_and_too_many) {
    wg_metrics metrics = {0};
    ck_assert_int_lt(wg_metrics_add(&metrics, "", 1, 1), 0);
    assert_error(WG_ERROR_ARGUMENT, "no name");
    for (int i = 0; i < WG_METRIC_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%d", i);
        ck_assert_int_eq(wg_metrics_add(&metrics, name, 1, 1), 0);
    }
    ck_assert_int_lt(wg_metrics_add(&metrics, "more", 1, 1), 0);
    assert_error(WG_ERROR_ARGUMENT, "one too many");
}
END_TEST

START_TEST(a_history_comes_back_from_a_file) {
    wg_history history = {0}, read = {0};
    for (int row = 0; row < 3000; row++) {
        ck_assert_int_eq(wg__history_add_row(&history), 0);
        ck_assert_int_eq(wg__history_set(&history, "step", row), 0);
        if (row >= 10)
            ck_assert_int_eq(wg__history_set(&history, "late", 0.5 * row), 0);
    }
    wg_checkpoint *file = wg_checkpoint_create(in_scratch("h.h5"));
    ck_assert_int_eq(wg__history_put(&history, file, "/train/history/training"), 0);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);

    file = wg_checkpoint_open(in_scratch("h.h5"));
    ck_assert_int_eq(wg_history_get(&read, file, "/train/history/training"), 0);
    ck_assert_int_eq(read.row_count, 3000);
    ck_assert(isnan(wg_history_column(&read, "late")[9]));
    ck_assert_double_eq(wg_history_column(&read, "late")[2999], 1499.5);
    ck_assert_double_eq(wg_history_column(&read, "step")[2999], 2999);
    ck_assert_ptr_null(wg_history_column(&read, "early"));

    ck_assert_int_eq(wg__history_add_row(&read), 0); /* and goes on growing */
    ck_assert(isnan(wg_history_column(&read, "step")[3000]));
    wg_history_clear(&read);
    ck_assert_int_eq(wg_history_get(&read, file, "/train/history/other"), 0);
    ck_assert_int_eq(read.row_count, 0);
    wg_checkpoint_close(file);
    wg_history_clear(&history);
}
END_TEST

typedef struct heard {
    int steps, evaluations, saves;
    double first_loss, last_loss;
} heard;

static void listen(const wg_train_report *report, void *context) {
    heard *h = context;
    h->steps++;
    ck_assert_int_eq(report->step, h->steps);
    ck_assert_int_eq(report->total, 100);
    ck_assert_double_eq(wg_metrics_get(report->metrics, "toy_loss"), report->loss);
    h->evaluations += report->evaluation != NULL;
    h->saves += report->saved;
    if (h->steps == 1)
        h->first_loss = report->loss;
    h->last_loss = report->loss;
}

START_TEST(a_run_learns_and_reports_every_step) {
    heard h = {0};
    toy t = make_toy();
    wg_trainer *trainer = make_trainer(&t, (wg_trainer_options){
                                               .steps = 100,
                                               .evaluate_every = 30,
                                               .path = in_scratch("run.h5"),
                                               .save_every = 50,
                                               .save_seconds = -1,
                                               .listener = listen,
                                               .listener_context = &h,
                                           });
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    ck_assert_int_eq(h.steps, 100);
    ck_assert_int_eq(h.evaluations, 4); /* 30, 60, 90 and the last */
    ck_assert_int_eq(t.evaluations, 4);
    ck_assert_int_eq(h.saves, 2);
    ck_assert_double_lt(h.last_loss, 0.1 * h.first_loss);

    const wg_history *history = wg_trainer_history(trainer);
    ck_assert_int_eq(history->row_count, 100);
    ck_assert_double_eq(wg_history_column(history, "loss")[99], h.last_loss);
    ck_assert_double_gt(wg_history_column(history, "grad_norm")[0], 0);
    const wg_history *evaluations = wg_trainer_evaluations(trainer);
    ck_assert_int_eq(evaluations->row_count, 4);
    ck_assert_double_eq(wg_history_column(evaluations, "step")[0], 30);
    wg_trainer_free(trainer);
    wg_module_free(t.module);
}
END_TEST

/* Stops a run by the flag after a step, as Ctrl-C does. */
typedef struct stopper {
    int64_t after;
    volatile sig_atomic_t flag;
} stopper;

static void stop_after(const wg_train_report *report, void *context) {
    stopper *s = context;
    if (report->step == s->after)
        s->flag = 1;
}

START_TEST(a_resumed_run_gives_the_same_bits) {
    float straight[WIDTH * WIDTH], resumed[WIDTH * WIDTH];
    const char *path = in_scratch("run.h5");
    wg_trainer_options options = {.steps = 20, .evaluate_every = 3, .path = path};
    run_to_end((wg_trainer_options){.steps = 20, .evaluate_every = 3}, straight);

    stopper s = {.after = 7};
    options.listener = stop_after;
    options.listener_context = &s;
    options.stop = &s.flag;
    toy first = make_toy();
    wg_trainer *trainer = make_trainer(&first, options);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_INTERRUPTED);
    ck_assert_int_eq(wg_trainer_steps(trainer), 8); /* the current step is finished */
    wg_trainer_free(trainer);
    wg_module_free(first.module);

    options.stop = NULL;
    toy second = make_toy();
    trainer = make_trainer(&second, options);
    ck_assert_int_eq(wg_trainer_resume(trainer, path), 0);
    ck_assert_int_eq(wg_trainer_steps(trainer), 8);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_to_array(second.weight, resumed);
    ck_assert_mem_eq(straight, resumed, sizeof straight);
    ck_assert_int_eq(wg_trainer_history(trainer)->row_count, 20);
    ck_assert_int_eq(wg_trainer_evaluations(trainer)->row_count, 7);
    wg_trainer_free(trainer);
    wg_module_free(second.module);
}
END_TEST

START_TEST(evaluating_and_saving_leave_the_training_alone) {
    float plain[WIDTH * WIDTH], busy[WIDTH * WIDTH];
    run_to_end((wg_trainer_options){.steps = 12}, plain);
    run_to_end(
        (wg_trainer_options){
            .steps = 12, .evaluate_every = 1, .path = in_scratch("run.h5"), .save_every = 1},
        busy);
    ck_assert_mem_eq(plain, busy, sizeof plain);
}
END_TEST

/* The step of a checkpoint. */
static int64_t saved_step(const char *path) {
    int64_t step = -1;
    wg_checkpoint *file = wg_checkpoint_open(path);
    wg_checkpoint_get_integer(file, "/train/step", &step);
    wg_checkpoint_close(file);
    assert_no_error();
    return step;
}

START_TEST(a_loss_that_is_no_number_stops_the_run_and_is_not_saved) {
    const char *path = in_scratch("run.h5");
    toy t = make_toy();
    t.poison_step = 5;
    wg_trainer *trainer =
        make_trainer(&t, (wg_trainer_options){.steps = 10, .path = path, .save_every = 1});
    ck_assert_int_eq(wg_trainer_run(trainer), -1);
    assert_error(WG_ERROR_GRADIENT, "step 5");
    wg_trainer_free(trainer);
    wg_module_free(t.module);
    ck_assert_int_eq(saved_step(path), 4);
}
END_TEST

START_TEST(a_checkpoint_says_with_what_it_was_made) {
    const char *path = in_scratch("run.h5");
    toy t = make_toy();
    wg_trainer *trainer = make_trainer(&t, (wg_trainer_options){.steps = 1, .path = path});
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_trainer_free(trainer);
    wg_module_free(t.module);
    const wg_kernels kernels = wg__kernels_in_use();
    const struct {
        const char *name, *text; /* NULL: any, but not "" */
    } rows[] = {{"version", wg_version()},
                {"processor", NULL},
                {"kernels", kernels.vectors},
                {"kernels_bf16", kernels.bf16},
                {"kernels_blocks", kernels.blocks},
                {"blis", kernels.blis},
                {"commit", wg__commit()},
                {"deterministic", wg_is_deterministic() ? "yes" : "no"},
                {"blis_kernels", kernels.blis_family},
                {"hdf5", wg__checkpoint_library()}};
    wg_checkpoint *file = wg_checkpoint_open(path);
    for (size_t i = 0; i < WG_COUNT(rows); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/%s", WG_ENVIRONMENT, rows[i].name);
        char *text = wg_checkpoint_get_text(file, name);
        assert_no_error();
        if (rows[i].text)
            ck_assert_str_eq(text, rows[i].text);
        ck_assert_int_gt(strlen(text), 0);
        wg_text_free(text);
    }
    wg_checkpoint_close(file);
}
END_TEST

static wg_tensor *no_loss(void *context, wg_metrics *metrics) {
    (void)context, (void)metrics;
    return NULL;
}

START_TEST(a_task_that_gives_no_loss_is_an_error) {
    toy t = make_toy();
    wg_task task = {.module = t.module, .loss = no_loss};
    wg_trainer *trainer =
        wg_trainer_new(&task, wg_adamw_new(NULL), &(wg_trainer_options){.steps = 3});
    ck_assert_int_eq(wg_trainer_run(trainer), -1);
    assert_error(WG_ERROR_STATE, "step 1: task: it gave no loss");
    wg_trainer_free(trainer);
    wg_module_free(t.module);
}
END_TEST

START_TEST(weights_that_are_no_numbers_are_not_saved) {
    const char *path = in_scratch("run.h5");
    toy t = make_toy();
    wg_trainer_options options = {.steps = 10, .path = path, .save_every = 1};
    options.schedule = (wg_schedule){.kind = WG_SCHEDULE_CONSTANT, .peak = 1e300};
    wg_trainer *trainer = make_trainer(&t, options);
    ck_assert_int_eq(wg_trainer_run(trainer), -1);
    assert_error(WG_ERROR_GRADIENT, "weight is no longer finite");
    wg_trainer_free(trainer);
    wg_module_free(t.module);
    ck_assert_int_eq(saved_step(path), 0);
}
END_TEST

START_TEST(a_run_that_cannot_be_saved_fails_before_its_first_step) {
    toy t = make_toy();
    wg_trainer *trainer =
        make_trainer(&t, (wg_trainer_options){.steps = 3, .path = in_scratch("none/run.h5")});
    ck_assert_int_eq(wg_trainer_run(trainer), -1);
    ck_assert_int_eq(t.steps, 0);
    ck_assert_ptr_nonnull(wg_error_pending());
    wg_error_clear();
    wg_trainer_free(trainer);
    wg_module_free(t.module);
}
END_TEST

START_TEST(a_model_without_a_run_is_not_resumed) {
    const char *path = in_scratch("model.h5");
    toy t = make_toy();
    wg_checkpoint *file = wg_checkpoint_create(path);
    ck_assert_int_eq(wg_checkpoint_put_module(file, "/model", t.module), 0);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    wg_trainer *trainer = make_trainer(&t, (wg_trainer_options){.steps = 3});
    ck_assert_int_eq(wg_trainer_resume(trainer, path), -1);
    assert_error(WG_ERROR_STATE, "no training run");
    wg_trainer_free(trainer);
    wg_module_free(t.module);
}
END_TEST

START_TEST(a_trainer_refuses_a_run_of_no_steps) {
    toy t = make_toy();
    ck_assert_ptr_null(make_trainer(&t, (wg_trainer_options){.steps = 0}));
    assert_error(WG_ERROR_ARGUMENT, "0 steps");
    wg_module_free(t.module);
}
END_TEST

START_TEST(a_trainer_refuses_a_task_without_a_loss_or_a_module) {
    toy t = make_toy();
    const wg_trainer_options options = {.steps = 3, .schedule = {.peak = 0.05, .total_steps = 3}};
    wg_task task = {.context = &t, .module = t.module};
    ck_assert_ptr_null(wg_trainer_new(&task, wg_adamw_new(NULL), &options));
    assert_error(WG_ERROR_ARGUMENT, "no function `loss' in the task");
    task = (wg_task){.context = &t, .loss = toy_loss};
    ck_assert_ptr_null(wg_trainer_new(&task, wg_adamw_new(NULL), &options));
    assert_error(WG_ERROR_ARGUMENT, "no module in the task");
    task.module = t.module;
    ck_assert_ptr_null(wg_trainer_new(&task, NULL, &options));
    assert_error(WG_ERROR_ARGUMENT, "no optimizer");
    ck_assert_ptr_null(wg_trainer_new(&task, wg_adamw_new(NULL), NULL));
    assert_error(WG_ERROR_ARGUMENT, "no options");
    ck_assert_ptr_null(wg_trainer_new(NULL, wg_adamw_new(NULL), &options));
    assert_error(WG_ERROR_ARGUMENT, "no task");
    wg_module_free(t.module);
}
END_TEST

START_TEST(frozen_parameters_stay_and_the_others_are_trained) {
    toy t = make_toy();
    wg_module *frozen = wg_module_new(t.module, "frozen", sizeof *frozen);
    wg_tensor *still = wg_module_parameter(frozen, "weight", WG_DIMS(WIDTH));
    wg_set_grad_enabled(false);
    wg_fill_(still, 3);
    wg_set_grad_enabled(true);
    ck_assert_int_eq(wg_module_requires_grad(frozen, false), 0);
    wg_trainer *trainer = make_trainer(&t, (wg_trainer_options){.steps = 3});
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_trainer_free(trainer);
    float weights[WIDTH], trained[WIDTH * WIDTH];
    wg_to_array(still, weights);
    wg_to_array(t.weight, trained);
    for (int i = 0; i < WIDTH; i++)
        ck_assert(weights[i] == 3);
    ck_assert(trained[0] != 0.5f);
    ck_assert_int_eq(wg_module_requires_grad(t.module, false), 0);
    ck_assert_ptr_null(make_trainer(&t, (wg_trainer_options){.steps = 3}));
    assert_error(WG_ERROR_GRADIENT, "all 2 parameters are frozen");
    ck_assert_int_eq(wg_module_requires_grad(t.module, true), 0);
    trainer = make_trainer(&t, (wg_trainer_options){.steps = 3});
    assert_no_error();
    wg_trainer_free(trainer);
    wg_module_free(t.module);
}
END_TEST

START_TEST(the_log_has_a_line_for_each_step) {
    float weights[WIDTH * WIDTH];
    const char *path = in_scratch("run.jsonl");
    run_to_end((wg_trainer_options){.steps = 4, .evaluate_every = 2, .log_path = path}, weights);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    char line[1000];
    for (int step = 1; step <= 4; step++) {
        char beginning[32];
        snprintf(beginning, sizeof beginning, "{\"step\": %d, \"loss\": ", step);
        ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
        ck_assert_int_eq(strncmp(line, beginning, strlen(beginning)), 0);
        ck_assert_ptr_nonnull(strstr(line, "\"tokens_per_s\": "));
        ck_assert_ptr_nonnull(strstr(line, "\"toy_loss\": "));
        ck_assert((strstr(line, "\"eval_loss\": ") != NULL) == (step % 2 == 0));
    }
    ck_assert_ptr_null(fgets(line, sizeof line, file));
    fclose(file);
}
END_TEST

/* The counters after each step. */
static void count_allocations(const wg_train_report *report, void *context) {
    int64_t *counts = context;
    counts[report->step] = wg_alloc_get_stats().system_allocations;
}

START_TEST(no_memory_is_asked_of_the_system_after_the_first_step) {
    int64_t counts[31];
    float weights[WIDTH * WIDTH];
    run_to_end((wg_trainer_options){.steps = 30,
                                    .listener = count_allocations,
                                    .listener_context = counts},
               weights);
    ck_assert_int_eq(counts[29], counts[1]); /* the last step also evaluates */
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_metric_is_a_weighted_mean,
        a_metric_of_nothing_is_not_a_number,
        metrics_refuse_bad_names_and_too_many,
        a_history_comes_back_from_a_file,
        a_run_learns_and_reports_every_step,
        a_resumed_run_gives_the_same_bits,
        evaluating_and_saving_leave_the_training_alone,
        a_loss_that_is_no_number_stops_the_run_and_is_not_saved,
        a_checkpoint_says_with_what_it_was_made,
        a_task_that_gives_no_loss_is_an_error,
        weights_that_are_no_numbers_are_not_saved,
        a_run_that_cannot_be_saved_fails_before_its_first_step,
        a_model_without_a_run_is_not_resumed,
        a_trainer_refuses_a_run_of_no_steps,
        a_trainer_refuses_a_task_without_a_loss_or_a_module,
        frozen_parameters_stay_and_the_others_are_trained,
        the_log_has_a_line_for_each_step,
        no_memory_is_asked_of_the_system_after_the_first_step,
    };
    add_suite("train", tests);
}
