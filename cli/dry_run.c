/* --dry-run: the memory and time of a run, measured in a few steps (see run.h).
 *
 *     peak of a step  =  weights + tokenizer, text...     before the first step
 *                        + optimizer state + gradients    as the trainer has them
 *                        + activations                    the remainder
 *
 * The library's allocator counts the bytes. */
#include "cli/run.h"

#include <math.h>
#include <stdio.h>

#include "tensor/internal.h"
#include "train/internal.h"

/* The first step warms up: it makes the optimizer's state. */
enum { WARM_UP = 1, TIMED = 2, STEPS = WARM_UP + TIMED };

typedef struct measurement {
    volatile sig_atomic_t done;
    int64_t steps;
    double begun, seconds; /* of the timed steps */
    double flops;
    int64_t tokens;
} measurement;

typedef struct costs {
    int64_t weights, gradients, state, other, activations, peak;
    int64_t weight_count;
} costs;

static void listen(const wg_train_report *report, void *context) {
    measurement *m = context;
    if (m->done) /* the trainer finishes the step that follows */
        return;
    m->steps++;
    if (m->steps == WARM_UP) {
        m->flops = wg__counted_product_flops();
        m->begun = wg__now();
    } else {
        m->tokens += report->metrics->tokens;
    }
    if (m->steps == STEPS || report->step == report->total) {
        m->seconds = wg__now() - m->begun;
        m->flops = wg__counted_product_flops() - m->flops;
        m->done = 1;
    }
}

static int run_steps(wg_training *training, wg_trainer_options options, wg_optimizer *optimizer,
                     measurement *m, costs *found) {
    /* A run that writes, evaluates and grows nothing. */
    options.path = options.best_path = options.log_path = options.keep_stem = NULL;
    options.keep_every = options.patience = options.accumulate_ramp = options.evaluate_every = 0;
    options.save_every = 0;
    options.save_seconds = -1;
    options.steps = options.steps > STEPS ? options.steps : STEPS + 1;
    options.listener = listen;
    options.listener_context = m;
    options.stop = &m->done;
    const wg_task task = wg_training_task(training);
    training->ramp_examples = 0;
    const int64_t before = wg_alloc_get_stats().live_bytes;
    wg_trainer *trainer = wg_trainer_new(&task, optimizer, &options);
    if (!trainer)
        return -1;
    wg__alloc_reset_peak();
    const int outcome = wg_trainer_run(trainer);
    const wg_alloc_stats stats = wg_alloc_get_stats();
    const wg_model_costs costs = wg_model_costs_of(&training->model);
    wg__trainer_memory(trainer, &found->state, &found->gradients);
    found->weights = costs.weight_bytes;
    found->weight_count = costs.parameters;
    found->peak = stats.peak_bytes;
    found->other = before - found->weights;
    found->activations = found->peak - before - found->state - found->gradients;
    wg_trainer_free(trainer);
    return outcome < 0 ? -1 : 0;
}

int wg__dry_run(wg__run *r, wg_trainer_options options, wg_optimizer *optimizer) {
    measurement m = {0};
    costs c = {0};
    if (run_steps(r->training, options, optimizer, &m, &c) < 0)
        return wg__cli_fail_pending();
    const wg_training *training = r->training;
    const int64_t batches = training->run_examples / r->settings.training.setup.batch;
    const double timed = (double)(m.steps - WARM_UP), step = m.seconds / timed,
                 tokens = (double)m.tokens / timed,
                 full = (double)wg__trainer_batches(options.accumulate, 0, 0), /* of a full step */
        total = step * (double)batches / full;
    /* An epoch is all examples, or all tokens of a text that is not split into examples. */
    const double batch = (double)training->setup.batch, examples = (double)training->examples;
    const double epoch_tokens =
        r->text ? (double)wg_dataset_tokens(r->text) : tokens / full * examples / batch;
    const int64_t epoch_batches =
        (int64_t)ceil(examples > 0 ? examples / batch : epoch_tokens / (tokens / full));
    const struct {
        const char *name, *key;
        int64_t bytes;
    } rows[] = {{"weights", "weights", c.weights},
                {"gradients", "gradients", c.gradients},
                {"optimizer state", "optimizer", c.state},
                {"activations", "activations", c.activations},
                {"tokenizer, text and all else", "other", c.other}};
    const size_t row_count = sizeof rows / sizeof *rows;
    if (r->json) {
        json_t *memory = json_pack("{s:I}", "peak", (json_int_t)c.peak);
        for (size_t i = 0; i < row_count; i++)
            json_object_set_new(memory, rows[i].key, json_integer(rows[i].bytes));
        wg__print_json(JSON_INDENT(2),
                       json_pack("{s:s, s:I, s:o, s:I, s:f, s:I, s:f, s:f, s:f, s:f}", "model",
                                 training->model.type->name, "parameters",
                                 (json_int_t)c.weight_count, "memory", memory, "epoch_batches",
                                 (json_int_t)epoch_batches, "epoch_tokens", epoch_tokens, "steps",
                                 (json_int_t)options.steps, "step_seconds", step, "step_tokens",
                                 tokens, "step_flops", m.flops / timed, "run_seconds", total));
        return 0;
    }
    printf("dry run: nothing is written\n");
    printf("model   %s, %s parameters\n", training->model.type->name,
           wg__count((double)c.weight_count).text);
    printf("memory  %s at the peak of a step, counted in real steps:\n",
           wg__bytes((double)c.peak).text);
    for (size_t i = 0; i < row_count; i++)
        printf("        %-30s %10s\n", rows[i].name, wg__bytes((double)rows[i].bytes).text);
    printf("        %-30s %10s\n", "(free on this machine)",
           wg__bytes((double)wg__memory_available()).text);
    printf("text    %s tokens, %lld batches of %lld x %lld an epoch\n",
           wg__count(epoch_tokens).text, (long long)epoch_batches, (long long)training->setup.batch,
           (long long)training->setup.sequence);
    printf("run     %lld steps, %.3g epochs\n", (long long)options.steps,
           (double)batches / (double)epoch_batches);
    printf("time    %s a step of %s tokens, the mean of %.0f real steps after one to warm up: "
           "%s tokens/s, %sFLOP/s\n",
           wg__seconds(step).text, wg__count(tokens).text, timed, wg__count(tokens / step).text,
           wg__count(m.flops / m.seconds).text);
    printf("        %s for all steps, without evaluations and saves\n", wg__seconds(total).text);
    return 0;
}
