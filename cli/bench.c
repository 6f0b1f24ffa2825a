/* wengert bench WHAT: how fast the library is on this machine. */
#include "cli/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"

/* In the order of --help. */
static const wg__verb benches[] = {
    {"ops", "each op beside memory bandwidth and sgemm peak", wg__bench_ops},
    {NULL, NULL, NULL},
};

double wg__seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double wg__median(int64_t count, double *figures) {
    qsort(figures, (size_t)count, sizeof *figures, by_value);
    return figures[count / 2];
}

/* ---- Which bench ---- */

typedef struct command {
    const wg__verb *bench;
    int argc;
    char **argv;
} command;

static const wg__verb *find_bench(const char *name) {
    for (const wg__verb *bench = benches; bench->name; bench++)
        if (strcmp(bench->name, name) == 0)
            return bench;
    return NULL;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    command *chosen = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        chosen->bench = find_bench(argument);
        if (!chosen->bench)
            argp_error(state, "there is no bench '%s'", argument);
        chosen->argc = state->argc - state->next + 1;
        chosen->argv = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "what shall be timed? A bench is wanted");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The list of benches, for --help. argp frees it. */
static char *list_benches(int key, const char *text, void *input) {
    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)text;
    char *list = NULL;
    size_t size;
    FILE *stream = open_memstream(&list, &size);
    if (!stream)
        return NULL;
    fputs("Benches:\n", stream);
    for (const wg__verb *bench = benches; bench->name; bench++)
        fprintf(stream, "  %-11s %s\n", bench->name, bench->purpose);
    fputs("\n`wengert bench NAME --help' tells more about each.", stream);
    fclose(stream);
    return list;
}

int wg__verb_bench(int argc, char **argv) {
    static const struct argp parser = {
        .parser = parse,
        .args_doc = "BENCH [ARGUMENT...]",
        .doc = "Times the library on this machine, beside what the machine can do at best.\v",
        .help_filter = list_benches,
    };
    command chosen = {0};
    argp_err_exit_status = 2;
    argp_parse(&parser, argc, argv, ARGP_IN_ORDER, NULL, &chosen);
    char name[64];
    snprintf(name, sizeof name, "wengert bench %s", chosen.bench->name);
    chosen.argv[0] = name;
    return chosen.bench->run(chosen.argc, chosen.argv);
}
