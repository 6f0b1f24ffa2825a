/* Normalization, and the residual connection that goes with it. Weights begin at 1, biases at 0;
 * weight decay leaves both alone. */
#ifndef WG_NN_NORM_H
#define WG_NN_NORM_H

#include "module.h"

WG_BEGIN_DECLS

/* ---- Layer normalization, (x - mean) / sqrt(var + eps) * weight + bias over the last axis
 * (Ba et al. 2016, eq. 4) ---- */

typedef struct wg_layer_norm {
    wg_module module;
    wg_tensor *weight; /* (C), 1 at first */
    wg_tensor *bias;   /* (C), 0 at first, or NULL */
    double eps;
} wg_layer_norm;

typedef struct wg_layer_norm_options {
    double eps; /* 0: 1e-5; WG_ZERO: 0 */
    bool no_bias;
} wg_layer_norm_options;

/* `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY] */
WG_API wg_layer_norm *wg_layer_norm_new(wg_module *parent, const char *name, int64_t width,
                                        const wg_layer_norm_options *options);

/* x: (..., C)   ->   (..., C). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_layer_norm_forward(wg_layer_norm *norm, wg_tensor *x);

/* ---- Root mean square normalization, x / sqrt(mean(x^2) + eps) * weight over the last axis
 * (Zhang & Sennrich 2019, arXiv:1910.07467) ---- */

typedef struct wg_rms_norm {
    wg_module module;
    wg_tensor *weight; /* (C), 1 at first */
    double eps;
    bool eps_outside;
} wg_rms_norm;

typedef struct wg_rms_norm_options {
    double eps;       /* 0: 1e-6; WG_ZERO: 0 */
    bool eps_outside; /* x / (sqrt(mean(x^2)) + eps), as the paper's code has it */
} wg_rms_norm_options;

/* `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY] */
WG_API wg_rms_norm *wg_rms_norm_new(wg_module *parent, const char *name, int64_t width,
                                    const wg_rms_norm_options *options);

/* x: (..., C)   ->   (..., C). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_rms_norm_forward(wg_rms_norm *norm, wg_tensor *x);

/* ---- Add & Norm: the residual connection around any sublayer, with layer normalization after it
 * (Vaswani et al. 2017) or before it (Xiong et al. 2020):
 *
 *     post:  y = norm(x + dropout(sublayer(x)))
 *     pre:   y = x + dropout(sublayer(norm(x)))
 *
 * Both are written the same way:
 *
 *     y = wg_add_norm_after(norm, x, sublayer(wg_add_norm_before(norm, x))); ---- */

typedef struct wg_add_norm {
    wg_module module;
    wg_layer_norm *norm;
    double dropout;
    bool pre;
} wg_add_norm;

typedef struct wg_add_norm_options {
    bool pre;              /* normalize before the sublayer */
    double dropout;        /* of the sublayer's output, in training */
    double eps;            /* of the norm; 0: 1e-5; WG_ZERO: 0 */
    const char *norm_name; /* NULL: "norm" */
} wg_add_norm_options;

/* `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY] */
WG_API wg_add_norm *wg_add_norm_new(wg_module *parent, const char *name, int64_t width,
                                    const wg_add_norm_options *options);

/* The input of the sublayer: norm(x) (pre), or x itself (post).
 * x: (..., C)   ->   (..., C). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_add_norm_before(wg_add_norm *add_norm, wg_tensor *x);

/* x + dropout(y), normalized (post) or not (pre), where y is the output of the sublayer.
 * x, y: (..., C)   ->   (..., C). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_add_norm_after(wg_add_norm *add_norm, wg_tensor *x, wg_tensor *y);

/* ---- Batch normalization   (Ioffe & Szegedy 2015, arXiv:1502.03167, algorithms 1 and 2):
 *
 *     y = (x - mean) / sqrt(var + eps) * weight + bias
 *
 * In training, mean and variance of a channel are the batch's. In evaluation they are the running
 * statistics, which each batch of the training has moved:
 *
 *     running = (1 - momentum) running + momentum batch's
 *
 * with the batch's unbiased variance. Names and defaults are PyTorch's BatchNorm1d, BatchNorm2d and
 * BatchNorm3d ---- */

typedef struct wg_batch_norm {
    wg_module module;
    wg_tensor *weight, *bias;              /* (C), 1 and 0 at first, or NULL */
    wg_tensor *running_mean, *running_var; /* (C), buffers, 0 and 1 at first, or NULL */
    wg_tensor *num_batches_tracked;        /* i64 of rank 0: how many batches they have seen */
    int64_t channels;                      /* C */
    double eps, momentum;
    bool cumulative;
} wg_batch_norm;

typedef struct wg_batch_norm_options {
    double eps;      /* 0: 1e-5; WG_ZERO: 0 */
    double momentum; /* the share of the newest batch; 0: 0.1; WG_ZERO: 0 */
    bool cumulative; /* instead, running statistics are the mean of all batches' */
    bool no_affine;  /* neither weight nor bias */
    bool no_running; /* no running statistics: the batch's in evaluation, too */
} wg_batch_norm_options;

/* `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY] */
WG_API wg_batch_norm *wg_batch_norm_new(wg_module *parent, const char *name, int64_t channels,
                                        const wg_batch_norm_options *options);

/* x: (N, C), (N, C, L), (N, C, H, W) or (N, C, D, H, W)   ->   the same shape. In training the
 * running statistics move on. [scope; SHAPE, also for one value a channel where the batch's
 * statistics are wanted; DTYPE] */
WG_API wg_tensor *wg_batch_norm_forward(wg_batch_norm *norm, wg_tensor *x);

/* ---- Group normalization   (Wu & He 2018, arXiv:1803.08494, eq. 1): the channels of an example
 * are divided into groups. Each group is normalized over its channels and positions, then scaled
 * and shifted by channel. One group is the layer normalization of images; one-channel groups are
 * instance normalization ---- */

typedef struct wg_group_norm {
    wg_module module;
    wg_tensor *weight, *bias; /* (C), 1 and 0 at first, or NULL */
    int64_t groups, channels;
    double eps;
} wg_group_norm;

typedef struct wg_group_norm_options {
    double eps;     /* 0: 1e-5; WG_ZERO: 0 */
    bool no_affine; /* neither weight nor bias */
} wg_group_norm_options;

/* `parent` owns it; NULL makes it a root. NULL with [ARGUMENT for groups that do not divide the
 * channels; MEMORY] */
WG_API wg_group_norm *wg_group_norm_new(wg_module *parent, const char *name, int64_t groups,
                                        int64_t channels, const wg_group_norm_options *options);

/* x: (N, C, ...)   ->   the same shape. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_group_norm_forward(wg_group_norm *norm, wg_tensor *x);

WG_END_DECLS

#endif
