/* A training run: see run.h. */
#include "cli/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/progress.h"
#include "cli/results.h"
#include "cli/stopping.h"

/* All that a run is made of. */
typedef struct run {
    const wg__run_arguments *arguments;
    json_t *settings;
    char *note;           /* the settings as text */
    char *best;           /* where the best checkpoint goes; NULL: nowhere */
    char *stem;           /* of RUN.h5, for those that are kept; NULL: none is */
    wg__training model;   /* and its text */
    char command[64];     /* that goes on with it */
    int64_t steps_before; /* as long it was to be, if it is resumed; 0 */
    wg_trainer *trainer;
} run;

/* ---- Before anything is computed ---- */

/* A folder that cannot be written to shall be known now, not after the training. */
static int check_output(const wg__run_arguments *arguments) {
    const char *out = arguments->out;
    bool exists = access(out, F_OK) == 0;
    if (arguments->resume && !exists)
        return wg__cli_fail("%s is not there; leave out --resume to begin a run", out);
    if (exists && !arguments->resume && !arguments->overwrite)
        return wg__cli_fail("%s exists; --resume goes on with it, --overwrite begins anew", out);
    wg_checkpoint *file = wg_checkpoint_create(out);
    if (!file)
        return wg__cli_fail_pending();
    wg_checkpoint_abort(file);
    return 0;
}

/* The settings that the run in `path` was begun with, as text; NULL after an error was told. */
static char *read_note(const char *path, const char *command) {
    wg_checkpoint *file = wg_checkpoint_open(path);
    char *note = NULL;
    if (file && !wg_checkpoint_has(file, "/train/note"))
        wg__cli_fail("%s holds no run of `wengert %s' to go on with", path, command);
    else
        note = wg_checkpoint_get_text(file, "/train/note");
    wg_checkpoint_close(file);
    if (wg_error_pending())
        wg__cli_fail_pending();
    return note;
}

static int read_settings(run *r) {
    const wg__run_arguments *arguments = r->arguments;
    char *note = NULL;
    if (arguments->resume && !(note = read_note(arguments->out, r->command)))
        return -1;
    r->settings =
        wg__settings_merge(arguments->given, note, arguments->out, arguments->kind->defaults);
    if (r->settings && note) {
        json_t *kept = json_loads(note, 0, NULL);
        r->steps_before = wg__setting_integer(kept, "steps");
        json_decref(kept);
    }
    wg_text_free(note);
    return r->settings ? 0 : -1;
}

/* How long the run is may depend on its text. */
static int complete_settings(run *r) {
    wg__settings_decide_steps(r->settings, r->model.examples);
    const int64_t steps = wg__setting_integer(r->settings, "steps");
    if (r->steps_before && r->steps_before != steps)
        wg__cli_note("the run becomes %lld steps long instead of %lld, and its learning rate "
                     "follows that from here on",
                     (long long)steps, (long long)r->steps_before);
    r->note = json_dumps(r->settings, JSON_INDENT(2));
    return r->note ? 0 : wg_fail(WG_ERROR_MEMORY, "settings", "no memory to write them");
}

/* ---- The trainer ---- */

/* RUN and `ending` for RUN.h5; freed by free. */
static char *path_beside(const char *out, const char *ending) {
    size_t length = strlen(out);
    bool has_ending = length > 3 && strcmp(out + length - 3, ".h5") == 0;
    char *path = NULL;
    int stem = (int)(has_ending ? length - 3 : length);
    return asprintf(&path, "%.*s%s", stem, out, ending) < 0 ? NULL : path;
}

static int make_trainer(run *r, wg__progress *progress) {
    const json_t *settings = r->settings;
    double clip = wg__setting_number(settings, "clip");
    const int64_t keep_every = wg__setting_integer(settings, "keep-every");
    const char *out = r->arguments->out;
    if ((wg__setting_flag(settings, "keep-best") && !(r->best = path_beside(out, ".best.h5"))) ||
        (keep_every > 0 && !(r->stem = path_beside(out, ""))))
        return wg_fail(WG_ERROR_MEMORY, "run", "no memory for a path");
    wg_trainer_options options = {
        .steps = wg__setting_integer(settings, "steps"),
        .schedule = {.kind =
                         (wg_schedule_kind)wg_schedule_find(wg__setting_text(settings, "schedule")),
                     .peak = wg__setting_number(settings, "lr"),
                     .final = wg__setting_number(settings, "final"),
                     .warmup_steps = wg__setting_integer(settings, "warmup"),
                     .total_steps = wg__setting_integer(settings, "steps"),
                     .decay_steps = wg__setting_integer(settings, "decay-steps")},
        .clip = clip > 0 ? clip : -1,
        .accumulate = wg__setting_integer(settings, "accumulate"),
        .average_decay = wg__setting_number(settings, "ema"),
        .patience = wg__setting_integer(settings, "patience"),
        .evaluate_every = wg__setting_integer(settings, "eval-every"),
        .path = r->arguments->out,
        .best_path = r->best,
        .keep_every = keep_every,
        .keep_stem = r->stem,
        .save_every = wg__setting_integer(settings, "save-every"),
        .note = r->note,
        .log_path = r->arguments->log,
        .listener = wg__progress_report,
        .listener_context = progress,
        .stop = wg__stop_signal(),
    };
    wg_optimizer *optimizer = wg_optimizer_new(&(wg_optimizer_choice){
        .name = wg__setting_text(settings, "optimizer"),
        .weight_decay = wg__setting_number(settings, "weight-decay"),
        .momentum = wg__setting_number(settings, "momentum"),
        .beta1 = wg__setting_number(settings, "beta1"),
        .beta2 = wg__setting_number(settings, "beta2"),
    });
    r->trainer = wg_trainer_new(&r->model.task, optimizer, &options);
    if (!r->trainer)
        return -1;
    return r->arguments->resume ? wg_trainer_resume(r->trainer, r->arguments->out) : 0;
}

static int prepare(run *r, wg__progress *progress) {
    const wg__run_arguments *arguments = r->arguments;
    const char *init = wg__setting_text(r->settings, "init");
    r->model = (wg__training){.kind = arguments->kind,
                              .settings = r->settings,
                              .resumed = arguments->resume ? arguments->out : init};
    if (wg__training_begin(&r->model) < 0 || complete_settings(r) < 0)
        return -1;
    wg_module_checkpoint_activations(r->model.task.module, wg__setting_flag(r->settings, "recompute"));
    if (!arguments->resume && init) /* its dropout is this run's */
        r->model.task.module->generator =
            (wg_generator){.seed = (uint64_t)wg__setting_integer(r->settings, "seed")};
    return make_trainer(r, progress);
}

/* What the run is made of, on stderr. */
static void describe(const run *r) {
    r->model.kind->describe(&r->model);
    fprintf(stderr, "model  %lld parameters, %lld tokens in its vocabulary; %d threads\n",
            (long long)wg_module_parameter_count(r->model.task.module),
            (long long)r->model.vocabulary, wg_threads());
    if (wg_trainer_steps(r->trainer) > 0)
        fprintf(stderr, "run    %s goes on at step %lld of %lld\n", r->arguments->out,
                (long long)wg_trainer_steps(r->trainer),
                (long long)wg__setting_integer(r->settings, "steps"));
    else if (r->model.examples > 0)
        fprintf(stderr, "run    %lld steps\n",
                (long long)wg__setting_integer(r->settings, "steps"));
}

/* ---- Results ---- */

static int print_results(const run *r) {
    wg_metrics metrics = {0};
    if (r->model.kind->evaluate(&r->model, &metrics) < 0)
        return wg__cli_fail_pending();
    if (!r->arguments->json) {
        r->model.kind->print(&metrics);
        return 0;
    }
    json_t *results = r->model.kind->results(&metrics);
    json_object_set_new(results, "steps", json_integer(wg_trainer_steps(r->trainer)));
    json_object_set_new(results, "parameters",
                        json_integer(wg_module_parameter_count(r->model.task.module)));
    json_object_set_new(results, "checkpoint", json_string(r->arguments->out));
    wg__print_json(results);
    return 0;
}

/* A shell tells by 128 + signal that a process was stopped. */
static int tell_interruption(const run *r) {
    fprintf(stderr,
            "wengert: interrupted at step %lld and saved; "
            "`wengert %s --resume --out %s' goes on\n",
            (long long)wg_trainer_steps(r->trainer), r->command, r->arguments->out);
    return 128 + *wg__stop_signal();
}

static void tell_early_stop(const run *r) {
    int64_t step = 0;
    double loss = 0;
    wg_trainer_best(r->trainer, &step, &loss);
    wg__cli_note("stopped at step %lld: %lld measurements brought no lower loss than %.4f at step "
                 "%lld%s%s",
                 (long long)wg_trainer_steps(r->trainer),
                 (long long)wg__setting_integer(r->settings, "patience"), loss, (long long)step,
                 r->best ? ", which is kept in " : "", r->best ? r->best : "");
}

static int train(run *r) {
    wg__progress progress = wg__progress_begin();
    if (prepare(r, &progress) < 0)
        return wg__cli_fail_pending();
    describe(r);
    wg__listen_for_stop(); /* finishes the step and saves */
    if (wg__profiling_begin(&r->arguments->profiling) < 0)
        return wg__cli_fail_pending();
    int outcome = wg_trainer_run(r->trainer);
    wg__progress_end(&progress);
    if (outcome < 0 || wg__profiling_end(&r->arguments->profiling) < 0)
        return wg__cli_fail_pending();
    if (outcome == WG_TRAIN_INTERRUPTED)
        return tell_interruption(r);
    if (outcome == WG_TRAIN_OUT_OF_PATIENCE)
        tell_early_stop(r);
    wg_trainer_swap_average(r->trainer);
    return print_results(r);
}

static void free_run(run *r) {
    wg_trainer_free(r->trainer);
    wg__training_end(&r->model);
    free(r->note);
    free(r->best);
    free(r->stem);
    json_decref(r->settings);
}

static int show_batch(run *r) {
    const wg__model_kind *kind = r->arguments->kind;
    if (!kind->show_batch)
        return wg__cli_fail("the batches of %s are not shown; those of glm are", kind->name);
    r->model = (wg__training){
        .kind = kind, .settings = r->settings, .resumed = wg__setting_text(r->settings, "init")};
    if (wg__training_begin(&r->model) < 0 || kind->show_batch(&r->model) < 0)
        return wg__cli_fail_pending();
    return 0;
}

static int start(run *r) {
    if (!r->arguments->show_batch) {
        const int code = check_output(r->arguments);
        if (code != 0)
            return code;
    }
    if (read_settings(r) < 0)
        return EXIT_FAILURE;
    return r->arguments->show_batch ? show_batch(r) : train(r);
}

int wg__run(const wg__run_arguments *arguments) {
    if (arguments->threads)
        wg_set_threads(arguments->threads);
    run r = {.arguments = arguments};
    wg__model_kind_command(arguments->kind, r.command, sizeof r.command);
    int code = start(&r);
    free_run(&r);
    return code;
}
