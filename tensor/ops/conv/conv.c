/* Convolutions of one to three axes. With images x, weights w and outputs y, three ops are each
 * other's derivatives, so that any order of derivative follows:
 *
 *     conv            x, w -> y    y[o, p] = sum over c and t of w[o, c, t] x[c, p s + t d - b]
 *     conv_transpose  y, w -> x    the adjoint in x: each y[p] adds to the places it was read from
 *     conv_weight     x, y -> w    the adjoint in w
 *
 * where s is the stride, d the dilation and b the padding. Places outside of x are zeros, so that
 * every combination of sizes has a meaning; the op is told the size of its result.
 *
 * A transposed convolution of stride s is s convolutions of stride 1, each with the taps whose
 * places are congruent modulo s:
 *
 *     s = 2, d = 1, taps a b c:      x[2 q - b]     = sum of a y[q], c y[q - 1]
 *                                    x[2 q + 1 - b] = sum of b y[q]  */
#include <pthread.h>
#include <string.h>

#include "tensor/easy.h"
#include "tensor/ops/conv/windows.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/support.h"

enum { AXES = WG__CONV_AXES, FEWEST = 2 /* axes before those of space: images and channels */ };

typedef struct conv_options {
    int rank; /* the number of spatial axes, 1 to 3 */
    int64_t stride[AXES], padding[AXES], dilation[AXES], output_padding[AXES], groups;
    int64_t size[AXES]; /* of the result: of y, x or w; -1: there is none, as infer explains */
} conv_options;

static const wg_op conv[AXES], conv_transpose[AXES], conv_weight[AXES];

/* ---- Shapes ---- */

/* The places that a kernel reaches over. */
static int64_t reach_of(int64_t taps, int64_t dilation) {
    return dilation * (taps - 1) + 1;
}

static int check_options(const wg_call *call) {
    const conv_options *options = call->options;
    if (options->groups < 1)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "groups is %lld; it must be at least 1",
                           (long long)options->groups);
    for (int i = 0; i < options->rank; i++) {
        const int64_t s = options->stride[i], p = options->padding[i], d = options->dilation[i];
        const int64_t more = options->output_padding[i];
        if (s < 1 || d < 1 || p < 0 || s > INT32_MAX || d > INT32_MAX || p > INT32_MAX)
            return wg__op_fail(call, WG_ERROR_ARGUMENT,
                               "stride %lld, padding %lld and dilation %lld of spatial axis %d; "
                               "stride and dilation are at least 1, padding at least 0",
                               (long long)s, (long long)p, (long long)d, i);
        if (more < 0 || (more > 0 && more >= s && more >= d))
            return wg__op_fail(call, WG_ERROR_ARGUMENT,
                               "output_padding is %lld along spatial axis %d; it must be at least "
                               "0, and below the stride (%lld) or the dilation (%lld)",
                               (long long)more, i, (long long)s, (long long)d);
    }
    return 0;
}

static int check_operands(const wg_call *call) {
    static const char *const axes[] = {"L", "H, W", "D, H, W"}, *const taps[] = {"K", "K, K",
                                                                                 "K, K, K"};
    const conv_options *options = call->options;
    const int rank = options->rank;
    for (int i = 1; i < call->input_count; i++)
        if (call->input_specs[i].ndim >= 0 && wg__check_same_dtype(call, 0, i) < 0)
            return -1;
    if (wg__check_kernel_dtype(call) < 0)
        return -1;
    if (call->input_specs[0].ndim != rank + FEWEST || call->input_specs[1].ndim != rank + FEWEST)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted images (N, C, %s) or (C, %s), and a weight (O, I, %s)",
                           axes[rank - 1], axes[rank - 1], taps[rank - 1]);
    return check_options(call);
}

static int check_bias(const wg_call *call, int64_t channels) {
    if (call->input_count < 3 || call->input_specs[2].ndim < 0)
        return 0;
    const wg_spec *bias = &call->input_specs[2];
    if (bias->ndim != 1 || bias->shape[0] != channels)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted a bias of %lld, a value for each output channel",
                           (long long)channels);
    return 0;
}

/* Fills the spec of the result: two leading sizes, and those of options->size. The padded copy of
 * the images (windows.c) must be countable, too. */
static int set_result(wg_call *call, int64_t first, int64_t second) {
    const conv_options *options = call->options;
    int64_t shape[AXES + FEWEST] = {first, second};
    double places = 1;
    for (int i = 0; i < options->rank; i++) {
        const double padded =
            (double)call->input_specs[0].shape[FEWEST + i] * (double)options->stride[i] +
            2 * (double)options->padding[i] +
            (double)(call->input_specs[1].shape[FEWEST + i] + options->size[i]) *
                (double)(options->dilation[i] + options->stride[i]);
        places *= padded;
        shape[FEWEST + i] = options->size[i];
    }
    if (places > 0x1p52)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "these sizes, paddings and dilations are beyond all memory");
    return wg__spec_make(&call->output_specs[0], call->input_specs[0].dtype, options->rank + FEWEST,
                         shape, call->op->name);
}

static int conv_infer(wg_call *call) {
    const conv_options *options = call->options;
    const wg_spec *x = &call->input_specs[0], *weight = &call->input_specs[1];
    if (check_operands(call) < 0)
        return -1;
    if (weight->shape[0] % options->groups != 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "%lld groups do not divide %lld output channels",
                           (long long)options->groups, (long long)weight->shape[0]);
    if (x->shape[1] != weight->shape[1] * options->groups)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "x has %lld channels; a weight (%lld, %lld, ...) with groups %lld takes "
                           "%lld",
                           (long long)x->shape[1], (long long)weight->shape[0],
                           (long long)weight->shape[1], (long long)options->groups,
                           (long long)(weight->shape[1] * options->groups));
    for (int i = 0; i < options->rank; i++) {
        const int64_t taps = weight->shape[FEWEST + i];
        if (options->size[i] < 0)
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "a kernel of %lld, which reaches over %lld places, does not fit "
                               "into spatial axis %d, of size %lld with its padding",
                               (long long)taps, (long long)reach_of(taps, options->dilation[i]), i,
                               (long long)(x->shape[FEWEST + i] + 2 * options->padding[i]));
    }
    return check_bias(call, weight->shape[0]) < 0 ? -1
                                                  : set_result(call, x->shape[0], weight->shape[0]);
}

static int conv_transpose_infer(wg_call *call) {
    const conv_options *options = call->options;
    const wg_spec *y = &call->input_specs[0], *weight = &call->input_specs[1];
    if (check_operands(call) < 0)
        return -1;
    if (y->shape[1] != weight->shape[0])
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "x has %lld channels, the weight (%lld, %lld, ...) takes %lld",
                           (long long)y->shape[1], (long long)weight->shape[0],
                           (long long)weight->shape[1], (long long)weight->shape[0]);
    if (y->shape[1] % options->groups != 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "%lld groups do not divide %lld channels",
                           (long long)options->groups, (long long)y->shape[1]);
    for (int i = 0; i < options->rank; i++)
        if (options->size[i] < 0)
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "nothing is left of spatial axis %d when a padding of %lld is cut "
                               "off both ends",
                               i, (long long)options->padding[i]);
    const int64_t channels = weight->shape[1] * options->groups;
    return check_bias(call, channels) < 0 ? -1 : set_result(call, y->shape[0], channels);
}

static int conv_weight_infer(wg_call *call) {
    const conv_options *options = call->options;
    const wg_spec *x = &call->input_specs[0], *y = &call->input_specs[1];
    if (check_operands(call) < 0)
        return -1;
    if (x->shape[0] != y->shape[0] || x->shape[1] % options->groups != 0 ||
        y->shape[1] % options->groups != 0)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted as many outputs as images, and channels that %lld groups divide",
                           (long long)options->groups);
    return set_result(call, y->shape[1], x->shape[1] / options->groups);
}

/* ---- Kernels ---- */

/* A contiguous x, or a copy in the innermost scope. NULL for lack of memory. */
static const void *contiguous(wg_tensor *x, bool *failed) {
    wg_tensor *dense = wg_tensor_is_contiguous(x) ? x : wg__tensor_new(&x->spec);
    if (dense && dense != x && wg_copy_(dense, x) < 0)
        dense = NULL;
    *failed |= !dense;
    return dense ? wg__tensor_address(dense) : NULL;
}

/* Spatial axis i of a call, among AXES of which the first may be missing. */
static int axis_of(const conv_options *options, int i) {
    return AXES - options->rank + i;
}

/* Sets the strides of contiguous outputs. */
static void set_output_strides(wg__correlation *c) {
    int64_t stride = 1;
    for (int i = AXES - 1; i >= 0; i--) {
        c->y_axes[i] = stride;
        stride *= c->axes[i].count;
    }
    c->y_channel = stride;
    c->y_image = stride * c->groups * c->out_channels;
}

/* The convolution that images x, outputs y and weights w describe. */
static wg__correlation correlation_of(const conv_options *options, const wg_spec *x,
                                      const wg_spec *y, const wg_spec *weight) {
    wg__correlation c = {.dtype = x->dtype,
                         .images = x->shape[0],
                         .groups = options->groups,
                         .in_channels = weight->shape[1],
                         .out_channels = weight->shape[0] / options->groups};
    for (int i = 0; i < AXES; i++)
        c.axes[i] = (wg__window_axis){.size = 1, .count = 1, .taps = 1, .step = 1};
    for (int i = 0; i < options->rank; i++)
        c.axes[axis_of(options, i)] = (wg__window_axis){.size = x->shape[FEWEST + i],
                                                        .count = y->shape[FEWEST + i],
                                                        .taps = weight->shape[FEWEST + i],
                                                        .step = options->stride[i],
                                                        .first = -options->padding[i],
                                                        .hop = options->dilation[i]};
    set_output_strides(&c);
    return c;
}

static int no_memory(const wg_call *call) {
    return wg__op_fail(call, WG_ERROR_MEMORY, "no memory for copies of the images");
}

static wg_tensor *bias_of(const wg_call *call) {
    return call->input_count > 2 ? call->inputs[2] : NULL;
}

static int conv_forward(wg_call *call) {
    bool failed = false;
    wg__correlation c = correlation_of(call->options, &call->input_specs[0], &call->output_specs[0],
                                       &call->input_specs[1]);
    c.x = contiguous(call->inputs[0], &failed);
    c.weight = contiguous(call->inputs[1], &failed);
    c.bias = bias_of(call) ? contiguous(bias_of(call), &failed) : NULL;
    c.y = wg__tensor_address(call->outputs[0]);
    if (failed)
        return -1;
    return wg__correlate(&c) < 0 ? no_memory(call) : 0;
}

static int conv_weight_forward(wg_call *call) {
    bool failed = false;
    wg__correlation c = correlation_of(call->options, &call->input_specs[0], &call->input_specs[1],
                                       &call->output_specs[0]);
    c.x = contiguous(call->inputs[0], &failed);
    c.y = (void *)contiguous(call->inputs[1], &failed);
    if (failed)
        return -1;
    return wg__correlate_vjp(&c, wg__tensor_address(call->outputs[0])) < 0 ? no_memory(call) : 0;
}

/* ---- The transposed convolution ---- */

/* What one phase of an axis reads: places begin, begin + stride... of the result are sums over the
 * taps tap, tap + apart... */
typedef struct phase {
    int64_t begin, tap, apart;
} phase;

static int64_t greatest_common_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Phase `begin` of an axis of a convolution becomes an axis of one of stride 1, from outputs to
 * images; it may have no taps. */
static phase transpose_axis(const wg__window_axis *of, int64_t begin, wg__window_axis *axis) {
    const int64_t s = of->step, d = of->hop, place = begin - of->first;
    const int64_t common = greatest_common_divisor(s, d);
    phase phase = {begin, 0, s / common};
    while (phase.tap < phase.apart && (place - phase.tap * d) % s != 0)
        phase.tap++;
    const int64_t taps = phase.tap < phase.apart && phase.tap < of->taps
                             ? 1 + (of->taps - 1 - phase.tap) / phase.apart
                             : 0;
    *axis = (wg__window_axis){.size = of->count,
                              .count = of->size > begin ? 1 + (of->size - 1 - begin) / s : 0,
                              .taps = taps,
                              .step = 1,
                              .first = taps ? (place - phase.tap * d) / s : 0,
                              .hop = -d / common};
    return phase;
}

/* Copies the taps of a phase, from (O, C, taps) of a convolution to (groups C, O / groups, taps).
 */
static void transpose_weight(const wg__correlation *of, const wg__correlation *to,
                             const phase *phases, const char *weight, char *copy) {
    const int64_t size = (int64_t)wg_dtype_size(of->dtype);
    const wg__window_axis *all = of->axes, *few = to->axes;
    for (int64_t g = 0; g < of->groups; g++)
        for (int64_t c = 0; c < of->in_channels; c++)
            for (int64_t o = 0; o < of->out_channels; o++)
                for (int64_t i = 0; i < few[0].taps; i++)
                    for (int64_t j = 0; j < few[1].taps; j++)
                        for (int64_t k = 0; k < few[2].taps; k++) {
                            int64_t place = (g * of->out_channels + o) * of->in_channels + c;
                            place = place * all[0].taps + phases[0].tap + i * phases[0].apart;
                            place = place * all[1].taps + phases[1].tap + j * phases[1].apart;
                            place = place * all[2].taps + phases[2].tap + k * phases[2].apart;
                            memcpy(copy, weight + place * size, (size_t)size);
                            copy += size;
                        }
}

/* Computes the places of x, the images, that belong to one phase of each axis. */
static int transpose_phase(const wg__correlation *of, const int64_t *begins, const void *bias,
                           char *x, char *weight) {
    phase phases[AXES];
    int64_t stride = 1;
    wg__correlation c = {.dtype = of->dtype,
                         .images = of->images,
                         .groups = of->groups,
                         .in_channels = of->out_channels,
                         .out_channels = of->in_channels,
                         .x = of->y,
                         .weight = weight,
                         .bias = bias,
                         .y = x};
    for (int i = AXES - 1; i >= 0; i--) {
        phases[i] = transpose_axis(&of->axes[i], begins[i], &c.axes[i]);
        c.y = (char *)c.y + begins[i] * stride * (int64_t)wg_dtype_size(of->dtype);
        c.y_axes[i] = stride * of->axes[i].step;
        stride *= of->axes[i].size;
    }
    c.y_channel = stride;
    c.y_image = stride * of->groups * of->in_channels;
    transpose_weight(of, &c, phases, of->weight, weight);
    return wg__correlate(&c);
}

static int conv_transpose_forward(wg_call *call) {
    bool failed = false;
    wg__correlation c = correlation_of(call->options, &call->output_specs[0], &call->input_specs[0],
                                       &call->input_specs[1]);
    c.y = (void *)contiguous(call->inputs[0], &failed);
    c.weight = contiguous(call->inputs[1], &failed);
    const void *bias = bias_of(call) ? contiguous(bias_of(call), &failed) : NULL;
    if (failed || wg__spec_count(&call->output_specs[0]) == 0)
        return failed ? -1 : 0;
    char *weight =
        wg__alloc_array(wg__spec_count(&call->input_specs[1]) + 1, wg_dtype_size(c.dtype));
    if (!weight)
        return -1;
    int status = 0;
    int64_t begins[AXES];
    for (begins[0] = 0; begins[0] < c.axes[0].step; begins[0]++)
        for (begins[1] = 0; begins[1] < c.axes[1].step; begins[1]++)
            for (begins[2] = 0; status == 0 && begins[2] < c.axes[2].step; begins[2]++)
                status =
                    transpose_phase(&c, begins, bias, wg__tensor_address(call->outputs[0]), weight);
    wg__free(weight);
    return status < 0 ? no_memory(call) : 0;
}

/* ---- Derivatives ---- */

/* Applies one of the three ops with options for a result of the spatial sizes of `like`. */
static wg_tensor *apply(const wg_op *ops, const wg_call *call, wg_tensor *a, wg_tensor *b,
                        wg_tensor *bias, const wg_spec *like) {
    conv_options options = *(const conv_options *)call->options;
    for (int i = 0; i < options.rank; i++) {
        options.size[i] = like->shape[FEWEST + i];
        options.output_padding[i] = 0;
    }
    wg_tensor *inputs[] = {a, b, bias};
    return wg_apply_one(&ops[options.rank - 1], bias ? 3 : 2, inputs, &options);
}

/* The sum over images and places. */
static wg_tensor *bias_gradient(const wg_call *call, wg_tensor *g) {
    const conv_options *options = call->options;
    return wg_sum(g, 1 + options->rank, (int64_t[]){0, 2, 3, 4}, false);
}

static int conv_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg_spec *x = &call->input_specs[0], *weight = &call->input_specs[1];
    wg_tensor *g = cotangents[0];
    if (wg__wants(call, 0))
        gradients[0] = apply(conv_transpose, call, g, call->inputs[1], NULL, x);
    if (wg__wants(call, 1))
        gradients[1] = apply(conv_weight, call, call->inputs[0], g, NULL, weight);
    if (wg__wants(call, 2))
        gradients[2] = bias_gradient(call, g);
    return wg__vjp_status();
}

static int conv_transpose_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg_spec *y = &call->input_specs[0], *weight = &call->input_specs[1];
    wg_tensor *g = cotangents[0];
    if (wg__wants(call, 0))
        gradients[0] = apply(conv, call, g, call->inputs[1], NULL, y);
    if (wg__wants(call, 1))
        gradients[1] = apply(conv_weight, call, g, call->inputs[0], NULL, weight);
    if (wg__wants(call, 2))
        gradients[2] = bias_gradient(call, g);
    return wg__vjp_status();
}

static int conv_weight_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg_spec *x = &call->input_specs[0], *y = &call->input_specs[1];
    wg_tensor *g = cotangents[0];
    if (wg__wants(call, 0))
        gradients[0] = apply(conv_transpose, call, call->inputs[1], g, NULL, x);
    if (wg__wants(call, 1))
        gradients[1] = apply(conv, call, call->inputs[0], g, NULL, y);
    return wg__vjp_status();
}

/* A tangent of the bias alone is expanded over images and places. */
static wg_tensor *expanded_bias(const wg_call *call, wg_tensor *bias) {
    const wg_spec *y = &call->output_specs[0];
    const int64_t shape[FEWEST + AXES] = {1, y->shape[1], 1, 1, 1};
    return wg_expand(wg_reshape(bias, y->ndim, shape), y->ndim, y->shape);
}

/* All three are linear in each of their first two inputs, and in the bias. */
static int bilinear_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *of_bias = call->input_count > 2 ? tangents[2] : NULL, *sum = NULL;
    for (int i = 0; i < 2; i++) {
        wg_tensor *inputs[] = {call->inputs[0], call->inputs[1], of_bias};
        if (!tangents[i])
            continue;
        inputs[i] = tangents[i];
        wg_tensor *y = wg_apply_one(call->op, of_bias ? 3 : 2, inputs, call->options);
        sum = sum ? wg_add(sum, y) : y;
        of_bias = NULL;
    }
    output_tangents[0] = of_bias ? expanded_bias(call, of_bias) : sum;
    return wg__vjp_status();
}

/* ---- Samples ---- */

/* Two operations for each element of the weight that a place of the outputs is multiplied by. */
static double flops_of(const wg_spec *y, const wg_spec *weight) {
    const double channels = (double)(weight->shape[0] ? weight->shape[0] : 1);
    return 2 * (double)wg__spec_count(y) * (double)wg__spec_count(weight) / channels;
}

static double conv_flops(const wg_call *call) {
    return flops_of(&call->output_specs[0], &call->input_specs[1]);
}

static double conv_transpose_flops(const wg_call *call) {
    return flops_of(&call->input_specs[0], &call->input_specs[1]);
}

static double conv_weight_flops(const wg_call *call) {
    return flops_of(&call->input_specs[1], &call->output_specs[0]);
}

/* Images, weights and outputs that belong together; `size` is set for the op that is sampled. */
typedef struct example {
    conv_options options;
    bool bias;
    int64_t x[FEWEST + AXES], weight[FEWEST + AXES], y[FEWEST + AXES];
} example;

enum { EXAMPLES = 4 };

static const example examples[AXES][EXAMPLES] = {
    {{{1, {1}, {1}, {1}, {0}, 1, {0}}, true, {2, 2, 5}, {3, 2, 3}, {2, 3, 5}},
     {{1, {2}, {2}, {1}, {0}, 2, {0}}, false, {1, 4, 6}, {2, 2, 3}, {1, 2, 4}},
     {{1, {3}, {0}, {2}, {0}, 1, {0}}, true, {1, 5, 8}, {1, 5, 2}, {1, 1, 2}},
     {{1, {1}, {2}, {2}, {0}, 3, {0}}, true, {2, 3, 4}, {6, 1, 3}, {2, 6, 4}}},
    {{{2, {1, 1}, {1, 1}, {1, 1}, {0}, 1, {0}}, true, {1, 2, 3, 4}, {3, 2, 3, 3}, {1, 3, 3, 4}},
     {{2, {2, 1}, {0, 1}, {1, 2}, {0}, 1, {0}}, false, {2, 5, 4, 3}, {1, 5, 2, 2}, {2, 1, 2, 3}},
     {{2, {2, 2}, {1, 0}, {1, 1}, {0}, 2, {0}}, true, {1, 2, 4, 5}, {2, 1, 3, 2}, {1, 2, 2, 2}},
     {{2, {1, 3}, {0, 0}, {1, 1}, {0}, 1, {0}}, true, {1, 3, 2, 5}, {2, 3, 1, 1}, {1, 2, 2, 2}}},
    {{{3, {1, 1, 1}, {1, 0, 1}, {1, 1, 1}, {0}, 1, {0}},
      true,
      {1, 2, 2, 2, 3},
      {3, 2, 3, 1, 2},
      {1, 3, 2, 2, 4}},
     {{3, {2, 1, 2}, {0, 1, 0}, {1, 1, 2}, {0}, 1, {0}},
      false,
      {1, 5, 3, 1, 3},
      {1, 5, 2, 2, 2},
      {1, 1, 1, 2, 1}},
     {{3, {1, 2, 1}, {0, 0, 0}, {1, 1, 1}, {0}, 2, {0}},
      true,
      {2, 2, 1, 3, 2},
      {2, 1, 1, 2, 2},
      {2, 2, 1, 1, 1}},
     {{3, {3, 1, 2}, {1, 1, 1}, {1, 1, 1}, {0}, 1, {0}},
      true,
      {1, 1, 2, 2, 2},
      {2, 1, 1, 2, 3},
      {1, 2, 2, 3, 1}}}};

/* About 2^31 operations in the sizes of usual networks. */
static const example large[AXES] = {
    {{1, {1}, {1}, {1}, {0}, 1, {0}}, false, {4, 256, 1024}, {256, 256, 3}, {4, 256, 1024}},
    {{2, {1, 1}, {1, 1}, {1, 1}, {0}, 1, {0}},
     false,
     {8, 64, 56, 56},
     {64, 64, 3, 3},
     {8, 64, 56, 56}},
    {{3, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, 1, {0}},
     false,
     {1, 32, 16, 48, 48},
     {32, 32, 3, 3, 3},
     {1, 32, 16, 48, 48}}};

/* The options of the sampled op, whose result has the sizes of `like`. Each op and example has its
 * own, so that a sample's options stay. */
static const conv_options *options_for(int op, const example *e, const int64_t *like) {
    static conv_options made[3][AXES][EXAMPLES + 1]; /* of rank 0: not made yet */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const int rank = e->options.rank;
    const ptrdiff_t number = e == &large[rank - 1] ? EXAMPLES : e - examples[rank - 1];
    conv_options *options = &made[op][rank - 1][number];
    pthread_mutex_lock(&lock);
    if (options->rank == 0) {
        *options = e->options;
        memcpy(options->size, like + FEWEST, sizeof options->size);
    }
    pthread_mutex_unlock(&lock);
    return options;
}

static int set_sample(wg_generator *generator, wg_sample *sample, const conv_options *options,
                      const int64_t *a, const int64_t *b, const int64_t *bias) {
    sample->options = options;
    sample->inputs[0] = wg__sample_normal(generator, options->rank + FEWEST, a);
    sample->inputs[1] = wg__sample_normal(generator, options->rank + FEWEST, b);
    if (bias)
        sample->inputs[2] = wg__sample_normal(generator, 1, bias);
    return wg__sample_status(sample, bias ? 3 : 2);
}

static int conv_example(wg_generator *generator, wg_sample *sample, const example *e) {
    return set_sample(generator, sample, options_for(0, e, e->y), e->x, e->weight,
                      e->bias ? &e->weight[0] : NULL);
}

static int conv_transpose_example(wg_generator *generator, wg_sample *sample, const example *e) {
    return set_sample(generator, sample, options_for(1, e, e->x), e->y, e->weight,
                      e->bias ? &e->x[1] : NULL);
}

static int conv_weight_example(wg_generator *generator, wg_sample *sample, const example *e) {
    return set_sample(generator, sample, options_for(2, e, e->weight), e->x, e->y, NULL);
}

/* NAME1d_sample and so on, and NAME1d_bench, for each number of axes. */
#define SAMPLES_OF(NAME, RANK)                                                                     \
    static int NAME##RANK##d_sample(int index, wg_generator *generator, wg_sample *sample) {       \
        return index < EXAMPLES ? NAME##_example(generator, sample, &examples[(RANK)-1][index])    \
                                : 0;                                                               \
    }                                                                                              \
    static int NAME##RANK##d_bench(wg_generator *generator, wg_sample *sample) {                   \
        if (NAME##_example(generator, sample, &large[(RANK)-1]) < 0)                               \
            return -1;                                                                             \
        for (int i = 0; i < sample->input_count; i++)                                              \
            sample->inputs[i] = wg_cast(sample->inputs[i], WG_F32);                                \
        return wg__sample_status(sample, sample->input_count);                                     \
    }
#define SAMPLES(NAME) SAMPLES_OF(NAME, 1) SAMPLES_OF(NAME, 2) SAMPLES_OF(NAME, 3)

SAMPLES(conv)
SAMPLES(conv_transpose)
SAMPLES(conv_weight)

/* ---- Batching rules: samples of x alone are more images. Otherwise each sample is a group of its
 * own: its channels stand beside those of the others. ---- */

/* (B, ..., C, ...) -> (..., B C, ...), C at `axis` of one sample; an input that is the same for all
 * is expanded. */
static wg_tensor *beside(const wg_call *call, uint32_t batched, int i, int axis, int64_t samples) {
    const wg_spec *one = &call->input_specs[i];
    wg_tensor *x = wg__batch_repeated_input(call, batched, i, samples);
    const int64_t from = 0, to = axis;
    int64_t shape[WG_MAX_DIMS];
    memcpy(shape, one->shape, (size_t)one->ndim * sizeof *shape);
    shape[axis] *= samples;
    return wg_reshape(x ? wg_movedim(x, 1, &from, &to) : NULL, one->ndim, shape);
}

/* The converse for the output, of which `axis` has the channels. */
static int apart(wg_call *call, wg_tensor *y, int axis, int64_t samples) {
    const wg_spec *one = &call->output_specs[0];
    const int64_t from = axis, to = 0;
    int64_t shape[WG_MAX_DIMS];
    memcpy(shape, one->shape, (size_t)axis * sizeof *shape);
    shape[axis] = samples;
    memcpy(shape + axis + 1, one->shape + axis, (size_t)(one->ndim - axis) * sizeof *shape);
    y = wg_reshape(y, one->ndim + 1, shape);
    return wg__set_output(call, y ? wg_movedim(y, 1, &from, &to) : NULL);
}

static int grouped_batch(wg_call *call, uint32_t batched, int64_t samples, const int *input_axes,
                         int output_axis) {
    conv_options options = *(const conv_options *)call->options;
    wg_tensor *inputs[3] = {NULL};
    options.groups *= samples;
    for (int i = 0; i < call->input_count; i++)
        if (call->inputs[i])
            inputs[i] = beside(call, batched, i, input_axes[i], samples);
    return apart(call, wg_apply_one(call->op, call->input_count, inputs, &options), output_axis,
                 samples);
}

static int conv_batch(wg_call *call, uint32_t batched, int64_t samples) {
    return batched == 1 ? wg__batch_folded(call, batched, samples)
                        : grouped_batch(call, batched, samples, (int[]){1, 0, 0}, 1);
}

static int conv_transpose_batch(wg_call *call, uint32_t batched, int64_t samples) {
    return conv_batch(call, batched, samples);
}

static int conv_weight_batch(wg_call *call, uint32_t batched, int64_t samples) {
    return grouped_batch(call, batched, samples, (int[]){1, 1}, 0);
}

/* ---- Records ---- */

#define RECORD(NAME, RANK, TITLE, INPUTS, BITS, DOC)                                               \
    {                                                                                              \
        WG__OP_OF(TITLE, 2, INPUTS, 1, DOC),                                                       \
            .options_size = sizeof(conv_options), .saves_inputs = 3, .differentiable = BITS,       \
            .infer = NAME##_infer, .forward = NAME##_forward, .vjp = NAME##_vjp,                   \
            .jvp = bilinear_jvp, .sample = NAME##RANK##d_sample, .batch = NAME##_batch,            \
            .bench = NAME##RANK##d_bench, .flops = NAME##_flops,                                   \
    }

#define CONV(RANK, AXES)                                                                           \
    RECORD(conv, RANK, "conv" #RANK "d", 3, 7,                                                     \
           "y = the sums of products of windows of x and a kernel, plus bias: (N, C, " AXES        \
           ") x (O, C / groups, kernel), and (O) if there is a bias -> (N, O, places).")
#define TRANSPOSE(RANK, AXES)                                                                      \
    RECORD(conv_transpose, RANK, "conv_transpose" #RANK "d", 3, 7,                                 \
           "y = zeros with a kernel times each x added at its window, plus bias: (N, C, " AXES     \
           ") x (C, O / groups, kernel), and (O) if there is a bias -> (N, O, places). The "       \
           "adjoint of conv" #RANK "d.")
#define WEIGHT(RANK, AXES)                                                                         \
    RECORD(conv_weight, RANK, "conv" #RANK "d_weight", 2, 3,                                       \
           "The gradient of the weight of conv" #RANK "d: (N, C, " AXES                            \
           ") x (N, O, places) -> (O, C / groups, kernel).")

static const wg_op conv[AXES] = {CONV(1, "L"), CONV(2, "H, W"), CONV(3, "D, H, W")};
static const wg_op conv_transpose[AXES] = {TRANSPOSE(1, "L"), TRANSPOSE(2, "H, W"),
                                           TRANSPOSE(3, "D, H, W")};
static const wg_op conv_weight[AXES] = {WEIGHT(1, "L"), WEIGHT(2, "H, W"), WEIGHT(3, "D, H, W")};

/* ---- Functions ---- */

/* Reads the caller's options, with the defaults for zeros. */
static conv_options read_options(int rank, const wg_conv_options *given) {
    conv_options options = {.rank = rank, .groups = given->groups == 0 ? 1 : given->groups};
    for (int i = 0; i < rank; i++) {
        options.stride[i] = given->stride[i] == 0 ? 1 : given->stride[i];
        options.dilation[i] = given->dilation[i] == 0 ? 1 : given->dilation[i];
        options.padding[i] = given->padding[i];
        options.size[i] = -1;
    }
    return options;
}

/* Sets the spatial sizes of the result, where operands and options have a meaning; infer refuses
 * the others. */
static void set_sizes(conv_options *options, const wg_conv_options *given, bool transposed,
                      const wg_tensor *x, const wg_tensor *weight) {
    const int ndim = options->rank + FEWEST;
    if (x->spec.ndim != ndim || weight->spec.ndim != ndim)
        return;
    for (int i = 0; i < options->rank; i++) {
        const int64_t size = x->spec.shape[FEWEST + i], taps = weight->spec.shape[FEWEST + i];
        const int64_t stride = options->stride[i], dilation = options->dilation[i];
        if (stride < 1 || dilation < 1 || dilation > INT32_MAX || stride > INT32_MAX || taps < 1 ||
            options->padding[i] < 0 || options->padding[i] > INT32_MAX)
            continue;
        const int64_t reach = reach_of(taps, dilation);
        if (given->same_padding && !transposed)
            options->padding[i] = (reach - 1) / 2;
        const int64_t both = 2 * options->padding[i];
        if (transposed)
            options->size[i] = (size - 1) * stride + reach - both + given->output_padding[i];
        else if (given->same_padding)
            options->size[i] = size;
        else if (size + both >= reach)
            options->size[i] = (size + both - reach) / stride + 1;
        if (options->size[i] < 1)
            options->size[i] = -1;
    }
}

/* What goes with one of the two directions alone. */
static int check_direction(const conv_options *options, const wg_conv_options *given,
                           bool transposed, const char *name) {
    if (transposed && given->same_padding)
        return wg_fail(WG_ERROR_ARGUMENT, name,
                       "same_padding goes with a convolution that is not transposed");
    for (int i = 0; i < options->rank; i++) {
        if (given->same_padding && (options->stride[i] != 1 || given->padding[i] != 0))
            return wg_fail(WG_ERROR_ARGUMENT, name,
                           "same_padding goes with a stride of 1 and no other padding; spatial "
                           "axis %d has stride %lld and padding %lld",
                           i, (long long)options->stride[i], (long long)given->padding[i]);
        if (!transposed && given->output_padding[i] != 0)
            return wg_fail(WG_ERROR_ARGUMENT, name,
                           "output_padding goes with a transposed convolution; it is %lld along "
                           "spatial axis %d",
                           (long long)given->output_padding[i], i);
    }
    return 0;
}

static wg_tensor *convolve(int rank, bool transposed, wg_tensor *x, wg_tensor *weight,
                           wg_tensor *bias, const wg_conv_options *given) {
    static const wg_conv_options defaults;
    const wg_op *op = transposed ? &conv_transpose[rank - 1] : &conv[rank - 1];
    wg_tensor *inputs[] = {x, weight, bias}, *y;
    if (!weight || !wg__promote_all(3, inputs))
        return NULL;
    given = given ? given : &defaults;
    conv_options options = read_options(rank, given);
    if (check_direction(&options, given, transposed, op->name) < 0)
        return NULL;
    const wg_dtype dtype = inputs[0]->spec.dtype;
    const bool single = inputs[0]->spec.ndim == rank + 1;
    if (single)
        inputs[0] = wg_unsqueeze(inputs[0], 0);
    for (int i = 0; i < 3; i++)
        inputs[i] = wg__widen(inputs[i]);
    if (!inputs[0] || !inputs[1])
        return NULL;
    memcpy(options.output_padding, given->output_padding, sizeof options.output_padding);
    set_sizes(&options, given, transposed, inputs[0], inputs[1]);
    wg_apply(op, bias ? 3 : 2, inputs, &options, &y);
    return wg__narrow(single ? wg_squeeze(y, 0) : y, dtype);
}

#define FUNCTION(NAME, RANK, TRANSPOSED)                                                           \
    wg_tensor *NAME(wg_tensor *x, wg_tensor *weight, wg_tensor *bias,                              \
                    const wg_conv_options *options) {                                              \
        return convolve(RANK, TRANSPOSED, x, weight, bias, options);                               \
    }

FUNCTION(wg_conv1d, 1, false)
FUNCTION(wg_conv2d, 2, false)
FUNCTION(wg_conv3d, 3, false)
FUNCTION(wg_conv_transpose1d, 1, true)
FUNCTION(wg_conv_transpose2d, 2, true)
FUNCTION(wg_conv_transpose3d, 3, true)

static const wg_op *const ops[] = {&conv[0],           &conv[1],           &conv[2],
                                   &conv_transpose[0], &conv_transpose[1], &conv_transpose[2],
                                   &conv_weight[0],    &conv_weight[1],    &conv_weight[2]};

const wg__op_table wg__ops_conv = {ops, sizeof ops / sizeof *ops};
