/* The loop: step, record, evaluate, save. See trainer.h. */
#include "train/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "tensor/internal.h"
#include "tensor/span.h"
#include "data/internal.h"

#define DEFAULT_CLIP 1.0
#define DEFAULT_SAVE_SECONDS 60.0

/* The results of a step, for the log, the history and the listener. */
typedef struct measured_step {
    double loss, rate, gradient_norm, tokens_per_second;
    wg_metrics metrics, evaluation;
    bool evaluated;
    bool stopped; /* by a signal: no step follows */
} measured_step;

/* ---- Making a trainer ---- */

/* Only trained parameters are averaged, not buffers and frozen parameters. */
static int make_average(wg_trainer *trainer) {
    wg_state_dict *state = wg_module_state(trainer->task.module);
    trainer->average = state ? wg__average_new(trainer->options.average_decay) : NULL;
    int result = trainer->average ? 0 : -1;
    for (int64_t i = 0; result == 0 && i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        if (slot->kind == WG_SLOT_PARAMETER && !slot->tied && wg_requires_grad(slot->tensor))
            result = wg__average_add(trainer->average, slot->tensor);
    }
    wg_state_dict_free(state);
    return result;
}

static int make_parts(wg_trainer *trainer) {
    const wg_trainer_options *options = &trainer->options;
    const bool is_shared = wg_group_size(options->group) > 1;
    if (options->steps < 1)
        return wg_fail(WG_ERROR_ARGUMENT, "train", "%lld steps; wanted at least 1",
                       (long long)options->steps);
    if (options->evaluate_every < 0 || options->save_every < 0 || options->keep_every < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "train", "an interval is below 0 steps");
    if (options->keep_every > 0 && !options->keep_stem)
        return wg_fail(WG_ERROR_ARGUMENT, "train",
                       "keep_every is %lld, but keep_stem is NULL; set it to a path",
                       (long long)options->keep_every);
    if (options->step_in_backward && options->clip >= 0)
        return wg_fail(WG_ERROR_ARGUMENT, "train",
                       "step_in_backward with a clip of %g: clipping needs all gradients before a "
                       "weight moves; give a negative clip",
                       options->clip);
    if (options->accumulate < 0 || options->accumulate_ramp < 0 || options->patience < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "train",
                       "%lld batches in a step, reached in %lld steps, a patience of %lld; "
                       "none can be below 0",
                       (long long)options->accumulate, (long long)options->accumulate_ramp,
                       (long long)options->patience);
    if (options->matmul_dtype != WG_F32 && options->matmul_dtype != WG_BF16)
        return wg_fail(WG_ERROR_DTYPE, "train", "matmul_dtype is %s; wanted f32 or bf16",
                       wg_dtype_name(options->matmul_dtype));
    if (wg__trainer_check_group(trainer) < 0)
        return -1;
    trainer->shares_state = is_shared && options->zero > 0;
    if (trainer->shares_state)
        trainer->optimizer->shard.group = options->group;
    /* The sum over ranks needs all gradients before any weight moves. */
    trainer->options.step_in_backward &= !is_shared;
    if (wg_optimizer_add_module(trainer->optimizer, trainer->task.module) < 0 ||
        wg__optimizer_shard_state(trainer->optimizer) < 0 ||
        (options->average_decay != 0 && make_average(trainer) < 0))
        return -1;
    if (is_shared)
        trainer->exchange =
            wg__exchange_plan_new(trainer->optimizer, options->group, options->zero,
                                  options->bf16_gradients ? WG__TRANSIT_BF16 : WG__TRANSIT_AS_IS);
    if (is_shared && !trainer->exchange)
        return -1;
    if (!options->log_path || !wg__trainer_leads(trainer))
        return 0;
    trainer->log = wg__metric_log_open(options->log_path);
    return trainer->log ? 0 : -1;
}

wg_trainer *wg_trainer_new(const wg_task *task, wg_optimizer *optimizer,
                           const wg_trainer_options *options) {
    const char *missing = !task           ? "task"
                          : !task->module ? "module in the task"
                          : !task->loss   ? "function `loss' in the task"
                          : task->weigh && !task->batches
                              ? "wg_task.batches, which `weigh' of the task needs"
                          : !optimizer ? "optimizer"
                          : !options   ? "options"
                                       : NULL;
    if (missing)
        wg_fail(WG_ERROR_ARGUMENT, "trainer_new", "there is no %s", missing);
    wg_trainer *trainer = missing ? NULL : wg__calloc(1, sizeof *trainer);
    if (!trainer) {
        wg_optimizer_free(optimizer);
        return NULL;
    }
    trainer->task = *task;
    trainer->options = *options;
    trainer->optimizer = optimizer;
    trainer->draws = -1;
    if (options->clip == 0)
        trainer->options.clip = DEFAULT_CLIP;
    if (options->save_seconds == 0)
        trainer->options.save_seconds = DEFAULT_SAVE_SECONDS;
    if (options->accumulate == 0)
        trainer->options.accumulate = 1;
    if (make_parts(trainer) < 0) {
        wg_trainer_free(trainer);
        return NULL;
    }
    return trainer;
}

void wg_trainer_free(wg_trainer *trainer) {
    if (!trainer)
        return;
    wg__metric_log_close(trainer->log);
    wg__exchange_plan_free(trainer->exchange);
    wg__shared_buffers_free(trainer->buffers);
    wg_optimizer_free(trainer->optimizer);
    wg__average_free(trainer->average);
    wg__free(trainer->weights);
    wg_history_clear(&trainer->training);
    wg_history_clear(&trainer->evaluations);
    wg__free(trainer);
}

/* ---- Weights of the batches of a step ---- */

/* Computes the weights of a step's losses: the weighted losses of all batches and ranks add up to
 * the loss of a single batch with all the examples. Collective, and the first exchange of a step: a
 * rank that could not write the checkpoint of the step before reports its error here. */
static int weigh_batches(wg_trainer *trainer, int64_t batches) {
    wg_loss_part(*parts)[WG_LOSS_PARTS] = wg__alloc_array(batches, sizeof *parts);
    double sums[2 * WG_LOSS_PARTS] = {0}; /* of all batches: count, share */
    int status = parts ? wg__reserve(&trainer->weights, 0, &trainer->weight_capacity, batches,
                                     sizeof *trainer->weights)
                       : -1;

    /* The parts of this rank's batches, {1, 1} if all batches weigh the same. */
    const wg_task *task = &trainer->task;
    const bool weighs = status == 0 && task->weigh && batches > 1;
    for (int64_t i = 0; status == 0 && i < batches; i++) {
        for (int p = 0; p < WG_LOSS_PARTS; p++)
            parts[i][p] = (wg_loss_part){.count = !weighs, .share = 1};
        if (!weighs)
            continue;
        wg_scope scope;
        wg_scope_begin(&scope);
        status = wg__trainer_holds(trainer, i) ? task->weigh(task->context, parts[i])
                                               : wg__batches_advance(task->batches, false, NULL);
        wg_scope_end(&scope, NULL);
    }
    if (weighs && wg__trainer_go_to(trainer, &trainer->begun_step) < 0)
        status = -1;
    status = wg__trainer_share(trainer, status);

    /* The sums over all batches and ranks, and the weights. */
    for (int64_t i = 0; status == 0 && i < batches; i++)
        for (int p = 0; wg__trainer_holds(trainer, i) && p < WG_LOSS_PARTS; p++) {
            sums[2 * p] += parts[i][p].count;
            sums[2 * p + 1] += parts[i][p].share;
        }
    if (status == 0)
        status = wg_group_sum(trainer->options.group, WG_GROUP_F64, 2 * WG_LOSS_PARTS, sums);
    for (int64_t i = 0; status == 0 && i < batches; i++)
        for (int p = 0; p < WG_LOSS_PARTS; p++) {
            const double mean_share = sums[2 * p + 1] / (double)batches;
            const wg_loss_part *part = &parts[i][p];
            trainer->weights[i][p] =
                part->count == 0 ? 0 : part->count / sums[2 * p] * (mean_share / part->share);
        }
    if (status == 0 && sums[0] + sums[2] == 0)
        status = wg_fail(WG_ERROR_STATE, "task",
                         "no batch of the step has anything to predict: look at the data and the "
                         "objective");
    wg__free(parts);
    return status;
}

/* The sum of the parts of a loss, each times its weight. A part with weight 0 may be NaN, the mean
 * of no losses; it counts as 0. */
static wg_tensor *weighted_loss(wg_tensor *parts, const double *weights) {
    const int64_t count = wg_tensor_count(parts);
    if (!parts || (wg_tensor_ndim(parts) == 0 && weights[0] == 1))
        return parts;
    if (wg_tensor_ndim(parts) > 1 || count > WG_LOSS_PARTS)
        return wg__fail_null(WG_ERROR_SHAPE, "task",
                             "its loss has rank %d and %lld numbers; wanted one number, "
                             "or a vector of up to %d parts",
                             wg_tensor_ndim(parts), (long long)count, WG_LOSS_PARTS);
    wg_tensor *each = wg_from_array(WG_F64, wg_tensor_ndim(parts), wg_tensor_shape(parts), weights);
    parts = wg_masked_fill(parts, wg_eq(each, wg_scalar(WG_F64, 0)), 0);
    return wg_sum(wg_mul(parts, wg_cast(each, wg_tensor_dtype(parts))), 0, NULL, false);
}

/* ---- A batch ---- */

int64_t wg__trainer_batches(int64_t accumulate, int64_t ramp, int64_t step) {
    const int64_t most = accumulate > 0 ? accumulate : 1;
    return step >= ramp ? most : 1 + (most - 1) * step / ramp;
}

/* Forward and backward of the next batch, which add to the gradients. Under step_in_backward the
 * last batch of a step also steps the weights. */
static int run_batch(wg_trainer *trainer, const double *weights, bool is_last,
                     measured_step *measured) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_dtype before = wg_set_matmul_dtype(trainer->options.matmul_dtype);
    wg_tensor *loss =
        weighted_loss(trainer->task.loss(trainer->task.context, &measured->metrics), weights);
    const double value = wg_item(loss);
    measured->loss += value;
    const int64_t steps = wg_optimizer_steps(trainer->optimizer);
    int result = 0;
    if (!loss) { /* an error of the forward pass stays as it is */
        result = wg_fail(WG_ERROR_STATE, "task", "it gave no loss");
    } else if (!isfinite(value)) {
        result = wg_fail(WG_ERROR_GRADIENT, "loss", "it is %g and the run has diverged", value);
    } else if (!is_last || !trainer->options.step_in_backward) {
        result = wg_backward(loss, NULL);
    } else {
        result =
            wg_optimizer_step_begin(trainer->optimizer, measured->rate, &measured->gradient_norm);
        if (result == 0) {
            wg_backward(loss, NULL);
            result = wg_optimizer_step_end(trainer->optimizer);
        }
        trainer->half_stepped = result < 0 && wg_optimizer_steps(trainer->optimizer) > steps;
    }
    wg_set_matmul_dtype(before);
    wg_scope_end(&scope, NULL);
    return result;
}

/* Forward and backward of this rank's batches of a step. Each batch draws the random numbers that
 * it would draw in a single process. A rank that fails still takes part in all rounds. */
static int run_batches(wg_trainer *trainer, int64_t batches, measured_step *measured) {
    wg__exchange_plan *plan = trainer->exchange;
    wg_generator *generator = wg_module_generator(trainer->task.module);
    const uint64_t begun = generator->offset;
    const int64_t ranks = wg_group_size(trainer->options.group);
    const int64_t rounds = plan && trainer->options.zero >= 2 ? wg__ceil_divide(batches, ranks) : 1;
    int result = 0;
    for (int64_t round = 0, i = 0; round < rounds; round++) {
        const int64_t end = round == rounds - 1 ? batches : i + ranks;
        if (plan)
            wg__exchange_begin(plan, round == 0);
        for (; result == 0 && i < end; i++) {
            const bool mine = wg__trainer_holds(trainer, i);
            if (plan && trainer->draws >= 0) {
                generator->offset = begun + (uint64_t)(i * trainer->draws);
                if (mine && i + ranks >= end)
                    result = wg__exchange_in_backward(plan);
            }
            if (result == 0)
                result = mine ? run_batch(trainer, trainer->weights[i], i == batches - 1, measured)
                              : wg__batches_advance(trainer->task.batches, false, NULL);
            if (plan && trainer->draws < 0) { /* rank 0 measures it in the first batch of the run */
                int64_t draws = (int64_t)(generator->offset - begun);
                result = wg__trainer_share(trainer, result);
                if (result == 0)
                    result = wg_group_broadcast(trainer->options.group, 0, sizeof draws, &draws);
                trainer->draws = result == 0 ? draws : -1;
            }
        }
        if (trainer->error_is_shared)
            return -1;
        if (plan && wg__exchange_end(plan, round == rounds - 1) < 0)
            result = -1;
    }
    if (!plan)
        return result;
    generator->offset = begun + (uint64_t)(batches * trainer->draws);
    /* A signal to any rank stops all ranks after this step. */
    double stopped = trainer->options.stop && *trainer->options.stop;
    wg_group *group = trainer->options.group;
    if (wg__trainer_share(trainer, result) < 0 ||
        wg__group_max(group, WG_GROUP_F64, 1, &stopped) < 0 || wg__exchange_mark_used(plan) < 0 ||
        wg__trainer_share_buffers(trainer) < 0 ||
        wg_group_sum(group, WG_GROUP_F64, 1, &measured->loss) < 0)
        return -1;
    measured->stopped = stopped != 0;
    return wg__metrics_sum(group, &measured->metrics);
}

static int advance(wg_trainer *trainer, measured_step *measured) {
    const wg_trainer_options *options = &trainer->options;
    const int64_t batches =
        wg__trainer_batches(options->accumulate, options->accumulate_ramp, trainer->step);
    const double begun = wg__now();
    measured->rate = wg_schedule_rate(&options->schedule, trainer->step);
    trainer->begun_step = wg__trainer_here(trainer);
    if (trainer->task.begin_step)
        trainer->task.begin_step(trainer->task.context);
    int result = weigh_batches(trainer, batches);
    if (result == 0)
        result = run_batches(trainer, batches, measured);
    if (result == 0 && !options->step_in_backward) {
        /* The norm is measured also without clipping: a gradient that is not finite ends the step
         * before a weight moves. */
        const double most = options->clip > 0 ? options->clip : 0;
        result = wg_optimizer_clip(trainer->optimizer, most, &measured->gradient_norm);
        const wg_dtype before = wg_set_matmul_dtype(options->matmul_dtype);
        if (result == 0)
            result = wg_optimizer_step(trainer->optimizer, measured->rate);
        wg_set_matmul_dtype(before);
        if (trainer->shares_state)
            result = wg__trainer_share(trainer, result) < 0
                         ? -1
                         : wg__exchange_gather_weights(trainer->exchange);
    }
    if (result < 0) {
        /* A loss that requires no gradient is an error about gradients, too, but no divergence. */
        const bool diverged =
            !isfinite(measured->loss) || trainer->optimizer->not_finite || trainer->exchange;
        const wg_error error = *wg_error_pending();
        char hint[640] = "";
        wg_optimizer_zero_grad(trainer->optimizer);
        wg_error_clear();
        if (diverged && error.code == WG_ERROR_GRADIENT)
            wg__trainer_diagnose(trainer, hint, sizeof hint);
        wg_error_clear(); /* of a diagnosis that failed */
        return wg_fail(error.code, "train", "step %lld: %s%s%s", (long long)trainer->step + 1,
                       error.message, *hint ? "; hint: " : "", hint);
    }
    if (trainer->average)
        wg__average_update(trainer->average);
    trainer->step++;
    measured->tokens_per_second = (double)measured->metrics.tokens / (wg__now() - begun);
    return 0;
}

/* ---- Evaluation ---- */

int wg__task_evaluate(const wg_task *task, wg_metrics *metrics) {
    bool recorded = wg_set_grad_enabled(false);
    bool training = wg_module_is_training(task->module);
    wg_module_train(task->module, false);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg__span span;
    wg__span_begin(&span, "evaluate", WG_PROFILE_REGION);
    int result = task->evaluate(task->context, metrics);
    wg__span_end(&span);
    wg_scope_end(&scope, NULL);
    wg_module_train(task->module, training);
    wg_set_grad_enabled(recorded);
    return result;
}

void wg__trainer_swap_average(wg_trainer *trainer) {
    if (trainer->average && trainer->average->updates > 0)
        wg__average_swap(trainer->average);
}

static int evaluate_if_due(wg_trainer *trainer, measured_step *measured) {
    int64_t every = trainer->options.evaluate_every;
    bool due = trainer->step == trainer->options.steps || (every > 0 && trainer->step % every == 0);
    if (!due || !trainer->task.evaluate)
        return 0;
    measured->evaluated = true;
    int result = 0;
    if (wg__trainer_leads(trainer) || trainer->task.shares_evaluation) {
        wg__trainer_swap_average(trainer);
        result = wg__task_evaluate(&trainer->task, &measured->evaluation);
        wg__trainer_swap_average(trainer);
    }
    if (wg__trainer_share(trainer, result) < 0 ||
        wg_group_broadcast(trainer->options.group, 0, sizeof measured->evaluation,
                           &measured->evaluation) < 0)
        return -1;
    /* Patience and the best checkpoint compare the losses of evaluations. */
    const bool is_watched = trainer->options.patience > 0 || trainer->options.best_path;
    return !is_watched || wg_metrics_weight(&measured->evaluation, "loss") > 0
               ? 0
               : wg_fail(WG_ERROR_STATE, "train",
                         "evaluations of this task have no \"loss\", which patience and best_path "
                         "need");
}

/* ---- Recording what happened ---- */

static int set_metrics(wg_history *history, const wg_metrics *metrics) {
    for (int i = 0; i < metrics->count; i++) {
        const wg_metric *metric = &metrics->metrics[i];
        if (wg__history_set(history, metric->name, wg__metric_value(metric)) < 0)
            return -1;
    }
    return 0;
}

static int add_history(wg_trainer *trainer, const measured_step *measured) {
    wg_history *training = &trainer->training, *evaluations = &trainer->evaluations;
    if (wg__history_make_room(training, WG__HISTORY_MEAN) < 0 ||
        wg__history_add_row(training) < 0 ||
        wg__history_set(training, "step", (double)trainer->step) < 0 ||
        wg__history_set(training, "loss", measured->loss) < 0 ||
        wg__history_set(training, "lr", measured->rate) < 0 ||
        wg__history_set(training, "grad_norm", measured->gradient_norm) < 0 ||
        set_metrics(training, &measured->metrics) < 0)
        return -1;
    if (!measured->evaluated)
        return 0;
    if (wg__history_make_room(evaluations, WG__HISTORY_LATER) < 0 ||
        wg__history_add_row(evaluations) < 0 ||
        wg__history_set(evaluations, "step", (double)trainer->step) < 0)
        return -1;
    return set_metrics(evaluations, &measured->evaluation);
}

/* Whether the last `patience` evaluations were no better than one before them. */
static bool is_out_of_patience(const wg_trainer *trainer) {
    const wg_history *evaluations = &trainer->evaluations;
    if (trainer->options.patience == 0 || evaluations->row_count == 0)
        return false;
    int64_t after = 0;
    for (int64_t row = wg__history_best(evaluations) + 1; row < evaluations->row_count; row++)
        after += wg__history_count(evaluations, row);
    return after >= trainer->options.patience;
}

static void log_metrics(wg__metric_log *log, const char *prefix, const wg_metrics *metrics) {
    for (int i = 0; i < metrics->count; i++) {
        char name[WG_METRIC_NAME_SIZE + 8];
        snprintf(name, sizeof name, "%s%s", prefix, metrics->metrics[i].name);
        wg__metric_log_number(log, name, wg__metric_value(&metrics->metrics[i]));
    }
}

/* ---- The loop ---- */

static int save(wg_trainer *trainer) {
    wg__span span;
    wg__span_begin(&span, "save", WG_PROFILE_REGION);
    int result = wg_trainer_save(trainer, trainer->options.path);
    wg__span_end(&span);
    trainer->last_save = wg__now();
    return result;
}

/* Writes KEEP_STEM.STEP.h5, if it is due. */
static int save_kept(wg_trainer *trainer) {
    const wg_trainer_options *options = &trainer->options;
    if (options->keep_every == 0 || trainer->step % options->keep_every != 0)
        return 0;
    const size_t size = strlen(options->keep_stem) + 32;
    char *path = wg__alloc(size);
    if (!path)
        return -1;
    snprintf(path, size, "%s.%lld.h5", options->keep_stem, (long long)trainer->step);
    int result = wg_trainer_save(trainer, path);
    wg__free(path);
    return result;
}

/* Writes the log and the checkpoints that are due after a step, on rank 0. If the optimizer's state
 * is sharded, all ranks take part in saving, and rank 0's clock decides. */
static int write_step(wg_trainer *trainer, measured_step *measured) {
    if (!wg__trainer_leads(trainer) && !trainer->shares_state)
        return 0;
    wg__metric_log *log = trainer->log;
    if (log) {
        wg__metric_log_integer(log, "step", trainer->step);
        wg__metric_log_number(log, "loss", measured->loss);
        wg__metric_log_number(log, "lr", measured->rate);
        wg__metric_log_number(log, "grad_norm", measured->gradient_norm);
        wg__metric_log_number(log, "tokens_per_s", measured->tokens_per_second);
        log_metrics(log, "", &measured->metrics);
        log_metrics(log, "eval_", &measured->evaluation);
    }
    int status = log ? wg__metric_log_end_line(log) : 0;
    if (trainer->shares_state)
        status = wg__trainer_share(trainer, status);
    if (status == 0 && trainer->options.best_path && measured->evaluated &&
        wg__history_best(&trainer->evaluations) == trainer->evaluations.row_count - 1)
        status = wg_trainer_save(trainer, trainer->options.best_path);
    if (status < 0 || save_kept(trainer) < 0)
        return -1;
    if (!trainer->exchange)
        measured->stopped = trainer->options.stop && *trainer->options.stop;
    const wg_trainer_options *options = &trainer->options;
    bool saves = measured->stopped || trainer->step == options->steps;
    saves |= is_out_of_patience(trainer);
    saves |= options->save_every > 0 && trainer->step % options->save_every == 0;
    saves |= options->save_seconds > 0 && wg__now() - trainer->last_save >= options->save_seconds;
    saves &= options->path != NULL;
    if (trainer->shares_state)
        status = wg_group_broadcast(trainer->options.group, 0, sizeof saves, &saves);
    if (status < 0 || (saves && save(trainer) < 0))
        return -1;
    if (!wg__trainer_leads(trainer) || !options->listener)
        return 0;
    const int64_t left = options->steps - trainer->step;
    const double pace = (wg__now() - trainer->begun) / (double)(trainer->step - trainer->begun_at);
    const wg_train_report report = {
        .step = trainer->step,
        .total = options->steps,
        .loss = measured->loss,
        .learning_rate = measured->rate,
        .gradient_norm = measured->gradient_norm,
        .tokens_per_second = measured->tokens_per_second,
        .seconds_left = (double)left * pace,
        .metrics = &measured->metrics,
        .evaluation = measured->evaluated ? &measured->evaluation : NULL,
        .saved = saves,
    };
    options->listener(&report, options->listener_context);
    return 0;
}

int wg_trainer_run(wg_trainer *trainer) {
    const wg_trainer_options *options = &trainer->options;
    if (wg__trainer_check_whole(trainer) < 0)
        return -1;
    trainer->begun = wg__now();
    trainer->begun_at = trainer->step;
    trainer->last_save = trainer->begun;
    trainer->error_is_shared = false;
    if (wg__trainer_begin_group(trainer) < 0)
        return -1;
    /* Save before the first step: a path that cannot be written is an error at once. */
    const bool writes = wg__trainer_leads(trainer) || trainer->shares_state;
    int status = writes && trainer->step == 0 && options->path ? save(trainer) : 0;
    bool stopped = false;
    while (status == 0 && !stopped && trainer->step < options->steps &&
           !is_out_of_patience(trainer)) {
        measured_step measured = {0};
        if (advance(trainer, &measured) < 0 || evaluate_if_due(trainer, &measured) < 0 ||
            add_history(trainer, &measured) < 0 || write_step(trainer, &measured) < 0)
            status = -1;
        stopped = measured.stopped;
    }
    if (trainer->error_is_shared) /* all ranks stop here */
        return -1;
    if (wg__trainer_share(trainer, status) < 0)
        return -1;
    return trainer->step >= options->steps ? WG_TRAIN_FINISHED
           : stopped                       ? WG_TRAIN_INTERRUPTED
                                           : WG_TRAIN_OUT_OF_PATIENCE;
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
