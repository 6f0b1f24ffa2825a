/* The options of a parser, looked at before argp reads the command line: a misspelt one gets a
 * suggestion, and shells are told how a line may go on.
 *
 *     wengert --complete pretrain bert --pre        prints --preset, a tab and its line of --help
 *     wengert --complete pretrain bert --preset ''  prints bert-tiny, bert-mini...
 *
 * `--complete' lets the rest of the line run to where its last verb would be parsed; there the
 * candidates for the last word are printed, one a line, and the process ends. ":files" stands for
 * the names of files, which shells know. The scripts in completion/ ask so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "cli/cli.h"
#include "cli/learners.h"
#include "cli/settings.h"
#include "objectives/objective.h"
#include "tensor/op.h"

/* ---- The options of a parser ---- */

enum { MOST_OPTIONS = 512 };

/* All options of a parser. */
typedef struct option_list {
    int count;
    struct {
        char name[48]; /* "--steps"; "--" for a letter alone */
        int key;
        bool takes;           /* an argument must follow */
        bool hidden;          /* from --help */
        const char *argument; /* "FILE"; NULL: it takes none */
        const char *doc;      /* may be NULL */
    } items[MOST_OPTIONS];
} option_list;

static void list_options(option_list *list, const struct argp *parser) {
    const struct argp_option *original = NULL;
    for (const struct argp_option *o = parser->options;
         o && (o->name || o->key || o->doc || o->group); o++) {
        if (!(o->flags & OPTION_ALIAS))
            original = o;
        if ((!o->name && !o->key) || (o->flags & OPTION_DOC) || list->count == MOST_OPTIONS)
            continue;
        const bool optional = original->flags & OPTION_ARG_OPTIONAL;
        list->items[list->count].key = o->key;
        list->items[list->count].takes = original->arg && !optional;
        list->items[list->count].hidden = o->flags & OPTION_HIDDEN || !o->name;
        list->items[list->count].argument = original->arg;
        list->items[list->count].doc = original->doc;
        snprintf(list->items[list->count++].name, sizeof list->items[0].name, "--%s",
                 o->name ? o->name : "");
    }
    for (const struct argp_child *child = parser->children; child && child->argp; child++)
        list_options(list, child->argp);
}

static const char *option_name(const void *context, int index) {
    const option_list *list = context;
    return index < list->count ? list->items[index].name : NULL;
}

/* The index of the option that a word --NAME or --NAME=VALUE names or begins; -1: there is none. */
static int find_long(const option_list *list, const char *word) {
    const size_t length = strcspn(word, "=");
    int begun = -1;
    for (int i = 0; i < list->count; i++)
        if (strncmp(list->items[i].name, word, length) == 0) {
            if (strlen(list->items[i].name) == length)
                return i;
            begun = i;
        }
    return begun;
}

/* The index of the option of that letter, or -1. */
static int find_letter(const option_list *list, char letter) {
    for (int i = 0; i < list->count; i++)
        if (list->items[i].key == letter)
            return i;
    return -1;
}

static void refuse_option(const struct argp *parser, const char *program, const option_list *list,
                          const char *word) {
    char typed[128], suggestion[96];
    snprintf(typed, sizeof typed, "%s%.*s", word[1] == '-' ? "" : "-", (int)strcspn(word, "="),
             word);
    wg_suggestion(suggestion, sizeof suggestion, typed, option_name, list);
    fprintf(stderr, "%s: unrecognized option '%s'%s\n", program, word, suggestion);
    argp_help(parser, stderr, ARGP_HELP_SEE, (char *)program);
    exit(WG__EXIT_USAGE);
}

/* "-abFILE" is a, b and an option with the argument FILE. The index of the option whose argument is
 * the next word, or -1. */
static int pass_letters(const struct argp *parser, const char *program, const option_list *list,
                        const char *word) {
    for (const char *letter = word + 1; *letter; letter++) {
        const int option = find_letter(list, *letter);
        if (option < 0 && word[2])
            refuse_option(parser, program, list, word);
        if (option < 0 || list->items[option].takes)
            return option >= 0 && !letter[1] ? option : -1;
    }
    return -1;
}

/* ---- How a line may go on ---- */

static bool completes;

void wg__cli_begin_completion(int *argc, char ***argv) {
    if (*argc < 3 || strcmp((*argv)[1], "--complete") != 0)
        return;
    completes = true;
    (*argv)[1] = (*argv)[0];
    ++*argv;
    --*argc;
}

/* Prints a candidate for the word `typed` if it begins with it. */
static void offer(const char *candidate, const char *doc, const char *typed) {
    if (strncmp(candidate, typed, strlen(typed)) != 0)
        return;
    const int length = doc ? (int)strcspn(doc, ".;:(\n") : 0;
    printf(length ? "%s\t%.*s\n" : "%s\n", candidate, length, doc);
}

static const char *objective_name(bool finetunes, int index) {
    const wg_objective *objective;
    for (int i = 0; (objective = wg_objective_at(i)); i++)
        if (objective->finetunes == finetunes && index-- == 0)
            return objective->name;
    return NULL;
}

static const char *pretraining_name(int index) {
    return objective_name(false, index);
}

static const char *task_name(int index) {
    return objective_name(true, index);
}

static const char *model_name(int index) {
    const wg_model_type *type = wg_model_type_at(index);
    return type ? type->name : NULL;
}

static const char *dtype_name(int index) {
    static const char *const names[] = {"f32", "bf16", "f16", "q8_0", "q4_0", NULL};
    return names[index];
}

static const char *pooling_name(int index) {
    static const char *const names[] = {"mean", "cls", NULL};
    return names[index];
}

/* What options and verbs take that is listed somewhere. */
static const struct {
    const char *word; /* an option, or a verb with its prefix */
    const char *(*name)(int index);
    bool or_files;
} values[] = {
    {"--preset", wg_model_preset_name, false},
    {"--objective", pretraining_name, false},
    {"--task", task_name, false},
    {"--kind", wg__learner_name, false},
    {"--tokenizer", wg__learner_name, true},
    {"--dtype", dtype_name, false},
    {"--pooling", pooling_name, false},
    {"wengert pretrain", model_name, true},        /* a corpus may follow */
    {"wengert corpus", wg__corpus_job_name, true}, /* texts may follow */
    {"wengert gradcheck", wg__cli_checked_name, true},
    {"wengert bench ops", wg__cli_op_name, false},
    {"wengert bench train", wg_model_preset_name, false},
    {"wengert bench generate", wg_model_preset_name, true},
};

/* Offers the names of that option or verb. False: they are listed nowhere. */
static bool offer_names(const char *word, const char *typed, const char *model) {
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (strcmp(values[i].word, word) != 0)
            continue;
        const char *name;
        const wg_model_type *type = NULL;
        for (int t = 0; model && (name = model_name(t)); t++)
            if (strcmp(name, model) == 0)
                type = wg_model_type_at(t);
        if (strcmp(word, "--preset") == 0 && type)
            for (const wg_model_preset *preset = type->presets; preset->name; preset++)
                offer(preset->name, NULL, typed);
        else
            for (int n = 0; (name = values[i].name(n)); n++)
                offer(name, NULL, typed);
        if (values[i].or_files)
            puts(":files");
        return true;
    }
    return false;
}

/* Offers the choices of a setting ("--schedule"). False: it is none, or has no choices. */
static bool offer_choices(const char *option, const char *typed) {
    const wg_setting_table *tables[64] = {&wg__training_rows, &wg__text_rows, &wg__tuning_rows};
    const wg_objective *objective;
    int count = 3;
    for (int i = 0; (objective = wg_objective_at(i)) && count < 64; i++)
        tables[count++] = &objective->settings;
    for (int t = 0; t < count; t++)
        for (int r = 0; r < tables[t]->count; r++) {
            const wg_setting *row = &tables[t]->rows[r];
            if (row->kind != WG_SETTING_CHOICE || strcmp(row->name, option + 2) != 0)
                continue;
            for (int i = 0; row->choice(i); i++)
                offer(row->choice(i), NULL, typed);
            return true;
        }
    return false;
}

static void offer_values(const option_list *list, int option, const char *typed,
                         const char *model) {
    static const char *const files[] = {"FILE", "FOLDER", "DIR", ".h5", ".json", "OUT", "PATH"};
    if (offer_names(list->items[option].name, typed, model) ||
        offer_choices(list->items[option].name, typed))
        return;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (strstr(list->items[option].argument, files[i])) {
            puts(":files");
            return;
        }
}

static void offer_options(const option_list *list, const char *typed) {
    for (int i = 0; i < list->count; i++)
        if (!list->items[i].hidden)
            offer(list->items[i].name, list->items[i].doc, typed);
}

/* ---- Looking at a line ---- */

/* A line up to its last word. */
typedef struct line {
    option_list list;
    int awaits;        /* the option whose argument the last word is, or -1 */
    bool only_words;   /* -- stands before it */
    int words;         /* before it that are no options */
    const char *first; /* of these */
} line;

static void look(line *line, const struct argp *parser, int argc, char **argv, bool to_verb) {
    line->awaits = -1;
    for (int i = 1; i < argc - completes; i++) {
        const char *word = argv[i];
        int option = -1;
        line->awaits = -1;
        if (line->only_words || word[0] != '-' || !word[1]) {
            line->first = line->words++ ? line->first : word;
            if (to_verb)
                return;
        } else if (strcmp(word, "--") == 0) {
            line->only_words = true;
        } else if (word[1] != '-') {
            option = pass_letters(parser, argv[0], &line->list, word);
        } else {
            option = find_long(&line->list, word);
            if (option < 0)
                refuse_option(parser, argv[0], &line->list, word);
            if (!line->list.items[option].takes || strchr(word, '='))
                option = -1;
        }
        if (option >= 0 && ++i >= argc - completes)
            line->awaits = option;
    }
}

/* Prints what the last word may be. */
static void complete(const line *line, const char *verb, const char *typed,
                     const char *(*name)(const void *context, int index), const void *context) {
    if (line->awaits >= 0)
        offer_values(&line->list, line->awaits, typed, line->first);
    else if (typed[0] == '-' && !line->only_words)
        offer_options(&line->list, typed);
    else if (name)
        for (int i = 0; name(context, i); i++)
            offer(name(context, i), NULL, typed);
    else if ((line->words > 0 && strcmp(verb, "wengert pretrain") == 0) ||
             !offer_names(verb, typed, NULL))
        puts(":files");
}

void wg__cli_look_at_options(const struct argp *parser, int argc, char **argv,
                             const char *(*name)(const void *context, int index),
                             const void *context) {
    static const struct argp_option usual[] = {
        {"help", '?', NULL, 0, "Give this help list", 0},
        {"usage", 1, NULL, 0, "Give a short usage message", 0},
        {"version", 'V', NULL, 0, "Print program version", 0},
        {0}};
    static line line;
    line.list.count = 0;
    line.only_words = false;
    line.words = 0;
    line.first = NULL;
    list_options(&line.list, parser);
    list_options(&line.list, &(struct argp){.options = usual});
    look(&line, parser, argc, argv, name != NULL);
    if (!completes || (name && line.words > 0)) /* a verb that follows has its own options */
        return;
    complete(&line, argv[0], argc > 1 ? argv[argc - 1] : "", name, context);
    exit(fflush(stdout) == 0 ? 0 : 1);
}
