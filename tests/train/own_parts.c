/* The trainer with the caller's own batches, groups, update rule and schedule, and what is done
 * with the checkpoints of such a run. */
#include <math.h>
#include <string.h>

#include "nn/linear.h"
#include "objectives/objective.h"
#include "optim/optimizer.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"
#include "train/trainer.h"

enum { ROWS = 24, STEPS = 20 };

typedef struct run {
    wg_module *module;
    wg_linear *body, *head;
    wg_batches *batches;
    double factor; /* of the loss */
    bool detached; /* the loss wants no gradient */
} run;

static run make(void) {
    run r = {.factor = 1, .module = wg_module_new(NULL, "", sizeof(wg_module))};
    wg_module_generator(r.module)->seed = 4;
    r.body = wg_linear_new(r.module, "body", 3, 5, NULL);
    r.head = wg_linear_new(r.module, "head", 5, 1, NULL);
    ck_assert_ptr_nonnull(wg_module_finish(r.module));
    r.batches = sums_of_rows(ROWS, 3, 5);
    return r;
}

static void clear(run *r) {
    wg_batches_free(r->batches);
    wg_module_free(r->module);
}

static wg_tensor *loss_of(void *context, wg_metrics *metrics) {
    run *r = context;
    wg_tensor *batch[2];
    (void)metrics;
    if (wg_batches_next(r->batches, batch) < 0)
        return NULL;
    wg_tensor *y = wg_linear_forward(r->head, wg_tanh(wg_linear_forward(r->body, batch[0])));
    wg_tensor *error = wg_sub(y, batch[1]);
    wg_tensor *loss = wg_mul_scalar(wg_mean(wg_mul(error, error), WG_ALL, false), r->factor);
    return r->detached ? wg_detach(loss) : loss;
}

static int save(void *context, wg_checkpoint *file) {
    return wg_batches_save(((run *)context)->batches, file, 1);
}

static int restore(void *context, wg_checkpoint *file) {
    return wg_batches_restore(((run *)context)->batches, file, 1);
}

static int momentum_step(void *context, const wg_parameter_step *s) {
    (void)context;
    wg_scale_(s->states[0], 0.9);
    wg_add_(s->states[0], s->gradient, 1);
    return wg_add_(s->parameter, s->states[0], -s->learning_rate);
}

static double falling(const wg_schedule *schedule, int64_t step) {
    return schedule->peak / (1 + (double)step);
}

static wg_trainer *make_trainer(run *r, const char *names, wg_trainer_options options) {
    const wg_task task = {.context = r,
                          .module = r->module,
                          .loss = loss_of,
                          .save = save,
                          .restore = restore,
                          .batches = r->batches};
    const wg_update_rule rule = {.states = {"speed"}, .step = momentum_step};
    wg_optimizer *optimizer = wg_optimizer_from_rule(&rule, NULL);
    wg_optimizer_add_group(optimizer, &(wg_parameter_group){.names = names, .rate = 1e-300});
    options.steps = STEPS;
    options.save_seconds = -1;
    options.schedule = (wg_schedule){.kind = WG_SCHEDULE_OWN, .peak = 0.1, .rate = falling};
    return wg_trainer_new(&task, optimizer, &options);
}

START_TEST(a_run_with_parts_of_ones_own_goes_on_bit_for_bit) {
    run whole = make(), resumed = make();
    wg_tensor *before = wg_clone(wg_detach(whole.body->weight));
    const wg_trainer_options keeps = {.keep_every = 7, .keep_stem = in_scratch("own")};
    wg_trainer *trainer = make_trainer(&whole, "body.*", keeps);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    const wg_history *history = wg_trainer_history(trainer);
    ck_assert_double_eq(wg_history_column(history, "lr")[4], 0.1 / 5);
    double early = 0, late = 0;
    for (int i = 0; i < 5; i++) {
        early += wg_history_column(history, "loss")[i];
        late += wg_history_column(history, "loss")[STEPS - 1 - i];
    }
    ck_assert_double_lt(late, 0.8 * early);
    assert_close(wg_detach(whole.body->weight), before, 0, 0); /* the group's rate */
    wg_trainer_free(trainer);

    trainer = make_trainer(&resumed, "body.*", (wg_trainer_options){0});
    ck_assert_int_eq(wg_trainer_resume(trainer, in_scratch("own.14.h5")), 0);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    assert_close(wg_detach(resumed.head->weight), wg_detach(whole.head->weight), 0, 0);
    wg_trainer_free(trainer);
    clear(&whole);
    clear(&resumed);
}
END_TEST

START_TEST(a_group_that_names_nothing_stops_the_run_before_a_weight_moves) {
    run r = make();
    wg_trainer *trainer = make_trainer(&r, "tail.*", (wg_trainer_options){0});
    assert_fails(wg_trainer_run(trainer), WG_ERROR_ARGUMENT,
                 "step 1: optimizer_step: the group \"tail.*\" matches none of the 4");
    wg_trainer_free(trainer);
    clear(&r);
}
END_TEST

/* The message of a run that fails, which is cleared. */
static const char *failure(run *r) {
    static char message[1024];
    wg_trainer *trainer = make_trainer(r, "body.*", (wg_trainer_options){0});
    ck_assert_int_eq(wg_trainer_run(trainer), -1);
    snprintf(message, sizeof message, "%s", wg_error_pending()->message);
    wg_error_clear();
    wg_trainer_free(trainer);
    clear(r);
    return message;
}

START_TEST(the_learning_rate_is_blamed_only_where_it_can_be_the_reason) {
    run detached = make(), infinite = make();
    detached.detached = true;
    const char *message = failure(&detached);
    ck_assert_msg(!strstr(message, "hint"), "%s", message);
    infinite.factor = INFINITY;
    message = failure(&infinite);
    ck_assert_msg(strstr(message, "hint") && !strstr(message, "learning rate"), "%s", message);
}
END_TEST

START_TEST(checkpoints_of_a_task_of_ones_own_are_averaged_and_known) {
    run r = make(), mean = make();
    const wg_trainer_options keeps = {.keep_every = 10, .keep_stem = in_scratch("own")};
    wg_trainer *trainer = make_trainer(&r, "body.*", keeps);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    wg_trainer_free(trainer);
    const char *out = in_scratch("mean.h5");
    const char *const paths[] = {in_scratch("own.10.h5"), in_scratch("own.20.h5")};
    ck_assert_int_eq(wg_checkpoint_average_files(2, paths, out), 0);
    double sum = 0;
    for (int i = 0; i < 2; i++) {
        wg_checkpoint *file = wg_checkpoint_open(paths[i]);
        sum += wg_at(wg_checkpoint_get_tensor(file, "/model/head/bias"), (int64_t[]){0});
        wg_checkpoint_close(file);
    }
    wg_checkpoint *file = wg_checkpoint_open(out);
    ck_assert_int_eq(wg_checkpoint_get_module(file, "/model", mean.module), 0);
    wg_checkpoint_close(file);
    ck_assert_double_eq_tol(wg_at(mean.head->bias, (int64_t[]){0}), sum / 2, 1e-7);

    assert_fails(wg_objective_of(out), WG_ERROR_STATE, "a program's own model");
    clear(&r);
    clear(&mean);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_run_with_parts_of_ones_own_goes_on_bit_for_bit,
        a_group_that_names_nothing_stops_the_run_before_a_weight_moves,
        the_learning_rate_is_blamed_only_where_it_can_be_the_reason,
        checkpoints_of_a_task_of_ones_own_are_averaged_and_known,
    };
    add_suite("own_parts", tests);
}
