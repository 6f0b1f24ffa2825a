/* Activation functions, chosen by the names that published configurations use. */
#ifndef WG_NN_ACTIVATION_H
#define WG_NN_ACTIVATION_H

#include "../tensor/ops.h"

WG_BEGIN_DECLS

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

/* The activation of that name ("gelu_pytorch_tanh" is "gelu_new", "swish" is "silu"). -1 with
 * [ARGUMENT, listing the names] */
WG_API int wg_activation_parse(const char *name, wg_activation *activation);

WG_END_DECLS

#endif
