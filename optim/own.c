/* Optimizers by a rule of the caller's: see wg_update_rule. */
#include "optim/internal.h"

#include <string.h>

#include "tensor/ops.h"

static int state_count(const wg_update_rule *rule) {
    int count = 0;
    while (count < WG_RULE_STATES && rule->states[count])
        count++;
    return count;
}

static int prepare(wg_optimizer *optimizer, wg__optimizer_entry *entry) {
    const wg_update_rule *rule = &optimizer->options.own.rule;
    for (int i = 0; i < state_count(rule); i++)
        if (wg__optimizer_add_state_like(entry, rule->states[i]) < 0)
            return -1;
    return 0;
}

/* The rule sees whole tensors. */
static bool is_whole(const wg_optimizer *optimizer, const wg__optimizer_entry *entry) {
    (void)optimizer, (void)entry;
    return true;
}

/* The gradient that the walk found, as a tensor, clipped. A sharded optimizer has its own. */
static wg_tensor *gradient_of(const wg_optimizer *optimizer, const wg__optimizer_entry *entry) {
    const wg_tensor *parameter = entry->parameter;
    wg_tensor *gradient =
        wg_from_blob(entry->dtype, wg_tensor_ndim(parameter), wg_tensor_shape(parameter), NULL,
                     (void *)entry->gradient, NULL, NULL);
    return optimizer->gradient_scale == 1 ? gradient
                                          : wg_mul_scalar(gradient, optimizer->gradient_scale);
}

static int step_one(const wg_optimizer *optimizer, const wg__optimizer_entry *entry,
                    double learning_rate) {
    const wg_update_rule *rule = &optimizer->options.own.rule;
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_parameter_step step = {.name = entry->name,
                                    .parameter = entry->parameter,
                                    .gradient = gradient_of(optimizer, entry),
                                    .states = entry->states,
                                    .learning_rate = learning_rate * entry->rate,
                                    .weight_decay = wg__entry_decay(entry, rule->weight_decay),
                                    .step = optimizer->steps};
    int status = step.gradient ? rule->step(optimizer->options.own.context, &step) : -1;
    wg_scope_end(&scope, NULL);
    if (status < 0 && !wg_error_pending())
        wg_fail(WG_ERROR_STATE, "optimizer_step", "the update rule failed at \"%s\"", entry->name);
    return status < 0 || wg_error_pending() ? -1 : 0;
}

static int step(wg_optimizer *optimizer, double learning_rate) {
    const bool recorded = wg_set_grad_enabled(false);
    int status = 0;
    for (int64_t i = optimizer->first; status == 0 && i < optimizer->last; i++) {
        const wg__optimizer_entry *entry = &optimizer->entries[i];
        if (entry->gradient && entry->end > entry->begin)
            status = step_one(optimizer, entry, learning_rate);
    }
    wg_set_grad_enabled(recorded);
    return status;
}

static const wg__optimizer_rule own = {.prepare = prepare, .step = step, .is_whole = is_whole};

/* Names become parts of paths in checkpoints, which must tell the states apart. */
static int check_states(const wg_update_rule *rule) {
    for (int i = 0; i < state_count(rule); i++) {
        const char *name = rule->states[i];
        if (!*name || strpbrk(name, "/."))
            return wg_fail(WG_ERROR_ARGUMENT, "optimizer_from_rule",
                           "a state is called \"%s\"; wanted a name without / and .", name);
        for (int k = 0; k < i; k++)
            if (strcmp(name, rule->states[k]) == 0)
                return wg_fail(WG_ERROR_ARGUMENT, "optimizer_from_rule",
                               "two states are called \"%s\"", name);
    }
    return 0;
}

wg_optimizer *wg_optimizer_from_rule(const wg_update_rule *rule, void *context) {
    static const char where[] = "optimizer_from_rule";
    if (!rule || !rule->step) {
        wg_fail(WG_ERROR_ARGUMENT, where, "the rule has no function `step'");
        return NULL;
    }
    if (wg__check_not_negative(where, "weight_decay", rule->weight_decay) < 0 ||
        check_states(rule) < 0)
        return NULL;
    wg_optimizer *optimizer = wg__optimizer_new(&own);
    if (optimizer) {
        optimizer->options.own.rule = *rule;
        optimizer->options.own.context = context;
    }
    return optimizer;
}
