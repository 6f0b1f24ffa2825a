/* Feed-forward nets, plain and gated. */
#include "nn/feed_forward.h"

#include "nn/internal.h"

wg_tensor *wg_activate(wg_activation activation, wg_tensor *x) {
    switch (activation) {
#define ACTIVATE(name, published, value)                                                           \
    case WG_ACTIVATION_##name:                                                                     \
        return value;
        WG_ACTIVATIONS(ACTIVATE)
#undef ACTIVATE
    }
    return wg__fail_null(WG_ERROR_ARGUMENT, "activate", "%d is none of wg_activation",
                         (int)activation);
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

wg_feed_forward *wg_feed_forward_new(wg_module *parent, const char *name, int64_t width,
                                     int64_t inner, const wg_feed_forward_options *options) {
    options = options ? options : &(const wg_feed_forward_options){0};
    if (wg__check_probability("feed_forward", "dropout", options->dropout) < 0)
        return NULL;
    wg_feed_forward *net = wg_module_new(parent, name, sizeof *net);
    if (!net)
        return NULL;
    net->activation = options->activation;
    net->dropout = options->dropout;
    wg_linear_options linear = {
        .no_bias = options->no_bias, .transposed = options->transposed, .init = options->init};
    net->up = wg_linear_new(&net->module, options->up_name ? options->up_name : "up", width, inner,
                            &linear);
    if (options->down_init.kind != WG_INIT_DEFAULT)
        linear.init = options->down_init;
    net->down = wg_linear_new(&net->module, options->down_name ? options->down_name : "down", inner,
                              width, &linear);
    return wg_module_finish(&net->module);
}

wg_tensor *wg_feed_forward_forward(wg_feed_forward *net, wg_tensor *x) {
    wg_error_place place;
    wg_module_enter(&net->module, &place);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *inner = wg_activate(net->activation, wg_linear_forward(net->up, x));
    wg_tensor *y = wg_linear_forward(net->down, wg_dropout(&net->module, inner, net->dropout));
    return wg_module_leave(&place, wg_scope_end(&scope, y));
}

/* gelu_tanh(gate) value: T5 1.1's gate. */
static wg_tensor *geglu_tanh(wg_tensor *gate, wg_tensor *value) {
    wg_scope scope;
    wg_scope_begin(&scope);
    return wg_scope_end(&scope, wg_mul(wg_gelu_tanh(gate), value));
}

typedef struct gate_kind {
    const char *name;
    wg_tensor *(*op)(wg_tensor *gate, wg_tensor *value);
} gate_kind;

static const gate_kind gates[] = {
#define KIND(name, published, op) {published, op},
    WG_GATES(KIND)
#undef KIND
};

enum { GATE_COUNT = sizeof gates / sizeof *gates };

const char *wg__gate_name(int kind) {
    return (unsigned)kind < GATE_COUNT ? gates[kind].name : NULL;
}

wg_gated_feed_forward *wg_gated_feed_forward_new(wg_module *parent, const char *name, int64_t width,
                                                 int64_t inner,
                                                 const wg_gated_feed_forward_options *options) {
    options = options ? options : &(const wg_gated_feed_forward_options){0};
    if (wg__check_probability("gated_feed_forward", "dropout", options->dropout) < 0)
        return NULL;
    wg_gated_feed_forward *net = wg_module_new(parent, name, sizeof *net);
    if (!net)
        return NULL;
    net->kind = options->kind;
    net->dropout = options->dropout;
    wg_linear_options linear = {.no_bias = !options->bias, .init = options->init};
    wg_module *module = &net->module;
    if (options->joint) {
        net->joint =
            wg_linear_new(module, options->joint_name ? options->joint_name : "gate_up_proj", width,
                          wg__times(2, inner), &linear);
    } else {
        net->gate = wg_linear_new(module, options->gate_name ? options->gate_name : "gate_proj",
                                  width, inner, &linear);
        net->up = wg_linear_new(module, options->up_name ? options->up_name : "up_proj", width,
                                inner, &linear);
    }
    if (options->down_init.kind != WG_INIT_DEFAULT)
        linear.init = options->down_init;
    net->down = wg_linear_new(module, options->down_name ? options->down_name : "down_proj", inner,
                              width, &linear);
    return wg_module_finish(module);
}

wg_tensor *wg_gated_feed_forward_forward(wg_gated_feed_forward *net, wg_tensor *x) {
    wg_error_place place;
    wg_module_enter(&net->module, &place);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_linear *const pair[] = {net->gate, net->up};
    wg_tensor *both[2] = {NULL, NULL}; /* the gate's argument and the value, (..., I) each */
    if (net->joint) {
        wg_chunk(wg_linear_forward(net->joint, x), -1, 2, both); /* views */
    } else if (!wg__quantized_linears_forward(2, pair, x, both)) {
        both[0] = wg_linear_forward(net->gate, x);
        both[1] = both[0] ? wg_linear_forward(net->up, x) : NULL;
    }
    wg_tensor *inner = NULL; /* f(gate) value, elementwise */
    if ((unsigned)net->kind < GATE_COUNT)
        inner = gates[net->kind].op(both[0], both[1]);
    else
        wg_fail(WG_ERROR_ARGUMENT, "gate", "there is no gate %d", (int)net->kind);
    wg_tensor *y = wg_linear_forward(net->down, wg_dropout(&net->module, inner, net->dropout));
    return wg_module_leave(&place, wg_scope_end(&scope, y));
}
