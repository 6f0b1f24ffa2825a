/* Position-wise feed-forward nets, plain and gated, with the activations and gates that they choose
 * from. */
#ifndef WG_NN_FEED_FORWARD_H
#define WG_NN_FEED_FORWARD_H

#include "linear.h"

WG_BEGIN_DECLS

/* ---- Activation functions, by the names that published configurations use ---- */

/* X(name, published name, value at x) */
#define WG_ACTIVATIONS(X)                                                                          \
    X(GELU, "gelu", wg_gelu(x))                                                                    \
    X(GELU_TANH, "gelu_new", wg_gelu_tanh(x))                                                      \
    X(RELU, "relu", wg_relu(x))                                                                    \
    X(TANH, "tanh", wg_tanh(x))                                                                    \
    X(SIGMOID, "sigmoid", wg_sigmoid(x))                                                           \
    X(SILU, "silu", wg_silu(x))                                                                    \
    X(MISH, "mish", wg_mish(x))                                                                    \
    X(LEAKY_RELU, "leaky_relu", wg_leaky_relu(x, 0.01))                                            \
    X(ELU, "elu", wg_elu(x, 1))                                                                    \
    X(SOFTPLUS, "softplus", wg_softplus(x, 1, 20))                                                 \
    X(LOG_SIGMOID, "logsigmoid", wg_log_sigmoid(x))                                                \
    X(HARDSIGMOID, "hardsigmoid", wg_hardsigmoid(x))                                               \
    X(HARDSWISH, "hardswish", wg_hardswish(x))

typedef enum wg_activation {
#define WG_ACTIVATION_CODE(name, published, value) WG_ACTIVATION_##name,
    WG_ACTIVATIONS(WG_ACTIVATION_CODE)
#undef WG_ACTIVATION_CODE
} wg_activation;

/* f(x), elementwise. [scope; ARGUMENT for a value outside the enum] */
WG_API wg_tensor *wg_activate(wg_activation activation, wg_tensor *x);

/* The published name; NULL for a value outside the enum. */
WG_API const char *wg_activation_name(wg_activation activation);

/* ---- The plain net, down(f(up(x)))   (Vaswani et al. 2017, eq. 2) ---- */

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
    wg_initializer init, down_init; /* of the weights; default: wg_linear's. down_init:
                                       default init */

    /* Names of the two layers below this module; may hold dots. NULL: "up", "down". */
    const char *up_name, *down_name;
} wg_feed_forward_options;

/* width -> inner -> width. `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY] */
WG_API wg_feed_forward *wg_feed_forward_new(wg_module *parent, const char *name, int64_t width,
                                            int64_t inner, const wg_feed_forward_options *options);

/* x: (..., C)   ->   (..., C). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_feed_forward_forward(wg_feed_forward *feed_forward, wg_tensor *x);

/* ---- The gated net, down(f(gate(x)) * up(x))   (Shazeer 2020, arXiv:2002.05202): GLU, ReGLU,
 * GEGLU, SwiGLU and bilinear by the choice of f ---- */

/* X(name, published name of f, op of gate and value) */
#define WG_GATES(X)                                                                                \
    X(SWIGLU, "silu", wg_swiglu)                                                                   \
    X(GLU, "sigmoid", wg_glu)                                                                      \
    X(REGLU, "relu", wg_reglu)                                                                     \
    X(GEGLU, "gelu", wg_geglu)                                                                     \
    X(GEGLU_TANH, "gelu_new", geglu_tanh)                                                          \
    X(BILINEAR, "linear", wg_mul)

typedef enum wg_gate {
#define WG_GATE_CODE(name, published, op) WG_GATE_##name,
    WG_GATES(WG_GATE_CODE)
#undef WG_GATE_CODE
} wg_gate;

typedef struct wg_gated_feed_forward {
    wg_module module;
    wg_linear *gate, *up, *down;
    wg_linear *joint; /* one layer for gate and up, which are NULL then */
    wg_gate kind;
    double dropout;
} wg_gated_feed_forward;

typedef struct wg_gated_feed_forward_options {
    wg_gate kind;                   /* 0: SwiGLU */
    double dropout;                 /* of the inner activations, in training */
    bool bias;                      /* in all three layers; published models have none */
    bool joint;                     /* one layer computes f's argument, then the value */
    wg_initializer init, down_init; /* of the weights; default: wg_linear's. down_init:
                                       default init */

    /* Names of the layers below this module; may hold dots. NULL: "gate_proj", "up_proj",
     * "down_proj" and "gate_up_proj". */
    const char *gate_name, *up_name, *down_name, *joint_name;
} wg_gated_feed_forward_options;

/* width -> inner -> width. `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY] */
WG_API wg_gated_feed_forward *wg_gated_feed_forward_new(
    wg_module *parent, const char *name, int64_t width, int64_t inner,
    const wg_gated_feed_forward_options *options);

/* x: (..., C)   ->   (..., C). [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_gated_feed_forward_forward(wg_gated_feed_forward *feed_forward, wg_tensor *x);

WG_END_DECLS

#endif
