/* Convolutions, pooling and interpolation against PyTorch. The cases of a suite are in
 * tests/fixtures/ops/SUITE.json, which SUITE.py writes: conv, pool, interpolate. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

/* ---- Convolutions ---- */

static wg_conv_options conv_options(const reference_case *c) {
    wg_conv_options options = {.same_padding = reference_flag(c, "same_padding")};
    int64_t groups[REFERENCE_LIST] = {0};
    reference_integers(c, "stride", options.stride);
    reference_integers(c, "padding", options.padding);
    reference_integers(c, "dilation", options.dilation);
    reference_integers(c, "output_padding", options.output_padding);
    reference_integers(c, "groups", groups);
    options.groups = groups[0];
    return options;
}

static wg_tensor *conv(const reference_case *c, wg_tensor *const *in) {
    const wg_conv_options options = conv_options(c);
    return wg_conv_op(in[0], in[1], in[2], &options);
}

static wg_tensor *conv_transpose(const reference_case *c, wg_tensor *const *in) {
    const wg_conv_options options = conv_options(c);
    return wg_conv_transpose_op(in[0], in[1], in[2], &options);
}

static const reference_op conv_ops[] = {
    {"conv1d", .one = conv},
    {"conv2d", .one = conv},
    {"conv3d", .one = conv},
    {"conv_transpose1d", .one = conv_transpose},
    {"conv_transpose2d", .one = conv_transpose},
    {"conv_transpose3d", .one = conv_transpose},
};

/* ---- Pooling ---- */

static wg_pool_options pool_options(const reference_case *c) {
    wg_pool_options options = {.ceil_mode = reference_flag(c, "ceil_mode"),
                               .exclude_padding = reference_flag(c, "exclude_padding")};
    int64_t divisor[REFERENCE_LIST] = {0};
    reference_integers(c, "kernel", options.kernel);
    reference_integers(c, "stride", options.stride);
    reference_integers(c, "padding", options.padding);
    reference_integers(c, "dilation", options.dilation);
    reference_integers(c, "divisor", divisor);
    options.divisor_override = divisor[0];
    return options;
}

static int max_pool(const reference_case *c, wg_tensor *const *in, wg_tensor **out) {
    const wg_pool_options options = pool_options(c);
    out[0] = wg_max_pool(in[0], &options, &out[1]);
    return out[0] ? 0 : -1;
}

static wg_tensor *avg_pool(const reference_case *c, wg_tensor *const *in) {
    const wg_pool_options options = pool_options(c);
    return wg_avg_pool(in[0], &options);
}

static int adaptive_max_pool(const reference_case *c, wg_tensor *const *in, wg_tensor **out) {
    int64_t size[REFERENCE_LIST];
    const int count = reference_integers(c, "size", size);
    out[0] = wg_adaptive_max_pool(in[0], count, size, &out[1]);
    return out[0] ? 0 : -1;
}

static wg_tensor *adaptive_avg_pool(const reference_case *c, wg_tensor *const *in) {
    int64_t size[REFERENCE_LIST];
    const int count = reference_integers(c, "size", size);
    return wg_adaptive_avg_pool(in[0], count, size);
}

#define POOL_OPS(RANK)                                                                             \
    {"max_pool" #RANK "d", .call = max_pool}, {"avg_pool" #RANK "d", .one = avg_pool},             \
        {"adaptive_max_pool" #RANK "d", .call = adaptive_max_pool}, {                              \
        "adaptive_avg_pool" #RANK "d", .one = adaptive_avg_pool                                    \
    }

static const reference_op pool_ops[] = {POOL_OPS(1), POOL_OPS(2), POOL_OPS(3)};

/* ---- Other sizes ---- */

static wg_tensor *interpolate(const reference_case *c, wg_tensor *const *in) {
    int64_t size[REFERENCE_LIST];
    const int count = reference_integers(c, "size", size);
    return wg_interpolate(in[0], count, size,
                          reference_flag(c, "linear") ? WG_INTERPOLATE_LINEAR
                                                      : WG_INTERPOLATE_NEAREST,
                          reference_flag(c, "align_corners"));
}

static const reference_op interpolate_ops[] = {{"interpolate", .one = interpolate}};

SUITES {
    add_reference_suite("conv", conv_ops);
    add_reference_suite("pool", pool_ops);
    add_reference_suite("interpolate", interpolate_ops);
}
