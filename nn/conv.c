/* Convolutional layers: the ops of tensor/ops.h with a weight and a bias. */
#include "nn/conv.h"

#include <math.h>

#include "nn/internal.h"
#include "tensor/internal.h"

typedef wg_tensor *(*convolution)(wg_tensor *x, wg_tensor *weight, wg_tensor *bias,
                                  const wg_conv_options *options);

static const convolution convolutions[2][3] = {
    {wg_conv1d, wg_conv2d, wg_conv3d},
    {wg_conv_transpose1d, wg_conv_transpose2d, wg_conv_transpose3d}};

static int check_sizes(const char *name, int rank, int64_t in, int64_t out, const int64_t *kernel,
                       const wg_conv_layer_options *options, bool transposed) {
    const int64_t groups = options->conv.groups;
    if (wg__check_size(name, "in", in) < 0 || wg__check_size(name, "out", out) < 0)
        return -1;
    for (int i = 0; i < rank; i++)
        if (wg__check_size(name, "kernel", kernel[i]) < 0)
            return -1;
    if (groups < 0 || (groups > 0 && (in % groups != 0 || out % groups != 0)))
        return wg_fail(WG_ERROR_ARGUMENT, name,
                       "groups is %lld; it must be at least 1, and divide in (%lld) and out (%lld)",
                       (long long)groups, (long long)in, (long long)out);
    if (options->padding_mode != WG_PAD_CONSTANT && (transposed || options->conv.same_padding))
        return wg_fail(WG_ERROR_ARGUMENT, name,
                       "padding_mode goes with a convolution that is not transposed and has no "
                       "same_padding");
    return 0;
}

static wg_conv *conv_new(wg_module *parent, const char *name, int rank, bool transposed, int64_t in,
                         int64_t out, const int64_t *kernel, const wg_conv_layer_options *options) {
    static const char *const names[2][3] = {
        {"conv1d", "conv2d", "conv3d"},
        {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}};
    static const wg_conv_layer_options defaults;
    if (!options)
        options = &defaults;
    if (check_sizes(names[transposed][rank - 1], rank, in, out, kernel, options, transposed) < 0)
        return NULL;
    wg_conv *conv = wg_module_new(parent, name, sizeof *conv);
    if (!conv)
        return NULL;
    conv->rank = rank;
    conv->transposed = transposed;
    conv->options = options->conv;
    conv->padding_mode = options->padding_mode;
    const int64_t groups = options->conv.groups == 0 ? 1 : options->conv.groups;
    int64_t shape[5] = {transposed ? in : out, (transposed ? out : in) / groups};
    double behind = (double)shape[1];
    for (int i = 0; i < rank; i++) {
        shape[2 + i] = kernel[i];
        behind *= (double)kernel[i];
    }
    const wg_initializer uniform = {WG_INIT_UNIFORM, 1 / sqrt(behind)};
    conv->weight =
        wg__parameter(&conv->module, "weight", rank + 2, shape, &options->init, &uniform);
    if (!options->no_bias) {
        conv->bias = wg__parameter(&conv->module, "bias", 1, &out, NULL, &uniform);
        if (conv->bias)
            wg_module_no_decay(&conv->module, "bias");
    }
    return wg_module_finish(&conv->module);
}

#define NEW(NAME, RANK, TRANSPOSED)                                                                \
    wg_conv *NAME(wg_module *parent, const char *name, int64_t in, int64_t out,                    \
                  const int64_t *kernel, const wg_conv_layer_options *options) {                   \
        return conv_new(parent, name, RANK, TRANSPOSED, in, out, kernel, options);                 \
    }

NEW(wg_conv1d_new, 1, false)
NEW(wg_conv2d_new, 2, false)
NEW(wg_conv3d_new, 3, false)
NEW(wg_conv_transpose1d_new, 1, true)
NEW(wg_conv_transpose2d_new, 2, true)
NEW(wg_conv_transpose3d_new, 3, true)

/* Pads the spatial axes by what the padding mode says, in place of the convolution's zeros. */
static wg_tensor *padded(const wg_conv *conv, wg_tensor *x, wg_conv_options *options) {
    int64_t widths[6];
    for (int i = 0; i < conv->rank; i++) {
        widths[2 * i] = widths[2 * i + 1] = options->padding[i];
        options->padding[i] = 0;
    }
    return wg_pad(x, conv->rank, widths, conv->padding_mode, 0);
}

wg_tensor *wg_conv_forward(wg_conv *conv, wg_tensor *x) {
    wg_error_place place;
    wg_module_enter(&conv->module, &place);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_conv_options options = conv->options;
    if (conv->padding_mode != WG_PAD_CONSTANT)
        x = padded(conv, x, &options);
    wg_tensor *y =
        convolutions[conv->transposed][conv->rank - 1](x, conv->weight, conv->bias, &options);
    return wg_module_leave(&place, wg_scope_end(&scope, y));
}
