/* A linear regression on a table that is read row by row, for tests of the trainer's options. */
#ifndef WG_TESTS_REGRESSION_H
#define WG_TESTS_REGRESSION_H

#include "tests/support/testing.h"
#include "train/trainer.h"

enum { REGRESSION_WIDTH = 5, REGRESSION_ROWS = 960, REGRESSION_EVALUATIONS = 64 };

typedef struct regression {
    wg_module *module;
    wg_tensor *weight, *bias;
    wg_tensor *table; /* kept: rows x width */
    int64_t batch, row;
    int64_t poison_at;    /* the batch from this row on is NaN; 0: none */
    double blow_up;       /* factor of the loss of every batch from `poison_at` on */
    bool steep;           /* a bad loss has a finite value, but its gradient is not finite */
    const double *script; /* the losses of evaluations; NULL: what they measure */
    bool has_no_loss;
    int evaluations;
    double seen[REGRESSION_EVALUATIONS]; /* weight[0] at each evaluation */
} regression;

regression regression_make(int64_t batch, wg_dtype dtype);
void regression_free(regression *t);

/* A trainer of it. Without a schedule in the options: a warm-up over all steps. The loss is also
 * the metric "regression_loss". */
wg_trainer *regression_trainer(regression *t, const char *optimizer, wg_trainer_options options);

/* Fails unless the run has this outcome; frees the trainer. */
void assert_run(wg_trainer *trainer, int outcome);

/* Its loss of a batch, as of a task. */
wg_tensor *regression_loss(void *t, wg_metrics *metrics);

/* x[0][0]. */
double first_element(const wg_tensor *x);

/* Reads a tensor of a checkpoint, as f64, into `values`; and the step of a checkpoint. */
void read_saved(const char *path, const char *name, double *values);
int64_t saved_step(const char *path);

#endif
