/* Normalization: layer, root mean square, Add & Norm, batch, group. */
#include "nn/norm.h"

#include <math.h>

#include "nn/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"

wg_layer_norm *wg_layer_norm_new(wg_module *parent, const char *name, int64_t width,
                                 const wg_layer_norm_options *options) {
    options = options ? options : &(const wg_layer_norm_options){0};
    if (wg__check_size("layer_norm", "width", width) < 0)
        return NULL;
    wg_layer_norm *norm = wg_module_new(parent, name, sizeof *norm);
    if (!norm)
        return NULL;
    norm->eps = wg__option(options->eps, 1e-5);
    norm->weight = wg__vector_parameter(&norm->module, "weight", width, 1);
    if (!options->no_bias)
        norm->bias = wg__vector_parameter(&norm->module, "bias", width, 0);
    return wg_module_finish(&norm->module);
}

wg_tensor *wg_layer_norm_forward(wg_layer_norm *norm, wg_tensor *x) {
    wg_error_place place;
    wg_module_enter(&norm->module, &place);
    return wg_module_leave(&place, wg_layer_norm_op(x, norm->weight, norm->bias, norm->eps));
}

wg_rms_norm *wg_rms_norm_new(wg_module *parent, const char *name, int64_t width,
                             const wg_rms_norm_options *options) {
    options = options ? options : &(const wg_rms_norm_options){0};
    if (wg__check_size("rms_norm", "width", width) < 0)
        return NULL;
    wg_rms_norm *norm = wg_module_new(parent, name, sizeof *norm);
    if (!norm)
        return NULL;
    norm->eps = wg__option(options->eps, 1e-6);
    norm->eps_outside = options->eps_outside;
    norm->weight = wg__vector_parameter(&norm->module, "weight", width, 1);
    return wg_module_finish(&norm->module);
}

wg_tensor *wg_rms_norm_forward(wg_rms_norm *norm, wg_tensor *x) {
    wg_error_place place;
    wg_module_enter(&norm->module, &place);
    wg_tensor *y = wg_rms_norm_op(x, norm->weight, norm->eps, norm->eps_outside);
    return wg_module_leave(&place, y);
}

wg_add_norm *wg_add_norm_new(wg_module *parent, const char *name, int64_t width,
                             const wg_add_norm_options *options) {
    options = options ? options : &(const wg_add_norm_options){0};
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
    wg_error_place place;
    wg_module_enter(&add_norm->module, &place);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *sum = wg_add(x, wg_dropout(&add_norm->module, y, add_norm->dropout));
    if (!add_norm->pre)
        sum = wg_layer_norm_forward(add_norm->norm, sum);
    return wg_module_leave(&place, wg_scope_end(&scope, sum));
}

wg_batch_norm *wg_batch_norm_new(wg_module *parent, const char *name, int64_t channels,
                                 const wg_batch_norm_options *options) {
    options = options ? options : &(const wg_batch_norm_options){0};
    if (wg__check_size("batch_norm", "channels", channels) < 0)
        return NULL;
    if (!(options->eps >= 0 && isfinite(options->eps)))
        return wg__fail_null(WG_ERROR_ARGUMENT, "batch_norm", "eps is %g; it must be above 0",
                             options->eps);
    if (!(options->momentum >= 0 && options->momentum <= 1))
        return wg__fail_null(WG_ERROR_ARGUMENT, "batch_norm",
                             "momentum is %g; it must be above 0, and up to 1", options->momentum);
    wg_batch_norm *norm = wg_module_new(parent, name, sizeof *norm);
    if (!norm)
        return NULL;
    norm->channels = channels;
    norm->eps = wg__option(options->eps, 1e-5);
    norm->momentum = wg__option(options->momentum, 0.1);
    norm->cumulative = options->cumulative;
    if (!options->no_affine) {
        norm->weight = wg__vector_parameter(&norm->module, "weight", channels, 1);
        norm->bias = wg__vector_parameter(&norm->module, "bias", channels, 0);
    }
    if (!options->no_running) {
        wg_scope scope;
        wg_scope_begin(&scope);
        norm->running_mean =
            wg_module_buffer(&norm->module, "running_mean", wg_zeros(WG_F32, WG_DIMS(channels)));
        norm->running_var =
            wg_module_buffer(&norm->module, "running_var", wg_ones(WG_F32, WG_DIMS(channels)));
        norm->num_batches_tracked =
            wg_module_buffer(&norm->module, "num_batches_tracked", wg_scalar(WG_I64, 0));
        wg_scope_end(&scope, NULL);
    }
    return wg_module_finish(&norm->module);
}

/* running = (1 - share) running + share factor of_batch. */
static int move_running(wg_tensor *running, wg_tensor *of_batch, double share, double factor) {
    of_batch = wg_cast(of_batch, wg_tensor_dtype(running));
    return of_batch && wg_scale_(running, 1 - share) == 0
               ? wg_add_(running, of_batch, share * factor)
               : -1;
}

static wg_tensor *normalize(wg_batch_norm *norm, wg_tensor *x) {
    const bool training = wg_module_is_training(&norm->module);
    const bool of_batch = training || !norm->running_mean;
    const int rank = wg_tensor_ndim(x);
    if (!x)
        return NULL;
    if (rank < 2 || rank > 5)
        return wg__fail_null(
            WG_ERROR_SHAPE, "batch_norm",
            "x has rank %d; wanted (N, C), (N, C, L), (N, C, H, W) or (N, C, D, H, W)", rank);
    if (wg_tensor_size(x, 1) != norm->channels)
        return wg__fail_null(WG_ERROR_SHAPE, "batch_norm",
                             "x has %lld channels in axis 1; wanted %lld",
                             (long long)wg_tensor_size(x, 1), (long long)norm->channels);
    const int64_t values = wg_tensor_count(x) / norm->channels;
    if (of_batch && values < 2)
        return wg__fail_null(WG_ERROR_SHAPE, "batch_norm",
                             "%lld values a channel have no variance; wanted a larger batch",
                             (long long)values);
    if (!of_batch)
        return wg_normalize_channels(x, norm->running_mean, norm->running_var, norm->weight,
                                     norm->bias, norm->eps);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *y, *mean, *variance;
    int status = wg_batch_norm_op(x, norm->weight, norm->bias, norm->eps, &y, &mean, &variance);
    if (status == 0 && training && norm->running_mean) {
        const bool recording = wg_set_grad_enabled(false);
        const double seen = wg_item(norm->num_batches_tracked) + 1;
        const double share = norm->cumulative ? 1 / seen : norm->momentum;
        status = wg_fill_(norm->num_batches_tracked, seen);
        if (status == 0)
            status = move_running(norm->running_mean, mean, share, 1);
        if (status == 0) /* by the unbiased variance */
            status = move_running(norm->running_var, variance, share,
                                  (double)values / (double)(values - 1));
        wg_set_grad_enabled(recording);
    }
    return wg_scope_end(&scope, status == 0 ? y : NULL);
}

wg_tensor *wg_batch_norm_forward(wg_batch_norm *norm, wg_tensor *x) {
    wg_error_place place;
    wg_module_enter(&norm->module, &place);
    return wg_module_leave(&place, normalize(norm, x));
}

wg_group_norm *wg_group_norm_new(wg_module *parent, const char *name, int64_t groups,
                                 int64_t channels, const wg_group_norm_options *options) {
    options = options ? options : &(const wg_group_norm_options){0};
    if (wg__check_size("group_norm", "groups", groups) < 0 ||
        wg__check_size("group_norm", "channels", channels) < 0)
        return NULL;
    if (channels % groups != 0)
        return wg__fail_null(WG_ERROR_ARGUMENT, "group_norm",
                             "%lld groups do not divide %lld channels", (long long)groups,
                             (long long)channels);
    wg_group_norm *norm = wg_module_new(parent, name, sizeof *norm);
    if (!norm)
        return NULL;
    norm->groups = groups;
    norm->channels = channels;
    norm->eps = wg__option(options->eps, 1e-5);
    if (!options->no_affine) {
        norm->weight = wg__vector_parameter(&norm->module, "weight", channels, 1);
        norm->bias = wg__vector_parameter(&norm->module, "bias", channels, 0);
    }
    return wg_module_finish(&norm->module);
}

wg_tensor *wg_group_norm_forward(wg_group_norm *norm, wg_tensor *x) {
    wg_error_place place;
    wg_module_enter(&norm->module, &place);
    if (x && (wg_tensor_ndim(x) < 2 || wg_tensor_size(x, 1) != norm->channels)) {
        char text[128];
        x = wg__fail_null(WG_ERROR_SHAPE, "group_norm", "x is %s; wanted (N, %lld, ...)",
                          wg_spec_text(text, sizeof text, &x->spec), (long long)norm->channels);
    }
    if (!x)
        return wg_module_leave(&place, NULL);

    wg_scope scope;
    wg_scope_begin(&scope);
    const int64_t *shape = wg_tensor_shape(x), count = wg_tensor_count(x);
    const int64_t rows[] = {shape[0] * norm->groups,
                            shape[0] ? count / (shape[0] * norm->groups) : 1};
    wg_tensor *y = wg_layer_norm_op(wg_reshape(x, 2, rows), NULL, NULL, norm->eps);
    y = wg_reshape(y, wg_tensor_ndim(x), shape);
    if (norm->weight)
        y = wg_add(wg_mul(y, wg__as_channels(norm->weight, x)), wg__as_channels(norm->bias, x));
    return wg_module_leave(&place, wg_scope_end(&scope, y));
}
