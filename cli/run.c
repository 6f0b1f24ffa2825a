/* See run.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/run.h"
#include "cli/decoding.h"
#include "io/weights/adapter.h"
#include "data/internal.h"
#include "models/internal.h"
#include "objectives/internal.h"
#include "train/internal.h"

/* Batches in an evaluation during training; the one at the end takes the whole held-out text. */
enum { EVALUATION_BATCHES = 16 };

/* ---- The tokenizer ---- */

enum { USUAL_VOCABULARY = 4096 };

/* The tokenizer that --tokenizer names: a kind to learn, of `size` tokens, unless a token file of
 * the corpus has one; or a file. */
static wg_tokenizer *make_tokenizer(const wg__text_settings *text, int64_t size) {
    const wg__learner *learner = wg__learner_of(text->tokenizer);
    const wg_setting_list *corpus = &text->corpus;
    if (text->alphabet > 0 && !(learner && learner->alphabet)) {
        wg_fail(WG_ERROR_ARGUMENT, "tokenizer",
                "--alphabet is for a WordPiece or SentencePiece vocabulary that is learnt, not for "
                "--tokenizer %s",
                text->tokenizer);
        return NULL;
    }
    if (!learner && access(text->tokenizer, F_OK) == 0)
        return wg_tokenizer_load(text->tokenizer);
    if (!learner) {
        wg_fail(WG_ERROR_NOT_FOUND, "tokenizer",
                "'%s' is neither a file nor a kind that can be learnt: " WG__LEARNER_NAMES,
                text->tokenizer);
        return NULL;
    }
    for (int64_t i = 0; i < corpus->count; i++) {
        if (!wg__dataset_is_token_file(corpus->items[i]))
            continue;
        wg_tokenizer *tokenizer = wg_tokenizer_load(corpus->items[i]);
        const int64_t own = tokenizer ? wg_tokenizer_size(tokenizer) : 0;
        if (tokenizer && (strcmp(wg_tokenizer_kind(tokenizer), learner->stored) != 0 ||
                          (text->vocab_size && text->vocab_size != own)))
            wg__cli_note("no tokenizer is learnt: %s has its own, %s of %lld tokens",
                         corpus->items[i], wg_tokenizer_kind(tokenizer), (long long)own);
        return tokenizer;
    }
    return wg__learn(learner, &(wg__learning){.count = (int)corpus->count,
                                              .paths = corpus->items,
                                              .vocab_size = learner->vocab_size ? size : 0,
                                              .alphabet = text->alphabet,
                                              .byte_fallback = learner->bytes_usual});
}

/* ---- The model ---- */

/* A new model. The configuration gives the size of the vocabulary to learn; the tokenizer then
 * completes the configuration with its actual size and special tokens. */
static int create_model(wg__run *r) {
    const wg__text_settings *text = &r->settings.text;
    const wg_model_type *type = r->type;
    wg_config *file = text->config ? wg__config_load(text->config) : NULL;
    void *config = calloc(1, type->settings.size);
    wg_model_fit fit = {.sequence = r->settings.training.setup.sequence, .file = file};
    int status = !config || (text->config && !file) ? -1 : 0;
    if (status == 0)
        status = file ? wg__model_config_open(type, file, config)
                      : wg_model_preset_config(type, text->preset, config);
    if (status == 0)
        status = wg_model_config_fit(type, config, &fit);
    if (status == 0)
        fit.tokenizer = r->tokenizer = make_tokenizer(text, text->vocab_size > 0 ? text->vocab_size
                                                            : fit.learnt > 0     ? fit.learnt
                                                                             : USUAL_VOCABULARY);
    if (status == 0 &&
        (!r->tokenizer || wg_model_config_fit(type, config, &fit) < 0 ||
         wg_model_from_config(type, config, (uint64_t)r->settings.training.setup.seed, &r->model) <
             0))
        status = -1;
    free(config);
    wg__config_free(file);
    return status;
}

/* The setup that the arguments say, but for model, tokenizer and text. */
static wg_training_setup setup_of(const wg__run *r, const char *checkpoint) {
    wg_training_setup setup = r->settings.training.setup;
    setup.training_path = r->settings.tuning.train;
    setup.held_out_path = r->settings.tuning.eval;
    setup.checkpoint = checkpoint;
    setup.options = r->settings.objective;
    setup.evaluation_batches = EVALUATION_BATCHES;
    setup.group = wg__cli_group;
    return setup;
}

/* A model to fine-tune, of the checkpoint that the arguments name. */
static int adapt_model(wg__run *r) {
    const wg_training_setup setup = setup_of(r, r->settings.tuning.model);
    const wg_model_type *type = wg_model_type_of(setup.checkpoint);
    if (!type)
        return -1;
    if (!(type->shape & r->objective->shapes)) {
        char takes[128] = "";
        for (int i = 0; (type = wg_model_type_at(i)); i++)
            if (type->shape & r->objective->shapes)
                snprintf(takes + strlen(takes), sizeof takes - strlen(takes), "%s%s",
                         *takes ? ", " : "", type->model_type);
        return wg__trained_refuse(setup.checkpoint, r->command, takes);
    }
    return r->objective->training->adapt(r->objective, &setup, wg__note_model, NULL, &r->model,
                                         &r->tokenizer);
}

/* Adds the tokens that --extend-vocab asks for to model and tokenizer. */
static int extend_vocabulary(wg__run *r) {
    const wg__text_settings *text = &r->settings.text;
    const wg_setting_list *corpus = &text->corpus;
    for (int64_t i = 0; i < corpus->count; i++)
        if (wg__dataset_is_token_file(corpus->items[i]))
            return wg_fail(WG_ERROR_ARGUMENT, corpus->items[i],
                           "--extend-vocab learns tokens from text, and this is a token file; give "
                           "the texts that it was made of");
    wg_vocabulary_extension extension;
    if (wg_tokenizer_extend(r->tokenizer, (int)corpus->count, corpus->items, text->extend_vocab,
                            &extension) < 0)
        return -1;
    const int status = wg_model_extend_vocabulary(&r->model, r->tokenizer, &extension);
    if (status == 0) {
        wg__cli_note("%lld tokens are added to the %lld of %s", (long long)extension.count,
                     (long long)wg_tokenizer_size(r->tokenizer), text->init);
        wg_tokenizer_free(r->tokenizer);
        r->tokenizer = extension.tokenizer;
        extension.tokenizer = NULL;
    }
    wg_vocabulary_extension_clear(&extension);
    return status;
}

/* The model of the resumed run, of --init, or a new one. */
static int make_model(wg__run *r) {
    const char *from = r->resume ? r->out : r->settings.text.init;
    if (from) {
        wg__trained trained;
        const wg_objective *objective = wg_objective_of(from);
        const wg_model_type *type = objective ? wg_model_type_of(from) : NULL;
        if (!type)
            return -1;
        const bool same = objective->finetunes == r->objective->finetunes &&
                          (objective == r->objective || !r->resume) &&
                          (!r->type || type == r->type);
        if (!same && r->resume && type == r->type && !objective->finetunes && !r->finetunes)
            return wg_fail(WG_ERROR_ARGUMENT, from,
                           "the run was begun with --objective %s; leave --objective out",
                           objective->name);
        if (!same)
            return wg__trained_refuse(from, r->command, r->finetunes ? "its own" : r->type->name);
        if (wg__trained_load(&trained, r->objective, from) < 0)
            return -1;
        r->model = trained.model;
        r->tokenizer = trained.tokenizer;
        return r->settings.text.extend_vocab && !r->resume ? extend_vocabulary(r) : 0;
    }
    if (r->settings.text.extend_vocab)
        return wg_fail(WG_ERROR_ARGUMENT, "tokenizer",
                       "--extend-vocab adds to the vocabulary of a checkpoint; name it by --init");
    return r->finetunes ? adapt_model(r) : create_model(r);
}

/* ---- The text ---- */

/* Loads the corpus. When a run begins, it warns of repeated lines and other faults in the corpus,
 * and of [UNK] tokens. */
static int load_text(wg__run *r) {
    const wg__text_settings *text = &r->settings.text;
    /* A dry run writes no token file. */
    const bool has_storage = text->tokens && (!r->dry_run || access(text->tokens, F_OK) == 0);
    const wg_token_storage storage = {.path = has_storage ? text->tokens : NULL,
                                      .note = wg__note_tokens};
    const wg_dataset_kind kind = r->objective->data.text;
    const wg_dataset_options options = {.kind = kind, .storage = &storage};
    const int count = (int)text->corpus.count;
    const char *const *paths = text->corpus.items;
    if (text->eval) {
        const char *const held_out[] = {text->eval, text->eval_target};
        const bool two =
            kind == WG_TEXT_PAIRS && text->eval_target && !wg__dataset_is_token_file(text->eval);
        r->text = wg_dataset_load(count, paths, r->tokenizer, &options);
        if (r->text)
            r->held_out = wg_dataset_load(two ? 2 : 1, held_out, r->tokenizer,
                                          &(wg_dataset_options){.kind = kind});
    } else {
        /* A share of the documents, of the end of each file, or of the pairs of each two files. */
        const double share = kind == WG_TEXT_STREAM ? 0.1 : 0.05;
        wg_dataset_load_split(count, paths, r->tokenizer, share, &options, &r->text, &r->held_out);
    }
    if (!r->text || !r->held_out)
        return -1;
    if (!r->resume && kind != WG_TEXT_PAIRS) {
        wg__corpus_warn(count, paths, text->eval);
        const int64_t unknown =
            wg__dataset_count(r->text, wg_tokenizer_special(r->tokenizer, WG_TOKEN_UNKNOWN));
        const double unknown_share = (double)unknown / (double)wg_dataset_tokens(r->text);
        if (unknown_share > 0.005)
            wg__cli_note(
                "%.2f %% of the text's tokens are unknown to the tokenizer; one that is learnt "
                "from this text, or of a kind that knows each byte (bpe), reads all of it",
                100 * unknown_share);
        if (unknown < 0)
            return -1;
    }
    const wg_setting_numbers *weights = &text->corpus_weights;
    return weights->count > 0 ? wg_dataset_weigh(r->text, (int)weights->count, weights->items) : 0;
}

/* Model, tokenizer, text and training. Quick checks come before the text is read. */
static int make_training(wg__run *r) {
    char takers[128] = "";
    const wg_objective *o;
    for (int i = 0; (o = wg_objective_at(i)); i++)
        if (o->data.cuts_sequences)
            snprintf(takers + strlen(takers), sizeof takers - strlen(takers), "%s%s",
                     *takers ? ", " : "", o->name);
    if (r->settings.training.seq_ramp > 0 && !r->objective->data.cuts_sequences)
        return wg_fail(WG_ERROR_ARGUMENT, "seq-ramp",
                       "--seq-ramp cuts sequences that any place of a text may begin (%s); those "
                       "of %s cannot be cut",
                       takers, r->objective->name);
    if ((r->show_batch && wg__require_shown_batches(r->objective) < 0) || make_model(r) < 0 ||
        (!r->finetunes && load_text(r) < 0))
        return -1;
    wg_training_setup setup = setup_of(r, r->resume ? r->out : NULL);
    setup.model = &r->model;
    setup.tokenizer = r->tokenizer;
    setup.training = r->text;
    setup.held_out = r->held_out;
    r->training = wg_training_new(r->objective, &setup);
    if (r->training && r->settings.training.seq_ramp > 0 && r->training->setup.sequence % 4 != 0)
        return wg_fail(WG_ERROR_ARGUMENT, "seq-ramp",
                       "--seq-ramp cuts sequences into four, and --seq %lld is no multiple of 4",
                       (long long)r->training->setup.sequence);
    return r->training ? 0 : -1;
}

/* ---- Before anything is computed ---- */

int wg__run_check_output(const wg__run *r) {
    const wg__text_settings *text = &r->settings.text;
    const wg__tuning_settings *tuning = &r->settings.tuning;
    const char *const outputs[] = {r->out, r->log, r->profiling.trace};
    const char *const inputs[] = {text->config,  text->tokenizer, text->eval, text->eval_target,
                                  tuning->train, tuning->eval,    r->file};
    int code = wg__cli_check_distinct(r->log, 1, &r->out);
    for (int i = 0; code == 0 && i < 3; i++) {
        code = wg__cli_check_distinct(outputs[i], 7, inputs);
        if (code == 0)
            code = wg__cli_check_distinct(outputs[i], text->corpus.count, text->corpus.items);
    }
    if (code != 0)
        return code;
    const bool exists = access(r->out, F_OK) == 0;
    if (r->resume && !exists)
        return wg__cli_fail("%s is not there; leave out --resume to begin a run", r->out);
    if (exists && !r->resume && !r->overwrite)
        return wg__cli_fail("%s exists; --resume goes on with it, --overwrite begins anew", r->out);
    wg_checkpoint *file = wg_checkpoint_create(r->out);
    if (!file)
        return wg__cli_fail_pending();
    wg_checkpoint_abort(file);
    return 0;
}

int wg__run_read_note(wg__run *r) {
    wg_checkpoint *file = wg_checkpoint_open(r->out);
    char *text = NULL;
    if (file && !wg_checkpoint_has(file, "/train/note"))
        wg_fail(WG_ERROR_STATE, r->out, "it holds no run of `wengert %s' to go on with",
                r->command);
    else
        text = wg_checkpoint_get_text(file, "/train/note");
    wg_checkpoint_close(file);
    wg_config *note = wg__config_parse(text, r->out);
    wg_settings *settings = &r->settings.all;
    int64_t stage = 0;
    if (note && wg__config_integer(note, "zero", &stage) == 0 && stage > 2) {
        wg__cli_note("the run was begun with --zero 3, which is gone; it goes on with --zero 2");
        wg__config_set_integer(note, "zero", 2);
    }
    if (!note || wg__settings_check_fixed(settings, note, r->out) < 0 ||
        wg__settings_set_object(settings, note, WG_SETTING_CHECKPOINT) < 0 ||
        wg__config_integer(note, "steps", &r->steps_before) < 0)
        wg__cli_fail_pending();
    const int status = note && !wg_error_pending() ? 0 : -1;
    wg__config_free(note);
    wg_text_free(text);
    return status;
}

/* a b, or 2^62, more examples than any run takes. */
static int64_t product(int64_t a, int64_t b) {
    const int64_t most = (int64_t)1 << 62;
    int64_t exact;
    return __builtin_mul_overflow(a, b, &exact) || exact > most ? most : exact;
}

/* The number of examples of a run with that number of steps. */
static int64_t examples_of(const wg__training_settings *s, int64_t steps) {
    const int64_t ramp = steps < s->trainer.accumulate_ramp ? steps : s->trainer.accumulate_ramp;
    int64_t batches = product(steps - ramp, wg__trainer_batches(s->trainer.accumulate, 0, 0));
    for (int64_t step = 0; step < ramp; step++)
        batches += wg__trainer_batches(s->trainer.accumulate, s->trainer.accumulate_ramp, step);
    return product(batches, s->setup.batch);
}

/* Makes the training. The number of steps, if it is given in epochs, and the warm-up follow from
 * the text. */
static int make_run(wg__run *r) {
    wg__training_settings *s = &r->settings.training;
    wg_settings *all = &r->settings.all;
    if (make_training(r) < 0)
        return -1;
    if (wg__settings_origin(all, &s->trainer.steps) == WG_SETTING_UNSET) {
        const double examples = r->settings.tuning.epochs * (double)r->training->examples,
                     most = (double)wg__trainer_batches(s->trainer.accumulate, 0, 0);
        double batches = ceil(examples / (double)s->setup.batch);
        for (s->trainer.steps = 0; s->trainer.steps < s->trainer.accumulate_ramp && batches > 0;
             s->trainer.steps++)
            batches -= (double)wg__trainer_batches(s->trainer.accumulate,
                                                   s->trainer.accumulate_ramp, s->trainer.steps);
        const double steps = (double)s->trainer.steps + ceil(fmax(batches, 0) / most);
        s->trainer.steps = (int64_t)fmin(fmax(steps, 1), INT32_MAX);
        wg__settings_decide(all, &s->trainer.steps);
    }
    const int64_t steps = s->trainer.steps, tenth = steps / 10, longest = s->longest_warmup;
    if (wg__settings_origin(all, &s->trainer.schedule.warmup_steps) == WG_SETTING_UNSET) {
        s->trainer.schedule.warmup_steps = longest > 0 && longest < tenth ? longest : tenth;
        wg__settings_decide(all, &s->trainer.schedule.warmup_steps);
    }
    if (s->trainer.step_in_backward && s->trainer.clip > 0)
        return wg_fail(WG_ERROR_ARGUMENT, "settings",
                       "--step-in-backward with --clip %g: clipping needs all gradients before a "
                       "weight moves; add --clip 0",
                       s->trainer.clip);
    r->training->run_examples = examples_of(s, steps);
    r->training->ramp_examples = examples_of(s, s->seq_ramp);
    if (r->steps_before && r->steps_before != steps)
        wg__cli_note("the run becomes %lld steps long instead of %lld, and its learning rate "
                     "follows that from here on",
                     (long long)steps, (long long)r->steps_before);
    wg_config *note = wg__settings_to_json(all);
    r->note = wg__config_to_json(note);
    wg__config_free(note);
    if (r->note && !wg__cli_memory_lacked)
        return 0;
    return wg_fail(WG_ERROR_MEMORY, "settings", "no memory to write them");
}

/* ---- The trainer ---- */

/* RUN and `ending` for RUN.h5; freed by free. */
static char *path_beside(const char *out, const char *ending) {
    const int stem = (int)strlen(out) - (wg__ends_with(out, ".h5") ? 3 : 0);
    char *path = NULL;
    return asprintf(&path, "%.*s%s", stem, out, ending) < 0 ? NULL : path;
}

/* ---- Event files ---- */

static double seconds_since_1970(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Opens the event file and writes the settings as a Markdown code block, indented by four spaces. A
 * resumed run adds a second file to the folder, which continues the steps. */
static int open_events(wg__run *r) {
    char *text = NULL;
    size_t size;
    if (!r->tensorboard || !wg__cli_leads())
        return 0;
    FILE *stream = open_memstream(&text, &size);
    for (const char *line = r->note; stream && line && *line;) {
        const size_t length = strcspn(line, "\n");
        fprintf(stream, "    %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
    int status = stream && fclose(stream) == 0
                     ? 0
                     : wg_fail(WG_ERROR_MEMORY, "run", "no memory for the settings");
    if (status == 0)
        r->events = wg__event_file_open(r->tensorboard, seconds_since_1970());
    if (!r->events || wg__event_file_text(r->events, "settings/text_summary", text) < 0 ||
        wg__event_file_end(r->events, wg_trainer_steps(r->trainer), seconds_since_1970()) < 0)
        status = -1;
    free(text);
    return status;
}

static void add_scalars(wg_event_file *events, const char *group, const wg_metrics *metrics) {
    for (int i = 0; i < metrics->count; i++) {
        char tag[WG_METRIC_NAME_SIZE + 16];
        snprintf(tag, sizeof tag, "%s/%s", group, metrics->metrics[i].name);
        wg__event_file_scalar(events, tag, wg__metric_value(&metrics->metrics[i]));
    }
}

/* Hears of each step. An event file that cannot be written does not end the training. */
static void listen(const wg_train_report *report, void *context) {
    wg__run *r = context;
    wg__progress_report(report, &r->progress);
    if (!r->events)
        return;
    wg__event_file_scalar(r->events, "train/loss", report->loss);
    wg__event_file_scalar(r->events, "train/lr", report->learning_rate);
    wg__event_file_scalar(r->events, "train/grad_norm", report->gradient_norm);
    wg__event_file_scalar(r->events, "train/tokens_per_s", report->tokens_per_second);
    add_scalars(r->events, "train", report->metrics);
    if (report->evaluation)
        add_scalars(r->events, "eval", report->evaluation);
    if (wg__event_file_end(r->events, report->step, seconds_since_1970()) == 0)
        return;
    wg__cli_note("%s; the run goes on without event files", wg_error_pending()->message);
    wg_error_clear();
    wg__event_file_close(r->events);
    r->events = NULL;
}

static wg_trainer_options trainer_options(wg__run *r) {
    const wg__training_settings *s = &r->settings.training;
    wg_trainer_options options = s->trainer;
    options.schedule.total_steps = options.steps;
    options.clip = options.clip > 0 ? options.clip : -1;
    options.path = r->out;
    options.best_path = r->best;
    options.keep_stem = r->stem;
    options.note = r->note;
    options.log_path = r->log;
    options.listener = listen;
    options.listener_context = r;
    options.stop = &wg__stop_signal;
    options.group = wg__cli_group;
    options.zero = (int)s->zero;
    options.bf16_gradients = s->communication_dtype == 1;
    options.matmul_dtype = s->dtype == 1 ? WG_BF16 : WG_F32;
    return options;
}

static wg_optimizer *make_optimizer(const wg__training_settings *s) {
    return wg_optimizer_new(&(wg_optimizer_choice){.name = wg__optimizer_name(s->optimizer),
                                                   .weight_decay = s->weight_decay,
                                                   .momentum = s->momentum,
                                                   .beta1 = s->beta1,
                                                   .beta2 = s->beta2});
}

static int make_trainer(wg__run *r) {
    const wg__training_settings *s = &r->settings.training;
    if ((s->keep_best && !(r->best = path_beside(r->out, ".best.h5"))) ||
        (s->trainer.keep_every > 0 && !(r->stem = path_beside(r->out, ""))))
        return wg_fail(WG_ERROR_MEMORY, "run", "no memory for a path");
    const wg_trainer_options options = trainer_options(r);
    const wg_task task = wg_training_task(r->training);
    r->trainer = wg_trainer_new(&task, make_optimizer(&r->settings.training), &options);
    if (!r->trainer)
        return -1;
    return r->resume ? wg_trainer_resume(r->trainer, r->out) : 0;
}

/* ---- Several processes ---- */

/* Compares the command lines of the ranks, so that an option that differs is named; the trainer
 * compares the model and the data, so that names of files may differ. Collective. */
static int agree_on_command(const wg__run *r) {
    const wg_settings *settings = &r->settings.all;
    wg_group *group = wg__cli_group;
    wg_config *json = wg__settings_to_json(settings);
    int status = wg_group_check(group, json ? 0 : -1) < 0 ||
                         wg__group_agree(group, "the version of Wengert", wg_version()) < 0 ||
                         wg__group_agree(group, "the command", r->command) < 0 ||
                         wg__group_agree(group, "--out", r->out) < 0 ||
                         wg__group_agree(group, "--resume", r->resume ? "given" : "not given") < 0
                     ? -1
                     : 0;
    for (int p = 0; p < settings->count; p++) {
        const wg_setting_part *part = &settings->parts[p];
        for (int i = 0; part->values && part->table->where && i < part->table->count; i++) {
            const wg_setting *row = &part->table->rows[i];
            if (status < 0 || row->kind == WG_SETTING_FILE || row->kind == WG_SETTING_FILES)
                continue;
            char option[96];
            char *text = json_dumps(wg__config_value(json, row->name), JSON_ENCODE_ANY);
            snprintf(option, sizeof option, "--%s", row->name);
            status = wg__group_agree(group, option, text ? text : "not given");
            free(text);
        }
    }
    wg__config_free(json);
    return status;
}

/* Sets the checkpointing of activations and the seed of dropout, and attaches adapters: by the
 * options, or in a resumed run by its checkpoint. */
static int prepare_module(wg__run *r) {
    enum { MOST = 64 };
    const wg__training_settings *s = &r->settings.training;
    wg_module *module = r->model.module;
    const char *targets[MOST];
    int64_t count = -1;
    wg_module_checkpoint_activations(module, s->recompute);
    if (!r->resume && r->settings.text.init) /* dropout begins at this run's seed */
        module->generator = (wg_generator){.seed = (uint64_t)s->setup.seed};
    if (!s->lora)
        return 0;
    if (r->resume) {
        wg_checkpoint *file = wg_checkpoint_open(r->out);
        char *config = file ? wg_checkpoint_get_text(file, "/lora") : NULL;
        if (config)
            count = wg__lora_attach_config(module, config, r->out);
        wg_text_free(config);
        wg_checkpoint_close(file);
        return count < 0 ? -1 : 0;
    }
    char *text = strdup(s->lora_targets ? s->lora_targets : ""), *rest = NULL;
    if (!text)
        return wg_fail(WG_ERROR_MEMORY, "run", "no memory for names");
    wg_lora_options options = {
        .rank = s->lora, .alpha = s->lora_alpha, .dropout = s->lora_dropout, .targets = targets};
    for (char *name = strtok_r(text, ", ", &rest); name && options.target_count < MOST;
         name = strtok_r(NULL, ", ", &rest))
        targets[options.target_count++] = name;
    count = wg_model_attach_lora(&r->model, &options);
    free(text);
    return count < 0 ? -1 : 0;
}

/* Prints the parts of the run to stderr, with the memory of each of several ranks. */
static void describe(const wg__run *r) {
    const int64_t done = wg_trainer_steps(r->trainer), steps = r->settings.training.trainer.steps;
    const int ranks = wg_group_size(wg__cli_group), stage = (int)r->settings.training.zero;
    const double all = (double)wg_module_parameter_count(r->model.module), mib = 1 << 20;
    wg_state_dict *state = wg_module_state(r->model.module);
    double trained = 0;
    for (int64_t i = 0; state && i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        if (slot->kind == WG_SLOT_PARAMETER && !slot->tied && wg_requires_grad(slot->tensor))
            trained += (double)wg_tensor_count(slot->tensor);
    }
    wg_state_dict_free(state);
    char of[32] = "", zero[32] = "", frozen[96] = "";
    if (ranks > 1)
        snprintf(of, sizeof of, "%d ranks of ", ranks);
    if (stage > 0)
        snprintf(zero, sizeof zero, " (ZeRO %d)", stage);
    if (all > trained)
        snprintf(frozen, sizeof frozen, "; each has the %.2f MiB of frozen weights whole",
                 (all - trained) * sizeof(float) / mib);
    r->objective->data.describe(r->training, stderr);
    fprintf(stderr, "model  %.0f parameters, %lld tokens in its vocabulary; %s%d threads\n", all,
            (long long)wg_model_sizes_of(&r->model).vocabulary, of, wg_threads());
    if (r->settings.training.lora)
        fprintf(stderr, "lora   rank %lld on %lld layers; %.0f parameters are trained (%.2g %%)\n",
                (long long)r->settings.training.lora, (long long)wg__lora_count(r->model.module),
                trained, 100 * trained / all);
    if (ranks > 1 || stage > 0) {
        int64_t moments, gradients;
        wg__trainer_memory(r->trainer, &moments, &gradients);
        fprintf(stderr,
                "memory %.2f MiB of optimizer state and %.2f MiB of gradients a rank%s, beside "
                "%.2f MiB of trained weights%s\n",
                (double)moments / mib, (double)gradients / mib, zero,
                (double)wg__trainer_weight_bytes(r->trainer) / mib, frozen);
    }
    if (done > 0)
        fprintf(stderr, "run    %s goes on at step %lld of %lld\n", r->out, (long long)done,
                (long long)steps);
    else if (r->finetunes)
        fprintf(stderr, "run    %lld steps\n", (long long)steps);
}

/* ---- Results ---- */

/* All ranks measure; rank 0 prints. */
static int print_results(const wg__run *r) {
    wg_metrics metrics = {0};
    if (wg_training_evaluate(r->training, &metrics) < 0)
        return wg__cli_fail_pending();
    if (!wg__cli_leads())
        return 0;
    if (!r->json) {
        r->objective->print(&metrics, stdout);
        return 0;
    }
    json_t *results = wg__json_metrics(r->objective->metrics, &metrics);
    json_object_set_new(results, "steps", json_integer(wg_trainer_steps(r->trainer)));
    json_object_set_new(results, "parameters",
                        json_integer(wg_module_parameter_count(r->model.module)));
    json_object_set_new(results, "peak_bytes", json_integer(r->peak_bytes));
    json_object_set_new(results, "checkpoint", json_string(r->out));
    wg__print_json(JSON_INDENT(2), results);
    return 0;
}

/* The trainer shares errors with all ranks. Only rank 0 measures its time and prints. */
int wg__run_train(wg__run *r) {
    r->progress = (wg__progress){.is_terminal = isatty(STDERR_FILENO)};
    const wg__profiling profiling = wg__cli_leads() ? r->profiling : (wg__profiling){0};
    wg_group *group = wg__cli_group;
    /* Rank 0 makes a token file; then other ranks read it. */
    const bool shares = wg_group_size(group) > 1 && r->settings.text.tokens,
               leads = wg__cli_leads();
    if ((shares && wg_group_check(group, leads ? make_run(r) : 0) < 0) ||
        wg_group_check(group, shares && leads ? 0 : make_run(r)) < 0 || agree_on_command(r) < 0)
        return wg__cli_fail_pending();
    const bool ready = prepare_module(r) == 0 && make_trainer(r) == 0 && open_events(r) == 0 &&
                       wg__profiling_begin(&profiling) == 0;
    if (wg_group_check(group, ready ? 0 : -1) < 0)
        return wg__cli_fail_pending();
    if (wg__cli_leads())
        describe(r);
    wg__listen_for_stop(); /* the signal finishes the step and saves */
    wg__group_set_timeout(wg__cli_group, r->timeout);
    wg__alloc_reset_peak();
    const int outcome = wg_trainer_run(r->trainer);
    r->peak_bytes = wg_alloc_get_stats().peak_bytes;
    wg__progress_end(&r->progress);
    if (outcome < 0)
        return wg__cli_fail_pending();
    if (wg_group_check(wg__cli_group, wg__profiling_end(&profiling)) < 0)
        return wg__cli_fail_pending();
    const long long step = wg_trainer_steps(r->trainer);
    if (outcome == WG_TRAIN_INTERRUPTED && !wg__cli_leads())
        return 0;
    if (outcome == WG_TRAIN_INTERRUPTED) {
        fprintf(stderr,
                "wengert: interrupted at step %lld and saved; "
                "`wengert %s --resume --out %s' goes on\n",
                step, r->command, r->out);
        /* A shell shows so that a signal ended a process; another rank may have had it. */
        return 128 + (wg__stop_signal ? wg__stop_signal : SIGTERM);
    }
    if (outcome == WG_TRAIN_OUT_OF_PATIENCE) {
        int64_t best = 0;
        double loss = 0;
        wg_trainer_best(r->trainer, &best, &loss);
        wg__cli_note("stopped at step %lld: %lld measurements brought no lower loss than %.4f at "
                     "step %lld%s%s",
                     step, (long long)r->settings.training.trainer.patience, loss, (long long)best,
                     r->best ? ", which is kept in " : "", r->best ? r->best : "");
    }
    wg__trainer_swap_average(r->trainer);
    return print_results(r);
}

int wg__run_preview(wg__run *r) {
    if (r->dry_run && wg_group_size(wg__cli_group) > 1)
        return wg__cli_fail("--dry-run measures one process; leave out mpirun");
    if (r->dry_run)
        return make_run(r) < 0 || prepare_module(r) < 0
                   ? wg__cli_fail_pending()
                   : wg__dry_run(r, trainer_options(r), make_optimizer(&r->settings.training));
    return wg__cli_leads() &&
                   (make_training(r) < 0 || wg_training_show_batch(r->training, stdout) < 0)
               ? wg__cli_fail_pending()
               : 0;
}

void wg__run_clear(wg__run *r) {
    wg__event_file_close(r->events);
    wg_trainer_free(r->trainer);
    wg_training_free(r->training);
    wg_dataset_free(r->text);
    wg_dataset_free(r->held_out);
    wg_model_free(&r->model);
    wg_tokenizer_free(r->tokenizer);
    wg_text_free(r->note);
    free(r->best);
    free(r->stem);
    wg__settings_end(&r->settings.all);
    free(r->settings.objective);
}
