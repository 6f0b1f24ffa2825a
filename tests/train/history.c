/* The history of long runs: at most so many rows, whose counts and means are those of all steps. */
#include <math.h>
#include <string.h>

#include "tests/support/testing.h"
#include "tests/train/regression.h"
#include "train/history.h"

static void add(wg_history *history, wg__history_join join, int64_t step, double loss) {
    ck_assert_int_eq(wg__history_make_room(history, join), 0);
    ck_assert_int_eq(wg__history_add_row(history), 0);
    ck_assert_int_eq(wg__history_set(history, "step", (double)step), 0);
    ck_assert_int_eq(wg__history_set(history, "loss", loss), 0);
}

START_TEST(a_million_steps_are_at_most_4096_rows_with_the_means_of_all) {
    enum { STEPS = 1000000 };
    wg_history history = {0};
    double sum = 0;
    for (int64_t step = 1; step <= STEPS; step++) {
        const double loss = (double)(step * 7919 % 1000);
        sum += loss;
        add(&history, WG__HISTORY_MEAN, step, loss);
        ck_assert_int_le(history.row_count, WG_HISTORY_ROWS);
    }
    ck_assert_int_le(history.capacity, WG_HISTORY_ROWS);
    const double *steps = wg_history_column(&history, "step");
    const double *losses = wg_history_column(&history, "loss");
    int64_t count = 0, greatest = 0;
    double means = 0, middles = 0;
    for (int64_t row = 0; row < history.row_count; row++) {
        const int64_t rows = wg__history_count(&history, row);
        ck_assert_double_eq(steps[row], (double)count + (double)(rows + 1) / 2);
        count += rows;
        means += (double)rows * losses[row];
        middles += (double)rows * steps[row];
        greatest = rows > greatest ? rows : greatest;
    }
    ck_assert_int_eq(count, STEPS);
    ck_assert_double_eq_tol(means / sum, 1, 1e-12);
    ck_assert_double_eq_tol(middles, 0.5 * STEPS * (STEPS + 1.0), 1);
    ck_assert_int_eq(greatest, 512); /* 10^6 / (4096 - 1024 - what is free), as a power of two */
    for (int i = 1; i <= WG_HISTORY_RECENT; i++) {
        const int64_t step = STEPS + 1 - i;
        ck_assert_double_eq(steps[history.row_count - i], (double)step);
        ck_assert_double_eq(losses[history.row_count - i], (double)(step * 7919 % 1000));
    }
    wg_history_clear(&history);
}
END_TEST

START_TEST(a_metric_of_some_steps_is_the_mean_of_these) {
    wg_history history = {0};
    for (int64_t step = 1; step <= WG_HISTORY_ROWS + 1; step++) {
        add(&history, WG__HISTORY_MEAN, step, 1);
        if (step % 2 == 0)
            ck_assert_int_eq(wg__history_set(&history, "even", (double)step), 0);
    }
    ck_assert_int_eq(wg__history_count(&history, 0), 2);
    ck_assert_double_eq(wg_history_column(&history, "even")[0], 2);
    ck_assert_double_eq(wg_history_column(&history, "even")[1], 4);
    wg_history_clear(&history);
}
END_TEST

START_TEST(the_best_evaluation_stays_and_those_after_it_are_counted) {
    enum { BEST = 777, EVALUATIONS = 100000 };
    wg_history history = {0};
    for (int64_t i = 1; i <= EVALUATIONS; i++)
        add(&history, WG__HISTORY_LATER, 10 * i, i == BEST ? 0.25 : 1 + 1 / (double)i);
    const int64_t best = wg__history_best(&history);
    ck_assert_int_le(history.row_count, WG_HISTORY_ROWS);
    ck_assert_double_eq(wg_history_column(&history, "step")[best], 10 * BEST);
    ck_assert_double_eq(wg_history_column(&history, "loss")[best], 0.25);
    int64_t before = 0, after = 0;
    for (int64_t row = 0; row < history.row_count; row++)
        *(row <= best ? &before : &after) += wg__history_count(&history, row);
    ck_assert_int_eq(before, BEST);
    ck_assert_int_eq(after, EVALUATIONS - BEST);
    /* Rows are evaluations that took place. */
    for (int64_t row = 0; row < history.row_count; row++) {
        const double i = wg_history_column(&history, "step")[row] / 10;
        ck_assert_double_eq(wg_history_column(&history, "loss")[row], i == BEST ? 0.25 : 1 + 1 / i);
    }
    wg_history_clear(&history);
}
END_TEST

static void save_and_read(wg_history *history) {
    wg_checkpoint *file = wg_checkpoint_create(in_scratch("history.h5"));
    ck_assert_int_eq(wg__history_put(history, file, "/h"), 0);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    wg_history_clear(history);
    file = wg_checkpoint_open(in_scratch("history.h5"));
    ck_assert_int_eq(wg_history_get(history, file, "/h"), 0);
    wg_checkpoint_close(file);
}

START_TEST(a_history_that_was_saved_goes_on_as_one_that_was_not) {
    wg_history whole = {0}, parts = {0};
    for (int64_t step = 1; step <= 30000; step++) {
        const double loss = sin((double)step);
        add(&whole, WG__HISTORY_MEAN, step, loss);
        add(&parts, WG__HISTORY_MEAN, step, loss);
        if (step > 25000) { /* a column that is NaN before */
            ck_assert_int_eq(wg__history_set(&whole, "late", loss), 0);
            ck_assert_int_eq(wg__history_set(&parts, "late", loss), 0);
        }
        if (step % 3001 == 0 || step == WG_HISTORY_ROWS)
            save_and_read(&parts);
    }
    ck_assert_int_eq(parts.row_count, whole.row_count);
    ck_assert_int_eq(parts.column_count, whole.column_count);
    for (int i = 0; i < whole.column_count; i++)
        ck_assert_mem_eq(wg_history_column(&parts, whole.names[i]), whole.columns[i],
                         (size_t)whole.row_count * sizeof(double));
    ck_assert(isnan(wg_history_column(&parts, "late")[0]));
    ck_assert_ptr_null(wg_history_column(&parts, "early"));
    wg_history_clear(&whole);
    wg_history_clear(&parts);
    wg_checkpoint *file = wg_checkpoint_open(in_scratch("history.h5"));
    ck_assert_int_eq(wg_history_get(&parts, file, "/other"), 0);
    ck_assert_int_eq(parts.row_count, 0);
    wg_checkpoint_close(file);
}
END_TEST

START_TEST(a_longer_history_of_an_older_file_is_shortened) {
    wg_history history = {0};
    for (int64_t step = 1; step <= 100000; step++) {
        ck_assert_int_eq(wg__history_add_row(&history), 0);
        ck_assert_int_eq(wg__history_set(&history, "step", (double)step), 0);
    }
    save_and_read(&history);
    ck_assert_int_eq(history.row_count, 100000);
    add(&history, WG__HISTORY_MEAN, 100001, 1);
    ck_assert_int_le(history.row_count, WG_HISTORY_ROWS);
    ck_assert_int_eq(history.capacity, WG_HISTORY_ROWS);
    ck_assert_double_eq(wg_history_column(&history, "step")[history.row_count - 2], 100000);
    wg_history_clear(&history);
}
END_TEST

/* ---- Of a trainer ---- */

/* A trainer after so many steps; `path`: it is saved at the end. */
static wg_trainer *run(regression *t, int64_t steps, const char *resumed, const char *path) {
    wg_trainer_options options = {
        .steps = steps,
        .schedule = {.kind = WG_SCHEDULE_CONSTANT, .peak = 1e-3, .total_steps = steps},
        .path = path,
        .save_seconds = -1};
    wg_trainer *trainer = regression_trainer(t, "adamw", options);
    ck_assert_ptr_nonnull(trainer);
    if (resumed)
        ck_assert_int_eq(wg_trainer_resume(trainer, resumed), 0);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    return trainer;
}

START_TEST(a_run_is_resumed_with_rows_that_were_joined) {
    enum { FIRST = WG_HISTORY_ROWS + 100, ALL = FIRST + 900 };
    regression once = regression_make(4, WG_F32), twice = regression_make(4, WG_F32);
    wg_trainer *whole = run(&once, ALL, NULL, NULL);
    wg_trainer_free(run(&twice, FIRST, NULL, in_scratch("run.h5")));
    regression resumed = regression_make(4, WG_F32);
    resumed.row = twice.row;
    wg_trainer *part = run(&resumed, ALL, in_scratch("run.h5"), in_scratch("run.h5"));
    const wg_history *a = wg_trainer_history(whole), *b = wg_trainer_history(part);
    ck_assert_int_lt(a->row_count, WG_HISTORY_ROWS);
    ck_assert_int_eq(a->row_count, b->row_count);
    ck_assert_mem_eq(wg_history_column(a, "loss"), wg_history_column(b, "loss"),
                     (size_t)a->row_count * sizeof(double));
    ck_assert_double_eq(first_element(once.weight), first_element(resumed.weight));
    wg_trainer_free(whole);
    wg_trainer_free(part);
    regression_free(&once);
    regression_free(&twice);
    regression_free(&resumed);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_million_steps_are_at_most_4096_rows_with_the_means_of_all,
        a_metric_of_some_steps_is_the_mean_of_these,
        the_best_evaluation_stays_and_those_after_it_are_counted,
        a_history_that_was_saved_goes_on_as_one_that_was_not,
        a_longer_history_of_an_older_file_is_shortened,
        a_run_is_resumed_with_rows_that_were_joined,
    };
    add_suite("history", tests);
}
