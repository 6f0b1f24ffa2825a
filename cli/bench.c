/* wengert bench WHAT: how fast the library is on this machine. */
#include "cli/bench.h"

#include <stdlib.h>
#include <time.h>

#include "cli/cli.h"

/* In the order of --help. */
static const wg__verb benches[] = {
    {"train", "the steps of a training beside sgemm peak", wg__bench_train},
    {"generate", "writing text, token by token, beside memory bandwidth", wg__bench_generate},
    {"ops", "each op beside memory bandwidth and sgemm peak", wg__bench_ops},
    {"gemm", "matrix products beside sgemm peak", wg__bench_gemm},
    {"data", "tokenizers and what builds batches", wg__bench_data},
    {"checkpoint", "writing and reading a model", wg__bench_checkpoint},
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

int wg__verb_bench(int argc, char **argv) {
    static const wg__verb_table table = {
        .prefix = "wengert bench",
        .noun = "bench",
        .title = "Benches",
        .args_doc = "BENCH [ARGUMENT...]",
        .doc = "Times the library on this machine, beside what the machine can do at best.\v",
        .verbs = benches,
    };
    return wg__cli_dispatch(argc, argv, &table);
}
