/* Root mean square normalisation, x / sqrt(mean(x^2) + eps) * weight over the last axis
 * (Zhang & Sennrich 2019, arXiv:1910.07467). The weight is left alone by weight decay. */
#ifndef WG_NN_RMS_NORM_H
#define WG_NN_RMS_NORM_H

#include "module.h"

WG_BEGIN_DECLS

typedef struct wg_rms_norm {
    wg_module module;
    wg_tensor *weight; /* (C), 1 at first */
    double eps;
    bool eps_outside;
} wg_rms_norm;

typedef struct wg_rms_norm_options {
    double eps;       /* 0: 1e-6 */
    bool eps_outside; /* x / (sqrt(mean(x^2)) + eps), as the paper's code has it */
} wg_rms_norm_options;

/* `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY] */
WG_API wg_rms_norm *wg_rms_norm_new(wg_module *parent, const char *name, int64_t width,
                                    const wg_rms_norm_options *options);

/* x: (..., C)   ->   (..., C). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_rms_norm_forward(wg_rms_norm *norm, wg_tensor *x);

WG_END_DECLS

#endif
