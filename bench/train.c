/* wengert bench train: the steps of a training beside the machine's sgemm peak. */
#include <stdlib.h>
#include <sys/resource.h>

#include "bench/bench.h"
#include "cli/output.h"
#include "base/alloc.h"
#include "models/internal.h"
#include "tensor/internal.h"

enum { MAX_SIZE = 1 << 24, MAX_STEPS = 1000000, WARM_UP = 2 };

#define WORKLOAD(member) offsetof(wg__workload, member)

static const wg_setting workload_rows[] = {
    {"model", WG_SETTING_TEXT, WORKLOAD(model), .word = true, .choice = wg__model_preset_name,
     .missing = "which model? bert-mini, or gpt, say"},
    {"preset", WG_SETTING_TEXT, WORKLOAD(preset), .choice = wg__model_preset_name,
     .argument = "NAME", .help = "The size of the model (default: one of MODEL's)"},
    {"batch", WG_SETTING_INTEGER, WORKLOAD(batch), .low = 1, .high = MAX_SIZE, .argument = "N",
     .help = "Sequences in a batch (default: the preset's)"},
    {"seq", WG_SETTING_INTEGER, WORKLOAD(sequence), .low = 1, .high = MAX_SIZE, .argument = "N",
     .help = "Tokens in a sequence; of encoder-decoders in source and target each (default: the "
             "preset's)"},
    {"vocab", WG_SETTING_INTEGER, WORKLOAD(vocabulary), .low = 8, .high = MAX_SIZE, .argument = "N",
     .help = "Tokens in the vocabulary (default: the preset's)"},
    {"dtype", WG_SETTING_CHOICE, WORKLOAD(bf16), .choice = wg__product_dtype_name,
     .standard = "\"f32\"", .argument = "TYPE",
     .help = "f32, or bf16: mixed precision, as of `wengert pretrain'"},
    {"recompute", WG_SETTING_FLAG, WORKLOAD(recompute),
     .help = "Keep of each layer what goes into it alone, and run it once more in backward"},
};

const wg_setting_table wg__workload_options = WG__OPTIONS(workload_rows, wg__workload);

typedef struct arguments {
    wg__workload workload;
    int64_t steps;
    wg__profiling profiling;
} arguments;

static const wg_setting options[] = {
    {"steps", WG_SETTING_INTEGER, WG__AT(steps), .low = 1, .high = MAX_STEPS, .standard = "7",
     .argument = "N", .help = "Steps that are timed, after two that warm up"},
    WG__ROWS_PROFILE(arguments),
};

/* The timed steps. */
typedef struct timing {
    double *seconds;      /* of each step; sorted in the end */
    double loss;          /* of the last one */
    double product_flops; /* a step */
    int64_t allocations;  /* that the system was asked for by all of them */
    double max_rss;       /* in bytes, before the peak is measured again */
    double sgemm_flops;
} timing;

static int time_steps(const arguments *a, wg__workload *w, timing *found) {
    for (int i = 0; i < WARM_UP; i++)
        wg__workload_step(w);
    if (wg__profiling_begin(&a->profiling) < 0)
        return -1;
    const int64_t allocations = wg_alloc_get_stats().system_allocations;
    const double flops = wg__counted_product_flops();
    for (int64_t i = 0; i < a->steps && !wg_error_pending(); i++) {
        const double start = wg__now();
        found->loss = wg__workload_step(w);
        found->seconds[i] = wg__now() - start;
    }
    found->product_flops = (wg__counted_product_flops() - flops) / (double)a->steps;
    found->allocations = wg_alloc_get_stats().system_allocations - allocations;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    found->max_rss = 1024 * (double)usage.ru_maxrss;
    return wg_error_pending() ? -1 : wg__profiling_end(&a->profiling);
}

int wg__bench_train(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .lines = "MODEL",
        .doc = "Times training steps of a model on random tokens: forward, backward, AdamW, "
               "without dropout. MODEL is a kind, gpt, llama, bert, modernbert, roberta, glm, "
               "transformer, t5 or mlp, or one of its presets, as in `wengert bench train "
               "bert-mini'. Prints one line of JSON.\v"
               "ms_per_step is the median. tokens_per_s counts all positions, for encoder-decoders "
               "the target positions. gflops counts the matrix products, as they are asked for, "
               "forward and backward; attention counts all queries by all keys, also where a mask "
               "saves work, and what its backward computes again is not counted; the second run of "
               "the layers, with --recompute, is. sgemm_peak_gflops is measured in the same run, "
               "before and after, and share_of_peak is gflops beside it. max_rss_mb is the "
               "process's. allocations_after_warmup is how often, once two steps had warmed up, "
               "the library asked the system for memory.",
        .parts = {WG__PART(options, a), {&wg__workload_options, &a.workload}, WG__PART_THREADS},
    };
    wg__cli_read(&usage, argc, argv);
    wg__workload *w = &a.workload;
    timing found = {.seconds = wg__cli_calloc((size_t)a.steps, sizeof *found.seconds)};
    double before = 0, after = 0; /* peaks of sgemm; their mean is reported */
    int status = wg__workload_begin(w);
    if (status == 0) {
        status = wg__measure_sgemm(&before);
        wg__alloc_trim(); /* that memory is not the training's */
        if (status < 0 || time_steps(&a, w, &found) < 0 || wg__measure_sgemm(&after) < 0)
            status = -1;
        found.sgemm_flops = (before + after) / 2;
        if (status == 0) {
            const double step = wg__median(a.steps, found.seconds);
            const double flops = found.product_flops / step;
            wg__print_json(
                0, json_pack("{s:s, s:I, s:I, s:I, s:s, s:b, s:i, s:s, s:I, s:f, s:f, s:f, s:f, "
                             "s:f, s:f, s:f, s:f, s:I, s:o}",
                             "preset", w->preset, "parameters",
                             (json_int_t)wg_module_parameter_count(w->module), "batch",
                             (json_int_t)w->batch, "seq", (json_int_t)w->sequence, "dtype",
                             wg_dtype_name(w->dtype), "recompute", w->recompute, "threads",
                             wg_threads(), "kernels",
                             w->dtype == WG_BF16 ? wg__kernels_in_use().bf16
                                                 : wg__kernels_in_use().vectors,
                             "steps", (json_int_t)a.steps, "ms_per_step", 1e3 * step, "min_ms",
                             1e3 * found.seconds[0], "max_ms", 1e3 * found.seconds[a.steps - 1],
                             "tokens_per_s", (double)w->tokens / step, "gflops", 1e-9 * flops,
                             "sgemm_peak_gflops", 1e-9 * found.sgemm_flops, "share_of_peak",
                             flops / found.sgemm_flops, "max_rss_mb", found.max_rss / (1 << 20),
                             "allocations_after_warmup", (json_int_t)found.allocations, "loss",
                             wg__json_number(found.loss)));
        }
        wg__workload_end(w);
    }
    free(found.seconds);
    return status < 0 ? wg__cli_fail_pending() : 0;
}
