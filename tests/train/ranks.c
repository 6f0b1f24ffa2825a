/* The trainer in a group of processes, for models that the command has not: `mpirun -n 3
 * tests/test_train` with CK_RUN_SUITE=ranks and CK_FORK=no. A process alone is a group of one. */
#include <math.h>
#include <string.h>

#include "base/group.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "optim/optimizer.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"
#include "train/trainer.h"
#include "base/internal.h"

enum { ROWS = 96, WIDTH = 3, BATCH = 4, ACCUMULATE = 3, STEPS = 4, CHANNELS = 5 };

/* Three layers, of which the second one normalises by batch; and a normalisation of the inputs,
 * whose running statistics depend on no weight. */
typedef struct run {
    wg_module *module;
    wg_linear *first, *last;
    wg_batch_norm *norm, *inputs;
    wg_batches *batches;
} run;

static run make(void) {
    run r = {.module = wg_module_new(NULL, "", sizeof(wg_module)),
             .batches = sums_of_rows(ROWS, WIDTH, BATCH)};
    wg_module_generator(r.module)->seed = 4;
    r.first = wg_linear_new(r.module, "0", WIDTH, CHANNELS, NULL);
    r.norm = wg_batch_norm_new(r.module, "1", CHANNELS, NULL);
    r.last = wg_linear_new(r.module, "2", CHANNELS, 1, NULL);
    r.inputs = wg_batch_norm_new(r.module, "inputs", WIDTH, NULL);
    ck_assert_ptr_nonnull(wg_module_finish(r.module));
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
    wg_tensor *x = wg_batch_norm_forward(r->inputs, batch[0]);
    wg_tensor *hidden = wg_batch_norm_forward(r->norm, wg_linear_forward(r->first, x));
    wg_tensor *error = wg_sub(wg_linear_forward(r->last, wg_tanh(hidden)), batch[1]);
    return wg_mean(wg_mul(error, error), WG_ALL, false);
}

static int run_task(const wg_task *task, wg_group *group, int zero) {
    const wg_trainer_options options = {.steps = STEPS,
                                        .accumulate = ACCUMULATE,
                                        .group = group,
                                        .zero = zero,
                                        .save_seconds = -1,
                                        .schedule = {.peak = 0.01}};
    wg_trainer *trainer = wg_trainer_new(task, wg_adamw_new(NULL), &options);
    ck_assert_ptr_nonnull(trainer);
    const int outcome = wg_trainer_run(trainer);
    wg_trainer_free(trainer);
    return outcome;
}

static int train(run *r, wg_group *group, int zero) {
    const wg_task task = {
        .context = r, .module = r->module, .loss = loss_of, .batches = r->batches};
    return run_task(&task, group, zero);
}

/* The running mean of each input by its definition: each rank goes on from where all stand with
 * each batch of its own, and a step ends at the mean of those ranks. */
static void expected_means(int ranks, double *running) {
    wg_batches *batches = sums_of_rows(ROWS, WIDTH, BATCH);
    for (int step = 0; step < STEPS; step++) {
        double own[ACCUMULATE][WIDTH];
        for (int rank = 0; rank < ranks; rank++)
            memcpy(own[rank], running, sizeof own[rank]);
        for (int i = 0; i < ACCUMULATE; i++) {
            wg_tensor *batch[2];
            wg_scope scope;
            wg_scope_begin(&scope);
            ck_assert_int_eq(wg_batches_next(batches, batch), 0);
            const float *x = wg_tensor_data(batch[0]);
            for (int c = 0; c < WIDTH; c++) {
                double mean = 0;
                for (int b = 0; b < BATCH; b++)
                    mean += x[b * WIDTH + c] / (double)BATCH;
                own[i % ranks][c] = 0.9 * own[i % ranks][c] + 0.1 * mean;
            }
            wg_scope_end(&scope, NULL);
        }
        memset(running, 0, WIDTH * sizeof *running);
        for (int rank = 0; rank < ranks; rank++)
            for (int c = 0; c < WIDTH; c++)
                running[c] += own[rank][c] / ranks;
    }
    wg_batches_free(batches);
}

static void assert_alike(wg_group *group, wg_tensor *x) {
    char text[128] = "";
    for (int64_t i = 0; i < wg_tensor_count(x); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%.9g ",
                 ((const float *)wg_tensor_data(x))[i]);
    ck_assert_int_eq(wg__group_agree(group, "a tensor", text), 0);
}

/* A model of words whose output layer is its embedding. */
typedef struct words_run {
    wg_module *module;
    wg_embedding *words;
    wg_batches *batches;
} words_run;

static wg_tensor *loss_of_words(void *context, wg_metrics *metrics) {
    words_run *r = context;
    wg_tensor *batch[2];
    (void)metrics;
    if (wg_batches_next(r->batches, batch) < 0)
        return NULL;
    wg_tensor *table = r->words->weight;
    wg_tensor *ids = wg_zeros(WG_I64, WG_DIMS(BATCH));
    for (int64_t i = 0; i < BATCH; i++)
        ((int64_t *)wg_tensor_data(ids))[i] =
            (int64_t)(1000 * fabsf(((const float *)wg_tensor_data(batch[1]))[i])) %
            wg_tensor_shape(table)[0];
    wg_tensor *hidden = wg_tanh(wg_embedding_forward(r->words, ids));
    return wg_cross_entropy(wg_linear_op(hidden, table, NULL), ids, WG_IGNORE_INDEX, NULL);
}

/* The table after training. Kept. */
static wg_tensor *trained_words(wg_group *group, int64_t count, int zero) {
    words_run r = {.module = wg_module_new(NULL, "", sizeof(wg_module)),
                   .batches = sums_of_rows(ROWS, WIDTH, BATCH)};
    wg_module_generator(r.module)->seed = 5;
    r.words = wg_embedding_new(r.module, "words", count, CHANNELS, NULL);
    ck_assert_ptr_nonnull(wg_module_finish(r.module));
    const wg_task task = {
        .context = &r, .module = r.module, .loss = loss_of_words, .batches = r.batches};
    ck_assert_int_eq(run_task(&task, group, zero), WG_TRAIN_FINISHED);
    assert_alike(group, r.words->weight);
    wg_tensor *table = wg_keep(wg_detach(wg_clone(r.words->weight)));
    wg_batches_free(r.batches);
    wg_module_free(r.module);
    return table;
}

/* Of a large table few rows are looked up, of a small one most. */
static void check_words(wg_group *group) {
    for (int64_t count = 3; count < 1000; count *= 15) {
        wg_tensor *all = trained_words(group, count, 0), *shares = trained_words(group, count, 2);
        assert_close(all, shares, 1e-6, 1e-6);
        wg_release(all);
        wg_release(shares);
    }
}

/* One test, because a process joins a group once. */
START_TEST(statistics_and_tied_tables_are_shared) {
    wg_group *group = wg_group_join();
    ck_assert_ptr_nonnull(group);
    const int ranks = wg_group_size(group);
    ck_assert_int_le(ranks, ACCUMULATE);
    double wanted[WIDTH] = {0}, weight = 0;
    expected_means(ranks, wanted);
    for (int zero = 0; zero <= 2; zero++) {
        run r = make();
        ck_assert_int_eq(train(&r, group, zero), WG_TRAIN_FINISHED);
        const float *mean = wg_tensor_data(r.inputs->running_mean);
        for (int c = 0; c < WIDTH; c++)
            ck_assert_double_eq_tol(mean[c], wanted[c], 1e-6);
        assert_alike(group, r.norm->running_var);
        assert_alike(group, r.last->weight);
        const double found = *(const float *)wg_tensor_data(r.last->weight);
        ck_assert_double_eq_tol(found, zero ? weight : found, 1e-6);
        weight = found;
        clear(&r);
    }
    check_words(group);
    wg_group_leave(group);
}
END_TEST

SUITES {
    const TTest *const tests[] = {statistics_and_tied_tables_are_shared};
    add_suite("ranks", tests);
}
