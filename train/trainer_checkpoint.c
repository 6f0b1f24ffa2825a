/* Runs in checkpoints: all that a run needs to go on, bit for bit. */
#include "train/trainer_state.h"

#include <stdio.h>
#include <string.h>

#include "base/system.h"
#include "io/weights/adapter.h"
#include "tensor/internal.h"
#include "tensor/kernels.h"
#include "tensor/ops.h"
#include "optim/internal.h"
#include "base/internal.h"
#include "io/internal.h"
#include "train/internal.h"

/* The weights that are trained, where /model is their average. */
#define TRAINED "/train/weights"

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

/* Beside adapters, their configuration. */
static int put_adapters(wg_checkpoint *file, wg_module *module) {
    char *config = wg__lora_config_json(module);
    if (!config)
        return wg_error_pending() ? -1 : 0;
    const int status = wg_checkpoint_put_text(file, "/lora", config);
    wg_text_free(config);
    return status;
}

/* With an average, what is trained stands beside it: /model is what is evaluated. */
static int put_weights(wg_checkpoint *file, wg_trainer *trainer) {
    wg_module *module = trainer->task.module;
    if (!trainer->average)
        return wg_checkpoint_put_module(file, "/model", module);
    if (wg_checkpoint_put_module(file, TRAINED, module) < 0)
        return -1;
    wg__trainer_swap_average(trainer);
    int result = wg_checkpoint_put_module(file, "/model", module);
    wg__trainer_swap_average(trainer);
    return result;
}

static int get_weights(wg_checkpoint *file, wg_trainer *trainer) {
    wg_module *module = trainer->task.module;
    bool has_average = wg_checkpoint_has(file, TRAINED);
    if (has_average != (trainer->average != NULL))
        return wg_fail(WG_ERROR_STATE, "train", "the run was begun %s an average of its weights",
                       has_average ? "with" : "without");
    if (wg_checkpoint_get_module(file, "/model", module) < 0 || !has_average)
        return wg_error_pending() ? -1 : 0;
    wg__average_swap(trainer->average);
    return wg_checkpoint_get_module(file, TRAINED, module);
}

/* ---- What the run was made with ---- */

/* Of the process that saves: a run that was resumed elsewhere has what it had last. */
static int put_environment(wg_checkpoint *file) {
    const wg_kernels kernels = wg__kernels_in_use();
    char processor[256];
    wg__processor_name(processor, sizeof processor);
    const struct {
        const char *name, *text;
    } rows[] = {
        {"version", wg_version()},
        {"commit", wg__commit()},
        {"processor", processor},
        {"kernels", kernels.vectors},
        {"kernels_bf16", kernels.bf16},
        {"kernels_blocks", kernels.blocks},
        {"blis", kernels.blis},
        {"blis_kernels", kernels.blis_family},
        {"deterministic", wg_is_deterministic() ? "yes" : "no"},
        {"hdf5", wg__checkpoint_library()},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, WG_ENVIRONMENT "/%s", rows[i].name);
        if (wg_checkpoint_put_text(file, name, rows[i].text) < 0)
            return -1;
    }
    return 0;
}

static int put_run(wg_checkpoint *file, wg_trainer *trainer) {
    const wg_task *task = &trainer->task;
    if (put_weights(file, trainer) < 0 || put_adapters(file, task->module) < 0 ||
        wg_checkpoint_put_optimizer(file, trainer->optimizer) < 0 ||
        wg_checkpoint_put_integer(file, "/train/step", trainer->step) < 0)
        return -1;
    if (wg_checkpoint_put_text(file, "/train/schedule/kind",
                               wg__schedule_name(trainer->options.schedule.kind)) < 0 ||
        wg__checkpoint_put_number(file, "/train/schedule/peak", trainer->options.schedule.peak) <
            0 ||
        wg__checkpoint_put_number(file, "/train/schedule/final", trainer->options.schedule.final) <
            0 ||
        wg_checkpoint_put_integer(file, "/train/schedule/warmup_steps",
                                  trainer->options.schedule.warmup_steps) < 0 ||
        wg_checkpoint_put_integer(file, "/train/schedule/decay_steps",
                                  trainer->options.schedule.decay_steps) < 0 ||
        wg_checkpoint_put_integer(file, "/train/schedule/width", trainer->options.schedule.width) <
            0)
        return -1;
    if (wg_checkpoint_put_integer(file, "/train/schedule/total_steps",
                                  trainer->options.schedule.total_steps) < 0)
        return -1;
    if (put_generator(file, "module", wg_module_generator(task->module)) < 0 ||
        put_generator(file, "default", wg_default_generator()) < 0 || put_environment(file) < 0 ||
        wg__history_put(&trainer->training, file, WG_HISTORY_TRAINING) < 0 ||
        wg__history_put(&trainer->evaluations, file, WG_HISTORY_EVALUATION) < 0)
        return -1;
    const char *note = trainer->options.note;
    if (note && wg_checkpoint_put_text(file, "/train/note", note) < 0)
        return -1;
    return task->save ? task->save(task->context, file) : 0;
}

/* Zero times a number is 0, unless it is not finite: then the sum is not a number. */
bool wg__is_finite(wg_tensor *x) {
    wg_scope scope;
    wg_scope_begin(&scope);
    double sum = wg_item(wg_sum(wg_mul_scalar(x, 0), 0, NULL, false));
    wg_scope_end(&scope, NULL);
    return sum == 0;
}

int wg__trainer_check_whole(const wg_trainer *trainer) {
    if (!trainer->half_stepped)
        return 0;
    return wg_fail(WG_ERROR_STATE, "train",
                   "step %lld failed when some weights had been stepped and others had not; resume "
                   "the run from its last checkpoint",
                   (long long)trainer->step + 1);
}

static int write_run(wg_trainer *trainer, const char *path) {
    if (wg__trainer_check_whole(trainer) < 0)
        return -1;
    wg_state_dict *state = wg_module_state(trainer->task.module);
    if (!state)
        return -1;
    bool recorded = wg_set_grad_enabled(false);
    int result = 0;
    for (int64_t i = 0; result == 0 && i < state->count; i++) {
        wg_tensor *x = state->entries[i].slot->tensor;
        if (wg_dtype_is_float(wg_tensor_dtype(x)) && !wg__is_finite(x))
            result = wg_fail(WG_ERROR_GRADIENT, "train",
                             "%s is no longer finite and is not saved; lower the learning rate",
                             state->entries[i].path);
    }
    wg_set_grad_enabled(recorded);
    wg_state_dict_free(state);
    if (result < 0)
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

int wg_trainer_save(wg_trainer *trainer, const char *path) {
    if (!trainer->shares_state)
        return write_run(trainer, path);
    int status;
    if (wg__trainer_leads(trainer)) {
        status = write_run(trainer, path);
        if (wg__optimizer_end_gather(trainer->optimizer) < 0)
            status = -1;
    } else {
        status = wg__optimizer_send_states(trainer->optimizer);
    }
    return wg__trainer_share(trainer, status);
}

static int get_run(wg_checkpoint *file, wg_trainer *trainer) {
    const wg_task *task = &trainer->task;
    if (!wg_checkpoint_has(file, "/train/step"))
        return wg_fail(WG_ERROR_STATE, "train", "the file holds a model and no training run");
    if (get_weights(file, trainer) < 0 ||
        wg_checkpoint_get_optimizer(file, trainer->optimizer) < 0 ||
        wg_checkpoint_get_integer(file, "/train/step", &trainer->step) < 0 ||
        get_generator(file, "module", wg_module_generator(task->module)) < 0 ||
        get_generator(file, "default", wg_default_generator()) < 0 ||
        wg_history_get(&trainer->training, file, WG_HISTORY_TRAINING) < 0 ||
        wg_history_get(&trainer->evaluations, file, WG_HISTORY_EVALUATION) < 0)
        return -1;
    if (trainer->average)
        wg__average_set_updates(trainer->average, trainer->step);
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
