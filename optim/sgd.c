/* Stochastic gradient descent, with momentum as PyTorch has it: the learning rate is not in the
 * momentum, so that a change of it acts at once.   (Sutskever et al. 2013, for Nesterov's) */
#include "optim/internal.h"

static int prepare(wg_optimizer *optimizer, wg__optimizer_entry *entry) {
    if (optimizer->options.sgd.momentum == 0)
        return 0;
    return wg__optimizer_add_state_like(entry, "momentum_buffer");
}

typedef struct update {
    const wg_optimizer *optimizer;
    wg__sgd_rates rates;
} update;

static void update_chunk(const wg__optimizer_chunk *chunk, void *context) {
    const update *step = context;
    const wg__optimizer_entry *entry = chunk->entry;
    const wg__optimizer_loops *loops = wg__optimizer_loops_of(step->optimizer, entry);
    wg__sgd_rates rates = step->rates;
    if (entry->no_decay)
        rates.decay = 0;
    int64_t count = chunk->end - chunk->begin;
    const void *gradient = wg__entry_gradient(entry, chunk->begin);
    void *weight = wg__entry_weight(entry, chunk->begin);
    if (entry->state_count)
        loops->sgd_momentum(count, &rates, gradient, weight,
                            wg__entry_state(entry, 0, chunk->begin));
    else
        loops->sgd(count, &rates, gradient, weight);
}

static void step(wg_optimizer *optimizer, double learning_rate) {
    const wg_sgd_options *options = &optimizer->options.sgd;
    update step = {optimizer,
                   {.gradient_scale = optimizer->gradient_scale,
                    .decay = options->weight_decay,
                    .momentum = options->momentum,
                    .direct = options->nesterov ? 1 : 0,
                    .along = options->nesterov ? options->momentum : 1,
                    .step_size = learning_rate}};
    wg__optimizer_walk(optimizer, update_chunk, &step);
}

static const wg__optimizer_rule sgd = {.prepare = prepare, .step = step};

wg_optimizer *wg_sgd_new(const wg_sgd_options *options) {
    static const char where[] = "sgd_new";
    wg_sgd_options chosen = options ? *options : (wg_sgd_options){0};
    if (chosen.momentum != 0 && wg__check_fraction(where, "momentum", chosen.momentum) < 0)
        return NULL;
    if (wg__check_not_negative(where, "weight_decay", chosen.weight_decay) < 0)
        return NULL;
    if (chosen.nesterov && chosen.momentum == 0) {
        wg_fail(WG_ERROR_ARGUMENT, where, "Nesterov's step wants a momentum");
        return NULL;
    }
    wg_optimizer *optimizer = wg__optimizer_new(&sgd);
    if (optimizer)
        optimizer->options.sgd = chosen;
    return optimizer;
}
