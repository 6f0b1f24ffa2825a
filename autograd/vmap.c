/* Many samples in one pass: wg_vmap, and running an op on tensors of which each sample has its own.
 * internal.h has the idea. */
#include "autograd/functional.h"

#include <string.h>

#include "autograd/internal.h"
#include "tensor/ops.h"
#include "tensor/ops/support.h"

/* ---- One op ---- */

/* A handle of one sample, for a tensor with all of them. [scope] */
static wg_tensor *sample_of(wg_tensor *all, wg__level *level) {
    wg_spec spec = all->spec;
    spec.ndim--;
    memmove(spec.shape, spec.shape + 1, (size_t)spec.ndim * sizeof *spec.shape);
    wg_tensor *x = wg__meta_tensor_new(&spec);
    return x && wg__tangent_push(x, level, all) < 0 ? NULL : x;
}

static int check_samples(const wg_call *call, int output, const wg_tensor *all, int64_t samples) {
    if (all && all->spec.ndim > 0 && all->spec.shape[0] == samples)
        return 0;
    char is[128];
    return wg_fail(WG_ERROR_SHAPE, "vmap",
                   "the batching rule of %s gave output %d as %s; wanted %lld samples as axis 0",
                   call->op->name, output,
                   all ? wg_spec_text(is, sizeof is, &all->spec) : "nothing", (long long)samples);
}

/* Takes the outputs of a batching rule, and records the op on the handles of one sample. */
static int finish(wg_call *call, wg_tensor *const *all, wg__level *level) {
    for (int j = 0; j < call->output_count; j++) {
        if (check_samples(call, j, all[j], level->samples) < 0)
            return -1;
        call->outputs[j] = sample_of(all[j], level);
        if (!call->outputs[j])
            return -1;
        call->output_specs[j] = call->outputs[j]->spec;
    }
    if (call->wants && wg__autograd()->record(call) < 0)
        return -1;
    wg__mark_saved(call);
    return 0;
}

/* A fused op gives no gradient to inputs that it is not differentiable in; its decomposition might.
 */
static int run_decomposition(wg_call *call) {
    wg_tensor *inputs[WG_MAX_INPUTS];
    wg_call detached = *call;
    detached.inputs = inputs;
    for (int i = 0; i < call->input_count; i++) {
        wg_tensor *x = call->inputs[i];
        inputs[i] =
            x && call->op->forward && !(call->op->differentiable >> i & 1) ? wg_detach(x) : x;
        if (x && !inputs[i])
            return -1;
    }
    const int status = call->op->decompose(&detached);
    memcpy(call->outputs, detached.outputs, sizeof call->outputs);
    return status;
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
    const int status = op->batch ? op->batch(&all, batched, level->samples) : WG_BATCH_DECOMPOSES;
    if (status != WG_BATCH_DECOMPOSES)
        return status ? status : finish(call, all.outputs, level);
    if (op->decompose)
        return run_decomposition(call);
    return wg_fail(WG_ERROR_ARGUMENT, "vmap",
                   "%s has no batching rule and no decomposition: run it outside of the function, "
                   "or give its op a `batch`",
                   op->name);
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

/* ---- The transform ---- */

typedef struct vmap_job {
    int input_count, output_count;
    wg_tensor *const *inputs;
    const int *axes;
    wg__level *level;
} vmap_job;

/* Input i with its samples as axis 0; NULL with [INDEX, SHAPE]. */
static wg_tensor *samples_first(const vmap_job *job, int i) {
    wg_tensor *x = job->inputs[i];
    const int axis = wg__axis(job->axes ? job->axes[i] : 0, x->spec.ndim, "vmap");
    if (axis < 0)
        return NULL;
    const int64_t from = axis, to = 0, samples = x->spec.shape[axis];
    if (job->level->samples < 0)
        job->level->samples = samples;
    if (job->level->samples == samples)
        return axis == 0 ? x : wg_movedim(x, 1, &from, &to);
    wg_fail(WG_ERROR_SHAPE, "vmap",
            "axis %d of input %d has %lld samples; an earlier input has %lld", axis, i,
            (long long)samples, (long long)job->level->samples);
    return NULL;
}

static int make_handles(const vmap_job *job, wg_tensor **handles) {
    for (int i = 0; i < job->input_count; i++) {
        handles[i] = job->inputs[i];
        if (!job->inputs[i] || (job->axes && job->axes[i] == WG_UNBATCHED))
            continue;
        wg_tensor *all = samples_first(job, i);
        handles[i] = all ? sample_of(all, job->level) : NULL;
        if (!handles[i])
            return -1;
    }
    if (job->level->samples < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "vmap", "no input is batched; wanted at least one");
    return 0;
}

/* All samples of an output; of one that is the same for all, a view that repeats it. */
static wg_tensor *all_samples(wg_tensor *y, const wg__level *level) {
    wg_tensor *all = wg__tangent_of(y, level);
    if (all)
        return wg_alias(all);
    int64_t shape[WG_MAX_DIMS] = {level->samples};
    if (y->spec.ndim == WG_MAX_DIMS) {
        wg_fail(WG_ERROR_SHAPE, "vmap", "an output of rank %d takes no axis of samples",
                y->spec.ndim);
        return NULL;
    }
    memcpy(shape + 1, y->spec.shape, (size_t)y->spec.ndim * sizeof *shape);
    return wg_expand(y, y->spec.ndim + 1, shape);
}

static int run(wg_function function, void *context, const vmap_job *job, wg_tensor **handles,
               wg_tensor **outputs) {
    if (make_handles(job, handles) < 0 ||
        wg__call_function(function, context, job->input_count, handles, job->output_count, outputs,
                          "vmap") < 0)
        return -1;
    for (int j = 0; j < job->output_count; j++) {
        outputs[j] = all_samples(outputs[j], job->level);
        if (!outputs[j])
            return -1;
    }
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
    const vmap_job job = {input_count, output_count, inputs, axes, &level};
    int status = run(function, context, &job, handles, outputs);
    wg__hand_out(status, output_count, outputs);
    wg_scope_end(&scope, NULL);
    wg__level_end(&level);
    wg__free(handles);
    return status;
}
