/* The affine layer, y = x W^T + b. */
#include "nn/linear.h"

#include "nn/internal.h"

#include <math.h>

/* A second name for a parameter of another layer, which must have the shape of the parameter that
 * it replaces. */
static wg_tensor *tie(wg_module *module, const char *name, wg_tensor *parameter, int ndim,
                      const int64_t *shape) {
    bool fits = wg_tensor_ndim(parameter) == ndim;
    for (int i = 0; fits && i < ndim; i++)
        fits = wg_tensor_size(parameter, i) == shape[i];
    if (!fits) {
        char text[64];
        wg_spec spec = {wg_tensor_dtype(parameter), ndim, {0}};
        for (int i = 0; i < ndim; i++)
            spec.shape[i] = shape[i];
        return wg__fail_null(WG_ERROR_SHAPE, "linear", "the tied %s is not %s", name,
                             wg_spec_text(text, sizeof text, &spec));
    }
    return wg_module_tie(module, name, parameter);
}

static void destroy(wg_module *module) {
    for (wg__linear_stand_in *own = ((wg_linear *)module)->stand_in, *below; own; own = below) {
        below = own->below;
        wg__free(own);
    }
}

wg_linear *wg_linear_new(wg_module *parent, const char *name, int64_t in, int64_t out,
                         const wg_linear_options *options) {
    options = options ? options : &(const wg_linear_options){0};
    if (wg__check_size("linear", "in", in) < 0 || wg__check_size("linear", "out", out) < 0)
        return NULL;
    wg_linear *linear = wg_module_new(parent, name, sizeof *linear);
    if (!linear)
        return NULL;
    linear->module.destroy = destroy;
    linear->transposed = options->transposed;
    const int64_t shape[] = {options->transposed ? in : out, options->transposed ? out : in};
    const wg_initializer uniform = {WG_INIT_UNIFORM, 1 / sqrt((double)in)};
    if (options->tied_weight)
        linear->weight = tie(&linear->module, "weight", options->tied_weight, 2, shape);
    else
        linear->weight =
            wg__parameter(&linear->module, "weight", 2, shape, &options->init, &uniform);
    if (options->tied_bias)
        linear->bias = tie(&linear->module, "bias", options->tied_bias, 1, &out);
    else if (!options->no_bias)
        linear->bias = wg__vector_parameter(&linear->module, "bias", out, 0);
    return wg_module_finish(&linear->module);
}

wg_linear *wg__module_as_linear(wg_module *module) {
    return module->destroy == destroy ? (wg_linear *)module : NULL;
}

wg_tensor *wg__linear_weight(const wg_linear *linear) {
    return linear->transposed ? wg_transpose(linear->weight, 0, 1) : linear->weight;
}

wg_tensor *wg_linear_forward(wg_linear *linear, wg_tensor *x) {
    const wg__linear_stand_in *stand_in = linear->stand_in;
    wg_error_place place;
    wg_module_enter(&linear->module, &place);
    return wg_module_leave(&place, stand_in
                                       ? stand_in->forward(linear, stand_in, x)
                                       : wg_linear_op(x, wg__linear_weight(linear), linear->bias));
}

wg_tensor *wg_linear_loss(wg_linear *linear, wg_tensor *x, wg_tensor *target, int64_t ignore_index,
                          const wg_cross_entropy_options *options) {
    wg_error_place place;
    wg_module_enter(&linear->module, &place);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *rows = wg_flatten(x, 0, -2), *loss;
    target = wg_flatten(target, 0, -1);
    if (linear->stand_in)
        loss = wg_cross_entropy(wg_linear_forward(linear, rows), target, ignore_index, options);
    else
        loss = wg_linear_cross_entropy(rows, wg__linear_weight(linear), target, linear->bias,
                                       ignore_index, options);
    return wg_module_leave(&place, wg_scope_end(&scope, loss));
}
