/* wengert bench ops: the time of each op of the registry on its large sample, forward and backward,
 * and how near the forward comes to the machine's roof: the peak of sgemm, or
 * the bandwidth of memory. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "bench/bench.h"
#include "cli/output.h"

enum { MAX_RUNS = 101, MIN_RUNS = 5 };

typedef struct arguments {
    double seconds;
    bool json, small, processor_time;
    wg_setting_list ops; /* names; none: all that have a large sample */
} arguments;

static const char *op_name(int index) {
    return index < wg_op_count() ? wg_op_at(index)->name : NULL;
}

static const wg_setting options[] = {
    {"ops", WG_SETTING_TEXTS, WG__AT(ops), .word = true, .choice = op_name},
    {"seconds", WG_SETTING_NUMBER, WG__AT(seconds), .high = 3600, .standard = "0.1",
     .argument = "X", .help = "How long each op is timed in each direction"},
    {"small", WG_SETTING_FLAG, WG__AT(small),
     .help = "Time the overhead of an op, in nanoseconds: on a few elements, recorded, with its "
             "share of the end of the scope"},
    {"processor-time", WG_SETTING_FLAG, WG__AT(processor_time),
     .help = "Measure the processor time of all threads instead of the clock's, and no roof: for a "
             "machine that other programs use, too"},
    WG__ROW_JSON(arguments),
};

/* The index-th op that is to be timed, or NULL behind the last. */
static const wg_op *op_at(const arguments *a, int64_t index) {
    if (a->ops.count == 0)
        return index < wg_op_count() ? wg_op_at((int)index) : NULL;
    return index < a->ops.count ? wg_op_find(a->ops.items[index]) : NULL;
}

static void check(const void *values) {
    const arguments *a = values;
    char suggestion[96];
    for (int64_t i = 0; i < a->ops.count; i++) {
        const char *name = a->ops.items[i];
        if (!op_at(a, i))
            wg__cli_misuse("there is no op '%s'; wengert bench ops without one lists them%s", name,
                           wg__cli_suggestion(suggestion, sizeof suggestion, name, op_name));
        if (!a->small && !op_at(a, i)->bench)
            wg__cli_misuse("%s is not timed: it moves or computes too little; with --small it is",
                           name);
    }
}

typedef struct timing {
    const wg_op *op;
    double forward, backward; /* seconds; backward NaN for an op that has none */
    double bytes;             /* of all operands and results; 0 for a view, which moves none */
    double flops;             /* 0 for an op that does not count them */
} timing;

/* Which clock is read: of the wall, or of this process's threads together. */
static clockid_t measured = CLOCK_MONOTONIC;

static double now(void) {
    struct timespec t;
    clock_gettime(measured, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One forward run; its outputs are left in the caller's scope. */
static double time_forward(const wg_op *op, const wg_sample *sample, wg_tensor **outputs) {
    wg__evict_caches();
    const double start = now();
    wg_apply(op, sample->input_count, sample->inputs, sample->options, outputs);
    return now() - start;
}

static double time_backward(const wg_op *op, const wg_sample *sample) {
    wg_tensor *outputs[WG_MAX_OUTPUTS], *made[WG_MAX_OUTPUTS], *weights[WG_MAX_OUTPUTS];
    wg_tensor *wanted[8], *gradients[8];
    int output_count = 0, wanted_count = 0;
    time_forward(op, sample, outputs);
    for (int j = 0; j < op->output_count; j++)
        if (wg_requires_grad(outputs[j])) {
            made[output_count] = outputs[j];
            weights[output_count++] = wg_ones_like(outputs[j]);
        }
    for (int i = 0; i < sample->input_count; i++)
        if (wg_requires_grad(sample->inputs[i]))
            wanted[wanted_count++] = sample->inputs[i];
    if (output_count == 0 || wanted_count == 0)
        return NAN;
    wg__evict_caches();
    const double start = now();
    wg_grad(output_count, made, weights, wanted_count, wanted, NULL, gradients);
    return now() - start;
}

/* The median over runs. The first run warms up. */
static double repeat(const wg_op *op, const wg_sample *sample, bool backward, double seconds) {
    double runs[MAX_RUNS], total = 0;
    int count = 0;
    for (int i = -1; i < MAX_RUNS && (count < MIN_RUNS || total < seconds); i++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *outputs[WG_MAX_OUTPUTS];
        const double run = backward ? time_backward(op, sample) : time_forward(op, sample, outputs);
        wg_scope_end(&scope, NULL);
        if (wg_error_pending() || isnan(run))
            return NAN;
        if (i < 0)
            continue;
        runs[count++] = run;
        total += run;
    }
    return wg__median(count, runs);
}

/* Fills the spec. Returns the bytes of the tensor; elements repeated by a stride of 0 count once.
 */
static double describe(const wg_tensor *x, wg_spec *spec) {
    double bytes = x ? (double)wg_dtype_size(wg_tensor_dtype(x)) : 0;
    *spec = (wg_spec){.dtype = wg_tensor_dtype(x), .ndim = x ? wg_tensor_ndim(x) : -1};
    for (int i = 0; i < spec->ndim; i++) {
        spec->shape[i] = wg_tensor_shape(x)[i];
        bytes *= wg_tensor_strides(x)[i] != 0 ? (double)spec->shape[i] : 1;
    }
    return bytes;
}

static int time_op(const wg_op *op, double seconds, timing *found) {
    wg_generator generator = {.seed = 1};
    wg_sample sample = {0};
    *found = (timing){.op = op, .backward = NAN};
    wg_scope scope, run;
    wg_scope_begin(&scope);
    if (op->bench(&generator, &sample) >= 0 && !wg_error_pending()) {
        /* A run gives the bytes that the op reads and writes, and its operations. */
        wg_tensor *outputs[WG_MAX_OUTPUTS];
        wg_spec specs[8];
        wg_call call = {.op = op,
                        .options = sample.options,
                        .input_count = sample.input_count,
                        .inputs = sample.inputs,
                        .input_specs = specs,
                        .output_count = op->output_count};
        wg_scope_begin(&run);
        time_forward(op, &sample, outputs);
        for (int i = 0; i < sample.input_count; i++)
            found->bytes += describe(sample.inputs[i], &specs[i]);
        for (int j = 0; j < op->output_count; j++)
            found->bytes += describe(outputs[j], &call.output_specs[j]);
        found->bytes = op->is_view ? 0 : found->bytes;
        found->flops = op->flops ? op->flops(&call) : 0;
        wg_scope_end(&run, NULL);
        found->forward = repeat(op, &sample, false, seconds);
        for (int i = 0; i < sample.input_count; i++)
            if (op->differentiable >> i & 1 && sample.inputs[i] &&
                wg_dtype_is_float(wg_tensor_dtype(sample.inputs[i])))
                wg_set_requires_grad(sample.inputs[i], true);
        found->backward = repeat(op, &sample, true, seconds);
    }
    wg_scope_end(&scope, NULL);
    return wg_error_pending() ? -1 : 0;
}

/* Times the op on its first sample, a few f32 elements that require gradients. The time is then
 * spent on checks, allocation, recording, and freeing at the end of the scope. */
static int time_small(const wg_op *op, double seconds, json_t *rows) {
    enum { MOST = 1001, SCOPES = 10, CALLS = 10 };
    double runs[MOST], begun = 0;
    wg_generator generator = {.seed = 1};
    wg_sample sample = {0};
    int64_t count = -1, elements = 0; /* the first run warms up */
    wg_scope scope, inner;
    wg_scope_begin(&scope);
    const bool has_sample = op->sample && op->sample(0, &generator, &sample) > 0;
    for (int i = 0; has_sample && i < sample.input_count; i++) {
        wg_tensor **input = &sample.inputs[i];
        if (!*input || !wg_dtype_is_float(wg_tensor_dtype(*input)))
            continue;
        *input = wg_cast(*input, WG_F32);
        if (op->differentiable >> i & 1)
            wg_set_requires_grad(*input, true);
    }
    while (has_sample && !wg_error_pending() && count < MOST &&
           (count < MIN_RUNS || wg__now() - begun < seconds)) {
        const double start = wg__now();
        for (int k = 0; k < SCOPES; k++) {
            wg_tensor *outputs[WG_MAX_OUTPUTS];
            wg_scope_begin(&inner);
            for (int i = 0; i < CALLS; i++)
                wg_apply(op, sample.input_count, sample.inputs, sample.options, outputs);
            elements = wg_tensor_count(outputs[0]);
            wg_scope_end(&inner, NULL);
        }
        if (count < 0)
            begun = wg__now();
        else
            runs[count] = (wg__now() - start) / (SCOPES * CALLS);
        count++;
    }
    wg_scope_end(&scope, NULL);
    if (wg_error_pending())
        return -1;
    const double ns = has_sample ? 1e9 * wg__median(count, runs) : 0;
    if (has_sample && rows)
        json_array_append_new(rows, json_pack("{s:s, s:I, s:f}", "op", op->name, "elements",
                                              (json_int_t)elements, "ns", ns));
    else if (has_sample)
        printf("%-20s %8lld %8.0f\n", op->name, (long long)elements, ns);
    return 0;
}

/* The share of the roof (roofline model) is the larger one of two ratios: time of the memory
 * traffic alone, or of the arithmetic alone, to the measured time. NaN if the roof was not
 * measured. */
static void print_row(const timing *t, const wg__machine *machine, json_t *rows) {
    const double moving = t->bytes / machine->bandwidth,
                 computing = t->flops / machine->sgemm_flops;
    const bool has_roof = machine->bandwidth > 0, computes = has_roof && computing > moving;
    const double share = has_roof ? (computes ? computing : moving) / t->forward : NAN;
    const double bytes_rate = 1e-9 * t->bytes / t->forward, rate = 1e-9 * t->flops / t->forward;
    if (rows) {
        json_array_append_new(
            rows, json_pack("{s:s, s:f, s:o, s:f, s:f, s:o, s:s}", "op", t->op->name, "forward_ms",
                            1e3 * t->forward, "backward_ms", wg__json_number(1e3 * t->backward),
                            "gb_per_s", bytes_rate, "gflops", rate, "share_of_roof",
                            wg__json_number(share), "roof", computes ? "sgemm" : "memory"));
        return;
    }
    char backward[32] = "-", flops[32] = "-", bytes[32] = "-";
    if (!isnan(t->backward))
        snprintf(backward, sizeof backward, "%.3f", 1e3 * t->backward);
    if (t->flops > 0)
        snprintf(flops, sizeof flops, "%.1f", rate);
    if (t->bytes > 0)
        snprintf(bytes, sizeof bytes, "%.1f", bytes_rate);
    printf("%-20s %11.3f %11s %8s %9s", t->op->name, 1e3 * t->forward, backward, bytes, flops);
    if (t->bytes > 0 && has_roof)
        printf("  %.2f of %s", share, computes ? "sgemm" : "memory");
    putchar('\n');
    fflush(stdout);
}

static int bench(const arguments *a) {
    wg__machine machine = {.threads = wg_threads()};
    const wg_op *op;
    if (a->processor_time)
        measured = CLOCK_PROCESS_CPUTIME_ID;
    else if (!a->small && wg__measure_machine(&machine) < 0)
        return wg__cli_fail_pending();
    json_t *rows = a->json ? json_array() : NULL;
    if (!rows && a->small)
        printf("%-20s %8s %8s\n", "op", "elements", "ns");
    if (!rows && !a->small && a->processor_time)
        printf("%d threads, processor time\n\n", machine.threads);
    else if (!rows && !a->small)
        printf("%d threads, memory %.1f GB/s, sgemm %.1f GFLOP/s\n\n", machine.threads,
               1e-9 * machine.bandwidth, 1e-9 * machine.sgemm_flops);
    if (!rows && !a->small)
        printf("%-20s %11s %11s %8s %9s  %s\n", "op", "forward ms", "backward ms", "GB/s",
               "GFLOP/s", "share of roof");
    for (int64_t i = 0; (op = op_at(a, i)); i++) {
        timing found = {0};
        if (!a->small && !op->bench)
            continue;
        if ((a->small ? time_small(op, a->seconds, rows) : time_op(op, a->seconds, &found)) < 0) {
            json_decref(rows);
            return wg__cli_fail_pending();
        }
        if (!a->small)
            print_row(&found, &machine, rows);
    }
    if (rows && a->small)
        wg__print_json(JSON_INDENT(2),
                       json_pack("{s:i, s:o}", "threads", machine.threads, "ops", rows));
    else if (rows)
        wg__print_json(JSON_INDENT(2),
                       json_pack("{s:i, s:f, s:f, s:o}", "threads", machine.threads,
                                 "memory_gb_per_s", 1e-9 * machine.bandwidth, "sgemm_gflops",
                                 1e-9 * machine.sgemm_flops, "ops", rows));
    return 0;
}

int wg__bench_ops(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .parts = {WG__PART(options, a), WG__PART_THREADS},
        .check = check,
        .lines = "[OP...]",
        .doc = "Times ops, all that move or compute much or those named, forward and backward, on "
               "operands that are in no cache. GB/s counts the bytes of operands and results once. "
               "The share of the roof is the share of the memory's bandwidth or of sgemm's peak, "
               "whichever limits the op. Both are measured in the same run.",
    };
    wg__cli_read(&usage, argc, argv);
    return bench(&a);
}
