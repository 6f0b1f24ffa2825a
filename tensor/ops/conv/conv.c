/* Convolutions over one to three spatial axes. With images x, weights w and outputs y, three ops
 * are each other's derivatives, so that derivatives of any order exist:
 *
 *     conv            x, w -> y    y[o, p] = sum over c and t of w[o, c, t] x[c, p s + t d - b]
 *     conv_transpose  y, w -> x    the adjoint in x: each y[p] adds to the places it was read from
 *     conv_weight     x, y -> w    the adjoint in w
 *
 * where s is the stride, d the dilation and b the padding. Places outside of x are zeros, so every
 * combination of sizes has a meaning, and the options state the size of the result.
 *
 * A transposed convolution of stride s is s convolutions of stride 1, each with the taps whose
 * places are congruent modulo s:
 *
 *     s = 2, d = 1, taps a b c:      x[2 q - b]     = sum of a y[q], c y[q - 1]
 *                                    x[2 q + 1 - b] = sum of b y[q]  */
#include <string.h>

#include "tensor/easy.h"
#include "tensor/ops/conv/windows.h"
#include "tensor/ops/support.h"

enum { AXES = WG__CONV_AXES, FEWEST = 2 /* leading axes: images and channels */ };

/* The tensors of the three ops: an op reads two of them and computes the third. */
typedef enum role { X, WEIGHT, Y, ROLES } role;

typedef struct conv_options {
    int rank; /* the number of spatial axes, 1 to 3 */
    int64_t stride[AXES], padding[AXES], dilation[AXES], output_padding[AXES], groups;
    int64_t sizes[ROLES][AXES]; /* spatial sizes; -1: infer reports why there is no result */
} conv_options;

static int conv_infer(wg_call *call), conv_transpose_infer(wg_call *call);

/* Identified by the infer function, so that copies of a record work. */
static role result_of(const wg_call *call) {
    return call->op->infer == conv_infer ? Y : call->op->infer == conv_transpose_infer ? X : WEIGHT;
}

/* The role of input 0 or 1 of the op that computes `result`. */
static role role_of(role result, int input) {
    return input == 0 ? (result == X ? Y : X) : (result == WEIGHT ? Y : WEIGHT);
}

static const wg_spec *spec_of(const wg_call *call, role role) {
    const enum role result = result_of(call);
    return role == result ? &call->output_specs[0] : &call->input_specs[role != role_of(result, 0)];
}

static int check_operands(const wg_call *call) {
    static const char *const axes[] = {"L", "H, W", "D, H, W"}, *const taps[] = {"K", "K, K",
                                                                                 "K, K, K"};
    const conv_options *options = call->options;
    const int rank = options->rank;
    if (wg__check_same_dtypes(call, 3) < 0 || wg__check_kernel_dtype(call) < 0)
        return -1;
    if (call->input_specs[0].ndim != rank + FEWEST || call->input_specs[1].ndim != rank + FEWEST)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted images (N, C, %s) or (C, %s), and a weight (O, I, %s)",
                           axes[rank - 1], axes[rank - 1], taps[rank - 1]);
    if (options->groups < 1)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "groups is %lld; it must be at least 1",
                           (long long)options->groups);
    for (int i = 0; i < rank; i++) {
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

/* Fills the spec of the result: two leading sizes, then the spatial sizes of the options. Also
 * checks that the elements of the padded copy of the images (windows.c) can be counted. */
static int set_result(wg_call *call, int64_t first, int64_t second) {
    const conv_options *options = call->options;
    const wg_spec *bias = &call->input_specs[2];
    const int64_t *sizes = options->sizes[result_of(call)];
    int64_t shape[AXES + FEWEST] = {first, second};
    double places = 1;
    if (call->input_count > 2 && bias->ndim >= 0 && (bias->ndim != 1 || bias->shape[0] != second))
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted a bias of %lld, a value for each output channel",
                           (long long)second);
    for (int i = 0; i < options->rank; i++) {
        places *= (double)call->input_specs[0].shape[FEWEST + i] * (double)options->stride[i] +
                  2 * (double)options->padding[i] +
                  (double)(call->input_specs[1].shape[FEWEST + i] + sizes[i]) *
                      (double)(options->dilation[i] + options->stride[i]);
        shape[FEWEST + i] = sizes[i];
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
        const int64_t reach = options->dilation[i] * (taps - 1) + 1;
        if (options->sizes[Y][i] < 0)
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "a kernel of %lld, which reaches over %lld places, does not fit "
                               "into spatial axis %d, of size %lld with its padding",
                               (long long)taps, (long long)reach, i,
                               (long long)(x->shape[FEWEST + i] + 2 * options->padding[i]));
    }
    return set_result(call, x->shape[0], weight->shape[0]);
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
        if (options->sizes[X][i] < 0)
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "nothing is left of spatial axis %d when a padding of %lld is cut "
                               "off both ends",
                               i, (long long)options->padding[i]);
    return set_result(call, y->shape[0], weight->shape[1] * options->groups);
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

/* A phase of an axis: places begin, begin + stride... of the result are sums over the taps tap,
 * tap + spacing... */
typedef struct phase {
    int64_t begin, tap, spacing;
} phase;

/* Turns phase `begin` of an axis into an axis of a convolution of stride 1 from outputs to images.
 * A phase may have no taps. */
static phase transpose_axis(const wg__window_axis *of, int64_t begin, wg__window_axis *axis) {
    const int64_t s = of->step, d = of->hop, place = begin - of->first;
    int64_t common = s; /* the greatest divisor of both */
    for (int64_t rest = d, next; rest != 0; common = rest, rest = next)
        next = common % rest;
    phase phase = {begin, 0, s / common};
    while (phase.tap < phase.spacing && (place - phase.tap * d) % s != 0)
        phase.tap++;
    const int64_t taps = phase.tap < phase.spacing && phase.tap < of->taps
                             ? 1 + (of->taps - 1 - phase.tap) / phase.spacing
                             : 0;
    *axis = (wg__window_axis){.size = of->count,
                              .count = of->size > begin ? 1 + (of->size - 1 - begin) / s : 0,
                              .taps = taps,
                              .step = 1,
                              .first = taps ? (place - phase.tap * d) / s : 0,
                              .hop = -d / common};
    return phase;
}

/* Copies the taps of a phase: (O, C, taps) of a convolution to (groups C, O / groups, taps). */
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
                            place = place * all[0].taps + phases[0].tap + i * phases[0].spacing;
                            place = place * all[1].taps + phases[1].tap + j * phases[1].spacing;
                            place = place * all[2].taps + phases[2].tap + k * phases[2].spacing;
                            memcpy(copy, weight + place * size, (size_t)size);
                            copy += size;
                        }
}

/* Computes the images x from outputs and weights. Each step computes the places of a phase of each
 * axis. */
static int transpose(const wg__correlation *of, int64_t weights, char *x) {
    char *weight = wg__alloc_array(weights + 1, wg_dtype_size(of->dtype));
    int64_t counts[AXES], count = 1; /* of phases; a phase that begins beyond x has no places */
    for (int i = 0; i < AXES; i++) {
        counts[i] = wg__smaller(of->axes[i].step, of->axes[i].size);
        count *= counts[i];
    }
    int status = weight ? 0 : -1;
    for (int64_t number = 0; status == 0 && number < count; number++) {
        phase phases[AXES];
        int64_t stride = 1, rest = number;
        wg__correlation c = {.dtype = of->dtype,
                             .images = of->images,
                             .groups = of->groups,
                             .in_channels = of->out_channels,
                             .out_channels = of->in_channels,
                             .x = of->y,
                             .weight = weight,
                             .bias = of->bias,
                             .y = x};
        for (int i = AXES - 1; i >= 0; rest /= counts[i--]) {
            const int64_t begin = rest % counts[i];
            phases[i] = transpose_axis(&of->axes[i], begin, &c.axes[i]);
            c.y = (char *)c.y + begin * stride * (int64_t)wg_dtype_size(of->dtype);
            c.y_axes[i] = stride * of->axes[i].step;
            stride *= of->axes[i].size;
        }
        c.y_channel = stride;
        c.y_image = stride * of->groups * of->in_channels;
        transpose_weight(of, &c, phases, of->weight, weight);
        status = wg__correlate(&c);
    }
    wg__free(weight);
    return status;
}

static int forward(wg_call *call) {
    const conv_options *options = call->options;
    const role result = result_of(call);
    const wg_spec *x = spec_of(call, X), *y = spec_of(call, Y), *weight = spec_of(call, WEIGHT);
    void *data[ROLES + 1] = {NULL}; /* of all roles, and the bias */
    for (int i = 0; i < call->input_count; i++) {
        wg_tensor *input = call->inputs[i] ? wg_contiguous(call->inputs[i]) : NULL;
        if (call->inputs[i] && !input)
            return -1;
        data[i < 2 ? role_of(result, i) : ROLES] = input ? wg__tensor_address(input) : NULL;
    }
    data[result] = wg__tensor_address(call->outputs[0]);
    if (wg__spec_count(&call->output_specs[0]) == 0)
        return 0;

    /* Missing axes have size 1; outputs are contiguous. */
    wg__correlation c = {.dtype = x->dtype,
                         .images = x->shape[0],
                         .groups = options->groups,
                         .in_channels = weight->shape[1],
                         .out_channels = weight->shape[0] / options->groups,
                         .x = data[X],
                         .weight = data[WEIGHT],
                         .bias = data[ROLES],
                         .y = data[Y],
                         .y_channel = 1};
    for (int i = AXES - 1, axis = options->rank - 1; i >= 0; i--, axis--) {
        c.axes[i] = axis < 0 ? (wg__window_axis){.size = 1, .count = 1, .taps = 1, .step = 1}
                             : (wg__window_axis){.size = x->shape[FEWEST + axis],
                                                 .count = y->shape[FEWEST + axis],
                                                 .taps = weight->shape[FEWEST + axis],
                                                 .step = options->stride[axis],
                                                 .first = -options->padding[axis],
                                                 .hop = options->dilation[axis]};
        c.y_axes[i] = c.y_channel;
        c.y_channel *= c.axes[i].count;
    }
    c.y_image = c.y_channel * c.groups * c.out_channels;
    const int status = result == Y   ? wg__correlate(&c)
                       : result == X ? transpose(&c, wg__spec_count(weight), data[X])
                                     : wg__correlate_vjp(&c, data[WEIGHT]);
    return status < 0 ? wg__op_fail(call, WG_ERROR_MEMORY, "no memory for copies of the images")
                      : 0;
}

/* A multiplication and an addition for each output and each element of its weight. */
static double flops(const wg_call *call) {
    const wg_spec *weight = spec_of(call, WEIGHT);
    const double channels = (double)(weight->shape[0] ? weight->shape[0] : 1);
    return 2 * (double)wg__spec_count(spec_of(call, Y)) * (double)wg__spec_count(weight) / channels;
}

static const wg_op conv[AXES], conv_transpose[AXES], conv_weight[AXES];

/* The op with an input as its result computes that input's gradient from the two remaining tensors.
 * The gradient of the bias is the sum over images and places. */
static int vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    conv_options options = *(const conv_options *)call->options;
    const role result = result_of(call);
    wg_tensor *all[ROLES];
    all[result] = cotangents[0];
    for (int i = 0; i < 2; i++) {
        all[role_of(result, i)] = call->inputs[i];
        memcpy(options.sizes[role_of(result, i)], call->input_specs[i].shape + FEWEST,
               (size_t)options.rank * sizeof(int64_t));
    }
    for (int i = 0; i < 2; i++) {
        const role wanted = role_of(result, i);
        const wg_op *ops = wanted == Y ? conv : wanted == X ? conv_transpose : conv_weight;
        wg_tensor *inputs[] = {all[role_of(wanted, 0)], all[role_of(wanted, 1)]};
        if (wg__wants(call, i))
            gradients[i] = wg_apply_one(&ops[options.rank - 1], 2, inputs, &options);
    }
    if (wg__wants(call, 2))
        gradients[2] = wg_sum(cotangents[0], 1 + options.rank, (int64_t[]){0, 2, 3, 4}, false);
    return wg__vjp_status();
}

/* All three are linear in each of their first two inputs, and in the bias. A tangent of the bias
 * alone is expanded over images and places. */
static int jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const wg_spec *y = &call->output_specs[0];
    wg_tensor *of_bias = call->input_count > 2 ? tangents[2] : NULL, *sum = NULL;
    for (int i = 0; i < 2; i++) {
        wg_tensor *inputs[] = {call->inputs[0], call->inputs[1], of_bias};
        if (!tangents[i])
            continue;
        inputs[i] = tangents[i];
        sum = wg__plus(sum, wg_apply_one(call->op, of_bias ? 3 : 2, inputs, call->options));
        of_bias = NULL;
    }
    if (of_bias) {
        const int64_t shape[FEWEST + AXES] = {1, y->shape[1], 1, 1, 1};
        sum = wg_expand(wg_reshape(of_bias, y->ndim, shape), y->ndim, y->shape);
    }
    output_tangents[0] = sum;
    return wg__vjp_status();
}

/* A sample of all three ops: matching sizes of images, weights and outputs. */
typedef struct example {
    conv_options options;
    int64_t images, in, out; /* channels of all groups */
} example;

enum { EXAMPLES = 4 };

/* The last example of each rank is for benchmarks: about 2^31 operations, in sizes of real
 * networks. */
static const example examples[AXES][EXAMPLES + 1] = {
    {{{1, {1}, {1}, {1}, {0}, 1, {{5}, {3}, {5}}}, 2, 2, 3},
     {{1, {2}, {2}, {1}, {0}, 2, {{6}, {3}, {4}}}, 1, 4, 2},
     {{1, {3}, {0}, {2}, {0}, 1, {{8}, {2}, {2}}}, 1, 5, 1},
     {{1, {1}, {2}, {2}, {0}, 3, {{4}, {3}, {4}}}, 2, 3, 6},
     {{1, {1}, {1}, {1}, {0}, 1, {{1024}, {3}, {1024}}}, 4, 256, 256}},
    {{{2, {1, 1}, {1, 1}, {1, 1}, {0}, 1, {{3, 4}, {3, 3}, {3, 4}}}, 1, 2, 3},
     {{2, {2, 1}, {0, 1}, {1, 2}, {0}, 1, {{4, 3}, {2, 2}, {2, 3}}}, 2, 5, 1},
     {{2, {2, 2}, {1, 0}, {1, 1}, {0}, 2, {{4, 5}, {3, 2}, {2, 2}}}, 1, 2, 2},
     {{2, {1, 3}, {0, 0}, {1, 1}, {0}, 1, {{2, 5}, {1, 1}, {2, 2}}}, 1, 3, 2},
     {{2, {1, 1}, {1, 1}, {1, 1}, {0}, 1, {{56, 56}, {3, 3}, {56, 56}}}, 8, 64, 64}},
    {{{3, {1, 1, 1}, {1, 0, 1}, {1, 1, 1}, {0}, 1, {{2, 2, 3}, {3, 1, 2}, {2, 2, 4}}}, 1, 2, 3},
     {{3, {2, 1, 2}, {0, 1, 0}, {1, 1, 2}, {0}, 1, {{3, 1, 3}, {2, 2, 2}, {1, 2, 1}}}, 1, 5, 1},
     {{3, {1, 2, 1}, {0, 0, 0}, {1, 1, 1}, {0}, 2, {{1, 3, 2}, {1, 2, 2}, {1, 1, 1}}}, 2, 2, 2},
     {{3, {3, 1, 2}, {1, 1, 1}, {1, 1, 1}, {0}, 1, {{2, 2, 2}, {1, 2, 3}, {2, 3, 1}}}, 1, 1, 2},
     {{3, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, 1, {{16, 48, 48}, {3, 3, 3}, {16, 48, 48}}},
      1,
      32,
      32}}};

static int make_sample(int index, int rank, role result, wg_generator *generator,
                       wg_sample *sample) {
    const example *e = &examples[rank - 1][index];
    const int64_t channels[ROLES] = {e->in, e->in / e->options.groups, e->out};
    sample->options = &e->options;
    for (int i = 0; i < 2; i++) {
        const role role = role_of(result, i);
        int64_t shape[FEWEST + AXES] = {role == WEIGHT ? e->out : e->images, channels[role]};
        memcpy(shape + FEWEST, e->options.sizes[role], sizeof e->options.sizes[role]);
        wg_tensor *x = wg__sample_normal(generator, rank + FEWEST, shape);
        sample->inputs[i] = index == EXAMPLES ? wg_cast(x, WG_F32) : x;
    }
    const bool bias = index % 3 != 1 && result != WEIGHT; /* not in number 1 and the benchmark */
    if (bias)
        sample->inputs[2] = wg__sample_normal(generator, 1, &channels[result]);
    return wg__sample_status(sample, bias ? 3 : 2);
}

/* NAME1d_sample and so on, and NAME1d_bench, for each number of axes. */
#define SAMPLES_OF(NAME, RESULT, RANK)                                                             \
    static int NAME##RANK##d_sample(int index, wg_generator *generator, wg_sample *sample) {       \
        return index < EXAMPLES ? make_sample(index, RANK, RESULT, generator, sample) : 0;         \
    }                                                                                              \
    static int NAME##RANK##d_bench(wg_generator *generator, wg_sample *sample) {                   \
        return make_sample(EXAMPLES, RANK, RESULT, generator, sample);                             \
    }
#define SAMPLES(NAME, RESULT)                                                                      \
    SAMPLES_OF(NAME, RESULT, 1) SAMPLES_OF(NAME, RESULT, 2) SAMPLES_OF(NAME, RESULT, 3)

SAMPLES(conv, Y)
SAMPLES(conv_transpose, X)
SAMPLES(conv_weight, WEIGHT)

/* ---- Batching: if x alone has samples, they become more images. Otherwise samples become groups
 * of channels. ---- */

static int batch(wg_call *call, uint32_t batched, int64_t samples) {
    const role result = result_of(call);
    conv_options options = *(const conv_options *)call->options;
    wg_tensor *inputs[3] = {NULL};
    const int64_t first = 0;
    int64_t shape[WG_MAX_DIMS];
    if (result != WEIGHT && batched == 1)
        return wg__batch_folded(call, batched, samples);
    options.groups *= samples;
    /* (B, ..., C, ...) -> (..., B C, ...) */
    for (int i = 0; i < call->input_count; i++) {
        const wg_spec *one = &call->input_specs[i];
        const int64_t axis = i < 2 && role_of(result, i) != WEIGHT;
        if (!call->inputs[i])
            continue;
        wg_tensor *x = wg__batch_repeated_input(call, batched, i, samples);
        memcpy(shape, one->shape, sizeof shape);
        shape[axis] *= samples;
        inputs[i] = wg_reshape(x ? wg_movedim(x, 1, &first, &axis) : NULL, one->ndim, shape);
    }
    /* and back */
    const wg_spec *one = &call->output_specs[0];
    const int64_t axis = result != WEIGHT;
    memcpy(shape, one->shape, (size_t)axis * sizeof *shape);
    shape[axis] = samples;
    memcpy(shape + axis + 1, one->shape + axis, (size_t)(one->ndim - axis) * sizeof *shape);
    wg_tensor *y = wg_reshape(wg_apply_one(call->op, call->input_count, inputs, &options),
                              one->ndim + 1, shape);
    return wg__set_output(call, y ? wg_movedim(y, 1, &axis, &first) : NULL);
}

#define RECORD(NAME, RANK, TITLE, INPUTS, BITS, DOC)                                               \
    {                                                                                              \
        WG__OP_OF(TITLE, 2, INPUTS, 1, DOC),                                                       \
            .options_size = sizeof(conv_options), .saves_inputs = 3, .differentiable = BITS,       \
            .infer = NAME##_infer, .forward = forward, .vjp = vjp, .jvp = jvp,                     \
            .sample = NAME##RANK##d_sample, .batch = batch, .bench = NAME##RANK##d_bench,          \
            .flops = flops,                                                                        \
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

/* Reads the caller's options, with defaults for zeros, and computes the spatial sizes. Sizes stay
 * -1 where the operands or options are invalid: infer reports the error. -1 for options that the
 * direction, transposed or not, does not have. */
static int read_options(const wg_op *op, const wg_conv_options *given, bool transposed,
                        const wg_spec *x, const wg_spec *weight, conv_options *options) {
    const int rank = weight->ndim - FEWEST;
    *options = (conv_options){.rank = rank, .groups = given->groups == 0 ? 1 : given->groups};
    if (transposed && given->same_padding)
        return wg_fail(WG_ERROR_ARGUMENT, op->name,
                       "same_padding goes with a convolution that is not transposed");
    for (int i = 0; i < rank; i++) {
        const int64_t stride = given->stride[i] == 0 ? 1 : given->stride[i];
        const int64_t dilation = given->dilation[i] == 0 ? 1 : given->dilation[i];
        const int64_t padding = given->padding[i], more = given->output_padding[i];
        int64_t *size = &options->sizes[transposed ? X : Y][i];
        options->stride[i] = stride;
        options->dilation[i] = dilation;
        options->padding[i] = padding;
        options->output_padding[i] = more;
        *size = -1;
        if (given->same_padding && (stride != 1 || padding != 0))
            return wg_fail(WG_ERROR_ARGUMENT, op->name,
                           "same_padding goes with a stride of 1 and no other padding; spatial "
                           "axis %d has stride %lld and padding %lld",
                           i, (long long)stride, (long long)padding);
        if (!transposed && more != 0)
            return wg_fail(WG_ERROR_ARGUMENT, op->name,
                           "output_padding goes with a transposed convolution; it is %lld along "
                           "spatial axis %d",
                           (long long)more, i);
        if (x->ndim != rank + FEWEST)
            continue;
        const int64_t before = x->shape[FEWEST + i], taps = weight->shape[FEWEST + i];
        options->sizes[transposed ? Y : X][i] = before;
        options->sizes[WEIGHT][i] = taps;
        if (stride < 1 || dilation < 1 || dilation > INT32_MAX || stride > INT32_MAX || taps < 1 ||
            padding < 0 || padding > INT32_MAX)
            continue;
        const int64_t reach = dilation * (taps - 1) + 1;
        if (given->same_padding)
            options->padding[i] = (reach - 1) / 2;
        if (transposed)
            *size = (before - 1) * stride + reach - 2 * padding + more;
        else if (given->same_padding)
            *size = before;
        else if (before + 2 * padding >= reach)
            *size = (before + 2 * padding - reach) / stride + 1;
        if (*size < 1)
            *size = -1;
    }
    return 0;
}

static wg_tensor *convolve(bool transposed, wg_tensor *x, wg_tensor *weight, wg_tensor *bias,
                           const wg_conv_options *given) {
    static const wg_conv_options defaults;
    wg_tensor *inputs[] = {x, weight, bias};
    conv_options options;
    char text[160];
    if (!x || !weight)
        return NULL;
    const int rank = weight->spec.ndim - FEWEST;
    if (rank < 1 || rank > AXES)
        return wg__fail_null(WG_ERROR_SHAPE, transposed ? "conv_transpose" : "conv",
                             "the weight is %s; wanted (O, I, K), (O, I, K, K) or (O, I, K, K, K)",
                             wg_spec_text(text, sizeof text, &weight->spec));
    const wg_op *op = transposed ? &conv_transpose[rank - 1] : &conv[rank - 1];
    const bool single = x->spec.ndim == rank + 1;
    if (single)
        inputs[0] = wg_unsqueeze(x, 0);
    if (!inputs[0] || read_options(op, given ? given : &defaults, transposed, &inputs[0]->spec,
                                   &weight->spec, &options) < 0)
        return NULL;
    wg_tensor *y = wg__apply_wide_one(op, bias ? 3 : 2, inputs, false, &options);
    return single ? wg_squeeze(y, 0) : y;
}

wg_tensor *wg_conv_op(wg_tensor *x, wg_tensor *weight, wg_tensor *bias,
                      const wg_conv_options *options) {
    return convolve(false, x, weight, bias, options);
}

wg_tensor *wg_conv_transpose_op(wg_tensor *x, wg_tensor *weight, wg_tensor *bias,
                                const wg_conv_options *options) {
    return convolve(true, x, weight, bias, options);
}

const wg__op_table wg__ops_conv =
    WG__OP_TABLE(&conv[0], &conv[1], &conv[2], &conv_transpose[0], &conv_transpose[1],
                 &conv_transpose[2], &conv_weight[0], &conv_weight[1], &conv_weight[2]);
