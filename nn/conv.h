/* Convolutional layers. Pooling has no parameters, so it has no layer: see wg_max_pool in
 * tensor/ops.h. norm.h has BatchNorm2d and GroupNorm. */
#ifndef WG_NN_CONV_H
#define WG_NN_CONV_H

#include "../tensor/ops.h"
#include "module.h"

WG_BEGIN_DECLS

/* ---- A convolution or transposed convolution, with the names and defaults of PyTorch's Conv2d,
 * ConvTranspose2d and so on.
 *
 *     weight (O, I / groups, K...), transposed: (I, O / groups, K...)
 *     bias   (O)     left alone by weight decay
 *
 * Both begin uniform in [-1/sqrt(n), 1/sqrt(n)), where n is the product of the weight's sizes
 * after the first ---- */

typedef struct wg_conv {
    wg_module module;
    wg_tensor *weight;
    wg_tensor *bias; /* or NULL */
    int rank;        /* the number of spatial axes, 1 to 3 */
    bool transposed;
    wg_conv_options options;
    wg_pad_mode padding_mode;
} wg_conv;

typedef struct wg_conv_layer_options {
    wg_conv_options conv;     /* stride, padding, dilation, groups... */
    wg_pad_mode padding_mode; /* of conv.padding; default zeros. Not for transposed convolutions,
                                 nor with same_padding */
    bool no_bias;
    wg_initializer init; /* of the weight */
} wg_conv_layer_options;

/* A layer from `in` to `out` channels along `rank` axes: 1 of lines, 2 of images, 3 of volumes;
 * `kernel` has a size for each of them. `parent` owns the layer; NULL makes it a root. NULL with
 * [ARGUMENT for a rank beyond 1 to 3 and a size below 1, for groups that do not divide the
 * channels, and for a padding_mode that does not apply; MEMORY] */
WG_API wg_conv *wg_conv_new(wg_module *parent, const char *name, int rank, int64_t in, int64_t out,
                            const int64_t *kernel, const wg_conv_layer_options *options);

/* A layer of wg_conv_transpose_op; otherwise as wg_conv_new. */
WG_API wg_conv *wg_conv_transpose_new(wg_module *parent, const char *name, int rank, int64_t in,
                                      int64_t out, const int64_t *kernel,
                                      const wg_conv_layer_options *options);

/* x: (N, I, L), (N, I, H, W) or (N, I, D, H, W), with or without N   ->   the same with O channels;
 * wg_conv_op has the sizes. [scope; SHAPE, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_conv_forward(wg_conv *conv, wg_tensor *x);

WG_END_DECLS

#endif
