/* wengert pretrain: text in, a trained model out. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/results.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/settings.h"
#include "data/wordpiece.h"
#include "io/config.h"
#include "train/bert_pretraining.h"

/* Batches in an evaluation on the way; the one at the end takes the whole held-out text. */
enum { EVALUATION_BATCHES = 16 };

/* Tokens of a vocabulary that is learnt, unless something else was said. */
enum { DEFAULT_VOCABULARY = 4096 };

/* Of the documents, when no text is given to measure on. */
#define HELD_OUT_SHARE 0.05

/* All that a run is made of. */
typedef struct run {
    const wg__pretrain_arguments *arguments;
    json_t *settings;
    char *note; /* the settings as text */
    char *best; /* where the best checkpoint goes; NULL: nowhere */
    wg_tokenizer *tokenizer;
    wg_corpus *corpus;     /* what is trained on */
    wg_corpus *held_out;   /* what is measured on */
    wg_bert_config config; /* of a new model */
    wg_bert_for_pretraining *model;
    wg_bert_pretraining *pretraining;
    wg_trainer *trainer;
} run;

/* ---- Before anything is computed ---- */

/* A folder that cannot be written to shall be known now, not after the training. */
static int check_output(const wg__pretrain_arguments *arguments) {
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
static char *read_note(const char *path) {
    wg_checkpoint *file = wg_checkpoint_open(path);
    char *note = NULL;
    if (file && !wg_checkpoint_has(file, "/train/note"))
        wg__cli_fail("%s holds no run of `wengert pretrain' to go on with", path);
    else
        note = wg_checkpoint_get_text(file, "/train/note");
    wg_checkpoint_close(file);
    if (wg_error_pending())
        wg__cli_fail_pending();
    return note;
}

static int read_settings(run *r) {
    const wg__pretrain_arguments *arguments = r->arguments;
    char *note = NULL;
    if (arguments->resume && !(note = read_note(arguments->out)))
        return -1;
    r->settings = wg__settings_merge(arguments->given, note, arguments->out);
    if (r->settings && note) {
        json_t *kept = json_loads(note, 0, NULL);
        if (wg__setting_integer(kept, "steps") != wg__setting_integer(r->settings, "steps"))
            wg__cli_note("the run becomes %lld steps long instead of %lld, and its learning rate "
                         "follows that from here on",
                         (long long)wg__setting_integer(r->settings, "steps"),
                         (long long)wg__setting_integer(kept, "steps"));
        json_decref(kept);
    }
    wg_text_free(note);
    r->note = r->settings ? json_dumps(r->settings, JSON_INDENT(2)) : NULL;
    return r->note ? 0 : -1;
}

/* ---- Text ---- */

/* The files of the corpus; freed by free. */
static const char **corpus_paths(const json_t *settings, int *count) {
    const json_t *corpus = json_object_get(settings, "corpus");
    *count = (int)json_array_size(corpus);
    const char **paths = calloc((size_t)*count + 1, sizeof *paths);
    for (int i = 0; paths && i < *count; i++)
        paths[i] = json_string_value(json_array_get(corpus, (size_t)i));
    return paths;
}

/* A configuration file has said how large the vocabulary is; a preset leaves it open. */
static int64_t vocabulary_size(const run *r) {
    int64_t size = wg__setting_integer(r->settings, "vocab-size");
    if (size > 0)
        return size;
    return wg__setting_text(r->settings, "config") ? r->config.vocab_size : DEFAULT_VOCABULARY;
}

static wg_tokenizer *make_tokenizer(const run *r, int count, const char *const *paths) {
    const char *name = wg__setting_text(r->settings, "tokenizer");
    if (strcmp(name, "wordpiece") == 0)
        return wg_wordpiece_train_files(
            count, paths, &(wg_wordpiece_training){.vocabulary_size = vocabulary_size(r)});
    if (access(name, F_OK) == 0)
        return wg_tokenizer_load(name);
    wg_fail(WG_ERROR_NOT_FOUND, "tokenizer",
            "'%s' is neither a file nor a kind that can be learnt; wordpiece can", name);
    return NULL;
}

static int load_text(run *r) {
    int count;
    const char **paths = corpus_paths(r->settings, &count);
    if (!r->tokenizer) /* the resumed run has its own */
        r->tokenizer = make_tokenizer(r, count, paths);
    wg_corpus *all = r->tokenizer ? wg_corpus_load(count, paths, r->tokenizer, NULL) : NULL;
    free(paths);
    const char *eval = wg__setting_text(r->settings, "eval");
    if (!all)
        return -1;
    if (!eval) {
        int result = wg_corpus_split(all, HELD_OUT_SHARE, &r->corpus, &r->held_out);
        wg_corpus_free(all);
        return result;
    }
    r->corpus = all;
    r->held_out = wg_corpus_load(1, &eval, r->tokenizer, NULL);
    return r->held_out ? 0 : -1;
}

/* ---- Model and training ---- */

/* The configuration that preset or file name, before the vocabulary is known. */
static int read_config(run *r) {
    const char *path = wg__setting_text(r->settings, "config");
    if (!path)
        return wg_bert_config_preset(&r->config, wg__setting_text(r->settings, "preset"));
    wg_config *file = wg_config_load(path);
    char *json = file ? wg_config_to_json(file) : NULL;
    int result = json ? wg_bert_config_from_json(&r->config, json) : -1;
    wg_text_free(json);
    wg_config_free(file);
    return result;
}

/* A preset takes the vocabulary's size; a configuration file has said its own. */
static int make_model(run *r) {
    if (!wg__setting_text(r->settings, "config"))
        r->config.vocab_size = wg_tokenizer_size(r->tokenizer);
    r->model =
        wg_bert_for_pretraining_new(&r->config, (uint64_t)wg__setting_integer(r->settings, "seed"));
    return r->model ? 0 : -1;
}

static int make_pretraining(run *r) {
    wg_bert_pretraining_options options = {
        .batch = wg__setting_integer(r->settings, "batch"),
        .sequence = wg__setting_integer(r->settings, "seq"),
        .seed = (uint64_t)wg__setting_integer(r->settings, "seed"),
        .evaluation_batches = EVALUATION_BATCHES,
    };
    r->pretraining =
        wg_bert_pretraining_new(r->model, r->tokenizer, r->corpus, r->held_out, &options);
    return r->pretraining ? 0 : -1;
}

/* ---- Being stopped ---- */

static volatile sig_atomic_t stop_signal;

static void handle_stop(int signal) {
    stop_signal = signal;
}

/* The first signal finishes the step and saves; a second one ends the process at once. */
static void listen_for_stop(void) {
    struct sigaction action = {.sa_handler = handle_stop, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* RUN.best.h5 beside RUN.h5; freed by free. */
static char *best_path(const char *out) {
    size_t length = strlen(out);
    bool has_ending = length > 3 && strcmp(out + length - 3, ".h5") == 0;
    char *path = NULL;
    int stem = (int)(has_ending ? length - 3 : length);
    return asprintf(&path, "%.*s.best.h5", stem, out) < 0 ? NULL : path;
}

static int make_trainer(run *r, wg__progress *progress) {
    const json_t *settings = r->settings;
    wg_task task = wg_bert_pretraining_task(r->pretraining);
    double clip = wg__setting_number(settings, "clip");
    if (wg__setting_flag(settings, "keep-best") && !(r->best = best_path(r->arguments->out)))
        return wg_fail(WG_ERROR_MEMORY, "pretrain", "no memory for a path");
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
        .save_every = wg__setting_integer(settings, "save-every"),
        .note = r->note,
        .log_path = r->arguments->log,
        .listener = wg__progress_report,
        .listener_context = progress,
        .stop = &stop_signal,
    };
    wg_optimizer *optimizer = wg_optimizer_new(&(wg_optimizer_choice){
        .name = wg__setting_text(settings, "optimizer"),
        .weight_decay = wg__setting_number(settings, "weight-decay"),
        .momentum = wg__setting_number(settings, "momentum"),
        .beta1 = wg__setting_number(settings, "beta1"),
        .beta2 = wg__setting_number(settings, "beta2"),
    });
    r->trainer = wg_trainer_new(&task, optimizer, &options);
    if (!r->trainer)
        return -1;
    return r->arguments->resume ? wg_trainer_resume(r->trainer, r->arguments->out) : 0;
}

/* What is quickly found wrong comes before the corpus is read. */
static int prepare(run *r, wg__progress *progress) {
    if (r->arguments->resume) {
        if (wg_bert_load(r->arguments->out, &r->model, &r->tokenizer) < 0 || load_text(r) < 0)
            return -1;
    } else if (read_config(r) < 0 || load_text(r) < 0 || make_model(r) < 0) {
        return -1;
    }
    return make_pretraining(r) < 0 ? -1 : make_trainer(r, progress);
}

/* What the run is made of, on stderr. */
static void describe(const run *r) {
    const wg_corpus *corpus = r->corpus;
    fprintf(stderr, "text   %lld documents, %lld sentences, %lld tokens; %lld documents held out\n",
            (long long)wg_corpus_documents(corpus), (long long)wg_corpus_sentences(corpus),
            (long long)wg_corpus_tokens(corpus), (long long)wg_corpus_documents(r->held_out));
    fprintf(stderr, "model  %lld parameters, %lld words and pieces; %d threads\n",
            (long long)wg_module_parameter_count(&r->model->module),
            (long long)r->model->bert->config.vocab_size, wg_threads());
    if (wg_trainer_steps(r->trainer) > 0)
        fprintf(stderr, "run    %s goes on at step %lld of %lld\n", r->arguments->out,
                (long long)wg_trainer_steps(r->trainer),
                (long long)wg__setting_integer(r->settings, "steps"));
}

/* ---- Results ---- */

static int print_results(const run *r) {
    wg_metrics metrics = {0};
    if (wg_bert_pretraining_evaluate(r->pretraining, &metrics) < 0)
        return wg__cli_fail_pending();
    if (!r->arguments->json) {
        wg__print_bert_results(&metrics);
        return 0;
    }
    json_t *results = wg__bert_results_json(&metrics);
    json_object_set_new(results, "steps", json_integer(wg_trainer_steps(r->trainer)));
    json_object_set_new(results, "parameters",
                        json_integer(wg_module_parameter_count(&r->model->module)));
    json_object_set_new(results, "checkpoint", json_string(r->arguments->out));
    wg__print_json(results);
    return 0;
}

/* A shell tells by 128 + signal that a process was stopped. */
static int tell_interruption(const run *r) {
    fprintf(stderr,
            "wengert: interrupted at step %lld and saved; "
            "`wengert pretrain %s --resume --out %s' goes on\n",
            (long long)wg_trainer_steps(r->trainer), r->arguments->model, r->arguments->out);
    return 128 + stop_signal;
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
    listen_for_stop();
    int outcome = wg_trainer_run(r->trainer);
    wg__progress_end(&progress);
    if (outcome < 0)
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
    wg_bert_pretraining_free(r->pretraining);
    if (r->model)
        wg_module_free(&r->model->module);
    wg_corpus_free(r->corpus);
    wg_corpus_free(r->held_out);
    wg_tokenizer_free(r->tokenizer);
    free(r->note);
    free(r->best);
    json_decref(r->settings);
}

int wg__verb_pretrain(int argc, char **argv) {
    wg__pretrain_arguments arguments = {0};
    wg__settings_parse(argc, argv, &arguments);
    if (arguments.threads)
        wg_set_threads(arguments.threads);
    run r = {.arguments = &arguments};
    int code = check_output(&arguments);
    if (code == 0)
        code = read_settings(&r) < 0 ? EXIT_FAILURE : train(&r);
    free_run(&r);
    json_decref(arguments.given);
    return code;
}
