/* The loop: step, record, evaluate, save. See trainer.h. */
#include "train/trainer.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "io/log.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define DEFAULT_CLIP 1.0
#define DEFAULT_SAVE_SECONDS 60.0

struct wg_trainer {
    wg_task task;
    wg_trainer_options options;
    wg_optimizer *optimizer;
    wg_metric_log *log; /* NULL: none */
    int64_t step;       /* steps done */
    wg_history training, evaluations;
    double begun; /* when this part of the run began, and at which step */
    int64_t begun_at;
    double last_save;
};

/* What one step was, on its way to the log, the history and the listener. */
typedef struct measured_step {
    double loss, rate, gradient_norm, tokens_per_second;
    wg_metrics metrics, evaluation;
    bool evaluated;
} measured_step;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- Making one ---- */

static int check_options(const wg_trainer_options *options) {
    if (options->steps < 1)
        return wg_fail(WG_ERROR_ARGUMENT, "train", "%lld steps; at least 1 is wanted",
                       (long long)options->steps);
    if (options->evaluate_every < 0 || options->save_every < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "train", "an interval is below 0 steps");
    return 0;
}

/* Gives the optimizer every parameter once, under its path. */
static int add_parameters(wg_optimizer *optimizer, wg_module *module) {
    wg_state_dict *state = wg_module_state(module);
    if (!state)
        return -1;
    int result = 0;
    for (int64_t i = 0; result == 0 && i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        if (slot->kind == WG_SLOT_PARAMETER && !slot->tied)
            result =
                wg_optimizer_add(optimizer, state->entries[i].path, slot->tensor, slot->no_decay);
    }
    wg_state_dict_free(state);
    return result;
}

wg_trainer *wg_trainer_new(const wg_task *task, wg_optimizer *optimizer,
                           const wg_trainer_options *options) {
    wg_trainer *trainer = optimizer ? wg__calloc(1, sizeof *trainer) : NULL;
    if (!trainer) {
        wg_optimizer_free(optimizer);
        return NULL;
    }
    trainer->task = *task;
    trainer->options = *options;
    trainer->optimizer = optimizer;
    if (options->clip == 0)
        trainer->options.clip = DEFAULT_CLIP;
    if (options->save_seconds == 0)
        trainer->options.save_seconds = DEFAULT_SAVE_SECONDS;
    if (check_options(options) < 0 || add_parameters(optimizer, task->module) < 0 ||
        (options->log_path && !(trainer->log = wg_metric_log_open(options->log_path)))) {
        wg_trainer_free(trainer);
        return NULL;
    }
    return trainer;
}

void wg_trainer_free(wg_trainer *trainer) {
    if (!trainer)
        return;
    wg_metric_log_close(trainer->log);
    wg_optimizer_free(trainer->optimizer);
    wg_history_clear(&trainer->training);
    wg_history_clear(&trainer->evaluations);
    wg__free(trainer);
}

/* ---- Checkpoints ---- */

static int put_generator(wg_checkpoint *file, const char *name, const wg_generator *generator) {
    char path[64];
    snprintf(path, sizeof path, "/train/random/%s/seed", name);
    if (wg_checkpoint_put_integer(file, path, (int64_t)generator->seed) < 0)
        return -1;
    snprintf(path, sizeof path, "/train/random/%s/offset", name);
    return wg_checkpoint_put_integer(file, path, (int64_t)generator->offset);
}

static int get_generator(wg_checkpoint *file, const char *name, wg_generator *generator) {
    char path[64];
    int64_t seed, offset;
    snprintf(path, sizeof path, "/train/random/%s/seed", name);
    if (wg_checkpoint_get_integer(file, path, &seed) < 0)
        return -1;
    snprintf(path, sizeof path, "/train/random/%s/offset", name);
    if (wg_checkpoint_get_integer(file, path, &offset) < 0)
        return -1;
    *generator = (wg_generator){.seed = (uint64_t)seed, .offset = (uint64_t)offset};
    return 0;
}

static int put_schedule(wg_checkpoint *file, const wg_schedule *schedule) {
    if (wg_checkpoint_put_text(file, "/train/schedule/kind", wg_schedule_name(schedule->kind)) <
            0 ||
        wg_checkpoint_put_number(file, "/train/schedule/peak", schedule->peak) < 0 ||
        wg_checkpoint_put_number(file, "/train/schedule/final", schedule->final) < 0 ||
        wg_checkpoint_put_integer(file, "/train/schedule/warmup_steps", schedule->warmup_steps) <
            0 ||
        wg_checkpoint_put_integer(file, "/train/schedule/decay_steps", schedule->decay_steps) < 0 ||
        wg_checkpoint_put_integer(file, "/train/schedule/width", schedule->width) < 0)
        return -1;
    return wg_checkpoint_put_integer(file, "/train/schedule/total_steps", schedule->total_steps);
}

static int put_run(wg_checkpoint *file, const wg_trainer *trainer) {
    const wg_task *task = &trainer->task;
    if (wg_checkpoint_put_module(file, "/model", task->module) < 0 ||
        wg_checkpoint_put_optimizer(file, trainer->optimizer) < 0 ||
        wg_checkpoint_put_integer(file, "/train/step", trainer->step) < 0 ||
        put_schedule(file, &trainer->options.schedule) < 0 ||
        put_generator(file, "module", wg_module_generator(task->module)) < 0 ||
        put_generator(file, "default", wg_default_generator()) < 0 ||
        wg_history_put(&trainer->training, file, WG_HISTORY_TRAINING) < 0 ||
        wg_history_put(&trainer->evaluations, file, WG_HISTORY_EVALUATION) < 0)
        return -1;
    const char *note = trainer->options.note;
    if (note && wg_checkpoint_put_text(file, "/train/note", note) < 0)
        return -1;
    return task->save ? task->save(task->context, file) : 0;
}

/* Zero times a number is 0, unless it is not finite: then the sum is not a number. */
static bool is_finite(wg_tensor *x) {
    wg_scope scope;
    wg_scope_begin(&scope);
    double sum = wg_item(wg_sum(wg_mul_scalar(x, 0), 0, NULL, false));
    wg_scope_end(&scope, NULL);
    return sum == 0;
}

/* Weights that are no numbers shall not replace a good checkpoint. */
static int check_weights(wg_module *module) {
    wg_state_dict *state = wg_module_state(module);
    if (!state)
        return -1;
    bool recorded = wg_set_grad_enabled(false);
    int result = 0;
    for (int64_t i = 0; result == 0 && i < state->count; i++) {
        wg_tensor *x = state->entries[i].slot->tensor;
        if (wg_dtype_is_float(wg_tensor_dtype(x)) && !is_finite(x))
            result = wg_fail(WG_ERROR_GRADIENT, "train",
                             "%s is no longer finite and is not saved; lower the learning rate",
                             state->entries[i].path);
    }
    wg_set_grad_enabled(recorded);
    wg_state_dict_free(state);
    return result;
}

int wg_trainer_save(wg_trainer *trainer, const char *path) {
    if (check_weights(trainer->task.module) < 0)
        return -1;
    wg_checkpoint *file = wg_checkpoint_create(path);
    if (!file)
        return -1;
    if (put_run(file, trainer) < 0) {
        wg_checkpoint_abort(file);
        return -1;
    }
    return wg_checkpoint_commit(file);
}

static int get_run(wg_checkpoint *file, wg_trainer *trainer) {
    const wg_task *task = &trainer->task;
    if (!wg_checkpoint_has(file, "/train/step"))
        return wg_fail(WG_ERROR_STATE, "train", "the file holds a model and no training run");
    if (wg_checkpoint_get_module(file, "/model", task->module) < 0 ||
        wg_checkpoint_get_optimizer(file, trainer->optimizer) < 0 ||
        wg_checkpoint_get_integer(file, "/train/step", &trainer->step) < 0 ||
        get_generator(file, "module", wg_module_generator(task->module)) < 0 ||
        get_generator(file, "default", wg_default_generator()) < 0 ||
        wg_history_get(&trainer->training, file, WG_HISTORY_TRAINING) < 0 ||
        wg_history_get(&trainer->evaluations, file, WG_HISTORY_EVALUATION) < 0)
        return -1;
    return task->restore ? task->restore(task->context, file) : 0;
}

int wg_trainer_resume(wg_trainer *trainer, const char *path) {
    wg_checkpoint *file = wg_checkpoint_open(path);
    if (!file)
        return -1;
    int result = get_run(file, trainer);
    wg_checkpoint_close(file);
    return result;
}

/* ---- Steps ---- */

/* Replaces the pending error by the same one with the step named. */
static int fail_step(int64_t step) {
    wg_error error = *wg_error_pending();
    wg_error_clear();
    return wg_fail(error.code, "train", "step %lld: %s", (long long)step, error.message);
}

/* Errors of the forward pass stay as they are. */
static int check_loss(const wg_tensor *loss, double value) {
    if (!loss)
        return wg_fail(WG_ERROR_STATE, "task", "it gave no loss");
    if (!isfinite(value))
        return wg_fail(WG_ERROR_GRADIENT, "loss",
                       "it is %g and the run has diverged; lower the learning rate", value);
    return 0;
}

/* Forward and backward of one batch. The scope ends before the optimizer moves. */
static int compute_gradients(wg_trainer *trainer, measured_step *measured) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *loss = trainer->task.loss(trainer->task.context, &measured->metrics);
    measured->loss = wg_item(loss);
    int result = check_loss(loss, measured->loss);
    if (result == 0)
        result = wg_backward(loss, NULL);
    wg_scope_end(&scope, NULL);
    return result;
}

static int update(wg_trainer *trainer, measured_step *measured) {
    double clip = trainer->options.clip;
    measured->rate = wg_schedule_rate(&trainer->options.schedule, trainer->step);
    if (wg_optimizer_clip(trainer->optimizer, clip > 0 ? clip : 0, &measured->gradient_norm) < 0)
        return -1;
    return wg_optimizer_step(trainer->optimizer, measured->rate);
}

static int advance(wg_trainer *trainer, measured_step *measured) {
    double begun = now();
    if (compute_gradients(trainer, measured) < 0 || update(trainer, measured) < 0) {
        wg_optimizer_zero_grad(trainer->optimizer);
        return fail_step(trainer->step + 1);
    }
    trainer->step++;
    measured->tokens_per_second = (double)measured->metrics.tokens / (now() - begun);
    return 0;
}

/* ---- Evaluation ---- */

int wg_task_evaluate(const wg_task *task, wg_metrics *metrics) {
    bool recorded = wg_set_grad_enabled(false);
    bool training = wg_module_is_training(task->module);
    wg_module_train(task->module, false);
    wg_scope scope;
    wg_scope_begin(&scope);
    int result = task->evaluate(task->context, metrics);
    wg_scope_end(&scope, NULL);
    wg_module_train(task->module, training);
    wg_set_grad_enabled(recorded);
    return result;
}

static int evaluate_if_due(wg_trainer *trainer, measured_step *measured) {
    int64_t every = trainer->options.evaluate_every;
    bool due = trainer->step == trainer->options.steps || (every > 0 && trainer->step % every == 0);
    if (!due || !trainer->task.evaluate)
        return 0;
    measured->evaluated = true;
    return wg_task_evaluate(&trainer->task, &measured->evaluation);
}

/* ---- Recording what happened ---- */

static int set_metrics(wg_history *history, const wg_metrics *metrics) {
    for (int i = 0; i < metrics->count; i++) {
        const wg_metric *metric = &metrics->metrics[i];
        if (wg_history_set(history, metric->name, wg_metric_value(metric)) < 0)
            return -1;
    }
    return 0;
}

static int add_history(wg_trainer *trainer, const measured_step *measured) {
    wg_history *training = &trainer->training, *evaluations = &trainer->evaluations;
    if (wg_history_add_row(training) < 0 ||
        wg_history_set(training, "step", (double)trainer->step) < 0 ||
        wg_history_set(training, "loss", measured->loss) < 0 ||
        wg_history_set(training, "lr", measured->rate) < 0 ||
        wg_history_set(training, "grad_norm", measured->gradient_norm) < 0 ||
        set_metrics(training, &measured->metrics) < 0)
        return -1;
    if (!measured->evaluated)
        return 0;
    if (wg_history_add_row(evaluations) < 0 ||
        wg_history_set(evaluations, "step", (double)trainer->step) < 0)
        return -1;
    return set_metrics(evaluations, &measured->evaluation);
}

/* One JSON object: the step, then what was measured, evaluations as "eval_...". */
static int write_log(wg_trainer *trainer, const measured_step *measured) {
    wg_metric_log *log = trainer->log;
    if (!log)
        return 0;
    wg_metric_log_integer(log, "step", trainer->step);
    wg_metric_log_number(log, "loss", measured->loss);
    wg_metric_log_number(log, "lr", measured->rate);
    wg_metric_log_number(log, "grad_norm", measured->gradient_norm);
    wg_metric_log_number(log, "tokens_per_s", measured->tokens_per_second);
    for (int i = 0; i < measured->metrics.count; i++)
        wg_metric_log_number(log, measured->metrics.metrics[i].name,
                             wg_metric_value(&measured->metrics.metrics[i]));
    for (int i = 0; i < measured->evaluation.count; i++) {
        char name[WG_METRIC_NAME_SIZE + 8];
        snprintf(name, sizeof name, "eval_%s", measured->evaluation.metrics[i].name);
        wg_metric_log_number(log, name, wg_metric_value(&measured->evaluation.metrics[i]));
    }
    return wg_metric_log_end_line(log);
}

static void report(wg_trainer *trainer, const measured_step *measured, bool saved) {
    if (!trainer->options.listener)
        return;
    int64_t left = trainer->options.steps - trainer->step;
    double pace = (now() - trainer->begun) / (double)(trainer->step - trainer->begun_at);
    wg_train_report news = {
        .step = trainer->step,
        .total = trainer->options.steps,
        .loss = measured->loss,
        .learning_rate = measured->rate,
        .gradient_norm = measured->gradient_norm,
        .tokens_per_second = measured->tokens_per_second,
        .seconds_left = (double)left * pace,
        .metrics = &measured->metrics,
        .evaluation = measured->evaluated ? &measured->evaluation : NULL,
        .saved = saved,
    };
    trainer->options.listener(&news, trainer->options.listener_context);
}

/* ---- The loop ---- */

static bool is_stopped(const wg_trainer *trainer) {
    return trainer->options.stop && *trainer->options.stop;
}

static bool save_is_due(const wg_trainer *trainer) {
    const wg_trainer_options *options = &trainer->options;
    if (trainer->step == options->steps)
        return true;
    if (options->save_every > 0 && trainer->step % options->save_every == 0)
        return true;
    return options->save_seconds > 0 && now() - trainer->last_save >= options->save_seconds;
}

static int save(wg_trainer *trainer) {
    int result = wg_trainer_save(trainer, trainer->options.path);
    trainer->last_save = now();
    return result;
}

/* One step and what belongs to it; a wg_train_outcome: interrupted only after having saved. */
static int run_step(wg_trainer *trainer) {
    measured_step measured = {0};
    if (advance(trainer, &measured) < 0 || evaluate_if_due(trainer, &measured) < 0 ||
        add_history(trainer, &measured) < 0 || write_log(trainer, &measured) < 0)
        return -1;
    bool stopped = is_stopped(trainer);
    bool saves = trainer->options.path && (stopped || save_is_due(trainer));
    if (saves && save(trainer) < 0)
        return -1;
    report(trainer, &measured, saves);
    return stopped ? WG_TRAIN_INTERRUPTED : WG_TRAIN_FINISHED;
}

int wg_trainer_run(wg_trainer *trainer) {
    trainer->begun = now();
    trainer->begun_at = trainer->step;
    trainer->last_save = trainer->begun;
    /* A run that cannot be saved shall be known before it has cost anything. */
    if (trainer->step == 0 && trainer->options.path && save(trainer) < 0)
        return -1;
    int outcome = WG_TRAIN_FINISHED;
    while (outcome == WG_TRAIN_FINISHED && trainer->step < trainer->options.steps)
        outcome = run_step(trainer);
    return outcome == WG_TRAIN_INTERRUPTED && trainer->step == trainer->options.steps
               ? WG_TRAIN_FINISHED
               : outcome;
}

int64_t wg_trainer_steps(const wg_trainer *trainer) {
    return trainer->step;
}

const wg_history *wg_trainer_history(const wg_trainer *trainer) {
    return &trainer->training;
}

const wg_history *wg_trainer_evaluations(const wg_trainer *trainer) {
    return &trainer->evaluations;
}
