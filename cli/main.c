/* wengert VERB ARGUMENT...: finds the verb and runs it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "config.h"

/* In the order of `wengert --help`. */
static const wg__verb verbs[] = {
    {"pretrain", "train a model on plain text", wg__verb_pretrain},
    {"eval", "measure a trained model on text", wg__verb_eval},
    {"fill", "fill each [MASK] of a text", wg__verb_fill},
    {"info", "tell what a checkpoint holds", wg__verb_info},
    {"plot", "draw the history of a training", wg__verb_plot},
    {"tokenizer", "learn a vocabulary, text to ids and back", wg__verb_tokenizer},
    {"gradcheck", "check the gradients of ops", wg__verb_gradcheck},
    {"bench", "time the library beside the machine's own speed", wg__verb_bench},
    {NULL, NULL, NULL},
};

/* Read by argp, so it is not hidden. */
WG_API const char *argp_program_version = PACKAGE_STRING;

typedef struct command {
    const wg__verb *verb;
    int argc; /* what follows the verb, the verb itself first */
    char **argv;
} command;

static const wg__verb *find_verb(const char *name) {
    for (const wg__verb *verb = verbs; verb->name; verb++)
        if (strcmp(verb->name, name) == 0)
            return verb;
    return NULL;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    command *chosen = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        chosen->verb = find_verb(argument);
        if (!chosen->verb)
            argp_error(state, "there is no verb '%s'", argument);
        chosen->argc = state->argc - state->next + 1;
        chosen->argv = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "what shall be done? A verb is wanted");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The list of verbs, for --help. argp frees it. */
static char *list_verbs(int key, const char *text, void *input) {
    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)text;
    char *list = NULL;
    size_t size;
    FILE *stream = open_memstream(&list, &size);
    if (!stream)
        return NULL;
    fputs("Verbs:\n", stream);
    for (const wg__verb *verb = verbs; verb->name; verb++)
        fprintf(stream, "  %-11s %s\n", verb->name, verb->purpose);
    fputs("\n`wengert VERB --help' tells more about each.", stream);
    fclose(stream);
    return list;
}

/* Results that could not be written are a failure: a full disk, a closed pipe. */
static int finish_output(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    int failed = wg__cli_fail("cannot write the results: %s", strerror(errno));
    return code ? code : failed;
}

int main(int argc, char **argv) {
    static const struct argp parser = {
        .parser = parse,
        .args_doc = "VERB [ARGUMENT...]",
        .doc = "Trains and runs transformers on the CPU, and checks gradients.\v",
        .help_filter = list_verbs,
    };
    command chosen = {0};
    argv[0] = "wengert"; /* also under the name of a build's wrapper */
    argp_err_exit_status = 2;
    argp_parse(&parser, argc, argv, ARGP_IN_ORDER, NULL, &chosen);

    char name[64];
    snprintf(name, sizeof name, "wengert %s", chosen.verb->name);
    chosen.argv[0] = name;
    return finish_output(chosen.verb->run(chosen.argc, chosen.argv));
}
