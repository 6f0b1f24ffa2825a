/* wengert bench attention: attention over long sequences, forward and backward, beside the
 * machine's sgemm peak, with the memory that it takes. bench/torch_attention.py times the same in
 * PyTorch. */

#include "base/alloc.h"
#include "bench/bench.h"
#include "cli/output.h"

enum { MAX_SIZE = 1 << 20, MAX_RUNS = 1000, MAX_LENGTHS = 5, INPUTS = 4 };

typedef struct arguments {
    int64_t runs, heads, width, seq; /* seq 0: a list of lengths */
    wg_attention_options options;
} arguments;

static const wg_setting options[] = {
    {"causal", WG_SETTING_FLAG, WG__AT(options.causal), .help = "No position sees those behind it"},
    {"heads", WG_SETTING_INTEGER, WG__AT(heads), .low = 1, .high = MAX_SIZE, .standard = "4",
     .argument = "N", .help = "Heads"},
    {"runs", WG_SETTING_INTEGER, WG__AT(runs), .low = 1, .high = MAX_RUNS, .standard = "5",
     .argument = "N", .help = "Runs of each; the median counts"},
    {"seq", WG_SETTING_INTEGER, WG__AT(seq), .low = 1, .high = MAX_SIZE, .argument = "T",
     .help = "Positions of the sequence (512, 1024, 2048, 4096 and 8192)"},
    {"width", WG_SETTING_INTEGER, WG__AT(width), .low = 1, .high = MAX_SIZE, .standard = "64",
     .argument = "N", .help = "The width of a head"},
    {"window", WG_SETTING_INTEGER, WG__AT(options.window), .low = 1, .high = MAX_SIZE,
     .argument = "N",
     .help = "Positions see those at most this far away (default: at any distance)"},
};

typedef struct figures {
    double forward, backward; /* seconds, medians */
    int64_t workspace;        /* bytes at the peak above operands, gradients and output */
} figures;

/* The inputs are q, k and v, which require gradients, and the cotangent of the output. */
static int time_all(const arguments *a, int64_t seq, figures *found) {
    double forward[MAX_RUNS], backward[MAX_RUNS];
    wg_scope scope, inner;
    wg_scope_begin(&scope);
    wg_generator generator = {.seed = 1};
    wg_tensor *inputs[INPUTS], *gradients[INPUTS - 1];
    for (int i = 0; i < INPUTS; i++)
        inputs[i] = wg_randn(&generator, WG_F32, 4, (int64_t[]){1, a->heads, seq, a->width});
    for (int i = 0; i < INPUTS - 1; i++)
        wg_set_requires_grad(inputs[i], true);
    const int64_t before = wg_alloc_get_stats().live_bytes;
    int status = wg_error_pending() ? -1 : 0;
    for (int64_t run = -1; status == 0 && run < a->runs; run++) { /* the first one warms up */
        const int64_t slot = run < 0 ? 0 : run;
        wg_scope_begin(&inner);
        const double start = wg__now();
        wg_tensor *y = wg_attention(inputs[0], inputs[1], inputs[2], NULL, &a->options);
        const double middle = wg__now();
        status = y ? wg_grad(1, &y, &inputs[3], INPUTS - 1, inputs, NULL, gradients) : -1;
        backward[slot] = wg__now() - middle;
        forward[slot] = middle - start;
        wg_scope_end(&inner, NULL);
    }
    const int64_t results = 4 * a->heads * seq * a->width * (int64_t)sizeof(float);
    wg_scope_end(&scope, NULL);
    if (status == 0)
        *found = (figures){.forward = wg__median(a->runs, forward),
                           .backward = wg__median(a->runs, backward),
                           .workspace = wg_alloc_get_stats().peak_bytes - before - results};
    return status;
}

int wg__bench_attention(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .parts = {WG__PART(options, a), WG__PART_THREADS},
        .doc = "Times f32 attention over a single sequence, forward and backward, over long "
               "sequences. Prints a line of JSON for each length.\v"
               "Times are medians. workspace_mib is the memory at the peak above the operands, the "
               "output and the gradients. share_of_peak counts the seven products of forward and "
               "backward as if every position saw all, beside sgemm_peak_gflops, so it exceeds 1 "
               "where keys are skipped.",
    };
    wg__cli_read(&usage, argc, argv);
    static const int64_t lengths[MAX_LENGTHS] = {512, 1024, 2048, 4096, 8192};
    const int64_t *list = a.seq ? &a.seq : lengths;
    const int count = a.seq ? 1 : MAX_LENGTHS;
    figures found[MAX_LENGTHS];
    double peak;
    int status = 0;
    /* The peak of memory never falls, so the lengths rise, and sgemm comes after them. */
    for (int i = 0; status == 0 && i < count; i++)
        status = time_all(&a, list[i], &found[i]);
    if (status == 0)
        status = wg__measure_sgemm(&peak);
    for (int i = 0; status == 0 && i < count; i++) {
        const figures *f = &found[i];
        const double seq = (double)list[i], pairs = seq * seq * (double)(a.heads * a.width);
        wg__print_json(
            0, json_pack("{s:I, s:I, s:I, s:b, s:I, s:i, s:f, s:f, s:f, s:f, s:f}", "seq",
                         (json_int_t)list[i], "heads", (json_int_t)a.heads, "width",
                         (json_int_t)a.width, "causal", a.options.causal, "window",
                         (json_int_t)a.options.window, "threads", wg_threads(), "forward_ms",
                         1e3 * f->forward, "backward_ms", 1e3 * f->backward, "workspace_mib",
                         (double)f->workspace / (1 << 20), "sgemm_peak_gflops", 1e-9 * peak,
                         "share_of_peak", 14 * pairs / (f->forward + f->backward) / peak));
    }
    return status < 0 ? wg__cli_fail_pending() : 0;
}
