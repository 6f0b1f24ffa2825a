/* From the name of a verb to the verb: see cli.h. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "base/suggest.h"

typedef struct choice {
    const wg__verb_table *table;
    const wg__verb *verb;
    int argc; /* what follows the verb, the verb itself first */
    char **argv;
} choice;

static const wg__verb *find_verb(const wg__verb_table *table, const char *name) {
    for (const wg__verb *verb = table->verbs; verb->name; verb++)
        if (strcmp(verb->name, name) == 0)
            return verb;
    return NULL;
}

static const char *verb_name(const void *verbs, int index) {
    return ((const wg__verb *)verbs)[index].name;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    choice *chosen = state->input;
    char suggestion[96];
    switch (key) {
    case ARGP_KEY_ARG:
        chosen->verb = find_verb(chosen->table, argument);
        if (!chosen->verb)
            argp_error(state, "there is no %s '%s'%s", chosen->table->noun, argument,
                       wg_suggestion(suggestion, sizeof suggestion, argument, verb_name,
                                     chosen->table->verbs));
        chosen->argc = state->argc - state->next + 1;
        chosen->argv = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "missing %s", chosen->table->noun);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The list of verbs, for --help. argp frees it. */
static char *list_verbs(int key, const char *text, void *input) {
    const wg__verb_table *table = ((const choice *)input)->table;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)text;
    char *list = NULL;
    size_t size;
    FILE *stream = open_memstream(&list, &size);
    if (!stream)
        return NULL;
    fprintf(stream, "%s:\n", table->title);
    for (const wg__verb *verb = table->verbs; verb->name; verb++)
        fprintf(stream, "  %-11s %s\n", verb->name, verb->purpose);
    fprintf(stream, "\n`%s %.*s --help' tells more about each.\n", table->prefix,
            (int)strcspn(table->args_doc, " "), table->args_doc);
    fclose(stream);
    return list;
}

const wg__verb *wg__cli_verb(int *argc, char ***argv, const wg__verb_table *table) {
    const struct argp parser = {
        .parser = parse,
        .args_doc = table->args_doc,
        .doc = table->doc,
        .help_filter = list_verbs,
    };
    choice chosen = {.table = table};
    wg__cli_begin_reading();
    wg__cli_look_at_options(&parser, *argc, *argv, verb_name, table->verbs);
    wg__cli_argp(&parser, *argc, *argv, ARGP_IN_ORDER, &chosen);
    wg__cli_end_reading();
    static char name[64];
    snprintf(name, sizeof name, "%s %s", table->prefix, chosen.verb->name);
    *argc = chosen.argc;
    *argv = chosen.argv;
    (*argv)[0] = name;
    return chosen.verb;
}
