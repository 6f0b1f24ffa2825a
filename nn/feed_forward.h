/* The position-wise feed-forward net, down(f(up(x)))   (Vaswani et al. 2017, eq. 2). */
#ifndef WG_NN_FEED_FORWARD_H
#define WG_NN_FEED_FORWARD_H

#include "activation.h"
#include "linear.h"

WG_BEGIN_DECLS

typedef struct wg_feed_forward {
    wg_module module;
    wg_linear *up, *down;
    wg_activation activation;
    double dropout;
} wg_feed_forward;

typedef struct wg_feed_forward_options {
    wg_activation activation; /* 0: GELU */
    double dropout;           /* of the inner activations, in training; BERT has none */
    bool no_bias;
    bool transposed;                /* weights are stored as (I, O): see linear.h */
    wg_initializer init, down_init; /* of the weights; default: that of wg_linear. down_init:
                                       default init */

    /* Names of the two layers below this module; may hold dots. NULL: "up", "down". */
    const char *up_name, *down_name;
} wg_feed_forward_options;

/* width -> inner -> width. `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY] */
WG_API wg_feed_forward *wg_feed_forward_new(wg_module *parent, const char *name, int64_t width,
                                            int64_t inner, const wg_feed_forward_options *options);

/* x: (..., C)   ->   (..., C). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_feed_forward_forward(wg_feed_forward *feed_forward, wg_tensor *x);

WG_END_DECLS

#endif
