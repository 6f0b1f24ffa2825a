/* Writes a checkpoint with hostile names, for tests/cli/foreign.sh. Where a program prints or draws
 * them without care, they end a line and begin a command of gnuplot's, end a string, run a shell
 * command, or move a terminal's cursor.
 *
 *     foreign_checkpoint RUN.h5 COMMAND
 *
 * COMMAND, a word of at most 15 letters, is what a shell runs if a name is obeyed. */
#include <stdio.h>

#include "io/checkpoint/checkpoint.h"

/* "%s" is COMMAND. A history shows what ends in loss. */
static const char *const columns[] = {
    "a\n!%s\n_loss", "b'\n!%s\n'_loss", "c`%s`_loss",     "d\"`%s`\"_loss",
    "e@%s_loss",     "f\r!%s\r_loss",   "g\033[31m_loss",
};
enum { COLUMNS = sizeof columns / sizeof columns[0], ROWS = 3 };

static int put(wg_checkpoint *file, const char *group, const char *name) {
    static const double values[ROWS] = {1, 2, 3};
    char path[256];
    snprintf(path, sizeof path, "%s/%s", group, name);
    return wg_checkpoint_put_tensor(file, path,
                                    wg_from_array(WG_F64, 1, (int64_t[]){ROWS}, values));
}

int main(int argc, char **argv) {
    wg_checkpoint *file = argc == 3 ? wg_checkpoint_create(argv[1]) : NULL;
    int status = file ? 0 : -1;
    for (int i = -1; status == 0 && i < COLUMNS; i++) {
        char name[64];
        if (i < 0)
            snprintf(name, sizeof name, "step");
        else
            snprintf(name, sizeof name, columns[i], argv[2]);
        if (put(file, "/train/history/training", name) < 0 ||
            put(file, "/train/history/evaluation", name) < 0 ||
            (i >= 0 && put(file, "/model", name) < 0))
            status = -1;
    }
    if (status == 0)
        status = wg_checkpoint_put_text(
            file, "/config",
            "{\"model_type\": \"x\", \"\\u001b[2J\\u009b2J\\nkey\": \"\\u001b[31m\"}");
    if (status == 0)
        status = wg_checkpoint_commit(file);
    if (status < 0)
        fprintf(stderr, "%s\n", wg_error_pending() ? wg_error_pending()->message : "usage");
    return status == 0 ? 0 : 1;
}
