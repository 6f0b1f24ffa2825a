/* Initial values of parameters. They are written through wg_copy_ and wg_fill_ with recording off,
 * so that a leaf can be filled and every dtype works. */
#include "nn/internal.h"

#include "tensor/internal.h"
#include "tensor/ops.h"

#include <math.h>

/* ---- The kinds ---- */

/* Fan-in and fan-out of a weight (O, I, ...); -1 with SHAPE. */
static int fans(const wg_tensor *x, double *in, double *out) {
    int ndim = wg_tensor_ndim(x);
    if (ndim < 2)
        return wg_fail(WG_ERROR_SHAPE, "initialize",
                       "Xavier and Kaiming need a weight (O, I, ...), not rank %d", ndim);
    double field = 1;
    for (int i = 2; i < ndim; i++)
        field *= (double)wg_tensor_size(x, i);
    *in = field * (double)wg_tensor_size(x, 1);
    *out = field * (double)wg_tensor_size(x, 0);
    return 0;
}

/* The standard deviation that a kind asks for (of the uniform one: its bound); -1 with an error. */
static int spread(const wg_tensor *x, const wg_initializer *how, double *result) {
    double scale = how->scale == 0 ? 1 : how->scale, in = 1, out = 1;
    if (!(scale > 0) || !isfinite(scale))
        return wg_fail(WG_ERROR_ARGUMENT, "initialize", "scale %g is not above 0 and finite",
                       scale);
    if (how->kind >= WG_INIT_XAVIER_UNIFORM && fans(x, &in, &out) < 0)
        return -1;
    switch (how->kind) {
    case WG_INIT_XAVIER_UNIFORM:
    case WG_INIT_XAVIER_NORMAL:
        scale *= sqrt(2 / (in + out));
        break;
    case WG_INIT_KAIMING_UNIFORM:
    case WG_INIT_KAIMING_NORMAL:
        scale /= sqrt(in);
        break;
    default:
        break;
    }
    *result = scale;
    return 0;
}

/* Numbers of the kind's distribution with standard deviation (of the uniform one: bound) `spread`.
 */
static wg_tensor *draw(wg_init_kind kind, double spread, wg_generator *generator, int ndim,
                       const int64_t *shape) {
    switch (kind) {
    case WG_INIT_XAVIER_UNIFORM:
    case WG_INIT_KAIMING_UNIFORM:
        spread *= sqrt(3); /* U(-a, a) has the variance a^2 / 3 */
        /* fall through */
    case WG_INIT_UNIFORM:
        return wg_affine(wg_rand(generator, WG_F32, ndim, shape), 2 * spread, -spread);
    case WG_INIT_TRUNCATED_NORMAL:
        return wg_trunc_normal(generator, WG_F32, ndim, shape, 0, spread, -2 * spread, 2 * spread);
    default:
        return wg_normal(generator, WG_F32, ndim, shape, 0, spread);
    }
}

static int fill(wg_tensor *x, const wg_initializer *how, wg_generator *generator) {
    double scale = 0;
    switch (how->kind) {
    case WG_INIT_ZEROS:
        return wg_fill_(x, 0);
    case WG_INIT_ONES:
        return wg_fill_(x, 1);
    case WG_INIT_UNIFORM:
    case WG_INIT_NORMAL:
    case WG_INIT_TRUNCATED_NORMAL:
    case WG_INIT_XAVIER_UNIFORM:
    case WG_INIT_XAVIER_NORMAL:
    case WG_INIT_KAIMING_UNIFORM:
    case WG_INIT_KAIMING_NORMAL:
        if (spread(x, how, &scale) < 0)
            return -1;
        return wg_copy_(x,
                        draw(how->kind, scale, generator, wg_tensor_ndim(x), wg_tensor_shape(x)));
    case WG_INIT_DEFAULT:
        break;
    }
    return wg_fail(WG_ERROR_ARGUMENT, "initialize", "kind %d is none of wg_init_kind",
                   (int)how->kind);
}

int wg_initialize(wg_tensor *x, const wg_initializer *how, wg_generator *generator) {
    if (!x || !how)
        return -1;
    if (!wg_dtype_is_float(wg_tensor_dtype(x)))
        return wg_fail(WG_ERROR_DTYPE, "initialize", "%s is no floating dtype",
                       wg_dtype_name(wg_tensor_dtype(x)));
    if (wg__meta_init() && wg__tensor_is_meta(x))
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

/* ---- Shared by the constructors of layers ---- */

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
