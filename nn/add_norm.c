/* Add & Norm around any sublayer. */
#include "nn/add_norm.h"

#include "nn/dropout.h"
#include "nn/internal.h"
#include "tensor/ops.h"

wg_add_norm *wg_add_norm_new(wg_module *parent, const char *name, int64_t width,
                             const wg_add_norm_options *options) {
    static const wg_add_norm_options defaults;
    if (!options)
        options = &defaults;
    if (wg__check_probability("add_norm", "dropout", options->dropout) < 0)
        return NULL;
    wg_add_norm *add_norm = wg_module_new(parent, name, sizeof *add_norm);
    if (!add_norm)
        return NULL;
    add_norm->dropout = options->dropout;
    add_norm->pre = options->pre;
    const wg_layer_norm_options norm = {.eps = options->eps};
    add_norm->norm = wg_layer_norm_new(
        &add_norm->module, options->norm_name ? options->norm_name : "norm", width, &norm);
    return wg_module_finish(&add_norm->module);
}

wg_tensor *wg_add_norm_before(wg_add_norm *add_norm, wg_tensor *x) {
    return add_norm->pre ? wg_layer_norm_forward(add_norm->norm, x) : x;
}

wg_tensor *wg_add_norm_after(wg_add_norm *add_norm, wg_tensor *x, wg_tensor *y) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *sum = wg_add(x, wg_dropout(&add_norm->module, y, add_norm->dropout));
    if (!add_norm->pre)
        sum = wg_layer_norm_forward(add_norm->norm, sum);
    return wg_scope_end(&scope, sum);
}
