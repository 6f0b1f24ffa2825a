/* Many samples in one pass: wg_vmap, and the run of an op on batched inputs. internal.h explains
 * the method. */
#include "autograd/internal.h"

#include <string.h>

#include "tensor/ops/support.h"

/* A sample handle for a tensor that holds all samples. [scope] */
static wg_tensor *sample_of(wg_tensor *all, wg__level *level) {
    wg_spec spec = all->spec;
    spec.ndim--;
    memmove(spec.shape, spec.shape + 1, (size_t)spec.ndim * sizeof *spec.shape);
    wg_tensor *x = wg__tensor_make(&spec, true);
    return x && wg__tangent_push(x, level, all) < 0 ? NULL : x;
}

/* Makes sample handles for the outputs of a batching rule, and records the op on the handles. */
static int finish(wg_call *call, wg_tensor *const *all, wg__level *level) {
    for (int j = 0; j < call->output_count; j++) {
        char is[128];
        if (!all[j] || all[j]->spec.ndim == 0 || all[j]->spec.shape[0] != level->samples)
            return wg_fail(
                WG_ERROR_SHAPE, "vmap",
                "the batching rule of %s gave output %d as %s; wanted %lld samples as axis 0",
                call->op->name, j, all[j] ? wg_spec_text(is, sizeof is, &all[j]->spec) : "nothing",
                (long long)level->samples);
        call->outputs[j] = sample_of(all[j], level);
        if (!call->outputs[j])
            return -1;
        call->output_specs[j] = call->outputs[j]->spec;
    }
    if (call->wants && wg__autograd->record(call) < 0)
        return -1;
    wg__mark_saved(call);
    return 0;
}

static int run_batch(wg_call *call, wg__level *level) {
    const wg_op *op = call->op;
    wg_tensor *inputs[WG_MAX_INPUTS];
    uint32_t batched = 0;
    for (int i = 0; i < call->input_count; i++) {
        wg_tensor *x = call->inputs[i], *all = wg__tangent_of(x, level);
        inputs[i] = all ? all : x;
        if (all)
            batched |= (uint32_t)1 << i;
    }
    if (op->infer && op->infer(call) < 0)
        return -1;
    wg_call all = *call;
    all.inputs = inputs;
    int status = op->batch ? op->batch(&all, batched, level->samples) : WG_BATCH_DECOMPOSES;
    if (status != WG_BATCH_DECOMPOSES)
        return status ? status : finish(call, all.outputs, level);
    if (!op->decompose)
        return wg_fail(
            WG_ERROR_ARGUMENT, "vmap",
            "%s has no batching rule and no decomposition: run it outside of the function, "
            "or give its op a `batch`",
            op->name);
    /* A fused op gives no gradient to inputs that it is not differentiable in; its decomposition
     * might. */
    for (int i = 0; i < call->input_count; i++) {
        wg_tensor *x = call->inputs[i];
        inputs[i] = x && op->forward && !(op->differentiable >> i & 1) ? wg_detach(x) : x;
        if (x && !inputs[i])
            return -1;
    }
    all = *call;
    all.inputs = inputs;
    status = op->decompose(&all);
    memcpy(call->outputs, all.outputs, sizeof call->outputs);
    return status;
}

/* The tensor that holds the elements of all samples. Within nested calls, it follows the handles of
 * each level down to that tensor. */
static wg_tensor *all_values(wg_tensor *x) {
    for (const wg__level *level = wg__innermost_level; level && wg__tensor_is_meta(x);
         level = level->outer) {
        wg_tensor *all = level->run_batch ? wg__tangent_of(x, level) : wg__primal(x, level);
        x = all ? all : x;
    }
    return x;
}

/* Makes a sample handle for each batched input, after moving the axis of samples to the front. -1
 * with [INDEX, SHAPE, ARGUMENT]. */
static int make_handles(wg__level *level, int count, wg_tensor *const *inputs, const int *axes,
                        wg_tensor **handles) {
    for (int i = 0; i < count; i++) {
        wg_tensor *x = handles[i] = inputs[i];
        if (!x || (axes && axes[i] == WG_UNBATCHED))
            continue;
        const int axis = wg__axis(axes ? axes[i] : 0, x->spec.ndim, "vmap");
        if (axis < 0)
            return -1;
        const int64_t from = axis, to = 0, samples = x->spec.shape[axis];
        if (level->samples < 0)
            level->samples = samples;
        if (level->samples != samples)
            return wg_fail(WG_ERROR_SHAPE, "vmap",
                           "axis %d of input %d has %lld samples; an earlier input has %lld", axis,
                           i, (long long)samples, (long long)level->samples);
        wg_tensor *all = axis == 0 ? x : wg_movedim(x, 1, &from, &to);
        handles[i] = all ? sample_of(all, level) : NULL;
        if (!handles[i])
            return -1;
    }
    if (level->samples < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "vmap", "no input is batched; wanted at least one");
    return 0;
}

int wg_vmap(wg_function function, void *context, int input_count, wg_tensor *const *inputs,
            const int *axes, int output_count, wg_tensor **outputs) {
    memset(outputs, 0, (size_t)output_count * sizeof *outputs);
    if (wg_error_pending())
        return -1;
    wg_tensor **handles = wg__calloc((size_t)input_count + 1, sizeof *handles);
    if (!handles)
        return -1;
    wg__level level;
    wg_scope scope;
    wg__level_begin(&level);
    wg__install_all_values(all_values);
    level.samples = -1;
    level.run_batch = run_batch;
    wg_scope_begin(&scope);
    int status = make_handles(&level, input_count, inputs, axes, handles);
    if (status == 0)
        status = wg__call_function(function, context, input_count, handles, output_count, outputs,
                                   "vmap");
    for (int j = 0; j < output_count && status == 0; j++) {
        wg_tensor *y = outputs[j], *all = wg__tangent_of(y, &level);
        int64_t shape[WG_MAX_DIMS + 1] = {level.samples};
        memcpy(shape + 1, y->spec.shape, (size_t)y->spec.ndim * sizeof *shape);
        if (!all && y->spec.ndim == WG_MAX_DIMS)
            outputs[j] =
                wg__fail_null(WG_ERROR_SHAPE, "vmap",
                              "an output of rank %d takes no axis of samples", WG_MAX_DIMS);
        else /* an output that is equal for all samples becomes an expanded view */
            outputs[j] = all ? wg_alias(all) : wg_expand(y, y->spec.ndim + 1, shape);
        status = outputs[j] ? 0 : -1;
    }
    wg__escape_results(status, output_count, outputs);
    wg_scope_end(&scope, NULL);
    wg__level_end(&level);
    wg__free(handles);
    return status;
}
