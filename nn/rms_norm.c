/* Root mean square normalisation. */
#include "nn/rms_norm.h"

#include "nn/internal.h"
#include "tensor/ops.h"

wg_rms_norm *wg_rms_norm_new(wg_module *parent, const char *name, int64_t width,
                             const wg_rms_norm_options *options) {
    static const wg_rms_norm_options defaults;
    if (!options)
        options = &defaults;
    if (wg__check_size("rms_norm", "width", width) < 0)
        return NULL;
    wg_rms_norm *norm = wg_module_new(parent, name, sizeof *norm);
    if (!norm)
        return NULL;
    norm->eps = options->eps == 0 ? 1e-6 : options->eps;
    norm->eps_outside = options->eps_outside;
    norm->weight = wg__vector_parameter(&norm->module, "weight", width, 1);
    return wg_module_finish(&norm->module);
}

wg_tensor *wg_rms_norm_forward(wg_rms_norm *norm, wg_tensor *x) {
    return wg_rms_norm_op(x, norm->weight, norm->eps, norm->eps_outside);
}
