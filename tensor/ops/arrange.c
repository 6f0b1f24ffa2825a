/* The elements of a tensor in another arrangement, composed of views and joins. */
#include "tensor/ops/elementwise.h"
#include "tensor/ops/families.h"

#include <string.h>

/* A list of axes; the list of none stands for all. */
typedef struct axes_options {
    int count;
    int64_t axes[WG_MAX_DIMS];
} axes_options;

static bool axes_options_make(axes_options *options, int count, const int64_t *axes,
                              const char *where) {
    *options = (axes_options){.count = count};
    if (count < 0 || count > WG_MAX_DIMS) {
        wg_fail(WG_ERROR_ARGUMENT, where, "%d axes; there are at most %d", count, WG_MAX_DIMS);
        return false;
    }
    if (count > 0)
        memcpy(options->axes, axes, (size_t)count * sizeof *axes);
    return true;
}

/* ---- flip: each of the axes from its end to its beginning, a view of negative strides. ---- */

static int flip_infer(wg_call *call) {
    const axes_options *options = call->options;
    const int ndim = call->input_specs[0].ndim;
    return wg__axis_mask(options->count, options->axes, ndim, call->op->name) < 0 ? -1 : 0;
}

static int flip_decompose(wg_call *call) {
    const axes_options *options = call->options;
    const int count = options->count ? options->count : call->input_specs[0].ndim;
    wg_tensor *y = wg_alias(call->inputs[0]);
    for (int i = 0; i < count; i++)
        y = wg_slice(y, options->count ? (int)options->axes[i] : i, WG_END, WG_END, -1);
    call->outputs[0] = y;
    return y == NULL ? -1 : 0;
}

static int flip_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const axes_options options[] = {{0, {0}}, {0, {0}}, {1, {-1}}, {2, {0, 2}}};
    sample->options = &options[index % 4];
    return wg__sample_unary(index, generator, sample, wg__sample_normal);
}

static const wg_op flip = {
    .name = "flip",
    .doc = "y = x with the elements of some axes, or of all, in reverse; a view.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(axes_options),
    .differentiable = 1,
    .infer = flip_infer,
    .decompose = flip_decompose,
    .sample = flip_sample,
};

wg_tensor *wg_flip(wg_tensor *x, int axis_count, const int64_t *axes) {
    axes_options options;
    if (!axes_options_make(&options, axis_count, axes, flip.name))
        return NULL;
    return wg_apply_one(&flip, 1, &x, &options);
}

static const wg_op *const ops[] = {&flip};

const wg__op_family wg__family_arrange = {ops, sizeof ops / sizeof *ops};
