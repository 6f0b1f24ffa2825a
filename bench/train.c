/* wengert bench train: the steps of a training beside the machine's sgemm peak. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/bench.h"
#include "cli/profile.h"
#include "cli/output.h"
#include "base/alloc.h"
#include "tensor/kernels.h"
#include "tensor/profile.h"

enum { MAX_THREADS = 1024, MAX_SIZE = 1 << 24, MAX_STEPS = 1000000, WARM_UP = 2 };

typedef struct arguments {
    wg__workload workload;
    int64_t steps;
    int threads;
    wg__profiling profiling;
} arguments;

enum { KEY_STEPS = WG__KEY_BENCH, KEY_THREADS };

static const struct argp_option options[] = {
    WG__OPTIONS_WORKLOAD,
    {"steps", KEY_STEPS, "N", 0, "Steps that are timed, after two that warm up (default 7)", 0},
    {"threads", KEY_THREADS, "N", 0, "How many threads compute (default: all processors)", 0},
    WG__OPTIONS_PROFILE,
    {0}};

wg_dtype wg__parse_product_dtype(const struct argp_state *state, const char *text) {
    if (strcmp(text, "f32") != 0 && strcmp(text, "bf16") != 0)
        argp_error(state, "--dtype '%s'; wanted f32 or bf16", text);
    return strcmp(text, "bf16") == 0 ? WG_BF16 : WG_F32;
}

error_t wg__parse_workload(int key, char *text, struct argp_state *state, wg__workload *workload) {
    switch (key) {
    case WG__KEY_PRESET:
        workload->preset = text;
        return 0;
    case WG__KEY_BATCH:
        workload->batch = wg__cli_integer(state, "batch", text, 1, MAX_SIZE);
        return 0;
    case WG__KEY_SEQ:
        workload->sequence = wg__cli_integer(state, "seq", text, 1, MAX_SIZE);
        return 0;
    case WG__KEY_VOCAB:
        workload->vocabulary = wg__cli_integer(state, "vocab", text, 8, MAX_SIZE);
        return 0;
    case WG__KEY_RECOMPUTE:
        workload->recompute = true;
        return 0;
    case WG__KEY_DTYPE:
        workload->dtype = wg__parse_product_dtype(state, text);
        return 0;
    case ARGP_KEY_ARG:
        if (workload->model)
            argp_error(state, "one model at a time; '%s' is one too many", text);
        workload->model = text;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which model? bert-mini, or gpt, say");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case KEY_STEPS:
        a->steps = wg__cli_integer(state, "steps", text, 1, MAX_STEPS);
        return 0;
    case KEY_THREADS:
        a->threads = (int)wg__cli_integer(state, "threads", text, 1, MAX_THREADS);
        return 0;
    case WG__KEY_PROFILE:
        a->profiling.table = true;
        return 0;
    case WG__KEY_TRACE:
        a->profiling.trace = text;
        return 0;
    default:
        return wg__parse_workload(key, text, state, &a->workload);
    }
}

/* What the steps were. */
typedef struct timing {
    double *seconds;      /* of each step; sorted in the end */
    double loss;          /* of the last one */
    double product_flops; /* of one step */
    int64_t allocations;  /* that the system was asked for by all of them */
    double max_rss;       /* in bytes, before the peak is measured again */
    double sgemm_flops;
} timing;

static double max_rss(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return 1024 * (double)usage.ru_maxrss;
}

static int time_steps(const arguments *a, wg__workload *w, timing *found) {
    for (int i = 0; i < WARM_UP; i++)
        wg__workload_step(w);
    if (wg__profiling_begin(&a->profiling) < 0)
        return -1;
    const int64_t allocations = wg_alloc_get_stats().system_allocations;
    const double flops = wg_product_flops();
    for (int64_t i = 0; i < a->steps && !wg_error_pending(); i++) {
        const double start = wg__now();
        found->loss = wg__workload_step(w);
        found->seconds[i] = wg__now() - start;
    }
    found->product_flops = (wg_product_flops() - flops) / (double)a->steps;
    found->allocations = wg_alloc_get_stats().system_allocations - allocations;
    found->max_rss = max_rss();
    return wg_error_pending() ? -1 : wg__profiling_end(&a->profiling);
}

/* The peak is that of the minutes in which the steps ran: half way between before and after. What
 * the first measuring had is given back, so that it does not count as memory of the training. */
static int measure(const arguments *a, wg__workload *w, timing *found) {
    double before, after;
    if (wg__measure_sgemm(&before) < 0)
        return -1;
    wg_alloc_trim();
    if (time_steps(a, w, found) < 0 || wg__measure_sgemm(&after) < 0)
        return -1;
    found->sgemm_flops = (before + after) / 2;
    return 0;
}

static void report(const arguments *a, const wg__workload *w, timing *found) {
    const double step = wg__median(a->steps, found->seconds);
    const double flops = found->product_flops / step;
    wg__print_json_line(json_pack(
        "{s:s, s:I, s:I, s:I, s:s, s:b, s:i, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, "
        "s:I, s:o}",
        "preset", w->preset, "parameters", (json_int_t)wg_module_parameter_count(w->module),
        "batch", (json_int_t)w->batch, "seq", (json_int_t)w->sequence, "dtype",
        wg_dtype_name(w->dtype), "recompute", w->recompute, "threads", wg_threads(), "kernels",
        w->dtype == WG_BF16 ? wg_kernels_in_use().bf16 : wg_kernels_in_use().vectors, "steps",
        (json_int_t)a->steps, "ms_per_step", 1e3 * step, "min_ms", 1e3 * found->seconds[0],
        "max_ms", 1e3 * found->seconds[a->steps - 1], "tokens_per_s", (double)w->tokens / step,
        "gflops", 1e-9 * flops, "sgemm_peak_gflops", 1e-9 * found->sgemm_flops, "share_of_peak",
        flops / found->sgemm_flops, "max_rss_mb", found->max_rss / (1 << 20),
        "allocations_after_warmup", (json_int_t)found->allocations, "loss",
        wg__json_number(found->loss)));
}

static int bench(arguments *a) {
    wg__workload *w = &a->workload;
    timing found = {.seconds = calloc((size_t)a->steps, sizeof *found.seconds)};
    if (!found.seconds)
        return wg__cli_fail("no memory");
    int status = a->threads ? wg_set_threads(a->threads) : 0;
    if (status == 0)
        status = wg__workload_begin(w);
    if (status == 0) {
        status = measure(a, w, &found);
        if (status == 0)
            report(a, w, &found);
        wg__workload_end(w);
    }
    free(found.seconds);
    return status < 0 ? wg__cli_fail_pending() : 0;
}

int wg__bench_train(int argc, char **argv) {
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "MODEL",
        .doc =
            "Times training steps of a model on random tokens: forward, backward, AdamW, without "
            "dropout. MODEL is a kind, gpt, llama, bert, modernbert, roberta, glm, transformer, t5 "
            "or mlp, "
            "or one of "
            "its "
            "presets, as in `wengert bench train bert-mini'. Prints one line of JSON.\v"
            "ms_per_step is the median. tokens_per_s counts all positions, of encoder-decoders "
            "those of the target. gflops counts the matrix products, as they are asked for, "
            "forward and backward; attention counts all queries by all keys, also where a mask "
            "saves work, and what its backward computes again is not counted; the second run of "
            "the layers, with --recompute, is. sgemm_peak_gflops is measured in the same run, "
            "before and after, and share_of_peak is gflops beside it. "
            "max_rss_mb is the process's. allocations_after_warmup is how often, once two steps "
            "had warmed up, the library asked the system for memory.",
    };
    arguments a = {.steps = 7};
    wg__cli_parse(&parser, argc, argv, &a);
    return bench(&a);
}
