/* A training of random tokens: see workload.h. */
#include "bench/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define WHERE "workload"

/* ---- Which one ---- */

static bool has_preset(const wg__workload_kind *kind, const char *name) {
    for (int i = 0; kind->preset_name(i); i++)
        if (strcmp(kind->preset_name(i), name) == 0)
            return true;
    return false;
}

static int fail_to_find(const char *name) {
    char kinds[128] = "";
    size_t used = 0;
    for (const wg__workload_kind *kind = wg__workload_kinds; kind->name; kind++)
        used += (size_t)snprintf(kinds + used, sizeof kinds - used, " %s", kind->name);
    return wg_fail(WG_ERROR_ARGUMENT, "bench",
                   "there is no model '%s'; kinds are%s, or name a "
                   "preset of one",
                   name, kinds);
}

static int find(wg__workload *w) {
    for (const wg__workload_kind *kind = wg__workload_kinds; kind->name; kind++) {
        const bool by_name = strcmp(kind->name, w->model) == 0;
        if (!by_name && !has_preset(kind, w->model))
            continue;
        w->kind = kind;
        if (!w->preset)
            w->preset = by_name ? kind->preset : w->model;
        return 0;
    }
    return fail_to_find(w->model);
}

/* ---- Usual sizes: those that peers are measured with, and small ones ---- */

static void choose_sizes(wg__workload *w) {
    const struct {
        const char *preset;
        int64_t batch, sequence, vocabulary;
    } usual[] = {
        {"gpt2-124m", 4, 64, 50257},         {"bert-mini", 32, 128, 30522},
        {"bert-base", 4, 128, 30522},        {"llama-15m", 8, 256, 32000},
        {"llama-110m", 1, 256, 32000},       {"llama-260k", 8, 256, 512},
        {"transformer-base", 16, 32, 10000}, {"glm-small", 8, 256, 30522},
        {"t5-small", 16, 32, 32128},         {"mlp-32", 32, 1, 10},
        {w->preset, 8, 128, 30522}, /* any other */
    };
    size_t i = 0;
    while (strcmp(usual[i].preset, w->preset) != 0)
        i++;
    w->batch = w->batch ? w->batch : usual[i].batch;
    w->sequence = w->sequence ? w->sequence : usual[i].sequence;
    w->vocabulary = w->vocabulary ? w->vocabulary : usual[i].vocabulary;
}

/* ---- Making it ---- */

static int make_optimizer(wg__workload *w) {
    w->optimizer = wg_adamw_new(&(wg_adamw_options){.weight_decay = 0.01});
    return wg_optimizer_add_module(w->optimizer, w->module);
}

int wg__workload_begin(wg__workload *w) {
    if (find(w) < 0)
        return -1;
    choose_sizes(w);
    wg_scope_begin(&w->scope);
    if (w->kind->begin(w) == 0 && !wg_error_pending() && make_optimizer(w) == 0) {
        wg_module_checkpoint_activations(w->module, w->recompute);
        return 0;
    }
    wg__workload_end(w);
    return -1;
}

void wg__workload_end(wg__workload *w) {
    wg_optimizer_free(w->optimizer);
    wg_module_free(w->module);
    free(w->parts);
    wg_scope_end(&w->scope, NULL);
}

double wg__workload_step(wg__workload *w) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *loss = w->kind->loss(w);
    wg_optimizer_step_begin(w->optimizer, WG__WORKLOAD_RATE, NULL);
    wg_backward(loss, NULL);
    wg_optimizer_step_end(w->optimizer);
    const double value = wg_item(loss);
    wg_scope_end(&scope, NULL);
    return wg_error_pending() ? NAN : value;
}
