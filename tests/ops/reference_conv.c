/* Convolutions and pooling against PyTorch. The cases of a suite are in
 * tests/fixtures/ops/SUITE.json, which SUITE.py writes: conv, pool. */
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

/* Calls wg_NAME with the options of a case. */
#define CONV(NAME)                                                                                 \
    static wg_tensor *NAME(const reference_case *c, wg_tensor *const *in) {                        \
        const wg_conv_options options = conv_options(c);                                           \
        return wg_##NAME(in[0], in[1], in[2], &options);                                           \
    }

CONV(conv1d)
CONV(conv2d)
CONV(conv3d)
CONV(conv_transpose1d)
CONV(conv_transpose2d)
CONV(conv_transpose3d)

static const reference_op conv_ops[] = {
    {"conv1d", .one = conv1d},
    {"conv2d", .one = conv2d},
    {"conv3d", .one = conv3d},
    {"conv_transpose1d", .one = conv_transpose1d},
    {"conv_transpose2d", .one = conv_transpose2d},
    {"conv_transpose3d", .one = conv_transpose3d},
};

SUITES {
    add_reference_suite("conv", conv_ops);
}
