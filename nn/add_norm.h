/* Add & Norm: the residual connection around any sublayer, with layer normalisation after it
 * (Vaswani et al. 2017) or before it (Xiong et al. 2020):
 *
 *     post:  y = norm(x + dropout(sublayer(x)))
 *     pre:   y = x + dropout(sublayer(norm(x)))
 *
 * Both are written the same way:
 *
 *     y = wg_add_norm_after(norm, x, sublayer(wg_add_norm_before(norm, x))); */
#ifndef WG_NN_ADD_NORM_H
#define WG_NN_ADD_NORM_H

#include "layer_norm.h"

WG_BEGIN_DECLS

typedef struct wg_add_norm {
    wg_module module;
    wg_layer_norm *norm;
    double dropout;
    bool pre;
} wg_add_norm;

typedef struct wg_add_norm_options {
    bool pre;              /* normalise before the sublayer */
    double dropout;        /* of the sublayer's output, in training */
    double eps;            /* of the norm; 0: 1e-5 */
    const char *norm_name; /* NULL: "norm" */
} wg_add_norm_options;

/* `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY] */
WG_API wg_add_norm *wg_add_norm_new(wg_module *parent, const char *name, int64_t width,
                                    const wg_add_norm_options *options);

/* What the sublayer is to be given: norm(x) (pre), or x itself (post).
 * x: (..., C)   ->   (..., C). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_add_norm_before(wg_add_norm *add_norm, wg_tensor *x);

/* x + dropout(y), normalised (post) or not (pre), where y is what the sublayer gave.
 * x, y: (..., C)   ->   (..., C). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_add_norm_after(wg_add_norm *add_norm, wg_tensor *x, wg_tensor *y);

WG_END_DECLS

#endif
