/* Initial values of parameters. wg_copy_ and wg_fill_ write them with recording off, which works
 * for leaves and for every dtype. */
#include "nn/internal.h"

#include "tensor/internal.h"

#include <math.h>

static int fill(wg_tensor *x, const wg_initializer *how, wg_generator *generator) {
    const wg_init_kind kind = how->kind;
    const int ndim = wg_tensor_ndim(x);
    const int64_t *shape = wg_tensor_shape(x);
    if (kind == WG_INIT_DEFAULT || (unsigned)kind > WG_INIT_KAIMING_NORMAL)
        return wg_fail(WG_ERROR_ARGUMENT, "initialize", "kind %d is none of wg_init_kind",
                       (int)kind);
    if (kind == WG_INIT_ZEROS || kind == WG_INIT_ONES)
        return wg_fill_(x, kind == WG_INIT_ONES);
    double scale = how->scale == 0 ? 1 : how->scale, field = 1;
    if (!(scale > 0) || !isfinite(scale))
        return wg_fail(WG_ERROR_ARGUMENT, "initialize", "scale %g is not above 0 and finite",
                       scale);
    if (kind >= WG_INIT_XAVIER_UNIFORM) {
        if (ndim < 2)
            return wg_fail(WG_ERROR_SHAPE, "initialize",
                           "Xavier and Kaiming need a weight (O, I, ...), not rank %d", ndim);
        for (int i = 2; i < ndim; i++)
            field *= (double)shape[i];
        const double in = field * (double)shape[1], out = field * (double)shape[0];
        if (kind == WG_INIT_XAVIER_UNIFORM || kind == WG_INIT_XAVIER_NORMAL)
            scale *= sqrt(2 / (in + out));
        else
            scale /= sqrt(in);
    }
    if (kind == WG_INIT_TRUNCATED_NORMAL)
        return wg_copy_(
            x, wg_trunc_normal(generator, WG_F32, ndim, shape, 0, scale, -2 * scale, 2 * scale));
    if (kind == WG_INIT_XAVIER_UNIFORM || kind == WG_INIT_KAIMING_UNIFORM)
        scale *= sqrt(3); /* U(-a, a) has the variance a^2 / 3 */
    else if (kind != WG_INIT_UNIFORM)
        return wg_copy_(x, wg_normal(generator, WG_F32, ndim, shape, 0, scale));
    return wg_copy_(x, wg_affine(wg_rand(generator, WG_F32, ndim, shape), 2 * scale, -scale));
}

int wg_initialize(wg_tensor *x, const wg_initializer *how, wg_generator *generator) {
    if (!x || !how)
        return -1;
    if (!wg_dtype_is_float(wg_tensor_dtype(x)))
        return wg_fail(WG_ERROR_DTYPE, "initialize", "%s is no floating dtype",
                       wg_dtype_name(wg_tensor_dtype(x)));
    if (wg__meta_init && wg__tensor_is_meta(x))
        return 0;
    wg_scope scope;
    wg_scope_begin(&scope);
    bool recording = wg_set_grad_enabled(false);
    int status = fill(x, how, generator);
    wg_set_grad_enabled(recording);
    wg_scope_end(&scope, NULL);
    return status;
}

double wg__residual_scale(double scale, int64_t additions) {
    return additions < 1 ? NAN : scale / sqrt((double)additions);
}

wg_tensor *wg__parameter(wg_module *module, const char *name, int ndim, const int64_t *shape,
                         const wg_initializer *how, const wg_initializer *otherwise) {
    wg_tensor *parameter = wg_module_parameter(module, name, ndim, shape);
    const wg_initializer *init = how && how->kind != WG_INIT_DEFAULT ? how : otherwise;
    if (wg_initialize(parameter, init, wg_module_generator(module)) < 0)
        return NULL;
    module->last_slot->init = *init;
    return parameter;
}

wg_tensor *wg__vector_parameter(wg_module *module, const char *name, int64_t n, double value) {
    wg_initializer how = {value == 0 ? WG_INIT_ZEROS : WG_INIT_ONES, 0};
    wg_tensor *parameter = wg__parameter(module, name, 1, &n, &how, NULL);
    wg_module_no_decay(module, name);
    return parameter;
}
