/* wengert bench checkpoint: how fast a model is written to the disk, and read back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"
#include "cli/output.h"
#include "models/internal.h"

enum { MAX_ROUNDS = 1000, MAX_PATH = 4096 };

typedef struct arguments {
    wg__workload workload;
    const char *folder;
    int64_t rounds;
} arguments;

static const wg_setting options[] = {
    {"model", WG_SETTING_TEXT, WG__AT(workload.model), .word = true,
     .choice = wg__model_preset_name, .missing = "which model? gpt2-124m, or gpt, say"},
    {"preset", WG_SETTING_TEXT, WG__AT(workload.preset), .choice = wg__model_preset_name,
     .argument = "NAME", .help = "The size of the model (default: one of MODEL's)"},
    {"folder", WG_SETTING_TEXT, WG__AT(folder), .argument = "FOLDER",
     .help = "Write below this folder (default: TMPDIR or /tmp); the files are removed again"},
    {"rounds", WG_SETTING_INTEGER, WG__AT(rounds), .low = 1, .high = MAX_ROUNDS, .standard = "5",
     .argument = "N", .help = "How often it is written and read"},
};

typedef struct timing {
    double *written, *read; /* seconds of each round; sorted in the end */
    int64_t rounds;         /* that were run */
    double bytes;           /* of the file */
} timing;

/* Writes and reads in a new folder, which is always removed. A signal ends the loop after a round.
 */
static int time_in(const char *folder, wg_module *module, int64_t rounds, timing *found) {
    char path[MAX_PATH], own[MAX_PATH - sizeof "/model.h5"];
    if ((size_t)snprintf(own, sizeof own, "%s/wengert-checkpoint.XXXXXX", folder) >= sizeof own)
        return wg_fail(WG_ERROR_ARGUMENT, "bench", "the folder's name is too long");
    wg__listen_for_stop();
    if (!mkdtemp(own))
        return wg_fail(WG_ERROR_IO, "bench", "cannot make a folder in %s: %s", folder,
                       strerror(errno));
    snprintf(path, sizeof path, "%s/model.h5", own);
    int status = 0;
    while (status == 0 && found->rounds < rounds && !wg__stop_signal) {
        const double start = wg__now();
        wg_checkpoint *file = wg_checkpoint_create(path);
        if (file)
            wg_checkpoint_put_module(file, "/model", module); /* commit reports its failure */
        status = file ? wg_checkpoint_commit(file) : -1;
        const double middle = wg__now();
        file = status == 0 ? wg_checkpoint_open(path) : NULL;
        status = file ? wg_checkpoint_get_module(file, "/model", module) : -1;
        wg_checkpoint_close(file);
        if (status == 0) {
            found->written[found->rounds] = middle - start;
            found->read[found->rounds++] = wg__now() - middle;
        }
    }
    struct stat about;
    found->bytes = stat(path, &about) == 0 ? (double)about.st_size : 0;
    unlink(path);
    rmdir(own);
    return status;
}

int wg__bench_checkpoint(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .lines = "MODEL",
        .parts = {WG__PART(options, a)},
        .doc = "Writes the parameters of a model to a checkpoint and reads them back, again and "
               "again. MODEL is a kind or a preset, as of `wengert bench train'. Prints one line "
               "of JSON.\v"
               "Times are medians, MB 10^6 bytes. Writing ends when the file is on the disk "
               "(fsync) under its name; reading, with all checksums, finds the file in the "
               "system's cache.",
    };
    const char *temporary = getenv("TMPDIR");
    wg__cli_read(&usage, argc, argv);
    if (!a.folder)
        a.folder = temporary && *temporary ? temporary : "/tmp";
    wg__workload *w = &a.workload;
    timing found = {.written = wg__cli_calloc((size_t)a.rounds, sizeof *found.written),
                    .read = wg__cli_calloc((size_t)a.rounds, sizeof *found.read)};
    int status = wg__workload_begin(w);
    if (status == 0) {
        status = time_in(a.folder, w->module, a.rounds, &found);
        if (status == 0 && found.rounds > 0) {
            const double written = wg__median(found.rounds, found.written),
                         read = wg__median(found.rounds, found.read);
            wg__print_json(0, json_pack("{s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f}", "preset",
                                        w->preset, "parameters",
                                        (json_int_t)wg_module_parameter_count(w->module), "rounds",
                                        (json_int_t)found.rounds, "mb", 1e-6 * found.bytes,
                                        "write_ms", 1e3 * written, "write_mb_per_s",
                                        1e-6 * found.bytes / written, "read_ms", 1e3 * read,
                                        "read_mb_per_s", 1e-6 * found.bytes / read));
        }
        wg__workload_end(w);
    }
    free(found.written);
    free(found.read);
    return wg__cli_end(status);
}
