/* wengert average: the mean of the weights of several checkpoints. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/output.h"
#include "io/checkpoint/checkpoint.h"
#include "base/error.h"

enum { KEY_OUT = WG__KEY_OWN, KEY_OVERWRITE };

typedef struct arguments {
    const char **runs; /* room for all arguments */
    int count;
    const char *out;
    bool overwrite;
} arguments;

static const struct argp_option options[] = {
    {"out", KEY_OUT, "MODEL.h5", 0, "The checkpoint to write", 0},
    {"overwrite", KEY_OVERWRITE, NULL, 0, "Overwrite an existing MODEL.h5", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case KEY_OUT:
        a->out = text;
        return 0;
    case KEY_OVERWRITE:
        a->overwrite = true;
        return 0;
    case ARGP_KEY_ARG:
        a->runs[a->count++] = text;
        return 0;
    case ARGP_KEY_END:
        if (a->count == 0)
            argp_error(state, "missing RUN.h5");
        if (!a->out)
            argp_error(state, "missing --out MODEL.h5");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int wg__verb_average(int argc, char **argv) {
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "RUN.h5... --out MODEL.h5",
        .doc =
            "Averages the weights of several checkpoints of one run.\v"
            "Vaswani et al. 2017 averaged the last 5 checkpoints of a run; "
            "`wengert pretrain --keep-every N' keeps a checkpoint every N steps. Training cannot "
            "be resumed from the average.",
    };
    arguments a = {.runs = wg__cli_calloc((size_t)argc, sizeof *a.runs)};
    wg__cli_parse(&parser, argc, argv, &a);
    int code = 0;
    if (!a.overwrite && access(a.out, F_OK) == 0)
        code = wg__cli_fail("%s exists; --overwrite replaces it", a.out);
    else if (wg_checkpoint_average_files(a.count, a.runs, a.out) < 0)
        code = wg__cli_fail_pending();
    free(a.runs);
    return code;
}
