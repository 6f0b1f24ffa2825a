/* wengert bench WHAT: how fast the library is on this machine. */
#include "bench/bench.h"

/* In the order of --help. */
static const wg__verb benches[] = {
    {"train", "the steps of a training beside sgemm peak", wg__bench_train, false},
    {"generate", "writing text, token by token, beside memory bandwidth", wg__bench_generate,
     false},
    {"ops", "each op beside memory bandwidth and sgemm peak", wg__bench_ops, false},
    {"gemm", "matrix products beside sgemm peak", wg__bench_gemm, false},
    {"attention", "attention over long sequences beside sgemm peak", wg__bench_attention, false},
    {"data", "tokenizers and what builds batches", wg__bench_data, false},
    {"checkpoint", "writing and reading a model", wg__bench_checkpoint, false},
    {NULL, NULL, NULL, false},
};

int wg__verb_bench(int argc, char **argv) {
    static const wg__verb_table table = {
        .prefix = "wengert bench",
        .noun = "bench",
        .title = "Benches",
        .args_doc = "BENCH [ARGUMENT...]",
        .doc = "Times the library on this machine, beside the machine's best speed.\v",
        .verbs = benches,
    };
    const wg__verb *bench = wg__cli_verb(&argc, &argv, &table);
    return bench->run(argc, argv);
}
