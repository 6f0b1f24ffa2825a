/* The ends of a run: out of patience, with a best checkpoint, by a failure; and the message of a
 * divergence. On a linear regression. */
#include <math.h>
#include <string.h>

#include "tensor/ops.h"
#include "tests/train/regression.h"

/* A trainer that resumes from a checkpoint. */
static wg_trainer *resumed(regression *t, wg_trainer_options options, const char *path) {
    wg_trainer *trainer = regression_trainer(t, "adamw", options);
    ck_assert_int_eq(wg_trainer_resume(trainer, path), 0);
    return trainer;
}

/* ---- Patience, and the best ---- */

/* The third is the lowest. The fourth equals it, which is no improvement; NaN never is. */
static const double losses[] = {5, 4, 3, 3, NAN, 6, 2, 1, 1, 1};

START_TEST(a_run_stops_when_evaluations_become_no_better) {
    regression t = regression_make(8, WG_F32);
    t.script = losses;
    const char *path = in_scratch("last.h5"), *best = in_scratch("best.h5");
    wg_trainer_options options = {
        .steps = 20, .evaluate_every = 2, .patience = 3, .path = path, .best_path = best};
    wg_trainer *trainer = regression_trainer(&t, "adamw", options);
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

    trainer = resumed(&t, options, path); /* its patience has not grown */
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_OUT_OF_PATIENCE);
    ck_assert_int_eq(wg_trainer_steps(trainer), 12);
    wg_trainer_free(trainer);

    options.patience = 4;
    trainer = resumed(&t, options, path);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    ck_assert_int_eq(saved_step(path), 20);
    ck_assert_int_eq(saved_step(best), 16);
    wg_trainer_free(trainer);
    regression_free(&t);
}
END_TEST

START_TEST(the_best_checkpoint_is_a_run_to_go_on_with) {
    regression t = regression_make(8, WG_F32);
    t.script = losses;
    const char *best = in_scratch("best.h5");
    wg_trainer_options options = {.steps = 12, .evaluate_every = 2, .best_path = best};
    wg_trainer *trainer = regression_trainer(&t, "adamw", options);
    ck_assert(!wg_trainer_best(trainer, &(int64_t){0}, &(double){0}));
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    double end = first_element(t.weight);
    wg_trainer_free(trainer);
    t.evaluations = 3;
    trainer = resumed(&t, options, best);
    ck_assert_int_eq(wg_trainer_steps(trainer), 6);
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    ck_assert(first_element(t.weight) == end);
    wg_trainer_free(trainer);
    regression_free(&t);
}
END_TEST

START_TEST(the_best_wants_a_loss_to_go_by) {
    regression t = regression_make(8, WG_F32);
    t.has_no_loss = true;
    wg_trainer *trainer =
        regression_trainer(&t, "adamw", (wg_trainer_options){.steps = 2, .patience = 1});
    assert_fails(wg_trainer_run(trainer), WG_ERROR_STATE, "no \"loss\"");
    wg_trainer_free(trainer);
    regression_free(&t);
}
END_TEST

/* ---- Failure ---- */

static double saved_bias(const char *path) {
    double bias = NAN;
    read_saved(path, "/model/bias", &bias);
    return bias;
}

START_TEST(a_run_that_fails_in_the_midst_of_a_step_is_not_saved_and_does_not_go_on) {
    const char *path = in_scratch("torn.h5"), *other = in_scratch("other.h5");
    for (int clips = 0; clips < 2; clips++) {
        regression t = regression_make(8, WG_F32);
        t.poison_at = 32, t.steep = true; /* the bias is updated before the weight */
        wg_trainer_options options = {.steps = 20,
                                      .clip = clips ? 1 : -1,
                                      .step_in_backward = !clips,
                                      .path = path,
                                      .save_every = 1};
        wg_trainer *trainer = regression_trainer(&t, "adamw", options);
        ck_assert_int_eq(wg_trainer_run(trainer), -1);
        ck_assert_ptr_nonnull(strstr(wg_error_pending()->message, "step 5"));
        assert_error(WG_ERROR_GRADIENT, "the gradient of \"weight\" is not finite");
        ck_assert_int_eq(saved_step(path), 4);
        const double saved = saved_bias(path);
        ck_assert((wg_at(t.bias, (int64_t[]){0}) == saved) == (clips == 1));
        if (clips) {
            ck_assert_int_eq(wg_trainer_save(trainer, other), 0);
        } else {
            assert_fails(wg_trainer_save(trainer, other), WG_ERROR_STATE,
                         "step 5 failed when some weights had been stepped");
            assert_fails(wg_trainer_run(trainer), WG_ERROR_STATE,
                         "resume the run from its last checkpoint");
        }
        wg_trainer_free(trainer);
        t.poison_at = 0;
        options.steps = 6;
        trainer = resumed(&t, options, path); /* the run resumes at the last good step */
        ck_assert(wg_at(t.bias, (int64_t[]){0}) == saved);
        assert_run(trainer, WG_TRAIN_FINISHED);
        regression_free(&t);
    }
}
END_TEST

/* ---- Divergence ---- */

static void check_hint(regression *t, wg_trainer_options options, const char *step,
                       const char *hint) {
    options.schedule = (wg_schedule){.kind = WG_SCHEDULE_CONSTANT, .peak = 1e-3};
    wg_trainer *trainer = regression_trainer(t, "sgd", options);
    ck_assert_int_eq(wg_trainer_run(trainer), -1);
    ck_assert_ptr_nonnull(strstr(wg_error_pending()->message, step));
    assert_error(WG_ERROR_GRADIENT, hint);
    wg_trainer_free(trainer);
    regression_free(t);
}

START_TEST(divergence_names_the_step_and_what_may_be_behind_it) {
    regression t = regression_make(8, WG_F32);
    t.poison_at = 80, t.blow_up = NAN;
    check_hint(&t, (wg_trainer_options){.steps = 20}, "step 11: loss: it is nan",
               "look at this batch");

    t = regression_make(8, WG_F32);
    t.poison_at = 80, t.blow_up = 1e20;
    check_hint(&t, (wg_trainer_options){.steps = 20, .clip = -1}, "step 12",
               "in step 11 the gradient had");

    t = regression_make(8, WG_F32);
    wg_set_grad_enabled(false);
    ck_assert_int_eq(wg_fill_(t.bias, INFINITY), 0);
    wg_set_grad_enabled(true);
    check_hint(&t, (wg_trainer_options){.steps = 20}, "step 1", "hint: bias was not finite");
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_run_stops_when_evaluations_become_no_better,
        the_best_checkpoint_is_a_run_to_go_on_with,
        the_best_wants_a_loss_to_go_by,
        a_run_that_fails_in_the_midst_of_a_step_is_not_saved_and_does_not_go_on,
        divergence_names_the_step_and_what_may_be_behind_it,
    };
    add_suite("trainer_ends", tests);
}
