/* The position-wise feed-forward net. */
#include "nn/feed_forward.h"

#include "nn/dropout.h"
#include "nn/internal.h"

wg_feed_forward *wg_feed_forward_new(wg_module *parent, const char *name, int64_t width,
                                     int64_t inner, const wg_feed_forward_options *options) {
    static const wg_feed_forward_options defaults;
    if (!options)
        options = &defaults;
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
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *inner = wg_activate(net->activation, wg_linear_forward(net->up, x));
    wg_tensor *y = wg_linear_forward(net->down, wg_dropout(&net->module, inner, net->dropout));
    return wg_scope_end(&scope, y);
}
