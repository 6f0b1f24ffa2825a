/* The parameters and state of an optimizer, and the parallel loop of a step over them.
 *
 * Chunks of WG__GRAIN elements are numbered through all parameters,
 *
 *     parameter 0 |0|1|2|   parameter 1 |3|   parameter 2 |4|   parameter 3 |5|6|
 *
 * so that one parallel loop covers large and small parameters alike. Sums over parameters are added
 * up chunk by chunk: they have the same bits at any number of threads, and whether a loop covers
 * all parameters or a single one. */
#include "config.h"

#include "optim/internal.h"

#include "base/array.h"
#include "tensor/internal.h"
#include "tensor/simd/simd.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

typedef struct walk_context {
    const wg_optimizer *optimizer;
    int64_t first_chunk; /* of the walk */
    wg__optimizer_body body;
    void *context;
} walk_context;

static void walk_range(int64_t first, int64_t last, void *context) {
    const walk_context *walk = context;
    for (int64_t i = first; i < last; i++) {
        int64_t chunk = walk->first_chunk + i;
        int64_t low = walk->optimizer->first, high = walk->optimizer->last;
        while (high - low > 1) {
            int64_t middle = low + (high - low) / 2;
            if (walk->optimizer->entries[middle].first_chunk <= chunk)
                low = middle;
            else
                high = middle;
        }
        const wg__optimizer_entry *entry = &walk->optimizer->entries[low];
        if (!entry->gradient)
            continue;
        int64_t begin = (chunk - entry->first_chunk) * WG__GRAIN;
        if (begin < entry->begin || begin >= entry->end) /* another rank's */
            continue;
        int64_t end = begin + WG__GRAIN < entry->end ? begin + WG__GRAIN : entry->end;
        walk->body(&(wg__optimizer_chunk){entry, begin, end, chunk}, walk->context);
    }
}

void wg__optimizer_walk(wg_optimizer *optimizer, wg__optimizer_body body, void *context) {
    if (optimizer->first == optimizer->last)
        return;
    const wg__optimizer_entry *entries = optimizer->entries, *final = &entries[optimizer->last - 1];
    walk_context walk = {optimizer, entries[optimizer->first].first_chunk, body, context};
    const int64_t final_chunks = wg__ceil_divide(wg_tensor_count(final->parameter), WG__GRAIN);
    int64_t chunks = final->first_chunk + final_chunks - walk.first_chunk, elements = 0;
    for (int64_t i = optimizer->first; i < optimizer->last; i++)
        elements += wg_tensor_count(entries[i].parameter);
    /* Chunks of small parameters are short, so a thread takes several at a time. */
    wg__parallel_for(chunks, 1 + chunks * (WG__GRAIN - 1) / (elements + 1), walk_range, &walk);
}

const void *wg__entry_gradient(const wg__optimizer_entry *entry, int64_t at) {
    const size_t offset = (size_t)(at - entry->begin) * wg_dtype_size(entry->dtype);
    return (const char *)entry->gradient + offset;
}

void *wg__entry_weight(const wg__optimizer_entry *entry, int64_t at) {
    return (char *)wg_tensor_data(entry->parameter) + (size_t)at * wg_dtype_size(entry->dtype);
}

void *wg__entry_state(const wg__optimizer_entry *entry, int state, int64_t at) {
    const size_t offset = (size_t)(at - entry->begin) * wg_dtype_size(entry->dtype);
    return (char *)wg_tensor_data(entry->states[state]) + offset;
}

int wg__check_option(const char *where, const char *name, double value, wg__range range) {
    static const char *const wanted[] = {[WG__RANGE_FRACTION] = "from 0 to below 1",
                                         [WG__RANGE_POSITIVE] = "above 0",
                                         [WG__RANGE_NOT_NEGATIVE] = "0 or more"};
    bool fits = isfinite(value) && value >= 0;
    fits = fits && (range != WG__RANGE_FRACTION || value < 1) &&
           (range != WG__RANGE_POSITIVE || value > 0);
    if (fits)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, where, "%s is %g; wanted %s", name, value, wanted[range]);
}

int wg__optimizer_check_outside(const wg_optimizer *optimizer, const char *where) {
    return optimizer->in_backward.open
               ? wg_fail(WG_ERROR_STATE, where,
                         "a step in backward is under way; wg_optimizer_step_end comes first")
               : 0;
}

void wg__optimizer_leave_backward(wg_optimizer *optimizer) {
    for (int64_t i = 0; i < optimizer->count && optimizer->in_backward.open; i++) {
        wg__optimizer_entry *entry = &optimizer->entries[i];
        if (entry->hook)
            wg_remove_hook(entry->parameter, entry->hook);
        entry->hook = 0;
    }
    optimizer->in_backward.open = false;
}

const wg__optimizer_kernels *wg__optimizer_kernels_for_cpu(void) {
#ifdef WG_SIMD_X86
    switch (wg__simd_level_in_use()) {
    case WG__SIMD_V4:
        return &wg__optimizer_kernels_v4;
    case WG__SIMD_V3:
        return &wg__optimizer_kernels_v3;
    case WG__SIMD_BASE:
        break;
    }
#endif
    return &wg__optimizer_kernels_base;
}

wg_optimizer *wg__optimizer_new(const wg__optimizer_rule *rule, const void *options, size_t size) {
    wg_optimizer *optimizer = wg__calloc(1, sizeof *optimizer);
    if (!optimizer)
        return NULL;
    optimizer->rule = rule;
    optimizer->gradient_scale = 1;
    memcpy(&optimizer->options, options, size);
    return optimizer;
}

static void free_entry(wg__optimizer_entry *entry) {
    wg__free(entry->name);
    for (int i = 0; i < WG__MAX_STATES; i++)
        wg_release(entry->states[i]);
}

void wg_optimizer_free(wg_optimizer *optimizer) {
    if (!optimizer)
        return;
    wg__optimizer_leave_backward(optimizer);
    for (int64_t i = 0; i < optimizer->count; i++)
        free_entry(&optimizer->entries[i]);
    for (int64_t i = 0; i < optimizer->group_count; i++)
        wg__free((char *)optimizer->groups[i].group.names);
    wg__free(optimizer->groups);
    wg__free(optimizer->entries);
    wg__free(optimizer->partial_norms);
    wg__free(optimizer->scratch);
    wg__optimizer_shard_clear(optimizer);
    wg__free(optimizer);
}

int wg__optimizer_reserve_scratch(wg_optimizer *optimizer, size_t size) {
    if (size <= optimizer->scratch_size)
        return 0;
    void *larger = wg__alloc(size);
    if (!larger) /* the old scratch still serves the parameters that were added before */
        return -1;
    wg__free(optimizer->scratch);
    optimizer->scratch = larger;
    optimizer->scratch_size = size;
    return 0;
}

int wg__optimizer_add_state(wg__optimizer_entry *entry, const char *slot, int ndim,
                            const int64_t *shape) {
    wg_spec *spec = &entry->state_specs[entry->state_count];
    *spec = (wg_spec){.dtype = entry->dtype, .ndim = ndim};
    memcpy(spec->shape, shape, (size_t)ndim * sizeof *shape);
    const int64_t stepped = entry->end - entry->begin;
    const bool is_all = stepped == wg_tensor_count(entry->parameter);
    wg_tensor *state =
        wg_keep(is_all ? wg_zeros(entry->dtype, ndim, shape) : wg_zeros(entry->dtype, 1, &stepped));
    if (!state)
        return -1;
    entry->slots[entry->state_count] = slot;
    entry->states[entry->state_count++] = state;
    return 0;
}

int wg__optimizer_add_states(wg__optimizer_entry *entry, const char *const *slots) {
    const wg_tensor *parameter = entry->parameter;
    for (int i = 0; i < WG__MAX_STATES && slots[i]; i++)
        if (wg__optimizer_add_state(entry, slots[i], wg_tensor_ndim(parameter),
                                    wg_tensor_shape(parameter)) < 0)
            return -1;
    return 0;
}

int wg__optimizer_prepare(wg_optimizer *optimizer, wg__optimizer_entry *entry) {
    const wg__optimizer_rule *rule = optimizer->rule;
    if (wg__optimizer_add_states(entry, rule->states) < 0)
        return -1;
    return rule->prepare ? rule->prepare(optimizer, entry) : 0;
}

static int check_parameter(const wg_optimizer *optimizer, const char *name,
                           const wg_tensor *parameter) {
    wg_dtype dtype = wg_tensor_dtype(parameter);
    if (wg__optimizer_check_outside(optimizer, "optimizer_add") < 0)
        return -1;
    if (!wg_requires_grad(parameter))
        return wg_fail(WG_ERROR_GRADIENT, "optimizer_add",
                       "\"%s\" requires no gradient; call wg_set_requires_grad first", name);
    if (wg__check_memory(parameter, "optimizer_add") < 0)
        return -1;
    if (dtype != WG_F32 && dtype != WG_F64)
        return wg_fail(WG_ERROR_DTYPE, "optimizer_add", "\"%s\" is %s; f32 and f64 can be stepped",
                       name, wg_dtype_name(dtype));
    if (!wg_tensor_is_contiguous(parameter))
        return wg_fail(WG_ERROR_ARGUMENT, "optimizer_add",
                       "\"%s\" is a strided view; add a contiguous tensor", name);
    for (int64_t i = 0; i < optimizer->count; i++) {
        if (strcmp(optimizer->entries[i].name, name) == 0)
            return wg_fail(WG_ERROR_ARGUMENT, "optimizer_add", "\"%s\" is here already", name);
        if (optimizer->entries[i].parameter == parameter)
            return wg_fail(WG_ERROR_ARGUMENT, "optimizer_add", "\"%s\" is here already, as \"%s\"",
                           name, optimizer->entries[i].name);
        if (wg__overlap_of(parameter, optimizer->entries[i].parameter) != WG__OVERLAP_NONE)
            return wg_fail(WG_ERROR_ARGUMENT, "optimizer_add",
                           "\"%s\" shares memory with \"%s\", and a step would write it twice; "
                           "add one tensor that has the elements of both",
                           name, optimizer->entries[i].name);
    }
    return 0;
}

int wg_optimizer_add_group(wg_optimizer *optimizer, const wg_parameter_group *group) {
    static const char where[] = "optimizer_add_group";
    if (!optimizer || !group || wg_error_pending())
        return -1;
    if (!group->names || !*group->names)
        return wg_fail(WG_ERROR_ARGUMENT, where, "the group has no pattern of names");
    if (optimizer->count > 0)
        return wg_fail(WG_ERROR_ARGUMENT, where,
                       "\"%s\" comes after %lld parameters; add groups before parameters",
                       group->names, (long long)optimizer->count);
    if (wg__check_option(where, "rate", group->rate, WG__RANGE_NOT_NEGATIVE) < 0 ||
        wg__check_option(where, "weight_decay", group->weight_decay, WG__RANGE_NOT_NEGATIVE) < 0)
        return -1;
    if (wg__reserve(&optimizer->groups, optimizer->group_count, &optimizer->group_capacity,
                    optimizer->group_count + 1, sizeof *optimizer->groups) < 0)
        return -1;
    wg__optimizer_group added = {.group = *group};
    added.group.names = wg__strdup(group->names);
    if (!added.group.names)
        return -1;
    optimizer->groups[optimizer->group_count++] = added;
    return 0;
}

int wg_optimizer_layer_decay(wg_optimizer *optimizer, const char *layers, int64_t count,
                             const char *below, double decay) {
    static const char where[] = "optimizer_layer_decay";
    char names[256];
    if (!optimizer || !layers || wg_error_pending())
        return -1;
    if (!(decay > 0 && decay <= 1))
        return wg_fail(WG_ERROR_ARGUMENT, where, "decay is %g; wanted above 0, at most 1", decay);
    if (count < 1 || strlen(layers) > sizeof names - 32)
        return wg_fail(WG_ERROR_ARGUMENT, where, "%lld layers below \"%.100s\"; wanted 1 or more",
                       (long long)count, layers);
    for (int64_t i = 0; i < count; i++) {
        snprintf(names, sizeof names, "%s.%lld.*", layers, (long long)i);
        const wg_parameter_group group = {.names = names, .rate = pow(decay, (double)(count - i))};
        if (wg_optimizer_add_group(optimizer, &group) < 0)
            return -1;
    }
    const wg_parameter_group lowest = {.names = below, .rate = pow(decay, (double)(count + 1))};
    return below ? wg_optimizer_add_group(optimizer, &lowest) : 0;
}

int wg__optimizer_check_groups(const wg_optimizer *optimizer, const char *where) {
    for (int64_t i = 0; i < optimizer->group_count && optimizer->count > 0; i++)
        if (optimizer->groups[i].parameters == 0)
            return wg_fail(WG_ERROR_ARGUMENT, where,
                           "the group \"%s\" matches none of the %lld parameters, the first of "
                           "which is \"%s\"",
                           optimizer->groups[i].group.names, (long long)optimizer->count,
                           optimizer->entries[0].name);
    return 0;
}

int wg_optimizer_add(wg_optimizer *optimizer, const char *name, wg_tensor *parameter,
                     bool no_decay) {
    if (!optimizer || !parameter || check_parameter(optimizer, name, parameter) < 0)
        return -1;
    const int64_t count = wg_tensor_count(parameter), chunks = wg__ceil_divide(count, WG__GRAIN);
    const wg_dtype dtype = wg_tensor_dtype(parameter);
    const wg__optimizer_kernels *kernels = wg__optimizer_kernels_for_cpu();
    wg__optimizer_entry entry = {.optimizer = optimizer,
                                 .parameter = parameter,
                                 .no_decay = no_decay,
                                 .rate = 1,
                                 .decay = -1,
                                 .end = count,
                                 .dtype = dtype,
                                 .loops = dtype == WG_F64 ? &kernels->f64 : &kernels->f32,
                                 .first_chunk = optimizer->chunks};
    entry.name = wg__strdup(name);
    for (int64_t i = optimizer->group_count; entry.name && i-- > 0;) {
        const wg_parameter_group *group = &optimizer->groups[i].group;
        if (fnmatch(group->names, entry.name, 0) != 0)
            continue;
        entry.rate = wg__option(group->rate, 1);
        entry.decay = group->weight_decay == 0 ? -1 : group->weight_decay;
        entry.no_decay |= group->no_decay;
        break;
    }
    double *norms = wg__alloc_array(optimizer->chunks + chunks + 1, sizeof *norms);
    if (norms) {
        wg__free(optimizer->partial_norms);
        optimizer->partial_norms = norms;
    }
    if (!entry.name || !norms ||
        wg__reserve(&optimizer->entries, optimizer->count, &optimizer->capacity,
                    optimizer->count + 1, sizeof *optimizer->entries) < 0 ||
        (!wg__optimizer_is_sharded(optimizer) && wg__optimizer_prepare(optimizer, &entry) < 0)) {
        free_entry(&entry);
        return -1;
    }
    optimizer->entries[optimizer->count++] = entry;
    optimizer->chunks += chunks;
    for (int64_t i = 0; i < optimizer->group_count; i++)
        optimizer->groups[i].parameters += fnmatch(optimizer->groups[i].group.names, name, 0) == 0;
    return 0;
}

int wg_optimizer_add_module(wg_optimizer *optimizer, wg_module *module) {
    if (!optimizer || !module || wg_error_pending())
        return -1;
    wg_state_dict *state = wg_module_state(module);
    int status = state ? 0 : -1;
    int64_t added = 0, frozen = 0;
    for (int64_t i = 0; status == 0 && i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot;
        if (slot->kind != WG_SLOT_PARAMETER || slot->tied)
            continue;
        if (!wg_requires_grad(slot->tensor)) {
            frozen++;
            continue;
        }
        status = wg_optimizer_add(optimizer, state->entries[i].path, slot->tensor, slot->no_decay);
        added++;
    }
    wg_state_dict_free(state);
    if (status == 0 && added == 0 && frozen > 0)
        return wg_fail(WG_ERROR_GRADIENT, "optimizer_add_module",
                       "all %lld parameters are frozen, and nothing is left to train; "
                       "wg_module_requires_grad(module, true) thaws them",
                       (long long)frozen);
    return status;
}

void wg_optimizer_zero_grad(wg_optimizer *optimizer) {
    if (!optimizer)
        return;
    for (int64_t i = 0; i < optimizer->count; i++) {
        wg_zero_grad(optimizer->entries[i].parameter);
        optimizer->entries[i].used = false;
    }
    optimizer->gradient_scale = 1;
    optimizer->not_finite = false;
}

int64_t wg_optimizer_steps(const wg_optimizer *optimizer) {
    return optimizer ? optimizer->steps : 0;
}

wg__optimizer_entry *wg__optimizer_state_entry(const wg_optimizer *optimizer, int64_t index,
                                               int *state) {
    for (int64_t i = 0; optimizer && index >= 0 && i < optimizer->count; i++) {
        wg__optimizer_entry *entry = &optimizer->entries[i];
        *state = (int)index;
        if (index < entry->state_count)
            return entry;
        index -= entry->state_count;
    }
    return NULL;
}

int wg__optimizer_state(const wg_optimizer *optimizer, int64_t index, const char **slot,
                        const char **name, wg_tensor **tensor) {
    int state;
    const wg__optimizer_entry *entry = wg__optimizer_state_entry(optimizer, index, &state);
    if (!entry)
        return 0;
    *slot = entry->slots[state];
    *name = entry->name;
    *tensor = entry->states[state];
    return 1;
}
