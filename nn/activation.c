/* Activation functions by name. */
#include "nn/activation.h"

#include <string.h>

wg_tensor *wg_activate(wg_activation activation, wg_tensor *x) {
    switch (activation) {
#define ACTIVATE(name, published, value)                                                           \
    case WG_ACTIVATION_##name:                                                                     \
        return value;
        WG_ACTIVATIONS(ACTIVATE)
#undef ACTIVATE
    }
    wg_fail(WG_ERROR_ARGUMENT, "activate", "%d is none of wg_activation", (int)activation);
    return NULL;
}

const char *wg_activation_name(wg_activation activation) {
    switch (activation) {
#define NAME(name, published, value)                                                               \
    case WG_ACTIVATION_##name:                                                                     \
        return published;
        WG_ACTIVATIONS(NAME)
#undef NAME
    }
    return NULL;
}

int wg_activation_parse(const char *name, wg_activation *activation) {
    static const struct {
        const char *name;
        wg_activation activation;
    } table[] = {
#define ROW(name, published, value) {published, WG_ACTIVATION_##name},
        WG_ACTIVATIONS(ROW)
#undef ROW
            {"gelu_pytorch_tanh", WG_ACTIVATION_GELU_TANH},
        {"swish", WG_ACTIVATION_SILU},
    };
    char names[256] = "";
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i].name, name) == 0) {
            *activation = table[i].activation;
            return 0;
        }
        strcat(strcat(names, i ? ", " : ""), table[i].name);
    }
    return wg_fail(WG_ERROR_ARGUMENT, "activation", "\"%s\" is none of %s", name, names);
}
