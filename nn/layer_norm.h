/* Layer normalisation, (x - mean) / sqrt(var + eps) * weight + bias over the last axis
 * (Ba et al. 2016, eq. 4). Both parameters are left alone by weight decay. */
#ifndef WG_NN_LAYER_NORM_H
#define WG_NN_LAYER_NORM_H

#include "module.h"

WG_BEGIN_DECLS

typedef struct wg_layer_norm {
    wg_module module;
    wg_tensor *weight; /* (C), 1 at first */
    wg_tensor *bias;   /* (C), 0 at first, or NULL */
    double eps;
} wg_layer_norm;

typedef struct wg_layer_norm_options {
    double eps; /* 0: 1e-5 */
    bool no_bias;
} wg_layer_norm_options;

/* `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY] */
WG_API wg_layer_norm *wg_layer_norm_new(wg_module *parent, const char *name, int64_t width,
                                        const wg_layer_norm_options *options);

/* x: (..., C)   ->   (..., C). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_layer_norm_forward(wg_layer_norm *norm, wg_tensor *x);

WG_END_DECLS

#endif
