/* The table of sinusoidal positions. */
#include "nn/sinusoidal.h"

#include <math.h>

#include "nn/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"

static int check(wg_dtype dtype, int64_t width, int64_t first, int64_t positions, double base) {
    if (wg__check_size("sinusoidal", "width", width) < 0 ||
        wg__check_size("sinusoidal", "positions", positions) < 0)
        return -1;
    if (first < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "sinusoidal", "position %lld is negative",
                       (long long)first);
    if (base < 0 || !isfinite(base))
        return wg_fail(WG_ERROR_ARGUMENT, "sinusoidal", "base %g; wanted a positive number", base);
    if (!wg_dtype_is_float(dtype))
        return wg_fail(WG_ERROR_DTYPE, "sinusoidal", "%s; wanted a floating dtype",
                       wg_dtype_name(dtype));
    return 0;
}

wg_tensor *wg_sinusoidal_table(wg_dtype dtype, int64_t width, int64_t first, int64_t positions,
                               const wg_sinusoidal_options *options) {
    double base = options ? options->base : 0;
    if (check(dtype, width, first, positions, base) < 0)
        return NULL;
    if (base == 0)
        base = 10000;
    if (wg__meta_init())
        return wg__meta_tensor_new(&(wg_spec){dtype, 2, {positions, width}});
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *table = wg_empty(WG_F64, WG_DIMS(positions, width));
    double *p = table ? wg_tensor_data(table) : NULL;
    for (int64_t c = 0; p && c < width; c++) {
        const double step = pow(base, -(double)(c - c % 2) / (double)width);
        for (int64_t t = 0; t < positions; t++) {
            const double angle = (double)(first + t) * step;
            p[t * width + c] = c % 2 == 0 ? sin(angle) : cos(angle);
        }
    }
    return wg_scope_end(&scope, wg_cast(table, dtype));
}
