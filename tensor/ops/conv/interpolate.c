/* Resizes images: each output is read from its place in x, from the nearest element or from the two
 * neighbours along each axis, weighted by their distance.
 *
 *     4 elements into 6, from centre to centre:    x   |  0  |  1  |  2  |  3  |
 *                                                  y   | 0 | 1 | 2 | 3 | 4 | 5 |
 *
 *     with align_corners, from the first to the last: output o lies at o 3 / 5
 *
 * Axes are resized one by one: a composite of index_select and lerp. */
#include <math.h>
#include <string.h>

#include "tensor/ops/support.h"

enum { AXES = 3, FEWEST = 2 /* leading axes: images and channels */ };

typedef struct interpolate_options {
    wg_interpolation mode;
    bool align_corners;
    int rank;
    int64_t size[AXES];
} interpolate_options;

/* Resizes an axis of x to `count` elements. */
static wg_tensor *resize_axis(const interpolate_options *options, wg_tensor *x, int axis,
                              int64_t count) {
    const int64_t size = wg_tensor_size(x, axis);
    const bool nearest = options->mode == WG_INTERPOLATE_NEAREST;
    wg_tensor *low = wg_empty(WG_I64, 1, &count), *high = wg_empty(WG_I64, 1, &count);
    int64_t shape[WG_MAX_DIMS] = {1, 1, 1, 1, 1};
    shape[axis] = count;
    wg_tensor *share = x ? wg_empty(WG_F64, x->spec.ndim, shape) : NULL;
    if (!low || !high || !share)
        return NULL;
    for (int64_t o = 0; o < count; o++) {
        double place = 0; /* of output o in x; PyTorch computes the nearest in f32 */
        if (nearest)
            place = fmin(floorf((float)o * ((float)size / (float)count)), (double)(size - 1));
        else if (!options->align_corners)
            place = fmax(0, ((double)o + 0.5) * ((double)size / (double)count) - 0.5);
        else if (count > 1)
            place = (double)o * ((double)(size - 1) / (double)(count - 1));
        const int64_t before = wg__smaller((int64_t)place, size - 1);
        ((int64_t *)wg_tensor_data(low))[o] = before;
        ((int64_t *)wg_tensor_data(high))[o] = wg__smaller(before + 1, size - 1);
        ((double *)wg_tensor_data(share))[o] = place - (double)before;
    }
    wg_tensor *y = wg_index_select(x, axis, low);
    return nearest ? y : wg_lerp(y, wg_index_select(x, axis, high), wg_cast(share, x->spec.dtype));
}

static int interpolate_decompose(wg_call *call) {
    const interpolate_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    if (options->mode != WG_INTERPOLATE_NEAREST && options->mode != WG_INTERPOLATE_LINEAR)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "mode %d is none of wg_interpolation",
                           (int)options->mode);
    if (options->align_corners && options->mode == WG_INTERPOLATE_NEAREST)
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "align_corners goes with WG_INTERPOLATE_LINEAR alone");
    if (!wg_dtype_is_float(x->dtype))
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted floats; cast the images");
    if (x->ndim != options->rank + FEWEST)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted images (N, C, ...) with %d spatial axes",
                           options->rank);
    for (int i = 0; i < options->rank; i++)
        if (x->shape[FEWEST + i] < 1 || options->size[i] < 1)
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "spatial axis %d goes from size %lld to %lld; both are at least 1",
                               i, (long long)x->shape[FEWEST + i], (long long)options->size[i]);
    wg_tensor *y = wg_alias(call->inputs[0]);
    for (int i = 0; y && i < options->rank; i++)
        y = resize_axis(options, y, FEWEST + i, options->size[i]);
    return wg__set_output(call, y);
}

WG__EXAMPLES(interpolate, interpolate_options, (wg__sample_normal),
             {{WG_INTERPOLATE_NEAREST, false, 1, {5}}, "2 1 3"},
             {{WG_INTERPOLATE_LINEAR, false, 2, {5, 2}}, "1 2 3 4"},
             {{WG_INTERPOLATE_LINEAR, true, 2, {4, 1}}, "1 2 3 2"},
             {{WG_INTERPOLATE_LINEAR, false, 3, {2, 3, 1}}, "1 1 2 2 2"})
/* 2^22 outputs. */
WG__LARGE(interpolate, interpolate_options, "4 64 64 64", WG_INTERPOLATE_LINEAR, false, 2,
          {128, 128})

static const wg_op interpolate = {
    WG__COMPOSITE_OP(interpolate, interpolate_options,
                     "y = x in another size of its spatial axes, from the nearest elements or "
                     "linearly between neighbours: (N, C, ...) -> (N, C, size)."),
    .bench = interpolate_bench};

wg_tensor *wg_interpolate(wg_tensor *x, int axis_count, const int64_t *size, wg_interpolation mode,
                          bool align_corners) {
    interpolate_options options = {mode, align_corners, axis_count, {0}};
    if (!x)
        return NULL;
    if (axis_count < 1 || axis_count > AXES)
        return wg__fail_null(WG_ERROR_ARGUMENT, "interpolate",
                             "%d sizes; wanted 1 to %d, one a spatial axis", axis_count, AXES);
    memcpy(options.size, size, (size_t)axis_count * sizeof *size);
    return wg_apply_one(&interpolate, 1, &x, &options);
}

const wg__op_table wg__ops_interpolate = WG__OP_TABLE(&interpolate);
