/* wengert bench ops --small: what a recorded op costs beside its arithmetic.
 *
 * Each op runs on its first sample, a handful of elements, which are made f32 and ask for
 * gradients: the time is that of checking, allocating, recording, and of freeing at the end of the
 * scope. */
#include <stdio.h>

#include "autograd/autograd.h"
#include "bench/bench.h"
#include "tensor/ops.h"

enum { MAX_RUNS = 1001, MIN_RUNS = 5, SCOPES = 10, CALLS = 10 };

/* 1, 0 for an op that has no sample, -1 with an error. */
static int make_sample(const wg_op *op, wg_sample *sample) {
    wg_generator generator = {.seed = 1};
    if (!op->sample || op->sample(0, &generator, sample) <= 0)
        return wg_error_pending() ? -1 : 0;
    for (int i = 0; i < sample->input_count; i++) {
        wg_tensor **input = &sample->inputs[i];
        if (!*input || !wg_dtype_is_float(wg_tensor_dtype(*input)))
            continue;
        *input = wg_cast(*input, WG_F32);
        if (op->differentiable >> i & 1)
            wg_set_requires_grad(*input, true);
    }
    return wg_error_pending() ? -1 : 1;
}

/* Seconds a call; how many elements there are in the first output. */
static double time_calls(const wg_op *op, const wg_sample *sample, int64_t *elements) {
    const double start = wg__now();
    for (int k = 0; k < SCOPES; k++) {
        wg_tensor *outputs[WG_MAX_OUTPUTS];
        wg_scope scope;
        wg_scope_begin(&scope);
        for (int i = 0; i < CALLS; i++)
            wg_apply(op, sample->input_count, sample->inputs, sample->options, outputs);
        *elements = wg_tensor_count(outputs[0]);
        wg_scope_end(&scope, NULL);
    }
    return (wg__now() - start) / (SCOPES * CALLS);
}

/* The median over runs, the first of which warms up. */
static double repeat(const wg_op *op, const wg_sample *sample, double seconds, int64_t *elements) {
    double runs[MAX_RUNS];
    int64_t count = 0;
    time_calls(op, sample, elements);
    const double start = wg__now();
    while (count < MIN_RUNS || (count < MAX_RUNS && wg__now() - start < seconds))
        runs[count++] = time_calls(op, sample, elements);
    return wg__median(count, runs);
}

static void print_row(const wg_op *op, int64_t elements, double seconds, json_t *rows) {
    if (rows)
        json_array_append_new(rows, json_pack("{s:s, s:I, s:f}", "op", op->name, "elements",
                                              (json_int_t)elements, "ns", 1e9 * seconds));
    else
        printf("%-20s %8lld %8.0f\n", op->name, (long long)elements, 1e9 * seconds);
}

int wg__bench_small_op(const wg_op *op, double seconds, json_t *rows) {
    wg_sample sample = {0};
    wg_scope scope;
    wg_scope_begin(&scope);
    const int found = make_sample(op, &sample);
    if (found > 0) {
        int64_t elements = 0;
        const double median = repeat(op, &sample, seconds, &elements);
        if (!wg_error_pending())
            print_row(op, elements, median, rows);
    }
    wg_scope_end(&scope, NULL);
    return wg_error_pending() ? -1 : 0;
}
