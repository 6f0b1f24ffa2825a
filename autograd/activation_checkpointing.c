/* Regions that run twice.
 *
 *     first run    each recorded call makes its node, which saves nothing and is noted here
 *     second run   call i fills what node i lacks, and gives its outputs that node
 *
 * So the graph is the one of the first run, and nothing else has to know. Nodes hold their region,
 * the region knows its nodes without holding them: a call whose node is gone is recorded afresh,
 * and goes with the second run's scope. */
#include "autograd/activation_checkpointing.h"

#include <string.h>

#include "autograd/forward.h"
#include "base/array.h"
#include "autograd/region.h"
#include "autograd/transform.h"

typedef struct region_call {
    const wg_op *op;
    uint64_t shapes; /* a hash of all specs */
    wg_node *node;   /* NULL: gone */
} region_call;

typedef struct drawn {
    wg_generator *generator;
    wg_generator before; /* the first run */
} drawn;

struct wg__region {
    atomic_int refcount;
    wg_function function;
    void *context;
    void *own_context; /* the copy that `context` is; NULL: it is the caller's */
    int input_count, output_count, generator_count;
    wg__saved *inputs; /* NULL tensors: absent */
    drawn *generators;
    region_call *calls;
    int64_t count, capacity;
    bool filled; /* the second run has been */
};

/* The region that this thread is in. */
static WG__THREAD_LOCAL struct {
    wg__region *region;
    bool again;   /* it is the second run */
    int64_t next; /* which call comes next in it */
} active;

bool wg__region_is_open(void) {
    return active.region && !active.again;
}

bool wg__region_waits(const wg_node *node) {
    return node->region && !node->region->filled;
}

bool wg__region_repeats(const wg_node *node) {
    return active.again && node->region && node->region == active.region;
}

/* ---- Its life ---- */

static void region_release(wg__region *region) {
    if (!wg__refcount_drop(&region->refcount))
        return;
    for (int i = 0; i < region->input_count; i++)
        wg_release(region->inputs[i].tensor);
    wg__free(region->own_context);
    wg__free(region->inputs);
    wg__free(region->generators);
    wg__free(region->calls);
    wg__free(region);
}

static int keep_inputs(wg__region *region, wg_tensor *const *inputs) {
    for (int i = 0; i < region->input_count; i++) {
        if (!inputs[i])
            continue;
        region->inputs[i] =
            (wg__saved){wg__tensor_reference(inputs[i], false), wg_tensor_version(inputs[i])};
        if (!region->inputs[i].tensor)
            return -1;
    }
    return 0;
}

static int keep_context(wg__region *region, void *context, size_t size) {
    region->context = context;
    if (size == 0)
        return 0;
    region->context = region->own_context = wg__alloc(size);
    if (!region->own_context)
        return -1;
    memcpy(region->own_context, context, size);
    return 0;
}

static wg__region *region_new(wg_function function, void *context, int input_count,
                              wg_tensor *const *inputs, int output_count,
                              const wg_recompute_options *options) {
    wg_generator *const usual = wg_default_generator();
    wg_generator *const *generators = options && options->generators ? options->generators : &usual;
    const int count = generators == &usual ? 1 : options->generator_count;
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
    if (!region->inputs || !region->generators || keep_inputs(region, inputs) < 0 ||
        keep_context(region, context, options ? options->context_size : 0) < 0) {
        region_release(region);
        return NULL;
    }
    for (int k = 0; k < count; k++)
        region->generators[k] = (drawn){generators[k], *generators[k]};
    return region;
}

void wg__region_forget(const wg_node *node) {
    node->region->calls[node->region_call].node = NULL;
    region_release(node->region);
}

/* ---- The first run ---- */

/* FNV-1a over dtypes, ranks and sizes. */
static uint64_t hash_spec(uint64_t hash, const wg_spec *spec) {
    hash = (hash ^ (uint64_t)spec->dtype) * 0x100000001b3;
    hash = (hash ^ (uint64_t)(spec->ndim + 1)) * 0x100000001b3;
    for (int d = 0; d < spec->ndim; d++)
        hash = (hash ^ (uint64_t)spec->shape[d]) * 0x100000001b3;
    return hash;
}

static uint64_t hash_shapes(const wg_call *call) {
    uint64_t hash = 0xcbf29ce484222325;
    for (int i = 0; i < call->input_count; i++)
        hash = hash_spec(hash, &call->input_specs[i]);
    for (int j = 0; j < call->output_count; j++)
        hash = hash_spec(hash, &call->outputs[j]->spec);
    return hash;
}

int wg__region_add(wg_node *node, const wg_call *call) {
    wg__region *region = active.region;
    region_call *calls =
        wg__grow(region->calls, region->count, &region->capacity, region->count + 1, sizeof *calls);
    if (!calls)
        return -1;
    region->calls = calls;
    region->calls[region->count] = (region_call){call->op, hash_shapes(call), node};
    node->region_call = region->count++;
    node->region = region;
    wg__refcount_add(&region->refcount);
    wg__node_note_versions(node, call);
    return 0;
}

static int run_function(const wg__region *region, wg_tensor **outputs) {
    wg_tensor **inputs = wg__calloc((size_t)region->input_count + 1, sizeof *inputs);
    if (!inputs)
        return -1;
    for (int i = 0; i < region->input_count; i++)
        inputs[i] = region->inputs[i].tensor;
    int status = wg__call_function(region->function, region->context, region->input_count, inputs,
                                   region->output_count, outputs, "recompute");
    wg__free(inputs);
    return status;
}

/* Its results in the scope of the caller. They may be handles of the region, or of anybody. */
static int hand_over(int status, int count, wg_tensor **found, wg_tensor **outputs) {
    for (int j = 0; j < count && status == 0; j++) {
        found[j] = wg_alias(found[j]);
        status = found[j] ? 0 : -1;
    }
    wg__hand_out(status, count, found);
    memcpy(outputs, found, (size_t)count * sizeof *found);
    return status;
}

static int run_region(wg__region *region, wg_tensor **found) {
    wg__region *outer = active.region;
    active.region = region;
    int status = run_function(region, found);
    active.region = outer;
    return status;
}

int wg_recompute(wg_function function, void *context, int input_count, wg_tensor *const *inputs,
                 int output_count, wg_tensor **outputs, const wg_recompute_options *options) {
    const bool plain = !wg_grad_enabled() || active.region || wg__level_is_open();
    wg_tensor **found = wg__calloc((size_t)output_count + 1, sizeof *found);
    wg__region *region = NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = found && !wg_error_pending() ? 0 : -1;
    if (status == 0 && plain)
        status = wg__call_function(function, context, input_count, inputs, output_count, found,
                                   "recompute");
    if (status == 0 && !plain) {
        region = region_new(function, context, input_count, inputs, output_count, options);
        status = region ? run_region(region, found) : -1;
    }
    if (found)
        status = hand_over(status, output_count, found, outputs);
    else
        memset(outputs, 0, (size_t)output_count * sizeof *outputs);
    wg_scope_end(&scope, NULL);
    if (region)
        region_release(region);
    wg__free(found);
    return status;
}

/* ---- The second run ---- */

int wg__region_replayed(const wg_call *call, wg_node **node) {
    *node = NULL;
    if (!active.region || !active.again)
        return 0;
    const wg__region *region = active.region;
    if (active.next == region->count)
        return wg__op_fail(call, WG_ERROR_GRADIENT,
                           "the second run of a recomputed function has this call, the first one "
                           "had ended");
    const region_call *first = &region->calls[active.next++];
    if (first->op != call->op || first->shapes != hash_shapes(call))
        return wg__op_fail(call, WG_ERROR_GRADIENT,
                           "the second run of a recomputed function has this call where the first "
                           "had %s%s",
                           first->op->name, first->op == call->op ? " of other shapes" : "");
    *node = first->node;
    return *node ? wg__node_fill(*node, call) : 0;
}

static int check_inputs(const wg__region *region) {
    for (int i = 0; i < region->input_count; i++)
        if (wg_tensor_version(region->inputs[i].tensor) != region->inputs[i].version)
            return wg_fail(WG_ERROR_GRADIENT, "recompute",
                           "input %d was written in place between the first run and the second; "
                           "write to a clone, or run backward first",
                           i);
    return 0;
}

static int run_again(wg__region *region, wg_tensor **found) {
    if (check_inputs(region) < 0 || run_function(region, found) < 0)
        return -1;
    if (active.next < region->count)
        return wg_fail(
            WG_ERROR_GRADIENT, "recompute",
            "the second run of a recomputed function recorded %lld calls, the first %lld",
            (long long)active.next, (long long)region->count);
    return 0;
}

static void swap_generators(const wg__region *region, wg_generator *states) {
    for (int k = 0; k < region->generator_count; k++) {
        wg_generator now = *region->generators[k].generator;
        *region->generators[k].generator = states[k];
        states[k] = now;
    }
}

static int run_with(wg__region *region, wg_tensor **found, wg_generator *states) {
    for (int k = 0; k < region->generator_count; k++)
        states[k] = region->generators[k].before;
    const wg__region *const outer = active.region;
    const bool outer_again = active.again, recording = wg_set_grad_enabled(true);
    const int64_t outer_next = active.next;
    swap_generators(region, states);
    active.region = region;
    active.again = true;
    active.next = 0;
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = run_again(region, found);
    wg_scope_end(&scope, NULL);
    active.region = (wg__region *)outer;
    active.again = outer_again;
    active.next = outer_next;
    swap_generators(region, states);
    wg_set_grad_enabled(recording);
    region->filled = status == 0;
    for (int64_t c = 0; c < region->count && status < 0; c++)
        if (region->calls[c].node)
            wg__node_unfill(region->calls[c].node);
    return status;
}

int wg__region_run_again(const wg_node *node) {
    wg__region *region = node->region;
    if (region == active.region)
        return wg_fail(WG_ERROR_GRADIENT, "recompute",
                       "a function under wg_recompute must not differentiate what it computes; "
                       "%s was computed in it",
                       node->op->name);
    wg_tensor **found = wg__calloc((size_t)region->output_count + 1, sizeof *found);
    wg_generator *states = wg__calloc((size_t)region->generator_count + 1, sizeof *states);
    int status = found && states ? run_with(region, found, states) : -1;
    wg__free(found);
    wg__free(states);
    return status;
}
