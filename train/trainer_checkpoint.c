/* Saving and resuming runs: a checkpoint has all state that a run needs to go on, bit for bit. */
#include "train/internal.h"

#include <stdio.h>

#include "base/system.h"
#include "tensor/internal.h"

/* The trained weights, if /model is their average. */
#define TRAINED "/train/weights"

static void put_generator(wg_checkpoint *file, const char *name, const wg_generator *generator) {
    char path[64];
    snprintf(path, sizeof path, "/train/random/%s/seed", name);
    wg_checkpoint_put_integer(file, path, (int64_t)generator->seed);
    snprintf(path, sizeof path, "/train/random/%s/offset", name);
    wg_checkpoint_put_integer(file, path, (int64_t)generator->offset);
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

/* After an error every put fails. */
static int put_run(wg_checkpoint *file, wg_trainer *trainer) {
    const wg_task *task = &trainer->task;
    const wg_schedule *schedule = &trainer->options.schedule;
    /* With an average, /model is the average, because evaluations read /model. */
    if (trainer->average)
        wg_checkpoint_put_module(file, TRAINED, task->module);
    wg__trainer_swap_average(trainer);
    wg_checkpoint_put_module(file, "/model", task->module);
    wg__trainer_swap_average(trainer);
    char *adapters = wg__lora_config_json(task->module);
    if (adapters)
        wg_checkpoint_put_text(file, "/lora", adapters);
    wg_text_free(adapters);
    wg_checkpoint_put_optimizer(file, trainer->optimizer);
    wg_checkpoint_put_integer(file, "/train/step", trainer->step);
    wg_checkpoint_put_text(file, "/train/schedule/kind", wg__schedule_name(schedule->kind));
    wg__checkpoint_put_number(file, "/train/schedule/peak", schedule->peak);
    wg__checkpoint_put_number(file, "/train/schedule/final", schedule->final);
    wg_checkpoint_put_integer(file, "/train/schedule/warmup_steps", schedule->warmup_steps);
    wg_checkpoint_put_integer(file, "/train/schedule/decay_steps", schedule->decay_steps);
    wg_checkpoint_put_integer(file, "/train/schedule/width", schedule->width);
    wg_checkpoint_put_integer(file, "/train/schedule/total_steps", schedule->total_steps);
    put_generator(file, "module", wg_module_generator(task->module));
    put_generator(file, "default", wg_default_generator());
    /* The environment of the process that saves, also in a run resumed on another machine. */
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
        wg_checkpoint_put_text(file, name, rows[i].text);
    }
    wg__history_put(&trainer->training, file, WG_HISTORY_TRAINING);
    wg__history_put(&trainer->evaluations, file, WG_HISTORY_EVALUATION);
    if (trainer->options.note)
        wg_checkpoint_put_text(file, "/train/note", trainer->options.note);
    return wg_error_pending() ? -1 : task->save ? task->save(task->context, file) : 0;
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
    char broken[256];
    wg__find_not_finite(trainer->task.module, broken, sizeof broken);
    if (*broken)
        wg_fail(WG_ERROR_GRADIENT, "train",
                "%s is no longer finite and is not saved; lower the learning rate", broken);
    wg_checkpoint *file = wg_checkpoint_create(path); /* not after an error */
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
    const bool has_average = wg_checkpoint_has(file, TRAINED);
    if (has_average != (trainer->average != NULL))
        return wg_fail(WG_ERROR_STATE, "train", "the run was begun %s an average of its weights",
                       has_average ? "with" : "without");
    if (wg_checkpoint_get_module(file, "/model", task->module) < 0)
        return -1;
    if (has_average)
        wg__average_swap(trainer->average);
    if ((has_average && wg_checkpoint_get_module(file, TRAINED, task->module) < 0) ||
        wg_checkpoint_get_optimizer(file, trainer->optimizer) < 0 ||
        wg_checkpoint_get_integer(file, "/train/step", &trainer->step) < 0 ||
        get_generator(file, "module", wg_module_generator(task->module)) < 0 ||
        get_generator(file, "default", wg_default_generator()) < 0 ||
        wg_history_get(&trainer->training, file, WG_HISTORY_TRAINING) < 0 ||
        wg_history_get(&trainer->evaluations, file, WG_HISTORY_EVALUATION) < 0)
        return -1;
    if (trainer->average)
        trainer->average->updates = trainer->step;
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
