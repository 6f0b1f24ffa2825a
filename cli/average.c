/* wengert average: the mean of the weights of several checkpoints. */
#include <unistd.h>

#include "cli/options.h"
#include "io/checkpoint/checkpoint.h"

typedef struct arguments {
    wg_setting_list runs;
    const char *out;
    bool overwrite;
} arguments;

static const wg_setting options[] = {
    {"runs", WG_SETTING_TEXTS, WG__AT(runs), .word = true, .missing = "missing RUN.h5",
     .argument = "RUN.h5"},
    {"out", WG_SETTING_TEXT, WG__AT(out), .missing = "missing --out MODEL.h5",
     .argument = "MODEL.h5", .help = "The checkpoint to write"},
    {"overwrite", WG_SETTING_FLAG, WG__AT(overwrite), .help = "Overwrite an existing MODEL.h5"},
};

int wg__verb_average(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .lines = "RUN.h5... --out MODEL.h5",
        .doc = "Averages the weights of several checkpoints of a run.\v"
               "Vaswani et al. 2017 averaged the last 5 checkpoints of a run; `wengert pretrain "
               "--keep-every N' keeps a checkpoint every N steps. Training cannot be resumed from "
               "the average.",
        .parts = {WG__PART(options, a)},
    };
    wg__cli_read(&usage, argc, argv);
    if (!a.overwrite && access(a.out, F_OK) == 0)
        return wg__cli_fail("%s exists; --overwrite replaces it", a.out);
    return wg_checkpoint_average_files((int)a.runs.count, a.runs.items, a.out) < 0
               ? wg__cli_fail_pending()
               : 0;
}
