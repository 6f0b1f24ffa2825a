/* Batching rules: run an op on all samples of wg_vmap at once. Axis 0 of a batched input holds its
 * samples.
 *
 *     one sample          B samples
 *     x (3, 4)            (B, 3, 4)
 *     w (2, 3, 4)         (B, 2, 3, 4)        x is read as (B, 1, 3, 4)
 *     v (4)               (4)                 v has no samples: it broadcasts, or is expanded */
#include "tensor/ops/support.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

wg_tensor *wg__batch_input(const wg_call *call, uint32_t batched, int i, int rank,
                           int64_t samples) {
    const wg_spec *one = &call->input_specs[i];
    int64_t shape[WG_MAX_DIMS];
    if (!(batched >> i & 1) || one->ndim == rank)
        return call->inputs[i];
    if (rank + 1 > WG_MAX_DIMS) {
        wg__op_fail(call, WG_ERROR_SHAPE, "rank %d takes no axis of samples", rank);
        return NULL;
    }
    shape[0] = samples;
    for (int k = 0; k < rank - one->ndim; k++)
        shape[1 + k] = 1;
    memcpy(shape + 1 + rank - one->ndim, one->shape, (size_t)one->ndim * sizeof *shape);
    return wg_reshape(call->inputs[i], rank + 1, shape);
}

wg_tensor *wg__batch_repeated_input(const wg_call *call, uint32_t batched, int i, int64_t samples) {
    const wg_spec *one = &call->input_specs[i];
    int64_t shape[WG_MAX_DIMS] = {samples};
    if (batched >> i & 1)
        return call->inputs[i];
    if (one->ndim == WG_MAX_DIMS) {
        wg__op_fail(call, WG_ERROR_SHAPE, "rank %d takes no axis of samples", one->ndim);
        return NULL;
    }
    memcpy(shape + 1, one->shape, (size_t)one->ndim * sizeof *shape);
    return wg_expand(call->inputs[i], one->ndim + 1, shape);
}

int wg_batch_aligned(wg_call *call, uint32_t batched, int64_t samples) {
    wg_tensor *inputs[WG_MAX_INPUTS];
    int rank = 0; /* the largest rank of an input, without samples */
    for (int i = 0; i < call->input_count; i++)
        rank = call->input_specs[i].ndim > rank ? call->input_specs[i].ndim : rank;
    for (int i = 0; i < call->input_count; i++)
        inputs[i] = wg__batch_input(call, batched, i, rank, samples);
    return wg_apply(call->op, call->input_count, inputs, call->options, call->outputs);
}

/* Runs the op with these options on inputs that are expanded to have all samples. */
static int run_repeated(wg_call *call, uint32_t batched, int64_t samples, const void *options) {
    wg_tensor *inputs[WG_MAX_INPUTS];
    for (int i = 0; i < call->input_count; i++)
        inputs[i] = call->inputs[i] ? wg__batch_repeated_input(call, batched, i, samples) : NULL;
    return wg_apply(call->op, call->input_count, inputs, options, call->outputs);
}

int wg__batch_leading(wg_call *call, uint32_t batched, int64_t samples) {
    return run_repeated(call, batched, samples, call->options);
}

int wg__batch_reshape(wg_call *call, uint32_t batched, int64_t samples) {
    (void)batched;
    const wg_spec *one = &call->output_specs[0];
    int64_t shape[WG_MAX_DIMS + 1] = {samples};
    memcpy(shape + 1, one->shape, (size_t)one->ndim * sizeof *shape);
    return wg__set_output(call, wg_reshape(call->inputs[0], one->ndim + 1, shape));
}

int wg__batch_expand(wg_call *call, uint32_t batched, int64_t samples) {
    const wg_spec *one = &call->output_specs[0];
    int64_t shape[WG_MAX_DIMS + 1] = {samples};
    memcpy(shape + 1, one->shape, (size_t)one->ndim * sizeof *shape);
    wg_tensor *x = wg__batch_input(call, batched, 0, one->ndim, samples);
    return wg__set_output(call, x ? wg_expand(x, one->ndim + 1, shape) : NULL);
}

int wg__batch_repeated_first(wg_call *call, uint32_t batched, int64_t samples) {
    wg_tensor *inputs[WG_MAX_INPUTS];
    memcpy(inputs, call->inputs, (size_t)call->input_count * sizeof *inputs);
    wg_call repeats = *call;
    repeats.inputs = inputs;
    inputs[0] = wg__batch_repeated_input(call, batched, 0, samples);
    if (!inputs[0] || wg_batch_aligned(&repeats, batched | 1, samples) < 0)
        return -1;
    memcpy(call->outputs, repeats.outputs, sizeof call->outputs);
    return 0;
}

int wg__batch_first_alone(wg_call *call, uint32_t batched, int64_t samples) {
    (void)samples;
    return batched == 1
               ? wg_apply(call->op, call->input_count, call->inputs, call->options, call->outputs)
               : WG_BATCH_DECOMPOSES;
}

/* ---- Options that name axes ---- */

enum { MOST_BYTES = 256 };

/* Shifts the first `count` axes of the options by one: axis 0 holds the samples. */
static int run_shifted_axes(wg_call *call, uint32_t batched, int64_t samples, int count) {
    int axes[MOST_BYTES / sizeof(int)];
    assert(call->op->options_size <= sizeof axes);
    memcpy(axes, call->options, call->op->options_size);
    for (int i = 0; i < count; i++)
        axes[i] += axes[i] >= 0;
    return run_repeated(call, batched, samples, axes);
}

int wg__batch_axis(wg_call *call, uint32_t batched, int64_t samples) {
    return run_shifted_axes(call, batched, samples, 1);
}

int wg__batch_axes(wg_call *call, uint32_t batched, int64_t samples) {
    return run_shifted_axes(call, batched, samples, 2);
}

int wg__batch_reduction(wg_call *call, uint32_t batched, int64_t samples) {
    int64_t options[MOST_BYTES / sizeof(int64_t)];
    assert(call->op->options_size <= sizeof options);
    memcpy(options, call->options, call->op->options_size);
    options[0] = (int64_t)((uint64_t)options[0] << 1);
    return run_repeated(call, batched, samples, options);
}

int wg__batch_folded(wg_call *call, uint32_t batched, int64_t samples) {
    if (batched != 1)
        return WG_BATCH_DECOMPOSES;
    const wg_spec *one = &call->input_specs[0];
    wg_tensor *inputs[WG_MAX_INPUTS];
    int64_t shape[WG_MAX_DIMS + 1];
    memcpy(inputs, call->inputs, (size_t)call->input_count * sizeof *inputs);
    memcpy(shape, one->shape, (size_t)one->ndim * sizeof *shape);
    shape[0] *= samples;
    inputs[0] = wg_reshape(inputs[0], one->ndim, shape);
    if (wg_apply(call->op, call->input_count, inputs, call->options, call->outputs) < 0)
        return -1;
    for (int j = 0; j < call->output_count; j++) {
        const wg_spec *y = &call->output_specs[j];
        shape[0] = samples;
        memcpy(shape + 1, y->shape, (size_t)y->ndim * sizeof *shape);
        call->outputs[j] = wg_reshape(call->outputs[j], y->ndim + 1, shape);
    }
    return call->outputs[0] ? 0 : -1;
}

static wg_tensor *(*_Atomic all_values_of)(wg_tensor *x);

void wg__install_all_values(wg_tensor *(*all_values)(wg_tensor *x)) {
    atomic_store(&all_values_of, all_values);
}

wg_tensor *wg__all_values(wg_tensor *x) {
    wg_tensor *(*of)(wg_tensor *) = atomic_load(&all_values_of);
    return x && of && x->tangents ? of(x) : x;
}
