/* Adam   (Kingma & Ba 2015, algorithm 1) and AdamW   (Loshchilov & Hutter 2019, algorithm 2): they
 * differ in where the decay goes in. */
#include "optim/internal.h"

#include <math.h>

int wg__adam_prepare(wg_optimizer *optimizer, wg__optimizer_entry *entry) {
    (void)optimizer;
    if (wg__optimizer_add_state_like(entry, "exp_avg") < 0)
        return -1;
    return wg__optimizer_add_state_like(entry, "exp_avg_sq");
}

wg__adam_rates wg__adamw_rates(const wg_adamw_options *options, const wg_optimizer *optimizer,
                               double learning_rate) {
    double t = (double)optimizer->steps;
    return (wg__adam_rates){
        .gradient_scale = optimizer->gradient_scale,
        .beta1 = options->beta1,
        .beta2 = options->beta2,
        .root_scale = 1 / sqrt(1 - pow(options->beta2, t)),
        .eps = options->eps,
        .step_size = learning_rate / (1 - pow(options->beta1, t)),
        .keep = 1 - learning_rate * options->weight_decay,
    };
}

void wg__adam_update_chunk(const wg_optimizer *optimizer, const wg__optimizer_chunk *chunk,
                           const wg__adam_rates *rates) {
    const wg__optimizer_entry *entry = chunk->entry;
    wg__adam_rates own = *rates;
    if (entry->no_decay) {
        own.keep = 1;
        own.coupled_decay = 0;
    }
    wg__optimizer_loops_of(optimizer, entry)
        ->adam(chunk->end - chunk->begin, &own, wg__entry_gradient(entry, chunk->begin),
               wg__entry_weight(entry, chunk->begin), wg__entry_state(entry, 0, chunk->begin),
               wg__entry_state(entry, 1, chunk->begin));
}

typedef struct update {
    const wg_optimizer *optimizer;
    wg__adam_rates rates;
} update;

static void update_chunk(const wg__optimizer_chunk *chunk, void *context) {
    const update *step = context;
    wg__adam_update_chunk(step->optimizer, chunk, &step->rates);
}

static void step_adamw(wg_optimizer *optimizer, double learning_rate) {
    update step = {optimizer, wg__adamw_rates(&optimizer->options.adam, optimizer, learning_rate)};
    wg__optimizer_walk(optimizer, update_chunk, &step);
}

static void step_adam(wg_optimizer *optimizer, double learning_rate) {
    update step = {optimizer, wg__adamw_rates(&optimizer->options.adam, optimizer, learning_rate)};
    step.rates.keep = 1;
    step.rates.coupled_decay = optimizer->options.adam.weight_decay;
    wg__optimizer_walk(optimizer, update_chunk, &step);
}

static const wg__optimizer_rule adamw = {.prepare = wg__adam_prepare, .step = step_adamw};
static const wg__optimizer_rule adam = {.prepare = wg__adam_prepare, .step = step_adam};

int wg__adamw_fill_options(const char *where, wg_adamw_options *options) {
    if (options->beta1 == 0)
        options->beta1 = 0.9;
    if (options->beta2 == 0)
        options->beta2 = 0.999;
    if (options->eps == 0)
        options->eps = 1e-8;
    if (wg__check_fraction(where, "beta1", options->beta1) < 0 ||
        wg__check_fraction(where, "beta2", options->beta2) < 0 ||
        wg__check_positive(where, "eps", options->eps) < 0)
        return -1;
    return wg__check_not_negative(where, "weight_decay", options->weight_decay);
}

static wg_optimizer *make(const char *where, const wg__optimizer_rule *rule,
                          const wg_adamw_options *options) {
    wg_adamw_options chosen = options ? *options : (wg_adamw_options){0};
    if (wg__adamw_fill_options(where, &chosen) < 0)
        return NULL;
    wg_optimizer *optimizer = wg__optimizer_new(rule);
    if (optimizer)
        optimizer->options.adam = chosen;
    return optimizer;
}

wg_optimizer *wg_adamw_new(const wg_adamw_options *options) {
    return make("adamw_new", &adamw, options);
}

wg_optimizer *wg_adam_new(const wg_adam_options *options) {
    return make("adam_new", &adam, options);
}
