/* wengert finetune: a pretrained model in, one that does a task out. */
#include <stdio.h>

#include "cli/run.h"

enum { KEY_TASK = WG__KEY_VERB };

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Task:", 1},
    {"task", KEY_TASK, "NAME", 0,
     "classify: tell the labels of texts by BERT; squad: find answers to questions in texts by "
     "BERT; cloze: tell the labels of texts by what GLM fills into a blank",
     0},
    {"train", WG__SET_TRAIN, "FILE", 0,
     "Train on this file: for classify and cloze a text (or two) and its label a line, with tabs "
     "between them; for squad JSON as of SQuAD 1.1",
     0},
    {"eval", WG__SET_EVAL, "FILE", 0, "Measure on this file of the same form", 0},
    {"pattern", WG__SET_PATTERN, "TEXT", 0,
     "cloze: what a text is put into, \"{text} It was [MASK] .\"; of two texts \"{text_a}\" and "
     "\"{text_b}\"",
     0},
    {"verbalizer", WG__SET_VERBALIZER, "LABEL=TEXT", 0,
     "cloze: this word, or these, in the blank mean that label; once for each label", 0},
    {NULL, 0, NULL, 0, "Training:", 3},
    {"epochs", WG__SET_EPOCHS, "X", 0, "Go through the file X times (3)", 0},
    {0},
};

/* What a task cannot guess has null for a default. */
static void check_wanted(struct argp_state *state, const wg__run_arguments *arguments) {
    json_t *defaults = json_loads(arguments->kind->defaults, 0, NULL), *value;
    const char *name;
    json_object_foreach(defaults, name,
                        value) if (json_is_null(value) && !json_object_get(arguments->given, name))
        argp_error(state, "--task %s wants --%s", arguments->kind->name, name);
    json_decref(defaults);
}

static void check_arguments(struct argp_state *state, const wg__run_arguments *arguments) {
    const json_t *given = arguments->given;
    if (!arguments->kind)
        argp_error(state, "--task NAME is missing: what shall the model learn?");
    if (arguments->resume)
        return;
    if (!json_object_get(given, "model"))
        argp_error(state, "RUN.h5 is missing: which model shall be fine-tuned?");
    if (!json_object_get(given, "train") || !json_object_get(given, "eval"))
        argp_error(state, "--train FILE and --eval FILE are both wanted");
    check_wanted(state, arguments);
}

/* "there is no task 'X'; classify, squad are there" */
static const wg__model_kind *find_task(const struct argp_state *state, const char *name) {
    const wg__model_kind *task = wg__task_kind_find(name);
    char list[128];
    size_t length = 0;
    for (int i = 0; wg__task_kind_name(i); i++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "",
                                   wg__task_kind_name(i));
    if (!task)
        argp_error(state, "--task: there is no '%s'; %s are there", name, list);
    return task;
}

static error_t parse(int key, char *text, struct argp_state *state) {
    wg__run_arguments *arguments = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = arguments;
        return 0;
    case KEY_TASK:
        arguments->kind = find_task(state, text);
        return 0;
    case WG__SET_TRAIN:
    case WG__SET_EVAL:
    case WG__SET_EPOCHS:
    case WG__SET_PATTERN:
    case WG__SET_VERBALIZER:
        wg__setting_give(state, key, text, arguments);
        return 0;
    case ARGP_KEY_ARG:
        if (json_object_get(arguments->given, "model"))
            argp_error(state, "one RUN.h5 at a time");
        wg__setting_give(state, WG__SET_MODEL, text, arguments);
        return 0;
    case ARGP_KEY_END:
        check_arguments(state, arguments);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int wg__verb_finetune(int argc, char **argv) {
    static const struct argp_child children[] = {{&wg__run_options, 0, NULL, 0}, {0}};
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "RUN.h5 --task NAME --train FILE --eval FILE --out NEW.h5\n"
                    "--task NAME --resume --out NEW.h5",
        .doc =
            "Fine-tunes a pretrained model for a task and saves it, with all that is needed to go "
            "on.\v"
            "RUN.h5 is a BERT, or for cloze a GLM, of `wengert pretrain' or `wengert convert'. A "
            "head that a BERT does not have begins anew; its labels are those of the training "
            "file. A first line whose last "
            "column is \"label\" is a header. Ctrl-C finishes the step and saves; --resume goes "
            "on, bit for bit as if nothing had happened.\n\n"
            "cloze needs no head: a label is as likely as its verbalizer is to fill the blank of "
            "the pattern, beside those of other labels:\n\n"
            "    wengert finetune glm.h5 --task cloze --pattern '{text} It was [MASK] .' "
            "--verbalizer 0=bad --verbalizer 1=good --train train.tsv --eval dev.tsv --out "
            "tuned.h5\n\n"
            "`wengert eval NEW.h5 --corpus FILE' measures the model on another file of the form, "
            "and writes what it predicts by --predictions.",
        .children = children,
    };
    wg__run_arguments arguments = {.given = json_object()};
    wg__cli_parse(&parser, argc, argv, &arguments);
    int code = wg__run(&arguments);
    wg__run_arguments_clear(&arguments);
    return code;
}
