/* Lion   (Chen et al. 2023, algorithm 2). */
#include "optim/internal.h"

static int prepare(wg_optimizer *optimizer, wg__optimizer_entry *entry) {
    (void)optimizer;
    return wg__optimizer_add_state_like(entry, "exp_avg");
}

typedef struct update {
    const wg_optimizer *optimizer;
    wg__lion_rates rates;
} update;

static void update_chunk(const wg__optimizer_chunk *chunk, void *context) {
    const update *step = context;
    const wg__optimizer_entry *entry = chunk->entry;
    wg__lion_rates rates = step->rates;
    if (entry->no_decay)
        rates.keep = 1;
    wg__optimizer_loops_of(step->optimizer, entry)
        ->lion(chunk->end - chunk->begin, &rates, wg__entry_gradient(entry, chunk->begin),
               wg__entry_weight(entry, chunk->begin), wg__entry_state(entry, 0, chunk->begin));
}

static void step(wg_optimizer *optimizer, double learning_rate) {
    const wg_lion_options *options = &optimizer->options.lion;
    update step = {optimizer,
                   {.gradient_scale = optimizer->gradient_scale,
                    .beta1 = options->beta1,
                    .beta2 = options->beta2,
                    .keep = 1 - learning_rate * options->weight_decay,
                    .step_size = learning_rate}};
    wg__optimizer_walk(optimizer, update_chunk, &step);
}

static const wg__optimizer_rule lion = {.prepare = prepare, .step = step};

wg_optimizer *wg_lion_new(const wg_lion_options *options) {
    static const char where[] = "lion_new";
    wg_lion_options chosen = options ? *options : (wg_lion_options){0};
    if (chosen.beta1 == 0)
        chosen.beta1 = 0.9;
    if (chosen.beta2 == 0)
        chosen.beta2 = 0.99;
    if (wg__check_fraction(where, "beta1", chosen.beta1) < 0 ||
        wg__check_fraction(where, "beta2", chosen.beta2) < 0 ||
        wg__check_not_negative(where, "weight_decay", chosen.weight_decay) < 0)
        return NULL;
    wg_optimizer *optimizer = wg__optimizer_new(&lion);
    if (optimizer)
        optimizer->options.lion = chosen;
    return optimizer;
}
