/* Layer normalisation. */
#include "nn/layer_norm.h"

#include "nn/internal.h"
#include "tensor/ops.h"

wg_layer_norm *wg_layer_norm_new(wg_module *parent, const char *name, int64_t width,
                                 const wg_layer_norm_options *options) {
    static const wg_layer_norm_options defaults;
    if (!options)
        options = &defaults;
    if (wg__check_size("layer_norm", "width", width) < 0)
        return NULL;
    wg_layer_norm *norm = wg_module_new(parent, name, sizeof *norm);
    if (!norm)
        return NULL;
    norm->eps = options->eps == 0 ? 1e-5 : options->eps;
    norm->weight = wg__vector_parameter(&norm->module, "weight", width, 1);
    if (!options->no_bias)
        norm->bias = wg__vector_parameter(&norm->module, "bias", width, 0);
    return wg_module_finish(&norm->module);
}

wg_tensor *wg_layer_norm_forward(wg_layer_norm *norm, wg_tensor *x) {
    return wg_layer_norm_op(x, norm->weight, norm->bias, norm->eps);
}
