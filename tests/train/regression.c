/* The linear regression: see regression.h. */
#include "tests/train/regression.h"

#include "tensor/ops.h"

enum { WIDTH = REGRESSION_WIDTH, ROWS = REGRESSION_ROWS };

double first_element(const wg_tensor *x) {
    return wg_at(x, (int64_t[]){0, 0});
}

static wg_tensor *measure(regression *t, wg_tensor *x) {
    wg_tensor *target = wg_sum(x, 1, (int64_t[]){1}, true);
    wg_tensor *difference = wg_sub(wg_add(wg_matmul(x, t->weight), t->bias), target);
    return wg_mean(wg_mul(difference, difference), WG_ALL, false);
}

/* 0, by a square root whose derivative there is infinite. */
static wg_tensor *steep(wg_tensor *x) {
    return wg_sum(wg_sqrt(wg_mul_scalar(x, 0)), WG_ALL, false);
}

wg_tensor *regression_loss(void *context, wg_metrics *metrics) {
    regression *t = context;
    int64_t begin = t->row % ROWS;
    t->row += t->batch;
    wg_tensor *loss = measure(t, wg_slice(t->table, 0, begin, begin + t->batch, 1));
    if (t->poison_at > 0 && t->row > t->poison_at)
        loss = t->steep ? wg_add(loss, steep(t->weight)) : wg_mul_scalar(loss, t->blow_up);
    metrics->tokens += t->batch;
    return wg_metrics_add(metrics, "regression_loss", wg_item(loss), (double)t->batch) < 0 ? NULL
                                                                                           : loss;
}

static int regression_evaluate(void *context, wg_metrics *metrics) {
    regression *t = context;
    ck_assert_int_lt(t->evaluations, REGRESSION_EVALUATIONS);
    ck_assert(!wg_module_is_training(t->module) && !wg_grad_enabled());
    t->seen[t->evaluations] = first_element(t->weight);
    double loss = t->script ? t->script[t->evaluations] : wg_item(measure(t, t->table));
    t->evaluations++;
    return wg_metrics_add(metrics, t->has_no_loss ? "accuracy" : "loss", loss, 1);
}

static int regression_save(void *context, wg_checkpoint *file) {
    regression *t = context;
    return wg_checkpoint_put_integer(file, "/train/data/row", t->row);
}

static int regression_restore(void *context, wg_checkpoint *file) {
    regression *t = context;
    return wg_checkpoint_get_integer(file, "/train/data/row", &t->row);
}

regression regression_make(int64_t batch, wg_dtype dtype) {
    regression t = {.module = wg_module_new(NULL, "", sizeof(wg_module)), .batch = batch};
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

void assert_run(wg_trainer *trainer, int outcome) {
    ck_assert_int_eq(wg_trainer_run(trainer), outcome);
    wg_trainer_free(trainer);
}

void regression_free(regression *t) {
    wg_release(t->table);
    wg_module_free(t->module);
}

wg_trainer *regression_trainer(regression *t, const char *optimizer, wg_trainer_options options) {
    wg_task task = {
        .context = t,
        .module = t->module,
        .loss = regression_loss,
        .evaluate = regression_evaluate,
        .save = regression_save,
        .restore = regression_restore,
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

void read_saved(const char *path, const char *name, double *values) {
    wg_checkpoint *file = wg_checkpoint_open(path);
    wg_tensor *x = wg_checkpoint_get_tensor(file, name);
    ck_assert_ptr_nonnull(x);
    wg_to_array(wg_cast(x, WG_F64), values);
    wg_checkpoint_close(file);
}

int64_t saved_step(const char *path) {
    int64_t step = -1;
    wg_checkpoint *file = wg_checkpoint_open(path);
    wg_checkpoint_get_integer(file, "/train/step", &step);
    wg_checkpoint_close(file);
    return step;
}
