/* Optimizers by their names. */
#include "optim/optimizer.h"

#include <string.h>

static wg_optimizer *new_sgd(const wg_optimizer_choice *choice) {
    double momentum = choice->momentum == 0 ? 0.9 : choice->momentum;
    return wg_sgd_new(&(wg_sgd_options){
        .momentum = momentum, .weight_decay = choice->weight_decay, .nesterov = true});
}

static wg_adamw_options adam_options(const wg_optimizer_choice *choice) {
    return (wg_adamw_options){choice->beta1, choice->beta2, choice->eps, choice->weight_decay};
}

static wg_optimizer *new_adam(const wg_optimizer_choice *choice) {
    wg_adam_options options = adam_options(choice);
    return wg_adam_new(&options);
}

static wg_optimizer *new_adamw(const wg_optimizer_choice *choice) {
    wg_adamw_options options = adam_options(choice);
    return wg_adamw_new(&options);
}

static wg_optimizer *new_adafactor(const wg_optimizer_choice *choice) {
    return wg_adafactor_new(&(wg_adafactor_options){.weight_decay = choice->weight_decay});
}

static wg_optimizer *new_lion(const wg_optimizer_choice *choice) {
    return wg_lion_new(&(wg_lion_options){choice->beta1, choice->beta2, choice->weight_decay});
}

static wg_optimizer *new_muon(const wg_optimizer_choice *choice) {
    return wg_muon_new(&(wg_muon_options){.momentum = choice->momentum,
                                          .weight_decay = choice->weight_decay,
                                          .match_adamw = true,
                                          .adamw = adam_options(choice)});
}

static const struct kind {
    const char *name;
    wg_optimizer *(*make)(const wg_optimizer_choice *choice);
} kinds[] = {
    {"sgd", new_sgd},   {"adam", new_adam}, {"adamw", new_adamw}, {"adafactor", new_adafactor},
    {"lion", new_lion}, {"muon", new_muon},
};

static const struct kind *find(const char *name) {
    for (size_t i = 0; name && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

bool wg_optimizer_known(const char *name) {
    return find(name) != NULL;
}

wg_optimizer *wg_optimizer_new(const wg_optimizer_choice *choice) {
    const struct kind *kind = find(choice->name);
    if (kind)
        return kind->make(choice);
    wg_fail(WG_ERROR_NOT_FOUND, "optimizer",
            "there is no '%s'; sgd, adam, adamw, adafactor, lion and muon are there",
            choice->name ? choice->name : "");
    return NULL;
}
