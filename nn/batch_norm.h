/* Batch normalisation   (Ioffe & Szegedy 2015, arXiv:1502.03167, algorithms 1 and 2):
 *
 *     y = (x - mean) / sqrt(var + eps) * weight + bias
 *
 * where mean and variance of a channel are those of the batch in training, and in evaluation those
 * that training left behind:
 *
 *     running = (1 - momentum) running + momentum batch's
 *
 * with the batch's unbiased variance there, as PyTorch's BatchNorm1d, whose names and defaults
 * these are. Both parameters are left alone by weight decay. */
#ifndef WG_NN_BATCH_NORM_H
#define WG_NN_BATCH_NORM_H

#include "module.h"

WG_BEGIN_DECLS

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
    double eps;      /* 0: 1e-5 */
    double momentum; /* the share of the newest batch; 0: 0.1 */
    bool cumulative; /* instead, running statistics are the mean of all batches' */
    bool no_affine;  /* neither weight nor bias */
    bool no_running; /* no running statistics: the batch's in evaluation, too */
} wg_batch_norm_options;

/* `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY] */
WG_API wg_batch_norm *wg_batch_norm_new(wg_module *parent, const char *name, int64_t channels,
                                        const wg_batch_norm_options *options);

/* x: (N, C) or (N, C, L)   ->   the same shape. In training the running statistics move on.
 * [scope; SHAPE, also for one value a channel where the batch's statistics are wanted; DTYPE] */
WG_API wg_tensor *wg_batch_norm_forward(wg_batch_norm *norm, wg_tensor *x);

WG_END_DECLS

#endif
