/* Convolution as products: images are read as matrices of windows.
 *
 *     wg__correlate        outputs (M, outputs) = weight (M, C taps) windows (C taps, outputs)
 *     wg__correlate_vjp    weight (M, C taps) = outputs (M, outputs) windows^T (outputs, C taps)
 *
 * A column of the matrix of windows has the elements that one output reads: `taps` elements of each
 * of C channels. The matrix is never stored: the product's packing reads it from a padded copy of a
 * few images (gemm.h: wg__gather). */
#ifndef WG_TENSOR_OPS_CONV_WINDOWS_H
#define WG_TENSOR_OPS_CONV_WINDOWS_H

#include "tensor/dtype.h"

#include <stdint.h>

#define WG__CONV_AXES 3

/* One spatial axis. Output o reads places o * step + first + t * hop of the image, for each tap t.
 * Places outside of the image are zeros. */
typedef struct wg__window_axis {
    int64_t size; /* of the image */
    int64_t count, taps;
    int64_t step, first, hop;
} wg__window_axis;

/* Images, outputs and weights. Missing axes have size, count and taps 1. All arrays are f32 or f64.
 * All but the outputs are contiguous; the outputs have strides in elements. */
typedef struct wg__correlation {
    wg_dtype dtype;
    int64_t images, groups;
    int64_t in_channels, out_channels; /* of each group */
    wg__window_axis axes[WG__CONV_AXES];
    const void *x;      /* (images, groups in_channels, sizes of the images) */
    const void *weight; /* (groups out_channels, in_channels, taps) */
    const void *bias;   /* (groups out_channels), or NULL */
    void *y;            /* (images, groups out_channels, counts) */
    int64_t y_image, y_channel, y_axes[WG__CONV_AXES]; /* strides of y */
} wg__correlation;

/* Computes y from x, weight and bias. -1 for lack of memory. The bits are the same at any number of
 * threads. */
int wg__correlate(const wg__correlation *correlation);

/* Computes the gradient of the weight, in the weight's shape, from x and y, which is the contiguous
 * gradient of the outputs. -1 for lack of memory. */
int wg__correlate_vjp(const wg__correlation *correlation, void *gradient);

#endif
