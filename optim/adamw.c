/* AdamW   (Loshchilov & Hutter 2019, algorithm 2, with the bias corrections of Kingma & Ba 2015).
 */
#include "optim/internal.h"

#include <math.h>

typedef struct update {
    const wg__optimizer_kernels *kernels;
    wg__adamw_rates rates;
    double keep; /* 1 - lr decay, of the entries that decay */
} update;

static void update_chunk(const wg__optimizer_chunk *chunk, void *context) {
    const update *step = context;
    const wg__optimizer_entry *entry = chunk->entry;
    wg__adamw_rates rates = step->rates;
    rates.keep = entry->no_decay ? 1 : step->keep;
    int64_t count = chunk->end - chunk->begin, at = chunk->begin;
    void *weight = wg_tensor_data(entry->parameter);
    void *mean = wg_tensor_data(entry->states[0]), *square = wg_tensor_data(entry->states[1]);
    if (wg_tensor_dtype(entry->parameter) == WG_F64)
        step->kernels->adamw_f64(count, &rates, (const double *)entry->gradient + at,
                                 (double *)weight + at, (double *)mean + at, (double *)square + at);
    else
        step->kernels->adamw_f32(count, &rates, (const float *)entry->gradient + at,
                                 (float *)weight + at, (float *)mean + at, (float *)square + at);
}

static void step(wg_optimizer *optimizer, double learning_rate) {
    const wg_adamw_options *options = &optimizer->options;
    double t = (double)optimizer->steps;
    update step = {.kernels = optimizer->kernels,
                   .rates = {.gradient_scale = optimizer->gradient_scale,
                             .beta1 = options->beta1,
                             .beta2 = options->beta2,
                             .root_scale = 1 / sqrt(1 - pow(options->beta2, t)),
                             .eps = options->eps,
                             .step_size = learning_rate / (1 - pow(options->beta1, t))},
                   .keep = 1 - learning_rate * options->weight_decay};
    wg__optimizer_walk(optimizer, update_chunk, &step);
}

static const wg__optimizer_rule adamw = {
    .state_count = 2,
    .state_names = {"exp_avg", "exp_avg_sq"},
    .step = step,
};

/* Negated comparisons, so that NaN is refused. */
static int check_options(const wg_adamw_options *options) {
    if (!(options->beta1 > 0 && options->beta1 < 1))
        return wg_fail(WG_ERROR_ARGUMENT, "adamw_new", "beta1 is %g; wanted between 0 and 1",
                       options->beta1);
    if (!(options->beta2 > 0 && options->beta2 < 1))
        return wg_fail(WG_ERROR_ARGUMENT, "adamw_new", "beta2 is %g; wanted between 0 and 1",
                       options->beta2);
    if (!(options->eps > 0) || !isfinite(options->eps))
        return wg_fail(WG_ERROR_ARGUMENT, "adamw_new", "eps is %g; wanted above 0", options->eps);
    if (!(options->weight_decay >= 0) || !isfinite(options->weight_decay))
        return wg_fail(WG_ERROR_ARGUMENT, "adamw_new", "weight_decay is %g; wanted 0 or more",
                       options->weight_decay);
    return 0;
}

wg_optimizer *wg_adamw_new(const wg_adamw_options *options) {
    wg_adamw_options chosen = options ? *options : (wg_adamw_options){0};
    if (chosen.beta1 == 0)
        chosen.beta1 = 0.9;
    if (chosen.beta2 == 0)
        chosen.beta2 = 0.999;
    if (chosen.eps == 0)
        chosen.eps = 1e-8;
    if (check_options(&chosen) < 0)
        return NULL;
    wg_optimizer *optimizer = wg__optimizer_new(&adamw);
    if (optimizer)
        optimizer->options = chosen;
    return optimizer;
}
