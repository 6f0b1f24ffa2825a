/* Activation functions, chosen by the names that published configurations use. */
#ifndef WG_NN_ACTIVATION_H
#define WG_NN_ACTIVATION_H

#include "../tensor/ops.h"

/* X(name, published name, op) */
#define WG_ACTIVATIONS(X)                                                                          \
    X(GELU, "gelu", wg_gelu)                                                                       \
    X(GELU_TANH, "gelu_new", wg_gelu_tanh)                                                         \
    X(RELU, "relu", wg_relu)                                                                       \
    X(TANH, "tanh", wg_tanh)

typedef enum wg_activation {
#define WG_ACTIVATION_CODE(name, published, op) WG_ACTIVATION_##name,
    WG_ACTIVATIONS(WG_ACTIVATION_CODE)
#undef WG_ACTIVATION_CODE
} wg_activation;

/* f(x), elementwise. [scope; ARGUMENT for a value outside the enum] */
WG_API wg_tensor *wg_activate(wg_activation activation, wg_tensor *x);

/* The published name; NULL for a value outside the enum. */
WG_API const char *wg_activation_name(wg_activation activation);

/* The activation of that name ("gelu_pytorch_tanh" is "gelu_new"). -1 with [ARGUMENT, listing the
 * names] */
WG_API int wg_activation_parse(const char *name, wg_activation *activation);

#endif
