/* Several threads, each with a model, a trainer and a checkpoint of its own: each run has the bits
 * of one that is alone. `make check-tsan` runs this with ThreadSanitizer. */
#include <pthread.h>
#include <string.h>

#include "tensor/ops.h"
#include "tests/train/regression.h"

enum { RUNS = 4, STEPS = 6, HALF = 3, WIDTH = REGRESSION_WIDTH };

typedef struct own_run {
    char path[256];
    double weight[WIDTH];
    int outcome, resumed; /* of wg_trainer_run in both parts */
} own_run;

/* Trains for half of the steps, saving after each, and for the rest from the checkpoint. */
static void *train(void *context) {
    own_run *run = context;
    for (int part = 0; part < 2; part++) {
        regression t = regression_make(8, WG_F32);
        const wg_trainer_options options = {
            .steps = part ? STEPS : HALF,
            .schedule = {.kind = WG_SCHEDULE_CONSTANT, .peak = 0.01},
            .path = run->path,
            .save_every = 1};
        wg_trainer *trainer = regression_trainer(&t, "adamw", options);
        run->resumed = part ? wg_trainer_resume(trainer, run->path) : 0;
        run->outcome = wg_trainer_run(trainer);
        wg_to_array(wg_cast(wg_detach(t.weight), WG_F64), run->weight);
        wg_trainer_free(trainer);
        regression_free(&t);
    }
    return NULL;
}

static void place(own_run *run, int number) {
    char name[32];
    snprintf(name, sizeof name, "thread-%d.h5", number);
    snprintf(run->path, sizeof run->path, "%s", in_scratch(name));
}

START_TEST(trainers_in_several_threads_save_and_resume_as_one_alone) {
    own_run alone = {0}, runs[RUNS] = {0};
    pthread_t threads[RUNS];
    place(&alone, RUNS);
    train(&alone);
    for (int i = 0; i < RUNS; i++)
        place(&runs[i], i);
    for (int i = 0; i < RUNS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, train, &runs[i]), 0);
    for (int i = 0; i < RUNS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < RUNS; i++) {
        ck_assert_int_eq(runs[i].resumed, 0);
        ck_assert_int_eq(runs[i].outcome, WG_TRAIN_FINISHED);
        ck_assert_mem_eq(runs[i].weight, alone.weight, sizeof alone.weight);
        ck_assert_int_eq(saved_step(runs[i].path), STEPS);
    }
}
END_TEST

SUITES {
    const TTest *const tests[] = {trainers_in_several_threads_save_and_resume_as_one_alone};
    add_suite("trainer_threads", tests);
}
