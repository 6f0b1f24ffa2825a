/* Axes in another order. */
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"

#include <string.h>

/* ---- permute: axis i of y is axis order[i] of x.   dx = the inverse permutation of g. ---- */

typedef struct permute_options {
    int order[WG_MAX_DIMS];
} permute_options;

static int permute_infer(wg_call *call) {
    const permute_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    call->output_specs[0] = *x;
    for (int i = 0; i < x->ndim; i++)
        call->output_specs[0].shape[i] = x->shape[options->order[i]];
    return 0;
}

static int permute_forward(wg_call *call) {
    const permute_options *options = call->options;
    const wg_tensor *x = call->inputs[0];
    int64_t strides[WG_MAX_DIMS];
    for (int i = 0; i < x->spec.ndim; i++)
        strides[i] = x->strides[options->order[i]];
    call->outputs[0] = wg__tensor_view(x, &call->output_specs[0], strides, x->offset);
    return call->outputs[0] == NULL ? -1 : 0;
}

static int permute_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const permute_options *options = call->options;
    const int ndim = call->input_specs[0].ndim;
    int64_t inverse[WG_MAX_DIMS] = {0};
    for (int i = 0; i < ndim; i++)
        inverse[options->order[i]] = i;
    gradients[0] = wg_permute(cotangents[0], ndim, inverse);
    return wg__vjp_status();
}

static int permute_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const permute_options orders[] = {{{1, 0}}, {{0}}, {{0}}, {{2, 0, 3, 1}}};
    sample->options = &orders[index % 4];
    return wg__sample_unary(index, generator, sample, wg__sample_normal);
}

static const wg_op permute = {
    .name = "permute",
    .doc = "Axis i of y is axis order[i] of x. A view.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(permute_options),
    .differentiable = 1,
    .is_view = true,
    .infer = permute_infer,
    .forward = permute_forward,
    .vjp = permute_vjp,
    .jvp = wg_jvp_linear,
    .sample = permute_sample,
};

wg_tensor *wg_permute(wg_tensor *x, int count, const int64_t *order) {
    permute_options options = {{0}};
    char text[160];
    if (x == NULL)
        return NULL;
    if (count != x->spec.ndim) {
        wg_fail(WG_ERROR_SHAPE, "permute", "%s: an order of %d axes; name each axis once",
                wg_spec_text(text, sizeof text, &x->spec), count);
        return NULL;
    }
    unsigned seen = 0;
    for (int i = 0; i < count; i++) {
        options.order[i] = wg__axis(order[i], count, "permute");
        if (options.order[i] < 0)
            return NULL;
        if (seen >> options.order[i] & 1u) {
            wg_fail(WG_ERROR_INDEX, "permute", "%s: axis %lld comes twice; name each axis once",
                    wg_spec_text(text, sizeof text, &x->spec), (long long)order[i]);
            return NULL;
        }
        seen |= 1u << options.order[i];
    }
    return wg_apply_one(&permute, 1, &x, &options);
}

/* ---- transpose: two axes in each other's place; a permutation, but a quicker one.   dx = the
 * transpose of g. ---- */

typedef struct transpose_options {
    int axis_a, axis_b;
} transpose_options;

/* Exchanges what belongs to the two axes; -1 with INDEX. */
static int exchange(const wg_call *call, int64_t *of_axes) {
    const transpose_options *options = call->options;
    const int ndim = call->input_specs[0].ndim;
    const int a = wg__axis(options->axis_a, ndim, call->op->name);
    const int b = a < 0 ? -1 : wg__axis(options->axis_b, ndim, call->op->name);
    if (b < 0)
        return -1;
    const int64_t of_a = of_axes[a];
    of_axes[a] = of_axes[b];
    of_axes[b] = of_a;
    return 0;
}

static int transpose_infer(wg_call *call) {
    call->output_specs[0] = call->input_specs[0];
    return exchange(call, call->output_specs[0].shape);
}

static int transpose_forward(wg_call *call) {
    const wg_tensor *x = call->inputs[0];
    int64_t strides[WG_MAX_DIMS];
    memcpy(strides, x->strides, sizeof strides);
    if (exchange(call, strides) == 0)
        call->outputs[0] = wg__tensor_view(x, &call->output_specs[0], strides, x->offset);
    return call->outputs[0] == NULL ? -1 : 0;
}

static int transpose_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_apply_one(call->op, 1, cotangents, call->options);
    return wg__vjp_status();
}

static int transpose_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const transpose_options options[] = {{0, 1}, {-1, 0}, {1, 1}};
    static const int64_t shapes[][3] = {{2, 3, 1}, {2, 3, 4}, {2, 2, 2}};
    if (index >= (int)(sizeof options / sizeof *options))
        return 0;
    sample->options = &options[index];
    sample->inputs[0] = wg__sample_normal(generator, 3, shapes[index]);
    return wg__sample_status(sample, 1);
}

static const wg_op transpose = {
    .name = "transpose",
    .doc = "y = x with two axes exchanged. A view.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(transpose_options),
    .differentiable = 1,
    .is_view = true,
    .infer = transpose_infer,
    .forward = transpose_forward,
    .vjp = transpose_vjp,
    .jvp = wg_jvp_linear,
    .sample = transpose_sample,
};

wg_tensor *wg_transpose(wg_tensor *x, int axis_a, int axis_b) {
    return wg_apply_one(&transpose, 1, &x, &(transpose_options){axis_a, axis_b});
}

/* ---- movedim: axes to other places, the rest in their order. ---- */

typedef struct movedim_options {
    int count;
    int64_t from[WG_MAX_DIMS], to[WG_MAX_DIMS];
} movedim_options;

/* The permutation that it comes to; -1 with INDEX. */
static int movedim_order(const wg_call *call, int64_t *order) {
    const movedim_options *options = call->options;
    const int ndim = call->input_specs[0].ndim;
    const int64_t taken = wg__axis_mask(options->count, options->from, ndim, call->op->name);
    const int64_t filled = wg__axis_mask(options->count, options->to, ndim, call->op->name);
    if (taken < 0 || filled < 0)
        return -1;
    for (int axis = 0, place = 0; axis < ndim; axis++) {
        if (taken >> axis & 1)
            continue;
        while (filled >> place & 1)
            place++;
        order[place++] = axis;
    }
    for (int i = 0; i < options->count; i++)
        order[wg__axis(options->to[i], ndim, call->op->name)] = options->from[i];
    return 0;
}

static int movedim_infer(wg_call *call) {
    int64_t order[WG_MAX_DIMS];
    return movedim_order(call, order);
}

static int movedim_decompose(wg_call *call) {
    int64_t order[WG_MAX_DIMS];
    if (movedim_order(call, order) == 0)
        call->outputs[0] = wg_permute(call->inputs[0], call->input_specs[0].ndim, order);
    return call->outputs[0] == NULL ? -1 : 0;
}

static int movedim_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const movedim_options options[] = {
        {1, {0}, {-1}}, {0, {0}, {0}}, {1, {0}, {0}}, {2, {3, 0}, {0, 2}}};
    sample->options = &options[index % 4];
    return wg__sample_unary(index, generator, sample, wg__sample_normal);
}

static const wg_op movedim = {
    .name = "movedim",
    .doc = "Axis from[i] of x is axis to[i] of y; the others stay in their order. A view.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(movedim_options),
    .differentiable = 1,
    .infer = movedim_infer,
    .decompose = movedim_decompose,
    .sample = movedim_sample,
};

wg_tensor *wg_movedim(wg_tensor *x, int count, const int64_t *from, const int64_t *to) {
    movedim_options options = {.count = count};
    if (x == NULL)
        return NULL;
    if (count < 0 || count > WG_MAX_DIMS) {
        wg_fail(WG_ERROR_ARGUMENT, "movedim", "%d axes; there are at most %d", count, WG_MAX_DIMS);
        return NULL;
    }
    if (count > 0) {
        memcpy(options.from, from, (size_t)count * sizeof *from);
        memcpy(options.to, to, (size_t)count * sizeof *to);
    }
    return wg_apply_one(&movedim, 1, &x, &options);
}

static const wg_op *const ops[] = {&permute, &transpose, &movedim};

const wg__op_family wg__family_permute = {ops, sizeof ops / sizeof *ops};
