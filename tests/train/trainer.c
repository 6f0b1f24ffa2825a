/* The training loop of all models, on a linear regression. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/kernels.h"
#include "tensor/ops.h"
#include "tests/train/regression.h"
#include "base/internal.h"
#include "io/internal.h"
#include "tensor/internal.h"

enum { WIDTH = REGRESSION_WIDTH };

/* Trains a new regression, and copies its weights. */
static void run_to_end(wg_trainer_options options, float *weights) {
    regression t = regression_make(8, WG_F32);
    assert_run(regression_trainer(&t, "adamw", options), WG_TRAIN_FINISHED);
    wg_to_array(t.weight, weights);
    regression_free(&t);
}

START_TEST(a_metric_is_a_weighted_mean) {
    wg_metrics metrics = {0};
    ck_assert_int_eq(wg_metrics_add(&metrics, "accuracy", 1.0, 3), 0);
    ck_assert_int_eq(wg_metrics_add(&metrics, "accuracy", 0.0, 1), 0);
    ck_assert_double_eq(wg_metrics_get(&metrics, "accuracy"), 0.75);
    ck_assert_double_eq(wg_metrics_weight(&metrics, "accuracy"), 4);
    ck_assert_int_eq(metrics.count, 1);
    ck_assert_int_eq(wg_metrics_add(&metrics, "loss", NAN, 0), 0); /* of nothing */
    ck_assert(isnan(wg_metrics_get(&metrics, "loss")) && isnan(wg_metrics_get(&metrics, "other")));
    ck_assert_int_eq(wg_metrics_add(&metrics, "loss", 0.5, 2), 0);
    ck_assert_double_eq(wg_metrics_get(&metrics, "loss"), 0.5);
}
END_TEST

START_TEST(metrics_refuse_bad_names_and_too_many) {
    wg_metrics metrics = {0};
    assert_fails(wg_metrics_add(&metrics, "", 1, 1), WG_ERROR_ARGUMENT, "no name");
    for (int i = 0; i < WG_METRIC_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%d", i);
        ck_assert_int_eq(wg_metrics_add(&metrics, name, 1, 1), 0);
    }
    assert_fails(wg_metrics_add(&metrics, "more", 1, 1), WG_ERROR_ARGUMENT, "one too many");
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
    ck_assert_double_eq(wg_metrics_get(report->metrics, "regression_loss"), report->loss);
    h->evaluations += report->evaluation != NULL;
    h->saves += report->saved;
    if (h->steps == 1)
        h->first_loss = report->loss;
    h->last_loss = report->loss;
}

START_TEST(a_run_learns_and_reports_every_step) {
    heard h = {0};
    regression t = regression_make(8, WG_F32);
    wg_trainer *trainer = regression_trainer(&t, "adamw",
                                             (wg_trainer_options){
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
    ck_assert_double_lt(h.last_loss, 0.5 * h.first_loss);

    const wg_history *history = wg_trainer_history(trainer);
    ck_assert_int_eq(history->row_count, 100);
    ck_assert_double_eq(wg_history_column(history, "loss")[99], h.last_loss);
    ck_assert_double_gt(wg_history_column(history, "grad_norm")[0], 0);
    const wg_history *evaluations = wg_trainer_evaluations(trainer);
    ck_assert_int_eq(evaluations->row_count, 4);
    ck_assert_double_eq(wg_history_column(evaluations, "step")[0], 30);
    wg_trainer_free(trainer);
    regression_free(&t);
}
END_TEST

START_TEST(evaluating_and_saving_leave_the_training_alone) {
    float plain[WIDTH], busy[WIDTH];
    run_to_end((wg_trainer_options){.steps = 12}, plain);
    run_to_end(
        (wg_trainer_options){
            .steps = 12, .evaluate_every = 1, .path = in_scratch("run.h5"), .save_every = 1},
        busy);
    ck_assert_mem_eq(plain, busy, sizeof plain);
}
END_TEST

START_TEST(a_checkpoint_says_with_what_it_was_made) {
    const char *path = in_scratch("run.h5");
    regression t = regression_make(8, WG_F32);
    wg_trainer *trainer =
        regression_trainer(&t, "adamw", (wg_trainer_options){.steps = 1, .path = path});
    assert_run(trainer, WG_TRAIN_FINISHED);
    regression_free(&t);
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
    regression t = regression_make(8, WG_F32);
    wg_task task = {.module = t.module, .loss = no_loss};
    wg_trainer *trainer =
        wg_trainer_new(&task, wg_adamw_new(NULL), &(wg_trainer_options){.steps = 3});
    assert_fails(wg_trainer_run(trainer), WG_ERROR_STATE, "step 1: task: it gave no loss");
    wg_trainer_free(trainer);
    regression_free(&t);
}
END_TEST

START_TEST(weights_that_are_no_numbers_are_not_saved) {
    const char *path = in_scratch("run.h5");
    regression t = regression_make(8, WG_F32);
    wg_trainer_options options = {.steps = 10, .path = path, .save_every = 1};
    options.schedule = (wg_schedule){.kind = WG_SCHEDULE_CONSTANT, .peak = 1e300};
    wg_trainer *trainer = regression_trainer(&t, "adamw", options);
    assert_fails(wg_trainer_run(trainer), WG_ERROR_GRADIENT, "weight is no longer finite");
    wg_trainer_free(trainer);
    regression_free(&t);
    ck_assert_int_eq(saved_step(path), 0);
}
END_TEST

START_TEST(a_run_that_cannot_be_saved_fails_before_its_first_step) {
    regression t = regression_make(8, WG_F32);
    assert_run(
        regression_trainer(&t, "adamw",
                           (wg_trainer_options){.steps = 3, .path = in_scratch("none/run.h5")}),
        -1);
    ck_assert_int_eq(t.row, 0);
    ck_assert_ptr_nonnull(wg_error_pending());
    wg_error_clear();
    regression_free(&t);
}
END_TEST

START_TEST(a_model_without_a_run_is_not_resumed) {
    const char *path = in_scratch("model.h5");
    regression t = regression_make(8, WG_F32);
    wg_checkpoint *file = wg_checkpoint_create(path);
    ck_assert_int_eq(wg_checkpoint_put_module(file, "/model", t.module), 0);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    wg_trainer *trainer = regression_trainer(&t, "adamw", (wg_trainer_options){.steps = 3});
    assert_fails(wg_trainer_resume(trainer, path), WG_ERROR_STATE, "no training run");
    wg_trainer_free(trainer);
    regression_free(&t);
}
END_TEST

START_TEST(what_a_trainer_lacks_is_named) {
    regression t = regression_make(8, WG_F32);
    const wg_task whole = {.context = &t, .module = t.module, .loss = regression_loss},
                  no_loss = {.context = &t, .module = t.module},
                  no_module = {.context = &t, .loss = regression_loss};
    const wg_trainer_options good = {.steps = 3, .schedule = {.peak = 0.05, .total_steps = 3}},
                             no_steps = {.steps = 0};
    const struct {
        const wg_task *task;
        const wg_trainer_options *options;
        const char *part;
    } cases[] = {{&no_loss, &good, "no function `loss'"},
                 {&no_module, &good, "no module"},
                 {&whole, NULL, "no options"},
                 {NULL, &good, "no task"},
                 {&whole, &no_steps, "0 steps"},
                 {&whole, &good, "no optimizer"}};
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        wg_optimizer *optimizer = i + 1 < WG_COUNT(cases) ? wg_adamw_new(NULL) : NULL;
        assert_fails(wg_trainer_new(cases[i].task, optimizer, cases[i].options), WG_ERROR_ARGUMENT,
                     cases[i].part);
    }
    regression_free(&t);
}
END_TEST

START_TEST(frozen_parameters_stay_and_the_others_are_trained) {
    regression t = regression_make(8, WG_F32);
    wg_module *frozen = wg_module_new(t.module, "frozen", sizeof *frozen);
    wg_tensor *still = wg_module_parameter(frozen, "weight", WG_DIMS(WIDTH));
    wg_set_grad_enabled(false);
    wg_fill_(still, 3);
    wg_set_grad_enabled(true);
    ck_assert_int_eq(wg_module_requires_grad(frozen, false), 0);
    wg_trainer *trainer = regression_trainer(&t, "adamw", (wg_trainer_options){.steps = 3});
    assert_run(trainer, WG_TRAIN_FINISHED);
    assert_close(wg_detach(still), wg_full(WG_F32, WG_DIMS(WIDTH), 3), 0, 0);
    ck_assert(first_element(t.weight) != 0.25);
    ck_assert_int_eq(wg_module_requires_grad(t.module, false), 0);
    const wg_task task = {.context = &t, .module = t.module, .loss = regression_loss};
    assert_fails(wg_trainer_new(&task, wg_adamw_new(NULL), &(wg_trainer_options){.steps = 3}),
                 WG_ERROR_GRADIENT, "all 3 parameters are frozen");
    ck_assert_int_eq(wg_module_requires_grad(t.module, true), 0);
    trainer = regression_trainer(&t, "adamw", (wg_trainer_options){.steps = 3});
    assert_no_error();
    wg_trainer_free(trainer);
    regression_free(&t);
}
END_TEST

START_TEST(the_log_has_a_line_for_each_step) {
    float weights[WIDTH];
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
        ck_assert_ptr_nonnull(strstr(line, "\"regression_loss\": "));
        ck_assert((strstr(line, "\"eval_loss\": ") != NULL) == (step % 2 == 0));
    }
    ck_assert_ptr_null(fgets(line, sizeof line, file));
    fclose(file);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_metric_is_a_weighted_mean,
        metrics_refuse_bad_names_and_too_many,
        a_run_learns_and_reports_every_step,
        evaluating_and_saving_leave_the_training_alone,
        a_checkpoint_says_with_what_it_was_made,
        a_task_that_gives_no_loss_is_an_error,
        weights_that_are_no_numbers_are_not_saved,
        a_run_that_cannot_be_saved_fails_before_its_first_step,
        a_model_without_a_run_is_not_resumed,
        what_a_trainer_lacks_is_named,
        frozen_parameters_stay_and_the_others_are_trained,
        the_log_has_a_line_for_each_step,
    };
    add_suite("train", tests);
}
