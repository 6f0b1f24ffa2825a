/* wengert pretrain and wengert finetune: parsing and checking the arguments. run.c makes the run.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run.h"
#include "cli/decoding.h"
#include "tensor/kernels.h"
#include "data/internal.h"
#include "models/internal.h"

static const char *model_name(int index) {
    const wg_model_type *type = wg_model_type_at(index);
    return type ? type->name : NULL;
}

static wg__run run; /* of the verb that the process runs */

/* The objectives of `pretrain', or the tasks of `finetune'. */
static const char *objective_name(int index) {
    const wg_objective *objective;
    for (int i = 0; (objective = wg_objective_at(i)); i++)
        if (objective->finetunes == run.finetunes && index-- == 0)
            return objective->name;
    return NULL;
}

#define RUN(member) offsetof(wg__run, member)

static const wg_setting pretrain_rows[] = {
    {"model", WG_SETTING_TEXT, RUN(model_name), .word = true, .choice = model_name},
    {"objective", WG_SETTING_TEXT, RUN(objective_name), .choice = objective_name,
     .argument = "NAME", .help = "Train the model by this objective instead of its usual one"},
    {"show-batch", WG_SETTING_FLAG, RUN(show_batch),
     .help = "Print the first batch as tables of tokens, positions, what they predict and what "
             "they attend to, and stop (blank-infilling)"},
};

static const wg_setting finetune_rows[] = {
    {"task", WG_SETTING_TEXT, RUN(objective_name), .choice = objective_name, .argument = "NAME",
     .help = "The task to learn: one of the tasks below"},
};

static const wg_setting run_rows[] = {
    {"timeout", WG_SETTING_NUMBER, RUN(timeout), .high = 1e9, .standard = "600",
     .argument = "SECONDS",
     .help = "Under mpirun: end the run if a rank is not heard of for so long; 0: wait for ever"},
    {"settings", WG_SETTING_TEXT, RUN(file), .argument = "FILE.json",
     .help =
         "Read options from this file, {\"steps\": 200, \"lr\": 0.001}; the command line rules"},
    {"out", WG_SETTING_TEXT, RUN(out), .argument = "RUN.h5", .help = "The checkpoint to write"},
    {"resume", WG_SETTING_FLAG, RUN(resume),
     .help = "Go on with the run that RUN.h5 holds; settings that are not given again stay as they "
             "were"},
    {"overwrite", WG_SETTING_FLAG, RUN(overwrite),
     .help = "Begin anew though RUN.h5 exists, which is lost"},
    {"log", WG_SETTING_TEXT, RUN(log), .argument = "FILE",
     .help = "Append one JSON object for each step"},
    {"tensorboard", WG_SETTING_TEXT, RUN(tensorboard), .argument = "FOLDER",
     .help = "Write an event file for TensorBoard into this folder: `tensorboard --logdir FOLDER' "
             "shows the curves; a resumed run adds a file"},
    {"dry-run", WG_SETTING_FLAG, RUN(dry_run),
     .help =
         "Write nothing: make a few steps, and print the memory and time that the run would take"},
    WG__ROWS_PROFILE(wg__run),
    WG__ROW_JSON(wg__run),
};

static const wg_setting_table pretrain_options = WG__OPTIONS(pretrain_rows, wg__run),
                              finetune_options = WG__OPTIONS(finetune_rows, wg__run),
                              run_options = WG__OPTIONS(run_rows, wg__run);

static bool given(const wg__run *r, const wg_setting_table *table, const void *values,
                  const char *name) {
    return wg__settings_given(&r->settings.all,
                              (const char *)values + wg__settings_find(table, name)->offset);
}

static void check_run(const wg__run *r) {
    static const char *const names[] = {"lora-alpha", "lora-targets", "lora-dropout"};
    const wg__training_settings *s = &r->settings.training;
    for (size_t i = 0; !r->resume && s->lora == 0 && i < sizeof names / sizeof names[0]; i++)
        if (given(r, &wg__training_rows, s, names[i]))
            wg__cli_misuse("--%s is of LoRA; name its rank, too: --lora 8", names[i]);
    if (!r->resume && s->lora && !r->finetunes && !r->settings.text.init)
        wg__cli_misuse("--lora changes a model that was trained before; name it by --init");
    if (!r->resume && s->lora && r->settings.text.extend_vocab)
        wg__cli_misuse("--lora and --extend-vocab exclude each other: the vectors of new tokens "
                       "would not be trained");
    if (r->show_batch && r->resume)
        wg__cli_misuse("--show-batch shows the first batch of a new run, not of a resumed one");
    if (r->dry_run && r->resume)
        wg__cli_misuse("--dry-run is for a run that begins, not for one that is resumed");
    if (!r->out && !r->show_batch && !r->dry_run)
        wg__cli_misuse("--out RUN.h5 is missing: where shall the checkpoint go?");
    if (r->resume && r->overwrite)
        wg__cli_misuse("--resume and --overwrite exclude each other");
}

static void check_pretrain(const wg__run *r) {
    static const char *const rivals[] = {"preset", "config", "tokenizer", "vocab-size", "alphabet"};
    const wg__text_settings *text = &r->settings.text;
    if (!r->resume && text->corpus.count == 0)
        wg__cli_misuse("--corpus FILE is missing: what shall the model read?");
    for (size_t i = 0; text->init && i < sizeof rivals / sizeof rivals[0]; i++)
        if (given(r, &wg__text_rows, text, rivals[i])) /* the checkpoint of --init has these */
            wg__cli_misuse("--init and --%s exclude each other", rivals[i]);
    if (r->objective->data.text == WG_TEXT_PAIRS && text->eval && !text->eval_target &&
        !wg__dataset_is_token_file(text->eval))
        wg__cli_misuse("--eval takes SOURCE and TARGET, or a token file, for %s", r->type->name);
    check_run(r);
}

static void check_finetune(const wg__run *r) {
    const wg__tuning_settings *s = &r->settings.tuning;
    const wg_setting_table *own = &r->objective->settings;
    check_run(r);
    if (r->resume)
        return;
    if (!s->model)
        wg__cli_misuse("RUN.h5 is missing: which model shall be fine-tuned?");
    if (!s->train || !s->eval)
        wg__cli_misuse("--train FILE and --eval FILE are both wanted");
    for (int i = 0; i < own->count; i++)
        if (own->rows[i].help && !own->rows[i].standard &&
            !given(r, own, r->settings.objective, own->rows[i].name))
            wg__cli_misuse("--task %s wants --%s", r->objective->name, own->rows[i].name);
}

/* The text of the row of that name in a line (NULL: its first word); NULL: not given. */
static const char *text_of(const wg__line *line, const char *name) {
    const char *text = NULL;
    for (int i = 0; i < line->count; i++) {
        const wg_setting *row = line->items[i].row;
        if (!name && !row)
            return line->items[i].text;
        if (name && row && strcmp(row->name, name) == 0)
            text = line->items[i].text ? line->items[i].text : "";
    }
    return text;
}

static void choose_objective(wg__run *r, const char *option, const char *name) {
    char list[256], suggestion[96];
    r->objective = wg_objective_find(name);
    wg_error_clear();
    if (r->objective && r->objective->finetunes && !r->finetunes)
        wg__cli_misuse("--objective: %s is a task: `wengert finetune RUN.h5 --task %s'", name,
                       name);
    if (!r->objective || r->objective->finetunes != r->finetunes)
        wg__cli_misuse("--%s: there is no '%s'; %s are there%s", option, name,
                       wg__cli_names(list, sizeof list, objective_name),
                       wg__cli_suggestion(suggestion, sizeof suggestion, name, objective_name));
}

/* The model and its objective: by --objective, by the resumed run, or the usual one. */
static void choose_pretraining(wg__run *r, wg__line *line) {
    char models[128], suggestion[96];
    const char *model = text_of(line, NULL), *name = text_of(line, "objective"),
               *out = text_of(line, "out");
    wg__cli_names(models, sizeof models, model_name);
    if (!model) {
        wg__cli_assign(line, &r->settings.all); /* other mistakes of the line come first */
        wg__cli_misuse("which model? %s are there", models);
    }
    r->type = wg_model_type_find(model);
    wg_error_clear();
    if (!r->type)
        wg__cli_misuse("there is no model '%s'; %s are there%s", model, models,
                       wg__cli_suggestion(suggestion, sizeof suggestion, model, model_name));
    r->objective = wg_objective_find(r->type->objectives);
    if (name) {
        choose_objective(r, "objective", name);
    } else if (out && text_of(line, "resume")) { /* a missing file is an error later */
        const wg_objective *begun = wg_objective_of(out);
        wg_error_clear();
        if (begun && !begun->finetunes && (begun->shapes & r->type->shape))
            r->objective = begun;
    }
    if (!(r->objective->shapes & r->type->shape))
        wg__cli_misuse("--objective %s is not for %s, which %s train%s", r->objective->name,
                       r->type->name, r->type->objectives,
                       strchr(r->type->objectives, ',') ? "" : "s");
}

/* Refuses keys of a table that belongs to another verb. */
static int check_verb(const wg__run *r, wg_config *file, const wg_setting_table *others) {
    for (int i = 0; i < others->count; i++) {
        const char *name = others->rows[i].name;
        bool known = !wg__config_has(file, name);
        for (int p = 0; p < r->settings.all.count; p++)
            known |= wg__settings_find(r->settings.all.parts[p].table, name) != NULL;
        if (!known)
            return wg_fail(WG_ERROR_ARGUMENT, r->file,
                           "\"%s\" is a setting of `wengert %s', not of `wengert %s'", name,
                           r->finetunes ? "pretrain" : "finetune",
                           r->finetunes ? "finetune" : "pretrain");
    }
    return 0;
}

static int read_file(wg__run *r) {
    wg_config *file = wg__config_load(r->file);
    const wg_objective *objective;
    int status = wg__settings_set_object(&r->settings.all, file, WG_SETTING_OF_FILE);
    if (status == 0)
        status = check_verb(r, file, r->finetunes ? &wg__text_rows : &wg__tuning_rows);
    for (int i = 0; status == 0 && (objective = wg_objective_at(i)); i++)
        status = check_verb(r, file, &objective->settings);
    if (status == 0)
        status = wg__config_check(file, 0, NULL);
    wg__config_free(file);
    return status;
}

/* Applies the defaults that a model or objective sets for its runs: {"schedule": "cosine"}. NULL:
 * none. */
static void apply_defaults(wg__run *r, const char *json) {
    wg_config *record = json ? wg__config_parse(json, "record") : NULL;
    if (record)
        wg__settings_set_object(&r->settings.all, record, WG_SETTING_RECORD);
    wg__config_free(record);
}

/* Appends "; gpt 0.1" for a record whose runs have another default. */
static void print_record(FILE *stream, const char *name, const char *json, const char *setting,
                         bool *any) {
    json_t *object = json ? json_loads(json, 0, NULL) : NULL;
    const json_t *value = json_object_get(object, setting);
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6)) : NULL;
    const bool quoted = text && *text == '"';
    if (text)
        fprintf(stream, "%s%s %.*s", *any ? "; " : " (", name, (int)strlen(text) - 2 * quoted,
                text + quoted);
    *any |= text != NULL;
    free(text);
    json_decref(object);
}

static void print_records(const wg_setting *row, FILE *stream, bool *any) {
    const wg_model_type *type;
    const wg_objective *objective;
    for (int i = 0; !run.finetunes && (type = wg_model_type_at(i)); i++)
        print_record(stream, type->name, type->training, row->name, any);
    for (int i = 0; (objective = wg_objective_at(i)); i++)
        if (objective->finetunes == run.finetunes)
            print_record(stream, objective->name, objective->defaults, row->name, any);
    for (int t = 0; row->choice == wg__model_preset_name && (type = wg_model_type_at(t)); t++)
        for (int i = 0; type->presets[i].name; i++)
            fprintf(stream, "%s%s%s",
                    i > 0   ? ", "
                    : t > 0 ? "; "
                            : ": ",
                    type->presets[i].name, i == 0 ? " (the default)" : "");
}

static void list_objectives(void) {
    const wg_model_type *type;
    const wg_objective *objective;
    puts(run.finetunes ? "Tasks:" : "Models:");
    for (int i = 0; !run.finetunes && (type = wg_model_type_at(i)); i++)
        printf("  %-11s %s; %s\n", type->name, type->title, type->objectives);
    if (!run.finetunes)
        puts("\nObjectives:");
    for (int i = 0; (objective = wg_objective_at(i)); i++)
        if (objective->finetunes == run.finetunes)
            printf("  %-15s %s\n", objective->name, objective->title);
}

/* Reads the line. MODEL, --objective and --task come first, because they decide about the rows. */
static void read_line(wg__run *r, const wg__usage *usage, int argc, char **argv) {
    wg__run_settings *s = &r->settings;
    const wg_objective *objective;
    int status = 0;
    wg__cli_begin_reading();
    status |= wg__settings_add(&s->all, r->finetunes ? &finetune_options : &pretrain_options, r);
    status |= r->finetunes ? wg__settings_add(&s->all, &wg__tuning_rows, &s->tuning)
                           : wg__settings_add(&s->all, &wg__text_rows, &s->text);
    for (int i = 0; (objective = wg_objective_at(i)); i++)
        if (objective->finetunes == r->finetunes && objective->settings.count > 0)
            status |= wg__settings_add(&s->all, &objective->settings, NULL);
    status |= wg__settings_add(&s->all, &wg__training_rows, &s->training);
    status |= wg__settings_add(&s->all, &run_options, r);
    status |= wg__settings_add(&s->all, &wg__threads_options, &wg__threads_given);
    if (status < 0)
        wg__cli_leave_reading();
    s->all.user = r->finetunes ? "a line without --task" : "a line without MODEL";
    wg__line line = wg__cli_split(usage, &s->all, argc, argv);
    if (!r->finetunes)
        choose_pretraining(r, &line);
    else if (text_of(&line, "task"))
        choose_objective(r, "task", text_of(&line, "task"));
    if (!r->objective) { /* other errors of the line come first */
        wg__cli_assign(&line, &s->all);
        wg__cli_misuse("--task NAME is missing: what shall the model learn?");
    }
    /* The word behind --eval SOURCE is its target; other words belong to --corpus, as a shell makes
     * several of `--corpus *.txt'. */
    const bool takes_pairs = r->objective->data.text == WG_TEXT_PAIRS;
    for (int i = 1; takes_pairs && i < line.count; i++) {
        const wg_setting *before = line.items[i - 1].row;
        if (before && strcmp(before->name, "eval") == 0 && !line.items[i].row &&
            !wg__dataset_is_token_file(line.items[i - 1].text))
            line.items[i].row = wg__settings_find(&wg__text_rows, "eval-target");
    }
    s->all.user = r->type ? r->type->name : r->objective->name;
    s->objective = wg__cli_calloc(1, r->objective->settings.size);
    if (r->objective->settings.count > 0 &&
        wg__settings_add(&s->all, &r->objective->settings, s->objective) < 0)
        wg__cli_leave_reading();
    wg__cli_assign(&line, &s->all);
    if (r->file && read_file(r) < 0)
        wg__cli_leave_reading();
    (r->finetunes ? check_finetune : check_pretrain)(r);
    wg__cli_end_reading();
    wg__training_command(r->objective, r->type, r->command, sizeof r->command);
}

static const wg__usage pretrain_usage = {
    .lines = "MODEL --corpus FILE... --out RUN.h5\nMODEL --resume --out RUN.h5",
    .doc =
        "Pretrains a model on plain text and saves it, with all that is needed to go on.\v"
        "The text is prose as in a book, or one sentence a line with blank lines between documents "
        "(masked-lm, blank-infilling); any text as it is, with lines \"<|endoftext|>\" between "
        "documents where it has several (causal-lm, span-corruption); or two files, whose lines "
        "are translations of each other (translation), with a shared vocabulary. Ctrl-C finishes "
        "the step and saves; --resume goes on with the same bits as an uninterrupted run.\n\n"
        "At the end the loss on held-out text is printed, beside the loss of predicting each word "
        "or token by its frequency.",
    .list = list_objectives,
    .print_more = print_records,
};

static const wg__usage finetune_usage = {
    .lines = "RUN.h5 --task NAME --train FILE --eval FILE --out NEW.h5\n"
             "--task NAME --resume --out NEW.h5",
    .doc =
        "Fine-tunes a pretrained model for a task and saves it, with all that is needed to go on.\v"
        "RUN.h5 is a checkpoint of `wengert pretrain' or `wengert convert'. A head that the "
        "checkpoint does not have is initialised; its labels are taken from the training file. "
        "Files of GLUE are read as they are, and CoNLL-U for tokens. Ctrl-C finishes the step and "
        "saves; --resume goes on with the same bits as a run that never stopped.\n\n"
        "cloze needs no head: a label is as likely as its verbalizer is to fill the blank of the "
        "pattern, compared with the verbalizers of other labels:\n\n"
        "    wengert finetune RUN.h5 --task cloze --pattern '{text} It was [MASK] .' --verbalizer "
        "0=bad --verbalizer 1=good --train train.tsv --eval dev.tsv --out tuned.h5\n\n"
        "`wengert eval NEW.h5 --corpus FILE' measures the model on another file of the form, and "
        "writes what it predicts by --predictions.",
    .list = list_objectives,
    .print_more = print_records,
};

int wg__verb_train(int argc, char **argv) {
    wg__run *r = &run;
    r->finetunes = strcmp(argv[0], "wengert finetune") == 0;
    read_line(r, r->finetunes ? &finetune_usage : &pretrain_usage, argc, argv);
    bool *deterministic = &r->settings.training.deterministic;
    wg__cli_use_threads((int)wg__threads_given);
    wg__group_set_timeout(wg__cli_group, 0); /* one rank may take long to read its text */
    const bool writes = !r->show_batch && !r->dry_run && wg__cli_leads();
    int code = writes ? wg__run_check_output(r) : 0;
    if (code == 0 && r->resume && wg__run_read_note(r) < 0)
        code = EXIT_FAILURE;
    /* A run that began in deterministic mode, by option or environment, is resumed in this mode. */
    if (code == 0 && *deterministic && wg_set_deterministic(true) < 0)
        code = wg__cli_fail_pending();
    if (code == 0 && !*deterministic && wg_is_deterministic()) {
        *deterministic = true;
        wg__settings_decide(&r->settings.all, deterministic);
    }
    code = wg__cli_check(code);
    /* Defaults of the model, its preset and the objective. An unknown preset is refused when the
     * model is made. */
    const wg__text_settings *text = &r->settings.text;
    const wg_model_preset *preset = NULL;
    if (code == 0 && r->type && !r->resume && !text->config && !text->init)
        preset = wg__model_preset_find(r->type, text->preset);
    wg_error_clear();
    if (code == 0) {
        apply_defaults(r, r->type ? r->type->training : NULL);
        apply_defaults(r, preset ? preset->training : NULL);
        apply_defaults(r, r->objective->defaults);
        code = wg_error_pending() ? wg__cli_fail_pending() : 0;
    }
    if (code == 0) {
        wg__cli_work_begun = true;
        code = r->dry_run || r->show_batch ? wg__run_preview(r) : wg__run_train(r);
    }
    wg__run_clear(r);
    return code;
}
