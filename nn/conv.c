/* Convolutional layers: the ops of tensor/ops.h with a weight and a bias. */
#include "nn/conv.h"

#include <math.h>

#include "nn/internal.h"

static wg_conv *conv_new(wg_module *parent, const char *name, int rank, bool transposed, int64_t in,
                         int64_t out, const int64_t *kernel, const wg_conv_layer_options *options) {
    static const char *const names[2][3] = {
        {"conv1d", "conv2d", "conv3d"},
        {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}};
    options = options ? options : &(const wg_conv_layer_options){0};
    if (rank < 1 || rank > 3)
        return wg__fail_null(WG_ERROR_ARGUMENT, transposed ? "conv_transpose" : "conv",
                             "the rank is %d; wanted 1 for lines, 2 for images or 3 for volumes",
                             rank);
    const char *where = names[transposed][rank - 1];
    const int64_t groups = options->conv.groups == 0 ? 1 : options->conv.groups;
    int64_t shape[5] = {transposed ? in : out};
    if (wg__check_size(where, "in", in) < 0 || wg__check_size(where, "out", out) < 0)
        return NULL;
    for (int i = 0; i < rank; i++) {
        if (wg__check_size(where, "kernel", kernel[i]) < 0)
            return NULL;
        shape[2 + i] = kernel[i];
    }
    if (groups < 0 || in % groups != 0 || out % groups != 0)
        return wg__fail_null(
            WG_ERROR_ARGUMENT, where,
            "groups is %lld; it must be at least 1, and divide in (%lld) and out (%lld)",
            (long long)groups, (long long)in, (long long)out);
    if (options->padding_mode != WG_PAD_CONSTANT && (transposed || options->conv.same_padding))
        return wg__fail_null(
            WG_ERROR_ARGUMENT, where,
            "padding_mode goes with a convolution that is not transposed and has no "
            "same_padding");
    wg_conv *conv = wg_module_new(parent, name, sizeof *conv);
    if (!conv)
        return NULL;
    conv->rank = rank;
    conv->transposed = transposed;
    conv->options = options->conv;
    conv->padding_mode = options->padding_mode;
    shape[1] = (transposed ? out : in) / groups;
    double behind = (double)shape[1];
    for (int i = 0; i < rank; i++)
        behind *= (double)kernel[i];
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

wg_conv *wg_conv_new(wg_module *parent, const char *name, int rank, int64_t in, int64_t out,
                     const int64_t *kernel, const wg_conv_layer_options *options) {
    return conv_new(parent, name, rank, false, in, out, kernel, options);
}

wg_conv *wg_conv_transpose_new(wg_module *parent, const char *name, int rank, int64_t in,
                               int64_t out, const int64_t *kernel,
                               const wg_conv_layer_options *options) {
    return conv_new(parent, name, rank, true, in, out, kernel, options);
}

wg_tensor *wg_conv_forward(wg_conv *conv, wg_tensor *x) {
    wg_error_place place;
    wg_module_enter(&conv->module, &place);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_conv_options options = conv->options;
    if (conv->padding_mode != WG_PAD_CONSTANT) { /* in place of the convolution's zeros */
        int64_t widths[6];
        for (int i = 0; i < conv->rank; i++) {
            widths[2 * i] = widths[2 * i + 1] = options.padding[i];
            options.padding[i] = 0;
        }
        x = wg_pad(x, conv->rank, widths, conv->padding_mode, 0);
    }
    wg_tensor *y = conv->transposed ? wg_conv_transpose_op(x, conv->weight, conv->bias, &options)
                                    : wg_conv_op(x, conv->weight, conv->bias, &options);
    return wg_module_leave(&place, wg_scope_end(&scope, y));
}
