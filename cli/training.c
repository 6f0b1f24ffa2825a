/* wengert pretrain and wengert finetune: their arguments. run.c does what they say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run.h"
#include "cli/trained.h"
#include "tensor/kernels.h"

/* ---- Arguments ---- */

enum {
    KEY_OUT = WG__KEY_OWN,
    KEY_RESUME,
    KEY_OVERWRITE,
    KEY_LOG,
    KEY_TENSORBOARD,
    KEY_THREADS,
    KEY_TIMEOUT,
    KEY_SETTINGS,
    KEY_OBJECTIVE,
    KEY_SHOW_BATCH,
    KEY_DRY_RUN,
    KEY_TASK
};

static const struct argp_option run_options[] = {
    {"threads", KEY_THREADS, "N", 0,
     "Use N threads (all processors; of several ranks on a machine each its share)", 0},
    {"timeout", KEY_TIMEOUT, "SECONDS", 0,
     "Under mpirun: end the run if a rank is not heard of for so long (600; 0: wait for ever)", 0},
    {"settings", KEY_SETTINGS, "FILE.json", 0,
     "Read options from this file, {\"steps\": 200, \"lr\": 0.001}; the command line rules", 0},
    {"out", KEY_OUT, "RUN.h5", 0, "The checkpoint to write", 0},
    {"resume", KEY_RESUME, NULL, 0,
     "Go on with the run that RUN.h5 holds; settings that are not given again stay as they were",
     0},
    {"overwrite", KEY_OVERWRITE, NULL, 0, "Begin anew though RUN.h5 exists, which is lost", 0},
    {"log", KEY_LOG, "FILE", 0, "Append one JSON object for each step", 0},
    {"tensorboard", KEY_TENSORBOARD, "FOLDER", 0,
     "Write an event file for TensorBoard into this folder: `tensorboard --logdir FOLDER' shows "
     "the "
     "curves; a resumed run adds a file",
     0},
    {"dry-run", KEY_DRY_RUN, NULL, 0,
     "Write nothing: make a few steps, and print the memory and time that the run would take", 0},
    WG__OPTIONS_PROFILE,
    WG__OPTION_JSON,
    {0},
};

static error_t parse_run(int key, char *text, struct argp_state *state) {
    wg__run *r = state->input;
    switch (key) {
    case KEY_OUT:
        r->out = text;
        return 0;
    case KEY_SETTINGS:
        r->file = text;
        wg__run_settings_read_file(&r->settings, text);
        return 0;
    case KEY_RESUME:
        r->resume = true;
        return 0;
    case KEY_OVERWRITE:
        r->overwrite = true;
        return 0;
    case KEY_DRY_RUN:
        r->dry_run = true;
        return 0;
    case KEY_LOG:
        r->log = text;
        return 0;
    case KEY_TENSORBOARD:
        r->tensorboard = text;
        return 0;
    case KEY_THREADS:
        r->threads = (int)wg__cli_integer(state, "threads", text, 1, 4096);
        return 0;
    case KEY_TIMEOUT:
        r->timeout = wg__cli_number(state, "timeout", text, 0, 1e9);
        return 0;
    case WG__KEY_JSON:
        r->json = true;
        return 0;
    case WG__KEY_PROFILE:
        r->profiling.table = true;
        return 0;
    case WG__KEY_TRACE:
        r->profiling.trace = text;
        return 0;
    default:
        return wg__run_settings_parse(&r->settings, state, key, text);
    }
}

/* The options of LoRA want --lora, and --lora a model that was trained. */
static void check_lora(struct argp_state *state, const wg__run *r) {
    const wg__training_settings *s = &r->settings.training;
    const struct {
        const char *name;
        const void *member;
    } rows[] = {{"lora-alpha", &s->lora_alpha},
                {"lora-targets", &s->lora_targets},
                {"lora-dropout", &s->lora_dropout}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (wg__run_settings_given(&r->settings, rows[i].member) && s->lora == 0 && !r->resume)
            argp_error(state, "--%s is of LoRA; name its rank, too: --lora 8", rows[i].name);
    if (s->lora && !wg__run_finetunes(r) && !r->resume && !r->settings.text.init)
        argp_error(state, "--lora changes a model that was trained before; name it by --init");
    if (s->lora && r->settings.text.extend_vocab && !r->resume)
        argp_error(state, "--lora and --extend-vocab exclude each other: the vectors of new tokens "
                          "would not be trained");
}

static void check_run(struct argp_state *state, wg__run *r) {
    check_lora(state, r);
    if (r->show_batch && r->resume)
        argp_error(state, "--show-batch shows the first batch of a run that begins, not of one "
                          "that is resumed");
    if (r->dry_run && r->resume)
        argp_error(state, "--dry-run is for a run that begins, not for one that is resumed");
    if (!r->out && !r->show_batch && !r->dry_run)
        argp_error(state, "--out RUN.h5 is missing: where shall the checkpoint go?");
    if (r->resume && r->overwrite)
        argp_error(state, "--resume and --overwrite exclude each other");
    wg__run_settings_add_objective(&r->settings, r->objective, state,
                                   r->type ? r->type->name : r->objective->name);
    wg__training_command(r->objective, r->type, r->command, sizeof r->command);
}

/* ---- wengert pretrain ---- */

static const char *model_name(int index) {
    const wg_model_type *type = wg_model_type_at(index);
    return type ? type->name : NULL;
}

/* The name of the index-th objective of pretraining. */
static const char *pretraining_name(int index) {
    const wg_objective *objective;
    for (int i = 0; (objective = wg_objective_at(i)); i++)
        if (!objective->finetunes && index-- == 0)
            return objective->name;
    return NULL;
}

static const wg_model_type *find_model(const char *name) {
    for (int i = 0; wg_model_type_at(i); i++)
        if (strcmp(wg_model_type_at(i)->name, name) == 0)
            return wg_model_type_at(i);
    return NULL;
}

static bool takes_pairs(const wg__run *r) {
    return r->objective && r->objective->text == WG_TEXT_PAIRS;
}

/* --init says what these say. */
static void check_init(struct argp_state *state, const wg__run_settings *settings) {
    const wg__text_settings *text = &settings->text;
    const struct {
        const char *name;
        const void *member;
    } rivals[] = {{"preset", &text->preset},
                  {"config", &text->config},
                  {"tokenizer", &text->tokenizer},
                  {"vocab-size", &text->vocab_size},
                  {"alphabet", &text->alphabet}};
    for (size_t i = 0; text->init && i < sizeof rivals / sizeof rivals[0]; i++)
        if (wg__run_settings_given(settings, rivals[i].member))
            argp_error(state, "--init and --%s exclude each other", rivals[i].name);
}

static void check_pretrain(struct argp_state *state, wg__run *r) {
    char models[128];
    const wg__text_settings *text = &r->settings.text;
    if (!r->type)
        argp_error(state, "which model? %s are there",
                   wg__cli_names(models, sizeof models, model_name));
    if (r->resume && !r->objective_given && r->out) { /* a file that is not there is told later */
        const wg_objective *begun = wg_objective_of(r->out);
        wg_error_clear();
        r->objective =
            begun && !begun->finetunes && (begun->shapes & r->type->shape) ? begun : r->objective;
    }
    if (!(r->objective->shapes & r->type->shape))
        argp_error(state, "--objective %s is not for %s, which %s train%s", r->objective->name,
                   r->type->name, r->type->objectives, strchr(r->type->objectives, ',') ? "" : "s");
    if (!r->resume && text->corpus.count == 0)
        argp_error(state, "--corpus FILE is missing: what shall the model read?");
    check_init(state, &r->settings);
    if (takes_pairs(r) && text->eval && !text->eval_target && !wg_dataset_is_token_file(text->eval))
        argp_error(state, "--eval takes SOURCE and TARGET, or a token file, for %s", r->type->name);
    check_run(state, r);
}

/* The first argument is the model; those after it belong to --corpus, as a shell makes several of
 * `--corpus *.txt', or are the target of --eval. */
static void take_argument(struct argp_state *state, wg__run *r, const char *text) {
    char models[128], suggestion[96];
    if (r->target_due)
        wg__run_settings_give(&r->settings, state, "eval-target", text);
    else if (r->type)
        wg__run_settings_give(&r->settings, state, "corpus", text);
    else if (!(r->type = find_model(text)))
        argp_error(state, "there is no model '%s'; %s are there%s", text,
                   wg__cli_names(models, sizeof models, model_name),
                   wg__cli_suggestion(suggestion, sizeof suggestion, text, model_name));
    else if (!r->objective)
        r->objective = wg_objective_find(r->type->objectives);
    r->target_due = false;
}

static error_t parse_pretrain(int key, char *text, struct argp_state *state) {
    wg__run *r = state->input;
    const char *eval = r->settings.text.eval;
    char names[256], suggestion[96];
    switch (key) {
    case KEY_SHOW_BATCH:
        r->show_batch = true;
        return 0;
    case KEY_OBJECTIVE:
        r->objective = wg_objective_find(text);
        r->objective_given = true;
        wg_error_clear();
        if (r->objective && r->objective->finetunes)
            argp_error(state, "--objective: %s is a task: `wengert finetune RUN.h5 --task %s'",
                       text, text);
        if (!r->objective)
            argp_error(state, "--objective: there is no '%s'; %s are there%s", text,
                       wg__cli_names(names, sizeof names, pretraining_name),
                       wg__cli_suggestion(suggestion, sizeof suggestion, text, pretraining_name));
        return 0;
    case ARGP_KEY_ARG:
        take_argument(state, r, text);
        return 0;
    case ARGP_KEY_END:
        check_pretrain(state, r);
        return 0;
    default: {
        const error_t result = parse_run(key, text, state);
        r->target_due =
            r->settings.text.eval != eval && takes_pairs(r) && !wg_dataset_is_token_file(text);
        return result;
    }
    }
}

/* The doc of a verb with its models or tasks, a line each; argp frees it. */
static char *list_records(int key, const char *text, void *input) {
    if (key != ARGP_KEY_HELP_EXTRA)
        return (char *)text;
    const wg__run *r = input;
    char *list = NULL;
    size_t size;
    FILE *stream = open_memstream(&list, &size);
    if (!stream)
        return NULL;
    const wg_model_type *type;
    const wg_objective *objective;
    fprintf(stream, wg__run_finetunes(r) ? "Tasks:\n" : "Models:\n");
    for (int i = 0; !wg__run_finetunes(r) && (type = wg_model_type_at(i)); i++)
        fprintf(stream, "  %-11s %s; %s\n", type->name, type->title, type->objectives);
    for (int i = 0; (objective = wg_objective_at(i)); i++)
        if (wg__run_finetunes(r) == objective->finetunes)
            fprintf(stream, "%s  %-15s %s\n",
                    i == 0 && !wg__run_finetunes(r) ? "\nObjectives:\n" : "", objective->name,
                    objective->title);
    fclose(stream);
    return list;
}

/* What the model and its preset want of a run. */
static void take_model_record(wg__run *r) {
    const wg__text_settings *text = &r->settings.text;
    if (!r->type)
        return;
    wg__run_settings_take_record(&r->settings, r->type->training);
    if (r->resume || text->config || text->init)
        return;
    const wg_model_preset *preset = wg_model_preset_find(r->type, text->preset);
    wg_error_clear(); /* a preset that there is not is told when the model is made */
    if (preset)
        wg__run_settings_take_record(&r->settings, preset->training);
}

/* A run that began in deterministic mode, by its option or the environment, goes on in it. */
static int use_kernels(wg__run_settings *settings) {
    bool *deterministic = &settings->training.deterministic;
    if (*deterministic)
        return wg_set_deterministic(true);
    if (wg_is_deterministic()) {
        *deterministic = true;
        wg__run_settings_decide(settings, deterministic);
    }
    return 0;
}

/* Before anything is computed. */
static int begin_run(wg__run *r) {
    wg_group *group = wg__cli_group();
    wg__cli_use_threads(r->threads);
    wg_group_set_timeout(group, 0); /* one rank may take long to read its text */
    const bool writes = !r->show_batch && !r->dry_run && wg__cli_leads();
    const int code = writes ? wg__run_check_output(r) : 0;
    if (code != 0)
        return code;
    if (r->resume && wg__run_take_note(r) < 0)
        return EXIT_FAILURE;
    return use_kernels(&r->settings) < 0 ? wg__cli_fail_pending() : 0;
}

static int run_verb(const struct argp *parser, const wg_setting_table *own, int argc, char **argv) {
    wg__run r = {.timeout = 600};
    wg__run_settings_begin(&r.settings, own);
    wg__cli_parse_in_order(parser, argc, argv, &r);
    int code = wg__cli_check(begin_run(&r));
    if (code == 0) {
        take_model_record(&r);
        wg__run_settings_take_record(&r.settings, r.objective->training);
        wg__cli_begin_work();
        if (r.dry_run && wg_group_size(wg__cli_group()) > 1)
            code = wg__cli_fail("--dry-run measures one process; leave out mpirun");
        else if (r.dry_run)
            code = wg__run_dry(&r);
        else if (!r.show_batch)
            code = wg__run_train(&r);
        else
            code = wg__cli_leads() ? wg__run_show_batch(&r) : 0;
    }
    wg__run_clear(&r);
    return code;
}

int wg__verb_pretrain(int argc, char **argv) {
    static const struct argp_option own[] = {
        {"show-batch", KEY_SHOW_BATCH, NULL, 0,
         "Print the first batch as tables of tokens, positions, what they predict and what they "
         "attend to, and stop (blank-infilling)",
         0},
        {"objective", KEY_OBJECTIVE, "NAME", 0,
         "Train the model by this objective instead of its usual one", 0},
        {0},
    };
    const struct argp parser = {
        .options = wg__run_settings_options(&wg__text_rows, false, own, run_options),
        .parser = parse_pretrain,
        .args_doc = "MODEL --corpus FILE... --out RUN.h5\nMODEL --resume --out RUN.h5",
        .doc = "Pretrains a model on plain text and saves it, with all that is needed to go on.\v"
               "The text is prose as in a book, or one sentence a line with blank lines between "
               "documents (masked-lm, blank-infilling); any text as it is, with lines "
               "\"<|endoftext|>\" between documents where it has several (causal-lm, "
               "span-corruption); or two files, of which each line has its translation in the same "
               "line of the other (translation), for which one vocabulary is learnt. Ctrl-C "
               "finishes the step and saves; --resume goes on with the same bits as a run that "
               "never stopped.\n\n"
               "At the end the loss on held-out text is printed beside that of predicting each "
               "word or token by its frequency.",
        .help_filter = list_records,
    };
    return run_verb(&parser, &wg__text_rows, argc, argv);
}

/* ---- wengert finetune ---- */

static const char *task_name(int index) {
    const wg_objective *objective;
    for (int i = 0; (objective = wg_objective_at(i)); i++)
        if (objective->finetunes && index-- == 0)
            return objective->name;
    return NULL;
}

static void check_finetune(struct argp_state *state, wg__run *r) {
    const wg__tuning_settings *s = &r->settings.tuning;
    if (!r->objective)
        argp_error(state, "--task NAME is missing: what shall the model learn?");
    check_run(state, r);
    if (r->resume)
        return;
    if (!s->model)
        argp_error(state, "RUN.h5 is missing: which model shall be fine-tuned?");
    if (!s->train || !s->eval)
        argp_error(state, "--train FILE and --eval FILE are both wanted");
    const wg_setting *missing = wg__run_settings_missing(&r->settings);
    if (missing)
        argp_error(state, "--task %s wants --%s", r->objective->name, missing->name);
}

static error_t parse_finetune(int key, char *text, struct argp_state *state) {
    wg__run *r = state->input;
    char tasks[128], suggestion[96];
    switch (key) {
    case KEY_TASK:
        r->objective = wg_objective_find(text);
        wg_error_clear();
        if (!r->objective || !r->objective->finetunes)
            argp_error(state, "--task: there is no '%s'; %s are there%s", text,
                       wg__cli_names(tasks, sizeof tasks, task_name),
                       wg__cli_suggestion(suggestion, sizeof suggestion, text, task_name));
        return 0;
    case ARGP_KEY_ARG:
        if (r->settings.tuning.model)
            argp_error(state, "one RUN.h5 at a time");
        wg__run_settings_give(&r->settings, state, "model", text);
        return 0;
    case ARGP_KEY_END:
        check_finetune(state, r);
        return 0;
    default:
        return parse_run(key, text, state);
    }
}

int wg__verb_finetune(int argc, char **argv) {
    static const struct argp_option own[] = {
        {"task", KEY_TASK, "NAME", 0, "What the model is to learn: one of the tasks below", 0},
        {0},
    };
    const struct argp parser = {
        .options = wg__run_settings_options(&wg__tuning_rows, true, own, run_options),
        .parser = parse_finetune,
        .args_doc = "RUN.h5 --task NAME --train FILE --eval FILE --out NEW.h5\n"
                    "--task NAME --resume --out NEW.h5",
        .doc =
            "Fine-tunes a pretrained model for a task and saves it, with all that is needed to go "
            "on.\v"
            "RUN.h5 is a checkpoint of `wengert pretrain' or `wengert convert'. A head that the "
            "checkpoint does not have is initialised; its labels are those of the training file. "
            "Files of GLUE are read as they are, and CoNLL-U for tokens. Ctrl-C finishes the step "
            "and saves; --resume goes on with the same bits as a run that never stopped.\n\n"
            "cloze needs no head: a label is as likely as its verbalizer is to fill the blank of "
            "the pattern, compared with those of other labels:\n\n"
            "    wengert finetune RUN.h5 --task cloze --pattern '{text} It was [MASK] .' "
            "--verbalizer 0=bad --verbalizer 1=good --train train.tsv --eval dev.tsv --out "
            "tuned.h5\n\n"
            "`wengert eval NEW.h5 --corpus FILE' measures the model on another file of the form, "
            "and writes what it predicts by --predictions.",
        .help_filter = list_records,
    };
    return run_verb(&parser, &wg__tuning_rows, argc, argv);
}
