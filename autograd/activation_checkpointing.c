/* Activation checkpointing: functions that run twice. graph.c keeps the calls of their regions. */
#include "autograd/internal.h"

#include <string.h>

int wg__call_function(wg_function function, void *context, int input_count,
                      wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                      const char *where) {
    memset(outputs, 0, (size_t)output_count * sizeof *outputs);
    if (function(input_count, inputs, output_count, outputs, context) < 0)
        return wg_error_pending()
                   ? -1
                   : wg_fail(WG_ERROR_ARGUMENT, where, "the function failed without an error");
    for (int j = 0; j < output_count; j++)
        if (!outputs[j])
            return wg_error_pending() ? -1
                                      : wg_fail(WG_ERROR_ARGUMENT, where,
                                                "the function left its output %d NULL", j);
    return 0;
}

void wg__escape_results(int status, int count, wg_tensor **results) {
    for (int i = 0; results && i < count; i++)
        results[i] = status == 0 ? wg_scope_escape(results[i]) : NULL;
}

static wg__region *region_new(wg_function function, void *context, int input_count,
                              wg_tensor *const *inputs, int output_count,
                              const wg_activation_checkpoint_options *options) {
    wg_generator *const usual = wg_default_generator();
    const bool own = options && options->generators;
    wg_generator *const *generators = own ? options->generators : &usual;
    const int count = own ? options->generator_count : 1;
    wg__region *region = wg__calloc(1, sizeof *region);
    if (!region)
        return NULL;
    atomic_init(&region->refcount, 1);
    region->function = function;
    region->output_count = output_count;
    region->inputs = wg__calloc((size_t)input_count + 1, sizeof *region->inputs);
    region->generators = wg__calloc((size_t)count + 1, sizeof *region->generators);
    region->input_count = region->inputs ? input_count : 0;
    region->generator_count = count;
    bool is_whole = region->inputs && region->generators;
    for (int i = 0; i < region->input_count && is_whole; i++)
        if (inputs[i]) {
            region->inputs[i] =
                (wg__saved){wg__tensor_reference(inputs[i], false), wg__tensor_version(inputs[i])};
            is_whole = region->inputs[i].tensor != NULL;
        }
    region->context = context;
    if (is_whole && options && options->context_size > 0) {
        region->context = region->own_context = wg__alloc(options->context_size);
        is_whole = region->own_context != NULL;
    }
    if (!is_whole) {
        wg__region_release(region);
        return NULL;
    }
    if (region->own_context)
        memcpy(region->own_context, context, options->context_size);
    for (int k = 0; k < count; k++)
        region->generators[k] = (wg__region_generator){generators[k], *generators[k]};
    return region;
}

/* ---- The first run ---- */

static int run_function(const wg__region *region, wg_tensor **outputs) {
    wg_tensor **inputs = wg__calloc((size_t)region->input_count + 1, sizeof *inputs);
    if (!inputs)
        return -1;
    for (int i = 0; i < region->input_count; i++)
        inputs[i] = region->inputs[i].tensor;
    int status = wg__call_function(region->function, region->context, region->input_count, inputs,
                                   region->output_count, outputs, "activation_checkpoint");
    wg__free(inputs);
    return status;
}

int wg_activation_checkpoint(wg_function function, void *context, int input_count,
                             wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                             const wg_activation_checkpoint_options *options) {
    const bool plain = !wg_grad_enabled() || wg__active_region.region || wg__innermost_level;
    wg_tensor **found = wg__calloc((size_t)output_count + 1, sizeof *found);
    wg__region *region = NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = found && !wg_error_pending() ? 0 : -1;
    if (status == 0 && plain)
        status = wg__call_function(function, context, input_count, inputs, output_count, found,
                                   "activation_checkpoint");
    if (status == 0 && !plain) {
        region = region_new(function, context, input_count, inputs, output_count, options);
        status = region ? 0 : -1;
    }
    if (region) {
        wg__region *outer = wg__active_region.region;
        wg__active_region.region = region;
        region->matmul_dtype = wg__matmul_dtype();
        status = run_function(region, found);
        wg__active_region.region = outer;
    }
    /* Aliases, because the function may have returned handles that it does not own. */
    for (int j = 0; j < output_count && status == 0; j++) {
        found[j] = wg_alias(found[j]);
        status = found[j] ? 0 : -1;
    }
    wg__escape_results(status, output_count, found);
    memset(outputs, 0, (size_t)output_count * sizeof *outputs);
    if (found)
        memcpy(outputs, found, (size_t)output_count * sizeof *outputs);
    wg_scope_end(&scope, NULL);
    if (region)
        wg__region_release(region);
    wg__free(found);
    return status;
}

/* ---- The second run ---- */

static void swap_generators(const wg__region *region, wg_generator *states) {
    for (int k = 0; k < region->generator_count; k++) {
        wg_generator now = *region->generators[k].generator;
        *region->generators[k].generator = states[k];
        states[k] = now;
    }
}

int wg__region_run_again(const wg_node *node) {
    wg__region *region = node->region;
    if (region == wg__active_region.region)
        return wg_fail(
            WG_ERROR_GRADIENT, "activation_checkpoint",
            "a function under wg_activation_checkpoint must not differentiate what it computes; "
            "%s was computed in it",
            node->op->name);
    wg_tensor **found = wg__calloc((size_t)region->output_count + 1, sizeof *found);
    wg_generator *states = wg__calloc((size_t)region->generator_count + 1, sizeof *states);
    int status = -1;
    if (found && states) {
        for (int k = 0; k < region->generator_count; k++)
            states[k] = region->generators[k].before;
        const wg__region_run outer = wg__active_region;
        const bool recording = wg_set_grad_enabled(true);
        swap_generators(region, states);
        wg__active_region = (wg__region_run){.region = region, .again = true};
        const wg_dtype matmul_dtype = wg_set_matmul_dtype(region->matmul_dtype);
        wg_scope scope;
        wg_scope_begin(&scope);
        status = 0;
        for (int i = 0; i < region->input_count && status == 0; i++)
            if (wg__tensor_version(region->inputs[i].tensor) != region->inputs[i].version)
                status = wg_fail(WG_ERROR_GRADIENT, "activation_checkpoint",
                                 "input %d was written in place between the first run and the "
                                 "second; write to a clone, or run backward first",
                                 i);
        if (status == 0)
            status = run_function(region, found);
        if (status == 0 && wg__active_region.next < region->count)
            status = wg_fail(
                WG_ERROR_GRADIENT, "activation_checkpoint",
                "the second run of a checkpointed function recorded %lld calls, the first %lld",
                (long long)wg__active_region.next, (long long)region->count);
        wg_scope_end(&scope, NULL);
        wg_set_matmul_dtype(matmul_dtype);
        wg__active_region = outer;
        swap_generators(region, states);
        wg_set_grad_enabled(recording);
        region->filled = status == 0;
        for (int64_t c = 0; c < region->count && status < 0; c++)
            if (region->calls[c].node)
                region->calls[c].node->lacks |= wg__node_drop_saved(region->calls[c].node);
    }
    wg__free(found);
    wg__free(states);
    return status;
}
