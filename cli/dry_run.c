/* What a run would cost: see dry_run.h.
 *
 *     peak of a step  =  weights + tokenizer, text...     before the first step
 *                        + optimizer state + gradients    as the trainer has them
 *                        + activations                    the rest
 *
 * The bytes are those that the library's allocator counts, and the time is that of real steps. */
#include "cli/dry_run.h"

#include <math.h>
#include <stdio.h>

#include "base/internal.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/units.h"
#include "tensor/profile.h"

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
        m->flops = wg_product_flops();
        m->begun = wg__now();
    } else {
        m->tokens += report->metrics->tokens;
    }
    if (m->steps == STEPS || report->step == report->total) {
        m->seconds = wg__now() - m->begun;
        m->flops = wg_product_flops() - m->flops;
        m->done = 1;
    }
}

/* The options of a run that writes, evaluates and grows nothing. */
static wg_trainer_options dry_options(const wg__dry_run_plan *plan, measurement *m) {
    wg_trainer_options options = plan->options;
    options.path = options.best_path = options.log_path = options.keep_stem = NULL;
    options.keep_every = options.patience = options.accumulate_ramp = options.evaluate_every = 0;
    options.save_every = 0;
    options.save_seconds = -1;
    options.steps = options.steps > STEPS ? options.steps : STEPS + 1;
    options.listener = listen;
    options.listener_context = m;
    options.stop = &m->done;
    return options;
}

static int run_steps(wg__dry_run_plan *plan, measurement *m, costs *found) {
    const wg_trainer_options options = dry_options(plan, m);
    const wg_task task = wg_training_task(plan->training);
    plan->training->ramp_examples = 0;
    const int64_t before = wg_alloc_get_stats().live_bytes;
    wg_trainer *trainer = wg_trainer_new(&task, plan->optimizer, &options);
    plan->optimizer = NULL;
    if (!trainer)
        return -1;
    wg_alloc_reset_peak();
    const int outcome = wg_trainer_run(trainer);
    const wg_alloc_stats stats = wg_alloc_get_stats();
    const wg_model_costs costs = wg_model_costs_of(&plan->training->model);
    wg_trainer_memory(trainer, &found->state, &found->gradients);
    found->weights = costs.weight_bytes;
    found->weight_count = costs.parameters;
    found->peak = stats.peak_bytes;
    found->other = before - found->weights;
    found->activations = found->peak - before - found->state - found->gradients;
    wg_trainer_free(trainer);
    return outcome < 0 ? -1 : 0;
}

/* ---- Results ---- */

typedef struct epoch {
    int64_t batches;
    double tokens;
} epoch;

/* An epoch has all examples, or of a text that has no examples of its own all tokens. */
static epoch epoch_of(const wg__dry_run_plan *plan, double tokens_of_batch) {
    const double batch = (double)plan->training->setup.batch,
                 examples = (double)plan->training->examples;
    const double tokens =
        plan->text ? (double)wg_dataset_tokens(plan->text) : tokens_of_batch * examples / batch;
    return (epoch){
        .batches = (int64_t)ceil(examples > 0 ? examples / batch : tokens / tokens_of_batch),
        .tokens = tokens,
    };
}

static void print_memory(const costs *c) {
    printf("memory  %s at the peak of a step, counted in real steps:\n",
           wg__bytes((double)c->peak).text);
    const struct {
        const char *name;
        int64_t bytes;
    } rows[] = {{"weights", c->weights},
                {"gradients", c->gradients},
                {"optimizer state", c->state},
                {"activations", c->activations},
                {"tokenizer, text and all else", c->other}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf("        %-30s %10s\n", rows[i].name, wg__bytes((double)rows[i].bytes).text);
    printf("        %-30s %10s\n", "(free on this machine)",
           wg__bytes((double)wg_memory_available()).text);
}

static void print_text(const wg__dry_run_plan *plan, const measurement *m, const costs *c) {
    const wg_training *training = plan->training;
    const double timed = (double)(m->steps - WARM_UP), step = m->seconds / timed,
                 tokens = (double)m->tokens / timed,
                 of_batch = tokens / (double)plan->batches_of_full_step,
                 total = step * (double)plan->batches / (double)plan->batches_of_full_step;
    const epoch e = epoch_of(plan, of_batch);
    printf("dry run: nothing is written\n");
    printf("model   %s, %s parameters\n", training->model.type->name,
           wg__count((double)c->weight_count).text);
    print_memory(c);
    printf("text    %s tokens, %lld batches of %lld x %lld an epoch\n", wg__count(e.tokens).text,
           (long long)e.batches, (long long)training->setup.batch,
           (long long)training->setup.sequence);
    printf("run     %lld steps, %.3g epochs\n", (long long)plan->options.steps,
           (double)plan->batches / (double)e.batches);
    printf("time    %s a step of %s tokens, the mean of %.0f real steps after one to warm up: "
           "%s tokens/s, %sFLOP/s\n",
           wg__seconds(step).text, wg__count(tokens).text, timed, wg__count(tokens / step).text,
           wg__count(m->flops / m->seconds).text);
    printf("        %s for all steps, without evaluations and saves\n", wg__seconds(total).text);
}

static void print_json(const wg__dry_run_plan *plan, const measurement *m, const costs *c) {
    const double timed = (double)(m->steps - WARM_UP), step = m->seconds / timed,
                 tokens = (double)m->tokens / timed;
    const epoch e = epoch_of(plan, tokens / (double)plan->batches_of_full_step);
    wg__print_json(json_pack(
        "{s:s, s:I, s:{s:I, s:I, s:I, s:I, s:I, s:I}, s:I, s:f, s:I, s:f, s:f, s:f, s:f}", "model",
        plan->training->model.type->name, "parameters", (json_int_t)c->weight_count, "memory",
        "peak", (json_int_t)c->peak, "weights", (json_int_t)c->weights, "gradients",
        (json_int_t)c->gradients, "optimizer", (json_int_t)c->state, "activations",
        (json_int_t)c->activations, "other", (json_int_t)c->other, "epoch_batches",
        (json_int_t)e.batches, "epoch_tokens", e.tokens, "steps", (json_int_t)plan->options.steps,
        "step_seconds", step, "step_tokens", tokens, "step_flops", m->flops / timed, "run_seconds",
        step * (double)plan->batches / (double)plan->batches_of_full_step));
}

int wg__dry_run(wg__dry_run_plan *plan) {
    measurement m = {0};
    costs found = {0};
    if (run_steps(plan, &m, &found) < 0)
        return wg__cli_fail_pending();
    (plan->json ? print_json : print_text)(plan, &m, &found);
    return 0;
}
